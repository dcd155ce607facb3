/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * rpcrdma.h - ONC RPC over RDMA (RFC 8166), over the same-host fabric, and over TCP (RFC 5531)
 *
 * Objects, from the outside in:
 *   domain   what a process opens once: devices, pinned memory, the pool of data buffers
 *   engine   one thread's event loop: completion queue, sockets, timers, inbox
 *   clnt     a requester's connection to one server, which survives reconnects
 *   listener, conn, req   a responder's
 *
 * Threads:  A domain may be used by several threads. An engine and all that lives on it belong to
 *           one thread at a time; only rpcrdma_engine_post() may be called from elsewhere.
 *           Callbacks run inside rpcrdma_engine_poll()/_wait() of the owning thread, never inside
 *           the call that started an operation.
 * Memory:   What a caller hands in stays the caller's and must stay put until the callback that
 *           says it is finished. Strings and attributes are copied.
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

/** rpcrdma_addr_print - the reverse; Return: @buf */
char *rpcrdma_addr_print(const struct rpcrdma_addr *a, char *buf, size_t cap);

/* ---- modes -------------------------------------------------------------------------------- */

/* Other ways of moving data than RFC 8166's, after older designs: to be compared with it. Over RDMA and
 * the local fabric, on connections whose both ends ask for them; elsewhere nothing of them is seen.
 * They let the peer reach memory of the responder's that is that connection's alone. */
enum rpcrdma_mode {
	RPCRDMA_READ_READ = 1u << 0,  /* results: the requester reads them, when the responder says where */
	RPCRDMA_FAST_WRITE = 1u << 1, /* arguments of some KiB: written with the call, into slots */
	RPCRDMA_HYBRID = 1u << 2,     /* larger ones: written where the responder says, then the call */
};
#define RPCRDMA_MODES_ALL 7u
#define RPCRDMA_FAST_WRITE_MAX (64u << 10) /* payload of one fast write */
#define RPCRDMA_MODES_TEXT 40              /* room for all names */

/** rpcrdma_modes_parse - "read-read, fast-write, hybrid" in any choice, or "none"
 * Return: 0; -EINVAL: another name, or nothing */
int rpcrdma_modes_parse(const char *text, unsigned *ret);

/** rpcrdma_modes_print - the reverse; Return: @buf */
char *rpcrdma_modes_print(unsigned modes, char *buf, size_t cap);

/* ---- domain ------------------------------------------------------------------------------- */

struct rpcrdma_domain;
struct rr_local_attr;

/* What it takes a device to register memory, for benchmarks on the local fabric, which takes nothing
 * else: the thread that does it is kept busy so long. */
struct rpcrdma_reg_cost {
	uint32_t reg_ns, reg_page_ns;     /* in all, and for each page */
	uint32_t dereg_ns, dereg_page_ns;
};

struct rpcrdma_domain_attr {
	size_t pool_bytes_max;  /* most memory the buffer pool may take; RPCRDMA_POOL_BYTES_MIN at
	                         * least; 0: 256 MiB */
	size_t msg_bytes_max;   /* beside it, for the messages of connections that are served; at least
	                         * RPCRDMA_MSG_BYTES_MIN; 0: 64 MiB */
	size_t shared_bytes_max; /* memory shared with peers on this host, half of it for what they offer and for bounce
	                         * areas, half for rings; a user gets a share of each; at least
	                         * RPCRDMA_SHARED_BYTES_MIN; 0: 8 GiB */
	bool pool_arena;        /* all of it at once, in one piece, registered once with each device; not
	                         * chunk by chunk, as it is needed */
	int dmabuf_fd;          /* a device's memory, for rpcrdma_buf_get_far(); stays the caller's, */
	size_t dmabuf_bytes;    /* and open, until the domain's end. 0: none */
	size_t arena_bytes;     /* all of rpcrdma_mem_alloc() comes out of one region of that size, there
	                         * from the beginning; 0: each has a region of its own */
	const char *capture;    /* pcap of everything this process sends and receives over the local
	                         * fabric, as RoCEv2; NULL: none */
	bool unsafe_inv;        /* let peers invalidate, and invalidate for them, also where a mistake
	                         * of a peer crashes its host's kernel: soft RoCE; for tests */
	struct rpcrdma_reg_cost reg_cost; /* of the local fabric */
	const struct rr_local_attr *local; /* tests: hooks of the local fabric; NULL: plain */
	mode_t socket_mode;     /* of local listeners; 0: 0666 (identity is the kernel's word) */
};

/** rpcrdma_domain_create - open; devices are opened when first needed
 * @attr: NULL for the defaults
 *
 * Return: 0, -ENOMEM, -EINVAL (too small a pool or dma-buf), or the errno of creating the capture file.
 */
int rpcrdma_domain_create(const struct rpcrdma_domain_attr *attr, struct rpcrdma_domain **ret);

/** rpcrdma_domain_destroy - every engine of it must be gone. NULL is fine. */
void rpcrdma_domain_destroy(struct rpcrdma_domain *d);

