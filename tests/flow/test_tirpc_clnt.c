/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_tirpc_clnt.c - a CLIENT for one thread: calls, statuses, time-outs, credentials, lost connections
 *
 * Each test runs over the local fabric and over TCP. The service over TCP is libtirpc's own.
 */
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "echo_rig.h"
#include "rpcrdma_tirpc.h"

#define VOID ((xdrproc_t)(void (*)(void))xdr_void)

static const struct timeval plenty = { 25, 0 };
static struct er_rig rig;
static CLIENT *clnt;

static int setup(void **state)
{
	er_start(&rig, *(enum rpcrdma_transport *)*state);
	clnt = rpcrdma_clnt_create(rig.url, ER_PROG, ER_VERS, NULL);
	if (!clnt)
		clnt_pcreateerror(rig.url);
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

static enum clnt_stat null_call(void)
{
	enum clnt_stat stat = clnt_call(clnt, ER_NULL, VOID, NULL, VOID, NULL, plenty);

	if (stat)
		print_message("%s: %s\n", clnt_sperror(clnt, "NULL"), rpcrdma_clnt_why(clnt));
	return stat;
}

static void null(void **state)
{
	struct rpc_err err;

	(void)state;
	for (int i = 0; i < 100; i++)
		assert_int_equal(null_call(), RPC_SUCCESS);
	clnt_geterr(clnt, &err);
	assert_int_equal(err.re_status, RPC_SUCCESS);
	assert_string_equal(rpcrdma_clnt_why(clnt), "");
}

static void echo_of(u_int n)
{
	struct er_bytes in = { .n = n, .data = malloc(n + 1) }, out = { 0 };

	assert_non_null(in.data);
	for (u_int i = 0; i < n; i++)
		in.data[i] = (char)er_byte(i);
	assert_int_equal(clnt_call(clnt, ER_ECHO, (xdrproc_t)xdr_er_bytes, &in, (xdrproc_t)xdr_er_bytes, &out, plenty),
			 RPC_SUCCESS);
	assert_int_equal(out.n, n);
	if (n)
		assert_memory_equal(in.data, out.data, n);
	assert_true(clnt_freeres(clnt, (xdrproc_t)xdr_er_bytes, &out));
	assert_null(out.data);
	free(in.data);
}

static void echo(void **state)
{
	(void)state;
	for (u_int n = 0; n < 20; n++)
		echo_of(n);
	for (u_int n = 900; n < 5000; n += 123)
		echo_of(n);
	for (u_int n = 4000; n < 4100; n++)
		echo_of(n);
}

static enum clnt_stat fail_of(uint32_t proc, struct rpc_err *ret)
{
	enum clnt_stat stat = clnt_call(clnt, proc, VOID, NULL, VOID, NULL, plenty);

	clnt_geterr(clnt, ret);
	assert_int_equal(ret->re_status, stat);
	assert_string_not_equal(rpcrdma_clnt_why(clnt), "");
	assert_non_null(clnt_sperror(clnt, "test"));
	return stat;
}

/* Each status of a reply, and the CLIENT works afterwards. */
static void statuses(void **state)
{
	struct rpc_err err;
	uint32_t other;

	(void)state;
	assert_int_equal(fail_of(ER_SYSTEM, &err), RPC_SYSTEMERROR);
	assert_int_equal(fail_of(ER_GARBAGE, &err), RPC_CANTDECODEARGS);
	assert_int_equal(fail_of(99, &err), RPC_PROCUNAVAIL);
	assert_int_equal(fail_of(ER_AUTH, &err), RPC_AUTHERROR);
	assert_int_equal(err.re_why, AUTH_TOOWEAK);
	other = ER_VERS + 1;
	assert_true(clnt_control(clnt, CLSET_VERS, &other));
	assert_int_equal(fail_of(ER_NULL, &err), RPC_PROGVERSMISMATCH);
	assert_int_equal(err.re_vers.low, ER_VERS);
	assert_int_equal(err.re_vers.high, ER_VERS);
	other = ER_PROG + 1;
	assert_true(clnt_control(clnt, CLSET_PROG, &other));
	assert_int_equal(fail_of(ER_NULL, &err), RPC_PROGUNAVAIL);
	other = ER_PROG;
	assert_true(clnt_control(clnt, CLSET_PROG, &other));
	other = ER_VERS;
	assert_true(clnt_control(clnt, CLSET_VERS, &other));
	assert_int_equal(null_call(), RPC_SUCCESS);
	clnt_geterr(clnt, &err);
	assert_int_equal(err.re_status, RPC_SUCCESS);
}

static bool_t xdr_refuse(XDR *x, void *p)
{
	(void)x;
	(void)p;
	return FALSE;
}

/* Filters that refuse: nothing is sent, or nothing is returned. */
static void filters_refuse(void **state)
{
	u_int n = 10, calls[2] = { 0 };

	(void)state;
	assert_int_equal(clnt_call(clnt, ER_COUNT, VOID, NULL, (xdrproc_t)xdr_u_int, &calls[0], plenty), RPC_SUCCESS);
	assert_int_equal(clnt_call(clnt, ER_NULL, (xdrproc_t)xdr_refuse, NULL, VOID, NULL, plenty), RPC_CANTENCODEARGS);
	assert_int_equal(clnt_call(clnt, ER_COUNT, VOID, NULL, (xdrproc_t)xdr_u_int, &calls[1], plenty), RPC_SUCCESS);
	assert_int_equal(calls[0], calls[1]);
	assert_int_equal(clnt_call(clnt, ER_FILL, (xdrproc_t)xdr_u_int, &n, (xdrproc_t)xdr_refuse, NULL, plenty),
			 RPC_CANTDECODERES);
	assert_int_equal(null_call(), RPC_SUCCESS);
}

static void times_out(void **state)
{
	const struct timeval soon = { 0, 20000 };
	struct rpc_err err;

	(void)state;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(clnt_call(clnt, ER_NEVER, VOID, NULL, VOID, NULL, soon), RPC_TIMEDOUT);
		clnt_geterr(clnt, &err);
		assert_int_equal(err.re_status, RPC_TIMEDOUT);
		assert_int_equal(null_call(), RPC_SUCCESS);
	}
}

