# shellcheck shell=sh disable=SC2034,SC2154
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# lib.sh - what the interoperation tests share; they source this from the top of the tree
#
# Each test is one boot of the machine of tests/interop/vm: `in_vm SECONDS` starts the script again in
# there, and what follows runs as root beside an RDMA device. Checks count and go on; `finish` tells
# how many, in the line that scripts/interop.sh adds up.

: "${LEAT:=build/leat}" "${LEATD:=build/leatd}"
addr=10.77.0.1
passed=0 failed=0

# in_vm SECONDS [DIR]: with DIR the script comes back to go on outside, with what the machine has left
# in $OUT there, and its last words in DIR/said
in_vm() {
	[ -z "${LEAT_VM:-}" ] || return 0
	for program in "$LEAT" "$LEATD"; do
		[ -x "$program" ] || { echo "no $program: make all"; exit 1; }
	done
	command="VERBOSE='${VERBOSE:-}' ${TUMBLE_COUNT:+TUMBLE_COUNT=$TUMBLE_COUNT} ${TUMBLE_SEED:+TUMBLE_SEED=$TUMBLE_SEED} ${NAMES_ROUNDS:+NAMES_ROUNDS=$NAMES_ROUNDS} ${SEED:+SEED=$SEED} ${XFS_MOMENTS:+XFS_MOMENTS=$XFS_MOMENTS} ${VARIANTS:+VARIANTS='$VARIANTS'}"
	command="$command LEAT='$LEAT' LEATD='$LEATD' O='${O:-build/obj/default}' sh '$0'"
	# those that look for races have processors that run at the same time
	case $0 in */long/*) turns= ;; *) turns=-s ;; esac
	[ $# -gt 1 ] || exec tests/interop/vm/vm $turns -t "$1" "$command"
	# the status goes through a file: a pipe would lose it
	{
		tests/interop/vm/vm $turns -t "$1" -o "$2" "$command"
		echo $? >"$2/status"
	} 2>&1 | tee "$2/said"
	status=$(cat "$2/status")
	[ "$status" -ne 77 ] || exit 77
	sum=$(sed -n 's/.*: \([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p' "$2/said" | tail -n 1)
	[ -n "$sum" ] || exit "$status"
	passed=${sum% *} failed=${sum#* }
}

# ok WHAT COMMAND...: one check
ok() {
	what=$1
	shift
	rc=0
	[ -z "${VERBOSE:-}" ] || section "  $what"
	"$@" >"$work/out" 2>&1 </dev/null || rc=$?
	if [ "$rc" -eq 0 ]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "  FAIL  $what: '$*' -> status $rc"
		tail -n 8 "$work/out" | cut -c 1-300 | sed 's/^/        | /'
	fi
}

# bad WHAT COMMAND...: it has to fail, and by itself
bad() {
	what=$1
	shift
	rc=0
	"$@" >"$work/out" 2>&1 </dev/null || rc=$?
	if [ "$rc" -gt 0 ] && [ "$rc" -lt 124 ]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "  FAIL  $what: '$*' -> status $rc"
	fi
}

# counted WHAT PROGRAM...: one that makes many checks itself, and tells in its last line how many
counted() {
	what=$1
	shift
	rc=0
	[ -z "${VERBOSE:-}" ] || section "  $what"
	"$@" >"$work/out" 2>&1 </dev/null || rc=$?
	sum=$(sed -n '$s/.*: \([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p' "$work/out")
	if [ -z "$sum" ] || { [ "$rc" -ne 0 ] && [ "${sum#* }" -eq 0 ]; }; then
		sum='0 1'
	fi
	passed=$((passed + ${sum% *}))
	failed=$((failed + ${sum#* }))
	if [ "${sum#* }" -gt 0 ]; then
		echo "  FAIL  $what: '$*' -> status $rc"
		head -n 12 "$work/out" | cut -c 1-300 | sed 's/^/        | /'
	fi
}

# said WHAT PATTERN: the last command that was checked did
said() {
	if grep -qi -e "$2" "$work/out"; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "  FAIL  $1: no '$2' in what was said:"
		tail -n 8 "$work/out" | cut -c 1-300 | sed 's/^/        | /'
	fi
}

# same WHAT A B
same() {
	if [ "$2" = "$3" ]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "  FAIL  $1: '$(echo "$2" | head -c 200)' is not '$(echo "$3" | head -c 200)'"
	fi
}

finish() {
	[ -n "${LEAT_VM:-}" ] || {
		echo "${0##*/}: $passed passed, $failed failed"
		[ "$failed" -eq 0 ]
		exit
	}
	leatd_stop
	if [ "$failed" -gt 0 ] && [ -e "$work/leatd.log" ]; then
		echo '  leatd said:'
		tail -n 20 "$work/leatd.log" | sed 's/^/        | /'
	fi
	oops=$(dmesg | grep -cE 'BUG:|Oops|WARNING: CPU|general protection' || :)
	[ "$oops" -eq 0 ] || dmesg | grep -E -A 12 'BUG:|Oops|WARNING: CPU|general protection' | head -n 40
	same 'complaints of the kernel' "$oops" 0
	echo "${0##*/}: $passed passed, $failed failed"
	[ "$failed" -eq 0 ]
	exit
}

