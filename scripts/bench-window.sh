#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# bench-window.sh - what a memory window costs, beside a registration for each call and beside none
#
#   scripts/bench-window.sh      in one boot of the virtual machine of tests/interop/vm
#
# leat reads from leatd over soft RoCE, one block at a time into memory of leat_buf_alloc(). The contenders
# take turns, each ROUND in another order; each figure is the median over ROUNDS of the p50 of a run:
#
#     slab      memory is registered once: what all others are held against
#     dynamic   registered and deregistered for each call
#     window    a window over the same memory for each call, taken back by the client (LOCAL_INV)
#     remote    ... by the server, with its answer (unsafe_inv at both ends: doc/interop.md)
#
# Both ends share one processor and sleep when they wait, so that what is measured is work, not how long
# this host takes to wake the emulator of a second one.
#
#   ROUNDS (15)   SECS (1)   BLOCKS='4k 32k'

set -u
cd "$(dirname "$0")/.." || exit
: "${LEAT:=build/leat}" "${LEATD:=build/leatd}" "${ROUNDS:=15}" "${SECS:=1}" "${BLOCKS:=4k 32k}"

if [ -z "${LEAT_VM:-}" ]; then
	for program in "$LEAT" "$LEATD"; do
		[ -x "$program" ] || { echo "no $program: make all"; exit 1; }
	done
	limit=$((120 + ROUNDS * 4 * $(echo "$BLOCKS" | wc -w) * (SECS + 6)))
	exec tests/interop/vm/vm -t "$limit" \
		"LEAT='$LEAT' LEATD='$LEATD' ROUNDS='$ROUNDS' SECS='$SECS' BLOCKS='$BLOCKS' sh '$0'"
fi

work=$(mktemp -d)
mkdir "$work/export"
head -c 4194304 /dev/urandom >"$work/export/file"
mkfifo "$work/words"
taskset 1 "$LEATD" --unsafe-inv --reactors 1 --poll event --state-dir "$work/state" \
	--export "/demo=$work/export,rw,no_root_squash,clients=10.77.0.0/16" --listen rdma://0.0.0.0:20049 \
	>"$work/words" 2>&1 &
leatd=$!
exec 3<"$work/words"
while read -r line <&3 && [ "$line" != 'leatd: ready' ]; do
	echo "$line"
done
cat <&3 >"$work/log" &

query() {
	case $1 in
	slab) echo registration=slab ;;
	dynamic) echo 'registration=dynamic&bounce=0' ;;
	window) echo registration=window ;;
	remote) echo 'registration=window&unsafe_inv=yes' ;;
	esac
}

turn() { # ROUND: the contenders, another one first each time
	case $(($1 % 4)) in
	0) echo slab dynamic window remote ;;
	1) echo remote window dynamic slab ;;
	2) echo dynamic remote slab window ;;
	3) echo window slab remote dynamic ;;
	esac
}

median() { # FILE
	sed -n 's/.*"p50_us":\([^,"}]*\).*/\1/p' "$1" | sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}

echo "bench-window: $(uname -r), median of $ROUNDS runs of $SECS s, us"
printf '%-6s %9s %9s %9s %9s   %s\n' '' slab dynamic window remote 'over slab: window, remote / dynamic'
for block in $BLOCKS; do
	for round in $(seq "$ROUNDS"); do
		for who in $(turn "$round"); do
			taskset 1 "$LEAT" bench read "rdma://10.77.0.1:20049/demo/file?poll=event&$(query "$who")" --bs "$block" \
				--size 4M --qd 1 --seconds "$SECS" --json >>"$work/$who.$block" || exit 1
		done
	done
	for who in slab dynamic window remote; do median "$work/$who.$block"; done | paste -s |
		awk -v block="$block" '{ printf "%-6s %9.1f %9.1f %9.1f %9.1f   %.2f, %.2f\n", block, $1, $2, $3, $4,
			($3 - $1) / ($2 - $1), ($4 - $1) / ($2 - $1) }'
done
kill "$leatd"
wait "$leatd"