/* A late reply is dropped: the next call gets its own. */
static void late_reply(void **state)
{
	const struct timeval soon = { 0, 1000 };
	u_int ms = 50;

	(void)state;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(clnt_call(clnt, ER_SLOW, (xdrproc_t)xdr_u_int, &ms, VOID, NULL, soon), RPC_TIMEDOUT);
		echo_of(100);
		assert_int_equal(clnt_call(clnt, ER_SLOW, (xdrproc_t)xdr_u_int, &ms, VOID, NULL, plenty), RPC_SUCCESS);
	}
}

static void controls(void **state)
{
	struct timeval t = { 7, 5 }, bad = { -1, 0 }, got;
	struct sockaddr_storage addr;
	struct netbuf peer;
	uint32_t word = 0;
	int fd = -1;

	(void)state;
	assert_true(clnt_control(clnt, CLGET_VERS, &word));
	assert_int_equal(word, ER_VERS);
	assert_true(clnt_control(clnt, CLGET_PROG, &word));
	assert_int_equal(word, ER_PROG);
	assert_true(clnt_control(clnt, CLGET_FD, &fd));
	assert_true(fd >= 0);
	assert_true(clnt_control(clnt, CLGET_SERVER_ADDR, &addr));
	assert_int_equal(addr.ss_family, rig.transport == RPCRDMA_TCP ? AF_INET : AF_UNIX);
	assert_true(clnt_control(clnt, CLGET_SVC_ADDR, &peer));
	assert_true(peer.len > 0 && !memcmp(peer.buf, &addr, peer.len));
	assert_int_equal(null_call(), RPC_SUCCESS);
	assert_true(clnt_control(clnt, CLGET_TIMEOUT, &got)); /* that of the last call */
	assert_int_equal(got.tv_sec, plenty.tv_sec);
	assert_false(clnt_control(clnt, CLSET_TIMEOUT, &bad));
	assert_true(clnt_control(clnt, CLSET_TIMEOUT, &t));
	assert_int_equal(null_call(), RPC_SUCCESS);
	assert_true(clnt_control(clnt, CLGET_TIMEOUT, &got));
	assert_true(got.tv_sec == 7 && got.tv_usec == 5);
	assert_true(clnt_control(clnt, CLGET_XID, &word));
	assert_true(clnt_control(clnt, CLSET_FD_CLOSE, NULL));
	assert_true(clnt_control(clnt, CLSET_FD_NCLOSE, NULL));
	assert_false(clnt_control(clnt, CLSET_SVC_ADDR, &peer));
	assert_false(clnt_control(clnt, CLSET_TIMEOUT, NULL));
	assert_false(clnt_control(clnt, CLSET_RETRY_TIMEOUT, &t));
	assert_false(clnt_control(clnt, 4711, &t));
}

