/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_modes.c - the other ways of moving data: agreed or refused, and used where they should be
 *
 * That all else works as before when they are used is what test_variant_modes.sh sees to.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "inside.h"
#include "rpc_pair.h"
#include "lab.h"

static struct rpc_pair_attr with(unsigned offered, unsigned wanted)
{
	static struct rpcrdma_lab svc, clnt;

	svc = (struct rpcrdma_lab){ .modes = offered };
	clnt = (struct rpcrdma_lab){ .modes = wanted };
	return (struct rpc_pair_attr){ .transport = RPCRDMA_LOCAL, .svc.lab = &svc, .clnt.lab = &clnt,
				       .clnt.backoff_ms = 1 };
}

static void one(struct rpc_pair *p, enum echo_proc proc, size_t arg, size_t sink)
{
	struct echo_call c;

	echo_init(&c, p, proc, arg, sink, (uint32_t)(proc == ECHO_SOURCE ? sink : 0), 4);
	echo_start(&c);
	rpc_pair_until(p, &c.done, 1);
	echo_check(&c, 0);
	echo_fini(&c);
}

/* ---- agreed ------------------------------------------------------------------------------- */

static void names(void **state)
{
	char text[RPCRDMA_MODES_TEXT];
	unsigned modes = 99;

	(void)state;
	for (unsigned m = 0; m <= RPCRDMA_MODES_ALL; m++) {
		rpcrdma_modes_print(m, text, sizeof(text));
		assert_int_equal(rpcrdma_modes_parse(text, &modes), 0);
		assert_int_equal(modes, m);
	}
	assert_int_equal(rpcrdma_modes_parse("hybrid,read-read", &modes), 0);
	assert_int_equal(modes, RPCRDMA_HYBRID | RPCRDMA_READ_READ);
	assert_int_equal(rpcrdma_modes_parse("read-write", &modes), -EINVAL);
	assert_int_equal(rpcrdma_modes_parse("hybrid, none", &modes), -EINVAL);
	assert_int_equal(rpcrdma_modes_parse("", &modes), -EINVAL);
	assert_int_equal(rpcrdma_modes_parse("hybri", &modes), -EINVAL);
}

static void all_that_is_asked_or_nothing(void **state)
{
	(void)state;
	for (unsigned offered = 0; offered <= RPCRDMA_MODES_ALL; offered++) {
		for (unsigned wanted = 0; wanted <= RPCRDMA_MODES_ALL; wanted++) {
			struct rpc_pair_attr a = with(offered, wanted);
			struct rpc_pair *p = rpc_pair_create(&a);
			struct rpcrdma_clnt_info info;
			struct echo_call c;

			echo_init(&c, p, ECHO_BOTH, 100, 100, 0, 4);
			echo_start(&c);
			rpc_pair_until(p, &c.done, 1);
			echo_check(&c, wanted & ~offered ? -ENOPROTOOPT : 0);
			rpcrdma_clnt_info(p->clnt, &info);
			assert_int_equal(info.modes, wanted & ~offered ? 0 : wanted);
			if (wanted & ~offered)
				assert_non_null(strstr(p->last_why, "the server does not offer"));
			echo_fini(&c);
			rpc_pair_destroy(p);
		}
	}
}

