#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# test_rpcgen_nfs.sh - NFSv3 by stubs of rpcgen, client and service with tables of bulk data: over the local fabric data go by
# chunk and directories by Reply chunk, over TCP inside messages; each byte of the files is compared

set -eu
: "${O:=build/obj/default}"
work=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill $pid 2>/dev/null || :; rm -rf "$work"' EXIT
. tests/lib/checks.sh
nfs=$O/tests/interop/rpcgen

mkdir -p "$work/export/dir/dir" "$work/export/empty directory"
head -c 2097153 /dev/urandom >"$work/random"
for n in 0 1 2 3 4 1000 3700 3900 4095 4096 4097 65537 1048575 1048576 1048577 2097153; do
	head -c "$n" "$work/random" >"$work/export/dir/len-$n"
done
(cd "$work/export/dir/dir" && seq -f 'entry-with-a-longish-name-%05g' 1000 | xargs touch)
ln -s dir/dir "$work/export/link"
ln -s "/$(head -c 3000 /dev/zero | tr '\0' l)" "$work/export/long link"

mkfifo "$work/urls"
"$nfs/nfs_server" "$work/export" /test tcp://127.0.0.1 "local://$work/nfs.sock" tcp://127.0.0.1:0 >"$work/urls" 2>"$work/log" &
pid=$!
read -r mount shared tcp <"$work/urls" || fail "the service did not start: $(cat "$work/log")"
for url in "$shared" "$tcp"; do
	"$nfs/nfs_client" "$mount" "$url" /test "$work/export" >"$work/out" 2>&1 || fail "$url: $(cat "$work/out")"
	sed "s,^,${url%%:*}: ," "$work/out"
done
kill "$pid"
wait "$pid" || fail "the service ended badly: $(cat "$work/log")"
pid=
cat "$work/log"
