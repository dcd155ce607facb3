/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_svc_bytes.c - a service that takes arguments as bytes and replies with bytes, of any size
 *
 * One thread runs the service and its peers: a peer over the local fabric that sends any chunk lists, and sockets.
 */
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

/* ---- lack of memory ------------------------------------------------------------------------ */

static unsigned long countdown; /* 0: nothing fails */
static bool failed;

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t m);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t m);
void *__wrap_realloc(void *p, size_t n);

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

void *__wrap_realloc(void *p, size_t n)
{
	return fails() ? NULL : __real_realloc(p, n);
}

/* ---- the service --------------------------------------------------------------------------- */

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

static uint8_t byte_at(size_t i)
{
	return (uint8_t)(i * 31 + (i >> 8) * 7 + (i >> 16) * 13 + 1);
}

static void fill(uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		p[i] = byte_at(i);
}

static void on_done(void *arg)
{
	(void)arg;
	dones++;
}

static void send_reply(struct rpcrdma_req *req)
{
	rpcrdma_req_reply_parts(req, &results, on_done, NULL);
}

static void on_pulled(struct rpcrdma_xfer *x, int err)
{
	if (err)
		rpcrdma_req_drop(x->req, on_done, NULL);
	else
		send_reply(x->req);
}

static void begin_pull(struct rpcrdma_req *req)
{
	int rc;

	xfer = (struct rpcrdma_xfer){ .mem = own, .len = args.payload_bytes, .done = on_pulled };
	rc = rpcrdma_req_pull(req, &xfer);
	if (rc)
		rpcrdma_req_drop(req, on_done, NULL);
}

static void on_call(void *ctx, struct rpcrdma_req *req)
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

static void open_service(bool whole)
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

static void pump(void)
{
	for (int idle = 0; idle < 50;)
		idle = rpcrdma_engine_poll(engine) ? 0 : idle + 1;
}

static void close_service(void)
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

static void release_held(void)
{
	hold = false;
	for (unsigned i = 0; i < nheld; i++)
		send_reply(held[i]);
	nheld = 0;
}

static uint64_t pool_most(void)
{
	struct rpcrdma_pool_stats s;

	rpcrdma_domain_pool_stats(domain, &s);
	return s.most;
}

static struct rpcrdma_stats stats(void)
{
	struct rpcrdma_stats s;

	rpcrdma_domain_stats(domain, &s);
	return s;
}

static struct raw_peer peer;

static void connect_peer(struct raw_peer *p)
{
	connect_to(p, engine, path);
}

/* ---- a peer over TCP ------------------------------------------------------------------------- */

#define LAST 0x80000000u

static int dial(void)
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

static bool put_bytes(int fd, const uint8_t *p, size_t len)
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

static bool get_bytes(int fd, uint8_t *p, size_t len)
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
static bool put_record(int fd, const uint8_t *a, size_t len, size_t most)
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
static size_t get_record(int fd, uint8_t **ret)
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

/* ---- arguments ------------------------------------------------------------------------------- */

static const uint32_t lengths[] = { 1, 2, 3, 4, 7, 1000, 4096, 70001, MIB + 8192, 5 * MIB + 3, 16 * MIB };

static void assert_args(const uint8_t *want, size_t len)
{
	assert_int_equal(args_err, 0);
	assert_int_equal(args.len, len);
	assert_memory_equal(got, want, len);
}

