#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# test_errors.sh - what the leat command says when something fails: server, path, procedure, reason

set -eu
: "${LEAT:=build/leat}" "${LEATD:=build/leatd}"
. scripts/private-leatd.sh
. tests/lib/checks.sh

work=$(mktemp -d)
full='' benching=''
finish() {
	[ -z "$benching" ] || kill -KILL "$benching" 2>/dev/null || :
	[ -z "$leatd_pid" ] || kill -CONT "$leatd_pid" 2>/dev/null || :
	leatd_stop
	[ -z "$full" ] || umount "$full"
	chmod -R u+w "$work"
	rm -rf "$work"
}
trap finish EXIT
umask 022

says() { # TEXT COMMAND...: status 1, and exactly this line after "leat: "
	want=$1
	shift
	rc=0
	"$@" >"$work/out" 2>"$work/err" || rc=$?
	[ "$rc" -eq 1 ] || fail "$* -> $rc"
	[ "$(cat "$work/err")" = "leat: $want" ] ||
		fail "$*: said '$(cat "$work/err")' instead of 'leat: $want'"
	checks=$((checks + 1))
}
like() { # PATTERN COMMAND...: status 1, and one line like this
	want=$1
	shift
	rc=0
	"$@" >"$work/out" 2>"$work/err" || rc=$?
	[ "$rc" -eq 1 ] || fail "$* -> $rc"
	[ "$(wc -l <"$work/err")" -eq 1 ] || fail "$* said more than a line: $(cat "$work/err")"
	grep -qE -e "^leat: $want\$" "$work/err" || fail "$* said: $(cat "$work/err")"
	checks=$((checks + 1))
}

export_dir=$work/export
mkdir -p "$export_dir/d/closed" "$export_dir/tree/x" "$work/ro" "$work/full" "$work/tree"
: >"$work/tree/x"
echo text >"$export_dir/d/f"
echo text >"$export_dir/d/closed/f"
chmod 0 "$export_dir/d/closed"
echo text >"$export_dir/d/secret"
echo text >"$work/ro/secret"
chmod 0 "$export_dir/d/secret"
chmod 600 "$work/ro/secret"
echo text >"$work/ro/f"
echo text >"$work/local file"
leatd_options="--export /ro=$work/ro,ro,no_root_squash --export /squash=$work/ro,root_squash,insecure \
	--export /all=$work/ro,all_squash,anonuid=64001,insecure"
if mount -t tmpfs -o size=64k,mode=777 leat-full "$work/full" 2>/dev/null; then
	full=$work/full
	leatd_options="$leatd_options --export /full=$full,rw,no_root_squash"
fi
leatd_start "$export_dir" || exit 1
# this user, unlike root, cannot open a file without permissions, whatever user runs the test
nobody='?uid=65534&gid=65534'
[ "$(id -u)" -eq 0 ] || nobody=''

errors() { # URL
	url=$1 server=${1%/demo}

	# no such file: by every command that takes one
	noent='No such file or directory \(NFS3ERR_NOENT(, cached)?\)'
	none="$url/d/none: LOOKUP: $noent"
	for command in cat ls stat; do
		like "$none" "$LEAT" $command "$url/d/none"
	done
	like "$none" "$LEAT" get "$url/d/none" "$work/x"
	like "$none" "$LEAT" df "$url/d/none"
	like "$url/d/none/x: LOOKUP: $noent" "$LEAT" mkdir "$url/d/none/x"
	like "$url/d/none: (LOOKUP|REMOVE): $noent" "$LEAT" rm "$url/d/none"
	like "$url/d/none to /d/x: RENAME: $noent" \
		"$LEAT" mv "$url/d/none" "$url/d/x"
	says "$url/d/f: MKDIR: File exists (NFS3ERR_EXIST)" "$LEAT" mkdir "$url/d/f"

	# not permitted
	like "$url/d/closed/f: LOOKUP: Permission denied \\(NFS3ERR_ACCES\\)" \
		"$LEAT" cat "$url/d/closed/f$nobody"
	like "$url/d/closed/x: (MKDIR|LOOKUP): Permission denied \\(NFS3ERR_ACCES\\)" \
		"$LEAT" mkdir "$url/d/closed/x$nobody"
	like "$url/d/secret: ACCESS: Permission denied \\(the server grants this user no such access\\)" \
		"$LEAT" cat "$url/d/secret$nobody"
	like "$url/d/closed: READDIRPLUS: Permission denied \\(NFS3ERR_ACCES\\)" \
		"$LEAT" ls "$url/d/closed$nobody"

	# ... because the export maps us to another user, and not because of the mode
	if [ "$(id -u)" -eq 0 ]; then
		says "$server/squash/x: MKDIR: Permission denied (NFS3ERR_ACCES; export /squash squashes root to uid 65534: use \
no_root_squash, or run leat as another user)" "$LEAT" mkdir "$server/squash/x"
		says "$server/all/x: MKDIR: Permission denied (NFS3ERR_ACCES; export /all squashes all users to uid 64001)" \
			"$LEAT" mkdir "$server/all/x"
		squashed="$server/squash/secret: ACCESS: Permission denied (the server grants this user no such access; \
export /squash squashes root to uid 65534: use no_root_squash, or run leat as another user)"
		says "$squashed" "$LEAT" cat "$server/squash/secret"
		says "$squashed" "$LEAT" cp "$server/squash/secret" "$work/copy"
		says "$squashed" "$LEAT" cp "$work/local file" "$server/squash/secret"
	fi
	# an export that may only be read
	says "$server/ro/x: MKDIR: Read-only file system (NFS3ERR_ROFS)" "$LEAT" mkdir "$server/ro/x"
	like "$server/ro/f: REMOVE: Read-only file system \\(NFS3ERR_ROFS\\)" \
		"$LEAT" rm -f "$server/ro/f"
	like "$server/ro/x: (CREATE|ACCESS): Read-only file system \\(NFS3ERR_ROFS\\)" \
		"$LEAT" put "$work/local file" "$server/ro/x"

	# what is refused without asking
	like "$url/d: Is a directory" "$LEAT" cat "$url/d"
	says "$url/tree/x: Is a directory" "$LEAT" put -r "$work/tree" "$url"

	# no such export; no such server
	like "cannot mount $server/nowhere/f: MNT of /nowhere/f: the server exports no such path; it exports /[a-z, /]+" \
		"$LEAT" cat "$server/nowhere/f"
}
errors "$local_url"
errors "$tcp_url"

