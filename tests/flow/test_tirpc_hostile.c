/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_tirpc_hostile.c - peers that send a service of libtirpc what they should not, or do not take its replies
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cmocka.h>

#include "base/util.h"
#include "base/wire.h"
#include "rpcrdma.h"
#include "rpcrdma_tirpc.h"
#include "tirpc_rig.h"

enum { LONG = RIG_OWN }; /* struct rig_bytes of LONG_BYTES */

#define MAX_BYTES (1u << 20)
#define LONG_BYTES (MAX_BYTES - 64)
#define MARK_LAST 0x80000000u

static char local_url[256];
static const char tcp_url[] = "tcp://127.0.0.1";

/* ---- the service ---- */

static void dispatch(struct svc_req *q, SVCXPRT *x)
{
	static char text[LONG_BYTES];
	struct rig_bytes b = { .len = sizeof(text), .val = text };

	if (q->rq_proc == LONG)
		svc_sendreply(x, (xdrproc_t)xdr_rig_bytes, &b);
	else
		rig_dispatch(q, x);
}

static int create(void)
{
	const struct rpcrdma_tirpc_attr attr = { .max_bytes = MAX_BYTES, .mem_bytes = 4 * MAX_BYTES };
	int rc = rpcrdma_svc_create(dispatch, RIG_PROG, RIG_VERS, tcp_url, &attr);

	return rc ? rc : rpcrdma_svc_create(dispatch, RIG_PROG, RIG_VERS, local_url, &attr);
}

static struct rig start(void (*loop)(void))
{
	const struct rig_service s = { .create = create, .run = loop, .url = { tcp_url, local_url } };
	struct rig r;

	snprintf(local_url, sizeof(local_url), "%s", rig_local("hostile"));
	rig_start(&r, &s);
	return r;
}

/* ---- words over TCP ---- */

static int connect_to(const char *url)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				  .sin_port = htons(rig_port(url)) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	return fd;
}

static void send_words(int fd, const uint32_t *words, size_t n)
{
	uint8_t bytes[512];

	for (size_t i = 0; i < n; i++)
		put_be32(bytes + 4 * i, words[i]);
	assert_int_equal(send(fd, bytes, 4 * n, MSG_NOSIGNAL), 4 * n);
}

#define SEND(fd, ...)                                                                                  \
	do {                                                                                           \
		const uint32_t rec[] = { __VA_ARGS__ };                                                \
		const uint32_t mark = MARK_LAST | (uint32_t)sizeof(rec);                               \
		send_words(fd, &mark, 1);                                                              \
		send_words(fd, rec, ARRAY_SIZE(rec));                                                  \
	} while (0)

/* A reply of exactly these words. */
static void expect_words(int fd, const uint32_t *words, size_t n)
{
	uint8_t bytes[512];
	ssize_t got = recv(fd, bytes, 4 * (n + 1), MSG_WAITALL);

	assert_int_equal(got, 4 * (n + 1));
	assert_int_equal(get_be32(bytes), MARK_LAST | (4 * n));
	for (size_t i = 0; i < n; i++)
		assert_int_equal(get_be32(bytes + 4 * (i + 1)), words[i]);
}

#define EXPECT(fd, ...)                                                \
	do {                                                           \
		const uint32_t reply[] = { __VA_ARGS__ };              \
		expect_words(fd, reply, ARRAY_SIZE(reply));            \
	} while (0)

static void expect_end(int fd)
{
	char c;
	ssize_t n = recv(fd, &c, 1, 0);

	assert_true(n == 0 || (n < 0 && errno == ECONNRESET));
	close(fd);
}

static void check_null(const struct rig *r)
{
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(rig_call(r->url[i], RIG_PROG, RIG_VERS, RIG_NULL, (xdrproc_t)xdr_rig_void, NULL,
					  (xdrproc_t)xdr_rig_void, NULL),
				 RPC_SUCCESS);
}

/* ---- tests ---- */

#define HEAD(vers, prog, proc) 77, 0, vers, prog, RIG_VERS, proc

