/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_clnt_plain.c - calls of every shape between our client and our server, nothing going wrong
 *
 * Each shape runs over TCP and over the local fabric: with inline thresholds of 1024, 4096 and
 * 65536, without private data on either side, with chaos, with one credit, with chunks forced, and
 * with each registration strategy. What moved how is read from the counters.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "rpc_pair.h"
#include "lab.h"

struct variant {
	const char *name;
	struct rpc_pair_attr attr;
};

#define LOCAL .transport = RPCRDMA_LOCAL

static struct variant variants[] = {
	{ "tcp", { .transport = RPCRDMA_TCP } },
	{ "tcp, one engine", { .transport = RPCRDMA_TCP, .one_engine = true } },
	{ "local", { LOCAL } },
	{ "local, one engine", { LOCAL, .one_engine = true } },
	{ "local 1024", { LOCAL, .clnt.inline_bytes = 1024, .svc.inline_bytes = 1024 } },
	{ "local 65536", { LOCAL, .clnt.inline_bytes = 65536, .svc.inline_bytes = 65536 } },
	{ "local 65536 to 1024", { LOCAL, .clnt.inline_bytes = 65536, .svc.inline_bytes = 1024 } },
	{ "client without private data", { LOCAL, .clnt.lab = LAB(.no_private_data = true) } },
	{ "server without private data", { LOCAL, .svc.lab = LAB(.no_private_data = true) } },
	{ "one credit", { LOCAL, .svc.credits = 1 } },
	{ "chunks forced", { LOCAL, .clnt.lab = LAB(.force_chunks = true) } },
	{ "dynamic", { LOCAL, .clnt.registration = "dynamic" } },
	{ "slab, foreign memory", { LOCAL, .clnt.registration = "slab" } },
	{ "cache", { LOCAL, .clnt.registration = "cache" } },
	{ "batch, small", { LOCAL, .clnt.registration = "batch", .clnt.reg_entries = 2,
			    .clnt.dirty_watermark = 1 } },
	{ "auto, all copied", { LOCAL, .clnt.bounce_bytes = UINT32_MAX } },
	{ "auto, explicit", { LOCAL, .clnt.monitor = "explicit" } },
	{ "window", { LOCAL, .clnt.registration = "window" } },
	{ "window, one engine", { LOCAL, .clnt.registration = "window", .one_engine = true } },
	{ "window, chunks forced", { LOCAL, .clnt.registration = "window",
				     .clnt.lab = LAB(.force_chunks = true) } },
	{ "window, taken back by the client", { LOCAL, .clnt.registration = "window",
						.svc.no_remote_inv = true } },
	{ "window, nothing remote", { LOCAL, .clnt.registration = "window",
				      .clnt.lab = LAB(.no_private_data = true) } },
	{ "window, chaos", { LOCAL, .clnt.registration = "window",
			     .clnt_local.filters = HOOKS(.chaos_seed = 3),
			     .svc_local.filters = HOOKS(.chaos_seed = 4) } },
	{ "window, chaos, taken back by the client",
	  { LOCAL, .clnt.registration = "window", .svc.no_remote_inv = true,
	    .clnt_local.filters = HOOKS(.chaos_seed = 5),
	    .svc_local.filters = HOOKS(.chaos_seed = 6) } },
	{ "window, bounce area", { LOCAL, .clnt.registration = "window",
				   .clnt_local.vm = RR_LOCAL_VM_NEVER,
				   .svc_local.vm = RR_LOCAL_VM_NEVER } },
	{ "chaos 1", { LOCAL, .clnt_local.filters = HOOKS(.chaos_seed = 1),
		       .svc_local.filters = HOOKS(.chaos_seed = 2) } },
	{ "chaos 2", { LOCAL, .clnt_local.filters = HOOKS(.chaos_seed = 77),
		       .svc_local.filters = HOOKS(.chaos_seed = 78),
		       .clnt.inline_bytes = 1024 } },
	{ "bounce area", { LOCAL, .clnt_local.vm = RR_LOCAL_VM_NEVER,
			   .svc_local.vm = RR_LOCAL_VM_NEVER } },
};

static struct rpc_pair *setup(void **state)
{
	const struct variant *v = *state;

