/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_clnt_once.c - calls with no_resend: each is sent at most once, whatever happens to its connection
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/util.h"
#include "inside.h"
#include "rpc_pair.h"

#define MANY 12
#define LONG_MS 60000u

static const struct rpc_pair_attr over_local = { .transport = RPCRDMA_LOCAL };
static const struct rpc_pair_attr over_tcp = { .transport = RPCRDMA_TCP };

static bool stuck; /* a call never ended: the other tests would wait as long */

static void until(struct rpc_pair *p, const unsigned *count, unsigned want)
{
	uint64_t end = clock_now_ns() + 30 * NS_PER_S;

	while (*count < want && !stuck) {
		rpc_pair_poll(p);
		stuck = clock_now_ns() > end;
	}
	if (stuck)
		fail_msg("no progress: %u of %u", *count, want);
}

static struct rpc_pair *open_pair(const struct rpc_pair_attr *attr, const struct rpcrdma_clnt_attr *clnt)
{
	struct rpc_pair_attr a = *attr;
	struct rpc_pair *p;

	if (stuck)
		skip();
	a.clnt = *clnt;
	if (!a.clnt.backoff_ms)
		a.clnt.backoff_ms = LONG_MS; /* no test waits for it */
	p = rpc_pair_create(&a);
	echo_run(p, 10, 0);
	return p;
}

static void init(struct echo_call *c, struct rpc_pair *p, size_t bytes)
{
	echo_init(c, p, ECHO_BOTH, bytes, bytes, 0, 0);
	c->call.no_resend = true;
}

/* Ends the connection, which the client notices only when it is polled. */
static void cut(struct rpc_pair *p)
{
	rpcrdma_conn_close(p->last_conn);
	for (int idle = 0; idle < 200; idle++)
		if (rpcrdma_engine_poll(p->svc_engine))
			idle = 0;
}

static void ended(struct echo_call *c, int err, bool sent)
{
	until(c->pair, &c->done, 1);
	echo_check(c, err);
	assert_int_equal(c->call.sent, sent);
	assert_true(!err || (c->call.why && c->call.why[0]));
}

/* Sent calls and waiting ones end differently; another call goes again, and the server has each of these once. */
static void connection_lost(void **state)
{
	struct rpc_pair *p = open_pair(*state, &(struct rpcrdma_clnt_attr){ .credits = 4 });
	struct echo_call c[MANY], again;
	unsigned sent = 0, seen;

	p->hold = true;
	echo_init(&again, p, ECHO_BOTH, 10, 10, 0, 0);
	echo_start(&again);
	for (int i = 0; i < MANY; i++) {
		init(&c[i], p, i % 2 ? 30000 : 10);
		echo_start(&c[i]);
		sent += c[i].call.sent;
	}
	assert_in_range(sent, 0, 3);
	until(p, &p->nheld, 1 + sent);
	seen = p->nlog;
	cut(p);
	rpc_pair_release(p);
	for (int i = 0; i < MANY; i++)
		ended(&c[i], i < (int)sent ? -ECONNRESET : -ENOTCONN, i < (int)sent);
	ended(&again, 0, true);
	assert_int_equal(p->nlog, seen + 1);
	assert_int_equal(p->log[seen], again.call.xid);
	for (int i = 0; i < MANY; i++)
		echo_fini(&c[i]);
	echo_fini(&again);
	rpc_pair_destroy(p);
}

/* No reply for timeout_ms ends the connection, and so the call. */
static void no_reply_in_time(void **state)
{
	struct rpc_pair *p = open_pair(*state, &(struct rpcrdma_clnt_attr){ .timeout_ms = 50 });
	struct echo_call c;
	unsigned seen;

	p->hold = true;
	init(&c, p, 30000);
	echo_start(&c);
	ended(&c, -ECONNRESET, true);
	assert_non_null(strstr(c.call.why, "no reply for 50 ms"));
	seen = p->nlog;
	assert_int_equal(p->log[seen - 1], c.call.xid);
	rpc_pair_release(p);
	echo_start(&c);
	ended(&c, 0, true);
	assert_int_equal(p->nlog, seen + 1);
	echo_fini(&c);
	rpc_pair_destroy(p);
}

