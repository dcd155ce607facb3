#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# linux_client_user.sh - a plain user on Linux's client: cp -a, git clone, tar -x, files that he may not
# open a second time, what access() promises, and access control lists

set -u
cd "$(dirname "$0")/../.." || exit
. tests/interop/lib.sh
in_vm 1600
setup
[ -x /sbin/mount.nfs ] || { echo 'SKIP: no mount.nfs here (nfs-common)'; exit 77; }
for program in git setpriv setfacl perl; do
	command -v $program >/dev/null || { echo "SKIP: no $program here (scripts/deps.sh install interop)"; exit 77; }
done
PATH=$PATH:/usr/sbin:/sbin

chmod 755 "$work"
m=$work/mnt home=$work/home
mkdir "$m" "$home" "$work/export"
chown 4711:4712 "$home"

# a file system of its own, whose lists are known
truncate -s 256M "$work/image"
ok 'mkfs.ext4' mkfs.ext4 -q -b 4096 "$work/image"
modprobe -a loop ext4 2>/dev/null
ok 'a disk' mount -o loop "$work/image" "$work/export"

# as ID COMMAND...: user ID, without other groups and privileges
as() {
	id=$1
	shift
	env HOME="$home" GIT_CONFIG_NOSYSTEM=1 setpriv --reuid "$id" --regid 4712 --clear-groups "$@"
}

# all that a copy has to keep, times too
tree_of() { # DIR
	(cd "$1" && find . -printf '%y %m %T@ %P %l\n' | LC_ALL=C sort
	find . -type f -print0 | LC_ALL=C sort -z | xargs -0 -r cksum)
}

# ---- what the user copies ------------------------------------------------------------------------------

as 4711 mkdir "$home/tree" "$home/tree/ro" "$home/tree/bin"
cp rpcrdma/srv/*.c scripts/deps.sh "$home/tree/bin/" && cp server/[a-f]*/*.h "$home/tree/ro/"
ln -s ro/vfs.h "$home/tree/link"
: >"$home/tree/ro/empty"
chown -hR 4711:4712 "$home/tree"
chmod 444 "$home/tree/ro/"*
chmod 555 "$home/tree/ro"
chmod 751 "$home/tree/bin/deps.sh"
as 4711 find "$home/tree" -exec touch -h -d '2011-12-13 14:15:16.171819' {} +
tree=$(tree_of "$home/tree")
as 4711 tar --format=posix -C "$home" -cf "$home/tree.tar" tree
as 4711 sh -c "cp -r '$home/tree' '$home/repo' && cd '$home/repo' && git init -q && git add . &&
	git -c user.name=x -c user.email=x@x commit -qm x && git gc -q" >"$work/git.log" 2>&1 || cat "$work/git.log"

# what is said of each file, and what is true: NAME may(r w x) does(r w x). Of a directory that cannot be
# searched only NFS says that it cannot be changed; so it is.
probe() { # ID DIR
	as "$1" perl -e 'use filetest "access";
		sub say_it { print " ", $_[0] ? $_[1] : "-"; }
		chdir $ARGV[0] or die $!;
		for my $f (sort glob("*")) {
			my $dir = -d $f;
			print $f;
			say_it(-r $f, "r");
			say_it(-w $f && (!$dir || -x $f), "w");
			say_it(-x $f, "x");
			if ($dir) {
				say_it(opendir(D, $f) && defined(readdir(D)), "r");
				say_it(open(F, ">", "$f/new") && unlink("$f/new"), "w");
				say_it(open(F, "<", "$f/in"), "x");
			} else {
				say_it(open(F, "<", $f) && read(F, $_, 1), "r");
				say_it(open(F, ">>", $f), "w");
				close(F); # a file that is open for writing cannot be executed
				say_it(!system({ "./$f" } $f), "x"); # without a shell between
			}
			print "\n";
		}' "$2"
}

