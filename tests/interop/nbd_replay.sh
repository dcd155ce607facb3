#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# nbd_replay.sh - file systems on Linux's nbd device survive a power cut of the server at any moment
#
# In the machine, leatd runs with a recorder (tests/replay) that logs the writes to the file of a volume with their data, and its
# syncs; nbdkit makes the volume a device, and ext4 and xfs work on it. tests/replay/replay makes the disk of a power
# cut: of the log's beginning up to some record, what a sync has covered, and any part of the rest. ext4 is checked at
# MOMENTS=200 outside, xfs at XFS_MOMENTS=30 in the machine, since only the kernel recovers its log. The moments and the parts
# follow from SEED. At the end the same without regard to syncs: that must break file systems.

set -u
cd "$(dirname "$0")/../.." || exit
. tests/interop/lib.sh
PATH=/usr/bin:$PATH:/usr/sbin:/sbin
: "${O:=build/obj/default}" "${MOMENTS:=200}" "${XFS_MOMENTS:=30}" "${SEED:=$$}"
record=$O/tests/replay/record.so replay=$O/tests/replay/replay

for program in nbdkit nbd-client fio mkfs.ext4 e2fsck; do
	command -v "$program" >/dev/null || { echo "SKIP: no $program here (scripts/deps.sh install interop)"; exit 77; }
done
[ -e "$plugin" ] || { echo "SKIP: no $plugin: it is built where nbdkit's headers are (nbdkit-plugin-dev)"; exit 77; }
for program in "$record" "$replay"; do
	[ -x "$program" ] || { echo "no $program: make interop-tools"; exit 1; }
done

# moments N FROM TO: "MOMENT SEED" lines
moments() {
	awk -v n="$1" -v from="$2" -v to="$3" -v seed="$SEED" 'BEGIN { srand(seed)
		for (i = 0; i < n; i++) print from + int(rand() * (to - from + 1)), int(rand() * 1e9) }'
}

# ---- outside: ext4 ------------------------------------------------------------------------------------

# is_clean IMAGE: after its journal, and the list of inodes that were being removed, which e2fsck -fn would report
is_clean() {
	e2fsck -y -E journal_only "$1" >"$out/e2fsck" 2>&1
	[ $? -le 1 ] || return 1
	e2fsck -p "$1" >>"$out/e2fsck" 2>&1
	[ $? -le 1 ] || return 1
	e2fsck -fn "$1" >>"$out/e2fsck" 2>&1
}

# broken_of N [forget]: how many of N are not clean
broken_of() {
	broken=0
	while read -r moment seed; do
		"$replay" make "$out/ext4.log" "$moment" "$seed" "$out/image" "$bytes" ${2:-} || return
		is_clean "$out/image" && continue
		broken=$((broken + 1))
		[ -n "${2:-}" ] || [ "$broken" -gt 3 ] || { echo "  not clean: record $moment, seed $seed"; tail -n 5 "$out/e2fsck"; }
	done <<-LIST
		$(moments "$1" "$(cat "$out/ext4.from")" "$(cat "$out/ext4.to")")
	LIST
}

look() {
	bytes=$(cat "$out/ext4.bytes")
	broken_of "$MOMENTS"
	same "ext4 after a power cut at $MOMENTS moments (SEED=$SEED): file systems that are not clean" "$broken" 0
	broken_of 20 forget
	same 'ext4 without regard to syncs is broken' "$((broken > 0))" 1
	echo "          $broken of 20 are not clean if syncs are left out"
}

if [ -z "${LEAT_VM:-}" ]; then
	out=$(mktemp -d)
	trap 'rm -rf "$out"' EXIT
	export SEED
	in_vm 3000 "$out"
	[ -e "$out/ext4.to" ] && look
	finish
fi

# ---- in the machine ------------------------------------------------------------------------------------

setup
modprobe nbd && modprobe loop || { echo 'SKIP: this kernel has no nbd'; exit 77; }
dev=/dev/nbd0 mnt=$work/mnt
mkdir "$mnt"
volume_options=,block=4096

# serve MIB KIND: an empty volume as $dev, recorded in $log
serve() {
	volume=$work/vol.$2 log=$work/$2.log
	truncate -s "${1}M" "$volume"
	: >"$log"
	echo $(($1 << 20)) >"$OUT/$2.bytes"
	export REPLAY_VOLUME="$volume" REPLAY_LOG="$log" LD_PRELOAD="$PWD/$record"
	volume_start
	unset LD_PRELOAD
	nbdkit_start
	ok "$2: nbd-client" timeout 60 nbd-client -unix "$work/nbd.sock" -b 4096 -C 2 "$dev"
}

load() { # files, names and syncs
	i=0
	while [ "$i" -lt 6 ]; do
		mkdir "$mnt/d$i"
		cp -r include scripts "$mnt/d$i/"
		sync -f "$mnt/d$i/scripts/deps.sh"
		mv "$mnt/d$i/include" "$mnt/d$i/moved"
		[ "$i" -lt 2 ] || rm -r "$mnt/d$((i - 2))/scripts"
		sync "$mnt/d$i/moved/leat.h"
		fio --name="load$i" --directory="$mnt/d$i" --ioengine=psync --rw=randwrite --bsrange=4k-64k --size=1M --numjobs=4 \
			--io_size=1M --fsync=4 --minimal --verify_state_save=0 || return
		i=$((i + 1))
	done
}

# recorded KIND: a file system, a load, and the numbers of records from which on and up to which
recorded() {
	ok "$1: mkfs" "mkfs.$1" -q "$dev"
	ok "$1: mount" mount -t "$1" "$dev" "$mnt"
	sync -f "$mnt"
	"$replay" count "$log" >"$OUT/$1.from" 2>/dev/null
	ok "$1: a load" load
	"$replay" count "$log" >"$OUT/$1.to" 2>"$work/what"
	echo "          $1: $(cat "$OUT/$1.to") records, $(cat "$work/what")"
	ok "$1: umount" umount "$mnt"
	ok "$1: nbd-client -d" timeout 60 nbd-client -d "$dev"
	nbdkit_end
	volume_end
	"$replay" make "$log" "$("$replay" count "$log" 2>/dev/null)" 0 "$work/image" "$(cat "$OUT/$1.bytes")"
	ok "$1: the whole log makes the volume" cmp "$work/image" "$volume"
	rm "$volume" "$work/image"
}

section 'ext4'
serve 64 ext4
recorded ext4
mv "$log" "$OUT/ext4.log"

if command -v mkfs.xfs >/dev/null && modprobe xfs; then
	section 'xfs'
	serve 300 xfs
	recorded xfs
	section 'xfs after power cuts'
	moments "$XFS_MOMENTS" "$(cat "$OUT/xfs.from")" "$(cat "$OUT/xfs.to")" >"$work/moments"
	while read -r moment seed; do
		"$replay" make "$log" "$moment" "$seed" "$work/image" "$(cat "$OUT/xfs.bytes")"
		ok "xfs: mount, record $moment, seed $seed" mount -t xfs -o loop "$work/image" "$mnt"
		ok "xfs: umount, record $moment, seed $seed" umount "$mnt"
		ok "xfs: xfs_repair -n, record $moment, seed $seed" xfs_repair -n "$work/image"
	done <"$work/moments"
else
	echo '  SKIP: no mkfs.xfs here, or no xfs in this kernel'
fi
finish
