/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_srv_shared.c - receives that all connections share: how many there are, and which connections may use them
 */
#include "base/clock.h"
#include "pool.h"
#include "srv_rdma.h"
#include "srv_talk.h"

#define MSG 4096u
#define FIRST 64u /* receives to begin with */
#define EXTRA 4u /* beside its own, of a queue pair without shared ones */
#define PEERS 20
#define TEN 10u

static struct raw_peer peers[PEERS];
static struct rpcrdma_buf *taken[256];
static unsigned ntaken;
static const struct raw_opts wide = { .priv = &priv4k, .recvs = RAW_RECVS };
static const struct rpcrdma_svc_attr shared = { .srq = true };
static const struct rpcrdma_domain_attr small = { .msg_bytes_max = RPCRDMA_MSG_BYTES_MIN }; /* 192 receives */

static struct rpcrdma_stats stats(void)
{
	struct rpcrdma_stats s;

	rpcrdma_domain_stats(svc.domain, &s);
	return s;
}

static unsigned receives(void)
{
	return (unsigned)(atomic_load(&svc.domain->recv_bytes) / MSG);
}

static void make_get(uint32_t wanted)
{
	get_args(16, WIRE_PLACE);
	m.hdr.credits = wanted;
	finish_msg();
}

/* Return: what the next answer grants */
static uint32_t answer(struct raw_peer *p)
{
	uint32_t len;
	const uint8_t *got = raw_recv(p, &len);
	struct rr_hdr h;
	size_t hdr_len;

	assert_non_null(got);
	assert_int_equal(rr_hdr_decode(got, len, &h, &hdr_len), 0);
	return h.credits;
}

static uint32_t one_call(struct raw_peer *p, uint32_t wanted)
{
	make_get(wanted);
	assert_int_equal(raw_send(p, m.raw, m.raw_len), RR_WC_OK);
	return answer(p);
}

static void send_calls(struct raw_peer *p, unsigned n)
{
	make_get(1000);
	while (n-- > 0)
		assert_int_equal(raw_send_blind(p, m.raw, m.raw_len), RR_WC_OK);
}

static uint32_t answers(struct raw_peer *p, unsigned n)
{
	uint32_t granted = 0;

	while (n-- > 0)
		granted = answer(p);
	return granted;
}

/* n calls more that are held. A pool that is looked after every millisecond would never settle where that
 * takes longer. */
static void hold_calls(struct raw_peer *p, unsigned n)
{
	uint64_t end = clock_now_ns() + 20 * NS_PER_S;
	unsigned wanted = svc.nheld + n;

	svc.hold = true;
	send_calls(p, n);
	while (svc.nheld < wanted) {
		(void)rpcrdma_engine_poll(svc.engine);
		assert_true(clock_now_ns() < end);
	}
}

/* n calls that are all held at once */
static uint32_t burst(struct raw_peer *p, unsigned n)
{
	hold_calls(p, n);
	wire_svc_release(&svc);
	return answers(p, n);
}

static void open_peers(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(raw_open(&peers[i], svc.engine, path, &wide), 0);
}

static void close_peers(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		raw_close(&peers[i]);
}

/* Very many that do little take as much as one. */
static void as_many_as_are_in_use(void **state)
{
	(void)state;
	serve_with(NULL, &shared);
	assert_int_equal(receives(), 0);
	connect_peer(&wide);
	assert_int_equal(receives(), FIRST);
	open_peers(PEERS);
	for (unsigned round = 0; round < 3; round++)
		for (unsigned i = 0; i < PEERS; i++)
			assert_int_equal(one_call(&peers[i], 1000), 8);
	assert_int_equal(receives(), FIRST);
	assert_int_equal(stats().shared_recvs, FIRST);
	close_peers(PEERS);
	assert_int_equal(one_call(&peer, 1000), 8);
	assert_int_equal(receives(), FIRST); /* all of them came back */
}

