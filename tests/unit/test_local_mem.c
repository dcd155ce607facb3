/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_local_mem.c - the local fabric: keys, bounds, rights, windows, and each way bytes move
 */
#include <fcntl.h>

#include "hooks.h"
#include "local_int.h"
#include "test_local_pair.h"

#define ALL (RR_ACCESS_LOCAL_WRITE | RR_ACCESS_REMOTE | RR_ACCESS_MW_BIND)
#define BIG (3u << 20)

enum how { BY_SLAB, BY_VM, BY_AGENT };

/* The client's memory that the server reaches for, and the server's own. */
struct rig {
	struct rr_fabric *f;
	struct end c, s;
	uint8_t *mem, *data;
	struct rr_mr *mr, *dm;
	int fd;
};

static int slab_fd(size_t len)
{
	int fd = memfd_create("slab", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)len), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
	return fd;
}

static void rig_open(struct rig *r, enum how how, unsigned access)
{
	struct rr_local_attr attr = {
		.vm = how == BY_AGENT ? RR_LOCAL_VM_NEVER : RR_LOCAL_VM_AUTO,
	};

	r->f = open_fabric(&attr);
	pair_open(&r->c, &r->s, r->f);
	r->fd = -1;
	if (how == BY_SLAB) {
		r->fd = slab_fd(BIG);
		r->mem = mmap(NULL, BIG, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, 0);
		assert_ptr_not_equal(r->mem, MAP_FAILED);
	} else {
		r->mem = end_pages(BIG);
	}
	r->data = end_pages(BIG);
	r->mr = end_reg(&r->c, r->mem, BIG, access, r->fd);
	r->dm = end_reg(&r->s, r->data, BIG, RR_ACCESS_LOCAL_WRITE, -1);
	assert_int_equal(r->dm->rkey, 0);
}

static void rig_close(struct rig *r)
{
	rr_qp_disconnect(r->c.qp);
	rr_qp_destroy(r->c.qp);
	r->c.qp = NULL;
	if (r->mr)
		assert_int_equal(rr_mr_dereg(r->mr), 0);
	assert_int_equal(rr_mr_dereg(r->dm), 0);
	end_close(&r->c);
	end_close(&r->s);
	munmap(r->mem, BIG);
	munmap(r->data, BIG);
	if (r->fd >= 0)
		close(r->fd);
	rr_fabric_close(r->f);
}

/* One operation of the server on the client's memory; how it completes. */
static enum rr_wc_status rdma(struct rig *r, enum rr_wr_op op, uint64_t off, uint32_t len,
			      uint32_t rkey)
{
	r->s.nwc = 0;
	assert_int_equal(end_rdma(&r->s, op, r->data, len, r->dm,
				  (void *)((uintptr_t)r->mem + off), rkey), 0);
	pair_wait(&r->s, &r->c, 1);
	return r->s.wc[0].status;
}

static void fill(uint8_t *p, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++)
		p[i] = (uint8_t)(i * 7 + seed + (i >> 12));
}

static void read_and_write(enum how how)
{
	static const struct { uint32_t off, len; } cases[] = {
		{ 0, 1 }, { 4095, 2 }, { 1, 4096 }, { 0, BIG }, { 12345, 1u << 20 }, { BIG - 1, 1 },
		{ 5, 0 },
	};
	struct rig r;

	rig_open(&r, how, ALL);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint32_t off = cases[i].off, len = cases[i].len;

		memset(r.mem, 0, BIG);
		fill(r.data, BIG, (unsigned)i);
		assert_int_equal(rdma(&r, RR_WR_WRITE, off, len, r.mr->rkey), RR_WC_OK);
		assert_memory_equal(r.mem + off, r.data, len);
		if (off)
			assert_int_equal(r.mem[off - 1], 0);
		if (off + len < BIG)
			assert_int_equal(r.mem[off + len], 0);
		fill(r.mem, BIG, (unsigned)i + 100);
		assert_int_equal(rdma(&r, RR_WR_READ, off, len, r.mr->rkey), RR_WC_OK);
		assert_memory_equal(r.mem + off, r.data, len);
	}
	const struct rr_local_counters n = rr_local_counters(r.f);

	assert_int_equal(n.slab_bytes != 0, how == BY_SLAB);
	assert_int_equal(n.vm_bytes != 0, how == BY_VM);
	assert_int_equal(n.bounce_bytes != 0, how == BY_AGENT);
	rig_close(&r);
}

