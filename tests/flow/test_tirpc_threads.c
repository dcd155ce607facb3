/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_tirpc_threads.c - threads that share a CLIENT: each gets its own reply and its own error
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/util.h"
#include "echo_rig.h"
#include "rpcrdma_tirpc.h"

#define VOID ((xdrproc_t)(void (*)(void))xdr_void)
#define THREADS 12u
#define ROUNDS 150u

static const struct timeval plenty = { 60, 0 };
static struct er_rig rig;
static CLIENT *clnt;
static enum rpcrdma_poll polling;

static int setup(void **state)
{
	const struct rpcrdma_tirpc_attr attr = { .size = sizeof(attr), .poll = polling };

	er_start(&rig, *(enum rpcrdma_transport *)*state);
	clnt = rpcrdma_clnt_create(rig.url, ER_PROG, ER_VERS, &attr);
	return clnt ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	if (clnt)
		clnt_destroy(clnt);
	clnt = NULL;
	if (rig.pid)
		er_stop(&rig);
	return 0;
}

/* cmocka's assertions belong to the thread of the test: others count what is wrong. */
static atomic_uint wrong;

static void *in_threads(void *(*fn)(void *))
{
	pthread_t thread[THREADS];

	wrong = 0;
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, fn, (void *)i), 0);
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(wrong, 0);
	return NULL;
}

static bool is_echo(uint32_t seed, u_int n)
{
	struct er_bytes in = { .n = n, .data = malloc(n + 1) }, out = { 0 };
	bool ok;

	for (u_int i = 0; i < n; i++)
		in.data[i] = (char)er_byte(i + seed);
	ok = clnt_call(clnt, ER_ECHO, (xdrproc_t)xdr_er_bytes, &in, (xdrproc_t)xdr_er_bytes, &out, plenty) == RPC_SUCCESS &&
	     out.n == n && !memcmp(in.data, out.data, n);
	free(in.data);
	clnt_freeres(clnt, (xdrproc_t)xdr_er_bytes, &out);
	return ok;
}

static void *echoes(void *arg)
{
	uint32_t id = (uint32_t)(uintptr_t)arg;

	for (uint32_t i = 0; i < ROUNDS; i++)
		wrong += !is_echo(id * ROUNDS + i, 1 + (id * 37 + i * 101) % 6000);
	return NULL;
}

static void own_replies(void **state)
{
	(void)state;
	in_threads(echoes);
}

/* Statuses of a thread are not those of another one. */
static void *errors(void *arg)
{
	static const struct {
		uint32_t proc;
		enum clnt_stat stat;
	} calls[] = { { ER_NULL, RPC_SUCCESS }, { ER_SYSTEM, RPC_SYSTEMERROR }, { 99, RPC_PROCUNAVAIL } };
	uintptr_t id = (uintptr_t)arg;
	struct rpc_err err;

	for (size_t i = id; i < id + ROUNDS; i++) {
		wrong += clnt_call(clnt, calls[i % 3].proc, VOID, NULL, VOID, NULL, plenty) != calls[i % 3].stat;
		clnt_geterr(clnt, &err);
		wrong += err.re_status != calls[i % 3].stat || !*rpcrdma_clnt_why(clnt) != !calls[i % 3].stat;
	}
	return NULL;
}

static void own_errors(void **state)
{
	(void)state;
	in_threads(errors);
}

/* The thread that leads waits longest; the others come and go, and one has a time-out of its own. */
static void *unequal(void *arg)
{
	const struct timeval soon = { 0, 3000 };
	uintptr_t id = (uintptr_t)arg;
	u_int ms = id % 3 == 0 ? 30 : 1;

	for (int i = 0; i < 10; i++) {
		if (id == 1)
			wrong += clnt_call(clnt, ER_NEVER, VOID, NULL, VOID, NULL, soon) != RPC_TIMEDOUT;
		else if (rig.transport == RPCRDMA_TCP && id % 3 == 0) /* libtirpc's service does one call at a time */
			wrong += !is_echo((uint32_t)id, 9);
		else
			wrong += clnt_call(clnt, ER_SLOW, (xdrproc_t)xdr_u_int, &ms, VOID, NULL, plenty) != RPC_SUCCESS;
	}
	return NULL;
}

static void role_passes_on(void **state)
{
	(void)state;
	in_threads(unequal);
}

/* A filter may call, on the same CLIENT too. */
static bool_t xdr_calls(XDR *x, u_int *n)
{
	u_int count;

	if (clnt_call(clnt, ER_COUNT, VOID, NULL, (xdrproc_t)xdr_u_int, &count, plenty))
		return FALSE;
	return xdr_u_int(x, n);
}

static void *nested(void *arg)
{
	uintptr_t id = (uintptr_t)arg;

	for (u_int i = 0; i < 20; i++) {
		struct er_bytes out = { 0 };
		u_int n = (u_int)id * 10 + i;

		wrong += clnt_call(clnt, ER_FILL, (xdrproc_t)xdr_calls, &n, (xdrproc_t)xdr_er_bytes, &out, plenty) != RPC_SUCCESS;
		wrong += out.n != n;
		clnt_freeres(clnt, (xdrproc_t)xdr_er_bytes, &out);
		wrong += clnt_call(clnt, ER_COUNT, VOID, NULL, (xdrproc_t)xdr_calls, &n, plenty) != RPC_SUCCESS;
	}
	return NULL;
}

static void filters_call(void **state)
{
	(void)state;
	in_threads(nested);
}

/* clnt_destroy() waits for the calls of other threads. */
static void *slow(void *arg)
{
	u_int ms = 100;

	wrong += clnt_call((CLIENT *)arg, ER_SLOW, (xdrproc_t)xdr_u_int, &ms, VOID, NULL, plenty) != RPC_SUCCESS;
	return NULL;
}

static void destroy_waits(void **state)
{
	struct rpcrdma_tirpc_attr attr = { .size = sizeof(attr) };
	CLIENT *mine = clnt;
	pthread_t thread;
	u_int before = 0, now = 0;

	(void)state;
	wrong = 0;
	assert_int_equal(clnt_call(mine, ER_COUNT, VOID, NULL, (xdrproc_t)xdr_u_int, &before, plenty), RPC_SUCCESS);
	assert_int_equal(pthread_create(&thread, NULL, slow, mine), 0);
	if (rig.transport == RPCRDMA_TCP) { /* the service is busy meanwhile: by time only */
		pthread_join(thread, NULL);
	} else {
		CLIENT *other = rpcrdma_clnt_create(rig.url, ER_PROG, ER_VERS, &attr);

		assert_non_null(other);
		while (now == before) /* until the call is being served */
			assert_int_equal(clnt_call(other, ER_COUNT, VOID, NULL, (xdrproc_t)xdr_u_int, &now, plenty), RPC_SUCCESS);
		clnt_destroy(other);
		clnt = NULL;
		clnt_destroy(mine);
		pthread_join(thread, NULL);
	}
	assert_int_equal(wrong, 0);
}

static enum rpcrdma_transport transports[] = { RPCRDMA_LOCAL, RPCRDMA_TCP };

#define BOTH(test)                                                                                         \
	{ .name = #test " (local)", .test_func = test, .setup_func = setup, .teardown_func = teardown,     \
	  .initial_state = &transports[0] },                                                               \
	{ .name = #test " (tcp)", .test_func = test, .setup_func = setup, .teardown_func = teardown,       \
	  .initial_state = &transports[1] }

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(own_replies), BOTH(own_errors), BOTH(role_passes_on), BOTH(filters_call), BOTH(destroy_waits),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	polling = RPCRDMA_POLL_EVENT;
	return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
