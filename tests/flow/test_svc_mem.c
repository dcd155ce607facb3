/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_svc_mem.c - a service pulls payload into its own memory and places payload from it
 */
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "leat_flow.h"
#include "rpcrdma.h"

#define BYTES (1u << 20)
#define MAX_DATA (512u << 10)

enum proc { PROC_PUT = 1, PROC_GET };

struct msg {
	uint32_t n; /* PROC_GET: bytes wanted */
	struct rpcrdma_payload data;
};

static bool_t xdr_n(XDR *x, struct msg *m)
{
	return xdr_uint32_t(x, &m->n);
}

static bool_t xdr_data(XDR *x, struct msg *m)
{
	return xdr_n(x, m) && rpcrdma_xdr_payload(x, &m->data, MAX_DATA);
}

static const enum rpcrdma_transport transports[] = { RPCRDMA_LOCAL, RPCRDMA_TCP };
#define FOR_EACH_TRANSPORT(t) for (const enum rpcrdma_transport *t = transports; t < transports + 2; t++)

/* ---- lack of memory ------------------------------------------------------------------------ */

static unsigned long countdown; /* 0: nothing fails */
static bool failed;

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t m);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t m);

static bool fails(void)
{
	if (!countdown || --countdown)
		return false;
	failed = true;
	return true;
}

void *__wrap_malloc(size_t n)
{
	return fails() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t m)
{
	return fails() ? NULL : __real_calloc(n, m);
}

/* ---- the service: one call at a time ------------------------------------------------------- */

static struct rpcrdma_domain *domain;
static struct rpcrdma_engine *engine, *clnt_engine;
static struct rpcrdma_listener *listener;
static struct rpcrdma_clnt *clnt;
static unsigned conns, dones;

static uint8_t *mem;  /* own memory; the payload is at @at */
static size_t at;
static bool given;    /* by rpcrdma_mem_register() */
static int want_err;  /* of each transfer */
static unsigned long fail_at; /* this allocation of a transfer fails */
static struct msg args, res;
static bool raw;      /* arguments as bytes, results in pieces, ... */
static bool whole;    /* ... and calls with all of their payload */
static struct rpcrdma_xfer xfers[2];
static unsigned pulling;

static int on_accept(void *ctx, const struct rpcrdma_peer *peer, struct rpcrdma_engine **ret_engine, void **ret_ctx)
{
	(void)ctx;
	(void)peer;
	*ret_engine = engine;
	*ret_ctx = NULL;
	conns++;
	return 0;
}

static void on_closed(void *ctx)
{
	(void)ctx;
	conns--;
}

/* The memory is free as soon as done runs. */
static void on_done(void *arg)
{
	(void)arg;
	if (given && !want_err) {
		assert_int_equal(rpcrdma_mem_unregister(domain, mem), 0);
		assert_int_equal(rpcrdma_mem_register(domain, mem, BYTES), 0);
	}
	dones++;
}

static void check_busy(void)
{
	if (given)
		assert_int_equal(rpcrdma_mem_unregister(domain, mem), -EBUSY);
}

static void reply(struct rpcrdma_req *req)
{
	bool put = req->proc == PROC_PUT;

	rpcrdma_req_reply(req, put ? (xdrproc_t)xdr_n : (xdrproc_t)xdr_data, &res, on_done, NULL);
}

static void on_pulled(struct rpcrdma_xfer *x, int err)
{
	assert_int_equal(err, 0);
	check_busy();
	if (!--pulling)
		reply(x->req);
}

/* A structure that has been used before names other memory now. */
static void name(struct rpcrdma_xfer *x, uint32_t off, uint32_t len, void (*done)(struct rpcrdma_xfer *p, int err))
{
	x->mem = mem + at + off;
	x->off = off;
	x->len = len;
	x->done = done;
}

/* Two transfers: the first of a third of the bytes. */
static unsigned split(uint32_t bytes, void (*done)(struct rpcrdma_xfer *p, int err))
{
	uint32_t first = bytes / 3;
	unsigned n = 0;

	if (first)
		name(&xfers[n++], 0, first, done);
	name(&xfers[n++], first, bytes - first, done);
	return n;
}

static void refuse_call(struct rpcrdma_req *req)
{
	rpcrdma_req_reply_error(req, RPCRDMA_SYSTEM_ERR, 0, 0, on_done, NULL);
}

static void serve_put(struct rpcrdma_req *req)
{
	unsigned n = split(args.data.length, on_pulled);

	for (unsigned i = 0; i < n; i++)
		assert_int_equal(rpcrdma_req_pull(req, &xfers[i]), want_err);
	pulling = n;
	if (want_err)
		refuse_call(req);
	else
		check_busy();
}

