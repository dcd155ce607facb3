/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_clnt_tcp.c - our client over TCP against a server that sends exactly the bytes a test wants
 *
 * Replies cut into fragments and segments of every size, in any order, to calls that were given up, or that have too
 * little room; and streams that no honest server sends.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/util.h"
#include "base/wire.h"
#include "rpcrdma.h"

#define LAST 0x80000000u
#define SINK 20000u
#define CALLS 4

static struct rpcrdma_domain *domain;
static struct rpcrdma_engine *engine;
static struct rpcrdma_clnt *clnt;
static int listener, sock;
static unsigned conns;

struct tcp_call {
	struct rpcrdma_call call;
	struct rpcrdma_payload res;
	uint8_t sink[SINK + 1];
	struct iovec iov[2];
	unsigned done;
	int err;
};

static bool_t xdr_res(XDR *xdrs, struct rpcrdma_payload *p)
{
	return rpcrdma_xdr_payload(xdrs, p, UINT32_MAX);
}

static void on_done(struct rpcrdma_call *call, int err)
{
	struct tcp_call *t = container_of(call, struct tcp_call, call);

	t->done++;
	t->err = err;
}

static void start(struct tcp_call *t)
{
	memset(t, 0, sizeof(*t));
	memset(t->sink, '.', sizeof(t->sink));
	t->iov[0] = (struct iovec){ t->sink, 333 };
	t->iov[1] = (struct iovec){ t->sink + 333, SINK - 333 };
	t->call = (struct rpcrdma_call){ .prog = 1, .vers = 1, .proc = 1,
					 .decode = (xdrproc_t)xdr_res, .res = &t->res,
					 .sink = t->iov, .sinkcnt = 2, .reply_max = 4,
					 .done = on_done };
	assert_int_equal(rpcrdma_clnt_call(clnt, &t->call), 0);
}

static void poll_some(void)
{
	for (int i = 0; i < 50; i++)
		rpcrdma_engine_poll(engine);
}

static void finish(struct tcp_call *t)
{
	uint64_t end = clock_now_ns() + 20 * NS_PER_S;

	while (!t->done) {
		rpcrdma_engine_wait(engine, 10);
		assert_true(clock_now_ns() < end);
	}
	assert_int_equal(t->done, 1);
}

static void accept_one(void)
{
	uint64_t end = clock_now_ns() + 20 * NS_PER_S;
	int one = 1;

	if (sock >= 0)
		close(sock);
	do {
		rpcrdma_engine_wait(engine, 1);
		sock = accept(listener, NULL, NULL);
		assert_true(clock_now_ns() < end);
	} while (sock < 0);
	assert_int_equal(setsockopt(sock, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)), 0);
	conns++;
}

static void read_all(void *buf, size_t len)
{
	uint64_t end = clock_now_ns() + 20 * NS_PER_S;
	size_t got = 0;

	while (got < len) {
		ssize_t n = recv(sock, (char *)buf + got, len - got, MSG_DONTWAIT);

		assert_true(n > 0 || (n < 0 && errno == EAGAIN));
		if (n > 0)
			got += (size_t)n;
		else
			rpcrdma_engine_wait(engine, 1);
		assert_true(clock_now_ns() < end);
	}
}

/* One call of the client's; Return: its XID */
static uint32_t read_call(void)
{
	uint8_t buf[4096];
	uint32_t mark;

	read_all(buf, 4);
	mark = get_be32(buf);
	assert_true(mark & LAST);
	assert_in_range(mark & ~LAST, 40, sizeof(buf));
	read_all(buf, mark & ~LAST);
	assert_int_equal(get_be32(buf + 4), 0);
	return get_be32(buf);
}

static void write_bytes(const void *buf, size_t len)
{
	assert_int_equal(send(sock, buf, len, MSG_NOSIGNAL), len);
}

static void write_mark(uint32_t mark)
{
	uint8_t word[4];

	put_be32(word, mark);
	write_bytes(word, 4);
}

/* A good reply without its mark; Return: bytes */
static size_t put_reply(uint8_t *buf, uint32_t xid, uint32_t bytes)
{
	static const uint32_t words[] = { 1, 0, 0, 0, 0 };

	put_be32(buf, xid);
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		put_be32(buf + 4 + 4 * i, words[i]);
	put_be32(buf + 24, bytes);
	for (uint32_t i = 0; i < bytes; i++)
		buf[28 + i] = (uint8_t)('a' + i % 23);
	memset(buf + 28 + bytes, 0, round_up4(bytes) - bytes);
	return 28 + round_up4(bytes);
}

static void check(struct tcp_call *t, uint32_t bytes)
{
	assert_int_equal(t->err, 0);
	assert_int_equal(t->call.payload_bytes, bytes);
	for (uint32_t i = 0; i <= SINK; i++)
		assert_int_equal(t->sink[i], i < bytes ? 'a' + i % 23 : '.');
}

