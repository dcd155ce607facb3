#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# test_variant_srq.sh - flow tests with receives that all connections share, in chaos as well

set -u
. tests/lib/variant.sh

suite='test_srv_wire test_srv_chunks test_srv_limits test_srv_memory test_clnt_plain test_clnt_repair test_leat_io test_server_once test_server_repeat'
variant LEAT_TEST_SRQ=1
suite=test_clnt_plain
variant LEAT_TEST_SRQ=1 LEAT_TEST_CHAOS=3
variant LEAT_TEST_SRQ=1 LEAT_TEST_CREDITS=falling
variant_end
