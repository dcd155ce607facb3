#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# bench-block.sh - block volumes beside NBD, and beside files
#
#   scripts/bench-block.sh [PART...]     all parts by default
#
# One file in memory (tmpfs), except in part direct. In each of ROUNDS (5) rounds the candidates take turns, SECS (1) seconds each; the table has
# medians, and the median of the ratios within a round. CPU is seconds per GiB, of client and server.
#
#   volume    `leat block bench` on a volume of leatd, beside libnbd (build/bench/nbd_load) and nbdkit's plugin for files, over a
#             UNIX socket
#   file      a READ of the volume beside an NFS READ of the same file
#   scatter   1 MiB to and from 256 pages, in another order than in the volume, beside 1 MiB in one part (build/bench/scatter)
#   plugin    fio's engine for NBD, libnbd and nbdcopy through nbdkit with our plugin, beside nbdkit's plugin for files
#   direct    direct I/O of the volume beside direct I/O of the same file by NFS, with a disk: the file is in DIR (the current
#             directory), DIRECT_SIZE (1024) MiB
#   idle      memory of IDLE (64) idle volumes beside that of idle mounts, each by itself and in one session

set -eu
cd "$(dirname "$0")/.."
: "${LEAT:=build/leat}" "${LEATD:=build/leatd}" "${ROUNDS:=5}" "${SECS:=1}" "${SIZE:=256}"
: "${DIR:=.}" "${DIRECT_SIZE:=1024}" "${IDLE:=64}"
parts=${*:-volume file scatter plugin direct idle}
. scripts/private-leatd.sh
load=build/bench/nbd_load plugin=build/nbdkit-leat-plugin.so idle=build/bench/idle_volumes

wanted() { case " $parts " in *" $1 "*) ;; *) return 1 ;; esac; }

if wanted volume || wanted plugin; then
	for program in nbdkit nbdcopy fio; do
		command -v "$program" >/dev/null || { echo "bench-block: no $program here (scripts/deps.sh install interop)"; exit 77; }
	done
	for program in "$load" "$plugin"; do
		[ -e "$program" ] || { echo "bench-block: no $program: libnbd-dev, nbdkit-plugin-dev, then make all bench-tools"; exit 77; }
	done
fi

tmp=${TMPDIR:-/tmp}
if [ "$(stat -f -c %T /dev/shm 2>/dev/null)" = tmpfs ] && [ -w /dev/shm ]; then
	tmp=/dev/shm
else
	echo "bench-block: /dev/shm is no tmpfs: the disk below $tmp is measured, too"
