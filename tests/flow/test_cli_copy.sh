#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# test_cli_copy.sh - leat cp, put and get lose nothing: sources that are their targets, "-", refused copies

set -eu
. tests/lib/checks.sh
cli_start

same() { # WHAT A B
	[ "$2" = "$3" ] || fail "$1: '$2' is not '$3'"
	checks=$((checks + 1))
}
holds() { # FILE: what was in it before
	cmp -s "$work/precious" "$1" || fail "$1 has changed: $(wc -c <"$1") bytes"
	checks=$((checks + 1))
}
head -c 3000001 /dev/urandom >"$work/precious"

# One file by two names: nothing is copied, and nothing is lost.
itself() { # FROM-PREFIX TO-PREFIX DIR, where both lie
	from=$1 to=$2 dir=$3
	mkdir -p "$dir/dir/below"
	cp "$work/precious" "$dir/a"
	cp "$work/precious" "$dir/dir/below/f"
	ln "$dir/a" "$dir/hard"
	ln -s a "$dir/link"
	ln -s dir "$dir/dirlink"
	for pair in 'a a' 'a hard' 'hard a' 'link a' 'a link' 'a .' 'hard .'; do
		bad 1 "are the same file" "$LEAT" cp "$from/${pair% *}" "$to/${pair#* }"
		bad 1 "are the same file" "$LEAT" cp -rp "$from/a" "$to/${pair#* }"
		holds "$dir/a"
		holds "$dir/hard"
	done
	bad 1 'are the same file' "$LEAT" cp -r "$from/link" "$to/a" # would be a link to itself
	bad 1 'are the same file' "$LEAT" cp -r "$from/dir" "$to/"
	bad 1 'are the same file' "$LEAT" cp -r "$from/dir" "$to"
	bad 1 'are the same file' "$LEAT" cp -rp "$from/dir/below" "$to/dirlink"
	bad 1 'cannot be copied into itself' "$LEAT" cp -r "$from/dir" "$to/dir/below"
	bad 1 'cannot be copied into itself' "$LEAT" cp -r "$from/dir" "$to/dirlink/below/new"
	holds "$dir/a"
	holds "$dir/dir/below/f"
	same 'link' "$(readlink "$dir/link")" a
	same 'links' "$(stat -c %h "$dir/a")" 2
	same 'no leftovers' "$(find "$dir" -name '.leat-*')" ''
	rm -rf "$dir"
}

