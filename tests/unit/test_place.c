/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_place.c - the pieces of a payload: every order of completions, shortage, errors in the middle
 *
 * Includes the file it tests; transport, pool and store are here, and let the test complete what was
 * begun in whatever order it wants. The payload is 26 bytes, a piece as long as the test says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "piece.c"
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
static size_t buf_max; /* longer ones cannot be had now */
static struct rpcrdma_req rpc;
static bool direct, inline_disk;
static char disk[TOTAL + 1], caller[TOTAL + 1], direct_mem[TOTAL];
static uint32_t stretch; /* the payload is longer, and nobody looks at it */
/* What a request has of it. */
struct rig {
	struct place place;
	struct place_plan plan;
	struct rpcrdma_payload args;
	struct latency latency;
};

static struct rig *running;

/* ---- the fakes ---- */

static void note(enum op_kind kind, void *what, uint32_t off, uint32_t len)
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

int rpcrdma_req_pull(struct rpcrdma_req *req, struct rpcrdma_piece *p)
{
	(void)req;
	note(OP_PULL, p, p->off, p->len);
	return 0;
}

int rpcrdma_req_place(struct rpcrdma_req *req, struct rpcrdma_piece *p)
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

static int fake_submit(struct store *s, struct store_io *io)
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
	note(OP_DISK, io, (uint32_t)io->off, io->bytes); /* its turn is when the test says so */
	return 0;
}

static const struct store_ops fake_ops = { .name = "fake", .submit = fake_submit };

static void wake(struct place *pl)
{
	resumed++;
	assert_ptr_equal(pl, &running->place);
	(void)place_run(pl);
}

/* ---- driving it ---- */

static struct store_counters counters;
static struct export_data how;
static struct volume volume = { .data = &how };
static struct store store = { .ops = &fake_ops, .counters = &counters, .volume = &volume };
static struct place_pool pool;
static struct latency_tracer tracer;
static struct latency_reactor stats;
static struct rpcrdma_peer peer;
static struct store_file file = { .fd = 3, .writable = true };

static void begin_request(struct rig *r)
{
	latency_begin(&r->latency, &stats, &peer);
	place_init(&r->place, &pool, &rpc, &r->latency, wake);
}

static int setup(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));

	nops = resumed = bufs_out = 0;
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
	stats.turn = UINT_MAX; /* only what is in pieces is timed */
	stats.tracer = &tracer;
	how = (struct export_data){ .overlap = DATA_OVERLAP_STREAMS, .streams = 1 };
	memcpy(disk, "abcdefghijklmnopqrstuvwxyz", TOTAL + 1);
	memset(caller, '.', TOTAL);
	memset(direct_mem, '.', TOTAL);
	latency_tracer_init(&tracer);
	running = r;
	begin_request(r);
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	struct rig *r = *state;

	place_fini(&r->place);
	assert_int_equal(bufs_out, 0);
	place_pool_fini(&pool);
	latency_tracer_fini(&tracer);
	free(r);
	return 0;
}

/* A WRITE is pulled and held, a PULL pulled. */
static void start_at(struct rig *r, enum place_kind kind, uint64_t off, uint32_t bytes)
{
	r->plan = (struct place_plan){
		.store = &store,
		.data = &r->args,
		.off = off,
		.bytes = bytes,
		.file = &file,
		.size_hint = TOTAL,
	};
	if (kind == PLACE_WRITE || kind == PLACE_PULL)
		place_pull(&r->place, kind, &r->plan);
	else
		place_move(&r->place, kind, &r->plan);
}

static void move_on(struct rig *r)
{
	place_move(&r->place, PLACE_WRITE, &r->plan);
}

/* pieces of @grain bytes, each going its own way; or all in one */
static void begin(struct rig *r, enum place_kind kind, uint32_t grain)
{
	how.grain = grain;
	start_at(r, kind, 0, TOTAL);
	if (kind == PLACE_WRITE)
		move_on(r);
	(void)place_run(&r->place);
}

