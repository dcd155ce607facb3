/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * cl_calls.c - the calls of a CLIENT, which are recycled
 *
 * Memory:     A call is allocated if no other is idle. All are freed with the handle.
 * Threads:    Any.
 */
#include <stdlib.h>

#include "cl_int.h"

struct rt_call *rt_cl_get(struct rt_handle *h)
{
	struct list *node;
	struct rt_call *c;

	pthread_mutex_lock(&h->lock);
	h->users++;
	node = list_pop(&h->idle);
	pthread_mutex_unlock(&h->lock);
	c = node ? list_entry(node, struct rt_call, link) : calloc(1, sizeof(*c) + h->inline_bytes + rt_small_bytes(h));
	if (c) {
		c->handle = h;
		c->refs = 1;
		c->batched = c->flushes = false;
		c->row = NULL;
		c->sink = (struct iovec){ 0 };
		c->preset = NULL;
		c->goal = RT_CALL_DONE;
		list_init(&c->link);
		list_init(&c->in_batch);
		return c;
	}
	pthread_mutex_lock(&h->lock);
	if (!--h->users)
		pthread_cond_broadcast(&h->unused);
	pthread_mutex_unlock(&h->lock);
	return NULL;
}

void rt_cl_hold(struct rt_call *c)
{
	atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
}

/* Return: true: the call had another reference */
static bool release(struct rt_call *c)
{
	if (atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) > 1)
		return true;
	rt_cl_args_free(c);
	rt_mem_put(c->mem);
	c->mem = NULL;
	return false;
}

void rt_cl_drop(struct rt_call *c)
{
	struct rt_handle *h = c->handle;

	if (release(c))
		return;
	pthread_mutex_lock(&h->lock);
	list_add_head(&h->idle, &c->link);
	pthread_mutex_unlock(&h->lock);
}

void rt_cl_put(struct rt_call *c)
{
	struct rt_handle *h = c->handle;
	bool is_idle = !release(c);

	pthread_mutex_lock(&h->lock);
	if (is_idle)
		list_add_head(&h->idle, &c->link);
	if (!--h->users)
		pthread_cond_broadcast(&h->unused);
	pthread_mutex_unlock(&h->lock);
}

void rt_cl_free_idle(struct rt_handle *h)
{
	struct list *node;

	while ((node = list_pop(&h->idle)))
		free(list_entry(node, struct rt_call, link));
}
