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
	switch (exp->conf.data.store.kind) {
	case STORE_KIND_FILE:
		break;
	case STORE_KIND_SIM:
	case STORE_KIND_RATE:
		return &store_sim_ops;
	case STORE_KIND_NULL:
		return &store_null_ops;
	}
	return &store_cached_ops;
}
