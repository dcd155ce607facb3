# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# layers.awk - are the lines of includes.awk (second file) as layers.txt (first file) allows?

function wrong(text) { print "layers: " text; bad = 1 }

FNR == NR && $1 == "folder" {
	from = substr($2, 1, length($2) - 1)
	known[from] = 1
	top = from
	sub(/\/.*/, "", top)
	for (i = 3; i <= NF; i++) {
		to = known[$i] ? $i : top "/" $i
		if (!known[to])
			wrong(from " may include " $i ", which does not stand above it")
		may[from, to] = unused[from, to] = 1
	}
}
FNR == NR && $1 == "except" { except[$2, $3] = 1 }
FNR == NR { next }

!known[$1] { wrong($3 ": " $1 "/ is not in scripts/layers.txt"); next }
$1 == $2 { next }
may[$1, $2] { delete unused[$1, $2]; next }
except[$3, $4] { except[$3, $4] = 2; next }
{ wrong($3 " includes " $4 ", which is behind a wall") }

END {
	for (k in unused) {
		split(k, part, SUBSEP)
		wrong(part[1] " includes nothing of " part[2] ": take that from scripts/layers.txt")
	}
	for (k in except) {
		split(k, part, SUBSEP)
		if (except[k] == 1)
			wrong(part[1] " does not include " part[2] ": no exception is needed")
	}
	exit bad
}
