/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * nfs3_fast.c - the fast path: GETATTR, ACCESS and LOOKUP on the reactor, from cached objects
 *
 * Operation: A thread switch to a worker and back costs ten times as much as a GETATTR. So the objects that a worker
 *            has opened for a request stay open for a while in the reactor's cache (nfs3_fast_keep), with the
 *            rights that the kernel has granted the user. The next request is tried on the reactor first.
 *            Nothing on this path waits for a disk: the inode of an open file and its attributes are in memory, and
 *            LOOKUP uses only the kernel's name cache (RESOLVE_CACHED). The worker gets every request that does
 *            not succeed here. It also gets all requests on a file system that may ask another host or a process for
 *            attributes (struct fs_limits).
 *
 *            GETATTR  needs the open file
 *            ACCESS   also needs the rights that the kernel reported for this user since the file's ctime
 *            LOOKUP   needs the right to search the directory. The lookup uses the server's own credentials; if those
 *                     are the user's, the kernel checks the right in the lookup itself
 *
 *            The fast path does not serve objects that their handle no longer leads to: a removed file, and a
 *            directory that was moved out of the export. A handle by name (FH_MAP) of a file is valid only as long as
 *            its name, so only directories of those are cached.
 * Memory:    Allocates nothing; the cache owns its objects.
 * Threads:   The reactor's.
 * Errors:    None of its own: false means "use the worker".
 * See:       fdcache.c; prog.h.
 */
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "nfs.h"
#include "nfs3_conv.h"
#include "nfs3_meta.h"

uint64_t nfs3_user(const struct req *r)
{
	uint64_t h = creds_hash(&r->creds);

	return h ? h : 1; /* 0 is a free slot */
}

static bool is_there(struct req *r, struct fdcache_entry *e, struct fh_obj *ret)
{
	struct nfs_call *call = nfs_call(r);
	struct fh_obj o = { .exp = call->exp, .fd = e->file.fd };

	if (vfs_stat(o.fd, &o.stx) || !o.stx.stx_nlink)
		return false;
	*ret = o;
	return true;
}

/* A directory that was moved out of the export is left to the worker. LOOKUP also checks the file it finds. */
static bool is_inside(const struct req *r, const struct fh_obj *o)
{
	return !S_ISDIR(o->stx.stx_mode) || !fh_check_dir_now(nfs_handles(r), o);
}

/* Return: the entry, held, and in @ret the object that it has open; or NULL */
static struct fdcache_entry *find_in(struct req *r, struct fdcache *c, struct fh_obj *ret)
{
	struct nfs_call *call = nfs_call(r);
	const nfs_fh3 *fh = &call->args.fh;
	struct fdcache_entry *e = NULL;

	if (call->exp->backing.limits.answers_at_once)
		e = fdcache_find(c, fh->data.data_val, fh->data.data_len, false);
	call->cached = e && is_there(r, e, ret);
	if (!e || call->cached)
		return e;
	if (c == call->re->files.paths) /* a removed file keeps its space no longer than it must */
		fdcache_drop_file(c, e->file.dev, e->file.ino);
	fdcache_put(e);
	return NULL;
}

static bool try_getattr(struct req *r)
{
	struct nfs_call *call = nfs_call(r);
	struct fdcache_entry *e;
	struct fh_obj o;
	bool good;

	e = find_in(r, call->re->files.io, &o);
	if (!e)
		e = find_in(r, call->re->files.paths, &o);
	if (!e)
		return false;
	good = is_inside(r, &o);
	if (good)
		nfs3_conv_attr(&o.stx, &call->res.getattr.GETATTR3res_u.resok.obj_attributes);
	fdcache_put(e);
	return good;
}

static bool try_access(struct req *r)
{
	struct nfs_call *call = nfs_call(r);
	ACCESS3resok *ok = &call->res.access.ACCESS3res_u.resok;
	struct fdcache_entry *e;
	struct fh_obj o;
	unsigned got;
	bool known;

	e = find_in(r, call->re->files.paths, &o);
	if (!e)
		return false;
	known = fdcache_rights(e, nfs3_user(r), &o.stx, NFS3_RIGHTS, &got) && is_inside(r, &o);
	if (known) {
		nfs3_conv_post_op(&o.stx, &ok->obj_attributes);
		ok->access = nfs3_access_bits(r, &o.stx, got) & call->args.access.access;
	}
	fdcache_put(e);
	return known;
}

