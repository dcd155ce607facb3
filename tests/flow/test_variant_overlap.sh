#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# test_variant_overlap.sh - the flow tests with requests in pieces that go their own ways

set -u
. tests/lib/variant.sh

# test_server_twins counts writes to the disk, and so wants them whole
but='test_leat_block test_leat_block_lanes test_leat_block_life test_leat_block_replies' # against a peer of their own
suite='test_block_server test_block_sync test_leat_* test_server_callers test_server_nfs test_server_once test_server_repeat test_server_reload test_stripe_epochs test_stripe_order test_stripe_server'
variant LEAT_TEST_OVERLAP=streams
variant LEAT_TEST_OVERLAP=ordered
variant LEAT_TEST_OVERLAP=streams LEAT_TEST_CHAOS=31
variant_end
