/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_modes_clnt.c - the requester's modes against a responder that says exactly what the test wants
 *
 * A client that asked for a mode checks all that the responder sends for it: what does not fit its call ends
 * the connection, and the call is sent again over the next.
 */
#include "clnt_talk.h"
#include "inside.h"
#include "mode.h"
#include "lab.h"

static uint8_t priv[RR_PRIV_BYTES + RR_SUFFIX_BYTES];
static uint8_t area[1 << 20];      /* of the server's, for its offers and its room */
static struct rr_mr *area_mr;

static struct rr_suffix answer_to(unsigned modes)
{
	return (struct rr_suffix){ .modes = modes, .slot_bytes = 8192, .slots = 2, .handle = 1,
				   .offset = 4096, .grant_max = 1 << 20 };
}

static void open_as(unsigned modes, const struct rr_suffix *s, const char *registration)
{
	const struct raw_server_opts so = { .priv = priv, .priv_len = sizeof(priv) };
	const struct rpcrdma_clnt_attr ca = { .lab = LAB(.modes = modes), .timeout_ms = 2000,
					      .registration = registration };
	struct rr_mr_attr ma = { .addr = area, .len = sizeof(area), .fd = -1,
				 .access = RR_ACCESS_LOCAL_WRITE | RR_ACCESS_REMOTE };

	memcpy(priv, priv4k, RR_PRIV_BYTES);
	rr_suffix_encode(s, priv + RR_PRIV_BYTES);
	open_both(&so, &ca);
	assert_int_equal(rr_mr_reg(srv.pd, &ma, &area_mr), 0);
}

static void open_with(unsigned modes, const struct rr_suffix *s)
{
	open_as(modes, s, NULL);
}

static int close_area(void **state)
{
	if (area_mr)
		rr_mr_dereg(area_mr);
	area_mr = NULL;
	return tear_down(state);
}

static struct rr_segment at(uint32_t off, uint32_t len)
{
	return (struct rr_segment){ area_mr->rkey, len, (uint64_t)(uintptr_t)area + off };
}

/* ---- what is asked, what is answered ------------------------------------------------------ */

static void what_is_asked(void **state)
{
	const struct rr_suffix s = answer_to(RPCRDMA_READ_READ);
	struct talk_call c;

	(void)state;
	open_with(RPCRDMA_READ_READ, &s);
	assert_int_equal(srv.client_priv_len, sizeof(priv));
	assert_int_equal(srv.client_priv.recv_bytes, 4096);
	assert_int_equal(srv.reads_wanted, 16);
	start_get(&c, 9000);
	hear();
	assert_int_equal(heard.nwrites, 0); /* the server is to offer it */
	assert_false(heard.has_reply);
	answer_begin(RR_MSG);
	answer_word(5);
	reply();
	ended(&c, 0);
	talk_fini(&c);
}

/* Another mode than was asked for, half of it, with nonsense in it, or none: no connection. */
static void not_what_was_asked(void **state)
{
	(void)state;
	for (unsigned how = 0; how < 10; how++) {
		unsigned modes = RPCRDMA_FAST_WRITE | RPCRDMA_HYBRID;
		struct rr_suffix s = answer_to(modes);
		struct talk_call c;

		switch (how) {
		case 0:
			s.modes = RPCRDMA_READ_READ;
			break;
		case 1:
			s.modes = RPCRDMA_HYBRID;
			break;
		case 2:
			s.modes = RPCRDMA_MODES_ALL;
			break;
		case 3:
			s.modes = 0;
			s.status = RR_SUFFIX_NOT_OFFERED;
			break;
		case 4:
			s.modes = 0;
			s.status = RR_SUFFIX_NO_MEMORY;
			break;
		case 5:
			s.slots = 0;
			break;
		case 6:
			s.slots = RR_SLOTS_MAX + 1;
			break;
		case 7:
			s.slot_bytes = 0;
			break;
		case 8:
			s.slot_bytes = RPCRDMA_FAST_WRITE_MAX + 1;
			break;
		case 9:
			s.grant_max = 0;
			break;
		}
		open_with(modes, &s);
		start_null(&c);
		ended(&c, -ENOPROTOOPT);
		assert_non_null(strstr(c.call.why, how == 4 ? "no memory left" : "does not offer"));
		talk_fini(&c);
		rr_mr_dereg(area_mr);
		area_mr = NULL;
		close_both();
	}
}

/* ---- read-read ---------------------------------------------------------------------------- */

/* A reply to a GET whose @len bytes are on offer, at @position, in @n pieces. */
static void answer_offer(uint32_t len, uint32_t position, unsigned n, uint32_t told)
{
	answer_begin(RR_MSG);
	answer_word(0);
	answer_word(told);
	for (unsigned i = 0; i < n; i++)
		ans.hdr.reads[i] = (struct rr_read_seg){ position, at(i * (len / n), i + 1 < n ?
						len / n : len - i * (len / n)) };
	ans.hdr.nreads = n;
}