/* A call in a position-zero chunk, and the same with its payload in a Read chunk. */
static void rdma_args(bool whole)
{
	uint8_t *want = malloc(LONGEST + 64);

	open_service(whole);
	connect_peer(&peer);
	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		size_t len = lengths[i], padded = round_up4(len), total;

		/* want: two words, the payload with its pad, one word */
		put_be32(want, 77);
		put_be32(want + 4, (uint32_t)len);
		memcpy(want + 8, heap, len);
		memset(want + 8 + len, 0, padded - len);
		put_be32(want + 8 + padded, 99);
		total = 8 + padded + 4;
		for (unsigned form = 0; form < 4; form++) {
			struct region a = { .mem = NULL }, b = { .mem = NULL };
			bool is_long = form % 2, chunk = form >= 2;
			uint32_t pos;

			if (!is_long && !chunk && total > 3000)
				continue;
			begin(is_long ? RR_NOMSG : RR_MSG);
			pos = (uint32_t)head_len + 8;
			if (is_long) {
				a = offer(&peer, head_len + total, READABLE);
				memcpy(a.mem, head, head_len);
				memcpy(a.mem + head_len, want, 8);
				memcpy(a.mem + head_len + 8, want + 8 + (chunk ? padded : 0), total - 8 - (chunk ? padded : 0));
				add_reads(0, &a, head_len + total - (chunk ? padded : 0));
			}
			if (chunk) {
				b = offer(&peer, padded, READABLE);
				memcpy(b.mem, want + 8, padded);
				add_reads(pos, &b, len % 2 ? padded : len); /* the chunk may include the pad */
			}
			if (chunk && !is_long) {
				uint8_t words[12];

				memcpy(words, want, 8);
				memcpy(words + 8, want + 8 + padded, 4);
				say(&peer, words, 12, failed);
			} else {
				say(&peer, want, total, failed);
			}
			assert_true(hear(&peer));
			assert_int_equal(args.payload_bytes, !chunk ? 0 : len % 2 ? padded : len);
			assert_int_equal(args.payload_pos, chunk ? 8 : 0);
			assert_int_equal(args.reduced, chunk && !whole);
			if (!args.reduced) {
				assert_args(want, total);
			} else {
				assert_int_equal(args.len, 12);
				assert_memory_equal(got, want, 8);
				assert_memory_equal(got + 8, want + 8 + padded, 4);
			}
			if (a.mem)
				withdraw(&a);
			if (b.mem)
				withdraw(&b);
		}
	}
	assert_int_equal(agains, 0);
	assert_true(pool_most() <= POOL_BYTES);
	raw_close(&peer);
	close_service();
	free(want);
}

static void args_of_chunks(void **state)
{
	(void)state;
	rdma_args(false);
}

static void args_joined(void **state)
{
	(void)state;
	rdma_args(true);
}

/* A payload that is left at the caller is pulled into memory of the service. */
static void args_pulled(void **state)
{
	struct region r;
	uint8_t word[4];

	(void)state;
	open_service(false);
	connect_peer(&peer);
	pull = true;
	begin(RR_MSG);
	r = offer(&peer, 5 * MIB, READABLE);
	memcpy(r.mem, heap + 5, r.len);
	add_reads((uint32_t)head_len + 4, &r, r.len);
	put_be32(word, (uint32_t)r.len);
	say(&peer, word, 4, failed);
	assert_true(hear(&peer));
	assert_memory_equal(own, r.mem, r.len);
	/* beyond the chunk, nothing is pulled */
	hold = true;
	say(&peer, word, 4, failed);
	raw_settle(&peer);
	assert_int_equal(nheld, 1);
	xfer = (struct rpcrdma_xfer){ .mem = own, .off = 1, .len = args.payload_bytes };
	assert_int_equal(rpcrdma_req_pull(held[0], &xfer), -EINVAL);
	release_held();
	assert_true(hear(&peer));
	withdraw(&r);
	raw_close(&peer);
	close_service();
}

static void tcp_args(bool whole)
{
	static const size_t fragments[] = { SIZE_MAX, 65536, 4001 };
	uint8_t *answer;
	unsigned many = 0;
	int fd;

	open_service(whole);
	fd = dial();
	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		for (size_t f = 0; f < ARRAY_SIZE(fragments); f++) {
			size_t len = round_up4((size_t)lengths[i]);

			if (len / fragments[f] > 300)
				continue;
			assert_true(put_record(fd, heap, len, fragments[f]));
			assert_int_equal(get_record(fd, &answer), RR_RPC_REPLY_HDR_BYTES);
			free(answer);
			assert_args(heap, len);
			assert_false(args.reduced);
			many += len > 9000;
		}
	}
	/* the service sees a long record twice, unless it gets whole ones */
	assert_int_equal(agains, whole ? 0 : many);
	assert_true(pool_most() <= POOL_BYTES);
	close(fd);
	close_service();
}

