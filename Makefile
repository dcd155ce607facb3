# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# One Makefile for the whole tree, not recursive; each folder lists itself in its build.mk.
# `make help` names the targets. Variables worth knowing:
#
#   DEV=1        warnings are errors          V=1      show the commands
#   CC, CXX      gcc or clang                 PREFIX, DESTDIR, LIBDIR, MANDIR, DOCDIR
#   VARIANT      default, asan, ubsan, tsan, cov, fuzz or path; each has its own build/obj/VARIANT/
#
# What is built for the default variant lies in build/: leatd, leat, leat-dump,
# libleat.{so,a}, librpcrdma.{so,a}, librpcrdma_tirpc.{so,a}, nbdkit-leat-plugin.so. Generated code lies in build/gen. Nothing outside build/ is ever written.

VERSION := 0.1.0
SOVERSION := 0

MAKEFLAGS += --no-builtin-rules
.SUFFIXES:
.DELETE_ON_ERROR:
.SECONDARY:
.DEFAULT_GOAL := all

VARIANT ?= default
ifeq ($(origin CC),default)
CC := $(if $(filter cov fuzz,$(VARIANT)),clang,gcc)
endif
ifeq ($(origin CXX),default)
CXX := g++
endif
AR ?= ar
OBJCOPY ?= objcopy
RPCGEN ?= rpcgen
PKG_CONFIG ?= pkg-config
JOBS ?= $(shell nproc 2>/dev/null || echo 2)

B := build
GEN := $(B)/gen
O := $(B)/obj/$(VARIANT)
OUT := $(if $(filter default,$(VARIANT)),$(B),$(O))

Q := $(if $(V),,@)
say = $(if $(V),,@printf '  %-7s %s\n' $1 $2;)
SUB = $(MAKE) --no-print-directory $(if $(findstring -j,$(MAKEFLAGS)),,-j$(JOBS))

# Goals that see to their own dependencies, or need none: nothing is looked up for them here.
FRONT := check demo bench bench-vm asan ubsan tsan interop interop-long cov fuzz fuzz-cov path mutants deps clean distclean help layers map words dist
GOALS := $(or $(MAKECMDGOALS),all)

ifneq ($(filter-out $(FRONT),$(GOALS)),)
MISSING := $(shell scripts/deps.sh --missing build)
ifneq ($(MISSING),)
$(error missing: $(MISSING) - run `make deps`)
endif
endif

# ---- flags ---------------------------------------------------------------------------------------

WARN := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes \
	-Wold-style-definition -Wvla -Wundef -Wwrite-strings -Wpointer-arith -Wcast-align \
	-Wformat=2 -Wimplicit-fallthrough $(if $(DEV),-Werror)

OPT_default := -O2 -g -D_FORTIFY_SOURCE=3 -fstack-protector-strong -fstack-clash-protection
OPT_asan := -O1 -g -fsanitize=address -fno-omit-frame-pointer
OPT_ubsan := -O1 -g -fsanitize=undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
OPT_tsan := -O1 -g -fsanitize=thread -fno-omit-frame-pointer
OPT_path := $(OPT_default) -finstrument-functions
OPT_cov := -O0 -g -fprofile-instr-generate -fcoverage-mapping
OPT_fuzz := -O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
CFLAGS ?= $(OPT_$(VARIANT))
ifneq ($(CFLAGS),$(OPT_$(VARIANT)))
override CFLAGS += $(filter -fsanitize% -fno-sanitize% -fprofile% -fcoverage%,$(OPT_$(VARIANT)))
endif

