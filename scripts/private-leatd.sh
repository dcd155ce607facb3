# shellcheck shell=sh disable=SC2154
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# private-leatd.sh - a leatd of one's own, for scripts that source this
#
#   leatd_start DIR        serve DIR as /demo; sets $local_url and $tcp_url; or says why not, fails
#   leatd_stop             end it and wait; harmless when none runs
#
# Needs $work, a directory for the socket and the log, and $LEATD. Nothing is asked twice or slept
# for: the server's own words come through a pipe until it says that it is ready.

leatd_pid='' leatd_log=''

leatd_start() {
	mkfifo "$work/words"
	# both ends, so that neither opening nor a server that dies can block us
	exec 3<>"$work/words"
	{
		# shellcheck disable=SC2086
		"$LEATD" ${leatd_options-} --state-dir "$work/state" --export "/demo=$1,rw,no_root_squash" \
			--listen "local://$work/leatd.sock" --listen tcp://127.0.0.1:0 &
		echo "pid $!"
		rc=0
		wait $! || rc=$?
		echo "ended $rc"
	} >"$work/words" 2>&1 3<&- &
	leatd_shell=$!
	local_url='' tcp_url=''
	while read -r line <&3; do
		case $line in
		'pid '*) leatd_pid=${line#pid } ;;
		'leatd: listening on local:'*) local_url=${line#leatd: listening on }/demo ;;
		'leatd: listening on tcp:'*) tcp_url=${line#leatd: listening on }/demo ;;
		'leatd: ready'*) break ;;
		'ended '*)
			leatd_pid=''
			echo "leatd ended with status ${line#ended }" >&2
			return 1
			;;
		*) echo "$line" >&2 ;;
		esac
	done
	# what it says from now on
	cat <&3 >"$work/leatd.log" &
	leatd_log=$!
	exec 3<&-
	if [ -z "$local_url" ] || [ -z "$tcp_url" ]; then
		echo 'leatd did not say where it listens' >&2
		return 1
	fi
}

leatd_stop() {
	if [ -n "$leatd_pid" ]; then
		kill "$leatd_pid" 2>/dev/null || :
		wait "$leatd_shell" 2>/dev/null || :
		leatd_pid=''
	fi
	if [ -n "$leatd_log" ]; then
		kill "$leatd_log" 2>/dev/null || :
		wait "$leatd_log" 2>/dev/null || :
		leatd_log=''
	fi
}

# json NAME - the value of one member of the flat JSON object on standard input
json() { sed -n 's/.*"'"$1"'":"\{0,1\}\([^,"}]*\).*/\1/p'; }
