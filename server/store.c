/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * store.c - which store an export gets
 *
 * Operation: a choice by options.
 * Memory:    none.
 * Threads:   any.
 * Errors:    none: export_data_check() has refused what there is not.
 */
#include "store.h"

#include "export.h"

/** store_of - see store.h */
const struct store_ops *store_of(const struct export *exp)
{
	const struct export_data *d = &exp->conf.data;

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
