#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# test_install.sh - what `make install` puts down can be compiled, linked and run against, and
# `make uninstall` takes all of it away

set -eu
if [ "${O:-build/obj/default}" != build/obj/default ]; then
	echo 'only the default variant is installed'
	exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
	echo "FAILED: $*"
	exit 1
}

# not the outer make's child: its flags and job server are not ours
quiet_make() { env -u MAKEFLAGS -u MAKELEVEL make --no-print-directory PREFIX=/usr DESTDIR="$work/root" "$@"; }
quiet_make install
root=$work/root/usr

cat >"$work/prog.c" <<'END'
#include <leat.h>
#include <leat_admin.h>
#include <stdio.h>

int main(void)
{
	struct leat *m;

	if (leat_mount("tcp://127.0.0.1:1/x", NULL, &m) == 0)
		return 1;
	printf("%s\n", leat_version());
	return *leat_error(NULL) == '\0';
}
END
cat >"$work/rpc.c" <<'END'
#include <rpcrdma.h>

int main(void)
{
	struct rpcrdma_domain *d;

	if (rpcrdma_domain_create(NULL, &d))
		return 1;
	rpcrdma_domain_destroy(d);
	return 0;
}
END
cat >"$work/handle.c" <<'END'
#include <rpcrdma_tirpc.h>

int main(void)
{
	return !rpcrdma_tirpc_domain();
}
END
PKG_CONFIG_PATH=$root/lib/pkgconfig
export PKG_CONFIG_PATH
: "${CC:=gcc}"
flags() { pkg-config "$@" | sed -E "s,-I/usr/include( |$),-I$root/include\1,; s,-L/usr/lib( |$),-L$root/lib\1,"; }

# shellcheck disable=SC2046
{
	$CC -Wall -Werror "$work/prog.c" -I"$root/include" -L"$root/lib" -lleat \
		-Wl,-rpath-link,"$root/lib" -o "$work/shared" || fail 'link with libleat.so'
	$CC -Wall -Werror "$work/prog.c" -I"$root/include" "$root/lib/libleat.a" "$root/lib/librpcrdma.a" \
		$(flags --libs libtirpc) $(sed -n 's/^Libs.private: //p' "$root/lib/pkgconfig/rpcrdma.pc") \
		-o "$work/static" || fail 'link with libleat.a'
	$CC -Wall -Werror "$root/share/doc/leat/examples/copy.c" -I"$root/include" -L"$root/lib" -lleat \
		-Wl,-rpath-link,"$root/lib" -o "$work/copy" || fail 'an installed example'
	$CC -Wall -Werror "$work/rpc.c" -I"$root/include" $(flags --cflags rpcrdma) -L"$root/lib" \
		-lrpcrdma -o "$work/rpc" || fail 'link with librpcrdma.so'
	$CC -Wall -Werror "$work/handle.c" -I"$root/include" $(flags --cflags --libs rpcrdma-tirpc) \
		-L"$root/lib" -Wl,-rpath-link,"$root/lib" -o "$work/handle" || fail 'link with librpcrdma_tirpc.so'
	for name in kv kvd; do
		$CC -Wall -Werror "$root/share/doc/leat/examples/kv/$name.c" -I"$root/include" -L"$root/lib" \
			$(flags --cflags --libs rpcrdma) -Wl,-rpath-link,"$root/lib" \
			-o "$work/$name" || fail "the installed example $name.c"
	done
}
[ "$(LD_LIBRARY_PATH=$root/lib "$work/shared")" = "$("$work/static")" ] || fail 'versions differ'
LD_LIBRARY_PATH=$root/lib "$work/rpc" || fail 'librpcrdma.so'
LD_LIBRARY_PATH=$root/lib "$work/handle" || fail 'librpcrdma_tirpc.so'
"$root/bin/rpcrdma-run" -- cat /proc/self/maps >"$work/out" || fail 'rpcrdma-run'
# a page has other names, too
grep -q 'RPCRDMA_SVC_CREATE' "$root/share/man/man3/rpcrdma_svc_detach.3" || fail 'no manual page rpcrdma_svc_detach(3)'
grep -q " $root/lib/librpcrdma-preload.so\$" "$work/out" || fail 'rpcrdma-run does not preload the installed library'
readelf -d "$root/lib/librpcrdma.so" | grep -q NODELETE || fail 'librpcrdma.so can be unloaded below its threads'
[ "$("$root/bin/leat" --version)" = "leat $("$work/static")" ] || fail 'leat --version'
"$root/bin/leat" dump tests/vectors/kernel-session.pcap | grep -q ' REPLY ' || fail 'leat dump'
mv "$root/libexec/leat/leat-dump" "$work/dump"
"$root/bin/leat" dump tests/vectors/kernel-session.pcap 2>"$work/out" && fail 'leat dump, without its program'
grep -q 'cannot run leat-dump: neither .*/libexec/leat/leat-dump nor ' "$work/out" || fail "leat dump: $(cat "$work/out")"
mv "$work/dump" "$root/libexec/leat/leat-dump"

