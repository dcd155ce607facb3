#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# compile.sh - this project, compiled where Linux has mounted a leatd over RDMA: what compilers, linkers
# and make do to a file system

set -u
cd "$(dirname "$0")/../../.." || exit
. tests/interop/lib.sh
in_vm 2400
setup
m=$work/mnt
mkdir "$m"
# what is slow here is the machine's CPU, so the compiler is not asked to optimise
flags='-O0 -g'

leatd_start
ok mount mount -t nfs -o "vers=3,mountport=2049,mountproto=tcp,nolock,proto=rdma,port=20049" "$addr:/demo" "$m"
ok 'it is rdma' grep -q " $m nfs .*proto=rdma" /proc/mounts
section 'the sources'
mkdir "$m/src"
ok 'copy' cp -a Makefile README.md client doc include rpcrdma scripts server tests xdr "$m/src/"
same 'what was copied' "$(fingerprint "$m/src/rpcrdma")" "$(fingerprint rpcrdma)"
section 'make all'
ok 'make all' timeout 1500 env -u MAKEFLAGS make -C "$m/src" -j2 CFLAGS="$flags" all
ok 'leat works' "$m/src/build/leat" --version
ok 'leatd works' "$m/src/build/leatd" --version
section 'make again'
# times of files and their order have come through: there is nothing to be done
ok 'make again' timeout 300 env -u MAKEFLAGS make -C "$m/src" CFLAGS="$flags" all
same 'make again' "$(grep -cE '^  (CC|LD|AR|GEN) ' "$work/out")" 0
section 'a test of it'
test=build/obj/default/tests/unit/test_hdr
# HELP_SRCS would be half the tests: this one needs none of them
ok 'make of a test' timeout 900 env -u MAKEFLAGS make -C "$m/src" -j2 CFLAGS="$flags" HELP_SRCS=tests/lib/vectors.c "$test"
ok 'the test' sh -c "cd '$m/src' && timeout 120 '$test'"
said 'the test' 'PASSED'
section 'what lies on the disk'
echo 3 >/proc/sys/vm/drop_caches
same 'what was built' "$(fingerprint "$m/src/build")" "$(fingerprint "$work/export/src/build")"
ok 'make clean' timeout 120 env -u MAKEFLAGS make -C "$m/src" clean
ok 'nothing is left' test ! -e "$work/export/src/build"
ok umount timeout 60 umount "$m"
finish
