/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * raw_peer.c - a peer that says exactly what a test tells it to, over the local fabric
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "local.h"
#include "raw_peer.h"

#define IDLE_ROUNDS 3000
#define ALL_ROUNDS (100 * IDLE_ROUNDS) /* a timer that is soon due again runs and runs, and moves nothing */

static uint8_t *slot(struct raw_peer *p, unsigned i)
{
	return p->mem + (size_t)i * p->msg_bytes;
}

static void on_recv(struct rr_done *done, const struct rr_wc *wc)
{
	/* the array index is found by address; the peer is behind it */
	(void)done;
	(void)wc;
}

static void on_send(struct rr_done *done, const struct rr_wc *wc)
{
	struct raw_peer *p = container_of(done, struct raw_peer, send_done);

	p->sent = true;
	p->send_status = wc->status;
}

static void post_recv(struct raw_peer *p, unsigned i)
{
	struct rr_recv r = { .done = &p->done[i],
			     .sge = { .addr = slot(p, i), .len = p->msg_bytes, .mr = p->mr } };

	p->done[i].fn = on_recv;
	if (rr_post_recv(p->qp, &r) == 0)
		p->posted++;
}

static void take(struct raw_peer *p, const struct rr_wc *wc)
{
	unsigned i = (unsigned)(wc->done - p->done), at = p->ngot % RAW_RECVS;

	p->posted--;
	if (wc->status != RR_WC_OK) {
		p->flushed = true;
		return;
	}
	p->got[at].len = wc->byte_len;
	p->got[at].with_inv = wc->with_inv;
	p->got[at].inv_rkey = wc->inv_rkey;
	memcpy(p->got[at].bytes, slot(p, i), wc->byte_len);
	p->ngot++;
	post_recv(p, i);
}

static int poll_cq(struct raw_peer *p)
{
	struct rr_wc wc[16];
	int k = rr_cq_poll(p->cq, wc, 16);

	for (int i = 0; i < k; i++) {
		if (wc[i].done >= p->done && wc[i].done < p->done + RAW_RECVS)
			take(p, &wc[i]);
		else
			wc[i].done->fn(wc[i].done, &wc[i]);
	}
	return k;
}

static int pump(struct raw_peer *p)
{
	int n = rpcrdma_engine_poll(p->server);

	rr_cm_process(p->cm);
	return n + poll_cq(p);
}

#define pump_until(p, cond)                                                                    \
	for (int idle_ = 0, all_ = 0; !(cond) && idle_ < IDLE_ROUNDS && all_ < ALL_ROUNDS; all_++) \
		idle_ = pump(p) ? 0 : idle_ + 1

static void on_cm(void *ctx, const struct rr_cm_event *ev)
{
	struct raw_peer *p = ctx;

	if (ev->type == RR_CM_ROUTED) {
		p->sent = true;
	} else if (ev->type == RR_CM_ESTABLISHED) {
		p->up = true;
		p->reads_of_server = ev->responder_resources;
		p->reads_by_server = ev->initiator_depth;
		rr_priv_decode(ev->priv, ev->priv_len, &p->server_priv);
		p->server_raw_len = ev->priv_len;
		if (ev->priv_len)
			memcpy(p->server_raw, ev->priv, ev->priv_len);
	} else {
		p->failed = true;
	}
}

int raw_open(struct raw_peer *p, struct rpcrdma_engine *server, const char *path,
	     const struct raw_opts *opts)
{
	static const struct raw_opts none;
	struct rr_conn_param param = { .responder_resources = 16 };
	struct rr_qp_attr qa = { .sq_depth = 64, .rq_depth = RAW_RECVS };
	struct rr_mr_attr ma = { .access = RR_ACCESS_LOCAL_WRITE, .fd = -1 };
	uint8_t priv[RR_PRIV_MAX];

	opts = opts ? opts : &none;
	memset(p, 0, sizeof(*p));
	p->server = server;
	p->msg_bytes = opts->msg_bytes ? opts->msg_bytes : 4096;
	p->send_done.fn = on_send;
	p->mem = calloc(RAW_RECVS + 1, p->msg_bytes > 65536 ? p->msg_bytes : 65536);
	if (!p->mem || rr_local_open(NULL, &p->fabric) || rr_pd_create(p->fabric, &p->pd) ||
	    rr_cq_create(p->fabric, &p->cq) || rr_cm_create(p->fabric, on_cm, p, &p->cm))
		return -ENOMEM;
	ma.addr = p->mem;
	ma.len = (RAW_RECVS + 1) * (size_t)65536;
	if (rr_mr_reg(p->pd, &ma, &p->mr))
		return -ENOMEM;
	if (rr_qp_dial(p->cm, path, NULL, &p->qp))
		return -ECONNREFUSED;
	pump_until(p, p->sent || p->failed);
	if (p->failed)
		return -ECONNREFUSED;
	qa.pd = p->pd;
	qa.cq = p->cq;
	qa.recv_bytes = p->msg_bytes;
	if (rr_qp_setup(p->qp, &qa))
		return -EINVAL;
	for (unsigned i = 0; i < (opts->recvs ? opts->recvs : 8); i++)
		post_recv(p, i);
	if (opts->priv) {
		rr_priv_encode(opts->priv, priv);
		param.priv = priv;
		param.priv_len = RR_PRIV_BYTES + opts->suffix_len;
		if (opts->suffix_len)
			memcpy(priv + RR_PRIV_BYTES, opts->suffix, opts->suffix_len);
	}
	if (opts->suffix_len)
		param.initiator_depth = 16;
	if (opts->reads)
		param.responder_resources = opts->reads;
	if (opts->no_reads)
		param.responder_resources = 0;
	if (rr_qp_connect(p->qp, &param))
		return -ECONNREFUSED;
	pump_until(p, p->up || p->failed);
	return p->up ? 0 : -ECONNREFUSED;
}

