#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# beside.sh - attacks on a leatd, beside honest clients whose data has to be right
#
#   beside.sh OPTION...     of `hostile attack`
#
# One leatd with small limits serves the honest clients, one over the local fabric and one over TCP, and the
# attacks. Run by root, the attacks are another user's, and the TCP client has another address than they (in
# a network namespace of its own): then no call of an honest client may fail, and none of its connections may end.
# Run by another user all are one client, which takes only from itself: then data, survival and memory are checked.
# For tests/flow/test_hostile.sh and tests/interop/long/hostile.sh; HOSTILE_SEED repeats an order,
# HOSTILE_ATTACKS names the attacks (all), HOSTILE_LIMITS are options of leatd. The last line counts.

set -u
: "${LEATD:=build/leatd}" "${LEAT:=build/leat}" "${O:=build/obj/default}"
cd "$(dirname "$0")/../.." || exit
hostile=$O/tests/hostile/hostile

two_users=
[ "$(id -u)" -ne 0 ] || two_users=1
if [ -n "$two_users" ] && [ -z "${HOSTILE_NET:-}" ] && unshare -n ip link set lo up 2>/dev/null; then
	HOSTILE_NET=1 exec unshare -n sh "$0" "$@"
fi
tcp_addr=127.0.0.1
if [ -n "${HOSTILE_NET:-}" ]; then
	ip link set lo up
	ip address add 10.77.0.1/32 dev lo
	tcp_addr=10.77.0.1
fi

work=$(mktemp -d)
chmod 755 "$work"
pid='' started=''
finish() {
	exec 5>&- 6>&- 7>&- 8>&-
	for p in $started $pid; do
		kill -KILL "$p" 2>/dev/null || :
	done
	rm -rf "$work"
}
trap finish EXIT
passed=0 failed=0

ok() { # WHAT COMMAND...
	what=$1
	shift
	if "$@" >"$work/out" 2>&1 </dev/null; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "  FAIL  $what: '$*'"
		tail -n 20 "$work/out" | cut -c 1-300 | sed 's/^/        | /'
	fi
}

wait_for() { # COMMAND...: until it succeeds
	tries=600
	until "$@"; do
		tries=$((tries - 1))
		[ "$tries" -gt 0 ] || return 1
		sleep 0.1
	done
}

# a program in the background whose standard input is ours to end; its words go to $work/NAME.log
start() { # NAME FD COMMAND...
	name=$1 fd=$2
	shift 2
	mkfifo "$work/$name.in"
	"$@" <"$work/$name.in" >"$work/$name.log" 2>&1 5>&- 6>&- 7>&- &
	started="$started $!"
	eval "${name}_pid=$! && exec $fd>'$work/$name.in'"
	wait_for grep -qE 'ready|FAILED' "$work/$name.log"
}

ended() { # WHAT PID NAME
	rc=0
	wait "$2" || rc=$?
	sed 's/^/  /' "$work/$3.log"
	ok "$1" test "$rc" -eq 0
}

# descriptors of leatd but for those of exported files, which it keeps for a while
descriptors() { find "/proc/$pid/fd" -mindepth 1 ! -lname "$work/export*" 2>/dev/null | wc -l; }
list_descriptors() { find "/proc/$pid/fd" -mindepth 1 ! -lname "$work/export*" -printf '%l\n' | sort; }
few_descriptors() { [ "$(descriptors)" -le "$fds" ]; }
connections() { "$LEAT" ctl stats "local://$work/sock" | awk '$1 == "conns" { print $2 }'; }
nobody_there() { [ "$(connections)" = 1 ]; }

mkdir -p "$work/export/area" "$work/export/list" "$work/export/victim" "$work/export/victim_tcp"
chmod 777 "$work/export/area"
head -c 8388608 /dev/urandom >"$work/export/big"
(cd "$work/export/list" && seq -f 'a-name-that-takes-some-room-%g' 2000 | xargs touch)

