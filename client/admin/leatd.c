/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * leatd.c - queries and commands that only a leatd supports (ctl.x)
 *
 * Operation:  Each is one call without arguments. Counters are identified by name; leat_server_stats()
 *             ignores names that it does not know. The latency breakdown is in leatd_where.c.
 * Memory:     The codec allocates the reply. It is copied to the caller and freed here.
 * Threads:    Any with the service thread, else the owner's; functions passed by the caller run on the
 *             caller's thread.
 * Errors:     leat_error() has the reason if a leatd refuses.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "leatd.h"
#include "op.h"
#include "sync.h"

#define STATS_REPLY_BYTES (8u + 256u * (4u + 256u + 8u))
#define INFO_REPLY_BYTES (8u + 260u + 16u + 64u * 260u)
#define ANSWER_REPLY_BYTES (8u + CTL_SAID_MAX + 1u)

struct ask {
	struct lt_task task;
	struct lt_call call;
	const struct lt_leatd_question *q;
	union lt_leatd_answer res, *ret;
};

static void release_ask(struct lt_task *t)
{
	struct ask *a = container_of(t, struct ask, task);

	xdr_free(a->q->decode, (char *)&a->res);
	free(a);
}

static int errno_of(ctl_status s)
{
	switch (s) {
	case CTL_DONE:
		return 0;
	case CTL_DENIED:
		return -EPERM;
	case CTL_REFUSED:
		return -EINVAL;
	case CTL_UNABLE:
		break;
	}
	return -EOPNOTSUPP;
}

static void asked(struct lt_call *c, int err)
{
	struct ask *a = container_of(c, struct ask, call);

	if (!err) {
		*a->ret = a->res;
		memset(&a->res, 0, sizeof(a->res));
	}
	if (err)
		lt_task_explain(&a->task, err, NULL, "%s", lt_call_cause(c));
	lt_task_finish(&a->task, err);
}

static void start_ask(struct lt_task *t)
{
	struct ask *a = container_of(t, struct ask, task);

	lt_call_start_other(&a->call, LEAT_CTL, LEAT_CTL_V1, a->q->proc, a->q->decode, &a->res,
			    a->q->reply_max, asked);
}

int lt_leatd_ask(struct leat *m, const struct lt_leatd_question *q, union lt_leatd_answer *ret)
{
	struct lt_wait w;
	struct ask *a;
	int rc;

	if (!m->is_leatd)
		return -EOPNOTSUPP;
	rc = lt_sync_begin(&w, m);
	if (rc)
		return rc;
	a = calloc(1, sizeof(*a));
	if (a) {
		a->task.m = m;
		a->task.cb = w.cb;
		a->task.verb = q->verb;
		a->task.start = start_ask;
		a->task.release = release_ask;
		a->q = q;
		a->ret = ret;
		lt_call_init(&a->call, m, NULL);
		lt_task_submit(&a->task);
	}
	return (int)lt_sync_end(&w, a ? 0 : -ENOMEM);
}

/* Return: as lt_leatd_ask() */
int leat_server_counters(struct leat *m,
			 void (*fn)(void *ctx, const char *name, uint64_t value), void *ctx)
{
	static const struct lt_leatd_question q = { CTL_STATS, STATS_REPLY_BYTES,
						    (xdrproc_t)xdr_ctl_stats, "server statistics" };
	union lt_leatd_answer res;
	int rc = lt_leatd_ask(m, &q, &res);

	if (rc)
		return rc;
	for (unsigned i = 0; i < res.stats.stats.stats_len; i++) {
		text_clean(res.stats.stats.stats_val[i].name);
		fn(ctx, res.stats.stats.stats_val[i].name, res.stats.stats.stats_val[i].value);
	}
	xdr_free(q.decode, (char *)&res);
	return 0;
}

static void take_stat(void *ctx, const char *name, uint64_t value)
{
	struct leat_server_stats *s = ctx;
	const struct {
		const char *name;
		uint64_t *to;
	} known[] = {
#define SAME(name) { #name, &s->name }
		SAME(cpu_us), SAME(bytes_in), SAME(bytes_out), SAME(bytes_copied), SAME(bytes_placed),
		SAME(bytes_pulled), SAME(bytes_direct), SAME(calls), SAME(conns),
#undef SAME
		{ "instance_0", &s->instance[0] },
		{ "instance_1", &s->instance[1] },
	};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		if (!strcmp(name, known[i].name))
			*known[i].to = value;
	}
}

/* Return: as lt_leatd_ask() */
int leat_server_stats(struct leat *m, struct leat_server_stats *ret)
{
	struct leat_server_stats s = { 0 };
	int rc = leat_server_counters(m, take_stat, &s);

	if (!rc)
		*ret = s;
	return rc;
}

/* Return: as lt_leatd_ask() */
int leat_server_listeners(struct leat *m, void (*fn)(void *ctx, const char *url), void *ctx)
{
	static const struct lt_leatd_question q = { CTL_INFO, INFO_REPLY_BYTES,
						    (xdrproc_t)xdr_ctl_info, "server information" };
	union lt_leatd_answer res;
	int rc = lt_leatd_ask(m, &q, &res);

	if (rc)
		return rc;
	for (unsigned i = 0; i < res.info.listeners.listeners_len; i++) {
		text_clean(res.info.listeners.listeners_val[i].url);
		fn(ctx, res.info.listeners.listeners_val[i].url);
	}
	xdr_free(q.decode, (char *)&res);
	return 0;
}

static int command(struct leat *m, const struct lt_leatd_question *q, char *said, size_t cap)
{
	union lt_leatd_answer res;
	int rc = lt_leatd_ask(m, q, &res);

	if (rc)
		return rc;
	text_clean(res.answer.said);
	if (cap)
		snprintf(said, cap, "%s", res.answer.said);
	rc = errno_of(res.answer.status);
	if (rc)
		lt_handle_tell(m, NULL, NULL, q->verb, rc, res.answer.said);
	xdr_free(q->decode, (char *)&res);
	return rc;
}

int leat_server_reload(struct leat *m, char *said, size_t cap)
{
	static const struct lt_leatd_question q = { CTL_RELOAD, ANSWER_REPLY_BYTES,
						    (xdrproc_t)xdr_ctl_answer, "reload" };

	return command(m, &q, said, cap);
}

int leat_server_drain(struct leat *m)
{
	static const struct lt_leatd_question q = { CTL_DRAIN, ANSWER_REPLY_BYTES,
					   (xdrproc_t)xdr_ctl_answer, "drain" };

	return command(m, &q, NULL, 0);
}
