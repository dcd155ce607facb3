/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_local_hostile.c - the local fabric: a client that scribbles over the shared memory
 *
 * The client's half is written to behind the fabric's back. The server must lose that connection,
 * count it where a rule was broken, and serve another client as before.
 */
#include <fcntl.h>

#include "local_int.h"
#include "test_local_pair.h"

enum scribble {
	WILD_HEAD, WILD_LEN, WILD_SEQ, WILD_POSTED, WILD_REQ_HEAD, REQ_WITHOUT_AREA, WILD_REQ_DONE,
	SOCKET_JUNK, REGION_JUNK, REGION_UNSEALED, SCRIBBLES,
};

static void publish(struct local_qp *q, uint32_t len, uint32_t seq)
{
	struct shm_msg *m = (struct shm_msg *)(void *)q->peer_ring.base;

	m->len = len;
	m->with = RING_PLAIN;
	m->req_seq = seq;
	atomic_store(&q->me->msg_head, 1);
}

static void scribble(struct end *c, enum scribble what)
{
	struct local_qp *q = to_qp(c->qp);
	struct hs_msg hs = { .magic = HS_MAGIC, .version = HS_VERSION, .type = HS_REGION,
			     .size = 4096 };
	int fd;

	switch (what) {
	case WILD_HEAD:
		atomic_store(&q->me->msg_head, 0x80000000u);
		break;
	case WILD_LEN:
		publish(q, UINT32_MAX, 0);
		break;
	case WILD_SEQ:
		publish(q, 1, 0x7fffffff);
		break;
	case WILD_POSTED:
		atomic_store(&q->me->posted, 0x7fffffff);
		break;
	case WILD_REQ_HEAD:
		atomic_store(&q->me->req_head, 0x7fffffff);
		break;
	case REQ_WITHOUT_AREA:
		atomic_store(&q->me->req_head, 1);
		break;
	case WILD_REQ_DONE:
		atomic_store(&q->me->req_done, 5);
		break;
	case SOCKET_JUNK:
		assert_int_equal(send(q->sock, "junk", 4, 0), 4);
		break;
	case REGION_JUNK:
		assert_int_equal(rr_local_sock_send(q->sock, &hs, NULL, 0), 0);
		break;
	case REGION_UNSEALED:
		fd = memfd_create("x", MFD_CLOEXEC);
		assert_int_equal(ftruncate(fd, 4096), 0);
		assert_int_equal(rr_local_sock_send(q->sock, &hs, &fd, 1), 0);
		close(fd);
		break;
	case SCRIBBLES:
		break;
	}
}

static void test_scribbles(void **state)
{
	(void)state;
	for (enum scribble what = 0; what < SCRIBBLES; what++) {
		struct rr_fabric *f = open_fabric(NULL), *g = open_fabric(NULL);
		struct rr_qp *bad;
		struct end c, s, c2;

		end_open(&c, f);
		end_open(&s, g);
		assert_int_equal(rr_listen(s.cm, pair_path(), NULL, &s.l), 0);
		pair_connect(&c, &s);
		bad = s.qp;
		scribble(&c, what);
		if (what == WILD_POSTED)
			assert_int_equal(end_send(&s, 0, 1, 0), 0);
		while (s.nwc < 16)
			end_poll(&s);
		assert_int_equal(s.wc[15].status, RR_WC_FLUSHED);
		assert_int_equal(rr_local_counters(g).hostile, 1);
		/* the next one is none the worse for it */
		end_open(&c2, f);
		s.nevents = 0;
		s.nrecv = 16;
		pair_connect(&c2, &s);
		s.nwc = 0;
		assert_int_equal(end_send(&c2, 0, 3, RR_WR_SIGNALED), 0);
		while (s.nwc < 1 || s.wc[s.nwc - 1].status != RR_WC_OK)
			end_poll(&s);
		rr_qp_destroy(bad);
		end_close(&c2);
		end_close(&c);
		end_close(&s);
		rr_fabric_close(f);
		rr_fabric_close(g);
	}
}

