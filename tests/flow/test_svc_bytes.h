/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_svc_bytes.h - a service that takes arguments as bytes and replies with bytes, and its peers
 *
 * One thread runs the service and its peers: a peer over the local fabric that sends any chunk lists, and sockets. Allocations
 * can be made to fail: programs are linked with -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc.
 */
#ifndef TEST_SVC_BYTES_H
#define TEST_SVC_BYTES_H

#include <arpa/inet.h>
#include <errno.h>
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

#include "base/util.h"
#include "base/wire.h"
#include "chunk_talk.h"

#define MIB ((size_t)1 << 20)
#define LONGEST (16 * MIB + 65536) /* call */
#define POOL_BYTES (80 * MIB)      /* two of them */
#define OWN_BYTES (20 * MIB)
#define IDLE_ROUNDS 3000

/* ---- lack of memory ---- */

static unsigned long countdown; /* 0: nothing fails */
static bool failed;

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t m);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t m);
void *__wrap_realloc(void *p, size_t n);

static inline bool fails(void)
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

void *__wrap_realloc(void *p, size_t n)
{
	return fails() ? NULL : __real_realloc(p, n);
}

/* ---- the service ---- */

static struct rpcrdma_domain *domain;
static struct rpcrdma_engine *engine;
static struct rpcrdma_listener *listener, *tcp_listener;
static char path[64];
static unsigned conns, calls, dones;

/* What the last call had. */
static struct rpcrdma_args args;
static uint8_t *got;          /* a copy of its bytes */
static int args_err;
static unsigned agains;

/* What it gets. */
static bool hold;             /* nothing yet: held */
static bool pull;             /* first pull the payload, into own memory */
static struct rpcrdma_req *held[64];
static unsigned nheld;
static struct rpcrdma_xfer xfer;
static struct iovec iov[64];
static struct rpcrdma_results results;

static uint8_t *own;  /* OWN_BYTES of rpcrdma_mem_alloc() */
static uint8_t *heap; /* the same bytes elsewhere */

static inline uint8_t byte_at(size_t i)
{
	return (uint8_t)(i * 31 + (i >> 8) * 7 + (i >> 16) * 13 + 1);
}

static inline void fill(uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		p[i] = byte_at(i);
}

static inline void on_done(void *arg)
{
	(void)arg;
	dones++;
}

static inline void send_reply(struct rpcrdma_req *req)
{
	rpcrdma_req_reply_parts(req, &results, on_done, NULL);
}

static inline void on_pulled(struct rpcrdma_xfer *x, int err)
{
	if (err)
		rpcrdma_req_drop(x->req, on_done, NULL);
	else
		send_reply(x->req);
}

static inline void begin_pull(struct rpcrdma_req *req)
{
	int rc;

	xfer = (struct rpcrdma_xfer){ .mem = own, .len = args.payload_bytes, .done = on_pulled };
	rc = rpcrdma_req_pull(req, &xfer);
	if (rc)
		rpcrdma_req_drop(req, on_done, NULL);
}

static inline void on_call(void *ctx, struct rpcrdma_req *req)
{
	unsigned long left = countdown;

	(void)ctx;
	args_err = rpcrdma_req_args_bytes(req, &args);
	if (args_err == -EAGAIN) {
		agains++;
		return;
	}
	calls++;
	if (args_err) {
		rpcrdma_req_reply_error(req, RPCRDMA_GARBAGE_ARGS, 0, 0, on_done, NULL);
		return;
	}
	countdown = 0; /* the test's own copy */
	free(got);
	got = malloc(args.len + 1);
	assert_non_null(got);
	memcpy(got, args.bytes, args.len);
	countdown = left;
	if (hold)
		held[nheld++] = req;
	else if (pull && args.reduced)
		begin_pull(req);
	else
		send_reply(req);
}

static inline int on_accept(void *ctx, const struct rpcrdma_peer *peer, struct rpcrdma_engine **ret_engine, void **ret_ctx)
{
	(void)ctx;
	(void)peer;
	*ret_engine = engine;
	*ret_ctx = NULL;
	conns++;
	return 0;
}

