/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_tirpc_proxy.c - what the handle of librpcrdma-preload.so passes on, and what it does itself
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "proxy.h"

/* The handle inside: it notes what arrives. */
static struct inner {
	CLIENT client;
	unsigned calls, controls, destroyed;
	u_int request;
	AUTH *auth;
} inner;

static enum clnt_stat inner_call(CLIENT *clnt, rpcproc_t proc, xdrproc_t xargs, void *args, xdrproc_t xres, void *res,
				 struct timeval limit)
{
	assert_ptr_equal(clnt, &inner.client);
	(void)xargs;
	(void)args;
	(void)xres;
	(void)res;
	(void)limit;
	inner.calls++;
	inner.auth = clnt->cl_auth;
	return proc ? RPC_PROCUNAVAIL : RPC_SUCCESS;
}

static void inner_abort(CLIENT *clnt)
{
	(void)clnt;
}

static void inner_geterr(CLIENT *clnt, struct rpc_err *err)
{
	assert_ptr_equal(clnt, &inner.client);
	err->re_status = RPC_CANTRECV;
}

static bool_t inner_freeres(CLIENT *clnt, xdrproc_t xres, void *res)
{
	(void)xres;
	(void)res;
	return clnt == &inner.client;
}

static void inner_destroy(CLIENT *clnt)
{
	assert_ptr_equal(clnt, &inner.client);
	inner.destroyed++;
}

static bool_t inner_control(CLIENT *clnt, u_int request, void *info)
{
	assert_ptr_equal(clnt, &inner.client);
	(void)info;
	inner.controls++;
	inner.request = request;
	return request != CLSET_RETRY_TIMEOUT;
}

static struct clnt_ops inner_ops = {
	.cl_call = inner_call,
	.cl_abort = inner_abort,
	.cl_geterr = inner_geterr,
	.cl_freeres = inner_freeres,
	.cl_destroy = inner_destroy,
	.cl_control = inner_control,
};

/* Nothing listens there. */
static const struct rt_way way = { .host = "h", .url = "local:///nonexistent/socket" };

static CLIENT *create(const struct rt_way *w, const struct rt_asked *asked)
{
	CLIENT *clnt;

	inner = (struct inner){ .client = { .cl_auth = (AUTH *)(void *)&inner, .cl_ops = &inner_ops } };
	clnt = rt_proxy_create(&inner.client, w, asked, NULL);
	assert_non_null(clnt);
	return clnt;
}

static enum clnt_stat call(CLIENT *clnt, rpcproc_t proc)
{
	const struct timeval limit = { .tv_sec = 1 };

	return clnt_call(clnt, proc, NULL, NULL, NULL, NULL, limit);
}

static void passes_on(void **state)
{
	const struct rt_asked asked = { .prog = 1, .vers = 2, .fd = -1 };
	const struct timeval limit = { .tv_sec = 5 };
	CLIENT *clnt = create(&way, &asked);
	struct rpc_err err;
	AUTH own;

	(void)state;
	assert_ptr_equal(clnt->cl_auth, &inner); /* what the program may destroy and replace */
	assert_int_equal(call(clnt, 0), RPC_SUCCESS);
	assert_int_equal(call(clnt, 1), RPC_PROCUNAVAIL);
	clnt->cl_auth = &own;
	assert_int_equal(call(clnt, 0), RPC_SUCCESS);
	assert_ptr_equal(inner.auth, &own);
	clnt_geterr(clnt, &err);
	assert_int_equal(err.re_status, RPC_CANTRECV);
	assert_true(clnt_freeres(clnt, NULL, NULL));
	assert_true(clnt_control(clnt, CLSET_TIMEOUT, (void *)(uintptr_t)&limit));
	assert_int_equal(inner.request, CLSET_TIMEOUT);
	/* without a socket of the program's, and for TCP, these are for the handle inside */
	assert_true(clnt_control(clnt, CLSET_FD_CLOSE, NULL));
	assert_true(clnt_control(clnt, CLGET_FD, NULL));
	assert_false(clnt_control(clnt, CLSET_RETRY_TIMEOUT, (void *)(uintptr_t)&limit));
	assert_int_equal(inner.controls, 4);
	clnt_destroy(clnt);
	assert_int_equal(inner.destroyed, 1);
}

