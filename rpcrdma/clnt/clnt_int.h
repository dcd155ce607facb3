/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * clnt_int.h - internals of the requester: the core (clnt.c, clnt_call.c) and the transports
 *
 * Operation:  clnt_call.c owns every call from rpcrdma_clnt_call() to done(): the FIFO of calls that wait for a
 *             connection or a credit, the list of sent calls, the XIDs. clnt.c owns the connection: attempts,
 *             time-outs, reconnects. A transport (clnt_rdma.c, clnt_tcp.c) connects, sends a call and reports
 *             replies. When a connection ends, it ends all access of peers to a call's memory before it reports
 *             `down`.
 *
 *             connect() -> rr_clnt_up() | rr_clnt_down(errno)
 *             send(call) -> ... -> rr_clnt_replied(call) | rr_clnt_down() (then the call is retransmitted on
 *             the next connection) | cancel(call) (then its reply is a stray)
 * Memory:     A call's slot (struct rr_call) belongs to the core; its `xprt` belongs to the transport, from
 *             send() to replied or down.
 * Threads:    The engine's.
 */
#ifndef RR_CLNT_INT_H
#define RR_CLNT_INT_H

#include "base/hash.h"
#include "base/list.h"
#include "credit.h"
#include "rpc_msg.h"
#include "rpcrdma.h"
#include "rpcrdma_lab.h"
#include "stream.h"
#include "sized.h"

struct rr_clnt_ops;

/* Life of a call. */
enum rr_call_state {
	RR_CALL_WAITING, /* in clnt->waiting: no connection or no credit */
	RR_CALL_SENT,    /* in clnt->sent: sent on the current connection */
	RR_CALL_LEAVING, /* in clnt->sent: given up while the peer copies to or from its memory; finished when
	                  * the connection ends. In clnt->leaving: the connection has ended; also of a call that
	                  * is not to be sent again */
	RR_CALL_GONE,    /* in clnt->sent: given up by the caller, but holds its credit until the reply
	                  * arrives or the connection ends; no user, and nothing of the transport unless `late` */
	RR_CALL_DONE,    /* in clnt->free */
};

struct rr_call {
	struct list link;         /* waiting, sent, or free */
	struct hash_node node;    /* clnt->by_xid, while not done */
	struct rpcrdma_clnt *clnt;
	struct rpcrdma_call *user;
	enum rr_call_state state;
	uint32_t xid;
	uint64_t sent_ns;
	uint64_t deadline_ns;     /* 0: none */
	bool sent_before;         /* on an earlier connection */
	bool for_next;            /* WAITING, no_resend: for the next connection; the end of this one is known */
	int err;                  /* LEAVING: arguments of its done() */
	const char *why;
	void *xprt;               /* the transport's part of a sent call */
	size_t ready_bytes;       /* of user->ready, without payload */
	struct rpcrdma_room *room; /* not released yet; NULL: none */
	void *late;               /* GONE: the transport's part, which still uses the room; NULL: nothing does */
};


struct rpcrdma_clnt {
	struct rpcrdma_engine *engine;
	struct rpcrdma_clnt_attr attr;   /* defaults filled in; strings are own copies; lab is set */
	struct rpcrdma_lab lab;          /* what attr.lab points to */
	const struct rr_clnt_ops *ops;
	enum rpcrdma_clnt_state state;
	bool ever_up;
	char why[200];                   /* longest: path of a local socket, and text */
	uint32_t send_inline, recv_inline;
	bool remote_inv;
	uint64_t reconnects;
	void *xprt;                      /* the transport's connection state */

	/* clnt_call.c */
	struct rr_credit credit;
	struct list waiting;             /* FIFO; calls of a lost connection go to its head */
	struct list failing;             /* taken from `waiting` to be failed, one done() at a time */
	struct list sent;                /* oldest first */
	struct list leaving;             /* to be finished, one done() at a time; without a user: its room is to be released */
	struct list free;
	struct call_block *blocks;       /* memory of the slots */
	struct hash by_xid;              /* an XID is its own hash: this process chose it */
	uint32_t next_xid;               /* random start: XIDs of two instances of a client do not collide */
	bool pumping;                    /* rr_call_pump() is on the stack */
	bool blocked;                    /* the transport returned -ENOBUFS and will resume */
	unsigned callbacks;              /* of the user, on the stack now */

