/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * cl_int.h - a CLIENT of libtirpc: its handle and its calls
 *
 * Threads:  rt_handle.lock protects what is marked "lock". The thread that leads (cl_lead.c) owns the engine and all that
 *           is marked "engine"; visitors of the engine do for a moment. Members that are _Atomic may change at any time,
 *           without the lock. The rest does not change after creation.
 */
#ifndef RT_CL_INT_H
#define RT_CL_INT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "base/list.h"
#include "bulk.h"
#include "cl_mem.h"
#include "dec.h"
#include "enc.h"
#include "rpcrdma_clnt.h"
#include "rpcrdma_tirpc.h"

#define RT_AUTH_SYS_WORDS 204u /* a credential and a verifier, each of at most 8 + 400 bytes, in words */

/* xdr_void() as a filter: its type differs. */
#define RT_XDR_VOID ((xdrproc_t)(void (*)(void))xdr_void)

#define RT_NO_REPLY UINT32_MAX /* rpcrdma_status.reply_stat */

/* How a call ended, for a user. */
struct rt_outcome {
	struct rpc_err err;
	char why[160];
};

enum rt_call_flag {
	RT_CALL_DONE = 1u << 0,   /* done() has run */
	RT_CALL_LEADS = 1u << 1,  /* another thread has passed the role to that of the call */
	RT_CALL_SENT = 1u << 2,   /* a batched call has been sent */
	RT_CALL_SLEEPS = 1u << 3, /* the thread of the call sleeps until one of the above */
};

/* A call. Recycled: memory of the handle. It has three references: of its thread (rt_cl_get()), which a batched call
 * outlives; until done() (taken by rt_cl_run()); until released() (taken by rt_cl_start()). */
struct rt_call {
	struct rpcrdma_call call;
	struct rpcrdma_msg start;  /* to the thread that leads */
	struct rt_handle *handle;
	struct list link;          /* lock: of the handle's idle calls, or followers */
	_Atomic unsigned refs;
	_Atomic uint32_t flags;    /* enum rt_call_flag; a futex */
	uint32_t goal;             /* those that its thread waits for */
	bool batched;              /* no thread waits for its reply */
	bool flushes;              /* a reply to it says that the batched calls before it have been executed */
	struct list in_batch;      /* engine: batched calls without a reply */
	int err;                   /* of done() */
	char why[160];

	struct rt_enc enc;         /* arguments */
	struct rt_mem *args_mem;   /* ... their memory, if it is registered; NULL */
	struct rpcrdma_ready ready; /* ... for the transport */
	struct iovec args, item;   /* ... of ready */
	struct rpcrdma_cred cred;
	struct rpcrdma_auth auth_cred, auth_verf;
	uint32_t auth[RT_AUTH_SYS_WORDS];
	const struct rpcrdma_bulk *row; /* of the table; NULL */

	struct rpcrdma_verf verf;  /* of the reply */
	struct rpcrdma_status status;
	struct rpcrdma_room room;  /* memory of the results: mem, or small */
	struct rt_mem *mem;        /* NULL: none */
	struct iovec sink;         /* for the item of the results: of mem, or of the caller; 0: none */
	const void *preset;        /* memory that the caller has set for that item, or NULL; ... */
	size_t preset_bytes;       /* ... its length */
	uint64_t small[];          /* first buffer of the arguments, inline_bytes, and of results, rt_small_bytes() */
};

struct rt_handle {
	CLIENT client;             /* what the program has */
	uint64_t serial;           /* never used again: the name of the handle in per-thread outcomes */
	unsigned forks;            /* of the process that created it */
	struct rpcrdma_engine *engine;
	struct rpcrdma_clnt *clnt; /* engine */
	struct rpcrdma_clnt_attr attr; /* of clnt */
	enum rpcrdma_clnt_state state; /* engine: of clnt */
	unsigned in_flight;        /* engine: calls of clnt that have not ended */
	_Atomic unsigned unreleased; /* calls whose memory clnt has: late replies may still arrive there */
	_Atomic uint64_t copied;   /* bytes of bulk items, not counted yet */
	struct list link;          /* list of all: see cl_reclaim.c */
	struct netbuf peer;        /* socket address */
	struct sockaddr_storage peer_addr;
	size_t max_bytes;
	uint32_t inline_bytes, credits;
	bool resend;
	uint64_t spin_ns;          /* how long a follower yields before it sleeps; 0: it sleeps at once */
	_Atomic uint32_t sleeps_left; /* followers that sleep at once, because yielding did not help */
	_Atomic uint32_t futile;   /* its value after the last wait that was in vain: doubles, halves on success */
	struct rt_bulk bulk;
	_Atomic uint32_t prog, vers, xid;

