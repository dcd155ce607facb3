/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * mode_window.c - keys of memory that a mode's peer writes to: windows, which can be invalidated
 *
 * Operation:  Memory that fast-write and hybrid let a peer write to is registered for local use and
 *             windows only. The peer gets the keys of windows over it (type 2B, window.c). The slots
 *             have one for the life of the connection. Each grant has one, over exactly its own bytes,
 *             until its call has arrived.
 *
 *                 slots   the accept announces the key. The bind is posted before any other request, when
 *                         the peer's first message has arrived. We post only in reply to messages,
 *                         so a peer with a message from us knows that the window is bound.
 *                 grant   bound in front of the RR_GRANT that announces the key (mode_grant.c)
 *
 *             Nothing waits for a bind. But the first bind of a device is posted separately: when a chain
 *             fails, the failed request is unknown, and an action of the peer must not mark the device
 *             as unable to bind. If the bind fails, that connection ends, and later ones use no windows.
 *
 *             Without windows the peer gets the registration's own key, valid for the whole area and the
 *             life of the connection. That is the case on a device without windows, and on one where a
 *             second invalidation crashes the kernel (verbs_int.h: soft RoCE): a peer that knows a
 *             window's key could cause that by two Sends. Such devices have windows here only if
 *             peers are allowed to invalidate (unsafe_inv).
 * Memory:     The windows belong to the connection, and are destroyed before its queue pair.
 * Threads:    The connection's engine; the accepting engine creates them.
 * Errors:     No window for the slots: the mode is not granted. None for a grant: it is refused.
 */
#include <errno.h>

#include "mode_srv.h"

static struct rr_dev *dev_of(const struct rr_mode *m)
{
	return m->conn->ep->dev;
}

int rr_mode_windows_init(struct rr_mode *m, struct rr_dev *dev)
{
	const struct rr_fabric_attr *f = &dev->fabric->attr;

	if (!(m->modes & (RPCRDMA_FAST_WRITE | RPCRDMA_HYBRID)) || !f->windows || !f->remote_inv ||
	    atomic_load(&dev->windows) == RR_WINDOWS_BROKEN)
		return 0;
	return rr_windows_create(m->conn->base.engine, m->head.pd, false, &m->windows);
}

void rr_mode_windows_fini(struct rr_mode *m)
{
	rr_windows_destroy(m->windows);
	m->windows = NULL;
}

int rr_mode_key_get(struct rr_mode *m, const struct rr_area *area, void *addr, size_t len,
		    struct rr_mode_key *ret)
{
	*ret = (struct rr_mode_key){ .key = area->zone.own.mr->rkey };
	if (!m->windows)
		return 0;
	return rr_window_take(m->windows, area->zone.own.mr, addr, len, RR_ACCESS_REMOTE_WRITE, &ret->window,
			      &ret->key);
}

/* ---- bind --------------------------------------------------------------------------------- */

void rr_mode_key_post(struct rr_mode *m, const struct rr_mode_key *k, struct rr_post *alone,
		      struct rr_post *post)
{
	if (k->window && atomic_load(&dev_of(m)->windows) == RR_WINDOWS_UNTRIED) {
		rr_window_bind_alone(m->windows, k->window, alone);
	} else if (k->window) {
		struct rr_wr *bind = rr_window_bind(m->windows, k->window);

		bind->next = post->first;
		post->first = bind;
		post->n++;
	}
	rr_ep_post(m->conn->ep, post);
}

void rr_mode_windows_start(struct rr_mode *m)
{
	if (m->started || !m->windows)
		return;
	m->started = true;
	rr_windows_on(m->windows, m->conn->ep);
	if (m->inbox_key.window)
		rr_window_bind_alone(m->windows, m->inbox_key.window, &m->inbox_bind);
}

/* ---- invalidation ------------------------------------------------------------------------- */

void rr_mode_key_invalidate(struct rr_mode *m, const struct rr_mode_key *k,
			    struct rr_closing *closing)
{
	if (!k->window)
		return;
	rr_window_replied(m->windows, k->window, closing);
	rr_windows_flush(m->windows); /* before the reply to the peer */
}

void rr_mode_key_put(struct rr_mode *m, struct rr_mode_key *k)
{
	if (k->window)
		rr_window_put(m->windows, k->window);
	k->window = NULL;
}