/* At the low watermark there come to be more; when they are not needed any more they go. */
static void refilled_and_shrunk(void **state)
{
	uint64_t end = clock_now_ns() + 20 * NS_PER_S;
	uint32_t granted = 8;

	(void)state;
	serve_with(NULL, &shared);
	svc.domain->pool_idle_ns = NS_PER_MS;
	open_peers(8);
	for (unsigned i = 0; i < 8; i++) /* 8 each: 64 at once, but one after the other */
		assert_int_equal(burst(&peers[i], 8), 16);
	assert_int_equal(receives(), FIRST);
	for (unsigned i = 0; i < 8; i++) /* at once: more than three quarters of them */
		hold_calls(&peers[i], 8);
	assert_int_equal(receives(), 2 * FIRST);
	wire_svc_release(&svc);
	for (unsigned i = 0; i < 8; i++)
		(void)answers(&peers[i], 8);
	while (granted < 64)
		granted = burst(&peers[0], granted);
	assert_int_equal(granted, 64);
	while (receives() > FIRST) {
		(void)one_call(&peers[1], 1000);
		assert_true(clock_now_ns() < end);
	}
	assert_int_equal(receives(), FIRST);
	svc.domain->pool_idle_ns = RR_POOL_IDLE_NS;
	assert_int_equal(burst(&peers[0], 64), 64);
	close_peers(8);
	connect_peer(&wide);
}

/* There are no more receives than were promised. */
static void no_more_than_are_promised(void **state)
{
	(void)state;
	serve_with(NULL, &shared);
	open_peers(9);
	svc.hold = true;
	make_get(8);
	for (unsigned i = 0; i < 9 * 8; i++)
		assert_int_equal(raw_send_blind(&peers[i / 8], m.raw, m.raw_len), RR_WC_OK);
	raw_settle(&peers[0]);
	assert_int_equal(svc.nheld, 9 * 8);
	assert_int_equal(receives(), 9 * 8);
	wire_svc_release(&svc);
	close_peers(9);
	connect_peer(&wide);
}

/* No peer may use more of them than it was granted, and one that does is disconnected; the others have
 * not lost one. */
static void a_flood_is_one_peers_end(void **state)
{
	unsigned sent = 0, served = 0;

	(void)state;
	serve_with(NULL, &shared);
	connect_peer(&wide);
	open_peers(4);
	assert_int_equal(one_call(&peer, 1000), 8);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(one_call(&peers[i], 1000), 8);
	svc.hold = true;
	make_get(1000);
	for (; sent < 1000; sent++) {
		if (raw_send(&peer, m.raw, m.raw_len) != RR_WC_OK)
			break;
		if (sent % 4)
			continue;
		svc.hold = false; /* the others are served while it goes on */
		assert_int_equal(one_call(&peers[sent / 4 % 4], 1000), 8);
		served++;
		svc.hold = true;
		make_get(1000);
	}
	assert_in_range(sent, 8, 8 + 2);
	assert_false(raw_alive(&peer));
	assert_int_equal(stats().dropped, 1);
	wire_svc_release(&svc);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(one_call(&peers[i], 1000), 8);
	assert_true(served > 0);
	assert_int_equal(receives(), FIRST);
	close_peers(4);
}

/* One that sends all it can without looking, between two looks of the server. */
static void a_flood_at_one_go(void **state)
{
	unsigned sent = 0;

	(void)state;
	serve_with(NULL, &shared);
	connect_peer(&wide);
	open_peers(2);
	assert_int_equal(one_call(&peers[0], 1000), 8);
	assert_int_equal(one_call(&peer, 1000), 8);
	make_get(1000);
	while (raw_send_blind(&peer, m.raw, m.raw_len) == RR_WC_OK)
		sent++;
	assert_in_range(sent, 64, 64 + 4); /* what one may have in its ring, however much is there */
	assert_int_equal(one_call(&peers[0], 1000), 8);
	assert_false(raw_alive(&peer));
	assert_int_equal(one_call(&peers[1], 1000), 8);
	raw_settle(&peers[0]);
	assert_int_equal(receives(), stats().shared_recvs);
	close_peers(2);
}

/* A message that is to invalidate what is no key of ours, or is longer than said, ends its own
 * connection; the receive it took is there for others. */
