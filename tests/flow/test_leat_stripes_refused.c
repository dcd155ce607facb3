/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_leat_stripes_refused.c - stripe servers that refuse handles: of older epochs, or expired
 */
#include <errno.h>
#include <time.h>

#include "rpcrdma.h"
#include "test_leat_stripes_lost.h"

static const struct stripe_keys keys = { .v = { { UINT64_C(0x0011223344556677), UINT64_C(0x8899aabbccddeeff) } }, .n = 1 };

/* Raises the epoch of one stripe, as a manager does. */
static void fence(unsigned stripe, uint64_t epoch)
{
	struct rpcrdma_clnt_attr attr = { .cred.machine = "manager" };
	struct stripe_command c = { .volume = made.volume, .server = made.servers[stripe], .term = 1,
				    .expiry = (uint64_t)time(NULL) + 60, .number = epoch };
	STRIPEFENCEargs args = { .name.stripe = stripe, .epoch = epoch };
	STRIPESTATres res = { 0 };
	struct rpcrdma_call call = { .prog = LEAT_STRIPES, .vers = LEAT_STRIPES_V1, .proc = STRIPEPROC_FENCE,
				     .encode = (xdrproc_t)xdr_STRIPEFENCEargs, .args = &args,
				     .decode = (xdrproc_t)xdr_STRIPESTATres, .res = &res, .reply_max = 128 };
	struct stripe_order order = { .proc = STRIPEPROC_FENCE, .name.stripe = stripe, .value = epoch };
	struct rpcrdma_domain *domain;
	struct rpcrdma_engine *engine;
	struct rpcrdma_clnt *clnt;

	memcpy(args.name.object, made.object, sizeof(made.object));
	memcpy(order.name.object, made.object, sizeof(made.object));
	stripe_command_make(&keys, &c, &order, args.command);
	assert_int_equal(rpcrdma_addr_parse(volume_rig.server_url[c.server - 1], &attr.addr), 0);
	assert_int_equal(rpcrdma_domain_create(NULL, &domain), 0);
	assert_int_equal(rpcrdma_engine_create(domain, NULL, &engine), 0);
	assert_int_equal(rpcrdma_clnt_open(engine, &attr, &clnt), 0);
	assert_int_equal(rpcrdma_clnt_call_wait(clnt, &call), 0);
	assert_int_equal(res.status, STRIPE_OK);
	rpcrdma_clnt_destroy(clnt);
	rpcrdma_engine_destroy(engine);
	rpcrdma_domain_destroy(domain);
}

static void expired(void **state)
{
	struct leat_file *f = make_file("expired");
	unsigned before;

	(void)state;
	assert_int_equal(read_unit(f, 1), UNIT);
	before = atomic_load(&layouts);
	atomic_store(&ahead, 1);
	assert_int_equal(read_unit(f, 1), UNIT);
	assert_int_equal(atomic_load(&layouts), before + 1);
	atomic_store(&ahead, 1);
	assert_int_equal(write_unit(f, 1), UNIT);
	assert_int_equal(atomic_load(&layouts), before + 2);
	atomic_store(&ahead, 1);
	assert_int_equal(leat_fsync(f), 0);
	assert_int_equal(atomic_load(&layouts), before + 4); /* and for the report */
	atomic_store(&ahead, 2); /* once more is no help */
	assert_int_equal(read_unit(f, 1), -ESTALE);
	expect_error(m, "STRIPE_ERR_EXPIRED");
	atomic_store(&ahead, 0);
	assert_int_equal(leat_close(f), 0);
}

static void fenced(void **state)
{
	struct leat_file *f = make_file("fenced"), *h = open_file(hasty, "fenced", O_RDONLY);
	int64_t result = INT64_MIN;
	uint64_t before;

	(void)state;
	assert_int_equal(read_unit(f, 0), UNIT);
	fence(0, 2);
	assert_int_equal(read_unit(f, 0), -ESTALE); /* the layout is still the old one */
	expect_error(m, "STRIPE_ERR_FENCED");
	assert_int_equal(write_unit(f, 0), -ESTALE);
	assert_int_equal(read_unit(f, 1), UNIT);
	atomic_store(&raised, 1);
	assert_int_equal(read_unit(f, 0), UNIT);
	assert_int_equal(write_unit(f, 0), UNIT);
	/* stripe 1 is not ready for the new epoch: its calls wait for the manager */
	do /* on a slow machine there is no reply at all in so short a time */
		assert_int_equal(read_unit(h, 1), -EIO);
	while (strstr(leat_error(hasty), "no reply in time"));
	expect_error(hasty, "STRIPE_ERR_NOTREADY");
	before = leat_flow_stat(m, "jukebox_retries");
	assert_int_equal(leat_aio_pread(f, to, UNIT, UNIT, (struct leat_cb){ .fn = note_result, .user_data = &result }), 0);
	while (leat_flow_stat(m, "jukebox_retries") == before && result == INT64_MIN)
		(void)leat_poll(leat_session(m), 10);
	assert_int_equal(result, INT64_MIN);
	for (unsigned i = 1; i < VOLUME_RIG_SERVERS; i++)
		fence(i, 2);
	wait_result(m, &result);
	assert_int_equal(result, UNIT);
	assert_int_equal(leat_pread(f, to, BYTES, 0), BYTES);
	assert_memory_equal(to, data, BYTES);
	assert_int_equal(leat_close(h), 0);
	assert_int_equal(leat_close(f), 0);
	atomic_store(&raised, 0);
}

