/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * reg.h - registration: gives the peer access to a requester's memory, and ends it
 *
 * Operation:  One struct rr_reg per connection, with the strategy of its name (reg.c). An offer is the memory of one
 *             chunk:
 *
 *                 free --offer--> offered --bind, post--> known to the peer --end(REPLIED)--> ended --end(DONE)--> free
 *                                    |                        |   reminv          (the transport's memory is readable)
 *                                    '-- end(DONE) --> free   '-- end(GIVEN_UP), end(LOST) --> ended
 *
 *             rr_reg_offer() makes an iov accessible. What a strategy does not register is copied: the offer is
 *             then memory of the transport's own (`mem`), and the caller copies the payload. Messages always use
 *             such memory.
 * Memory:     The caller embeds offers, zeroed, and neither moves nor changes them while they are not free. After
 *             end(REPLIED), end(GIVEN_UP) or end(LOST) the peer has no access that the strategy does not leave it
 *             outside of calls: with `dynamic` and `window` none; with `slab` and `arena` to the region; with a
 *             cache to all used memory until eviction. A call that is given up ends that access too.
 * Threads:    The connection's.
 * Errors:     -ENOMEM (limits of device or RLIMIT_MEMLOCK), -EFAULT (not mapped).
 */
#ifndef RR_REG_H
#define RR_REG_H

#include <stdlib.h>

#include "hdr.h"
#include "window.h"

#define RR_REG_SEGS_MAX 16u /* segments of one chunk; every responder accepts this many */
#define RR_REG_SEGS_MANY 64u /* if the caller knows that the responder accepts more */

struct rr_cache_entry;
struct rr_reg_bounce;
struct rr_reg_kind;
struct rr_slab_mr;

/* Reference to a cached registration (reg_cache.h); must not be moved. */
struct rr_cache_ref {
	struct rr_cache_entry *entry; /* private */
	struct rr_mr *mr;      /* covers the range; do not use it after a recall */
	struct list link;      /* in the entry's list; guarded by the lock */
	uintptr_t start, end;  /* requested range */
	bool gone;             /* some of it lost its pages meanwhile */
};

/* A segment of an offer. */
struct rr_reg_seg {
	struct rr_mr *mr;        /* covers it, for local access */
	struct rr_segment seg;   /* as sent to the peer; its offset is the local address */
	/* private: */
	const struct rr_reg_kind *kind;
	struct rr_cache_ref ref; /* reg_kinds.c */
	struct rr_slab_mr *slab; /* reg_slab.c */
	struct rr_window *win;   /* its window, or NULL: the key is that of the registration */
	bool replaced;           /* its whole pages have been replaced, because the connection ended */
};

/* The memory of one chunk. */
struct rr_offer {
	struct rr_reg_seg segs[RR_REG_SEGS_MAX];
	struct rr_reg_seg *more;      /* those behind: RR_REG_SEGS_MANY - RR_REG_SEGS_MAX, or NULL. Kept while the offer
	                               * exists: rr_offer_fini() */
	unsigned limit;               /* set by the caller: maximum of segments; 0: RR_REG_SEGS_MAX */
	unsigned n;                   /* segments that the peer may access */
	uint8_t *mem;                 /* memory of the transport instead of the caller's, or NULL */
	struct rr_reg_bounce *bounce; /* private: owns it */
};

/** rr_offer_seg - segment @i of an offer, below RR_REG_SEGS_MANY */
static inline struct rr_reg_seg *rr_offer_seg(struct rr_offer *o, unsigned i)
{
	return i < RR_REG_SEGS_MAX ? &o->segs[i] : &o->more[i - RR_REG_SEGS_MAX];
}

/** rr_offer_fini - frees what a free offer keeps */
static inline void rr_offer_fini(struct rr_offer *o)
{
	free(o->more);
	o->more = NULL;
}

/* The registrations of one connection; its users read these facts. */
struct rr_reg {
	struct rr_pd *pd;
	const char *name;        /* of the strategy in use */
	const char *fallback;    /* why it is not the requested one, or NULL */
	char kept[128];          /* text for users: which registrations remain after a call */
	size_t bytes;            /* limit of bytes registered at once; 0: no limit of ours */
	bool windows;            /* keys are those of windows: offers take a bind and maybe an invalidation each */
	bool remote_inv;         /* the peer may invalidate them with its reply (RFC 8797) */
};

/* Why an offer ends. */
enum rr_reg_end {
	RR_END_REPLIED,  /* the peer has replied: ends the access, which may take time; `mem` remains readable */
	RR_END_GIVEN_UP, /* no reply is waited for: ends the access now */
	RR_END_LOST,     /* the connection is gone, the call continues over another: no registration is kept */
	RR_END_DONE,     /* the peer does not know of it, or no longer has access: everything is free */
};

/** rr_reg_check - checks the names in @a and replaces them by static strings; NULL means the default
 * Return: 0; -EINVAL: unknown, or not possible with the other attributes or in this domain */
must_check int rr_reg_check(const struct rpcrdma_domain *d, struct rpcrdma_clnt_attr *a);

/** rr_reg_open - creates the registrations of a new connection, before it is connected
 * @peer: address of the server, as rr_qp_dial() takes it
 * @attr: its settings for registration, checked; its lab is set
 *
 * Return: 0; -ENOMEM and other errors of the device.
 */
must_check int rr_reg_open(struct rpcrdma_engine *e, struct rr_dev *dev, const char *peer,
			   const struct rpcrdma_clnt_attr *attr, struct rr_reg **ret);

/** rr_reg_start - begins to use the endpoint @ep, which is connected; call before the first offer
 * @ready: runs once, maybe inside this call, unless the endpoint dies. If dev->windows is RR_WINDOWS_BROKEN then,
 * connect again: rr_reg_open() will not use windows
 *
 * Return: 0; -ENOMEM, errors of the device: @ready will not run.
 */
must_check int rr_reg_start(struct rr_reg *reg, struct rr_ep *ep, void (*ready)(void *ctx), void *ctx);

/** rr_reg_offer - offers [0, len) of an iov to the peer, or memory of the transport's own
 * @o: free
 * @iov: NULL: offers o->mem, for a message of @len bytes
 * @access: RR_ACCESS_REMOTE_READ, or RR_ACCESS_REMOTE_WRITE with RR_ACCESS_LOCAL_WRITE
 * @wait: other offers will end and make room: if that is short, fails instead of copying the payload
 *
 * Return: 0: if o->mem is set, the payload is copied through it; -ENOMEM, -EFAULT, errors of the device.
 */
must_check int rr_reg_offer(struct rr_reg *reg, struct rr_offer *o, const struct iovec *iov, int iovcnt,
			    uint64_t len, unsigned access, bool wait);

/** rr_reg_bind - returns the requests to post in front of the Send that announces @n offers
 * @tail: end of the chain; advanced
 *
 * Return: their number. The caller posts them now.
 */
unsigned rr_reg_bind(struct rr_reg *reg, struct rr_offer *offers, unsigned n, struct rr_wr ***tail);

/** rr_reg_reminv - handles the peer's invalidation of @key
 * Return: true: it is the key of one of these offers, and the peer was allowed to invalidate it */
bool rr_reg_reminv(struct rr_reg *reg, struct rr_offer *offers, unsigned n, uint32_t key);

/** rr_reg_end - ends @n offers, unless they have ended already
 * @closing: for RR_END_REPLIED; NULL otherwise
 *
 * Return: 0: the peer's access has ended;
 * REPLIED     -EINPROGRESS: call again from closing->fn, which does not run inside this call; -EFAULT: ended, but
 *             some memory lost its pages meanwhile: data that the peer wrote may be lost
 * GIVEN_UP    -EAGAIN: the peer is in the middle of a copy: nothing has ended, end the connection and then these
 *             offers with it; -ECONNABORTED: ended, together with registrations of other calls: end the connection
 * LOST        -EAGAIN: as above, or no memory for other pages: call again later
 */
int rr_reg_end(struct rr_reg *reg, struct rr_offer *offers, unsigned n, enum rr_reg_end how,
	       struct rr_closing *closing);

/** rr_reg_revoke - ends the peer's access to everything that this connection alone has registered; call it when the
 * client ends, and before the queue pair is destroyed. No new offers. NULL is ignored. */
void rr_reg_revoke(struct rr_reg *reg);

/** rr_reg_close - frees the registrations, after the last use of the protection domain; NULL is ignored */
void rr_reg_close(struct rr_reg *reg);

/** rr_reg_stats - adds the counters of all caches of a domain; the caller holds its lock */
void rr_reg_stats(struct rpcrdma_domain *d, struct rpcrdma_stats *sum);

#endif
