/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * latency.c - breakdown of the time of requests
 *
 * Operation: A request that is sampled has a stopwatch for each part. The begin and end of a disk or network
 *            operation stop one and start another. A request in pieces is always sampled: the clock is read a
 *            few times per piece, which costs less than the piece's completion. Of the others one in
 *            WHERE_ONE_IN is sampled, so that 4 KiB reads do not pay for it. A sample is enough for the rates
 *            and shares that are reported. The distance between two samples is random, because callers are
 *            often periodic: with alternating reads and writes, every sixteenth request would always be a read.
 *
 *                   arrival                                                  reply sent
 *                     |  waiting |  disk  |      both      |  net  |   finish     |
 *
 *            A trace has the same times for one request and each of its pieces. It is made on demand.
 * Memory:    A trace is malloc'ed by its request and handed over to the server's tracer.
 * Threads:   The reactor's; where_tracer_take() any.
 * Errors:    Without memory there is no trace.
 */
#include "latency.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "conn.h"
#include "reactor.h"
#include "req.h"
#include "server_int.h"

_Static_assert(REQ_FREE == WHERE_STATES, "a histogram for each state but the last");

const char *where_part_name(enum where_part part)
{
	static const char *const names[] = {
		[WHERE_WAITING] = "waiting", [WHERE_DISK] = "disk",	[WHERE_NET] = "network",
		[WHERE_BOTH] = "both",	     [WHERE_FINISH] = "finish",
	};

	return (unsigned)part < WHERE_PARTS ? names[part] : "?";
}

void where_tracer_init(struct where_tracer *t)
{
	memset(t, 0, sizeof(*t));
	pthread_mutex_init(&t->lock, NULL);
}

void where_tracer_fini(struct where_tracer *t)
{
	for (unsigned i = 0; i < WHERE_ASKERS; i++)
		free(t->slots[i].last);
	pthread_mutex_destroy(&t->lock);
}

static bool is_same(const struct rpcrdma_client_id *a, const struct rpcrdma_client_id *b)
{
	return !memcmp(a, b, sizeof(*a));
}

struct where_trace *where_tracer_take(struct where_tracer *t, const struct rpcrdma_client_id *client)
{
	enum where_asker asker = client ? WHERE_ASKER_CLIENT : WHERE_ASKER_ADMIN;
	struct where_trace *last = NULL;

	pthread_mutex_lock(&t->lock);
	if (!client || is_same(client, &t->slots[asker].of)) {
		last = t->slots[asker].last;
		t->slots[asker].last = NULL;
	}
	if (client)
		t->slots[asker].client = *client;
	pthread_mutex_unlock(&t->lock);
	atomic_store(&t->slots[asker].wanted, true);
	return last;
}

static void give(struct where_tracer *t, struct where_trace *trace, const struct rpcrdma_client_id *of)
{
	struct where_trace *old;

	pthread_mutex_lock(&t->lock);
	old = t->slots[trace->asker].last;
	t->slots[trace->asker].last = trace;
	t->slots[trace->asker].of = *of;
	pthread_mutex_unlock(&t->lock);
	free(old);
}

/* Return: true if @asker waits for a request like @r. Only one request gets true. */
static bool is_wanted(struct req *r, enum where_asker asker)
{
	struct where_tracer *t = &r->srv->tracer;
	bool wanted = true;

	if (!atomic_load_explicit(&t->slots[asker].wanted, memory_order_relaxed))
		return false;
	if (asker == WHERE_ASKER_CLIENT) {
		struct rpcrdma_client_id id;

		rpcrdma_client_id_of(&r->conn->peer, &id);
		pthread_mutex_lock(&t->lock);
		wanted = is_same(&id, &t->slots[asker].client);
		pthread_mutex_unlock(&t->lock);
	}
	return wanted && atomic_exchange(&t->slots[asker].wanted, false);
}

static void turn_on(struct req *r)
{
	struct where *w = &r->where;

	w->on = true;
	w->came_ns = w->last_ns = w->state_ns = clock_now_ns();
	w->disk = w->net = 0;
	for (unsigned i = 0; i < WHERE_PARTS; i++)
		w->ns[i] = 0;
}

/* Number of requests until the next sample: 1 to 2 * WHERE_ONE_IN - 1, WHERE_ONE_IN on average.
 * Marsaglia's xorshift; the state must not be 0. */
static unsigned next_turn(struct reactor *re)
{
	uint32_t x = re->where_seed ? re->where_seed : 1;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	re->where_seed = x;
	return 1 + x % (2 * WHERE_ONE_IN - 1);
}

void where_begin(struct req *r)
{
	struct reactor *re = r->reactor;

	r->where.on = false;
	r->where.trace = NULL;
	if (re->where_turn--)
		return;
	re->where_turn = next_turn(re) - 1;
	turn_on(r);
}

