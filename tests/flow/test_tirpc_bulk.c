/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_tirpc_bulk.c - a service of libtirpc with a table of bulk data, and messages of any size
 */
#include <errno.h>
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
	GET_MEM = RIG_OWN, /* u_int: a struct item of that length, from memory of rpcrdma_mem_alloc() */
	GET_HEAP,          /* likewise, from other memory */
	GET_LATER,         /* likewise, by another thread */
	GET_PLAIN,         /* likewise, without a row in the table */
	GET_CHILD,         /* likewise, from a child of fork() */
	GET_LONG,          /* longer than its row says */
	PUT,               /* a struct item; struct put_res: what has arrived */
	PUT_UNREAD,        /* the same, but the arguments stay where they are */
	COPIED,            /* a hyper: bytes copied by this service */
};

#define MAX_BYTES (256u << 10) /* of the service */
#define DATA_MAX (2u << 20)

/* What both ends send: words around the bulk item. */
struct item {
	u_int first;
	struct rig_bytes data;
	u_int last;
};

struct put_res {
	u_int first, len, sum, last;
};

static char local_url[256];
static const char tcp_url[] = "tcp://127.0.0.1";

static bool_t xdr_item(XDR *x, struct item *i)
{
	return xdr_u_int(x, &i->first) && xdr_rig_bytes(x, &i->data) && xdr_u_int(x, &i->last);
}

static bool_t xdr_put_res(XDR *x, struct put_res *p)
{
	return xdr_u_int(x, &p->first) && xdr_u_int(x, &p->len) && xdr_u_int(x, &p->sum) && xdr_u_int(x, &p->last);
}

static void fill(char *mem, u_int len, u_int seed)
{
	for (u_int i = 0; i < len; i++)
		mem[i] = (char)(i * 7 + (i >> 8) * 13 + seed);
}

static u_int sum_of(const char *mem, u_int len)
{
	u_int sum = len;

	for (u_int i = 0; i < len; i++)
		sum = sum * 31 + (unsigned char)mem[i];
	return sum;
}

/* ---- the service ---- */

static char *mem, *heap;

