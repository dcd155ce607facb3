/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * rpcrdma.h - ONC RPC over RDMA (RFC 8166), over the same-host fabric, and over TCP (RFC 5531)
 *
 * Objects, from the outside in:
 *   domain   one per process: devices, pinned memory, the pool of data buffers
 *   engine   one thread's event loop: completion queue, sockets, timers, inbox
 *   clnt     a requester's connection to one server; it survives reconnects
 *   listener, conn, req   objects of a responder
 *
 * Threads:  A domain may be used by several threads. An engine and all objects on it belong to
 *           one thread at a time; only rpcrdma_engine_post() may be called from other threads.
 *           Callbacks run inside rpcrdma_engine_poll()/_wait() of the owning thread, never inside
 *           the call that started an operation.
 * Memory:   Memory passed by a caller stays the caller's and must stay valid until the callback
 *           that ends the operation. Strings and attributes are copied.
 * Errors:   0 or -errno; outputs (ret_*, *ret) are written on success only.
 */
#ifndef RPCRDMA_H
#define RPCRDMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "rpcrdma_payload.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* ---- addresses ---------------------------------------------------------------------------- */

enum rpcrdma_transport { RPCRDMA_TCP, RPCRDMA_LOCAL, RPCRDMA_RDMA };

struct rpcrdma_addr {
	enum rpcrdma_transport transport;
	char host[256]; /* TCP, RDMA: name or literal address; LOCAL: path of the socket */
	uint16_t port;  /* TCP, RDMA */
};

/** rpcrdma_transport_name - "tcp", "local", "rdma" */
const char *rpcrdma_transport_name(enum rpcrdma_transport t);

/** rpcrdma_addr_parse - "tcp://HOST[:PORT]", "rdma://HOST[:PORT]", "local:///PATH"
 * A literal IPv6 address stands in brackets. Ports default to 2049 and 20049.
 *
 * Return: 0, or -EINVAL (scheme, port or brackets), -ENAMETOOLONG.
 */
int rpcrdma_addr_parse(const char *url, struct rpcrdma_addr *ret);

/** rpcrdma_addr_print - the inverse; Return: @buf */
char *rpcrdma_addr_print(const struct rpcrdma_addr *a, char *buf, size_t cap);

/* ---- modes -------------------------------------------------------------------------------- */

/* Data transfer modes other than RFC 8166, modeled on older designs, for comparison. They work over RDMA and the
 * local fabric, on connections where both sides request them; other connections are not affected. They let the peer
 * access memory of the responder that belongs to that connection only. */
enum rpcrdma_mode {
	RPCRDMA_READ_READ = 1u << 0,  /* results: the requester reads them from where the responder says */
	RPCRDMA_FAST_WRITE = 1u << 1, /* arguments of some KiB: written with the call, into slots */
	RPCRDMA_HYBRID = 1u << 2,     /* larger arguments: written to where the responder says, before the call */
};
#define RPCRDMA_MODES_ALL 7u
#define RPCRDMA_FAST_WRITE_MAX (64u << 10) /* maximum payload of one fast write */
#define RPCRDMA_MODES_TEXT 40              /* enough for all names */

/** rpcrdma_modes_parse - parses any subset of "read-read, fast-write, hybrid", or "none"
 * Return: 0; -EINVAL: unknown name, or empty */
int rpcrdma_modes_parse(const char *text, unsigned *ret);

/** rpcrdma_modes_print - the inverse; Return: @buf */
char *rpcrdma_modes_print(unsigned modes, char *buf, size_t cap);

/* ---- domain ------------------------------------------------------------------------------- */

struct rpcrdma_domain;
struct rr_local_attr;

/* Simulated cost of memory registration on the local fabric, for benchmarks; it has no real cost there. The
 * registering thread is kept busy for this time. */
struct rpcrdma_reg_cost {
	uint32_t reg_ns, reg_page_ns;     /* per registration, and per page */
	uint32_t dereg_ns, dereg_page_ns;
};