	pthread_mutex_t auth_lock; /* an AUTH changes when it is refreshed; taken without `lock` */

	pthread_mutex_t lock;
	pthread_cond_t unused;     /* lock: users has become 0 */
	unsigned users;            /* lock: threads inside of calls */
	bool led;                  /* lock: a thread leads */
	struct list followers;     /* lock: calls whose threads do not lead */
	struct list idle;          /* lock: calls that are not in use */
	struct list batch;         /* engine: batched calls without a reply, in order */
	bool forget;               /* engine: ... their credits must be returned */
	_Atomic uint32_t unanswered; /* length of that list */
	_Atomic uint32_t granted;  /* credits of the connection; 0: not known */
	struct timeval wait;       /* lock: time-out of calls */
	bool wait_set;             /* lock: by clnt_control() */
};

static inline struct rt_handle *rt_handle_of(CLIENT *clnt)
{
	return clnt->cl_private;
}

/* Longest reply that needs no other memory. */
static inline size_t rt_small_bytes(const struct rt_handle *h)
{
	return h->inline_bytes;
}

/* ---- cl_call.c ---- */

/** rt_cl_exchange - sends a call whose arguments are encoded, and waits for its reply; with another credential again, if
 * the server rejects the first; checks the verifier */
enum clnt_stat rt_cl_exchange(struct rt_call *c, struct rt_outcome *o);
/** rt_cl_call - makes a call, as clnt_call() */
enum clnt_stat rt_cl_call(CLIENT *clnt, rpcproc_t proc, xdrproc_t xargs, void *args, xdrproc_t xres, void *res,
			  struct timeval timeout);

/* ---- cl_args.c ---- */

/** rt_cl_encode - encodes the arguments of a call
 * @waits: the thread waits for the reply, so the bulk item need not be copied
 *
 * Return: RPC_SUCCESS, or RPC_CANTENCODEARGS; sets the outcome then */
enum clnt_stat rt_cl_encode(struct rt_call *c, xdrproc_t xargs, void *args, bool waits, struct rt_outcome *o);
/** rt_cl_args - the encoded arguments, for the transport */
const struct rpcrdma_ready *rt_cl_args(struct rt_call *c);
/** rt_cl_args_to_heap - gives registered memory of the arguments back, before a wait for more; Return: 0 or -ENOMEM */
must_check int rt_cl_args_to_heap(struct rt_call *c);
/** rt_cl_args_free - frees the memory of the arguments */
void rt_cl_args_free(struct rt_call *c);

/* ---- cl_calls.c ---- */

/** rt_cl_get - enters the handle, and returns an unused call; Return: NULL: no memory */
struct rt_call *rt_cl_get(struct rt_handle *h);
/** rt_cl_put - drops the reference of its thread, which leaves the handle */
void rt_cl_put(struct rt_call *c);
/** rt_cl_hold - adds the reference of the transport */
void rt_cl_hold(struct rt_call *c);
/** rt_cl_drop - drops that reference; the last one makes the call idle */
void rt_cl_drop(struct rt_call *c);
/** rt_cl_free_idle - frees the calls of a handle that no thread uses */
void rt_cl_free_idle(struct rt_handle *h);

/* ---- cl_room.c ---- */

/** rt_cl_room - gets memory for the results of a call; waits for it in order
 * @xres, @res: of the caller; NULL: no results are wanted
 * @until_ns: when to give up
 *
 * Return: RPC_SUCCESS, RPC_TIMEDOUT, RPC_SYSTEMERROR; sets the outcome otherwise */
enum clnt_stat rt_cl_room(struct rt_call *c, xdrproc_t xres, const void *res, uint64_t until_ns, struct rt_outcome *o);

/* ---- cl_reclaim.c ---- */

