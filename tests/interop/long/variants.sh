#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# variants.sh - the flow tests of flows.txt over an RDMA device, in each variant (tests/lib/variant.c) that is not one of
#               the local fabric alone, and with each way to register memory
#
# Two run at once, each with a server and ports of its own. A test that a variable changes nothing in has not met it: that
# is said, and not counted. VARIANTS: a pattern of those to run (all).

set -u
cd "$(dirname "$0")/../../.." || exit
. tests/interop/lib.sh
: "${O:=build/obj/default}"

if [ "${1:-}" = --one ]; then
	name=$2 settings=$3 work=$4
	out=$work/$(echo "$settings $name" | tr ' =,' '___')
	tmp=/run/v.$$ # leat_flow.c wants a short one
	mkdir "$tmp"
	start=$(date +%s) rc=0
	# shellcheck disable=SC2086
	env $settings LEAT_FLOW_RDMA="$addr" LEAT_TEST_VARIANT=1 LEAT_TEST_CANCELS=50 TMPDIR="$tmp" \
		timeout 300 "$O/tests/flow/$name" >"$out" 2>&1 || rc=$?
	rm -rf "$tmp"
	count() { sed -n "s/^\[  $1 *\] \([0-9]*\) test(s).*/\1/p" "$out" | awk '{ n += $1 } END { print n + 0 }'; }
	what="$settings $name: $(count PASSED) passed, $(count SKIPPED) skipped, $(($(date +%s) - start)) s"
	if [ "$rc" -ne 0 ]; then
		echo "$what, status $rc" >"$out.bad"
		grep -E 'ERROR|LINE|FAILED|^line' "$out" | head -n 20 >>"$out.bad"
	elif ! grep -q '^variant: ' "$out"; then
		echo "$settings $name: meets nothing of it" >"$out.none"
	else
		echo "$what" >"$out.good"
	fi
	cat "$out".[bgn]*
	exit 0
fi

in_vm 7200
setup
while read -r settings; do
	for name in $(awk '!/^#/ { print $1 }' tests/interop/flows.txt); do
		case $settings:$name in
		# they count by which way bytes go, or mount with windows, which these modes refuse on every transport
		*MODES*:test_leat_where | *MODES*:test_svc_mem | *MODES*:test_prog | *MODES*:test_leat_cancel) continue ;;
		# they choose how memory is registered
		*:test_clnt_room | *:test_clnt_ready) continue ;;
		# it keeps a credit for a call that it does not answer
		*CREDITS*:test_prog) continue ;;
		# no data
		*REGISTRATION*:test_leat_acl | *REGISTRATION*:test_leat_error | *REGISTRATION*:test_leat_node*) continue ;;
		*REGISTRATION*:test_leat_fchdir | *REGISTRATION*:test_leat_names | *REGISTRATION*:test_leat_space) continue ;;
		esac
		echo "$settings $name" | grep -qE "${VARIANTS:-.}" && printf '%s\0' "$name" "$settings" "$work"
	done
done >"$work/list" <<'LIST'
LEAT_TEST_INLINE=1024
LEAT_TEST_INLINE=65536
LEAT_TEST_CREDITS=1
LEAT_TEST_CREDITS=falling
LEAT_TEST_NO_PRIV=clnt
LEAT_TEST_NO_PRIV=svc
LEAT_TEST_OVERLAP=streams
LEAT_TEST_OVERLAP=ordered
LEAT_TEST_SRQ=1
LEAT_TEST_SRQ=1 LEAT_TEST_CREDITS=falling
LEAT_TEST_MODES=read-read,fast-write,hybrid
LEAT_TEST_REGISTRATION=dynamic
LEAT_TEST_REGISTRATION=cache
LEAT_TEST_REGISTRATION=batch
LEAT_TEST_REGISTRATION=window
LEAT_TEST_REGISTRATION=slab
LIST
xargs -0 -n 3 -P 2 sh "$0" --one <"$work/list"
passed=$(find "$work" -name '*.good' | wc -l)
failed=$(find "$work" -name '*.bad' | wc -l)
same 'no queue pair is left' "$(queue_pairs)" 0
finish
