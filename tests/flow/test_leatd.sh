#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# test_leatd.sh - leatd as a program: what it says, when it refuses, and how it ends

set -eu
: "${LEATD:=build/leatd}" "${LEAT:=build/leat}"
. tests/lib/checks.sh

work=$(mktemp -d)
pid='' as='' # as: the command line that changes the user
finish() {
	[ -z "$pid" ] || kill "$pid" 2>/dev/null || :
	rm -rf "$work"
}
trap finish EXIT
mkdir "$work/exp"

refuses() { # STATUS PATTERN ARGUMENT...: refuses with that status, and words that match
	status=$1 pattern=$2
	shift 2
	rc=0
	# shellcheck disable=SC2086
	timeout 60 $as "$LEATD" --state-dir "$work/state" "$@" >"$work/out" 2>"$work/err" || rc=$?
	[ "$rc" -eq "$status" ] || fail "leatd $* -> $rc instead of $status: $(cat "$work/err")"
	grep -qE -e "$pattern" "$work/err" || fail "leatd $* said: $(cat "$work/err")"
	! grep -q . "$work/out" || fail "leatd $* was not silent: $(cat "$work/out")"
	checks=$((checks + 1))
}

# wait until leatd, in the background, has said that it is ready
start() {
	rm -f "$work/out"
	mkfifo "$work/pipe"
	# shellcheck disable=SC2086
	$as "$LEATD" --state-dir "$work/state" "$@" >"$work/pipe" 2>"$work/err" &
	pid=$!
	while read -r line; do
		echo "$line" >>"$work/out"
		[ "$line" != "leatd: ready" ] || break
	done <"$work/pipe"
	rm "$work/pipe"
	grep -q ready "$work/out" || fail "leatd $* did not start: $(cat "$work/err")"
}
stop() { # SIGNAL
	kill "-$1" "$pid"
	rc=0
	wait "$pid" || rc=$?
	pid=
	[ "$rc" -eq 0 ] || fail "SIG$1 -> $rc: $(cat "$work/err")"
	checks=$((checks + 1))
}

# usage
refuses 2 'nothing to export'
refuses 2 'no such option: --wrong' --wrong
refuses 2 'needs a value' --export
refuses 1 'listen=nonsense: must be a URL' --export "$work/exp" --listen nonsense
refuses 2 "reactors=none: must be auto or a number from 1 to 1024" --export "$work/exp" --reactors none

# what cannot be
refuses 1 'No such file or directory' --export "$work/none"
refuses 1 'not a directory' --export "$LEATD"
refuses 1 'no such export option' --export "$work/exp,fast"
refuses 1 'clients=' --export "$work/exp" --listen tcp://0.0.0.0:0
refuses 1 'No such file or directory' -c "$work/none"
refuses 1 'cannot listen on local://.*: ' --export "$work/exp" --listen "local://$work/none/sock"
refuses 1 'cannot listen on rdma://127.0.0.1' --export "$work/exp" --listen rdma://127.0.0.1:20049

# a configuration that is refused, with file and line, and nothing bound before
printf '[server]\nlisten = local://%s/sock\nlisten = tcp://127.0.0.1:0\ncolour = blue\n' "$work" >"$work/conf"
refuses 1 "$work/conf:4: .*colour" -c "$work/conf" --export "$work/exp"
[ ! -e "$work/sock" ] || fail "a socket was bound"

# one line for each listener, with the port that was given
printf '[server]\nlisten = local://%s/sock\nlisten = tcp://127.0.0.1:0\n[export /x]\npath = %s/exp\n' \
	"$work" "$work" >"$work/conf"
start -c "$work/conf"
grep -qE '^leatd: listening on tcp://127\.0\.0\.1:[1-9][0-9]*$' "$work/out" || fail "$(cat "$work/out")"
grep -qE "^leatd: listening on local://$work/sock\$" "$work/out" || fail "$(cat "$work/out")"
[ "$(wc -l <"$work/out")" -eq 3 ] || fail "not three lines: $(cat "$work/out")"
port=$(sed -n 's/.*:\([0-9]*\)$/\1/p' "$work/out" | head -n 1)

# the address is in use
refuses 1 'cannot listen on tcp://.*: Address already in use' --export "$work/exp" \
	--listen "tcp://127.0.0.1:$port"
refuses 1 'cannot listen on local://.*: Address already in use' --export "$work/exp" \
	--listen "local://$work/sock"
stop TERM

# the socket of one that is gone is no hindrance, nor is the port
start --export "/x=$work/exp,ro" --listen "local://$work/sock" --listen "tcp://127.0.0.1:$port"
stop INT

