#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# names.sh - a hundred thousand changes by a mount in a race with local ones: no name is wrong afterwards

set -u
cd "$(dirname "$0")/../../.." || exit
. tests/interop/lib.sh
in_vm 7200
setup
names=$O/tests/interop/names
[ -x "$names" ] || { echo "SKIP: no $names here (make interop-tools)"; exit 77; }
m=$work/mnt
mkdir "$m"
leatd_start
ok 'mount' mounted "$m" tcp
part=1
while [ "$part" -le 20 ] && mountpoint -q "$m"; do
	counted "race, part $part" "$names" "$m" "$work/export" $((${NAMES_ROUNDS:-100000} / 20)) "$part"
	section "  part $part: $(tail -n 2 "$work/out" | tr '\n' ' ')"
	part=$((part + 1))
done
ok umount timeout 100 umount "$m"
finish
