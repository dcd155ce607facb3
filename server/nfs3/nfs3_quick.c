/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * nfs3_quick.c - GETATTR, ACCESS and LOOKUP without a worker, of what is at hand
 *
 * Operation: a change of thread there and back costs ten times what a GETATTR does. So what a worker has
 *            opened to answer one stays open for a while in the reactor's cache (nfs3_quick_keep), with
 *            what the kernel said of the caller's rights; and the next one is tried on the reactor first.
 *            Nothing that it does there waits for a disk: the inode of an open file is in memory, and so
 *            are its attributes; LOOKUP asks the kernel for what its name cache knows and nothing else
 *            (RESOLVE_CACHED). Whatever is amiss, and every answer but success, is left to the worker. So is a
 *            file system that may ask another host or a process for attributes (struct fs_limits).
 *
 *            GETATTR  the open file
 *            ACCESS   and what the kernel said of this caller since its ctime
 *            LOOKUP   of the directory, that he may search it; its file is found with our own rights, and
 *                     where those are his the kernel decides at once
 *
 *            What a handle does not lead to any more is not answered from here: a removed file, and a
 *            directory that was moved out of the export. By name (FH_MAP) a handle leads to other
 *            files only as long as they have theirs, so only directories of those are kept.
 * Memory:    nothing is taken; the cache owns what is kept.
 * Threads:   the reactor's.
 * Errors:    none of their own: false is "ask the worker".
 * See:       fdcache.c; prog.h.
 */
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "closing.h"
#include "nfs3_conv.h"
#include "nfs3_meta.h"
#include "reactor.h"
#include "req.h"

uint64_t nfs3_who(const struct req *r)
{
	uint64_t h = creds_hash(&r->creds);

	return h ? h : 1; /* 0 is a free slot */
}

static bool is_there(struct req *r, struct fdcache_entry *e, struct fh_obj *ret)
{
	struct fh_obj o = { .exp = r->exp, .fd = e->file.fd };

	if (vfs_stat(o.fd, &o.stx) || !o.stx.stx_nlink)
		return false;
	*ret = o;
	return true;
}

/* What was moved out is told by the worker. LOOKUP asks that of the file it finds. */
static bool is_inside(const struct req *r, const struct fh_obj *o)
{
	return !S_ISDIR(o->stx.stx_mode) || !fh_check_dir_now(r->exports->exports->fhs, o);
}

/* Return: the entry, held, and in @ret what it has open; or NULL */
static struct fdcache_entry *find_in(struct req *r, struct fdcache *c, struct fh_obj *ret)
{
	const nfs_fh3 *fh = &r->args.fh;
	struct fdcache_entry *e = NULL;

	if (r->exp->limits.answers_at_once)
		e = fdcache_find(c, fh->data.data_val, fh->data.data_len, false);
	r->cached = e && is_there(r, e, ret);
	if (!e || r->cached)
		return e;
	if (c == r->reactor->paths) /* a removed file keeps its space no longer than it must */
		fdcache_drop_file(c, e->dev, e->ino);
	fdcache_put(e);
	return NULL;
}

/** nfs3_getattr_quick - GETATTR; whatever the file is open for */
bool nfs3_getattr_quick(struct req *r)
{
	struct fdcache_entry *e;
	struct fh_obj o;
	bool good;

	e = find_in(r, r->reactor->files, &o);
	if (!e)
		e = find_in(r, r->reactor->paths, &o);
	if (!e)
		return false;
	good = is_inside(r, &o);
	if (good)
		nfs3_conv_attr(&o.stx, &r->res.getattr.GETATTR3res_u.resok.obj_attributes);
	fdcache_put(e);
	return good;
}

/** nfs3_access_quick - ACCESS */
bool nfs3_access_quick(struct req *r)
{
	ACCESS3resok *ok = &r->res.access.ACCESS3res_u.resok;
	struct fdcache_entry *e;
	struct fh_obj o;
	unsigned got;
	bool known;

	e = find_in(r, r->reactor->paths, &o);
	if (!e)
		return false;
	known = fdcache_rights(e, nfs3_who(r), &o.stx, NFS3_RIGHTS, &got) && is_inside(r, &o);
	if (known) {
		nfs3_conv_post_op(&o.stx, &ok->obj_attributes);
		ok->access = nfs3_access_bits(r, &o.stx, got) & r->args.access.access;
	}
	fdcache_put(e);
	return known;
}

