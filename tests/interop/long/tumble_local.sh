#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# tumble_local.sh - 100,000 random operations by leat over the local fabric, as many over TCP; every answer
# is verified. No virtual machine: this is for every machine.

set -u
cd "$(dirname "$0")/../../.." || exit
: "${LEATD:=build/leatd}" "${O:=build/obj/default}"
. scripts/private-leatd.sh
tumble=$O/tests/tumble/tumble
: "${TUMBLE_COUNT:=100000}" "${TUMBLE_SEED:=1}"

work=$(mktemp -d)
finish() {
	leatd_stop
	rm -rf "$work"
}
trap finish EXIT
mkdir "$work/export"
passed=0 failed=0

# tumbled WHAT SHARE TARGET OPTION...: SHARE hundredths of the operations; in the end the server's disk agrees
tumbled() {
	what=$1 count=$((TUMBLE_COUNT * $2 / 100)) target=$3
	shift 3
	if timeout 600 "$tumble" -n "$count" -s "$TUMBLE_SEED" -o "$work/model" "$@" "$target" >"$work/out" 2>&1 &&
		cmp "$work/model" "$work/export/file" >>"$work/out" 2>&1; then
		passed=$((passed + 1))
		echo "  $what: $count operations"
		sed -n 's/^tumble: all was right: //p' "$work/out" | fold -s -w 100 | sed 's/^/          /'
	else
		failed=$((failed + 1))
		echo "  FAIL  $what"
		sed 's/^/        | /' "$work/out"
	fi
	rm -f "$work/model" "$work/export/file"
}

leatd_start "$work/export" || exit 1
for url in "$local_url" "$tcp_url"; do
	way=${url%%:*}
	tumbled "leat, $way" 20 "$url/file"
	tumbled "leat, $way, 16 at once" 30 "$url/file" -q 16
	tumbled "leat, $way, small pieces" 30 "$url/file?inline=1024&rsize=4096&wsize=8192" -q 8
	tumbled "leat, $way, 3 connections, 4 MiB" 20 "$url/file?conns=3" -q 16 -l 4000000 -m 2000000
	if timeout 600 "$tumble" -N -n $((TUMBLE_COUNT / 5)) -s "$TUMBLE_SEED" "$url/tree" >"$work/out" 2>&1; then
		passed=$((passed + 1))
		sed -n 's/^tumble: all was right: /  /p' "$work/out"
	else
		failed=$((failed + 1))
		echo "  FAIL  names, $way"
		sed 's/^/        | /' "$work/out"
	fi
done
leatd_stop
echo "${0##*/}: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
