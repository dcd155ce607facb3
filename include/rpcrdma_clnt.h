/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * rpcrdma_clnt.h - a client: the connection to one server, and its calls
 */
#ifndef RPCRDMA_CLNT_H
#define RPCRDMA_CLNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "rpcrdma_addr.h"
#include "rpcrdma_loop.h"
#include "rpcrdma_payload.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct rpcrdma_clnt;
struct rpcrdma_lab;

#define RPCRDMA_AUTH_MAX 400u /* bytes of a credential or verifier (RFC 5531 section 8.2) */

/* A credential or verifier of any flavor, as bytes. */
struct rpcrdma_auth {
	uint32_t flavor, bytes; /* bytes <= RPCRDMA_AUTH_MAX */
	const void *body;
};

/* The verifier of a reply. */
struct rpcrdma_verf {
	uint32_t flavor, bytes;
	uint8_t body[RPCRDMA_AUTH_MAX];
};

/* AUTH_SYS (RFC 5531 appendix A), AUTH_NONE when `none`, or @opaque */
struct rpcrdma_cred {
	bool none;
	uint32_t stamp;         /* distinguishes this requester from others on its host */
	char machine[64];
	uint32_t uid, gid, ngids;
	uint32_t gids[16];
	const struct rpcrdma_auth *opaque; /* a credential as bytes, in place of all the above; NULL: none */
	const struct rpcrdma_auth *verf;   /* verifier of the call; NULL: AUTH_NONE */
};

enum rpcrdma_clnt_state {
	RPCRDMA_CLNT_CONNECTING,
	RPCRDMA_CLNT_UP,
	RPCRDMA_CLNT_DOWN,   /* waiting to reconnect */
};

#define RPCRDMA_CLNT_CREDITS_MAX 1024u

struct rpcrdma_clnt_attr {
	size_t size;                   /* sizeof(struct rpcrdma_clnt_attr), or 0: see rpcrdma.h */
	struct rpcrdma_addr addr;
	struct rpcrdma_cred cred;      /* copied, with what it points to; a call may have its own */
	uint32_t inline_bytes;         /* size of Send and receive buffers; 1024..65536; 0: 4096 */
	uint32_t credits;              /* requested, <= RPCRDMA_CLNT_CREDITS_MAX; 0: 64; on TCP, maximum calls in flight */
	uint32_t call_bytes_max;       /* longest call: its RPC header and arguments without their payload; at most
	                                * RPCRDMA_CALL_BYTES_MAX; 0: 1 MiB + 8 KiB */
	uint32_t timeout_ms;           /* without a reply: disconnect, reconnect, retransmit (but see no_resend); 0: 60000 */
	uint32_t connect_ms;           /* limit of one attempt; 0: 10000 */
	uint32_t backoff_ms;           /* first delay between attempts, doubles up to 64 times; 0: 50 */
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
	size_t reg_bytes;              /* limit of a cache; 0: half of what may be pinned. The clients of an engine that
	                                * have the same server and settings share one; with more engines or servers,
	                                * divide what may be pinned */
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
	const struct rpcrdma_lab *lab; /* measurements and tests (rpcrdma_lab.h); NULL: none */
	const char *shares;            /* servers that trust each other: the clients of an engine that have the same text and
	                                * settings share registrations, so each of these servers can access memory that is
	                                * registered for another one. Valid as long as the client; NULL: for the server alone */
};

#define RPCRDMA_ROOM_HEAD 512u /* bytes of a room in addition to reply_max: the RPC header of the reply */

/* Memory that receives the results of a call undecoded, for a caller that decodes them itself. It belongs to the client
 * from the start of the call until released(). */
struct rpcrdma_room {
	void *mem;                         /* 8-byte aligned. Memory of rpcrdma_mem_alloc() or rpcrdma_mem_register() needs
	                                    * no registration for the call */
	size_t bytes;                      /* at least reply_max + RPCRDMA_ROOM_HEAD */
	/* Runs exactly once if rpcrdma_clnt_call() returned 0: the peer and the client no longer access @mem, the memory
	 * of the arguments, and what call->ready points to. Normally it runs immediately before done(). If a call that
	 * was sent passes its deadline or is cancelled, it may run later: when the late reply arrives, or when the
	 * connection has ended, also by rpcrdma_clnt_destroy(). It must not call into the client. */
	void (*released)(struct rpcrdma_room *room);
	void *priv[2];                     /* private */
};

/* Arguments that are encoded already: the bytes of @iov up to @payload_at, the payload, its XDR pad, which is added, and
 * the other bytes of @iov. It is not copied, and must stay unchanged until done(), or, if the call has a room, until
 * released(). */
struct rpcrdma_ready {
	const struct iovec *iov;           /* XDR bytes without payload and pad; the sum is a multiple of 4 */
	int iovcnt;
	const struct iovec *payload;       /* may travel by Read chunk: its entries have at least payload_bytes */
	int payloadcnt;
	uint32_t payload_bytes;            /* 0: no payload */
	size_t payload_at;                 /* behind the payload's length word, which @iov contains; a multiple of 4 */
};

