/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * reg.h - registration: how a requester's memory comes within reach of the peer, and out of it
 *
 * Operation:  One struct rr_reg per connection. rr_reg_get() makes the pieces of an iov reachable
 *             and says what to write into the chunk; rr_reg_put() takes them back before the call
 *             is done. A strategy is chosen by name at run time, and is a list of kinds of memory,
 *             of which the first that takes a piece has it:
 *
 *               dynamic   a registration of its own for each piece, gone with the call
 *               slab      memory of rpcrdma_mem_alloc() or _register(): registered with a
 *                         connection at first use and kept as long as the connection; other memory
 *                         is refused (-ENOENT), and the transport copies through memory of its own
 *               arena     the same, where all of rpcrdma_mem_alloc() is one region (domain.c)
 *               cache     slab; else a registration that is kept (reg_cache.c); else dynamic
 *               batch     cache, whose evicted entries are deregistered in batches, by a thread
 *               auto      batch, where a monitor keeps it true; what would be dynamic is copied if
 *                         it is little
 *               window    auto, but the peer gets no key of the registrations: each piece of a call
 *                         has a memory window over them, where the device can do that (reg_window.c)
 *
 *             Less payload than the threshold (`bounce`) is copied too, unless it is in a slab.
 * Memory:     A piece remembers who returns it. With `dynamic` nothing is in the peer's reach
 *             outside its call. With `slab` the peer may reach the slab as long as the connection
 *             stands; with a cache, what was used, until it is evicted. A call that is given up has
 *             to end that: rr_reg_recall(), and rr_reg_revoke() where it does not do. Under windows
 *             nothing is in its reach outside its call: rr_reg_answered() brings it out.
 *
 *             Connections that share a cache share a protection domain, a struct rr_reg_home: they
 *             are those of one domain, over one device, to one server, with the same settings. Keys
 *             told to one server are worth nothing to another. Others have a home of their own.
 * Threads:    The connection's; slab registrations are also found by their memory, under the
 *             domain's lock, so that rpcrdma_mem_free() can take them back from any thread.
 * Errors:     -ENOMEM (limits of device or RLIMIT_MEMLOCK), -EFAULT (not mapped), -ENOENT.
 */
#ifndef RR_REG_H
#define RR_REG_H

#include "engine_int.h"
#include "fabric.h"
#include "hdr.h"
#include "reg_cache.h"

#define RR_REG_PIECES_MAX 16u /* segments of one chunk; every responder takes that many */
#define RR_REG_KINDS_MAX 3u

struct rr_ep;
struct rr_reg;
struct rr_reg_strategy;
struct rr_window;
struct rr_windows;

/* What one piece of memory holds while it is offered. */
struct rr_reg_piece {
	const struct rr_reg_ops *ops;
	struct rr_mr *mr;
	struct rr_segment seg;   /* as the peer is told */
	struct rr_cache_ref ref; /* reg_cached.c */
	struct rr_slab_mr *slab; /* reg_slab.c */
	bool replaced;           /* rr_reg_settle() has replaced its whole pages */
	struct rr_window *win;   /* over it, or NULL: the key is that of the registration */
};

/* Waits until pieces are out of reach; embedded. */
struct rr_reg_closing {
	unsigned n; /* that are not yet */
	void (*fn)(struct rr_reg_closing *closing); /* the last one is */
};

/* A kind of memory. */
struct rr_reg_ops {
	const char *name;
	/* Bring [addr, addr+len) within reach. -ENOENT: not memory for this strategy. */
	int (*get)(struct rr_reg *reg, void *addr, size_t len, unsigned access,
		   struct rr_reg_piece *ret);
	/* The operation is over. Return: false: the memory lost its pages meanwhile. */
	bool (*put)(struct rr_reg *reg, struct rr_reg_piece *piece);
	/* The operation was given up: put, and out of reach. Return: false: it is out of reach only
	 * when all that lasts is revoked, or what others use went with it: the connection has to end. */
	bool (*recall)(struct rr_reg *reg, struct rr_reg_piece *piece);
	/* The connection is no more, the operation goes on over another: put, and nothing of it lasts
	 * for the sake of this piece. */
	void (*drop)(struct rr_reg *reg, struct rr_reg_piece *piece);
	/* Take back everything that lasts and is this connection's alone. */
	void (*revoke)(struct rr_reg *reg);
};

extern const struct rr_reg_ops rr_reg_dynamic_ops, rr_reg_slab_ops, rr_reg_cached_ops;

