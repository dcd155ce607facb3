/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * io_unit.c - one unit of a payload between store and transport: its states
 *
 * Operation: unit_run() runs a unit until it has to wait. The event that it waits for makes it ready again, and
 *            wakes the payload's owner:
 *
 *              READ   NEED_BUF --> TO_DISK --> AT_DISK --> TURN --> TO_PUT --> PUTTING or LENT
 *              WRITE  NEED_BUF --> TO_PULL --> PULLING --> PULLED --> TO_DISK --> AT_DISK --> DONE
 *              PULL   NEED_BUF --> TO_PULL --> PULLING --> DONE
 *              STORE  TO_DISK --> AT_DISK --> DONE
 *
 *     from      to        by             when
 *     NEED_BUF  WAIT_BUF  unit_need_buf  the pool is empty: waits in its FIFO
 *     NEED_BUF  TO_DISK   unit_need_buf  READ: the client's memory can be read into directly, or it has a
 *                                        buffer
 *     NEED_BUF  PULLED    unit_need_buf  WRITE: the data came with the message, or is used where it is
 *     NEED_BUF  TO_PULL   unit_need_buf  it has a buffer
 *     NEED_BUF  DONE      unit_need_buf  PULL: the data came with the message. Or the payload is discarded, or an error
 *     WAIT_BUF  NEED_BUF  on_buf         there may be a buffer
 *     TO_PULL   PULLING   unit_pull      the transport has begun; if it refuses at once, as on_pulled
 *     PULLING   PULLED    on_pulled      WRITE: the data has arrived
 *     PULLING   DONE      on_pulled      PULL: the data has arrived. Or the transfer has failed
 *     PULLED    TO_DISK   unit_pulled    place_move() was called
 *     PULLED    DONE      unit_pulled    place_discard() was called
 *     TO_DISK   AT_DISK   unit_disk      the store has it; if it finishes at once, as on_disk
 *     AT_DISK   TURN      on_disk        READ into a buffer
 *     AT_DISK   DONE      on_disk        WRITE, STORE, READ into the client's memory, or an error
 *     TURN      TO_PUT    unit_turn      all units before it were put, or no order is kept
 *     TURN      DONE      unit_turn      it lies beyond place.good
 *     TO_PUT    PUTTING   unit_put       the transport has the unit, and calls on_put() at the end
 *     TO_PUT    LENT      unit_put       the transport sends it with the reply
 *     TO_PUT    DONE      unit_put       the transport refuses it
 *
 * Memory:    A unit is part of its request, or recycled by the reactor; for its buffer see place.c.
 * Threads:   The reactor's.
 * Errors:    In place.good and place.err, see place.c.
 */
#include "io_unit.h"

#include <errno.h>

#include "base/clock.h"
#include "base/trace.h"

#define SUBMIT_SLOW_NS (500 * NS_PER_US) /* longest time for which a submit should block a reactor */

static void enter(struct io_unit *p, enum unit_state next)
{
	TRACE3(unit_state, p->place->rpc->xid, p->off, next);
	if (p->state == UNIT_NEED_BUF && next != UNIT_WAIT_BUF) /* until then the split may still change */
		latency_unit_begin(p->place->latency, p->off, p->len);
	p->state = next;
}

void unit_make_ready(struct io_unit *p)
{
	if (!list_is_linked(&p->ready))
		list_add_tail(&p->place->ready, &p->ready);
}

/* Its operation has ended: continues with the unit, and with the owner of the payload. */
static void op_ended(struct io_unit *p, enum unit_state next)
{
	p->place->busy--;
	enter(p, next);
	unit_make_ready(p);
	p->place->wake(p->place);
}

void unit_wake_all(struct place *pl, enum unit_state state)
{
	list_for_each(n, &pl->units) {
		struct io_unit *p = list_entry(n, struct io_unit, link);

		if (p->state == state)
			unit_make_ready(p);
	}
}

/* The payload is correct up to @end at most. */
static void good_until(struct place *pl, uint32_t end, int err)
{
	if (end < pl->good || (end == pl->good && !pl->err)) {
		pl->good = end;
		pl->err = err;
	}
	split_stop(&pl->split); /* no further unit need begin */
	unit_wake_all(pl, UNIT_TURN);
}

static enum unit_state unit_fail(struct io_unit *p, int err)
{
	good_until(p->place, p->off, err);
	return UNIT_DONE;
}

/* ---- NEED_BUF ----------------------------------------------------------------------------- */

static void on_buf(struct rpcrdma_buf_waiter *w)
{
	struct io_unit *p = container_of(w, struct io_unit, waiter);

	p->place->starved = false;
	op_ended(p, UNIT_NEED_BUF);
}

