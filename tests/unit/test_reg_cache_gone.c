/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_reg_cache_gone.c - the registration cache does not return unmapped memory
 */
#include "test_reg_cache.h"

static void open_watched(void)
{
	struct rr_cache_attr attr = { .entries = 100, .bytes = PAGES * page };

	if (!kernel_has_uffd())
		skip();
	assert_int_equal(rr_monitor_get(&attr.monitor), 0);
	assert_int_equal(rr_cache_create(pd, &attr, &cache), 0);
}

static void map_again(size_t first, size_t pages)
{
	assert_ptr_equal(mmap(at(first), pages * page, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), at(first));
}

static void stale_is_not_found(void **state)
{
	struct rr_cache_ref a, b, c;

	(void)state;
	open_watched();
	use(0, 4, WRITE);
	use(6, 4, WRITE);
	use(0, 4, WRITE);
	assert_int_equal(stats().reg_hits, 1);
	assert_int_equal(munmap(at(3), page), 0);
	assert_int_equal(stats().reg_invalidated, 1);
	assert_int_equal(rr_cache_get(cache, at(0), 4 * page, WRITE, &a), -ENOENT);
	map_again(3, 1);
	use(0, 4, WRITE);
	use(6, 4, WRITE);
	assert_int_equal(stats().regs, 3);
	map_again(8, 1); /* unmapped and mapped in one step */
	assert_int_equal(madvise(at(0), page, MADV_DONTNEED), 0);
	assert_int_equal(stats().reg_invalidated, 3);
	until_reaped(3);
	assert_int_equal(stats().reg_pinned, 0);

	/* rr_cache_put() returns false if a part of the caller's range was unmapped */
	get(20, 4, WRITE, &a);
	get(21, 1, WRITE, &b);
	get(23, 1, WRITE, &c);
	assert_ptr_equal(a.mr, b.mr);
	rr_cache_drop(cache, &c); /* later lookups do not find it */
	get(22, 2, WRITE, &c);
	assert_ptr_not_equal(a.mr, c.mr);
	assert_int_equal(munmap(at(20), page), 0);
	assert_int_equal(munmap(at(22), page), 0);
	assert_false(rr_cache_put(cache, &a));
	assert_true(rr_cache_put(cache, &b));
	assert_false(rr_cache_put(cache, &c));
	map_again(20, 4);
}

static void what_cannot_be_watched(void **state)
{
	struct rr_cache_ref ref;
	char *shared;

	(void)state;
	open_watched();
	shared = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(shared, MAP_FAILED);
	assert_int_equal(rr_cache_get(cache, shared, page, READ, &ref), -ENOENT);
	assert_int_equal(stats().reg_uncacheable, 1);
	use(0, 1, READ);
	munmap(shared, page);
}

/* A range that cannot be watched does not invalidate a registration that overlaps it. */
static void bad_beside_good(void **state)
{
	struct rr_cache_ref good, ref;

	(void)state;
	open_watched();
	get(0, 4, READ, &good);
	assert_int_equal(munmap(at(5), page), 0);
	assert_int_equal(rr_cache_get(cache, at(2), 4 * page, READ, &ref), -ENOENT); /* a hole */
	assert_ptr_equal(mmap(at(5), page, PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0), at(5));
	assert_int_equal(rr_cache_get(cache, at(2), 4 * page, READ, &ref), -ENOENT);
	assert_true(rr_cache_put(cache, &good)); /* it is still valid */
	use(0, 4, READ);
	assert_int_equal(stats().reg_hits, 1);
	map_again(1, 1); /* it is still watched */
	assert_int_equal(stats().reg_invalidated, 1);
}

static unsigned told;

static void count_gone(struct rr_monitor_user *u, uintptr_t start, uintptr_t end)
{
	(void)u;
	(void)start;
	(void)end;
	told++;
}

static bool keeps_nothing(struct rr_monitor_user *u, uintptr_t start, uintptr_t end)
{
	(void)u;
	(void)start;
	(void)end;
	return false;
}

