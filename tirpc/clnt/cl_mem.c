/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * cl_mem.c - memory that peers access for calls of all CLIENTs of a process: bounded, and registered once
 *
 * Operation:  A segment is memory of rpcrdma_mem_alloc(). A segment that is returned is kept, and serves the next call
 *             to the same server that needs as much, but at most twice as much as that call needs. A server keeps access
 *             to what it has got (over the local fabric even after the connection), so no call to another one uses it.
 *             Kept segments are freed, oldest first, when others need their share of the limit.
 *
 *             A call may have a segment for its arguments and one for its results. It waits only for the second, and gives
 *             the first back before (rt_cl_args_to_heap()): a call that waits holds nothing. Calls wait in order: a small
 *             one does not overtake a large one, which would starve.
 * Memory:     The limit counts bytes of messages: segments are larger by RT_MEM_HEAD and the rest of a page.
 *             The kept segments stay with the process, as its domain does. A child of fork() starts with none: the memory
 *             is shared with the parent, whose peers write to it.
 * Threads:    One lock. Memory is allocated and freed without it.
 * Errors:     Shortage is a wait.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/cond.h"
#include "cl_mem.h"
#include "process.h"
#include "rpcrdma_mem.h"
#include "rpcrdma_tirpc.h"

struct waiter {
	struct list link;
	size_t bytes;
	bool granted;
	pthread_cond_t cond;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct list kept = LIST_INIT(kept);       /* last returned first */
static struct list waiters = LIST_INIT(waiters);
static struct rpcrdma_tirpc_stats stats;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void lock_it(void)
{
	pthread_mutex_lock(&lock);
}

static void unlock_it(void)
{
	pthread_mutex_unlock(&lock);
}

static void begin_child(void)
{
	list_init(&kept);
	list_init(&waiters);
	stats = (struct rpcrdma_tirpc_stats){ .mem_limit = stats.mem_limit };
	pthread_mutex_unlock(&lock);
}

static void watch_forks(void)
{
	pthread_atfork(lock_it, unlock_it, begin_child);
}

static size_t segment_bytes(size_t bytes)
{
	return round_up_pow2(bytes + RT_MEM_HEAD, bytes < 65536 ? 4096 : 65536);
}

static void grant(void)
{
	while (!list_is_empty(&waiters)) {
		struct waiter *w = list_first_entry(&waiters, struct waiter, link);

		if (stats.mem_used + w->bytes > stats.mem_limit)
			return;
		list_del(&w->link);
		stats.mem_used += w->bytes;
		w->granted = true;
		pthread_cond_signal(&w->cond);
	}
}

void rt_mem_limit(size_t bytes, size_t least)
{
	pthread_once(&once, watch_forks);
	pthread_mutex_lock(&lock);
	stats.mem_limit = MAX(stats.mem_limit, (uint64_t)MAX(bytes, least));
	grant();
	pthread_mutex_unlock(&lock);
}

/* Waits behind the others. Return: 0, -ETIMEDOUT, -ENOMEM */
static int wait_turn(size_t bytes, uint64_t until_ns)
{
	struct waiter w = { .bytes = bytes };
	bool in_time = true;

	if (cond_init(&w.cond))
		return -ENOMEM;
	stats.mem_waits++;
	list_add_tail(&waiters, &w.link);
	while (!w.granted && in_time) {
		if (until_ns == UINT64_MAX)
			pthread_cond_wait(&w.cond, &lock);
		else
			in_time = cond_wait_until(&w.cond, &lock, until_ns);
	}
	if (!w.granted) {
		list_del(&w.link);
		grant(); /* the next one may need less */
	}
	pthread_cond_destroy(&w.cond);
	return w.granted ? 0 : -ETIMEDOUT;
}

static bool is_same_server(const struct rpcrdma_addr *a, const struct rpcrdma_addr *b)
{
	return a->transport == b->transport && a->port == b->port && !strcmp(a->host, b->host);
}

static struct rt_mem *find_kept(size_t bytes, const struct rpcrdma_addr *server)
{
	list_for_each(node, &kept) {
		struct rt_mem *m = list_entry(node, struct rt_mem, link);

		if (m->bytes >= bytes && m->bytes / 2 <= bytes && is_same_server(&m->server, server)) {
			list_del(&m->link);
			return m;
		}
	}
	return NULL;
}

/* Takes kept segments out, oldest first, until @bytes more may be allocated. */
static void evict(size_t bytes, struct list *ret)
{
	while (!list_is_empty(&kept) && stats.mem_pinned + bytes > stats.mem_limit) {
		struct rt_mem *m = list_entry(kept.prev, struct rt_mem, link);

		list_del(&m->link);
		list_add_tail(ret, &m->link);
		stats.mem_pinned -= m->bytes;
	}
}

static void free_segment(struct rt_mem *m)
{
	struct rpcrdma_domain *d;

	if (m->addr && !rt_domain(0, &d))
		rpcrdma_mem_free(d, m->addr);
	free(m);
}

static struct rt_mem *alloc_segment(size_t bytes)
{
	struct rt_mem *m = calloc(1, sizeof(*m));
	struct rpcrdma_domain *d;

