/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fabric.h - the interface to a reliable-connected RDMA device
 *
 * Operation:  A fabric is an opened device (or the same-host substitute). It has protection domains with
 *             registered memory and windows, completion queues, connection managers, and queue pairs. The
 *             interface resembles verbs, so that the verbs side is a thin layer. All code above it is the same
 *             on every fabric.
 *
 *             A connection, active side:          qp_dial -> event ROUTED -> qp_setup, post_recv...
 *             -> qp_connect -> event ESTABLISHED | FAILED.
 *             Passive side: event REQUEST -> qp_setup, post_recv... -> qp_accept | qp_reject.
 *             Both: qp_disconnect -> every posted work request completes (flushed if necessary) -> qp_destroy.
 *
 *             A disconnected peer is reported in one way: every posted receive completes with RR_WC_FLUSHED.
 *             There is no separate event, so no race. The owner of the completion queue always posts at least
 *             one receive while connected. A queue pair that uses a shared receive queue has no receives of its
 *             own. Instead, a completion reports its end (qp_attr.end), after all of its messages.
 *
 * Memory:     A post copies work requests. The memory behind their SGEs belongs to the fabric until the completion
 *             of that request (or of a later signalled one on the same queue). Receive buffers belong to it until
 *             their completion. A request has one SGE, since devices reserve room for as many as a queue pair asks
 *             for in every slot of its queues.
 * Threads:    A completion queue and all queue pairs on it belong to one thread at a time. Exception: a
 *             connection manager's thread may call qp_setup, post_recv and qp_accept/qp_connect before the
 *             connection is up. A connection manager belongs to one thread. Several threads may use a
 *             protection domain (registration takes its lock).
 * Errors:     0 or -errno. A failed post posts nothing. A completion with an error status moves the queue pair
 *             to the error state: all other posted work completes with RR_WC_FLUSHED. On an error only `done`
 *             and `status` of a completion are valid.
 * See:        doc/design.md; the wrappers below assert the contract on both sides.
 */
#ifndef RR_FABRIC_H
#define RR_FABRIC_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/list.h"
#include "base/util.h"
#include "rpcrdma_clnt.h"

/* Access rights of an SGE or a remote key; names and meanings are those of verbs. */
enum rr_access {
	RR_ACCESS_LOCAL_WRITE = 1u << 0,
	RR_ACCESS_REMOTE_READ = 1u << 1,
	RR_ACCESS_REMOTE_WRITE = 1u << 2,
	RR_ACCESS_MW_BIND = 1u << 3, /* windows may be bound over this region */
};
#define RR_ACCESS_REMOTE (RR_ACCESS_REMOTE_READ | RR_ACCESS_REMOTE_WRITE)

/* A peer's accesses in progress when a key was withdrawn; 0: none. */
enum rr_reach {
	RR_REACH_NOW = 1u << 0,   /* some are in progress; set whenever one of the others is */
	RR_REACH_FILE = 1u << 1,  /* all of them use the file that backs the memory, not its address */
	RR_REACH_PAGES = 1u << 2, /* all of them are disk operations on whole pages (qp_direct) */
};

/* Limits that a device enforces. */
struct rr_fabric_attr {
	unsigned qp_wr_max;          /* depth of a send or a receive queue */
	unsigned srq_wr_max;         /* of a shared receive queue; 0: not supported */
	unsigned rd_atom_max;        /* RDMA Reads outstanding, as initiator and as target */
	uint32_t msg_bytes_max;      /* length of one RDMA Read or Write */
	bool windows;                /* type-2B memory windows */
	bool send_inv;               /* Send-With-Invalidate may be sent */
	bool remote_inv;             /* ... and peers may be told to send it (RFC 8797) */
	bool quiet_polls;            /* a poll of a queue takes its arm back: until the next arm, completions do not make
	                              * the descriptor readable */
	bool client_direct;          /* there is qp_direct, and it may succeed: the peer's memory can be mapped */
	char device[64];             /* "local", "rxe0", "mlx5_0" */
};

#define RR_GROUPS_MAX 1024

/* The peer. Addresses identify it on a network, credentials on the same host. */
struct rr_peer {
	struct sockaddr_storage addr; /* ss_family AF_UNSPEC on the local fabric */
	bool has_cred;                /* the fields below come from the kernel */
	pid_t pid;
	uid_t uid;
	gid_t gid;
	bool groups_unknown;          /* more than fit, or the kernel does not report them: the list is empty */
	unsigned ngroups;             /* supplementary groups */
	gid_t groups[RR_GROUPS_MAX];
	char text[64];                /* for messages: "10.0.0.7:1023", "pid 811 uid 1000" */
};

