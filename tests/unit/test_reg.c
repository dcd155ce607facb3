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

#include "hooks.h"
#include "local.h"
#include "reg_int.h"
#include "lab.h"

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
static struct rr_reg *open_attr(struct rpcrdma_clnt_attr attr, const char *peer)
{
	struct rr_reg *reg;

	assert_int_equal(rr_reg_check(domain, &attr), 0);
	assert_int_equal(rr_reg_open(engine, dev, peer, &attr, &reg), 0);
	return reg;
}

static struct rr_reg *open_to(const char *name, const char *peer)
{
	const struct rpcrdma_clnt_attr attr = { .registration = name, .monitor = "none",
						.no_bounce = true };

	return open_attr(attr, peer);
}

static struct rr_reg *open_reg(const char *name)
{
	return open_to(name, "server");
}

/* Offers [0, len) of @iov in place. */
static void offer_iov(struct rr_reg *reg, struct rr_offer *o, const struct iovec *iov, int iovcnt,
		      uint64_t len)
{
	*o = (struct rr_offer){ .n = 0 };
	assert_int_equal(rr_reg_offer(reg, o, iov, iovcnt, len, RW, false), 0);
	assert_null(o->mem);
}

static void offer_one(struct rr_reg *reg, struct rr_offer *o, void *mem, size_t len)
{
	struct iovec iov = { mem, len };

	offer_iov(reg, o, &iov, 1, len);
	assert_int_equal(o->n, 1);
}

static void end_replied(struct rr_reg *reg, struct rr_offer *o)
{
	struct rr_closing closing = { .n = 0 };

	assert_int_equal(rr_reg_end(reg, o, 1, RR_END_REPLIED, &closing), 0);
	assert_int_equal(rr_reg_end(reg, o, 1, RR_END_DONE, NULL), 0);
	assert_int_equal(o->n, 0);
}

/* Is it copied? */
static bool is_copied(struct rr_reg *reg, const struct iovec *iov, int iovcnt, uint64_t len)
{
	struct rr_offer o = { .n = 0 };
	bool copied;

	assert_int_equal(rr_reg_offer(reg, &o, iov, iovcnt, len, RW, false), 0);
	copied = o.mem;
	end_replied(reg, &o);
	assert_null(o.mem);
	return copied;
}

static int check(const char *registration, const char *monitor)
{
	struct rpcrdma_clnt_attr a = { .addr.transport = RPCRDMA_LOCAL,
				       .registration = registration, .monitor = monitor, .lab = LAB(0) };
	int rc = rr_reg_check(domain, &a);

	if (!rc) {
		assert_string_equal(a.registration, registration ? registration : "auto");
		assert_string_equal(a.monitor, monitor ? monitor : "uffd");
	}
	return rc;
}

static void names(void **state)
{
	struct rpcrdma_clnt_attr a = { .registration = "window", .lab = LAB(.modes = RPCRDMA_READ_READ) };

	(void)state;
	assert_int_equal(check(NULL, NULL), 0);
	assert_int_equal(check("dynamic", "none"), 0);
	assert_int_equal(check("slab", "explicit"), 0);
	assert_int_equal(check("window", NULL), 0);
	assert_int_equal(check("caches", NULL), -EINVAL);
	assert_int_equal(check("", NULL), -EINVAL);
	assert_int_equal(check(NULL, "auto"), -EINVAL);
	assert_int_equal(check("arena", NULL), -EINVAL); /* no such mode */
	assert_int_equal(rr_reg_check(domain, &a), -EINVAL);
}

static void counts_segments(void **state)
{
	char mem[30];
	struct iovec iov[4] = { { mem, 10 }, { mem, 0 }, { mem + 10, 5 }, { mem + 15, 15 } };

	(void)state;
	assert_int_equal(rr_mem_segments(domain, iov, 4, 0), 0);
	assert_int_equal(rr_mem_segments(domain, iov, 4, 1), 1);
	assert_int_equal(rr_mem_segments(domain, iov, 4, 10), 1);
	assert_int_equal(rr_mem_segments(domain, iov, 4, 11), 2);
	assert_int_equal(rr_mem_segments(domain, iov, 4, 30), 3);
	assert_int_equal(rr_mem_segments(domain, iov, 4, 99), 3);
	assert_int_equal(rr_mem_segments(domain, NULL, 0, 0), 0);
}

