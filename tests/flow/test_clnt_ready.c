/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_clnt_ready.c - calls whose arguments are XDR bytes already, up to the longest; a service sends them back
 */
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/util.h"
#include "base/wire.h"
#include "rpcrdma.h"

#define PROG 0x20006666u
#define MIB (1u << 20)

/* ---- the service ------------------------------------------------------------------------------ */

/* The first word of the arguments is where their payload begins, behind its length word; 0: they have none. */
struct echo {
	struct rpcrdma_req *req;
	struct iovec iov[3];
	struct rpcrdma_results results;
};

static struct rpcrdma_domain *domain[2]; /* client, service */
static struct rpcrdma_engine *engine[2];
static struct rpcrdma_listener *listener;
static struct rpcrdma_clnt *clnt;
static char path[64];
static unsigned conns, ups;
static bool hold;
static bool is_open; /* also after a test that failed */
static struct echo *held;

static void echo_done(void *arg)
{
	free(arg);
}

static void echo_reply(struct echo *e)
{
	struct rpcrdma_args a;
	const uint8_t *at;
	uint32_t pos, len;

	assert_int_equal(rpcrdma_req_args_bytes(e->req, &a), 0);
	assert_false(a.reduced);
	at = a.bytes;
	pos = get_be32(at);
	e->results = (struct rpcrdma_results){ .iov = e->iov, .iovcnt = 1 };
	e->iov[0] = (struct iovec){ (uint8_t *)(uintptr_t)at, a.len };
	if (pos) {
		len = get_be32(at + pos - 4);
		e->iov[0].iov_len = pos;
		e->iov[1] = (struct iovec){ (uint8_t *)(uintptr_t)at + pos, len };
		e->iov[2] = (struct iovec){ (uint8_t *)(uintptr_t)at + pos + round_up4(len), a.len - pos - round_up4(len) };
		e->results.iovcnt = 3;
		e->results.payload = e->results.payload_cnt = 1;
	}
	rpcrdma_req_reply_parts(e->req, &e->results, echo_done, e);
}

static void svc_call(void *ctx, struct rpcrdma_req *req)
{
	struct echo *e = calloc(1, sizeof(*e));

	(void)ctx;
	assert_non_null(e);
	e->req = req;
	if (hold)
		held = e;
	else
		echo_reply(e);
}

static int svc_accept(void *ctx, const struct rpcrdma_peer *peer, struct rpcrdma_engine **ret_engine, void **ret_ctx)
{
	(void)ctx;
	(void)peer;
	*ret_engine = engine[1];
	*ret_ctx = NULL;
	conns++;
	return 0;
}

static void svc_closed(void *ctx)
{
	(void)ctx;
	conns--;
}

static void on_state(void *ctx, enum rpcrdma_clnt_state s, const char *why)
{
	(void)ctx;
	(void)why;
	ups += s == RPCRDMA_CLNT_UP;
}

static int poll_both(void)
{
	return rpcrdma_engine_poll(engine[0]) + rpcrdma_engine_poll(engine[1]);
}

static void open_both(enum rpcrdma_transport transport, const struct rpcrdma_clnt_attr *attr)
{
	static const struct rpcrdma_svc_ops ops = { .accept = svc_accept, .call = svc_call, .closed = svc_closed };
	const struct rpcrdma_domain_attr da = { .call_bytes_max = RPCRDMA_CALL_BYTES_MAX, .pool_bytes_max = 320u << 20 };
	const struct rpcrdma_svc_attr sa = { .call_bytes_max = RPCRDMA_CALL_BYTES_MAX, .whole_calls = true };
	struct rpcrdma_addr addr = { .transport = transport, .host = "127.0.0.1" };
	const char *rdma_host = getenv("LEAT_FLOW_RDMA"); /* as in leat_flow.h */
	struct rpcrdma_clnt_attr ca = *attr;
	static unsigned serial;

	if (is_open || (rdma_host && transport == RPCRDMA_TCP)) /* TCP needs no device: it runs elsewhere */
		skip();
	is_open = true;
	snprintf(path, sizeof(path), "/tmp/leat-clnt-ready-%d.%u", (int)getpid(), serial++);
	if (rdma_host && transport == RPCRDMA_LOCAL) {
		addr.transport = RPCRDMA_RDMA;
		snprintf(addr.host, sizeof(addr.host), "%s", rdma_host);
	} else if (transport == RPCRDMA_LOCAL)
		snprintf(addr.host, sizeof(addr.host), "%s", path);
	hold = false;
	ups = 0;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(rpcrdma_domain_create(i ? &da : NULL, &domain[i]), 0);
		assert_int_equal(rpcrdma_engine_create(domain[i], NULL, &engine[i]), 0);
	}
	assert_int_equal(rpcrdma_listen(engine[1], &addr, &sa, &ops, NULL, &listener), 0);
	ca.addr = *rpcrdma_listener_addr(listener);
	ca.state = on_state;
	assert_int_equal(rpcrdma_clnt_open(engine[0], &ca, &clnt), 0);
}

