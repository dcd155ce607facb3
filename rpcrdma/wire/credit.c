/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * credit.c - how many calls may be outstanding (RFC 8166 section 3.3.1)
 *
 * Operation:  Requester: rr_credit_connected() at each connect, rr_credit_take() before each call,
 *             rr_credit_answered() with the grant of each reply or RDMA_ERROR that met a call.
 *             Responder: rr_credit_grant() for each reply. An overrun has no soft failure: the
 *             receiver has no buffer posted and the connection dies, so the limit is kept by the
 *             side that sends.
 *
 *             A responder that grants less than before has promised more than that already: its
 *             peer may not have seen the answer yet, and what is out stays out. struct rr_grants
 *             counts, so that a receive is taken away exactly when nobody can send to it any more.
 * Memory:     None of its own.
 * Threads:    Owned by the endpoint's thread.
 * Errors:     None; no credit is an answer, not an error: the call waits.
 * See:        protocol.md section 2.1.
 */
#include <assert.h>

#include "credit.h"

/** rr_credit_init - set up with no history
 * @c: embedded in an endpoint
 * @wanted: what to ask for in each call; 0 counts as 1, for the field may not be 0 on the wire
 */
void rr_credit_init(struct rr_credit *c, uint32_t wanted)
{
	*c = (struct rr_credit){ .wanted = MAX(wanted, 1u) };
	rr_credit_connected(c);
}

/** rr_credit_connected - forget the calls and the grant of the connection before
 * @c: statistics of starvation are kept, for they belong to the endpoint
 *
 * The single credit in force until the first reply does not count for low_water, or that would
 * say 1 forever.
 */
void rr_credit_connected(struct rr_credit *c)
{
	c->out = 0;
	c->limit = 1;
	c->low_water = c->wanted;
}

/** rr_credit_take - one more call?
 * @c: of the endpoint the call is for
 *
 * Return: true, and it is counted as outstanding; or false, and it has to wait for an answer.
 */
bool rr_credit_take(struct rr_credit *c)
{
	if (c->out >= c->limit) {
		c->starved++;
		return false;
	}
	c->out++;
	return true;
}

/** rr_credit_answered - a call is no longer outstanding; its answer's grant replaces the old one
 * @c: of the endpoint the call was for
 * @granted: from the peer: 0 is forbidden and read as 1, more than wanted is not used
 *
 * When the limit falls below what is out nothing is taken back; rr_credit_take() says no until
 * enough answers came.
 */
void rr_credit_answered(struct rr_credit *c, uint32_t granted)
{
	assert(c->out > 0);
	c->out--;
	c->limit = MIN(MAX(granted, 1u), c->wanted);
	c->low_water = MIN(c->low_water, c->limit);
}

/** rr_credit_grant - what a reply allows its receiver
 * @asked: from the peer
 * @posted: receives that stand ready now, the one being answered included
 * @cap: configured maximum
 *
 * Return: the smallest of the three, never 0.
 */
uint32_t rr_credit_grant(uint32_t asked, uint32_t posted, uint32_t cap)
{
	uint32_t grant = MIN(asked, MIN(posted, cap));

	return MAX(grant, 1u);
}

void rr_grants_init(struct rr_grants *g, uint32_t first)
{
	*g = (struct rr_grants){ .horizon = first };
}

bool rr_grants_call(struct rr_grants *g, uint32_t slack)
{
	g->calls++;
	return g->calls <= g->horizon + slack;
}

/* An answer to what was not counted as a call is not counted either: then both sums are short of one,
 * and their difference, which is all that matters, is right. */
void rr_grants_answer(struct rr_grants *g, uint32_t grant, bool counted)
{
	g->answers += counted;
	g->horizon = MAX(g->horizon, g->answers + grant);
}

uint64_t rr_grants_due(const struct rr_grants *g)
{
	return g->horizon > g->calls ? g->horizon - g->calls : 0;
}

uint32_t rr_grants_room(const struct rr_grants *g, uint32_t posted)
{
	uint64_t bearable = g->calls + posted, answers = g->answers + 1;

	return bearable > answers ? (uint32_t)MIN(bearable - answers, (uint64_t)UINT32_MAX) : 0;
}
