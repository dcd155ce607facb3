#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# overlap.sh - exports whose disk and network work on one request at the same time, over verbs: leat and
# Linux's client, READs and WRITEs of every length around a piece, in how many pieces they go and that
# an md RAID 0 does not merge them again, several clients at once, clients that die in the middle of a request

set -u
cd "$(dirname "$0")/../.." || exit
. tests/interop/lib.sh
in_vm 2000
setup
PATH=$PATH:/usr/sbin:/sbin
odd=$O/tests/interop/odd share=$O/tests/interop/share pieces=$O/tests/interop/pieces
for tool in odd share pieces; do
	[ -x "$O/tests/interop/$tool" ] || { echo "SKIP: no $O/tests/interop/$tool here (make interop-tools)"; exit 77; }
done
command -v mkfs.ext4 >/dev/null || { echo 'SKIP: no mkfs.ext4 here (e2fsprogs)'; exit 77; }
modprobe -a raid0 ext4 && modprobe null_blk nr_devices=0 ||
	{ echo 'SKIP: a kernel without raid0, ext4 or null_blk'; exit 77; }
[ -x /sbin/mount.nfs ] || { echo 'SKIP: no mount.nfs here (nfs-common)'; exit 77; }

rdma=rdma://$addr tcp=tcp://$addr
admin=local://$work/leatd.sock # only an administrator may look at requests of others
m=$work/mnt other=$work/other disk=$work/disk
mkdir "$m" "$other" "$disk"
for name in ordered model slow; do
	mkdir "$work/$name"
done
# for those that are to be met in the middle of their work
cat "$work/random" "$work/random" "$work/random" >"$work/big"

# ---- a RAID 0 of four disks, each of which takes 2 ms for whatever it is asked ----------------------
#
# The kernel makes it from what is written to these files, without mdadm.

members='0 1 2 3'

raid() {
	mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config || return 1
	md=/sys/block/md_leat/md
	echo md_leat >/sys/module/md_mod/parameters/new_array || return 1
	echo none >$md/metadata_version && echo raid0 >$md/level && echo 65536 >$md/chunk_size &&
		echo 4 >$md/raid_disks || return 1
	for i in $members; do
		null=/sys/kernel/config/nullb/leat$i
		mkdir "$null" && echo 1 >"$null/memory_backed" && echo 64 >"$null/size" && echo 4096 >"$null/blocksize" &&
			echo 2 >"$null/irqmode" && echo 2000000 >"$null/completion_nsec" && echo 1 >"$null/power" &&
			echo none >"/sys/block/leat$i/queue/scheduler" &&
			cat "/sys/block/leat$i/dev" >$md/new_dev && echo 65536 >"$md/dev-leat$i/size" &&
			echo "$i" >"$md/dev-leat$i/slot" || return 1
	done
	echo active >$md/array_state || return 1
	mkfs.ext4 -q -b 4096 -E stride=16,stripe_width=64 /dev/md_leat && mount /dev/md_leat "$disk"
}

# what all its members have done, and how often they made one of two: reads, merged, writes, merged
disk_did() { cat /sys/block/leat?/stat | awk '{ r += $1; rm += $2; w += $5; wm += $6 } END { print r, rm, w, wm }'; }

section 'a RAID 0'
ok 'md RAID 0' raid
mountpoint -q "$disk" || finish
data=$disk/data
mkdir "$data"

all='rw,no_root_squash,clients=10.77.0.0/16'
leatd_start -l "$admin" --export "/raid=$data,$all,read=direct,write=direct,overlap=streams,streams=4,chunk=64k,grain=16k" \
	--export "/whole=$data,$all,read=direct,write=direct" \
	--export "/ordered=$work/ordered,$all,overlap=ordered,grain=4k" \
	--export "/model=$work/model,$all,overlap=streams,streams=4,chunk=16k,grain=4k,store=sim:members=4:chunk=16k:rate=200M:jitter=1ms" \
	--export "/slow=$work/slow,$all,overlap=streams,grain=64k,store=sim:rate=4M"

# ---- how requests go --------------------------------------------------------------------------------

# looked_at URL COMMAND...: what leat trace says of a request that this makes, in $work/look; its status
looked_at() {
	url=$1
	shift
	"$LEAT" trace pieces "$url" --timeout "${seconds:-60}" >"$work/look" 2>"$work/look.err" &
	look=$!
	while kill -0 "$look" 2>/dev/null; do
		"$@" >"$work/command" 2>&1 || { echo "$*: $(cat "$work/command")"; return 1; }
	done
	wait "$look" || { cat "$work/look.err"; return 1; }
}

# offset and length of each piece
rows() { awk '$1 ~ /^[0-9]+$/ { print $1, $2 }' "$work/look"; }

# went READ|WRITE GRAIN: a request of 1 MiB, in pieces of that, each of it once
went() {
	head -n 1 "$work/look"
	head -n 1 "$work/look" | grep -q "^$1 of 1048576 bytes in $((1048576 / $2)) pieces," || return 1
	rows | sort -n | awk -v grain="$2" '$1 != at || $2 != grain { bad = 1 } { at += $2 }
		END { exit bad || at != 1048576 }'
}


