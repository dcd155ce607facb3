/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * reg.h - registration: gives the peer access to a requester's memory, and ends it
 *
 * Operation:  One struct rr_reg per connection. rr_reg_get() makes an iov accessible and returns its segments
 *             (struct rr_reg_seg) for the chunk. rr_reg_put() ends the access before the call is done. A
 *             strategy is chosen by name at run time. It is a list of kinds of memory; the first kind that
 *             accepts a segment handles it:
 *
 *               dynamic   a registration for each segment, deregistered with the call
 *               slab      memory of rpcrdma_mem_alloc() or _register(): registered with a connection at first
 *                         use and kept as long as the connection. Refuses other memory (-ENOENT), and the
 *                         transport copies through its own memory
 *               arena     the same, where all of rpcrdma_mem_alloc() is one region (mem.c)
 *               cache     slab; else a cached registration (reg_cache.c); else dynamic
 *               batch     cache, but a thread deregisters evicted entries in batches
 *               auto      batch, if a monitor keeps it valid; small payloads that would be dynamic are copied
 *               window    auto, but the peer gets no key of the registrations: each segment of a call has a
 *                         memory window, if the device supports it (reg_window.c)
 *
 *             Payloads below the threshold (`bounce`) are copied too, unless they are in a slab.
 * Memory:     A segment records the kind that returns it. With `dynamic` the peer has no access outside the
 *             call. With `slab` it may access the slab as long as the connection exists; with a cache, all used
 *             memory until eviction. A call that is given up must end that access: rr_reg_recall(), and
 *             rr_reg_revoke() if that does not suffice. With windows the peer has no access outside the call:
 *             rr_reg_answered() ends it.
 *
 *             Connections that share a cache share a protection domain, a struct rr_shared_pd. They belong to
 *             one domain, device and server, and have the same settings. Keys given to one server do not work
 *             for another. Other connections have a PD of their own.
 * Threads:    The connection's. Slab registrations are also found by their memory, under the domain's lock, so
 *             that rpcrdma_mem_free() can deregister them from any thread.
 * Errors:     -ENOMEM (limits of device or RLIMIT_MEMLOCK), -EFAULT (not mapped), -ENOENT.
 */
#ifndef RR_REG_H
#define RR_REG_H

#include "engine_int.h"
#include "fabric.h"
#include "hdr.h"
#include "reg_cache.h"

#define RR_REG_SEGS_MAX 16u /* segments of one chunk; every responder accepts this many */
#define RR_REG_KINDS_MAX 3u

struct rr_ep;
struct rr_reg;
struct rr_reg_strategy;
struct rr_window;
struct rr_windows;

/* State of one segment of memory while it is offered to the peer. */
struct rr_reg_seg {
	const struct rr_reg_ops *ops;
	struct rr_mr *mr;
	struct rr_segment seg;   /* as sent to the peer */
	struct rr_cache_ref ref; /* reg_cached.c */
	struct rr_slab_mr *slab; /* reg_slab.c */
	bool replaced;           /* rr_reg_settle() has replaced its whole pages */
	struct rr_window *win;   /* its window, or NULL: the key is that of the registration */
};

/* Waits until the peer can no longer access segments; embedded. */
struct rr_reg_closing {
	unsigned n; /* segments still accessible */
	void (*fn)(struct rr_reg_closing *closing); /* runs after the last one */
};

/* A kind of memory. */
struct rr_reg_ops {
	const char *name;
	/* Makes [addr, addr+len) accessible. -ENOENT: not memory for this strategy. */
	int (*get)(struct rr_reg *reg, void *addr, size_t len, unsigned access,
		   struct rr_reg_seg *ret);
	/* The operation is over. Return: false: the memory lost its pages meanwhile. */
	bool (*put)(struct rr_reg *reg, struct rr_reg_seg *rseg);
	/* The operation is given up: put, and end the access. Return: false: access ends only when all
	 * long-lived registrations are revoked, or other users' registration ended too: the connection has to
	 * end. */
	bool (*recall)(struct rr_reg *reg, struct rr_reg_seg *rseg);
	/* The connection is gone, and the operation continues over another one: put, and keep no registration
	 * for this segment. */
	void (*drop)(struct rr_reg *reg, struct rr_reg_seg *rseg);
	/* Deregisters all long-lived registrations that only this connection uses. */
	void (*revoke)(struct rr_reg *reg);
};

extern const struct rr_reg_ops rr_reg_dynamic_ops, rr_reg_slab_ops, rr_reg_cached_ops;

/* A protection domain and its cache, which connections to one server share. */
struct rr_shared_pd {
	struct list link;         /* domain->shared_pds; the domain's lock */
	unsigned refs;            /* the domain's lock */
	struct rr_pd *pd;
	struct rr_cache *cache;   /* NULL: none */
	int monitor_err;          /* ... because no monitor is available */
	/* connections with equal values use the same one */
	const struct rr_reg_strategy *strategy;
	struct rr_cache_attr attr;
	const char *monitor;
	char peer[RR_WHERE_BYTES];
};

