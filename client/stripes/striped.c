/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * striped.c - a file of a striped volume: where its stripes are, and its size
 *
 * Operation:  Handles have a lifetime. It is counted here by the local clock, from the time at which the LAYOUT was sent.
 *             The size of a file only grows as long as its epoch is the same. A manager that cuts it raises the epoch,
 *             and the stripe servers refuse the handles of this client. So a read below the known size needs no look at it.
 *             The manager learns of writes by reports: by fsync, close and synchronous writes, and by a timer. A lease has
 *             it ask the servers if this client ends before its last report. Reports renew the lease, and that of the
 *             last close ends it; a client that was idle for long gets a new one with a layout.
 * Memory:     The state of a file lives as long as a file or an operation refers to it.
 * Threads:    The owner's.
 * Errors:     A report of the timer that fails is made again by the next tick, by fsync or close.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cache.h"
#include "op.h"
#include "striped.h"

#define REPORT_NS NS_PER_S
#define MARGIN_MAX_S 30u
#define LEASE_PART 3u /* a lease is good for all but that part of its time */

static struct lt_striped *find_node(const struct lt_volume *v, const struct lt_fh *fh)
{
	list_for_each(node, &v->nodes) {
		struct lt_striped *s = list_entry(node, struct lt_striped, link);

		if (lt_fh_is_equal(&s->fh, fh))
			return s;
	}
	return NULL;
}

struct lt_striped *lt_striped_get(struct lt_volume *v, const struct lt_fh *fh)
{
	struct lt_striped *s = find_node(v, fh);

	if (s) {
		s->refs++;
		return s;
	}
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->v = v;
	s->refs = 1;
	v->instance += 2; /* never 0 */
	s->instance = v->instance;
	s->fh = s->grown.fh = *fh;
	list_init(&s->grown.link);
	list_init(&s->waiting);
	list_add_tail(&v->nodes, &s->link);
	return s;
}

void lt_striped_put(struct lt_striped *s)
{
	if (!s || --s->refs)
		return;
	list_del(&s->grown.link);
	list_del(&s->link);
	free(s->servers);
	free(s->reads.v);
	free(s->writes.v);
	free(s);
}

/* ---- layouts ---- */

const struct lt_stripe_handles *lt_striped_handles(const struct lt_striped *s, bool write, uint64_t now_ns)
{
	const struct lt_stripe_handles *h = write ? &s->writes : &s->reads;

	return h->v && now_ns < h->until_ns ? h : NULL;
}

bool lt_striped_may(const struct lt_striped *s, enum lt_striped_use use, uint64_t now_ns)
{
	if (!lt_striped_handles(s, use != LT_STRIPED_READ, now_ns))
		return false;
	return use != LT_STRIPED_WRITE || now_ns < s->lease_ns || (s->lease_ns && lt_striped_owes(s));
}

/* Numbers the next call. */
static volume_lease lease_of(struct lt_striped *s, bool wanted)
{
	return (volume_lease){ .instance = wanted ? s->instance : 0, .number = ++s->v->number };
}

VOLLAYOUTargs lt_striped_ask(struct lt_striped *s, enum lt_striped_use use)
{
	return (VOLLAYOUTargs){ .fh = { s->fh.len, s->fh.data },
				.rights = use == LT_STRIPED_READ ? STRIPE_MAY_READ : STRIPE_MAY_WRITE,
				.lease = lease_of(s, use == LT_STRIPED_WRITE) };
}

/* A reply says that the lease lasts @ms from when its call was sent. */
static void renew_lease(struct lt_striped *s, uint32_t ms, uint64_t sent_ns)
{
	s->lease_ns = MAX(s->lease_ns, sent_ns + (ms - ms / LEASE_PART) * NS_PER_MS);
}

/* Return: NULL; or why it cannot be the layout of this file */
static const char *judge(const struct lt_striped *s, const VOLLAYOUTresok *ok)
{
	const struct layout l = { ok->unit, ok->stripes.stripes_len };

	if (!layout_valid(&l) || !ok->epoch || !ok->lifetime || ok->bytes > INT64_MAX)
		return "an impossible layout";
	if (s->layout.width && (s->layout.width != l.width || s->layout.unit != l.unit ||
				memcmp(s->object, ok->object, sizeof(s->object)) != 0))
		return "the layout of the file has changed";
	return NULL;
}

