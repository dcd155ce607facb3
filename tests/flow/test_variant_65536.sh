#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# test_variant_65536.sh - the flow tests with inline thresholds of 65536

set -u
. tests/lib/variant.sh

variant LEAT_TEST_INLINE=65536
variant_end
