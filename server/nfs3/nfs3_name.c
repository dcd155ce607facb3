/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * nfs3_name.c - CREATE, MKDIR, SYMLINK, MKNOD, REMOVE, RMDIR, RENAME, LINK (RFC 1813 sections 3.3.8 to
 *               3.3.15)
 *
 * Operation: Finds the directories, executes the procedure durably (vfs_name.c), and returns attributes and handle of
 *            the created object. The results of the four creating procedures have the same form, so one function fills
 *            them.
 * Memory:    As nfs3_meta.c. CREATE leaves its descriptor in call->made for the cache of open files. So the following
 *            WRITE need not open it, and does not depend on the permissions of the final mode.
 * Threads:   Workers; nfs3_create_finish() on the reactor.
 * Errors:    As statuses in the results.
 */
#include <errno.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "nfs.h"
#include "nfs3_conv.h"
#include "nfs3_meta.h"
#include "nfs3_volume.h"
#include "volume_calls.h"

#define RENAME_TRIES 16u /* of a name that others take meanwhile */

_Static_assert(sizeof(MKDIR3res) == sizeof(CREATE3res) &&
		       sizeof(SYMLINK3res) == sizeof(CREATE3res) &&
		       sizeof(MKNOD3res) == sizeof(CREATE3res),
	       "four results of one form");

/* @m: the created object, if @err is 0 */
static void reply_made(struct req *r, const struct fh_obj *dir, int err, struct vfs_made *m)
{
	struct nfs_call *call = nfs_call(r);
	CREATE3res *res = &call->res.create;
	CREATE3resok *ok = &res->CREATE3res_u.resok;
	struct fh fh;

	nfs3_set_status(r, err);
	if (err) {
		nfs3_wcc(r, dir, &res->CREATE3res_u.resfail.dir_wcc);
		return;
	}
	/* without a handle in the reply the client looks the file up */
	ok->obj.handle_follows = !fh_make(nfs_handles(r), &m->obj, &fh);
	if (ok->obj.handle_follows)
		nfs3_conv_fh(&fh, call->mem.fh_res, &ok->obj.post_op_fh3_u.handle);
	nfs3_conv_post_op(&m->obj.stx, &ok->obj_attributes);
	nfs3_wcc(r, dir, &ok->dir_wcc);
}

/* The size of a striped file is for its stripe servers, too. */
static int create(struct req *r, const struct fh_obj *dir, enum vfs_create how, struct vfs_sattr *sa)
{
	struct nfs_call *call = nfs_call(r);
	const CREATE3args *a = &call->args.create;
	struct vfs_sattr size = { .set = dir->exp->manager ? sa->set & VFS_SET_SIZE : 0, .size = sa->size };
	int err;

	sa->set &= ~size.set;
	err = vfs_create(nfs_handles(r), dir, a->where.name, how, sa, (const uint8_t *)a->how.createhow3_u.verf, &r->creds,
			 &call->made);
	if (err || !size.set || call->made.obj.stx.stx_size == size.size)
		return err;
	err = nfs3_volume_size(r, &call->made.obj, &size);
	return err ? err : vfs_stat(call->made.obj.fd, &call->made.obj.stx);
}

void nfs3_create(struct req *r)
{
	struct nfs_call *call = nfs_call(r);
	static const enum vfs_create hows[] = {
		[UNCHECKED] = VFS_UNCHECKED,
		[GUARDED] = VFS_GUARDED,
		[EXCLUSIVE] = VFS_EXCLUSIVE,
	};
	const CREATE3args *a = &call->args.create;
	struct vfs_sattr sa = { 0 };
	struct dir_wcc wcc;
	struct fh_obj dir;
	int err = 0;

	if (!nfs3_open_dir(r, &a->where.dir, &wcc, &dir))
		return;
	if (a->how.mode != EXCLUSIVE)
		err = nfs3_conv_sattr(&a->how.createhow3_u.obj_attributes, &sa);
	if (!err)
		err = create(r, &dir, hows[a->how.mode], &sa);
	reply_made(r, &dir, err, &call->made);
	fh_close(&call->made.obj); /* its attributes are still needed */
	if (call->res.status != NFS3_OK || !call->res.create.CREATE3res_u.resok.obj.handle_follows || !call->keeps)
		vfs_made_close(&call->made);
	fh_close(&dir);
}

