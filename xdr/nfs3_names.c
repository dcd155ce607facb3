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
#include "block.h"
#include "ctl.h"
#include "mount3.h"
#include "nfs3.h"
#include "nfs3_names.h"
#include "nfsacl.h"
#include "space.h"
#include "stripes.h"
#include "volumes.h"

#define NFS(name) [NFSPROC3_##name] = #name

static const char *const nfs_procs[] = {
	NFS(NULL), NFS(GETATTR), NFS(SETATTR), NFS(LOOKUP), NFS(ACCESS), NFS(READLINK), NFS(READ), NFS(WRITE),
	NFS(CREATE), NFS(MKDIR), NFS(SYMLINK), NFS(MKNOD), NFS(REMOVE), NFS(RMDIR), NFS(RENAME), NFS(LINK),
	NFS(READDIR), NFS(READDIRPLUS), NFS(FSSTAT), NFS(FSINFO), NFS(PATHCONF), NFS(COMMIT),
};

#define NFSACL(name) [NFSACLPROC3_##name] = #name

static const char *const nfsacl_procs[] = {
	NFSACL(NULL), NFSACL(GETACL), NFSACL(SETACL),
};

#define SPACE(name) [SPACEPROC_##name] = #name

static const char *const space_procs[] = {
	SPACE(NULL), SPACE(ALLOCATE), SPACE(SEEK),
};

#define MOUNT(name) [MOUNTPROC3_##name] = #name

static const char *const mount_procs[] = {
	MOUNT(NULL), MOUNT(MNT), MOUNT(DUMP), MOUNT(UMNT), MOUNT(UMNTALL), MOUNT(EXPORT),
};

#define CTL(name) [CTL_##name] = #name

static const char *const ctl_procs[] = {
	CTL(NULL), CTL(INFO), CTL(STATS), CTL(RELOAD), CTL(DRAIN), CTL(WHERE), CTL(PIECES), CTL(WHOAMI),
};

#define BLOCK(name) [BLOCKPROC_##name] = #name

static const char *const block_procs[] = {
	BLOCK(NULL), BLOCK(LIST), BLOCK(INFO), BLOCK(ATTACH), BLOCK(DETACH), BLOCK(READ), BLOCK(WRITE),
	BLOCK(DISCARD), BLOCK(FLUSH), BLOCK(ZERO), BLOCK(EXTENTS),
};

#define STRIPE(name) [STRIPEPROC_##name] = #name

static const char *const stripe_procs[] = {
	STRIPE(NULL), STRIPE(INFO), STRIPE(READ), STRIPE(WRITE), STRIPE(COMMIT), STRIPE(STAT), STRIPE(FENCE),
	STRIPE(REMOVE), STRIPE(LIST), STRIPE(SET_ASIDE),
};

#define VOLUME(name) [VOLUMEPROC_##name] = #name

static const char *const volume_procs[] = {
	VOLUME(NULL), VOLUME(MAP), VOLUME(LAYOUT), VOLUME(REPORT), VOLUME(RESERVE),
	VOLUME(SET), VOLUME(CREATE), VOLUME(CHECK), VOLUME(SERVERS),
};

static const struct {
	uint32_t prog;
	const char *name;
	const char *const *procs;
	size_t count;
} progs[] = {
	{ NFS_PROGRAM, "NFS", nfs_procs, ARRAY_SIZE(nfs_procs) },
	{ NFSACL_PROGRAM, "NFSACL", nfsacl_procs, ARRAY_SIZE(nfsacl_procs) },
	{ LEAT_SPACE, "SPACE", space_procs, ARRAY_SIZE(space_procs) },
	{ MOUNT_PROGRAM, "MOUNT", mount_procs, ARRAY_SIZE(mount_procs) },
	{ LEAT_CTL, "CTL", ctl_procs, ARRAY_SIZE(ctl_procs) },
	{ LEAT_BLOCK, "BLOCK", block_procs, ARRAY_SIZE(block_procs) },
	{ LEAT_STRIPES, "STRIPES", stripe_procs, ARRAY_SIZE(stripe_procs) },
	{ LEAT_VOLUME, "VOLUME", volume_procs, ARRAY_SIZE(volume_procs) },
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
