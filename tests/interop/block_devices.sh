#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# block_devices.sh - stores on block devices of several kinds: with and without discard, with blocks of 512 and
# 4096 bytes, a partition, devices that cannot tell whether I/O would block. What is written, zeroed and discarded
# changes no neighbour, by cached and direct I/O; what a device supports is known before.

set -u
cd "$(dirname "$0")/../.." || exit
. tests/interop/lib.sh
in_vm 900
setup
PATH=$PATH:/usr/sbin:/sbin
devices=$O/tests/unit/test_store_device
[ -x "$devices" ] || { echo "SKIP: no $devices here (make interop-tools)"; exit 77; }

# try WHAT DEVICE [CAPABILITY VALUE]...: the values are those of the device's queue
try() {
	what=$1 device=$2
	shift 2
	[ -b "$device" ] || { echo "SKIP: $what: no device $device"; return; }
	queue=/sys/class/block/${device##*/}/queue
	[ -d "$queue" ] || queue=/sys/class/block/${device##*/}/../queue
	while [ $# -gt 1 ]; do # the device is of the kind that it should be
		value=$(cat "$queue/$1")
		[ "$value" -eq 0 ] || [ "$1" = logical_block_size ] || value=yes
		same "$what: $1" "$value" "$2"
		shift 2
	done
	ok "$what" env TMPDIR="$work" DEVICE_TO_OVERWRITE="$device" timeout 300 "$devices"
}

# scsi NAME OPTION...: $disk is a simulated SCSI disk
scsi() {
	disk=''
	modprobe -r scsi_debug 2>/dev/null
	before=$(ls /sys/block)
	modprobe -a sd_mod && modprobe scsi_debug dev_size_mb=16 "$@" || return
	udevadm settle 2>/dev/null || sleep 1 # no udev: partitions are read by a worker of the kernel
	for name in $(ls /sys/block); do
		echo "$before" | grep -qx "$name" || disk=/dev/$name
	done
}

section loop
modprobe loop
ok 'loop devices' env TMPDIR="$work" timeout 300 "$devices"

section 'memory (brd)'
modprobe brd rd_nr=1 rd_size=16384 && try brd /dev/ram0

section 'SCSI'
scsi lbpu=1 lbpws=1 sector_size=512 physblk_exp=3 &&
	try 'SCSI with UNMAP' "$disk" discard_max_bytes yes write_zeroes_max_bytes yes logical_block_size 512
scsi lbpu=1 lbpws=1 sector_size=4096 &&
	try 'SCSI with blocks of 4096' "$disk" discard_max_bytes yes logical_block_size 4096
scsi sector_size=512 no_uld=0 num_parts=1 lbpu=1 &&
	try 'a partition' "${disk}1" discard_max_bytes yes
scsi sector_size=512 lbpu=0 lbpws=0 lbpws10=0 &&
	try 'SCSI without UNMAP' "$disk" discard_max_bytes 0
disk=''
modprobe -r scsi_debug 2>/dev/null

# Not null_blk: up to Linux 6.1 it writes past its pages if memory is aligned to 512 bytes and its blocks are larger.

section 'device mapper'
if command -v dmsetup >/dev/null && modprobe dm-mod && [ -b /dev/ram0 ]; then
	echo '0 32768 linear /dev/ram0 0' | dmsetup create leat
	dmsetup mknodes leat
	device=$(readlink -f /dev/mapper/leat)
	try 'dm-linear' "$device"
	dmsetup remove leat
else
	echo 'SKIP: no dmsetup here'
fi
finish
