#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# demo.sh - a file travels: in and out of a private server, over the local fabric and over TCP; and a striped volume
#
# Starts a leatd on a temporary directory, as whoever you are; copies this tree and a big file in
# and out; compares checksums; prints a table. Then the same with a volume of three stripe servers, and where the bytes lie.
# Needs about 1.6 GiB in $TMPDIR. DEMO_MIB is the size of the big file (512).

set -eu
cd "$(dirname "$0")/.."
: "${LEAT:=build/leat}" "${LEATD:=build/leatd}" "${DEMO_MIB:=512}"
. scripts/private-leatd.sh
. scripts/private-volume.sh

work=$(mktemp -d "${TMPDIR:-/tmp}/leat-demo.XXXXXX")
finish() {
	leatd_stop
	volume_stop
	rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

fail() {
	echo "demo: $*" >&2
	exit 1
}

# What makes a tree: names, types, permissions of files, targets of links, and every byte.
fingerprint() {
	(
		cd "$1"
		find . ! -type l -printf '%y %m %P\n' | LC_ALL=C sort
		find . -type l -printf 'l %P %l\n' | LC_ALL=C sort
		find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum
	)
}

now_ms() { echo $(($(date +%s%N) / 1000000)); }
rate() { # BYTES MS
	awk -v b="$1" -v ms="$2" 'BEGIN { printf "%.0f", b / 1000 / (ms > 0 ? ms : 1) }'
}

echo "demo: preparing a tree and a file of $DEMO_MIB MiB in $work"
mkdir "$work/export" "$work/tree"
tar -c --exclude=./build --exclude=./.git --exclude='./.leat-*' . | tar -x -C "$work/tree"
ln -s README.md "$work/tree/a link"
ln -s 'nowhere/at all' "$work/tree/a dangling link"
mkdir "$work/tree/an empty directory"
: >"$work/tree/an empty file"
printf 'odd\n' >"$work/tree/$(printf 'a name\twith\001odd\377bytes')"
head -c "$((DEMO_MIB * 1048576))" /dev/urandom >"$work/big"
(umask 022 && chmod 644 "$work/big")
big_sum=$(sha256sum <"$work/big")
tree_print=$(fingerprint "$work/tree")
files=$(find "$work/tree" -type f | wc -l)

leatd_start "$work/export" || fail 'no server'

# travel TRANSPORT URL
travel() {
	start=$(now_ms)
	"$LEAT" cp -rp "$work/tree" "$2/tree" || fail "$1: tree in"
	"$LEAT" cp -rp "$2/tree" "$work/tree.back" || fail "$1: tree out"
	tree_ms=$(($(now_ms) - start))
	[ "$(fingerprint "$work/export/tree")" = "$tree_print" ] || fail "$1: the tree changed on its way in"
	[ "$(fingerprint "$work/tree.back")" = "$tree_print" ] || fail "$1: the tree changed on its way out"

	start=$(now_ms)
	"$LEAT" put "$work/big" "$2/big" || fail "$1: file in"
	in_ms=$(($(now_ms) - start))
	start=$(now_ms)
	"$LEAT" get "$2/big" "$work/big.back" || fail "$1: file out"
	out_ms=$(($(now_ms) - start))
	[ "$(sha256sum <"$work/export/big")" = "$big_sum" ] || fail "$1: the file changed on its way in"
	[ "$(sha256sum <"$work/big.back")" = "$big_sum" ] || fail "$1: the file changed on its way out"

	cost=$("$LEAT" bench read "$2/big" --seconds 2 --json) || fail "$1: bench"
	printf '%-10s %8s %8s %10s %12s %12s %12s\n' "$1" \
		"$(rate $((DEMO_MIB * 1048576)) "$in_ms")" "$(rate $((DEMO_MIB * 1048576)) "$out_ms")" \
		"$(echo "$cost" | json mb_s)" \
		"$(echo "$cost" | json client_cpu_s_gib)" "$(echo "$cost" | json server_cpu_s_gib)" \
		"$(echo "$cost" | json copied_per_byte)" >>"$work/table"
	echo "demo: $1: $files files in and out in $tree_ms ms, $DEMO_MIB MiB in and out, all checksums agree"
	"$LEAT" rm -r "$2/tree" "$2/big" || fail "$1: rm"
	[ -z "$(ls -A "$work/export")" ] || fail "$1: something was left behind: $(ls -A "$work/export")"
	rm -rf "$work/tree.back" "$work/big.back"
}

travel local "$local_url"
travel tcp "$tcp_url"
leatd_stop

# ---- a striped volume: a manager and three stripe servers

travel_striped() {
	volume_start "$work/volume" 3 || fail 'no volume'
	url=$volume_url
	start=$(now_ms)
	"$LEAT" cp -rp "$work/tree" "$url/tree" || fail 'volume: tree in'
	"$LEAT" cp -rp "$url/tree" "$work/tree.back" || fail 'volume: tree out'
	tree_ms=$(($(now_ms) - start))
	[ "$(fingerprint "$work/tree.back")" = "$tree_print" ] || fail 'volume: the tree has changed'
	rm -rf "$work/tree.back"
	start=$(now_ms)
	"$LEAT" put "$work/big" "$url/big" || fail 'volume: file in'
	in_ms=$(($(now_ms) - start))
	start=$(now_ms)
	"$LEAT" get "$url/big" "$work/big.back" || fail 'volume: file out'
	out_ms=$(($(now_ms) - start))
	[ "$(sha256sum <"$work/big.back")" = "$big_sum" ] || fail 'volume: the file has changed'
	cost=$("$LEAT" bench read "$url/big" --seconds 2 --json) || fail 'volume: bench'
	printf '%-10s %8s %8s %10s %12s %12s %12s\n' volume \
		"$(rate $((DEMO_MIB * 1048576)) "$in_ms")" "$(rate $((DEMO_MIB * 1048576)) "$out_ms")" \
		"$(echo "$cost" | json mb_s)" "$(echo "$cost" | json client_cpu_s_gib)" - \
		"$(echo "$cost" | json copied_per_byte)" >>"$work/table"
	echo "demo: volume: $files files in and out in $tree_ms ms, $DEMO_MIB MiB in and out, all checksums agree"
	"$LEAT" volume show "$url/big" || fail 'volume: show'
	"$LEAT" rm -r "$url/tree" "$url/big" || fail 'volume: rm'
	[ -z "$("$LEAT" ls "$url")" ] || fail "volume: something was left behind: $("$LEAT" ls "$url")"
	volume_stop
}

travel_striped

echo
printf '%-10s %8s %8s %10s %12s %12s %12s\n' transport 'put MB/s' 'get MB/s' 'read MB/s' \
	'client s/GiB' 'server s/GiB' 'copied/byte'
cat "$work/table"
echo
echo 'demo: OK'
