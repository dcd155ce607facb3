/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * reg_window.h - memory windows on registrations: keys that are valid during one call
 *
 * Used by a requester's reg.c with the strategy `window`, and by a responder whose peer writes to its memory
 * (rpcrdma/designs). State machine and rules: reg_window.c.
 */
#ifndef RR_REG_WINDOW_H
#define RR_REG_WINDOW_H

#include "ep.h"
#include "reg.h"

struct rr_window;

/** rr_windows_create - creates an empty pool of windows for one connection
 * @ep: binds them on its queue pair; NULL: call rr_windows_on() before the first bind
 * @remote: the peer was told that it may invalidate offered keys (RFC 8797)
 *
 * Return: 0, -ENOMEM.
 */
must_check int rr_windows_create(struct rpcrdma_engine *e, struct rr_pd *pd, struct rr_ep *ep,
				 bool remote, struct rr_windows **ret);

/** rr_windows_on - sets the endpoint, if it was NULL at creation */
void rr_windows_on(struct rr_windows *ws, struct rr_ep *ep);

/** rr_windows_flush - posts the invalidations that wait for the end of the engine's pass, ahead of all later posts */
void rr_windows_flush(struct rr_windows *ws);

/** rr_windows_over - at the end of the connection, stops invalidations; rr_window_put() then destroys windows.
 * NULL is ignored. */
void rr_windows_over(struct rr_windows *ws);

/** rr_windows_destroy - destroys all windows, bound or not; call before destroying the queue pair. NULL is ignored. */
void rr_windows_destroy(struct rr_windows *ws);

/** rr_windows_remote - may the peer invalidate offered keys? Then only windows may be offered */
bool rr_windows_remote(const struct rr_windows *ws);

/** rr_windows_try - tests a bind and its invalidation on the device
 * @mr: registered for windows, and as long as the pool exists
 * @tried: runs on success, not inside this call. If the device fails, the endpoint dies with RR_WC_LOCAL
 *
 * Return: 0; -ENOMEM, -EOPNOTSUPP, errors of the device.
 */
must_check int rr_windows_try(struct rr_windows *ws, struct rr_mr *mr, void (*tried)(void *ctx),
			      void *ctx);

/** rr_window_take - takes a window for [addr, addr+len) of @mr; bind it with rr_window_bind()
 *
 * Return: 0 with its key; -ENOMEM: the device has no more of them.
 */
must_check int rr_window_take(struct rr_windows *ws, struct rr_mr *mr, void *addr, size_t len,
			      unsigned access, struct rr_window **ret, uint32_t *ret_key);

/** rr_window_bind - returns the bind request; the caller posts it now, in front of the Send */
struct rr_wr *rr_window_bind(struct rr_windows *ws, struct rr_window *w);

/** rr_window_answered - after the reply of its call, invalidates the window unless the reply did
 * @closing: counted up, and down again after the invalidation
 */
void rr_window_answered(struct rr_windows *ws, struct rr_window *w, struct rr_reg_closing *closing);

/** rr_window_taken_back - handles the peer's invalidation of @key
 * Return: true: it was the key of @w, and the peer was allowed to invalidate it */
bool rr_window_taken_back(struct rr_windows *ws, struct rr_window *w, uint32_t key);

/** rr_window_put - returns a window; the peer has no access through it any more */
void rr_window_put(struct rr_windows *ws, struct rr_window *w);

#endif
