/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_rpc_msg.c - RPC headers: golden calls and replies, every refusal, truncation, AUTH_SYS
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>
#include <rpc/rpc.h>

#include "hdr.h"
#include "rpc_msg.h"
#include "vectors.h"

/* RPC part of a vector: behind the header of an RDMA_MSG, or all of a NAME.rpc. */
static const uint8_t *rpc_part(const struct vector *v, size_t *ret_len)
{
	struct rr_hdr h;
	size_t took;

	if (vector_is_rpc(v)) {
		*ret_len = v->len;
		return v->bytes;
	}
	if (rr_hdr_decode(v->bytes, v->len, &h, &took) || h.proc != RR_MSG)
		return NULL;
	*ret_len = v->len - took;
	return v->bytes + took;
}

/* Decode a copy of exactly @len bytes; cut short it must fail and name what was there. */
static void cut_call(const uint8_t *msg, size_t header)
{
	for (size_t n = 0; n < header; n++) {
		uint8_t *copy = malloc(n + 1);
		struct rr_rpc_call c;
		struct wire_get g;

		assert_non_null(copy);
		memcpy(copy, msg, n);
		wire_get_init(&g, copy, n);
		assert_int_equal(rr_rpc_get_call(&g, &c), -EBADMSG);
		assert_int_equal(c.xid, n >= 4 ? get_be32(msg) : 0);
		assert_int_equal(c.prog, n >= 16 ? get_be32(msg + 12) : 0);
		assert_true(c.cred.body ? c.cred.len <= n : !c.cred.len);
		free(copy);
	}
}

static void cut_reply(const uint8_t *msg, size_t header)
{
	for (size_t n = 0; n < header; n++) {
		uint8_t *copy = malloc(n + 1);
		struct rr_rpc_reply r;
		struct wire_get g;

		assert_non_null(copy);
		memcpy(copy, msg, n);
		wire_get_init(&g, copy, n);
		assert_int_equal(rr_rpc_get_reply(&g, &r), -EBADMSG);
		assert_int_equal(r.xid, n >= 4 ? get_be32(msg) : 0);
		free(copy);
	}
}

/* libtirpc reads what we write. */
static void get_auth_sys(const uint8_t *body, uint32_t len, struct rr_auth_sys *ret)
{
	char machine[sizeof(ret->machine)];
	gid_t gids[ARRAY_SIZE(ret->gids)];
	struct authunix_parms p = { .aup_machname = machine, .aup_gids = gids };
	XDR x;

	xdrmem_create(&x, (char *)(uintptr_t)body, len, XDR_DECODE);
	assert_true(xdr_authunix_parms(&x, &p));
	assert_int_equal(xdr_getpos(&x), len);
	*ret = (struct rr_auth_sys){ .stamp = (uint32_t)p.aup_time, .uid = p.aup_uid, .gid = p.aup_gid,
				     .ngids = p.aup_len, .machine_len = (uint32_t)strlen(machine) };
	memcpy(ret->machine, machine, ret->machine_len);
	memcpy(ret->gids, gids, p.aup_len * sizeof(gids[0]));
}

static void one_call(const uint8_t *msg, size_t len)
{
	uint8_t back[1024];
	struct rr_rpc_call c;
	struct rr_rpc_reply r;
	struct wire_get g;
	struct wire_put p;
	size_t took;

	wire_get_init(&g, msg, len);
	assert_int_equal(rr_rpc_get_call(&g, &c), 0);
	took = len - wire_get_left(&g);
	wire_put_init(&p, back, sizeof(back));
	rr_rpc_put_call(&p, &c);
	assert_true(wire_put_ok(&p));
	assert_int_equal(wire_put_len(&p), took);
	assert_memory_equal(back, msg, took);
	assert_true(c.prog == 100003 || c.prog == 100227);
	assert_int_equal(c.vers, 3);
	if (c.cred.flavor == RR_AUTH_SYS) {
		uint8_t body[RR_AUTH_BYTES_MAX];
		struct rr_auth_sys s;

		get_auth_sys(c.cred.body, c.cred.len, &s);
		assert_string_equal(s.machine, "(none)");
		assert_int_equal(s.machine_len, 6);
		assert_int_equal(s.uid, 0);
		assert_int_equal(rr_rpc_put_auth_sys(&s, body, sizeof(body)), c.cred.len);
		assert_memory_equal(body, c.cred.body, c.cred.len);
	}
	cut_call(msg, took);
	wire_get_init(&g, msg, len); /* 88: a call is no reply */
	assert_int_equal(rr_rpc_get_reply(&g, &r), -EBADMSG);
	assert_int_equal(r.xid, c.xid);
}

