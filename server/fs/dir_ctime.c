/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * dir_ctime.c - whether a directory's ctime identifies one state for clients
 *
 * Operation, memory, threads, errors: dir_ctime.h
 */
#include "dir_ctime.h"

#include <stdatomic.h>

/* The latest ctime of the directories in a bucket that was sent to a client while its tick may have lasted. Shared by
 * all servers of the process, because they may have the same clients. */
#define TOLD_BUCKETS 4096u
static _Atomic uint64_t told[TOLD_BUCKETS];

uint64_t dir_ctime_ns(const struct statx *stx)
{
	const struct statx_timestamp *t = &stx->stx_ctime;

	if (t->tv_sec < 0 || t->tv_sec > INT64_MAX / (int64_t)NS_PER_S - 1)
		return UINT64_MAX; /* never over */
	return (uint64_t)t->tv_sec * NS_PER_S + t->tv_nsec;
}

/* ---- ctimes sent to clients during their tick ------------------------------------------------ */

void dir_ctime_note(uint64_t dev, uint64_t ino, uint64_t ctime)
{
	_Atomic uint64_t *t = &told[dir_ctime_hash(dev, ino) % TOLD_BUCKETS];
	uint64_t v = atomic_load_explicit(t, memory_order_relaxed);

	while (v < ctime && !atomic_compare_exchange_weak(t, &v, ctime))
		;
}

bool dir_ctime_was_told(uint64_t dev, uint64_t ino, uint64_t ctime)
{
	return atomic_load(&told[dir_ctime_hash(dev, ino) % TOLD_BUCKETS]) >= ctime;
}

/* ---- states with one ctime ------------------------------------------------------------------ */

bool dir_run_allows(const struct dir_run *r, uint64_t client, uint64_t before)
{
	return r->known && r->ctime_ns == before && (!r->client || r->client == client);
}

void dir_run_go_on(struct dir_run *r, uint64_t client, bool changed, uint64_t before,
		   uint64_t after)
{
	bool allowed = dir_run_allows(r, client, before);

	if (!changed)
		r->known &= before == after && r->ctime_ns == before;
	else if (after > before)
		*r = (struct dir_run){ .known = true, .ctime_ns = after };
	else if (after < before) /* the clock was set back */
		r->known = false;
	else
		r->client = allowed ? client : CLIENT_MANY;
}
