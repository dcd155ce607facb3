#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# interop.sh - run the tests against other implementations, and add up
#
#   interop.sh [NAME...]     all of tests/interop/*.sh, or those named (leat_leatd, long/tumble)
#   interop.sh --long        all of tests/interop/long/*.sh
#
# Most boot the virtual machine of tests/interop/vm once. INTEROP_JOBS of them run side by side (3, since
# each waits for a part of its time; fewer where there is not memory for so many machines of 3 GiB), and what
# each has said is shown when it has ended. A test that cannot run here says SKIP and why. Where all were
# run, the checklist of doc/protocol.md is held against what came of it. Exit status 1 if a check failed or
# a test did not come to its end; 77 if none could run.

set -u
cd "$(dirname "$0")/.." || exit

logs=${O:-build/obj/default}/log-interop

# one script, from a process of its own: LOG.log is what it said, LOG.sum "passed failed skipped"
if [ "${1:-}" = --one ]; then
	name=$2 log=$logs/interop_$(echo "$2" | tr / _)
	start=$(date +%s) status=0
	echo '0 1 0' >"$log.sum"
	sh "tests/interop/$name.sh" >"$log.log" 2>&1 || status=$?
	sum=$(sed -n 's/.*: \([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p' "$log.log" | tail -n 1)
	if [ "$status" -eq 77 ]; then
		echo '0 0 1' >"$log.sum"
	elif [ -z "$sum" ]; then
		echo "  FAIL  $name did not come to its end (status $status)" >>"$log.log"
	else
		echo "$sum 0" >"$log.sum"
	fi
	end=$(date +%s)
	# of the processors: what does not depend on the scripts beside it
	times >"$log.times"
	used=$(awk 'NR == 2 { split($1, u, /[ms]/); split($2, s, /[ms]/); printf "%d", 60 * (u[1] + s[1]) + u[2] + s[2] }' "$log.times")
	rm -f "$log.times"
	# in one piece, so that two of them do not mix
	printf 'interop: %s\n%s\n          %s s, %s s of processor time\n' "$name" "$(cat "$log.log")" "$((end - start))" "$used"
	exit 0
fi

dir='' whole=''
[ "${1:-}" != --long ] || { dir=long/; shift; }
if [ $# -eq 0 ]; then
	whole=1
	# those that take longest first, so that none is left to run alone at the end: these, then the largest
	[ -n "$dir" ] || set -- leat_leatd objects linux_client_names memfds
	for script in $(ls -S "tests/interop/$dir"*.sh); do
		name=$dir$(basename "$script" .sh)
		case " lib $* " in
		*" $name "*) ;;
		*) set -- "$@" "$name" ;;
		esac
	done
fi

jobs=$(awk '/^MemAvailable/ { n = int(($2 / 1048576 - 1) / 3); print (n < 1 ? 1 : n > 3 ? 3 : n) }' /proc/meminfo)
mkdir -p "$logs"
rm -f "$logs"/*.sum
printf '%s\n' "$@" | xargs -P "${INTEROP_JOBS:-$jobs}" -n 1 sh scripts/interop.sh --one

cat "$logs"/*.sum | awk '{ p += $1; f += $2; s += $3 }
	END { printf "interop: %d passed, %d failed, %d scripts, %d skipped\n", p, f, NR - s, s; exit f > 0 }'
failed=$?
[ -z "$whole" ] || [ -n "$dir" ] || scripts/check-protocol.sh -i "$logs" || exit 1
[ "$failed" -eq 0 ] || exit 1
[ "$(cat "$logs"/*.sum | grep -vc '^0 0 1$')" -gt 0 ] || exit 77
