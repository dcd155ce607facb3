/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * leatd_where.c - latency breakdown of a leatd's requests (ctl.x)
 *
 * Operation:  Parts and kinds are identified by name, so that servers with other sets work too; unknown
 *             names are skipped.
 * Memory:     The result is one block that contains its lists.
 * Threads:    As leatd.c.
 * Errors:     -EPROTO for a reply that no leatd sends.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hist.h"
#include "base/text.h"
#include "base/wire.h"
#include "leat.h"
#include "leatd.h"

#define WORD_BYTES (4u + CTL_WORD_MAX + 1u)
#define KIND_BYTES (WORD_BYTES + 16u + 4u + CTL_PARTS_MAX * (WORD_BYTES + 8u))
#define STATE_BYTES (WORD_BYTES + 4u + CTL_BUCKETS_MAX * 12u)
#define WHERE_REPLY_BYTES (16u + 4u + CTL_KINDS_MAX * KIND_BYTES + 4u + CTL_STATES_MAX * STATE_BYTES)
#define PIECES_REPLY_BYTES (4u + 16u + 4u + CTL_PIECES_MAX * 24u)

_Static_assert(HIST_BUCKETS == CTL_BUCKETS_MAX, "buckets are those of the server");
_Static_assert(ARRAY_SIZE(((struct leat_where *)0)->states) == CTL_STATES_MAX, "room for all");
_Static_assert(sizeof(((struct leat_where *)0)->states[0].name) == CTL_WORD_MAX + 1, "room for all");

static void take_part(struct leat_where_kind *to, const ctl_part *p)
{
	static const char *const names[] = {
		[LEAT_WHERE_WAITING] = "waiting", [LEAT_WHERE_DISK] = "disk",
		[LEAT_WHERE_NET] = "network",	  [LEAT_WHERE_BOTH] = "both",
		[LEAT_WHERE_FINISH] = "finish",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (!strcmp(p->name, names[i]))
			to->ns[i] = p->ns;
	}
}

static void take_kind(struct leat_where *w, const ctl_kind *k)
{
	const struct {
		const char *name;
		struct leat_where_kind *to;
	} known[] = {
		{ "READ", &w->read },
		{ "WRITE", &w->write },
		{ "other", &w->other },
	};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		if (strcmp(k->name, known[i].name) != 0)
			continue;
		known[i].to->requests = k->requests;
		known[i].to->bytes = k->bytes;
		for (u_int p = 0; p < k->parts.parts_len; p++)
			take_part(known[i].to, &k->parts.parts_val[p]);
	}
}

/* Return: the first bucket of the next state, or NULL: no histogram */
static struct leat_where_bucket *take_state(struct leat_where_state *to, const ctl_state *s,
					    struct leat_where_bucket *b)
{
	uint64_t next = 0;

	memcpy(to->name, s->name, strlen(s->name) + 1); /* the codec limits the length */
	text_clean(to->name);
	to->nbuckets = s->buckets.buckets_len;
	to->buckets = b;
	for (u_int i = 0; i < s->buckets.buckets_len; i++) {
		const ctl_bucket *from = &s->buckets.buckets_val[i];

		if (from->bucket < next || from->bucket >= HIST_BUCKETS || !from->count)
			return NULL;
		next = from->bucket + UINT64_C(1);
		*b++ = (struct leat_where_bucket){ hist_floor(from->bucket), from->count };
	}
	return b;
}

static int take_where(const ctl_where *from, struct leat_where **ret)
{
	struct leat_where_bucket *b;
	struct leat_where *w;
	size_t n = 0;

	for (u_int i = 0; i < from->states.states_len; i++)
		n += from->states.states_val[i].buckets.buckets_len;
	w = calloc(1, sizeof(*w) + n * sizeof(*b)); /* few: limited by the codec */
	if (!w)
		return -ENOMEM;
	b = (struct leat_where_bucket *)(void *)(w + 1);
	w->instance[0] = get_be64(from->instance);
	w->instance[1] = get_be64(from->instance + 8);
	for (u_int i = 0; i < from->kinds.kinds_len; i++)
		take_kind(w, &from->kinds.kinds_val[i]);
	for (u_int i = 0; b && i < from->states.states_len; i++)
		b = take_state(&w->states[w->nstates++], &from->states.states_val[i], b);
	if (!b) {
		free(w);
		return -EPROTO;
	}
	*ret = w;
	return 0;
}

int leat_server_where(struct leat *m, struct leat_where **ret)
{
	static const struct lt_leatd_question q = { CTL_WHERE, WHERE_REPLY_BYTES,
						    (xdrproc_t)xdr_ctl_where, "server times" };
	union lt_leatd_answer res;
	int rc = lt_leatd_ask(m, &q, &res);

	if (rc)
		return rc;
	rc = take_where(&res.where, ret);
	xdr_free(q.decode, (char *)&res);
	return rc;
}

void leat_where_free(struct leat_where *w)
{
	free(w);
}

static int take_trace(const ctl_trace *from, struct leat_trace **ret)
{
	size_t n = from->pieces.pieces_len;
	struct leat_trace *t = calloc(1, sizeof(*t) + n * sizeof(*t->pieces));

	if (!t)
		return -ENOMEM;
	t->xid = from->xid;
	t->is_write = from->is_write;
	t->bytes = from->bytes;
	t->total_ns = from->total;
	t->npieces = n;
	t->pieces = (struct leat_trace_piece *)(void *)(t + 1);
	for (size_t i = 0; i < n; i++) {
		const ctl_piece *p = &from->pieces.pieces_val[i];

		t->pieces[i] = (struct leat_trace_piece){
			.off = p->off,
			.len = p->len,
			.disk_begin_ns = p->disk_begin,
			.disk_end_ns = p->disk_end,
			.net_begin_ns = p->net_begin,
			.net_end_ns = p->net_end,
		};
	}
	*ret = t;
	return 0;
}

int leat_server_pieces(struct leat *m, struct leat_trace **ret)
{
	static const struct lt_leatd_question q = { CTL_PIECES, PIECES_REPLY_BYTES,
						    (xdrproc_t)xdr_ctl_pieces, "pieces" };
	union lt_leatd_answer res;
	int rc = lt_leatd_ask(m, &q, &res);

	if (rc)
		return rc;
	rc = res.pieces.is_there ? take_trace(&res.pieces.ctl_pieces_u.trace, ret) : -EAGAIN;
	xdr_free(q.decode, (char *)&res);
	return rc;
}

void leat_trace_free(struct leat_trace *t)
{
	free(t);
}