	return rpc_pair_create(&v->attr);
}

static void one(struct rpc_pair *p, enum echo_proc proc, size_t arg, size_t sink, uint32_t n,
		uint32_t head, size_t piece)
{
	struct echo_call c;

	echo_init(&c, p, proc, arg, sink, n, head);
	echo_cut(&c, piece);
	echo_start(&c);
	rpc_pair_until(p, &c.done, 1);
	echo_check(&c, 0);
	echo_fini(&c);
}

static const uint32_t lengths[] = {
	0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 500, 700, 900,
	1020, 1021, 1022, 1023, 1024, 1025, 1026, 1027, 1028, 1029, 1030,
	3900, 4000, 4090, 4091, 4092, 4093, 4094, 4095, 4096, 4097, 4098, 4099, 4100,
	65400, 65536, 65537, (1 << 20) - 3, (1 << 20) - 2, (1 << 20) - 1, 1 << 20,
};

static void null_call(void **state)
{
	struct rpc_pair *p = setup(state);

	one(p, ECHO_NULL, 0, 0, 0, 0, SIZE_MAX);
	one(p, ECHO_NULL, 0, 0, 0, 0, SIZE_MAX);
	assert_int_equal(p->nlog, 2);
	assert_int_equal(p->log[1], p->log[0] + 1);
	rpc_pair_destroy(p);
}

static void payload_both_ways(void **state)
{
	struct rpc_pair *p = setup(state);

	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++)
		one(p, ECHO_BOTH, lengths[i], lengths[i], 1, 0, SIZE_MAX);
	rpc_pair_destroy(p);
}

static void write_and_read(void **state)
{
	struct rpc_pair *p = setup(state);

	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		one(p, ECHO_SINK, lengths[i], 0, 0, 0, SIZE_MAX);
		one(p, ECHO_SOURCE, 0, lengths[i], lengths[i], 0, SIZE_MAX);
		/* short: less comes than there is room for */
		one(p, ECHO_SOURCE, 0, lengths[i] + 5000, lengths[i], 0, SIZE_MAX);
		one(p, ECHO_SOURCE, 0, lengths[i], lengths[i] / 2, 0, SIZE_MAX);
	}
	rpc_pair_destroy(p);
}

static void many_pieces(void **state)
{
	static const size_t pieces[] = { 1, 7, 1000, 4096, 9001, 70000 };
	struct rpc_pair *p = setup(state);

	for (size_t i = 0; i < ARRAY_SIZE(pieces); i++) {
		one(p, ECHO_BOTH, 9003, 9003, 1, 0, pieces[i]);
		one(p, ECHO_BOTH, 100001, 100001, 1, 0, pieces[i]);
		one(p, ECHO_BOTH, 300, 300, 1, 0, pieces[i]);
	}
	p->piece_bytes = 5000;
	one(p, ECHO_BOTH, 100001, 100001, 1, 0, 30001);
	rpc_pair_destroy(p);
}

static void long_messages(void **state)
{
	static const uint32_t heads[] = { 1, 400, 800, 1000, 3900, 4000, 5001, 70000, 200000 };
	struct rpc_pair *p = setup(state);

	for (size_t i = 0; i < ARRAY_SIZE(heads); i++) {
		one(p, ECHO_BOTH, 0, 0, 1, heads[i], SIZE_MAX);
		one(p, ECHO_HEAD, 0, 0, heads[i], 0, SIZE_MAX);
		one(p, ECHO_BOTH, 3, 3, 1, heads[i], SIZE_MAX);
		one(p, ECHO_BOTH, 50001, 50001, 1, heads[i], SIZE_MAX);
		one(p, ECHO_SINK, 50001, 0, 1, heads[i], SIZE_MAX);
	}
	rpc_pair_destroy(p);
}

#define CROWD 300

static void crowd(void **state)
{
	struct rpc_pair *p = setup(state);
	struct echo_call *c = calloc(CROWD, sizeof(*c));

	assert_non_null(c);
	for (unsigned i = 0; i < CROWD; i++) {
		size_t bytes = i % 3 ? i * 40 : i;

		echo_init(&c[i], p, ECHO_BOTH, bytes, bytes, i, i % 5 * 300);
		echo_start(&c[i]);
	}
	for (unsigned i = 0; i < CROWD; i++) {
		rpc_pair_until(p, &c[i].done, 1);
		echo_check(&c[i], 0);
		echo_fini(&c[i]);
	}
	assert_int_equal(p->nlog, CROWD);
	free(c);
	rpc_pair_destroy(p);
}