# direct DIR READ|WRITE: requests of 1 MiB by Linux's client
direct() {
	case $2 in
	READ) dd if="$1/one" of=/dev/null bs=1M iflag=direct status=none ;;
	WRITE) dd if="$work/random" of="$1/one" bs=1M count=1 oflag=direct conv=notrunc status=none ;;
	esac
}

# ---- every length ----------------------------------------------------------------------------------

# lengths_of GRAIN CHUNK: around a piece, several, a member's turn, all members' turns, a request
lengths_of() {
	for n in "$1" $((2 * $1)) $((3 * $1)) "$2" $(($2 + $1)) $((4 * $2)) 1048576; do
		echo $((n - 1)) "$n" $((n + 1))
	done
	echo $((4 * $2 + 4095)) $((2 * 1048576 + $1 + 1))
}

for export in raid ordered model; do
	case $export in
	raid) at=$data grain=16384 chunk=65536 ;;
	ordered) at=$work/ordered grain=4096 chunk=65536 ;;
	model) at=$work/model grain=4096 chunk=16384 ;;
	esac
	section "/$export: leat"
	lengths=$(lengths_of $grain $chunk)
	make_lengths "$work/lengths-$export"
	lens=$(fingerprint "$work/lengths-$export")
	ok "lengths in, $export" timeout 100 "$LEAT" cp -rp "$work/lengths-$export" "$rdma/$export/lengths"
	same "lengths in, $export" "$(fingerprint "$at/lengths")" "$lens"
	ok "lengths out, $export" timeout 100 "$LEAT" get -rp "$rdma/$export/lengths" "$work/back-$export"
	same "lengths out, $export" "$(fingerprint "$work/back-$export")" "$lens"
	ok "odd places and lengths, $export" timeout 100 "$pieces" "$rdma/$export"
	ok "a large one in, $export" timeout 100 "$LEAT" put "$work/random" "$rdma/$export/big"
	ok "a large one in, $export" cmp "$work/random" "$at/big"
	ok "a large one out, $export" timeout 100 "$LEAT" get "$rdma/$export/big" "$work/back"
	ok "a large one out, $export" cmp "$work/random" "$work/back"

	section "/$export: Linux's client"
	of=/$export
	ok "mount, $export" mounted "$m" rdma
	of=''
	mountpoint -q "$m" || continue
	# shellcheck disable=SC2086
	counted "lengths past the cache, $export" timeout 100 "$odd" direct "$m" "$at" $lengths
	# whole pages, from the page cache or the disk
	# shellcheck disable=SC2086
	[ $export != ordered ] || counted "lengths, $export" timeout 100 "$odd" buffered "$m" "$at" $lengths
	ok "a large one in, $export" dd if="$work/random" of="$m/linux" bs=1M oflag=direct conv=fsync status=none
	ok "a large one in, $export" cmp "$work/random" "$at/linux"
	ok "at odd places, $export" sh -c \
		"dd if='$m/linux' bs=70001 iflag=direct status=none | cmp - '$work/random'"
	ok "and by pages, $export" cmp "$m/big" "$work/random"

	section "/$export: in pieces"
	head -c 1048576 "$work/random" >"$at/one"
	ok "a READ of leat, $export" looked_at "$rdma" timeout 100 "$LEAT" cat "$rdma/$export/one"
	ok "all of it in pieces, $export" went READ $grain
	ok "a WRITE of leat, $export" looked_at "$rdma" timeout 100 "$LEAT" put "$at/one" "$rdma/$export/two"
	ok "all of it in pieces, $export" went WRITE $grain
	for kind in READ WRITE; do
		ok "a $kind of Linux, $export" looked_at "$rdma" direct "$m" $kind
		ok "all of it in pieces, $export" went $kind $grain
	done
	ok "which is the same, $export" cmp -n 1048576 "$at/one" "$work/random"
	ok "umount, $export" timeout 100 umount "$m"
done

# ---- what is submitted by itself ends by itself ------------------------------------------------------

section 'a RAID 0: pieces stay apart'
# reads_for URL: how many reads the members make for 1 MiB of it, and how many they had merged
reads_for() {
	# shellcheck disable=SC2046
	set -- "$1" $(disk_did)
	timeout 100 "$LEAT" cat "$1/one" >"$work/back" || return 1
	cmp -n 1048576 "$work/back" "$work/random" || return 1
	# shellcheck disable=SC2046
	set -- "$2" "$3" $(disk_did)
	echo "$(($3 - $1)) $(($4 - $2))"
}
sync
same 'a read for each chunk of it, without overlap' "$(reads_for "$rdma/whole")" '16 0'
same 'a read for each of its pieces, none of them merged' "$(reads_for "$rdma/raid")" '64 0'

# a scheduler of the kernel merges what waits in it, unless its disk is configured not to
for i in $members; do
	echo mq-deadline >"/sys/block/leat$i/queue/scheduler"
	echo 2 >"/sys/block/leat$i/queue/nomerges"
