/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_clnt_call.c - the requester's core (call.c, clnt.c, clnt_msg.c) over a transport that is a script
 *
 * The fake notes each call it is given and does nothing by itself: connections, replies and losses
 * happen when the test says so.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "clnt_int.h"
#include "engine_int.h"

#define CALLS 1000

/* ---- the fake ----------------------------------------------------------------------------- */

static struct {
	unsigned connects, disconnects, cancels, finis;
	int connect_rc, send_rc;
	bool unsent;
	struct rr_call *out[CALLS * 4]; /* in the order they were sent */
	uint32_t xids[CALLS * 4];
	unsigned nout;
} fake;

static int fake_init(struct rpcrdma_clnt *c)
{
	c->xprt = &fake;
	return 0;
}

static int fake_connect(struct rpcrdma_clnt *c)
{
	(void)c;
	fake.connects++;
	return fake.connect_rc;
}

static int fake_send(struct rpcrdma_clnt *c, struct rr_call *call)
{
	struct rr_encode_buf buf = { NULL };
	struct rr_stream s;
	int rc;

	assert_int_equal(c->state, RPCRDMA_CLNT_UP);
	if (fake.send_rc)
		return fake.send_rc;
	rc = rr_clnt_encode(call, &s, &buf, 1024, 0, false);
	if (!rc)
		assert_int_equal(get_be32(buf.mem), call->xid);
	free(buf.mem);
	if (rc)
		return rc;
	fake.xids[fake.nout] = call->xid;
	fake.out[fake.nout++] = call;
	call->xprt = &fake;
	return 0;
}

static bool fake_cancel(struct rpcrdma_clnt *c, struct rr_call *call)
{
	(void)c;
	fake.cancels++;
	call->xprt = NULL;
	return fake.unsent;
}

static bool fake_is_over(struct rpcrdma_clnt *c, bool look)
{
	(void)c;
	(void)look;
	return false;
}

static void fake_disconnect(struct rpcrdma_clnt *c, const char *why)
{
	(void)c;
	assert_non_null(why);
	fake.disconnects++;
}

static void fake_fini(struct rpcrdma_clnt *c)
{
	(void)c;
	fake.finis++;
}

static void fake_info(const struct rpcrdma_clnt *c, struct rpcrdma_clnt_info *ret)
{
	(void)c;
	ret->registration = "fake";
}

static const struct rr_clnt_ops fake_ops = {
	.name = "fake",
	.init = fake_init,
	.connect = fake_connect,
	.send = fake_send,
	.cancel = fake_cancel,
	.is_over = fake_is_over,
	.disconnect = fake_disconnect,
	.fini = fake_fini,
	.info = fake_info,
};

/* ---- a client, and calls ------------------------------------------------------------------ */

static struct rpcrdma_domain *domain;
static struct rpcrdma_engine *engine;
static struct rpcrdma_clnt *clnt;

struct test_call {
	struct rpcrdma_call call;
	unsigned done;
	int err;
};

static void start_clnt(struct rpcrdma_clnt_attr *attr)
{
	memset(&fake, 0, sizeof(fake));
	attr->addr.transport = RPCRDMA_LOCAL; /* there are credits */
	assert_int_equal(rpcrdma_domain_create(NULL, &domain), 0);
	assert_int_equal(rpcrdma_engine_create(domain, NULL, &engine), 0);
	assert_int_equal(rr_clnt_create(engine, attr, &fake_ops, &clnt), 0);
}

static void stop_clnt(void)
{
	rpcrdma_clnt_destroy(clnt);
	assert_int_equal(fake.finis, 1);
	rpcrdma_engine_destroy(engine);
	rpcrdma_domain_destroy(domain);
}

/* Poll until *what reaches @want: what the client does by the clock. */
static void until(const unsigned *what, unsigned want)
{
	uint64_t end = clock_now_ns() + 20 * NS_PER_S;

	while (*what < want) {
		rpcrdma_engine_wait(engine, 10);
		assert_true(clock_now_ns() < end);
	}
}

static void on_done(struct rpcrdma_call *call, int err)
{
	struct test_call *t = container_of(call, struct test_call, call);

	t->done++;
	t->err = err;
}

static void make(struct test_call *t)
{
	*t = (struct test_call){ .call = { .prog = 1, .vers = 2, .proc = 3, .done = on_done } };
}

