/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_prog.c - services as tables of procedures: payloads, errors, shortage of buffers, lost connections
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "prog_rig.h"

static const uint32_t sizes[] = { 0, 1, 3, 1000, 5000, 65536, 65537, 300001, PR_DATA_MAX };
static struct pr_rig rig;

static const enum rpcrdma_transport transports[] = { RPCRDMA_LOCAL, RPCRDMA_TCP };
#define FOR_EACH_TRANSPORT(t) for (const enum rpcrdma_transport *t = transports; t < transports + 2; t++)

static int go(struct pr_call *c)
{
	int rc = rpcrdma_clnt_call(rig.clnt, &c->call);

	return rc ? rc : pr_until(&rig, c);
}

static uint32_t sum_of(const struct pr_call *c, const char *name)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < c->args.data.length; i++)
		sum += pr_byte(i);
	for (; *name; name++)
		sum += (uint8_t)*name;
	return sum;
}

static void check_data(const struct pr_call *c, uint32_t n, uint8_t plus)
{
	assert_int_equal(c->call.payload_bytes, n);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(((uint8_t *)c->sink.iov_base)[i], (uint8_t)(pr_byte(i) + plus));
}

static void one_of_each(uint32_t n)
{
	static const uint32_t fills[] = { PR_FILL, PR_OWN, PR_SIZED };
	struct pr_call c;

	pr_init(&rig, &c, PR_SUM, n, 0);
	assert_int_equal(go(&c), 0);
	assert_int_equal(c.res.count, n + 4);
	assert_int_equal(c.res.sum, sum_of(&c, "name"));
	pr_fini(&c);
	for (size_t i = 0; i < ARRAY_SIZE(fills); i++) {
		pr_init(&rig, &c, fills[i], 0, n);
		c.args.count = n;
		assert_int_equal(go(&c), 0);
		check_data(&c, n, 0);
		if (fills[i] == PR_SIZED)
			assert_int_equal(rig.data_bytes, n);
		pr_fini(&c);
	}
	pr_init(&rig, &c, PR_BOTH, n, n);
	assert_int_equal(go(&c), 0);
	check_data(&c, n, 1);
	pr_fini(&c);
}

static void payloads(void **state)
{
	(void)state;
	FOR_EACH_TRANSPORT(t) {
		pr_open(&rig, *t, NULL, NULL, NULL);
		for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
			one_of_each(sizes[i]);
		pr_close(&rig);
	}
}

static void out_of_order(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed < 9; seed++) {
		pr_chaos = seed;
		pr_open(&rig, RPCRDMA_LOCAL, NULL, NULL, NULL);
		for (size_t i = 0; i < ARRAY_SIZE(sizes) - 1; i++)
			one_of_each(sizes[i]);
		pr_close(&rig);
	}
	pr_chaos = 0;
}

/* A name that is longer than what TCP reads before it delivers a call: arguments are decoded twice. */
static void long_arguments(void **state)
{
	char *name = malloc(PR_NAME_MAX);

	(void)state;
	memset(name, 'x', PR_NAME_MAX);
	name[PR_NAME_MAX - 1] = '\0';
	FOR_EACH_TRANSPORT(t) {
		struct pr_call c;

		pr_open(&rig, *t, NULL, NULL, NULL);
		pr_init(&rig, &c, PR_ECHO, 0, 0);
		c.args.name = name;
		assert_int_equal(go(&c), 0);
		assert_string_equal(c.res.name, name);
		pr_fini(&c);
		pr_init(&rig, &c, PR_SUM, 70000, 0);
		c.args.name = name;
		assert_int_equal(go(&c), 0);
		assert_int_equal(c.res.sum, sum_of(&c, name));
		pr_fini(&c);
		pr_close(&rig);
	}
	free(name);
}

/* ---- what the library sends first ---------------------------------------------------------- */

static unsigned frees_at_error; /* pr_frees when the last error reply was sent */

void __real_rpcrdma_req_reply_error(struct rpcrdma_req *req, enum rpcrdma_accept_stat stat, uint32_t low, uint32_t high,
				    void (*done)(void *arg), void *arg);
void __wrap_rpcrdma_req_reply_error(struct rpcrdma_req *req, enum rpcrdma_accept_stat stat, uint32_t low, uint32_t high,
				    void (*done)(void *arg), void *arg);

