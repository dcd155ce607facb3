/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * clnt_call.c - the requester's calls, from rpcrdma_clnt_call() to done()
 *
 * Operation:  rpcrdma_clnt_call() assigns a slot and an XID and sends the call if no earlier one waits.
 *             Otherwise rr_call_pump() sends it when a credit, a connection or room becomes available.
 *
 *                            pump                        rr_clnt_replied
 *                 WAITING ----------> SENT ------------------------------------> DONE
 *                    |  ^               |  give_up              rr_clnt_stray,    ^
 *                    |  '---------------+-----------> GONE -----------------------'
 *                    |      requeue                             requeue           |
 *                    '-----------------------------------------------------------'
 *                            fail_waiting, give_up, abandon
 *
 *             A sent call that the caller gives up keeps its credit, because the peer's receive is in use until
 *             it has replied: GONE only represents that credit, and the room that a late reply may go to. A call
 *             that is given up while the peer copies to or from its memory is LEAVING: it finishes when the
 *             connection, which is given up too, has ended.
 *             A call with no_resend is LEAVING instead of WAITING when its connection ends. If it starts when that end
 *             is known, it waits for the next connection (for_next).
 * Memory:     Slots are allocated in blocks and recycled. A new block is allocated only when more calls exist
 *             at once than ever before. The caller's struct and all memory it points to belong to the client
 *             from rpcrdma_clnt_call() until done() starts. It is not accessed after that.
 * Threads:    The engine's. done() may start calls, cancel any call of the client, and destroy the client. It
 *             never runs inside rpcrdma_clnt_call(), but inside rpcrdma_clnt_cancel() and
 *             rpcrdma_clnt_destroy(), as documented there.
 * Errors:     A failed send either fails the one call (it does not encode, or is too long) or leaves it at the
 *             head of the queue. A shortage is not an error.
 * See:        clnt_int.h; protocol.md sections 2.1 and 3.3.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "clnt_int.h"
#include "engine_int.h"

#define BLOCK_CALLS 64
#define XID_CHAINS 1024u /* XIDs are consecutive, so chains stay short */
#define QUIET_NS NS_PER_MS /* a connection that has been used since is not checked for its end */

struct call_block {
	struct call_block *next;
	struct rr_call calls[BLOCK_CALLS];
};

static struct rr_call *find_any(const struct rpcrdma_clnt *c, uint32_t xid)
{
	struct hash_node *n = hash_first(&c->by_xid, xid);

	return n ? container_of(n, struct rr_call, node) : NULL;
}

/* ---- slots -------------------------------------------------------------------------------- */

int rr_call_init(struct rpcrdma_clnt *c)
{
	list_init(&c->waiting);
	list_init(&c->failing);
	list_init(&c->sent);
	list_init(&c->leaving);
	list_init(&c->free);
	rr_credit_init(&c->credit, c->attr.credits, &c->engine->awaited);
	return hash_init(&c->by_xid, XID_CHAINS);
}

void rr_call_fini(struct rpcrdma_clnt *c)
{
	struct call_block *block, *next;

	for (block = c->blocks; block; block = next) {
		next = block->next;
		free(block);
	}
	hash_fini(&c->by_xid);
}

static int grow(struct rpcrdma_clnt *c)
{
	struct call_block *block = calloc(1, sizeof(*block));

	if (!block)
		return -ENOMEM;
	block->next = c->blocks;
	c->blocks = block;
	for (int i = 0; i < BLOCK_CALLS; i++) {
		struct rr_call *call = &block->calls[i];

		call->clnt = c;
		call->state = RR_CALL_DONE;
		list_add_tail(&c->free, &call->link);
	}
	return 0;
}

static struct rr_call *slot_get(struct rpcrdma_clnt *c, struct rpcrdma_call *user)
{
	struct list *node;
	struct rr_call *call;

	if (list_is_empty(&c->free) && grow(c))
		return NULL;
	node = list_pop(&c->free);
	call = list_entry(node, struct rr_call, link);
	assert(call->state == RR_CALL_DONE && !call->user && !call->xprt && !call->room);
	while (find_any(c, c->next_xid)) /* a call sent 2^32 calls ago may be still in progress */
		c->next_xid++;
	call->xid = c->next_xid++;
	call->user = user;
	call->room = user->room;
	call->state = RR_CALL_WAITING;
	call->deadline_ns = 0;
	call->for_next = false;
	hash_add(&c->by_xid, &call->node, call->xid);
	user->priv[0] = call;
	user->xid = call->xid;
	user->payload_bytes = 0;
	user->results = NULL;
	user->results_bytes = 0;
	user->why = NULL;
	user->sent = false;
	return call;
}