void nfs3_create_finish(struct req *r)
{
	struct nfs_call *call = nfs_call(r);
	const post_op_fh3 *obj = &call->res.create.CREATE3res_u.resok.obj;
	struct store_file file;
	struct fdcache_entry *e;
	struct fh fh;

	if (call->made.fd < 0)
		return;
	fh.len = obj->post_op_fh3_u.handle.data.data_len;
	memcpy(fh.data, obj->post_op_fh3_u.handle.data.data_val, fh.len);
	store_adopt(&call->exp->backing, call->made.fd, true, &file);
	file.dev = stx_dev(&call->made.obj.stx);
	file.ino = call->made.obj.stx.stx_ino;
	e = files_keep(&call->re->files, &fh, &file);
	call->made.fd = -1; /* the cache owns it, even on failure */
	if (!e)
		return;
	if (call->exports != r->reactor->uses[SERVICE_NFS]) /* the export may be gone */
		e->retired = true;
	fdcache_put(e);
}

/* MKDIR, SYMLINK, MKNOD: their arguments begin with the directory and the name.
 * @wrong: what is wrong with @what: 0 or -errno */
static void make(struct req *r, const sattr3 *attributes, const struct vfs_new *what, int wrong)
{
	const diropargs3 *where = &nfs_call(r)->args.mkdir.where;
	struct vfs_made m = { .obj.fd = -1, .fd = -1 };
	struct vfs_sattr sa;
	struct dir_wcc wcc;
	struct fh_obj dir;
	int err;

	if (!nfs3_open_dir(r, &where->dir, &wcc, &dir))
		return;
	err = nfs3_conv_sattr(attributes, &sa);
	if (!err)
		err = wrong;
	if (!err)
		err = vfs_make(nfs_handles(r), &dir, where->name, what, &sa, &r->creds, &m);
	reply_made(r, &dir, err, &m);
	vfs_made_close(&m);
	fh_close(&dir);
}

void nfs3_mkdir(struct req *r)
{
	make(r, &nfs_call(r)->args.mkdir.attributes, &(struct vfs_new){ .type = S_IFDIR }, 0);
}

/* The client's path may have any bytes except NUL. The kernel needs a terminating NUL. */
static int copy_target(struct req *r)
{
	struct nfs_call *call = nfs_call(r);
	uint32_t len = call->args.symlink.symlink.symlink_data.length;

	if (!len || len >= sizeof(call->mem.path))
		return len ? -ENAMETOOLONG : -EINVAL;
	memcpy(call->mem.path, place_data(&r->place), len);
	call->mem.path[len] = '\0';
	return strlen(call->mem.path) == len ? 0 : -EINVAL;
}

int nfs3_symlink_payload(struct req *r)
{
	struct rpcrdma_payload *path = &nfs_call(r)->args.symlink.symlink.symlink_data;

	r->plan.data = path;
	r->plan.bytes = path->length;
	return 0;
}

void nfs3_symlink(struct req *r)
{
	struct nfs_call *call = nfs_call(r);
	const struct vfs_new what = { .type = S_IFLNK, .target = call->mem.path };

	make(r, &call->args.symlink.symlink.symlink_attributes, &what, copy_target(r));
}

void nfs3_mknod(struct req *r)
{
	struct nfs_call *call = nfs_call(r);
	const mknoddata3 *node = &call->args.mknod.what;
	const devicedata3 *dev = &node->mknoddata3_u.device;
	const sattr3 *attributes = &node->mknoddata3_u.pipe_attributes;
	struct vfs_new what = { 0 };

	switch (node->type) {
	case NF3CHR:
	case NF3BLK:
		what.type = node->type == NF3CHR ? S_IFCHR : S_IFBLK;
		what.rdev = makedev(dev->spec.specdata1, dev->spec.specdata2);
		attributes = &dev->dev_attributes;
		break;
	case NF3SOCK:
		what.type = S_IFSOCK;
		break;
	case NF3FIFO:
		what.type = S_IFIFO;
		break;
	default:
		break;
	}
	make(r, attributes, &what, what.type ? 0 : -EINVAL);
	if (!what.type && call->res.status == NFS3ERR_INVAL)
		call->res.status = NFS3ERR_BADTYPE;
}

