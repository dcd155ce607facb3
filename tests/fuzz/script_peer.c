/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * script_peer.c - a peer of a leatd in this process, over the local fabric or TCP, that sends any bytes
 *
 * Operation:  Each local connection offers two regions, one to be read and one to be written.
 * Memory:     That of a connection goes with it.
 * Threads:    One. Waiting is polling until an answer or the end of the connection.
 * Errors:     abort() if this side fails; what the server does to the connection is in the peer.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/util.h"
#include "base/wire.h"
#include "rpcrdma/wire/hdr.h"
#include "script_peer.h"

struct script_net script_net;

void script_must(bool promise)
{
	if (!promise)
		abort();
}

static void on_recv(struct rr_done *done, const struct rr_wc *wc)
{
	(void)done;
	(void)wc;
}

static void post_recv(struct script_peer *p, unsigned i)
{
	struct rr_recv r = { .done = &p->recv_done[i],
			     .sge = { p->mem + i * SCRIPT_MSG_BYTES, SCRIPT_MSG_BYTES, p->mr } };

	p->recv_done[i].fn = on_recv;
	if (!rr_post_recv(p->qp, &r))
		p->posted++;
}

void script_poll(struct script_peer *p)
{
	struct rr_wc wc[8];
	int n;

	rr_cm_process(p->cm);
	n = rr_cq_poll(p->cq, wc, 8);
	for (int i = 0; i < n; i++) {
		if (wc[i].done == &p->send_done) {
			p->sent = true;
			p->over |= wc[i].status != RR_WC_OK;
			continue;
		}
		p->posted--;
		if (wc[i].status != RR_WC_OK) {
			p->over = true;
			continue;
		}
		p->answers++;
		p->answer = p->mem + (size_t)(wc[i].done - p->recv_done) * SCRIPT_MSG_BYTES;
		p->answer_bytes = wc[i].byte_len;
		post_recv(p, (unsigned)(wc[i].done - p->recv_done));
	}
	if (!n)
		sched_yield();
}

static void on_cm(void *ctx, const struct rr_cm_event *ev)
{
	struct script_peer *p = ctx;

	p->routed |= ev->type == RR_CM_ROUTED;
	p->up |= ev->type == RR_CM_ESTABLISHED;
	p->over |= ev->type == RR_CM_FAILED;
	if (ev->type == RR_CM_FAILED)
		p->status = ev->status;
}

void script_hang_up(struct script_peer *p)
{
	if (p->tcp) {
		close(p->fd);
		memset(p, 0, sizeof(*p));
	}
	if (!p->cm)
		return;
	if (p->qp) {
		rr_qp_disconnect(p->qp);
		if (p->up)
			script_wait_for(p, !p->posted);
		rr_qp_destroy(p->qp);
	}
	for (int i = 0; i < 2; i++)
		rr_mr_dereg(p->region[i]);
	rr_mr_dereg(p->mr);
	rr_cm_destroy(p->cm);
	rr_cq_destroy(p->cq);
	rr_pd_destroy(p->pd);
	free(p->mem);
	memset(p, 0, sizeof(*p));
}

static void reg(struct script_peer *p, size_t off, size_t len, unsigned access, struct rr_mr **ret)
{
	struct rr_mr_attr a = { .addr = p->mem + off, .len = len, .access = access, .fd = -1 };

	script_must(!rr_mr_reg(p->pd, &a, ret));
}

void script_dial(struct script_peer *p)
{
	static const struct rr_priv mine = { true, true, SCRIPT_MSG_BYTES, SCRIPT_MSG_BYTES };
	struct rr_qp_attr qa = { .sq_depth = 16, .rq_depth = SCRIPT_RECVS, .recv_bytes = SCRIPT_MSG_BYTES };
	struct rr_conn_param cp = { .responder_resources = 4 };
	size_t msgs = (SCRIPT_RECVS + 1) * (size_t)SCRIPT_MSG_BYTES;
	uint8_t priv[RR_PRIV_BYTES];

	script_hang_up(p);
	p->mem = calloc(1, msgs + 2 * SCRIPT_REGION_BYTES);
	script_must(p->mem && !rr_pd_create(script_net.fabric, &p->pd) && !rr_cq_create(script_net.fabric, &p->cq) &&
		    !rr_cm_create(script_net.fabric, on_cm, p, &p->cm));
	reg(p, 0, msgs, RR_ACCESS_LOCAL_WRITE, &p->mr);
	reg(p, msgs, SCRIPT_REGION_BYTES, RR_ACCESS_REMOTE_READ, &p->region[0]);
	reg(p, msgs + SCRIPT_REGION_BYTES, SCRIPT_REGION_BYTES, RR_ACCESS_LOCAL_WRITE | RR_ACCESS_REMOTE_WRITE,
	    &p->region[1]);
	p->status = rr_qp_dial(p->cm, script_net.sock, NULL, &p->qp);
	if (p->status) {
		p->over = true;
		return;
	}
	script_wait_for(p, p->routed || p->over);
	qa.pd = p->pd;
	qa.cq = p->cq;
	if (p->over || rr_qp_setup(p->qp, &qa)) {
		p->over = true;
		return;
	}
	for (unsigned i = 0; i < SCRIPT_RECVS; i++)
		post_recv(p, i);
	rr_priv_encode(&mine, priv);
	cp.priv = priv;
	cp.priv_len = sizeof(priv);
	p->status = rr_qp_connect(p->qp, &cp);
	p->over |= p->status != 0;
	script_wait_for(p, p->up || p->over);
}