void __wrap_rpcrdma_req_reply_error(struct rpcrdma_req *req, enum rpcrdma_accept_stat stat, uint32_t low, uint32_t high,
				    void (*done)(void *arg), void *arg)
{
	frees_at_error = pr_frees;
	__real_rpcrdma_req_reply_error(req, stat, low, high, done, arg);
}

/* ---- errors ------------------------------------------------------------------------------- */

static bool_t xdr_half(XDR *x, struct pr_msg *m)
{
	return xdr_uint32_t(x, &m->count);
}

static int call_as(uint32_t prog, uint32_t vers, uint32_t proc, xdrproc_t encode)
{
	struct pr_call c;
	int rc;

	pr_init(&rig, &c, proc, 0, 0);
	c.call.prog = prog;
	c.call.vers = vers;
	c.call.encode = encode;
	rc = go(&c);
	pr_fini(&c);
	return rc;
}

static int proc_returns(uint32_t proc, int err)
{
	struct pr_call c;
	int rc;

	pr_init(&rig, &c, proc, 0, 0);
	c.args.count = (uint32_t)-err;
	rc = go(&c);
	pr_fini(&c);
	return rc;
}

static int handler_returns(int err)
{
	return proc_returns(PR_FAIL, err);
}

static void errors(void **state)
{
	(void)state;
	FOR_EACH_TRANSPORT(t) {
		unsigned handled;
		struct pr_call c;

		pr_open(&rig, *t, NULL, NULL, NULL);
		assert_int_equal(call_as(PR_PROG, 1, 0, NULL), 0);
		assert_int_equal(call_as(PR_PROG, 3, 0, NULL), 0);
		assert_int_equal(call_as(PR_PROG + 1, 1, 0, NULL), -EPROTONOSUPPORT);
		assert_int_equal(call_as(PR_PROG, 2, 0, NULL), -EPROTONOSUPPORT);
		assert_int_equal(call_as(PR_PROG, 1, 99, NULL), -EOPNOTSUPP);
		assert_int_equal(call_as(PR_PROG, 3, PR_FILL, (xdrproc_t)pr_xdr_head), -EOPNOTSUPP);
		handled = rig.handled;
		assert_int_equal(call_as(PR_PROG, 1, PR_FAIL, (xdrproc_t)xdr_half), -EINVAL);
		assert_int_equal(rig.handled, handled);

		assert_int_equal(handler_returns(0), 0);
		assert_int_equal(handler_returns(-EBADMSG), -EINVAL);
		assert_int_equal(handler_returns(-EOPNOTSUPP), -EOPNOTSUPP);
		assert_int_equal(handler_returns(-EACCES), -EACCES);
		assert_int_equal(handler_returns(-ENOMEM), -EREMOTEIO);
		assert_int_equal(handler_returns(-EMSGSIZE), *t == RPCRDMA_TCP ? -EREMOTEIO : -EMSGSIZE);

		assert_int_equal(handler_returns(EPERM), -EREMOTEIO); /* without its sign */
		assert_int_equal(handler_returns(ENOMEM), -EREMOTEIO);

		pr_init(&rig, &c, PR_TOO_LONG, 0, 5000);
		assert_int_equal(go(&c), *t == RPCRDMA_TCP ? -EREMOTEIO : -EMSGSIZE);
		pr_fini(&c);
		pr_close(&rig);
	}
}

static void iov_too_short(void **state)
{
	(void)state;
	FOR_EACH_TRANSPORT(t) {
		pr_open(&rig, *t, NULL, NULL, NULL);
		for (uint32_t n = 1; n <= PR_DATA_MAX; n *= 32) {
			struct pr_call c;

			pr_init(&rig, &c, PR_SHORT, 0, n);
			c.args.count = n;
			assert_int_equal(go(&c), -EREMOTEIO);
			pr_fini(&c);
		}
		pr_close(&rig);
	}
}

