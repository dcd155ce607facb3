#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# bench-conns.sh - receives of their own or shared: what connections cost in memory, and calls in time
#
# Two servers beside each other, --srq no and --srq yes, take turns: 4 KiB reads over the local fabric, of
# one connection and of eight, medians of ROUNDS (9) rounds of SECS (1) each. Then N (1000) connections
# to each of them, by tests/interop/many (`make bench-tools tests` builds all that is needed).

set -eu
cd "$(dirname "$0")/.."
: "${LEAT:=build/leat}" "${LEATD:=build/leatd}" "${O:=build/obj/default}"
: "${ROUNDS:=9}" "${SECS:=1}" "${N:=1000}"
. scripts/private-leatd.sh

top=$(mktemp -d "${TMPDIR:-/tmp}/leat-bench.XXXXXX")
servers='' holder=''
finish() {
	[ -z "$holder" ] || kill "$holder" 2>/dev/null || :
	for server in $servers; do
		leatd_pid=${server%%:*} leatd_log=${server##*:} leatd_shell=${server#*:}
		leatd_shell=${leatd_shell%:*}
		leatd_stop
	done
	rm -rf "$top"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

mkdir "$top/data"
head -c 16777216 /dev/urandom >"$top/data/file"
for srq in no yes; do
	work=$top/$srq
	mkdir "$work"
	leatd_options="--srq $srq --messages-max 268435456 --max-connections $((2 * N + 64))"
	leatd_start "$top/data" || exit 1
	servers="$servers $leatd_pid:$leatd_shell:$leatd_log"
	eval "pid_$srq=$leatd_pid"
done

median() { sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

# measure NAME OPTION...: both in turn, and the second by the first
measure() {
	name=$1
	shift
	i=0
	while [ "$i" -lt "$ROUNDS" ]; do
		for srq in no yes; do
			"$LEAT" bench randread "local://$top/$srq/leatd.sock/demo/file" --bs 4k --size 16M \
				--seconds "$SECS" --json "$@" >"$top/json"
			for what in ops_s p50_us server_cpu_s_gib; do
				json "$what" <"$top/json" >>"$top/$name.$srq.$what"
			done
		done
		i=$((i + 1))
	done
	for what in ops_s p50_us server_cpu_s_gib; do
		own=$(median <"$top/$name.no.$what") shared=$(median <"$top/$name.yes.$what")
		printf '    %-13s %-17s %12s %12s %9s\n' "$name" "$what" "$own" "$shared" \
			"$(awk -v a="$own" -v b="$shared" 'BEGIN { printf "%.2f", b / a }')"
	done
}

echo
printf '    %-13s %-17s %12s %12s %9s\n' '4 KiB reads' '' 'own' 'shared' 'ratio'
measure one-qd-1 --qd 1
measure one-qd-32 --qd 32
measure eight-qd-4 --qd 4 --jobs 8

# memory ADDR PID: N of them, mounted and served once
memory() {
	before=$(awk '/^VmRSS/ { print $2 }' "/proc/$2/status")
	rm -f "$top/in" "$top/out"
	mkfifo "$top/in" "$top/out"
	"$O/tests/interop/many" "$1" /demo "$N" <"$top/in" >"$top/out" &
	holder=$!
	exec 4>"$top/in" 5<"$top/out"
	while read -r line <&5; do
		case $line in served*) break ;; esac
	done
	now=$(awk '/^VmRSS/ { print $2 }' "/proc/$2/status")
	exec 4>&- 5<&-
	wait "$holder"
	holder=''
	most=$("$LEAT" ctl stats "$1" | awk '$1 == "messages_most" { print $2 / 1024 }')
	echo "$(((now - before) * 1024 / N)) $most"
}

echo
printf '    %-31s %12s %12s\n' "$N connections" 'own' 'shared'
# shellcheck disable=SC2154 # by eval
own=$(memory "local://$top/no/leatd.sock" "$pid_no") shared=$(memory "local://$top/yes/leatd.sock" "$pid_yes")
printf '    %-31s %12s %12s\n' 'bytes resident, each' "${own% *}" "${shared% *}" \
	'KiB for messages' "${own#* }" "${shared#* }"
