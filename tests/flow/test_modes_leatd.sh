#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# test_modes_leatd.sh - the other ways of moving data between programs: leatd offers them, leat asks

set -eu
: "${LEATD:=build/leatd}" "${LEAT:=build/leat}"
. scripts/private-leatd.sh

work=$(mktemp -d)
trap 'leatd_stop; rm -rf "$work"' EXIT
mkdir "$work/exp" "$work/plain"
checks=0
fail() {
	echo "FAILED after $checks checks: $*"
	exit 1
}
said() { # PATTERN: the last command's words match
	grep -qE -e "$1" "$work/said" || fail "no /$1/ in: $(cat "$work/said")"
	checks=$((checks + 1))
}
ok() {
	timeout 60 "$@" >"$work/said" 2>&1 || fail "$* -> $?: $(cat "$work/said")"
	checks=$((checks + 1))
}
refused() { # PATTERN URL
	! timeout 60 "$LEAT" ping -c 1 "$2" >"$work/said" 2>&1 || fail "$2 was mounted: $(cat "$work/said")"
	said "$1"
}
counter() { "$LEAT" ctl stats "$local_url" | awk -v n="$1" '$1 == n { print $2 }'; }

head -c 3000001 /dev/urandom >"$work/big"
head -c 20001 /dev/urandom >"$work/small"
leatd_options='--modes read-read,fast-write,hybrid'
leatd_start "$work/exp"
design() { # QUERY PATTERN: files there and back; ping says PATTERN
	ok "$LEAT" ping -c 3 "$local_url?$1"
	said "$2"
	for file in big small; do
		ok "$LEAT" put "$work/$file" "$local_url/$file?$1"
		cmp "$work/$file" "$work/exp/$file" || fail "$file by $1"
		ok "$LEAT" get "$local_url/$file?$1" "$work/back"
		cmp "$work/$file" "$work/back" || fail "$file back by $1"
		rm "$work/back" "$work/exp/$file"
	done
}
design 'design=read-read' '^modes +read-read$'
[ "$(counter offers)" -gt 0 ] || fail 'nothing was offered'
design 'fast_write=64k' '^modes +fast-write$'
ok "$LEAT" ping -c 1 "$local_url?fast_write=64k"
said '^fast writes +of up to 65536 bytes$'
[ "$(counter fast_writes)" -gt 0 ] || fail 'nothing was written fast'
design 'design=hybrid' '^modes +hybrid$'
[ "$(counter grants)" -gt 0 ] || fail 'nothing was granted'
design 'design=read-read&fast_write=32k&conns=3' '^modes +read-read, fast-write$'
[ "$(counter mode_cuts)$(counter mode_timeouts)" = 00 ] || fail 'somebody was cut off'
# a client that does not ask sees nothing of it, and a client over TCP cannot have it
ok "$LEAT" ping -c 1 "$local_url"
! grep -q '^modes' "$work/said" || fail "not asked for: $(cat "$work/said")"
refused 'not for TCP' "$tcp_url?design=hybrid"
leatd_stop
rm -f "$work/words"

leatd_options='--modes hybrid'
leatd_start "$work/exp"
refused 'server does not offer read-read' "$local_url?design=read-read"
refused 'server does not offer fast-write' "$local_url?fast_write=8k"
refused 'server does not offer fast-write, hybrid' "$local_url?fast_write=8k&design=hybrid"
refused 'server does not offer read-read' "leat${tcp_url#tcp}?design=read-read"
ok "$LEAT" ping -c 1 "$local_url?design=hybrid"
leatd_stop
rm -f "$work/words"
leatd_options=''
leatd_start "$work/exp"
refused 'server does not offer hybrid' "$local_url?design=hybrid"
ok "$LEAT" ping -c 1 "$local_url?design=read-write"
leatd_stop
rm -f "$work/words"
echo "$checks checks passed"
