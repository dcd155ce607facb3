/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_clnt_limits.c - the requester's credits, sizes, connections and memory, seen from a responder
 *                      that does exactly what the test wants
 *
 * The numbers are those of the checklist in doc/protocol.md; test_clnt_wire.c is about messages.
 */
#include "base/clock.h"
#include "clnt_talk.h"
#include "inside.h"
#include "lab.h"

static const struct raw_server_opts so4k = { .priv = priv4k, .priv_len = sizeof(priv4k) };

#define CALLS 100u

static struct talk_call calls[CALLS];

static void start_all(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		start_null(&calls[i]);
}

static void end_all(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		ended(&calls[i], 0);
		talk_fini(&calls[i]);
	}
}

static unsigned hear_all(void)
{
	unsigned n = 0;

	while (hear_one())
		n++;
	return n;
}

/* Answer message @i of all that came, with this grant. */
static void grant_to(unsigned i, uint32_t credits)
{
	heard = (struct rr_hdr){ .xid = get_be32(srv.got[i].bytes) };
	answer_begin(RR_MSG);
	ans.hdr.credits = credits;
	reply();
}

/* ---- credits: items 43-45, 50 ---- */

static void item43_one_until_the_first_reply(void **state)
{
	(void)state;
	start_all(10);
	assert_int_equal(hear_all(), 1);
	grant_to(0, 4);
	assert_int_equal(hear_all(), 4);
	/* another connection, and again it is one */
	raw_server_hang_up(&srv);
	raw_server_until(&srv, &srv.conns, 2);
	assert_int_equal(hear_all(), 1);
	assert_int_equal(srv.got[5].conn, 2);
	for (unsigned i = 5; i < 14; i++) {
		grant_to(i, 100);
		hear_all();
	}
	end_all(10);
	assert_int_equal(srv.ngot, 14);
}

static void item44_grants_rise_and_fall(void **state)
{
	static const uint32_t grants[] = { 8, 3, 1, 1, 5, 2, 1, 1, 1, 1, 16, 4, 1 };
	unsigned answered = 0, out, k = 0;

	(void)state;
	start_all(60);
	hear_all();
	while (answered < 60) {
		uint32_t g = grants[k++ % ARRAY_SIZE(grants)];

		out = srv.ngot - answered - 1;
		grant_to(answered++, g);
		hear_all();
		/* nothing new while as many as the grant are out; and never a stall */
		if (srv.ngot < 60)
			assert_int_equal(srv.ngot - answered, MAX(out, g));
		assert_in_range(srv.ngot, MIN(answered + 1, 60u), 60);
	}
	end_all(60);
	assert_int_equal(srv.conns, 1);
}

static void item44_wanted_is_the_ceiling(void **state)
{
	struct rpcrdma_clnt_attr ca = { .credits = 5 };

	(void)state;
	open_both(&so4k, &ca);
	start_all(20);
	hear();
	assert_int_equal(heard.credits, 5);
	grant_to(0, 1000);
	assert_int_equal(hear_all(), 5);
	for (unsigned i = 1; i < 20; i++) {
		grant_to(i, 1000);
		hear_all();
		assert_in_range(srv.ngot - i - 1, 0, 5);
	}
	end_all(20);
}

/* All that may be out are answered at one go: not one answer finds no receive posted. */
static void item45_a_receive_for_each_call(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 3; round++) {
		unsigned first = srv.ngot, n;

		start_all(64 + !round);
		if (!round) {
			hear();
			grant_to(0, 64);
			first = 1;
		}
		n = hear_all();
		assert_int_equal(n, 64);
		for (unsigned i = 0; i < 64; i++)
			grant_to(first + i, 64); /* the client does not run in between */
		end_all(64 + !round);
	}
	assert_int_equal(srv.conns, 1);
}

static const struct rr_fabric_ops *true_ops;
static unsigned regs_seen, remote_regs;

static int watch_reg(struct rr_pd *pd, const struct rr_mr_attr *attr, struct rr_mr **ret)
{
	regs_seen++;
	remote_regs += (attr->access & (RR_ACCESS_REMOTE | RR_ACCESS_MW_BIND)) != 0;
	return true_ops->mr_reg(pd, attr, ret);
}

