#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# bench-data.sh - overlap of disk and network, and its cost for other programs: the third part of `make bench`
#
# First build/bench/overlap: modelled disks and a modelled network, beside what must be (what it takes in
# OVERLAP, by default the grain, writes, a constant rate; `-t matrix` is all lengths, depths and rates
# and takes minutes), and again with 700 KiB of buffers. Then what reads at a given rate cost a
# program that needs the memory's bandwidth: RATE MiB/s of a file of SIZE MiB on a real disk, directly, by
# way of the page cache, and over TCP.

set -eu
cd "$(dirname "$0")/.."
: "${LEATD:=build/leatd}" "${ROUNDS:=3}" "${SECS:=0.4}" "${RATE:=400}" "${SIZE:=512}"
: "${NEIGHBOUR_SECS:=2}" # less is over before the scheduler has been fair
: "${OVERLAP:=-t grain -t write -t rate}" "${BENCH_DIR:=${TMPDIR:-/var/tmp}}"
. scripts/private-leatd.sh

echo
echo "overlap: one request is on the disk and on the network at once (modelled, $ROUNDS rounds of $SECS s)"
echo
# shellcheck disable=SC2086
build/bench/overlap -s "$SECS" -r "$ROUNDS" $OVERLAP 2>/dev/null
echo
echo 'overlap: the same with 700 KiB of buffers in all'
echo
build/bench/overlap -s "$SECS" -r "$ROUNDS" -p 700 -t pool 2>/dev/null

work=$(mktemp -d "$BENCH_DIR/leat-bench.XXXXXX")
trap 'leatd_stop; rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
mkdir "$work/files"
dd if=/dev/urandom of="$work/files/f" bs=1M count="$SIZE" 2>/dev/null
sync "$work/files/f"
leatd_options="--export /direct=$work/files,rw,no_root_squash,read=direct"
leatd_start "$work/files"
cat "$work/files/f" >/dev/null
echo
echo "neighbour: a program that copies memory, beside reads of $RATE MiB/s"
echo
build/bench/neighbour "$NEIGHBOUR_SECS" "$((ROUNDS + 2))" "$RATE" direct="${local_url%/demo}/direct/f" \
	cached="$local_url/f" tcp="$tcp_url/f"