static void complete(unsigned i, int err)
{
	struct op *op = &ops[i];
	struct store_io *io = op->what;
	struct rpcrdma_piece *p = op->what;

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
		if (err > 0) { /* so many bytes */
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

/* all that is open, the last or the first begun first; Return: how many */
static unsigned complete_all(bool last_first)
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

/* the same, but who waits for memory is only told when there is some; it may not be enough, ever */
static void complete_what_can(void)
{
	for (;;) {
		unsigned i = 0;

		while (i < nops && (ops[i].done || (ops[i].kind == OP_BUF && !bufs_left)))
			i++;
		if (i == nops)
			return;
		complete(i, 0);
	}
}

static void read_pieces(void **state)
{
	struct rig *r = *state;

	for (uint32_t grain = 1; grain <= TOTAL + 1; grain++) {
		for (int order = 0; order < 2; order++) {
			nops = 0;
			if (grain * OPS_MAX < 2 * TOTAL)
				continue;
			memset(caller, '.', TOTAL);
			begin(r, PLACE_READ, grain);
			(void)complete_all(order);
			assert_true(place_run(&r->place));
			assert_int_equal(r->place.good, TOTAL);
			assert_int_equal(r->place.err, 0);
			assert_memory_equal(caller, "abcdefghijklmnopqrstuvwxyz", TOTAL);
			place_fini(&r->place);
			assert_int_equal(bufs_out, 0);
		}
	}
}

/* a piece whose disk and whose network take their time, each by itself, in any order */
static void side_by_side(void **state)
{
	struct rig *r = *state;

	begin(r, PLACE_READ, 9);
	assert_int_equal(nops, 3);
	assert_int_equal(bufs_out, 1); /* one for all of it */
	complete(1, 0);
	assert_int_equal(nops, 4);
	assert_int_equal(ops[3].kind, OP_PUT); /* while the others are being read */
	assert_int_equal(ops[3].off, 9);
	complete(0, 0);
	assert_int_equal(ops[4].off, 0);
	assert_false(place_run(&r->place));
	complete(2, 0);
	assert_int_equal(nops, 6);
	assert_true(place_run(&r->place)); /* the answer need not wait for them */
	complete(5, 0);
	complete(4, 0);
	complete(3, 0);
	assert_memory_equal(caller, "abcdefghijklmnopqrstuvwxyz", TOTAL);
}

static void in_order(void **state)
{
	struct rig *r = *state;

	how.overlap = DATA_OVERLAP_ORDERED;
	begin(r, PLACE_READ, 9);
	complete(2, 0);
	complete(1, 0);
	assert_int_equal(nops, 3);
	complete(0, 0); /* now all of them at once */
	assert_int_equal(nops, 6);
	assert_int_equal(ops[3].off, 0);
	assert_int_equal(ops[4].off, 9);
	assert_int_equal(ops[5].off, 18);
	assert_true(place_run(&r->place));
	complete(5, 0);
	complete(4, 0);
	complete(3, 0);
	assert_memory_equal(caller, "abcdefghijklmnopqrstuvwxyz", TOTAL);
	place_fini(&r->place);

	/* what waits for its turn is let go when that cannot come */
	nops = 0;
	memset(caller, '.', TOTAL);
	begin(r, PLACE_READ, 9);
	complete(2, 0);
	complete(0, 0);
	complete(1, -EIO);
	assert_true(place_run(&r->place));
	assert_int_equal(r->place.good, 9);
	assert_int_equal(r->place.err, -EIO);
	complete(3, 0);
	assert_memory_equal(caller + 9, ".................", TOTAL - 9);
}

/* no memory for the whole: so many pieces as there are buffers, and a buffer is used again when the
 * transport is through with it, not before */
static void piecewise(void **state)
{
	struct rig *r = *state;

	buf_max = 3;
	bufs_left = 4;
	begin(r, PLACE_READ, 3);
	assert_int_equal(bufs_out, 4);
	assert_int_equal(ops[4].kind, OP_BUF);
	complete(2, 0); /* read: now it is being put, and its buffer is not free yet */
	assert_int_equal(bufs_out, 4);
	for (unsigned i = 0; i < nops; i++) {
		if (ops[i].kind == OP_PUT && !ops[i].done)
			complete(i, 0);
	}
	assert_int_equal(bufs_out, 3);
	(void)complete_all(false);
	assert_true(place_run(&r->place));
	assert_memory_equal(caller, "abcdefghijklmnopqrstuvwxyz", TOTAL);
}

static unsigned waiting_for_bufs(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < nops; i++)
		n += ops[i].kind == OP_BUF && !ops[i].done;
	return n;
}

/* A pool that never has so large a buffer: one of those it has is enough, with overlap or without. */
static void cut_by_memory(void **state)
{
	static const enum data_overlap kinds[] = { DATA_OVERLAP_OFF, DATA_OVERLAP_ORDERED,
						   DATA_OVERLAP_STREAMS };
	struct rig *r = *state;

	rpc.buf_max = 4;
	bufs_left = 1;
	for (unsigned k = 0; k < ARRAY_SIZE(kinds); k++) {
		how.overlap = kinds[k];
		nops = 0;
		memset(caller, '.', TOTAL);
		begin(r, PLACE_READ, 13); /* more than there is */
		assert_int_equal(waiting_for_bufs(), 1);
		complete_what_can();
		assert_true(place_run(&r->place));
		assert_int_equal(r->place.good, TOTAL);
		assert_memory_equal(caller, "abcdefghijklmnopqrstuvwxyz", TOTAL);
		place_fini(&r->place);

		nops = 0;
		memcpy(caller, "ABCDEFGHIJKLMNOPQRSTUVWXYZ", TOTAL);
		memset(disk, '.', TOTAL);
		r->args.length = TOTAL;
		begin(r, PLACE_WRITE, 13);
		complete_what_can();
		assert_true(place_run(&r->place));
		assert_int_equal(r->place.good, TOTAL);
		assert_memory_equal(disk, "ABCDEFGHIJKLMNOPQRSTUVWXYZ", TOTAL);
		place_fini(&r->place);
		memcpy(disk, "abcdefghijklmnopqrstuvwxyz", TOTAL);
		assert_int_equal(bufs_left, 1);
	}

	/* a path is needed whole */
	start_at(r, PLACE_PULL, 0, 5);
	assert_true(place_run(&r->place));
	assert_int_equal(r->place.err, -EMSGSIZE);
}

/* Pieces that wait for their turn must not hold what the one whose turn it is waits for: with several
 * members they do not begin in the order of the file, unless there is too little memory for that. */
static void in_order_with_little_memory(void **state)
{
	struct rig *r = *state;

	how = (struct export_data){ .overlap = DATA_OVERLAP_ORDERED, .streams = 3,
					       .chunk = 6 };
	buf_max = 2;
	bufs_left = 2; /* less than there are members */
	begin(r, PLACE_READ, 2);
	complete_what_can();
	assert_int_equal(waiting_for_bufs(), 0);
	assert_true(place_run(&r->place));
	assert_memory_equal(caller, "abcdefghijklmnopqrstuvwxyz", TOTAL);
}

/* A stream can be pulled from in one order only, whoever has to wait for memory. */
static void stream_with_little_memory(void **state)
{
	struct rig *r = *state;
	uint32_t at = 0;

	rpc.by_chunk = false;
	rpc.buf_max = 4;
	bufs_left = 2;
	r->args.length = TOTAL;
	memcpy(caller, "ABCDEFGHIJKLMNOPQRSTUVWXYZ", TOTAL);
	begin(r, PLACE_WRITE, TOTAL);
	while (waiting_for_bufs() || !place_run(&r->place)) {
		unsigned i = nops;

		while (i-- > 0) /* the last first, as far as there is a choice */
			if (!ops[i].done && (ops[i].kind != OP_BUF || bufs_left))
				break;
		assert_true(i < nops);
		complete(i, 0);
	}
	for (unsigned i = 0; i < nops; i++) {
		if (ops[i].kind != OP_PULL)
			continue;
		assert_int_equal(ops[i].off, at);
		at += ops[i].len;
	}
	assert_int_equal(at, TOTAL);
	assert_memory_equal(disk, "ABCDEFGHIJKLMNOPQRSTUVWXYZ", TOTAL);
}

/* It waits for its twin, and the twin for memory: so it lets go of its own. */
static void twin_lets_go(void **state)
{
	struct rig *r = *state;

	rpc.buf_max = 4;
	bufs_left = 2;
	r->args.length = TOTAL;
	how.grain = 4;
	start_at(r, PLACE_WRITE, 0, TOTAL);
	assert_false(place_run(&r->place));
	complete(0, 0);
	assert_true(place_pulled(&r->place));
	assert_int_equal(bufs_out, 2); /* one is there, one on its way, and a third piece waits */
	assert_int_equal(waiting_for_bufs(), 1);
	assert_true(place_discard(&r->place));
	assert_int_equal(bufs_out, 1);
	(void)complete_all(false);
	assert_true(place_discard(&r->place)); /* as after each completion */
	assert_int_equal(bufs_out, 0);
	assert_true(place_settle(&r->place));
	place_fini(&r->place);

	rpc.buf_max = SIZE_MAX; /* one that holds all it will need */
	nops = 0;
	start_at(r, PLACE_WRITE, 0, TOTAL);
	(void)place_run(&r->place);
	(void)complete_all(false);
	assert_false(place_discard(&r->place));
	assert_int_equal(bufs_out, 1);
}

/* more pieces than may be under way: the transport has to be through with some first */
static void window(void **state)
{
	struct rig *r = *state;
	unsigned n;

	inline_disk = true;
	stretch = 8;
	how.grain = stretch;
	start_at(r, PLACE_READ, 0, stretch * (PLACE_WINDOW + 3));
	assert_false(place_run(&r->place));
	assert_int_equal(nops, PLACE_WINDOW);
	complete(1, 0);
	complete(0, 0);
	assert_false(place_run(&r->place));
	assert_int_equal(nops, PLACE_WINDOW + 2);
	complete(2, 0);
	assert_true(place_run(&r->place));
	assert_int_equal(nops, PLACE_WINDOW + 3);
	n = complete_all(true);
	assert_int_equal(n, PLACE_WINDOW);
}

/* whoever asks for a trace gets the next request in pieces: all of them, each from disk to network */
static void trace(void **state)
{
	struct rig *r = *state;
	struct latency_trace *t;
	uint64_t was = stats.stats.kinds[LATENCY_READ].requests;

	assert_null(latency_tracer_take(&tracer, NULL));
	begin(r, PLACE_READ, 9);
	complete(1, 0);
	assert_int_equal(r->latency.disk, 2);
	assert_int_equal(r->latency.net, 1);
	(void)complete_all(true);
	assert_int_equal(r->latency.disk, 0);
	assert_int_equal(r->latency.net, 0);
	latency_end(&r->latency, LATENCY_READ, r->place.good);
	assert_int_equal(stats.stats.kinds[LATENCY_READ].requests, was + 1);
	t = latency_tracer_take(&tracer, NULL);
	assert_non_null(t);
	assert_false(t->is_write);
	assert_int_equal(t->bytes, TOTAL);
	assert_int_equal(t->n, 3);
	for (uint32_t i = 0; i < t->n; i++) {
		const struct latency_piece *p = &t->pieces[i];

		assert_int_equal(p->off, 9 * i);
		assert_true(p->disk_begin <= p->disk_end && p->disk_end <= p->net_begin);
		assert_true(p->net_begin <= p->net_end && p->net_end <= t->total_ns);
	}
	free(t);
	assert_null(latency_tracer_take(&tracer, NULL)); /* told once */
}

/* one request of the user @uid in pieces, from beginning to end */
static void one_request_of(struct rig *r, uid_t uid)
{
	peer = (struct rpcrdma_peer){ .transport = RPCRDMA_LOCAL, .has_cred = true, .uid = uid };
	begin_request(r);
	begin(r, PLACE_READ, 9);
	(void)complete_all(true);
	latency_end(&r->latency, LATENCY_READ, r->place.good);
	place_fini(&r->place);
	nops = resumed = 0;
}

static bool gets_trace(const struct rpcrdma_client_id *client)
{
	struct latency_trace *t = latency_tracer_take(&tracer, client);
	bool there = t != NULL;

	free(t);
	return there;
}

/* a client sees its own requests only, and takes nothing from an administrator */
static void trace_of_a_client(void **state)
{
	struct rpcrdma_client_id one = { .kind = RPCRDMA_CLIENT_USER, .key = 1000 };
	struct rpcrdma_client_id two = { .kind = RPCRDMA_CLIENT_USER, .key = 1001 };
	struct rig *r = *state;

	assert_false(gets_trace(&one));
	one_request_of(r, 1001); /* of somebody else: not looked at, and the next one still is */
	one_request_of(r, 1000);
	assert_false(gets_trace(&two)); /* nor told to somebody else */
	assert_true(gets_trace(&one));

	assert_false(gets_trace(NULL));
	one_request_of(r, 1000);
	assert_false(gets_trace(&two));
	assert_true(gets_trace(NULL));
}

/* a piece that is cut anew, as there is no memory for the whole, is told as it was cut then */
static void trace_of_a_second_cut(void **state)
{
	struct rig *r = *state;
	struct latency_trace *t;

	assert_null(latency_tracer_take(&tracer, NULL));
	how.overlap = DATA_OVERLAP_ORDERED;
	how.streams = 2;
	how.chunk = 4;
	buf_max = 9;
	begin(r, PLACE_READ, 9);
	(void)complete_all(false);
	assert_true(place_run(&r->place));
	latency_end(&r->latency, LATENCY_READ, r->place.good);
	t = latency_tracer_take(&tracer, NULL);
	assert_non_null(t);
	assert_int_equal(t->n, 3);
	for (uint32_t i = 0; i < t->n; i++) {
		assert_int_equal(t->pieces[i].off, 9 * i);
		assert_int_equal(t->pieces[i].len, i < 2 ? 9 : 8);
	}
	free(t);
}

/* the time in the line in front of a disk is none of the disk's */
static void where_turns_are_waited_for(void **state)
{
	struct rig *r = *state;

	store.queue = (struct store_queue *)&store; /* any: the fake does not look at it */
	begin(r, PLACE_READ, 13);
	assert_int_equal(nops, 2);
	assert_int_equal(r->latency.disk, 0);
	for (unsigned i = 0; i < 2; i++) {
		struct store_io *io = ops[i].what;

		io->begins(io);
		assert_int_equal(r->latency.disk, i + 1);
	}
	(void)complete_all(false);
	assert_int_equal(r->latency.disk, 0);
	assert_int_equal(atomic_load(&counters.submit_blocked), 0);
	assert_true(place_run(&r->place));
	assert_memory_equal(caller, "abcdefghijklmnopqrstuvwxyz", TOTAL);
}

/* what travels inside a message or on a stream is not cut */
static void no_chunk(void **state)
{
	struct rig *r = *state;

	rpc.by_chunk = false;
	begin(r, PLACE_READ, 3);
	assert_int_equal(nops, 1);
	assert_int_equal(ops[0].len, TOTAL);
	complete(0, 0);
	assert_true(place_run(&r->place));
	assert_memory_equal(caller, "abcdefghijklmnopqrstuvwxyz", TOTAL);
}

/* memory lies as the file does, where the store likes that, and it is told what it may spoil */
static void pads(void **state)
{
	struct rig *r = *state;
	struct store_io *io;

	rpc.by_chunk = false;
	store.aligned = true;
	start_at(r, PLACE_READ, DATA_ALIGN + 7, 10);
	(void)place_run(&r->place);
	io = ops[0].what;
	assert_int_equal(io->pad_head, 7);
	assert_int_equal(io->pad_tail, 0); /* this pool's buffers are as long as asked */
	assert_ptr_equal((char *)io->iov[0].iov_base - 7, r->place.buf->addr);
	io->res = 0;
	ops[0].done = true;
	io->done(io);
	store.aligned = false;
}

static void write_pieces(void **state)
{
	struct rig *r = *state;

	for (int order = 0; order < 2; order++) {
		nops = 0;
		memcpy(caller, "ABCDEFGHIJKLMNOPQRSTUVWXYZ", TOTAL);
		memset(disk, '.', TOTAL);
		r->args.length = TOTAL;
		begin(r, PLACE_WRITE, 4);
		(void)complete_all(order);
		assert_true(place_run(&r->place));
		assert_int_equal(r->place.good, TOTAL);
		assert_memory_equal(disk, "ABCDEFGHIJKLMNOPQRSTUVWXYZ", TOTAL);
		assert_int_equal(bufs_out, 0); /* a WRITE needs none beyond the disk */
		place_fini(&r->place);
	}
}

/* nothing of it reaches the store before it may */
static void pulled_and_held(void **state)
{
	struct rig *r = *state;
	char head[9];

	memcpy(caller, "ABCDEFGHIJKLMNOPQRSTUVWXYZ", TOTAL);
	memset(disk, '.', TOTAL);
	r->args.length = TOTAL;
	how.grain = 9;
	start_at(r, PLACE_WRITE, 0, TOTAL);
	assert_false(place_run(&r->place));
	assert_int_equal(nops, 3);
	complete(1, 0);
	assert_false(place_pulled(&r->place)); /* not the one that tells which call it is */
	complete(0, 0);
	assert_true(place_pulled(&r->place));
	assert_false(place_settle(&r->place)); /* one is still on its way */
	complete(2, 0);
	assert_true(place_settle(&r->place));
	assert_int_equal(nops, 3);
	place_head(&r->place, head, 9);
	assert_memory_equal(head, "ABCDEFGHI", 9);
	move_on(r);
	assert_false(place_run(&r->place));
	(void)complete_all(false);
	assert_true(place_run(&r->place));
	assert_int_equal(r->place.good, TOTAL);
	assert_memory_equal(disk, "ABCDEFGHIJKLMNOPQRSTUVWXYZ", TOTAL);
	place_fini(&r->place);

	/* or never may: the buffers go with the request */
	nops = 0;
	memset(disk, '.', TOTAL);
	start_at(r, PLACE_WRITE, 0, TOTAL);
	(void)place_run(&r->place);
	(void)complete_all(false);
	assert_true(place_pulled(&r->place));
	assert_int_equal(bufs_out, 1);
	place_fini(&r->place);
	assert_int_equal(bufs_out, 0);
	assert_int_equal(disk[0], '.');

	/* no bytes are pulled at once */
	start_at(r, PLACE_WRITE, 0, 0);
	assert_true(place_run(&r->place));
	assert_true(place_pulled(&r->place));
}

/* what is lost on its way ends it; the pieces that did come are held no longer */
static void pull_fails(void **state)
{
	struct rig *r = *state;

	r->args.length = TOTAL;
	how.grain = 9;
	start_at(r, PLACE_WRITE, 0, TOTAL);
	(void)place_run(&r->place);
	complete(0, 0);
	complete(1, -EIO);
	assert_true(place_pulled(&r->place)); /* whatever else comes */
	assert_false(place_settle(&r->place));
	complete(2, 0);
	assert_true(place_settle(&r->place));
	assert_true(r->place.lost);
	assert_int_equal(r->place.err, -EIO);
	assert_int_equal(nops, 3);
}

static void pulled_in_order(void **state)
{
	struct rig *r = *state;
	uint32_t at = 0;

	/* over a stream they can come in no other */
	r->args.length = TOTAL;
	begin(r, PLACE_WRITE, 4);
	(void)complete_all(true);
	for (unsigned i = 0; i < nops; i++) {
		if (ops[i].kind != OP_PULL)
			continue;
		assert_int_equal(ops[i].off, at);
		at += ops[i].len;
	}
	assert_int_equal(at, TOTAL);
}

static void data_that_came(void **state)
{
	struct rig *r = *state;
	struct rpcrdma_payload *data = &r->args;

	data->length = TOTAL;
	data->here = (struct iovec){ .iov_base = (char[]){ "0123456789abcdefghijklmnop" },
				     .iov_len = TOTAL };
	data->iov = &data->here;
	data->iovcnt = 1;
	begin(r, PLACE_WRITE, TOTAL);
	assert_int_equal(bufs_out, 0);
	assert_int_equal(ops[0].kind, OP_DISK);
	(void)complete_all(false);
	assert_memory_equal(disk, "0123456789abcdefghijklmnop", TOTAL);

	place_fini(&r->place);
	r->args.length = 5;
	r->args.here = (struct iovec){ .iov_base = (char[]){ "where" }, .iov_len = 5 };
	start_at(r, PLACE_PULL, 0, 5);
	assert_true(place_run(&r->place));
	assert_memory_equal(place_data(&r->place), "where", 5);
}

/* where the caller is trusted, and his memory can be had */
static void straight_from_the_caller(void **state)
{
	struct rig *r = *state;
	char head[4];

	how.overlap = DATA_OVERLAP_OFF;
	memcpy(direct_mem, "ABCDEFGHIJKLMNOPQRSTUVWXYZ", TOTAL);
	r->args.length = TOTAL;
	for (unsigned trusted = 0; trusted < 2; trusted++) {
		nops = 0;
		direct = true;
		how.trust_clients = trusted;
		start_at(r, PLACE_WRITE, 0, TOTAL);
		assert_int_equal(place_run(&r->place), false);
		assert_int_equal(nops, trusted ? 0 : 1);
		assert_int_equal(bufs_out, trusted ? 0 : 1);
		if (!trusted)
			complete(0, 0);
		assert_true(place_pulled(&r->place));
		place_head(&r->place, head, sizeof(head));
		assert_memory_equal(head, trusted ? "ABCD" : "....", 4);
		move_on(r);
		(void)place_run(&r->place);
		(void)complete_all(false);
		assert_true(place_run(&r->place));
		place_fini(&r->place);
	}
	assert_memory_equal(disk, "ABCDEFGHIJKLMNOPQRSTUVWXYZ", TOTAL);
	how.trust_clients = 0;
}

static void straight_to_the_caller(void **state)
{
	struct rig *r = *state;

	how.overlap = DATA_OVERLAP_OFF;
	direct = inline_disk = true;
	begin(r, PLACE_READ, TOTAL);
	assert_true(place_run(&r->place));
	assert_int_equal(nops, 0);
	assert_int_equal(bufs_out, 0);
	assert_memory_equal(direct_mem, "abcdefghijklmnopqrstuvwxyz", TOTAL);
	assert_int_equal(resumed, 0); /* all on the spot */
}

/* The transport told at delivery that it never maps: it is not asked for each piece. */
static void memory_that_cannot_be_mapped(void **state)
{
	struct rig *r = *state;

	how.overlap = DATA_OVERLAP_OFF;
	how.trust_clients = true;
	rpc.can_map = false;
	direct = true;
	begin(r, PLACE_READ, TOTAL);
	assert_int_equal(bufs_out, 1);
	(void)complete_all(false);
	assert_true(place_run(&r->place));
	place_fini(&r->place);
	r->args.length = TOTAL;
	begin(r, PLACE_WRITE, TOTAL);
	assert_int_equal(bufs_out, 1);
	(void)complete_all(false);
	assert_true(place_run(&r->place));
	how.trust_clients = false;
}

static void shortage(void **state)
{
	struct rig *r = *state;

	bufs_left = 0;
	begin(r, PLACE_READ, TOTAL);
	assert_int_equal(ops[0].kind, OP_BUF);
	complete(0, 0); /* told too early: waits again */
	assert_false(place_run(&r->place));
	bufs_left = 100;
	(void)complete_all(false);
	assert_true(place_run(&r->place));
	assert_int_equal(r->place.good, TOTAL);
	assert_memory_equal(caller, "abcdefghijklmnopqrstuvwxyz", TOTAL);
}

static void error_in_the_middle(void **state)
{
	struct rig *r = *state;

	/* pieces at 0, 8, 16, 24: the third fails, the second is short, then the other way round */
	begin(r, PLACE_READ, 8);
	complete(2, -EIO);
	assert_false(place_run(&r->place)); /* others are under way: no answer yet */
	complete(3, 0);
	complete(1, 5);
	complete(0, 0);
	(void)complete_all(false);
	assert_true(place_run(&r->place));
	assert_int_equal(r->place.good, 13);
	assert_int_equal(r->place.err, 0);
	assert_true(r->place.short_read);
	place_fini(&r->place);

	nops = 0;
	begin(r, PLACE_READ, 8);
	complete(2, 5);
	complete(1, -EIO);
	(void)complete_all(false);
	assert_true(place_run(&r->place));
	assert_int_equal(r->place.good, 8);
	assert_int_equal(r->place.err, -EIO);
	place_fini(&r->place);

	/* the first: nothing is good */
	nops = 0;
	buf_max = 4;
	bufs_left = 2;
	begin(r, PLACE_READ, 4);
	complete(0, -EIO);
	assert_int_equal(r->place.cut.left, 0); /* and nothing more is begun */
	(void)complete_all(false);
	assert_true(place_run(&r->place));
	assert_int_equal(r->place.good, 0);
	assert_int_equal(r->place.err, -EIO);
}

static void broken_connection(void **state)
{
	struct rig *r = *state;

	memset(disk, '.', TOTAL);
	r->args.length = TOTAL;
	begin(r, PLACE_WRITE, 8);
	complete(1, -EIO);
	(void)complete_all(false);
	assert_true(place_run(&r->place));
	assert_true(r->place.lost); /* not to be answered */
	assert_int_equal(r->place.good, 8);
	assert_memory_equal(disk + 8, "........", 8); /* what never came is not written */
}

static void no_room(void **state)
{
	struct rig *r = *state;

	rpc.room = TOTAL - 1;
	begin(r, PLACE_READ, TOTAL);
	assert_true(place_run(&r->place));
	assert_true(place_rejected(&r->place));
	assert_int_equal(nops, 0); /* nothing was read, nothing placed */
	assert_int_equal(bufs_out, 0);
}

static void nothing_to_move(void **state)
{
	struct rig *r = *state;

	start_at(r, PLACE_READ, 0, 0);
	assert_true(place_run(&r->place));
	assert_int_equal(r->place.good, 0);
	assert_int_equal(r->place.err, 0);
	place_fini(&r->place);
	start_at(r, PLACE_SYNC, 0, 0);
	assert_true(place_run(&r->place));
	assert_int_equal(r->place.err, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(read_pieces, setup, teardown),
		cmocka_unit_test_setup_teardown(side_by_side, setup, teardown),
		cmocka_unit_test_setup_teardown(in_order, setup, teardown),
		cmocka_unit_test_setup_teardown(piecewise, setup, teardown),
		cmocka_unit_test_setup_teardown(cut_by_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(in_order_with_little_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(stream_with_little_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(twin_lets_go, setup, teardown),
		cmocka_unit_test_setup_teardown(window, setup, teardown),
		cmocka_unit_test_setup_teardown(trace, setup, teardown),
		cmocka_unit_test_setup_teardown(trace_of_a_client, setup, teardown),
		cmocka_unit_test_setup_teardown(trace_of_a_second_cut, setup, teardown),
		cmocka_unit_test_setup_teardown(where_turns_are_waited_for, setup, teardown),
		cmocka_unit_test_setup_teardown(no_chunk, setup, teardown),
		cmocka_unit_test_setup_teardown(pads, setup, teardown),
		cmocka_unit_test_setup_teardown(write_pieces, setup, teardown),
		cmocka_unit_test_setup_teardown(pulled_and_held, setup, teardown),
		cmocka_unit_test_setup_teardown(pull_fails, setup, teardown),
		cmocka_unit_test_setup_teardown(pulled_in_order, setup, teardown),
		cmocka_unit_test_setup_teardown(data_that_came, setup, teardown),
		cmocka_unit_test_setup_teardown(straight_to_the_caller, setup, teardown),
		cmocka_unit_test_setup_teardown(straight_from_the_caller, setup, teardown),
		cmocka_unit_test_setup_teardown(memory_that_cannot_be_mapped, setup, teardown),
		cmocka_unit_test_setup_teardown(shortage, setup, teardown),
		cmocka_unit_test_setup_teardown(error_in_the_middle, setup, teardown),
		cmocka_unit_test_setup_teardown(broken_connection, setup, teardown),
		cmocka_unit_test_setup_teardown(no_room, setup, teardown),
		cmocka_unit_test_setup_teardown(nothing_to_move, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
