/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_place_memory.c - units of a payload: too little memory, memory of the caller, traces
 */
#include "test_place.h"

/* As complete_all(), but a waiter for memory is resumed only if there is some, which may never be enough. */
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

static unsigned waiting_for_bufs(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < nops; i++)
		n += ops[i].kind == OP_BUF && !ops[i].done;
	return n;
}

/* The pool has no buffer as large as requested: one smaller buffer is enough, with overlap or without. */
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
		begin(r, PLACE_READ, 13); /* more than the largest buffer */
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

	/* a path must be contiguous */
	start_at(r, PLACE_PULL, 0, 5);
	assert_true(place_run(&r->place));
	assert_int_equal(r->place.err, -EMSGSIZE);
}

/* Units that wait for their turn must not hold the memory that the unit in turn waits for. With several members units
 * start in another order than that of the file, unless memory is short. */
static void in_order_with_little_memory(void **state)
{
	struct rig *r = *state;

	how = (struct data_conf){ .overlap = DATA_OVERLAP_ORDERED, .streams = 3,
					       .chunk = 6 };
	buf_max = 2;
	bufs_left = 2; /* less than there are members */
	begin(r, PLACE_READ, 2);
	complete_what_can();
	assert_int_equal(waiting_for_bufs(), 0);
	assert_true(place_run(&r->place));
	assert_memory_equal(caller, "abcdefghijklmnopqrstuvwxyz", TOTAL);
}

/* Units are pulled from a stream in order, also if some wait for memory. */
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

/* Begins a WRITE of which one unit has arrived, one is in transfer, and a third one waits for memory. */
static void start_short_of_memory(struct rig *r)
{
	rpc.buf_max = 4;
	bufs_left = 2;
	r->args.length = TOTAL;
	how.grain = 4;
	start_at(r, PLACE_WRITE, 0, TOTAL);
	assert_false(place_run(&r->place));
	complete(0, 0);
	assert_true(place_pulled(&r->place));
	assert_int_equal(bufs_out, 2);
	assert_int_equal(waiting_for_bufs(), 1);
}

/* A call that waits for its duplicate, which waits for memory, frees its own memory. */
static void twin_lets_go(void **state)
{
	struct rig *r = *state;

	start_short_of_memory(r);
	assert_true(place_discard(&r->place));
	assert_int_equal(bufs_out, 1);
	(void)complete_all(false);
	assert_true(place_discard(&r->place)); /* as after each completion */
	assert_int_equal(bufs_out, 0);
	assert_true(place_settle(&r->place));
	place_fini(&r->place);

	rpc.buf_max = SIZE_MAX; /* a call that holds all the memory that it needs keeps it */
	nops = 0;
	start_at(r, PLACE_WRITE, 0, TOTAL);
	(void)place_run(&r->place);
	(void)complete_all(false);
	assert_false(place_discard(&r->place));
	assert_int_equal(bufs_out, 1);
}

/* The same for a call that is refused: its reply waits for a unit that waits for the memory of the others. */
static void refused_lets_go(void **state)
{
	struct rig *r = *state;

	start_short_of_memory(r);
	assert_false(place_settle(&r->place));
	assert_int_equal(bufs_out, 1);
	complete_what_can();
	assert_int_equal(waiting_for_bufs(), 0);
	assert_true(place_settle(&r->place));
	place_fini(&r->place);
	assert_int_equal(bufs_out, 0);
}

/* A trace contains all units of the next request that is split, with their times of disk and network. */
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
		const struct latency_unit *p = &t->units[i];

		assert_int_equal(p->off, 9 * i);
		assert_true(p->disk_begin <= p->disk_end && p->disk_end <= p->net_begin);
		assert_true(p->net_begin <= p->net_end && p->net_end <= t->total_ns);
	}
	free(t);
	assert_null(latency_tracer_take(&tracer, NULL)); /* returned once */
}

/* one request of the user @uid in units, from beginning to end */
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

/* A client sees its own requests only, and does not consume the trace of an administrator. */
static void trace_of_a_client(void **state)
{
	struct rpcrdma_client_id one = { .kind = RPCRDMA_CLIENT_USER, .key = 1000 };
	struct rpcrdma_client_id two = { .kind = RPCRDMA_CLIENT_USER, .key = 1001 };
	struct rig *r = *state;

	assert_false(gets_trace(&one));
	one_request_of(r, 1001); /* another client: not traced, and the tracer still waits */
	one_request_of(r, 1000);
	assert_false(gets_trace(&two)); /* not returned to another client */
	assert_true(gets_trace(&one));

	assert_false(gets_trace(NULL));
	one_request_of(r, 1000);
	assert_false(gets_trace(&two));
	assert_true(gets_trace(NULL));
}

/* If units are split again because there is no memory for the whole, the trace shows the final units. */
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
		assert_int_equal(t->units[i].off, 9 * i);
		assert_int_equal(t->units[i].len, i < 2 ? 9 : 8);
	}
	free(t);
}

/* The time in the queue of the scheduler is not counted as disk time. */
static void where_turns_are_waited_for(void **state)
{
	struct rig *r = *state;

	store.queue = (struct store_queue *)&store; /* not NULL; the fake does not use it */
	begin(r, PLACE_READ, 13);
	assert_int_equal(nops, 2);
	assert_int_equal(r->latency.disk, 0);
	for (unsigned i = 0; i < 2; i++) {
		struct store_io *io = ops[i].what;

		store_turn(io);
		assert_int_equal(r->latency.disk, i + 1);
	}
	(void)complete_all(false);
	assert_int_equal(r->latency.disk, 0);
	assert_int_equal(atomic_load(&counters.submit_blocked), 0);
	assert_true(place_run(&r->place));
	assert_memory_equal(caller, "abcdefghijklmnopqrstuvwxyz", TOTAL);
}

/* The store reads into the memory of a trusted client if that can be mapped. */
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
	assert_int_equal(resumed, 0); /* all was done synchronously */
}

/* The request was delivered with can_map false: the transport is not asked for each unit. */
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
	complete(0, 0); /* resumed too early: waits again */
	assert_false(place_run(&r->place));
	bufs_left = 100;
	(void)complete_all(false);
	assert_true(place_run(&r->place));
	assert_int_equal(r->place.good, TOTAL);
	assert_memory_equal(caller, "abcdefghijklmnopqrstuvwxyz", TOTAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(cut_by_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(in_order_with_little_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(stream_with_little_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(twin_lets_go, setup, teardown),
		cmocka_unit_test_setup_teardown(refused_lets_go, setup, teardown),
		cmocka_unit_test_setup_teardown(trace, setup, teardown),
		cmocka_unit_test_setup_teardown(trace_of_a_client, setup, teardown),
		cmocka_unit_test_setup_teardown(trace_of_a_second_cut, setup, teardown),
		cmocka_unit_test_setup_teardown(where_turns_are_waited_for, setup, teardown),
		cmocka_unit_test_setup_teardown(straight_to_the_caller, setup, teardown),
		cmocka_unit_test_setup_teardown(straight_from_the_caller, setup, teardown),
		cmocka_unit_test_setup_teardown(memory_that_cannot_be_mapped, setup, teardown),
		cmocka_unit_test_setup_teardown(shortage, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
