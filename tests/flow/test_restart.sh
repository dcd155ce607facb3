#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# test_restart.sh - leatd is killed in the middle of a copy and started again: the copy finishes

set -eu
: "${LEAT:=build/leat}" "${LEATD:=build/leatd}"
. tests/lib/checks.sh

if [ "$(id -u)" -ne 0 ]; then
	echo 'handles survive a restart only if leatd runs as root'
	exit 77
fi

work=$(mktemp -d)
pid='' copy=''
finish() {
	[ -z "$copy" ] || kill -KILL "$copy" 2>/dev/null || :
	[ -z "$pid" ] || kill "$pid" 2>/dev/null || :
	rm -rf "$work"
}
trap finish EXIT
mkdir "$work/export"

port=0 # the same one every time
start() {
	leatd_run "$LEATD" --state-dir "$work/state" --export "/x=$work/export,rw,no_root_squash" \
		--listen "local://$work/sock" --listen "tcp://127.0.0.1:$port"
}

where=$work/export # where something is seen to grow
enough=0           # bytes; above 0 some of them have been answered, for more than are under way at once
growing() { # PATTERN; looked for without a process, since a copy is fast
	for seen in "$where"/$1; do
		[ -s "$seen" ] || continue
		[ $enough -eq 0 ] || [ "$(stat -c %s "$seen")" -gt $enough ] || continue
		return 0
	done
	return 1
}

# NAME, of the file that grows; COMMAND...: run it, and kill the server meanwhile; sets $rc, or fails:
# the command ended before we looked
interrupt_once() {
	name=$1
	shift
	"$@" 2>"$work/err" &
	copy=$!
	tries=0
	until growing "$name"; do
		if ! kill -0 "$copy" 2>/dev/null; then
			wait "$copy" || fail "$* failed before anything could be seen: $(cat "$work/err")"
			copy=
			return 1
		fi
		tries=$((tries + 1))
		[ "$tries" -lt 10000000 ] || fail "$*: nothing grows"
	done
	kill -KILL "$pid"
	wait "$pid" 2>/dev/null || :
	pid=
	again=0
	kill -0 "$copy" 2>/dev/null || again=1
	start
	rc=0
	wait "$copy" || rc=$?
	copy=
	return $again
}

# as before, but a command that was too fast for us, while others had the processor, is run again
interrupt() {
	for round in 1 2 3 4 5; do
		! interrupt_once "$@" || return 0
		rm -rf "$work/again"
		[ ! -e "$where" ] || [ "$where" = "$work/export" ] || [ "$where" = "$work/mine" ] ||
			mv "$where" "$work/again"
	done
	fail "$* was too fast for us, $round times"
}

survives() { # NAME COMMAND...: all is there in the end
	interrupt "$@"
	[ "$rc" -eq 0 ] || fail "$* -> $rc: $(cat "$work/err")"
	[ ! -s "$work/err" ] || fail "$* said: $(cat "$work/err")"
	cmp "$work/big" "$work/export/file" || fail "$*: other bytes"
	[ "$(ls -A "$work/export")" = file ] || fail "$* left something: $(ls -A "$work/export")"
	checks=$((checks + 1))
}

head -c 67108867 /dev/urandom >"$work/big"
start
# small writes, so that there is a middle
local_url="local://$work/sock/x/file?wsize=4096"
tcp_url="tcp://127.0.0.1:$port/x/file?wsize=4096"

survives '.leat-*' "$LEAT" put "$work/big" "$local_url"
rm "$work/export/file"
survives '.leat-*' "$LEAT" cp -p "$work/big" "$tcp_url"

# what has two names is written in place, and as often
: >"$work/export/file"
ln "$work/export/file" "$work/second"
survives file "$LEAT" put "$work/big" "$tcp_url"
cmp "$work/big" "$work/second" || fail 'the second name is of another file'
rm "$work/export/file" "$work/second"

# and out of it: what is read is asked for again
cp "$work/big" "$work/export/file"
mkdir "$work/mine"
where=$work/mine
reads_on() { # URL
	interrupt '.leat-*' "$LEAT" get "$1?rsize=4096&readahead=0&credits=1" "$work/mine/file"
	[ "$rc" -eq 0 ] || fail "get $1 -> $rc: $(cat "$work/err")"
	[ ! -s "$work/err" ] || fail "get $1 said: $(cat "$work/err")"
	cmp "$work/big" "$work/mine/file" || fail "get $1: other bytes"
	[ "$(ls -A "$work/mine")" = file ] || fail "get $1 left something: $(ls -A "$work/mine")"
	rm "$work/mine/file"
	checks=$((checks + 1))
}
reads_on "local://$work/sock/x/file"
reads_on "tcp://127.0.0.1:$port/x/file"
rm "$work/export/file"

# trees, in, across and out, killed when the 75th of 150 small files is seen: the names that were
# being made, too, are there once and right
mkdir "$work/tree"
n=0
while [ $n -lt 150 ]; do
	[ $((n % 50)) -ne 0 ] || mkdir "$work/tree/d$((n / 50))"
	echo "this is file $n" >"$work/tree/d$((n / 50))/f$n"
	n=$((n + 1))
done
ln -s d1/f60 "$work/tree/link"
tree_survives() { # RESULT COMMAND...
	result=$1
	shift
	interrupt d1/f75 "$@"
	[ "$rc" -eq 0 ] || fail "$* -> $rc: $(cat "$work/err")"
	[ ! -s "$work/err" ] || fail "$* said: $(cat "$work/err")"
	diff -r --no-dereference "$work/tree" "$result" || fail "$*: another tree"
	checks=$((checks + 1))
}
for url in "local://$work/sock/x" "tcp://127.0.0.1:$port/x"; do
	where=$work/export/in
	tree_survives "$work/export/in" "$LEAT" cp -r "$work/tree" "$url/in"
	mkdir "$work/export/across"
	where=$work/export/across/in
	tree_survives "$work/export/across/in" "$LEAT" cp -r "$url/in" "$url/across/in"
	where=$work/mine/in
	tree_survives "$work/mine/in" "$LEAT" get -r "$url/in" "$work/mine/in"
	rm -r "$work/mine/in" "$work/export/in" "$work/export/across"
done
where=$work/export

# a pipe cannot be read again: the command reports that, and leaves no file
enough=16777216
mkfifo "$work/words"
cat "$work/big" >"$work/words" &
interrupt '.leat-*' "$LEAT" put "$work/words" "$tcp_url"
[ "$rc" -eq 1 ] || fail "put from a pipe -> $rc"
grep -q 'the server lost data' "$work/err" || fail "put from a pipe said: $(cat "$work/err")"
[ "$(wc -l <"$work/err")" -eq 1 ] || fail "not one line: $(cat "$work/err")"
[ -z "$(ls -A "$work/export")" ] || fail "a pipe left: $(ls -A "$work/export")"
checks=$((checks + 1))

kill "$pid"
wait "$pid" || fail "leatd ended with $?"
pid=
echo "$checks checks"