static void dynamic(void **state)
{
	static char mem[1000];
	struct iovec iov[4] = { { mem, 100 }, { mem, 0 }, { mem + 200, 300 }, { mem + 600, 400 } };
	struct rr_reg *reg = open_reg("dynamic");
	struct rr_offer o;

	(void)state;
	offer_iov(reg, &o, iov, 4, 450);
	assert_int_equal(o.n, 3);
	assert_int_equal(o.segs[0].seg.length, 100);
	assert_int_equal(o.segs[1].seg.length, 300);
	assert_int_equal(o.segs[2].seg.length, 50); /* no more than was asked */
	assert_int_equal(o.segs[2].seg.offset, (uintptr_t)(mem + 600));
	assert_int_not_equal(o.segs[0].seg.handle, o.segs[1].seg.handle);
	assert_int_equal(engine->stats.regs, 3);
	end_replied(reg, &o);
	assert_int_equal(engine->stats.deregs, 3);
	rr_reg_close(reg);
}

static void failure_leaves_nothing(void **state)
{
	static char mem[1000];
	struct iovec iov[3] = { { mem, 100 }, { mem + 200, 300 }, { mem + 600, 400 } };
	struct hooks *hooks = faults_of(dev->fabric);
	struct rr_reg *reg = open_reg("dynamic");
	struct rr_offer o = { .n = 0 };

	(void)state;
	hooks->fail_reg = 3;
	assert_int_equal(rr_reg_offer(reg, &o, iov, 3, 800, RW, true), -ENOMEM);
	assert_int_equal(o.n, 0);
	assert_null(o.mem);
	assert_int_equal(engine->stats.regs, 2);
	assert_int_equal(engine->stats.deregs, 2);
	hooks->fail_reg = 0;
	rr_reg_close(reg);
}

static void too_many_segments(void **state)
{
	static char mem[40];
	struct iovec iov[17];
	struct rr_reg *reg = open_reg("dynamic");
	struct rr_offer o;

	(void)state;
	for (int i = 0; i < 17; i++)
		iov[i] = (struct iovec){ mem + 2 * i, 1 };
	assert_true(is_copied(reg, iov, 17, 17));
	offer_iov(reg, &o, iov, 17, 16);
	assert_int_equal(o.n, 16);
	end_replied(reg, &o);
	rr_reg_close(reg);
}

