/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_local_imm.c - the local fabric: RDMA Writes that end with a word for the peer
 */
#include "test_local_pair.h"

#define BYTES 5000u

/* How the bytes get there, and with what disturbances. */
static const struct rr_local_attr attrs[] = {
	{ .vm = RR_LOCAL_VM_AUTO },
	{ .vm = RR_LOCAL_VM_NEVER },
	{ .vm = RR_LOCAL_VM_AUTO, .filters = HOOKS(.chaos_seed = 4711) },
	{ .vm = RR_LOCAL_VM_NEVER, .filters = HOOKS(.chaos_seed = 4712) },
};

struct rig {
	struct rr_fabric *f;
	struct end c, s;
	uint8_t *from, *to;
	struct rr_mr *from_mr, *to_mr;
};

static void rig_open(struct rig *r, const struct rr_local_attr *a)
{
	r->f = open_fabric(a);
	pair_open(&r->c, &r->s, r->f);
	r->from = end_pages(BYTES);
	r->to = end_pages(BYTES);
	r->from_mr = end_reg(&r->c, r->from, BYTES, 0, -1);
	r->to_mr = end_reg(&r->s, r->to, BYTES, RR_ACCESS_LOCAL_WRITE | RR_ACCESS_REMOTE_WRITE, -1);
}

static void rig_close(struct rig *r)
{
	rr_qp_disconnect(r->c.qp);
	assert_int_equal(rr_mr_dereg(r->from_mr), 0);
	assert_int_equal(rr_mr_dereg(r->to_mr), 0);
	end_close(&r->c);
	end_close(&r->s);
	munmap(r->from, BYTES);
	munmap(r->to, BYTES);
	rr_fabric_close(r->f);
}

static int write_imm(struct rig *r, uint32_t len, uint32_t rkey, uint32_t imm)
{
	struct rr_wr wr = { .done = &r->c.done[201], .op = RR_WR_WRITE_IMM, .flags = RR_WR_SIGNALED,
			    .sge = { r->from, len, r->from_mr }, .raddr = (uintptr_t)r->to, .rkey = rkey,
			    .imm = imm };

	return rr_post_send(r->c.qp, &wr);
}

/* The bytes are there when the word is, and only then; the receive's own buffer stays as it was. */
static void test_bytes_and_word(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(attrs); i++) {
		struct rig r;

		rig_open(&r, &attrs[i]);
		for (unsigned k = 0; k < 12; k++) {
			uint32_t len = k ? BYTES - k : 0;

			memset(r.from, (int)k + 1, BYTES);
			r.c.nwc = r.s.nwc = 0;
			memset(r.s.recv[k].sge.addr, 0x77, RECV_BYTES);
			assert_int_equal(write_imm(&r, len, r.to_mr->rkey, 0xdead0000u + k), 0);
			pair_wait(&r.s, &r.c, 1);
			for (uint32_t b = 0; b < len; b++)
				assert_int_equal(r.to[b], k + 1);
			pair_wait(&r.c, &r.s, 1);
			assert_int_equal(r.c.wc[0].status, RR_WC_OK);
			assert_int_equal(r.s.wc[0].status, RR_WC_OK);
			assert_ptr_equal(r.s.wc[0].done, r.s.recv[k].done);
			assert_true(r.s.wc[0].with_imm);
			assert_false(r.s.wc[0].with_inv);
			assert_int_equal(r.s.wc[0].imm, 0xdead0000u + k);
			assert_int_equal(r.s.wc[0].byte_len, len);
			assert_int_equal(((uint8_t *)r.s.recv[k].sge.addr)[9], 0x77);
		}
		rig_close(&r);
	}
}

/* Sends around it keep their order. */
static void test_in_line_with_sends(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(attrs); i++) {
		struct rig r;

		rig_open(&r, &attrs[i]);
		assert_int_equal(end_send(&r.c, 0, 10, RR_WR_SIGNALED), 0);
		assert_int_equal(write_imm(&r, BYTES, r.to_mr->rkey, 5), 0);
		assert_int_equal(end_send(&r.c, 1, 30, RR_WR_SIGNALED), 0);
		pair_wait(&r.s, &r.c, 3);
		assert_int_equal(r.s.wc[0].byte_len, 10);
		assert_false(r.s.wc[0].with_imm);
		assert_true(r.s.wc[1].with_imm);
		assert_int_equal(r.s.wc[1].byte_len, BYTES);
		assert_int_equal(r.s.wc[2].byte_len, 30);
		assert_false(r.s.wc[2].with_imm);
		pair_wait(&r.c, &r.s, 3);
		rig_close(&r);
	}
}

/* A key that is none: no word comes, and the connection ends. */
static void test_wrong_key(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r, NULL);
	assert_int_equal(write_imm(&r, BYTES, r.to_mr->rkey + 1, 5), 0);
	pair_wait(&r.c, &r.s, 1);
	assert_int_equal(r.c.wc[0].status, RR_WC_REM_ACCESS);
	pair_wait(&r.s, &r.c, (int)r.s.nrecv);
	for (int i = 0; i < r.s.nwc; i++)
		assert_int_equal(r.s.wc[i].status, RR_WC_FLUSHED);
	rig_close(&r);
}

/* It takes a receive as a Send does. */
static void test_no_receive(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r, NULL);
	for (unsigned i = 0; i < r.s.nrecv; i++)
		assert_int_equal(write_imm(&r, 1, r.to_mr->rkey, i), 0);
	pair_wait(&r.s, &r.c, (int)r.s.nrecv);
	pair_wait(&r.c, &r.s, (int)r.s.nrecv);
	r.c.nwc = 0;
	assert_int_equal(write_imm(&r, 1, r.to_mr->rkey, 99), 0);
	pair_wait(&r.c, &r.s, 1);
	assert_int_equal(r.c.wc[0].status, RR_WC_RNR);
	rig_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes_and_word),
		cmocka_unit_test(test_in_line_with_sends),
		cmocka_unit_test(test_wrong_key),
		cmocka_unit_test(test_no_receive),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