static int make_room(struct lt_striped *s, struct lt_stripe_handles *h, uint32_t width)
{
	if (!s->servers)
		s->servers = calloc(width, sizeof(*s->servers));
	if (!h->v)
		h->v = calloc(width, sizeof(*h->v));
	return s->servers && h->v ? 0 : -ENOMEM;
}

int lt_striped_take(struct lt_striped *s, bool write, const VOLLAYOUTresok *ok, uint64_t sent_ns, const char **why)
{
	struct lt_stripe_handles *h = write ? &s->writes : &s->reads;
	uint32_t margin_s = MIN(ok->lifetime / 4, MARGIN_MAX_S);

	*why = judge(s, ok);
	if (*why)
		return -EREMOTEIO;
	if (ok->epoch < s->epoch) { /* a newer one came first */
		*why = "an older layout than before";
		return h->v ? 0 : -EAGAIN;
	}
	if (make_room(s, h, ok->stripes.stripes_len)) {
		*why = "";
		return -ENOMEM;
	}
	if (ok->epoch != s->epoch) {
		s->bytes = s->grown.bytes = 0;
		s->reads.until_ns = s->writes.until_ns = 0;
	}
	s->layout = (struct layout){ ok->unit, ok->stripes.stripes_len };
	memcpy(s->object, ok->object, sizeof(s->object));
	s->epoch = ok->epoch;
	s->bytes = MAX(s->bytes, ok->bytes);
	for (uint32_t i = 0; i < s->layout.width; i++) {
		s->servers[i] = ok->stripes.stripes_val[i].server;
		memcpy(h->v[i], ok->stripes.stripes_val[i].handle, STRIPE_HANDLE_BYTES);
	}
	h->until_ns = sent_ns + (ok->lifetime - margin_s) * NS_PER_S;
	if (ok->lease)
		renew_lease(s, ok->lease, sent_ns);
	h->serial++;
	h->epoch = ok->epoch;
	return 0;
}

/* ---- reports ---- */

static void start_reports(struct lt_volume *v);

void lt_striped_wrote(struct lt_striped *s, uint64_t end)
{
	if (!lt_striped_owes(s))
		lt_cache_doubt(s->v->m->cache, lt_fh_wire(&s->fh));
	s->wrote++;
	s->grown.bytes = MAX(s->grown.bytes, end);
	if (!list_is_linked(&s->grown.link))
		list_add_tail(&s->v->m->grown, &s->grown.link);
	start_reports(s->v);
}

VOLREPORTargs lt_striped_report(struct lt_striped *s, bool last)
{
	VOLREPORTargs a = { .fh = { s->fh.len, s->fh.data }, .lease = lease_of(s, last || s->lease_ns), .bytes = s->grown.bytes };

	memcpy(a.handle, s->writes.v[0], sizeof(a.handle));
	a.flags = lt_striped_owes(s) ? VOLUME_REPORT_WROTE : 0;
	if (last) {
		a.flags |= VOLUME_REPORT_LAST;
		s->lease_ns = 0;
	}
	return a;
}

void lt_striped_reported(struct lt_striped *s, uint64_t upto, const VOLREPORTresok *ok, uint64_t sent_ns)
{
	s->reported = MAX(s->reported, upto);
	if (s->lease_ns && ok->lease)
		renew_lease(s, ok->lease, sent_ns);
	s->bytes = lt_striped_size(s);
	lt_cache_doubt(s->v->m->cache, lt_fh_wire(&s->fh));
	if (lt_striped_owes(s))
		return;
	list_del(&s->grown.link);
	s->grown.bytes = 0;
}

static void end_wait(struct lt_op *op, int err)
{
	list_del(&op->waits);
	op->stop_others = NULL;
	op->next(op, err);
}

static void stop_wait(struct lt_op *op)
{
	end_wait(op, -ECANCELED);
}

void lt_striped_wait_report(struct lt_striped *s, struct lt_op *op, lt_op_step next)
{
	if (!s->is_reporting) {
		next(op, 0);
		return;
	}
	op->next = next;
	op->stop_others = stop_wait;
	list_add_tail(&s->waiting, &op->waits);
}

static void take_report(struct lt_op *op)
{
	lt_striped_reported(op->striped, op->seq, &op->res.volreport.VOLREPORTres_u.resok, op->call.sent_ns);
}

