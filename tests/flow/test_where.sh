#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# test_where.sh - leat stat --latency and leat trace pieces: where the time goes, of a leatd at work

set -eu
: "${LEAT:=build/leat}" "${LEATD:=build/leatd}"
. scripts/private-leatd.sh
. tests/lib/checks.sh

work=$(mktemp -d)
look=''
finish() {
	[ -z "$look" ] || kill -KILL "$look" 2>/dev/null || :
	leatd_stop
	rm -rf "$work"
}
trap finish EXIT

has() { grep -qE -e "$1" "$work/look"; }
says() { # PATTERN: the look did
	has "$1" || fail "no '$1' in: $(cat "$work/look" "$work/look.err")"
	checks=$((checks + 1))
}

# a look that goes on while something else is done
begin() { # COMMAND...
	: >"$work/look"
	"$@" >"$work/look" 2>"$work/look.err" &
	look=$!
}
until_ended() { # COMMAND...: again and again, until the look has ended; its status in $rc
	while kill -0 "$look" 2>/dev/null; do
		"$@" >"$work/out" 2>"$work/err" || fail "$* -> $?: $(cat "$work/err")"
	done
	rc=0
	wait "$look" || rc=$?
	look=''
}
until_has() { # PATTERN COMMAND...: again and again, until the look has it
	pattern=$1
	shift
	until has "$pattern"; do
		kill -0 "$look" 2>/dev/null || fail "it has ended: $(cat "$work/look" "$work/look.err")"
		"$@" >"$work/out" 2>"$work/err" || fail "$* -> $?: $(cat "$work/err")"
	done
}
end_look() { # what there is is printed, and then it ends by the signal
	kill -TERM "$look"
	until_ended :
	[ "$rc" -eq 143 ] || fail "interrupted -> $rc: $(cat "$work/look.err")"
	checks=$((checks + 1))
}

mkdir "$work/export" "$work/streams"
head -c 1048576 /dev/urandom >"$work/whole"
leatd_options="--export /streams=$work/streams,rw,no_root_squash,overlap=streams,grain=64k"
leatd_start "$work/export" || exit 1
streams=${local_url%/demo}/streams
tcp_streams=${tcp_url%/demo}/streams

# no request has been made yet
begin "$LEAT" stat --latency "$streams" --interval 0.01
until_ended :
[ "$rc" -eq 0 ] || fail "stat --latency -> $rc: $(cat "$work/look.err")"
says '^nothing moved in [0-9]+\.[0-9] s: no file was read or written meanwhile$'
[ "$(wc -l <"$work/look")" -eq 1 ] || fail "more than that: $(cat "$work/look")"

# reads and writes in pieces: bars of 50 letters with all that there is, and an efficiency
put() { "$LEAT" put "$work/whole" "$1/whole${2-}"; }
get() { "$LEAT" get "$1/whole${2-}" "$work/back"; }
put_and_get() { put "$1" && get "$1"; }
put "$streams"
bar='[wDNBf]{50}  [0-9.]+ us each, [0-9]+ sampled, [0-9.]+[KMG]$'
begin "$LEAT" stat --interval 0.05 --latency "$streams" --count 1000000
until_has "^READ   $bar" get "$streams"
until_has "^WRITE  $bar" put "$streams"
for state in NEW IDENTIFYING ADMITTING PULLING DUPCHECK RUNNING MOVING REPLYING; do
	until_has "^$state +[0-9.]+ +[0-9.]+ +[0-9]+\$" put_and_get "$streams"
done
end_look
for part in 'w waiting' 'D disk only' 'N network only' 'B both at once' 'f finish'; do
	says "^  $part +[0-9.]+ % +[0-9.]+ us\$"
done
grep -E '^(READ|WRITE)  *[wDNBf]' "$work/look" | grep -qvE '^(READ|WRITE) +w*D*N*B*f*  ' && fail 'parts out of order'
says '^  [0-9.]+[KMG]/s during a request: [01]\.[0-9]+ of the lesser of disk [0-9.]+[KMG]/s and network [0-9.]+[KMG]/s$'
says '^[0-9.]+ s: read [0-9.]+[KMG]?/s, wrote [0-9.]+[KMG]?/s, copied [0-9.]+ per byte, [0-9]+ submits blocked$'

# an interval that is to last for a day ends with ^C as well, and is printed
: >"$work/look"
until [ -s "$work/look" ]; do # a signal that comes before the interval has begun ends it without a word
	begin "$LEAT" stat --latency "$streams" --interval 86400 --json
	until sleeps_in "$look" nanosleep; do
		kill -0 "$look" 2>/dev/null || fail "it has ended: $(cat "$work/look.err")"
	done
	end_look