static void start(struct test_call *t)
{
	make(t);
	assert_int_equal(rpcrdma_clnt_call(clnt, &t->call), 0);
	assert_int_equal(t->done, 0);
}

static void up(unsigned attempt)
{
	until(&fake.connects, attempt);
	clnt->send_inline = clnt->recv_inline = 4096;
	rr_clnt_up(clnt);
}

static void reply(unsigned n, uint32_t granted)
{
	struct rr_call *call = rr_clnt_find(clnt, fake.xids[n]);

	assert_non_null(call);
	call->xprt = NULL;
	rr_clnt_replied(clnt, call, 0, "success", granted);
}

/* ---- credits ------------------------------------------------------------------------------ */

static void one_call_until_the_first_reply(void **state)
{
	struct rpcrdma_clnt_attr a = { .credits = 10 };
	struct test_call t[20];

	(void)state;
	start_clnt(&a);
	for (int i = 0; i < 20; i++)
		start(&t[i]);
	assert_int_equal(fake.nout, 0);
	up(1);
	assert_int_equal(fake.nout, 1);
	reply(0, 4);
	assert_int_equal(t[0].done, 1);
	assert_int_equal(fake.nout, 5);
	reply(1, 1000); /* more than we want is not used */
	assert_int_equal(fake.nout, 12);
	/* falling: what is out is not replaced */
	for (unsigned i = 2; i < 9; i++)
		reply(i, 3);
	assert_int_equal(fake.nout, 12);
	reply(9, 0); /* 0 counts as 1 */
	reply(10, 0);
	assert_int_equal(fake.nout, 12);
	reply(11, 0);
	assert_int_equal(fake.nout, 13);
	for (unsigned i = 12; i < 20; i++) {
		reply(i, 2);
		assert_int_equal(t[i].done, 1);
	}
	assert_int_equal(fake.nout, 20);
	for (unsigned i = 1; i < 20; i++)
		assert_int_equal(fake.xids[i], fake.xids[0] + i);
	stop_clnt();
}

static void tcp_has_no_grants(void **state)
{
	struct rpcrdma_clnt_attr a = { .credits = 7 };
	struct test_call t[10];

	(void)state;
	start_clnt(&a);
	clnt->attr.addr = (struct rpcrdma_addr){ .transport = RPCRDMA_TCP, .host = "127.0.0.1" };
	for (int i = 0; i < 10; i++)
		start(&t[i]);
	up(1);
	assert_int_equal(fake.nout, 7);
	reply(3, 0);
	assert_int_equal(fake.nout, 8);
	reply(0, 0);
	assert_int_equal(fake.nout, 9);
	stop_clnt();
	for (int i = 0; i < 10; i++)
		assert_int_equal(t[i].done, 1);
}

static void a_thousand(void **state)
{
	struct rpcrdma_clnt_attr a = { .credits = 64 };
	struct test_call *t = calloc(CALLS, sizeof(*t));
	unsigned next = 0;

	(void)state;
	assert_non_null(t);
	start_clnt(&a);
	for (int i = 0; i < CALLS; i++)
		start(&t[i]);
	up(1);
	while (next < fake.nout)
		reply(next++, 64);
	assert_int_equal(fake.nout, CALLS);
	for (int i = 0; i < CALLS; i++) {
		assert_int_equal(t[i].done, 1);
		assert_int_equal(t[i].err, 0);
	}
	assert_true(list_is_empty(&clnt->waiting) && list_is_empty(&clnt->sent));
	stop_clnt();
	free(t);
}

/* ---- loss --------------------------------------------------------------------------------- */

static void lost_calls_go_again(void **state)
{
	struct rpcrdma_clnt_attr a = { .credits = 4, .backoff_ms = 1 };
	struct test_call t[8];

	(void)state;
	start_clnt(&a);
	for (int i = 0; i < 8; i++)
		start(&t[i]);
	up(1);
	reply(0, 4);
	assert_int_equal(fake.nout, 5);
	rr_clnt_down(clnt, -ECONNRESET, "cut");
	for (int i = 1; i < 8; i++)
		assert_int_equal(t[i].done, 0);
	up(2);
	/* one credit again; the oldest lost call comes first, under its old name */
	assert_int_equal(fake.nout, 6);
	for (unsigned i = 5; i < 12; i++) {
		assert_int_equal(fake.xids[i], fake.xids[0] + i - 4);
		reply(i, 4);
		assert_int_equal(t[i - 4].done, 1);
	}
	assert_int_equal(fake.nout, 12);
	assert_int_equal(clnt->reconnects, 1);
	stop_clnt();
}

