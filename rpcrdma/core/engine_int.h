/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * engine_int.h - domain and engine for the rest of the library
 *
 * Threads:  `struct rpcrdma_domain` is shared: `lock` guards devices, the pool's segments, the lists of engines
 *           and of memory regions. An engine belongs to its thread, except the inbox.
 */
#ifndef RR_ENGINE_INT_H
#define RR_ENGINE_INT_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/list.h"
#include "account.h"
#include "fabric.h"
#include "mem_kind.h"
#include "ranges.h"
#include "rpcrdma.h"
#include "rpcrdma_lab.h"
#include "timers.h"
#include "waiters.h"
#include "sized.h"

#define RR_DEVS_MAX 8       /* local, and the verbs devices that a server is reached by */
#define RR_POOL_CLASSES 6   /* 4 KiB, 16, 64, 256, 1 MiB, 4 MiB */
#define RR_POOL_LONG RR_POOL_CLASSES /* class of longer buffers: each is a segment of its own size */
#define RR_POOL_NONE (RR_POOL_CLASSES + 1)
#define RR_POOL_LISTS (2 * RR_POOL_CLASSES + 1)
#define RR_MAGAZINE 4       /* buffers of one class that an engine caches ... */
#define RR_MAGAZINE_SENDS 16 /* ... and of the class used for every reply */

/* Test result for a device's memory windows, in addition to its own attributes. */
enum rr_windows_known {
	RR_WINDOWS_UNTRIED,
	RR_WINDOWS_WORK,
	RR_WINDOWS_BROKEN,
};

/* A device of a domain: opened at first use, closed with the domain. */
struct rr_dev {
	struct rr_fabric *fabric;
	struct rr_pd *pd;         /* of the pool's buffers; no registration in it has remote rights */
	unsigned idx;             /* in domain->devs and in a segment's mr[] */
	enum rpcrdma_transport transport;
	atomic_int windows;       /* enum rr_windows_known, from the first bind */
};

struct rr_pool_segment;
struct rr_shared;
struct rr_own;
struct rr_clnt_modes;
struct rr_srv_modes;

/* A pool buffer as the library sees it. */
struct rr_buf {
	struct rpcrdma_buf pub;
	struct rr_buf *next;      /* free list or magazine */
	struct rpcrdma_conn *conn; /* charged for it, or NULL */
	struct rr_pool_segment *segment;
	struct rr_own *own;       /* memory of one connection, instead of a segment; or NULL */
};

/* Uses of memory, in the order in which one request may allocate it: see pool.c. */
enum rr_zone {
	RR_ZONE_RECVS,   /* receives of connections: they back the credits */
	RR_ZONE_CALLS,   /* long calls */
	RR_ZONE_DATA,    /* payload: taken by the service */
	RR_ZONE_SENDS,   /* reply messages */
	RR_ZONE_REPLIES, /* long replies */
	RR_ZONE_FAR,     /* device memory: not for the CPU */
	RR_ZONES,
};

/* pool_arena.c: the whole pool as one contiguous range, if any; under the domain's lock */
struct rr_pool_arena {
	struct rr_extent x;       /* bytes 0: none */
	struct rr_mr *mr[RR_DEVS_MAX];
};

/* One zone of the pool; guarded by the domain's lock. */
struct rr_pool {
	size_t bytes;             /* pinned; also read without the lock */
	size_t bytes_max, bytes_most, bytes_huge;
	size_t bytes_split;         /* of segments with several buffers */
	unsigned classes;         /* buffer classes below this one exist */
	size_t long_max;          /* ... and longer buffers up to this size; 0: none */
	bool far;
	bool msgs;                /* rr_zone_is_msgs() */
	struct rr_budget *budget; /* also counts its bytes, or NULL */
	struct rr_budget *shares; /* ... counts idle bytes in partly used segments, or NULL */
	bool half_split;            /* at most half of it may be segments of several buffers */
	struct rr_source source;  /* far: the source it belongs to */
	uint64_t given_back;      /* segments */
	struct rr_pool_arena *arena; /* that contains the zone, or NULL */
	char *base;               /* ... the zone's range in it, and its allocations */
	struct rr_ranges ranges;
	struct list segments[RR_POOL_LISTS]; /* with several buffers, by class; with one, by class; longer ones */
	uint64_t bufs[RR_POOL_NONE], lent[RR_POOL_NONE]; /* buffers in segments; buffers lent; by class */
	struct list line;         /* rr_buf_cache.link: engines with waiters, in order of turn */
	unsigned waiting;         /* their number; read without the lock */
};

