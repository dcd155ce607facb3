#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# tumble.sh - 100,000 random operations through Linux's client on a leatd, half over RDMA, half over TCP, by
# page cache, O_DIRECT and mmap in turn, and 100,000 by leat over verbs; every answer is verified

set -u
cd "$(dirname "$0")/../../.." || exit
. tests/interop/lib.sh
in_vm 3000
setup
tumble=$O/tests/tumble/tumble
: "${TUMBLE_COUNT:=100000}" "${TUMBLE_SEED:=1}"
url=rdma://$addr/demo
m=$work/mnt
mkdir "$m"

# tumbled WHAT SHARE TARGET OPTION...: SHARE hundredths of the operations; in the end the server's disk agrees
tumbled() {
	what=$1 count=$((TUMBLE_COUNT * $2 / 100)) target=$3
	shift 3
	file=$work/export/$(basename "${target%%\?*}")
	section "$what: $count operations"
	ok "$what" timeout 1500 "$tumble" -n "$count" -s "$TUMBLE_SEED" -m 65536 -o "$work/model" "$@" "$target"
	sed -n 's/^tumble: all was right: //p' "$work/out" | fold -s -w 100 | sed 's/^/          /'
	ok "$what, on disk" cmp "$work/model" "$file"
	rm -f "$work/model" "$file"
}

# named WHAT TARGET: names instead
named() {
	section "$1: names"
	ok "$1: names" timeout 900 "$tumble" -N -n $((TUMBLE_COUNT * 3 / 100)) -s "$TUMBLE_SEED" -c 500 "$2"
	sed -n 's/^tumble: all was right: /          /p' "$work/out"
	same "$1: names" "$(ls -A "$work/export")" ''
}

mounted() { # OPTIONS
	mount -t nfs -o "vers=3,mountport=2049,mountproto=tcp,nolock,$1" "$addr:/demo" "$m"
}

leatd_start
tumbled 'leat over verbs' 20 "$url/one"
tumbled 'leat over verbs, 16 at once' 60 "$url/many" -q 16
tumbled 'leat over verbs, inline 1024, 2 connections' 20 "$url/small?inline=1024&conns=2" -q 8 -l 65536
named 'leat over verbs' "$url/tree"
for way in rdma tcp; do
	port=20049
	[ $way = rdma ] || port=2049
	ok "mount, $way" mounted "proto=$way,port=$port"
	ok "it is $way" grep -q " $m nfs .*proto=$way" /proc/mounts
	tumbled "Linux over $way, page cache" 15 "$m/cached"
	tumbled "Linux over $way, O_DIRECT as well" 20 "$m/direct" -D
	tumbled "Linux over $way, mmap as well" 15 "$m/mapped" -D -M
	named "Linux over $way" "$m/tree"
	ok umount timeout 60 umount "$m"
done
same 'no queue pair is left' "$(queue_pairs)" 0
finish
