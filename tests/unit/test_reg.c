/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_reg.c - registration strategies (reg*.c) and their memory (mem.c) on the local fabric
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "filter.h"
#include "local.h"
#include "reg.h"

#define RW (RR_ACCESS_LOCAL_WRITE | RR_ACCESS_REMOTE_WRITE)

static struct rpcrdma_domain *domain;
static struct rpcrdma_engine *engine;
static struct rr_dev *dev;

static int setup(void **state)
{
	(void)state;
	assert_int_equal(rpcrdma_domain_create(NULL, &domain), 0);
	assert_int_equal(rpcrdma_engine_create(domain, NULL, &engine), 0);
	assert_int_equal(rr_domain_dev(domain, RPCRDMA_LOCAL, &dev), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	rpcrdma_engine_destroy(engine);
	rpcrdma_domain_destroy(domain);
	return 0;
}

/* A connection to the server @peer. */
static void init_to(struct rr_reg *reg, const char *name, const char *peer)
{
	const struct rpcrdma_clnt_attr attr = {
		.registration = rr_reg_canonical(name),
		.monitor = rr_reg_monitor_canonical("none"),
		.no_bounce = true,
	};

	assert_int_equal(rr_reg_init(reg, engine, dev, peer, &attr), 0);
}

static void init(struct rr_reg *reg, const char *name)
{
	init_to(reg, name, "server");
}

static void fini(struct rr_reg *reg)
{
	rr_reg_fini(reg);
	rr_reg_close(reg);
}

static void names(void **state)
{
	(void)state;
	assert_string_equal(rr_reg_canonical(NULL), "auto");
	assert_string_equal(rr_reg_canonical("dynamic"), "dynamic");
	assert_string_equal(rr_reg_canonical("slab"), "slab");
	assert_string_equal(rr_reg_canonical("arena"), "arena");
	assert_null(rr_reg_canonical("caches"));
	assert_null(rr_reg_canonical(""));
	assert_string_equal(rr_reg_monitor_canonical(NULL), "uffd");
	assert_string_equal(rr_reg_monitor_canonical("none"), "none");
	assert_null(rr_reg_monitor_canonical("auto"));
}

static void counts_segments(void **state)
{
	char mem[30];
	struct iovec iov[4] = { { mem, 10 }, { mem, 0 }, { mem + 10, 5 }, { mem + 15, 15 } };

	(void)state;
	assert_int_equal(rr_reg_count(domain, iov, 4, 0), 0);
	assert_int_equal(rr_reg_count(domain, iov, 4, 1), 1);
	assert_int_equal(rr_reg_count(domain, iov, 4, 10), 1);
	assert_int_equal(rr_reg_count(domain, iov, 4, 11), 2);
	assert_int_equal(rr_reg_count(domain, iov, 4, 30), 3);
	assert_int_equal(rr_reg_count(domain, iov, 4, 99), 3);
	assert_int_equal(rr_reg_count(domain, NULL, 0, 0), 0);
}

static void dynamic(void **state)
{
	static char mem[1000];
	struct iovec iov[4] = { { mem, 100 }, { mem, 0 }, { mem + 200, 300 }, { mem + 600, 400 } };
	struct rr_reg_seg segs[RR_REG_SEGS_MAX];
	struct rr_reg reg;
	unsigned n = 99;

	(void)state;
	init(&reg, "dynamic");
	assert_int_equal(rr_reg_get(&reg, iov, 4, 450, RW, segs, &n), 0);
	assert_int_equal(n, 3);
	assert_int_equal(segs[0].seg.length, 100);
	assert_int_equal(segs[1].seg.length, 300);
	assert_int_equal(segs[2].seg.length, 50); /* no more than was asked */
	assert_int_equal(segs[2].seg.offset, (uintptr_t)(mem + 600));
	assert_int_not_equal(segs[0].seg.handle, segs[1].seg.handle);
	assert_int_equal(engine->stats.regs, 3);
	assert_true(rr_reg_put(&reg, segs, n));
	assert_int_equal(engine->stats.deregs, 3);
	fini(&reg);
}

static void failure_leaves_nothing(void **state)
{
	static char mem[1000];
	struct iovec iov[3] = { { mem, 100 }, { mem + 200, 300 }, { mem + 600, 400 } };
	struct rr_reg_seg segs[RR_REG_SEGS_MAX];
	struct rr_hooks *hooks = rr_faults_hooks(dev->fabric);
	struct rr_reg reg;
	unsigned n = 99;

	(void)state;
	init(&reg, "dynamic");
	hooks->fail_reg = 3;
	assert_int_equal(rr_reg_get(&reg, iov, 3, 800, RW, segs, &n), -ENOMEM);
	assert_int_equal(n, 99);
	assert_int_equal(engine->stats.regs, engine->stats.deregs);
	hooks->fail_reg = 0;
	fini(&reg);
}

static void too_many_segments(void **state)
{
	static char mem[40];
	struct iovec iov[17];
	struct rr_reg_seg segs[RR_REG_SEGS_MAX];
	struct rr_reg reg;
	unsigned n = 0;

	(void)state;
	for (int i = 0; i < 17; i++)
		iov[i] = (struct iovec){ mem + 2 * i, 1 };
	init(&reg, "dynamic");
	assert_int_equal(rr_reg_get(&reg, iov, 17, 17, RW, segs, &n), -ENOBUFS);
	assert_int_equal(rr_reg_get(&reg, iov, 17, 16, RW, segs, &n), 0);
	assert_int_equal(n, 16);
	assert_true(rr_reg_put(&reg, segs, n));
	fini(&reg);
}

static void memory(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct rr_mem *mem;
	uint8_t *a, *b;
	void *p;

	(void)state;
	assert_int_equal(rpcrdma_mem_alloc(domain, 0, &p), -EINVAL);
	assert_int_equal(rpcrdma_mem_alloc(domain, SIZE_MAX, &p), -ENOMEM);
	assert_int_equal(rpcrdma_mem_alloc(domain, SIZE_MAX / 4, &p), -ENOMEM);
	assert_int_equal(rpcrdma_mem_alloc(domain, 1, &p), 0);
	a = p;
	assert_int_equal(rpcrdma_mem_alloc(domain, 3 * page + 1, &p), 0);
	b = p;
	assert_int_equal((uintptr_t)b % page, 0);
	memset(b, 1, 4 * page);
	mem = rr_mem_find(domain, b + 5, 4 * page - 5);
	assert_non_null(mem);
	assert_ptr_equal(mem->x.mem, b);
	assert_int_equal(mem->x.bytes, 4 * page);
	assert_true(fcntl(mem->x.fd, F_GET_SEALS) & F_SEAL_SHRINK);
	assert_int_equal(ftruncate(mem->x.fd, 0), -1);
	assert_null(rr_mem_find(domain, b + 5, 4 * page - 4));
	assert_null(rr_mem_find(domain, b - 1, 1));
	assert_null(rr_mem_find(domain, b + 1, SIZE_MAX));
	assert_ptr_equal(rr_mem_find(domain, a, page)->x.mem, a);
	rpcrdma_mem_free(domain, a);
	assert_null(rr_mem_find(domain, a, 1));
	rpcrdma_mem_free(domain, NULL);
	/* b is left for the domain's end */
}

static void slab(void **state)
{
	struct rr_reg_seg segs[RR_REG_SEGS_MAX], foreign[RR_REG_SEGS_MAX];
	static char other[100];
	struct iovec iov[2], out = { other, 100 };
	struct rr_reg reg, second;
	unsigned n = 0;
	void *p;

	(void)state;
	assert_int_equal(rpcrdma_mem_alloc(domain, 100000, &p), 0);
	iov[0] = (struct iovec){ (char *)p + 10, 20 };
	iov[1] = (struct iovec){ (char *)p + 5000, 2000 };
	init(&reg, "slab");
	init(&second, "auto");
	for (int i = 0; i < 3; i++) {
		assert_int_equal(rr_reg_get(&reg, iov, 2, 2020, RW, segs, &n), 0);
		assert_int_equal(n, 2);
		assert_int_equal(segs[0].seg.handle, segs[1].seg.handle);
		assert_int_equal(segs[1].seg.offset, (uintptr_t)p + 5000);
		if (i)
			assert_true(rr_reg_put(&reg, segs, n));
		else
			assert_false(rr_reg_recall(&reg, segs, n)); /* within reach still */
	}
	assert_int_equal(engine->stats.regs, 1);
	assert_int_equal(rr_reg_get(&reg, &out, 1, 100, RW, foreign, &n), -ENOENT);

	/* the other connection has a key of its own, and takes other memory too */
	assert_int_equal(rr_reg_get(&second, iov, 2, 2020, RW, foreign, &n), 0);
	assert_int_not_equal(foreign[0].seg.handle, segs[0].seg.handle);
	assert_true(rr_reg_put(&second, foreign, n));
	assert_int_equal(rr_reg_get(&second, &out, 1, 100, RW, foreign, &n), 0);
	assert_true(rr_reg_put(&second, foreign, n));

	/* a registration goes with its connection or with its memory, and comes back anew */
	rr_reg_revoke(&reg);
	assert_true(list_is_empty(&reg.slabs));
	assert_false(list_is_empty(&second.slabs));
	assert_int_equal(rr_reg_get(&reg, iov, 2, 2020, RW, segs, &n), 0);
	assert_true(rr_reg_put(&reg, segs, n));
	rpcrdma_mem_free(domain, p);
	assert_true(list_is_empty(&reg.slabs));
	assert_true(list_is_empty(&second.slabs));
	assert_int_equal(rr_reg_get(&reg, iov, 2, 2020, RW, segs, &n), -ENOENT);
	fini(&reg);
	fini(&second);
}

static void same_address_again(void **state)
{
	struct rr_reg_seg rseg;
	struct rr_reg reg;
	struct iovec iov;
	unsigned n = 0;
	void *p;

	(void)state;
	init(&reg, "slab");
	for (int i = 0; i < 5; i++) { /* most likely mapped where the last one was */
		assert_int_equal(rpcrdma_mem_alloc(domain, 4096, &p), 0);
		iov = (struct iovec){ p, 4096 };
		assert_int_equal(rr_reg_get(&reg, &iov, 1, 4096, RW, &rseg, &n), 0);
		assert_ptr_equal(rseg.mr->addr, p);
		assert_true(rr_reg_put(&reg, &rseg, 1));
		rpcrdma_mem_free(domain, p);
	}
	assert_int_equal(engine->stats.regs, 5);
	fini(&reg);
}

static void get_one(struct rr_reg *reg, void *mem, size_t len, unsigned access,
		    struct rr_reg_seg *ret)
{
	struct iovec iov = { mem, len };
	unsigned n = 0;

	assert_int_equal(rr_reg_get(reg, &iov, 1, len, access, ret, &n), 0);
	assert_int_equal(n, 1);
}

#define FREED_ROUNDS 5000u

/* Memory that nobody uses any more is freed by one thread while the connection's looks for other memory. */
struct freer {
	_Atomic(void *) used; /* and is not any more; NULL: it is freed */
	atomic_bool stop;
};

static void *free_what_was_used(void *arg)
{
	struct freer *f = arg;

	while (!atomic_load(&f->stop)) {
		void *p = atomic_load(&f->used);

		if (!p) {
			sched_yield();
			continue;
		}
		rpcrdma_mem_free(domain, p);
		atomic_store(&f->used, NULL);
	}
	return NULL;
}

static void freed_beside_a_look_up(void **state)
{
	struct freer freer = { .stop = false };
	struct rr_reg_seg rseg;
	struct rr_reg reg;
	pthread_t t;
	void *mine;

	(void)state;
	init(&reg, "slab");
	assert_int_equal(rpcrdma_mem_alloc(domain, 4096, &mine), 0);
	assert_int_equal(pthread_create(&t, NULL, free_what_was_used, &freer), 0);
	for (unsigned i = 0; i < FREED_ROUNDS; i++) {
		void *p;

		assert_int_equal(rpcrdma_mem_alloc(domain, 4096, &p), 0);
		get_one(&reg, p, 4096, RW, &rseg);
		assert_true(rr_reg_put(&reg, &rseg, 1));
		atomic_store(&freer.used, p);
		while (atomic_load(&freer.used)) {
			get_one(&reg, mine, 4096, RW, &rseg);
			assert_ptr_equal(rseg.mr->addr, mine);
			assert_true(rr_reg_put(&reg, &rseg, 1));
			sched_yield(); /* both want the lock, and the one who frees is to have it, too */
		}
	}
	atomic_store(&freer.stop, true);
	pthread_join(t, NULL);
	rpcrdma_mem_free(domain, mine);
	fini(&reg);
}

static struct rpcrdma_stats stats(void)
{
	struct rpcrdma_stats s;

	rpcrdma_domain_stats(domain, &s);
	return s;
}

/* Connections to one server find what another has registered; to another server they do not. */
static void cache_is_shared(void **state)
{
	static char mem[20000];
	struct rr_reg_seg a, b, c;
	struct rr_reg first, second, other;

	(void)state;
	init_to(&first, "cache", "one");
	init_to(&second, "cache", "one");
	init_to(&other, "cache", "two");
	assert_ptr_equal(first.pd, second.pd);
	assert_ptr_not_equal(first.pd, other.pd);
	get_one(&first, mem, sizeof(mem), RW, &a);
	get_one(&second, mem + 1000, 7000, RW, &b);
	get_one(&other, mem, sizeof(mem), RW, &c);
	assert_int_equal(a.seg.handle, b.seg.handle);
	assert_int_equal(b.seg.offset, (uintptr_t)mem + 1000);
	assert_int_not_equal(a.seg.handle, c.seg.handle);
	assert_int_equal(stats().regs, 2);
	assert_int_equal(stats().reg_hits, 1);
	assert_true(rr_reg_put(&first, &a, 1));
	fini(&first); /* the other one lives there still */
	assert_int_equal(stats().deregs, 0);
	assert_true(rr_reg_put(&second, &b, 1));
	assert_true(rr_reg_put(&other, &c, 1));
	fini(&second);
	assert_int_equal(stats().deregs, 1);
	fini(&other);
	assert_int_equal(stats().deregs, 2);
	assert_int_equal(stats().reg_hits, 1); /* what is gone has been counted */
	assert_int_equal(stats().reg_pinned, 0);
}

/* What is kept costs nothing the second time, whatever the strategy; `dynamic` always does. */
static void steady_state(void **state)
{
	static const struct {
		const char *name;
		bool slab;
		unsigned long regs;
	} how[] = {
		{ "dynamic", false, 10 }, { "cache", false, 1 }, { "batch", false, 1 },
		{ "auto", false, 1 }, { "slab", true, 1 }, { "arena", true, 1 }, { "auto", true, 1 },
	};
	static char mem[100000];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(how); i++) {
		unsigned long before = stats().regs;
		struct rr_reg_seg rseg;
		struct rr_reg reg;
		void *slab;

		assert_int_equal(rpcrdma_mem_alloc(domain, sizeof(mem), &slab), 0);
		init(&reg, how[i].name);
		for (int op = 0; op < 10; op++) {
			get_one(&reg, how[i].slab ? slab : mem, sizeof(mem), RW, &rseg);
			assert_true(rr_reg_put(&reg, &rseg, 1));
		}
		assert_int_equal(stats().regs - before, how[i].regs);
		fini(&reg);
		assert_int_equal(stats().regs, stats().deregs);
		rpcrdma_mem_free(domain, slab);
	}
}

