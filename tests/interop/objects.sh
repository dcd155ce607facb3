#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# objects.sh - nodes, names, directories in pages, removed files, holes, access control lists, and the own memory of a
#              service, over verbs; and its arguments and results as bytes
#
# The flow tests of these run with LEAT_FLOW_RDMA, server and client in one process each; the examples walk and kv and
# `leat ls` run as programs of their own. TMPDIR is a file system in memory: overlayfs of the machine gives a file another
# inode when it is first written, and so another handle. A process can have only one leatd with a device: the kernel
# refuses a device that was opened before the credentials of the server were set. So tests that restart it do not run.

set -u
cd "$(dirname "$0")/../.." || exit
. tests/interop/lib.sh
in_vm 300
setup
: "${O:=build/obj/default}" "${EXAMPLES:=${LEAT%/*}/examples}"

sent() { cat /sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts; }

# flow NAME PACKETS: all tests of a program pass, and send that many packets over the device at least
flow() {
	before=$(sent)
	ok "$1" env LEAT_FLOW_RDMA="$addr" TMPDIR="$work" timeout 60 "$O/tests/flow/$1"
	passed=$((passed + $(grep -c '^\[       OK ' "$work/out")))
	ok "$1: packets of the device" test "$(($(sent) - before))" -ge "$2"
}

flow test_leat_node 1000
flow test_leat_node_life 500
flow test_leat_names 1000
flow test_leat_removed 500
flow test_leat_space 200
flow test_leat_acl 100
flow test_svc_mem 1000

# ---- a tree by nodes, and directories of several pages -------------------------------------------------

leatd_start
mkdir -p "$work/export/tree/a/b/c" "$work/export/tree/many"
(cd "$work/export/tree/many" && seq -f 'a name of some length, number %g' 3000 | xargs -d '\n' touch)
echo content >"$work/export/tree/a/b/file"
ln -s ../a "$work/export/tree/a/link" # not followed
(cd "$work/export/tree" && find . -mindepth 1 -printf '%12s %P\n' | LC_ALL=C sort) >"$work/wanted"
ok 'walk' sh -c "'$EXAMPLES/walk' 'rdma://$addr/demo/tree' >'$work/walked'"
same 'walk finds all' "$(LC_ALL=C sort "$work/walked" | cksum)" "$(cksum <"$work/wanted")"
ok 'leat ls' sh -c "'$LEAT' ls 'rdma://$addr/demo/tree/many' >'$work/listed'"
same 'leat ls lists all' "$(LC_ALL=C sort "$work/listed" | cksum)" "$(LC_ALL=C ls "$work/export/tree/many" | cksum)"

# ---- a service that pulls into its own memory and places from it ----------------------------------------

mkfifo "$work/url"
"$EXAMPLES/kv/kvd" "rdma://$addr:20061" >"$work/url" &
kvd=$!
read -r url <"$work/url" || url='none'
for bytes in 0 1 1000 4096 65537 1048576; do
	head -c "$bytes" "$work/random" >"$work/value"
	ok "kv put, $bytes bytes" sh -c "'$EXAMPLES/kv/kv' '$url' put key <'$work/value'"
	ok "kv get, $bytes bytes" sh -c "'$EXAMPLES/kv/kv' '$url' get key >'$work/copy' && cmp '$work/value' '$work/copy'"
done
kill "$kvd"
wait "$kvd" 2>/dev/null || :
leatd_stop
same 'no queue pair is left' "$(queue_pairs)" 0
finish
