# examples/: programs as others would write them: public headers, installed libraries. Tests run them.

EXAMPLE_SRCS := $(wildcard examples/*.c examples/*/*.c)
EXAMPLES := $(EXAMPLE_SRCS:%.c=$(OUT)/%)
EXAMPLE_LIBS := $(if $(filter default,$(VARIANT)),$(B)/libleat.so $(B)/librpcrdma.so,$(O)/libleat.a $(O)/libxdr.a $(O)/librpcrdma.a)

.PHONY: examples
examples: $(EXAMPLES)
$(EXAMPLES): $(OUT)/%: %.c $(wildcard include/*.h examples/*/*.h) $(EXAMPLE_LIBS)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) -std=c99 -pedantic -D_POSIX_C_SOURCE=200809L -Wall -Wextra -Wno-cast-function-type $(if $(DEV),-Werror) \
		-Iinclude $(TIRPC_CFLAGS) $(CPPFLAGS) $(CFLAGS) $< $(EXAMPLE_LIBS) $(RPCRDMA_LIBS) -pthread \
		-Wl,-rpath,$(abspath $(B)) -o $@