struct rpcrdma_domain_attr {
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
	const char *capture;    /* file for a pcap, as RoCEv2, of all traffic of this process over the local fabric;
	                         * NULL: none */
	bool unsafe_inv;        /* tests: remote invalidation in both directions even on soft RoCE, where a faulty
	                         * peer can crash the kernel of its host */
	struct rpcrdma_reg_cost reg_cost; /* of the local fabric */
	const struct rr_local_attr *local; /* tests: hooks of the local fabric; NULL: plain */
	mode_t socket_mode;     /* of local listeners; 0: 0666 (the kernel identifies the peer) */
};

/** rpcrdma_domain_create - creates a domain; devices are opened when first needed
 * @attr: NULL for the defaults
 *
 * Return: 0, -ENOMEM, -EINVAL (pool or dma-buf too small), or the errno of creating the capture file.
 */
int rpcrdma_domain_create(const struct rpcrdma_domain_attr *attr, struct rpcrdma_domain **ret);

/** rpcrdma_domain_destroy - every engine of the domain must be destroyed before. NULL is fine. */
void rpcrdma_domain_destroy(struct rpcrdma_domain *d);

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
 * Return: 0, -ENOMEM, -EINVAL (0 bytes).
 */
int rpcrdma_mem_alloc(struct rpcrdma_domain *d, size_t bytes, void **ret);

/** rpcrdma_mem_free - frees memory; no call in flight may use it. NULL is fine. */
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
 * Return: 0; -EBUSY: a call in flight uses it; let the engine run and try again; -ENOENT: no registration begins at
 * this address.
 */
int rpcrdma_mem_unregister(struct rpcrdma_domain *d, void *mem);

/** rpcrdma_registration - name of the @n-th strategy accepted in rpcrdma_clnt_attr; NULL: no more */
const char *rpcrdma_registration(size_t n);

/** rpcrdma_reg_bytes_default - default limit of a registration cache: half of what this process may pin
 * (RLIMIT_MEMLOCK, if it applies to the process, or a quarter of the machine's memory) */
size_t rpcrdma_reg_bytes_default(void);

/* ---- counters ----------------------------------------------------------------------------- */

/* Counters by name. BOTH(name): of requesters and responders; OWN(name): of requesters only.
 *
 *   calls, replies       RPCs started and finished
 *   bytes_in, bytes_out  payload received and sent by this side, by any method
 *   bytes_copied         payload bytes copied by a CPU: memcpy, socket copies, process_vm and memfd copies; a service
 *                        adds its own
 *   bytes_placed         by RDMA Write (server)
 *   bytes_pulled         by RDMA Read (server)
 *   bytes_direct         transferred by the kernel directly into the caller's memory
 *   err_chunk, err_vers, garbage, dropped     responses to invalid messages
 *   credits_low          smallest credit limit that a requester has seen in force; 0: none yet
 *   credit_waits, buf_waits, sq_waits         waits for a resource; a shortage queues, it is never an error
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
 *   conns, conns_total   open now; since creation
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

/** rpcrdma_domain_stats - copies the counters; any thread; they are not an atomic snapshot */
void rpcrdma_domain_stats(struct rpcrdma_domain *d, struct rpcrdma_stats *ret);

/* ---- engine ------------------------------------------------------------------------------- */

struct rpcrdma_engine;

enum rpcrdma_poll {
	RPCRDMA_POLL_ADAPTIVE, /* poll for spin_us after the last event, longer if there are pollers, then sleep */
	RPCRDMA_POLL_BUSY,     /* never sleep */
	RPCRDMA_POLL_EVENT,    /* never spin */
};

struct rpcrdma_engine_attr {
	enum rpcrdma_poll poll;
	unsigned spin_us; /* 0: 50 */
};

/** rpcrdma_engine_create - creates an event loop for one thread
 * @attr: NULL for the defaults
 *
 * Return: 0, -ENOMEM, or the errno of creating a descriptor.
 */
int rpcrdma_engine_create(struct rpcrdma_domain *d, const struct rpcrdma_engine_attr *attr,
			  struct rpcrdma_engine **ret);

/** rpcrdma_engine_destroy - clients, listeners and connections on it must be destroyed before. NULL is fine. */
void rpcrdma_engine_destroy(struct rpcrdma_engine *e);