static void test_pool(void **state)
{
	(void)state;
	read_and_write(BY_SLAB);
}

static void test_vm(void **state)
{
	(void)state;
	read_and_write(BY_VM);
}

static void test_agent(void **state)
{
	(void)state;
	read_and_write(BY_AGENT);
}

/* A Write and the Send behind it: when the message is there, so are the bytes. */
static void test_write_then_send(void **state)
{
	(void)state;
	for (enum how how = BY_SLAB; how <= BY_AGENT; how++) {
		struct rig r;

		rig_open(&r, how, ALL);
		for (int i = 0; i < 20; i++) {
			fill(r.data, BIG, (unsigned)i);
			r.c.nwc = r.s.nwc = 0;
			assert_int_equal(end_rdma(&r.s, RR_WR_WRITE, r.data, BIG, r.dm, r.mem,
						  r.mr->rkey), 0);
			assert_int_equal(end_send(&r.s, 0, 4, RR_WR_SIGNALED), 0);
			pair_wait(&r.c, &r.s, 1);
			assert_memory_equal(r.mem, r.data, BIG);
			pair_wait(&r.s, &r.c, 2);
			assert_ptr_equal(r.s.wc[0].done, &r.s.done[201]);
			assert_int_equal(rr_post_recv(r.c.qp, &r.c.recv[i % 16]), 0);
		}
		rig_close(&r);
	}
}

static void test_refused(void **state)
{
	static const struct {
		unsigned access;
		enum rr_wr_op op;
		int64_t off;
		uint32_t len;
	} bad[] = {
		{ RR_ACCESS_REMOTE_READ, RR_WR_WRITE, 0, 8 },
		{ RR_ACCESS_LOCAL_WRITE | RR_ACCESS_REMOTE_WRITE, RR_WR_READ, 0, 8 },
		{ ALL, RR_WR_WRITE, -1, 8 },
		{ ALL, RR_WR_WRITE, BIG - 7, 8 },
		{ ALL, RR_WR_WRITE, BIG, 1 },
		{ ALL, RR_WR_READ, -(int64_t)BIG, 2 },
	};

	(void)state;
	for (enum how how = BY_SLAB; how <= BY_AGENT; how++) {
		for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
			struct rig r;

			rig_open(&r, how, bad[i].access);
			assert_int_equal(rdma(&r, bad[i].op, (uint64_t)bad[i].off, bad[i].len,
					      r.mr->rkey), RR_WC_REM_ACCESS);
			pair_wait(&r.s, &r.c, 17);
			assert_int_equal(r.s.wc[16].status, RR_WC_FLUSHED);
			pair_wait(&r.c, &r.s, 16);
			rig_close(&r);
		}
	}
}

static void test_wrong_keys(void **state)
{
	(void)state;
	for (int i = 0; i < 34; i++) {
		struct rig r;
		uint32_t key;

		rig_open(&r, i & 1 ? BY_VM : BY_AGENT, ALL);
		key = i < 32 ? r.mr->rkey ^ 1u << i : i == 32 ? 0 : 0xffffffffu;
		assert_int_equal(rdma(&r, RR_WR_WRITE, 0, 8, key), RR_WC_REM_ACCESS);
		rig_close(&r);
	}
}

static void test_after_dereg(void **state)
{
	(void)state;
	for (enum how how = BY_SLAB; how <= BY_AGENT; how++) {
		struct rr_mr *again[8];
		struct rig r;
		uint32_t key;

		rig_open(&r, how, ALL);
		key = r.mr->rkey;
		assert_int_equal(rr_mr_dereg(r.mr), 0);
		r.mr = NULL;
		for (int i = 0; i < 8; i++) {
			again[i] = end_reg(&r.c, r.mem, BIG, ALL, r.fd);
			assert_int_not_equal(again[i]->rkey, key);
		}
		memset(r.mem, 1, 8);
		assert_int_equal(rdma(&r, RR_WR_WRITE, 0, 8, key), RR_WC_REM_ACCESS);
		assert_int_equal(r.mem[0], 1);
		for (int i = 0; i < 8; i++)
			assert_int_equal(rr_mr_dereg(again[i]), 0);
		rig_close(&r);
	}
}

