/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_place.c - the units of a payload: every order of completions, shortage, errors in the middle
 *
 * Includes the file it tests. Transport, pool and store are fakes: the test completes operations in any order. The
 * payload has 26 bytes; the test sets the length of a unit.
 */
#include "test_place.h"

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

/* Disk and network operations of each unit complete independently, in any order. */
static void side_by_side(void **state)
{
	struct rig *r = *state;

	begin(r, PLACE_READ, 9);
	assert_int_equal(nops, 3);
	assert_int_equal(bufs_out, 1); /* one buffer for the whole payload */
	complete(1, 0);
	assert_int_equal(nops, 4);
	assert_int_equal(ops[3].kind, OP_PUT); /* while the others are being read */
	assert_int_equal(ops[3].off, 9);
	complete(0, 0);
	assert_int_equal(ops[4].off, 0);
	assert_false(place_run(&r->place));
	complete(2, 0);
	assert_int_equal(nops, 6);
	assert_true(place_run(&r->place)); /* the reply need not wait for them */
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

	/* units that wait for their turn are released after an error before them */
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

/* No memory for the whole payload: there are as many units as buffers, and a buffer is reused after the transport has
 * completed with it. */
static void by_unit(void **state)
{
	struct rig *r = *state;

	buf_max = 3;
	bufs_left = 4;
	begin(r, PLACE_READ, 3);
	assert_int_equal(bufs_out, 4);
	assert_int_equal(ops[4].kind, OP_BUF);
	complete(2, 0); /* read from disk; the transfer still uses the buffer */
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

/* The number of units in progress is limited: the next one starts when the transport completes one. */
static void window(void **state)
{
	struct rig *r = *state;
	unsigned n;

	inline_disk = true;
	stretch = 8;
	how.grain = stretch;
	start_at(r, PLACE_READ, 0, stretch * (PLACE_DEPTH + 3));
	assert_false(place_run(&r->place));
	assert_int_equal(nops, PLACE_DEPTH);
	complete(1, 0);
	complete(0, 0);
	assert_false(place_run(&r->place));
	assert_int_equal(nops, PLACE_DEPTH + 2);
	complete(2, 0);
	assert_true(place_run(&r->place));
	assert_int_equal(nops, PLACE_DEPTH + 3);
	n = complete_all(true);
	assert_int_equal(n, PLACE_DEPTH);
}

/* Payload inside a message or on a stream is not split. */
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

/* The memory has the alignment of the file if the store wants that, and the store gets the length of the padding. */
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
	assert_int_equal(io->pad_tail, 0); /* buffers of this pool have no bytes behind the requested ones */
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
		assert_int_equal(bufs_out, 0); /* a WRITE needs no buffer after the disk */
		place_fini(&r->place);
	}
}

/* Pulled payload is held: the store gets it when the call is executed. */
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
	assert_false(place_pulled(&r->place)); /* the first unit, which identifies the call, is missing */
	complete(0, 0);
	assert_true(place_pulled(&r->place));
	assert_false(place_settle(&r->place)); /* one unit is still in transfer */
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

	/* a request that is not executed frees its buffers */
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

	/* an empty payload is complete at once */
	start_at(r, PLACE_WRITE, 0, 0);
	assert_true(place_run(&r->place));
	assert_true(place_pulled(&r->place));
}

/* A failed transfer ends the request, which frees the units that have arrived. */
static void pull_fails(void **state)
{
	struct rig *r = *state;

	r->args.length = TOTAL;
	how.grain = 9;
	start_at(r, PLACE_WRITE, 0, TOTAL);
	(void)place_run(&r->place);
	complete(0, 0);
	complete(1, -EIO);
	assert_true(place_pulled(&r->place)); /* the other units do not matter */
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

	/* over a stream this is the only order */
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

static void error_in_the_middle(void **state)
{
	struct rig *r = *state;

	/* units at 0, 8, 16, 24: the third fails, the second is short, then the other way round */
	begin(r, PLACE_READ, 8);
	complete(2, -EIO);
	assert_false(place_run(&r->place)); /* other units are in progress: no reply yet */
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

	/* the first unit fails: no byte is good */
	nops = 0;
	buf_max = 4;
	bufs_left = 2;
	begin(r, PLACE_READ, 4);
	complete(0, -EIO);
	assert_int_equal(r->place.split.left, 0); /* no unit starts after that */
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
	assert_true(r->place.lost); /* the call gets no reply */
	assert_int_equal(r->place.good, 8);
	assert_memory_equal(disk + 8, "........", 8); /* bytes that did not arrive are not written */
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
	start_at(r, PLACE_STORE, 0, 0);
	assert_true(place_run(&r->place));
	assert_int_equal(r->place.err, 0);
}

/* One operation of the store, with all that belongs to it; its result is place.good. */
static void store_operations(void **state)
{
	static const enum store_op all[] = { STORE_ZERO, STORE_DISCARD, STORE_EXTENTS };
	static const int results[] = { -EIO, 0, 1, 1 << 30 };
	struct rig *r = *state;
	struct store_io *io = &r->place.first.io;
	struct store_extents x;

	for (unsigned i = 0; i < ARRAY_SIZE(all) * ARRAY_SIZE(results); i++) {
		int res = results[i % ARRAY_SIZE(results)];

		nops = 0;
		operation = all[i / ARRAY_SIZE(results)];
		start_at(r, PLACE_STORE, 7, 1u << 30);
		r->plan.stable = STORE_DATA_SYNC;
		r->plan.keep = true;
		r->plan.extents = &x;
		assert_false(place_run(&r->place));
		assert_int_equal(nops, 1);
		assert_ptr_equal(ops[0].what, io);
		assert_int_equal(io->op, operation);
		assert_int_equal(io->off, 7);
		assert_int_equal(io->bytes, 1u << 30);
		assert_int_equal(io->stable, STORE_DATA_SYNC);
		assert_true(io->keep);
		assert_ptr_equal(io->extents, &x);
		assert_int_equal(io->iovcnt, 0);
		io->res = res;
		io->done(io);
		assert_int_equal(resumed, i + 1);
		assert_true(place_run(&r->place));
		assert_int_equal(r->place.err, MIN(res, 0));
		assert_int_equal(r->place.good, MAX(res, 0));
		assert_int_equal(bufs_out, 0);
		place_fini(&r->place);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(read_pieces, setup, teardown),
		cmocka_unit_test_setup_teardown(side_by_side, setup, teardown),
		cmocka_unit_test_setup_teardown(in_order, setup, teardown),
		cmocka_unit_test_setup_teardown(by_unit, setup, teardown),
		cmocka_unit_test_setup_teardown(window, setup, teardown),
		cmocka_unit_test_setup_teardown(no_chunk, setup, teardown),
		cmocka_unit_test_setup_teardown(pads, setup, teardown),
		cmocka_unit_test_setup_teardown(write_pieces, setup, teardown),
		cmocka_unit_test_setup_teardown(pulled_and_held, setup, teardown),
		cmocka_unit_test_setup_teardown(pull_fails, setup, teardown),
		cmocka_unit_test_setup_teardown(pulled_in_order, setup, teardown),
		cmocka_unit_test_setup_teardown(data_that_came, setup, teardown),
		cmocka_unit_test_setup_teardown(error_in_the_middle, setup, teardown),
		cmocka_unit_test_setup_teardown(broken_connection, setup, teardown),
		cmocka_unit_test_setup_teardown(no_room, setup, teardown),
		cmocka_unit_test_setup_teardown(nothing_to_move, setup, teardown),
		cmocka_unit_test_setup_teardown(store_operations, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
