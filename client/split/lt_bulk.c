/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * lt_bulk.c - reads and writes of any length: split into several calls in flight, results combined
 *
 * Operation:  lt_bulk_submit() -> start_bulk() -> issue(): a subrequest is one call. It has at most `unit`
 *             bytes and covers at most ops->parts parts of the caller's memory. If the operation needs
 *             several subrequests, each ends at a multiple of that size (unless ops->split divides it otherwise). The
 *             payload of the call is the caller's memory itself: the transport moves it, this file copies nothing (but see
 *             lt_stage.c). Up to `window` subrequests are in flight; when one is done, the next is sent. `end` is the
 *             lowest offset at which a subrequest met the end of file or an error; results at or above it are ignored.
 * Memory:     The first subrequest is part of struct lt_bulk, others come from a free list of the session. Both
 *             are recycled: in steady state, I/O allocates nothing.
 * Threads:    lt_bulk_get() and lt_bulk_submit() any; the rest the owner's. The pool of struct lt_bulk is locked.
 * Errors:     Read: an error below the end of file is the result, because a short count means end of file.
 *             Write: the bytes written before the error are the result, if any, unless ops->is_whole. A cancelled
 *             write of which any part may have been written ends with -EINPROGRESS.
 * See:        doc/tour.md, the life of a READ and of a WRITE.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "lt_bulk.h"
#include "lt_stage.h"
#include "handle.h"

#define POOLED_MAX 256u
#define WINDOW_MAX 1024u /* calls of an operation, if a budget limits their bytes */

static void issue(struct lt_bulk *b);

/* ---- recycled memory ---- */

static struct lt_bulk *get_bulk(struct leat_session *s)
{
	struct lt_bulk *b;

	pthread_mutex_lock(&s->lock);
	b = s->free_bulks;
	if (b) {
		s->free_bulks = b->next_free;
		s->free_bulks_count--;
	}
	pthread_mutex_unlock(&s->lock);
	return b ? b : malloc(sizeof(*b));
}

static void put_bulk(struct leat_session *s, struct lt_bulk *b)
{
	if (b->many)
		free(b->many);
	pthread_mutex_lock(&s->lock);
	if (s->free_bulks_count < POOLED_MAX) {
		b->next_free = s->free_bulks;
		s->free_bulks = b;
		s->free_bulks_count++;
		b = NULL;
	}
	pthread_mutex_unlock(&s->lock);
	free(b);
}

void lt_bulk_free_pools(struct leat_session *s)
{
	while (s->free_bulks) {
		struct lt_bulk *b = s->free_bulks;

		s->free_bulks = b->next_free;
		free(b);
	}
	s->free_bulks_count = 0;
	while (s->free_subreqs) {
		struct lt_subreq *p = s->free_subreqs;

		s->free_subreqs = p->next;
		free(p);
	}
	lt_stage_free_pool(s);
}

static struct lt_subreq *get_subreq(struct lt_bulk *b)
{
	struct leat_session *s = b->task.m->session;
	struct lt_subreq *p;

	if (b->has_first) {
		b->has_first = false;
		p = &b->first;
	} else if (s->free_subreqs) {
		p = s->free_subreqs;
		s->free_subreqs = p->next;
	} else {
		p = malloc(sizeof(*p));
		if (!p)
			return NULL;
	}
	p->bulk = b;
	p->stage = NULL;
	p->tries = 0;
	p->asked_again = false;
	p->share = NULL;
	p->held = 0;
	lt_call_init(&p->call, b->task.m, NULL);
	return p;
}

static void put_subreq(struct lt_subreq *p)
{
	struct lt_bulk *b = p->bulk;

	lt_stage_put(p);
	if (p == &b->first) {
		b->has_first = true;
		return;
	}
	p->next = b->task.m->session->free_subreqs;
	b->task.m->session->free_subreqs = p;
}

/* ---- the caller's memory ---- */

int lt_bulk_sum(const struct iovec *iov, int cnt, uint64_t *ret)
{
	uint64_t sum = 0;

	if (cnt < 0)
		return -EINVAL;
	for (int i = 0; i < cnt; i++)
		if (!add_u64(sum, iov[i].iov_len, &sum))
			return -EINVAL;
	*ret = sum;
	return 0;
}

