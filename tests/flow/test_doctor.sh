#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# test_doctor.sh - leat doctor: a line per subject, the way to a private leatd and why, exit status

set -eu
. tests/lib/checks.sh
cli_start

doctor() { # STATUS ARGUMENT...
	status=$1
	shift
	rc=0
	timeout 60 "$LEAT" doctor "$@" >"$work/out" 2>"$work/err" || rc=$?
	[ "$rc" -eq "$status" ] || fail "doctor $* -> $rc instead of $status: $(cat "$work/out" "$work/err")"
	[ ! -s "$work/err" ] || fail "doctor $* said: $(cat "$work/err")"
	! grep -vE '^(rdma|memlock|ptrace|hugepages|files|aio|processors|network|server|path|way|messages|memory|direct io) +(ok|slower|missing) +[^ ]' \
		"$work/out" || fail "doctor $*: a line that is none"
	checks=$((checks + 1))
}
says() { # PATTERN
	grep -qE -e "$1" "$work/out" || fail "no '$1' in: $(cat "$work/out")"
	checks=$((checks + 1))
}
says_not() { # PATTERN
	! grep -E -e "$1" "$work/out" || fail "'$1' in: $(cat "$work/out")"
	checks=$((checks + 1))
}

sock=$work/leatd.sock
leat_url=leat://${tcp_url#tcp://}

# the machine alone; nothing that it lacks is a failure
export XDG_RUNTIME_DIR="$work/none"
if [ ! -e /run/leat/leatd.sock ]; then
	doctor 0
	says '^server +ok +none of this host'
fi
doctor 0 "$work/export"
for subject in rdma memlock ptrace hugepages files processors 'direct io'; do
	says "^$subject "
done
says "^direct io .*$work/export: "
[ "$(ls -A "$work/export")" = '' ] || fail 'the trial of O_DIRECT leaves a file'
if [ -z "$(ls -A /sys/class/infiniband 2>/dev/null)" ]; then
	says '^rdma +missing +no RDMA device'
fi
says_not '^server'

# the best way, and what else there was to choose from
doctor 0 "$local_url"
says '^server +ok +leatd .*/demo$'
says '^way +ok +local: the URL asks for it'
says '^messages +ok +calls of 4096 and replies of 4096 bytes'
says '^memory .*leat_buf memory directly, other memory by '
says_not '^network'
doctor 0 "local://$sock"
says '^way +ok +local'
doctor 0 "$leat_url"
says '^way +ok +local: the server runs on this host'
says '^network +ok .*127.0.0.1'
says_not '^way +missing'
doctor 0 "$tcp_url"
says '^way +slower +tcp: the URL asks for it'
says '^memory +slower +all memory by copies through a socket'

# doctor lists a better transport that fails with its reason, in the order of the attempts
mv "$sock" "$sock.away"
doctor 0 "$leat_url"
grep -E '^way ' "$work/out" >"$work/ways"
[ "$(wc -l <"$work/ways")" -eq 3 ] || fail "not three ways: $(cat "$work/ways")"
sed -n 1p "$work/ways" | grep -q "missing not local://$sock: no socket" || fail "$(cat "$work/ways")"
sed -n 2p "$work/ways" | grep -q 'missing not rdma: the server has no such listener' || fail "$(cat "$work/ways")"
sed -n 3p "$work/ways" | grep -q 'slower  tcp: ' || fail "$(cat "$work/ways")"
checks=$((checks + 3))
doctor 1 "$local_url"
says '^server +missing .*no part of this path is a socket'
mv "$sock.away" "$sock"
doctor 1 "local://$sock/block/none" # this server has no volumes
says '^server +missing .*has no such volume, and exports no such path'
chmod 777 "$work"
doctor 0 "$leat_url"
says "^way +missing not local://$sock: others could replace the socket, by mode 0777 of "
says '^way +slower +tcp: no local'
"$LEAT" ping -c 1 "$leat_url" >"$work/out"
says "^not +local://$sock: others could replace the socket, by mode 0777 of "
chmod 700 "$work"

# what does not work at all
doctor 1 "${tcp_url%/demo}/nothing"
says '^server +missing .*/nothing: the server exports no such path'
doctor 1 "$tcp_url/nope"
says "^path +missing +$tcp_url/nope: LOOKUP: No such file or directory"
says '^way +slower +tcp'
doctor 0 "${tcp_url%/demo}"
doctor 1 "$tcp_url?credits=x" "$local_url"
says '^server +missing .*credits'
says '^way +ok +local'
doctor 1 "$work/nothing"
says '^direct io +missing .*No such file'
leatd_stop
doctor 1 "$tcp_url"
says '^server +missing .*Connection refused'
rc=0
"$LEAT" doctor -x >"$work/out" 2>&1 || rc=$?
[ "$rc" -eq 2 ] || fail "wrong usage -> $rc"

echo "$checks checks passed"
