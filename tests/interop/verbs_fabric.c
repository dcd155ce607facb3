/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * verbs_fabric.c - the contract of fabric.h, asked of the verbs fabric on a real device
 *
 * Runs where there is one (tests/interop/vm), with both ends in this process (verbs_ends.h).
 */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "verbs_ends.h"

/* ---- tests ---- */

static void attributes(void **state)
{
	struct rr_verbs_attr attr = { .device = "no such device" };
	struct rr_fabric *f;

	(void)state;
	assert_int_equal(rr_verbs_open(&attr, &f), -ENODEV);
	assert_true(fabric->attr.qp_wr_max >= 1024);
	assert_true(fabric->attr.rd_atom_max >= 1 && fabric->attr.msg_bytes_max >= 4u << 20);
	assert_false(fabric->attr.client_direct);
	assert_int_equal(rr_verbs_open(&(struct rr_verbs_attr){ 0 }, &f), 0);
	if (!strncmp(f->attr.device, "rxe", 3))
		assert_true(!f->attr.remote_inv && !f->attr.send_inv);
	rr_fabric_close(f);
}

static void nobody_and_refused(void **state)
{
	struct rr_listener *l, *l2;
	struct end a, b;

	(void)state;
	end_init(&a);
	end_init(&b);
	assert_int_equal(rr_qp_dial(a.cm, ADDR, NULL, &a.qp), 0);
	until(&a, &b, a.failed);
	assert_int_equal(a.status, -ECONNREFUSED);
	rr_qp_destroy(a.qp);
	a.qp = NULL;
	b.refuse = 1;
	assert_int_equal(rr_listen(b.cm, ADDR, &b, &l), 0);
	assert_int_equal(rr_listen(b.cm, ADDR, &b, &l2), -EADDRINUSE);
	assert_int_equal(rr_listen(b.cm, "192.0.2.1:20100", &b, &l2), -EADDRNOTAVAIL);
	assert_int_equal(rr_qp_dial(a.cm, ADDR, NULL, &a.qp), 0);
	until(&a, &b, a.failed == 2);
	assert_int_equal(a.status, -ECONNREFUSED);
	assert_int_equal(ended(&a), 0); /* it never was up: its receives do not complete */
	rr_unlisten(l);
	end_fini(&a);
	end_fini(&b);
}

static void handshake(void **state)
{
	struct end a, b;

	(void)state;
	end_init(&a);
	end_init(&b);
	pair_up(&a, &b);
	assert_true(b.priv_len >= 6 && !memcmp(b.priv, "active", 6));
	assert_true(a.priv_len >= 7 && !memcmp(a.priv, "passive", 7));
	assert_int_equal(b.depth, 16);
	assert_int_equal(strncmp(b.peer, "10.77.0.1:", 10), 0);
	part(&a, &b);
	end_fini(&a);
	end_fini(&b);
}

/* A connection outlives the manager that it came by, and still hears of its end. */
static void manager_goes(void **state)
{
	struct end a, b;

	(void)state;
	end_init(&a);
	end_init(&b);
	pair_up(&a, &b);
	rr_cm_destroy(b.cm);
	assert_int_equal(rr_cm_create(fabric, on_event, &b, &b.cm), 0);
	assert_int_equal(do_wr(&a, &b, (struct rr_wr){ .op = RR_WR_SEND }, 10), RR_WC_OK);
	until(&a, &b, ended(&b) == 1);
	part(&a, &b);
	end_fini(&a);
	end_fini(&b);
}