/* How a reply that is not a success says so: numbers of RFC 5531 section 9. */
struct rpcrdma_status {
	uint32_t reply_stat;               /* 0: accepted, 1: denied */
	uint32_t stat;                     /* accept_stat or reject_stat */
	uint32_t auth_stat;                /* of AUTH_ERROR */
	uint32_t low, high;                /* of PROG_MISMATCH and RPC_MISMATCH */
};

/* One call. Owned by the caller from start to done; zero-initialize before filling it. */
struct rpcrdma_call {
	uint32_t prog, vers, proc;
	uint32_t segs_max;                 /* maximum segments of a chunk with payload, up to 64; more are copied together.
	                                    * 0: 16, which every responder accepts. More need an inline size of 4096, and
	                                    * no memory windows */
	const struct rpcrdma_cred *cred;   /* NULL: the client's */
	xdrproc_t encode;                  /* arguments; runs again if the call is retransmitted */
	const void *args;
	const struct rpcrdma_ready *ready; /* arguments as XDR bytes; encode and args are not used. NULL: none */
	xdrproc_t decode;                  /* results */
	void *res;
	struct rpcrdma_room *room;         /* receives the results as XDR bytes; decode and res are not used. NULL: none */
	const struct iovec *sink;          /* memory for the results' payload; the sum is its maximum length. Results
	                                    * with a payload need a sink: without room the call fails with -EMSGSIZE */
	int sinkcnt;
	uint32_t reply_max;                /* maximum results, XDR bytes without payload and RPC header. With a room:
	                                    * maximum bytes there, with a payload that the peer does not place in sink */
	struct rpcrdma_verf *verf;         /* receives the verifier of an accepted reply; NULL: not wanted */
	struct rpcrdma_status *status;     /* receives the status of a reply, whatever it is; NULL: not wanted */
	uint32_t deadline_ms;              /* fail with -ETIMEDOUT after this time; 0: never */
	bool no_resend;                    /* the responder must not receive it twice: it fails with its connection */
	void (*done)(struct rpcrdma_call *call, int err);

	/* valid in done(); why also if rpcrdma_clnt_call() fails */
	uint32_t xid;
	uint32_t payload_bytes;            /* of the results, now in sink; with a room: bytes placed there */
	void *results;                     /* with a room, done(0): the results' XDR bytes, at a multiple of 4 in room->mem */
	size_t results_bytes;              /* ... and their number, at most reply_max */
	const char *why;                   /* on failure: text for users; static or owned by the client */
	bool sent;                         /* the responder may have executed it; false: it has not */
	void *priv[4];                     /* private */
};

/** rpcrdma_clnt_open - starts connecting; calls may be made at once
 *
 * Until the first connection is established, a failure to connect fails every waiting call with its errno (later
 * calls start a new attempt). From then on the connection is re-established indefinitely, with the same XIDs and new
 * registrations; a call fails only by its deadline or its reply, unless it has no_resend.
 *
 * RDMA uses the device that the kernel's routes select. A host name is resolved at each connect, by getaddrinfo() on a
 * thread of its own: neither this function nor the engine waits for the resolver. A literal address needs no resolver.
 *
 * Return: 0, -EINVAL (attributes), -E2BIG (@attr->size), -ENOMEM, -EOPNOTSUPP (no such transport in this build); RDMA: -ENODEV without a
 * device, -ENXIO if no device leads there, and errors of the resolver.
 */
int rpcrdma_clnt_open(struct rpcrdma_engine *e, const struct rpcrdma_clnt_attr *attr,
		      struct rpcrdma_clnt **ret);

/** rpcrdma_clnt_engine - the engine of the client; any thread */
struct rpcrdma_engine *rpcrdma_clnt_engine(const struct rpcrdma_clnt *c);

/** rpcrdma_clnt_destroy - calls in flight get done(-ECANCELED) before it returns; after it no peer can access their
 * memory. NULL is fine. */
void rpcrdma_clnt_destroy(struct rpcrdma_clnt *c);

