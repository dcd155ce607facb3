/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * store_shared.c - state that the stores of one directory share between reactors
 *
 * Operation: A list of all shared structures of this process. It outlives the backings: a reload creates the new ones
 *            before the old ones are freed, and a structure that both request with the same text is kept.
 * Memory:    A structure belongs to its holders; the last one frees it.
 * Threads:   Any, at the start of a server and when its backings are replaced. One lock; init and fini run under it
 *            too, so that no thread finds a structure that is half initialised.
 * Errors:    Of init, passed on.
 */
#include "store_shared.h"

#include "backing.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>


static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static struct list all = LIST_INIT(all);

static struct store_shared *find(const struct store_shared_kind *kind, const struct backing *b,
				 const char *how)
{
	list_for_each(n, &all) {
		struct store_shared *s = list_entry(n, struct store_shared, link);

		if (s->kind == kind && s->dev == b->dev && s->ino == b->ino &&
		    !strcmp(s->how, how))
			return s;
	}
	return NULL;
}

static int make(const struct store_shared_kind *kind, const struct backing *b, const char *how,
		struct store_shared **ret)
{
	struct store_shared *s = calloc(1, kind->bytes);
	int err;

	if (!s)
		return -ENOMEM;
	s->kind = kind;
	s->dev = b->dev;
	s->ino = b->ino;
	(void)snprintf(s->how, sizeof(s->how), "%s", how);
	err = kind->init(s, b);
	if (err) {
		free(s);
		return err;
	}
	list_add_tail(&all, &s->link);
	*ret = s;
	return 0;
}

int store_shared_get(const struct store_shared_kind *kind, const struct backing *b,
		     const char *how, struct store_shared **ret)
{
	struct store_shared *s;
	int err = 0;

	pthread_mutex_lock(&all_lock);
	s = find(kind, b, how);
	if (!s)
		err = make(kind, b, how, &s);
	if (!err) {
		s->holders++;
		*ret = s;
	}
	pthread_mutex_unlock(&all_lock);
	return err;
}

void store_shared_put(struct store_shared *s)
{
	if (!s)
		return;
	pthread_mutex_lock(&all_lock);
	if (!--s->holders) {
		list_del(&s->link);
		s->kind->fini(s);
		free(s);
	}
	pthread_mutex_unlock(&all_lock);
}

unsigned store_shared_each(const struct store_shared_kind *kind, uint64_t dev, uint64_t ino,
			   void (*fn)(struct store_shared *s, void *ctx), void *ctx)
{
	unsigned n = 0;

	pthread_mutex_lock(&all_lock);
	list_for_each(node, &all) {
		struct store_shared *s = list_entry(node, struct store_shared, link);

		if (s->kind != kind || s->dev != dev || s->ino != ino)
			continue;
		fn(s, ctx);
		n++;
	}
	pthread_mutex_unlock(&all_lock);
	return n;
}
