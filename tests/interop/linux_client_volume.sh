#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# linux_client_volume.sh - Linux's client on the manager of a striped volume, while leat writes the same files: names,
# sizes, permissions, lists, cuts and removals; contents, which the manager moves; over TCP and RDMA
#
# Two stripe servers are leatds of their own, one over RDMA and one over TCP.

set -u
cd "$(dirname "$0")/../.." || exit
. tests/interop/lib.sh
in_vm 600
setup
[ -x /sbin/mount.nfs ] || { echo 'SKIP: no mount.nfs here (nfs-common)'; exit 77; }
command -v setfacl >/dev/null || { echo 'SKIP: no setfacl here (scripts/deps.sh install interop)'; exit 77; }
m=$work/mnt v=$work/disk/v
mkdir "$m"

# a file system of its own: it keeps lists and the attributes of stripes
truncate -s 512M "$work/image"
ok 'mkfs.ext4' /sbin/mkfs.ext4 -q "$work/image"
modprobe -a loop ext4 2>/dev/null
mkdir "$work/disk"
ok 'a disk' mount -o loop "$work/image" "$work/disk"

# ---- the volume ----------------------------------------------------------------------------------------

ok 'leat volume create' "$LEAT" volume create "$v" --servers "rdma://$addr:20061,tcp://$addr:20062" \
	--listen rdma://0.0.0.0:20049 --clients 10.77.0.0/16 --stripe 64K
mkdir -p "$v/stripes-1" "$v/stripes-2"
sed -i 's,^listen = rdma.*,&\nlisten = tcp://0.0.0.0:2049,' "$v/manager.conf"
echo 'root_squash = no' >>"$v/manager.conf"

servers=''
# serve NAME: with its configuration, until it is ready
serve() {
	"$LEATD" --state-dir "$work/state-$1" --config "$v/$1.conf" >"$work/$1.log" 2>&1 &
	servers="$servers $!"
	wait_for 60 grep -q '^leatd: ready' "$work/$1.log" || { cat "$work/$1.log"; ok "$1 is ready" false; }
}
serve server-1
serve server-2
serve manager
vol=rdma://$addr/v of=/v

# bytes of all objects; a tombstone has none
objects() { find "$v"/stripes-*/objects -type f -printf '%s\n' | awk '{ n += $1 } END { print n + 0 }'; }
no_objects() { [ "$(objects)" -eq 0 ]; }
is_same() { "$LEAT" cat "$vol/$1" | cmp - "$2"; }
size_of() { stat -c %s "$m/$1"; }
head -c 3000001 "$work/random" >"$work/big"
cp -r xdr "$work/tree"
ok 'a repository' sh -c "git init -q '$work/tree' && cd '$work/tree' && git add . &&
	git -c user.name=x -c user.email=x@x commit -qm x"

# writes files, and renames them over earlier ones, until $work/enough is there
write_on() {
	n=0
	while [ ! -e "$work/enough" ] || [ "$n" -lt 20 ]; do
		"$LEAT" put "$work/big" "$vol/busy/file-$((n % 5))" || return
		n=$((n + 1))
	done
}

# ---- what each sees of the other ------------------------------------------------------------------------

