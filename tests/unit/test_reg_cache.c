/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_reg_cache.c - registrations that are kept (reg_cache.c), over the local fabric
 */
#include "test_reg_cache.h"

static void open_cache(unsigned entries, size_t pages, bool deferred)
{
	const struct rr_cache_attr attr = { .entries = entries, .bytes = pages * page,
					    .deferred = deferred, .dirty_watermark = watermark };

	assert_int_equal(rr_cache_create(pd, &attr, &cache), 0);
}

static void hits_and_rights(void **state)
{
	struct rr_cache_ref a, b;

	(void)state;
	open_cache(10, PAGES, false);
	use(4, 4, WRITE);
	use(4, 4, WRITE);
	use(5, 2, WRITE); /* part of it */
	assert_int_equal(rr_cache_get(cache, at(6) + 17, 100, WRITE, &a), 0); /* not whole pages */
	assert_int_equal(a.start, (uintptr_t)at(6) + 17);
	get(4, 1, WRITE, &b); /* at the same time */
	assert_ptr_equal(a.mr, b.mr);
	assert_true(rr_cache_put(cache, &a));
	assert_true(rr_cache_put(cache, &b));
	assert_int_equal(stats().regs, 1);
	assert_int_equal(stats().reg_hits, 4);
	assert_int_equal(stats().reg_misses, 1);
	assert_int_equal(stats().reg_pinned, 4 * page);

	use(4, 4, READ); /* another right: one with both */
	assert_int_equal(stats().regs, 2);
	use(4, 4, READ);
	use(4, 4, WRITE);
	use(4, 4, READ | WRITE);
	assert_int_equal(stats().regs, 2);
	assert_int_equal(stats().reg_evicted, 0);
}

static void grows_together(void **state)
{
	struct rr_cache_ref a, b;

	(void)state;
	open_cache(10, PAGES, false);
	use(0, 4, READ);
	use(2, 4, READ); /* overlaps: one of six pages */
	use(0, 6, READ);
	assert_int_equal(stats().regs, 2);
	use(6, 6, READ); /* a neighbour: one of twelve */
	use(0, 12, READ);
	assert_int_equal(stats().regs, 3);
	use(12, 1, READ); /* it is small, and does not move twelve pages */
	use(0, 12, READ);
	assert_int_equal(stats().regs, 4);
	use(13, 1, WRITE); /* a neighbour with other rights is let alone */
	use(12, 1, READ);
	get(13, 1, WRITE, &a);
	assert_int_equal(a.mr->len, page);
	assert_int_equal(stats().regs, 5);
	get(13, 2, WRITE, &b); /* what is lent stays */
	assert_ptr_not_equal(a.mr, b.mr);
	assert_int_equal(stats().regs, 6);
	assert_int_equal(stats().deregs, 2); /* what was replaced */
	assert_true(rr_cache_put(cache, &a));
	assert_true(rr_cache_put(cache, &b));
}

/* A region that grows by a page at a time is not registered from its beginning each time. */
static void growth_is_cheap(void **state)
{
	unsigned long long pages = 0;

	(void)state;
	open_cache(100, PAGES, false);
	for (size_t i = 0; i < PAGES; i++) {
		struct rr_cache_ref ref;

		get(i, 1, READ, &ref);
		pages += stats().regs > i ? ref.mr->len / page : 0;
		assert_true(rr_cache_put(cache, &ref));
	}
	assert_in_range(pages, PAGES, PAGES * 7); /* a logarithm of them */
	assert_int_equal(stats().reg_pinned, PAGES * page);
}

static void least_recently_used(void **state)
{
	struct rr_cache_ref lent;

	(void)state;
	open_cache(3, PAGES, false);
	use(0, 1, READ);
	use(2, 1, READ);
	use(4, 1, READ);
	use(0, 1, READ); /* now 2 is the oldest */
	use(6, 1, READ);
	assert_int_equal(stats().reg_evicted, 1);
	assert_int_equal(stats().deregs, 1); /* at once, and not by the reaper */
	assert_int_equal(stats().reg_deferred, 0);
	use(0, 1, READ);
	use(4, 1, READ);
	assert_int_equal(stats().reg_hits, 3);
	use(2, 1, READ);
	assert_int_equal(stats().reg_misses, 5);

	get(4, 1, READ, &lent); /* is not evicted */
	for (size_t i = 10; i < 20; i += 2)
		use(i, 1, READ);
	use(4, 1, READ);
	assert_int_equal(stats().reg_misses, 10);
	assert_true(rr_cache_put(cache, &lent));
}

