/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * credit.c - limits the calls in flight (RFC 8166 section 3.3.1)
 *
 * Operation:  Requester: rr_credit_connected() at each connect, rr_credit_take() before each call,
 *             rr_credit_replied() with the grant of each reply or RDMA_ERROR that matched a call. Responder:
 *             rr_credit_grant() for each reply. An overrun has no soft failure: the receiver has no buffer
 *             posted and the connection breaks. So the sender keeps the limit.
 *
 *             A responder that lowers a grant has already promised more. The peer may not have seen the new
 *             grant, and calls in flight remain. struct rr_credit_account counts the promises. A receive is
 *             removed only when no call can need it any more.
 * Memory:     None of its own.
 * Threads:    Owned by the endpoint's thread.
 * Errors:     None. Without a credit the call waits.
 * See:        protocol.md section 2.1.
 */
#include <assert.h>

#include "credit.h"

void rr_credit_init(struct rr_credit *c, uint32_t wanted, uint32_t *all_out)
{
	*c = (struct rr_credit){ .wanted = MAX(wanted, 1u), .all_out = all_out };
	rr_credit_connected(c);
}

void rr_credit_connected(struct rr_credit *c)
{
	rr_credit_lost(c);
	c->limit = 1;
	c->low_water = c->wanted;
}

bool rr_credit_take(struct rr_credit *c)
{
	if (c->out >= c->limit) {
		c->starved++;
		return false;
	}
	c->out++;
	++*c->all_out;
	return true;
}

void rr_credit_return(struct rr_credit *c)
{
	assert(c->out > 0);
	c->out--;
	--*c->all_out;
}

void rr_credit_lost(struct rr_credit *c)
{
	*c->all_out -= c->out;
	c->out = 0;
}

void rr_credit_replied(struct rr_credit *c, uint32_t granted)
{
	rr_credit_return(c);
	c->limit = MIN(MAX(granted, 1u), c->wanted);
	c->low_water = MIN(c->low_water, c->limit);
}

uint32_t rr_credit_grant(uint32_t asked, uint32_t posted, uint32_t cap)
{
	uint32_t grant = MIN(asked, MIN(posted, cap));

	return MAX(grant, 1u);
}

void rr_credit_account_init(struct rr_credit_account *a, uint32_t first)
{
	*a = (struct rr_credit_account){ .horizon = first };
}

bool rr_credit_account_call(struct rr_credit_account *a, uint32_t slack)
{
	a->calls++;
	return a->calls <= a->horizon + slack;
}

/* A reply to a message that was not counted as a call is not counted either. Both sums are then short by one,
 * and their difference, which is all that is used, is right. */
void rr_credit_account_reply(struct rr_credit_account *a, uint32_t grant, bool counted)
{
	a->replies += counted;
	a->horizon = MAX(a->horizon, a->replies + grant);
}

uint64_t rr_credit_account_due(const struct rr_credit_account *a)
{
	return a->horizon > a->calls ? a->horizon - a->calls : 0;
}

uint32_t rr_credit_account_room(const struct rr_credit_account *a, uint32_t posted)
{
	uint64_t bearable = a->calls + posted, replies = a->replies + 1;

	return bearable > replies ? (uint32_t)MIN(bearable - replies, (uint64_t)UINT32_MAX) : 0;
}