/* The pool's limit bounds the memory for modes; a connection that finds none left is refused the mode. */
static void memory_for_so_many(void **state)
{
	struct rpc_pair_attr a = with(RPCRDMA_READ_READ, RPCRDMA_READ_READ);
	struct rpc_pair *p = rpc_pair_create(&a);
	struct rpcrdma_clnt_attr ca = { .addr = p->addr, .lab = LAB(.modes = RPCRDMA_READ_READ), .backoff_ms = 1 };
	struct rpcrdma_clnt *more[32];
	struct rpcrdma_clnt_info info;
	unsigned n = 0, refused = 0;

	(void)state;
	one(p, ECHO_BOTH, 100000, 100000);
	for (; n < ARRAY_SIZE(more) && !refused; n++) {
		struct echo_call c;
		struct rpcrdma_clnt *first = p->clnt;

		assert_int_equal(rpcrdma_clnt_open(p->clnt_engine, &ca, &more[n]), 0);
		p->clnt = more[n];
		echo_init(&c, p, ECHO_BOTH, 100000, 100000, 0, 4);
		echo_start(&c);
		rpc_pair_until(p, &c.done, 1);
		refused = c.err == -ENOPROTOOPT;
		echo_check(&c, refused ? -ENOPROTOOPT : 0);
		echo_fini(&c);
		p->clnt = first;
	}
	assert_true(refused);
	assert_in_range(n, 4, 16);
	rpcrdma_clnt_info(more[n - 1], &info);
	assert_non_null(strstr(info.why, "no memory left"));
	one(p, ECHO_BOTH, 100000, 100000);
	while (n > 0)
		rpcrdma_clnt_destroy(more[--n]);
	rpc_pair_settle(p);
	/* what went with them is there for others */
	assert_int_equal(rpcrdma_clnt_open(p->clnt_engine, &ca, &more[0]), 0);
	rpc_pair_settle(p);
	rpcrdma_clnt_info(more[0], &info);
	assert_int_equal(info.modes, RPCRDMA_READ_READ);
	rpcrdma_clnt_destroy(more[0]);
	rpc_pair_destroy(p);
}

static void not_over_streams(void **state)
{
	struct rpc_pair_attr a = with(RPCRDMA_READ_READ, 0);
	struct rpc_pair *p = rpc_pair_create(&a);
	struct rpcrdma_clnt_attr ca = { .addr = { .transport = RPCRDMA_TCP, .host = "127.0.0.1" },
					.lab = LAB(.modes = RPCRDMA_READ_READ) };
	struct rpcrdma_clnt *c;

	(void)state;
	assert_int_equal(rpcrdma_clnt_open(p->clnt_engine, &ca, &c), -EINVAL);
	ca.addr = p->addr;
	ca.lab = LAB(.modes = RPCRDMA_READ_READ, .no_private_data = true);
	assert_int_equal(rpcrdma_clnt_open(p->clnt_engine, &ca, &c), -EINVAL);
	ca.lab = LAB(.modes = RPCRDMA_MODES_ALL + 1);
	assert_int_equal(rpcrdma_clnt_open(p->clnt_engine, &ca, &c), -EINVAL);
	rpc_pair_destroy(p);
}

/* ---- used --------------------------------------------------------------------------------- */

static const size_t sizes[] = { 0, 1, 900, 3501, 4096, 5001, 16384, 65535, 65536, 65537, 300001,
				1048576, 1048579 };

static void read_read(void **state)
{
	struct rpc_pair_attr a = with(RPCRDMA_READ_READ, RPCRDMA_READ_READ);
	struct rpc_pair *p = rpc_pair_create(&a);
	struct rpcrdma_stats c, s;
	unsigned far = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		one(p, ECHO_SOURCE, 0, sizes[i]);
		one(p, ECHO_BOTH, sizes[i], sizes[i]);
		far += (sizes[i] >= 4096) ? 2 : 0;
	}
	rpc_pair_settle(p);
	c = rpc_pair_clnt_stats(p);
	s = rpc_pair_svc_stats(p);
	assert_int_equal(c.offers, far);
	assert_int_equal(s.offers, far);
	assert_int_equal(s.bytes_placed, 0);
	assert_int_equal(s.chunks_write, 0);
	assert_int_equal(s.mode_cuts + s.mode_timeouts, 0);
	rpc_pair_destroy(p);
}

/* A device whose queues are too short for the receives that 64 credits take with a mode. */
static void short_queues(void **state)
{
	(void)state;
	for (unsigned modes = 0; modes <= RPCRDMA_MODES_ALL; modes += RPCRDMA_MODES_ALL) {
		struct rpc_pair_attr a = with(modes, modes);
		struct rpc_pair *p;

		a.clnt.credits = 64;
		a.clnt_local.limits.rq_max = a.clnt_local.limits.sq_max = 100;
		p = rpc_pair_create(&a);
		one(p, ECHO_BOTH, 40000, 40000);
		assert_int_equal(p->downs, 0);
		rpc_pair_destroy(p);
	}
}