/** rr_addr_print_socket - prints the address of a peer for messages: "host:port", "[v6]:port"; addr.c */
void rr_addr_print_socket(const struct sockaddr_storage *ss, char *buf, size_t cap);

struct rr_trust; /* local_path.h */

/* Interposers in front of a fabric, and what they keep for an object (filters/filter.h). */
struct rr_filter;
struct rr_filter_state;

struct rr_fabric {
	const struct rr_fabric_ops *ops; /* the fabric's own, or the topmost filter's */
	struct rr_filter *filter;        /* the topmost; NULL: none */
	struct rr_fabric_attr attr;
};

/* Puts filters in front of a fabric that is being opened. */
struct rr_filters {
	int (*push)(struct rr_fabric *fabric, const struct rr_filters *self); /* 0 or -errno */
};

/* A protection domain: registrations and the queue pairs that may use them. */
struct rr_pd {
	struct rr_fabric *fabric;
};

/* Arguments of mr_reg. [addr, addr+len) must stay mapped until mr_dereg has returned. */
struct rr_mr_attr {
	void *addr;
	size_t len;
	unsigned access; /* enum rr_access */
	int fd;          /* memfd backing the range from fd_off on, sealed SHRINK and GROW; or -1 */
	uint64_t fd_off;
	bool dmabuf;     /* fd is a dma-buf instead; addr is no address, but the value in SGEs that means fd_off */
};

struct rr_mr {
	struct rr_pd *pd;
	void *addr;
	size_t len;
	unsigned access;
	uint32_t rkey; /* 0 if registered without remote access: then peers cannot reach any of it */
};

/* A type-2B window: a remote key that is valid from a bind to its invalidation. */
struct rr_mw {
	struct rr_pd *pd;
	uint32_t rkey; /* key of the latest bind posted */
};

/* A receive queue shared by queue pairs on one completion queue. A message takes any posted receive. If there
 * is none, the message waits at its sender. */
struct rr_srq {
	struct rr_fabric *fabric;
	struct rr_pd *pd;
	struct rr_cq *cq;
};

struct rr_wc;

/* Embedded in the posted operation; fn runs on the thread that polls the queue. */
struct rr_done {
	void (*fn)(struct rr_done *done, const struct rr_wc *wc);
};

enum rr_wc_status {
	RR_WC_OK,
	RR_WC_FLUSHED,      /* the queue pair failed before it executed this request */
	RR_WC_LOCAL,        /* local error (length, protection, bind) */
	RR_WC_REM_ACCESS,   /* wrong key, out of bounds, or missing right at the peer */
	RR_WC_REM_OP,       /* the peer rejected it (receive buffer too short) */
	RR_WC_RNR,          /* no receive was posted at the peer, and it has no shared queue: nothing waits for one */
	RR_WC_LOST,         /* no acknowledgement: peer or path lost */
};

/* One completion. */
struct rr_wc {
	struct rr_done *done;
	enum rr_wc_status status;
	struct rr_qp *qp;    /* receives of a shared queue: the receiving one; NULL: it is destroyed or
			      * disconnecting, and there is no message. Others: NULL if the fabric does not know.
			      * Valid on an error as well */
	uint32_t byte_len;   /* receives: bytes of the message */
	bool with_inv;       /* receives: the message invalidated inv_rkey */
	uint32_t inv_rkey;
	bool with_imm;       /* receives: an RDMA Write of byte_len bytes has completed with value imm;
	                      * the receive's buffer is empty */
	uint32_t imm;
};

struct rr_sge {
	void *addr;
	uint32_t len;
	struct rr_mr *mr; /* region that covers [addr, addr+len) */
};

/* WRITE_IMM also consumes a receive at the peer, which completes when the bytes have arrived. */
enum rr_wr_op { RR_WR_SEND, RR_WR_SEND_INV, RR_WR_WRITE, RR_WR_WRITE_IMM, RR_WR_READ, RR_WR_BIND,
		RR_WR_LOCAL_INV };

enum rr_wr_flags {
	RR_WR_SIGNALED = 1u << 0, /* completes in the queue; errors always do */
	RR_WR_FENCE = 1u << 1,    /* waits for earlier RDMA Reads of this queue pair */
};