/** rpcrdma_engine_domain - the domain of the engine */
struct rpcrdma_domain *rpcrdma_engine_domain(const struct rpcrdma_engine *e);

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
 * Return: as rpcrdma_engine_poll(); 0 on timeout or signal.
 */
int rpcrdma_engine_wait(struct rpcrdma_engine *e, int timeout_ms);

/* A message to an engine from any thread; embedded in the object it refers to. */
struct rpcrdma_msg {
	struct rpcrdma_msg *next;
	void (*fn)(struct rpcrdma_msg *msg);
};

/** rpcrdma_engine_post - runs @msg->fn on the engine's thread; any thread, FIFO, no malloc */
void rpcrdma_engine_post(struct rpcrdma_engine *e, struct rpcrdma_msg *msg);

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

/* ---- data buffers ------------------------------------------------------------------------- */

/* Page-aligned memory, registered with every open device for local use only: no peer can access it. */
struct rpcrdma_buf {
	void *addr;
	size_t bytes; /* of its size class, at least the requested size */
	bool far;     /* device memory: addr is NULL, and no CPU may access it */
};

#define RPCRDMA_BUF_MAX (4u << 20)
#define RPCRDMA_BUF_LEAST (64u << 10) /* every pool has buffers of at least this size, for every use */
#define RPCRDMA_POOL_BYTES_MIN ((size_t)RPCRDMA_BUF_LEAST * 8)
#define RPCRDMA_SHARED_BYTES_MIN ((size_t)64 << 20)
#define RPCRDMA_MSG_BYTES_MIN ((size_t)RPCRDMA_BUF_LEAST * 16)

/** rpcrdma_buf_get - gets a buffer of at least @bytes, at most RPCRDMA_BUF_MAX
 *
 * A pool has only buffer sizes of which it can hold several: see rpcrdma_req.buf_max.
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

/* Buffers for one request. They are charged to its client (rpcrdma_client_id_of()) and its connection until
 * rpcrdma_buf_put(), at the latest in the req's done. A client may hold twice what is free (and always one buffer): a
 * single client two thirds, two clients two fifths each, eight two seventeenths each. Within a client, connections
 * share in the same way. A connection starts with a sixteenth and earns more by returning buffers, so that peers that
 * do not receive their replies leave memory for others. */

struct rpcrdma_req;

/** rpcrdma_req_buf_get - as rpcrdma_buf_get(); -ENOBUFS also if the connection or its client has used up its share;
 * -ENOTCONN: the connection is closed */
int rpcrdma_req_buf_get(struct rpcrdma_req *req, size_t bytes, struct rpcrdma_buf **ret);
/** rpcrdma_req_buf_wait - call after -ENOBUFS: fn runs once on the req's engine when a retry may succeed */
void rpcrdma_req_buf_wait(struct rpcrdma_req *req, struct rpcrdma_buf_waiter *w);

/** rpcrdma_domain_reply_max - maximum length of a reply without payload in chunks */
size_t rpcrdma_domain_reply_max(const struct rpcrdma_domain *d);

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
void rpcrdma_domain_pool_stats(struct rpcrdma_domain *d, struct rpcrdma_pool_stats *ret);

/* ---- requester ---------------------------------------------------------------------------- */

struct rpcrdma_clnt;

/* AUTH_SYS (RFC 5531 appendix A), or AUTH_NONE when `none` */
struct rpcrdma_cred {
	bool none;
	uint32_t stamp;         /* distinguishes this requester from others on its host */
	char machine[64];
	uint32_t uid, gid, ngids;
	uint32_t gids[16];
};

enum rpcrdma_clnt_state {
	RPCRDMA_CLNT_CONNECTING,
	RPCRDMA_CLNT_UP,
	RPCRDMA_CLNT_DOWN,   /* waiting to reconnect */
};

#define RPCRDMA_CLNT_CREDITS_MAX 1024u