/** rpcrdma_mem_alloc - memory that moves best: page-aligned, pre-faulted, registered once, and on
 * the same host mapped by the server, so that data is placed in it without any copy in between
 * @bytes: rounded up to pages
 *
 * Payload moves without a copy where its address and length are multiples of the page size.
 *
 * When a call is given up or sent again while a disk operation of a server on the same host uses its memory,
 * the library replaces the pages of that memory by others with the same content. The address stays. A
 * program that has pinned the pages by other means (fixed buffers of io_uring, a registration of another
 * library) must pin them again after -ETIMEDOUT, -ECANCELED or a lost connection.
 *
 * Return: 0, -ENOMEM, -EINVAL (0 bytes).
 */
int rpcrdma_mem_alloc(struct rpcrdma_domain *d, size_t bytes, void **ret);

/** rpcrdma_mem_free - nothing may be in flight in it. NULL is fine. */
void rpcrdma_mem_free(struct rpcrdma_domain *d, void *mem);

/** rpcrdma_mem_register - treat the caller's own memory so: registered at first use and kept
 * @mem: stays mapped, and the same memory, until it is unregistered
 *
 * Memory that may not be written is good for the payload of arguments only.
 *
 * Return: 0; -EINVAL (0 bytes); -EFAULT: not mapped; -EEXIST: some of it is registered already;
 * -ENOMEM.
 */
int rpcrdma_mem_register(struct rpcrdma_domain *d, void *mem, size_t bytes);

/** rpcrdma_mem_unregister - on success no peer reaches it
 *
 * Return: 0; -EBUSY: a call that is out uses it, let the engine run and ask again; -ENOENT: nothing
 * was registered that begins there.
 */
int rpcrdma_mem_unregister(struct rpcrdma_domain *d, void *mem);

/** rpcrdma_registration - the @n-th strategy's name, as rpcrdma_clnt_attr takes it; NULL: no more */
const char *rpcrdma_registration(size_t n);

/** rpcrdma_reg_bytes_default - what a cache of registrations may come to if nobody says: half of what
 * this process may pin (RLIMIT_MEMLOCK, if it holds for it, or a quarter of the machine's memory) */
size_t rpcrdma_reg_bytes_default(void);

/* ---- counters ----------------------------------------------------------------------------- */

/* Sums over a domain's engines since it was created. */
struct rpcrdma_stats {
	uint64_t calls, replies;         /* RPCs started and finished, either role */
	uint64_t bytes_in, bytes_out;    /* payload received and sent by this side, however it moved */
	uint64_t bytes_copied;           /* payload bytes touched by a CPU: memcpy, socket copies,
	                                  * process_vm and memfd copies; a service adds its own */
	uint64_t bytes_placed;           /* by RDMA Write (server) */
	uint64_t bytes_pulled;           /* by RDMA Read (server) */
	uint64_t bytes_direct;           /* put by the kernel straight into the caller's memory */
	uint64_t chunks_read, chunks_write, chunks_reply, long_calls, inline_msgs;
	uint64_t err_chunk, err_vers, garbage, dropped; /* answers to bad messages */
	uint64_t credits_low;            /* smallest grant in force seen by a requester; 0: none yet */
	uint64_t credit_waits, buf_waits, sq_waits; /* shortages: each a queue, never an error */
	uint64_t rnr, reconnects, timeouts;
	uint64_t regs, deregs;
	uint64_t binds, local_invs;      /* of memory windows: bound, taken back by ourselves */
	uint64_t invalidations;          /* by the peer's Send, or by ours (server) */
	uint64_t reg_hits, reg_misses;   /* the registration caches: it was there; it was not */
	uint64_t reg_invalidated;        /* ... entries whose memory went */
	uint64_t reg_evicted;            /* ... that had to make room */
	uint64_t reg_deferred, reg_flushes; /* ... left to be deregistered later; times that was done */
	uint64_t reg_reaped;             /* of deregs: those in a thread of their own, off every call's way */
	uint64_t reg_uncacheable;        /* ranges that were registered for one call instead */
	uint64_t reg_bounced;            /* payloads that were copied through memory of ours instead */
	uint64_t reg_pinned;             /* bytes in the caches' registrations now */
	uint64_t conns, conns_total;     /* open now; ever */
	uint64_t shared_recvs;           /* receives that connections share */
	uint64_t sleeps, spins;          /* engine: blocking waits; waits that polling satisfied */
	uint64_t posts, completions;     /* chains of requests given to a device; what came back */
	uint64_t offers;                 /* read-read: payload that the requester had to read */
	uint64_t fast_writes, grants;    /* fast-write, hybrid: calls that went so */
	uint64_t mode_timeouts, mode_cuts; /* taken back, or peers let go: nothing was said of what was
	                                    * given; peers let go: broke a mode's rules */
};

/** rpcrdma_domain_stats - the counters so far; any thread, of no one moment */
void rpcrdma_domain_stats(struct rpcrdma_domain *d, struct rpcrdma_stats *ret);

/* ---- engine ------------------------------------------------------------------------------- */

struct rpcrdma_engine;

enum rpcrdma_poll {
	RPCRDMA_POLL_ADAPTIVE, /* poll for spin_us after the last event, with pollers longer, then sleep */
	RPCRDMA_POLL_BUSY,     /* never sleep */
	RPCRDMA_POLL_EVENT,    /* never spin */
};

