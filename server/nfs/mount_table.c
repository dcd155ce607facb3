/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * mount_table.c - the mounts that clients have reported (RFC 1813 section 5.2.2)
 *
 * Operation: A list with the newest entry first; at its limit the oldest is dropped.
 * Memory:    One allocation per entry; a dump is one allocation.
 * Threads:   Any; one mutex.
 * Errors:    Without memory a mount is not recorded.
 */
#include "mount_table.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"

struct entry {
	struct list link;
	char *dir; /* after host, in the same memory */
	char host[];
};

struct mount_table {
	pthread_mutex_t lock; /* over the rest */
	struct list entries;
	size_t n;
};

int mount_table_create(struct mount_table **ret)
{
	struct mount_table *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	pthread_mutex_init(&t->lock, NULL);
	list_init(&t->entries);
	*ret = t;
	return 0;
}

static void drop(struct mount_table *t, struct entry *e)
{
	list_del(&e->link);
	t->n--;
	free(e);
}

static void remove_locked(struct mount_table *t, const char *host, const char *dir)
{
	list_for_each_safe(n, &t->entries) {
		struct entry *e = list_entry(n, struct entry, link);

		if (!strcmp(e->host, host) && (!dir || !strcmp(e->dir, dir)))
			drop(t, e);
	}
}

void mount_table_add(struct mount_table *t, const char *host, const char *dir)
{
	size_t host_len = strlen(host), dir_len = strlen(dir);
	struct entry *e = malloc(sizeof(*e) + host_len + dir_len + 2);

	if (!e)
		return;
	memcpy(e->host, host, host_len + 1);
	e->dir = e->host + host_len + 1;
	memcpy(e->dir, dir, dir_len + 1);
	pthread_mutex_lock(&t->lock);
	remove_locked(t, host, dir);
	list_add_head(&t->entries, &e->link);
	if (++t->n > MOUNT_TABLE_MAX)
		drop(t, list_entry(t->entries.prev, struct entry, link));
	pthread_mutex_unlock(&t->lock);
}

void mount_table_remove(struct mount_table *t, const char *host, const char *dir)
{
	pthread_mutex_lock(&t->lock);
	remove_locked(t, host, dir);
	pthread_mutex_unlock(&t->lock);
}

static size_t text_bytes(const struct mount_table *t)
{
	size_t bytes = 0;

	list_for_each(n, &t->entries) {
		const struct entry *e = list_entry(n, struct entry, link);

		bytes += strlen(e->host) + strlen(e->dir) + 2;
	}
	return bytes;
}

static char *copy_text(char **at, const char *text)
{
	size_t n = strlen(text) + 1;
	char *copy = memcpy(*at, text, n);

	*at += n;
	return copy;
}

mountlist mount_table_dump(struct mount_table *t, void *(*get)(void *ctx, size_t bytes), void *ctx)
{
	struct mountbody *nodes;
	size_t i = 0;
	char *text;

	pthread_mutex_lock(&t->lock);
	nodes = get(ctx, t->n * sizeof(*nodes) + text_bytes(t));
	if (nodes) {
		text = (char *)(nodes + t->n);
		list_for_each(n, &t->entries) {
			const struct entry *e = list_entry(n, struct entry, link);

			nodes[i].ml_hostname = copy_text(&text, e->host);
			nodes[i].ml_directory = copy_text(&text, e->dir);
			nodes[i].ml_next = i + 1 < t->n ? &nodes[i + 1] : NULL;
			i++;
		}
	}
	pthread_mutex_unlock(&t->lock);
	return i ? nodes : NULL;
}

void mount_table_destroy(struct mount_table *t)
{
	if (!t)
		return;
	while (t->n)
		drop(t, list_entry(t->entries.next, struct entry, link));
	pthread_mutex_destroy(&t->lock);
	free(t);
}
