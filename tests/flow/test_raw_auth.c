/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_raw_auth.c - credentials and verifiers of any flavor, of 0 to 400 bytes, in both directions; results as bytes
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "rpcrdma.h"

static struct rpcrdma_engine *svc_engine, *clnt_engine;
static struct rpcrdma_listener *listener;
static struct rpcrdma_clnt *clnt;
static unsigned conns, dones;
static uint8_t bytes[RPCRDMA_AUTH_MAX + 1];

/* What the service expects and sends. */
static uint32_t cred_bytes, verf_bytes, reply_verf_bytes;
static uint8_t results[8192];
static size_t result_bytes;
static uint32_t room, room_taken; /* of the last call, and by the verifier */

/* What the client sends, and where it wants a payload of the results. */
static struct rpcrdma_payload *args;
static struct iovec *sink;

static int on_accept(void *ctx, const struct rpcrdma_peer *peer, struct rpcrdma_engine **ret_engine, void **ret_ctx)
{
	(void)ctx;
	(void)peer;
	*ret_engine = svc_engine;
	*ret_ctx = NULL;
	conns++;
	return 0;
}

static void on_closed(void *ctx)
{
	(void)ctx;
	conns--;
}

static void on_reply_done(void *arg)
{
	(void)arg;
	dones++;
}

static void on_call(void *ctx, struct rpcrdma_req *req)
{
	(void)ctx;
	assert_int_equal(req->cred_flavor, 390000 + req->proc);
	assert_int_equal(req->cred_len, cred_bytes);
	assert_memory_equal(req->cred_body, bytes, cred_bytes);
	assert_int_equal(req->verf_flavor, 390100 + req->proc);
	assert_int_equal(req->verf_len, verf_bytes);
	assert_memory_equal(req->verf_body, bytes, verf_bytes);
	assert_int_equal(rpcrdma_req_set_verf(req, 5, bytes, RPCRDMA_AUTH_MAX + 1), -EINVAL);
	room = req->room;
	if (reply_verf_bytes)
		assert_int_equal(rpcrdma_req_set_verf(req, 390200, bytes, reply_verf_bytes), 0);
	room_taken = room - req->room;
	if (req->proc == 9)
		rpcrdma_req_reply_error(req, RPCRDMA_SYSTEM_ERR, 0, 0, on_reply_done, NULL);
	else
		rpcrdma_req_reply_bytes(req, results, result_bytes, on_reply_done, NULL);
}

