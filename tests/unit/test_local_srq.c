/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_local_srq.c - the local fabric: receives that several queue pairs share
 */
#include "test_local_pair.h"

#define PEERS 3
#define DEPTH 8u

struct rig {
	struct rr_fabric *f;
	struct end s, c[PEERS];
	struct rr_srq *srq;
	struct rr_qp *qp[PEERS]; /* of s */
	struct rr_done ended[PEERS];
};

static int post(struct rig *r, unsigned i)
{
	struct rr_recv recv = { .done = &r->s.done[i],
				.sge = { r->s.mem + i * RECV_BYTES, RECV_BYTES, r->s.mr } };

	return rr_srq_post(r->srq, &recv);
}

static void join(struct rig *r, unsigned i)
{
	struct end *c = &r->c[i], *s = &r->s;
	struct rr_qp_attr attr = s->attr;
	int events = s->nevents;

	end_open(c, r->f);
	c->nrecv = 1;
	assert_int_equal(rr_qp_dial(c->cm, pair_path(), NULL, &c->qp), 0);
	end_wait_event(c, s, 1);
	end_setup(c);
	assert_int_equal(rr_qp_connect(c->qp, &c->param), 0);
	end_wait_event(s, NULL, events + 1);
	r->qp[i] = s->qp;
	s->qp = NULL;
	r->ended[i].fn = end_nop;
	attr.pd = s->pd;
	attr.cq = s->cq;
	attr.srq = r->srq;
	attr.end = &r->ended[i];
	assert_int_equal(rr_qp_setup(r->qp[i], &attr), 0);
	assert_int_equal(rr_qp_accept(r->qp[i], &s->param), 0);
	end_wait_event(c, NULL, 2);
	assert_int_equal(c->events[1], RR_CM_ESTABLISHED);
}

static void rig_open(struct rig *r, uint64_t seed, unsigned posted)
{
	struct rr_local_attr a = { .filters = HOOKS(.chaos_seed = seed) };
	struct rr_srq_attr sa = { .depth = DEPTH, .recv_bytes = RECV_BYTES };

	memset(r, 0, sizeof(*r));
	r->f = open_fabric(&a);
	end_open(&r->s, r->f);
	sa.pd = r->s.pd;
	sa.cq = r->s.cq;
	assert_int_equal(rr_srq_create(r->f, &sa, &r->srq), 0);
	assert_int_equal(rr_listen(r->s.cm, pair_path(), NULL, &r->s.l), 0);
	for (unsigned i = 0; i < posted; i++)
		assert_int_equal(post(r, i), 0);
	for (unsigned i = 0; i < PEERS; i++)
		join(r, i);
}

static void poll_all(struct rig *r, unsigned rounds)
{
	while (rounds-- > 0) {
		end_poll(&r->s);
		for (unsigned i = 0; i < PEERS; i++)
			end_poll(&r->c[i]);
	}
}

static void wait_for(struct rig *r, int n)
{
	while (r->s.nwc < n)
		poll_all(r, 1);
}

static void rig_close(struct rig *r)
{
	for (unsigned i = 0; i < PEERS; i++) {
		rr_qp_disconnect(r->c[i].qp);
		end_close(&r->c[i]);
		rr_qp_destroy(r->qp[i]);
	}
	rr_srq_destroy(r->srq);
	end_close(&r->s);
	rr_fabric_close(r->f);
}

static void say(struct rig *r, unsigned who, unsigned msg, char what)
{
	memset(end_msg(&r->c[who], msg), what, 100);
	assert_int_equal(end_send(&r->c[who], msg, 100, RR_WR_SIGNALED), 0);
}

/* Each message takes the oldest receive, and the completion names its queue pair. */
static void test_first_come(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 3; seed++) {
		struct rig r;
		unsigned seen = 0;

		rig_open(&r, seed, 6);
		for (unsigned i = 0; i < 6; i++) {
			unsigned who = (i * 2) % PEERS;

			say(&r, who, i, (char)('a' + i));
			wait_for(&r, (int)i + 1);
			assert_int_equal(r.s.wc[i].status, RR_WC_OK);
			assert_int_equal(r.s.wc[i].byte_len, 100);
			assert_ptr_equal(r.s.wc[i].done, &r.s.done[i]);
			assert_ptr_equal(r.s.wc[i].qp, r.qp[who]);
			assert_int_equal(r.s.mem[i * RECV_BYTES + 99], 'a' + i);
			seen |= 1u << who;
		}
		assert_int_equal(seen, (1u << PEERS) - 1);
		rig_close(&r);
	}
}

