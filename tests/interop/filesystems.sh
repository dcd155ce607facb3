#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# filesystems.sh - handles on ext4, xfs, btrfs, tmpfs and overlayfs: they fit, they are the kernel's,
# and Linux's client goes on with an open file when leatd was killed and what it holds was renamed; and
# what is said of sizes, times and links on each of them, on vfat and on an ext4 without fractions of a second

set -u
cd "$(dirname "$0")/../.." || exit
. tests/interop/lib.sh
in_vm 2000
setup
m=$work/mnt
mkdir "$m"
PATH=$PATH:/usr/sbin:/sbin

# image NAME MIB MKFS...: a file system of its own in a file, at $work/disk
image() {
	name=$1
	rm -f "$work/image"
	truncate -s "$2M" "$work/image"
	shift 2
	if ! command -v "$1" >/dev/null; then
		echo "SKIP: $name: no $1 here (scripts/deps.sh install interop)"
		return 1
	fi
	"$@" "$work/image" >"$work/mkfs.log" 2>&1 || { ok "$name: $1" cat "$work/mkfs.log" /no/such; return 1; }
	modprobe -a loop "${name%% *}" overlay 2>/dev/null
	mount -o loop "$work/image" "$work/disk" 2>"$work/mount.log" ||
		{ echo "SKIP: $name: not in this kernel: $(head -n 1 "$work/mount.log")"; return 1; }
}

# what an open file has to go through; the descriptor is held by this shell
try() { # NAME, of what is mounted at $fs
	export=$fs/export
	mkdir "$export" "$export/d" "$export/d/e"
	echo "first of $1" >"$export/d/e/f"
	: >"$work/leatd.log"
	serve "$export"
	ok "$1: kernel handles" grep -q "export /fs: .*kernel handles" "$work/leatd.log"
	ok "$1: mount" timeout 100 mount -t nfs \
		-o "vers=3,proto=tcp,port=2049,mountport=2049,mountproto=tcp,nolock,noac" "$addr:/fs" "$m"
	if ! [ -r "$m/d/e/f" ]; then # exec would end us
		ok "$1: the file" cat "$m/d/e/f"
		umount "$m"
		kill -KILL "$leatd_pid"
		leatd_pid=
		return
	fi
	exec 5<"$m/d/e/f"
	ok "$1: a listing with handles" ls -lR "$m"
	kill -KILL "$leatd_pid"
	wait "$leatd_pid" 2>/dev/null
	mv "$export/d/e/f" "$export/g"
	mv "$export/d" "$export/h"
	echo "another of $1" >"$export/other"
	mkdir "$export/d"
	# the directory of the export moves, too, and is not the first any more
	mv "$export" "$fs/moved"
	serve "$fs/moved" --export "/a=$fs/moved/h,clients=10.77.0.0/16"
	read -r line <&5
	same "$1: the file that was open, renamed while leatd was down" "$line" "first of $1"
	same "$1: all that is there" "$(cd "$m" && echo *)" 'd g h other'
	exec 5<&-
	rm "$fs/moved/g"
	bad "$1: a file that was removed" cat "$m/g"
	ok "$1: umount" umount "$m"
	kill "$leatd_pid"
	wait "$leatd_pid" 2>/dev/null
	leatd_pid=
}

# serve DIR [OPTION...]: as /fs
serve() {
	dir=$1
	shift
	rm -f "$work/words"
	mkfifo "$work/words"
	"$LEATD" --state-dir "$work/state" "$@" \
		--export "/fs=$dir,rw,no_root_squash,clients=10.77.0.0/16" \
		--listen tcp://0.0.0.0:2049 >"$work/words" 2>>"$work/leatd.log" 5<&- &
	leatd_pid=$!
	while read -r line; do
		[ "$line" != 'leatd: ready' ] || break
	done <"$work/words"
}

# what FSINFO and PATHCONF say of the file system at DIR is so, and whether it orders names
limits() { # NAME DIR yes|no
	if [ -x "$limits" ]; then
		ok "$1: sizes, times, links" env TMPDIR="$2" ORDERS="$3" timeout 300 "$limits"
	else
		echo "SKIP: $1: no $limits here (make interop-tools)"
	fi
}

# requests that leave the page cache out, of every alignment, beside local processes
direct() { # NAME DIR [any]
	if [ -x "$direct" ]; then
		ok "$1: direct" env TMPDIR="$2" timeout 120 "$direct"
		# where the kernel seldom reads without waiting, the other half cannot be shown
		[ "${3:-}" = any ] || ok "$1: direct, the kernel" env TMPDIR="$2" timeout 120 "${direct}_kernel"
	else
		echo "SKIP: $1: no $direct here (make interop-tools)"
	fi
}

