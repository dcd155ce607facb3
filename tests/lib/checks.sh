# shellcheck shell=sh disable=SC2154
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# checks.sh - what shell tests check with, for scripts that source this
#
#   fail WORDS...                     the test ends here
#   ok COMMAND...                     succeeds, and says nothing on stderr; its output is in $work/out
#   bad STATUS PATTERN COMMAND...     fails with that status and words that match: one line, but for
#                                     status 2, which usage follows
#   leatd_run COMMAND...              a leatd in the background, which has said that it is ready; sets
#                                     $pid and, where it listens to TCP, $port
#   cli_start                         sets $work, $export_dir in it, and starts a private leatd that exports
#                                     it (private-leatd.sh); cli_finish ends and removes all of it on exit
#   sleeps_in PID PATTERN             the process sleeps in a kernel function whose name matches; where the
#                                     kernel tells no names: it sleeps
#
# Needs $work, a directory of one's own, except for cli_start. $checks counts.

checks=0

fail() {
	echo "FAILED after $checks checks: $*"
	exit 1
}

ok() {
	"$@" >"$work/out" 2>"$work/err" || fail "$* -> $?: $(cat "$work/err")"
	[ ! -s "$work/err" ] || fail "$* said: $(cat "$work/err")"
	checks=$((checks + 1))
}

bad() {
	status=$1 pattern=$2
	shift 2
	rc=0
	"$@" >"$work/out" 2>"$work/err" || rc=$?
	[ "$rc" -eq "$status" ] || fail "$* -> $rc instead of $status: $(cat "$work/err")"
	[ "$status" -eq 2 ] || [ "$(wc -l <"$work/err")" -eq 1 ] ||
		fail "$*: not one line: $(cat "$work/err")"
	grep -qE -e "$pattern" "$work/err" || fail "$* said: $(cat "$work/err")"
	checks=$((checks + 1))
}

sleeps_in() {
	in=$(cat "/proc/$1/wchan" 2>/dev/null) || return 1
	case $in in
	'' | 0) # it runs, or the kernel does not show it: then it does not show it of this script's parent either
		in=$(cat "/proc/$PPID/wchan" 2>/dev/null) || in=0
		{ [ -z "$in" ] || [ "$in" = 0 ]; } && grep -q '^State:.S' "/proc/$1/status"
		;;
	*) echo "$in" | grep -qE -e "$2" ;;
	esac
}

leatd_run() {
	rm -f "$work/pipe"
	mkfifo "$work/pipe"
	"$@" >"$work/pipe" 2>"$work/log" &
	pid=$!
	ready=
	while read -r line; do
		case $line in
		*'listening on tcp:'*) port=${line##*:} ;;
		*ready*)
			ready=1
			break
			;;
		esac
	done <"$work/pipe"
	[ -n "$ready" ] || fail "leatd did not start: $(cat "$work/log")"
}

cli_finish() {
	leatd_stop
	rm -rf "$work"
}

cli_start() {
	: "${LEAT:=build/leat}" "${LEATD:=build/leatd}"
	. scripts/private-leatd.sh
	work=$(mktemp -d)
	trap cli_finish EXIT
	umask 022
	export_dir=$work/export
	mkdir "$export_dir"
	leatd_start "$export_dir" || exit 1
}