/* What connections share. */
struct rr_reg_home {
	struct list link;         /* domain->homes; the domain's lock */
	unsigned refs;            /* the domain's lock */
	struct rr_pd *pd;
	struct rr_cache *cache;   /* NULL: none */
	int monitor_err;          /* ... because there is no monitor to be had */
	/* whose it is */
	const struct rr_reg_strategy *strategy;
	struct rr_cache_attr attr;
	const char *monitor;
	char peer[RR_WHERE_BYTES];
};

/* The registrations of one connection. */
struct rr_reg {
	struct rpcrdma_engine *engine;
	struct rr_reg_home *home;
	struct rr_pd *pd;                /* the home's */
	const struct rr_reg_strategy *strategy;
	const char *fallback;            /* why it is not the one that was asked for, or NULL */
	struct rr_windows *windows;      /* NULL: the peer gets keys of registrations */
	size_t bounce;                   /* less payload is copied */
	size_t bounce_dynamic;           /* ... if it would have to be registered for its call */
	struct list slabs;               /* reg_slab.c, the last used first; the domain's lock */
};

/** rr_reg_canonical - a strategy's name as a static string; NULL means auto
 * Return: NULL when there is no strategy of that name */
const char *rr_reg_canonical(const char *name);

/** rr_reg_monitor_canonical - the same for monitors; NULL means uffd */
const char *rr_reg_monitor_canonical(const char *name);

/** rr_reg_init - the registrations of a new connection
 * @peer: where the server is, as rr_qp_dial() takes it
 * @attr: what is said there of registration; its names are canonical
 *
 * Return: 0; -ENOMEM and the like, and @reg is of no use but may be given to rr_reg_fini() and
 * rr_reg_close().
 */
must_check int rr_reg_init(struct rr_reg *reg, struct rpcrdma_engine *e, struct rr_dev *dev,
			   const char *peer, const struct rpcrdma_clnt_attr *attr);

/** rr_reg_name - of the strategy in use */
const char *rr_reg_name(const struct rr_reg *reg);

/** rr_reg_wants_windows - does the strategy want them, and has none yet? */
bool rr_reg_wants_windows(const struct rr_reg *reg);

/** rr_reg_use_windows - it gets them, on the queue pair of @ep
 * @remote: the peer is told that it may invalidate what it is offered
 *
 * Before anything is offered.
 *
 * Return: 0, -ENOMEM.
 */
must_check int rr_reg_use_windows(struct rr_reg *reg, struct rr_ep *ep, bool remote);

/** rr_reg_fall_back - it cannot have them, and is what `auto` is
 * @why: for people, static */
void rr_reg_fall_back(struct rr_reg *reg, const char *why);

/** rr_reg_end_windows - before the queue pair ends; nothing is offered any more */
void rr_reg_end_windows(struct rr_reg *reg);

/** rr_reg_fini - all pieces have been put; what lasts, and is not shared, is taken back */
void rr_reg_fini(struct rr_reg *reg);

/** rr_reg_close - after it, and when nothing uses the protection domain any more */
void rr_reg_close(struct rr_reg *reg);

/** rr_reg_revoke - on return nothing that lasts for this connection alone is within the peer's reach;
 * pieces still out are to be put as usual, but the connection is of no more use */
void rr_reg_revoke(struct rr_reg *reg);

/** rr_reg_keeps - may memory of the transport's own be registered once and for all? */
bool rr_reg_keeps(const struct rr_reg *reg);

/** rr_reg_tell - what stays registered after a call, in words */
void rr_reg_tell(const struct rr_reg *reg, char *buf, size_t cap);

/** rr_reg_bytes - what can be registered at once; 0: no limit of ours */
size_t rr_reg_bytes(const struct rr_reg *reg);

/** rr_reg_keep - [mem, mem+bytes) of rpcrdma_mem_alloc(), the transport's own, as a piece to be lent again
 * and again; put at last
 *
 * Return: as rr_reg_get().
 */
must_check int rr_reg_keep(struct rr_reg *reg, void *mem, size_t bytes, struct rr_reg_piece *ret);

/** rr_reg_lend - offer the first @len bytes of a piece that is kept; Return: 0; -ENOMEM */
must_check int rr_reg_lend(struct rr_reg *reg, struct rr_reg_piece *piece, size_t len,
			   unsigned access);

/** rr_reg_unlend - the reverse; Return: whether it is out of reach, though it is kept */
bool rr_reg_unlend(struct rr_reg *reg, struct rr_reg_piece *piece);

/** rr_reg_count - returns how many pieces [0, len) of an iov makes: one for each entry that is not empty,
 * and for each part of a region that an entry touches (mem_replace.c) */
unsigned rr_reg_count(struct rpcrdma_domain *d, const struct iovec *iov, int iovcnt, uint64_t len);

