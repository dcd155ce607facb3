#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# disks.sh - exports of disks that end: one that is full, a user's quota that is used up, and one that
# goes away in the middle of reads and writes; through the page cache, past it, and in pieces, with writes of
# every stability. The caller gets the kernel's own error, data of WRITEs that succeeded is there, and
# all others are still served.

set -u
cd "$(dirname "$0")/../.." || exit
. tests/interop/lib.sh
in_vm 1200
setup
PATH=$PATH:/usr/sbin:/sbin
disks=$O/tests/interop/disks
[ -x "$disks" ] || { echo "SKIP: no $disks here (make interop-tools)"; exit 77; }
command -v mkfs.ext4 >/dev/null || { echo 'SKIP: no mkfs.ext4 here (e2fsprogs)'; exit 77; }
[ -x /sbin/mount.nfs ] || { echo 'SKIP: no mount.nfs here (nfs-common)'; exit 77; }
modprobe ext4 && modprobe null_blk nr_devices=0 || { echo 'SKIP: a kernel without ext4 or null_blk'; exit 77; }
mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config || exit

rdma=rdma://$addr local=local://$work/sock
m=$work/mnt disk=$work/disk nobody=65534
mkdir "$m" "$disk"
chmod 755 "$work"
head -c 1048576 "$work/random" >"$work/one"
dmesg -n 1 # what ext4 has to say of a disk that is gone is long

# ---- a disk of 12 MiB, which there is as long as its power is on ----------------------------------------

# its name is another one each time: the kernel keeps the name of a file system as long as it is open
turn=0 name=''

power_on() {
	turn=$((turn + 1))
	name=leat$turn
	null=/sys/kernel/config/nullb/$name
	mkdir "$null" && echo 1 >"$null/memory_backed" && echo 12 >"$null/size" && echo 4096 >"$null/blocksize" &&
		echo 2 >"$null/irqmode" && echo 100000 >"$null/completion_nsec" && echo 1 >"$null/power" &&
		mkfs.ext4 -q -b 4096 -m 0 -J size=4 -O quota -E quotatype=usrquota "/dev/$name" &&
		mount -o usrquota "/dev/$name" "$disk" || return 1
	mkdir "$disk/theirs"
	chown $nobody "$disk/theirs"
}
gone() { echo 0 >"$null/power"; }

section 'a disk'
ok 'a disk' power_on
mountpoint -q "$disk" || finish
all='rw,no_root_squash,clients=10.77.0.0/16'
leatd_start --listen "$local" --export "/cached=$disk,$all" \
	--export "/direct=$disk,$all,read=direct,write=direct" \
	--export "/pieces=$disk,$all,read=direct,write=direct,overlap=streams,grain=64k"

# a user without space loses no data of others, and no write verifier changes
none_lost() { [ "$("$LEAT" ctl stats "$local" | awk '$1 == "sync_failed" { print $2 }')" = 0 ]; }

# ---- full ----------------------------------------------------------------------------------------------

section 'full'
for export in cached direct pieces; do
	for how in unstable data file; do
		ok "$export, $how" timeout 300 "$disks" fill "$local/$export" full $how ENOSPC
		ok "the disk is full, $export, $how" sh -c "[ \$(df --output=avail '$disk' | tail -n 1) -lt 1024 ]"
		ok "room again, $export, $how" timeout 100 "$LEAT" rm "$local/$export/full"
		ok "nothing is lost, $export, $how" none_lost
	done
	of=/$export
	ok "mount, $export" mounted "$m" rdma
	of=''
	for how in oflag=direct conv=fsync; do
		bad "Linux, $export, $how" timeout 300 dd if=/dev/zero of="$m/full" bs=1M count=20 $how status=none
		said "Linux, $export, $how" 'No space left on device'
		rm -f "$m/full"
	done
	ok "and it goes on, $export" dd if="$work/random" of="$m/small" bs=1M count=1 conv=fsync
	ok "with what it was given, $export" cmp -n 1048576 "$work/random" "$disk/small"
	rm -f "$m/small"
	ok "umount, $export" timeout 100 umount "$m"
