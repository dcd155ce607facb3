/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_clnt_room.c - calls whose results arrive undecoded in a room: where they are, and when the room is free again
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
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
#include "inside.h"
#include "rpc_pair.h"

#define HEAD_MAX 200000u
#define MOST 1000000u /* of arguments and results of this service */
#define LAST 0x80000000u

static const struct rpc_pair_attr over_local = { .transport = RPCRDMA_LOCAL };
static const struct rpc_pair_attr over_tcp = { .transport = RPCRDMA_TCP };
static const struct rpc_pair_attr over_windows = { .transport = RPCRDMA_LOCAL, .clnt.registration = "window" };
static const struct rpc_pair_attr over_dynamic = { .transport = RPCRDMA_LOCAL, .clnt.registration = "dynamic",
						   .clnt.no_bounce = true };
static const struct rpc_pair_attr over_chaos = { .transport = RPCRDMA_LOCAL,
						 .clnt_local.filters = HOOKS(.chaos_seed = 5),
						 .svc_local.filters = HOOKS(.chaos_seed = 6) };

/* ---- a call with a room ---------------------------------------------------------------------- */

struct room_call {
	struct echo_call c;
	struct rpcrdma_room room;
	void (*plain_done)(struct rpcrdma_call *call, int err);
	unsigned released, released_at_done;
	enum { MALLOCED, ALLOCED, REGISTERED } kind;
	uint8_t *mem;
};

static void on_released(struct rpcrdma_room *room)
{
	container_of(room, struct room_call, room)->released++;
}

static void on_done(struct rpcrdma_call *call, int err)
{
	struct room_call *r = container_of(call, struct room_call, c.call);

	r->released_at_done = r->released;
	r->plain_done(call, err);
}

static void room_init(struct room_call *r, struct rpc_pair *p, enum echo_proc proc, size_t payload, uint32_t n,
		      uint32_t head, uint32_t reply_max)
{
	size_t bytes = (size_t)reply_max + RPCRDMA_ROOM_HEAD;
	int kind = (int)r->kind;

	memset(r, 0, sizeof(*r));
	r->kind = kind;
	echo_init(&r->c, p, proc, payload, payload, n, head);
	if (kind == ALLOCED)
		assert_int_equal(rpcrdma_mem_alloc(p->clnt_domain, bytes + 1, (void **)&r->mem), 0);
	else
		r->mem = malloc(bytes + 1);
	assert_non_null(r->mem);
	memset(r->mem, 0xee, bytes + 1);
	if (kind == REGISTERED)
		assert_int_equal(rpcrdma_mem_register(p->clnt_domain, r->mem, bytes + 1), 0);
	r->room = (struct rpcrdma_room){ .mem = r->mem, .bytes = bytes, .released = on_released };
	r->plain_done = r->c.call.done;
	r->c.call.done = on_done;
	r->c.call.room = &r->room;
	r->c.call.reply_max = reply_max;
	r->c.call.decode = NULL;
}

static void room_fini(struct room_call *r)
{
	struct rpc_pair *p = r->c.pair;

	if (r->kind == REGISTERED)
		assert_int_equal(rpcrdma_mem_unregister(p->clnt_domain, r->mem), 0);
	if (r->kind == ALLOCED)
		rpcrdma_mem_free(p->clnt_domain, r->mem);
	else
		free(r->mem);
	echo_fini(&r->c);
}

static void until_done(struct room_call *r, int err)
{
	rpc_pair_until(r->c.pair, &r->c.done, 1);
	assert_int_equal(r->c.done, 1);
	if (r->c.err != err)
		fail_msg("call ended with %d (%s), not %d", r->c.err, r->c.call.why, err);
	assert_int_equal(r->mem[r->room.bytes], 0xee);
}