fi
work=$(mktemp -d "$tmp/leat-bench.XXXXXX")
ours='' theirs='' disk=''
nbdkit_stop() {
	[ -n "$ours$theirs" ] || return 0
	kill $ours $theirs 2>/dev/null || :
	wait $ours $theirs 2>/dev/null || :
	ours='' theirs=''
}
finish() {
	nbdkit_stop
	leatd_stop
	rm -rf "$work" ${disk:+"$disk"}
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

mkdir "$work/data" "$work/row"

# serve OPTION...: a leatd with the directory of the data as /demo
serve() {
	leatd_options=$*
	rm -rf "$work/words" "$work/state" # with its holders
	leatd_start "$work/data" 2>"$work/leatd.words" || { cat "$work/leatd.words" >&2; exit 1; }
}

nbdkit_start() {
	nbdkit -f -t 32 -P "$work/theirs.pid" -U "$work/theirs" file "$work/data/vol0" 2>"$work/theirs.log" &
	theirs=$!
	until [ -s "$work/theirs.pid" ]; do
		kill -0 "$theirs" || { cat "$work/theirs.log" >&2; exit 1; }
		sleep 0.1
	done
}

# The volume has one holder: nbdkit serves it only in its own part.
plugin_start() {
	nbdkit -f -t 32 -P "$work/ours.pid" -U "$work/ours" "$plugin" "$volume" 2>"$work/ours.log" &
	ours=$!
	until [ -s "$work/ours.pid" ]; do
		kill -0 "$ours" || { cat "$work/ours.log" >&2; exit 1; }
		sleep 0.1
	done
}

# ---- candidates: each prints one JSON object --------------------------------------------------------------

of_leat_volume() { "$LEAT" block bench "$1" "$volume" --bs "$2" --qd "$3" --size "${SIZE}M" --seconds "$SECS" --json --overwrite; }
of_leat_file() { "$LEAT" bench "$1" "$file" --bs "$2" --qd "$3" --size "${SIZE}M" --seconds "$SECS" --json --overwrite; }
of_libnbd() { "$load" "$uri/$4" "$1" "$2" "$3" "$SECS" $((SIZE << 20)) "$(cat "$work/$4.pid")"; }
of_one_part() { build/bench/scatter "$1" "$volume" 1048576 1048576 "$2" "$SECS"; }
of_256_parts() { build/bench/scatter "$1" "$volume" 1048576 4096 "$2" "$SECS"; }
of_nbdkit_file() { of_libnbd "$@" theirs; }
of_nbdkit_leat() { of_libnbd "$@" ours; }
of_fio() {
	fio --name=x --ioengine=nbd --uri="$uri/$4" --rw="$1" --bs="$2" --iodepth="$3" --size="${SIZE}M" --time_based \
		--runtime="$SECS" --minimal | awk -F ';' '/^3;/ { print "{\"mb_s\":" ($7 + $48) * 1.024 / 1000 ",\"ops_s\":" $8 + $49 "}" }'
}
of_fio_file() { of_fio "$@" theirs; }
of_fio_leat() { of_fio "$@" ours; }
of_nbdcopy() {
	began=$(date +%s%N)
	nbdcopy --request-size="$2" --requests="$3" "$uri/$4" null:
	echo "{\"mb_s\":$(awk -v ns="$(($(date +%s%N) - began))" -v mib="$SIZE" 'BEGIN { print mib * 1048.576e6 / ns }')}"
}
of_nbdcopy_file() { of_nbdcopy "$@" theirs; }
of_nbdcopy_leat() { of_nbdcopy "$@" ours; }

# ---- measuring ------------------------------------------------------------------------------------------------

median() { sort -g | awk '{ v[NR] = $1 } END { if (NR) print v[int((NR + 1) / 2)] }'; }

cpu_of() { # JSON: of both ends
	awk -v c="$(json client_cpu_s_gib <"$1")" -v s="$(json server_cpu_s_gib <"$1")" 'BEGIN { if (c != "") printf "%.3f", c + s }'
}

# row NAME WANTED UNIT OURS THEIRS ARGUMENTS...: both in turn
row() {
	name=$1 wanted=$2 unit=$3 a=$4 b=$5
	shift 5
	rm -f "$work"/row/*
	round=0
	while [ "$round" -lt "$ROUNDS" ]; do
		for c in "$a" "$b"; do
			"of_$c" "$@" >"$work/json"
			json "$unit" <"$work/json" >>"$work/row/$c"
			cpu_of "$work/json" | awk 1 >>"$work/row/$c.cpu"
		done
		round=$((round + 1))
	done
	cpu=$(paste "$work/row/$a.cpu" "$work/row/$b.cpu" | awk 'NF == 2 { print $1 / $2 }' | median)
	printf '    %-30s %12s %12s %7s %9s %9s %9s %7s\n' "$name" "$(median <"$work/row/$a")" "$(median <"$work/row/$b")" \
		"$(paste "$work/row/$a" "$work/row/$b" | awk '{ printf "%.2f\n", $1 / $2 }' | median)" "$wanted" \
		"$(median <"$work/row/$a.cpu")" "$(median <"$work/row/$b.cpu")" "${cpu:+$(printf %.2f "$cpu")}"
}

head_line() {
	echo
	printf '    %-30s %12s %12s %7s %9s %9s %9s %7s\n' "$@" ratio wanted 'CPU s/GiB' '' ratio
}

uri="nbd+unix:///?socket=$work"
if wanted volume || wanted file || wanted scatter || wanted plugin || wanted idle; then
	dd if=/dev/urandom of="$work/data/vol0" bs=1M count="$SIZE" status=none
fi
if wanted volume || wanted file || wanted scatter || wanted plugin; then
	serve --block "vol0=$work/data/vol0,read=cached,write=cached"
	volume=local://$work/leatd.sock/block/vol0 file=$local_url/vol0
fi
if wanted volume || wanted plugin; then
	nbdkit_start
fi
if wanted volume; then
	head_line volume leat nbdkit
	row '1 MiB reads, QD 8, MB/s' 3.0 mb_s leat_volume nbdkit_file read 1048576 8
	row '4 KiB random reads, QD 32, /s' 3.0 ops_s leat_volume nbdkit_file randread 4096 32
	row '1 MiB writes, QD 8, MB/s' 2.0 mb_s leat_volume nbdkit_file write 1048576 8
	row '4 KiB random writes, QD 32, /s' 2.0 ops_s leat_volume nbdkit_file randwrite 4096 32
fi
if wanted file; then
	head_line file volume NFS
	row '4 KiB random reads, QD 1, /s' 1.1 ops_s leat_volume leat_file randread 4096 1
	row '4 KiB random reads, QD 32, /s' 1.1 ops_s leat_volume leat_file randread 4096 32
fi
if wanted scatter; then
	head_line scatter '256 parts' 'one part'
	for kind in read write; do
		for qd in 1 8; do
			row "1 MiB ${kind}s, QD $qd, MB/s" 0.8 mb_s 256_parts one_part "$kind" "$qd"
		done
	done
fi
if wanted plugin; then
	plugin_start
	head_line plugin leat file
	row 'nbdcopy, 1 MiB, QD 8, MB/s' 0.85 mb_s nbdcopy_leat nbdcopy_file read 1048576 8
	row 'fio, 1 MiB reads, QD 8, MB/s' 0.85 mb_s fio_leat fio_file read 1048576 8
	row 'fio, 1 MiB writes, QD 8, MB/s' 0.85 mb_s fio_leat fio_file write 1048576 8
	row 'fio, 4 KiB reads, QD 32, /s' 0.6 ops_s fio_leat fio_file randread 4096 32
	row 'fio, 4 KiB writes, QD 32, /s' 0.6 ops_s fio_leat fio_file randwrite 4096 32
	row 'libnbd, 1 MiB reads, QD 8, MB/s' 0.85 mb_s nbdkit_leat nbdkit_file read 1048576 8
	row 'libnbd, 4 KiB reads, QD 32, /s' 0.6 ops_s nbdkit_leat nbdkit_file randread 4096 32
fi
nbdkit_stop
leatd_stop

if wanted direct; then
	disk=$(mktemp -d "$DIR/leat-bench.XXXXXX")
	disk=$(cd "$disk" && pwd)
	kind=$(stat -f -c %T "$disk")
	[ "$kind" != tmpfs ] || echo "bench-block: $DIR has no disk (tmpfs)"
	dd if=/dev/urandom of="$disk/vol1" bs=1M count="$DIRECT_SIZE" conv=fsync status=none
	SIZE=$DIRECT_SIZE
	serve --block "vol1=$disk/vol1,read=direct,write=direct" \
		--export "/disk=$disk,rw,no_root_squash,read=direct,write=direct"
	volume=local://$work/leatd.sock/block/vol1 file=local://$work/leatd.sock/disk/vol1
	head_line "direct, $kind" volume NFS
	row '1 MiB reads, QD 8, MB/s' 0.95 mb_s leat_volume leat_file read 1048576 8
	row '4 KiB random reads, QD 32, /s' 0.95 ops_s leat_volume leat_file randread 4096 32
	row '1 MiB writes, QD 8, MB/s' 0.95 mb_s leat_volume leat_file write 1048576 8
	row '4 KiB random writes, QD 32, /s' 0.95 ops_s leat_volume leat_file randwrite 4096 32
	leatd_stop
fi

if wanted idle; then
	options='' i=0
	mkdir "$work/volumes"
	while [ "$i" -lt "$IDLE" ]; do
		truncate -s 1M "$work/volumes/v$i"
		options="$options --block v$i=$work/volumes/v$i"
		i=$((i + 1))
	done
	echo
	echo "    $IDLE idle, KiB for each: resident, of which shared, + locked"
	for kind in mounts volumes session-mounts session-volumes; do
		# shellcheck disable=SC2086
		serve $options # a new one: it uses memory again that others have left
		"$idle" "$kind" "local://$work/leatd.sock" "$local_url" "$leatd_pid" "$IDLE"
		leatd_stop
	done
fi