/* The registrations of one connection. */
struct rr_reg {
	struct rpcrdma_engine *engine;
	struct rr_shared_pd *shared;
	struct rr_pd *pd;                /* shared->pd */
	const struct rr_reg_strategy *strategy;
	const char *fallback;            /* why it is not the requested one, or NULL */
	struct rr_windows *windows;      /* NULL: the peer gets keys of registrations */
	size_t bounce;                   /* smaller payloads are copied */
	size_t bounce_dynamic;           /* ... if they would be registered for their call only */
	struct list slabs;               /* reg_slab.c, most recently used first; the domain's lock */
};

/** rr_reg_canonical - returns a strategy's name as a static string; NULL means auto
 * Return: NULL: unknown strategy */
const char *rr_reg_canonical(const char *name);

/** rr_reg_monitor_canonical - does the same for monitors; NULL means uffd */
const char *rr_reg_monitor_canonical(const char *name);

/** rr_reg_init - initializes the registrations of a new connection
 * @peer: address of the server, as rr_qp_dial() takes it
 * @attr: its settings for registration; names are canonical
 *
 * Return: 0; -ENOMEM and other errors: @reg is unusable but may be passed to rr_reg_fini() and rr_reg_close().
 */
must_check int rr_reg_init(struct rr_reg *reg, struct rpcrdma_engine *e, struct rr_dev *dev,
			   const char *peer, const struct rpcrdma_clnt_attr *attr);

/** rr_reg_name - returns the name of the strategy in use */
const char *rr_reg_name(const struct rr_reg *reg);

/** rr_reg_wants_windows - does the strategy use windows that it does not have yet? */
bool rr_reg_wants_windows(const struct rr_reg *reg);

/** rr_reg_use_windows - creates windows on the queue pair of @ep
 * @remote: connecting tells the peer that it may invalidate offered keys
 *
 * Call before anything is offered.
 *
 * Return: 0, -ENOMEM.
 */
must_check int rr_reg_use_windows(struct rr_reg *reg, struct rr_ep *ep, bool remote);

/** rr_reg_fall_back - switches to `auto`, because windows are not available
 * @why: for messages, static */
void rr_reg_fall_back(struct rr_reg *reg, const char *why);

/** rr_reg_end_windows - destroys the windows; call before the queue pair ends, when nothing is offered any more */
void rr_reg_end_windows(struct rr_reg *reg);

/** rr_reg_fini - deregisters long-lived registrations, except shared ones; call after the last rr_reg_put() */
void rr_reg_fini(struct rr_reg *reg);

/** rr_reg_close - releases the shared PD; call after rr_reg_fini() and the last use of the protection domain */
void rr_reg_close(struct rr_reg *reg);

/** rr_reg_revoke - ends the peer's access to all long-lived registrations of this connection alone. Put
 * segments in use as usual, but do not use the connection any more */
void rr_reg_revoke(struct rr_reg *reg);

/** rr_reg_keeps - may the transport register its own memory permanently? */
bool rr_reg_keeps(const struct rr_reg *reg);

/** rr_reg_tell - describes the registrations that remain after a call, as text */
void rr_reg_tell(const struct rr_reg *reg, char *buf, size_t cap);

/** rr_reg_bytes - returns the limit of bytes registered at once; 0: no limit of ours */
size_t rr_reg_bytes(const struct rr_reg *reg);

/** rr_reg_keep - registers [mem, mem+bytes) of rpcrdma_mem_alloc(), the transport's own, as a segment for
 * repeated rr_reg_lend(); put it at the end
 *
 * Return: as rr_reg_get().
 */
must_check int rr_reg_keep(struct rr_reg *reg, void *mem, size_t bytes, struct rr_reg_seg *ret);

/** rr_reg_lend - offers the first @len bytes of a kept segment; Return: 0; -ENOMEM */
must_check int rr_reg_lend(struct rr_reg *reg, struct rr_reg_seg *rseg, size_t len,
			   unsigned access);

/** rr_reg_unlend - ends rr_reg_lend(); Return: true: the peer has no access, although the segment is kept */
bool rr_reg_unlend(struct rr_reg *reg, struct rr_reg_seg *rseg);

/** rr_reg_count - returns how many segments [0, len) of an iov makes: one for each entry that is not empty, and
 * for each part of a region that an entry touches (mem_replace.c) */
unsigned rr_reg_count(struct rpcrdma_domain *d, const struct iovec *iov, int iovcnt, uint64_t len);

