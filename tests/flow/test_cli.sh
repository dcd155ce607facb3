#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# test_cli.sh - the leat command against a real leatd: every command, over both transports

set -eu
: "${LEAT:=build/leat}" "${LEATD:=build/leatd}"
. scripts/private-leatd.sh
. tests/lib/checks.sh

work=$(mktemp -d)
finish() {
	leatd_stop
	chmod -R u+w "$work" # some of it is read-only on purpose
	rm -rf "$work"
}
trap finish EXIT
umask 022

ok() { # COMMAND...: as in checks.sh, but the output goes where the caller wants it
	"$@" 2>"$work/err" || fail "$* -> $?: $(cat "$work/err")"
	[ ! -s "$work/err" ] || fail "$* said: $(cat "$work/err")"
	checks=$((checks + 1))
}
same() { # WHAT A B
	[ "$2" = "$3" ] || fail "$1: '$2' is not '$3'"
	checks=$((checks + 1))
}

export_dir=$work/export
mkdir "$export_dir" "$work/src"
leatd_start "$export_dir" || exit 1

head -c 5000001 /dev/urandom >"$work/src/odd size"
head -c 2097152 /dev/urandom >"$work/src/whole blocks"
: >"$work/src/empty"
mkdir -p "$work/src/a/b/c" "$work/src/a/nothing here"
echo deep >"$work/src/a/b/c/deep"
mkdir "$work/src/many"
for i in 1 2 3 4 5 6 7 8; do
	for j in 1 2 3 4 5; do
		echo "$i $j" >"$work/src/many/$i$j"
	done
done
touch -d '2002-03-04 05:06:07' "$work/src/many"
ln -s 'a/b/c/deep' "$work/src/link"
ln -s '/no where' "$work/src/dangling"
odd=$(printf 'x\001\t\377 %%3F?&\\y')
echo odd >"$work/src/$odd"
long=$(awk 'BEGIN { for (i = 0; i < 255; i++) printf "n" }')
echo long >"$work/src/$long"
chmod 640 "$work/src/odd size"
chmod 555 "$work/src/a/b"
chmod 500 "$work/src/whole blocks"
touch -d '2001-02-03 04:05:06' "$work/src/odd size" "$work/src/a/b"

tree() { # DIR: everything that cp -p is to keep
	(cd "$1" && find . ! -type l -printf '%y %m %P\n' | LC_ALL=C sort
	find . -type l -printf 'l %P %l\n' | LC_ALL=C sort
	find . ! -type l -printf '%T@ %P\n' | sed 's/\.[0-9]*//' | LC_ALL=C sort
	find . -type f -print0 | LC_ALL=C sort -z | xargs -0 cksum)
}

