/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * place.c - moving the payload of one request between store and transport, in pieces
 *
 * Operation: the payload is cut into pieces of `grain` bytes, up to PLACE_PIECES of them under way
 *            at once, each a small state machine of its own, so that reading, placing and sending
 *            may go on side by side:
 *
 *              READ   NEED_BUF --> DISK --> PUTTING --> DONE
 *              WRITE  NEED_BUF --> PULLING --> PULLED --> DISK --> DONE
 *              PULL   NEED_BUF --> PULLING --> DONE
 *              SYNC   DISK --> DONE
 *
 *     from      to        by             when
 *     NEED_BUF  NEED_BUF  piece_need_buf the pool is empty: waits in its FIFO
 *     NEED_BUF  DISK      piece_need_buf READ: the caller's own memory can be read into, or a buffer
 *                                        is there
 *     NEED_BUF  PULLED    piece_need_buf WRITE: the data came with the message
 *     NEED_BUF  PULLING   piece_need_buf a buffer is there
 *     PULLING   PULLED    piece_pulling  the data has come; WRITE
 *     PULLING   DONE      piece_pulling  the data has come; PULL. Or it never will
 *     PULLED    DISK      piece_pulled   place_open() was called
 *     DISK      PUTTING   piece_disk     READ into a buffer
 *     DISK      DONE      piece_disk     WRITE, SYNC, READ into the caller's memory, or an error
 *     PUTTING   DONE      piece_putting  the transport has the piece, and its buffer is not needed
 *                                        for another, or is free again
 *
 *            What a WRITE brings waits in PULLED until place_open(): whether it may be executed is
 *            found out when it is here, so that a connection that breaks meanwhile leaves
 *            nothing half done.
 *            The grain is the whole payload today: read all, then place all. The answer waits for
 *            every operation that was begun, however early another failed.
 * Memory:    a piece's buffer belongs to pool, piece, transport or store, piece, pool in turn. What
 *            was placed without being waited for is the transport's until the reply is out;
 *            place_fini() runs after that.
 * Threads:   the reactor's.
 *            Pieces that still wait in PULLED go with the request.
 * Errors:    place.good is the length of the prefix in which every piece did what it should;
 *            beyond it something failed (place.err) or the file ended. A piece that the caller has
 *            no room for makes the whole call one to reject, before anything is placed.
 */
#include "place.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/trace.h"
#include "reactor.h"
#include "req.h"

#define SUBMIT_SLOW_NS (500 * NS_PER_US) /* a reactor should not be held up longer than this */

static enum place_state piece_need_buf(struct place_piece *p);
static enum place_state piece_pulling(struct place_piece *p);
static enum place_state piece_pulled(struct place_piece *p);
static enum place_state piece_disk(struct place_piece *p);
static enum place_state piece_putting(struct place_piece *p);

static enum place_state (*const piece_states[])(struct place_piece *p) = {
	[PLACE_NEED_BUF] = piece_need_buf,
	[PLACE_PULLING] = piece_pulling,
	[PLACE_PULLED] = piece_pulled,
	[PLACE_DISK] = piece_disk,
	[PLACE_PUTTING] = piece_putting,
};

static void piece_run(struct place_piece *p)
{
	while (!p->busy && p->state != PLACE_IDLE && p->state != PLACE_DONE) {
		enum place_state next = piece_states[p->state](p);

		if (next == p->state)
			continue; /* busy now, or its operation ended at once */
		TRACE3(place_state, p->req->xid, p->off, next);
		p->state = next;
		p->started = false;
	}
}

/* a completion: on with the piece, and with the request if that was the last */
static void piece_wake(struct place_piece *p)
{
	p->busy = false;
	req_run(p->req);
}

static struct place *place_of(const struct place_piece *p)
{
	return &p->req->place;
}

/* the payload is as it should be up to @end at most */
static void good_until(struct place *pl, uint32_t end, int err)
{
	if (end < pl->good || (end == pl->good && !pl->err)) {
		pl->good = end;
		pl->err = err;
	}
	pl->next_off = pl->total; /* nothing further need be begun */
}

static enum place_state piece_fail(struct place_piece *p, int err)
{
	good_until(place_of(p), p->off, err);
	return PLACE_DONE;
}

/* ---- NEED_BUF ----------------------------------------------------------------------------- */

static void on_buf(struct rpcrdma_buf_waiter *w)
{
	piece_wake(container_of(w, struct place_piece, waiter));
}

static enum place_state use_buf(struct place_piece *p)
{
	int err;

	err = p->buf ? 0 : rpcrdma_req_buf_get(p->req->rpc, p->len, &p->buf);
	if (err == -ENOBUFS) {
		p->busy = true;
		p->waiter.fn = on_buf;
		rpcrdma_req_buf_wait(p->req->rpc, &p->waiter);
		return PLACE_NEED_BUF;
	}
	if (err)
		return piece_fail(p, err);
	p->iov[0] = (struct iovec){ .iov_base = p->buf->addr, .iov_len = p->len };
	p->iovcnt = 1;
	return place_of(p)->kind == PLACE_READ ? PLACE_DISK : PLACE_PULLING;
}

