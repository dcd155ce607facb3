/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * window.h - memory windows on registrations: keys that are valid during one call
 *
 * Used by a requester's registration (rpcrdma/reg) with the strategy `window`, and by a responder whose peer writes
 * to its memory (rpcrdma/modes). State machine and rules: window.c.
 */
#ifndef RR_WINDOW_H
#define RR_WINDOW_H

#include "ep.h"

struct rr_window;
struct rr_windows;

/* Waits until the peer can no longer access memory; embedded. */
struct rr_closing {
	unsigned n; /* windows that are still valid */
	void (*fn)(struct rr_closing *closing); /* runs after the last one */
};

/** rr_windows_create - creates an empty pool of windows for one connection
 * @remote: the peer was told that it may invalidate offered keys (RFC 8797)
 *
 * Return: 0, -ENOMEM.
 */
must_check int rr_windows_create(struct rpcrdma_engine *e, struct rr_pd *pd, bool remote,
				 struct rr_windows **ret);

/** rr_windows_on - sets the endpoint, before the first bind: windows are bound on its queue pair. When it starts to
 * end, nothing is invalidated any more: rr_window_put() then destroys windows. */
void rr_windows_on(struct rr_windows *ws, struct rr_ep *ep);

/** rr_windows_flush - posts the invalidations that wait for the end of the engine's pass, ahead of all later posts */
void rr_windows_flush(struct rr_windows *ws);

/** rr_windows_revoke - ends the access through all windows, bound or not; none can be taken afterwards
 * Call it before the queue pair is destroyed. NULL is ignored. */
void rr_windows_revoke(struct rr_windows *ws);

/** rr_windows_destroy - frees the pool; call after the last completion of the endpoint. NULL is ignored. */
void rr_windows_destroy(struct rr_windows *ws);

/** rr_windows_try - tests a bind and its invalidation on the device; its result is in dev->windows
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

/** rr_window_bind_alone - posts the bind of @w by @post, and learns from its completion whether the device's windows
 * work, if that is unknown (dev->windows) */
void rr_window_bind_alone(struct rr_windows *ws, struct rr_window *w, struct rr_post *post);

/** rr_window_replied - after the reply of its call, invalidates the window unless the reply did
 * @closing: counted up, and down again after the invalidation
 */
void rr_window_replied(struct rr_windows *ws, struct rr_window *w, struct rr_closing *closing);

/** rr_window_taken_back - handles the peer's invalidation of @key
 * Return: true: it was the key of @w, and the peer was allowed to invalidate it */
bool rr_window_taken_back(struct rr_windows *ws, struct rr_window *w, uint32_t key);

/** rr_window_put - returns a window; the peer has no access through it any more */
void rr_window_put(struct rr_windows *ws, struct rr_window *w);

#endif
