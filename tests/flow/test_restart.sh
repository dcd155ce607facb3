#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# test_restart.sh - leatd is killed in the middle of a copy and started again: the copy finishes

set -eu
: "${LEAT:=build/leat}" "${LEATD:=build/leatd}"

if [ "$(id -u)" -ne 0 ]; then
	echo 'handles survive a restart only if leatd runs as root'
	exit 77
fi

work=$(mktemp -d)
pid='' copy=''
finish() {
	[ -z "$copy" ] || kill -KILL "$copy" 2>/dev/null || :
	[ -z "$pid" ] || kill "$pid" 2>/dev/null || :
	rm -rf "$work"
}
trap finish EXIT
mkdir "$work/export"

checks=0
fail() {
	echo "FAILED after $checks checks: $*"
	exit 1
}

# wait until leatd, in the background, has said that it is ready
port=0
start() {
	rm -f "$work/pipe"
	mkfifo "$work/pipe"
	"$LEATD" --state-dir "$work/state" --export "/x=$work/export,rw,no_root_squash" \
		--listen "local://$work/sock" --listen "tcp://127.0.0.1:$port" \
		>"$work/pipe" 2>"$work/log" &
	pid=$!
	ready=
	while read -r line; do
		case $line in
		*'listening on tcp:'*) port=${line##*:} ;;
		*ready*)
			ready=1
			break
			;;
		esac
	done <"$work/pipe"
	[ -n "$ready" ] || fail "leatd did not start: $(cat "$work/log")"
}

growing() { find "$work/export" -name "$1" -size +0 2>/dev/null | grep -q .; }

# NAME, of the file that grows; COMMAND...: run it, and kill the server meanwhile; sets $rc
interrupt() {
	name=$1
	shift
	"$@" 2>"$work/err" &
	copy=$!
	tries=0
	until growing "$name"; do
		kill -0 "$copy" 2>/dev/null || fail "$* has ended before anything could be seen: $(cat "$work/err")"
		tries=$((tries + 1))
		[ "$tries" -lt 100000 ] || fail "$*: nothing grows"
	done
	kill -KILL "$pid"
	wait "$pid" 2>/dev/null || :
	pid=
	kill -0 "$copy" 2>/dev/null || fail "$* was too fast for us"
	start
	rc=0
	wait "$copy" || rc=$?
	copy=
}

survives() { # NAME COMMAND...: all is there in the end
	interrupt "$@"
	[ "$rc" -eq 0 ] || fail "$* -> $rc: $(cat "$work/err")"
	[ ! -s "$work/err" ] || fail "$* said: $(cat "$work/err")"
	cmp "$work/big" "$work/export/file" || fail "$*: other bytes"
	[ "$(ls -A "$work/export")" = file ] || fail "$* left something: $(ls -A "$work/export")"
	checks=$((checks + 1))
}

head -c 67108867 /dev/urandom >"$work/big"
start
# small writes, so that there is a middle
local_url="local://$work/sock/x/file?wsize=4096"
tcp_url="tcp://127.0.0.1:$port/x/file?wsize=4096"

survives '.leat-*' "$LEAT" put "$work/big" "$local_url"
rm "$work/export/file"
survives '.leat-*' "$LEAT" cp -p "$work/big" "$tcp_url"

# what has two names is written in place, and as often
: >"$work/export/file"
ln "$work/export/file" "$work/second"
survives file "$LEAT" put "$work/big" "$tcp_url"
cmp "$work/big" "$work/second" || fail 'the second name is of another file'
rm "$work/export/file" "$work/second"

# a pipe cannot be read again: that is told, and nothing pretends to be the file
mkfifo "$work/words"
cat "$work/big" >"$work/words" &
interrupt '.leat-*' "$LEAT" put "$work/words" "$tcp_url"
[ "$rc" -eq 1 ] || fail "put from a pipe -> $rc"
grep -q 'the server lost data' "$work/err" || fail "put from a pipe said: $(cat "$work/err")"
[ "$(wc -l <"$work/err")" -eq 1 ] || fail "not one line: $(cat "$work/err")"
[ -z "$(ls -A "$work/export")" ] || fail "a pipe left: $(ls -A "$work/export")"
checks=$((checks + 1))

kill "$pid"
wait "$pid" || fail "leatd ended with $?"
pid=
echo "$checks checks"