struct rpcrdma_engine_attr {
	enum rpcrdma_poll poll;
	unsigned spin_us; /* 0: 50 */
};

/** rpcrdma_engine_create - an event loop for one thread
 * @attr: NULL for the defaults
 *
 * Return: 0, -ENOMEM, or the errno of a descriptor that could not be had.
 */
int rpcrdma_engine_create(struct rpcrdma_domain *d, const struct rpcrdma_engine_attr *attr,
			  struct rpcrdma_engine **ret);

/** rpcrdma_engine_destroy - clients, listeners and connections on it must be gone. NULL is fine. */
void rpcrdma_engine_destroy(struct rpcrdma_engine *e);

/** rpcrdma_engine_domain - where it lives */
struct rpcrdma_domain *rpcrdma_engine_domain(const struct rpcrdma_engine *e);

/** rpcrdma_engine_fd - for someone else's loop: readable when rpcrdma_engine_poll() has work,
 * provided that rpcrdma_engine_arm() returned 0 since the last poll */
int rpcrdma_engine_fd(const struct rpcrdma_engine *e);

/** rpcrdma_engine_arm - before sleeping on the fd; Return: 0, or 1: there is work, poll first */
int rpcrdma_engine_arm(struct rpcrdma_engine *e);

/** rpcrdma_engine_poll - run everything that is ready, without blocking
 *
 * Return: how many things ran; 0 means nothing was ready.
 */
int rpcrdma_engine_poll(struct rpcrdma_engine *e);

/** rpcrdma_engine_wait - poll until something ran, spinning and then sleeping as the engine's
 * polling mode says
 * @timeout_ms: -1 for ever
 *
 * Return: as rpcrdma_engine_poll(); 0 on time-out or signal.
 */
int rpcrdma_engine_wait(struct rpcrdma_engine *e, int timeout_ms);

/* A message to an engine from any thread; embedded in what it is about. */
struct rpcrdma_msg {
	struct rpcrdma_msg *next;
	void (*fn)(struct rpcrdma_msg *msg);
};

/** rpcrdma_engine_post - have @msg->fn run on the engine's thread; any thread, FIFO, no malloc */
void rpcrdma_engine_post(struct rpcrdma_engine *e, struct rpcrdma_msg *msg);

/* A file descriptor watched by an engine; embedded, owned by the caller. */
struct rpcrdma_watch {
	int fd;
	void (*fn)(struct rpcrdma_watch *w, uint32_t events); /* EPOLLIN ... */
};

/** rpcrdma_engine_watch - have @w->fn run whenever @w->fd is ready for @events (as epoll's)
 * Return: 0, or the -errno of epoll_ctl(). */
int rpcrdma_engine_watch(struct rpcrdma_engine *e, struct rpcrdma_watch *w, uint32_t events);
/** rpcrdma_engine_rewatch - the same descriptor, other events; Return: as above */
int rpcrdma_engine_rewatch(struct rpcrdma_engine *e, struct rpcrdma_watch *w, uint32_t events);
/** rpcrdma_engine_unwatch - its fn does not run any more, not even for an event already fetched */
void rpcrdma_engine_unwatch(struct rpcrdma_engine *e, struct rpcrdma_watch *w);

/* Something to look at in every pass of an engine, for what completes in memory; embedded,
 * zero-initialised before first use. What may complete while the engine sleeps has to wake it by a
 * descriptor (rpcrdma_engine_watch) as well. */
struct rpcrdma_poller {
	int (*fn)(struct rpcrdma_poller *p); /* Return: how many things ran */
	struct rpcrdma_poller *next, **link; /* private */
};

/** rpcrdma_engine_add_poller - have @p->fn run at the end of every pass, and before each sleep;
 * harmless when it is there */
void rpcrdma_engine_add_poller(struct rpcrdma_engine *e, struct rpcrdma_poller *p);
/** rpcrdma_engine_del_poller - it does not run any more; harmless when it is not there; any poller's
 * fn may say so of itself or of others */
void rpcrdma_engine_del_poller(struct rpcrdma_engine *e, struct rpcrdma_poller *p);

/* A timer; embedded, owned by the caller, zero-initialised before first use. */
struct rpcrdma_timer {
	uint64_t due_ns; /* CLOCK_MONOTONIC; private */
	struct rpcrdma_timer *next, **link;
	void (*fn)(struct rpcrdma_timer *t);
};

/** rpcrdma_timer_set - (re)arm; fires once, no earlier than @delay_ns from now */
void rpcrdma_timer_set(struct rpcrdma_engine *e, struct rpcrdma_timer *t, uint64_t delay_ns);
/** rpcrdma_timer_cancel - harmless when not armed */
void rpcrdma_timer_cancel(struct rpcrdma_engine *e, struct rpcrdma_timer *t);

/** rpcrdma_count_copied - a service tells of payload bytes that it had a CPU copy (page cache and
 * such), so that "copied bytes per byte moved" is the truth */
void rpcrdma_count_copied(struct rpcrdma_engine *e, uint64_t bytes);

/* ---- data buffers ------------------------------------------------------------------------- */

