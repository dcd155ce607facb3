/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * rpcrdma_prog.h - a service as tables of procedures
 *
 * A row of a table names a procedure: its XDR filters, its payloads and a handler. For each call the library decodes
 * the arguments, waits for a buffer, pulls the payload, runs the handler, places the results' payload, sends the
 * reply, and frees what the call held. It replies PROG_UNAVAIL, PROG_MISMATCH, PROC_UNAVAIL and GARBAGE_ARGS itself,
 * and to procedure 0 of every program. Buffers come from the pool and are charged to the client.
 *
 * A client retransmits a call after a reconnect: a handler may run again for a call that it has served before.
 *
 * What the filter of the arguments allocates (strings, arrays, lists) is charged to no client. So the filter needs
 * bounds: a call may be as long as svc_attr.call_bytes_max, and each task keeps its arguments until it ends.
 *
 * Memory:  A handler may reply with memory of its own, in two ways. release() tells when the library no longer uses it.
 *          - The payload's iov refers to it: any number of entries, of at most rpcrdma_domain_reply_max() bytes in sum.
 *            The entries and the bytes stay valid and unchanged until release(). Over RDMA and the local fabric a CPU
 *            copies the bytes into a buffer, also from memory of rpcrdma_mem_alloc().
 *          - Without that copy: a procedure without res_data_max calls rpcrdma_req_place(t->req, xfer) with xfer->mem
 *            (rpcrdma_mem_alloc(), rpcrdma_mem_register()), then sets length and leaves iovcnt 0. @xfer stays valid
 *            until release() as well. With res_data_max, the library places task->data itself.
 * Threads: the engine of the service, except rpcrdma_task_finish() and rpcrdma_task_is_lost(). Between RPCRDMA_PENDING
 *          and rpcrdma_task_finish(), another thread may use task->args and task->data, and write task->res.
 */
#ifndef RPCRDMA_PROG_H
#define RPCRDMA_PROG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rpcrdma_svc.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* A call that is being served. The handler may set @user, and what @res and @data point to. */
struct rpcrdma_task {
	struct rpcrdma_req *req; /* identity of the caller; only on the engine's thread */
	void *ctx;               /* of the service */
	void *args;              /* decoded. A payload of args_data_max has iovcnt 1: it is in memory of the library */
	void *res;               /* results, initially zero */
	void *data;              /* buffer for the payload of the results. NULL if @data_bytes is 0: no res_data_max,
	                          * res_data_bytes() returned 0, or no room (see @data_bytes) */
	uint32_t data_bytes;     /* its size, at most what the caller accepts and what one buffer of the pool has beside
	                          * the payload of the arguments */
	void *user;              /* initially NULL */
};

#define RPCRDMA_PENDING 0x10000 /* of a handler: rpcrdma_task_finish() follows */

/* A procedure. Unset members mean: no arguments, no results, no payload. */
struct rpcrdma_proc {
	uint32_t proc;
	const char *name;
	xdrproc_t decode;        /* arguments; see above on bounds */
	size_t args_bytes;       /* size of the structure that @decode fills in */
	xdrproc_t encode;        /* results */
	size_t res_bytes;
	uint32_t args_data_max;  /* the arguments have a payload of at most this length, which the handler wants in memory */
	size_t args_data_at;     /* ... described by the struct rpcrdma_payload at this offset of the arguments */
	uint32_t res_data_max;   /* the results have a payload of at most this length ... */
	size_t res_data_at;      /* ... described by the struct rpcrdma_payload at this offset of the results. The handler
	                          * sets length, and either writes that many bytes to task->data or sets iov and iovcnt */
	/* Returns the size of task->data that this call needs; it may reply at once with less. NULL: res_data_max. */
	uint32_t (*res_data_bytes)(struct rpcrdma_task *t);
	/* Serves the call; must not block. Return: 0: reply with task->res; RPCRDMA_PENDING; -errno: as
	 * rpcrdma_task_finish(). The value has no effect if rpcrdma_task_finish() has ended the task already. */
	int (*handler)(struct rpcrdma_task *t);
	/* Frees what the handler allocated. Runs once if the handler ran, when the library no longer uses the results.
	 * May be NULL. */
	void (*release)(struct rpcrdma_task *t);
	bool free_res;           /* xdr_free() the results, as programs of rpcgen do */
	void *reserved[4];
};

