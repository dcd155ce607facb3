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

static int answer(struct rpcrdma_call *call)
{
	if (call->prog != LEAT_SPACE)
		return 0; /* of the close */
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
	reply_off = 0;
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

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(no_leatd),
		TEST(older_leatd),
		TEST(nonsense),
	};
#undef TEST

	return cmocka_run_group_tests(tests, NULL, NULL);
}