/* The results, with the payload put back if it was placed, are those of the service. */
static void check_results(struct room_call *r)
{
	struct rpcrdma_call *call = &r->c.call;
	const uint8_t *at = call->results;
	uint32_t n, head, payload;
	size_t left = call->results_bytes;

	assert_in_range(at - r->mem, 0, r->room.bytes);
	assert_in_range((size_t)(at - r->mem) + left, 0, r->room.bytes);
	assert_int_equal((at - r->mem) % 4, 0);
	assert_in_range(left, 12, call->reply_max);
	n = get_be32(at);
	head = get_be32(at + 4);
	if (call->proc == ECHO_BOTH) {
		assert_int_equal(n, r->c.args.n);
		assert_int_equal(head, r->c.args.head_len);
	} else {
		assert_int_equal(head, r->c.args.n);
		echo_pattern(r->c.args.head, head, head);
	}
	assert_memory_equal(at + 8, r->c.args.head, head);
	at += 8 + round_up4(head);
	payload = get_be32(at);
	left -= 12 + round_up4(head);
	if (call->proc != ECHO_BOTH) {
		assert_int_equal(payload, 0);
		return;
	}
	assert_int_equal(payload, r->c.arg_bytes);
	if (call->payload_bytes) {
		assert_int_equal(call->payload_bytes, payload);
		assert_int_equal(left, 0);
		assert_memory_equal(r->c.sink, r->c.arg, payload);
	} else {
		assert_int_equal(left, round_up4(payload));
		assert_memory_equal(at + 4, r->c.arg, payload);
	}
	assert_int_equal(r->c.sink[r->c.sink_bytes], 0xee);
}

static void run(struct room_call *r)
{
	echo_start(&r->c);
	assert_int_equal(r->released, 0);
	until_done(r, 0);
	assert_int_equal(r->released_at_done, 1);
	assert_int_equal(r->released, 1);
	check_results(r);
}

/* ---- results of every size ------------------------------------------------------------------ */

static const uint32_t heads[] = { 0, 1, 3, 900, 960, 1000, 3900, 4000, 4020, 4040, 4100, 16000, 65536, HEAD_MAX };

static void heads_of_all_sizes(void **state)
{
	struct rpc_pair *p = rpc_pair_create(*state);
	struct room_call r;

	for (int kind = MALLOCED; kind <= REGISTERED; kind++)
		for (size_t i = 0; i < ARRAY_SIZE(heads); i++)
			for (uint32_t more = 0; more <= 20000; more += 20000) {
				r.kind = kind;
				room_init(&r, p, ECHO_HEAD, 0, heads[i], 0, 12 + (uint32_t)round_up4(heads[i]) + more);
				run(&r);
				room_fini(&r);
			}
	assert_int_equal(p->ups, 1);
	rpc_pair_destroy(p);
}

static void payload(void **state)
{
	const struct rpc_pair_attr *a = *state;
	static const size_t sizes[] = { 1, 1000, 4000, 30000, 30001, 70000, MOST };
	struct rpc_pair *p = rpc_pair_create(a);
	struct room_call r;

	for (int kind = MALLOCED; kind <= REGISTERED; kind++)
		for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
			for (uint32_t head = 0; head <= 9000; head += 9000) {
				r.kind = kind;
				room_init(&r, p, ECHO_BOTH, sizes[i], 7, head,
					  12 + (uint32_t)round_up4(head) + (uint32_t)round_up4(sizes[i]));
				run(&r);
				if (sizes[i] > 65536)
					assert_int_equal(r.c.call.payload_bytes,
							 a->transport == RPCRDMA_TCP ? 0 : sizes[i]);
				/* the same without a sink: all of it in the room */
				r.c.call.sinkcnt = 0;
				r.released = r.c.done = 0;
				memset(r.c.sink, 0xee, sizes[i]);
				run(&r);
				assert_int_equal(r.c.call.payload_bytes, 0);
				room_fini(&r);
			}
	assert_int_equal(p->ups, 1);
	rpc_pair_destroy(p);
}

