/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * window.c - memory windows on registrations: keys that are valid during one call
 *
 * Operation:  A window (type 2B) gives registered memory another key, valid for one queue pair, one range and
 *             one right. Its bind is posted in front of the Send that announces it, in the same chain, without
 *             waiting for it. The window is invalidated before the call is done:
 *
 *                            take            bind, with R             the peer's Send
 *                    FREE ---------> READY ----------------> PENDING -----------------> FREE
 *                      ^  put          |                        |  reply without it
 *                      '---------------|                        v
 *                      |               '--- bind, no R ---->  BOUND
 *                      |  completion                            |  reply
 *                      '------------------ INV_POSTED <---------'
 *
 *                 FREE         no key is valid; in the pool, or still with its call
 *                 READY        key known, bind not posted: not accessible
 *                 BOUND        accessible, and only this side invalidates it
 *                 PENDING      accessible, and the peer may invalidate it with its reply (RFC 8797)
 *                 INV_POSTED   LOCAL_INV is queued; inaccessible when that completes
 *
 *             So a bind ends exactly once: by the peer's invalidation, or by ours once the peer has replied
 *             without using its right, or, from every state, with the window itself (a call that is given up, a
 *             connection that breaks). A second invalidation of one bind crashes some machines (verbs_int.h),
 *             and is an error on every NIC.
 *
 *             The LOCAL_INVs of one pass of the engine are posted as one chain; the rr_post of its first window
 *             completes for all. rr_windows_flush() posts them earlier.
 * Memory:     Windows are allocated when first needed and reused, longest unused first: a key repeats after 256
 *             binds of its window. A window that is given up while its LOCAL_INV is in flight is freed when
 *             that has completed.
 * Threads:    The connection's.
 * Errors:     On a broken connection a LOCAL_INV may not have been executed: its window is deallocated, which
 *             has the same effect.
 * See:        RFC 8797 section 4.2; RFC 8166 section 4.4.1; doc/protocol.md section 5.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "window.h"

#define CHAIN_MAX 16u

enum window_state {
	WINDOW_FREE,
	WINDOW_READY,
	WINDOW_BOUND,
	WINDOW_PENDING,
	WINDOW_INV_POSTED,
};

struct rr_window {
	struct list all;                /* ws->all */
	struct list link;               /* ws->free, ws->dirty or ws->ended */
	struct rr_windows *ws;
	struct rr_mw *mw;               /* NULL: deallocated */
	bool orphan;                    /* put while its invalidation was in flight; freed with `post` */
	enum window_state state;
	uint32_t key;
	struct rr_wr wr;                /* its bind, then its invalidation */
	struct rr_post post;            /* of a chain that begins with it */
	struct rr_closing *closing; /* waits for the invalidation */
};

struct rr_windows {
	struct rpcrdma_engine *engine;
	struct rr_pd *pd;
	struct rr_ep *ep;
	bool remote;
	struct list all;
	struct list free;               /* longest unused first */
	struct list dirty;              /* INV_POSTED, and not in a chain yet */
	struct list ended;              /* invalidated, but their calls are not notified yet */
	struct rpcrdma_msg flush;
	bool flush_out;

	struct rr_post trial_bind, trial; /* rr_windows_try() */
	struct rr_wr trial_inv;
	struct rr_window *tried;
	void (*on_tried)(void *ctx);
	void *tried_ctx;
};

static void free_window(struct rr_window *w)
{
	rr_mw_destroy(w->mw);
	list_del(&w->all);
	list_del(&w->link);
	free(w);
}

static int make_window(struct rr_windows *ws, struct rr_window **ret)
{
	struct rr_window *w = calloc(1, sizeof(*w));
	int rc;

	if (!w)
		return -ENOMEM;
	rc = rr_mw_create(ws->pd, &w->mw);
	if (rc) {
		free(w);
		return rc;
	}
	w->ws = ws;
	list_init(&w->link);
	list_init(&w->post.link);
	list_add_tail(&ws->all, &w->all);
	*ret = w;
	return 0;
}

/* ---- the end of an invalidation ------------------------------------------------------------- */

static void detach(struct rr_window *w)
{
	struct rr_closing *closing = w->closing;

	w->closing = NULL;
	if (closing)
		closing->n--;
}

/* Notifies the calls one at a time: each of them may change what the others hold. */
static void tell_ended(struct rr_windows *ws)
{
	struct list *node;

	while ((node = list_pop(&ws->ended)) != NULL) {
		struct rr_window *w = list_entry(node, struct rr_window, link);
		struct rr_closing *closing = w->closing;

		detach(w);
		if (closing && !closing->n)
			closing->fn(closing);
	}
}

