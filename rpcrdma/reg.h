/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * reg.h - registration: how a requester's memory comes within reach of the peer, and out of it
 *
 * Operation:  One struct rr_reg per connection. rr_reg_get() makes the pieces of an iov reachable
 *             and says what to write into the chunk; rr_reg_put() takes them back before the call
 *             is done. A strategy is chosen by name at run time:
 *
 *               dynamic   a registration of its own for each piece, gone with the call
 *               slab      memory of rpcrdma_mem_alloc(): registered with a connection at first use
 *                         and kept as long as the connection; other memory is refused (-ENOENT),
 *                         and the transport copies through memory of its own
 *               auto      slab where it can, else dynamic
 *
 * Memory:     A piece remembers who returns it. With `dynamic` nothing is in the peer's reach
 *             outside its call. With `slab` the peer may reach the slab as long as the connection
 *             stands; a call that is given up has to end that: rr_reg_revoke().
 * Threads:    The connection's; slab registrations are also found by their memory, under the
 *             domain's lock, so that rpcrdma_mem_free() can take them back from any thread.
 * Errors:     -ENOMEM (limits of device or RLIMIT_MEMLOCK), -EFAULT (not mapped), -ENOENT.
 */
#ifndef RR_REG_H
#define RR_REG_H

#include "engine_int.h"
#include "fabric.h"
#include "hdr.h"

#define RR_REG_PIECES_MAX 16u /* segments of one chunk; every responder takes that many */

struct rr_reg;

/* What one piece of memory holds while it is offered. */
struct rr_reg_piece {
	const struct rr_reg_ops *ops;
	struct rr_mr *mr;
	struct rr_segment seg; /* as the peer is told */
};

struct rr_reg_ops {
	const char *name;
	/* Bring [addr, addr+len) within reach. -ENOENT: not memory for this strategy. */
	int (*get)(struct rr_reg *reg, void *addr, size_t len, unsigned access,
		   struct rr_reg_piece *ret);
	/* The operation is over. Unless `lasting`, the piece is out of reach on return. */
	void (*put)(struct rr_reg *reg, struct rr_reg_piece *piece);
	/* Take back everything that lasts. */
	void (*revoke)(struct rr_reg *reg);
	bool lasting;
};

extern const struct rr_reg_ops rr_reg_dynamic_ops, rr_reg_slab_ops;

/* The registrations of one connection. */
struct rr_reg {
	struct rpcrdma_engine *engine;
	struct rr_pd *pd;
	const struct rr_reg_ops *ops[2]; /* tried in order; the second may be NULL */
	struct list slabs;               /* reg_slab.c; the domain's lock */
	struct slab_mr *last;            /* ... found last time, good while `freed` has not moved */
	unsigned long freed;
};

/** rr_reg_canonical - a strategy's name as a static string; NULL means auto
 * Return: NULL when there is no strategy of that name */
const char *rr_reg_canonical(const char *name);

/** rr_reg_init - @name is canonical */
void rr_reg_init(struct rr_reg *reg, struct rpcrdma_engine *e, struct rr_pd *pd, const char *name);

/** rr_reg_fini - all pieces have been put; what lasts is taken back */
void rr_reg_fini(struct rr_reg *reg);

/** rr_reg_revoke - on return nothing that lasts is within the peer's reach; pieces still out are
 * to be put as usual, but the connection is of no more use */
void rr_reg_revoke(struct rr_reg *reg);

/** rr_reg_count - pieces that [0, len) of an iov makes: its entries, less the empty ones */
unsigned rr_reg_count(const struct iovec *iov, int iovcnt, uint64_t len);

/** rr_reg_get - offer [0, len) of an iov
 * @access: RR_ACCESS_REMOTE_READ, or RR_ACCESS_REMOTE_WRITE with RR_ACCESS_LOCAL_WRITE
 * @pieces: room for RR_REG_PIECES_MAX; rr_reg_count() says how many are used
 *
 * Return: 0 with *ret_n set; -ENOBUFS: too many pieces; -ENOENT, -ENOMEM, -EFAULT; then none is
 * registered.
 */
must_check int rr_reg_get(struct rr_reg *reg, const struct iovec *iov, int iovcnt, uint64_t len,
			  unsigned access, struct rr_reg_piece *pieces, unsigned *ret_n);

/** rr_reg_put - the reverse
 * Return: false when something of it stays within reach (a `lasting` strategy) */
bool rr_reg_put(struct rr_reg *reg, struct rr_reg_piece *pieces, unsigned n);

/* ---- reg_slab.c ----------------------------------------------------------------------------- */

/** rr_reg_slab_forget - @mem is about to be freed: deregister it everywhere; under the lock */
void rr_reg_slab_forget(struct rr_mem *mem);

#endif