/* A send-queue request. Unsignalled ones have completed when a later signalled one completes. */
struct rr_wr {
	struct rr_wr *next; /* posted as one chain; NULL ends it */
	struct rr_done *done;
	enum rr_wr_op op;
	unsigned flags;
	struct rr_sge sge;  /* BIND, LOCAL_INV: none */
	uint64_t raddr;     /* WRITE, WRITE_IMM, READ: offset advertised by the peer */
	uint32_t imm;       /* WRITE_IMM: value for the peer's completion */
	uint32_t rkey;      /* WRITE, WRITE_IMM, READ: peer's key. SEND_INV: key to invalidate at the peer.
	                     * LOCAL_INV: own key to invalidate. BIND: the new key */
	struct {
		struct rr_mw *mw;
		struct rr_mr *mr;
		void *addr;
		size_t len;
		unsigned access;
	} bind;             /* BIND only */
};

struct rr_recv {
	struct rr_done *done;
	struct rr_sge sge; /* one buffer; the message must fit */
};

struct rr_cq {
	struct rr_fabric *fabric;
	int fd; /* readable when a completion may wait, after an arm that returned 0 */
	struct rr_filter_state *states;
};

struct rr_qp_attr {
	struct rr_pd *pd;
	struct rr_cq *cq;        /* both directions complete here */
	unsigned sq_depth, rq_depth;
	uint32_t recv_bytes;     /* size of every receive buffer */
	struct rr_srq *srq;      /* source of receives; NULL: they are posted to the queue pair.
				  * rq_depth bounds the receives it uses at once */
	struct rr_done *end;     /* with srq: completes RR_WC_FLUSHED, once, if it was connected */
};

struct rr_srq_attr {
	struct rr_pd *pd;
	struct rr_cq *cq;        /* of all queue pairs that use it */
	unsigned depth;          /* receives posted at once */
	uint32_t recv_bytes;     /* size of each of them */
};

/* Parameters of a connect or an accept. */
struct rr_conn_param {
	const void *priv;        /* private data, copied */
	size_t priv_len;         /* <= RR_PRIV_MAX */
	unsigned initiator_depth;     /* RDMA Reads that this side initiates at once */
	unsigned responder_resources; /* RDMA Reads that this side serves at once */
};
#define RR_PRIV_MAX 56

struct rr_qp {
	struct rr_fabric *fabric;
	struct rr_pd *pd; /* set by qp_setup */
	struct rr_cq *cq;
	struct rr_srq *srq; /* NULL: own receives */
	void *owner;      /* for the user of the interface; the fabric ignores it */
	struct rr_filter_state *states;
	enum rpcrdma_reach reach; /* once connected: how the peer accesses our memory; for messages */
	uint32_t qpn, peer_qpn; /* numbers of both ends for diagnosis, 24 bits, once the peer is known; 0: no number */
	bool loopback;    /* the peer is a queue pair of this fabric too, as far as known */
};

enum rr_cm_event_type {
	RR_CM_ROUTED,      /* the dialled peer is reachable: set up, post receives, connect */
	RR_CM_ESTABLISHED, /* active side: the peer accepted; priv holds its private data */
	RR_CM_FAILED,      /* active side: status gives the reason; only destroy the queue pair */
	RR_CM_REQUEST,     /* passive side: a peer requests a connection; qp is new, the receiver destroys
			    * it. qp->fabric is the device it arrived on, not always the manager's */
	RR_CM_REFUSED,     /* passive side: a peer was refused; status gives the reason, qp is NULL. -EXFULL:
			    * it waits, because ended connections are still being closed */
};

struct rr_cm_event {
	enum rr_cm_event_type type;
	struct rr_qp *qp;
	void *listener_ctx;      /* REQUEST, REFUSED: as passed to listen() */
	int status;              /* FAILED: -ECONNREFUSED, -EHOSTUNREACH, -ETIMEDOUT, ...; REFUSED */
	const void *priv;        /* valid during the callback; zero-padded on some devices */
	size_t priv_len;
	unsigned initiator_depth;     /* RDMA Reads that the receiver of this event may initiate at once */
	unsigned responder_resources;
	const struct rr_peer *peer;   /* REQUEST, REFUSED */
};

typedef void (*rr_cm_fn)(void *ctx, const struct rr_cm_event *ev);

/* A source of connection events: a file descriptor and a function to run when it is readable. */
struct rr_cm {
	struct rr_fabric *fabric;
	int fd;
	rr_cm_fn fn;
	void *ctx;
};