static void bad_messages_cost_nobody_else(void **state)
{
	struct rr_wr wr = { .op = RR_WR_SEND_INV, .flags = RR_WR_SIGNALED, .sge = { .len = 100 } };
	uint8_t big[MSG + 1] = { 0 };

	(void)state;
	serve_with(NULL, &shared);
	open_peers(4);
	/* more of them than there are receives */
	for (unsigned round = 0; round < 2 * FIRST; round++) {
		connect_peer(&wide);
		if (round % 6 == 5) {
			assert_int_not_equal(raw_send(&peer, big, sizeof(big)), RR_WC_OK);
		} else {
			wr.sge.addr = peer.mem;
			wr.sge.mr = peer.mr;
			wr.done = &peer.send_done;
			wr.rkey = 0x12340000u + round;
			assert_int_equal(rr_post_send(peer.qp, &wr), 0);
		}
		assert_false(raw_alive(&peer));
		close_peer();
		assert_int_equal(one_call(&peers[round % 4], 1000), 8);
	}
	/* half of them in use: the queue does not grow */
	svc.hold = true;
	for (unsigned i = 0; i < 4; i++)
		send_calls(&peers[i], 8);
	raw_settle(&peers[0]);
	assert_int_equal(receives(), FIRST);
	wire_svc_release(&svc);
	for (unsigned i = 0; i < 4; i++)
		(void)answers(&peers[i], 8);
	close_peers(4);
	connect_peer(&wide);
}

/* The queue cannot grow, as if others had the rest of the zone. */
static void take_zone(void)
{
	while (!rr_buf_get(svc.engine, RR_ZONE_RECVS, MSG, &taken[ntaken]))
		ntaken++;
	assert_int_equal(ntaken + FIRST, 192);
}

static void give_zone_back(void)
{
	while (ntaken > 0)
		rpcrdma_buf_put(svc.engine, taken[--ntaken]);
}

/* The queue grew by fewer receives than it should have: these go back as well. */
static void a_few_more_go_back(void **state)
{
	uint64_t end = clock_now_ns() + 20 * NS_PER_S;

	(void)state;
	serve_with(&small, &shared);
	svc.domain->pool_idle_ns = NS_PER_MS;
	open_peers(TEN);
	for (unsigned i = 0; i < TEN; i++)
		assert_int_equal(one_call(&peers[i], 1000), 8);
	take_zone();
	for (unsigned i = 0; i < 10; i++)
		rpcrdma_buf_put(svc.engine, taken[--ntaken]);
	for (unsigned i = 0; i < TEN; i++)
		hold_calls(&peers[i], 7);
	assert_int_equal(receives(), FIRST + 10);
	wire_svc_release(&svc);
	for (unsigned i = 0; i < TEN; i++)
		(void)answers(&peers[i], 7);
	while (receives() > FIRST) {
		(void)one_call(&peers[1], 1000);
		assert_true(clock_now_ns() < end);
	}
	svc.domain->pool_idle_ns = RR_POOL_IDLE_NS;
	give_zone_back();
	close_peers(TEN);
	connect_peer(&wide);
}

/* A queue that began with three receives, since there were no more, grows when there are. */
static void begins_with_few(void **state)
{
	(void)state;
	serve_with(&small, &shared);
	while (!rr_buf_get(svc.engine, RR_ZONE_RECVS, MSG, &taken[ntaken]))
		ntaken++;
	for (unsigned i = 0; i < 3; i++)
		rpcrdma_buf_put(svc.engine, taken[--ntaken]);
	open_peers(4);
	assert_int_equal(receives(), 3);
	give_zone_back();
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(one_call(&peers[i], 1000), 8);
	for (unsigned i = 0; i < 4; i++)
		hold_calls(&peers[i], 8);
	wire_svc_release(&svc);
	for (unsigned i = 0; i < 4; i++)
		(void)answers(&peers[i], 8);
	close_peers(4);
	connect_peer(&wide);
}

/* Ten connections, which were promised 80 receives and use all that they were granted, while there are 64.
 * Return: how many calls */
static unsigned use_more_than_there_is(uint32_t granted[TEN])
{
	unsigned all = 0;

	open_peers(TEN);
	take_zone();
	for (unsigned i = 0; i < TEN; i++)
		granted[i] = one_call(&peers[i], 1000);
	svc.hold = true;
	for (unsigned i = 0; i < TEN; i++) {
		send_calls(&peers[i], granted[i]);
		all += granted[i];
	}
	assert_true(all > FIRST);
	for (unsigned i = 0; i < TEN; i++)
		raw_settle(&peers[i]);
	return all;
}