/* Memory of rpcrdma_mem_alloc() is registered once, and results are neither copied nor bounced. */
static void no_registration_per_call(void **state)
{
	struct rpc_pair *p = rpc_pair_create(*state);
	struct room_call r = { .kind = ALLOCED };
	struct rpcrdma_stats before, after;

	if (getenv("LEAT_TEST_VARIANT") || getenv("LEAT_TEST_MODES"))
		skip(); /* counts of the default strategy */
	room_init(&r, p, ECHO_HEAD, 0, HEAD_MAX, 0, HEAD_MAX + 12);
	run(&r);
	before = rpc_pair_clnt_stats(p);
	for (int i = 0; i < 5; i++) {
		r.released = 0;
		run(&r);
	}
	after = rpc_pair_clnt_stats(p);
	assert_int_equal(after.regs, before.regs);
	assert_in_range(after.bytes_copied - before.bytes_copied, 0, 5 * 1000); /* the calls */
	assert_int_equal(after.reg_bounced, before.reg_bounced);
	assert_int_equal(after.chunks_reply, before.chunks_reply + 5);
	room_fini(&r);
	rpc_pair_destroy(p);
}

static void too_long(void **state)
{
	struct rpc_pair *p = rpc_pair_create(*state);
	static const uint32_t bytes[] = { 400, 5000, 70000, HEAD_MAX };
	struct room_call r;

	for (size_t i = 0; i < ARRAY_SIZE(bytes); i++)
		for (uint32_t less = 4; less < bytes[i]; less *= 20) {
			r.kind = i % 3;
			room_init(&r, p, ECHO_HEAD, 0, bytes[i], 0, 12 + bytes[i] - less);
			echo_start(&r.c);
			until_done(&r, -EMSGSIZE);
			assert_int_equal(r.released, 1);
			assert_null(r.c.call.results);
			room_fini(&r);
			echo_run(p, 100, 0);
		}
	assert_int_equal(p->ups, 1);
	rpc_pair_destroy(p);
}

static void bad_room(void **state)
{
	struct rpc_pair *p = rpc_pair_create(*state);
	struct room_call r = { .kind = MALLOCED };

	room_init(&r, p, ECHO_HEAD, 0, 10, 0, 24);
	r.room.bytes--;
	assert_int_equal(rpcrdma_clnt_call(p->clnt, &r.c.call), -EINVAL);
	assert_non_null(strstr(r.c.call.why, "RPCRDMA_ROOM_HEAD"));
	r.room.bytes++;
	run(&r);
	/* errors of the service, with their numbers */
	r.c.call.status = &(struct rpcrdma_status){ .stat = 99 };
	r.c.call.vers++;
	r.released = 0;
	echo_start(&r.c);
	until_done(&r, -EPROTONOSUPPORT);
	assert_int_equal(r.c.call.status->reply_stat, 0);
	assert_int_equal(r.c.call.status->stat, 2);
	assert_int_equal(r.c.call.status->low, ECHO_VERS);
	assert_int_equal(r.c.call.status->high, ECHO_VERS);
	assert_int_equal(r.released, 1);
	room_fini(&r);
	rpc_pair_destroy(p);
}

/* ---- given up ------------------------------------------------------------------------------- */

enum end { LATE_REPLY, CUT, DESTROY };

static bool stuck; /* a room was never released: other tests would wait as long */

static void until_released(struct room_call *r)
{
	uint64_t end = clock_now_ns() + 20 * NS_PER_S;

	while (!r->released && clock_now_ns() < end)
		rpc_pair_poll(r->c.pair);
	stuck = !r->released;
	assert_int_equal(r->released, 1);
}

