#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# test_preload.sh - programs compiled against libtirpc alone, as clients and as servers of rpcrdma-run: the report shows
# that the calls went to the URL of the map, through each function that creates a handle

set -eu
: "${RUN_PROGRAM:=build/rpcrdma-run}" "${CC:=gcc}"
PATH=$PATH:/usr/sbin:/sbin

if [ "${1:-}" != inside ]; then
	[ -x "$RUN_PROGRAM" ] || { echo 'SKIP: rpcrdma-run is built in the default variant only'; exit 77; }
	# ports of its own
	for root in '' -r; do
		# shellcheck disable=SC2086
		if unshare $root -n -p -f --mount-proc ip link set lo up 2>/dev/null; then
			# shellcheck disable=SC2086
			exec unshare $root -n -p -f --kill-child --mount-proc sh "$0" inside
		fi
	done
	echo 'SKIP: no network namespace of our own here (unshare)'
	exit 77
fi

ip link set lo up
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
. tests/lib/checks.sh

# ---- the programs ----------------------------------------------------------------------------------

cp tests/preload/say* "$work"
(
	cd "$work"
	rpcgen -N -h -o say.h say.x
	rpcgen -N -l -o say_clnt.c say.x
	rpcgen -N -m -o say_svc.c say.x
	rpcgen -N -c -o say_xdr.c say.x
	tirpc=$(pkg-config --cflags --libs libtirpc)
	# a list of options
	# shellcheck disable=SC2086
	for end in 'client clnt' 'server svc'; do
		for file in "say_${end#* }" say_xdr; do
			$CC -w -I. $tirpc -c "$file.c" -o "$file.o"
		done
		$CC -D_GNU_SOURCE -Wall -Wextra -Werror -Wno-cast-function-type "say_${end% *}.c" "say_${end#* }.o" say_xdr.o $tirpc \
			-o "${end% *}"
	done
)
for program in client server; do
	! ldd "$work/$program" | grep -q rpcrdma || fail "$program is linked with our libraries"
done
# with versions of its own, the library would replace nothing
! readelf -V build/librpcrdma-preload.so | grep -q 'Version definition' || fail 'librpcrdma-preload.so has symbol versions'

say=0x20049921 # the program
number=537172257
socket=local://$work/s
tcp=tcp://127.0.0.1:20100
port=20101 # libtirpc's own
server_pid=''