/* When there is nothing left, messages wait: no call is lost, and no connection. */
static void an_empty_queue_is_waited_for(void **state)
{
	uint32_t granted[TEN];
	unsigned all;

	(void)state;
	serve_with(&small, &shared);
	all = use_more_than_there_is(granted);
	assert_int_equal(receives(), FIRST);
	assert_int_equal(stats().calls, TEN + FIRST);
	assert_true(atomic_load(&svc.domain->recv_short) > 0);
	wire_svc_release(&svc);
	svc.hold = false;
	for (unsigned i = 0; i < TEN; i++)
		(void)answers(&peers[i], granted[i]);
	assert_int_equal(stats().calls, TEN + all);
	for (unsigned i = 0; i < TEN; i++)
		assert_true(raw_alive(&peers[i]));
	close_peers(TEN);
	give_zone_back();
	connect_peer(&wide);
}

/* All receives are held, for as long as they like: when there is memory again, the others are served. */
static void an_empty_queue_is_refilled(void **state)
{
	uint64_t end = clock_now_ns() + 20 * NS_PER_S;
	uint32_t granted[TEN];
	unsigned all;

	(void)state;
	serve_with(&small, &shared);
	all = use_more_than_there_is(granted);
	assert_int_equal(svc.nheld, FIRST);
	give_zone_back();
	while (svc.nheld < all) {
		(void)rpcrdma_engine_poll(svc.engine);
		assert_true(clock_now_ns() < end);
	}
	wire_svc_release(&svc);
	svc.hold = false;
	for (unsigned i = 0; i < TEN; i++)
		(void)answers(&peers[i], granted[i]);
	close_peers(TEN);
	connect_peer(&wide);
}

/* Peers that go while messages of theirs wait leave the turn to others. */
static void the_turn_of_one_that_goes(void **state)
{
	uint32_t granted[TEN];

	(void)state;
	serve_with(&small, &shared);
	(void)use_more_than_there_is(granted);
	for (unsigned i = 0; i < TEN - 1; i++) { /* among them the peers that hold the receives */
		rr_local_cut(peers[i].qp);
		raw_settle(&peers[i]);
	}
	wire_svc_release(&svc);
	svc.hold = false;
	(void)answers(&peers[TEN - 1], granted[TEN - 1]);
	assert_true(raw_alive(&peers[TEN - 1]));
	close_peers(TEN);
	give_zone_back();
	connect_peer(&wide);
	assert_int_equal(one_call(&peer, 1000), 8);
	assert_int_equal(receives(), FIRST);
}

/* ---- shares ---- */

/* The connection that has come last. */
static struct rpcrdma_conn *last_conn(void)
{
	return list_entry(svc.engine->conns.prev, struct rpcrdma_conn, link);
}

/* Makes a connection one of another user. It has no calls, and the receives that it began with. */
static void set_user(struct rpcrdma_conn *c, uid_t uid)
{
	const struct rpcrdma_client_id id = { .kind = RPCRDMA_CLIENT_USER, .key = uid };
	struct rr_ep *ep = rr_rconn_of(c)->ep;
	struct rr_client *other;

	assert_true(ep->nrecvs <= ep->nrecvs_first);
	rr_client_uncharge(ep->client, RR_SHARE_RECVS, ep->nrecvs * MSG);

	assert_int_equal(rr_client_get(&svc.domain->clients, &id, &other), 0);
	rr_client_add(other, RR_SHARE_CONNS, 1);
	rr_client_add(other, RR_SHARE_RECVS, ep->nrecvs * MSG);
	assert_true(rr_client_conn_del(c->client, &c->of_client));
	rr_client_conn_add(other, &c->of_client);
	rr_client_conn_left(c->client, false);
	rr_client_put(c->client);
	c->client = ep->client = other;
}

/* Connects `peer` as another user than those that are there. */
static void connect_other(void)
{
	connect_peer(&wide);
	raw_settle(&peer);
	set_user(last_conn(), geteuid() + 1);
}

