/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * echo_rig.c - a small service in a process of its own, for tests of a CLIENT
 *
 * Operation:  The child writes its URL to a pipe when it listens. It ends with the test, or when it is killed.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "echo_rig.h"
#include "rpcrdma.h"

#define BYTES_MAX (17u << 20)

static unsigned executed;
static _Atomic u_int *once; /* of all processes */
static uint32_t words[4096];
static u_int nwords;

/* Return: executions so far, of which the first one does not return */
static u_int execute_once(void)
{
	u_int n = ++*once;

	if (n == 1)
		_exit(0);
	return n;
}

static void log_word(u_int word)
{
	if (nwords < ARRAY_SIZE(words))
		words[nwords++] = word;
}

/* Memory of its own. */
static struct er_bytes logged(void)
{
	struct er_bytes b = { .n = nwords * 4, .data = malloc(sizeof(words)) };

	if (b.data)
		memcpy(b.data, words, sizeof(words));
	return b;
}

bool_t xdr_er_bytes(XDR *x, struct er_bytes *b)
{
	return xdr_bytes(x, &b->data, &b->n, BYTES_MAX);
}

static struct er_bytes filled(u_int n)
{
	struct er_bytes b = { .n = n, .data = malloc(n + 1) };

	for (u_int i = 0; b.data && i < n; i++)
		b.data[i] = (char)er_byte(i);
	return b;
}

/* ---- libtirpc's service over TCP ------------------------------------------------------------------ */

static void reply_bytes(struct svc_req *q, SVCXPRT *x)
{
	struct er_bytes b = { 0 };
	u_int n = 0;

	if (q->rq_proc == ER_FILL && svc_getargs(x, (xdrproc_t)xdr_u_int, (char *)&n))
		b = filled(n);
	else if (q->rq_proc == ER_LOG)
		b = logged();
	else if (q->rq_proc == ER_ECHO)
		svc_getargs(x, (xdrproc_t)xdr_er_bytes, (char *)&b);
	svc_sendreply(x, (xdrproc_t)xdr_er_bytes, (char *)&b);
	free(b.data);
}

static void reply_word(SVCXPRT *x, u_int word)
{
	svc_sendreply(x, (xdrproc_t)xdr_u_int, (char *)&word);
}

static void dispatch(struct svc_req *q, SVCXPRT *x)
{
	u_int ms = 0;

	executed += q->rq_proc != ER_COUNT;
	switch (q->rq_proc) {
	case ER_NULL:
		svc_sendreply(x, (xdrproc_t)(void (*)(void))xdr_void, NULL);
		break;
	case ER_ECHO:
	case ER_FILL:
	case ER_LOG:
		reply_bytes(q, x);
		break;
	case ER_ADD:
		svc_getargs(x, (xdrproc_t)xdr_u_int, (char *)&ms);
		log_word(ms);
		break;
	case ER_NEVER:
		break;
	case ER_COUNT:
		reply_word(x, executed);
		break;
	case ER_SYSTEM:
		svcerr_systemerr(x);
		break;
	case ER_GARBAGE:
		svcerr_decode(x);
		break;
	case ER_AUTH:
		svcerr_weakauth(x);
		break;
	case ER_DIE:
		_exit(0);
	case ER_ONCE:
		reply_word(x, execute_once());
		break;
	case ER_SLOW:
		svc_getargs(x, (xdrproc_t)xdr_u_int, (char *)&ms);
		usleep(ms * 1000);
		svc_sendreply(x, (xdrproc_t)(void (*)(void))xdr_void, NULL);
		break;
	case ER_UID:
		reply_word(x, q->rq_cred.oa_flavor == AUTH_SYS ?
			   (u_int)((struct authsys_parms *)q->rq_clntcred)->aup_uid : UINT32_MAX);
		break;
	default:
		svcerr_noproc(x);
	}
}

static void run_tcp(int out, unsigned port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
	SVCXPRT *x;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) ||
	    bind(fd, (struct sockaddr *)&at, sizeof(at)) || listen(fd, 100) || getsockname(fd, (struct sockaddr *)&at, &len))
		_exit(3);
	x = svc_vc_create(fd, 0, 0);
	if (!x || !svc_reg(x, ER_PROG, ER_VERS, dispatch, NULL))
		_exit(4);
	dprintf(out, "tcp://127.0.0.1:%u", ntohs(at.sin_port));
	close(out);
	svc_run();
}

