#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# frozen.sh - exports whose file systems hang (fsfreeze): whatever is asked of them waits, and the other exports are
# served on, over every transport; when they thaw, everything that waited is done

set -u
cd "$(dirname "$0")/../../.." || exit
. tests/interop/lib.sh
in_vm 600
setup
PATH=$PATH:/usr/sbin:/sbin
for program in mkfs.ext4 fsfreeze; do
	command -v $program >/dev/null || { echo "SKIP: no $program here"; exit 77; }
done
modprobe ext4 && modprobe null_blk nr_devices=0 || { echo 'SKIP: a kernel without ext4 or null_blk'; exit 77; }
mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config || exit

rdma=rdma://$addr tcp=tcp://$addr local=local://$work/sock
dmesg -n 1 # it complains of tasks that hang

disk() { # NAME: an ext4 of 64 MiB at $work/NAME
	null=/sys/kernel/config/nullb/leat$1
	mkdir "$null" && echo 1 >"$null/memory_backed" && echo 64 >"$null/size" && echo 4096 >"$null/blocksize" &&
		echo 1 >"$null/power" && mkfs.ext4 -q "/dev/leat$1" && mkdir -p "$work/$1" &&
		mount "/dev/leat$1" "$work/$1"
}
for name in one two three; do
	ok "disk $name" disk $name
done
all=rw,no_root_squash,clients=10.77.0.0/16
leatd_start --workers 4 -l "$local" --export "/one=$work/one,$all" --export "/two=$work/two,$all" \
	--export "/three=$work/three,$all" --export "/direct=$work/three,write=direct,$all"
[ "$failed" -eq 0 ] || finish
for i in $(seq 12); do
	mkdir "$work/one/$i" "$work/two/$i"
done

waiting=''
# ask EXPORT FROM TO: a mkdir from each of so many clients, by turns over TCP, RDMA and the local socket; each in a
# directory of its own, since what changes one directory takes turns anyway
ask() {
	i=$2
	while [ "$i" -le "$3" ]; do
		case $((i % 3)) in
		0) url=$tcp ;;
		1) url=$rdma ;;
		2) url=$local ;;
		esac
		"$LEAT" mkdir "$url/$1/$i/new" >>"$work/asked" 2>&1 &
		waiting="$waiting $!"
		i=$((i + 1))
	done
}
# threads of leatd in a sleep that nothing ends but what they wait for
stuck() { cat "/proc/$leatd_pid/task/"*/status 2>/dev/null | grep -c '^State:.D' || :; }
stuck_is() { [ "$(stuck)" -ge "$1" ]; }

others_are_served() { # WHAT
	for url in "$tcp" "$rdma" "$local"; do
		ok "$1: mkdir ${url%%:*}" timeout 60 "$LEAT" mkdir "$url/demo/of-${url%%:*}"
		ok "$1: put ${url%%:*}" timeout 60 "$LEAT" put "$work/random" "$url/demo/file"
		ok "$1: get ${url%%:*}" timeout 60 "$LEAT" get "$url/demo/file" "$work/back"
		ok "$1: bytes ${url%%:*}" cmp "$work/random" "$work/back"
		ok "$1: rm ${url%%:*}" timeout 60 "$LEAT" rm -r "$url/demo/of-${url%%:*}" "$url/demo/file"
	done
}

section 'first WRITEs'
# More files than there are reactors, none of them open yet. A file with two names is written in place, so
# nothing but WRITEs waits.
inplace=''
for i in $(seq 24); do
	head -c 1M "$work/random" >"$work/three/file$i" && ln "$work/three/file$i" "$work/three/also$i"
done
head -c 1M /dev/urandom >"$work/other"
ok 'freeze' fsfreeze -f "$work/three"
for i in $(seq 24); do
	case $((i % 3)) in
	0) url=$tcp ;;
	1) url=$rdma ;;
	2) url=$local ;;
	esac
	export=three
	[ "$i" -le 12 ] || export=direct
	"$LEAT" put "$work/other" "$url/$export/file$i" >>"$work/asked" 2>&1 &
	inplace="$inplace $!"
done
ok 'two workers hang' wait_for 100 stuck_is 2
others_are_served 'first WRITEs'
same 'nothing else hangs' "$(stuck)" 2
ok 'thaw' fsfreeze -u "$work/three"
lost=0
for pid in $inplace; do
	wait "$pid" || lost=$((lost + 1))
done
same 'WRITEs that failed' "$lost" 0
for i in $(seq 24); do
	cmp -s "$work/other" "$work/three/file$i" || lost=$((lost + 1))
	rm "$work/three/file$i" "$work/three/also$i"
done
same 'files that are not as they were written' "$lost" 0

section 'one of four'
ok 'freeze' fsfreeze -f "$work/one"
ask one 1 12
ok 'two workers hang' wait_for 100 stuck_is 2
others_are_served 'one'
ok 'another disk' timeout 60 "$LEAT" mkdir "$tcp/two/before"
same 'no more than half of the workers hang' "$(stuck)" 2

section 'two of four'
ok 'freeze' fsfreeze -f "$work/two"
ask two 1 12
ok 'four workers hang' wait_for 100 stuck_is 4
others_are_served 'two'
ok 'a third disk' timeout 60 "$LEAT" mkdir "$tcp/three/before"

section 'clients that give up'
ended=0
for pid in $waiting; do
	ended=$((ended + 1))
	[ $((ended % 2)) -eq 0 ] || { kill "$pid"; wait "$pid" 2>/dev/null; }
done
others_are_served 'half of the clients gone'

section 'a thaw'
for name in one two; do
	ok "thaw $name" fsfreeze -u "$work/$name"
done
lost=0 ended=0
for pid in $waiting; do
	ended=$((ended + 1))
	[ $((ended % 2)) -eq 1 ] || wait "$pid" || lost=$((lost + 1))
done
same 'calls that failed' "$lost" 0
missing() {
	n=0
	for name in one two; do
		for i in $(seq 2 2 12); do
			[ -d "$work/$name/$i/new" ] || n=$((n + 1))
		done
	done
	echo $n
}
same 'directories that are not there' "$(missing)" 0
others_are_served 'thawed'

section 'a removed file that is still open'
# the last close of a removed file frees its blocks, and waits for a frozen file system too
ok 'a file' "$LEAT" put "$work/random" "$local/three/file"
rm "$work/three/file"
ok 'freeze' fsfreeze -f "$work/three"
still_open() { ls -l "/proc/$leatd_pid/fd" 2>/dev/null | grep -q "$work/three/file"; }
tries=0
while still_open && [ $tries -lt 50 ] && timeout 60 "$LEAT" ls "$tcp/demo" >/dev/null && timeout 60 "$LEAT" ls "$local/demo" >/dev/null; do
	tries=$((tries + 1))
done
others_are_served 'while it is closed'
ok 'thaw' fsfreeze -u "$work/three"
leatd_stop
for name in one two three; do
	umount "$work/$name"
done
finish
