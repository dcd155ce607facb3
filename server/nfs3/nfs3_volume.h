/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * nfs3_volume.h - what NFS procedures do otherwise with the files of a volume, whose contents are on stripe servers
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

/** nfs3_volume_size - removes a new size from @sa, and sets it; call it before other attributes are set
 * Return: 0; -EAGAIN: too many cuts are in progress; as volume_set_size() */
int must_check nfs3_volume_size(const struct req *r, const struct fh_obj *o, struct vfs_sattr *sa);

/** nfs3_volume_unlink_begin - @name is about to be removed or replaced; nfs3_volume_unlink_end() must follow if it returns 0
 * An error of the lookup is left to the operation itself.
 * @ret: the file of the name; its fd is -1 if nothing is to be done
 *
 * Return: 0; as volume_unlink_begin() */
int must_check nfs3_volume_unlink_begin(const struct req *r, const struct fh_obj *dir, const char *name, struct fh_obj *ret);
void nfs3_volume_unlink_end(struct fh_obj *o);

#endif
