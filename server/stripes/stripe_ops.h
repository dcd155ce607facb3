/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * stripe_ops.h - operations in progress, each of the era in which it began: an epoch, for the READs and WRITEs of an object;
 * a term, for the commands and WRITEs of managers
 *
 * Operations begin in the era in force, so the list is in the order of their eras: if one of an older era is in progress,
 * the first one is. What waits for those of older eras is resumed when the last of them has ended.
 *
 * An operation may wait for its peer, which need not move the data of a call. So what waits for long closes the connections
 * of older operations: such an operation ends, one at the disk goes on.
 *
 * Threads: any, under the lock of the volume.
 */
#ifndef LEAT_SERVER_STRIPE_OPS_H
#define LEAT_SERVER_STRIPE_OPS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "conn.h"
#include "req.h"

/* In progress; part of its call. */
struct stripe_op {
	struct list link;
	uint64_t era;
	struct conn *conn; /* by which it came: it stays until the operation has ended */
};

struct stripe_ops {
	struct list list; /* struct stripe_op */
	uint64_t era;	  /* of what begins now */
};

static inline void stripe_ops_init(struct stripe_ops *ops)
{
	list_init(&ops->list);
	ops->era = 0;
}

/** stripe_ops_any - is an operation in progress? */
static inline bool stripe_ops_any(const struct stripe_ops *ops)
{
	return !list_is_empty(&ops->list);
}

/** stripe_ops_older - is one of an older era? */
static inline bool stripe_ops_older(const struct stripe_ops *ops)
{
	return stripe_ops_any(ops) && list_first_entry(&ops->list, struct stripe_op, link)->era != ops->era;
}

/** stripe_op_begin - an operation of the era in force begins */
static inline void stripe_op_begin(struct stripe_ops *ops, struct stripe_op *op, struct conn *conn)
{
	op->era = ops->era;
	op->conn = conn;
	list_add_tail(&ops->list, &op->link);
}

/** stripe_op_finish - it has ended; resumes @waiters if no older ones are left */
static inline void stripe_op_finish(struct stripe_ops *ops, struct stripe_op *op, struct list *waiters)
{
	list_del(&op->link);
	if (op->era != ops->era && !stripe_ops_older(ops))
		req_wake(waiters);
}

/** stripe_ops_close - closes the connections of operations of older eras; Return: how many */
static inline unsigned stripe_ops_close(const struct stripe_ops *ops)
{
	unsigned n = 0;

	list_for_each(node, &ops->list) {
		const struct stripe_op *op = list_entry(node, struct stripe_op, link);

		if (op->era == ops->era)
			break;
		n += conn_close(op->conn);
	}
	return n;
}

#endif
