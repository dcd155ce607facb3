#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# test_layers.sh - scripts/layers.awk finds what passes through a wall, and what scripts/layers.txt says in vain
set -u
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0

# finds WHAT: of the rules in $work/rules and the files in $work
finds() {
	got=$(cd "$work" && find rpcrdma tests -name '*.[ch]' | sort | xargs awk -f "$scripts/includes.awk" |
		awk -f "$scripts/layers.awk" rules -)
	if [ "$got" = "$1" ]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "'$got', expected '$1'"
	fi
}

scripts=$PWD/scripts
mkdir -p "$work/rpcrdma/low" "$work/rpcrdma/high" "$work/tests/flow"
echo '#include "low.h"' >"$work/rpcrdma/high/high.c"
echo '#include <low.h>' >"$work/rpcrdma/low/low.c"
: >"$work/rpcrdma/low/low.h"
: >"$work/rpcrdma/high/high.h"

printf '%s\n' 'folder rpcrdma/low:' 'folder rpcrdma/high: low' >"$work/rules"
finds ''
printf '%s\n' 'folder rpcrdma/low:' 'folder rpcrdma/high:' >"$work/rules"
finds 'layers: rpcrdma/high/high.c includes low.h, which is behind a wall'
echo 'except rpcrdma/high/high.c low.h' >>"$work/rules"
finds ''
echo 'except rpcrdma/high/high.c other.h' >>"$work/rules"
finds 'layers: rpcrdma/high/high.c does not include other.h: no exception is needed'
printf '%s\n' 'folder rpcrdma/high: low' 'folder rpcrdma/low:' >"$work/rules"
finds 'layers: rpcrdma/high may include low, which does not stand above it'
printf '%s\n' 'folder rpcrdma/low:' 'folder rpcrdma/middle: low' 'folder rpcrdma/high: low' >"$work/rules"
finds 'layers: rpcrdma/middle includes nothing of rpcrdma/low: take that from scripts/layers.txt'
printf '%s\n' 'folder rpcrdma/low:' >"$work/rules"
finds 'layers: rpcrdma/high/high.c: rpcrdma/high/ is not in scripts/layers.txt'

printf '%s\n' '#include "low.h"' '#include "own.h"' >"$work/tests/flow/test_x.c"
: >"$work/tests/flow/own.h"
printf '%s\n' 'folder rpcrdma/low:' 'folder rpcrdma/high: low' 'folder tests/flow:' >"$work/rules"
finds 'layers: tests/flow/test_x.c includes low.h, which is behind a wall'
sed -i 's,tests/flow:,& rpcrdma/low,' "$work/rules"
finds ''
echo '#include "rpcrdma/high/high.c"' >>"$work/tests/flow/test_x.c"
finds 'layers: tests/flow/test_x.c includes high.c, which is behind a wall'

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
