#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# test_many_groups.sh - users who are in many groups: none is left out, as one of them may be what keeps
# them from a file (mode 0604)

set -eu
: "${LEATD:=build/leatd}" "${LEAT:=build/leat}"
. tests/lib/checks.sh

[ "$(id -u)" -eq 0 ] || { echo 'SKIP: takes other users, so root'; exit 77; }
setpriv --reuid 64001 --regid 64001 --groups 1,2 "$LEAT" --version >/dev/null 2>&1 ||
	{ echo 'SKIP: no setpriv, or other users may not run what was built here'; exit 77; }

work=$(mktemp -d)
pid=''
finish() {
	[ -z "$pid" ] || kill "$pid" 2>/dev/null || :
	rm -rf "$work"
}
trap finish EXIT
chmod 755 "$work"
mkdir "$work/export" "$work/state"
for gid in 70001 70064 70065 71024 71025; do
	echo secret >"$work/export/$gid"
	chgrp $gid "$work/export/$gid"
	chmod 604 "$work/export/$gid"
done

read_as() { # N URL GID: user 64001, who is in N groups from 70001 on, reads the file that GID may not read
	timeout 60 setpriv --reuid 64001 --regid 64001 --groups "$(seq -s, 70001 $((70000 + $1)))" \
		"$LEAT" cat "$2/$3" >"$work/out" 2>"$work/err"
}
barred() {
	! read_as "$@" || fail "a member of $3, one of $1 groups, reads at $2 what that group may not"
	grep -q 'Permission denied' "$work/err" || fail "$1 groups, $3: $(cat "$work/err")"
	checks=$((checks + 1))
}
free() {
	read_as "$@" || fail "$1 groups, $3: $(cat "$work/err")"
	checks=$((checks + 1))
}

for option in '' --manage-gids; do
	# shellcheck disable=SC2086
	leatd_run "$LEATD" --state-dir "$work/state" --export "/x=$work/export,insecure" $option \
		--listen "local://$work/sock" --listen tcp://127.0.0.1:0
	url=local://$work/sock/x
	barred 64 "$url" 70064
	free 64 "$url" 70065
	barred 65 "$url" 70065
	barred 1024 "$url" 71024
	free 1024 "$url" 71025
	# more than leatd takes: not at all, and not in part
	! read_as 1025 "$url" 70001 || fail 'somebody of whose groups one was left out is served'
	grep -q 'uid 64001 turned away: it is in more than 1024 groups' "$work/log" || fail "$(cat "$work/log")"
	# AUTH_SYS has room for 16: the first ones, however many there are
	[ -n "$option" ] || barred 300 "tcp://127.0.0.1:$port/x" 70001
	kill "$pid"
	wait "$pid" || :
	pid=''
done

echo "$checks checks passed"
