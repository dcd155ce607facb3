/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * svc_int.h - what the files of the service side share
 *
 * Operation:  All URLs of a process have one engine, and one SVCXPRT whose descriptor becomes readable when the engine has
 *             work. So every loop of libtirpc calls xp_recv() (svc_xprt.c), which runs the engine without blocking, and
 *             takes the next request from the queues of clients. svc_getreq_common() then dispatches it.
 *
 *               on_call() -> queue -> xp_recv() -> stack -> reply, or xp_stat() -> the transport -> freed
 *                                                    |                              ^
 *                                                    +-> detached, or held for a child of fork()
 *
 *             A dispatch function may run the loop itself: so its requests form a stack (`below`).
 * Memory:     A request belongs to the list or the handle that points to it, then to the transport until on_done() of svc_req.c. It
 *             is freed when it has left the stack as well. Its connection stays as long as `req` is not NULL.
 * Threads:    The thread that runs the loop, except for what a detached request permits (svc_detach.c).
 */
#ifndef RT_SVC_INT_H
#define RT_SVC_INT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <rpc/rpc.h>

#include "base/list.h"
#include "base/util.h"
#include "bulk.h"
#include "enc.h"
#include "rpcrdma.h"
#include "rpcrdma_tirpc.h"

#define RT_SMALL_BYTES 2048u /* replies up to this length need no memory of their own */

/* A URL in service. */
struct rt_listen {
	struct list link;                /* rt_svc.listens */
	char *url;                       /* as the program gave it */
	struct rpcrdma_addr addr;        /* with the selected port */
	struct rpcrdma_listener *listener; /* NULL: not listening, in a child of fork() */
	struct rpcrdma_svc_attr attr;
	size_t max_bytes;
	struct rt_bulk bulk;
	struct sockaddr_storage local;   /* for xp_ltaddr; AF_UNSPEC: the URL has a host name */
	struct list programs;            /* of struct rt_program (svc_bind.c) */
};

/* A peer as a program of libtirpc sees it. */
struct rt_peer {
	struct sockaddr_storage addr;
	const char *netid;
	bool is_local;                   /* its identity comes from the kernel: */
	uid_t uid;
	gid_t gid;
	unsigned ngids;
	gid_t gids[NGRPS];               /* the first of its groups */
};

/* A user or host, however many connections it has (svc_share.c). */
struct rt_client {
	struct list link;
	struct list queue;               /* of struct rt_req: received */
	struct list turn;                /* rt_svc.turns, while it has requests */
	struct rpcrdma_client_id id;
	unsigned refs;                   /* connections, and requests that are charged */
	size_t bytes;                    /* of replies that it has not taken */
};

struct rt_conn {
	struct rt_listen *at;
	struct rt_client *client;
	struct rpcrdma_conn *conn;
	struct rt_peer peer;
};

enum rt_end_kind {
	RT_END_DROP,
	RT_END_RESULTS,
	RT_END_ERROR,
	RT_END_AUTH,
	RT_END_REJECT,                   /* the message is longer than this side accepts */
};

/* How a request ends. */
struct rt_end {
	enum rt_end_kind kind;
	uint32_t stat;                   /* ERROR: enum accept_stat; AUTH: enum auth_stat */
	uint32_t low, high;              /* ERROR with PROG_MISMATCH */
	uint32_t verf_flavor, verf_bytes;
	char verf[MAX_AUTH_BYTES];
};

struct rt_req {
	struct list link;                /* rt_client.queue */
	struct rpcrdma_req *req;         /* NULL: ended */
	struct rt_conn *conn;            /* valid while req is */
	struct rt_req *below;            /* the request whose dispatch function runs the loop that took this one */
	bool on_stack;                   /* its dispatch function has not returned */
	bool is_detached;
	bool is_done;                    /* the transport has no more use for it */
	bool encode_failed;              /* svc_sendreply() failed, and nothing else has replied so far */
	struct list children;            /* of struct rt_child: processes that may reply */
	struct rpcrdma_args args;        /* memory of the transport */
	struct rt_client *charged;       /* for charged_bytes; NULL: none */
	size_t charged_bytes;
	struct rt_wait *wait;            /* a thread waits until it is done; NULL: none */
	struct rt_enc enc;               /* results; buf NULL: none */
	struct iovec iov[3];             /* ... with bulk data */
	void *item;                      /* copy of a short item; NULL: none */
	struct rt_end end;
	struct rpcrdma_msg msg;          /* of another thread, to the engine */
	uint64_t small[RT_SMALL_BYTES / 8];
};

/* A transport handle, with all that libtirpc and programs expect behind its pointers. */
struct rt_xprt {
	SVCXPRT x;                       /* first: programs have only this */
	uint64_t ext[32];                /* xp_p3: libtirpc keeps the authentication of the request here (svc_mt.h) */
	struct sockaddr_storage raddr, laddr;
	char verf[MAX_AUTH_BYTES];
	char netid[8];
	struct rt_req *r;                /* the request that a reply goes to; NULL: none, or replied */
};

struct rt_svc {
	struct rpcrdma_engine *engine;   /* NULL: no URL yet */
	struct rpcrdma_tirpc_attr attr;  /* of the first URL */
	struct list listens;
	struct list turns;               /* of struct rt_client: those with requests */
	struct rt_xprt main;
	struct list clients;             /* of struct rt_client */
	size_t reply_bytes;              /* of all clients */
	struct rt_req *top;              /* of the stack */
	bool recv_failed;                /* xp_recv() returned FALSE: the xp_stat() that follows ends no request */
	bool is_idle;                    /* xp_stat() returned XPRT_IDLE since the last request: a loop may sleep next */
	bool runs;                       /* rpcrdma_svc_run() is the loop, and arms the engine itself */
	unsigned in_a_row;               /* requests since the loop of the program last had its turn */
	int fd;                          /* copy of the engine's descriptor: of main */
	int kick_fd;                     /* makes the engine's descriptor readable */
	struct rpcrdma_watch kick;
	struct rt_req *spare;            /* freed requests, linked by `below` */
	unsigned nspare;
};

