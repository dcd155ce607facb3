# shellcheck shell=sh disable=SC2154
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# private-volume.sh - a striped volume of one's own, for scripts that source this
#
#   volume_start DIR N [LINE...]   makes DIR and a volume there on N stripe servers, whose sections get the LINEs; starts
#                                  their leatds and the manager; sets $volume_url, $volume_map, $volume_key; or fails
#                                  With $volume_tcp, an address of this machine: over TCP, at its ports 30000 to 30000 + N
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
		rc=0
		wait $! || rc=$?
		echo "ended $rc"
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

# volume_at NAME PORT: the URL of a leatd
volume_at() {
	if [ -n "${volume_tcp:-}" ]; then
		echo "tcp://$volume_tcp:$((30000 + $2))"
	else
		echo "local://$volume_dir.$1"
	fi
}

volume_start() {
	volume_dir=$1 volume_n=$2
	shift 2
	servers='' i=1
	while [ "$i" -le "$volume_n" ]; do
		servers=$servers${servers:+,}$(volume_at "server-$i" "$i")
		i=$((i + 1))
	done
	"$LEAT" volume create "$volume_dir" --name vol --servers "$servers" --listen "$(volume_at manager 0)" \
		${volume_tcp:+--clients "$volume_tcp"} >"$volume_dir.conf" || return 1
	i=1
	while [ "$i" -le "$volume_n" ]; do
		mkdir -p -m 700 "$volume_dir/stripes-$i" # there is one already, unless its server has an address of a network
		for line in "$@"; do
			echo "$line" >>"$volume_dir/server-$i.conf"
		done
		volume_leatd "$volume_dir/server-$i.conf" || return 1
		i=$((i + 1))
	done
	[ -z "${volume_tcp:-}" ] || echo 'no_root_squash = yes' >>"$volume_dir/manager.conf"
	volume_leatd "$volume_dir/manager.conf" || return 1
	volume_url=$(volume_at manager 0)/vol volume_map=$volume_dir/map volume_key=$volume_dir/key
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