	if (!m)
		return NULL;
	m->bytes = bytes;
	list_init(&m->link);
	if (!rt_domain(0, &d) && !rpcrdma_mem_alloc(d, bytes, &m->addr))
		return m;
	free(m);
	return NULL;
}

int rt_mem_get(size_t bytes, const struct rpcrdma_addr *server, uint64_t until_ns, struct rt_mem **ret)
{
	size_t whole = segment_bytes(bytes);
	struct list old = LIST_INIT(old), *node;
	struct rt_mem *m = NULL;
	int rc = 0;

	pthread_mutex_lock(&lock);
	if (bytes > stats.mem_limit)
		rc = -EMSGSIZE;
	else if (!list_is_empty(&waiters) || stats.mem_used + bytes > stats.mem_limit)
		rc = until_ns ? wait_turn(bytes, until_ns) : -ETIMEDOUT;
	else
		stats.mem_used += bytes;
	if (!rc) {
		m = find_kept(whole, server);
		if (!m) {
			evict(whole, &old);
			stats.mem_pinned += whole;
		}
	}
	pthread_mutex_unlock(&lock);
	if (rc)
		return rc;
	while ((node = list_pop(&old)))
		free_segment(list_entry(node, struct rt_mem, link));
	if (!m)
		m = alloc_segment(whole);
	if (m) {
		m->charged = bytes;
		m->server = *server;
		*ret = m;
		return 0;
	}
	pthread_mutex_lock(&lock);
	stats.mem_pinned -= whole;
	stats.mem_used -= bytes;
	grant();
	pthread_mutex_unlock(&lock);
	return -ENOMEM;
}

void rt_mem_put(struct rt_mem *m)
{
	if (!m)
		return;
	pthread_mutex_lock(&lock);
	stats.mem_used -= m->charged;
	list_add_head(&kept, &m->link);
	grant();
	pthread_mutex_unlock(&lock);
}

bool rt_mem_is_short(void)
{
	bool is_short;

	pthread_mutex_lock(&lock);
	is_short = !list_is_empty(&waiters);
	pthread_mutex_unlock(&lock);
	return is_short;
}

void rt_mem_count_too_long(void)
{
	pthread_mutex_lock(&lock);
	stats.results_too_long++;
	pthread_mutex_unlock(&lock);
}

void rpcrdma_tirpc_stats_sized(struct rpcrdma_tirpc_stats *ret, size_t bytes)
{
	struct rpcrdma_tirpc_stats now;

	pthread_mutex_lock(&lock);
	now = stats;
	pthread_mutex_unlock(&lock);
	memset(ret, 0, bytes);
	memcpy(ret, &now, MIN(bytes, sizeof(now)));
}