/* clnt_control() decides the time to wait, not the argument of the call. */
static void timeout_by_control(void **state)
{
	struct timeval t = { 0, 20000 };

	(void)state;
	assert_true(clnt_control(clnt, CLSET_TIMEOUT, &t));
	assert_int_equal(clnt_call(clnt, ER_NEVER, VOID, NULL, VOID, NULL, plenty), RPC_TIMEDOUT);
}

static void auth_sys(void **state)
{
	char host[] = "here";
	AUTH *none = clnt->cl_auth, *sys;
	u_int uid = 0;

	(void)state;
	if (rig.transport != RPCRDMA_TCP)
		skip(); /* the service of the local fabric does not say */
	sys = authunix_create(host, 4711, 4712, 0, NULL);
	assert_non_null(sys);
	assert_int_equal(clnt_call(clnt, ER_UID, VOID, NULL, (xdrproc_t)xdr_u_int, &uid, plenty), RPC_SUCCESS);
	assert_int_equal(uid, UINT32_MAX);
	clnt->cl_auth = sys;
	assert_int_equal(clnt_call(clnt, ER_UID, VOID, NULL, (xdrproc_t)xdr_u_int, &uid, plenty), RPC_SUCCESS);
	assert_int_equal(uid, 4711);
	clnt->cl_auth = none;
	auth_destroy(sys);
}

/* A server that dies during a call; a call without a server; and the next call, when there is one again. */
static void server_dies(void **state)
{
	struct rpc_err err;
	u_int calls = 99;

	(void)state;
	assert_int_equal(fail_of(ER_DIE, &err), RPC_CANTRECV);
	assert_int_equal(waitpid(rig.pid, NULL, 0), rig.pid);
	rig.pid = 0;
	assert_int_equal(fail_of(ER_NULL, &err), RPC_CANTSEND);
	assert_true(err.re_errno == ECONNREFUSED || err.re_errno == ECONNRESET);
	er_restart(&rig);
	assert_int_equal(clnt_call(clnt, ER_COUNT, VOID, NULL, (xdrproc_t)xdr_u_int, &calls, plenty), RPC_SUCCESS);
	assert_int_equal(calls, 0); /* ER_DIE was not sent again */
	assert_int_equal(null_call(), RPC_SUCCESS);
}

/* A server that ended, and came back, between two calls. A connection that was used in the last millisecond is not
 * checked before a call. */
static void server_restarts(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(null_call(), RPC_SUCCESS);
		er_stop(&rig);
		usleep(2000);
		er_restart(&rig);
		assert_int_equal(null_call(), RPC_SUCCESS);
	}
}

static void cannot_create(void **state)
{
	const struct rpcrdma_tirpc_attr bad = { .size = sizeof(bad), .max_bytes = RPCRDMA_TIRPC_MAX_BYTES + 1 };
	char url[sizeof(rig.url)];

	(void)state;
	assert_null(rpcrdma_clnt_create("what://is", ER_PROG, ER_VERS, NULL));
	assert_int_equal(rpc_createerr.cf_stat, RPC_SYSTEMERROR);
	assert_int_equal(rpc_createerr.cf_error.re_errno, EINVAL);
	assert_null(rpcrdma_clnt_create(NULL, ER_PROG, ER_VERS, NULL));
	assert_int_equal(rpc_createerr.cf_error.re_errno, EINVAL);
	assert_null(rpcrdma_clnt_create("tcp://no-such-host.invalid:1", ER_PROG, ER_VERS, NULL));
	assert_int_equal(rpc_createerr.cf_stat, RPC_UNKNOWNHOST);
	assert_null(rpcrdma_clnt_create(rig.url, ER_PROG, ER_VERS, &bad));
	assert_int_equal(rpc_createerr.cf_stat, RPC_SYSTEMERROR);
	assert_int_equal(rpc_createerr.cf_error.re_errno, EINVAL);
	strcpy(url, rig.url);
	clnt_destroy(clnt);
	clnt = NULL;
	er_stop(&rig);
	assert_null(rpcrdma_clnt_create(url, ER_PROG, ER_VERS, NULL));
	assert_int_equal(rpc_createerr.cf_stat, RPC_SYSTEMERROR);
	assert_int_equal(rpc_createerr.cf_error.re_errno, ECONNREFUSED);
	assert_non_null(clnt_spcreateerror("test"));
}

