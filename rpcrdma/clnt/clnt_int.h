/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * clnt_int.h - inside the requester: the core (clnt.c, clnt_call.c) and the transports beneath it
 *
 * Operation:  clnt_call.c owns every call from rpcrdma_clnt_call() to done(): the FIFO of those that
 *             wait for a connection or a credit, the list of those sent, the XIDs. clnt.c owns the
 *             connection: attempts, time-outs, reconnects. A transport (clnt_rdma.c, clnt_tcp.c)
 *             connects, sends one call, reports replies, and on the end of a connection makes sure
 *             that no peer reaches any memory of a call before it says `down`.
 *
 *             connect() -> rr_clnt_up() | rr_clnt_down(errno)
 *             send(call) -> ... -> rr_clnt_replied(call) | rr_clnt_down() (then the call is sent
 *             again over the next connection) | cancel(call) (then its reply is a stray)
 * Memory:     A call's slot (struct rr_call) is the core's; `xprt` in it is the transport's, alive
 *             from send() to replied or down.
 * Threads:    The engine's.
 */
#ifndef RR_CLNT_INT_H
#define RR_CLNT_INT_H

#include "base/list.h"
#include "credit.h"
#include "rpc_msg.h"
#include "rpcrdma.h"
#include "stream.h"

struct rr_clnt_ops;

/* Life of a call. */
enum rr_call_state {
	RR_CALL_WAITING, /* in clnt->waiting: no connection or no credit */
	RR_CALL_SENT,    /* in clnt->sent: out on the present connection */
	RR_CALL_LEAVING, /* in clnt->sent: given up while the peer copies to or from its memory; done when the
	                  * connection ends. In clnt->leaving: the connection has ended */
	RR_CALL_GONE,    /* in clnt->sent: given up by its caller, but its credit is out until the
	                  * reply comes or the connection ends; no user, nothing of the transport */
	RR_CALL_DONE,    /* in clnt->free */
};

struct rr_call {
	struct list link;         /* waiting, sent, or free */
	struct list hash;         /* by xid, while not done */
	struct rpcrdma_clnt *clnt;
	struct rpcrdma_call *user;
	enum rr_call_state state;
	uint32_t xid;
	uint64_t sent_ns;
	uint64_t deadline_ns;     /* 0: none */
	int err;                  /* LEAVING: arguments of its done() */
	const char *why;
	void *xprt;               /* the transport's part of a call that is out */
};

#define RR_XID_BUCKETS 1024u /* a power of two; XIDs are consecutive, so chains stay short */

struct rpcrdma_clnt {
	struct rpcrdma_engine *engine;
	struct rpcrdma_clnt_attr attr;   /* defaults filled in; strings are own copies */
	const struct rr_clnt_ops *ops;
	enum rpcrdma_clnt_state state;
	bool ever_up;
	char why[128];
	uint32_t send_inline, recv_inline;
	bool remote_inv;
	uint64_t reconnects;
	void *xprt;                      /* the transport's connection state */

	/* clnt_call.c */
	struct rr_credit credit;
	struct list waiting;             /* FIFO; calls of a lost connection stand at its head */
	struct list failing;             /* taken from `waiting` to be failed, one done() at a time */
	struct list sent;                /* oldest first */
	struct list leaving;             /* to be finished, one done() at a time */
	struct list free;
	struct call_block *blocks;       /* what the slots are made of */
	struct list *xids;               /* hash table */
	uint32_t next_xid;               /* first one random: two lives of a client do not collide */
	bool pumping;                    /* rr_call_pump() is on the stack */
	bool blocked;                    /* the transport said -ENOBUFS and will resume */
	unsigned callbacks;              /* of the user, on the stack now */

	/* clnt_msg.c */
	uint8_t cred_body[RR_AUTH_BYTES_MAX];
	uint32_t cred_len;