static void close_both(void)
{
	rpcrdma_clnt_destroy(clnt);
	rpcrdma_listener_close(listener);
	for (int idle = 0; conns || idle < 1000; idle++)
		if (poll_both())
			idle = 0;
	for (int i = 0; i < 2; i++) {
		rpcrdma_engine_destroy(engine[i]);
		rpcrdma_domain_destroy(domain[i]);
	}
	unlink(path);
	is_open = false;
}

/* ---- its calls -------------------------------------------------------------------------------- */

struct ready_call {
	struct rpcrdma_call call;
	struct rpcrdma_ready ready;
	struct rpcrdma_room room;
	struct iovec iov[8], payload[3], sink;
	uint8_t *args, *data, *mem, *sunk; /* XDR bytes, payload, room, sink */
	size_t bytes;
	uint32_t data_bytes;
	bool alloced;
	unsigned done, released;
	int err;
};

static void on_done(struct rpcrdma_call *call, int err)
{
	struct ready_call *c = container_of(call, struct ready_call, call);

	c->done++;
	c->err = err;
}

static void on_released(struct rpcrdma_room *room)
{
	container_of(room, struct ready_call, room)->released++;
}

static uint8_t *get_mem(bool alloced, size_t bytes)
{
	void *mem = NULL;

	if (alloced)
		assert_int_equal(rpcrdma_mem_alloc(domain[0], MAX(bytes, (size_t)1), &mem), 0);
	else
		mem = malloc(bytes + 1);
	assert_non_null(mem);
	return mem;
}

static void put_mem(bool alloced, void *mem)
{
	if (alloced)
		rpcrdma_mem_free(domain[0], mem);
	else
		free(mem);
}

/* @bytes of arguments without payload, in @pieces; a payload of @data_bytes before the last @tail of them */
static void init(struct ready_call *c, bool alloced, size_t bytes, unsigned pieces, uint32_t data_bytes, uint32_t tail)
{
	size_t all = bytes + round_up4(data_bytes), step = MAX(bytes / pieces / 4 * 4, (size_t)4), at = 0;

	memset(c, 0, sizeof(*c));
	c->alloced = alloced;
	c->bytes = bytes;
	c->data_bytes = data_bytes;
	c->args = get_mem(alloced, bytes);
	c->data = get_mem(alloced, data_bytes);
	c->sunk = get_mem(alloced, data_bytes);
	c->mem = get_mem(alloced, all + RPCRDMA_ROOM_HEAD);
	for (size_t i = 0; i < bytes; i++)
		c->args[i] = (uint8_t)(i * 7 + i / 251);
	for (size_t i = 0; i < data_bytes; i++)
		c->data[i] = (uint8_t)(i * 3 + i / 253);
	put_be32(c->args, data_bytes ? (uint32_t)bytes - tail : 0);
	if (data_bytes)
		put_be32(c->args + bytes - tail - 4, data_bytes);
	while (at < bytes && c->ready.iovcnt < 8) {
		size_t len = c->ready.iovcnt == (int)pieces - 1 ? bytes - at : MIN(step, bytes - at);

		c->iov[c->ready.iovcnt++] = (struct iovec){ c->args + at, len };
		at += len;
	}
	c->payload[0] = (struct iovec){ c->data, data_bytes / 2 };
	c->payload[1] = (struct iovec){ c->data + data_bytes / 2, data_bytes - data_bytes / 2 };
	c->ready.iov = c->iov;
	c->ready.payload = c->payload;
	c->ready.payloadcnt = 2;
	c->ready.payload_bytes = data_bytes;
	c->ready.payload_at = data_bytes ? bytes - tail : 0;
	c->room = (struct rpcrdma_room){ .mem = c->mem, .bytes = all + RPCRDMA_ROOM_HEAD, .released = on_released };
	c->sink = (struct iovec){ c->sunk, data_bytes };
	c->call = (struct rpcrdma_call){ .prog = PROG, .vers = 1, .proc = 1, .ready = &c->ready, .room = &c->room,
					 .reply_max = (uint32_t)all, .no_resend = true, .done = on_done };
}