/* Memory of the transport: readable after the reply, then used again. */
static void own_memory(void **state)
{
	static const char *const strategies[] = { "dynamic", "slab" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(strategies); i++) {
		struct rr_reg *reg = open_reg(strategies[i]);
		unsigned long before = engine->stats.regs;
		struct rr_closing closing = { .n = 0 };
		struct rr_offer o = { .n = 0 };
		uint8_t *mem;

		assert_int_equal(rr_reg_offer(reg, &o, NULL, 0, 10000, RW, false), 0);
		assert_int_equal(o.n, 1);
		assert_int_equal(o.segs[0].seg.length, 10000);
		assert_int_equal(o.segs[0].seg.offset, (uintptr_t)o.mem);
		mem = o.mem;
		memset(mem, 3, 10000);
		assert_int_equal(rr_reg_end(reg, &o, 1, RR_END_REPLIED, &closing), 0);
		assert_int_equal(o.n, 0);
		assert_ptr_equal(o.mem, mem);
		assert_int_equal(mem[9999], 3);
		assert_int_equal(rr_reg_end(reg, &o, 1, RR_END_DONE, NULL), 0);
		assert_null(o.mem);
		assert_int_equal(rr_reg_offer(reg, &o, NULL, 0, 5000, RW, false), 0);
		assert_ptr_equal(o.mem, mem);
		assert_int_equal(engine->stats.regs - before, i ? 1 : 2);
		/* a registration of its own ends with the memory, and nothing else with it */
		assert_int_equal(rr_reg_end(reg, &o, 1, RR_END_GIVEN_UP, NULL), 0);
		assert_int_equal(o.n, 0);
		assert_int_equal(rr_local_counters(dev->fabric).regs,
				 rr_local_counters(dev->fabric).deregs);
		assert_int_equal(rr_reg_end(reg, &o, 1, RR_END_DONE, NULL), 0);
		rr_reg_close(reg);
	}
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
	struct rr_reg *reg = open_reg("slab"), *second = open_reg("auto");
	struct rr_offer o, foreign;
	static char other[100];
	struct iovec iov[2], out = { other, 100 };
	void *p;

	(void)state;
	assert_int_equal(rpcrdma_mem_alloc(domain, 100000, &p), 0);
	iov[0] = (struct iovec){ (char *)p + 10, 20 };
	iov[1] = (struct iovec){ (char *)p + 5000, 2000 };
	for (int i = 0; i < 3; i++) {
		offer_iov(reg, &o, iov, 2, 2020);
		assert_int_equal(o.n, 2);
		assert_int_equal(o.segs[0].seg.handle, o.segs[1].seg.handle);
		assert_int_equal(o.segs[1].seg.offset, (uintptr_t)p + 5000);
		end_replied(reg, &o);
	}
	assert_int_equal(engine->stats.regs, 1);
	assert_true(is_copied(reg, &out, 1, 100));

	/* the other connection has a key of its own, and takes other memory too */
	offer_iov(second, &foreign, iov, 2, 2020);
	assert_int_not_equal(foreign.segs[0].seg.handle, o.segs[0].seg.handle);
	end_replied(second, &foreign);
	assert_false(is_copied(second, &out, 1, 100));

	/* a call that is given up ends the access of all others, and a registration comes back */
	offer_iov(reg, &o, iov, 2, 2020);
	assert_int_equal(rr_reg_end(reg, &o, 1, RR_END_GIVEN_UP, NULL), -ECONNABORTED);
	assert_true(list_is_empty(&rr_reg_conn_of(reg)->shared->slabs));
	assert_false(list_is_empty(&rr_reg_conn_of(second)->shared->slabs));
	offer_iov(reg, &o, iov, 2, 2020);
	end_replied(reg, &o);
	/* it ends with its memory */
	rpcrdma_mem_free(domain, p);
	assert_true(list_is_empty(&rr_reg_conn_of(reg)->shared->slabs));
	assert_true(list_is_empty(&rr_reg_conn_of(second)->shared->slabs));
	assert_int_equal(rr_reg_offer(reg, &o, iov, 2, 2020, RW, false), -EFAULT);
	rr_reg_close(reg);
	rr_reg_close(second);
}

/* Connections to one server share what is registered, until the last of them ends. */
static void slab_is_shared(void **state)
{
	struct rr_reg *first = open_to("slab", "one"), *second = open_to("slab", "one"), *other = open_to("slab", "two");
	struct rr_offer a, b, c;
	void *p;

	(void)state;
	assert_int_equal(rpcrdma_mem_alloc(domain, 8192, &p), 0);
	offer_one(first, &a, p, 8192);
	offer_one(second, &b, p, 4096);
	offer_one(other, &c, p, 8192);
	assert_int_equal(a.segs[0].seg.handle, b.segs[0].seg.handle);
	assert_int_not_equal(a.segs[0].seg.handle, c.segs[0].seg.handle);
	assert_int_equal(engine->stats.regs, 2);
	end_replied(other, &c);
	end_replied(second, &b);
	/* of a call that is given up the connection ends, not the registration that another connection uses */
	assert_int_equal(rr_reg_end(first, &a, 1, RR_END_GIVEN_UP, NULL), -ECONNABORTED);
	rr_reg_close(first);
	assert_int_equal(engine->stats.deregs, 0);
	offer_one(second, &b, p, 4096);
	end_replied(second, &b);
	assert_int_equal(engine->stats.regs, 2);
	rr_reg_close(second);
	assert_int_equal(engine->stats.deregs, 1);
	rr_reg_close(other);
	assert_int_equal(engine->stats.deregs, 2);
	rpcrdma_mem_free(domain, p);
}

