/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume_layout.h - the layouts of the files of a volume, and the defaults of its directories, on disk
 *
 * On workers, not inside of creds_assume(). Objects are those of fh_open() and fh_lookup(), of an export with a manager.
 */
#ifndef LEAT_SERVER_VOLUME_LAYOUT_H
#define LEAT_SERVER_VOLUME_LAYOUT_H

#include <stdint.h>

#include "base/util.h"
#include "creds.h"
#include "fh.h"
#include "file_layout.h"

/** volume_layout_made - struct export.made: a regular file without contents gets its layout, a directory the defaults of
 * its parent. Those that have some keep them
 *
 * Return: 0; 1: one was set, not durable yet; -ENOSPC: also if no server takes new files; -errno.
 */
int must_check volume_layout_made(const struct fh_obj *dir, const struct fh_obj *o);

/** volume_layout_read - reads and checks the layout of a regular file; a damaged one is logged
 *
 * Return: 0; -ENODATA: it has none; -EBADMSG, -EKEYREJECTED as file_layout_decode(); -errno.
 */
int must_check volume_layout_read(const struct fh_obj *o, struct file_layout *ret);

/** volume_layout_heal - gives a file without contents the layout that a crash has withheld, durably
 *
 * Its directory is not known any more, so it gets the defaults of the volume. Return: 0; -ENOSPC; -errno.
 */
int must_check volume_layout_heal(const struct fh_obj *o);

/** volume_raise - raises the size of a file to at least @bytes, sets its mtime, and makes both durable; never lowers it
 * @cr: the caller, for what the kernel does to set-id bits
 *
 * Return: 0; -EFBIG; -errno.
 */
int must_check volume_raise(const struct fh_obj *o, uint64_t bytes, const struct creds *cr, uint64_t *ret_bytes);

#endif
