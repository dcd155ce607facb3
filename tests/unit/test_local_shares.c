/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_local_shares.c - the local fabric: shared memory is charged whole, and a user has a share of it
 */
#include <fcntl.h>

#include "local_int.h"
#include "shm_map.h"
#include "test_local_pair.h"

#define SLAB (1u << 20)

struct slab {
	uint8_t *mem;
	size_t len;
	int fd;
	struct rr_mr *mr;
};

static void slab_open(struct slab *m, struct end *c, size_t len)
{
	m->len = len;
	m->fd = rr_shm_create("slab", len);
	assert_true(m->fd >= 0);
	m->mem = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, m->fd, 0);
	assert_ptr_not_equal(m->mem, MAP_FAILED);
	m->mr = end_reg(c, m->mem, len, RR_ACCESS_LOCAL_WRITE | RR_ACCESS_REMOTE, m->fd);
}

static void slab_close(struct slab *m)
{
	if (m->mr)
		assert_int_equal(rr_mr_dereg(m->mr), 0);
	munmap(m->mem, m->len);
	close(m->fd);
}

/* Whether a Write of the server goes into the slab; it gets there in any case. */
static bool goes_by_slab(struct end *c, struct end *s, const struct slab *m, const struct rr_mr *mr)
{
	uint64_t before = rr_local_counters(s->f).slab_bytes;

	s->nwc = 0;
	memset(end_msg(s, 0), 0x77, 64);
	memset(m->mem, 0, 64);
	assert_int_equal(end_rdma(s, RR_WR_WRITE, end_msg(s, 0), 64, s->mr, m->mem, mr->rkey), 0);
	pair_wait(s, c, 1);
	assert_int_equal(s->wc[0].status, RR_WC_OK);
	assert_int_equal(m->mem[63], 0x77);
	return rr_local_counters(s->f).slab_bytes != before;
}

/* Return: how much another user gets that charges all it can */
static uint64_t left_for_others(struct rr_clients *all, enum rr_share share, uint64_t unit)
{
	const struct rpcrdma_client_id id = { .kind = RPCRDMA_CLIENT_USER, .key = 4242 };
	struct rr_client *other;
	uint64_t n = 0;

	assert_int_equal(rr_client_get(all, &id, &other), 0);
	while (!rr_client_charge(other, share, unit))
		n += unit;
	rr_client_uncharge(other, share, n);
	rr_client_put(other);
	return n;
}

static void nothing_is_left(const struct rr_clients *all)
{
	assert_int_equal(all->n, 0);
	for (int i = 0; i < RR_SHARES; i++)
		assert_int_equal(all->budgets[i].used, 0);
}

static void test_regions(void **state)
{
	enum { N = 8 };
	struct rr_clients all;
	const struct rr_local_attr attr = { .clients = &all, .limits.mapped_bytes_max = N * SLAB };
	struct rr_fabric *f = open_fabric(NULL), *g;
	struct slab slab[N], small;
	struct end c, c2, s;
	struct rr_client *mine;
	struct rr_qp *first;
	struct rr_mr *again;

	(void)state;
	rr_clients_init(&all);
	g = open_fabric(&attr);
	end_open(&c, f);
	end_open(&c2, f);
	end_open(&s, g);
	assert_int_equal(rr_listen(s.cm, pair_path(), NULL, &s.l), 0);
	pair_connect(&c, &s);
	mine = to_qp(s.qp)->client;
	for (int i = 0; i < N; i++) {
		slab_open(&slab[i], &c, SLAB);
		assert_int_equal(goes_by_slab(&c, &s, &slab[i], slab[i].mr), i < N / 2);
	}
	assert_int_equal(rr_client_used(mine, RR_SHARE_REGION), N / 2 * SLAB);
	assert_int_equal(left_for_others(&all, RR_SHARE_REGION, SLAB), N / 4 * SLAB);
	assert_int_equal(rr_local_counters(g).hostile, 0);

	/* the same memory on another connection is charged once, and stays as long as one has it */
	first = s.qp;
	s.nevents = 0;
	pair_connect(&c2, &s);
	again = end_reg(&c2, slab[0].mem, SLAB, RR_ACCESS_LOCAL_WRITE | RR_ACCESS_REMOTE, slab[0].fd);
	assert_true(goes_by_slab(&c2, &s, &slab[0], again));
	assert_int_equal(rr_client_used(mine, RR_SHARE_REGION), N / 2 * SLAB);
	for (int i = 0; i < N; i++) {
		assert_int_equal(rr_mr_dereg(slab[i].mr), 0);
		slab[i].mr = NULL;
	}
	while (rr_client_used(mine, RR_SHARE_REGION) != SLAB) /* the server reads the message */
		(void)rr_local_move_drain(to_qp(first));
	assert_true(goes_by_slab(&c2, &s, &slab[0], again));

	/* a page takes a descriptor and a mapping, too */
	slab_open(&small, &c2, 4096);
	assert_true(goes_by_slab(&c2, &s, &small, small.mr));
	assert_int_equal(rr_client_used(mine, RR_SHARE_REGION), 2 * SLAB);

	slab_close(&small);
	assert_int_equal(rr_mr_dereg(again), 0);
	for (int i = 0; i < N; i++)
		slab_close(&slab[i]);
	end_close(&c);
	end_close(&c2);
	rr_qp_destroy(first);
	end_close(&s);
	nothing_is_left(&all);
	rr_fabric_close(f);
	rr_fabric_close(g);
	rr_clients_fini(&all);
}

