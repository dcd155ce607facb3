#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# test_tour.sh - doc/tour.md and doc/design.md name files and functions; they are there
set -u
passed=0 failed=0
check() {
	if eval "$2"; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "$1"; fi
}
for doc in doc/tour.md doc/design.md; do
	# `folder/file.c:function`
	for ref in $(grep -oE '`[a-z0-9_]+/[a-z0-9_/]+\.[ch]:[a-z0-9_]+`' $doc | tr -d '`' | sort -u); do
		file=${ref%%:*} fn=${ref##*:}
		check "$doc: $fn is not in $file" "grep -qE '(^|[ *])$fn\\(' $file 2>/dev/null"
	done
	# `folder/file.c` and `folder/`
	for file in $(grep -oE '`(include|xdr|rpcrdma|server|client|tests|doc)/[A-Za-z0-9_/.]*[a-z]`' $doc | tr -d '`' | sort -u); do
		check "$doc: no $file" "[ -e $file ]"
	done
	# `function` alone: anywhere in the sources
	for fn in $(grep -oE '`[a-z][a-z0-9]*(_[a-z0-9]+)+(\(\))?`' $doc | tr -d '`()' | sort -u); do
		check "$doc: nothing called $fn" "grep -rqwE '$fn' include rpcrdma server client xdr"
	done
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
