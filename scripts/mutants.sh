#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# mutants.sh - break the code on purpose and see the named test fail
#
#   scripts/mutants.sh [-j JOBS] [--tenth[=N]] [PREFIX...]
#
#   PREFIX       only the mutants whose names begin so
#   --tenth      only number N of each ten: by default the number of the day, so that ten days run all of them
#   -j           how many tests run at once, each in its own copy of the tree (1)
#
# Operation: A job copies the tree with what has been built of it. For each test it checks that the test passes, then
# it applies one mutant after the other (tests/mutants.txt), builds the test, runs it, and restores the files. So only
# the files of a mutant are compiled again. Compiler and flags are those of the last build, without -Werror.
#
# A mutant is killed if its test fails. The mutant lives if the test passes, and also if it does not end in time: a
# slow machine must not look like a test that detects something.
#
# Errors: the exit status is 1 if a mutant lives, does not fit the code or does not build, and if a test fails without.

set -eu
cd "$(dirname "$0")/.."
table() { awk -v mode="$1" -v name="${2:-}" -f scripts/mutants.awk tests/mutants.txt; }

usage() {
	echo 'usage: scripts/mutants.sh [-j JOBS] [--tenth[=N]] [PREFIX...]' >&2
	exit 2
}

jobs=1 tenth=''
while [ $# -gt 0 ]; do
	case $1 in
	-j) jobs=${2:?} && shift ;;
	--tenth) tenth=$(($(date +%s) / 86400 % 10)) ;;
	--tenth=[0-9]) tenth=${1#*=} ;;
	-*) usage ;;
	*) break ;;
	esac
	shift
done

work=$(mktemp -d "${TMPDIR:-/tmp}/leat-mutants.XXXXXX")
chmod 755 "$work" # tests run as other users, which need access
trap 'rm -rf "$work"' EXIT
trap 'end_jobs 130' INT
trap 'end_jobs 143' TERM

# A job runs make and tests, which lead process groups of their own: all of them end before the copies are removed.
end_tree() { # PID: it first, so that it starts nothing more
	# shellcheck disable=SC2046
	set -- "$1" $(ps -o pid= --ppid "$1")
	kill -KILL -- "-$1" 2>/dev/null || kill -KILL "$1" 2>/dev/null || :
	shift
	for pid; do
		end_tree "$pid"
	done
}
pids=''
end_jobs() { # STATUS
	trap '' INT TERM
	for job in $pids; do
		end_tree "$job"
	done
	wait
	exit "$1"
}

say() { printf '  %-8s %s\n' "$1" "$2"; }

wanted() {
	[ $# -gt 1 ] || return 0
	name=$1
	shift
	for prefix; do
		case $name in "$prefix"*) return 0 ;; esac
	done
	return 1
}

# ---- what to run: a line for each test, with its mutants; the longest lines first --------------------

table list | awk -v tenth="$tenth" 'tenth == "" || NR % 10 == tenth' >"$work/list"
while read -r name test _; do
	wanted "$name" "$@" && echo "$test $name"
done <"$work/list" | awk '{ n[$1]++; names[$1] = names[$1] " " $2 }
	END { for (t in n) print n[t], t names[t] }' | sort -k 1,1nr -k 2 | cut -d ' ' -f 2- >"$work/queue"
[ -z "$tenth" ] || echo "mutants: number $tenth of each ten:$(
	tr ' ' '\n' <"$work/queue" | sed -n 's/^\([0-9][0-9a-z]*\)-.*/\1/p' | sort -n | tr '\n' ' ' | sed 's/^/ /; s/ $//')"

# ---- a copy of the tree ------------------------------------------------------------------------------

copy_tree() { # DIR
	mkdir -p "$1/build/obj" "$1/tmp"
	chmod 755 "$1/tmp"
	if git rev-parse --git-dir >/dev/null 2>&1; then
		git ls-files -z -co --exclude-standard | tar -c --null -T - --ignore-failed-read 2>/dev/null | tar -x -C "$1"
	else
		tar -c --exclude=./build . | tar -x -C "$1"
	fi
	[ -d build/obj/default ] || return 0
	cp -a build/gen "$1/build/"
	cp -a build/obj/default "$1/build/obj/"
	for f in build/leat build/leatd build/leat-dump; do
		[ ! -e $f ] || cp -a $f "$1/build/"
	done
	# The objects stay valid without -Werror: a mutant may leave a variable unused.
	sed 's/ -Werror / /' build/obj/default/flags >"$1/build/obj/default/flags"
	touch -r build/obj/default/flags "$1/build/obj/default/flags"
}
[ -n "${CC:-}" ] || [ ! -e build/obj/default/flags ] || CC=$(sed 's/ -std=.*//' build/obj/default/flags)

