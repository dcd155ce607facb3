/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * nfs3_conv.h - conversion between the types of NFSv3 and those of vfs.h
 */
#ifndef LEAT_SERVER_NFS3_CONV_H
#define LEAT_SERVER_NFS3_CONV_H

#include <stdbool.h>
#include <sys/stat.h>

#include "base/util.h"
#include "nfs3.h"
#include "vfs.h"

struct dir_wcc;
struct req;

/** nfs3_conv_status - returns the status for the client; an errno without a status of its own is logged
 * @err: -errno; -EBADF means an invalid handle
 */
nfsstat3 nfs3_conv_status(const struct req *r, int err);

/** nfs3_set_status - sets the status of the results, and leaves their data as it is
 * @err: 0; or as for nfs3_conv_status()
 */
void nfs3_set_status(struct req *r, int err);

/** nfs3_fail_status - sets the result to @status, without further data */
void nfs3_fail_status(struct req *r, nfsstat3 status);

/** nfs3_fail, nfs3_undone - prog.fail and prog.undone of programs whose results begin with a nfsstat3 */
void nfs3_fail(struct req *r, int err);
bool nfs3_undone(const struct req *r);

/** nfs3_conv_attr - converts attributes for a reply */
void nfs3_conv_attr(const struct statx *stx, fattr3 *ret);

/** nfs3_conv_post_op - converts attributes; none follow if @stx was never filled */
void nfs3_conv_post_op(const struct statx *stx, post_op_attr *ret);

/** nfs3_conv_wcc - converts the attributes before and after a change */
void nfs3_conv_wcc(const struct dir_wcc *wcc, wcc_data *ret);

/** nfs3_conv_fh - puts a handle into the results; @room holds its bytes until the reply is encoded */
void nfs3_conv_fh(const struct fh *fh, char *room, nfs_fh3 *ret);

/** nfs3_conv_sattr - converts the attributes to set
 *
 * Rejects values that are invalid for every file, before anything is created or changed.
 *
 * Return: 0; -EINVAL: nanoseconds of a second or more, or an invalid id; -EFBIG.
 */
int must_check nfs3_conv_sattr(const sattr3 *sa, struct vfs_sattr *ret);

#endif
