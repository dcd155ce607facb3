/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * readahead.c - reads ahead of a sequential reader into a ring of buffers
 *
 * Operation:  leat_read() calls this with its position. A read that starts where the last one ended is
 *             sequential: from then on `slots` reads are kept in flight ahead of the reader, each into its
 *             slot of one leat_buf. The reader's bytes are copied from the slots in order. Reads as large
 *             as the whole window do not benefit and go directly into the caller's memory, as does the
 *             first read at any position.
 *
 *             slot:  EMPTY --fill()--> FLYING --slot_done()--> READY --drained--> EMPTY
 *                                        `--lt_readahead_drop()--> STALE --slot_done()--> EMPTY
 *
 *             The ring holds consecutive ranges: slot `head` is the first of them. Data that the cache
 *             knows to be outdated is dropped. So is data that has waited for the reader longer than the
 *             attribute timeout.
 * Memory:     leat_buf of `slots * slot_bytes`, allocated at the first sequential read, freed at close.
 * Threads:    The owner's. One such read at a time per file (leat_file.pos_lock).
 * Errors:     A slot that failed or came short (end of file at that time) ends the ring: the data before
 *             it is returned, then the file is read directly.
 */
#include <errno.h>
#include <stdlib.h>

#include "cache.h"
#include "file.h"
#include "handle.h"
#include "io.h"
#include "readahead.h"
#include "task.h"

#define SLOTS_MAX 16u
#define SLOT_MIN_BYTES 4096u

enum slot_state { SLOT_EMPTY, SLOT_FLYING, SLOT_READY, SLOT_STALE };

struct slot {
	struct leat_file *f;
	enum slot_state state;
	uint8_t *mem;
	uint64_t off;
	uint64_t data, asked_ns; /* lt_cache_data() and the time when the read was sent */
	int64_t result; /* READY: bytes, or -errno */
};

struct lt_readahead {
	uint8_t *mem;
	uint32_t slot_bytes;
	unsigned slots, head;
	uint64_t ahead;            /* next offset to read ahead */
	bool ended;                /* a slot was short or failed: no further readahead */
	struct reader *waiter;     /* the read that waits for slot `head` */
	struct slot slot[SLOTS_MAX];
};

/* A leat_read() in progress. */
struct reader {
	struct lt_task task;
	struct leat_file *f;
	char *buf;
	size_t len, done;
	uint64_t pos;
};

static void serve(struct reader *r);

static void release_reader(struct lt_task *t)
{
	struct reader *r = container_of(t, struct reader, task);
	struct leat_file *f = r->f;

	free(r);
	lt_file_release(f);
}

static void reader_finish(struct reader *r, int64_t result)
{
	/* a short read met the end of the file: readahead would not help */
	bool whole = result == (int64_t)r->len;

	r->f->sequential_pos = whole ? r->pos + r->len : UINT64_MAX;
	lt_task_finish(&r->task, result, release_reader);
}

static void direct_done(void *arg, int64_t result)
{
	struct reader *r = arg;

	if (result < 0) {
		/* bytes already returned count; the next read reports the error */
		reader_finish(r, r->done ? (int64_t)r->done : result);
		return;
	}
	reader_finish(r, (int64_t)r->done + result);
}

/* Reads directly into the caller's memory, from the reader's current position. */
static void read_direct(struct reader *r)
{
	const struct leat_cb cb = { .fn = direct_done, .user_data = r };
	int rc = lt_io_read_internal(r->f, r->buf + r->done, r->len - r->done, r->pos + r->done, cb);

	if (rc)
		reader_finish(r, r->done ? (int64_t)r->done : rc);
}

void lt_readahead_drop(struct leat_file *f)
{
	struct lt_readahead *ra = f->readahead;

	f->sequential_pos = UINT64_MAX;
	if (!ra)
		return;
	for (unsigned i = 0; i < ra->slots; i++) {
		struct slot *s = &ra->slot[i];

		if (s->state == SLOT_FLYING)
			s->state = SLOT_STALE;
		else if (s->state == SLOT_READY)
			s->state = SLOT_EMPTY;
	}
	ra->ended = true; /* until a new sequential read starts */
}

void lt_readahead_destroy(struct leat_file *f)
{
	if (!f->readahead)
		return;
	leat_buf_free(f->m->session, f->readahead->mem);
	free(f->readahead);
	f->readahead = NULL;
}

static void slot_done(void *arg, int64_t result)
{
	struct slot *s = arg;
	struct lt_readahead *ra = s->f->readahead;
	struct reader *waiter = ra->waiter;

	if (s->state == SLOT_STALE) {
		s->state = SLOT_EMPTY;
	} else {
		s->state = SLOT_READY;
		s->result = result;
		if (result < (int64_t)ra->slot_bytes)
			ra->ended = true;
	}
	if (waiter) {
		ra->waiter = NULL;
		serve(waiter);
	}
}

/* Starts reads into all free slots behind the head. */
static void fill(struct leat_file *f)
{
	struct lt_readahead *ra = f->readahead;

	for (unsigned i = 0; i < ra->slots && !ra->ended; i++) {
		struct slot *s = &ra->slot[(ra->head + i) % ra->slots];
		const struct leat_cb cb = { .fn = slot_done, .user_data = s };

		if (s->state != SLOT_EMPTY) {
			if (s->state == SLOT_STALE)
				return; /* ranges stay in slot order */
			continue;
		}
		s->off = ra->ahead;
		s->data = lt_cache_data(f->m->cache, lt_fh_wire(&f->fh));
		s->asked_ns = lt_handle_now(f->m);
		s->state = SLOT_FLYING;
		if (lt_io_read_internal(f, s->mem, ra->slot_bytes, s->off, cb)) {
			s->state = SLOT_EMPTY;
			ra->ended = true; /* no memory: continue without readahead */
			return;
		}
		ra->ahead += ra->slot_bytes;
	}
}

/* Copies data from the head to @r. Return: false: the head is used up. */
static bool take_from_head(struct reader *r, struct slot *s)
{
	uint64_t at = r->pos + r->done - s->off; /* < slot_bytes: the ring follows the reader */
	size_t have = s->result > (int64_t)at ? (size_t)s->result - (size_t)at : 0;
	size_t n = MIN(have, r->len - r->done);

	memcpy(r->buf + r->done, s->mem + at, n);
	rpcrdma_count_copied(r->f->m->session->engine, n);
	r->done += n;
	return r->done == r->len;
}

/* Is the data of the slot still current? */
static bool holds(struct leat_file *f, const struct slot *s)
{
	return lt_cache_data_holds(f->m->cache, lt_fh_wire(&f->fh), s->data, s->asked_ns,
				   lt_handle_now(f->m));
}

/* Continues @r as far as possible: to its end, or to a slot still in flight. */
static void serve(struct reader *r)
{
	struct leat_file *f = r->f;
	struct lt_readahead *ra = f->readahead;

	for (;;) {
		struct slot *s = &ra->slot[ra->head];
		uint64_t want = r->pos + r->done;

		fill(f);
		if (s->state == SLOT_FLYING) {
			ra->waiter = r;
			return;
		}
		if (s->state == SLOT_READY && !holds(f, s))
			lt_readahead_drop(f);
		if (s->state != SLOT_READY || want < s->off || want - s->off >= ra->slot_bytes) {
			read_direct(r);
			return;
		}
		if (take_from_head(r, s)) {
			if (r->pos + r->done - s->off == ra->slot_bytes) {
				s->state = SLOT_EMPTY;
				ra->head = (ra->head + 1) % ra->slots;
				fill(f);
			}
			reader_finish(r, (int64_t)r->done);
			return;
		}
		if (s->result < (int64_t)ra->slot_bytes) {
			/* The file ended here when the slot was read. It may have grown since: read the file
			 * directly. */
			lt_readahead_drop(f);
			read_direct(r);
			return;
		}
		s->state = SLOT_EMPTY;
		ra->head = (ra->head + 1) % ra->slots;
	}
}

static struct lt_readahead *create_ring(struct leat_file *f)
{
	struct leat *m = f->m;
	uint32_t bytes = MIN(m->rsize, MAX(m->url.readahead_bytes / 4, SLOT_MIN_BYTES));
	struct lt_readahead *ra = calloc(1, sizeof(*ra));
	void *mem;

	if (!ra)
		return NULL;
	ra->slot_bytes = bytes >= SLOT_MIN_BYTES ? bytes / SLOT_MIN_BYTES * SLOT_MIN_BYTES : bytes;
	ra->slots = MIN(MAX(m->url.readahead_bytes / ra->slot_bytes, 1u), SLOTS_MAX);
	if (leat_buf_alloc(m->session, (size_t)ra->slots * ra->slot_bytes, &mem)) {
		free(ra);
		return NULL;
	}
	ra->mem = mem;
	ra->ended = true;
	for (unsigned i = 0; i < ra->slots; i++) {
		ra->slot[i].f = f;
		ra->slot[i].mem = ra->mem + (size_t)i * ra->slot_bytes;
	}
	return ra;
}

static bool ring_is_idle(const struct lt_readahead *ra)
{
	for (unsigned i = 0; i < ra->slots; i++) {
		if (ra->slot[i].state != SLOT_EMPTY)
			return false;
	}
	return true;
}

static void reader_stop(struct lt_task *t)
{
	struct reader *r = container_of(t, struct reader, task);
	struct lt_readahead *ra = r->f->readahead;

	if (ra && ra->waiter == r) {
		ra->waiter = NULL;
		reader_finish(r, r->done ? (int64_t)r->done : -ECANCELED);
		return;
	}
	(void)lt_task_cancel(t->m, lt_task_has_data, r); /* its read into the caller's memory */
}

static void reader_start(struct lt_task *t)
{
	struct reader *r = container_of(t, struct reader, task);
	struct leat_file *f = r->f;
	struct lt_readahead *ra;

	lt_file_hold(f);
	if (r->pos != f->sequential_pos || r->len >= f->m->url.readahead_bytes) {
		lt_readahead_drop(f);
		read_direct(r);
		return;
	}
	if (!f->readahead)
		f->readahead = create_ring(f);
	ra = f->readahead;
	if (!ra) {
		read_direct(r);
		return;
	}
	if (ring_is_idle(ra)) {
		ra->head = 0;
		ra->ahead = r->pos;
		ra->ended = false;
	}
	serve(r);
}

int lt_readahead_read(struct leat_file *f, void *buf, size_t len, uint64_t pos, struct leat_cb cb)
{
	struct reader *r;

	if (!f->m->url.readahead_bytes || f->is_dir || !lt_file_can_read(f) || !len)
		return leat_aio_pread(f, buf, len, pos, cb);
	r = calloc(1, sizeof(*r));
	if (!r)
		return lt_task_refuse(cb, -ENOMEM);
	r->task.m = f->m;
	r->task.cb = cb;
	r->task.file = f;
	r->task.verb = "read";
	r->task.path = f->path;
	r->f = f;
	r->buf = buf;
	r->len = len;
	r->pos = pos;
	r->task.stop = reader_stop;
	lt_task_submit(&r->task, reader_start);
	return 0;
}
