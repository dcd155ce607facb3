/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_nomem.c - the Nth allocation, mapping or registration fails, for N from 1 until none is left to
 * fail
 *
 * A client and a server in one thread do everything that moves data: inline, Read, Write and Reply
 * chunks, a long call; and in each of the other modes. Whatever fails, every call ends exactly once, with its data right or with an
 * error, and nothing is lost (the sanitizers see to that). The service's own memory is static.
 */
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
#include "base/wire.h"
#include "lab.h"
#include "local_int.h"
#include "nomem.h"
#include "rpcrdma.h"
#include "wire_svc.h"

void *__real_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off);
void *__wrap_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off);
int __real_rr_local_mr_reg(struct rr_pd *pd, const struct rr_mr_attr *attr, struct rr_mr **ret);
int __wrap_rr_local_mr_reg(struct rr_pd *pd, const struct rr_mr_attr *attr, struct rr_mr **ret);

static unsigned long mappings, registrations; /* that failed */

void *__wrap_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	if (!nomem_fails(0))
		return __real_mmap(addr, len, prot, flags, fd, off);
	mappings++;
	errno = ENOMEM;
	return MAP_FAILED;
}

int __wrap_rr_local_mr_reg(struct rr_pd *pd, const struct rr_mr_attr *attr, struct rr_mr **ret)
{
	if (!nomem_fails(0))
		return __real_rr_local_mr_reg(pd, attr, ret);
	registrations++;
	return -ENOMEM;
}

/* ---- the service: PUT is pulled whole, GET placed, BIG encoded ---- */

#define JOBS 32
#define BULK (96u << 10)

struct job {
	bool busy;
	struct rpcrdma_req *req;
	struct rpcrdma_engine *engine;
	struct rpcrdma_buf *buf;
	struct rpcrdma_xfer piece;
	struct wire_put_args put;
	struct wire_put_res put_res;
	struct wire_get_args get;
	struct wire_get_res get_res;
	uint32_t big;
	struct wire_big_res big_res;
};

static struct job jobs[JOBS];
static struct rpcrdma_engine *engine;
static unsigned opened, closed;

static void job_done(void *arg)
{
	struct job *j = arg;

	if (j->buf)
		rpcrdma_buf_put(j->engine, j->buf);
	j->buf = NULL;
	j->busy = false;
}

static void on_pulled(struct rpcrdma_xfer *p, int err)
{
	struct job *j = container_of(p, struct job, piece);
	uint32_t sum = 0;

	for (uint32_t i = 0; !err && i < p->len; i++)
		sum += ((uint8_t *)j->buf->addr)[i];
	j->put_res = (struct wire_put_res){ p->len, sum };
	if (err)
		rpcrdma_req_drop(j->req, job_done, j);
	else
		rpcrdma_req_reply(j->req, (xdrproc_t)xdr_wire_put_res, &j->put_res, job_done, j);
}

static void serve(struct job *j)
{
	struct rpcrdma_req *r = j->req;

	if (r->proc == WIRE_BIG) {
		if (rpcrdma_req_decode(r, (xdrproc_t)xdr_u_int, &j->big))
			goto sorry;
		j->big_res.length = j->big;
		rpcrdma_req_reply(r, (xdrproc_t)xdr_wire_big_res, &j->big_res, job_done, j);
		return;
	}
	if (rpcrdma_req_buf_get(r, BULK, &j->buf))
		goto sorry;
	j->piece = (struct rpcrdma_xfer){ .buf = j->buf };
	if (r->proc == WIRE_PUT) {
		if (rpcrdma_req_decode(r, (xdrproc_t)xdr_wire_put_args, &j->put))
			goto sorry;
		j->piece.len = j->put.data.length;
		j->piece.done = on_pulled;
		if (rpcrdma_req_pull(r, &j->piece))
			goto sorry;
		return;
	}
	if (rpcrdma_req_decode(r, (xdrproc_t)xdr_wire_get_args, &j->get))
		goto sorry;
	for (uint32_t i = 0; i < j->get.count; i++)
		((uint8_t *)j->buf->addr)[i] = wire_byte(i);
	j->piece.len = j->get.count;
	if (rpcrdma_req_place(r, &j->piece))
		goto sorry;
	j->get_res = (struct wire_get_res){ .data.length = j->get.count };
	rpcrdma_req_reply(r, (xdrproc_t)xdr_wire_get_res, &j->get_res, job_done, j);
	return;
sorry:
	rpcrdma_req_drop(r, job_done, j); /* the client asks again */
}

