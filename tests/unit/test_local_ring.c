/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_local_ring.c - the local fabric: messages, doorbells, limits, death
 */
#include "test_local_pair.h"

#include <poll.h>
#include <pthread.h>

static void test_send_both_ways(void **state)
{
	struct rr_fabric *f = open_fabric(NULL);
	struct end c, s;

	(void)state;
	pair_open(&c, &s, f);
	assert_memory_equal(s.priv, "hello", 5);
	assert_memory_equal(c.priv, "hello", 5);
	assert_true(s.peer.has_cred);
	assert_int_equal(s.peer.pid, getpid());
	assert_int_equal(s.peer.uid, geteuid());
	for (int i = 0; i < 100; i++) {
		struct end *a = i & 1 ? &s : &c, *b = i & 1 ? &c : &s;
		struct rr_recv *r = &b->recv[(unsigned)(i / 2) % b->nrecv];

		a->nwc = b->nwc = 0;
		memset(end_msg(a, 0), i, RECV_BYTES);
		assert_int_equal(end_send(a, 0, (uint32_t)i * 10, RR_WR_SIGNALED), 0);
		pair_wait(b, a, 1);
		pair_wait(a, b, 1);
		assert_int_equal(a->wc[0].status, RR_WC_OK);
		assert_int_equal(b->wc[0].status, RR_WC_OK);
		assert_int_equal(b->wc[0].byte_len, i * 10);
		assert_ptr_equal(b->wc[0].done, r->done);
		assert_false(b->wc[0].with_inv);
		for (int k = 0; k < i * 10; k++)
			assert_int_equal(((uint8_t *)r->sge.addr)[k], i);
		assert_int_equal(rr_post_recv(b->qp, r), 0);
	}
	pair_close(&c, &s);
	rr_fabric_close(f);
}

static void test_inline_and_gather(void **state)
{
	struct rr_fabric *f = open_fabric(NULL);
	struct end c, s;
	char a[] = "in", b[] = "line";
	struct rr_sge sge[2] = { { a, 2, NULL }, { b, 4, NULL } };
	struct rr_wr wr = { .op = RR_WR_SEND, .flags = RR_WR_SIGNALED | RR_WR_INLINE, .sge = sge,
			    .nsge = 2 };

	(void)state;
	pair_open(&c, &s, f);
	wr.done = &c.done[0];
	assert_int_equal(rr_post_send(c.qp, &wr), 0);
	pair_wait(&s, &c, 1);
	assert_memory_equal(s.recv[0].sge.addr, "inline", 6);
	sge[1].len = c.attr.inline_max;
	assert_int_equal(rr_post_send(c.qp, &wr), -EINVAL);
	pair_close(&c, &s);
	rr_fabric_close(f);
}

static void test_depths(void **state)
{
	struct rr_fabric *f = open_fabric(NULL);
	struct rr_sge sge[5] = { { 0 } };
	struct end c, s;

	(void)state;
	pair_open(&c, &s, f);
	/* receive queue: 16 are posted, 32 fit */
	for (int i = 0; i < 16; i++)
		assert_int_equal(rr_post_recv(s.qp, &s.recv[0]), 0);
	assert_int_equal(rr_post_recv(s.qp, &s.recv[0]), -ENOMEM);
	s.recv[0].sge.len--;
	assert_int_equal(rr_post_recv(s.qp, &s.recv[0]), -EINVAL);
	/* send queue: carried out, but not given back before a signalled one is polled */
	for (int i = 0; i < 31; i++)
		assert_int_equal(end_send(&c, 0, 8, 0), 0);
	assert_int_equal(end_send(&c, 0, 8, RR_WR_SIGNALED), 0);
	assert_int_equal(end_send(&c, 0, 8, 0), -ENOMEM);
	pair_wait(&c, &s, 1);
	assert_int_equal(c.nwc, 1);
	pair_wait(&s, &c, 32);
	for (int i = 0; i < 32; i++)
		assert_int_equal(rr_post_recv(s.qp, &s.recv[1]), 0);
	assert_int_equal(end_send(&c, 0, 8, 0), 0);
	/* SGEs */
	struct rr_wr wr = { .done = &c.done[0], .op = RR_WR_SEND, .sge = sge, .nsge = 5 };

	assert_int_equal(rr_post_send(c.qp, &wr), -EINVAL);
	pair_close(&c, &s);
	rr_fabric_close(f);
}

