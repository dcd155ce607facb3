#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# test_cli_leftovers.sh - temporary files of killed copies and hidden names of crashed programs: what counts as one,
# which commands skip or remove them

set -eu
: "${LEAT:=build/leat}" "${LEATD:=build/leatd}" "${CC:=gcc}"
. scripts/private-leatd.sh
. tests/lib/checks.sh

work=$(mktemp -d)
copy=''
finish() {
	[ -z "$copy" ] || kill -KILL "$copy" 2>/dev/null || :
	leatd_stop
	rm -rf "$work"
}
trap finish EXIT
export_dir=$work/export
mkdir "$export_dir"
leatd_start "$export_dir" || exit 1

# three_days_later COMMAND...: with a clock that is ahead, since no call can set a file's time of change
cat >"$work/later.c" <<'END'
#include <time.h>
time_t time(time_t *ret)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	now.tv_sec += 3 * 24 * 60 * 60;
	if (ret)
		*ret = now.tv_sec;
	return now.tv_sec;
}
END
$CC -shared -fPIC -o "$work/later.so" "$work/later.c" || fail 'no clock of our own'
three_days_later() {
	LD_PRELOAD=$work/later.so ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0" "$@"
}

same() { # WHAT A B
	[ "$2" = "$3" ] || fail "$1: '$2' is not '$3'"
	checks=$((checks + 1))
}
names() { (cd "$1" && find . ! -type d | LC_ALL=C sort | tr '\n' ' '); }
old=.leat-0123456789abcdef
young=.leat-00000000000000ff
link=.leat-fedcba9876543210
his=.leat-1111111111111111

fill() { # DIR
	mkdir -p "$1/d" "$1/.leat-aaaaaaaaaaaaaaaa"
	for f in "$old" "$young" d/"$old" f .leat-0123456789abcde .leat-0123456789abcdef0 \
		.leat-0123456789ABCDEF .leat-bench x"$old" .leat-aaaaaaaaaaaaaaaa/f; do
		echo "$f" >"$1/$f"
	done
	ln -s f "$1/$link"
	find "$1" ! -name "$young" -exec touch -h -d '2 days ago' {} +
	touch -d '3 days' "$1/$young"
	others=''
	if [ "$(id -u)" -eq 0 ]; then
		echo his >"$1/$his"
		chown 64002 "$1/$his"
		touch -d '2 days ago' "$1/$his"
		others="./$his "
	fi
}
[ "$(id -u)" -eq 0 ] || echo 'skipped: leftovers of another user'

removes() { # NAMED DIR
	named=$1 dir=$2
	fill "$dir"
	ok "$LEAT" rm --leftovers -r "$named"
	same 'made now, with an old time' "$(grep -c '^removed' "$work/out")" 0
	ok three_days_later "$LEAT" rm --leftovers "$named"
	same 'said' "$(grep -c '^removed' "$work/out")" 2
	grep -q "^kept .*$young (changed less than a day ago)$" "$work/out" || fail "said: $(cat "$work/out")"
	[ -z "$others" ] || grep -q "^kept .*$his (of another user)$" "$work/out" || fail "said: $(cat "$work/out")"
	same 'what stays' "$(names "$dir")" "./$young ./.leat-0123456789ABCDEF ./.leat-0123456789abcde ./.leat-0123456789abcdef0 $others./.leat-aaaaaaaaaaaaaaaa/f ./.leat-bench ./d/$old ./f ./x$old "
	ok three_days_later "$LEAT" rm --leftovers -r "$named"
	[ ! -e "$dir/d/$old" ] || fail 'not below'
	[ -e "$dir/.leat-aaaaaaaaaaaaaaaa/f" ] || fail 'a directory is no leftover'
	bad 1 'Not a directory' "$LEAT" rm --leftovers "$named/f"
	bad 1 'No such file' "$LEAT" rm --leftovers "$named/none"
	rm -r "$dir"
}

skips() { # FROM DIR TO TO-DIR
	fill "$2"
	rm -f "$2/$his"
	rc=0
	"$LEAT" cp -r "$1" "$3" >"$work/out" 2>"$work/err" || rc=$?
	same 'status' "$rc" 1
	same 'warnings' "$(grep -c 'skipped, the temporary file of a copy' "$work/err")" 4
	same 'lines' "$(wc -l <"$work/err")" 4
	same 'what came' "$(names "$4")" \
		"./.leat-0123456789ABCDEF ./.leat-0123456789abcde ./.leat-0123456789abcdef0 ./.leat-aaaaaaaaaaaaaaaa/f ./.leat-bench ./f ./x$old "
	rm -r "$4"
	ok "$LEAT" cp -r --all "$1" "$3"
	same 'all' "$(names "$4")" "$(names "$2")"
	ok "$LEAT" cp "$1/$old" "$3/named"
	rm -r "$4" "$2"
}

killed() { # URL
	# a copy that is killed leaves one, which another copy does not touch
	mkfifo "$work/pipe"
	"$LEAT" put - "$1/big" <"$work/pipe" &
	copy=$!
	exec 4>"$work/pipe"
	head -c 3000000 /dev/zero >&4
	until [ -n "$(find "$export_dir" -name '.leat-*')" ]; do
		kill -0 "$copy" || fail 'the copy has ended'
	done
	kill -KILL "$copy"
	wait "$copy" 2>/dev/null || :
	copy=''
	exec 4>&-
	rm "$work/pipe"
	left=$(ls -A "$export_dir")
	echo "$left" | grep -qE '^\.leat-[0-9a-f]{16}$' || fail "left behind: $left"
	echo x >"$work/x"
	ok "$LEAT" put "$work/x" "$1/big"
	ok "$LEAT" rm --leftovers "$1"
	same 'it stays for a day' "$(ls -A "$export_dir")" "$left
big"
	ok three_days_later "$LEAT" rm --leftovers "$1"
	same 'and goes' "$(ls -A "$export_dir")" big
	rm "$export_dir/big"
}

hidden=.leat-removed-0123456789abcdef
hidden() { # NAMED DIR WHAT-IS-SAID WHAT-STAYS
	mkdir -p "$2/$hidden.d"
	for f in "$hidden" "$hidden-keep" .leat-removed-0123456789abcde; do
		echo "$f" >"$2/$f"
		touch -d '2 days ago' "$2/$f"
	done
	ln -s f "$2/.leat-removed-fedcba9876543210"
	ok "$LEAT" rm --leftovers "$1"
	same 'hidden today' "$(sed 's/ .*\//  /' "$work/out")" "kept  $hidden (changed less than a day ago)"
	ok three_days_later "$LEAT" rm --leftovers "$1"
	same 'hidden' "$(sed 's/ .*\//  /' "$work/out")" "$3"
	same 'hidden, stays' "$(names "$2")" "./.leat-removed-0123456789abcde $4./$hidden-keep ./.leat-removed-fedcba9876543210 "
	rm -r "$2"
}

removes "$work/here" "$work/here"
hidden "$work/here" "$work/here" "removed  $hidden" ''
for url in "$local_url" "$tcp_url"; do
	removes "$url/t" "$export_dir/t"
	# the clock of the server decides
	hidden "$url/t" "$export_dir/t" "kept  $hidden (changed less than a day ago)" "./$hidden "
	skips "$work/here" "$work/here" "$url/t" "$export_dir/t"
	skips "$url/t" "$export_dir/t" "$work/here" "$work/here"
	killed "$url"
done
echo "$checks checks"