/* Assigns the next part of the caller's memory, at most @max bytes, to @p. */
static uint32_t take_parts(struct lt_bulk *b, struct lt_subreq *p, uint64_t max)
{
	const int parts = b->ops->parts;
	uint32_t len = 0;

	p->iov_first = 0;
	p->iov_cnt = 0;
	while (len < max && p->iov_cnt < parts) {
		const struct iovec *v = &b->iov[b->iov_at];
		size_t n = MIN(v->iov_len - b->iov_off, (size_t)(max - len));

		if (n) {
			p->iov[p->iov_cnt].iov_base = (char *)v->iov_base + b->iov_off;
			p->iov[p->iov_cnt].iov_len = n;
			p->iov_cnt++;
			len += (uint32_t)n;
			b->iov_off += n;
		}
		if (b->iov_off == v->iov_len) {
			b->iov_at++;
			b->iov_off = 0;
		}
	}
	return len;
}

static uint32_t take_memory(struct lt_bulk *b, struct lt_subreq *p, uint64_t max)
{
	return unlikely(b->staged) ? lt_stage_take(b, p, max) : take_parts(b, p, max);
}

/* As take_memory(), but a multiple of the grain: a call that has its maximum of parts may end elsewhere. */
static uint32_t take_grains(struct lt_bulk *b, struct lt_subreq *p, uint64_t max)
{
	int at = b->iov_at;
	size_t off = b->iov_off;
	uint32_t len = take_memory(b, p, max);

	if (likely(len == max || b->grain == 1 || !(len % b->grain)))
		return len;
	b->iov_at = at;
	b->iov_off = off;
	return take_memory(b, p, len - len % b->grain);
}

void lt_bulk_advance(struct lt_subreq *p, uint32_t n)
{
	p->off += n;
	p->len -= n;
	while (n) {
		struct iovec *v = &p->iov[p->iov_first];
		size_t step = MIN(v->iov_len, (size_t)n);

		v->iov_base = (char *)v->iov_base + step;
		v->iov_len -= step;
		n -= (uint32_t)step;
		if (!v->iov_len) {
			p->iov_first++;
			p->iov_cnt--;
		}
	}
}

/* ---- the operation ---- */

static void release_bulk(struct lt_task *t)
{
	struct lt_bulk *b = container_of(t, struct lt_bulk, task);
	const struct lt_bulk_ops *ops = b->ops;
	void *object = b->object;

	put_bulk(t->m->session, b);
	if (ops->release)
		ops->release(object);
}

static void finish_bulk(struct lt_bulk *b)
{
	uint64_t good;
	bool fails;

	if (b->end_err == -ECANCELED && b->changed)
		b->end_err = -EINPROGRESS;
	good = b->end - b->off;
	fails = b->end_err && (b->ops->is_whole || !b->write || !good);
	lt_task_finish(&b->task, fails ? b->end_err : (int64_t)good, release_bulk);
}

bool lt_bulk_may_continue(struct lt_subreq *p)
{
	struct lt_bulk *b = p->bulk;

	if (p->off >= b->end)
		return false; /* at or above `end`: ignored */
	if (b->task.cancelled) {
		lt_bulk_stop(b, p->off, -ECANCELED);
		return false;
	}
	return true;
}

/* ---- budgets ---- */

/* A wait goes on as long as no call of the server is replied to. */
static void note_wait(struct lt_bulk *b, const struct lt_budget *g)
{
	if (b->waited.at == g && b->waited.replies == g->replies)
		return;
	b->waited.at = g;
	b->waited.since_ns = lt_handle_now(b->task.m);
	b->waited.replies = g->replies;
}

uint32_t lt_bulk_patience(const struct lt_subreq *p, uint32_t ms)
{
	const struct lt_bulk *b = p->bulk;
	uint64_t past_ms;

	if (likely(!p->share || b->waited.at != p->share || b->waited.replies != p->share->replies || !ms))
		return ms;
	past_ms = (lt_handle_now(b->task.m) - b->waited.since_ns) / NS_PER_MS;
	return past_ms < ms ? ms - (uint32_t)past_ms : 0;
}

