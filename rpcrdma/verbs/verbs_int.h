/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * verbs_int.h - internal structures and functions of the verbs fabric
 *
 * Operation:  verbs.c        opening a device, its capabilities and quirks, protection domains
 *             verbs_events.c the fabric's own thread: events of established connections and of the
 *                            device
 *             verbs_addr.c   addresses and their devices
 *             verbs_cm.c     routes, connecting, listening
 *             verbs_cq.c     completion queues; maps a completion to the posted request
 *             verbs_qp.c     queue pairs: set up, post, count, disconnect, destroy
 *             verbs_srq.c    receives that the queue pairs of a completion queue share
 *             verbs_mem.c    regions and windows
 * Memory:     Each object is one allocation around a library object. qp_setup allocates the rings of a
 *             queue pair; the data path allocates nothing.
 * Threads:    Three threads use a queue pair: the connection manager's until accept or ESTABLISHED, then
 *             the completion queue's owner. The fabric's event thread may at any time move it to the
 *             error state, and does nothing else to it. `qp->lock` separates that from its
 *             destruction, and an accept from the first completions of the new connection.
 *             Order: cq->lock, then qp->lock. Neither is held while an object is destroyed: both
 *             libraries wait there for events that the event thread must acknowledge.
 */
#ifndef RR_VERBS_INT_H
#define RR_VERBS_INT_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdatomic.h>

#include "base/list.h"
#include "verbs.h"

/*
 * Deviations of rxe (Linux's software device, seen on 6.1 and 6.12) from a NIC. Code tests the quirks
 * with a flag. Those without a flag are handled on every device, at no cost.
 */
enum verbs_quirk {
	/* A receive with an invalidation has the kernel's flag, 4, instead of IBV_WC_WITH_INV. */
	QUIRK_WITH_INV_IS_4 = 1u << 0,
	/* Invalidating an invalid key, locally or by the peer, is a NULL dereference in the kernel. We never do it
	 * ourselves (struct verbs_mw). But remote invalidation, in either direction, is off unless requested. A
	 * window's bounds are not checked at all; the region's bounds are. */
	QUIRK_UNSAFE_INV = 1u << 1,
	/* QUIRK_LATE_RECV: a receive posted to a queue pair that is already in the error state is not
	 * flushed; another move to the error state flushes it. So the owner's qp_disconnect() moves it
	 * there regardless of the state, and nothing is posted afterwards.
	 *
	 * QUIRK_STALE_CQE: completions outlive their queue pair. So wr_ids contain a slot and a
	 * generation, never an address.
	 *
	 * QUIRK_MW_BLOCKS_QP: destroying a queue pair with a bound window takes 50 seconds and
	 * fails. So its windows are deallocated first.
	 *
	 * QUIRK_NO_OVERRUN: the device does not detect an overrun send queue. So we count, and refuse. */
};

#define VERBS_CQ_PARTS 64u       /* device completion queues behind one of ours */
#define VERBS_CQ_SLOTS 4096u     /* queue pairs on one completion queue */
#define VERBS_STASH 16           /* completions seen while arming */
#define VERBS_MW_BUCKETS 32u
#define VERBS_WR_BATCH 16u       /* requests converted at once, on the stack */
#define VERBS_INDEX 0x7fffffffu  /* bits of a wr_id that count requests of one queue */
#define VERBS_PRIV_MAX 256u      /* maximum of any event, as librdmacm passes it */
#define VERBS_SRQ_SLOT 0xffffu   /* in a wr_id: a receive of the shared queue */

struct verbs_fabric {
	struct rr_fabric base;
	struct ibv_context **devices;   /* of rdma_get_devices(); freed with the fabric */
	struct ibv_context *ctx;        /* opened for this fabric: verbs.c says why */
	unsigned quirks;
	bool iwarp;
	int (*sibling)(void *ctx, const char *device, struct rr_fabric **ret);
	void *sibling_ctx;

	/* verbs_events.c */
	struct rdma_event_channel *up_channel; /* events of established connections */
	int stopfd, epfd;               /* epfd: what the thread sleeps on */
	pthread_t thread;
	pthread_mutex_t lock;           /* protects cqs */
	struct list cqs;
};

struct verbs_pd {
	struct rr_pd base;
	struct ibv_pd *pd;
};

struct verbs_mr {
	struct rr_mr base;
	struct ibv_mr *mr;
};

struct verbs_qp;

/* free -> bound (a bind was posted) -> free (an invalidation was posted, or came from the peer). At most one
 * invalidation is posted for one bind (QUIRK_UNSAFE_INV). */
struct verbs_mw {
	struct rr_mw base;
	struct ibv_mw *mw;              /* NULL: deallocated with the queue pair */
	struct list node;               /* qp->bound, by rkey, while bound */
};

struct verbs_srq {
	struct rr_srq base;             /* of one completion queue */
	struct ibv_srq *srq;
	unsigned depth;
	/* Posted receives, by the index in their wr_id; free entries form a list by index. */
	struct rr_done **done;
	uint32_t *next, free;
};

