#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# bench-gluster.sh - a striped volume over TCP beside GlusterFS, on the same directories
#
#   scripts/bench-gluster.sh
#
# Four bricks of GlusterFS with the shard translator (blocks of 4 MiB), by fio's gfapi_async engine, and a volume of four
# stripe servers over TCP, by `leat bench`: sequential reads and writes of 1 MiB, 8 at once, of a file of SIZE (256) MiB. Both
# lie in one tmpfs. In each of ROUNDS (5) rounds they take turns, SECS (2) seconds each; the table has medians, and the median
# of the ratios within a round. CPU is that of client and servers together.
#
# Everything runs in namespaces of its own, with an address of its own on the loopback device. Needs root, glusterfs-server
# and fio; exits with 77 where one of them is missing.

set -eu
cd "$(dirname "$0")/.."
: "${LEAT:=build/leat}" "${LEATD:=build/leatd}" "${ROUNDS:=5}" "${SECS:=2}" "${SIZE:=256}"
address=10.79.0.1

skip() {
	echo "bench-gluster: skipped: $*"
	exit 77
}

if [ "${1:-}" != --inside ]; then
	[ "$(id -u)" = 0 ] || skip 'only root may start glusterd'
	command -v glusterd >/dev/null || skip 'no glusterd here (glusterfs-server)'
	fio --enghelp 2>/dev/null | grep -q gfapi_async || skip 'no fio here with the engine gfapi_async'
	exec unshare --net --mount --pid --fork --kill-child --mount-proc "$0" --inside
fi

ip link set lo up
ip addr add $address/32 dev lo
for dir in /var/lib/glusterd /var/log/glusterfs /run/gluster; do
	mkdir -p $dir
	mount -t tmpfs none $dir
done
work=/run/gluster/bench
mkdir $work
mount -t tmpfs none $work
mkdir $work/1 $work/2 $work/3 $work/4
. scripts/private-leatd.sh
. scripts/private-volume.sh

# ---- the candidates ------------------------------------------------------------------------------

start_gluster() {
	glusterd --log-level ERROR
	n=0
	until gluster volume list >/dev/null 2>&1; do
		n=$((n + 1))
		[ $n -lt 100 ] || skip 'glusterd does not start'
		sleep 0.1
	done
	{
		gluster --mode=script volume create bench $address:$work/1 $address:$work/2 $address:$work/3 $address:$work/4 force
		gluster --mode=script volume set bench features.shard on
		gluster --mode=script volume set bench features.shard-block-size 4MB
		gluster --mode=script volume start bench
	} >$work/words 2>&1 || {
		cat $work/words >&2
		skip 'no volume of GlusterFS can be made'
	}
}

# Both print MB/s.
run_gluster() { # read|write
	fio --name=x --ioengine=gfapi_async --volume=bench --brick=$address --filename=f --rw="$1" --bs=1M --iodepth=8 \
		--size="${SIZE}M" --time_based --runtime="$SECS" --output-format=terse --terse-version=3 2>/dev/null |
		awk -F ';' '/;/ { print ($7 + $48) * 1024 / 1e6 }'
}

run_leat() { # read|write
	"$LEAT" bench "$1" "$volume_url/f" --bs 1M --qd 8 --size "${SIZE}M" --seconds "$SECS" --overwrite --json | json mb_s
}

# Time of the processors that PROGRAM and its children have had, in ticks
ticks() { # PROGRAM: of all that run; fio and leat have ended: their time is that of children of this shell
	cat /proc/[0-9]*/stat 2>/dev/null | awk -v name="($1)" -v shell=$$ '
		$2 == name { sum += $14 + $15 }
		$1 == shell { sum += $16 + $17 }
		END { print sum + 0 }'
}

measure() { # gluster|leat read|write
	program=leatd
	[ "$1" = leat ] || program=glusterfsd
	before=$(ticks $program)
	begun=$(date +%s%N)
	"run_$1" "$2" >$work/mb
	spent=$(($(date +%s%N) - begun))
	after=$(ticks $program)
	cat $work/mb >>"$work/mb.$1.$2"
	# the rate holds for SECS; what was moved is the rate times that
	awk -v ticks=$((after - before)) -v hz="$(getconf CLK_TCK)" -v secs="$SECS" -v spent=$spent \
		'{ print ticks / hz / ($1 * 1e6 * secs / (1024 * 1024 * 1024)) }' $work/mb >>"$work/cpu.$1.$2"
}

# ---- the table -----------------------------------------------------------------------------------

median() { sort -g | awk '{ v[NR] = $1 } END { if (NR) print v[int((NR + 1) / 2)] }'; }
ratio() { paste "$1" "$2" | awk '$2 > 0 { printf "%.2f\n", $1 / $2 }' | median; }

start_gluster
volume_tcp=$address
volume_start $work/v 4
run_gluster write >/dev/null
head -c "$((SIZE << 20))" /dev/urandom >$work/random
"$LEAT" put $work/random "$volume_url/f"
rm $work/random
round=0
while [ "$round" -lt "$ROUNDS" ]; do
	for kind in read write; do
		for who in gluster leat; do
			measure $who $kind
		done
	done
	round=$((round + 1))
done
printf '\n    %-22s %10s %10s %7s %8s   %s\n' gluster leat GlusterFS ratio wanted 'CPU s/GiB      ratio'
for kind in read write; do
	printf '    %-22s %10.0f %10.0f %7.2f %8s   %5.2f %7.2f %6.2f\n' "1 MiB ${kind}s, QD 8, MB/s" \
		"$(median <$work/mb.leat.$kind)" "$(median <$work/mb.gluster.$kind)" \
		"$(ratio $work/mb.leat.$kind $work/mb.gluster.$kind)" 2.0 \
		"$(median <$work/cpu.leat.$kind)" "$(median <$work/cpu.gluster.$kind)" \
		"$(ratio $work/cpu.leat.$kind $work/cpu.gluster.$kind)"
done
volume_stop