/** place_payload - see place.h */
struct rpcrdma_payload *place_payload(struct req *r)
{
	switch (r->place.kind) {
	case PLACE_PULL:
		return &r->args.symlink.symlink.symlink_data;
	case PLACE_WRITE:
		return &r->args.write.data;
	default:
		return NULL;
	}
}

/* the arguments' bytes, if they came with the message */
static char *arrived(struct req *r)
{
	const struct rpcrdma_payload *data = place_payload(r);

	return data->iovcnt ? data->iov[0].iov_base : NULL;
}

static enum place_state piece_need_buf(struct place_piece *p)
{
	struct req *r = p->req;
	char *here;
	int err;

	if (r->place.kind == PLACE_READ) {
		p->iovcnt = PLACE_IOV_MAX;
		err = rpcrdma_req_sink(r->rpc, p->off, p->len, p->iov, &p->iovcnt);
		if (!err)
			return PLACE_DISK;
		if (err == -EMSGSIZE) {
			r->place.no_room = true;
			return piece_fail(p, err);
		}
		return use_buf(p);
	}
	here = arrived(r);
	if (!here)
		return use_buf(p);
	p->iov[0] = (struct iovec){ .iov_base = here + p->off, .iov_len = p->len };
	p->iovcnt = 1;
	return r->place.kind == PLACE_PULL ? PLACE_DONE : PLACE_PULLED;
}

/* ---- PULLING, PULLED ------------------------------------------------------------------- */

static void on_xfer(struct rpcrdma_piece *xfer, int err)
{
	struct place_piece *p = container_of(xfer, struct place_piece, xfer);

	xfer->err = err;
	piece_wake(p);
}

static void describe(struct place_piece *p, uint32_t len)
{
	p->xfer = (struct rpcrdma_piece){ .buf = p->buf, .off = p->off, .len = len };
}

static enum place_state piece_pulling(struct place_piece *p)
{
	int err;

	if (!p->started) {
		p->started = true;
		describe(p, p->len);
		p->xfer.done = on_xfer;
		p->busy = true;
		err = rpcrdma_req_pull(p->req->rpc, &p->xfer);
		if (!err)
			return PLACE_PULLING;
		p->busy = false;
		p->xfer.err = err;
	}
	if (p->xfer.err)
		return piece_fail(p, p->xfer.err);
	return place_of(p)->kind == PLACE_PULL ? PLACE_DONE : PLACE_PULLED;
}

static enum place_state piece_pulled(struct place_piece *p)
{
	if (place_of(p)->open)
		return PLACE_DISK;
	p->busy = true; /* until place_open() */
	return PLACE_PULLED;
}

/* ---- DISK --------------------------------------------------------------------------------- */

static void on_disk(struct store_io *io)
{
	piece_wake(container_of(io, struct place_piece, io));
}

static void fill_io(struct place_piece *p)
{
	struct req *r = p->req;
	struct store_io *io = &p->io;

	io->file = &r->file->file;
	io->iov = p->iov;
	io->iovcnt = p->iovcnt;
	io->bytes = p->len;
	io->done = on_disk;
	io->creds = &r->creds;
	switch (r->place.kind) {
	case PLACE_READ:
		io->op = STORE_READ;
		io->off = r->args.read.offset + p->off;
		io->size_hint = r->stx.stx_size;
		return;
	case PLACE_WRITE:
		io->op = STORE_WRITE;
		io->off = r->args.write.offset + p->off;
		io->stable = (enum store_stable)r->args.write.stable;
		io->has_setid = r->stx.stx_mode & (S_ISUID | S_ISGID);
		return;
	default:
		io->op = STORE_SYNC;
		return;
	}
}

/* Return: finished already? */
static bool submit(struct place_piece *p)
{
	struct reactor *re = p->req->reactor;
	uint64_t start = clock_now_ns();
	int now = store_submit(p->req->exports->stores[p->req->exp->idx], &p->io);

	/* a megabyte from the page cache takes its time, and is none spent waiting */
	if (clock_now_ns() - start > SUBMIT_SLOW_NS + p->len)
		reactor_count(re, submit_blocked);
	return now;
}

static enum place_state piece_disk(struct place_piece *p)
{
	struct place *pl = place_of(p);
	uint32_t got;

	if (!p->started) {
		p->started = true;
		fill_io(p);
		p->busy = true;
		if (!submit(p))
			return PLACE_DISK;
		p->busy = false;
	}
	if (p->io.sync_failed)
		pl->sync_failed = true;
	if (p->io.res < 0)
		return piece_fail(p, p->io.res == -EFAULT ? -EIO : p->io.res);
	got = (uint32_t)p->io.res;
	if (got < p->len) {
		pl->short_read = pl->kind == PLACE_READ;
		good_until(pl, p->off + got, 0);
	}
	if (pl->kind != PLACE_READ || !p->buf || !got)
		return PLACE_DONE;
	p->len = got;
	return PLACE_PUTTING;
}

