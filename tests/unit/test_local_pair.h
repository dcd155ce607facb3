/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_local_pair.h - two ends of a connection for the tests of the local fabric
 *
 * An end is a thread's or a process's worth of fabric objects. pair_open() makes two ends in this
 * process and connects them by hand, one thread driving both. Waiting is done by polling both ends
 * until a condition holds; the test runner's time limit is what catches one that never does.
 */
#ifndef TEST_LOCAL_PAIR_H
#define TEST_LOCAL_PAIR_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "fabric.h"
#include "hooks.h"
#include "local.h"

#define RECV_BYTES 1024u
#define END_WCS 4096

struct end {
	struct rr_fabric *f;
	struct rr_pd *pd;
	struct rr_cq *cq;
	struct rr_cm *cm;
	struct rr_listener *l;
	struct rr_qp *qp;
	struct rr_mr *mr;           /* over mem */
	uint8_t *mem;               /* receive buffers first, then room for messages */
	struct rr_recv recv[64];
	struct rr_done done[END_WCS];
	struct rr_wc wc[END_WCS];   /* what was polled, in order */
	int nwc;
	int events[8], nevents, status;
	struct rr_peer peer;
	uint8_t priv[RR_PRIV_MAX];
	size_t priv_len;
	struct rr_qp_attr attr;
	struct rr_conn_param param;
	unsigned nrecv;             /* posted at set up */
};

static inline void end_nop(struct rr_done *done, const struct rr_wc *wc)
{
	(void)done;
	(void)wc;
}

static inline void *end_pages(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	return p;
}

static inline void end_setup(struct end *e)
{
	e->attr.pd = e->pd;
	e->attr.cq = e->cq;
	assert_int_equal(rr_qp_setup(e->qp, &e->attr), 0);
	for (unsigned i = 0; i < e->nrecv; i++) {
		e->recv[i] = (struct rr_recv){ .done = &e->done[i],
			.sge = { e->mem + i * RECV_BYTES, RECV_BYTES, e->mr } };
		assert_int_equal(rr_post_recv(e->qp, &e->recv[i]), 0);
	}
}

static inline void end_event(void *ctx, const struct rr_cm_event *ev)
{
	struct end *e = ctx;

	e->events[e->nevents++] = (int)ev->type;
	e->status = ev->status;
	if (ev->priv_len) {
		memcpy(e->priv, ev->priv, ev->priv_len);
		e->priv_len = ev->priv_len;
	}
	if (ev->type == RR_CM_REQUEST)
		e->qp = ev->qp;
	if (ev->type == RR_CM_REQUEST || ev->type == RR_CM_REFUSED)
		e->peer = *ev->peer;
}

static inline void end_open(struct end *e, struct rr_fabric *f)
{
	struct rr_mr_attr a = { .len = 256 * RECV_BYTES, .access = RR_ACCESS_LOCAL_WRITE,
				.fd = -1 };

	memset(e, 0, sizeof(*e));
	e->f = f;
	for (int i = 0; i < END_WCS; i++)
		e->done[i].fn = end_nop;
	e->attr = (struct rr_qp_attr){ .sq_depth = 32, .rq_depth = 32, .recv_bytes = RECV_BYTES };
	e->param = (struct rr_conn_param){ .priv = "hello", .priv_len = 5, .initiator_depth = 16,
					   .responder_resources = 16 };
	e->nrecv = 16;
	assert_int_equal(rr_pd_create(f, &e->pd), 0);
	assert_int_equal(rr_cq_create(f, &e->cq), 0);
	assert_int_equal(rr_cm_create(f, end_event, e, &e->cm), 0);
	e->mem = end_pages(a.len);
	a.addr = e->mem;
	assert_int_equal(rr_mr_reg(e->pd, &a, &e->mr), 0);
}

static inline void end_close(struct end *e)
{
	rr_qp_destroy(e->qp);
	rr_unlisten(e->l);
	rr_cm_destroy(e->cm);
	assert_int_equal(rr_mr_dereg(e->mr), 0);
	rr_cq_destroy(e->cq);
	rr_pd_destroy(e->pd);
	munmap(e->mem, 256 * RECV_BYTES);
}

static inline int end_poll(struct end *e)
{
	int n = rr_cq_poll(e->cq, e->wc + e->nwc, MIN(16, END_WCS - e->nwc));

	e->nwc += n;
	return n;
}

