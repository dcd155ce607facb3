/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * nfs_errno.h - the border between errno and nfsstat3 (RFC 1813 section 2.6): one function each way
 */
#ifndef LEAT_NFS_ERRNO_H
#define LEAT_NFS_ERRNO_H

#include "mount3.h"
#include "nfs3.h"

/** nfs3_status - what to tell an NFS client
 * @err: 0 or -errno; any number at all
 *
 * Return: a status of RFC 1813; NFS3ERR_IO for what has no name there. Log the cause before.
 */
nfsstat3 nfs3_status(int err);

/** nfs3_errno - what an NFS server's status means here
 * @status: as it came off the wire; any number at all
 *
 * Return: 0 for NFS3_OK, else -errno; -EREMOTEIO for a status that RFC 1813 does not know.
 */
int nfs3_errno(nfsstat3 status);

/** mount3_status - nfs3_status() for the MOUNT protocol */
mountstat3 mount3_status(int err);

/** mount3_errno - nfs3_errno() for the MOUNT protocol */
int mount3_errno(mountstat3 status);

#endif
