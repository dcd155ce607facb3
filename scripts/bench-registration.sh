#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# bench-registration.sh - what each registration strategy costs: `leat bench registration`
#
#   bench-registration.sh         on the local fabric, where registration has the price of $COST
#                                 (20,0.1,8,0.05: microseconds for one and for each page of it, and for its
#                                 end), and a model says what is to come of that
#   bench-registration.sh --vm    over soft RoCE in the virtual machine of tests/interop/vm, where it costs
#                                 what it costs, and only the order means something
#
# ROUNDS (3), SECS (0.25), and ARGS: which combinations; '' is all that there are by default.

set -eu
cd "$(dirname "$0")/.."
: "${LEAT:=build/leat}" "${LEATD:=build/leatd}" "${ROUNDS:=3}" "${SECS:=0.25}" "${COST:=20,0.1,8,0.05}" "${ARGS=--bs 64k --buffers 1000}"

if [ -n "${LEAT_VM:-}" ]; then
	work=$(mktemp -d)
	mkdir "$work/export"
	mkfifo "$work/words"
	"$LEATD" --state-dir "$work/state" --export "/demo=$work/export,rw,no_root_squash,clients=10.77.0.0/16" \
		--listen rdma://10.77.0.1 >"$work/words" 2>&1 &
	while read -r line; do
		[ "$line" != 'leatd: ready' ] || break
	done <"$work/words"
	cat "$work/words" >/dev/null &
	# shellcheck disable=SC2086
	exec "$LEAT" bench registration rdma://10.77.0.1/demo --rounds "$ROUNDS" --seconds "$SECS" $ARGS
fi

if [ "${1:-}" = --vm ]; then
	exec tests/interop/vm/vm -t "${LIMIT:-1800}" "LEAT='$LEAT' LEATD='$LEATD' ROUNDS='$ROUNDS' SECS='$SECS' \
		ARGS='$ARGS' sh '$0'"
fi

. scripts/private-leatd.sh
work=$(mktemp -d "${TMPDIR:-/tmp}/leat-bench.XXXXXX")
finish() {
	leatd_stop
	rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

mkdir "$work/export"
leatd_start "$work/export" 2>/dev/null
# shellcheck disable=SC2086
"$LEAT" bench registration "$local_url" --cost "$COST" --rounds "$ROUNDS" --seconds "$SECS" $ARGS
