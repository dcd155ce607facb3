/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_block_call.c - the lanes of calls on volumes, and what happens to calls that the server finds on an old one
 */
#include "block_status.h"
#include "fake_rpc.h"
#include "lt_block.h"
#include "leat_count.h"

static struct leat *m;
static struct leat_block *b;
static block_lane lanes[8];
static unsigned nlanes;
static unsigned refused;  /* calls that are refused with BLOCK_ERR_OLD_LANE */
static bool reconnects;   /* ... because their connection has been replaced */
static unsigned fenced, infos; /* calls whose attachment has ended; INFOs */
static int info_err;
static unsigned later;    /* calls that are answered with BLOCK_ERR_LATER */
static uint64_t verf;

/* Sends the call: encodes its arguments, as the transport does. Returns their lane, which begins behind the handle. */
static block_lane encode(struct rpcrdma_call *call)
{
	static uint8_t bytes[8192];
	BLOCKATargs at;
	XDR x;

	xdrmem_create(&x, (char *)bytes, sizeof(bytes), XDR_ENCODE);
	assert_true(call->encode(&x, (void *)(uintptr_t)call->args));
	xdr_destroy(&x);
	memset(&at, 0, sizeof(at));
	xdrmem_create(&x, (char *)bytes, sizeof(bytes), XDR_DECODE);
	assert_true(xdr_BLOCKATargs(&x, &at));
	xdr_destroy(&x);
	return at.at.lane;
}

/* The codec allocates results: xdr_free() follows. */
static int answer_info(struct rpcrdma_call *call)
{
	const BLOCKINFOargs *args = ((const struct lt_call *)call->args)->laned.args;
	BLOCKINFOres *res = call->res;
	BLOCKINFOresok *ok = &res->BLOCKINFOres_u.resok;

	assert_string_equal(args->volume, "vol");
	ok->info.name = strdup("vol");
	ok->holders.holders_val = calloc(1, sizeof(block_holder));
	ok->holders.holders_len = 1;
	ok->holders.holders_val[0] = (block_holder){ .name = strdup("thief"), .app = strdup("qemu\n"), .peer = strdup("host7") };
	return info_err;
}

static int answer(struct rpcrdma_call *call)
{
	BLOCKCHANGEres *res = call->res;
	block_lane lane = encode(call);

	assert_int_equal(call->prog, LEAT_BLOCK);
	assert_true(nlanes < 8);
	lanes[nlanes++] = lane;
	if (call->proc == BLOCKPROC_INFO) {
		infos++;
		return answer_info(call);
	}
	if (fenced) {
		fenced--;
		res->status = BLOCK_ERR_FENCED;
	} else if (later) {
		later--;
		res->status = BLOCK_ERR_LATER;
	} else if (refused) {
		refused--;
		if (reconnects)
			atomic_fetch_add(&m->server->incarnation[lane.slot], 1);
		res->status = BLOCK_ERR_OLD_LANE;
	} else if (call->proc == BLOCKPROC_READ) {
		((BLOCKREADres *)call->res)->BLOCKREADres_u.data.length = 512;
	} else {
		res->BLOCKCHANGEres_u.verf = verf;
	}
	return 0;
}

static int setup(void **state)
{
	(void)state;
	m = fake_mount(2);
	fake.answer = answer;
	b = calloc(1, sizeof(*b));
	assert_non_null(b);
	b->m = m;
	atomic_init(&b->bytes, 1u << 20);
	atomic_init(&b->block, 512);
	m->server->lane_instance = 77;
	atomic_store(&m->server->incarnation[0], 1);
	atomic_store(&m->server->incarnation[1], 5);
	nlanes = refused = later = fenced = infos = 0;
	info_err = 0;
	strcpy(m->url.path, "/block/vol");
	reconnects = true;
	verf = 1;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	leat_umount(m);
	free(b);
	return 0;
}

static void name_their_connection(void **state)
{
	uint8_t buf[512] = { 0 };

	(void)state;
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(leat_block_pwrite(b, buf, 512, 0, 0), 512);
	assert_int_equal(leat_block_flush(b), 0);
	assert_int_equal(nlanes, 3);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(lanes[i].instance, 77);
		assert_int_equal(lanes[i].slot, i % 2);
		assert_int_equal(lanes[i].incarnation, i % 2 ? 5 : 1);
	}
}

/* A call that came by a connection that has been replaced is sent again, and at the same place: it might overtake an
 * earlier copy of itself at another one. */
