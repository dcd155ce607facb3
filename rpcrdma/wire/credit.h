/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * credit.h - how many calls may be outstanding (RFC 8166 section 3.3.1)
 *
 * Requester: one call until the first reply after each connect, then min(wanted, last grant); a
 * falling grant is followed at once, calls already out are simply not replaced. Responder: never
 * grants more than it has receives posted for, never 0.
 * Pure: no lock, no I/O; owned by the endpoint's thread.
 */
#ifndef RR_CREDIT_H
#define RR_CREDIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/util.h"

struct rr_credit {
	uint32_t wanted;      /* what we ask for; also our own ceiling */
	uint32_t limit;       /* in force */
	uint32_t out;         /* calls sent and not answered */
	uint32_t low_water;   /* smallest limit seen since the connect */
	uint64_t starved;     /* times a call had to wait for a credit */
};

void rr_credit_init(struct rr_credit *c, uint32_t wanted);

/** rr_credit_connected - a new connection: nothing is out, one credit (protocol.md 2.1) */
void rr_credit_connected(struct rr_credit *c);

/** rr_credit_take - may one more call go out? Counts it if so, and the starvation if not. */
bool rr_credit_take(struct rr_credit *c);

/** rr_credit_answered - a reply or an error came for a call that was out, granting @granted
 * (0 is treated as 1) */
void rr_credit_answered(struct rr_credit *c, uint32_t granted);

/** rr_credit_grant - the responder's side: what to put into a reply
 * @asked: the call's credit field; @posted: receives posted now, the one being answered included;
 * @cap: configured maximum
 *
 * Return: 1 .. @cap.
 */
uint32_t rr_credit_grant(uint32_t asked, uint32_t posted, uint32_t cap);

/* The responder's account of one connection: what it has promised, and what came of it. Replies come
 * in the order in which they are sent, and each replaces the grant before it; so after the q-th of them
 * a requester has sent q + its grant calls at most, since the connect. Whatever it knows of by now, it
 * stays within the largest of these sums. */
struct rr_grants {
	uint64_t calls;     /* that came */
	uint64_t answers;   /* that were sent */
	uint64_t horizon;   /* so many calls may come, all in all */
};

/** rr_grants_init - a new connection
 * @first: calls that are borne before the first answer */
void rr_grants_init(struct rr_grants *g, uint32_t first);

/** rr_grants_call - a call came; Return: false: that is over what was granted by more than @slack */
must_check bool rr_grants_call(struct rr_grants *g, uint32_t slack);

/** rr_grants_answer - an answer goes out with @grant
 * @counted: to a call that rr_grants_call() knows of; or to what may have been none */
void rr_grants_answer(struct rr_grants *g, uint32_t grant, bool counted);

/** rr_grants_due - calls that may still come: as many receives are needed, whatever is granted next */
uint64_t rr_grants_due(const struct rr_grants *g);

/** rr_grants_room - the most that the next answer to a call may grant
 * @posted: receives there are for calls that may come, the one being answered included */
uint32_t rr_grants_room(const struct rr_grants *g, uint32_t posted);

#endif
