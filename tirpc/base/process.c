/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * process.c - the domain that all handles of a process share
 *
 * Operation:  The first handle creates it. A child of fork() creates its own: memory, devices and sockets of the
 *             parent's belong to the parent, and so the child leaves that domain as it is.
 * Memory:     The domain is never destroyed: a program may free its memory, and its handles, at any time.
 * Threads:    Any.
 * Errors:     A failure is not remembered: the next call tries again.
 */
#include <pthread.h>
#include <unistd.h>

#include "base/util.h"
#include "process.h"
#include "rpcrdma_mem.h"
#include "rpcrdma_tirpc.h"

/* Enough for calls of RPCRDMA_CALL_BYTES_MAX (rpcrdma_domain_attr). Nothing of it is allocated before it is needed. */
#define POOL_BYTES ((size_t)320 << 20)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct rpcrdma_domain *domain; /* of ... */
static pid_t owner;
static unsigned forks;                /* changes while a process has one thread */
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
	forks++;
	unlock_it();
}

unsigned rt_forks(void)
{
	return forks;
}

/* A child must not inherit the lock of a thread that it does not have. */
static void watch_forks(void)
{
	pthread_atfork(lock_it, unlock_it, begin_child);
}

int rt_domain(size_t mem_bytes, struct rpcrdma_domain **ret)
{
	const struct rpcrdma_domain_attr attr = {
		.size = sizeof(attr), .msg_bytes_max = mem_bytes ? mem_bytes : RT_MEM_BYTES,
		.call_bytes_max = RPCRDMA_CALL_BYTES_MAX, .pool_bytes_max = POOL_BYTES,
	};
	pid_t self = getpid();
	int rc = 0;

	pthread_once(&once, watch_forks);
	lock_it();
	if (owner != self) {
		rc = rpcrdma_domain_create(&attr, &domain);
		owner = rc ? 0 : self;
	}
	if (!rc)
		*ret = domain;
	unlock_it();
	return rc;
}

struct rpcrdma_domain *rpcrdma_tirpc_domain(void)
{
	struct rpcrdma_domain *d;

	return rt_domain(0, &d) ? NULL : d;
}