	/* clnt.c */
	bool closed;                     /* destroyed, in the caller's eyes */
	bool dropping;                   /* disconnect() was called, down will follow */
	int drop_err;                    /* what the coming down means, when we know better */
	const char *held_up;             /* why the attempt does not get ahead, or did not; NULL: not known */
	unsigned attempts;               /* failed or useless ones in a row */
	uint32_t random;                 /* state of the jitter */
	uint64_t retry_ns;               /* DOWN: when to try again; 0: when a call comes */
	uint64_t connect_ns;             /* CONNECTING: when to give the attempt up */
	uint64_t down_ns;                /* since when it has not been UP; 0: it is */
	bool away;                       /* attr.away() was called with true */
	uint64_t timer_ns;               /* what the timer is set to; 0: not set */
	struct rpcrdma_timer timer;
	struct rpcrdma_msg bury;         /* frees a client that was destroyed by a callback */
};

struct rr_clnt_ops {
	const char *name;
	/* Allocate clnt->xprt. */
	int (*init)(struct rpcrdma_clnt *c);
	/* Start one attempt; ends in rr_clnt_up() or rr_clnt_down(), not from inside. */
	int (*connect)(struct rpcrdma_clnt *c);
	/* Encode and send. 0; -EMSGSIZE, -EINVAL: this call can never go; -ENOBUFS: not now, the
	 * transport calls rr_clnt_resume() when it can; -ENOTCONN: a down follows. */
	int (*send)(struct rpcrdma_clnt *c, struct rr_call *call);
	/* Take back a call that is out: on return nothing of it is used any more nor within the peer's
	 * reach, call->xprt is NULL, and a reply to it is a stray. May have to give up the connection
	 * (rr_clnt_down() follows, not from inside). May be called from inside any callback.
	 * If call->xprt is not NULL on return, the peer is in the middle of a copy to or from its memory. The
	 * connection is given up; the memory is free when rr_clnt_down() is called, or when a further
	 * cancel() has set call->xprt to NULL.
	 * Return: true if it never left, and so no reply is to be expected. */
	bool (*cancel)(struct rpcrdma_clnt *c, struct rr_call *call);
	/* Give up the connection or the attempt; rr_clnt_down() follows, not from inside. */
	void (*disconnect)(struct rpcrdma_clnt *c, const char *why);
	/* Free everything, waiting for the fabric to let go of it; no callbacks. */
	void (*fini)(struct rpcrdma_clnt *c);
	const char *(*device)(const struct rpcrdma_clnt *c);
	/* name of the strategy, what is kept, in words, and how much of it at most; all but the name only
	 * while connected */
	void (*registration)(const struct rpcrdma_clnt *c, struct rpcrdma_clnt_info *ret);
	const char *(*reach)(const struct rpcrdma_clnt *c); /* "" while not connected */
	void (*modes)(const struct rpcrdma_clnt *c, struct rpcrdma_clnt_info *info); /* fills them in */
};

extern const struct rr_clnt_ops rr_clnt_rdma_ops; /* over any fabric */
extern const struct rr_clnt_ops rr_clnt_tcp_ops;

/* ---- clnt.c: from the transports to the core ------------------------------------------------ */

/** rr_clnt_create - rpcrdma_clnt_create() over a transport of the caller's choice */
must_check int rr_clnt_create(struct rpcrdma_engine *e, const struct rpcrdma_clnt_attr *attr,
			      const struct rr_clnt_ops *ops, struct rpcrdma_clnt **ret);

/** rr_clnt_up - connected; thresholds and flags of @c are set */
void rr_clnt_up(struct rpcrdma_clnt *c);

/** rr_clnt_down - the connection (or the attempt) is over, and no call's memory can be reached */
void rr_clnt_down(struct rpcrdma_clnt *c, int err, const char *why);

/** rr_clnt_held_up - the attempt goes on, but cannot get ahead; @why, which stays where it is, says why if its
 * time passes */
void rr_clnt_held_up(struct rpcrdma_clnt *c, const char *why);

/** rr_clnt_jitter - about @ns: a quarter more or less, so that clients do not come as one */
uint64_t rr_clnt_jitter(struct rpcrdma_clnt *c, uint64_t ns);

