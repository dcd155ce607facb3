# rpcrdma/: the transport. verbs/ only where libibverbs and librdmacm are.

RPCRDMA_SRCS := $(filter-out $(if $(HAVE_VERBS),,rpcrdma/verbs/%),$(wildcard rpcrdma/*/*.c))
RPCRDMA_OBJS := $(RPCRDMA_SRCS:%.c=$(O)/%.o)
RPCRDMA_LIBS := $(TIRPC_LIBS) $(VERBS_LIBS)

# Inside the tree everything links with this one: tests reach what the map would hide.
$(O)/librpcrdma.a: $(RPCRDMA_OBJS)
	$(archive)

ifeq ($(VARIANT),default)
LIBS += $(B)/librpcrdma.so $(B)/librpcrdma.a
endif

# Never unloaded: a thread that looks up a name may outlive the client that asked.
$(B)/librpcrdma.so: $(RPCRDMA_OBJS) rpcrdma/rpcrdma.map
	$(call say,LD,$@)$(LINK) -shared -Wl,-z,defs,-z,nodelete -Wl,-soname,$(@F).$(SOVERSION) \
		-Wl,--version-script=rpcrdma/rpcrdma.map $(RPCRDMA_OBJS) $(RPCRDMA_LIBS) -o $@
	$(Q)ln -sf $(@F) $@.$(SOVERSION)

$(B)/librpcrdma.a: $(RPCRDMA_OBJS)
	$(public_archive)