/* The memory changes as soon as svc_sendreply() has returned. */
static void reply_item(SVCXPRT *x, char *from, u_int len)
{
	struct item i = { .first = 0x11111111, .data = { .len = len, .val = from }, .last = 0x22222222 };

	fill(from, len, len);
	if (!svc_sendreply(x, (xdrproc_t)xdr_item, &i))
		svcerr_systemerr(x);
	memset(from, 0xee, len);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* With memory that no other request uses. */
static void *reply_later(void *arg)
{
	struct svc_req *q = arg;
	u_int len;

	if (!svc_getargs(q->rq_xprt, (xdrproc_t)xdr_u_int, (caddr_t)&len))
		abort();
	pthread_mutex_lock(&lock);
	reply_item(q->rq_xprt, mem + DATA_MAX, len);
	pthread_mutex_unlock(&lock);
	rpcrdma_svc_release(q);
	return NULL;
}

static void put(SVCXPRT *x)
{
	struct item i = { 0 };
	struct put_res p;

	if (!svc_getargs(x, (xdrproc_t)xdr_item, (caddr_t)&i)) {
		svcerr_decode(x);
		return;
	}
	p = (struct put_res){ i.first, i.data.len, sum_of(i.data.val, i.data.len), i.last };
	svc_sendreply(x, (xdrproc_t)xdr_put_res, &p);
	svc_freeargs(x, (xdrproc_t)xdr_item, (caddr_t)&i);
}

static void dispatch(struct svc_req *q, SVCXPRT *x)
{
	struct rpcrdma_stats st;
	pthread_t t;
	u_int len = 0;

	if (q->rq_proc >= GET_MEM && q->rq_proc <= GET_LONG && q->rq_proc != GET_LATER &&
	    !svc_getargs(x, (xdrproc_t)xdr_u_int, (caddr_t)&len)) {
		svcerr_decode(x);
		return;
	}
	switch (q->rq_proc) {
	case GET_MEM:
	case GET_PLAIN:
	case GET_LONG:
		reply_item(x, mem, len);
		return;
	case GET_HEAP:
		reply_item(x, heap, len);
		return;
	case GET_LATER:
		if (pthread_create(&t, NULL, reply_later, rpcrdma_svc_detach(q)))
			abort();
		pthread_detach(t);
		return;
	case GET_CHILD:
		if (!fork()) {
			reply_item(x, heap, len);
			_exit(0);
		}
		return;
	case PUT:
		put(x);
		return;
	case PUT_UNREAD:
		svc_sendreply(x, (xdrproc_t)xdr_put_res, &(struct put_res){ 0 });
		return;
	case COPIED:
		rpcrdma_domain_stats(rpcrdma_tirpc_domain(), &st);
		svc_sendreply(x, (xdrproc_t)xdr_uint64_t, &st.bytes_copied);
		return;
	default:
		rig_dispatch(q, x);
	}
}

static int create(void)
{
	static const struct rpcrdma_bulk rows[] = {
		{ RIG_PROG, RIG_VERS, GET_MEM, .results = 1, .data_max = DATA_MAX },
		{ RIG_PROG, RIG_VERS, GET_HEAP, .results = 1, .data_max = DATA_MAX },
		{ RIG_PROG, RIG_VERS, GET_LATER, .results = 1, .data_max = DATA_MAX },
		{ RIG_PROG, RIG_VERS, GET_CHILD, .results = 1, .data_max = DATA_MAX },
		{ RIG_PROG, RIG_VERS, GET_LONG, .results = 1, .data_max = 8192 },
		{ RIG_PROG, RIG_VERS, PUT, .args = 1 },
		{ RIG_PROG, RIG_VERS, PUT_UNREAD, .args = 1 },
	};
	const struct rpcrdma_tirpc_attr attr = { .max_bytes = MAX_BYTES, .bulk = rows, .nbulk = ARRAY_SIZE(rows) };
	void *p;
	int rc = rpcrdma_svc_create(dispatch, RIG_PROG, RIG_VERS, tcp_url, &attr);

	if (!rc)
		rc = rpcrdma_svc_create(dispatch, RIG_PROG, RIG_VERS, local_url, &attr);
	if (!rc)
		rc = rpcrdma_mem_alloc(rpcrdma_tirpc_domain(), 2 * DATA_MAX, &p);
	if (rc)
		return rc;
	mem = p;
	heap = malloc(DATA_MAX);
	return heap ? 0 : -ENOMEM;
}

static struct rig start(void (*loop)(void))
{
	const struct rig_service s = { .create = create, .run = loop, .url = { tcp_url, local_url } };
	struct rig r;

	snprintf(local_url, sizeof(local_url), "%s", rig_local("bulk"));
	rig_start(&r, &s);
	return r;
}

/* ---- a client that knows the table: bulk data is a payload ---- */

struct payload_item {
	u_int first;
	struct rpcrdma_payload data;
	u_int last;
};

static bool_t xdr_payload_item(XDR *x, struct payload_item *i)
{
	return xdr_u_int(x, &i->first) && rpcrdma_xdr_payload(x, &i->data, DATA_MAX) && xdr_u_int(x, &i->last);
}

static char *buf, *expected;

static int get(struct rig_clnt *c, rpcproc_t proc, u_int len)
{
	struct iovec sink = { buf, DATA_MAX };
	struct payload_item res = { 0 };
	struct rpcrdma_call call = { .prog = RIG_PROG, .vers = RIG_VERS, .proc = proc, .encode = (xdrproc_t)xdr_u_int,
				     .args = &len, .decode = (xdrproc_t)xdr_payload_item, .res = &res, .sink = &sink,
				     .sinkcnt = 1, .reply_max = 64 };
	int rc;

	memset(buf, 0, len);
	rc = rpcrdma_clnt_call_wait(c->clnt, &call);
	if (rc)
		return rc;
	fill(expected, len, len);
	assert_int_equal(res.first, 0x11111111);
	assert_int_equal(res.last, 0x22222222);
	assert_int_equal(res.data.length, len);
	assert_int_equal(call.payload_bytes, len);
	assert_memory_equal(buf, expected, len);
	return 0;
}

static int put_item(struct rig_clnt *c, rpcproc_t proc, u_int len)
{
	struct iovec iov = { expected, len };
	struct payload_item args = { 0x33333333, { .length = len, .iov = &iov, .iovcnt = 1 }, 0x44444444 };
	struct put_res res;
	struct rpcrdma_call call = { .prog = RIG_PROG, .vers = RIG_VERS, .proc = proc, .encode = (xdrproc_t)xdr_payload_item,
				     .args = &args, .decode = (xdrproc_t)xdr_put_res, .res = &res, .reply_max = 64 };
	int rc;

	fill(expected, len, len + 1);
	rc = rpcrdma_clnt_call_wait(c->clnt, &call);
	if (rc || proc != PUT)
		return rc;
	assert_int_equal(res.first, 0x33333333);
	assert_int_equal(res.last, 0x44444444);
	assert_int_equal(res.len, len);
	assert_int_equal(res.sum, sum_of(expected, len));
	return 0;
}

static uint64_t copied(const char *url)
{
	uint64_t n = 0;

	assert_int_equal(rig_call(url, RIG_PROG, RIG_VERS, COPIED, (xdrproc_t)xdr_rig_void, NULL, (xdrproc_t)xdr_uint64_t, &n),
			 RPC_SUCCESS);
	return n;
}

/* At each boundary: nothing, pads, the threshold, inline, long, the most. */
static const u_int lengths[] = { 0, 1, 2, 3, 4, 4000, 4095, 4096, 4097, 4098, 4099, 65536, 100001, 1 << 20, DATA_MAX };

/* ---- tests ---- */

static void check_items(void (*loop)(void))
{
	static const rpcproc_t procs[] = { GET_MEM, GET_HEAP, GET_LATER };
	struct rig r = start(loop);
	struct rig_clnt c;

	for (unsigned i = 0; i < 2; i++) {
		rig_clnt_open(&c, r.url[i]);
		for (size_t k = 0; k < ARRAY_SIZE(lengths); k++) {
			for (size_t p = 0; p < ARRAY_SIZE(procs); p++)
				/* over TCP, this client wants a payload to be the end of the results */
				if (i == 1)
					assert_int_equal(get(&c, procs[p], lengths[k]), 0);
			if (lengths[k] <= 1 << 20)
				assert_int_equal(put_item(&c, PUT, lengths[k]), 0);
		}
		rig_clnt_close(&c);
	}
	assert_int_equal(rig_stop(&r), 0);
}

static void items_travel(void **state)
{
	(void)state;
	check_items(svc_run);
}

static void items_travel_with_rpcrdma_svc_run(void **state)
{
	(void)state;
	check_items(rpcrdma_svc_run);
}

/* Memory of rpcrdma_mem_alloc() saves a copy; arguments cost one. */
static void copies_are_counted(void **state)
{
	const u_int len = 1 << 20;
	struct rig r = start(svc_run);
	struct rig_clnt c;
	uint64_t n[5];

	(void)state;
	rig_clnt_open(&c, r.url[1]);
	n[0] = copied(r.url[1]);
	assert_int_equal(get(&c, GET_MEM, len), 0);
	n[1] = copied(r.url[1]);
	assert_int_equal(get(&c, GET_HEAP, len), 0);
	n[2] = copied(r.url[1]);
	assert_int_equal(put_item(&c, PUT, len), 0);
	n[3] = copied(r.url[1]);
	assert_int_equal(put_item(&c, PUT_UNREAD, len), 0);
	n[4] = copied(r.url[1]);
	/* besides, there are the small messages */
	assert_in_range(n[1] - n[0], 0, len + 4096);
	assert_in_range(n[2] - n[1], n[1] - n[0] + len - 4096, n[1] - n[0] + len + 4096);
	assert_in_range(n[3] - n[2], n[4] - n[3] + len - 4096, n[4] - n[3] + len + 4096);
	rig_clnt_close(&c);
	assert_int_equal(rig_stop(&r), 0);
}

/* A peer without a table gets the same bytes inside the message. */
static void peers_need_no_table(void **state)
{
	static const rpcproc_t procs[] = { GET_MEM, GET_HEAP, GET_LATER, GET_PLAIN, GET_CHILD };
	struct rig r = start(svc_run);

	(void)state;
	for (unsigned i = 0; i < 2; i++)
		for (size_t p = 0; p < ARRAY_SIZE(procs); p++)
			for (u_int len = 4095; len < 60000; len = len * 3 + 1) {
				struct item res = { 0 };

				assert_int_equal(rig_call(r.url[i], RIG_PROG, RIG_VERS, procs[p], (xdrproc_t)xdr_u_int, &len,
							  (xdrproc_t)xdr_item, &res),
						 RPC_SUCCESS);
				fill(expected, len, len);
				assert_int_equal(res.first, 0x11111111);
				assert_int_equal(res.last, 0x22222222);
				assert_int_equal(res.data.len, len);
				assert_memory_equal(res.data.val, expected, len);
				free(res.data.val);
			}
	assert_int_equal(rig_stop(&r), 0);
}

static enum clnt_stat get_plain(const char *url, rpcproc_t proc, u_int len)
{
	struct item res = { 0 };
	enum clnt_stat stat = rig_call(url, RIG_PROG, RIG_VERS, proc, (xdrproc_t)xdr_u_int, &len, (xdrproc_t)xdr_item, &res);

	free(res.data.val);
	return stat;
}

static enum clnt_stat echo(const char *url, u_int len)
{
	struct rig_bytes b = { .len = len, .val = expected }, res = { 0 };
	enum clnt_stat stat =
		rig_call(url, RIG_PROG, RIG_VERS, RIG_ECHO, (xdrproc_t)xdr_rig_bytes, &b, (xdrproc_t)xdr_rig_bytes, &res);

	free(res.val);
	return stat;
}

/* max_bytes counts arguments and results without the items of the table. */
static void limits_hold(void **state)
{
	struct rig r = start(svc_run);
	struct rig_clnt c;

	(void)state;
	assert_int_equal(get_plain(r.url[0], GET_PLAIN, MAX_BYTES - 12), RPC_SUCCESS);
	assert_int_equal(get_plain(r.url[0], GET_PLAIN, MAX_BYTES - 11), RPC_SYSTEMERROR);
	assert_int_equal(get_plain(r.url[0], GET_MEM, DATA_MAX), RPC_SUCCESS);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(echo(r.url[i], MAX_BYTES - 4), RPC_SUCCESS);
		assert_int_equal(echo(r.url[i], MAX_BYTES), i ? RPC_FAILED : RPC_SYSTEMERROR);
		assert_int_equal(echo(r.url[i], 100), RPC_SUCCESS);
	}
	assert_int_equal(get_plain(r.url[0], GET_LONG, 8192), RPC_SUCCESS);
	rig_clnt_open(&c, r.url[1]);
	assert_int_equal(get(&c, GET_LONG, 8192), 0);
	assert_int_equal(get(&c, GET_LONG, 8193), -EREMOTEIO);
	assert_int_equal(get(&c, GET_LONG, 8192), 0);
	rig_clnt_close(&c);
	assert_int_equal(rig_stop(&r), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(items_travel),
		cmocka_unit_test(items_travel_with_rpcrdma_svc_run),
		cmocka_unit_test(copies_are_counted),
		cmocka_unit_test(peers_need_no_table),
		cmocka_unit_test(limits_hold),
	};

	buf = malloc(DATA_MAX);
	expected = malloc(DATA_MAX);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
