#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# abi.sh - compares the binary interfaces of the libraries with the lists in tests/abi
#
#   abi.sh                       lists the differences; exit status 1 if there are any
#   abi.sh accept                writes new lists, unless a difference is incompatible
#   abi.sh accept --unreleased   writes new lists in any case: no release has what became incompatible
#
# A list has a line for each exported symbol with its version node, each structure with its size, each member with
# offset and size, each function with its types, and each constant. The rule is at the head of include/leat.map.
# Types come from the debug information of a file that includes the headers; it is the same for every compiler.
# Exit status 77: not on x86-64.
# From the Makefile: CC, and INC, the -I options of the tree.

set -u
: "${CC:=gcc}" "${B:=build}"
: "${INC:=-Iinclude -I$B/gen -isystem /usr/include/tirpc}"
# The library allocates these, or a function takes their size, and programs neither embed nor copy them.
grows='rpcrdma_req rpcrdma_peer rpcrdma_buf rpcrdma_task rpcrdma_stats rpcrdma_pool_stats rpcrdma_clnt_info
	leat_dirent leat_where leat_where_kind leat_where_state leat_trace leat_trace_piece LEAT_WHERE_PARTS'
grows=$(echo "$grows" | tr -s '[:space:]' ' ')
mode=${1:-check} bad=0 lines=0
dir=$(mktemp -d) || exit
trap 'rm -rf "$dir"' EXIT

symbols() { # LIBRARY
	readelf -W -d "$1" | sed -n 's/.*Library soname: \[\(.*\)\]/soname \1/p'
	readelf -W --dyn-syms "$1" | awk '$5 == "GLOBAL" && $7 != "UND" && $7 != "ABS" && sub(/@@?/, " ", $8) { print "symbol", $8 }' |
		LC_ALL=C sort
}

types() { # PREFIX HEADER...
	prefix=$1
	shift
	for h in "$@"; do echo "#include \"${h#include/}\""; done >"$dir/all.c"
	# "ccache gcc" is one, too, and INC is a list
	# shellcheck disable=SC2086
	$CC -std=gnu17 -D_GNU_SOURCE -g -gdwarf-4 -fno-eliminate-unused-debug-types $INC -c "$dir/all.c" -o "$dir/all.o" || exit
	readelf -W --debug-dump=info "$dir/all.o" | awk -v prefix="$prefix" -f scripts/abi_types.awk
	# shellcheck disable=SC2086
	$CC -std=gnu17 -D_GNU_SOURCE $INC -E -dM "$dir/all.c" | LC_ALL=C sort |
		awk -v p="$(echo "$prefix" | tr a-z A-Z)_" 'NF > 2 && index($2, p) == 1 && $2 !~ /\(|_VERSION_/ {
			$1 = "macro"
			print
		}'
}

functions() { # PREFIX HEADER...: their types, without the names of parameters
	prefix=$1
	shift
	cat "$@" | awk -v p="$prefix" '
		/^#/ || macro { macro = /\\$/; next }
		{ text = text " " $0 }
		END {
			while (match(text, /\/\*([^*]|\*+[^*\/])*\*+\//))
				text = substr(text, 1, RSTART - 1) " " substr(text, RSTART + RLENGTH)
			gsub(/[ \t]+/, " ", text)
			gsub(/static inline [^{]*\{[^}]*\}/, ";", text)
			n = split(text, part, /[;{}]/)
			for (i = 1; i <= n; i++)
				if (part[i] !~ /static|typedef/ && match(part[i], "[ *]" p "_[a-z0-9_]+\\(")) {
					name = substr(part[i], RSTART + 1, RLENGTH - 2)
					while (match(part[i], /[ *][a-z0-9_]+(\[[^]]*\])?[,)]/)) {
						rest = substr(part[i], RSTART + 1)
						sub(/^[a-z0-9_]+/, "", rest)
						part[i] = substr(part[i], 1, RSTART) rest
					}
					gsub(/ +/, " ", part[i])
					gsub(/ ,/, ",", part[i])
					gsub(/ \)/, ")", part[i])
					print "function", name part[i]
				}
		}' | LC_ALL=C sort
}

list() { # LIBRARY
	echo "# the binary interface of lib$1.so, written by scripts/abi.sh accept"
	symbols "$B/lib$1.so"
	# words are file names without blanks
	# shellcheck disable=SC2046
	case $1 in
	rpcrdma) set -- rpcrdma $(ls include/rpcrdma*.h | grep -v _tirpc) ;;
	rpcrdma_tirpc) set -- rpcrdma include/rpcrdma_tirpc.h ;;
	*) set -- "$1" $(ls include/"$1"*.h) ;;
	esac
	functions "$@"
	types "$@"
}

case $mode in check | accept) ;; *) echo 'usage: abi.sh [accept [--unreleased]]' >&2; exit 2 ;; esac
if ! readelf -h "$B/libleat.so" | grep -q 'Machine:.*X86-64'; then
	echo 'abi: the lists are those of x86-64: nothing compared'
	exit 77
fi
for lib in leat rpcrdma rpcrdma_tirpc; do
	kept=tests/abi/$lib.txt
	list "$lib" >"$dir/all" || exit
	if [ "$lib" = rpcrdma_tirpc ]; then # its header includes others of librpcrdma
		grep -vxF -f "$dir/rpcrdma" "$dir/all" >"$dir/$lib"
	else
		cp "$dir/all" "$dir/$lib"
	fi
	awk -v grows="$grows" -f scripts/abi_compare.awk "$kept" "$dir/$lib" >"$dir/diff" || exit
	sed "s/^/abi: lib$lib: /" "$dir/diff"
	lines=$((lines + $(grep -vc '^#' "$dir/$lib")))
	if [ "$mode" = check ]; then
		[ ! -s "$dir/diff" ] || bad=1
	elif [ "${2:-}" != --unreleased ] && grep -q '^incompatible' "$dir/diff"; then
		bad=1
	else
		cp "$dir/$lib" "$kept" || bad=1
	fi
done
case $mode$bad in
check0) echo "abi: $lines lines, all as in tests/abi" ;;
check1) echo 'abi: `make abi-accept` accepts what is new; what is incompatible needs a new SOVERSION' ;;
accept1) echo 'abi: a release with this needs a new SOVERSION (if no release has the old: make abi-accept UNRELEASED=1)' ;;
esac
exit "$bad"