static void hear_done(uint32_t xid)
{
	const uint8_t *got = raw_server_recv(&srv, &send_len);

	assert_non_null(got);
	assert_int_equal(send_len, RR_HDR_FIXED);
	assert_int_equal(get_be32(got), xid);
	assert_int_equal(get_be32(got + 12), RR_DONE);
}

static void read_and_done(void **state)
{
	const struct rr_suffix s = answer_to(RPCRDMA_READ_READ);
	struct talk_call c;

	(void)state;
	open_with(RPCRDMA_READ_READ, &s);
	for (uint32_t i = 0; i < sizeof(area); i++)
		area[i] = wire_byte(i);
	for (unsigned n = 1; n <= 3; n++) {
		start_get(&c, 20000);
		hear();
		answer_offer(15000, 32, n, 15000);
		reply();
		hear_done(heard.xid);
		ended(&c, 0);
		assert_int_equal(c.call.payload_bytes, 15000);
		assert_pattern(c.mem, 15000);
		assert_untouched(&c, 15000);
		talk_fini(&c);
	}
}

/* Each of these costs the connection, and the call comes again. */
static void offers_that_are_wrong(void **state)
{
	const struct rr_suffix s = answer_to(RPCRDMA_READ_READ);

	(void)state;
	open_with(RPCRDMA_READ_READ, &s);
	for (unsigned how = 0; how < 7; how++) {
		struct talk_call c;

		start_get(&c, 20000);
		hear();
		answer_offer(10000, 32, 1, 10000);
		switch (how) {
		case 0: /* more than was asked for */
			ans.hdr.reads[0].seg.length = 20001;
			break;
		case 1: /* nothing */
			ans.hdr.reads[0].seg.length = 0;
			break;
		case 2: /* where nothing belongs */
			ans.hdr.reads[0].position = 36;
			break;
		case 3: /* not what the message says */
			ans.hdr.reads[0].seg.length = 9996;
			break;
		case 4: /* two chunks */
			ans.hdr.nreads = 2;
			ans.hdr.reads[1] = (struct rr_read_seg){ 64, at(0, 4) };
			break;
		case 5: /* more segments than any responder sends */
			answer_offer(10000, 32, 40, 10000);
			break;
		case 6: /* a key that is none */
			ans.hdr.reads[0].seg.handle ^= 0x10000;
			break;
		}
		reply();
		raw_server_until(&srv, how == 6 ? &srv.conns : &c.done, how == 6 ? srv.conns + 1 : 1);
		if (how == 6) { /* it was the connection's failure, not the reply's */
			hear();
			answer_offer(10000, 32, 1, 10000);
			reply();
			ended(&c, 0);
			hear_done(heard.xid);
		} else {
			assert_int_equal(c.err, how == 3 ? c.err : -EPROTO);
			assert_int_not_equal(c.err, 0);
			if (how < 2) /* found out before anything is read */
				assert_non_null(strstr(c.call.why, "does not fit"));
			raw_server_settle(&srv);
			while (raw_server_recv(&srv, &send_len))
				; /* RDMA_DONE, where it was read before it was understood */
		}
		talk_fini(&c);
	}
}

static void offers_to_nobody_go_back(void **state)
{
	const struct rr_suffix s = answer_to(RPCRDMA_READ_READ);
	struct talk_call c;

	(void)state;
	open_with(RPCRDMA_READ_READ, &s);
	start_get(&c, 20000);
	hear();
	rpcrdma_clnt_cancel(clnt, &c.call);
	assert_int_equal(c.err, -ECANCELED);
	answer_offer(10000, 32, 1, 10000);
	reply();
	hear_done(heard.xid);
	assert_untouched(&c, 0);
	assert_true(raw_server_alive(&srv));
	talk_fini(&c);
}

static void a_read_list_without_the_mode(void **state)
{
	const struct rr_suffix s = answer_to(RPCRDMA_HYBRID);
	struct talk_call c;

	(void)state;
	open_with(RPCRDMA_HYBRID, &s);
	start_get(&c, 3000);
	hear();
	answer_offer(3000, 32, 1, 3000);
	reply();
	ended(&c, -EPROTO);
	talk_fini(&c);
}

/* ---- fast-write --------------------------------------------------------------------------- */

