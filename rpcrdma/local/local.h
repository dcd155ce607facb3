/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * local.h - the local fabric: how to open it
 *
 * local.c describes the fabric and its guarantees. A zeroed struct selects the plain, fast fabric.
 */
#ifndef RR_LOCAL_H
#define RR_LOCAL_H

#include <stdbool.h>
#include <stdint.h>

#include "fabric.h"

struct rr_clients;

/* How a side moves bytes that are not in a mapped slab of the peer. */
enum rr_local_vm {
	RR_LOCAL_VM_AUTO,   /* process_vm_* where the rules of local.c allow it, else the bounce area */
	RR_LOCAL_VM_ALWAYS, /* process_vm_* or fail (tests) */
	RR_LOCAL_VM_NEVER,  /* bounce area always */
};

struct rr_local_limits { /* 0: the fabric's default */
	unsigned sq_max, rq_max, rd_atom_max;
	unsigned keys_max;           /* registrations per connection */
	uint64_t mapped_bytes_max;   /* all peers' slabs that this side maps; each user has a share */
	uint64_t ring_bytes_max;     /* rings and smallest bounce areas of all connections; each user has a share */
	uint64_t region_bytes_max;   /* slabs of one peer that this side accepts */
	unsigned conns_max;
	unsigned handshakes_max, handshakes_uid_max; /* unfinished handshakes in total, per uid */
	unsigned handshake_ms;       /* limit from accept(2) to the REQ */
	uint64_t bounce_bytes;       /* size of a connection's bounce area */
};

/* A simulated link, which all queue pairs of the fabric share. */
struct rr_local_link {
	uint64_t rate_bytes_s;       /* rate of RDMA Reads, Writes and Sends; 0: unlimited */
	uint32_t op_ns;              /* ... plus this time per operation */
};

struct rr_local_attr {
	enum rr_local_vm vm;
	struct rr_local_limits limits;
	struct rr_local_link link;
	/* Tests: copies all data of peers between memory registered without a memfd and the file of a bounce area, in
	 * place of the fabric. @addr is in @mr; @write: into it. Return: was all of it copied? */
	bool (*copy)(const struct rr_mr *mr, int fd, uint64_t addr, uint64_t off, uint32_t len, bool write);
	struct rr_clients *clients;  /* users and their budgets of shared memory; NULL: the fabric's own */
	mode_t socket_mode;          /* permission bits of listening sockets; 0: 0666 */
	const struct rr_filters *filters; /* put in front of the fabric; NULL: none */
};

/** rr_local_open - opens the local fabric
 * @attr: NULL for the plain fabric; copied
 * @ret: close it with rr_fabric_close() when nothing uses it
 *
 * Return: 0, -ENOMEM, -EOPNOTSUPP if the process may not call process_vm_writev() on itself, or the errno of the
 * filters.
 */
must_check int rr_local_open(const struct rr_local_attr *attr, struct rr_fabric **ret);

/** rr_local_attr - returns the attributes of an open fabric; `copy` may be set until it is used, and `link` may be
 * changed while its thread is not inside
 */
struct rr_local_attr *rr_local_attr(struct rr_fabric *fabric);

/* Counters of an open fabric since it was opened. */
struct rr_local_counters {
	uint64_t regs, deregs;
	uint64_t bytes_copied;       /* by a CPU, in either direction, by any call */
	uint64_t vm_bytes, slab_bytes, bounce_bytes; /* RDMA payload by how it moved */
	uint64_t doorbells;          /* wake-ups of a sleeping peer: one system call each */
	uint64_t hostile;            /* peers disconnected for violating the shared memory protocol */
};

/** rr_local_counters - returns the counters of a fabric, all its queue pairs included; any thread */
struct rr_local_counters rr_local_counters(const struct rr_fabric *fabric);

/** rr_local_cut - cuts the link of @qp like a pulled cable: both ends flush */
void rr_local_cut(struct rr_qp *qp);

#endif
