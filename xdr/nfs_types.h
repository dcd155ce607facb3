/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * nfs_types.h - arguments and results that client and server keep in unions
 */
#ifndef LEAT_NFS_TYPES_H
#define LEAT_NFS_TYPES_H

#include "nfs3.h"
#include "nfsacl.h"
#include "space.h"
#include "volumes.h"

/* X(TYPE, member): TYPEargs and TYPEres. A union adds what only its side has, or keeps in another form. */
#define NFS_TYPES(X)                                                                                         \
	X(GETATTR3, getattr) X(SETATTR3, setattr) X(LOOKUP3, lookup) X(ACCESS3, access) X(READLINK3, readlink) \
	X(CREATE3, create) X(MKDIR3, mkdir) X(SYMLINK3, symlink) X(MKNOD3, mknod) X(REMOVE3, remove)         \
	X(RMDIR3, rmdir) X(RENAME3, rename) X(LINK3, link) X(FSSTAT3, fsstat) X(COMMIT3, commit)             \
	X(GETACL3, getacl) X(SETACL3, setacl) X(ALLOCATE3, allocate) X(SEEK3, seek)                          \
	X(VOLMAP, volmap) X(VOLLAYOUT, vollayout) X(VOLREPORT, volreport) X(VOLRESERVE, volreserve)          \
	X(VOLCHECK, volcheck) X(VOLSERVERS, volservers) X(VOLSET, volset) X(VOLCREATE, volcreate)

#define NFS_ARGS(type, member) type##args member;
#define NFS_RES(type, member) type##res member;

#endif
