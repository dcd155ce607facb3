#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# test_hostile.sh - each attack of tests/hostile once, beside honest clients

exec sh "$(dirname "$0")/../hostile/beside.sh" -r 1 -b 1500
