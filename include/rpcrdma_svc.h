/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * rpcrdma_svc.h - a service: listeners, connections and the requests that arrive
 */
#ifndef RPCRDMA_SVC_H
#define RPCRDMA_SVC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "rpcrdma_addr.h"
#include "rpcrdma_loop.h"
#include "rpcrdma_mem.h"
#include "rpcrdma_payload.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct rpcrdma_listener;
struct rpcrdma_conn;
struct rpcrdma_lab;

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
	size_t size; /* sizeof(struct rpcrdma_svc_ops), or 0: see rpcrdma.h */
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
	/* An accepted connection is on its engine. closed() may run without it. May be NULL. */
	void (*opened)(void *conn_ctx, struct rpcrdma_conn *conn);
};

struct rpcrdma_svc_attr {
	size_t size;             /* sizeof(struct rpcrdma_svc_attr), or 0: see rpcrdma.h */
	uint32_t inline_bytes;   /* 1024..65536; 0: 4096 */
	uint32_t credits;        /* maximum calls of one connection in flight; 0: 64 */
	uint32_t call_bytes_max; /* longest call, at most that of the domain (rpcrdma_domain_attr); 0: 1 MiB + 8 KiB */
	uint32_t conns_max;      /* limit over all listeners of the domain, of which the largest value applies; one
	                          * client gets at most three quarters; 0: 1024 */
	uint32_t first_call_ms;  /* limit until the first call of a new connection; 0: 30000 */
	uint32_t req_bytes;      /* memory that the service keeps for each call, less than 2 GiB; counted together with
	                          * the library's own */
	uint32_t stall_ms;       /* limit for a peer that makes no progress with a transfer in flight; 0: 20000 */
	bool no_remote_inv;      /* never send Send-With-Invalidate */
	bool srq;                /* connections of an engine share their receives, if the device supports it */
	bool whole_calls;        /* svc_ops.call runs when all of a call is in memory, the payload of a Read chunk
	                          * included. Calls wait in order for this memory, which is the pool's */
	const struct rpcrdma_lab *lab; /* measurements and tests (rpcrdma_lab.h); NULL: none */
};

/** rpcrdma_listen - accepts connections on @addr; port 0 selects a free one
 *
 * RDMA: at an address, on the device that has it; at 0.0.0.0 or [::], on every device, each opened when the first
 * peer connects through it.
 *
 * @addr: a name is resolved by the calling thread, which may wait for it; so not in a callback of an engine
 *
 * Return: 0; -EDEADLK: a name, in a callback; -EADDRINUSE, -EACCES and similar; -ENODEV: no RDMA device here; -ENXIO: no device has the address;
 * -EINVAL; -E2BIG (size of @attr or @ops).
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
	const uint8_t *cred_body;     /* valid until the req is ended; so is verf_body */
	uint32_t verf_flavor, verf_len;
	const uint8_t *verf_body;
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

/* Arguments that are not decoded. */
struct rpcrdma_args {
	const void *bytes;      /* in XDR, as the peer sent them, @len */
	size_t len;
	bool reduced;           /* payload is at the caller: rpcrdma_req_pull() transfers it. False with svc_attr.whole_calls */
	uint32_t payload_bytes; /* bytes in a Read chunk, maybe with their pad; 0: none */
	size_t payload_pos;     /* their position in the arguments */
};

/** rpcrdma_req_args_bytes - returns the arguments as bytes, instead of rpcrdma_req_decode()
 * They do not change until the req is ended. Until then any thread may read them. May be called repeatedly.
 *
 * The library does not know the argument of a Read chunk. The caller checks that an argument of @payload_bytes begins at
 * @payload_pos.
 *
 * Return: 0; -EAGAIN: not received completely; svc_ops.call will run again with the same req (not with
 * svc_attr.whole_calls); -EBADMSG: malformed (reply with RPCRDMA_GARBAGE_ARGS).
 */
int rpcrdma_req_args_bytes(struct rpcrdma_req *req, struct rpcrdma_args *ret);

/** rpcrdma_req_conn_alive - false: the connection is lost, the reply cannot be delivered */
bool rpcrdma_req_conn_alive(const struct rpcrdma_req *req);

/* Buffers for one request. They are charged to its client (rpcrdma_client_id_of()) and its connection until
 * rpcrdma_buf_put(), at the latest in the req's done. A client may hold twice what is free (and always one buffer): a
 * single client two thirds, two clients two fifths each, eight two seventeenths each. Within a client, connections
 * share in the same way. A connection starts with a sixteenth and earns more by returning buffers, so that peers that
 * do not receive their replies leave memory for others. */

/** rpcrdma_req_buf_get - as rpcrdma_buf_get(); -ENOBUFS also if the connection or its client has used up its share;
 * -ENOTCONN: the connection is closed */