struct rr_listener {
	struct rr_cm *cm;
	void *ctx;
	uint16_t port;    /* verbs: the actual port, also if none was requested */
	bool any_device;  /* requests may arrive on devices other than the manager's */
};

/*
 * The table. Every member is mandatory; a device returns -EOPNOTSUPP for unsupported operations. No function
 * blocks unless its comment says so.
 */
struct rr_fabric_ops {
	const char *name;

	void (*close)(struct rr_fabric *fabric);
	/* In a child of fork(), instead of all other operations: closes the child's copies of descriptors that keep the
	 * parent's connections, as far as no engine watches them. */
	void (*abandon)(struct rr_fabric *fabric);

	int (*pd_create)(struct rr_fabric *fabric, struct rr_pd **ret);
	void (*pd_destroy)(struct rr_pd *pd);

	/* -ENOMEM: limit of pinned memory; -EFAULT: not mapped or not writable; -EOPNOTSUPP: no dma-bufs. May
	 * make a system call. */
	int (*mr_reg)(struct rr_pd *pd, const struct rr_mr_attr *attr, struct rr_mr **ret);
	/* No remote access to the range starts after the return. Does not wait for accesses in progress: see
	 * qp_withdraw. -EBUSY: a window is still bound to it. */
	int (*mr_dereg)(struct rr_mr *mr);
	int (*mw_create)(struct rr_pd *pd, struct rr_mw **ret);
	/* Also invalidates a key that is still bound, as verbs' deallocation does. No bind of it may be
	 * outstanding, unless its queue pair is in the error state. */
	void (*mw_destroy)(struct rr_mw *mw);

	/* The queue has room for all that its queue pairs can post; a device that has no more refuses queue pairs. */
	int (*cq_create)(struct rr_fabric *fabric, struct rr_cq **ret);
	void (*cq_destroy)(struct rr_cq *cq);
	/* Returns up to @max completions, in order per queue pair; 0 if there are none. */
	int (*cq_poll)(struct rr_cq *cq, struct rr_wc *wc, int max);
	/* 0: armed, sleep on cq->fd; 1: a completion arrived meanwhile, poll again. */
	int (*cq_arm)(struct rr_cq *cq);

	/* -EOPNOTSUPP: not supported; -EINVAL: beyond the device's limits. Belongs to the queue's owner. */
	int (*srq_create)(struct rr_fabric *fabric, const struct rr_srq_attr *attr,
			  struct rr_srq **ret);
	/* Call after destroying its queue pairs. Receives posted to it do not complete any more. */
	void (*srq_destroy)(struct rr_srq *srq);
	/* -ENOMEM: the queue is full. */
	int (*srq_post)(struct rr_srq *srq, const struct rr_recv *recv);

	int (*cm_create)(struct rr_fabric *fabric, rr_cm_fn fn, void *ctx, struct rr_cm **ret);
	void (*cm_destroy)(struct rr_cm *cm);
	/* Runs fn for each pending event; the callback may call anything but cm_destroy. */
	void (*cm_process)(struct rr_cm *cm);

	/* @addr: a socket path (local) or "host:port" (verbs). May resolve a name: blocks. */
	int (*listen)(struct rr_cm *cm, const char *addr, void *ctx, struct rr_listener **ret);
	void (*unlisten)(struct rr_listener *l);

	/* @trust: local: only these users may listen on the socket and control its path, else -EPERM; NULL: any.
	 * -EAGAIN: the listener's backlog is full; dialling a little later may succeed. */
	int (*qp_dial)(struct rr_cm *cm, const char *addr, struct rr_trust *trust,
		       struct rr_qp **ret);
	int (*qp_setup)(struct rr_qp *qp, const struct rr_qp_attr *attr);
	int (*qp_connect)(struct rr_qp *qp, const struct rr_conn_param *param);
	int (*qp_accept)(struct rr_qp *qp, const struct rr_conn_param *param);
	/* Refuses a REQUEST; the queue pair still has to be destroyed. */
	int (*qp_reject)(struct rr_qp *qp);
	/* Moves to the error state and notifies the peer. Completions of all posted work follow. May be called
	 * repeatedly. */
	void (*qp_disconnect)(struct rr_qp *qp);
	/* All posted work must have completed, unless it was never connected. */
	void (*qp_destroy)(struct rr_qp *qp);

	/* -ENOMEM: the queue is full (a bug: callers must count). -ENOTCONN: dead. */
	int (*post_send)(struct rr_qp *qp, const struct rr_wr *wr);
	int (*post_recv)(struct rr_qp *qp, const struct rr_recv *recv);

