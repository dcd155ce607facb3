#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# test_cli_block.sh - leat block against a leatd: lists, copies with their holes, destroys nothing that it was not asked to

set -eu
. tests/lib/checks.sh
: "${LEAT:=build/leat}" "${LEATD:=build/leatd}"
work=$(mktemp -d "${TMPDIR:-/tmp}/block.XXXXXX")
pid='' device=''
finish() {
	[ -z "$pid" ] || kill "$pid" 2>/dev/null || :
	[ -z "$pid" ] || wait "$pid" 2>/dev/null || :
	[ -z "$device" ] || PATH=$PATH:/sbin:/usr/sbin losetup -d "$device" || :
	rm -rf "$work"
}
trap finish EXIT

has() { # PATTERN: in the output of the last command
	grep -qE -e "$1" "$work/out" || fail "no '$1' in: $(cat "$work/out")"
	checks=$((checks + 1))
}
same() { # BYTES A B
	cmp -s -n "$1" "$2" "$3" || fail "$2 and $3 differ in their first $1 bytes"
	checks=$((checks + 1))
}
blocks() { du -k "$1" | cut -f 1; }
sparse() { # FILE KIB: it takes no more space than that
	[ "$(blocks "$1")" -le "$2" ] || fail "$1 takes $(blocks "$1") KiB, more than $2"
	checks=$((checks + 1))
}
no_leatd() { # PATTERN ARGUMENT...: leatd does not start, and says why
	pattern=$1 rc=0
	shift
	timeout 60 "$LEATD" "$@" 2>"$work/err" || rc=$?
	[ "$rc" -eq 1 ] || fail "leatd $* -> $rc: $(cat "$work/err")"
	grep -q "$pattern" "$work/err" || fail "no '$pattern' in: $(cat "$work/err")"
	checks=$((checks + 1))
}

# Data, a hole, data: 10 MiB and 3 bytes
truncate -s 10M "$work/src"
head -c 300000 /dev/urandom | dd of="$work/src" bs=1M conv=notrunc status=none
head -c 300000 /dev/urandom | dd of="$work/src" bs=1M seek=7 conv=notrunc status=none
printf end >>"$work/src"
size=$(stat -c %s "$work/src")
src_blocks=$(blocks "$work/src")

head -c 4096 /dev/zero >"$work/start"
head -c 1048579 /dev/urandom >"$work/part"
for name in one two small; do
	truncate -s 12M "$work/$name.img"
	head -c 12M /dev/urandom >"$work/$name.img"
done
truncate -s 10M "$work/small.img" "$work/blank.img"
head -c 65536 /dev/zero | dd of="$work/blank.img" conv=notrunc status=none
printf data | dd of="$work/blank.img" bs=1 seek=1048676 conv=notrunc status=none
leatd_run "$LEATD" --listen tcp://127.0.0.1:0 --listen "local://$work/sock" --state-dir "$work/state" \
	--block "one=$work/one.img,users=$(id -un)" --block "two=$work/two.img,share=shared,block=4096" \
	--block "fixed=$work/start,ro" --block "small=$work/small.img,read=cached,write=cached" \
	--block "blank=$work/blank.img"
local=local://$work/sock
[ -n "$port" ] || fail 'no port'

ok "$LEAT" block ls "$local" "$local/block"
has '12M +512 +0 +one +\(read and write, exclusive\)'
has '12M +4096 +0 +two +\(read and write, shared\)'
[ "$(grep -c small "$work/out")" -eq 2 ] || fail 'not listed twice'
ok "$LEAT" block info "$local/block/two"
has '^size +12582912 \(12M\)$'
has '^block +4096,'
has '^access +read and write, shared$'
bad 1 'No such file .*the server has no such volume' "$LEAT" block info "$local/block/three"
bad 1 'the server has no such volume' "$LEAT" block ls "$local/block/three"
ok "$LEAT" block ls "$local/block/one"
[ "$(wc -l <"$work/out")" -eq 1 ] || fail "a volume is listed as: $(cat "$work/out")"
bad 1 'names no volume' "$LEAT" block info "$local/block/"
bad 2 'usage' "$LEAT" block
bad 2 'no such verb' "$LEAT" block format "$local/block/one"
bad 2 'usage' "$LEAT" block ls
bad 2 'no such option: -h' "$LEAT" block info -h
for verb in ls info cp bench take-over; do
	for arg in '' "$local/block/one"; do
		case $verb,$arg in ls,?* | info,?*) continue ;; esac # there it is an operand
		# shellcheck disable=SC2086 # no argument
		ok "$LEAT" block $verb $arg --help
		has "^usage: leat block $verb "
		[ "$(grep -c '^usage' "$work/out")" -eq 1 ] || fail "$verb --help describes more: $(cat "$work/out")"
	done
	ok "$LEAT" help block $verb
	has "^usage: leat block $verb "
