/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * hooks.h - conditions that otherwise need a faulty device, a slow one or a dying peer
 *
 * Filters (rpcrdma/filters/filter.h) in front of a fabric produce them. A zeroed structure asks for none.
 *
 *     struct rr_local_attr attr = { .filters = HOOKS(.chaos_seed = 5) };
 */
#ifndef HOOKS_H
#define HOOKS_H

#include "filter.h"

struct hooks {
	struct rr_filters filters;   /* set by HOOKS() */

	/* chaos.c: send-queue requests are executed at polls, not at the post, and legally reordered: between queue
	 * pairs, RDMA Reads against later Writes, parts within one transfer, a Send's completion against the peer's
	 * reply. Memory to be written is poisoned when it is posted. The seed makes a single-threaded run repeatable;
	 * 0 is off. */
	uint64_t chaos_seed;

	bool pin;                    /* pins.c: registrations keep their pages, as on a device: if the address gets
	                              * other pages later, a peer still reaches the old ones. For writable memory;
	                              * slow. Only for the local fabric */

	/* faults.c */
	bool no_windows;             /* as a device without memory windows; from the opening on */
	uint64_t fail_post;          /* the Nth post from now fails with -ENOMEM; 0 never */
	uint64_t fail_completion;    /* the Nth completion carries RR_WC_LOST and ends its queue pair */
	uint64_t fail_reg;           /* the Nth mr_reg fails with -ENOMEM */
	uint64_t fail_window;        /* the Nth mw_create fails */
	uint64_t fail_bind;          /* the Nth bind fails, as on a device without binds, and ends its queue pair */
	bool refuse_binds;           /* posts with a bind fail with -EINVAL */
	uint64_t drop_completion;    /* the Nth completion is never delivered (for time-out tests) */
	uint64_t cut_after_sends;    /* after N more Sends of this side the link is cut: the Nth is
	                              * delivered iff cut_delivers */
	bool cut_delivers;
};

/* The filters of a fabric that is opened with these hooks, which are copied then. As a compound literal they live as
 * long as the enclosing block, or at file scope for ever. */
#define HOOKS(...) (&(const struct hooks){ .filters = { hooks_push }, __VA_ARGS__ }.filters)

/** hooks_push - puts filters for the struct hooks around @self in front of @fabric; Return: 0 or -ENOMEM */
must_check int hooks_push(struct rr_fabric *fabric, const struct rr_filters *self);

/** faults_of - returns the faults of a fabric, from now on; chaos and windows cannot be changed here
 *
 * Puts the filter in front of it if necessary. Change them only while the fabric's thread is not inside.
 */
struct hooks *faults_of(struct rr_fabric *fabric);

/** chaos_push - executes requests late and out of order, where that is legal, unless the fabric does so already
 *
 * Return: 0 or -ENOMEM.
 */
must_check int chaos_push(struct rr_fabric *fabric, uint64_t seed);

/** pins_push - makes registrations of the local fabric keep their pages; Return: 0 or -ENOMEM */
must_check int pins_push(struct rr_fabric *fabric);

#endif
