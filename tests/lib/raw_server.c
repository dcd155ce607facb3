/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * raw_server.c - a responder that says and does exactly what a test tells it to
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "local.h"
#include "raw_server.h"

#define IDLE_ROUNDS 3000
/* A device works by itself, and in a machine that others keep busy. */
#define PATIENCE_NS (5 * NS_PER_S)
#define SETTLE_NS (300 * NS_PER_MS)
#define DATA_BYTES (2u << 20)
#define SEND_AT (RAW_SERVER_RECVS * (size_t)RAW_SERVER_BYTES)
#define DATA_AT (SEND_AT + RAW_SERVER_BYTES)

/* How long nothing has moved. */
struct idle {
	uint64_t patience_ns;
	int rounds;
	uint64_t since_ns;
};

/* @ran: how much moved in this round; Return: whether to go on */
static bool goes_on(const struct raw_server *s, struct idle *i, int ran)
{
	if (!i->rounds++ || ran) {
		i->rounds = 1;
		i->since_ns = clock_now_ns();
	}
	return s->opts.fabric ? clock_now_ns() - i->since_ns < i->patience_ns : i->rounds < IDLE_ROUNDS;
}

static uint8_t *slot(struct raw_server *s, unsigned i)
{
	return s->mem + (size_t)i * RAW_SERVER_BYTES;
}

static void on_recv(struct rr_done *done, const struct rr_wc *wc)
{
	/* take() finds the buffer by the address of its rr_done */
	(void)done;
	(void)wc;
}

static void on_op(struct rr_done *done, const struct rr_wc *wc)
{
	struct raw_server *s = container_of(done, struct raw_server, op_done);

	s->op_ended = true;
	s->op_status = wc->status;
}

static void post_recv(struct raw_server *s, unsigned i)
{
	struct rr_recv r = { .done = &s->done[i],
			     .sge = { .addr = slot(s, i), .len = s->opts.msg_bytes, .mr = s->mr } };

	s->done[i].fn = on_recv;
	if (rr_post_recv(s->qp, &r) == 0)
		s->posted++;
}

static void take(struct raw_server *s, const struct rr_wc *wc)
{
	unsigned i = (unsigned)(wc->done - s->done);

	s->posted--;
	if (wc->status != RR_WC_OK) {
		s->lost += s->up;
		s->up = false;
		return;
	}
	assert_in_range(s->ngot, 0, RAW_SERVER_LOG - 1);
	s->got[s->ngot].len = wc->byte_len;
	s->got[s->ngot].conn = s->conns;
	s->got[s->ngot].bytes = malloc(wc->byte_len + 1);
	assert_non_null(s->got[s->ngot].bytes);
	memcpy(s->got[s->ngot].bytes, slot(s, i), wc->byte_len);
	s->ngot++;
	post_recv(s, i);
}

static int poll_cq(struct raw_server *s)
{
	struct rr_wc wc[16];
	int n = rr_cq_poll(s->cq, wc, 16);

	for (int i = 0; i < n; i++) {
		if (wc[i].done >= s->done && wc[i].done < s->done + RAW_SERVER_RECVS)
			take(s, &wc[i]);
		else
			wc[i].done->fn(wc[i].done, &wc[i]);
	}
	return n;
}

static void drop_qp(struct raw_server *s)
{
	if (!s->qp)
		return;
	rr_qp_disconnect(s->qp);
	for (struct idle i = { .patience_ns = PATIENCE_NS }; s->posted && goes_on(s, &i, poll_cq(s));)
		;
	assert_int_equal(s->posted, 0);
	rr_qp_destroy(s->qp);
	s->qp = NULL;
}

static void on_request(struct raw_server *s, const struct rr_cm_event *ev)
{
	struct rr_qp_attr qa = { .pd = s->pd, .cq = s->cq, .sq_depth = 256,
				 .rq_depth = RAW_SERVER_RECVS,
				 .recv_bytes = s->opts.msg_bytes };
	struct rr_conn_param param = { .initiator_depth = ev->initiator_depth,
				       .responder_resources = ev->responder_resources,
				       .priv = s->opts.priv, .priv_len = s->opts.priv_len };

	s->client_priv_len = ev->priv_len;
	rr_priv_decode(ev->priv, ev->priv_len, &s->client_priv);
	s->reads_offered = ev->initiator_depth;
	s->reads_wanted = ev->responder_resources;
	if (s->opts.reject) {
		s->refused++;
		rr_qp_reject(ev->qp);
		rr_qp_destroy(ev->qp);
		return;
	}
	drop_qp(s);
	s->qp = ev->qp;
	assert_int_equal(rr_qp_setup(s->qp, &qa), 0);
	for (unsigned i = 0; i < RAW_SERVER_RECVS; i++)
		post_recv(s, i);
	assert_int_equal(rr_qp_accept(s->qp, &param), 0);
	s->conns++;
	s->up = true;
}

static void on_cm(void *ctx, const struct rr_cm_event *ev)
{
	if (ev->type == RR_CM_REQUEST)
		on_request(ctx, ev);
}