static void errors_of_rpc(void **state)
{
	struct rpc_pair *p = setup(state);
	struct {
		uint32_t prog, vers, proc;
		int err;
	} cases[] = {
		{ ECHO_PROG + 1, ECHO_VERS, ECHO_BOTH, -EPROTONOSUPPORT },
		{ ECHO_PROG, ECHO_VERS + 1, ECHO_BOTH, -EPROTONOSUPPORT },
		{ ECHO_PROG, ECHO_VERS, 99, -EOPNOTSUPP },
		{ ECHO_PROG, ECHO_VERS, ECHO_AUTH, -EACCES },
		{ ECHO_PROG, ECHO_VERS, ECHO_REJECT,
		  p->addr.transport == RPCRDMA_TCP ? -EREMOTEIO : -EMSGSIZE },
	};
	struct echo_call c;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		for (size_t bytes = 0; bytes <= 20000; bytes += 10000) {
			echo_init(&c, p, ECHO_BOTH, bytes, bytes, 0, 0);
			c.call.prog = cases[i].prog;
			c.call.vers = cases[i].vers;
			c.call.proc = cases[i].proc;
			echo_start(&c);
			rpc_pair_until(p, &c.done, 1);
			echo_check(&c, cases[i].err);
			assert_non_null(c.call.why);
			echo_fini(&c);
			/* and the connection is as good as it was */
			one(p, ECHO_BOTH, 10, 10, 0, 0, SIZE_MAX);
		}
	assert_int_equal(p->ups, 1);
	rpc_pair_destroy(p);
}

static void memory_of_ours(void **state)
{
	struct rpc_pair *p = setup(state);
	struct echo_call c;
	void *mem;

	assert_int_equal(rpcrdma_mem_alloc(p->clnt_domain, 3u << 20, &mem), 0);
	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		echo_init(&c, p, ECHO_BOTH, lengths[i], lengths[i], 3, 0);
		free(c.arg);
		free(c.sink);
		c.own = false;
		c.arg = (uint8_t *)mem + 3;
		c.sink = (uint8_t *)mem + (1 << 20) - 17 + i;
		if (lengths[i] > 900000)
			c.arg = c.sink; /* in place */
		echo_pattern(c.arg, lengths[i], 5);
		c.sink[lengths[i]] = 0xee;
		echo_cut(&c, 400000);
		echo_start(&c);
		rpc_pair_until(p, &c.done, 1);
		echo_check(&c, 0);
		echo_fini(&c);
	}
	rpcrdma_mem_free(p->clnt_domain, mem);
	one(p, ECHO_BOTH, 70000, 70000, 0, 0, SIZE_MAX);
	rpc_pair_destroy(p);
}

/* ---- counted ------------------------------------------------------------------------------ */

/* The local fabric copies messages, and counts that: call and reply, with eleven segments each way. */
#define MESSAGES 1500

static void nothing_is_copied(void **state)
{
	struct rpc_pair_attr a = { .transport = RPCRDMA_LOCAL, .clnt.registration = "dynamic" };
	struct rpc_pair *p = rpc_pair_create(&a);
	struct rpcrdma_stats s;

	(void)state;
	one(p, ECHO_BOTH, 1 << 20, 1 << 20, 0, 0, 100000);
	s = rpc_pair_clnt_stats(p);
	assert_int_equal(s.calls, 1);
	assert_int_equal(s.replies, 1);
	assert_int_equal(s.bytes_out, 1 << 20);
	assert_int_equal(s.bytes_in, 1 << 20);
	assert_in_range(s.bytes_copied, 0, MESSAGES);
	assert_int_equal(s.chunks_read, 1);
	assert_int_equal(s.chunks_write, 1);
	assert_int_equal(s.regs, 22); /* eleven pieces each way */
	assert_int_equal(s.deregs, 22);
	rpc_pair_destroy(p);
}

