#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# map.sh - the folders of the tree, and how many #includes lead from one to another
#
#   scripts/map.sh          as text
#   scripts/map.sh --dot    for Graphviz: exceptions of layers.txt in red

set -u
cd "$(dirname "$0")/.." || exit
kind=text
[ "${1:-}" != --dot ] || kind="dot"

# words are file names without blanks
# shellcheck disable=SC2046
{
	wc -l $(find rpcrdma tirpc server client -name '*.[ch]' | sort) | sed '$d' | sed 's/^/file /'
	sed -n '/^except /p' scripts/layers.txt
	awk -f scripts/includes.awk $(find rpcrdma tirpc server client -name '*.[ch]' | sort) | sed 's/^/include /'
} | awk -v kind="$kind" '
	$1 == "file" {
		folder = $3
		sub(/\/[^\/]*$/, "", folder)
		if (!files[folder]++)
			order[++n] = folder
		lines[folder] += $2
	}
	$1 == "except" { except[$2, $3] = 1 }
	$1 == "include" && $2 != $3 {
		if (except[$4, $5]) red[$2, $3]++
		count[$2, $3]++
	}
	function short(folder) { sub(/^[^\/]*\//, "", folder); return folder }
	END {
		if (kind == "dot")
			print "digraph leat {\n\trankdir=BT; node [shape=box]; compound=true;"
		for (i = 1; i <= n; i++) {
			from = order[i]
			top = from
			sub(/\/.*/, "", top)
			if (kind == "dot") {
				if (top != before)
					printf "%s\tsubgraph cluster_%s { label=\"%s\";\n", before == "" ? "" : "\t}\n", top, top
				printf "\t\t\"%s\" [label=\"%s\\n%d files, %d lines\"];\n", from, short(from), files[from], lines[from]
			} else {
				if (top != before)
					printf "%s%s/\n", before == "" ? "" : "\n", top
				printf "  %-14s %3d files %6d lines", short(from), files[from], lines[from]
				sep = "   -> "
				for (j = 1; j <= n; j++)
					if (count[from, order[j]]) {
						printf "%s%s %d", sep, short(order[j]), count[from, order[j]]
						if (red[from, order[j]])
							printf " (%d by exception)", red[from, order[j]]
						sep = ", "
					}
				print ""
			}
			before = top
		}
		if (kind == "dot") {
			print "\t}"
			for (k in count) {
				split(k, f, SUBSEP)
				printf "\t\"%s\" -> \"%s\" [label=%d%s];\n", f[1], f[2], count[k],
					red[k] == count[k] ? ", color=red" : ""
			}
			print "}"
		}
	}'