/* Page-aligned, registered with every open device for local use only: no peer can reach it. */
struct rpcrdma_buf {
	void *addr;
	size_t bytes; /* of its size class, >= what was asked */
	bool far;     /* a device's memory: addr is none, and no CPU may touch it */
};

#define RPCRDMA_BUF_MAX (4u << 20)
#define RPCRDMA_BUF_LEAST (64u << 10) /* so large a buffer every pool has, for every use */
#define RPCRDMA_POOL_BYTES_MIN ((size_t)RPCRDMA_BUF_LEAST * 8)
#define RPCRDMA_SHARED_BYTES_MIN ((size_t)64 << 20)
#define RPCRDMA_MSG_BYTES_MIN ((size_t)RPCRDMA_BUF_LEAST * 16)

/** rpcrdma_buf_get - a buffer of at least @bytes, at most RPCRDMA_BUF_MAX
 *
 * A pool has buffers only of sizes that it bears several of: see rpcrdma_req_buf_max().
 *
 * Return: 0; -ENOBUFS when the pool is at its limit: wait for a put (rpcrdma_buf_wait); -EMSGSIZE:
 * there will never be one so large; -ENOMEM.
 */
int rpcrdma_buf_get(struct rpcrdma_engine *e, size_t bytes, struct rpcrdma_buf **ret);

/** rpcrdma_buf_get_far - the same of a device's memory (rpcrdma_domain_attr.dmabuf_fd), for who will
 * not touch it
 *
 * Such a buffer can be pulled into and placed from where payload goes by chunk; where a CPU would have
 * to copy it, rpcrdma_req_pull() and rpcrdma_req_place() say -EOPNOTSUPP. A device that cannot reach
 * it is not opened: listening or connecting by it fails with -EOPNOTSUPP.
 *
 * Return: as rpcrdma_buf_get(); -EOPNOTSUPP: the domain has none.
 */
int rpcrdma_buf_get_far(struct rpcrdma_engine *e, size_t bytes, struct rpcrdma_buf **ret);
void rpcrdma_buf_put(struct rpcrdma_engine *e, struct rpcrdma_buf *buf);

/* Waits its turn for memory; embedded, zero-initialised. */
struct rpcrdma_buf_waiter {
	struct rpcrdma_buf_waiter *next, **link;
	void (*fn)(struct rpcrdma_buf_waiter *w);
};

/** rpcrdma_buf_wait - after -ENOBUFS: fn runs once on this engine when memory may be there again
 * (first come, first served; it may have to wait again) */
void rpcrdma_buf_wait(struct rpcrdma_engine *e, struct rpcrdma_buf_waiter *w);
void rpcrdma_buf_unwait(struct rpcrdma_engine *e, struct rpcrdma_buf_waiter *w);

/* Buffers for one request: charged to its client (rpcrdma_client_id_of()) and its connection until they
 * are given back by rpcrdma_buf_put(), at the latest in the req's done. A client may hold twice what is free
 * (and one buffer always): one alone two thirds, two clients two fifths each, eight two seventeenths. Inside
 * a client its connections have shares in the same way. A connection begins with a sixteenth and earns more
 * by giving back, so that peers who do not take their answers leave memory for others. */

struct rpcrdma_req;

/** rpcrdma_req_buf_max - the largest buffer that there ever is for a request */
size_t rpcrdma_req_buf_max(const struct rpcrdma_req *req);

/** rpcrdma_req_buf_get - as rpcrdma_buf_get(); -ENOBUFS also when the connection or its client has its
 * share; -ENOTCONN: the connection is gone */
int rpcrdma_req_buf_get(struct rpcrdma_req *req, size_t bytes, struct rpcrdma_buf **ret);
/** rpcrdma_req_buf_wait - after that: fn runs once on the req's engine when it is worth another try */
void rpcrdma_req_buf_wait(struct rpcrdma_req *req, struct rpcrdma_buf_waiter *w);

/** rpcrdma_domain_reply_max - no answer can be longer, its payload in chunks not counted */
size_t rpcrdma_domain_reply_max(const struct rpcrdma_domain *d);

/* The pool as it is now. */
#define RPCRDMA_POOL_CLASSES 6
struct rpcrdma_pool_stats {
	uint64_t pinned, most, limit;  /* bytes: now, the most ever (of each use), at most */
	uint64_t huge;                 /* of them in huge pages that were set aside */
	uint64_t far;                  /* bytes of a device's memory, beside all that */
	uint64_t given_back;           /* times that unused memory was unpinned, messages' as well */
	uint64_t msgs, msgs_most, msgs_limit; /* bytes pinned for messages of those who are served */
	uint64_t shared_limit;         /* bytes shared with peers on this host, at most */
	uint64_t calls_limit;          /* bytes of calls over TCP beside all that, at most; 0: in msgs_limit */
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
	uint32_t stamp;         /* makes this requester distinct from others on its host */
	char machine[64];
	uint32_t uid, gid, ngids;
	uint32_t gids[16];
};

enum rpcrdma_clnt_state {
	RPCRDMA_CLNT_CONNECTING,
	RPCRDMA_CLNT_UP,
	RPCRDMA_CLNT_DOWN,   /* waiting to reconnect */
};