static void reply_whole(uint32_t xid, uint32_t bytes)
{
	uint8_t *buf = malloc(bytes + 64);
	size_t n = put_reply(buf + 4, xid, bytes);

	put_be32(buf, LAST | (uint32_t)n);
	write_bytes(buf, n + 4);
	free(buf);
}

static void good_call(void)
{
	struct tcp_call t;

	start(&t);
	reply_whole(read_call(), 100);
	finish(&t);
	check(&t, 100);
}

static int setup(void **state)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct rpcrdma_clnt_attr a = { .addr.transport = RPCRDMA_TCP, .backoff_ms = 1 };
	socklen_t len = sizeof(in);
	struct tcp_call t;

	(void)state;
	listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&in, len), 0);
	assert_int_equal(listen(listener, 8), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&in, &len), 0);
	strcpy(a.addr.host, "127.0.0.1");
	a.addr.port = ntohs(in.sin_port);
	sock = -1;
	conns = 0;
	assert_int_equal(rpcrdma_domain_create(NULL, &domain), 0);
	assert_int_equal(rpcrdma_engine_create(domain, NULL, &engine), 0);
	assert_int_equal(rpcrdma_clnt_open(engine, &a, &clnt), 0);
	start(&t);
	accept_one();
	reply_whole(read_call(), 1);
	finish(&t);
	check(&t, 1);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	rpcrdma_clnt_destroy(clnt);
	rpcrdma_engine_destroy(engine);
	rpcrdma_domain_destroy(domain);
	close(sock);
	close(listener);
	return 0;
}

/* ---- honest streams ----------------------------------------------------------------------- */

static const uint32_t sizes[] = { 0, 1, 2, 3, 4, 5, 333, 334, 4000, 4062, 4063, 4064, 4065, 4068,
				  4069, 4096, 8191, 19999, 20000 };

/* The same stream in TCP segments of every small size: each state is entered with any remainder. */
static void in_small_segments(void **state)
{
	static const size_t steps[] = { 1, 3, 27, 28, 29, 1000 };
	static uint8_t buf[SINK + 64];
	struct tcp_call t;

	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(steps); k++)
		for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
			size_t n, at = 0;

			start(&t);
			n = put_reply(buf + 4, read_call(), sizes[i]);
			put_be32(buf, LAST | (uint32_t)n);
			for (n += 4; at < n; at += MIN(steps[k], n - at)) {
				write_bytes(buf + at, MIN(steps[k], n - at));
				if (at < 100 || n - at < 100)
					rpcrdma_engine_poll(engine);
			}
			finish(&t);
			check(&t, sizes[i]);
		}
	assert_int_equal(conns, 1);
}

static void in_fragments(void **state)
{
	static const size_t steps[] = { 1, 5, 28, 1000, 7000 };
	static uint8_t buf[SINK + 64];
	struct tcp_call t[2];

	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(steps); k++)
		for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
			size_t n, at = 0;
			uint32_t next;

			if (sizes[i] / steps[k] > 2000)
				continue;
			start(&t[0]);
			start(&t[1]);
			n = put_reply(buf, read_call(), sizes[i]);
			next = read_call();
			write_mark(0); /* empty, and not the last */
			for (; at < n; at += MIN(steps[k], n - at)) {
				write_mark((uint32_t)MIN(steps[k], n - at));
				write_bytes(buf + at, MIN(steps[k], n - at));
				if (at % 7 == 0)
					rpcrdma_engine_poll(engine);
			}
			write_mark(LAST);
			reply_whole(next, 50);
			finish(&t[0]);
			finish(&t[1]);
			check(&t[0], sizes[i]);
			check(&t[1], 50);
		}
	assert_int_equal(conns, 1);
}

static void out_of_order(void **state)
{
	struct tcp_call t[CALLS];
	uint32_t xid[CALLS];

	(void)state;
	for (int i = 0; i < CALLS; i++)
		start(&t[i]);
	for (int i = 0; i < CALLS; i++)
		xid[i] = read_call();
	for (int i = CALLS - 1; i >= 0; i--)
		reply_whole(xid[i], 5000u * (uint32_t)i);
	for (int i = 0; i < CALLS; i++) {
		finish(&t[i]);
		check(&t[i], 5000u * (uint32_t)i);
	}
}

static void nobodys_replies(void **state)
{
	struct tcp_call t;
	uint32_t xid;

	(void)state;
	start(&t);
	xid = read_call();
	reply_whole(xid + 99, 10);
	reply_whole(xid + 100, 19000);
	reply_whole(xid, 10);
	reply_whole(xid, 19000);
	finish(&t);
	check(&t, 10);
	good_call();
	assert_int_equal(conns, 1);
}

