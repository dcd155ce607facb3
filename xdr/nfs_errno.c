/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * nfs_errno.c - maps errno to nfsstat3 and back
 *
 * Operation:  One table, searched in both directions. Of several rows with the same errno or the same
 *             status the first one applies, so the usual meaning comes first. Both functions are total.
 *             errno values are those of this system, NFS statuses those of the wire; some are equal by
 *             accident.
 * Memory:     None.
 * Threads:    Any.
 * Errors:     None.
 */
#include <errno.h>
#include <stddef.h>

#include "base/util.h"
#include "nfs_errno.h"

static const struct {
	nfsstat3 status;
	int err;
} map[] = {
	{ NFS3_OK, 0 },
	{ NFS3ERR_PERM, EPERM },
	{ NFS3ERR_NOENT, ENOENT },
	{ NFS3ERR_IO, EIO },
	{ NFS3ERR_NXIO, ENXIO },
	{ NFS3ERR_ACCES, EACCES },
	{ NFS3ERR_EXIST, EEXIST },
	{ NFS3ERR_XDEV, EXDEV },
	{ NFS3ERR_NODEV, ENODEV },
	{ NFS3ERR_NOTDIR, ENOTDIR },
	{ NFS3ERR_ISDIR, EISDIR },
	{ NFS3ERR_INVAL, EINVAL },
	{ NFS3ERR_FBIG, EFBIG },
	{ NFS3ERR_NOSPC, ENOSPC },
	{ NFS3ERR_ROFS, EROFS },
	{ NFS3ERR_MLINK, EMLINK },
	{ NFS3ERR_NAMETOOLONG, ENAMETOOLONG },
	{ NFS3ERR_NOTEMPTY, ENOTEMPTY },
	{ NFS3ERR_DQUOT, EDQUOT },
	{ NFS3ERR_STALE, ESTALE },
	{ NFS3ERR_REMOTE, EREMOTE },
	{ NFS3ERR_NOTSUPP, EOPNOTSUPP },
	{ NFS3ERR_SERVERFAULT, EREMOTEIO },
	{ NFS3ERR_JUKEBOX, EAGAIN },
	/* only to NFS: several errnos map to one status */
	{ NFS3ERR_NOTSUPP, ENOSYS },
	{ NFS3ERR_NAMETOOLONG, ERANGE },
	{ NFS3ERR_FBIG, EOVERFLOW },
	{ NFS3ERR_INVAL, ELOOP },      /* a symbolic link where none may be followed */
	{ NFS3ERR_ACCES, ETXTBSY },
	{ NFS3ERR_JUKEBOX, ENOMEM },   /* the client retries: memory and descriptors become available again */
	{ NFS3ERR_JUKEBOX, ENOBUFS },
	{ NFS3ERR_JUKEBOX, EMFILE },
	{ NFS3ERR_JUKEBOX, ENFILE },
	{ NFS3ERR_JUKEBOX, ETIMEDOUT },
	{ NFS3ERR_IO, EBUSY },         /* a mount point: it will not change by asking again */
	/* only from NFS: statuses of RFC 1813 without an errno of the same meaning */
	{ NFS3ERR_BADHANDLE, ESTALE },
	{ NFS3ERR_NOT_SYNC, EBUSY },
	{ NFS3ERR_BAD_COOKIE, ESTALE },
	{ NFS3ERR_TOOSMALL, EOVERFLOW },
	{ NFS3ERR_BADTYPE, EINVAL },
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

/** mount3_status - MOUNT uses ten of NFS's statuses, with the same numbers */
mountstat3 mount3_status(int err)
{
	switch (nfs3_status(err)) {
	case NFS3_OK:
		return MNT3_OK;
	case NFS3ERR_PERM:
		return MNT3ERR_PERM;
	case NFS3ERR_NOENT:
		return MNT3ERR_NOENT;
	case NFS3ERR_ACCES:
		return MNT3ERR_ACCES;
	case NFS3ERR_NOTDIR:
		return MNT3ERR_NOTDIR;
	case NFS3ERR_INVAL:
		return MNT3ERR_INVAL;
	case NFS3ERR_NAMETOOLONG:
		return MNT3ERR_NAMETOOLONG;
	case NFS3ERR_NOTSUPP:
		return MNT3ERR_NOTSUPP;
	case NFS3ERR_SERVERFAULT:
	case NFS3ERR_JUKEBOX:
		return MNT3ERR_SERVERFAULT;
	default:
		return MNT3ERR_IO;
	}
}

/** mount3_errno - see mount3_status() */
int mount3_errno(mountstat3 status)
{
	switch (status) {
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
		return nfs3_errno((nfsstat3)status);
	}
	return -EREMOTEIO;
}
