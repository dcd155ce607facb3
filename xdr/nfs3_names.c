/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * nfs3_names.c - names of protocol constants
 *
 * Operation:  Table lookups for log lines, error texts and statistics.
 * Memory:     Static.
 * Threads:    Any.
 * Errors:     None: "?" for a value without a name.
 */
#include <stddef.h>

#include "base/util.h"
#include "ctl.h"
#include "mount3.h"
#include "nfs3.h"
#include "nfs3_names.h"
#include "nfsacl.h"

static const char *const nfs_procs[] = {
	[NFSPROC3_NULL] = "NULL",
	[NFSPROC3_GETATTR] = "GETATTR",
	[NFSPROC3_SETATTR] = "SETATTR",
	[NFSPROC3_LOOKUP] = "LOOKUP",
	[NFSPROC3_ACCESS] = "ACCESS",
	[NFSPROC3_READLINK] = "READLINK",
	[NFSPROC3_READ] = "READ",
	[NFSPROC3_WRITE] = "WRITE",
	[NFSPROC3_CREATE] = "CREATE",
	[NFSPROC3_MKDIR] = "MKDIR",
	[NFSPROC3_SYMLINK] = "SYMLINK",
	[NFSPROC3_MKNOD] = "MKNOD",
	[NFSPROC3_REMOVE] = "REMOVE",
	[NFSPROC3_RMDIR] = "RMDIR",
	[NFSPROC3_RENAME] = "RENAME",
	[NFSPROC3_LINK] = "LINK",
	[NFSPROC3_READDIR] = "READDIR",
	[NFSPROC3_READDIRPLUS] = "READDIRPLUS",
	[NFSPROC3_FSSTAT] = "FSSTAT",
	[NFSPROC3_FSINFO] = "FSINFO",
	[NFSPROC3_PATHCONF] = "PATHCONF",
	[NFSPROC3_COMMIT] = "COMMIT",
};

static const char *const nfsacl_procs[] = {
	[NFSACLPROC3_NULL] = "NULL",
	[NFSACLPROC3_GETACL] = "GETACL",
	[NFSACLPROC3_SETACL] = "SETACL",
};

static const char *const mount_procs[] = {
	[MOUNTPROC3_NULL] = "NULL",
	[MOUNTPROC3_MNT] = "MNT",
	[MOUNTPROC3_DUMP] = "DUMP",
	[MOUNTPROC3_UMNT] = "UMNT",
	[MOUNTPROC3_UMNTALL] = "UMNTALL",
	[MOUNTPROC3_EXPORT] = "EXPORT",
};

static const char *const ctl_procs[] = {
	[CTL_NULL] = "NULL",
	[CTL_INFO] = "INFO",
	[CTL_STATS] = "STATS",
	[CTL_RELOAD] = "RELOAD",
	[CTL_DRAIN] = "DRAIN",
	[CTL_WHERE] = "WHERE",
	[CTL_PIECES] = "PIECES",
	[CTL_WHOAMI] = "WHOAMI",
};

static const struct {
	uint32_t prog;
	const char *name;
	const char *const *procs;
	size_t count;
} progs[] = {
	{ NFS_PROGRAM, "NFS", nfs_procs, ARRAY_SIZE(nfs_procs) },
	{ NFSACL_PROGRAM, "NFSACL", nfsacl_procs, ARRAY_SIZE(nfsacl_procs) },
	{ MOUNT_PROGRAM, "MOUNT", mount_procs, ARRAY_SIZE(mount_procs) },
	{ LEAT_CTL, "CTL", ctl_procs, ARRAY_SIZE(ctl_procs) },
};

static const struct {
	nfsstat3 status;
	const char *name;
} stats[] = {
	{ NFS3_OK, "NFS3_OK" },
	{ NFS3ERR_PERM, "NFS3ERR_PERM" },
	{ NFS3ERR_NOENT, "NFS3ERR_NOENT" },
	{ NFS3ERR_IO, "NFS3ERR_IO" },
	{ NFS3ERR_NXIO, "NFS3ERR_NXIO" },
	{ NFS3ERR_ACCES, "NFS3ERR_ACCES" },
	{ NFS3ERR_EXIST, "NFS3ERR_EXIST" },
	{ NFS3ERR_XDEV, "NFS3ERR_XDEV" },
	{ NFS3ERR_NODEV, "NFS3ERR_NODEV" },
	{ NFS3ERR_NOTDIR, "NFS3ERR_NOTDIR" },
	{ NFS3ERR_ISDIR, "NFS3ERR_ISDIR" },
	{ NFS3ERR_INVAL, "NFS3ERR_INVAL" },
	{ NFS3ERR_FBIG, "NFS3ERR_FBIG" },
	{ NFS3ERR_NOSPC, "NFS3ERR_NOSPC" },
	{ NFS3ERR_ROFS, "NFS3ERR_ROFS" },
	{ NFS3ERR_MLINK, "NFS3ERR_MLINK" },
	{ NFS3ERR_NAMETOOLONG, "NFS3ERR_NAMETOOLONG" },
	{ NFS3ERR_NOTEMPTY, "NFS3ERR_NOTEMPTY" },
	{ NFS3ERR_DQUOT, "NFS3ERR_DQUOT" },
	{ NFS3ERR_STALE, "NFS3ERR_STALE" },
	{ NFS3ERR_REMOTE, "NFS3ERR_REMOTE" },
	{ NFS3ERR_BADHANDLE, "NFS3ERR_BADHANDLE" },
	{ NFS3ERR_NOT_SYNC, "NFS3ERR_NOT_SYNC" },
	{ NFS3ERR_BAD_COOKIE, "NFS3ERR_BAD_COOKIE" },
	{ NFS3ERR_NOTSUPP, "NFS3ERR_NOTSUPP" },
	{ NFS3ERR_TOOSMALL, "NFS3ERR_TOOSMALL" },
	{ NFS3ERR_SERVERFAULT, "NFS3ERR_SERVERFAULT" },
	{ NFS3ERR_BADTYPE, "NFS3ERR_BADTYPE" },
	{ NFS3ERR_JUKEBOX, "NFS3ERR_JUKEBOX" },
};

const char *nfs3_prog_name(uint32_t prog)
{
	for (size_t i = 0; i < ARRAY_SIZE(progs); i++) {
		if (progs[i].prog == prog)
			return progs[i].name;
	}
	return "?";
}

const char *nfs3_proc_name(uint32_t prog, uint32_t proc)
{
	for (size_t i = 0; i < ARRAY_SIZE(progs); i++) {
		if (progs[i].prog == prog && proc < progs[i].count)
			return progs[i].procs[proc];
	}
	return "?";
}

const char *nfs3_stat_name(uint32_t status)
{
	for (size_t i = 0; i < ARRAY_SIZE(stats); i++) {
		if ((uint32_t)stats[i].status == status)
			return stats[i].name;
	}
	return "?";
}
