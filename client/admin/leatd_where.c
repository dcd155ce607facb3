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
#include "leat_admin.h"
#include "leatd.h"

#define WORD_BYTES (4u + CTL_WORD_MAX + 1u)
#define KIND_BYTES (WORD_BYTES + 16u + 4u + CTL_PARTS_MAX * (WORD_BYTES + 8u))
#define STATE_BYTES (WORD_BYTES + 4u + CTL_BUCKETS_MAX * 12u)
#define WHERE_REPLY_BYTES (16u + 4u + CTL_KINDS_MAX * KIND_BYTES + 4u + CTL_STATES_MAX * STATE_BYTES)
#define PIECES_REPLY_BYTES (4u + 16u + 4u + CTL_PIECES_MAX * 24u)

_Static_assert(HIST_BUCKETS == CTL_BUCKETS_MAX, "buckets are those of the server");

/* One block: the result and all that it refers to */
struct where_block {
	struct leat_where where;
	struct leat_where_kind read, write, other;
	const struct leat_where_state *list[CTL_STATES_MAX];
	struct leat_where_state states[CTL_STATES_MAX];
	char names[CTL_STATES_MAX][CTL_WORD_MAX + 1];
	struct leat_where_bucket buckets[];
};

struct trace_block {
	struct leat_trace trace;
	struct leat_trace_piece pieces[];
	/* and an array of pointers to them */
};

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

static void take_kind(struct where_block *w, const ctl_kind *k)
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
static struct leat_where_bucket *take_state(struct where_block *w, size_t i, const ctl_state *s,
					    struct leat_where_bucket *b)
{
	struct leat_where_state *to = &w->states[i];
	uint64_t next = 0;

	memcpy(w->names[i], s->name, strlen(s->name) + 1); /* the codec limits the length */
	text_clean(w->names[i]);
	w->list[i] = to;
	to->name = w->names[i];
	to->nbuckets = s->buckets.buckets_len;
	to->buckets = b;
	for (u_int n = 0; n < s->buckets.buckets_len; n++) {
		const ctl_bucket *from = &s->buckets.buckets_val[n];

		if (from->bucket < next || from->bucket >= HIST_BUCKETS || !from->count)
			return NULL;
		next = from->bucket + UINT64_C(1);
		*b++ = (struct leat_where_bucket){ hist_floor(from->bucket), from->count };
	}
	return b;
}

static size_t count_buckets(const ctl_where *from)
{
	size_t n = 0;

	for (u_int i = 0; i < from->states.states_len; i++)
		n += from->states.states_val[i].buckets.buckets_len;
	return n;
}

static int take_where(const ctl_where *from, struct leat_where **ret)
{
	/* few: limited by the codec */
	struct where_block *w = calloc(1, sizeof(*w) + count_buckets(from) * sizeof(w->buckets[0]));
	struct leat_where_bucket *b;

	if (!w)
		return -ENOMEM;
	w->where = (struct leat_where){
		.instance = { get_be64(from->instance), get_be64(from->instance + 8) },
		.read = &w->read,
		.write = &w->write,
		.other = &w->other,
		.nstates = from->states.states_len,
		.states = w->list,
	};
	for (u_int i = 0; i < from->kinds.kinds_len; i++)
		take_kind(w, &from->kinds.kinds_val[i]);
	b = w->buckets;
	for (u_int i = 0; b && i < from->states.states_len; i++)
		b = take_state(w, i, &from->states.states_val[i], b);
	if (!b) {
		free(w);
		return -EPROTO;
	}
	*ret = &w->where;
	return 0;
}

int leat_server_where(struct leat *m, struct leat_where **ret)
{
	static const struct lt_leatd_question q = { CTL_WHERE, WHERE_REPLY_BYTES,
						    (xdrproc_t)xdr_ctl_where, "server times", false };
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
	struct trace_block *t = calloc(1, sizeof(*t) + n * (sizeof(t->pieces[0]) + sizeof(t->trace.pieces[0])));

	if (!t)
		return -ENOMEM;
	t->trace = (struct leat_trace){
		.xid = from->xid,
		.is_write = from->is_write,
		.bytes = from->bytes,
		.total_ns = from->total,
		.npieces = n,
		.pieces = (const struct leat_trace_piece **)(void *)(t->pieces + n),
	};
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
		t->trace.pieces[i] = &t->pieces[i];
	}
	*ret = &t->trace;
	return 0;
}

int leat_server_pieces(struct leat *m, struct leat_trace **ret)
{
	static const struct lt_leatd_question q = { CTL_PIECES, PIECES_REPLY_BYTES,
						    (xdrproc_t)xdr_ctl_pieces, "pieces", true };
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
