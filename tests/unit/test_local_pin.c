/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_local_pin.c - registered memory as a device sees it: the pages that were there at registration
 */
#include <linux/io_uring.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "test_local_pair.h"

#define LEN (8 * RECV_BYTES)
#define RIGHTS (RR_ACCESS_LOCAL_WRITE | RR_ACCESS_REMOTE)

static struct rr_fabric *fabric;
static struct end c, s; /* c's memory, s reaches for it */
static uint8_t *mem;

static void open_with(bool pin)
{
	struct rr_local_attr attr = { .filters = HOOKS(.pin = pin) };

	fabric = open_fabric(&attr);
	pair_open(&c, &s, fabric);
	mem = end_pages(LEN);
	memset(mem, 'o', LEN);
}

static void close_all(void)
{
	munmap(mem, LEN);
	pair_close(&c, &s);
	rr_fabric_close(fabric);
}

static bool has_io_uring(void)
{
	struct io_uring_params par = { .flags = 0 };
	int fd = (int)syscall(SYS_io_uring_setup, 1u, &par);

	if (fd < 0) {
		print_message("SKIP: no io_uring here: %s\n", strerror(errno));
		return false;
	}
	close(fd);
	return true;
}

/* Other pages at the same address. */
static void replace(int with)
{
	assert_ptr_equal(mmap(mem, LEN, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), mem);
	memset(mem, with, LEN);
}

static enum rr_wc_status reach(enum rr_wr_op op, uint32_t len, const uint8_t *raddr, uint32_t rkey)
{
	int n = s.nwc;

	assert_int_equal(end_rdma(&s, op, end_msg(&s, 0), len, s.mr, raddr, rkey), 0);
	pair_wait(&s, &c, n + 1);
	return s.wc[n].status;
}

static void assert_all(const uint8_t *p, size_t len, uint8_t value)
{
	for (size_t i = 0; i < len; i++)
		assert_int_equal(p[i], value);
}

/* What the peer reads at an odd place, and what it has written before. */
static void read_back(const struct rr_mr *mr, uint8_t value)
{
	memset(end_msg(&s, 0), 0, LEN);
	assert_int_equal(reach(RR_WR_READ, LEN - 10, mem + 3, mr->rkey), RR_WC_OK);
	assert_all(end_msg(&s, 0), LEN - 10, value);
}

static void pages_and_not_addresses(void **state)
{
	struct rr_mr *mr;

	(void)state;
	if (!has_io_uring())
		skip();
	open_with(true);
	mr = end_reg(&c, mem, LEN, RIGHTS, -1);
	read_back(mr, 'o');
	replace('n');
	read_back(mr, 'o');
	/* writes go to the old pages: the new ones at this address do not change */
	memset(end_msg(&s, 0), 'w', LEN);
	assert_int_equal(reach(RR_WR_WRITE, LEN, mem, mr->rkey), RR_WC_OK);
	assert_all(mem, LEN, 'n');
	read_back(mr, 'w');
	assert_int_equal(munmap(mem, LEN), 0);
	read_back(mr, 'w');
	assert_int_equal(rr_mr_dereg(mr), 0);
	mem = mmap(mem, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	mr = end_reg(&c, mem, LEN, RIGHTS, -1);
	read_back(mr, 0);
	assert_int_equal(rr_mr_dereg(mr), 0);
	assert_int_equal(rr_mr_dereg(end_reg(&c, mem, LEN, RIGHTS, -1)), 0);
	close_all();
}

static void addresses_without_the_hook(void **state)
{
	struct rr_mr *mr;

	(void)state;
	open_with(false);
	mr = end_reg(&c, mem, LEN, RIGHTS, -1);
	replace('n');
	read_back(mr, 'n');
	assert_int_equal(rr_mr_dereg(mr), 0);
	close_all();
}

static void through_a_window(void **state)
{
	struct rr_wr wr = { .op = RR_WR_BIND, .flags = RR_WR_SIGNALED };
	struct rr_mr *mr;
	struct rr_mw *mw;

	(void)state;
	if (!has_io_uring())
		skip();
	open_with(true);
	mr = end_reg(&c, mem, LEN, RR_ACCESS_LOCAL_WRITE | RR_ACCESS_MW_BIND, -1);
	assert_int_equal(rr_mw_create(c.pd, &mw), 0);
	wr.done = &c.done[1];
	wr.bind.mw = mw;
	wr.bind.mr = mr;
	wr.bind.addr = mem;
	wr.bind.len = LEN;
	wr.bind.access = RR_ACCESS_REMOTE_READ;
	wr.rkey = rr_mw_next_rkey(mw->rkey);
	assert_int_equal(rr_post_send(c.qp, &wr), 0);
	pair_wait(&c, &s, 1);
	assert_int_equal(c.wc[0].status, RR_WC_OK);
	replace('n');
	memset(end_msg(&s, 0), 0, LEN);
	assert_int_equal(reach(RR_WR_READ, LEN, mem, wr.rkey), RR_WC_OK);
	assert_all(end_msg(&s, 0), LEN, 'o');
	rr_mw_destroy(mw);
	assert_int_equal(rr_mr_dereg(mr), 0);
	close_all();
}

static void what_cannot_be_held(void **state)
{
	struct rr_mr_attr attr = { .len = LEN, .access = RIGHTS, .fd = -1 };
	struct rr_mr *mr, *some[64];

	(void)state;
	if (!has_io_uring())
		skip();
	open_with(true);
	attr.addr = mem;
	assert_int_equal(mprotect(mem, LEN, PROT_READ), 0);
	attr.access = RR_ACCESS_REMOTE_READ;
	assert_int_equal(rr_mr_reg(c.pd, &attr, &mr), -EFAULT);
	assert_int_equal(mprotect(mem, LEN, PROT_READ | PROT_WRITE), 0);
	for (int round = 0; round < 100; round++) { /* more than there is room for at once */
		for (size_t i = 0; i < ARRAY_SIZE(some); i++)
			some[i] = end_reg(&c, mem, LEN, RIGHTS, -1);
		for (size_t i = 0; i < ARRAY_SIZE(some); i++)
			assert_int_equal(rr_mr_dereg(some[i]), 0);
	}
	close_all();
}

static void charged_by_the_page(void **state)
{
	const struct rpcrdma_reg_cost cost = { .reg_ns = 1000, .reg_page_ns = 50000,
					       .dereg_ns = 2000, .dereg_page_ns = 70000 };
	uint64_t start, middle;
	struct rr_mr *mr;

	(void)state;
	fabric = open_fabric(NULL);
	assert_int_equal(rr_cost_push(fabric, &cost), 0);
	pair_open(&c, &s, fabric);
	mem = end_pages(LEN + 4096);
	start = clock_now_ns();
	mr = end_reg(&c, mem + 4095, 2, RIGHTS, -1);
	middle = clock_now_ns();
	assert_true(middle - start >= 1000 + 2 * 50000);
	assert_int_equal(rr_mr_dereg(mr), 0);
	assert_true(clock_now_ns() - middle >= 2000 + 2 * 70000);
	munmap(mem + LEN, 4096);
	close_all();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pages_and_not_addresses),
		cmocka_unit_test(addresses_without_the_hook),
		cmocka_unit_test(through_a_window),
		cmocka_unit_test(what_cannot_be_held),
		cmocka_unit_test(charged_by_the_page),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