# what a terminal would obey, and what would forge a second line, is not said as it is
like "$tcp_url/d/esc\\?\\[31m\\?2: LOOKUP: No such file.*" "$LEAT" cat "$tcp_url/d/$(printf 'esc\033[31m\n2')"

says "cannot mount tcp://127.0.0.1:1/demo: tcp://127.0.0.1:1: Connection refused; no server \
listens there: is it running, is the port right?" "$LEAT" ls tcp://127.0.0.1:1/demo
like 'cannot mount tcp://no-such-host.invalid/x: tcp://no-such-host.invalid:2049: cannot resolve host' \
	"$LEAT" ls tcp://no-such-host.invalid/x
like "cannot mount local://$work/none/demo: $work/none/demo: no part of this path is a socket: does leatd run\\?" \
	"$LEAT" ls "local://$work/none/demo"

# no space
if [ -n "$full" ]; then
	head -c 300000 /dev/zero >"$work/large"
	server=${tcp_url%/demo}
	like "$server/full/x: (WRITE at offset [0-9]+|COMMIT): No space left on device \\(NFS3ERR_NOSPC\\)" \
		"$LEAT" put "$work/large" "$server/full/x"
else
	echo 'SKIP no space: a file system of one'\''s own cannot be mounted here'
fi

# stale: the file that is being written is taken away
mkfifo "$work/slow"
"$LEAT" put "$work/slow" "$tcp_url/d/gone" >"$work/out" 2>"$work/err" &
putting=$!
exec 4>"$work/slow"
until ls "$export_dir"/d/.leat-* >/dev/null 2>&1; do
	kill -0 $putting 2>/dev/null || fail "put ended: $(cat "$work/err")"
done
rm "$export_dir"/d/.leat-*
(trap '' PIPE && echo more >&4) 2>/dev/null || : # put may have seen it already, and ended
exec 4>&-
! wait $putting || fail 'writing to what is gone succeeded'
grep -qE "^leat: $tcp_url/d/gone: [A-Z]+( at offset 0)?: Stale file handle \\(NFS3ERR_STALE\\)\$" "$work/err" ||
	grep -qE "^leat: $tcp_url/d/gone: [A-Z]+: No such file or directory \\(NFS3ERR_NOENT\\)\$" "$work/err" ||
	fail "stale: $(cat "$work/err")"
checks=$((checks + 1))

# a bench of a server that answers no more, which the user ends: once is enough
env --default-signal=INT "$LEAT" bench null "$tcp_url" --qd 4 --seconds 1000 >"$work/out" 2>"$work/err" &
benching=$!
calls() { "$LEAT" ctl stats "${local_url%/demo}" | sed -n 's/^calls *//p'; }
enough=$(($(calls) + 1000))
until [ "$(calls)" -gt "$enough" ]; do
	kill -0 $benching 2>/dev/null || fail "bench ended: $(cat "$work/err")"
done
kill -STOP "$leatd_pid"
kill -INT $benching
rc=0
wait $benching || rc=$?
benching=''
kill -CONT "$leatd_pid"
[ "$rc" -eq 130 ] || fail "bench, interrupted: $rc"
if [ ! -s "$work/err" ]; then # all that was in flight had been answered
	grep -q 'server not known' "$work/out" || fail "bench said: $(cat "$work/out")"
else
	[ "$(cat "$work/err")" = "leat: $tcp_url: interrupted, and the server does not reply" ] ||
		fail "bench -> $rc: $(cat "$work/err")"
fi
checks=$((checks + 1))

# the server that goes away in between
leatd_stop
like "cannot mount local://$work/leatd.sock/demo: .*" "$LEAT" ls "$local_url"
echo "$checks checks"