static void one_reply(const uint8_t *msg, size_t len)
{
	uint8_t back[64];
	struct rr_rpc_reply r;
	struct rr_rpc_call c;
	struct wire_get g;
	struct wire_put p;
	size_t took;

	wire_get_init(&g, msg, len);
	assert_int_equal(rr_rpc_get_reply(&g, &r), 0);
	took = len - wire_get_left(&g);
	assert_int_equal(took, RR_RPC_REPLY_HDR_BYTES);
	assert_int_equal(rr_rpc_errno(&r), 0);
	wire_put_init(&p, back, sizeof(back));
	rr_rpc_put_reply(&p, &r);
	assert_int_equal(wire_put_len(&p), took);
	assert_memory_equal(back, msg, took);
	cut_reply(msg, took);
	wire_get_init(&g, msg, len); /* 88: a reply is no call */
	assert_int_equal(rr_rpc_get_call(&g, &c), -EBADMSG);
	assert_int_equal(c.xid, r.xid);
}

static void one_vector(const struct vector *v, void *arg)
{
	unsigned *count = arg;
	size_t len;
	const uint8_t *msg = rpc_part(v, &len);

	if (!msg)
		return;
	if (get_be32(msg + 4) == RR_RPC_CALL)
		one_call(msg, len);
	else
		one_reply(msg, len);
	++*count;
}

static void test_vectors(void **state)
{
	unsigned count = 0;

	(void)state;
	vector_each(one_vector, &count);
	assert_true(count > 45);
}

/* 3: the golden bytes of a NULL call */
static void test_null_call(void **state)
{
	const struct rr_rpc_call c = {
		.xid = 0x659ce721,
		.rpcvers = 2,
		.prog = 100003,
		.vers = 3,
		.proc = 0,
	};
	uint8_t buf[40];
	struct wire_put p;
	struct vector v;

	(void)state;
	vector_load("null-call", &v);
	wire_put_init(&p, buf, sizeof(buf));
	rr_rpc_put_call(&p, &c);
	assert_true(wire_put_ok(&p));
	assert_int_equal(wire_put_len(&p), v.len - RR_HDR_MIN);
	assert_memory_equal(buf, v.bytes + RR_HDR_MIN, sizeof(buf));
	vector_unload(&v);
	for (size_t cap = 0; cap < sizeof(buf); cap++) {
		wire_put_init(&p, buf, cap);
		rr_rpc_put_call(&p, &c);
		assert_false(wire_put_ok(&p));
	}
}

static void get_words(const uint32_t *words, uint32_t n, uint8_t *buf, struct wire_get *g)
{
	for (uint32_t k = 0; k < n; k++)
		put_be32(buf + 4 * k, words[k]);
	wire_get_init(g, buf, 4 * n);
}

