#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# linux_client_names.sh - Linux's own NFS client keeps the names that it knows when it changes a directory, and
# never one that is wrong: calls of `rm -r`, and a race of local changes against those of a mount
#
# NAMES_ROUNDS: changes by each mount (3000; long/names.sh has 100000)

set -u
cd "$(dirname "$0")/../.." || exit
. tests/interop/lib.sh
in_vm 2000
setup
[ -x /sbin/mount.nfs ] || { echo 'SKIP: no mount.nfs here (nfs-common)'; exit 77; }
names=$O/tests/interop/names
[ -x "$names" ] || { echo "SKIP: no $names here (make interop-tools)"; exit 77; }
m=$work/mnt
mkdir "$m"

# all calls that a mount has made
all_calls() { of_mount "$1" 'if ($1 ~ /^[A-Z0-9]+:$/ && NF > 8) n += $2'; }

make_names() { (mkdir "$1" && cd "$1" && seq -f 'name-%05g' 1000 | xargs touch); }

# removed NAME WHAT: by the mount; prints the number of calls
removed() {
	n=$(all_calls "$m")
	ok "rm -r, $2" rm -r "$m/$1"
	n=$(($(all_calls "$m") - n))
	section "  $n calls to remove 1000 names, $2"
	ok "rm -r, $2: $n calls" test "$n" -gt 1000
	ok "rm -r, $2: $n calls are not more than 1030" test "$n" -le 1030
}

leatd_start
for way in tcp rdma; do
	section "mounted over $way"
	ok "mount, $way" mounted "$m" $way
	mountpoint -q "$m" || continue
	# each name once: the client does not ask again for 30 s whether one that was not there is there now
	ok "names by the client, $way" make_names "$m/client-$way"
	removed "client-$way" "made by the client, $way"
	ok "names locally, $way" make_names "$work/export/local-$way"
	# leatd proves nothing of a directory that a client sees in the clock tick of a local change
	until [ -n "$(find "$work/tick" -newer "$work/export/local-$way" 2>/dev/null)" ]; do touch "$work/tick"; done
	removed "local-$way" "made locally, $way"
	counted "race, $way" "$names" "$m" "$work/export" "${NAMES_ROUNDS:-3000}"
	ok umount timeout 100 umount "$m"
done
finish