static void slot_put(struct rr_call *call)
{
	assert(!call->xprt && !call->user && !call->late && !call->room);
	call->state = RR_CALL_DONE;
	hash_del(&call->clnt->by_xid, &call->node);
	list_del(&call->link);
	list_add_head(&call->clnt->free, &call->link);
}

/* ---- the end of a call -------------------------------------------------------------------- */

/* Returns the room of a call to its caller: nothing accesses it any more. */
static void release(struct rr_call *call)
{
	struct rpcrdma_clnt *c = call->clnt;
	struct rpcrdma_room *room = call->room;

	assert(!call->xprt && !call->late);
	call->room = NULL;
	if (!room)
		return;
	c->callbacks++;
	room->released(room);
	c->callbacks--;
}

/* Returns the call to its caller. A slot that is GONE remains without it, and maybe with its room. */
static void finish(struct rr_call *call, int err, const char *why)
{
	struct rpcrdma_clnt *c = call->clnt;
	struct rpcrdma_call *user = call->user;

	assert(!call->xprt);
	call->user = NULL;
	if (!call->late)
		release(call);
	if (call->state != RR_CALL_GONE)
		slot_put(call);
	user->priv[0] = NULL;
	user->why = why;
	if (err)
		user->payload_bytes = 0;
	rr_count(c->engine, replies, 1);
	c->callbacks++;
	user->done(user, err);
	c->callbacks--;
}

/* Finishes @call. Return: false: it is LEAVING and will be finished later */
static bool give_up(struct rr_call *call, int err, const char *why)
{
	struct rpcrdma_clnt *c = call->clnt;

	assert(call->user);
	if (call->state == RR_CALL_SENT) {
		bool unsent = c->ops->cancel(c, call);

		if (call->xprt) {
			call->state = RR_CALL_LEAVING;
			call->deadline_ns = 0;
			call->err = err;
			call->why = why;
			return false;
		}
		if (unsent)
			rr_credit_return(&c->credit);
		else
			call->state = RR_CALL_GONE;
	}
	finish(call, err, why);
	rr_call_pump(c);
	return true;
}

/* Blocks until the peer's copy has ended. */
static void wait_for_memory(struct rpcrdma_clnt *c, struct rr_call *call)
{
	const struct timespec pause = { .tv_nsec = NS_PER_MS };

	for (; call->xprt; (void)c->ops->cancel(c, call))
		(void)nanosleep(&pause, NULL);
}

/* does nothing if @call is done or was never started */
void rpcrdma_clnt_cancel(struct rpcrdma_clnt *c, struct rpcrdma_call *call)
{
	struct rr_call *slot = call->priv[0];

	if (!slot)
		return;
	assert(slot->clnt == c && slot->user == call);
	if (slot->state != RR_CALL_LEAVING && give_up(slot, -ECANCELED, "cancelled"))
		return;
	wait_for_memory(c, slot);
	finish(slot, slot->err, slot->why);
}

void rr_call_fail_waiting(struct rpcrdma_clnt *c, int err, const char *why)
{
	struct rr_call *call;

	/* a separate list, because done() may start calls, cancel these, or destroy the client */
	list_splice_tail(&c->failing, &c->waiting);
	while ((call = list_first_entry(&c->failing, struct rr_call, link)))
		finish(call, err, why);
}

void rr_call_end_leaving(struct rpcrdma_clnt *c)
{
	struct rr_call *call;

	while ((call = list_first_entry(&c->leaving, struct rr_call, link))) {
		if (call->user) {
			finish(call, call->err, call->why);
			continue;
		}
		release(call);
		slot_put(call);
	}
}

void rr_call_abandon(struct rpcrdma_clnt *c, int err, const char *why)
{
	struct rr_call *call;

	list_for_each(node, &c->sent) {
		call = list_entry(node, struct rr_call, link);
		if (call->late) {
			call->xprt = call->late;
			call->late = NULL;
		}
		if (call->xprt && call->state != RR_CALL_LEAVING)
			(void)c->ops->cancel(c, call); /* credits do not matter any more */
	}
	list_for_each(node, &c->sent)
		wait_for_memory(c, list_entry(node, struct rr_call, link));
	rr_call_requeue(c, 0);
	rr_call_end_leaving(c);
	rr_call_fail_waiting(c, err, why);
}