static void args_of_records(void **state)
{
	(void)state;
	tcp_args(false);
}

static void args_of_whole_records(void **state)
{
	(void)state;
	tcp_args(true);
}

/* ---- results ---------------------------------------------------------------------------------- */

enum from { FROM_HEAP, FROM_OWN, FROM_BOTH, FROMS };

/* Results of @before bytes, a payload (SIZE_MAX: none) and @after bytes, in pieces; the bytes count from the start. */
static void cut(enum from from, size_t before, size_t payload, size_t after)
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
static void assert_results(const uint8_t *p, size_t before, size_t payload, size_t after, bool reduced)
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

static const struct {
	size_t before, payload, after;
} shapes[] = {
	{ 0, SIZE_MAX, 0 }, { 4, SIZE_MAX, 0 }, { 3000, SIZE_MAX, 8 }, { 100000, SIZE_MAX, 4 }, { 16 * MIB, SIZE_MAX, 0 },
	{ 4, 0, 0 }, { 8, 1, 4 }, { 8, 1003, 0 }, { 4, 4096, 4 }, { 100000, 99999, 4 }, { 4, 5 * MIB + 1, 0 },
	{ 6 * MIB, 6 * MIB, 4 * MIB }, { 0, 12, 12000 },
};

static void one_reply(enum from from, unsigned s, bool write, bool reply_chunk)
{
	size_t before = shapes[s].before, payload = shapes[s].payload, after = shapes[s].after;
	size_t bytes = payload == SIZE_MAX ? 0 : payload, padded = round_up4(bytes);
	bool placed = write && bytes;
	size_t rest = RR_RPC_REPLY_HDR_BYTES + before + after + (placed ? 0 : padded);
	struct region w = offer(&peer, bytes + 3, WRITABLE), r = offer(&peer, rest + 64, WRITABLE);
	uint64_t used, copied = stats().bytes_copied;
	bool fits;

	cut(from, before, payload, after);
	begin(RR_MSG);
	if (write)
		offer_write(&w, bytes + 3);
	if (reply_chunk)
		offer_reply(&r, rest + 64);
	say(&peer, NULL, 0, failed);
	assert_true(hear(&peer));
	fits = rr_hdr_bytes(&hdr) + rest <= 1024; /* also if it has no private data */
	if (reply.proc == RR_ERROR) {
		assert_false(reply_chunk || fits);
		goto out;
	}
	if (write) {
		assert_int_equal(rr_chunk_check_returned(&hdr.writes[0], &reply.writes[0], &used), 0);
		assert_int_equal(used, placed ? bytes : 0);
		if (placed)
			assert_memory_equal(w.mem, heap + before, bytes);
		assert_int_equal(w.mem[bytes], 0xee);
	}
	if (reply.proc == RR_NOMSG) {
		assert_true(reply_chunk && !fits);
		assert_int_equal(rr_chunk_check_returned(&hdr.reply, &reply.reply, &used), 0);
		assert_int_equal(used, rest);
		check_rpc(r.mem, rest);
		assert_results(r.mem + RR_RPC_REPLY_HDR_BYTES, before, payload, after, placed);
		assert_int_equal(r.mem[rest], 0xee);
	} else {
		assert_int_equal(body_len, rest);
		check_rpc(body, body_len);
		assert_results(body + RR_RPC_REPLY_HDR_BYTES, before, payload, after, placed);
	}
	/* own memory is written from where it is, except small pieces; the local fabric's own copies count here too */
	if (from == FROM_OWN && bytes + before + after > MIB) {
		uint64_t mine = stats().bytes_copied - copied;

		assert_true(mine < 100000 || mine <= bytes + before + after + 100000);
	}
out:
	withdraw(&w);
	withdraw(&r);
}

static void replies_by_chunk(void **state)
{
	(void)state;
	open_service(false);
	connect_peer(&peer);
	for (enum from from = 0; from < FROMS; from++)
		for (unsigned s = 0; s < ARRAY_SIZE(shapes); s++)
			for (unsigned form = 0; form < 4; form++)
				one_reply(from, s, form & 1, form & 2);
	pump();
	assert_int_equal(dones, calls);
	assert_true(pool_most() <= 4 * MIB); /* one buffer for copies, for any size */
	raw_close(&peer);
	close_service();
}