# What each strategy does is counted: twenty registrations are kept of two hundred buffers, and four of five
# requests are with one of the last eight.
bench_registration() {
	"$LEAT" bench registration "$url" --bs 64k --buffers 200 --reuse 80 --jobs 1,2 --entries 20 \
		--cost 200,1,80,0.5 --seconds 0.05 --json >"$work/jsons" || fail 'bench registration'
	for how in dynamic:1:1 cache:0.03:0.5 batch:0.03:0.5 slab:0:0 arena:0:0; do
		name=${how%%:*} range=${how#*:}
		grep "\"strategy\":\"$name\"" "$work/jsons" >"$work/lines"
		same "lines of $name" "$(wc -l <"$work/lines")" 2
		while read -r line; do
			awk "BEGIN { n = $(echo "$line" | json regs_per_op)
				exit !(n >= ${range%:*} && n <= ${range#*:}) }" || fail "bench registration: $line"
		done <"$work/lines"
	done
	awk "BEGIN { exit !($(grep '"dynamic".*"jobs":1,' "$work/jsons" | json expected_ops_s) < \
		$(grep '"slab".*"jobs":1,' "$work/jsons" | json ops_s)) }" || fail "bench registration: no price"
	grep -q '"strategy":"cache".*"reaped_per_op":0.0000,' "$work/jsons" || fail 'cache does not end its own'
}
want=$(cd "$work/src" && tree .)

go() { # URL
	url=$1
	ok "$LEAT" ping -c 3 "$url" >"$work/ping"
	for word in transport because 'round trip' credits inline server; do
		grep -q "^$word" "$work/ping" || fail "ping says nothing of $word"
	done

	# trees
	ok "$LEAT" cp -rp "$work/src" "$url/tree"
	same 'tree in' "$(tree "$export_dir/tree")" "$want"
	ok "$LEAT" get -rp "$url/tree" "$work/back"
	same 'tree out' "$(tree "$work/back")" "$want"
	ok "$LEAT" cp -rp "$url/tree" "$url/tree2"
	same 'tree from server to server' "$(tree "$export_dir/tree2")" "$want"
	bad 1 'into itself' "$LEAT" cp -r "$url/tree" "$url/tree/a/new"
	bad 1 'is a directory' "$LEAT" cp "$url/tree" "$work/x"
	chmod -R u+w "$work/back" && rm -rf "$work/back"

	# files
	ok "$LEAT" put "$work/src/odd size" "$url/file"
	ok cmp "$work/src/odd size" "$export_dir/file"
	ok "$LEAT" cat "$url/file" >"$work/cat"
	ok cmp "$work/src/odd size" "$work/cat"
	ok "$LEAT" put "$work/src/empty" "$work/src/whole blocks" "$url"
	ok cmp "$work/src/whole blocks" "$export_dir/whole blocks"
	ok "$LEAT" get "$url/empty" "$work/empty"
	ok test ! -s "$work/empty"
	head -c 3000000 "$work/src/odd size" | ok "$LEAT" put - "$url/piped"
	same 'size from a pipe' "$(stat -c %s "$export_dir/piped")" 3000000
	# over what is there: shorter, with its old mode, and no temporary name stays
	chmod 600 "$export_dir/file"
	ok "$LEAT" put "$work/src/whole blocks" "$url/file"
	ok cmp "$work/src/whole blocks" "$export_dir/file"
	same 'mode kept' "$(stat -c %a "$export_dir/file")" 600
	same 'no leftovers' "$(find "$export_dir" -name '.leat-*')" ''
	# a file with two names keeps both
	ln "$export_dir/file" "$export_dir/second name"
	ok "$LEAT" put "$work/src/odd size" "$url/file"
	ok cmp "$export_dir/file" "$export_dir/second name"

	# names
	ok "$LEAT" mkdir "$url/d"
	bad 1 'File exists' "$LEAT" mkdir "$url/d"
	bad 1 'No such file' "$LEAT" mkdir "$url/p/q/r"
	ok "$LEAT" mkdir -p "$url/p/q/r" "$url/p/q"
	ok test -d "$export_dir/p/q/r"
	ok "$LEAT" mv "$url/file" "$url/d"
	ok test -f "$export_dir/d/file"
	ok "$LEAT" mv "$url/d/file" "$url/renamed"
	ok "$LEAT" ln "$url/renamed" "$url/hard"
	same 'links' "$(stat -c %h "$export_dir/hard")" 3
	ok "$LEAT" ln -s 'some/where' "$url/soft"
	same 'symlink' "$(readlink "$export_dir/soft")" some/where
	same 'ls' "$("$LEAT" ls "$url/tree")" "$(cd "$work/src" && LC_ALL=C ls)"
	same 'ls -a' "$("$LEAT" ls -a "$url")" "$(cd "$export_dir" && LC_ALL=C ls -A)"
	same 'ls -R' "$("$LEAT" ls -R "$url/p" | tail -n 1)" '/p/q/r:'
	"$LEAT" ls -l "$url/soft" | grep -q '^lrwxrwxrwx .* -> some/where$' || fail 'ls -l of a link'
	"$LEAT" ls -l "$url/tree" | grep -q '^-rw-r----- .* 5000001 2001-02-03 .*odd size$' || fail 'ls -l'
	"$LEAT" stat "$url/hard" | grep -q '^size *5000001$' || fail 'stat'
	TZ=UTC-5 "$LEAT" stat "$url/hard" | grep -qE '^modified +[-0-9]+ [0-9:]+\.[0-9]{9} \+0500$' || fail 'stat without the zone'
	"$LEAT" df "$url" | tail -n 1 | grep -q '/demo$' || fail 'df'
	same 'cat of a percent name' "$("$LEAT" cat "$url/tree/x%01%09%FF%20%253F%3F%26%5Cy")" odd

	# what cannot be
	bad 1 'No such file' "$LEAT" cat "$url/none"
	bad 1 'Is a directory' "$LEAT" cat "$url/d"
	bad 1 'is a directory: use -r' "$LEAT" rm "$url/d"
	bad 1 'not a URL' "$LEAT" rm "$work/src/empty"
	bad 1 'not a directory' "$LEAT" put "$work/src/empty" "$work/src/link" "$url/none"
	bad 1 "$work/none.*No such file" "$LEAT" put "$work/none" "$url/x"
	bad 1 'name too long' "$LEAT" mkdir "$url/${long}n"
	bad 1 'nowhere' "$LEAT" ls "${url%/demo}/nowhere"

	ok "$LEAT" rm -f "$url/none"
	ok "$LEAT" rm "$url/hard" "$url/soft" "$url/renamed" "$url/second name" "$url/piped" \
		"$url/empty" "$url/whole blocks"
	chmod -R u+w "$export_dir/tree" "$export_dir/tree2"
	ok "$LEAT" rm -r "$url/tree" "$url/tree2" "$url/d" "$url/p"
	same 'all gone' "$(ls -A "$export_dir")" ''

	# measuring works, and measures something
	for kind in read write randread randwrite; do
		"$LEAT" bench "$kind" "$url" --bs 64K --qd 4 --size 4M --seconds 1 --json >"$work/json"
		awk "BEGIN { exit !($(json bytes <"$work/json") > 0) }" || fail "bench $kind: $(cat "$work/json")"
		[ -n "$(json server_copied_per_byte <"$work/json")" ] || fail "bench $kind: no word of the server"
	done
	case $url in
	tcp:*) bad 1 'nothing is registered over TCP' "$LEAT" bench registration "$url" ;;
	*)
		for how in dynamic:1 arena:0; do
			"$LEAT" bench read "$url?registration=${how%:*}" --bs 256K --size 4M --seconds 1 \
				--json --buf malloc >"$work/json"
			awk "BEGIN { exit !($(json regs_per_op <"$work/json") >= ${how#*:} && $(json \
				regs_per_op <"$work/json") < ${how#*:} + 0.3) }" ||
				fail "bench, registration ${how%:*}: $(cat "$work/json")"
		done
		bench_registration
		;;
	esac
	"$LEAT" bench write "$url" --bs 64K --size 4M --seconds 1 --sync >"$work/out"
	grep -q 'this machine [0-9.]* s/GiB$' "$work/out" || fail "bench --sync: $(cat "$work/out")"
	"$LEAT" bench null "$url" --seconds 1 --json >"$work/json"
	awk "BEGIN { exit !($(json ops_s <"$work/json") > 0) }" || fail "bench null: $(cat "$work/json")"
	"$LEAT" bench meta "$url" --jobs 2 --seconds 1 | grep -q 'op/s$' || fail 'bench meta'
	same 'what bench leaves' "$(ls -A "$export_dir")" ''
}

# Links that lie in wait in a target tree lead nowhere: nothing outside of it is touched.
guard() { # TARGET TREE, as it is named and where it lies; COMMAND...
	named=$1 lies=$2
	shift 2
	rm -rf "$work/trap" "$work/outside"
	mkdir -p "$work/trap/t/d" "$work/outside/dir"
	echo precious >"$work/outside/file"
	ln -s "$work/outside/file" "$work/trap/t/f" # in a file's place
	ln -s ../../../outside/file "$work/trap/t/d/g"
	ln -s "$work/outside/none" "$work/trap/t/dangling"
	ln -s "$work/outside/dir" "$work/trap/t/e"  # in a directory's place
	rm -rf "$lies"
	cp -a "$work/trap/t" "$lies"
	bad 1 "/e: is a symbolic link where a directory is to be" "$LEAT" "$@" "$named"
	same 'the file outside' "$(cat "$work/outside/file")" precious
	same 'nothing else outside' "$(cd "$work/outside" && find . | LC_ALL=C sort | tr '\n' ' ')" '. ./dir ./file '
	for name in f d/g dangling; do
		same "$name" "$(stat -c %F "$lies/$name")" 'regular file'
		same "$name" "$(cat "$lies/$name")" new
	done
	same 'its mode' "$(stat -c %a "$lies/f")" 644
	same 'the link stays' "$(readlink "$lies/e")" "$work/outside/dir"
	same 'no leftovers' "$(find "$lies" -name '.leat-*')" ''
	rm -rf "$lies"
}
mkdir -p "$work/bait/d" "$work/bait/e"
for name in f d/g dangling e/inner; do
	echo new >"$work/bait/$name"
done

links() { # URL
	url=$1
	cp -a "$work/bait" "$export_dir/bait"
	mkdir "$work/into"
	guard "$work/into" "$work/into/bait" get -r "$url/bait"
	guard "$work/into" "$work/into/bait" cp -rp "$url/bait"
	# the same on the server, whose root the links' absolute targets begin at
	mkdir "$export_dir/into"
	guard "$url/into" "$export_dir/into/bait" put -r "$work/bait"
	guard "$url/into" "$export_dir/into/bait" cp -rp "$url/bait"
	# a link in the place of what is copied itself
	mkdir "$work/outside2"
	ln -s "$work/outside2" "$work/into/bait"
	bad 1 'is a symbolic link' "$LEAT" get -r "$url/bait" "$work/into"
	same 'nothing came' "$(ls -A "$work/outside2")" ''
	rm -rf "$work/outside2" "$work/into/bait"
	# but what the user names may be a link
	mkdir "$work/real"
	ln -s real "$work/named"
	ok "$LEAT" get -r "$url/bait" "$work/named"
	same 'through a named link' "$(cat "$work/real/bait/e/inner")" new
	: >"$work/real/file"
	ln -s real/file "$work/named file"
	ok "$LEAT" get "$url/bait/f" "$work/named file"
	same 'into a named link' "$(cat "$work/real/file")" new
	ok test -L "$work/named file"
	rm -rf "$work/real" "$work/named" "$work/named file" "$work/into" "$export_dir/into" "$export_dir/bait"

	# links that lead nowhere, or can lead nowhere, are named as any other
	far=$(awk 'BEGIN { for (i = 0; i < 4095; i++) printf "z" }')
	deep=$(awk 'BEGIN { for (i = 0; i < 4095; i++) printf i % 100 ? "z" : "/" }')
	for target in "$far" "$deep" gone loop; do
		ln -s "$target" "$export_dir/loop"
		ok "$LEAT" ls "$url/loop" >/dev/null
		"$LEAT" ls -l "$url/loop" >"$work/line" || fail "ls -l of a link to $target"
		same 'target' "$(sed 's/.* -> //' "$work/line")" "$target"
		ok "$LEAT" stat "$url/loop" >/dev/null
		bad 1 'too long|No such file|Too many' "$LEAT" cat "$url/loop"
		ok "$LEAT" get -r "$url/loop" "$work/copied"
		same 'copied' "$(readlink "$work/copied")" "$target"
		ok "$LEAT" mv "$url/loop" "$url/moved"
		ok "$LEAT" rm "$url/moved"
		ok test ! -L "$export_dir/moved"
		rm "$work/copied"
	done

	# a path that is long is used as a whole
	path=$long/$long/$long
	ok "$LEAT" mkdir -p "$url/$path"
	ok test -d "$export_dir/$path"
	echo bottom >"$export_dir/$path/file"
	same 'at the bottom' "$("$LEAT" cat "$url/$path/file")" bottom
	ok "$LEAT" rm -r "$url/$path"
	ok test -d "$export_dir/$long/$long"
	ok test ! -e "$export_dir/$path"
	ok "$LEAT" rm -r "$url/$long"
}

go "$local_url"
go "$tcp_url"
links "$local_url"
links "$tcp_url"

# leat:// comes by address and goes by the better way
leat_url=leat://${tcp_url#tcp://}
ok "$LEAT" ping -c 1 "$leat_url" >"$work/ping"
grep -qE '^transport +local' "$work/ping" || fail "leat:// took: $(cat "$work/ping")"

bad 2 usage "$LEAT" ls
bad 2 usage "$LEAT" cp one
bad 2 usage "$LEAT" ls -x "$local_url"
first() { # PATTERN COMMAND...: wrong usage, the first line says what is wrong
	first=$1
	shift
	bad 2 usage "$@"
	head -n 1 "$work/err" | grep -qE -e "$first" || fail "$* said: $(cat "$work/err")"
}
first 'cost=1,2,3: must be' "$LEAT" bench registration "$local_url" --cost 1,2,3
first 'reuse=20,101: must be' "$LEAT" bench registration "$local_url" --reuse 20,101
first 'strategies=cache,juggle: must be' "$LEAT" bench registration "$local_url" --strategies cache,juggle
first 'bs=0: must be' "$LEAT" bench registration "$local_url" --bs 0
first 'juggle: no such kind' "$LEAT" bench juggle "$local_url"
first 'bs=0: must be' "$LEAT" bench read "$local_url" --bs 0
first 'qd=0: must be' "$LEAT" bench read "$local_url" --qd 0
first 'jobs=x: must be' "$LEAT" bench read "$local_url" --jobs x
first 'size=4096: must be' "$LEAT" bench read "$local_url" --bs 64K --size 4K
first 'seconds=0: must be' "$LEAT" bench read "$local_url" --seconds 0
first 'buf=none: must be' "$LEAT" bench read "$local_url" --buf none
bad 1 'registration=foo: must be auto, dynamic, cache, batch, slab, arena or window' "$LEAT" ls "$local_url?registration=foo"
bad 1 'inline=1500: must be a multiple of 1K from 1K to 64K' "$LEAT" ls "$local_url?inline=1500"
bad 1 'cannot resolve host' "$LEAT" ls tcp://no-such-host.invalid/demo
bad 1 'RDMA|127.0.0.1:1:' "$LEAT" ls rdma://127.0.0.1:1/demo
[ -e /sys/class/infiniband ] || bad 1 'no RDMA (device|support)' "$LEAT" ls rdma://127.0.0.1:1/demo
# on a terminal, names cannot steer it
if command -v script >/dev/null; then
	: >"$export_dir/$(printf 'a\033[1mb\233c')"
	script -qec "'$LEAT' ls '$local_url'" /dev/null </dev/null >"$work/tty" 2>&1 || fail 'ls on a terminal'
	same 'on a terminal' "$(tr -d '\r\004' <"$work/tty" | sed 's/\^D//; s/\x08//g')" 'a?[1mb?c'
	same 'into a pipe' "$("$LEAT" ls "$local_url")" "$(printf 'a\033[1mb\233c')"
	rm "$export_dir"/a*
fi
bad 2 'no command' "$LEAT" juggle
bad 2 usage "$LEAT"
bad 1 'not\b' "$LEAT" ls http://127.0.0.1/
bad 1 '127.0.0.1:1' "$LEAT" ls tcp://127.0.0.1:1/demo
bad 1 'sock' "$LEAT" ls "local://$work/no.sock/demo"
ok "$LEAT" help cp >/dev/null
ok "$LEAT" --version >/dev/null

leatd_stop
bad 1 'leatd.sock' "$LEAT" ls "$local_url"
echo "$checks checks"
