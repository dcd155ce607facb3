#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# nbdkit.sh - NBD programs, unmodified, on a block volume through the plugin of nbdkit: nbdinfo, nbdcopy, nbdsh, fio, qemu-img
#
# Natively, over the local fabric. leatd is killed under a load, its machine is reset with data unflushed (another boot
# id in its state), and another holder takes the volume over.

set -u
cd "$(dirname "$0")/../.." || exit
. tests/interop/lib.sh

PATH=/usr/bin:$PATH # nbdsh needs the python3 that its module is made for
for program in nbdkit nbdinfo nbdcopy nbdsh fio qemu-img; do
	command -v "$program" >/dev/null || { echo "SKIP: no $program here (scripts/deps.sh install interop)"; exit 77; }
done
[ -e "$plugin" ] || { echo "SKIP: no $plugin: it is built where nbdkit's headers are (nbdkit-plugin-dev)"; exit 77; }
[ -x "$LEATD" ] || { echo "no $LEATD: make all"; exit 1; }

setup
trap 'kill -9 $nbdkit_pid $leatd_pid ${over:-} 2>/dev/null; rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
volume=$work/vol0
mib=64
truncate -s "${mib}M" "$volume"
head -c 33554432 /dev/urandom >"$work/disk.img"
truncate -s 40M "$work/disk.img" # with a hole at its end

# sh_of PYTHON: by nbdsh, on the handle h
sh_of() { timeout 120 nbdsh --base-allocation -u "$nbd" -c "$1"; }

# fio_of NAME OPTION...: with fio's engine for NBD
fio_of() {
	name=$1
	shift
	timeout 300 fio --name="$name" --ioengine=nbd --uri="$nbd" --size="${mib}M" --minimal --verify_state_save=0 "$@"
}

# ---- what is announced --------------------------------------------------------------------------------

section 'what is announced'
volume_start
nbdkit_start
ok 'nbdinfo' nbdinfo "$nbd"
for line in 'export-size: 67108864 ' 'is_read_only: false' 'can_flush: true' 'can_fua: true' 'can_multi_conn: true' \
	'can_trim: true' 'can_zero: true' 'can_cache: true' 'block_size_minimum: 512' 'block_size_maximum: 67108864' \
	'base:allocation' 'description: vol0'; do
	said 'nbdinfo' "$line"
done
ok 'a volume without data' nbdinfo --map "$nbd"
same 'one hole' "$(awk '{ print $1, $2, $3, $4 }' "$work/out")" '0 67108864 3 hole,zero'

# ---- copies ------------------------------------------------------------------------------------------------

section 'copies'
ok 'nbdcopy to the volume' nbdcopy "$work/disk.img" "$nbd"
ok 'its bytes' cmp -n 41943040 "$work/disk.img" "$volume"
ok 'its extents' nbdinfo --map "$nbd"
same 'data, then a hole' "$(awk '{ print $1, $2, $3 }' "$work/out" | tr '\n' ';')" '0 33554432 0;33554432 33554432 3;'
ok 'nbdcopy from the volume, 4 connections' nbdcopy --connections=4 "$nbd" "$work/back.img"
ok 'its bytes' cmp "$volume" "$work/back.img"
ok 'qemu-img compare' qemu-img compare -f raw -F raw "$nbd" "$work/back.img"
ok 'qemu-img convert from the volume' qemu-img convert -f raw -O qcow2 "$nbd" "$work/back.qcow2"
ok 'qemu-img compare with qcow2' qemu-img compare -f raw -F qcow2 "$nbd" "$work/back.qcow2"
truncate -s "${mib}M" "$work/other.img"
dd if=/dev/urandom of="$work/other.img" bs=1M count=7 seek=9 conv=notrunc status=none
ok 'qemu-img convert to the volume' qemu-img convert -n -f raw -O raw "$work/other.img" "$nbd"
ok 'its bytes' cmp "$volume" "$work/other.img"
ok 'qemu-img bench, reads' qemu-img bench -f raw -t none -c 2000 -d 32 -s 4096 "$nbd"
ok 'qemu-img bench, writes and flushes' qemu-img bench -f raw -t none -w --flush-interval=50 -c 1000 -d 16 -s 65536 "$nbd"

# ---- single calls ---------------------------------------------------------------------------------------------

section 'single calls'
ok 'FUA, zero, trim and extents by nbdsh' sh_of '
import errno, os
M = 1 << 20
def refused(err, fn, *a):
    try:
        fn(*a)
    except nbd.Error as e:
        assert e.errnum == err, e
        return
    assert False, "not refused"
def kinds(off, length):
    got = []
    h.block_status(length, off, lambda ctx, o, e, err: got.extend(e))
    return got
