#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# deps.sh - what the build needs and this machine lacks
#
#   deps.sh --missing SET...   name the missing packages on one line; nothing if all is there
#   deps.sh install SET...     install them by apt-get, as root or by `sudo -n`; where that cannot
#                              be, print the one line to type and fail
#
# SETs: build, rdma, nbd, check, fuzz, interop. A thing is looked for by what it does, not by its package's name, so
# that a machine with another distribution or its own compiler passes as well.

set -eu

has_cmd() { command -v "$1" >/dev/null 2>&1; }
has_pkg() { has_cmd pkg-config && pkg-config --exists "$1"; }
has_header() { [ -e "/usr/include/$1" ] || [ -e "/usr/local/include/$1" ]; }

# first_word "ccache gcc -m64": what runs if that is a compiler
first_word() { echo "${1%% *}"; }

need_build() {
	has_cmd "$(first_word "${CC:-gcc}")" || echo gcc
	has_header stdio.h || echo libc6-dev
	has_cmd ld && has_cmd objcopy || echo binutils
	has_cmd pkg-config || echo pkg-config
	has_cmd rpcgen || echo rpcsvc-proto
	has_pkg libtirpc || echo libtirpc-dev
	has_pkg inih || echo libinih-dev
	has_header libaio.h || echo libaio-dev
}

# What the build can do without, and then has no RDMA devices.
need_rdma() {
	has_pkg libibverbs || echo libibverbs-dev
	has_pkg librdmacm || echo librdmacm-dev
}

# The same for the plugin of nbdkit.
need_nbd() {
	has_pkg nbdkit || echo nbdkit-plugin-dev
}

need_check() {
	has_pkg cmocka || echo libcmocka-dev
	has_cmd "$(first_word "${CXX:-g++}")" || echo g++
	has_cmd mandoc || echo mandoc
	has_cmd patch || echo patch
	has_cmd tshark || echo tshark
}

need_fuzz() {
	has_cmd clang || echo clang
	has_cmd llvm-profdata || echo llvm
	ls /usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.fuzzer* >/dev/null 2>&1 || echo libclang-rt-dev
}

# The virtual machine of tests/interop, and the programs that run in it.
need_interop() {
	PATH=$PATH:/usr/sbin:/sbin
	has_cmd qemu-system-x86_64 || echo qemu-system-x86
	# one that needs no library: it is all there is when the machine starts
	has_cmd busybox && ! ldd "$(command -v busybox)" >/dev/null 2>&1 || echo busybox-static
	has_cmd cpio || echo cpio
	has_cmd depmod || echo kmod
	has_cmd xz || echo xz-utils
	has_cmd ip && has_cmd rdma || echo iproute2
	has_cmd mount.nfs || echo nfs-common
	has_cmd rpc.nfsd || echo nfs-kernel-server
	has_cmd rpcbind || echo rpcbind
	has_cmd rping || echo rdmacm-utils
	has_cmd tcpdump || echo tcpdump
	has_cmd tshark || echo tshark
	[ -d /etc/libibverbs.d ] || echo ibverbs-providers
	# tests/interop/linux_client_user.sh
	has_cmd git || echo git
	has_cmd setpriv || echo util-linux
	has_cmd setfacl || echo acl
	has_cmd perl || echo perl
	# tests/interop/filesystems.sh, linux_client_user.sh, long/powercut.sh, long/frozen.sh
	has_cmd mkfs.ext4 || echo e2fsprogs
	has_cmd mkfs.xfs || echo xfsprogs
	has_cmd mkfs.btrfs || echo btrfs-progs
	has_cmd mkfs.vfat || echo dosfstools
	has_cmd dmsetup || echo dmsetup
	# tests/interop/third_party.sh
	has_cmd ypserv || echo ypserv
	has_cmd ypcat || echo yp-tools
	has_cmd ypbind || echo ypbind-mt
	has_cmd rpc.rstatd || echo rstatd
	has_cmd rup || echo rstat-client
	# tests/interop/nbdkit.sh, nbd_kernel.sh, nbd_replay.sh
	has_cmd nbdkit || echo nbdkit
	has_cmd nbdcopy && has_cmd nbdsh || echo libnbd-bin
	PATH=/usr/bin python3 -c 'import nbd' 2>/dev/null || echo python3-libnbd
	has_cmd nbd-client || echo nbd-client
	has_cmd qemu-img || echo qemu-utils
	has_cmd fio || echo fio
	# scripts/bench-block.sh
	has_pkg libnbd || echo libnbd-dev
}

missing() {
	for set in "$@"; do
		case $set in
		build | rdma | nbd | check | fuzz | interop) need_"$set" ;;
		*) echo "deps.sh: no set named $set" >&2; exit 2 ;;
		esac
	done | sort -u | tr '\n' ' ' | sed 's/ $//'
}

mode=${1:-}
[ $# -gt 0 ] && shift
list=$(missing "$@")

case $mode in
--missing)
	[ -z "$list" ] || echo "$list"
	exit 0
	;;
install) ;;
*)
	echo 'usage: deps.sh --missing|install SET...' >&2
	exit 2
	;;
esac

[ -n "$list" ] || exit 0

line="apt-get install -y --no-install-recommends $list"
if ! has_cmd apt-get; then
	echo "deps: missing: $list (names of Debian; there is no apt-get here)" >&2
	exit 1
fi
if [ "$(id -u)" -eq 0 ]; then
	as_root='env'
elif has_cmd sudo && sudo -n true 2>/dev/null; then
	as_root='sudo -n env'
else
	echo "deps: missing: $list" >&2
	echo "deps: type: sudo $line" >&2
	exit 1
fi

echo "deps: installing $list"
log=$(mktemp)
policy=''
trap 'rm -f "$log"; [ -z "$policy" ] || $as_root rm -f "$policy"' EXIT
trap 'exit 129' HUP # a signal alone does not run the trap of EXIT in every shell
trap 'exit 130' INT
trap 'exit 143' TERM
# the tests start the daemons of packages that they need, in namespaces or in the virtual machine
if [ ! -e /usr/sbin/policy-rc.d ]; then
	policy=/usr/sbin/policy-rc.d
	$as_root sh -c "printf '#!/bin/sh\\nexit 101\\n' >$policy && chmod 755 $policy"
fi
apt() { $as_root DEBIAN_FRONTEND=noninteractive apt-get "$@" </dev/null >"$log" 2>&1; }

# $list is a list of package names
# shellcheck disable=SC2086
if ! apt install -y --no-install-recommends $list; then
	# most often the package lists are missing or old
	apt update || { cat "$log" >&2; echo 'deps: apt-get update failed' >&2; exit 1; }
	apt install -y --no-install-recommends $list || { cat "$log" >&2; echo "deps: failed: $line" >&2; exit 1; }
fi
