#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# block_reset.sh - the server's machine loses its power while clients hold writes that are not flushed
#
# leatd runs in the virtual machine, with its state directory and its volumes on disks of it; the clients (block_reset.c) run
# outside, over TCP. QEMU is killed, and with it goes what only the machine's memory held. The machine boots again, with the
# same disks. Holders with unflushed writes get -EIO from each FLUSH and each write with FUA until they attach again, the
# others get no error.

set -u
cd "$(dirname "$0")/../.." || exit
. tests/interop/lib.sh
PATH=$PATH:/usr/sbin:/sbin
: "${O:=build/obj/default}"
client=$O/tests/interop/block_reset

# ---- in the machine ---------------------------------------------------------------------------------

if [ -n "${LEAT_VM:-}" ]; then
	modprobe ext4
	work=/run/disk
	mkdir "$work"
	# The kernel writes nothing back by itself: what is not synced is lost.
	echo 360000 >/proc/sys/vm/dirty_writeback_centisecs
	mount -o commit=600 /dev/vda "$work" || exit
	[ -e "$work/direct" ] || truncate -s 16M "$work/direct"
	allowed=clients=10.78.0.0/24,insecure
	"$LEATD" --state-dir "$work/state" --block "direct=$work/direct,share=shared,$allowed" \
		--block "cached=/dev/vdb,read=cached,write=cached,$allowed" --listen tcp://0.0.0.0:2049 >"$OUT/leatd.log" 2>&1 &
	leatd=$!
	# as the kernel would have written it back some time: without it, any leatd would find that the machine was reset
	wait_for 1000 test -e "$OUT/write-back"
	sync "$work/state/block-direct.sync" "$work/state/block-cached.sync"
	rm "$OUT/write-back"
	wait_for 1000 test -e "$OUT/end"
	kill "$leatd"
	wait "$leatd"
	exit
fi

# ---- outside ------------------------------------------------------------------------------------------

command -v mkfs.ext4 >/dev/null || { echo 'SKIP: no mkfs.ext4 here (scripts/deps.sh install interop)'; exit 77; }
for program in "$LEATD" "$client"; do
	[ -x "$program" ] || { echo "no $program: make all interop-tools"; exit 1; }
done
work=$(mktemp -d)
vm='' pid=''
trap '[ -z "$vm$pid" ] || kill $vm $pid 2>/dev/null; rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
mkdir "$work/vm"
mkfifo "$work/events"
truncate -s 64M "$work/state.img"
truncate -s 16M "$work/cached.img"
mkfs.ext4 -q "$work/state.img" || exit
port=$((30000 + $$ % 10000))

boot() {
	rm -f "$work/vm/leatd.log"
	tests/interop/vm/vm -s -t 240 -m 1024 -o "$work/vm" -d "$work/state.img" -d "$work/cached.img" -n "$port" -p "$work/pid" \
		"LEAT='$LEAT' LEATD='$LEATD' O='$O' sh '$0'" >"$work/console" 2>&1 &
	vm=$!
	# until leatd serves, or the machine has ended
	until grep -q '^leatd: ready' "$work/vm/leatd.log" 2>/dev/null; do
		kill -0 "$vm" 2>/dev/null || break
		sleep 0.1
	done
}

ended() {
	rc=0
	wait "$vm" || rc=$?
	vm=''
	[ "$rc" -ne 77 ] || { cat "$work/console"; exit 77; }
}

section 'a machine'
boot
kill -0 "$vm" 2>/dev/null || { ended; cat "$work/console"; ok 'the machine starts' false; finish; }
timeout 200 "$client" "tcp://127.0.0.1:$port" <"$work/events" >"$work/client" 2>&1 &
pid=$!
exec 4>"$work/events"
ok 'clients have unflushed writes' wait_for 60 grep -q '^unflushed' "$work/client"
touch "$work/vm/write-back"
ok "the state of the volumes is on the machine's disk" wait_for 60 test ! -e "$work/vm/write-back"
section 'its power is cut'
kill -KILL "$(cat "$work/pid")"
ended
echo down >&4
ok 'clients wait' wait_for 60 grep -q '^waiting' "$work/client"
section 'it boots again'
boot
echo up >&4
exec 4>&-
wait "$pid"
counted 'each loss is reported' cat "$work/client"
touch "$work/vm/write-back" "$work/vm/end"
ended
same 'leatd ends' "$rc" 0
[ "$failed" -eq 0 ] || tail -n 20 "$work/console" "$work/vm/leatd.log"
section 'end'
finish
