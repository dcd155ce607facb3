/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * nfs3_meta.c - GETATTR, SETATTR, LOOKUP, ACCESS, READLINK (RFC 1813 sections 3.3.1 to 3.3.5)
 *
 * Operation: Finds the file, executes the procedure (vfs.c), and fills in what success and failure have in common.
 * Memory:    Results are zeroed: attributes that are not filled in are absent. Handles and paths in results are in
 *            call->mem. The objects of GETATTR, LOOKUP and ACCESS stay open in call->found, so that nfs3_fast.c can
 *            cache them.
 * Threads:   Workers.
 * Errors:    As statuses in the results.
 */
#include "nfs3_meta.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "nfs.h"
#include "nfs3_conv.h"
#include "nfs3_volume.h"

bool nfs3_open(struct req *r, const nfs_fh3 *fh, struct fh_obj *ret)
{
	struct nfs_call *call = nfs_call(r);

	call->looked = fdcache_look(&call->exp->backing.limits);
	nfs3_set_status(r, fh_open(nfs_handles(r), fh->data.data_val, fh->data.data_len, ret));
	return call->res.status == NFS3_OK;
}

void nfs3_post_op(const struct fh_obj *o, post_op_attr *ret)
{
	struct statx stx;

	if (o->fd >= 0 && !vfs_stat(o->fd, &stx))
		nfs3_conv_post_op(&stx, ret);
}

bool nfs3_open_dir(struct req *r, const nfs_fh3 *fh, struct dir_wcc *wcc, struct fh_obj *ret)
{
	if (!nfs3_open(r, fh, ret))
		return false;
	*wcc = (struct dir_wcc){ .client = r->conn->number };
	ret->wcc = wcc;
	return true;
}

/* A change that was made, but returns an error since it may not be on disk, must not count as the client's own
 * change. */
void nfs3_wcc(const struct req *r, const struct fh_obj *dir, wcc_data *ret)
{
	struct nfs_call *call = nfs_call(r);

	if (dir->wcc && dir->wcc->proved && (call->res.status == NFS3_OK || !dir->wcc->changed))
		nfs3_conv_wcc(dir->wcc, ret);
	else
		nfs3_post_op(dir, &ret->after);
}

void nfs3_getattr(struct req *r)
{
	struct nfs_call *call = nfs_call(r);

	if (nfs3_open(r, &call->args.getattr.object, &call->found))
		nfs3_conv_attr(&call->found.stx, &call->res.getattr.GETATTR3res_u.resok.obj_attributes);
	nfs3_fast_drop(r);
}

static bool guard_holds(const sattrguard3 *guard, const struct statx *stx)
{
	const nfstime3 *want = &guard->sattrguard3_u.obj_ctime;

	return !guard->check || (want->seconds == (uint32_t)stx->stx_ctime.tv_sec &&
				 want->nseconds == stx->stx_ctime.tv_nsec);
}

void nfs3_setattr(struct req *r)
{
	struct nfs_call *call = nfs_call(r);
	const SETATTR3args *a = &call->args.setattr;
	struct vfs_sattr sa;
	struct fh_obj o;
	int err;

	if (!nfs3_open(r, &a->object, &o))
		return;
	err = nfs3_conv_sattr(&a->new_attributes, &sa);
	if (!err && !guard_holds(&a->guard, &o.stx)) {
		call->res.status = NFS3ERR_NOT_SYNC;
	} else {
		if (!err)
			err = nfs3_volume_size(r, &o, &sa);
		if (!err)
			err = vfs_setattr(&o, &sa, &r->creds);
		nfs3_set_status(r, err);
	}
	/* both results have it at the same place */
	nfs3_post_op(&o, &call->res.setattr.SETATTR3res_u.resok.obj_wcc.after);
	fh_close(&o);
}