/* Without a server each call makes an attempt of its own, at once, and the first one after it is back goes through. */
static void no_server(void **state)
{
	struct rpc_pair *p = open_pair(*state, &(struct rpcrdma_clnt_attr){ .credits = 4 });
	struct rpcrdma_clnt_info info;
	struct echo_call c, other;

	rpc_pair_unlisten(p);
	cut(p);
	until(p, &p->downs, 1);
	echo_init(&other, p, ECHO_BOTH, 10, 10, 0, 0); /* this one is patient */
	echo_start(&other);
	init(&c, p, 10);
	for (int i = 0; i < 3; i++) {
		echo_start(&c);
		ended(&c, -ECONNREFUSED, false);
		rpcrdma_clnt_info(p->clnt, &info);
		assert_int_equal(info.err, -ECONNREFUSED);
		assert_int_equal(info.unsent, 1); /* the patient one */
	}
	assert_int_equal(other.done, 0);
	rpc_pair_listen(p);
	echo_start(&c);
	ended(&c, 0, true);
	ended(&other, 0, true);
	echo_fini(&c);
	echo_fini(&other);
	rpc_pair_destroy(p);
}

/* A done() that starts the next call, as a program in a loop does. */
static void done_and_again(struct rpcrdma_call *call, int err)
{
	struct echo_call *c = container_of(call, struct echo_call, call);

	c->err = err;
	if (c->done++ < 2)
		assert_int_equal(rpcrdma_clnt_call(c->pair->clnt, call), 0);
}

static void call_in_done(void **state)
{
	struct rpc_pair *p = open_pair(*state, &(struct rpcrdma_clnt_attr){ .credits = 4 });
	struct echo_call c;
	unsigned downs;

	init(&c, p, 10);
	c.call.done = done_and_again;
	p->hold = true;
	echo_start(&c);
	until(p, &p->nheld, 1);
	rpc_pair_unlisten(p);
	downs = p->downs;
	cut(p);
	/* reset, then refused by two attempts */
	until(p, &c.done, 3);
	assert_int_equal(c.err, -ECONNREFUSED);
	assert_int_equal(p->downs, downs + 3);
	echo_fini(&c);
	rpc_pair_destroy(p);
}

/* The connection has ended while nothing was polled: the call is not sent into the void. */
static void idle_end(void **state)
{
	struct rpc_pair *p = open_pair(*state, &(struct rpcrdma_clnt_attr){ .credits = 4 });
	struct echo_call c[2];

	for (int round = 0; round < 3; round++) {
		cut(p);
		for (int i = 0; i < 2; i++) {
			init(&c[i], p, 10);
			echo_start(&c[i]);
		}
		for (int i = 0; i < 2; i++) {
			ended(&c[i], 0, true);
			echo_fini(&c[i]);
		}
	}
	assert_int_equal(p->nlog, 7);
	rpc_pair_destroy(p);
}

/* Calls that timed out hold all credits: the connection is replaced, and the next call goes over the new one. */
static void credits_held(void **state)
{
	struct rpc_pair *p = open_pair(*state, &(struct rpcrdma_clnt_attr){ .credits = 3 });
	struct echo_call late[3], c;
	struct rpcrdma_clnt_info info;
	unsigned ups = p->ups, n;

	rpcrdma_clnt_info(p->clnt, &info);
	n = info.credits;
	assert_in_range(n, 1, 3);
	p->hold = true;
	for (unsigned i = 0; i < n; i++) {
		init(&late[i], p, 10);
		if (i)
			late[i].call.deadline_ms = 1;
		echo_start(&late[i]);
	}
	for (unsigned i = 1; i < n; i++)
		ended(&late[i], -ETIMEDOUT, true);
	init(&c, p, 10);
	echo_start(&c);
	rpc_pair_settle(p);
	/* the first one is in flight and would be lost */
	assert_int_equal(p->ups, ups);
	assert_false(c.call.sent);
	rpcrdma_clnt_cancel(p->clnt, &late[0].call);
	until(p, &p->ups, ups + 1);
	rpc_pair_release(p);
	ended(&c, 0, true);
	for (unsigned i = 0; i < n; i++)
		echo_fini(&late[i]);
	echo_fini(&c);
	rpc_pair_destroy(p);
}

