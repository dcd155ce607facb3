/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * faults.c - lets the Nth operation of a kind fail
 *
 * Operation:  A request that must fail is posted in a form that every device refuses: a bind without rights, a Send
 *             of memory without a registration. So the fabric itself moves the queue pair to the error state. What
 *             is left of such a chain is flushed. A Send at which the link is cut completes as flushed, delivered
 *             or not: its acknowledgement is lost.
 * Memory:     One allocation per fabric; one per chain that is altered, for the duration of the post.
 * Threads:    As the operations. The counts are not locked: one thread at a time is inside when a fault is due.
 * Errors:     Those that are asked for.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hooks.h"

/* Stands for the user's rr_done of a request that the cut link flushes. */
struct cut {
	struct rr_done done;
	struct rr_done *user;
};

struct faults {
	struct rr_filter base;
	struct hooks hooks;
	struct cut cuts[2]; /* the Send, and the request after it */
};

static const char faults_name[] = "faults";

static struct faults *find_faults(const struct rr_fabric *fabric)
{
	struct rr_filter *filter = rr_filter_find(fabric, faults_name);

	return filter ? container_of(filter, struct faults, base) : NULL;
}

/* Counts down to a fault. Return: true if it is due. */
static bool is_due(uint64_t *count)
{
	return *count && --*count == 0;
}

static int faults_reg(struct rr_pd *pd, const struct rr_mr_attr *attr, struct rr_mr **ret)
{
	struct faults *f = find_faults(pd->fabric);

	if (!attr->dmabuf && is_due(&f->hooks.fail_reg))
		return -ENOMEM;
	return f->base.next->mr_reg(pd, attr, ret);
}

static int faults_window(struct rr_pd *pd, struct rr_mw **ret)
{
	struct faults *f = find_faults(pd->fabric);

	if (f->hooks.no_windows)
		return -EOPNOTSUPP;
	if (pd->fabric->attr.windows && is_due(&f->hooks.fail_window))
		return -ENOMEM;
	return f->base.next->mw_create(pd, ret);
}

static int faults_recv(struct rr_qp *qp, const struct rr_recv *recv)
{
	struct faults *f = find_faults(qp->fabric);

	if (is_due(&f->hooks.fail_post))
		return -ENOMEM;
	return f->base.next->post_recv(qp, recv);
}

/* Only its address matters: it marks a struct cut. faults_poll() removes them from completions. */
static void on_cut(struct rr_done *done, const struct rr_wc *wc)
{
	(void)done;
	(void)wc;
}

static void mark_cut(struct faults *f, unsigned i, struct rr_wr *wr)
{
	f->cuts[i] = (struct cut){ .done.fn = on_cut, .user = wr->done };
	wr->done = &f->cuts[i].done;
	wr->flags |= RR_WR_SIGNALED;
}

/* Makes a request one that the fabric refuses. */
static void ruin(struct rr_wr *wr)
{
	wr->op = RR_WR_SEND;
	wr->sge = (struct rr_sge){ .len = 1 };
}

/* Alters a chain as the faults ask. Return: true if the link ends after the chain. */
static bool alter(struct faults *f, struct rr_wr *wr)
{
	struct hooks *h = &f->hooks;

	for (; wr; wr = wr->next) {
		if (wr->op == RR_WR_BIND && is_due(&h->fail_bind))
			wr->bind.access = 0;
		if (wr->op != RR_WR_SEND && wr->op != RR_WR_SEND_INV && wr->op != RR_WR_WRITE_IMM)
			continue;
		if (!is_due(&h->cut_after_sends))
			continue;
		mark_cut(f, 0, wr);
		if (!h->cut_delivers) {
			ruin(wr);
			return false;
		}
		if (!wr->next)
			return true;
		mark_cut(f, 1, wr->next);
		ruin(wr->next);
		return false;
	}
	return false;
}

static int faults_send(struct rr_qp *qp, const struct rr_wr *wr)
{
	struct faults *f = find_faults(qp->fabric);
	struct rr_wr *copy;
	bool cut;
	size_t n = 0;
	int rc;

	if (is_due(&f->hooks.fail_post))
		return -ENOMEM;
	if (!f->hooks.fail_bind && !f->hooks.refuse_binds && !f->hooks.cut_after_sends)
		return f->base.next->post_send(qp, wr);
	for (const struct rr_wr *w = wr; w; w = w->next, n++)
		if (w->op == RR_WR_BIND && f->hooks.refuse_binds)
			return -EINVAL;
	copy = calloc(n, sizeof(*copy));
	if (!copy)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++, wr = wr->next) {
		copy[i] = *wr;
		copy[i].next = wr->next ? &copy[i + 1] : NULL;
	}
	cut = alter(f, copy);
	rc = f->base.next->post_send(qp, copy);
	free(copy);
	if (!rc && cut)
		f->base.next->qp_disconnect(qp);
	return rc;
}

static int faults_poll(struct rr_cq *cq, struct rr_wc *wc, int max)
{
	struct faults *f = find_faults(cq->fabric);
	int n = f->base.next->cq_poll(cq, wc, max);

	for (int i = 0; i < n; i++) {
		if (wc[i].done->fn == on_cut) {
			wc[i].done = container_of(wc[i].done, struct cut, done)->user;
			wc[i].status = RR_WC_FLUSHED;
		}
		if (is_due(&f->hooks.drop_completion)) {
			memmove(wc + i, wc + i + 1, (size_t)(--n - i) * sizeof(*wc));
			i--;
		} else if (is_due(&f->hooks.fail_completion)) {
			if (wc[i].status == RR_WC_OK && wc[i].qp)
				f->base.next->qp_disconnect(wc[i].qp);
			wc[i].status = RR_WC_LOST;
		}
	}
	return n;
}

static void faults_free(struct rr_filter *filter)
{
	free(container_of(filter, struct faults, base));
}

static int faults_push(struct rr_fabric *fabric, const struct hooks *hooks)
{
	struct faults *f = calloc(1, sizeof(*f));

	if (!f)
		return -ENOMEM;
	f->base.name = faults_name;
	f->base.free = faults_free;
	f->hooks = *hooks;
	rr_filter_push(fabric, &f->base);
	f->base.ops.mr_reg = faults_reg;
	f->base.ops.mw_create = faults_window;
	f->base.ops.post_recv = faults_recv;
	f->base.ops.post_send = faults_send;
	f->base.ops.cq_poll = faults_poll;
	if (hooks->no_windows)
		fabric->attr.windows = false;
	return 0;
}

/* Faults hit what chaos has let through. */
int hooks_push(struct rr_fabric *fabric, const struct rr_filters *self)
{
	const struct hooks *h = container_of(self, struct hooks, filters);
	int rc = h->pin ? pins_push(fabric) : 0;

	if (!rc && (h->fail_post || h->fail_completion || h->fail_reg || h->fail_window || h->fail_bind ||
		    h->refuse_binds || h->drop_completion || h->cut_after_sends || h->no_windows))
		rc = faults_push(fabric, h);
	if (!rc && h->chaos_seed)
		rc = chaos_push(fabric, h->chaos_seed);
	return rc;
}

struct hooks *faults_of(struct rr_fabric *fabric)
{
	static const struct hooks none;

	if (!find_faults(fabric) && faults_push(fabric, &none))
		abort(); /* no test goes on without it */
	return &find_faults(fabric)->hooks;
}
