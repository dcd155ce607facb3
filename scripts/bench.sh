#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# bench.sh - the measurements of doc/testing.md: one machine, one file in page cache, one run
#
# The contenders of a row take turns (A B A B ...), so that a machine that gets slower gets slower
# for all of them; what is printed is the median of ROUNDS (3) runs of SECS (2) seconds each.
# SIZE_MIB (512) is the size of the file.

set -eu
cd "$(dirname "$0")/.."
: "${LEAT:=build/leat}" "${LEATD:=build/leatd}" "${ROUNDS:=3}" "${SECS:=2}" "${SIZE_MIB:=512}"
. scripts/private-leatd.sh

work=$(mktemp -d "${TMPDIR:-/tmp}/leat-bench.XXXXXX")
finish() {
	leatd_stop
	rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

mkdir "$work/export"
head -c "$((SIZE_MIB * 1048576))" /dev/urandom >"$work/export/file"
leatd_start "$work/export"

# run NAME: one measurement, its JSON appended to NAME's results
run() {
	case $1 in
	local-seq) set -- "$1" "$LEAT" bench read "$local_url/file" --bs 1M --qd 8 --seconds "$SECS" --json ;;
	local-seq-malloc) set -- "$1" "$LEAT" bench read "$local_url/file" --bs 1M --qd 8 --seconds "$SECS" --json --buf malloc ;;
	tcp-seq) set -- "$1" "$LEAT" bench read "$tcp_url/file" --bs 1M --qd 8 --seconds "$SECS" --json ;;
	pread-seq) set -- "$1" build/bench/pread "$work/export/file" 1048576 "$SECS" seq ;;
	tcpraw-seq) set -- "$1" build/bench/tcpraw 1048576 "$SECS" stream ;;
	local-4k-1) set -- "$1" "$LEAT" bench randread "$local_url/file" --bs 4K --qd 1 --seconds "$SECS" --json ;;
	tcp-4k-1) set -- "$1" "$LEAT" bench randread "$tcp_url/file" --bs 4K --qd 1 --seconds "$SECS" --json ;;
	pread-4k) set -- "$1" build/bench/pread "$work/export/file" 4096 "$SECS" rand ;;
	tcpraw-4k) set -- "$1" build/bench/tcpraw 4096 "$SECS" ping ;;
	local-4k-32) set -- "$1" "$LEAT" bench randread "$local_url/file" --bs 4K --qd 32 --seconds "$SECS" --json ;;
	tcp-4k-32) set -- "$1" "$LEAT" bench randread "$tcp_url/file" --bs 4K --qd 32 --seconds "$SECS" --json ;;
	esac
	name=$1
	shift
	# the machine may have reclaimed pages that were not used for a while
	cat "$work/export/file" >/dev/null
	"$@" >>"$work/$name.json"
}

median() { # NAME MEMBER
	json "$2" <"$work/$1.json" | sort -n | awk '{ v[NR] = $1 } END { if (NR) print v[int((NR + 1) / 2)] }'
}

# contest NAME...: take turns, print a line each
contest() {
	i=0
	while [ "$i" -lt "$ROUNDS" ]; do
		for name in "$@"; do run "$name"; done
		i=$((i + 1))
	done
	for name in "$@"; do
		printf '%-18s %10s %10s %10s %10s %10s %10s %10s\n' "$name" "$(median "$name" mb_s)" \
			"$(median "$name" ops_s)" "$(median "$name" p50_us)" "$(median "$name" p99_us)" \
			"$(median "$name" client_cpu_s_gib)" "$(median "$name" server_cpu_s_gib)" \
			"$(median "$name" copied_per_byte)"
	done
}

ratio() { # WHAT A B MEMBER WISH
	awk -v what="$1" -v a="$(median "$2" "$4")" -v b="$(median "$3" "$4")" -v wish="$5" \
		'BEGIN { printf "  %-52s %5.2f   (wanted: %s)\n", what, (b > 0 ? a / b : 0), wish }'
}

echo "bench: $(nproc) CPUs, $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), Linux $(uname -r)"
echo "bench: median of $ROUNDS runs of $SECS s, taking turns; a file of $SIZE_MIB MiB in page cache"
echo
printf '%-18s %10s %10s %10s %10s %10s %10s %10s\n' '' MB/s op/s 'p50 us' 'p99 us' 'cl s/GiB' 'srv s/GiB' 'copies/B'
contest local-seq local-seq-malloc tcp-seq pread-seq tcpraw-seq
contest local-4k-1 tcp-4k-1 tcpraw-4k pread-4k
contest local-4k-32 tcp-4k-32
echo
echo 'ratios:'
ratio '1 MiB read: local (leat_buf) / plain pread' local-seq pread-seq mb_s '>= 0.8'
ratio '1 MiB read: leat over TCP / raw TCP loopback' tcp-seq tcpraw-seq mb_s '>= 0.7'
ratio '1 MiB read: local / TCP' local-seq tcp-seq mb_s '>= 3'
ratio '4 KiB random read, QD 1: local / TCP' local-4k-1 tcp-4k-1 ops_s '>= 2'
ratio '4 KiB random read, QD 32: local / TCP' local-4k-32 tcp-4k-32 ops_s 'none named'
echo
echo 'voluntary context switches of the client for each synchronous call:'
for url in "$tcp_url" "$local_url?poll=event" "$local_url"; do
	echo "${url%%://*}${url##*/demo}"
	build/bench/wakeups "$url"
done
