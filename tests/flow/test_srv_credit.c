/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_srv_credit.c - the responder's receives: as many as are granted, and no more memory than there is
 *
 * The counters are those of the pool: what is pinned for messages, what of it is lent for receives.
 */
#include "base/clock.h"
#include "pool.h"
#include "srv_rdma.h"
#include "srv_talk.h"

#define KIB ((size_t)1024)
#define MSG 4096u
#define EXTRA 4u /* receives beside those that are granted */
#define PEERS 20

static struct raw_peer peers[PEERS];
static const struct raw_opts wide = { .priv = &priv4k, .recvs = RAW_RECVS };

static struct rpcrdma_pool_stats pool(void)
{
	struct rpcrdma_pool_stats s;

	rpcrdma_domain_pool_stats(svc.domain, &s);
	return s;
}

/* receives that are lent at this moment */
static unsigned receives(void)
{
	return (unsigned)(atomic_load(&svc.domain->recv_bytes) / MSG);
}

static uint32_t credits_of(const uint8_t *msg, uint32_t len)
{
	struct rr_hdr h;
	size_t hdr_len;

	assert_non_null(msg);
	assert_int_equal(rr_hdr_decode(msg, len, &h, &hdr_len), 0);
	return h.credits;
}

static void make_get(uint32_t wanted)
{
	get_args(16, WIRE_PLACE);
	m.hdr.credits = wanted;
	finish_msg();
}

/* @n calls at once, none of which is answered before all are there; Return: what the last answer grants */
static uint32_t burst(struct raw_peer *p, uint32_t n, uint32_t wanted)
{
	uint32_t granted = 0, len;

	make_get(wanted);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(raw_send_blind(p, m.raw, m.raw_len), RR_WC_OK);
	svc.hold = true;
	raw_settle(p);
	wire_svc_release(&svc);
	for (uint32_t i = 0; i < n; i++) {
		const uint8_t *got = raw_recv(p, &len);

		granted = credits_of(got, len);
	}
	return granted;
}

static uint32_t one_call(struct raw_peer *p, uint32_t wanted)
{
	uint32_t len;
	const uint8_t *got;

	begin(RR_MSG);
	rpc_call(WIRE_PROG, WIRE_VERS, WIRE_NULL);
	m.hdr.credits = wanted;
	got = ask(p, &len);
	return credits_of(got, len);
}

/* until no more is granted */
static uint32_t grow(struct raw_peer *p)
{
	uint32_t granted = one_call(p, 1000), had;

	do {
		had = granted;
		granted = burst(p, had, 1000);
	} while (granted > had && granted < 64);
	return granted;
}

/* A test that counts receives: what is kept for their calls is not charged. */
static void charge_no_calls(void)
{
	list_for_each(n, &svc.engine->conns)
		rr_rconn_of(list_entry(n, struct rpcrdma_conn, link))->ep->call_bytes = 0;
}

static void serve_in(size_t msg_bytes, uint32_t stall_ms)
{
	struct rpcrdma_domain_attr domain = { .msg_bytes_max = msg_bytes };
	struct rpcrdma_svc_attr attr = { .stall_ms = stall_ms };

	serve_with(&domain, &attr);
	assert_int_equal(receives(), 0);
}

/* ---- what a connection costs ---- */

static void who_just_came_pins_little(void **state)
{
	struct rpcrdma_pool_stats first, all;

	(void)state;
	serve_in(0, 0);
	assert_int_equal(pool().msgs, 0);
	connect_peer(&opts4k);
	assert_int_equal(one_call(&peer, 1000), 8);
	first = pool();
	assert_int_equal(receives(), 8 + EXTRA);
	assert_in_range(first.msgs + first.pinned, 8 * MSG, 256 * KIB);
	for (unsigned i = 0; i < PEERS; i++) {
		assert_int_equal(raw_open(&peers[i], svc.engine, path, &opts4k), 0);
		assert_int_equal(one_call(&peers[i], 1000), 8);
	}
	all = pool();
	assert_int_equal(receives(), (PEERS + 1) * (8 + EXTRA));
	/* a chunk more or less; and messages that answer are shared */
	assert_true(all.msgs + all.pinned <=
		    first.msgs + first.pinned + PEERS * (8 + EXTRA) * MSG + 64 * KIB);
	for (unsigned i = 0; i < PEERS; i++)
		raw_close(&peers[i]);
	raw_settle(&peer);
	assert_int_equal(receives(), 8 + EXTRA);
}

