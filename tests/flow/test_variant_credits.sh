#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# test_variant_credits.sh - the flow tests with grants of one, and falling ones

set -u
. tests/lib/variant.sh

but='test_server_atime test_server_slow_fs test_server_status test_server_writable' # over TCP alone, where there are no credits
variant LEAT_TEST_CREDITS=1
variant LEAT_TEST_CREDITS=falling
variant_end
