#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# test_cli_volume.sh - leat volume: creates a volume whose leatds start as it says, asks its servers, shows where files lie, changes its map

set -eu
. tests/lib/checks.sh
: "${LEAT:=build/leat}" "${LEATD:=build/leatd}"
work=$(mktemp -d "${TMPDIR:-/tmp}/volume.XXXXXX")
pids=
finish() {
	for p in $pids; do
		kill "$p" 2>/dev/null || :
		wait "$p" 2>/dev/null || :
	done
	rm -rf "$work"
}
trap finish EXIT

has() { # PATTERN: in the output of the last command
	grep -qE -e "$1" "$work/out" || fail "no '$1' in: $(cat "$work/out")"
	checks=$((checks + 1))
}
start() { # NAME: the leatd of that configuration
	leatd_run "$LEATD" --config "$work/vol/$1.conf"
	pids="$pids $pid"
}

bad 2 'servers' "$LEAT" volume create "$work/vol"
bad 2 'no such verb' "$LEAT" volume grow "$work/vol"
bad 1 'which clients' "$LEAT" volume create --servers tcp://10.0.0.1 "$work/vol"
bad 1 'power of two' "$LEAT" volume create --servers "local://$work/s1" --stripe 96K "$work/vol"
bad 1 "two servers have the URL local://$work/s1\$" "$LEAT" volume create --servers "local://$work/s1,local://$work/s1" "$work/vol"
bad 1 'width 3: there is 1 server$' "$LEAT" volume create --servers "local://$work/s1" --width 3 "$work/vol"
[ ! -e "$work/vol" ] || fail 'a refused volume leaves something behind'

ok "$LEAT" volume create "$work/vol" --servers "local://$work/s1,local://$work/s2" --stripe 64K
has "^# leatd --config $work/vol/manager.conf\$"
has '^\[volume vol\]$'
has "^listen = local://$work/s2\$"
cp "$work/vol/key" "$work/key"
bad 1 'File exists' "$LEAT" volume create "$work/vol" --servers "local://$work/s3"
cmp -s "$work/key" "$work/vol/key" || fail 'the key was replaced'

[ "$(id -u)" -ne 0 ] || grep -q '^root_squash = no$' "$work/vol/manager.conf" || fail 'root is squashed'
"$LEAT" volume create "$work/net" --servers tcp://h:1 --listen tcp://h:2 --clients 10.0.0.1 >"$work/out"
if grep root_squash "$work/out"; then
	fail 'root of other machines is not squashed'
fi

mkdir "$work/plain"
printf '\n[export /plain]\npath = %s/plain\n' "$work" >>"$work/vol/manager.conf"
sed -i 's/^\[volume vol\]$/&\nstripe_timeo = 500ms/' "$work/vol/manager.conf"
start server-1
start server-2
second=$pid
start manager
manager=$pid
ok "$LEAT" ls "local://$work/vol/sock/vol"

# ---- files, in and back
mkdir "$work/tree"
head -c 1500000 /dev/urandom >"$work/tree/large"
echo hello >"$work/tree/small"
: >"$work/tree/empty"
truncate -s 300000 "$work/tree/sparse"
echo end >>"$work/tree/sparse"
ok "$LEAT" cp -r "$work/tree" "local://$work/vol/sock/vol/tree"
ok "$LEAT" cp -r "local://$work/vol/sock/vol/tree" "$work/back"
ok diff -r "$work/tree" "$work/back"
ok "$LEAT" ls -l "local://$work/vol/sock/vol/tree"
has ' 1500000 .* large$'
ok "$LEAT" rm "local://$work/vol/sock/vol/tree/large"
bad 1 'No such file' "$LEAT" ls "local://$work/vol/sock/vol/tree/large"

