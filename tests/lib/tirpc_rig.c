/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * tirpc_rig.c - a program of libtirpc in a process of its own, and calls to it: tirpc_rig.h
 */
#include <errno.h>
#include <grp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cmocka.h>

#include "rpcrdma.h"
#include "rpcrdma_tirpc.h"
#include "tirpc_rig.h"

#define CALL_S 60

bool_t xdr_rig_bytes(XDR *x, struct rig_bytes *b)
{
	return xdr_bytes(x, &b->val, &b->len, ~0u);
}

bool_t xdr_rig_who(XDR *x, struct rig_who *w)
{
	u_int *words = &w->vers;

	for (size_t i = 0; i < sizeof(*w) / sizeof(*words); i++)
		if (!xdr_u_int(x, &words[i]))
			return FALSE;
	return TRUE;
}

bool_t xdr_rig_void(XDR *x, void *nothing)
{
	(void)x;
	(void)nothing;
	return TRUE;
}

static bool_t refuse(XDR *x, void *nothing)
{
	u_int word = 7;

	(void)nothing;
	(void)xdr_u_int(x, &word); /* a filter may have written something before it refuses */
	return FALSE;
}

/* ---- the program ---- */

void rig_reply_who(struct svc_req *q)
{
	SVCXPRT *x = q->rq_xprt;
	const struct sockaddr_in *in = svc_getrpccaller(x)->buf;
	struct rig_who w = { .vers = q->rq_vers, .family = in->sin_family, .addr = ntohl(in->sin_addr.s_addr),
			     .port = ntohs(in->sin_port), .flavor = (u_int)q->rq_cred.oa_flavor };

	if (w.family != x->xp_raddr.sin6_family || (size_t)x->xp_addrlen != sizeof(*in))
		w.family = 0;
	if (q->rq_cred.oa_flavor == AUTH_SYS) {
		const struct authunix_parms *u = q->rq_clntcred;

		w.uid = u->aup_uid;
		w.gid = u->aup_gid;
		w.ngids = u->aup_len;
		for (u_int i = 0; i < u->aup_len && i < RIG_GIDS; i++)
			w.gids[i] = u->aup_gids[i];
	}
	svc_sendreply(x, (xdrproc_t)xdr_rig_who, &w);
}

static void echo(SVCXPRT *x)
{
	struct rig_bytes b = { 0 };

	if (!svc_getargs(x, (xdrproc_t)xdr_rig_bytes, (caddr_t)&b)) {
		svcerr_decode(x);
		return;
	}
	if (!svc_sendreply(x, (xdrproc_t)xdr_rig_bytes, &b))
		svcerr_systemerr(x);
	svc_freeargs(x, (xdrproc_t)xdr_rig_bytes, (caddr_t)&b);
}

void rig_dispatch(struct svc_req *q, SVCXPRT *x)
{
	static u_int count;

	count++;
	switch (q->rq_proc) {
	case RIG_NULL:
		svc_sendreply(x, (xdrproc_t)xdr_rig_void, NULL);
		return;
	case RIG_ECHO:
		echo(x);
		return;
	case RIG_WHO:
		rig_reply_who(q);
		return;
	case RIG_BAD_ARGS:
		if (!svc_getargs(x, (xdrproc_t)refuse, NULL))
			svcerr_decode(x);
		return;
	case RIG_TWICE:
		svc_sendreply(x, (xdrproc_t)xdr_u_int, (u_int[]){ 1 });
		svc_sendreply(x, (xdrproc_t)xdr_u_int, (u_int[]){ 2 });
		svcerr_systemerr(x);
		return;
	case RIG_NEVER:
		return;
	case RIG_BAD_RES:
		svc_sendreply(x, (xdrproc_t)refuse, NULL);
		return;
	case RIG_WEAK:
		svcerr_weakauth(x);
		return;
	case RIG_SYSTEM:
		svcerr_systemerr(x);
		return;
	case RIG_COUNT:
		svc_sendreply(x, (xdrproc_t)xdr_u_int, &count);
		return;
	case RIG_UNREG:
		svc_unreg(RIG_PROG2, RIG_VERS);
		svc_sendreply(x, (xdrproc_t)xdr_rig_void, NULL);
		return;
	case RIG_QUIT:
		svc_sendreply(x, (xdrproc_t)xdr_rig_void, NULL);
		svc_exit();
		return;
	default:
		svcerr_noproc(x);
	}
}

