#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# bench-beside.sh - what an honest client waits beside slow readers: a part of `make bench`
#
# The readers are one client over TCP: each connection asks for 16 MiB and more, and takes its replies a little at a time.
# The honest client works over the local fabric, one call at a time, and verifies its data: first alone, then
# beside READERS (40 and 400) connections. The files are in memory (tmpfs), so that no disk is measured. SECS (2)
# seconds each; medians of ROUNDS (3).

set -eu
cd "$(dirname "$0")/.."
: "${LEATD:=build/leatd}" "${O:=build/obj/default}" "${ROUNDS:=3}" "${SECS:=2}" "${READERS:=40 400}"
. scripts/private-leatd.sh
hostile=$O/tests/hostile/hostile
each=40 # connections that one attack opens

tmp=${TMPDIR:-/tmp}
if [ "$(stat -f -c %T /dev/shm 2>/dev/null)" = tmpfs ] && [ -w /dev/shm ]; then
	tmp=/dev/shm
else
	echo "bench-beside: /dev/shm is no tmpfs: the disk below $tmp is measured, too"
fi
work=$(mktemp -d "$tmp/leat-bench.XXXXXX")
attacks='' victim=''
finish() {
	for p in $attacks $victim; do
		kill "$p" 2>/dev/null || :
	done
	leatd_stop
	rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

mkdir -p "$work/export/area" "$work/export/list"
head -c 8388608 /dev/urandom >"$work/export/big"
leatd_options='--export /insecure='$work/export,rw,no_root_squash,insecure
leatd_start "$work/export"
port=${tcp_url##*:}
port=${port%%/*}
mkfifo "$work/in"

# p99 WHEN OPERATION: from the victim's words, in ms
p99() { sed -n "s/^victim: $1 *:.* $2 [0-9]* (p50 [0-9.]* p99 \([0-9.]*\) .*/\1/p" "$work/victim"; }

# beside READERS: one measurement; a line for each operation in $work/alone.OPERATION and in $work/READERS.OPERATION
beside() {
	mkdir "$work/export/victim" # its names are new each time
	"$hostile" victim "$local_url/victim" <"$work/in" >"$work/victim" &
	victim=$!
	exec 4>"$work/in"
	until grep -q -e ready -e FAILED "$work/victim"; do sleep 0.1; done
	n=0
	while [ "$n" -lt "$1" ]; do
		"$hostile" attack -b "${SECS}000" -n $each -- "$work/leatd.sock" "$port" /insecure tcp-slow >>"$work/attacks" 2>&1 &
		attacks="$attacks $!"
		n=$((n + each))
	done
	for p in $attacks; do
		wait "$p" || { cat "$work/attacks" >&2; exit 1; }
	done
	attacks=''
	exec 4>&-
	wait "$victim" || { cat "$work/victim" >&2; exit 1; }
	victim=''
	rm -r "$work/export/victim"
	for op in getattr read write names; do
		p99 alone $op >>"$work/alone.$op"
		p99 beside $op >>"$work/$1.$op"
	done
}

i=0
while [ "$i" -lt "$ROUNDS" ]; do
	for n in $READERS; do
		beside "$n"
	done
	i=$((i + 1))
done

median() { sort -n "$1" | awk '{ v[NR] = $1 } END { if (NR) print v[int((NR + 1) / 2)] }'; }
echo 'p99 of an honest client, ms (wanted beside readers: below 10 times that alone, or 5 ms)'
printf '%-18s %10s' '' alone
for n in $READERS; do
	printf ' %12s' "$n readers"
done
echo
for op in getattr read write names; do
	printf '%-18s %10s' "$op" "$(median "$work/alone.$op")"
	for n in $READERS; do
		printf ' %12s' "$(median "$work/$n.$op")"
	done
	echo
done