# each mode: files of the user, of the user's group, of others
make_modes() { # DIR
	mkdir "$1"
	perl -e 'chdir $ARGV[0] or die $!;
		for my $mode (qw(000 200 300 400 500 700 040 060 050 004 006 001 444 755 077)) {
			for ([4711, 0], [0, 4712], [0, 0]) {
				my ($uid, $gid) = @$_;
				my ($f, $d) = map { "$_-$mode-$uid-$gid" } qw(f d);
				open(F, ">", $f) && print(F "#!/bin/true\n") && close(F) or die $!;
				mkdir($d) && open(F, ">", "$d/in") && close(F) && chmod(0666, "$d/in") or die $!;
				chown($uid, $gid, $f, $d) == 2 && chmod(oct($mode), $f, $d) == 2 or die $!;
			}
		}' "$1"
}

# a list without the line that names the file
list_of() { getfacl -cpn "$1" 2>&1; }

leatd_start
for way in rdma tcp; do
	section "mounted over $way"
	rm -rf "$work/export/"*
	ok "mount, $way" mounted "$m" $way
	mountpoint -q "$m" || continue
	mkdir "$m/his"
	chown 4711:4712 "$m/his"

	# ---- copies ----
	ok "cp -a, $way" as 4711 cp -a "$home/tree" "$m/his/copy"
	same "cp -a, $way" "$(tree_of "$m/his/copy")" "$tree"
	same "cp -a, as it lies there, $way" "$(tree_of "$work/export/his/copy")" "$tree"
	ok "tar -x, $way" as 4711 sh -c "mkdir '$m/his/tar' && tar -C '$m/his/tar' -xpf '$home/tree.tar'"
	same "tar -x, $way" "$(tree_of "$m/his/tar/tree")" "$tree"
	ok "git clone, $way" as 4711 git clone -q --no-local "$home/repo" "$m/his/clone"
	ok "what was cloned, $way" diff -r --exclude=.git "$home/tree" "$m/his/clone"
	ok "git commit, $way" as 4711 sh -c "cd '$m/his/clone' && echo more >new && git add new &&
		git -c user.name=x -c user.email=x@x commit -qm more"
	# a pack is written and mapped in the same way over either
	[ $way = tcp ] || ok "git gc" as 4711 git -C "$m/his/clone" gc -q
	[ $way = tcp ] || ok "git fsck" as 4711 git -C "$m/his/clone" fsck --strict

	# ---- files that he may not open again, and writes all the same ----
	ok "a file of mode 444, $way" as 4711 sh -c "umask 0222 && cat '$work/random' >'$m/his/read-only'"
	ok "what is in it, $way" cmp "$work/random" "$work/export/his/read-only"
	same "and its mode, $way" "$(stat -c %a "$work/export/his/read-only")" 444
	bad "and not a second time, $way" as 4711 sh -c "echo >>'$m/his/read-only'"
	ok "one of mode 000, $way" as 4711 perl -e \
		'open(F, "+>", $ARGV[0]) or die $!; chmod(0, $ARGV[0]) or die $!; syswrite(F, "x" x 100000) == 100000 or die $!;
		sysseek(F, 5, 0); sysread(F, $_, 10) == 10 or die $!; close(F) or die $!' "$m/his/nothing"
	same "what is in that, $way" "$(wc -c <"$work/export/his/nothing")" 100000

	# ---- what access() says is what happens; it is said in the same words over either ----
	if [ $way = rdma ]; then
		make_modes "$work/export/modes"
		for id in 4711 4713; do
			probe $id "$m/modes" >"$work/there"
			probe $id "$work/export/modes" >"$work/here"
			[ -s "$work/here" ] || ok "what is true for $id" false
			ok "access() of $id" diff "$work/here" "$work/there"
		done
	fi

	# ---- lists ----
	rm -rf "$work/export/lists"
	mkdir "$m/lists"
	echo text >"$m/lists/f"
	chmod 600 "$m/lists/f"
	bad "closed to him, $way" as 4711 cat "$m/lists/f"
	ok "setfacl, $way" setfacl -m u:4711:rw "$m/lists/f"
	same "getfacl, $way" "$(list_of "$m/lists/f")" "$(list_of "$work/export/lists/f")"
	ok "getfacl names him, $way" sh -c "getfacl -cpn '$work/export/lists/f' | grep -qx 'user:4711:rw-'"
	ok "open to him, $way" as 4711 cat "$m/lists/f"
	ok "and to write, $way" as 4711 sh -c "echo more >>'$m/lists/f'"
	same "both, $way" "$(cat "$work/export/lists/f")" "$(printf 'text\nmore')"
	bad "not to another, $way" as 4713 cat "$m/lists/f"
	bad "nor is it his to change, $way" as 4711 setfacl -m u:4713:rw "$m/lists/f"
	ok "his own is, $way" as 4711 setfacl -m u:4713:r "$m/his/nothing"
	ok "and is honoured, $way" as 4713 cat "$m/his/nothing"
	ok "setfacl -b, $way" setfacl -b "$m/lists/f"
	same "no list, $way" "$(list_of "$work/export/lists/f")" "$(printf 'user::rw-\ngroup::---\nother::---')"
	same "no list, as it is told, $way" "$(list_of "$m/lists/f")" "$(list_of "$work/export/lists/f")"
	bad "closed again, $way" as 4711 cat "$m/lists/f"

	# a directory that he may search, and what new files get
	mkdir "$m/lists/d" "$work/export/lists/twin"
	chmod 700 "$m/lists/d" "$work/export/lists/twin"
	ok "a default list, $way" setfacl -m u:4711:rwx,d:u:4711:rw,d:g::r,d:o::- "$m/lists/d"
	setfacl -m u:4711:rwx,d:u:4711:rw,d:g::r,d:o::- "$work/export/lists/twin"
	same "a default list, $way" "$(list_of "$work/export/lists/d")" "$(list_of "$work/export/lists/twin")"
	same "a default list, as it is told, $way" "$(list_of "$m/lists/d")" "$(list_of "$work/export/lists/twin")"
	for dir in "$m/lists/d" "$work/export/lists/twin"; do
		ok "new files, $way" as 4711 sh -c "umask 022; cd '$dir' && echo x >f && mkdir sub && mkfifo pipe"
	done
	for name in f sub pipe; do
		same "list of a new $name, $way" "$(list_of "$work/export/lists/d/$name")" \
			"$(list_of "$work/export/lists/twin/$name")"
	done
	ok "cp -a with lists, $way" cp -a "$m/lists/d" "$m/lists/copy"
	same "cp -a with lists, $way" "$(cd "$work/export/lists/copy" && getfacl -Rn .)" \
		"$(cd "$work/export/lists/d" && getfacl -Rn .)"

	# more than fits one message
	{
		printf 'u::rw\ng::r\no::-\nm::rw\n'
		seq -f 'u:%.0f:r' 10000 10399
	} >"$work/many"
	long=$(rdma_count "$m" long)
	ok "a list of 404, $way" setfacl -M "$work/many" "$m/lists/f"
	same "a list of 404, $way" "$(list_of "$m/lists/f" | cksum)" "$(list_of "$work/export/lists/f" | cksum)"
	same "is it, $way" "$(list_of "$work/export/lists/f" | grep -c ^user:1)" 400
	[ $way = tcp ] || ok "which was a long call" test "$(rdma_count "$m" long)" -gt "$long"

	ok "umount, $way" timeout 100 umount "$m"
done
leatd_stop
umount "$work/export"

# ---- a file system without lists --------------------------------------------------------------------------
if command -v mkfs.vfat >/dev/null && modprobe vfat; then
	section 'vfat'
	truncate -s 32M "$work/fat"
	ok 'mkfs.vfat' mkfs.vfat "$work/fat"
	ok 'a disk' mount -o loop "$work/fat" "$work/export"
	leatd_start
	ok 'mount' mounted "$m" tcp
	echo text >"$m/f"
	bad 'setfacl' setfacl -m u:4711:rw "$m/f"
	said 'setfacl' 'not supported'
	same 'getfacl' "$(list_of "$m/f")" "$(list_of "$work/export/f")"
	ok 'umount' timeout 100 umount "$m"
	leatd_stop
	umount "$work/export"
else
	echo 'SKIP: vfat: no mkfs.vfat here (dosfstools)'
fi
finish
