#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# bench-volume.sh - striped volumes: what each further server brings
#
#   scripts/bench-volume.sh [PART...]     all parts by default
#
# In each of ROUNDS (5) rounds the candidates take turns, SECS (1) seconds each; the table has medians, and the median of the
# ratios within a round. Everything is on this host, over the local fabric.
#
#   disks     volumes on 1, 2 and 4 stripe servers, each with a simulated disk of 100 MB/s (store=rate:100M): sequential reads
#             and writes of 1, and of 4 clients with a file each; divided by the rate on one server
#   local     reads and writes on 4 stripe servers without a limit, in memory (tmpfs), beside one; with the client's CPU
#   names     names of a volume of 4 stripe servers beside those of a plain export: operations on FILES (10000) empty files,
#             `leat put` of a directory of FILES / 5 files of 4 KiB, `leat ls -l` of FILES. Also on disk ($TMPDIR)
#   nfs       READs and WRITEs of 1 MiB of an NFS client over TCP through the manager, beside those on a plain export
#   appends   4 clients that append records of 4 KiB to a file of a volume of 4 stripe servers: alone, beside a client that has
#             written to the file and has it open, and beside 4 of these
#   shares    8 clients that read from one slow server (20 MB/s) for 5 * SECS: Jain's index of their shares (wanted: at least 0.95)
#   many      64 clients that read 4 wide from 4 servers of 100 MB/s: shares, and how many clients had an error

set -eu
cd "$(dirname "$0")/.."
: "${LEAT:=build/leat}" "${LEATD:=build/leatd}" "${ROUNDS:=5}" "${SECS:=1}" "${SIZE:=128}" "${FILES:=10000}"
parts=${*:-disks local names nfs appends shares many}
. scripts/private-leatd.sh
. scripts/private-volume.sh

wanted() { case " $parts " in *" $1 "*) ;; *) return 1 ;; esac; }

tmp=${TMPDIR:-/tmp}
if [ "$(stat -f -c %T /dev/shm 2>/dev/null)" = tmpfs ] && [ -w /dev/shm ]; then
	tmp=/dev/shm
else
	echo "bench-volume: /dev/shm is no tmpfs: the disk below $tmp is measured, too"