struct rpcrdma_clnt_attr {
	struct rpcrdma_addr addr;
	struct rpcrdma_cred cred;      /* copied; a call may bring its own */
	uint32_t inline_bytes;         /* Send and receive buffers; 1024..65536; 0: 4096 */
	uint32_t credits;              /* wanted; also calls at once on TCP; 0: 64 */
	uint32_t timeout_ms;           /* no answer: disconnect, reconnect, send again; 0: 60000 */
	uint32_t connect_ms;           /* one attempt; 0: 10000 */
	uint32_t backoff_ms;           /* first wait between attempts, doubles to 64 x; 0: 50 */
	bool no_private_data;          /* as a peer that knows nothing of RFC 8797 */
	bool force_chunks;             /* tests: chunks even for what would fit inline */
	unsigned modes;                /* enum rpcrdma_mode; a responder without them is -ENOPROTOOPT, and
	                                * TCP, or windows to register by, -EINVAL */
	uint32_t fast_write_bytes;     /* most payload of a fast write, <= RPCRDMA_FAST_WRITE_MAX; 0: that */
	bool check_socket;             /* LOCAL: connect only to a socket of root, of this process's user or
	                                * of socket_uid, at a path where nobody else can put one; -EPERM */
	uid_t socket_uid;              /* 0: no other user */
	/* How memory of calls comes within reach of the peer; ignored on TCP. What the strategies are,
	 * leat(7) says, under registration. */
	const char *registration;      /* "auto", "dynamic", "cache", "batch", "slab", "arena",
	                                * "window"; NULL: auto */
	const char *monitor;           /* what keeps a cache true: "uffd", "explicit": nothing does, so
	                                * only rpcrdma_mem memory is kept, "none": nothing does, and all
	                                * is kept, which is for tests; NULL: uffd */
	uint32_t bounce_bytes;         /* less payload than that is copied through memory of ours; 0: auto
	                                * copies less than 16 KiB rather than register it for the call */
	bool no_bounce;                /* never, if it can be helped */
	uint32_t reg_entries;          /* of a cache, at most; 0: 1024 */
	size_t reg_bytes;              /* in a cache, at most; 0: half of what may be pinned */
	uint32_t dirty_watermark;      /* entries to be deregistered that are waited for; 0: 32 */
	/* told of each change, with the reason as text; may be NULL */
	void (*state)(void *ctx, enum rpcrdma_clnt_state s, const char *why);
	/* The server owes replies and has sent none for @away_ms, or is not connected for as long and calls
	 * wait (@away true, @why in words); or it has sent one again (false). For messages to people: it must
	 * not call back into the client. May be NULL, and costs nothing then. */
	void (*away)(void *ctx, bool away, const char *why);
	uint32_t away_ms;              /* 0: 5000 */
	void *ctx;
};

/* One call. Caller-owned from start to done; zero-initialised before it is filled. */
struct rpcrdma_call {
	uint32_t prog, vers, proc;
	const struct rpcrdma_cred *cred;   /* NULL: the client's */
	xdrproc_t encode;                  /* arguments; called again if the call is sent again */
	const void *args;
	xdrproc_t decode;                  /* results */
	void *res;
	const struct iovec *sink;          /* memory for the results' payload; sum is its maximum */
	int sinkcnt;
	uint32_t reply_max;                /* largest results, XDR bytes without payload and RPC header */
	uint32_t deadline_ms;              /* give up with -ETIMEDOUT; 0: never */
	void (*done)(struct rpcrdma_call *call, int err);

	/* valid in done() */
	uint32_t xid;
	uint32_t payload_bytes;            /* of the results, now in sink */
	const char *why;                   /* on failure: for people, static or the client's */
	void *priv;                        /* the library's */
};

/** rpcrdma_clnt_create - start connecting; calls may be made at once
 *
 * Until the first connection stands, a failure to connect fails every waiting call with its errno
 * (and later ones are tried afresh). From then on the connection is repaired for ever, with the
 * same XIDs and fresh registrations; a call fails only by its deadline or its reply.
 *
 * RDMA goes by the device that the kernel's routes lead to. A host that is a name is looked up at
 * each connect, by getaddrinfo() on the engine's thread: for as long as the resolver takes, whatever
 * else is on that engine waits. A literal address is looked up nowhere.
 *
 * Return: 0, -EINVAL (attributes), -ENOMEM, -EOPNOTSUPP (no such transport in this build); RDMA:
 * -ENODEV without a device, -ENXIO if none leads there, and what the resolver came to.
 */
int rpcrdma_clnt_create(struct rpcrdma_engine *e, const struct rpcrdma_clnt_attr *attr,
			struct rpcrdma_clnt **ret);

/** rpcrdma_clnt_destroy - calls not done yet are done with -ECANCELED before it returns; after it
 * no peer can reach any memory of theirs. NULL is fine. */
void rpcrdma_clnt_destroy(struct rpcrdma_clnt *c);

