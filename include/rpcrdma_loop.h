/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * rpcrdma_loop.h - the domain of a process, its counters, and the event loop of a thread
 */
#ifndef RPCRDMA_LOOP_H
#define RPCRDMA_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* ---- domain ------------------------------------------------------------------------------- */

struct rpcrdma_domain;
struct rpcrdma_lab;

/* @size of each structure of attributes: see rpcrdma.h. */
struct rpcrdma_domain_attr {
	size_t size;            /* sizeof(struct rpcrdma_domain_attr), or 0 */
	size_t pool_bytes_max;  /* upper bound of the buffer pool; at least RPCRDMA_POOL_BYTES_MIN; 0: 256 MiB */
	size_t msg_bytes_max;   /* upper bound of memory for messages of served connections, in addition to the
	                         * pool; at least RPCRDMA_MSG_BYTES_MIN; 0: 64 MiB */
	size_t shared_bytes_max; /* upper bound of memory shared with peers on this host: half for memory that peers
	                          * offer and bounce areas, half for rings; each user gets a share of both; at least
	                          * RPCRDMA_SHARED_BYTES_MIN; 0: 8 GiB */
	bool pool_arena;        /* allocate the whole pool at once as one block, registered once with each device,
	                         * instead of chunk by chunk on demand */
	int dmabuf_fd;          /* dma-buf of device memory for rpcrdma_buf_get_far(); the caller keeps it */
	size_t dmabuf_bytes;    /* open until the domain is destroyed. 0: none */
	size_t arena_bytes;     /* size of one region, allocated at the beginning, for all rpcrdma_mem_alloc(); 0: a
	                         * region per allocation */
	size_t call_bytes_max;  /* longest call that a service may accept (rpcrdma_svc_attr), at most
	                         * RPCRDMA_CALL_BYTES_MAX; 0: RPCRDMA_BUF_MAX. If it is longer than RPCRDMA_BUF_MAX, half of
	                         * the pool is for long calls and must hold two of them: 4.5 times this value as
	                         * pool_bytes_max is always sufficient */
	mode_t socket_mode;     /* of local listeners; 0: 0666 (the kernel identifies the peer) */
	const struct rpcrdma_lab *lab; /* measurements and tests (rpcrdma_lab.h); NULL: none */
};

/** rpcrdma_domain_create - creates a domain; devices are opened when first needed
 * @attr: NULL for the defaults
 *
 * Return: 0, -ENOMEM, -EINVAL (pool or dma-buf too small, calls too long), -E2BIG (@attr->size), or the errno of creating the capture file.
 */
int rpcrdma_domain_create(const struct rpcrdma_domain_attr *attr, struct rpcrdma_domain **ret);

/** rpcrdma_domain_destroy - every engine of the domain must be destroyed before. NULL is fine. */
void rpcrdma_domain_destroy(struct rpcrdma_domain *d);

/* ---- counters ----------------------------------------------------------------------------- */

