#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# linux_client.sh - Linux's own NFS client on a leatd, over RDMA and over TCP: files, names, large
# directories, O_DIRECT at odd places, a server that is started again under it

set -u
cd "$(dirname "$0")/../.." || exit
. tests/interop/lib.sh
in_vm 280
setup
[ -x /sbin/mount.nfs ] || { echo 'SKIP: no mount.nfs here (nfs-common)'; exit 77; }

make_tree "$work/tree"
tree=$(fingerprint "$work/tree")
make_lengths "$work/lengths"
lens=$(fingerprint "$work/lengths")
head -c 16777219 /dev/urandom >"$work/big"
m=$work/mnt
mkdir "$m"

mounted() { # OPTIONS
	mount -t nfs -o "vers=3,mountport=2049,mountproto=tcp,nolock,$1" "$addr:/demo" "$m"
}

# direct FILE LENGTH SKEW: writes and reads LENGTH bytes at an odd place, past the page cache
direct() {
	rm -f "$m/direct" "$work/direct"
	head -c "$2" "$work/random" >"$work/piece"
	truncate -s "$3" "$work/direct"
	cat "$work/piece" >>"$work/direct"
	dd if="$work/piece" of="$m/direct" bs="$2" count=1 seek="$3" oflag=direct,seek_bytes \
		iflag=fullblock conv=notrunc status=none || return 1
	cmp "$work/direct" "$work/export/direct" || return 1
	dd if="$m/direct" of="$work/piece.back" bs="$2" count=1 skip="$3" \
		iflag=direct,skip_bytes status=none || return 1
	cmp "$work/piece" "$work/piece.back"
}

cold() { echo 3 >/proc/sys/vm/drop_caches; }