static void on_invalidated(struct rr_post *post, enum rr_wc_status status)
{
	struct rr_windows *ws = container_of(post, struct rr_window, post)->ws;
	struct rr_wr *next;

	for (struct rr_wr *wr = post->first; wr; wr = next) {
		struct rr_window *w = container_of(wr, struct rr_window, wr);

		next = wr->next;
		if (w->orphan) {
			free_window(w);
			continue;
		}
		/* if it was not executed, rr_window_put() destroys the window */
		w->state = status == RR_WC_OK ? WINDOW_FREE : WINDOW_BOUND;
		list_add_tail(&ws->ended, &w->link);
	}
	tell_ended(ws);
}

static void flush(struct rr_windows *ws)
{
	struct rr_window *first = NULL;
	struct rr_wr **tail = NULL;
	struct list *node;

	while ((node = list_pop(&ws->dirty)) != NULL) {
		struct rr_window *w = list_entry(node, struct rr_window, link);

		w->wr = (struct rr_wr){ .op = RR_WR_LOCAL_INV, .rkey = w->key };
		rr_count(ws->engine, local_invs, 1);
		if (!first) {
			first = w;
			w->post.first = &w->wr;
			w->post.n = 0;
			w->post.fn = on_invalidated;
		} else {
			*tail = &w->wr;
		}
		tail = &w->wr.next;
		if (++first->post.n < CHAIN_MAX && !list_is_empty(&ws->dirty))
			continue;
		rr_ep_post(ws->ep, &first->post);
		first = NULL;
	}
}

/* On a connection that ends, the state of the peer's right is unknown: nothing is invalidated. */
static bool is_over(const struct rr_windows *ws)
{
	return rr_ep_is_ending(ws->ep);
}

static void give_up_dirty(struct rr_windows *ws)
{
	struct list *node;

	while ((node = list_pop(&ws->dirty)) != NULL) {
		list_entry(node, struct rr_window, link)->state = WINDOW_BOUND;
		list_add_tail(&ws->ended, node);
	}
	tell_ended(ws);
}

static void on_flush(struct rpcrdma_msg *msg)
{
	struct rr_windows *ws = container_of(msg, struct rr_windows, flush);

	ws->flush_out = false;
	if (is_over(ws))
		give_up_dirty(ws);
	else
		flush(ws);
}

/* ---- the pool --------------------------------------------------------------------------------- */

int rr_windows_create(struct rpcrdma_engine *e, struct rr_pd *pd, bool remote,
		      struct rr_windows **ret)
{
	struct rr_windows *ws = calloc(1, sizeof(*ws));

	if (!ws)
		return -ENOMEM;
	ws->engine = e;
	ws->pd = pd;
	ws->remote = remote;
	ws->flush.fn = on_flush;
	list_init(&ws->all);
	list_init(&ws->free);
	list_init(&ws->dirty);
	list_init(&ws->ended);
	*ret = ws;
	return 0;
}

void rr_windows_on(struct rr_windows *ws, struct rr_ep *ep)
{
	assert(!ws->ep);
	ws->ep = ep;
}

void rr_windows_flush(struct rr_windows *ws)
{
	if (!ws->flush_out)
		return;
	rr_engine_undefer(ws->engine, &ws->flush);
	on_flush(&ws->flush);
}

/* The trial may fail because its window is gone: that says nothing about the device. */
static void on_revoked(struct rr_post *post, enum rr_wc_status status)
{
	(void)post;
	(void)status;
}

void rr_windows_revoke(struct rr_windows *ws)
{
	if (!ws)
		return;
	ws->trial_bind.fn = ws->trial.fn = on_revoked;
	list_for_each(node, &ws->all) {
		struct rr_window *w = list_entry(node, struct rr_window, all);

		rr_mw_destroy(w->mw);
		w->mw = NULL;
	}
}

void rr_windows_destroy(struct rr_windows *ws)
{
	if (!ws)
		return;
	if (ws->flush_out)
		rr_engine_undefer(ws->engine, &ws->flush);
	list_for_each_safe(node, &ws->all)
		free_window(list_entry(node, struct rr_window, all));
	free(ws);
}

/* ---- the first bind on a device -------------------------------------------------------------- */

static void on_bound_alone(struct rr_post *post, enum rr_wc_status status)
{
	int untried = RR_WINDOWS_UNTRIED;

	if (status == RR_WC_OK || status == RR_WC_LOCAL)
		(void)atomic_compare_exchange_strong(&post->ep->dev->windows, &untried,
						     status == RR_WC_OK ? RR_WINDOWS_WORK :
									  RR_WINDOWS_BROKEN);
}

