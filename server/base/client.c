/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * client.c - what the server keeps per client: its place in each queue, and the resources that it holds
 *
 * Operation, memory, threads, errors: client.h
 */
#include "client.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

void clients_init(struct clients *all)
{
	pthread_mutex_init(&all->lock, NULL);
	list_init(&all->list);
}

void clients_fini(struct clients *all)
{
	pthread_mutex_destroy(&all->lock);
}

/* A list is enough: it is searched once per connection, and is no longer than the number of connections. */
static struct client *find(const struct clients *all, const struct rpcrdma_client_id *id)
{
	list_for_each(n, &all->list) {
		struct client *c = list_entry(n, struct client, link);

		if (client_id_same(&c->id, id))
			return c;
	}
	return NULL;
}

static struct client *create(struct clients *all, const struct rpcrdma_client_id *id)
{
	struct client *c = calloc(1, sizeof(*c) + all->nreactors * sizeof(c->admission[0]));

	if (!c)
		return NULL;
	c->id = *id;
	c->all = all;
	worker_client_init(&c->workers, all->workers);
	for (unsigned i = 0; i < all->nreactors; i++) {
		c->admission[i].reactor = all->reactors[i];
		fair_client_init(&c->admission[i].waiting);
	}
	list_add_tail(&all->list, &c->link);
	return c;
}

int client_get(struct clients *all, const struct rpcrdma_peer *peer, struct client **ret)
{
	struct rpcrdma_client_id id;
	struct client *c;

	rpcrdma_client_id_of(peer, &id);
	pthread_mutex_lock(&all->lock);
	c = find(all, &id);
	if (!c)
		c = create(all, &id);
	if (c)
		c->refs++;
	pthread_mutex_unlock(&all->lock);
	if (!c)
		return -ENOMEM;
	*ret = c;
	return 0;
}

void client_hold(struct client *c)
{
	pthread_mutex_lock(&c->all->lock);
	c->refs++;
	pthread_mutex_unlock(&c->all->lock);
}

void *client_scratch_get(struct client *c, size_t bytes)
{
	struct clients *all = c->all;
	size_t used, left, mine = atomic_load(&c->scratch);
	void *mem;

	do {
		left = CLIENT_SCRATCH_BYTES - atomic_load(&all->scratch);
		if (bytes > left || mine + bytes > left)
			return NULL;
	} while (!atomic_compare_exchange_weak(&c->scratch, &mine, mine + bytes));
	used = atomic_load(&all->scratch);
	do {
		if (bytes > CLIENT_SCRATCH_BYTES - used) {
			atomic_fetch_sub(&c->scratch, bytes);
			return NULL;
		}
	} while (!atomic_compare_exchange_weak(&all->scratch, &used, used + bytes));
	mem = calloc(1, bytes ? bytes : 1);
	if (!mem) {
		atomic_fetch_sub(&c->scratch, bytes);
		atomic_fetch_sub(&all->scratch, bytes);
	}
	return mem;
}

void client_scratch_put(struct client *c, void *mem, size_t bytes)
{
	if (!mem)
		return;
	free(mem);
	atomic_fetch_sub(&c->scratch, bytes);
	atomic_fetch_sub(&c->all->scratch, bytes);
}

/* One more of @most, if this client may have it. @all: how many all have; @mine: how many it has */
static bool begin(struct client *c, unsigned *all, unsigned *mine, unsigned most)
{
	bool may;

	pthread_mutex_lock(&c->all->lock);
	may = *all + *mine < most;
	*all += may;
	*mine += may;
	pthread_mutex_unlock(&c->all->lock);
	return may;
}

static void end(struct client *c, unsigned *all, unsigned *mine)
{
	pthread_mutex_lock(&c->all->lock);
	--*all;
	--*mine;
	pthread_mutex_unlock(&c->all->lock);
}

bool client_begin_long(struct client *c)
{
	return begin(c, &c->all->long_jobs, &c->long_jobs, MAX(worker_pool_threads(c->all->workers) / 4, 1u));
}

void client_end_long(struct client *c)
{
	end(c, &c->all->long_jobs, &c->long_jobs);
}

bool client_begin_wait(struct client *c)
{
	return begin(c, &c->all->waits, &c->waits, CLIENT_WAITS);
}

void client_end_wait(struct client *c)
{
	end(c, &c->all->waits, &c->waits);
}

void client_put(struct client *c)
{
	struct clients *all;
	bool last;

	if (!c)
		return;
	all = c->all;
	pthread_mutex_lock(&all->lock);
	last = --c->refs == 0;
	if (last)
		list_del(&c->link);
	pthread_mutex_unlock(&all->lock);
	if (!last)
		return;
	worker_client_fini(&c->workers);
	free(c);
}
