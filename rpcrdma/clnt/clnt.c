/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * clnt.c - a requester's connection: creation, supervision, repair, destruction
 *
 * Operation:  The transports report up and down. Everything in between that depends on time is in on_timer().
 *
 *                 CONNECTING --rr_clnt_up--> UP --rr_clnt_down--> DOWN --on_timer--> CONNECTING
 *                      '-------------------rr_clnt_down------------^
 *
 *             Before the first `up` a failed attempt fails the waiting calls, and the next call triggers the
 *             next attempt. Later the connection is repaired without limit: at once if the lost one had
 *             received a reply, else after a back-off. The back-off doubles, to 64 * backoff_ms at most, with a
 *             jitter of a quarter either way, so that the clients of a restarted server do not reconnect at the
 *             same time.
 *
 *             One connection never retransmits. A call without a reply for timeout_ms breaks the connection,
 *             and the next connection retransmits all sent calls, with the same XIDs (protocol.md 3.3). A call with
 *             no_resend ends with its connection instead, and with a failed attempt to connect: it does not wait
 *             for the back-off.
 * Memory:     One allocation per client, slots separate (clnt_call.c). A client that is destroyed in one of its
 *             own callbacks finishes its calls with -ECANCELED at once, ends the peer's access to their memory,
 *             and is freed at the engine's next poll.
 * Threads:    The engine's. One timer for everything, set to the earliest due time. When that moves later, the
 *             timer is left alone: an early expiry is cheaper than setting the timer per call.
 * Errors:     `why` describes the last problem for messages. The errno of a failed attempt is passed to calls
 *             only before the first connection, and to those with no_resend.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/random.h"
#include "clnt_int.h"
#include "engine_int.h"
#include "reg.h"

#define BACKOFF_DOUBLINGS 6u
#define AWAY_MS 5000u

/* ---- state -------------------------------------------------------------------------------- */

static void set_why(struct rpcrdma_clnt *c, const char *why)
{
	snprintf(c->why, sizeof(c->why), "%s", why);
}

/* @why may be c->why itself. The callback may destroy the client: check `closed` afterwards. */
static void set_state(struct rpcrdma_clnt *c, enum rpcrdma_clnt_state state, const char *why)
{
	c->state = state;
	if (!c->attr.state)
		return;
	c->callbacks++;
	c->attr.state(c->attr.ctx, state, why);
	c->callbacks--;
}

void rr_clnt_timer_set(struct rpcrdma_clnt *c, uint64_t due_ns)
{
	uint64_t now = clock_now_ns();

	c->timer_ns = MAX(due_ns, (uint64_t)1);
	rpcrdma_timer_set(c->engine, &c->timer, due_ns > now ? due_ns - now : 0);
}

void rr_clnt_wanted(struct rpcrdma_clnt *c, bool now)
{
	if (c->state != RPCRDMA_CLNT_DOWN || (c->retry_ns && !now))
		return;
	c->retry_ns = clock_now_ns();
	rr_clnt_due(c, c->retry_ns);
}

uint64_t rr_clnt_jitter(struct rpcrdma_clnt *c, uint64_t ns)
{
	return ns - ns / 4 + random_next(&c->random) % (ns / 2 + 1);
}

void rr_clnt_held_up(struct rpcrdma_clnt *c, const char *why)
{
	c->held_up = why;
	set_why(c, why);
}

/* Returns the wait after c->attempts failed attempts in a row. */
static uint64_t backoff_ns(struct rpcrdma_clnt *c)
{
	if (!c->attempts)
		return 0;
	return rr_clnt_jitter(c, (uint64_t)c->attr.backoff_ms * NS_PER_MS
					 << MIN(c->attempts - 1, BACKOFF_DOUBLINGS));
}

/* The fabric reports a missing socket as refused: it is missing for a moment while a server restarts. */
static const char *connect_why(const struct rpcrdma_clnt *c, int err, char *buf, size_t cap)
{
	const struct rpcrdma_addr *a = &c->dial;
	char url[160];
	bool is_missing;

	if (a->transport != RPCRDMA_LOCAL)
		return strerror(-err);
	is_missing = err == -ECONNREFUSED && access(a->host, F_OK) && errno == ENOENT;
	rpcrdma_addr_print(a, url, sizeof(url));
	snprintf(buf, cap, "%s: %s%s", url, is_missing ? "no such socket: " : "", strerror(-err));
	return buf;
}

