/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * attr.c - converts attributes between NFS (RFC 1813 sections 2.5, 2.6) and the C library
 *
 * Operation:  Pure conversions.
 * Memory:     None.
 * Threads:    Any.
 * Errors:     NFSv3 stores seconds from 0 to 2^32-1 only; other times are errors.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "attr.h"
#include "grown.h"
#include "base/clock.h"
#include "base/util.h"

#define STATVFS_BLOCK_BYTES 4096u
#define SETATTR_BYTES_MAX 4096u /* a size above this is garbage */
#define SET_ALL (LEAT_SET_MODE | LEAT_SET_UID | LEAT_SET_GID | LEAT_SET_SIZE | LEAT_SET_ATIME | LEAT_SET_MTIME)

static mode_t type_bits(ftype3 type)
{
	static const mode_t bits[] = {
		[NF3REG] = S_IFREG, [NF3DIR] = S_IFDIR, [NF3BLK] = S_IFBLK, [NF3CHR] = S_IFCHR,
		[NF3LNK] = S_IFLNK, [NF3SOCK] = S_IFSOCK, [NF3FIFO] = S_IFIFO,
	};

	return (size_t)type < ARRAY_SIZE(bits) ? bits[type] : 0;
}

static struct timespec time_from(const nfstime3 *t)
{
	struct timespec ts = { .tv_sec = (time_t)t->seconds };

	ts.tv_nsec = t->nseconds < NS_PER_S ? (long)t->nseconds : (long)NS_PER_S - 1;
	return ts;
}

void lt_attr_stat(const fattr3 *a, uint32_t blksize, struct stat *ret)
{
	memset(ret, 0, sizeof(*ret));
	/* the server chooses the 64 bits of fsid: fold them, so that equal values stay equal */
	ret->st_dev = (dev_t)(a->fsid ^ a->fsid >> 32);
	ret->st_ino = (ino_t)a->fileid;
	ret->st_mode = type_bits(a->type) | (a->mode & 07777);
	ret->st_nlink = a->nlink;
	ret->st_uid = a->uid;
	ret->st_gid = a->gid;
	if (a->type == NF3BLK || a->type == NF3CHR)
		ret->st_rdev = makedev(a->rdev.specdata1, a->rdev.specdata2);
	ret->st_size = a->size > INT64_MAX ? INT64_MAX : (off_t)a->size;
	ret->st_blksize = (blksize_t)blksize;
	ret->st_blocks = (blkcnt_t)(a->used / 512 + (a->used % 512 != 0));
	ret->st_atim = time_from(&a->atime);
	ret->st_mtim = time_from(&a->mtime);
	ret->st_ctim = time_from(&a->ctime);
}

void lt_attr_stat_of(const struct leat *m, const struct lt_fh *fh, const fattr3 *a, struct stat *ret)
{
	lt_attr_stat(a, m->rsize, ret);
	if (!m->volume || a->type != NF3REG)
		return;
	if (fh)
		ret->st_size = (off_t)lt_grown_size(m, fh, (uint64_t)ret->st_size);
	ret->st_blocks = (blkcnt_t)(ret->st_size / 512 + (ret->st_size % 512 != 0));
}

void lt_attr_statvfs(const FSSTAT3resok *fs, uint32_t name_max, struct statvfs *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->f_bsize = ret->f_frsize = STATVFS_BLOCK_BYTES;
	ret->f_blocks = fs->tbytes / STATVFS_BLOCK_BYTES;
	ret->f_bfree = fs->fbytes / STATVFS_BLOCK_BYTES;
	ret->f_bavail = fs->abytes / STATVFS_BLOCK_BYTES;
	ret->f_files = fs->tfiles;
	ret->f_ffree = fs->ffiles;
	ret->f_favail = fs->afiles;
	ret->f_namemax = name_max;
}

sattr3 lt_attr_mode(mode_t mode)
{
	sattr3 s = { .mode = { .set_it = TRUE } };

	s.mode.set_mode3_u.mode = mode & 07777;
	return s;
}

sattr3 lt_attr_size(uint64_t size)
{
	sattr3 s = { .size = { .set_it = TRUE } };

	s.size.set_size3_u.size = size;
	return s;
}

