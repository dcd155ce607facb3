/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_tirpc_fork.c - dispatch functions that fork and reply from the child; programs that become daemons
 */
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cmocka.h>

#include "base/util.h"
#include "rpcrdma.h"
#include "rpcrdma_tirpc.h"
#include "tirpc_rig.h"

enum {
	CHILD_ECHO = RIG_OWN, /* struct rig_bytes: the same back, from a child */
	CHILD_WAITED,         /* the same, and the parent waits for the child in the dispatch function */
	GRANDCHILD,           /* the same, from a child of a child that ends at once */
	CHILD_DIES,           /* without a reply */
	CHILD_FAILS,          /* its results do not encode */
	CHILD_ERROR,          /* svcerr_weakauth() from a child */
	BOTH,                 /* a word: 1 from the parent, then 2 from a child */
	CHILD_EXECS,          /* another program; the parent replies */
	CHILD_LIES,           /* it sends the parent something else than a reply */
};

static char local_url[256];
static char tcp_url[64] = "tcp://127.0.0.1";

/* ---- the service ---- */

static bool_t refuse(XDR *x, void *nothing)
{
	(void)x;
	(void)nothing;
	return FALSE;
}

static void echo(SVCXPRT *x)
{
	struct rig_bytes b = { 0 };

	if (!svc_getargs(x, (xdrproc_t)xdr_rig_bytes, (caddr_t)&b) || !svc_sendreply(x, (xdrproc_t)xdr_rig_bytes, &b))
		_exit(1);
	svc_freeargs(x, (xdrproc_t)xdr_rig_bytes, (caddr_t)&b);
}

static pid_t fork_one(void)
{
	pid_t pid = fork();

	if (pid < 0)
		abort();
	return pid;
}

static void reply_both(SVCXPRT *x)
{
	int pipes[2], status;
	u_int word = 1;
	char go;
	pid_t pid;

	if (pipe(pipes))
		abort();
	pid = fork_one();
	if (!pid) {
		word = 2;
		close(pipes[1]);
		if (read(pipes[0], &go, 1) < 0) /* until the parent has replied */
			_exit(1);
		_exit(svc_sendreply(x, (xdrproc_t)xdr_u_int, &word) ? 2 : 0); /* nobody wants it */
	}
	svc_sendreply(x, (xdrproc_t)xdr_u_int, &word);
	close(pipes[0]);
	close(pipes[1]);
	if (waitpid(pid, &status, 0) != pid || status)
		abort();
}

/* Writes to the socket pair of the library, which is the last socket of its type. */
static void lie(void)
{
	int type, last = -1;
	socklen_t len = sizeof(type);

	for (int fd = 3; fd < 256; fd++)
		if (!getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) && type == SOCK_SEQPACKET)
			last = fd;
	if (send(last, "lie", 3, MSG_NOSIGNAL) != 3)
		abort();
}

static void dispatch(struct svc_req *q, SVCXPRT *x)
{
	pid_t pid;

	switch (q->rq_proc) {
	case CHILD_ECHO:
		if (!fork_one()) {
			echo(x);
			exit(0); /* as many programs do: handlers of exit() run */
		}
		return;
	case CHILD_WAITED:
		pid = fork_one();
		if (!pid) {
			echo(x);
			_exit(0);
		}
		waitpid(pid, NULL, 0);
		return;
	case GRANDCHILD:
		pid = fork_one();
		if (!pid) {
			if (!fork_one())
				echo(x);
			_exit(0);
		}
		waitpid(pid, NULL, 0);
		return;
	case CHILD_DIES:
		if (!fork_one())
			_exit(0);
		return;
	case CHILD_FAILS:
		if (!fork_one()) {
			if (!svc_sendreply(x, (xdrproc_t)refuse, NULL))
				svcerr_systemerr(x);
			_exit(0);
		}
		return;
	case CHILD_ERROR:
		if (!fork_one()) {
			svcerr_weakauth(x);
			_exit(0);
		}
		return;
	case BOTH:
		reply_both(x);
		return;
	case CHILD_LIES:
		if (!fork_one()) {
			lie();
			_exit(0);
		}
		return;
	case CHILD_EXECS:
		if (!fork_one()) {
			execl("/bin/true", "true", (char *)NULL);
			_exit(1);
		}
		svc_sendreply(x, (xdrproc_t)xdr_rig_void, NULL);
		return;
	default:
		rig_dispatch(q, x);
	}
}