/* A key is good on every queue pair of its domain, and on no other. */
static void test_domains(void **state)
{
	(void)state;
	for (int same = 0; same < 2; same++) {
		struct end c2;
		struct rr_pd *own;
		struct rr_mr *other;
		struct rig r;

		rig_open(&r, BY_VM, ALL);
		end_open(&c2, r.f);
		own = c2.pd;
		other = end_reg(&c2, r.mem, BIG, ALL, -1); /* same slot, another domain */
		if (same) {
			c2.pd = r.c.pd;
			assert_int_equal(rr_mr_dereg(c2.mr), 0);
			c2.mr = end_reg(&c2, c2.mem, 256 * RECV_BYTES, RR_ACCESS_LOCAL_WRITE, -1);
		}
		rr_qp_disconnect(r.s.qp);
		rr_qp_destroy(r.s.qp);
		r.s.qp = NULL;
		r.s.nevents = 0;
		pair_connect(&c2, &r.s);
		assert_int_equal(rdma(&r, RR_WR_WRITE, 0, 8, r.mr->rkey),
				 same ? RR_WC_OK : RR_WC_REM_ACCESS);
		rr_qp_destroy(c2.qp);
		c2.qp = NULL;
		assert_int_equal(rr_mr_dereg(c2.mr), 0);
		c2.pd = own;
		c2.mr = other;
		end_close(&c2);
		rig_close(&r);
	}
}

static void test_bad_registrations(void **state)
{
	struct rig r;
	int fd = memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	uint8_t *ro = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct rr_mr_attr attr = { .access = RR_ACCESS_LOCAL_WRITE | RR_ACCESS_REMOTE, .fd = -1 };
	struct rr_mr *mr = NULL;

	(void)state;
	rig_open(&r, BY_VM, ALL);
	attr.addr = ro;
	attr.len = 10;
	assert_int_equal(rr_mr_reg(r.c.pd, &attr, &mr), -EFAULT);
	munmap(ro, 4096);
	attr.access = RR_ACCESS_REMOTE_READ;
	assert_int_equal(rr_mr_reg(r.c.pd, &attr, &mr), -EFAULT);
	attr.addr = r.mem;
	attr.fd = fd; /* not sealed, and empty */
	assert_int_equal(rr_mr_reg(r.c.pd, &attr, &mr), -EINVAL);
	assert_int_equal(ftruncate(fd, 8192), 0);
	assert_int_equal(rr_mr_reg(r.c.pd, &attr, &mr), -EINVAL);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
	attr.fd_off = 8185;
	assert_int_equal(rr_mr_reg(r.c.pd, &attr, &mr), -EINVAL);
	attr.fd_off = 8182;
	assert_int_equal(rr_mr_reg(r.c.pd, &attr, &mr), 0);
	assert_int_equal(rr_mr_dereg(mr), 0);
	close(fd);
	faults_of(r.f)->fail_reg = 2;
	attr.fd = -1;
	assert_int_equal(rr_mr_reg(r.c.pd, &attr, &mr), 0);
	assert_int_equal(rr_mr_dereg(mr), 0);
	assert_int_equal(rr_mr_reg(r.c.pd, &attr, &mr), -ENOMEM);
	rig_close(&r);
}

static int bind_mw(struct end *e, struct rr_mw *mw, struct rr_mr *mr, uint32_t key, void *addr,
		   size_t len, unsigned access)
{
	struct rr_wr wr = { .done = &e->done[202], .op = RR_WR_BIND, .flags = RR_WR_SIGNALED,
			    .rkey = key, .bind = { mw, mr, addr, len, access } };

	return rr_post_send(e->qp, &wr);
}

static enum rr_wc_status client_wc(struct rig *r)
{
	r->c.nwc = 0;
	pair_wait(&r->c, &r->s, 1);
	return r->c.wc[0].status;
}