static void messages(void **state)
{
	struct rr_wr wr = { .op = RR_WR_SEND };
	struct end a, b;

	(void)state;
	end_init(&a);
	end_init(&b);
	pair_up(&a, &b);
	memcpy(a.mem + 32768, "hello", 5);
	/* unsignalled ones end with the signalled one behind them */
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(send_wr(&a, i, &wr, 0, a.mem + 32768, 5 + i), 0);
	assert_int_equal(send_wr(&a, 3, &wr, RR_WR_SIGNALED, a.mem + 32768, 64), 0);
	until(&a, &b, a.send[3].fired && ended(&b) == 4);
	assert_int_equal(a.send[0].fired + a.send[1].fired + a.send[2].fired, 0);
	assert_int_equal(b.recv[0].wc.byte_len, 5);
	assert_int_equal(b.recv[2].wc.byte_len, 7);
	assert_int_equal(b.recv[3].wc.byte_len, 64);
	assert_memory_equal(b.mem + 3 * RECV_BYTES, "hello", 5);
	assert_false(b.recv[0].wc.with_inv);
	part(&a, &b);
	end_fini(&a);
	end_fini(&b);
}

/* What a device may not notice, we count. */
static void account(void **state)
{
	struct rr_recv r = { 0 };
	struct rr_sge sge;
	struct rr_wr chain[NSEND + 1];
	struct end a, b;

	(void)state;
	end_init(&a);
	end_init(&b);
	pair_up(&a, &b);
	r.done = &a.recv[0].done;
	r.sge = (struct rr_sge){ a.mem, RECV_BYTES, a.local };
	assert_int_equal(rr_post_recv(a.qp, &r), -ENOMEM);
	sge = (struct rr_sge){ a.mem + 32768, 8, a.local };
	for (unsigned i = 0; i <= NSEND; i++)
		chain[i] = (struct rr_wr){ .op = RR_WR_WRITE, .sge = sge,
					   .raddr = (uintptr_t)b.mem, .rkey = b.remote->rkey,
					   .done = &fresh(&a.send[i % NSEND])->done,
					   .next = i < NSEND ? &chain[i + 1] : NULL };
	assert_int_equal(rr_post_send(a.qp, chain), -ENOMEM);
	chain[NSEND - 1].next = NULL;
	chain[NSEND - 1].flags = RR_WR_SIGNALED;
	for (unsigned round = 0; round < 3; round++) {
		fresh(&a.send[NSEND - 1]);
		assert_int_equal(rr_post_send(a.qp, chain), 0);
		assert_int_equal(rr_post_send(a.qp, &chain[NSEND - 1]), -ENOMEM);
		until(&a, &b, a.send[NSEND - 1].fired);
		assert_int_equal(a.send[NSEND - 1].wc.status, RR_WC_OK);
	}
	part(&a, &b);
	assert_int_equal(rr_post_send(a.qp, &chain[NSEND - 1]), -ENOTCONN);
	end_fini(&a);
	end_fini(&b);
}

/* An RDMA Write with a word for the peer: the bytes are there when the word is, in a receive that holds
 * nothing else, and in line with the Sends around it. */
static void writes_with_immediate(void **state)
{
	struct end a, b;

	(void)state;
	end_init(&a);
	end_init(&b);
	pair_up(&a, &b);
	memset(a.mem + 32768, 'i', 5001);
	assert_int_equal(do_wr(&a, &b, (struct rr_wr){ .op = RR_WR_SEND }, 10), RR_WC_OK);
	assert_int_equal(do_wr(&a, &b, (struct rr_wr){ .op = RR_WR_WRITE_IMM, .rkey = b.remote->rkey,
						       .raddr = (uintptr_t)b.mem + 16385,
						       .imm = 0x12345678 }, 5001), RR_WC_OK);
	assert_int_equal(do_wr(&a, &b, (struct rr_wr){ .op = RR_WR_SEND }, 11), RR_WC_OK);
	until(&a, &b, ended(&b) == 3);
	assert_memory_equal(b.mem + 16385, a.mem + 32768, 5001);
	assert_false(b.recv[0].wc.with_imm);
	assert_int_equal(b.recv[0].wc.byte_len, 10);
	assert_true(b.recv[1].wc.with_imm);
	assert_false(b.recv[1].wc.with_inv);
	assert_int_equal(b.recv[1].wc.imm, 0x12345678);
	assert_int_equal(b.recv[1].wc.byte_len, 5001);
	assert_int_equal(b.mem[RECV_BYTES], 0);
	assert_false(b.recv[2].wc.with_imm);
	assert_int_equal(b.recv[2].wc.byte_len, 11);
	assert_int_equal(do_wr(&a, &b, (struct rr_wr){ .op = RR_WR_WRITE_IMM,
						       .rkey = b.remote->rkey ^ 0x100,
						       .raddr = (uintptr_t)b.mem, .imm = 1 }, 8),
			 RR_WC_REM_ACCESS);
	part(&a, &b);
	end_fini(&a);
	end_fini(&b);
}

