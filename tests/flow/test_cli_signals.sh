#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# test_cli_signals.sh - SIGINT, SIGTERM and SIGHUP: commands end at once, or clean up first; and a terminal
#                       is told of a server that is away
#
# A server that is stopped (SIGSTOP) takes connections and never answers, so a command that is asked
# something by it waits for ever.

set -eu
: "${LEAT:=build/leat}" "${LEATD:=build/leatd}"
. scripts/private-leatd.sh
. tests/lib/checks.sh

work=$(mktemp -d)
finish() {
	[ -z "$leatd_pid" ] || kill -CONT "$leatd_pid" 2>/dev/null || :
	leatd_stop
	rm -rf "$work"
}
trap finish EXIT

export_dir=$work/export
mkdir "$export_dir"
echo data >"$export_dir/file"
leatd_start "$export_dir" || exit 1

until_true() { # WHAT COMMAND...: looks again and again, and gives up with the test's own time
	what=$1
	shift
	until "$@"; do
		kill -0 "$command_pid" 2>/dev/null || fail "$what: the command has ended: $(cat "$work/err")"
	done
}

# begin COMMAND...: in the background, with the signals as a terminal would have them (a shell's own
# background commands ignore SIGINT)
begin() {
	env --default-signal=INT,TERM,HUP "$@" >"$work/out" 2>"$work/err" &
	command_pid=$!
}
ends_with() { # STATUS WHAT
	rc=0
	wait "$command_pid" || rc=$?
	[ "$rc" -eq "$1" ] || fail "$2: status $rc instead of $1: $(cat "$work/err")"
	checks=$((checks + 1))
}

# it has a connection, and waits for the server
connections() { ls -l "/proc/$command_pid/fd" 2>/dev/null | grep -c 'socket:' || :; }
waits() { [ "$(connections)" -gt 0 ] && sleeps_in "$command_pid" 'epoll|ep_poll'; }

# stop_server: none of its threads runs any more; a signal alone takes its time
stop_server() {
	kill -STOP "$leatd_pid"
	until ! cat "/proc/$leatd_pid/task/"*/status | grep '^State:' | grep -qv 'T (stopped)'; do :; done
}

# ---- nothing to clean up: it ends at once, by the signal ---------------------------------------------

stop_server
for url in "$tcp_url" "$local_url"; do
	for sig in INT:130 TERM:143 HUP:129; do
		begin "$LEAT" ls "$url"
		until_true "ls $url" waits
		kill "-${sig%:*}" "$command_pid"
		ends_with "${sig#*:}" "ls $url, ${sig%:*}"
	done
done
begin "$LEAT" rm "$tcp_url/file"
until_true 'rm' waits
kill -INT "$command_pid"
ends_with 130 'rm'
kill -CONT "$leatd_pid"
[ -e "$export_dir/file" ] || fail 'it was removed all the same'

# ---- a signal that was ignored stays ignored ------------------------------------------------------------

stop_server
(
	trap '' HUP
	exec "$LEAT" ls "$tcp_url"
) >"$work/out" 2>"$work/err" &
command_pid=$!
until_true 'ls under nohup' waits
kill -HUP "$command_pid"
kill -CONT "$leatd_pid"
ends_with 0 'ls under nohup'
[ "$(cat "$work/out")" = file ] || fail "under nohup it said: $(cat "$work/out")"

# ---- a copy cleans up what would be left over on the server ------------------------------------------------

leftover() { ls -A "$export_dir" | grep -q '^\.leat-'; }
mkfifo "$work/slow"
for sig in INT:130 TERM:143 HUP:129; do
	begin "$LEAT" put "$work/slow" "$tcp_url/from-pipe"
	exec 4>"$work/slow"
	head -c 100000 /dev/zero >&4
	kill "-${sig%:*}" "$command_pid"
	ends_with "${sig#*:}" "put, ${sig%:*}"
	exec 4>&-
	[ -z "$(ls -A "$export_dir" | grep -v '^file$')" ] || fail "put, $sig, left $(ls -A "$export_dir")"
	checks=$((checks + 1))
done

# what lies on this machine needs no server to be removed
head -c 30000000 /dev/zero >"$export_dir/large"
mkdir "$work/mine"
got_some() { ls -A "$work/mine" | grep -q '^\.leat-'; }
begin "$LEAT" get "$tcp_url/large?rsize=4096&readahead=0&credits=1" "$work/mine/large"
until_true 'get' got_some
stop_server
kill -INT "$command_pid"
ends_with 130 'get from a server that is away'
kill -CONT "$leatd_pid"
[ -z "$(ls -A "$work/mine")" ] || fail "get left $(ls -A "$work/mine")"
[ ! -s "$work/err" ] || fail "get said: $(cat "$work/err")"
rm "$export_dir/large"

# put_and_stop: a copy that has begun, to a server that is then stopped
put_and_stop() {
	begin "$LEAT" put "$work/slow" "$tcp_url/from-pipe"
	exec 4>"$work/slow"
	until_true 'put' leftover
	stop_server
	kill -TERM "$command_pid"
}

# one whose server does not answer gives up by itself, and says what becomes of the rest
put_and_stop
ends_with 143 'put to a server that is away'
grep -q 'interrupted; .* does not answer' "$work/err" || fail "it said: $(cat "$work/err")"
exec 4>&-
kill -CONT "$leatd_pid"

# the second signal ends it at once
put_and_stop
until_true 'the first' grep -q '^SigPnd:.*0000$' "/proc/$command_pid/status"
kill -HUP "$command_pid"
ends_with 129 'two signals'
! grep -q 'interrupted; ' "$work/err" || fail "two signals: it waited: $(cat "$work/err")"
exec 4>&-
kill -CONT "$leatd_pid"

# ---- a terminal is told of a server that is away ------------------------------------------------------------

if command -v script >/dev/null; then
	mkfifo "$work/stdin"
	: >"$work/typescript"
	stop_server
	script -qefc "$LEAT ls $tcp_url" "$work/typescript" <"$work/stdin" >/dev/null 2>"$work/err" &
	command_pid=$!
	exec 4>"$work/stdin"
	until_true 'away' grep -q "$tcp_url: no answer for 5 s" "$work/typescript"
	kill -CONT "$leatd_pid"
	ends_with 0 'ls on a terminal'
	exec 4>&-
	grep -q "$tcp_url: the server answers again" "$work/typescript" || fail "it did not say that it is back: $(cat "$work/typescript")"
	[ "$(grep -c 'no answer' "$work/typescript")" -eq 1 ] || fail "more than once: $(cat "$work/typescript")"
	checks=$((checks + 1))
fi

echo "$checks checks passed"
