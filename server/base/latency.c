/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * latency.c - breakdown of the time of requests
 *
 * Operation: A request that is sampled has a stopwatch for each part. The begin and end of a disk or network
 *            operation stop one and start another. A request in units is always sampled: the clock is read a
 *            few times per unit, which costs less than the unit's completion. Of the others one in
 *            LATENCY_ONE_IN is sampled, so that 4 KiB reads do not pay for it. A sample is enough for the rates
 *            and shares that are reported. The distance between two samples is random, because callers are
 *            often periodic: with alternating reads and writes, every sixteenth request would always be a read.
 *
 *                   arrival                                                  reply sent
 *                     |  waiting |  disk  |      both      |  net  |   finish     |
 *
 *            A trace has the same times for one request and each of its units. It is made on demand.
 * Memory:    A trace is malloc'ed by its request and handed over to the server's tracer.
 * Threads:   The reactor's; latency_tracer_take() any.
 * Errors:    Without memory there is no trace.
 */
#include "latency.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/random.h"
#include "client.h"

const char *latency_part_name(enum latency_part part)
{
	static const char *const names[] = {
		[LATENCY_WAITING] = "waiting", [LATENCY_DISK] = "disk",	[LATENCY_NET] = "network",
		[LATENCY_BOTH] = "both",	     [LATENCY_FINISH] = "finish",
	};

	return (unsigned)part < LATENCY_PARTS ? names[part] : "?";
}

void latency_tracer_init(struct latency_tracer *t)
{
	memset(t, 0, sizeof(*t));
	pthread_mutex_init(&t->lock, NULL);
}

void latency_tracer_fini(struct latency_tracer *t)
{
	for (unsigned i = 0; i < LATENCY_ASKERS; i++)
		free(t->slots[i].last);
	pthread_mutex_destroy(&t->lock);
}

struct latency_trace *latency_tracer_take(struct latency_tracer *t, const struct rpcrdma_client_id *client)
{
	enum latency_asker asker = client ? LATENCY_ASKER_CLIENT : LATENCY_ASKER_ADMIN;
	struct latency_trace *last = NULL;

	pthread_mutex_lock(&t->lock);
	if (!client || client_id_same(client, &t->slots[asker].of)) {
		last = t->slots[asker].last;
		t->slots[asker].last = NULL;
	}
	if (client)
		t->slots[asker].client = *client;
	pthread_mutex_unlock(&t->lock);
	atomic_store(&t->slots[asker].wanted, true);
	return last;
}

static void give(struct latency_tracer *t, struct latency_trace *trace, const struct rpcrdma_client_id *of)
{
	struct latency_trace *old;

	pthread_mutex_lock(&t->lock);
	old = t->slots[trace->asker].last;
	t->slots[trace->asker].last = trace;
	t->slots[trace->asker].of = *of;
	pthread_mutex_unlock(&t->lock);
	free(old);
}

/* Return: true if @asker waits for a request like this one. Only one request gets true. */
static bool is_wanted(struct latency *l, enum latency_asker asker)
{
	struct latency_tracer *t = l->reactor->tracer;
	bool wanted = true;

	if (!atomic_load_explicit(&t->slots[asker].wanted, memory_order_relaxed))
		return false;
	if (asker == LATENCY_ASKER_CLIENT) {
		struct rpcrdma_client_id id;

		rpcrdma_client_id_of(l->peer, &id);
		pthread_mutex_lock(&t->lock);
		wanted = client_id_same(&id, &t->slots[asker].client);
		pthread_mutex_unlock(&t->lock);
	}
	return wanted && atomic_exchange(&t->slots[asker].wanted, false);
}

static void turn_on(struct latency *l)
{
	l->on = true;
	l->came_ns = l->last_ns = l->state_ns = clock_now_ns();
	l->disk = l->net = 0;
	for (unsigned i = 0; i < LATENCY_PARTS; i++)
		l->ns[i] = 0;
}

/* Number of requests until the next sample: 1 to 2 * LATENCY_ONE_IN - 1, LATENCY_ONE_IN on average. */
static unsigned next_turn(struct latency_reactor *re)
{
	return 1 + (unsigned)(random_next(&re->seed) % (2 * LATENCY_ONE_IN - 1));
}

void latency_begin(struct latency *l, struct latency_reactor *re, const struct rpcrdma_peer *peer)
{
	l->reactor = re;
	l->peer = peer;
	l->on = l->sending = false;
	l->trace = NULL;
	if (re->turn--)
		return;
	re->turn = next_turn(re) - 1;
	turn_on(l);
}

