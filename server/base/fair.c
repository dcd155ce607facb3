/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fair.c - a queue that is fair between clients, and inside a client between its flows
 *
 * Operation, memory, threads, errors: fair.h
 */
#include "fair.h"

#include <stddef.h>

void fair_init(struct fair *q)
{
	list_init(&q->ring);
}

void fair_client_init(struct fair_client *c)
{
	list_init(&c->link);
	list_init(&c->ring);
}

void fair_flow_init(struct fair_flow *f, struct fair_client *c)
{
	list_init(&f->link);
	list_init(&f->items);
	f->client = c;
}

void fair_push(struct fair *q, struct fair_flow *f, struct list *item)
{
	list_add_tail(&f->items, item);
	if (!list_is_linked(&f->link))
		list_add_tail(&f->client->ring, &f->link);
	if (!list_is_linked(&f->client->link))
		list_add_tail(&q->ring, &f->client->link);
}

/* Unlinks a flow without items, and its client if that was its only one. */
static void drop_if_empty(struct fair_flow *f)
{
	if (!list_is_empty(&f->items))
		return;
	list_del(&f->link);
	if (list_is_empty(&f->client->ring))
		list_del(&f->client->link);
}

void fair_del(struct fair_flow *f, struct list *item)
{
	list_del(item);
	drop_if_empty(f);
}

/* Return: the first flow of @c that may have a turn, or NULL */
static struct fair_flow *next_flow(const struct fair_client *c, const struct fair_limits *limits)
{
	list_for_each(n, &c->ring) {
		struct fair_flow *f = list_entry(n, struct fair_flow, link);

		if (!limits->flow || limits->flow(f))
			return f;
	}
	return NULL;
}

/* After its turn an entry moves to the end of the ring. */
static void rotate(struct list *ring, struct list *link)
{
	list_del(link);
	list_add_tail(ring, link);
}

/* Return: the flow that has the next turn, or NULL */
static struct fair_flow *next(const struct fair *q, const struct fair_limits *limits)
{
	list_for_each(n, &q->ring) {
		struct fair_client *c = list_entry(n, struct fair_client, link);
		struct fair_flow *f = !limits->client || limits->client(c) ? next_flow(c, limits) : NULL;

		if (f)
			return f;
	}
	return NULL;
}

bool fair_has(const struct fair *q, const struct fair_limits *limits)
{
	return next(q, limits) != NULL;
}

struct list *fair_pop(struct fair *q, const struct fair_limits *limits)
{
	struct fair_flow *f = next(q, limits);
	struct list *item;

	if (!f)
		return NULL;
	item = list_pop(&f->items);
	rotate(&f->client->ring, &f->link);
	rotate(&q->ring, &f->client->link);
	drop_if_empty(f);
	return item;
}