mv "$root/libexec/leat/leat-dump" "$root/libexec/leat/real-dump"
printf '#!/bin/sh\nexec "%s" "$@"\n' "$root/libexec/leat/real-dump" >"$root/libexec/leat/leat-dump"
chmod 755 "$root/libexec/leat/leat-dump"
"$root/bin/leat" dump tests/vectors/kernel-session.pcap | grep -q ' REPLY ' || fail 'leat dump, as a script'
mv "$root/libexec/leat/real-dump" "$root/libexec/leat/leat-dump"

# Only root and the owner of leat may be able to write to it.
refused() {
	"$root/bin/leat" dump tests/vectors/kernel-session.pcap >"$work/out" 2>&1 && fail "leat dump runs $1"
	grep -q 'refusing to run .*/libexec/leat/leat-dump: ' "$work/out" || fail "leat dump, $1: $(cat "$work/out")"
}
for mode in g+w o+w; do
	chmod $mode "$root/libexec/leat/leat-dump"
	refused "a program with $mode"
	chmod go-w "$root/libexec/leat/leat-dump"
done
if [ "$(id -u)" -eq 0 ]; then
	chown 65534 "$root/libexec/leat/leat-dump"
	refused 'a program of another user'
	chown 65534 "$root/bin/leat"
	"$root/bin/leat" dump tests/vectors/kernel-session.pcap >"$work/out" || fail 'leat dump of the same user'
	chown 0 "$root/libexec/leat/leat-dump"
	"$root/bin/leat" dump tests/vectors/kernel-session.pcap >"$work/out" || fail "leat dump of root's"
	chown 0 "$root/bin/leat"
else
	echo 'skipped: a leat-dump of another user: not root'
fi

# LIBEXECDIR, in a tree of its own: leat is compiled with it. The installation may move.
mkdir -p "$work/tree/build/obj/default/tests"
for f in *; do
	[ "$f" = build ] || ln -s "$PWD/$f" "$work/tree/$f"
done
cp -a build/gen build/leat* build/lib* "$work/tree/build"
for f in client rpcrdma server xdr gen; do
	cp -a "build/obj/default/$f" "$work/tree/build/obj/default"
