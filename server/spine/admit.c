/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * admit.c - slots of a reactor: which requests are in progress and which wait
 *
 * Operation, memory, threads, errors: admit.h
 */
#include "admit.h"

#include "client.h"
#include "conn.h"
#include "reactor.h"
#include "req.h"

#define LIVE_MAX 1024u /* slots of one reactor: bounds the queues of the workers */

/* A client may hold as many slots as are free. A connection may hold as many as its client can still get. So some
 * slots always stay free for a new client. */
static bool client_may(const struct fair_client *f)
{
	const struct client_admission *a = container_of(f, struct client_admission, waiting);

	return a->live + a->reactor->live < LIVE_MAX;
}

static struct client_admission *admission_of(const struct conn *c)
{
	return container_of(c->admission.client, struct client_admission, waiting);
}

static bool conn_may(const struct fair_flow *f)
{
	const struct conn *c = container_of(f, struct conn, admission);

	return c->live + admission_of(c)->live + c->reactor->live < LIVE_MAX;
}

static const struct fair_limits limits = { .client = client_may, .flow = conn_may };

void admit_now(struct req *r)
{
	r->admitted = true;
	r->reactor->live++;
	r->conn->live++;
	admission_of(r->conn)->live++;
}

void admit_leave(struct req *r)
{
	if (!r->admitted)
		return;
	r->admitted = false;
	r->reactor->live--;
	r->conn->live--;
	admission_of(r->conn)->live--;
}

/* A new request may pass waiting ones: those have used up their share, or no slot is free. */
bool admit_enter(struct req *r)
{
	struct reactor *re = r->reactor;

	if (r->admitted)
		return true;
	if (list_is_linked(&r->link))
		return false;
	if (conn_may(&r->conn->admission)) {
		admit_now(r);
		return true;
	}
	fair_push(&re->admission, &r->conn->admission, &r->link);
	re->nadmission++;
	reactor_count(re, admit_waits);
	if (re->nadmission > atomic_load_explicit(&re->counters.admit_wait_max, memory_order_relaxed))
		atomic_store_explicit(&re->counters.admit_wait_max, re->nadmission,
				      memory_order_relaxed);
	return false;
}

bool admit_cancel(struct req *r)
{
	if (!list_is_linked(&r->link))
		return false;
	fair_del(&r->conn->admission, &r->link);
	r->reactor->nadmission--;
	return true;
}

/* A request that finishes at once frees its slot for the next one. The loop avoids recursion. */
void admit_next(struct reactor *re)
{
	struct list *n;

	if (re->admitting)
		return;
	re->admitting = true;
	while (!fair_is_empty(&re->admission) && (n = fair_pop(&re->admission, &limits)) != NULL) {
		struct req *r = list_entry(n, struct req, link);

		re->nadmission--;
		admit_now(r);
		req_run(r);
	}
	re->admitting = false;
}
