# tirpc/: librpcrdma_tirpc, handles of libtirpc. It sees include/ and itself: to librpcrdma it is a program like any other.

HANDLE_SRCS := $(filter-out tirpc/preload/%,$(wildcard tirpc/*/*.c))
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
	$(call say,AR,$@)rm -f $@ && $(CC) -nostdlib -r $^ -o $(O)/tirpc-all.o && \
		$(OBJCOPY) --localize-hidden $(O)/tirpc-all.o && $(AR) rcs $@ $(O)/tirpc-all.o

# ---- rpcrdma-run and the library that it preloads ------------------------------------------------------------------

PRELOAD_SRCS := $(sort $(wildcard tirpc/preload/*.c))

$(O)/libpreload.a: $(PRELOAD_SRCS:%.c=$(O)/%.o)
	$(archive)
