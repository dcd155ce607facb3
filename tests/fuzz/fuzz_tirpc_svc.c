/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fuzz_tirpc_svc.c - libFuzzer harness: a service of libtirpc at URLs of ours, and what its peers send
 *
 * Operation:  The service and its peers run in this thread. The input is a script:
 *
 *               0 len bytes              a record over TCP: these bytes, behind its mark
 *               1 len bytes              these bytes over TCP, without a mark
 *               2                        another TCP connection
 *               3 proc cred len bytes    a call over TCP with these arguments
 *               4 proc cred at room len bytes   a call over the local fabric; 64 bytes at word `at` of the arguments
 *                                        are a payload, so a Read chunk if the call is long; with room for results in
 *                                        a Write chunk or without
 *               5                        the loop of the service runs
 *
 *             A length has two bytes. The procedures have filters of every kind that rpcgen makes. At the end of a script
 *             a NULL call by each transport must get a reply.
 * Memory:     What the filters allocate is freed by svc_freeargs(), also if they fail.
 * Threads:    One.
 * Errors:     abort() if the last calls get no reply.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rpc/rpc.h>

#include "base/clock.h"
#include "base/util.h"
#include "base/wire.h"
#include "rpcrdma.h"
#include "rpcrdma_tirpc.h"

#define PROG 0x20049911u
#define VERS 1u
#define PROCS 12u
#define ARGS_MAX 8192u
#define PAYLOAD 64u
#define PATIENCE_NS (30 * NS_PER_S) /* until a reply must be there, perhaps over a new connection */
#define MARK_LAST 0x80000000u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

/* ---- the service ---- */

/* What a .x file might have. */
struct node {
	char *name;
	struct node *next;
};

struct args {
	u_int words_len;
	u_int *words;
	u_int names_len;
	char **names;
	struct node *list;
	int kind;
	union {
		double real;
		u_quad_t big;
		char *text;
	} u;
	char fixed[7];
	u_int data_len;
	char *data;
};

static bool_t xdr_name(XDR *x, char **name)
{
	return xdr_string(x, name, 255);
}

static bool_t xdr_node(XDR *x, struct node *n)
{
	return xdr_name(x, &n->name) && xdr_pointer(x, (char **)&n->next, sizeof(struct node), (xdrproc_t)xdr_node);
}

static bool_t xdr_choice(XDR *x, struct args *a)
{
	if (!xdr_enum(x, &a->kind))
		return FALSE;
	switch (a->kind) {
	case 0:
		return xdr_double(x, &a->u.real);
	case 1:
		return xdr_u_quad_t(x, &a->u.big);
	case 2:
		return xdr_name(x, &a->u.text);
	default:
		return FALSE;
	}
}

static bool_t xdr_args(XDR *x, struct args *a)
{
	return xdr_array(x, (char **)&a->words, &a->words_len, 1000, sizeof(u_int), (xdrproc_t)xdr_u_int) &&
	       xdr_array(x, (char **)&a->names, &a->names_len, 100, sizeof(char *), (xdrproc_t)xdr_name) &&
	       xdr_pointer(x, (char **)&a->list, sizeof(struct node), (xdrproc_t)xdr_node) && xdr_choice(x, a) &&
	       xdr_opaque(x, a->fixed, sizeof(a->fixed)) && xdr_bytes(x, &a->data, &a->data_len, ARGS_MAX);
}

struct bytes {
	u_int len;
	char *val;
};

/* With a bound: xdr_bytes() allocates what the length word says. */
static bool_t xdr_data(XDR *x, struct bytes *b)
{
	return xdr_bytes(x, &b->val, &b->len, 1u << 16);
}

static bool_t xdr_nothing(XDR *x, void *nothing)
{
	(void)x;
	(void)nothing;
	return TRUE;
}

static struct svc_req *later;

/* The arguments again, as results. */
static void serve(SVCXPRT *x, xdrproc_t filter, void *args, size_t bytes)
{
	memset(args, 0, bytes);
	if (!svc_getargs(x, filter, args))
		svcerr_decode(x);
	else if (!svc_sendreply(x, filter, args))
		svcerr_systemerr(x);
	(void)svc_freeargs(x, filter, args); /* FALSE: a union of no kind, as rpcgen's filters have it */
}

static void dispatch(struct svc_req *q, SVCXPRT *x)
{
	struct args a;
	struct bytes b;

	switch (q->rq_proc) {
	case 0:
		svc_sendreply(x, (xdrproc_t)xdr_nothing, NULL);
		return;
	case 1:
	case 2: /* in the table */
		serve(x, (xdrproc_t)xdr_data, &b, sizeof(b));
		return;
	case 3:
	case 4:
		serve(x, (xdrproc_t)xdr_args, &a, sizeof(a));
		return;
	case 5:
		return;
	case 6:
		svcerr_weakauth(x);
		svcerr_noproc(x);
		return;
	case 7:
		rpcrdma_svc_release(later);
		later = rpcrdma_svc_detach(q);
		return;
	case 8:
		if (later)
			serve(later->rq_xprt, (xdrproc_t)xdr_data, &b, sizeof(b));
		svc_sendreply(x, (xdrproc_t)xdr_nothing, NULL);
		return;
	case 9:
		svc_destroy(x);
		return;
	case 10:
		if (q->rq_cred.oa_flavor == AUTH_SYS) {
			const struct authunix_parms *u = q->rq_clntcred;

			b = (struct bytes){ (u_int)strlen(u->aup_machname), u->aup_machname };
			svc_sendreply(x, (xdrproc_t)xdr_data, &b);
			return;
		}
		/* fall through */
	default:
		svcerr_noproc(x);
	}
}