struct rpcrdma_clnt_attr {
	struct rpcrdma_addr addr;
	struct rpcrdma_cred cred;      /* copied; a call may have its own */
	uint32_t inline_bytes;         /* size of Send and receive buffers; 1024..65536; 0: 4096 */
	uint32_t credits;              /* requested, <= RPCRDMA_CLNT_CREDITS_MAX; 0: 64; on TCP, maximum calls in flight */
	uint32_t timeout_ms;           /* without a reply: disconnect, reconnect, retransmit; 0: 60000 */
	uint32_t connect_ms;           /* limit of one attempt; 0: 10000 */
	uint32_t backoff_ms;           /* first delay between attempts, doubles up to 64 times; 0: 50 */
	bool no_private_data;          /* act as a peer without RFC 8797 */
	bool force_chunks;             /* tests: use chunks even for payload that fits inline */
	unsigned modes;                /* enum rpcrdma_mode; -ENOPROTOOPT if the responder lacks them; -EINVAL with
	                                * TCP or registration by windows */
	uint32_t fast_write_bytes;     /* maximum payload of a fast write, <= RPCRDMA_FAST_WRITE_MAX; 0: that maximum */
	bool check_socket;             /* LOCAL: connect only to a socket of root, of this process's user or of
	                                * socket_uid, at a path that no other user can replace; else -EPERM */
	uid_t socket_uid;              /* 0: no other user */
	/* How the peer gets access to the memory of calls; ignored on TCP. leat(7) describes the strategies under
	 * registration. */
	const char *registration;      /* "auto", "dynamic", "cache", "batch", "slab", "arena",
	                                * "window"; NULL: auto */
	const char *monitor;           /* how a cache detects unmapped memory: "uffd"; "explicit": no detection,
	                                * only rpcrdma_mem memory is cached; "none": no detection, everything is
	                                * cached, for tests; NULL: uffd */
	uint32_t bounce_bytes;         /* smaller payload is copied through a bounce buffer; 0: auto, which copies
	                                * less than 16 KiB instead of registering it for the call */
	bool no_bounce;                /* do not copy, except where it is unavoidable */
	uint32_t reg_entries;          /* limit of a cache; 0: 1024 */
	size_t reg_bytes;              /* limit of a cache; 0: half of what may be pinned */
	uint32_t dirty_watermark;      /* entries collected before they are deregistered together; 0: 32 */
	/* called at each change, with the reason as text; may be NULL */
	void (*state)(void *ctx, enum rpcrdma_clnt_state s, const char *why);
	/* Called with @away true and a reason in @why if the server owes replies and has sent none for @away_ms, or
	 * if calls have waited for a connection for as long. Called with false when the server has sent a reply
	 * again. Intended for user messages: it must not call back into the client. May be NULL, which saves its
	 * cost. */
	void (*away)(void *ctx, bool away, const char *why);
	uint32_t away_ms;              /* 0: 5000 */
	void *ctx;
};

/* One call. Owned by the caller from start to done; zero-initialize before filling it. */
struct rpcrdma_call {
	uint32_t prog, vers, proc;
	const struct rpcrdma_cred *cred;   /* NULL: the client's */
	xdrproc_t encode;                  /* arguments; runs again if the call is retransmitted */
	const void *args;
	xdrproc_t decode;                  /* results */
	void *res;
	const struct iovec *sink;          /* memory for the results' payload; the sum is its maximum length */
	int sinkcnt;
	uint32_t reply_max;                /* maximum results, XDR bytes without payload and RPC header */
	uint32_t deadline_ms;              /* fail with -ETIMEDOUT after this time; 0: never */
	void (*done)(struct rpcrdma_call *call, int err);

	/* valid in done() */
	uint32_t xid;
	uint32_t payload_bytes;            /* of the results, now in sink */
	const char *why;                   /* on failure: text for users; static or owned by the client */
	void *priv;                        /* private */
};

/** rpcrdma_clnt_create - starts connecting; calls may be made at once
 *
 * Until the first connection is established, a failure to connect fails every waiting call with its errno (later
 * calls start a new attempt). From then on the connection is re-established indefinitely, with the same XIDs and new
 * registrations; a call fails only by its deadline or its reply.
 *
 * RDMA uses the device that the kernel's routes select. A host name is resolved at each connect, by getaddrinfo() on
 * the engine's thread; this blocks everything else on that engine until the resolver returns. A literal address needs
 * no resolver.
 *
 * Return: 0, -EINVAL (attributes), -ENOMEM, -EOPNOTSUPP (no such transport in this build); RDMA: -ENODEV without a
 * device, -ENXIO if no device leads there, and errors of the resolver.
 */
