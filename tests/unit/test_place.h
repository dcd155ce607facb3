/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_place.h - a request that moves a payload between a fake transport and a fake disk
 */
#ifndef TEST_PLACE_H
#define TEST_PLACE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "io_unit.c"
#include "place.c"

#define TOTAL 26u
#define OPS_MAX 70

enum op_kind { OP_BUF, OP_PULL, OP_DISK, OP_PUT };

struct op {
	enum op_kind kind;
	void *what;
	uint32_t off, len;
	bool done;
};
static struct op ops[OPS_MAX];
static unsigned nops, bufs_left, bufs_out, resumed;
static size_t buf_max; /* no larger buffer is available */
static struct rpcrdma_req rpc;
static bool direct, inline_disk;
static char disk[TOTAL + 1], caller[TOTAL + 1], direct_mem[TOTAL];
static enum store_op operation; /* of PLACE_STORE */
static uint32_t stretch; /* not 0: puts are not copied, because the payload is larger than the arrays */

/* The units of one request. */
struct rig {
	struct place place;
	struct place_plan plan;
	struct rpcrdma_payload args;
	struct latency latency;
};
static struct rig *running;

static inline void note(enum op_kind kind, void *what, uint32_t off, uint32_t len)
{
	assert_true(nops < OPS_MAX);
	ops[nops++] = (struct op){ .kind = kind, .what = what, .off = off, .len = len };
}

int rpcrdma_req_buf_get(struct rpcrdma_req *req, size_t bytes, struct rpcrdma_buf **ret)
{
	struct rpcrdma_buf *b;

	(void)req;
	if (bytes > rpc.buf_max)
		return -EMSGSIZE;
	if (!bufs_left || bytes > buf_max)
		return -ENOBUFS;
	bufs_left--;
	bufs_out++;
	b = malloc(sizeof(*b));
	b->addr = malloc(bytes);
	b->bytes = bytes;
	*ret = b;
	return 0;
}

size_t rpcrdma_domain_reply_max(const struct rpcrdma_domain *d)
{
	(void)d;
	return RPCRDMA_BUF_MAX;
}

void rpcrdma_buf_put(struct rpcrdma_engine *e, struct rpcrdma_buf *b)
{
	(void)e;
	bufs_left++;
	bufs_out--;
	free(b->addr);
	free(b);
}

void rpcrdma_req_buf_wait(struct rpcrdma_req *req, struct rpcrdma_buf_waiter *w)
{
	(void)req;
	note(OP_BUF, w, 0, 0);
}

int rpcrdma_req_sink(struct rpcrdma_req *req, uint32_t off, uint32_t len, struct iovec *iov,
		     int *cnt)
{
	(void)req;
	assert_true(req->can_map);
	if (!direct)
		return -EOPNOTSUPP;
	if (off + len > req->room)
		return -EMSGSIZE;
	iov[0] = (struct iovec){ .iov_base = direct_mem + off, .iov_len = len };
	*cnt = 1;
	return 0;
}

int rpcrdma_req_source(struct rpcrdma_req *req, uint32_t off, uint32_t len, struct iovec *iov,
		       int *cnt)
{
	(void)req;
	assert_true(req->can_map);
	if (!direct)
		return -EOPNOTSUPP;
	iov[0] = (struct iovec){ .iov_base = direct_mem + off, .iov_len = len };
	*cnt = 1;
	return 0;
}

int rpcrdma_req_pull(struct rpcrdma_req *req, struct rpcrdma_xfer *p)
{
	(void)req;
	note(OP_PULL, p, p->off, p->len);
	return 0;
}

int rpcrdma_req_place(struct rpcrdma_req *req, struct rpcrdma_xfer *p)
{
	(void)req;
	if (p->off + p->len > req->room && !stretch)
		return -EMSGSIZE;
	if (p->done) {
		note(OP_PUT, p, p->off, p->len);
		return 0;
	}
	if (!stretch)
		memcpy(caller + p->off, (char *)p->buf->addr + p->buf_off, p->len);
	return 0;
}

static inline int fake_submit(struct store *s, struct store_io *io)
{
	(void)s;
	if (io->op == STORE_SYNC) {
		io->res = 0;
		return 1;
	}
	if (!inline_disk) {
		note(OP_DISK, io, (uint32_t)io->off, io->bytes);
		return 0;
	}
	if (!stretch)
		memcpy(io->iov[0].iov_base, disk + io->off, io->bytes);
	io->res = (int32_t)io->bytes;
	return 1;
}

int store_queue_submit(struct store *s, struct store_io *io)
{
	(void)s;
	note(OP_DISK, io, (uint32_t)io->off, io->bytes); /* starts when the test says so */
	return 0;
}