int rpcrdma_req_buf_get(struct rpcrdma_req *req, size_t bytes, struct rpcrdma_buf **ret);
/** rpcrdma_req_buf_wait - call after -ENOBUFS: fn runs once on the req's engine when a retry may succeed */
void rpcrdma_req_buf_wait(struct rpcrdma_req *req, struct rpcrdma_buf_waiter *w);

/** rpcrdma_domain_reply_max - maximum length of a reply without payload in chunks */
size_t rpcrdma_domain_reply_max(const struct rpcrdma_domain *d);

/* A part of the payload in transfer; embedded in the service's own structure, one owner at a time. */
struct rpcrdma_xfer {
	struct rpcrdma_buf *buf; /* of the pool; the library sets buf and buf_off if there is a @mem */
	size_t buf_off;
	void *mem;               /* NULL, or memory of rpcrdma_mem_alloc() or rpcrdma_mem_register() in the domain of the
	                          * engine */
	uint32_t off, len;       /* within the payload */
	/* place: may be NULL; then only the req's done tells the end */
	void (*done)(struct rpcrdma_xfer *p, int err);
	struct rpcrdma_xfer *next; /* private from here */
	struct rpcrdma_req *req;
	void *priv[2];
	int err;
};

/* Own memory of the service (xfer->mem) is in use from the call until the req's done: until then
 * rpcrdma_mem_unregister() returns -EBUSY, and the program does not free it. */

/** rpcrdma_req_pull - transfers bytes [off, off+len) of the arguments' payload into a buffer
 * done(0; -EIO: the connection broke; -ECANCELED: the req was ended). It runs before the req's done. On TCP the
 * transfers must be requested in order.
 *
 * Return: 0, done() follows; -EINVAL: outside the payload; -ENOTCONN; -ENOMEM; -EFAULT: xfer->mem is not memory of
 * this domain, or is read-only (over TCP detected from Linux 5.14 on).
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
 * Return: 0; -EMSGSIZE: beyond req->room (end the req with rpcrdma_req_reject); -ENOTCONN; -ENOMEM;
 * -EFAULT: xfer->mem is not memory of this domain.
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
 * If the reply is too long for the caller, it becomes ERR_CHUNK (RDMA) or SYSTEM_ERR (TCP). If the iov, or what was
 * placed for the reply, is shorter than the payload, it becomes SYSTEM_ERR. A payload in a Write chunk is not checked:
 * bytes that were not placed keep their old values in the caller's memory.
 */
void rpcrdma_req_reply(struct rpcrdma_req *req, xdrproc_t encode, const void *res,
		       void (*done)(void *arg), void *arg);

/* Results that are encoded already: bytes in XDR in pieces of memory, one after the other. */
struct rpcrdma_results {
	const struct iovec *iov; /* without the pad of the payload; array and memory are valid until done */
	int iovcnt;
	int payload;             /* first entry of the payload, behind its length or count; ... */
	int payload_cnt;         /* ... number of its entries; 0: no payload */
};

/** rpcrdma_req_reply_parts - replies with success and results that are encoded already
 * Their payload is written to the Write chunk, if the caller provides one. Otherwise it is part of the reply: inline, in the
 * Reply chunk, or in the stream.
 *
 * Chunks are written directly from memory of rpcrdma_mem_alloc() or rpcrdma_mem_register() of the domain, except small
 * pieces. Other memory is copied through a buffer of the pool, at most 1 MiB at a time. Over TCP nothing is copied but into
 * the socket.
 *
 * If the reply is too long for the caller, it becomes ERR_CHUNK (RDMA). It becomes SYSTEM_ERR if it is longer than
 * RPCRDMA_CALL_BYTES_MAX, or if the bytes before or without the payload are no multiple of 4.
 */
void rpcrdma_req_reply_parts(struct rpcrdma_req *req, const struct rpcrdma_results *results, void (*done)(void *arg),
			     void *arg);

/** rpcrdma_req_reply_bytes - replies with success and results that are encoded already, in one piece and without payload
 * @results: @bytes in XDR, a multiple of 4; valid until @done
 * Otherwise as rpcrdma_req_reply_parts().
 */
void rpcrdma_req_reply_bytes(struct rpcrdma_req *req, const void *results, size_t bytes, void (*done)(void *arg),
			     void *arg);

/** rpcrdma_req_set_verf - sets the verifier of the reply, if it is accepted; without it, AUTH_NONE
 * @body: @bytes, at most 400; valid until the req's done
 *
 * Call it before a payload is placed: it reduces req->room if the payload is part of the reply.
 *
 * Return: 0, -EINVAL.
 */
int rpcrdma_req_set_verf(struct rpcrdma_req *req, uint32_t flavor, const void *body, uint32_t bytes);

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