/* The same error on every transport, and a call in flight is not repeated. */
static void sink_too_small(void **state)
{
	static const uint32_t rooms[] = { 0, 100, 4999 };

	(void)state;
	FOR_EACH_TRANSPORT(t) {
		struct pr_call pending, c;

		pr_open(&rig, *t, NULL, NULL, NULL);
		assert_int_equal(call_as(PR_PROG, 1, 0, NULL), 0); /* one credit until a reply */
		pr_init(&rig, &pending, PR_LATER, 100, 0);
		assert_int_equal(rpcrdma_clnt_call(rig.clnt, &pending.call), 0);
		for (size_t i = 0; i < 2 * ARRAY_SIZE(rooms); i++) {
			pr_init(&rig, &c, PR_OWN, 0, rooms[i / 2]);
			c.args.count = i % 2 ? 5000 : rooms[i / 2] + 1; /* with room in the reply, and without */
			c.call.sinkcnt = rooms[i / 2] > 0;
			assert_int_equal(go(&c), -EMSGSIZE);
			assert_non_null(strstr(c.call.why, "sink"));
			pr_fini(&c);
		}
		assert_int_equal(rig.nlater, 1);
		rpcrdma_task_finish(rig.later[0], 0);
		assert_int_equal(pr_until(&rig, &pending), 0);
		pr_fini(&pending);
		pr_close(&rig);
	}
}

/* The row's limit holds, also where the filter would allow more. */
static void longer_than_the_row_allows(void **state)
{
	const struct rpcrdma_svc_attr svc = { .call_bytes_max = 2 * PR_DATA_MAX };

	(void)state;
	FOR_EACH_TRANSPORT(t) {
		struct pr_call c;

		pr_open(&rig, *t, NULL, NULL, &svc);
		pr_frees = 0;
		pr_init(&rig, &c, PR_SUM, PR_DATA_MAX + 1, 0);
		assert_int_equal(go(&c), -EINVAL);
		assert_int_equal(rig.handled, 0);
		assert_int_equal(frees_at_error, 1); /* they are not kept until the peer takes the reply */
		pr_fini(&c);
		pr_close(&rig);
	}
}

/* ---- shortage ----------------------------------------------------------------------------- */

/* More calls than the pool has buffers; each waits for its turn. */
static void few_buffers(void **state)
{
	const struct rpcrdma_domain_attr small = { .pool_bytes_max = RPCRDMA_POOL_BYTES_MIN };
	static struct pr_call calls[40];

	(void)state;
	FOR_EACH_TRANSPORT(t) {
		struct rpcrdma_stats s;

		pr_open(&rig, *t, &small, NULL, NULL);
		for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
			pr_init(&rig, &calls[i], i % 2 ? PR_SUM : PR_SIZED, i % 2 ? 50000 : 0, 50000);
			calls[i].args.count = 50000;
			assert_int_equal(rpcrdma_clnt_call(rig.clnt, &calls[i].call), 0);
		}
		for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
			assert_int_equal(pr_until(&rig, &calls[i]), 0);
			if (i % 2 == 0)
				check_data(&calls[i], 50000, 0);
			pr_fini(&calls[i]);
		}
		rpcrdma_domain_stats(rig.svc_domain, &s);
		assert_true(*t == RPCRDMA_TCP || s.buf_waits > 0);
		pr_close(&rig);
	}
}

/* The pool never has a buffer of this size: an error, not a wait. */
static void no_such_buffer(void **state)
{
	const struct rpcrdma_domain_attr small = { .pool_bytes_max = RPCRDMA_POOL_BYTES_MIN };
	struct pr_call c;

	(void)state;
	FOR_EACH_TRANSPORT(t) {
		pr_open(&rig, *t, &small, NULL, NULL);
		pr_init(&rig, &c, PR_SUM, PR_DATA_MAX, 0);
		assert_int_equal(go(&c), -EREMOTEIO);
		pr_fini(&c);
		pr_close(&rig);
	}
}

/* The pool has no buffer for the longest results: the handler gets a smaller one. */
static void smaller_buffer(void **state)
{
	const struct rpcrdma_domain_attr small = { .pool_bytes_max = RPCRDMA_POOL_BYTES_MIN };
	struct pr_call c;

	(void)state;
	FOR_EACH_TRANSPORT(t) {
		pr_open(&rig, *t, &small, NULL, NULL);
		pr_init(&rig, &c, PR_BOTH, 5000, PR_DATA_MAX);
		assert_int_equal(go(&c), 0);
		check_data(&c, 5000, 1);
		assert_true(rig.data_bytes >= RPCRDMA_BUF_LEAST - 8192 && rig.data_bytes < PR_DATA_MAX);
		pr_fini(&c);
		pr_init(&rig, &c, PR_FILL, 0, PR_DATA_MAX);
		c.args.count = PR_DATA_MAX;
		assert_int_equal(go(&c), *t == RPCRDMA_TCP ? -EREMOTEIO : -EMSGSIZE);
		pr_fini(&c);
		pr_close(&rig);
	}
}