for way in tcp rdma; do
	section "mounted over $way"
	ok "mount, $way" mounted "$m" $way ,actimeo=0
	mountpoint -q "$m" || continue
	ok 'put' "$LEAT" put "$work/big" "$vol/big"
	same 'the size, after a close of leat' "$(size_of big)" 3000001
	same 'ls -l' "$(ls -l "$m" | awk '$NF == "big" { print $5 }')" 3000001
	ok 'mkdir, touch' sh -c "mkdir '$m/dir' && touch '$m/dir/empty' && ln -s ../big '$m/dir/link'"
	ok 'mv, ln' sh -c "mv '$m/big' '$m/dir/moved' && ln '$m/dir/moved' '$m/dir/other'"
	ok 'chmod, chown, touch' sh -c "chmod 640 '$m/dir/moved' && chown 4711:4712 '$m/dir/moved' &&
		touch -d '2011-12-13 14:15:16' '$m/dir/moved'"
	ok 'leat ls -l' "$LEAT" ls -l "$vol/dir"
	said 'what leat lists' '^-rw-r----- .* 4711 .* 3000001 2011-12-13 .* moved$'
	ok 'the other name has the contents' is_same dir/other "$work/big"
	ok 'a file made by Linux is written by leat' "$LEAT" cp "$work/big" "$vol/dir/empty"
	ok 'it has the contents' is_same dir/empty "$work/big"
	same 'its size' "$(size_of dir/empty)" 3000001
	ok 'setfacl' setfacl -m u:4713:rw "$m/dir/empty"
	same 'the list' "$(getfacl -cn "$m/dir/empty" 2>/dev/null | grep -c '^user:4713:rw-')" 1
	# contents by Linux pass through the manager
	ok 'Linux reads what leat wrote' cmp "$m/dir/other" "$work/big"
	ok 'Linux writes' cp "$work/big" "$m/dir/copy"
	ok 'leat reads what Linux wrote' is_same dir/copy "$work/big"
	cp "$work/big" "$work/want"
	for file in "$m/dir/copy" "$work/want"; do # across units, and not a page
		dd if="$work/random" of="$file" bs=1000 count=70 seek=90 conv=notrunc,fsync 2>/dev/null
	done
	ok 'leat reads what Linux changed' is_same dir/copy "$work/want"
	ok 'git clone' git clone -q "file://$work/tree" "$m/clone"
	ok 'the clone is whole' git -C "$m/clone" fsck
	ok 'the tree is whole' diff -r --exclude=.git "$work/tree" "$m/clone"
	ok 'leat reads the tree' sh -c "'$LEAT' get -r '$vol/clone' '$work/back-$way' && diff -r '$work/tree' '$work/back-$way' \
		--exclude=.git"
	ok 'a compiler writes there' cc -c -Ixdr -Iinclude -o "$m/clone/layout.o" "$m/clone/layout.c"
	ok 'the same object as elsewhere' sh -c "cc -c -Ixdr -Iinclude -o '$work/layout.o' '$m/clone/layout.c' &&
		cmp '$work/layout.o' '$m/clone/layout.o'"
	ok 'fio verifies' fio --name=v --filename="$m/dir/fio" --rw=randrw --bs=4k-200k --size=6m --verify=crc32c \
		--do_verify=1 --ioengine=psync --fsync=20 --randseed=7
	# cuts by Linux are cuts of the stripes; what is cut off does not come back
	head -c 100000 "$work/big" >"$work/want"
	ok 'truncate' truncate -s 100000 "$m/dir/moved"
	ok 'leat reads what is left' is_same dir/other "$work/want"
	truncate -s 3000001 "$work/want"
	ok 'it grows' truncate -s 3000001 "$m/dir/other"
	ok 'with zeroes' is_same dir/moved "$work/want"
	# both at once
	rm -f "$work/enough"
	mkdir "$m/busy"
	write_on >"$work/writer.log" 2>&1 &
	writer=$!
	for i in 1 2 3 4 5 6 7 8 9 10; do
		ok "ls -l while leat writes, $i" sh -c "ls -l '$m/busy' >'$work/list'"
		mkdir "$m/tree-$i" && touch "$m/tree-$i/a" "$m/tree-$i/b"
		mv "$m/busy/file-$((i % 5))" "$m/tree-$i/c" 2>/dev/null
		ok "rm -r while leat writes, $i" rm -r "$m/tree-$i"
	done
	: >"$work/enough"
	ended 'leat writes on' "$writer" "$work/writer.log"
	for file in "$m"/busy/file-*; do
		same "the size of ${file##*/}" "$(stat -c %s "$file")" 3000001
		ok "the contents of ${file##*/}" is_same "busy/${file##*/}" "$work/big"
	done
	ok 'rm -r' sh -c "rm -r '$m/busy' '$m/dir' '$m/clone'"
	same 'nothing is left' "$(ls -A "$m")" ''
	ok 'no objects are left' wait_for 60 no_objects
	ok umount timeout 100 umount "$m"
done

for pid in $servers; do
	kill "$pid"
	rc=0
	wait "$pid" || rc=$?
	same 'exit status of leatd' "$rc" 0
done
same 'no queue pair is left' "$(queue_pairs)" 0
finish
