#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# linux_server.sh - leat on Linux's own NFS server, over RDMA (MOUNT by way of rpcbind) and over TCP:
# an export for reserved ports, trees, every awkward length, pieces, long calls, large directories, sizes of messages on
# both sides, a server that is started again under readers and writers, and files that are gone or not available

set -u
cd "$(dirname "$0")/../.." || exit
. tests/interop/lib.sh
in_vm 3600
setup
PATH=$PATH:/usr/sbin:/sbin
for tool in rpcbind rpc.mountd rpc.nfsd exportfs; do
	command -v "$tool" >/dev/null || { echo "SKIP: no $tool here (nfs-kernel-server)"; exit 77; }
done

make_tree "$work/tree"
tree=$(fingerprint "$work/tree")
make_lengths "$work/lengths"
lens=$(fingerprint "$work/lengths")
head -c 16777219 /dev/urandom >"$work/big"
big=$(cksum <"$work/big")
mkdir -p /run/export /run/rpcbind /run/sendsigs.omit.d /var/lib/nfs/sm

for tool in pieces probe verbs_long; do
	[ -x "$tools/$tool" ] || echo "  SKIP: $tool is not built (libibverbs-dev, librdmacm-dev)"
done

knfsd_up() { # BYTES: largest READ and WRITE
	modprobe nfsd
	modprobe rpcrdma
	mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd
	echo "$1" >/proc/fs/nfsd/max_block_size
	rpc.nfsd -N 4 -V 3 --rdma=20049 8
}

knfsd_again() {
	rpc.nfsd 0
	knfsd_up 1048576
}

# calls of one NFSv3 procedure that knfsd has answered since it was loaded
answered() { # NUMBER
	awk -v at=$(($1 + 3)) '$1 == "proc3" { print $at }' /proc/net/rpc/nfsd
}

more_reads() { # COUNT MORE: READs answered
	[ "$(answered 6)" -ge $(($1 + $2)) ]
}

section 'starting knfsd'
mkdir -p /run/secure
echo '/run/export *(rw,no_root_squash,insecure,no_subtree_check,fsid=1)' >/etc/exports
echo '/run/secure *(rw,no_root_squash,secure,no_subtree_check,fsid=2)' >>/etc/exports
rpcbind -w
modprobe nfsd
mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd
exportfs -ra
ok 'knfsd' knfsd_up 1048576
rpc.mountd -p 20048
ok 'it listens on RDMA' grep -q 'rdma 20049' /proc/fs/nfsd/portlist

section 'an export for reserved ports'
for way in rdma tcp; do
	url=$way://$addr/run/secure
	ok "file in, $way" timeout 100 "$LEAT" put "$work/lengths/len-65537" "$url/$way"
	ok "its content, $way" cmp "$work/lengths/len-65537" "/run/secure/$way"
	bad "as another user, $way" timeout 100 setpriv --reuid 65534 --regid 65534 --clear-groups "$LEAT" cat "$url/$way"
	said "why not, $way" 'port below 1024'
done