	/* clnt_msg.c */
	uint8_t cred_body[RR_AUTH_BYTES_MAX], verf_body[RR_AUTH_BYTES_MAX];
	struct rr_auth cred, verf;       /* of calls without their own */

	/* clnt_lookup.c */
	struct rr_lookup *lookup;        /* of the server's name, in progress */
	struct addrinfo *found;          /* addresses of the name; NULL on the local fabric */
	bool found_early;                /* no attempt has used them: a slow resolver would miss every attempt */
	struct rpcrdma_addr dial;        /* attr.addr with the first of them as a literal address */

	/* clnt.c */
	bool resolving;                  /* CONNECTING: the attempt waits for the look-up */
	bool closed;                     /* destroyed by the caller */
	bool dropping;                   /* disconnect() was called, down will follow */
	int drop_err;                    /* error of the coming down, if the core knows it better */
	int last_err;                    /* of the last down; 0: none */
	const char *held_up;             /* why the attempt does not progress, or did not; NULL: not known */
	unsigned attempts;               /* failed or useless ones in a row */
	uint64_t random;                 /* state of the jitter, which spreads clients over time */
	uint64_t retry_ns;               /* time of the next attempt, or the first; DOWN and 0: with the next call */
	uint64_t connect_ns;             /* CONNECTING: end of the attempt */
	uint64_t down_ns;                /* since when it has not been UP; 0: it is */
	uint64_t sent_ns;                /* time of the last send */
	bool away;                       /* attr.away() was called with true */
	uint64_t timer_ns;               /* what the timer is set to; 0: not set */
	struct rpcrdma_timer timer;
	struct rpcrdma_msg destroy_later;         /* frees a client that a callback destroyed */
};

struct rr_clnt_ops {
	const char *name;
	/* Allocates clnt->xprt. */
	int (*init)(struct rpcrdma_clnt *c);
	/* Starts one attempt; ends in rr_clnt_up() or rr_clnt_down(), not inside this call. */
	int (*connect)(struct rpcrdma_clnt *c);
	/* Encodes and sends. 0; -EMSGSIZE, -EINVAL: this call can never be sent, and call->user->why may say
	 * why; -ENOBUFS: not now, the transport calls rr_clnt_resume() later; -ENOTCONN: a down follows. */
	int (*send)(struct rpcrdma_clnt *c, struct rr_call *call);
	/* Cancels a sent call. On return the transport and the peer no longer use its memory, call->xprt is
	 * NULL, and a reply to it is a stray. May give up the connection (rr_clnt_down() follows, not inside
	 * this call). May be called inside any callback.
	 * If call->xprt is not NULL on return, the peer is in the middle of a copy to or from its memory. The
	 * connection is given up; the memory is free when rr_clnt_down() is called, or when a further cancel()
	 * has set call->xprt to NULL.
	 * If call->late is not NULL on return, the room and the memory of the arguments of the call are still in use, until
	 * rr_clnt_stray(), rr_clnt_let_go() or rr_clnt_down(). Not if the client is closed: then a further cancel() with
	 * call->xprt set to call->late ends that use, too.
	 * Return: true: it was never sent, so no reply will arrive. */
	bool (*cancel)(struct rpcrdma_clnt *c, struct rr_call *call);
	/* Is the end of the connection known? rr_clnt_down() follows then, not inside this call. If no call is in
	 * flight, an end that the engine has not noticed yet is detected here. @look: may make a system call. */
	bool (*is_over)(struct rpcrdma_clnt *c, bool look);
	/* Gives up the connection or the attempt; rr_clnt_down() follows, not inside this call. */
	void (*disconnect)(struct rpcrdma_clnt *c, const char *why);
	/* Frees everything, waiting until the fabric does not use it any more; no callbacks. */
	void (*fini)(struct rpcrdma_clnt *c);
	/* Sets device, reach, the members about registration and modes, and in `unsent` the number of sent calls that
	 * are not completely handed over to the kernel or the device. Without a connection some stay zero. */
	void (*info)(const struct rpcrdma_clnt *c, struct rpcrdma_clnt_info *ret);
};

/** rr_clnt_verf_room - bytes to leave in a reply for its verifier: servers of AUTH_NONE and AUTH_SYS send none */
uint32_t rr_clnt_verf_room(const struct rr_call *call);

/* clnt_lookup.c */