static void test_window_life(void **state)
{
	(void)state;
	for (enum how how = BY_SLAB; how <= BY_AGENT; how++) {
		struct rr_mw *mw;
		struct rig r;
		uint32_t key;

		rig_open(&r, how, RR_ACCESS_LOCAL_WRITE | RR_ACCESS_MW_BIND);
		assert_int_equal(r.mr->rkey, 0);
		assert_int_equal(rr_mw_create(r.c.pd, &mw), 0);
		for (int i = 0; i < 600; i++) {
			key = rr_mw_next_rkey(mw->rkey);
			assert_int_equal(bind_mw(&r.c, mw, r.mr, key, r.mem + 100, 5000,
						 RR_ACCESS_REMOTE), 0);
			assert_int_equal(mw->rkey, key);
			assert_int_equal(client_wc(&r), RR_WC_OK);
			assert_int_equal(rr_mr_dereg(r.mr), -EBUSY);
			fill(r.data, 5000, (unsigned)i);
			assert_int_equal(rdma(&r, RR_WR_WRITE, 100, 5000, key), RR_WC_OK);
			assert_memory_equal(r.mem + 100, r.data, 5000);
			if (i & 1) {
				assert_int_equal(end_inv(&r.c, key, RR_WR_LOCAL_INV), 0);
				assert_int_equal(client_wc(&r), RR_WC_OK);
				continue;
			}
			r.s.nwc = 0;
			assert_int_equal(end_inv(&r.s, key, RR_WR_SEND_INV), 0);
			assert_int_equal(client_wc(&r), RR_WC_OK);
			assert_true(r.c.wc[0].with_inv);
			assert_int_equal(r.c.wc[0].inv_rkey, key);
			assert_int_equal(rr_post_recv(r.c.qp, &r.c.recv[(i / 2) % 16]), 0);
			pair_wait(&r.s, &r.c, 1);
		}
		/* gone is gone */
		assert_int_equal(rdma(&r, RR_WR_WRITE, 100, 1, mw->rkey), RR_WC_REM_ACCESS);
		rr_mw_destroy(mw);
		rig_close(&r);
	}
}

enum window_fault { TWICE_BOUND, TWICE_INV, MR_INV, WRONG_SLOT, BEYOND_MR, NO_RIGHT, NEVER_BOUND };

static void test_window_faults(void **state)
{
	(void)state;
	for (enum window_fault fault = TWICE_BOUND; fault <= NEVER_BOUND; fault++) {
		struct rr_mw *mw;
		struct rig r;
		uint32_t key;

		rig_open(&r, BY_VM, fault == NO_RIGHT ? RR_ACCESS_MW_BIND : ALL);
		assert_int_equal(rr_mw_create(r.c.pd, &mw), 0);
		key = rr_mw_next_rkey(mw->rkey);
		if (fault <= TWICE_INV) {
			assert_int_equal(bind_mw(&r.c, mw, r.mr, key, r.mem, 8,
						 RR_ACCESS_REMOTE), 0);
			assert_int_equal(client_wc(&r), RR_WC_OK);
		}
		if (fault == TWICE_INV) {
			assert_int_equal(end_inv(&r.c, key, RR_WR_LOCAL_INV), 0);
			assert_int_equal(client_wc(&r), RR_WC_OK);
		}
		if (fault == TWICE_INV || fault == NEVER_BOUND)
			assert_int_equal(end_inv(&r.c, key, RR_WR_LOCAL_INV), 0);
		else if (fault == MR_INV)
			assert_int_equal(end_inv(&r.c, r.mr->rkey, RR_WR_LOCAL_INV), 0);
		else
			assert_int_equal(bind_mw(&r.c, mw, r.mr,
						 fault == WRONG_SLOT ? key + 256 : key,
						 fault == BEYOND_MR ? r.mem + 1 : r.mem, BIG,
						 RR_ACCESS_REMOTE), 0);
		assert_int_equal(client_wc(&r), RR_WC_LOCAL);
		assert_int_equal(end_send(&r.c, 0, 1, 0), -ENOTCONN);
		rr_mw_destroy(mw);
		rig_close(&r);
	}
}

/* A peer that invalidates what is not a valid window kills the receiver, not itself. */
static void test_bad_remote_invalidation(void **state)
{
	(void)state;
	for (int mr = 0; mr < 2; mr++) {
		struct rig r;

		rig_open(&r, BY_VM, ALL);
		assert_int_equal(end_inv(&r.s, mr ? r.mr->rkey : 0x12345678, RR_WR_SEND_INV), 0);
		pair_wait(&r.s, &r.c, 1);
		assert_int_equal(r.s.wc[0].status, RR_WC_OK);
		pair_wait(&r.c, &r.s, 16);
		assert_int_equal(r.c.wc[0].status, RR_WC_LOCAL);
		assert_int_equal(r.c.wc[1].status, RR_WC_FLUSHED);
		rig_close(&r);
	}
}

