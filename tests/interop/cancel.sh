#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# cancel.sh - sessions of two mounts over verbs: operations that are cancelled at random, and a leatd that is killed
#
# CANCELS is the number of operations for each pair of registrations (1000).

set -u
cd "$(dirname "$0")/../.." || exit
. tests/interop/lib.sh
in_vm 1200
setup

are_built verbs_session
leatd_start
ok 'verbs_session' timeout 1000 "$tools/verbs_session" "rdma://$addr/demo" "$work/export" "${CANCELS:-1000}" "$leatd_pid"
grep -E '^[0-9]+ operations|^\[  (PASSED|FAILED)' "$work/out"
leatd_stop KILL # it has been
same 'no queue pair is left' "$(queue_pairs)" 0
finish