/* ---- TCP ---- */

void script_dial_tcp(struct script_peer *p)
{
	script_hang_up(p);
	p->tcp = true;
	p->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	script_must(p->fd >= 0);
	p->up = !connect(p->fd, (struct sockaddr *)&script_net.tcp, sizeof(script_net.tcp));
	p->over = !p->up;
}

/* Counts the records that came; what is in them is the server's business. */
static void count_answers(struct script_peer *p, const uint8_t *at, size_t n)
{
	while (n) {
		size_t step;

		if (!p->record_left) {
			p->mark[p->mark_len++] = *at++;
			n--;
			if (p->mark_len == sizeof(p->mark)) {
				p->record_left = get_be32(p->mark) & ~SCRIPT_MARK_LAST;
				p->mark_len = 0;
			}
			continue;
		}
		step = MIN(n, p->record_left);
		p->record_left -= (uint32_t)step;
		p->answers += !p->record_left;
		at += step;
		n -= step;
	}
}

static void poll_tcp(struct script_peer *p, int timeout_ms)
{
	struct pollfd fd = { .fd = p->fd, .events = POLLIN };
	uint8_t buf[16384];
	ssize_t n;

	if (poll(&fd, 1, timeout_ms) <= 0)
		return;
	n = recv(p->fd, buf, sizeof(buf), MSG_DONTWAIT);
	if (n > 0)
		count_answers(p, buf, (size_t)n);
	else if (!n || errno != EAGAIN)
		p->over = true;
}

/* What cannot be sent for want of a reader is not sent: a server that is not read may wait. */
void script_say_tcp(struct script_peer *p, const uint8_t *msg, size_t len, bool record)
{
	uint8_t out[4 + SCRIPT_MSG_BYTES];
	size_t n = record ? 4 : 0;

	if (!p->up || p->over)
		return;
	put_be32(out, SCRIPT_MARK_LAST | (uint32_t)len);
	memcpy(out + n, msg, len);
	n += len; /* in one piece: two would wait for each other's ACK */
	if (send(p->fd, out, n, MSG_NOSIGNAL | MSG_DONTWAIT) < (ssize_t)n)
		p->over = true;
	p->raw |= !record;
}

/* ---- messages ---- */

void script_say(struct script_peer *p, const uint8_t *msg, size_t len)
{
	struct rr_wr wr = { .done = &p->send_done, .op = RR_WR_SEND, .flags = RR_WR_SIGNALED,
			    .sge = { .len = (uint32_t)len, .mr = p->mr } };

	if (p->tcp) {
		script_say_tcp(p, msg, len, true);
		return;
	}
	if (!p->up || p->over || len > SCRIPT_MSG_BYTES)
		return;
	wr.sge.addr = p->mem + SCRIPT_RECVS * (size_t)SCRIPT_MSG_BYTES;
	memcpy(wr.sge.addr, msg, len);
	p->sent = false;
	if (rr_post_send(p->qp, &wr))
		return;
	script_wait_for(p, p->sent || p->over);
}

bool script_wait_for_answer(struct script_peer *p, unsigned before)
{
	uint64_t until = clock_now_ns() + SCRIPT_PATIENCE_NS;

	if (!p->up || p->over)
		return false;
	if (!p->tcp) {
		script_wait_for(p, p->answers > before || p->over);
		return p->answers > before;
	}
	if (p->raw)
		(void)shutdown(p->fd, SHUT_WR);
	while (!p->over && (p->raw || p->answers == before) && clock_now_ns() < until)
		poll_tcp(p, 100);
	return p->answers > before;
}