static void who_asks_for_less_has_less(void **state)
{
	(void)state;
	serve_in(0, 0);
	connect_peer(&wide);
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(one_call(&peer, 2), 2);
	assert_int_equal(receives(), 2 + EXTRA);
	assert_int_equal(one_call(&peer, 1000), 8);
	assert_int_equal(receives(), 8 + EXTRA);
	assert_int_equal(grow(&peer), 64);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(one_call(&peer, 1), 1);
	assert_int_equal(receives(), 1 + EXTRA);
}

static void receives_are_added_when_a_call_arrives(void **state)
{
	const uint8_t *got;
	uint32_t len;

	(void)state;
	serve_in(0, 0);
	connect_peer(&wide);
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(one_call(&peer, 2), 2);
	assert_int_equal(receives(), 2 + EXTRA);
	make_get(1000);
	assert_int_equal(raw_send_blind(&peer, m.raw, m.raw_len), RR_WC_OK);
	svc.hold = true;
	raw_settle(&peer);
	assert_int_equal(receives(), 8 + EXTRA); /* nothing was replied yet */
	wire_svc_release(&svc);
	got = raw_recv(&peer, &len);
	assert_int_equal(credits_of(got, len), 8);
	assert_int_equal(receives(), 8 + EXTRA);
}

/* ---- and back ---- */

static void tick(void)
{
	list_for_each(n, &svc.engine->conns) {
		struct rpcrdma_conn *c = list_entry(n, struct rpcrdma_conn, link);

		c->timer.fn(&c->timer);
	}
}

static uint32_t calls(struct raw_peer *p, unsigned n)
{
	uint32_t granted = 0;

	while (n-- > 0)
		granted = one_call(p, 1000);
	return granted;
}

/* A client that uses its credits keeps them; one that uses less than half has half of them left, each time. */
static void credits_follow_demand(void **state)
{
	(void)state;
	serve_in(0, 0);
	connect_peer(&wide);
	assert_int_equal(grow(&peer), 64);
	assert_int_equal(receives(), 64 + EXTRA);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(burst(&peer, 64, 1000), 64);
		tick();
	}
	assert_int_equal(calls(&peer, 3), 64);
	for (uint32_t left = 32; left >= 8; left /= 2) {
		tick();
		assert_int_equal(calls(&peer, 100), left);
		assert_int_equal(receives(), left + EXTRA);
	}
	tick();
	assert_int_equal(calls(&peer, 3), 8); /* never less than a new one has */
	assert_int_equal(grow(&peer), 64); /* and it all comes again with demand */
	tick();
	tick(); /* silence: nothing can be taken back yet ... */
	assert_int_equal(receives(), 64 + EXTRA);
	assert_int_equal(calls(&peer, 1), 8); /* ... but is from the first answer on */
	assert_int_equal(receives(), 64 + EXTRA - 1);
	assert_int_equal(calls(&peer, 99), 8);
	assert_int_equal(receives(), 8 + EXTRA);
}

/* By itself, and what they were cut from is unpinned, whole chunks of it. */
static void idle_memory_is_unpinned(void **state)
{
	uint64_t end = clock_now_ns() + 20 * NS_PER_S;

	(void)state;
	serve_in(0, 20);
	svc.domain->pool_idle_ns = NS_PER_MS;
	connect_peer(&wide);
	assert_int_equal(grow(&peer), 64);
	assert_true(pool().msgs >= 68 * MSG);
	while (pool().msgs > 3 * 64 * KIB || receives() > 8 + EXTRA) {
		(void)one_call(&peer, 1000);
		assert_true(clock_now_ns() < end);
	}
	assert_true(pool().given_back >= 2);
	assert_true(pool().msgs_most >= 68 * MSG);
}

/* Every chunk has a receive that is in use, until their calls return. */
static void what_is_left_is_brought_together(void **state)
{
	struct rr_pool *zone;
	unsigned left;

	(void)state;
	serve_in(0, 0);
	zone = &svc.domain->pools[RR_ZONE_RECVS];
	for (unsigned i = 0; i < PEERS; i++)
		assert_int_equal(raw_open(&peers[i], svc.engine, path, &opts4k), 0);
	assert_int_equal(zone->bytes, PEERS * (8 + EXTRA) * MSG);
	for (unsigned n = 0; n < 40; n++)
		for (unsigned i = 0; i < PEERS; i++)
			assert_int_equal(one_call(&peers[i], 1), 1);
	left = PEERS * (1 + EXTRA);
	assert_int_equal(receives(), left);
	svc.domain->pool_idle_ns = 0;
	pthread_mutex_lock(&svc.domain->lock);
	(void)!rr_pool_trim(svc.domain);
	pthread_mutex_unlock(&svc.domain->lock);
	assert_true(zone->bytes <= 2 * left * MSG);
	for (unsigned i = 0; i < PEERS; i++) {
		assert_int_equal(one_call(&peers[i], 1000), 8);
		raw_close(&peers[i]);
	}
	connect_peer(&opts4k);
}

