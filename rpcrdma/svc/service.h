/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * service.h - internal structures of a service with tables of procedures
 *
 * Operation:  service.c  the service: its tables, listeners and connections
 *             svc_task.c a call, from its delivery to the end of its reply
 */
#ifndef RPCRDMA_SVC_SERVICE_H
#define RPCRDMA_SVC_SERVICE_H

#include <stdatomic.h>

#include "base/list.h"
#include "base/util.h"
#include "rpcrdma_lab.h"
#include "rpcrdma_prog.h"

#define SERVICE_LISTENERS 16u
#define SERVICE_PAGE 4096u

struct rpcrdma_service {
	struct rpcrdma_engine *engine;
	struct rpcrdma_service_attr attr;
	struct rpcrdma_svc_attr svc;   /* attr.svc, and the memory of tasks */
	struct rpcrdma_lab lab;        /* svc.lab */
	struct rpcrdma_listener *listeners[SERVICE_LISTENERS];
	unsigned nlisteners;
	struct list conns;      /* service_conn.link */
	bool closing;
	atomic_uint finishing;  /* threads inside rpcrdma_task_finish() */
};

struct service_conn {
	struct list link;
	struct rpcrdma_service *service;
	struct rpcrdma_conn *conn; /* NULL until it is open */
	struct list tasks;      /* service_task.link */
};

struct service_task {
	struct rpcrdma_task pub;
	struct list link;
	const struct rpcrdma_proc *proc;
	struct rpcrdma_service *service;
	struct rpcrdma_engine *engine;
	struct rpcrdma_buf *buf;   /* payload of the arguments, then of the results from @res_at on */
	size_t res_at;
	struct rpcrdma_buf_waiter waiter;
	struct rpcrdma_xfer xfer;  /* of the arguments, then of the results */
	struct iovec iov;
	struct rpcrdma_msg msg;    /* of rpcrdma_task_finish() */
	int result;
	atomic_bool lost;
	atomic_bool finished;      /* has its result */
	bool handled;              /* the handler ran */
};

/** service_find - finds the row of a call
 * Return: NULL: reply with *ret_stat; *low and *high for PROG_MISMATCH */
const struct rpcrdma_proc *service_find(const struct rpcrdma_service *s, const struct rpcrdma_req *req,
					enum rpcrdma_accept_stat *ret_stat, uint32_t *low, uint32_t *high);

/** service_res_at - offset of the results' payload in the buffer behind @args_bytes of payload */
static inline size_t service_res_at(uint32_t args_bytes)
{
	return round_up_pow2((size_t)args_bytes, SERVICE_PAGE);
}

/** service_task_bytes - memory of one task of a procedure */
size_t service_task_bytes(const struct rpcrdma_proc *p);

/** service_call - svc_ops.call */
void service_call(void *conn_ctx, struct rpcrdma_req *req);

#endif
