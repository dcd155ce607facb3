#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# stale.sh - 20,000 rounds of memory that loses its pages between reads and writes, over RDMA:
# the registration cache never has one that is stale, and without its monitor it has many

set -u
cd "$(dirname "$0")/../../.." || exit
. tests/interop/lib.sh
in_vm 7200
setup
stale=$O/tests/interop/stale
[ -x "$stale" ] || { echo 'SKIP: tests/interop/stale is not built'; exit 77; }
rounds=20000
url=rdma://$addr/demo
leatd_start
: >"$work/export/pages"

for strategy in batch cache; do
	section "$strategy, $((rounds / 2)) rounds"
	ok "$strategy" timeout 3500 "$stale" "$url?registration=$strategy" "$work/export/pages" $((rounds / 2)) none
	sed 's/^/          /' "$work/out"
done
section 'and nobody watches'
# a device that did no harm would prove nothing
ok 'monitor=none' timeout 600 "$stale" "$url?registration=cache&monitor=none" "$work/export/pages" 500 some
sed 's/^/          /' "$work/out"
leatd_stop
finish