static void replies_over_tcp(void **state)
{
	uint8_t *answer;
	int fd;

	(void)state;
	open_service(false);
	fd = dial();
	for (enum from from = 0; from < FROMS; from++) {
		for (unsigned s = 0; s < ARRAY_SIZE(shapes); s++) {
			size_t bytes = shapes[s].payload == SIZE_MAX ? 0 : round_up4(shapes[s].payload);

			cut(from, shapes[s].before, shapes[s].payload, shapes[s].after);
			assert_true(put_record(fd, NULL, 0, SIZE_MAX));
			assert_int_equal(get_record(fd, &answer),
					 RR_RPC_REPLY_HDR_BYTES + shapes[s].before + bytes + shapes[s].after);
			assert_results(answer + RR_RPC_REPLY_HDR_BYTES, shapes[s].before, shapes[s].payload,
				       shapes[s].after, false);
			free(answer);
		}
	}
	assert_int_equal(pool_most(), 0);
	close(fd);
	close_service();
}

/* Own memory is not copied by the service: it can be unregistered only after done, and counts no copies. */
static void own_memory_is_not_copied(void **state)
{
	struct region r;
	uint64_t own_copies, heap_copies;

	(void)state;
	open_service(false);
	connect_peer(&peer);
	r = offer(&peer, 9 * MIB, WRITABLE);
	for (unsigned k = 0; k < 2; k++) {
		uint64_t before = stats().bytes_copied;

		iov[0] = (struct iovec){ .iov_base = k ? heap : own, .iov_len = 8 * MIB };
		results = (struct rpcrdma_results){ .iov = iov, .iovcnt = 1 };
		begin(RR_MSG);
		offer_reply(&r, r.len);
		say(&peer, NULL, 0, failed);
		assert_true(hear(&peer));
		assert_int_equal(reply.proc, RR_NOMSG);
		assert_memory_equal(r.mem + RR_RPC_REPLY_HDR_BYTES, heap, 8 * MIB);
		*(k ? &heap_copies : &own_copies) = stats().bytes_copied - before;
	}
	assert_int_equal(heap_copies - own_copies, 8 * MIB);
	withdraw(&r);
	raw_close(&peer);
	close_service();
}

/* Results that are none become SYSTEM_ERR; those that are too long for the caller ERR_CHUNK. */
static void bad_results(void **state)
{
	static const struct {
		size_t len[3];
		int cnt, payload, payload_cnt;
	} bad[] = {
		{ { 3 }, 1, 0, 0 },        { { 4, 4, 2 }, 3, 1, 1 },          { { 2, 4, 2 }, 3, 1, 1 },
		{ { 4 }, 1, 0, 2 },        { { 4 }, 1, 2, 0 },                { { 4 }, 1, -1, 1 },
		{ { 4 }, -1, 0, 0 },       { { 4 }, 1, 0, -1 },               { { RPCRDMA_CALL_BYTES_MAX, 4 }, 2, 0, 0 },
		{ { 4, SIZE_MAX - 3 }, 2, 0, 0 },
	};

	(void)state;
	open_service(false);
	connect_peer(&peer);
	for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
		for (unsigned k = 0; k < 3; k++)
			iov[k] = (struct iovec){ .iov_base = heap, .iov_len = bad[i].len[k] };
		results = (struct rpcrdma_results){ .iov = iov, .iovcnt = bad[i].cnt, .payload = bad[i].payload,
						    .payload_cnt = bad[i].payload_cnt };
		begin(RR_MSG);
		say(&peer, NULL, 0, failed);
		assert_true(hear(&peer));
		assert_int_equal(get_be32(body + 20), RR_SYSTEM_ERR);
	}
	raw_close(&peer);
	close_service();
}

/* ---- hostile peers ------------------------------------------------------------------------------ */

static void refused(void)
{
	unsigned before = calls;

	say(&peer, NULL, 0, failed);
	hear_error(&peer);
	assert_int_equal(calls, before);
}

