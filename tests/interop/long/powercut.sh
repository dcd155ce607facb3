#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# powercut.sh - the power of a machine with a leatd is cut at random moments: what was promised is there
#
# leatd serves a file system on a disk of the machine, four clients beside it change names and write
# records (tests/powercut), and log every call and every answer to the host, by 9p and before they go
# on. QEMU is killed, and with it goes what only the machine's memory held. The next boot mounts what is
# left, starts leatd on it, checks, and is the next to lose its power. CUTS=30 in all, shared by the file
# systems of KINDS='ext4 xfs', where there is a mkfs.

set -u
cd "$(dirname "$0")/../../.." || exit
. tests/interop/lib.sh
: "${O:=build/obj/default}" "${CUTS:=30}" "${KINDS:=ext4 xfs}"
powercut=$O/tests/powercut/powercut
url=tcp://$addr:2049
disk=/run/disk

# ---- in the machine ---------------------------------------------------------------------------------

check_last() { # ROUND: of which its log tells
	work=$disk/$1
	leatd_start
	rc=0
	"$powercut" check "$url" /demo "$OUT/log-$KIND-$1" 4 "$work/export" >"$OUT/result" 2>&1 || rc=$?
	echo "status $rc" >>"$OUT/result"
	leatd_stop
	rm -rf "$work"
}

run_next() { # ROUND
	work=$disk/$1
	mkdir -p "$work" "$OUT/log-$KIND-$1"
	leatd_start
	sync
	"$powercut" run "$url" /demo "$OUT/log-$KIND-$1" 4 "$1" >"$OUT/ran" 2>&1 &
	wait_for 60 test -s "$OUT/log-$KIND-$1/t3"
	echo >"$OUT/running"
	wait
}

if [ -n "${LEAT_VM:-}" ]; then
	modprobe "$KIND"
	mkdir -p "$disk"
	mount -t "$KIND" /dev/vda "$disk" || exit
	[ "$ROUND" -eq 0 ] || check_last $((ROUND - 1))
	[ "$ROUND" -eq "$CUTS" ] || run_next "$ROUND"
	umount "$disk"
	exit
fi

# ---- outside ------------------------------------------------------------------------------------------

work=$(mktemp -d)
vm=''
trap '[ -z "$vm" ] || kill "$vm" 2>/dev/null || :; rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

boot() { # KIND ROUND
	rm -f "$work/out/running" "$work/out/result" "$work/pid"
	tests/interop/vm/vm -t 240 -o "$work/out" -d "$work/$1.img" -p "$work/pid" \
		"LEAT='$LEAT' LEATD='$LEATD' O='$O' CUTS=$CUTS KIND=$1 ROUND=$2 sh '$0'" \
		>"$work/console" 2>&1 &
	vm=$!
}

# until the clients are at work; fails if the machine has ended before
until_running() {
	until [ -e "$work/out/running" ]; do
		kill -0 "$vm" 2>/dev/null || return 1
		sleep 0.1
	done
}

cut_power() { # ROUND: within three seconds
	sleep "$(awk -v seed="$1$$" 'BEGIN { srand(seed); printf "%.2f", rand() * 3 }')"
	kill -KILL "$(cat "$work/pid")"
}

ended() {
	rc=0
	wait "$vm" || rc=$?
	vm=''
}

complain() {
	failed=$((failed + 1))
	echo "  FAIL  $1"
	tail -n 8 "$work/console" | cut -c 1-300 | sed 's/^/        | /'
}

judge() { # KIND CUT
	if grep -q '^status 0$' "$work/out/result" 2>/dev/null; then
		passed=$((passed + 1))
		answered=$((answered + $(sed -n 's/^powercut: \([0-9]*\) operations.*/\1/p' "$work/out/result")))
	else
		complain "$1, cut $2"
		sed 's/^/        | /' "$work/out/result"
	fi
}

cuts_of() { # KIND
	answered=0 round=0
	truncate -s 512M "$work/$1.img"
	"mkfs.$1" -q "$work/$1.img" >"$work/mkfs" 2>&1 || { complain "mkfs.$1"; cat "$work/mkfs"; return; }
	while [ "$round" -le "$CUTS" ]; do
		boot "$1" "$round"
		if [ "$round" -lt "$CUTS" ]; then
			if ! until_running; then
				ended
				[ "$rc" -ne 77 ] || { cat "$work/console"; exit 77; }
				complain "$1: the machine ended before its power was cut"
				return
			fi
			cut_power "$round"
		fi
		ended
		[ "$round" -eq 0 ] || judge "$1" "$round"
		round=$((round + 1))
	done
	echo "          $1: $CUTS cuts, $answered operations answered"
}

for program in "$LEATD" "$powercut"; do
	[ -x "$program" ] || { echo "no $program: make all interop-tools"; exit 1; }
done
PATH=$PATH:/usr/sbin:/sbin
mkdir "$work/out"
kinds='' n=0
for kind in $KINDS; do
	if command -v "mkfs.$kind" >/dev/null 2>&1; then
		kinds="$kinds $kind" n=$((n + 1))
	else
		echo "          no mkfs.$kind here, so none of it"
	fi
done
[ "$n" -gt 0 ] || { echo 'SKIP: none of these can be made here (e2fsprogs, xfsprogs)'; exit 77; }
CUTS=$(((CUTS + n - 1) / n))
for kind in $kinds; do
	cuts_of "$kind"
done
finish