/* May a call with @bytes be sent? Otherwise the operation waits in turn. */
static bool fits(struct lt_bulk *b, struct lt_budget *g, uint64_t bytes)
{
	if (likely(!g) || !g->used || g->used + bytes <= g->max)
		return true;
	if (!b->is_waiting) {
		list_add_tail(&g->waiting, &b->waits);
		b->is_waiting = true;
		note_wait(b, g);
	}
	return false;
}

static bool fits_budget(struct lt_bulk *b)
{
	return fits(b, b->budget, unlikely(b->staged) ? LT_STAGE_BYTES : MIN(b->end - b->next, (uint64_t)b->unit));
}

static void stop_waiting(struct lt_bulk *b)
{
	list_del(&b->waits);
	b->is_waiting = false;
}

static void hold_budget(struct lt_bulk *b, struct lt_subreq *p)
{
	if (likely(!b->budget))
		return;
	p->held = unlikely(b->staged) ? LT_STAGE_BYTES : p->len;
	b->budget->used += p->held;
	if (p->share)
		p->share->used += p->held;
}

static void wake_waiting(struct lt_budget *g)
{
	struct lt_bulk *b;

	while ((b = list_first_entry(&g->waiting, struct lt_bulk, waits)) && (!g->used || g->used + b->unit <= g->max)) {
		stop_waiting(b);
		issue(b); /* sends a call, or ends the operation */
	}
}

static void note_failure(struct lt_subreq *p, int err, bool is_explained)
{
	struct lt_bulk *b = p->bulk;
	char what[48];

	snprintf(what, sizeof(what), "%s at offset %llu", lt_call_name(&p->call), (unsigned long long)p->off);
	if (p->off < b->end && !is_explained)
		lt_task_explain(&b->task, err, what, "%s", lt_call_cause(&p->call));
	lt_bulk_stop(b, p->off, err);
	b->changed |= b->write && (err == -EINPROGRESS || (err == -ETIMEDOUT && p->call.rpc.sent));
	lt_call_free(&p->call); /* what was decoded before the error */
}

void lt_bulk_done(struct rpcrdma_call *rpc, int err)
{
	struct lt_call *call = lt_call_ended(rpc, &err);
	struct lt_budget *budget, *share;
	struct lt_subreq *p;
	struct lt_bulk *b;
	int first;

	if (!call)
		return;
	p = container_of(call, struct lt_subreq, call);
	b = p->bulk;
	budget = b->budget;
	first = err;
	if (p->share && !err)
		p->share->replies++;
	if (unlikely(err) && b->ops->failed && b->ops->failed(p, &err))
		return;
	if (err)
		note_failure(p, err, err != first);
	else if (!b->ops->replied(p))
		return;
	list_del(&p->link);
	share = p->share;
	if (budget)
		budget->used -= p->held;
	if (share)
		share->used -= p->held;
	put_subreq(p);
	b->flying--;
	if (!b->is_waiting)
		issue(b);
	if (share)
		wake_waiting(share);
	if (unlikely(budget))
		wake_waiting(budget);
}

static void fly(struct lt_bulk *b, struct lt_subreq *p)
{
	b->flying++;
	list_add_tail(&b->sent, &p->link);
}

struct lt_subreq *lt_bulk_ask(struct lt_bulk *b)
{
	struct lt_subreq *p = get_subreq(b); /* the first one: it is there */

	p->off = b->off;
	p->len = 0;
	fly(b, p);
	return p;
}

/* Return: the subrequest at b->next; NULL: no memory. Small parts that are not staged may not make up one grain. */
static struct lt_subreq *next_subreq(struct lt_bulk *b)
{
	struct lt_subreq *p = get_subreq(b);
	const uint32_t unit = b->unit;
	uint64_t max = b->end - b->next;

	if (!p)
		return NULL;
	if (b->ops->split) {
		if (b->ops->split(b, p)) {
			if (fits(b, p->share, p->len))
				return p;
			b->ops->unsplit(b, p);
		}
		put_subreq(p);
		return NULL;
	}
	/* one call if it fits; otherwise split at a multiple of the unit */
	if (max > unit)
		max = unit - b->next % unit;
	else if (b->next > b->off && b->next % unit + max > unit)
		max = unit - b->next % unit;
	p->off = b->next;
	p->len = take_grains(b, p, max);
	b->next += p->len;
	if (likely(p->len))
		return p;
	put_subreq(p);
	return NULL;
}