static inline void on_closed(void *ctx)
{
	(void)ctx;
	conns--;
}

static inline void open_service(bool whole)
{
	static const struct rpcrdma_svc_ops ops = { .accept = on_accept, .call = on_call, .closed = on_closed };
	const struct rpcrdma_domain_attr da = { .pool_bytes_max = POOL_BYTES, .call_bytes_max = LONGEST };
	const struct rpcrdma_svc_attr attr = { .call_bytes_max = LONGEST, .whole_calls = whole };
	struct rpcrdma_svc_attr longer = { .call_bytes_max = LONGEST + 1 };
	struct rpcrdma_addr at = { .transport = RPCRDMA_TCP, .host = "127.0.0.1" };
	void *p;

	assert_int_equal(rpcrdma_domain_create(&da, &domain), 0);
	assert_int_equal(rpcrdma_engine_create(domain, NULL, &engine), 0);
	assert_int_equal(rpcrdma_listen(engine, &at, &longer, &ops, NULL, &tcp_listener), -EINVAL);
	assert_int_equal(rpcrdma_listen(engine, &at, &attr, &ops, NULL, &tcp_listener), 0);
	snprintf(path, sizeof(path), "/tmp/leat-bytes-%d.sock", (int)getpid());
	at = (struct rpcrdma_addr){ .transport = RPCRDMA_LOCAL };
	snprintf(at.host, sizeof(at.host), "%s", path);
	assert_int_equal(rpcrdma_listen(engine, &at, &attr, &ops, NULL, &listener), 0);
	assert_int_equal(rpcrdma_mem_alloc(domain, OWN_BYTES, &p), 0);
	own = p;
	memcpy(own, heap, OWN_BYTES);
	hold = pull = false;
	results = (struct rpcrdma_results){ .iov = iov };
	calls = agains = nheld = 0;
}

static inline void pump(void)
{
	for (int idle = 0; idle < 50;)
		idle = rpcrdma_engine_poll(engine) ? 0 : idle + 1;
}

static inline void close_service(void)
{
	rpcrdma_listener_close(listener);
	rpcrdma_listener_close(tcp_listener);
	rpcrdma_engine_close_conns(engine);
	for (int idle = 0; idle < IDLE_ROUNDS && conns;)
		idle = rpcrdma_engine_poll(engine) ? 0 : idle + 1;
	assert_int_equal(conns, 0);
	pump();
	rpcrdma_mem_free(domain, own);
	rpcrdma_engine_destroy(engine);
	rpcrdma_domain_destroy(domain);
	free(got);
	got = NULL;
}

static inline void release_held(void)
{
	hold = false;
	for (unsigned i = 0; i < nheld; i++)
		send_reply(held[i]);
	nheld = 0;
}

static inline uint64_t pool_most(void)
{
	struct rpcrdma_pool_stats s;

	rpcrdma_domain_pool_stats(domain, &s);
	return s.most;
}

static inline struct rpcrdma_stats stats(void)
{
	struct rpcrdma_stats s;

	rpcrdma_domain_stats(domain, &s);
	return s;
}

static struct raw_peer peer;

static inline void connect_peer(struct raw_peer *p)
{
	connect_to(p, engine, path);
}

/* ---- a peer over TCP ---- */

#define LAST 0x80000000u