# Only sub-makes and plain builds need to know what is installed.
ifneq ($(filter-out $(FRONT),$(GOALS)),)
pkg = $(shell $(PKG_CONFIG) --exists $1 2>/dev/null && echo 1)
HAVE_VERBS := $(if $(wildcard rpcrdma/verbs/*.c),$(call pkg,libibverbs librdmacm))
HAVE_NBDKIT := $(call pkg,nbdkit)
HAVE_LIBNBD := $(call pkg,libnbd)
HAVE_AIO := $(if $(wildcard server/store/store_aio.c),$(wildcard /usr/include/libaio.h))
TIRPC_CFLAGS := $(patsubst -I%,-isystem %,$(shell $(PKG_CONFIG) --cflags libtirpc))
TIRPC_LIBS := $(shell $(PKG_CONFIG) --libs libtirpc)
INIH_LIBS := $(shell $(PKG_CONFIG) --libs inih)
VERBS_LIBS := $(if $(HAVE_VERBS),$(shell $(PKG_CONFIG) --libs libibverbs librdmacm))
AIO_LIBS := $(if $(HAVE_AIO),-laio)
endif

DEFS := -D_GNU_SOURCE -DLEAT_VERSION='"$(VERSION)"' \
	$(if $(HAVE_VERBS),-DHAVE_VERBS) $(if $(HAVE_AIO),-DHAVE_AIO)
BASE := -std=gnu17 $(DEFS) $(WARN) -fPIC -fvisibility=hidden -pthread
INC := -Iinclude -I$(GEN) $(TIRPC_CFLAGS)
LINK = $(CC) $(CFLAGS) -pthread -Wl,-z,relro,-z,now $(LDFLAGS)

# ---- what there is -------------------------------------------------------------------------------

# The walls: a folder sees include/, the generated headers and itself; server/ and client/ see xdr/.
# Between the folders inside of these, scripts/check-layers.sh keeps the walls.
dirs = $(patsubst %/,-I%,$(sort $(dir $(wildcard $1/*.h $1/*/*.h $1/*/*/*.h))))
INC_xdr := -Ixdr
INC_rpcrdma := $(call dirs,rpcrdma)
INC_tirpc := $(call dirs,tirpc)
INC_server := $(call dirs,server) -Ixdr
INC_client := $(filter-out -Iclient/tools%,$(call dirs,client)) -Ixdr
INC_tests := $(INC_rpcrdma) $(INC_tirpc) $(INC_server) $(INC_client) -Itests/lib -I.

include xdr/build.mk rpcrdma/build.mk tirpc/build.mk server/build.mk client/build.mk examples/build.mk tests/build.mk doc/build.mk

.PHONY: all
all: $(OUT)/leatd $(OUT)/leat $(OUT)/leat-dump $(LIBS)

# ---- compiling -----------------------------------------------------------------------------------

# Objects are rebuilt when the flags change.
ifneq ($(filter-out $(FRONT),$(GOALS)),)
FLAGS_NOW := $(CC) $(BASE) $(INC) $(CPPFLAGS) $(CFLAGS)
$(shell mkdir -p $(O) $(GEN); \
	printf '%s\n' '$(subst ','\'',$(FLAGS_NOW))' | cmp -s - $(O)/flags || \
	printf '%s\n' '$(subst ','\'',$(FLAGS_NOW))' >$(O)/flags)
endif

folder = $(firstword $(subst /, ,$1))

