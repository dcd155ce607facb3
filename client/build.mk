# client/: libleat; in tools/ the leat command, and in nbdkit/ a plugin of nbdkit, which use only include/

CLIENT_SRCS := $(filter-out client/tools/% client/nbdkit/%,$(wildcard client/*/*.c))
CLIENT_OBJS := $(CLIENT_SRCS:%.c=$(O)/%.o)
TOOLS_SRCS := $(wildcard client/tools/*.c client/tools/*/*.c)
TOOLS_OBJS := $(TOOLS_SRCS:%.c=$(O)/%.o)

# The command uses the library like any other program: it includes leat.h and its own folder.
$(TOOLS_OBJS): INC_client := $(filter -Iclient/tools%,$(call dirs,client))

$(O)/libleat.a: $(CLIENT_OBJS)
	$(archive)

ifeq ($(VARIANT),default)
LIBS += $(B)/libleat.so $(B)/libleat.a
endif

# The commands without main(), for a test
$(O)/libtools.a: $(filter-out %/leat_main.o,$(TOOLS_OBJS))
	$(archive)

# The option parser of librpcrdma, whose map hides it
OPT_OBJ := $(O)/rpcrdma/base/opt.o

$(B)/libleat.so: $(CLIENT_OBJS) $(OPT_OBJ) $(O)/libxdr.a $(B)/librpcrdma.so include/leat.map
	$(call say,LD,$@)$(LINK) -shared -Wl,-z,defs -Wl,-soname,$(@F).$(SOVERSION) \
		-Wl,--version-script=include/leat.map $(CLIENT_OBJS) $(OPT_OBJ) $(O)/libxdr.a \
		$(B)/librpcrdma.so -Wl,-rpath,'$$ORIGIN' $(TIRPC_LIBS) -o $@
	$(Q)ln -sf $(@F) $@.$(SOVERSION)

$(B)/libleat.a: $(CLIENT_OBJS) $(OPT_OBJ) $(XDR_OBJS)
	$(public_archive)

$(OUT)/leat: $(TOOLS_OBJS) $(O)/libleat.a $(O)/libxdr.a $(O)/librpcrdma.a
	$(call say,LD,$@)$(LINK) -pie $^ $(RPCRDMA_LIBS) -o $@

# ---- the plugin of nbdkit, where its headers are -----------------------------------------------------

NBDKIT_SRCS := $(wildcard client/nbdkit/*.c)
NBDKIT_OBJS := $(NBDKIT_SRCS:%.c=$(O)/%.o)
NBDKIT_PLUGIN := $(B)/nbdkit-leat-plugin.so

$(NBDKIT_OBJS): INC_client := -Iclient/nbdkit $(if $(HAVE_NBDKIT),$(patsubst -I%,-isystem %,$(shell $(PKG_CONFIG) --cflags nbdkit)))
# nodelete: nbdkit unloads plugins at its end, and the library has handlers for fork(). $ORIGIN/../..: where it is installed
$(NBDKIT_PLUGIN): $(NBDKIT_OBJS) $(B)/libleat.so
	$(call say,LD,$@)$(LINK) -shared -Wl,-z,nodelete $^ -Wl,-rpath,'$$ORIGIN:$$ORIGIN/../..' \
		-Wl,-rpath-link,$(B) -o $@

ifeq ($(VARIANT),default)
ifneq ($(HAVE_NBDKIT),)
LIBS += $(NBDKIT_PLUGIN)
else
LIBS += no-nbdkit
endif
endif

.PHONY: no-nbdkit
no-nbdkit:
	@echo "$(NBDKIT_PLUGIN) is not built: no headers of nbdkit (nbdkit-plugin-dev)"