/* One engine's state for one zone; its own, except @link and @msg_out. */
struct rr_buf_cache {
	struct rpcrdma_engine *engine;
	enum rr_zone zone;
	struct rr_buf *magazine[RR_POOL_CLASSES];
	unsigned in_magazine[RR_POOL_CLASSES];
	struct rr_waiters waiters;
	bool running;                    /* inside on_ring() */
	struct list link;                /* pool->line; under the lock, as those of its neighbours ... */
	bool in_line;                    /* ... and whether it is linked */
	struct rpcrdma_msg msg;          /* it may be our turn, or others starve: empty the magazine */
	atomic_bool msg_out;
};

struct rpcrdma_domain {
	pthread_mutex_t lock;
	struct rpcrdma_domain_attr attr;
	struct rpcrdma_lab lab; /* attr.lab */
	char *capture;
	struct rr_dev devs[RR_DEVS_MAX];
	unsigned ndevs;
	struct rr_pool pools[RR_ZONES];
	struct rr_pool_arena pool_arena;
	uint64_t pool_idle_ns;           /* how long a completely free segment is kept */
	_Atomic size_t recv_bytes;       /* of receives: ep.c */
	atomic_uint recv_short;          /* times that receives ran short: srv_credit.c */
	struct rr_clients clients;       /* of all responders: account.h */
	struct list engines;
	struct list mems;                /* mem.c: regions of rpcrdma_mem_alloc */
	atomic_bool mems_parted;         /* some of them consist of parts: mem_replace.c */
	struct list svc_mems;            /* svc_mem.c: those in transfers of services */
	struct rr_mem *arena;            /* ... the one that backs all of it, or NULL */
	struct rr_ranges arena_ranges;   /* ... allocations in it */
	struct list shared_pds;          /* reg_shared_pd.c */
	const struct rr_clnt_modes *clnt_modes; /* clnt_mode_ops.h, srv_mode_ops.h: set by domain.c */
	const struct rr_srv_modes *srv_modes;
	struct rpcrdma_stats gone;       /* counters of destroyed engines */
};

#define RR_HELD_UP_NS (300 * NS_PER_US) /* a yield takes that long only if another thread has work to do */
#define RR_CONTENTION_MAX 1023u

struct rr_contention {
	unsigned left; /* number of waits that must not spin */
	unsigned turn; /* basis of the next value of left */
};

/** rr_contention_yielded - records how long a yield while spinning took
 *
 * sched_yield() to a CPU-bound thread costs a whole time slice, which is milliseconds. A sleeping thread runs
 * as soon as it is woken. So threads do not spin while the CPUs are busy, except for attempts that become ever
 * rarer.
 */
static inline void rr_contention_yielded(struct rr_contention *c, uint64_t took_ns)
{
	if (took_ns < RR_HELD_UP_NS) {
		c->turn /= 2;
	} else {
		c->turn = MIN(2 * c->turn + 1, RR_CONTENTION_MAX);
		c->left = c->turn;
	}
}

#define RR_DOZE_AWAITED 16u           /* replies due */
#define RR_DOZE_NS (10 * NS_PER_US)
#define RR_DOZE_MAX_NS (40 * NS_PER_US)
#define RR_DOZE_TURN_MAX 4095u

struct rr_doze {
	uint64_t ns;
	unsigned left; /* number of spins that must not be dozes */
	unsigned turn; /* basis of the next value of left */
};

