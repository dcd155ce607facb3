/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_file_space.c - space and holes on servers that do not know them, or reply nonsense
 */
#include <fcntl.h>
#include <unistd.h>

#include "fake_rpc.h"

static struct leat *m;
static struct leat_file *f;
static int rpc_error;
static uint64_t reply_off;
static struct {
	uint64_t off, len;
} parts[8];           /* ranges of the ALLOCATEs */
static unsigned nparts;
static unsigned part_fails = UINT32_MAX;

static int answer_allocate(const ALLOCATE3args *a, ALLOCATE3res *res)
{
	assert_true(nparts < ARRAY_SIZE(parts));
	if (nparts == part_fails)
		res->status = NFS3ERR_NOSPC;
	parts[nparts].off = a->offset;
	parts[nparts++].len = a->length;
	return rpc_error;
}

static int answer(struct rpcrdma_call *call)
{
	if (call->prog != LEAT_SPACE)
		return 0; /* of the close */
	if (call->proc == SPACEPROC_ALLOCATE)
		return answer_allocate(call->args, call->res);
	if (call->proc == SPACEPROC_SEEK)
		((SEEK3res *)call->res)->SEEK3res_u.resok.offset = reply_off;
	return rpc_error;
}

static int setup(void **state)
{
	(void)state;
	m = fake_mount(1);
	m->server->is_leatd = true;
	fake.answer = answer;
	f = fake_open(m, O_RDWR);
	rpc_error = 0;
	reply_off = nparts = 0;
	part_fails = UINT32_MAX;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	assert_int_equal(leat_close(f), 0);
	leat_umount(m);
	return 0;
}

static void no_leatd(void **state)
{
	(void)state;
	m->server->is_leatd = false;
	assert_int_equal(leat_fallocate(f, 0, 0, 1), -EOPNOTSUPP);
	assert_int_equal(leat_seek_data(f, 0), -EOPNOTSUPP);
	assert_int_equal(leat_seek_hole(f, 0), -EOPNOTSUPP);
	assert_int_equal(leat_lseek(f, 0, SEEK_HOLE), -EOPNOTSUPP);
	assert_int_equal(fake.calls, 0);
}

/* "Program unavailable" */
static void older_leatd(void **state)
{
	(void)state;
	rpc_error = -EPROTONOSUPPORT;
	assert_int_equal(leat_fallocate(f, 0, 0, 1), -EOPNOTSUPP);
	assert_int_equal(leat_seek_data(f, 0), -EOPNOTSUPP);
	assert_int_equal(fake.calls, 2);
	rpc_error = -ETIMEDOUT;
	assert_int_equal(leat_fallocate(f, 0, 0, 1), -ETIMEDOUT);
}

static void nonsense(void **state)
{
	(void)state;
	reply_off = 99;
	assert_int_equal(leat_seek_data(f, 100), -EREMOTEIO);
	assert_non_null(strstr(leat_error(m), "SEEK"));
	reply_off = UINT64_MAX;
	assert_int_equal(leat_seek_hole(f, 100), -EREMOTEIO);
	reply_off = INT64_MAX;
	assert_int_equal(leat_seek_hole(f, 100), INT64_MAX);
	assert_int_equal(leat_lseek(f, 100, SEEK_HOLE), INT64_MAX);
	assert_int_equal(leat_lseek(f, 1, SEEK_CUR), -EOVERFLOW);
}

#define GIB (1ull << 30)

static void check_part(unsigned i, uint64_t off, uint64_t len)
{
	assert_true(i < nparts);
	assert_int_equal(parts[i].off, off);
	assert_int_equal(parts[i].len, len);
}

static void in_parts(void **state)
{
	(void)state;
	assert_int_equal(leat_fallocate(f, 0, 5, GIB), 0);
	assert_int_equal(nparts, 1);
	check_part(0, 5, GIB);
	nparts = 0;
	assert_int_equal(leat_fallocate(f, FALLOC_FL_ZERO_RANGE, 5, 2 * GIB + 1), 0);
	assert_int_equal(nparts, 3);
	check_part(0, 5, GIB);
	check_part(1, GIB + 5, GIB);
	check_part(2, 2 * GIB + 5, 1);
	nparts = 0;
	part_fails = 1;
	assert_int_equal(leat_fallocate(f, FALLOC_FL_KEEP_SIZE, 0, 3 * GIB), -ENOSPC);
	assert_int_equal(nparts, 2);
	/* everything from an offset on, in one call */
	nparts = 0;
	assert_int_equal(leat_fallocate(f, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 1, INT64_MAX - 1), 0);
	assert_int_equal(nparts, 1);
	check_part(0, 1, INT64_MAX - 1);
}

struct told {
	bool done;
	int64_t result;
};

static void tell(void *arg, int64_t result)
{
	struct told *t = arg;

	t->done = true;
	t->result = result;
}

/* After the first part, a cancelled operation has changed something, even if no call is in flight. */
static void cancelled(void **state)
{
	struct told told = { 0 };

	(void)state;
	fake.unsent = true;
	assert_int_equal(leat_aio_fallocate(f, 0, 0, 2 * GIB, (struct leat_cb){ tell, &told, NULL }), 0);
	while (!nparts)
		(void)leat_poll(leat_session(m), 0);
	assert_int_equal(leat_cancel(m, &told), 0);
	while (!told.done)
		(void)leat_poll(leat_session(m), 0);
	assert_int_equal(told.result, -EINPROGRESS);
	assert_int_equal(nparts, 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(no_leatd),
		TEST(older_leatd),
		TEST(nonsense),
		TEST(in_parts),
		TEST(cancelled),
	};
#undef TEST

	return cmocka_run_group_tests(tests, NULL, NULL);
}