# server MODE RPCRDMA-RUN-OPTION...: until it is ready
server() {
	mode=$1
	shift
	rm -f "$work/words"
	mkfifo "$work/words"
	# shellcheck disable=SC2086 # $mode may be "new daemon"
	RPCRDMA_RUN_REPORT=1 "$RUN_PROGRAM" "$@" -- "$work/server" ${mode%% *} "$port" ${mode#"${mode%% *}"} \
		>"$work/words" 2>"$work/server.log" &
	server_pid=$!
	read -r word <"$work/words" || word=
	[ "$word" = ready ] || fail "the server did not start: $(cat "$work/server.log")"
}

# quit HERE ELSEWHERE: the server ends, and has reported at least HERE requests by our handles (0: none), and ELSEWHERE by
# libtirpc's
quit() {
	"$work/client" quit 127.0.0.1 "$port" >"$work/pid" || fail 'SAY_QUIT'
	wait "$server_pid" || fail "the server ended with $?"
	here=$(requests rpcrdma) elsewhere=$(requests original)
	[ "$here" -ge "$1" ] && [ $((here > 0)) -eq $(($1 > 0)) ] || fail "requests here: $here instead of $1"
	[ "$elsewhere" -eq "$2" ] || fail "requests elsewhere: $elsewhere instead of $2"
	checks=$((checks + 3))
}
requests() { # WAY
	sed -n "s/.* service program=$number version=3 way=$1 requests=//p" "$work/server.log" | awk '{ n += $1 } END { print n + 0 }'
}

# run URL CLIENT-ARGUMENT...: its output is in $work/out, its report in $work/err
run() {
	url=$1
	shift
	RPCRDMA_RUN_REPORT=1 "$RUN_PROGRAM" -c "127.0.0.1 $say $url" -- "$work/client" "$@" >"$work/out" 2>"$work/err" ||
		fail "$* by $url: $? $(cat "$work/out" "$work/err")"
}

# went URL CALLS: the report has this many calls that went there, and no others
went() {
	grep -q " client 127.0.0.1 program=$number version=3 way=$1 handles=[0-9]* calls=$2 failed=0 refused=0\$" "$work/err" ||
		fail "not $2 calls by $1: $(cat "$work/err")"
	[ "$(grep -c ' calls=[1-9]' "$work/err")" -eq 1 ] || fail "calls by another way: $(cat "$work/err")"
	checks=$((checks + 1))
}

# ---- each function ------------------------------------------------------------------------------------

server new -s "$socket,$tcp"
n=0
for url in "$socket" "$tcp"; do
	for f in clnt_create clnt_create_timed clnt_create_vers clnt_create_vers_timed clnt_tp_create clnt_tp_create_timed \
		clnt_tli_create clnt_vc_create clnt_dg_create clnttcp_create clntudp_create clntudp_bufcreate; do
		run "$url" "$f" 127.0.0.1 "$port" 5000
		[ "$(cat "$work/out")" = ok ] || fail "$f said $(cat "$work/out")"
		went "$url" 1
	done
	run "$url" clntunix_create 127.0.0.1 "$port" # AF_UNIX is this host
	went "$url" 1
	for f in callrpc rpc_call; do
		run "$url" "$f" 127.0.0.1 "$port"
		went "$url" 2
	done
	# longer than a UDP message
	run "$url" clntudp_create 127.0.0.1 "$port" 1000000
	went "$url" 1
	n=$((n + 18))
	# a name of the same host
	RPCRDMA_RUN_REPORT=1 "$RUN_PROGRAM" -c "localhost $say $url" -- "$work/client" clnt_create 127.0.0.1 "$port" >"$work/out" \
		2>"$work/err" || fail "localhost: $(cat "$work/err")"
	went "$url" 1
	n=$((n + 1))
done
# two functions look for a version by two calls of NULL, of which the second is dispatched
n=$((n + 4))

# ---- the caller, and children ---------------------------------------------------------------------------

run "$socket" caller 127.0.0.1 "$port"
grep -q "^flavor=1 uid=$(id -u) family=2 reserved=1\$" "$work/out" || fail "the caller: $(cat "$work/out")"
went "$socket" 1
run "$socket" fork 127.0.0.1 "$port"
[ "$(cat "$work/out")" = ok ] || fail "a child: $(cat "$work/out" "$work/err")"
[ "$(grep -c "way=$socket " "$work/err")" -eq 2 ] || fail "the report of parent and child: $(cat "$work/err")"
n=$((n + 0))

# ---- what goes the original way ----------------------------------------------------------------------------

m=1 # SAY_QUIT
original() { # RPCRDMA-RUN-OPTION...
	RPCRDMA_RUN_REPORT=1 "$RUN_PROGRAM" "$@" -- "$work/client" clnttcp_create 127.0.0.1 "$port" >"$work/out" 2>"$work/err" ||
		fail "$*: $(cat "$work/err")"
	grep -q 'way=original handles=1 calls=1 failed=0 refused=0$' "$work/err" || fail "$* did not go the original way: $(cat "$work/err")"
	checks=$((checks + 1)) m=$((m + 1))
}
original
original -c "127.0.0.1 $say local://$work/nobody"
grep -q "way=local://$work/nobody handles=0 calls=0 failed=0 refused=1: " "$work/err" || fail "no refusal: $(cat "$work/err")"
original -c "127.0.0.1 ypserv $socket"
# a handle and a call in one: libtirpc asks rpcbind for the port, and there is none
RPCRDMA_RUN_REPORT=1 "$RUN_PROGRAM" -- "$work/client" rpc_call 127.0.0.1 "$port" >"$work/out" 2>"$work/err" || :
grep -q 'way=original handles=0 calls=[12] failed=[12] refused=0$' "$work/err" || fail "rpc_call: $(cat "$work/err")"
original -c "127.0.0.2.invalid $say $socket"
"$work/client" clnttcp_create 127.0.0.1 "$port" >/dev/null || fail 'without rpcrdma-run'
m=$((m + 1))
# without RPCRDMA_RUN_REPORT nothing is printed
ok "$RUN_PROGRAM" -c "127.0.0.1 $say $socket" -- "$work/client" clnttcp_create 127.0.0.1 "$port"
n=$((n + 1))
# into a file
RPCRDMA_RUN_REPORT=$work/report ok "$RUN_PROGRAM" -c "127.0.0.1 $say $socket" -- "$work/client" clnttcp_create 127.0.0.1 "$port"
grep -q "way=$socket handles=1 calls=1" "$work/report" || fail 'no report in the file'
n=$((n + 1))

# another user's program: the environment is not used
if [ "$(id -u)" -eq 0 ] && [ "$(awk '$1 == 0 { print $3 }' /proc/self/uid_map)" -gt 65534 ]; then
	cp "$work/client" "$work/set-id"
	chown 65534 "$work/set-id"
	chmod 4755 "$work/set-id"
	RPCRDMA_RUN_REPORT=1 "$RUN_PROGRAM" -c "127.0.0.1 $say $socket" -- "$work/set-id" clnttcp_create 127.0.0.1 "$port" \
		>"$work/out" 2>"$work/err" || fail "set-user-id: $(cat "$work/err")"
	grep -q 'set-id is a set-user-id program: it runs as without rpcrdma-run' "$work/err" || fail "no warning: $(cat "$work/err")"
	! grep -q 'way=' "$work/err" || fail 'a set-user-id program was changed'
	checks=$((checks + 2)) m=$((m + 1))
fi
quit "$n" "$m"

# ---- other services -------------------------------------------------------------------------------------

# svc_register()
server old -s "$socket"
run "$socket" clnttcp_create 127.0.0.1 "$port"
went "$socket" 1
quit 1 1

# a daemon, which has registered before it went into the background
server 'new daemon' -s "$socket"
# it listens again when its loop runs: later than it says so
until run "$socket" clnttcp_create 127.0.0.1 "$port" 100000 && ! grep -q 'refused=1' "$work/err"; do :; done
went "$socket" 1
run "$socket" quit 127.0.0.1 "$port"
while [ -d "/proc/$(cat "$work/out")" ]; do sleep 0.1; done
grep -q 'way=rpcrdma requests=[2-9]' "$work/server.log" || fail "the daemon: $(cat "$work/server.log")"
checks=$((checks + 1))

# without -s nothing is served elsewhere
server new
run "$socket" clnttcp_create 127.0.0.1 "$port"
grep -q 'way=original handles=1 calls=1' "$work/err" || fail "without -s: $(cat "$work/err")"
quit 0 2

# a URL that cannot be used, beside one that can
server new -s "local:///nonexistent/s,$socket"
grep -q "^rpcrdma-run: cannot serve program $number version 3 at local:///nonexistent/s: No such file" "$work/server.log" ||
	fail "no message: $(cat "$work/server.log")"
run "$socket" clnttcp_create 127.0.0.1 "$port"
went "$socket" 1
quit 1 1

# ---- tables and sizes --------------------------------------------------------------------------------------

echo "$say 3 1 1 1 threshold=4K data_max=2M" >"$work/table"
server new -s "$socket" -t "$work/table"
echo "127.0.0.1 $say $socket max=64K table=table" >"$work/map" # items of the table do not count
RPCRDMA_RUN_REPORT=1 "$RUN_PROGRAM" -c "$work/map" -- "$work/client" clnttcp_create 127.0.0.1 "$port" 1000000 >"$work/out" \
	2>"$work/err" || fail "with a table: $(cat "$work/err")"
went "$socket" 1
# by a symbolic link: its directory has the tables
mkdir "$work/elsewhere"
mv "$work/map" "$work/elsewhere"
ln -s elsewhere/map "$work/map"
RPCRDMA_RUN_REPORT=1 "$RUN_PROGRAM" -c "$work/map" -- "$work/client" clnttcp_create 127.0.0.1 "$port" 1000000 >"$work/out" \
	2>"$work/err" || fail "a map by a link: $(cat "$work/err")"
went "$socket" 1
rm "$work/map"
bad 1 'encode|decode' "$RUN_PROGRAM" -m 64K -c "127.0.0.1 $say $socket" -- "$work/client" clnttcp_create 127.0.0.1 "$port" 1000000
quit 2 1

# ---- what is refused ---------------------------------------------------------------------------------------

printf '# map\n127.0.0.1 %s %s\nhost program\n' "$say" "$socket" >"$work/map"
bad 125 "^rpcrdma-run: $work/map:3: a line is HOST PROGRAM URL" "$RUN_PROGRAM" -c "$work/map" -- true
bad 125 '^rpcrdma-run: map:1: "nothing" is neither' "$RUN_PROGRAM" -c 'h nothing local:///x' -- true
bad 125 '^rpcrdma-run: map:1: /nonexistent: No such file' "$RUN_PROGRAM" -c 'h 1 local:///x table=/nonexistent' -- true
bad 125 '^rpcrdma-run: -s: "/x" is not a URL' "$RUN_PROGRAM" -s /x -- true
bad 125 '^rpcrdma-run: -m: "1" is not a size' "$RUN_PROGRAM" -m 1 -- true
echo '1 1 1' >"$work/table"
bad 125 "^rpcrdma-run: $work/table:1: a line is PROGRAM VERSION" "$RUN_PROGRAM" -t "$work/table" -- true
RPCRDMA_RUN_REPORT=/nonexistent/report bad 125 '^rpcrdma-run: /nonexistent/report: No such file' "$RUN_PROGRAM" true
RPCRDMA_RUN_REPORT=here bad 125 '^rpcrdma-run: RPCRDMA_RUN_REPORT: not 1' "$RUN_PROGRAM" true
bad 127 '^rpcrdma-run: /nonexistent: No such file' "$RUN_PROGRAM" /nonexistent
bad 126 '^rpcrdma-run: /: Permission denied' "$RUN_PROGRAM" /
ok "$RUN_PROGRAM" true
# a setting that only the library sees
RPCRDMA_RUN_MAP='h nothing local:///x' LD_PRELOAD=$PWD/build/librpcrdma-preload.so env true 2>"$work/err" || fail 'a bad setting'
grep -q '^rpcrdma-run: the map is not used: map:1: "nothing" is neither' "$work/err" || fail "a bad setting: $(cat "$work/err")"

echo "$checks checks passed"
