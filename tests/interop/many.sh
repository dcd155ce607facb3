#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# many.sh - what connections cost over RDMA: with receives of their own and with shared ones, and how
# many of them the device bears

set -u
cd "$(dirname "$0")/../.." || exit
. tests/interop/lib.sh
in_vm 1600
: "${O:=build/obj/default}"
many=$O/tests/interop/many
[ -x "$many" ] || { echo "SKIP: no $many: make interop-tools"; exit 77; }
setup
mkfifo "$work/line"

pinned() { awk '/^VmPin/ { print $2 }' "/proc/$leatd_pid/status"; }
stat() { "$LEAT" ctl stats "tcp://$addr" | awk -v name="$1" '$1 == name { print $2 }'; }

# hold N: N connections mount and are served; they stay until fd 4 is closed
hold() {
	"$many" "rdma://$addr" /demo "$1" <"$work/line" >"$work/held" 2>&1 &
	holder=$!
	exec 4>"$work/line"
	if wait_for 150 grep -q "^served $1" "$work/held"; then
		passed=$((passed + 1))
		return
	fi
	failed=$((failed + 1))
	echo "  FAIL  $1 connections: $(tail -n 2 "$work/held")"
}

let_go() {
	echo >&4 # and all at once again
	ok "$1 served again" wait_for 100 sh -c "[ \$(grep -c '^served $1\$' '$work/held') -eq 2 ]"
	exec 4>&-
	ok "$1 ended" wait "$holder"
}

for srq in no yes; do
	section "srq = $srq"
	leatd_start --srq "$srq"
	hold 1
	one=$(pinned)
	# the shared receive queue belongs to no connection: receives of 4 KiB
	shared=$(($(stat shared_recvs) * 4))
	echo "          of one: $one KiB registered, $shared of them shared"
	ok 'one that has just mounted pins 256 KiB at most' test $((one - shared)) -le 256
	ok 'and some' test "$one" -gt 0
	let_go 1
	ok 'ping' timeout 300 "$LEAT" ping -c 3 "rdma://$addr/demo"
	ok 'a file' timeout 300 "$LEAT" put "$work/random" "rdma://$addr/demo/file"
	ok 'and back' timeout 300 "$LEAT" get "rdma://$addr/demo/file" "$work/back"
	ok 'the same' cmp "$work/random" "$work/back"
	before=$(not_ready) pins=$(pinned)
	hold 100
	all=$(($(pinned) - pins))
	echo "          of 100: $all KiB registered, $(stat messages_pinned) bytes for messages, $(stat shared_recvs) shared receives"
	if [ "$srq" = yes ]; then
		ok 'not more of 100 than of a few' test "$all" -le 1024
		ok 'they are shared' test "$(stat shared_recvs)" -ge 64
	else
		ok '48 KiB of each of 100' test "$all" -le $((100 * 48 + 512))
		same 'no receive was missing' "$(not_ready)" "$before"
	fi
	let_go 100
	leatd_stop
done

finish
