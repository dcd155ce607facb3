#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# test_socket_trust.sh - whose local sockets leat:// moves to: with leatds and clients of three users

set -eu
: "${LEATD:=build/leatd}" "${LEAT:=build/leat}"
. tests/lib/checks.sh

user='setpriv --reuid 64001 --regid 64001 --clear-groups'
other='setpriv --reuid 64002 --regid 64002 --clear-groups'
[ "$(id -u)" -eq 0 ] || { echo 'SKIP: takes three users, so root'; exit 77; }
$user "$LEATD" --version >/dev/null 2>&1 && $user "$LEAT" --version >/dev/null 2>&1 ||
	{ echo 'SKIP: no setpriv, or other users may not run what was built here'; exit 77; }

work=$(mktemp -d)
pid='' pids=''
finish() {
	# shellcheck disable=SC2086
	[ -z "$pids$pid" ] || kill $pids $pid 2>/dev/null || :
	rm -rf "$work"
}
trap finish EXIT
chmod 755 "$work"
mkdir "$work/export" "$work/state" "$work/theirs" "$work/theirs/state" "$work/sticky" "$work/safe"
echo roots >"$work/export/f"
echo forged >"$work/theirs/f"
chown -R 64001:64001 "$work/theirs"
chmod 1777 "$work/sticky"

ping_as() { # COMMAND-PREFIX URL: what ping says goes to $work/ping
	# shellcheck disable=SC2086
	timeout 60 $1 "$LEAT" ping -c 1 "$2" >"$work/ping" 2>&1 || fail "ping $2 as '$1': $(cat "$work/ping")"
}
goes() { # TRANSPORT [PATTERN]
	grep -q "^transport *$1" "$work/ping" || fail "not by $1: $(cat "$work/ping")"
	[ $# -eq 1 ] || grep -qE -e "$2" "$work/ping" || fail "no '$2': $(cat "$work/ping")"
	checks=$((checks + 1))
}
# a path, as the test's temporary directory may be any
q() { printf %s "$1" | sed 's/[.+*]/\\&/g'; }

# a leatd of another user: that user takes it like root's, others have to name it in the URL
sock=$work/theirs/sock
leatd_run $user "$LEATD" --everyone --state-dir "$work/theirs/state" --export "/x=$work/theirs" \
	--listen "local://$sock" --listen tcp://127.0.0.1:0
pids=$pid pid=''
url=leat://127.0.0.1:$port/x
ping_as "$user" "$url"
goes local 'because *local: the server runs on this host'
ping_as '' "$url"
goes tcp '^identity *this leatd does everything as uid 64001'
goes tcp "^not *local://$(q "$sock"): uid 64001 could replace the socket, as owner of "
grep -q '^because *tcp: no local (uid 64001 could' "$work/ping" || fail "$(cat "$work/ping")"
"$LEAT" doctor "$url" >"$work/ping" || fail "doctor: $(cat "$work/ping")"
grep -qE "^way +missing not local://$(q "$sock"): uid 64001 could" "$work/ping" || fail "$(cat "$work/ping")"
ping_as "$other" "$url"
goes tcp
ping_as '' "$url?socket_user=64001"
goes local
ping_as "$other" "$url?socket_user=64001"
goes local
ping_as '' "$url?socket_user=64002"
goes tcp
# a socket that root has put where only root can write is still not root's leatd
mv "$sock" "$work/safe/sock"
chown root "$work/theirs"
ln -s "$work/safe/sock" "$sock"
ping_as '' "$url"
goes tcp "^not *local://$(q "$sock"): the listener's uid 64001 is neither root nor this user"
ping_as '' "$url?socket_user=64001"
goes local
# a socket that the user names in the URL is not checked
ping_as '' "local://$work/safe/sock/x"
goes local

# all users take root's leatd, also in a directory that all may write to ...
leatd_run "$LEATD" --state-dir "$work/state" --export "/x=$work/export,insecure" \
	--listen "local://$work/sticky/sock" --listen tcp://127.0.0.1:0
url=leat://127.0.0.1:$port/x
for who in '' "$user" "$other"; do
	ping_as "$who" "$url"
	goes local
done
[ "$("$LEAT" cat "$url/f")" = roots ] || fail 'not what root has'
# ... until another user's socket has its place
mv "$work/sticky/sock" "$work/sticky/away"
mv "$work/safe/sock" "$work/sticky/sock"
for who in '' "$other"; do
	ping_as "$who" "$url"
	goes tcp "^not *local://$(q "$work/sticky/sock"): uid 64001 could replace the socket, as owner of "
done
[ "$("$LEAT" cat "$url/f")" = roots ] || fail 'not what root has'
rm "$work/sticky/sock"
# ... nor by way of that user's link to it
ln -s "$work/sticky/away" "$work/sticky/sock"
chown -h 64001 "$work/sticky/sock"
ping_as '' "$url"
goes tcp 'uid 64001 could replace the socket'

# what a server says of itself goes to terminals
esc=$(printf '\033')
pids="$pids $pid" pid=''
leatd_run "$LEATD" --state-dir "$work/theirs/state2" --export "/x=$work/export,insecure" \
	--listen "local://$work/sticky/esc$esc[31m" --listen tcp://127.0.0.1:0
mv "$work/sticky/esc$esc[31m" "$work/sticky/away2"
ping_as '' "leat://127.0.0.1:$port/x"
goes tcp "^not *local://$(q "$work")/sticky/esc\\?\\[31m: no socket"
! grep -q "$esc" "$work/ping" || fail "an escape sequence: $(cat -v "$work/ping")"

echo "$checks checks passed"