done
[ "$(grep -c '^{"seconds":' "$work/look")" -eq 1 ] || fail "of a day cut short: $(cat "$work/look")"
ok "$LEAT" stat --latency "$streams" --interval 0.01 --count 2 --json
[ "$(grep -cE '^\{"seconds":[0-9.]+,.*"read_waiting_us":[0-9.]+,.*"write_efficiency":[0-9.]+,.*"REPLYING_p99_us":[0-9.]+\}$' "$work/out")" -eq 2 ] ||
	fail "json: $(cat "$work/out")"

# over TCP the transfer is part of the reply, and nothing is split; many small requests, because not all are sampled
begin "$LEAT" stat --latency "$tcp_streams" --interval 0.05 --count 1000000
until_has '^READ   w*D*f+  ' get "$tcp_streams" '?rsize=16384'
until_has '^WRITE  w*D*f*  ' put "$tcp_streams" '?wsize=16384'
end_look
says '^  N network only +0\.0 % +0\.0 us$'
says 'during a request: disk [0-9.]+[KMG]/s; no transfer apart from it and from the reply$'

# a request in pieces, READ and then WRITE
rows() { grep -cE "^ *[0-9]+ +65536 +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+  $1\$" "$work/look" || :; }
begin "$LEAT" trace pieces "$streams" --timeout 60
until_ended get "$streams"
[ "$rc" -eq 0 ] || fail "trace -> $rc: $(cat "$work/look.err")"
says '^READ of 1048576 bytes in 16 pieces, xid [0-9a-f]{8}; us since it came$'
[ "$(rows '\.*D*\.*[BN]+\.*')" -eq 16 ] || fail "not 16 pieces that were read: $(cat "$work/look")"
says '^total [0-9.]+: disk [0-9.]+, network [0-9.]+, both at once [0-9.]+ \([0-9]+ % of the lesser\)$'
[ "$(sed -n '3,18p' "$work/look" | awk '{ print $4 }' | sort -cn 2>&1)" = '' ] || fail "not in the disk's order: $(cat "$work/look")"
[ "$(sed -n '3,18p' "$work/look" | awk '{ print $1 }' | sort -n | uniq | awk '{ n += $1 } END { print n, NR }')" = '7864320 16' ] ||
	fail "not all of it, each once: $(cat "$work/look")"
begin "$LEAT" trace pieces "$streams" --count 2
until_ended put "$streams"
[ "$rc" -eq 0 ] || fail "trace -> $rc: $(cat "$work/look.err")"
[ "$(grep -c '^WRITE of 1048576 bytes in 16 pieces' "$work/look")" -eq 2 ] || fail "not two WRITEs: $(cat "$work/look")"
[ "$(rows '\.*N*\.*[BD]+\.*')" -eq 32 ] || fail "not 32 pieces that were written: $(cat "$work/look")"

# none: over TCP, without overlap, of a request that came before
for url in "$tcp_streams" "$local_url"; do
	begin "$LEAT" trace pieces "$url" --timeout 0.2
	until_ended put_and_get "$url"
	[ "$rc" -eq 1 ] || fail "trace of $url -> $rc: $(cat "$work/look" "$work/look.err")"
	[ ! -s "$work/look" ] || fail "trace of $url: $(cat "$work/look")"
	grep -q 'no request in pieces came within 0.2 s: .*overlap=streams' "$work/look.err" || fail "$(cat "$work/look.err")"
	checks=$((checks + 1))
done
get "$streams"
bad 1 'no request in pieces came within 0.01 s' "$LEAT" trace --timeout 0.01 pieces "$streams"

# wrong usage
bad 2 'usage: leat stat' "$LEAT" stat --latency
bad 2 'usage: leat stat' "$LEAT" stat --where "$streams" "$streams"
bad 2 'usage: leat stat' "$LEAT" stat --interval 1 "$streams"
bad 2 'interval=0: must be a time from 1ms to 86400s' "$LEAT" stat --latency --interval 0 "$streams"
bad 2 'count=0: must be a number' "$LEAT" stat --latency --count 0 "$streams"
bad 2 'usage: leat trace' "$LEAT" trace
bad 2 'usage: leat trace' "$LEAT" trace pieces
bad 2 'pairs: nothing that can be traced' "$LEAT" trace pairs "$streams"
bad 2 'timeout=x: must be a time' "$LEAT" trace pieces --timeout x "$streams"
bad 2 'count=0: must be a number' "$LEAT" trace pieces --count 0 "$streams"
bad 1 'no part of this path is a socket' "$LEAT" stat --where "local://$work/none"
ok "$LEAT" stat "$streams/whole"
grep -q '^size *1048576$' "$work/out" || fail "stat: $(cat "$work/out")"

# another leatd in its place has other sums
begin "$LEAT" stat --latency "$streams" --interval 0.05 --count 1000000
until_has 'nothing moved' :
leatd_stop
rm "$work/words"
leatd_start "$work/export" || exit 1
until_has "^READ   $bar" put_and_get "$streams"
end_look
grep -q 'started again meanwhile' "$work/look.err" || fail "of another leatd: $(cat "$work/look" "$work/look.err")"
checks=$((checks + 1))

echo "$checks checks passed"
