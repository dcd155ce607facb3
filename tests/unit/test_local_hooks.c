/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_local_hooks.c - the local fabric's hooks: faults on demand, a rate, and chaos
 */
#include <poll.h>

#include "base/clock.h"
#include "hooks.h"
#include "test_local_pair.h"

static void test_fail_post(void **state)
{
	struct rr_fabric *f = open_fabric(NULL);
	struct end c, s;

	(void)state;
	pair_open(&c, &s, f);
	faults_of(f)->fail_post = 3;
	assert_int_equal(end_send(&c, 0, 1, 0), 0);
	assert_int_equal(rr_post_recv(c.qp, &c.recv[0]), 0);
	assert_int_equal(end_send(&c, 0, 1, 0), -ENOMEM);
	assert_int_equal(end_send(&c, 0, 1, RR_WR_SIGNALED), 0);
	pair_wait(&s, &c, 2);
	assert_int_equal(end_poll(&s), 0);
	pair_close(&c, &s);
	rr_fabric_close(f);
}

static void test_fail_completion(void **state)
{
	struct rr_fabric *f = open_fabric(NULL);
	struct end c, s;

	(void)state;
	pair_open(&c, &s, f);
	faults_of(f)->fail_completion = 2;
	assert_int_equal(end_send(&c, 0, 1, RR_WR_SIGNALED), 0);
	assert_int_equal(end_send(&c, 0, 1, RR_WR_SIGNALED), 0);
	pair_wait(&c, &s, 18);
	assert_int_equal(c.wc[0].status, RR_WC_OK);
	assert_int_equal(c.wc[1].status, RR_WC_LOST);
	assert_int_equal(c.wc[2].status, RR_WC_FLUSHED);
	pair_wait(&s, &c, 16);
	assert_int_equal(s.wc[15].status, RR_WC_FLUSHED);
	pair_close(&c, &s);
	rr_fabric_close(f);
}

static void test_drop_completion(void **state)
{
	struct rr_fabric *f = open_fabric(NULL);
	struct end c, s;

	(void)state;
	pair_open(&c, &s, f);
	faults_of(f)->drop_completion = 1;
	assert_int_equal(end_send(&c, 0, 1, RR_WR_SIGNALED), 0);
	assert_int_equal(end_send(&c, 1, 1, RR_WR_SIGNALED), 0);
	pair_wait(&c, &s, 1);
	assert_ptr_equal(c.wc[0].done, &c.done[101]);
	assert_int_equal(end_poll(&c), 0);
	pair_wait(&s, &c, 2);
	pair_close(&c, &s);
	rr_fabric_close(f);
}

static void test_split(void **state)
{
	(void)state;
	for (int delivers = 0; delivers < 2; delivers++) {
		struct rr_fabric *f = open_fabric(NULL);
		struct end c, s;
		int ok = 0;

		pair_open(&c, &s, f);
		faults_of(f)->cut_after_sends = 3;
		faults_of(f)->cut_delivers = delivers;
		for (int i = 0; i < 3; i++)
			assert_int_equal(end_send(&c, 0, 1, RR_WR_SIGNALED), 0);
		pair_wait(&c, &s, 19);
		assert_int_equal(c.wc[1].status, RR_WC_OK);
		assert_int_equal(c.wc[2].status, RR_WC_FLUSHED);
		pair_wait(&s, &c, 16);
		for (int i = 0; i < 16; i++)
			ok += s.wc[i].status == RR_WC_OK;
		assert_int_equal(ok, 2 + delivers);
		pair_close(&c, &s);
		rr_fabric_close(f);
	}
}