	/* The next two only with attr.client_direct.
	 * Maps the peer's memory [raddr, +len) of key @rkey for data that the kernel writes there (@access:
	 * RR_ACCESS_REMOTE_WRITE) or reads from there (RR_ACCESS_REMOTE_READ), by system calls or O_DIRECT;
	 * this process never loads or stores. -EOPNOTSUPP: this memory cannot be mapped, or not in whole pages;
	 * use RDMA. The key stays busy until qp_direct_end(token). */
	int (*qp_direct)(struct rr_qp *qp, uint32_t rkey, uint64_t raddr, uint32_t len,
			 unsigned access, void **ret_addr, uint32_t *ret_token);
	void (*qp_direct_end)(struct rr_qp *qp, uint32_t token);

	/* Withdraws @rkey from this queue pair: the peer starts no further access with it. Never waits. Returns
	 * the accesses that are still in progress (enum rr_reach); call it again until it returns 0. With
	 * RR_REACH_FILE the memory is free earlier if its pages are replaced by those of another file. Always 0
	 * on devices that wait in deregistration and queue pair destruction. */
	unsigned (*qp_withdraw)(struct rr_qp *qp, uint32_t rkey);

	/* Has the peer ended this idle connection, which no completion has told yet? @look: may make a system call. */
	bool (*qp_is_over)(struct rr_qp *qp, bool look);
};

/* The wrappers; all callers use these. */

static inline void rr_fabric_close(struct rr_fabric *f)
{
	if (f)
		f->ops->close(f);
}

static inline void rr_fabric_abandon(struct rr_fabric *f)
{
	f->ops->abandon(f);
}

static inline must_check int rr_pd_create(struct rr_fabric *f, struct rr_pd **ret)
{
	int rc = f->ops->pd_create(f, ret);

	assert(rc || (*ret)->fabric == f);
	return rc;
}

static inline void rr_pd_destroy(struct rr_pd *pd)
{
	if (pd)
		pd->fabric->ops->pd_destroy(pd);
}

static inline must_check int rr_mr_reg(struct rr_pd *pd, const struct rr_mr_attr *attr,
				       struct rr_mr **ret)
{
	int rc;

	assert(attr->len > 0);
	/* verbs refuses remote write without local write */
	assert(!(attr->access & RR_ACCESS_REMOTE_WRITE) || (attr->access & RR_ACCESS_LOCAL_WRITE));
	rc = pd->fabric->ops->mr_reg(pd, attr, ret);
	assert(rc || (*ret)->pd == pd);
	assert(rc || (attr->access & RR_ACCESS_REMOTE) || (*ret)->rkey == 0);
	return rc;
}

static inline int rr_mr_dereg(struct rr_mr *mr)
{
	return mr ? mr->pd->fabric->ops->mr_dereg(mr) : 0;
}

static inline must_check int rr_mw_create(struct rr_pd *pd, struct rr_mw **ret)
{
	return pd->fabric->ops->mw_create(pd, ret);
}

static inline void rr_mw_destroy(struct rr_mw *mw)
{
	if (mw)
		mw->pd->fabric->ops->mw_destroy(mw);
}

/** rr_mw_next_rkey - returns the key of the next bind: only its low byte changes (as ibv_inc_rkey) */
static inline uint32_t rr_mw_next_rkey(uint32_t rkey)
{
	return (rkey & 0xffffff00u) | ((rkey + 1) & 0xffu);
}

static inline must_check int rr_cq_create(struct rr_fabric *f, struct rr_cq **ret)
{
	return f->ops->cq_create(f, ret);
}

static inline void rr_cq_destroy(struct rr_cq *cq)
{
	if (cq)
		cq->fabric->ops->cq_destroy(cq);
}

static inline int rr_cq_poll(struct rr_cq *cq, struct rr_wc *wc, int max)
{
	int n = cq->fabric->ops->cq_poll(cq, wc, max);

	assert(n >= 0 && n <= max);
	return n;
}

static inline must_check int rr_cq_arm(struct rr_cq *cq)
{
	return cq->fabric->ops->cq_arm(cq);
}

static inline must_check int rr_srq_create(struct rr_fabric *f, const struct rr_srq_attr *attr,
					   struct rr_srq **ret)
{
	int rc;

	assert(attr->depth && attr->recv_bytes && attr->pd->fabric == f && attr->cq->fabric == f);
	rc = f->ops->srq_create(f, attr, ret);
	assert(rc || ((*ret)->pd == attr->pd && (*ret)->cq == attr->cq));
	return rc;
}

