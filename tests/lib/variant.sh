# shellcheck shell=sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# variant.sh - for test_variant_*.sh: flow tests again with LEAT_TEST_ variables set (variant.c)
#
#   . tests/lib/variant.sh
#   variant LEAT_TEST_INLINE=1024
#   variant_end
#
# $suite, if set before: patterns of the tests' names; by default all of them. $but: names left out.
# What the last line says is counted by tests/run: the tests of all variants together.

: "${O:=build/obj/default}"
passed=0 failed=0
out=${TMPDIR:-/tmp}/variant.$$

# Every flow test with a client and a server of ours in it. Those with a peer that says exactly
# what it wants (test_srv_wire and the like) choose their thresholds themselves; test_leatd.sh and
# other scripts run programs that know nothing of these variables.
suite() {
	for n in ${suite:-test_block_* test_clnt_plain test_clnt_repair test_leat_* test_server_* test_stripe_epochs test_stripe_order test_stripe_server test_tirpc_* test_volume_manager}; do
		for f in tests/flow/$n.c; do
			case " ${but-} " in
			*" $(basename "$f" .c) "*) ;;
			*) [ ! -e "$f" ] || basename "$f" .c ;;
			esac
		done
	done
}

variant() { # VARIABLE=VALUE...
	settings="$* LEAT_TEST_VARIANT=1"
	for name in $(suite); do
		rc=0
		echo "== $settings $name"
		# shellcheck disable=SC2086
		env $settings "$O/tests/flow/$name" >"$out" 2>&1 || rc=$?
		p=$(sed -n 's/^\[  PASSED  *\] \([0-9]*\) test.*/\1/p' "$out" | awk '{ n += $1 } END { print n + 0 }')
		passed=$((passed + p))
		if [ "$rc" -ne 0 ]; then
			grep -v '^\[ *\(RUN\|OK\|[=-]*\) *\]' "$out" | tail -n 60
			echo "$settings $name: exit status $rc"
			failed=$((failed + 1))
		elif ! grep -q '^variant: ' "$out"; then
			echo "$settings $name: nothing of it took effect"
			failed=$((failed + 1))
		fi
	done
}

variant_end() {
	rm -f "$out"
	echo "[==========] $((passed + failed)) test(s) run."
	echo "[  PASSED  ] $passed test(s)."
	[ "$failed" -eq 0 ] || echo "[  FAILED  ] $failed test(s), listed above"
	[ "$failed" -eq 0 ]
}
