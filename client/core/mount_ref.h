/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * mount_ref.h - a counted pointer to a mount, which outlives the mount
 *
 * Objects that the caller may keep after leat_umount() (nodes) point to this structure instead of the mount. After
 * leat_umount() the pointer is NULL.
 */
#ifndef LT_MOUNT_REF_H
#define LT_MOUNT_REF_H

#include <stdatomic.h>
#include <stdlib.h>

#include "base/util.h"

struct leat;

struct lt_mount_ref {
	_Atomic(struct leat *) m;
	atomic_size_t refs;
};

/** lt_mount_ref_create - creates the reference of the mount itself; Return: NULL: no memory */
static inline struct lt_mount_ref *lt_mount_ref_create(struct leat *m)
{
	struct lt_mount_ref *r = malloc(sizeof(*r));

	if (!r)
		return NULL;
	atomic_init(&r->m, m);
	atomic_init(&r->refs, 1);
	return r;
}

/** lt_mount_ref_get, lt_mount_ref_put - count one object that points to @r; any thread */
static inline struct lt_mount_ref *lt_mount_ref_get(struct lt_mount_ref *r)
{
	atomic_fetch_add_explicit(&r->refs, 1, memory_order_relaxed);
	return r;
}

static inline void lt_mount_ref_put(struct lt_mount_ref *r)
{
	if (atomic_fetch_sub_explicit(&r->refs, 1, memory_order_acq_rel) == 1)
		free(r);
}

/** lt_mount_ref_end - the mount ends: drops its own reference; NULL is fine */
static inline void lt_mount_ref_end(struct lt_mount_ref *r)
{
	if (!r)
		return;
	atomic_store(&r->m, NULL);
	lt_mount_ref_put(r);
}

#endif