static void same_address_again(void **state)
{
	struct rr_reg *reg = open_reg("slab");
	struct rr_offer o;
	void *p;

	(void)state;
	for (int i = 0; i < 5; i++) { /* most likely mapped where the last one was */
		assert_int_equal(rpcrdma_mem_alloc(domain, 4096, &p), 0);
		offer_one(reg, &o, p, 4096);
		assert_ptr_equal(o.segs[0].mr->addr, p);
		end_replied(reg, &o);
		rpcrdma_mem_free(domain, p);
	}
	assert_int_equal(engine->stats.regs, 5);
	rr_reg_close(reg);
}

#define FREED_ROUNDS 5000u

/* One thread frees unused memory while the thread of the connection looks up other memory. */
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
	struct rr_reg *reg = open_reg("slab");
	struct rr_offer o;
	pthread_t t;
	void *mine;

	(void)state;
	assert_int_equal(rpcrdma_mem_alloc(domain, 4096, &mine), 0);
	assert_int_equal(pthread_create(&t, NULL, free_what_was_used, &freer), 0);
	for (unsigned i = 0; i < FREED_ROUNDS; i++) {
		void *p;

		assert_int_equal(rpcrdma_mem_alloc(domain, 4096, &p), 0);
		offer_one(reg, &o, p, 4096);
		end_replied(reg, &o);
		atomic_store(&freer.used, p);
		while (atomic_load(&freer.used)) {
			offer_one(reg, &o, mine, 4096);
			assert_ptr_equal(o.segs[0].mr->addr, mine);
			end_replied(reg, &o);
			sched_yield(); /* both want the lock, and the freeing thread must get it, too */
		}
	}
	atomic_store(&freer.stop, true);
	pthread_join(t, NULL);
	rpcrdma_mem_free(domain, mine);
	rr_reg_close(reg);
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
	struct rr_reg *first = open_to("cache", "one"), *second = open_to("cache", "one");
	struct rr_reg *other = open_to("cache", "two");
	struct rr_offer a, b, c;

	(void)state;
	assert_ptr_equal(first->pd, second->pd);
	assert_ptr_not_equal(first->pd, other->pd);
	offer_one(first, &a, mem, sizeof(mem));
	offer_one(second, &b, mem + 1000, 7000);
	offer_one(other, &c, mem, sizeof(mem));
	assert_int_equal(a.segs[0].seg.handle, b.segs[0].seg.handle);
	assert_int_equal(b.segs[0].seg.offset, (uintptr_t)mem + 1000);
	assert_int_not_equal(a.segs[0].seg.handle, c.segs[0].seg.handle);
	assert_int_equal(stats().regs, 2);
	assert_int_equal(stats().reg_hits, 1);
	end_replied(first, &a);
	rr_reg_close(first); /* the other one lives there still */
	assert_int_equal(stats().deregs, 0);
	end_replied(second, &b);
	end_replied(other, &c);
	rr_reg_close(second);
	assert_int_equal(stats().deregs, 1);
	rr_reg_close(other);
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
		{ "auto", false, 1 }, { "slab", true, 1 }, { "auto", true, 1 },
	};
	static char mem[100000];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(how); i++) {
		unsigned long before = stats().regs;
		struct rr_reg *reg = open_reg(how[i].name);
		struct rr_offer o;
		void *slab;

		assert_int_equal(rpcrdma_mem_alloc(domain, sizeof(mem), &slab), 0);
		for (int op = 0; op < 10; op++) {
			offer_one(reg, &o, how[i].slab ? slab : mem, sizeof(mem));
			end_replied(reg, &o);
		}
		assert_int_equal(stats().regs - before, how[i].regs);
		rr_reg_close(reg);
		assert_int_equal(stats().regs, stats().deregs);
		rpcrdma_mem_free(domain, slab);
	}
}