# one that was killed leaves its socket, and that is no hindrance either
start --export "/x=$work/exp" --listen "local://$work/sock"
kill -KILL "$pid"
wait "$pid" 2>/dev/null || :
pid=
start --export "/x=$work/exp" --listen "local://$work/sock"
stop TERM

# messages name what and why
refuses 1 "$work/none/c.pcap.*: No such file or directory" --export "$work/exp" \
	--listen "local://$work/sock" --capture "$work/none/c.pcap"
: >"$work/file"
refuses 1 "state-dir $work/file: Not a directory" --export "$work/exp" --listen "local://$work/sock" \
	--state-dir "$work/file"
mkdir "$work/badkey"
: >"$work/badkey/handle.key"
refuses 1 "state-dir $work/badkey: .*not a key" --export "$work/exp" --listen "local://$work/sock" \
	--state-dir "$work/badkey"
refuses 1 'rw: contradicts' --export "$work/exp,ro,rw"
printf '[server]\n[export /a\npath = %s/exp\n' "$work" >"$work/conf"
refuses 1 "$work/conf:2: .*lacks its ']'" -c "$work/conf"
printf '[server]\nreactors 2\ncolour = blue\n' >"$work/conf"
refuses 1 "$work/conf:2: 'reactors 2'" -c "$work/conf"
printf '[server]\n# fine\n# %0250d\n' 0 >"$work/conf"
refuses 1 "$work/conf:3: line longer than" -c "$work/conf"
printf '[server]\nreac\000tors = 2\n' >"$work/conf"
refuses 1 "$work/conf:2: a NUL in the line" -c "$work/conf"
printf '[export /x]\npath = %s/exp\npath = /\n' "$work" >"$work/conf"
refuses 1 "$work/conf:3: .*one already" -c "$work/conf"
[ ! -e "$work/sock" ] || fail "a socket was bound"

# ---- the user that it serves as ----

mode() { stat -c %a "$1"; }

# root that cannot become its callers would serve all of them as root
if [ "$(id -u)" -eq 0 ] && setpriv --bounding-set -setuid,-setgid --inh-caps=-all true 2>/dev/null; then
	as='setpriv --bounding-set -setuid,-setgid --inh-caps=-all'
	refuses 1 'root without CAP_SETUID and CAP_SETGID' --export "$work/exp" --listen "local://$work/sock"
	as='setpriv --bounding-set -setgid --inh-caps=-all'
	refuses 1 'root without CAP_SETUID and CAP_SETGID' --export "$work/exp" --listen "local://$work/sock"
	as='setpriv --bounding-set -setuid --inh-caps=-all'
	refuses 1 'root without CAP_SETUID and CAP_SETGID' --export "$work/exp" --listen "local://$work/sock"
	as=
else
	echo "skipped: root without capabilities"
fi

# the user that runs it decides whose rights count, and it says so; and how much memory it takes at most
start --export "/x=$work/exp" --listen "local://$work/sock" --listen tcp://127.0.0.1:0
grep -qF 'memory at most 8864 MiB: 256 (pinned-max) + 64 (messages-max) + 32 (drc-bytes) + 8192 (shared-max) + 256 (max-connections) + 64 (threads,' \
	"$work/err" || fail "memory: $(cat "$work/err")"
if [ "$(id -u)" -eq 0 ]; then
	grep -q 'requests run with the uid and gids of their callers$' "$work/err" || fail "$(cat "$work/err")"
	! grep -q 'from any port' "$work/err" || fail "$(cat "$work/err")"
else
	grep -q "not root: everything is done as uid $(id -u), for this user, root, and clients over a network" \
		"$work/err" || fail "$(cat "$work/err")"
	grep -q 'export /x: .*, from any port' "$work/err" || fail "$(cat "$work/err")"
fi
stop TERM

not_for_other() { # WHY
	rc=0
	# shellcheck disable=SC2086
	timeout 60 $other "$LEAT" cat "$url" >"$work/got" 2>&1 || rc=$?
	[ "$rc" -eq 1 ] || fail "another user: $rc: $(cat "$work/got")"
	grep -q "$1" "$work/got" || fail "another user: $(cat "$work/got")"
}