/* Given up before, in the middle of, and after its reply. */
static void given_up(void **state)
{
	static uint8_t buf[SINK + 64];
	static const size_t cuts[] = { 0, 2, 10, 32, 1000, 4200, 10031 };
	struct tcp_call t;

	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(cuts); k++) {
		uint8_t before;
		size_t n;

		start(&t);
		n = put_reply(buf + 4, read_call(), 9999) + 4;
		put_be32(buf, LAST | (uint32_t)(n - 4));
		write_bytes(buf, cuts[k]);
		poll_some();
		rpcrdma_clnt_cancel(clnt, &t.call);
		assert_int_equal(t.done, 1);
		assert_int_equal(t.err, -ECANCELED);
		before = t.sink[9998];
		write_bytes(buf + cuts[k], n - cuts[k]);
		good_call();
		assert_int_equal(t.sink[9998], before);
		assert_int_equal(t.done, 1);
	}
	assert_int_equal(conns, 1);
}

static void rpc_errors(void **state)
{
	static const uint32_t denied[] = { 1, 1, 1, 5 }, garbage[] = { 1, 0, 0, 0, 4 };
	uint8_t buf[64];
	struct tcp_call t;

	(void)state;
	for (int how = 0; how < 2; how++) {
		const uint32_t *words = how ? garbage : denied;
		uint32_t n = how ? 5 : 4;

		start(&t);
		put_be32(buf, LAST | (4 + 4 * n));
		put_be32(buf + 4, read_call());
		for (uint32_t i = 0; i < n; i++)
			put_be32(buf + 8 + 4 * i, words[i]);
		write_bytes(buf, 8 + 4 * n);
		finish(&t);
		assert_int_equal(t.err, how ? -EINVAL : -EACCES);
		good_call();
	}
	assert_int_equal(conns, 1);
}

/* ---- replies that their calls have no room for ----------------------------------------------- */

/* A long record, in pieces of @step bytes; @frag: in fragments of that size */
static void write_pieces(const uint8_t *msg, size_t n, size_t step, bool frag)
{
	if (!frag)
		write_mark(LAST | (uint32_t)n);
	for (size_t at = 0; at < n; at += step) {
		size_t len = MIN(step, n - at);

		if (frag)
			write_mark((at + len == n ? LAST : 0) | (uint32_t)len);
		write_bytes(msg + at, len);
		if (at < 100 || at % 7 == 0)
			rpcrdma_engine_poll(engine);
	}
}

/* The call is at fault, and only it fails: another one in flight is not repeated. */
static void no_room(struct tcp_call *t, const uint8_t *msg, size_t n, size_t step, bool frag, const char *why)
{
	struct tcp_call other;
	uint32_t xid;

	start(&other);
	xid = read_call();
	write_pieces(msg, n, step, frag);
	finish(t);
	assert_int_equal(t->err, -EMSGSIZE);
	assert_non_null(strstr(t->call.why, why));
	assert_int_equal(t->call.payload_bytes, 0);
	assert_int_equal(t->sink[0], '.');
	reply_whole(xid, 700);
	finish(&other);
	check(&other, 700);
	assert_int_equal(conns, 1);
}

static const size_t room_steps[] = { 7, 1000, 4000, 1 << 20 };

static void sink_too_small(void **state)
{
	static const uint32_t bytes[] = { SINK + 1, SINK + 500, SINK + 600, 3 * SINK };
	static uint8_t buf[3 * SINK + 64];
	struct tcp_call t;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bytes); i++)
		for (size_t k = 0; k < 2 * ARRAY_SIZE(room_steps); k++) {
			start(&t);
			no_room(&t, buf, put_reply(buf, read_call(), bytes[i]), room_steps[k / 2], k % 2,
				"longer than sink");
		}
}

static void no_sink(void **state)
{
	static const uint32_t bytes[] = { 1, 100, 5000 };
	static uint8_t buf[5064];
	struct tcp_call t;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bytes); i++)
		for (size_t k = 0; k < 2 * ARRAY_SIZE(room_steps); k++) {
			start(&t);
			t.call.sinkcnt = 0;
			no_room(&t, buf, put_reply(buf, read_call(), bytes[i]), room_steps[k / 2], k % 2, "no sink");
		}
}

static bool_t xdr_text(XDR *xdrs, char *text)
{
	return xdr_opaque(xdrs, text, 2 * SINK);
}

