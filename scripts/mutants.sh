#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# mutants.sh - break the code on purpose and see the named test fail
#
#   scripts/mutants.sh [PREFIX...]     all, or those whose name begins so
#   scripts/mutants.sh --tenth         one of ten, others each day
#
# The tree is copied once; each mutant of tests/mutants.txt is made, its test is built and run, the files are
# taken back. A test must pass without the mutant and fail (not: run out of time) with it.

set -eu
cd "$(dirname "$0")/.."
tree=$PWD
table() { awk -v mode="$1" -v name="${2:-}" -f "$tree/scripts/mutants.awk" "$tree/tests/mutants.txt"; }

tenth=''
if [ "${1:-}" = --tenth ]; then
	tenth=$(($(date +%s) / 86400 % 10))
	shift
	echo "mutants: number $tenth of each ten"
fi

work=$(mktemp -d "${TMPDIR:-/tmp}/leat-mutants.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT

passed=0 failed=0 known=' '
say() { printf '  %-8s %s\n' "$1" "$2"; }

# what there is to commit or committed, and what has been built, so that little is built again
if git rev-parse --git-dir >/dev/null 2>&1; then
	git ls-files -z -co --exclude-standard | tar -c --null -T - --ignore-failed-read 2>/dev/null | tar -x -C "$work"
else
	tar -c --exclude=./build . | tar -x -C "$work"
fi
mkdir -p "$work/build/obj"
if [ -d build/obj/default ]; then
	cp -a build/gen "$work/build/"
	cp -a build/obj/default "$work/build/obj/"
fi

build_and_run() { # TEST: 0 passes, 1 fails, 2 does not build, 3 no end
	(
		cd "$work"
		test=build/obj/default/tests/$1 needs=build/obj/default/tests/$1
		# a shell test drives the programs
		[ ! -e "tests/$1.sh" ] || test=tests/$1.sh needs='build/leat build/leatd'
		# shellcheck disable=SC2086
		env -u MAKEFLAGS -u MAKELEVEL make -s -j2 CC="${CC:-gcc}" $needs >build/mutant.log 2>&1 || exit 2
		rc=0
		timeout -k 5 60 "$test" >build/mutant.log 2>&1 </dev/null || rc=$?
		case $rc in
		0) exit 0 ;;
		124 | 137) exit 3 ;;
		*) exit 1 ;;
		esac
	)
}

restore() { # FILES
	for f in $1; do
		cp "$f" "$work/$f"
	done
}

wanted() {
	[ $# -gt 1 ] || return 0
	name=$1
	shift
	for prefix; do
		case $name in "$prefix"*) return 0 ;; esac
	done
	return 1
}

table list >"$work/list"
nth=0
while read -r name test files <&3; do
	nth=$((nth + 1))
	[ -z "$tenth" ] || [ $((nth % 10)) -eq "$tenth" ] || continue
	wanted "$name" "$@" || continue
	case $known in
	*" $test "*) ;;
	*)
		rc=0
		build_and_run "$test" || rc=$?
		if [ $rc -ne 0 ]; then
			say BAD "$name: $test does not pass without it: $(grep -m 1 -E 'error|\*\*\*|FAILED' "$work/build/mutant.log")"
			failed=$((failed + 1))
			continue
		fi
		known="$known$test "
		;;
	esac
	if ! (cd "$work" && table apply "$name") 2>"$work/said"; then
		say BAD "$(cat "$work/said")"
		failed=$((failed + 1))
		restore "$files"
		continue
	fi
	rc=0
	build_and_run "$test" || rc=$?
	case $rc in
	1)
		say killed "$name by $test"
		passed=$((passed + 1))
		;;
	0) say LIVES "$name: $test passes with it"; failed=$((failed + 1)) ;;
	2) say BAD "$name: does not build: $(grep -m 1 error "$work/build/mutant.log")"; failed=$((failed + 1)) ;;
	3)
		# a test that hangs notices as well, but a slow machine must not look like a mutant found
		say LIVES "$name: $test does not end"
		failed=$((failed + 1))
		;;
	esac
	restore "$files"
done 3<"$work/list"

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
