/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * mount_table.h - the mounts that clients have reported, for DUMP; no access right depends on it
 */
#ifndef LEAT_SERVER_MOUNT_TABLE_H
#define LEAT_SERVER_MOUNT_TABLE_H

#include "base/util.h"
#include "mount3.h"

#define MOUNT_TABLE_MAX 1024 /* limit: many clients never unmount */

struct mount_table;

/** mount_table_create - creates an empty table; Return: 0, -ENOMEM */
int must_check mount_table_create(struct mount_table **ret);

/** mount_table_destroy - frees a table that is no longer used. NULL is fine. */
void mount_table_destroy(struct mount_table *t);

/** mount_table_add - adds an entry, or renews it; the strings are copied; any thread
 *
 * A full table loses its oldest entry. Without memory nothing is added.
 */
void mount_table_add(struct mount_table *t, const char *host, const char *dir);

/** mount_table_remove - removes an entry of @host; @dir NULL: all of them */
void mount_table_remove(struct mount_table *t, const char *host, const char *dir);

/** mount_table_dump - copies the table into one allocation
 * @get: allocates the memory; called with the table locked
 *
 * Return: NULL if the table is empty, or without memory.
 */
mountlist mount_table_dump(struct mount_table *t, void *(*get)(void *ctx, size_t bytes), void *ctx);

#endif
