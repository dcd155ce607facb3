/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * cp_pool.h - several files at once
 */
#ifndef LEAT_TOOL_CP_POOL_H
#define LEAT_TOOL_CP_POOL_H

#include "tool.h"

struct cp_pool;

/* Jobs that are waited for together. Zero-initialize. */
struct cp_batch {
	unsigned pending; /* protected by the pool's lock */
	int worst;        /* exit status */
};

struct cp_pool_ops {
	/* creates a worker, on the thread that gives the job; NULL: no more workers */
	void *(*start)(void *ctx);
	/* runs on the worker's thread with the result of start(); frees @job; Return: exit status */
	int (*run)(void *worker, void *job);
	void (*stop)(void *worker);
};

/** cp_pool_create - creates a pool without workers; Return: 0 or -ENOMEM */
must_check int cp_pool_create(const struct cp_pool_ops *ops, void *ctx, struct cp_pool **ret);

/** cp_pool_destroy - nothing may be pending; NULL is fine */
void cp_pool_destroy(struct cp_pool *p);

/** cp_pool_give - has a worker run @job as part of @batch; may wait for room
 *
 * Return: false: there is no worker, and none can be created: @job still belongs to the caller.
 */
bool cp_pool_give(struct cp_pool *p, struct cp_batch *batch, void *job);

/** cp_pool_wait - waits until all of @batch is done; Return: its worst exit status */
int cp_pool_wait(struct cp_pool *p, struct cp_batch *batch);

#endif