static inline int dial(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons(rpcrdma_listener_addr(tcp_listener)->port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	pump();
	return fd;
}

static inline bool put_bytes(int fd, const uint8_t *p, size_t len)
{
	for (int idle = 0; len && idle < IDLE_ROUNDS;) {
		ssize_t n = send(fd, p, len, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n > 0) {
			p += n;
			len -= (size_t)n;
			idle = 0;
		} else if (n < 0 && errno != EAGAIN) {
			return false;
		} else {
			idle++;
		}
		pump();
	}
	return !len;
}

static inline bool get_bytes(int fd, uint8_t *p, size_t len)
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

/* A record of fragments of at most @most bytes. */
static inline bool put_record(int fd, const uint8_t *a, size_t len, size_t most)
{
	uint8_t mark[4];
	size_t at = 0;

	begin(RR_MSG);
	put_be32(mark, (uint32_t)head_len | (len ? 0 : LAST));
	if (!put_bytes(fd, mark, 4) || !put_bytes(fd, head, head_len))
		return false;
	for (size_t n; at < len; at += n) {
		n = MIN(len - at, most);
		put_be32(mark, (uint32_t)n | (at + n == len ? LAST : 0));
		if (!put_bytes(fd, mark, 4) || !put_bytes(fd, a + at, n))
			return false;
	}
	return true;
}

/* Return: length of the reply, in memory of the caller's; 0: the connection ended */
static inline size_t get_record(int fd, uint8_t **ret)
{
	uint8_t mark[4];
	size_t len;

	*ret = NULL;
	if (!get_bytes(fd, mark, 4))
		return 0;
	assert_true(get_be32(mark) & LAST);
	len = get_be32(mark) & ~LAST;
	*ret = malloc(len);
	assert_non_null(*ret);
	if (!get_bytes(fd, *ret, len))
		return 0;
	check_rpc(*ret, len);
	return len;
}

/* ---- arguments and results ---- */

static inline void assert_args(const uint8_t *want, size_t len)
{
	assert_int_equal(args_err, 0);
	assert_int_equal(args.len, len);
	assert_memory_equal(got, want, len);
}

enum from { FROM_HEAP, FROM_OWN, FROM_BOTH, FROMS };

/* Results of @before bytes, a payload (SIZE_MAX: none) and @after bytes, in pieces; the bytes count from the start. */
static inline void cut(enum from from, size_t before, size_t payload, size_t after)
{
	size_t parts[3] = { before, payload == SIZE_MAX ? 0 : payload, after }, at = 0;
	int n = 0;

	results = (struct rpcrdma_results){ .iov = iov };
	for (unsigned k = 0; k < 3; k++) {
		size_t left = parts[k];

		if (k == 1 && payload != SIZE_MAX)
			results.payload = n;
		for (unsigned j = 0; j < 3 && (k < 2 || after); j++) { /* a payload may be last */
			size_t len = j == 2 ? left : MIN(left, j ? left / 2 + 5 : left / 3 + 1);
			uint8_t *mem = from == FROM_OWN || (from == FROM_BOTH && n % 2) ? own : heap;

			iov[n++] = (struct iovec){ .iov_base = mem + at, .iov_len = len };
			at += len;
			left -= len;
		}
		if (k == 1 && payload != SIZE_MAX)
			results.payload_cnt = n - results.payload;
	}
	results.iovcnt = n;
}

/* Are [at, at+len) of the un-reduced results at @p? @before, @payload as for cut() */
static inline void assert_results(const uint8_t *p, size_t before, size_t payload, size_t after, bool reduced)
{
	static const uint8_t zero[4];

	assert_memory_equal(p, heap, before);
	p += before;
	if (payload == SIZE_MAX)
		payload = 0;
	if (!reduced) {
		assert_memory_equal(p, heap + before, payload);
		p += payload;
		assert_memory_equal(p, zero, round_up4(payload) - payload);
		p += round_up4(payload) - payload;
	}
	assert_memory_equal(p, heap + before + payload, after);
}

/* ---- the tests ---- */

static inline int set_up_all(void **state)
{
	(void)state;
	heap = malloc(OWN_BYTES);
	if (heap)
		fill(heap, OWN_BYTES);
	return heap ? 0 : -1;
}

static inline int tear_down_all(void **state)
{
	(void)state;
	free(heap);
	return 0;
}

static inline int reset(void **state)
{
	(void)state;
	calls = dones = 0;
	return 0;
}

#define bytes_test(f) cmocka_unit_test_setup(f, reset)

#endif
