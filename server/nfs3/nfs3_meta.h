/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * nfs3_meta.h - the procedures of NFSv3 except READ, WRITE and COMMIT, for the table in nfs3_prog.c: on a worker, or
 *               on the fast path
 */
#ifndef LEAT_SERVER_NFS3_META_H
#define LEAT_SERVER_NFS3_META_H

#include <stdbool.h>
#include <stdint.h>

#include <rpc/types.h>
#include <rpc/xdr.h>

#include "base/util.h"
#include "nfs3.h"

struct dir_wcc;
struct fh_obj;
struct req;
struct statx;
struct nfs_dir_res;

/* nfs3_meta.c: attributes */
/** nfs3_getattr - performs GETATTR (RFC 1813 section 3.3.1) */
void nfs3_getattr(struct req *r);
/** nfs3_setattr - performs SETATTR (RFC 1813 section 3.3.2) */
void nfs3_setattr(struct req *r);
/** nfs3_lookup - performs LOOKUP (RFC 1813 section 3.3.3); returns the directory's attributes from before the lookup */
void nfs3_lookup(struct req *r);
/** nfs3_access - performs ACCESS (RFC 1813 section 3.3.4) */
void nfs3_access(struct req *r);
/** nfs3_readlink - performs READLINK (RFC 1813 section 3.3.5) */
void nfs3_readlink(struct req *r);

/** nfs3_open - finds the file of a handle in the arguments, and sets the status of the results
 * Return: true if that is NFS3_OK; the caller closes @ret with fh_close()
 */
bool nfs3_open(struct req *r, const nfs_fh3 *fh, struct fh_obj *ret);

/** nfs3_post_op - reads the current attributes of @o; none follow on an error */
void nfs3_post_op(const struct fh_obj *o, post_op_attr *ret);

/** nfs3_open_dir - as nfs3_open(), for a directory with names to be changed
 * @wcc: must exist as long as @ret; gets the attributes before and after the change
 */
bool nfs3_open_dir(struct req *r, const nfs_fh3 *fh, struct dir_wcc *wcc, struct fh_obj *ret);

/** nfs3_wcc - attributes of a directory of nfs3_open_dir(): before and after if proved, else the current, or none */
void nfs3_wcc(const struct req *r, const struct fh_obj *dir, wcc_data *ret);

/** nfs3_found - makes the results of a LOOKUP that has found @o in @dir; Return: 0; or as fh_make() */
int must_check nfs3_found(struct req *r, const struct fh_obj *dir, const struct fh_obj *o);

/** nfs3_access_bits - converts @got, granted rights of NFS3_RIGHTS, to ACCESS's bits, for a file as in @stx */
uint32_t nfs3_access_bits(const struct req *r, const struct statx *stx, unsigned got);

#define NFS3_RIGHTS ((unsigned)(R_OK | W_OK | X_OK))

/* nfs3_fast.c: GETATTR, ACCESS and LOOKUP from cached objects, and the caching of these objects */
/** nfs3_getattr_fast - performs GETATTR from any open descriptor of the file; Return: false: a worker must do it */
bool nfs3_getattr_fast(struct req *r);
/** nfs3_access_fast - performs ACCESS; Return: false: a worker must do it */
bool nfs3_access_fast(struct req *r);
/** nfs3_lookup_fast - performs LOOKUP; Return: false: a worker must do it */
bool nfs3_lookup_fast(struct req *r);
/** nfs3_create_fast - decides whether the new file may stay open; Return: false: a worker must create it */
bool nfs3_create_fast(struct req *r);
/** nfs3_fast_keep - caches the object that the worker found, for later requests */
void nfs3_fast_keep(struct req *r);

/** nfs3_fast_drop - on a worker: closes call->found if nfs3_fast_keep() would not cache it */
void nfs3_fast_drop(struct req *r);

/** nfs3_user - returns the identity of the user's credentials for fdcache.h: a hash, not 0 */
uint64_t nfs3_user(const struct req *r);

/* nfs3_name.c: names */
/** nfs3_create - performs CREATE (RFC 1813 section 3.3.8) */
void nfs3_create(struct req *r);
/** nfs3_create_finish - puts the open file into the cache */
void nfs3_create_finish(struct req *r);
/** nfs3_mkdir - performs MKDIR (RFC 1813 section 3.3.9) */
void nfs3_mkdir(struct req *r);
/** nfs3_symlink_payload - prog_proc.payload of SYMLINK: its path */
int nfs3_symlink_payload(struct req *r);
/** nfs3_symlink - performs SYMLINK (RFC 1813 section 3.3.10); the path has been pulled */
void nfs3_symlink(struct req *r);
/** nfs3_mknod - performs MKNOD (RFC 1813 section 3.3.11) */
void nfs3_mknod(struct req *r);
/** nfs3_remove - performs REMOVE (RFC 1813 section 3.3.12) */
void nfs3_remove(struct req *r);
/** nfs3_rmdir - performs RMDIR (RFC 1813 section 3.3.13) */
void nfs3_rmdir(struct req *r);
/** nfs3_rename - performs RENAME (RFC 1813 section 3.3.14) */
void nfs3_rename(struct req *r);
/** nfs3_link - performs LINK (RFC 1813 section 3.3.15) */
void nfs3_link(struct req *r);

/* nfs3_dir.c: listings */
/** nfs3_readdir_room - returns the bytes needed for the entries of READDIR */
size_t nfs3_readdir_room(const struct req *r);
/** nfs3_readdirplus_room - returns the bytes needed for the entries of READDIRPLUS */
size_t nfs3_readdirplus_room(const struct req *r);
/** nfs3_readdir - performs READDIR (RFC 1813 section 3.3.16) */
void nfs3_readdir(struct req *r);
/** nfs3_readdirplus - performs READDIRPLUS (RFC 1813 section 3.3.17) */
void nfs3_readdirplus(struct req *r);
/** nfs3_encode_dir - encodes READDIR3res and READDIRPLUS3res around entries that are already encoded */
bool_t nfs3_encode_dir(XDR *xdrs, struct nfs_dir_res *res);

/* nfs3_fs.c: the file system */
/** nfs3_fsstat - performs FSSTAT (RFC 1813 section 3.3.18) */
void nfs3_fsstat(struct req *r);
/** nfs3_fsinfo - performs FSINFO (RFC 1813 section 3.3.19) */
void nfs3_fsinfo(struct req *r);
/** nfs3_pathconf - performs PATHCONF (RFC 1813 section 3.3.20) */
void nfs3_pathconf(struct req *r);

#endif
