/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * reg_int.h - internals of registration
 *
 *   reg.c        strategies, offers and their ends         reg_bounce.c     memory of the transport's own
 *   reg_slab.c   kind: memory registered in advance        reg_kinds.c      kinds: cached, dynamic
 *   mem.c, mem_replace.c  that memory                      reg_shared_pd.c  protection domains with their cache
 *   svc_mem.c    that memory in transfers of a service
 */
#ifndef RR_REG_INT_H
#define RR_REG_INT_H

#include "reg.h"
#include "reg_cache.h"

struct rr_reg_conn;
struct rr_reg_strategy;

/* A kind of memory, or of its registration. */
struct rr_reg_kind {
	const char *name;
	/* Makes [addr, addr+len) accessible. -ENOENT: not memory of this kind. */
	int (*get)(struct rr_reg_conn *rc, void *addr, size_t len, unsigned access, struct rr_reg_seg *ret);
	/* Returns the registration. The peer may have access only with GIVEN_UP, which ends it, and LOST, which keeps
	 * no registration for this segment.
	 * Return: 0; REPLIED, DONE: -EFAULT: the memory lost its pages meanwhile; GIVEN_UP: -ECONNABORTED: the access
	 * ends only with registrations that other calls use */
	int (*end)(struct rr_reg_conn *rc, struct rr_reg_seg *rseg, enum rr_reg_end how);
	/* Deregisters all long-lived registrations that only this connection uses; NULL: there are none */
	void (*revoke)(struct rr_reg_conn *rc);
};

extern const struct rr_reg_kind rr_reg_slab, rr_reg_cached, rr_reg_dynamic;

/* A protection domain, its cache, and registrations of memory of rpcrdma_mem_alloc(), which connections to one server share,
 * or to servers that trust each other. */
struct rr_shared_pd {
	struct list link;         /* domain->shared_pds; the domain's lock */
	unsigned refs;            /* the domain's lock */
	struct rr_pd *pd;
	struct rr_cache *cache;   /* NULL: none */
	struct list slabs;        /* reg_slab.c, most recently used first; the domain's lock */
	int monitor_err;          /* ... because no monitor is available */
	/* connections with equal values use the same one */
	const struct rpcrdma_engine *engine; /* a call that is given up deregisters what others on its thread use */
	const struct rr_reg_strategy *strategy;
	struct rr_cache_attr attr;
	bool caches;
	const char *monitor;
	char peer[RR_WHERE_BYTES];
};

/* The registrations of one connection. */
struct rr_reg_conn {
	struct rr_reg pub;
	struct rpcrdma_engine *engine;
	struct rr_dev *dev;
	struct rr_ep *ep;                /* from rr_reg_start() on */
	struct rr_shared_pd *shared;
	const struct rr_reg_strategy *strategy;
	struct rr_windows *windows;      /* NULL: the peer gets keys of registrations */
	struct rr_mr *trial_mr;          /* of the first bind on the device, or NULL: its windows are known to work */
	uint8_t trial_mem[64];
	size_t bounce;                   /* smaller payloads are copied */
	size_t bounce_dynamic;           /* ... if they would be registered for their call only */
	struct list bounces;             /* reg_bounce.c: idle ones */
	unsigned mapped_bounces;         /* idle or not, mappable by a server on this host */
};

static inline struct rr_reg_conn *rr_reg_conn_of(struct rr_reg *reg)
{
	return container_of(reg, struct rr_reg_conn, pub);
}

/** rr_reg_seg_set - makes @rseg the range [addr, addr+len), with the key of @mr */
static inline void rr_reg_seg_set(struct rr_reg_seg *rseg, const struct rr_reg_kind *kind, struct rr_mr *mr, void *addr,
				  size_t len)
{
	rseg->kind = kind;
	rseg->mr = mr;
	rseg->seg = (struct rr_segment){ .handle = mr->rkey, .length = (uint32_t)len, .offset = (uintptr_t)addr };
}

/* ---- reg.c ------------------------------------------------------------------------------------ */

/** rr_reg_window - gives @rseg a window if the connection has windows; Return: 0, -ENOMEM */
must_check int rr_reg_window(struct rr_reg_conn *rc, struct rr_reg_seg *rseg, unsigned access);

