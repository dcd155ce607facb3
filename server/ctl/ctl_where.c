/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * ctl_where.c - latency breakdown of requests (xdr/ctl.x)
 *
 * Operation: WHERE adds up the sums that latency.c keeps for each reactor. Only buckets that are not empty
 *            are sent: a few hundred of 11520. PIECES takes the last trace and requests another one, of
 *            the next request in pieces. For root and leatd's own user on a local socket, this may be a
 *            request of any client; for other callers, of the same client.
 * Memory:    results in req_scratch().
 * Threads:   workers; each sum is atomic: a request that ends meanwhile may be counted in some of them and
 *            not yet in others.
 * Errors:    without memory the call is dropped, and the trace stays.
 */
#include "ctl_where.h"

#include <stdlib.h>
#include <string.h>

#include "conn.h"
#include "req.h"
#include "server_int.h"
#include "latency.h"

_Static_assert(LATENCY_PARTS <= CTL_PARTS_MAX, "all parts can be told");
_Static_assert(LATENCY_KINDS <= CTL_KINDS_MAX, "all kinds can be told");
_Static_assert(LATENCY_STATES <= CTL_STATES_MAX, "all states can be told");
_Static_assert(HIST_BUCKETS == CTL_BUCKETS_MAX, "all buckets can be told");
_Static_assert(LATENCY_UNITS_MAX <= CTL_PIECES_MAX, "all pieces can be told");

struct sums {
	ctl_kind kinds[LATENCY_KINDS];
	ctl_part parts[LATENCY_KINDS][LATENCY_PARTS];
	ctl_state states[LATENCY_STATES];
	ctl_bucket buckets[LATENCY_STATES][HIST_BUCKETS];
};

static char *word(const char *text)
{
	return (char *)(uintptr_t)text; /* never written */
}

static uint64_t load(const _Atomic uint64_t *sum)
{
	return atomic_load_explicit(sum, memory_order_relaxed);
}

static void sum_kind(const struct server *srv, struct sums *s, enum latency_kind kind)
{
	static const char *const names[] = {
		[LATENCY_READ] = "READ", [LATENCY_WRITE] = "WRITE", [LATENCY_OTHER] = "other"
	};
	ctl_kind *k = &s->kinds[kind];
	ctl_part *parts = s->parts[kind];

	k->name = word(names[kind]);
	k->parts.parts_val = parts;
	k->parts.parts_len = LATENCY_PARTS;
	for (unsigned i = 0; i < LATENCY_PARTS; i++)
		parts[i].name = word(latency_part_name((enum latency_part)i));
	for (unsigned re = 0; re < srv->nreactors; re++) {
		const struct latency_stats *w = &srv->reactors[re]->latency.stats;

		k->requests += load(&w->kinds[kind].requests);
		k->bytes += load(&w->kinds[kind].bytes);
		for (unsigned i = 0; i < LATENCY_PARTS; i++)
			parts[i].ns += load(&w->kinds[kind].ns[i]);
	}
}

static void sum_state(const struct server *srv, struct sums *s, enum req_state state)
{
	ctl_state *t = &s->states[state];
	ctl_bucket *b = s->buckets[state];

	t->name = word(req_state_name(state));
	t->buckets.buckets_val = b;
	for (unsigned i = 0; i < HIST_BUCKETS; i++) {
		uint64_t count = 0;

		for (unsigned re = 0; re < srv->nreactors; re++)
			count += load(&srv->reactors[re]->latency.stats.states[state][i]);
		if (count)
			b[t->buckets.buckets_len++] = (ctl_bucket){ .bucket = i, .count = count };
	}
}

void ctl_where_sums(struct req *r)
{
	struct sums *s = req_scratch(r, sizeof(*s));
	ctl_where *res = &ctl_call(r)->res.where;

	memcpy(res->instance, r->srv->instance, sizeof(res->instance));
	if (!s)
		return;
	for (unsigned i = 0; i < LATENCY_KINDS; i++)
		sum_kind(r->srv, s, (enum latency_kind)i);
	for (unsigned i = 0; i < LATENCY_STATES; i++)
		sum_state(r->srv, s, (enum req_state)i);
	res->kinds.kinds_val = s->kinds;
	res->kinds.kinds_len = LATENCY_KINDS;
	res->states.states_val = s->states;
	res->states.states_len = LATENCY_STATES;
}

static void tell(ctl_trace *to, ctl_piece *pieces, const struct latency_trace *t)
{
	to->xid = t->xid;
	to->is_write = t->is_write;
	to->bytes = t->bytes;
	to->total = t->total_ns;
	for (uint32_t i = 0; i < t->n; i++) {
		const struct latency_unit *p = &t->units[i];

		pieces[i] = (ctl_piece){
			.off = p->off,
			.len = p->len,
			.disk_begin = p->disk_begin,
			.disk_end = p->disk_end,
			.net_begin = p->net_begin,
			.net_end = p->net_end,
		};
	}
	to->pieces.pieces_val = pieces;
	to->pieces.pieces_len = t->n;
}

void ctl_where_pieces(struct req *r)
{
	struct rpcrdma_client_id client;
	ctl_piece *pieces = req_scratch(r, LATENCY_UNITS_MAX * sizeof(*pieces));
	struct latency_trace *t;
	ctl_pieces *res = &ctl_call(r)->res.pieces;

	if (!pieces)
		return;
	rpcrdma_client_id_of(&r->conn->peer, &client);
	t = latency_tracer_take(&r->srv->tracer, ctl_is_admin(&r->conn->peer) ? NULL : &client);
	res->is_there = FALSE;
	if (!t)
		return;
	res->is_there = TRUE;
	tell(&res->ctl_pieces_u.trace, pieces, t);
	free(t);
}