/* Without a posted receive messages wait on any queue pair, and no connection ends. */
static void test_waits_for_one(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 3; seed++) {
		unsigned of[PEERS] = { 0 };
		struct rig r;

		rig_open(&r, seed, 1);
		for (unsigned i = 0; i < 6; i++)
			say(&r, i % PEERS, i, (char)('a' + i));
		poll_all(&r, 3000);
		assert_int_equal(r.s.nwc, 1);
		for (unsigned i = 1; i < 6; i++) {
			assert_int_equal(post(&r, i), 0);
			wait_for(&r, (int)i + 1);
			poll_all(&r, 100);
			assert_int_equal(r.s.nwc, i + 1);
		}
		for (unsigned i = 0; i < 6; i++) { /* in order per queue pair */
			unsigned who = 0;

			assert_int_equal(r.s.wc[i].status, RR_WC_OK);
			while (r.qp[who] != r.s.wc[i].qp)
				assert_true(++who < PEERS);
			assert_int_equal(r.s.mem[i * RECV_BYTES], 'a' + who + PEERS * of[who]++);
		}
		for (unsigned i = 0; i < PEERS; i++)
			assert_int_equal(r.c[i].nwc, 2); /* sent, both of them */
		rig_close(&r);
	}
}

/* A sleeper is woken by the post that a message waits for. */
static void test_wakes(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r, 0, 0);
	say(&r, 1, 0, 'x');
	poll_all(&r, 10);
	assert_int_equal(rr_cq_arm(r.s.cq), 0); /* nothing that it could do */
	assert_int_equal(post(&r, 0), 0);
	wait_for(&r, 1);
	assert_ptr_equal(r.s.wc[0].qp, r.qp[1]);
	rig_close(&r);
}

/* The end of a queue pair completes once, consumes no receive, and its turn goes to others. */
static void test_end(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r, 0, 2);
	rr_qp_disconnect(r.c[0].qp); /* by the peer */
	wait_for(&r, 1);
	assert_ptr_equal(r.s.wc[0].done, &r.ended[0]);
	assert_int_equal(r.s.wc[0].status, RR_WC_FLUSHED);
	rr_qp_disconnect(r.qp[1]); /* by us */
	rr_qp_disconnect(r.qp[1]);
	wait_for(&r, 2);
	assert_ptr_equal(r.s.wc[1].done, &r.ended[1]);
	poll_all(&r, 100);
	assert_int_equal(r.s.nwc, 2);
	for (unsigned i = 0; i < 2; i++) {
		say(&r, 2, i, 'z');
		wait_for(&r, 3 + (int)i);
		assert_ptr_equal(r.s.wc[2 + i].done, &r.s.done[i]);
	}
	rig_close(&r);

	rig_open(&r, 0, 0);
	for (unsigned i = 0; i < PEERS; i++)
		say(&r, i, 0, 'w');
	poll_all(&r, 10);
	assert_int_equal(post(&r, 0), 0); /* it is the turn of one that goes before it takes it */
	rr_local_cut(r.qp[0]);
	while (r.s.nwc < 2)
		poll_all(&r, 1);
	assert_int_not_equal(r.s.wc[0].status, r.s.wc[1].status);
	rig_close(&r);
}

/* Whatever is in the queue, one peer has room for as many messages as its queue pair's depth says. */
static void test_room_for_one(void **state)
{
	unsigned sent = 0;
	struct rig r;

	(void)state;
	rig_open(&r, 0, DEPTH);
	while (sent < 200 && !end_send(&r.c[0], 0, 10, RR_WR_SIGNALED)) {
		end_poll(&r.c[0]); /* and the other side does not look */
		if (r.c[0].wc[r.c[0].nwc - 1].status != RR_WC_OK)
			break;
		sent++;
	}
	assert_int_equal(sent, r.s.attr.rq_depth);
	assert_int_equal(r.c[0].wc[sent].status, RR_WC_RNR);
	rig_close(&r);
}

static void test_limits(void **state)
{
	struct rr_srq_attr sa = { .depth = 100000, .recv_bytes = RECV_BYTES };
	struct rr_recv recv;
	struct rr_srq *none;
	struct rig r;

	(void)state;
	rig_open(&r, 0, DEPTH);
	assert_int_equal(post(&r, 0), -ENOMEM);
	sa.pd = r.s.pd;
	sa.cq = r.s.cq;
	assert_int_equal(rr_srq_create(r.f, &sa, &none), -EINVAL);
	recv = (struct rr_recv){ .done = &r.s.done[0],
				 .sge = { r.s.mem, RECV_BYTES - 1, r.s.mr } };
	assert_int_equal(rr_srq_post(r.srq, &recv), -EINVAL); /* too short */
	recv.sge = (struct rr_sge){ r.c[0].mem, RECV_BYTES, r.c[0].mr };
	assert_int_equal(rr_srq_post(r.srq, &recv), -EINVAL); /* another's memory */
	recv.sge = (struct rr_sge){ r.s.mem + 255 * RECV_BYTES + 1, RECV_BYTES, r.s.mr };
	assert_int_equal(rr_srq_post(r.srq, &recv), -EINVAL); /* over its end */
	rig_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_come),   cmocka_unit_test(test_waits_for_one),
		cmocka_unit_test(test_wakes),	     cmocka_unit_test(test_end),
		cmocka_unit_test(test_room_for_one), cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests_name("local_srq", tests, NULL, NULL);
}
