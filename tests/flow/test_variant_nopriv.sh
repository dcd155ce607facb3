#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# test_variant_nopriv.sh - the flow tests with no private data from client or server

set -u
. tests/lib/variant.sh

variant LEAT_TEST_NO_PRIV=clnt
variant LEAT_TEST_NO_PRIV=svc
variant_end
