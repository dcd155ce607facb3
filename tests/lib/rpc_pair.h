/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * rpc_pair.h - a client and a server in one thread, over any transport, and a service between them
 *
 * Operation:  rpc_pair_create() makes two domains (so that hooks and counters are per side), an
 *             engine in each, a listener and a client. Nothing moves but while rpc_pair_poll() or
 *             one of its loops runs: a test sees a repeatable order.
 *
 *             The service echoes: the results' head and payload are those of the arguments, or a
 *             pattern of the length asked for. It can be told to hold its answers back.
 * Errors:     Whatever must not fail is asserted with cmocka, in the harness too.
 */
#ifndef RPC_PAIR_H
#define RPC_PAIR_H

#include "hooks.h"
#include "local.h"
#include "rpcrdma.h"

#define ECHO_PROG 0x20005555u
#define ECHO_VERS 3u
#define ECHO_HEAD_MAX (256u << 10)
#define ECHO_PAYLOAD_MAX (4u << 20)
#define ECHO_LOG 4096

enum echo_proc {
	ECHO_NULL,   /* void -> void */
	ECHO_BOTH,   /* head and payload come back */
	ECHO_SINK,   /* payload is swallowed; `n` of the results is its checksum */
	ECHO_SOURCE, /* `n` bytes of pattern come back */
	ECHO_HEAD,   /* `n` bytes of pattern come back in the head */
	ECHO_REJECT, /* the server says that there is too little room */
	ECHO_AUTH,   /* AUTH_ERROR */
};

/* Arguments and results: u32, opaque head<>, payload. */
struct echo_msg {
	uint32_t n;
	uint32_t head_len;
	uint8_t *head;     /* decode: room for ECHO_HEAD_MAX, or NULL when none is expected */
	struct rpcrdma_payload payload;
};

bool_t xdr_echo_msg(XDR *xdrs, struct echo_msg *m);

struct rpc_pair_attr {
	enum rpcrdma_transport transport; /* RPCRDMA_TCP or RPCRDMA_LOCAL */
	bool one_engine;                  /* both ends on one engine of one domain */
	struct rr_local_attr clnt_local, svc_local;
	struct rpcrdma_clnt_attr clnt;    /* address is filled in */
	struct rpcrdma_svc_attr svc;
};

struct rpc_pair {
	struct rpc_pair_attr attr;
	struct rpcrdma_domain *clnt_domain, *svc_domain;
	struct rpcrdma_engine *clnt_engine, *svc_engine;
	struct rpcrdma_listener *listener;
	struct rpcrdma_addr addr;
	struct rpcrdma_clnt *clnt;
	char path[108];

	/* the service */
	bool hold;                       /* keep requests instead of answering them */
	struct echo_req *held;
	unsigned nheld, nconns;
	uint32_t piece_bytes;            /* pull and place in pieces of this size; 0: whole */
	uint32_t log[ECHO_LOG];          /* XIDs as they came */
	unsigned nlog;
	struct rpcrdma_conn *last_conn;

	/* the client */
	unsigned ups, downs;
	unsigned aways, backs;           /* attr.clnt.away_ms != 0: what attr.clnt.away() was told */
	char last_why[128];
};

/* A call of the service, its memory, and how it ended. */
struct echo_call {
	struct rpcrdma_call call;
	struct rpc_pair *pair;
	struct echo_msg args, res;
	struct iovec arg_iov[32], sink_iov[32];
	uint8_t *arg, *sink;             /* all of it, in one piece */
	size_t arg_bytes, sink_bytes;
	unsigned done;
	int err;
	bool own;                        /* arg and sink are malloc()ed here */
};

struct rpc_pair *rpc_pair_create(const struct rpc_pair_attr *attr);
void rpc_pair_destroy(struct rpc_pair *p);

/** rpc_pair_listen, rpc_pair_unlisten - the server appears (at the same address) and goes */
void rpc_pair_listen(struct rpc_pair *p);
void rpc_pair_unlisten(struct rpc_pair *p);

/** rpc_pair_poll - one pass over both engines; Return: how much ran */
int rpc_pair_poll(struct rpc_pair *p);

/** rpc_pair_until - poll until *@count reaches @want; fails the test after a minute */
void rpc_pair_until(struct rpc_pair *p, const unsigned *count, unsigned want);

/** rpc_pair_settle - poll until nothing has run for a while */
void rpc_pair_settle(struct rpc_pair *p);

/** rpc_pair_release - answer what was held, and what comes from now on */
void rpc_pair_release(struct rpc_pair *p);

struct rpcrdma_stats rpc_pair_clnt_stats(struct rpc_pair *p);
struct rpcrdma_stats rpc_pair_svc_stats(struct rpc_pair *p);

/** echo_pattern - fill with bytes that tell where they belong */
void echo_pattern(uint8_t *mem, size_t bytes, uint32_t seed);
uint32_t echo_sum(const uint8_t *mem, size_t bytes, uint32_t sum);

/** echo_init - a call of @proc with so much payload and head; memory is allocated and patterned
 * @args_bytes, @sink_bytes: 0 for none; @head: bytes of arguments' and results' head */
void echo_init(struct echo_call *c, struct rpc_pair *p, enum echo_proc proc, size_t arg_bytes,
	       size_t sink_bytes, uint32_t n, uint32_t head);

/** echo_cut - present arg and sink in pieces of @bytes (the last one takes the rest) */
void echo_cut(struct echo_call *c, size_t bytes);

/** echo_start - make the call; asserts that it starts */
void echo_start(struct echo_call *c);
/** echo_check - it is done, with this error; and if 0, with the right results */
void echo_check(struct echo_call *c, int err);
/** echo_run - init (ECHO_BOTH), start, wait, check, free */
void echo_run(struct rpc_pair *p, size_t bytes, uint32_t head);
void echo_fini(struct echo_call *c);

#endif