int rpcrdma_clnt_create(struct rpcrdma_engine *e, const struct rpcrdma_clnt_attr *attr,
			struct rpcrdma_clnt **ret);

/** rpcrdma_clnt_destroy - calls in flight get done(-ECANCELED) before it returns; after it no peer can access their
 * memory. NULL is fine. */
void rpcrdma_clnt_destroy(struct rpcrdma_clnt *c);

/** rpcrdma_clnt_call - starts a call; done() runs exactly once, later, unless an error is returned
 *
 * done(err): 0: results decoded; -EPROTONOSUPPORT, -EOPNOTSUPP, -EINVAL, -EREMOTEIO, -EACCES: from the reply header
 * (call->why); -EMSGSIZE: reply or call too long for the peer (ERR_CHUNK); -EBADMSG: the results did not decode;
 * -EPROTO: the reply violated the protocol, connection dropped; -ETIMEDOUT: deadline; -ECANCELED; -EFAULT: its memory
 * is not mapped, or was unmapped while the call was in flight; or a connect error before the first connection.
 *
 * Return: 0; -EMSGSIZE: the arguments exceed the maximum of a call; -EINVAL: they do not encode; -EFAULT, -ENOMEM.
 */
int rpcrdma_clnt_call(struct rpcrdma_clnt *c, struct rpcrdma_call *call);

/** rpcrdma_clnt_cancel - runs done(-ECANCELED) before it returns; the peer cannot access the call's memory by then (if
 * necessary the connection is dropped and the other calls are retransmitted)
 *
 * Blocks while a server on the same host copies to or from the call's memory; never waits for a disk. If the deadline
 * of a call passes during such a copy, the call is done when the copy has ended; other calls continue. */
void rpcrdma_clnt_cancel(struct rpcrdma_clnt *c, struct rpcrdma_call *call);

/* State of a client, as printed by `leat ping`. */
struct rpcrdma_clnt_info {
	struct rpcrdma_addr addr;
	enum rpcrdma_clnt_state state;
	char why[128];                 /* last error */
	uint32_t credits, credits_low;
	uint32_t send_inline, recv_inline;
	bool remote_inv;
	const char *registration;
	const char *fallback;          /* why this differs from the requested strategy, or NULL */
	char kept[128];                /* text for users: which registrations are kept after a call */
	size_t reg_bytes;              /* limit of these registrations, including those in use by calls; 0: no limit */
	const char *reach;             /* text for users: how the server accesses memory of this process */
	unsigned modes;                /* agreed modes */
	uint32_t fast_write_bytes, fast_write_slots; /* limits of fast writes */
	char device[64];
	uint64_t reconnects;
};
void rpcrdma_clnt_info(const struct rpcrdma_clnt *c, struct rpcrdma_clnt_info *ret);

/* ---- responder ---------------------------------------------------------------------------- */

struct rpcrdma_listener;
struct rpcrdma_conn;

#define RPCRDMA_GROUPS_MAX 1024 /* supplementary groups of a peer */

/* Identity of the peer: an address on a network, credentials from the kernel on one host. */
struct rpcrdma_peer {
	enum rpcrdma_transport transport;
	struct sockaddr_storage addr; /* AF_UNSPEC on LOCAL */
	bool has_cred;                /* LOCAL: the fields below come from the kernel */
	pid_t pid;
	uid_t uid;
	gid_t gid;
	bool groups_unknown;          /* more than RPCRDMA_GROUPS_MAX, or not available from the kernel */
	unsigned ngroups;             /* number of all groups; 0 if unknown */
	gid_t groups[RPCRDMA_GROUPS_MAX];
	char text[64];
};

/* The client that a peer belongs to. Resources are shared between clients, so that more connections or more addresses
 * give a client no larger share. */