static void bytes_are_bounded(void **state)
{
	struct rr_cache_ref a, b, c;

	(void)state;
	open_cache(100, 10, false);
	assert_int_equal(rr_cache_get(cache, at(0), 11 * page, READ, &a), -ENOENT);
	assert_int_equal(stats().reg_uncacheable, 1);
	get(0, 6, READ, &a);
	use(10, 4, READ);
	use(20, 3, READ); /* 10 goes */
	assert_int_equal(stats().reg_evicted, 1);
	assert_int_equal(stats().reg_pinned, 9 * page);
	get(30, 4, READ, &b);
	assert_int_equal(stats().reg_pinned, 10 * page);
	assert_int_equal(rr_cache_get(cache, at(40), page, READ, &c), -ENOMEM); /* all is lent */
	assert_true(rr_cache_put(cache, &b));
	use(40, 1, READ);
	assert_true(rr_cache_put(cache, &a));
}

static void what_is_not_there(void **state)
{
	struct rr_cache_ref ref;

	(void)state;
	open_cache(100, PAGES, false);
	use(0, 3, READ);
	use(5, 3, READ);
	assert_int_equal(munmap(at(3), 2 * page), 0);
	assert_int_equal(rr_cache_get(cache, at(3), page, READ, &ref), -EFAULT);
	assert_int_equal(rr_cache_get(cache, at(2), 4 * page, READ, &ref), -EFAULT);
	assert_int_equal(rr_cache_get(cache, (void *)(UINTPTR_MAX - 10), 100, READ, &ref), -EFAULT);
	use(0, 3, READ);

	/* a page that may not be written stands in the way of the union only */
	use(10, 2, WRITE);
	assert_int_equal(mprotect(at(12), page, PROT_READ), 0);
	use(11, 2, READ);
	use(11, 1, WRITE);
	assert_int_equal(rr_cache_get(cache, at(12), page, WRITE, &ref), -EFAULT);
	use(12, 1, READ);
	assert_int_equal(stats().reg_uncacheable, 0);
}

static void shortage(void **state)
{
	struct rr_cache_ref lent, ref;

	(void)state;
	open_cache(100, PAGES, false);
	get(0, 1, READ, &lent);
	use(2, 1, READ);
	use(4, 1, READ);
	faults_of(fabric)->fail_reg = 1;
	use(6, 1, READ); /* what is idle is given back, and then it goes */
	assert_int_equal(stats().regs, 4);
	assert_int_equal(stats().deregs, 2);
	use(0, 1, READ);
	assert_int_equal(stats().reg_hits, 1);
	faults_of(fabric)->fail_reg = 2; /* the first goes well */
	use(8, 1, READ);
	faults_of(fabric)->fail_reg = 0;
	assert_true(rr_cache_put(cache, &lent));
	assert_int_equal(rr_cache_get(cache, at(0), page, READ, &ref), 0);
	assert_true(rr_cache_put(cache, &ref));
}

/* A thread that needs room does not wait for the deregistration of a victim. */
static void deferred(void **state)
{
	struct rpcrdma_stats s;

	(void)state;
	open_cache(4, PAGES, true);
	for (size_t i = 0; i < 400; i++)
		use(i % 20 * 2, 1, READ);
	until_reaped(396);
	s = stats();
	assert_int_equal(s.regs, 400);
	assert_int_equal(s.reg_misses, 400);
	assert_int_equal(s.reg_evicted, 396);
	assert_int_equal(s.reg_deferred, 396);
	assert_int_equal(s.deregs, s.reg_reaped); /* none by us */
	assert_in_range(s.reg_flushes, 1, 396);
	assert_int_equal(s.reg_pinned, 4 * page);
}

/* All entries wait for the reaper, and yet every request gets a registration. */
static void reaper_is_helped(void **state)
{
	(void)state;
	watermark = 1;
	open_cache(4, PAGES, true);
	for (size_t i = 0; i < 4000; i++)
		use(i % 20 * 2, 1, READ);
	assert_int_equal(stats().reg_evicted, 3996);
	assert_int_equal(stats().reg_uncacheable, 0);
}