done

# ---- a quota that is used up ---------------------------------------------------------------------------

section 'a quota'
creds=$O/tests/unit/test_creds
if [ -x "$creds" ]; then
	ok 'who may exceed it' "$creds"
	bad 'and this root might, so that it was seen' grep -q SKIPPED "$work/out"
fi
if "$disks" quota "/dev/$name" $nobody 2048 2>"$work/quota.log"; then
	as_nobody() { timeout 300 setpriv --reuid=$nobody --regid=$nobody --clear-groups "$@"; }
	for export in cached direct pieces; do
		case $export in
		cached) how=data ;;
		direct) how=file ;;
		pieces) how=unstable ;;
		esac
		ok "$export, $how" as_nobody "$disks" fill "$local/$export/theirs" full $how EDQUOT
		ok "no more than that, $export, $how" sh -c "[ \$(du -sk '$disk/theirs' | cut -f 1) -le 2052 ]"
		ok "which is another's, $export, $how" timeout 100 "$LEAT" put "$work/one" "$local/demo/other"
		ok "and nobody else's, $export, $how" timeout 100 "$LEAT" put "$work/one" "$local/$export/theirs/other"
		timeout 100 "$LEAT" rm "$local/$export/theirs/other" >"$work/rm.log" 2>&1
		ok "room again, $export, $how" as_nobody "$LEAT" rm "$local/$export/theirs/full"
		ok "nothing is lost, $export, $how" none_lost
	done
else
	echo "SKIP: quotas: $(cat "$work/quota.log")"
fi

# ---- gone ----------------------------------------------------------------------------------------------

section 'gone'
at_work() { grep -q 'at work' "$work/work"; }
# through the page cache only a sync must fail: reads of cached data succeed
for way in 'direct read' 'direct write' 'pieces write' 'cached sync'; do
	export=${way% *}
	timeout 300 "$disks" work "$local/$export" file "${way#* }" >"$work/work" 2>&1 &
	worker=$!
	ok "at work, $way" wait_for 100 at_work
	ok "the disk goes, $way" gone
	ended "told, $way" $worker "$work/work"
	# the file system gives up by and by: first what it asks the disk, then what it would write
	said "told, $way" 'then error \(5\|30\) '
	ok "another export, $way" timeout 100 "$LEAT" put "$work/one" "$rdma/demo/beside"
	ok "its data, $way" cmp "$work/one" "$work/export/beside"
	[ "$export" = cached ] || bad "what was there is not, $way" timeout 100 "$LEAT" get "$rdma/$export/file" "$work/back"
	umount -l "$disk"
	ok "a new disk, $way" power_on
	ok "which is served, $way" timeout 100 "$LEAT" ctl reload "$local"
	ok "in, $way" timeout 100 "$LEAT" put "$work/one" "$rdma/$export/new"
	ok "out, $way" timeout 100 "$LEAT" get "$rdma/$export/new" "$work/back"
	ok "and right, $way" cmp "$work/one" "$work/back"
done
of=/direct
ok 'mount' mounted "$m" rdma
of=''
dd if="$work/random" of="$m/file" bs=1M count=1 conv=fsync status=none
dd if="$m/file" of=/dev/null bs=64k iflag=direct status=none && gone
bad 'Linux reads' timeout 100 dd if="$m/file" of=/dev/null bs=64k iflag=direct
said 'Linux reads' 'Input/output error'
bad 'Linux writes' timeout 100 dd if="$work/random" of="$m/file" bs=64k count=1 oflag=direct conv=notrunc
said 'Linux writes' 'Input/output error\|Read-only file system'
ok 'umount' timeout 100 umount -l "$m"
leatd_stop
ok 'nobody holds the disk' umount "$disk"
finish
