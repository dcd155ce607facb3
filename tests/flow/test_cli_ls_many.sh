#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# test_cli_ls_many.sh - leat ls of a directory with more entries than it sorts

set -eu
. tests/lib/checks.sh
cli_start

limit=65536
many=$export_dir/many
mkdir "$many"
(cd "$many" && seq -f 'file-%07.0f' 2 $limit | xargs touch)
mkdir "$many/below"
echo inside >"$many/below/deep"

same() { # WHAT FILE FILE
	cmp -s "$2" "$3" || fail "$1: $(diff "$2" "$3" | head -3)"
	checks=$((checks + 1))
}

# the largest number of entries that is sorted
(cd "$many" && find . -mindepth 1 -maxdepth 1 -printf '%P\n' | LC_ALL=C sort) >"$work/want"
ok "$LEAT" ls "$local_url/many"
[ "$(wc -l <"$work/out")" -eq $limit ] || fail "not all of $limit"
same sorted "$work/out" "$work/want"

# two more, one of them hidden: the server's order, that of the directory itself
touch "$many/.hidden" "$many/last"
ls -U1 "$many" >"$work/want"
ok "$LEAT" ls "$local_url/many"
same "the server's order" "$work/out" "$work/want"
ok "$LEAT" ls "$tcp_url/many"
same "over TCP" "$work/out" "$work/want"
ok "$LEAT" ls -a "$local_url/many"
[ "$(wc -l <"$work/out")" -eq $((limit + 2)) ] || fail "not all of $((limit + 2))"
ok "$LEAT" ls -l "$local_url/many"
[ "$(grep -c '^[-d]rw' "$work/out")" -eq $((limit + 1)) ] || fail "not all with attributes"

# the directories in it, too
ok "$LEAT" ls -R "$local_url/many"
{
	echo "/many:"
	cat "$work/want"
	printf '\n%s\ndeep\n' /many/below:
} >"$work/want-all"
sed 's,^.*/many,/many,' "$work/out" >"$work/got-all"
same recursive "$work/got-all" "$work/want-all"

# the directory above counts too: what fits alone is not sorted here
rm -r "$many"
mkdir -p "$export_dir/above/below"
(cd "$export_dir/above" && seq -f 'file-%07.0f' 2 30000 | xargs touch)
(cd "$export_dir/above/below" && seq -f 'file-%07.0f' 1 35536 | xargs touch)
ls -1 "$export_dir/above/below" >"$work/sorted"
below() { sed '1,/below:$/d' "$work/out" >"$work/got"; }
ok "$LEAT" ls -R "$local_url/above"
below
same 'sorted below' "$work/got" "$work/sorted"
touch "$export_dir/above/below/file-0"
ls -U1 "$export_dir/above/below" >"$work/unsorted"
ok "$LEAT" ls -R "$local_url/above"
below
same "the server's order below" "$work/got" "$work/unsorted"

echo "test_cli_ls_many: $checks checks"
