#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# test_many.sh - a thousand clients over the local fabric and as many over TCP, of one leatd

set -u
: "${LEATD:=build/leatd}" "${LEAT:=build/leat}" "${O:=build/obj/default}"
many=$O/tests/interop/many
n=1000

work=$(mktemp -d)
pid='' held=''
finish() {
	for p in $held $pid; do
		kill -KILL "$p" 2>/dev/null || :
	done
	rm -rf "$work"
}
trap finish EXIT
. tests/lib/checks.sh

command -v prlimit >/dev/null || {
	echo 'no prlimit'
	exit 77
}
limit=$(prlimit --nofile --output HARD --noheadings --raw)
[ "$limit" -ge $((2 * n + 600)) ] || {
	echo "at most $limit files may be open here"
	exit 77
}

stat() { "$LEAT" ctl stats "local://$work/sock" | awk -v name="$1" '$1 == name { print $2 }'; }
resident() { awk '/^VmRSS/ { print $2 }' "/proc/$pid/status"; }

# What the clients in the background say next, after what they said of credits; fd 7 and 8 are theirs.
says() { # LINE: it comes in by standard input
	while read -r line; do
		case $line in
		credits*) ;;
		"$1")
			checks=$((checks + 1))
			return
			;;
		*) break ;;
		esac
	done
	fail "not '$1' but: ${line:-nothing more} $(cat "$work"/*.err)"
}

hold() { # NAME URL
	mkfifo "$work/$1.in" "$work/$1.out"
	"$many" "$2" /x "$n" <"$work/$1.in" >"$work/$1.out" 2>"$work/$1.err" &
	held="$held $!"
}

atmost() { # WHAT FIGURE LIMIT
	echo "$1: $2"
	[ "$2" -le "$3" ] || fail "$1: $2, and not at most $3"
	checks=$((checks + 1))
}

run() { # SRQ MAX LEAST: a leatd serves all of them, and not one more; bytes for messages
	# one of two clients may have three sevenths of all connections, one alone three quarters of the receives
	held=
	# it has to see to the number of its descriptors itself
	leatd_run prlimit "--nofile=256:$limit" "$LEATD" --export "/x=$work/exp,insecure" \
		--state-dir "$work/state" --listen "local://$work/sock" --listen tcp://127.0.0.1:0 \
		--max-connections $((n * 7 / 3)) --messages-max "$2" --srq "$1"
	! grep -q 'open files' "$work/log" || fail "too few descriptors: $(cat "$work/log")"
	before=$(resident)

	hold tcp "tcp://127.0.0.1:$port"
	exec 5>"$work/tcp.in" 7<"$work/tcp.out"
	says "mounted $n" <&7
	says "served $n" <&7
	[ "$(stat conns)" -eq $((n + 1)) ] || fail "$(stat conns) connections over TCP"
	tcp=$(resident)

	hold local "local://$work/sock"
	exec 6>"$work/local.in" 8<"$work/local.out"
	says "mounted $n" <&8
	says "served $n" <&8

	# one more is turned away, and told of; those that stand go on, all at once
	bad 1 refused "$many" "local://$work/sock" /x 1 </dev/null
	grep -q 'its share of the connections' "$work/log" || fail "one too many: $(cat "$work/log")"
	echo >&5
	echo >&6
	says "served $n" <&7
	says "served $n" <&8
	local=$(resident)
	if [ "$O" = build/obj/default ]; then # others have memory of their own
		atmost 'KiB for each over TCP' $(((tcp - before) / n)) 64
		atmost 'KiB for each over the local fabric' $(((local - tcp) / n)) 256
	fi
	exec 5>&- 6>&- 7<&- 8<&-
	for p in $held; do
		wait "$p" || fail "the clients ended with $?: $(cat "$work"/*.err)"
	done
	held=
	pinned=$(stat messages_most) most=$(stat messages_limit)
	atmost 'bytes for messages' "$pinned" "$most"
	[ "$1" = no ] || [ "$pinned" -le $((n * 4096)) ] || fail "$pinned bytes are not shared"
	[ "$pinned" -ge "$3" ] || fail "only $pinned bytes were pinned for messages"
	[ "$(stat conns)" -eq 1 ] || fail "$(stat conns) connections are left"
	kill "$pid"
	wait "$pid" || fail "leatd -> $?: $(cat "$work/log")"
	pid=
	checks=$((checks + 3))
}

mkdir "$work/exp"
run no 100663296 $((n * 8 * 4096))
rm "$work"/*.in "$work"/*.out
run yes 16777216 $((64 * 4096)) # there is room for a third of them with receives of their own
echo "$checks checks passed"