enum rpcrdma_client_kind {
	RPCRDMA_CLIENT_UNKNOWN,  /* neither credentials nor an address */
	RPCRDMA_CLIENT_USER,     /* local fabric: a user of this host */
	RPCRDMA_CLIENT_LOOPBACK, /* all loopback addresses, IPv4 and IPv6 */
	RPCRDMA_CLIENT_IPV4,     /* an IPv4 address, also if mapped into IPv6 */
	RPCRDMA_CLIENT_IPV6,     /* an IPv6 network of 64 bits */
};

/* Two ids denote the same client if their bytes are equal; there is no padding. */
struct rpcrdma_client_id {
	uint32_t kind;  /* enum rpcrdma_client_kind */
	uint32_t scope; /* IPv6 link-local: index of the interface; else 0 */
	uint64_t key;   /* uid, IPv4 address, upper half of an IPv6 address; in host byte order */
};

/** rpcrdma_client_id_of - determines the client of a peer; any thread, never fails */
void rpcrdma_client_id_of(const struct rpcrdma_peer *peer, struct rpcrdma_client_id *ret);

/** rpcrdma_client_id_print - "uid 1000", "loopback", "192.0.2.1", "2001:db8::/64"
 * @cap: bytes at @buf; 64 are always enough
 *
 * Return: @buf.
 */
char *rpcrdma_client_id_print(const struct rpcrdma_client_id *id, char *buf, size_t cap);

struct rpcrdma_req;

struct rpcrdma_svc_ops {
	/* A peer connects; runs on the listener's engine. Selects the engine that will own the connection and gives
	 * it a context. Return 0, or -errno to refuse the peer. */
	int (*accept)(void *ctx, const struct rpcrdma_peer *peer, struct rpcrdma_engine **ret_engine,
		      void **ret_conn_ctx);
	/* A call has arrived; runs on the connection's engine. The service ends it with exactly one of
	 * rpcrdma_req_reply, _reply_error, _reject or _drop, now or later. */
	void (*call)(void *conn_ctx, struct rpcrdma_req *req);
	/* The connection is closed and has no req left; free the context. */
	void (*closed)(void *conn_ctx);
	/* Reports why the library refused a peer: too many connections (-EUSERS), or too many of its client
	 * (-ETOOMANYREFS), or too much shared memory of its user (-EDQUOT); too many local peers connecting (-EBUSY);
	 * no descriptor (-EMFILE, -ENFILE) or memory; its RDMA device cannot be opened. Local peers wait while too
	 * many ended connections are still being closed (-EXFULL). Also reports why an accepted connection ends: its
	 * client has more than its share, and another client needs a connection (-ECONNABORTED). May be NULL. Runs on
	 * any thread with a listener or connection. */
	void (*refused)(void *ctx, const struct rpcrdma_peer *peer, int err);
	/* The connection is lost while some of its calls are being served; their replies cannot be delivered. The
	 * service still ends each of them, and then closed() runs. Runs on the connection's engine, never inside
	 * another call between service and library. May be NULL. */
	void (*lost)(void *conn_ctx);
};

struct rpcrdma_svc_attr {
	uint32_t inline_bytes;   /* 1024..65536; 0: 4096 */
	uint32_t credits;        /* maximum calls of one connection in flight; 0: 64 */
	uint32_t call_bytes_max; /* longest call; 0: 1 MiB + 8 KiB */
	uint32_t conns_max;      /* limit over all listeners of the domain, of which the largest value applies; one
	                          * client gets at most three quarters; 0: 1024 */
	uint32_t first_call_ms;  /* limit until the first call of a new connection; 0: 30000 */
	uint32_t req_bytes;      /* memory that the service keeps for each call; counted together with the library's
	                          * own */
	uint32_t stall_ms;       /* limit for a peer that makes no progress with a transfer in flight; 0: 20000 */
	bool no_private_data;    /* act without RFC 8797: 1024 bytes, whatever @inline_bytes is */
	bool no_remote_inv;      /* never send Send-With-Invalidate */
	bool srq;                /* connections of an engine share their receives, if the device supports it */
	unsigned modes;          /* enum rpcrdma_mode: offered to peers that request them; their memory is pinned on
	                          * request, at most as much for all connections as for the pool. Requests in these
	                          * modes need buffers of rpcrdma_req_buf_get() */
};