done
ok "$LEAT" block --help
[ "$(grep -c '^usage' "$work/out")" -eq 6 ] || fail "block --help said: $(cat "$work/out")"
bad 1 'not a URL' "$LEAT" block info "$work/src"

# ping and doctor of a volume, also while another program has it
for url in "$local/block/two" "tcp://127.0.0.1:$port/block/two"; do
	ok "$LEAT" ping -c 3 "$url"
	has '^volume +two, 12M in blocks of 4096 bytes, read and write, shared, 0 holders$'
	has '^round trip +p50 .* of 3 calls$'
	[ "$(grep -cE '^(export|sizes) ' "$work/out")" -eq 0 ] || fail "ping of a volume says: $(cat "$work/out")"
	ok "$LEAT" doctor "$url"
	has '^volume +ok +two, 12M in blocks of 4096 bytes, read and write, shared, 0 holders$'
	has '^way '
done
bad 1 'the server has no such volume' "$LEAT" ping "$local/block/three"
bad 1 'the server exports no such path; a volume below /block is used by' "$LEAT" ping "$local/block"
bad 1 'the server exports no such path' "$LEAT" ping "$local/other/block/one"
bad 1 'not a URL' "$LEAT" ping "$work/src"
"$LEAT" doctor "$local/block/three" >"$work/out" && fail 'doctor of no volume succeeds'
has '^server +missing .*the server has no such volume'

# a file to a volume: what lies behind the file stays, holes are holes; to another volume, and back
cp "$work/one.img" "$work/before"
bad 1 'one: holds data at offset 0; nothing was written: use --overwrite' "$LEAT" block cp "$work/src" "$local/block/one"
cmp -s "$work/one.img" "$work/before" || fail 'a refused copy has changed the volume'
ok "$LEAT" block cp --overwrite "$work/src" "$local/block/one"
same "$size" "$work/src" "$work/one.img"
[ "$(tail -c +$((size + 1)) "$work/one.img" | cksum)" = "$(tail -c +$((size + 1)) "$work/before" | cksum)" ] ||
	fail 'the rest of the volume has changed'
sparse "$work/one.img" $((src_blocks + 2100))
ok "$LEAT" block cp "$local/block/one" "$local/block/two" --overwrite
same 12582912 "$work/one.img" "$work/two.img"
sparse "$work/two.img" $((src_blocks + 2100))
ok "$LEAT" block cp "$local/block/two" "$work/copy"
same 12582912 "$work/two.img" "$work/copy"
sparse "$work/copy" $((src_blocks + 2100))

# a file is replaced as a whole, with its mode; in place if it has two names; into a directory by its name
printf old >"$work/copy"
chmod 640 "$work/copy"
ok "$LEAT" block cp "$local/block/one" "$work/copy"
same 12582912 "$work/one.img" "$work/copy"
[ "$(stat -c %a "$work/copy")" = 640 ] || fail 'the mode has changed'
ln "$work/copy" "$work/twin"
head -c 13M /dev/urandom >"$work/copy"
ok "$LEAT" block cp "$local/block/one" "$work/copy"
cmp -s "$work/one.img" "$work/twin" || fail 'the other name has another content'
mkdir "$work/dir"
ok "$LEAT" block cp "$local/block/one" "$work/dir"
cmp -s "$work/one.img" "$work/dir/one" || fail 'not copied into the directory'
for f in "$work"/.leat-* "$work"/dir/.leat-*; do
	[ ! -e "$f" ] || fail "$f is left over"
done