/* The bounds are the window's, and the right is the window's. */
static void test_window_bounds(void **state)
{
	(void)state;
	for (int i = 0; i < 6; i++) {
		struct rr_mw *mw;
		struct rig r;
		uint32_t key;

		rig_open(&r, i & 1 ? BY_AGENT : BY_SLAB, ALL);
		assert_int_equal(rr_mw_create(r.c.pd, &mw), 0);
		key = rr_mw_next_rkey(mw->rkey);
		assert_int_equal(bind_mw(&r.c, mw, r.mr, key, r.mem + 4096, 4096,
					 RR_ACCESS_REMOTE_READ), 0);
		assert_int_equal(client_wc(&r), RR_WC_OK);
		assert_int_equal(rdma(&r, RR_WR_READ, 4096, 4096, key), RR_WC_OK);
		if (i < 2)
			assert_int_equal(rdma(&r, RR_WR_WRITE, 4096, 1, key), RR_WC_REM_ACCESS);
		else if (i < 4)
			assert_int_equal(rdma(&r, RR_WR_READ, 4095, 2, key), RR_WC_REM_ACCESS);
		else
			assert_int_equal(rdma(&r, RR_WR_READ, 8191, 2, key), RR_WC_REM_ACCESS);
		rr_mw_destroy(mw);
		rig_close(&r);
	}
}

/* A window is of one queue pair: by another, of the same domain, it is neither used nor invalidated. */
static void test_window_queue_pair(void **state)
{
	(void)state;
	for (int inv = 0; inv < 2; inv++) {
		struct rr_mw *mw;
		struct rr_pd *own;
		struct end c2;
		struct rig r;
		uint32_t key;

		rig_open(&r, BY_VM, ALL);
		assert_int_equal(rr_mw_create(r.c.pd, &mw), 0);
		key = rr_mw_next_rkey(mw->rkey);
		assert_int_equal(bind_mw(&r.c, mw, r.mr, key, r.mem, 4096, RR_ACCESS_REMOTE), 0);
		assert_int_equal(client_wc(&r), RR_WC_OK);
		end_open(&c2, r.f);
		own = c2.pd;
		assert_int_equal(rr_mr_dereg(c2.mr), 0);
		c2.pd = r.c.pd;
		c2.mr = end_reg(&c2, c2.mem, 256 * RECV_BYTES, RR_ACCESS_LOCAL_WRITE, -1);
		rr_qp_disconnect(r.s.qp);
		rr_qp_destroy(r.s.qp);
		r.s.qp = NULL;
		r.s.nevents = r.s.nwc = 0;
		pair_connect(&c2, &r.s);
		if (!inv) {
			assert_int_equal(rdma(&r, RR_WR_WRITE, 0, 8, key), RR_WC_REM_ACCESS);
		} else {
			assert_int_equal(end_inv(&r.s, key, RR_WR_SEND_INV), 0);
			pair_wait(&c2, &r.s, 1);
			assert_int_equal(c2.wc[0].status, RR_WC_LOCAL);
		}
		assert_int_equal(rr_mr_dereg(r.mr), -EBUSY); /* it is bound still */
		rr_mw_destroy(mw);
		rr_qp_destroy(c2.qp);
		c2.qp = NULL;
		assert_int_equal(rr_mr_dereg(c2.mr), 0);
		c2.pd = own;
		c2.mr = end_reg(&c2, c2.mem, 4096, RR_ACCESS_LOCAL_WRITE, -1);
		end_close(&c2);
		rig_close(&r);
	}
}