/* Counters by name. OWN(name): of requesters only. BOTH(name): of responders and, except conns, conns_total and those
 * that say "server", of requesters.
 *
 *   calls, replies       RPCs started and finished
 *   bytes_in, bytes_out  payload received and sent by this side, by any method
 *   bytes_copied         payload bytes copied by a CPU: memcpy, socket copies, process_vm and memfd copies; a service
 *                        adds its own
 *   bytes_placed         by RDMA Write (server)
 *   bytes_pulled         by RDMA Read (server)
 *   bytes_direct         transferred by the kernel directly into the caller's memory
 *   chunks_read, chunks_write, chunks_reply   Read chunks of arguments, Write chunks and Reply chunks of calls
 *   long_calls           calls whose message moved by a Read chunk at position zero
 *   inline_msgs          other calls: the message was sent itself. Of a responder also calls over TCP; of a requester
 *                        only calls without a Read chunk
 *   err_chunk, err_vers, garbage, dropped     responses to invalid messages
 *   credits_low          smallest credit limit that a requester has seen in force; 0: none yet
 *   credit_waits, buf_waits, sq_waits         waits for a resource; a shortage queues, it is never an error
 *   rnr                  connections lost because the peer had no receive posted
 *   reconnects           connections after the first of a client
 *   timeouts             connections dropped because a call had no reply in time
 *   regs, deregs         registrations and deregistrations of memory for remote access
 *   binds, local_invs    of memory windows: bound, invalidated locally
 *   invalidations        by the peer's Send, or by our Send (server)
 *   reg_hits, reg_misses registration caches: hits, misses
 *   reg_invalidated      ... entries that ended because their memory was unmapped
 *   reg_evicted          ... entries evicted to make room
 *   reg_deferred, reg_flushes                 ... deregistrations deferred; batches of them
 *   reg_reaped           part of deregs: done by a background thread, not during a call
 *   reg_uncacheable      ranges registered for one call because they cannot be cached
 *   reg_bounced          payloads copied through a bounce buffer instead
 *   reg_pinned           bytes registered in the caches now
 *   conns, conns_total   connections of responders: open now; since creation. 0 in a process that
 *                        has clients only (libleat: leat_info.conns)
 *   shared_recvs         receives shared by connections
 *   sleeps, spins        engine: blocking waits; waits ended by polling
 *   posts, completions   batches of work requests posted to a device; completions
 *   offers               read-read: payloads that the requester had to read
 *   fast_writes, grants  calls by fast-write; calls by hybrid
 *   mode_timeouts        memory revoked, or connections closed, because the peer did not respond about announced memory
 *   mode_cuts            connections closed because the peer broke a mode's rules */
#define RPCRDMA_COUNTERS(BOTH, OWN)                                                                 \
	BOTH(calls) BOTH(replies) BOTH(bytes_in) BOTH(bytes_out) BOTH(bytes_copied) BOTH(bytes_placed) \
	BOTH(bytes_pulled) BOTH(bytes_direct) BOTH(chunks_read) BOTH(chunks_write) BOTH(chunks_reply) \
	BOTH(long_calls) BOTH(inline_msgs) BOTH(err_chunk) BOTH(err_vers) BOTH(garbage) BOTH(dropped) \
	OWN(credits_low) OWN(credit_waits) BOTH(buf_waits) BOTH(sq_waits) BOTH(rnr) OWN(reconnects) \
	OWN(timeouts) BOTH(regs) BOTH(deregs) BOTH(binds) BOTH(local_invs) BOTH(invalidations)      \
	OWN(reg_hits) OWN(reg_misses) OWN(reg_invalidated) OWN(reg_evicted) OWN(reg_deferred)       \
	OWN(reg_flushes) OWN(reg_reaped) OWN(reg_uncacheable) OWN(reg_bounced) OWN(reg_pinned)      \
	BOTH(conns) BOTH(conns_total) BOTH(shared_recvs) BOTH(sleeps) BOTH(spins) BOTH(posts)       \
	BOTH(completions) BOTH(offers) BOTH(fast_writes) BOTH(grants) BOTH(mode_timeouts) BOTH(mode_cuts)

#define RPCRDMA_COUNTER(name) uint64_t name;

/* Sums over a domain's engines since its creation. */
struct rpcrdma_stats {
	RPCRDMA_COUNTERS(RPCRDMA_COUNTER, RPCRDMA_COUNTER)
};

/** rpcrdma_domain_stats - copies the counters; any thread; they are not an atomic snapshot
 * rpcrdma_domain_stats_sized writes at most @bytes, and clears what the library does not know. */
void rpcrdma_domain_stats_sized(struct rpcrdma_domain *d, struct rpcrdma_stats *ret, size_t bytes);
static inline void rpcrdma_domain_stats(struct rpcrdma_domain *d, struct rpcrdma_stats *ret)
{
	rpcrdma_domain_stats_sized(d, ret, sizeof(*ret));
}

/* ---- engine ------------------------------------------------------------------------------- */

struct rpcrdma_engine;