static struct rr_call *first_expired(struct list *calls, uint64_t now_ns, uint64_t *earliest)
{
	list_for_each(node, calls) {
		struct rr_call *call = list_entry(node, struct rr_call, link);

		if (!call->deadline_ns || !call->user)
			continue;
		if (call->deadline_ns <= now_ns)
			return call;
		if (!*earliest || call->deadline_ns < *earliest)
			*earliest = call->deadline_ns;
	}
	return NULL;
}

/* Without a connection it is what keeps it from coming up. */
static const char *why_late(const struct rpcrdma_clnt *c)
{
	if (c->held_up)
		return c->held_up;
	return c->state == RPCRDMA_CLNT_UP || !c->why[0] ? "deadline passed" : c->why;
}

uint64_t rr_call_expire(struct rpcrdma_clnt *c, uint64_t now_ns)
{
	for (;;) {
		uint64_t earliest = 0;
		struct rr_call *call = first_expired(&c->sent, now_ns, &earliest);

		if (!call)
			call = first_expired(&c->waiting, now_ns, &earliest);
		if (!call)
			return earliest;
		/* done() may change both lists: search again from the start */
		/* if it is LEAVING, it has no deadline now */
		(void)give_up(call, -ETIMEDOUT, why_late(c));
	}
}

/* ---- sending ------------------------------------------------------------------------------ */

/* Takes a credit and sends; on failure the call keeps its place, WAITING. */
static int send_one(struct rpcrdma_clnt *c, struct rr_call *call, uint64_t now_ns)
{
	int rc;

	assert(call->state == RR_CALL_WAITING);
	if (!rr_credit_take(&c->credit))
		return -EAGAIN;
	rc = c->ops->send(c, call);
	if (rc) {
		assert(!call->xprt);
		rr_credit_return(&c->credit);
		c->blocked = rc == -ENOBUFS;
		return rc;
	}
	call->state = RR_CALL_SENT;
	call->sent_before = call->user->sent;
	call->user->sent = true;
	call->sent_ns = c->sent_ns = now_ns;
	list_del(&call->link);
	list_add_tail(&c->sent, &call->link);
	rr_clnt_due(c, call->sent_ns + MIN(c->attr.timeout_ms, c->attr.away_ms) * NS_PER_MS);
	return 0;
}

/* If the calls that were given up hold all credits, only the end of the connection returns them. A call with no_resend
 * in flight would be lost by that: its reply or its deadline comes first. */
static void free_credits(struct rpcrdma_clnt *c)
{
	const struct rr_call *first = list_first_entry(&c->waiting, struct rr_call, link);

	if (!first || !first->user->no_resend || c->credit.out < c->credit.limit)
		return;
	list_for_each(node, &c->sent)
		if (list_entry(node, struct rr_call, link)->state != RR_CALL_GONE)
			return;
	list_for_each(node, &c->waiting)
		list_entry(node, struct rr_call, link)->for_next = true;
	rr_clnt_drop(c, -ECONNABORTED, "calls that timed out held all credits");
}

static bool may_send(const struct rpcrdma_clnt *c)
{
	return c->state == RPCRDMA_CLNT_UP && !c->closed && !c->dropping && !c->blocked &&
	       !c->pumping;
}

/* Explains a final error of send(); -EINVAL without a reason of the encoder: the payload's iov. */
static const char *unsendable(const struct rr_call *call, int rc)
{
	if (call->user->why)
		return call->user->why;
	switch (rc) {
	case -EMSGSIZE:
		return "the arguments exceed the maximum of a call";
	case -EINVAL:
		return "the payload of the arguments is longer than its iov";
	case -EFAULT:
		return "memory of the call is not mapped";
	case -ENOMEM:
		return "no memory to send the call";
	}
	return "the call cannot be sent";
}

/* Is the error caused by the call itself, not by the connection? */
static bool is_final(int rc)
{
	return rc && rc != -EAGAIN && rc != -ENOBUFS && rc != -ENOTCONN;
}

