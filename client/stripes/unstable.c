/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * unstable.c - what was written to a file by several sessions, and is not stable
 *
 * Operation:  As split/verfs.h for each stripe, shared by the sessions: a COMMIT of one of them covers the writes of all. A
 *             loss is reported at once, under the lock, and forgotten: a session that finds nothing recorded afterwards knows
 *             that lost() has run.
 * Memory:     The verifiers of all stripes, from the first unstable write on.
 * Threads:    Any; one lock.
 * Errors:     -ENOMEM.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "unstable.h"
#include "verfs.h"

struct leat_volume_unstable {
	pthread_mutex_t lock;
	void (*lost)(void *ctx);
	void *ctx;
	uint32_t width;     /* 0: nothing was written */
	struct lt_verfs *v; /* of each stripe */
};

int leat_volume_unstable_create(void (*lost)(void *ctx), void *ctx, struct leat_volume_unstable **ret)
{
	struct leat_volume_unstable *u = calloc(1, sizeof(*u));

	if (!u)
		return -ENOMEM;
	pthread_mutex_init(&u->lock, NULL);
	u->lost = lost;
	u->ctx = ctx;
	*ret = u;
	return 0;
}

void leat_volume_unstable_free(struct leat_volume_unstable *u)
{
	if (!u)
		return;
	pthread_mutex_destroy(&u->lock);
	free(u->v);
	free(u);
}

static bool has(const struct leat_volume_unstable *u, uint32_t stripe)
{
	return stripe < u->width && (u->v[stripe].n || u->v[stripe].lost);
}

bool leat_volume_unstable_any(struct leat_volume_unstable *u)
{
	bool any = false;

	pthread_mutex_lock(&u->lock);
	for (uint32_t i = 0; i < u->width && !any; i++)
		any = has(u, i);
	pthread_mutex_unlock(&u->lock);
	return any;
}

int lt_unstable_wrote(struct leat_volume_unstable *u, uint32_t width, uint32_t stripe, uint64_t verf)
{
	int rc = 0;

	pthread_mutex_lock(&u->lock);
	if (!u->v) {
		u->v = calloc(width, sizeof(*u->v));
		u->width = u->v ? width : 0;
	}
	if (stripe < u->width)
		lt_verfs_changed(&u->v[stripe], verf);
	else
		rc = -ENOMEM;
	pthread_mutex_unlock(&u->lock);
	return rc;
}

bool lt_unstable_has(struct leat_volume_unstable *u, uint32_t stripe, uint64_t *ret_upto)
{
	bool is;

	pthread_mutex_lock(&u->lock);
	is = has(u, stripe);
	*ret_upto = is ? u->v[stripe].count : 0;
	pthread_mutex_unlock(&u->lock);
	return is;
}

void lt_unstable_synced(struct leat_volume_unstable *u, uint32_t stripe, uint64_t verf, uint64_t upto)
{
	pthread_mutex_lock(&u->lock);
	if (lt_verfs_synced(&u->v[stripe], verf, upto, true)) {
		u->v[stripe].lost = false;
		u->lost(u->ctx);
	}
	pthread_mutex_unlock(&u->lock);
}
