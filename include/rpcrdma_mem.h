/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * rpcrdma_mem.h - memory that a program allocates or registers in advance, and the pool of data buffers
 */
#ifndef RPCRDMA_MEM_H
#define RPCRDMA_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rpcrdma_loop.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* ---- registered memory --------------------------------------------------------------------- */

/** rpcrdma_mem_alloc - allocates memory for the fastest transfers: page-aligned, pre-faulted, registered once, and
 * mapped by a server on the same host, so that data is placed in it without an intermediate copy
 * @bytes: rounded up to pages
 *
 * Payload moves without a copy if its address and length are multiples of the page size.
 *
 * A call may be cancelled, time out or be retransmitted while a disk operation of a server on the same host uses its
 * memory. The library then replaces the pages of that memory with others of the same content. The address stays. A
 * program that has pinned the pages by other means (fixed buffers of io_uring, a registration of another library)
 * must pin them again after -ETIMEDOUT, -ECANCELED or a lost connection.
 *
 * The memory is shared with children of fork(): what a child stores there, the parent and its peers see. A child must
 * not write to it.
 *
 * Return: 0, -ENOMEM, -EINVAL (0 bytes).
 */
int rpcrdma_mem_alloc(struct rpcrdma_domain *d, size_t bytes, void **ret);

/** rpcrdma_mem_free - frees memory; no call in flight and no transfer of a service may use it. NULL is fine. */
void rpcrdma_mem_free(struct rpcrdma_domain *d, void *mem);

/** rpcrdma_mem_register - marks the caller's own memory for registration at first use; the registration is kept
 * @mem: must stay mapped to the same pages until it is unregistered
 *
 * Read-only memory can be used for the payload of arguments only.
 *
 * Return: 0; -EINVAL (0 bytes); -EFAULT: not mapped; -EEXIST: overlaps registered memory; -ENOMEM.
 */
int rpcrdma_mem_register(struct rpcrdma_domain *d, void *mem, size_t bytes);

/** rpcrdma_mem_unregister - on success no peer can access the memory any more
 *
 * Return: 0; -EBUSY: a call in flight or a transfer of a service uses it; let the engine run and try again; -ENOENT:
 * no registration begins at this address.
 */
int rpcrdma_mem_unregister(struct rpcrdma_domain *d, void *mem);

/* ---- data buffers ------------------------------------------------------------------------- */

/* Page-aligned memory, registered with every open device for local use only: no peer can access it. */
struct rpcrdma_buf {
	void *addr;
	size_t bytes; /* of its size class, at least the requested size */
	bool far;     /* device memory: addr is NULL, and no CPU may access it */
};

#define RPCRDMA_BUF_MAX (4u << 20)
#define RPCRDMA_CALL_BYTES_MAX ((64u << 20) + (64u << 10)) /* longest call of a service, and reply of ready bytes */
#define RPCRDMA_BUF_LEAST (64u << 10) /* every pool has buffers of at least this size, for every use */
#define RPCRDMA_POOL_BYTES_MIN ((size_t)RPCRDMA_BUF_LEAST * 8)
#define RPCRDMA_SHARED_BYTES_MIN ((size_t)64 << 20)
#define RPCRDMA_MSG_BYTES_MIN ((size_t)RPCRDMA_BUF_LEAST * 16)

/** rpcrdma_buf_get - gets a buffer of at least @bytes, at most RPCRDMA_BUF_MAX
 *
 * A pool has only buffer sizes of which it can hold several: see rpcrdma_req.buf_max in rpcrdma_svc.h.
 *
 * Return: 0; -ENOBUFS: the pool is at its limit; wait for a put (rpcrdma_buf_wait); -EMSGSIZE: the pool never has a
 * buffer of this size; -ENOMEM.
 */
int rpcrdma_buf_get(struct rpcrdma_engine *e, size_t bytes, struct rpcrdma_buf **ret);

/** rpcrdma_buf_get_far - gets a buffer of device memory (rpcrdma_domain_attr.dmabuf_fd), for callers that do not
 * access its content
 *
 * Payload that moves by chunk can be pulled into such a buffer and placed from it. If a CPU would have to copy it,
 * rpcrdma_req_pull() and rpcrdma_req_place() return -EOPNOTSUPP. A device that cannot access this memory is not
 * opened: listening or connecting through it fails with -EOPNOTSUPP.
 *
 * Return: as rpcrdma_buf_get(); -EOPNOTSUPP: the domain has no device memory.
 */
int rpcrdma_buf_get_far(struct rpcrdma_engine *e, size_t bytes, struct rpcrdma_buf **ret);
void rpcrdma_buf_put(struct rpcrdma_engine *e, struct rpcrdma_buf *buf);

/* A request that waits for memory; embedded, zero-initialized. */
struct rpcrdma_buf_waiter {
	struct rpcrdma_buf_waiter *next, **link;
	void (*fn)(struct rpcrdma_buf_waiter *w);
};

/** rpcrdma_buf_wait - call after -ENOBUFS: fn runs once on this engine when memory may be available again (FIFO; it
 * may have to wait again) */
void rpcrdma_buf_wait(struct rpcrdma_engine *e, struct rpcrdma_buf_waiter *w);
void rpcrdma_buf_unwait(struct rpcrdma_engine *e, struct rpcrdma_buf_waiter *w);

/* Current state of the pool. */
#define RPCRDMA_POOL_CLASSES 6
struct rpcrdma_pool_stats {
	uint64_t pinned, most, limit;  /* bytes: now, maximum so far (of each use), limit */
	uint64_t huge;                 /* part of pinned: in preallocated huge pages */
	uint64_t far;                  /* bytes of device memory, not part of the above */
	uint64_t given_back;           /* times that unused memory was unpinned, including memory for messages */
	uint64_t msgs, msgs_most, msgs_limit; /* bytes pinned for messages of served connections */
	uint64_t shared_limit;         /* limit of bytes shared with peers on this host */
	uint64_t calls_limit;          /* limit of bytes of calls over TCP, in addition to the above; 0: part of
	                                * msgs_limit */
	struct {
		uint64_t bytes;        /* of one buffer */
		uint64_t free, used;   /* buffers */
	} classes[RPCRDMA_POOL_CLASSES];
};
/** rpcrdma_domain_pool_stats - copies the state of the pool; any thread
 * rpcrdma_domain_pool_stats_sized writes at most @bytes, and clears what the library does not know. */
void rpcrdma_domain_pool_stats_sized(struct rpcrdma_domain *d, struct rpcrdma_pool_stats *ret, size_t bytes);
static inline void rpcrdma_domain_pool_stats(struct rpcrdma_domain *d, struct rpcrdma_pool_stats *ret)
{
	rpcrdma_domain_pool_stats_sized(d, ret, sizeof(*ret));
}

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