/** rr_reg_is_there - is [0, len) of an iov mapped, and may it be read, or written?
 *
 * For what is going to be copied in place of being registered: who registers finds out by that. What
 * another thread unmaps before it is copied is his own fault.
 */
bool rr_reg_is_there(const struct iovec *iov, int iovcnt, uint64_t len, bool write);

/** rr_reg_get - offer [0, len) of an iov
 * @access: RR_ACCESS_REMOTE_READ, or RR_ACCESS_REMOTE_WRITE with RR_ACCESS_LOCAL_WRITE
 * @pieces: room for RR_REG_PIECES_MAX; rr_reg_count() says how many are used
 *
 * Return: 0 with *ret_n set; -ENOBUFS: too many pieces, -ENOENT: not for this strategy, or too
 * little to be worth it: copy; -ENOMEM, -EFAULT; then none is registered.
 */
must_check int rr_reg_get(struct rr_reg *reg, const struct iovec *iov, int iovcnt, uint64_t len,
			  unsigned access, struct rr_reg_piece *pieces, unsigned *ret_n);

/** rr_reg_bind - the requests that have to go in front of the Send that tells of the pieces
 * @tail: where the chain goes on; moved
 *
 * Return: how many they are. They go to the device now.
 */
unsigned rr_reg_bind(struct rr_reg *reg, struct rr_reg_piece *pieces, unsigned n,
		     struct rr_wr ***tail);

/** rr_reg_taken_back - the peer has invalidated @key
 * Return: whether it is that of one of these pieces, and might be */
bool rr_reg_taken_back(struct rr_reg *reg, struct rr_reg_piece *pieces, unsigned n, uint32_t key);

/** rr_reg_answered - the call is over: bring what is under windows out of reach, which may take time
 * @closing: counts what does; its fn runs, not from inside, when there is nothing left
 *
 * Then, or earlier if that cannot be waited for, the pieces are put.
 */
void rr_reg_answered(struct rr_reg *reg, struct rr_reg_piece *pieces, unsigned n,
		     struct rr_reg_closing *closing);

/** rr_reg_settle - ends the peer's access to pieces whose call was not answered
 * @qp: over which they were offered
 *
 * Call it before the pieces are put, recalled or dropped. Memory that a server's disk operation uses gets
 * other pages (mem_replace.c).
 *
 * Return: true: no access reaches the memory any more. false: the peer is in the middle of a copy, or
 * there is no memory for other pages; call again later.
 */
must_check bool rr_reg_settle(struct rr_reg *reg, struct rr_qp *qp, struct rr_reg_piece *pieces,
			      unsigned n);

/** rr_reg_put - the reverse of get
 * Return: false when some of it lost its pages meanwhile: what was to come there may be lost */
bool rr_reg_put(struct rr_reg *reg, struct rr_reg_piece *pieces, unsigned n);

/** rr_reg_recall - the same for what is to be out of reach on return
 * Return: false when that takes rr_reg_revoke() and the end of the connection */
bool rr_reg_recall(struct rr_reg *reg, struct rr_reg_piece *pieces, unsigned n);

/** rr_reg_drop - the same for what goes with its connection */
void rr_reg_drop(struct rr_reg *reg, struct rr_reg_piece *pieces, unsigned n);

/* ---- reg_home.c ----------------------------------------------------------------------------- */

/** rr_reg_home_get - the home of @like's settings, or a new one
 * @shared: others may live there
 * Return: 0, -ENOMEM, what the device said */
must_check int rr_reg_home_get(struct rpcrdma_domain *d, struct rr_fabric *fabric,
			       const struct rr_reg_home *like, bool shared,
			       struct rr_reg_home **ret);

/** rr_reg_home_put - with the last connection it goes */
void rr_reg_home_put(struct rpcrdma_domain *d, struct rr_reg_home *home);

/** rr_reg_home_revoke - one connection ends: take back what is kept, if it is the only one there */
void rr_reg_home_revoke(struct rpcrdma_domain *d, struct rr_reg_home *home);

/** rr_reg_home_count - add the counters of all caches there are; the domain's lock is held */
void rr_reg_home_count(struct rpcrdma_domain *d, struct rpcrdma_stats *sum);

/* ---- reg_slab.c ----------------------------------------------------------------------------- */

/** rr_reg_slab_forget - @mem is about to be freed: deregister it everywhere; under the lock */
void rr_reg_slab_forget(struct rr_mem *mem);

/** rr_reg_slab_outdate - @mem gets other pages: no new call uses its registrations
 *
 * Deregisters those that no call uses now. Under the domain's lock. */
void rr_reg_slab_outdate(struct rr_mem *mem);

#endif
