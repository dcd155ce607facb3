/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * store.c - selects the store of a backing, and closes its files
 *
 * Operation: Selection by the backing's options.
 * Memory:    Of the selected store.
 * Threads:   Any.
 * Errors:    Of creating it: data_conf_check() has refused unsupported kinds.
 */
#include "store.h"

#include <unistd.h>

const struct store_ops *store_of(const struct backing *b)
{
	const struct data_conf *d = b->data;

	if (b->store)
		return b->store;
	switch (d->store.kind) {
	case STORE_KIND_FILE:
		break;
	case STORE_KIND_SIM:
	case STORE_KIND_RATE:
		return &store_sim_ops;
	case STORE_KIND_NULL:
		return &store_null_ops;
	}
#ifdef HAVE_AIO
	if (d->read != DATA_READ_CACHED || d->write != DATA_WRITE_CACHED)
		return &store_aio_ops;
#endif
	return &store_cached_ops;
}

int store_make(const struct store_env *env, struct backing *b, struct store **ret)
{
	struct store *s;
	int err = store_create(store_of(b), env, b, &s);

	if (err)
		return err;
	err = store_queue_get(b, &s->queue);
	if (err) {
		store_destroy(s);
		return err;
	}
	*ret = s;
	return 0;
}

void store_close(struct store_file *f)
{
	(void)close(f->fd);
	if (f->direct.state >= STORE_DIRECT_OPEN)
		(void)close(f->direct.fd);
}