/* ---- the child ---- */

static void serve(const struct rig_service *s, int to_parent)
{
	char url[sizeof(((struct rig *)0)->url[0])];
	int rc;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	rc = s->create();
	if (write(to_parent, &rc, sizeof(rc)) != sizeof(rc) || rc)
		exit(1);
	for (unsigned i = 0; s->url[i]; i++) {
		memset(url, 0, sizeof(url));
		if (rpcrdma_svc_url(s->url[i], url, sizeof(url)) < 0)
			exit(2);
		if (write(to_parent, url, sizeof(url)) != sizeof(url))
			exit(3);
	}
	if (s->ports && write(to_parent, s->ports, sizeof(((struct rig *)0)->ports)) < 0)
		exit(4);
	close(to_parent);
	s->run();
	exit(0);
}

void rig_start(struct rig *r, const struct rig_service *s)
{
	int pipes[2], rc;

	memset(r, 0, sizeof(*r));
	assert_int_equal(pipe(pipes), 0);
	fflush(NULL);
	r->pid = fork();
	if (!r->pid) {
		close(pipes[0]);
		serve(s, pipes[1]);
	}
	assert_true(r->pid > 0);
	close(pipes[1]);
	assert_int_equal(read(pipes[0], &rc, sizeof(rc)), sizeof(rc));
	assert_int_equal(rc, 0);
	for (unsigned i = 0; s->url[i]; i++)
		assert_int_equal(read(pipes[0], r->url[i], sizeof(r->url[i])), sizeof(r->url[i]));
	if (s->ports)
		assert_int_equal(read(pipes[0], r->ports, sizeof(r->ports)), sizeof(r->ports));
	close(pipes[0]);
}

int rig_stop(struct rig *r)
{
	int status;

	assert_int_equal(rig_call(r->url[0], RIG_PROG, RIG_VERS, RIG_QUIT, (xdrproc_t)xdr_rig_void, NULL, (xdrproc_t)xdr_rig_void,
				  NULL),
			 RPC_SUCCESS);
	assert_int_equal(waitpid(r->pid, &status, 0), r->pid);
	return status;
}

/* ---- calls ---- */

unsigned short rig_port(const char *url)
{
	const char *colon = strrchr(url, ':');

	return (unsigned short)atoi(colon + 1);
}

const char *rig_local(const char *name)
{
	static char url[256];
	static unsigned serial; /* a test that failed may have left its service */
	const char *dir = getenv("TMPDIR");

	snprintf(url, sizeof(url), "local://%s/%s.%d.%u", dir ? dir : "/tmp", name, (int)getpid(), ++serial);
	return url;
}

static enum clnt_stat stat_of(int err)
{
	static const struct {
		int err;
		enum clnt_stat stat;
	} v[] = {
		{ 0, RPC_SUCCESS },
		{ -EPROTONOSUPPORT, RPC_PROGVERSMISMATCH },
		{ -EOPNOTSUPP, RPC_PROCUNAVAIL },
		{ -EINVAL, RPC_CANTDECODEARGS },
		{ -EREMOTEIO, RPC_SYSTEMERROR },
		{ -EACCES, RPC_AUTHERROR },
		{ -ETIMEDOUT, RPC_TIMEDOUT },
		{ -EBADMSG, RPC_CANTDECODERES },
	};

	for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++)
		if (v[i].err == err)
			return v[i].stat;
	return RPC_FAILED;
}

void rig_clnt_open(struct rig_clnt *c, const char *url)
{
	struct rpcrdma_call null = { .prog = RIG_PROG, .vers = RIG_VERS, .deadline_ms = CALL_S * 1000 };
	struct rpcrdma_clnt_attr attr = { .size = sizeof(attr) };

	assert_int_equal(rpcrdma_addr_parse(url, &attr.addr), 0);
	attr.cred.uid = 4711; /* what it says of itself */
	attr.cred.gid = 4712;
	assert_int_equal(rpcrdma_engine_create(NULL, NULL, &c->engine), 0);
	assert_int_equal(rpcrdma_clnt_open(c->engine, &attr, &c->clnt), 0);
	/* one call may be in flight before the first reply */
	assert_int_equal(rpcrdma_clnt_call_wait(c->clnt, &null), 0);
}

