#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# leat_leatd.sh - leat against leatd over verbs: trees and files both ways, every awkward length, what a connection
# costs, peers that die, a device that is removed. leat_leatd_sizes.sh: other sizes, credits and modes

set -u
cd "$(dirname "$0")/../.." || exit
. tests/interop/lib.sh
in_vm 3600
setup

url=rdma://$addr/demo
are_built pieces probe stale verbs_fabric verbs_toy verbs_window
# KiB that a process has registered; KiB of rxe's queues, which their owners map
pinned() { awk '/^VmPin/ { print $2 }' "/proc/$1/status"; }
rings() { awk '/rxe_queue_init/ { n += $2 - 4096 } END { print int(n / 1024) }' /proc/vmallocinfo; }
# The rings are of two ends; a completion queue is made for several connections.
# What leatd lends to a connection may be registered already (many.sh looks at the first connection), and the pool may
# have freed idle segments since: then leatd has registered less than before.
is_cheap() { # REGISTERED RINGS
	[ $(($1 + ($2 + 1) / 2)) -le 256 ]
}

make_tree "$work/tree"
tree=$(fingerprint "$work/tree")
make_lengths "$work/lengths"
lens=$(fingerprint "$work/lengths")
make_big "$work/big"
big=$(cksum <"$work/big")

if [ -x "$tools/verbs_fabric" ]; then
	section 'the contract of a fabric'
	ok 'verbs_fabric' timeout 300 "$tools/verbs_fabric"
	sed -n 's/^\[  \(PASSED\|FAILED\) .*/          &/p' "$work/out"
fi
if [ -x "$tools/verbs_window" ]; then
	ok 'verbs_window' timeout 300 "$tools/verbs_window" "$addr" 20110
	sed -n 's/^\[  \(PASSED\|FAILED\) .*/          &/p' "$work/out"
fi
if [ -x "$tools/verbs_toy" ]; then
	counted 'verbs_toy' timeout 300 "$tools/verbs_toy" "rdma://$addr:20120"
fi
not_ready=$(not_ready)

section 'trees and files'
leatd_start --unsafe-inv # only for clients that ask for it
ok ping timeout 100 "$LEAT" ping -c 5 "$url"
said 'rdma' '^transport *rdma (rxe0)'
ok 'the better way is found' timeout 100 "$LEAT" ping -c 1 "leat://$addr/demo"
said 'and it is rdma' '^transport *rdma (rxe0)'
bad 'IPv6 to a listener of IPv4' timeout 100 "$LEAT" ping -c 1 'rdma://[fd77::1]/demo'
ok 'tree in' timeout 300 "$LEAT" cp -rp "$work/tree" "$url/tree"
same 'tree in' "$(fingerprint "$work/export/tree")" "$tree"
ok 'tree out' timeout 300 "$LEAT" get -rp "$url/tree" "$work/tree.back"
same 'tree out' "$(fingerprint "$work/tree.back")" "$tree"
ok 'tree across' timeout 300 "$LEAT" cp -rp "$url/tree" "$url/tree2"
same 'tree across' "$(fingerprint "$work/export/tree2")" "$tree"
ok 'lengths in' timeout 300 "$LEAT" cp -rp "$work/lengths" "$url/lengths"
same 'lengths in' "$(fingerprint "$work/export/lengths")" "$lens"
ok 'lengths out' timeout 300 "$LEAT" get -rp "$url/lengths" "$work/lengths.back"
same 'lengths out' "$(fingerprint "$work/lengths.back")" "$lens"
for n in 0 1 4095 4097 1048577; do
	same "cat of $n bytes" "$(timeout 100 "$LEAT" cat "$url/lengths/len-$n" | cksum)" \
		"$(cksum <"$work/lengths/len-$n")"
done
ok 'big file in' timeout 300 "$LEAT" put "$work/big" "$url/big"
same 'big file in' "$(cksum <"$work/export/big")" "$big"
ok 'big file out' timeout 300 "$LEAT" get "$url/big" "$work/big.back"
same 'big file out' "$(cksum <"$work/big.back")" "$big"

