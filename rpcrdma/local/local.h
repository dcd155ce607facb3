/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * local.h - the local fabric: how to open it, and hooks for tests
 *
 * local.c describes the fabric and its guarantees. The hooks from chaos_seed on let a test produce
 * conditions that otherwise need real hardware, a slow link or a dying peer. A zeroed struct
 * selects the plain, fast fabric.
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
	unsigned keys_max;           /* registrations per connection */
	uint64_t mapped_bytes_max;   /* all peers' slabs that this side maps; each user has a share */
	uint64_t ring_bytes_max;     /* rings and smallest bounce areas of all connections; each user has a share */
	uint64_t region_bytes_max;   /* slabs of one peer that this side accepts */
	unsigned conns_max;
	unsigned handshakes_max, handshakes_uid_max; /* unfinished handshakes in total, per uid */
	unsigned handshake_ms;       /* limit from accept(2) to the REQ */
	uint64_t bounce_bytes;       /* size of a connection's bounce area */
};

struct rr_local_hooks {
	/* Chaos: data moves at the completion of an operation, not at the post. Operations are legally reordered:
	 * between queue pairs, RDMA Reads against later Writes, parts within one transfer, a Send's completion against
	 * the peer's reply. Receive buffers are poisoned when posted and when finished. The seed makes a
	 * single-threaded run repeatable; 0 is off. */
	uint64_t chaos_seed;

	uint64_t fail_post;          /* the Nth post from now fails with -ENOMEM; 0 never */
	uint64_t fail_completion;    /* the Nth completion carries RR_WC_LOST and kills its QP */
	uint64_t fail_reg;           /* the Nth mr_reg fails with -ENOMEM */
	uint64_t fail_window;        /* the Nth mw_create fails */
	uint64_t fail_bind;          /* the Nth bind fails, as on a device without binds, and kills its QP */
	uint64_t drop_completion;    /* the Nth completion is never delivered (for time-out tests) */
	uint64_t cut_after_sends;    /* after N more Sends of this side the link is cut: the Nth is
	                              * delivered iff cut_delivers */
	bool cut_delivers;

	uint64_t rate_bytes_s;       /* rate of RDMA Reads, Writes and Sends; 0: unlimited */
	uint32_t op_ns;              /* ... plus this time per operation */
	uint32_t reg_ns, dereg_ns;   /* busy wait per registration, deregistration */
	uint32_t reg_page_ns, dereg_page_ns; /* ... and per page of it */
	bool pin;                    /* registrations keep their pages, as on a device: if the address
	                              * gets other pages later, a peer still reaches the old ones
	                              * (local_pin.c). For writable memory; slow. */
};

struct rr_local_attr {
	enum rr_local_vm vm;
	struct rr_local_limits limits;
	struct rr_local_hooks hooks;
	const char *capture;         /* pcap file for the packets that a RoCEv2 network would carry */
	bool no_windows;             /* behaves like a device without memory windows (tests) */
	struct rr_clients *clients;  /* users and their budgets of shared memory; NULL: the fabric's own */
	mode_t socket_mode;          /* permission bits of listening sockets; 0: 0666 */
};

/** rr_local_open - opens the local fabric
 * @attr: NULL for the plain fabric; copied
 * @ret: close it with rr_fabric_close() when nothing uses it
 *
 * Return: 0, -ENOMEM, -EOPNOTSUPP if the process may not call process_vm_writev() on itself, or the errno of
 * opening the capture file.
 */
must_check int rr_local_open(const struct rr_local_attr *attr, struct rr_fabric **ret);

/** rr_local_hooks - returns the hooks of an open fabric; change them only while its thread is not inside */
struct rr_local_hooks *rr_local_hooks(struct rr_fabric *fabric);

/* Counters of an open fabric since it was opened. */
struct rr_local_counters {
	uint64_t posts, completions, regs, deregs;
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