static void resize_reported(struct lt_op *op, int err)
{
	struct lt_striped *s = op->striped;

	if (!err)
		take_report(op);
	lt_op_free_results(op);
	op->striped = NULL;
	lt_striped_put(s);
	op->resize_next(op, err == -ECANCELED ? err : 0); /* an older epoch: what was written may be cut already */
}

static void resize_report(struct lt_op *op, int err)
{
	struct lt_striped *s = op->striped;

	if (err || !lt_striped_owes(s) || !s->writes.v) {
		op->striped = NULL;
		lt_striped_put(s);
		op->resize_next(op, err);
		return;
	}
	op->seq = s->wrote;
	op->args.volreport = lt_striped_report(s, false);
	lt_op_call_volume(op, VOLUMEPROC_REPORT, resize_reported);
}

void lt_striped_before_resize(struct lt_op *op, const struct lt_fh *fh, lt_op_step next)
{
	struct lt_striped *s = find_node(op->task.m->volume, fh);

	if (!s) {
		next(op, 0);
		return;
	}
	lt_striped_hold(s);
	op->striped = s;
	op->resize_next = next;
	lt_striped_wait_report(s, op, resize_report);
}

static void report_end(struct lt_op *op, int err)
{
	struct lt_striped *s = op->striped;

	if (err && op->call.status == VOLUME_ERR_OLDEPOCH)
		s->writes.until_ns = 0; /* not again before there is a new layout */
	if (!err)
		take_report(op);
	lt_op_free_results(op);
	s->is_reporting = false;
	while (!list_is_empty(&s->waiting))
		end_wait(list_entry(s->waiting.next, struct lt_op, waits), 0);
	lt_striped_put(s);
	lt_op_finish(op, 0); /* no caller */
}

static void report_begin(struct lt_op *op, int err)
{
	struct lt_striped *s = op->striped;

	(void)err; /* a first step */
	op->seq = s->wrote;
	op->args.volreport = lt_striped_report(s, false);
	lt_op_call_volume(op, VOLUMEPROC_REPORT, report_end);
}

/* Return: true: @first runs without a caller */
static bool start_background(struct lt_striped *s, lt_op_step first)
{
	struct leat *m = s->v->m;
	struct lt_op *op;

	if (m->no_background || !lt_striped_handles(s, true, lt_handle_now(m)) ||
	    lt_op_create(m, "report", NULL, NULL, (struct leat_cb){ 0 }, &op))
		return false;
	op->task.background = true;
	op->striped = s;
	lt_striped_hold(s);
	(void)lt_op_submit(op, first);
	return true;
}

static void report_one(struct lt_striped *s)
{
	if (!s->is_reporting)
		s->is_reporting = start_background(s, report_begin);
}

static void leave_end(struct lt_op *op, int err)
{
	(void)err; /* then the lease lapses */
	lt_op_free_results(op);
	lt_striped_put(op->striped);
	lt_op_finish(op, 0);
}

static void leave_begin(struct lt_op *op, int err)
{
	struct lt_striped *s = op->striped;

	if (err || s->writers || !s->lease_ns || lt_striped_owes(s)) {
		leave_end(op, err);
		return;
	}
	op->args.volreport = lt_striped_report(s, true);
	lt_op_call_volume(op, VOLUMEPROC_REPORT, leave_end);
}

void lt_striped_leave(struct lt_striped *s)
{
	if (!--s->writers && s->lease_ns && !lt_striped_owes(s))
		(void)start_background(s, leave_begin);
}

static void report_all(struct rpcrdma_timer *t)
{
	struct lt_volume *v = container_of(t, struct lt_volume, timer);
	bool any = false;

	v->is_armed = false;
	list_for_each(node, &v->nodes) {
		struct lt_striped *s = list_entry(node, struct lt_striped, link);

		if (!lt_striped_owes(s))
			continue;
		report_one(s);
		any = true;
	}
	if (any)
		start_reports(v);
}

static void start_reports(struct lt_volume *v)
{
	if (v->is_armed || v->m->no_background)
		return;
	v->is_armed = true;
	v->timer.fn = report_all;
	rpcrdma_timer_set(v->m->session->engine, &v->timer, REPORT_NS);
}
