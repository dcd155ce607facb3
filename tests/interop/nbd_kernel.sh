#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# nbd_kernel.sh - Linux's nbd device on a block volume, through nbdkit with the plugin
#
# The volume is a block device of the machine, a loop device. First nbdkit has it over RDMA: nbdinfo, nbdcopy both ways, fio with
# verification, leatd killed under it. The rest is over the local fabric: mkfs.ext4, files, fio with verification,
# fstrim, blkdiscard; leatd is killed under the mounted file system and starts again; its machine is reset (another boot
# id in its state) with data unflushed, on the device and in the file system.

set -u
cd "$(dirname "$0")/../.." || exit
. tests/interop/lib.sh
PATH=/usr/bin:$PATH:/usr/sbin:/sbin

for program in nbdkit nbdinfo nbdcopy nbd-client fio mkfs.ext4 blkdiscard fstrim; do
	command -v "$program" >/dev/null || { echo "SKIP: no $program here (scripts/deps.sh install interop)"; exit 77; }
done
[ -e "$plugin" ] || { echo "SKIP: no $plugin: it is built where nbdkit's headers are (nbdkit-plugin-dev)"; exit 77; }
in_vm 1500
setup
modprobe nbd && modprobe loop || { echo 'SKIP: this kernel has no nbd'; exit 77; }
dev=/dev/nbd0 mnt=$work/mnt mib=128
mkdir "$mnt"
truncate -s "${mib}M" "$work/image"
volume=$(losetup -f --show "$work/image")

# nbd_up: $dev is the volume, by 2 connections
nbd_up() {
	nbdkit_start "$@"
	ok 'nbd-client' timeout 60 nbd-client -unix "$work/nbd.sock" -b 4096 -C 2 "$dev"
}

nbd_down() {
	ok 'nbd-client -d' timeout 60 nbd-client -d "$dev"
	nbdkit_end
}

# fio_on FILE NAME OPTION...
fio_on() {
	file=$1 name=$2
	shift 2
	timeout 400 fio --name="$name" --filename="$file" --ioengine=libaio --direct=1 --verify=crc32c --verify_state_save=0 \
		--minimal "$@"
}

backed() { echo $(($(stat -c %b "$work/image") / 2048)); } # MiB of the image

# fio_of NAME OPTION...: with fio's engine for NBD
fio_of() {
	name=$1
	shift
	timeout 400 fio --name="$name" --ioengine=nbd --uri="$nbd" --verify=crc32c --verify_state_save=0 --minimal "$@"
}

section 'nbdkit over RDMA'
volume_over=rdma
volume_start
nbdkit_start conns=2
ok 'nbdinfo' nbdinfo "$nbd"
said 'nbdinfo' "export-size: $((mib << 20)) "
head -c 33554432 /dev/urandom >"$work/copy"
ok 'nbdcopy to the volume' nbdcopy "$work/copy" "$nbd"
ok 'its bytes' cmp -n 33554432 "$work/copy" "$volume"
ok 'nbdcopy from the volume' nbdcopy "$nbd" "$work/back"
same 'its bytes' "$(head -c 33554432 "$work/back" | cksum)" "$(cksum <"$work/copy")"
rm "$work/back"
same 'queue pairs of both ends' "$(($(queue_pairs) >= 4))" 1
ok 'fio, verified' fio_of plain --rw=randwrite --bsrange=512-256k --bs_unaligned=0 --blockalign=512 --iodepth=16 --size=16M \
	--verify_interval=512 --fsync=32
fio_of killed --rw=randwrite --bs=16k --iodepth=16 --size=16M --fsync=64 --loops=3 >"$work/fio" 2>&1 &
fio=$!
rounds=0
while [ "$rounds" -lt 2 ] && sleep 1 && kill -0 "$fio" 2>/dev/null; do
	volume_kill
	volume_start
	rounds=$((rounds + 1))