static void no_answer_costs_the_connection(void **state)
{
	struct rpcrdma_clnt_attr a = { .credits = 4, .timeout_ms = 30, .backoff_ms = 1 };
	struct rpcrdma_stats s;
	struct test_call t;

	(void)state;
	start_clnt(&a);
	start(&t);
	up(1);
	until(&fake.disconnects, 1);
	assert_int_equal(t.done, 0);
	rr_clnt_down(clnt, -ECONNABORTED, "as asked");
	up(2);
	assert_int_equal(fake.nout, 2);
	assert_int_equal(fake.xids[0], fake.xids[1]);
	reply(1, 1);
	assert_int_equal(t.done, 1);
	rpcrdma_domain_stats(domain, &s);
	assert_int_equal(s.timeouts, 1);
	assert_int_equal(s.reconnects, 1);
	stop_clnt();
}

static void first_connection_fails_fast(void **state)
{
	struct rpcrdma_clnt_attr a = { .credits = 4 };
	struct test_call t[3];

	(void)state;
	start_clnt(&a);
	for (int i = 0; i < 3; i++)
		start(&t[i]);
	until(&fake.connects, 1);
	rr_clnt_down(clnt, -ECONNREFUSED, "nobody there");
	for (int i = 0; i < 3; i++) {
		assert_int_equal(t[i].done, 1);
		assert_int_equal(t[i].err, -ECONNREFUSED);
		assert_string_equal(t[i].call.why, "nobody there");
	}
	/* not by itself, but for the next call; and a transport may fail at once */
	for (int i = 0; i < 50; i++)
		rpcrdma_engine_poll(engine);
	assert_int_equal(fake.connects, 1);
	fake.connect_rc = -EHOSTUNREACH;
	start(&t[0]);
	until(&t[0].done, 1);
	assert_int_equal(t[0].err, -EHOSTUNREACH);
	fake.connect_rc = 0;
	start(&t[0]);
	up(3);
	reply(0, 1);
	assert_int_equal(t[0].done, 1);
	/* from now on it is repaired for ever */
	rr_clnt_down(clnt, -ECONNRESET, "cut");
	start(&t[1]);
	for (unsigned i = 4; i < 7; i++) {
		until(&fake.connects, i);
		rr_clnt_down(clnt, -ECONNREFUSED, "still down");
		assert_int_equal(t[1].done, 0);
	}
	up(7);
	reply(1, 1);
	assert_int_equal(t[1].done, 1);
	stop_clnt();
}

static void an_attempt_takes_too_long(void **state)
{
	struct rpcrdma_clnt_attr a = { .connect_ms = 20 };
	struct test_call t;

	(void)state;
	start_clnt(&a);
	start(&t);
	until(&fake.disconnects, 1);
	rr_clnt_down(clnt, -ECONNABORTED, "as asked");
	assert_int_equal(t.done, 1);
	assert_int_equal(t.err, -ETIMEDOUT);
	stop_clnt();
}

/* ---- giving up ---------------------------------------------------------------------------- */

static void cancelled_calls_cost_their_credit(void **state)
{
	struct rpcrdma_clnt_attr a = { .credits = 2 };
	struct test_call t[6];

	(void)state;
	start_clnt(&a);
	start(&t[0]);
	up(1);
	reply(0, 2);
	for (int i = 0; i < 6; i++)
		start(&t[i]);
	assert_int_equal(fake.nout, 3);
	rpcrdma_clnt_cancel(clnt, &t[0].call); /* out */
	rpcrdma_clnt_cancel(clnt, &t[3].call); /* waiting */
	assert_int_equal(fake.cancels, 1);
	assert_int_equal(t[0].err, -ECANCELED);
	assert_int_equal(t[3].err, -ECANCELED);
	assert_int_equal(fake.nout, 3);
	assert_null(rr_clnt_find(clnt, fake.xids[1]));
	rr_clnt_stray(clnt, fake.xids[1], 2); /* its answer comes late */
	assert_int_equal(fake.nout, 4);
	rr_clnt_stray(clnt, fake.xids[1], 2); /* again: the XID matches no call */
	rr_clnt_stray(clnt, fake.xids[0] - 1, 2);
	assert_int_equal(fake.nout, 4);
	fake.unsent = true;
	rpcrdma_clnt_cancel(clnt, &t[1].call); /* never left: no answer to wait for */
	assert_int_equal(fake.nout, 5);
	rpcrdma_clnt_cancel(clnt, &t[1].call);
	assert_int_equal(t[1].done, 1);
	stop_clnt();
	assert_int_equal(t[2].err, -ECANCELED);
	for (int i = 0; i < 6; i++)
		assert_int_equal(t[i].done, 1);
}