void rr_call_pump(struct rpcrdma_clnt *c)
{
	struct rr_call *call;
	int rc = 0;

	while (may_send(c) && (call = list_first_entry(&c->waiting, struct rr_call, link))) {
		c->pumping = true;
		rc = send_one(c, call, clock_now_ns());
		c->pumping = false;
		if (is_final(rc))
			finish(call, rc, unsendable(call, rc));
		else if (rc)
			break;
	}
	if (rc == -EAGAIN)
		free_credits(c);
}

/* The end of the connection is known, or detected now: a call that is not sent again would be lost. */
static bool is_over(struct rpcrdma_clnt *c, uint64_t now_ns)
{
	bool look = list_is_empty(&c->sent) &&
		    (c->attr.addr.transport == RPCRDMA_TCP || now_ns - c->sent_ns > QUIET_NS);

	return c->state == RPCRDMA_CLNT_UP && (c->dropping || c->ops->is_over(c, look));
}

/* Return: false: the sum is larger */
static bool add_up(const struct iovec *iov, int iovcnt, size_t max, size_t *ret_sum)
{
	size_t sum = 0;

	for (int i = 0; i < iovcnt; i++) {
		if (iov[i].iov_len > max - sum)
			return false;
		sum += iov[i].iov_len;
	}
	*ret_sum = sum;
	return true;
}

static int check(const struct rpcrdma_clnt *c, struct rpcrdma_call *user, size_t *ret_ready)
{
	const struct rpcrdma_ready *r = user->ready;
	size_t sum = 0;

	user->why = "the room of the call is smaller than reply_max and RPCRDMA_ROOM_HEAD";
	if (user->room && user->room->bytes < (size_t)user->reply_max + RPCRDMA_ROOM_HEAD)
		return -EINVAL;
	user->why = "reply_max is longer than a Reply chunk can be (4 GiB)";
	if (user->room && user->reply_max > UINT32_MAX - RPCRDMA_ROOM_HEAD)
		return -EINVAL;
	if (!r)
		return 0;
	user->why = "the arguments exceed the maximum of a call";
	if (!add_up(r->iov, r->iovcnt, c->attr.call_bytes_max, ret_ready))
		return -EMSGSIZE;
	user->why = "the payload of the arguments is longer than its iov";
	if (add_up(r->payload, r->payloadcnt, SIZE_MAX, &sum) && sum < r->payload_bytes)
		return -EINVAL;
	user->why = "the ready arguments, or the position of their payload, are no multiple of 4";
	return (*ret_ready | r->payload_at) % 4 || r->payload_at > *ret_ready ? -EINVAL : 0;
}

/* also -ECANCELED on a client that is being destroyed */
int rpcrdma_clnt_call(struct rpcrdma_clnt *c, struct rpcrdma_call *user)
{
	bool first = list_is_empty(&c->waiting);
	struct rr_call *call;
	size_t ready_bytes = 0;
	uint64_t now_ns;
	int rc;

	user->why = "client destroyed";
	if (c->closed)
		return -ECANCELED;
	rc = check(c, user, &ready_bytes);
	if (rc)
		return rc;
	user->why = "no memory for a call";
	call = slot_get(c, user);
	if (!call)
		return -ENOMEM;
	call->ready_bytes = ready_bytes;
	now_ns = clock_now_ns();
	rc = -EAGAIN;
	list_add_tail(&c->waiting, &call->link);
	call->for_next = user->no_resend && is_over(c, now_ns);
	if (first && !call->for_next && may_send(c)) {
		rc = send_one(c, call, now_ns);
		if (is_final(rc)) {
			user->why = unsendable(call, rc);
			call->room = NULL;
			call->user = NULL;
			user->priv[0] = NULL;
			slot_put(call);
			return rc;
		}
	}
	if (rc == -EAGAIN && c->state == RPCRDMA_CLNT_UP && !call->for_next)
		rr_count(c->engine, credit_waits, 1);
	if (user->deadline_ms) {
		call->deadline_ns = now_ns + user->deadline_ms * NS_PER_MS;
		rr_clnt_due(c, call->deadline_ns);
	}
	if (call->state == RR_CALL_WAITING)
		rr_clnt_wanted(c, user->no_resend);
	if (rc == -EAGAIN && first && !call->for_next && may_send(c))
		free_credits(c);
	rr_count(c->engine, calls, 1);
	return 0;
}

void rr_clnt_resume(struct rpcrdma_clnt *c)
{
	c->blocked = false;
	rr_call_pump(c);
}

/* ---- replies ------------------------------------------------------------------------------ */

