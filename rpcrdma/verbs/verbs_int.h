/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * verbs_int.h - inside the verbs fabric: what its objects are made of
 *
 * Operation:  verbs.c        opening a device, what it can do, its quirks, protection domains
 *             verbs_events.c the fabric's own thread: what happens to connections that are up, and
 *                            to the device
 *             verbs_addr.c   addresses, and the device that each belongs to
 *             verbs_cm.c     routes, connecting, listening
 *             verbs_cq.c     completion queues, and from a completion back to what was posted
 *             verbs_qp.c     queue pairs: set up, post, count, disconnect, destroy
 *             verbs_srq.c    receives that the queue pairs of a completion queue share
 *             verbs_mem.c    regions and windows
 * Memory:     Each object is one allocation around what the library gave; a queue pair's rings are
 *             allocated by qp_setup, and the data path allocates nothing.
 * Threads:    A queue pair knows three: the connection manager's up to accept or ESTABLISHED, its
 *             completion queue's owner from then on, and at any time the fabric's event thread,
 *             which does one thing to it: move it to the error state. `qp->lock` keeps that apart
 *             from its destruction, and an accept from the first completions of the new connection.
 *             Order: cq->lock, then qp->lock. Neither is held while something is destroyed: both
 *             libraries wait there for events that the event thread has yet to acknowledge.
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
 * What rxe (Linux's software device, seen on 6.1 and 6.12) does otherwise than a NIC, by name. The
 * flags are asked for; what stands without one is catered for on every device, as nothing is lost.
 */
enum verbs_quirk {
	/* A receive that carried an invalidation shows the kernel's flag, 4, not IBV_WC_WITH_INV. */
	QUIRK_WITH_INV_IS_4 = 1u << 0,
	/* Invalidating what is not valid, from here or by the peer, is a NULL dereference in the
	 * kernel: we never do it ourselves (struct verbs_mw), but peers are not told that they may, nor
	 * is it done for them, unless asked for. A window's bounds are not checked at all: the region's
	 * are. */
	QUIRK_UNSAFE_INV = 1u << 1,
	/* QUIRK_LATE_RECV: a receive posted to a queue pair that is in the error state already is not
	 * flushed; a further move to the error state does it. So the owner's qp_disconnect() moves it
	 * there whatever the state was, and nothing is posted after.
	 *
	 * QUIRK_STALE_CQE: completions outlive their queue pair. So wr_ids name a slot and a
	 * generation, never memory.
	 *
	 * QUIRK_MW_BLOCKS_QP: destroying a queue pair with a window bound to it takes 50 seconds and
	 * ends badly. So its windows are deallocated before it.
	 *
	 * QUIRK_NO_OVERRUN: an overrun send queue is not noticed. So we count, and refuse. */
};

#define VERBS_CQ_PARTS 64u       /* completion queues of the device behind one of ours */
#define VERBS_CQ_SLOTS 4096u     /* queue pairs on one completion queue */
#define VERBS_STASH 16           /* completions seen while arming */
#define VERBS_MW_BUCKETS 32u
#define VERBS_WR_BATCH 16u       /* requests converted at once, on the stack ... */
#define VERBS_SGE_BATCH 64u      /* ... with so many entries; every device's sge_max is at most that */
#define VERBS_INDEX 0x7fffffffu  /* bits of a wr_id that count requests of one queue */
#define VERBS_PRIV_MAX 256u      /* of any event, as librdmacm passes it */
#define VERBS_SRQ_SLOT 0xffffu   /* in a wr_id: a receive of the shared queue */

struct verbs_fabric {
	struct rr_fabric base;
	struct ibv_context **devices;   /* of rdma_get_devices(): lives as long as the fabric */
	struct ibv_context *ctx;
	unsigned quirks;
	bool iwarp;
	int (*sibling)(void *ctx, const char *device, struct rr_fabric **ret);
	void *sibling_ctx;

	/* verbs_events.c */
	struct list node;               /* all fabrics of the process that are open */
	struct rdma_event_channel *up_channel; /* events of connections that are up */
	int stopfd;
	pthread_t thread;
	pthread_mutex_t lock;           /* cqs */
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

/* free -> bound (a bind was posted) -> free (an invalidation was posted, or came from the peer).
 * At most one invalidation is ever posted for one bind (QUIRK_UNSAFE_INV). */
struct verbs_mw {
	struct rr_mw base;
	struct ibv_mw *mw;              /* NULL: taken away with the queue pair */
	struct list node;               /* qp->bound, by rkey, while bound */
};

struct verbs_srq {
	struct rr_srq base;             /* of one completion queue */
	struct ibv_srq *srq;
	unsigned depth;
	/* What is posted, by the index in its wr_id; free ones are a list by index. */
	struct rr_done **done;
	uint32_t *next, free;
};

struct verbs_part {
	struct ibv_cq *cq;
	unsigned depth, reserved;       /* reserved: of queue pairs on it; cq->lock */
	bool shared;                    /* reserved for the shared receive queue as well; cq->lock */
	unsigned unacked;               /* events */
	bool armed;                     /* an event may come */
};

struct verbs_cq {
	struct rr_cq base;
	struct list node;               /* fabric->cqs */
	struct ibv_comp_channel *channel;
	int epfd, kickfd;               /* what the owner sleeps on: channel and kick */
	unsigned depth_max;
	bool look;                      /* armed since the last look at the channel */
	unsigned turn;                  /* part to be polled first */
	struct ibv_wc stash[VERBS_STASH];
	int stashed;

	/* An overrun or the loss of the device: no completion comes any more, and those that are owed
	 * are made up here. Set by the event thread. */
	atomic_bool broken;
	bool broken_seen;

	atomic_uint strangers;          /* queue pairs on it that are not up */
	pthread_mutex_t lock;           /* the slots while there are strangers; adding of parts */
	atomic_uint nparts;
	struct verbs_part parts[VERBS_CQ_PARTS];
	unsigned next_slot;
	_Atomic(uint16_t) gen[VERBS_CQ_SLOTS];
	_Atomic(struct verbs_qp *) slots[VERBS_CQ_SLOTS];

	/* The shared receive queue. A completion of it names the queue pair by its number alone: the
	 * slot is where one of that number was last seen, or has to be looked for. */
	struct verbs_srq *srq;
	_Atomic(uint32_t) numbers[VERBS_CQ_SLOTS];
	uint16_t seen[VERBS_CQ_SLOTS];  /* by the low bits of a number */
	struct list ended;              /* queue pairs whose end is to be told; cq->lock */
	atomic_uint nended;
};

struct verbs_cm {
	struct rr_cm base;
	struct rdma_event_channel *channel;
	struct list qps;                /* not up: their events come by our channel */
};

struct verbs_listener {
	struct rr_listener base;
	struct rdma_cm_id *id;
};

enum verbs_phase {
	PHASE_RESOLVING,                /* active: address, then route */
	PHASE_ROUTED,                   /* active: reachable; passive: wants in */
	PHASE_ASKED,                    /* active: connect sent */
	PHASE_OVER,                     /* up, or never will be */
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
	bool gone;                      /* being destroyed: hands off */
	atomic_bool up;                 /* accepted, or ESTABLISHED */
	bool closed;                    /* owner: disconnected, no more posts */
	atomic_bool leaving;            /* the same for the event thread, before the peer is told */

	unsigned part, slot;            /* of base.cq */
	uint64_t tag;                   /* upper half of its wr_ids */
	unsigned sq_depth, rq_depth, sge_max;
	uint32_t inline_max;
	/* Rings, indexed by count & mask: from tail to head is at the device. */
	struct rr_done **sq, **rq;
	uint32_t sq_mask, sq_head, sq_tail;
	uint32_t rq_mask, rq_head, rq_tail;
	struct rr_done *end;            /* with a shared receive queue: its completion ... */
	struct list ended_node;
	bool end_told;                  /* ... is on its way, or over; cq->lock */
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

/* An errno that a library left, as we return it: never 0. */
static inline int verbs_err(int err)
{
	return err > 0 ? -err : err < 0 ? err : -EIO;
}

/* verbs.c */
void rr_verbs_mutex_init(pthread_mutex_t *m);
bool rr_verbs_any_device(void);

/* verbs_addr.c */
int rr_verbs_addr_parse(const char *addr, bool passive, struct sockaddr_storage *ret);
bool rr_verbs_addr_is_any(const struct sockaddr_storage *ss);

/* verbs_events.c */
int rr_verbs_events_start(struct verbs_fabric *f);
void rr_verbs_events_stop(struct verbs_fabric *f);
void rr_verbs_up_event(struct verbs_qp *qp, enum rdma_cm_event_type event);

/* verbs_mem.c */
int rr_verbs_mr_reg(struct rr_pd *pd, const struct rr_mr_attr *attr, struct rr_mr **ret);
int rr_verbs_mr_dereg(struct rr_mr *mr);
int rr_verbs_mw_create(struct rr_pd *pd, struct rr_mw **ret);
void rr_verbs_mw_destroy(struct rr_mw *mw);
int rr_verbs_mw_bind(struct verbs_qp *qp, const struct rr_wr *wr, struct ibv_send_wr *out);
struct verbs_mw *rr_verbs_mw_find(struct verbs_qp *qp, uint32_t rkey);
void rr_verbs_mw_free_all(struct verbs_qp *qp);
unsigned rr_verbs_access(const struct verbs_fabric *f, unsigned access);

/* verbs_cq.c */
int rr_verbs_cq_create(struct rr_fabric *fabric, unsigned depth, struct rr_cq **ret);
void rr_verbs_cq_destroy(struct rr_cq *cq);
int rr_verbs_cq_fd(struct rr_cq *cq);
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
int rr_verbs_cm_fd(struct rr_cm *cm);
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
int rr_verbs_qp_setup(struct rr_qp *qp, struct rr_qp_attr *attr);
void rr_verbs_qp_to_error(struct verbs_qp *qp);
void rr_verbs_qp_disconnect(struct rr_qp *qp);
void rr_verbs_qp_destroy(struct rr_qp *qp);
int rr_verbs_post_send(struct rr_qp *qp, const struct rr_wr *wr);
int rr_verbs_post_recv(struct rr_qp *qp, const struct rr_recv *recv);

#endif
