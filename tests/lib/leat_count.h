/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * leat_count.h - a struct leat_cb that counts its calls
 */
#ifndef LEAT_COUNT_H
#define LEAT_COUNT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct count {
	unsigned fn, free;
	int64_t result;
};

static inline void count_fn(void *arg, int64_t result)
{
	struct count *c = arg;

	assert_int_equal(c->free, 0);
	c->fn++;
	c->result = result;
}

static inline void count_free(void *arg)
{
	((struct count *)arg)->free++;
}

#endif