static void threshold(void **state)
{
	static char mem[100000];
	struct rpcrdma_clnt_attr attr = { .registration = "cache", .monitor = "none",
					  .bounce_bytes = 8192 };
	struct iovec iov[2] = { { mem, 4096 }, { mem + 8192, 4096 } };
	struct iovec all = { mem, sizeof(mem) }, in_slab = { NULL, 10 };
	struct rr_reg *reg = open_attr(attr, "server");

	(void)state;
	assert_int_equal(rpcrdma_mem_alloc(domain, 8192, &in_slab.iov_base), 0);
	assert_true(is_copied(reg, iov, 2, 8191));
	assert_false(is_copied(reg, iov, 2, 8192));
	assert_false(is_copied(reg, &in_slab, 1, 10)); /* is registered anyway */
	rr_reg_close(reg);

	/* `auto` copies what would have to be registered for its call: nothing else */
	attr = (struct rpcrdma_clnt_attr){ .monitor = "explicit" };
	reg = open_attr(attr, "server");
	assert_true(is_copied(reg, &all, 1, 16383));
	assert_false(is_copied(reg, &all, 1, 16384));
	rr_reg_close(reg);
	attr.monitor = "none";
	reg = open_attr(attr, "server");
	assert_false(is_copied(reg, &all, 1, 100));
	rr_reg_close(reg);
	attr.monitor = "explicit";
	attr.no_bounce = true;
	reg = open_attr(attr, "server");
	assert_false(is_copied(reg, &all, 1, 100));
	rr_reg_close(reg);
	rpcrdma_mem_free(domain, in_slab.iov_base);
}

static void given_memory(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct rr_offer a, b;
	struct rr_reg *reg;
	char *mem = mmap(NULL, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct iovec iov = { mem + page, 1 };

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
	reg = open_reg("slab");
	offer_one(reg, &a, mem + 10, 1000);
	offer_one(reg, &b, mem + 20, 10);
	assert_int_equal(stats().regs, 1);
	assert_int_equal(rpcrdma_mem_unregister(domain, mem + 10), -EBUSY);
	end_replied(reg, &a);
	assert_int_equal(rpcrdma_mem_unregister(domain, mem + 10), -EBUSY);
	end_replied(reg, &b);
	assert_int_equal(rpcrdma_mem_unregister(domain, mem + 10), 0);
	assert_int_equal(rr_local_counters(dev->fabric).deregs, 1);

	/* what may not be written is good to be read */
	assert_int_equal(mprotect(mem + page, page, PROT_READ), 0);
	assert_int_equal(rpcrdma_mem_register(domain, mem + page, page), 0);
	assert_int_equal(rr_reg_offer(reg, &a, &iov, 1, 1, RR_ACCESS_REMOTE_READ, false), 0);
	assert_null(a.mem);
	assert_int_equal(rr_reg_offer(reg, &b, &iov, 1, 1, RW, false), -EFAULT);
	end_replied(reg, &a);
	assert_int_equal(munmap(mem + 3 * page, page), 0);
	assert_int_equal(rpcrdma_mem_register(domain, mem + 2 * page, page + 1), -EFAULT);
	rr_reg_close(reg);
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
	struct rr_reg *reg = open_reg("arena");
	struct rr_offer o[3];
	void *p[3], *q;

	(void)state;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(rpcrdma_mem_alloc(domain, 20 * 4096, &p[i]), 0);
		memset(p[i], i, 20 * 4096);
		offer_one(reg, &o[i], p[i], 20 * 4096);
		assert_int_equal(o[i].segs[0].seg.handle, o[0].segs[0].seg.handle);
	}
	assert_int_equal(stats().regs, 1);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(*((char *)p[i] + 20 * 4096 - 1), i);
		end_replied(reg, &o[i]);
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
	rr_reg_close(reg);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(names, setup, teardown),
		cmocka_unit_test_setup_teardown(counts_segments, setup, teardown),
		cmocka_unit_test_setup_teardown(dynamic, setup, teardown),
		cmocka_unit_test_setup_teardown(failure_leaves_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(too_many_segments, setup, teardown),
		cmocka_unit_test_setup_teardown(own_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(memory, setup, teardown),
		cmocka_unit_test_setup_teardown(slab, setup, teardown),
		cmocka_unit_test_setup_teardown(slab_is_shared, setup, teardown),
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
