#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# interop.sh - run the tests against other implementations, and add up
#
#   interop.sh [NAME...]     all of tests/interop/*.sh, or those named (leat_leatd, long/tumble)
#   interop.sh --long        all of tests/interop/long/*.sh
#
# Most boot the virtual machine of tests/interop/vm once, one after the other. A test that cannot run
# here says SKIP and why. Where all were run, the checklist of doc/protocol.md is held against what
# came of it. Exit status 1 if a check failed or a test did not come to its end; 77 if none could run.

set -u
cd "$(dirname "$0")/.." || exit

dir='' whole=''
[ "${1:-}" != --long ] || { dir=long/; shift; }
if [ $# -eq 0 ]; then
	whole=1
	for script in "tests/interop/$dir"*.sh; do
		name=$dir$(basename "$script" .sh)
		[ "$name" = lib ] || set -- "$@" "$name"
	done
fi

logs=${O:-build/obj/default}/log-interop
mkdir -p "$logs"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
passed=0 failed=0 ran=0 skipped=0
for name in "$@"; do
	echo "interop: $name"
	kept=$logs/interop_$(echo "$name" | tr / _).sum
	echo '0 1 0' >"$kept"
	start=$(date +%s)
	# the status goes through the file: a pipe would lose it
	{
		sh "tests/interop/$name.sh" 2>&1 || echo "status $?"
	} | tee "$log" | grep -v '^status '
	seconds=$(($(date +%s) - start))
	status=$(sed -n 's/^status //p' "$log")
	sum=$(sed -n 's/.*: \([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p' "$log" | tail -n 1)
	if [ "${status:-0}" -eq 77 ]; then
		skipped=$((skipped + 1))
		echo '0 0 1' >"$kept"
		continue
	fi
	ran=$((ran + 1))
	if [ -z "$sum" ]; then
		echo "  FAIL  $name did not come to its end (status ${status:-0})"
		failed=$((failed + 1))
		continue
	fi
	echo "          $seconds s"
	echo "$sum 0" >"$kept"
	passed=$((passed + ${sum% *}))
	failed=$((failed + ${sum#* }))
done

echo "interop: $passed passed, $failed failed, $ran scripts, $skipped skipped"
[ -z "$whole" ] || [ -n "$dir" ] || scripts/check-protocol.sh -i "$logs" || exit 1
[ "$failed" -eq 0 ] || exit 1
[ "$ran" -gt 0 ] || exit 77
