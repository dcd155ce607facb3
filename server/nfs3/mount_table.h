/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * mount_table.h - who said that he mounted what, for DUMP; no right depends on it
 */
#ifndef LEAT_SERVER_MOUNT_TABLE_H
#define LEAT_SERVER_MOUNT_TABLE_H

#include "base/util.h"
#include "mount3.h"

#define MOUNT_TABLE_MAX 1024 /* remembered; clients forget to say goodbye */

struct mount_table;

int must_check mount_table_create(struct mount_table **ret);
void mount_table_destroy(struct mount_table *t);

void mount_table_add(struct mount_table *t, const char *host, const char *dir);

/** mount_table_remove - @dir NULL: all of @host's */
void mount_table_remove(struct mount_table *t, const char *host, const char *dir);

/** mount_table_dump - a copy, in one piece of memory
 * @get: where it is from; called with the table locked
 *
 * Return: NULL if there is none, or no memory.
 */
mountlist mount_table_dump(struct mount_table *t, void *(*get)(void *ctx, size_t bytes), void *ctx);

#endif
