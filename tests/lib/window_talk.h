/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * window_talk.h - a client with memory windows and a responder that ends them as a test wants, over the
 *                 local fabric (flow/test_clnt_window.c) and over a device (interop/verbs_window.c)
 *
 * Here is what both are to show.
 */
#ifndef TESTS_WINDOW_TALK_H
#define TESTS_WINDOW_TALK_H

#include "clnt_talk.h"
#include "engine_int.h"
#include "lab.h"

static struct raw_server_opts so4k = { .priv = priv4k, .priv_len = sizeof(priv4k) };

/* How a window comes to its end. */
enum way {
	BY_ANSWER, /* R is said, and the server invalidates with its answer */
	BY_CLIENT, /* R is said, and the server does not */
	NO_R,      /* it was not told that it may */
	WAYS,
};

static struct rr_fabric *fabric; /* the client's, if it is the local one */

/* A client of a domain of its own, so that counters begin at 0 and hooks are its own. */
static inline void begin(const struct rr_local_attr *local, const struct rpcrdma_clnt_attr *attr)
{
	struct rpcrdma_domain_attr da = { .lab = LAB(.local = local, .unsafe_inv = true) };
	struct rpcrdma_clnt_attr ca = { 0 };
	struct rr_dev *dev;

	if (attr)
		ca = *attr;
	ca.registration = "window";
	rpcrdma_engine_destroy(engine);
	rpcrdma_domain_destroy(domain);
	assert_int_equal(rpcrdma_domain_create(&da, &domain), 0);
	assert_int_equal(rpcrdma_engine_create(domain, NULL, &engine), 0);
	if (talk_addr.host[0]) {
		snprintf(path, sizeof(path), "%.40s:%u", talk_addr.host, talk_addr.port);
	} else {
		assert_int_equal(rr_domain_dev(domain, RPCRDMA_LOCAL, &dev), 0);
		fabric = dev->fabric;
	}
	open_both(&so4k, &ca);
}

/* Connected, and the first call is over: there are credits. */
static inline void begin_way(const struct rr_local_attr *local, enum way way)
{
	struct rpcrdma_clnt_attr ca = { .lab = LAB(.no_private_data = way == NO_R) };

	begin(local, &ca);
	still_works();
	assert_int_equal(srv.client_priv.remote_inv, way != NO_R);
}

static inline struct rpcrdma_stats stats(void)
{
	struct rpcrdma_stats s;

	rpcrdma_domain_stats(domain, &s);
	return s;
}

static inline struct rpcrdma_clnt_info info(void)
{
	struct rpcrdma_clnt_info i;

	rpcrdma_clnt_info(clnt, &i);
	return i;
}

/* What was heard last is answered, and ends as @way says: the first of its handles. */
static inline void taken_back(enum way way)
{
	inv_key = 0;
	if (way != BY_ANSWER)
		return;
	if (heard.nwrites)
		inv_key = heard.writes[0].segs[0].handle;
	else if (heard.nreads)
		inv_key = heard.reads[0].seg.handle;
	else
		inv_key = heard.reply.segs[0].handle;
}

/* @seg was offered with a call that is over: a peer that uses it loses its connection, and nothing else. */
static inline void assert_out_of_reach(const struct rr_segment *seg, const uint8_t *mem, size_t bytes)
{
	unsigned lost = srv.lost;
	uint8_t copy[16], *before = malloc(bytes);

	assert_non_null(before);
	memcpy(before, mem, bytes);
	assert_int_equal(raw_server_write(&srv, seg, 0, "too late to write", 16), RR_WC_REM_ACCESS);
	assert_memory_equal(mem, before, bytes);
	raw_server_until(&srv, &srv.lost, lost + 1);
	still_works();
	assert_int_not_equal(raw_server_read(&srv, seg, 0, copy, sizeof(copy)), RR_WC_OK);
	raw_server_until(&srv, &srv.lost, lost + 2);
	still_works();
	free(before);
}

/* A bind for each operation, in the chain of its Send, and one invalidation at most. */
static inline void one_bind_and_one_end(void **state)
{
	static uint8_t others[10000];

	(void)state;
	for (unsigned k = 0; k < WAYS * 2; k++) {
		enum way way = k / 2;
		struct rpcrdma_stats was, is;
		struct talk_call c;
		void *mem = others;

		begin_way(NULL, way);
		if (k % 2)
			assert_int_equal(rpcrdma_mem_alloc(domain, 10000, &mem), 0);
		was = stats();
		for (unsigned i = 0; i < 10; i++) {
			get_init(&c, mem, 9001);
			talk_go(&c);
			hear();
			assert_int_equal(heard.writes[0].nsegs, 1);
			taken_back(way);
			answer_get(9001);
			ended(&c, 0);
			assert_pattern(c.mem, 9001);
		}
		is = stats();
		assert_int_equal(is.binds - was.binds, 10);
		assert_int_equal(is.invalidations - was.invalidations, way == BY_ANSWER ? 10 : 0);
		assert_int_equal(is.local_invs - was.local_invs, way == BY_ANSWER ? 0 : 10);
		assert_int_equal(is.posts - was.posts, 10 + (way == BY_ANSWER ? 0 : 10));
		assert_in_range(is.regs - was.regs, 0, 1); /* kept, as without windows */
		assert_int_equal(srv.conns, 1);
		assert_string_equal(info().registration, "window");
		assert_null(info().fallback);
		if (k % 2)
			rpcrdma_mem_free(domain, mem);
		close_both();
	}
}

