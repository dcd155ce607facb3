#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# bench-modes.sh - compares the older designs with the one of RFC 8166
#
# One leatd that offers all modes, one file in memory, one client. The designs differ in which end moves the data:
#
#     pull     the server: RDMA Write of results, RDMA Read of arguments (design=read-write)
#     inline   neither: the messages hold the data (inline=64k, up to about that)
#     fast     the client writes arguments with the call (fast_write=64k)
#     hybrid   the client writes arguments where the server says (design=hybrid)
#     read     the client reads results (design=read-read)
#
# The contenders of a row take turns; a figure is the median of ROUNDS (3) runs of SECS (1) seconds, and
# beside it how it stands to `pull`. Over the local fabric by default, where a copy stands for each
# transfer, and one more where the client reaches for the server's memory; VM=1: over soft RoCE in the
# virtual machine of tests/interop/vm, where ratios are all that means anything.
#
#   READS='64K:1 ...' WRITES='4K:1 ...'   block size and calls in flight       RAW=1   every run, too

set -eu
cd "$(dirname "$0")/.."
: "${LEAT:=build/leat}" "${LEATD:=build/leatd}" "${ROUNDS:=3}" "${SECS:=1}" "${SIZE_MIB:=64}"
: "${READS:=8K:1 64K:1 256K:1 1M:1 1M:4}"
: "${WRITES:=2K:1 4K:1 8K:1 16K:1 32K:1 64K:1 64K:8 256K:1 1M:1 1M:4}"

if [ -n "${VM:-}" ] && [ -z "${LEAT_VM:-}" ]; then
	rows=$(echo "$READS $WRITES" | wc -w)
	exec tests/interop/vm/vm -t "$((120 + rows * 4 * ROUNDS * (SECS + 6)))" "LEAT='$LEAT' LEATD='$LEATD' \
		ROUNDS='$ROUNDS' SECS='$SECS' SIZE_MIB='$SIZE_MIB' READS='$READS' WRITES='$WRITES' \
		RAW='${RAW:-}' sh '$0'"
fi

shm=/dev/shm
[ -z "${LEAT_VM:-}" ] || shm=/run # all of it is memory there
[ -w "$shm" ] || shm=${TMPDIR:-/tmp}
work=$(mktemp -d "$shm/leat-bench.XXXXXX")
server=''
finish() {
	[ -z "$server" ] || kill "$server" 2>/dev/null || :
	rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

mkdir "$work/files"
head -c "$((SIZE_MIB * 1048576))" /dev/urandom >"$work/files/f"
mkfifo "$work/words"
listen=local://$work/sock url=local://$work/sock/bench/f from=''
if [ -n "${LEAT_VM:-}" ]; then
	listen=rdma://10.77.0.1:20049 url=$listen/bench/f from=,clients=10.77.0.0/16
	listen="$listen --listen tcp://10.77.0.1:2049"
fi
# shellcheck disable=SC2086
"$LEATD" --state-dir "$work/state" --modes read-read,fast-write,hybrid --inline 65536 \
	--export "/bench=$work/files,rw,no_root_squash$from" --listen $listen >"$work/words" 2>"$work/log" &
server=$!
while read -r line; do
	[ "$line" != 'leatd: ready' ] || break
done <"$work/words"
[ "$line" = 'leatd: ready' ] || { cat "$work/log"; exit 1; }
cat "$work/words" >/dev/null & # what it says from now on

json() { sed -n "s/.*\"$1\":[ \"]*\([0-9.]*\).*/\1/p"; }
median() { # NAME MEMBER
	json "$2" <"$work/$1.json" | sort -n | awk '{ v[NR] = $1 } END { if (NR) print v[int((NR + 1) / 2)] }'
}
run() { # CONTENDER KIND BLOCK QD
	case $1 in
	pull) query='inline=4096' ;;
	inline) query='inline=65536' ;;
	fast) query='inline=4096&fast_write=65536' ;;
	hybrid) query='inline=4096&design=hybrid' ;;
	read) query='inline=4096&design=read-read' ;;
	esac
	"$LEAT" bench "$2" "$url?$query" --bs "$3" --qd "$4" --size "${SIZE_MIB}M" --seconds "$SECS" \
		--overwrite --json >>"$work/$1.json" 2>>"$work/log" || { cat "$work/log"; exit 1; }
	[ -z "${RAW:-}" ] || tail -n 1 "$work/$1.json"
}
contest() { # KIND BLOCK QD CONTENDER...
	kind=$1 block=$2 qd=$3
	shift 3
	rm -f "$work"/*.json
	i=0
	while [ "$i" -lt "$ROUNDS" ]; do
		for c in "$@"; do run "$c" "$kind" "$block" "$qd"; done
		i=$((i + 1))
	done
	printf '  %-6s %-5s %2s ' "$kind" "$block" "$qd"
	for c in "$@"; do
		awk -v c="$c" -v ops="$(median "$c" ops_s)" -v us="$(median "$c" p50_us)" \
			-v base="$(median pull ops_s)" \
			'BEGIN { printf "  %s %.0f/s %.1f us (%.2f)", c, ops, us, ops / base }'
	done
	echo
}

echo
echo "modes: which end moves the data; calls per second, median latency, and calls compared with pull"
echo
for row in $READS; do contest read "${row%:*}" "${row#*:}" pull read; done
for row in $WRITES; do
	case ${row%:*} in
	*M | 128K | 256K | 512K) contest write "${row%:*}" "${row#*:}" pull hybrid ;;
	64K) contest write 64K "${row#*:}" pull fast hybrid ;; # with its head, too long for a message
	2K) contest write 2K "${row#*:}" pull inline ;; # which is the same: it fits
	*) contest write "${row%:*}" "${row#*:}" pull inline fast hybrid ;;
	esac
done