# Where two names cannot be compared the copy may be made, but what it reads is there until it is read.
unknown() { # URL
	url=$1
	mkdir -p "$export_dir/u/dir/below"
	cp "$work/precious" "$export_dir/u/a"
	cp "$work/precious" "$export_dir/u/dir/below/f"
	ln "$export_dir/u/a" "$export_dir/u/hard"
	ok "$LEAT" cp "$export_dir/u/a" "$url/u/hard"
	ok "$LEAT" cp "$url/u/a" "$export_dir/u/hard"
	ok "$LEAT" cp "$export_dir/u/a" "$url/u/a"
	holds "$export_dir/u/a"
	holds "$export_dir/u/hard"
	for from_to in "$export_dir $url" "$url $export_dir"; do
		from=${from_to% *}/u to=${from_to#* }/u
		bad 1 'are the same file' "$LEAT" cp -r "$from/dir" "$to/"
		holds "$export_dir/u/dir/below/f"
		bad 1 'cannot be copied into itself' "$LEAT" cp -r "$from/dir" "$to/dir/below/new"
		same 'depth' "$(find "$export_dir/u" -mindepth 6)" ''
		holds "$export_dir/u/dir/below/f"
		rm -r "$export_dir/u/dir/below/new"
		same 'nothing new' "$(find "$export_dir/u" | wc -l)" 6
	done
	rm -r "$export_dir/u"
}

# A copy that fails before it has read anything has written nothing.
unread() { # URL
	url=$1
	cp "$work/precious" "$export_dir/a"
	ln "$export_dir/a" "$export_dir/hard"
	cp "$work/precious" "$work/local"
	ln "$work/local" "$work/local hard"
	bad 1 '/proc/self/mem' "$LEAT" put /proc/self/mem "$url/a"
	bad 1 'No such file' "$LEAT" put "$work/none" "$url/a"
	bad 1 'Is a directory|use -r' "$LEAT" cp "$url" "$url/a"
	bad 1 'No such file' "$LEAT" get "$url/none" "$work/local"
	holds "$export_dir/a"
	holds "$work/local"
	# shorter and longer than what is there, with two names and so in place
	for bytes in 0 1 999999 4000000; do
		head -c "$bytes" /dev/urandom >"$work/new"
		ok "$LEAT" put "$work/new" "$url/a"
		ok cmp "$work/new" "$export_dir/hard"
		ok "$LEAT" get "$url/a" "$work/local"
		ok cmp "$work/new" "$work/local hard"
	done
	rm "$export_dir/a" "$export_dir/hard" "$work/local" "$work/local hard"
	# a slash says that it is a directory
	cp "$work/precious" "$work/local"
	cp "$work/precious" "$export_dir/a"
	bad 1 'Not a directory' "$LEAT" get "$url/a" "$work/local/"
	bad 1 'Not a directory' "$LEAT" put "$work/new" "$url/a/"
	bad 1 'No such file or directory' "$LEAT" put "$work/new" "$url/none/"
	holds "$work/local"
	holds "$export_dir/a"
	# two sources of one name: the second is not copied over the first
	mkdir -p "$work/two/x" "$work/two/y"
	echo x >"$work/two/x/f"
	echo y >"$work/two/y/f"
	mkdir "$export_dir/d"
	bad 1 'has just written' "$LEAT" put "$work/two/x/f" "$work/two/y/f" "$url/d"
	same 'the first' "$(cat "$export_dir/d/f")" x
	rm -r "$work/two" "$work/local" "$export_dir/a" "$export_dir/d"
}

# A copy that fails in the middle leaves the old file, or says that its content is gone.
fails_in_the_middle() { # TARGET, in a leatd or this shell, whose files may have 3000000 bytes
	command -v prlimit >/dev/null || {
		echo 'skipped: no prlimit'
		return
	}
	target=$1 limited=$$
	[ "$target" = "$export_dir" ] || limited=$leatd_pid
	head -c 9000000 /dev/urandom >"$work/large"
	cp "$work/precious" "$export_dir/a"
	prlimit --pid "$limited" --fsize=3000000:unlimited
	bad 1 'File too large' "$LEAT" cp "$work/large" "$target/a"
	holds "$export_dir/a"
	same 'no leftovers' "$(find "$export_dir" -name '.leat-*')" ''
	ln "$export_dir/a" "$export_dir/hard"
	rc=0
	"$LEAT" cp "$work/large" "$target/a" 2>"$work/err" || rc=$?
	same 'status' "$rc" 1
	same 'lines' "$(wc -l <"$work/err")" 2
	head -n 1 "$work/err" | grep -q "^leat: $target/a: .*File too large" || fail "said: $(cat "$work/err")"
	same 'the second line' "$(sed 1d "$work/err")" \
		"leat: $target/a: it was written in place and now holds part of the new content"
	prlimit --pid "$limited" --fsize=unlimited
	rm "$export_dir/a" "$export_dir/hard" "$work/large"
}

# rm and mv: what else could take more than was meant
names() { # URL
	url=$1
	mkdir "$export_dir/d"
	cp "$work/precious" "$export_dir/d/f"
	ln "$export_dir/d/f" "$export_dir/f"
	for path in . .. d/. d/.. d/../. d/./; do
		bad 1 'are not removed' "$LEAT" rm -r "$url/$path"
		bad 1 'are not removed' "$LEAT" rm -rf "$url/$path"
	done
	for path in "" / //; do
		bad 1 "^leat: $url: this is the root of the export; it is not removed$" "$LEAT" rm -rf "$url$path"
	done
	# a slash behind a name says that it is a directory
	ln -s d "$export_dir/link"
	for path in f link; do
		bad 1 'Not a directory' "$LEAT" rm "$url/$path/"
		bad 1 'Not a directory' "$LEAT" rm -r "$url/$path/"
	done
	bad 1 'Not a directory' "$LEAT" cat "$url/f/"
	bad 1 'Not a directory' "$LEAT" ls "$url/f/?cache=none"
	bad 1 'Not a directory' "$LEAT" get "$url/f/" "$work/none"
	bad 1 'Not a directory' "$LEAT" get -r "$url/f/" "$work/none"
	bad 1 'Not a directory' "$LEAT" mv "$url/f/" "$url/g"
	bad 1 'Not a directory' "$LEAT" mv "$url/f" "$url/g/"
	bad 1 'Not a directory' "$LEAT" put "$work/precious/" "$url/g"
	ok "$LEAT" ls "$url/d/"
	ok "$LEAT" ls "$url/link/"
	ok "$LEAT" mkdir "$url/d/new/"
	ok "$LEAT" mkdir -p "$url/d/new/newer/"
	ok "$LEAT" get -r "$url/link/" "$work/copied"
	holds "$work/copied/f"
	ok "$LEAT" mv "$url/d/new/" "$url/d/renamed/"
	ok "$LEAT" rm -r "$url/d/renamed/"
	same 'nothing else' "$(cd "$export_dir" && find . ! -type d | sort | tr '\n' ' ')" './d/f ./f ./link '
	rm -r "$export_dir/link" "$work/copied"
	bad 1 'are the same file' "$LEAT" mv "$url/f" "$url/d/f"
	bad 1 'are the same file' "$LEAT" mv "$url/f" "$url/d"
	holds "$export_dir/f"
	holds "$export_dir/d/f"
	rm -r "$export_dir/d" "$export_dir/f"
}

dash() { # URL
	url=$1
	cp "$work/precious" "$export_dir/a"
	cp "$work/precious" "$work/in"
	"$LEAT" get "$url/a" - <>"$work/in" >"$work/stdout" || fail 'get to standard output'
	holds "$work/stdout"
	holds "$work/in"
	"$LEAT" cp "$url/a" - <"$work/in" | cmp -s - "$work/precious" || fail 'cp to a pipe'
	[ ! -e ./- ] || fail 'a file named -'
	bad 1 'not a directory' "$LEAT" get "$url/a" "$url/a" -
	# it has no name of its own, which a directory could take
	mkdir "$export_dir/d"
	echo old >"$export_dir/d/stdin"
	for option in '' -r; do
		# shellcheck disable=SC2086
		bad 1 "^leat: $url/d: is a directory: name the file$" "$LEAT" put $option - "$url/d" <"$work/precious"
		bad 1 "^leat: $export_dir/d: is a directory: name the file$" "$LEAT" cp - "$export_dir/d" <"$work/precious"
	done
	same 'nothing new' "$(ls -A "$export_dir/d") $(cat "$export_dir/d/stdin")" 'stdin old'
	rm -r "$export_dir/d"
	bad 1 'directory' "$LEAT" get -r "$url" -
	# to a pipe with a name
	mkfifo "$work/fifo"
	cmp -s "$work/fifo" "$work/precious" &
	reader=$!
	ok "$LEAT" get "$url/a" "$work/fifo"
	wait "$reader" || fail 'through a pipe'
	rm "$work/fifo"
	# standard input is read from where it stands
	{
		dd bs=1000000 count=1 of=/dev/null 2>/dev/null
		ok "$LEAT" put - "$url/rest"
	} <"$work/precious"
	tail -c +1000001 "$work/precious" | cmp -s - "$export_dir/rest" || fail 'standard input was not continued'
	ok "$LEAT" put -r - "$url/rest" <"$work/precious"
	holds "$export_dir/rest"
	ok test -f "$export_dir/rest"
	head -c 4000000 "$work/precious" | ok "$LEAT" put -r - "$url/rest"
	holds "$export_dir/rest"
	rm "$export_dir/rest" "$export_dir/a" "$work/in" "$work/stdout"
}

itself "$work/here" "$work/here" "$work/here"
itself "$local_url/t" "$local_url/t" "$export_dir/t"
itself "$tcp_url/t" "$tcp_url/t" "$export_dir/t"
itself "$local_url/t" "$tcp_url/t" "$export_dir/t"
fails_in_the_middle "$export_dir"
for url in "$local_url" "$tcp_url"; do
	unknown "$url"
	unread "$url"
	names "$url"
	fails_in_the_middle "$url"
	dash "$url"
done
echo "$checks checks"