/* Calls of `peer`, one after the other and several at once, while those of others are held. */
static void other_is_served(unsigned at_once)
{
	unsigned before = svc.calls;

	svc.hold = false;
	for (unsigned i = 0; i < 20; i++)
		(void)one_call(&peer, 8);
	svc.hold = true;
	send_calls(&peer, at_once);
	raw_settle(&peer);
	assert_int_equal(svc.calls, before + 20 + at_once);
}

/* All connections of one client, which has no share left for the last ones, have as many calls open as they were granted, for
 * as long as they like: another client's calls are served, and no connection ends. */
static void one_client_leaves_receives(void **state)
{
	uint32_t granted[PEERS];
	unsigned all = 0;

	(void)state;
	serve_with(&small, &shared);
	connect_other(); /* first: it connects as the same user, which has no room later */
	open_peers(PEERS);
	for (unsigned i = 0; i < PEERS; i++)
		granted[i] = one_call(&peers[i], 1000);
	assert_int_equal(granted[0], 8);
	assert_int_equal(granted[PEERS - 1], 1); /* no share is left */
	svc.hold = true;
	for (unsigned i = 0; i < PEERS; i++) {
		send_calls(&peers[i], granted[i]);
		all += granted[i];
	}
	raw_settle(&peers[0]);
	other_is_served(4);
	assert_true(all > FIRST);
	assert_int_equal(svc.nheld, all + 4);
	for (unsigned i = 0; i < PEERS; i++)
		assert_true(raw_alive(&peers[i]));
	wire_svc_release(&svc);
	close_peers(PEERS);
}

static void open_as(struct raw_peer *p, uid_t uid)
{
	assert_int_equal(raw_open(p, svc.engine, path, &wide), 0);
	raw_settle(p);
	set_user(last_conn(), uid);
}

/* What clients were granted is there for them, all at once, whatever others have been granted since then. */
static void grants_are_kept(void **state)
{
	uint32_t granted[6], all = 0;

	(void)state;
	serve_with(&small, &shared);
	for (unsigned i = 0; i < 6; i++) {
		open_as(&peers[i], 1000 + i);
		granted[i] = one_call(&peers[i], 1000);
		for (unsigned round = 0; round < 3; round++)
			granted[i] = burst(&peers[i], granted[i]);
	}
	for (unsigned i = 0; i < 6; i++) {
		hold_calls(&peers[i], granted[i]);
		all += granted[i];
	}
	assert_true(all > FIRST);
	assert_int_equal(svc.nheld, all);
	wire_svc_release(&svc);
	svc.hold = false;
	for (unsigned i = 0; i < 6; i++)
		(void)answers(&peers[i], granted[i]);
	for (unsigned i = 0; i < 6; i++)
		assert_true(raw_alive(&peers[i]));
	close_peers(6);
	connect_peer(&wide);
}

/* The device's queue is shorter than what clients hold: more receives are made as long as there is memory, and a new
 * client is served. Those that do not fit go back to the pool. */
static void more_than_the_queue_is_deep(void **state)
{
	(void)state;
	serve_with(NULL, &shared);
	svc.domain->devs[0].fabric->attr.srq_wr_max = FIRST;
	for (unsigned i = 0; i < 16; i++) {
		open_as(&peers[i], 1000 + i % 2);
		assert_ptr_equal(rr_rconn_of(last_conn())->ep->dev, &svc.domain->devs[0]);
		hold_calls(&peers[i], 8);
	}
	connect_other();
	other_is_served(4);
	assert_true(stats().shared_recvs > 2 * FIRST);
	wire_svc_release(&svc);
	svc.hold = false;
	for (unsigned i = 0; i < 16; i++)
		(void)answers(&peers[i], 8);
	(void)answers(&peer, 4);
	assert_in_range(stats().shared_recvs, 1, FIRST);
	close_peers(16);
}

/* What a connection was promised is charged as if it were its own, until its last call is over. Receives that were
 * not promised are charged to no client, and cannot be used. */
