/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * wire_svc.h - a small RPC service with one procedure for each way data can move
 *
 *   NULL                 -> nothing
 *   PUT  tag, payload    -> length, byte sum        (pulled in pieces of `grain`)
 *   GET  count, mode     -> count given, payload    (mode: how the service hands it over)
 *   BIG  bytes           -> opaque<bytes>, no payload
 *   DROP                 -> no answer
 *   REJECT               -> the caller left too little room
 */
#ifndef TESTS_WIRE_SVC_H
#define TESTS_WIRE_SVC_H

#include "rpcrdma.h"

#define WIRE_PROG 0x20c5ffffu
#define WIRE_VERS 1u

enum wire_proc { WIRE_NULL, WIRE_PUT, WIRE_GET, WIRE_BIG, WIRE_DROP, WIRE_REJECT, WIRE_LONG };

enum wire_mode {
	WIRE_PLACE,         /* one piece */
	WIRE_PLACE_PIECES,  /* pieces of `grain`, the last one first */
	WIRE_IOV,           /* memory of the service's own */
	WIRE_SINK,          /* the caller's memory where it can be had, else as WIRE_PLACE */
	WIRE_SHORT,         /* placed in full, but only half of it is reported */
	WIRE_ERROR,         /* placed in full, then a result without payload */
	WIRE_HALF,          /* half of it is placed, all is reported */
	WIRE_HOLE,          /* the first half is placed twice, all is reported */
};

struct wire_put_args {
	uint32_t tag;
	struct rpcrdma_payload data;
};

struct wire_put_res {
	uint32_t length, sum;
};

struct wire_get_args {
	uint32_t count, mode;
};

struct wire_get_res {
	uint32_t status; /* 0: payload follows */
	struct rpcrdma_payload data;
};

struct wire_big_res {
	uint32_t length; /* decoding checks the pattern and keeps nothing */
};

#define WIRE_DATA_MAX (2u << 20)

bool_t xdr_wire_put_args(XDR *xdrs, struct wire_put_args *a);
bool_t xdr_wire_put_res(XDR *xdrs, struct wire_put_res *r);
bool_t xdr_wire_get_args(XDR *xdrs, struct wire_get_args *a);
bool_t xdr_wire_get_res(XDR *xdrs, struct wire_get_res *r);
bool_t xdr_wire_big_res(XDR *xdrs, struct wire_big_res *r);

/** wire_byte - byte @i of what GET gives and PUT expects */
static inline uint8_t wire_byte(uint64_t i)
{
	return (uint8_t)(i * 31 + (i >> 8) * 7 + 1);
}

struct wire_svc {
	struct rpcrdma_domain *domain;
	struct rpcrdma_engine *engine;
	struct rpcrdma_listener *listener;
	struct rpcrdma_engine *conn_engine; /* that connections are given to; NULL: engine */
	uint32_t grain;          /* 0: whole */
	bool hold;               /* keep PUT and GET unanswered until wire_svc_release() */
	bool drop_puts;          /* send no reply to PUT */
	enum { WIRE_PULLED, WIRE_EARLY_DROP, WIRE_EARLY_ERROR } put_ends; /* ends PUT before its pulls have ended */
	unsigned early;          /* such PUTs that are done ... */
	int early_err;           /* ... error of the last one's last pull ... */
	struct rpcrdma_buf *early_buf; /* ... and its buffer, which held 0xee when it was done */
	struct wire_job *held;
	unsigned nheld;
	unsigned calls, conns, closed, drops, refused;
	int refused_err;         /* of the last peer that was turned away by the library */
	uint32_t put_tag;        /* of the last PUT that was pulled whole */
	uint32_t put_bytes;
	uint8_t *put_data;       /* its bytes */
};

/* Runs when the domain exists and nothing has been opened in it; for tests that observe it. */
extern void (*wire_svc_on_domain)(struct rpcrdma_domain *domain);

/** wire_svc_open - listen on @url; 0 or -errno */
int wire_svc_open(struct wire_svc *s, const char *url, const struct rpcrdma_domain_attr *domain,
		  const struct rpcrdma_svc_attr *attr);
void wire_svc_release(struct wire_svc *s);
/** wire_svc_put_early - returns early_buf to the pool, while the connection exists */
void wire_svc_put_early(struct wire_svc *s);
/** wire_svc_ops - for one listener more, with the struct wire_svc as its context */
const struct rpcrdma_svc_ops *wire_svc_ops(void);
/** wire_svc_close - closes what connections there are and checks that all of them went */
void wire_svc_close(struct wire_svc *s);

#endif
