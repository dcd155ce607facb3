# xdr/: protocol definitions and codecs; part of libleat and of leatd

GEN_NAMES := $(basename $(notdir $(wildcard xdr/*.x)))
GEN_HDRS := $(GEN_NAMES:%=$(GEN)/%.h)
XDR_SRCS := $(wildcard xdr/*.c)
XDR_OBJS := $(XDR_SRCS:%.c=$(O)/%.o) $(GEN_NAMES:%=$(O)/gen/%_xdr.o)

# rpcgen names the header after its argument, and does not overwrite: hence cd and rm. -N: arguments
# with prototypes. -i 0: no inline code, because compilers warn about its conversions. No stubs: call.c
# and req.c replace them.
$(GEN)/%.h: xdr/%.x
	@mkdir -p $(@D)
	$(call say,RPCGEN,$@)rm -f $@ && cd xdr && $(RPCGEN) -N -h -o ../$@ $*.x
$(GEN)/%_xdr.c: xdr/%.x
	@mkdir -p $(@D)
	$(call say,RPCGEN,$@)rm -f $@ && cd xdr && $(RPCGEN) -N -i 0 -c -o ../$@ $*.x

$(O)/libxdr.a: $(XDR_OBJS)
	$(archive)