/* However many messages there come to be, no peer can reach the memory that they are in. */
static void messages_are_nobodys(void **state)
{
	static const struct raw_server_opts so = { .priv = priv4k, .priv_len = sizeof(priv4k) };
	struct rr_fabric_ops watched;
	struct rr_fabric *fabric = local_fabric(domain);

	(void)state;
	true_ops = fabric->ops;
	watched = *true_ops;
	watched.mr_reg = watch_reg;
	fabric->ops = &watched;
	open_both(&so, NULL);
	start_all(65);
	hear();
	grant_to(0, 64);
	assert_int_equal(hear_all(), 64);
	for (unsigned i = 0; i < 64; i++)
		grant_to(1 + i, 64);
	end_all(65);
	assert_true(regs_seen >= 2); /* the first ones, and those that came with the credits */
	assert_int_equal(remote_regs, 0);
	fabric->ops = true_ops;
}

static void item50_grant_of_nothing(void **state)
{
	(void)state;
	start_all(6);
	for (unsigned i = 0; i < 6; i++) {
		hear_all();
		assert_int_equal(srv.ngot, i + 1); /* as a grant of one: no stall, no more */
		grant_to(i, 0);
	}
	end_all(6);
}

/* ---- sizes: items 46, 48 ---- */

static void shapes(uint32_t limit)
{
	static const uint32_t lens[] = { 0, 1, 600, 700, 850, 900, 1000, 3700, 3900, 4100, 20000 };
	struct talk_call c;

	for (size_t i = 0; i < ARRAY_SIZE(lens); i++) {
		start_put(&c, lens[i]); /* hear() looks at the length of each Send */
		hear();
		assert_in_range(send_len, 0, limit);
		answer_put(lens[i]);
		ended(&c, 0);
		talk_fini(&c);
		start_get(&c, lens[i]);
		hear();
		assert_in_range(send_len, 0, limit);
		answer_get(lens[i]);
		ended(&c, 0);
		assert_pattern(c.mem, lens[i]);
		talk_fini(&c);
	}
}