static void wrong_calls_get_errors(void **state)
{
	struct rig r = start(svc_run);
	int fd = connect_to(r.url[0]);

	(void)state;
	SEND(fd, HEAD(3, RIG_PROG, 0), 0, 0, 0, 0);
	EXPECT(fd, 77, 1, 1, 0, 2, 2); /* RPC_MISMATCH: versions 2 to 2 */
	SEND(fd, HEAD(2, RIG_PROG + 7, 0), 0, 0, 0, 0);
	EXPECT(fd, 77, 1, 0, 0, 0, PROG_UNAVAIL);
	SEND(fd, 77, 0, 2, RIG_PROG, RIG_VERS + 1, 0, 0, 0, 0, 0);
	EXPECT(fd, 77, 1, 0, 0, 0, PROG_MISMATCH, RIG_VERS, RIG_VERS);
	SEND(fd, HEAD(2, RIG_PROG, RIG_PROCS), 0, 0, 0, 0);
	EXPECT(fd, 77, 1, 0, 0, 0, PROC_UNAVAIL);
	/* no arguments; a length that reaches beyond them; one that wraps around */
	SEND(fd, HEAD(2, RIG_PROG, RIG_ECHO), 0, 0, 0, 0);
	EXPECT(fd, 77, 1, 0, 0, 0, GARBAGE_ARGS);
	SEND(fd, HEAD(2, RIG_PROG, RIG_ECHO), 0, 0, 0, 0, 9, 0, 0);
	EXPECT(fd, 77, 1, 0, 0, 0, GARBAGE_ARGS);
	SEND(fd, HEAD(2, RIG_PROG, RIG_ECHO), 0, 0, 0, 0, 0xffffffff, 0, 0);
	EXPECT(fd, 77, 1, 0, 0, 0, GARBAGE_ARGS);
	/* credentials that libtirpc refuses: of AUTH_SYS, too short, too many groups, a name beyond its end */
	SEND(fd, HEAD(2, RIG_PROG, 0), AUTH_SYS, 0, 0, 0);
	EXPECT(fd, 77, 1, 1, 1, AUTH_BADCRED);
	SEND(fd, HEAD(2, RIG_PROG, 0), AUTH_SYS, 20, 1, 0, 0, 0, 17, 0, 0);
	EXPECT(fd, 77, 1, 1, 1, AUTH_BADCRED);
	SEND(fd, HEAD(2, RIG_PROG, 0), AUTH_SYS, 20, 1, 0x7fffffff, 0, 0, 0, 0, 0);
	EXPECT(fd, 77, 1, 1, 1, AUTH_BADCRED);
	SEND(fd, HEAD(2, RIG_PROG, 0), RPCSEC_GSS, 0, 0, 0);
	EXPECT(fd, 77, 1, 1, 1, AUTH_REJECTEDCRED);
	/* and the connection still works */
	SEND(fd, HEAD(2, RIG_PROG, 0), 0, 0, 0, 0);
	EXPECT(fd, 77, 1, 0, 0, 0, SUCCESS);
	close(fd);
	check_null(&r);
	assert_int_equal(rig_stop(&r), 0);
}

/* What is no call ends the connection, and no other one. */
static void garbage_ends_its_connection(void **state)
{
	struct rig r = start(svc_run);
	int fd = connect_to(r.url[0]);
	const uint32_t huge[] = { MARK_LAST | 0x7fffffff, HEAD(2, RIG_PROG, 0) };

	(void)state;
	SEND(fd, HEAD(2, RIG_PROG, 0), 0, 404, 0, 0); /* longest credential: 400 */
	expect_end(fd);
	fd = connect_to(r.url[0]);
	SEND(fd, 77, 1, 0, 0, 0, 0); /* a reply */
	expect_end(fd);
	fd = connect_to(r.url[0]);
	SEND(fd, 77, 0, 2); /* truncated */
	expect_end(fd);
	fd = connect_to(r.url[0]);
	send_words(fd, huge, ARRAY_SIZE(huge));
	expect_end(fd);
	/* a record that does not end, and a connection that says nothing, are no reason */
	fd = connect_to(r.url[0]);
	send_words(fd, huge + 1, 3);
	check_null(&r);
	close(fd);
	assert_int_equal(rig_stop(&r), 0);
}

/* Replies that a client does not take: others are served, and so is it when it takes them. */
static void replies_not_taken(void **state)
{
	enum { CALLS = 24 };
	const uint32_t call[] = { MARK_LAST | 40, HEAD(2, RIG_PROG, LONG), 0, 0, 0, 0 };
	struct rig r = start(svc_run);
	int fd = connect_to(r.url[0]);
	char *sink = malloc(LONG_BYTES + 64);

	(void)state;
	for (unsigned i = 0; i < CALLS; i++)
		send_words(fd, call, ARRAY_SIZE(call));
	for (unsigned i = 0; i < 50; i++) /* of another client */
		assert_int_equal(rig_call(r.url[1], RIG_PROG, RIG_VERS, RIG_NULL, (xdrproc_t)xdr_rig_void, NULL,
					  (xdrproc_t)xdr_rig_void, NULL),
				 RPC_SUCCESS);
	for (unsigned i = 0; i < CALLS; i++) {
		size_t bytes = 4 + 24 + 4 + LONG_BYTES;

		assert_int_equal(recv(fd, sink, bytes, MSG_WAITALL), bytes);
		assert_int_equal(get_be32((uint8_t *)sink), MARK_LAST | (bytes - 4));
		assert_int_equal(get_be32((uint8_t *)sink + 4), 77);
	}
	free(sink);
	close(fd);
	assert_int_equal(rig_stop(&r), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wrong_calls_get_errors),
		cmocka_unit_test(garbage_ends_its_connection),
		cmocka_unit_test(replies_not_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