static void credits_held_before(void **state)
{
	struct rpc_pair *p = open_pair(*state, &(struct rpcrdma_clnt_attr){ .credits = 3 });
	struct echo_call late[3], c;
	struct rpcrdma_clnt_info info;
	unsigned ups = p->ups;

	rpcrdma_clnt_info(p->clnt, &info);
	p->hold = true;
	for (unsigned i = 0; i < info.credits; i++) {
		init(&late[i], p, 10);
		late[i].call.deadline_ms = 1;
		echo_start(&late[i]);
	}
	for (unsigned i = 0; i < info.credits; i++) {
		ended(&late[i], -ETIMEDOUT, true);
		echo_fini(&late[i]);
	}
	assert_int_equal(p->ups, ups);
	init(&c, p, 10);
	echo_start(&c);
	until(p, &p->ups, ups + 1);
	rpc_pair_release(p);
	ended(&c, 0, true);
	echo_fini(&c);
	rpc_pair_destroy(p);
}

/* A call whose Send, or the first byte of its record, never left this process was not sent. */
static void still_queued(void **state)
{
	const struct rpc_pair_attr *a = *state;
	struct rpc_pair *p = open_pair(a, &(struct rpcrdma_clnt_attr){ .credits = 4 });
	struct rpcrdma_clnt_info info;
	struct echo_call c[2];
	unsigned seen = p->nlog;

	if (a->transport == RPCRDMA_TCP) { /* more than a socket takes at once */
		echo_init(&c[0], p, ECHO_SINK, ECHO_PAYLOAD_MAX, 0, 0, 0);
		c[0].call.no_resend = true;
	} else {
		init(&c[0], p, 10);
	}
	init(&c[1], p, 10);
	echo_start(&c[0]);
	if (a->transport == RPCRDMA_LOCAL) {
		until(p, &p->nlog, seen + 1);
		ended(&c[0], 0, true);
		echo_start(&c[0]);
		faults_of(local_fabric(p->clnt_domain))->fail_post = 1;
	}
	echo_start(&c[1]);
	rpcrdma_clnt_info(p->clnt, &info);
	assert_int_equal(info.unsent, a->transport == RPCRDMA_TCP ? 2 : 1);
	clnt_disconnect(p->clnt);
	ended(&c[0], -ECONNRESET, true);
	ended(&c[1], -ENOTCONN, false);
	echo_fini(&c[0]);
	echo_fini(&c[1]);
	rpc_pair_destroy(p);
}

/* A destroyed client cancels these calls as any other. */
static void destroyed(void **state)
{
	struct rpc_pair *p = open_pair(*state, &(struct rpcrdma_clnt_attr){ .credits = 2 });
	struct echo_call c[MANY];

	p->hold = true;
	for (int i = 0; i < MANY; i++) {
		init(&c[i], p, 10);
		echo_start(&c[i]);
	}
	until(p, &p->nheld, 1);
	rpcrdma_clnt_destroy(p->clnt);
	p->clnt = NULL;
	for (int i = 0; i < MANY; i++) {
		echo_check(&c[i], -ECANCELED);
		echo_fini(&c[i]);
	}
	rpc_pair_destroy(p);
}

#define OVER(test, how) { #test " " #how, test, NULL, NULL, (void *)(uintptr_t)&how }
#define BOTH(test) OVER(test, over_local), OVER(test, over_tcp)

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(connection_lost), BOTH(no_reply_in_time), BOTH(no_server), BOTH(call_in_done),
		BOTH(idle_end), BOTH(credits_held), BOTH(credits_held_before), BOTH(still_queued),
		BOTH(destroyed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