/* Each transport that is ready, once. Return: false: none was */
static bool run_loop(void)
{
	struct pollfd fds[16];
	int n = svc_max_pollfd;

	if (n > (int)ARRAY_SIZE(fds))
		abort();
	memcpy(fds, svc_pollfd, (size_t)n * sizeof(fds[0]));
	n = poll(fds, (nfds_t)n, 0);
	if (n > 0)
		svc_getreq_poll(fds, n);
	return n > 0;
}

/* ---- peers ---- */

static char local_url[128];
static unsigned short port;
static int tcp = -1;
static struct rpcrdma_engine *engine;
static struct rpcrdma_clnt *clnt;
static struct rpcrdma_domain *domain;
static struct rpcrdma_clnt_attr clnt_attr = { .size = sizeof(clnt_attr) };

static void tcp_connect(void)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port) };

	if (tcp >= 0)
		close(tcp);
	tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (tcp < 0 || connect(tcp, (struct sockaddr *)&in, sizeof(in)) || fcntl(tcp, F_SETFL, O_NONBLOCK))
		abort();
}

/* What the socket does not take is lost: the service then sees a record that does not end. */
static void tcp_send(const void *bytes, size_t len)
{
	char sink[4096];

	if (len && send(tcp, bytes, len, MSG_NOSIGNAL) < 0)
		return;
	for (unsigned i = 0; i < 4; i++)
		(void)run_loop();
	while (recv(tcp, sink, sizeof(sink), 0) > 0)
		;
}

static void tcp_record(const uint8_t *bytes, size_t len)
{
	uint8_t rec[4 + ARGS_MAX + 512];

	put_be32(rec, MARK_LAST | (uint32_t)len);
	memcpy(rec + 4, bytes, len);
	tcp_send(rec, 4 + len);
}

/* A call with one of some credentials; Return: its bytes */
static size_t put_call(uint8_t *to, uint32_t proc, unsigned cred, const uint8_t *args, size_t len)
{
	static const uint32_t flavors[] = { AUTH_NONE, AUTH_SYS, AUTH_SHORT, AUTH_DES, RPCSEC_GSS, 390000 };
	uint32_t words[10] = { 4711, CALL, RPC_MSG_VERSION, PROG, VERS, proc, flavors[cred % ARRAY_SIZE(flavors)] };
	size_t n = 10 * 4, body = 0;

	/* the body of a credential: the first bytes of the arguments */
	if (cred & 0x80)
		body = MIN(len, (size_t)(cred & 0x7f) * 4) & ~(size_t)3;
	words[7] = (uint32_t)body;
	for (unsigned i = 0; i < 8; i++)
		put_be32(to + 4 * i, words[i]);
	memcpy(to + 32, args, body);
	put_be32(to + 32 + body, AUTH_NONE);
	put_be32(to + 36 + body, 0);
	n += body;
	memcpy(to + n, args + body, len - body);
	return n + len - body;
}

/* Arguments for the local fabric. */
struct local_args {
	const uint8_t *bytes;
	size_t len, at; /* words before the payload */
	struct rpcrdma_payload payload;
};

static bool_t put_local(XDR *x, struct local_args *a)
{
	size_t at = MIN(a->at * 4, a->len & ~(size_t)3);

	return xdr_opaque(x, (char *)(uintptr_t)a->bytes, (u_int)at) && rpcrdma_xdr_payload(x, &a->payload, PAYLOAD) &&
	       xdr_opaque(x, (char *)(uintptr_t)a->bytes + at, (u_int)((a->len - at) & ~(size_t)3));
}

static bool_t get_local(XDR *x, struct rpcrdma_payload *p)
{
	return rpcrdma_xdr_payload(x, p, UINT32_MAX);
}

static bool done;
static int done_err;

static void on_done(struct rpcrdma_call *call, int err)
{
	(void)call;
	done = true;
	done_err = err;
}

/* Return: its result; -ETIMEDOUT: no reply within @limit_ns */
static int call_local(struct rpcrdma_call *call, uint64_t limit_ns)
{
	uint64_t until = clock_now_ns() + limit_ns;
	int rc;

	call->prog = PROG;
	call->vers = VERS;
	call->done = on_done;
	done = false;
	rc = rpcrdma_clnt_call(clnt, call);
	while (!rc && !done && clock_now_ns() < until) {
		(void)run_loop();
		(void)rpcrdma_engine_poll(engine);
	}
	if (!rc && !done) {
		rpcrdma_clnt_cancel(clnt, call);
		return -ETIMEDOUT;
	}
	return rc ? rc : done_err;
}