section 'names'
ok mkdir "$LEAT" mkdir -p "$url/d/e/f"
ok 'mkdir did' test -d "$work/export/d/e/f"
ok mv "$LEAT" mv "$url/lengths/len-9" "$url/d/e/nine"
ok 'mv did' cmp "$work/lengths/len-9" "$work/export/d/e/nine"
ok 'link by name' "$LEAT" ln -s 'e/nine' "$url/d/link"
same 'link by name' "$(readlink "$work/export/d/link")" e/nine
ok 'second name' "$LEAT" ln "$url/d/e/nine" "$url/d/hard"
same 'second name' "$(stat -c %h "$work/export/d/hard")" 2
mkdir "$work/links"
for n in 1 2 3 4 60 500 1000 2047 4000; do
	ln -s "$(head -c "$n" /dev/zero | tr '\0' t)" "$work/links/link-$n"
done
ok 'links in' timeout 100 "$LEAT" cp -rp "$work/links" "$url/links"
same 'links in' "$(fingerprint "$work/export/links")" "$(fingerprint "$work/links")"
ok 'links out' timeout 100 "$LEAT" get -rp "$url/links" "$work/links.back"
same 'links out' "$(fingerprint "$work/links.back")" "$(fingerprint "$work/links")"
long=$(head -c 255 /dev/zero | tr '\0' n)
ok 'longest name' "$LEAT" mkdir "$url/$long"
ok 'longest name did' test -d "$work/export/$long"
ok 'ls -l' "$LEAT" ls -l "$url/d"
bad 'what is not there' timeout 100 "$LEAT" cat "$url/no such file"
ok 'rm -r' timeout 300 "$LEAT" rm -r "$url/tree2"
ok 'rm -r did' test ! -e "$work/export/tree2"
mkdir "$work/export/many"
(cd "$work/export/many" && seq -f 'entry-with-a-longish-name-%05g' 10000 | xargs touch)
same 'ls of 10000' "$(timeout 300 "$LEAT" ls "$url/many" | cksum)" "$(ls "$work/export/many" | cksum)"
ok df "$LEAT" df "$url"

section 'pieces of memory: segments, registrations'
if [ -x "$tools/pieces" ]; then
	for registration in auto dynamic cache batch slab arena "cache&monitor=none" "batch&reg_entries=3" \
		window "window&unsafe_inv=yes"; do
		ok "pieces, $registration" timeout 300 "$tools/pieces" \
			"$url?registration=$registration"
	done