static int wait_for_buf(struct io_unit *p)
{
	p->place->busy++;
	p->place->starved = true;
	p->waiter.fn = on_buf;
	rpcrdma_req_buf_wait(p->place->rpc, &p->waiter);
	return -EINPROGRESS;
}

/* There is no memory for the whole payload, now or ever. This is the first unit, and no other one has begun. Without
 * overlap it was the whole payload so far. Units that are put in order get memory in order. */
static void go_by_unit(struct io_unit *p)
{
	struct place *pl = p->place;
	size_t max = p->place->rpc->buf_max;

	pl->by_unit = true;
	if (pl->overlap && !pl->in_order)
		return;
	split_start(&pl->split, pl->split.base, pl->total, pl->overlap ? pl->split.grain : (uint32_t)max, 1,
		  0);
	(void)split_next(&pl->split, &p->off, &p->len, &p->stream);
}

/* Arguments that are needed as a whole (PULL) cannot be split. */
static bool can_be_split(const struct place *pl)
{
	return pl->kind == PLACE_READ || pl->kind == PLACE_WRITE;
}

/* Return: 0: the unit has a buffer; -EINPROGRESS: it waits for one; -errno */
static int buf_for(struct io_unit *p)
{
	struct place *pl = p->place;
	struct rpcrdma_req *rpc = p->place->rpc;
	size_t bytes = pl->shift + pl->total;
	int err = 0;

	if (!pl->buf && !pl->by_unit) {
		err = rpcrdma_req_buf_get(rpc, bytes, &pl->buf);
		if (err && (pl->overlap || (err == -EMSGSIZE && can_be_split(pl)))) {
			go_by_unit(p);
			err = 0;
		}
	}
	if (!err && pl->by_unit && !p->buf) {
		bytes = (p->off ? 0 : pl->shift) + p->len;
		err = rpcrdma_req_buf_get(rpc, bytes, &p->buf);
	}
	return err == -ENOBUFS ? wait_for_buf(p) : err;
}

/* Return: the buffer of the unit; @ret_off: offset of its bytes in it */
static struct rpcrdma_buf *buf_of(const struct io_unit *p, size_t *ret_off)
{
	const struct place *pl = p->place;

	*ret_off = p->buf && p->off ? 0 : pl->shift + (p->buf ? 0 : p->off);
	return p->buf ? p->buf : pl->buf;
}

static enum unit_state use_buf(struct io_unit *p)
{
	struct rpcrdma_buf *b;
	size_t off;
	int err = buf_for(p);

	if (err == -EINPROGRESS)
		return UNIT_WAIT_BUF;
	if (err)
		return unit_fail(p, err);
	b = buf_of(p, &off);
	p->here = (struct iovec){ .iov_base = (char *)b->addr + off, .iov_len = p->len };
	p->iov = &p->here;
	p->iovcnt = 1;
	return p->place->kind == PLACE_READ ? UNIT_TO_DISK : UNIT_TO_PULL;
}

/* Return: the payload of the arguments if it came with the message, or NULL */
static char *arrived(const struct place *pl)
{
	const struct rpcrdma_payload *data = pl->plan->data;

	return data->iovcnt ? data->iov[0].iov_base : NULL;
}

/* Tries to read directly into the client's memory. Return: 0 or -errno */
static int sink(struct io_unit *p)
{
	struct place *pl = p->place;

	if (!pl->rpc->can_map || pl->overlap || pl->by_unit)
		return -EOPNOTSUPP;
	if (pl->plan->store->own_memory)
		return -EOPNOTSUPP;
	p->iov = pl->iov;
	p->iovcnt = PLACE_IOV_MAX;
	return rpcrdma_req_sink(pl->rpc, p->off, p->len, p->iov, &p->iovcnt);
}

/* Tries to write directly from where the data is. That is memory of this process, which received the data before the
 * request. Or it is the client's own memory, if the options trust clients not to change it before the reply. A change
 * meanwhile changes what is in the file, and nothing else. */
static bool source(struct io_unit *p)
{
	struct place *pl = p->place;

	if (pl->kind != PLACE_WRITE || pl->overlap || pl->by_unit)
		return false;
	if (!pl->rpc->args_local && !(pl->rpc->can_map && pl->plan->store->backing->data->trust_clients))
		return false;
	if (!pl->rpc->args_local && pl->plan->store->own_memory)
		return false;
	p->iov = pl->iov;
	p->iovcnt = PLACE_IOV_MAX;
	pl->theirs = !rpcrdma_req_source(pl->rpc, p->off, p->len, p->iov, &p->iovcnt);
	return pl->theirs;
}

