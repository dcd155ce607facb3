/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_tirpc_later.c - requests that are detached, and replied to by another thread in another order
 */
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "rpcrdma.h"
#include "rpcrdma_tirpc.h"
#include "tirpc_rig.h"

enum {
	LATER = RIG_OWN, /* struct rig_bytes: the same back, when GO has been called */
	WHO_LATER,       /* struct rig_who, likewise */
	GO,              /* from now on, a thread replies to what is detached, the latest first */
	STOP,            /* no longer */
	WAITING,         /* a word: detached requests */
	FORGET,          /* detached, and released without a reply */
	OWN_THREAD,      /* detached, and replied to by the dispatch function itself, twice */
	BAD_RESULTS,     /* detached, and released after results that did not encode */
};

#define CALLS 5

static char local_url[256];
static const char tcp_url[] = "tcp://127.0.0.1";

/* ---- the service ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static struct svc_req *waiting[64];
static u_int nwaiting;
static bool goes, ends;

static bool_t refuse(XDR *x, void *nothing)
{
	(void)x;
	(void)nothing;
	return FALSE;
}

static void reply_bytes(struct svc_req *q)
{
	struct rig_bytes b = { 0 };

	if (!svc_getargs(q->rq_xprt, (xdrproc_t)xdr_rig_bytes, (caddr_t)&b))
		svcerr_decode(q->rq_xprt);
	else if (!svc_sendreply(q->rq_xprt, (xdrproc_t)xdr_rig_bytes, &b))
		svcerr_systemerr(q->rq_xprt);
	svc_freeargs(q->rq_xprt, (xdrproc_t)xdr_rig_bytes, (caddr_t)&b);
}

static void *reply_later(void *nothing)
{
	pthread_mutex_lock(&lock);
	while (!ends) {
		struct svc_req *q;

		if (!goes || !nwaiting) {
			pthread_cond_wait(&cond, &lock);
			continue;
		}
		q = waiting[--nwaiting];
		pthread_mutex_unlock(&lock);
		if (q->rq_proc == LATER)
			reply_bytes(q);
		else
			rig_reply_who(q);
		rpcrdma_svc_release(q);
		pthread_mutex_lock(&lock);
	}
	pthread_mutex_unlock(&lock);
	return nothing;
}

static void set_flag(bool *flag, bool value)
{
	pthread_mutex_lock(&lock);
	*flag = value;
	pthread_cond_signal(&cond);
	pthread_mutex_unlock(&lock);
}

static void detach(struct svc_req *q)
{
	struct svc_req *d = rpcrdma_svc_detach(q);

	if (!d || rpcrdma_svc_detach(q)) /* only once */
		abort();
	pthread_mutex_lock(&lock);
	waiting[nwaiting++] = d;
	pthread_cond_signal(&cond);
	pthread_mutex_unlock(&lock);
	svc_sendreply(q->rq_xprt, (xdrproc_t)xdr_rig_void, NULL); /* no longer its own: dropped */
}

static void reply_here(struct svc_req *d)
{
	u_int word = 1;

	if (!d || !svc_sendreply(d->rq_xprt, (xdrproc_t)xdr_u_int, &word))
		abort();
	word = 2;
	if (svc_sendreply(d->rq_xprt, (xdrproc_t)xdr_u_int, &word))
		abort();
	rpcrdma_svc_release(d);
}

static void dispatch(struct svc_req *q, SVCXPRT *x)
{
	struct svc_req *d;
	u_int n;

	switch (q->rq_proc) {
	case LATER:
	case WHO_LATER:
		detach(q);
		return;
	case GO:
	case STOP:
		set_flag(&goes, q->rq_proc == GO);
		svc_sendreply(x, (xdrproc_t)xdr_rig_void, NULL);
		if (rpcrdma_svc_detach(q)) /* replied to */
			abort();
		return;
	case WAITING:
		pthread_mutex_lock(&lock);
		n = nwaiting;
		pthread_mutex_unlock(&lock);
		svc_sendreply(x, (xdrproc_t)xdr_u_int, &n);
		return;
	case FORGET:
		rpcrdma_svc_release(rpcrdma_svc_detach(q));
		return;
	case OWN_THREAD:
		reply_here(rpcrdma_svc_detach(q));
		return;
	case BAD_RESULTS:
		d = rpcrdma_svc_detach(q);
		if (!d || svc_sendreply(d->rq_xprt, (xdrproc_t)refuse, NULL))
			abort();
		rpcrdma_svc_release(d);
		return;
	default:
		rig_dispatch(q, x);
	}
}

