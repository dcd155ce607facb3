#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# test_variant_1024.sh - the flow tests with inline thresholds of 1024

set -u
. tests/lib/variant.sh

variant LEAT_TEST_INLINE=1024
variant_end
