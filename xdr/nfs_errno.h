/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * nfs_errno.h - maps errno to nfsstat3 (RFC 1813 section 2.6) and back
 */
#ifndef LEAT_NFS_ERRNO_H
#define LEAT_NFS_ERRNO_H

#include "mount3.h"
#include "nfs3.h"

/** nfs3_status - converts an errno to a status for an NFS client
 * @err: 0 or -errno; any number at all
 *
 * Return: a status of RFC 1813; NFS3ERR_IO if there is no equivalent. Log the cause first.
 */
nfsstat3 nfs3_status(int err);

/** nfs3_errno - converts the status of an NFS server to an errno
 * @status: from the wire; any number at all
 *
 * Return: 0 for NFS3_OK, else -errno; -EREMOTEIO for a status not in RFC 1813.
 */
int nfs3_errno(nfsstat3 status);

/** mount3_status - nfs3_status() for the MOUNT protocol */
mountstat3 mount3_status(int err);

/** mount3_errno - nfs3_errno() for the MOUNT protocol */
int mount3_errno(mountstat3 status);

#endif