/* ---- librpcrdma's service ------------------------------------------------------------------------- */

static int note(struct rpcrdma_task *t)
{
	(void)t;
	executed++;
	return 0;
}

static int echo(struct rpcrdma_task *t)
{
	struct er_bytes *a = t->args, *res = t->res;

	*res = *a; /* freed with the results */
	*a = (struct er_bytes){ 0 };
	return note(t);
}

static int fill(struct rpcrdma_task *t)
{
	*(struct er_bytes *)t->res = filled(*(u_int *)t->args);
	return note(t);
}

static int never(struct rpcrdma_task *t)
{
	note(t);
	return RPCRDMA_PENDING;
}

static int add(struct rpcrdma_task *t)
{
	log_word(*(u_int *)t->args);
	return -ECANCELED;
}

static int get_log(struct rpcrdma_task *t)
{
	*(struct er_bytes *)t->res = logged();
	return 0;
}

static int count(struct rpcrdma_task *t)
{
	*(u_int *)t->res = executed;
	return 0;
}

static int fail_system(struct rpcrdma_task *t)
{
	note(t);
	return -EIO;
}

static int fail_garbage(struct rpcrdma_task *t)
{
	note(t);
	return -EBADMSG;
}

static int fail_auth(struct rpcrdma_task *t)
{
	note(t);
	return -EACCES;
}

static int die(struct rpcrdma_task *t)
{
	(void)t;
	_exit(0);
}

static int once_only(struct rpcrdma_task *t)
{
	*(u_int *)t->res = execute_once();
	return note(t);
}

struct late {
	struct rpcrdma_timer timer;
	struct rpcrdma_task *task;
};

static void on_late(struct rpcrdma_timer *timer)
{
	struct late *l = container_of(timer, struct late, timer);

	(void)rpcrdma_task_finish(l->task, 0);
	free(l);
}

static int slow(struct rpcrdma_task *t)
{
	struct late *l = calloc(1, sizeof(*l));

	note(t);
	l->timer.fn = on_late;
	l->task = t;
	rpcrdma_timer_set(t->ctx, &l->timer, *(u_int *)t->args * UINT64_C(1000000));
	return RPCRDMA_PENDING;
}

static struct rpcrdma_task *held[8];

static int hold(struct rpcrdma_task *t)
{
	for (size_t i = 0; i < ARRAY_SIZE(held); i++)
		if (!held[i]) {
			held[i] = t;
			return RPCRDMA_PENDING;
		}
	return -EIO;
}

static int release(struct rpcrdma_task *t)
{
	u_int word = *(u_int *)t->args;

	for (size_t i = 0; i < ARRAY_SIZE(held); i++)
		if (held[i] && *(u_int *)held[i]->args == word) {
			*(u_int *)held[i]->res = word;
			(void)rpcrdma_task_finish(held[i], 0);
			held[i] = NULL;
			return 0;
		}
	return -EIO;
}

static int count_held(struct rpcrdma_task *t)
{
	u_int n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(held); i++)
		n += held[i] != NULL;
	*(u_int *)t->res = n;
	return 0;
}

static const struct rpcrdma_proc procs[] = {
	{ .proc = ER_ECHO, .name = "ECHO", RPCRDMA_ARGS(xdr_er_bytes, struct er_bytes),
	  RPCRDMA_RES(xdr_er_bytes, struct er_bytes), .handler = echo, .free_res = true },
	{ .proc = ER_FILL, .name = "FILL", RPCRDMA_ARGS(xdr_u_int, u_int), RPCRDMA_RES(xdr_er_bytes, struct er_bytes),
	  .handler = fill, .free_res = true },
	{ .proc = ER_NEVER, .name = "NEVER", .handler = never },
	{ .proc = ER_COUNT, .name = "COUNT", RPCRDMA_RES(xdr_u_int, u_int), .handler = count },
	{ .proc = ER_SYSTEM, .name = "SYSTEM", .handler = fail_system },
	{ .proc = ER_GARBAGE, .name = "GARBAGE", .handler = fail_garbage },
	{ .proc = ER_AUTH, .name = "AUTH", .handler = fail_auth },
	{ .proc = ER_DIE, .name = "DIE", .handler = die },
	{ .proc = ER_ADD, .name = "ADD", RPCRDMA_ARGS(xdr_u_int, u_int), .handler = add },
	{ .proc = ER_LOG, .name = "LOG", RPCRDMA_RES(xdr_er_bytes, struct er_bytes), .handler = get_log, .free_res = true },
	{ .proc = ER_HOLD, .name = "HOLD", RPCRDMA_ARGS(xdr_u_int, u_int), RPCRDMA_RES(xdr_u_int, u_int), .handler = hold },
	{ .proc = ER_RELEASE, .name = "RELEASE", RPCRDMA_ARGS(xdr_u_int, u_int), .handler = release },
	{ .proc = ER_HELD, .name = "HELD", RPCRDMA_RES(xdr_u_int, u_int), .handler = count_held },
	{ .proc = ER_ONCE, .name = "ONCE", RPCRDMA_RES(xdr_u_int, u_int), .handler = once_only },
	{ .proc = ER_SLOW, .name = "SLOW", RPCRDMA_ARGS(xdr_u_int, u_int), .handler = slow },
};

