#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# hostile.sh - the attacks of tests/hostile for 10 minutes (HOSTILE_SECONDS) beside honest clients, in an order that
# is another each time (HOSTILE_SEED). No virtual machine: this is for every machine; root makes two users of it.

cd "$(dirname "$0")/../../.." || exit
O=${O:-build/obj/default}
export O
exec sh tests/hostile/beside.sh -t "${HOSTILE_SECONDS:-600}" -b 10000 -j 6 -n 1000 -m 256