static void attempt(struct rpcrdma_clnt *c, uint64_t now_ns)
{
	char why[sizeof(c->why)];
	int rc;

	c->retry_ns = 0;
	c->held_up = NULL;
	if (c->state != RPCRDMA_CLNT_CONNECTING)
		set_state(c, RPCRDMA_CLNT_CONNECTING, c->why);
	if (c->closed)
		return;
	c->connect_ns = now_ns + c->attr.connect_ms * NS_PER_MS;
	rc = rr_lookup_start(c);
	c->resolving = rc > 0;
	if (c->resolving)
		rr_clnt_held_up(c, "its name is not resolved yet");
	else if (!rc)
		rc = c->ops->connect(c);
	if (rc < 0)
		rr_clnt_down(c, rc, connect_why(c, rc, why, sizeof(why)));
	else
		rr_clnt_due(c, c->connect_ns);
}

void rr_clnt_found(struct rpcrdma_clnt *c, int err)
{
	if (!c->resolving) { /* that attempt has timed out; the next one uses the addresses */
		c->found_early = !err;
		return;
	}
	c->resolving = false;
	c->held_up = NULL;
	if (err) {
		rr_clnt_down(c, err, err == -EHOSTUNREACH ? "its name cannot be resolved" : strerror(-err));
		return;
	}
	err = c->ops->connect(c);
	if (err)
		rr_clnt_down(c, err, strerror(-err));
}

void rr_clnt_up(struct rpcrdma_clnt *c)
{
	if (c->closed)
		return;
	assert(c->state == RPCRDMA_CLNT_CONNECTING);
	rr_credit_connected(&c->credit);
	if (c->attr.addr.transport == RPCRDMA_TCP)
		c->credit.limit = c->credit.wanted;
	c->attempts++; /* until a reply shows that it works */
	if (c->ever_up) {
		c->reconnects++;
		rr_count(c->engine, reconnects, 1);
	}
	c->ever_up = true;
	c->held_up = NULL;
	c->down_ns = 0;
	rr_call_connected(c);
	set_state(c, RPCRDMA_CLNT_UP, "connected");
	rr_call_pump(c);
}

void rr_clnt_down(struct rpcrdma_clnt *c, int err, const char *why)
{
	bool was_up = c->state == RPCRDMA_CLNT_UP;

	if (c->closed)
		return;
	assert(err < 0);
	if (c->drop_err)
		err = c->drop_err; /* the core knows the reason, the transport only the end */
	else
		set_why(c, why);
	c->drop_err = 0;
	c->last_err = err;
	c->dropping = false;
	if (!was_up)
		c->attempts++;
	if (!c->down_ns)
		c->down_ns = clock_now_ns();
	/* before the first connection every waiting call fails, below */
	rr_call_requeue(c, c->ever_up && !was_up ? err : 0);
	if (c->ever_up) {
		c->retry_ns = clock_now_ns() + backoff_ns(c);
		rr_clnt_due(c, c->retry_ns);
	}
	set_state(c, RPCRDMA_CLNT_DOWN, c->why);
	if (!c->closed)
		rr_call_end_leaving(c);
	if (!c->ever_up)
		rr_call_fail_waiting(c, err, c->why);
	if (!c->closed && !list_is_empty(&c->waiting))
		rr_clnt_wanted(c, rr_call_wants_now(c));
}

void rr_clnt_drop(struct rpcrdma_clnt *c, int err, const char *why)
{
	if (c->resolving) { /* the transport has not begun */
		c->resolving = false;
		rr_clnt_down(c, err, why);
		return;
	}
	set_why(c, why);
	c->drop_err = err;
	c->dropping = true;
	c->ops->disconnect(c, why);
}

void rpcrdma_clnt_reconnect(struct rpcrdma_clnt *c, const char *why)
{
	if (c->state == RPCRDMA_CLNT_UP && !c->dropping && !c->closed)
		rr_clnt_drop(c, -ECONNABORTED, why);
}

/* ---- time --------------------------------------------------------------------------------- */

static void check_replies(struct rpcrdma_clnt *c, uint64_t now_ns)
{
	struct rr_call *oldest = list_first_entry(&c->sent, struct rr_call, link);
	uint64_t due_ns;
	char why[64];

	if (!oldest || c->dropping)
		return;
	due_ns = oldest->sent_ns + c->attr.timeout_ms * NS_PER_MS;
	if (due_ns > now_ns) {
		rr_clnt_due(c, due_ns);
		return;
	}
	rr_count(c->engine, timeouts, 1);
	snprintf(why, sizeof(why), "no reply for %u ms", c->attr.timeout_ms);
	rr_clnt_drop(c, -ETIMEDOUT, why);
}

