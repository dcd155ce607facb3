/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * prog_rig.c - a service with tables of procedures, and a client of it, in one thread
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "hooks.h"
#include "lab.h"
#include "leat_flow.h"
#include "local.h"
#include "prog_rig.h"

uint64_t pr_chaos;
atomic_uint pr_frees;

bool_t pr_xdr_head(XDR *x, struct pr_msg *m)
{
	return xdr_uint32_t(x, &m->count) && xdr_uint32_t(x, &m->sum);
}

bool_t pr_xdr_name(XDR *x, struct pr_msg *m)
{
	return pr_xdr_head(x, m) && xdr_string(x, &m->name, PR_NAME_MAX);
}

bool_t pr_xdr_data(XDR *x, struct pr_msg *m)
{
	pr_frees += x->x_op == XDR_FREE && m->name;
	return pr_xdr_name(x, m) && rpcrdma_xdr_payload(x, &m->data, 2 * PR_DATA_MAX);
}

static bool_t xdr_res(XDR *x, struct pr_msg *m)
{
	return pr_xdr_head(x, m) && rpcrdma_xdr_payload(x, &m->data, PR_DATA_MAX);
}

static uint32_t sum_of(const struct pr_msg *m)
{
	const uint8_t *bytes = m->data.iov[0].iov_base;
	uint32_t sum = 0;

	for (uint32_t i = 0; i < m->data.length; i++)
		sum += bytes[i];
	for (const char *s = m->name; *s; s++)
		sum += (uint8_t)*s;
	return sum;
}

static void note(struct rpcrdma_task *t)
{
	struct pr_rig *r = t->ctx;

	r->handled++;
	r->data_bytes = t->data_bytes;
	assert_true(!t->data_bytes == !t->data);
}

static int sum(struct rpcrdma_task *t)
{
	const struct pr_msg *a = t->args;
	struct pr_msg *res = t->res;

	note(t);
	assert_int_equal(a->data.iovcnt, 1);
	res->count = a->data.length + (uint32_t)strlen(a->name);
	res->sum = sum_of(a);
	return 0;
}

static int later(struct rpcrdma_task *t)
{
	struct pr_rig *r = t->ctx;

	sum(t);
	assert_true(r->nlater < ARRAY_SIZE(r->later));
	r->later[r->nlater++] = t;
	return RPCRDMA_PENDING;
}

static int fill(struct rpcrdma_task *t)
{
	const struct pr_msg *a = t->args;
	struct pr_msg *res = t->res;

	note(t);
	if (a->count > t->data_bytes)
		return -EMSGSIZE;
	for (uint32_t i = 0; i < a->count; i++)
		((uint8_t *)t->data)[i] = pr_byte(i);
	res->data.length = a->count;
	return 0;
}

static uint32_t fill_bytes(struct rpcrdma_task *t)
{
	return ((const struct pr_msg *)t->args)->count;
}

static int both(struct rpcrdma_task *t)
{
	const struct pr_msg *a = t->args;
	struct pr_msg *res = t->res;
	const uint8_t *from = a->data.iov[0].iov_base;

	note(t);
	if (a->data.length > t->data_bytes)
		return -EMSGSIZE;
	for (uint32_t i = 0; i < a->data.length; i++)
		((uint8_t *)t->data)[i] = (uint8_t)(from[i] + 1);
	for (uint32_t i = 0; i < a->data.length; i++) /* both were there at once */
		assert_int_equal(from[i], pr_byte(i));
	res->data.length = a->data.length;
	return 0;
}

static int fail_as_told(struct rpcrdma_task *t)
{
	note(t);
	return -(int)((const struct pr_msg *)t->args)->count;
}

static int own(struct rpcrdma_task *t)
{
	uint32_t n = ((const struct pr_msg *)t->args)->count;
	struct pr_msg *res = t->res;
	struct iovec *iov = calloc(1, sizeof(*iov) + n);

	note(t);
	if (!iov)
		return -ENOMEM;
	*iov = (struct iovec){ iov + 1, n };
	for (uint32_t i = 0; i < n; i++)
		((uint8_t *)iov->iov_base)[i] = pr_byte(i);
	res->data = (struct rpcrdma_payload){ .length = n, .iov = iov, .iovcnt = 1 };
	t->user = iov;
	return 0;
}

static int too_short(struct rpcrdma_task *t)
{
	int rc = own(t);

	((struct iovec *)t->user)->iov_len--;
	return rc;
}

