#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# leat_leatd_sizes.sh - leat against leatd over verbs with small and large inline sizes, few credits and many, IPv6, and
# the other modes of moving data

set -u
cd "$(dirname "$0")/../.." || exit
. tests/interop/lib.sh
in_vm 3600
setup

url=rdma://$addr/demo
are_built pieces probe verbs_long

make_tree "$work/tree"
tree=$(fingerprint "$work/tree")
make_lengths "$work/lengths"
lens=$(fingerprint "$work/lengths")
make_big "$work/big"
big=$(cksum <"$work/big")
not_ready=$(not_ready)

section 'other sizes'
for options in '--inline 1024' '--inline 65536' '--credits 1 --no-private-data' \
	'--credits 20 --reactors 1 --workers 1 --poll event' \
	'--registration arena --pinned-max 16777216 --messages-max 4194304'; do
	rm -rf "$work/export" "$work/lengths.back" "$work/tree.back"
	# shellcheck disable=SC2086
	leatd_start $options
	case $options in
	--inline*)
		for client in 1024 4096 65536; do
			size=${options#--inline }
			size=$((size < client ? size : client))
			ok "ping, $options, leat $client" timeout 100 "$LEAT" ping -c 1 "$url?inline=$client"
			said "$options, leat $client" "^inline *send $size, receive $size bytes"
			[ ! -x "$tools/verbs_long" ] || ok "long calls and replies, $options, leat $client" \
				timeout 300 "$tools/verbs_long" "$addr" 20049 2049 /demo "$client"
		done
		;;
	--credits*)
		size=${options#--credits }
		[ ! -x "$tools/probe" ] ||
			ok "credits, $options" timeout 300 "$tools/probe" credits "$url" "${size%% *}"
		;;
	esac
	case $options in
	*--no-private-data*)
		ok "ping, $options" timeout 100 "$LEAT" ping -c 1 "$url"
		said "$options" '^inline *send 1024, receive 1024 bytes'
		;;
	esac
	ok "lengths in, $options" timeout 300 "$LEAT" cp -rp "$work/lengths" "$url/lengths"
	same "lengths in, $options" "$(fingerprint "$work/export/lengths")" "$lens"
	ok "lengths out, $options" timeout 300 "$LEAT" get -rp "$url/lengths?inline=1024" "$work/lengths.back"
	same "lengths out, $options" "$(fingerprint "$work/lengths.back")" "$lens"
	ok "tree in, $options" timeout 300 "$LEAT" cp -rp "$work/tree" "$url/tree?credits=2"
	same "tree in, $options" "$(fingerprint "$work/export/tree")" "$tree"
	leatd_stop
done
rm -rf "$work/export" "$work/lengths.back"
leatd_start --listen 'rdma://[::]:20050'
ok 'IPv6' timeout 300 "$LEAT" cp -rp "$work/lengths" 'rdma://[fd77::1]:20050/demo/lengths'
same 'IPv6' "$(fingerprint "$work/export/lengths")" "$lens"
leatd_stop

section 'other ways of moving data'
rm -rf "$work/export" "$work/lengths.back" "$work/tree.back"
leatd_start --modes read-read,fast-write,hybrid
counter() { "$LEAT" ctl stats "$url" | awk -v n="$1" '$1 == n { print $2 }'; }
for query in design=read-read fast_write=64k design=hybrid 'design=read-read&fast_write=16k&conns=2'; do
	ok "ping, $query" timeout 100 "$LEAT" ping -c 5 "$url?$query"
	ok "lengths in, $query" timeout 300 "$LEAT" cp -rp "$work/lengths" "$url/lengths?$query"
	same "lengths in, $query" "$(fingerprint "$work/export/lengths")" "$lens"
	ok "lengths out, $query" timeout 300 "$LEAT" get -rp "$url/lengths?$query" "$work/lengths.back"
	same "lengths out, $query" "$(fingerprint "$work/lengths.back")" "$lens"
	ok "big file in, $query" timeout 300 "$LEAT" put "$work/big" "$url/big?$query"
	same "big file in, $query" "$(cksum <"$work/export/big")" "$big"
	ok "big file out, $query" timeout 300 "$LEAT" get "$url/big?$query" "$work/big.back"
	same "big file out, $query" "$(cksum <"$work/big.back")" "$big"
	[ ! -x "$tools/pieces" ] || ok "pieces, $query" timeout 300 "$tools/pieces" "$url?$query"
	rm -rf "$work/export/lengths" "$work/lengths.back" "$work/export/big" "$work/big.back"
done
for name in offers fast_writes grants; do
	ok "$name" test "$(counter $name)" -gt 20
done
same 'nobody was cut off' "$(counter mode_cuts)$(counter mode_timeouts)" 00
# where peers might crash the kernel with them, keys of windows are sent only if the device survives it
same 'no windows on soft RoCE' "$(counter binds)" 0
leatd_stop
leatd_start --unsafe-inv --modes fast-write,hybrid
for query in fast_write=64k design=hybrid 'design=hybrid&fast_write=16k&conns=2'; do
	ok "lengths in, windows, $query" timeout 300 "$LEAT" cp -rp "$work/lengths" "$url/lengths?$query"
	same "lengths in, windows, $query" "$(fingerprint "$work/export/lengths")" "$lens"
	ok "big file in, windows, $query" timeout 300 "$LEAT" put "$work/big" "$url/big?$query"
	same "big file in, windows, $query" "$(cksum <"$work/export/big")" "$big"
	rm -rf "$work/export/lengths" "$work/export/big"
done
ok 'binds' test "$(counter binds)" -gt "$(counter grants)"
same 'one invalidation for each grant' "$(counter local_invs)" "$(counter grants)"
same 'nobody was cut off from windows' "$(counter mode_cuts)$(counter mode_timeouts)" 00
leatd_stop
leatd_start --modes read-read,fast-write,hybrid
# a client that goes leaves nothing; one whose server goes has its data there in the end
"$LEAT" put "$work/big" "$url/again?fast_write=64k&design=hybrid&credits=1&wsize=16384" >"$work/put.log" 2>&1 &
put=$!
ok 'a copy by modes is under way' arriving "$work/export" "$put"
kill -STOP "$put"
leatd_stop KILL
leatd_start --modes fast-write,hybrid
kill -CONT "$put"
ended 'the copy by modes whose server was killed' "$put" "$work/put.log"
same 'the copy by modes' "$(cksum <"$work/export/again")" "$big"
bad 'a mode that is not offered' timeout 100 "$LEAT" ping -c 1 "$url?design=read-read"
said 'and it says so' 'server does not offer read-read'
ok 'without any' timeout 100 "$LEAT" ping -c 1 "$url"
leatd_stop
same 'no queue pair is left' "$(queue_pairs)" 0
same 'receivers that were not ready' "$(not_ready)" "$not_ready"
finish