done
ended 'fio, verified, while leatd is killed' "$fio" "$work/fio"
same 'leatd was killed under it' "$((rounds > 1))" 1
ok 'a flush, after which the machine may be reset' nbdcopy --flush "$work/copy" "$nbd"
volume_reset
ok 'a flush after it' nbdcopy --flush "$work/random" "$nbd"
ok 'its bytes' cmp -n 4194304 "$work/random" "$volume"
ok 'a copy that is not flushed' nbdcopy "$work/copy" "$nbd"
volume_reset
bad 'a flush after it' nbdcopy --flush "$work/random" "$nbd"
nbdkit_end
volume_end
wait_for 60 sh -c '[ "$(rdma resource show qp | grep -c "type RC")" -eq 0 ]'
same 'queue pairs at the end' "$(queue_pairs)" 0
rm "$work/copy"
volume_over=local

section 'a device'
volume_start
nbd_up
same 'its size' "$(blockdev --getsize64 "$dev")" $((mib << 20))
ok 'its bytes' sh -c "head -c 4194304 '$work/random' | dd of=$dev bs=64k iflag=fullblock oflag=direct conv=fsync"
ok 'its bytes' cmp -n 4194304 "$work/random" "$volume"
ok 'fio, verified' fio_on "$dev" device --rw=randwrite --bs=4k --iodepth=32 --size=64M --io_size=8M --fsync=256
before=$(backed)
ok 'blkdiscard -z' blkdiscard -z "$dev"
ok 'zeroes' cmp -n $((mib << 20)) /dev/zero "$dev"
ok 'blkdiscard' blkdiscard "$dev"
same 'discarded' "$(($(backed) < before))" 1

section 'a file system'
ok 'mkfs.ext4' mkfs.ext4 -q -F "$dev"
ok 'mount' mount "$dev" "$mnt"
make_tree "$mnt/tree"
tree=$(fingerprint "$mnt/tree")
ok 'fio, verified' fio_on "$mnt/file" files --rw=randrw --bsrange=4k-256k --iodepth=16 --size=32M --fsync=64
rm "$mnt/file"
ok 'sync' sync -f "$mnt"
before=$(backed)
ok 'fstrim' fstrim -v "$mnt"
same 'trimmed' "$(($(backed) < before))" 1

section 'leatd is killed under it'
fio_on "$mnt/file" killed --rw=randwrite --bs=16k --iodepth=16 --size=32M --fsync=64 --loops=2 >"$work/fio" 2>&1 &
fio=$!
rounds=0
while [ "$rounds" -lt 4 ] && sleep 1 && kill -0 "$fio" 2>/dev/null; do
	volume_kill
	volume_start
	rounds=$((rounds + 1))
done
ended 'fio, verified, while leatd is killed' "$fio" "$work/fio"
same 'leatd was killed under it' "$((rounds > 1))" 1
cold
same 'the tree' "$(fingerprint "$mnt/tree")" "$tree"
ok 'umount' umount "$mnt"
nbd_down
ok 'fsck' fsck.ext4 -f -n "$volume"

section 'its machine is reset'
nbd_up
ok 'a write that is flushed' sh -c "echo kept | dd of=$dev bs=4096 conv=sync,fsync oflag=direct seek=30000"
volume_reset
ok 'a flush after it' sh -c "echo kept | dd of=$dev bs=4096 conv=sync,fsync oflag=direct seek=30001"
ok 'a write that is not flushed' sh -c "echo lost | dd of=$dev bs=4096 conv=sync oflag=direct seek=30002"
volume_reset
bad 'a flush after it' sh -c "echo new | dd of=$dev bs=4096 conv=sync,fsync oflag=direct seek=30003"
bad 'the next flush' sh -c "echo new | dd of=$dev bs=4096 conv=sync,fsync oflag=direct seek=30004"
nbd_down
nbd_up
ok 'attached again' sh -c "echo new | dd of=$dev bs=4096 conv=sync,fsync oflag=direct seek=30003"
ok 'mount' mount "$dev" "$mnt"
ok 'a file whose data is not flushed' dd if="$work/random" of="$mnt/unflushed" bs=64k oflag=direct
volume_reset
bad 'its fsync' sync "$mnt/unflushed"
bad 'the file system reports it' touch "$mnt/more"
umount "$mnt"
nbd_down
nbd_up
ok 'mount, with recovery' mount "$dev" "$mnt"
same 'the tree' "$(fingerprint "$mnt/tree")" "$tree"
ok 'umount' umount "$mnt"
nbd_down
volume_end
losetup -d "$volume"
[ "$failed" -eq 0 ] || { tail -n 8 "$work/nbdkit.log"; dmesg | tail -n 20; }
finish