/** rr_doze_is_due - may a thread doze instead of spinning? @awaited: replies due */
static inline bool rr_doze_is_due(struct rr_doze *d, unsigned awaited)
{
	if (awaited < RR_DOZE_AWAITED)
		return false;
	d->left -= d->left > 0;
	return !d->left;
}

/** rr_doze_ended - learns from a doze
 * @awaited: replies that were due when it began; @found: those that it brought
 *
 * With many replies due, the peer has work, and a thread that spins finds the next reply, and the next: the peer decides
 * how fast they come. A short sleep finds several at once, in less processor time. It should end when the peer has half
 * of its work left. If it has little left, or none, the sleep took too long, perhaps because another thread has the CPU:
 * the next ones are shorter, and become ever rarer.
 */
static inline void rr_doze_ended(struct rr_doze *d, unsigned awaited, unsigned found)
{
	bool late = 8 * found >= 7 * awaited;

	if (late)
		d->ns /= 2;
	else if (8 * found < 5 * awaited)
		d->ns = MIN(d->ns + d->ns / 4 + NS_PER_US, RR_DOZE_MAX_NS);
	if (late || 8 * found < awaited) {
		d->turn = MIN(2 * d->turn + 1, RR_DOZE_TURN_MAX);
		d->left = d->turn;
		return;
	}
	d->turn /= 2;
}

#define RR_SPIN_MORE 8u  /* upper bound of the spin time for a device, as a multiple of attr.spin_us */
#define RR_SPIN_LESS 16u /* lower bound of any other, as a part of it */

/** rr_spin_learnt - returns the time to spin from now on
 * @spin_ns: the time until now, after which the thread slept nevertheless
 * @usual_ns: attr.spin_us
 * @polled: a device was polled
 * @waited_ns: from the last event to the end of that sleep
 *
 * The spin time grows if it could have covered the wait, and shrinks if not. Without a device, it never grows beyond
 * the usual one: an engine that waits for replies of a megabyte each would spin half of the time in vain.
 *
 * A disk takes longer to respond than a network. A thread that sleeps before the response wakes up late,
 * replies to many requests at once, receives many at once, and is idle while the disk works on them. So it
 * sleeps again. Hence it may spin longer for a device.
 */
static inline uint64_t rr_spin_learnt(uint64_t spin_ns, uint64_t usual_ns, bool polled, uint64_t waited_ns)
{
	uint64_t least = polled ? usual_ns : usual_ns / RR_SPIN_LESS, most = polled ? RR_SPIN_MORE * usual_ns : usual_ns;

	return waited_ns <= most ? MIN(MAX(2 * spin_ns, usual_ns), most) : MAX(MIN(spin_ns, most) / 2, least);
}

#define RR_READY_MAX 64        /* events of descriptors in one pass */
#define RR_YIELD_AFTER_MAX 64u /* of rpcrdma_engine.yield_after */
/* While there are queue pairs, descriptors and timers are looked at when this many passes and this time have gone by: an
 * epoll_wait() costs as much as 30 looks at a ring in memory, and a pass may take long. */
#define RR_LOOK_PASSES 8u
#define RR_LOOK_NS (10 * NS_PER_US)

struct rpcrdma_engine {
	struct rpcrdma_domain *domain;
	struct rpcrdma_domain *own_domain; /* the same, if it was created for this engine; else NULL */
	struct list link;                /* domain->engines */
	struct rpcrdma_engine_attr attr;
	int epfd;

	_Atomic(struct rpcrdma_msg *) inbox; /* pushed by any thread, taken whole by the owner */
	atomic_bool sleeping;                /* the pusher must ring the bell */
	struct rpcrdma_watch bell;
	pthread_mutex_t door;                /* held by a thread that visits while the owner sleeps */
	atomic_bool open;                    /* the owner sleeps: a visit may begin */
	unsigned visits;                     /* so far; under the lock */
	bool visited, visitor_polls;         /* by this visitor, which has disarmed the queues */
	uint64_t sleep_until_ns;             /* UINT64_MAX: no limit */
	struct rpcrdma_msg *deferred, **deferred_tail; /* own messages for the next poll */
	unsigned ndeferred;

