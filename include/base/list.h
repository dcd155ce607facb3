/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * list.h - intrusive, circular, doubly linked list
 *
 * Invariants: a head and an unlinked node both point at themselves. So list_del() of an unlinked node does
 *             nothing, and list_is_linked() tells membership. The list never owns its nodes.
 */
#ifndef LEAT_BASE_LIST_H
#define LEAT_BASE_LIST_H

#include <stdbool.h>

#include "base/util.h"

struct list {
	struct list *next, *prev;
};

#define LIST_INIT(name) { &(name), &(name) }

static inline void list_init(struct list *l)
{
	l->next = l->prev = l;
}

static inline bool list_is_empty(const struct list *head)
{
	return head->next == head;
}

static inline bool list_is_linked(const struct list *node)
{
	return node->next != node;
}

static inline void list_insert_between(struct list *node, struct list *prev, struct list *next)
{
	node->prev = prev;
	node->next = next;
	prev->next = node;
	next->prev = node;
}

static inline void list_add_head(struct list *head, struct list *node)
{
	list_insert_between(node, head, head->next);
}

static inline void list_add_tail(struct list *head, struct list *node)
{
	list_insert_between(node, head->prev, head);
}

/** list_del - unlinks @node from its list, if any; it becomes unlinked, not undefined */
static inline void list_del(struct list *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	list_init(node);
}

/** list_splice_tail - moves all nodes from @from to the tail of @head; @from becomes empty */
static inline void list_splice_tail(struct list *head, struct list *from)
{
	if (list_is_empty(from))
		return;
	from->next->prev = head->prev;
	head->prev->next = from->next;
	from->prev->next = head;
	head->prev = from->prev;
	list_init(from);
}

/** list_first - the first node of @head, or NULL */
static inline struct list *list_first(const struct list *head)
{
	return list_is_empty(head) ? NULL : head->next;
}

/** list_pop - unlinks and returns the first node of @head, or NULL */
static inline struct list *list_pop(struct list *head)
{
	struct list *node = list_first(head);

	if (node)
		list_del(node);
	return node;
}

#define list_entry(node, type, member) container_of(node, type, member)
#define list_first_entry(head, type, member)                                                   \
	(list_is_empty(head) ? NULL : list_entry((head)->next, type, member))

#define list_for_each(node, head)                                                              \
	for (struct list *node = (head)->next; node != (head); node = node->next)

/* the body may unlink (and free) the current node */
#define list_for_each_safe(node, head)                                                         \
	for (struct list *node = (head)->next, *node##_next = node->next; node != (head);      \
	     node = node##_next, node##_next = node->next)

#endif
