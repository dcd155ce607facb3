/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * nfs_errno.c - maps errno to nfsstat3 and back; names of statuses
 *
 * Operation:  One table, searched in each direction. Of several rows with the same errno or the same
 *             status the first one applies, so the usual meaning comes first. All functions are total.
 *             errno values are those of this system, NFS statuses those of the wire; some are equal by
 *             accident.
 * Memory:     None.
 * Threads:    Any.
 * Errors:     None.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/util.h"
#include "nfs3_names.h"
#include "nfs_errno.h"

static const struct {
	nfsstat3 status;
	int err;
	const char *name;
} map[] = {
#define MAP(status, err) { status, err, #status }
	MAP(NFS3_OK, 0),
	MAP(NFS3ERR_PERM, EPERM),
	MAP(NFS3ERR_NOENT, ENOENT),
	MAP(NFS3ERR_IO, EIO),
	MAP(NFS3ERR_NXIO, ENXIO),
	MAP(NFS3ERR_ACCES, EACCES),
	MAP(NFS3ERR_EXIST, EEXIST),
	MAP(NFS3ERR_XDEV, EXDEV),
	MAP(NFS3ERR_NODEV, ENODEV),
	MAP(NFS3ERR_NOTDIR, ENOTDIR),
	MAP(NFS3ERR_ISDIR, EISDIR),
	MAP(NFS3ERR_INVAL, EINVAL),
	MAP(NFS3ERR_FBIG, EFBIG),
	MAP(NFS3ERR_NOSPC, ENOSPC),
	MAP(NFS3ERR_ROFS, EROFS),
	MAP(NFS3ERR_MLINK, EMLINK),
	MAP(NFS3ERR_NAMETOOLONG, ENAMETOOLONG),
	MAP(NFS3ERR_NOTEMPTY, ENOTEMPTY),
	MAP(NFS3ERR_DQUOT, EDQUOT),
	MAP(NFS3ERR_STALE, ESTALE),
	MAP(NFS3ERR_REMOTE, EREMOTE),
	MAP(NFS3ERR_NOTSUPP, EOPNOTSUPP),
	MAP(NFS3ERR_SERVERFAULT, EREMOTEIO),
	MAP(NFS3ERR_JUKEBOX, EAGAIN),
	/* only to NFS: several errnos map to one status */
	MAP(NFS3ERR_NOTSUPP, ENOSYS),
	MAP(NFS3ERR_NAMETOOLONG, ERANGE),
	MAP(NFS3ERR_FBIG, EOVERFLOW),
	MAP(NFS3ERR_INVAL, ELOOP),      /* a symbolic link where none may be followed */
	MAP(NFS3ERR_ACCES, ETXTBSY),
	MAP(NFS3ERR_JUKEBOX, ENOMEM),   /* the client retries: memory and descriptors become available again */
	MAP(NFS3ERR_JUKEBOX, ENOBUFS),
	MAP(NFS3ERR_JUKEBOX, EMFILE),
	MAP(NFS3ERR_JUKEBOX, ENFILE),
	MAP(NFS3ERR_JUKEBOX, ETIMEDOUT),
	MAP(NFS3ERR_IO, EBUSY),         /* a mount point: it will not change by asking again */
	/* only from NFS: statuses of RFC 1813 without an errno of the same meaning */
	MAP(NFS3ERR_BADHANDLE, ESTALE),
	MAP(NFS3ERR_NOT_SYNC, EBUSY),
	MAP(NFS3ERR_BAD_COOKIE, ESTALE),
	MAP(NFS3ERR_TOOSMALL, EOVERFLOW),
	MAP(NFS3ERR_BADTYPE, EINVAL),
#undef MAP
};

nfsstat3 nfs3_status(int err)
{
	for (size_t i = 0; i < ARRAY_SIZE(map); i++) {
		if (map[i].err == -err)
			return map[i].status;
	}
	return NFS3ERR_IO;
}

int nfs3_errno(nfsstat3 status)
{
	for (size_t i = 0; i < ARRAY_SIZE(map); i++) {
		if (map[i].status == status)
			return -map[i].err;
	}
	return -EREMOTEIO;
}

const char *nfs3_stat_name(uint32_t status)
{
	for (size_t i = 0; i < ARRAY_SIZE(map); i++) {
		if ((uint32_t)map[i].status == status)
			return map[i].name;
	}
	return "?";
}

/* MOUNT uses ten of NFS's statuses, with the same numbers. */
static bool has_mount(nfsstat3 status)
{
	switch ((mountstat3)status) {
	case MNT3_OK:
	case MNT3ERR_PERM:
	case MNT3ERR_NOENT:
	case MNT3ERR_IO:
	case MNT3ERR_ACCES:
	case MNT3ERR_NOTDIR:
	case MNT3ERR_INVAL:
	case MNT3ERR_NAMETOOLONG:
	case MNT3ERR_NOTSUPP:
	case MNT3ERR_SERVERFAULT:
		return true;
	}
	return false;
}

mountstat3 mount3_status(int err)
{
	nfsstat3 status = nfs3_status(err);

	if (status == NFS3ERR_JUKEBOX)
		return MNT3ERR_SERVERFAULT;
	return has_mount(status) ? (mountstat3)status : MNT3ERR_IO;
}

int mount3_errno(mountstat3 status)
{
	return has_mount((nfsstat3)status) ? nfs3_errno((nfsstat3)status) : -EREMOTEIO;
}