/* ---- PUTTING ------------------------------------------------------------------------------ */

/* Only when there are more pieces than places for them must a buffer be waited for; otherwise the
 * reply follows at once, and its completion is the piece's too. */
static bool must_recycle(const struct place *pl)
{
	return pl->total > (uint64_t)pl->grain * PLACE_PIECES;
}

static enum place_state piece_putting(struct place_piece *p)
{
	struct place *pl = place_of(p);
	int err;

	if (!p->started) {
		p->started = true;
		describe(p, p->len);
		p->xfer.done = must_recycle(pl) ? on_xfer : NULL;
		p->busy = must_recycle(pl);
		err = rpcrdma_req_place(p->req->rpc, &p->xfer);
		if (!err)
			return p->busy ? PLACE_PUTTING : PLACE_DONE;
		p->busy = false;
		p->xfer.err = err;
		pl->no_room |= err == -EMSGSIZE;
	}
	return p->xfer.err ? piece_fail(p, p->xfer.err) : PLACE_DONE;
}

/* ---- the whole ---------------------------------------------------------------------------- */

/** place_start - see place.h */
void place_start(struct req *r, enum place_kind kind, uint32_t total)
{
	struct place *pl = &r->place;

	pl->kind = kind;
	pl->total = pl->good = pl->grain = total;
	pl->next_off = 0;
	pl->err = 0;
	pl->short_read = pl->no_room = pl->sync_failed = false;
	pl->open = kind != PLACE_WRITE;
	pl->out = 0;
	for (unsigned i = 0; i < PLACE_PIECES; i++) {
		pl->pieces[i].state = PLACE_IDLE;
		pl->pieces[i].busy = false;
		pl->pieces[i].buf = NULL;
	}
	if (kind == PLACE_READ && total > rpcrdma_req_room(r->rpc)) {
		pl->no_room = true;
		pl->next_off = total;
	}
	if (kind == PLACE_SYNC) { /* one piece without bytes */
		pl->pieces[0] = (struct place_piece){ .state = PLACE_DISK, .req = r };
		pl->out = 1;
	}
}

/* Return: was there something to begin? */
static bool begin_piece(struct req *r, struct place_piece *p)
{
	struct place *pl = &r->place;

	if (pl->next_off >= pl->total)
		return false;
	p->req = r;
	p->state = PLACE_NEED_BUF;
	p->started = p->busy = false;
	p->off = pl->next_off;
	p->len = MIN(pl->grain, pl->total - pl->next_off);
	pl->next_off += p->len;
	pl->out++;
	return true;
}

/* Return: is its place free for another one? */
static bool end_piece(struct req *r, struct place_piece *p)
{
	r->place.out--;
	if (p->buf && r->place.kind == PLACE_READ && !must_recycle(&r->place))
		return false; /* the transport has it until the reply is out */
	if (p->buf && r->place.kind != PLACE_PULL) {
		rpcrdma_buf_put(r->reactor->engine, p->buf);
		p->buf = NULL;
	}
	return true;
}

/** place_run - see place.h */
bool place_run(struct req *r)
{
	struct place *pl = &r->place;
	bool moved;

	do {
		moved = false;
		for (unsigned i = 0; i < PLACE_PIECES; i++) {
			struct place_piece *p = &pl->pieces[i];

			if (p->state == PLACE_IDLE && !begin_piece(r, p))
				continue;
			if (p->state == PLACE_DONE || p->busy)
				continue;
			piece_run(p);
			if (p->state != PLACE_DONE)
				continue;
			if (end_piece(r, p))
				p->state = PLACE_IDLE;
			moved = true;
		}
	} while (moved);
	return !pl->out;
}

/** place_pulled - see place.h */
bool place_pulled(const struct req *r)
{
	const struct place *pl = &r->place;
	unsigned n = 0;

	for (unsigned i = 0; i < PLACE_PIECES; i++)
		n += pl->pieces[i].state == PLACE_PULLED;
	return n == pl->out;
}

/** place_open - see place.h */
void place_open(struct req *r)
{
	struct place *pl = &r->place;

	pl->open = true;
	for (unsigned i = 0; i < PLACE_PIECES; i++) {
		if (pl->pieces[i].state == PLACE_PULLED)
			pl->pieces[i].busy = false;
	}
}

/** place_data - see place.h */
const void *place_data(const struct req *r)
{
	return r->place.pieces[0].iov[0].iov_base;
}

/** place_fini - see place.h */
void place_fini(struct req *r)
{
	if (r->place.kind == PLACE_NONE)
		return;
	assert(place_pulled(r));
	for (unsigned i = 0; i < PLACE_PIECES; i++) {
		struct place_piece *p = &r->place.pieces[i];

		if (p->buf)
			rpcrdma_buf_put(r->reactor->engine, p->buf);
		p->buf = NULL;
	}
	r->place.kind = PLACE_NONE;
}
