/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_mem_replace.c - other pages under memory whose file another process has open
 */
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine_int.h"
#include "local.h"
#include "pool.h"
#include "reg_int.h"

#define RW (RR_ACCESS_LOCAL_WRITE | RR_ACCESS_REMOTE_WRITE)
#define PAGE 4096u
#define PAGES 1024u
#define BYTES ((size_t)PAGES * PAGE)

static struct rpcrdma_domain *domain;
static struct rpcrdma_engine *engine;
static struct rr_dev *dev;
static uint8_t *mem;    /* of rpcrdma_mem_alloc() */
static uint8_t *theirs; /* the file of it, mapped by a server */

static int setup(void **state)
{
	void *p;

	(void)state;
	assert_int_equal(sysconf(_SC_PAGESIZE), PAGE);
	assert_int_equal(rpcrdma_domain_create(NULL, &domain), 0);
	assert_int_equal(rpcrdma_engine_create(domain, NULL, &engine), 0);
	assert_int_equal(rr_domain_dev(domain, RPCRDMA_LOCAL, &dev), 0);
	assert_int_equal(rpcrdma_mem_alloc(domain, BYTES, &p), 0);
	mem = p;
	theirs = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
		      rr_mem_find(domain, mem, BYTES)->x.fd, 0);
	assert_ptr_not_equal(theirs, MAP_FAILED);
	for (size_t i = 0; i < BYTES; i++)
		mem[i] = (uint8_t)(i * 7 + i / 4093);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	munmap(theirs, BYTES);
	rpcrdma_engine_destroy(engine);
	rpcrdma_domain_destroy(domain);
	return 0;
}

static unsigned descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* Return: the number of mappings of this process */
static unsigned mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned n = 0;
	int c;

	assert_non_null(f);
	while ((c = getc(f)) != EOF)
		n += c == '\n';
	(void)fclose(f);
	return n;
}

static void is_as_filled(void)
{
	for (size_t i = 0; i < BYTES; i++)
		if (mem[i] != (uint8_t)(i * 7 + i / 4093))
			fail_msg("byte %zu has changed", i);
}

/* Are bytes written to the file at @off seen in the memory? */
static bool is_shared(size_t off)
{
	uint8_t was = mem[off], old = theirs[off];
	bool shared;

	theirs[off] = (uint8_t)(was + 1);
	shared = mem[off] != was;
	theirs[off] = old;
	return shared;
}

static int replace(size_t off, size_t len)
{
	return rr_mem_replace(domain, mem + off, len);
}

/* Whole pages of the range, and nothing besides. */
static void whole_pages(void **state)
{
	(void)state;
	assert_int_equal(replace(PAGE + 1, 2 * PAGE - 2), 0); /* none is in it whole */
	assert_int_equal(replace(100, 0), 0);
	for (size_t at = 0; at < BYTES; at += PAGE)
		assert_true(is_shared(at));
	assert_int_equal(replace(PAGE - 1, 2 * PAGE + 2), 0);
	is_as_filled();
	assert_true(is_shared(PAGE - 1));
	assert_false(is_shared(PAGE));
	assert_false(is_shared(3 * PAGE - 1));
	assert_true(is_shared(3 * PAGE));
	assert_int_equal(rr_mem_span(domain, mem, BYTES), PAGE);
	assert_int_equal(rr_mem_span(domain, mem + 10, 20), 20);
	assert_int_equal(rr_mem_span(domain, mem + PAGE, BYTES - PAGE), 2 * PAGE);
	assert_int_equal(rr_mem_span(domain, mem + 3 * PAGE, BYTES - 3 * PAGE), BYTES - 3 * PAGE);
	assert_int_equal(rr_mem_span(domain, &domain, 8), 8);
}

/* At the beginning, at the end, over parts that were made before, and all of it. */
static void every_shape(void **state)
{
	static const struct { size_t page, pages; } shapes[] = {
		{ 0, 1 }, { PAGES - 1, 1 }, { 10, 20 }, { 15, 5 }, { 5, 30 }, { 0, 7 }, { 500, 524 },
		{ 12, 500 }, { 0, PAGES },
	};
	bool gone[PAGES] = { false };

	(void)state;
	for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++) {
		assert_int_equal(replace(shapes[i].page * PAGE, shapes[i].pages * PAGE), 0);
		for (size_t p = 0; p < PAGES; p++) {
			gone[p] |= p >= shapes[i].page && p < shapes[i].page + shapes[i].pages;
			assert_int_equal(is_shared(p * PAGE), !gone[p]);
		}
		is_as_filled();
	}
}