pool=33554432 messages=8388608 replies=1048576 shared=1073741824 conns=256
mkfifo "$work/words"
# shellcheck disable=SC2086
"$LEATD" --export "/x=$work/export,rw,no_root_squash,insecure,clients=10.77.0.0/16,clients=127.0.0.0/8" \
	--state-dir "$work/state" --listen "local://$work/sock" --listen tcp://0.0.0.0:0 \
	--pinned-max "$pool" --messages-max "$messages" --drc-bytes "$replies" --shared-max "$shared" \
	--max-connections "$conns" --modes read-read,fast-write,hybrid ${HOSTILE_LIMITS-} \
	>"$work/words" 2>"$work/leatd.log" &
pid=$!
port=''
while read -r line; do
	case $line in
	*'listening on tcp:'*) port=${line##*:} ;;
	*ready*) break ;;
	esac
done <"$work/words"
[ -n "$port" ] || {
	cat "$work/leatd.log"
	echo "${0##*/}: 0 passed, 1 failed"
	exit 1
}
most=$(sed -n 's/.*memory at most \([0-9]*\) MiB.*/\1/p' "$work/leatd.log")
most=$((${most:-0} * 1048576))
ok 'it says how much memory it may take' test "$most" -gt 0

ok 'a first copy over local' "$LEAT" put "$work/export/big" "local://$work/sock/x/victim/copy?conns=8"
ok 'a first copy over TCP' "$LEAT" get "tcp://$tcp_addr:$port/x/victim/copy?conns=8" "$work/back"
ok 'nobody is there' wait_for nobody_there
fds=$(descriptors)
list_descriptors >"$work/fds"

start watch 5 "$hostile" watch "$pid" "$pool" "$messages" "$replies" "$shared" "$conns" "$most"
if [ -n "$two_users" ]; then
	start victim 6 "$hostile" victim -s 1 "local://$work/sock/x/victim"
	if [ -n "${HOSTILE_NET:-}" ]; then
		start victim_tcp 7 "$hostile" victim -s 2 "tcp://$tcp_addr:$port/x/victim_tcp"
	else
		echo '  no namespace of our own: no honest client over TCP'
		exec 7>/dev/null
	fi
	ok 'the attacks' "$hostile" attack ${HOSTILE_SEED:+-s "$HOSTILE_SEED"} -u 60000 "$@" -- "$work/sock" "$port" /x ${HOSTILE_ATTACKS-}
else
	echo '  not root: attackers and honest clients are one client, whose share is one'
	start victim 6 "$hostile" victim -1 -s 1 "local://$work/sock/x/victim"
	start victim_tcp 7 "$hostile" victim -1 -s 2 "tcp://$tcp_addr:$port/x/victim_tcp"
	ok 'the attacks' "$hostile" attack ${HOSTILE_SEED:+-s "$HOSTILE_SEED"} "$@" -- "$work/sock" "$port" /x ${HOSTILE_ATTACKS-}
fi
cat "$work/out"
exec 6>&- 7>&-
ended 'the honest client over local' "$victim_pid" victim
[ -z "${victim_tcp_pid:-}" ] || ended 'the honest client over TCP' "$victim_tcp_pid" victim_tcp

ok 'leatd is still there' kill -0 "$pid"
ok 'and serves' "$LEAT" get "local://$work/sock/x/victim/copy" "$work/back2"
ok 'the same data' cmp "$work/back" "$work/back2"
ok 'all connections end' wait_for nobody_there
ok "no more than $fds descriptors are left" wait_for few_descriptors
few_descriptors || list_descriptors | diff "$work/fds" -
exec 5>&-
ended 'its memory' "$watch_pid" watch
kill "$pid"
rc=0
wait "$pid" || rc=$?
ok 'leatd ends as it should' test "$rc" -eq 0
pid=''
started=''
[ "$failed" -eq 0 ] || {
	grep -E 'uid 0|10\.77' "$work/leatd.log" | tail -n 10
	tail -n 20 "$work/leatd.log"
} | sed 's/^/        | /'
echo "${0##*/}: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