/* Lengths that overflow or exceed the limit are refused before memory is allocated. */
static void impossible_chunks(void **state)
{
	struct region r;

	(void)state;
	open_service(true);
	connect_peer(&peer);
	r = offer(&peer, 4096, READABLE);
	begin(RR_NOMSG); /* longer than a call may be */
	add_read(0, seg(&r, 0, LONGEST - 4));
	add_read(0, seg(&r, 0, 8));
	refused();
	begin(RR_NOMSG); /* 64 segments of 4 GiB */
	for (unsigned i = 0; i < 64; i++)
		add_read(0, seg(&r, 0, UINT32_MAX));
	refused();
	begin(RR_MSG); /* message and payload together */
	add_read((uint32_t)head_len, seg(&r, 0, LONGEST - 8));
	refused();
	begin(RR_MSG); /* the address wraps */
	add_read((uint32_t)head_len, (struct rr_segment){ .handle = r.mr->rkey, .length = 16, .offset = UINT64_MAX - 7 });
	refused();
	begin(RR_MSG); /* behind the message */
	add_read((uint32_t)head_len + 4, seg(&r, 0, 16));
	refused();
	begin(RR_MSG); /* results: 129 MiB */
	offer_write(&r, 129 * MIB);
	refused();
	begin(RR_MSG);
	offer_reply(&r, 129 * MIB);
	refused();
	assert_int_equal(pool_most(), 0);
	/* in the RPC header: no argument is there */
	begin(RR_MSG);
	add_read(24, seg(&r, 0, 16));
	memset(r.mem, 0, 16);
	say(&peer, NULL, 0, failed);
	assert_true(hear(&peer) || !raw_alive(&peer));
	withdraw(&r);
	raw_close(&peer);
	close_service();
}

/* A long call that delivers less than it claims ends its connection; the memory is free again. */
static void claims_more_than_it_has(void **state)
{
	(void)state;
	open_service(true);
	for (unsigned form = 0; form < 2; form++) {
		struct region r;

		connect_peer(&peer);
		r = offer(&peer, 5 * MIB, READABLE);
		begin(form ? RR_NOMSG : RR_MSG);
		add_read(form ? 0 : (uint32_t)head_len, seg(&r, 0, 16 * MIB));
		if (form)
			memcpy(r.mem, head, head_len);
		say(&peer, NULL, 0, failed);
		raw_settle(&peer);
		assert_false(raw_alive(&peer));
		assert_int_equal(calls, 0);
		withdraw(&r);
		raw_close(&peer);
		pump();
	}
	assert_int_equal(conns, 0);
	/* both were given back: of two sizes, one each */
	assert_true(pool_most() <= 34 * MIB);
	close_service();
}

/* Many peers with long calls wait in order for what the pool has. All are served in the end. */
static void many_long_calls(void **state)
{
	enum { PEERS = 12 };
	static struct raw_peer peers[PEERS];
	struct region r[PEERS];
	uint64_t waits;

	(void)state;
	open_service(true);
	hold = true;
	waits = stats().buf_waits;
	for (unsigned i = 0; i < PEERS; i++) {
		connect_peer(&peers[i]);
		r[i] = offer(&peers[i], 16 * MIB, READABLE);
		begin(RR_NOMSG);
		memcpy(r[i].mem, head, head_len);
		add_reads(0, &r[i], r[i].len);
		say(&peers[i], NULL, 0, failed);
		raw_settle(&peers[i]);
	}
	/* all are of one user, who may not take all of it; and a small call needs none */
	assert_true(nheld >= 1 && nheld <= 2);
	assert_true(stats().buf_waits > waits);
	assert_true(pool_most() <= POOL_BYTES / 2);
	connect_peer(&peer);
	begin(RR_MSG);
	say(&peer, NULL, 0, failed);
	raw_settle(&peer);
	assert_true(nheld >= 2);
	for (unsigned round = 0; round < PEERS + 1 && calls < PEERS + 1; round++) {
		release_held();
		hold = true;
		for (unsigned i = 0; i < PEERS; i++)
			raw_settle(&peers[i]);
	}
	release_held();
	pump();
	assert_int_equal(calls, PEERS + 1);
	assert_true(pool_most() <= POOL_BYTES / 2);
	for (unsigned i = 0; i < PEERS; i++) {
		assert_true(hear(&peers[i]));
		withdraw(&r[i]);
		raw_close(&peers[i]);
	}
	raw_close(&peer);
	close_service();
}

