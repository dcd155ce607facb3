/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * striped_io.h - reads, writes and commits of files of a striped volume
 */
#ifndef LT_STRIPED_IO_H
#define LT_STRIPED_IO_H

#include "file.h"
#include "lt_bulk.h"
#include "op.h"
#include "striped.h"

/* cause, for leat_error(), of what a striped volume does not do yet */
#define LT_STRIPED_NOT_YET "not yet possible for files of a striped volume"

extern const struct lt_bulk_ops lt_striped_ops; /* of a struct lt_bulk on a struct leat_file */

/** lt_striped_commit - makes stable what was written through the file of @op, and reports it to the manager
 * next(0): both are done; next(-EIO): also if the file has lost data before. The causes of errors are explained.
 */
void lt_striped_commit(struct lt_op *op, lt_op_step next);

/** lt_striped_is_dirty - has lt_striped_commit() anything to do? */
bool lt_striped_is_dirty(const struct leat_file *f);

/* A range at the end of a file. A cut raises the epoch, and then the range is none any more. */
struct lt_range {
	uint64_t epoch, off;
};

/** lt_striped_reserve - reserves @bytes at the end of a file, for leat_write() with O_APPEND
 * @ret: set when the result is 0
 *
 * Return: 0; -EBADF, -EISDIR, -EFBIG, -ENOMEM; @cb is consumed in every outcome.
 */
int lt_striped_reserve(struct leat_file *f, uint64_t bytes, struct lt_range *ret, struct leat_cb cb);

/** lt_striped_open - sets f->striped at the first use of the file; Return: 0 or -ENOMEM */
must_check int lt_striped_open(struct leat_file *f);

/** lt_striped_close - drops what a file holds that is freed */
void lt_striped_close(struct leat_file *f);

/** lt_striped_wrote_unstable - a write to @stripe was acknowledged with @verf, and is not on stable storage; Return: 0, -ENOMEM */
must_check int lt_striped_wrote_unstable(struct leat_file *f, uint32_t stripe, uint64_t verf);

/** lt_striped_needs_layout - does this status of STRIPES mean that a new layout may help? */
bool lt_striped_needs_layout(uint32_t status);

/** lt_striped_may_retry - may a call, whose handle of @epoch was refused, be sent again with a new layout?
 * Once; and again each time that the manager has raised the epoch meanwhile, but not for ever.
 * @tries, @refused_epoch: of the call; 0 at first
 */
bool lt_striped_may_retry(unsigned *tries, uint64_t *refused_epoch, uint64_t epoch);

/** lt_striped_away - replaces the error of a call to a stripe server that is away by -EIO, and explains it
 * Return: the error, -EIO or unchanged
 */
int lt_striped_away(struct lt_task *t, const struct lt_striped *s, uint32_t stripe, const struct lt_call *c, const char *what,
		    int err);

#endif
