#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# test_mutants.sh - scripts/mutants.sh says which mutants live, and ends, whatever processes tests leave behind
set -u
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0
ok() { # WHAT COMMAND...
	what=$1
	shift
	if "$@"; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "FAIL $what"
		sed 's/^/    /' "$work/out"
	fi
}

# A project of one file, whose tests are shell scripts: nothing is built.
tree=$work/tree
mkdir -p "$tree/scripts" "$tree/tests/unit"
cp scripts/mutants.sh scripts/mutants.awk "$tree/scripts/"
printf 'build/leat build/leatd build/leat-dump:\n' >"$tree/Makefile"
printf 'one\ntwo\nthree\n' >"$tree/code"
for i in 1 2 3; do
	line=$(sed -n ${i}p "$tree/code")
	printf '#!/bin/sh\n%s\n' "grep -q '$line' code" >"$tree/tests/unit/$line.sh"
	printf 'mutant 0%s-%s\n  A line is missing.\ntest unit/%s\nin code\n-%s\n+\n\n' "$i" "$line" "$line" "$line"
done >"$tree/tests/mutants.txt"
chmod +x "$tree"/tests/unit/*.sh

# runs them with two jobs; Return: whether it ended in time, with $1 as its last line
mutants_say() {
	want=$1
	(cd "$tree" && TMPDIR=$work CC=: timeout 60 scripts/mutants.sh -j 2) >"$work/out" 2>&1
	[ "$(tail -n 1 "$work/out")" = "$want" ]
}
left() { grep -lzxsF "LEFT_BY=$work" /proc/[0-9]*/environ | cut -d / -f 3; }

ok 'all are killed' mutants_say '3 passed, 0 failed'

# A process in a session of its own is not ended with the test's process group.
sed -i "s|^grep.*|& \|\| { LEFT_BY=$work setsid sleep 300 >/dev/null 2>\&1 \& exit 1; }|" "$tree"/tests/unit/*.sh
ok 'it ends though tests that fail leave processes behind' mutants_say '3 passed, 0 failed'
ok 'and ends those' test -z "$(left)"

sed -i 's/^grep.*/exit 0/' "$tree/tests/unit/two.sh"
ok 'one lives' mutants_say '2 passed, 1 failed'
ok 'which is named' grep -q 'LIVES .*02-two' "$work/out"

for pid in $(left); do
	kill "$pid"
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
