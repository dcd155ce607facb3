/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * capture_ops.c - records what passes through a fabric, with capture.c
 *
 * Operation:  Sends and RDMA Writes are recorded when they are posted, since their bytes do not change any more; RDMA
 *             Reads and messages of the peer when they complete. A request that fails or is flushed later is in the
 *             file although it may not have left. What the peer does to our memory cannot be seen here. If both ends
 *             of a connection are queue pairs of this fabric, the initiator of an operation records it.
 *             Data that the kernel places directly would be missing, so qp_direct is switched off.
 *             To find the memory of a completion, its request is posted with a struct record in place of the
 *             user's rr_done. Reads are posted signalled for that; completions that the user did not ask for are
 *             dropped.
 * Memory:     One allocation per connection, receive and Read; one per chain with a Read, for the duration of the post.
 *             The end of a queue pair or shared queue frees the records of its requests that did not complete.
 * Threads:    Any; the lock is held while a post is forwarded and recorded, so that a reply is not recorded before
 *             its call.
 * Errors:     Opening the file returns an errno. Without memory an operation is not recorded, but executed.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/list.h"
#include "capture.h"
#include "filter.h"

struct recorder {
	struct rr_filter base;
	struct rr_capture *file;
	pthread_mutex_t lock;
	struct list records; /* posted */
};

struct recorder_cm {
	struct recorder *r;
	rr_cm_fn fn;
	void *ctx;
};

/* A connection. */
struct recorder_qp {
	struct rr_filter_state state;
	struct rr_capture_conn conn;
};

/* A receive or a Read that is posted. */
struct record {
	struct rr_done done;
	struct rr_done *user;
	struct list node;
	const void *owner; /* the queue pair or shared queue that it is posted to */
	bool read;
	bool wanted;       /* the user wants the completion, even without an error */
	struct rr_sge sge;
	uint64_t raddr;
	uint32_t rkey;
};

static const char recorder_name[] = "capture";

static struct recorder *recorder_of(const struct rr_fabric *fabric)
{
	return container_of(rr_filter_find(fabric, recorder_name), struct recorder, base);
}

/* ---- connections ---- */

static struct rr_capture_conn *conn_of(const struct recorder *r, const struct rr_qp *qp)
{
	struct rr_filter_state *state = rr_filter_state(qp->states, &r->base);

	return state ? &container_of(state, struct recorder_qp, state)->conn : NULL;
}

static struct rr_capture_conn *conn_begin(struct recorder *r, struct rr_qp *qp, bool active)
{
	struct recorder_qp *rq = calloc(1, sizeof(*rq));

	if (!rq)
		return NULL;
	rq->conn = (struct rr_capture_conn){ .active = active, .qpn = qp->qpn, .peer_qpn = qp->peer_qpn,
					     .psn = qp->qpn * 16 & 0xffffff, .peer_psn = qp->peer_qpn * 16 & 0xffffff };
	rr_filter_keep(&qp->states, &r->base, &rq->state);
	return &rq->conn;
}

static void cm_event(void *ctx, const struct rr_cm_event *ev)
{
	const struct recorder_cm *rc = ctx;
	struct recorder *r = rc->r;
	const struct rr_capture_conn *conn = NULL;

	if (ev->type == RR_CM_REQUEST) {
		conn = conn_begin(r, ev->qp, false);
		if (conn && !ev->qp->loopback)
			rr_capture_cm(r->file, conn, RR_CAPTURE_REQ, ev->priv, ev->priv_len);
	} else if (ev->type == RR_CM_ESTABLISHED) {
		conn = conn_of(r, ev->qp);
		if (conn && !ev->qp->loopback)
			rr_capture_cm(r->file, conn, RR_CAPTURE_REP, ev->priv, ev->priv_len);
		if (conn)
			rr_capture_cm(r->file, conn, RR_CAPTURE_RTU, NULL, 0);
	}
	rc->fn(rc->ctx, ev);
}

static int recorder_cm_create(struct rr_fabric *fabric, rr_cm_fn fn, void *ctx, struct rr_cm **ret)
{
	struct recorder *r = recorder_of(fabric);
	struct recorder_cm *rc = calloc(1, sizeof(*rc));
	int err;

	if (!rc)
		return -ENOMEM;
	*rc = (struct recorder_cm){ .r = r, .fn = fn, .ctx = ctx };
	err = r->base.next->cm_create(fabric, cm_event, rc, ret);
	if (err)
		free(rc);
	return err;
}

static void recorder_cm_destroy(struct rr_cm *cm)
{
	struct recorder_cm *rc = cm->ctx;

	rc->r->base.next->cm_destroy(cm);
	free(rc);
}