# ---- one test ----------------------------------------------------------------------------------------

build_and_run() ( # TEST: 0 passes, 1 fails, 2 does not build, 3 no end
	program=build/obj/default/tests/$1
	needs=$program
	# some tests start leatd, and a shell test drives all programs
	! grep -q 'build/leatd"' "tests/$1.c" 2>/dev/null || needs="$program build/leatd"
	[ ! -e "tests/$1.sh" ] || program=tests/$1.sh needs='build/leat build/leatd build/leat-dump'
	# shellcheck disable=SC2086
	env -u MAKEFLAGS -u MAKELEVEL make -s CC="${CC:-gcc}" $needs >build/mutant.log 2>&1 || exit 2
	rc=0
	# a test ends with its first failure: what comes after it may find memory in disorder, and not end
	CMOCKA_TEST_ABORT=1 TMPDIR=$PWD/tmp timeout -k 5 120 "$program" >build/mutant.log 2>&1 </dev/null &
	wait $! 2>/dev/null || rc=$?
	# timeout leads a process group: end what a test that failed has left behind, in other groups too
	kill -KILL -- -$! 2>/dev/null || :
	# shellcheck disable=SC2046
	kill -KILL $(grep -lzxsF "TMPDIR=$PWD/tmp" /proc/[0-9]*/environ | cut -d / -f 3) 2>/dev/null || :
	case $rc in
	0) exit 0 ;;
	124 | 137) exit 3 ;;
	*) exit 1 ;;
	esac
) 3<&- 4>&- # of run_job: a process that a test leaves behind would keep the lock

run_mutant() { # NAME TEST, in the copy; Return: killed?
	files=$(awk -v name="$1" '$1 == name { $1 = $2 = ""; print }' "$work/list")
	for f in $files; do
		cp -p "$f" "$f.orig"
	done
	rc=4
	if table apply "$1" 2>build/said; then
		rc=0
		build_and_run "$2" || rc=$?
	fi
	for f in $files; do
		cp "$f.orig" "$f" # newer than the object
	done
	case $rc in
	0) say LIVES "$1: $2 passes with it" ;;
	1) say killed "$1 by $2" ;;
	2) say BAD "$1: does not build: $(grep -m 1 error build/mutant.log)" ;;
	3) say LIVES "$1: $2 does not end" ;;
	4) say BAD "$(cat build/said)" ;;
	esac
	[ $rc -eq 1 ]
}

run_test() { # TEST NAME...
	test=$1 sound=1
	shift
	build_and_run "$test" || sound=0
	for name; do
		if [ $sound -eq 0 ]; then
			say BAD "$name: $test does not pass without it: $(grep -m 1 -E 'error|\*\*\*|FAILED' build/mutant.log)"
			failed=$((failed + 1))
		elif run_mutant "$name" "$test"; then
			passed=$((passed + 1))
		else
			failed=$((failed + 1))
		fi
	done
}

# A line of the queue (fd 3, of which all jobs share the offset); Return: was there one?
next_line() {
	flock 4
	read -r line <&3 || line=''
	flock -u 4
	[ -n "$line" ]
}

run_job() { # NUMBER
	copy_tree "$work/$1"
	cd "$work/$1"
	passed=0 failed=0
	exec 4>"$work/lock"
	while next_line; do
		# shellcheck disable=SC2086
		run_test $line
	done
	echo "$passed $failed" >"$work/sum.$1"
}

exec 3<"$work/queue"
i=0
while [ $((i += 1)) -le "$jobs" ]; do
	run_job $i &
	pids="$pids $!"
done
wait

[ "$(cat "$work"/sum.* | wc -l)" -eq "$jobs" ] || exit 1
awk '{ p += $1; f += $2 } END { printf "%d passed, %d failed\n", p, f; exit f > 0 }' "$work"/sum.*