/** rpcrdma_listen - accepts connections on @addr; port 0 selects a free one
 *
 * RDMA: at an address, on the device that has it; at 0.0.0.0 or [::], on every device, each opened when the first
 * peer connects through it.
 *
 * Return: 0; -EADDRINUSE, -EACCES and similar; -ENODEV: no RDMA device here; -ENXIO: no device has the address;
 * -EINVAL.
 */
int rpcrdma_listen(struct rpcrdma_engine *e, const struct rpcrdma_addr *addr,
		   const struct rpcrdma_svc_attr *attr, const struct rpcrdma_svc_ops *ops, void *ctx,
		   struct rpcrdma_listener **ret);

/** rpcrdma_listener_addr - the address of the listener, with the selected port */
const struct rpcrdma_addr *rpcrdma_listener_addr(const struct rpcrdma_listener *l);

/** rpcrdma_listener_device - the only device that serves it: "local", "mlx5_0"; NULL: any device, or TCP */
const char *rpcrdma_listener_device(const struct rpcrdma_listener *l);

/** rpcrdma_listener_close - stops accepting; existing connections continue. On the engine's thread. */
void rpcrdma_listener_close(struct rpcrdma_listener *l);

/* Functions for the owner of a connection; only on its engine. */
void rpcrdma_conn_close(struct rpcrdma_conn *c); /* as if the peer had disconnected; closed() follows */
const struct rpcrdma_peer *rpcrdma_conn_peer(const struct rpcrdma_conn *c);
/** rpcrdma_engine_close_conns - closes every connection of this engine, at the end of a server
 * Return: number of connections left; closed() follows for each. */
unsigned rpcrdma_engine_close_conns(struct rpcrdma_engine *e);

/* A call being served. The public part is read-only for the service. */
struct rpcrdma_req {
	struct rpcrdma_conn *conn;
	struct rpcrdma_engine *engine;
	const struct rpcrdma_peer *peer;
	uint32_t xid, prog, vers, proc;
	uint32_t cred_flavor, cred_len;
	const uint8_t *cred_body;     /* valid until the req is ended */
	/* How payload and memory of this call move; constant from svc_ops.call to the end of the req. */
	bool by_chunk;                /* the payload of the call or of the results, whichever exists, moves separately
	                               * from the message, before the reply. False: as part of a message or stream */
	bool args_local;              /* the arguments' payload is already in memory of this process:
	                               * rpcrdma_req_source() returns it for any caller. A caller that changes it
	                               * meanwhile harms only itself */
	bool can_map;                 /* rpcrdma_req_sink() and _source() may reach the caller's own memory */
	uint32_t room;                /* maximum payload of the results that the caller accepts, in bytes */
	size_t buf_max;               /* largest buffer that rpcrdma_req_buf_get() can ever return, in bytes */
	void *user;                   /* for the service; initially NULL */
	uint64_t copied;              /* payload bytes that a CPU copied for the service (page cache copies): it adds them,
	                               * and the end of the req adds them to bytes_copied */
};

/** rpcrdma_req_decode - decodes the arguments, once; their payload is not moved
 *
 * Return: 0; -EBADMSG: malformed (reply with RPCRDMA_GARBAGE_ARGS); -EAGAIN: not received completely; svc_ops.call
 * will run again with the same req.
 */
int rpcrdma_req_decode(struct rpcrdma_req *req, xdrproc_t decode, void *args);

/** rpcrdma_req_conn_alive - false: the connection is lost, the reply cannot be delivered */
bool rpcrdma_req_conn_alive(const struct rpcrdma_req *req);

/* A part of the payload in transfer; embedded in the service's own structure, one owner at a time. */
struct rpcrdma_xfer {
	struct rpcrdma_buf *buf;
	size_t buf_off;
	uint32_t off, len;      /* within the payload */
	/* place: may be NULL; then only the req's done tells the end */
	void (*done)(struct rpcrdma_xfer *p, int err);
	struct rpcrdma_xfer *next; /* private from here */
	struct rpcrdma_req *req;
	void *priv[2];
	int err;
};