static void fini(struct ready_call *c)
{
	put_mem(c->alloced, c->args);
	put_mem(c->alloced, c->data);
	put_mem(c->alloced, c->sunk);
	put_mem(c->alloced, c->mem);
}

static void start(struct ready_call *c)
{
	c->done = c->released = 0;
	assert_int_equal(rpcrdma_clnt_call(clnt, &c->call), 0);
}

static void until(const unsigned *what)
{
	uint64_t end = clock_now_ns() + 60 * NS_PER_S;

	while (!*what) {
		poll_both();
		assert_true(clock_now_ns() < end);
	}
}

static void run(struct ready_call *c)
{
	const uint8_t *at;
	size_t head = c->ready.payload_at, placed;

	start(c);
	until(&c->done);
	if (c->err)
		fail_msg("%zu and %u bytes: %d (%s)", c->bytes, c->data_bytes, c->err, c->call.why);
	assert_int_equal(c->released, 1);
	at = c->call.results;
	placed = c->call.payload_bytes;
	assert_true(!placed || placed == c->data_bytes);
	assert_int_equal(c->call.results_bytes, c->bytes + (placed ? 0 : round_up4(c->data_bytes)));
	assert_memory_equal(at, c->args, head);
	if (!placed)
		assert_memory_equal(at + head, c->data, c->data_bytes);
	else
		assert_memory_equal(c->sunk, c->data, c->data_bytes);
	assert_memory_equal(at + head + (placed ? 0 : round_up4(c->data_bytes)), c->args + head, c->bytes - head);
}

/* ---- arguments of every size ------------------------------------------------------------------ */

static void all_sizes(void **state)
{
	static const size_t sizes[] = { 8, 12, 600, 3900, 3960, 4000, 4020, 4092, 4096, 4200, 20000, 70000, 1000000, 3 * MIB };
	static const uint32_t data[] = { 0, 1, 100, 4000, 20001, 300000 };
	const struct rpcrdma_clnt_attr *a = *state;
	enum rpcrdma_transport t = a->addr.transport;
	struct ready_call c;

	open_both(t, a);
	for (int alloced = 0; alloced < 2; alloced++)
		for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
			for (size_t k = 0; k < ARRAY_SIZE(data); k++)
				for (unsigned pieces = 1; pieces <= 7; pieces += 3) {
					uint32_t tail = sizes[i] >= 600 && pieces > 1 ? 408 : 0;

					init(&c, alloced, sizes[i], pieces, data[k], tail);
					run(&c);
					c.call.sink = &c.sink;
					c.call.sinkcnt = 1;
					run(&c);
					if (data[k] > 70000)
						assert_int_equal(c.call.payload_bytes,
								 t == RPCRDMA_TCP ? 0 : data[k]);
					fini(&c);
				}
	assert_int_equal(ups, 1);
	close_both();
}

/* The longest call there is, and its reply. */
static void longest(void **state)
{
	const struct rpcrdma_clnt_attr *a = *state;
	bool is_slow = getenv("LEAT_FLOW_RDMA"); /* an emulated machine: each once, and each kind of memory once */
	struct ready_call c;

	open_both(a->addr.transport, a);
	for (int alloced = 0; alloced < 2; alloced++) {
		if (!is_slow || alloced) {
			init(&c, alloced, 64u * MIB, 3, 0, 0);
			run(&c);
			fini(&c);
		}
		if (is_slow && alloced)
			continue;
		init(&c, alloced, 1024, 1, 60u * MIB, 8);
		run(&c);
		c.call.sink = &c.sink;
		c.call.sinkcnt = 1;
		run(&c);
		fini(&c);
	}
	assert_int_equal(ups, 1);
	close_both();
}