static void test_bad_calls(void **state)
{
	static const struct {
		const char *why;
		int err;
		uint32_t n, words[16];
	} cases[] = {
		{ "AUTH_NONE", 0, 10, { 9, 0, 2, 5, 6, 7, 0, 0, 0, 0 } },
		{ "odd length", 0, 11, { 9, 0, 2, 5, 6, 7, 1, 3, 0x61626300, 0, 0 } },
		{ "flavor unknown", 0, 11, { 9, 0, 2, 5, 6, 7, 999, 4, 0, 0, 0 } },
		{ "reply", -EBADMSG, 10, { 9, 1, 2, 5, 6, 7, 0, 0, 0, 0 } },
		{ "direction 2", -EBADMSG, 10, { 9, 2, 2, 5, 6, 7, 0, 0, 0, 0 } },
		{ "RPC 1", -EPROTONOSUPPORT, 10, { 9, 0, 1, 5, 6, 7, 0, 0, 0, 0 } },
		{ "RPC 3", -EPROTONOSUPPORT, 3, { 9, 0, 3 } },
		{ "credential over 400", -EBADMSG, 16, { 9, 0, 2, 5, 6, 7, 1, 401, 0 } },
		{ "credential over the end", -EBADMSG, 10, { 9, 0, 2, 5, 6, 7, 1, 400, 0, 0 } },
		{ "credential of 4 GiB", -EBADMSG, 10, { 9, 0, 2, 5, 6, 7, 1, UINT32_MAX } },
		{ "verifier over 400", -EBADMSG, 10, { 9, 0, 2, 5, 6, 7, 0, 0, 0, 404 } },
		{ "verifier over the end", -EBADMSG, 10, { 9, 0, 2, 5, 6, 7, 0, 0, 0, 1 } },
		{ "no verifier", -EBADMSG, 8, { 9, 0, 2, 5, 6, 7, 0, 0 } },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rr_rpc_call c;
		struct wire_get g;
		uint8_t buf[64];
		int err;

		get_words(cases[i].words, cases[i].n, buf, &g);
		err = rr_rpc_get_call(&g, &c);
		if (err != cases[i].err)
			fail_msg("%s: %d, not %d", cases[i].why, err, cases[i].err);
		assert_int_equal(c.xid, 9);
		assert_true(c.cred.len <= RR_AUTH_BYTES_MAX && c.verf.len <= RR_AUTH_BYTES_MAX);
		if (!err)
			assert_int_equal(wire_get_left(&g), 0);
	}
}

/* 77: every kind of reply, both ways */
static const struct {
	const char *text;
	int err;
	uint32_t n, words[8];
} replies[] = {
	{ "success", 0, 6, { 9, 1, 0, 0, 0, 0 } },
	{ "program unavailable", -EPROTONOSUPPORT, 6, { 9, 1, 0, 0, 0, 1 } },
	{ "program version mismatch", -EPROTONOSUPPORT, 8, { 9, 1, 0, 0, 0, 2, 3, 4 } },
	{ "procedure unavailable", -EOPNOTSUPP, 6, { 9, 1, 0, 0, 0, 3 } },
	{ "server cannot decode arguments", -EINVAL, 6, { 9, 1, 0, 0, 0, 4 } },
	{ "remote system error", -EREMOTEIO, 6, { 9, 1, 0, 0, 0, 5 } },
	{ "unknown reply status", -EREMOTEIO, 6, { 9, 1, 0, 0, 0, 6 } },
	{ "unknown reply status", -EREMOTEIO, 6, { 9, 1, 0, 0, 0, UINT32_MAX } },
	{ "RPC version mismatch", -EPROTONOSUPPORT, 6, { 9, 1, 1, 0, 2, 2 } },
	{ "authentication error", -EACCES, 5, { 9, 1, 1, 1, 0 } },
	{ "bad credential", -EACCES, 5, { 9, 1, 1, 1, 1 } },
	{ "credential rejected", -EACCES, 5, { 9, 1, 1, 1, 2 } },
	{ "bad verifier", -EACCES, 5, { 9, 1, 1, 1, 3 } },
	{ "verifier rejected", -EACCES, 5, { 9, 1, 1, 1, 4 } },
	{ "authentication too weak", -EACCES, 5, { 9, 1, 1, 1, 5 } },
	{ "authentication error", -EACCES, 5, { 9, 1, 1, 1, 14 } },
};