# a leatd of another user serves that user and root, and others with --everyone
user='setpriv --reuid 64001 --regid 64001 --clear-groups'
other='setpriv --reuid 64002 --regid 64002 --clear-groups'
if [ "$(id -u)" -eq 0 ] && $user "$LEATD" --version >/dev/null 2>&1 && $user "$LEAT" --version >/dev/null 2>&1; then
	chmod 755 "$work"
	mkdir "$work/mine"
	chown 64001:64001 "$work/mine"
	echo secret >"$work/mine/f"
	chown 64001:64001 "$work/mine/f"
	chmod 600 "$work/mine/f"
	url=local://$work/mine/sock/x/f
	as=$user
	head -c 512 /dev/zero >"$work/volume" # of root
	chmod 644 "$work/volume"
	refuses 1 "^leatd: block a: $work/volume: Permission denied" --state-dir "$work/mine/state" --block "a=$work/volume"
	rm -r "$work/mine/state"
	start --state-dir "$work/mine/state" --export "/x=$work/mine" --listen "local://$work/mine/sock" \
		--listen tcp://127.0.0.1:0
	[ "$(mode "$work/mine/sock")" = 600 ] || fail "mode of the socket: $(mode "$work/mine/sock")"
	grep -q 'every client that can reach tcp://127.0.0.1:[0-9]*, users of this host included, acts as uid 64001' \
		"$work/err" || fail "said nothing of TCP: $(cat "$work/err")"
	grep -q 'not root: everything is done as uid 64001, for this user, root, and clients over a network' \
		"$work/err" || fail "$(cat "$work/err")"
	tcp=$(sed -n 's/^leatd: listening on \(tcp:.*\)$/\1/p' "$work/out")
	for at in "local://$work/mine/sock" "$tcp"; do
		echo roots | "$LEAT" put - "$at/x/new"
		[ "$(stat -c %u:%g "$work/mine/new")" = 64001:64001 ] || fail "$at: made as $(stat -c %u:%g "$work/mine/new")"
		rm "$work/mine/new"
	done
	[ "$($user "$LEAT" cat "$url")" = secret ] || fail "the user himself is not served"
	[ "$("$LEAT" cat "$url")" = secret ] || fail "root is not served"
	not_for_other 'Permission denied'
	# the uid of a peer that the mode of the socket lets in is checked
	chmod 666 "$work/mine/sock"
	not_for_other 'Connection refused'
	grep -q 'uid 64002 turned away: all is done as uid 64001' "$work/err" || fail "$(cat "$work/err")"
	# repeated messages about one peer do not hide another, and the omitted ones are counted
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12; do
		not_for_other 'Connection refused'
	done
	! timeout 60 setpriv --reuid 64003 --regid 64003 --clear-groups "$LEAT" cat "$url" 2>"$work/said" ||
		fail "64003 is served, too"
	grep -q 'uid 64003 turned away' "$work/err" || fail "not told of: $(cat "$work/said" "$work/err")"
	tries=0
	until grep -q '[0-9] lines about refusals were left out' "$work/err"; do
		tries=$((tries + 1))
		[ "$tries" -lt 10000 ] || fail "nothing of lines that were left out: $(cat "$work/err")"
		not_for_other 'Connection refused'
	done
	stop TERM
	start --state-dir "$work/mine/state" --export "/x=$work/mine" --listen "local://$work/mine/sock" --everyone
	[ "$(mode "$work/mine/sock")" = 666 ] || fail "mode of the socket: $(mode "$work/mine/sock")"
	grep -q 'not root: everything is done as uid 64001, for all users$' "$work/err" || fail "$(cat "$work/err")"
	# shellcheck disable=SC2086
	[ "$(timeout 60 $other "$LEAT" cat "$url")" = secret ] || fail "--everyone serves not everyone"
	stop TERM
	as=
	checks=$((checks + 14))

	# over TCP root's leatd trusts peers with a reserved port, and tells the others what they lack
	start --export "/x=$work/exp" --export "/y=$work/exp,insecure" --listen tcp://127.0.0.1:0 \
		--listen "local://$work/sock"
	grep -q 'export /y: .*, from any port' "$work/err" || fail "$(cat "$work/err")"
	tcp=$(sed -n 's/^leatd: listening on \(tcp:.*\)$/\1/p' "$work/out")
	chmod 666 "$work/sock"
	"$LEAT" ls "$tcp/x" >"$work/got" 2>&1 || fail "root: $(cat "$work/got")"
	if [ "$(cat /proc/sys/net/ipv4/ip_unprivileged_port_start 2>/dev/null || echo 1024)" -ge 1024 ]; then
		rc=0
		timeout 60 $user "$LEAT" ls "$tcp/x" >"$work/got" 2>&1 || rc=$?
		[ "$rc" -eq 1 ] || fail "from any port: $rc: $(cat "$work/got")"
		grep -q '"insecure" in the server' "$work/got" || fail "from any port: $(cat "$work/got")"
		grep -qE '127.0.0.1:([0-9]+) is denied export /x: source port \1 is not below 1024 \(option insecure\)' \
			"$work/err" || fail "$(cat "$work/err")"
		timeout 60 $user "$LEAT" ls "$tcp/y" >"$work/got" 2>&1 || fail "insecure: $(cat "$work/got")"
		# a leat:// URL finds a transport that works
		timeout 60 $user "$LEAT" ls "leat://${tcp#tcp://}/x" >"$work/got" 2>&1 || fail "leat://: $(cat "$work/got")"
		checks=$((checks + 5))
	else
		echo "skipped: reserved ports, which are for everybody here"
	fi
	stop TERM