/* Members of a row: the filter of a structure, and the payload in it. */
#define RPCRDMA_ARGS(filter, type) .decode = (xdrproc_t)(filter), .args_bytes = sizeof(type)
#define RPCRDMA_RES(filter, type) .encode = (xdrproc_t)(filter), .res_bytes = sizeof(type)
#define RPCRDMA_ARGS_DATA(type, member, max) .args_data_max = (max), .args_data_at = offsetof(type, member)
#define RPCRDMA_RES_DATA(type, member, max) .res_data_max = (max), .res_data_at = offsetof(type, member)

/* One version of a program. */
struct rpcrdma_prog {
	uint32_t prog, vers;
	const struct rpcrdma_proc *procs;
	size_t nprocs;
};

struct rpcrdma_service;

struct rpcrdma_service_attr {
	size_t size;             /* sizeof(struct rpcrdma_service_attr), or 0: see rpcrdma.h */
	const struct rpcrdma_prog *progs; /* they and their procedures must stay until the service is destroyed */
	size_t nprogs;
	void *ctx;               /* for handlers */
	const struct rpcrdma_svc_attr *svc; /* of its listeners; NULL: defaults */
	/* Decides whether a peer may connect. Return: 0, or -errno. NULL: every peer may. */
	int (*accept)(void *ctx, const struct rpcrdma_peer *peer);
	/* As rpcrdma_svc_ops.refused; may be NULL. */
	void (*refused)(void *ctx, const struct rpcrdma_peer *peer, int err);
};

/** rpcrdma_service_create - creates a service on an engine; it listens nowhere yet
 *
 * @attr is copied, with @attr->svc.
 *
 * Return: 0; -EINVAL: a procedure without a handler, or listed twice, or a payload outside of its structure; a
 * structure, or both payloads together (that of the arguments in whole pages of 4096 bytes), of more than
 * RPCRDMA_BUF_MAX; @attr->svc->req_bytes is too large; -E2BIG (@attr->size); -ENOMEM.
 */
int rpcrdma_service_create(struct rpcrdma_engine *e, const struct rpcrdma_service_attr *attr,
			   struct rpcrdma_service **ret);

/** rpcrdma_service_listen - listens on one more address; port 0 selects a free one
 * @ret: NULL, or the address in use; valid until the service is destroyed
 *
 * Return: as rpcrdma_listen(); -ENOSPC: more than 16 addresses.
 */
int rpcrdma_service_listen(struct rpcrdma_service *s, const struct rpcrdma_addr *addr,
			   const struct rpcrdma_addr **ret);

/** rpcrdma_service_destroy - closes listeners and connections, and runs the engine until all tasks have ended
 * It waits for pending tasks of other threads, and for their rpcrdma_task_finish(): the engine may be destroyed
 * afterwards. NULL is fine.
 *
 * Return: 0; -EDEADLK: called from a callback of this engine, nothing was done.
 */
int rpcrdma_service_destroy(struct rpcrdma_service *s);

/** rpcrdma_task_finish - ends a task whose handler returned RPCRDMA_PENDING, or will; any thread, once
 * @result: 0: reply with the results; -EBADMSG: GARBAGE_ARGS; -EOPNOTSUPP: PROC_UNAVAIL; -EACCES: AUTH_ERROR with
 *          AUTH_TOOWEAK; -EMSGSIZE: the caller accepts too little payload; -ECANCELED: no reply; others, also positive
 *          ones: SYSTEM_ERR
 *
 * The library may free the task at once: only a caller that knows that it has not been freed may call it again.
 *
 * Return: 0; -EALREADY: the task has its result already, nothing was done.
 */
int rpcrdma_task_finish(struct rpcrdma_task *t, int result);

/** rpcrdma_task_is_lost - true: the connection is lost, and the reply cannot be delivered; any thread
 * A task with much work left may then finish with any result. */
bool rpcrdma_task_is_lost(const struct rpcrdma_task *t);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