# refusals, before anything is written
cp "$work/small.img" "$work/before"
bad 1 'less than the 10485763 of .*src; nothing was written' "$LEAT" block cp "$work/src" "$local/block/small"
bad 1 'less than the 12582912' "$LEAT" block cp "$local/block/one" "$local/block/small"
bad 1 'are the same volume' "$LEAT" block cp "$local/block/one" "tcp://127.0.0.1:$port/block/one"
bad 1 'overwrite' "$LEAT" block bench write "$local/block/small" --seconds 1
bad 1 'the volume is read-only' "$LEAT" block cp "$work/part" "$local/block/fixed"
bad 1 'the volume is read-only' "$LEAT" block bench write "$local/block/fixed" --overwrite --bs 512
bad 1 'No such file' "$LEAT" block cp "$work/missing" "$local/block/small"
bad 1 'neither a regular file' "$LEAT" block cp /dev/null "$local/block/small"
bad 1 'No such file' "$LEAT" block cp "$local/block/one" "$work/nowhere/file"
bad 2 'neither .* is the URL' "$LEAT" block cp "$work/src" "$work/copy"
bad 1 'not copied to standard output' "$LEAT" block cp "$local/block/one" -
[ ! -e ./- ] || fail 'there is a file called -'
bad 1 'MNT of /block/one: .*exports no such path; a volume .* is used by leat block' "$LEAT" cat "$local/block/one"
bad 2 'meta: no such kind: read, write, randread, randwrite and null are known' "$LEAT" block bench meta "$local/block/small"
bad 1 'not a multiple' "$LEAT" block bench read "$local/block/two" --bs 512
bad 2 'no such option: --force' "$LEAT" block cp --force "$work/copy" "$local/block/small"
same 10485760 "$work/before" "$work/small.img"

# where a volume has no data, nothing is lost: in holes, among zeroes, and of data behind the end of the source
ok "$LEAT" block cp "$work/part" "$local/block/blank"
same 1048579 "$work/part" "$work/blank.img"
[ "$(tail -c +1048677 "$work/blank.img" | head -c 4)" = data ] || fail 'the data behind it has changed'
bad 1 'blank: holds data at offset 0;' "$LEAT" block cp "$work/part" "$local/block/blank"
ok "$LEAT" block cp --overwrite "$work/start" "$local/block/blank"
bad 1 'blank: holds data at offset 4096;' "$LEAT" block cp "$work/part" "$local/block/blank"
same 4096 "$work/start" "$work/blank.img"

# data behind zeroes that were written is found, too
head -c 3M /dev/zero >"$work/zeroes"
head -c 3M /dev/zero | dd of="$work/blank.img" conv=notrunc status=none
printf data | dd of="$work/blank.img" bs=1 seek=3000000 conv=notrunc status=none
bad 1 'blank: holds data at offset 3000000;' "$LEAT" block cp "$work/zeroes" "$local/block/blank"
[ "$(tail -c +3000001 "$work/blank.img" | head -c 4)" = data ] || fail 'the data behind zeroes has gone'
ok "$LEAT" block cp --overwrite "$work/start" "$local/block/blank"

# so with a device, which must not be in use either
if truncate -s 10M "$work/disk" && device=$(PATH=$PATH:/sbin:/usr/sbin losetup --show -f "$work/disk" 2>/dev/null); then
	ok "$LEAT" block cp "$local/block/small" "$device"
	same 10485760 "$work/small.img" "$device"
	bad 1 'holds data at offset 0;' "$LEAT" block cp "$local/block/blank" "$device"
	same 10485760 "$work/small.img" "$device"
	ok "$LEAT" block cp "$local/block/blank" "$device" --overwrite
	same 10485760 "$work/blank.img" "$device"
	leatd=$pid
	leatd_run "$LEATD" --block "disk=$device" --block "more=$work/src" --listen "local://$work/other"
	other=local://$work/other/block
	bad 1 'open: Device or resource busy' "$LEAT" block cp "$local/block/blank" "$device" --overwrite
	no_leatd 'in use by another process, or mounted' --block "again=$device" --listen "local://$work/third"
	# the disk disappears under a holder: errors, and the other volume is served
	"$LEAT" block bench randread "$other/disk" --bs 4K --seconds 60 >"$work/bench" 2>"$work/bench.err" &
	bench=$!
	until "$LEAT" block info "$other/disk" | grep -q '^holder '; do :; done
	truncate -s 0 "$work/disk"
	PATH=$PATH:/sbin:/usr/sbin losetup -c "$device"
	wait "$bench" && fail 'reads of a disk that has disappeared succeed'
	grep -qE 'READ.*(Input/output error|Invalid argument)' "$work/bench.err" || fail "said: $(cat "$work/bench.err")"
	ok "$LEAT" block cp "$other/more" "$work/more"
	same 10485760 "$work/src" "$work/more"
	kill "$pid"
	wait "$pid" || :
	pid=$leatd