enum rpcrdma_poll {
	RPCRDMA_POLL_ADAPTIVE, /* poll for spin_us after the last event, longer if there are pollers, then sleep */
	RPCRDMA_POLL_BUSY,     /* never sleep */
	RPCRDMA_POLL_EVENT,    /* never spin */
};

struct rpcrdma_engine_attr {
	size_t size;      /* sizeof(struct rpcrdma_engine_attr), or 0 */
	enum rpcrdma_poll poll;
	unsigned spin_us; /* 0: 50 */
};

/** rpcrdma_engine_create - creates an event loop for one thread
 * @d: NULL: a domain of its own, with the defaults, which is destroyed with the engine
 * @attr: NULL for the defaults
 *
 * Return: 0, -ENOMEM, -E2BIG (@attr->size), or the errno of creating a descriptor.
 */
int rpcrdma_engine_create(struct rpcrdma_domain *d, const struct rpcrdma_engine_attr *attr,
			  struct rpcrdma_engine **ret);

/** rpcrdma_engine_destroy - clients, listeners and connections on it must be destroyed before, and no thread may be
 * inside rpcrdma_engine_post(). NULL is fine. */
void rpcrdma_engine_destroy(struct rpcrdma_engine *e);

/** rpcrdma_engine_domain - the domain of the engine */
struct rpcrdma_domain *rpcrdma_engine_domain(const struct rpcrdma_engine *e);

/** rpcrdma_engine_abandon - in a child of fork(): closes the child's copies of the sockets of a parent's engine
 * Peers then notice the end of the parent though the child lives on. The child must not use the engine, its domain and
 * its connections in any other way. Over RDMA the peers are disconnected when the parent has ended, but the device's
 * descriptor, and with it the parent's queue pairs, stays open until exec() or exit().
 */
void rpcrdma_engine_abandon(struct rpcrdma_engine *e);

/** rpcrdma_engine_fd - descriptor for another event loop: readable when rpcrdma_engine_poll() has work, if
 * rpcrdma_engine_arm() returned 0 since the last poll */
int rpcrdma_engine_fd(const struct rpcrdma_engine *e);

/** rpcrdma_engine_arm - call before sleeping on the fd; Return: 0, or 1: there is work, poll first */
int rpcrdma_engine_arm(struct rpcrdma_engine *e);

/** rpcrdma_engine_poll - processes everything that is ready, without blocking
 *
 * Return: number of processed events; 0: nothing was ready.
 */
int rpcrdma_engine_poll(struct rpcrdma_engine *e);

/** rpcrdma_engine_wait - polls until an event was processed; spins and sleeps according to the engine's polling mode
 * @timeout_ms: -1: indefinitely
 *
 * A signal runs its handler and does not end the wait. A handler that must end it calls rpcrdma_engine_post(): a wait
 * whose end depended on the signal itself would miss one that arrives just before the sleep.
 *
 * Return: as rpcrdma_engine_poll(); 0: @timeout_ms have passed, never with -1.
 */
int rpcrdma_engine_wait(struct rpcrdma_engine *e, int timeout_ms);

/** rpcrdma_engine_is_running - true inside callbacks of this engine; only on its thread */
bool rpcrdma_engine_is_running(const struct rpcrdma_engine *e);

/* A message to an engine from any thread; embedded in the object it refers to. */
struct rpcrdma_msg {
	struct rpcrdma_msg *next;
	void (*fn)(struct rpcrdma_msg *msg);
};

/** rpcrdma_engine_post - runs @msg->fn on the engine's thread; any thread and signal handler, FIFO, no malloc
 * @msg must not be posted again before its fn runs. */
void rpcrdma_engine_post(struct rpcrdma_engine *e, struct rpcrdma_msg *msg);

/** rpcrdma_engine_enter - takes the place of the engine's thread, if that thread sleeps in rpcrdma_engine_wait(); any
 * other thread
 *
 * Until rpcrdma_engine_leave(), the caller may use all that belongs to the engine's thread, except that it must not
 * poll, wait for or destroy the engine, or add pollers. So it can start work without waking that thread. It should
 * leave soon, since the engine's thread waits for that. Messages that were posted before have run.
 *
 * Return: true: call rpcrdma_engine_leave(); false: the thread does not sleep, has messages, has another visitor, or has
 * connections of a device (RDMA), whose completions would wake it anyway: post a message instead.
 */