/* Fewer are granted while as many as before are on their way: all of them are served. */
static void reduction_is_honoured_as_calls_return(void **state)
{
	uint32_t len, low = 64;

	(void)state;
	serve_in(RPCRDMA_MSG_BYTES_MIN, 0); /* 192 receives, of which 96 are for growth */
	connect_peer(&wide);
	(void)one_call(&peer, 1000);
	charge_no_calls();
	assert_int_equal(grow(&peer), 64);
	assert_int_equal(raw_open(&peers[0], svc.engine, path, &wide), 0);
	assert_int_equal(one_call(&peers[0], 1000), 8);
	charge_no_calls();
	assert_int_equal(burst(&peers[0], 8, 1000), 16);
	assert_int_equal(burst(&peers[0], 16, 1000), 16); /* wants more than there is */
	make_get(1000);
	for (unsigned i = 0; i < 64; i++) {
		assert_int_equal(raw_send_blind(&peer, m.raw, m.raw_len), RR_WC_OK);
		if (i == 8) /* the first answers grant less; their peer has not looked yet */
			while (rpcrdma_engine_poll(svc.engine) > 0)
				;
	}
	for (unsigned i = 0; i < 64; i++) {
		const uint8_t *got = raw_recv(&peer, &len);
		uint32_t granted = credits_of(got, len);

		low = MIN(low, granted);
	}
	assert_in_range(low, 8, 32);
	assert_true(raw_alive(&peer));
	for (unsigned i = 0; i < 64; i++)
		low = one_call(&peer, 1000);
	assert_int_equal(receives(), low + EXTRA + 16 + EXTRA);
	raw_close(&peers[0]);
}

/* ---- what is kept for calls ---- */

/* The calls of the first receives are part of a connection; the others count with all that is kept for them,
 * here and by the service. */
static void what_the_service_keeps_counts(void **state)
{
	static const struct rpcrdma_svc_attr attr = { .req_bytes = 7 * MSG };
	static const struct rpcrdma_domain_attr domain = { .msg_bytes_max = RPCRDMA_MSG_BYTES_MIN };
	uint32_t granted;

	(void)state;
	serve_with(&domain, &attr); /* 144 receives for one client, or as much as they take */
	connect_peer(&wide);
	granted = one_call(&peer, 1000);
	assert_int_equal(granted, 8);
	for (unsigned i = 0; i < 5; i++)
		granted = burst(&peer, granted, 1000);
	assert_in_range(granted, 20, 8 + (144 - 8 - EXTRA) * MSG / (8 * MSG + RR_CALL_KEPT) + 1);
	assert_int_equal(receives(), granted + EXTRA);
	for (unsigned n = 0; n < 3; n++) {
		tick();
		(void)calls(&peer, 100);
	}
	assert_int_equal(receives(), 8 + EXTRA);
	for (unsigned i = 0; i < 5; i++) /* what went back is there for the next */
		(void)burst(&peer, 8, 1000);
	assert_true(receives() > 8 + EXTRA);
}

static const struct rr_rconn *only_conn(void)
{
	return rr_rconn_of(list_entry(list_first(&svc.engine->conns), struct rpcrdma_conn, link));
}

static size_t list_len(const struct list *l)
{
	size_t n = 0;

	list_for_each(x, l)
		n++;
	return n;
}

/* Bytes of transfers and requests, none of which is in use. */
static size_t kept(void)
{
	const struct rr_rconn *c = only_conn();

	return list_len(&c->free_rws) * sizeof(struct rr_rw) +
	       list_len(&c->base.free_reqs) * sizeof(struct rr_rreq);
}

static void put_of_64_segments(void)
{
	struct region *r = nregions ? &regions[0] : offer(4096, READABLE | WRITABLE);
	uint32_t pos = put_args(RR_MSG, 64);

	pattern(r->mem, 64);
	for (unsigned i = 0; i < 64; i++)
		add_read(pos, seg(r, i, 1));
	m.hdr.credits = 1000;
	finish_msg();
}

static void get_of_64_segments(void)
{
	get_args(64, WIRE_PLACE);
	for (unsigned i = 0; i < 64; i++)
		add_write_seg(0, seg(&regions[0], 1024 + i, 1));
	m.hdr.credits = 1000;
	finish_msg();
}

