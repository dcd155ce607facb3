#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# check-layers.sh - checks the include rules of doc/design.md
#
# The compiler enforces the rules between the top folders, because each has its own include path. This script finds
# violations that the compiler accepts, and enforces the rules between the folders inside. It prints each violation as
# FILE:LINE:TEXT, with the rule.

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
all=$(sources include xdr rpcrdma tirpc server client tests)

# words are file names without blanks
# shellcheck disable=SC2086,SC2046
{
	rule 'no "../"' "$inc\"\\.\\./" 'none' $all
	rule 'verbs only in rpcrdma/verbs/' "$inc<(infiniband|rdma)/" 'rpcrdma/verbs/[a-z0-9_]*\.[ch]' $all
	rule 'libaio only in server/store/store_aio.c' "$inc<libaio\\.h>" '(server/store|tests/unit)/(test_)?store_aio\.[ch]' $all
	rule '<nbdkit> only in client/nbdkit/' "$inc<nbdkit" 'client/nbdkit/[a-z0-9_]*\.[ch]' $all
	rule '<rpc/> only where listed in scripts/check-layers.sh' "$inc<rpc/" \
		'include/rpcrdma_payload\.h|include/rpcrdma_tirpc\.h|tirpc/.*|rpcrdma/wire/stream\.[ch]|server/(spine/prog|nfs3/nfs3_meta)\.h|server/nfs3/rpcbind\.c|tests/.*' $all
	rule 'base/ includes no library header' "${inc}\"(leat|rpcrdma)[a-z_]*\\.h\"" 'none' $(sources include/base)
	rule 'tirpc/ sees the public headers of librpcrdma only' "$inc\"(rpcrdma(/|_lab)|server|client|tests)" 'none' $(sources tirpc)
	rule 'rpcrdma/ and tirpc/ know no NFS, server or client' \
		"$inc\"(leat|nfs3|mount3|ctl|nfs_errno|nfs3_names|block|volume)\\.h\"" 'none' $(sources rpcrdma tirpc)
	rule 'xdr/ has no transport and no storage' "$inc\"(rpcrdma(_(addr|loop|mem|clnt|svc|prog|lab))?|leat)\\.h\"" \
		'none' $(sources xdr)
	rule 'client/ uses leat.h, its own and xdr/ headers' "$inc\"(rpcrdma|server|tests)/" 'none' $(sources client)
	rule 'server/ sees no other folder' "$inc\"(rpcrdma|client|tests)/" 'none' $(sources server)
	# leat dump decodes captures with the decoders that the transport itself uses
	rule 'leat dump uses hdr.h and chunk.h of rpcrdma/' "$inc\"(proto|hdr_|plan|credit|stream|rpc_msg)[a-z]*\\.h\"" \
		'none' $(sources tests/tools/dump)
}

# The leat command is a program like any other: of the tree it includes leat.h, base/ and itself.
own=$(sources client/tools | sed -n 's,.*/\([a-z0-9_]*\)\.h$,\1,p' | paste -sd'|')
# shellcheck disable=SC2046
if found=$(grep -nE "$inc\"" $(sources client/tools) | grep -vE "include \"(base/[a-z0-9_]+|leat|leat_admin|leat_block|leat_volume|$own)\.h\""); then
	echo "$found" | sed 's,^,layers: the leat command uses leat.h and base/ only: ,'
	bad=1
fi

# So is the plugin of nbdkit, which uses the interface for volumes.
own=$(sources client/nbdkit | sed -n 's,.*/\([a-z0-9_]*\)\.h$,\1,p' | paste -sd'|')
# shellcheck disable=SC2046
if found=$(grep -nE "$inc\"" /dev/null $(sources client/nbdkit) | grep -vE "include \"(leat|leat_block|$own)\.h\""); then
	echo "$found" | sed 's,^,layers: the plugin of nbdkit uses leat.h and leat_block.h only: ,'
	bad=1
fi

# Inside of a top folder: scripts/layers.txt.
# shellcheck disable=SC2086,SC2046
awk -f scripts/includes.awk $(sources rpcrdma tirpc server client tests/flow) | awk -f scripts/layers.awk scripts/layers.txt - || bad=1
for d in $(sources rpcrdma tirpc server client | sed 's|/[^/]*$||' | sort | uniq -c | awk '$1 > 20 { print $2 }'); do
	echo "layers: $d has more than 20 files"
	bad=1
done
for d in $(sources rpcrdma tirpc server client | sed 's|/[^/]*$||' | sort -u); do
	grep -q "^folder $d:" scripts/layers.txt && continue
	echo "layers: $d is not in scripts/layers.txt"
	bad=1
done
for f in $(sources include xdr rpcrdma tirpc server client | sed 's|.*/||' | sort | uniq -d); do
	echo "layers: there are two files called $f"
	bad=1
done

[ "$bad" -ne 0 ] || echo "layers: $(echo "$all" | wc -l) files, all walls stand"
exit "$bad"
