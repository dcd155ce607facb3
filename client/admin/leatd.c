/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * leatd.c - queries and commands that only a leatd supports (ctl.x)
 *
 * Operation:  Each is one call without arguments. Counters are identified by name; leat_server_stats()
 *             ignores names that it does not know. The latency breakdown is in leatd_where.c.
 * Memory:     The codec allocates the reply, which is freed here.
 * Threads:    Any with the service thread, else the owner's; functions passed by the caller run on the
 *             caller's thread.
 * Errors:     leat_error() has the reason if a leatd refuses.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "leat_admin.h"
#include "leatd.h"
#include "op.h"
#include "lt_sized.h"
#include "sync.h"

#define STATS_REPLY_BYTES (8u + 256u * (4u + 256u + 8u))
#define INFO_REPLY_BYTES (8u + 260u + 16u + 64u * 260u)
#define ANSWER_REPLY_BYTES (8u + CTL_SAID_MAX + 1u)

static int errno_of(ctl_status s)
{
	static const int errs[] = {
		[CTL_DONE] = 0, [CTL_DENIED] = -EPERM, [CTL_REFUSED] = -EINVAL, [CTL_UNABLE] = -EOPNOTSUPP,
	};

	return (size_t)s < ARRAY_SIZE(errs) ? errs[s] : -EOPNOTSUPP;
}

static void ask(struct lt_op *op, int err)
{
	(void)err; /* a first step */
	lt_op_call_prog(op, lt_op_end);
}

static int submit_ask(struct leat *m, const char *verb, const struct lt_op_asked *asked, struct leat_cb cb)
{
	struct lt_op *op;
	int rc = lt_op_create(m, verb, NULL, NULL, cb, &op);

	if (rc)
		return rc;
	op->asked = asked;
	return lt_op_submit(op, ask);
}

int lt_leatd_ask(struct leat *m, const struct lt_leatd_question *q, union lt_leatd_answer *ret)
{
	static const struct lt_program ctl = { LEAT_CTL, LEAT_CTL_V1, .name = NULL };
	const struct lt_proc p = { .encode = (xdrproc_t)lt_call_xdr_nothing, .decode = q->decode,
				   .reply_max = q->reply_max, .changes = q->changes, .program = &ctl };
	const struct lt_op_asked asked = { .proc = q->proc, .p = &p, .res = ret };
	int rc;

	if (!m)
		return -EINVAL;
	if (!m->server->is_leatd)
		return -EOPNOTSUPP;
	memset(ret, 0, sizeof(*ret));
	rc = (int)LT_WAIT_FOR_AS(m, q->verb, submit_ask(m, q->verb, &asked, w.cb));
	if (rc)
		xdr_free(q->decode, (char *)ret); /* what was decoded before the error */
	return rc;
}

/* Return: as lt_leatd_ask() */
int leat_server_counters(struct leat *m,
			 void (*fn)(void *ctx, const char *name, uint64_t value), void *ctx)
{
	static const struct lt_leatd_question q = { CTL_STATS, STATS_REPLY_BYTES,
						    (xdrproc_t)xdr_ctl_stats, "server statistics", false };
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

/* Return: 0; -EINVAL: impossible size; as lt_leatd_ask() */
int leat_server_stats(struct leat *m, struct leat_server_stats *ret)
{
	struct leat_server_stats s = { 0 };
	int rc = lt_sized_check(ret);

	if (!rc)
		rc = leat_server_counters(m, take_stat, &s);
	if (!rc)
		lt_sized_copy(ret, &s, sizeof(s));
	return rc;
}

/* Return: as lt_leatd_ask() */
int leat_server_listeners(struct leat *m, void (*fn)(void *ctx, const char *url), void *ctx)
{
	static const struct lt_leatd_question q = { CTL_INFO, INFO_REPLY_BYTES,
						    (xdrproc_t)xdr_ctl_info, "server information", false };
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
						    (xdrproc_t)xdr_ctl_answer, "reload", true };

	return command(m, &q, said, cap);
}

int leat_server_drain(struct leat *m)
{
	static const struct lt_leatd_question q = { CTL_DRAIN, ANSWER_REPLY_BYTES,
					   (xdrproc_t)xdr_ctl_answer, "drain", true };

	return command(m, &q, NULL, 0);
}
