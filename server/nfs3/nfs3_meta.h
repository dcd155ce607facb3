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

#include "nfs3.h"

struct dir_wcc;
struct fh_obj;
struct req;
struct statx;
struct req_dir_res;

/* nfs3_meta.c: attributes */
void nfs3_getattr(struct req *r);
void nfs3_setattr(struct req *r);
void nfs3_lookup(struct req *r);
void nfs3_access(struct req *r);
void nfs3_readlink(struct req *r);

/** nfs3_open - finds the file of a handle in the arguments; Return: status */
nfsstat3 nfs3_open(struct req *r, const nfs_fh3 *fh, struct fh_obj *ret);

/** nfs3_post_op - reads the current attributes of @o; none follow on an error */
void nfs3_post_op(const struct fh_obj *o, post_op_attr *ret);

/** nfs3_open_dir - as nfs3_open(), for a directory with names to be changed
 * @wcc: must exist as long as @ret; gets the attributes before and after the change
 */
nfsstat3 nfs3_open_dir(struct req *r, const nfs_fh3 *fh, struct dir_wcc *wcc, struct fh_obj *ret);

/** nfs3_wcc - attributes of a directory of nfs3_open_dir(): before and after if proved, else the current, or none */
void nfs3_wcc(const struct req *r, const struct fh_obj *dir, wcc_data *ret);

/** nfs3_access_bits - converts @got, granted rights of NFS3_RIGHTS, to ACCESS's bits, for a file as in @stx */
uint32_t nfs3_access_bits(const struct req *r, const struct statx *stx, unsigned got);

#define NFS3_RIGHTS ((unsigned)(R_OK | W_OK | X_OK))

/* nfs3_quick.c: GETATTR, ACCESS and LOOKUP from cached objects, and the caching of these objects */
bool nfs3_getattr_quick(struct req *r);
bool nfs3_access_quick(struct req *r);
bool nfs3_lookup_quick(struct req *r);
void nfs3_quick_keep(struct req *r);

/** nfs3_quick_drop - on a worker: closes r->found if nfs3_quick_keep() would not cache it */
void nfs3_quick_drop(struct req *r);

/** nfs3_who - returns the identity of the user's credentials for fdcache.h: a hash, not 0 */
uint64_t nfs3_who(const struct req *r);

/* nfs3_name.c: names */
void nfs3_create(struct req *r);
void nfs3_create_finish(struct req *r);
void nfs3_mkdir(struct req *r);
void nfs3_symlink(struct req *r);
void nfs3_mknod(struct req *r);
void nfs3_remove(struct req *r);
void nfs3_rmdir(struct req *r);
void nfs3_rename(struct req *r);
void nfs3_link(struct req *r);

/* nfs3_dir.c: listings */
size_t nfs3_readdir_room(const struct req *r);
size_t nfs3_readdirplus_room(const struct req *r);
void nfs3_readdir(struct req *r);
void nfs3_readdirplus(struct req *r);
bool_t nfs3_encode_dir(XDR *xdrs, struct req_dir_res *res);

/* nfs3_fs.c: the file system */
void nfs3_fsstat(struct req *r);
void nfs3_fsinfo(struct req *r);
void nfs3_pathconf(struct req *r);

#endif
