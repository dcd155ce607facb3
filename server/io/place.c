/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * place.c - moves the payload of one request between store and transport, in pieces
 *
 * Operation: The payload is split into pieces (cut.c). Up to PLACE_WINDOW of them are in flight at once. Each is a
 *            small state machine (piece.c), so that disk, network and the sending of the reply overlap.
 *
 *            Without overlap there is one piece: the whole payload is read, then placed. If the memory limit is
 *            so low that one buffer cannot hold it, it is split into pieces that fit. With overlap, a READ's
 *            piece is placed as soon as the disk delivers it, and a WRITE's piece goes to the disk as soon as it
 *            is pulled: one request uses disk and network at once. This requires chunks of the client. Inline
 *            data, and data on a stream, is one piece, or several that follow each other (WRITE).
 *
 *            The payload of a WRITE waits in PULLED until place_open(). Whether it may be executed is decided
 *            when it is here, so that a connection that breaks meanwhile leaves nothing half done. With several
 *            pieces the first is enough for that decision. If the connection breaks later, the WRITE is executed
 *            in part and gets no reply, and the client retransmits it.
 *            The reply waits for every operation that was begun, even if another one failed earlier. It does not
 *            wait for pieces that the transport holds: the transport sends in order.
 * Memory:    One buffer for the payload; the pieces use parts of it. If none is free and the request is split, or if
 *            no buffer is that large, each piece gets its own. It releases it when the transport has finished with
 *            it, so the memory of a single piece is enough for any request. Pieces get buffers in the order in
 *            which they begin. That is file order where they wait for each other, so a piece that holds a buffer
 *            always finishes without another one. For the same reason a duplicate WRITE releases its pieces
 *            (place_forsake()) before it waits for the original. A buffer belongs to pool, piece, transport or
 *            store, piece, pool in turn. Buffers that the transport keeps until the reply has been sent are
 *            released by place_fini(), which runs after that. Pieces are recycled per reactor.
 * Threads:   The reactor's.
 * Errors:    place.good is the length of the prefix in which every piece succeeded. Beyond it an operation failed
 *            (place.err) or the file ended. If the client has no room for a piece, the whole request is rejected,
 *            before anything is placed.
 */
#include "place.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "piece.h"
#include "reactor.h"
#include "req.h"

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

/* Decides whether disk and network overlap. Overlap requires chunks, and more than one piece. */
static void plan(struct req *r, uint64_t off, uint32_t total)
{
	const struct export_data *d = &r->exp->conf.data;
	size_t max = r->rpc->buf_max;
	uint32_t grain = (uint32_t)MIN((size_t)export_data_grain(d, total), max);
	struct place *pl = &r->place;

	pl->overlap = d->overlap != DATA_OVERLAP_OFF && total > grain &&
		      r->rpc->by_chunk;
	pl->in_order = pl->overlap && d->overlap == DATA_OVERLAP_ORDERED && pl->kind == PLACE_READ;
	if (pl->overlap)
		cut_start(&pl->cut, off, total, grain, d->streams, d->chunk);
	else
		cut_start(&pl->cut, off, total, 0, 1, 0);
	pl->shift = r->exports->stores[r->exp->idx]->aligned ? off % DATA_ALIGN : 0;
}

static struct place_piece *piece_get(struct req *r)
{
	struct place *pl = &r->place;
	struct list *n;
	struct place_piece *p = &pl->first;

	if (list_is_linked(&p->link)) {
		n = list_pop(&r->reactor->free_pieces);
		p = n ? list_entry(n, struct place_piece, link) : calloc(1, sizeof(*p));
	}
	if (!p)
		return NULL;
	list_init(&p->ready);
	list_init(&p->link);
	list_add_tail(&pl->pieces, &p->link);
	p->req = r;
	p->started = p->busy = p->lent = false;
	p->buf = NULL;
	pl->out++;
	return p;
}

/* A sync is one piece without bytes. */
static void begin_sync(struct req *r)
{
	struct place_piece *p = piece_get(r);

	p->state = PLACE_DISK;
	p->off = p->len = 0;
	p->stream = 0;
	p->iovcnt = 0;
	r->place.cut.streams[0].out++;
	piece_make_ready(p);
}