/* Payload that the service put down in many pieces is read in as many, and by a caller's many. */
static void read_read_in_pieces(void **state)
{
	struct rpc_pair_attr a = with(RPCRDMA_READ_READ, RPCRDMA_READ_READ);
	struct rpc_pair *p = rpc_pair_create(&a);
	struct echo_call c;

	(void)state;
	p->piece_bytes = 10000;
	for (size_t cut = 4999; cut < 80000; cut += 15000) {
		echo_init(&c, p, ECHO_SOURCE, 0, 70001, 70001, 4);
		echo_cut(&c, cut);
		echo_start(&c);
		rpc_pair_until(p, &c.done, 1);
		echo_check(&c, 0);
		echo_fini(&c);
	}
	assert_int_equal(rpc_pair_svc_stats(p).offers, 6);
	rpc_pair_destroy(p);
}

static void do_fast_write(bool windows)
{
	struct rpc_pair_attr a = with(RPCRDMA_FAST_WRITE, RPCRDMA_FAST_WRITE);
	struct rpc_pair *p;
	struct rpcrdma_clnt_info info;
	struct rpcrdma_stats s;
	unsigned fast = 0, pulled = 0;

	a.clnt.lab = LAB(.modes = RPCRDMA_FAST_WRITE, .fast_write_bytes = 20000);
	a.svc_local.filters = HOOKS(.no_windows = !windows);
	p = rpc_pair_create(&a);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		one(p, ECHO_SINK, sizes[i], 0);
		one(p, ECHO_BOTH, sizes[i], sizes[i]);
		fast += (sizes[i] >= 4096 && sizes[i] <= 20480) ? 2 : 0;
		pulled += (sizes[i] > 20480) ? 2 : 0;
	}
	rpcrdma_clnt_info(p->clnt, &info);
	assert_int_equal(info.fast_write_bytes, 20480); /* in whole pages */
	assert_int_equal(info.fast_write_slots, 64);
	s = rpc_pair_svc_stats(p);
	assert_int_equal(s.fast_writes, fast);
	assert_int_equal(rpc_pair_clnt_stats(p).fast_writes, fast);
	assert_int_equal(s.chunks_read, fast + pulled);
	/* the slots' window, for as long as they are there */
	assert_int_equal(s.binds, windows ? 1 : 0);
	assert_int_equal(s.local_invs, 0);
	rpc_pair_destroy(p);
}

static void fast_write(void **state)
{
	(void)state;
	do_fast_write(true);
	do_fast_write(false);
}

/* The first call of a connection does not know yet whether the slots are there. */
static void not_with_the_first(void **state)
{
	struct rpc_pair_attr a = with(RPCRDMA_FAST_WRITE, RPCRDMA_FAST_WRITE);
	struct rpc_pair *p = rpc_pair_create(&a);

	(void)state;
	one(p, ECHO_SINK, 5000, 0);
	assert_int_equal(rpc_pair_svc_stats(p).fast_writes, 0);
	one(p, ECHO_SINK, 5000, 0);
	assert_int_equal(rpc_pair_svc_stats(p).fast_writes, 1);
	assert_int_equal(p->downs, 0);
	rpc_pair_destroy(p);
}

static void do_hybrid(bool windows)
{
	struct rpc_pair_attr a = with(RPCRDMA_HYBRID, RPCRDMA_HYBRID);
	unsigned granted = 0, pulled = 0;
	struct rpcrdma_stats s;
	struct rpc_pair *p;

	a.svc_local.filters = HOOKS(.no_windows = !windows);
	p = rpc_pair_create(&a);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		one(p, ECHO_SINK, sizes[i], 0);
		one(p, ECHO_BOTH, sizes[i], sizes[i]);
		granted += (sizes[i] >= 4096 && sizes[i] <= 1048576) ? 2 : 0;
		pulled += (sizes[i] > 1048576) ? 2 : 0;
	}
	s = rpc_pair_svc_stats(p);
	assert_int_equal(s.grants, granted);
	assert_int_equal(rpc_pair_clnt_stats(p).grants, granted);
	assert_int_equal(s.bytes_pulled, pulled * 1048579);
	assert_int_equal(s.binds, windows ? granted : 0);
	assert_int_equal(s.local_invs, windows ? granted : 0);
	rpc_pair_destroy(p);
}

