/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * place.c - moves the payload of one request between store and transport, in units
 *
 * Operation: The payload is split into units (split.c). Up to PLACE_DEPTH of them are in flight at once. Each is a
 *            small state machine (io_unit.c), so that disk, network and the sending of the reply overlap.
 *
 *            Without overlap there is one unit: the whole payload is read, then placed. If the memory limit is
 *            so low that one buffer cannot hold it, it is split into units that fit. With overlap, a READ's
 *            unit is placed as soon as the disk delivers it, and a WRITE's unit goes to the disk as soon as it
 *            is pulled: one request uses disk and network at once. This requires chunks of the client. Inline
 *            data, and data on a stream, is one unit, or several that follow each other (WRITE).
 *
 *            The payload of a WRITE waits in PULLED until place_move(). Whether it may be executed is decided
 *            when it is here, so that a connection that breaks meanwhile leaves nothing half done. With several
 *            units the first is enough for that decision. If the connection breaks later, the WRITE is executed
 *            in part and gets no reply, and the client retransmits it.
 *            The reply waits for every operation that was begun, even if another one failed earlier. It does not
 *            wait for units that the transport holds: the transport sends in order.
 * Memory:    One buffer for the payload; the units use parts of it. If none is free and the request is split, or if
 *            no buffer is that large, each unit gets its own. It releases it when the transport has finished with
 *            it, so the memory of a single unit is enough for any request. Units get buffers in the order in
 *            which they begin. That is file order where they wait for each other, so a unit that holds a buffer
 *            always finishes without another one. For the same reason a duplicate WRITE releases its units
 *            (place_discard()) before it waits for the original. A buffer belongs to pool, unit, transport or
 *            store, unit, pool in turn. Buffers that the transport keeps until the reply has been sent are
 *            released by place_fini(), which runs after that. Units are recycled per reactor.
 * Threads:   The reactor's.
 * Errors:    place.good is the length of the prefix in which every unit succeeded. Beyond it an operation failed
 *            (place.err) or the file ended. If the client has no room for a unit, the whole request is rejected,
 *            before anything is placed.
 */
#include "place.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "io_unit.h"

/* Decides whether disk and network overlap. Overlap requires chunks, and more than one unit. */
static void plan_overlap(struct place *pl)
{
	const struct place_plan *plan = pl->plan;
	const struct data_conf *d = plan->store->backing->data;
	uint32_t grain = (uint32_t)MIN((size_t)data_conf_grain(d, plan->bytes), pl->rpc->buf_max);

	pl->overlap = d->overlap != DATA_OVERLAP_OFF && plan->bytes > grain && pl->rpc->by_chunk;
	pl->in_order = pl->overlap && d->overlap == DATA_OVERLAP_ORDERED && pl->kind == PLACE_READ;
	if (pl->overlap)
		split_start(&pl->split, plan->off, plan->bytes, grain, d->streams, d->chunk);
	else
		split_start(&pl->split, plan->off, plan->bytes, 0, 1, 0);
	pl->shift = plan->store->aligned ? plan->off % DATA_ALIGN : 0;
}

static struct io_unit *unit_get(struct place *pl)
{
	struct io_unit *p = &pl->first;
	struct list *n;

	if (list_is_linked(&p->link)) {
		n = list_pop(&pl->pool->free);
		p = n ? list_entry(n, struct io_unit, link) : calloc(1, sizeof(*p));
	}
	if (!p)
		return NULL;
	list_init(&p->ready);
	list_init(&p->link);
	list_add_tail(&pl->units, &p->link);
	p->place = pl;
	p->buf = NULL;
	pl->out++;
	return p;
}

/* An operation without payload is one unit without bytes. */
static void begin_op(struct place *pl)
{
	struct io_unit *p = unit_get(pl);

	assert(pl->plan->op != STORE_READ && pl->plan->op != STORE_WRITE);
	p->state = UNIT_TO_DISK;
	p->off = p->len = 0;
	p->stream = 0;
	p->iovcnt = 0;
	pl->split.streams[0].out++;
	unit_make_ready(p);
}

void place_init(struct place *pl, struct place_pool *pool, struct rpcrdma_req *rpc, struct latency *latency,
		void (*wake)(struct place *pl))
{
	pl->kind = PLACE_NONE;
	pl->phase = PLACE_PULLS;
	pl->pool = pool;
	pl->rpc = rpc;
	pl->latency = latency;
	pl->wake = wake;
	pl->err = 0;
	pl->lost = false;
	pl->good = 0;
}