# ---- its servers
export=local://$work/vol/sock/vol
volume=$(sed -n 's/^volume = //p' "$work/vol/map")
ok "$LEAT" volume status --map "$work/vol/map" --key "$work/vol/key"
has "^volume $volume, version 1 of its map"
has "^ +1 full .* -?[0-9]+ ms +[0-9]+ [0-9a-f]{16}  local://$work/s1\$"
has "^ +2 full .* local://$work/s2\$"
has '^free: .*; a new file on 2 servers: '
ok "$LEAT" volume df --map "$work/vol/map" --key "$work/vol/key"
has '^server state +size +used +free +use  URL$'
# df, `leat df` and `leat volume df` agree about one file system (while it is in use, within a few percent)
near() { # MINE THEIRS: in percent
	{ [ "$1" -le $(($2 + 3)) ] && [ "$1" -ge $(($2 - 3)) ]; } || fail "used: $1 %, and df has $2 %"
	checks=$((checks + 1))
}
df=$(df -P "$work" | awk 'NR == 2 { print $5 + 0 }')
near "$(awk '$1 == 1 { print $6 + 0 }' "$work/out")" "$df"
near "$("$LEAT" df "local://$work/vol/sock/vol" | awk 'NR == 2 { print $4 + 0 }')" "$df"
has "^ +1 full +[0-9.]+[KMGTP]? +[0-9.]+[KMGTP]? +[0-9.]+[KMGTP]? +[0-9]+%  local://$work/s1\$"
has '^free: .*; a new file on 2 servers: '
some() { # PATTERN: the last command prints it, and fails without a message
	rc=0
	"$LEAT" volume status --map "$1" --key "$2" >"$work/out" 2>"$work/err" || rc=$?
	{ [ "$rc" -eq 1 ] && [ ! -s "$work/err" ]; } || fail "status: $rc, $(cat "$work/err")"
	has "$3"
}
sed 's/^key = .*/key = 000102030405060708090a0b0c0d0e0f/' "$work/vol/key" >"$work/other"
chmod 600 "$work/other"
some "$work/vol/map" "$work/other" '^ +1 full +failed: .*BADHANDLE: the server has another id, or another key'
sed "s,$work/s2,$work/vol/sock," "$work/vol/map" >"$work/map"
some "$work/map" "$work/vol/key" '^ +2 full +failed: .*NOVOLUME: the server has no stripes of this volume'
has '^free: .*; a new file on 1 server: '
sed 's/server 1/server 9/' "$work/vol/map" >"$work/map"
some "$work/map" "$work/vol/key" '^ +9 full +failed: .*BADHANDLE'
chmod 644 "$work/other"
bad 1 'mode 0600' "$LEAT" volume status --map "$work/vol/map" --key "$work/other"
bad 1 'no-map: No such file' "$LEAT" volume status --map "$work/no-map" --key "$work/vol/key"
bad 2 usage "$LEAT" volume status --map "$work/vol/map"
bad 2 usage "$LEAT" volume status --key "$work/vol/key"
ok "$LEAT" volume status --map "$work/vol/map" --key "$work/vol/key" "$export"
bad 1 'the export is not a striped volume' "$LEAT" volume status --key "$work/vol/key" "local://$work/vol/sock/plain"
ok "$LEAT" volume status --key "$work/vol/key" "$export"
has "^volume $volume, version 1 of its map"
has "^ +2 full .* local://$work/s2\$"
ok "$LEAT" doctor "$export"
has "^stripes +ok +server 1, at local://$work/s1\$"
has "^stripes +ok +server 2, at local://$work/s2\$"
# ---- a file: in, where it lies, out
head -c 1000001 /dev/urandom >"$work/file"
ok "$LEAT" cp "$work/file" "$export/file"
ok "$LEAT" cp "$export/file" "$work/file.back"
cmp "$work/file" "$work/file.back" || fail 'the copy differs'
ok "$LEAT" volume show "$export/file"
has '^local:.*/file: 1000001 bytes, epoch 1, object [0-9a-f]{32}$'
has '^2 stripes of units of 65536 bytes$'
has "^ +0 +[12] +524288  local://$work/s[12]\$"
has "^ +1 +[12] +475713  local://$work/s[12]\$"
for off in 0 65535 65536 131072 500000 1000000; do
	ok "$LEAT" volume show --offset "$off" "$export/file"
	has "^byte $off: server [12], local://$work/s[12], byte [0-9]+ of objects/[0-9a-f]{2}/[0-9a-f]{32}.[01]; [0-9]+ bytes to the end of the unit\$"
	server=$(sed 's/.*: server \([0-9]*\),.*/\1/' "$work/out") at=$(sed 's/.*, byte \([0-9]*\) of .*/\1/' "$work/out")
	object=$(sed 's/.* of \(objects[^;]*\);.*/\1/' "$work/out")
	dd if="$work/file" bs=1 skip="$off" count=1 status=none >"$work/want"
	dd if="$work/vol/stripes-$server/$object" bs=1 skip="$at" count=1 status=none >"$work/got"
	cmp "$work/want" "$work/got" || fail "byte $off is not there: $(cat "$work/out")"