done
same 'the same behind a scheduler that may not merge' "$(reads_for "$rdma/raid")" '64 0'
for i in $members; do
	echo none >"/sys/block/leat$i/queue/scheduler"
	echo 0 >"/sys/block/leat$i/queue/nomerges"
done

# ---- many at once ------------------------------------------------------------------------------------

for export in raid ordered; do
	case $export in
	raid) at=$data ;;
	ordered) at=$work/ordered ;;
	esac
	section "/$export: several clients at once"
	options=,nosharecache,actimeo=0,lookupcache=none
	of=/$export
	ok "a mount, $export" mounted "$m" rdma $options
	from=10.77.0.2
	ok "a second mount, $export" mounted "$other" rdma $options
	from='' of=''
	# two of leat beside those on the mounts, over other exports as well
	(for i in 1 2 3; do
		"$LEAT" put "$work/random" "$rdma/$export/beside" && "$LEAT" get "$rdma/$export/beside" "$work/beside" &&
			cmp "$work/random" "$work/beside" || exit 1
	done) >"$work/beside.log" 2>&1 &
	beside=$!
	timeout 100 "$pieces" "$rdma/model" >"$work/odd.log" 2>&1 &
	pieces_too=$!
	for part in files records; do
		counted "$part, $export" timeout 100 "$share" $part "$m" "$other" "$at"
	done
	ended "leat beside them, $export" $beside "$work/beside.log"
	ended "leat on another export, $export" $pieces_too "$work/odd.log"
	ok "umount, $export" timeout 100 umount "$other"
	ok "umount, $export" timeout 100 umount "$m"
done

# ---- clients that die in the middle of a request -----------------------------------------------------

section 'clients that die'
pinned() { awk '/^VmPin/ { print $2 }' "/proc/$leatd_pid/status"; }
no_queue_pairs() { [ "$(queue_pairs)" -eq 0 ]; }

cp "$work/random" "$work/slow/victim"
ok 'the others have gone' wait_for 100 no_queue_pairs
for kind in read write read write; do
	before=$(pinned)
	# eight requests, each of which takes the disk 250 ms and more: when one is over, others are under way
	"$LEAT" bench $kind "$rdma/slow/victim" --overwrite --size 4M --seconds 100 >"$work/victim.log" 2>&1 &
	victim=$!
	ok "one that ${kind}s" "$LEAT" trace pieces "$admin" --timeout 60
	said "one that ${kind}s" "^$(echo $kind | tr '[:lower:]' '[:upper:]') of 1048576 bytes in 16 pieces"
	kill -KILL "$victim"
	wait "$victim" 2>/dev/null
	ok "and what it had goes, $kind" wait_for 100 no_queue_pairs
	ok "another one, $kind" timeout 300 "$LEAT" get "$rdma/raid/big" "$work/back"
	ok "and its data, $kind" cmp "$work/random" "$work/back"
	# what is idle goes back after a while
	ok "registered memory, $kind: $before then $(pinned) KiB" test "$(pinned)" -le "$before"
done

of=/slow
ok 'mount' mounted "$m" rdma
of=''
cp "$work/big" "$work/slow/linux"
for kind in READ WRITE; do
	for i in 1 2 3; do
		if [ $kind = READ ]; then
			dd if="$m/linux" of=/dev/null bs=1M iflag=direct status=none 2>/dev/null &
		else
			dd if="$work/big" of="$m/linux" bs=1M oflag=direct conv=notrunc status=none 2>/dev/null &
		fi
		victim=$!
		ok "one on a mount, $kind $i" "$LEAT" trace pieces "$admin" --timeout 60
		said "one on a mount, $kind $i" "^$kind of [0-9]* bytes in"
		kill -KILL "$victim"
		wait "$victim" 2>/dev/null
	done
	ok "the mount goes on, $kind" sh -c "dd if='$m/linux' bs=4M iflag=direct status=none | cmp - '$work/big'"
done
ok 'umount' timeout 300 umount "$m"
ok 'and what they had goes' wait_for 100 no_queue_pairs

# ---- without chunks ----------------------------------------------------------------------------------

section 'TCP'
for export in raid ordered; do
	ok "lengths in, $export, TCP" timeout 100 "$LEAT" cp -rp "$work/lengths-$export" "$tcp/$export/lengths-tcp"
	rm -rf "$work/back-$export"
	ok "lengths out, $export, TCP" timeout 100 "$LEAT" get -rp "$tcp/$export/lengths-tcp" "$work/back-$export"
	same "lengths, $export, TCP" "$(fingerprint "$work/back-$export")" "$(fingerprint "$work/lengths-$export")"
done
of=/raid
ok 'mount, TCP' mounted "$m" tcp
of=''
ok 'a large one, TCP' sh -c "dd if='$m/big' bs=1M iflag=direct status=none | cmp - '$work/random'"
seconds=1
for kind in READ WRITE; do
	bad "no $kind in pieces, TCP" looked_at "$tcp" direct "$m" $kind
	said "no $kind in pieces, TCP" 'no request in pieces came within 1 s'
done
ok 'umount, TCP' timeout 100 umount "$m"
leatd_stop
ok 'the disk is free' umount "$disk"
finish