static void let_go(struct req *r, const struct vfs_gone *gone)
{
	for (unsigned i = 0; gone->gone && i < r->srv->nreactors; i++)
		files_tell_removed(&nfs_reactor(r->srv->reactors[i])->files, gone->dev, gone->ino);
}

/* REMOVE and RMDIR: same arguments, same results */
static void remove_name(struct req *r, bool is_dir)
{
	struct nfs_call *call = nfs_call(r);
	const diropargs3 *what = &call->args.remove.object;
	struct vfs_gone gone = { 0 };
	struct dir_wcc wcc;
	struct fh_obj dir;
	struct nfs3_volume_names names = { .dir = &dir, .name = what->name };
	int err;

	if (!nfs3_open_dir(r, &what->dir, &wcc, &dir))
		return;
	err = nfs3_volume_names_begin(r, &names);
	if (!err) {
		err = vfs_remove(nfs_handles(r), &dir, what->name, is_dir, &r->creds, &gone);
		nfs3_volume_names_end(&names);
	}
	nfs3_set_status(r, err);
	let_go(r, &gone);
	nfs3_wcc(r, &dir, &call->res.remove.REMOVE3res_u.resok.dir_wcc);
	fh_close(&dir);
}

void nfs3_remove(struct req *r)
{
	remove_name(r, false);
}

void nfs3_rmdir(struct req *r)
{
	remove_name(r, true);
}

static int rename_names(struct req *r, struct nfs3_volume_names *n, struct vfs_gone *gone)
{
	bool has_manager = n->dir->exp->manager != NULL;
	int err;

	for (unsigned i = 0; i < RENAME_TRIES; i++) {
		bool replaces;

		err = nfs3_volume_names_begin(r, n);
		if (err)
			return err;
		replaces = !has_manager || n->victim.fd >= 0;
		nfs3_volume_move_begin(n->from);
		err = vfs_rename(nfs_handles(r), n->from, n->from_name, n->dir, n->name, replaces, &r->creds, gone);
		nfs3_volume_move_end(n->from);
		nfs3_volume_names_end(n);
		if (replaces || err != -EEXIST)
			return err;
	}
	return -EAGAIN;
}

void nfs3_rename(struct req *r)
{
	struct nfs_call *call = nfs_call(r);
	const RENAME3args *a = &call->args.rename;
	RENAME3resok *ok = &call->res.rename.RENAME3res_u.resok;
	struct dir_wcc from_wcc, to_wcc;
	struct fh_obj from, to = { .fd = -1 };
	struct nfs3_volume_names names = { .from = &from, .from_name = a->from.name, .dir = &to, .name = a->to.name };
	struct vfs_gone gone = { 0 };

	if (!nfs3_open_dir(r, &a->from.dir, &from_wcc, &from))
		return;
	if (nfs3_open_dir(r, &a->to.dir, &to_wcc, &to)) {
		nfs3_set_status(r, rename_names(r, &names, &gone));
		let_go(r, &gone);
		/* the reply must not reveal a directory of another export */
		if (to.exp == from.exp)
			nfs3_wcc(r, &to, &ok->todir_wcc);
	}
	nfs3_wcc(r, &from, &ok->fromdir_wcc); /* both results have it at the same place */
	fh_close(&to);
	fh_close(&from);
}

void nfs3_link(struct req *r)
{
	struct nfs_call *call = nfs_call(r);
	const LINK3args *a = &call->args.link;
	LINK3resok *ok = &call->res.link.LINK3res_u.resok;
	struct dir_wcc wcc;
	struct fh_obj o, dir = { .fd = -1 };
	int err;

	if (!nfs3_open(r, &a->file, &o))
		return;
	if (nfs3_open_dir(r, &a->link.dir, &wcc, &dir)) {
		bool striped = o.exp->manager && S_ISREG(o.stx.stx_mode);

		err = striped ? volume_link_begin(&o) : 0;
		if (!err) {
			nfs3_volume_move_begin(&dir);
			err = vfs_link(nfs_handles(r), &o, &dir, a->link.name, &r->creds);
			nfs3_volume_move_end(&dir);
			if (striped)
				volume_link_end(&o);
		}
		nfs3_set_status(r, err);
		if (dir.exp == o.exp)
			nfs3_wcc(r, &dir, &ok->linkdir_wcc);
	}
	nfs3_post_op(&o, &ok->file_attributes); /* both results have it at the same place */
	fh_close(&dir);
	fh_close(&o);
}
