/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_drc.h - a duplicate request cache with a clock and an allocator of the test
 */
#ifndef TEST_DRC_H
#define TEST_DRC_H

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static unsigned mallocs;
static bool no_memory;

static inline void *counted_malloc(size_t n)
{
	mallocs++;
	return no_memory ? NULL : malloc(n);
}

#include "base/clock.h"

static uint64_t time_ns;

static inline uint64_t fake_clock(void)
{
	return time_ns;
}

#define malloc counted_malloc
#define clock_coarse_ns fake_clock
#include "drc.c"
#undef malloc
#undef clock_coarse_ns

#include "base/wire.h"

static const uint8_t cred[DRC_CRED_MAX] = "stamp, machine, ids";
static unsigned woken;

static inline void on_wake(struct drc_call *c)
{
	(void)c;
	woken++;
}

static inline struct drc_call call(uint32_t xid)
{
	struct drc_call c = {
		.key = { .local = 1, .local_id = { 100, 1000 }, .xid = xid, .prog = 100003, .vers = 3,
			 .proc = 9, .args_bytes = 40, .args_hash = 77, .cred_flavor = 1,
			 .cred_bytes = 20 },
		.client = { .kind = RPCRDMA_CLIENT_USER, .key = 1000 },
		.cred = cred,
		.wake = on_wake,
	};

	return c;
}

static inline void answer(struct drc_call *c, uint32_t word)
{
	put_be32(c->res, word);
	c->res_bytes = 4;
}

static inline void assert_answer(const struct drc_call *c, uint32_t word)
{
	assert_int_equal(c->res_bytes, 4);
	assert_int_equal(get_be32(c->res), word);
}

static inline void execute(struct drc *d, uint32_t xid)
{
	struct drc_call c = call(xid);

	assert_int_equal(drc_enter(d, &c), DRC_EXECUTE);
	answer(&c, xid + 1);
	drc_done(d, &c);
}

static inline bool is_kept(struct drc *d, uint32_t xid)
{
	struct drc_call c = call(xid);

	if (drc_enter(d, &c) == DRC_REPLAY) {
		assert_answer(&c, xid + 1);
		return true;
	}
	drc_abandon(d, &c);
	return false;
}

static inline struct drc_stats stats(struct drc *d)
{
	struct drc_stats s = { 0 };

	drc_stats(d, &s);
	return s;
}

static inline struct drc *create_as(const struct drc_attr *attr)
{
	struct drc *d;

	assert_int_equal(drc_create(attr, &d), 0);
	woken = 0;
	return d;
}

static inline struct drc *create(size_t entries)
{
	const struct drc_attr attr = { .entries = entries, .bytes = 1u << 20, .keep_ns = DRC_KEEP_NS };

	return create_as(&attr);
}

#endif
