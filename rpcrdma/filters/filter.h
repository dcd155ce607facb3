/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * filter.h - interposers in front of a fabric
 *
 * Operation:  A filter replaces a fabric's table of operations by a copy of it in which some members are its own.
 *             These call the table that it found, `next`. So filters stack, an operation that no filter changes
 *             goes straight to the fabric, and without a filter the table is the fabric's own. The objects stay
 *             the fabric's. What a filter keeps for a queue pair or a completion queue hangs on a list there
 *             (struct rr_filter_state).
 *             From the fabric upwards the order is: those that the fabric is opened with (struct rr_filters; only tests
 *             do so), capture, cost.
 * Memory:     The fabric owns its filters: close frees them.
 * Threads:    As the operations. Push a filter before the first queue pair exists, or while no thread is inside.
 * Errors:     A filter that runs out of memory fails the operation as the fabric would, except where it says so.
 */
#ifndef RR_FILTER_H
#define RR_FILTER_H

#include "fabric.h"
#include "rpcrdma.h"
#include "rpcrdma_lab.h"

struct rr_filter {
	struct rr_fabric_ops ops;         /* what is called instead of *next */
	const struct rr_fabric_ops *next; /* what this filter stands in front of */
	struct rr_filter *below;
	const char *name;
	void (*free)(struct rr_filter *filter); /* after the fabric's last object is gone, before it closes */
};

/* A filter's part of a queue pair or completion queue. */
struct rr_filter_state {
	struct rr_filter_state *next;
	const struct rr_filter *filter;
};

/** rr_filter_push - puts @filter in front of @fabric
 * @filter: `name` and `free` are set; the fabric owns it. Set its members of `ops` after the return
 */
void rr_filter_push(struct rr_fabric *fabric, struct rr_filter *filter);

/** rr_filter_find - returns the filter called @name (by address) in front of @fabric, or NULL */
struct rr_filter *rr_filter_find(const struct rr_fabric *fabric, const char *name);

/** rr_filter_state - returns what @filter keeps in @states, or NULL */
struct rr_filter_state *rr_filter_state(struct rr_filter_state *states, const struct rr_filter *filter);

/** rr_filter_keep - adds @filter's @state to @states */
void rr_filter_keep(struct rr_filter_state **states, const struct rr_filter *filter, struct rr_filter_state *state);

/** rr_filter_forget - removes and returns what @filter keeps in @states, or NULL */
struct rr_filter_state *rr_filter_forget(struct rr_filter_state **states, const struct rr_filter *filter);

/** rr_cost_push - makes registrations take @cost longer; without a cost it does nothing; Return: 0 or -ENOMEM */
must_check int rr_cost_push(struct rr_fabric *fabric, const struct rpcrdma_reg_cost *cost);

/** rr_capture_push - writes what passes through the fabric to a pcap file (capture.h)
 *
 * Return: 0, -ENOMEM, or the errno of creating the file.
 */
must_check int rr_capture_push(struct rr_fabric *fabric, const char *path);

#endif