/* Return: true: another call follows those of the operation */
static bool is_ending(struct lt_bulk *b)
{
	return b->write && b->ops->ending && b->ops->ending(b);
}

/* Sends subrequests as long as the window allows; finishes after the last subrequest has completed. */
static void issue(struct lt_bulk *b)
{
	const struct leat *m = b->task.m;

	while (b->next < b->end && b->flying < b->window && !b->task.cancelled && fits_budget(b)) {
		struct lt_subreq *p = next_subreq(b);

		if (!p) {
			if (!b->flying && !b->is_waiting && b->next < b->end)
				lt_bulk_stop(b, b->next, -ENOMEM);
			break;
		}
		if (p->stage)
			rpcrdma_count_copied(m->session->engine, p->staged);
		hold_budget(b, p);
		fly(b, p);
		b->ops->send(p);
	}
	if (b->task.cancelled)
		lt_bulk_stop(b, b->next, -ECANCELED);
	if (!b->flying && !b->is_waiting && !is_ending(b))
		finish_bulk(b);
}

/* What has arrived stays valid below the lowest offset whose subrequest is cancelled. */
static void stop_bulk(struct lt_task *t)
{
	struct lt_bulk *b = container_of(t, struct lt_bulk, task);
	struct lt_subreq *p;

	if (b->is_waiting) {
		stop_waiting(b);
		if (!b->flying) {
			issue(b);
			return;
		}
	}
	/* the end of one call may end others, of this operation too */
	while ((p = list_first_entry(&b->sent, struct lt_subreq, link))) {
		list_del(&p->link);
		list_add_tail(&b->stopped, &p->link);
		lt_call_cancel(&p->call);
	}
}

static void start_bulk(struct lt_task *t)
{
	struct lt_bulk *b = container_of(t, struct lt_bulk, task);

	b->ops->begin(b);
	if (!b->flying)
		issue(b);
}

static int copy_iov(struct lt_bulk *b, const struct iovec *iov, int cnt)
{
	b->many = NULL;
	b->iov_at = 0;
	b->iov_off = 0;
	b->iov_cnt = cnt;
	if (cnt <= 1) {
		b->one = cnt ? iov[0] : (struct iovec){ 0 };
		b->iov = &b->one;
		return 0;
	}
	b->many = malloc((size_t)cnt * sizeof(*iov));
	if (!b->many)
		return -ENOMEM;
	memcpy(b->many, iov, (size_t)cnt * sizeof(*iov));
	b->iov = b->many;
	return 0;
}

struct lt_bulk *lt_bulk_get(struct leat *m, const struct iovec *iov, int cnt)
{
	struct lt_bulk *b = get_bulk(m->session);

	if (!b)
		return NULL;
	if (copy_iov(b, iov, cnt)) {
		put_bulk(m->session, b);
		return NULL;
	}
	b->task.m = m;
	b->task.background = false;
	b->task.path2 = NULL;
	b->budget = NULL;
	b->written = NULL;
	b->epoch = 0;
	return b;
}

void lt_bulk_submit(struct lt_bulk *b)
{
	const struct leat *m = b->task.m;

	b->next = b->off;
	b->end = b->off + b->size;
	b->end_err = 0;
	b->flying = 0;
	b->window = b->budget ? WINDOW_MAX : m->url.credits * m->server->clnts;
	b->has_first = true;
	b->staged = b->ops->stages && lt_stage_wants(b->iov, b->iov_cnt);
	if (unlikely(b->staged) && !b->budget) /* else the bytes of that bound the buffers, too */
		b->budget = &m->session->stages;
	b->changed = b->is_waiting = false;
	b->waited.at = NULL;
	b->phase = 0;
	b->split.is_open = false;
	list_init(&b->waits);
	list_init(&b->sent);
	list_init(&b->stopped);
	b->task.stop = stop_bulk;
	lt_task_submit(&b->task, start_bulk);
}
