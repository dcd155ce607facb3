/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * service.c - a service with tables of procedures: its listeners and connections
 *
 * Operation:  It uses librpcrdma as any other program does. All listeners share the tables.
 * Memory:     The tables are the program's. A connection has one allocation until closed().
 * Threads:    The engine of the service.
 * Errors:     A peer for which there is no memory is refused.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include "service.h"
#include "sized.h"

static bool payload_is_inside(uint32_t max, size_t at, size_t bytes)
{
	return !max || (bytes >= sizeof(struct rpcrdma_payload) && at <= bytes - sizeof(struct rpcrdma_payload));
}

static bool proc_fits(const struct rpcrdma_proc *p)
{
	return p->args_bytes <= RPCRDMA_BUF_MAX && p->res_bytes <= RPCRDMA_BUF_MAX &&
	       p->args_data_max <= RPCRDMA_BUF_MAX && p->res_data_max <= RPCRDMA_BUF_MAX &&
	       service_res_at(p->args_data_max) + p->res_data_max <= RPCRDMA_BUF_MAX;
}

static bool proc_is_sound(const struct rpcrdma_prog *prog, const struct rpcrdma_proc *p)
{
	for (const struct rpcrdma_proc *o = prog->procs; o < p; o++)
		if (o->proc == p->proc)
			return false;
	return p->handler && (p->decode || !p->args_data_max) && (p->encode || !p->res_data_max) &&
	       payload_is_inside(p->args_data_max, p->args_data_at, p->args_bytes) &&
	       payload_is_inside(p->res_data_max, p->res_data_at, p->res_bytes) && proc_fits(p);
}

static bool prog_is_sound(const struct rpcrdma_service *s, const struct rpcrdma_prog *prog)
{
	for (const struct rpcrdma_prog *o = s->attr.progs; o < prog; o++)
		if (o->prog == prog->prog && o->vers == prog->vers)
			return false;
	for (size_t i = 0; i < prog->nprocs; i++)
		if (!proc_is_sound(prog, &prog->procs[i]))
			return false;
	return true;
}

static bool is_sound(const struct rpcrdma_service *s)
{
	for (size_t i = 0; i < s->attr.nprogs; i++)
		if (!prog_is_sound(s, &s->attr.progs[i]))
			return false;
	return true;
}

static size_t task_bytes_max(const struct rpcrdma_service *s)
{
	size_t most = sizeof(struct service_task);

	for (size_t i = 0; i < s->attr.nprogs; i++)
		for (size_t k = 0; k < s->attr.progs[i].nprocs; k++)
			most = MAX(most, service_task_bytes(&s->attr.progs[i].procs[k]));
	return most;
}

static const struct rpcrdma_proc *find_proc(const struct rpcrdma_prog *p, uint32_t proc)
{
	for (size_t i = 0; i < p->nprocs; i++)
		if (p->procs[i].proc == proc)
			return &p->procs[i];
	return NULL;
}

/* Every program has a procedure 0 without arguments and results (RFC 5531 section 12). */
static int serve_nothing(struct rpcrdma_task *t)
{
	(void)t;
	return 0;
}

static const struct rpcrdma_proc proc_null = { .name = "NULL", .handler = serve_nothing };

const struct rpcrdma_proc *service_find(const struct rpcrdma_service *s, const struct rpcrdma_req *req,
					enum rpcrdma_accept_stat *ret_stat, uint32_t *low, uint32_t *high)
{
	const struct rpcrdma_proc *proc;

	*ret_stat = RPCRDMA_PROG_UNAVAIL;
	*low = UINT32_MAX;
	*high = 0;
	for (size_t i = 0; i < s->attr.nprogs; i++) {
		const struct rpcrdma_prog *p = &s->attr.progs[i];

		if (p->prog != req->prog)
			continue;
		if (p->vers == req->vers) {
			proc = find_proc(p, req->proc);
			*ret_stat = RPCRDMA_PROC_UNAVAIL;
			return proc || req->proc ? proc : &proc_null;
		}
		*ret_stat = RPCRDMA_PROG_MISMATCH;
		*low = MIN(*low, p->vers);
		*high = MAX(*high, p->vers);
	}
	return NULL;
}

/* ---- connections ---- */