data = bytearray(b"leat" * (M // 4))
h.zero(h.get_size(), 0)
assert not any(h.pread(4 * M, 0))
h.pwrite(data, M, nbd.CMD_FLAG_FUA)
assert h.pread(M, M) == data
h.flush()
h.zero(M // 2, M, nbd.CMD_FLAG_NO_HOLE)
assert h.pread(M, M) == bytes(M // 2) + data[M // 2:]
h.zero(4096, M + M // 2, nbd.CMD_FLAG_FUA)
h.trim(M // 4, M + 3 * M // 4, nbd.CMD_FLAG_FUA)
h.zero(64 * M, 0)
h.pwrite(data, 2 * M)
assert kinds(2 * M, M)[1] == 0, kinds(2 * M, M)
def allocated():
    return os.stat("'"$volume"'").st_blocks * 512
before = allocated()
h.zero(M // 2, 2 * M, nbd.CMD_FLAG_NO_HOLE)
assert allocated() >= before, "not kept"
h.zero(M // 2, 2 * M)
assert allocated() < before, "kept"
assert kinds(4 * M, M)[1] & 2, kinds(4 * M, M)
h.cache(M, 2 * M)
large = os.urandom(3 * M) # more than the plugin copies through buffers of its own
h.pwrite(large, 8 * M)
assert h.pread(3 * M, 8 * M) == large
assert h.pread(M, 9 * M) == large[M:2 * M]
h.pwrite(b"x" * 512, 512)
assert h.pread(1536, 0) == bytes(512) + b"x" * 512 + bytes(512)
h.set_strict_mode(0)
refused(errno.EINVAL, h.pread, 100, 0)
refused(errno.EINVAL, h.pwrite, b"x" * 512, 100)
refused(errno.EINVAL, h.pread, 1024, h.get_size() - 512)
refused(errno.ENOSPC, h.pwrite, b"x" * 1024, h.get_size() - 512)
'
ok 'a flush by one connection covers another' timeout 120 nbdsh -c "
a, b = nbd.NBD(), nbd.NBD()
a.connect_uri('$nbd')
b.connect_uri('$nbd')
a.pwrite(b'A' * 4096, 8192)
b.flush()
assert b.pread(4096, 8192) == b'A' * 4096
"

# ---- what a flush covers when the machine was reset ------------------------------------------------------------------

section 'a machine that was reset'
kept='h.pwrite(b"k" * 4096, 0, nbd.CMD_FLAG_FUA); h.zero(4096, 4096, nbd.CMD_FLAG_FUA); h.trim(4096, 8192, nbd.CMD_FLAG_FUA)'
lose='h.pwrite(b"l" * 4096, 0)'
reset() {
	volume_reset
	nbdkit_end
	nbdkit_start
}
ok 'writes with FUA' sh_of "$kept"
volume_reset
ok 'a flush after them' sh_of 'h.flush()'
for change in 'pwrite(b"l" * 4096, 0)' 'zero(4096, 0)' 'trim(4096, 0)'; do
	ok "a change without FUA: $change" sh_of "h.$change"
	volume_reset
	ok "flush and FUA fail after $change" sh_of '
import errno
for fn, a in (h.flush, ()), (h.pwrite, (b"n" * 512, 0, nbd.CMD_FLAG_FUA)), (h.flush, ()):
    try:
        fn(*a)
    except nbd.Error as e:
        assert e.errnum == errno.EIO, e
    else:
        assert False, "data was lost, and not a word"
'
	nbdkit_end
	nbdkit_start
	ok "attached again after $change" sh_of 'h.pwrite(b"n" * 512, 0, nbd.CMD_FLAG_FUA); h.flush()'
done
ok 'a change before leatd is killed' sh_of "$lose"
volume_end KILL
volume_start
ok 'a flush after leatd was killed' sh_of 'h.flush()'

# ---- loads -----------------------------------------------------------------------------------------------------------------

section 'loads'
ok 'fio, verified' fio_of plain --rw=randwrite --bs=4k --iodepth=32 --verify=crc32c --io_size=32M
ok 'fio, verified, large and small' fio_of mixed --rw=randwrite --bsrange=512-1M --bs_unaligned=0 --blockalign=512 \
	--iodepth=16 --verify=crc32c --verify_interval=512 --fsync=32
ok 'fio, verified, 4 clients' fio_of clients --numjobs=4 --size=16M --offset_increment=16M --rw=randrw --bs=16k --iodepth=8 \
	--verify=crc32c --group_reporting

section 'leatd is killed under a load'
fio_of killed --rw=randwrite --bs=16k --iodepth=16 --verify=crc32c --fsync=64 --loops=12 >"$work/fio" 2>&1 &
fio=$!
rounds=0
while [ "$rounds" -lt 5 ] && sleep 0.5 && kill -0 "$fio" 2>/dev/null; do
	volume_kill
	volume_start
	rounds=$((rounds + 1))
done
ended 'fio, verified, while leatd is killed' "$fio" "$work/fio"
same 'leatd was killed under it' "$((rounds > 1))" 1
ok 'nbdkit goes on' nbdinfo --size "$nbd"

section 'an idle client keeps its volume'
volume_end KILL
volume_start
ok 'it connects again by itself' wait_for 60 sh -c "'$LEAT' block info '$url' | grep -q 'holder.*nbdkit' &&
	! '$LEAT' block info '$url' | grep -q silent"

section 'nbdkit ends while leatd is down'
sh_of "while True: h.pwrite(b'w' * 512, 0); open('$work/going', 'w')" >"$work/lost" 2>&1 &
lost=$!
ok 'a client writes' wait_for 60 test -e "$work/going"
volume_end KILL
ok 'nbdkit reports it' wait_for 60 grep -q 'does not reply' "$work/nbdkit.log"
nbdkit_end
wait "$lost"
same 'its client gets an error' "$(($? != 0))" 1
volume_start
nbdkit_start take_over=yes # nbdkit could not detach

# ---- holders ----------------------------------------------------------------------------------------------------------------

section 'holders'
bad 'a second holder' timeout 60 nbdkit -f -U - "$plugin" "$url" --run true
said 'a second holder is refused with the name of the first' 'holder .* has it: nbdkit'
bad 'a second holder, in the background' timeout 60 nbdkit -P "$work/second.pid" -U "$work/second.sock" "$plugin" "$url"
[ ! -e "$work/second.pid" ] || kill "$(cat "$work/second.pid")"
nbdkit -f -t 32 -P "$work/over.pid" -U "$work/over.sock" "$plugin" "$url" take_over=yes >>"$work/over.log" 2>&1 &
over=$!
fio_of taken --rw=randwrite --bs=4k --iodepth=8 --loops=100000 >"$work/fio" 2>&1
same 'a client whose volume is taken over fails' "$(($? != 0))" 1
ok 'requests of the old holder fail' sh_of '
import errno
try:
    h.pwrite(b"o" * 512, 0)
except nbd.Error as e:
    assert e.errnum == errno.ESHUTDOWN, e
else:
    assert False, "written by a holder that was fenced"
'
ok 'the new holder' timeout 60 nbdsh -u "nbd+unix:///?socket=$work/over.sock" -c 'h.pwrite(b"n" * 512, 0); h.flush()'
kill "$over"
wait "$over"
same 'exit status of the new holder' $? 0
nbdkit_end

# ---- read-only, and without a volume -------------------------------------------------------------------------------------------

section 'read-only'
nbdkit_start rdonly=yes
ok 'attached read-only' nbdinfo "$nbd"
said 'attached read-only' 'is_read_only: true'
bad 'nbdcopy to it' nbdcopy "$work/disk.img" "$nbd"
nbdkit_end
bad 'no such volume' timeout 60 nbdkit -U - "$plugin" "${url}x" --run true
said 'no such volume' 'no such'
bad 'no URL' timeout 60 nbdkit -U - "$plugin" --run true
bad 'an option that there is not' timeout 60 nbdkit -U - "$plugin" "$url" conn=4 --run true
said 'an option that there is not' conns
volume_end
volume_options=,ro
volume_start
nbdkit_start
ok 'a volume that is read-only' nbdinfo "$nbd"
said 'a volume that is read-only' 'is_read_only: true'
nbdkit_end
volume_end
volume_options=,block=4096
volume_start
nbdkit_start
ok 'blocks of 4096' nbdinfo "$nbd"
said 'blocks of 4096' 'block_size_minimum: 4096'
nbdkit_end
# shellcheck disable=SC2016 # $uri is nbdkit's
ok 'a client that ignores them, with a filter' nbdkit -U - --filter=blocksize "$plugin" "$url" minblock=4096 \
	--run 'nbdsh -u "$uri" -c "h.pwrite(b\"y\" * 512, 512); assert h.pread(512, 512) == b\"y\" * 512"'
volume_end
volume_options=
volume_start
# shellcheck disable=SC2016
ok 'the line of doc/block.md, but for a port' nbdkit -U - "$plugin" "$url" --run "nbdcopy '$work/disk.img' \"\$uri\""
ok 'its bytes' cmp -n 41943040 "$work/disk.img" "$volume"
ok 'nbdkit in the background' nbdkit -P "$work/nbdkit.pid" -U "$work/nbd.sock2" "$plugin" "$url" conns=4
ok 'its data' nbdcopy "nbd+unix:///?socket=$work/nbd.sock2" "$work/back.img"
ok 'its bytes' cmp "$volume" "$work/back.img"
kill "$(cat "$work/nbdkit.pid")"
ok 'it ends' wait_for 60 sh -c "! kill -0 $(cat "$work/nbdkit.pid")"
volume_end
[ "$failed" -eq 0 ] || tail -n 5 "$work/nbdkit.log" "$work/leatd.log"
finish