struct verbs_part {
	struct ibv_cq *cq;
	unsigned depth, reserved;       /* reserved: by queue pairs on it; cq->lock */
	bool shared;                    /* includes a reservation for the shared receive queue; cq->lock */
	unsigned unacked;               /* unacknowledged events */
	bool armed;                     /* an event may arrive */
};

struct verbs_cq {
	struct rr_cq base;
	struct list node;               /* fabric->cqs */
	struct ibv_comp_channel *channel;
	int kickfd;                     /* the owner sleeps on it and the channel: base.fd watches both */
	bool look;                      /* armed since the channel was last drained */
	unsigned turn;                  /* part to poll first */
	struct ibv_wc stash[VERBS_STASH];
	int stashed;

	/* An overrun or a lost device: no further completions arrive, and the outstanding ones are generated here. Set
	 * by the event thread. */
	atomic_bool broken;
	bool broken_seen;

	atomic_uint unconnected;        /* queue pairs on it that are not established */
	pthread_mutex_t lock;           /* protects the slots while unconnected > 0; adding of parts */
	atomic_uint nparts;
	struct verbs_part parts[VERBS_CQ_PARTS];
	unsigned next_slot;
	_Atomic(uint16_t) gen[VERBS_CQ_SLOTS];
	_Atomic(struct verbs_qp *) slots[VERBS_CQ_SLOTS];

	/* The shared receive queue. Its completions identify the queue pair only by number. `seen` caches the slot of a
	 * number; on a miss all slots are searched. */
	struct verbs_srq *srq;
	_Atomic(uint32_t) numbers[VERBS_CQ_SLOTS];
	uint16_t seen[VERBS_CQ_SLOTS];  /* by the low bits of a number */
	struct list ended;              /* queue pairs with an unreported end; cq->lock */
	atomic_uint nended;
};

struct verbs_cm {
	struct rr_cm base;
	struct rdma_event_channel *channel;
	struct list qps;                /* not established: their events arrive on our channel */
};

struct verbs_listener {
	struct rr_listener base;
	struct rdma_cm_id *id;
};

enum verbs_phase {
	PHASE_RESOLVING,                /* active: address, then route */
	PHASE_ROUTED,                   /* active: reachable; passive: requested */
	PHASE_ASKED,                    /* active: connect sent */
	PHASE_OVER,                     /* established, or failed */
};

struct verbs_qp {
	struct rr_qp base;
	struct rdma_cm_id *id;          /* its qp is NULL before setup */
	struct verbs_cm *cm;            /* while on its list */
	struct list cm_node;
	enum verbs_phase phase;         /* connection manager's thread */
	bool passive;
	void *listener_ctx;
	struct rr_peer peer;

	pthread_mutex_t lock;           /* gone, against the event thread; accept, against polling */
	bool gone;                      /* being destroyed: do not use */
	atomic_bool up;                 /* accepted, or ESTABLISHED */
	bool closed;                    /* owner: disconnected, no more posts */
	atomic_bool leaving;            /* as closed, for the event thread; set before the peer is informed */
	atomic_bool over;               /* in the error state: completions tell it, when they are polled */

	unsigned part, slot;            /* of base.cq */
	uint64_t tag;                   /* upper half of its wr_ids */
	unsigned sq_depth, rq_depth;
	/* Rings, indexed by count & mask: entries from tail to head are at the device. */
	struct rr_done **sq, **rq;
	uint32_t sq_mask, sq_head, sq_tail;
	uint32_t rq_mask, rq_head, rq_tail;
	struct rr_done *end;            /* with a shared receive queue: completion of its end */
	struct list ended_node;
	bool end_told;                  /* end is queued or reported; cq->lock */
	struct list bound[VERBS_MW_BUCKETS];
};

static inline struct verbs_fabric *to_fabric(const struct rr_fabric *f)
{
	return container_of((struct rr_fabric *)(uintptr_t)f, struct verbs_fabric, base);
}

static inline struct verbs_pd *to_pd(struct rr_pd *pd)
{
	return container_of(pd, struct verbs_pd, base);
}

static inline struct verbs_mr *to_mr(struct rr_mr *mr)
{
	return container_of(mr, struct verbs_mr, base);
}

static inline struct verbs_mw *to_mw(struct rr_mw *mw)
{
	return container_of(mw, struct verbs_mw, base);
}

static inline struct verbs_cq *to_cq(struct rr_cq *cq)
{
	return container_of(cq, struct verbs_cq, base);
}

static inline struct verbs_qp *to_qp(struct rr_qp *qp)
{
	return container_of(qp, struct verbs_qp, base);
}

static inline struct verbs_srq *to_srq(const struct rr_srq *srq)
{
	return container_of((struct rr_srq *)(uintptr_t)srq, struct verbs_srq, base);
}

static inline struct verbs_cm *to_cm(struct rr_cm *cm)
{
	return container_of(cm, struct verbs_cm, base);
}

