/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_tirpc_lead.c - threads that share a CLIENT, step by step: which of them leads, which sleeps, and who wakes up
 *
 * The service holds calls and releases the one that the test names, over another CLIENT. The followers sleep at once, and
 * the test waits until they do. What is not woken up sleeps for ever: a signal then ends the test.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "echo_rig.h"
#include "rpcrdma_tirpc.h"
#include "thread_state.h"

#define VOID ((xdrproc_t)(void (*)(void))xdr_void)
#define HANG_S 40u

static const struct timeval plenty = { 60, 0 };
static struct er_rig rig;
static CLIENT *clnt, *other;

static int setup(void **state)
{
	const struct rpcrdma_tirpc_attr attr = { .size = sizeof(attr), .poll = RPCRDMA_POLL_EVENT };

	(void)state;
	er_start(&rig, RPCRDMA_LOCAL);
	clnt = rpcrdma_clnt_create(rig.url, ER_PROG, ER_VERS, &attr);
	other = rpcrdma_clnt_create(rig.url, ER_PROG, ER_VERS, &attr);
	alarm(HANG_S);
	/* before the first reply there is one credit */
	return clnt && other && clnt_call(clnt, ER_NULL, VOID, NULL, VOID, NULL, plenty) == RPC_SUCCESS ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	clnt_destroy(clnt);
	clnt_destroy(other);
	alarm(0);
	er_stop(&rig);
	return 0;
}

/* A thread with one call, which the service holds. */
struct caller {
	u_int word, got;
	enum clnt_stat stat;
	_Atomic pid_t tid;
	pthread_t thread;
};

static void *call_hold(void *arg)
{
	struct caller *c = arg;

	c->tid = (pid_t)syscall(SYS_gettid);
	c->stat = clnt_call(clnt, ER_HOLD, (xdrproc_t)xdr_u_int, &c->word, (xdrproc_t)xdr_u_int, &c->got, plenty);
	return NULL;
}

/* Returns when the service holds @held calls, and the thread sleeps. */
static void start(struct caller *c, u_int word, u_int held)
{
	u_int n = 0;

	*c = (struct caller){ .word = word };
	assert_int_equal(pthread_create(&c->thread, NULL, call_hold, c), 0);
	while (n != held)
		assert_int_equal(clnt_call(other, ER_HELD, VOID, NULL, (xdrproc_t)xdr_u_int, &n, plenty), RPC_SUCCESS);
	thread_await_sleep(c->tid);
}

static void release(u_int word)
{
	assert_int_equal(clnt_call(other, ER_RELEASE, (xdrproc_t)xdr_u_int, &word, VOID, NULL, plenty), RPC_SUCCESS);
}

static void end(struct caller *c)
{
	release(c->word);
	pthread_join(c->thread, NULL);
	assert_int_equal(c->stat, RPC_SUCCESS);
	assert_int_equal(c->got, c->word);
}

static void skip_if_it_cannot_be(void)
{
	if (getenv("LEAT_TEST_CREDITS")) {
		print_message("skipped: one credit is one call at a time\n");
		skip();
	}
	if (getenv("LEAT_TEST_CHAOS")) {
		print_message("skipped: the fabric of this variant holds back what was sent until the engine runs again\n");
		skip();
	}
}

/* The leader gets replies of others, and wakes their threads. */
static void followers_wake_up(void **state)
{
	struct caller a, b, c;

	(void)state;
	skip_if_it_cannot_be();
	start(&a, 1001, 1);
	start(&b, 1002, 2);
	start(&c, 1003, 3);
	end(&c);
	end(&b);
	end(&a);
}

/* The leader goes first: then another one leads, and so on. */
static void role_passes_on(void **state)
{
	struct caller a, b, c;

	(void)state;
	skip_if_it_cannot_be();
	start(&a, 2001, 1);
	start(&b, 2002, 2);
	start(&c, 2003, 3);
	end(&a);
	end(&b);
	end(&c);
	start(&a, 2004, 1);
	end(&a);
}

/* A thread may come while another one leads, and after the role has been passed on. */
static void threads_come_and_go(void **state)
{
	struct caller a, b, c;

	(void)state;
	skip_if_it_cannot_be();
	start(&a, 3001, 1);
	start(&b, 3002, 2);
	end(&b);
	start(&c, 3003, 2);
	end(&a);
	start(&a, 3004, 2);
	start(&b, 3005, 3);
	end(&c);
	end(&b);
	end(&a);
}

/* ---- outcomes ---- */

struct failing {
	sem_t has_failed, look;
	enum clnt_stat stat, later;
	bool has_text;
};

static void *call_unknown(void *arg)
{
	struct failing *f = arg;
	struct rpc_err err;

	f->stat = clnt_call(clnt, 99, VOID, NULL, VOID, NULL, plenty);
	sem_post(&f->has_failed);
	while (sem_wait(&f->look))
		;
	clnt_geterr(clnt, &err);
	f->later = err.re_status;
	f->has_text = *rpcrdma_clnt_why(clnt);
	return NULL;
}

/* clnt_geterr() is about the thread's own call, whatever others have done since. */
static void error_stays_with_its_thread(void **state)
{
	struct failing f = { 0 };
	struct rpc_err err;
	pthread_t thread;

	(void)state;
	sem_init(&f.has_failed, 0, 0);
	sem_init(&f.look, 0, 0);
	assert_int_equal(pthread_create(&thread, NULL, call_unknown, &f), 0);
	while (sem_wait(&f.has_failed))
		;
	assert_int_equal(clnt_call(clnt, ER_NULL, VOID, NULL, VOID, NULL, plenty), RPC_SUCCESS);
	sem_post(&f.look);
	pthread_join(thread, NULL);
	assert_int_equal(f.stat, RPC_PROCUNAVAIL);
	assert_int_equal(f.later, RPC_PROCUNAVAIL);
	assert_true(f.has_text);
	clnt_geterr(clnt, &err);
	assert_int_equal(err.re_status, RPC_SUCCESS);
	assert_string_equal(rpcrdma_clnt_why(clnt), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(followers_wake_up, setup, teardown),
		cmocka_unit_test_setup_teardown(role_passes_on, setup, teardown),
		cmocka_unit_test_setup_teardown(threads_come_and_go, setup, teardown),
		cmocka_unit_test_setup_teardown(error_stays_with_its_thread, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