void raw_server_open(struct raw_server *s, struct rpcrdma_engine *client, const char *path,
		     const struct raw_server_opts *opts)
{
	struct rr_mr_attr ma = { .access = RR_ACCESS_LOCAL_WRITE, .fd = -1 };

	memset(s, 0, sizeof(*s));
	s->client = client;
	if (opts)
		s->opts = *opts;
	if (!s->opts.msg_bytes)
		s->opts.msg_bytes = 4096;
	s->op_done.fn = on_op;
	ma.len = DATA_AT + DATA_BYTES;
	s->mem = calloc(1, ma.len);
	assert_non_null(s->mem);
	ma.addr = s->mem;
	s->fabric = s->opts.fabric;
	if (!s->fabric)
		assert_int_equal(rr_local_open(NULL, &s->fabric), 0);
	assert_int_equal(rr_pd_create(s->fabric, &s->pd), 0);
	assert_int_equal(rr_cq_create(s->fabric, &s->cq), 0);
	assert_int_equal(rr_cm_create(s->fabric, on_cm, s, &s->cm), 0);
	assert_int_equal(rr_mr_reg(s->pd, &ma, &s->mr), 0);
	assert_int_equal(rr_listen(s->cm, path, NULL, &s->listener), 0);
}

void raw_server_close(struct raw_server *s)
{
	if (!s->fabric)
		return;
	drop_qp(s);
	rr_unlisten(s->listener);
	raw_server_settle(s);
	rr_mr_dereg(s->mr);
	rr_cm_destroy(s->cm);
	rr_cq_destroy(s->cq);
	rr_pd_destroy(s->pd);
	if (!s->opts.fabric)
		rr_fabric_close(s->fabric);
	for (unsigned i = 0; i < s->ngot; i++)
		free(s->got[i].bytes);
	free(s->mem);
	memset(s, 0, sizeof(*s));
}

int raw_server_poll(struct raw_server *s)
{
	int n = rpcrdma_engine_poll(s->client);

	rr_cm_process(s->cm);
	return n + poll_cq(s);
}

void raw_server_until(struct raw_server *s, const unsigned *count, unsigned want)
{
	uint64_t end = clock_now_ns() + 20 * NS_PER_S;

	while (*count < want) {
		raw_server_poll(s);
		if (clock_now_ns() > end)
			fail_msg("no progress: %u of %u", *count, want);
	}
}

void raw_server_settle(struct raw_server *s)
{
	for (struct idle i = { .patience_ns = SETTLE_NS }; goes_on(s, &i, raw_server_poll(s));)
		;
}

const uint8_t *raw_server_recv(struct raw_server *s, uint32_t *ret_len)
{
	for (struct idle i = { .patience_ns = PATIENCE_NS };
	     s->taken == s->ngot && goes_on(s, &i, raw_server_poll(s));)
		;
	if (s->taken == s->ngot)
		return NULL;
	*ret_len = s->got[s->taken].len;
	return s->got[s->taken++].bytes;
}

static enum rr_wc_status run(struct raw_server *s, struct rr_wr *wr, bool pump)
{
	assert_non_null(s->qp);
	s->op_ended = false;
	wr->done = &s->op_done;
	wr->flags = RR_WR_SIGNALED;
	if (rr_post_send(s->qp, wr))
		return RR_WC_FLUSHED;
	for (struct idle i = { .patience_ns = PATIENCE_NS };
	     !s->op_ended && goes_on(s, &i, pump ? raw_server_poll(s) : poll_cq(s));)
		;
	return s->op_ended ? s->op_status : RR_WC_LOST;
}

enum rr_wc_status raw_server_send(struct raw_server *s, const void *msg, size_t len)
{
	struct rr_sge sge = { .addr = s->mem + SEND_AT, .len = (uint32_t)len, .mr = s->mr };
	struct rr_wr wr = { .op = RR_WR_SEND, .sge = sge };

	assert_in_range(len, 0, RAW_SERVER_BYTES);
	memcpy(sge.addr, msg, len);
	return run(s, &wr, false);
}

enum rr_wc_status raw_server_send_inv(struct raw_server *s, const void *msg, size_t len,
				      uint32_t rkey)
{
	struct rr_sge sge = { .addr = s->mem + SEND_AT, .len = (uint32_t)len, .mr = s->mr };
	struct rr_wr wr = { .op = RR_WR_SEND_INV, .sge = sge, .rkey = rkey };

	assert_in_range(len, 0, RAW_SERVER_BYTES);
	memcpy(sge.addr, msg, len);
	return run(s, &wr, false);
}

static enum rr_wc_status move(struct raw_server *s, enum rr_wr_op op, const struct rr_segment *seg,
			      uint64_t off, size_t len)
{
	struct rr_wr wr = { .op = op, .sge = { s->mem + DATA_AT, (uint32_t)len, s->mr }, .raddr = seg->offset + off,
			    .rkey = seg->handle };

	return run(s, &wr, true);
}

enum rr_wc_status raw_server_write(struct raw_server *s, const struct rr_segment *seg, uint64_t off,
				   const void *data, size_t len)
{
	assert_in_range(len, 0, DATA_BYTES);
	memcpy(s->mem + DATA_AT, data, len);
	return move(s, RR_WR_WRITE, seg, off, len);
}

enum rr_wc_status raw_server_read(struct raw_server *s, const struct rr_segment *seg, uint64_t off,
				  void *data, size_t len)
{
	enum rr_wc_status status;

	assert_in_range(len, 0, DATA_BYTES);
	status = move(s, RR_WR_READ, seg, off, len);
	memcpy(data, s->mem + DATA_AT, len);
	return status;
}

void raw_server_hang_up(struct raw_server *s)
{
	rr_qp_disconnect(s->qp);
}

bool raw_server_alive(struct raw_server *s)
{
	raw_server_settle(s);
	return s->up;
}
