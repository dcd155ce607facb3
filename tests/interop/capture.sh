#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# capture.sh - what leat and Linux's client say to leatd on a wire: the rules of doc/protocol.md by
# leat dump --check, and each header as tshark reads it

set -u
cd "$(dirname "$0")/../.." || exit
. tests/interop/lib.sh
. tests/lib/wire_lines.sh
wire=capture.pcap

# ---- outside: what came of it ----------------------------------------------------------------------

# spoken WHAT PATTERN: there is such a line
spoken() { ok "$1" grep -qE -e "$2" "$out/lines"; }

look() {
	echo "          the wire: $(du -k "$out/$wire" | cut -f 1) KiB"
	ok 'no rule is broken' "$LEAT" dump --check "$out/$wire"
	sed 's/^/          /' "$work/out"
	"$LEAT" dump "$out/$wire" >"$out/lines"
	same 'calls without a reply' "$(grep -c ' REPLY ' "$out/lines")" "$(grep -c ' CALL ' "$out/lines")"
	# of leat, then of Linux: what has to be there for the rules to have meant anything
	spoken 'a connection that cannot be invalidated' 'CM REQ .*private\[send=4096 receive=4096\]'
	spoken 'one that can' 'CM REQ .*private\[send=4096 receive=4096 R\]'
	spoken 'one of small Sends' 'CM REQ .*private\[send=1024 receive=4096 R\]'
	spoken 'an answer to them' 'CM REP .* responder_resources=0 initiator_depth=[1-9].*private\[send='
	spoken 'READ by one Write chunk' 'CALL .* WRITE\[1: 1048576\] .*NFS READ '
	spoken 'READ by many segments' 'CALL .* WRITE\[[89]: [0-9+]*\] .*NFS READ '
	spoken 'and what came' 'REPLY .* WRITE\[[89]: [0-9+]*\] .*NFS READ NFS3_OK count=1048576 eof=. written=1048576/'
	spoken 'READ of an odd length' 'REPLY RDMA_MSG .* WRITE\[.*NFS READ NFS3_OK count=5001 eof=1 written=5001/'
	spoken 'READ at its end' 'REPLY RDMA_MSG .* WRITE\[[0-9]*: 0(\+0)*\] .*NFS READ NFS3_OK count=0 eof=1'
	spoken 'READ inline' 'REPLY RDMA_MSG xid=[^ ]* cred=[0-9]* hdr=28 .*NFS READ NFS3_OK count=700 eof=0'
	spoken 'WRITE by one Read chunk' 'CALL .* READ\[pos=[0-9]*: 1048576\] .*NFS WRITE '
	spoken 'WRITE by many segments' 'CALL .* READ\[pos=[0-9]*: 131072\+[0-9+]*\] .*NFS WRITE .*count=1048576'
	spoken 'WRITE of an odd length' 'CALL .* READ\[pos=[0-9]*: 5001\] .*NFS WRITE '
	spoken 'WRITE inline' 'CALL .* hdr=28 .*NFS WRITE .*count=700'
	spoken 'SYMLINK by Read chunk' 'CALL .* READ\[pos=[0-9]*: 4000\] .*NFS SYMLINK length=4000'
	spoken 'READLINK by Reply chunk' 'REPLY RDMA_NOMSG .* REPLY\[3: 120\+4000\+0\] .*NFS READLINK NFS3_OK length=4000'
	spoken 'READDIRPLUS by Reply chunk' 'REPLY RDMA_NOMSG .* REPLY\[.*NFS READDIRPLUS NFS3_OK'
	spoken 'a call that travels by chunk itself' 'CALL RDMA_NOMSG .* READ\[pos=0: .* long call'
	spoken 'and what it was' 'REPLY .*NFS RENAME NFS3_OK.* read=[1-9]'
	spoken 'an error' 'REPLY .*NFS3ERR_NOENT'

	if ! command -v tshark >/dev/null; then
		echo '  SKIP: no tshark here: nobody else has read the capture'
		return
	fi
	of_dump "$out/$wire" >"$out/ours"
	of_tshark "$out/$wire" >"$out/theirs" 2>"$out/tshark.log"
	same 'messages' "$(wc -l <"$out/theirs")" "$(wc -l <"$out/ours")"
	ok 'each header' diff "$out/ours" "$out/theirs"
	echo "          $(wc -l <"$out/theirs") messages as tshark reads them"
}

if [ -z "${LEAT_VM:-}" ]; then
	out=$(mktemp -d)
	trap 'rm -rf "$out"' EXIT
	in_vm 800 "$out"
	work=$out
	if [ -s "$out/$wire" ]; then
		look
	else
		same 'a capture' none there
	fi
	finish
fi

# ---- inside: two devices, and a wire between them -----------------------------------------------------

setup
[ -x /sbin/mount.nfs ] || { echo 'SKIP: no mount.nfs here (nfs-common)'; exit 77; }
command -v tcpdump >/dev/null || { echo 'SKIP: no tcpdump here'; exit 77; }

# What a device says to its own address never sees the network. So each end of the pair gets an address
# and a device, and routes send what is for the other address out, though it is one of this machine too.
client=10.77.0.1 addr=10.77.0.2
ip addr flush dev veth0
ip addr add $client/32 dev veth0
ip addr add $addr/32 dev veth1
for i in all veth0 veth1; do
	echo 1 >"/proc/sys/net/ipv4/conf/$i/accept_local"
	echo 0 >"/proc/sys/net/ipv4/conf/$i/rp_filter"
