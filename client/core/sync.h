/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * sync.h - the only places of this library that block
 */
#ifndef LT_SYNC_H
#define LT_SYNC_H

#include <pthread.h>

#include "handle.h"

/* One caller waiting for one result. On its stack. */
struct lt_wait {
	struct leat *m;
	struct leat_cb cb;  /* what the asynchronous call is given */
	bool service;       /* another thread will bring the result */
	bool done;
	int64_t result;
	pthread_mutex_t lock;
	pthread_cond_t cond;
};

/** lt_sync_begin - before the asynchronous call
 *
 * Return: 0; -EINVAL: no handle; -EDEADLK: inside a callback, where waiting would be for ever.
 */
must_check int lt_sync_begin(struct lt_wait *w, struct leat *m);

/** lt_sync_end - @rc of the asynchronous call; waits if it is 0. Return: the result. */
int64_t lt_sync_end(struct lt_wait *w, int rc);

/* A call made while mounting, when no thread but ours is there. */
struct lt_rpc {
	struct rpcrdma_call call;
	uint32_t patience_ms; /* 0: the handle's timeo */
	bool done;
	int err;
};

/** lt_sync_rpc - make rpc->call on @c, patient for rpc->patience_ms, and wait for it
 * Return: what done() was told, or why the call could not be started. */
int lt_sync_rpc(struct leat *m, struct rpcrdma_clnt *c, struct lt_rpc *rpc);

/** lt_sync_run - have fn(arg) run on the owner's thread, and wait until it has */
void lt_sync_run(struct leat *m, void (*fn)(struct leat *m, void *arg), void *arg);

/** lt_sync_drain - until nothing is in flight; on the owner's thread */
void lt_sync_drain(struct leat *m);

#endif