static void stay_on_their_lane(void **state)
{
	uint8_t buf[512] = { 0 };

	(void)state;
	refused = 2;
	assert_int_equal(leat_block_pwrite(b, buf, 512, 0, 0), 512);
	assert_int_equal(nlanes, 3);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(lanes[i].slot, 0);
		assert_int_equal(lanes[i].incarnation, i + 1);
	}
	refused = 1;
	assert_int_equal(leat_block_flush(b), 0);
	assert_int_equal(lanes[3].slot, 1);
	assert_int_equal(lanes[4].slot, 1);
	assert_int_equal(lanes[4].incarnation, 6);
	refused = 1;
	assert_int_equal(leat_block_pread(b, buf, 512, 0), 512);
}

/* So does a call that the server was not ready for: it may be the copy of one that is still on its way. */
static void stay_there_later(void **state)
{
	uint8_t buf[512] = { 0 };

	(void)state;
	later = 1;
	assert_int_equal(leat_block_pwrite(b, buf, 512, 0, 0), 512);
	assert_int_equal(nlanes, 2);
	assert_int_equal(lanes[0].slot, lanes[1].slot);
	later = 1;
	assert_int_equal(leat_block_flush(b), 0);
	assert_int_equal(lanes[2].slot, lanes[3].slot);
}

static void do_not_loop(void **state)
{
	uint8_t buf[512] = { 0 };

	(void)state;
	refused = 8;
	reconnects = false;
	assert_int_equal(leat_block_pwrite(b, buf, 512, 0, 0), -ECONNABORTED);
	assert_int_equal(nlanes, 1);
	assert_non_null(strstr(leat_error(m), "BLOCK_ERR_OLD_LANE"));
}

/* The text of the error names the present holder, if the server says so. */
static void name_the_holder(void **state)
{
	uint8_t buf[512] = { 0 };

	(void)state;
	fenced = 1;
	assert_int_equal(leat_block_pwrite(b, buf, 512, 0, 0), -ESTALE);
	assert_int_equal(infos, 1);
	assert_non_null(strstr(leat_error(m), "BLOCK_ERR_FENCED: holder thief has the volume now: qemu? on host7"));
	fenced = 1;
	assert_int_equal(leat_block_flush(b), -ESTALE);
	assert_non_null(strstr(leat_error(m), "FLUSH"));
	assert_non_null(strstr(leat_error(m), "holder thief"));
	fenced = 1;
	info_err = -EIO;
	assert_int_equal(leat_block_flush(b), -ESTALE);
	assert_int_equal(infos, 3);
	assert_non_null(strstr(leat_error(m), "BLOCK_ERR_FENCED: another holder took over"));
	assert_int_equal(leat_block_pwrite(b, buf, 512, 0, 0), 512);
}

/* A cancelled call is not sent again. */
static void end_when_cancelled(void **state)
{
	struct count c = { 0 };
	uint8_t buf[512] = { 0 };

	(void)state;
	refused = 1;
	fake.early = true; /* the reply is there when the operation is cancelled */
	assert_int_equal(leat_aio_block_pwrite(b, buf, 512, 0, 0, (struct leat_cb){ count_fn, &c, count_free }), 0);
	assert_int_equal(leat_cancel(m, &c), 0);
	while (!c.fn)
		assert_int_equal(leat_poll(m->session, 0) >= 0, 1);
	assert_int_equal(nlanes, 1);
	assert_true(c.result < 0);
}

static unsigned pick_second(unsigned count)
{
	return count > 1;
}

static int time_out(struct rpcrdma_call *call)
{
	call->sent = true;
	return -ETIMEDOUT;
}

/* The second of two calls times out; then the operation is cancelled. Return: its result */
static int64_t cancel_rest(bool write)
{
	static uint8_t buf[2u << 20];
	struct count c = { 0 };
	struct leat_cb cb = { count_fn, &c, count_free };

	atomic_store(&b->bytes, sizeof(buf));
	fake.pick = pick_second;
	fake.answer = time_out;
	fake.unsent = true; /* the first call */
	assert_int_equal(write ? leat_aio_block_pwrite(b, buf, sizeof(buf), 0, 0, cb) :
			 leat_aio_block_pread(b, buf, sizeof(buf), 0, cb), 0);
	while (fake.count > 1 || !fake.calls)
		assert_true(leat_poll(m->session, 0) >= 0);
	assert_int_equal(fake.calls, 2);
	assert_int_equal(leat_cancel(m, &c), 0);
	while (!c.fn)
		assert_true(leat_poll(m->session, 0) >= 0);
	return c.result;
}

static void cancelled_read(void **state)
{
	(void)state;
	assert_int_equal(cancel_rest(false), -ECANCELED);
}

/* A part of it may have been written. */
static void cancelled_write(void **state)
{
	(void)state;
	assert_int_equal(cancel_rest(true), -EINPROGRESS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(name_their_connection), TEST(stay_on_their_lane), TEST(stay_there_later), TEST(do_not_loop), TEST(name_the_holder), TEST(end_when_cancelled),
		TEST(cancelled_read), TEST(cancelled_write),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
