# server/: leatd. store_aio.c only where libaio is.

SERVER_SRCS := $(filter-out $(if $(HAVE_AIO),,server/store/store_aio.c),$(wildcard server/*/*.c server/*/*/*.c))
SERVER_OBJS := $(SERVER_SRCS:%.c=$(O)/%.o)
SERVER_LIBS := $(INIH_LIBS) $(AIO_LIBS)

# All but main(): tests run a server in their own process.
$(O)/libserver.a: $(filter-out $(O)/server/main/leatd_main.o,$(SERVER_OBJS))
	$(archive)

$(OUT)/leatd: $(O)/server/main/leatd_main.o $(O)/libserver.a $(O)/libleat.a $(O)/libxdr.a $(O)/librpcrdma.a
	$(call say,LD,$@)$(LINK) -pie $^ $(SERVER_LIBS) $(RPCRDMA_LIBS) -o $@