void where_pieces(struct req *r)
{
	enum where_asker asker = WHERE_ASKER_ADMIN;
	struct where *w = &r->where;

	if (!w->on)
		turn_on(r);
	while (asker < WHERE_ASKERS && !is_wanted(r, asker))
		asker++;
	if (asker == WHERE_ASKERS)
		return;
	w->trace = malloc(sizeof(*w->trace));
	if (!w->trace)
		return;
	w->trace->xid = r->xid;
	w->trace->bytes = r->place.total;
	w->trace->is_write = r->place.kind == PLACE_WRITE;
	w->trace->n = 0;
	w->trace->asker = asker;
}

static enum where_part part_now(const struct req *r)
{
	const struct where *w = &r->where;

	if (w->disk)
		return w->net ? WHERE_BOTH : WHERE_DISK;
	if (w->net)
		return WHERE_NET;
	return r->state == REQ_REPLYING ? WHERE_FINISH : WHERE_WAITING;
}

/* Adds the time since the last call to the part that was active. Return: the time now */
static uint64_t account(struct req *r)
{
	struct where *w = &r->where;
	uint64_t now = clock_now_ns();

	w->ns[part_now(r)] += now - w->last_ns;
	w->last_ns = now;
	return now;
}

/* There is one writer, so no atomic read-modify-write is needed. */
static void add(_Atomic uint64_t *to, uint64_t n)
{
	atomic_store_explicit(to, atomic_load_explicit(to, memory_order_relaxed) + n,
			      memory_order_relaxed);
}

void where_state(struct req *r)
{
	struct where *w = &r->where;
	uint64_t now;

	if (!w->on)
		return;
	now = account(r);
	add(&r->reactor->where.states[r->state][hist_index(now - w->state_ns)], 1);
	w->state_ns = now;
}

/* For a trace: times longer than 4 s are stored as 4 s. */
static uint32_t since_it_came(const struct where *w, uint64_t now)
{
	return (uint32_t)MIN(now - w->came_ns, UINT32_MAX);
}

static struct where_piece *piece_at(struct where_trace *t, uint32_t off)
{
	/* most often one of the last */
	for (uint32_t i = t->n; i-- > 0;) {
		if (t->pieces[i].off == off)
			return &t->pieces[i];
	}
	return NULL;
}

void where_piece_begin(struct req *r, uint32_t off, uint32_t len)
{
	struct where_trace *t = r->where.trace;

	if (t && t->n < WHERE_PIECES_MAX)
		t->pieces[t->n++] = (struct where_piece){ .off = off, .len = len };
}

static void count(struct req *r, int by, uint32_t off, bool is_net)
{
	struct where *w = &r->where;
	uint32_t since = since_it_came(w, account(r));
	struct where_piece *p = w->trace ? piece_at(w->trace, off) : NULL;
	unsigned *out = is_net ? &w->net : &w->disk;

	*out += by > 0 ? 1u : -1u;
	if (p && is_net)
		*(by > 0 ? &p->net_begin : &p->net_end) = since;
	else if (p)
		*(by > 0 ? &p->disk_begin : &p->disk_end) = since;
}

void where_disk(struct req *r, int by, uint32_t off)
{
	if (r->where.on)
		count(r, by, off, false);
}

void where_net(struct req *r, int by, uint32_t off)
{
	if (r->where.on)
		count(r, by, off, true);
}

uint64_t where_now(const struct req *r)
{
	return r->where.on ? r->where.last_ns : clock_now_ns();
}

static enum where_kind kind_of(const struct req *r)
{
	switch (r->place.kind) {
	case PLACE_READ:
		return WHERE_READ;
	case PLACE_WRITE:
		return WHERE_WRITE;
	default:
		return WHERE_OTHER;
	}
}

void where_end(struct req *r)
{
	enum where_kind kind = kind_of(r);
	struct where_stats *s = &r->reactor->where;
	struct where *w = &r->where;

	if (!w->on)
		return;
	add(&s->kinds[kind].requests, 1);
	add(&s->kinds[kind].bytes, kind == WHERE_OTHER ? 0 : r->place.good);
	for (unsigned i = 0; i < WHERE_PARTS; i++)
		add(&s->kinds[kind].ns[i], w->ns[i]);
	if (w->trace) {
		struct rpcrdma_client_id id = { 0 };

		if (w->trace->asker == WHERE_ASKER_CLIENT)
			rpcrdma_client_id_of(&r->conn->peer, &id);
		w->trace->total_ns = since_it_came(w, w->last_ns);
		give(&r->srv->tracer, w->trace, &id);
		w->trace = NULL;
	}
	w->on = false;
}
