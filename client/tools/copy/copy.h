/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * copy.h - move the bytes of one file into another, many requests in flight
 */
#ifndef LEAT_TOOL_COPY_H
#define LEAT_TOOL_COPY_H

#include "fs.h"
#include "progress.h"

struct copier;

/** copier_create - buffers for copies between @from and @to
 * @from, @to: mounts, or NULL for this machine
 * @progress: told of every byte
 *
 * Return: 0 or -ENOMEM.
 */
must_check int copier_create(struct leat *from, struct leat *to, struct progress *progress,
			     struct copier **ret);

/** copier_destroy - NULL is fine */
void copier_destroy(struct copier *c);

/* Which side it was that failed. */
enum copy_side { COPY_FROM, COPY_TO };

enum copy_how { COPY_ORDERED = 1, COPY_SPARSE = 2 };

/** copier_run - copy all of @from to @to; both are open, at position 0, and stay open
 * @size: what @from is believed to hold; it is read to its end all the same
 * @how: COPY_ORDERED: @to is a stream (a pipe, a terminal): write from beginning to end;
 *       COPY_SPARSE: @to is empty: long zeros are not written, and its end may have to be set
 * @ret_side: written on failure
 *
 * Return: 0; -errno; -EINTR: the user wanted no more. Nothing is in flight any more, unless the
 * mount itself has failed: then the copier is good for copier_destroy() only.
 */
must_check int copier_run(struct copier *c, const struct fs_file *from, const struct fs_file *to,
			  uint64_t size, unsigned how, enum copy_side *ret_side);

/** copier_in_place - the target of the next copier_run() holds content that is lost as soon as it is written to
 * @slot: of signals_file_add(), for signals_file_begun()
 */
void copier_in_place(struct copier *c, int slot);

/** copier_has_written - has the last copier_run() changed the target, or may it have? */
bool copier_has_written(const struct copier *c);

/** copier_end - how many bytes the last copier_run() read */
uint64_t copier_end(const struct copier *c);

#endif