static void report_away(struct rpcrdma_clnt *c, bool away, const char *why)
{
	c->away = away;
	c->callbacks++;
	c->attr.away(c->attr.ctx, away, why);
	c->callbacks--;
}

void rr_clnt_report_back(struct rpcrdma_clnt *c)
{
	report_away(c, false, "it replies");
}

/* Returns since when the server owes a reply or a connection; 0: it owes nothing. */
static uint64_t owed_since_ns(const struct rpcrdma_clnt *c)
{
	const struct rr_call *oldest = list_first_entry(&c->sent, struct rr_call, link);

	if (oldest)
		return oldest->sent_ns;
	return list_is_empty(&c->waiting) ? 0 : c->down_ns;
}

static void check_away(struct rpcrdma_clnt *c, uint64_t now_ns)
{
	uint64_t since_ns = owed_since_ns(c), due_ns = since_ns + c->attr.away_ms * NS_PER_MS;

	if (!c->attr.away || c->away || !since_ns)
		return;
	if (due_ns > now_ns)
		rr_clnt_due(c, due_ns);
	else
		report_away(c, true, c->state == RPCRDMA_CLNT_UP ? "it is connected, but does not reply" : c->why);
}

static void check_attempt(struct rpcrdma_clnt *c, uint64_t now_ns)
{
	if (c->dropping)
		return;
	if (c->connect_ns > now_ns) {
		rr_clnt_due(c, c->connect_ns);
		return;
	}
	rr_clnt_drop(c, -ETIMEDOUT, c->held_up ? c->held_up : "connecting took too long");
}

static void check_retry(struct rpcrdma_clnt *c, uint64_t now_ns)
{
	if (c->retry_ns > now_ns)
		rr_clnt_due(c, c->retry_ns);
	else
		attempt(c, now_ns);
}

static void on_timer(struct rpcrdma_timer *t)
{
	struct rpcrdma_clnt *c = container_of(t, struct rpcrdma_clnt, timer);
	uint64_t now_ns = clock_now_ns(), deadline_ns;

	c->timer_ns = 0;
	deadline_ns = rr_call_expire(c, now_ns);
	if (c->closed)
		return;
	if (deadline_ns)
		rr_clnt_due(c, deadline_ns);
	check_away(c, now_ns);
	if (c->retry_ns)
		check_retry(c, now_ns);
	else if (c->state == RPCRDMA_CLNT_UP)
		check_replies(c, now_ns);
	else if (c->state == RPCRDMA_CLNT_CONNECTING)
		check_attempt(c, now_ns);
}

/* ---- life --------------------------------------------------------------------------------- */

static int fill_attr(struct rpcrdma_clnt *c)
{
	struct rpcrdma_clnt_attr *a = &c->attr;
	struct rpcrdma_lab *lab = &c->lab;

	if (!a->inline_bytes)
		a->inline_bytes = 4096;
	if (!a->credits)
		a->credits = 64;
	if (!a->call_bytes_max)
		a->call_bytes_max = RR_CALL_BYTES_MAX;
	if (!a->timeout_ms)
		a->timeout_ms = 60000;
	if (!a->connect_ms)
		a->connect_ms = 10000;
	if (!a->backoff_ms)
		a->backoff_ms = 50;
	if (!a->away_ms)
		a->away_ms = AWAY_MS;
	if (!a->away)
		a->away_ms = a->timeout_ms; /* nothing else is due earlier */
	if (!lab->fast_write_bytes)
		lab->fast_write_bytes = RPCRDMA_FAST_WRITE_MAX;
	if (a->inline_bytes < RR_INLINE_MIN || a->inline_bytes > RR_INLINE_MAX ||
	    a->credits > RPCRDMA_CLNT_CREDITS_MAX || a->call_bytes_max > RPCRDMA_CALL_BYTES_MAX ||
	    rr_reg_check(c->engine->domain, a))
		return -EINVAL;
	if ((lab->modes | RPCRDMA_MODES_ALL) != RPCRDMA_MODES_ALL ||
	    (lab->modes && (lab->no_private_data || a->addr.transport == RPCRDMA_TCP)) ||
	    lab->fast_write_bytes > RPCRDMA_FAST_WRITE_MAX)
		return -EINVAL;
	a->inline_bytes -= a->inline_bytes % 1024; /* private data has this granularity */
	return 0;
}

