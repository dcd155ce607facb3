#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# linux_server.sh - leat on Linux's own NFS server, over RDMA (MOUNT by way of rpcbind) and over TCP

set -u
cd "$(dirname "$0")/../.." || exit
. tests/interop/lib.sh
in_vm 200
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

knfsd_up() { # BYTES: largest READ and WRITE
	modprobe nfsd
	modprobe rpcrdma
	mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd
	echo "$1" >/proc/fs/nfsd/max_block_size
	rpc.nfsd -N 4 -V 3 --rdma=20049 8
}

section 'starting knfsd'
echo '/run/export *(rw,no_root_squash,insecure,no_subtree_check,fsid=1)' >/etc/exports
rpcbind -w
modprobe nfsd
mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd
exportfs -ra
ok 'knfsd' knfsd_up 1048576
rpc.mountd
ok 'it listens on RDMA' grep -q 'rdma 20049' /proc/fs/nfsd/portlist

for url in "rdma://$addr/run/export" "tcp://$addr/run/export"; do
	way=${url%%:*}
	section "over $way"
	rm -rf /run/export/*
	ok "ping, $way" timeout 20 "$LEAT" ping -c 3 "$url"
	said "$way" "^transport *$way"
	ok 'tree in' timeout 60 "$LEAT" cp -rp "$work/tree" "$url/tree"
	same 'tree in' "$(fingerprint /run/export/tree)" "$tree"
	ok 'tree out' timeout 60 "$LEAT" get -rp "$url/tree" "$work/tree.$way"
	same 'tree out' "$(fingerprint "$work/tree.$way")" "$tree"
	ok 'lengths in' timeout 60 "$LEAT" cp -rp "$work/lengths" "$url/lengths"
	same 'lengths in' "$(fingerprint /run/export/lengths)" "$lens"
	ok 'lengths out' timeout 60 "$LEAT" get -rp "$url/lengths" "$work/lengths.$way"
	same 'lengths out' "$(fingerprint "$work/lengths.$way")" "$lens"
	ok 'big file in' timeout 60 "$LEAT" put "$work/big" "$url/big"
	same 'big file in' "$(cksum </run/export/big)" "$big"
	ok 'big file out' timeout 60 "$LEAT" get "$url/big" "$work/big.$way"
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
	ok 'links out' timeout 30 "$LEAT" get -rp "$url/links" "$work/links.$way"
	same 'links out' "$(fingerprint "$work/links.$way")" "$(fingerprint /run/export/links)"
	bad 'what is not there' timeout 20 "$LEAT" cat "$url/no such file"
	mkdir /run/export/many
	(cd /run/export/many && seq -f 'entry-with-a-longish-name-%05g' 3000 | xargs touch)
	same 'ls of 3000' "$(timeout 60 "$LEAT" ls "$url/many" | cksum)" "$(ls /run/export/many | cksum)"
	for strategy in auto dynamic; do
		[ ! -x "$O/tests/interop/pieces" ] ||
			ok "pieces, $strategy" timeout 60 "$O/tests/interop/pieces" "$url?registration=$strategy"
	done
	ok 'rm -r' timeout 60 "$LEAT" rm -r "$url/tree"
	ok 'rm -r did' test ! -e /run/export/tree
done

section 'smaller inline messages of ours'
url=rdma://$addr/run/export
rm -rf /run/export/*
ok 'lengths in' timeout 60 "$LEAT" cp -rp "$work/lengths" "$url/lengths?inline=1024"
same 'lengths in' "$(fingerprint /run/export/lengths)" "$lens"
ok 'lengths out' timeout 60 "$LEAT" get -rp "$url/lengths?inline=1024&credits=2" "$work/lengths.1024"
same 'lengths out' "$(fingerprint "$work/lengths.1024")" "$lens"

section 'knfsd that is started again'
mkfifo "$work/pipe"
timeout 100 "$LEAT" put - "$url/restarted" <"$work/pipe" >"$work/put.log" 2>&1 &
put=$!
exec 4>"$work/pipe"
head -c 8388608 "$work/big" >&4
wait_for 20 sh -c "ls /run/export/.leat-* /run/export/restarted 2>/dev/null | grep -q ." || :
rpc.nfsd 0
ok 'knfsd again' knfsd_up 1048576
tail -c +8388609 "$work/big" >&4
exec 4>&-
# as with a leatd: what was written and not yet stable went, and a pipe cannot be asked again
rc=0
wait "$put" || rc=$?
tr '\r' '\n' <"$work/put.log" >"$work/out"
same 'a copy from a pipe whose server went' "$rc" 1
said 'what it lost' 'server lost data'
ok 'a file to read' timeout 60 "$LEAT" put "$work/big" "$url/big"
"$LEAT" bench read "$url/big" --size 16M --seconds 8 >"$work/bench.log" 2>&1 &
bench=$!
for i in 1 2; do
	sleep 1
	rpc.nfsd 0
	ok 'knfsd again' knfsd_up 1048576
done
ended 'a reader that saw its server go' "$bench" "$work/bench.log"

section 'leat and knfsd are done'
rpc.nfsd 0
same 'no queue pair is left' "$(queue_pairs)" 0
finish