static bool lookup_in(struct req *r, const struct fh_obj *dir)
{
	struct nfs_call *call = nfs_call(r);
	struct fh_obj o;
	int err = fh_lookup_cached(nfs_handles(r), dir, call->args.lookup.what.name, &o);

	if (!err)
		err = nfs3_found(r, dir, &o);
	if (o.fd >= 0)
		closing_add(call->re->files.closer, o.exp->backing.dev, o.fd);
	return !err;
}

static bool try_lookup(struct req *r)
{
	struct nfs_call *call = nfs_call(r);
	const char *name = call->args.lookup.what.name;
	struct fdcache_entry *e;
	struct fh_obj dir;
	unsigned got;
	bool found;

	if (vfs_check_name(name) || !strcmp(name, ".") || !strcmp(name, ".."))
		return false;
	e = find_in(r, call->re->files.paths, &dir);
	if (!e)
		return false;
	found = closing_has_room(call->re->files.closer, call->exp->backing.dev) &&
		files_may_open(&call->re->files, call->exp->backing.dev) &&
		(creds_are_own(&r->creds) ||
		 (fdcache_rights(e, nfs3_user(r), &dir.stx, X_OK, &got) && got)) &&
		lookup_in(r, &dir);
	fdcache_put(e);
	return found;
}

/* What the worker opens may be cached, unless it is cached already or too many files wait to be closed. */
static bool quick(struct req *r, bool done)
{
	struct nfs_call *call = nfs_call(r);

	call->keeps = !done && !call->cached && files_may_open(&call->re->files, call->exp->backing.dev);
	return done;
}

bool nfs3_getattr_fast(struct req *r)
{
	return quick(r, try_getattr(r));
}

bool nfs3_access_fast(struct req *r)
{
	return quick(r, try_access(r));
}

bool nfs3_lookup_fast(struct req *r)
{
	return quick(r, try_lookup(r));
}

/* A file that is created may stay open, if its contents are here; a worker creates it. */
bool nfs3_create_fast(struct req *r)
{
	bool done = quick(r, false);

	if (nfs_call(r)->exp->manager)
		nfs_call(r)->keeps = false;
	return done;
}

void nfs3_fast_drop(struct req *r)
{
	struct nfs_call *call = nfs_call(r);
	const struct fh_obj *o = &call->found;

	if (o->fd >= 0 && (!call->keeps || !call->exp->backing.limits.answers_at_once ||
			   (call->exp->fh_kind != FH_KERNEL && !S_ISDIR(o->stx.stx_mode))))
		fh_close(&call->found);
}

static void close_found(struct req *r)
{
	struct nfs_call *call = nfs_call(r);

	closing_add(call->re->files.closer, call->exp->backing.dev, call->found.fd);
	call->found.fd = -1;
}

/* Return: the new entry of the object that the worker found, held, or NULL */
static struct fdcache_entry *keep_found(struct req *r)
{
	struct nfs_call *call = nfs_call(r);
	struct fh_obj *o = &call->found;
	struct fh fh = { .len = call->args.fh.data.data_len };
	struct store_file file = { .fd = o->fd, .fs = call->exp->backing.dev, .dev = stx_dev(&o->stx), .ino = o->stx.stx_ino };

	memcpy(fh.data, call->args.fh.data.data_val, fh.len);
	o->fd = -1; /* the cache owns it, even on failure */
	return fdcache_insert(call->re->files.paths, &fh, &file);
}

/* Return: the existing entry of the object that the worker found, held, or NULL. The handle may refer to another file
 * by now. */
static struct fdcache_entry *find_kept(struct req *r)
{
	struct nfs_call *call = nfs_call(r);
	const struct statx *stx = &call->found.stx;
	const nfs_fh3 *fh = &call->args.fh;
	struct fdcache_entry *e = fdcache_find(call->re->files.paths, fh->data.data_val, fh->data.data_len, false);

	if (!e || (e->file.ino == stx->stx_ino && e->file.dev == stx_dev(stx)))
		return e;
	fdcache_put(e);
	return NULL;
}

void nfs3_fast_keep(struct req *r)
{
	struct nfs_call *call = nfs_call(r);
	struct fdcache_entry *e = NULL;

	if (call->found.fd >= 0 && call->exports != r->reactor->uses[SERVICE_NFS]) /* the export may be gone */
		close_found(r);
	else if (call->found.fd >= 0)
		e = keep_found(r);
	else if (call->asked)
		e = find_kept(r);
	if (!e)
		return;
	if (call->asked)
		fdcache_learn_rights(e, nfs3_user(r), &call->looked, &call->found.stx, call->asked, call->rights);
	fdcache_put(e);
}