static int copy_attr(struct rpcrdma_clnt *c, const struct rpcrdma_clnt_attr *attr)
{
	int rc = RR_SIZED_IN(&c->attr, attr, lab);

	if (!rc)
		rc = RR_SIZED_IN(&c->lab, c->attr.lab, local);
	c->attr.lab = &c->lab;
	return rc;
}

static void unmake(struct rpcrdma_clnt *c)
{
	rr_call_fini(c);
	free(c);
}

int rr_clnt_create(struct rpcrdma_engine *e, const struct rpcrdma_clnt_attr *attr,
		   const struct rr_clnt_ops *ops, struct rpcrdma_clnt **ret)
{
	struct rpcrdma_clnt *c = calloc(1, sizeof(*c));
	uint32_t random[2] = { 0 };
	int rc;

	if (!c)
		return -ENOMEM;
	rc = copy_attr(c, attr);
	if (rc) {
		free(c);
		return rc;
	}
	c->engine = e;
	c->dial = c->attr.addr;
	c->ops = ops;
	c->state = RPCRDMA_CLNT_CONNECTING;
	c->timer.fn = on_timer;
	set_why(c, "not connected yet");
	rc = fill_attr(c);
	if (!rc)
		rc = rr_clnt_cred(c);
	if (!rc)
		rc = rr_call_init(c);
	if (!rc && getrandom(random, sizeof(random), 0) != sizeof(random))
		rc = -errno;
	if (!rc)
		rc = ops->init(c);
	if (rc) {
		unmake(c);
		return rc;
	}
	c->next_xid = random[0];
	c->random = random[1];
	c->retry_ns = c->down_ns = clock_now_ns();
	rr_clnt_due(c, c->retry_ns);
	*ret = c;
	return 0;
}

int rpcrdma_clnt_open(struct rpcrdma_engine *e, const struct rpcrdma_clnt_attr *attr,
		      struct rpcrdma_clnt **ret)
{
	switch (attr->addr.transport) {
	case RPCRDMA_TCP:
		return rr_clnt_create(e, attr, &rr_clnt_tcp_ops, ret);
	case RPCRDMA_LOCAL:
	case RPCRDMA_RDMA:
		return rr_clnt_create(e, attr, &rr_clnt_rdma_ops, ret);
	}
	return -EINVAL;
}

static void destroy_later(struct rpcrdma_msg *msg)
{
	struct rpcrdma_clnt *c = container_of(msg, struct rpcrdma_clnt, destroy_later);

	c->ops->fini(c);
	unmake(c);
}

struct rpcrdma_engine *rpcrdma_clnt_engine(const struct rpcrdma_clnt *c)
{
	return c->engine;
}

/* @c: NULL is ignored
 *
 * May be called in one of the client's own callbacks: then poll the engine once more before destroying it.
 * Calls that done() tries to start meanwhile get -ECANCELED. */
void rpcrdma_clnt_destroy(struct rpcrdma_clnt *c)
{
	if (!c || c->closed)
		return;
	rpcrdma_timer_cancel(c->engine, &c->timer);
	rr_lookup_fini(c);
	c->closed = true;
	rr_call_abandon(c, -ECANCELED, "client destroyed");
	if (c->callbacks) {
		c->destroy_later.fn = destroy_later;
		rr_engine_defer(c->engine, &c->destroy_later);
		return;
	}
	destroy_later(&c->destroy_later);
}

void rpcrdma_clnt_info_sized(const struct rpcrdma_clnt *c, struct rpcrdma_clnt_info *ret, size_t bytes)
{
	struct rpcrdma_clnt_info i = {
		.addr = c->attr.addr,
		.state = c->state,
		.credits = c->credit.limit,
		.credits_low = c->credit.low_water,
		.send_inline = c->send_inline,
		.recv_inline = c->recv_inline,
		.remote_inv = c->remote_inv,
		.reconnects = c->reconnects,
		.err = c->last_err,
	};

	c->ops->info(c, &i);
	list_for_each(node, &c->waiting)
		i.unsent++;
	snprintf(i.why, sizeof(i.why), "%.*s", (int)sizeof(i.why) - 1, c->why);
	rr_sized_out(ret, bytes, &i, sizeof(i));
}