static void what_is_promised_is_charged(void **state)
{
	struct rr_budget *recvs;
	struct rr_client *client;
	const struct rr_ep *ep;

	(void)state;
	serve_with(NULL, &shared);
	recvs = &svc.domain->clients.budgets[RR_SHARE_RECVS];
	open_peers(1);
	raw_settle(&peers[0]);
	ep = rr_rconn_of(last_conn())->ep;
	client = last_conn()->client;
	rr_client_hold(client);
	assert_int_equal(rr_client_used(client, RR_SHARE_RECVS), 8 * MSG);
	assert_int_equal(atomic_load(&recvs->idle), (FIRST - 8) * MSG);
	assert_int_equal(burst(&peers[0], 8), 16);
	assert_int_equal(burst(&peers[0], 16), 32);
	assert_int_equal(rr_client_used(client, RR_SHARE_RECVS),
			 32 * MSG + (32 - 8) * (size_t)ep->call_bytes);
	assert_int_equal(atomic_load(&recvs->idle), (FIRST - 32) * MSG);
	hold_calls(&peers[0], 32);
	close_peers(1);
	assert_true(rr_client_used(client, RR_SHARE_RECVS) >= 32 * MSG); /* its service has them still */
	wire_svc_release(&svc);
	connect_peer(&wide);
	assert_int_equal(one_call(&peer, 1000), 8);
	assert_int_equal(rr_client_used(client, RR_SHARE_RECVS), 8 * MSG);
	assert_int_equal(atomic_load(&recvs->used), 8 * MSG);
	assert_int_equal(atomic_load(&recvs->idle), (FIRST - 8) * MSG);
	rr_client_put(client);
}

/* A connection that does not use what it was promised gives it up, call by call. */
static void promises_are_taken_back(void **state)
{
	const struct rr_ep *ep;

	(void)state;
	serve_with(NULL, &shared);
	open_peers(1);
	raw_settle(&peers[0]);
	ep = rr_rconn_of(last_conn())->ep;
	assert_int_equal(burst(&peers[0], 8), 16);
	assert_int_equal(burst(&peers[0], 16), 32);
	assert_int_equal(ep->nrecvs, 32);
	for (unsigned i = 0; i < 100; i++)
		(void)one_call(&peers[0], 1);
	assert_in_range(ep->nrecvs, 1, 8);
	assert_int_equal(rr_client_used(ep->client, RR_SHARE_RECVS), ep->nrecvs * MSG);
	assert_true(last_conn()->nreqs <= 8);
	close_peers(1);
	connect_peer(&wide);
}

/* Messages of another length have a queue pair's own receives. */
static void of_one_length(void **state)
{
	struct rpcrdma_svc_attr longer = { .srq = true, .inline_bytes = 8192 };
	struct rpcrdma_listener *l;
	struct rpcrdma_addr addr;
	char other[80];

	(void)state;
	serve_with(NULL, &shared);
	connect_peer(&wide);
	assert_int_equal(one_call(&peer, 1000), 8);
	snprintf(other, sizeof(other), "local://%s.b", path);
	assert_int_equal(rpcrdma_addr_parse(other, &addr), 0);
	assert_int_equal(rpcrdma_listen(svc.engine, &addr, &longer, wire_svc_ops(), &svc, &l), 0);
	assert_int_equal(raw_open(&peers[0], svc.engine, addr.host, &wide), 0);
	assert_int_equal(peers[0].server_priv.recv_bytes, 8192);
	assert_int_equal(one_call(&peers[0], 1000), 8);
	assert_int_equal(stats().shared_recvs, FIRST);
	assert_int_equal(receives(), FIRST + 4 * (8 + EXTRA)); /* of 16 KiB */
	close_peers(1);
	rpcrdma_listener_close(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		wire_test(as_many_as_are_in_use),
		wire_test(refilled_and_shrunk),
		wire_test(no_more_than_are_promised),
		wire_test(a_flood_is_one_peers_end),
		wire_test(a_flood_at_one_go),
		wire_test(bad_messages_cost_nobody_else),
		wire_test(a_few_more_go_back),
		wire_test(begins_with_few),
		wire_test(an_empty_queue_is_waited_for),
		wire_test(an_empty_queue_is_refilled),
		wire_test(the_turn_of_one_that_goes),
		wire_test(one_client_leaves_receives),
		wire_test(grants_are_kept),
		wire_test(more_than_the_queue_is_deep),
		wire_test(what_is_promised_is_charged),
		wire_test(promises_are_taken_back),
		wire_test(of_one_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