static void local_call(const uint8_t *head, const uint8_t *bytes, size_t len)
{
	static char data[PAYLOAD], room[ARGS_MAX];
	struct iovec iov = { data, sizeof(data) }, sink = { room, sizeof(room) };
	struct local_args a = { bytes, len, head[2], { .length = PAYLOAD, .iov = &iov, .iovcnt = 1 } };
	struct rpcrdma_auth auth = { .flavor = head[1] % 8, .bytes = 0 };
	struct rpcrdma_cred cred = { .opaque = &auth };
	struct rpcrdma_payload res = { 0 };
	struct rpcrdma_call call = { .proc = head[0] % PROCS, .encode = (xdrproc_t)put_local, .args = &a,
				     .decode = (xdrproc_t)get_local, .res = &res, .reply_max = head[3] * 64u };

	if (head[1] & 0x80)
		call.cred = &cred;
	if (head[3] & 1) {
		call.sink = &sink;
		call.sinkcnt = 1;
	}
	(void)call_local(&call, 2 * NS_PER_MS);
}

static void check_tcp(void)
{
	uint64_t until = clock_now_ns() + PATIENCE_NS;
	uint8_t call[4 + 64], reply[64];
	size_t n;

	tcp_connect();
	n = put_call(call + 4, 0, 0, call, 0);
	put_be32(call, MARK_LAST | (uint32_t)n);
	if (send(tcp, call, 4 + n, MSG_NOSIGNAL) != (ssize_t)(4 + n))
		abort();
	while (clock_now_ns() < until) {
		(void)run_loop();
		if (recv(tcp, reply, sizeof(reply), 0) > 0)
			return;
	}
	abort();
}

/* A connection of its own: calls that the service drops keep their credits. */
static void local_connect(void)
{
	rpcrdma_clnt_destroy(clnt);
	clnt = NULL;
	if (rpcrdma_clnt_open(engine, &clnt_attr, &clnt))
		abort();
}

static void check_local(void)
{
	struct rpcrdma_call call = { 0 };
	int rc;

	local_connect();
	rc = call_local(&call, PATIENCE_NS);
	if (rc) {
		fprintf(stderr, "no reply: %s, %s\n", strerror(-rc), call.why ? call.why : "");
		abort();
	}
}

static void end_all(void)
{
	rpcrdma_svc_release(later);
	rpcrdma_clnt_destroy(clnt);
	rpcrdma_engine_destroy(engine);
	rpcrdma_domain_destroy(domain);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const struct rpcrdma_bulk rows[] = {
		{ PROG, VERS, 2, .args = 1, .results = 1, .threshold = 16 },
		{ PROG, VERS, 4, .args = 2, .results = 1, .threshold = 1 },
	};
	const struct rpcrdma_tirpc_attr attr = { .max_bytes = 65536, .bulk = rows, .nbulk = ARRAY_SIZE(rows) };
	const char *dir = getenv("TMPDIR"), tcp_url[] = "tcp://127.0.0.1";
	char url[64];

	(void)argc;
	(void)argv;
	snprintf(local_url, sizeof(local_url), "local://%s/tirpc.%d", dir ? dir : "/tmp", (int)getpid());
	if (rpcrdma_svc_create(dispatch, PROG, VERS, tcp_url, &attr) || rpcrdma_svc_create(dispatch, PROG, VERS, local_url, &attr))
		abort();
	rpcrdma_svc_url(tcp_url, url, sizeof(url));
	port = (unsigned short)atoi(strrchr(url, ':') + 1);
	if (rpcrdma_domain_create(NULL, &domain) || rpcrdma_engine_create(domain, NULL, &engine) ||
	    rpcrdma_addr_parse(local_url, &clnt_attr.addr))
		abort();
	atexit(end_all);
	if (!freopen("/dev/null", "w", stdout)) /* what libtirpc says of credentials */
		abort();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t heads[] = { 0, 0, 0, 2, 4, 0 };
	uint8_t msg[ARGS_MAX + 512];
	struct rpcrdma_call null = { 0 };

	tcp_connect();
	local_connect();
	if (call_local(&null, PATIENCE_NS))
		abort();
	while (size) {
		unsigned op = data[0] % 6u;
		const uint8_t *head = data + 1;
		size_t len = 0, skip = 1 + heads[op];

		if (op == 0 || op == 1 || op == 3 || op == 4) {
			if (size < skip + 2)
				break;
			len = MIN((size_t)data[skip] << 8 | data[skip + 1], MIN(size - skip - 2, (size_t)ARGS_MAX));
			skip += 2;
		}
		data += skip;
		size -= skip;
		switch (op) {
		case 0:
			tcp_record(data, len);
			break;
		case 1:
			tcp_send(data, len);
			break;
		case 2:
			tcp_connect();
			break;
		case 3:
			tcp_record(msg, put_call(msg, head[0] % PROCS, head[1], data, len));
			break;
		case 4:
			local_call(head, data, len);
			break;
		case 5:
			(void)run_loop();
			break;
		}
		data += len;
		size -= len;
	}
	rpcrdma_svc_release(later);
	later = NULL;
	check_tcp();
	check_local();
	return 0;
}
