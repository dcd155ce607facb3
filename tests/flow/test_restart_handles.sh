#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# test_restart_handles.sh - copies go on when leatd is killed and started with its exports in another
# order, its key changed, its directory renamed: with kernel handles, with handles by name of a plain
# user, and with unsigned ones

set -eu
: "${LEAT:=build/leat}" "${LEATD:=build/leatd}"
. tests/lib/checks.sh

work=$(mktemp -d)
pid='' copy='' as=''
finish() {
	[ -z "$copy" ] || kill -KILL "$copy" 2>/dev/null || :
	[ -z "$pid" ] || kill "$pid" 2>/dev/null || :
	rm -rf "$work"
}
trap finish EXIT

start() { # OPTION...
	# shellcheck disable=SC2086
	leatd_run $as "$LEATD" "$@" --listen "local://$home/sock"
}

stop() { # SIGNAL
	kill "-$1" "$pid"
	wait "$pid" 2>/dev/null || :
	pid=
}

growing() { find "$home" -name '.leat-*' -size +0 2>/dev/null | grep -q .; }

# a put in the middle of which leatd is killed, and what $1 says is done before it starts again
survives() {
	between=$1
	shift
	"$LEAT" put "$work/big" "local://$home/sock/x/d/file?wsize=4096&credits=1" 2>"$work/err" &
	copy=$!
	until growing; do
		kill -0 "$copy" 2>/dev/null || fail "$kind: put has ended too soon: $(cat "$work/err")"
	done
	kill -STOP "$copy" # however late we are woken now, it is in its middle
	growing || fail "$kind: put was too fast for us"
	stop KILL
	$between
	start "$@"
	kill -CONT "$copy"
	rc=0
	wait "$copy" || rc=$?
	copy=
	[ "$rc" -eq 0 ] || fail "$kind: $between: put -> $rc: $(cat "$work/err")"
	cmp "$work/big" "$home/$dir/d/file" || fail "$kind: $between: other bytes"
	rm "$home/$dir/d/file"
	checks=$((checks + 1))
}

nothing() { :; }
move_export() { mv "$home/x" "$home/elsewhere" && dir=elsewhere; }
change_key() { mv "$home/state/handle.key" "$home/state/handle.key.old"; }

# everything KIND WORDS [OPTION...]: WORDS are what leatd says of its exports
everything() {
	kind=$1 words=$2
	shift 2
	home=$work/$kind dir=x
	mkdir -p "$home/x/d" "$home/y"
	chmod 755 "$work" "$home"
	[ -z "$as" ] || chown -R 64001:64001 "$home"
	set -- --state-dir "$home/state" "$@"
	# a disk that takes a second for the file: the server is killed in the middle of it, on a busy machine too
	x="/x=$home/x,rw,no_root_squash,store=rate:20M" y="/y=$home/y,rw"
	start "$@" --export "$x" --export "$y"
	grep -q "export /x: .*$words" "$work/log" || fail "$kind: not $words"
	survives nothing "$@" --export "$y" --export "$x"
	[ "$kind" = unsigned ] || survives change_key "$@" --export "$x" --export "$y"
	survives move_export "$@" --export "/x=$home/elsewhere,rw,no_root_squash,store=rate:20M" --export "$y"
	stop TERM
	if [ "$kind" = unsigned ]; then
		grep -q 'sign-handles no: ' "$work/log" || fail "$kind: that nothing is signed was not told"
		[ ! -e "$home/state/handle.key" ] || fail "$kind: a key was made for nothing"
	else
		[ "$(stat -c %a "$home/state/handle.key")" = 600 ] || fail "$kind: the key is for others, too"
		chmod 640 "$home/state/handle.key"
		# shellcheck disable=SC2086
		if $as "$LEATD" "$@" --export "$y" --listen "local://$home/sock" >"$work/log" 2>&1; then
			fail "$kind: a key that others can read was used"
		fi
		grep -q 'handle.key must be' "$work/log" || fail "$kind: and not why"
	fi
	checks=$((checks + 1))
}

head -c 20000003 /dev/urandom >"$work/big"
chmod 644 "$work/big"
if [ "$(id -u)" -eq 0 ]; then
	everything root 'kernel handles'
	everything unsigned 'handles by name' --sign-handles no
	as='setpriv --reuid 64001 --regid 64001 --clear-groups'
	if $as "$LEATD" --version >/dev/null 2>&1; then
		everything plain 'handles by name'

		# nothing was said of a directory: the user's own, made on the way, and not for two
		as="$as env -u XDG_STATE_HOME HOME=$home"
		start --export "$home/y"
		[ -s "$home/.local/state/leat/handles.map" ] || fail "$kind: no map in the usual place"
		! $as "$LEATD" --state-dir "$home/.local/state/leat" --export "$home/y" \
			--listen "local://$home/second" >"$work/second" 2>&1 || fail "$kind: two use one map"
		grep -q 'handles.map is in use by another leatd' "$work/second" ||
			fail "$kind: two use one map: $(cat "$work/second")"
		grep -q "(process $pid)" "$work/second" || fail "$kind: not who has it: $(cat "$work/second")"
		stop TERM
		checks=$((checks + 1))
	else
		echo 'SKIP: setpriv does not work here: no plain user'
	fi
else
	everything plain 'handles by name'
fi
echo "$checks checks"
