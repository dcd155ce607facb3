/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * req.h - a request; start reading at req.c
 */
#ifndef LEAT_SERVER_REQ_H
#define LEAT_SERVER_REQ_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "creds.h"
#include "latency.h"
#include "drc_check.h"
#include "place.h"
#include "prog.h"
#include "rpcrdma.h"
#include "worker.h"

struct conn;
struct reactor;
struct server;

enum req_state {
	REQ_NEW,	 /* arrives: its arguments may be incomplete */
	REQ_IDENTIFYING, /* prog.authorize() finds out what it may do */
	REQ_ADMITTING,	 /* needs memory for long results, and a slot */
	REQ_PULLING,	 /* the payload of its arguments arrives */
	REQ_DUPCHECK,	 /* non-idempotent: is it a duplicate? */
	REQ_RUNNING,	 /* a worker has it, or its program waits for something */
	REQ_MOVING,	 /* data is moving between client and store */
	REQ_REPLYING,	 /* the transport has the reply */
	REQ_FREE,	 /* recycled */
};

/** req_state_name - returns the name to print */
const char *req_state_name(enum req_state s);

/* How the request ends. */
enum req_end {
	REQ_END_REPLY,	/* results */
	REQ_END_KEPT,	/* results as the duplicate request cache has them */
	REQ_END_ERROR,	/* accept_stat */
	REQ_END_AUTH,	/* auth_stat */
	REQ_END_REJECT, /* the client's chunks are too small */
	REQ_END_DROP,	/* no reply */
};

/* Owned by the reactor of its connection. While RUNNING, the worker owns the parts that its work needs. Recycled, and
 * freed while not needed. */
struct req {
	enum req_state state;
	struct list link; /* reactor->admission or ->free_reqs */
	struct list of_conn; /* conn->reqs */
	struct reactor *reactor;
	struct server *srv;
	struct conn *conn;
	struct rpcrdma_req *rpc;
	uint32_t xid;
	const struct prog *prog;
	const struct prog_proc *proc; /* NULL: NEW, and nothing of it was understood */
	bool admitted; /* has a slot: admit.h */

	struct creds creds; /* what it runs as: at first as the client claims, then as prog.authorize() says */
	uint64_t dev;	    /* st_dev of the file system that its worker may block in; 0: none */
	void *scratch;	    /* req_scratch(): for long arguments or long results */
	size_t scratch_bytes;
	struct rpcrdma_buf *room; /* for long results: prog_proc.room */
	struct rpcrdma_buf_waiter room_waiter;

	enum req_end end;
	uint32_t end_code; /* of ERROR, AUTH */
	uint32_t end_vers; /* ERROR, PROG_MISMATCH: the version that there is */
	struct worker_job job;
	struct place_plan plan;
	struct place place;
	struct latency latency;
	struct drc_check check;
	_Alignas(max_align_t) unsigned char call[]; /* the program's part: prog.call_bytes */
};

/** req_args, req_res - the arguments and results of a request with r->proc */
static inline void *req_args(const struct req *r)
{
	return (void *)((uintptr_t)r->call + r->prog->args_at);
}

static inline void *req_res(const struct req *r)
{
	return (void *)((uintptr_t)r->call + r->prog->res_at);
}

/** req_args_init - sets the memory that decoding the arguments of r->proc writes to, after prog.init()
 *
 * Return: 0, -ENOMEM.
 */
int must_check req_args_init(struct req *r);

/** req_call - rpcrdma_svc_ops.call: a new request has arrived, or more of one that arrived in part */
void req_call(void *conn, struct rpcrdma_req *rpc);

/** req_conn_lost - rpcrdma_svc_ops.lost: drops the requests of @conn that wait and have not begun */
void req_conn_lost(void *conn);

/** req_run - runs the state machine until it has to wait */
void req_run(struct req *r);

/** req_resume - prog.authorize() or prog_proc.begin() has what it waited for: it runs again */
void req_resume(struct req *r);

/* A request that waits in a list of its program, for what other requests do; part of it. Under a lock of the program. */
struct req_waiter {
	struct list link;
	struct req *req;
	struct rpcrdma_msg msg;
};

/** req_waiter_init - prepares @w, which waits for nothing yet */
void req_waiter_init(struct req_waiter *w, struct req *r);

/** req_wake - resumes all requests that wait in @waiters; under the lock; any thread */
void req_wake(struct list *waiters);

/** req_unwait - ends the wait of @w; Return: false: it did not wait, or its message is on the way
 * @lock: of the list
 */
bool req_unwait(pthread_mutex_t *lock, struct req_waiter *w);

/** req_scratch - allocates zeroed memory for long arguments or results, once per request, from the client's share
 *
 * Return: memory that is freed with the request; NULL: none is free. Then the request is dropped, and the client
 * retransmits it.
 */
void *req_scratch(struct req *r, size_t bytes);

#endif