bool rpcrdma_engine_enter(struct rpcrdma_engine *e);

/** rpcrdma_engine_linger - between enter and leave: polls for completions of connections, once, and then for as long as
 * the engine's thread would spin before it sleeps
 *
 * Their callbacks run in this function and in the following rpcrdma_engine_leave(), on the caller's thread. Callbacks of
 * messages, descriptors and timers run on the engine's thread in any case. TCP has descriptors only.
 *
 * @done: ends the polling when it is true. So does anything that needs the engine's thread
 */
void rpcrdma_engine_linger(struct rpcrdma_engine *e, const bool *done);

/** rpcrdma_engine_is_visited - true on a thread between enter and leave, false on the engine's thread */
bool rpcrdma_engine_is_visited(const struct rpcrdma_engine *e);

/** rpcrdma_engine_leave - returns the engine to its thread, and wakes it only if there is work */
void rpcrdma_engine_leave(struct rpcrdma_engine *e);

/* A file descriptor watched by an engine; embedded, owned by the caller. */
struct rpcrdma_watch {
	int fd;
	void (*fn)(struct rpcrdma_watch *w, uint32_t events); /* EPOLLIN ... */
};

/** rpcrdma_engine_watch - runs @w->fn whenever @w->fd is ready for @events (as epoll's)
 * Return: 0, or the -errno of epoll_ctl(). */
int rpcrdma_engine_watch(struct rpcrdma_engine *e, struct rpcrdma_watch *w, uint32_t events);
/** rpcrdma_engine_rewatch - changes the events of a watched descriptor; Return: as above */
int rpcrdma_engine_rewatch(struct rpcrdma_engine *e, struct rpcrdma_watch *w, uint32_t events);
/** rpcrdma_engine_unwatch - ends the watch; its fn does not run any more, not even for an event already fetched */
void rpcrdma_engine_unwatch(struct rpcrdma_engine *e, struct rpcrdma_watch *w);

/* A function that runs in every pass of an engine, for completions in memory; embedded, zero-initialized before first
 * use. If something can complete while the engine sleeps, a descriptor (rpcrdma_engine_watch) must wake the engine as
 * well. */
struct rpcrdma_poller {
	int (*fn)(struct rpcrdma_poller *p); /* Return: number of processed events */
	struct rpcrdma_poller *next, **link; /* private */
};

/** rpcrdma_engine_add_poller - runs @p->fn at the end of every pass, and before each sleep; does nothing if already
 * added */
void rpcrdma_engine_add_poller(struct rpcrdma_engine *e, struct rpcrdma_poller *p);
/** rpcrdma_engine_del_poller - removes a poller; does nothing if it was not added
 * The fn of any poller may remove itself or others. */
void rpcrdma_engine_del_poller(struct rpcrdma_engine *e, struct rpcrdma_poller *p);

/* A timer; embedded, owned by the caller, zero-initialised before first use. */
struct rpcrdma_timer {
	void (*fn)(struct rpcrdma_timer *t);
	uint64_t due_ns, serial; /* private from here; CLOCK_MONOTONIC */
	struct rpcrdma_timer *left, *right, **link;
};

/** rpcrdma_timer_set - arms or rearms; fires once, no earlier than @delay_ns from now */
void rpcrdma_timer_set(struct rpcrdma_engine *e, struct rpcrdma_timer *t, uint64_t delay_ns);
/** rpcrdma_timer_cancel - does nothing if not armed */
void rpcrdma_timer_cancel(struct rpcrdma_engine *e, struct rpcrdma_timer *t);

/** rpcrdma_count_copied - a user reports payload bytes copied by a CPU on its behalf, so that the count of copied bytes
 * is complete; a service uses rpcrdma_req.copied */
void rpcrdma_count_copied(struct rpcrdma_engine *e, uint64_t bytes);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
