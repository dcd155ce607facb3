# tirpc/: librpcrdma_tirpc, handles of libtirpc. It sees include/ and itself: to librpcrdma it is a program like any other.

HANDLE_SRCS := $(filter-out tirpc/preload/% tirpc/run/% tirpc/info/%,$(wildcard tirpc/*/*.c))
HANDLE_OBJS := $(HANDLE_SRCS:%.c=$(O)/%.o)

$(O)/librpcrdma_tirpc.a: $(HANDLE_OBJS)
	$(archive)

ifeq ($(VARIANT),default)
LIBS += $(B)/librpcrdma_tirpc.so $(B)/librpcrdma_tirpc.a
endif

# Never unloaded: its handlers of fork() stay registered.
$(B)/librpcrdma_tirpc.so: $(HANDLE_OBJS) $(B)/librpcrdma.so tirpc/tirpc.map
	$(call say,LD,$@)$(LINK) -shared -Wl,-z,defs,-z,nodelete -Wl,-soname,$(@F).$(SOVERSION) \
		-Wl,--version-script=tirpc/tirpc.map $(HANDLE_OBJS) $(B)/librpcrdma.so -Wl,-rpath,'$$ORIGIN' $(TIRPC_LIBS) -o $@
	$(Q)ln -sf $(@F) $@.$(SOVERSION)

$(B)/librpcrdma_tirpc.a: $(HANDLE_OBJS)
	$(public_archive)

# ---- rpcrdma-run and the library that it preloads ------------------------------------------------------------------

PRELOAD_SRCS := $(sort $(wildcard tirpc/preload/*.c))
RUN_SRCS := tirpc/run/run_main.c

# For tests: all that does not replace functions of the program that it is linked with.
$(O)/libpreload.a: $(patsubst %.c,$(O)/%.o,$(filter-out tirpc/preload/preload_%.c,$(PRELOAD_SRCS)))
	$(archive)

# It has no symbol versions of its own: references of programs name the versions of libtirpc, and would not match.
$(B)/librpcrdma-preload.so: $(PRELOAD_SRCS:%.c=$(O)/%.o) $(O)/rpcrdma/base/opt.o $(B)/librpcrdma_tirpc.so $(B)/librpcrdma.so
	$(call say,LD,$@)$(LINK) -shared -Wl,-z,defs,-z,nodelete -Wl,-soname,$(@F) $^ -Wl,-rpath,'$$ORIGIN' $(TIRPC_LIBS) -o $@

$(OUT)/rpcrdma-run: $(RUN_SRCS:%.c=$(O)/%.o) $(addprefix $(O)/tirpc/preload/,map.o map_text.o map_table.o) $(O)/librpcrdma.a
	$(call say,LD,$@)$(LINK) -pie $^ $(RPCRDMA_LIBS) -o $@

ifeq ($(VARIANT),default)
LIBS += $(B)/librpcrdma-preload.so $(B)/rpcrdma-run
endif

# ---- rpcrdma-info: of librpcrdma alone ----------------------------------------------------------------------------

$(OUT)/rpcrdma-info: $(O)/tirpc/info/rpcrdma_info.o $(O)/librpcrdma.a
	$(call say,LD,$@)$(LINK) -pie $^ $(RPCRDMA_LIBS) -o $@

LIBS += $(OUT)/rpcrdma-info