static int recorder_connect(struct rr_qp *qp, const struct rr_conn_param *param)
{
	struct recorder *r = recorder_of(qp->fabric);
	const struct rr_capture_conn *conn = conn_begin(r, qp, true);

	if (conn)
		rr_capture_cm(r->file, conn, RR_CAPTURE_REQ, param->priv, param->priv_len);
	return r->base.next->qp_connect(qp, param);
}

static int recorder_accept(struct rr_qp *qp, const struct rr_conn_param *param)
{
	struct recorder *r = recorder_of(qp->fabric);
	const struct rr_capture_conn *conn = conn_of(r, qp);

	if (conn)
		rr_capture_cm(r->file, conn, RR_CAPTURE_REP, param->priv, param->priv_len);
	if (conn && !qp->loopback)
		rr_capture_cm(r->file, conn, RR_CAPTURE_RTU, NULL, 0);
	return r->base.next->qp_accept(qp, param);
}

/* Frees the records of requests that do not complete any more. */
static void drop_records(struct recorder *r, const void *owner)
{
	pthread_mutex_lock(&r->lock);
	list_for_each_safe(node, &r->records) {
		struct record *rec = list_entry(node, struct record, node);

		if (rec->owner == owner) {
			list_del(&rec->node);
			free(rec);
		}
	}
	pthread_mutex_unlock(&r->lock);
}

static void recorder_destroy(struct rr_qp *qp)
{
	struct recorder *r = recorder_of(qp->fabric);
	struct rr_filter_state *state = rr_filter_forget(&qp->states, &r->base);

	if (state)
		free(container_of(state, struct recorder_qp, state));
	drop_records(r, qp);
	r->base.next->qp_destroy(qp);
}

static void recorder_srq_destroy(struct rr_srq *srq)
{
	struct recorder *r = recorder_of(srq->fabric);

	drop_records(r, srq);
	r->base.next->srq_destroy(srq);
}

/* ---- posting ---- */

/* Only its address matters: it marks a struct record. recorder_poll() removes them from completions. */
static void on_record(struct rr_done *done, const struct rr_wc *wc)
{
	(void)done;
	(void)wc;
}

static struct record *record_new(struct recorder *r, const void *owner, struct rr_done *user, struct rr_sge sge)
{
	struct record *rec = calloc(1, sizeof(*rec));

	if (!rec)
		return NULL;
	rec->done.fn = on_record;
	rec->owner = owner;
	rec->user = user;
	rec->wanted = true;
	rec->sge = sge;
	pthread_mutex_lock(&r->lock);
	list_add_tail(&r->records, &rec->node);
	pthread_mutex_unlock(&r->lock);
	return rec;
}

static void record_free(struct recorder *r, struct record *rec)
{
	pthread_mutex_lock(&r->lock);
	list_del(&rec->node);
	pthread_mutex_unlock(&r->lock);
	free(rec);
}

/* Posts a receive with its record: to @qp, or to @srq if that is not NULL. */
static int post_recv(struct recorder *r, struct rr_qp *qp, struct rr_srq *srq, const struct rr_recv *recv)
{
	struct record *rec = record_new(r, srq ? (void *)srq : qp, recv->done, recv->sge);
	struct rr_recv copy = { .done = rec ? &rec->done : recv->done, .sge = recv->sge };
	int rc = srq ? r->base.next->srq_post(srq, &copy) : r->base.next->post_recv(qp, &copy);

	if (rc && rec)
		record_free(r, rec);
	return rc;
}

static int recorder_recv(struct rr_qp *qp, const struct rr_recv *recv)
{
	return post_recv(recorder_of(qp->fabric), qp, NULL, recv);
}

static int recorder_srq_post(struct rr_srq *srq, const struct rr_recv *recv)
{
	return post_recv(recorder_of(srq->fabric), NULL, srq, recv);
}

/* Copies a chain, with records in place of its Reads. Return: NULL without memory. */
static struct rr_wr *copy_chain(struct recorder *r, struct rr_qp *qp, const struct rr_wr *wr, size_t n)
{
	struct rr_wr *copy = calloc(n, sizeof(*copy));

	for (size_t i = 0; copy && i < n; i++, wr = wr->next) {
		struct record *rec = wr->op == RR_WR_READ ? record_new(r, qp, wr->done, wr->sge) : NULL;

		copy[i] = *wr;
		copy[i].next = wr->next ? &copy[i + 1] : NULL;
		if (!rec)
			continue;
		rec->read = true;
		rec->wanted = wr->flags & RR_WR_SIGNALED;
		rec->raddr = wr->raddr;
		rec->rkey = wr->rkey;
		copy[i].done = &rec->done;
		copy[i].flags |= RR_WR_SIGNALED;
	}
	return copy;
}