static void slab_registers_once(void **state)
{
	struct rpc_pair_attr a = { .transport = RPCRDMA_LOCAL };
	struct rpc_pair *p = rpc_pair_create(&a);
	struct rpcrdma_stats s;
	struct echo_call c;
	void *mem;

	(void)state;
	assert_int_equal(rpcrdma_mem_alloc(p->clnt_domain, 1 << 20, &mem), 0);
	for (int i = 0; i < 10; i++) {
		echo_init(&c, p, ECHO_SOURCE, 0, 100000, 100000, 0);
		free(c.sink);
		free(c.arg);
		c.own = false;
		c.sink = mem;
		c.sink[100000] = 0xee;
		echo_cut(&c, SIZE_MAX);
		echo_start(&c);
		rpc_pair_until(p, &c.done, 1);
		echo_check(&c, 0);
		c.arg = NULL;
		echo_fini(&c);
	}
	s = rpc_pair_clnt_stats(p);
	assert_int_equal(s.regs, 1);
	assert_in_range(s.bytes_copied, 0, 10 * MESSAGES);
	rpcrdma_mem_free(p->clnt_domain, mem);
	rpc_pair_destroy(p);
}

/* The Write of a payload whose completion is not waited for and the reply's Send are one chain. */
static void payload_goes_with_its_answer(void **state)
{
	struct rpc_pair_attr a = { .transport = RPCRDMA_LOCAL };
	struct rpc_pair *p = rpc_pair_create(&a);
	struct rpcrdma_stats s;

	(void)state;
	one(p, ECHO_SOURCE, 0, 100000, 100000, 0, SIZE_MAX);
	s = rpc_pair_svc_stats(p);
	assert_int_equal(s.bytes_placed, 100000);
	assert_int_equal(s.posts, 1);
	p->piece_bytes = 30000; /* pieces in front of the last go at once */
	one(p, ECHO_SOURCE, 0, 100000, 100000, 0, SIZE_MAX);
	s = rpc_pair_svc_stats(p);
	assert_int_equal(s.bytes_placed, 200000);
	assert_int_equal(s.posts, 1 + 4);
	rpc_pair_destroy(p);
}

/* Calls that are answered at once never pile up, and are demand all the same if they overlap. */
static void credits_grow_where_nothing_waits(void **state)
{
	static struct echo_call calls[64];
	struct rpc_pair_attr a = { .transport = RPCRDMA_LOCAL };
	struct rpc_pair *p = rpc_pair_create(&a);
	struct rpcrdma_clnt_info info;

	(void)state;
	for (unsigned i = 0; i < 100; i++)
		echo_run(p, 100, 0);
	rpcrdma_clnt_info(p->clnt, &info);
	assert_int_equal(info.credits, 8);
	for (unsigned i = 0; i < 64; i++) {
		echo_init(&calls[i], p, ECHO_SOURCE, 0, 100, 100, 0);
		echo_start(&calls[i]);
	}
	for (unsigned i = 0; i < 64; i++) {
		rpc_pair_until(p, &calls[i].done, 1);
		echo_check(&calls[i], 0);
		echo_fini(&calls[i]);
	}
	rpcrdma_clnt_info(p->clnt, &info);
	assert_in_range(info.credits, 16, 64);
	rpc_pair_destroy(p);
}

static void tcp_copies_once(void **state)
{
	struct rpc_pair_attr a = { .transport = RPCRDMA_TCP };
	struct rpc_pair *p = rpc_pair_create(&a);
	struct rpcrdma_stats s;

	(void)state;
	one(p, ECHO_SOURCE, 0, 1 << 20, 1 << 20, 0, 300000);
	s = rpc_pair_clnt_stats(p);
	assert_int_equal(s.bytes_in, 1 << 20);
	assert_in_range(s.bytes_copied, 1 << 20, (1 << 20) + 4096);
	rpc_pair_destroy(p);
}