static enum unit_state unit_need_buf(struct io_unit *p)
{
	struct place *pl = p->place;
	char *here;
	int err;

	if (pl->phase == PLACE_DISCARDS)
		return UNIT_DONE;
	if (pl->kind == PLACE_READ) {
		err = sink(p);
		if (err)
			return err == -EMSGSIZE ? unit_fail(p, err) : use_buf(p);
		return UNIT_TO_DISK;
	}
	here = arrived(pl);
	if (!here)
		return source(p) ? UNIT_PULLED : use_buf(p);
	p->here = (struct iovec){ .iov_base = here + p->off, .iov_len = p->len };
	p->iov = &p->here;
	p->iovcnt = 1;
	return pl->kind == PLACE_PULL ? UNIT_DONE : UNIT_PULLED;
}

/* ---- TO_PULL, PULLING, PULLED ------------------------------------------------------------- */

static enum unit_state pull_ended(struct io_unit *p, int err)
{
	struct place *pl = p->place;

	latency_net(pl->latency, -1, p->off);
	if (err) {
		pl->lost = pl->kind == PLACE_WRITE;
		return unit_fail(p, err);
	}
	return pl->kind == PLACE_PULL ? UNIT_DONE : UNIT_PULLED;
}

static void on_pulled(struct rpcrdma_xfer *xfer, int err)
{
	struct io_unit *p = container_of(xfer, struct io_unit, xfer);

	op_ended(p, pull_ended(p, err));
}

static void describe(struct io_unit *p, void (*done)(struct rpcrdma_xfer *xfer, int err))
{
	p->xfer = (struct rpcrdma_xfer){ .off = p->off, .len = p->len, .done = done };
	p->xfer.buf = buf_of(p, &p->xfer.buf_off);
}

static enum unit_state unit_pull(struct io_unit *p)
{
	struct place *pl = p->place;
	int err;

	describe(p, on_pulled);
	latency_net(pl->latency, 1, p->off);
	err = rpcrdma_req_pull(pl->rpc, &p->xfer);
	if (err)
		return pull_ended(p, err);
	pl->busy++;
	return UNIT_PULLING;
}

static enum unit_state unit_pulled(struct io_unit *p)
{
	if (p->place->phase == PLACE_DISCARDS)
		return UNIT_DONE;
	return p->place->phase == PLACE_MOVES ? UNIT_TO_DISK : UNIT_PULLED;
}

/* ---- TO_DISK, AT_DISK --------------------------------------------------------------------- */

static enum unit_state disk_ended(struct io_unit *p)
{
	struct place *pl = p->place;
	uint32_t got;

	pl->rpc->copied += p->io.copied;
	if (p->io.sync_failed)
		pl->sync_failed = true;
	if (p->io.res < 0)
		return unit_fail(p, p->io.res == -EFAULT ? -EIO : p->io.res);
	got = (uint32_t)p->io.res;
	if (pl->kind == PLACE_STORE)
		pl->good = got;
	else if (got < p->len) {
		pl->short_read |= pl->kind == PLACE_READ;
		good_until(pl, p->off + got, 0);
	}
	if (pl->kind != PLACE_READ || p->iov != &p->here || !got)
		return UNIT_DONE;
	p->len = got;
	return UNIT_TURN;
}

static void on_disk(struct store_io *io)
{
	struct io_unit *p = container_of(io, struct io_unit, io);

	latency_disk(p->place->latency, -1, p->off);
	op_ended(p, disk_ended(p));
}

/* Sets how many bytes around the unit a read may overwrite. Parts of one shared buffer have no space in between. */
static void fill_pads(struct io_unit *p)
{
	struct place *pl = p->place;
	const struct rpcrdma_buf *b;
	size_t off, end;

	p->io.pad_head = p->io.pad_tail = 0;
	if (p->iov != &p->here)
		return;
	b = buf_of(p, &off);
	end = off + p->len;
	p->io.pad_head = p->off ? 0 : (uint32_t)off;
	if (p->buf || p->off + p->len == pl->total)
		p->io.pad_tail = (uint32_t)(b->bytes - end);
}

static void fill_io(struct io_unit *p)
{
	const struct place_plan *plan = p->place->plan;
	struct store_io *io = &p->io;

	io->file = plan->file;
	io->iov = p->iov;
	io->iovcnt = p->iovcnt;
	io->off = plan->off + p->off;
	io->bytes = p->len;
	io->done = on_disk;
	io->latency = p->place->latency;
	io->unit_off = p->off;
	io->begun_ns = 0;
	io->creds = plan->creds;
	io->client = plan->client;
	switch (p->place->kind) {
	case PLACE_READ:
		io->op = STORE_READ;
		io->size_hint = plan->size_hint;
		fill_pads(p);
		return;
	case PLACE_WRITE:
		io->op = STORE_WRITE;
		io->stable = plan->stable;
		return;
	default:
		io->op = plan->op;
		io->bytes = plan->bytes;
		io->stable = plan->stable;
		io->keep = plan->keep;
		io->extents = plan->extents;
		return;
	}
}

