#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# test_rpcbind.sh - leatd --rpcbind with a real rpcbind, in a network and a /run of their own

set -eu
: "${LEAT:=build/leat}" "${LEATD:=build/leatd}"
PATH=$PATH:/usr/sbin:/sbin

if [ "${1:-}" != inside ]; then
	command -v rpcbind >/dev/null || { echo 'SKIP: no rpcbind here'; exit 77; }
	# root's: in a namespace of users there would be no callers for leatd to become
	if [ "$(id -u)" -eq 0 ] && unshare -n -m -p -f --mount-proc mount -t tmpfs tmpfs /run 2>/dev/null; then
		exec unshare -n -m -p -f --kill-child --mount-proc sh "$0" inside
	fi
	echo 'SKIP: no namespaces of our own here (root and unshare)'
	exit 77
fi

mount -t tmpfs tmpfs /run
ip link set lo up
work=/run/work
mkdir "$work" "$work/export"
checks=0 pid=''
fail() {
	echo "FAILED after $checks checks: $*"
	cat "$work"/log* 2>/dev/null || :
	exit 1
}

# start LOG OPTION...: until it has said what it came to with rpcbind
start() {
	log=$work/$1
	shift
	mkfifo "$work/words"
	"$LEATD" --state-dir "$work/state" --export "/demo=$work/export,clients=127.0.0.1" --rpcbind "$@" \
		>"$work/words" 2>&1 &
	pid=$!
	exec 3<"$work/words"
	rm "$work/words"
	: >"$log"
	while read -r line <&3; do
		echo "$line" >>"$log"
		case $line in
		*'rpcbind: MOUNT '* | *'registered for MOUNT'* | *'no rpcbind'*) break ;;
		esac
	done
	cat <&3 >>"$log" &
	exec 3<&-
}
stop() {
	kill "$1"
	rc=0
	wait "$1" || rc=$?
	[ "$rc" -eq 0 ] || fail "leatd ended with $rc"
	checks=$((checks + 1))
}
registered() { # WHAT: "100003 tcp 0.0.0.0.8.1 ..." as it should be
	got=$(rpcinfo | awk '$1 == 100003 || $1 == 100005 { print $1, $3, $4 }' | sort | tr '\n' ' ')
	[ "$got" = "$1" ] || fail "registered: '$got' instead of '$1'"
	checks=$((checks + 1))
}
ours='100003 tcp 127.0.0.1.8.1 100005 tcp 127.0.0.1.8.1 '

start log1 --listen tcp://127.0.0.1:2049
grep -q 'no rpcbind to register with (No such file' "$work/log1" || fail 'a missing rpcbind was not told'
"$LEAT" ping -c 1 tcp://127.0.0.1/demo >/dev/null || fail 'it does not serve without an rpcbind'
stop "$pid"

# it has bound its sockets when its parent ends
rpcbind || { echo 'SKIP: rpcbind does not start here'; exit 77; }
registered ''
start log2 --listen tcp://127.0.0.1:2049
registered "$ours"
first=$pid
# the second server leaves the registrations of the first, also when it ends
start log3 --listen tcp://127.0.0.1:0
grep -q 'another server is registered for MOUNT by tcp' "$work/log3" || fail 'the second was not told'
stop "$pid"
registered "$ours"
stop "$first"
registered ''

# one that was killed is still told of; the next one at the same port takes it over
start log4 --listen tcp://127.0.0.1:2049
kill -KILL "$pid"
wait "$pid" || :
registered "$ours"
start log5 --listen tcp://127.0.0.1:2049
grep -q 'rpcbind: MOUNT is at tcp 127.0.0.1.8.1' "$work/log5" || fail 'what a killed one left is in the way'
stop "$pid"
registered ''

echo "$checks checks passed"
