/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_block_errors.c - the status that holders get for an error of a disk, and the capabilities that INFO announces
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "block_service.h"
#include "block_volume.h"

typedef void (*finish_fn)(struct req *r);

/* Return: the status of a call that ends with this error of the store */
static block_status status_after(finish_fn finish, int err)
{
	struct req *r = calloc(1, sizeof(*r) + sizeof(struct block_call));
	block_status status;

	assert_non_null(r);
	r->place.err = err;
	finish(r);
	status = block_call(r)->res.status;
	free(r);
	return status;
}

/* None looks as if the attachment had ended, or as if another one had the volume. */
static void errors_of_disks(void **state)
{
	static const finish_fn ends[] = { block_read_finish, block_change_finish, block_flush_finish, block_extents_finish };
	static const int odd[] = { EACCES, EBADF, EBUSY, ECONNABORTED, EIO, ENODATA, ENODEV, ENOENT, ENXIO, EPERM, ESTALE,
				   ETIMEDOUT };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		for (size_t k = 0; k < ARRAY_SIZE(odd); k++)
			assert_int_equal(status_after(ends[i], -odd[k]), BLOCK_ERR_IO);
		assert_int_equal(status_after(ends[i], -ENOSPC), BLOCK_ERR_NOSPC);
		assert_int_equal(status_after(ends[i], -EDQUOT), BLOCK_ERR_NOSPC);
		assert_int_equal(status_after(ends[i], -EOPNOTSUPP), BLOCK_ERR_NOTSUPP);
		assert_int_equal(status_after(ends[i], -EAGAIN), BLOCK_ERR_LATER);
		assert_int_equal(status_after(ends[i], -EINVAL), BLOCK_ERR_INVAL);
	}
}

static unsigned flags_of(bool fast_zero, bool fast_keep)
{
	struct block_volume v = { .nholders = 1 };
	const struct block_entry e = { .vol = &v, .block = 512, .caps = { .fast_zero = fast_zero, .fast_keep = fast_keep } };
	block_info info;

	pthread_mutex_init(&v.lock, NULL);
	block_describe(&e, &info);
	pthread_mutex_destroy(&v.lock);
	return info.flags;
}

/* NBD's fast zero may ask to keep the space. */
static void fast_zeroes(void **state)
{
	(void)state;
	assert_false(flags_of(false, false) & BLOCK_FAST_ZERO);
	assert_false(flags_of(true, false) & BLOCK_FAST_ZERO);
	assert_true(flags_of(true, true) & BLOCK_FAST_ZERO);
}

int main(void)
{
	static const struct CMUnitTest tests[] = { cmocka_unit_test(errors_of_disks), cmocka_unit_test(fast_zeroes) };

	return cmocka_run_group_tests_name("block errors", tests, NULL, NULL);
}