/** rpcrdma_clnt_call - starts a call; done() runs exactly once, later, unless an error is returned
 *
 * done(err): 0: results decoded; -EPROTONOSUPPORT, -EOPNOTSUPP, -EINVAL, -EREMOTEIO, -EACCES: from the reply header
 * (call->why); -EMSGSIZE: the results are longer than call->sink or call->reply_max, or the call is too long for the
 * peer (ERR_CHUNK); -EBADMSG: the results did not decode; -EPROTO: the reply violated the protocol, connection dropped;
 * -ETIMEDOUT: deadline; -ECANCELED; -EFAULT: its memory is not mapped, or was unmapped while the call was in flight; or
 * a connect error before the first connection, -ECONNREFUSED also for a local socket that does not exist.
 *
 * A call with no_resend is sent at most once. If its connection ends, for whatever reason (timeout_ms, or the
 * cancellation of another call, too), done() gets -ECONNRESET if the call was sent, and -ENOTCONN if it was not. While
 * there is no connection, such a call starts an attempt to connect at once, without back-off. It fails with the errno of
 * the attempt, not sent. A connection that ended while no call was in flight is detected before the call is sent, which
 * then goes over a new one. If calls with a deadline have timed out and hold all credits, and none is in flight, a
 * waiting call with no_resend replaces the connection.
 *
 * A call with a room gets its results undecoded, in call->results. If the peer placed the payload in sink by Write
 * chunk, payload_bytes is not 0 and the results lack payload and pad behind the payload's length word, which the caller
 * finds and compares with payload_bytes. If payload_bytes is 0, all of the results are in the room; so it is always over
 * TCP. Peers keep access to memory that stays registered (leat(7)): a hostile one may change the results while they are
 * decoded. Results longer than reply_max are -EMSGSIZE at once, and the connection stays. A deadline of such a call ends
 * the peer's access to sink before done(), and costs no connection unless sink is in use.
 *
 * TCP does not tell the server how much room a call has. A reply that is longer fails only its call, with -EMSGSIZE, and
 * the rest of it is discarded, if what was decoded explains its length: a payload that ends with the reply exceeds the
 * sink, or the results reach beyond reply_max. It is -EPROTO if its payload reaches beyond the reply, if the results end
 * before the reply, or if it is longer than RPCRDMA_BUF_MAX and 64 KiB.
 *
 * Return: 0; -EMSGSIZE: the arguments exceed the maximum of a call; -EINVAL: they do not encode; -EFAULT, -ENOMEM.
 */
int rpcrdma_clnt_call(struct rpcrdma_clnt *c, struct rpcrdma_call *call);

/** rpcrdma_clnt_call_wait - makes a call and runs the engine on this thread until the call is done
 *
 * Other callbacks of the engine run meanwhile. call->done is not used. A signal runs its handler and does not end the
 * call. What ends it: the reply, call->deadline_ms, or a message (rpcrdma_engine_post(), also from a signal handler)
 * that cancels it.
 *
 * Return: as done() of rpcrdma_clnt_call(); as rpcrdma_clnt_call() itself; -EDEADLK: called from a callback of the
 * engine or of the client, nothing was sent. call->why is set on any failure.
 */
int rpcrdma_clnt_call_wait(struct rpcrdma_clnt *c, struct rpcrdma_call *call);

/** rpcrdma_clnt_cancel - runs done(-ECANCELED) before it returns; the peer cannot access the call's memory by then (if
 * necessary the connection is dropped and the other calls are retransmitted)
 *
 * Blocks while a server on the same host copies to or from the call's memory; never waits for a disk. If the deadline
 * of a call passes during such a copy, the call is done when the copy has ended; other calls continue. */
void rpcrdma_clnt_cancel(struct rpcrdma_clnt *c, struct rpcrdma_call *call);

/** rpcrdma_clnt_reconnect - ends the connection, if there is one, and makes the next one
 * Calls in flight are sent again, except those with no_resend. May be called in done().
 * @why: as of rpcrdma_clnt_info; copied
 */
void rpcrdma_clnt_reconnect(struct rpcrdma_clnt *c, const char *why);

/* State of a client, as printed by `leat ping`; its texts belong to the client. */
/* How the responder accesses memory of this process */
enum rpcrdma_reach {
	RPCRDMA_REACH_NONE,       /* not connected */
	RPCRDMA_REACH_DEVICE,     /* directly, by the RDMA device */
	RPCRDMA_REACH_PROCESS_VM, /* LOCAL: shared memory directly, other memory by process_vm calls */
	RPCRDMA_REACH_BOUNCE,     /* LOCAL: shared memory directly, other memory by copies through a bounce area */
	RPCRDMA_REACH_SOCKET      /* TCP: by copies through the socket */
};

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
	size_t reg_bytes;              /* limit of these registrations, including those in use by calls, for this engine
	                                * and server; 0: no limit */
	enum rpcrdma_reach reach;
	unsigned modes;                /* agreed modes (rpcrdma_lab.h) */
	uint32_t fast_write_bytes, fast_write_slots; /* limits of fast writes */
	char device[64];
	uint64_t reconnects;
	int err;                       /* of the last attempt to connect, or connection, that ended; 0: none */
	uint32_t unsent;               /* calls that wait, or of which this process has not sent every byte */
};
/** rpcrdma_clnt_info - copies the state of a client; on its engine's thread
 * rpcrdma_clnt_info_sized writes at most @bytes, and clears what the library does not know. */
void rpcrdma_clnt_info_sized(const struct rpcrdma_clnt *c, struct rpcrdma_clnt_info *ret, size_t bytes);
static inline void rpcrdma_clnt_info(const struct rpcrdma_clnt *c, struct rpcrdma_clnt_info *ret)
{
	rpcrdma_clnt_info_sized(c, ret, sizeof(*ret));
}

/** rpcrdma_registration - name of the @n-th strategy accepted in rpcrdma_clnt_attr; NULL: no more */
const char *rpcrdma_registration(size_t n);

/** rpcrdma_reg_bytes_default - default limit of one registration cache: half of what this process may pin
 * (RLIMIT_MEMLOCK, if it applies to the process, or a quarter of the machine's memory), however many caches it has */
size_t rpcrdma_reg_bytes_default(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
