/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * rpcrdma_tirpc.h - handles of libtirpc over RDMA, the same-host fabric and TCP (librpcrdma_tirpc)
 *
 * A program whose stubs rpcgen made creates its handle here and leaves the rest as it is.
 *
 * Errors:   Those of libtirpc: enum clnt_stat, and rpc_createerr of a constructor.
 */
#ifndef RPCRDMA_TIRPC_H
#define RPCRDMA_TIRPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <rpc/rpc.h>

#include "rpcrdma_loop.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* ---- bulk data ------------------------------------------------------------------------------ */

#define RPCRDMA_BULK_NONE 0u /* no item of this direction is bulk data */

/* One procedure of the upper-layer binding of a program (RFC 8166 section 6): which items of its messages travel by
 * chunk. Item n is the n-th variable-length opaque or string (xdr_bytes(), xdr_string()) that the filter of the message
 * meets, from 1 on. An empty one does not count. An opaque of fixed length counts if the word before it happens to equal
 * its length. The memory of an item must stay unchanged until clnt_call() or svc_sendreply() returns: a filter must not
 * free it. */
struct rpcrdma_bulk {
	uint32_t prog, vers, proc;
	uint32_t args;       /* item of the arguments that travels by Read chunk; RPCRDMA_BULK_NONE */
	uint32_t results;    /* item of the results that travels by Write chunk; RPCRDMA_BULK_NONE */
	uint32_t threshold;  /* shorter items stay in the message, bytes; 0: 4096 */
	uint32_t data_max;   /* longest item of the results, bytes; 0: max_bytes of the handle */
	uint32_t reply_max;  /* longest results, XDR bytes, without that item; 0: max_bytes of the handle */
};

/* ---- attributes ------------------------------------------------------------------------------- */

#define RPCRDMA_TIRPC_MAX_BYTES ((size_t)64 << 20) /* most for max_bytes */

/* Attributes of a handle, CLIENT or service. Both ends of a connection may have different ones. */
struct rpcrdma_tirpc_attr {
	size_t size;               /* sizeof(struct rpcrdma_tirpc_attr), or 0: see rpcrdma.h */
	size_t max_bytes;          /* longest arguments and longest results inside a message, XDR bytes; 0: 16 MiB */
	size_t mem_bytes;          /* memory for messages that are longer than a Send: of all CLIENTs of the process, or of
	                            * the service. Callers wait in order when it is used up. The largest value given
	                            * applies; 0: 64 MiB, and always enough for one message of max_bytes each way */
	uint32_t credits;          /* calls of a connection in flight; 0: 32 */
	uint32_t inline_bytes;     /* size of a Send, 1024..65536; 0: 4096 */
	bool resend;               /* CLIENT: send a call again whose connection broke: for services that tolerate it */
	uint32_t conns_max;        /* service: connections; 0: 1024 */
	enum rpcrdma_poll poll;    /* whether a thread spins before it sleeps: RPCRDMA_POLL_ADAPTIVE, _BUSY, _EVENT.
	                            * Service: of rpcrdma_svc_run(); the loops of libtirpc only sleep */
	unsigned spin_us;          /* 0: 50 */
	const struct rpcrdma_bulk *bulk; /* table of bulk data, copied; a procedure without a row has none */
	size_t nbulk;
	size_t row_bytes;          /* sizeof(struct rpcrdma_bulk), or 0: that of the first release. Later releases may add
	                            * members to a row */
};

/* ---- domain ------------------------------------------------------------------------------------- */

/** rpcrdma_tirpc_domain - the domain of the handles of this process; any thread
 *
 * Bulk data moves without a copy from and to memory of rpcrdma_mem_alloc() in it. It lives as long as the process. A
 * child of fork() has a domain of its own.
 *
 * Return: NULL: no memory or no descriptors.
 */
struct rpcrdma_domain *rpcrdma_tirpc_domain(void);

/* Counters and state of all CLIENTs of a process. */
struct rpcrdma_tirpc_stats {
	uint64_t mem_waits;          /* calls that waited for memory */
	uint64_t mem_limit;          /* bytes: the largest mem_bytes given, or more if one call needs more */
	uint64_t mem_used;           /* bytes of it in use, also by calls that timed out and may still get a late reply */
	uint64_t mem_pinned;         /* bytes allocated now: those in use, and those kept for the next calls */
	uint64_t results_too_long;   /* calls that failed because their results were longer than they accept */
};
/** rpcrdma_tirpc_stats - copies the counters; any thread
 * rpcrdma_tirpc_stats_sized writes at most @bytes, and clears what the library does not know. */