/* Results in three pieces, the payload from @mem. */
static void reply_in_pieces(struct rpcrdma_req *req)
{
	static uint32_t words[2];
	static struct iovec iov[3];
	static const struct rpcrdma_results results = { .iov = iov, .iovcnt = 3, .payload = 2, .payload_cnt = 1 };

	words[0] = htonl(res.n);
	words[1] = htonl(args.n);
	iov[0] = (struct iovec){ .iov_base = &words[0], .iov_len = 4 };
	iov[1] = (struct iovec){ .iov_base = &words[1], .iov_len = 4 };
	iov[2] = (struct iovec){ .iov_base = mem + at, .iov_len = args.n };
	rpcrdma_req_reply_parts(req, &results, on_done, NULL);
}

static uint32_t word_of(const struct rpcrdma_args *a, size_t i)
{
	uint32_t word;

	assert_true(a->len >= 4 * (i + 1));
	memcpy(&word, (const uint8_t *)a->bytes + 4 * i, 4);
	return ntohl(word);
}

/* Return: as rpcrdma_req_decode(); 1: the arguments' payload is in @mem already */
static int take_bytes(struct rpcrdma_req *req)
{
	struct rpcrdma_args a;
	int rc = rpcrdma_req_args_bytes(req, &a);

	if (rc)
		return rc;
	assert_false(a.reduced && whole);
	args.n = word_of(&a, 0);
	if (req->proc != PROC_PUT)
		return 0;
	args.data.length = word_of(&a, 1);
	if (a.reduced) {
		assert_int_equal(a.payload_pos, 8);
		assert_true(a.payload_bytes >= args.data.length);
		return 0;
	}
	assert_int_equal(a.len, 8 + round_up4((size_t)args.data.length));
	memcpy(mem + at, (const uint8_t *)a.bytes + 8, args.data.length);
	return 1;
}

static void serve_get(struct rpcrdma_req *req)
{
	unsigned n = split(args.n, NULL);
	int rc;

	for (unsigned i = n; i-- > 0 && !failed;) {
		countdown = fail_at;
		rc = rpcrdma_req_place(req, &xfers[i]);
		countdown = 0;
		assert_int_equal(rc, failed ? -ENOMEM : want_err);
	}
	res.data = (struct rpcrdma_payload){ .length = args.n };
	if (want_err || failed) {
		refuse_call(req);
		return;
	}
	check_busy();
	reply(req);
}

static void on_call(void *ctx, struct rpcrdma_req *req)
{
	bool put = req->proc == PROC_PUT;
	int rc;

	(void)ctx;
	args = res = (struct msg){ 0 };
	rc = raw ? take_bytes(req) : rpcrdma_req_decode(req, put ? (xdrproc_t)xdr_data : (xdrproc_t)xdr_n, &args);
	if (rc == -EAGAIN)
		return;
	if (rc > 0) {
		reply(req);
		return;
	}
	assert_int_equal(rc, 0);
	if (put)
		serve_put(req);
	else if (raw)
		reply_in_pieces(req);
	else
		serve_get(req);
}

