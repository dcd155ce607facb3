#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# hostile.sh - what bad input gets from leatd over verbs: answers as they are due, the end of no other
# connection, all memory back; an honest client copies and compares all the while

set -u
cd "$(dirname "$0")/../.." || exit
. tests/interop/lib.sh
in_vm 3600
setup
hostile=$O/tests/interop/verbs_hostile
[ -x "$hostile" ] || { echo 'SKIP: verbs_hostile is not built (libibverbs-dev, librdmacm-dev)'; exit 77; }

url=rdma://$addr/demo
mkdir -p "$work/export"
head -c 65536 "$work/random" >"$work/export/small"
head -c 8388608 /dev/urandom >"$work/export/big"
: >"$work/export/target"
ln -s "$(head -c 1500 /dev/zero | tr '\0' t)" "$work/export/link"
head -c 3145731 "$work/random" >"$work/mine"
before=$(cksum "$work/export/small" "$work/export/big")

# what leatd holds: queue pairs; KiB of memory registered; descriptors
held_qps() { rdma resource show qp | grep -c 'type RC.*comm leatd' || :; }
pinned() { awk '/^VmPin/ { print $2 }' "/proc/$leatd_pid/status"; }
# but for files of the export: each reactor keeps those it has had open for a while
descriptors() { find "/proc/$leatd_pid/fd" ! -lname "$work/export/*" | wc -l; }

# The honest client: counts the copies that came back right, and stops at the first that did not.
honest() {
	n=0
	while [ ! -e "$work/enough" ]; do
		timeout 300 "$LEAT" put "$work/mine" "$url/mine" &&
			timeout 300 "$LEAT" get "$url/mine" "$work/back" &&
			cmp "$work/mine" "$work/back" || { echo 'a copy went wrong'; return 1; }
		n=$((n + 1))
		echo "$n" >"$work/copies"
	done
}
copies() { cat "$work/copies"; }
# since $1 another two have been made: one of them began after
more_copies() { wait_for 100 sh -c "[ \$(cat '$work/copies') -ge $(($1 + 2)) ]"; }

section 'an honest client, and what a leatd holds with nobody there'
leatd_start
ok 'a first copy' timeout 300 "$LEAT" put "$work/mine" "$url/mine"
ok 'nobody there' wait_for 100 sh -c '[ "$(rdma resource show qp | grep -c "type RC")" -eq 0 ]'
echo 0 >"$work/copies"
honest >"$work/honest.log" 2>&1 &
honest_pid=$!

section 'peers that say nothing, and half-open ones'
mkfifo "$work/line" "$work/line2"
timeout 400 "$hostile" "$addr:20049" /demo silent <"$work/line" >"$work/silent.log" 2>&1 &
silent=$!
exec 4>"$work/line"
ok 'they are in' wait_for 100 grep -q silent "$work/silent.log"
ok 'leatd knows them' test "$(held_qps)" -ge 64
n=$(copies)
ok 'the honest client beside them' more_copies "$n"

for case in rows keys overrun killed; do
	section "$case"
	n=$(copies)
	ok "$case" timeout 300 "$hostile" "$addr:20049" /demo "$case"
	[ "$case" != rows ] || sed 's/^/          /' "$work/out"
	ok "the honest client beside $case" more_copies "$n"
done

section 'peers that do not listen'
deaf() {
	"$hostile" "$addr:20049" /demo deaf <"$work/line2" >"$work/deaf.log" 2>&1 4>&- &
	deaf=$!
	exec 5>"$work/line2"
	ok 'they have called' wait_for 100 grep -q deaf "$work/deaf.log"
	ok 'their connections end' wait_for 100 sh -c \
		"[ \$(rdma resource show qp | grep 'pid $deaf ' | grep -c 'state ERR') -eq 3 ]"
	exec 5>&-
	ended 'and they go' "$deaf" "$work/deaf.log"
}
n=$(copies)
deaf
ok 'the honest client beside them' more_copies "$n"

again=$(pinned) # as much as the peers took together

section 'afterwards'
ok 'silent peers are let go' wait_for 100 grep -q ended "$work/silent.log"
: >"$work/enough"
ended 'the honest client' "$honest_pid" "$work/honest.log"
ok 'half-open ones too' wait_for 100 sh -c '[ "$(rdma resource show qp | grep -c "type RC.*comm leatd")" -eq 0 ]'
echo >&4
exec 4>&-
ended 'and they see it' "$silent" "$work/silent.log"
ok 'nobody there' wait_for 100 sh -c '[ "$(rdma resource show qp | grep -c "type RC")" -eq 0 ]'
# What is left of it is the pool, whose segments are of 4 MiB: no buffer of a connection, whose memory goes after its
# queue pair. Idle segments go back one by one, also between the two reads.
only_the_pool() { # KIB: at most
	kib=$(pinned)
	[ "$kib" -le "$1" ] && [ $((kib % 4096)) -eq 0 ] &&
		[ "$(rdma resource show mr | grep -c 'comm leatd')" -eq $((kib / 4096)) ]
}
ok 'registered memory is the pool alone' wait_for 100 only_the_pool "$again"
fds=$(descriptors)
for case in overrun killed keys; do
	ok "$case once more" timeout 300 "$hostile" "$addr:20049" /demo "$case"
done
deaf
ok 'nobody there' wait_for 100 sh -c '[ "$(rdma resource show qp | grep -c "type RC")" -eq 0 ]'
ok "the pool has not grown beyond $again KiB" wait_for 100 only_the_pool "$again"
same 'descriptors' "$(descriptors)" "$fds"
same 'files nobody was to write' "$(cksum "$work/export/small" "$work/export/big")" "$before"
ok 'the same leatd' timeout 100 "$LEAT" get "$url/mine" "$work/back"
ok 'and data' cmp "$work/mine" "$work/back"

section 'a peer that has vanished, and one that is idle'
ok 'nobody there' wait_for 100 sh -c '[ "$(rdma resource show qp | grep -c "type RC")" -eq 0 ]'
mkfifo "$work/line3"
"$hostile" "$addr:20049" /demo vanished <"$work/line3" >"$work/vanished.log" 2>&1 &
vanished=$!
exec 5>"$work/line3"
ok 'they have called' wait_for 100 grep -q vanished "$work/vanished.log"
same 'leatd has both' "$(held_qps)" 2
ok 'it notices the one' wait_for 150 sh -c '[ "$(rdma resource show qp | grep -c "type RC.*comm leatd")" -eq 1 ]'
exec 5>&-
ended 'the idle one is well' "$vanished" "$work/vanished.log"
leatd_stop
same 'no queue pair is left' "$(queue_pairs)" 0
finish