void rr_window_bind_alone(struct rr_windows *ws, struct rr_window *w, struct rr_post *post)
{
	*post = (struct rr_post){ .first = rr_window_bind(ws, w), .n = 1, .fn = on_bound_alone };
	list_init(&post->link);
	rr_ep_post(ws->ep, post);
}

static void on_trial(struct rr_post *post, enum rr_wc_status status)
{
	struct rr_windows *ws = container_of(post, struct rr_windows, trial);

	if (status == RR_WC_LOCAL) /* of no use either, if windows cannot be invalidated */
		atomic_store(&ws->ep->dev->windows, RR_WINDOWS_BROKEN);
	if (status != RR_WC_OK)
		return; /* the connection is dead too, and the window ends with it */
	ws->tried->state = WINDOW_FREE;
	rr_window_put(ws, ws->tried);
	ws->on_tried(ws->tried_ctx);
}

int rr_windows_try(struct rr_windows *ws, struct rr_mr *mr, void (*tried)(void *ctx), void *ctx)
{
	uint32_t key;
	int rc;

	rc = rr_window_take(ws, mr, mr->addr, mr->len, RR_ACCESS_REMOTE_READ, &ws->tried, &key);
	if (rc)
		return rc;
	/* the peer does not know its key: both requests are posted at once */
	ws->on_tried = tried;
	ws->tried_ctx = ctx;
	rr_window_bind_alone(ws, ws->tried, &ws->trial_bind);
	ws->trial_inv = (struct rr_wr){ .op = RR_WR_LOCAL_INV, .rkey = key };
	ws->tried->state = WINDOW_INV_POSTED;
	ws->trial = (struct rr_post){ .first = &ws->trial_inv, .n = 1, .fn = on_trial };
	list_init(&ws->trial.link);
	rr_ep_post(ws->ep, &ws->trial);
	return 0;
}

/* ---- a window's life ------------------------------------------------------------------------- */

int rr_window_take(struct rr_windows *ws, struct rr_mr *mr, void *addr, size_t len, unsigned access,
		   struct rr_window **ret, uint32_t *ret_key)
{
	struct list *node = list_pop(&ws->free);
	struct rr_window *w;
	int rc;

	if (node) {
		w = list_entry(node, struct rr_window, link);
	} else {
		rc = make_window(ws, &w);
		if (rc)
			return rc;
	}
	assert(w->state == WINDOW_FREE && w->mw && !w->closing);
	w->key = rr_mw_next_rkey(w->mw->rkey);
	w->wr = (struct rr_wr){
		.op = RR_WR_BIND,
		.rkey = w->key,
		.bind = { .mw = w->mw, .mr = mr, .addr = addr, .len = len,
			  .access = access & RR_ACCESS_REMOTE },
	};
	w->state = WINDOW_READY;
	*ret = w;
	*ret_key = w->key;
	return 0;
}

struct rr_wr *rr_window_bind(struct rr_windows *ws, struct rr_window *w)
{
	assert(w->state == WINDOW_READY);
	w->state = ws->remote ? WINDOW_PENDING : WINDOW_BOUND;
	rr_count(ws->engine, binds, 1);
	return &w->wr;
}

void rr_window_replied(struct rr_windows *ws, struct rr_window *w, struct rr_closing *closing)
{
	if (w->state == WINDOW_FREE || is_over(ws))
		return; /* with the reply, or by being put */
	/* the peer has replied: it will not invalidate the window any more */
	assert(w->state == WINDOW_PENDING || w->state == WINDOW_BOUND);
	w->state = WINDOW_INV_POSTED;
	w->closing = closing;
	closing->n++;
	list_add_tail(&ws->dirty, &w->link);
	if (!ws->flush_out)
		rr_engine_defer(ws->engine, &ws->flush);
	ws->flush_out = true;
}

bool rr_window_taken_back(struct rr_windows *ws, struct rr_window *w, uint32_t key)
{
	if (!ws->remote || w->state != WINDOW_PENDING || w->key != key)
		return false;
	w->state = WINDOW_FREE;
	return true;
}

/* Destroys a window that is not FREE or READY. If its LOCAL_INV is in flight, that may then fail, and break the
 * connection. */
void rr_window_put(struct rr_windows *ws, struct rr_window *w)
{
	bool in_chain = w->state == WINDOW_INV_POSTED && !list_is_linked(&w->link);

	list_del(&w->link);
	detach(w);
	if (w->state == WINDOW_FREE || w->state == WINDOW_READY) {
		w->state = WINDOW_FREE;
		list_add_tail(&ws->free, &w->link);
	} else if (in_chain) {
		rr_mw_destroy(w->mw);
		w->mw = NULL;
		w->orphan = true;
	} else {
		free_window(w);
	}
}