/* However often: descriptors and mappings are as many as after the first time, and free() takes them all. */
static void nothing_grows(void **state)
{
	unsigned fds, maps, before = descriptors();

	(void)state;
	assert_int_equal(replace(3 * PAGE, 64 * PAGE), 0);
	assert_int_equal(replace(100 * PAGE, 64 * PAGE), 0);
	fds = descriptors();
	maps = mappings();
	for (unsigned i = 0; i < 200; i++) {
		assert_int_equal(replace(3 * PAGE, 64 * PAGE), 0);
		assert_int_equal(replace(100 * PAGE - 8, 64 * PAGE + 16), 0);
	}
	assert_int_equal(descriptors(), fds);
	assert_int_equal(mappings(), maps);
	is_as_filled();
	rpcrdma_mem_free(domain, mem);
	assert_null(rr_mem_find(domain, mem, 1));
	assert_null(rr_mem_find(domain, mem + 50 * PAGE, 1));
	assert_null(rr_mem_find(domain, mem + BYTES - 1, 1));
	assert_true(list_is_empty(&domain->mems));
	assert_int_equal(descriptors(), before - 1);
}

static void what_cannot_be(void **state)
{
	static uint8_t other[4 * PAGE];
	struct rlimit was, none = { 0, 0 };
	unsigned fds = descriptors();

	(void)state;
	assert_int_equal(rr_mem_replace(domain, other, sizeof(other)), -ENOENT);
	assert_int_equal(rpcrdma_mem_register(domain, other, sizeof(other)), 0);
	assert_int_equal(rr_mem_replace(domain, other, sizeof(other)), -ENOENT);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	none.rlim_max = was.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(replace(2 * PAGE, 2 * PAGE), -ENOMEM);
	assert_int_equal(replace(0, BYTES), -ENOMEM);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	is_as_filled();
	assert_true(is_shared(2 * PAGE));
	assert_int_equal(rr_mem_span(domain, mem, BYTES), BYTES);
	assert_int_equal(descriptors(), fds);
	assert_int_equal(rpcrdma_mem_unregister(domain, other), 0);
}

static struct rr_reg *open_to(const char *peer)
{
	struct rpcrdma_clnt_attr attr = { .registration = "slab", .monitor = "none",
					  .no_bounce = true };
	struct rr_reg *reg;

	assert_int_equal(rr_reg_check(domain, &attr), 0);
	assert_int_equal(rr_reg_open(engine, dev, peer, &attr, &reg), 0);
	return reg;
}

static struct rr_reg *open_reg(void)
{
	return open_to("server");
}

static int offer_all(struct rr_reg *reg, struct rr_offer *o, size_t bytes)
{
	const struct iovec all = { mem, BYTES };

	return rr_reg_offer(reg, o, &all, 1, bytes, RW, false);
}

/* What was registered before reaches the old pages: it is not offered again, by no connection, and a segment that
 * has it keeps it until it ends. */