static void threshold(void **state)
{
	static char mem[100000];
	struct rpcrdma_clnt_attr attr = {
		.registration = rr_reg_canonical("cache"),
		.monitor = rr_reg_monitor_canonical("none"),
		.bounce_bytes = 8192,
	};
	struct rr_reg_seg segs[2];
	struct iovec iov[2] = { { mem, 4096 }, { mem + 8192, 4096 } };
	struct rr_reg reg;
	unsigned n;
	void *slab;

	(void)state;
	assert_int_equal(rpcrdma_mem_alloc(domain, 8192, &slab), 0);
	assert_int_equal(rr_reg_init(&reg, engine, dev, "server", &attr), 0);
	assert_int_equal(rr_reg_get(&reg, iov, 2, 8191, RW, segs, &n), -ENOENT);
	assert_int_equal(stats().regs, 0);
	assert_int_equal(rr_reg_get(&reg, iov, 2, 8192, RW, segs, &n), 0);
	assert_true(rr_reg_put(&reg, segs, n));
	get_one(&reg, slab, 10, RW, segs); /* is registered anyway */
	assert_true(rr_reg_put(&reg, segs, 1));
	fini(&reg);

	/* `auto` copies what would have to be registered for its call: nothing else */
	attr = (struct rpcrdma_clnt_attr){ .registration = rr_reg_canonical("auto"),
					   .monitor = rr_reg_monitor_canonical("explicit") };
	assert_int_equal(rr_reg_init(&reg, engine, dev, "server", &attr), 0);
	iov[0] = (struct iovec){ mem, sizeof(mem) };
	assert_int_equal(rr_reg_get(&reg, iov, 1, 16383, RW, segs, &n), -ENOENT);
	assert_int_equal(rr_reg_get(&reg, iov, 1, 16384, RW, segs, &n), 0);
	assert_true(rr_reg_put(&reg, segs, n));
	fini(&reg);
	attr.monitor = rr_reg_monitor_canonical("none");
	assert_int_equal(rr_reg_init(&reg, engine, dev, "server", &attr), 0);
	get_one(&reg, mem, 100, RW, segs);
	assert_true(rr_reg_put(&reg, segs, 1));
	fini(&reg);
	attr.monitor = rr_reg_monitor_canonical("explicit");
	attr.no_bounce = true;
	assert_int_equal(rr_reg_init(&reg, engine, dev, "server", &attr), 0);
	get_one(&reg, mem, 100, RW, segs);
	assert_true(rr_reg_put(&reg, segs, 1));
	fini(&reg);
	rpcrdma_mem_free(domain, slab);
}