static void deadlines(void **state)
{
	struct rpcrdma_clnt_attr a = { .credits = 1 };
	struct test_call t[3];

	(void)state;
	start_clnt(&a);
	up(1);
	for (int i = 0; i < 3; i++) {
		make(&t[i]);
		t[i].call.deadline_ms = i == 2 ? 0 : 20;
		assert_int_equal(rpcrdma_clnt_call(clnt, &t[i].call), 0);
	}
	assert_int_equal(fake.nout, 1);
	until(&t[0].done, 1);
	until(&t[1].done, 1);
	assert_int_equal(t[0].err, -ETIMEDOUT);
	assert_int_equal(t[1].err, -ETIMEDOUT);
	assert_int_equal(fake.cancels, 1);
	assert_int_equal(t[2].done, 0);
	rr_clnt_stray(clnt, fake.xids[0], 1);
	assert_int_equal(fake.nout, 2);
	reply(1, 1);
	assert_int_equal(t[2].err, 0);
	stop_clnt();
}

/* ---- shortage and refusals ---------------------------------------------------------------- */

static bool_t refuse(XDR *xdrs, void *p)
{
	(void)xdrs;
	(void)p;
	return FALSE;
}

static void calls_that_cannot_go(void **state)
{
	struct rpcrdma_clnt_attr a = { .credits = 3 };
	struct test_call t[3];

	(void)state;
	start_clnt(&a);
	make(&t[0]);
	t[0].call.encode = (xdrproc_t)refuse;
	assert_int_equal(rpcrdma_clnt_call(clnt, &t[0].call), 0); /* not known before it is its turn */
	start(&t[1]);
	up(1);
	assert_int_equal(t[0].done, 1);
	assert_int_equal(t[0].err, -EINVAL);
	reply(0, 3);
	assert_int_equal(t[1].err, 0);
	make(&t[0]);
	t[0].call.encode = (xdrproc_t)refuse;
	assert_int_equal(rpcrdma_clnt_call(clnt, &t[0].call), -EINVAL);
	assert_int_equal(t[0].done, 0);
	assert_int_equal(clnt->credit.out, 0);

	fake.send_rc = -ENOBUFS;
	start(&t[0]);
	start(&t[1]);
	fake.send_rc = 0;
	start(&t[2]); /* behind the others, though it could go */
	assert_int_equal(fake.nout, 1);
	rr_clnt_resume(clnt);
	assert_int_equal(fake.nout, 4);
	fake.send_rc = -ENOTCONN;
	for (unsigned i = 1; i < 4; i++)
		reply(i, 3);
	start(&t[0]);
	fake.send_rc = 0;
	rr_clnt_down(clnt, -ECONNRESET, "cut");
	up(2);
	reply(4, 1);
	assert_int_equal(t[0].err, 0);
	stop_clnt();
}

static void attributes(void **state)
{
	struct rpcrdma_clnt_attr bad[] = {
		{ .inline_bytes = 1023 },
		{ .inline_bytes = 65537 },
		{ .credits = 1025 },
		{ .registration = "magic" },
		{ .cred.ngids = 17 },
	};
	struct rpcrdma_clnt_attr good = { .registration = "slab" };

	(void)state;
	start_clnt(&good);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct rpcrdma_clnt *c = NULL;

		assert_int_equal(rr_clnt_create(engine, &bad[i], &fake_ops, &c), -EINVAL);
		assert_null(c);
	}
	stop_clnt();
}

/* ---- callbacks ---------------------------------------------------------------------------- */

static struct test_call *others;

static void done_destroys(struct rpcrdma_call *call, int err)
{
	struct test_call extra;

	on_done(call, err);
	rpcrdma_clnt_destroy(clnt);
	for (int i = 1; i < 5; i++)
		assert_int_equal(others[i].err, -ECANCELED);
	make(&extra);
	assert_int_equal(rpcrdma_clnt_call(clnt, &extra.call), -ECANCELED);
}