else
	echo "skipped: another user"
fi

# a user of this host who is in a group that the credential does not list
member=$(awk -F: '$4 != "" { split($4, m, ","); print m[1], $3; exit }' /etc/group)
if [ "$(id -u)" -eq 0 ] && [ -n "$member" ] && $user "$LEAT" --version >/dev/null 2>&1 &&
	id -u "${member% *}" >"$work/uid" 2>/dev/null; then
	as_member="setpriv --reuid $(cat "$work/uid") --regid 64001 --clear-groups"
	echo ours >"$work/exp/g"
	chown "0:${member#* }" "$work/exp/g"
	chmod 640 "$work/exp/g"
	for option in '' --manage-gids; do
		# shellcheck disable=SC2086
		start --export "/x=$work/exp,insecure" --listen tcp://127.0.0.1:0 $option
		tcp=$(sed -n 's/^leatd: listening on \(tcp:.*\)$/\1/p' "$work/out")
		rc=0
		timeout 60 $as_member "$LEAT" cat "$tcp/x/g" >"$work/got" 2>&1 || rc=$?
		[ "$rc" -eq "$([ -z "$option" ] && echo 1 || echo 0)" ] || fail "member, '$option': $rc: $(cat "$work/got")"
		stop TERM
	done
	rm "$work/exp/g"
	checks=$((checks + 2))
else
	echo "skipped: a user of this host with a further group"
fi

# IPv6, where there is any
if [ -e /proc/net/if_inet6 ] && grep -q ' lo$' /proc/net/if_inet6; then
	start --export "$work/exp" --listen 'tcp://[::1]:0'
	grep -q 'listening on tcp://\[::1\]:' "$work/out" || fail "$(cat "$work/out")"
	stop TERM
fi

# the sizes that a peer gets
sizes() { # OPTION...: the inline thresholds of a client with 8192
	start --export "/x=$work/exp" --listen "local://$work/sock" "$@"
	timeout 60 $as "$LEAT" ping -c 1 "local://$work/sock/x?inline=8192" | sed -n 's/^inline *//p'
	stop TERM
}
same() { # WANTED OPTION...
	want=$1
	shift
	got=$(sizes "$@")
	[ "$got" = "$want" ] || fail "leatd $*: '$got' instead of '$want'"
	checks=$((checks + 1))
}
same 'send 4096, receive 4096 bytes'
same 'send 2048, receive 2048 bytes' --inline 2048
same 'send 8192, receive 8192 bytes' --inline 16384
same 'send 1024, receive 1024 bytes' --inline 16384 --no-private-data
# a machine without an RDMA device is not stopped by being asked for one: told once, the others serve
if [ -z "$(ls -A /sys/class/infiniband 2>/dev/null)" ]; then
	start --export "/x=$work/exp,clients=127.0.0.1" --listen rdma://0.0.0.0:20049 --listen "local://$work/sock"
	[ "$(grep -c 'rdma://' "$work/err")" -eq 1 ] || fail "not told once: $(cat "$work/err")"
	grep -q 'not listening on rdma://0.0.0.0:20049: no RDMA device' "$work/err" || fail "$(cat "$work/err")"
	! grep -q rdma "$work/out" || fail "$(cat "$work/out")"
	timeout 60 "$LEAT" ping -c 1 "local://$work/sock/x" >"$work/got" || fail "the other listener does not serve"
	stop TERM
	refuses 1 'cannot listen on rdma://\[::1\]:20049: no RDMA device' --export "$work/exp" \
		--listen rdma://127.0.0.1:20049 --listen 'rdma://[::1]:20049'
	checks=$((checks + 4))
else
	echo "skipped: a machine without an RDMA device"
fi

