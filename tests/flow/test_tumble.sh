#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# test_tumble.sh - random operations on files and names of a leatd over the local fabric and TCP, every
# answer verified; also while the leatd is killed and started again

set -eu
: "${LEATD:=build/leatd}" "${O:=build/obj/default}"
. tests/lib/checks.sh
tumble=$O/tests/tumble/tumble
: "${TUMBLE_SEED:=1}" "${TUMBLE_COUNT:=4000}"

work=$(mktemp -d)
pid='' tumbler=''
finish() {
	[ -z "$tumbler" ] || kill -KILL "$tumbler" 2>/dev/null || :
	[ -z "$pid" ] || kill "$pid" 2>/dev/null || :
	rm -rf "$work"
}
trap finish EXIT
mkdir "$work/export"

port=0 # the same one every time
start() {
	leatd_run "$LEATD" --state-dir "$work/state" --export "/x=$work/export,rw,no_root_squash" \
		--listen "local://$work/sock" --listen "tcp://127.0.0.1:$port"
}

# URL OPTION...: and the server's disk agrees in the end
go() {
	file=$1
	shift
	"$tumble" -s "$TUMBLE_SEED" -n "$TUMBLE_COUNT" -o "$work/model" "$@" "$file" || fail "tumble $* $file -> $?"
	cmp "$work/model" "$work/export/file" || fail "tumble $* $file: the disk differs"
	rm "$work/model" "$work/export/file"
	checks=$((checks + 1))
}

# URL OPTION...: the same while leatd is killed three times
survive() {
	file=$1
	shift
	rm -f "$work/words"
	mkfifo "$work/words"
	"$tumble" -s "$TUMBLE_SEED" -n "$TUMBLE_COUNT" -r -v -c 500 -o "$work/model" "$@" "$file" >"$work/words" &
	tumbler=$!
	kills=0
	while read -r line; do
		echo "$line"
		case $line in
		# it goes on while we do this
		'tumble: '[12345]'000 operations')
			if [ "$kills" -lt 3 ]; then
				kill -KILL "$pid"
				wait "$pid" 2>/dev/null || :
				kills=$((kills + 1))
				start
			fi
			;;
		*' reconnects, '*) reconnects=${line%% reconnects,*} ;;
		esac
	done <"$work/words"
	wait "$tumbler" || fail "tumble -r $* $file -> $?"
	tumbler=''
	[ "$kills" -eq 3 ] || fail "leatd was killed $kills times"
	[ "${reconnects##* }" -ge 1 ] || fail 'tumble has not seen that'
	cmp "$work/model" "$work/export/file" || fail "tumble -r $* $file: the disk differs"
	rm "$work/model" "$work/export/file"
	checks=$((checks + 1))
}

# without any leatd: what cannot be right here is the tester's own fault
"$tumble" -s "$TUMBLE_SEED" -n "$TUMBLE_COUNT" -M -o "$work/model" "$work/export/file" || fail "tumble of a directory -> $?"
cmp "$work/model" "$work/export/file" || fail 'tumble of a directory: the disk differs'
rm "$work/model" "$work/export/file"

start
for url in "local://$work/sock/x/file" "tcp://127.0.0.1:$port/x/file"; do
	go "$url"
	go "$url?conns=3" -q 16
	go "$url?inline=1024&rsize=4096&wsize=8192" -q 8 -l 100000
	"$tumble" -N -s "$TUMBLE_SEED" -n $((TUMBLE_COUNT / 5)) -c 200 "${url%/*}/tree" || fail "tumble -N $url -> $?"
	[ -z "$(ls -A "$work/export")" ] || fail "tumble -N $url left $(ls -A "$work/export")"
	checks=$((checks + 1))
	go "$url?credits=2&readahead=65536" -q 32 -l 3000000 -m 1500000 -n $((TUMBLE_COUNT / 3))
done
if [ "$(id -u)" -eq 0 ]; then
	survive "local://$work/sock/x/file" -q 8
	survive "tcp://127.0.0.1:$port/x/file"
	survive "tcp://127.0.0.1:$port/x/file?conns=3" -q 8
else
	echo 'handles survive a restart only if leatd runs as root: no restarts'
fi
kill "$pid"
wait "$pid" || fail "leatd ended with $?"
pid=''
echo "$checks checks"
