/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_reg.c - registration strategies (reg*.c) and their memory (mem.c) on the local fabric
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "local.h"
#include "reg.h"

#define RW (RR_ACCESS_LOCAL_WRITE | RR_ACCESS_REMOTE_WRITE)

static struct rpcrdma_domain *domain;
static struct rpcrdma_engine *engine;
static struct rr_dev *dev;
static struct rr_pd *pd;

static int setup(void **state)
{
	(void)state;
	assert_int_equal(rpcrdma_domain_create(NULL, &domain), 0);
	assert_int_equal(rpcrdma_engine_create(domain, NULL, &engine), 0);
	assert_int_equal(rr_domain_dev(domain, RPCRDMA_LOCAL, &dev), 0);
	assert_int_equal(rr_pd_create(dev->fabric, &pd), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	rr_pd_destroy(pd);
	rpcrdma_engine_destroy(engine);
	rpcrdma_domain_destroy(domain);
	return 0;
}

static void names(void **state)
{
	(void)state;
	assert_string_equal(rr_reg_canonical(NULL), "auto");
	assert_string_equal(rr_reg_canonical("dynamic"), "dynamic");
	assert_string_equal(rr_reg_canonical("slab"), "slab");
	assert_null(rr_reg_canonical("cache"));
	assert_null(rr_reg_canonical(""));
}

static void counts_pieces(void **state)
{
	char mem[30];
	struct iovec iov[4] = { { mem, 10 }, { mem, 0 }, { mem + 10, 5 }, { mem + 15, 15 } };

	(void)state;
	assert_int_equal(rr_reg_count(iov, 4, 0), 0);
	assert_int_equal(rr_reg_count(iov, 4, 1), 1);
	assert_int_equal(rr_reg_count(iov, 4, 10), 1);
	assert_int_equal(rr_reg_count(iov, 4, 11), 2);
	assert_int_equal(rr_reg_count(iov, 4, 30), 3);
	assert_int_equal(rr_reg_count(iov, 4, 99), 3);
	assert_int_equal(rr_reg_count(NULL, 0, 0), 0);
}

static void dynamic(void **state)
{
	static char mem[1000];
	struct iovec iov[4] = { { mem, 100 }, { mem, 0 }, { mem + 200, 300 }, { mem + 600, 400 } };
	struct rr_reg_piece pieces[RR_REG_PIECES_MAX];
	struct rr_reg reg;
	unsigned n = 99;

	(void)state;
	rr_reg_init(&reg, engine, pd, "dynamic");
	assert_int_equal(rr_reg_get(&reg, iov, 4, 450, RW, pieces, &n), 0);
	assert_int_equal(n, 3);
	assert_int_equal(pieces[0].seg.length, 100);
	assert_int_equal(pieces[1].seg.length, 300);
	assert_int_equal(pieces[2].seg.length, 50); /* no more than was asked */
	assert_int_equal(pieces[2].seg.offset, (uintptr_t)(mem + 600));
	assert_int_not_equal(pieces[0].seg.handle, pieces[1].seg.handle);
	assert_int_equal(engine->stats.regs, 3);
	assert_true(rr_reg_put(&reg, pieces, n));
	assert_int_equal(engine->stats.deregs, 3);
	rr_reg_fini(&reg);
}

static void failure_leaves_nothing(void **state)
{
	static char mem[1000];
	struct iovec iov[3] = { { mem, 100 }, { mem + 200, 300 }, { mem + 600, 400 } };
	struct rr_reg_piece pieces[RR_REG_PIECES_MAX];
	struct rr_local_hooks *hooks = rr_local_hooks(dev->fabric);
	struct rr_reg reg;
	unsigned n = 99;

	(void)state;
	rr_reg_init(&reg, engine, pd, "auto");
	hooks->fail_reg = 3;
	assert_int_equal(rr_reg_get(&reg, iov, 3, 800, RW, pieces, &n), -ENOMEM);
	assert_int_equal(n, 99);
	assert_int_equal(engine->stats.regs, engine->stats.deregs);
	hooks->fail_reg = 0;
	rr_reg_fini(&reg);
}

static void too_many_pieces(void **state)
{
	static char mem[40];
	struct iovec iov[17];
	struct rr_reg_piece pieces[RR_REG_PIECES_MAX];
	struct rr_reg reg;
	unsigned n = 0;

	(void)state;
	for (int i = 0; i < 17; i++)
		iov[i] = (struct iovec){ mem + 2 * i, 1 };
	rr_reg_init(&reg, engine, pd, "dynamic");
	assert_int_equal(rr_reg_get(&reg, iov, 17, 17, RW, pieces, &n), -ENOBUFS);
	assert_int_equal(rr_reg_get(&reg, iov, 17, 16, RW, pieces, &n), 0);
	assert_int_equal(n, 16);
	assert_true(rr_reg_put(&reg, pieces, n));
	rr_reg_fini(&reg);
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
	struct rr_reg_piece pieces[RR_REG_PIECES_MAX], foreign[RR_REG_PIECES_MAX];
	static char other[100];
	struct iovec iov[2], out = { other, 100 };
	struct rr_reg reg, second;
	unsigned n = 0;
	void *p;

	(void)state;
	assert_int_equal(rpcrdma_mem_alloc(domain, 100000, &p), 0);
	iov[0] = (struct iovec){ (char *)p + 10, 20 };
	iov[1] = (struct iovec){ (char *)p + 5000, 2000 };
	rr_reg_init(&reg, engine, pd, "slab");
	rr_reg_init(&second, engine, pd, "auto");
	for (int i = 0; i < 3; i++) {
		assert_int_equal(rr_reg_get(&reg, iov, 2, 2020, RW, pieces, &n), 0);
		assert_int_equal(n, 2);
		assert_int_equal(pieces[0].seg.handle, pieces[1].seg.handle);
		assert_int_equal(pieces[1].seg.offset, (uintptr_t)p + 5000);
		assert_false(rr_reg_put(&reg, pieces, n)); /* within reach still */
	}
	assert_int_equal(engine->stats.regs, 1);
	assert_int_equal(rr_reg_get(&reg, &out, 1, 100, RW, foreign, &n), -ENOENT);

	/* the other connection has a key of its own, and takes other memory too */
	assert_int_equal(rr_reg_get(&second, iov, 2, 2020, RW, foreign, &n), 0);
	assert_int_not_equal(foreign[0].seg.handle, pieces[0].seg.handle);
	assert_false(rr_reg_put(&second, foreign, n));
	assert_int_equal(rr_reg_get(&second, &out, 1, 100, RW, foreign, &n), 0);
	assert_true(rr_reg_put(&second, foreign, n));

	/* a registration goes with its connection or with its memory, and comes back anew */
	rr_reg_revoke(&reg);
	assert_true(list_is_empty(&reg.slabs));
	assert_false(list_is_empty(&second.slabs));
	assert_int_equal(rr_reg_get(&reg, iov, 2, 2020, RW, pieces, &n), 0);
	assert_false(rr_reg_put(&reg, pieces, n));
	rpcrdma_mem_free(domain, p);
	assert_true(list_is_empty(&reg.slabs));
	assert_true(list_is_empty(&second.slabs));
	assert_int_equal(rr_reg_get(&reg, iov, 2, 2020, RW, pieces, &n), -ENOENT);
	rr_reg_fini(&reg);
	rr_reg_fini(&second);
}

static void same_address_again(void **state)
{
	struct rr_reg_piece piece;
	struct rr_reg reg;
	struct iovec iov;
	unsigned n = 0;
	void *p;

	(void)state;
	rr_reg_init(&reg, engine, pd, "slab");
	for (int i = 0; i < 5; i++) { /* most likely mapped where the last one was */
		assert_int_equal(rpcrdma_mem_alloc(domain, 4096, &p), 0);
		iov = (struct iovec){ p, 4096 };
		assert_int_equal(rr_reg_get(&reg, &iov, 1, 4096, RW, &piece, &n), 0);
		assert_ptr_equal(piece.mr->addr, p);
		assert_false(rr_reg_put(&reg, &piece, 1));
		rpcrdma_mem_free(domain, p);
	}
	assert_int_equal(engine->stats.regs, 5);
	rr_reg_fini(&reg);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),
		cmocka_unit_test(counts_pieces),
		cmocka_unit_test_setup_teardown(dynamic, setup, teardown),
		cmocka_unit_test_setup_teardown(failure_leaves_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(too_many_pieces, setup, teardown),
		cmocka_unit_test_setup_teardown(memory, setup, teardown),
		cmocka_unit_test_setup_teardown(slab, setup, teardown),
		cmocka_unit_test_setup_teardown(same_address_again, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
