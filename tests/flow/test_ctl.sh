#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# test_ctl.sh - leat ctl and SIGHUP: a running leatd is asked, reads its configuration again, and ends

set -eu
: "${LEAT:=build/leat}" "${LEATD:=build/leatd}"
. tests/lib/checks.sh
case $LEAT in /*) ;; *) LEAT=$PWD/$LEAT ;; esac
case $LEATD in /*) ;; *) LEATD=$PWD/$LEATD ;; esac

work=$(mktemp -d)
pid='' copy=''
finish() {
	[ -z "$copy" ] || kill -KILL "$copy" 2>/dev/null || :
	[ -z "$pid" ] || kill -KILL "$pid" 2>/dev/null || :
	rm -rf "$work"
}
trap finish EXIT
mkdir "$work/a" "$work/b"
echo in a >"$work/a/f"
echo in b >"$work/b/f"
url=local://$work/sock

says() { # PATTERN: the last command did
	grep -qE -e "$1" "$work/out" || fail "no '$1' in: $(cat "$work/out")"
	checks=$((checks + 1))
}

# from its own directory, with a file of relative paths
port=0
start() { leatd_run env -C "$work" "$LEATD" --state-dir state -c conf; }
ended() { # it ends of itself, with status 0
	rc=0
	wait "$pid" || rc=$?
	pid=
	[ "$rc" -eq 0 ] || fail "leatd ended with $rc: $(cat "$work/log")"
	checks=$((checks + 1))
}
# SIGHUP has no answer but in the log
hup() { # LINES-BEFORE PATTERN
	kill -HUP "$pid"
	while [ "$(grep -cE -e "$2" "$work/log")" -le "$1" ]; do
		kill -0 "$pid" 2>/dev/null || fail "SIGHUP has ended it: $(cat "$work/log")"
	done
	checks=$((checks + 1))
}

server="[server]
listen = local://$work/sock
listen = tcp://127.0.0.1:0"
a='[export /a]
path = a'
b='[export /b]
path = b'
printf '%s\n' "$server" "$a" >"$work/conf"
start
tcp=tcp://127.0.0.1:$port

# what it says of itself, to every user
ok "$LEAT" ctl info "$url"
says '^server  *leatd [0-9].* instance [0-9a-f]+$'
says "^listens on  *local://$work/sock\$"
says "^listens on  *$tcp\$"
ok "$LEAT" ctl info "$tcp"
says "^listens on  *local://$work/sock\$"
ok "$LEAT" ctl stats "$tcp"
says '^cpu_us +[0-9]+$'
says '^drc_hits +[0-9]+$'
says '^pool_limit +268435456$'
says '^pool_4k_free +[0-9]+$'
ok "$LEAT" ctl info "$url/none/such" # no export is needed for that

# wrong usage
bad 2 'usage: leat ctl' "$LEAT" ctl
bad 2 'usage: leat ctl' "$LEAT" ctl info
bad 2 'usage: leat ctl' "$LEAT" ctl info "$url" more
bad 2 'nonsense: no such verb' "$LEAT" ctl nonsense "$url"
bad 1 'no part of this path is a socket' "$LEAT" ctl info "local://$work/none"

# an export more, one less, other options; a relative path means what it did at start
bad 1 'exports no such path' "$LEAT" cat "$url/b/f"
printf '%s\n' "$server" "$a" "$b" >"$work/conf"
ok "$LEAT" ctl reload "$url"
says '^reloaded: 2 exports$'
ok "$LEAT" cat "$url/b/f"
says '^in b$'
grep -q "export /b: $work/b, read and write" "$work/log" || fail "log: $(cat "$work/log")"
printf '%s\n' "$server" "$a" 'ro = yes' >"$work/conf"
hup "$(grep -c 'configuration read again' "$work/log")" 'configuration read again'
bad 1 'exports no such path' "$LEAT" cat "$url/b/f"
bad 1 'Read-only file system' "$LEAT" mkdir "$url/a/d"
grep -q 'export /b: not served any more' "$work/log" || fail "log: $(cat "$work/log")"
grep -q "export /a: $work/a, read-only" "$work/log" || fail "log: $(cat "$work/log")"

# what takes a restart is named, and is as it was
printf '%s\n' "$server" 'reactors = 3' 'inline = 8192' "listen = local://$work/more" 'everyone = yes' "$a" 'no_root_squash = yes' >"$work/conf"
ok "$LEAT" ctl reload "$url"
says '^reloaded: 1 export; as they were until a restart: listen, reactors, inline, everyone$'
grep -q 'these stay as they were until a restart: listen, reactors, inline, everyone' "$work/log" ||
	fail "log: $(cat "$work/log")"
[ ! -e "$work/more" ] || fail 'it listens on more'
ok "$LEAT" mkdir "$url/a/d"

# a file that is wrong changes nothing, and says where
now=$(grep -c 'nothing is changed' "$work/log" || :)
printf '%s\n' "$server" 'colour = blue' "$b" >"$work/conf"
bad 1 "conf:4: .*colour" "$LEAT" ctl reload "$url"
ok "$LEAT" cat "$url/a/f"
bad 1 'exports no such path' "$LEAT" cat "$url/b/f"
printf '%s\n' "$server" "$b" '[export /c]' 'path = nowhere' >"$work/conf"
hup 0 'nothing is changed: conf:6: nowhere: No such file'
bad 1 "conf:6: nowhere: No such file" "$LEAT" ctl reload "$url"
rm "$work/conf"
bad 1 'conf: No such file' "$LEAT" ctl reload "$url"
printf '%s\n' "$server" >"$work/conf"
bad 1 'nothing to export' "$LEAT" ctl reload "$url"
ok "$LEAT" cat "$url/a/f"
says '^in a$'
[ "$(grep -c 'nothing is changed' "$work/log")" -eq $((now + 5)) ] || fail "log: $(cat "$work/log")"

# how much is logged
printf '%s\n' "$server" 'quiet = yes' "$a" >"$work/conf"
ok "$LEAT" ctl reload "$url"
printf '%s\n' "$server" "$a" "$b" >"$work/conf"
now=$(wc -l <"$work/log")
ok "$LEAT" ctl reload "$url"
! sed "1,${now}d" "$work/log" | grep -q 'asks for' || fail "not quiet: $(cat "$work/log")"
now=$(wc -l <"$work/log")
ok "$LEAT" ctl reload "$url"
sed "1,${now}d" "$work/log" | grep -q 'asks for a reload' || fail "still quiet: $(cat "$work/log")"

# only for the user that runs it, and only where the kernel names the peer's user
bad 1 'own user' "$LEAT" ctl reload "$tcp"
bad 1 'own user' "$LEAT" ctl drain "$tcp"
other='setpriv --reuid 64002 --regid 64002 --clear-groups'
if [ "$(id -u)" -eq 0 ] && $other "$LEAT" --version >/dev/null 2>&1; then
	chmod 755 "$work"
	# shellcheck disable=SC2086
	bad 1 'own user' $other "$LEAT" ctl reload "$url"
	# shellcheck disable=SC2086
	bad 1 'own user' $other "$LEAT" ctl drain "$url"
	# shellcheck disable=SC2086
	ok $other "$LEAT" ctl info "$url"
	grep -q 'uid 64002 asked for a drain, which is not theirs to ask' "$work/log" || fail "log: $(cat "$work/log")"
else
	echo 'skipped: another user'
fi
kill -0 "$pid" || fail 'it has ended'

# the end: no new connections, status 0
ok "$LEAT" ctl drain "$url"
ended
[ ! -e "$work/sock" ] || fail 'the socket is still there'
bad 1 'no part of this path is a socket' "$LEAT" ctl info "$url"

# listeners that other hosts reach are there whatever the file says of them now
printf '%s\n' '[server]' "listen = local://$work/sock" 'listen = tcp://0.0.0.0:0' "$a" 'clients = 127.0.0.1' >"$work/conf"
start
printf '%s\n' '[server]' "listen = local://$work/sock" "$a" >"$work/conf"
bad 1 'would be reached by other hosts' "$LEAT" ctl reload "$url"
ok "$LEAT" ctl drain "$url"
ended

# in the middle of a copy: one that waits finishes with the next leatd, one that does not says so
growing() { find "$work/a" -name '.leat-*' -size +0 2>/dev/null | grep -q .; }
begin() { # COMMAND...
	"$@" >"$work/said" 2>&1 &
	copy=$!
	until growing; do
		kill -0 "$copy" 2>/dev/null || fail "$* has ended before anything could be seen: $(cat "$work/said")"
	done
}
head -c 67108867 /dev/urandom >"$work/big"
for way in local tcp; do
	printf '%s\n' "$server" "$a" 'no_root_squash = yes' >"$work/conf"
	start
	at=$url/a/big
	[ "$way" = local ] || at=tcp://127.0.0.1:$port/a/big
	begin "$LEAT" put "$work/big" "$at?wsize=4096&retry=soft&timeo=1000"
	ok "$LEAT" ctl drain "$url"
	ended
	rc=0
	wait "$copy" || rc=$?
	copy=
	[ "$rc" -eq 1 ] || fail "a copy that may give up, over $way: $rc: $(cat "$work/said")"
	grep -q 'big' "$work/said" || fail "a copy that gave up said: $(cat "$work/said")"
	[ ! -e "$work/a/big" ] || fail 'half a copy has its name'
	rm -f "$work"/a/.leat-*
	checks=$((checks + 1))

	[ "$(id -u)" -eq 0 ] || continue # without privilege no handle outlives its leatd
	start
	at=$url/a/big
	if [ "$way" = tcp ]; then
		at=tcp://127.0.0.1:$port/a/big
		printf '%s\n' '[server]' "listen = local://$work/sock" "listen = tcp://127.0.0.1:$port" "$a" \
			'no_root_squash = yes' >"$work/conf"
	fi
	begin "$LEAT" put "$work/big" "$at?wsize=4096"
	ok "$LEAT" ctl drain "$url"
	ended
	kill -0 "$copy" 2>/dev/null || fail "the copy did not wait for the next leatd: $(cat "$work/said")"
	start
	rc=0
	wait "$copy" || rc=$?
	copy=
	[ "$rc" -eq 0 ] || fail "the copy over $way: $rc: $(cat "$work/said")"
	cmp "$work/big" "$work/a/big" || fail "other bytes over $way"
	rm "$work/a/big"
	ok "$LEAT" ctl drain "$url"
	ended
done

# a leatd that was started meanwhile did not do what the one before it had counted
if [ "$(id -u)" -eq 0 ]; then
	printf '%s\n' "$server" "$a" 'no_root_squash = yes' >"$work/conf"
	start
	head -c 1048576 "$work/big" >"$work/a/read"
	sent() { "$LEAT" ctl stats "$url" | sed -n 's/^bytes_out *//p'; }
	"$LEAT" bench read "$url/a/read" --size 1M --seconds 86400 >"$work/said" 2>&1 &
	copy=$!
	until [ "$(sent)" -gt 16777216 ]; do # more than we alone would get by asking
		kill -0 "$copy" 2>/dev/null || fail "bench has ended: $(cat "$work/said")"
	done
	kill -KILL "$pid"
	wait "$pid" 2>/dev/null || :
	start
	kill -TERM "$copy"
	rc=0
	wait "$copy" || rc=$?
	copy=
	[ "$rc" -eq 143 ] || fail "bench -> $rc: $(cat "$work/said")"
	grep -q 'server not known' "$work/said" || fail "bench said: $(cat "$work/said")"
	"$LEAT" bench read "$url/a/read" --size 1M --seconds 1 >"$work/said" 2>&1 || fail "bench: $(cat "$work/said")"
	grep -q 'server [0-9.]* s/GiB' "$work/said" || fail "bench said: $(cat "$work/said")"
	ok "$LEAT" ctl drain "$url"
	ended
	checks=$((checks + 2))
else
	echo 'skipped: bench over a restart'
fi

echo "$checks checks passed"