void place_start(struct req *r, enum place_kind kind, uint64_t off, uint32_t total)
{
	struct place *pl = &r->place;

	pl->kind = kind;
	pl->total = pl->good = total;
	pl->turn = 0;
	pl->err = 0;
	pl->short_read = pl->no_room = pl->sync_failed = pl->lost = pl->piecewise = false;
	pl->theirs = false;
	pl->overlap = pl->in_order = pl->starved = pl->forsaken = false;
	pl->open = kind != PLACE_WRITE;
	pl->out = pl->busy = pl->putting = 0;
	pl->shift = 0;
	pl->buf = NULL;
	list_init(&pl->pieces);
	list_init(&pl->ready);
	list_init(&pl->first.link);
	list_init(&pl->first.ready);
	pl->first.state = PLACE_DONE;
	if (kind == PLACE_READ || kind == PLACE_WRITE)
		plan(r, off, total);
	else
		cut_start(&pl->cut, off, total, 0, 1, 0);
	if (kind == PLACE_SYNC)
		begin_sync(r);
	if (pl->overlap)
		where_pieces(r);
	if (kind == PLACE_READ && total > r->rpc->room) {
		pl->no_room = true;
		cut_stop(&pl->cut);
	}
}

static bool has_free_window(const struct place *pl)
{
	return pl->out + pl->putting < PLACE_WINDOW;
}

/* Return: a piece that has just begun, or NULL */
static struct place_piece *begin_piece(struct req *r)
{
	struct place *pl = &r->place;
	struct place_piece *p;

	if (!pl->cut.left || !has_free_window(pl) || pl->starved)
		return NULL;
	p = piece_get(r); /* never NULL for the only piece */
	if (!p)
		return NULL;
	p->state = PLACE_NEED_BUF;
	if (cut_next(&pl->cut, &p->off, &p->len, &p->stream))
		return p;
	pl->out--;
	piece_free(p);
	return NULL;
}

/* Pieces that the transport holds are freed by on_put(), or after the reply. */
static void end_piece(struct place_piece *p)
{
	struct place *pl = place_of(p);

	pl->out--;
	cut_ended(&pl->cut, p->stream);
	if (!p->lent && pl->kind != PLACE_PULL)
		piece_free(p);
}

static struct place_piece *next_ready(struct req *r)
{
	struct list *n = list_pop(&r->place.ready);

	return n ? list_entry(n, struct place_piece, ready) : begin_piece(r);
}

static void put_buf(struct req *r)
{
	if (r->place.buf)
		rpcrdma_buf_put(r->reactor->loop.engine, r->place.buf);
	r->place.buf = NULL;
}

bool place_run(struct req *r)
{
	struct place *pl = &r->place;
	struct place_piece *p;

	while ((p = next_ready(r))) {
		piece_run(p);
		if (p->state == PLACE_DONE)
			end_piece(p);
	}
	if (!pl->out && !pl->cut.left && pl->kind == PLACE_WRITE) /* the store has the data, and the reply is small */
		put_buf(r);
	return !pl->out && !pl->cut.left;
}

/* A failed payload does not grow any more. */
bool place_pulled(const struct req *r)
{
	const struct place *pl = &r->place;

	return pl->err || !pl->out || pl->first.state == PLACE_PULLED;
}

void place_open(struct req *r)
{
	r->place.open = true;
	piece_wake_all(&r->place, PLACE_PULLED);
}

bool place_forsake(struct req *r)
{
	struct place *pl = &r->place;

	if (pl->kind != PLACE_WRITE || !pl->piecewise)
		return false;
	pl->forsaken = true;
	cut_stop(&pl->cut);
	piece_wake_all(pl, PLACE_PULLED);
	(void)place_run(r);
	return true;
}

bool place_settle(struct req *r)
{
	if (r->place.kind == PLACE_NONE)
		return true;
	cut_stop(&r->place.cut);
	return !r->place.busy;
}

const void *place_data(const struct req *r)
{
	return r->place.first.iov[0].iov_base;
}

void place_head(const struct req *r, void *to, uint32_t bytes)
{
	const struct place *pl = &r->place;
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

void place_fini(struct req *r)
{
	struct place *pl = &r->place;

	if (pl->kind == PLACE_NONE)
		return;
	assert(!pl->busy && !pl->putting);
	list_for_each_safe(n, &pl->pieces)
		piece_free(list_entry(n, struct place_piece, link));
	put_buf(r);
	pl->kind = PLACE_NONE;
	pl->forsaken = false; /* the next request in this memory may have no payload to forsake */
}

void place_pool_fini(struct reactor *re)
{
	struct list *n;

	while ((n = list_pop(&re->free_pieces)))
		free(list_entry(n, struct place_piece, link));
}