fi

ok "$LEAT" block bench randread "$local/block/one" --bs 4K --seconds 1
has '^randread over local, 4.0K blocks'
ok "$LEAT" block bench write "tcp://127.0.0.1:$port/block/small?conns=2" --bs 64K --seconds 1 --overwrite --json
has '"kind":"write","transport":"tcp","bs":65536'
cmp -s "$work/before" "$work/small.img" && fail 'the benchmark has written nothing'
ok "$LEAT" block bench write "$local/block/small" --bs 64K --seconds 1 --overwrite --json
has '"server_copied_per_byte":1\.0' # from the client's memory to the page cache
ok "$LEAT" block bench null "$local/block/one" --seconds 1

no_leatd 'neither a file nor a block device' --block "dir=$work" --listen "local://$work/third"
no_leatd 'in use by another process, or mounted' --block "again=$work/one.img" --listen "local://$work/third"

# a holder, and its end
mkfifo "$work/hold"
"$LEAT" block bench read "$local/block/one?holder=loop" --bs 4K --qd 1 --seconds 60 >"$work/bench" 2>"$work/bench.err" &
bench=$!
until "$LEAT" block info "$local/block/one" | grep -q '^holder '; do :; done
ok "$LEAT" block info "$local/block/one"
has '^holder +loop: leat on .*, since 20[-0-9]* [0-9:]* UTC, 1 connection, to read$'
ok "$LEAT" ping "$local/block/one"
has '^volume .* 1 holder$'
bad 1 'ATTACH: Device or resource busy .*holder loop has it: leat on' "$LEAT" block cp "$work/part" "$local/block/one"
bad 1 'the volume has no such holder' "$LEAT" block take-over "$local/block/one" --holder other
ok "$LEAT" block take-over "$local/block/one" --holder loop
wait "$bench" && fail 'the fenced holder went on'
grep -q 'Stale file handle (BLOCK_ERR_FENCED: .*holder' "$work/bench.err" || fail "said: $(cat "$work/bench.err")"
ok "$LEAT" block cp --overwrite "$work/part" "$local/block/one"
bad 1 'the volume is shared: name the holder' "$LEAT" block take-over "$local/block/two"
bad 1 'no slash' "$LEAT" block take-over "$local/block/two" --holder a/b

# a signal: nothing is left over, and the volume is free
"$LEAT" block bench read "$local/block/one?holder=loop" --bs 4K --qd 1 --seconds 60 >"$work/bench" 2>"$work/bench.err" &
bench=$!
until "$LEAT" block info "$local/block/one" | grep -q '^holder '; do :; done
kill -TERM "$bench"
rc=0
wait "$bench" || rc=$?
[ "$rc" -eq 143 ] || fail "status $rc after SIGTERM"
grep -q '^read over local' "$work/bench" || fail 'no results so far'
ok "$LEAT" block info "$local/block/one"
! grep -q '^holder ' "$work/out" || fail "still attached: $(cat "$work/out")"

# a reload adds a volume where the state directory was given by a relative path
kill "$pid"
wait "$pid" || :
printf '[block one]\npath = %s/one.img\n' "$work" >"$work/conf"
mkdir "$work/run"
case $LEATD in /*) ;; *) LEATD=$PWD/$LEATD ;; esac
leatd_run env -C "$work/run" "$LEATD" --config "$work/conf" --state-dir state --listen "$local"
printf '[block two]\npath = %s/two.img\n' "$work" >>"$work/conf"
ok "$LEAT" ctl reload "$local"
ok "$LEAT" block info "$local/block/two"
[ -e "$work/run/state/block-two.sync" ] || fail 'the state of the volume is somewhere else'
bad 1 "conf:5: block three: .*/missing: No such file" sh -c "printf '[block three]\npath = %s/missing\n' '$work' >>'$work/conf'
	'$LEAT' ctl reload '$local'"

echo "$checks checks"
