/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume_defaults.h - stripe unit and width of the new files of a directory
 *
 * They block, and do not run inside of creds_assume().
 */
#ifndef LEAT_SERVER_VOLUME_DEFAULTS_H
#define LEAT_SERVER_VOLUME_DEFAULTS_H

#include "base/util.h"
#include "creds.h"
#include "fh.h"
#include "file_layout.h"

/** volume_layout_made - struct export.made: a regular file without contents gets its layout, a directory the defaults of
 * its parent. Those that have some keep them
 * @how: struct dir_defaults, for this file instead of those of its directory, as far as they are not 0; or NULL
 *
 * Return: 0; 1: one was set, not durable yet; -ENOSPC: also if no server takes new files; -errno.
 */
int must_check volume_layout_made(const struct fh_obj *dir, const struct fh_obj *o, const void *how);

/** volume_defaults_get - those of a directory; 0: as the volume says */
struct dir_defaults volume_defaults_get(const struct fh_obj *dir);

/** volume_defaults_check - are they possible? Return: 0; -EINVAL: no possible unit, or more stripes than servers */
int must_check volume_defaults_check(const struct fh_obj *dir, const struct dir_defaults *d);

/** volume_defaults_set - changes those of a directory, durably
 * @set: VOLUME_SET_UNIT, VOLUME_SET_WIDTH: which ones
 * @ret: what they are then
 *
 * Return: 0; -EPERM: neither the owner nor root; -EINVAL as above; -errno.
 */
int must_check volume_defaults_set(const struct fh_obj *dir, unsigned set, const struct dir_defaults *to, const struct creds *cr,
				   struct dir_defaults *ret);

#endif