/* Results without payload, with a decoder and without one. */
static void reply_max_too_small(void **state)
{
	static uint8_t buf[3 * SINK + 64];
	static char text[2 * SINK];
	struct tcp_call t;

	(void)state;
	for (size_t k = 0; k < 4 * ARRAY_SIZE(room_steps); k++) {
		start(&t);
		t.call.decode = k % 4 < 2 ? (xdrproc_t)xdr_text : NULL;
		t.call.res = text;
		t.call.reply_max = 500;
		no_room(&t, buf, put_reply(buf, read_call(), 3 * SINK), room_steps[k / 4], k % 2, "reply_max");
	}
}

/* ---- dishonest ones ----------------------------------------------------------------------- */

enum evil { HUGE_RECORD, SHORT_RECORD, EMPTY_RECORD, LONG_RECORD, PAYLOAD_PAST_END, LONG_TAIL, BAD_HEADER,
	    BAD_LONG_HEADER, LONG_ERROR, TEXT, CLOSE, CLOSE_IN_PAYLOAD, NEVILS };

static void say(enum evil how, uint32_t xid)
{
	static uint8_t buf[SINK + 64];
	size_t n;

	switch (how) {
	case HUGE_RECORD:
		write_mark(0xffffffff);
		n = put_reply(buf, xid, 100);
		write_bytes(buf, n);
		break;
	case SHORT_RECORD:
		write_mark(LAST | 8);
		write_bytes("12345678", 8);
		break;
	case EMPTY_RECORD:
		write_mark(LAST);
		break;
	case LONG_RECORD: /* longer than is skipped, though the payload explains it */
		n = put_reply(buf, xid, 100);
		put_be32(buf + 24, RPCRDMA_BUF_MAX + 65536);
		write_mark(LAST | (28 + RPCRDMA_BUF_MAX + 65536));
		write_bytes(buf, n);
		break;
	case PAYLOAD_PAST_END: /* longer than the call allows, and than the record */
		n = put_reply(buf, xid, 100);
		put_be32(buf + 24, 3 * SINK);
		write_mark(LAST | (2 * SINK));
		write_bytes(buf, n);
		break;
	case LONG_TAIL: /* the results end, and the record does not */
		n = put_reply(buf, xid, 0);
		write_mark(LAST | (2 * SINK));
		write_bytes(buf, n);
		break;
	case BAD_HEADER:
		n = put_reply(buf, xid, 100);
		put_be32(buf + 8, 17);
		write_mark(LAST | (uint32_t)n);
		write_bytes(buf, n);
		break;
	case BAD_LONG_HEADER:
		n = put_reply(buf, xid, 15000);
		put_be32(buf + 16, 5000); /* verifier */
		write_mark(LAST | (uint32_t)n);
		write_bytes(buf, n);
		break;
	case LONG_ERROR: /* GARBAGE_ARGS has no results */
		n = put_reply(buf, xid, 100);
		put_be32(buf + 20, 4);
		write_mark(LAST | (2 * SINK));
		write_bytes(buf, n);
		break;
	case TEXT:
		write_bytes("HTTP/1.1 400 Bad Request\r\n\r\n", 28);
		break;
	case CLOSE:
		break;
	case CLOSE_IN_PAYLOAD:
		n = put_reply(buf, xid, 15000);
		write_mark(LAST | (uint32_t)n);
		write_bytes(buf, n - 5);
		poll_some();
		break;
	case NEVILS:
		break;
	}
}

static void evil_streams(void **state)
{
	struct tcp_call t;

	(void)state;
	for (int how = 0; how < NEVILS; how++) {
		uint32_t xid;

		start(&t);
		xid = read_call();
		say((enum evil)how, xid);
		if (how == TEXT || how >= CLOSE) /* a claim that nothing contradicts but the end */
			shutdown(sock, SHUT_WR);
		accept_one();
		if (!t.done) { /* not its fault: asked again, under the same name */
			assert_int_equal(read_call(), xid);
			memset(t.sink, '.', sizeof(t.sink)); /* the first half of an answer came */
			reply_whole(xid, 77);
			finish(&t);
			check(&t, 77);
		} else {
			assert_int_equal(t.err, -EPROTO);
			assert_non_null(t.call.why);
		}
		good_call();
		assert_int_equal(conns, (unsigned)how + 2);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(in_small_segments, setup, teardown),
		cmocka_unit_test_setup_teardown(in_fragments, setup, teardown),
		cmocka_unit_test_setup_teardown(out_of_order, setup, teardown),
		cmocka_unit_test_setup_teardown(nobodys_replies, setup, teardown),
		cmocka_unit_test_setup_teardown(given_up, setup, teardown),
		cmocka_unit_test_setup_teardown(rpc_errors, setup, teardown),
		cmocka_unit_test_setup_teardown(sink_too_small, setup, teardown),
		cmocka_unit_test_setup_teardown(no_sink, setup, teardown),
		cmocka_unit_test_setup_teardown(reply_max_too_small, setup, teardown),
		cmocka_unit_test_setup_teardown(evil_streams, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