/* The same over TCP, by peers that announce long records and send little. Others with small calls are served. */
static void many_long_records(void **state)
{
	enum { PEERS = 40 };
	int fds[PEERS], fd;
	uint8_t mark[4], *answer;

	(void)state;
	open_service(true);
	for (unsigned i = 0; i < PEERS; i++) {
		fds[i] = dial();
		put_be32(mark, (uint32_t)(16 * MIB) | (i % 2 ? LAST : 0));
		begin(RR_MSG);
		assert_true(put_bytes(fds[i], mark, 4));
		assert_true(put_bytes(fds[i], head, head_len));
		assert_true(put_bytes(fds[i], heap, 5000));
	}
	assert_true(pool_most() <= POOL_BYTES / 2);
	assert_int_equal(calls, 0);
	fd = dial();
	assert_true(put_record(fd, heap, 4000, SIZE_MAX));
	assert_int_equal(get_record(fd, &answer), RR_RPC_REPLY_HDR_BYTES);
	free(answer);
	/* they leave, and what waited for memory goes on */
	for (unsigned i = 0; i < PEERS; i++)
		close(fds[i]);
	assert_true(put_record(fd, heap, 16 * MIB, SIZE_MAX));
	assert_int_equal(get_record(fd, &answer), RR_RPC_REPLY_HDR_BYTES);
	free(answer);
	assert_args(heap, 16 * MIB);
	/* longer than the limit: the connection ends, in one fragment or many */
	for (unsigned i = 0; i < 2; i++) {
		int other = dial();
		unsigned before = calls;

		(void)put_record(other, heap, LONGEST + 4, i ? 65536 : SIZE_MAX);
		assert_int_equal(get_record(other, &answer), 0);
		free(answer);
		assert_int_equal(calls, before);
		close(other);
	}
	close(fd);
	close_service();
}

/* A peer that leaves in the middle of a long call or a long reply holds nothing. */
static void leaves_in_the_middle(void **state)
{
	struct region r;
	int fd;

	(void)state;
	for (unsigned whole = 0; whole < 2; whole++) {
		open_service(whole);
		fd = dial();
		begin(RR_MSG);
		put_be32(head + 40, 0);
		{
			uint8_t mark[4];

			put_be32(mark, (uint32_t)(10 * MIB) | LAST);
			assert_true(put_bytes(fd, mark, 4) && put_bytes(fd, head, head_len) && put_bytes(fd, heap, MIB));
		}
		close(fd);
		pump();
		assert_int_equal(conns, 0);
		/* the service saw the beginning of it, and must end the request; whole calls never reached it */
		assert_int_equal(calls, whole ? 0 : 1);
		connect_peer(&peer);
		r = offer(&peer, 9 * MIB, WRITABLE);
		iov[0] = (struct iovec){ .iov_base = heap, .iov_len = 8 * MIB };
		results = (struct rpcrdma_results){ .iov = iov, .iovcnt = 1 };
		begin(RR_MSG);
		offer_reply(&r, r.len);
		assert_int_equal(rr_mr_dereg(r.mr), 0); /* the first Write fails */
		r.mr = NULL;
		say(&peer, NULL, 0, failed);
		raw_settle(&peer);
		assert_false(raw_alive(&peer));
		raw_close(&peer);
		withdraw(&r);
		pump();
		close_service();
		assert_int_equal(dones, calls);
		dones = 0;
	}
}

/* ---- lack of memory ------------------------------------------------------------------------------- */

