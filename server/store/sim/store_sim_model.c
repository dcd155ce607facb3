/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * store_sim_model.c - computes when a modelled disk or RAID 0 completes a request
 *
 * Operation: A file is distributed over the members in chunks. Each member serves its requests in order of arrival, one
 *            after the other, at its rate. So the completion time of a request is known when it arrives, and never
 *            changes. If its bytes do not follow those of the member's last request, the member needs its latency
 *            first, because other requests have moved the head meanwhile. A request to several members
 *            completes when the last of them does. A request without data costs each of its members the latency,
 *            and leaves the head where its part begins.
 * Memory:    Plain data of the caller.
 * Threads:   The one that holds the caller's lock. The caller passes the time.
 * Errors:    None.
 */
#include "store_sim_model.h"

#include <string.h>

#include "base/clock.h"
#include "base/random.h"
#include "base/util.h"

void sim_model_init(struct sim_model *m, const struct sim_spec *spec)
{
	memset(m, 0, sizeof(*m));
	m->spec = *spec;
	m->chance = spec->seed;
	for (unsigned i = 0; i < SIM_MEMBERS_MAX; i++)
		m->members[i].pos = UINT64_MAX;
}

static uint64_t jitter(struct sim_model *m)
{
	return m->spec.jitter_ns ? random_next(&m->chance) % (m->spec.jitter_ns + 1) : 0;
}

/* Return: true if the head had to move */
static bool seek(struct sim_member *d, const struct sim_request *rq, uint64_t pos)
{
	if (d->dev == rq->dev && d->ino == rq->ino && d->pos == pos)
		return false;
	d->dev = rq->dev;
	d->ino = rq->ino;
	d->pos = pos;
	return true;
}

struct sim_answer sim_model_submit(struct sim_model *m, uint64_t now_ns,
				   const struct sim_request *rq)
{
	const struct sim_spec *spec = &m->spec;
	struct sim_answer a = { .due_ns = now_ns, .fails = ++m->requests == spec->fail };
	uint64_t chunk = rq->off / spec->chunk;
	uint32_t within = (uint32_t)(rq->off % spec->chunk), len;

	for (uint32_t at = 0, n = 0; at < rq->bytes; at += len, n++, chunk++, within = 0) {
		struct sim_member *d = &m->members[chunk % spec->members];
		uint64_t pos = chunk / spec->members * spec->chunk + within;

		len = MIN(rq->bytes - at, spec->chunk - within);
		d->free_ns = MAX(d->free_ns, now_ns);
		if (seek(d, rq, pos)) {
			d->free_ns += spec->latency_ns;
			a.seeks++;
		}
		if (n < spec->members) /* the first chunk of this request on this member */
			d->free_ns += jitter(m);
		if (!rq->no_data) {
			d->free_ns += len * NS_PER_S / spec->rate;
			d->pos = pos + len;
		}
		a.due_ns = MAX(a.due_ns, d->free_ns);
		if (rq->no_data && n + 1 == spec->members)
			break;
	}
	return a;
}

uint64_t sim_model_idle(const struct sim_model *m, uint64_t now_ns)
{
	uint64_t idle = now_ns;

	for (unsigned i = 0; i < m->spec.members; i++)
		idle = MAX(idle, m->members[i].free_ns);
	return idle;
}