/* As with libtirpc: a server that accepts connections, and does nothing else, does not hold up the constructor. */
static void created_without_a_call(void **state)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const struct timeval short_time = { 0, 1000 };
	socklen_t len = sizeof(in);
	int fd = socket(AF_INET, SOCK_STREAM, 0), conn;
	char url[64], byte;
	CLIENT *c;

	(void)state;
	assert_int_equal(bind(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	assert_int_equal(listen(fd, 8), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&in, &len), 0);
	snprintf(url, sizeof(url), "tcp://127.0.0.1:%u", ntohs(in.sin_port));
	c = rpcrdma_clnt_create(url, ER_PROG, ER_VERS, NULL);
	assert_non_null(c);
	conn = accept(fd, NULL, NULL);
	assert_true(conn >= 0);
	assert_int_equal(recv(conn, &byte, 1, MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(clnt_call(c, ER_NULL, VOID, NULL, VOID, NULL, short_time), RPC_TIMEDOUT);
	clnt_destroy(c);
	close(conn);
	close(fd);
}

/* The errors of two handles of a thread do not mix. */
static void outcome_of_each_handle(void **state)
{
	CLIENT *more[10];
	struct rpc_err err;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(more); i++) {
		more[i] = rpcrdma_clnt_create(rig.url, ER_PROG, ER_VERS, NULL);
		assert_non_null(more[i]);
	}
	assert_int_equal(fail_of(ER_SYSTEM, &err), RPC_SYSTEMERROR);
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(clnt_call(more[i], 99, VOID, NULL, VOID, NULL, plenty), RPC_PROCUNAVAIL);
	clnt_geterr(clnt, &err);
	assert_int_equal(err.re_status, RPC_SYSTEMERROR);
	clnt_geterr(more[2], &err);
	assert_int_equal(err.re_status, RPC_PROCUNAVAIL);
	for (size_t i = 0; i < ARRAY_SIZE(more); i++) {
		(void)clnt_call(more[i], ER_NULL, VOID, NULL, VOID, NULL, plenty);
		clnt_destroy(more[i]);
	}
}

static CLIENT *called_by_filter;

/* A filter that calls on another CLIENT, with success, and refuses. */
static bool_t call_and_refuse(XDR *x, void *unused)
{
	(void)x;
	(void)unused;
	(void)clnt_call(called_by_filter, ER_NULL, VOID, NULL, VOID, NULL, plenty);
	return FALSE;
}

static void outcome_of_a_filter_that_calls(void **state)
{
	struct rpc_err err;

	(void)state;
	called_by_filter = rpcrdma_clnt_create(rig.url, ER_PROG, ER_VERS, NULL);
	assert_non_null(called_by_filter);
	assert_int_equal(clnt_call(clnt, ER_NULL, (xdrproc_t)call_and_refuse, NULL, VOID, NULL, plenty), RPC_CANTENCODEARGS);
	clnt_geterr(clnt, &err);
	assert_int_equal(err.re_status, RPC_CANTENCODEARGS);
	clnt_geterr(called_by_filter, &err);
	assert_int_equal(err.re_status, RPC_SUCCESS);
	clnt_destroy(called_by_filter);
}

/* Calls with a time-out of zero arrive in order, however many; with a pointer for results they time out. */
static void batched_calls(void **state)
{
	const struct timeval zero = { 0, 0 };
	struct er_bytes log = { 0 };
	const uint32_t *words;
	u_int i;

	(void)state;
	for (i = 0; i < 300; i++) {
		enum clnt_stat stat = clnt_call(clnt, ER_ADD, (xdrproc_t)xdr_u_int, &i, i % 2 ? VOID : NULL, NULL, zero);

		if (stat != (i % 2 ? RPC_TIMEDOUT : RPC_SUCCESS))
			fail_msg("call %u: %s: %s", i, clnt_sperror(clnt, ""), rpcrdma_clnt_why(clnt));
	}
	assert_int_equal(clnt_call(clnt, ER_LOG, VOID, NULL, (xdrproc_t)xdr_er_bytes, &log, plenty), RPC_SUCCESS);
	words = (const uint32_t *)(const void *)log.data;
	assert_int_equal(log.n, 4 * 300);
	for (i = 0; i < 300; i++)
		assert_int_equal(words[i], i);
	clnt_freeres(clnt, (xdrproc_t)xdr_er_bytes, &log);
	for (i = 0; i < 10; i++) /* these get replies, which are dropped */
		assert_int_equal(clnt_call(clnt, ER_NULL, VOID, NULL, NULL, NULL, zero), RPC_SUCCESS);
	echo_of(50);
}

/* A batched call is gone when clnt_call() returns: no other call has to push it. */
static void batched_call_is_sent(void **state)
{
	const struct timeval zero = { 0, 0 };
	struct er_bytes log = { 0 };
	u_int word = 77;
	CLIENT *other;

	(void)state;
	if (getenv("LEAT_TEST_CHAOS") && rig.transport == RPCRDMA_LOCAL) {
		print_message("skipped: the fabric of this variant holds back what was sent until the engine runs again\n");
		skip();
	}
	other = rpcrdma_clnt_create(rig.url, ER_PROG, ER_VERS, NULL);
	assert_non_null(other);
	assert_int_equal(clnt_call(clnt, ER_ADD, (xdrproc_t)xdr_u_int, &word, NULL, NULL, zero), RPC_SUCCESS);
	while (!log.n) {
		assert_int_equal(clnt_call(other, ER_LOG, VOID, NULL, (xdrproc_t)xdr_er_bytes, &log, plenty), RPC_SUCCESS);
		clnt_freeres(other, (xdrproc_t)xdr_er_bytes, &log);
	}
	clnt_destroy(other);
}

static void batched_call_cannot_be_sent(void **state)
{
	const struct timeval zero = { 0, 0 };

	(void)state;
	er_stop(&rig);
	usleep(2000); /* see server_restarts() */
	assert_int_equal(clnt_call(clnt, ER_NULL, VOID, NULL, NULL, NULL, zero), RPC_CANTSEND);
	er_restart(&rig);
	assert_int_equal(clnt_call(clnt, ER_NULL, VOID, NULL, NULL, NULL, zero), RPC_SUCCESS);
	assert_int_equal(null_call(), RPC_SUCCESS);
}

/* A CLIENT is its process's. A child says so, may destroy its copy, and may have one of its own. */
static void child_has_none(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	assert_int_equal(null_call(), RPC_SUCCESS);
	pid = fork();
	if (!pid) {
		CLIENT *own;
		bool ok = clnt_call(clnt, ER_NULL, VOID, NULL, VOID, NULL, plenty) == RPC_FAILED && *rpcrdma_clnt_why(clnt);

		clnt_destroy(clnt);
		own = rpcrdma_clnt_create(rig.url, ER_PROG, ER_VERS, NULL);
		ok = ok && own && clnt_call(own, ER_NULL, VOID, NULL, VOID, NULL, plenty) == RPC_SUCCESS;
		if (own)
			clnt_destroy(own);
		_exit(ok ? 0 : 1);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(null_call(), RPC_SUCCESS);
	echo_of(5000);
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
		BOTH(null), BOTH(echo), BOTH(statuses), BOTH(filters_refuse), BOTH(times_out), BOTH(late_reply), BOTH(controls),
		BOTH(timeout_by_control), BOTH(auth_sys), BOTH(server_dies), BOTH(server_restarts), BOTH(cannot_create),
		cmocka_unit_test(created_without_a_call),
		BOTH(outcome_of_each_handle), BOTH(outcome_of_a_filter_that_calls), BOTH(batched_calls), BOTH(batched_call_is_sent), BOTH(batched_call_cannot_be_sent),
		BOTH(child_has_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