/* A long call with a chunk, and a reply in both chunks: the Nth allocation fails. */
static bool call_with(unsigned long nth)
{
	struct region a, b, w, r;
	uint8_t words[4];
	bool ok;

	connect_peer(&peer);
	cut(FROM_BOTH, 100000, 100001, 4);
	begin(RR_NOMSG);
	a = offer(&peer, head_len + 4, READABLE);
	b = offer(&peer, 100000, READABLE);
	w = offer(&peer, 200000, WRITABLE);
	r = offer(&peer, 200000, WRITABLE);
	put_be32(words, 100000);
	memcpy(a.mem, head, head_len);
	memcpy(a.mem + head_len, words, 4);
	memcpy(b.mem, heap, b.len);
	add_read(0, seg(&a, 0, a.len));
	add_reads((uint32_t)head_len + 4, &b, b.len);
	offer_write(&w, w.len);
	offer_reply(&r, r.len);
	failed = false;
	countdown = nth;
	say(&peer, NULL, 0, failed);
	ok = hear(&peer);
	countdown = 0;
	assert_true(ok || !raw_alive(&peer) || failed);
	if (ok && reply.proc == RR_NOMSG) {
		assert_memory_equal(w.mem, heap + 100000, 100001);
		assert_memory_equal(r.mem + RR_RPC_REPLY_HDR_BYTES, heap, 100000);
	}
	withdraw(&a);
	withdraw(&b);
	withdraw(&w);
	withdraw(&r);
	raw_close(&peer);
	pump();
	assert_int_equal(conns, 0);
	return !failed;
}

static bool tcp_call_with(unsigned long nth)
{
	uint8_t *answer = NULL;
	bool sent;
	int fd;

	cut(FROM_BOTH, 100000, 100001, 4);
	fd = dial();
	failed = false;
	countdown = nth;
	sent = put_record(fd, heap, 100000, 30000);
	countdown = failed ? 0 : countdown;
	if (sent) {
		uint8_t mark[4];

		sent = get_bytes(fd, mark, 4);
		countdown = 0;
		if (sent) {
			size_t len = get_be32(mark) & ~LAST;

			answer = malloc(len);
			assert_true(get_bytes(fd, answer, len));
			if (failed && get_be32(answer + 20) == RR_GARBAGE_ARGS) {
				; /* the service did not get all of the arguments */
			} else {
				check_rpc(answer, len);
				assert_results(answer + RR_RPC_REPLY_HDR_BYTES, 100000, 100001, 4, false);
			}
			free(answer);
		}
	}
	countdown = 0;
	assert_true(sent || failed);
	close(fd);
	pump();
	assert_int_equal(conns, 0);
	return !failed;
}

static void no_memory(void **state)
{
	(void)state;
	for (unsigned whole = 0; whole < 2; whole++) {
		unsigned long n;

		for (n = 1;; n++) {
			bool last;

			open_service(whole);
			last = call_with(n);
			close_service();
			if (last)
				break;
		}
		assert_true(n > 3);
		for (n = 1;; n++) {
			bool last;

			open_service(whole);
			last = tcp_call_with(n);
			close_service();
			if (last)
				break;
		}
		assert_true(n > 3);
	}
}

static int set_up_all(void **state)
{
	(void)state;
	heap = malloc(OWN_BYTES);
	if (heap)
		fill(heap, OWN_BYTES);
	return heap ? 0 : -1;
}

static int tear_down_all(void **state)
{
	(void)state;
	free(heap);
	return 0;
}

static int reset(void **state)
{
	(void)state;
	calls = dones = 0;
	return 0;
}

#define bytes_test(f) cmocka_unit_test_setup(f, reset)

int main(void)
{
	const struct CMUnitTest tests[] = {
		bytes_test(args_of_chunks),
		bytes_test(args_joined),
		bytes_test(args_pulled),
		bytes_test(args_of_records),
		bytes_test(args_of_whole_records),
		bytes_test(replies_by_chunk),
		bytes_test(replies_over_tcp),
		bytes_test(own_memory_is_not_copied),
		bytes_test(bad_results),
		bytes_test(impossible_chunks),
		bytes_test(claims_more_than_it_has),
		bytes_test(many_long_calls),
		bytes_test(many_long_records),
		bytes_test(leaves_in_the_middle),
		bytes_test(no_memory),
	};

	return cmocka_run_group_tests(tests, set_up_all, tear_down_all);
}