# holes, zeroes and extents, beside a model
space() { # NAME DIR
	if [ -x "$space" ]; then
		ok "$1: space" env TMPDIR="$2" timeout 120 "$space"
	else
		echo "SKIP: $1: no $space here (make interop-tools)"
	fi
}

# access times are what they would be without leatd
atimes() { # NAME DIR
	if [ -x "$atimes" ]; then
		ok "$1: access times" env TMPDIR="$2" timeout 120 "$atimes"
	else
		echo "SKIP: $1: no $atimes here (make interop-tools)"
	fi
}

atimes=$O/tests/flow/test_server_atime
limits=$O/tests/unit/test_fs_limits
direct=$O/tests/unit/test_store_aio
space=$O/tests/unit/test_store_space
mkdir "$work/disk" "$work/over" "$work/memory"
for kind in ext4 xfs btrfs; do
	section "$kind"
	case $kind in
	ext4) image ext4 64 mkfs.ext4 -q || continue ;;
	xfs) image xfs 320 mkfs.xfs -q || continue ;;
	btrfs) image btrfs 128 mkfs.btrfs -q || continue ;;
	esac
	fs=$work/disk
	limits "$kind" "$fs" yes
	direct "$kind" "$fs" "$([ "$kind" = ext4 ] || echo any)"
	space "$kind" "$fs"
	atimes "$kind" "$fs"
	try "$kind"

	# overlayfs puts its own around the handles of what is below
	mkdir "$work/disk/upper" "$work/disk/work" "$work/disk/low"
	if mount -t overlay -o "index=on,nfs_export=on,lowerdir=$work/disk/low,upperdir=$work/disk/upper,workdir=$work/disk/work" \
		overlay "$work/over" 2>"$work/mount.log"; then
		fs=$work/over
		limits "overlayfs on $kind" "$fs" no
		direct "overlayfs on $kind" "$fs" any
		space "overlayfs on $kind" "$fs"
		atimes "overlayfs on $kind" "$fs"
		try "overlayfs on $kind"
		umount "$work/over"
	else
		echo "SKIP: overlayfs on $kind: $(head -n 1 "$work/mount.log")"
	fi
	umount "$work/disk"
done

section 'small inodes, vfat'
if image ext4 64 mkfs.ext4 -q -I 128; then
	limits 'ext4, inodes of 128' "$work/disk" yes
	atimes 'ext4, inodes of 128' "$work/disk"
	umount "$work/disk"
fi
if image ext3 64 mkfs.ext4 -q -b 1024 -O '^extents,^64bit,^metadata_csum'; then
	limits 'ext4, blocks of 1024 without extents' "$work/disk" yes
	direct 'ext4, blocks of 1024 without extents' "$work/disk" any
	space 'ext4, blocks of 1024 without extents' "$work/disk"
	atimes 'ext4, blocks of 1024 without extents' "$work/disk"
	umount "$work/disk"
fi
if image vfat 32 mkfs.vfat; then
	limits vfat "$work/disk" no
	direct vfat "$work/disk" any
	space vfat "$work/disk"
	umount "$work/disk"
fi

# what was answered is on the disk: the image, copied while it is in use, is what a power cut leaves
power_cut() { # NAME MIB MKFS...
	name=$1
	image "$@" || return 0
	: >"$work/leatd.log"
	serve "$work/disk"
	ok "$name: mount" timeout 100 mount -t nfs \
		-o "vers=3,proto=tcp,port=2049,mountport=2049,mountproto=tcp,nolock" "$addr:/fs" "$m"
	ok "$name: names" sh -c "cd '$m' && mkdir d d/e && : >d/e/f && ln -s target d/l && mkfifo d/p && mv d/e e"
	cp "$work/image" "$work/cut"
	umount "$m"
	kill "$leatd_pid"
	wait "$leatd_pid" 2>/dev/null
	leatd_pid=
	umount "$work/disk"
	mv "$work/cut" "$work/image"
	case $name in
	*ext*) e2fsck -fy "$work/image" >"$work/fsck.log" 2>&1 ;;
	esac
	ok "$name: mount after the cut" mount -o loop "$work/image" "$work/disk"
	same "$name: what the cut has left" \
		"$(cd "$work/disk" && find d e -printf '%y %p %l\n' 2>&1 | LC_ALL=C sort)" \
		"d d 
d e 
f e/f 
l d/l target
p d/p "
	umount "$work/disk"
}

section 'power cuts'
power_cut ext2 64 mkfs.ext2 -q
power_cut 'ext4 without a journal' 64 mkfs.ext4 -q -O ^has_journal
power_cut ext4 64 mkfs.ext4 -q
power_cut xfs 320 mkfs.xfs -q
power_cut btrfs 128 mkfs.btrfs -q

section tmpfs
mount -t tmpfs tmpfs "$work/memory"
fs=$work/memory
limits tmpfs "$fs" yes
atimes tmpfs "$fs"
try tmpfs
finish
