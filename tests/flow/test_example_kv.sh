#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# test_example_kv.sh - examples/kv/: values of 0 bytes to 1 MiB come back, over the local fabric and TCP

set -eu
: "${EXAMPLES:=build/examples}"
work=$(mktemp -d)
kvd=
trap 'kill $kvd 2>/dev/null || :; rm -rf "$work"' EXIT
fail() {
	echo "FAILED: $*"
	exit 1
}

[ "$(cat examples/kv/* | wc -l)" -lt 120 ] || fail 'examples/kv has 120 lines or more'

mkfifo "$work/url"
try() { # URL
	"$EXAMPLES/kv/kvd" "$1" >"$work/url" &
	kvd=$!
	read -r url <"$work/url" # a FIFO: it waits until kvd listens
	for bytes in 0 1 1000 4096 65537 1048576; do
		head -c "$bytes" /dev/urandom >"$work/value"
		"$EXAMPLES/kv/kv" "$url" put key <"$work/value" || fail "$1: put $bytes"
		"$EXAMPLES/kv/kv" "$url" get key >"$work/copy" || fail "$1: get $bytes"
		cmp "$work/value" "$work/copy" || fail "$1: $bytes"
	done
	(cat "$work/value" && printf x) | "$EXAMPLES/kv/kv" "$url" put key 2>"$work/out" && fail "$1: takes a value over 1 MiB"
	grep -qx 'kv: the value is longer than 1 MiB' "$work/out" || fail "$1: $(cat "$work/out")"
	"$EXAMPLES/kv/kv" "$url" put key <"$work" 2>"$work/out" && fail "$1: takes what it cannot read"
	grep -q '^kv: cannot read the value' "$work/out" || fail "$1: $(cat "$work/out")"
	"$EXAMPLES/kv/kv" "$url" get key | cmp - "$work/value" || fail "$1: a refused value was stored"
	"$EXAMPLES/kv/kvd" "$url" >"$work/out" 2>&1 && fail "$1: listens twice"
	grep -q "^kvd: cannot listen on $url: Address already in use$" "$work/out" || fail "$1: $(cat "$work/out")"
	echo other | "$EXAMPLES/kv/kv" "$url" put other
	"$EXAMPLES/kv/kv" "$url" get key | cmp - "$work/value" || fail "$1: another key"
	[ "$("$EXAMPLES/kv/kv" "$url" get other)" = other ] || fail "$1: other"
	[ -z "$("$EXAMPLES/kv/kv" "$url" get none)" ] || fail "$1: none"
	# more than 64 MiB of values are refused; a value that replaces another counts once
	head -c 1048576 /dev/zero >"$work/value"
	for i in $(seq 70); do "$EXAMPLES/kv/kv" "$url" put key <"$work/value" || fail "$1: put again $i"; done
	for i in $(seq 62); do "$EXAMPLES/kv/kv" "$url" put "key$i" <"$work/value" || fail "$1: put key$i"; done
	"$EXAMPLES/kv/kv" "$url" put one-more <"$work/value" 2>"$work/out" && fail "$1: takes more than 64 MiB"
	[ "$("$EXAMPLES/kv/kv" "$url" get other)" = other ] || fail "$1: other, after all"
	kill $kvd
	wait $kvd || :
	"$EXAMPLES/kv/kv" "$url" get key 2>"$work/out" && fail "$1: no server"
	grep -q '^kv: ' "$work/out" || fail "$1: $(cat "$work/out")"
}

for name in kv kvd; do
	"$EXAMPLES/kv/$name" nothing 2>"$work/out" && fail "$name without a URL"
	grep -q "^$name: usage: $name URL" "$work/out" || fail "$name: $(cat "$work/out")"
	grep -q "^ \*     cc $name.c .*pkg-config .* rpcrdma" "examples/kv/$name.c" || fail "$name.c has no line for cc"
done
try "local://$work/kv"
try tcp://127.0.0.1:0
echo 'values of 0 bytes to 1 MiB, over the local fabric and TCP'