/* Lies in the key table: at worst the client's own memory is hit. */
static void test_key_lies(void **state)
{
	(void)state;
	for (int lie = 0; lie < 7; lie++) {
		struct rr_fabric *f = open_fabric(NULL), *g = open_fabric(NULL);
		struct rr_mr *mr;
		struct shm_key *k;
		struct end c, s;
		uint64_t addr;

		end_open(&c, f);
		end_open(&s, g);
		assert_int_equal(rr_listen(s.cm, pair_path(), NULL, &s.l), 0);
		pair_connect(&c, &s);
		mr = end_reg(&c, end_msg(&c, 0), RECV_BYTES,
			     RR_ACCESS_LOCAL_WRITE | RR_ACCESS_REMOTE, -1);
		k = &to_qp(c.qp)->my_keys[to_mr(mr)->slot];
		addr = k->addr;
		switch (lie) {
		case 0:
			k->place = 77;
			break;
		case 1:
			k->place = PLACE_SLAB;
			break;
		case 2:
			k->place = PLACE_SLAB;
			k->region = 12345;
			k->off = UINT64_MAX - 2;
			break;
		case 3:
			k->addr = 0;
			k->len = UINT64_MAX;
			addr = 8; /* not mapped */
			break;
		case 4:
			k->len = 0;
			break;
		case 5:
			k->access = 0;
			break;
		default:
			k->addr = UINT64_MAX - 4;
			k->len = UINT64_MAX;
			break;
		}
		assert_int_equal(end_rdma(&s, RR_WR_WRITE, end_msg(&s, 0), 64, s.mr,
					  (void *)(uintptr_t)addr, mr->rkey), 0);
		pair_wait(&s, &c, 1);
		/* a region that was not taken is the owner's to move: it looks the key up itself */
		assert_int_equal(s.wc[0].status, lie == 1 || lie == 2 ? RR_WC_OK :
								 RR_WC_REM_ACCESS);
		assert_int_equal(atomic_load(&k->busy), 0);
		assert_int_equal(rr_mr_dereg(mr), 0);
		end_close(&c);
		end_close(&s);
		rr_fabric_close(f);
		rr_fabric_close(g);
	}
}