static void svc_call(void *ctx, struct rpcrdma_req *req)
{
	struct job *j = jobs;

	(void)ctx;
	while (j->busy)
		assert_true(++j < jobs + JOBS);
	*j = (struct job){ .busy = true, .req = req, .engine = req->engine };
	serve(j);
}

static int svc_accept(void *ctx, const struct rpcrdma_peer *peer, struct rpcrdma_engine **ret_engine,
		      void **ret_ctx)
{
	(void)ctx;
	(void)peer;
	*ret_engine = engine;
	*ret_ctx = NULL;
	opened++;
	return 0;
}

static void svc_closed(void *ctx)
{
	(void)ctx;
	closed++;
}

static const struct rpcrdma_svc_ops ops = {
	.accept = svc_accept, .call = svc_call, .closed = svc_closed };

/* ---- the calls ---- */

#define ASKS 11

struct ask {
	struct rpcrdma_call call;
	unsigned done;
	int err;
	union {
		struct wire_put_args put;
		struct wire_get_args get;
		uint32_t big;
	} args;
	union {
		struct wire_put_res put;
		struct wire_get_res get;
		struct wire_big_res big;
	} res;
	struct iovec iov;
	struct rpcrdma_room room;
	unsigned released;
	struct rpcrdma_ready ready;
	struct iovec bytes;
};

static uint8_t out[BULK], in[3][BULK];
static _Alignas(8) uint8_t rooms[2][BULK + 4096];

static void on_done(struct rpcrdma_call *call, int err)
{
	struct ask *a = container_of(call, struct ask, call);

	a->done++;
	a->err = err;
}

static void fill(struct ask *a, enum wire_proc proc, uint32_t bytes, uint8_t *sink)
{
	*a = (struct ask){ .call = { .prog = WIRE_PROG, .vers = WIRE_VERS, .proc = proc,
				     .args = &a->args, .res = &a->res, .done = on_done,
				     .reply_max = 64, .deadline_ms = 20000 } };
	switch (proc) {
	case WIRE_PUT:
		a->iov = (struct iovec){ out, bytes };
		a->args.put.data = (struct rpcrdma_payload){ bytes, 1, &a->iov, { NULL, 0 } };
		a->call.encode = (xdrproc_t)xdr_wire_put_args;
		a->call.decode = (xdrproc_t)xdr_wire_put_res;
		break;
	case WIRE_GET:
		a->iov = (struct iovec){ sink, bytes };
		a->args.get.count = bytes;
		a->call.sink = &a->iov;
		a->call.sinkcnt = 1;
		a->call.encode = (xdrproc_t)xdr_wire_get_args;
		a->call.decode = (xdrproc_t)xdr_wire_get_res;
		break;
	default:
		a->args.big = bytes;
		a->call.reply_max = bytes + 64;
		a->call.encode = (xdrproc_t)xdr_u_int;
		a->call.decode = (xdrproc_t)xdr_wire_big_res;
	}
}

static void on_released(struct rpcrdma_room *room)
{
	container_of(room, struct ask, room)->released++;
}

/* The results are not decoded. */
static void fill_room(struct ask *a, uint8_t *room)
{
	a->room = (struct rpcrdma_room){ .mem = room, .bytes = sizeof(rooms[0]), .released = on_released };
	a->call.room = &a->room;
	a->call.reply_max = a->call.proc == WIRE_GET ? BULK + 64 : a->call.reply_max;
}