now() { cut -d ' ' -f 1 /proc/uptime; }

# section NAME: says what comes, and when
section() { printf '  %6.1f  %s\n' "$(now)" "$1"; }

# everything that makes a tree: names, kinds, permissions, targets of links, every byte
fingerprint() { # DIR
	(cd "$1" && find . ! -type l -printf '%y %m %P\n' | LC_ALL=C sort
	find . -type l -printf 'l %P %l\n' | LC_ALL=C sort
	find . -type f -print0 | LC_ALL=C sort -z | xargs -0 -r cksum) | cksum
}

# lengths that meet every edge: of XDR, of inline messages, of pages, of a request
lengths='0 1 2 3 4 5 7 8 9 512 700 1015 1016 1017 1023 1024 1025 3500 3700 3900 4087 4088 4095 4096 4097
8191 8192 8193 32769 65535 65536 65537 131073 262143 1048567 1048575 1048576 1048577 1048585 3145731'

make_lengths() { # DIR: a file of each
	mkdir -p "$1"
	for n in $lengths; do
		head -c "$n" "$work/random" >"$1/len-$n"
	done
}

make_tree() { # DIR: a small one, with everything in it that a copy has to keep
	mkdir -p "$1/a/b/c/d/e" "$1/empty directory"
	for dir in include rpcrdma scripts; do
		cp -r "$dir" "$1/"
	done
	printf 'x' >"$1/a/b/c/d/e/$(printf 'odd\tname with\001bytes \377')"
	ln -s 'b/c/d' "$1/a/link"
	ln -s '/nowhere/at all' "$1/a/dangling"
	: >"$1/empty"
	chmod 640 "$1/scripts/deps.sh"
	chmod 555 "$1/a/b"
}

# ---- leatd ------------------------------------------------------------------------------------------

leatd_pid=''

# leatd_start [OPTION...]: serves $work/export as /demo over RDMA and TCP at the usual ports
leatd_start() {
	mkdir -p "$work/export"
	rm -f "$work/words"
	mkfifo "$work/words"
	"$LEATD" --state-dir "$work/state" \
		--export "/demo=$work/export,rw,no_root_squash,clients=10.77.0.0/16,clients=fd77::/16" \
		--listen "rdma://0.0.0.0:20049" --listen "tcp://0.0.0.0:2049" "$@" >"$work/words" 2>&1 3<&- 4>&- &
	leatd_pid=$!
	exec 3<"$work/words"
	# until it is ready, or has ended
	while read -r line <&3; do
		echo "$line" >>"$work/leatd.log"
		case $line in
		'leatd: ready') break ;;
		*[Ee]rror* | *cannot* | *failed*)
			kill "$leatd_pid"
			break
			;;
		esac
	done
	[ "$line" = 'leatd: ready' ] || {
		echo "  leatd did not start: $(tail -n 1 "$work/leatd.log")"
		failed=$((failed + 1))
	}
	cat <&3 >>"$work/leatd.log" 3<&- 4>&- &
	leatd_cat=$!
	exec 3<&-
}