/* ---- pending ------------------------------------------------------------------------------ */

static void *finish_all(void *arg)
{
	struct pr_rig *r = arg;

	for (unsigned i = 0; i < r->nlater; i++)
		rpcrdma_task_finish(r->later[i], i % 2 ? -EACCES : 0);
	return NULL;
}

/* A second result has no effect, whether another thread, the handler itself or its return gives it. */
static void finished_twice(void **state)
{
	(void)state;
	FOR_EACH_TRANSPORT(t) {
		pr_open(&rig, *t, NULL, NULL, NULL);
		for (unsigned i = 0; i < 3; i++) {
			assert_int_equal(proc_returns(PR_TWICE, 0), 0);
			assert_int_equal(proc_returns(PR_TWICE, -EACCES), -EACCES);
		}
		pr_close(&rig);
	}
}

static void poll_until_later(unsigned n)
{
	for (unsigned long idle = 0; rig.nlater < n; idle = pr_poll(&rig) ? 0 : idle + 1)
		assert_true(idle < 20000000);
}

static void finished_by_another_thread(void **state)
{
	static struct pr_call calls[8];

	(void)state;
	FOR_EACH_TRANSPORT(t) {
		pthread_t thread;

		pr_open(&rig, *t, NULL, NULL, NULL);
		assert_int_equal(call_as(PR_PROG, 1, 0, NULL), 0); /* the first reply grants credits */
		for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
			pr_init(&rig, &calls[i], PR_LATER, 20000, 0);
			assert_int_equal(rpcrdma_clnt_call(rig.clnt, &calls[i].call), 0);
		}
		poll_until_later(ARRAY_SIZE(calls));
		assert_false(rpcrdma_task_is_lost(rig.later[0]));
		assert_int_equal(pthread_create(&thread, NULL, finish_all, &rig), 0);
		for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
			(void)pr_until(&rig, &calls[i]);
			pr_fini(&calls[i]);
		}
		assert_int_equal(pthread_join(thread, NULL), 0);
		for (size_t i = 0, good = 0; i < ARRAY_SIZE(calls); i++) {
			good += !calls[i].err;
			assert_true(!calls[i].err || calls[i].err == -EACCES);
			assert_true(i + 1 < ARRAY_SIZE(calls) || good == ARRAY_SIZE(calls) / 2);
		}
		pr_close(&rig);
	}
}

/* The client is gone: the task learns it, its result goes nowhere, its memory is returned. */
static void lost_while_pending(void **state)
{
	struct pr_call c;

	(void)state;
	FOR_EACH_TRANSPORT(t) {
		pr_open(&rig, *t, NULL, NULL, NULL);
		pr_init(&rig, &c, PR_LATER, 200000, 0);
		assert_int_equal(rpcrdma_clnt_call(rig.clnt, &c.call), 0);
		poll_until_later(1);
		rpcrdma_clnt_destroy(rig.clnt);
		rig.clnt = NULL;
		assert_true(c.done && c.err == -ECANCELED);
		for (unsigned long idle = 0; !rpcrdma_task_is_lost(rig.later[0]); idle = pr_poll(&rig) ? 0 : idle + 1)
			assert_true(idle < 20000000);
		assert_int_equal(rig.released, 0);
		rpcrdma_task_finish(rig.later[0], 0);
		pr_fini(&c);
		pr_close(&rig);
		assert_int_equal(rig.released, 1);
	}
}

/* Connections that are lost while their tasks wait for buffers, are being pulled, and are served. */
static void lost_at_any_time(void **state)
{
	const struct rpcrdma_domain_attr small = { .pool_bytes_max = RPCRDMA_POOL_BYTES_MIN };
	static struct pr_call calls[24];

	(void)state;
	FOR_EACH_TRANSPORT(t) {
		for (unsigned polls = 0; polls < 60; polls++) {
			pr_open(&rig, *t, &small, NULL, NULL);
			for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
				pr_init(&rig, &calls[i], i % 3 ? PR_SUM : PR_SIZED, i % 3 ? 60000 : 0, 60000);
				calls[i].args.count = 60000;
				assert_int_equal(rpcrdma_clnt_call(rig.clnt, &calls[i].call), 0);
			}
			for (unsigned i = 0; i < polls; i++)
				(void)pr_poll(&rig);
			rpcrdma_clnt_destroy(rig.clnt);
			rig.clnt = NULL;
			for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
				pr_fini(&calls[i]);
			pr_close(&rig);
		}
	}
}

