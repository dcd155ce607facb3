#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# check-layers.sh - who may include whom (doc/design.md)
#
# The compiler keeps most walls, as each folder gets its own include path; this finds what passes
# through the cracks. Every finding is a line FILE:LINE:TEXT with the rule that it breaks.

set -u
bad=0

# Files of the tree that the compiler sees; build/ is not part of it.
sources() { find "$@" -name '*.[chx]' 2>/dev/null | sort; }

# rule TEXT PATTERN ALLOWED FILE...: PATTERN (of grep -E) only in files that match ALLOWED
rule() {
	text=$1 pattern=$2 allowed=$3
	shift 3
	[ $# -gt 0 ] || return 0
	found=$(grep -nE "$pattern" /dev/null "$@" | grep -vE "^($allowed):") || return 0
	echo "$found" | sed "s,^,layers: $text: ,"
	bad=1
}

inc='^[[:space:]]*#[[:space:]]*include[[:space:]]*'
all=$(sources include xdr rpcrdma server client tests)

# words are file names without blanks
# shellcheck disable=SC2086,SC2046
{
	rule 'no "../"' "$inc\"\\.\\./" 'none' $all
	rule 'verbs only in rpcrdma/verbs*.c' "$inc<(infiniband|rdma)/" 'rpcrdma/verbs[a-z0-9_]*\.[ch]' $all
	rule 'libaio only in server/store_aio.c' "$inc<libaio\\.h>" '(server|tests/unit)/(test_)?store_aio\.c' $all
	rule '<rpc/> only where listed in scripts/check-layers.sh' "$inc<rpc/" \
		'include/rpcrdma_payload\.h|include/rpcrdma_tirpc\.h|rpcrdma/stream[a-z_]*\.[ch]|rpcrdma/(clnt|svc)_rdma\.c|server/(prog|nfs3_meta)\.h|server/rpcbind\.c|tests/.*' $all
	rule 'base/ knows nobody' "${inc}\"(leat|rpcrdma)[a-z_]*\\.h\"" 'none' $(sources include/base)
	rule 'rpcrdma/ knows no NFS, server or client' \
		"$inc\"(leat|nfs3|mount3|ctl|nfs_errno|nfs3_names|block|volume)\\.h\"" 'none' $(sources rpcrdma)
	rule 'xdr/ has no transport and no storage' "$inc\"(rpcrdma|leat)\\.h\"" 'none' $(sources xdr)
	rule 'client/ uses leat.h, its own and xdr/ headers' "$inc\"(rpcrdma|server|tests)/" 'none' $(sources client)
	rule 'server/ sees no other folder' "$inc\"(rpcrdma|client|tests)/" 'none' $(sources server)
	rule 'the leat command uses leat.h and base/ only' \
		"$inc\"(rpcrdma|nfs3|mount3|ctl|nfs_errno|nfs3_names)[a-z0-9_]*\\.h\"" \
		'client/tools/dump_[a-z]*\.c' $(sources client/tools)
}

# A bare name must be of the file's own folder, or of a folder that it may see.
own() {
	dir=$1
	shift
	for f in $(sources "$dir"); do
		sed -nE "s/$inc\"([^\"]+)\".*/\\1/p" "$f" | while read -r h; do
			found=
			for d in "$(dirname "$f")" include build/gen "$@"; do
				[ -e "$d/$h" ] && found=1 && break
			done
			# captures are read by the decoders of those who speak on the wire
			case $f:$h in client/tools/dump*:hdr.h | client/tools/dump*:chunk.h | \
				client/tools/dump*:nfs3_names.h) found=1 ;; esac
			# build/gen may not have been made yet
			case $h in nfs3.h | mount3.h | ctl.h) found=1 ;; esac
			[ -n "$found" ] || echo "layers: $f includes \"$h\", which is behind a wall or missing"
		done
	done
}
out=$(own rpcrdma; own server xdr; own client/tools; own xdr)
[ -z "$out" ] || { echo "$out"; bad=1; }

[ "$bad" -ne 0 ] || echo "layers: $(echo "$all" | wc -l) files, all walls stand"
exit "$bad"