# leatd_stop [SIGNAL]
leatd_stop() {
	[ -n "$leatd_pid" ] || return 0
	kill "-${1:-TERM}" "$leatd_pid" 2>/dev/null || :
	rc=0
	wait "$leatd_pid" 2>/dev/null || rc=$?
	leatd_pid=''
	kill "$leatd_cat" 2>/dev/null || :
	wait "$leatd_cat" 2>/dev/null || :
	[ "${1:-TERM}" = KILL ] || same 'exit status of leatd' "$rc" 0
}

# ---- a volume, and nbdkit with the plugin ---------------------------------------------------------------

plugin=build/nbdkit-leat-plugin.so
nbdkit_pid=''

# volume_start [OPTION...]: leatd serves the file or device $volume as the volume vol0, over the local fabric, or over RDMA
# with volume_over=rdma
volume_start() {
	nbd="nbd+unix:///?socket=$work/nbd.sock"
	: >"$work/leatd.log"
	if [ "${volume_over:-local}" = rdma ]; then
		url=rdma://$addr/block/vol0 listen=rdma://$addr:20049 clients=,clients=10.77.0.0/16
	else
		url=local://$work/leatd.sock/block/vol0 listen=local://$work/leatd.sock clients=
	fi
	"$LEATD" --state-dir "$work/state" --block "vol0=$volume$clients${volume_options:-}" --listen "$listen" \
		"$@" >>"$work/leatd.log" 2>&1 &
	leatd_pid=$!
	wait_for 60 grep -q '^leatd: ready' "$work/leatd.log" || { cat "$work/leatd.log"; ok 'leatd is ready' false; }
}

# volume_end [SIGNAL]
volume_end() {
	[ -n "$leatd_pid" ] || return 0
	kill "-${1:-TERM}" "$leatd_pid"
	wait "$leatd_pid" 2>/dev/null || :
	leatd_pid=''
}