	_Atomic(struct rr_cq *) cq[RR_DEVS_MAX]; /* created by the first user, under the lock */
	atomic_uint ncqs;                /* all queues have a lower index */
	struct rpcrdma_watch cq_watch[RR_DEVS_MAX];
	uint64_t looks;                  /* passes over the queues so far */
	unsigned qps;                    /* on any of the queues: worth spinning for */
	struct list conns;               /* rpcrdma_conn: adopted */

	struct rr_shared *shared[RR_DEVS_MAX]; /* created by the first user, under the lock */
	pthread_mutex_t shared_lock;

	struct rr_timers timers;
	struct rpcrdma_watch alarm;      /* timerfd, for threads that sleep on the engine's fd */
	uint64_t alarm_ns;

	struct rpcrdma_poller *pollers;  /* most recently added first */
	struct rpcrdma_poller *poller_next; /* while they run: the next one */

	struct epoll_event *ready;       /* batch being dispatched */
	int nready, at_ready;
	bool running;                    /* callbacks may be on the stack */
	uint64_t last_event_ns;
	uint64_t spin_ns;                /* how long to spin: rr_spin_learnt() */
	struct rr_contention contention;
	struct rr_doze doze;
	uint32_t awaited;                /* replies due, of all requesters: credit.h */
	bool busy;                       /* had work since last_event_ns, which is only updated when idle */
	unsigned passes;                 /* since looked_ns was last compared */
	uint64_t looked_ns;              /* last look at descriptors and timers; 0: the next comparison looks */
	unsigned yield_after;            /* unsuccessful passes before a yield of the CPU */

	struct rr_buf_cache buf_caches[RR_ZONES];
	struct rpcrdma_timer pool_timer; /* checks for idle memory */
	bool pool_used;                  /* memory was returned since it was set */
	struct list shares;              /* rr_conn_part.look_link: connections waiting for their share ... */
	struct rpcrdma_timer shares_timer; /* ... and the next check of them: srv_buf.c */

	struct rpcrdma_stats stats;      /* written by the owner only; read by rpcrdma_domain_stats */
};

/* A counter has one writer, its engine, and any number of readers. */
#define rr_count(engine, counter, n)                                                           \
	__atomic_store_n(&(engine)->stats.counter, (engine)->stats.counter + (uint64_t)(n),    \
			 __ATOMIC_RELAXED)
#define rr_count_set(engine, counter, n)                                                       \
	__atomic_store_n(&(engine)->stats.counter, (uint64_t)(n), __ATOMIC_RELAXED)

/** rr_domain_dev - returns a device for @transport, opening it if necessary
 * Return: 0; -ENODEV: none on this machine; -EOPNOTSUPP: not in this build; -ENOMEM */
must_check int rr_domain_dev(struct rpcrdma_domain *d, enum rpcrdma_transport transport,
			     struct rr_dev **ret);

/** rr_domain_has_dev - Return: 0; -ENODEV: no device of this transport; -EOPNOTSUPP: not in this build */
must_check int rr_domain_has_dev(enum rpcrdma_transport transport);

/** rr_domain_dev_at - returns the device that has the address @where, or a route to it; opens it if necessary
 * @where: as rr_listen() and rr_qp_dial() take it; resolves a name for verbs, which blocks
 * @passive: an address of this host
 *
 * Return: 0; -ENXIO: no RDMA device has it or a route to it; errors of rr_domain_dev() and of the resolver */
must_check int rr_domain_dev_at(struct rpcrdma_domain *d, enum rpcrdma_transport transport,
				const char *where, bool passive, struct rr_dev **ret);