static void test_rnr(void **state)
{
	struct rr_fabric *f = open_fabric(NULL);
	struct end c, s;

	(void)state;
	pair_open(&c, &s, f);
	for (int i = 0; i < 16; i++)
		assert_int_equal(end_send(&c, 0, 1, 0), 0);
	assert_int_equal(end_send(&c, 0, 1, 0), 0);
	pair_wait(&c, &s, 17);
	assert_int_equal(c.wc[0].status, RR_WC_RNR);
	for (int i = 1; i < 17; i++)
		assert_int_equal(c.wc[i].status, RR_WC_FLUSHED);
	pair_wait(&s, &c, 16);
	assert_int_equal(end_send(&c, 0, 1, 0), -ENOTCONN);
	pair_close(&c, &s);
	rr_fabric_close(f);
}

static void test_rnr_waits(void **state)
{
	struct rr_fabric *f = open_fabric(NULL);
	struct end c, s;

	(void)state;
	end_open(&c, f, 256);
	end_open(&s, f, 256);
	c.param.rnr_retry = 7;
	s.nrecv = 1;
	assert_int_equal(rr_listen(s.cm, pair_path(), NULL, &s.l), 0);
	pair_connect(&c, &s);
	assert_int_equal(end_send(&c, 0, 1, 0), 0);
	assert_int_equal(end_send(&c, 1, 2, RR_WR_SIGNALED), 0);
	assert_int_equal(end_poll(&c), 0);
	pair_wait(&s, &c, 1);
	assert_int_equal(rr_post_recv(s.qp, &s.recv[0]), 0);
	pair_wait(&s, &c, 2);
	pair_wait(&c, &s, 1);
	assert_int_equal(c.wc[0].status, RR_WC_OK);
	assert_int_equal(s.wc[1].byte_len, 2);
	pair_close(&c, &s);
	rr_fabric_close(f);
}

static void test_too_long(void **state)
{
	struct rr_fabric *f = open_fabric(NULL);
	struct end c, s;

	(void)state;
	pair_open(&c, &s, f);
	assert_int_equal(end_send(&c, 0, RECV_BYTES + 1, 0), 0);
	pair_wait(&c, &s, 17);
	assert_int_equal(c.wc[0].status, RR_WC_REM_OP);
	pair_wait(&s, &c, 16);
	assert_int_equal(s.wc[0].status, RR_WC_FLUSHED);
	pair_close(&c, &s);
	rr_fabric_close(f);
}

static void test_disconnect_delivers_first(void **state)
{
	struct rr_fabric *f = open_fabric(NULL);
	struct end c, s;

	(void)state;
	pair_open(&c, &s, f);
	assert_int_equal(end_send(&c, 0, 77, RR_WR_SIGNALED), 0);
	rr_qp_disconnect(c.qp);
	rr_qp_disconnect(c.qp);
	pair_wait(&c, &s, 17);
	pair_wait(&s, &c, 16);
	assert_int_equal(s.wc[0].status, RR_WC_OK);
	assert_int_equal(s.wc[0].byte_len, 77);
	for (int i = 1; i < 16; i++)
		assert_int_equal(s.wc[i].status, RR_WC_FLUSHED);
	assert_int_equal(end_poll(&s), 0);
	pair_close(&c, &s);
	rr_fabric_close(f);
}

static void test_destroy_is_death(void **state)
{
	struct rr_fabric *f = open_fabric(NULL);
	struct end c, s;

	(void)state;
	pair_open(&c, &s, f);
	rr_qp_destroy(c.qp);
	c.qp = NULL;
	while (s.nwc < 16)
		end_poll(&s); /* never sleeps: the descriptors are looked at now and then */
	assert_int_equal(s.wc[15].status, RR_WC_FLUSHED);
	end_close(&c);
	end_close(&s);
	rr_fabric_close(f);
}

