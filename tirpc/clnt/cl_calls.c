/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * cl_calls.c - the calls of a CLIENT, which are recycled
 *
 * Memory:     A call is allocated if no other is idle. All are freed with the handle: a thread that wakes another one up
 *             may still look at its call after that.
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
	if (node)
		return list_entry(node, struct rt_call, link);
	c = calloc(1, sizeof(*c) + h->inline_bytes);
	if (c) {
		c->handle = h;
		list_init(&c->link);
		return c;
	}
	pthread_mutex_lock(&h->lock);
	if (!--h->users)
		pthread_cond_broadcast(&h->unused);
	pthread_mutex_unlock(&h->lock);
	return NULL;
}

void rt_cl_put(struct rt_call *c)
{
	struct rt_handle *h = c->handle;

	rt_enc_fini(&c->enc);
	free(c->room);
	c->room = NULL;
	pthread_mutex_lock(&h->lock);
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
