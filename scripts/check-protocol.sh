#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# check-protocol.sh - compares the checklist of doc/protocol.md with the results of this run of the tests
#
#   scripts/check-protocol.sh [-v] LOGDIR     LOGDIR as given to tests/run; -v: print statistics
#   scripts/check-protocol.sh -i LOGDIR       only the tests under interop/, after a run of scripts/interop.sh
#
#   - items 1 to 90 exist, once each, in order
#   - each names tests, or says "later:" and the feature that it waits for, or both
#   - each test named is in the file named, and its log shows that it passed every time it ran (a test may
#     run over several transports: `name over_tcp`, `tcp: name`, `name (tcp)`)
#   - a file named without a test ran; no test in it failed, and it was not skipped as a whole. Files under
#     interop/ are checked with -i only; a skipped one is reported, but is no failure
#   - section 9 has each status of NFS and MOUNT, with tests that name it and passed, or "never:" and the reason
#   - `Item:` of a mutant is an item with tests, and the mutant's test is one of them

set -u
verbose='' interop=''
case ${1:-} in
-v) verbose=1; shift ;;
-i) interop=1; shift ;;
esac
logs=${1:-}
doc=doc/protocol.md
[ -d "$logs" ] || { echo 'usage: scripts/check-protocol.sh [-v | -i] LOGDIR' >&2; exit 2; }
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
say() { echo "check-protocol: $*"; echo . >>"$tmp/bad"; }

# item TAB tests, separated by blanks, TAB what it waits for
sed -n '/^## 8\./,$s/^| *\([0-9][0-9]*\) |.*| *\([^|]*\) |$/\1|\2/p' "$doc" >"$tmp/rows"
awk -F'|' '{ if ($1 != NR) { print "item " NR " is not where it should be (" $1 ")"; exit } }
	END { if (NR != 90) print NR " items, not 90" }' "$tmp/rows" >"$tmp/order"
while read -r line; do say "$line"; done <"$tmp/order"

log_of() { # unit/test_x.c -> LOGDIR/unit_test_x.log
	echo "$logs/$(echo "$1" | sed 's/\.c$//; s/\(^interop.*\)\.sh$/\1/; s,^fuzz/fuzz_,fuzz/replay_,' | tr / _)"
}

whole() { # ITEM FILE
	base=$(log_of "$2")
	if [ ! -e "$base.sum" ]; then
		say "item $1: $2 did not run"
	elif [ -n "$interop" ] && grep -qx '0 0 1' "$base.sum"; then
		echo "check-protocol: item $1: $2 was skipped"
	elif ! awk '$1 > 0 && $2 == 0 { ok = 1 } END { exit !ok }' "$base.sum"; then
		say "item $1: $2 did not pass"
	fi
}

one() { # ITEM FILE NAME
	base=$(log_of "$2")
	grep -qw "$3" "tests/$2" || say "item $1: no $3 in tests/$2"
	if [ ! -e "$base.log" ]; then
		say "item $1: $2 did not run"
	elif grep -E "^\[  (FAILED|SKIPPED) +\] (.*: )?$3( .*)?\$" "$base.log" >"$tmp/grep"; then
		say "item $1: $3 of $2 did not pass"
	elif ! grep -qE "^\[       OK \] (.*: )?$3( .*)?\$" "$base.log"; then
		say "item $1: $3 of $2 did not run"
	fi
}

while IFS='|' read -r item cell; do
	# shellcheck disable=SC2016 # the backquotes are the document's
	tests=$(echo "$cell" | grep -oE '`[^`]*\.(c|sh)(:[^`]*)?`' | tr -d '`')
	case $cell in
	*later:*) echo "$item" >>"$tmp/later" ;;
	*) [ -n "$tests" ] || say "item $item has neither a test nor a \"later:\"" ;;
	esac
	[ -z "$tests" ] || echo "$item" >>"$tmp/tested"
	for t in $tests; do
		file=${t%%:*}
		echo "$item ${file%.c}" >>"$tmp/files"
		case $file in
		interop/*) elsewhere=$([ -n "$interop" ] || echo 1) ;;
		*) elsewhere=$interop ;;
		esac
		if [ ! -e "tests/$file" ]; then
			say "item $item: no tests/$file"
		elif [ -n "$elsewhere" ]; then
			: # the other run's
		elif [ "$file" = "$t" ]; then
			whole "$item" "$file"
		else
			one "$item" "$file" "${t#*:}"
		fi
	done
done <"$tmp/rows"

# ---- section 9: every status of the .x files has a row, and each row a test that says its name --------

# the text of a function: its name at the left margin, up to a brace there
body() { # FILE NAME
	awk -v name="$2" '$0 ~ "(^|[ *])" name "\\(" && /^[a-z]/ { on = 1 } on { print } on && /^}/ { exit }' "tests/$1"
}

sed -n '/^## 9\./,$s/^| \(NFS3ERR_[A-Z]*\|MNT3ERR_[A-Z]*\) |.*| *\([^|]*\) |$/\1|\2/p' "$doc" >"$tmp/statuses"
cut -d '|' -f 1 "$tmp/statuses" >"$tmp/listed"
sed -n 's/^[[:space:]]*\(NFS3ERR_[A-Z]*\|MNT3ERR_[A-Z]*\) = .*/\1/p' xdr/nfs3.x xdr/mount3.x >"$tmp/defined"
diff "$tmp/defined" "$tmp/listed" >"$tmp/grep" || say "section 9 and xdr/*.x differ in: $(grep '^[<>]' "$tmp/grep" | tr '\n' ' ')"
while IFS='|' read -r status cell; do
	# shellcheck disable=SC2016 # the backquotes are the document's
	tests=$(echo "$cell" | grep -oE '`[^`]*\.c:[^`]*`' | tr -d '`')
	case $cell in
	never:*) [ -z "$tests" ] || say "$status is never returned, but has tests" ;;
	*) [ -n "$tests" ] || say "$status has no test" ;;
	esac
	for t in $tests; do
		[ -n "$interop" ] || one "$status" "${t%%:*}" "${t#*:}"
		body "${t%%:*}" "${t#*:}" | grep -qw "$status" || say "$status is not in $t"
	done
done <"$tmp/statuses"

touch "$tmp/files" "$tmp/tested" "$tmp/later" "$tmp/mutated"
awk -v mode=items -f scripts/mutants.awk tests/mutants.txt | while read -r name item test; do
	echo "$item" >>"$tmp/mutated"
	grep -qx "$item $test" "$tmp/files" || say "mutant $name: $test is no test of item $item"
done

if [ -n "$verbose" ]; then
	count() { sort -un "$1" | wc -l; }
	echo "check-protocol: $(count "$tmp/tested") items with tests," \
		"$(sort -un "$tmp/later" | grep -cvxF -f "$tmp/tested") later," \
		"$(sort -un "$tmp/later" | grep -cxF -f "$tmp/tested") in part later;" \
		"$(count "$tmp/mutated") items with mutants"
	echo "check-protocol: without a mutant: $(sort -un "$tmp/tested" | grep -vxF -f "$tmp/mutated" | tr '\n' ' ')"
fi
[ ! -e "$tmp/bad" ]
