/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * filter.h - interposers in front of a fabric, for tests and measurements
 *
 * Operation:  A filter replaces a fabric's table of operations by a copy of it in which some members are its own.
 *             These call the table that it found, `next`. So filters stack, an operation that no filter changes
 *             goes straight to the fabric, and without a filter the table is the fabric's own. The objects stay
 *             the fabric's. What a filter keeps for a queue pair or a completion queue hangs on a list there
 *             (struct rr_filter_state).
 *             From the fabric upwards the order is: capture, faults, cost, chaos. So a capture has what was
 *             executed, and faults hit what chaos has let through.
 * Memory:     The fabric owns its filters: close frees them.
 * Threads:    As the operations. Push a filter before the first queue pair exists, or while no thread is inside.
 * Errors:     A filter that runs out of memory fails the operation as the fabric would, except where it says so.
 */
#ifndef RR_FILTER_H
#define RR_FILTER_H

#include "fabric.h"
#include "hooks.h"

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

/** rr_filters_add - puts the filters in front of @fabric that @hooks and @capture ask for
 * @capture: a file for rr_capture_push(), or NULL
 *
 * Return: 0, -ENOMEM, or the errno of creating the file; then some may have been added.
 */
must_check int rr_filters_add(struct rr_fabric *fabric, const struct rr_hooks *hooks, const char *capture);

/** rr_cost_push - makes registrations take the time that @hooks say; Return: 0 or -ENOMEM */
must_check int rr_cost_push(struct rr_fabric *fabric, const struct rr_hooks *hooks);

/** rr_faults_push - lets operations fail as @hooks say; Return: 0 or -ENOMEM */
must_check int rr_faults_push(struct rr_fabric *fabric, const struct rr_hooks *hooks);

/** rr_faults_hooks - returns the faults of a fabric, from now on; chaos and cost cannot be changed here
 *
 * Puts the filter in front of it if necessary. Change them only while the fabric's thread is not inside.
 */
struct rr_hooks *rr_faults_hooks(struct rr_fabric *fabric);

/** rr_chaos_push - executes requests late and out of order, where that is legal; Return: 0 or -ENOMEM */
must_check int rr_chaos_push(struct rr_fabric *fabric, uint64_t seed);

/** rr_capture_push - writes what passes through the fabric to a pcap file (capture.h)
 *
 * Return: 0, -ENOMEM, or the errno of creating the file.
 */
must_check int rr_capture_push(struct rr_fabric *fabric, const char *path);

#endif