/** rr_reg_is_there - is [0, len) of an iov mapped, with the right to read, or write?
 *
 * For memory that is copied instead of being registered; a registration checks by itself. If another thread
 * unmaps the memory before the copy, that is an error of the program.
 */
bool rr_reg_is_there(const struct iovec *iov, int iovcnt, uint64_t len, bool write);

/** rr_reg_get - offers [0, len) of an iov to the peer
 * @access: RR_ACCESS_REMOTE_READ, or RR_ACCESS_REMOTE_WRITE with RR_ACCESS_LOCAL_WRITE
 * @segs: capacity RR_REG_SEGS_MAX; rr_reg_count() returns how many are used
 *
 * Return: 0 with *ret_n set; -ENOBUFS: too many segments, -ENOENT: not for this strategy, or too small to be
 * worth it: copy; -ENOMEM, -EFAULT. On failure none is registered.
 */
must_check int rr_reg_get(struct rr_reg *reg, const struct iovec *iov, int iovcnt, uint64_t len,
			  unsigned access, struct rr_reg_seg *segs, unsigned *ret_n);

/** rr_reg_bind - returns the requests to post in front of the Send that announces the segments
 * @tail: end of the chain; advanced
 *
 * Return: their number. The caller posts them now.
 */
unsigned rr_reg_bind(struct rr_reg *reg, struct rr_reg_seg *segs, unsigned n,
		     struct rr_wr ***tail);

/** rr_reg_taken_back - handles the peer's invalidation of @key
 * Return: true: it is the key of one of these segments, and the peer was allowed to invalidate it */
bool rr_reg_taken_back(struct rr_reg *reg, struct rr_reg_seg *segs, unsigned n, uint32_t key);

/** rr_reg_answered - after the call, ends the access through windows, which may take time
 * @closing: counts the pending invalidations; its fn runs, not inside this call, after the last one
 *
 * Put the segments after that, or earlier if you cannot wait.
 */
void rr_reg_answered(struct rr_reg *reg, struct rr_reg_seg *segs, unsigned n,
		     struct rr_reg_closing *closing);

/** rr_reg_settle - ends the peer's access to segments of a call without a reply
 * @qp: the queue pair that they were offered on
 *
 * Call it before the segments are put, recalled or dropped. Replaces the pages of memory that a server's disk
 * operation uses (mem_replace.c).
 *
 * Return: true: no access reaches the memory any more. false: the peer is in the middle of a copy, or there is
 * no memory for other pages; call again later.
 */
must_check bool rr_reg_settle(struct rr_reg *reg, struct rr_qp *qp, struct rr_reg_seg *segs,
			      unsigned n);

/** rr_reg_put - undoes rr_reg_get()
 * Return: false: some of the memory lost its pages meanwhile; data written by the peer may be lost */
bool rr_reg_put(struct rr_reg *reg, struct rr_reg_seg *segs, unsigned n);

/** rr_reg_recall - rr_reg_put() that ends the access before it returns
 * Return: false: that needs rr_reg_revoke() and the end of the connection */
bool rr_reg_recall(struct rr_reg *reg, struct rr_reg_seg *segs, unsigned n);

/** rr_reg_drop - rr_reg_put() for segments of a connection that is gone */
void rr_reg_drop(struct rr_reg *reg, struct rr_reg_seg *segs, unsigned n);

/* ---- reg_shared_pd.c ------------------------------------------------------------------------ */

/** rr_shared_pd_get - returns a shared PD with the settings of @like, creating it if necessary
 * @shared: other connections may use it
 * Return: 0, -ENOMEM, errors of the device */
must_check int rr_shared_pd_get(struct rpcrdma_domain *d, struct rr_fabric *fabric,
				const struct rr_shared_pd *like, bool shared,
				struct rr_shared_pd **ret);

/** rr_shared_pd_put - releases a shared PD; the last connection frees it */
void rr_shared_pd_put(struct rpcrdma_domain *d, struct rr_shared_pd *sp);

/** rr_shared_pd_revoke - at the end of a connection, deregisters cached registrations if no other connection
 * uses the shared PD */
void rr_shared_pd_revoke(struct rpcrdma_domain *d, struct rr_shared_pd *sp);

/** rr_shared_pd_count - adds the counters of all caches; the caller holds the domain's lock */
void rr_shared_pd_count(struct rpcrdma_domain *d, struct rpcrdma_stats *sum);

/* ---- reg_slab.c ----------------------------------------------------------------------------- */

/** rr_reg_slab_forget - deregisters @mem everywhere before it is freed; under the lock */
void rr_reg_slab_forget(struct rr_mem *mem);

/** rr_reg_slab_outdate - outdates the registrations of @mem, which gets other pages: no new call uses them
 *
 * Deregisters those that no call uses now. Under the domain's lock.
 */
void rr_reg_slab_outdate(struct rr_mem *mem);

#endif