sattr3 lt_attr_owner(uid_t uid, gid_t gid)
{
	sattr3 s = { .uid = { .set_it = uid != (uid_t)-1 }, .gid = { .set_it = gid != (gid_t)-1 } };

	s.uid.set_uid3_u.uid = uid;
	s.gid.set_gid3_u.gid = gid;
	return s;
}

static int time_to(const struct timespec *ts, time_how *ret_how, nfstime3 *ret)
{
	if (ts->tv_nsec == UTIME_OMIT) {
		*ret_how = DONT_CHANGE;
		return 0;
	}
	if (ts->tv_nsec == UTIME_NOW) {
		*ret_how = SET_TO_SERVER_TIME;
		return 0;
	}
	if (ts->tv_nsec < 0 || ts->tv_nsec >= (long)NS_PER_S)
		return -EINVAL;
	if (ts->tv_sec < 0 || ts->tv_sec > (time_t)UINT32_MAX)
		return -EOVERFLOW;
	*ret_how = SET_TO_CLIENT_TIME;
	ret->seconds = (uint32_t)ts->tv_sec;
	ret->nseconds = (uint32_t)ts->tv_nsec;
	return 0;
}

int lt_attr_times(const struct timespec times[2], sattr3 *ret)
{
	static const struct timespec now[2] = { { .tv_nsec = UTIME_NOW }, { .tv_nsec = UTIME_NOW } };
	sattr3 s = { 0 };
	int rc;

	if (!times)
		times = now;
	rc = time_to(&times[0], &s.atime.set_it, &s.atime.set_atime_u.atime);
	if (!rc)
		rc = time_to(&times[1], &s.mtime.set_it, &s.mtime.set_mtime_u.mtime);
	if (!rc)
		*ret = s;
	return rc;
}

/* Copies the members that both the program and this library know; those of a newer program must be zero. */
static int copy_setattr(const struct leat_setattr *in, struct leat_setattr *ret)
{
	if (!in || in->size < sizeof(*ret)) /* the first version of the structure is the smallest */
		return -EINVAL;
	if (in->size > SETATTR_BYTES_MAX)
		return -E2BIG;
	for (size_t i = sizeof(*ret); i < in->size; i++) {
		if (((const char *)in)[i])
			return -E2BIG;
	}
	memcpy(ret, in, sizeof(*ret));
	return 0;
}

static int set_guard(const struct leat_setattr *in, sattrguard3 *ret)
{
	time_how how = DONT_CHANGE;
	int rc;

	*ret = (sattrguard3){ .check = FALSE };
	if (!(in->mask & LEAT_SET_GUARD))
		return 0;
	rc = time_to(&in->guard_ctime, &how, &ret->sattrguard3_u.obj_ctime);
	if (!rc && how != SET_TO_CLIENT_TIME)
		rc = -EINVAL;
	ret->check = TRUE;
	return rc;
}

static int set_values(const struct leat_setattr *in, sattr3 *ret)
{
	const struct timespec omit = { .tv_nsec = UTIME_OMIT };
	const struct timespec times[2] = { in->mask & LEAT_SET_ATIME ? in->atime : omit,
					   in->mask & LEAT_SET_MTIME ? in->mtime : omit };
	int rc = lt_attr_times(times, ret);

	if (in->mask & LEAT_SET_MODE)
		ret->mode = lt_attr_mode(in->mode).mode;
	if (in->mask & LEAT_SET_SIZE)
		ret->size = lt_attr_size(in->file_size).size;
	if (in->mask & LEAT_SET_UID)
		ret->uid = lt_attr_owner(in->uid, in->gid).uid;
	if (in->mask & LEAT_SET_GID)
		ret->gid = lt_attr_owner(in->uid, in->gid).gid;
	return rc;
}

int lt_attr_set(const struct leat_setattr *in, sattr3 *ret, sattrguard3 *ret_guard)
{
	struct leat_setattr a;
	int rc = copy_setattr(in, &a);

	if (rc)
		return rc;
	if (a.mask & ~(unsigned)(SET_ALL | LEAT_SET_GUARD) ||
	    (a.mask & LEAT_SET_SIZE && a.file_size > INT64_MAX) ||
	    (a.mask & LEAT_SET_UID && a.uid == (uid_t)-1) || (a.mask & LEAT_SET_GID && a.gid == (gid_t)-1))
		return -EINVAL;
	rc = set_guard(&a, ret_guard);
	return rc ? rc : set_values(&a, ret);
}
