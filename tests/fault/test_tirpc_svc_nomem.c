/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_tirpc_svc_nomem.c - the Nth allocation fails, for N from 1 until none is left to fail: services of libtirpc
 */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "nomem.h"
#include "rpcrdma.h"
#include "rpcrdma_tirpc.h"
#include "tirpc_rig.h"

enum { ITEM = RIG_OWN, LATER };

#define ITEM_BYTES 20000u

/* ---- the service, in the thread of the test ---- */

static char item[ITEM_BYTES];

static void dispatch(struct svc_req *q, SVCXPRT *x)
{
	struct rig_bytes b = { .len = ITEM_BYTES, .val = item };
	struct svc_req *d;

	switch (q->rq_proc) {
	case ITEM:
		(void)svc_sendreply(x, (xdrproc_t)xdr_rig_bytes, &b); /* if it fails, the library replies */
		return;
	case LATER:
		d = rpcrdma_svc_detach(q);
		if (d)
			(void)svc_sendreply(d->rq_xprt, (xdrproc_t)xdr_rig_bytes, &b);
		else
			svcerr_systemerr(x);
		rpcrdma_svc_release(d);
		return;
	default:
		rig_dispatch(q, x);
	}
}

static void run_loop(void)
{
	struct pollfd fds[64];
	int n = svc_max_pollfd;

	memcpy(fds, svc_pollfd, (size_t)n * sizeof(fds[0]));
	n = poll(fds, (nfds_t)n, 0);
	if (n > 0)
		svc_getreq_poll(fds, n);
}

static const struct rpcrdma_bulk rows[] = { { RIG_PROG, RIG_VERS, ITEM, .results = 1 } };
static const struct rpcrdma_tirpc_attr attr = { .bulk = rows, .nbulk = 1 };

static void creation(void **state)
{
	(void)state;
	nomem_failed = true;
	for (unsigned long n = 1; nomem_failed; n++) {
		char url[64], text[64];
		int rc;

		snprintf(url, sizeof(url), "tcp://127.0.0.%lu", n);
		nomem_failed = false;
		nomem_countdown = n;
		rc = rpcrdma_svc_create(dispatch, RIG_PROG, RIG_VERS, url, &attr);
		nomem_countdown = 0;
		/* for rpcbind alone it needs no memory */
		assert_true(rc == 0 || (nomem_failed && rc == -ENOMEM));
		assert_int_equal(rpcrdma_svc_url(url, text, sizeof(text)) < 0, rc != 0);
	}
}

/* ---- calls ---- */

static bool done;
static int done_err;

static void on_done(struct rpcrdma_call *call, int err)
{
	(void)call;
	done = true;
	done_err = err;
}

static bool_t xdr_item(XDR *x, struct rpcrdma_payload *p)
{
	return rpcrdma_xdr_payload(x, p, ITEM_BYTES);
}

/* Ends once, with the right data or an error. */
static void one_call(struct rig_clnt *c, struct rpcrdma_call *call)
{
	int rc;

	call->prog = RIG_PROG;
	call->vers = RIG_VERS;
	call->done = on_done;
	done = false;
	rc = rpcrdma_clnt_call(c->clnt, call);
	while (!rc && !done) {
		run_loop();
		(void)rpcrdma_engine_poll(c->engine);
	}
	assert_true((!rc && !done_err) || nomem_failed);
}

static void call_item(struct rig_clnt *c, uint32_t proc)
{
	static char buf[ITEM_BYTES];
	struct iovec sink = { buf, sizeof(buf) };
	struct rpcrdma_payload res = { 0 };
	struct rpcrdma_call call = { .proc = proc, .decode = (xdrproc_t)xdr_item, .res = &res, .sink = &sink, .sinkcnt = 1,
				     .reply_max = ITEM_BYTES + 64 };

	memset(buf, 0, sizeof(buf));
	one_call(c, &call);
	if (!done_err && done)
		assert_memory_equal(buf, item, sizeof(buf));
}

static void call_echo(struct rig_clnt *c, u_int len)
{
	struct rig_bytes b = { .len = len, .val = item }, res = { 0 };
	struct rpcrdma_call call = { .proc = RIG_ECHO, .encode = (xdrproc_t)xdr_rig_bytes, .args = &b,
				     .decode = (xdrproc_t)xdr_rig_bytes, .res = &res, .reply_max = ITEM_BYTES + 64 };

	one_call(c, &call);
	if (res.len)
		assert_memory_equal(res.val, item, res.len);
	free(res.val);
}

/* The client's own allocations fail, too; its connection is new for each N. */
static void calls(void **state)
{
	static const char *const urls[] = { "tcp://127.0.0.1:0", NULL };
	char local[256], url[300];

	(void)state;
	memset(item, 'x', sizeof(item));
	snprintf(local, sizeof(local), "%s", rig_local("nomem"));
	for (unsigned i = 0; i < 2; i++) {
		const char *at = urls[i] ? urls[i] : local;

		assert_int_equal(rpcrdma_svc_create(dispatch, RIG_PROG, RIG_VERS, at, &attr), 0);
		assert_true(rpcrdma_svc_url(at, url, sizeof(url)) > 0);
		nomem_failed = true;
		for (unsigned long n = 1; nomem_failed; n++) {
			struct rpcrdma_clnt_attr ca = { .size = sizeof(ca), .timeout_ms = 30 };
			struct rig_clnt c;

			assert_int_equal(rpcrdma_addr_parse(url, &ca.addr), 0);
			assert_int_equal(rpcrdma_engine_create(NULL, NULL, &c.engine), 0);
			assert_int_equal(rpcrdma_clnt_open(c.engine, &ca, &c.clnt), 0);
			nomem_failed = false;
			nomem_countdown = n;
			one_call(&c, &(struct rpcrdma_call){ 0 });
			call_echo(&c, 100);
			call_echo(&c, 10000);
			if (i == 1)
				call_item(&c, ITEM);
			call_item(&c, LATER);
			nomem_countdown = 0;
			rig_clnt_close(&c);
			run_loop();
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(creation),
		cmocka_unit_test(calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