static void registrations(void **state)
{
	struct rr_reg *busy = open_reg(), *idle = open_to("another");
	struct rr_offer o = { .n = 0 }, other = { .n = 0 };
	uint32_t key, idle_key;
	uint64_t deregs;

	(void)state;
	assert_int_equal(offer_all(busy, &o, BYTES), 0);
	assert_int_equal(o.n, 1);
	key = o.segs[0].seg.handle;
	assert_int_equal(offer_all(idle, &other, BYTES), 0);
	idle_key = other.segs[0].seg.handle;
	assert_int_equal(rr_reg_end(idle, &other, 1, RR_END_DONE, NULL), 0);

	assert_int_equal(replace(10 * PAGE, PAGE), 0);
	assert_true(list_is_empty(&rr_reg_conn_of(idle)->shared->slabs));
	assert_false(list_is_empty(&rr_reg_conn_of(busy)->shared->slabs));
	/* three parts now, and a key for each */
	assert_int_equal(offer_all(idle, &other, BYTES), 0);
	assert_int_equal(other.n, 3);
	for (unsigned i = 0; i < 3; i++)
		assert_int_not_equal(other.segs[i].seg.handle, idle_key);
	assert_int_equal(other.segs[0].seg.length, 10 * PAGE);
	assert_int_equal(other.segs[1].seg.length, PAGE);
	assert_int_equal(other.segs[2].seg.offset, (uintptr_t)mem + 11 * PAGE);
	assert_int_equal(rr_reg_end(idle, &other, 1, RR_END_DONE, NULL), 0);
	/* so has the connection with a segment out */
	assert_int_equal(offer_all(busy, &other, PAGE), 0);
	assert_int_not_equal(other.segs[0].seg.handle, key);
	assert_int_equal(rr_reg_end(busy, &other, 1, RR_END_DONE, NULL), 0);
	deregs = engine->stats.deregs;
	/* the segment that was out goes as ever, its registration goes with it, and the next one has a key of its own */
	assert_int_equal(rr_reg_end(busy, &o, 1, RR_END_DONE, NULL), 0);
	assert_int_equal(engine->stats.deregs, deregs + 1);
	assert_int_equal(offer_all(busy, &o, PAGE), 0);
	assert_int_not_equal(o.segs[0].seg.handle, key);
	rr_reg_revoke(busy); /* with a segment out */
	assert_int_equal(rr_reg_end(busy, &o, 1, RR_END_LOST, NULL), 0);
	rr_reg_close(busy);
	rr_reg_close(idle);
}

/* One call's memory in more parts than a chunk has segments is copied. */
static void too_many_parts(void **state)
{
	struct rr_reg *reg = open_reg();
	struct rr_offer o = { .n = 0 };

	(void)state;
	for (size_t i = 0; i < 8; i++)
		assert_int_equal(replace((2 * i + 1) * PAGE, PAGE), 0);
	assert_int_equal(offer_all(reg, &o, BYTES), 0); /* in 17 */
	assert_non_null(o.mem);
	assert_int_equal(rr_reg_end(reg, &o, 1, RR_END_DONE, NULL), 0);
	assert_int_equal(offer_all(reg, &o, 16 * PAGE), 0);
	assert_null(o.mem);
	assert_int_equal(o.n, 16);
	assert_int_equal(rr_reg_end(reg, &o, 1, RR_END_DONE, NULL), 0);
	rr_reg_close(reg);
}

/* A service's transfers go to the new pages, across all parts; one that is under way keeps its registration. */
static void transfers_of_a_service(void **state)
{
	struct rpcrdma_buf *before, *after, *again;

	(void)state;
	assert_int_equal(rr_svc_mem_get(domain, dev, mem + 100, BYTES - 100, true, &before), 0);
	assert_ptr_equal(before->addr, mem);
	assert_int_equal(rr_svc_mem_get(domain, dev, mem, 1, true, &again), 0);
	assert_ptr_equal(again, before);
	rr_svc_mem_put(domain, again);
	assert_int_equal(rr_mem_replace(domain, mem + 8 * PAGE, 4 * PAGE), 0);
	assert_int_equal(rr_svc_mem_get(domain, dev, mem, BYTES, true, &after), 0);
	assert_ptr_not_equal(after, before);
	assert_ptr_not_equal(rr_buf_mr(after, dev), rr_buf_mr(before, dev));
	assert_true(after->addr == mem && after->bytes == BYTES);
	assert_int_equal(rr_svc_mem_get(domain, dev, mem, BYTES + 1, true, &again), -EFAULT);
	rr_svc_mem_put(domain, before);
	rr_svc_mem_put(domain, after);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(whole_pages, setup, teardown),
		cmocka_unit_test_setup_teardown(every_shape, setup, teardown),
		cmocka_unit_test_setup_teardown(nothing_grows, setup, teardown),
		cmocka_unit_test_setup_teardown(what_cannot_be, setup, teardown),
		cmocka_unit_test_setup_teardown(registrations, setup, teardown),
		cmocka_unit_test_setup_teardown(too_many_parts, setup, teardown),
		cmocka_unit_test_setup_teardown(transfers_of_a_service, setup, teardown),
	};

	return cmocka_run_group_tests_name("mem_replace", tests, NULL, NULL);
}