for url in "rdma://$addr/run/export" "tcp://$addr/run/export"; do
	way=${url%%:*}
	section "over $way"
	rm -rf /run/export/*
	ok "ping, $way" timeout 100 "$LEAT" ping -c 3 "$url"
	said "$way" "^transport *$way"
	ok 'tree in' timeout 300 "$LEAT" cp -rp "$work/tree" "$url/tree"
	same 'tree in' "$(fingerprint /run/export/tree)" "$tree"
	ok 'tree out' timeout 300 "$LEAT" get -rp "$url/tree" "$work/tree.$way"
	same 'tree out' "$(fingerprint "$work/tree.$way")" "$tree"
	ok 'lengths in' timeout 300 "$LEAT" cp -rp "$work/lengths" "$url/lengths"
	same 'lengths in' "$(fingerprint /run/export/lengths)" "$lens"
	ok 'lengths out' timeout 300 "$LEAT" get -rp "$url/lengths" "$work/lengths.$way"
	same 'lengths out' "$(fingerprint "$work/lengths.$way")" "$lens"
	ok 'big file in' timeout 300 "$LEAT" put "$work/big" "$url/big"
	same 'big file in' "$(cksum </run/export/big)" "$big"
	ok 'big file out' timeout 300 "$LEAT" get "$url/big" "$work/big.$way"
	same 'big file out' "$(cksum <"$work/big.$way")" "$big"
	ok 'mkdir -p' "$LEAT" mkdir -p "$url/d/e"
	ok 'mv' "$LEAT" mv "$url/lengths/len-9" "$url/d/e/nine"
	ok 'mv did' cmp "$work/lengths/len-9" /run/export/d/e/nine
	ok 'directory of links' "$LEAT" mkdir "$url/links"
	for n in 1 3 60 1000 3000 4000; do
		target=$(head -c "$n" /dev/zero | tr '\0' t)
		ok "symlink of $n" "$LEAT" ln -s "$target" "$url/links/link-$n"
		same "symlink of $n" "$(readlink "/run/export/links/link-$n")" "$target"
	done
	ok 'links out' timeout 100 "$LEAT" get -rp "$url/links" "$work/links.$way"
	same 'links out' "$(fingerprint "$work/links.$way")" "$(fingerprint /run/export/links)"
	bad 'what is not there' timeout 100 "$LEAT" cat "$url/no such file"
	mkdir /run/export/many
	(cd /run/export/many && seq -f 'entry-with-a-longish-name-%05g' 10000 | xargs touch)
	same 'ls of 10000' "$(timeout 300 "$LEAT" ls "$url/many" | cksum)" "$(ls /run/export/many | cksum)"
	rm -r /run/export/many
	strategies='auto dynamic cache batch slab arena'
	[ "$way" = rdma ] || strategies=auto # nothing is registered
	for strategy in $strategies; do
		[ ! -x "$tools/pieces" ] ||
			ok "pieces, $strategy" timeout 300 "$tools/pieces" "$url?registration=$strategy"
	done
	ok 'rm -r' timeout 300 "$LEAT" rm -r "$url/tree"
	ok 'rm -r did' test ! -e /run/export/tree
done

section 'what a copy must not lose'
rdma=rdma://$addr/run/export tcp=tcp://$addr/run/export
for url in "$rdma" "$tcp"; do
	cp "$work/big" /run/export/mine
	ln /run/export/mine /run/export/second
	bad 'onto itself' timeout 100 "$LEAT" cp "$url/mine" "$url/second"
	said 'onto itself' 'are the same file'
	# leat may not detect that two addresses are one server: the content must survive a copy onto itself
	other=$tcp
	[ "$url" = "$rdma" ] || other=$rdma
	ok 'onto itself, by another way' timeout 100 "$LEAT" cp "$url/mine" "$other/second"
	ok 'onto itself, unlinked' timeout 100 "$LEAT" cp "$url/mine" "$other/mine"
	same 'its content' "$(cksum </run/export/mine)" "$big"
	same 'its content' "$(cksum </run/export/second)" "$big"
	rm /run/export/second
	chown 12:34 /run/export/mine
	chmod 4750 /run/export/mine
	setfacl -m u:56:rw,g::---,m::rw /run/export/mine
	list=$(getfacl -cpn /run/export/mine | grep -v '^#')
	ok 'over a file of another user' timeout 100 "$LEAT" put "$work/lengths/len-9" "$url/mine"
	same 'its content' "$(cksum </run/export/mine)" "$(cksum <"$work/lengths/len-9")"
	same 'its attributes' "$(stat -c '%a %u %g' /run/export/mine)" '760 12 34'
	same 'its list' "$(getfacl -cpn /run/export/mine)" "$list"
	mkdir /run/export/from
	mv /run/export/mine /run/export/from
	setfacl -d -m u:56:rwx /run/export/from
	ok 'with -p' timeout 100 "$LEAT" cp -rp "$url/from" "$url/to"
	same 'its list' "$(getfacl -cpn /run/export/to/mine)" "$list"
	setfacl -d -m u:56:rwx /run/export/to
	ok 'with -p, once more' timeout 100 "$LEAT" cp -rp "$url/from/." "$url/to"
	same 'default lists stay' "$(getfacl -cpnd /run/export/to)" "$(getfacl -cpnd /run/export/from)"
	rm -r /run/export/from /run/export/to
done

url=rdma://$addr/run/export
if [ -x "$tools/probe" ]; then
	section 'links of every length'
	ok 'symlink and readlink of 1 to 4000' timeout 300 "$tools/probe" links "$url" 1
	ok 'some of them in small messages' timeout 300 "$tools/probe" links "$url?inline=1024" 7
fi

section 'sizes of messages, on both sides'
size=$(cat /proc/sys/sunrpc/svc_rdma/max_req_size)
for pair in '4096 1024' '4096 65536' '16384 4096' '65536 1024' '65536 65536'; do
	server=${pair% *} client=${pair#* }
	smaller=$((server < client ? server : client))
	way="knfsd $server, leat $client"
	rm -rf /run/export/*
	rpc.nfsd 0
	echo "$server" >/proc/sys/sunrpc/svc_rdma/max_req_size
	ok "knfsd with $server" knfsd_up 1048576
	ok "ping, $way" timeout 100 "$LEAT" ping -c 1 "$url?inline=$client"
	said "$way" "^inline *send $smaller, receive $smaller bytes"
	ok "lengths in, $way" timeout 300 "$LEAT" cp -rp "$work/lengths" "$url/lengths?inline=$client"
	same "lengths in, $way" "$(fingerprint /run/export/lengths)" "$lens"
	ok "lengths out, $way" timeout 300 "$LEAT" get -rp "$url/lengths?inline=$client" "$work/back"
	same "lengths out, $way" "$(fingerprint "$work/back")" "$lens"
	rm -rf "$work/back"
	[ ! -x "$tools/verbs_long" ] || ok "long calls and replies, $way" timeout 300 \
		"$tools/verbs_long" "$addr" 20049 20048 /run/export "$client"
done
rpc.nfsd 0
echo "$size" >/proc/sys/sunrpc/svc_rdma/max_req_size
ok 'knfsd as it was' knfsd_up 1048576
ok 'two credits' timeout 300 "$LEAT" cp -rp "$work/lengths" "$url/two?inline=1024&credits=2"
same 'two credits' "$(fingerprint /run/export/two)" "$lens"

section 'knfsd that is started again'
mkfifo "$work/pipe"
timeout 300 "$LEAT" put - "$url/restarted" <"$work/pipe" >"$work/put.log" 2>&1 &
put=$!
exec 4>"$work/pipe"
head -c 8388608 "$work/big" >&4
ok 'a copy from a pipe is under way' arriving /run/export "$put" restarted
ok 'knfsd again' knfsd_again
tail -c +8388609 "$work/big" >&4
exec 4>&-
# as with a leatd: what was written and not yet stable went, and a pipe cannot be asked again
rc=0
wait "$put" || rc=$?
tr '\r' '\n' <"$work/put.log" >"$work/out"
same 'a copy from a pipe whose server went' "$rc" 1
said 'what it lost' 'server lost data'
# a file can: the copy is made once more, and is right. It is stopped in its middle meanwhile
for i in 1 2 3; do
	"$LEAT" put "$work/big" "$url/again-$i?credits=1&wsize=16384" >"$work/put.log" 2>&1 &
	put=$!
	ok "copy $i is under way" arriving /run/export "$put" "again-$i"
	kill -STOP "$put"
	ok "copy $i is not done" test ! -e "/run/export/again-$i"
	ok 'knfsd again' knfsd_again
	kill -CONT "$put"
	ended "copy $i of a file whose server went" "$put" "$work/put.log"
	same "copy $i" "$(cksum <"/run/export/again-$i")" "$big"
done
same 'nothing half done is left' "$(find /run/export -name '.leat-*')" ''
for i in 1 2; do
	"$LEAT" get "$url/again-1?credits=1&rsize=16384" "$work/get-$i" >"$work/get.log" 2>&1 &
	get=$!
	ok "reader $i is under way" arriving "$work" "$get"
	kill -STOP "$get"
	ok "reader $i is not done" test ! -e "$work/get-$i"
	ok 'knfsd again' knfsd_again
	kill -CONT "$get"
	ended "reader $i whose server went" "$get" "$work/get.log"
	same "reader $i" "$(cksum <"$work/get-$i")" "$big"
done
before=$(answered 6)
"$LEAT" bench read "$url/again-1" --size 16M --seconds 6 >"$work/bench.log" 2>&1 &
bench=$!
for i in 1 2; do
	ok 'a reader reads' wait_for 100 more_reads "$before" 20
	before=$(answered 6)
	ok 'knfsd again' knfsd_again
done
ended 'a reader that saw its server go' "$bench" "$work/bench.log"

if [ -x "$tools/probe" ]; then
	section 'files that are gone, files that are not to be had now'
	echo 'soon gone' >/run/export/gone
	mkfifo "$work/line"
	timeout 300 "$tools/probe" stale "$url" gone <"$work/line" >"$work/stale.log" 2>&1 &
	stale=$!
	exec 4>"$work/line"
	ok 'a file is open' wait_for 100 grep -q open "$work/stale.log"
	rm /run/export/gone
	rpc.nfsd 0 # it may hold the file for some seconds yet
	ok 'knfsd again' knfsd_up 1048576
	echo >&4
	exec 4>&-
	ended 'a file that is gone' "$stale" "$work/stale.log"
	cp "$work/stale.log" "$work/out"
	said 'and what is said of it' 'READ.*[Ss]tale'
	# knfsd answers JUKEBOX to a READ of a file that a program on its machine holds a lease on
	head -c 70001 "$work/random" >/run/export/leased
	"$tools/probe" lease /run/export/leased <"$work/line" >"$work/lease.log" 2>&1 &
	lease=$!
	exec 4>"$work/line"
	ok 'a lease' wait_for 100 grep -q held "$work/lease.log"
	before=$(answered 6)
	"$LEAT" get "$url/leased" "$work/leased" >"$work/get.log" 2>&1 &
	get=$!
	ok 'the lease is asked back' wait_for 100 grep -q asked "$work/lease.log"
	ok 'and again, since not now is not never' wait_for 100 more_reads "$before" 3
	ok 'leat waits' kill -0 "$get"
	echo >&4
	exec 4>&-
	ended 'the lease is given back' "$lease" "$work/lease.log"
	ended 'a file that was not to be had' "$get" "$work/get.log"
	ok 'what it was given then' cmp "$work/leased" /run/export/leased
fi

section 'leat and knfsd are done'
rpc.nfsd 0
same 'no queue pair is left' "$(queue_pairs)" 0
finish