/* Each shape of a call, each end of a window: what was offered is of no use after the call. */
static inline void late_after_the_reply(void **state)
{
	(void)state;
	for (enum way way = 0; way < WAYS; way++) {
		struct rr_segment s;
		struct talk_call c;

		begin_way(NULL, way);
		start_get(&c, 9001);
		hear();
		s = heard.writes[0].segs[0];
		taken_back(way);
		answer_get(9001);
		ended(&c, 0);
		assert_pattern(c.mem, 9001);
		assert_out_of_reach(&s, c.mem, 9001);
		talk_fini(&c);
		start_put(&c, 9001);
		hear();
		s = heard.reads[0].seg;
		taken_back(way);
		answer_put(9001);
		ended(&c, 0);
		assert_out_of_reach(&s, c.mem, 9001);
		talk_fini(&c);
		start_big(&c, 20000); /* memory of the client's own */
		hear();
		s = heard.reply.segs[0];
		taken_back(way);
		answer_begin(RR_NOMSG);
		answer_big(20000);
		into_reply_chunk();
		reply();
		ended(&c, 0);
		assert_out_of_reach(&s, c.mem, 0);
		talk_fini(&c);
		close_both();
	}
}

/* Given up, and the memory is used for another call at once: a server that writes what it still means to
 * for the first one does not get there. */
static inline void given_up_and_used_again(void **state)
{
	(void)state;
	for (unsigned k = 0; k < WAYS * 4; k++) {
		bool by_deadline = k & 1, slab = k & 2;
		struct talk_call c, next;
		struct rr_segment s;
		void *mem;

		begin_way(NULL, k / 4);
		assert_int_equal(rpcrdma_mem_alloc(domain, 10000, &mem), 0);
		if (!slab)
			mem = malloc(10000);
		assert_non_null(mem);
		get_init(&c, mem, 9001);
		c.call.deadline_ms = by_deadline ? 20 : 0;
		talk_go(&c);
		hear();
		s = heard.writes[0].segs[0];
		if (!by_deadline)
			rpcrdma_clnt_cancel(clnt, &c.call);
		ended(&c, by_deadline ? -ETIMEDOUT : -ECANCELED);
		assert_untouched(&c, 0);
		get_init(&next, mem, 9001);
		talk_go(&next);
		hear(); /* it has a window of its own over the same memory */
		if (fabric) /* a window that is still bound cannot be bound again, and costs the connection */
			assert_int_equal(srv.conns, 1);
		assert_int_not_equal(heard.writes[0].segs[0].handle, s.handle);
		assert_int_equal(raw_server_write(&srv, &s, 0, "too late", 8), RR_WC_REM_ACCESS);
		assert_untouched(&next, 0);
		raw_server_until(&srv, &srv.conns, 2);
		hear(); /* the other call comes again */
		answer_get(9001);
		ended(&next, 0);
		assert_pattern(mem, 9001);
		if (!slab)
			free(mem);
		close_both();
	}
}

/* What a server may do wrong with its right, or without it: its connection ends, and nothing else. */
enum wrong {
	WITHOUT_LEAVE, /* R was not said */
	OF_ANOTHER,    /* the key of a call that is out */
	WITH_NOTHING,  /* with a message that answers no call */
	FATAL,         /* the others, to a host whose device is a kernel's */
	TWICE = FATAL, /* the key that went with the answer before */
	UNKNOWN,       /* a key that was never offered */
	AFTERWARDS,    /* of a call that was answered without it, and taken back here */
	WRONGS,
};

static inline void wrong_invalidation(enum wrong wrong)
{
	struct talk_call c, other;
	uint32_t first;

	begin_way(NULL, wrong == WITHOUT_LEAVE ? NO_R : BY_ANSWER);
	start_get(&other, 9001);
	hear();
	first = heard.writes[0].segs[0].handle;
	if (wrong == TWICE || wrong == AFTERWARDS) {
		inv_key = wrong == TWICE ? first : 0;
		answer_get(9001);
		ended(&other, 0);
		talk_fini(&other);
	}
	start_get(&c, 9001);
	hear();
	switch (wrong) {
	case WITHOUT_LEAVE:
		inv_key = heard.writes[0].segs[0].handle;
		break;
	case UNKNOWN:
		inv_key = 0x12345678;
		break;
	default:
		inv_key = first;
		break;
	}
	if (wrong == WITH_NOTHING)
		heard.xid += 1000;
	answer_get(9001);
	/* an answer that the device delivered is good; those that are out are asked for again */
	raw_server_until(&srv, &srv.conns, 2);
	if (wrong == WITHOUT_LEAVE || wrong == OF_ANOTHER) {
		ended(&c, 0);
		assert_pattern(c.mem, 9001);
		talk_fini(&c);
	}
	while (hear_one()) {
		assert_int_equal(srv.got[srv.taken - 1].conn, 2);
		answer_get(9001);
	}
	if (wrong != WITHOUT_LEAVE && wrong != OF_ANOTHER) {
		ended(&c, 0);
		assert_pattern(c.mem, 9001);
		talk_fini(&c);
	}
	if (wrong != TWICE && wrong != AFTERWARDS) {
		ended(&other, 0);
		assert_pattern(other.mem, 9001);
		talk_fini(&other);
	}
	assert_int_equal(srv.conns, 2);
	still_works();
	close_both();
}

#endif