$(O)/gen/%.o: $(GEN)/%.c $(O)/flags | $(GEN_HDRS)
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(BASE) -Wno-unused-variable $(INC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@

$(O)/%.o: %.c $(O)/flags | $(GEN_HDRS)
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(BASE) $(INC) $(INC_$(call folder,$<)) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@

define archive
@mkdir -p $(@D)
@rm -f $@
$(call say,AR,$@)$(AR) rcs $@ $(filter %.o,$^)
endef

# A library for others: one object, in which only what the public headers name is still global.
one_object = $(O)/$(basename $(@F))-all.o
define public_archive
$(call say,AR,$@)rm -f $@ && $(CC) -nostdlib -r $^ -o $(one_object) && \
	$(OBJCOPY) --localize-hidden $(one_object) && $(AR) rcs $@ $(one_object)
endef

# ---- goals ---------------------------------------------------------------------------------------

.PHONY: help deps clean distclean
help:
	@sed -n 's/^#: //p' Makefile */build.mk

#: all          build/leatd, build/leat, build/leat-dump, build/libleat.{so,a}, build/librpcrdma.{so,a}, build/librpcrdma_tirpc.{so,a},
#:              build/rpcrdma-run, build/librpcrdma-preload.so, build/rpcrdma-info; build/nbdkit-leat-plugin.so where
#:              nbdkit's headers are
#: examples     build/examples/: programs on public headers
#: demo         a file travels: private server, copies in and out, checksums, speeds
#: check        build, then unit, flow and fault tests, corpus replay, layers, headers, documents
#: bench        the measurements of doc/testing.md
#: bench-vm     leat and leatd beside Linux's NFS/RDMA, in the virtual machine of `make interop`
#: interop      tests against other implementations
#: interop-long random operations by the hundred thousand, a build on a mount, power cuts, attacks: an hour
#: asan ubsan   the tests of `check` under a sanitizer
#: tsan         the flow tests under the thread sanitizer
#: fuzz         each harness for SECONDS (60)
#: fuzz-cov     what the corpora reach of the decoders, in build/cov/fuzz.txt
#: path         the files, functions and indirect calls of one READ and one WRITE; VM=1: over verbs, in the virtual machine
#: mutants      breaks the code on purpose and sees the named test fail
#: cov          coverage of `check`, in build/cov
#: map          the folders and their includes, as text and in build/map.dot
#: words        lists lines that break the language rules, in code, strings and documents
#: tidy cppcheck format layers hdr-check check-doc   one check each
#: abi          compares symbols, structures and constants of the libraries with tests/abi; the rule: include/leat.map
#: abi-accept   writes these lists; refuses incompatible changes of a released interface
#: deps         installs what is missing, by apt-get
#: install uninstall dist compdb clean help
deps:
	@scripts/deps.sh install build rdma nbd check

clean:
	rm -rf $(B)
distclean: clean

.PHONY: demo bench bench-vm mutants interop interop-long
demo:
	@scripts/deps.sh install build rdma nbd
	@$(SUB) all
	@LEAT=$(B)/leat LEATD=$(B)/leatd scripts/demo.sh

bench:
	@scripts/deps.sh install build rdma nbd
	@$(SUB) all bench-tools
	@scripts/bench.sh
	@scripts/bench-names.sh
	@scripts/bench-data.sh
	@scripts/bench-beside.sh
	@scripts/bench-registration.sh

bench-vm:
	@scripts/deps.sh install build rdma nbd interop || echo 'bench-vm: something is missing; what cannot run says so'
	@$(SUB) all bench-tools
	@scripts/bench-vm.sh || [ $$? -eq 77 ]
	@scripts/bench-registration.sh --vm || [ $$? -eq 77 ]

mutants:
	@scripts/deps.sh install build rdma nbd check
	@scripts/mutants.sh -j $(JOBS)

# Exit status 77: nothing could run here, and every script has said why.
interop:
	@scripts/deps.sh install build rdma nbd check interop || echo 'interop: something is missing; what cannot run says so'
	@$(SUB) all interop-tools
	@LEAT=$(B)/leat LEATD=$(B)/leatd O=$(O) scripts/interop.sh || [ $$? -eq 77 ]

interop-long:
	@scripts/deps.sh install build rdma nbd check interop || echo 'interop: something is missing; what cannot run says so'
	@$(SUB) all interop-tools
	@LEAT=$(B)/leat LEATD=$(B)/leatd O=$(O) scripts/interop.sh --long || [ $$? -eq 77 ]

.PHONY: layers map words hdr-check abi abi-accept tidy cppcheck format compdb dist
layers:
	@scripts/check-layers.sh

map:
	@mkdir -p $(B)
	@scripts/map.sh
	@scripts/map.sh --dot >$(B)/map.dot

words:
	@scripts/words.sh

hdr-check: $(GEN_HDRS)
	@CC="$(CC)" CXX="$(CXX)" INC="$(INC)" scripts/check-headers.sh

# UNRELEASED=1: what became incompatible is in no release.
abi: all
	@CC="$(CC)" INC="$(INC)" scripts/abi.sh || [ $$? -eq 77 ]
abi-accept: all
	@CC="$(CC)" INC="$(INC)" scripts/abi.sh accept $(if $(UNRELEASED),--unreleased)

tidy: $(GEN_HDRS)
	@command -v clang-tidy >/dev/null || { echo 'tidy: no clang-tidy here (apt-get install clang-tidy)'; exit 1; }
	$(Q)$(foreach s,$(ALL_SRCS),clang-tidy --quiet $(s) -- -std=gnu17 $(DEFS) $(INC) $(INC_$(call folder,$(s))) &&) :

cppcheck: $(GEN_HDRS)
	@command -v cppcheck >/dev/null || { echo 'cppcheck: not here (apt-get install cppcheck)'; exit 1; }
	$(Q)cppcheck --quiet --std=c11 --enable=warning,portability,performance --inline-suppr \
		--suppress=missingIncludeSystem --error-exitcode=1 -j$(JOBS) $(DEFS) \
		-Iinclude -I$(GEN) $(INC_rpcrdma) $(INC_tirpc) $(INC_server) $(INC_client) $(LIB_SRCS)

# Only what differs from the last commit: a reviewed line is not moved for its looks.
format:
	@command -v git-clang-format >/dev/null || { echo 'format: no git-clang-format here (apt-get install clang-format)'; exit 1; }
	$(Q)git clang-format --extensions c,h HEAD || :

define newline


endef
compdb: $(GEN_HDRS)
	$(file >$(B)/compile_commands.json,[$(foreach s,$(ALL_SRCS),$(newline){"directory":"$(CURDIR)","file":"$(s)","command":"$(CC) $(subst ",\",$(BASE)) $(INC) $(INC_$(call folder,$(s))) -c $(s)"}$(if $(filter $(s),$(lastword $(ALL_SRCS))),,$(comma)))])
	@echo "$(B)/compile_commands.json"
comma := ,

dist:
	@mkdir -p $(B)
	git archive --format=tar.gz --prefix=leat-$(VERSION)/ -o $(B)/leat-$(VERSION).tar.gz HEAD

# ---- installing ----------------------------------------------------------------------------------

PREFIX ?= /usr/local
BINDIR ?= $(PREFIX)/bin
SBINDIR ?= $(PREFIX)/sbin
LIBDIR ?= $(PREFIX)/lib
LIBEXECDIR ?= $(PREFIX)/libexec
INCLUDEDIR ?= $(PREFIX)/include
MANDIR ?= $(PREFIX)/share/man
DOCDIR ?= $(PREFIX)/share/doc/leat
# `nbdkit leat` finds the plugin where nbdkit itself looks: `pkg-config --variable=plugindir nbdkit`.
NBDKIT_PLUGINDIR ?= $(LIBDIR)/nbdkit/plugins

# The leat command finds leat-dump from its own folder. Another setting compiles and links it again.
ifneq ($(filter-out $(FRONT),$(GOALS)),)
DUMP_DIR := $(shell realpath -ms --relative-to='$(BINDIR)' '$(LIBEXECDIR)/leat')
$(if $(DUMP_DIR),,$(error realpath finds no path from BINDIR ($(BINDIR)) to LIBEXECDIR ($(LIBEXECDIR))))
$(shell echo '$(DUMP_DIR)' | cmp -s - $(O)/dump_dir || echo '$(DUMP_DIR)' >$(O)/dump_dir)
$(O)/client/tools/dump.o: override CPPFLAGS += -DDUMP_DIR='"$(DUMP_DIR)"'
$(O)/client/tools/dump.o: $(O)/dump_dir
# So does rpcrdma-run find the library that it preloads.
PRELOAD_DIR := $(shell realpath -ms --relative-to='$(BINDIR)' '$(LIBDIR)')
$(if $(PRELOAD_DIR),,$(error realpath finds no path from BINDIR ($(BINDIR)) to LIBDIR ($(LIBDIR))))
$(shell echo '$(PRELOAD_DIR)' | cmp -s - $(O)/preload_dir || echo '$(PRELOAD_DIR)' >$(O)/preload_dir)
$(O)/tirpc/run/run_main.o: override CPPFLAGS += -DPRELOAD_DIR='"$(PRELOAD_DIR)"'
$(O)/tirpc/run/run_main.o: $(O)/preload_dir
PC_DIRS := $(PREFIX) $(LIBDIR) $(INCLUDEDIR) $(VERBS_LIBS)
$(shell echo '$(PC_DIRS)' | cmp -s - $(O)/pc_dirs || echo '$(PC_DIRS)' >$(O)/pc_dirs)
endif

# mode : what : where
INSTALLS := \
	755:$(B)/leat:$(BINDIR)/leat \
	755:$(B)/leatd:$(SBINDIR)/leatd \
	755:$(B)/leat-dump:$(LIBEXECDIR)/leat/leat-dump \
	755:$(B)/libleat.so:$(LIBDIR)/libleat.so.$(VERSION) \
	755:$(B)/librpcrdma.so:$(LIBDIR)/librpcrdma.so.$(VERSION) \
	644:$(B)/libleat.a:$(LIBDIR)/libleat.a \
	644:$(B)/librpcrdma.a:$(LIBDIR)/librpcrdma.a \
	755:$(B)/librpcrdma_tirpc.so:$(LIBDIR)/librpcrdma_tirpc.so.$(VERSION) \
	644:$(B)/librpcrdma_tirpc.a:$(LIBDIR)/librpcrdma_tirpc.a \
	755:$(B)/librpcrdma-preload.so:$(LIBDIR)/librpcrdma-preload.so \
	755:$(B)/rpcrdma-run:$(BINDIR)/rpcrdma-run \
	755:$(B)/rpcrdma-info:$(BINDIR)/rpcrdma-info \
	$(if $(HAVE_NBDKIT),755:$(NBDKIT_PLUGIN):$(NBDKIT_PLUGINDIR)/$(notdir $(NBDKIT_PLUGIN))) \
	644:$(B)/leat.pc:$(LIBDIR)/pkgconfig/leat.pc \
	644:$(B)/rpcrdma.pc:$(LIBDIR)/pkgconfig/rpcrdma.pc \
	644:$(B)/rpcrdma-tirpc.pc:$(LIBDIR)/pkgconfig/rpcrdma-tirpc.pc \
	$(foreach h,$(notdir $(wildcard include/*.h)),644:include/$h:$(INCLUDEDIR)/$h) \
	$(foreach e,$(wildcard examples/*.c examples/*/*.[chx]),644:$e:$(DOCDIR)/$e) \
	$(foreach m,$(MAN_PAGES),644:$m:$(MANDIR)/man$(subst .,,$(suffix $m))/$(notdir $m))
LINKS := $(foreach l,libleat librpcrdma librpcrdma_tirpc, \
	$l.so.$(VERSION):$(LIBDIR)/$l.so.$(SOVERSION) $l.so.$(SOVERSION):$(LIBDIR)/$l.so)
# other names of a page, of its section NAME: ".Nm name ,"
MAN_LINKS = $(shell awk 'FNR == 1 { n = FILENAME; sub(".*/", "", n); s = n; sub(".*[.]", "", s); on = 1 } \
	/^[.]Nd/ { on = 0 } on && /^[.]Nm/ && $$2 "." s != n { print n ":$(MANDIR)/man" s "/" $$2 "." s }' $(MAN_PAGES))
word_of = $(word $1,$(subst :, ,$2))

# relative to ${prefix} where possible, so that pkg-config --define-prefix finds a tree that was moved
pc_dir = $(patsubst $(PREFIX)/%,$${prefix}/%,$1)
PC_HEAD = 'prefix=$(PREFIX)' 'libdir=$(call pc_dir,$(LIBDIR))' 'includedir=$(call pc_dir,$(INCLUDEDIR))' ''
PC_CFLAGS = 'Cflags: -I$${includedir}'
$(B)/leat.pc: Makefile $(O)/pc_dirs
	$(Q)printf '%s\n' $(PC_HEAD) 'Name: leat' 'Description: files on a leat or NFSv3 server, without a mount' \
		'Version: $(VERSION)' 'Requires.private: rpcrdma libtirpc' \
		'Libs: -L$${libdir} -lleat' 'Libs.private: -lrpcrdma -pthread' $(PC_CFLAGS) >$@
$(B)/rpcrdma.pc: Makefile $(O)/pc_dirs
	$(Q)printf '%s\n' $(PC_HEAD) 'Name: rpcrdma' 'Description: ONC RPC over RDMA, the local fabric and TCP' \
		'Version: $(VERSION)' 'Requires: libtirpc' \
		'Libs: -L$${libdir} -lrpcrdma' 'Libs.private: -pthread $(VERBS_LIBS)' $(PC_CFLAGS) >$@

$(B)/rpcrdma-tirpc.pc: Makefile $(O)/pc_dirs
	$(Q)printf '%s\n' $(PC_HEAD) 'Name: rpcrdma-tirpc' 'Description: handles of libtirpc over RDMA and the local fabric' \
		'Version: $(VERSION)' 'Requires: libtirpc' 'Requires.private: rpcrdma' \
		'Libs: -L$${libdir} -lrpcrdma_tirpc' 'Libs.private: -lrpcrdma -pthread' $(PC_CFLAGS) >$@

.PHONY: install uninstall
install: all $(B)/leat.pc $(B)/rpcrdma.pc $(B)/rpcrdma-tirpc.pc
	$(Q)$(foreach i,$(INSTALLS),install -D -m $(call word_of,1,$i) $(call word_of,2,$i) $(DESTDIR)$(call word_of,3,$i) &&) :
	$(Q)$(foreach l,$(LINKS) $(MAN_LINKS),ln -sf $(call word_of,1,$l) $(DESTDIR)$(call word_of,2,$l) &&) :
	$(Q)case "$(DESTDIR)$(LIBDIR)" in /usr/lib*|/usr/local/lib*|/lib*) ldconfig || : ;; esac

uninstall:
	$(Q)rm -f $(foreach i,$(INSTALLS),$(DESTDIR)$(call word_of,3,$i)) $(foreach l,$(LINKS) $(MAN_LINKS),$(DESTDIR)$(call word_of,2,$l))

ifneq ($(filter-out $(FRONT),$(GOALS)),)
-include $(shell find $(O) -name '*.d' 2>/dev/null)
endif