static const struct store_ops fake_ops = { .name = "fake", .submit = fake_submit };

static inline void wake(struct place *pl)
{
	resumed++;
	assert_ptr_equal(pl, &running->place);
	(void)place_run(pl);
}

static struct store_counters counters;
static struct data_conf how;
static struct backing backing = { .data = &how };
static struct store store = { .ops = &fake_ops, .counters = &counters, .backing = &backing };
static struct place_pool pool;
static struct latency_tracer tracer;
static struct latency_reactor stats;
static struct rpcrdma_peer peer;
static struct store_file file = { .fd = 3, .writable = true };

static inline void begin_request(struct rig *r)
{
	latency_begin(&r->latency, &stats, &peer);
	place_init(&r->place, &pool, &rpc, &r->latency, wake);
}

static inline int setup(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));

	nops = resumed = bufs_out = 0;
	operation = STORE_SYNC;
	store.queue = NULL;
	bufs_left = 100;
	rpc.room = 1000;
	stretch = 0;
	buf_max = rpc.buf_max = SIZE_MAX;
	direct = inline_disk = false;
	rpc.can_map = true;
	rpc.by_chunk = true;
	list_init(&pool.free);
	memset(&stats, 0, sizeof(stats));
	stats.turn = UINT_MAX; /* only split requests are measured */
	stats.tracer = &tracer;
	how = (struct data_conf){ .overlap = DATA_OVERLAP_STREAMS, .streams = 1 };
	memcpy(disk, "abcdefghijklmnopqrstuvwxyz", TOTAL + 1);
	memset(caller, '.', TOTAL);
	memset(direct_mem, '.', TOTAL);
	latency_tracer_init(&tracer);
	running = r;
	begin_request(r);
	*state = r;
	return 0;
}

static inline int teardown(void **state)
{
	struct rig *r = *state;

	place_fini(&r->place);
	assert_int_equal(bufs_out, 0);
	place_pool_fini(&pool);
	latency_tracer_fini(&tracer);
	free(r);
	return 0;
}

/* Begins a request. A WRITE is pulled only, until move_on(). */
static inline void start_at(struct rig *r, enum place_kind kind, uint64_t off, uint32_t bytes)
{
	r->plan = (struct place_plan){
		.store = &store,
		.data = &r->args,
		.off = off,
		.bytes = bytes,
		.file = &file,
		.size_hint = TOTAL,
		.op = operation,
	};
	if (kind == PLACE_WRITE || kind == PLACE_PULL)
		place_pull(&r->place, kind, &r->plan);
	else
		place_move(&r->place, kind, &r->plan);
}

static inline void move_on(struct rig *r)
{
	place_move(&r->place, PLACE_WRITE, &r->plan);
}

/* Begins a request in units of @grain bytes. */
static inline void begin(struct rig *r, enum place_kind kind, uint32_t grain)
{
	how.grain = grain;
	start_at(r, kind, 0, TOTAL);
	if (kind == PLACE_WRITE)
		move_on(r);
	(void)place_run(&r->place);
}

static inline void complete(unsigned i, int err)
{
	struct op *op = &ops[i];
	struct store_io *io = op->what;
	struct rpcrdma_xfer *p = op->what;

	assert_true(i < nops && !op->done);
	op->done = true;
	switch (op->kind) {
	case OP_BUF:
		((struct rpcrdma_buf_waiter *)op->what)->fn(op->what);
		return;
	case OP_PULL:
		memcpy((char *)p->buf->addr + p->buf_off, caller + p->off, p->len);
		p->done(p, err);
		return;
	case OP_PUT:
		if (!stretch)
			memcpy(caller + p->off, (char *)p->buf->addr + p->buf_off, p->len);
		p->done(p, err);
		return;
	case OP_DISK:
		if (err > 0) { /* a short result */
			io->res = err;
		} else {
			io->res = err ? err : (int32_t)io->bytes;
		}
		if (io->res > 0 && io->op == STORE_READ)
			memcpy(io->iov[0].iov_base, disk + io->off, (size_t)io->res);
		if (io->res > 0 && io->op == STORE_WRITE)
			memcpy(disk + io->off, io->iov[0].iov_base, (size_t)io->res);
		io->done(io);
		return;
	}
}

/* Completes all open operations, the newest or the oldest first. Return: their number */
static inline unsigned complete_all(bool last_first)
{
	unsigned n = 0;

	for (;;) {
		unsigned i, found = nops;

		for (i = 0; i < nops; i++) {
			if (!ops[i].done && (found == nops || last_first))
				found = i;
		}
		if (found == nops)
			return n;
		complete(found, 0);
		n++;
	}
}

#endif