/* @sink: with a payload too, whose memory must be free with done() */
static void given_up(const struct rpc_pair_attr *a, bool by_deadline, enum end end, int kind, size_t sink)
{
	struct rpc_pair *p = rpc_pair_create(a);
	bool tcp = a->transport == RPCRDMA_TCP, stays = !tcp && !getenv("LEAT_TEST_MODES");
	struct room_call r = { .kind = kind };
	unsigned ups;

	echo_run(p, 10, 0);
	ups = p->ups;
	room_init(&r, p, ECHO_BOTH, sink, 7, 9000, 9012 + (uint32_t)round_up4(sink));
	p->hold = true;
	if (by_deadline)
		r.c.call.deadline_ms = 1;
	echo_start(&r.c);
	if (!by_deadline) {
		rpc_pair_until(p, &p->nheld, 1);
		rpcrdma_clnt_cancel(p->clnt, &r.c.call);
	}
	until_done(&r, by_deadline ? -ETIMEDOUT : -ECANCELED);
	memset(r.c.sink, 0xee, r.c.sink_bytes);
	if (!r.c.call.sent) { /* a slow machine: not even sent */
		assert_int_equal(r.released_at_done, 1);
		goto out;
	}
	if (!sink && stays) {
		assert_int_equal(r.released, 0);
		rpc_pair_settle(p);
		assert_int_equal(r.released, 0);
		assert_int_equal(p->ups, ups);
	} else if (tcp) {
		assert_int_equal(r.released_at_done, 1);
	}
	rpc_pair_until(p, &p->nheld, 1);
	if (end == LATE_REPLY) {
		rpc_pair_release(p);
		until_released(&r);
		if (!sink && stays)
			assert_int_equal(p->ups, ups);
	} else if (end == CUT) {
		clnt_disconnect(p->clnt);
		until_released(&r);
	} else {
		rpcrdma_clnt_destroy(p->clnt);
		p->clnt = NULL;
		assert_int_equal(r.released, 1);
	}
	memset(r.mem, 0xdd, r.room.bytes);
	rpc_pair_release(p);
	if (p->clnt)
		echo_run(p, 10, 0);
	rpc_pair_settle(p);
	for (size_t i = 0; i < r.room.bytes; i++)
		assert_int_equal(r.mem[i], 0xdd);
out:
	rpc_pair_release(p);
	for (size_t i = 0; i < r.c.sink_bytes; i++)
		assert_int_equal(r.c.sink[i], 0xee);
	rpcrdma_clnt_destroy(p->clnt);
	p->clnt = NULL;
	assert_int_equal(r.released, 1);
	assert_int_equal(r.c.done, 1);
	room_fini(&r);
	rpc_pair_destroy(p);
}

static void late(void **state)
{
	if (stuck)
		skip();
	for (int kind = MALLOCED; kind <= REGISTERED; kind++)
		for (int end = LATE_REPLY; end <= DESTROY; end++)
			for (size_t sink = 0; sink <= 70000; sink += 70000) {
				given_up(*state, true, (enum end)end, kind, sink);
				given_up(*state, false, (enum end)end, kind, sink);
			}
}

/* A call that goes again uses the same room. */
static void retransmitted(void **state)
{
	struct rpc_pair *p = rpc_pair_create(*state);
	struct room_call r = { .kind = ALLOCED };

	echo_run(p, 10, 0);
	room_init(&r, p, ECHO_BOTH, 70000, 7, 9000, 90000);
	p->hold = true;
	echo_start(&r.c);
	rpc_pair_until(p, &p->nheld, 1);
	clnt_disconnect(p->clnt);
	rpc_pair_until(p, &p->ups, 2);
	assert_int_equal(r.released, 0);
	rpc_pair_release(p);
	until_done(&r, 0);
	assert_int_equal(r.released, 1);
	check_results(&r);
	room_fini(&r);
	/* and one that does not, returns it with its error */
	room_init(&r, p, ECHO_BOTH, 70000, 7, 9000, 90000);
	r.c.call.no_resend = true;
	p->hold = true;
	echo_start(&r.c);
	rpc_pair_until(p, &p->nheld, 1);
	clnt_disconnect(p->clnt);
	until_done(&r, -ECONNRESET);
	assert_int_equal(r.released_at_done, 1);
	rpc_pair_release(p);
	room_fini(&r);
	rpc_pair_destroy(p);
}

/* ---- a record in fragments ------------------------------------------------------------------ */

struct stream {
	struct rpc_pair pair; /* for echo_init(): only the client's side */
	int listener, sock;
};