static void item46_sends_within_the_threshold(void **state)
{
	static const struct {
		uint32_t mine, theirs_send, theirs_recv; /* 0: no private data */
		uint32_t limit;
	} cases[] = {
		{ 4096, 4096, 4096, 4096 },  { 4096, 0, 0, 1024 },	 { 1024, 4096, 4096, 1024 },
		{ 65536, 4096, 2048, 2048 }, { 4096, 1024, 65536, 4096 }, { 65536, 65536, 65536, 65536 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rr_priv p = { .send_bytes = cases[i].theirs_send,
				     .recv_bytes = cases[i].theirs_recv };
		struct rpcrdma_clnt_attr ca = { .inline_bytes = cases[i].mine };
		uint8_t priv[RR_PRIV_BYTES];
		/* a receive buffer not one byte longer than was said: a longer Send would end it all */
		struct raw_server_opts so = { .msg_bytes = cases[i].limit };

		if (p.send_bytes) {
			rr_priv_encode(&p, priv);
			so.priv = priv;
			so.priv_len = sizeof(priv);
		}
		open_both(&so, &ca);
		shapes(cases[i].limit);
		assert_int_equal(srv.conns, 1);
		close_both();
	}
}

static void item48_receives_as_long_as_said(void **state)
{
	static const uint32_t inlines[] = { 1024, 4096, 65536 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(inlines); i++) {
		struct rpcrdma_clnt_attr ca = { .inline_bytes = inlines[i] };
		uint32_t longest, len;
		struct talk_call c;

		open_both(&so4k, &ca);
		/* 1024 said, and a responder that does not look sends 4096: see 2.3 */
		longest = MAX(srv.client_priv.recv_bytes, 4096u);
		assert_int_equal(srv.client_priv.recv_bytes, inlines[i]);
		len = longest - RR_HDR_MIN - RR_RPC_REPLY_HDR_BYTES - 4;
		start_big(&c, len);
		hear();
		answer_begin(RR_MSG);
		answer_big(len);
		ans.hdr.has_reply = false;
		answer_encode();
		assert_int_equal(ans.raw_len, longest);
		answer_send();
		ended(&c, 0);
		assert_int_equal(c.big_res.length, len);
		talk_fini(&c);
		assert_int_equal(srv.conns, 1);
		close_both();
	}
}

/* ---- connections: items 52, 53, 56, 57, 62 ---- */

static void item52_what_it_offers(void **state)
{
	(void)state;
	still_works();
	assert_in_range(srv.reads_offered, 1, 255); /* the responder may read */
	assert_int_equal(srv.reads_wanted, 0);      /* it never does itself */
}

static void item53_private_data(void **state)
{
	static const struct rr_priv said = { .present = true, .remote_inv = true, .send_bytes = 4096,
					     .recv_bytes = 2048 };
	uint8_t priv[RR_PRIV_MAX] = { 0 };

	(void)state;
	for (unsigned form = 0; form < 6; form++) {
		struct raw_server_opts so = { .priv = priv, .priv_len = RR_PRIV_BYTES };
		struct rpcrdma_clnt_info info;
		bool known = form < 3;

		memset(priv, 0, sizeof(priv));
		rr_priv_encode(&said, priv);
		switch (form) {
		case 1: /* padded, as devices do */
			so.priv_len = sizeof(priv);
			break;
		case 2: /* more behind it */
			so.priv_len = sizeof(priv);
			memset(priv + RR_PRIV_BYTES, 0xa5, sizeof(priv) - RR_PRIV_BYTES);
			break;
		case 3: /* another's */
			priv[0] ^= 1;
			break;
		case 4: /* another version */
			priv[4] = 2;
			break;
		case 5:
			so.priv_len = 7;
			break;
		}
		open_both(&so, NULL);
		still_works();
		rpcrdma_clnt_info(clnt, &info);
		assert_int_equal(info.send_inline, known ? 2048 : 1024);
		assert_int_equal(info.recv_inline, known ? 4096 : 1024);
		assert_true(srv.client_priv.present);
		assert_int_equal(srv.client_priv.send_bytes, 4096);
		assert_int_equal(srv.client_priv.recv_bytes, 4096);
		/* item 62: not every handle that it offers is a window */
		assert_false(srv.client_priv.remote_inv);
		assert_false(info.remote_inv);
		close_both();
	}
	{
		struct rpcrdma_clnt_attr ca = { .lab = LAB(.no_private_data = true) };

		open_both(&so4k, &ca);
		shapes(1024);
		assert_false(srv.client_priv.present);
		close_both();
	}
}

/* After a loss: the same XIDs, memory offered again under valid keys, replies accepted at once. */
static void item56_calls_go_again(void **state)
{
	struct rr_segment before[4];
	struct talk_call c[4];
	uint32_t xids[4];

	(void)state;
	still_works();
	for (unsigned i = 0; i < 4; i++)
		start_get(&c[i], 9001);
	for (unsigned i = 0; i < 4; i++) {
		hear();
		xids[i] = heard.xid;
		before[i] = heard.writes[0].segs[0];
	}
	raw_server_hang_up(&srv);
	raw_server_until(&srv, &srv.conns, 2);
	for (unsigned i = 0; i < 4; i++) {
		hear();
		assert_int_equal(heard.xid, xids[i]);
		answer_get(9001); /* into the chunk as offered now */
		ended(&c[i], 0);
		assert_pattern(c[i].mem, 9001);
	}
	/* and what was offered on the lost connection leads nowhere on this one */
	memset(c[0].mem, 0xee, 9001);
	assert_int_not_equal(raw_server_write(&srv, &before[0], 0, "late", 4), RR_WC_OK);
	assert_untouched(&c[0], 0);
	for (unsigned i = 0; i < 4; i++)
		talk_fini(&c[i]);
	raw_server_until(&srv, &srv.lost, 1);
	still_works();
}

/* Attempts that come to nothing become rarer. A lower bound needs no luck: the waits after the first
 * five of them are at least three quarters of 1, 2, 4, 8 and 16 ms. */
static void item56_backs_off(void **state)
{
	uint64_t start;
	struct talk_call c;

	(void)state;
	still_works();
	start_get(&c, 9001);
	hear();
	srv.opts.reject = true;
	start = clock_now_ns();
	raw_server_hang_up(&srv);
	raw_server_until(&srv, &srv.refused, 6);
	assert_true(clock_now_ns() - start >= 3 * NS_PER_MS / 4 * (1 + 2 + 4 + 8 + 16));
	srv.opts.reject = false;
	raw_server_until(&srv, &srv.conns, 2);
	hear();
	answer_get(9001);
	ended(&c, 0);
	assert_pattern(c.mem, 9001);
	talk_fini(&c);
}

static void item57_never_twice_on_one_connection(void **state)
{
	struct rpcrdma_clnt_attr ca = { .timeout_ms = 40 };
	struct talk_call c;
	unsigned seen[RAW_SERVER_LOG] = { 0 };

	(void)state;
	open_both(&so4k, &ca);
	start_get(&c, 9001);
	raw_server_until(&srv, &srv.conns, 4); /* no answer: it disconnects and comes again */
	hear_all();
	assert_int_equal(c.done, 0);
	for (unsigned i = 0; i < srv.ngot; i++) {
		assert_int_equal(get_be32(srv.got[i].bytes), c.call.xid);
		assert_int_equal(++seen[srv.got[i].conn], 1);
	}
	assert_true(srv.ngot >= 3);
	answer_get(9001);
	ended(&c, 0);
	assert_pattern(c.mem, 9001);
	talk_fini(&c);
}

/* ---- memory: items 63, 67, 68 ---- */

static void assert_out_of_reach(const struct rr_segment *s, struct talk_call *c)
{
	uint8_t copy[16];
	unsigned lost = srv.lost;

	memset(c->mem, 0xee, c->bytes);
	assert_int_equal(raw_server_write(&srv, s, 0, "too late to write", 16), RR_WC_REM_ACCESS);
	assert_untouched(c, 0);
	raw_server_until(&srv, &srv.lost, lost + 1); /* and it cost the writer its connection */
	still_works();
	assert_int_not_equal(raw_server_read(&srv, s, 0, copy, sizeof(copy)), RR_WC_OK);
	raw_server_until(&srv, &srv.lost, lost + 2);
	still_works();
}

static void item63_late_write_after_the_reply(void **state)
{
	struct rpcrdma_clnt_attr ca = { .registration = "dynamic" };
	struct rr_segment s;
	struct talk_call c;

	(void)state;
	open_both(&so4k, &ca);
	start_get(&c, 9001);
	hear();
	s = heard.writes[0].segs[0];
	answer_get(9001);
	ended(&c, 0);
	assert_pattern(c.mem, 9001);
	assert_out_of_reach(&s, &c);
	talk_fini(&c);
	/* what was only to be read, and the memory of a long reply */
	start_put(&c, 9001);
	hear();
	s = heard.reads[0].seg;
	answer_put(9001);
	ended(&c, 0);
	assert_out_of_reach(&s, &c);
	talk_fini(&c);
	start_big(&c, 20000);
	hear();
	s = heard.reply.segs[0];
	answer_begin(RR_NOMSG);
	answer_big(20000);
	into_reply_chunk();
	reply();
	ended(&c, 0);
	assert_out_of_reach(&s, &c);
	talk_fini(&c);
}

/* Of what is registered for its call. What is kept may be offered again, in whole pages. */
static void rights_are_those_needed(void **state)
{
	struct rpcrdma_clnt_attr ca = { .registration = "dynamic" };
	struct rr_segment s;
	struct talk_call c;
	uint8_t copy[16];

	(void)state;
	open_both(&so4k, &ca);
	still_works();
	start_put(&c, 9001); /* to be read, never written */
	hear();
	s = heard.reads[0].seg;
	assert_int_equal(raw_server_read(&srv, &s, 0, copy, sizeof(copy)), RR_WC_OK);
	assert_pattern(copy, sizeof(copy));
	assert_int_equal(raw_server_write(&srv, &s, 0, "no", 2), RR_WC_REM_ACCESS);
	raw_server_until(&srv, &srv.conns, 2);
	hear();
	answer_put(9001);
	ended(&c, 0);
	assert_pattern(c.mem, 9001);
	talk_fini(&c);
	start_get(&c, 9001); /* and not one byte beyond */
	hear();
	s = heard.writes[0].segs[0];
	assert_int_equal(raw_server_write(&srv, &s, s.length - 1, "no", 2), RR_WC_REM_ACCESS);
	raw_server_until(&srv, &srv.conns, 3);
	hear();
	answer_get(9001);
	ended(&c, 0);
	talk_fini(&c);
}

static void item67_keys_of_another_connection(void **state)
{
	static struct raw_server other;
	struct rpcrdma_clnt_attr ca = { .addr.transport = RPCRDMA_LOCAL };
	struct rpcrdma_clnt *second;
	struct rr_segment s;
	struct talk_call c;
	uint8_t copy[9];

	(void)state;
	snprintf(ca.addr.host, sizeof(ca.addr.host), "%s.b", path);
	raw_server_open(&other, engine, ca.addr.host, &so4k);
	assert_int_equal(rpcrdma_clnt_open(engine, &ca, &second), 0);
	raw_server_until(&other, &other.conns, 1);
	raw_server_settle(&other); /* both ends know that they are connected */
	start_get(&c, 9001);
	hear();
	s = heard.writes[0].segs[0]; /* within reach, but of its own connection only */
	assert_int_equal(raw_server_write(&other, &s, 0, "not yours", 9), RR_WC_REM_ACCESS);
	assert_untouched(&c, 0);
	raw_server_until(&other, &other.conns, 2);
	raw_server_settle(&other);
	assert_int_not_equal(raw_server_read(&other, &s, 0, copy, sizeof(copy)), RR_WC_OK);
	assert_true(raw_server_alive(&srv)); /* the first one never noticed */
	answer_get(9001);
	ended(&c, 0);
	assert_pattern(c.mem, 9001);
	talk_fini(&c);
	rpcrdma_clnt_destroy(second);
	raw_server_settle(&other);
	raw_server_close(&other);
	unlink(ca.addr.host);
}

static void abandon(bool by_deadline, const char *registration, bool slab)
{
	struct rpcrdma_clnt_attr ca = { .registration = registration };
	struct rr_segment s;
	struct talk_call c;
	unsigned conns;
	void *mem = NULL;

	open_both(&so4k, &ca);
	still_works();
	if (slab)
		assert_int_equal(rpcrdma_mem_alloc(domain, 16384, &mem), 0);
	get_init(&c, mem, 9001);
	if (by_deadline)
		c.call.deadline_ms = 20;
	talk_go(&c);
	hear();
	s = heard.writes[0].segs[0];
	conns = srv.conns;
	if (!by_deadline)
		rpcrdma_clnt_cancel(clnt, &c.call);
	ended(&c, by_deadline ? -ETIMEDOUT : -ECANCELED);
	/* from now on the memory is its owner's again */
	if (srv.conns == conns && srv.up)
		assert_int_not_equal(raw_server_write(&srv, &s, 0, "too late", 8), RR_WC_OK);
	assert_untouched(&c, 0);
	raw_server_until(&srv, &srv.lost, 1);
	still_works();
	if (slab)
		rpcrdma_mem_free(domain, mem);
	else
		talk_fini(&c);
	close_both();
}

static void item68_given_up(void **state)
{
	(void)state;
	for (int by_deadline = 0; by_deadline < 2; by_deadline++) {
		abandon(by_deadline, "dynamic", false);
		abandon(by_deadline, "auto", false);
		abandon(by_deadline, "cache", false);
		abandon(by_deadline, "batch", false);
		abandon(by_deadline, "slab", false); /* memory of the client's own stands in */
		abandon(by_deadline, "auto", true);
		abandon(by_deadline, "slab", true);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		clnt_test(item43_one_until_the_first_reply),
		clnt_test(item44_grants_rise_and_fall),
		clnt_test_bare(item44_wanted_is_the_ceiling),
		clnt_test(item45_a_receive_for_each_call),
		clnt_test_bare(messages_are_nobodys),
		clnt_test(item50_grant_of_nothing),
		clnt_test_bare(item46_sends_within_the_threshold),
		clnt_test_bare(item48_receives_as_long_as_said),
		clnt_test(item52_what_it_offers),
		clnt_test_bare(item53_private_data),
		clnt_test(item56_calls_go_again),
		clnt_test(item56_backs_off),
		clnt_test_bare(item57_never_twice_on_one_connection),
		clnt_test_bare(item63_late_write_after_the_reply),
		clnt_test_bare(rights_are_those_needed),
		clnt_test(item67_keys_of_another_connection),
		clnt_test_bare(item68_given_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