/** rr_clnt_due - something of @c is to happen at @due_ns; the timer is to fire by then */
void rr_clnt_due(struct rpcrdma_clnt *c, uint64_t due_ns);

/** rr_clnt_heard - a reply came from a server that was away */
void rr_clnt_heard(struct rpcrdma_clnt *c);

/** rr_clnt_wanted - a call waits: connect, if that was given up */
void rr_clnt_wanted(struct rpcrdma_clnt *c);

/* ---- clnt_call.c --------------------------------------------------------------------------------- */

/** rr_clnt_find - the call that is out with this XID, or NULL */
struct rr_call *rr_clnt_find(struct rpcrdma_clnt *c, uint32_t xid);

/** rr_clnt_replied - the call's memory is the caller's again: finish it
 * @err: 0, or why the reply is no good; @granted: credits in the reply; ignored on TCP
 *
 * Runs the caller's done(), which may start and cancel calls, and so change anything that the
 * transport knows of its connection.
 */
void rr_clnt_replied(struct rpcrdma_clnt *c, struct rr_call *call, int err, const char *why,
		     uint32_t granted);

/** rr_clnt_stray - a reply that rr_clnt_find() knows no call for: one given up, or nobody's */
void rr_clnt_stray(struct rpcrdma_clnt *c, uint32_t xid, uint32_t granted);

/** rr_clnt_resume - after -ENOBUFS */
void rr_clnt_resume(struct rpcrdma_clnt *c);

/** rr_call_init - lists and hash; Return: 0, -ENOMEM */
must_check int rr_call_init(struct rpcrdma_clnt *c);

/** rr_call_fini - no call may be left; harmless on a client that rr_call_init() failed for */
void rr_call_fini(struct rpcrdma_clnt *c);

/** rr_call_pump - send what credits allow */
void rr_call_pump(struct rpcrdma_clnt *c);

/** rr_call_requeue - the connection is gone: what was out waits again, in front and in order */
void rr_call_requeue(struct rpcrdma_clnt *c);

/** rr_call_fail_waiting - finish the calls that wait now, not those that their done() starts */
void rr_call_fail_waiting(struct rpcrdma_clnt *c, int err, const char *why);

/** rr_call_abandon - finish every call of a client that is closed, those that are out too */
void rr_call_abandon(struct rpcrdma_clnt *c, int err, const char *why);

/** rr_call_end_leaving - finish the calls that were LEAVING; after rr_call_requeue() */
void rr_call_end_leaving(struct rpcrdma_clnt *c);

/** rr_call_expire - give up the calls whose deadline has passed
 * Return: the earliest deadline of the others; 0: there is none */
uint64_t rr_call_expire(struct rpcrdma_clnt *c, uint64_t now_ns);

/* ---- clnt_msg.c ----------------------------------------------------------------------------- */

/** rr_clnt_cred - encode the client's own credential once; Return: 0, -EINVAL */
must_check int rr_clnt_cred(struct rpcrdma_clnt *c);

/** rr_clnt_encode - RPC header with credential, then the arguments
 * Return: 0; -EMSGSIZE: buffer too small (s->overflow); -EINVAL: they do not encode. */
must_check int rr_clnt_encode(struct rr_call *call, struct rr_stream *s, void *buf, size_t cap);

/** rr_clnt_decode - RPC reply header and, on success, the results, from a prepared stream
 * Return: as the header says (rr_rpc_errno), or -EBADMSG; *ret_why for people. */
must_check int rr_clnt_decode(struct rr_call *call, struct rr_stream *s, const char **ret_why);

/** rr_clnt_sink_bytes - room for the results' payload */
uint64_t rr_clnt_sink_bytes(const struct rr_call *call);

/** rr_clnt_sink_put - copy payload bytes to [off, off+len) of the sink, which the caller has checked
 * against rr_clnt_sink_bytes(); counts them as copied */
void rr_clnt_sink_put(struct rr_call *call, uint64_t off, const void *src, size_t len);

#endif