/** rr_lookup_start - finds the addresses of the server, in c->found and c->dial
 * Return: 0: they are known; 1: rr_clnt_found() follows, not inside this call; -ENOMEM, -EAGAIN: no thread. */
must_check int rr_lookup_start(struct rpcrdma_clnt *c);
/** rr_lookup_fini - forgets a look-up in progress; frees the addresses */
void rr_lookup_fini(struct rpcrdma_clnt *c);
/** rr_clnt_found - a look-up has ended: continues the attempt that waits for it */
void rr_clnt_found(struct rpcrdma_clnt *c, int err);

extern const struct rr_clnt_ops rr_clnt_rdma_ops; /* over any fabric */
extern const struct rr_clnt_ops rr_clnt_tcp_ops;

/* ---- clnt.c: from the transports to the core ------------------------------------------------ */

/** rr_clnt_create - rpcrdma_clnt_open() with the given transport */
must_check int rr_clnt_create(struct rpcrdma_engine *e, const struct rpcrdma_clnt_attr *attr,
			      const struct rr_clnt_ops *ops, struct rpcrdma_clnt **ret);

/** rr_clnt_up - reports a connection; thresholds and flags of @c are set */
void rr_clnt_up(struct rpcrdma_clnt *c);

/** rr_clnt_down - reports the end of the connection (or the attempt); peers cannot access any call's memory */
void rr_clnt_down(struct rpcrdma_clnt *c, int err, const char *why);

/** rr_clnt_held_up - reports that the attempt does not progress; @why, a static text, is the reason if it times out */
void rr_clnt_held_up(struct rpcrdma_clnt *c, const char *why);

/** rr_clnt_jitter - returns @ns plus or minus up to a quarter, so that clients do not reconnect at the same time */
uint64_t rr_clnt_jitter(struct rpcrdma_clnt *c, uint64_t ns);

/** rr_clnt_timer_set - makes the timer fire at @due_ns */
void rr_clnt_timer_set(struct rpcrdma_clnt *c, uint64_t due_ns);

/** rr_clnt_due - makes the timer fire by @due_ns */
static inline void rr_clnt_due(struct rpcrdma_clnt *c, uint64_t due_ns)
{
	if (!c->closed && (!c->timer_ns || c->timer_ns > due_ns))
		rr_clnt_timer_set(c, due_ns);
}

/** rr_clnt_report_back - reports a reply from a server that was away */
void rr_clnt_report_back(struct rpcrdma_clnt *c);

/** rr_clnt_wanted - connects for a waiting call, if attempts had stopped; @now: does not wait for the back-off */
void rr_clnt_wanted(struct rpcrdma_clnt *c, bool now);

/** rr_clnt_drop - gives up the connection for a reason of the core; rr_clnt_down() follows */
void rr_clnt_drop(struct rpcrdma_clnt *c, int err, const char *why);

/* ---- clnt_call.c --------------------------------------------------------------------------------- */

/** rr_call_unsend - records that a call leaves the transport's queue without a byte of it having been sent */
static inline void rr_call_unsend(struct rr_call *call)
{
	call->user->sent = call->sent_before;
}

/** rr_clnt_find - returns the sent call with this XID, or NULL */
struct rr_call *rr_clnt_find(struct rpcrdma_clnt *c, uint32_t xid);

/** rr_clnt_find_late - returns the call with this XID that was given up and whose room is in use, or NULL */
struct rr_call *rr_clnt_find_late(struct rpcrdma_clnt *c, uint32_t xid);

/** rr_clnt_let_go - releases the room of a call that was given up, before its late reply */
void rr_clnt_let_go(struct rr_call *call);

/** rr_clnt_replied - finishes a call; its memory belongs to the caller again
 * @err: 0, or the error of the reply; @granted: credits in the reply; ignored on TCP
 *
 * Runs the caller's done(), which may start and cancel calls, and so change any state of the transport's
 * connection.
 */
void rr_clnt_replied(struct rpcrdma_clnt *c, struct rr_call *call, int err, const char *why,
		     uint32_t granted);

/** rr_clnt_stray - handles a reply that rr_clnt_find() found no call for: to a call given up, or to none */
void rr_clnt_stray(struct rpcrdma_clnt *c, uint32_t xid, uint32_t granted);

/** rr_clnt_resume - resumes sending after -ENOBUFS */
void rr_clnt_resume(struct rpcrdma_clnt *c);

/** rr_call_init - initializes lists and hash; Return: 0, -ENOMEM */
must_check int rr_call_init(struct rpcrdma_clnt *c);