static int create(void)
{
	int rc = rpcrdma_svc_create(dispatch, RIG_PROG, RIG_VERS, tcp_url, NULL);

	signal(SIGCHLD, SIG_DFL);
	return rc ? rc : rpcrdma_svc_create(dispatch, RIG_PROG, RIG_VERS, local_url, NULL);
}

static struct rig start(void (*loop)(void))
{
	const struct rig_service s = { .create = create, .run = loop, .url = { tcp_url, local_url } };
	struct rig r;

	snprintf(local_url, sizeof(local_url), "%s", rig_local("fork"));
	rig_start(&r, &s);
	return r;
}

/* ---- tests ---- */

static void check_echo(const char *url, rpcproc_t proc, u_int len)
{
	struct rig_bytes b = { .len = len, .val = malloc(len + 1) }, res = { 0 };

	for (u_int i = 0; i < len; i++)
		b.val[i] = (char)(i * 11 + (i >> 8));
	assert_int_equal(rig_call(url, RIG_PROG, RIG_VERS, proc, (xdrproc_t)xdr_rig_bytes, &b, (xdrproc_t)xdr_rig_bytes, &res),
			 RPC_SUCCESS);
	assert_int_equal(res.len, len);
	assert_memory_equal(res.val, b.val, len);
	free(b.val);
	free(res.val);
}

static enum clnt_stat call_void(const char *url, rpcproc_t proc)
{
	return rig_call(url, RIG_PROG, RIG_VERS, proc, (xdrproc_t)xdr_rig_void, NULL, (xdrproc_t)xdr_rig_void, NULL);
}

static void check_children(void (*loop)(void))
{
	static const rpcproc_t procs[] = { CHILD_ECHO, CHILD_WAITED, GRANDCHILD };
	struct rig r = start(loop);

	for (unsigned i = 0; i < 2; i++)
		for (size_t k = 0; k < ARRAY_SIZE(procs); k++) {
			check_echo(r.url[i], procs[k], 0);
			check_echo(r.url[i], procs[k], 1000);
			check_echo(r.url[i], procs[k], 2044); /* the longest without memory of its own */
			check_echo(r.url[i], procs[k], 2045);
			check_echo(r.url[i], procs[k], 50000);
			assert_int_equal(call_void(r.url[i], RIG_NULL), RPC_SUCCESS);
		}
	assert_int_equal(rig_stop(&r), 0);
}

static void child_replies(void **state)
{
	(void)state;
	check_children(svc_run);
}

static void child_replies_to_rpcrdma_svc_run(void **state)
{
	(void)state;
	check_children(rpcrdma_svc_run);
}

static void child_replies_with_errors(void **state)
{
	struct rig r = start(svc_run);
	u_int word;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(call_void(r.url[i], CHILD_FAILS), RPC_SYSTEMERROR);
		assert_int_equal(call_void(r.url[i], CHILD_ERROR), RPC_AUTHERROR);
		assert_int_equal(call_void(r.url[i], CHILD_LIES), RPC_SYSTEMERROR);
		assert_int_equal(call_void(r.url[i], CHILD_EXECS), RPC_SUCCESS);
		assert_int_equal(rig_call(r.url[i], RIG_PROG, RIG_VERS, BOTH, (xdrproc_t)xdr_rig_void, NULL,
					  (xdrproc_t)xdr_u_int, &word),
				 RPC_SUCCESS);
		assert_int_equal(word, 1);
	}
	assert_int_equal(rig_stop(&r), 0);
}