/** rr_domain_dev_of - returns the device of this fabric */
struct rr_dev *rr_domain_dev_of(struct rpcrdma_domain *d, const struct rr_fabric *fabric);

/** rr_addr_is_literal - does an address need no look-up, for which getaddrinfo() may wait? Does not block */
bool rr_addr_is_literal(const struct rpcrdma_addr *a);

/** rr_addr_where - formats an address for the fabrics: the path, "host:port", "[v6]:port" */
#define RR_WHERE_BYTES (sizeof(((struct rpcrdma_addr *)0)->host) + sizeof("[]:65535"))
const char *rr_addr_where(const struct rpcrdma_addr *a, char buf[RR_WHERE_BYTES]);

/** rr_domain_add_engine, rr_domain_del_engine - start and stop summing its counters; del keeps their values */
void rr_domain_add_engine(struct rpcrdma_domain *d, struct rpcrdma_engine *e);
void rr_domain_del_engine(struct rpcrdma_domain *d, struct rpcrdma_engine *e);

/** rr_engine_cq - returns this engine's completion queue on @dev, creating it if necessary */
must_check int rr_engine_cq(struct rpcrdma_engine *e, struct rr_dev *dev, struct rr_cq **ret);

/** rr_engine_run_events - runs the @n events in e->ready; Return: as rpcrdma_engine_poll(), like the next three */
int rr_engine_run_events(struct rpcrdma_engine *e, int n);
/** rr_engine_run_cqs - runs the completions of all queues */
int rr_engine_run_cqs(struct rpcrdma_engine *e);
/** rr_engine_run_deferred - runs the messages of rr_engine_defer() */
int rr_engine_run_deferred(struct rpcrdma_engine *e);
/** rr_engine_run_awake - the pass after a sleep: all but descriptors */
int rr_engine_run_awake(struct rpcrdma_engine *e);
/** rr_engine_ring - wakes the engine's thread; any thread */
void rr_engine_ring(struct rpcrdma_engine *e);

/** rr_engine_defer - runs @msg->fn at the next poll of this (own) engine; for callbacks that must not run
 * inside the call that caused them */
void rr_engine_defer(struct rpcrdma_engine *e, struct rpcrdma_msg *msg);
/** rr_engine_undefer - cancels it, if it has not run */
void rr_engine_undefer(struct rpcrdma_engine *e, struct rpcrdma_msg *msg);

/** rr_buf_mr - returns the region that covers a pool buffer on @dev */
struct rr_mr *rr_buf_mr(const struct rpcrdma_buf *buf, const struct rr_dev *dev);

/** rr_pool_init, rr_pool_fini, rr_pool_attach (after a device opened: registers all segments)
 *
 * Return: init: 0; -EINVAL: less than RPCRDMA_POOL_BYTES_MIN; -ENOMEM
 */
must_check int rr_pool_init(struct rpcrdma_domain *d);
void rr_pool_fini(struct rpcrdma_domain *d);
must_check int rr_pool_attach(struct rpcrdma_domain *d, struct rr_dev *dev);
/** rr_pool_buf_max - returns the size of the largest buffer of a zone; 0: none */
size_t rr_pool_buf_max(const struct rr_pool *pool);
/** rr_pool_round - returns the size of the buffer that a zone allocates for @bytes; 0: none fits */
size_t rr_pool_round(const struct rr_pool *pool, size_t bytes);

/** rr_zone_is_msgs - is this memory for messages, which has a separate limit? */
static inline bool rr_zone_is_msgs(enum rr_zone zone)
{
	return zone == RR_ZONE_RECVS || zone == RR_ZONE_SENDS;
}

/** rr_zone_share - returns a client's share of a zone; RR_SHARES: it has no shares */
static inline enum rr_share rr_zone_share(enum rr_zone zone)
{
	return zone == RR_ZONE_CALLS ? RR_SHARE_CALLS : zone == RR_ZONE_DATA ? RR_SHARE_DATA :
	       zone == RR_ZONE_REPLIES ? RR_SHARE_REPLIES : zone == RR_ZONE_SENDS ? RR_SHARE_SENDS : RR_SHARES;
}