/* Holes punched into the rings and into a slab: zeroes or errors, no signal. */
static void test_punched(void **state)
{
	const size_t len = 64 * 1024;
	struct rr_fabric *f = open_fabric(NULL);
	struct rr_mr *mr;
	struct end c, s;
	uint8_t *mem;
	int fd = memfd_create("slab", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	(void)state;
	assert_int_equal(ftruncate(fd, (off_t)len), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
	mem = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	memset(mem, 1, len);
	pair_open(&c, &s, f);
	mr = end_reg(&c, mem, len, RR_ACCESS_LOCAL_WRITE | RR_ACCESS_REMOTE, fd);
	assert_int_equal(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
				   (off_t)len), 0);
	assert_int_equal(ftruncate(fd, 1), -1);
	assert_int_equal(end_rdma(&s, RR_WR_READ, end_msg(&s, 0), 64, s.mr, mem, mr->rkey), 0);
	pair_wait(&s, &c, 1);
	assert_int_equal(s.wc[0].status, RR_WC_OK);
	assert_int_equal(end_msg(&s, 0)[0], 0);
	assert_int_equal(end_rdma(&s, RR_WR_WRITE, end_msg(&s, 0), 64, s.mr, mem, mr->rkey), 0);
	pair_wait(&s, &c, 2);
	assert_int_equal(s.wc[1].status, RR_WC_OK);
	/* the whole shared area becomes zero; neither side crashes */
	assert_int_equal(madvise(to_qp(c.qp)->rings->addr, to_qp(c.qp)->rings->size & ~(size_t)4095,
				 MADV_REMOVE), 0);
	(void)end_send(&s, 0, 8, 0); /* may fail, must return */
	(void)end_send(&c, 0, 8, 0);
	for (int i = 0; i < 5000; i++) {
		end_poll(&c);
		end_poll(&s);
	}
	assert_int_equal(rr_mr_dereg(mr), 0);
	pair_close(&c, &s);
	rr_fabric_close(f);
	munmap(mem, len);
	close(fd);
}

/* What a peer asks for that its own side would never let it ask: the owner of the memory copies for
 * it through the bounce area, and is the last to look at key, bounds and rights. */
static void test_requests_forged(void **state)
{
	enum { FAIR, STALE_KEY, BEYOND, BEFORE, WRITE_TO_READABLE, READ_FROM_WRITABLE, FORGERIES };
	const struct rr_local_attr never = { .vm = RR_LOCAL_VM_NEVER };

	(void)state;
	for (int what = FAIR; what < FORGERIES; what++) {
		struct rr_fabric *f = open_fabric(&never);
		unsigned access = what == WRITE_TO_READABLE ? RR_ACCESS_REMOTE_READ :
				  what == READ_FROM_WRITABLE ? RR_ACCESS_REMOTE_WRITE :
							       RR_ACCESS_REMOTE;
		struct local_qp *q;
		struct shm_req *r;
		struct end c, s;
		struct rr_mr *old, *mr;
		uint8_t *mem, *window;
		uint32_t stale;

		pair_open(&c, &s, f);
		q = to_qp(s.qp);
		mem = end_msg(&c, 0);
		window = mem + RECV_BYTES;
		/* a fair write first: it opens the bounce area, and leaves its 64 bytes there */
		old = end_reg(&c, mem, RECV_BYTES, RR_ACCESS_LOCAL_WRITE | RR_ACCESS_REMOTE, -1);
		stale = old->rkey;
		memset(end_msg(&s, 0), 0xee, 64);
		assert_int_equal(end_rdma(&s, RR_WR_WRITE, end_msg(&s, 0), 64, s.mr, mem, stale), 0);
		pair_wait(&s, &c, 1);
		assert_int_equal(s.wc[0].status, RR_WC_OK);
		assert_int_equal(mem[63], 0xee);
		assert_int_equal(rr_mr_dereg(old), 0);
		memset(mem, 0x11, 3 * RECV_BYTES);
		/* until the table gives the same place again, with another key */
		mr = end_reg(&c, window, RECV_BYTES, RR_ACCESS_LOCAL_WRITE | access, -1);
		while (mr->rkey >> 8 != stale >> 8) {
			assert_int_equal(rr_mr_dereg(mr), 0);
			mr = end_reg(&c, window, RECV_BYTES, RR_ACCESS_LOCAL_WRITE | access, -1);
		}
		assert_int_not_equal(mr->rkey, stale);

		r = &q->me->req[q->req_head % LOCAL_REQS];
		r->write = what != READ_FROM_WRITABLE;
		r->key = what == STALE_KEY ? stale : mr->rkey;
		r->addr = (uintptr_t)window;
		if (what == BEYOND)
			r->addr += RECV_BYTES - 32;
		if (what == BEFORE)
			r->addr -= 32;
		r->off = 0;
		r->len = 64;
		atomic_store(&r->status, 99u);
		atomic_store(&q->me->req_head, q->req_head + 1);
		rr_local_ring_bell(q);
		while (atomic_load(&r->status) == 99u)
			end_poll(&c);
		if (what == FAIR) {
			assert_int_equal(atomic_load(&r->status), RR_WC_OK);
			assert_int_equal(window[63], 0xee);
		} else {
			assert_int_equal(atomic_load(&r->status), RR_WC_REM_ACCESS);
			for (unsigned i = 0; i < 3 * RECV_BYTES; i++)
				assert_int_equal(mem[i], 0x11);
		}
		assert_int_equal(rr_mr_dereg(mr), 0);
		pair_close(&c, &s);
		rr_fabric_close(f);
	}
}

static void assert_fits(const struct local_ring *r)
{
	assert_true(r->at + r->longest <= r->bytes && r->at % LOCAL_LINE == 0);
}

static uint32_t draw(uint32_t *seed, uint32_t below)
{
	*seed = *seed * 1664525 + 1013904223;
	return (*seed >> 8) % below;
}

/* Posts again the receives that have completed since @from. */
static int post_again(struct end *e, int from)
{
	for (; from < e->nwc; from++) {
		const struct rr_wc *wc = &e->wc[from];

		if (wc->done >= &e->done[16] || wc->status != RR_WC_OK)
			continue;
		assert_true(wc->byte_len <= RECV_BYTES);
		if (rr_post_recv(e->qp, &e->recv[wc->done - e->done]) == -ENOTCONN)
			break;
	}
	return e->nwc;
}

/* Lies about what it has taken, and where its messages begin. The messages of its own connection may be lost; the server stays
 * inside of both rings, and ends that connection if what it finds there is no message. */
static void test_ring_lies(void **state)
{
	uint32_t seed = 1;
	unsigned restarts = 0;

	(void)state;
	for (int round = 0; round < 40; round++) {
		struct rr_fabric *f = open_fabric(NULL), *g = open_fabric(NULL);
		int c_at = 0, s_at = 0;
		struct local_qp *q, *victim;
		struct end c, s;

		end_open(&c, f);
		end_open(&s, g);
		assert_int_equal(rr_listen(s.cm, pair_path(), NULL, &s.l), 0);
		pair_connect(&c, &s);
		q = to_qp(c.qp);
		victim = to_qp(s.qp);
		for (int i = 0; i < 400 && s.nwc < END_WCS / 2; i++) {
			struct end *from = draw(&seed, 2) ? &c : &s;
			uint32_t before = atomic_load(&victim->me->restart);

			if (round % 2) /* nothing, so that the server goes on to the end of the ring */
				atomic_store(&q->me->taken, UINT32_MAX);
			else if (draw(&seed, 2)) /* all, while it is in the ring still */
				atomic_store(&q->me->taken, draw(&seed, 8) ? victim->msg_head : draw(&seed, 100));
			if (!draw(&seed, 8))
				atomic_store(&q->me->restart, draw(&seed, 2) ? victim->rq_taken : draw(&seed, 100));
			if (from->nwc - (from == &c ? c_at : s_at) < 8)
				(void)end_send(from, 16, draw(&seed, RECV_BYTES + 1), RR_WR_SIGNALED);
			restarts += atomic_load(&victim->me->restart) != before;
			assert_fits(&victim->peer_ring);
			if (draw(&seed, 3))
				end_poll(&s);
			assert_fits(&victim->my_ring);
			if (!draw(&seed, 3))
				end_poll(&c);
			s_at = post_again(&s, s_at);
			c_at = post_again(&c, c_at);
		}
		rr_qp_disconnect(c.qp);
		end_close(&c);
		end_close(&s);
		rr_fabric_close(f);
		rr_fabric_close(g);
	}
	assert_true(restarts > 40);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scribbles),
		cmocka_unit_test(test_key_lies),
		cmocka_unit_test(test_ring_lies),
		cmocka_unit_test(test_punched),
		cmocka_unit_test(test_requests_forged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
