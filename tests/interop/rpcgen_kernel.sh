#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# rpcgen_kernel.sh - NFSv3 by stubs of rpcgen on handles of librpcrdma_tirpc (tests/interop/rpcgen), with Linux at the other
# end: its client mounts the service over RDMA; the client's stubs call knfsd over RDMA and TCP

set -u
cd "$(dirname "$0")/../.." || exit
. tests/interop/lib.sh
in_vm 300
TMPDIR=/run # tmpfs: knfsd exports no overlay
export TMPDIR
setup
[ -x /sbin/mount.nfs ] || { echo 'SKIP: no mount.nfs here (nfs-common)'; exit 77; }
nfs=$tools/rpcgen
are_built rpcgen/nfs_client rpcgen/nfs_server

section 'files'
make_lengths "$work/export/lengths"
cat "$work/random" "$work/random" >"$work/export/big"
mkdir -p "$work/export/many" "$work/export/a/b/c/d/e" "$work/export/empty directory"
: >"$work/export/a/b/c/d/e/$(printf 'odd\tname with\001bytes \377')"
(cd "$work/export/many" && seq -f 'entry-with-a-longish-name-%05g' 700 | xargs touch)
for n in 1 60 1000 3000 4000; do
	ln -s "$(head -c "$n" /dev/zero | tr '\0' t)" "$work/export/a/link-$n"
done
whole=$(fingerprint "$work/export")
bytes=$(find "$work/export" -type f -size +4k -printf '%s\n' | awk '{ n += $1 } END { print n }')

# ---- Linux's client ---------------------------------------------------------------------------------

section 'the service, mounted by Linux'
m=$work/mnt
mkdir "$m"
mkfifo "$work/urls"
"$nfs/nfs_server" "$work/export" /demo tcp://0.0.0.0:20048 rdma://0.0.0.0:20050 >"$work/urls" 2>"$work/server.log" &
server=$!
read -r _ <"$work/urls" || cat "$work/server.log"
ok 'mount' mount -t nfs -o vers=3,proto=rdma,port=20050,mountproto=tcp,mountport=20048,nolock "$addr:/demo" "$m"
ok 'it is RDMA' grep -q " $m nfs .*proto=rdma" /proc/mounts
ok 'statfs' df "$m"
same 'ls -lR' "$(cd "$m" && ls -lR)" "$(cd "$work/export" && ls -lR)"
same 'each file' "$(fingerprint "$m")" "$whole"
ok 'READs by Write chunk' test "$(rdma_count "$m" writes)" -gt 0
ok 'directories by Reply chunk' test "$(rdma_count "$m" replies)" -gt 0
ok 'O_DIRECT' dd if="$m/big" of="$work/big" bs=1M iflag=direct status=none
ok 'O_DIRECT' cmp "$work/big" "$work/export/big"
rm "$work/big"
cold
for n in 1 2 3 4; do
	cksum <"$m/big" >"$work/sum.$n" &
	eval "reader$n=$!"
done
# shellcheck disable=SC2154
wait "$reader1" "$reader2" "$reader3" "$reader4"
for n in 1 2 3 4; do
	same 'four readers at once' "$(cat "$work/sum.$n")" "$(cksum <"$work/export/big")"
done
bad 'touch' touch "$m/new"
said 'touch' 'read-only file system'
bad 'write' sh -c "echo x >>'$m/big'"
bad 'no such file' cat "$m/no such file"
ok 'umount' timeout 60 umount "$m"
kill "$server"
ended 'the service ends' "$server" "$work/server.log"
placed=$(sed -n 's/.* bytes_placed=\([0-9]*\) .*/\1/p' "$work/server.log")
ok "the data were placed by RDMA Write ($placed of at least $bytes bytes)" test "${placed:-0}" -ge "$bytes"

# ---- knfsd -------------------------------------------------------------------------------------------

if { command -v rpcbind && command -v rpc.mountd && command -v rpc.nfsd && command -v exportfs; } >/dev/null; then
	section 'starting knfsd'
	mkdir -p /run/rpcbind /run/sendsigs.omit.d /var/lib/nfs/sm
	echo "$work/export *(rw,no_root_squash,insecure,no_subtree_check,fsid=1)" >/etc/exports
	rpcbind -w
	modprobe nfsd
	modprobe rpcrdma
	mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd
	exportfs -ra
	echo 1048576 >/proc/fs/nfsd/max_block_size
	ok 'knfsd' rpc.nfsd -N 4 -V 3 --rdma=20049 8
	rpc.mountd -p 20048
	for url in "rdma://$addr:20049" "tcp://$addr:2049"; do
		section "the client's stubs on knfsd, $url"
		counted "$url" timeout 100 "$nfs/nfs_client" -w "tcp://$addr:20048" "$url" "$work/export" "$work/export"
		[ -z "${VERBOSE:-}" ] || cat "$work/out"
	done
	rpc.nfsd 0
else
	echo '  SKIP: no nfs-kernel-server here'
fi

same 'queue pairs left' "$(queue_pairs)" 0
finish