static void send_all(unsigned n)
{
	uint32_t len;

	for (unsigned i = 0; i < n; i++)
		assert_int_equal(raw_send_blind(&peer, m.raw, m.raw_len), RR_WC_OK);
	raw_settle(&peer);
	for (unsigned i = 0; i < n; i++)
		assert_non_null(raw_recv(&peer, &len));
}

/* However many segments calls have, there are transfers for what can be under way. */
static void transfers_are_bounded(void **state)
{
	(void)state;
	serve_in(0, 0);
	connect_peer(&wide);
	assert_int_equal(one_call(&peer, 1000), 8);
	put_of_64_segments();
	send_all(8);
	get_of_64_segments();
	send_all(8);
	assert_in_range(kept(), 1, 8 * RR_CALL_KEPT + 16 * sizeof(struct rr_rw));
	assert_true(kept() < 96 * KIB);
	assert_int_equal(grow(&peer), 64);
	put_of_64_segments();
	send_all(64);
	get_of_64_segments();
	send_all(64);
	assert_true(kept() < 96 * KIB + rr_client_used(only_conn()->base.client, RR_SHARE_RECVS));
	tick();
	(void)calls(&peer, 1);
	tick();
	(void)calls(&peer, 1);
	tick();
	assert_true(kept() <= 8 * (sizeof(struct rr_rw) + sizeof(struct rr_rreq)));
	assert_true(raw_alive(&peer));
}

/* ---- when there is too little ---- */

static void memory_says_how_many(void **state)
{
	unsigned n = 0;
	int rc = 0;

	(void)state;
	serve_in(RPCRDMA_MSG_BYTES_MIN, 0); /* 192 receives, 144 of them for one client */
	connect_peer(&wide);
	(void)one_call(&peer, 1000);
	charge_no_calls();
	assert_int_equal(grow(&peer), 64);
	for (; n < PEERS; n++) {
		rc = raw_open(&peers[n], svc.engine, path, &wide);
		if (rc)
			break;
		/* of its own it has the 8 at most, and fewer at the end */
		assert_int_equal(burst(&peers[n], 1, 1000), n < 5 ? 8 : 4);
		charge_no_calls();
		/* the first one finds room to grow, in the half that is for that */
		assert_int_equal(burst(&peers[n], n < 5 ? 8 : 4, 1000), n ? n < 5 ? 8 : 4 : 16);
	}
	assert_int_equal(receives(), 144);
	assert_true(pool().msgs <= RPCRDMA_MSG_BYTES_MIN);
	assert_int_equal(n, 6);
	assert_int_equal(rc, -ECONNREFUSED);
	assert_int_equal(svc.refused, 1);
	assert_int_equal(svc.refused_err, -ENOBUFS);
	raw_close(&peers[n]);
	/* the first does not use its own: answer by answer it leaves them to the others */
	for (unsigned i = 0; i < 200; i++)
		(void)one_call(&peer, 1000);
	assert_int_equal(raw_open(&peers[n], svc.engine, path, &wide), 0);
	assert_int_equal(one_call(&peers[n++], 1000), 8);
	while (n > 0)
		raw_close(&peers[--n]);
}

/* A client with as many connections as it can get leaves receives for others, and those may also grow. */
static void clients_leave_receives(void **state)
{
	const struct rpcrdma_client_id id = { .kind = RPCRDMA_CLIENT_IPV4, .key = 1 };
	struct rr_client *other;
	unsigned n = 0;

	(void)state;
	serve_in(RPCRDMA_MSG_BYTES_MIN, 0);
	while (n < PEERS && !raw_open(&peers[n], svc.engine, path, &opts4k))
		n++;
	assert_int_equal(n, 144 / (8 + EXTRA));
	assert_int_equal(rr_client_get(&svc.domain->clients, &id, &other), 0);
	assert_int_equal(rr_client_charge(other, RR_SHARE_RECVS, (8 + EXTRA) * MSG), 0);
	rr_client_uncharge(other, RR_SHARE_RECVS, (8 + EXTRA) * MSG);
	raw_close(&peers[n]); /* which was refused */
	while (n > 0)
		raw_close(&peers[--n]);

	/* the other one holds more than half of all */
	assert_int_equal(rr_client_charge(other, RR_SHARE_RECVS, 100 * MSG), 0);
	atomic_fetch_add(&svc.domain->recv_bytes, 100 * MSG);
	connect_peer(&wide);
	assert_int_equal(one_call(&peer, 1000), 8);
	charge_no_calls();
	assert_int_equal(burst(&peer, 8, 1000), 16);
	assert_int_equal(burst(&peer, 16, 1000), 32);
	assert_int_equal(burst(&peer, 32, 1000), 32); /* half of an equal part: 48 */
	atomic_fetch_sub(&svc.domain->recv_bytes, 100 * MSG);
	rr_client_uncharge(other, RR_SHARE_RECVS, 100 * MSG);
	rr_client_put(other);
}