/** rr_call_fini - frees the slots; no call may be left. Allowed after a failed rr_call_init() */
void rr_call_fini(struct rpcrdma_clnt *c);

/** rr_call_pump - sends waiting calls while credits allow it */
void rr_call_pump(struct rpcrdma_clnt *c);

/** rr_call_requeue - after the end of a connection or an attempt, moves sent calls to the head of the waiting ones, in
 * order; those that must not be sent again to `leaving`
 * @err: of an attempt to connect that failed: waiting calls with no_resend leave with it; 0: none do for that */
void rr_call_requeue(struct rpcrdma_clnt *c, int err);

/** rr_call_wants_now - does a waiting call want a connection at once, without back-off? */
bool rr_call_wants_now(const struct rpcrdma_clnt *c);

/** rr_call_connected - waiting calls are for this connection now */
void rr_call_connected(struct rpcrdma_clnt *c);

/** rr_call_fail_waiting - finishes the calls that wait now, not those that their done() starts */
void rr_call_fail_waiting(struct rpcrdma_clnt *c, int err, const char *why);

/** rr_call_abandon - finishes every call of a closed client, including sent ones */
void rr_call_abandon(struct rpcrdma_clnt *c, int err, const char *why);

/** rr_call_end_leaving - finishes the calls that were LEAVING; call after rr_call_requeue() */
void rr_call_end_leaving(struct rpcrdma_clnt *c);

/** rr_call_expire - gives up the calls past their deadline
 * Return: the earliest deadline of the others; 0: none */
uint64_t rr_call_expire(struct rpcrdma_clnt *c, uint64_t now_ns);

/* ---- clnt_msg.c ----------------------------------------------------------------------------- */

/** rr_clnt_cred - encodes the client's own credential once; Return: 0, -EINVAL */
must_check int rr_clnt_cred(struct rpcrdma_clnt *c);

/* Where calls are encoded: it grows to the longest one so far. */
struct rr_encode_buf {
	uint8_t *mem; /* of malloc(), or NULL */
	size_t bytes;
};

/** rr_clnt_encode - encodes the RPC header with credential, then the arguments without their payload
 * @s: set up here; its buffer holds the reduced message afterwards
 * @first: size of a new buffer
 * @front: bytes left free at the start of the buffer
 * @apart: the header alone: the call's ready arguments stay where they are; their payload is marked nevertheless
 *
 * Return: 0; -EMSGSIZE: longer than call_bytes_max; -EINVAL: the arguments do not encode, or their payload has no
 * memory: call->user->why says why, or is NULL; -ENOMEM. */
must_check int rr_clnt_encode(struct rr_call *call, struct rr_stream *s, struct rr_encode_buf *buf, size_t first,
			      size_t front, bool apart);

/** rr_clnt_decode - decodes the RPC reply header and, on success, the results, from a prepared stream
 * Return: the error of the header (rr_rpc_errno); -EBADMSG: the results do not decode; -EMSGSIZE: their payload is
 * longer than the sink; -EPROTO; *ret_why is a text for messages. */
must_check int rr_clnt_decode(struct rr_call *call, struct rr_stream *s, const char **ret_why);

/** rr_clnt_open - decodes the RPC reply header in the first @len bytes of a reply
 * @ret_bytes: of the header, on success
 * Return: 0: the results follow; the error of the header; -EPROTO: malformed, or incomplete */
must_check int rr_clnt_open(struct rr_call *call, const void *msg, size_t len, size_t *ret_bytes, const char **ret_why);

/** rr_clnt_take - hands a complete reply over to a call with a room
 * @msg: the reply, in the room or elsewhere; @placed: bytes of the payload that are in the sink
 * Return: 0; errors of rr_clnt_open(); -EMSGSIZE: longer than reply_max */
must_check int rr_clnt_take(struct rr_call *call, uint8_t *msg, size_t len, uint64_t placed, const char **ret_why);

/** rr_clnt_sink_bytes - returns the capacity for the results' payload */
uint64_t rr_clnt_sink_bytes(const struct rr_call *call);

/** rr_clnt_sink_put - copies payload bytes to [off, off+len) of the sink, which the caller has checked against
 * rr_clnt_sink_bytes(); counts them as copied */
void rr_clnt_sink_put(struct rr_call *call, uint64_t off, const void *src, size_t len);

#endif