fi
ok 'windows' timeout 100 "$LEAT" ping -c 1 "$url?registration=window"
said 'and no R on soft RoCE' '^registration *window, remote invalidation no'
ok 'windows with R' timeout 100 "$LEAT" ping -c 1 "$url?registration=window&unsafe_inv=yes"
said 'if that is wanted' '^registration *window, remote invalidation yes'
for bench in 'read --bs 1M --qd 4' 'write --bs 1M --qd 4' 'randread --bs 4k --qd 8' 'randwrite --bs 4k --qd 8' \
	'read --bs 64k --qd 8 --buf malloc'; do
	# shellcheck disable=SC2086
	ok "bench $bench" timeout 100 "$LEAT" bench ${bench%% *} "$url" ${bench#* } --size 16M --seconds 1
done

if [ -x "$tools/stale" ]; then
	section 'memory that has other pages than it had'
	: >"$work/export/pages"
	ok 'other pages, batch' timeout 300 "$tools/stale" "$url?registration=batch" \
		"$work/export/pages" 2000 none
	ok 'other pages, cache' timeout 300 "$tools/stale" "$url?registration=cache" \
		"$work/export/pages" 500 none
	# a device that did no harm would prove nothing
	ok 'other pages, and nobody watches' timeout 300 "$tools/stale" \
		"$url?registration=cache&monitor=none" "$work/export/pages" 200 some
fi

if [ -x "$tools/probe" ]; then
	ok 'symlink and readlink of 1 to 4000' timeout 300 "$tools/probe" links "$url" 7
	ok 'and in small messages' timeout 300 "$tools/probe" links "$url?inline=1024" 17
fi

if [ -x "$tools/probe" ]; then
	section 'credits, and what a connection costs'
	ok 'from 8 to 64 with demand' timeout 300 "$tools/probe" credits "$url" 64
	ok 'but no more than are wanted' timeout 300 "$tools/probe" credits "$url?credits=20" 20
	mkfifo "$work/line"
	for n in 1 16; do
		pins=$(pinned "$leatd_pid") rings=$(rings)
		"$tools/probe" hold "$url" "$n" <"$work/line" >"$work/hold.log" 2>&1 &
		hold=$!
		exec 4>"$work/line"
		ok "$n mounted" wait_for 100 grep -q mounted "$work/hold.log"
		pins=$((($(pinned "$leatd_pid") - pins) / n))
		mine=$(($(pinned "$hold") / n))
		rings=$((($(rings) - rings) / n))
		echo "          of $n: $pins KiB registered by leatd, $mine by leat; rings of both $rings KiB"
		ok "both have registered memory" test "$(pinned "$leatd_pid")" -gt 0 -a "$mine" -gt 0
		ok "memory of one of $n, leatd's" is_cheap "$pins" "$rings"
		ok "memory of one of $n, leat's" is_cheap "$mine" "$rings"
		exec 4>&-
		ended "$n held" "$hold" "$work/hold.log"
	done
fi

section 'eight at once'
pids=''
for i in 1 2 3 4 5 6 7 8; do
	(timeout 300 "$LEAT" put "$work/lengths/len-3145731" "$url/par-$i" &&
		timeout 300 "$LEAT" get "$url/par-$i" "$work/par-$i") >"$work/par-$i.log" 2>&1 &
	pids="$pids $!"
done
# shellcheck disable=SC2086
ok 'eight at once' wait $pids
for i in 1 2 3 4 5 6 7 8; do
	ok "what number $i has moved" cmp "$work/lengths/len-3145731" "$work/par-$i"
done
ok 'many connections of one' timeout 100 "$LEAT" ping -c 4 "$url?conns=8"

section 'clients that die'
for i in 1 2 3 4; do
	"$LEAT" bench write "$url/victim-$i" --size 64M --seconds 20 >"$work/victim" 2>&1 &
	victim=$!
	wait_for 100 test -s "$work/export/victim-$i"
	kill -KILL "$victim"
	wait "$victim" 2>/dev/null
	ok "another one after death $i" timeout 100 "$LEAT" get "$url/lengths/len-1048577" "$work/after"
	ok "and its data" cmp "$work/after" "$work/lengths/len-1048577"
done
ok 'their queue pairs go' wait_for 100 sh -c '[ "$(rdma resource show qp | grep -c "type RC")" -eq 0 ]'

section 'a server that is started again'
mkfifo "$work/pipe"
timeout 300 "$LEAT" put - "$url/restarted" <"$work/pipe" >"$work/put.log" 2>&1 &
put=$!
exec 4>"$work/pipe"
head -c 16777216 "$work/big" >&4
wait_for 100 sh -c "ls '$work'/export/.leat-* '$work/export/restarted' 2>/dev/null | grep -q ."
leatd_stop KILL
leatd_start
tail -c +16777217 "$work/big" >&4
exec 4>&-
# what was written and not yet stable went with the server, and a pipe cannot be asked again
rc=0
wait "$put" || rc=$?
tr '\r' '\n' <"$work/put.log" >"$work/out"
same 'a copy from a pipe whose server was killed' "$rc" 1
said 'what it lost' 'server lost data'
same 'and leaves nothing' "$(find "$work/export" -name 'restarted' -o -name '.leat-*')" ''
# a file can: the copy is made once more, and is right. It is stopped in its middle meanwhile
"$LEAT" put "$work/big" "$url/again?credits=1&wsize=16384" >"$work/put.log" 2>&1 &
put=$!
ok "the copy is under way" arriving "$work/export" "$put"
kill -STOP "$put"
ok "the copy is not done" test ! -e "$work/export/again"
leatd_stop KILL
leatd_start
kill -CONT "$put"
ended "the copy whose server was killed" "$put" "$work/put.log"
same "the copy" "$(cksum <"$work/export/again")" "$big"
"$LEAT" get "$url/again?credits=1&rsize=16384" "$work/get" >"$work/get.log" 2>&1 &
get=$!
ok "the reader is under way" arriving "$work" "$get"
kill -STOP "$get"
ok "the reader is not done" test ! -e "$work/get"
leatd_stop KILL
leatd_start
kill -CONT "$get"
ended "the reader whose server was killed" "$get" "$work/get.log"
same "the reader" "$(cksum <"$work/get")" "$big"
# a tree: what was being made or renamed when the server was killed is there once, and right
mkdir "$work/many"
for i in $(seq 400); do
	echo "this is file $i" >"$work/many/f$i"
done
"$LEAT" cp -r "$work/many" "$url/killed" >"$work/put.log" 2>&1 &
put=$!
ok 'a tree is under way' wait_for 100 sh -c "ls '$work/export/killed' | grep -q '^f'"
kill -STOP "$put"
ok 'the tree is not done' test "$(ls "$work/export/killed" | wc -l)" -lt 400
leatd_stop KILL
leatd_start
kill -CONT "$put"
ended 'a tree whose server was killed' "$put" "$work/put.log"
ok 'the tree' diff -r "$work/many" "$work/export/killed"
same 'nothing half done is left' "$(find "$work/export" -name '.leat-*')" ''
"$LEAT" bench read "$url/big" --size 32M --seconds 8 >"$work/bench.log" 2>&1 &
bench=$!
ok 'a reader is there' wait_for 100 sh -c '[ "$(rdma resource show qp | grep -c "type RC.*RTS")" -ge 2 ]'
for i in 1 2 3; do
	sleep 1
	leatd_stop
	leatd_start
done
ended 'a reader that saw three restarts' "$bench" "$work/bench.log"
leatd_stop

section 'other users'
# files in memory are served by the thread that has the device, and the kernel checks that thread's credentials
mkdir "$work/memory" && chmod 755 "$work" && mount -t tmpfs -o mode=1777 memory "$work/memory"
leatd_start --reactors 1 --listen "local://$work/sock" --export "/memory=$work/memory,rw,clients=10.77.0.0/16"
ok 'a user writes' timeout 300 setpriv --reuid=65534 --regid=65534 --clear-groups \
	"$LEAT" put "$work/random" "local://$work/sock/memory/theirs"
same 'it is his' "$(stat -c %u "$work/memory/theirs")" 65534
ok 'over RDMA, after it' timeout 300 "$LEAT" get "rdma://$addr/memory/theirs" "$work/back"
ok 'its data' cmp "$work/random" "$work/back"
leatd_stop
umount "$work/memory"

section 'what leat doctor says'
leatd_start
ok doctor timeout 100 "$LEAT" doctor "leat://$addr/demo"
said 'its device' '^rdma  *ok  *rxe0 port 1 is ACTIVE'
said 'its way' '^way  *ok  *rdma (rxe0)'
leatd_stop

section 'no server'
bad 'nobody listens' timeout 100 "$LEAT" ping -c 1 "$url"
said 'and it is refused' 'refused'
same 'no queue pair is left' "$(queue_pairs)" 0
# no message was ever sent without a posted receive (RNR retries are off: it would end a connection)
same 'receivers that were not ready' "$(not_ready)" "$not_ready"

# The kernel delays the removal of a soft device until no process has it open; the events come at once.
section 'a device that goes'
leatd_start
ok 'a file' timeout 100 "$LEAT" put "$work/random" "$url/file"
"$LEAT" bench read "$url/file" --size 4M --seconds 300 >"$work/bench.log" 2>&1 &
bench=$!
ok 'a reader is there' wait_for 100 sh -c '[ "$(rdma resource show qp | grep -c "type RC.*RTS")" -ge 2 ]'
rdma link delete rxe0 &
removal=$!
ok 'no registered memory keeps a connection' wait_for 100 sh -c "! ls -l /proc/$leatd_pid/fd | grep -q 'uverbs0$'"
ok 'TCP goes on' timeout 100 "$LEAT" ping -c 1 "tcp://$addr/demo"
ok 'and moves data' timeout 100 "$LEAT" get "tcp://$addr/demo/file" "$work/file"
ok 'the same data' cmp "$work/file" "$work/random"
bad 'RDMA is not to be had' timeout 100 "$LEAT" ping -c 1 "$url"
kill -KILL "$bench" # it waits for its server
wait "$bench" 2>/dev/null
leatd_stop
wait "$removal"
same 'it is gone' "$(rdma link | grep -c rxe0)" 0
ok 'and comes back' rdma link add rxe0 type rxe netdev veth0
leatd_start
ok 'to a server that is started then' wait_for 100 timeout 100 "$LEAT" ping -c 1 "$url"
finish