static void recalled(void **state)
{
	struct rr_cache_ref a, b;
	uint32_t rkey;

	(void)state;
	open_cache(10, PAGES, false);
	get(0, 4, WRITE, &a);
	rkey = a.mr->rkey;
	assert_true(rr_cache_recall(cache, &a));
	assert_int_equal(rr_local_counters(fabric).deregs, 1); /* before it returned */
	get(0, 4, WRITE, &a);
	assert_int_not_equal(a.mr->rkey, rkey);
	get(1, 1, WRITE, &b);
	assert_false(rr_cache_recall(cache, &a)); /* b has lost it */
	assert_int_equal(rr_local_counters(fabric).deregs, 2);
	get(1, 1, WRITE, &a);
	assert_true(rr_cache_put(cache, &b));
	get(1, 1, WRITE, &b);
	rr_cache_drop(cache, &b); /* no lookup finds it, but @a holds it */
	get(1, 1, WRITE, &b);
	assert_ptr_not_equal(a.mr, b.mr);
	assert_int_equal(rr_local_counters(fabric).deregs, 2);
	assert_true(rr_cache_put(cache, &a));
	rr_cache_drop(cache, &b);
	until_reaped(2);
	assert_int_equal(stats().reg_pinned, 0);
}

static const struct rr_fabric_ops *true_ops;
static sem_t dereg_begins, dereg_may_go_on;
static atomic_bool is_deregistered;

static int slow_dereg(struct rr_mr *mr)
{
	int rc;

	sem_post(&dereg_begins);
	sem_wait(&dereg_may_go_on);
	rc = true_ops->mr_dereg(mr);
	atomic_store(&is_deregistered, true);
	return rc;
}

struct recaller {
	struct rr_cache_ref ref;
	atomic_int tid;
	atomic_bool is_back;
	bool was_deregistered; /* when it was back */
};

static void *recaller(void *arg)
{
	struct recaller *r = arg;

	atomic_store(&r->tid, (int)syscall(SYS_gettid));
	(void)rr_cache_recall(cache, &r->ref);
	r->was_deregistered = atomic_load(&is_deregistered);
	atomic_store(&r->is_back, true);
	return NULL;
}

