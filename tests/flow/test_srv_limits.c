/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_srv_limits.c - the responder's order, credits, sizes and connections
 *
 * The numbers are those of the checklist in doc/protocol.md; test_srv_wire.c is about messages,
 * test_srv_memory.c about what may touch whose memory.
 */
#include <dirent.h>
#include <sys/mman.h>

#include "engine_int.h"
#include "inside.h"
#include "mode.h"
#include "srv_talk.h"
#include "lab.h"

/* ---- order: item 42 ---- */

static void item42_data_before_the_reply(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 8; seed++) {
		struct rr_local_attr local = { .filters = HOOKS(.chaos_seed = seed) };
		struct rpcrdma_domain_attr domain = { .lab = LAB(.local = &local) };

		serve_with(&domain, NULL);
		connect_peer(&opts4k);
		for (uint32_t mode = WIRE_PLACE; mode <= WIRE_IOV; mode++) {
			struct region *a = offer(4097, WRITABLE), *b = offer(65536, WRITABLE);

			svc.grain = 4000;
			get_args(60001, mode);
			add_write_seg(0, seg(a, 0, 4097));
			add_write_seg(0, seg(b, 0, 65536));
			say();
			expect_accepted(RR_SUCCESS); /* now all of it is there */
			assert_returned(&m.hdr.writes[0], &heard.writes[0], 60001);
			assert_pattern(a->mem, 0, 4097);
			assert_pattern(b->mem, 4097, 60001 - 4097);
			drop_regions();
			for (; nregions > 0; nregions--)
				free(regions[nregions - 1].mem);
		}
		{ /* a long reply, and buffers used again at once */
			struct region *r = offer(65536, WRITABLE);

			for (unsigned i = 0; i < 4; i++) {
				memset(r->mem, 0xee, r->len);
				big_args(20000 + 4 * i);
				add_reply_seg(seg(r, 0, 65536));
				say();
				listen_for();
				assert_int_equal(heard.proc, RR_NOMSG);
				assert_returned(&m.hdr.reply, &heard.reply, 24 + 4 + 20000 + 4 * i);
				assert_int_equal(get_be32(r->mem), 0x1234);
				for (uint32_t k = 0; k < 20000 + 4 * i; k += 4)
					assert_int_equal(get_be32(r->mem + 28 + k), k * 2654435761u);
			}
			drop_regions();
			for (; nregions > 0; nregions--)
				free(regions[nregions - 1].mem);
		}
	}
}

/* ---- credits and sizes: items 45, 48 ---- */

/* As many calls as were granted find a receive, though the server does not run in between. */
static void item45_as_many_as_granted(void **state)
{
	static const struct raw_opts o = { .priv = &priv4k, .recvs = 64 };
	uint32_t granted;

	(void)state;
	close_peer();
	connect_peer(&o);
	still_serves();
	granted = heard.credits;
	for (unsigned round = 0; round < 6; round++) {
		for (uint32_t i = 0; i < granted; i++) {
			get_args(16, WIRE_PLACE);
			m.hdr.credits = 1000;
			finish_msg();
			assert_int_equal(raw_send_blind(&peer, m.raw, m.raw_len), RR_WC_OK);
		}
		svc.hold = true; /* none of them makes room for another */
		raw_settle(&peer);
		wire_svc_release(&svc);
		for (uint32_t i = 0; i < granted; i++)
			expect_accepted(RR_SUCCESS);
		granted = heard.credits;
	}
	assert_int_equal(granted, 64);
	assert_int_equal(svc.conns, 2);
}

static void item48_receives_as_long_as_said(void **state)
{
	static const uint32_t inlines[] = { 1024, 4096, 65536 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(inlines); i++) {
		struct rpcrdma_svc_attr attr = { .inline_bytes = inlines[i] };
		uint32_t len = inlines[i] - RR_HDR_MIN - 48;
		uint8_t *long_msg = calloc(1, inlines[i]);
		size_t at;

		assert_non_null(long_msg);
		serve_with(NULL, &attr);
		connect_peer(&opts4k);
		assert_int_equal(peer.server_priv.recv_bytes, inlines[i]);
		assert_int_equal(peer.server_priv.send_bytes, inlines[i]);
		put_args(RR_MSG, len); /* PUT with its data inline */
		finish_msg();
		memcpy(long_msg, m.raw, m.raw_len);
		at = m.raw_len;
		assert_int_equal(at + len, inlines[i]);
		pattern(long_msg + at, len);
		assert_int_equal(raw_send(&peer, long_msg, inlines[i]), RR_WC_OK);
		expect_put(len);
		free(long_msg);
	}
}

