/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * reg_dynamic.c - one registration per operation, deregistered at its end
 *
 * Operation:  The baseline for measuring other strategies: expensive, and exact. The peer can access exactly
 *             the offered memory, with the offered right, during the call.
 * Memory:     The segment owns the registration.
 * Threads:    The connection's; deregistration waits for remote accesses in progress.
 * Errors:     As rr_mr_reg().
 */
#include <assert.h>

#include "reg.h"

static int dynamic_get(struct rr_reg *reg, void *addr, size_t len, unsigned access,
		       struct rr_reg_seg *ret)
{
	struct rr_mr_attr attr = { .addr = addr, .len = len, .access = access, .fd = -1 };
	struct rr_mr *mr;
	int rc;

	rc = rr_mr_reg(reg->pd, &attr, &mr);
	if (rc)
		return rc;
	rr_count(reg->engine, regs, 1);
	*ret = (struct rr_reg_seg){
		.ops = &rr_reg_dynamic_ops,
		.mr = mr,
		.seg = { .handle = mr->rkey, .length = (uint32_t)len, .offset = (uintptr_t)addr },
	};
	return 0;
}

static bool dynamic_recall(struct rr_reg *reg, struct rr_reg_seg *rseg)
{
	int rc = rr_mr_dereg(rseg->mr);

	assert(!rc); /* -EBUSY needs a bound window, and that was put before */
	(void)rc;
	rseg->mr = NULL;
	rr_count(reg->engine, deregs, 1);
	return true;
}

/* Not monitored: an unmapping is detected only if the range is still unmapped. */
static bool dynamic_put(struct rr_reg *reg, struct rr_reg_seg *rseg)
{
	const struct iovec iov = { rseg->mr->addr, rseg->mr->len };
	bool is_there = rr_reg_is_there(&iov, 1, iov.iov_len, false);

	(void)dynamic_recall(reg, rseg);
	return is_there;
}

static void dynamic_drop(struct rr_reg *reg, struct rr_reg_seg *rseg)
{
	(void)dynamic_recall(reg, rseg);
}

static void dynamic_revoke(struct rr_reg *reg)
{
	(void)reg; /* no long-lived registrations */
}

const struct rr_reg_ops rr_reg_dynamic_ops = {
	.name = "dynamic",
	.get = dynamic_get,
	.put = dynamic_put,
	.recall = dynamic_recall,
	.drop = dynamic_drop,
	.revoke = dynamic_revoke,
};
