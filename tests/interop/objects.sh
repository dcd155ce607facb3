#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# objects.sh - flow tests of libleat and of services over verbs; a tree by nodes, directories in pages, a service
#
# The flow tests of flows.txt run with LEAT_FLOW_RDMA, server and client in one process each; the examples walk and kv and
# `leat ls` run as programs of their own. TMPDIR is a file system in memory: overlayfs of the machine gives a file another
# inode when it is first written, and so another handle. long/variants.sh runs the flow tests in all variants.

set -u
cd "$(dirname "$0")/../.." || exit
. tests/interop/lib.sh
in_vm 1200
setup
: "${O:=build/obj/default}" "${EXAMPLES:=${LEAT%/*}/examples}"

sent() { cat /sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts; }

# flow NAME PACKETS: all tests of a program pass, and send that many packets over the device at least
flow() {
	before=$(sent)
	ok "$1" env LEAT_FLOW_RDMA="$addr" TMPDIR="$work" LEAT_TEST_CANCELS=200 timeout 300 "$O/tests/flow/$1"
	passed=$((passed + $(grep -c '^\[       OK ' "$work/out")))
	ok "$1: packets of the device" test "$(($(sent) - before))" -ge "$2"
}

section 'flow tests'
while read -r name packets; do
	case $name in
	test_*) flow "$name" "$packets" ;;
	esac
done <tests/interop/flows.txt
section 'examples'

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