/* The same arguments as bytes; those of BIG with many that its service ignores. */
static void fill_ready(struct ask *a)
{
	static uint8_t words[2][30000];
	uint8_t *at = words[a->call.proc == WIRE_PUT];

	a->bytes = (struct iovec){ at, sizeof(words[0]) };
	a->ready = (struct rpcrdma_ready){ .iov = &a->bytes, .iovcnt = 1 };
	put_be32(at, a->args.big);
	if (a->call.proc == WIRE_PUT) {
		put_be32(at, 0);
		put_be32(at + 4, a->args.put.data.length);
		a->bytes.iov_len = 8;
		a->ready.payload = &a->iov;
		a->ready.payloadcnt = 1;
		a->ready.payload_bytes = a->args.put.data.length;
		a->ready.payload_at = 8;
	}
	a->call.ready = &a->ready;
}

static void check_room(const struct ask *a)
{
	const uint8_t *at = a->call.results;
	bool is_get = a->call.proc == WIRE_GET;
	uint32_t n = is_get ? a->args.get.count : a->args.big;

	assert_int_equal(a->released, 1);
	if (a->err)
		return;
	assert_in_range(at - rooms[0], 0, sizeof(rooms));
	assert_int_equal(get_be32(at + (is_get ? 4 : 0)), n);
	for (uint32_t i = 0; is_get && i < n; i++)
		if ((a->call.payload_bytes ? in[2] : at + 8)[i] != wire_byte(i))
			fail_msg("byte %u", i);
}

static void check(const struct ask *a, unsigned modes)
{
	uint32_t sum = 0;

	assert_int_equal(a->done, 1);
	if (a->err) /* one allocation failed, and everything else was repaired */
		assert_true(a->err == -ENOMEM || a->err == -ETIMEDOUT || a->err == -ECONNREFUSED ||
			    (modes && a->err == -ENOPROTOOPT)); /* it may have been the server's for them */
	if (a->call.room)
		check_room(a);
	if (a->err || a->call.room)
		return;
	if (a->call.proc == WIRE_PUT) {
		for (uint32_t i = 0; i < a->args.put.data.length; i++)
			sum += out[i];
		assert_int_equal(a->res.put.sum, sum);
	} else if (a->call.proc == WIRE_GET) {
		assert_int_equal(a->call.payload_bytes, a->iov.iov_len);
		for (size_t i = 0; i < a->iov.iov_len; i++)
			if (((uint8_t *)a->iov.iov_base)[i] != wire_byte(i))
				fail_msg("byte %zu", i);
	}
}

static void finish(struct rpcrdma_domain *d, struct rpcrdma_listener *l, struct rpcrdma_clnt *c)
{
	rpcrdma_clnt_destroy(c);
	if (l)
		rpcrdma_listener_close(l);
	if (engine) {
		rpcrdma_engine_close_conns(engine);
		for (int idle = 0; idle < 2000 && closed < opened;)
			idle = rpcrdma_engine_poll(engine) ? 0 : idle + 1;
	}
	assert_int_equal(closed, opened);
	rpcrdma_engine_destroy(engine);
	rpcrdma_domain_destroy(d);
	for (struct job *j = jobs; j < jobs + JOBS; j++)
		assert_false(j->busy);
}

