/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * block_holders.c - the holders of a volume
 *
 * Operation: The attachments in force are a list in the order of the holders' names, and a table by number. Those that have
 *            ended stay in another list until their last operation has ended, and calls wait for that.
 * Memory:    An attachment is freed when it is fenced and its last operation has ended.
 * Threads:   Any; the volume's lock.
 * Errors:    -
 */
#include "block_holders.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "req.h"

struct block_times block_times = { .silence_ns = 60 * NS_PER_S, .close_ns = 2 * NS_PER_S, .drain_ns = 30 * NS_PER_S };

struct block_attachment *block_attachment_new(void)
{
	struct block_attachment *a = calloc(1, sizeof(*a));

	if (a) {
		list_init(&a->link);
		list_init(&a->waiters);
	}
	return a;
}

struct block_attachment *block_find(const struct block_volume *v, const char *name)
{
	list_for_each(node, &v->holders) {
		struct block_attachment *a = list_entry(node, struct block_attachment, link);

		if (!strcmp(a->name, name))
			return a;
	}
	return NULL;
}

struct block_attachment *block_find_number(const struct block_volume *v, uint64_t number)
{
	struct block_attachment *a = v->by_number[number % BLOCK_HOLDERS_MAX];

	while (a && a->number != number)
		a = a->next;
	return a;
}

struct block_attachment *block_find_ended(const struct block_volume *v, uint64_t generation)
{
	list_for_each(node, &v->ending) {
		struct block_attachment *a = list_entry(node, struct block_attachment, link);

		if (a->generation == generation)
			return a;
	}
	return NULL;
}

void block_add(struct block_volume *v, struct block_attachment *a)
{
	struct list *before = &v->holders; /* the first one behind it, or the head */

	list_for_each(node, &v->holders) {
		if (strcmp(list_entry(node, struct block_attachment, link)->name, a->name) > 0) {
			before = node;
			break;
		}
	}
	list_add_tail(before, &a->link);
	a->next = v->by_number[a->number % BLOCK_HOLDERS_MAX];
	v->by_number[a->number % BLOCK_HOLDERS_MAX] = a;
	v->nholders++;
}

void block_describe_holder(const struct block_attachment *a, struct block_holder_text *text, block_holder *ret)
{
	uint64_t silence_ns = a->conns ? 0 : clock_now_ns() - a->silent_ns;

	memcpy(text->name, a->name, sizeof(a->name));
	memcpy(text->app, a->app, sizeof(a->app));
	memcpy(text->peer, a->peer, sizeof(a->peer));
	*ret = (block_holder){ .name = text->name, .peer = text->peer, .app = text->app, .since = a->since,
			       .conns = a->conns, .silent = (u_int)(silence_ns / NS_PER_S), .rdonly = a->rdonly };
}

bool block_is_silent(const struct block_attachment *a, uint64_t now_ns)
{
	return !a->conns && now_ns - a->silent_ns >= block_times.silence_ns;
}

void block_free_fenced(struct block_volume *v, struct block_attachment *a)
{
	if (!a->fenced)
		return;
	list_del(&a->link);
	free(a);
	req_wake(&v->waiters);
}

void block_fence(struct block_volume *v, struct block_attachment *a)
{
	struct block_attachment **at = &v->by_number[a->number % BLOCK_HOLDERS_MAX];

	while (*at != a)
		at = &(*at)->next;
	*at = a->next;
	a->fenced = true;
	list_del(&a->link);
	v->nholders--;
	list_add_tail(&v->ending, &a->link);
	req_wake(&a->waiters);
	if (!a->live)
		block_free_fenced(v, a);
}

bool block_drained(const struct block_volume *v, const char *name)
{
	list_for_each(node, &v->ending) {
		const struct block_attachment *a = list_entry(node, struct block_attachment, link);

		if (!name || !strcmp(a->name, name))
			return false;
	}
	return true;
}
