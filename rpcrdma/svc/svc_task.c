/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * svc_task.c - a call of a service with tables of procedures, from its delivery to the end of its reply
 *
 * Operation:  decode -> one buffer for both payloads -> pull -> handler -> place -> reply -> free.
 *             One buffer, since a task that holds one and waits for another could wait for a task that does the
 *             same. A payload that came with the message is not copied, and needs no buffer.
 *             If the connection is lost, a task continues to its next step, which ends it: a wait for a buffer, a
 *             pull, or the handler. A pending task ends by rpcrdma_task_finish().
 * Memory:     A task is one allocation, with the structures of arguments and results. svc_attr.req_bytes counts it.
 * Threads:    The engine of the connection; rpcrdma_task_finish() posts a message to it.
 * Errors:     What cannot be served because of memory gets SYSTEM_ERR.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "service.h"

#define ALIGN 16u /* of both structures */

/* enum auth_stat of RFC 5531 */
#define AUTH_TOOWEAK_ 5u

static bool_t xdr_nothing(XDR *xdrs, void *none)
{
	(void)xdrs;
	(void)none;
	return TRUE;
}

static struct service_task *task_of(const struct rpcrdma_task *t)
{
	return container_of((struct rpcrdma_task *)(uintptr_t)t, struct service_task, pub);
}

static xdrproc_t filter(xdrproc_t f)
{
	return f ? f : (xdrproc_t)xdr_nothing;
}

/* ---- life ---- */

static size_t args_at(void)
{
	return round_up_pow2(sizeof(struct service_task), ALIGN);
}

static size_t res_at(const struct rpcrdma_proc *p)
{
	return args_at() + round_up_pow2(p->args_bytes, ALIGN);
}

size_t service_task_bytes(const struct rpcrdma_proc *p)
{
	return res_at(p) + round_up_pow2(p->res_bytes, ALIGN);
}

static struct service_task *task_create(struct service_conn *c, struct rpcrdma_req *req,
					const struct rpcrdma_proc *p)
{
	struct service_task *t = calloc(1, service_task_bytes(p));

	if (!t)
		return NULL;
	t->pub.req = req;
	t->pub.ctx = c->service->attr.ctx;
	t->pub.args = (uint8_t *)t + args_at();
	t->pub.res = (uint8_t *)t + res_at(p);
	t->proc = p;
	t->service = c->service;
	t->engine = req->engine;
	atomic_init(&t->lost, false);
	atomic_init(&t->finished, false);
	list_add_tail(&c->tasks, &t->link);
	req->user = t;
	return t;
}

static void free_args(struct service_task *t)
{
	xdr_free(filter(t->proc->decode), t->pub.args);
	memset(t->pub.args, 0, t->proc->args_bytes);
}

static void on_done(void *arg)
{
	struct service_task *t = arg;

	if (t->handled && t->proc->release)
		t->proc->release(&t->pub);
	if (t->handled && t->proc->free_res)
		xdr_free(filter(t->proc->encode), t->pub.res);
	free_args(t);
	if (t->buf)
		rpcrdma_buf_put(t->engine, t->buf);
	list_del(&t->link);
	free(t);
}

/* ---- results ---- */

static void reply_error(struct service_task *t, enum rpcrdma_accept_stat stat)
{
	rpcrdma_req_reply_error(t->pub.req, stat, 0, 0, on_done, t);
}

static void fail(struct service_task *t, int err)
{
	if (!t->handled)
		free_args(t); /* a peer that does not take the reply must not make the server keep them */
	switch (err) {
	case -EBADMSG:
		reply_error(t, RPCRDMA_GARBAGE_ARGS);
		break;
	case -EOPNOTSUPP:
		reply_error(t, RPCRDMA_PROC_UNAVAIL);
		break;
	case -EACCES:
		rpcrdma_req_reply_auth(t->pub.req, AUTH_TOOWEAK_, on_done, t);
		break;
	case -EMSGSIZE:
		rpcrdma_req_reject(t->pub.req, on_done, t);
		break;
	case -ECANCELED:
	case -ENOTCONN:
		rpcrdma_req_drop(t->pub.req, on_done, t);
		break;
	default:
		reply_error(t, RPCRDMA_SYSTEM_ERR);
	}
}

static struct rpcrdma_payload *payload_at(void *structure, size_t at)
{
	return (struct rpcrdma_payload *)(void *)((uint8_t *)structure + at);
}

/* Passes the results' payload to the transport, if the handler has written one to task->data. */
static int place(struct service_task *t)
{
	const struct rpcrdma_payload *p = payload_at(t->pub.res, t->proc->res_data_at);

	if (!t->proc->res_data_max || !p->length || p->iovcnt)
		return 0;
	if (p->length > t->pub.data_bytes)
		return -EMSGSIZE;
	t->xfer = (struct rpcrdma_xfer){ .buf = t->buf, .buf_off = t->res_at, .len = p->length };
	return rpcrdma_req_place(t->pub.req, &t->xfer);
}

static void finish(struct service_task *t, int result)
{
	int rc = result > 0 ? -EIO : result < 0 ? result : place(t); /* positive: an errno without its sign */

	if (rc)
		fail(t, rc);
	else
		rpcrdma_req_reply(t->pub.req, filter(t->proc->encode), t->pub.res, on_done, t);
}

static void on_finish(struct rpcrdma_msg *msg)
{
	struct service_task *t = container_of(msg, struct service_task, msg);

	finish(t, t->result);
}

