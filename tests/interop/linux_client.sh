#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# linux_client.sh - Linux's own NFS client on a leatd, over RDMA and over TCP: trees, large files,
# awkward lengths, names, large directories, a server that is started again under it

set -u
cd "$(dirname "$0")/../.." || exit
. tests/interop/lib.sh
in_vm 2400
setup
[ -x /sbin/mount.nfs ] || { echo 'SKIP: no mount.nfs here (nfs-common)'; exit 77; }
odd=$O/tests/interop/odd
[ -x "$odd" ] || { echo "SKIP: no $odd here (make interop-tools)"; exit 77; }

make_tree "$work/tree"
tree=$(fingerprint "$work/tree")
head -c 67108867 /dev/urandom >"$work/big" # 64 MiB and a bit
m=$work/mnt
mkdir "$m"

# what has been read is forgotten with the mount; the caches of this machine's own files stay
fresh() {
	ok "umount, $way" timeout 100 umount "$m"
	ok "mount again, $way" mounted "$m" "$way"
}

leatd_start
for way in rdma tcp; do
	section "mounted over $way"
	rm -rf "$work/export/"*
	ok "mount, $way" mounted "$m" $way
	mountpoint -q "$m" || continue
	ok "it is $way" grep -q " $m nfs .*proto=$way" /proc/mounts
	ok 'statfs' df "$m"

	ok "tree in, $way" cp -a "$work/tree" "$m/tree"
	same "tree in, $way" "$(fingerprint "$work/export/tree")" "$tree"
	fresh
	same "tree out, $way" "$(fingerprint "$m/tree")" "$tree"
	ok 'ls -la' ls -laR "$m/tree"

	ok "64 MiB in, $way" cp "$work/big" "$m/big"
	ok "64 MiB in, $way" cmp "$work/big" "$work/export/big"
	fresh
	ok "64 MiB out, $way" cmp "$m/big" "$work/big"
	ok "64 MiB in, O_DIRECT, $way" dd if="$work/big" of="$m/direct" bs=1M oflag=direct conv=fsync status=none
	ok "64 MiB in, O_DIRECT, $way" cmp "$work/big" "$work/export/direct"
	ok "64 MiB out, O_DIRECT, $way" dd if="$m/direct" of="$work/big.out" bs=1M iflag=direct status=none
	ok "64 MiB out, O_DIRECT, $way" cmp "$work/big.out" "$work/big"
	rm "$work/big.out" "$work/export/big" "$work/export/direct"

	# shellcheck disable=SC2086
	counted "lengths, $way" "$odd" buffered "$m" "$work/export" $lengths
	counted "lengths around, $way" "$odd" buffered "$m" "$work/export"
	counted "lengths around, O_DIRECT, $way" "$odd" direct "$m" "$work/export"
	counted "links, $way" "$odd" links "$m" "$work/export"

	section "names"
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
	long=$(head -c 255 /dev/zero | tr '\0' n)
	ok 'longest name' sh -c "echo x >'$m/$long' && mv '$m/$long' '$m/${long%nn}mm'"
	ok 'longest name did' test -e "$work/export/${long%nn}mm"
	bad 'a longer one' touch "$m/n$long"
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
	plus=$(calls "$m" READDIRPLUS) single=$(($(calls "$m" LOOKUP) + $(calls "$m" GETATTR)))
	same 'ls -l of 10000' "$(find "$m/many" -type f -printf '%f %s\n' | sort | cksum)" \
		"$(find "$work/export/many" -type f -printf '%f %s\n' | sort | cksum)"
	plus=$(($(calls "$m" READDIRPLUS) - plus))
	single=$(($(calls "$m" LOOKUP) + $(calls "$m" GETATTR) - single))
	[ -z "${VERBOSE:-}" ] || section "  $plus READDIRPLUS, $single LOOKUP and GETATTR"
	ok 'READDIRPLUS' test "$plus" -gt 1
	ok 'which told what each name is' test "$single" -lt 1000
	ok 'ls -f of 10000' sh -c "test \$(ls -f '$m/many' | wc -l) -eq 10002"
	if [ $way = rdma ]; then
		ok 'rm of 10000' rm -r "$m/many"
	else
		rm -r "$work/export/many"
	fi

	section 'a server that is started again'
	write_files() { # NAME
		i=0
		while [ "$i" -lt 16 ]; do
			head -c 1048577 "$work/big" >"$m/$1-$i" || return 1
			i=$((i + 1))
		done
		sync "$m/$1"-*
	}
	write_files again 2>"$work/again.log" &
	writer=$!
	wait_for 100 test -s "$work/export/again-2"
	leatd_stop KILL
	leatd_start
	ended 'a writer that saw its server killed' "$writer" "$work/again.log"
	same 'what it wrote' "$(cat "$work"/export/again-* | cksum)" \
		"$(for i in $(seq 16); do head -c 1048577 "$work/big"; done | cksum)"

	section 'a server that reads its configuration again'
	write_files reload 2>"$work/reload.log" &
	writer=$!
	n=$(grep -c 'configuration read again' "$work/leatd.log")
	for i in $(seq 20); do
		kill -HUP "$leatd_pid"
		n=$((n + 1))
		ok "for the ${i}th time" wait_for 100 sh -c \
			"[ \$(grep -c 'configuration read again' '$work/leatd.log') -ge $n ]"
	done
	ended 'a writer meanwhile' "$writer" "$work/reload.log"
	same 'what it wrote' "$(cat "$work"/export/reload-* | cksum)" "$(cat "$work"/export/again-* | cksum)"
	ok umount timeout 100 umount "$m"
done
same 'no queue pair is left' "$(queue_pairs)" 0
finish