static void test_direct(void **state)
{
	struct rig r;
	uint32_t token;
	void *p;

	(void)state;
	rig_open(&r, BY_SLAB, ALL);
	assert_int_equal(rr_qp_direct(r.s.qp, r.mr->rkey, (uintptr_t)r.mem + 4096, 8192, RR_ACCESS_REMOTE_WRITE, &p,
				      &token), 0);
	/* the test may store where the product has the kernel do it */
	memset(p, 0x5a, 8192);
	assert_int_equal(r.mem[4096], 0x5a);
	assert_int_equal(r.mem[4096 + 8191], 0x5a);
	rr_qp_direct_end(r.s.qp, token);
	/* whole pages, or none: only those can be exchanged for others */
	assert_int_equal(rr_qp_direct(r.s.qp, r.mr->rkey, (uintptr_t)r.mem, 4097, RR_ACCESS_REMOTE_WRITE, &p, &token),
			 -EOPNOTSUPP);
	assert_int_equal(rr_qp_direct(r.s.qp, r.mr->rkey, (uintptr_t)r.mem + 8, 4096, RR_ACCESS_REMOTE_WRITE, &p,
				      &token), -EOPNOTSUPP);
	assert_int_equal(rr_qp_direct(r.s.qp, r.mr->rkey + 1, (uintptr_t)r.mem, 1, RR_ACCESS_REMOTE_WRITE, &p, &token),
			 -EACCES);
	assert_int_equal(rr_qp_direct(r.s.qp, r.mr->rkey, (uintptr_t)r.mem, BIG + 1, RR_ACCESS_REMOTE_WRITE, &p, &token),
			 -EACCES);
	rig_close(&r);

	rig_open(&r, BY_VM, ALL);
	assert_int_equal(rr_qp_direct(r.s.qp, r.mr->rkey, (uintptr_t)r.mem, 4096, RR_ACCESS_REMOTE_WRITE, &p, &token),
			 -EOPNOTSUPP);
	rig_close(&r);
}

/* A connection may have many of them at once, and each token is one mapping until it ends. */
static void test_direct_many(void **state)
{
	static uint32_t token[LOCAL_DIRECT_MAX + 1];
	struct rig r;
	void *p;

	(void)state;
	rig_open(&r, BY_SLAB, ALL);
	for (int round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < LOCAL_DIRECT_MAX; i++) {
			assert_int_equal(rr_qp_direct(r.s.qp, r.mr->rkey, (uintptr_t)r.mem + i % 2 * 4096, 4096,
						      RR_ACCESS_REMOTE_WRITE, &p, &token[i]), 0);
			assert_true(token[i] < LOCAL_DIRECT_MAX);
			((uint8_t *)p)[0] = (uint8_t)i;
			assert_int_equal(r.mem[i % 2 * 4096], (uint8_t)i);
		}
		assert_int_equal(rr_qp_direct(r.s.qp, r.mr->rkey, (uintptr_t)r.mem, 4096, RR_ACCESS_REMOTE_WRITE, &p,
					      &token[LOCAL_DIRECT_MAX]), -EOPNOTSUPP);
		rr_qp_direct_end(r.s.qp, token[7]);
		assert_int_equal(rr_qp_direct(r.s.qp, r.mr->rkey, (uintptr_t)r.mem, 4096, RR_ACCESS_REMOTE_WRITE, &p,
					      &token[LOCAL_DIRECT_MAX]), 0);
		assert_int_equal(token[LOCAL_DIRECT_MAX], token[7]);
		for (uint32_t i = 0; i < LOCAL_DIRECT_MAX; i++)
			rr_qp_direct_end(r.s.qp, token[i]);
	}
	rig_close(&r);
}

static unsigned withdraw(struct rig *r)
{
	return rr_qp_withdraw(r->c.qp, r->mr->rkey);
}

/* A withdrawn key is refused for new accesses. rr_qp_withdraw() returns the kinds of access that still run, and
 * neither it nor rr_mr_dereg() waits for them. */
static void test_withdraw(void **state)
{
	struct shm_key *k;
	struct rig r;
	uint32_t token, key;
	void *p;

	(void)state;
	rig_open(&r, BY_SLAB, ALL);
	key = r.mr->rkey;
	assert_int_equal(rr_qp_withdraw(r.c.qp, key + 256), 0); /* the key of another registration, or of none */
	assert_int_equal(rr_qp_withdraw(r.c.qp, 0), 0);
	assert_int_equal(rr_qp_direct(r.s.qp, key, (uintptr_t)r.mem, 4096, RR_ACCESS_REMOTE_WRITE, &p, &token), 0);
	assert_int_equal(withdraw(&r), RR_REACH_NOW | RR_REACH_FILE | RR_REACH_PAGES);
	assert_int_equal(rdma(&r, RR_WR_WRITE, 0, 1, key), RR_WC_REM_ACCESS);
	k = &to_qp(r.c.qp)->my_keys[to_mr(r.mr)->slot];
	atomic_fetch_add(&k->busy, BUSY_COPY); /* as in the middle of a system call */
	assert_int_equal(withdraw(&r), RR_REACH_NOW | RR_REACH_FILE);
	assert_int_equal(rr_mr_dereg(r.mr), 0);
	r.mr = NULL;
	assert_int_equal(rr_qp_withdraw(r.c.qp, key), RR_REACH_NOW | RR_REACH_FILE);
	atomic_fetch_sub(&k->busy, BUSY_COPY);
	rr_qp_direct_end(r.s.qp, token);
	assert_int_equal(rr_qp_withdraw(r.c.qp, key), 0);
	rig_close(&r);
}

