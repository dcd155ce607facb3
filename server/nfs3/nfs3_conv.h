/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * nfs3_conv.h - between the types of NFSv3 and those of vfs.h
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

/** nfs3_conv_status - what to tell the client; what has no name of its own is logged here
 * @err: -errno; -EBADF is a handle that is none
 */
nfsstat3 nfs3_conv_status(const struct req *r, int err);

/** nfs3_conv_attr - attributes as they are told to a client, but for the `after` of nfs3_conv_wcc() */
void nfs3_conv_attr(const struct statx *stx, fattr3 *ret);

/** nfs3_conv_post_op - attributes follow, or none if @stx was never filled */
void nfs3_conv_post_op(const struct statx *stx, post_op_attr *ret);

/** nfs3_conv_wcc - attributes from before and from after */
void nfs3_conv_wcc(const struct dir_wcc *wcc, wcc_data *ret);

/** nfs3_conv_fh - the handle in the results; its bytes must stay where they are */
void nfs3_conv_post_op_fh(const struct fh *fh, char *room, post_op_fh3 *ret);

/** nfs3_conv_sattr - what is to be set
 *
 * What can be set of no file is found out here, before anything has been made or changed.
 *
 * Return: 0; -EINVAL: more nanoseconds than a second has, or an id that is none; -EFBIG.
 */
int must_check nfs3_conv_sattr(const sattr3 *sa, struct vfs_sattr *ret);

#endif