done
ip route add $addr dev veth0 src $client table 102
ip route add $client dev veth1 src $addr table 101
ip rule add pref 1 iif veth0 lookup local
ip rule add pref 2 iif veth1 lookup local
ip rule add pref 3 to $addr lookup 102
ip rule add pref 4 to $client lookup 101
ip rule add pref 32765 lookup local
ip rule del pref 0
rdma link add rxe1 type rxe netdev veth1

url=rdma://$addr/demo
m=$work/mnt
mkdir "$m" "$work/files"
for n in 0 1 700 5001 1048576; do
	head -c "$n" "$work/random" >"$work/files/len-$n"
done
head -c 1048576 "$work/random" >"$work/mega"
long=$(head -c 4000 /dev/zero | tr '\0' p)
name=$(head -c 255 /dev/zero | tr '\0' n)

leatd_start
mkdir "$work/export/many"
(cd "$work/export/many" && seq -f 'entry-with-a-longish-name-%05g' 1200 | xargs touch)
tcpdump -Z root -i veth0 -s 0 -U -B 65536 --immediate-mode -w "$work/$wire" 'udp port 4791' \
	2>"$work/tcpdump.log" &
tcpdump=$!
ok 'tcpdump listens' wait_for 100 grep -q 'listening on' "$work/tcpdump.log"

section 'leat'
ok ping timeout 100 "$LEAT" ping -c 3 "$url"
ok 'files in' timeout 100 "$LEAT" cp -rp "$work/files" "$url/files"
same 'files in' "$(fingerprint "$work/export/files")" "$(fingerprint "$work/files")"
ok 'files out' timeout 100 "$LEAT" get -rp "$url/files" "$work/files.back"
same 'files out' "$(fingerprint "$work/files.back")" "$(fingerprint "$work/files")"
ok 'long link' "$LEAT" ln -s "$long" "$url/leat-link"
same 'long link' "$("$LEAT" ls -l "$url" | sed -n 's/.* -> //p')" "$long"
same 'long listing' "$("$LEAT" ls "$url/many" | wc -l)" 1200
bad 'what is not there' timeout 100 "$LEAT" cat "$url/nowhere"
ok 'rm' "$LEAT" rm -r "$url/files"

mounted() {
	mount -t nfs -o vers=3,proto=rdma,port=20049,mountport=2049,mountproto=tcp,nolock "$addr:/demo" "$m"
}

section 'Linux'
ok mount mounted
ok 'it is RDMA' grep -q " $m nfs .*proto=rdma" /proc/mounts
ok 'files in' cp -r "$work/files" "$m/files"
same 'files in' "$(fingerprint "$work/export/files")" "$(fingerprint "$work/files")"
echo 3 >/proc/sys/vm/drop_caches
same 'files out' "$(fingerprint "$m/files")" "$(fingerprint "$work/files")"
ok 'direct in' dd if="$work/mega" of="$m/mega" bs=1M oflag=direct status=none
ok 'direct out' dd if="$m/mega" of="$work/mega.back" bs=1M iflag=direct status=none
ok 'direct out' cmp "$work/mega" "$work/mega.back"
ok 'odd in' dd if="$work/files/len-5001" of="$m/odd" bs=5001 oflag=direct status=none
ok 'odd out' dd if="$m/odd" of="$work/odd.back" bs=5001 iflag=direct status=none
ok 'odd out' cmp "$work/files/len-5001" "$work/odd.back"
ok 'few out' dd if="$m/odd" of="$work/few.back" bs=700 count=1 iflag=direct status=none
ok 'few out' cmp -n 700 "$work/files/len-5001" "$work/few.back"
ok 'long link' ln -s "$long" "$m/linux-link"
same 'long link' "$(readlink "$work/export/linux-link")" "$long"
echo 3 >/proc/sys/vm/drop_caches
same 'long link out' "$(readlink "$m/linux-link")" "$long"
same 'long listing' "$(find "$m/many" -type f | wc -l)" 1200
bad 'what is not there' cat "$m/nowhere"
ok umount timeout 100 umount "$m"
# two of the longest names and sixteen groups are more than this leaves room for
echo 1024 >/proc/sys/sunrpc/rdma_max_inline_write
ok 'mount, Sends of 1024' mounted
ok 'longest name' mkdir "$m/$name"
ok 'long rename' setpriv --groups "$(seq -s , 101 116)" mv "$m/$name" "$m/${name%n}m"
ok 'long rename did' test -d "$work/export/${name%n}m"
ok umount timeout 100 umount "$m"
leatd_stop

ok 'the capture has all of it' wait_for 100 sh -c "test \$('$LEAT' dump '$work/$wire' | grep -c ' CM DREP\$') -ge \
	\$('$LEAT' dump '$work/$wire' | grep -c ' CM REQ ')"
kill -INT "$tcpdump"
wait "$tcpdump"
same 'what tcpdump lost' "$(sed -n 's/ packets dropped by kernel//p' "$work/tcpdump.log")" 0
cp "$work/$wire" "$OUT/$wire"
finish
