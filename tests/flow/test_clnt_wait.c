/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_clnt_wait.c - calls that the caller waits for: results, errors, deadlines, signals, callbacks
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include <cmocka.h>

#include "base/util.h"
#include "leat_flow.h"
#include "prog_rig.h"

static const enum rpcrdma_transport transports[] = { RPCRDMA_LOCAL, RPCRDMA_TCP };
#define FOR_EACH_TRANSPORT(t) for (const enum rpcrdma_transport *t = transports; t < transports + 2; t++)

static struct pr_rig rig;
static pthread_t thread;
static struct rpcrdma_msg stop_msg;
static bool stopped; /* of the service's thread */

static void on_stop(struct rpcrdma_msg *msg)
{
	(void)msg;
	stopped = true;
}

static void *serve(void *arg)
{
	struct pr_rig *r = arg;

	while (!stopped)
		(void)rpcrdma_engine_wait(r->svc_engine, -1);
	return NULL;
}

static void open_rig(enum rpcrdma_transport t)
{
	pr_open(&rig, t, NULL, NULL, NULL);
	stopped = false;
	assert_int_equal(pthread_create(&thread, NULL, serve, &rig), 0);
}

static void close_rig(void)
{
	stop_msg.fn = on_stop;
	rpcrdma_engine_post(rig.svc_engine, &stop_msg);
	assert_int_equal(pthread_join(thread, NULL), 0);
	for (unsigned i = 0; i < rig.nlater; i++)
		rpcrdma_task_finish(rig.later[i], 0);
	pr_close(&rig);
}

static void results(void **state)
{
	struct pr_call c;

	(void)state;
	FOR_EACH_TRANSPORT(t) {
		open_rig(*t);
		for (uint32_t n = 0; n < 300000; n = 3 * n + 1) {
			pr_init(&rig, &c, PR_BOTH, n, n);
			c.call.done = NULL;
			assert_int_equal(rpcrdma_clnt_call_wait(rig.clnt, &c.call), 0);
			assert_int_equal(c.call.payload_bytes, n);
			assert_null(c.call.done);
			for (uint32_t i = 0; i < n; i++)
				assert_int_equal(((uint8_t *)c.sink.iov_base)[i], (uint8_t)(pr_byte(i) + 1));
			pr_fini(&c);
		}
		close_rig();
	}
}

static bool_t refuse(XDR *x, void *none)
{
	(void)x;
	(void)none;
	return FALSE;
}

static void failures(void **state)
{
	struct pr_call c;

	(void)state;
	FOR_EACH_TRANSPORT(t) {
		open_rig(*t);
		pr_init(&rig, &c, PR_FAIL, 0, 0);
		c.args.count = EACCES;
		assert_int_equal(rpcrdma_clnt_call_wait(rig.clnt, &c.call), -EACCES);
		assert_non_null(c.call.why);
		c.call.encode = (xdrproc_t)refuse;
		assert_int_equal(rpcrdma_clnt_call_wait(rig.clnt, &c.call), -EINVAL);
		assert_non_null(c.call.why);
		pr_fini(&c);
		pr_init(&rig, &c, PR_LATER, 0, 0);
		c.call.deadline_ms = 5;
		assert_int_equal(rpcrdma_clnt_call_wait(rig.clnt, &c.call), -ETIMEDOUT);
		assert_non_null(c.call.why);
		pr_fini(&c);
		close_rig();
	}
}

static int why_of(struct pr_call *c, char *why, size_t cap)
{
	int rc = rpcrdma_clnt_call_wait(rig.clnt, &c->call);

	snprintf(why, cap, "%s", c->call.why ? c->call.why : "");
	return rc;
}

/* A call that cannot be sent says what is wrong with it: the first of all, which waits for a connection, and a later
 * one, which fails at once. */
static void why_not_sent(void **state)
{
	struct pr_call c;
	char why[200];

	(void)state;
	FOR_EACH_TRANSPORT(t) {
		open_rig(*t);
		for (int i = 0; i < 2; i++) {
			struct rpcrdma_cred cred = { .ngids = 17 };

			pr_init(&rig, &c, PR_SUM, 2 * PR_DATA_MAX + 1, 0);
			assert_int_equal(why_of(&c, why, sizeof(why)), -EINVAL);
			assert_non_null(strstr(why, "a filter returned FALSE"));
			pr_fini(&c);
			pr_init(&rig, &c, PR_SUM, 0, 0);
			c.call.cred = &cred;
			assert_int_equal(why_of(&c, why, sizeof(why)), -EINVAL);
			assert_non_null(strstr(why, "credential"));
			pr_fini(&c);
			pr_init(&rig, &c, PR_SUM, 10, 0);
			assert_int_equal(why_of(&c, why, sizeof(why)), 0);
			pr_fini(&c);
		}
		close_rig();
	}
}

static void no_such_socket(void **state)
{
	struct rpcrdma_clnt_attr attr;
	struct rpcrdma_clnt *clnt;
	struct pr_call c;
	char expected[400];

	(void)state;
	leat_flow_skip_rdma("it is about a UNIX socket");
	open_rig(RPCRDMA_LOCAL);
	attr = rig.attr;
	assert_in_range(strlen(attr.addr.host), 1, 100);
	strcat(attr.addr.host, ".no");
	assert_int_equal(rpcrdma_clnt_open(rig.clnt_engine, &attr, &clnt), 0);
	pr_init(&rig, &c, PR_SUM, 0, 0);
	assert_int_equal(rpcrdma_clnt_call_wait(clnt, &c.call), -ECONNREFUSED);
	snprintf(expected, sizeof(expected), "local://%s: no such socket: %s", attr.addr.host, strerror(ECONNREFUSED));
	assert_string_equal(c.call.why, expected);
	pr_fini(&c);
	rpcrdma_clnt_destroy(clnt);
	close_rig();
}

