#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# test_tumble_volume.sh - some hundred random operations of several clients on the same files of a striped volume, while leatds
# are killed, stopped and cut off; every result verified

set -eu
: "${LEAT:=build/leat}" "${LEATD:=build/leatd}" "${O:=build/obj/default}"
export LEATD
: "${TUMBLE_SEED:=1}" "${TUMBLE_COUNT:=600}"

work=$(mktemp -d /tmp/leat-tumble.XXXXXX)
trap 'rm -rf "$work"' EXIT
checks=0
for how in tcp local; do
	"$O/tests/tumble/tumble" volume -s "$TUMBLE_SEED" -n "$TUMBLE_COUNT" -p 200 -t $how -x "$LEAT" "$work/$how"
	checks=$((checks + 1))
done
echo "$checks checks"