/* ---- connections: items 52, 54, 55 ---- */

static void item52_reads_as_offered(void **state)
{
	static const unsigned offers[][2] = { { 1, 1 }, { 3, 3 }, { 16, 16 }, { 100, 16 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(offers); i++) {
		struct raw_opts o = { .priv = &priv4k, .reads = offers[i][0] };
		struct region *r;
		uint32_t pos;

		close_peer();
		connect_peer(&o);
		assert_int_equal(peer.reads_of_server, offers[i][1]);
		assert_int_equal(peer.reads_by_server, 0);
		r = offer(60 * 100, READABLE); /* many more segments than that */
		pattern(r->mem, r->len);
		pos = put_args(RR_MSG, 60 * 100);
		for (unsigned k = 0; k < 60; k++)
			add_read(pos, seg(r, k * 100, 100));
		say();
		expect_put(60 * 100);
		drop_regions();
	}
}

/* ---- requests take turns at the connection's RDMA Reads ---- */

static const struct rr_fabric_ops *true_ops;
static struct rr_fabric_ops watched_ops;
static uint32_t read_keys[512]; /* of the server's RDMA Reads, in the order in which it posts them */
static unsigned nreads;

static int watch_post(struct rr_qp *qp, const struct rr_wr *wr)
{
	for (const struct rr_wr *w = wr; w; w = w->next)
		if (w->op == RR_WR_READ && nreads < ARRAY_SIZE(read_keys))
			read_keys[nreads++] = w->rkey;
	return true_ops->post_send(qp, wr);
}

static void watch_domain(struct rpcrdma_domain *d)
{
	struct rr_fabric *fabric = local_fabric(d);

	true_ops = fabric->ops;
	watched_ops = *true_ops;
	watched_ops.post_send = watch_post;
	fabric->ops = &watched_ops;
}

/* where in read_keys is the @nth one of @r? */
static unsigned read_at(const struct region *r, unsigned nth)
{
	for (unsigned i = 0; i < nreads; i++)
		if (read_keys[i] == r->mr->rkey && !nth--)
			return i;
	fail_msg("it was never read");
	return 0;
}

/* a PUT of @n segments; the server does not run yet */
static struct region *put_blind(unsigned n)
{
	struct region *r = offer(n * 100, READABLE);
	uint32_t pos = put_args(RR_MSG, n * 100);

	pattern(r->mem, r->len);
	for (unsigned i = 0; i < n; i++)
		add_read(pos, seg(r, i * 100, 100));
	finish_msg();
	assert_int_equal(raw_send_blind(&peer, m.raw, m.raw_len), RR_WC_OK);
	return r;
}

static void reads_take_turns(void **state)
{
	static const unsigned depths[] = { 1, 3, 16 };

	(void)state;
	wire_svc_on_domain = watch_domain;
	serve_with(NULL, NULL);
	wire_svc_on_domain = NULL;
	for (size_t i = 0; i < ARRAY_SIZE(depths); i++) {
		const unsigned depth = depths[i];
		struct raw_opts o = { .priv = &priv4k, .reads = depth };
		struct region *big[2], *small;

		connect_peer(&o);
		nreads = 0;
		big[0] = put_blind(60); /* many more than the depth */
		big[1] = put_blind(60);
		small = put_blind(2);
		/* shorter ones are answered earlier, whenever they came */
		expect_put(200);
		expect_put(6000);
		expect_put(6000);
		assert_int_equal(nreads, 122);
		/* what is under way when it comes, and then one of each other request for each of its own */
		assert_in_range(read_at(small, 0), 0, depth + 2);
		assert_in_range(read_at(small, 1), 0, depth + 2 + 3);
		/* and the long ones do not keep each other waiting either */
		for (unsigned k = 0; k + 1 < 60 - depth; k++)
			assert_in_range(read_at(big[1], k), 0, read_at(big[0], k + depth + 1));
		drop_regions();
		close_peer();
	}
	connect_peer(&opts4k);
}

/* A peer that goes while some of its requests wait for their turn: all of them end. */
static void reads_that_never_had_a_turn(void **state)
{
	static const struct raw_opts o = { .priv = &priv4k, .reads = 1 };

	(void)state;
	wire_svc_on_domain = watch_domain;
	serve_with(NULL, NULL);
	wire_svc_on_domain = NULL;
	connect_peer(&o);
	svc.put_bytes = 0;
	nreads = 0;
	for (unsigned i = 0; i < 4; i++)
		put_blind(60);
	while (svc.calls < 4)
		rpcrdma_engine_poll(svc.engine);
	assert_in_range(nreads, 1, 239);
	rr_local_cut(peer.qp);
	raw_settle(&peer);
	assert_int_equal(svc.put_bytes, 0); /* and their memory comes back: see wire_svc_close */
	assert_int_equal(svc.closed, svc.conns);
}

/* The connection's engine has not run at all when the first call is there. */
static void item54_call_before_adoption(void **state)
{
	struct rpcrdma_engine *other;

	(void)state;
	close_peer();
	assert_int_equal(rpcrdma_engine_create(svc.domain, NULL, &other), 0);
	svc.conn_engine = other;
	connect_peer(&opts4k);
	begin(RR_MSG);
	rpc_call(WIRE_PROG, WIRE_VERS, WIRE_NULL);
	say();
	expect_nothing();
	peer.server = other; /* only now it runs */
	expect_accepted(RR_SUCCESS);
	still_serves();
	raw_close(&peer);
	for (int idle = 0; idle < 1000; idle++)
		if (rpcrdma_engine_poll(other))
			idle = 0;
	svc.conn_engine = NULL;
	rpcrdma_engine_destroy(other);
	connect_peer(&opts4k);
}

static void on_routed(void *ctx, const struct rr_cm_event *ev)
{
	*(bool *)ctx = ev->type == RR_CM_ROUTED;
}

/* A peer asks in with @priv, and has gone when it is let in; the connection would be for @other. */
static void ask_and_go(struct rpcrdma_engine *other, const uint8_t *priv, size_t priv_len)
{
	struct rr_qp_attr qa = { .pd = peer.pd, .cq = peer.cq, .sq_depth = 8, .rq_depth = 8,
				 .recv_bytes = 4096 };
	struct rr_conn_param param = { .responder_resources = 16, .initiator_depth = 16,
				       .priv = priv, .priv_len = priv_len };
	unsigned refused = svc.refused;
	bool routed = false;
	struct rr_cm *cm;
	struct rr_qp *qp;

	svc.conn_engine = other;
	assert_int_equal(rr_cm_create(peer.fabric, on_routed, &routed, &cm), 0);
	assert_int_equal(rr_qp_dial(cm, path, NULL, &qp), 0);
	for (int idle = 0; !routed && idle < 1000; idle++) {
		(void)rpcrdma_engine_poll(svc.engine);
		rr_cm_process(cm);
	}
	assert_int_equal(rr_qp_setup(qp, &qa), 0);
	assert_int_equal(rr_qp_connect(qp, &param), 0);
	rr_qp_destroy(qp);
	for (int idle = 0; svc.refused == refused && idle < 1000; idle++)
		(void)rpcrdma_engine_poll(svc.engine);
	assert_int_equal(svc.refused, refused + 1);
	assert_int_equal(svc.refused_err, -EPIPE);
	rr_cm_destroy(cm);
	svc.conn_engine = NULL;
}

/* Nothing of it is left, and what the connection's engine has to itself was not looked at on the
 * listener's thread. */
static void gone_before_the_accept(void **state)
{
	const struct rpcrdma_svc_attr attr = { .lab = LAB(.modes = RPCRDMA_MODES_ALL) };
	const struct rr_suffix wanted = { .modes = RPCRDMA_MODES_ALL, .slot_bytes = 8192, .slots = 3 };
	struct rpcrdma_msg *unseen = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t priv[RR_PRIV_BYTES + RR_SUFFIX_BYTES];
	struct rpcrdma_engine *other;

	(void)state;
	serve_with(NULL, &attr);
	connect_peer(&opts4k);
	rr_priv_encode(&priv4k, priv);
	rr_suffix_encode(&wanted, priv + RR_PRIV_BYTES);
	assert_ptr_not_equal(unseen, MAP_FAILED);
	assert_int_equal(rpcrdma_engine_create(svc.domain, NULL, &other), 0);
	other->deferred = unseen;
	ask_and_go(other, priv, RR_PRIV_BYTES);
	ask_and_go(other, priv, sizeof(priv)); /* and with memory of its own */
	other->deferred = NULL;
	assert_int_equal(svc.closed, 2);
	rpcrdma_engine_destroy(other);
	munmap(unseen, 4096);
	still_serves();
}

static unsigned open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static void item55_a_thousand_connections(void **state)
{
	struct rpcrdma_stats st;
	unsigned fds = 0;

	(void)state;
	close_peer();
	for (unsigned i = 0; i < 1000; i++) {
		connect_peer(&opts4k);
		if (i % 3 != 1)
			still_serves();
		if (i % 7 == 3) { /* and one that goes with a call unanswered */
			svc.hold = true;
			get_args(16, WIRE_PLACE);
			say();
		}
		if (i % 5 == 2)
			rr_local_cut(peer.qp);
		if (i == 10)
			fds = open_fds();
		else if (i == 999)
			assert_int_equal(open_fds(), fds);
		raw_close(&peer);
		wire_svc_release(&svc);
	}
	for (int idle = 0; idle < 2000 && svc.closed < svc.conns;)
		idle = rpcrdma_engine_poll(svc.engine) ? 0 : idle + 1;
	rpcrdma_domain_stats(svc.domain, &st);
	assert_int_equal(st.conns, 0);
	assert_int_equal(st.conns_total, 1001);
	assert_int_equal(svc.closed, 1001);
	connect_peer(&opts4k);
}

/* ---- thresholds, overruns, ends: items 47, 49, 52 ---- */

static void item47_thresholds(void **state)
{
	static const struct rr_priv small = { .present = true, .send_bytes = 65536, .recv_bytes = 2048 };
	const struct raw_opts without = { .priv = NULL }, with = { .priv = &small };

	(void)state;
	/* 4096 agreed: 4096 - 28 - 24 - 4 bytes of BIG fit, 4 more do not */
	big_args(4040);
	say();
	expect_accepted(RR_SUCCESS);
	assert_int_equal(send_len, 4096);
	big_args(4044);
	say();
	expect_err_chunk();
	close_peer();
	connect_peer(&without); /* no private data: 1024 */
	assert_int_equal(peer.server_priv.recv_bytes, 4096);
	big_args(1024 - 56);
	say();
	expect_accepted(RR_SUCCESS);
	assert_int_equal(send_len, 1024);
	big_args(1024 - 52);
	say();
	expect_err_chunk();
	close_peer();
	connect_peer(&with); /* what the client can receive, not what it can send */
	big_args(2048 - 56);
	say();
	expect_accepted(RR_SUCCESS);
	big_args(2048 - 52);
	say();
	expect_err_chunk();
}

/* The least and the most that Linux's rdma_max_inline_read and _write can be set to. */
static void item82_thresholds_of_linux(void **state)
{
	static const struct rpcrdma_svc_attr attr = { .inline_bytes = 65536 };
	static const uint32_t sizes[] = { 1024, 65536 };

	(void)state;
	serve_with(NULL, &attr);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		const struct rr_priv p = { .present = true, .send_bytes = sizes[i],
					   .recv_bytes = sizes[i] };
		const struct raw_opts o = { .priv = &p, .msg_bytes = sizes[i] };

		connect_peer(&o);
		big_args(sizes[i] - 56);
		say();
		expect_accepted(RR_SUCCESS);
		assert_int_equal(send_len, sizes[i]);
		big_args(sizes[i] - 52);
		say();
		expect_err_chunk();
		close_peer();
	}
	connect_peer(&opts4k);
}

