/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume_todo.h - the links in pending/: which files have something to be done on stripe servers, and what
 *
 * What it is follows from the state of the file: see volume_pending.h.
 */
#ifndef LEAT_SERVER_VOLUME_TODO_H
#define LEAT_SERVER_VOLUME_TODO_H

#include <stdbool.h>

#include "base/text.h"
#include "base/util.h"
#include "file_layout.h"
#include "volume_file.h"
#include "volumes.h"

#define VOLUME_OBJECT_TEXT (2 * STRIPE_OBJECT_BYTES + 1)

/** volume_object_text - the name of an object in pending/ and writers/ */
static inline void volume_object_text(const char object[STRIPE_OBJECT_BYTES], char ret[VOLUME_OBJECT_TEXT])
{
	text_put_hex(object, STRIPE_OBJECT_BYTES, ret);
}

/** volume_object_parse - Return: 0; -EINVAL: not the name of an object */
static inline int must_check volume_object_parse(const char *name, char ret[STRIPE_OBJECT_BYTES])
{
	return text_parse_hex(name, STRIPE_OBJECT_BYTES, ret) ? 0 : -EINVAL;
}

/** volume_todo_link - under the lock of the inode: makes the link of a file, durably; there may be one; Return: 0, -errno */
int must_check volume_todo_link(const struct volume_file *f, const struct file_layout *l);

/** volume_todo_is_linked - has the file its link? */
bool volume_todo_is_linked(const struct volume_file *f, const struct file_layout *l);

/** volume_todo_find - what is to be done for a file that has its link
 * @layout: reads its layout: volume_layout_complete() under the lock of the inode, or volume_layout_read()
 * @ret: the layout, unless it is VOLUME_TODO_DAMAGED
 *
 * Return: enum volume_todo; -errno.
 */
int must_check volume_todo_find(const struct volume_file *f, int (*layout)(const struct volume_file *f, struct file_layout *ret),
				struct file_layout *ret);

#endif