/* Answers wait for a message to answer in; none is lost, and no connection. */
static void answers_wait_for_messages(void **state)
{
	struct rpcrdma_buf *taken[64];
	struct rpcrdma_stats before, after;
	unsigned n = 0;
	uint32_t len;

	(void)state;
	serve_in(RPCRDMA_MSG_BYTES_MIN, 0);
	connect_peer(&wide);
	assert_int_equal(one_call(&peer, 1000), 8);
	raw_settle(&peer);
	while (!rr_buf_get(svc.engine, RR_ZONE_SENDS, MSG, &taken[n]))
		n++;
	assert_int_equal(n, 64);
	rpcrdma_domain_stats(svc.domain, &before);
	make_get(8);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(raw_send(&peer, m.raw, m.raw_len), RR_WC_OK);
	expect_nothing();
	rpcrdma_domain_stats(svc.domain, &after);
	assert_int_equal(after.calls - before.calls, 8);
	assert_int_equal(after.buf_waits - before.buf_waits, 8 + 1); /* and their client waits, for the pool */
	rpcrdma_buf_put(svc.engine, taken[--n]); /* one is enough for all of them, one by one */
	for (unsigned i = 0; i < 8; i++) {
		const uint8_t *got = raw_recv(&peer, &len);

		assert_int_equal(credits_of(got, len), 8);
	}
	assert_true(raw_alive(&peer));
	make_get(8);
	for (unsigned i = 0; i < 4; i++) /* the line is empty when its connection has gone */
		assert_int_equal(raw_send_blind(&peer, m.raw, m.raw_len), RR_WC_OK);
	while (!rr_buf_get(svc.engine, RR_ZONE_SENDS, MSG, &taken[n]))
		n++;
	raw_settle(&peer);
	close_peer();
	while (n > 0)
		rpcrdma_buf_put(svc.engine, taken[--n]);
	connect_peer(&opts4k);
}

/* ---- clients that use more than they were granted ---- */

/* Over what it was granted it may be by the few receives for other messages; then it is out. */
static void over_its_credits_is_out(void **state)
{
	unsigned sent = 0;

	(void)state;
	serve_in(0, 0);
	connect_peer(&wide);
	assert_int_equal(raw_open(&peers[0], svc.engine, path, &opts4k), 0);
	assert_int_equal(grow(&peer), 64);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(one_call(&peer, 1), 1);
	svc.hold = true;
	make_get(1);
	for (; sent < 200; sent++)
		if (raw_send(&peer, m.raw, m.raw_len) != RR_WC_OK)
			break;
	assert_in_range(sent, 1, 1 + EXTRA + 1);
	assert_false(raw_alive(&peer));
	wire_svc_release(&svc);
	assert_int_equal(one_call(&peers[0], 1000), 8);
	raw_close(&peers[0]);
}

/* A call that gets no answer is none that its peer has too many of. */
static void dropped_calls_are_forgotten(void **state)
{
	(void)state;
	serve_in(0, 0);
	connect_peer(&opts4k);
	assert_int_equal(one_call(&peer, 1000), 8);
	for (unsigned i = 0; i < 100; i++) {
		begin(RR_MSG);
		rpc_call(WIRE_PROG, WIRE_VERS, WIRE_DROP);
		say();
		expect_nothing();
	}
	assert_int_equal(svc.drops, 100);
	assert_int_equal(one_call(&peer, 1000), 8);
	assert_true(receives() >= 8 + EXTRA);
	assert_int_equal(calls(&peer, 200), 8);
	assert_int_equal(receives(), 8 + EXTRA);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		wire_test(who_just_came_pins_little),
		wire_test(who_asks_for_less_has_less),
		wire_test(receives_are_added_when_a_call_arrives),
		wire_test(credits_follow_demand),
		wire_test(idle_memory_is_unpinned),
		wire_test(what_is_left_is_brought_together),
		wire_test(reduction_is_honoured_as_calls_return),
		wire_test(what_the_service_keeps_counts),
		wire_test(transfers_are_bounded),
		wire_test(memory_says_how_many),
		wire_test(clients_leave_receives),
		wire_test(answers_wait_for_messages),
		wire_test(over_its_credits_is_out),
		wire_test(dropped_calls_are_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