static void hybrid(void **state)
{
	(void)state;
	do_hybrid(true);
	do_hybrid(false);
}

/* More at once than there is memory for, of all kinds; answers that come out of order. */
static void many_at_once(void **state)
{
	static const uint64_t seeds[] = { 0, 77 };

	(void)state;
	for (unsigned modes = 1; modes <= RPCRDMA_MODES_ALL; modes++) {
		for (size_t k = 0; k < ARRAY_SIZE(seeds); k++) {
			struct rpc_pair_attr a = with(modes, modes);
			struct rpc_pair *p;
			struct echo_call *c = calloc(60, sizeof(*c));

			assert_non_null(c);
			a.clnt_local.filters = a.svc_local.filters = HOOKS(.chaos_seed = seeds[k]);
			a.clnt_local.vm = a.svc_local.vm = modes & 1 ? RR_LOCAL_VM_AUTO :
								       RR_LOCAL_VM_NEVER;
			p = rpc_pair_create(&a);
			one(p, ECHO_BOTH, 1, 1);
			for (unsigned i = 0; i < 60; i++) {
				size_t bytes = sizes[i % ARRAY_SIZE(sizes)] / (k ? 8 : 1);

				echo_init(&c[i], p, ECHO_BOTH, bytes, bytes, 0, i * 16);
				if (i % 3 == 0)
					echo_cut(&c[i], bytes / 5 + 1);
				echo_start(&c[i]);
			}
			for (unsigned i = 0; i < 60; i++) {
				rpc_pair_until(p, &c[i].done, 1);
				echo_check(&c[i], 0);
				echo_fini(&c[i]);
			}
			assert_int_equal(p->downs, 0);
			rpc_pair_settle(p);
			assert_int_equal(rpc_pair_svc_stats(p).mode_cuts, 0);
			rpc_pair_destroy(p);
			free(c);
		}
	}
}

/* The reply releases the slot, or the room: the client may use it again before the responder sees the
 * completion of its reply. */
static void used_anew_at_once(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 4; seed++) {
		for (unsigned modes = RPCRDMA_FAST_WRITE; modes <= RPCRDMA_HYBRID; modes *= 2) {
			struct rpc_pair_attr a = with(modes, modes);
			struct rpc_pair *p;

			a.clnt.credits = 1;
			a.clnt_local.filters = a.svc_local.filters = HOOKS(.chaos_seed = seed);
			p = rpc_pair_create(&a);
			for (unsigned i = 0; i < 40; i++)
				one(p, ECHO_SINK, 5000 + i, 0);
			assert_int_equal(p->downs, 0);
			assert_int_equal(rpc_pair_svc_stats(p).mode_cuts, 0);
			rpc_pair_destroy(p);
		}
	}
}

/* A call that is given up leaves nothing taken: slots, room and offers come back. */
static void given_up(void **state)
{
	(void)state;
	for (unsigned modes = 1; modes <= RPCRDMA_MODES_ALL; modes++) {
		for (unsigned passes = 0; passes < 12; passes++) {
			struct rpc_pair_attr a = with(modes, modes);
			struct rpc_pair *p;
			struct echo_call c;
			uint64_t fast;

			a.clnt.credits = 2; /* and so two slots */
			p = rpc_pair_create(&a);
			one(p, ECHO_BOTH, 1, 1);
			for (unsigned i = 0; i < 6; i++) {
				echo_init(&c, p, ECHO_BOTH, 40000, 40000, 0, 4);
				echo_start(&c);
				for (unsigned k = 0; k < passes; k++)
					rpc_pair_poll(p);
				rpcrdma_clnt_cancel(p->clnt, &c.call);
				assert_int_equal(c.done, 1);
				if (c.err)
					echo_check(&c, -ECANCELED);
				echo_fini(&c);
			}
			rpc_pair_settle(p); /* the replies have come */
			one(p, ECHO_BOTH, 1, 1);
			fast = rpc_pair_clnt_stats(p).fast_writes;
			for (unsigned i = 0; i < 6; i++)
				one(p, ECHO_BOTH, 40000, 40000);
			rpc_pair_settle(p);
			if (modes & RPCRDMA_FAST_WRITE)
				assert_int_equal(rpc_pair_clnt_stats(p).fast_writes, fast + 6);
			assert_int_equal(rpc_pair_svc_stats(p).mode_cuts, 0);
			rpc_pair_destroy(p);
		}
	}
}