/* checklist 51: without any RNR retry neither side ever sends where no receive is posted */
static void no_receive_is_ever_missing(void **state)
{
	static const uint32_t credits[] = { 1, 2, 8, 64 };

	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(credits) * 2; k++) {
		struct rpc_pair_attr a = { .transport = RPCRDMA_LOCAL,
					   .svc.credits = credits[k / 2],
					   .clnt_local.filters = HOOKS(.chaos_seed = k % 2 ? k : 0),
					   .svc_local.filters = HOOKS(.chaos_seed = k % 2 ? k + 50 : 0) };
		struct rpc_pair *p = rpc_pair_create(&a);
		struct echo_call *c = calloc(CROWD, sizeof(*c));

		assert_non_null(c);
		for (unsigned i = 0; i < CROWD; i++) {
			echo_init(&c[i], p, ECHO_BOTH, i % 7 * 900, i % 7 * 900, i, 0);
			echo_start(&c[i]);
		}
		for (unsigned i = 0; i < CROWD; i++) {
			rpc_pair_until(p, &c[i].done, 1);
			echo_check(&c[i], 0);
			echo_fini(&c[i]);
		}
		assert_int_equal(rpc_pair_clnt_stats(p).rnr + rpc_pair_svc_stats(p).rnr, 0);
		assert_int_equal(rpc_pair_clnt_stats(p).reconnects, 0);
		assert_int_equal(rpc_pair_clnt_stats(p).credits_low, MIN(credits[k / 2], 8u));
		assert_int_equal(p->ups, 1);
		free(c);
		rpc_pair_destroy(p);
	}
}

static void says_what_it_is(void **state)
{
	struct rpc_pair_attr a = { .transport = RPCRDMA_LOCAL, .clnt.inline_bytes = 8192,
				   .svc.credits = 5 };
	struct rpc_pair *p = rpc_pair_create(&a);
	struct rpcrdma_clnt_info info;

	(void)state;
	rpcrdma_clnt_info(p->clnt, &info);
	assert_int_equal(info.state, RPCRDMA_CLNT_CONNECTING);
	one(p, ECHO_BOTH, 1, 1, 0, 0, SIZE_MAX);
	rpcrdma_clnt_info(p->clnt, &info);
	assert_int_equal(info.state, RPCRDMA_CLNT_UP);
	assert_int_equal(info.send_inline, 4096);
	assert_int_equal(info.recv_inline, 4096);
	assert_int_equal(info.credits, 5);
	assert_int_equal(info.credits_low, 5);
	assert_string_equal(info.registration, "auto");
	assert_string_equal(info.device, "local");
	assert_int_equal(info.reconnects, 0);
	rpc_pair_destroy(p);
}

int main(void)
{
	static const struct CMUnitTest shapes[] = {
		cmocka_unit_test(null_call),
		cmocka_unit_test(payload_both_ways),
		cmocka_unit_test(write_and_read),
		cmocka_unit_test(many_pieces),
		cmocka_unit_test(long_messages),
		cmocka_unit_test(crowd),
		cmocka_unit_test(errors_of_rpc),
		cmocka_unit_test(memory_of_ours),
	};
	static const struct CMUnitTest counted[] = {
		cmocka_unit_test(nothing_is_copied),
		cmocka_unit_test(slab_registers_once),
		cmocka_unit_test(payload_goes_with_its_answer),
		cmocka_unit_test(credits_grow_where_nothing_waits),
		cmocka_unit_test(tcp_copies_once),
		cmocka_unit_test(no_receive_is_ever_missing),
		cmocka_unit_test(says_what_it_is),
	};
	enum { NSHAPES = ARRAY_SIZE(shapes), NVARIANTS = ARRAY_SIZE(variants) };
	static struct CMUnitTest all[NSHAPES * NVARIANTS];
	static char names[NSHAPES * NVARIANTS][80];

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		struct variant *v = &variants[i / NSHAPES];

		all[i] = shapes[i % NSHAPES];
		all[i].initial_state = v;
		snprintf(names[i], sizeof(names[i]), "%s: %s", v->name, shapes[i % NSHAPES].name);
		all[i].name = names[i];
	}
	/* the expected counts hold for the default thresholds and credits only */
	if (getenv("LEAT_TEST_VARIANT"))
		return cmocka_run_group_tests(all, NULL, NULL);
	return cmocka_run_group_tests(all, NULL, NULL) +
	       cmocka_run_group_tests(counted, NULL, NULL);
}