static void wait_fd(struct end *e)
{
	struct pollfd p = { .fd = rr_cq_fd(e->cq), .events = POLLIN };

	assert_int_equal(poll(&p, 1, -1), 1);
}

/* Sleeps as a well-behaved owner does, until there are @n completions. */
static void sleep_until(struct end *e, int n)
{
	while (e->nwc < n) {
		if (end_poll(e))
			continue;
		if (!rr_cq_arm(e->cq))
			wait_fd(e);
	}
}

#define ECHOES 2000

static void *echo(void *arg)
{
	struct end *s = arg;

	for (unsigned i = 0; i < ECHOES;) {
		sleep_until(s, 1);
		for (int k = 0; k < s->nwc; k++) {
			assert_int_equal(s->wc[k].status, RR_WC_OK);
			if (s->wc[k].done == &s->done[100])
				continue; /* an answer of ours has gone */
			assert_int_equal(rr_post_recv(s->qp, &s->recv[i++ % 16]), 0);
			assert_int_equal(end_send(s, 0, 8, RR_WR_SIGNALED), 0);
		}
		s->nwc = 0;
	}
	return NULL;
}

static void test_two_sleepers(void **state)
{
	struct rr_fabric *f = open_fabric(NULL);
	struct end c, s;
	pthread_t t;

	(void)state;
	pair_open(&c, &s, f);
	assert_int_equal(pthread_create(&t, NULL, echo, &s), 0);
	for (int i = 0; i < ECHOES; i++) {
		assert_int_equal(end_send(&c, 0, 8, RR_WR_SIGNALED), 0);
		sleep_until(&c, 2);
		assert_int_equal(c.wc[0].status, RR_WC_OK);
		assert_int_equal(c.wc[1].status, RR_WC_OK);
		c.nwc = 0;
		assert_int_equal(rr_post_recv(c.qp, &c.recv[(unsigned)i % 16]), 0);
	}
	assert_int_equal(pthread_join(t, NULL), 0);
	pair_close(&c, &s);
	rr_fabric_close(f);
}

static void test_arm_wakes_for_own_completion(void **state)
{
	struct rr_fabric *f = open_fabric(NULL);
	struct end c, s;

	(void)state;
	pair_open(&c, &s, f);
	while (rr_cq_arm(c.cq))
		assert_int_equal(end_poll(&c), 0);
	assert_int_equal(end_send(&c, 0, 8, RR_WR_SIGNALED), 0);
	wait_fd(&c);
	assert_int_equal(end_poll(&c), 1);
	pair_close(&c, &s);
	rr_fabric_close(f);
}

static void test_cq_overrun(void **state)
{
	struct rr_fabric *f = open_fabric(NULL);
	struct end c, s;

	(void)state;
	end_open(&c, f, 4);
	end_open(&s, f, 256);
	c.nrecv = 1;
	assert_int_equal(rr_listen(s.cm, pair_path(), NULL, &s.l), 0);
	pair_connect(&c, &s);
	for (int i = 0; i < 5; i++)
		assert_int_equal(end_send(&c, 0, 8, RR_WR_SIGNALED), 0);
	pair_wait(&c, &s, 6);
	assert_int_equal(c.wc[5].status, RR_WC_FLUSHED);
	assert_int_equal(end_send(&c, 0, 8, 0), -ENOTCONN);
	pair_close(&c, &s);
	rr_fabric_close(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_send_both_ways),
		cmocka_unit_test(test_inline_and_gather),
		cmocka_unit_test(test_depths),
		cmocka_unit_test(test_rnr),
		cmocka_unit_test(test_rnr_waits),
		cmocka_unit_test(test_too_long),
		cmocka_unit_test(test_disconnect_delivers_first),
		cmocka_unit_test(test_destroy_is_death),
		cmocka_unit_test(test_two_sleepers),
		cmocka_unit_test(test_arm_wakes_for_own_completion),
		cmocka_unit_test(test_cq_overrun),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