static bool is_asleep(int tid)
{
	char path[64], state = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	f = fopen(path, "re");
	if (!f)
		return false;
	if (fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
		state = 0;
	fclose(f);
	return state == 'S';
}

/* Two calls over two connections are given up at once: neither is back before their memory is. */
static void recalled_by_two(void **state)
{
	struct rr_fabric_ops ops;
	struct recaller r[2] = { 0 };
	pthread_t t[2];

	(void)state;
	open_cache(10, PAGES, false);
	get(0, 4, WRITE, &r[0].ref);
	get(1, 1, WRITE, &r[1].ref);
	true_ops = fabric->ops;
	ops = *true_ops;
	ops.mr_dereg = slow_dereg;
	fabric->ops = &ops;
	atomic_store(&is_deregistered, false);
	sem_init(&dereg_begins, 0, 0);
	sem_init(&dereg_may_go_on, 0, 0);
	assert_int_equal(pthread_create(&t[0], NULL, recaller, &r[0]), 0);
	sem_wait(&dereg_begins);
	assert_int_equal(pthread_create(&t[1], NULL, recaller, &r[1]), 0);
	while (!atomic_load(&r[1].is_back) &&
	       !(atomic_load(&r[1].tid) && is_asleep(atomic_load(&r[1].tid))))
		sched_yield();
	sem_post(&dereg_may_go_on);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	fabric->ops = true_ops;
	assert_true(r[0].was_deregistered);
	assert_true(r[1].was_deregistered);
}

static void flushed(void **state)
{
	struct rr_cache_ref lent;

	(void)state;
	open_cache(10, PAGES, false);
	get(0, 1, READ, &lent);
	use(2, 1, READ);
	use(4, 1, READ);
	rr_cache_flush(cache);
	assert_int_equal(stats().deregs, 2);
	assert_int_equal(stats().reg_pinned, page);
	use(0, 1, READ);
	assert_int_equal(stats().reg_hits, 1);
	assert_true(rr_cache_put(cache, &lent));
}

static void forked_child(void **state)
{
	struct rr_cache_ref ref;
	int status;
	pid_t pid;

	(void)state;
	open_cache(10, PAGES, false);
	use(0, 1, READ);
	pid = fork();
	if (!pid) {
		int rc = rr_cache_get(cache, at(0), page, READ, &ref);

		rr_cache_destroy(cache, NULL); /* does not wait for a thread that there is not */
		_exit(rc == -ENOENT ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	use(0, 1, READ);
	assert_int_equal(stats().reg_hits, 1);
}

/* The default is half of RLIMIT_MEMLOCK if the limit applies to this process and the device pins memory. */
static int check_limit(void)
{
	const struct rlimit lim = { 1 << 20, 1 << 20 };
	struct __user_cap_header_struct hdr = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };
	bool exempt;

	if (setrlimit(RLIMIT_MEMLOCK, &lim) || syscall(SYS_capget, &hdr, data))
		return 1;
	exempt = data[CAP_TO_INDEX(CAP_IPC_LOCK)].effective & CAP_TO_MASK(CAP_IPC_LOCK);
	if (exempt && rr_cache_bytes_default(true) != rr_cache_bytes_default(false))
		return 2;
	data[0] = data[1] = (struct __user_cap_data_struct){ 0 };
	if (syscall(SYS_capset, &hdr, data))
		return 3;
	if (rr_cache_bytes_default(true) != 512 << 10)
		return 4;
	return rr_cache_bytes_default(false) > 1 << 20 ? 0 : 5;
}

static void limit_of_the_process(void **state)
{
	int status;
	pid_t pid = fork();

	(void)state;
	if (!pid)
		_exit(check_limit());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

#define LENT 24

/* Do other references have the same registration? */
static bool is_shared(const struct rr_cache_ref *ref, unsigned i)
{
	for (unsigned k = 0; k < LENT; k++)
		if (k != i && ref[k].mr && ref[k].entry == ref[i].entry)
			return true;
	return false;
}

/* What is lent covers what was asked with the rights asked, and the limits hold. */
static void play(unsigned seed, int rounds, bool alone)
{
	struct rr_cache_ref ref[LENT] = { 0 };

	for (int round = 0; round < rounds; round++) {
		unsigned r = (unsigned)rand_r(&seed), i = (unsigned)rand_r(&seed) % LENT;
		size_t first = (unsigned)rand_r(&seed) % PAGES;
		size_t pages = 1 + (unsigned)rand_r(&seed) % MIN(8u, PAGES - first);
		unsigned access = r % 3 ? READ : WRITE;
		int rc;

		if (!ref[i].mr) {
			rc = rr_cache_get(cache, at(first) + r % 7, pages * page - 7, access, &ref[i]);
			assert_true(!rc || rc == -ENOMEM);
			if (rc) {
				ref[i].mr = NULL;
				continue;
			}
			assert_true((uintptr_t)ref[i].mr->addr <= ref[i].start);
			assert_true((uintptr_t)ref[i].mr->addr + ref[i].mr->len >= ref[i].end);
			assert_int_equal(ref[i].mr->access & access, access);
		} else {
			switch (r % 16) {
			case 0:
				if (alone)
					assert_int_equal(rr_cache_recall(cache, &ref[i]), !is_shared(ref, i));
				else
					rr_cache_drop(cache, &ref[i]);
				break;
			case 1:
				rr_cache_drop(cache, &ref[i]);
				break;
			case 2:
				rr_cache_flush(cache);
				assert_true(rr_cache_put(cache, &ref[i]));
				break;
			default:
				assert_true(rr_cache_put(cache, &ref[i]));
			}
			ref[i].mr = NULL;
		}
	}
	for (int i = 0; i < LENT; i++)
		if (ref[i].mr)
			assert_true(rr_cache_put(cache, &ref[i]));
}

static void at_random(void **state)
{
	(void)state;
	for (unsigned seed = 1; seed <= 8; seed++) {
		open_cache(seed % 2 ? 16 : 100, seed % 4 < 2 ? PAGES / 2 : PAGES * 8, seed & 4);
		play(seed, 2000, true);
		assert_true(stats().reg_hits && stats().reg_misses);
		rr_cache_flush(cache);
		while (stats().reg_pinned) /* the reaper may be at it */
			sched_yield();
		assert_int_equal(stats().regs, stats().deregs);
		rr_cache_destroy(cache, &gone);
		cache = NULL;
	}
}

static void *player(void *arg)
{
	play((unsigned)(uintptr_t)arg, 3000, false);
	return NULL;
}

static void threads(void **state)
{
	pthread_t t[4];

	(void)state;
	open_cache(16, PAGES * 2, true);
	for (uintptr_t i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&t[i], NULL, player, (void *)(i + 1)), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	assert_true(stats().reg_hits > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cache_test(hits_and_rights),
		cache_test(grows_together),
		cache_test(growth_is_cheap),
		cache_test(least_recently_used),
		cache_test(bytes_are_bounded),
		cache_test(what_is_not_there),
		cache_test(shortage),
		cache_test(deferred),
		cache_test(reaper_is_helped),
		cache_test(recalled),
		cache_test(recalled_by_two),
		cache_test(flushed),
		cache_test(forked_child),
		cmocka_unit_test(limit_of_the_process),
		cache_test(at_random),
		cache_test(threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
