/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * drc_check.h - executes a non-idempotent request once, even if the client retransmits it
 */
#ifndef LEAT_SERVER_DRC_CHECK_H
#define LEAT_SERVER_DRC_CHECK_H

#include <stdbool.h>

#include "drc.h"
#include "rpcrdma.h"
#include "rpcrdma_payload.h" /* XDR */

struct req;

/* Part of a request. Owned by the reactor; the cache uses `call` while the verdict is DRC_JOINED. req.c initializes asked
 * and call.entry. */
struct drc_check {
	struct drc_call call;
	bool asked; /* the cache has been asked */
	enum drc_verdict verdict; /* if so; call.verdict is the cache's while it is DRC_JOINED */
	struct rpcrdma_msg msg;
};

#define DRC_ARGS_MAX 24704u /* longest arguments without payload, of any procedure: a SETACL's */

/** drc_check_enter - asks the cache what to do with @r, or returns the verdict if it was asked before
 *
 * The arguments must be decoded and the payload must be present. After DRC_JOINED the request runs again when the
 * verdict is known, and calls this again.
 *
 * Return: the verdict; DRC_EXECUTE if there is no cache.
 */
enum drc_verdict must_check drc_check_enter(struct req *r);

/** drc_check_leave - stops waiting for the original request; Return: true if @r was waiting and had no verdict yet */
bool must_check drc_check_leave(struct req *r);

/** drc_check_end - reports the end of @r to the cache, executed or not; call it before the reply if check.asked is set
 *
 * Return: true if the reply must be encoded by drc_check_encode() from @r->check.
 */
bool must_check drc_check_end(struct req *r);

/** drc_check_encode - writes the results in the form in which the cache keeps them */
bool_t drc_check_encode(XDR *xdrs, struct drc_check *o);

#endif