static void open_both(enum rpcrdma_transport t, const struct rpcrdma_cred *cred)
{
	static const struct rpcrdma_svc_ops ops = { .accept = on_accept, .call = on_call, .closed = on_closed };
	struct rpcrdma_addr addr = { .transport = t, .host = "127.0.0.1" };
	struct rpcrdma_clnt_attr attr = { .cred = *cred };

	if (t == RPCRDMA_LOCAL)
		snprintf(addr.host, sizeof(addr.host), "%s/auth.%d", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", getpid());
	assert_int_equal(rpcrdma_engine_create(NULL, NULL, &svc_engine), 0);
	assert_int_equal(rpcrdma_engine_create(NULL, NULL, &clnt_engine), 0);
	assert_int_equal(rpcrdma_listen(svc_engine, &addr, NULL, &ops, NULL, &listener), 0);
	attr.addr = *rpcrdma_listener_addr(listener);
	assert_int_equal(rpcrdma_clnt_open(clnt_engine, &attr, &clnt), 0);
}

static void poll_both(void)
{
	(void)rpcrdma_engine_poll(svc_engine);
	(void)rpcrdma_engine_poll(clnt_engine);
}

static void close_both(void)
{
	rpcrdma_clnt_destroy(clnt);
	rpcrdma_engine_destroy(clnt_engine);
	rpcrdma_listener_close(listener);
	while (conns)
		(void)rpcrdma_engine_poll(svc_engine);
	rpcrdma_engine_destroy(svc_engine);
}

static bool done;
static int done_err;

static void on_done(struct rpcrdma_call *call, int err)
{
	(void)call;
	done = true;
	done_err = err;
}

static bool_t get_results(XDR *x, uint8_t *got)
{
	return xdr_opaque(x, (char *)got, (u_int)result_bytes);
}

static bool_t put_args(XDR *x, struct rpcrdma_payload *p)
{
	return rpcrdma_xdr_payload(x, p, UINT32_MAX);
}

static int call_it(uint32_t proc, const struct rpcrdma_cred *cred, struct rpcrdma_verf *verf, uint8_t *got)
{
	struct rpcrdma_call call = { .prog = 1, .vers = 1, .proc = proc, .cred = cred, .verf = verf, .done = on_done,
				     .encode = args ? (xdrproc_t)put_args : NULL, .args = args,
				     .sink = sink, .sinkcnt = sink != NULL,
				     .decode = (xdrproc_t)get_results, .res = got,
				     .reply_max = (uint32_t)result_bytes };
	unsigned had = dones;
	int rc;

	done = false;
	rc = rpcrdma_clnt_call(clnt, &call);
	if (rc)
		return rc;
	while (!done || (!done_err && dones == had))
		poll_both();
	return done_err;
}

static void both_ways(enum rpcrdma_transport t, uint32_t n, bool own, bool want_verf)
{
	uint8_t theirs[sizeof(bytes)];
	struct rpcrdma_auth c = { 390001, n, own ? bytes : theirs }, v = { 390101, n, own ? bytes : theirs };
	const struct rpcrdma_cred cred = { .opaque = &c, .verf = &v }, none = { .none = true };
	static uint8_t got[sizeof(results)];
	struct rpcrdma_verf verf = { .flavor = 99 };

	cred_bytes = verf_bytes = reply_verf_bytes = n;
	memcpy(theirs, bytes, sizeof(theirs));
	open_both(t, own ? &none : &cred);
	c.bytes = own ? n : 7; /* the client has its copy */
	memset(theirs, 0, sizeof(theirs));
	for (result_bytes = 0; result_bytes <= sizeof(results); result_bytes = 4 * result_bytes + 4) {
		memset(got, 0, sizeof(got));
		assert_int_equal(call_it(1, own ? &cred : NULL, want_verf ? &verf : NULL, got), 0);
		assert_memory_equal(got, results, result_bytes);
		if (!want_verf)
			continue;
		assert_int_equal(verf.flavor, n ? 390200 : 0);
		assert_int_equal(verf.bytes, n);
		assert_memory_equal(verf.body, bytes, n);
	}
	close_both();
}

static void any_length(void **state)
{
	static const uint32_t lengths[] = { 0, 1, 3, 4, 399, 400 };

	(void)state;
	for (int tcp = 0; tcp < 2; tcp++)
		for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
			for (int how = 0; how < 2; how++)
				both_ways(tcp ? RPCRDMA_TCP : RPCRDMA_LOCAL, lengths[i], how, true);
	both_ways(RPCRDMA_TCP, 8, true, false);
	both_ways(RPCRDMA_LOCAL, 8, true, false);
}

static void bad_lengths(void **state)
{
	const struct rpcrdma_auth good = { 390001, 4, bytes }, more = { 390001, RPCRDMA_AUTH_MAX + 1, bytes },
				  v = { 390101, 4, bytes };
	const struct rpcrdma_cred cred = { .opaque = &good, .verf = &v }, long_cred = { .opaque = &more },
				  long_verf = { .opaque = &good, .verf = &more };
	struct rpcrdma_clnt_attr attr = { .cred = long_cred };
	struct rpcrdma_clnt *c;
	uint8_t got[8];

	(void)state;
	cred_bytes = verf_bytes = reply_verf_bytes = 4;
	for (int tcp = 0; tcp < 2; tcp++) {
		open_both(tcp ? RPCRDMA_TCP : RPCRDMA_LOCAL, &cred);
		attr.addr = *rpcrdma_listener_addr(listener);
		result_bytes = 4;
		assert_int_equal(call_it(1, &long_cred, NULL, got), -EINVAL);
		assert_int_equal(call_it(1, &long_verf, NULL, got), -EINVAL);
		assert_int_equal(rpcrdma_clnt_open(clnt_engine, &attr, &c), -EINVAL);
		result_bytes = 6; /* no multiple of 4 */
		assert_int_equal(call_it(1, NULL, NULL, got), -EREMOTEIO);
		close_both();
	}
}

static void verifier_of_an_error(void **state)
{
	const struct rpcrdma_auth c = { 390009, 4, bytes }, v = { 390109, 4, bytes };
	const struct rpcrdma_cred cred = { .opaque = &c, .verf = &v };

	(void)state;
	cred_bytes = verf_bytes = reply_verf_bytes = 4;
	for (int tcp = 0; tcp < 2; tcp++) {
		struct rpcrdma_verf verf = { .flavor = 99 };

		open_both(tcp ? RPCRDMA_TCP : RPCRDMA_LOCAL, &cred);
		assert_int_equal(call_it(9, NULL, &verf, NULL), -EREMOTEIO);
		assert_int_equal(verf.flavor, 390200);
		close_both();
	}
}

/* A verifier takes room from a payload in the reply, also if the arguments move by chunk; not from a Write chunk. */
static void room_of_results(void **state)
{
	const struct rpcrdma_auth c = { 390001, 4, bytes }, v = { 390101, 4, bytes };
	const struct rpcrdma_cred cred = { .opaque = &c, .verf = &v };
	static uint8_t got[8], data[100000];
	struct iovec iov = { data, sizeof(data) };
	struct rpcrdma_payload payload = { .length = sizeof(data), .iov = &iov, .iovcnt = 1 };

	(void)state;
	cred_bytes = verf_bytes = 4;
	reply_verf_bytes = 399;
	result_bytes = 4;
	for (int tcp = 0; tcp < 2; tcp++) {
		struct rpcrdma_verf verf = { .flavor = 99 };

		open_both(tcp ? RPCRDMA_TCP : RPCRDMA_LOCAL, &cred);
		assert_int_equal(call_it(1, NULL, &verf, got), 0);
		assert_int_equal(room_taken, 400);
		args = &payload;
		assert_int_equal(call_it(1, NULL, &verf, got), 0);
		assert_int_equal(room_taken, 400);
		args = NULL;
		sink = &iov;
		assert_int_equal(call_it(1, NULL, &verf, got), 0);
		assert_int_equal(room_taken, tcp ? 400 : 0);
		sink = NULL;
		close_both();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_length),
		cmocka_unit_test(bad_lengths),
		cmocka_unit_test(verifier_of_an_error),
		cmocka_unit_test(room_of_results),
	};

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 3 + 1);
	for (size_t i = 0; i < sizeof(results); i++)
		results[i] = (uint8_t)(i * 5 + 2);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