/* Return: does the monitor report that page @p has gone? */
static bool is_watched(struct rr_monitor *m, size_t p)
{
	unsigned n;

	rr_monitor_lock(m);
	told = 0;
	rr_monitor_unlock(m);
	assert_int_equal(madvise(at(p), page, MADV_DONTNEED), 0);
	rr_monitor_lock(m);
	n = told;
	rr_monitor_unlock(m);
	return n > 0;
}

/* Watching makes munmap() slower and splits mappings: only cached registrations are watched. */
static void what_is_kept_is_watched(void **state)
{
	struct rr_monitor_user listener = { .gone = count_gone, .keeps = keeps_nothing };
	struct rr_cache_ref a;
	struct rr_monitor *m;

	(void)state;
	open_watched();
	assert_int_equal(rr_monitor_get(&m), 0);
	rr_monitor_add(m, &listener);
	use(0, 2, WRITE);
	use(4, 2, WRITE);
	use(8, 2, WRITE);
	assert_true(is_watched(m, 0)); /* and invalidated */
	get(8, 2, WRITE, &a);
	rr_cache_flush(cache);
	assert_false(is_watched(m, 4));
	assert_true(is_watched(m, 8));
	assert_false(rr_cache_put(cache, &a));
	/* an entry that a larger one replaced is dropped, and its memory remains watched */
	use(20, 2, WRITE);
	use(22, 2, WRITE);
	assert_true(is_watched(m, 20));
	assert_int_equal(stats().reg_invalidated, 3);
	/* memory that was recalled or could not be registered is not watched */
	get(30, 1, WRITE, &a);
	assert_true(rr_cache_recall(cache, &a));
	assert_false(is_watched(m, 30));
	assert_int_equal(mprotect(at(40), page, PROT_READ), 0);
	assert_int_equal(rr_cache_get(cache, at(40), page, WRITE, &a), -EFAULT);
	assert_false(is_watched(m, 40));
	assert_ptr_equal(mmap(at(42), page, PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0), at(42));
	assert_int_equal(rr_cache_get(cache, at(42), page, WRITE, &a), -ENOENT);
	assert_false(is_watched(m, 42));
	rr_monitor_del(m, &listener);
	rr_monitor_put(m);
}

/* Memory that is unmapped while it is added to the cache is not found there. */
static void *unmapper(void *arg)
{
	atomic_bool *stop = arg;

	for (size_t i = 0; !atomic_load(stop); i = (i + 1) % PAGES)
		map_again(i, 1);
	return NULL;
}

static void unmapped_all_the_time(void **state)
{
	atomic_bool stop = false;
	unsigned lost = 0;
	pthread_t t;

	(void)state;
	open_watched();
	assert_int_equal(pthread_create(&t, NULL, unmapper, &stop), 0);
	for (unsigned i = 0; i < 3000 || ((!lost || !stats().reg_invalidated) && i < 1000000); i++) {
		struct rr_cache_ref ref;
		int rc = rr_cache_get(cache, at(i * 7 % (PAGES - 8)), 8 * page, READ, &ref);

		if (!rc)
			lost += !rr_cache_put(cache, &ref);
		else
			assert_true(rc == -ENOENT || rc == -EFAULT);
	}
	atomic_store(&stop, true);
	pthread_join(t, NULL);
	assert_true(lost > 0 && stats().reg_invalidated > 0);
	map_again(0, PAGES); /* unmaps all of it */
	assert_int_equal(stats().reg_hits + stats().reg_misses + stats().reg_uncacheable >= 3000, 1);
	until_reaped(stats().reg_deferred);
	assert_int_equal(stats().reg_pinned, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cache_test(stale_is_not_found),
		cache_test(what_cannot_be_watched),
		cache_test(bad_beside_good),
		cache_test(what_is_kept_is_watched),
		cache_test(unmapped_all_the_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