/* It tells nothing and believes nothing: 1024 both ways, though the client told of 65536. */
static void item47_no_private_data_of_ours(void **state)
{
	const struct rpcrdma_svc_attr attr = { .inline_bytes = 65536, .lab = LAB(.no_private_data = true) };
	static const struct rr_priv rinv = { .present = true, .remote_inv = true, .send_bytes = 65536,
					     .recv_bytes = 65536 };
	const struct raw_opts o = { .priv = &rinv };
	uint8_t big[1025] = { 0 };
	struct region *r;
	uint32_t key;

	(void)state;
	serve_with(NULL, &attr);
	connect_peer(&o);
	assert_false(peer.server_priv.present);
	big_args(1024 - 56);
	say();
	expect_accepted(RR_SUCCESS);
	assert_int_equal(send_len, 1024);
	big_args(1024 - 52);
	say();
	expect_err_chunk();
	/* nor does it invalidate what the client said could be */
	r = offer(9000, WRITABLE);
	get_args(9000, WIRE_PLACE);
	add_write_seg(0, seg(r, 0, 9000));
	say();
	expect_accepted(RR_SUCCESS);
	assert_pattern(r->mem, 0, 9000);
	assert_false(raw_last_inv(&peer, &key));
	drop_regions();
	assert_int_not_equal(raw_send(&peer, big, sizeof(big)), RR_WC_OK);
	assert_false(raw_alive(&peer));
}

