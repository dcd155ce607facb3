/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * cp_pool.h - several files at once
 */
#ifndef LEAT_TOOL_CP_POOL_H
#define LEAT_TOOL_CP_POOL_H

#include "tool.h"

struct cp_pool;

/* What belongs together and is waited for together. Zero-initialise. */
struct cp_batch {
	unsigned pending; /* the pool's lock */
	int worst;        /* exit status */
};

struct cp_pool_ops {
	/* of a new worker, on the thread that gives; NULL: there can be no more */
	void *(*start)(void *ctx);
	/* on the worker's thread, with what start() returned; frees @job; Return: exit status */
	int (*run)(void *worker, void *job);
	void (*stop)(void *worker);
};

/** cp_pool_create - none works yet; Return: 0 or -ENOMEM */
must_check int cp_pool_create(const struct cp_pool_ops *ops, void *ctx, struct cp_pool **ret);

/** cp_pool_destroy - nothing may be pending; NULL is fine */
void cp_pool_destroy(struct cp_pool *p);

/** cp_pool_give - have @job run, on its own thread, as one of @batch; may wait for room
 *
 * Return: false: there is no worker, and none can be had: @job is still the caller's.
 */
bool cp_pool_give(struct cp_pool *p, struct cp_batch *batch, void *job);

/** cp_pool_wait - until nothing of @batch is pending; Return: its worst exit status */
int cp_pool_wait(struct cp_pool *p, struct cp_batch *batch);

#endif