static void done_cancels_the_rest(struct rpcrdma_call *call, int err)
{
	on_done(call, err);
	for (int i = 1; i < 5; i++)
		if (!others[i].done)
			rpcrdma_clnt_cancel(clnt, &others[i].call);
}

static void start_five(struct test_call *t, void (*done)(struct rpcrdma_call *, int))
{
	others = t;
	for (int i = 0; i < 5; i++) {
		make(&t[i]);
		if (!i)
			t[i].call.done = done;
		assert_int_equal(rpcrdma_clnt_call(clnt, &t[i].call), 0);
	}
}

static void destroy_in_done(void **state)
{
	struct rpcrdma_clnt_attr a = { .credits = 3 };
	struct test_call t[5];

	(void)state;
	for (int how = 0; how < 2; how++) {
		start_clnt(&a);
		start_five(t, done_destroys);
		if (how) {
			up(1);
			reply(0, 3);
		} else {
			until(&fake.connects, 1);
			rr_clnt_down(clnt, -ECONNREFUSED, "nobody there");
		}
		assert_int_equal(t[0].done, 1);
		assert_int_equal(fake.finis, 0); /* the transport is still on the stack */
		rpcrdma_engine_poll(engine);
		assert_int_equal(fake.finis, 1);
		rpcrdma_engine_destroy(engine);
		rpcrdma_domain_destroy(domain);
	}
}

static void cancel_in_done(void **state)
{
	struct rpcrdma_clnt_attr a = { .credits = 3 };
	struct test_call t[5];

	(void)state;
	start_clnt(&a);
	start_five(t, done_cancels_the_rest);
	until(&fake.connects, 1);
	rr_clnt_down(clnt, -ECONNREFUSED, "nobody there");
	for (int i = 1; i < 5; i++) {
		assert_int_equal(t[i].done, 1);
		assert_int_equal(t[i].err, -ECANCELED);
	}
	stop_clnt();
}

/* ---- messages ----------------------------------------------------------------------------- */

static void what_a_reply_means(void **state)
{
	static const struct {
		uint32_t words[6];
		unsigned n;
		int err;
	} cases[] = {
		{ { 1, 0, 0, 0, 0 }, 5, 0 },
		{ { 1, 0, 0, 0, 1 }, 5, -EPROTONOSUPPORT },
		{ { 1, 0, 0, 0, 4 }, 5, -EINVAL },
		{ { 1, 1, 1, 5 }, 4, -EACCES },
		{ { 0, 0, 0, 0, 0 }, 5, -EPROTO }, /* a call */
		{ { 1, 0, 0, 500, 0 }, 5, -EPROTO },
		{ { 1, 0, 0, 0 }, 4, -EPROTO },
	};
	struct rpcrdma_clnt_attr a = { .credits = 3 };
	struct test_call t;
	struct rr_call *call;

	(void)state;
	start_clnt(&a);
	start(&t);
	up(1);
	call = fake.out[0];
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint8_t msg[32];
		struct rr_stream s;
		const char *why = NULL;

		put_be32(msg, call->xid);
		for (unsigned k = 0; k < cases[i].n; k++)
			put_be32(msg + 4 + 4 * k, cases[i].words[k]);
		rr_stream_decode(&s, msg, 4 + 4 * cases[i].n);
		assert_int_equal(rr_clnt_decode(call, &s, &why), cases[i].err);
		assert_non_null(why);
	}
	stop_clnt();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_call_until_the_first_reply),
		cmocka_unit_test(tcp_has_no_grants),
		cmocka_unit_test(a_thousand),
		cmocka_unit_test(lost_calls_go_again),
		cmocka_unit_test(no_answer_costs_the_connection),
		cmocka_unit_test(first_connection_fails_fast),
		cmocka_unit_test(an_attempt_takes_too_long),
		cmocka_unit_test(cancelled_calls_cost_their_credit),
		cmocka_unit_test(deadlines),
		cmocka_unit_test(calls_that_cannot_go),
		cmocka_unit_test(attributes),
		cmocka_unit_test(destroy_in_done),
		cmocka_unit_test(cancel_in_done),
		cmocka_unit_test(what_a_reply_means),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