/* Memory of rpcrdma_mem_alloc() is neither registered for the call nor copied. */
static void no_copies(void **state)
{
	const struct rpcrdma_clnt_attr *a = *state;
	struct rpcrdma_stats before, after;
	struct ready_call c;

	open_both(a->addr.transport, a);
	init(&c, true, 2 * MIB, 2, 100000, 8);
	c.call.sink = &c.sink;
	c.call.sinkcnt = 1;
	run(&c);
	rpcrdma_domain_stats(domain[0], &before);
	for (int i = 0; i < 3; i++)
		run(&c);
	rpcrdma_domain_stats(domain[0], &after);
	assert_int_equal(after.regs, before.regs);
	assert_in_range(after.bytes_copied - before.bytes_copied, 0, 3 * 1000);
	assert_int_equal(after.long_calls, before.long_calls + 3);
	fini(&c);
	close_both();
}

static void limits(void **state)
{
	struct rpcrdma_clnt_attr a = *(const struct rpcrdma_clnt_attr *)*state;
	struct ready_call c;
	struct rpcrdma_clnt *none;

	a.call_bytes_max = 100000;
	open_both(a.addr.transport, &a);
	init(&c, false, 99000, 2, 300000, 8); /* a payload does not count */
	run(&c);
	fini(&c);
	init(&c, false, 100004, 2, 0, 0);
	assert_int_equal(rpcrdma_clnt_call(clnt, &c.call), -EMSGSIZE);
	assert_non_null(c.call.why);
	fini(&c);
	init(&c, false, 1000, 2, 500, 8);
	c.ready.payload_bytes = 501;
	assert_int_equal(rpcrdma_clnt_call(clnt, &c.call), -EINVAL);
	c.ready.payload_bytes = 500;
	c.ready.payload_at++;
	assert_int_equal(rpcrdma_clnt_call(clnt, &c.call), -EINVAL);
	c.ready.payload_at = 1004;
	assert_int_equal(rpcrdma_clnt_call(clnt, &c.call), -EINVAL);
	c.ready.payload_at = 992;
	c.iov[1].iov_len--;
	assert_int_equal(rpcrdma_clnt_call(clnt, &c.call), -EINVAL);
	c.iov[1].iov_len++;
	assert_int_equal(c.released, 0);
	run(&c);
	fini(&c);
	a.call_bytes_max = RPCRDMA_CALL_BYTES_MAX + 1;
	assert_int_equal(rpcrdma_clnt_open(engine[0], &a, &none), -EINVAL);
	assert_int_equal(ups, 1);
	close_both();
}

/* ---- given up --------------------------------------------------------------------------------- */

/* The server still has the call: the arguments stay until its late reply, and the connection stays. */
static void late_reply(void **state)
{
	const struct rpcrdma_clnt_attr *a = *state;
	struct ready_call c, other;

	open_both(a->addr.transport, a);
	init(&other, false, 100, 1, 0, 0);
	run(&other);
	for (int alloced = 0; alloced < 2; alloced++) {
		init(&c, alloced, 100000, 2, 70000, 8);
		hold = true;
		start(&c);
		while (!held)
			poll_both();
		rpcrdma_clnt_cancel(clnt, &c.call);
		assert_int_equal(c.err, -ECANCELED);
		assert_int_equal(c.released, a->addr.transport == RPCRDMA_TCP);
		hold = false;
		if (!getenv("LEAT_TEST_CREDITS")) /* with a single credit, this would replace the connection */
			run(&other);
		assert_int_equal(c.released, a->addr.transport == RPCRDMA_TCP);
		echo_reply(held);
		held = NULL;
		until(&c.released);
		assert_int_equal(c.done, 1);
		run(&other);
		assert_int_equal(c.released, 1);
		fini(&c);
	}
	fini(&other);
	assert_int_equal(ups, 1);
	close_both();
}

/* Without a room the memory of the arguments is the caller's again with done(). */
static void without_room(void **state)
{
	const struct rpcrdma_clnt_attr *a = *state;
	struct ready_call c, other;

	open_both(a->addr.transport, a);
	init(&other, false, 100, 1, 0, 0);
	other.call.no_resend = false; /* the late reply finds no memory, which may end the connection */
	run(&other);
	init(&c, true, 100000, 2, 70000, 8);
	c.call.room = NULL;
	start(&c);
	until(&c.done);
	assert_int_equal(c.err, 0);
	hold = true;
	start(&c);
	while (!held)
		poll_both();
	rpcrdma_clnt_cancel(clnt, &c.call);
	assert_int_equal(c.err, -ECANCELED);
	fini(&c); /* it may be unmapped now */
	hold = false;
	echo_reply(held);
	held = NULL;
	run(&other);
	fini(&other);
	close_both();
}

