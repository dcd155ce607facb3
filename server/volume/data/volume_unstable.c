/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume_unstable.c - what was written to a file of a volume through the manager, and is not stable, over all reactors
 *
 * Operation: A client may write by one reactor and send its COMMIT to another. So the open files of all reactors share one
 *            record, by the number of the inode, which an open descriptor of each of them keeps from being used again. A
 *            loss changes the write verifier of the file system, as a failed sync does (fsync_batch.h): clients send
 *            again what they have not committed.
 * Memory:    A record for each file that some reactor has open.
 * Threads:   Any; one lock.
 * Errors:    None.
 */
#include "volume_unstable.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/list.h"
#include "fsync_batch.h"
#include "leat_volume.h"

#define CHAINS 256u

struct volume_unstable {
	struct list link;
	uint64_t dev, ino;
	unsigned refs;
	const struct fsync_batch *fsyncs;
	struct leat_volume_unstable *of;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct list chains[CHAINS]; /* initialized with the first file */

static void lose(void *ctx)
{
	const struct volume_unstable *u = ctx;

	fsync_batch_lost(u->fsyncs, u->dev);
}

static struct volume_unstable *find(uint64_t dev, uint64_t ino)
{
	struct list *chain = &chains[ino % CHAINS];

	if (!chain->next)
		list_init(chain);
	list_for_each(n, chain) {
		struct volume_unstable *u = list_entry(n, struct volume_unstable, link);

		if (u->ino == ino && u->dev == dev)
			return u;
	}
	return NULL;
}

static struct volume_unstable *create(uint64_t dev, uint64_t ino, const struct fsync_batch *fsyncs)
{
	struct volume_unstable *u = calloc(1, sizeof(*u));

	if (!u)
		return NULL;
	u->dev = dev;
	u->ino = ino;
	u->fsyncs = fsyncs;
	if (leat_volume_unstable_create(lose, u, &u->of)) {
		free(u);
		return NULL;
	}
	list_add_tail(&chains[ino % CHAINS], &u->link);
	return u;
}

struct volume_unstable *volume_unstable_get(uint64_t dev, uint64_t ino, const struct fsync_batch *fsyncs,
					    struct leat_volume_unstable **ret)
{
	struct volume_unstable *u;

	pthread_mutex_lock(&lock);
	u = find(dev, ino);
	if (!u)
		u = create(dev, ino, fsyncs);
	if (u) {
		u->refs++;
		*ret = u->of;
	}
	pthread_mutex_unlock(&lock);
	return u;
}

void volume_unstable_put(struct volume_unstable *u)
{
	pthread_mutex_lock(&lock);
	if (!--u->refs)
		list_del(&u->link);
	else
		u = NULL;
	pthread_mutex_unlock(&lock);
	if (!u)
		return;
	if (leat_volume_unstable_any(u->of))
		lose(u);
	leat_volume_unstable_free(u->of);
	free(u);
}
