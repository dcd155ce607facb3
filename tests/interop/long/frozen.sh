#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# frozen.sh - exports whose file systems hang (fsfreeze, and a disk that stops): whatever is asked of them waits, and the
# other exports are served on, over every transport; when they thaw, everything that waited is done

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
is_stuck() { grep -q '^State:.D' "/proc/$1/status"; }
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

section 'a disk that hangs'
# Not frozen: nothing keeps calls out that change something. What is in memory is read on, and its access times are
# due: the journal wants the disk for them, since the inodes' blocks are being written to it.
hang() { # a disk that stops when it is told to, with an ext4 at $work/four
	modprobe dm-mod && null=/sys/kernel/config/nullb/leatfour && mkdir "$null" && echo 1 >"$null/memory_backed" &&
		echo 64 >"$null/size" && echo 4096 >"$null/blocksize" && echo 1 >"$null/power" &&
		echo '0 131072 linear /dev/leatfour 0' | dmsetup create --noudevsync leathang && dmsetup mknodes leathang && mkfs.ext4 -q /dev/mapper/leathang &&
		mkdir -p "$work/four" && mount -o relatime /dev/mapper/leathang "$work/four"
}
if ! command -v dmsetup >/dev/null || ! hang; then
	echo 'SKIP: no device mapper here'
else
	leatd_stop
	for i in $(seq 24); do
		head -c 64K "$work/random" >"$work/four/file$i"
	done
	sync
	leatd_start --workers 4 -l "$local" --export "/four=$work/four,$all"
	readers=''
	read_all() { # three clients, each with every file
		for url in "$tcp" "$rdma" "$local"; do
			for i in $(seq 24); do
				echo "$url/four/file$i"
			done | xargs timeout 60 "$LEAT" cat >"$work/read.${url%%:*}" 2>>"$work/asked" &
			readers="$readers $!"
		done
		failed_to_read=0
		for pid in $readers; do
			wait "$pid" || failed_to_read=$((failed_to_read + 1))
		done
		readers=''
	}
	read_all
	same 'clients that could not read' "$failed_to_read" 0
	touch -a -d '3 days ago' "$work/four"/file*
	ok 'suspend' dmsetup suspend --nolockfs --noflush leathang
	sync -f "$work/four/file1" &
	syncing=$!
	ok 'the sync hangs' wait_for 100 is_stuck "$syncing"
	for round in 1 2 3; do
		read_all
		same "clients that could not read from memory, round $round" "$failed_to_read" 0
		for url in tcp rdma local; do
			same "bytes that $url has read" "$(wc -c <"$work/read.$url")" $((24 * 65536))
		done
		others_are_served "a disk that hangs, round $round"
	done
	echo "threads that hang: $(stuck)"
	ok 'resume' dmsetup resume leathang
	wait "$syncing"
	read_all
	same 'clients that could not read later' "$failed_to_read" 0
	old() { find "$work/four" -name 'file*' -amin +60 | grep -c . || :; }
	none_is_old() { [ "$(old)" -eq 0 ]; }
	ok 'all access times are new' wait_for 100 none_is_old
fi
leatd_stop
for name in one two three four; do
	mountpoint -q "$work/$name" && umount "$work/$name"
done
dmsetup remove leathang 2>/dev/null
finish