static inline void rr_srq_destroy(struct rr_srq *srq)
{
	if (srq)
		srq->fabric->ops->srq_destroy(srq);
}

static inline must_check int rr_srq_post(struct rr_srq *srq, const struct rr_recv *recv)
{
	assert(recv->done);
	return srq->fabric->ops->srq_post(srq, recv);
}

static inline must_check int rr_cm_create(struct rr_fabric *f, rr_cm_fn fn, void *ctx,
					  struct rr_cm **ret)
{
	return f->ops->cm_create(f, fn, ctx, ret);
}

static inline void rr_cm_destroy(struct rr_cm *cm)
{
	if (cm)
		cm->fabric->ops->cm_destroy(cm);
}

static inline void rr_cm_process(struct rr_cm *cm)
{
	cm->fabric->ops->cm_process(cm);
}

static inline must_check int rr_listen(struct rr_cm *cm, const char *addr, void *ctx,
				       struct rr_listener **ret)
{
	return cm->fabric->ops->listen(cm, addr, ctx, ret);
}

static inline void rr_unlisten(struct rr_listener *l)
{
	if (l)
		l->cm->fabric->ops->unlisten(l);
}

static inline must_check int rr_qp_dial(struct rr_cm *cm, const char *addr, struct rr_trust *trust,
					struct rr_qp **ret)
{
	return cm->fabric->ops->qp_dial(cm, addr, trust, ret);
}

static inline must_check int rr_qp_setup(struct rr_qp *qp, const struct rr_qp_attr *attr)
{
	int rc;

	assert(attr->sq_depth && attr->rq_depth && attr->recv_bytes);
	assert(!attr->srq || (attr->end && attr->srq->cq == attr->cq && attr->srq->pd == attr->pd));
	rc = qp->fabric->ops->qp_setup(qp, attr);
	assert(rc || (qp->cq == attr->cq && qp->pd == attr->pd));
	return rc;
}

static inline must_check int rr_qp_connect(struct rr_qp *qp, const struct rr_conn_param *param)
{
	assert(qp->cq && param->priv_len <= RR_PRIV_MAX);
	return qp->fabric->ops->qp_connect(qp, param);
}

static inline must_check int rr_qp_accept(struct rr_qp *qp, const struct rr_conn_param *param)
{
	assert(qp->cq && param->priv_len <= RR_PRIV_MAX);
	return qp->fabric->ops->qp_accept(qp, param);
}

static inline int rr_qp_reject(struct rr_qp *qp)
{
	return qp->fabric->ops->qp_reject(qp);
}

static inline void rr_qp_disconnect(struct rr_qp *qp)
{
	qp->fabric->ops->qp_disconnect(qp);
}

static inline void rr_qp_destroy(struct rr_qp *qp)
{
	if (qp)
		qp->fabric->ops->qp_destroy(qp);
}

static inline must_check int rr_post_send(struct rr_qp *qp, const struct rr_wr *wr)
{
	assert(qp->cq);
	return qp->fabric->ops->post_send(qp, wr);
}

static inline must_check int rr_post_recv(struct rr_qp *qp, const struct rr_recv *recv)
{
	assert(qp->cq && !qp->srq && recv->done);
	return qp->fabric->ops->post_recv(qp, recv);
}

static inline must_check int rr_qp_direct(struct rr_qp *qp, uint32_t rkey, uint64_t raddr,
					  uint32_t len, unsigned access, void **ret_addr,
					  uint32_t *ret_token)
{
	assert(qp->fabric->attr.client_direct);
	assert(access == RR_ACCESS_REMOTE_READ || access == RR_ACCESS_REMOTE_WRITE);
	return qp->fabric->ops->qp_direct(qp, rkey, raddr, len, access, ret_addr, ret_token);
}

static inline bool rr_qp_is_over(struct rr_qp *qp, bool look)
{
	return qp->fabric->ops->qp_is_over(qp, look);
}

static inline unsigned rr_qp_withdraw(struct rr_qp *qp, uint32_t rkey)
{
	unsigned reach = qp->fabric->ops->qp_withdraw(qp, rkey);

	assert(!reach || reach & RR_REACH_NOW);
	return reach;
}

static inline void rr_qp_direct_end(struct rr_qp *qp, uint32_t token)
{
	qp->fabric->ops->qp_direct_end(qp, token);
}

#endif
