/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_sized.c - programs built with older and newer releases of rpcrdma.h
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "engine_int.h"
#include "rpcrdma.h"
#include "rpcrdma_lab.h"
#include "sized.h"

struct first {
	size_t size;
	void *a;
};

struct today {
	size_t size;
	void *a;
	uint32_t b, c;
};

/* As from another object file: the compiler does not know how large @from is. */
__attribute__((noinline)) static int in(struct today *to, const void *from)
{
	return rr_sized_in(to, sizeof(struct today), sizeof(struct first), from);
}

static void inputs(void **state)
{
	char more[sizeof(struct today) + 8] = { 0 };
	struct today from = { .a = &from, .b = 7, .c = 8 }, to;

	(void)state;
	assert_int_equal(in(&to, NULL), 0);
	assert_true(!to.size && !to.a && !to.b);

	/* the first release says nothing about its size; what follows its structure is not read */
	assert_int_equal(in(&to, &from), 0);
	assert_ptr_equal(to.a, &from);
	assert_true(to.size == sizeof(to) && !to.b && !to.c);
	from.size = sizeof(struct first);
	assert_int_equal(in(&to, &from), 0);
	assert_true(to.a == &from && !to.b);
	from.size = offsetof(struct today, c);
	assert_int_equal(in(&to, &from), 0);
	assert_true(to.b == 7 && !to.c);
	from.size = sizeof(from);
	assert_int_equal(in(&to, &from), 0);
	assert_true(to.b == 7 && to.c == 8);

	from.size = sizeof(struct first) - 1;
	assert_int_equal(in(&to, &from), -EINVAL);
	assert_null(to.a);

	/* a later release: its own members must not be set */
	from.size = sizeof(more);
	memcpy(more, &from, sizeof(from));
	assert_int_equal(in(&to, more), 0);
	assert_true(to.c == 8 && to.size == sizeof(to));
	more[sizeof(more) - 1] = 1;
	assert_int_equal(in(&to, more), -E2BIG);
	assert_true(!to.a && !to.c);
}

static void outputs(void **state)
{
	struct today from = { 1, &from, 2, 3 }, to = { .b = 99, .c = 99 };
	struct { struct today t; uint64_t more; } newer = { .more = 5 };

	(void)state;
	rr_sized_out(&to, sizeof(struct first), &from, sizeof(from));
	assert_true(to.a == &from && to.b == 99);
	rr_sized_out(&newer, sizeof(newer), &from, sizeof(from));
	assert_true(newer.t.c == 3 && newer.more == 0);
}

/* Checks the sizes of all structures of attributes and of operations. */
static void all_of_them(void **state)
{
	struct { struct rpcrdma_domain_attr a; long new; } domain = { .a.size = sizeof(domain), .new = 1 };
	struct { struct rpcrdma_engine_attr a; long new; } engine = { .a.size = sizeof(engine), .new = 1 };
	struct { struct rpcrdma_clnt_attr a; long new; } clnt = { .a.size = sizeof(clnt), .new = 1 };
	struct { struct rpcrdma_svc_attr a; long new; } svc = { .a.size = sizeof(svc), .new = 1 };
	struct { struct rpcrdma_svc_ops a; long new; } ops = { .a.size = sizeof(ops), .new = 1 };
	struct { struct rpcrdma_lab a; long new; } lab = { .a.size = sizeof(lab), .new = 1 };
	struct rpcrdma_domain_attr da = { .lab = &lab.a };
	struct rpcrdma_clnt_attr ca = { .lab = &lab.a };
	struct rpcrdma_svc_attr sa = { .lab = &lab.a };
	struct rpcrdma_svc_ops plain = { .size = sizeof(plain) };
	const struct rpcrdma_addr addr = { .transport = RPCRDMA_TCP, .host = "127.0.0.1" };
	struct rpcrdma_domain *d;
	struct rpcrdma_engine *e;
	struct rpcrdma_listener *l;
	struct rpcrdma_clnt *c;

	(void)state;
	assert_int_equal(rpcrdma_domain_create(&domain.a, &d), -E2BIG);
	assert_int_equal(rpcrdma_domain_create(&da, &d), -E2BIG);
	assert_int_equal(rpcrdma_domain_create(NULL, &d), 0);
	assert_int_equal(rpcrdma_engine_create(d, &engine.a, &e), -E2BIG);
	assert_int_equal(rpcrdma_engine_create(d, NULL, &e), 0);
	assert_int_equal(rpcrdma_clnt_open(e, &clnt.a, &c), -E2BIG);
	assert_int_equal(rpcrdma_clnt_open(e, &ca, &c), -E2BIG);
	assert_int_equal(rpcrdma_listen(e, &addr, &svc.a, &plain, NULL, &l), -E2BIG);
	assert_int_equal(rpcrdma_listen(e, &addr, &sa, &plain, NULL, &l), -E2BIG);
	assert_int_equal(rpcrdma_listen(e, &addr, NULL, &ops.a, NULL, &l), -E2BIG);
	svc.new = ops.new = 0;
	assert_int_equal(rpcrdma_listen(e, &addr, &svc.a, &ops.a, NULL, &l), 0);
	rpcrdma_listener_close(l);
	rpcrdma_engine_destroy(e);
	rpcrdma_domain_destroy(d);
}

static void version(void **state)
{
	char text[32];

	(void)state;
	snprintf(text, sizeof(text), "%d.%d.", RPCRDMA_VERSION_MAJOR, RPCRDMA_VERSION_MINOR);
	assert_memory_equal(rpcrdma_version(), text, strlen(text));
	assert_string_equal(rpcrdma_version(), LEAT_VERSION);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(inputs),
		cmocka_unit_test(outputs),
		cmocka_unit_test(all_of_them),
		cmocka_unit_test(version),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
