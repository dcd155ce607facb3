/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * reg_cost.c - simulates the time that a device and its driver need to register memory
 *
 * Operation:  A busy wait before each registration and after each deregistration: for the operation, and for each
 *             of its pages.
 * Memory:     One allocation per fabric.
 * Threads:    Any.
 * Errors:     As the fabric.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "filter.h"

#define PAGE_BYTES 4096u /* unit of the simulated cost */

struct cost {
	struct rr_filter base;
	struct rpcrdma_reg_cost cost;
};

static const char cost_name[] = "cost of registration";

static struct cost *cost_of(const struct rr_pd *pd)
{
	return container_of(rr_filter_find(pd->fabric, cost_name), struct cost, base);
}

static void charge(uint32_t ns, uint32_t page_ns, const void *addr, size_t len)
{
	uint64_t pages = ((uintptr_t)addr % PAGE_BYTES + len + PAGE_BYTES - 1) / PAGE_BYTES;
	uint64_t end = clock_now_ns() + ns + pages * page_ns;

	if (!ns && !page_ns)
		return;
	while (clock_now_ns() < end)
		;
}

static int cost_reg(struct rr_pd *pd, const struct rr_mr_attr *attr, struct rr_mr **ret)
{
	struct cost *c = cost_of(pd);

	charge(c->cost.reg_ns, c->cost.reg_page_ns, attr->addr, attr->len);
	return c->base.next->mr_reg(pd, attr, ret);
}

static int cost_dereg(struct rr_mr *mr)
{
	struct cost *c = cost_of(mr->pd);
	const void *addr = mr->addr;
	size_t len = mr->len;
	int rc = c->base.next->mr_dereg(mr);

	if (!rc)
		charge(c->cost.dereg_ns, c->cost.dereg_page_ns, addr, len);
	return rc;
}

static void cost_free(struct rr_filter *filter)
{
	free(container_of(filter, struct cost, base));
}

int rr_cost_push(struct rr_fabric *fabric, const struct rpcrdma_reg_cost *cost)
{
	struct cost *c;

	if (!cost->reg_ns && !cost->reg_page_ns && !cost->dereg_ns && !cost->dereg_page_ns)
		return 0;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->base.name = cost_name;
	c->base.free = cost_free;
	c->cost = *cost;
	rr_filter_push(fabric, &c->base);
	c->base.ops.mr_reg = cost_reg;
	c->base.ops.mr_dereg = cost_dereg;
	return 0;
}
