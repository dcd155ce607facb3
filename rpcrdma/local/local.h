/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * local.h - the local fabric: how it is opened, and the hooks by which tests bend it
 *
 * What it is and what it guarantees: local.c. Everything below `chaos` exists so that a test can
 * see what would otherwise wait for real hardware, a slow link or a dying peer. A zeroed struct
 * gives the plain, fast fabric.
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
	unsigned sge_max, sq_max, rq_max, cq_max, rd_atom_max;
	unsigned keys_max;           /* registrations alive on one connection */
	uint64_t mapped_bytes_max;   /* of all peers' slabs mapped by this side; a share for each user */
	uint64_t ring_bytes_max;     /* of rings and the smallest bounce areas of all connections; likewise */
	uint64_t region_bytes_max;   /* slabs of one peer that this side takes */
	unsigned conns_max;
	unsigned handshakes_max, handshakes_uid_max; /* unfinished ones, of all callers, of one uid */
	unsigned handshake_ms;       /* how long one may take from accept(2) to the REQ */
	uint64_t bounce_bytes;       /* size of a connection's bounce area */
};

struct rr_local_hooks {
	/* Chaos: data moves when the operation completes, not when it is posted; legal reordering
	 * between queue pairs, of RDMA Reads against later Writes, of pieces inside one transfer, of a
	 * Send's completion against the peer's answer; posted receive buffers and finished ones are
	 * poisoned. The seed makes a run repeatable for one thread; 0 is off. */
	uint64_t chaos_seed;

	uint64_t fail_post;          /* the Nth post from now fails with -ENOMEM; 0 never */
	uint64_t fail_completion;    /* the Nth completion carries RR_WC_LOST and kills its QP */
	uint64_t fail_reg;           /* the Nth mr_reg fails with -ENOMEM */
	uint64_t fail_window;        /* the Nth mw_create does */
	uint64_t fail_bind;          /* the Nth bind fails, as on a device that cannot, and kills its QP */
	uint64_t drop_completion;    /* the Nth completion never appears (for time-out tests) */
	uint64_t cut_after_sends;    /* after N more Sends of this side the link is cut: the Nth is
	                              * delivered iff cut_delivers */
	bool cut_delivers;

	uint64_t rate_bytes_s;       /* RDMA Read/Write/Send take this long; 0 is as fast as it goes */
	uint32_t op_ns;              /* ... plus this per operation */
	uint32_t reg_ns, dereg_ns;   /* charged (busy wait) per registration */
	uint32_t reg_page_ns, dereg_page_ns; /* ... and for each page of it */
	bool pin;                    /* memory that is registered is what it was then, as for a device:
	                              * if the address has other pages by now, a peer reaches the old
	                              * ones (local_pin.c). For writable memory; slow. */
};

struct rr_local_attr {
	enum rr_local_vm vm;
	struct rr_local_limits limits;
	struct rr_local_hooks hooks;
	const char *capture;         /* pcap file that gets what a RoCEv2 wire would have carried */
	bool no_windows;             /* as a device that has none (tests) */
	struct rr_clients *clients;  /* users, with the budgets of shared memory; NULL: the fabric's own */
	mode_t socket_mode;          /* permission bits of listening sockets; 0: 0666 */
};

/** rr_local_open - open the local fabric
 * @attr: may be NULL for the plain fabric; copied
 * @ret: closed with rr_fabric_close() when nothing of it is in use
 *
 * Return: 0, -ENOMEM, -EOPNOTSUPP if a process may not call process_vm_writev() for itself, or the errno of
 * opening the capture file.
 */
must_check int rr_local_open(const struct rr_local_attr *attr, struct rr_fabric **ret);

/** rr_local_hooks - the hooks of an open fabric; change them only while its thread is not inside */
struct rr_local_hooks *rr_local_hooks(struct rr_fabric *fabric);

/* Counters of an open fabric since it was opened. */
struct rr_local_counters {
	uint64_t posts, completions, regs, deregs;
	uint64_t bytes_copied;       /* by a CPU, in either direction, whatever the call used */
	uint64_t vm_bytes, slab_bytes, bounce_bytes; /* RDMA payload by how it moved */
	uint64_t doorbells;          /* a sleeping peer was woken: one system call */
	uint64_t hostile;            /* peers cut off for breaking the rules of the shared memory */
};
struct rr_local_counters rr_local_counters(const struct rr_fabric *fabric);

/** rr_local_cut - cut the link of @qp as a pulled cable would: both ends flush */
void rr_local_cut(struct rr_qp *qp);

#endif
