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
#include <stdio.h>

int main(void)
{
	struct leat *m;

	if (leat_mount("tcp://127.0.0.1:1/x", NULL, &m) == 0)
		return 1;
	printf("%s\n", leat_version());
	return *leat_mount_error() == '\0';
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
	$CC -Wall -Werror "$work/rpc.c" -I"$root/include" $(flags --cflags rpcrdma) -L"$root/lib" \
		-lrpcrdma -o "$work/rpc" || fail 'link with librpcrdma.so'
}
[ "$(LD_LIBRARY_PATH=$root/lib "$work/shared")" = "$("$work/static")" ] || fail 'versions differ'
LD_LIBRARY_PATH=$root/lib "$work/rpc" || fail 'librpcrdma.so'
[ "$("$root/bin/leat" --version)" = "leat $("$work/static")" ] || fail 'leat --version'

for lib in leat:leat_ rpcrdma:rpcrdma_; do
	out=$(nm -D --defined-only "$root/lib/lib${lib%%:*}.so" | awk '$2 != "A" { print $3 }' | grep -v "^${lib#*:}") &&
		fail "lib${lib%%:*}.so exports $out"
	out=$(nm -g --defined-only "$root/lib/lib${lib%%:*}.a" | awk 'NF == 3 { print $3 }' | grep -v "^${lib#*:}") &&
		fail "lib${lib%%:*}.a exports $out"
done

quiet_make uninstall
left=$(find "$work/root" ! -type d)
[ -z "$left" ] || fail "left behind: $left"
echo 'installed, linked, run, uninstalled'