static void reads_and_writes(void **state)
{
	struct end a, b;

	(void)state;
	end_init(&a);
	end_init(&b);
	pair_up(&a, &b);
	memset(a.mem + 32768, 'w', 5001);
	assert_int_equal(do_wr(&a, &b, (struct rr_wr){ .op = RR_WR_WRITE, .rkey = b.remote->rkey,
						       .raddr = (uintptr_t)b.mem + 16385 }, 5001), RR_WC_OK);
	assert_memory_equal(b.mem + 16385, a.mem + 32768, 5001);
	memset(b.mem + 9, 'r', 4097);
	assert_int_equal(do_wr(&a, &b, (struct rr_wr){ .op = RR_WR_READ, .rkey = b.remote->rkey,
						       .raddr = (uintptr_t)b.mem + 9 }, 4097), RR_WC_OK);
	assert_memory_equal(b.mem + 9, a.mem + 32768, 4097);
	assert_int_equal(do_wr(&a, &b, (struct rr_wr){ .op = RR_WR_WRITE, .rkey = b.remote->rkey,
						       .raddr = (uintptr_t)b.mem }, 0), RR_WC_OK);
	/* past the end: both connections end, and all work completes */
	assert_int_equal(do_wr(&a, &b, (struct rr_wr){ .op = RR_WR_WRITE, .rkey = b.remote->rkey,
						       .raddr = (uintptr_t)b.mem + AREA - 4 }, 8),
			 RR_WC_REM_ACCESS);
	part(&a, &b);
	end_fini(&a);
	end_fini(&b);
}

static void bad_key(void **state)
{
	struct end a, b;

	(void)state;
	end_init(&a);
	end_init(&b);
	pair_up(&a, &b);
	assert_int_equal(do_wr(&a, &b, (struct rr_wr){ .op = RR_WR_READ, .rkey = b.remote->rkey ^ 0x100,
						       .raddr = (uintptr_t)b.mem }, 8), RR_WC_REM_ACCESS);
	part(&a, &b);
	end_fini(&a);
	end_fini(&b);
}

static void too_long(void **state)
{
	struct end a, b;

	(void)state;
	end_init(&a);
	end_init(&b);
	pair_up(&a, &b);
	assert_int_equal(do_wr(&a, &b, (struct rr_wr){ .op = RR_WR_SEND }, RECV_BYTES + 1), RR_WC_REM_OP);
	part(&a, &b);
	end_fini(&a);
	end_fini(&b);
}

static void no_receive(void **state)
{
	struct end a, b;

	(void)state;
	end_init(&a);
	end_init(&b);
	b.no_recvs = true;
	pair_up(&a, &b);
	assert_int_equal(do_wr(&a, &b, (struct rr_wr){ .op = RR_WR_SEND }, 8), RR_WC_RNR);
	rr_qp_disconnect(a.qp);
	until(&a, &b, ended(&a) == NRECV);
	rr_qp_disconnect(b.qp);
	end_fini(&a);
	end_fini(&b);
}

/* Receives that an owner posts before it knows of the end are flushed as well. */
static void late_receives(void **state)
{
	struct end a, b;

	(void)state;
	for (unsigned round = 0; round < 20; round++) {
		end_init(&a);
		end_init(&b);
		pair_up(&a, &b);
		rr_qp_disconnect(a.qp);
		until(&a, &b, ended(&b) == NRECV && ended(&a) == NRECV);
		post_recv(&b, 0);
		post_recv(&b, 1);
		rr_qp_disconnect(b.qp);
		until(&a, &b, b.recv[0].fired && b.recv[1].fired);
		assert_int_equal(b.recv[0].wc.status, RR_WC_FLUSHED);
		end_fini(&a);
		end_fini(&b);
	}
}