/* Return: true if the operation finished at once */
static bool submit(struct io_unit *p)
{
	struct place *pl = p->place;
	bool now = store_submit(pl->plan->store, &p->io);
	uint64_t end;

	if (!p->io.begun_ns)
		return false;
	if (now)
		latency_disk(pl->latency, -1, p->off);
	end = now ? latency_now(pl->latency) : clock_now_ns();
		/* copying a megabyte from the page cache takes time too: allow 1 ns per byte */
	if (end - p->io.begun_ns > SUBMIT_SLOW_NS + p->len)
		store_count(pl->plan->store, submit_blocked);
	return now;
}

static enum unit_state unit_disk(struct io_unit *p)
{
	fill_io(p);
	if (submit(p))
		return disk_ended(p);
	p->place->busy++;
	return UNIT_AT_DISK;
}

/* ---- TURN, TO_PUT, PUTTING, LENT ---------------------------------------------------------- */

static enum unit_state unit_turn(struct io_unit *p)
{
	const struct place *pl = p->place;

	if (p->off >= pl->good)
		return UNIT_DONE;
	return !pl->in_order || p->off == pl->turn ? UNIT_TO_PUT : UNIT_TURN;
}

void unit_free(struct io_unit *p)
{
	struct place *pl = p->place;

	if (p->buf)
		rpcrdma_buf_put(pl->pool->engine, p->buf);
	p->buf = NULL;
	list_del(&p->link);
	list_del(&p->ready);
	if (p != &pl->first)
		list_add_head(&pl->pool->free, &p->link);
}

/* The transport has finished with the unit. If the payload was fully begun, the reply may be in flight; otherwise the
 * request has to go on. */
static void on_put(struct rpcrdma_xfer *xfer, int err)
{
	struct io_unit *p = container_of(xfer, struct io_unit, xfer);
	struct place *pl = p->place;
	bool more = pl->split.left;

	pl->putting--;
	latency_net(pl->latency, -1, p->off);
	if (err)
		good_until(pl, p->off, err);
	unit_free(p);
	if (more)
		pl->wake(pl);
}

/* The last unit is sent in one chain with the reply and completes with it, unless its time is measured. Inline data is
 * sent with the reply in any case. */
static bool goes_with_reply(const struct place *pl)
{
	return !pl->split.left && pl->out == 1 &&
	       !(pl->latency->on && pl->rpc->by_chunk);
}

static enum unit_state unit_put(struct io_unit *p)
{
	struct place *pl = p->place;
	bool lend = goes_with_reply(pl);
	int err;

	describe(p, lend ? NULL : on_put);
	err = rpcrdma_req_place(pl->rpc, &p->xfer);
	if (err)
		return unit_fail(p, err);
	if (!lend) {
		pl->putting++;
		latency_net(pl->latency, 1, p->off);
	}
	pl->turn = p->off + p->len;
	if (pl->in_order)
		unit_wake_all(pl, UNIT_TURN);
	return lend ? UNIT_LENT : UNIT_PUTTING;
}

/* ---- running ------------------------------------------------------------------------------ */

/* Return: the next state; the same one: an operation is in flight, or the unit waits or has ended */
static enum unit_state take_step(struct io_unit *p)
{
	switch (p->state) {
	case UNIT_NEED_BUF:
		return unit_need_buf(p);
	case UNIT_TO_PULL:
		return unit_pull(p);
	case UNIT_PULLED:
		return unit_pulled(p);
	case UNIT_TO_DISK:
		return unit_disk(p);
	case UNIT_TURN:
		return unit_turn(p);
	case UNIT_TO_PUT:
		return unit_put(p);
	case UNIT_WAIT_BUF:
	case UNIT_PULLING:
	case UNIT_AT_DISK:
	case UNIT_PUTTING:
	case UNIT_LENT:
	case UNIT_DONE:
		break;
	}
	return p->state;
}

/* Runs until the unit waits or ends. A state that waits for something other than its own operation returns itself; the
 * code that resolves the wait makes the unit ready. */
void unit_run(struct io_unit *p)
{
	enum unit_state next;

	while ((next = take_step(p)) != p->state)
		enter(p, next);
}