done
cp -a build/obj/default/tests/tools "$work/tree/build/obj/default/tests"
cp -a build/obj/default/*.a build/obj/default/flags "$work/tree/build/obj/default"
quiet_make -C "$work/tree" install DESTDIR="$work/other" LIBEXECDIR=/usr/lib/our-helpers
mv "$work/other" "$work/moved"
[ -x "$work/moved/usr/lib/our-helpers/leat/leat-dump" ] || fail 'leat-dump is not in LIBEXECDIR'
"$work/moved/usr/bin/leat" dump tests/vectors/kernel-session.pcap | grep -q ' REPLY ' || fail 'leat dump, from LIBEXECDIR'
make -C "$work/tree" -n V=1 -W client/tools/dump.c CPPFLAGS=-DX LIBEXECDIR=/usr/lib/our-helpers \
	build/obj/default/client/tools/dump.o 2>&1 | grep -q 'DUMP_DIR=.*our-helpers/leat' || fail 'LIBEXECDIR, beside CPPFLAGS'

# Another PREFIX, after the first: the files of pkg-config name it, and may move with it.
quiet_make -C "$work/tree" install DESTDIR="$work/second" PREFIX=/opt/leat BINDIR=/usr/bin LIBEXECDIR=/usr/lib/our-helpers
pc() { PKG_CONFIG_PATH=$work/$1/opt/leat/lib/pkgconfig pkg-config "$2" --cflags --libs "$3" | sed 's/ *$//'; }
for lib in leat rpcrdma; do
	out=$(pc second --dont-define-prefix "$lib")
	case $out in -I/opt/leat/include\ *"-L/opt/leat/lib -l$lib"*) ;; *) fail "$lib.pc of another PREFIX: $out" ;; esac
	mv "$work/second" "$work/third"
	out=$(pc third --define-prefix "$lib")
	case $out in "-I$work/third/opt/leat/include "*"-L$work/third/opt/leat/lib -l$lib"*) ;; *) fail "$lib.pc that moved: $out" ;; esac
	# as README.md says
	src=rpc
	[ $lib = rpcrdma ] || src=prog
	# shellcheck disable=SC2046,SC2086 # flags
	$CC -Wall -Werror "$work/$src.c" $out $(pkg-config --cflags --libs libtirpc) \
		-Wl,-rpath-link,"$work/third/opt/leat/lib" -o "$work/$lib-moved" || fail "$lib of a tree that moved"
	mv "$work/third" "$work/second"
done
quiet_make -C "$work/tree" install DESTDIR="$work/second" PREFIX=/opt/leat BINDIR=/usr/bin LIBEXECDIR=/usr/lib/our-helpers \
	LIBDIR=/opt/other/lib64
grep -qx 'libdir=/opt/other/lib64' "$work/second/opt/other/lib64/pkgconfig/leat.pc" || fail 'leat.pc with another LIBDIR'

for lib in leat:leat_ rpcrdma:rpcrdma_ rpcrdma_tirpc:rpcrdma_; do
	out=$(nm -D --defined-only "$root/lib/lib${lib%%:*}.so" | awk '$2 != "A" { print $3 }' | grep -v "^${lib#*:}") &&
		fail "lib${lib%%:*}.so exports $out"
	out=$(nm -g --defined-only "$root/lib/lib${lib%%:*}.a" | awk 'NF == 3 { print $3 }' | grep -v "^${lib#*:}") &&
		fail "lib${lib%%:*}.a exports $out"
done

# README's lines for a program of one's own, typed as they are, below file systems of their own
awk '/^## / { on = /^## Linking/; n = 0; next } on && /^    / { print substr($0, 5) } on && !/^    / && ++n == 2 { exit }' \
	README.md >"$work/lines"
[ "$(wc -l <"$work/lines")" -eq 2 ] || fail "README.md: $(cat "$work/lines")"
if [ "$(id -u)" -eq 0 ] && unshare --mount true 2>/dev/null; then
	mkdir "$work/etc"
	cp -a /etc/. "$work/etc"
	env -u PKG_CONFIG_PATH unshare --mount sh -euc 'mount --bind "$1/etc" /etc; mount -t tmpfs none /usr/local
		sed "s,prog.c,$1/prog.c -o $1/mine," "$1/lines" >"$1/typed"
		unset MAKEFLAGS MAKELEVEL
		. "$1/typed"
		"$1/mine"' sh "$work" >"$work/out" 2>&1 || fail "README.md: $(cat "$work/out")"
else
	echo "skipped: README's lines: not root, or no namespaces of one's own here"
fi

quiet_make uninstall
left=$(find "$work/root" ! -type d)
[ -z "$left" ] || fail "left behind: $left"
echo 'installed, linked, run, uninstalled'
