/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * prog_rig.h - a service with tables of procedures (rpcrdma_prog.h), and a client of it, in one thread
 */
#ifndef TESTS_PROG_RIG_H
#define TESTS_PROG_RIG_H

#include <stdatomic.h>

#include "rpcrdma.h"

#define PR_PROG 0x20001000u
#define PR_DATA_MAX (1u << 20)
#define PR_NAME_MAX 300000u

enum pr_proc {
	PR_SUM = 1,  /* name, payload -> their lengths and the sum of their bytes */
	PR_FILL,     /* count -> payload of that many pr_byte() */
	PR_BOTH,     /* payload -> payload, each byte plus one */
	PR_FAIL,     /* count: -errno that the handler returns */
	PR_LATER,    /* as PR_SUM, but waits for pr_finish() */
	PR_OWN,      /* as PR_FILL, from memory of the service */
	PR_ECHO,     /* name -> name, allocated by the handler for xdr_free() */
	PR_TOO_LONG, /* writes less than it says: the handler is wrong */
	PR_SIZED,    /* as PR_FILL, with a buffer for exactly as much */
	PR_SHORT,    /* as PR_OWN, but its iov is one byte too short: the handler is wrong */
	PR_TWICE,    /* finishes the task and returns */
};

struct pr_msg {
	uint32_t count, sum;
	char *name;
	struct rpcrdma_payload data;
};

bool_t pr_xdr_head(XDR *x, struct pr_msg *m);
bool_t pr_xdr_name(XDR *x, struct pr_msg *m);
bool_t pr_xdr_data(XDR *x, struct pr_msg *m);

static inline uint8_t pr_byte(uint32_t i)
{
	return (uint8_t)(i * 7 + (i >> 8) + 3);
}

struct pr_rig {
	struct rpcrdma_domain *svc_domain, *clnt_domain;
	struct rpcrdma_engine *svc_engine, *clnt_engine;
	struct rpcrdma_service *service;
	struct rpcrdma_clnt_attr attr;
	struct rpcrdma_clnt *clnt;
	struct rpcrdma_task *later[64]; /* tasks of PR_LATER */
	unsigned nlater;
	unsigned handled, released;     /* tasks */
	uint32_t data_bytes;            /* task->data_bytes of the last one */
};

struct pr_call {
	struct rpcrdma_call call;
	struct pr_msg args, res;
	struct iovec args_iov, sink;
	bool done;
	int err;
};

/* Arguments with a name that were freed. */
extern atomic_uint pr_frees;

/* If set, the service's fabric executes requests late and out of order (hooks.h). */
extern uint64_t pr_chaos;

/** pr_open - whatever fails is asserted; with LEAT_FLOW_RDMA (leat_flow.h) and without pr_chaos RPCRDMA_LOCAL is RDMA */
void pr_open(struct pr_rig *r, enum rpcrdma_transport transport, const struct rpcrdma_domain_attr *svc_domain,
	     const struct rpcrdma_domain_attr *clnt_domain, const struct rpcrdma_svc_attr *svc);
/** pr_close - closes everything; every handled task was released once, and every buffer returned */
void pr_close(struct pr_rig *r);
/** pr_poll - one pass of both engines; Return: number of events */
int pr_poll(struct pr_rig *r);
/** pr_init - fills in a call with a payload of @args_bytes, and room for @room bytes of results */
void pr_init(struct pr_rig *r, struct pr_call *c, uint32_t proc, uint32_t args_bytes, uint32_t room);
/** pr_until - polls until the call is done; Return: its error */
int pr_until(struct pr_rig *r, struct pr_call *c);
/** pr_fini - frees what pr_init() and the results hold */
void pr_fini(struct pr_call *c);
/** pr_progs - the tables: versions 1 and 3 of PR_PROG */
extern const struct rpcrdma_prog pr_progs[2];

#endif