/* ... and it is over when the peer's process has let go of the connection. */
static void test_withdraw_from_the_dead(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r, BY_VM, ALL);
	atomic_fetch_add(&to_qp(r.c.qp)->my_keys[to_mr(r.mr)->slot].busy, BUSY_COPY);
	assert_int_equal(withdraw(&r), RR_REACH_NOW);
	rr_qp_disconnect(r.s.qp);
	assert_int_equal(withdraw(&r), RR_REACH_NOW); /* that says nothing of what it is in the middle of */
	rr_qp_destroy(r.s.qp);
	r.s.qp = NULL;
	assert_int_equal(withdraw(&r), 0);
	rig_close(&r);
}

/* Memory of the side that accepted goes by its own hand, whatever the other could do: no mark that the other
 * leaves is of any importance to it. */
static void test_accepted_by_agent(void **state)
{
	struct rr_mr *mr;
	struct shm_key *k;
	struct rig r;
	uint8_t *mem;
	int fd;

	(void)state;
	for (int i = 0; i < 2; i++) {
		rig_open(&r, BY_VM, ALL);
		fd = i ? slab_fd(BIG) : -1;
		mem = i ? mmap(NULL, BIG, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : end_pages(BIG);
		assert_ptr_not_equal(mem, MAP_FAILED);
		mr = end_reg(&r.s, mem, BIG, ALL, fd);
		k = &to_qp(r.c.qp)->peer_keys[to_mr(mr)->slot];
		assert_int_equal(k->place, PLACE_AGENT);
		memset(end_msg(&r.c, 0), 0x77, 64);
		assert_int_equal(end_rdma(&r.c, RR_WR_WRITE, end_msg(&r.c, 0), 64, r.c.mr, mem, mr->rkey), 0);
		pair_wait(&r.c, &r.s, 1);
		assert_int_equal(r.c.wc[0].status, RR_WC_OK);
		assert_int_equal(mem[63], 0x77);
		atomic_fetch_add(&k->busy, BUSY_COPY);
		assert_int_equal(rr_mr_dereg(mr), 0);
		rig_close(&r);
		munmap(mem, BIG);
		if (fd >= 0)
			close(fd);
	}
}

static void test_local_protection(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r, BY_VM, ALL);
	/* the SGE reaches beyond its region */
	assert_int_equal(end_rdma(&r.s, RR_WR_WRITE, r.data + 1, BIG, r.dm, r.mem, r.mr->rkey), 0);
	pair_wait(&r.s, &r.c, 1);
	assert_int_equal(r.s.wc[0].status, RR_WC_LOCAL);
	rig_close(&r);
	rig_open(&r, BY_VM, ALL);
	/* another domain's region */
	assert_int_equal(end_rdma(&r.s, RR_WR_READ, r.mem, 8, r.mr, r.mem, r.mr->rkey), 0);
	pair_wait(&r.s, &r.c, 1);
	assert_int_equal(r.s.wc[0].status, RR_WC_LOCAL);
	rig_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pool),
		cmocka_unit_test(test_vm),
		cmocka_unit_test(test_agent),
		cmocka_unit_test(test_write_then_send),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_wrong_keys),
		cmocka_unit_test(test_after_dereg),
		cmocka_unit_test(test_domains),
		cmocka_unit_test(test_bad_registrations),
		cmocka_unit_test(test_window_life),
		cmocka_unit_test(test_window_faults),
		cmocka_unit_test(test_bad_remote_invalidation),
		cmocka_unit_test(test_window_bounds),
		cmocka_unit_test(test_window_queue_pair),
		cmocka_unit_test(test_direct),
		cmocka_unit_test(test_direct_many),
		cmocka_unit_test(test_withdraw),
		cmocka_unit_test(test_withdraw_from_the_dead),
		cmocka_unit_test(test_accepted_by_agent),
		cmocka_unit_test(test_local_protection),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