static void start(struct place *pl, enum place_kind kind, enum place_phase phase, const struct place_plan *plan)
{
	pl->kind = kind;
	pl->phase = phase;
	pl->plan = plan;
	pl->total = pl->good = kind == PLACE_STORE ? 0 : plan->bytes;
	pl->turn = 0;
	pl->err = 0;
	pl->short_read = pl->sync_failed = pl->lost = pl->by_unit = false;
	pl->theirs = false;
	pl->overlap = pl->in_order = pl->starved = false;
	pl->out = pl->busy = pl->putting = 0;
	pl->shift = 0;
	pl->buf = NULL;
	list_init(&pl->units);
	list_init(&pl->ready);
	list_init(&pl->first.link);
	list_init(&pl->first.ready);
	pl->first.state = UNIT_DONE;
	if (kind == PLACE_READ || kind == PLACE_WRITE)
		plan_overlap(pl);
	else
		split_start(&pl->split, plan->off, pl->total, 0, 1, 0);
	if (kind == PLACE_STORE)
		begin_op(pl);
	if (pl->overlap)
		latency_units(pl->latency, pl->rpc->xid, kind == PLACE_WRITE, pl->total);
	if (kind == PLACE_READ && pl->total > pl->rpc->room) {
		pl->err = -EMSGSIZE;
		pl->good = 0;
		split_stop(&pl->split);
	}
}

void place_pull(struct place *pl, enum place_kind kind, const struct place_plan *plan)
{
	start(pl, kind, PLACE_PULLS, plan);
}

void place_move(struct place *pl, enum place_kind kind, const struct place_plan *plan)
{
	if (kind != PLACE_WRITE) {
		start(pl, kind, PLACE_MOVES, plan);
		return;
	}
	assert(pl->kind == PLACE_WRITE && pl->phase == PLACE_PULLS);
	pl->phase = PLACE_MOVES;
	pl->plan = plan;
	unit_wake_all(pl, UNIT_PULLED);
}

static bool has_free_depth(const struct place *pl)
{
	return pl->out + pl->putting < PLACE_DEPTH;
}

/* Return: a unit that has just begun, or NULL */
static struct io_unit *begin_unit(struct place *pl)
{
	struct io_unit *p;

	if (!pl->split.left || !has_free_depth(pl) || pl->starved)
		return NULL;
	p = unit_get(pl); /* never NULL for the only unit */
	if (!p)
		return NULL;
	p->state = UNIT_NEED_BUF;
	if (split_next(&pl->split, &p->off, &p->len, &p->stream))
		return p;
	pl->out--;
	unit_free(p);
	return NULL;
}

/* Units that the transport holds are freed by on_put(), or after the reply. */
static void end_unit(struct io_unit *p)
{
	struct place *pl = p->place;

	pl->out--;
	split_ended(&pl->split, p->stream);
	if (p->state == UNIT_DONE && pl->kind != PLACE_PULL)
		unit_free(p);
}

static struct io_unit *next_ready(struct place *pl)
{
	struct list *n = list_pop(&pl->ready);

	return n ? list_entry(n, struct io_unit, ready) : begin_unit(pl);
}

static void put_buf(struct place *pl)
{
	if (pl->buf)
		rpcrdma_buf_put(pl->pool->engine, pl->buf);
	pl->buf = NULL;
}

bool place_run(struct place *pl)
{
	struct io_unit *p;

	while ((p = next_ready(pl))) {
		unit_run(p);
		if (p->state >= UNIT_PUTTING)
			end_unit(p);
	}
	if (!pl->out && !pl->split.left && pl->kind == PLACE_WRITE) /* the store has the data, and the reply is small */
		put_buf(pl);
	return !pl->out && !pl->split.left;
}

/* A failed payload does not grow any more. */
bool place_pulled(const struct place *pl)
{
	return pl->err || !pl->out || pl->first.state == UNIT_PULLED;
}

bool place_discard(struct place *pl)
{
	if (pl->kind != PLACE_WRITE || !pl->by_unit)
		return false;
	pl->phase = PLACE_DISCARDS;
	split_stop(&pl->split);
	unit_wake_all(pl, UNIT_PULLED);
	(void)place_run(pl);
	return true;
}

bool place_settle(struct place *pl)
{
	if (pl->kind == PLACE_NONE)
		return true;
	split_stop(&pl->split);
	if (pl->starved && pl->phase == PLACE_PULLS) { /* the unit that waits may need the buffers of the others */
		pl->phase = PLACE_DISCARDS;
		unit_wake_all(pl, UNIT_PULLED);
		(void)place_run(pl);
	}
	return !pl->busy;
}

const void *place_data(const struct place *pl)
{
	return pl->first.iov[0].iov_base;
}

void place_head(const struct place *pl, void *to, uint32_t bytes)
{
	const struct iovec mine = { .iov_base = to, .iov_len = bytes };

	assert(bytes <= pl->first.len);
	if (!pl->theirs) {
		memcpy(to, pl->first.iov[0].iov_base, bytes);
		return;
	}
	/* a peer can make its memory fault at any time: let the kernel check it */
	memset(to, 0, bytes);
	(void)process_vm_readv(getpid(), &mine, 1, pl->first.iov, (unsigned long)pl->first.iovcnt, 0);
}

void place_fini(struct place *pl)
{
	if (pl->kind == PLACE_NONE)
		return;
	assert(!pl->busy && !pl->putting);
	list_for_each_safe(n, &pl->units)
		unit_free(list_entry(n, struct io_unit, link));
	put_buf(pl);
	pl->kind = PLACE_NONE;
}

void place_pool_fini(struct place_pool *pool)
{
	struct list *n;

	while ((n = list_pop(&pool->free)))
		free(list_entry(n, struct io_unit, link));
}