/* ---- signals ------------------------------------------------------------------------------ */

static struct pr_call waited_for;
static struct rpcrdma_msg cancel_msg;
static atomic_uint ticks;

static void on_cancel(struct rpcrdma_msg *msg)
{
	(void)msg;
	rpcrdma_clnt_cancel(rig.clnt, &waited_for.call);
}

/* The first signals do nothing: the call goes on. */
static void on_tick(int sig)
{
	(void)sig;
	if (atomic_fetch_add(&ticks, 1) == 5)
		rpcrdma_engine_post(rig.clnt_engine, &cancel_msg);
}

static void signals(void **state)
{
	const struct itimerval often = { { 0, 2000 }, { 0, 2000 } }, never = { { 0, 0 }, { 0, 0 } };
	struct sigaction act = { .sa_handler = on_tick }, old;
	sigset_t alarms;

	(void)state;
	sigemptyset(&alarms);
	sigaddset(&alarms, SIGALRM);
	cancel_msg.fn = on_cancel;
	FOR_EACH_TRANSPORT(t) {
		/* only this thread gets the signals, also if it sleeps */
		pthread_sigmask(SIG_BLOCK, &alarms, NULL);
		open_rig(*t);
		pr_init(&rig, &waited_for, PR_LATER, 100, 0);
		atomic_store(&ticks, 0);
		sigaction(SIGALRM, &act, &old);
		pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
		setitimer(ITIMER_REAL, &often, NULL);
		assert_int_equal(rpcrdma_clnt_call_wait(rig.clnt, &waited_for.call), -ECANCELED);
		setitimer(ITIMER_REAL, &never, NULL);
		assert_true(atomic_load(&ticks) >= 6);
		sigaction(SIGALRM, &old, NULL);
		pr_fini(&waited_for);
		close_rig();
	}
}

/* ---- callbacks ---------------------------------------------------------------------------- */

static struct pr_call inner;
static int inner_rc;

static void on_inside(struct rpcrdma_msg *msg)
{
	(void)msg;
	inner_rc = rpcrdma_clnt_call_wait(rig.clnt, &inner.call);
}

static void from_a_callback(void **state)
{
	struct rpcrdma_msg msg = { .fn = on_inside };
	struct pr_call c;

	(void)state;
	FOR_EACH_TRANSPORT(t) {
		open_rig(*t);
		pr_init(&rig, &c, PR_SUM, 100, 0);
		pr_init(&rig, &inner, PR_SUM, 100, 0);
		inner_rc = 0;
		rpcrdma_engine_post(rig.clnt_engine, &msg);
		assert_int_equal(rpcrdma_clnt_call_wait(rig.clnt, &c.call), 0);
		assert_int_equal(inner_rc, -EDEADLK);
		assert_non_null(inner.call.why);
		assert_int_equal(rpcrdma_clnt_call_wait(rig.clnt, &inner.call), 0);
		pr_fini(&inner);
		pr_fini(&c);
		close_rig();
	}
}

static void on_inner(struct rpcrdma_call *call, int err)
{
	assert_int_equal(err, -ECANCELED);
	call->done = NULL;
	inner_rc = rpcrdma_clnt_call_wait(rig.clnt, &inner.call);
}

/* rpcrdma_clnt_cancel() runs the callback, without the engine. */
static void from_a_callback_outside(void **state)
{
	struct pr_call c;

	(void)state;
	FOR_EACH_TRANSPORT(t) {
		open_rig(*t);
		pr_init(&rig, &c, PR_SUM, 100, 0);
		pr_init(&rig, &inner, PR_SUM, 100, 0);
		c.call.done = on_inner;
		inner_rc = 0;
		assert_int_equal(rpcrdma_clnt_call(rig.clnt, &c.call), 0);
		rpcrdma_clnt_cancel(rig.clnt, &c.call);
		assert_int_equal(inner_rc, -EDEADLK);
		pr_fini(&inner);
		pr_fini(&c);
		close_rig();
	}
}

static void on_destroy(struct rpcrdma_msg *msg)
{
	(void)msg;
	rpcrdma_clnt_destroy(rig.clnt);
	rig.clnt = NULL;
}

static void client_destroyed_meanwhile(void **state)
{
	struct rpcrdma_msg msg = { .fn = on_destroy };
	struct pr_call c;

	(void)state;
	FOR_EACH_TRANSPORT(t) {
		open_rig(*t);
		pr_init(&rig, &c, PR_LATER, 100, 0);
		rpcrdma_engine_post(rig.clnt_engine, &msg);
		assert_int_equal(rpcrdma_clnt_call_wait(rig.clnt, &c.call), -ECANCELED);
		pr_fini(&c);
		close_rig();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(results),
		cmocka_unit_test(failures),
		cmocka_unit_test(why_not_sent),
		cmocka_unit_test(no_such_socket),
		cmocka_unit_test(signals),
		cmocka_unit_test(from_a_callback),
		cmocka_unit_test(from_a_callback_outside),
		cmocka_unit_test(client_destroyed_meanwhile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