/* From nothing to nothing; whatever fails on the way. */
static void everything(const char *url, const struct rpcrdma_svc_attr *svc,
		       const char *registration)
{
	static struct ask asks[ASKS];
	struct rpcrdma_domain *d = NULL;
	struct rpcrdma_listener *l = NULL;
	struct rpcrdma_clnt *c = NULL;
	struct rpcrdma_clnt_attr attr = { .timeout_ms = 200, .backoff_ms = 1, .credits = 8,
					  .registration = registration,
					  .lab = svc ? svc->lab : NULL };
	struct rpcrdma_addr addr;
	unsigned ended = 0;

	engine = NULL;
	opened = closed = 0;
	memset(in, 0, sizeof(in));
	assert_int_equal(rpcrdma_addr_parse(url, &addr), 0);
	if (rpcrdma_domain_create(NULL, &d))
		return;
	if (rpcrdma_engine_create(d, NULL, &engine) ||
	    rpcrdma_listen(engine, &addr, svc, &ops, NULL, &l)) {
		finish(d, l, c);
		return;
	}
	attr.addr = *rpcrdma_listener_addr(l);
	attr.cred.none = true;
	if (rpcrdma_clnt_open(engine, &attr, &c)) {
		finish(d, l, NULL);
		return;
	}
	fill(&asks[0], WIRE_PUT, 100, NULL);
	fill(&asks[1], WIRE_PUT, BULK, NULL);
	fill(&asks[2], WIRE_GET, 100, in[0]);
	fill(&asks[3], WIRE_GET, BULK, in[1]);
	fill(&asks[4], WIRE_BIG, 100, NULL);
	fill(&asks[5], WIRE_BIG, 60000, NULL);
	fill(&asks[6], WIRE_PUT, BULK / 4, NULL); /* what fits a slot, where there are slots */
	fill(&asks[7], WIRE_BIG, 60000, NULL);
	fill(&asks[8], WIRE_GET, BULK, in[2]);
	fill(&asks[9], WIRE_BIG, 300, NULL);
	fill(&asks[10], WIRE_PUT, BULK / 2, NULL);
	fill_ready(&asks[9]);
	fill_ready(&asks[10]);
	fill_room(&asks[7], rooms[0]);
	fill_room(&asks[8], rooms[1]);
	for (int i = 0; i < ASKS; i++) {
		int rc = rpcrdma_clnt_call(c, &asks[i].call);

		if (rc)
			assert_int_equal(rc, -ENOMEM);
		asks[i].call.priv[0] = rc ? NULL : asks[i].call.priv[0];
		asks[i].done = rc ? 1 : 0;
		asks[i].err = rc;
		asks[i].released += rc ? 1 : 0;
	}
	do {
		rpcrdma_engine_wait(engine, 100);
		ended = 0;
		for (int i = 0; i < ASKS; i++)
			ended += asks[i].done;
	} while (ended < ASKS);
	for (int i = 0; i < ASKS; i++)
		check(&asks[i], attr.lab ? attr.lab->modes : 0);
	if (attr.lab && attr.lab->modes && !nomem_failed) {
		struct rpcrdma_stats s;

		rpcrdma_domain_stats(d, &s);
		assert_true(s.offers && s.fast_writes && s.grants);
	}
	finish(d, l, c);
}

static void until_nothing_fails(const char *url, const struct rpcrdma_svc_attr *svc,
				const char *registration)
{
	unsigned long n = 0;

	for (size_t i = 0; i < sizeof(out); i++)
		out[i] = wire_byte(i);
	do {
		nomem_failed = false;
		nomem_countdown = ++n;
		everything(url, svc, registration);
		nomem_countdown = 0;
		assert_in_range(n, 1, 5000);
	} while (nomem_failed);
	print_message("%lu allocations, mappings and registrations, each failed once\n", n - 1);
	assert_in_range(n, 10, 5000);
}

static void until_nothing_fails_locally(const struct rpcrdma_svc_attr *svc,
					const char *registration)
{
	char url[64];

	snprintf(url, sizeof(url), "local:///tmp/leat-nomem-%d.sock", (int)getpid());
	mappings = registrations = 0;
	until_nothing_fails(url, svc, registration);
	assert_true(mappings > 2 && registrations > 2);
}

static void over_local(void **state)
{
	(void)state;
	until_nothing_fails_locally(NULL, NULL);
}

static void over_local_shared(void **state)
{
	static const struct rpcrdma_svc_attr shared = { .srq = true };

	(void)state;
	until_nothing_fails_locally(&shared, NULL);
}

static void over_local_by_windows(void **state)
{
	(void)state;
	until_nothing_fails_locally(NULL, "window");
}

static void over_local_by_modes(void **state)
{
	const struct rpcrdma_svc_attr all = { .lab = LAB(.modes = RPCRDMA_MODES_ALL) };

	(void)state;
	until_nothing_fails_locally(&all, "dynamic");
}

static void over_tcp(void **state)
{
	(void)state;
	until_nothing_fails("tcp://127.0.0.1:0", NULL, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(over_local),
		cmocka_unit_test(over_local_shared),
		cmocka_unit_test(over_local_by_windows),
		cmocka_unit_test(over_local_by_modes),
		cmocka_unit_test(over_tcp),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