/** rr_reg_keeps - may the transport register its own memory permanently? */
bool rr_reg_keeps(const struct rr_reg_conn *rc);

/* ---- reg_bounce.c ----------------------------------------------------------------------------- */

/** rr_reg_bounce - offers @bytes of the transport's own memory
 * @message: for a message, not for payload
 * Return: 0; -ENOMEM, errors of the strategy */
must_check int rr_reg_bounce(struct rr_reg_conn *rc, struct rr_offer *o, size_t bytes, unsigned access,
			     bool message);

/** rr_reg_bounce_put - returns the memory of an offer that has some */
void rr_reg_bounce_put(struct rr_reg_conn *rc, struct rr_offer *o);

/** rr_reg_bounce_fini - frees all idle memory */
void rr_reg_bounce_fini(struct rr_reg_conn *rc);

/* ---- reg_shared_pd.c -------------------------------------------------------------------------- */

/** rr_shared_pd_get - returns a shared PD with the settings of @like, creating it if necessary
 * @shared: other connections may use it
 * Return: 0, -ENOMEM, errors of the device */
must_check int rr_shared_pd_get(struct rpcrdma_domain *d, struct rr_fabric *fabric,
				const struct rr_shared_pd *like, bool shared,
				struct rr_shared_pd **ret);

/** rr_shared_pd_put - releases a shared PD; the last connection frees it */
void rr_shared_pd_put(struct rpcrdma_domain *d, struct rr_shared_pd *sp);

/** rr_shared_pd_is_alone - does one connection use it? Under the domain's lock */
static inline bool rr_shared_pd_is_alone(const struct rr_shared_pd *sp)
{
	return sp->refs == 1;
}

/* ---- reg_slab.c ------------------------------------------------------------------------------- */

/** rr_reg_slab_forget - deregisters @mem everywhere before it is freed; under the lock */
void rr_reg_slab_forget(struct rr_mem *mem);

/** rr_reg_slab_outdate - outdates the registrations of @mem, which gets other pages: no new call uses them
 *
 * Deregisters those that no call uses now. Under the domain's lock.
 */
void rr_reg_slab_outdate(struct rr_mem *mem);

/* ---- svc_mem.c -------------------------------------------------------------------------------- */

/** rr_svc_mem_busy - is a part of [addr, addr+bytes) in a transfer of a service? Under the lock */
bool rr_svc_mem_busy(struct rpcrdma_domain *d, const void *addr, size_t bytes);

/** rr_svc_mem_forget - no new transfer uses the registrations of [addr, addr+bytes); under the lock */
void rr_svc_mem_forget(struct rpcrdma_domain *d, const void *addr, size_t bytes);

/* ---- mem.c, mem_replace.c --------------------------------------------------------------------- */

/** rr_mem_find - returns the region that contains all of [addr, addr+len), or NULL; under the lock */
struct rr_mem *rr_mem_find(struct rpcrdma_domain *d, const void *addr, size_t len);

/** rr_mem_new, rr_mem_drop - add an empty region to the domain's list; remove it. Under the lock. */
struct rr_mem *rr_mem_new(struct rpcrdma_domain *d);
void rr_mem_drop(struct rr_mem *mem);

/** rr_mem_replace - replaces the whole pages inside [addr, addr+len) by a new file with the same content
 *
 * A peer that was given the old file reaches only the old pages. The range must belong to a call that is given
 * up or waits to be sent again.
 *
 * Return: 0; -ENOENT: not memory of rpcrdma_mem_alloc(); -ENOMEM. After an error some of the pages may be replaced.
 */
must_check int rr_mem_replace(struct rpcrdma_domain *d, const void *addr, size_t len);

/** rr_mem_span_parted - rr_mem_span() in a domain where some regions consist of several */
size_t rr_mem_span_parted(struct rpcrdma_domain *d, const void *addr, size_t len);

/** rr_mem_span - returns how many bytes from @addr on lie in one region, at most @len; @len if in none */
static inline size_t rr_mem_span(struct rpcrdma_domain *d, const void *addr, size_t len)
{
	return likely(!atomic_load_explicit(&d->mems_parted, memory_order_relaxed)) ? len : rr_mem_span_parted(d, addr, len);
}

#endif