static void given_memory(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct rr_reg_seg a, b;
	struct rr_reg reg;
	char *mem = mmap(NULL, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct iovec iov = { mem + page, 1 };
	unsigned n;

	(void)state;
	assert_ptr_not_equal(mem, MAP_FAILED);
	assert_int_equal(rpcrdma_mem_register(domain, mem, 0), -EINVAL);
	assert_int_equal(rpcrdma_mem_register(domain, mem + 1, SIZE_MAX), -EFAULT);
	assert_int_equal(rpcrdma_mem_register(domain, mem + 10, 1000), 0);
	assert_int_equal(rpcrdma_mem_register(domain, mem, 11), -EEXIST);
	assert_int_equal(rpcrdma_mem_register(domain, mem, 10), 0);
	assert_int_equal(rpcrdma_mem_unregister(domain, mem), 0);
	assert_int_equal(rpcrdma_mem_unregister(domain, mem), -ENOENT);
	assert_int_equal(rpcrdma_mem_unregister(domain, mem + 11), -ENOENT);
	init(&reg, "slab");
	get_one(&reg, mem + 10, 1000, RW, &a);
	get_one(&reg, mem + 20, 10, RW, &b);
	assert_int_equal(stats().regs, 1);
	assert_int_equal(rpcrdma_mem_unregister(domain, mem + 10), -EBUSY);
	assert_true(rr_reg_put(&reg, &a, 1));
	assert_int_equal(rpcrdma_mem_unregister(domain, mem + 10), -EBUSY);
	assert_true(rr_reg_put(&reg, &b, 1));
	assert_int_equal(rpcrdma_mem_unregister(domain, mem + 10), 0);
	assert_int_equal(rr_local_counters(dev->fabric).deregs, 1);

	/* what may not be written is good to be read */
	assert_int_equal(mprotect(mem + page, page, PROT_READ), 0);
	assert_int_equal(rpcrdma_mem_register(domain, mem + page, page), 0);
	get_one(&reg, mem + page, 1, RR_ACCESS_REMOTE_READ, &a);
	assert_int_equal(rr_reg_get(&reg, &iov, 1, 1, RW, &b, &n), -EFAULT);
	assert_true(rr_reg_put(&reg, &a, 1));
	assert_int_equal(munmap(mem + 3 * page, page), 0);
	assert_int_equal(rpcrdma_mem_register(domain, mem + 2 * page, page + 1), -EFAULT);
	fini(&reg);
	assert_int_equal(munmap(mem, 3 * page), 0);
	/* that it is registered still is for the domain's end */
}

static int setup_arena(void **state)
{
	const struct rpcrdma_domain_attr attr = { .arena_bytes = 64 * 4096 };

	(void)state;
	assert_int_equal(rpcrdma_domain_create(&attr, &domain), 0);
	assert_int_equal(rpcrdma_engine_create(domain, NULL, &engine), 0);
	assert_int_equal(rr_domain_dev(domain, RPCRDMA_LOCAL, &dev), 0);
	return 0;
}

/* All that is ours is one region and one registration. */
static void arena(void **state)
{
	struct rr_reg_seg segs[3];
	struct rr_reg reg;
	void *p[3], *q;

	(void)state;
	init(&reg, "arena");
	for (int i = 0; i < 3; i++) {
		assert_int_equal(rpcrdma_mem_alloc(domain, 20 * 4096, &p[i]), 0);
		memset(p[i], i, 20 * 4096);
		get_one(&reg, p[i], 20 * 4096, RW, &segs[i]);
		assert_int_equal(segs[i].seg.handle, segs[0].seg.handle);
	}
	assert_int_equal(stats().regs, 1);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(*((char *)p[i] + 20 * 4096 - 1), i);
		assert_true(rr_reg_put(&reg, &segs[i], 1));
	}
	assert_int_equal(rpcrdma_mem_alloc(domain, 5 * 4096, &q), -ENOMEM);
	assert_int_equal(rpcrdma_mem_alloc(domain, 4 * 4096 - 1, &q), 0);
	rpcrdma_mem_free(domain, p[1]); /* a gap, to be used again */
	assert_int_equal(rpcrdma_mem_alloc(domain, 21 * 4096, &p[1]), -ENOMEM);
	assert_int_equal(rpcrdma_mem_alloc(domain, 19 * 4096, &p[1]), 0);
	assert_int_equal(rpcrdma_mem_alloc(domain, 1, &p[1]), 0);
	assert_int_equal(rpcrdma_mem_alloc(domain, 1, &p[1]), -ENOMEM);
	rpcrdma_mem_free(domain, p[0]);
	assert_int_equal(rpcrdma_mem_alloc(domain, 20 * 4096, &p[0]), 0);
	assert_int_equal(stats().regs, 1);
	fini(&reg);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),
		cmocka_unit_test_setup_teardown(counts_segments, setup, teardown),
		cmocka_unit_test_setup_teardown(dynamic, setup, teardown),
		cmocka_unit_test_setup_teardown(failure_leaves_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(too_many_segments, setup, teardown),
		cmocka_unit_test_setup_teardown(memory, setup, teardown),
		cmocka_unit_test_setup_teardown(slab, setup, teardown),
		cmocka_unit_test_setup_teardown(same_address_again, setup, teardown),
		cmocka_unit_test_setup_teardown(freed_beside_a_look_up, setup, teardown),
		cmocka_unit_test_setup_teardown(cache_is_shared, setup, teardown),
		cmocka_unit_test_setup_teardown(steady_state, setup, teardown),
		cmocka_unit_test_setup_teardown(threshold, setup, teardown),
		cmocka_unit_test_setup_teardown(given_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(arena, setup_arena, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