/** rpcrdma_clnt_call - start a call; done() runs exactly once, later, unless an error is returned
 *
 * done(err): 0, results decoded; -EPROTONOSUPPORT, -EOPNOTSUPP, -EINVAL, -EREMOTEIO, -EACCES as
 * the reply header said (call->why); -EMSGSIZE: reply or call too long for the peer (ERR_CHUNK);
 * -EBADMSG: the results did not decode; -EPROTO: the reply broke the protocol, connection dropped;
 * -ETIMEDOUT: deadline; -ECANCELED; -EFAULT: its memory is not there, or was unmapped while it was
 * out; or a connect error before the first connection.
 *
 * Return: 0; -EMSGSIZE: the arguments exceed what a call may be; -EINVAL: they do not encode;
 * -EFAULT, -ENOMEM.
 */
int rpcrdma_clnt_call(struct rpcrdma_clnt *c, struct rpcrdma_call *call);

/** rpcrdma_clnt_cancel - done(-ECANCELED) runs before this returns, and the call's memory is out of
 * the peer's reach by then (if need be the connection is dropped and the other calls sent again)
 *
 * Blocks while a server on the same host copies to or from the call's memory; never waits for a disk. A call
 * whose deadline passes during such a copy is done when the copy has ended; other calls go on. */
void rpcrdma_clnt_cancel(struct rpcrdma_clnt *c, struct rpcrdma_call *call);

/* What `leat ping` tells. */
struct rpcrdma_clnt_info {
	struct rpcrdma_addr addr;
	enum rpcrdma_clnt_state state;
	char why[128];                 /* last trouble */
	uint32_t credits, credits_low;
	uint32_t send_inline, recv_inline;
	bool remote_inv;
	const char *registration;
	const char *fallback;          /* why that is not the one that was asked for, or NULL */
	char kept[128];                /* for people: what stays registered after a call */
	size_t reg_bytes;              /* so much of it at most, lent to calls included; 0: no limit */
	const char *reach;             /* for people: how the server reaches our memory */
	unsigned modes;                /* that were agreed, */
	uint32_t fast_write_bytes, fast_write_slots; /* and how much goes by fast writes */
	char device[64];
	uint64_t reconnects;
};
void rpcrdma_clnt_info(const struct rpcrdma_clnt *c, struct rpcrdma_clnt_info *ret);

/* ---- responder ---------------------------------------------------------------------------- */

struct rpcrdma_listener;
struct rpcrdma_conn;

#define RPCRDMA_GROUPS_MAX 1024 /* supplementary groups of a peer */

/* Who is at the other end: an address on a network, credentials from the kernel on one host. */
struct rpcrdma_peer {
	enum rpcrdma_transport transport;
	struct sockaddr_storage addr; /* AF_UNSPEC on LOCAL */
	bool has_cred;                /* LOCAL: the fields below are the kernel's word */
	pid_t pid;
	uid_t uid;
	gid_t gid;
	bool groups_unknown;          /* more than RPCRDMA_GROUPS_MAX, or the kernel does not say */
	unsigned ngroups;             /* all of them; 0 if they are unknown */
	gid_t groups[RPCRDMA_GROUPS_MAX];
	char text[64];
};

/* The client that a peer belongs to. Resources are shared out between clients, so that whoever makes more
 * connections, or has more addresses, gets no more. */
enum rpcrdma_client_kind {
	RPCRDMA_CLIENT_UNKNOWN,  /* neither credentials nor an address */
	RPCRDMA_CLIENT_USER,     /* local fabric: a user of this host */
	RPCRDMA_CLIENT_LOOPBACK, /* all loopback addresses, IPv4 and IPv6 */
	RPCRDMA_CLIENT_IPV4,     /* an IPv4 address, also one that is mapped into IPv6 */
	RPCRDMA_CLIENT_IPV6,     /* an IPv6 network of 64 bits */
};

/* Two of them are the same client if their bytes are equal; there is no padding. */
struct rpcrdma_client_id {
	uint32_t kind;  /* enum rpcrdma_client_kind */
	uint32_t scope; /* IPv6 link-local: index of the interface; else 0 */
	uint64_t key;   /* uid, IPv4 address, upper half of an IPv6 address; in host byte order */
};

/** rpcrdma_client_id_of - tells which client a peer belongs to; any thread, never fails */
void rpcrdma_client_id_of(const struct rpcrdma_peer *peer, struct rpcrdma_client_id *ret);

/** rpcrdma_client_id_print - "uid 1000", "loopback", "192.0.2.1", "2001:db8::/64"
 * @cap: bytes at @buf; 64 are always enough
 *
 * Return: @buf.
 */
char *rpcrdma_client_id_print(const struct rpcrdma_client_id *id, char *buf, size_t cap);

struct rpcrdma_req;