# volume_kill: kills leatd between two syncs. A sync that is cut may have failed unheard, so holders with data that was not
# flushed get an error then, as doc/block.md says; a test where nothing may fail cannot kill leatd there.
volume_kill() {
	kill -STOP "$leatd_pid"
	until volume_stopped && volume_quiet; do
		volume_stopped || continue
		kill -CONT "$leatd_pid"
		sleep 0.1 # it goes on a while
		kill -STOP "$leatd_pid"
	done
	volume_end KILL
}
volume_stopped() { ! grep -hq '^State:[[:space:]][^Tt]' /proc/"$leatd_pid"/task/*/status; }
# syncs that have begun and that have ended: two numbers of struct page in server/block/block_state.c
volume_quiet() {
	[ "$(od -An -tu8 -j64 -N8 "$work/state/block-vol0.sync")" = "$(od -An -tu8 -j72 -N8 "$work/state/block-vol0.sync")" ]
}

# volume_reset: the machine of leatd goes down and comes up, without what was not synced: it has another boot id. What
# the kernel holds is not lost, which the server cannot know
volume_reset() {
	volume_end KILL
	printf '00000000-0000-0000-0000-000000000000' | dd of="$work/state/block-vol0.sync" bs=1 seek=16 conv=notrunc status=none
	volume_start
}

# nbdkit_start [OPTION...]: serves the volume at $nbd
nbdkit_start() {
	rm -f "$work/nbdkit.pid" "$work/nbd.sock"
	nbdkit -f -t 32 -P "$work/nbdkit.pid" -U "$work/nbd.sock" "$plugin" "$url" "$@" >>"$work/nbdkit.log" 2>&1 &
	nbdkit_pid=$!
	wait_for 60 sh -c "[ -s '$work/nbdkit.pid' ] || ! kill -0 $nbdkit_pid"
	[ -s "$work/nbdkit.pid" ] || { tail -n 3 "$work/nbdkit.log"; ok 'nbdkit serves the volume' false; }
}

nbdkit_end() {
	[ -n "$nbdkit_pid" ] || return 0
	kill "$nbdkit_pid" 2>/dev/null || :
	rc=0
	wait "$nbdkit_pid" 2>/dev/null || rc=$?
	nbdkit_pid=''
	same 'exit status of nbdkit' "$rc" 0
}

# ---- Linux's client ---------------------------------------------------------------------------------

# mounted DIR rdma|tcp [,OPTION...]: what leatd serves; from another address: from=ADDRESS; another export: of=/NAME
mounted() {
	port=2049
	[ "$2" = tcp ] || port=20049
	mount -t nfs -o "vers=3,proto=$2,port=$port,mountport=2049,mountproto=tcp,nolock${3:-}" \
		"${from:-$addr}:${of:-/demo}" "$1"
}

cold() { echo 3 >/proc/sys/vm/drop_caches; }

# of_mount DIR AWK: what the kernel counts for one mount; AWK sees its lines of mountstats
of_mount() {
	awk -v dir="$1" '$1 == "device" { on = $5 == dir } on'" { $2 } "'END { print n + 0 }' /proc/self/mountstats
}

# calls DIR PROCEDURE: how many it has made
calls() { of_mount "$1" "if (\$1 == \"$2:\") n += \$2"; }

# rdma_count DIR reads|writes|replies|long: its calls with Read chunks, Write chunks, a Reply chunk,
# and those that went as a Position-Zero Read chunk
rdma_count() {
	case $2 in
	reads) field=13 ;;
	writes) field=14 ;;
	replies) field=15 ;;
	long) field=23 ;;
	esac
	of_mount "$1" "if (\$1 == \"xprt:\" && \$2 == \"rdma\") n += \$$field"
}

# queue pairs of the programs in the machine: none may be left behind
queue_pairs() { rdma resource show qp 2>/dev/null | grep -c 'type RC' || :; }

# ended WHAT PID LOG: a program in the background is to end well
ended() {
	rc=0
	wait "$2" || rc=$?
	tr '\r' '\n' <"$3" >"$work/said"
	ok "$1" sh -c "cat '$work/said'; exit $rc"
}

# wait_for SECONDS COMMAND...: until it succeeds; asked less often after 2 s, since each program costs the machine 10 ms and more
wait_for() {
	waited=0 limit=$(($1 * 10)) pause=1 # tenths of a second
	shift
	until "$@" >/dev/null 2>&1; do
		[ "$waited" -lt "$limit" ] || return 1
		[ "$waited" -lt 20 ] || pause=5
		sleep "0.$pause"
		waited=$((waited + pause))
	done
}

tools=${O:-build/obj/default}/tests/interop
are_built() { # TOOL...
	for tool; do
		ok "$tool is built (make interop-tools)" test -x "$tools/$tool"
	done
}

make_big() { head -c 33554433 /dev/urandom >"$1"; }

# The file that a copy is being written to, as soon as there is something in it.
arriving() { # DIR PID [NAME]: of the copy, where it may have no other name while it is being made
	until find "$1" -maxdepth 1 \( -name '.leat-*' -o -name "${3:-.leat-*}" \) -size +0 | grep -q .; do
		kill -0 "$2" 2>/dev/null || return 1
	done
}

# The device's count of messages that no receive was posted for: RNR retries are off, so one would end a connection.
not_ready() { cat /sys/class/infiniband/rxe0/ports/1/hw_counters/rcvd_rnr_err; }

setup() {
	umask 022
	work=$(mktemp -d)
	head -c 4194304 /dev/urandom >"$work/random"
}