int rpcrdma_task_finish(struct rpcrdma_task *task, int result)
{
	struct service_task *t = task_of(task);
	struct rpcrdma_service *s = t->service; /* the post may free the task */

	if (atomic_exchange(&t->finished, true))
		return -EALREADY;
	t->result = result;
	t->msg.fn = on_finish;
	atomic_fetch_add(&s->finishing, 1);
	rpcrdma_engine_post(t->engine, &t->msg);
	atomic_fetch_sub(&s->finishing, 1);
	return 0;
}

bool rpcrdma_task_is_lost(const struct rpcrdma_task *task)
{
	return atomic_load(&task_of(task)->lost);
}

/* ---- arguments ---- */

/* Lets the arguments' payload refer to the buffer, unless it came with the message. */
static void describe(struct service_task *t)
{
	struct rpcrdma_payload *p = payload_at(t->pub.args, t->proc->args_data_at);

	if (!t->proc->args_data_max || p->iovcnt)
		return;
	t->iov = (struct iovec){ .iov_base = t->buf ? t->buf->addr : t->pub.args, .iov_len = p->length };
	p->iov = &t->iov;
	p->iovcnt = 1;
}

static void run(struct service_task *t)
{
	int rc;

	describe(t);
	t->handled = true;
	rc = t->proc->handler(&t->pub);
	if (rc != RPCRDMA_PENDING && !atomic_exchange(&t->finished, true))
		finish(t, rc);
}

static void on_pulled(struct rpcrdma_xfer *x, int err)
{
	struct service_task *t = container_of(x, struct service_task, xfer);

	if (err)
		fail(t, -ENOTCONN);
	else
		run(t);
}

static void pull(struct service_task *t, uint32_t len)
{
	int rc;

	t->xfer = (struct rpcrdma_xfer){ .buf = t->buf, .len = len, .done = on_pulled };
	rc = rpcrdma_req_pull(t->pub.req, &t->xfer);
	if (rc)
		fail(t, rc);
}

/* bytes of the arguments' payload that are to be pulled */
static uint32_t to_pull(const struct service_task *t)
{
	const struct rpcrdma_payload *p = payload_at(t->pub.args, t->proc->args_data_at);

	return t->proc->args_data_max && !p->iovcnt ? p->length : 0;
}

static void on_buf(struct rpcrdma_buf_waiter *w);

/* Gets the buffer for both payloads. Return: 0; -ENOBUFS: on_buf() follows; -errno. */
static int get_buf(struct service_task *t, size_t bytes)
{
	int rc;

	if (!bytes || t->buf)
		return 0;
	rc = rpcrdma_req_buf_get(t->pub.req, bytes, &t->buf);
	if (rc == -ENOBUFS) {
		t->waiter = (struct rpcrdma_buf_waiter){ .fn = on_buf };
		rpcrdma_req_buf_wait(t->pub.req, &t->waiter);
	}
	return rc == -EMSGSIZE ? -ENOMEM : rc; /* the pool has no such buffer: not the caller's fault */
}

/* Bytes of the largest buffer behind the arguments: a handler whose results do not fit learns it from data_bytes. */
static size_t room_behind(const struct service_task *t)
{
	size_t max = t->pub.req->buf_max;

	return max > t->res_at ? max - t->res_at : 0;
}

static void prepare(struct service_task *t)
{
	uint32_t len = to_pull(t);
	int rc;

	t->res_at = service_res_at(len);
	t->pub.data_bytes = (uint32_t)MIN(t->pub.data_bytes, room_behind(t));
	rc = get_buf(t, t->res_at + t->pub.data_bytes);
	if (rc == -ENOBUFS)
		return;
	if (rc) {
		fail(t, rc);
		return;
	}
	if (t->pub.data_bytes)
		t->pub.data = (uint8_t *)t->buf->addr + t->res_at;
	if (len)
		pull(t, len);
	else
		run(t);
}

static void on_buf(struct rpcrdma_buf_waiter *w)
{
	prepare(container_of(w, struct service_task, waiter));
}

static uint32_t results_bytes(struct service_task *t)
{
	const struct rpcrdma_proc *p = t->proc;
	uint32_t bytes = p->res_data_max;

	if (bytes && p->res_data_bytes)
		bytes = MIN(bytes, p->res_data_bytes(&t->pub));
	return MIN(bytes, t->pub.req->room);
}

static bool args_fit(const struct service_task *t)
{
	return !t->proc->args_data_max ||
	       payload_at(t->pub.args, t->proc->args_data_at)->length <= t->proc->args_data_max;
}

static void serve(struct service_task *t)
{
	int rc = rpcrdma_req_decode(t->pub.req, filter(t->proc->decode), t->pub.args);

	if (rc == -EAGAIN) {
		free_args(t); /* the next pass decodes them all again */
	} else if (rc || !args_fit(t)) {
		fail(t, -EBADMSG);
	} else {
		t->pub.data_bytes = results_bytes(t);
		prepare(t);
	}
}

void service_call(void *conn_ctx, struct rpcrdma_req *req)
{
	struct service_conn *c = conn_ctx;
	struct service_task *t = req->user;
	const struct rpcrdma_proc *p;
	enum rpcrdma_accept_stat stat;
	uint32_t low, high;

	if (!t) {
		p = service_find(c->service, req, &stat, &low, &high);
		t = p ? task_create(c, req, p) : NULL;
		if (!t) {
			rpcrdma_req_reply_error(req, p ? RPCRDMA_SYSTEM_ERR : stat, low, high, NULL, NULL);
			return;
		}
	}
	serve(t);
}