static void test_rate(void **state)
{
	struct rr_local_attr attr = { .link.rate_bytes_s = 100 << 20, .link.op_ns = 1000 };
	struct rr_fabric *f = open_fabric(&attr);
	uint64_t start, took;
	struct end c, s;
	struct pollfd p;

	(void)state;
	pair_open(&c, &s, f);
	struct rr_mr *mr = end_reg(&c, c.mem + 128 * RECV_BYTES, 64 * RECV_BYTES,
				   RR_ACCESS_LOCAL_WRITE | RR_ACCESS_REMOTE, -1);

	start = clock_now_ns();
	for (int i = 0; i < 8; i++)
		assert_int_equal(end_rdma(&s, RR_WR_WRITE, s.mem, 64 * RECV_BYTES, s.mr,
					  c.mem + 128 * RECV_BYTES, mr->rkey), 0);
	p = (struct pollfd){ .fd = s.cq->fd, .events = POLLIN };
	/* it wakes by itself; the peer does nothing */
	while (s.nwc < 8)
		if (!end_poll(&s) && !rr_cq_arm(s.cq))
			assert_int_equal(poll(&p, 1, -1), 1);
	took = clock_now_ns() - start;
	/* never faster than the rate; how much slower is the machine's business */
	assert_true(took >= UINT64_C(8) * 64 * RECV_BYTES * NS_PER_S / (100 << 20));
	assert_int_equal(rr_mr_dereg(mr), 0);
	pair_close(&c, &s);
	rr_fabric_close(f);
}

static struct rr_fabric *chaos(uint64_t seed, enum rr_local_vm vm)
{
	struct rr_local_attr attr = { .filters = HOOKS(.chaos_seed = seed), .vm = vm };

	return open_fabric(&attr);
}

static void test_chaos_moves_late(void **state)
{
	struct rr_fabric *f = chaos(1, RR_LOCAL_VM_AUTO);
	struct end c, s;

	(void)state;
	pair_open(&c, &s, f);
	/* posted receive buffers hold poison, and a Send carries what is there when it goes */
	for (unsigned i = 0; i < RECV_BYTES; i++)
		assert_int_equal(s.mem[i], 0xa5);
	memset(end_msg(&c, 0), 1, 8);
	assert_int_equal(end_send(&c, 0, 8, RR_WR_SIGNALED), 0);
	memset(end_msg(&c, 0), 2, 8);
	pair_wait(&s, &c, 1);
	assert_int_equal(s.mem[0], 2);
	assert_int_equal(s.mem[8], 0xa5);
	pair_wait(&c, &s, 1);
	pair_close(&c, &s);
	rr_fabric_close(f);
}

/* Under any seed: order on one queue pair, right bytes, nothing lost; sleeping works. */
static void chaos_round(uint64_t seed, enum rr_local_vm vm, bool sleeps)
{
	enum { LEN = 32 * RECV_BYTES };
	struct rr_fabric *f = chaos(seed, vm);
	struct end c, s;
	uint8_t *mem = end_pages(LEN), *data = end_pages(LEN), *back = end_pages(LEN);
	struct rr_mr *mr, *dm, *bm;

	pair_open(&c, &s, f);
	mr = end_reg(&c, mem, LEN, RR_ACCESS_LOCAL_WRITE | RR_ACCESS_REMOTE, -1);
	dm = end_reg(&s, data, LEN, RR_ACCESS_LOCAL_WRITE, -1);
	bm = end_reg(&s, back, LEN, RR_ACCESS_LOCAL_WRITE, -1);
	for (int round = 0; round < 10; round++) {
		struct rr_sge back_sge = { back, LEN, bm }, msg = { end_msg(&s, 0), 4, s.mr };
		struct rr_wr send = { .done = &s.done[303], .op = RR_WR_SEND,
				      .flags = RR_WR_SIGNALED, .sge = msg };
		struct rr_wr read = { .next = &send, .done = &s.done[302], .op = RR_WR_READ,
				      .flags = RR_WR_SIGNALED, .sge = back_sge,
				      .raddr = (uintptr_t)mem, .rkey = mr->rkey };

		for (int i = 0; i < LEN; i++)
			data[i] = (uint8_t)(i + round);
		c.nwc = s.nwc = 0;
		assert_int_equal(end_rdma(&s, RR_WR_WRITE, data, LEN, dm, mem, mr->rkey), 0);
		assert_int_equal(rr_post_send(s.qp, &read), 0);
		while (c.nwc < 1) {
			struct pollfd p = { .fd = s.cq->fd, .events = POLLIN };

			end_poll(&c);
			if (!end_poll(&s) && sleeps && !rr_cq_arm(s.cq))
				poll(&p, 1, 1); /* the peer, this same thread, may be the agent */
		}
		/* the Send overtakes no Write */
		assert_memory_equal(mem, data, LEN);
		pair_wait(&s, &c, 3);
		assert_ptr_equal(s.wc[0].done, &s.done[201]);
		assert_ptr_equal(s.wc[1].done, &s.done[302]);
		assert_ptr_equal(s.wc[2].done, &s.done[303]);
		for (int i = 0; i < 3; i++)
			assert_int_equal(s.wc[i].status, RR_WC_OK);
		assert_memory_equal(back, data, LEN);
		assert_int_equal(rr_post_recv(c.qp, &c.recv[round]), 0);
	}
	assert_int_equal(rr_mr_dereg(mr), 0);
	assert_int_equal(rr_mr_dereg(dm), 0);
	assert_int_equal(rr_mr_dereg(bm), 0);
	pair_close(&c, &s);
	rr_fabric_close(f);
	munmap(mem, LEN);
	munmap(data, LEN);
	munmap(back, LEN);
}