static int twice(struct rpcrdma_task *t)
{
	int result = -(int)((const struct pr_msg *)t->args)->count;

	note(t);
	assert_int_equal(rpcrdma_task_finish(t, result), 0);
	assert_int_equal(rpcrdma_task_finish(t, 0), -EALREADY);
	return 0;
}

static int echo(struct rpcrdma_task *t)
{
	const struct pr_msg *a = t->args;

	note(t);
	((struct pr_msg *)t->res)->name = strdup(a->name);
	return ((struct pr_msg *)t->res)->name ? 0 : -ENOMEM;
}

static int too_long(struct rpcrdma_task *t)
{
	note(t);
	((struct pr_msg *)t->res)->data.length = t->data_bytes + 1;
	return 0;
}

static void release(struct rpcrdma_task *t)
{
	((struct pr_rig *)t->ctx)->released++;
	free(t->user);
}

#define ARGS_DATA RPCRDMA_ARGS(pr_xdr_data, struct pr_msg), RPCRDMA_ARGS_DATA(struct pr_msg, data, PR_DATA_MAX)
#define RES_DATA RPCRDMA_RES(xdr_res, struct pr_msg), RPCRDMA_RES_DATA(struct pr_msg, data, PR_DATA_MAX)
#define HEAD RPCRDMA_ARGS(pr_xdr_head, struct pr_msg)

static const struct rpcrdma_proc procs[] = {
	{ .proc = PR_SUM, .handler = sum, .release = release, ARGS_DATA, RPCRDMA_RES(pr_xdr_head, struct pr_msg) },
	{ .proc = PR_FILL, .handler = fill, .release = release, HEAD, RES_DATA },
	{ .proc = PR_BOTH, .handler = both, .release = release, ARGS_DATA, RES_DATA },
	{ .proc = PR_FAIL, .handler = fail_as_told, .release = release, HEAD },
	{ .proc = PR_LATER, .handler = later, .release = release, ARGS_DATA, RPCRDMA_RES(pr_xdr_head, struct pr_msg) },
	{ .proc = PR_OWN, .handler = own, .release = release, HEAD, RPCRDMA_RES(xdr_res, struct pr_msg) },
	{ .proc = PR_ECHO, .handler = echo, .release = release, RPCRDMA_ARGS(pr_xdr_name, struct pr_msg),
	  RPCRDMA_RES(pr_xdr_name, struct pr_msg), .free_res = true },
	{ .proc = PR_TOO_LONG, .handler = too_long, .release = release, HEAD, RES_DATA },
	{ .proc = PR_SHORT, .handler = too_short, .release = release, HEAD, RPCRDMA_RES(xdr_res, struct pr_msg) },
	{ .proc = PR_TWICE, .handler = twice, .release = release, HEAD },
	{ .proc = PR_SIZED, .handler = fill, .release = release, HEAD, RES_DATA, .res_data_bytes = fill_bytes },
};

const struct rpcrdma_prog pr_progs[2] = {
	{ .prog = PR_PROG, .vers = 1, .procs = procs, .nprocs = ARRAY_SIZE(procs) },
	{ .prog = PR_PROG, .vers = 3, .procs = procs, .nprocs = 1 },
};