static void test_replies(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(replies); i++) {
		uint8_t buf[64], back[64];
		struct rr_rpc_reply r;
		struct wire_get g;
		struct wire_put p;

		get_words(replies[i].words, replies[i].n, buf, &g);
		assert_int_equal(rr_rpc_get_reply(&g, &r), 0);
		assert_int_equal(wire_get_left(&g), 0);
		assert_int_equal(r.xid, 9);
		assert_int_equal(rr_rpc_errno(&r), replies[i].err);
		assert_string_equal(rr_rpc_strerror(&r), replies[i].text);
		wire_put_init(&p, back, sizeof(back));
		rr_rpc_put_reply(&p, &r);
		assert_int_equal(wire_put_len(&p), 4 * replies[i].n);
		assert_memory_equal(back, buf, 4 * replies[i].n);
		cut_reply(buf, 4 * replies[i].n);
	}
}

static void test_bad_replies(void **state)
{
	static const struct {
		int err;
		uint32_t n, words[10];
	} cases[] = {
		{ -EBADMSG, 6, { 9, 0, 0, 0, 0, 0 } },	 /* a call */
		{ -EBADMSG, 6, { 9, 1, 2, 0, 0, 0 } },	 /* neither accepted nor denied */
		{ -EBADMSG, 6, { 9, 1, 0, 0, 401, 0 } }, /* verifier too long */
		{ -EBADMSG, 6, { 9, 1, 0, 0, 400, 0 } }, /* and over the end */
		{ 0, 8, { 9, 1, 0, 6, 7, 0x61626364, 0x65666700, 0 } }, /* a verifier of 7 bytes */
		{ 0, 4, { 9, 1, 1, 2 } }, /* denied for no known reason */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rr_rpc_reply r;
		struct wire_get g;
		uint8_t buf[64];

		get_words(cases[i].words, cases[i].n, buf, &g);
		assert_int_equal(rr_rpc_get_reply(&g, &r), cases[i].err);
		assert_int_equal(r.xid, 9);
		if (!cases[i].err)
			assert_int_equal(rr_rpc_errno(&r), r.stat ? -EREMOTEIO : 0);
	}
}

static void test_auth_sys_max(void **state)
{
	struct rr_auth_sys s = { .stamp = 1, .uid = 2, .gid = 3, .ngids = 16, .machine_len = 255 };
	uint8_t body[RR_AUTH_BYTES_MAX];
	struct rr_auth_sys back;
	int len;

	(void)state;
	for (uint32_t i = 0; i < 16; i++)
		s.gids[i] = UINT32_MAX - i;
	memset(s.machine, 'm', 255);
	len = rr_rpc_put_auth_sys(&s, body, sizeof(body));
	assert_int_equal(len, 4 + 4 + 256 + 12 + 64);
	assert_int_equal(rr_rpc_put_auth_sys(&s, body, (size_t)len - 1), -EMSGSIZE);
	get_auth_sys(body, (uint32_t)len, &back);
	assert_memory_equal(&back, &s, sizeof(s));
	s.machine_len = 256;
	assert_int_equal(rr_rpc_put_auth_sys(&s, body, sizeof(body)), -EMSGSIZE);
	s.machine_len = 0;
	s.ngids = 17;
	assert_int_equal(rr_rpc_put_auth_sys(&s, body, sizeof(body)), -EMSGSIZE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors),	     cmocka_unit_test(test_null_call),
		cmocka_unit_test(test_bad_calls),    cmocka_unit_test(test_replies),
		cmocka_unit_test(test_bad_replies),  cmocka_unit_test(test_auth_sys_max),
	};

	return cmocka_run_group_tests_name("rpc_msg", tests, NULL, NULL);
}
