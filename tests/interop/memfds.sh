#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# memfds.sh - two users at the local socket: one passes descriptors of every kind instead of its memory, and
# root's leatd, or root's leat, is none the worse; with free huge pages and without

set -u
cd "$(dirname "$0")/../.." || exit
. tests/interop/lib.sh
in_vm 900
setup
memfds=$O/tests/interop/memfds
user='setpriv --reuid=1234 --regid=1234 --clear-groups'
chmod 755 "$work"
mkdir -m 755 "$work/export" "$work/public"
mkdir -m 700 "$work/theirs"
chown 1234:1234 "$work/theirs"
head -c 1048576 "$work/random" >"$work/export/small"
cp "$work/export/small" "$work/theirs/small"
chown 1234:1234 "$work/theirs/small"

mappings() { grep -c 'memfd:evil' "/proc/$1/maps" || :; }

for free in 0 8; do
	section "$free huge pages"
	echo "$free" >/proc/sys/vm/nr_hugepages
	same 'free huge pages' "$(awk '/^HugePages_Free/ { print $2 }' /proc/meminfo)" "$free"

	leatd_start --listen "local://$work/public/sock"
	ok 'an honest copy first' timeout 60 "$LEAT" get "local://$work/public/sock/demo/small" "$work/back"
	for round in 1 2; do
		ok "a hostile user, round $round" timeout 200 $user "$memfds" read \
			"local://$work/public/sock/demo?retry=soft&timeo=500"
		[ "$round" -gt 1 ] || sed 's/^/          /' "$work/out"
		same "nothing of it is mapped, round $round" "$(mappings "$leatd_pid")" 0
		ok "an honest copy, round $round" timeout 60 "$LEAT" get "local://$work/public/sock/demo/small" \
			"$work/back"
		ok "the same, round $round" cmp "$work/back" "$work/export/small"
	done
	leatd_stop

	for type in rings bounce; do
		for kind in $("$memfds" kinds); do
			mkfifo "$work/line"
			timeout 60 $user "$memfds" serve "$work/theirs" "$work/theirs/sock" "$type" "$kind" \
				<"$work/line" >"$work/server.log" 2>&1 &
			server=$!
			exec 5>"$work/line"
			wait_for 20 grep -q ready "$work/server.log"
			# the status is the kind's; a signal is ours
			rc=0
			timeout 20 "$LEAT" get "local://$work/theirs/sock/demo/small?retry=soft&timeo=500" "$work/back" \
				>"$work/out" 2>&1 || rc=$?
			ok "root's client of a hostile server: $type, $kind: status $rc" test "$rc" -lt 2
			exec 5>&-
			ended "the server of $type, $kind" "$server" "$work/server.log"
			rm -f "$work/line"
		done
	done
done
echo 0 >/proc/sys/vm/nr_hugepages
finish