/* The service closes connections that are open, some of them with calls. */
static void destroyed_while_in_use(void **state)
{
	struct pr_call calls[4];

	(void)state;
	FOR_EACH_TRANSPORT(t) {
		pthread_t thread;

		pr_open(&rig, *t, NULL, NULL, NULL);
		assert_int_equal(call_as(PR_PROG, 1, 0, NULL), 0); /* the first reply grants credits */
		for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
			pr_init(&rig, &calls[i], PR_LATER, 100, 0);
			calls[i].call.deadline_ms = 60000;
			assert_int_equal(rpcrdma_clnt_call(rig.clnt, &calls[i].call), 0);
		}
		poll_until_later(ARRAY_SIZE(calls));
		assert_int_equal(pthread_create(&thread, NULL, finish_all, &rig), 0);
		assert_int_equal(rpcrdma_service_destroy(rig.service), 0);
		rig.service = NULL;
		assert_int_equal(rig.released, ARRAY_SIZE(calls));
		rpcrdma_clnt_destroy(rig.clnt);
		rig.clnt = NULL;
		for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
			pr_fini(&calls[i]);
		pr_close(&rig);
		/* only now: the thread may still be inside its last rpcrdma_task_finish() */
		assert_int_equal(pthread_join(thread, NULL), 0);
	}
}

static int destroyed;

static void destroy_inside(struct rpcrdma_msg *msg)
{
	(void)msg;
	destroyed = rpcrdma_service_destroy(rig.service);
}

static void not_from_a_callback(void **state)
{
	struct rpcrdma_msg msg = { .fn = destroy_inside };

	(void)state;
	pr_open(&rig, RPCRDMA_TCP, NULL, NULL, NULL);
	assert_false(rpcrdma_engine_is_running(rig.svc_engine));
	rpcrdma_engine_post(rig.svc_engine, &msg);
	(void)pr_poll(&rig);
	assert_int_equal(destroyed, -EDEADLK);
	assert_int_equal(call_as(PR_PROG, 1, 0, NULL), 0);
	pr_close(&rig);
}

static int nobody(void *ctx, const struct rpcrdma_peer *peer)
{
	(void)ctx;
	assert_true(peer->text[0] != '\0');
	return -EPERM;
}

static void refused_peers(void **state)
{
	const struct rpcrdma_service_attr attr = { .size = sizeof(attr), .progs = pr_progs, .nprogs = 2, .ctx = &rig,
						   .accept = nobody };
	const struct rpcrdma_addr addr = { .transport = RPCRDMA_TCP, .host = "127.0.0.1" }, *used;
	struct rpcrdma_service *s;
	struct rpcrdma_clnt *first;
	struct pr_call c;

	(void)state;
	pr_open(&rig, RPCRDMA_TCP, NULL, NULL, NULL);
	assert_int_equal(rpcrdma_service_create(rig.svc_engine, &attr, &s), 0);
	assert_int_equal(rpcrdma_service_listen(s, &addr, &used), 0);
	first = rig.clnt;
	rig.attr.addr = *used;
	assert_int_equal(rpcrdma_clnt_open(rig.clnt_engine, &rig.attr, &rig.clnt), 0);
	pr_init(&rig, &c, PR_FAIL, 0, 0);
	c.call.deadline_ms = 200;
	assert_true(go(&c) != 0);
	assert_int_equal(rig.handled, 0);
	pr_fini(&c);
	rpcrdma_clnt_destroy(rig.clnt);
	rig.clnt = first;
	assert_int_equal(rpcrdma_service_destroy(s), 0);
	pr_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(payloads),
		cmocka_unit_test(out_of_order),
		cmocka_unit_test(long_arguments),
		cmocka_unit_test(errors),
		cmocka_unit_test(iov_too_short),
		cmocka_unit_test(sink_too_small),
		cmocka_unit_test(longer_than_the_row_allows),
		cmocka_unit_test(few_buffers),
		cmocka_unit_test(no_such_buffer),
		cmocka_unit_test(smaller_buffer),
		cmocka_unit_test(finished_twice),
		cmocka_unit_test(finished_by_another_thread),
		cmocka_unit_test(lost_while_pending),
		cmocka_unit_test(lost_at_any_time),
		cmocka_unit_test(destroyed_while_in_use),
		cmocka_unit_test(not_from_a_callback),
		cmocka_unit_test(refused_peers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