/** rt_cl_enlist, rt_cl_delist - adds a handle to the list of all, and removes it */
void rt_cl_enlist(struct rt_handle *h);
void rt_cl_delist(struct rt_handle *h);
/** rt_cl_reclaim - gets memory back from calls whose threads have gone: runs the engines of unused handles */
void rt_cl_reclaim(void);
/** rt_cl_reclaim_own - the same of a handle that this thread leads, when the last call has ended */
void rt_cl_reclaim_own(struct rt_handle *h);

/* ---- cl_start.c: the seam to the transport ---- */

/** rt_cl_start - starts a call whose arguments and credential are encoded; on the engine. It always ends with
 * rt_cl_ended(). First it replaces the connection if batched calls have used up its credits. */
void rt_cl_start(struct rt_call *c);

/* ---- cl_lead.c ---- */

/** rt_cl_run - starts a call and returns when it has ended; a batched one: when it has been sent */
void rt_cl_run(struct rt_call *c);
/** rt_cl_ended - notes the end of a call; on the engine */
void rt_cl_ended(struct rt_call *c, int err, const char *why);
/** rt_cl_try_lead - returns true if no thread leads: this one does now, without a call, until rt_cl_pass_role() */
bool rt_cl_try_lead(struct rt_handle *h);
/** rt_cl_pass_role - passes the role to a thread whose call has not ended, if there is one */
void rt_cl_pass_role(struct rt_handle *h);
/** rt_cl_tell - sets a flag of a call, and wakes its thread */
void rt_cl_tell(struct rt_call *c, enum rt_call_flag flag);

/* ---- cl_batch.c ---- */

/** rt_cl_flush - before a batched call: if too many have no reply, makes the server execute them
 * Return: RPC_SUCCESS, or as clnt_call() */
enum clnt_stat rt_cl_flush(struct rt_handle *h, struct rt_outcome *o);
/** rt_cl_batch_started - notes that a batched call, or one that flushes, was started; on the engine */
void rt_cl_batch_started(struct rt_call *c);
/** rt_cl_batch_ended - ... that it has ended */
void rt_cl_batch_ended(struct rt_call *c);
/** rt_cl_batch_tend - tells threads of batched calls that these have been sent; returns credits; on the engine, but in none
 * of its callbacks other than messages */
void rt_cl_batch_tend(struct rt_handle *h);

/* ---- cl_auth.c ---- */

/** rt_cl_marshal - encodes credential and verifier of the handle into the call
 * Return: RPC_SUCCESS, RPC_CANTENCODEARGS, RPC_AUTHERROR (RPCSEC_GSS); sets the outcome otherwise */
enum clnt_stat rt_cl_marshal(struct rt_call *c, struct rt_outcome *o);
/** rt_cl_validate - checks the verifier of a reply; Return: as above */
enum clnt_stat rt_cl_validate(struct rt_call *c, struct rt_outcome *o);
/** rt_cl_refresh - asks the credential for another one; Return: true: call again */
bool rt_cl_refresh(struct rt_call *c, const struct rt_outcome *o);

/* ---- cl_outcome.c ---- */

/** rt_cl_set_outcome - makes @o the last outcome of this thread's calls on a handle */
void rt_cl_set_outcome(const struct rt_handle *h, const struct rt_outcome *o);
/** rt_cl_fail - sets an outcome; Return: @stat
 * @err: -errno or 0 */
enum clnt_stat rt_cl_fail(struct rt_outcome *o, enum clnt_stat stat, int err, const char *why);
/** rt_cl_judge - sets the outcome of a call that has ended; Return: its status */
enum clnt_stat rt_cl_judge(const struct rt_call *c, struct rt_outcome *o);
/** rt_cl_geterr - as clnt_geterr() */
void rt_cl_geterr(CLIENT *clnt, struct rpc_err *ret);

/* ---- cl_create.c ---- */

/** rt_cl_reopen - replaces the connection; on the engine, but in none of its callbacks other than messages */
void rt_cl_reopen(struct rt_handle *h);

/* ---- cl_control.c ---- */

/** rt_cl_control - as clnt_control() */
bool_t rt_cl_control(CLIENT *clnt, u_int request, void *info);
/** rt_cl_time_ok - is it a time-out that clnt_control() accepts? */
bool rt_cl_time_ok(const struct timeval *t);

#endif
