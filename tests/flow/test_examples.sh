#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# test_examples.sh - examples/*.c: each is short, needs include/ only, and does what it says over the local fabric
#                    and TCP; the lines of README.md compile
#
# The disk of the export /slow needs minutes for the read that timeout.c cancels.

set -eu
: "${EXAMPLES:=build/examples}" "${LEATD:=build/leatd}" "${CC:=gcc}"
. scripts/private-leatd.sh
. tests/lib/checks.sh
work=$(mktemp -d)
finish() {
	[ -z "$leatd_pid" ] || kill -KILL "$leatd_pid" 2>/dev/null || : # it would finish the slow read first
	leatd_stop
	rm -rf "$work"
}
trap finish EXIT
export_dir=$work/export
mkdir "$export_dir" "$work/slow"
truncate -s 1M "$work/disk.img" "$work/tiny.img"
truncate -s 4096 "$work/tiny.img"
leatd_options="--export /slow=$work/slow,ro,no_root_squash,store=sim:rate=4K --block disk=$work/disk.img,insecure --block tiny=$work/tiny.img,insecure"
leatd_start "$export_dir" || exit 1

# ---- as a user compiles them -------------------------------------------------------------------------

for c in examples/*.c; do
	[ "$(wc -l <"$c")" -lt 80 ] || fail "$c has 80 lines or more"
	for std in '-std=c99 -pedantic -D_POSIX_C_SOURCE=200809L' ''; do
		# shellcheck disable=SC2086
		$CC $std -Wall -Wextra -Werror -Iinclude -fsyntax-only "$c" || fail "$c, $std"
		checks=$((checks + 1))
	done
done

# the lines of README.md
{
	printf '#include <err.h>\n#include <fcntl.h>\n#include <stddef.h>\n#include <leat.h>\nint main(void)\n{\n'
	awk '/^## / { on = /^## Using the library/ } on && /^    / { print substr($0, 5) }' README.md
	echo '}'
} >"$work/readme.c"
[ "$(wc -l <"$work/readme.c")" -gt 15 ] || fail 'README.md has no lines for programs'
$CC -Wall -Wextra -Werror -Iinclude -fsyntax-only "$work/readme.c" || fail 'README.md'
checks=$((checks + 1))

# ---- copy --------------------------------------------------------------------------------------------

for bytes in 0 1 65537 3145735; do
	head -c "$bytes" /dev/urandom >"$export_dir/file"
	for pair in "$local_url $tcp_url" "$tcp_url $local_url"; do
		from=${pair% *} to=${pair#* }
		head -c 4000000 /dev/zero >"$export_dir/copy" # a longer file is replaced
		ok "$EXAMPLES/copy" "$from/file" "$to/copy"
		cmp "$export_dir/file" "$export_dir/copy" || fail "copy, $bytes bytes"
	done
	rm "$export_dir/copy"
	ok "$EXAMPLES/copy" "$local_url/file" "$tcp_url/copy"
	cmp "$export_dir/file" "$export_dir/copy" || fail "copy, $bytes bytes, a new file"

	# ---- epoll, with the same files

	for url in "$local_url" "$tcp_url"; do
		"$EXAMPLES/epoll" "$url/file" >"$work/out" || fail "epoll, $bytes bytes"
		cmp "$export_dir/file" "$work/out" || fail "epoll, $bytes bytes: other data"
		checks=$((checks + 1))
	done
done
bad 1 'demo/none: .*No such file or directory' "$EXAMPLES/copy" "$local_url/none" "$tcp_url/copy"
bad 1 'slow/copy: .*Read-only file system' "$EXAMPLES/copy" "$local_url/file" "${tcp_url%/demo}/slow/copy"
bad 1 'demo/none: .*No such file or directory' "$EXAMPLES/epoll" "$tcp_url/none"
bad 1 'No such file or directory' "$EXAMPLES/epoll" "$local_url/../none/file"

# ---- two_mounts --------------------------------------------------------------------------------------

two() { # STATUS: of both orders
	for pair in "$local_url/file $tcp_url/copy" "$tcp_url/copy $local_url/file" "$tcp_url/file $tcp_url/copy"; do
		rc=0
		"$EXAMPLES/two_mounts" "${pair% *}" "${pair#* }" >"$work/out" 2>&1 || rc=$?
		[ "$rc" -eq "$1" ] || fail "two_mounts $pair: $rc instead of $1: $(cat "$work/out")"
		checks=$((checks + 1))
	done
}
two 0
echo longer >>"$export_dir/copy"
two 1
head -c 3145734 "$export_dir/file" >"$export_dir/copy"
two 1
tail -c 1 "$export_dir/file" | LC_ALL=C tr '\000-\377' '\001-\377\000' >>"$export_dir/copy" # the last byte differs
two 1
: >"$export_dir/file"
: >"$export_dir/copy"
two 0
bad 2 'demo/none: .*No such file or directory' "$EXAMPLES/two_mounts" "$local_url/file" "$tcp_url/none"

# ---- walk --------------------------------------------------------------------------------------------

mkdir -p "$export_dir/tree/a/b/c" "$export_dir/tree/many"
(cd "$export_dir/tree/many" && seq -f 'a name of some length, number %g' 2000 | xargs -d '\n' touch)
echo content >"$export_dir/tree/a/b/file"
ln -s ../a "$export_dir/tree/a/link" # not followed
(cd "$export_dir/tree" && find . -mindepth 1 -printf '%12s %P\n' | sort) >"$work/wanted"
for url in "$local_url" "$tcp_url"; do
	"$EXAMPLES/walk" "$url/tree" >"$work/out" || fail 'walk'
	sort "$work/out" | cmp - "$work/wanted" || fail 'walk: other output'
	checks=$((checks + 1))
done
bad 1 'demo/file: .*Not a directory' "$EXAMPLES/walk" "$local_url/file"

# ---- timeout -----------------------------------------------------------------------------------------

head -c 3000000 /dev/zero >"$work/slow/file"
echo 'twelve bytes' >"$export_dir/file"
for url in "$local_url" "$tcp_url"; do
	ok "$EXAMPLES/timeout" "$url/file" 600000
	[ "$(cat "$work/out")" = '13 bytes' ] || fail "timeout: $(cat "$work/out")"
	bad 1 '^timeout: the read took more than 100 ms$' timeout 120 "$EXAMPLES/timeout" "${url%/demo}/slow/file" 100
done
bad 1 'demo/none: .*No such file or directory' "$EXAMPLES/timeout" "$tcp_url/none" 1000

# ---- disk --------------------------------------------------------------------------------------------

for letter in a b c d e f g h; do
	head -c 65536 /dev/zero | tr '\000' "$letter"
done >"$work/wanted"
for url in "$local_url" "$tcp_url"; do
	truncate -s 0 "$work/disk.img"
	truncate -s 1M "$work/disk.img"
	ok "$EXAMPLES/disk" "${url%/demo}/block/disk"
	[ "$(cat "$work/out")" = 'a to h' ] || fail "disk: $(cat "$work/out")"
	cmp -n 524288 "$work/wanted" "$work/disk.img" || fail 'disk: other data'
	bad 1 'block/none: .*the server has no such volume' "$EXAMPLES/disk" "${url%/demo}/block/none"
	bad 1 'block/tiny: .*beyond the end of the volume' "$EXAMPLES/disk" "${url%/demo}/block/tiny"
done
# the lines of leat_block(3)
{
	printf '#include <err.h>\n#include <string.h>\n#include <leat_block.h>\n'
	awk '/^\.Sh/ { on = /EXAMPLES/ } /^\.Bd/ && on { print_it = 1; next } /^\.Ed/ { print_it = 0 } print_it' doc/man/leat_block.3 |
		sed 's/\\e/\\/g'
} >"$work/man.c"
[ "$(wc -l <"$work/man.c")" -gt 15 ] || fail 'leat_block(3) has no lines for programs'
$CC -Wall -Wextra -Werror -Iinclude -fsyntax-only "$work/man.c" || fail 'leat_block(3)'
checks=$((checks + 1))

echo "$checks checks passed"