void rpcrdma_tirpc_stats_sized(struct rpcrdma_tirpc_stats *ret, size_t bytes);
static inline void rpcrdma_tirpc_stats(struct rpcrdma_tirpc_stats *ret)
{
	rpcrdma_tirpc_stats_sized(ret, sizeof(*ret));
}

/* ---- client --------------------------------------------------------------------------------------- */

/** rpcrdma_clnt_create - creates a CLIENT for a program at a URL, and connects, as clnt_create() does
 * @url: "rdma://HOST[:PORT]", "tcp://HOST[:PORT]", "local:///PATH". Without a port, rpcbind of HOST is asked: netid "rdma"
 *       ("rdma6") or "tcp" ("tcp6")
 * @attr: NULL for the defaults
 *
 * Return: the handle (clnt_destroy()), or NULL with rpc_createerr set: RPC_UNKNOWNHOST, RPC_PROGNOTREGISTERED,
 * RPC_RPCBFAILURE (rpcbind does not reply), RPC_TIMEDOUT, RPC_SYSTEMERROR with the errno of connecting, or of a bad URL or
 * attributes (EINVAL, ENAMETOOLONG, E2BIG).
 */
CLIENT *rpcrdma_clnt_create(const char *url, rpcprog_t prog, rpcvers_t vers, const struct rpcrdma_tirpc_attr *attr);

/** rpcrdma_clnt_create_timed - as above, and gives up after @timeout (RPC_TIMEDOUT); NULL: 25 s */
CLIENT *rpcrdma_clnt_create_timed(const char *url, rpcprog_t prog, rpcvers_t vers, const struct rpcrdma_tirpc_attr *attr,
				  const struct timeval *timeout);

/** rpcrdma_clnt_why - text about the last error of this thread's calls on @clnt, in addition to clnt_sperror(); valid until
 * the next call of the thread, on any CLIENT. "": no error. */
const char *rpcrdma_clnt_why(CLIENT *clnt);

/* ---- service ---------------------------------------------------------------------------------------- */

/** rpcrdma_svc_create - serves a program version at a URL; beside svc_create()
 * @url: "rdma://HOST[:PORT]", "tcp://HOST[:PORT]", "local:///PATH". Port 0, or no port, selects a free one. 0.0.0.0 and
 *       [::] are every address
 * @attr: NULL for the defaults; of several calls with one URL the first decides, of all calls for poll and spin_us
 *
 * Several programs and versions may share a URL. What the program registers with libtirpc is served there too.
 * The local rpcbind, if there is one, gets the netids "rdma", "rdma6", "tcp" or "tcp6" of literal addresses: those of
 * RDMA replace older ones. svc_unreg() and exit() remove them.
 *
 * Return: 0, -EINVAL (URL or attributes), -E2BIG (@attr->size), -EEXIST (program and version have another dispatch
 * function), -ENOMEM, the errors of rpcrdma_listen().
 */
int rpcrdma_svc_create(void (*dispatch)(struct svc_req *, SVCXPRT *), rpcprog_t prog, rpcvers_t vers, const char *url,
		       const struct rpcrdma_tirpc_attr *attr);

/** rpcrdma_svc_url - the URL with the selected port, of the service that rpcrdma_svc_create() made from @url
 * Return: bytes of the text, as snprintf(); -ENOENT.
 */
int rpcrdma_svc_url(const char *url, char *buf, size_t cap);

/** rpcrdma_svc_run - svc_run() that spins before it sleeps; other transports of the program are served as well
 * Returns after svc_exit(). */
void rpcrdma_svc_run(void);

/** rpcrdma_svc_detach - takes a request out of its dispatch function, so that it can be replied to later, in any order,
 * by any thread
 *
 * The copy has its own transport (ret->rq_xprt), credentials and arguments: svc_getargs(), svc_sendreply(), svcerr_*(),
 * svc_freeargs() and svc_getrpccaller() work on it, in one thread at a time. The loop must run until the reply is on its
 * way. The dispatch function must not reply to @rqstp any more.
 *
 * Return: the request, for rpcrdma_svc_release(); NULL: not a request of this library, or replied to already, or no memory.
 */
struct svc_req *rpcrdma_svc_detach(struct svc_req *rqstp);

/** rpcrdma_svc_release - frees a detached request, which ends without a reply if it had none; any thread. NULL is fine. */
void rpcrdma_svc_release(struct svc_req *detached);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