/* Other clients cut the file again and again: each new layout is old already when it is used. */
static void fenced_again(void **state)
{
	struct leat_file *f = make_file("again"), *sync;

	(void)state;
	assert_int_equal(write_unit(f, 0), UNIT);
	for (unsigned i = 0; i < VOLUME_RIG_SERVERS; i++)
		fence(i, 3);
	atomic_store(&climbs, true);
	assert_int_equal(leat_fsync(f), 0);
	assert_int_equal(atomic_load(&raised), 2);
	assert_int_equal(leat_close(f), 0);

	atomic_store(&raised, 0);
	f = open_file(m, "again", O_RDWR); /* begins with an old layout again */
	assert_int_equal(read_unit(f, 0), UNIT);
	assert_int_equal(write_unit(f, 0), UNIT);
	assert_int_equal(leat_close(f), 0);

	atomic_store(&climbs, false);
	atomic_store(&raised, 0);
	sync = open_file(m, "again-sync", O_RDWR | O_CREAT | O_DSYNC);
	assert_int_equal(write_unit(sync, 0), UNIT);
	atomic_store(&climbs, true);
	assert_int_equal(write_unit(sync, 0), UNIT); /* the file was cut before the report */
	assert_int_equal(atomic_load(&raised), 2);
	assert_int_equal(leat_close(sync), 0);
	atomic_store(&climbs, false);
	atomic_store(&raised, 0);
}

/* A reader has learnt of a cut while a writer still has older handles: its report is refused, and then that of the next epoch. */
static void report_of_older_handles(void **state)
{
	struct leat_file *f = make_file("older"), *sync = open_file(m, "older", O_RDWR | O_DSYNC);
	int64_t result = INT64_MIN;

	(void)state;
	assert_int_equal(write_unit(f, 2), UNIT); /* to report */
	atomic_store(&hold, true);
	assert_int_equal(leat_aio_pwrite(sync, data, UNIT, 0, (struct leat_cb){ .fn = note_result, .user_data = &result }), 0);
	while (sem_trywait(&held))
		(void)leat_poll(leat_session(m), 1);
	atomic_store(&raised, 1);
	fence(1, 2);
	assert_int_equal(read_unit(f, 1), UNIT);
	atomic_store(&rises, 3); /* report, layout, report */
	(void)sem_post(&let_go);
	wait_result(m, &result);
	assert_int_equal(result, UNIT);
	atomic_store(&rises, 0);
	for (unsigned i = 0; i < VOLUME_RIG_SERVERS; i++) /* close waits for servers that are not at its epoch */
		fence(i, 1 + atomic_load(&raised));
	(void)leat_close(sync);
	(void)leat_close(f);
	atomic_store(&raised, 0);
}

/* A reader learns of a cut, so the handles to write are not good any more. Then a server gets another address: fsync asks
 * for a layout, which names the newer map, and sends the COMMIT to that address. */
static void moves_before_fsync(void **state)
{
	struct leat_file *f = make_file("moves");
	unsigned moved = server_of(1);

	(void)state;
	assert_int_equal(write_unit(f, 1), UNIT);
	atomic_store(&raised, 1);
	for (unsigned i = 0; i < VOLUME_RIG_SERVERS; i++)
		fence(i, 2);
	assert_int_equal(read_unit(f, 0), UNIT);
	volume_rig_end_server(moved);
	volume_rig.server_url[moved][0] = '\0';
	volume_rig_start_server(moved);
	volume_rig_new_map();
	assert_int_equal(leat_fsync(f), -EIO);
	expect_error(m, "lost data"); /* it has restarted */
	assert_int_equal(leat_close(f), -EIO);
	atomic_store(&raised, 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(expired),
		cmocka_unit_test(fenced),
		cmocka_unit_test(fenced_again),
		cmocka_unit_test(report_of_older_handles),
		cmocka_unit_test(moves_before_fsync),
	};
	static const struct CMUnitTest tcp_tests[] = {
		cmocka_unit_test(fenced),
	};
	int failed = cmocka_run_group_tests_name("local", tests, setup_local, teardown);

	if (getenv("LEAT_TEST_VARIANT")) /* of nothing that TCP has */
		return failed;
	return failed + cmocka_run_group_tests_name("tcp", tcp_tests, setup_tcp, teardown);
}