void raw_close(struct raw_peer *p)
{
	if (!p->fabric)
		return;
	if (p->qp) {
		rr_qp_disconnect(p->qp);
		pump_until(p, !p->posted || !p->up);
		rr_qp_destroy(p->qp);
		p->qp = NULL;
	}
	raw_settle(p);
	rr_mr_dereg(p->mr);
	rr_cm_destroy(p->cm);
	rr_cq_destroy(p->cq);
	rr_pd_destroy(p->pd);
	rr_fabric_close(p->fabric);
	free(p->mem);
	memset(p, 0, sizeof(*p));
}

static enum rr_wc_status post(struct raw_peer *p, const struct rr_wr *wr, bool blind)
{
	p->sent = false;
	if (rr_post_send(p->qp, wr))
		return RR_WC_FLUSHED;
	for (int idle = 0; !p->sent && idle < IDLE_ROUNDS; idle++)
		if (blind ? poll_cq(p) : pump(p))
			idle = 0;
	return p->sent ? p->send_status : RR_WC_LOST;
}

static enum rr_wc_status send_it(struct raw_peer *p, const void *msg, size_t len, bool blind,
				 enum rr_wr_op op, uint32_t inv_rkey)
{
	uint8_t *buf = p->mem + RAW_RECVS * (size_t)65536;
	struct rr_wr wr = { .done = &p->send_done,
			    .op = op,
			    .flags = RR_WR_SIGNALED,
			    .sge = { buf, (uint32_t)len, p->mr },
			    .rkey = inv_rkey };

	memcpy(buf, msg, len);
	return post(p, &wr, blind);
}

enum rr_wc_status raw_send(struct raw_peer *p, const void *msg, size_t len)
{
	return send_it(p, msg, len, false, RR_WR_SEND, 0);
}

enum rr_wc_status raw_send_inv(struct raw_peer *p, const void *msg, size_t len, uint32_t rkey)
{
	return send_it(p, msg, len, false, RR_WR_SEND_INV, rkey);
}

enum rr_wc_status raw_send_blind(struct raw_peer *p, const void *msg, size_t len)
{
	return send_it(p, msg, len, true, RR_WR_SEND, 0);
}

static enum rr_wc_status rdma_it(struct raw_peer *p, enum rr_wr_op op, const void *data, size_t len,
				 uint64_t raddr, uint32_t rkey, uint32_t imm)
{
	uint8_t *buf = p->mem + RAW_RECVS * (size_t)65536;
	struct rr_wr wr = { .done = &p->send_done, .op = op, .flags = RR_WR_SIGNALED,
			    .sge = { buf, (uint32_t)len, p->mr }, .raddr = raddr, .rkey = rkey, .imm = imm };

	if (op != RR_WR_READ && len)
		memcpy(buf, data, len);
	return post(p, &wr, false);
}

enum rr_wc_status raw_rdma(struct raw_peer *p, enum rr_wr_op op, void *data, size_t len, uint64_t raddr,
			   uint32_t rkey, uint32_t imm)
{
	enum rr_wc_status status = rdma_it(p, op, data, len, raddr, rkey, imm);

	if (op == RR_WR_READ && status == RR_WC_OK)
		memcpy(data, p->mem + RAW_RECVS * (size_t)65536, len);
	return status;
}

enum rr_wc_status raw_bind(struct raw_peer *p, struct rr_mw *mw, struct rr_mr *mr, void *addr,
			   size_t len, unsigned access)
{
	struct rr_wr wr = { .done = &p->send_done,
			    .op = RR_WR_BIND,
			    .flags = RR_WR_SIGNALED,
			    .rkey = rr_mw_next_rkey(mw->rkey),
			    .bind = { .mw = mw, .mr = mr, .addr = addr, .len = len, .access = access } };

	return post(p, &wr, false);
}

bool raw_last_inv(const struct raw_peer *p, uint32_t *ret_rkey)
{
	unsigned at = (p->taken - 1) % RAW_RECVS;

	*ret_rkey = p->got[at].inv_rkey;
	return p->got[at].with_inv;
}

const uint8_t *raw_recv(struct raw_peer *p, uint32_t *ret_len)
{
	unsigned at = p->taken % RAW_RECVS;

	pump_until(p, p->taken < p->ngot);
	if (p->taken == p->ngot)
		return NULL;
	p->taken++;
	*ret_len = p->got[at].len;
	return p->got[at].bytes;
}

void raw_settle(struct raw_peer *p)
{
	pump_until(p, false);
}

bool raw_alive(struct raw_peer *p)
{
	raw_settle(p);
	return p->up && !p->flushed;
}
