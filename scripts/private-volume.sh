# shellcheck shell=sh disable=SC2154
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# private-volume.sh - a striped volume of one's own, for scripts that source this
#
#   volume_start DIR N [LINE...]   makes DIR and a volume there on N stripe servers, whose sections get the LINEs; starts
#                                  their leatds and the manager; sets $volume_url, $volume_map, $volume_key; or fails
#   volume_stop                    ends them and waits; harmless when none run
#
# Needs $LEAT and $LEATD. The volume is called vol. Nothing is slept for: each leatd's own words come through a pipe until
# it says that it is ready.

volume_pids='' volume_shells='' volume_cats=''

# volume_leatd CONFIG: the log is CONFIG.log
volume_leatd() {
	mkfifo "$1.words"
	exec 4<>"$1.words" # both ends, so that neither opening nor a server that dies can block us
	{
		"$LEATD" --config "$1" &
		echo "pid $!"
		wait $!
		echo "ended $?"
	} >"$1.words" 2>&1 4<&- &
	volume_shells="$volume_shells $!"
	while read -r line <&4; do
		case $line in
		'pid '*) volume_pids="$volume_pids ${line#pid }" ;;
		'leatd: ready'*) break ;;
		'ended '*)
			echo "leatd ended with status ${line#ended }" >&2
			exec 4<&-
			return 1
			;;
		'leatd: listening'* | 'leatd: memory'* | 'leatd: requests'* | 'leatd: export'* | 'leatd: stripes'* | 'leatd: volume'*) ;;
		*) echo "$line" >&2 ;;
		esac
	done
	cat <&4 >"$1.log" &
	volume_cats="$volume_cats $!"
	exec 4<&-
}

volume_start() {
	volume_dir=$1 volume_n=$2
	shift 2
	servers='' i=1
	while [ "$i" -le "$volume_n" ]; do
		servers=$servers${servers:+,}local://$volume_dir.server-$i
		i=$((i + 1))
	done
	"$LEAT" volume create "$volume_dir" --name vol --servers "$servers" --listen "local://$volume_dir.manager" \
		>"$volume_dir.conf" || return 1
	i=1
	while [ "$i" -le "$volume_n" ]; do
		for line in "$@"; do
			echo "$line" >>"$volume_dir/server-$i.conf"
		done
		volume_leatd "$volume_dir/server-$i.conf" || return 1
		i=$((i + 1))
	done
	volume_leatd "$volume_dir/manager.conf" || return 1
	volume_url=local://$volume_dir.manager/vol volume_map=$volume_dir/map volume_key=$volume_dir/key
}

volume_stop() {
	for pid in $volume_pids; do
		kill "$pid" 2>/dev/null || :
	done
	for pid in $volume_shells; do
		wait "$pid" 2>/dev/null || :
	done
	for pid in $volume_cats; do
		kill "$pid" 2>/dev/null || :
		wait "$pid" 2>/dev/null || :
	done
	volume_pids='' volume_shells='' volume_cats=''
}
