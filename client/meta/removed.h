/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * removed.h - open files whose last name is removed: they keep a hidden name until the last close
 */
#ifndef LT_REMOVED_H
#define LT_REMOVED_H

#include "op.h"

#define LT_REMOVED_PREFIX ".leat-removed-" /* and 16 hexadecimal digits */
#define LT_REMOVED_KEEP "-keep"            /* after them, if this user may not set the times of the file */
#define LT_REMOVED_BYTES (sizeof(LT_REMOVED_PREFIX) + 16 + sizeof(LT_REMOVED_KEEP) - 1)

/** lt_removed_look - finds out whether the last name of the walk must be hidden, then calls next(op, 0)
 * It must if this mount has the file open and the file has no other name. Then op->removed is set. The server is asked
 * only if a file is open, or being opened. May finish @op with an error instead.
 */
void lt_removed_look(struct lt_op *op, lt_op_step next);

/** lt_removed_cannot - does the status of the last call mean that the server cannot hide this file?
 * Then the caller makes the plain call. After any other failure the operation ends, and the file stays as it is.
 */
bool lt_removed_cannot(const struct lt_op *op);

/** lt_removed_rename, lt_removed_link - give the file of op->removed its hidden name, instead of the name of the walk
 * or in addition to it; then call next(op, err) */
void lt_removed_rename(struct lt_op *op, lt_op_step next);
void lt_removed_link(struct lt_op *op, lt_op_step next);

/** lt_removed_keep - the hidden name lasts until the last close; ends @op with @result */
void lt_removed_keep(struct lt_op *op, int64_t result);

/** lt_removed_undo - removes the hidden name of op->removed at once; ends @op with @result */
void lt_removed_undo(struct lt_op *op, int64_t result);

/** lt_removed_forget - gives op->removed up; the file has no hidden name */
void lt_removed_forget(struct lt_op *op);

/** lt_removed_settle - ends @op with @result, after an open of @fh has ended
 * If it was the last one, and @fh has a hidden name, removes this name first. A failure of that is not reported.
 */
void lt_removed_settle(struct lt_op *op, const struct lt_fh *fh, int64_t result);

/** lt_removed_opening, lt_removed_opened - bracket an open, during which its file counts as open */
void lt_removed_opening(struct lt_op *op);
void lt_removed_opened(struct lt_op *op);

/** lt_removed_drop - forgets the hidden names of a mount that ends; they stay at the server */
void lt_removed_drop(struct leat *m);

/** lt_removed_sweep - removes a hidden name that a mount has left behind more than a day ago
 * @dir: the directory that has been read
 * @e: any entry of it
 *
 * Does nothing in a mount that has never hidden a name. Returns at once; the removal goes on in the background, and
 * fails silently.
 */
void lt_removed_sweep(struct leat *m, const struct lt_fh *dir, const entryplus3 *e);

/** lt_removed_start_touching - sets the access times of all files of m->removed every few hours, for the sweeps of other
 * mounts; ends when there are none */
void lt_removed_start_touching(struct leat *m);

#endif
