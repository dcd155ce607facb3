#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# check-headers.sh - each header compiles alone; the public ones as C99 with POSIX.1-2008 and as C++ too
#
# From the Makefile: CC, CXX, and INC, the -I options of the tree.

set -u
: "${CC:=gcc}" "${CXX:=g++}"
: "${INC:=-Iinclude -Ibuild/gen -isystem /usr/include/tirpc}"
bad=0 n=0

# try COMPILER HEADER OPTION...
try() {
	compiler=$1 header=$2
	shift 2
	n=$((n + 1))
	# shellcheck disable=SC2086 # "ccache gcc" is one, too
	echo 'extern int something; /* ISO C forbids an empty file */' |
		$compiler -fsyntax-only -Wall -Wextra -Wpedantic -Werror -Wno-unused-function \
			-include "$header" "$@" - && return
	echo "hdr-check: $header does not stand alone ($compiler $*)"
	bad=1
}

dirs() { find "$1" -type d | sed 's/^/-I/'; }

# INC is a list of options
# shellcheck disable=SC2086
{
	for h in include/*.h; do
		try "$CC" "$h" -x c -std=c99 -pedantic -D_POSIX_C_SOURCE=200809L $INC
		if command -v "$CXX" >/dev/null; then
			try "$CXX" "$h" -x c++ -std=c++11 $INC
		else
			echo "hdr-check: no $CXX here: $h not tried as C++"
		fi
	done
	for h in include/base/*.h; do
		try "$CC" "$h" -x c -std=gnu17 -D_GNU_SOURCE $INC
	done
	for dir in xdr rpcrdma tirpc server client tests/tools; do
		for h in $(find "$dir" -name '*.h' | sort); do
			case $h in
			rpcrdma/verbs/*)
				if ! pkg-config --exists libibverbs librdmacm; then
					echo "hdr-check: no libibverbs and librdmacm here: $h not tried"
					continue
				fi
				;;
			esac
			case $h in
			tests/tools/dump/*) more='-Irpcrdma/wire' ;;
			client/tools/*) more=$(dirs client/tools) ;;
			server/* | client/*) more="$(dirs "$dir") -Ixdr" ;;
			*) more=$(dirs "$dir") ;;
			esac
			try "$CC" "$h" -x c -std=gnu17 -D_GNU_SOURCE $INC $more
		done
	done
}
[ "$bad" -ne 0 ] || echo "hdr-check: $n times, all stand alone"
exit "$bad"
