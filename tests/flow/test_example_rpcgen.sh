#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# test_example_rpcgen.sh - examples/rpcgen: values of all sizes over the local fabric and TCP, ends of libtirpc alone on the
#                          other side, rpcrdma-info, and the lines of doc/rpcrdma-tirpc.md

set -eu
: "${EXAMPLES:=build/examples}" "${CC:=gcc}"
INFO=${LEAT:-build/leat}
INFO=${INFO%/*}/rpcrdma-info
PATH=$PATH:/usr/sbin:/sbin
. tests/lib/checks.sh

# In a network and a /run of its own, with its own rpcbind, where that is possible.
if [ "${1:-}" != inside ] && command -v rpcbind >/dev/null && [ "$(id -u)" -eq 0 ] &&
	unshare -n -m -p -f --mount-proc mount -t tmpfs tmpfs /run 2>/dev/null; then
	exec unshare -n -m -p -f --kill-child --mount-proc sh "$0" inside
fi
if [ "${1:-}" = inside ]; then
	mount -t tmpfs tmpfs /run
	ip link set lo up
fi
work=$(mktemp -d)
servers=''
finish() {
	for pid in $servers; do kill "$pid" 2>/dev/null || :; done
	rm -rf "$work"
}
trap finish EXIT

# serve COMMAND...: a server in the background, which has said that it is ready
serve() {
	[ -p "$work/words" ] || mkfifo "$work/words"
	"$@" >"$work/words" 2>>"$work/log" &
	servers="$servers $!"
	read -r line <"$work/words" || fail "$*: $(cat "$work/log")"
	[ "$line" = ready ] || fail "$* said $line"
}

# The port: of a run of this test in the same network at the same time, there is another.
port=$((20000 + $$ % 10000))
kv=$EXAMPLES/rpcgen/kv_client
serve "$EXAMPLES/rpcgen/kv_server" "local://$work/kv.sock" "tcp://127.0.0.1:$port"
for url in "local://$work/kv.sock" "tcp://127.0.0.1:$port"; do
	for bytes in 0 1 4095 4096 65537 1048576 16777216; do
		head -c "$bytes" /dev/urandom >"$work/value"
		"$kv" "$url" put key <"$work/value" || fail "put, $bytes bytes, $url"
		"$kv" "$url" get key >"$work/copy" || fail "get, $bytes bytes, $url"
		cmp "$work/value" "$work/copy" || fail "$bytes bytes, $url"
		checks=$((checks + 3))
	done
	ok "$kv" "$url" del key
	bad 1 'kv_client: key: No such file or directory' "$kv" "$url" get key
done
ok "$kv" "local://$work/kv.sock" put big 16M
bad 2 'a value has at most 16777216 bytes' "$kv" "local://$work/kv.sock" put big 17M
bad 2 'a value has at most' "$kv" "local://$work/kv.sock" put big x
ok "$kv" "tcp://127.0.0.1:$port" get big
[ "$(wc -c <"$work/out")" -eq 16777216 ] || fail 'a value of 16M'
bad 1 'kv_client: ' "$kv" "local://$work/none.sock" get big

# ---- rpcrdma-info ----

program=$((0x20616b76))
for url in "local://$work/kv.sock" "tcp://127.0.0.1:$port"; do
	ok "$INFO" "$url" -p "$program" -n 10
	grep -qE "^ *$program +1 +- +[0-9.]+ us, 99% within [0-9.]+ us$" "$work/out" || fail "rpcrdma-info: $(cat "$work/out")"
	grep -q "^transport   ${url%%:*}$" "$work/out" || fail "rpcrdma-info: $(cat "$work/out")"
	bad 1 'none of the programs in /etc/rpc .* answers' "$INFO" "$url"
	bad 1 'none of these programs answers' "$INFO" "$url" -p nfs
	grep -q '100003 .*not served' "$work/out" || fail "rpcrdma-info: $(cat "$work/out")"
done
bad 1 "^rpcrdma-info: local://$work/none.sock: no such socket: Connection refused\$" "$INFO" "local://$work/none.sock" -p nfs
bad 2 'rpcrdma-info: none:///' "$INFO" none:///
bad 2 'no-such-program' "$INFO" "$url" -p no-such-program
bad 2 'not a number of calls' "$INFO" "$url" -n 0

# ---- the lines of the document ----

if [ "${O:-build/obj/default}" = build/obj/default ]; then
	cp -r examples "$work/examples"
	{
		echo 'set -e'
		awk '/^## / { on = /^## From an existing/ } on && /^    / { print substr($0, 5) }' doc/rpcrdma-tirpc.md |
			sed "s,/tmp/kv.sock,$work/doc.sock,g
			s,\$(pkg-config --cflags --libs rpcrdma-tirpc libtirpc),\"-I$PWD/include -L$PWD/build -lrpcrdma_tirpc -Wl#-rpath#$PWD/build $(pkg-config --cflags --libs libtirpc)\",
			s,#,\\,,g
			s,^\(./kv_server .*\)&\$,\1>words \& echo \$! >pid; read -r line <words,"
	} >"$work/lines"
	[ "$(wc -l <"$work/lines")" -gt 8 ] || fail 'doc/rpcrdma-tirpc.md has no lines'
	mkfifo "$work/examples/rpcgen/words"
	(cd "$work" && sh ./lines) >"$work/out" 2>"$work/err" || fail "doc/rpcrdma-tirpc.md: $(cat "$work/err")"
	servers="$servers $(cat "$work/examples/rpcgen/pid")"
	[ "$(cat "$work/out")" -eq 16777216 ] || fail "doc/rpcrdma-tirpc.md: $(cat "$work/out")"
	checks=$((checks + 1))
fi

# ---- the same source on libtirpc alone, at either end ----

if [ "${1:-}" != inside ]; then
	echo 'skipped: ends of libtirpc alone: no rpcbind, or no namespaces of our own here (root and unshare)'
	echo "$checks passed, 0 failed"
	exit
fi
rpcbind -f -w >"$work/rpcbind" 2>&1 &
tries=0
until rpcinfo >/dev/null 2>&1; do
	tries=$((tries + 1))
	[ "$tries" -lt 1000 ] || fail "no rpcbind: $(cat "$work/rpcbind")"
done
serve "$EXAMPLES/rpcgen/kv_server_tcp" tcp
theirs=$(rpcinfo -p | awk '$1 == '"$program"' && $3 == "tcp" { print $4 }')
head -c 3000001 /dev/urandom >"$work/value"
"$EXAMPLES/rpcgen/kv_client_tcp" 127.0.0.1 put mixed <"$work/value" || fail 'both ends of libtirpc'
"$kv" "tcp://127.0.0.1:$theirs" get mixed >"$work/copy" || fail 'our client, their server'
cmp "$work/value" "$work/copy" || fail 'our client, their server'
"$kv" "tcp://127.0.0.1:$theirs" put mixed <"$kv" || fail 'our client, their server'
"$EXAMPLES/rpcgen/kv_client_tcp" 127.0.0.1 get mixed >"$work/copy" || fail 'both ends of libtirpc'
cmp "$kv" "$work/copy" || fail 'put by our client'
kill "${servers##* }"
rpcinfo -d "$program" 1 # the server was killed, and has left it
serve "$EXAMPLES/rpcgen/kv_server" tcp://0.0.0.0:0 # rpcbind knows the port
"$EXAMPLES/rpcgen/kv_client_tcp" 127.0.0.1 put mixed <"$kv" || fail 'their client, our server'
"$EXAMPLES/rpcgen/kv_client_tcp" 127.0.0.1 get mixed >"$work/copy" || fail 'their client, our server'
cmp "$kv" "$work/copy" || fail 'their client, our server'
checks=$((checks + 8))
echo "$checks passed, 0 failed"