static void item49_overrun(void **state)
{
	unsigned sent = 0;

	(void)state;
	svc.hold = true;
	for (; sent < 300; sent++) {
		get_args(16, WIRE_PLACE);
		m.hdr.xid = sent;
		m.hdr.credits = 1; /* asks for no more than it has */
		finish_msg();
		if (raw_send(&peer, m.raw, m.raw_len) != RR_WC_OK)
			break;
	}
	assert_in_range(sent, 8, 64); /* what was granted, and the few for other messages */
	assert_false(raw_alive(&peer));
	wire_svc_release(&svc);
}

static void credits_grow_with_demand(void **state)
{
	(void)state;
	still_serves();
	assert_int_equal(heard.credits, 8);
	svc.hold = true;
	for (unsigned i = 0; i < 8; i++) {
		get_args(16, WIRE_PLACE);
		m.hdr.credits = 1000;
		finish_msg();
		assert_int_equal(raw_send(&peer, m.raw, m.raw_len), RR_WC_OK);
	}
	raw_settle(&peer);
	wire_svc_release(&svc);
	for (unsigned i = 0; i < 8; i++)
		expect_accepted(RR_SUCCESS);
	assert_in_range(heard.credits, 16, 64);
}

static void item52_no_reads_offered(void **state)
{
	static const struct raw_opts o = { .priv = &priv4k, .no_reads = true };

	(void)state;
	close_peer();
	assert_int_equal(raw_open(&peer, svc.engine, path, &o), -ECONNREFUSED);
	assert_int_equal(svc.closed, 2);
}