int nfs3_found(struct req *r, const struct fh_obj *dir, const struct fh_obj *o)
{
	struct nfs_call *call = nfs_call(r);
	LOOKUP3resok *ok = &call->res.lookup.LOOKUP3res_u.resok;
	struct fh fh;
	int err = fh_make(nfs_handles(r), o, &fh);

	if (err)
		return err;
	nfs3_conv_fh(&fh, call->mem.fh_res, &ok->object);
	nfs3_conv_post_op(&o->stx, &ok->obj_attributes);
	nfs3_conv_post_op(&dir->stx, &ok->dir_attributes);
	return 0;
}

/* With attributes from after, a change in between would appear to be part of what the lookup has seen. */
static void lookup(struct req *r)
{
	struct nfs_call *call = nfs_call(r);
	const diropargs3 *what = &call->args.lookup.what;
	struct fh_obj *dir = &call->found, o = { .fd = -1 };
	int err;

	if (!nfs3_open(r, &what->dir, dir))
		return;
	err = vfs_lookup(nfs_handles(r), dir, what->name, &r->creds, &o);
	if (!err)
		call->asked = call->rights = X_OK; /* the user may search it */
	if (!err)
		err = nfs3_found(r, dir, &o);
	nfs3_set_status(r, err);
	if (err)
		nfs3_conv_post_op(&dir->stx, &call->res.lookup.LOOKUP3res_u.resfail.dir_attributes);
	fh_close(&o);
}

/* RFC 1813 section 3.3.4 */
uint32_t nfs3_access_bits(const struct req *r, const struct statx *stx, unsigned got)
{
	struct nfs_call *call = nfs_call(r);
	bool is_dir = S_ISDIR(stx->stx_mode), ro = call->exp->conf.ro;
	uint32_t bits = 0;

	if (got & R_OK)
		bits |= ACCESS3_READ;
	if (got & W_OK && !ro && (!is_dir || got & X_OK))
		bits |= ACCESS3_MODIFY | ACCESS3_EXTEND | (is_dir ? ACCESS3_DELETE : 0);
	if (got & X_OK)
		bits |= is_dir ? ACCESS3_LOOKUP : ACCESS3_EXECUTE;
	return bits;
}

static void check_access(struct req *r)
{
	struct nfs_call *call = nfs_call(r);
	ACCESS3resok *ok = &call->res.access.ACCESS3res_u.resok;
	struct fh_obj *o = &call->found;
	int got, err;

	if (!nfs3_open(r, &call->args.access.object, o))
		return;
	err = vfs_access(o, &r->creds, NFS3_RIGHTS, &got);
	nfs3_conv_post_op(&o->stx, &ok->obj_attributes); /* both results have it at the same place */
	nfs3_set_status(r, err);
	if (err)
		return;
	ok->access = nfs3_access_bits(r, &o->stx, (unsigned)got) & call->args.access.access;
	call->asked = NFS3_RIGHTS;
	call->rights = (unsigned)got;
}

void nfs3_lookup(struct req *r)
{
	lookup(r);
	nfs3_fast_drop(r);
}

void nfs3_access(struct req *r)
{
	check_access(r);
	nfs3_fast_drop(r);
}

void nfs3_readlink(struct req *r)
{
	struct nfs_call *call = nfs_call(r);
	READLINK3resok *ok = &call->res.readlink.READLINK3res_u.resok;
	struct fh_obj o;
	uint32_t len;
	int err;

	if (!nfs3_open(r, &call->args.readlink.symlink, &o))
		return;
	err = vfs_readlink(&o, call->mem.path, sizeof(call->mem.path), &len);
	nfs3_conv_post_op(&o.stx, &ok->symlink_attributes); /* both results have it at the same place */
	nfs3_set_status(r, err);
	if (!err) {
		ok->data.length = len;
		ok->data.here = (struct iovec){ .iov_base = call->mem.path, .iov_len = len };
		ok->data.iov = &ok->data.here;
		ok->data.iovcnt = 1;
	}
	fh_close(&o);
}
