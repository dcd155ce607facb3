/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * hooks.h - conditions that otherwise need a faulty device, a slow one or a dying peer
 *
 * rpcrdma/filters/ produces them, for whatever fabric it is put in front of. A zeroed structure asks for none.
 */
#ifndef RR_HOOKS_H
#define RR_HOOKS_H

#include <stdbool.h>
#include <stdint.h>

struct rr_hooks {
	/* chaos.c: send-queue requests are executed at polls, not at the post, and legally reordered: between queue
	 * pairs, RDMA Reads against later Writes, parts within one transfer, a Send's completion against the peer's
	 * reply. Memory to be written is poisoned when it is posted. The seed makes a single-threaded run repeatable;
	 * 0 is off. */
	uint64_t chaos_seed;

	/* faults.c */
	uint64_t fail_post;          /* the Nth post from now fails with -ENOMEM; 0 never */
	uint64_t fail_completion;    /* the Nth completion carries RR_WC_LOST and ends its queue pair */
	uint64_t fail_reg;           /* the Nth mr_reg fails with -ENOMEM */
	uint64_t fail_window;        /* the Nth mw_create fails */
	uint64_t fail_bind;          /* the Nth bind fails, as on a device without binds, and ends its queue pair */
	uint64_t drop_completion;    /* the Nth completion is never delivered (for time-out tests) */
	uint64_t cut_after_sends;    /* after N more Sends of this side the link is cut: the Nth is
	                              * delivered iff cut_delivers */
	bool cut_delivers;

	/* reg_cost.c */
	uint32_t reg_ns, dereg_ns;   /* busy wait per registration, deregistration */
	uint32_t reg_page_ns, dereg_page_ns; /* ... and per page of it */
};

#endif
