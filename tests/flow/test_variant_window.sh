#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# test_variant_window.sh - the flow tests of data with a memory window for each call's memory
#
# test_clnt_plain and test_clnt_window choose windows themselves.

set -u
. tests/lib/variant.sh

suite='test_leat_io test_leat_mount test_leat_upgrade test_leat_names test_server_nfs test_server_overlap test_server_trust'
variant LEAT_TEST_REGISTRATION=window
variant_end
