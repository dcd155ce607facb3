/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * nfs3_volume.h - what NFS procedures do otherwise with the files of a volume, whose contents are on stripe servers
 *
 * Without effect on exports that have no manager. Workers, except nfs3_volume_refuse().
 */
#ifndef LEAT_SERVER_NFS3_VOLUME_H
#define LEAT_SERVER_NFS3_VOLUME_H

#include <stdbool.h>

#include "base/util.h"
#include "nfs3.h"
#include "vfs.h"

struct req;

/** nfs3_volume_refuse - counts and logs a request that needs the contents of a file, if those are striped; any thread
 * Return: 0: they are not; -EOPNOTSUPP */
int must_check nfs3_volume_refuse(const struct req *r);

/** nfs3_volume_space - replaces the bytes of the manager's file system by those of the stripe servers, once one has replied */
void nfs3_volume_space(const struct req *r, FSSTAT3resok *ok);

/** nfs3_volume_size - removes a new size from @sa, and sets it; call it before other attributes are set
 * Return: 0; -EAGAIN: too many cuts are in progress; as volume_set_size() */
int must_check nfs3_volume_size(const struct req *r, const struct fh_obj *o, struct vfs_sattr *sa);

/* What has the names of a REMOVE, RMDIR or RENAME. Without a manager nothing is in it. */
struct nfs3_volume_names {
	const struct fh_obj *from, *dir; /* directories of the names; from: of RENAME, else NULL */
	const char *from_name, *name;
	struct fh_obj moved, victim; /* fd of victim -1: RENAME replaces nothing */
};

/** nfs3_volume_names_begin - the names of @n are about to be removed, moved or replaced; nfs3_volume_names_end() must follow
 * if it returns 0
 * Until then no other call gives these names to other objects, or takes them away. An object that is to get a name which
 * nothing has must not replace what has got it meanwhile.
 * @n: from, from_name, dir and name are set
 *
 * Return: 0; -EAGAIN: other callers change the names; as vfs_lookup(), volume_unlink_begin() */
int must_check nfs3_volume_names_begin(const struct req *r, struct nfs3_volume_names *n);
void nfs3_volume_names_end(struct nfs3_volume_names *n);

/** nfs3_volume_move_begin, nfs3_volume_move_end - around RENAME and LINK in @dir, so that a check of the volume knows whether a
 * name has moved while it read directories */
void nfs3_volume_move_begin(const struct fh_obj *dir);
void nfs3_volume_move_end(const struct fh_obj *dir);

/* ---- procedures of nfs3_volume.c's program, in nfs3_volume_admin.c ---- */

/** nfs3_volume_fail - sets the results to the status for @err, without further data */
void nfs3_volume_fail(struct req *r, int err);

/** nfs3_volume_set, nfs3_volume_create, nfs3_volume_check, nfs3_volume_servers - perform SET, CREATE, CHECK and SERVERS */
void nfs3_volume_set(struct req *r);
void nfs3_volume_create(struct req *r);
void nfs3_volume_check(struct req *r);
void nfs3_volume_servers(struct req *r);

#endif
