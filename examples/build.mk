# examples/: programs as others would write them: public headers, installed libraries. Tests run them.

EXAMPLE_SRCS := $(wildcard examples/*.c examples/kv/*.c)
RPCGEN_PROGS := $(addprefix $(OUT)/examples/rpcgen/,kv_client kv_server kv_client_tcp kv_server_tcp)
EXAMPLES := $(EXAMPLE_SRCS:%.c=$(OUT)/%)
EXAMPLE_LIBS := $(if $(filter default,$(VARIANT)),$(B)/libleat.so $(B)/librpcrdma.so,$(O)/libleat.a $(O)/libxdr.a $(O)/librpcrdma.a)

.PHONY: examples
examples: $(EXAMPLES) $(RPCGEN_PROGS)
$(EXAMPLES): $(OUT)/%: %.c $(wildcard include/*.h examples/*/*.h) $(EXAMPLE_LIBS)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) -std=c99 -pedantic -D_POSIX_C_SOURCE=200809L -Wall -Wextra -Wno-cast-function-type $(if $(DEV),-Werror) \
		-Iinclude $(TIRPC_CFLAGS) $(CPPFLAGS) $(CFLAGS) $< $(EXAMPLE_LIBS) $(RPCRDMA_LIBS) -pthread \
		-Wl,-rpath,$(abspath $(B)) -o $@

# ---- examples/rpcgen: stubs of rpcgen, with handles of librpcrdma_tirpc, and as ordinary programs of libtirpc (*_tcp)

STUBS := $(GEN)/examples
STUB_FLAGS := -I$(STUBS) -Iinclude $(TIRPC_CFLAGS)
HANDLE_LIBS := $(if $(filter default,$(VARIANT)),$(B)/librpcrdma_tirpc.so $(B)/librpcrdma.so,$(O)/librpcrdma_tirpc.a $(O)/librpcrdma.a)

# rpcgen: as in xdr/build.mk
$(STUBS)/kv.h: examples/rpcgen/kv.x
	@mkdir -p $(@D)
	$(call say,RPCGEN,$@)rm -f $@ && cd $(<D) && $(RPCGEN) -N -h -o ../../$@ $(<F)
$(STUBS)/kv_%.c: examples/rpcgen/kv.x
	@mkdir -p $(@D)
	$(call say,RPCGEN,$@)rm -f $@ && cd $(<D) && $(RPCGEN) -N -i 0 $(STUB_$*) -o ../../$@ $(<F)
STUB_clnt := -l
STUB_svc := -m
STUB_xdr := -c

$(O)/examples/kv_%.o: $(STUBS)/kv_%.c $(STUBS)/kv.h
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(STUB_FLAGS) $(CPPFLAGS) $(CFLAGS) -w -c $< -o $@

# build NAME PART OPTIONS LIBRARIES
define rpcgen_prog
$(OUT)/examples/rpcgen/$1: examples/rpcgen/$(1:%_tcp=%).c examples/rpcgen/kv_bulk.h include/rpcrdma_tirpc.h $(STUBS)/kv.h \
		$(O)/examples/kv_$2.o $(O)/examples/kv_xdr.o $(HANDLE_LIBS)
	@mkdir -p $$(@D)
	$$(call say,LD,$$@)$$(CC) -Wall -Wextra -Wno-cast-function-type $(if $(DEV),-Werror) $3 $$(STUB_FLAGS) $$(CPPFLAGS) $$(CFLAGS) $$< \
		$(O)/examples/kv_$2.o $(O)/examples/kv_xdr.o $4 $$(TIRPC_LIBS) -pthread -Wl,-rpath,$(abspath $(B)) -o $$@
endef
$(eval $(call rpcgen_prog,kv_client,clnt,,$(HANDLE_LIBS) $$(RPCRDMA_LIBS)))
$(eval $(call rpcgen_prog,kv_server,svc,,$(HANDLE_LIBS) $$(RPCRDMA_LIBS)))
$(eval $(call rpcgen_prog,kv_client_tcp,clnt,-DKV_TCP,))
$(eval $(call rpcgen_prog,kv_server_tcp,svc,-DKV_TCP,))