static void message_too_long_for_the_receive(void **state)
{
	uint8_t big[4097] = { 0 };

	(void)state;
	assert_int_not_equal(raw_send(&peer, big, sizeof(big)), RR_WC_OK);
	assert_false(raw_alive(&peer));
}

static void peer_dies_in_the_middle(void **state)
{
	(void)state;
	svc.hold = true;
	for (unsigned i = 0; i < 4; i++) {
		struct region *r = offer(1 << 20, WRITABLE);

		get_args(1 << 20, WIRE_PLACE);
		add_write_seg(0, seg(r, 0, 1 << 20));
		say();
	}
	raw_settle(&peer);
	rr_local_cut(peer.qp);
	raw_settle(&peer);
	wire_svc_release(&svc); /* replies to a lost connection; memory comes back: see wire_svc_close */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		wire_test(item42_data_before_the_reply),
		wire_test(item45_as_many_as_granted),
		wire_test(item48_receives_as_long_as_said),
		wire_test(item52_reads_as_offered),
		wire_test(reads_take_turns),
		wire_test(reads_that_never_had_a_turn),
		wire_test(item54_call_before_adoption),
		wire_test(gone_before_the_accept),
		wire_test(item55_a_thousand_connections),
		wire_test(item47_thresholds),
		wire_test(item82_thresholds_of_linux),
		wire_test(item47_no_private_data_of_ours),
		wire_test(item49_overrun),
		wire_test(credits_grow_with_demand),
		wire_test(item52_no_reads_offered),
		wire_test(message_too_long_for_the_receive),
		wire_test(peer_dies_in_the_middle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
