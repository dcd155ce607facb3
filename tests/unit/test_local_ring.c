/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_local_ring.c - the local fabric: messages, doorbells, limits, death
 */
#include "local_int.h"
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

static void test_depths(void **state)
{
	struct rr_fabric *f = open_fabric(NULL);
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
	/* the longest message */
	assert_int_equal(end_send(&c, 0, f->attr.msg_bytes_max + 1, 0), -EINVAL);
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

#define DEPTH 32u

/* Messages of all lengths, as many on their way as there are receives, to an end that polls now and then. */
struct traffic {
	struct end *from, *to;
	unsigned sent, got; /* messages */
	unsigned seed;
	bool long_ones;
};

static unsigned draw(unsigned *seed, unsigned n)
{
	*seed = *seed * 1103515245u + 12345u;
	return (*seed >> 8) % n;
}

static uint32_t len_of(const struct traffic *t, unsigned n)
{
	unsigned seed = n;

	if (t->long_ones)
		return n % (DEPTH + 1) ? RECV_BYTES : 0;
	return draw(&seed, RECV_BYTES + 1);
}

static void send_some(struct traffic *t, unsigned n)
{
	for (unsigned i = 0; i < n; i++, t->sent++) {
		memset(end_msg(t->from, 0), (int)(t->sent & 0xff), RECV_BYTES);
		assert_int_equal(end_send(t->from, 0, len_of(t, t->sent), RR_WR_SIGNALED), 0);
		t->from->nwc = 0;
		end_poll(t->from);
	}
}

static void receive_some(struct traffic *t, unsigned most)
{
	for (unsigned i = 0; i < most && t->got < t->sent; i++, t->got++) {
		struct rr_recv *r = &t->to->recv[t->got % DEPTH];
		const uint8_t *got = r->sge.addr;
		struct rr_wc wc;

		while (!rr_cq_poll(t->to->cq, &wc, 1))
			;
		assert_int_equal(wc.status, RR_WC_OK);
		assert_ptr_equal(wc.done, r->done);
		assert_int_equal(wc.byte_len, len_of(t, t->got));
		for (uint32_t k = 0; k < wc.byte_len; k++)
			assert_int_equal(got[k], t->got & 0xff);
		assert_int_equal(rr_post_recv(t->to->qp, r), 0);
	}
}

static void test_bytes_in_order(void **state)
{
	(void)state;
	for (int long_ones = 0; long_ones < 2; long_ones++) {
		struct rr_fabric *f = open_fabric(NULL);
		struct end c, s;
		struct traffic t = { .from = &c, .to = &s, .seed = 1, .long_ones = long_ones };

		pair_open(&c, &s, f);
		for (unsigned i = s.nrecv; i < DEPTH; i++) {
			s.recv[i] = (struct rr_recv){ .done = &s.done[i], .sge = { s.mem + i * RECV_BYTES, RECV_BYTES, s.mr } };
			assert_int_equal(rr_post_recv(s.qp, &s.recv[i]), 0);
		}
		while (t.got < 20000 && long_ones) { /* a short one, which is taken, shifts as many long ones as there may be */
			send_some(&t, 1);
			receive_some(&t, 1);
			send_some(&t, DEPTH);
			receive_some(&t, DEPTH);
		}
		while (t.got < 20000) {
			send_some(&t, draw(&t.seed, DEPTH + 1 - (t.sent - t.got)));
			receive_some(&t, draw(&t.seed, DEPTH + 1));
		}
		receive_some(&t, UINT_MAX);
		pair_close(&c, &s);
		rr_fabric_close(f);
	}
}

/* Rings, queues and completions: what is seldom full uses little memory. */
static void test_few_messages_use_little(void **state)
{
	struct rr_fabric *f = open_fabric(NULL);
	struct end c, s;

	(void)state;
	pair_open(&c, &s, f);
	for (unsigned i = 0; i < 1000; i++) {
		const struct local_qp *q = to_qp(c.qp);

		c.nwc = s.nwc = 0;
		assert_int_equal(end_send(&c, 0, 100, RR_WR_SIGNALED), 0);
		pair_wait(&s, &c, 1);
		pair_wait(&c, &s, 1);
		assert_true(q->peer_ring.at <= 4096 + 128);
		assert_true(q->sq_head <= 1 && q->cqe_head <= 1);
		assert_int_equal(rr_post_recv(s.qp, &s.recv[i % s.nrecv]), 0);
	}
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
	struct pollfd p = { .fd = e->cq->fd, .events = POLLIN };

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_send_both_ways),
		cmocka_unit_test(test_depths),
		cmocka_unit_test(test_rnr),
		cmocka_unit_test(test_too_long),
		cmocka_unit_test(test_bytes_in_order),
		cmocka_unit_test(test_few_messages_use_little),
		cmocka_unit_test(test_disconnect_delivers_first),
		cmocka_unit_test(test_destroy_is_death),
		cmocka_unit_test(test_two_sleepers),
		cmocka_unit_test(test_arm_wakes_for_own_completion),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