static bool lookup_in(struct req *r, const struct fh_obj *dir)
{
	LOOKUP3resok *ok = &r->res.lookup.LOOKUP3res_u.resok;
	const char *name = r->args.lookup.what.name;
	struct fh_set *fhs = r->exports->exports->fhs;
	struct fh_obj o;
	struct fh fh;
	int err = fh_lookup_cached(fhs, dir, name, &o);

	if (!err)
		err = fh_make(fhs, &o, &fh);
	if (!err) {
		memcpy(r->mem.fh_res, fh.data, fh.len);
		ok->object.data.data_val = r->mem.fh_res;
		ok->object.data.data_len = fh.len;
		nfs3_conv_post_op(&o.stx, &ok->obj_attributes);
		nfs3_conv_post_op(&dir->stx, &ok->dir_attributes);
	}
	if (o.fd >= 0)
		closing_add(r->reactor->closer, o.exp->root_dev, o.fd);
	return !err;
}

/** nfs3_lookup_quick - LOOKUP */
bool nfs3_lookup_quick(struct req *r)
{
	const char *name = r->args.lookup.what.name;
	struct fdcache_entry *e;
	struct fh_obj dir;
	unsigned got;
	bool found;

	if (vfs_check_name(name) || !strcmp(name, ".") || !strcmp(name, ".."))
		return false;
	e = find_in(r, r->reactor->paths, &dir);
	if (!e)
		return false;
	found = closing_has_room(r->reactor->closer, r->exp->root_dev) && reactor_may_open(r->reactor, r->exp) &&
		(creds_are_own(&r->creds) ||
		 (fdcache_rights(e, nfs3_who(r), &dir.stx, X_OK, &got) && got)) &&
		lookup_in(r, &dir);
	fdcache_put(e);
	return found;
}

void nfs3_quick_drop(struct req *r)
{
	const struct fh_obj *o = &r->found;

	if (o->fd >= 0 && (!r->keeps || !r->exp->limits.answers_at_once ||
			   (r->exp->fh_kind != FH_KERNEL && !S_ISDIR(o->stx.stx_mode))))
		fh_close(&r->found);
}

static void close_found(struct req *r)
{
	closing_add(r->reactor->closer, r->exp->root_dev, r->found.fd);
	r->found.fd = -1;
}

/* Return: the entry of what the worker has found, held, or NULL */
static struct fdcache_entry *keep_found(struct req *r)
{
	struct fh_obj *o = &r->found;
	struct fh fh = { .len = r->args.fh.data.data_len };
	struct store_file file = { .fd = o->fd, .fs = r->exp->root_dev };

	memcpy(fh.data, r->args.fh.data.data_val, fh.len);
	o->fd = -1; /* the cache's, whatever becomes of it */
	return fdcache_insert(r->reactor->paths, &fh, &file, makedev(o->stx.stx_dev_major, o->stx.stx_dev_minor),
			      o->stx.stx_ino);
}

/* Return: the entry that had been kept of what the worker has found, held, or NULL. The handle may mean another file by
 * now. */
static struct fdcache_entry *find_kept(struct req *r)
{
	const struct statx *stx = &r->found.stx;
	const nfs_fh3 *fh = &r->args.fh;
	struct fdcache_entry *e = fdcache_find(r->reactor->paths, fh->data.data_val, fh->data.data_len, false);

	if (!e || (e->ino == stx->stx_ino && e->dev == makedev(stx->stx_dev_major, stx->stx_dev_minor)))
		return e;
	fdcache_put(e);
	return NULL;
}

/** nfs3_quick_keep - what the worker has found may be asked for again */
void nfs3_quick_keep(struct req *r)
{
	struct fdcache_entry *e = NULL;

	if (r->found.fd >= 0 && r->exports != r->reactor->exports) /* of an export that may be gone */
		close_found(r);
	else if (r->found.fd >= 0)
		e = keep_found(r);
	else if (r->asked)
		e = find_kept(r);
	if (!e)
		return;
	if (r->asked)
		fdcache_learn_rights(e, nfs3_who(r), &r->looked, &r->found.stx, r->asked, r->rights);
	fdcache_put(e);
}