/* Over TCP, what is given up while it is written is written to its end, from where it is. */
static void half_written(void **state)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct rpcrdma_clnt_attr a = { .addr = { .transport = RPCRDMA_TCP, .host = "127.0.0.1" },
				       .call_bytes_max = RPCRDMA_CALL_BYTES_MAX };
	int l = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), sock;
	uint8_t *got = malloc(20 * MIB);
	socklen_t len = sizeof(in);
	struct ready_call c;
	size_t n = 0;

	(void)state;
	assert_non_null(got);
	assert_int_equal(bind(l, (struct sockaddr *)&in, len), 0);
	assert_int_equal(listen(l, 1), 0);
	assert_int_equal(getsockname(l, (struct sockaddr *)&in, &len), 0);
	a.addr.port = ntohs(in.sin_port);
	for (int destroy = 0; destroy < 2; destroy++) {
		assert_int_equal(rpcrdma_domain_create(NULL, &domain[0]), 0);
		assert_int_equal(rpcrdma_engine_create(domain[0], NULL, &engine[0]), 0);
		assert_int_equal(rpcrdma_clnt_open(engine[0], &a, &clnt), 0);
		do {
			rpcrdma_engine_wait(engine[0], 1);
			sock = accept(l, NULL, NULL);
		} while (sock < 0);
		init(&c, false, 16 * MIB, 3, 100001, 8);
		start(&c);
		while (recv(sock, got, 1, MSG_DONTWAIT | MSG_PEEK) < 1)
			rpcrdma_engine_wait(engine[0], 1);
		rpcrdma_clnt_cancel(clnt, &c.call);
		assert_int_equal(c.done, 1);
		assert_int_equal(c.released, 0);
		for (n = 0; !destroy && !c.released;) {
			ssize_t k = recv(sock, got + n, 20 * MIB - n, MSG_DONTWAIT);

			if (k > 0)
				n += (size_t)k;
			else
				assert_int_equal(errno, EAGAIN);
			rpcrdma_engine_poll(engine[0]);
		}
		memset(c.args, 0xdd, c.bytes);
		while (!destroy && n < (get_be32(got) & 0x7fffffff) + 4) {
			ssize_t k = recv(sock, got + n, 20 * MIB - n, 0);

			assert_true(k > 0);
			n += (size_t)k;
		}
		if (!destroy) {
			const uint8_t *end = got + n;

			assert_int_equal(end[-9], 0); /* the pad */
			assert_memory_equal(end - 8 - 100004, c.data, 100001);
			for (size_t i = 16 * MIB - 8; i < 16 * MIB; i++)
				assert_int_equal(end[(ssize_t)i - 16 * (ssize_t)MIB], (uint8_t)(i * 7 + i / 251));
		}
		rpcrdma_clnt_destroy(clnt);
		assert_int_equal(c.released, 1);
		rpcrdma_engine_destroy(engine[0]);
		fini(&c);
		rpcrdma_domain_destroy(domain[0]);
		close(sock);
	}
	close(l);
	free(got);
}

static const struct rpcrdma_clnt_attr
	local = { .addr.transport = RPCRDMA_LOCAL, .call_bytes_max = RPCRDMA_CALL_BYTES_MAX },
	tcp = { .addr.transport = RPCRDMA_TCP, .call_bytes_max = RPCRDMA_CALL_BYTES_MAX },
	windows = { .addr.transport = RPCRDMA_LOCAL, .registration = "window", .call_bytes_max = RPCRDMA_CALL_BYTES_MAX },
	dynamic = { .addr.transport = RPCRDMA_LOCAL, .registration = "dynamic", .call_bytes_max = RPCRDMA_CALL_BYTES_MAX };

#define OVER(test, how) { #test " " #how, test, NULL, NULL, (void *)(uintptr_t)&how }

int main(void)
{
	const struct CMUnitTest tests[] = {
		OVER(all_sizes, local), OVER(all_sizes, tcp), OVER(all_sizes, windows), OVER(all_sizes, dynamic),
		OVER(longest, local), OVER(longest, tcp),
		OVER(no_copies, local),
		OVER(limits, local), OVER(limits, tcp),
		OVER(late_reply, local), OVER(late_reply, tcp), OVER(late_reply, windows), OVER(late_reply, dynamic),
		OVER(without_room, local), OVER(without_room, tcp), OVER(without_room, windows),
		cmocka_unit_test(half_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