static struct hooks *clnt_hooks(const struct rpc_pair *p)
{
	return faults_of(local_fabric(p->clnt_domain));
}

/* Registration fails for the only call in flight: its payload is copied, as it would be without
 * a mode, whether it has room already or its reply is there. */
static void short_of_registrations(void **state)
{
	static const unsigned modes[] = { 0, RPCRDMA_READ_READ, RPCRDMA_HYBRID };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		struct rpc_pair_attr a = with(modes[i], modes[i]);
		struct rpc_pair *p;

		a.clnt.registration = "dynamic";
		p = rpc_pair_create(&a);
		one(p, ECHO_BOTH, 1, 1);
		rpc_pair_settle(p);
		clnt_hooks(p)->fail_reg = 1;
		if (modes[i] & RPCRDMA_READ_READ)
			one(p, ECHO_SOURCE, 0, 40000);
		else
			one(p, ECHO_SINK, 40000, 0);
		assert_int_equal(clnt_hooks(p)->fail_reg, 0);
		assert_int_equal(rpc_pair_clnt_stats(p).reg_bounced, 1);
		assert_int_equal(p->downs, 0);
		rpc_pair_destroy(p);
	}
}

/* A call that has room waits for another's registrations: giving that one up lets it go on. */
static void given_up_makes_room(void **state)
{
	struct rpc_pair_attr a = with(RPCRDMA_HYBRID, RPCRDMA_HYBRID);
	struct echo_call first, second;
	struct rpc_pair *p;

	(void)state;
	a.clnt.registration = "dynamic";
	p = rpc_pair_create(&a);
	one(p, ECHO_BOTH, 1, 1);
	p->hold = true;
	echo_init(&first, p, ECHO_SINK, 40000, 0, 0, 4);
	echo_start(&first);
	rpc_pair_settle(p);
	assert_int_equal(p->nheld, 1);
	clnt_hooks(p)->fail_reg = 1;
	echo_init(&second, p, ECHO_SINK, 40000, 0, 0, 4);
	echo_start(&second);
	rpc_pair_settle(p);
	assert_int_equal(clnt_hooks(p)->fail_reg, 0);
	assert_int_equal(p->nheld, 1);
	rpcrdma_clnt_cancel(p->clnt, &first.call);
	echo_check(&first, -ECANCELED);
	rpc_pair_settle(p);
	assert_int_equal(p->nheld, 2);
	rpc_pair_release(p);
	rpc_pair_until(p, &second.done, 1);
	echo_check(&second, 0);
	assert_int_equal(p->downs, 0);
	echo_fini(&first);
	echo_fini(&second);
	rpc_pair_destroy(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),
		cmocka_unit_test(all_that_is_asked_or_nothing),
		cmocka_unit_test(memory_for_so_many),
		cmocka_unit_test(not_over_streams),
		cmocka_unit_test(read_read),
		cmocka_unit_test(read_read_in_pieces),
		cmocka_unit_test(short_queues),
		cmocka_unit_test(fast_write),
		cmocka_unit_test(not_with_the_first),
		cmocka_unit_test(hybrid),
		cmocka_unit_test(many_at_once),
		cmocka_unit_test(used_anew_at_once),
		cmocka_unit_test(given_up),
		cmocka_unit_test(short_of_registrations),
		cmocka_unit_test(given_up_makes_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
