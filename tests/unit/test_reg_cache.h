/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_reg_cache.h - a cache of registrations over pages of this process, for its tests
 */
#ifndef TEST_REG_CACHE_H
#define TEST_REG_CACHE_H

#include <errno.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "hooks.h"
#include "kernel_has.h"
#include "local.h"
#include "monitor.h"
#include "reg_cache.h"

#define READ RR_ACCESS_REMOTE_READ
#define WRITE (RR_ACCESS_LOCAL_WRITE | RR_ACCESS_REMOTE_WRITE)
#define PAGES 64

static struct rr_fabric *fabric;
static struct rr_pd *pd;
static struct rr_cache *cache;
static size_t page;
static char *mem; /* PAGES pages */
static struct rpcrdma_stats gone;
static unsigned watermark;

static inline int setup(void **state)
{
	(void)state;
	cache = NULL;
	gone = (struct rpcrdma_stats){ 0 };
	watermark = 32;
	page = (size_t)sysconf(_SC_PAGESIZE);
	assert_int_equal(rr_local_open(NULL, &fabric), 0);
	assert_int_equal(rr_pd_create(fabric, &pd), 0);
	mem = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(mem, MAP_FAILED);
	return 0;
}

/* However a test ends, all that was registered is deregistered. */
static inline int teardown(void **state)
{
	struct rr_local_counters n;

	(void)state;
	rr_cache_destroy(cache, &gone);
	n = rr_local_counters(fabric);
	assert_int_equal(n.regs, n.deregs);
	assert_int_equal(gone.regs, n.regs);
	assert_int_equal(gone.deregs, n.deregs);
	assert_int_equal(gone.reg_pinned, 0);
	rr_pd_destroy(pd);
	rr_fabric_close(fabric);
	munmap(mem, PAGES * page);
	return 0;
}

static inline struct rpcrdma_stats stats(void)
{
	struct rpcrdma_stats s = { 0 };

	rr_cache_count(cache, &s);
	return s;
}

static inline char *at(size_t p)
{
	return mem + p * page;
}

static inline void get(size_t first, size_t pages, unsigned access, struct rr_cache_ref *ref)
{
	assert_int_equal(rr_cache_get(cache, at(first), pages * page, access, ref), 0);
	assert_true((char *)ref->mr->addr <= at(first));
	assert_true((char *)ref->mr->addr + ref->mr->len >= at(first + pages));
	assert_int_equal(ref->mr->access & access, access);
}

static inline void use(size_t first, size_t pages, unsigned access)
{
	struct rr_cache_ref ref;

	get(first, pages, access, &ref);
	assert_true(rr_cache_put(cache, &ref));
}

static inline void until_reaped(unsigned long long n)
{
	assert_true(stats().reg_deferred >= n);
	while (stats().reg_reaped < n)
		sched_yield();
}

#define cache_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

#endif