/** rpcrdma_req_pull - transfers bytes [off, off+len) of the arguments' payload into a buffer
 * done(0 or -EIO: the connection broke, -ECANCELED). On TCP the transfers must be requested in order.
 *
 * Return: 0, done() follows; -EINVAL: outside the payload; -ENOTCONN; -ENOMEM.
 */
int rpcrdma_req_pull(struct rpcrdma_req *req, struct rpcrdma_xfer *xfer);

/** rpcrdma_req_sink - returns the caller's own memory for bytes [off, off+len) of the results' payload
 * The kernel may read a file into it; this process must not load from or store to it.
 * @iov, @cnt: in: room; out: entries used
 *
 * Data stored there counts as placed. The memory stays accessible until the req is ended.
 *
 * Return: 0; -EOPNOTSUPP: read into a buffer and place it (always without req->can_map); -EMSGSIZE: no room.
 */
int rpcrdma_req_sink(struct rpcrdma_req *req, uint32_t off, uint32_t len, struct iovec *iov,
		     int *cnt);

/** rpcrdma_req_source - returns the caller's own memory with bytes [off, off+len) of the arguments' payload
 * The kernel may write a file from it; this process must not load from or store to it. The service must accept that
 * the caller can change the data until it has its reply.
 * @iov, @cnt: in: room; out: entries used
 *
 * Return: 0; -EOPNOTSUPP: pull it (always without req->can_map or req->args_local); -EINVAL: outside the payload.
 */
int rpcrdma_req_source(struct rpcrdma_req *req, uint32_t off, uint32_t len, struct iovec *iov,
		       int *cnt);

/** rpcrdma_req_place - transfers a part of the results' payload to where the caller wants it
 * In any order. The buffer belongs to the transport until xfer->done, or the req's done. If the payload is part of
 * the reply (inline, Reply chunk, TCP), xfer->done runs only after the reply.
 *
 * Return: 0; -EMSGSIZE: beyond req->room (end the req with rpcrdma_req_reject); -ENOTCONN; -ENOMEM.
 */
int rpcrdma_req_place(struct rpcrdma_req *req, struct rpcrdma_xfer *xfer);

enum rpcrdma_accept_stat { /* RFC 5531 section 9 */
	RPCRDMA_SUCCESS = 0,
	RPCRDMA_PROG_UNAVAIL = 1,
	RPCRDMA_PROG_MISMATCH = 2,
	RPCRDMA_PROC_UNAVAIL = 3,
	RPCRDMA_GARBAGE_ARGS = 4,
	RPCRDMA_SYSTEM_ERR = 5,
};

/* Ends of a req. @done runs once, on the req's engine, when the transport no longer uses memory of the service; the
 * req itself is freed when the function returns. A reply on a lost connection is dropped; done runs nevertheless. */

/** rpcrdma_req_reply - replies with success and the results of @encode
 * The payload in the results has the valid length: bytes that were placed or read into a sink, counted from 0 (more
 * may have been placed), or iov if it was not placed.
 * If the reply is too long for the caller, it becomes ERR_CHUNK (RDMA) or SYSTEM_ERR (TCP).
 */
void rpcrdma_req_reply(struct rpcrdma_req *req, xdrproc_t encode, const void *res,
		       void (*done)(void *arg), void *arg);

/** rpcrdma_req_reply_error - replies with PROG_UNAVAIL and so on; @low, @high for PROG_MISMATCH */
void rpcrdma_req_reply_error(struct rpcrdma_req *req, enum rpcrdma_accept_stat stat, uint32_t low,
			     uint32_t high, void (*done)(void *arg), void *arg);

/** rpcrdma_req_reply_auth - replies with AUTH_ERROR and @why (enum auth_stat of RFC 5531) */
void rpcrdma_req_reply_auth(struct rpcrdma_req *req, uint32_t why, void (*done)(void *arg),
			    void *arg);

/** rpcrdma_req_reject - the caller provided too little room: ERR_CHUNK (SYSTEM_ERR on TCP) */
void rpcrdma_req_reject(struct rpcrdma_req *req, void (*done)(void *arg), void *arg);

/** rpcrdma_req_drop - ends the req without a reply */
void rpcrdma_req_drop(struct rpcrdma_req *req, void (*done)(void *arg), void *arg);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