fi
work=$(mktemp -d "$tmp/leat-bench.XXXXXX")
disk=$(mktemp -d "${TMPDIR:-/tmp}/leat-bench.XXXXXX")
finish() {
	volume_stop
	leatd_stop
	rm -rf "$work" "$disk"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

median() { sort -g | awk '{ v[NR] = $1 } END { if (NR) print v[int((NR + 1) / 2)] }'; }

# start N [LINE...]: a volume of N servers with four files; its URL is in $work/url.N
start() {
	n=$1
	shift
	volume_start "$work/v$n" "$n" "$@"
	echo "$volume_url" >"$work/url.$n"
	head -c "$((SIZE << 20))" /dev/urandom >"$work/random"
	for file in 1 2 3 4; do
		"$LEAT" put "$work/random" "$volume_url/f$file"
	done
}

# measure KIND SERVERS CLIENTS: appends MB/s and the CPU of a client to the files of the candidate
measure() {
	url=$(cat "$work/url.$2")
	client=1 running=''
	while [ "$client" -le "$3" ]; do
		"$LEAT" bench "$1" "$url/f$client" --bs 1M --qd 8 --size "${SIZE}M" --seconds "$SECS" --overwrite --json \
			>"$work/json.$client" &
		running="$running $!"
		client=$((client + 1))
	done
	for pid in $running; do
		wait "$pid"
	done
	client=1
	while [ "$client" -le "$3" ]; do
		json mb_s <"$work/json.$client"
		client=$((client + 1))
	done | awk '{ sum += $1 } END { print sum }' >>"$work/mb.$1.$2.$3"
	json client_cpu_s_gib <"$work/json.1" >>"$work/cpu.$1.$2.$3"
}

# ratio FILE FILE: the median of the ratios within a round
ratio() { paste "$1" "$2" | awk '$2 > 0 { printf "%.2f\n", $1 / $2 }' | median; }

rows() { # CLIENTS SERVERS...
	clients=$1
	shift
	for kind in read write; do
		round=0
		while [ "$round" -lt "$ROUNDS" ]; do
			for n in "$@"; do
				measure "$kind" "$n" "$clients"
			done
			round=$((round + 1))
		done
		for n in "$@"; do
			mb=$work/mb.$kind.$n.$clients cpu=$work/cpu.$kind.$n.$clients
			printf '    %-6s %7s %7s %10s %12s %12s %10s\n' "$kind" "$clients" "$n" "$(median <"$mb")" \
				"$(ratio "$mb" "$work/mb.$kind.1.$clients")" "$(median <"$cpu")" \
				"$(ratio "$cpu" "$work/cpu.$kind.1.$clients")"
		done
	done
}

head_line() {
	echo
	printf '    %-6s %7s %7s %10s %12s %12s %10s\n' "$1" clients servers MB/s 'of one' 'CPU s/GiB' 'of one'
}

if wanted disks; then
	for servers in 1 2 4; do
		start "$servers" 'store = rate:100M'
	done
	head_line disks
	rows 1 1 2 4
	rows 4 1 2 4
	volume_stop
	rm -rf "${work:?}"/*
fi
if wanted local; then
	for servers in 1 4; do
		start "$servers"
	done
	head_line local
	rows 1 1 4
fi

# ---- NFS through the manager ----------------------------------------------------------------------

nfs_rows() {
	mkdir "$work/plain"
	leatd_start "$work/plain" 2>/dev/null
	volume_tcp=127.0.0.1
	volume_start "$work/v" 4
	head -c "$((SIZE << 20))" /dev/urandom >"$work/plain/f"
	"$LEAT" put "$work/plain/f" "$volume_url/f"
	round=0
	while [ "$round" -lt "$ROUNDS" ]; do
		for kind in read write; do
			build/bench/nfs_io "${tcp_url%/*}" "/${tcp_url##*/}" f $kind "$SECS" "$SIZE" >>"$work/nfs.plain.$kind"
			build/bench/nfs_io "${volume_url%/*}" /vol f $kind "$SECS" "$SIZE" >>"$work/nfs.volume.$kind"
		done
		round=$((round + 1))
	done
	echo
	echo "nfs: 1 MiB, 8 in flight, over TCP (wanted: at least 0.4)"
	for kind in read write; do
		printf '    %-6s plain export %s MB/s, through the manager of 4 servers %s MB/s, ratio %s\n' $kind \
			"$(median <"$work/nfs.plain.$kind")" "$(median <"$work/nfs.volume.$kind")" \
			"$(ratio "$work/nfs.volume.$kind" "$work/nfs.plain.$kind")"
	done
	volume_stop
	leatd_stop
	volume_tcp=''
	rm -rf "${work:?}"/*
}

if wanted nfs; then
	nfs_rows
fi

# ---- appends -------------------------------------------------------------------------------------

if wanted appends; then
	volume_start "$work/appends" 4
	round=0
	while [ "$round" -lt "$ROUNDS" ]; do
		for writers in 0 1 4; do
			build/bench/appends "$volume_url/log.$writers" 4 "$SECS" "$writers" >"$work/line"
			read -r all slowest fastest <"$work/line"
			echo "$all" >>"$work/all.$writers"
			echo "$slowest" >>"$work/slowest.$writers"
			echo "$fastest" >>"$work/fastest.$writers"
		done
		round=$((round + 1))
	done
	echo
	echo "appends: records/s of 4 clients, and of the slowest and the fastest one"
	for writers in 0 1 4; do
		printf '    beside %d writers %8s %8s %8s, %s of those alone\n' "$writers" "$(median <"$work/all.$writers")" \
			"$(median <"$work/slowest.$writers")" "$(median <"$work/fastest.$writers")" \
			"$(ratio "$work/all.$writers" "$work/all.0")"
	done
	volume_stop
	rm -rf "${work:?}"/*
fi

# ---- names ---------------------------------------------------------------------------------------

now_ms() { echo $(($(date +%s%N) / 1000000)); }
timed() { # NAME COMMAND...: milliseconds to NAME's figures
	name=$1
	shift
	begin=$(now_ms)
	"$@" >/dev/null
	echo $(($(now_ms) - begin)) >>"$work/ms.$name"
}

names_in() { # DIR WHAT
	mkdir "$1/plain" "$work/files"
	leatd_start "$1/plain" 2>/dev/null
	volume_start "$1/v" 4
	echo
	echo "names $2: $FILES files of a plain export, and of a volume (x: to the first column; wanted: at least 0.67)"
	echo
	build/bench/names -c -n "$FILES" -r "$ROUNDS" "$1/plain" plain="$local_url?cache=none" volume="$volume_url?cache=none"
	i=0
	while [ "$i" -lt $((FILES / 5)) ]; do
		head -c 4096 /dev/zero >"$work/files/$i"
		i=$((i + 1))
	done
	for url in "$local_url" "$volume_url"; do # a directory for ls
		"$LEAT" mkdir "$url/many"
		"$LEAT" put -r "$work/files" "$url/many/a"
		"$LEAT" ls "$url/many/a" >/dev/null
	done
	round=0
	while [ "$round" -lt "$ROUNDS" ]; do
		for which in plain volume; do
			url=$local_url
			[ $which = plain ] || url=$volume_url
			timed $which.put "$LEAT" put -r "$work/files" "$url/put.$round"
			timed $which.ls "$LEAT" ls -l "$url/many/a"
		done
		round=$((round + 1))
	done
	for what in put ls; do
		printf '    %-4s of %d files of 4 KiB: plain %d ms, volume %d ms, %.2f of its time\n' \
			$what $((FILES / 5)) "$(median <"$work/ms.plain.$what")" "$(median <"$work/ms.volume.$what")" \
			"$(ratio "$work/ms.volume.$what" "$work/ms.plain.$what")"
	done
	volume_stop
	leatd_stop
	rm -rf "$1/plain" "$1/v" "${work:?}"/*
}

if wanted names; then
	volume_stop
	rm -rf "${work:?}"/*
	names_in "$work" 'in memory'
	FILES=$((FILES / 10))
	names_in "$disk" 'on disk'
fi

# crowd CLIENTS FILES BYTES QD: runs CLIENTS clients at once, each on the next of FILES files; prints a line about their shares
crowd() {
	client=1 running='' failures=0
	rm -f "$work"/share.*
	while [ "$client" -le "$1" ]; do
		"$LEAT" bench read "$volume_url/f$((client % $2 + 1))" --bs "$3" --qd "$4" --size 8M --seconds "$((5 * SECS))" --json \
			>"$work/share.$client" 2>"$work/error.$client" &
		running="$running $!"
		client=$((client + 1))
	done
	for pid in $running; do
		wait "$pid" || failures=$((failures + 1))
	done
	cat "$work"/share.* | json mb_s | awk -v failures="$failures" '
		{ sum += $1; squares += $1 * $1; if (NR == 1 || $1 < low) low = $1; if ($1 > high) high = $1 }
		END {
			printf "    %7d %10.1f %10.2f %10.2f %10.2f %10.3f %8d\n", NR, sum, sum / NR, low, high,
				squares ? sum * sum / NR / squares : 0, failures
		}'
	cat "$work"/error.* | head -n 5
}

crowd_files() { # N
	head -c 8M /dev/urandom >"$work/random"
	file=1
	while [ "$file" -le "$1" ]; do
		"$LEAT" put "$work/random" "$volume_url/f$file"
		file=$((file + 1))
	done
}

crowd_head() {
	echo
	echo "$1"
	printf '    %7s %10s %10s %10s %10s %10s %8s\n' clients MB/s mean lowest highest Jain errors
}

if wanted shares; then
	volume_start "$work/shares" 1 'store = rate:20M'
	crowd_files 8
	crowd_head 'shares: one server of 20 MB/s'
	crowd 8 8 1M 8
	volume_stop
	rm -rf "${work:?}"/*
fi
if wanted many; then
	volume_start "$work/many" 4 'store = rate:100M'
	crowd_files 8
	crowd_head 'many: 4 servers of 100 MB/s'
	crowd 64 8 4M 2
	volume_stop
	rm -rf "${work:?}"/*
fi
