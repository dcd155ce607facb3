#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# test_cli_volume.sh - leat volume: creates a volume whose leatds start as it says

set -eu
. tests/lib/checks.sh
: "${LEAT:=build/leat}" "${LEATD:=build/leatd}"
work=$(mktemp -d "${TMPDIR:-/tmp}/volume.XXXXXX")
pids=
finish() {
	for p in $pids; do
		kill "$p" 2>/dev/null || :
		wait "$p" 2>/dev/null || :
	done
	rm -rf "$work"
}
trap finish EXIT

has() { # PATTERN: in the output of the last command
	grep -qE -e "$1" "$work/out" || fail "no '$1' in: $(cat "$work/out")"
	checks=$((checks + 1))
}
start() { # NAME: the leatd of that configuration
	leatd_run "$LEATD" --config "$work/vol/$1.conf"
	pids="$pids $pid"
}

bad 2 'servers' "$LEAT" volume create "$work/vol"
bad 2 'no such verb' "$LEAT" volume grow "$work/vol"
bad 1 'which clients' "$LEAT" volume create --servers tcp://10.0.0.1 "$work/vol"
bad 1 'power of two' "$LEAT" volume create --servers "local://$work/s1" --stripe 96K "$work/vol"
[ ! -e "$work/vol" ] || fail 'a refused volume leaves something behind'

ok "$LEAT" volume create "$work/vol" --servers "local://$work/s1,local://$work/s2" --stripe 64K
has "^# leatd --config $work/vol/manager.conf\$"
has '^\[volume vol\]$'
has "^listen = local://$work/s2\$"
cp "$work/vol/key" "$work/key"
bad 1 'File exists' "$LEAT" volume create "$work/vol" --servers "local://$work/s3"
cmp -s "$work/key" "$work/vol/key" || fail 'the key was replaced'

# root of this machine may write
printf 'root_squash = no\n' >>"$work/vol/manager.conf"
start server-1
start server-2
start manager
ok "$LEAT" ls "local://$work/vol/sock/vol"

echo "$checks checks"
