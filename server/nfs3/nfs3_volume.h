/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * nfs3_volume.h - what NFS procedures cannot do on the files of a volume, whose contents are on stripe servers
 *
 * Without effect on exports that have no manager. Workers, except nfs3_volume_refuse().
 */
#ifndef LEAT_SERVER_NFS3_VOLUME_H
#define LEAT_SERVER_NFS3_VOLUME_H

#include <stdbool.h>

#include "base/util.h"
#include "vfs.h"

struct req;

/** nfs3_volume_has - is the request's first handle that of a volume? */
bool nfs3_volume_has(const struct req *r);

/** nfs3_volume_refuse - counts and logs a request that needs the contents of a striped file; any thread
 * Return: -EOPNOTSUPP */
int nfs3_volume_refuse(const struct req *r);

/** nfs3_volume_size - removes a new size from @sa that is the present one
 * Return: 0; -EOPNOTSUPP: it is another one */
int must_check nfs3_volume_size(const struct req *r, const struct fh_obj *o, struct vfs_sattr *sa);

/** nfs3_volume_victim - may @name, which is about to be removed or replaced, lose its file? An error of the lookup is left to
 * the operation itself
 * Return: 0; -EOPNOTSUPP: it is the last name of a file with contents */
int must_check nfs3_volume_victim(const struct req *r, const struct fh_obj *dir, const char *name);

#endif