static int one_more(struct end *c, struct end *s)
{
	int rc;

	c->nevents = s->nevents = 0;
	assert_int_equal(rr_qp_dial(c->cm, pair_path(), NULL, &c->qp), 0);
	end_wait_event(c, s, 1);
	end_setup(c);
	assert_int_equal(rr_qp_connect(c->qp, &c->param), 0);
	end_wait_event(s, NULL, 1);
	end_setup(s);
	rc = rr_qp_accept(s->qp, &s->param);
	if (rc)
		rr_qp_destroy(s->qp);
	end_wait_event(c, NULL, 2);
	return rc;
}

static void test_rings(void **state)
{
	enum { N = 4 };
	struct rr_clients all;
	const struct rr_local_attr attr = { .clients = &all, .vm = RR_LOCAL_VM_NEVER };
	struct rr_fabric *f = open_fabric(NULL), *g;
	struct rr_qp *qp[2 * N], *peer[2 * N];
	uint64_t size, bounce;
	struct end c, s;
	struct rr_mr *mr;
	int n = 0, rc;

	(void)state;
	rr_clients_init(&all);
	g = open_fabric(&attr);
	end_open(&c, f);
	end_open(&s, g);
	assert_int_equal(rr_listen(s.cm, pair_path(), NULL, &s.l), 0);
	assert_int_equal(one_more(&c, &s), 0);
	qp[n] = c.qp;
	peer[n++] = s.qp;
	size = to_qp(s.qp)->rings->size;
	all.budgets[RR_SHARE_RING].max = 2 * N * size;
	while (!(rc = one_more(&c, &s))) {
		assert_true(n < 2 * N);
		qp[n] = c.qp;
		peer[n++] = s.qp;
	}
	assert_int_equal(rc, -EDQUOT);
	assert_int_equal(n, N);
	assert_int_equal(c.status, -ECONNRESET);
	assert_true(left_for_others(&all, RR_SHARE_RING, size) >= size);
	rr_qp_destroy(c.qp);

	/* a bounce area is as large as there is room for, and no connection ends for want of one */
	bounce = to_fabric(g)->attr.limits.bounce_bytes;
	mr = end_reg(&c, end_msg(&c, 0), 64, RR_ACCESS_REMOTE_READ, -1);
	for (int i = 0; i < 2; i++) {
		/* of what may be mapped; and where nothing may, the least there is, of the rings' share */
		all.budgets[RR_SHARE_REGION].max = i ? 0 : bounce / 2;
		all.budgets[RR_SHARE_RING].max = i ? 2 * (N * size + 2 * LOCAL_REQ_BYTES) : N * size;
		c.qp = qp[i];
		s.qp = peer[i];
		s.nwc = 0;
		assert_int_equal(end_rdma(&s, RR_WR_READ, end_msg(&s, 0), 64, s.mr, end_msg(&c, 0), mr->rkey),
				 0);
		pair_wait(&s, &c, 1);
		assert_int_equal(s.wc[0].status, RR_WC_OK);
		assert_int_equal(to_qp(s.qp)->stage->size, i ? 2 * LOCAL_REQ_BYTES : bounce / 2);
	}
	assert_int_equal(rr_mr_dereg(mr), 0);
	for (int i = 0; i < n; i++) {
		rr_qp_destroy(qp[i]);
		rr_qp_destroy(peer[i]);
	}
	c.qp = s.qp = NULL;
	end_close(&c);
	end_close(&s);
	nothing_is_left(&all);
	rr_fabric_close(f);
	rr_fabric_close(g);
	rr_clients_fini(&all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_regions),
		cmocka_unit_test(test_rings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
