#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# check-mutants.sh - does each mutant of tests/mutants.txt still fit the code, and name a test that there is?

cd "$(dirname "$0")/.." || exit
rc=0
awk -v mode=check -f scripts/mutants.awk tests/mutants.txt || rc=1
for test in $(awk -v mode=list -f scripts/mutants.awk tests/mutants.txt | cut -d ' ' -f 2 | sort -u); do
	[ -e "tests/$test.c" ] || [ -e "tests/$test.sh" ] || {
		echo "mutants: there is no test $test"
		rc=1
	}
done
[ $rc -ne 0 ] || echo "mutants: $(grep -c '^mutant ' tests/mutants.txt) fit"
exit $rc
