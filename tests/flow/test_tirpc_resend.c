/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_tirpc_resend.c - a service that is restarted under a call: a CLIENT with `resend` sends the call again, others do not
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
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

static const struct timeval plenty = { 60, 0 };
static struct er_rig rig;
static pid_t spare;
static CLIENT *clnt;

static int setup(void **state)
{
	er_start(&rig, *(enum rpcrdma_transport *)*state);
	spare = er_spare(&rig);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	if (clnt)
		clnt_destroy(clnt);
	clnt = NULL;
	if (waitpid(rig.pid, NULL, WNOHANG)) /* it has ended, as it should: the spare serves */
		rig.pid = spare;
	er_stop(&rig);
	return 0;
}

static void create(bool resend)
{
	const struct rpcrdma_tirpc_attr attr = { .size = sizeof(attr), .resend = resend };

	clnt = rpcrdma_clnt_create(rig.url, ER_PROG, ER_VERS, &attr);
	assert_non_null(clnt);
}

/* Which execution of ER_ONCE replied. */
static enum clnt_stat call_once(u_int *ret)
{
	return clnt_call(clnt, ER_ONCE, VOID, NULL, (xdrproc_t)xdr_u_int, ret, plenty);
}

static void sent_again(void **state)
{
	u_int n = 0;

	(void)state;
	create(true);
	assert_int_equal(call_once(&n), RPC_SUCCESS);
	assert_int_equal(n, 2); /* the first service had executed it before it ended */
	assert_int_equal(er_once(), 2);
	assert_string_equal(rpcrdma_clnt_why(clnt), "");
	assert_int_equal(call_once(&n), RPC_SUCCESS);
	assert_int_equal(er_once(), 3);
}

static void not_sent_again(void **state)
{
	struct rpc_err err;
	u_int n = 0;
	enum clnt_stat stat;

	(void)state;
	create(false);
	assert_int_equal(call_once(&n), RPC_CANTRECV);
	clnt_geterr(clnt, &err);
	assert_int_equal(err.re_status, RPC_CANTRECV);
	assert_int_equal(err.re_errno, ECONNRESET);
	do { /* until the other service listens. The kernel may accept a connection for the one that ends, and reset it. */
		stat = clnt_call(clnt, ER_NULL, VOID, NULL, VOID, NULL, plenty);
		if (stat && stat != RPC_CANTSEND && stat != RPC_CANTRECV)
			fail_msg("%s: %s", clnt_sperror(clnt, "NULL"), rpcrdma_clnt_why(clnt));
	} while (stat);
	assert_int_equal(er_once(), 1);
	assert_int_equal(call_once(&n), RPC_SUCCESS);
	assert_int_equal(n, 2);
	assert_int_equal(er_once(), 2);
}

static enum rpcrdma_transport transports[] = { RPCRDMA_LOCAL, RPCRDMA_TCP };

#define BOTH(test)                                                                                         \
	{ .name = #test " (local)", .test_func = test, .setup_func = setup, .teardown_func = teardown,     \
	  .initial_state = &transports[0] },                                                               \
	{ .name = #test " (tcp)", .test_func = test, .setup_func = setup, .teardown_func = teardown,       \
	  .initial_state = &transports[1] }

int main(void)
{
	const struct CMUnitTest tests[] = { BOTH(sent_again), BOTH(not_sent_again) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