static int ndone;

static void on_done(struct rpcrdma_call *call, int err)
{
	(void)call;
	(void)err;
	ndone++;
}

/* A child that ends without a reply: the request ends, and others are served. */
static void child_dies(void **state)
{
	struct rig r = start(svc_run);
	struct rig_clnt c;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct rpcrdma_call call = { .prog = RIG_PROG, .vers = RIG_VERS, .proc = CHILD_DIES, .done = on_done };

		ndone = 0;
		rig_clnt_open(&c, r.url[i]);
		assert_int_equal(rpcrdma_clnt_call(c.clnt, &call), 0);
		for (unsigned k = 0; k < 5; k++) {
			(void)rpcrdma_engine_poll(c.engine);
			assert_int_equal(call_void(r.url[i], RIG_NULL), RPC_SUCCESS);
		}
		assert_int_equal(ndone, 0);
		rig_clnt_close(&c);
	}
	assert_int_equal(rig_stop(&r), 0);
}

/* ---- daemons ---- */

static int ready[2]; /* the daemon writes its process id */

static void become_daemon(void (*loop)(void))
{
	pid_t self;

	fflush(NULL);
	if (daemon(1, 1))
		abort();
	prctl(PR_SET_PDEATHSIG, 0);
	self = getpid();
	if (write(ready[1], &self, sizeof(self)) != sizeof(self))
		abort();
	loop();
	exit(0); /* closes the pipe */
}

static void run_as_daemon(void)
{
	become_daemon(svc_run);
}

static void run_rpcrdma_as_daemon(void)
{
	become_daemon(rpcrdma_svc_run);
}

/* A port that no client gets: one that tries to connect to a port that is free for a moment may get it itself. */
static void choose_port(void)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	unsigned port = 10000 + (unsigned)getpid() % 10000;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	do
		in.sin_port = htons((uint16_t)++port);
	while (bind(fd, (struct sockaddr *)&in, sizeof(in)));
	close(fd);
	snprintf(tcp_url, sizeof(tcp_url), "tcp://127.0.0.1:%u", port);
}

/* The child of daemon() serves at the addresses that its parent has registered. */
static void check_daemon(void (*loop)(void))
{
	struct rig r;
	char end;
	int status;
	pid_t pid;

	choose_port();
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	r = start(loop);
	assert_int_equal(waitpid(r.pid, &status, 0), r.pid);
	assert_int_equal(status, 0);
	assert_int_equal(read(ready[0], &pid, sizeof(pid)), sizeof(pid));
	close(ready[1]);
	for (unsigned i = 0; i < 2; i++) {
		while (rig_try(r.url[i]) != RPC_SUCCESS) /* until it listens */
			assert_int_equal(poll(&(struct pollfd){ .fd = ready[0], .events = POLLIN }, 1, 0), 0); /* it lives */
		check_echo(r.url[i], RIG_ECHO, 3000);
		check_echo(r.url[i], CHILD_ECHO, 3000);
	}
	assert_int_equal(call_void(r.url[0], RIG_QUIT), RPC_SUCCESS);
	assert_int_equal(read(ready[0], &end, 1), 0); /* it has ended */
	close(ready[0]);
}

static void daemon_takes_over(void **state)
{
	(void)state;
	check_daemon(run_as_daemon);
}

static void daemon_takes_over_with_rpcrdma_svc_run(void **state)
{
	(void)state;
	check_daemon(run_rpcrdma_as_daemon);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(child_replies),
		cmocka_unit_test(child_replies_to_rpcrdma_svc_run),
		cmocka_unit_test(child_replies_with_errors),
		cmocka_unit_test(child_dies),
		cmocka_unit_test(daemon_takes_over),
		cmocka_unit_test(daemon_takes_over_with_rpcrdma_svc_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