struct rpcrdma_svc_ops {
	/* A peer asks in; runs on the listener's engine. Choose the engine that will own the connection
	 * and give it a context. Return 0, or -errno to turn it away. */
	int (*accept)(void *ctx, const struct rpcrdma_peer *peer, struct rpcrdma_engine **ret_engine,
		      void **ret_conn_ctx);
	/* A call has come; runs on the connection's engine. Whoever takes it ends it with exactly one
	 * of rpcrdma_req_reply, _reply_error, _reject or _drop, now or later. */
	void (*call)(void *conn_ctx, struct rpcrdma_req *req);
	/* The connection is gone and no req of it is left; free the context. */
	void (*closed)(void *conn_ctx);
	/* Tells why a peer was turned away for another reason than accept's: there are too many connections
	 * (-EUSERS), or too many of its client (-ETOOMANYREFS), or too much shared memory of its user (-EDQUOT);
	 * too many local peers are about to connect (-EBUSY); no descriptor (-EMFILE, -ENFILE) or memory; its
	 * RDMA device cannot be opened. Local peers wait while too many connections that have ended are still
	 * being closed (-EXFULL). Also why a connection ends that the service has: its client has more than its
	 * share, and another one needs one (-ECONNABORTED). May be NULL. On any thread that runs a listener or
	 * connection. */
	void (*refused)(void *ctx, const struct rpcrdma_peer *peer, int err);
	/* The connection is lost while calls of it are being served: their answers reach no one. They are still
	 * ended one by one, and then closed() comes. Runs on the connection's engine, never inside another
	 * call between service and library. May be NULL. */
	void (*lost)(void *conn_ctx);
};

struct rpcrdma_svc_attr {
	uint32_t inline_bytes;   /* 1024..65536; 0: 4096 */
	uint32_t credits;        /* most calls of one connection at once; 0: 64 */
	uint32_t call_bytes_max; /* longest call; 0: 1 MiB + 8 KiB */
	uint32_t conns_max;      /* of all listeners of the domain, the largest counts; one client has three
	                          * quarters of them at most; 0: 1024 */
	uint32_t first_call_ms;  /* a peer that connects and says nothing; 0: 30000 */
	uint32_t req_bytes;      /* memory that the service keeps for each call: counted with the library's own */
	uint32_t stall_ms;       /* a peer that neither takes nor gives what is under way; 0: 20000 */
	bool no_private_data;    /* knows nothing of RFC 8797: 1024 bytes, whatever @inline_bytes is */
	bool no_remote_inv;      /* never send Send-With-Invalidate */
	bool srq;                /* connections of an engine share their receives, where the device can */
	unsigned modes;          /* enum rpcrdma_mode: offered to who asks for them; memory for them is
	                          * pinned when he does, for all of them as much as for the pool at most.
	                          * Their requests want buffers of rpcrdma_req_buf_get() */
};

/** rpcrdma_listen - accept connections on @addr; port 0 picks one
 *
 * RDMA: at an address, by the device that has it; at 0.0.0.0 or [::], by every device, which is
 * opened when the first peer comes by it.
 *
 * Return: 0; -EADDRINUSE, -EACCES and the like; -ENODEV: no RDMA device here; -ENXIO: none that has
 * the address; -EINVAL.
 */
int rpcrdma_listen(struct rpcrdma_engine *e, const struct rpcrdma_addr *addr,
		   const struct rpcrdma_svc_attr *attr, const struct rpcrdma_svc_ops *ops, void *ctx,
		   struct rpcrdma_listener **ret);

/** rpcrdma_listener_addr - where it listens, with the port it was given */
const struct rpcrdma_addr *rpcrdma_listener_addr(const struct rpcrdma_listener *l);

/** rpcrdma_listener_device - the one device that leads to it: "local", "mlx5_0"; NULL: any, or TCP */
const char *rpcrdma_listener_device(const struct rpcrdma_listener *l);

/** rpcrdma_listener_close - no new connections; those that stand go on. On the engine's thread. */
void rpcrdma_listener_close(struct rpcrdma_listener *l);

/* A connection, for its owner; only on its engine. */
void rpcrdma_conn_close(struct rpcrdma_conn *c); /* as if the peer had gone; closed() follows */
const struct rpcrdma_peer *rpcrdma_conn_peer(const struct rpcrdma_conn *c);
/** rpcrdma_engine_close_conns - close every connection this engine owns; for the end of a server
 * Return: how many there still are; closed() follows for each. */
unsigned rpcrdma_engine_close_conns(struct rpcrdma_engine *e);

/* A call being served. The public part is read-only for the service. */
struct rpcrdma_req {
	struct rpcrdma_conn *conn;
	struct rpcrdma_engine *engine;
	const struct rpcrdma_peer *peer;
	uint32_t xid, prog, vers, proc;
	uint32_t cred_flavor, cred_len;
	const uint8_t *cred_body;     /* valid until the req is ended */
	void *user;                   /* the service's; NULL at first */
};

/** rpcrdma_req_decode - arguments, once; payload of them is left where it is
 *
 * Return: 0; -EBADMSG: garbage (answer RPCRDMA_GARBAGE_ARGS); -EAGAIN: not all of it is here yet,
 * svc_ops.call comes again with the same req.
 */
int rpcrdma_req_decode(struct rpcrdma_req *req, xdrproc_t decode, void *args);

/** rpcrdma_req_conn_alive - false: the peer is gone, the answer will not be read */
bool rpcrdma_req_conn_alive(const struct rpcrdma_req *req);