/* The path is made of the pid, so that tests may run side by side. */
static inline const char *pair_path(void)
{
	static char path[64];

	snprintf(path, sizeof(path), "/tmp/leat-test-%d.sock", (int)getpid());
	return path;
}

static inline void end_wait_event(struct end *e, struct end *other, int n)
{
	while (e->nevents < n) {
		rr_cm_process(e->cm);
		if (other)
			rr_cm_process(other->cm);
	}
}

/* Connects @c to @s, which listens. */
static inline void pair_connect(struct end *c, struct end *s)
{
	assert_int_equal(rr_qp_dial(c->cm, pair_path(), NULL, &c->qp), 0);
	end_wait_event(c, s, 1);
	assert_int_equal(c->events[0], RR_CM_ROUTED);
	end_setup(c);
	assert_int_equal(rr_qp_connect(c->qp, &c->param), 0);
	end_wait_event(s, NULL, 1);
	assert_int_equal(s->events[0], RR_CM_REQUEST);
	end_setup(s);
	assert_int_equal(rr_qp_accept(s->qp, &s->param), 0);
	end_wait_event(c, NULL, 2);
	assert_int_equal(c->events[1], RR_CM_ESTABLISHED);
}

static inline void pair_open(struct end *c, struct end *s, struct rr_fabric *f)
{
	end_open(c, f);
	end_open(s, f);
	assert_int_equal(rr_listen(s->cm, pair_path(), NULL, &s->l), 0);
	pair_connect(c, s);
}

static inline void pair_close(struct end *c, struct end *s)
{
	rr_qp_disconnect(c->qp);
	end_close(c);
	end_close(s);
}

/* Polls both ends until @e has @n completions in all. */
static inline void pair_wait(struct end *e, struct end *other, int n)
{
	while (e->nwc < n) {
		end_poll(e);
		end_poll(other);
	}
}

/* Message memory of an end: behind the receive buffers. */
static inline uint8_t *end_msg(struct end *e, unsigned i)
{
	return e->mem + (64 + i) * RECV_BYTES;
}

static inline int end_send(struct end *e, unsigned msg, uint32_t len, unsigned flags)
{
	struct rr_wr wr = { .done = &e->done[100 + msg], .op = RR_WR_SEND, .flags = flags,
			    .sge = { end_msg(e, msg), len, e->mr } };

	return rr_post_send(e->qp, &wr);
}

static inline int end_inv(struct end *e, uint32_t rkey, enum rr_wr_op op)
{
	struct rr_wr wr = { .done = &e->done[200], .op = op, .flags = RR_WR_SIGNALED,
			    .rkey = rkey };

	return rr_post_send(e->qp, &wr);
}

static inline int end_rdma(struct end *e, enum rr_wr_op op, uint8_t *mine, uint32_t len,
			   struct rr_mr *mr, const void *raddr, uint32_t rkey)
{
	struct rr_wr wr = { .done = &e->done[201], .op = op, .flags = RR_WR_SIGNALED, .sge = { mine, len, mr },
			    .raddr = (uintptr_t)raddr, .rkey = rkey };

	return rr_post_send(e->qp, &wr);
}

static inline struct rr_mr *end_reg(struct end *e, void *addr, size_t len, unsigned access, int fd)
{
	struct rr_mr_attr a = { .addr = addr, .len = len, .access = access, .fd = fd };
	struct rr_mr *mr;

	assert_int_equal(rr_mr_reg(e->pd, &a, &mr), 0);
	return mr;
}

static inline struct rr_fabric *open_fabric(const struct rr_local_attr *attr)
{
	struct rr_fabric *f;

	assert_int_equal(rr_local_open(attr, &f), 0);
	return f;
}

/* A socket that is connected to the listener and has sent no handshake. */
static inline int stranger(void)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	memcpy(sun.sun_path, pair_path(), strlen(pair_path()));
	assert_int_equal(connect(fd, (struct sockaddr *)&sun, sizeof(sun)), 0);
	return fd;
}

/* An end that listens, with a fabric of its own. */
static inline void server_open(struct end *s, const struct rr_local_attr *attr)
{
	end_open(s, open_fabric(attr));
	assert_int_equal(rr_listen(s->cm, pair_path(), NULL, &s->l), 0);
}

static inline void server_close(struct end *s)
{
	struct rr_fabric *f = s->f;

	end_close(s);
	rr_fabric_close(f);
}

#endif
