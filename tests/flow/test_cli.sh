#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# test_cli.sh - the leat command against a real leatd: every command, over both transports

set -eu
: "${LEAT:=build/leat}" "${LEATD:=build/leatd}"
. scripts/private-leatd.sh

work=$(mktemp -d)
finish() {
	leatd_stop
	chmod -R u+w "$work" # some of it is read-only on purpose
	rm -rf "$work"
}
trap finish EXIT
umask 022

checks=0
fail() {
	echo "FAILED after $checks checks: $*"
	exit 1
}
ok() { # COMMAND...: succeeds, and says nothing on stderr
	"$@" 2>"$work/err" || fail "$* -> $?: $(cat "$work/err")"
	[ ! -s "$work/err" ] || fail "$* said: $(cat "$work/err")"
	checks=$((checks + 1))
}
bad() { # STATUS PATTERN COMMAND...: fails with that status and one line that matches
	status=$1 pattern=$2
	shift 2
	rc=0
	"$@" >"$work/out" 2>"$work/err" || rc=$?
	[ "$rc" -eq "$status" ] || fail "$* -> $rc instead of $status"
	[ "$status" -eq 2 ] || [ "$(wc -l <"$work/err")" -eq 1 ] || fail "$*: not one line: $(cat "$work/err")"
	grep -qE -e "$pattern" "$work/err" || fail "$* said: $(cat "$work/err")"
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
	find . -type f -printf '%T@ %P\n' | sed 's/\.[0-9]*//' | LC_ALL=C sort
	find . -type f -print0 | LC_ALL=C sort -z | xargs -0 cksum)
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
	"$LEAT" df "$url" | tail -n 1 | grep -q '/demo$' || fail 'df'
	same 'cat of a percent name' "$("$LEAT" cat "$url/tree/x%01%09%FF%20%253F%3F%26%5Cy")" odd

	# what cannot be
	bad 1 'No such file' "$LEAT" cat "$url/none"
	bad 1 'Is a directory' "$LEAT" cat "$url/d"
	bad 1 '-r is wanted' "$LEAT" rm "$url/d"
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
	"$LEAT" bench null "$url" --seconds 1 --json >"$work/json"
	awk "BEGIN { exit !($(json ops_s <"$work/json") > 0) }" || fail "bench null: $(cat "$work/json")"
	"$LEAT" bench meta "$url" --jobs 2 --seconds 1 | grep -q 'op/s$' || fail 'bench meta'
	same 'what bench leaves' "$(ls -A "$export_dir")" leat-bench
	ok "$LEAT" rm "$url/leat-bench"
}

go "$local_url"
go "$tcp_url"

# leat:// comes by address and goes by the better way
leat_url=leat://${tcp_url#tcp://}
ok "$LEAT" ping -c 1 "$leat_url" >"$work/ping"
grep -qE '^transport +local' "$work/ping" || fail "leat:// took: $(cat "$work/ping")"

bad 2 usage "$LEAT" ls
bad 2 usage "$LEAT" cp one
bad 2 usage "$LEAT" ls -x "$local_url"
bad 2 usage "$LEAT" bench juggle "$local_url"
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