/* A piece of payload on its way; embedded in the service's own, one owner at a time. */
struct rpcrdma_piece {
	struct rpcrdma_buf *buf;
	size_t buf_off;
	uint32_t off, len;      /* within the payload */
	/* NULL allowed for place: then nothing is told before the req's done */
	void (*done)(struct rpcrdma_piece *p, int err);
	struct rpcrdma_piece *next; /* private from here */
	struct rpcrdma_req *req;
	void *priv[2];
	int err;
};

/** rpcrdma_req_is_here - are the arguments' payload bytes in memory of this process already? Then
 * rpcrdma_req_source() gives it, whoever the caller is: what he does to it meanwhile harms only him */
bool rpcrdma_req_is_here(const struct rpcrdma_req *req);

/** rpcrdma_req_pull - bring bytes [off, off+len) of the arguments' payload into a buffer
 * done(0 or -EIO: the connection broke, -ECANCELED). On TCP the pieces must be asked in order.
 *
 * Return: 0, done() follows; -EINVAL: outside the payload; -ENOTCONN; -ENOMEM.
 */
int rpcrdma_req_pull(struct rpcrdma_req *req, struct rpcrdma_piece *piece);

/** rpcrdma_req_by_chunk - does payload move by itself, before the reply? That of the call or of the
 * results, whichever there is: false where it is part of a message or of a stream. */
bool rpcrdma_req_by_chunk(const struct rpcrdma_req *req);

/** rpcrdma_req_room - the longest payload that the caller has room for in the results */
uint32_t rpcrdma_req_room(const struct rpcrdma_req *req);

/** rpcrdma_req_sink - the caller's own memory for bytes [off, off+len) of the results' payload,
 * for the kernel to read into; never for loads or stores of ours
 * @iov, @cnt: in: room; out: entries used
 *
 * What is put there counts as placed. The memory stays reachable until the req is ended.
 *
 * Return: 0; -EOPNOTSUPP: read into a buffer and place it (the usual case); -EMSGSIZE: no room.
 */
int rpcrdma_req_sink(struct rpcrdma_req *req, uint32_t off, uint32_t len, struct iovec *iov,
		     int *cnt);

/** rpcrdma_req_source - the caller's own memory with bytes [off, off+len) of the arguments' payload,
 * for the kernel to write from; never for loads or stores of ours, and only for those whom it does
 * not matter that the caller can change it until he has his answer
 * @iov, @cnt: in: room; out: entries used
 *
 * Return: 0; -EOPNOTSUPP: pull it (the usual case); -EINVAL: outside the payload.
 */
int rpcrdma_req_source(struct rpcrdma_req *req, uint32_t off, uint32_t len, struct iovec *iov,
		       int *cnt);

/** rpcrdma_req_place - put a piece of the results' payload where the caller wants it
 * In any order. The buffer belongs to the transport until piece->done, or the req's done. Where the
 * payload travels with the reply (inline, Reply chunk, TCP) piece->done comes only after the reply.
 *
 * Return: 0; -EMSGSIZE: beyond the caller's room (answer rpcrdma_req_reject); -ENOTCONN; -ENOMEM.
 */
int rpcrdma_req_place(struct rpcrdma_req *req, struct rpcrdma_piece *piece);

enum rpcrdma_accept_stat { /* RFC 5531 section 9 */
	RPCRDMA_SUCCESS = 0,
	RPCRDMA_PROG_UNAVAIL = 1,
	RPCRDMA_PROG_MISMATCH = 2,
	RPCRDMA_PROC_UNAVAIL = 3,
	RPCRDMA_GARBAGE_ARGS = 4,
	RPCRDMA_SYSTEM_ERR = 5,
};

/* Ends of a req. @done runs once, on the req's engine, when no memory of the service is in use any
 * more; the req itself is gone when the function returns. A reply on a dead connection is
 * forgotten, done runs all the same. */

/** rpcrdma_req_reply - success: results by @encode
 * The payload marked in them carries the length that counts: bytes that were placed or sunk, from
 * 0 up (more may have been placed than are told), or iov for one that was not placed.
 * A reply that is too long for the caller becomes ERR_CHUNK (RDMA) or SYSTEM_ERR (TCP).
 */
void rpcrdma_req_reply(struct rpcrdma_req *req, xdrproc_t encode, const void *res,
		       void (*done)(void *arg), void *arg);

/** rpcrdma_req_reply_error - PROG_UNAVAIL and so on; @low, @high for PROG_MISMATCH */
void rpcrdma_req_reply_error(struct rpcrdma_req *req, enum rpcrdma_accept_stat stat, uint32_t low,
			     uint32_t high, void (*done)(void *arg), void *arg);

/** rpcrdma_req_reply_auth - AUTH_ERROR with @why (enum auth_stat of RFC 5531) */
void rpcrdma_req_reply_auth(struct rpcrdma_req *req, uint32_t why, void (*done)(void *arg),
			    void *arg);

/** rpcrdma_req_reject - the caller left too little room: ERR_CHUNK (SYSTEM_ERR on TCP) */
void rpcrdma_req_reject(struct rpcrdma_req *req, void (*done)(void *arg), void *arg);

/** rpcrdma_req_drop - no answer */
void rpcrdma_req_drop(struct rpcrdma_req *req, void (*done)(void *arg), void *arg);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
