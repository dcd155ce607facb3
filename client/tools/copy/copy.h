/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * copy.h - copies the content of one file to another, with many requests in flight
 */
#ifndef LEAT_TOOL_COPY_H
#define LEAT_TOOL_COPY_H

#include "fs.h"
#include "progress.h"

struct copier;

/** copier_create - allocates buffers for copies between @from and @to
 * @from, @to: mounts, or NULL for this machine
 * @progress: counts every byte
 *
 * Return: 0 or -ENOMEM.
 */
must_check int copier_create(struct leat *from, struct leat *to, struct progress *progress,
			     struct copier **ret);

/** copier_destroy - NULL is fine */
void copier_destroy(struct copier *c);

/* The side that failed. */
enum copy_side { COPY_FROM, COPY_TO };

enum copy_how { COPY_ORDERED = 1, COPY_SPARSE = 2 };

/** copier_run - copies all of @from to @to; both are open, at position 0, and stay open
 * @size: expected size of @from; it is read to its end in any case
 * @how: COPY_ORDERED: @to is a stream (a pipe, a terminal): write from beginning to end;
 *       COPY_SPARSE: @to is empty: long runs of zeros are not written, and the caller may have to set its size
 * @ret_side: written on failure
 *
 * Return: 0; -errno; -EINTR: interrupted by the user. Nothing is in flight any more, unless the mount itself has
 * failed: then only copier_destroy() may be called.
 */
must_check int copier_run(struct copier *c, const struct fs_file *from, const struct fs_file *to,
			  uint64_t size, unsigned how, enum copy_side *ret_side);

/** copier_in_place - tells the next copier_run() that its first write destroys content of the target
 * @slot: of signals_file_add(), for signals_file_begun()
 */
void copier_in_place(struct copier *c, int slot);

/** copier_has_written - may the last copier_run() have changed the target? */
bool copier_has_written(const struct copier *c);

/** copier_end - number of bytes that the last copier_run() read */
uint64_t copier_end(const struct copier *c);

#endif