static void record_post(struct recorder *r, struct rr_capture_conn *conn, const struct rr_wr *wr)
{
	const struct rr_sge *s = &wr->sge;

	if (wr->op == RR_WR_SEND || wr->op == RR_WR_SEND_INV)
		rr_capture_send(r->file, conn, true, s->addr, s->len, wr->op == RR_WR_SEND_INV, wr->rkey);
	else if (wr->op == RR_WR_WRITE || wr->op == RR_WR_WRITE_IMM)
		rr_capture_write(r->file, conn, s->addr, s->len, wr->raddr, wr->rkey,
				 wr->op == RR_WR_WRITE_IMM ? &wr->imm : NULL);
}

static int recorder_send(struct rr_qp *qp, const struct rr_wr *wr)
{
	struct recorder *r = recorder_of(qp->fabric);
	struct rr_capture_conn *conn = conn_of(r, qp);
	struct rr_wr *copy = NULL;
	bool reads = false;
	size_t n = 0;
	int rc;

	for (const struct rr_wr *w = wr; w; w = w->next, n++)
		reads |= w->op == RR_WR_READ;
	if (reads)
		copy = copy_chain(r, qp, wr, n);
	pthread_mutex_lock(&r->lock);
	rc = r->base.next->post_send(qp, copy ? copy : wr);
	for (const struct rr_wr *w = rc || !conn ? NULL : wr; w; w = w->next)
		record_post(r, conn, w);
	pthread_mutex_unlock(&r->lock);
	for (size_t i = 0; rc && copy && i < n; i++)
		if (copy[i].done->fn == on_record)
			record_free(r, container_of(copy[i].done, struct record, done));
	free(copy);
	return rc;
}

/* ---- completions ---- */

static void record_end(struct recorder *r, struct record *rec, const struct rr_wc *wc)
{
	const struct rr_qp *qp = rec->read ? rec->owner : wc->qp;
	struct rr_capture_conn *conn = wc->status == RR_WC_OK && qp ? conn_of(r, qp) : NULL;

	if (conn && rec->read) {
		rr_capture_read(r->file, conn, rec->sge.addr, rec->sge.len, rec->raddr, rec->rkey);
	} else if (conn && !qp->loopback && !wc->with_imm) { /* the initiator records a Write */
		rr_capture_send(r->file, conn, false, rec->sge.addr, wc->byte_len, wc->with_inv, wc->inv_rkey);
	}
	record_free(r, rec);
}

static int recorder_poll(struct rr_cq *cq, struct rr_wc *wc, int max)
{
	struct recorder *r = recorder_of(cq->fabric);
	int n = r->base.next->cq_poll(cq, wc, max), kept = 0;

	for (int i = 0; i < n; i++) {
		bool wanted = true;

		if (wc[i].done->fn == on_record) {
			struct record *rec = container_of(wc[i].done, struct record, done);

			wc[i].done = rec->user;
			wanted = rec->wanted || wc[i].status != RR_WC_OK;
			record_end(r, rec, &wc[i]);
		}
		if (wanted)
			wc[kept++] = wc[i];
	}
	return kept;
}

static void recorder_free(struct rr_filter *filter)
{
	struct recorder *r = container_of(filter, struct recorder, base);

	rr_capture_close(r->file);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

int rr_capture_push(struct rr_fabric *fabric, const char *path)
{
	struct recorder *r = calloc(1, sizeof(*r));
	int rc;

	if (!r)
		return -ENOMEM;
	rc = rr_capture_open(path, &r->file);
	if (!rc)
		rc = -pthread_mutex_init(&r->lock, NULL);
	if (rc) {
		rr_capture_close(r->file);
		free(r);
		return rc;
	}
	list_init(&r->records);
	r->base.name = recorder_name;
	r->base.free = recorder_free;
	rr_filter_push(fabric, &r->base);
	r->base.ops.cm_create = recorder_cm_create;
	r->base.ops.cm_destroy = recorder_cm_destroy;
	r->base.ops.qp_connect = recorder_connect;
	r->base.ops.qp_accept = recorder_accept;
	r->base.ops.qp_destroy = recorder_destroy;
	r->base.ops.post_recv = recorder_recv;
	r->base.ops.srq_post = recorder_srq_post;
	r->base.ops.srq_destroy = recorder_srq_destroy;
	r->base.ops.post_send = recorder_send;
	r->base.ops.cq_poll = recorder_poll;
	fabric->attr.client_direct = false;
	return 0;
}
