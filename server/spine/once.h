/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * once.h - a call that changes something is executed once, however often it comes
 */
#ifndef LEAT_SERVER_ONCE_H
#define LEAT_SERVER_ONCE_H

#include <stdbool.h>

#include "drc.h"
#include "nfsacl.h"
#include "rpcrdma.h"
#include "rpcrdma_payload.h" /* XDR */

struct req;

/* Part of a request. Owned by the reactor, `call` while joined by the cache. */
struct once {
	struct drc_call call;
	bool asked;  /* the cache has been asked */
	bool joined; /* and will tell */
	enum drc_verdict verdict;
	struct rpcrdma_msg msg;
};

/* Longest arguments without payload: two full lists of SETACL, behind a handle. */
#define ONCE_ARGS_MAX (128u + 2u * 12u * NFS_ACL_MAX_ENTRIES)

/** once_init - of a new request */
void once_init(struct once *o);

/** once_enter - the cache is asked, or has been: what is to become of @r?
 *
 * Its arguments are decoded, its payload is there. After DRC_JOINED it is run again when the verdict
 * is there, and asks again.
 *
 * Return: DRC_EXECUTE also if there is no cache.
 */
enum drc_verdict must_check once_enter(struct req *r);

/** once_leave - it waits for its like no longer; Return: whether it did, and still would */
bool must_check once_leave(struct req *r);

/** once_end - it has been executed, or not; before it is answered
 *
 * Return: true: it is to be answered by once_encode() and @r->once.
 */
bool must_check once_end(struct req *r);

/** once_encode - the results as they are kept */
bool_t once_encode(XDR *xdrs, struct once *o);

#endif