static void stream_open(struct stream *s)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct rpcrdma_clnt_attr a = { .addr = { .transport = RPCRDMA_TCP, .host = "127.0.0.1" }, .backoff_ms = 1 };
	socklen_t len = sizeof(in);
	int one = 1;

	memset(s, 0, sizeof(*s));
	s->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(s->listener, (struct sockaddr *)&in, len), 0);
	assert_int_equal(listen(s->listener, 1), 0);
	assert_int_equal(getsockname(s->listener, (struct sockaddr *)&in, &len), 0);
	a.addr.port = ntohs(in.sin_port);
	assert_int_equal(rpcrdma_domain_create(NULL, &s->pair.clnt_domain), 0);
	assert_int_equal(rpcrdma_engine_create(s->pair.clnt_domain, NULL, &s->pair.clnt_engine), 0);
	assert_int_equal(rpcrdma_clnt_open(s->pair.clnt_engine, &a, &s->pair.clnt), 0);
	do {
		rpcrdma_engine_wait(s->pair.clnt_engine, 1);
		s->sock = accept(s->listener, NULL, NULL);
	} while (s->sock < 0);
	assert_int_equal(setsockopt(s->sock, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)), 0);
}

static void stream_close(struct stream *s)
{
	rpcrdma_clnt_destroy(s->pair.clnt);
	rpcrdma_engine_destroy(s->pair.clnt_engine);
	rpcrdma_domain_destroy(s->pair.clnt_domain);
	close(s->sock);
	close(s->listener);
}

/* Starts a call with a room of @reply_max bytes; Return: its XID, as the server reads it */
static uint32_t stream_call(struct stream *s, struct room_call *r, uint32_t reply_max)
{
	uint8_t buf[1024];

	r->kind = MALLOCED;
	room_init(r, &s->pair, ECHO_NULL, 0, 0, 0, reply_max);
	echo_start(&r->c);
	while (recv(s->sock, buf, sizeof(buf), MSG_DONTWAIT) < 48)
		rpcrdma_engine_wait(s->pair.clnt_engine, 1);
	return get_be32(buf + 4);
}

static void stream_poll(struct stream *s)
{
	for (int i = 0; i < 20; i++)
		rpcrdma_engine_poll(s->pair.clnt_engine);
}

/* A reply with @n bytes of results, in fragments of @step */
static void stream_reply(struct stream *s, uint32_t xid, uint32_t n, uint32_t step)
{
	uint8_t *msg = calloc(1, n + 28), *out = malloc(n + 28 + ((n + 24) / step + 2) * 4), *to = out;
	uint32_t all = n + 24;

	put_be32(msg, xid);
	put_be32(msg + 4, 1);
	echo_pattern(msg + 24, n, n);
	for (uint32_t at = 0; at < all; at += step) {
		uint32_t len = MIN(step, all - at);

		put_be32(to, len | (at + len == all ? LAST : 0));
		memcpy(to + 4, msg + at, len);
		to += 4 + len;
	}
	for (const uint8_t *at = out; at < to;) {
		ssize_t k = send(s->sock, at, (size_t)MIN(to - at, 5000), MSG_DONTWAIT | MSG_NOSIGNAL);

		if (k > 0)
			at += k;
		else
			assert_int_equal(errno, EAGAIN);
		stream_poll(s);
	}
	free(out);
	free(msg);
}