done
# its servers are not the one that is asked
ok "$LEAT" bench read "$export/file" --bs 64K --seconds 1 --qd 1
has '^  CPU +client [0-9.]+ s/GiB, this machine '
has '^  copied +client [0-9.]+ bytes per byte$'
bad 1 'NOTVOLUME' "$LEAT" volume show --offset 0 "$export/"
bad 1 'file-x: .*No such file' "$LEAT" volume show "$export/file-x"
bad 1 'the export is not a striped volume' "$LEAT" volume show "local://$work/vol/sock/plain/"
bad 2 'usage' "$LEAT" volume show

# ---- how new files are striped
ok "$LEAT" mkdir "$export/set"
ok "$LEAT" volume show "$export/set"
has '^local:.*/set: a directory; of new files:$'
has '^stripe 65536, as the volume says$'
has '^width 2, as the volume says$'
ok "$LEAT" volume set --stripe 128K --width 1 "$export/set"
ok "$LEAT" volume show "$export/set"
has '^stripe 131072$'
has '^width 1$'
ok "$LEAT" cp "$work/file" "$export/set/file"
ok "$LEAT" volume show "$export/set/file"
has '^1 stripe of units of 131072 bytes$'
ok "$LEAT" volume set --width 2 "$export/set/new"
ok "$LEAT" volume show "$export/set/new"
has '^2 stripes of units of 131072 bytes$'
has '/new: 0 bytes,'
bad 1 'keeps its layout' "$LEAT" volume set --width 1 "$export/set/new"
bad 1 'set/wide: width 3: the volume has 2 servers$' "$LEAT" volume set --width 3 "$export/set/wide"
bad 1 'set: width 3: the volume has 2 servers$' "$LEAT" volume set --width 3 "$export/set"
bad 1 'stripe 98304: must be a power of two from 64K' "$LEAT" volume set --stripe 96K "$export/set"
bad 2 usage "$LEAT" volume set "$export/set"
ok "$LEAT" volume fsck --key "$work/vol/key" "$export"
has ': 0 faults$'
n=0
until grep -qE ' objects \([0-9]+ removed\): 0 faults$' "$work/out"; do # the manager removes those of the file behind rm
	n=$((n + 1))
	[ "$n" -lt 2000 ] || fail "no object is a removed one: $(cat "$work/out")"
	ok "$LEAT" volume fsck --key "$work/vol/key" "$export"
done

# ---- a third server, for new files; then one of them is left out
ok "$LEAT" volume add-server --map "$work/vol/map" "local://$work/s3"
has '^server 3: the map is changed'
has '^Start its leatd, then: leat ctl reload '
sed -n '/^\[server\]/,/^id = /p' "$work/out" >"$work/vol/server-3.conf"
sh -c "$(sed -n 's/^# server 3; before it starts: //p' "$work/out")"
start server-3
# the manager has not read the map
"$LEAT" volume status --map "$work/vol/map" --key "$work/vol/key" "$export" >"$work/out" && fail 'an old map is no fault'
has '^the manager has version 1 of the map: leat ctl reload makes it read this one$'
ok "$LEAT" ctl reload "local://$work/vol/sock"
ok "$LEAT" cp "$work/file" "$export/wide"
ok "$LEAT" volume show "$export/wide"
has '^3 stripes of '
ok "$LEAT" volume set-state --map "$work/vol/map" 1 out
ok "$LEAT" ctl reload "local://$work/vol/sock"
ok "$LEAT" cp "$work/file" "$export/narrow"
ok "$LEAT" volume show "$export/narrow"
has '^2 stripes of '
if grep -q " local://$work/s1\$" "$work/out"; then
	fail 'a new file has a stripe on a server that is out'