static void open_both(enum rpcrdma_transport t)
{
	static const struct rpcrdma_svc_ops ops = { .accept = on_accept, .call = on_call, .closed = on_closed };
	struct rpcrdma_addr addr = { .transport = t, .host = "127.0.0.1" };
	struct rpcrdma_clnt_attr attr = { .backoff_ms = 1 };
	const struct rpcrdma_svc_attr svc = { .whole_calls = whole };
	const char *rdma_host = leat_flow_rdma();

	if (rdma_host) {
		addr.transport = RPCRDMA_RDMA;
		snprintf(addr.host, sizeof(addr.host), "%s", rdma_host);
	} else if (t == RPCRDMA_LOCAL)
		snprintf(addr.host, sizeof(addr.host), "%s/mem.%d", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", getpid());
	assert_int_equal(rpcrdma_domain_create(NULL, &domain), 0);
	assert_int_equal(rpcrdma_engine_create(domain, NULL, &engine), 0);
	assert_int_equal(rpcrdma_engine_create(NULL, NULL, &clnt_engine), 0);
	assert_int_equal(rpcrdma_listen(engine, &addr, &svc, &ops, NULL, &listener), 0);
	attr.addr = *rpcrdma_listener_addr(listener);
	assert_int_equal(rpcrdma_clnt_open(clnt_engine, &attr, &clnt), 0);
	want_err = 0;
	given = false;
	at = 0;
}

static void close_both(void)
{
	rpcrdma_clnt_destroy(clnt);
	rpcrdma_engine_destroy(clnt_engine);
	rpcrdma_listener_close(listener);
	while (conns)
		(void)rpcrdma_engine_poll(engine);
	rpcrdma_engine_destroy(engine);
	rpcrdma_domain_destroy(domain);
}

/* ---- the client ---------------------------------------------------------------------------- */

static bool called;
static int call_err;

static void on_called(struct rpcrdma_call *call, int err)
{
	(void)call;
	called = true;
	call_err = err;
}

static uint8_t byte(size_t i, uint8_t salt)
{
	return (uint8_t)(i * 13 + i / 4099 + salt);
}

/* Returns the error of the call, when the service is done with it, too. */
static int call_it(enum proc proc, uint8_t *data, uint32_t bytes)
{
	struct iovec iov = { data, bytes };
	struct msg a = { .n = bytes, .data = { .length = bytes, .iov = &iov, .iovcnt = 1 } }, r = { 0 };
	bool put = proc == PROC_PUT;
	struct rpcrdma_call call = { .prog = 1, .vers = 1, .proc = proc, .args = &a, .res = &r, .done = on_called,
				     .encode = put ? (xdrproc_t)xdr_data : (xdrproc_t)xdr_n,
				     .decode = put ? (xdrproc_t)xdr_n : (xdrproc_t)xdr_data,
				     .sink = put ? NULL : &iov, .sinkcnt = !put, .reply_max = 16 };
	unsigned had = dones;

	called = false;
	assert_int_equal(rpcrdma_clnt_call(clnt, &call), 0);
	while (!called || dones == had) {
		(void)rpcrdma_engine_poll(engine);
		(void)rpcrdma_engine_poll(clnt_engine);
	}
	return call_err;
}

static void round_trip(uint32_t bytes)
{
	uint8_t *data = malloc(bytes);

	for (uint32_t i = 0; i < bytes; i++)
		data[i] = byte(i, 1);
	assert_int_equal(call_it(PROC_PUT, data, bytes), 0);
	for (uint32_t i = 0; i < bytes; i++)
		assert_int_equal(mem[at + i], byte(i, 1));
	for (uint32_t i = 0; i < bytes; i++)
		mem[at + i] = byte(i, 2);
	assert_int_equal(call_it(PROC_GET, data, bytes), 0);
	for (uint32_t i = 0; i < bytes; i++)
		assert_int_equal(data[i], byte(i, 2));
	free(data);
}

/* ---- the tests ----------------------------------------------------------------------------- */

static const uint32_t sizes[] = { 1, 100, 3000, 5000, 65536, 300001, MAX_DATA };
static const size_t places[] = { 0, 1, 4096, 100001, BYTES - MAX_DATA };

static void any_size_and_place(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		for (size_t k = 0; k < ARRAY_SIZE(sizes); k++) {
			at = places[i];
			round_trip(sizes[k]);
		}
}

static void allocated(void **state)
{
	(void)state;
	FOR_EACH_TRANSPORT(t) {
		void *p;

		open_both(*t);
		assert_int_equal(rpcrdma_mem_alloc(domain, BYTES, &p), 0);
		mem = p;
		any_size_and_place();
		rpcrdma_mem_free(domain, mem);
		close_both();
	}
}

/* Filters of the client see the payload as part of the message: the results are a long reply. */
struct plain {
	uint32_t n, len;
	uint8_t *data;
};

static bool_t xdr_plain(XDR *x, struct plain *p)
{
	return xdr_uint32_t(x, &p->n) && xdr_uint32_t(x, &p->len) && p->len <= MAX_DATA &&
	       xdr_opaque(x, (char *)p->data, p->len);
}

static void long_reply(uint32_t bytes)
{
	struct plain r = { .data = malloc(MAX_DATA) };
	struct msg a = { .n = bytes };
	struct rpcrdma_call call = { .prog = 1, .vers = 1, .proc = PROC_GET, .args = &a, .res = &r, .done = on_called,
				     .encode = (xdrproc_t)xdr_n, .decode = (xdrproc_t)xdr_plain,
				     .reply_max = 8 + MAX_DATA };
	unsigned had = dones;

	assert_non_null(r.data);
	for (uint32_t i = 0; i < bytes; i++)
		mem[at + i] = byte(i, 7);
	called = false;
	assert_int_equal(rpcrdma_clnt_call(clnt, &call), 0);
	while (!called || dones == had) {
		(void)rpcrdma_engine_poll(engine);
		(void)rpcrdma_engine_poll(clnt_engine);
	}
	assert_int_equal(call_err, 0);
	assert_int_equal(r.len, bytes);
	for (uint32_t i = 0; i < bytes; i++)
		assert_int_equal(r.data[i], byte(i, 7));
	free(r.data);
}

static void as_bytes(void **state)
{
	(void)state;
	raw = true;
	for (unsigned form = 0; form < 4; form++) {
		FOR_EACH_TRANSPORT(t) {
			void *p;

			whole = form & 1;
			open_both(*t);
			assert_int_equal(rpcrdma_mem_alloc(domain, BYTES, &p), 0);
			mem = p;
			/* memory of its own can be pulled into; results may be anywhere */
			any_size_and_place();
			if (form & 2) {
				mem = malloc(BYTES);
				assert_non_null(mem);
			}
			for (size_t k = 0; k < ARRAY_SIZE(sizes); k++)
				long_reply(sizes[k]);
			if (form & 2)
				free(mem);
			rpcrdma_mem_free(domain, p);
			close_both();
		}
	}
	raw = whole = false;
}

static void registered(void **state)
{
	(void)state;
	FOR_EACH_TRANSPORT(t) {
		open_both(*t);
		given = true;
		mem = malloc(BYTES);
		assert_int_equal(rpcrdma_mem_register(domain, mem, BYTES), 0);
		any_size_and_place();
		close_both(); /* still registered */
		free(mem);
	}
}

static void refused(uint32_t bytes)
{
	uint8_t *data = calloc(1, bytes);

	want_err = -EFAULT;
	assert_int_equal(call_it(PROC_PUT, data, bytes), -EREMOTEIO);
	assert_int_equal(call_it(PROC_GET, data, bytes), -EREMOTEIO);
	want_err = 0;
	free(data);
}

static void other_memory(void **state)
{
	static uint8_t unknown[BYTES];

	(void)state;
	FOR_EACH_TRANSPORT(t) {
		void *p;

		open_both(*t);
		mem = unknown;
		refused(1);
		refused(300000);
		assert_int_equal(rpcrdma_mem_alloc(rpcrdma_engine_domain(clnt_engine), BYTES, &p), 0);
		mem = p;
		refused(300000);
		rpcrdma_mem_free(rpcrdma_engine_domain(clnt_engine), p);
		/* a part of it is registered */
		mem = unknown;
		assert_int_equal(rpcrdma_mem_register(domain, mem + 4096, 4096), 0);
		at = 4096;
		refused(3 * 4097);
		at = 4095;
		refused(1);
		at = 8192;
		refused(1);
		at = 4096;
		round_trip(4096);
		assert_int_equal(rpcrdma_mem_unregister(domain, mem + 4096), 0);
		refused(100);
		close_both();
	}
}

/* Its payload can be placed. A pull fails, before a byte is received. */
static void read_only(void **state)
{
	uint8_t *data = malloc(MAX_DATA);

	(void)state;
	FOR_EACH_TRANSPORT(t) {
		open_both(*t);
		mem = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		assert_ptr_not_equal(mem, MAP_FAILED);
		for (uint32_t i = 0; i < MAX_DATA; i++)
			mem[i] = byte(i, 3);
		assert_int_equal(mprotect(mem, BYTES, PROT_READ), 0);
		assert_int_equal(rpcrdma_mem_register(domain, mem, BYTES), 0);
		assert_int_equal(call_it(PROC_GET, data, MAX_DATA), 0);
		for (uint32_t i = 0; i < MAX_DATA; i++)
			assert_int_equal(data[i], byte(i, 3));
		want_err = -EFAULT;
		assert_int_equal(call_it(PROC_PUT, data, MAX_DATA), -EREMOTEIO);
		assert_int_equal(call_it(PROC_PUT, data, 1), -EREMOTEIO);
		close_both();
		munmap(mem, BYTES);
	}
	free(data);
}

static void no_memory(void **state)
{
	uint8_t *data = malloc(300000);

	(void)state;
	FOR_EACH_TRANSPORT(t) {
		failed = true;
		for (fail_at = 1; failed; fail_at++) {
			void *p;
			int rc;

			open_both(*t);
			assert_int_equal(rpcrdma_mem_alloc(domain, BYTES, &p), 0);
			mem = p;
			memset(mem, 5, BYTES);
			failed = false;
			rc = call_it(PROC_GET, data, 300000);
			assert_int_equal(rc, failed ? -EREMOTEIO : 0);
			assert_true(failed || data[299999] == 5);
			rpcrdma_mem_free(domain, mem);
			close_both();
		}
		assert_true(fail_at > 3);
	}
	fail_at = 0;
	free(data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(allocated),
		cmocka_unit_test(registered),
		cmocka_unit_test(as_bytes),
		cmocka_unit_test(other_memory),
		cmocka_unit_test(no_memory),
		cmocka_unit_test(read_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