void latency_units(struct latency *l, uint32_t xid, bool is_write, uint32_t bytes)
{
	enum latency_asker asker = LATENCY_ASKER_ADMIN;

	if (!l->on)
		turn_on(l);
	while (asker < LATENCY_ASKERS && !is_wanted(l, asker))
		asker++;
	if (asker == LATENCY_ASKERS)
		return;
	l->trace = malloc(sizeof(*l->trace));
	if (!l->trace)
		return;
	l->trace->xid = xid;
	l->trace->bytes = bytes;
	l->trace->is_write = is_write;
	l->trace->n = 0;
	l->trace->asker = asker;
}

static enum latency_part part_now(const struct latency *l)
{
	if (l->disk)
		return l->net ? LATENCY_BOTH : LATENCY_DISK;
	if (l->net)
		return LATENCY_NET;
	return l->sending ? LATENCY_FINISH : LATENCY_WAITING;
}

/* Adds the time since the last call to the part that was active. Return: the time now */
static uint64_t account(struct latency *l)
{
	uint64_t now = clock_now_ns();

	l->ns[part_now(l)] += now - l->last_ns;
	l->last_ns = now;
	return now;
}

/* There is one writer, so no atomic read-modify-write is needed. */
static void add(_Atomic uint64_t *to, uint64_t n)
{
	atomic_store_explicit(to, atomic_load_explicit(to, memory_order_relaxed) + n,
			      memory_order_relaxed);
}

void latency_state(struct latency *l, unsigned state, bool sends)
{
	uint64_t now;

	if (!l->on)
		return;
	now = account(l);
	add(&l->reactor->stats.states[state][hist_index(now - l->state_ns)], 1);
	l->state_ns = now;
	l->sending = sends;
}

/* For a trace: times longer than 4 s are stored as 4 s. */
static uint32_t since_it_came(const struct latency *l, uint64_t now)
{
	return (uint32_t)MIN(now - l->came_ns, UINT32_MAX);
}

static struct latency_unit *piece_at(struct latency_trace *t, uint32_t off)
{
	/* most often one of the last */
	for (uint32_t i = t->n; i-- > 0;) {
		if (t->units[i].off == off)
			return &t->units[i];
	}
	return NULL;
}

void latency_unit_begin(struct latency *l, uint32_t off, uint32_t len)
{
	struct latency_trace *t = l->trace;

	if (t && t->n < LATENCY_UNITS_MAX)
		t->units[t->n++] = (struct latency_unit){ .off = off, .len = len };
}

static void count(struct latency *l, int by, uint32_t off, bool is_net)
{
	uint32_t since = since_it_came(l, account(l));
	struct latency_unit *p = l->trace ? piece_at(l->trace, off) : NULL;
	unsigned *out = is_net ? &l->net : &l->disk;

	*out += by > 0 ? 1u : -1u;
	if (p && is_net)
		*(by > 0 ? &p->net_begin : &p->net_end) = since;
	else if (p)
		*(by > 0 ? &p->disk_begin : &p->disk_end) = since;
}

void latency_disk(struct latency *l, int by, uint32_t off)
{
	if (l->on)
		count(l, by, off, false);
}

void latency_net(struct latency *l, int by, uint32_t off)
{
	if (l->on)
		count(l, by, off, true);
}

uint64_t latency_now(const struct latency *l)
{
	return l->on ? l->last_ns : clock_now_ns();
}

void latency_end(struct latency *l, enum latency_kind kind, uint32_t bytes)
{
	struct latency_stats *s = &l->reactor->stats;

	if (!l->on)
		return;
	add(&s->kinds[kind].requests, 1);
	add(&s->kinds[kind].bytes, kind == LATENCY_OTHER ? 0 : bytes);
	for (unsigned i = 0; i < LATENCY_PARTS; i++)
		add(&s->kinds[kind].ns[i], l->ns[i]);
	if (l->trace) {
		struct rpcrdma_client_id id = { 0 };

		if (l->trace->asker == LATENCY_ASKER_CLIENT)
			rpcrdma_client_id_of(l->peer, &id);
		l->trace->total_ns = since_it_came(l, l->last_ns);
		give(l->reactor->tracer, l->trace, &id);
		l->trace = NULL;
	}
	l->on = false;
}