static bool has_table; /* results are bulk data: svc_sendreply() runs the engine until they have moved */

static int create(void)
{
	static const struct rpcrdma_bulk rows[] = {
		{ .prog = RIG_PROG, .vers = RIG_VERS, .proc = LATER, .results = 1, .threshold = 16 },
	};
	const struct rpcrdma_tirpc_attr attr = { .bulk = rows, .nbulk = has_table };

	int rc = rpcrdma_svc_create(dispatch, RIG_PROG, RIG_VERS, tcp_url, &attr);

	return rc ? rc : rpcrdma_svc_create(dispatch, RIG_PROG, RIG_VERS, local_url, &attr);
}

static void run(void (*loop)(void))
{
	pthread_t t;

	if (pthread_create(&t, NULL, reply_later, NULL))
		abort();
	loop();
	set_flag(&ends, true);
	pthread_join(t, NULL);
}

static void run_svc_run(void)
{
	run(svc_run);
}

static void run_rpcrdma_svc_run(void)
{
	run(rpcrdma_svc_run);
}

/* Without a thread: the loop of the program itself replies, outside of dispatch functions. */
static void run_own_loop(void)
{
	struct pollfd fds[64];

	goes = true;
	while (svc_pollfd || svc_max_pollfd) {
		int n = svc_max_pollfd;

		memcpy(fds, svc_pollfd, (size_t)n * sizeof(fds[0]));
		n = poll(fds, (nfds_t)n, -1);
		if (n > 0)
			svc_getreq_poll(fds, n);
		while (nwaiting) {
			struct svc_req *q = waiting[--nwaiting];

			reply_bytes(q);
			rpcrdma_svc_release(q);
		}
	}
}

static struct rig start(void (*loop)(void))
{
	const struct rig_service s = { .create = create, .run = loop, .url = { tcp_url, local_url } };
	struct rig r;

	snprintf(local_url, sizeof(local_url), "%s", rig_local("later"));
	rig_start(&r, &s);
	return r;
}

/* ---- calls ---- */

struct later {
	struct rpcrdma_call call;
	char text[3000];
	struct rig_bytes args, res;
	int err;
	unsigned order; /* 0: not done */
};

static unsigned ndone;

static void on_done(struct rpcrdma_call *call, int err)
{
	struct later *l = container_of(call, struct later, call);

	l->err = err;
	l->order = ++ndone;
}

static void call_later(struct rig_clnt *c, struct later *l, unsigned i)
{
	memset(l, 0, sizeof(*l));
	memset(l->text, 'a' + (int)i, sizeof(l->text));
	l->args = (struct rig_bytes){ .len = 1 + i * 700, .val = l->text };
	l->call = (struct rpcrdma_call){ .prog = RIG_PROG, .vers = RIG_VERS, .proc = LATER, .done = on_done,
					 .encode = (xdrproc_t)xdr_rig_bytes, .args = &l->args,
					 .decode = (xdrproc_t)xdr_rig_bytes, .res = &l->res, .reply_max = 4096 };
	assert_int_equal(rpcrdma_clnt_call(c->clnt, &l->call), 0);
}

static void call_void(const char *url, rpcproc_t proc)
{
	assert_int_equal(rig_call(url, RIG_PROG, RIG_VERS, proc, (xdrproc_t)xdr_rig_void, NULL, (xdrproc_t)xdr_rig_void, NULL),
			 RPC_SUCCESS);
}

static u_int call_word(const char *url, rpcproc_t proc)
{
	u_int word = 0;

	assert_int_equal(rig_call(url, RIG_PROG, RIG_VERS, proc, (xdrproc_t)xdr_rig_void, NULL, (xdrproc_t)xdr_u_int, &word),
			 RPC_SUCCESS);
	return word;
}

