#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# test_abi.sh - which differences of an interface scripts/abi_compare.awk calls compatible

set -u
old='soname libx.so.0
symbol x_open X_0
function x_open int x_open(const struct x_attr *)
struct x_attr 24
member x_attr.size 0 8
member x_attr.flags 8 4
member x_attr.lab 16 8
struct x_call 16
member x_call.done 0 8
member x_call.n 8 4
struct x_row 40
member x_row.fn 0 8
member x_row.reserved 8 32
struct x_own 8
member x_own.a 0 8
value X_FAST 1
macro X_MAX 400u'
dir=$(mktemp -d) || exit
trap 'rm -rf "$dir"' EXIT
echo "$old" >"$dir/old"
bad=0

# try WANTED WHAT SED-SCRIPT
try() {
	sed "$3" "$dir/old" >"$dir/new"
	said=$(awk -v grows=x_own -f scripts/abi_compare.awk "$dir/old" "$dir/new")
	worst=$(echo "$said" | sed -n 's/^\(incompatible\|new\):.*/\1/p' | sort | head -n 1)
	if [ "${worst:-same}" = "$1" ]; then
		echo "[  PASSED  ] $2"
	else
		echo "[  FAILED  ] $2: wanted $1: $said"
		bad=1
	fi
}

try same 'nothing' ''
try incompatible 'a symbol is gone' '/^symbol/d'
try incompatible 'another version node' '/^symbol/s/X_0/X_1/'
try incompatible 'a symbol in a node that exists' '$a symbol x_more X_0'
try new 'a symbol in a new node' '$a symbol x_more X_1'
try incompatible 'another parameter' '/^function/s/)/, int)/'
try new 'a member appended to a structure with its size' 's/x_attr 24/x_attr 32/; $a member x_attr.more 24 8'
try incompatible 'a member in padding' '$a member x_attr.more 12 4'
try incompatible 'a member inserted' 's/x_attr 24/x_attr 32/; s/lab 16/lab 24/; $a member x_attr.more 16 8'
try incompatible 'a member is gone' '/x_attr.flags/d'
try incompatible 'a larger member' 's/flags 8 4/flags 8 8/'
try incompatible 'a structure without its size grows' 's/x_call 16/x_call 24/; $a member x_call.more 16 8'
try incompatible 'a structure shrinks' 's/x_attr 24/x_attr 16/; /x_attr.lab/d'
try new 'a structure of the library grows' 's/x_own 8/x_own 16/; $a member x_own.b 8 8'
try new 'part of what is reserved' 's/reserved 8 32/reserved 16 24/; $a member x_row.more 8 8'
try new 'all of what is reserved' 's/reserved 8 32/a 8 16/; $a member x_row.b 24 16'
try new 'a structure, a constant' '$a struct x_new 8\nmember x_new.a 0 8\nvalue X_SLOW 2'
try incompatible 'another constant' 's/X_FAST 1/X_FAST 2/'
try new 'another soname' 's/so.0/so.1/; /^symbol/d; /x_call.done/d'
exit "$bad"