fi
ok "$LEAT" cp "$export/file" "$work/again"
cmp "$work/file" "$work/again" || fail 'a file on a server that is out differs'
ok "$LEAT" volume status --key "$work/vol/key" "$export"
has "version 3 of its map"
has "^ +1 out .* local://$work/s1\$"
has '^free: .* on 3 servers, 1 of them out; a new file on 2 servers: '
bad 1 'no such server' "$LEAT" volume set-url --map "$work/vol/map" 9 tcp://a
bad 1 'another server has it' "$LEAT" volume set-url --map "$work/vol/map" 1 "local://$work/s2"
bad 2 usage "$LEAT" volume set-state --map "$work/vol/map" 1 gone
bad 2 usage "$LEAT" volume add-server "local://$work/s9"

kill -9 "$second" # its socket stays
wait "$second" 2>/dev/null || :
some "$work/vol/map" "$work/vol/key" "^ +2 full +failed: cannot mount local://$work/s2: Connection refused"
has "^ +1 out .* local://$work/s1\$"
bad 1 "/file: READ at offset [0-9]+: Input/output error \\(stripe server local://$work/s2: (no reply in time|Connection refused)\\)\$" \
	"$LEAT" cp "$export/file?stripe_timeo=500ms" "$work/lost"
rc=0
"$LEAT" doctor "$export" >"$work/out" || rc=$?
[ "$rc" -eq 1 ] || fail "doctor: $rc"
has "^stripes +ok +server 1, at local://$work/s1, which new files avoid\$"
has "^stripes +missing server 2: cannot mount local://$work/s2: Connection refused"
# the manager finds that, too
ok "$LEAT" volume set-state --map "$work/vol/map" 1 full
ok "$LEAT" ctl reload "local://$work/vol/sock"
n=0
until "$LEAT" volume status --key "$work/vol/key" "$export" >"$work/out" 2>"$work/err"; [ "$?" -eq 1 ] && grep -q 'does not reach' "$work/out"; do
	n=$((n + 1))
	[ "$n" -lt 2000 ] || fail "the manager reaches a server that has ended: $(cat "$work/out" "$work/err")"
done
has '^the manager does not reach server 2 for [0-9]+ s: new files avoid it$'
grep -aqE "server 2, local://$work/s2, is away: [^:;]+: [^:;]+ \(Connection refused\); new files" "$work/log" ||
	fail "leatd does not log why: $(grep -a 'is away' "$work/log")"
ok "$LEAT" cp "$work/file" "$export/without"
ok "$LEAT" volume show "$export/without"
has '^2 stripes of '

# ---- a file without its servers
for p in $pids; do
	[ "$p" = "$manager" ] || kill "$p" 2>/dev/null || :
done
dirs="$work/vol/stripes-3 $work/vol/stripes-1 $work/vol/stripes-2"
# shellcheck disable=SC2086
ok "$LEAT" volume assemble --to "$work/whole" "$export/wide" $dirs
cmp "$work/file" "$work/whole" || fail 'the assembled file differs'
# shellcheck disable=SC2086
bad 1 'whole: File exists' "$LEAT" volume assemble --to "$work/whole" "$export/wide" $dirs
bad 1 'no directory is that of server [12]' "$LEAT" volume assemble --to "$work/part" "$export/wide" "$work/vol/stripes-3"
[ ! -e "$work/part" ] || fail 'a part of a file was left behind'
bad 1 'plain: No such file' "$LEAT" volume assemble --to "$work/part" "$export/wide" "$work/plain"
bad 2 usage "$LEAT" volume assemble "$export/wide" "$work/vol/stripes-3"
# shellcheck disable=SC2086
ok "$LEAT" volume assemble --to "$work/holes" "$export/tree/sparse" $dirs
cmp "$work/tree/sparse" "$work/holes" || fail 'the assembled sparse file differs'

echo "$checks checks"