/* Until the service has as many detached requests: where a variant allows only one call in flight, one. */
static u_int wait_for_waiting(struct rig_clnt *c, const char *url)
{
	u_int n, want = getenv("LEAT_TEST_CREDITS") ? 1 : CALLS;

	do {
		(void)rpcrdma_engine_poll(c->engine);
		n = call_word(url, WAITING);
	} while (n < want);
	return n;
}

/* ---- tests ---- */

static void check_order(const char *url)
{
	struct later l[CALLS];
	struct rig_clnt c;
	u_int detached;

	ndone = 0;
	rig_clnt_open(&c, url);
	for (unsigned i = 0; i < CALLS; i++)
		call_later(&c, &l[i], i);
	detached = wait_for_waiting(&c, url);
	assert_int_equal(ndone, 0);
	call_void(url, GO);
	while (ndone < CALLS)
		(void)rpcrdma_engine_wait(c.engine, -1);
	for (unsigned i = 0; i < CALLS; i++) {
		assert_int_equal(l[i].err, 0);
		assert_int_equal(l[i].res.len, l[i].args.len);
		assert_memory_equal(l[i].res.val, l[i].args.val, l[i].args.len);
		if (detached == CALLS && !getenv("LEAT_TEST_CHAOS"))
			assert_int_equal(l[i].order, CALLS - i);
		free(l[i].res.val);
	}
	call_void(url, STOP);
	rig_clnt_close(&c);
}

static void check_lost(const char *url)
{
	struct later l[CALLS];
	struct rig_clnt c;

	ndone = 0;
	rig_clnt_open(&c, url);
	for (unsigned i = 0; i < CALLS; i++)
		call_later(&c, &l[i], i);
	(void)wait_for_waiting(&c, url);
	rig_clnt_close(&c);
	assert_int_equal(ndone, CALLS);
	call_void(url, GO);
	while (call_word(url, WAITING))
		;
	call_void(url, STOP);
}

static void check_all(void (*loop)(void))
{
	struct rig r = start(loop);

	for (unsigned i = 0; i < 2; i++) {
		check_order(r.url[i]);
		check_lost(r.url[i]);
		check_order(r.url[i]);
	}
	assert_int_equal(rig_stop(&r), 0);
}

static void svc_run_sends_them(void **state)
{
	(void)state;
	check_all(run_svc_run);
}

static void rpcrdma_svc_run_sends_them(void **state)
{
	(void)state;
	check_all(run_rpcrdma_svc_run);
}

static void own_loop_sends_them(void **state)
{
	struct rig r = start(run_own_loop);
	struct rig_clnt c;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		rig_clnt_open(&c, r.url[i]);
		for (unsigned k = 0; k < 200; k++) {
			struct later l[CALLS];

			ndone = 0;
			for (unsigned n = 0; n < CALLS; n++)
				call_later(&c, &l[n], n);
			while (ndone < CALLS)
				(void)rpcrdma_engine_wait(c.engine, -1);
			for (unsigned n = 0; n < CALLS; n++) {
				assert_int_equal(l[n].err, 0);
				assert_int_equal(l[n].res.len, l[n].args.len);
				free(l[n].res.val);
			}
		}
		rig_clnt_close(&c);
	}
	assert_int_equal(rig_stop(&r), 0);
}

static bool_t get_item(XDR *x, struct rpcrdma_payload *p)
{
	return rpcrdma_xdr_payload(x, p, UINT32_MAX);
}

