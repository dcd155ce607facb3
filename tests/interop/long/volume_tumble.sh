#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# volume_tumble.sh - 100,000 random operations of several clients on the same files of a striped volume, while its four stripe
# servers and its manager are killed, stopped and cut off; every result is verified. No virtual machine: this is for every machine.

set -u
cd "$(dirname "$0")/../../.." || exit
: "${LEAT:=build/leat}" "${LEATD:=build/leatd}" "${O:=build/obj/default}"
export LEATD
tumble=$O/tests/tumble/tumble
: "${TUMBLE_COUNT:=100000}" "${TUMBLE_SEED:=1}"

work=$(mktemp -d /tmp/leat-tumble.XXXXXX)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0 seed=$TUMBLE_SEED

# tumbled SHARE OPTION...: SHARE hundredths of the operations
tumbled() {
	count=$((TUMBLE_COUNT * $1 / 100))
	shift
	if timeout 1800 "$tumble" volume -n "$count" -s "$seed" -p 500 -x "$LEAT" "$@" "$work/v" >"$work/out" 2>&1; then
		passed=$((passed + 1))
		sed -n 's/^tumble: all was right: //p' "$work/out" | fold -s -w 100 | sed 's/^/  /'
		rm -rf "$work/v"
	else
		failed=$((failed + 1))
		echo "  FAIL  tumble volume -n $count -s $seed $*"
		sed 's/^/        | /' "$work/out"
		rm -rf "$work/v"
	fi
	seed=$((seed + 1))
}

tumbled 10 -f 0
for how in tcp local; do
	tumbled 15 -t $how
	tumbled 15 -t $how -f 30
	tumbled 10 -t $how -C 8 -q 24
	tumbled 5 -t $how -f 60 -C 2 -l 200000 -m 150000
done
echo "${0##*/}: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