static int on_accept(void *ctx, const struct rpcrdma_peer *peer, struct rpcrdma_engine **ret_engine, void **ret_conn_ctx)
{
	struct rpcrdma_service *s = ctx;
	int rc = s->attr.accept ? s->attr.accept(s->attr.ctx, peer) : 0;
	struct service_conn *c;

	if (rc)
		return rc;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->service = s;
	list_init(&c->tasks);
	list_add_tail(&s->conns, &c->link);
	*ret_engine = s->engine;
	*ret_conn_ctx = c;
	return 0;
}

static void on_opened(void *conn_ctx, struct rpcrdma_conn *conn)
{
	struct service_conn *c = conn_ctx;

	c->conn = conn;
	if (c->service->closing)
		rpcrdma_conn_close(conn);
}

static void on_lost(void *conn_ctx)
{
	struct service_conn *c = conn_ctx;

	list_for_each(n, &c->tasks)
		atomic_store(&list_entry(n, struct service_task, link)->lost, true);
}

static void on_closed(void *conn_ctx)
{
	struct service_conn *c = conn_ctx;

	list_del(&c->link);
	free(c);
}

static void on_refused(void *ctx, const struct rpcrdma_peer *peer, int err)
{
	struct rpcrdma_service *s = ctx;

	if (s->attr.refused)
		s->attr.refused(s->attr.ctx, peer, err);
}

static const struct rpcrdma_svc_ops ops = {
	.size = sizeof(ops), .accept = on_accept, .opened = on_opened, .call = service_call,
	.lost = on_lost, .closed = on_closed, .refused = on_refused,
};

/* ---- life ---- */

static int copy_attr(struct rpcrdma_service *s, const struct rpcrdma_service_attr *attr)
{
	int rc = RR_SIZED_IN(&s->attr, attr, refused);

	if (!rc)
		rc = RR_SIZED_IN(&s->svc, s->attr.svc, lab);
	if (!rc)
		rc = RR_SIZED_IN(&s->lab, s->svc.lab, local);
	s->attr.svc = &s->svc;
	s->svc.lab = &s->lab;
	return rc;
}

/* Adds the memory of a task to that of a call. rpcrdma_listen() has the same limit. */
static int add_tasks(struct rpcrdma_service *s)
{
	size_t bytes = task_bytes_max(s);

	if (s->svc.req_bytes > INT32_MAX - bytes)
		return -EINVAL;
	s->svc.req_bytes += (uint32_t)bytes;
	return 0;
}

int rpcrdma_service_create(struct rpcrdma_engine *e, const struct rpcrdma_service_attr *attr,
			   struct rpcrdma_service **ret)
{
	struct rpcrdma_service *s = calloc(1, sizeof(*s));
	int rc = s ? copy_attr(s, attr) : -ENOMEM;

	if (!rc)
		rc = is_sound(s) ? add_tasks(s) : -EINVAL;
	if (rc) {
		free(s);
		return rc;
	}
	s->engine = e;
	list_init(&s->conns);
	*ret = s;
	return 0;
}

int rpcrdma_service_listen(struct rpcrdma_service *s, const struct rpcrdma_addr *addr,
			   const struct rpcrdma_addr **ret)
{
	int rc;

	if (s->nlisteners == SERVICE_LISTENERS)
		return -ENOSPC;
	rc = rpcrdma_listen(s->engine, addr, &s->svc, &ops, s, &s->listeners[s->nlisteners]);
	if (rc)
		return rc;
	if (ret)
		*ret = rpcrdma_listener_addr(s->listeners[s->nlisteners]);
	s->nlisteners++;
	return 0;
}

int rpcrdma_service_destroy(struct rpcrdma_service *s)
{
	if (!s)
		return 0;
	if (rpcrdma_engine_is_running(s->engine))
		return -EDEADLK;
	s->closing = true;
	for (unsigned i = 0; i < s->nlisteners; i++)
		rpcrdma_listener_close(s->listeners[i]);
	list_for_each_safe(n, &s->conns) {
		struct service_conn *c = list_entry(n, struct service_conn, link);

		if (c->conn) /* else on_opened() closes it */
			rpcrdma_conn_close(c->conn);
	}
	while (!list_is_empty(&s->conns))
		(void)rpcrdma_engine_wait(s->engine, -1);
	while (atomic_load(&s->finishing)) /* threads that still use the engine, for a few instructions */
		(void)sched_yield();
	free(s);
	return 0;
}