static void in_fragments(void **state)
{
	static const uint32_t sizes[] = { 0, 4, 100, 4000, 4096, 5000, 70000 }, steps[] = { 1, 7, 24, 28, 500, 9000, 1u << 20 };
	struct room_call r, bare;
	struct stream s;

	(void)state;
	stream_open(&s);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		for (size_t k = 0; k < ARRAY_SIZE(steps); k++) {
			uint8_t *want;
			uint32_t xid;

			if (sizes[i] / steps[k] > 5000)
				continue;
			want = malloc(sizes[i] + 1);
			xid = stream_call(&s, &r, sizes[i]);
			stream_reply(&s, xid + 77, sizes[i], steps[k]); /* of no call */
			stream_reply(&s, xid, sizes[i], steps[k]);
			assert_int_equal(r.c.done, 1);
			assert_int_equal(r.c.err, 0);
			assert_int_equal(r.released, 1);
			assert_int_equal(r.c.call.results_bytes, sizes[i]);
			echo_pattern(want, sizes[i], sizes[i]);
			assert_memory_equal(r.c.call.results, want, sizes[i]);
			free(want);
			room_fini(&r);
			/* four bytes too long, then given up in the middle: the next call goes on */
			xid = stream_call(&s, &r, sizes[i]);
			stream_reply(&s, xid, sizes[i] + 4, steps[k]);
			assert_int_equal(r.c.err, -EMSGSIZE);
			assert_int_equal(r.mem[r.room.bytes], 0xee);
			room_fini(&r);
			stream_call(&s, &bare, 100);
			rpcrdma_clnt_cancel(s.pair.clnt, &bare.c.call);
			assert_int_equal(bare.released, 1);
			room_fini(&bare);
		}
	stream_close(&s);
}

/* A call is cancelled while its reply arrives, and the rest is discarded; the next reply is longer than
 * RPCRDMA_BUF_MAX. */
static void cancelled_on_the_way(void **state)
{
	uint8_t msg[32] = { 0 }, rest[1000] = { 0 };
	struct room_call r;
	struct stream s;
	uint32_t xid;

	(void)state;
	for (int last = 0; last < 2; last++) {
		stream_open(&s);
		xid = stream_call(&s, &r, 2000);
		put_be32(msg, (last ? LAST : 0) | (28 + sizeof(rest)));
		put_be32(msg + 4, xid);
		put_be32(msg + 8, 1);
		assert_int_equal(send(s.sock, msg, 32, 0), 32);
		stream_poll(&s);
		rpcrdma_clnt_cancel(s.pair.clnt, &r.c.call);
		assert_int_equal(r.released, 1);
		memset(r.mem, 0xdd, r.room.bytes);
		assert_int_equal(send(s.sock, rest, sizeof(rest), 0), sizeof(rest));
		if (!last) {
			put_be32(msg, LAST | 4);
			assert_int_equal(send(s.sock, msg, 8, 0), 8);
		}
		stream_poll(&s);
		for (size_t i = 0; i < r.room.bytes; i++)
			assert_int_equal(r.mem[i], 0xdd);
		room_fini(&r);
		xid = stream_call(&s, &r, 20u << 20);
		stream_reply(&s, xid, 20u << 20, 100000);
		assert_int_equal(r.c.err, 0);
		assert_int_equal(r.c.call.results_bytes, 20u << 20);
		room_fini(&r);
		stream_close(&s);
	}
}

#define OVER(test, how) { #test " " #how, test, NULL, NULL, (void *)(uintptr_t)&how }

int main(void)
{
	const struct CMUnitTest tests[] = {
		OVER(heads_of_all_sizes, over_local), OVER(heads_of_all_sizes, over_tcp),
		OVER(heads_of_all_sizes, over_windows), OVER(heads_of_all_sizes, over_dynamic),
		OVER(heads_of_all_sizes, over_chaos),
		OVER(payload, over_local), OVER(payload, over_tcp), OVER(payload, over_windows),
		OVER(payload, over_dynamic), OVER(payload, over_chaos),
		OVER(no_registration_per_call, over_local),
		OVER(too_long, over_local), OVER(too_long, over_tcp), OVER(too_long, over_windows),
		OVER(bad_room, over_local), OVER(bad_room, over_tcp),
		OVER(late, over_local), OVER(late, over_tcp), OVER(late, over_windows),
		OVER(late, over_dynamic), OVER(late, over_chaos),
		OVER(retransmitted, over_local), OVER(retransmitted, over_tcp), OVER(retransmitted, over_windows),
		cmocka_unit_test(in_fragments),
		cmocka_unit_test(cancelled_on_the_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