static void test_chaos(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 30; seed++) {
		chaos_round(seed, RR_LOCAL_VM_AUTO, seed & 1);
		chaos_round(seed, RR_LOCAL_VM_NEVER, seed & 1);
	}
}

/* With some seed a Read's data lands after a later Send went out; with FENCE, never. */
static void test_chaos_reorders_reads(void **state)
{
	int overtaken = 0;

	(void)state;
	for (int i = 0; i < 60; i++) {
		bool fence = i & 1;
		struct rr_fabric *f = chaos((uint64_t)i + 1, RR_LOCAL_VM_AUTO);
		struct rr_mr *mr;
		struct end c, s;
		uint8_t *sink;
		struct rr_wr send = { .op = RR_WR_SEND,
				      .flags = RR_WR_SIGNALED | (fence ? RR_WR_FENCE : 0) };

		pair_open(&c, &s, f);
		send.sge = (struct rr_sge){ end_msg(&s, 0), 4, s.mr };
		send.done = &s.done[300];
		sink = end_msg(&s, 8);
		mr = end_reg(&c, end_msg(&c, 0), RECV_BYTES, RR_ACCESS_REMOTE_READ, -1);
		memset(end_msg(&c, 0), 9, RECV_BYTES);
		assert_int_equal(end_rdma(&s, RR_WR_READ, sink, RECV_BYTES, s.mr, end_msg(&c, 0),
					  mr->rkey), 0);
		assert_int_equal(rr_post_send(s.qp, &send), 0);
		while (c.nwc < 1) {
			bool all = true;

			end_poll(&s);
			for (unsigned k = 0; k < RECV_BYTES; k++)
				all = all && sink[k] == 9;
			end_poll(&c);
			if (c.nwc && !all) {
				assert_false(fence);
				overtaken++;
			}
		}
		pair_wait(&s, &c, 2);
		assert_int_equal(sink[RECV_BYTES - 1], 9);
		assert_int_equal(rr_mr_dereg(mr), 0);
		pair_close(&c, &s);
		rr_fabric_close(f);
	}
	assert_true(overtaken > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fail_post),
		cmocka_unit_test(test_fail_completion),
		cmocka_unit_test(test_drop_completion),
		cmocka_unit_test(test_split),
		cmocka_unit_test(test_rate),
		cmocka_unit_test(test_chaos_moves_late),
		cmocka_unit_test(test_chaos),
		cmocka_unit_test(test_chaos_reorders_reads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