static bool readable(struct rr_cq *cq, int ms)
{
	struct pollfd p = { .fd = cq->fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

static void sleeping(void **state)
{
	struct rr_wr wr = { .op = RR_WR_SEND };
	struct end a, b;

	(void)state;
	end_init(&a);
	end_init(&b);
	pair_up(&a, &b);
	for (unsigned round = 0; round < 10; round++) {
		while (rr_cq_arm(b.cq))
			reap(&b);
		assert_false(readable(b.cq, 0));
		assert_int_equal(send_wr(&a, 0, &wr, RR_WR_SIGNALED, a.mem + 32768, 8), 0);
		assert_true(readable(b.cq, 10000));
		until(&a, &b, ended(&b) == 1 && a.send[0].fired);
		/* came before the arm: it is said at once */
		assert_int_equal(send_wr(&a, 1, &wr, RR_WR_SIGNALED, a.mem + 32768, 8), 0);
		while (!a.send[1].fired)
			reap(&a);
		if (rr_cq_arm(b.cq) == 0)
			assert_true(readable(b.cq, 10000));
		until(&a, &b, ended(&b) == 2);
		for (unsigned i = 0; i < NRECV; i++)
			if (b.recv[i].fired)
				post_recv(&b, i);
	}
	/* and the end of the peer wakes as well */
	while (rr_cq_arm(b.cq))
		reap(&b);
	rr_qp_disconnect(a.qp);
	assert_true(readable(b.cq, 10000));
	until(&a, &b, flushed(&b) > 0);
	part(&a, &b);
	end_fini(&a);
	end_fini(&b);
}

/* Destroyed with work outstanding: none of it reaches the queue pair that has its place after. */
static void destroyed_early(void **state)
{
	struct end a, b;

	(void)state;
	end_init(&a);
	end_init(&b);
	for (unsigned round = 0; round < 3; round++) {
		pair_up(&a, &b);
		rr_qp_disconnect(a.qp);
		rr_qp_destroy(a.qp);
		a.qp = NULL;
		until(&a, &b, flushed(&b) > 0);
		rr_qp_disconnect(b.qp);
		rr_qp_destroy(b.qp);
		b.qp = NULL;
		a.established = b.established = 0;
		for (unsigned i = 0; i < NRECV; i++) {
			fresh(&a.recv[i]);
			fresh(&b.recv[i]);
		}
	}
	for (unsigned i = 0; i < 1000; i++)
		turn(&a, &b);
	assert_int_equal(ended(&a) + ended(&b), 0);
	pair_up(&a, &b);
	assert_int_equal(do_wr(&a, &b, (struct rr_wr){ .op = RR_WR_SEND }, 8), RR_WC_OK);
	part(&a, &b);
	end_fini(&a);
	end_fini(&b);
}

/* More queue pairs than one completion queue of the device was made for. */
static void many_on_one_queue(void **state)
{
	enum { N = 12 };
	struct rr_qp *qps[N][2];
	struct rr_listener *l;
	struct end a, b;

	(void)state;
	end_init(&a);
	end_init(&b);
	a.no_recvs = b.no_recvs = true;
	a.sq_depth = b.sq_depth = 400;
	assert_int_equal(rr_listen(b.cm, ADDR, &b, &l), 0);
	for (unsigned i = 0; i < N; i++) {
		a.established = b.established = 0;
		assert_int_equal(rr_qp_dial(a.cm, ADDR, NULL, &a.qp), 0);
		until(&a, &b, a.established && b.established);
		qps[i][0] = a.qp;
		qps[i][1] = b.qp;
	}
	for (unsigned i = 0; i < N; i++) {
		a.qp = qps[i][0];
		b.qp = qps[i][1];
		post_recv(&b, 0);
		while (rr_cq_arm(b.cq))
			reap(&b);
		assert_int_equal(do_wr(&a, &b, (struct rr_wr){ .op = RR_WR_SEND }, 8 + i), RR_WC_OK);
		until(&a, &b, b.recv[0].fired);
		assert_int_equal(b.recv[0].wc.byte_len, 8 + i);
	}
	for (unsigned i = 0; i < N; i++) {
		rr_qp_disconnect(qps[i][0]);
		rr_qp_disconnect(qps[i][1]);
		rr_qp_destroy(qps[i][0]);
		rr_qp_destroy(qps[i][1]);
	}
	a.qp = b.qp = NULL;
	rr_unlisten(l);
	end_fini(&a);
	end_fini(&b);
}

static int srq_post(struct end *e, unsigned i)
{
	struct rr_recv r = { .done = &fresh(&e->recv[i])->done,
			     .sge = { e->mem + i * RECV_BYTES, RECV_BYTES, e->local } };

	return rr_srq_post(e->srq, &r);
}

/* Queue pairs that share their receives: whose message it is, waiting for one, and the end. */
static void shared_receives(void **state)
{
	enum { N = 4 };
	struct rr_qp *qps[N][2];
	struct rr_srq_attr sa = { .depth = 8, .recv_bytes = RECV_BYTES };
	struct rr_listener *l;
	struct end a, b;

	(void)state;
	if (!fabric->attr.srq_wr_max) {
		print_message("the device has no shared receive queues\n");
		skip();
	}
	end_init(&a);
	end_init(&b);
	a.no_recvs = b.no_recvs = true;
	sa.pd = b.pd;
	sa.cq = b.cq;
	assert_int_equal(rr_srq_create(fabric, &sa, &b.srq), 0);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(srq_post(&b, i), 0);
	assert_int_equal(rr_listen(b.cm, ADDR, &b, &l), 0);
	for (unsigned i = 0; i < N; i++) {
		a.established = b.established = 0;
		assert_int_equal(rr_qp_dial(a.cm, ADDR, NULL, &a.qp), 0);
		until(&a, &b, a.established && b.established);
		qps[i][0] = a.qp;
		qps[i][1] = b.qp;
	}
	for (unsigned round = 0; round < 10; round++) {
		for (unsigned i = 0; i < N; i++) { /* each message takes the oldest receive */
			unsigned which = (round * N + i) % 2;

			a.qp = qps[i][0];
			while (rr_cq_arm(b.cq))
				reap(&b);
			assert_int_equal(do_wr(&a, &b, (struct rr_wr){ .op = RR_WR_SEND }, 8 + i),
					 RR_WC_OK);
			until(&a, &b, b.recv[which].fired);
			assert_int_equal(b.recv[which].wc.status, RR_WC_OK);
			assert_int_equal(b.recv[which].wc.byte_len, 8 + i);
			assert_ptr_equal(b.recv[which].wc.qp, qps[i][1]);
			assert_int_equal(srq_post(&b, which), 0);
		}
	}
	/* two take what there is; the others' messages wait at their senders until there is more */
	for (unsigned i = 0; i < N; i++) {
		struct rr_wr wr = { .op = RR_WR_SEND };

		a.qp = qps[i][0];
		assert_int_equal(send_wr(&a, i, &wr, RR_WR_SIGNALED, a.mem, 100), 0);
	}
	until(&a, &b, b.recv[0].fired && b.recv[1].fired);
	for (unsigned i = 0; i < 50; i++)
		turn(&a, &b);
	assert_int_equal(srq_post(&b, 2), 0);
	assert_int_equal(srq_post(&b, 3), 0);
	until(&a, &b, b.recv[2].fired && b.recv[3].fired);
	until(&a, &b, a.send[0].fired && a.send[1].fired && a.send[2].fired && a.send[3].fired);
	for (unsigned i = 0; i < N; i++) {
		assert_int_equal(a.send[i].wc.status, RR_WC_OK);
		assert_int_equal(b.recv[i].wc.status, RR_WC_OK);
	}
	/* they end, by the peer or by their owner: told once each, and no receive goes with them */
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(srq_post(&b, i), 0);
	assert_int_equal(srq_post(&b, 8), -ENOMEM);
	assert_int_equal(b.end.fired, 0);
	b.qp = NULL;
	rr_qp_disconnect(qps[N - 1][0]); /* of the latest, whose end is b.end */
	while (rr_cq_arm(b.cq))
		reap(&b);
	until(&a, &b, b.end.fired);
	assert_int_equal(b.end.wc.status, RR_WC_FLUSHED);
	assert_ptr_equal(b.end.wc.qp, qps[N - 1][1]);
	rr_qp_disconnect(qps[N - 1][1]);
	for (unsigned i = 0; i < 20; i++)
		turn(&a, &b);
	assert_int_equal(b.end.fired, 1);
	rr_qp_destroy(qps[N - 1][0]);
	rr_qp_destroy(qps[N - 1][1]);
	fresh(&b.end);
	for (unsigned i = 0; i < N - 1; i++) {
		rr_qp_disconnect(qps[i][1]); /* all of these have the same one */
		until(&a, &b, b.end.fired == i + 1);
		rr_qp_disconnect(qps[i][0]);
		rr_qp_destroy(qps[i][0]);
		rr_qp_destroy(qps[i][1]);
	}
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(b.recv[i].fired, 0);
	a.qp = NULL;
	rr_unlisten(l);
	rr_srq_destroy(b.srq);
	end_fini(&a);
	end_fini(&b);
}

static struct rr_wr bind_wr(struct end *e, struct rr_mw *mw, size_t off, size_t len, unsigned access)
{
	return (struct rr_wr){ .op = RR_WR_BIND, .rkey = rr_mw_next_rkey(mw->rkey),
			       .bind = { mw, e->remote, e->mem + off, len, access } };
}

static void windows(void **state)
{
	struct rr_wr inv = { .op = RR_WR_LOCAL_INV };
	struct end a, b;
	struct rr_mw *mw;
	uint32_t key;

	(void)state;
	if (!fabric->attr.windows)
		skip();
	end_init(&a);
	end_init(&b);
	pair_up(&a, &b);
	assert_int_equal(rr_mw_create(b.pd, &mw), 0);
	assert_int_equal(do_wr(&b, &a, bind_wr(&b, mw, 0, 8192, RR_ACCESS_REMOTE_WRITE), 0), RR_WC_OK);
	key = mw->rkey;
	memset(a.mem + 32768, 'm', 100);
	assert_int_equal(do_wr(&a, &b, (struct rr_wr){ .op = RR_WR_WRITE, .rkey = key,
						       .raddr = (uintptr_t)b.mem + 5 }, 100), RR_WC_OK);
	assert_memory_equal(b.mem + 5, a.mem + 32768, 100);
	/* the peer takes it back, and may be the only one to */
	assert_int_equal(do_wr(&a, &b, (struct rr_wr){ .op = RR_WR_SEND_INV, .rkey = key }, 8), RR_WC_OK);
	until(&a, &b, ended(&b) == 1);
	assert_true(b.recv[0].wc.with_inv);
	assert_int_equal(b.recv[0].wc.inv_rkey, key);
	inv.rkey = key;
	assert_int_equal(send_wr(&b, 0, &inv, RR_WR_SIGNALED, NULL, 0), -EINVAL);
	until(&a, &b, ended(&b) == NRECV); /* such a mistake costs the connection */
	rr_qp_disconnect(b.qp);
	until(&a, &b, ended(&a) == NRECV);
	rr_qp_disconnect(a.qp);
	rr_mw_destroy(mw);
	end_fini(&a);
	end_fini(&b);
}

static void windows_taken_back(void **state)
{
	struct rr_wr inv = { .op = RR_WR_LOCAL_INV };
	struct rr_mw *mw, *left;
	struct end a, b;
	uint32_t key;

	(void)state;
	if (!fabric->attr.windows)
		skip();
	end_init(&a);
	end_init(&b);
	pair_up(&a, &b);
	assert_int_equal(rr_mw_create(b.pd, &mw), 0);
	assert_int_equal(rr_mw_create(b.pd, &left), 0);
	for (unsigned round = 0; round < 300; round++) { /* more than there are keys */
		assert_int_equal(do_wr(&b, &a, bind_wr(&b, mw, 0, 4096, RR_ACCESS_REMOTE), 0), RR_WC_OK);
		inv.rkey = mw->rkey;
		assert_int_equal(do_wr(&b, &a, inv, 0), RR_WC_OK);
	}
	assert_int_equal(do_wr(&b, &a, bind_wr(&b, left, 0, 4096, RR_ACCESS_REMOTE), 0), RR_WC_OK);
	assert_int_equal(rr_mr_dereg(b.remote), -EBUSY);
	key = inv.rkey;
	assert_int_equal(do_wr(&a, &b, (struct rr_wr){ .op = RR_WR_WRITE, .rkey = key,
						       .raddr = (uintptr_t)b.mem }, 8), RR_WC_REM_ACCESS);
	part(&a, &b);
	/* with a window still bound: it goes first */
	rr_qp_destroy(b.qp);
	b.qp = NULL;
	rr_mw_destroy(mw);
	rr_mw_destroy(left);
	end_fini(&a);
	end_fini(&b);
}

static void read_only_memory(void **state)
{
	struct rr_mr_attr attr = { .len = 8192, .fd = -1,
				   .access = RR_ACCESS_LOCAL_WRITE | RR_ACCESS_REMOTE_READ };
	struct rr_pd *pd;
	struct rr_mr *mr;

	(void)state;
	assert_int_equal(rr_pd_create(fabric, &pd), 0);
	attr.addr = mmap(NULL, 16384, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(attr.addr != MAP_FAILED);
	assert_int_equal(rr_mr_reg(pd, &attr, &mr), 0);
	assert_int_equal(mr->access, RR_ACCESS_REMOTE_READ);
	assert_int_equal(rr_mr_dereg(mr), 0);
	attr.access |= RR_ACCESS_REMOTE_WRITE;
	assert_int_equal(rr_mr_reg(pd, &attr, &mr), -EFAULT);
	munmap((char *)attr.addr + 4096, 4096); /* a hole */
	attr.access = RR_ACCESS_REMOTE_READ;
	assert_int_equal(rr_mr_reg(pd, &attr, &mr), -EFAULT);
	munmap(attr.addr, 16384);
	rr_pd_destroy(pd);
}

static int open_it(void **state)
{
	struct rr_verbs_attr attr = { .unsafe_inv = true };

	(void)state;
	return rr_verbs_open(&attr, &fabric);
}

static int close_it(void **state)
{
	(void)state;
	rr_fabric_close(fabric);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(attributes),
		cmocka_unit_test(nobody_and_refused),
		cmocka_unit_test(handshake),
		cmocka_unit_test(manager_goes),
		cmocka_unit_test(messages),
		cmocka_unit_test(account),
		cmocka_unit_test(writes_with_immediate),
		cmocka_unit_test(reads_and_writes),
		cmocka_unit_test(bad_key),
		cmocka_unit_test(too_long),
		cmocka_unit_test(no_receive),
		cmocka_unit_test(late_receives),
		cmocka_unit_test(sleeping),
		cmocka_unit_test(destroyed_early),
		cmocka_unit_test(many_on_one_queue),
		cmocka_unit_test(shared_receives),
		cmocka_unit_test(windows),
		cmocka_unit_test(windows_taken_back),
		cmocka_unit_test(read_only_memory),
	};

	return cmocka_run_group_tests(tests, open_it, close_it);
}
