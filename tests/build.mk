# tests/: a folder per kind. Each test_*.c becomes a program linked with the whole house; the other
# .c files of its folder, and tests/lib/, are there to be used. A test may include the .c file that
# it tests: the archive's copy is then not taken.

TEST_KINDS := unit flow fault
UNIT_SRCS := $(sort $(wildcard tests/unit/test_*.c))
FLOW_SRCS := $(sort $(wildcard tests/flow/test_*.c))
FAULT_SRCS := $(sort $(wildcard tests/fault/test_*.c))
TEST_SRCS := $(UNIT_SRCS) $(FLOW_SRCS) $(FAULT_SRCS)
HELP_SRCS := $(filter-out $(TEST_SRCS) tests/tumble/tumble.c tests/powercut/powercut.c,$(wildcard tests/lib/*.c tests/unit/*.c \
	tests/unit/stubs/*.c tests/flow/*.c tests/fault/*.c tests/tumble/*.c \
	tests/powercut/*.c))
TEST_PROGS := $(TEST_SRCS:%.c=$(O)/%)
FLOW_PROGS := $(FLOW_SRCS:%.c=$(O)/%)
TEST_SCRIPTS := $(sort $(wildcard tests/unit/test_*.sh tests/flow/test_*.sh tests/fault/test_*.sh))
# Those that take longest, which begin first: none is left to run alone at the end.
LONG_SCRIPTS := $(filter tests/flow/test_variant_%,$(TEST_SCRIPTS))
TESTS = $(LONG_SCRIPTS) $(TEST_PROGS) $(filter-out $(LONG_SCRIPTS),$(TEST_SCRIPTS)) $(REPLAYS)
HOUSE := $(O)/libdump.a $(O)/libserver.a $(O)/libleat.a $(O)/libxdr.a $(O)/libpreload.a $(O)/librpcrdma_tirpc.a $(O)/librpcrdma.a
HOUSE_LIBS := $(SERVER_LIBS) $(RPCRDMA_LIBS) -lcmocka

# ---- the checker of captures: installed, run by `leat dump` ------------------------------------------

DUMP_SRCS := $(sort $(wildcard tests/tools/dump/*.c))
DUMP_OBJS := $(DUMP_SRCS:%.c=$(O)/%.o)

# It parses captures with the wire formats of the library, and sees nothing else of it.
$(DUMP_OBJS): INC_tests := -Itests/tools/dump -Irpcrdma/wire -Ixdr

# All of it but main(), for tests.
$(O)/libdump.a: $(filter-out %/dump_main.o,$(DUMP_OBJS))
	$(archive)

$(OUT)/leat-dump: $(DUMP_OBJS) $(O)/libxdr.a $(O)/librpcrdma.a
	$(call say,LD,$@)$(LINK) -pie $^ $(RPCRDMA_LIBS) -o $@ && chmod go-w $@ # whatever the umask: leat dump checks it

# ---- the programs of tests -------------------------------------------------------------------------

# What a test's program needs beyond the house: LDFLAGS_NAME.
LDFLAGS_test_dir := -Wl,--wrap=malloc,--wrap=calloc,--wrap=reallocarray,--wrap=strdup
LDFLAGS_test_removed := -Wl,--wrap=malloc
LDFLAGS_test_server_space := -Wl,--wrap=fallocate,--wrap=fsync
HELD_WRITES := --wrap=pwritev2,--wrap=fs_limits_find,--wrap=fs_limits_find_file
LDFLAGS_test_block_server := -Wl,$(HELD_WRITES)
LDFLAGS_test_block_races := -Wl,$(HELD_WRITES),--wrap=fdatasync,--wrap=getrandom
LDFLAGS_test_block_withheld := -Wl,$(HELD_WRITES),--wrap=block_enter,--wrap=block_conn_end
LDFLAGS_test_block_sync := -Wl,--wrap=fsync,--wrap=fdatasync
LDFLAGS_test_block_keep := -Wl,--wrap=rpcrdma_engine_enter,--wrap=rpcrdma_engine_post
LDFLAGS_test_block_stop := -Wl,--wrap=pwritev2,--wrap=fs_limits_find_file,--wrap=service_is_busy
LDFLAGS_test_block_cuts := -Wl,--wrap=pwritev2,--wrap=fsync,--wrap=req_conn_lost,--wrap=req_wake
NOMEM := --wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=strdup
NOMEM_SERVER := $(NOMEM),--wrap=io_destroy,--wrap=server_start,--wrap=server_reload
LDFLAGS_test_block_server_nomem := -Wl,$(NOMEM_SERVER)
LDFLAGS_test_nomem := -Wl,$(NOMEM),--wrap=mmap,--wrap=rr_local_mr_reg
LDFLAGS_test_node_nomem := -Wl,$(NOMEM)
LDFLAGS_test_leat_stripes_nomem := -Wl,$(NOMEM)
LDFLAGS_test_leat_block_life := -Wl,--wrap=rpcrdma_mem_alloc,--wrap=rpcrdma_mem_free
LDFLAGS_test_block_nomem := -Wl,$(NOMEM)
LDFLAGS_test_clnt_lookup := -Wl,--wrap=getaddrinfo,--wrap=pthread_create,--wrap=connect,--wrap=getsockopt
LDFLAGS_test_srv_probe := -Wl,--wrap=rr_ep_post,--wrap=rr_ep_disconnect,--wrap=rr_srv_credit_tick
LDFLAGS_test_svc_mem := -Wl,--wrap=malloc,--wrap=calloc
LDFLAGS_test_svc_bytes := -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc
LDFLAGS_test_svc_bytes_bad := -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc
LDFLAGS_test_prog := -Wl,--wrap=rpcrdma_req_reply_error
LDFLAGS_test_prog_nomem := -Wl,$(NOMEM)
LDFLAGS_test_tirpc_svc_nomem := -Wl,$(NOMEM)
LDFLAGS_test_tirpc_clnt_nomem := -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=reallocarray,--wrap=strdup,--wrap=free,--wrap=mmap,--wrap=memfd_create,--wrap=rr_local_open
LDFLAGS_test_cancel_nomem := -Wl,$(NOMEM),--wrap=mmap
LDFLAGS_test_powercut := -Wl,--wrap=fsync,--wrap=fdatasync,--wrap=syncfs,--wrap=renameat,--wrap=pwritev2
LDFLAGS_test_powercut_loss := $(LDFLAGS_test_powercut)
LDFLAGS_test_local_close := -Wl,--wrap=close,--wrap=bind
LDFLAGS_test_local_memfd := -Wl,--wrap=rr_local_sock_send
LDFLAGS_test_local_sandbox := -Wl,--wrap=process_vm_writev
LDFLAGS_test_req_bytes := -Wl,--wrap=rpcrdma_listen
LDFLAGS_test_tirpc_bind := -Wl,--wrap=rpcrdma_listen,--wrap=rpcrdma_listener_addr
LDFLAGS_test_pool := -Wl,--wrap=mmap,--wrap=madvise
LDFLAGS_test_pool_long := -Wl,--wrap=mmap
LDFLAGS_test_window := -Wl,--wrap=rr_ep_post
LDFLAGS_test_registration := -Wl,--wrap=rr_monitor_get
LDFLAGS_test_man_options := $(O)/libtools.a
LDFLAGS_test_volume_start := -Wl,--wrap=fstatvfs
VOLUME_WATCH := --wrap=xdr_VOLREPORTargs,--wrap=leat_volume_object_stat
FSCK_PARTS := -Wl,-u,cmd_volume,$(VOLUME_WATCH),--wrap=leat_volume_layout,--wrap=getxattr $(O)/libtools.a
LDFLAGS_test_volume_fsck := $(FSCK_PARTS)
LDFLAGS_test_volume_orphans := $(FSCK_PARTS)
LDFLAGS_test_volume_resign := $(FSCK_PARTS)
LDFLAGS_test_mem_kind := -Wl,--wrap=ibv_reg_dmabuf_mr
LDFLAGS_test_verbs_addr := -Wl,--wrap=rdma_bind_addr
LDFLAGS_test_verbs_events := -Wl,--wrap=rdma_get_cm_event,--wrap=rdma_ack_cm_event,--wrap=rdma_destroy_id,--wrap=ibv_modify_qp,--wrap=ibv_destroy_qp,--wrap=ibv_destroy_cq,--wrap=ibv_create_comp_channel,--wrap=ibv_destroy_comp_channel
LDFLAGS_test_leat_umount := -Wl,--wrap=rpcrdma_engine_post
LDFLAGS_test_store_cached := -Wl,--wrap=pwritev2,--wrap=fsync,--wrap=fdatasync,--wrap=msync
LDFLAGS_test_store_space := -Wl,--wrap=fallocate,--wrap=lseek,--wrap=fsync,--wrap=fdatasync
LDFLAGS_test_store_device := -Wl,--wrap=fallocate,--wrap=ioctl
LDFLAGS_test_server_close := -Wl,--wrap=close
LDFLAGS_test_server_writable := -Wl,--wrap=clock_gettime,--wrap=msync,--wrap=fsync
LDFLAGS_test_store_sim := -Wl,--wrap=clock_gettime,--wrap=timerfd_settime
LDFLAGS_test_store_aio := -Wl,--wrap=io_submit,--wrap=io_getevents,--wrap=preadv2,--wrap=pwritev2,--wrap=fsync,--wrap=fdatasync,--wrap=rpcrdma_engine_watch
LDFLAGS_test_store_aio_kernel := $(LDFLAGS_test_store_aio)
LDFLAGS_test_dir_watch_fs := -Wl,--wrap=inotify_add_watch,--wrap=read
LDFLAGS_test_volume_create := -Wl,--wrap=mkdir,--wrap=mkdirat,--wrap=fsync,--wrap=write,--wrap=open_memstream,--wrap=malloc,--wrap=calloc,--wrap=strdup
LDFLAGS_test_vfs := -Wl,--wrap=fsync,--wrap=syncfs
LDFLAGS_test_silent_disk := -Wl,--wrap=preadv2,--wrap=pwritev2,--wrap=io_submit
LDFLAGS_test_server_async := -Wl,--wrap=fsync,--wrap=fdatasync,--wrap=syncfs,--wrap=pwritev2
LDFLAGS_test_server_dirs := -Wl,--wrap=getdents64,--wrap=creds_assume
LDFLAGS_test_dir_wcc := -Wl,--wrap=creds_resume,--wrap=fsync
LDFLAGS_test_server_groups := -Wl,--wrap=getpwuid_r,--wrap=getgrouplist
LDFLAGS_test_server_verf := -Wl,--wrap=fsync,--wrap=fdatasync,--wrap=pwritev2
LDFLAGS_test_server_twins := -Wl,--wrap=nfs3_mkdir,--wrap=pwritev2
LDFLAGS_test_server_status := -Wl,--wrap=mkdirat,--wrap=fsync,--wrap=statx
LDFLAGS_test_server_atime := -Wl,--wrap=pread,--wrap=fs_limits_find
LDFLAGS_test_server_files := -Wl,--wrap=fsync,--wrap=fdatasync,--wrap=close,--wrap=nfs3_getattr,--wrap=nfs3_io_read_begin
LDFLAGS_test_server_slow_fs := -Wl,--wrap=fs_limits_find,--wrap=statx,--wrap=stat,--wrap=fstatfs,--wrap=name_to_handle_at,--wrap=preadv2,--wrap=pwritev2,--wrap=fsync,--wrap=fdatasync,--wrap=openat,--wrap=close,--wrap=mmap,--wrap=nfs3_lookup
LOST_STRIPES := --wrap=file_layout_decode,--wrap=stripe_now,--wrap=pwritev2,--wrap=fs_limits_find
LDFLAGS_test_leat_stripes_lost := -Wl,$(LOST_STRIPES),--wrap=fsync
LDFLAGS_test_leat_stripes_refused := -Wl,$(LOST_STRIPES)
LDFLAGS_test_leat_stripes_lies := -Wl,--wrap=xdr_VOLLAYOUTres,--wrap=xdr_VOLMAPres,--wrap=xdr_VOLREPORTres,--wrap=xdr_VOLRESERVEres,--wrap=xdr_STRIPEREADres,--wrap=xdr_STRIPECHANGEres
LDFLAGS_test_stripe_withheld := -Wl,$(HELD_WRITES),--wrap=stripe_lane_enter
HELD_STRIPES := $(HELD_WRITES),--wrap=fsync,--wrap=fdatasync,--wrap=stripe_now
LDFLAGS_test_stripe_server := -Wl,$(HELD_STRIPES)
LDFLAGS_test_stripe_epochs := -Wl,$(HELD_STRIPES)
LDFLAGS_test_stripe_order := -Wl,$(HELD_STRIPES)
LDFLAGS_test_stripe_crash := -Wl,--wrap=fsetxattr,--wrap=linkat,--wrap=fsync,--wrap=ftruncate,--wrap=mkdirat,--wrap=openat,--wrap=renameat
LDFLAGS_test_stripe_nomem := -Wl,$(NOMEM_SERVER)
LDFLAGS_test_volume_nfs_nomem := -Wl,$(NOMEM_SERVER)
LDFLAGS_test_volume_nomem := -Wl,$(NOMEM),--wrap=server_start,--wrap=server_reload
LDFLAGS_test_volume_reach_nomem := -Wl,$(NOMEM),--wrap=leat_session_create
LDFLAGS_test_volume_nfs := -Wl,--wrap=pwritev2,--wrap=ftruncate,--wrap=fsync,--wrap=fdatasync,--wrap=fs_limits_find,--wrap=volume_wrote
LDFLAGS_test_volume_self := -Wl,--wrap=volume_layout_for_manager,--wrap=reactor_stop
MANAGER_WRAPS := --wrap=fsync,--wrap=setxattr,--wrap=ftruncate,--wrap=fs_limits_find,--wrap=name_to_handle_at
LDFLAGS_test_volume_manager := -Wl,$(MANAGER_WRAPS)
LDFLAGS_test_volume_reports := -Wl,$(MANAGER_WRAPS)
LDFLAGS_test_volume_defaults := -Wl,$(MANAGER_WRAPS)
LDFLAGS_test_volume_cuts := -Wl,--wrap=vfs_lookup,--wrap=leat_volume_object_fence,--wrap=volume_pending_run
LDFLAGS_test_volume_reach := -Wl,--wrap=xdr_STRIPEINFOres
LDFLAGS_test_volume_leases := -Wl,$(VOLUME_WATCH)
LDFLAGS_test_lease_table := -Wl,$(NOMEM)
LDFLAGS_test_volume_appends := -Wl,$(VOLUME_WATCH)
LDFLAGS_test_volume_append_asks := -Wl,$(VOLUME_WATCH),--wrap=rpcrdma_engine_post,--wrap=rpcrdma_timer_set,--wrap=reactor_destroy,--wrap=volume_pending_queue,--wrap=client_begin_wait,--wrap=client_end_wait
LDFLAGS_test_volume_append_cuts := -Wl,--wrap=lt_io_write_range,--wrap=xdr_STRIPEWRITEargs
CRASH_POINTS := --wrap=fchownat,--wrap=fdatasync,--wrap=fsetxattr,--wrap=fsync,--wrap=ftruncate,--wrap=linkat,--wrap=mkdirat,--wrap=openat,--wrap=pthread_create,--wrap=pwritev2,--wrap=renameat,--wrap=renameat2,--wrap=rpcrdma_clnt_call,--wrap=sendmsg,--wrap=setxattr,--wrap=symlinkat,--wrap=syncfs,--wrap=truncate,--wrap=unlinkat,--wrap=utimensat
LDFLAGS_test_volume_crash := -Wl,$(CRASH_POINTS),-u,cmd_volume $(O)/libtools.a
LDFLAGS_test_server_perms := -Wl,--wrap=statx,--wrap=clock_gettime

# The flow tests can be run as variants: tests/lib/variant.c, tests/flow/test_variant_*.sh.
$(FLOW_PROGS): LDFLAGS_flow := -Wl,-u,__wrap_rr_credit_grant,--wrap=rpcrdma_clnt_open,--wrap=rpcrdma_listen,--wrap=rr_credit_grant,--wrap=rr_local_open,--wrap=data_conf_init

$(O)/libhelp.a: $(HELP_SRCS:%.c=$(O)/%.o)
	$(archive)

$(TEST_PROGS): %: %.o $(O)/libhelp.a $(HOUSE)
	$(call say,LD,$@)$(LINK) $< $(LDFLAGS_$(notdir $*)) $(LDFLAGS_flow) $(O)/libhelp.a $(HOUSE) $(HOUSE_LIBS) -o $@

$(O)/tests/unit/test_man_options $(addprefix $(O)/tests/flow/test_volume_,crash fsck orphans resign): $(O)/libtools.a

# ---- the random tester: of flow tests and of tests/interop/long ------------------------------------

TUMBLE_SRCS := $(sort $(wildcard tests/tumble/*.c))
TUMBLE := $(O)/tests/tumble/tumble

$(TUMBLE): $(TUMBLE_SRCS:%.c=$(O)/%.o) $(O)/libleat.a $(O)/libxdr.a $(O)/librpcrdma.a
	$(call say,LD,$@)$(LINK) $^ $(RPCRDMA_LIBS) -o $@

# ---- the power cut tester: of flow/test_powercut and of tests/interop/long -------------------------

POWERCUT_SRCS := $(sort $(wildcard tests/powercut/*.c))
POWERCUT := $(O)/tests/powercut/powercut

$(POWERCUT): $(POWERCUT_SRCS:%.c=$(O)/%.o) $(O)/libxdr.a $(O)/librpcrdma.a
	$(call say,LD,$@)$(LINK) $^ $(RPCRDMA_LIBS) -o $@

# ---- the recorder of a volume's writes and their replay: of tests/interop/nbd_replay ---------------------

RECORD := $(O)/tests/replay/record.so
REPLAY := $(O)/tests/replay/replay

$(RECORD): $(O)/tests/replay/record.o
	$(call say,LD,$@)$(LINK) -shared $< -ldl -o $@
$(REPLAY): $(O)/tests/replay/replay.o
	$(call say,LD,$@)$(LINK) -pie $< -o $@

# ---- attacks on a leatd: of flow/test_hostile and of tests/interop/long -----------------------------

HOSTILE_SRCS := $(sort $(wildcard tests/hostile/*.c))
HOSTILE := $(O)/tests/hostile/hostile

$(HOSTILE): $(HOSTILE_SRCS:%.c=$(O)/%.o) $(O)/tests/lib/memfd_menu.o $(HOUSE)
	$(call say,LD,$@)$(LINK) $(filter %.o,$^) \
		-Wl,--wrap=rr_local_sock_send,--wrap=rr_local_ring_map,--wrap=rr_local_ring_unmap,--wrap=rr_local_ring_send \
		$(HOUSE) $(filter-out -lcmocka,$(HOUSE_LIBS)) -o $@

# ---- fuzz harnesses: with libFuzzer in the variant fuzz, elsewhere with a main() that replays ----

FUZZ_NAMES := $(patsubst tests/fuzz/fuzz_%.c,%,$(sort $(wildcard tests/fuzz/fuzz_*.c)))
REPLAY_PROGS := $(FUZZ_NAMES:%=$(O)/tests/fuzz/replay_%)
FUZZ_PROGS := $(FUZZ_NAMES:%=$(O)/tests/fuzz/fuzz_%)
FUZZ_LIB := $(filter-out tests/fuzz/fuzz_%.c tests/fuzz/replay_main.c,$(wildcard tests/fuzz/*.c))
FUZZ_LIB_OBJS := $(FUZZ_LIB:%.c=$(O)/%.o)

# What a harness needs beyond the house: LDFLAGS_fuzz_NAME.
LDFLAGS_fuzz_client := -Wl,--wrap=rpcrdma_clnt_open

$(REPLAY_PROGS): $(O)/tests/fuzz/replay_%: $(O)/tests/fuzz/fuzz_%.o $(O)/tests/fuzz/replay_main.o \
		$(FUZZ_LIB_OBJS) $(HOUSE)
	$(call say,LD,$@)$(LINK) $(filter %.o,$^) $(LDFLAGS_fuzz_$*) $(HOUSE) $(HOUSE_LIBS) -o $@

$(FUZZ_PROGS): %: %.o $(FUZZ_LIB_OBJS) $(HOUSE)
	$(call say,LD,$@)$(LINK) -fsanitize=fuzzer $(filter %.o,$^) $(LDFLAGS_$(notdir $*)) $(HOUSE) $(HOUSE_LIBS) -o $@

REPLAYS := $(foreach n,$(FUZZ_NAMES),"$(O)/tests/fuzz/replay_$n tests/fuzz/corpus/$n")

# ---- the way of a READ and of a WRITE (make path) ----------------------------------------------------

PATH_PROG := $(O)/tests/path/path
$(PATH_PROG): $(O)/tests/path/path.o $(O)/libhelp.a $(HOUSE)
	$(call say,LD,$@)$(LINK) $< -Wl,--wrap=preadv2,--wrap=pwritev2,--wrap=sendmsg $(O)/libhelp.a $(HOUSE) $(HOUSE_LIBS) -o $@

.PHONY: path run-path
path:
	@scripts/deps.sh install build rdma check
	@$(SUB) VARIANT=path run-path
run-path: $(PATH_PROG)
ifdef VM
	@tests/interop/vm/vm -t 900 $(PATH_PROG) rdma 10.77.0.1 || [ $$? -eq 77 ]
else
	@for fabric in local tcp; do $(PATH_PROG) $$fabric || exit; done
endif

# ---- bench tools ---------------------------------------------------------------------------------

BENCH_SRCS := $(filter-out $(if $(HAVE_LIBNBD),,tests/bench/nbd%),$(wildcard tests/bench/*.c))
BENCH_PROGS := $(BENCH_SRCS:tests/bench/%.c=$(B)/bench/%)

LDFLAGS_bench_nbd_load := -lnbd
LDFLAGS_bench_overlap := -Wl,--wrap=rr_local_open

.PHONY: bench-tools
bench-tools: $(BENCH_PROGS) $(HOSTILE)
$(B)/bench/%: $(O)/tests/bench/%.o $(HOUSE)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(LINK) $< $(LDFLAGS_bench_$*) $(HOUSE) $(filter-out -lcmocka,$(HOUSE_LIBS)) -o $@

# ---- NFSv3 by stubs of rpcgen: a client and a service on handles of librpcrdma_tirpc alone ----------------

NFS_GEN := $(GEN)/rpcgen_nfs
NFS_SRCS := $(wildcard tests/interop/rpcgen/*.c)
NFS_STUBS := $(addprefix $(O)/gen/rpcgen_nfs/nfs_,xdr.o clnt.o svc.o)
NFS_PROGS := $(NFS_SRCS:%.c=$(O)/%)

# -M: the caller provides the memory of results, so a READ can go to memory of its choice.
RPCGEN_NFS = $(call say,RPCGEN,$@)rm -f $@ && cd $(<D) && $(RPCGEN) -N -M -i 0
$(NFS_GEN)/nfs.h: tests/interop/rpcgen/nfs.x
	@mkdir -p $(@D)
	$(RPCGEN_NFS) -h -o ../../../$@ $(<F)
$(NFS_GEN)/nfs_%.c: tests/interop/rpcgen/nfs.x
	@mkdir -p $(@D)
	$(RPCGEN_NFS) $(NFS_PART_$*) -o ../../../$@ $(<F)
NFS_PART_xdr := -c
NFS_PART_clnt := -l
NFS_PART_svc := -m

$(NFS_STUBS): $(O)/gen/%.o: $(GEN)/%.c $(NFS_GEN)/nfs.h $(O)/flags
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(TIRPC_CFLAGS) -I$(NFS_GEN) $(CPPFLAGS) $(CFLAGS) -w -c $< -o $@
$(NFS_SRCS:%.c=$(O)/%.o): INC_tests := -I$(NFS_GEN)
$(NFS_SRCS:%.c=$(O)/%.o): $(NFS_GEN)/nfs.h
$(NFS_PROGS): %: %.o $(NFS_STUBS) $(O)/librpcrdma_tirpc.a $(O)/librpcrdma.a
	$(call say,LD,$@)$(LINK) $(filter-out $(if $(filter %client,$@),%svc.o,%clnt.o),$^) $(TIRPC_LIBS) $(RPCRDMA_LIBS) -o $@

# ---- programs of the interoperation tests (tests/interop/*.sh) ------------------------------------

INTEROP_SRCS := $(filter-out $(if $(HAVE_VERBS),,tests/interop/verbs%),$(wildcard tests/interop/*.c))
INTEROP_PROGS := $(INTEROP_SRCS:%.c=$(O)/%)
MANY := $(O)/tests/interop/many

# Flow tests that tests/interop/objects.sh and long/variants.sh run over a device
RDMA_FLOWS := $(shell awk '!/^\#/ { print "$(O)/tests/flow/" $$1 }' tests/interop/flows.txt)

.PHONY: interop-tools
interop-tools: $(EXAMPLES) $(INTEROP_PROGS) $(TUMBLE) $(POWERCUT) $(RECORD) $(REPLAY) $(HOSTILE) $(O)/tests/unit/test_fs_limits $(O)/tests/unit/test_creds \
	$(O)/tests/unit/test_store_aio $(O)/tests/unit/test_store_aio_kernel $(O)/tests/unit/test_store_space \
	$(O)/tests/unit/test_store_device $(O)/tests/flow/test_server_atime \
	$(RDMA_FLOWS) $(NFS_PROGS)
$(O)/tests/interop/stale: $(O)/tests/lib/stale_rounds.o
$(O)/tests/interop/verbs_toy: $(addprefix $(O)/tests/lib/,toy_rig.o toy_block.o inside.o tmp_dir.o)
$(O)/tests/interop/verbs_session: $(addprefix $(O)/tests/lib/,cancel_ops.o inside.o leat_flow.o)
$(O)/tests/interop/verbs_window: $(O)/tests/lib/raw_server.o $(O)/tests/lib/wire_svc.o
$(O)/tests/interop/memfds: $(O)/tests/lib/memfd_menu.o
LDFLAGS_memfds := -Wl,--wrap=rr_local_sock_send
$(INTEROP_PROGS): %: %.o $(HOUSE)
	$(call say,LD,$@)$(LINK) $(filter %.o,$^) $(LDFLAGS_$(notdir $*)) $(HOUSE) $(HOUSE_LIBS) -o $@

# ---- running -------------------------------------------------------------------------------------

TEST_ENV = O=$(O) RUN_PROGRAM=$(OUT)/rpcrdma-run LEATD=$(OUT)/leatd LEAT=$(OUT)/leat EXAMPLES=$(OUT)/examples CC="$(CC)" CXX="$(CXX)" INC="$(INC)"
# Seconds for one program: enough for any on a slow machine, since it is for what hangs; programs at once: more
# than the two processors of a small machine, since a test waits for more than half of its time.
TEST_TIMEOUT ?= 1200
TEST_JOBS ?= 4
RUN = $(TEST_ENV) tests/run -j $(TEST_JOBS) -t $(TEST_TIMEOUT) -o $(O)/log

.PHONY: check asan ubsan tsan cov fuzz fuzz-cov run-check run-tests run-flow run-fuzz run-fuzz-cov \
	run-cov tests
check:
	@scripts/deps.sh install build rdma check
	@$(SUB) run-check

tests: $(OUT)/leatd $(OUT)/leat $(OUT)/leat-dump $(EXAMPLES) $(RPCGEN_PROGS) $(TEST_PROGS) $(REPLAY_PROGS) $(TUMBLE) $(POWERCUT) $(HOSTILE) $(MANY) $(NFS_PROGS)

run-check: all tests $(GEN_HDRS)
	@$(RUN) $(TESTS) \
		scripts/check-layers.sh scripts/check-headers.sh scripts/check-doc.sh scripts/check-mutants.sh scripts/abi.sh
	@scripts/check-protocol.sh $(O)/log

run-tests: tests
	@$(RUN) $(TESTS)

run-flow: $(OUT)/leatd $(OUT)/leat $(FLOW_PROGS)
	@TSAN_OPTIONS="suppressions=$(CURDIR)/tests/tsan.supp history_size=4 $$TSAN_OPTIONS" $(RUN) $(FLOW_PROGS)

asan ubsan:
	@scripts/deps.sh install build rdma check
	@$(SUB) VARIANT=$@ TEST_TIMEOUT=2400 run-tests

tsan:
	@scripts/deps.sh install build rdma check
	@$(SUB) VARIANT=tsan TEST_TIMEOUT=2400 run-flow

SECONDS ?= 60
fuzz:
	@scripts/deps.sh install build rdma check fuzz
	@$(SUB) VARIANT=fuzz run-fuzz

# What libFuzzer finds new goes to build/; move what is worth keeping to tests/fuzz/corpus.
run-fuzz: $(FUZZ_PROGS)
	$(Q)set -e; for n in $(FUZZ_NAMES); do echo "  FUZZ    $$n"; \
		mkdir -p $(O)/corpus/$$n tests/fuzz/corpus/$$n; dict=tests/fuzz/$$n.dict; \
		$(O)/tests/fuzz/fuzz_$$n -max_total_time=$(SECONDS) -timeout=60 -rss_limit_mb=2048 \
			-print_final_stats=1 -verbosity=0 -artifact_prefix=$(O)/$$n- \
			$$(test -f $$dict && echo -dict=$$dict) $(O)/corpus/$$n tests/fuzz/corpus/$$n; done

# What the corpora reach of everything that decodes what a peer says.
FUZZ_COV_SRCS := $(XDR_SRCS) $(GEN_NAMES:%=$(GEN)/%_xdr.c) $(addprefix rpcrdma/,wire/hdr.c wire/chunk.c wire/plan.c \
	wire/rpc_msg.c wire/stream.c srv/srv_recv.c srv/srv_tcp_in.c clnt/clnt_rdma_reply.c clnt/clnt_msg.c clnt/clnt_tcp_recv.c \
	local/local_sock.c local/local_ring.c local/local_cm.c core/addr.c base/opt.c) \
	$(wildcard server/nfs3/*.c) $(addprefix server/,handles/fh.c spine/req.c conf/conf.c conf/conf_options.c exports/export.c) \
	$(addprefix client/,conf/url.c conf/path.c meta/dir.c core/call.c meta/walk.c mount/mntsvc.c meta/attr.c) \
	$(addprefix tirpc/preload/,map.c map_text.c map_table.c)

fuzz-cov:
	@scripts/deps.sh install build rdma check fuzz
	@$(SUB) VARIANT=cov run-fuzz-cov

run-fuzz-cov: $(REPLAY_PROGS)
	@rm -rf $(O)/fuzz-prof && mkdir -p $(O)/fuzz-prof $(B)/cov
	$(Q)set -e; for n in $(FUZZ_NAMES); do \
		LLVM_PROFILE_FILE=$(O)/fuzz-prof/$$n.raw $(O)/tests/fuzz/replay_$$n tests/fuzz/corpus/$$n; done
	$(Q)llvm-profdata merge -sparse $(O)/fuzz-prof/*.raw -o $(O)/fuzz-prof/all
	$(Q)llvm-cov report $(firstword $(REPLAY_PROGS)) $(patsubst %,-object %,$(wordlist 2,99,$(REPLAY_PROGS))) \
		-instr-profile=$(O)/fuzz-prof/all -show-region-summary=0 $(abspath $(FUZZ_COV_SRCS)) | \
		tee $(B)/cov/fuzz.txt

cov:
	@scripts/deps.sh install build rdma check fuzz
	@$(SUB) VARIANT=cov run-cov

run-cov: tests
	@rm -rf $(O)/prof && mkdir -p $(O)/prof $(B)/cov
	-@LLVM_PROFILE_FILE=$(CURDIR)/$(O)/prof/%p.raw $(RUN) $(TESTS)
	$(Q)find $(O)/prof -name '*.raw' >$(O)/prof/list && llvm-profdata merge -sparse -f $(O)/prof/list -o $(O)/prof/all
	$(Q)llvm-cov report $(OUT)/leatd $(patsubst %,-object %,$(OUT)/leat $(TEST_PROGS) $(REPLAY_PROGS)) \
		-instr-profile=$(O)/prof/all -ignore-filename-regex='build/gen|tests/' | tee $(B)/cov/report.txt

LIB_SRCS := $(XDR_SRCS) $(RPCRDMA_SRCS) $(HANDLE_SRCS) $(PRELOAD_SRCS) $(RUN_SRCS) $(SERVER_SRCS) $(CLIENT_SRCS) $(TOOLS_SRCS) \
	$(if $(HAVE_NBDKIT),$(NBDKIT_SRCS))
ALL_SRCS := $(LIB_SRCS) $(DUMP_SRCS) $(TEST_SRCS) $(HELP_SRCS) $(BENCH_SRCS) $(INTEROP_SRCS) $(NFS_SRCS) $(HOSTILE_SRCS) tests/tumble/tumble.c \
	tests/powercut/powercut.c