/* An identifier's context is librdmacm's own, of the same device. */
static inline bool is_device_of(const struct verbs_fabric *f, const struct rdma_cm_id *id)
{
	return id->verbs && id->verbs->device == f->ctx->device;
}

static inline struct ibv_sge verbs_sge(const struct rr_sge *s)
{
	return (struct ibv_sge){ .addr = (uintptr_t)s->addr,
				 .length = s->len,
				 .lkey = s->mr ? to_mr(s->mr)->mr->lkey : 0 };
}

/* Converts an errno of a library to our return value: never 0. */
static inline int verbs_err(int err)
{
	return err > 0 ? -err : err < 0 ? err : -EIO;
}

/* verbs.c */
/** rr_verbs_nonblock - lets reads of a library's descriptor return -EAGAIN; Return: 0, -errno */
int rr_verbs_nonblock(int fd);

/* verbs_addr.c */
int rr_verbs_addr_parse(const char *addr, bool passive, struct sockaddr_storage *ret);
bool rr_verbs_addr_is_any(const struct sockaddr_storage *ss);
void rr_verbs_bind_resv(struct rdma_cm_id *id, const struct sockaddr_storage *peer);

/* verbs_events.c */
int rr_verbs_events_start(struct verbs_fabric *f);
void rr_verbs_events_stop(struct verbs_fabric *f);
void rr_verbs_events_abandon(struct rr_fabric *fabric);

/* verbs_mem.c */
int rr_verbs_mr_reg(struct rr_pd *pd, const struct rr_mr_attr *attr, struct rr_mr **ret);
int rr_verbs_mr_dereg(struct rr_mr *mr);
int rr_verbs_mw_create(struct rr_pd *pd, struct rr_mw **ret);
void rr_verbs_mw_destroy(struct rr_mw *mw);
int rr_verbs_mw_bind(struct verbs_qp *qp, const struct rr_wr *wr, struct ibv_send_wr *out);
struct verbs_mw *rr_verbs_mw_find(struct verbs_qp *qp, uint32_t rkey);
void rr_verbs_mw_free_all(struct verbs_qp *qp);

/* verbs_cq.c */
int rr_verbs_cq_create(struct rr_fabric *fabric, struct rr_cq **ret);
void rr_verbs_cq_destroy(struct rr_cq *cq);
int rr_verbs_cq_poll(struct rr_cq *cq, struct rr_wc *wc, int max);
int rr_verbs_cq_arm(struct rr_cq *cq);
int rr_verbs_cq_attach(struct verbs_cq *cq, struct verbs_qp *qp);
void rr_verbs_cq_detach(struct verbs_cq *cq, struct verbs_qp *qp);
void rr_verbs_cq_break(struct verbs_cq *cq);
void rr_verbs_cq_number(struct verbs_cq *cq, const struct verbs_qp *qp);
void rr_verbs_cq_ended(struct verbs_cq *cq, struct verbs_qp *qp);
void rr_verbs_cq_unshare(struct verbs_cq *cq);

/* verbs_srq.c */
int rr_verbs_srq_create(struct rr_fabric *fabric, const struct rr_srq_attr *attr,
			struct rr_srq **ret);
void rr_verbs_srq_destroy(struct rr_srq *srq);
int rr_verbs_srq_post(struct rr_srq *srq, const struct rr_recv *recv);
struct rr_done *rr_verbs_srq_take(struct verbs_srq *srq, uint32_t index);
struct rr_done *rr_verbs_srq_take_any(struct verbs_srq *srq);

/* verbs_cm.c */
int rr_verbs_cm_create(struct rr_fabric *fabric, rr_cm_fn fn, void *ctx, struct rr_cm **ret);
void rr_verbs_cm_destroy(struct rr_cm *cm);
void rr_verbs_cm_process(struct rr_cm *cm);
int rr_verbs_listen(struct rr_cm *cm, const char *addr, void *ctx, struct rr_listener **ret);
void rr_verbs_unlisten(struct rr_listener *l);
int rr_verbs_qp_dial(struct rr_cm *cm, const char *addr, struct rr_trust *trust,
		     struct rr_qp **ret);
int rr_verbs_qp_connect(struct rr_qp *qp, const struct rr_conn_param *param);
int rr_verbs_qp_accept(struct rr_qp *qp, const struct rr_conn_param *param);
int rr_verbs_qp_reject(struct rr_qp *qp);
int rr_verbs_channel(struct rdma_event_channel **ret);

/* verbs_qp.c */
int rr_verbs_qp_new(struct rr_fabric *fabric, struct rdma_cm_id *id, struct verbs_qp **ret);
int rr_verbs_qp_setup(struct rr_qp *qp, const struct rr_qp_attr *attr);
void rr_verbs_qp_to_error(struct verbs_qp *qp);
void rr_verbs_qp_disconnect(struct rr_qp *qp);
void rr_verbs_qp_destroy(struct rr_qp *qp);
int rr_verbs_post_send(struct rr_qp *qp, const struct rr_wr *wr);
int rr_verbs_post_recv(struct rr_qp *qp, const struct rr_recv *recv);

#endif
