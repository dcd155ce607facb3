/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * credit.h - limits the calls in flight (RFC 8166 section 3.3.1)
 *
 * Requester: after each connect one call until the first reply, then min(wanted, last grant). A lower grant
 * applies at once; calls in flight are simply not replaced. Responder: never grants more than its posted
 * receives, and never 0.
 * Pure: no lock, no I/O; owned by the endpoint's thread.
 */
#ifndef RR_CREDIT_H
#define RR_CREDIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/util.h"

struct rr_credit {
	uint32_t wanted;      /* requested in each call; also our own upper bound */
	uint32_t limit;       /* in force */
	uint32_t out;         /* calls in flight */
	uint32_t *all_out;    /* the same, of all requesters of an engine */
	uint32_t low_water;   /* smallest limit seen since the connect */
	uint64_t starved;     /* times a call had to wait for a credit */
};

/** rr_credit_init - initializes without history
 * @wanted: credits to request in each call; 0 counts as 1, because the field must not be 0 on the wire
 * @all_out: counts the calls in flight of several requesters; must outlive the last one of @c
 */
void rr_credit_init(struct rr_credit *c, uint32_t wanted, uint32_t *all_out);

/** rr_credit_connected - resets for a new connection: no calls in flight, one credit (protocol.md 2.1)
 *
 * Keeps starved. The single credit before the first reply does not count for low_water, which would always be 1. */
void rr_credit_connected(struct rr_credit *c);

/** rr_credit_take - takes a credit for one more call. Returns false, and counts it in starved, if none is left. */
bool rr_credit_take(struct rr_credit *c);

/** rr_credit_return - ends a call in flight for which no grant came */
void rr_credit_return(struct rr_credit *c);

/** rr_credit_lost - ends all calls in flight: their connection is gone */
void rr_credit_lost(struct rr_credit *c);

/** rr_credit_replied - ends a call in flight after its reply or error arrived with grant @granted
 *
 * 0 is forbidden and read as 1; a grant is capped at wanted. When the limit falls below the calls in flight, they
 * continue; rr_credit_take() fails until enough replies arrived. */
void rr_credit_replied(struct rr_credit *c, uint32_t granted);

/** rr_credit_grant - returns the grant for a reply, at the responder
 * @asked: the call's credit field; @posted: receives posted now, including that of the call being replied to;
 * @cap: configured maximum
 *
 * Return: the smallest of the three, never 0.
 */
uint32_t rr_credit_grant(uint32_t asked, uint32_t posted, uint32_t cap);

/* The responder's credit account of one connection. Replies arrive in the order of sending, and each one
 * replaces the grant before it. After the q-th reply, a requester has sent at most q + its grant calls since
 * the connect. Whichever replies it has seen, its calls stay within the largest of these sums. */
struct rr_credit_account {
	uint64_t calls;     /* received */
	uint64_t replies;   /* sent */
	uint64_t horizon;   /* upper bound of the calls since the connect */
};

/** rr_credit_account_init - starts the account of a new connection
 * @first: calls accepted before the first reply */
void rr_credit_account_init(struct rr_credit_account *a, uint32_t first);

/** rr_credit_account_call - counts a received call; Return: false: it exceeds the grants by more than @slack */
must_check bool rr_credit_account_call(struct rr_credit_account *a, uint32_t slack);

/** rr_credit_account_reply - counts a reply that carries @grant
 * @counted: it replies to a call that rr_credit_account_call() counted; false: it may not belong to any call */
void rr_credit_account_reply(struct rr_credit_account *a, uint32_t grant, bool counted);

/** rr_credit_account_due - returns the calls that may still arrive: the receives needed, whatever the next
 * grant is */
uint64_t rr_credit_account_due(const struct rr_credit_account *a);

/** rr_credit_account_room - returns the largest grant of the next reply
 * @posted: receives for calls that may arrive, including that of the call being replied to */
uint32_t rr_credit_account_room(const struct rr_credit_account *a, uint32_t posted);

#endif
