#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# test_variant_chaos.sh - the flow tests with a fabric that is as late as it may

set -u
. tests/lib/variant.sh

variant LEAT_TEST_CHAOS=11
variant LEAT_TEST_CHAOS=2718
variant_end
