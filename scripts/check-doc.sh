#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# check-doc.sh - pages are well formed, and nothing public is undocumented
#
#   - mandoc -Tlint has nothing to say about doc/man/
#   - the version maps name exactly the functions of the public headers
#   - each function of the maps is in the NAME section of a page of doc/man/; each of
#     rpcrdma*.h has a comment in the header, too
#   - pages refer only to pages and functions of the libraries that exist
#   - each function of the other headers has a comment above it, or above its group
#   - each option of `leat` and `leatd` is in its page
#   - each counter of libleat is in leat_stats(3) and in leat.h
#   - doc/*.md, README.md and the pages name only files that exist
#   - each folder of the libraries and of leatd is in README.md's map of the tree
#   - each test of tests/interop is in doc/interop.md, which says what it proves

set -u
bad=0
list=$(mktemp) || exit
trap 'rm -f "$list"' EXIT
say() { echo "check-doc: $*"; bad=1; }

if command -v mandoc >/dev/null; then
	out=$(mandoc -Tlint -Wwarning doc/man/*.[1-8] 2>&1) || say "mandoc: $out"
else
	echo 'check-doc: no mandoc here: pages not looked at'
fi

functions() { # PREFIX HEADER...: those that a library exports, not those that a header defines
	prefix=$1
	shift
	cat "$@" | sed -nE "/^static /d; s/^[A-Za-z][^(]*[ *](${prefix}_[a-z0-9_]+)\\(.*/\\1/p" | LC_ALL=C sort -u
}

public() { # PREFIX: its headers; librpcrdma_tirpc has a map of its own
	case $1 in
	rpcrdma) ls include/rpcrdma*.h | grep -v _tirpc ;;
	*) ls include/"$1"*.h ;;
	esac
}

# exported LIBRARY: its functions in its headers. All of librpcrdma_tirpc begin as those of librpcrdma do.
exported() {
	# words are file names without blanks
	# shellcheck disable=SC2046
	functions "${1%_tirpc}" $(public "$1")
}

# words are file names without blanks
# shellcheck disable=SC2046
for pair in leat:include/leat.map rpcrdma:rpcrdma/rpcrdma.map rpcrdma_tirpc:tirpc/tirpc.map; do
	lib=${pair%%:*} map=${pair#*:}
	in_headers=$(exported "$lib")
	in_map=$(sed -nE 's/^[[:space:]]+([a-z][a-z0-9_]*);$/\1/p' "$map" | LC_ALL=C sort -u)
	for f in $in_headers; do
		echo "$in_map" | grep -qx "$f" || say "$f of include/$lib*.h is not in $map"
	done
	for f in $in_map; do
		echo "$in_headers" | grep -qx "$f" || say "$f of $map is in no public header"
	done
done

# man(1) finds a function by the NAME section of its page
names=$(awk 'FNR == 1 { on = 0 } /^\.Sh / { on = $2 == "NAME" } on && $1 == ".Nm" { print $2 }' doc/man/*.3)
for lib in leat rpcrdma rpcrdma_tirpc; do
	for f in $(exported "$lib"); do
		echo "$names" | grep -qx "$f" || say "$f is in the NAME section of no page of doc/man"
	done
done
for f in $(sed -nE 's/^\.(Pq |Po )?Xr ((leat|rpcrdma)_[a-z0-9_]+) 3.*/\2/p' doc/man/*.[1-8] | sort -u); do
	echo "$names" | grep -qx "$f" || [ -e "doc/man/$f.3" ] || say "doc/man refers to $f(3), which is not there"
done
for f in $(exported rpcrdma) $(exported rpcrdma_tirpc); do
	# documented: a comment, or a comment of the group that it stands in, without a blank between
	awk -v f="$f" '/^$/ { comment = 0 } /\/\*/ { comment = 1 }
		index($0, f "(") && /^[A-Za-z]/ { if (comment) ok = 1 } END { exit !ok }' \
		include/rpcrdma*.h || say "$f has no comment in its header"
done

# The same for the other headers, which are internal. A declaration starts in the first column; it may span lines. A
# comment inside of a structure is not that of a function directly after it.
# shellcheck disable=SC2016 # $0 is awk's
bare=$(find rpcrdma tirpc server client xdr tests/tools -name '*.h' | sort |
	xargs awk '
		FNR == 1 || /^$/ || /^}/ { comment = 0 }
		/\/\*/ { comment = 1 }
		/^[a-z][^=;]*\(/ && !/^(static|typedef)/ && !comment {
			match($0, /[ *][a-z0-9_]+\(/)
			print FILENAME ":" FNR ": " substr($0, RSTART + 1, RLENGTH - 2)
		}' /dev/null)
[ -z "$bare" ] || say "no comment above its declaration:
$bare"

counters=$(sed -n "/^#define LT_COUNTERS(/,/^$/p" client/core/handle.h | grep -oE '\bX\([a-z_0-9]+\)' | tr -d 'X()')
[ -n "$counters" ] || say 'client/core/handle.h has no LT_COUNTERS'
for c in $counters; do
	grep -qE "^\.(Va|Pq Va) (.* )?$c( |\$)" doc/man/leat_stats.3 || say "the counter $c is not in leat_stats(3)"
	sed -n '/^\/\* -* counters/,/^size_t leat_stats/p' include/leat.h | grep -qw "$c" ||
		say "the counter $c is not described in leat.h"
done

for doc in README.md doc/*.md doc/man/*.[1-8]; do
	[ -e "$doc" ] || continue
	grep -oE '\b(include|xdr|rpcrdma|server|client|examples|tests|scripts|doc)/[A-Za-z0-9_./-]+\.(c|h|x|md|sh|map|py|supp)\b' "$doc" |
		sort -u | while read -r f; do
		[ -e "$f" ] || echo "$f"
	done >"$list"
	while read -r f; do say "$doc names $f, which is not there"; done <"$list"
done

for f in tests/interop/*.sh; do
	[ "$f" = tests/interop/lib.sh ] || grep -qF "\`$f\`" doc/interop.md || say "$f is not in doc/interop.md"
done

# README's map: a line "    TOP/ WORDS", below it "      FOLDER/ WORDS"; of folders in these the words say "FOLDER/"
for folder in $(find rpcrdma tirpc server client -name '*.c' | sed 's|/[^/]*$||' | sort -u); do
	rest=${folder#*/}
	awk -v top="${folder%%/*}/" -v sub1="${rest%%/*}/" -v sub2="$([ "$rest" = "${rest%%/*}" ] || echo "${rest#*/}/")" '
		/^    [a-z]/ { on = $1 == top; in_sub = 0 }
		on && /^      [a-z]/ { in_sub = $1 == sub1; found = found || (in_sub && sub2 == "") }
		on && in_sub && sub2 != "" && index($0, sub2) { found = 1 }
		END { exit !found }' README.md || say "$folder is not in README.md's map of the tree"
done

[ "$bad" -ne 0 ] || echo 'check-doc: pages, maps and headers agree'
exit "$bad"
