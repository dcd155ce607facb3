#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# test_variant_modes.sh - the flow tests with data moving in the other ways: calls that are cut, given up
# and sent again, files and names

set -u
. tests/lib/variant.sh

# Those that count by which way bytes go are left out.
suite='test_block_power test_block_server test_block_sync test_clnt_repair test_leat_io test_leat_mount test_leat_upgrade test_leat_names test_server_nfs test_server_once test_server_repeat test_stripe_epochs test_stripe_order test_stripe_server'
variant LEAT_TEST_MODES=read-read,fast-write,hybrid
suite='test_leat_io test_server_nfs'
variant LEAT_TEST_MODES=hybrid LEAT_TEST_CHAOS=41
variant LEAT_TEST_MODES=read-read,fast-write LEAT_TEST_CHAOS=42
variant_end