static const struct rpcrdma_prog prog = { .prog = ER_PROG, .vers = ER_VERS, .procs = procs, .nprocs = ARRAY_SIZE(procs) };

static void run_prog(int out, const char *url)
{
	struct rpcrdma_svc_attr svc = { .size = sizeof(svc) };
	struct rpcrdma_service_attr attr = { .size = sizeof(attr), .progs = &prog, .nprogs = 1, .svc = &svc };
	struct rpcrdma_service *s;
	struct rpcrdma_engine *e;
	struct rpcrdma_addr addr;

	if (rpcrdma_addr_parse(url, &addr) || rpcrdma_engine_create(NULL, NULL, &e))
		_exit(3);
	attr.ctx = e;
	if (rpcrdma_service_create(e, &attr, &s) || rpcrdma_service_listen(s, &addr, NULL))
		_exit(4);
	dprintf(out, "%s", url);
	close(out);
	for (;;)
		(void)rpcrdma_engine_wait(e, -1);
}

/* ---- its process ----------------------------------------------------------------------------------- */

/* Returns if it cannot. */
static void serve(const struct er_rig *r, int out, const char *url, unsigned port)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (r->transport == RPCRDMA_TCP)
		run_tcp(out, port);
	else
		run_prog(out, url);
}

static unsigned port_of(const struct er_rig *r)
{
	return r->transport == RPCRDMA_TCP ? (unsigned)atoi(strrchr(r->url, ':') + 1) : 0;
}

static void start_at(struct er_rig *r, const char *url, unsigned port)
{
	int out[2];
	size_t n = 0;
	ssize_t got;

	assert_int_equal(pipe(out), 0);
	r->pid = fork();
	assert_true(r->pid >= 0);
	if (!r->pid) {
		close(out[0]);
		serve(r, out[1], url, port);
		_exit(5);
	}
	close(out[1]);
	while ((got = read(out[0], r->url + n, sizeof(r->url) - 1 - n)) > 0)
		n += (size_t)got;
	r->url[n] = '\0';
	close(out[0]);
	assert_true(n > 0);
}

void er_start(struct er_rig *r, enum rpcrdma_transport transport)
{
	static unsigned serial;
	char url[sizeof(r->url)];

	if (!once)
		once = mmap(NULL, sizeof(*once), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(once, MAP_FAILED);
	*once = 0;
	*r = (struct er_rig){ .transport = transport };
	snprintf(url, sizeof(url), "local://%s/echo.%d.%u", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", (int)getpid(), serial++);
	start_at(r, url, 0);
}

void er_restart(struct er_rig *r)
{
	char url[sizeof(r->url)];

	strcpy(url, r->url);
	start_at(r, url, port_of(r));
}

pid_t er_spare(const struct er_rig *r)
{
	struct pollfd end = { .fd = (int)syscall(SYS_pidfd_open, r->pid, 0), .events = POLLIN };
	pid_t pid;

	assert_true(end.fd >= 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		while (poll(&end, 1, -1) < 1)
			;
		serve(r, -1, r->url, port_of(r));
		_exit(5);
	}
	close(end.fd);
	return pid;
}

unsigned er_once(void)
{
	return *once;
}

void er_stop(struct er_rig *r)
{
	kill(r->pid, SIGKILL);
	assert_int_equal(waitpid(r->pid, NULL, 0), r->pid);
	r->pid = 0;
}