/* Memory of a single connection, outside the pool. */
struct rr_own {
	struct rr_mr *mr;         /* of all of its buffers */
	/* rpcrdma_buf_put() of one of them, on the connection's engine; until the adoption, by the thread that accepts */
	void (*put)(struct rr_own *own, struct rr_buf *b);
};

/** rr_buf_get, rr_buf_wait - as rpcrdma_buf_get() and rpcrdma_buf_wait(), for memory of any use
 * Threads: the engine's; rr_buf_get() of receives: any, as they have no waiters and no engine caches them. */
must_check int rr_buf_get(struct rpcrdma_engine *e, enum rr_zone zone, size_t bytes,
			  struct rpcrdma_buf **ret);
void rr_buf_wait(struct rpcrdma_engine *e, enum rr_zone zone, struct rpcrdma_buf_waiter *w);
/** rr_buf_unwait - as rpcrdma_buf_unwait() */
void rr_buf_unwait(struct rpcrdma_engine *e, enum rr_zone zone, struct rpcrdma_buf_waiter *w);

/** rr_buf_pack - exchanges an empty buffer for one of a fuller segment, if possible, so that segments become
 * completely free. Only done when much is free, because it takes the lock.
 *
 * Return: true: it is another buffer now.
 */
must_check bool rr_buf_pack(struct rpcrdma_engine *e, struct rpcrdma_buf **buf);

/** rr_conn_buf_put - srv_buf.c: returns a buffer charged to this connection */
void rr_conn_buf_put(struct rpcrdma_conn *c, enum rr_zone zone, size_t bytes);
/** rr_pool_drain - empties an engine's magazine; call after its last buffer is returned */
void rr_pool_drain(struct rpcrdma_engine *e);
void rr_buf_cache_init(struct rpcrdma_engine *e);

/* mem.c */
struct rr_mem {
	struct list link;   /* domain->mems */
	struct rr_extent x; /* a memfd, or a part of one */
	size_t whole_bytes; /* first part: size of the whole allocation; other parts: 0 (mem_replace.c) */
	bool given;         /* ... or the application's: rpcrdma_mem_register() */
	struct list mrs;    /* reg_slab.c: its registrations, one per connection */
	atomic_uint out;    /* segments offered to peers */
};
/** rr_mem_init - creates the arena, if configured; Return: 0, -ENOMEM */
must_check int rr_mem_init(struct rpcrdma_domain *d);
/** rr_mem_segments - returns how many segments [0, len) of an iov makes: one for each entry that is not empty, and
 * for each part of a region that an entry touches (mem_replace.c) */
unsigned rr_mem_segments(struct rpcrdma_domain *d, const struct iovec *iov, int iovcnt, uint64_t len);
/** rr_mem_is_there - is [0, len) of an iov mapped, with the right to read, or write?
 *
 * For memory that is copied instead of being registered; a registration checks by itself. If another thread
 * unmaps the memory before the copy, that is an error of the program.
 */
bool rr_mem_is_there(const struct iovec *iov, int iovcnt, uint64_t len, bool write);
void rr_mem_fini(struct rpcrdma_domain *d);

/* svc_mem.c */

/** rr_svc_mem_get - makes [addr, addr+len) usable in transfers of a service
 * @dev: of the connection; NULL: none
 * @write: the transfer writes to it
 * @ret: as a buffer, which begins at or before @addr; for rr_svc_mem_put()
 *
 * Return: 0; -EFAULT: not memory of this domain; -ENOMEM, errors of the device.
 */
must_check int rr_svc_mem_get(struct rpcrdma_domain *d, struct rr_dev *dev, void *addr, size_t len, bool write,
			      struct rpcrdma_buf **ret);
/** rr_svc_mem_put - ends the use by one request */
void rr_svc_mem_put(struct rpcrdma_domain *d, struct rpcrdma_buf *buf);

#endif
