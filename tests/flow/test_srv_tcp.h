/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_srv_tcp.h - a responder over TCP, and a peer that writes bytes into its socket
 */
#ifndef TEST_SRV_TCP_H
#define TEST_SRV_TCP_H

#include <arpa/inet.h>
#include <errno.h>
#include <malloc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/wire.h"
#include "engine_int.h"
#include "rpc_msg.h"
#include "wire_svc.h"

#define LAST 0x80000000u
#define IDLE_ROUNDS 2000

static struct wire_svc svc;
static int fd = -1;
static uint8_t out[3 << 20], in[3 << 20];
static size_t out_len;

static inline void pump(void)
{
	for (int idle = 0; idle < 50;)
		idle = rpcrdma_engine_poll(svc.engine) ? 0 : idle + 1;
}

static inline void dial(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons(rpcrdma_listener_addr(svc.listener)->port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	int one = 1;

	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	/* each write is on its way at once, or "nothing moves any more" would be a matter of time */
	assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	pump();
}

static inline int set_up_grain(uint32_t grain)
{
	if (wire_svc_open(&svc, "tcp://127.0.0.1:0", NULL, NULL))
		return -1;
	svc.grain = grain;
	dial();
	out_len = 0;
	return 0;
}

static inline int set_up(void **state)
{
	(void)state;
	return set_up_grain(0);
}

static inline void call_at(size_t at, uint32_t xid, uint32_t proc)
{
	struct rr_rpc_call c = {
		.xid = xid, .rpcvers = 2, .prog = WIRE_PROG, .vers = WIRE_VERS, .proc = proc };
	struct wire_put p;

	wire_put_init(&p, out + at, sizeof(out) - at);
	rr_rpc_put_call(&p, &c);
	out_len = at + wire_put_len(&p);
}

static inline void word_out(uint32_t v)
{
	put_be32(out + out_len, v);
	out_len += 4;
}

/* one record of one fragment, from @at on */
static inline void mark(size_t at)
{
	put_be32(out + at, LAST | (uint32_t)(out_len - at - 4));
}

/* Send without blocking for ever: the server is pumped while its side of the socket is full. */
static inline void put_bytes(const uint8_t *p, size_t len)
{
	for (int idle = 0; len && idle < IDLE_ROUNDS;) {
		ssize_t n = send(fd, p, len, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n > 0) {
			p += n;
			len -= (size_t)n;
			idle = 0;
		} else {
			assert_true(n < 0 && errno == EAGAIN);
			idle++;
		}
		pump();
	}
	assert_int_equal(len, 0);
}

static inline bool get_bytes(uint8_t *p, size_t len)
{
	for (int idle = 0; len && idle < IDLE_ROUNDS; idle++) {
		ssize_t n = recv(fd, p, len, MSG_DONTWAIT);

		if (!n || (n < 0 && errno == ECONNRESET))
			return false;
		if (n > 0) {
			p += n;
			len -= (size_t)n;
			idle = 0;
		}
		pump();
	}
	return !len;
}

/* The next reply, into `in`; its length. */
static inline uint32_t reply(void)
{
	uint8_t m[4];
	uint32_t len;

	assert_true(get_bytes(m, 4));
	assert_true(get_be32(m) & LAST);
	len = get_be32(m) & ~LAST;
	assert_true(len >= 24 && len <= sizeof(in));
	assert_true(get_bytes(in, len));
	return len;
}

static inline bool closed(void)
{
	uint8_t b;

	return !get_bytes(&b, 1);
}

static inline int tear_down(void **state)
{
	(void)state;
	close(fd);
	pump();
	dial(); /* whatever the first one did, the next is served */
	call_at(4, 99, WIRE_NULL);
	mark(0);
	put_bytes(out, out_len);
	assert_int_equal(reply(), 24);
	assert_int_equal(get_be32(in), 99);
	close(fd);
	wire_svc_close(&svc);
	return 0;
}

static inline void put_call(size_t at, uint32_t xid, uint32_t len)
{
	call_at(at + 4, xid, WIRE_PUT);
	word_out(5);
	word_out(len);
	for (uint32_t i = 0; i < len; i++)
		out[out_len + i] = wire_byte(i);
	memset(out + out_len + len, 0, 3);
	out_len += (len + 3) & ~3u;
	mark(at);
}

static inline void assert_put(uint32_t xid, uint32_t len)
{
	assert_int_equal(reply(), 32);
	assert_int_equal(get_be32(in), xid);
	assert_int_equal(get_be32(in + 20), RR_SUCCESS);
	assert_int_equal(get_be32(in + 24), len);
	for (uint32_t i = 0; i < len; i++)
		if (svc.put_data[i] != wire_byte(i))
			fail_msg("byte %u", i);
}

#define tcp_test(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

#endif