extern struct rt_svc rt_svc;

/* svc_create.c */
/** rt_svc_log - a line on stderr, of a library whose programs expect none; at most a few in a second; any thread */
void printf_like(1, 2) rt_svc_log(const char *fmt, ...);
/** rt_svc_kick - makes the descriptor readable, so that the loop calls xp_recv() again */
void rt_svc_kick(void);
/** rt_svc_open - creates the engine, with rt_svc.attr */
must_check int rt_svc_open(void);
/** rt_svc_listen - listens at @l->addr */
must_check int rt_svc_listen(struct rt_listen *l);

/* svc_bind.c */
/** rt_bind_add - registers a program at @l with rpcbind, if there is one, and if it is not registered yet */
void rt_bind_add(struct rt_listen *l, rpcprog_t prog, rpcvers_t vers);
/** rt_bind_again - in a child that listens at @l, registers what the parent had registered */
void rt_bind_again(struct rt_listen *l);
/** rt_bind_end - removes the registrations of @l */
void rt_bind_end(struct rt_listen *l);

/* svc_conn.c */
extern const struct rpcrdma_svc_ops rt_svc_ops;

/* svc_req.c */
/** rt_req_create - Return: NULL: no memory */
struct rt_req *rt_req_create(struct rt_conn *c, struct rpcrdma_req *req);
/** rt_req_get_args - decodes the arguments of @x's request; Return: FALSE: they do not decode */
bool_t rt_req_get_args(struct rt_req *r, struct rt_xprt *x, xdrproc_t filter, void *args);
/** rt_req_encode - makes the reply @m of @x's request ready, in @r->end and @r->enc; the thread that replies
 * Return: FALSE: the results do not encode, or are too long; the request goes on */
bool_t rt_req_encode(struct rt_req *r, struct rt_xprt *x, const struct rpc_msg *m);
/** rt_req_finish - ends a request as @r->end says; it may be freed at once */
void rt_req_finish(struct rt_req *r);
/** rt_req_end - ends a request with an error, or without a reply */
void rt_req_end(struct rt_req *r, enum rt_end_kind kind, uint32_t stat);
/** rt_req_leave - takes a request from the stack, and ends it if nothing else will */
void rt_req_leave(struct rt_req *r);

/* svc_xprt.c */
/** rt_xprt_init - sets up a handle without a request
 * @fd: of xp_fd */
void rt_xprt_init(struct rt_xprt *x, const struct xp_ops *ops, int fd);
/** rt_xprt_set - makes @r the request of a handle; NULL: none */
void rt_xprt_set(struct rt_xprt *x, struct rt_req *r);
bool_t rt_xprt_getargs(SVCXPRT *x, xdrproc_t filter, void *args);
bool_t rt_xprt_freeargs(SVCXPRT *x, xdrproc_t filter, void *args);
extern const struct xp_ops rt_xprt_ops;

static inline struct rt_xprt *rt_xprt_of(SVCXPRT *x)
{
	return container_of(x, struct rt_xprt, x);
}

/* svc_send.c */
/** rt_loop_enter - says that the calling thread runs the loop */
void rt_loop_enter(void);
/** rt_loop_is_here - true: the calling thread is the last that ran it */
bool rt_loop_is_here(void);
/** rt_send - ends a request as @r->end says, and waits until its bulk data has moved; any thread. It may be freed at once */
void rt_send(struct rt_req *r);
/** rt_send_done - wakes the thread that waits */
void rt_send_done(struct rt_wait *w);

/* svc_share.c */
/** rt_share_get - Return: the client of a peer, with one more reference; NULL: no memory */
struct rt_client *rt_share_get(const struct rpcrdma_peer *peer);
void rt_share_put(struct rt_client *c);
/** rt_share_charge - counts the memory of a reply that is on its way */
void rt_share_charge(struct rt_req *r);
void rt_share_uncharge(struct rt_req *r);
/** rt_share_queue - queues a request */
void rt_share_queue(struct rt_req *r);
/** rt_share_next - the first request of the next client that may have one more reply; it stays there; NULL: none */
struct rt_req *rt_share_next(void);
/** rt_share_take - takes a request from its queue; other clients are next */
void rt_share_take(struct rt_req *r);

/* svc_fork.c */
/** rt_fork_watch - from now on, children of fork() are looked after */
void rt_fork_watch(void);
/** rt_fork_is_child - true in a child that has not taken the service over */
bool rt_fork_is_child(void);
/** rt_fork_take_over - opens an engine in a child; does nothing elsewhere
 * Return: 0, or -errno: it will be called again */
int rt_fork_take_over(void);
/** rt_fork_listen - in a process that has taken over: listens at the URLs, if it is time to try; not in callbacks */
void rt_fork_listen(void);
/** rt_fork_reply - in a child: hands a reply that is ready to the parent */
bool_t rt_fork_reply(struct rt_req *r);
/** rt_fork_leave - in a child: the dispatch function that forked has returned */
void rt_fork_leave(struct rt_req *r);
/** rt_fork_forget - nothing that a child sends for @r is wanted any more */
void rt_fork_forget(struct rt_req *r);

#endif
