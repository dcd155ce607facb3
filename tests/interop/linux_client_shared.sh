#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# linux_client_shared.sh - Linux's NFS client on a leatd, twice, with several connections: writers at
# once, records of one file, names that another client takes away

set -u
cd "$(dirname "$0")/../.." || exit
. tests/interop/lib.sh
in_vm 2400
setup
[ -x /sbin/mount.nfs ] || { echo 'SKIP: no mount.nfs here (nfs-common)'; exit 77; }
share=$O/tests/interop/share
[ -x "$share" ] || { echo "SKIP: no $share here (make interop-tools)"; exit 77; }

m=$work/mnt other=$work/other
mkdir "$m" "$other"
head -c 8388611 /dev/urandom >"$work/big"

connections() { # those that leatd has
	if [ $way = rdma ]; then
		rdma resource show qp | grep -c 'type RC state RTS .*comm leatd'
	else
		ss -Htn state established '( sport = :2049 )' | wc -l
	fi
}

has_connections() { [ "$(connections)" -eq "$1" ]; }

# idle DIR: those of its connections that have carried nothing but what sets them up
idle() {
	awk -v dir="$1" '$1 == "device" { on = $5 == dir }
		on && $1 == "xprt:" { n += $8 < 20 } END { print n + 0 }' /proc/self/mountstats
}

leatd_start
for way in rdma tcp; do
	section "two mounts over $way"
	rm -rf "$work/export/"*
	options=nosharecache,actimeo=0,lookupcache=none
	ok "mount with four connections, $way" mounted "$m" $way ",nconnect=4,$options"
	# by another address it is another client, with a connection of its own
	from=10.77.0.2
	ok "a second mount, $way" mounted "$other" $way ",$options"
	from=''
	ok "a file by four connections, $way" cp "$work/big" "$m/big"
	ok "a file by four connections, $way" cmp "$work/big" "$work/export/big"
	ok "and out by another, $way" cmp "$work/big" "$other/big"
	ok "and by four, past the cache, $way" sh -c \
		"dd if='$m/big' bs=32k iflag=direct status=none | cmp - '$work/big'"
	ok "connections, $way" wait_for 100 has_connections 5
	same "connections of the first that are idle, $way" "$(idle "$m")" 0
	for part in files records append names; do
		counted "$part, $way" timeout 100 "$share" $part "$m" "$other" "$work/export"
	done
	ok "umount, $way" timeout 100 umount "$other"
	ok "connections, $way, later" wait_for 100 has_connections 4

	# the same client twice, by the same connections
	ok "a second mount of one client, $way" mounted "$other" $way ",nconnect=4,$options"
	same "connections of one client, $way" "$(connections)" 4
	rm "$work/export/share-"*
	for part in append names; do
		counted "$part of one client, $way" timeout 100 "$share" $part "$m" "$other" "$work/export"
	done
	ok "umount, $way" timeout 100 umount "$other"
	ok "umount, $way" timeout 100 umount "$m"
done
same 'no queue pair is left' "$(queue_pairs)" 0
finish