struct rr_call *rr_clnt_find(struct rpcrdma_clnt *c, uint32_t xid)
{
	struct rr_call *call = find_any(c, xid);

	return call && call->state == RR_CALL_SENT ? call : NULL;
}

struct rr_call *rr_clnt_find_late(struct rpcrdma_clnt *c, uint32_t xid)
{
	struct rr_call *call = find_any(c, xid);

	return call && call->state == RR_CALL_GONE && call->late ? call : NULL;
}

void rr_clnt_let_go(struct rr_call *call)
{
	call->late = NULL;
	release(call);
}

/* Counts the reply to a sent call. TCP has no grants: the limit is the number wanted. */
static void end_in_flight(struct rpcrdma_clnt *c, uint32_t granted)
{
	uint64_t low = c->engine->stats.credits_low;

	c->attempts = 0;
	if (unlikely(c->away))
		rr_clnt_report_back(c);
	c->blocked = false; /* the blocked call may have waited for the end of a call */
	if (c->attr.addr.transport == RPCRDMA_TCP) {
		rr_credit_replied(&c->credit, c->credit.wanted);
		return;
	}
	rr_credit_replied(&c->credit, granted);
	if (!low || c->credit.limit < low)
		rr_count_set(c->engine, credits_low, c->credit.limit);
}

void rr_clnt_replied(struct rpcrdma_clnt *c, struct rr_call *call, int err, const char *why,
		     uint32_t granted)
{
	assert(call->state == RR_CALL_SENT && call->user);
	call->xprt = NULL;
	end_in_flight(c, granted);
	finish(call, err, why);
	rr_call_pump(c);
}

void rr_clnt_stray(struct rpcrdma_clnt *c, uint32_t xid, uint32_t granted)
{
	struct rr_call *call = find_any(c, xid);

	if (!call || call->state != RR_CALL_GONE) {
		rr_count(c->engine, dropped, 1);
		return;
	}
	end_in_flight(c, granted);
	rr_clnt_let_go(call);
	slot_put(call);
	rr_call_pump(c);
}

bool rr_call_wants_now(const struct rpcrdma_clnt *c)
{
	list_for_each(node, &c->waiting)
		if (list_entry(node, struct rr_call, link)->user->no_resend)
			return true;
	return false;
}

void rr_call_connected(struct rpcrdma_clnt *c)
{
	list_for_each(node, &c->waiting)
		list_entry(node, struct rr_call, link)->for_next = false;
}

static void leave(struct rr_call *call, int err)
{
	struct rpcrdma_clnt *c = call->clnt;

	call->state = RR_CALL_LEAVING;
	call->err = err;
	call->why = c->why;
	list_del(&call->link);
	list_add_tail(&c->leaving, &call->link);
}

/* Takes the waiting calls that are not sent over another connection. */
static void leave_waiting(struct rpcrdma_clnt *c, int err)
{
	bool was_up = c->state == RPCRDMA_CLNT_UP;

	list_for_each_safe(node, &c->waiting) {
		struct rr_call *call = list_entry(node, struct rr_call, link);

		if (!call->user->no_resend)
			continue;
		if (err)
			leave(call, err);
		else if (was_up && !call->for_next)
			leave(call, -ENOTCONN);
	}
}

void rr_call_requeue(struct rpcrdma_clnt *c, int err)
{
	struct list again = LIST_INIT(again);

	list_for_each_safe(node, &c->sent) {
		struct rr_call *call = list_entry(node, struct rr_call, link);

		call->xprt = call->late = NULL;
		if (call->state == RR_CALL_GONE && !call->room) {
			slot_put(call);
			continue;
		}
		if (call->state == RR_CALL_GONE)
			call->state = RR_CALL_LEAVING;
		if (call->state == RR_CALL_SENT && call->user->no_resend && !c->closed) {
			leave(call, call->user->sent ? -ECONNRESET : -ENOTCONN);
			continue;
		}
		list_del(&call->link);
		if (call->state == RR_CALL_LEAVING) {
			list_add_tail(&c->leaving, &call->link);
			continue;
		}
		call->state = RR_CALL_WAITING;
		list_add_tail(&again, &call->link);
	}
	if (!c->closed)
		leave_waiting(c, err);
	list_splice_tail(&again, &c->waiting);
	list_splice_tail(&c->waiting, &again);
	rr_credit_lost(&c->credit);
	c->blocked = false;
}