leatd_start
for way in rdma tcp; do
	section "mounted over $way"
	rm -rf "$work/export/"*
	if [ $way = rdma ]; then
		ok "mount, $way" mounted proto=rdma,port=20049
		ok "it is $way" grep -q " $m nfs .*proto=rdma" /proc/mounts
	else
		ok "mount, $way" mounted proto=tcp,port=2049
		ok "it is $way" grep -q " $m nfs .*proto=tcp" /proc/mounts
	fi
	mountpoint -q "$m" || continue
	ok 'statfs' df "$m"

	ok 'tree in' cp -a "$work/tree" "$m/tree"
	same 'tree in' "$(fingerprint "$work/export/tree")" "$tree"
	cold
	same 'tree through the mount' "$(fingerprint "$m/tree")" "$tree"
	ok 'lengths in' cp -a "$work/lengths" "$m/lengths"
	same 'lengths in' "$(fingerprint "$work/export/lengths")" "$lens"
	cold
	same 'lengths through the mount' "$(fingerprint "$m/lengths")" "$lens"
	ok 'ls -la' ls -laR "$m/tree"
	ok 'big file in' cp "$work/big" "$m/big"
	ok 'big file in' cmp "$work/big" "$work/export/big"
	cold
	ok 'big file out' cmp "$m/big" "$work/big"
	for bs in 4k 1M; do
		ok "O_DIRECT $bs in" dd if="$work/random" of="$m/direct" bs=$bs count=4 oflag=direct status=none
		ok "O_DIRECT $bs out" sh -c "dd if='$m/direct' bs=$bs iflag=direct status=none | \
			cmp -n \$(stat -c %s '$m/direct') - '$work/random'"
	done
	for around in 0 1024 4096 1048576; do
		for more in 1 2 3 5 8; do
			ok "O_DIRECT of $((around + more)) at 0" direct "$m/direct" $((around + more)) 0
		done
		ok "O_DIRECT of $((around + 7)) at 4099" direct "$m/direct" $((around + 7)) 4099
	done
	ok 'append' sh -c "echo one >'$m/app' && echo two >>'$m/app' && echo three >>'$m/app'"
	same 'append' "$(cat "$work/export/app")" "$(printf 'one\ntwo\nthree')"
	ok 'truncate' truncate -s 5 "$m/app"
	same 'truncate' "$(cat "$work/export/app")" "$(printf 'one\nt')"
	ok 'hole' sh -c "truncate -s 5000000 '$m/hole' && printf end | \
		dd of='$m/hole' bs=1 seek=4999997 conv=notrunc status=none"
	ok 'hole' sh -c "truncate -s 4999997 '$work/hole' && printf end >>'$work/hole' && cmp '$m/hole' '$work/hole'"

	ok 'mkdir -p' mkdir -p "$m/d/e/f/g"
	ok 'mkdir did' test -d "$work/export/d/e/f/g"
	ok 'rename' mv "$m/d/e/f" "$m/d/moved"
	ok 'rename did' test -d "$work/export/d/moved/g"
	ok 'rename over' sh -c "echo new >'$m/new' && echo old >'$m/old' && mv -f '$m/new' '$m/old'"
	same 'rename over' "$(cat "$work/export/old")" new
	ok 'rmdir' rmdir "$m/d/moved/g"
	bad 'rmdir of what is not empty' rmdir "$m/d"
	ok 'hard link' ln "$m/old" "$m/second"
	same 'hard link' "$(stat -c %h "$work/export/old")" 2
	ok 'unlink' rm "$m/old"
	same 'what is unlinked' "$(cat "$m/second")" new
	for n in 1 2 3 4 60 500 1000 1023 2047 4000; do
		target=$(head -c "$n" /dev/zero | tr '\0' t)
		ln -s "$target" "$m/link-$n" 2>/dev/null
		same "symlink of $n" "$(readlink "$work/export/link-$n")" "$target"
	done
	cold
	for n in 1 2 3 4 60 500 1000 1023 2047 4000; do
		same "readlink of $n" "$(readlink "$m/link-$n")" "$(head -c "$n" /dev/zero | tr '\0' t)"
	done
	long=$(head -c 255 /dev/zero | tr '\0' n)
	ok 'longest name' sh -c "echo x >'$m/$long' && mv '$m/$long' '$m/${long%nn}mm'"
	ok 'longest name did' test -e "$work/export/${long%nn}mm"
	ok 'fifo' mkfifo "$m/fifo"
	ok 'fifo did' test -p "$work/export/fifo"
	ok 'chmod, chown, touch' sh -c "chmod 4711 '$m/second' && chown 12:34 '$m/second' && \
		touch -d '2001-02-03 04:05:06' '$m/second'"
	same 'attributes' "$(stat -c '%u %g %y' "$work/export/second" | cut -c 1-25)" '12 34 2001-02-03 04:05:06'
	bad 'what is not there' cat "$m/no such file"
	ok 'exclusive create' sh -c "set -C; echo x >'$m/excl'"
	bad 'exclusive create again' sh -c "set -C; echo x >'$m/excl'"

	section 'ten thousand names'
	mkdir "$work/export/many"
	(cd "$work/export/many" && seq -f 'entry-with-a-longish-name-%06g' 10000 | xargs touch)
	ok 'ls -f of 10000' sh -c "test \$(ls -f '$m/many' | wc -l) -eq 10002"
	cold
	same 'ls -l of 10000' "$(find "$m/many" -type f -printf '%f %s\n' | sort | cksum)" \
		"$(find "$work/export/many" -type f -printf '%f %s\n' | sort | cksum)"
	ok 'rm of 10000' rm -r "$work/export/many"

	section 'writers at once'
	pids=''
	for i in 1 2 3 4 5 6 7 8; do
		(cp "$work/lengths/len-3145731" "$m/par-$i" && sync "$m/par-$i" &&
			cmp "$work/lengths/len-3145731" "$m/par-$i") 2>"$work/par-$i.log" &
		pids="$pids $!"
	done
	for p in $pids; do
		ok 'writer' wait "$p"
	done
	for i in 1 2 3 4 5 6 7 8; do
		ok "what writer $i wrote" cmp "$work/lengths/len-3145731" "$work/export/par-$i"
	done

	section 'a server that is started again'
	(
		i=0
		while [ "$i" -lt 24 ]; do
			head -c 1048577 "$work/big" >"$m/again-$i" || exit 1
			i=$((i + 1))
		done
		sync "$m"/again-* || exit 1
	) 2>"$work/again.log" &
	writer=$!
	wait_for 10 test -s "$work/export/again-2"
	leatd_stop KILL
	leatd_start
	ended 'a writer that saw its server killed' "$writer" "$work/again.log"
	same 'what it wrote' "$(cat "$work"/export/again-* | cksum)" \
		"$(for i in $(seq 24); do head -c 1048577 "$work/big"; done | cksum)"
	ok umount timeout 30 umount "$m"
done
same 'no queue pair is left' "$(queue_pairs)" 0
leatd_stop

section 'other sizes'
for options in '--inline 1024' '--inline 65536' '--credits 1'; do
	rm -rf "$work/export"
	# shellcheck disable=SC2086
	leatd_start $options
	ok "mount, $options" mounted proto=rdma,port=20049
	ok "lengths in, $options" cp -a "$work/lengths" "$m/lengths"
	same "lengths in, $options" "$(fingerprint "$work/export/lengths")" "$lens"
	cold
	same "lengths out, $options" "$(fingerprint "$m/lengths")" "$lens"
	ok 'ls -l' ls -la "$m/lengths"
	ok umount timeout 30 umount "$m"
	leatd_stop
done
finish