/* Slots that are written to before the server has said anything need not be there yet. */
static void slots_after_the_first_message(void **state)
{
	struct rr_suffix s = answer_to(RPCRDMA_FAST_WRITE);
	const struct raw_server_opts so = { .priv = priv, .priv_len = sizeof(priv) };
	const struct rpcrdma_clnt_attr ca = { .lab = LAB(.modes = RPCRDMA_FAST_WRITE), .timeout_ms = 20000 };
	struct rr_mr_attr ma = { .addr = area, .len = sizeof(area), .fd = -1,
				 .access = RR_ACCESS_LOCAL_WRITE | RR_ACCESS_REMOTE_WRITE };
	struct rpcrdma_stats st;
	struct talk_call c;

	(void)state;
	memset(area, 0, sizeof(area));
	raw_server_open(&srv, engine, path, &so);
	assert_int_equal(rr_mr_reg(srv.pd, &ma, &area_mr), 0);
	s.handle = area_mr->rkey;
	s.offset = (uint64_t)(uintptr_t)area;
	memcpy(priv, priv4k, RR_PRIV_BYTES);
	rr_suffix_encode(&s, priv + RR_PRIV_BYTES);
	connect_clnt(&ca);
	for (unsigned conns = 1; conns <= 2; conns++) { /* on each connection */
		raw_server_until(&srv, &srv.conns, conns);
		start_put(&c, 5000);
		hear();
		assert_int_equal(heard.nreads, 1);
		assert_int_not_equal(heard.reads[0].seg.handle, area_mr->rkey);
		answer_put(5000);
		ended(&c, 0);
		talk_fini(&c);
		rpcrdma_domain_stats(domain, &st);
		assert_int_equal(st.fast_writes, conns - 1);

		start_put(&c, 5000);
		assert_non_null(raw_server_recv(&srv, &send_len));
		rpcrdma_domain_stats(domain, &st);
		assert_int_equal(st.fast_writes, conns);
		assert_pattern(area + RR_SLOT_HEAD, 5000);
		memset(area, 0, sizeof(area));
		rpcrdma_clnt_cancel(clnt, &c.call);
		talk_fini(&c);
		raw_server_hang_up(&srv);
	}
}

/* ---- hybrid ------------------------------------------------------------------------------- */

static void hear_want(uint32_t bytes)
{
	const uint8_t *got = raw_server_recv(&srv, &send_len);

	assert_non_null(got);
	assert_int_equal(send_len, RR_WANT_BYTES);
	assert_int_equal(get_be32(got + 12), RR_WANT);
	assert_int_equal(get_be32(got + 16), bytes);
	heard.xid = get_be32(got);
}

static void grant(uint32_t xid, struct rr_segment s)
{
	uint8_t msg[RR_GRANT_BYTES];

	put_be32(msg, xid);
	put_be32(msg + 4, 1);
	put_be32(msg + 8, 32);
	put_be32(msg + 12, RR_GRANT);
	put_be32(msg + 16, s.handle);
	put_be32(msg + 20, s.length);
	put_be64(msg + 24, s.offset);
	assert_int_equal(raw_server_send(&srv, msg, sizeof(msg)), RR_WC_OK);
}

/* The call itself, whose header says RR_HERE. */
static void hear_here(void)
{
	const uint8_t *got = raw_server_recv(&srv, &send_len);
	static uint8_t msg[4096];
	size_t hdr_len;

	assert_non_null(got);
	assert_int_equal(get_be32(got + 12), RR_HERE);
	memcpy(msg, got, send_len);
	put_be32(msg + 12, RR_MSG);
	assert_int_equal(rr_hdr_decode(msg, send_len, &heard, &hdr_len), 0);
	assert_int_equal(heard.nreads, 1);
}

static void room_and_written(void **state)
{
	const struct rr_suffix s = answer_to(RPCRDMA_HYBRID);
	struct talk_call c;

	(void)state;
	open_with(RPCRDMA_HYBRID, &s);
	memset(area, 0, sizeof(area));
	start_put(&c, 30001);
	hear_want(30001);
	grant(heard.xid, at(8192, 32768)); /* more than was wanted is fine */
	hear_here();
	assert_int_equal(heard.reads[0].seg.length, 30001);
	assert_true(heard.reads[0].seg.offset == (uintptr_t)area + 8192);
	assert_pattern(area + 8192, 30001);
	assert_int_equal(area[8191] | area[8192 + 30001], 0);
	answer_put(30001);
	ended(&c, 0);
	talk_fini(&c);
	/* none is given: then it is done as ever, and not asked again for this one */
	start_put(&c, 30001);
	hear_want(30001);
	grant(heard.xid, at(0, 0));
	hear();
	assert_int_equal(heard.nreads, 1);
	answer_put(30001);
	ended(&c, 0);
	talk_fini(&c);
}