static void udp_requests(void **state)
{
	const struct rt_asked asked = { .prog = 1, .vers = 2, .fd = -1, .is_datagram = true };
	const struct timeval limit = { .tv_sec = 5, .tv_usec = 7 };
	struct timeval back = { .tv_sec = 0 };
	CLIENT *clnt = create(&way, &asked);

	(void)state;
	assert_true(clnt_control(clnt, CLSET_RETRY_TIMEOUT, (void *)(uintptr_t)&limit));
	assert_true(clnt_control(clnt, CLGET_RETRY_TIMEOUT, (void *)&back));
	assert_memory_equal(&back, &limit, sizeof(back));
	assert_false(clnt_control(clnt, CLSET_RETRY_TIMEOUT, NULL));
	assert_true(clnt_control(clnt, CLSET_CONNECT, (void *)&back));
	assert_int_equal(inner.controls, 0);
	clnt_destroy(clnt);
}

static void sockets(void **state)
{
	const struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(7) };
	struct rt_asked asked = { .prog = 1, .vers = 2, .addr = &addr, .addr_bytes = sizeof(addr) };
	struct sockaddr_in back;
	struct netbuf buf;
	CLIENT *clnt;
	int fd;

	(void)state;
	/* the program's own: it stays open, unless it says otherwise */
	for (int closes = 0; closes < 2; closes++) {
		asked.fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
		clnt = create(&way, &asked);
		assert_true(clnt_control(clnt, CLGET_FD, (void *)&fd));
		assert_int_equal(fd, asked.fd);
		assert_true(clnt_control(clnt, CLGET_SERVER_ADDR, (void *)&back));
		assert_memory_equal(&back, &addr, sizeof(addr));
		assert_true(clnt_control(clnt, CLGET_SVC_ADDR, (void *)&buf));
		assert_int_equal(buf.len, sizeof(addr));
		assert_memory_equal(buf.buf, &addr, sizeof(addr));
		if (closes)
			assert_true(clnt_control(clnt, CLSET_FD_CLOSE, NULL));
		assert_int_equal(inner.controls, 0);
		clnt_destroy(clnt);
		assert_int_equal(fcntl(asked.fd, F_GETFD) < 0 && errno == EBADF, closes);
	}
	/* the one that stands in for it */
	assert_int_equal(dup2(STDERR_FILENO, fd), fd);
	asked.fd = fd;
	asked.closes_fd = true;
	clnt_destroy(create(&way, &asked));
	assert_true(fcntl(fd, F_GETFD) < 0);
}

/* An original is only counted: all requests are for it. */
static void originals(void **state)
{
	const struct rt_asked asked = { .prog = 1, .vers = 2, .fd = -1, .is_datagram = true };
	const struct timeval limit = { .tv_sec = 5 };
	CLIENT *clnt = create(NULL, &asked);

	(void)state;
	assert_int_equal(call(clnt, 0), RPC_SUCCESS);
	assert_false(clnt_control(clnt, CLSET_RETRY_TIMEOUT, (void *)(uintptr_t)&limit));
	assert_int_equal(inner.controls, 1);
	clnt_destroy(clnt);
}

/* In a child a new handle is created; where that fails, the old one is used, whose calls fail. */
static void children(void **state)
{
	const struct rt_asked asked = { .prog = 1, .vers = 2, .fd = -1 };
	CLIENT *clnt = create(&way, &asked);
	int status;
	pid_t pid;

	(void)state;
	pid = fork();
	if (pid == 0)
		_exit(call(clnt, 1) == RPC_PROCUNAVAIL && inner.calls == 1 && inner.destroyed == 0 ? 0 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	clnt_destroy(clnt);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(passes_on),
		cmocka_unit_test(udp_requests),
		cmocka_unit_test(sockets),
		cmocka_unit_test(originals),
		cmocka_unit_test(children),
	};

	rt_proxy_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
