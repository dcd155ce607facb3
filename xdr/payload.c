/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * payload.c - the four items of NFSv3 that may move outside their message (RFC 8267 section 2)
 *
 * Operation:  Filters that the generated codecs call by name. They mark the payload; rpcrdma_xdr_payload()
 *             handles it according to the stream.
 * Memory:     None of its own.
 * Threads:    Any.
 * Errors:     FALSE: too long, or the stream ended.
 */
#include "nfs3.h"

/** xdr_payload3 - READ's and WRITE's data: opaque data<NFS3_DATA_MAX> */
bool_t xdr_payload3(XDR *xdrs, payload3 *p)
{
	return rpcrdma_xdr_payload(xdrs, p, NFS3_DATA_MAX);
}

/** xdr_nfspath_payload - READLINK's and SYMLINK's nfspath3: string<NFS3_PATH_MAX> */
bool_t xdr_nfspath_payload(XDR *xdrs, nfspath_payload *p)
{
	return rpcrdma_xdr_payload(xdrs, p, NFS3_PATH_MAX);
}