static void room_that_is_wrong(void **state)
{
	const struct rr_suffix s = answer_to(RPCRDMA_HYBRID);

	(void)state;
	open_with(RPCRDMA_HYBRID, &s);
	for (unsigned how = 0; how < 4; how++) {
		unsigned conns = srv.conns;
		struct talk_call c;

		start_put(&c, 30001);
		hear_want(30001);
		switch (how) {
		case 0: /* too little */
			grant(heard.xid, at(0, 30000));
			break;
		case 1: /* twice */
			grant(heard.xid, at(0, 40000));
			hear_here();
			grant(heard.xid, at(0, 40000));
			break;
		case 2: { /* half a message */
			const uint8_t msg[20] = { [7] = 1, [15] = RR_GRANT };

			assert_int_equal(raw_server_send(&srv, msg, sizeof(msg)), RR_WC_OK);
			break;
		}
		case 3: /* a key that is none: written to in vain */
			grant(heard.xid, (struct rr_segment){ area_mr->rkey ^ 0x10000, 40000, 4096 });
			break;
		}
		raw_server_until(&srv, &srv.conns, conns + 1);
		hear_want(30001); /* the same call, over the next one */
		grant(heard.xid, at(0, 30001));
		hear_here();
		answer_put(30001);
		ended(&c, 0);
		talk_fini(&c);
	}
}

/* A call that has not been sent is answered: while its room is asked for, and while it has room and waits
 * until others let go of registrations. */
static void answers_to_what_was_not_sent(void **state)
{
	const struct rr_suffix s = answer_to(RPCRDMA_HYBRID);

	(void)state;
	for (unsigned waits = 0; waits < 2; waits++) {
		struct talk_call null, first, c;
		struct rr_hdr first_heard;

		open_as(RPCRDMA_HYBRID, &s, "dynamic");
		start_null(&null); /* its answer grants more than one call at once */
		hear();
		answer_begin(RR_MSG);
		reply();
		ended(&null, 0);
		talk_fini(&null);
		start_put(&first, 30001);
		hear_want(30001);
		grant(heard.xid, at(0, 30001));
		hear_here();
		first_heard = heard;
		start_put(&c, 30001);
		hear_want(30001);
		if (waits) {
			struct hooks *hooks = faults_of(local_fabric(domain));

			hooks->fail_reg = 1;
			grant(heard.xid, at(40000, 30001));
			raw_server_settle(&srv);
			assert_int_equal(hooks->fail_reg, 0);
		}
		heard.nreads = 0;
		answer_put(30001);
		ended(&c, -EPROTO);
		assert_non_null(strstr(c.call.why, "not been sent"));
		talk_fini(&c);
		/* the other one is repeated over the next connection */
		hear_want(30001);
		assert_int_equal(heard.xid, first_heard.xid);
		grant(heard.xid, at(0, 30001));
		hear_here();
		answer_put(30001);
		ended(&first, 0);
		talk_fini(&first);
		rr_mr_dereg(area_mr);
		area_mr = NULL;
		close_both();
	}
}

static void room_for_nobody_goes_back(void **state)
{
	const struct rr_suffix s = answer_to(RPCRDMA_HYBRID);
	struct talk_call c;

	(void)state;
	open_with(RPCRDMA_HYBRID, &s);
	start_put(&c, 30001);
	hear_want(30001);
	rpcrdma_clnt_cancel(clnt, &c.call);
	assert_int_equal(c.err, -ECANCELED);
	talk_fini(&c);
	start_put(&c, 5000); /* waits: one call at a time before the first answer */
	grant(heard.xid, at(0, 30001));
	hear_done(heard.xid);
	hear_want(5000);
	grant(heard.xid, at(0, 5000));
	hear_here();
	answer_put(5000);
	ended(&c, 0);
	talk_fini(&c);
}

/* Room was asked for, and the answer to the call comes, which cannot be: as if it had offered what a call
 * before it did. */
static void answered_before_it_was_called(void **state)
{
	const struct rr_suffix s = answer_to(RPCRDMA_HYBRID);
	struct talk_call c;

	(void)state;
	open_with(RPCRDMA_HYBRID, &s);
	start_big(&c, 20000);
	hear();
	answer_begin(RR_NOMSG);
	answer_big(20000);
	into_reply_chunk();
	reply();
	ended(&c, 0);
	talk_fini(&c);
	start_put(&c, 30001);
	hear_want(30001);
	ans.hdr.xid = heard.xid;
	reply();
	ended(&c, -EPROTO);
	talk_fini(&c);
}

#define modes_test(f) cmocka_unit_test_setup_teardown(f, set_up_engine, close_area)

int main(void)
{
	const struct CMUnitTest tests[] = {
		modes_test(what_is_asked),
		modes_test(not_what_was_asked),
		modes_test(read_and_done),
		modes_test(offers_that_are_wrong),
		modes_test(offers_to_nobody_go_back),
		modes_test(a_read_list_without_the_mode),
		modes_test(slots_after_the_first_message),
		modes_test(room_and_written),
		modes_test(room_that_is_wrong),
		modes_test(answers_to_what_was_not_sent),
		modes_test(room_for_nobody_goes_back),
		modes_test(answered_before_it_was_called),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
