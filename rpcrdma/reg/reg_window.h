/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * reg_window.h - memory windows over registrations: a key that lives as long as its call
 *
 * What a requester's reg.c puts on top of a registration where the strategy is `window`, and a responder's
 * mode_window.c on top of memory that a mode's peer writes to; nobody else calls it. The state machine
 * and its rules: reg_window.c.
 */
#ifndef RR_REG_WINDOW_H
#define RR_REG_WINDOW_H

#include "ep.h"
#include "reg.h"

struct rr_window;

/** rr_windows_create - the pool of one connection, empty
 * @ep: on whose queue pair they are bound; NULL: rr_windows_on() says it before the first is
 * @remote: the peer was told that it may invalidate what it is offered (RFC 8797)
 *
 * Return: 0, -ENOMEM.
 */
must_check int rr_windows_create(struct rpcrdma_engine *e, struct rr_pd *pd, struct rr_ep *ep,
				 bool remote, struct rr_windows **ret);

/** rr_windows_on - the endpoint there was not yet */
void rr_windows_on(struct rr_windows *ws, struct rr_ep *ep);

/** rr_windows_flush - post the invalidations that wait for the end of the engine's pass; what else is
 * posted from now on comes after them */
void rr_windows_flush(struct rr_windows *ws);

/** rr_windows_over - the connection ends: from now on nothing is invalidated on it, windows end by being
 * put. NULL is fine. */
void rr_windows_over(struct rr_windows *ws);

/** rr_windows_destroy - before the queue pair; every window goes, bound or not. NULL is fine. */
void rr_windows_destroy(struct rr_windows *ws);

/** rr_windows_remote - may the peer invalidate what it is offered? Then that is windows only */
bool rr_windows_remote(const struct rr_windows *ws);

/** rr_windows_try - a bind and its invalidation, to see whether the device does it
 * @mr: registered for windows, and for as long as the pool is there
 * @tried: runs when it has worked, not from inside. If the device does not do it, the endpoint dies of
 *         that, with RR_WC_LOCAL
 *
 * Return: 0; -ENOMEM, -EOPNOTSUPP, what the device said.
 */
must_check int rr_windows_try(struct rr_windows *ws, struct rr_mr *mr, void (*tried)(void *ctx),
			      void *ctx);

/** rr_window_take - a window that is to be bound over [addr, addr+len) of @mr
 *
 * Return: 0 with its key; -ENOMEM: the device has no more of them.
 */
must_check int rr_window_take(struct rr_windows *ws, struct rr_mr *mr, void *addr, size_t len,
			      unsigned access, struct rr_window **ret, uint32_t *ret_key);

/** rr_window_bind - the request that binds it, which goes to the device now, in front of the Send */
struct rr_wr *rr_window_bind(struct rr_windows *ws, struct rr_window *w);

/** rr_window_answered - its call was answered: take it back if the answer did not
 * @closing: counted up, and down again when that is done
 */
void rr_window_answered(struct rr_windows *ws, struct rr_window *w, struct rr_reg_closing *closing);

/** rr_window_taken_back - the peer has invalidated @key
 * Return: whether it was the key of @w, and might */
bool rr_window_taken_back(struct rr_windows *ws, struct rr_window *w, uint32_t key);

/** rr_window_put - on return nothing is reached through it */
void rr_window_put(struct rr_windows *ws, struct rr_window *w);

#endif
