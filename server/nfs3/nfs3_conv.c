/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * nfs3_conv.c - conversion between the types of NFSv3 and those of vfs.h (RFC 1813 section 2.6)
 *
 * Operation: Conversion without side effects, except that nfs3_conv_status() logs an errno that becomes NFS3ERR_IO or
 *            NFS3ERR_SERVERFAULT.
 * Memory:    The caller's.
 * Threads:   Any.
 * Errors:    None of its own.
 */
#include "nfs3_conv.h"

#include <errno.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/log.h"
#include "nfs.h"
#include "nfs_errno.h"

nfsstat3 nfs3_conv_status(const struct req *r, int err)
{
	nfsstat3 status;

	if (err == -EBADF)
		return NFS3ERR_BADHANDLE;
	status = nfs3_status(err);
	if (status == NFS3ERR_IO || status == NFS3ERR_SERVERFAULT)
		log_debug("%s: %s", r->proc->name, strerror(-err));
	return status;
}

void nfs3_set_status(struct req *r, int err)
{
	nfs_call(r)->res.status = nfs3_conv_status(r, err);
}

void nfs3_fail_status(struct req *r, nfsstat3 status)
{
	memset(req_res(r), 0, r->proc->res_bytes);
	nfs_call(r)->res.status = status;
}

void nfs3_fail(struct req *r, int err)
{
	nfs3_fail_status(r, nfs3_conv_status(r, err));
}

bool nfs3_undone(const struct req *r)
{
	return nfs_call(r)->res.status == NFS3ERR_JUKEBOX;
}

static ftype3 type_of(uint16_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFDIR:
		return NF3DIR;
	case S_IFBLK:
		return NF3BLK;
	case S_IFCHR:
		return NF3CHR;
	case S_IFLNK:
		return NF3LNK;
	case S_IFSOCK:
		return NF3SOCK;
	case S_IFIFO:
		return NF3FIFO;
	default:
		return NF3REG;
	}
}

/* 32 bits of seconds: times before 1970 and after 2106 wrap, as everywhere in NFSv3. */
static nfstime3 time_of(const struct statx_timestamp *t)
{
	return (nfstime3){ .seconds = (uint32_t)t->tv_sec, .nseconds = t->tv_nsec };
}

void nfs3_conv_attr(const struct statx *stx, fattr3 *ret)
{
	*ret = (fattr3){
		.type = type_of(stx->stx_mode),
		.mode = stx->stx_mode & 07777u,
		.nlink = stx->stx_nlink,
		.uid = stx->stx_uid,
		.gid = stx->stx_gid,
		.size = stx->stx_size,
		.used = stx->stx_blocks * 512,
		.rdev = { stx->stx_rdev_major, stx->stx_rdev_minor },
		.fsid = (uint64_t)stx->stx_dev_major << 32 | stx->stx_dev_minor,
		.fileid = stx->stx_ino,
		.atime = time_of(&stx->stx_atime),
		.mtime = time_of(&stx->stx_mtime),
		.ctime = time_of(&stx->stx_ctime),
	};
}

void nfs3_conv_wcc(const struct dir_wcc *wcc, wcc_data *ret)
{
	ret->before.attributes_follow = TRUE;
	ret->before.pre_op_attr_u.attributes = (wcc_attr){
		.size = wcc->before.stx_size,
		.mtime = time_of(&wcc->before.stx_mtime),
		.ctime = time_of(&wcc->before.stx_ctime),
	};
	ret->after.attributes_follow = TRUE;
	nfs3_conv_attr(&wcc->after, &ret->after.post_op_attr_u.attributes);
}

void nfs3_conv_post_op(const struct statx *stx, post_op_attr *ret)
{
	ret->attributes_follow = stx->stx_mask ? TRUE : FALSE;
	if (ret->attributes_follow)
		nfs3_conv_attr(stx, &ret->post_op_attr_u.attributes);
}

void nfs3_conv_fh(const struct fh *fh, char *room, nfs_fh3 *ret)
{
	memcpy(room, fh->data, fh->len);
	ret->data.data_val = room;
	ret->data.data_len = fh->len;
}

static int conv_time(time_how how, const nfstime3 *t, unsigned flag, struct vfs_sattr *sa,
		     struct timespec *ret)
{
	if (how == DONT_CHANGE)
		return 0;
	sa->set |= flag;
	if (how == SET_TO_SERVER_TIME) {
		*ret = (struct timespec){ .tv_nsec = UTIME_NOW };
		return 0;
	}
	if (t->nseconds >= 1000000000u)
		return -EINVAL;
	*ret = (struct timespec){ .tv_sec = t->seconds, .tv_nsec = (long)t->nseconds };
	return 0;
}

int nfs3_conv_sattr(const sattr3 *sa, struct vfs_sattr *ret)
{
	struct vfs_sattr v = { 0 };
	int err = 0;

	if (sa->mode.set_it) {
		v.set |= VFS_SET_MODE;
		v.mode = sa->mode.set_mode3_u.mode & 07777u;
	}
	if (sa->uid.set_it) {
		v.set |= VFS_SET_UID;
		v.uid = sa->uid.set_uid3_u.uid;
	}
	if (sa->gid.set_it) {
		v.set |= VFS_SET_GID;
		v.gid = sa->gid.set_gid3_u.gid;
	}
	if (sa->size.set_it) {
		v.set |= VFS_SET_SIZE;
		v.size = sa->size.set_size3_u.size;
	}
	/* (uint32_t)-1 means "do not change" to chown() */
	if ((v.set & VFS_SET_UID && v.uid == UINT32_MAX) ||
	    (v.set & VFS_SET_GID && v.gid == UINT32_MAX))
		err = -EINVAL;
	else if (v.set & VFS_SET_SIZE && v.size > INT64_MAX)
		err = -EFBIG;
	if (!err)
		err = conv_time(sa->atime.set_it, &sa->atime.set_atime_u.atime, VFS_SET_ATIME, &v,
				&v.atime);
	if (!err)
		err = conv_time(sa->mtime.set_it, &sa->mtime.set_mtime_u.mtime, VFS_SET_MTIME, &v,
				&v.mtime);
	if (!err)
		*ret = v;
	return err;
}