void pr_open(struct pr_rig *r, enum rpcrdma_transport transport, const struct rpcrdma_domain_attr *svc_domain,
	     const struct rpcrdma_domain_attr *clnt_domain, const struct rpcrdma_svc_attr *svc)
{
	const struct rr_local_attr local = { .filters = HOOKS(.chaos_seed = pr_chaos) };
	const struct rpcrdma_domain_attr chaos = { .lab = LAB(.local = &local) };
	const struct rpcrdma_service_attr attr = { .progs = pr_progs, .nprogs = 2, .ctx = r, .svc = svc };
	struct rpcrdma_addr addr = { .transport = transport, .host = "127.0.0.1" };
	const struct rpcrdma_addr *used;
	const char *rdma_host = leat_flow_rdma();

	if (pr_chaos)
		svc_domain = &chaos;
	else if (transport == RPCRDMA_LOCAL && rdma_host) {
		addr.transport = RPCRDMA_RDMA;
		snprintf(addr.host, sizeof(addr.host), "%s", rdma_host);
	}
	*r = (struct pr_rig){ .attr.backoff_ms = 1 };
	if (addr.transport == RPCRDMA_LOCAL)
		snprintf(addr.host, sizeof(addr.host), "%s/prog.%d", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", getpid());
	assert_int_equal(rpcrdma_domain_create(svc_domain, &r->svc_domain), 0);
	assert_int_equal(rpcrdma_domain_create(clnt_domain, &r->clnt_domain), 0);
	assert_int_equal(rpcrdma_engine_create(r->svc_domain, NULL, &r->svc_engine), 0);
	assert_int_equal(rpcrdma_engine_create(r->clnt_domain, NULL, &r->clnt_engine), 0);
	assert_int_equal(rpcrdma_service_create(r->svc_engine, &attr, &r->service), 0);
	assert_int_equal(rpcrdma_service_listen(r->service, &addr, &used), 0);
	r->attr.addr = *used;
	assert_int_equal(rpcrdma_clnt_open(r->clnt_engine, &r->attr, &r->clnt), 0);
}

void pr_close(struct pr_rig *r)
{
	struct rpcrdma_pool_stats pool;

	rpcrdma_clnt_destroy(r->clnt);
	rpcrdma_engine_destroy(r->clnt_engine);
	assert_int_equal(rpcrdma_service_destroy(r->service), 0);
	rpcrdma_engine_destroy(r->svc_engine);
	rpcrdma_domain_pool_stats(r->svc_domain, &pool);
	for (unsigned i = 0; i < RPCRDMA_POOL_CLASSES; i++)
		assert_int_equal(pool.classes[i].used, 0);
	rpcrdma_domain_destroy(r->clnt_domain);
	rpcrdma_domain_destroy(r->svc_domain);
	assert_int_equal(r->handled, r->released);
}

int pr_poll(struct pr_rig *r)
{
	return rpcrdma_engine_poll(r->svc_engine) + rpcrdma_engine_poll(r->clnt_engine);
}

static void on_done(struct rpcrdma_call *call, int err)
{
	struct pr_call *c = container_of(call, struct pr_call, call);

	assert_false(c->done);
	c->done = true;
	c->err = err;
}

static bool has_args_data(uint32_t proc)
{
	return proc == PR_SUM || proc == PR_BOTH || proc == PR_LATER;
}

void pr_init(struct pr_rig *r, struct pr_call *c, uint32_t proc, uint32_t args_bytes, uint32_t room)
{
	bool has_res = proc == PR_FILL || proc == PR_BOTH || proc == PR_OWN || proc == PR_TOO_LONG || proc == PR_SIZED ||
		       proc == PR_SHORT;

	(void)r;
	memset(c, 0, sizeof(*c));
	c->args_iov = (struct iovec){ malloc(args_bytes + 1), args_bytes };
	c->sink = (struct iovec){ malloc(room + 1), room };
	assert_true(c->args_iov.iov_base && c->sink.iov_base);
	for (uint32_t i = 0; i < args_bytes; i++)
		((uint8_t *)c->args_iov.iov_base)[i] = pr_byte(i);
	c->args = (struct pr_msg){ .name = (char *)(uintptr_t)"name",
				   .data = { .length = args_bytes, .iov = &c->args_iov, .iovcnt = 1 } };
	c->call = (struct rpcrdma_call){
		.prog = PR_PROG, .vers = 1, .proc = proc, .args = &c->args, .res = &c->res, .done = on_done,
		.encode = has_args_data(proc) ? (xdrproc_t)pr_xdr_data :
			  proc == PR_ECHO ? (xdrproc_t)pr_xdr_name : (xdrproc_t)pr_xdr_head,
		.decode = has_res ? (xdrproc_t)xdr_res : proc == PR_ECHO ? (xdrproc_t)pr_xdr_name :
			  proc == PR_FAIL || proc == PR_TWICE || !proc ? NULL : (xdrproc_t)pr_xdr_head,
		.sink = has_res ? &c->sink : NULL, .sinkcnt = has_res,
		.reply_max = proc == PR_ECHO ? 16 + PR_NAME_MAX : 16,
	};
}

int pr_until(struct pr_rig *r, struct pr_call *c)
{
	for (unsigned long idle = 0; !c->done; idle = pr_poll(r) ? 0 : idle + 1)
		assert_true(idle < 20000000);
	return c->err;
}

void pr_fini(struct pr_call *c)
{
	free(c->args_iov.iov_base);
	free(c->sink.iov_base);
	free(c->res.name);
}