void rig_clnt_close(struct rig_clnt *c)
{
	rpcrdma_clnt_destroy(c->clnt);
	rpcrdma_engine_destroy(c->engine);
}

int rig_raw(const char *url, struct rpcrdma_call *call)
{
	struct rig_clnt c;
	int rc;

	rig_clnt_open(&c, url);
	if (!call->deadline_ms)
		call->deadline_ms = CALL_S * 1000;
	rc = rpcrdma_clnt_call_wait(c.clnt, call);
	rig_clnt_close(&c);
	return rc;
}

enum clnt_stat rig_try(const char *url)
{
	struct rpcrdma_call null = { .prog = RIG_PROG, .vers = RIG_VERS, .deadline_ms = CALL_S * 1000 };
	struct rpcrdma_clnt_attr attr = { .size = sizeof(attr) };
	struct rig_clnt c;
	int rc;

	assert_int_equal(rpcrdma_addr_parse(url, &attr.addr), 0);
	assert_int_equal(rpcrdma_engine_create(NULL, NULL, &c.engine), 0);
	assert_int_equal(rpcrdma_clnt_open(c.engine, &attr, &c.clnt), 0);
	rc = rpcrdma_clnt_call_wait(c.clnt, &null);
	rig_clnt_close(&c);
	return stat_of(rc);
}

enum clnt_stat rig_call(const char *url, rpcprog_t prog, rpcvers_t vers, rpcproc_t proc, xdrproc_t encode, void *args,
			xdrproc_t decode, void *res)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct rpcrdma_call call = { .prog = prog, .vers = vers, .proc = proc, .encode = encode, .args = args,
				     .decode = decode, .res = res, .reply_max = 512 << 10 };
	int sock = RPC_ANYSOCK;
	enum clnt_stat stat;
	CLIENT *c;

	if (strncmp(url, "tcp:", 4))
		return stat_of(rig_raw(url, &call));
	sin.sin_port = htons(rig_port(url));
	c = clnttcp_create(&sin, prog, vers, &sock, 0, 0);
	assert_non_null(c);
	auth_destroy(c->cl_auth);
	c->cl_auth = authunix_create_default();
	stat = clnt_call(c, proc, encode, args, decode, res, ((struct timeval){ .tv_sec = CALL_S }));
	auth_destroy(c->cl_auth);
	clnt_destroy(c);
	return stat;
}

enum clnt_stat rig_call_udp(unsigned short port, rpcprog_t prog, rpcvers_t vers, rpcproc_t proc)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port) };
	int sock = RPC_ANYSOCK;
	enum clnt_stat stat;
	CLIENT *c = clntudp_create(&sin, prog, vers, ((struct timeval){ .tv_sec = CALL_S }), &sock);

	assert_non_null(c);
	stat = clnt_call(c, proc, (xdrproc_t)xdr_rig_void, NULL, (xdrproc_t)xdr_rig_void, NULL,
			 ((struct timeval){ .tv_sec = CALL_S }));
	auth_destroy(c->cl_auth);
	clnt_destroy(c);
	return stat;
}

void rig_who_as(const char *url, uid_t uid, gid_t gid, const gid_t *gids, size_t ngids, struct rig_who *ret)
{
	struct rpcrdma_call call = { .prog = RIG_PROG, .vers = RIG_VERS, .proc = RIG_WHO, .decode = (xdrproc_t)xdr_rig_who,
				     .res = ret, .reply_max = sizeof(*ret) };
	int pipes[2], status;
	pid_t pid;

	assert_int_equal(pipe(pipes), 0);
	fflush(NULL);
	pid = fork();
	if (!pid) {
		memset(ret, 0, sizeof(*ret));
		if (geteuid() == 0 && (setgroups(ngids, gids) || setresgid(gid, gid, gid) || setresuid(uid, uid, uid)))
			_exit(1);
		if (rig_raw(url, &call))
			_exit(2);
		_exit(write(pipes[1], ret, sizeof(*ret)) == sizeof(*ret) ? 0 : 3);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(read(pipes[0], ret, sizeof(*ret)), sizeof(*ret));
	close(pipes[0]);
	close(pipes[1]);
}