# nor by a missing rpcbind; one that is there is not ours to play with
if [ ! -e /run/rpcbind.sock ]; then
	start --export "$work/exp" --listen "local://$work/sock" --listen tcp://127.0.0.1:0 --rpcbind
	stop TERM
	grep -q 'no rpcbind to register with (No such file or directory)' "$work/err" || fail "$(cat "$work/err")"
	checks=$((checks + 1))
else
	echo "skipped: a missing rpcbind"
fi

# memory that it does not share does not count, nor replies that it does not keep
start --export "/x=$work/exp" --listen tcp://127.0.0.1:0 --drc-entries 0 --pinned-max 8388608 --messages-max 4194304 \
	--max-connections 101
grep -qF 'memory at most 102 MiB: 8 (pinned-max) + 4 (messages-max) + 0 (drc-bytes) + 0 (shared-max) + 26 (max-' \
	"$work/err" || fail "memory: $(cat "$work/err")"
stop TERM

# connections with modes have memory of their own beside the pool, and what is pinned at once is not shared
start --export "/x=$work/exp" --listen tcp://127.0.0.1:0 --drc-entries 0 --pinned-max 8388608 --messages-max 16777216 \
	--max-connections 100 --modes read-read --registration arena
grep -qF 'memory at most 124 MiB: 8 (pinned-max) + 8 (modes) + 19 (messages-max) + 0 (drc-bytes) + 0 (shared-max) + 25 (max-' "$work/err" ||
	fail "memory: $(cat "$work/err")"
stop TERM

# one that may write no large files says so, and lives: FSINFO has the limit, and a WRITE beyond it fails
# (over TCP: the memory that the local fabric shares is a file to such a limit)
if command -v prlimit >/dev/null; then
	as='prlimit --fsize=100000'
	start --export "/x=$work/exp,no_root_squash" --listen tcp://127.0.0.1:0
	as='' url=$(sed -n 's/^leatd: listening on \(tcp:.*\)/\1/p' "$work/out")/x
	head -c 100000 /dev/zero >"$work/fits"
	head -c 100001 /dev/zero >"$work/large"
	timeout -k 5 60 "$LEAT" cp "$work/fits" "$url/fits" 2>"$work/got" || fail "$(cat "$work/got")"
	! timeout -k 5 60 "$LEAT" cp "$work/large" "$url/large" 2>"$work/got" || fail 'a file that is too large'
	grep -qi 'file too large\|FBIG' "$work/got" || fail "too large, but: $(cat "$work/got")"
	timeout 60 "$LEAT" ping -c 1 "$url" >"$work/got" || fail 'it died of a large file'
	stop TERM
	rm -f "$work/exp/fits" "$work/exp/large"
	checks=$((checks + 4))

	# descriptors: as many as it may have, and a word when these are too few
	as='prlimit --nofile=64:400'
	start --export "/x=$work/exp" --listen "local://$work/sock" --listen tcp://127.0.0.1:0
	grep -q 'limit of 400 open files is too low for max-connections = 1024: that takes 1280' "$work/err" ||
		fail "too few descriptors, but: $(cat "$work/err")"
	[ "$(awk '/^Max open files/ { print $4 }' "/proc/$pid/limits")" = 400 ] || fail 'the limit was not raised'
	stop TERM
	start --export "/x=$work/exp" --listen "local://$work/sock" --listen tcp://127.0.0.1:0 \
		--max-connections 144
	! grep -q 'open files' "$work/err" || fail "descriptors enough, but: $(cat "$work/err")"
	stop TERM
	as=''
	checks=$((checks + 3))
else
	echo 'skipped: no prlimit'
fi

# standard descriptors that are closed: no file or socket gets their numbers
"$LEATD" --state-dir "$work/state" --export "/x=$work/exp" --listen "local://$work/closed.sock" <&- >&- 2>&- &
pid=$!
until [ -S "$work/closed.sock" ]; do
	kill -0 "$pid" || fail 'it does not start without standard descriptors'
done
for fd in 0 1 2; do
	[ "$(readlink "/proc/$pid/fd/$fd")" = /dev/null ] || fail "$fd is $(readlink "/proc/$pid/fd/$fd")"
done
stop TERM

# without --listen: what there is, for this host; and why not the rest
if XDG_RUNTIME_DIR=$work timeout 60 "$LEATD" --help >"$work/out"; then
	grep -q '^usage: leatd' "$work/out" || fail "help: $(cat "$work/out")"
fi
"$LEATD" --version | grep -qE '^leatd [0-9]' || fail "version"
checks=$((checks + 2))

echo "$checks checks passed"