/* A bulk reply outside of a dispatch function, and then a call that nothing else wakes the loop for. */
static void own_loop_sends_bulk(void **state)
{
	static char arg[60000], into[sizeof(arg)];
	struct rig_bytes args = { .len = sizeof(arg), .val = arg };
	struct iovec sink = { into, sizeof(into) };
	struct rig_clnt c;
	struct rig r;

	(void)state;
	has_table = true;
	r = start(run_own_loop);
	rig_clnt_open(&c, r.url[1]);
	for (unsigned k = 0; k < 20; k++) {
		struct rpcrdma_payload res = { 0 };
		struct later l = { .call = { .prog = RIG_PROG, .vers = RIG_VERS, .proc = LATER, .done = on_done,
					     .encode = (xdrproc_t)xdr_rig_bytes, .args = &args, .decode = (xdrproc_t)get_item,
					     .res = &res, .sink = &sink, .sinkcnt = 1, .reply_max = 64 } };
		struct later null = { .call = { .prog = RIG_PROG, .vers = RIG_VERS, .done = on_done } };

		ndone = 0;
		assert_int_equal(rpcrdma_clnt_call(c.clnt, &l.call), 0);
		while (ndone < 1)
			(void)rpcrdma_engine_wait(c.engine, -1);
		assert_int_equal(l.err, 0);
		assert_int_equal(l.call.payload_bytes, sizeof(arg));
		assert_int_equal(rpcrdma_clnt_call(c.clnt, &null.call), 0);
		while (ndone < 2)
			(void)rpcrdma_engine_wait(c.engine, -1);
		assert_int_equal(null.err, 0);
	}
	rig_clnt_close(&c);
	assert_int_equal(rig_stop(&r), 0);
	has_table = false;
}

/* Address and credentials of the caller outlive the dispatch function. */
static void caller_is_known_later(void **state)
{
	struct rig r = start(run_svc_run);
	struct rig_who now, later;

	(void)state;
	call_void(r.url[1], GO);
	for (unsigned i = 0; i < 2; i++) {
		memset(&now, 0, sizeof(now));
		memset(&later, 0, sizeof(later));
		assert_int_equal(rig_call(r.url[i], RIG_PROG, RIG_VERS, RIG_WHO, (xdrproc_t)xdr_rig_void, NULL,
					  (xdrproc_t)xdr_rig_who, &now),
				 RPC_SUCCESS);
		assert_int_equal(rig_call(r.url[i], RIG_PROG, RIG_VERS, WHO_LATER, (xdrproc_t)xdr_rig_void, NULL,
					  (xdrproc_t)xdr_rig_who, &later),
				 RPC_SUCCESS);
		assert_int_equal(later.family, AF_INET);
		if (i == 0)
			now.port = later.port; /* another connection */
		assert_memory_equal(&later, &now, sizeof(now));
	}
	assert_int_equal(rig_stop(&r), 0);
}

static void own_thread_may_reply(void **state)
{
	struct rig r = start(run_svc_run);

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(call_word(r.url[i], OWN_THREAD), 1);
		assert_int_equal(rig_call(r.url[i], RIG_PROG, RIG_VERS, BAD_RESULTS, (xdrproc_t)xdr_rig_void, NULL,
					  (xdrproc_t)xdr_rig_void, NULL),
				 RPC_SYSTEMERROR);
	}
	assert_int_equal(rig_stop(&r), 0);
}

/* A released request is over: its caller hears nothing, and others are served. */
static void released_without_reply(void **state)
{
	struct rig r = start(run_svc_run);
	struct rpcrdma_call call = { .prog = RIG_PROG, .vers = RIG_VERS, .proc = FORGET, .done = on_done };
	struct rig_clnt c;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		rig_clnt_open(&c, r.url[i]);
		ndone = 0;
		assert_int_equal(rpcrdma_clnt_call(c.clnt, &call), 0);
		for (unsigned k = 0; k < 3; k++) {
			(void)rpcrdma_engine_poll(c.engine);
			call_void(r.url[i], RIG_NULL);
		}
		assert_int_equal(ndone, 0);
		rig_clnt_close(&c);
	}
	assert_int_equal(rig_stop(&r), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(svc_run_sends_them),
		cmocka_unit_test(rpcrdma_svc_run_sends_them),
		cmocka_unit_test(own_loop_sends_them),
		cmocka_unit_test(own_loop_sends_bulk),
		cmocka_unit_test(caller_is_known_later),
		cmocka_unit_test(own_thread_may_reply),
		cmocka_unit_test(released_without_reply),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
