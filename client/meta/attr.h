/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * attr.h - converts attributes between NFS and the C library
 */
#ifndef LT_ATTR_H
#define LT_ATTR_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>

#include "handle.h"
#include "nfs3.h"

/** lt_attr_stat - fattr3 to struct stat; total: invalid values from a server become harmless ones
 * @blksize: preferred I/O size, for st_blksize */
void lt_attr_stat(const fattr3 *a, uint32_t blksize, struct stat *ret);

/** lt_attr_stat_of - lt_attr_stat() of the object @fh of a mount
 * In a striped volume, files have the size that this client has written, too; the manager's blocks say nothing.
 * @fh: NULL: not known
 */
void lt_attr_stat_of(const struct leat *m, const struct lt_fh *fh, const fattr3 *a, struct stat *ret);

/** lt_attr_statvfs - FSSTAT results to struct statvfs */
void lt_attr_statvfs(const FSSTAT3resok *fs, uint32_t name_max, struct statvfs *ret);

/** lt_attr_mode - sattr3 that sets the mode only */
sattr3 lt_attr_mode(mode_t mode);

/** lt_attr_size - sattr3 that sets the size only */
sattr3 lt_attr_size(uint64_t size);

/** lt_attr_owner - sattr3 for chown(2): -1 leaves the id unchanged */
sattr3 lt_attr_owner(uid_t uid, gid_t gid);

/** lt_attr_times - sattr3 for utimensat(2)
 * @times: NULL: both now
 *
 * Return: 0; -EINVAL: nanoseconds out of range; -EOVERFLOW: seconds outside the range of NFSv3.
 */
int lt_attr_times(const struct timespec times[2], sattr3 *ret);

/** lt_attr_set - arguments of SETATTR for @in, which may be of a newer or an older program
 *
 * Return: 0; -EINVAL: an unknown bit of the mask, or an invalid value; -E2BIG: it has members that this library does
 * not know, and they are not zero; -EOVERFLOW: seconds outside the range of NFSv3.
 */
int lt_attr_set(const struct leat_setattr *in, sattr3 *ret, sattrguard3 *ret_guard);

#endif
