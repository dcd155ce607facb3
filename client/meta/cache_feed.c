/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * cache_feed.c - updates the cache from NFS replies
 *
 * Operation:  call.c stamps each call with lt_cache_sent() and passes its results to lt_cache_reply()
 *             before any other code uses them. Only this file knows which attributes each procedure
 *             carries. A call that changes something and failed in transit may have been executed: its
 *             objects are invalidated.
 * Memory:     None; arguments and results belong to the call.
 * Threads:    The handle's owner.
 * Errors:     None.
 */
#include "cache.h"
#include "handle.h"
#include "path.h"

#define LISTED_MAX (LT_CACHE_ENTRIES / 4)

struct feed {
	struct lt_cache *c;
	uint64_t now;
	struct lt_cache_call call;
	bool failed;   /* no results: they must not be read */
	bool ok;       /* NFS3_OK */
};

static bool take(const struct feed *f, nfs_fh3 fh, const post_op_attr *a)
{
	bool has = !f->failed && a->attributes_follow;

	return lt_cache_take_attr(f->c, fh, has ? &a->post_op_attr_u.attributes : NULL, NULL,
				  &f->call);
}

static bool take_wcc(const struct feed *f, nfs_fh3 fh, const wcc_data *w)
{
	const fattr3 *a = NULL;
	const wcc_attr *before = NULL;

	if (!f->failed && w->after.attributes_follow)
		a = &w->after.post_op_attr_u.attributes;
	if (!f->failed && w->before.attributes_follow)
		before = &w->before.pre_op_attr_u.attributes;
	return lt_cache_take_attr(f->c, fh, a, before, &f->call);
}

static void feed_lookup(const struct feed *f, const LOOKUP3args *args, const LOOKUP3res *res)
{
	const LOOKUP3resok *ok = &res->LOOKUP3res_u.resok;
	nfs_fh3 dir = args->what.dir;
	bool current;

	if (f->failed)
		return;
	if (f->ok)
		take(f, ok->object, &ok->obj_attributes);
	current = take(f, dir, f->ok ? &ok->dir_attributes :
				       &res->LOOKUP3res_u.resfail.dir_attributes);
	if (!current || !strcmp(args->what.name, ".."))
		return;
	if (f->ok)
		lt_cache_take_name(f->c, dir, args->what.name, LT_CACHE_THERE, &ok->object,
				   &f->call);
	else if (res->status == NFS3ERR_NOENT)
		lt_cache_take_name(f->c, dir, args->what.name, LT_CACHE_MISSING, NULL, &f->call);
}

/* CREATE, MKDIR, SYMLINK, MKNOD: their results differ only in type names. */
static void feed_made(const struct feed *f, const diropargs3 *where, const post_op_fh3 *obj,
		      const post_op_attr *attr, const wcc_data *dir_wcc)
{
	bool known = f->ok && obj->handle_follows, current;

	if (known)
		take(f, obj->post_op_fh3_u.handle, attr);
	current = take_wcc(f, where->dir, dir_wcc);
	lt_cache_take_name(f->c, where->dir, where->name,
			   current && known ? LT_CACHE_THERE : LT_CACHE_UNKNOWN,
			   known ? &obj->post_op_fh3_u.handle : NULL, &f->call);
}

#define FEED_MADE(f, where, u)                                                                      \
	feed_made(f, where, &(u).resok.obj, &(u).resok.obj_attributes,                              \
		  (f)->ok ? &(u).resok.dir_wcc : &(u).resfail.dir_wcc)

static void feed_removed(const struct feed *f, const diropargs3 *what, const wcc_data *dir_wcc)
{
	bool current;

	lt_cache_doubt_name(f->c, what->dir, what->name, f->now);
	current = take_wcc(f, what->dir, dir_wcc);
	lt_cache_take_name(f->c, what->dir, what->name,
			   current && f->ok ? LT_CACHE_MISSING : LT_CACHE_UNKNOWN, NULL, &f->call);
}

static void feed_rename(const struct feed *f, const RENAME3args *args, const RENAME3res *res)
{
	/* same layout for both outcomes */
	const wcc_data *from_wcc = &res->RENAME3res_u.resok.fromdir_wcc;
	const wcc_data *to_wcc = &res->RENAME3res_u.resok.todir_wcc;
	nfs_fh3 from = args->from.dir, to = args->to.dir, moved_fh;
	struct lt_fh moved;
	bool known = lt_cache_name(f->c, from, args->from.name, f->now, &moved) == LT_CACHE_THERE;
	bool from_current, to_current;

	lt_cache_doubt_name(f->c, from, args->from.name, f->now);
	lt_cache_doubt_name(f->c, to, args->to.name, f->now);
	from_current = take_wcc(f, from, from_wcc) && f->ok;
	to_current = take_wcc(f, to, to_wcc) && f->ok;
	lt_cache_take_name(f->c, from, args->from.name,
			   from_current ? LT_CACHE_MISSING : LT_CACHE_UNKNOWN, NULL, &f->call);
	if (known)
		moved_fh = lt_fh_wire(&moved);
	lt_cache_take_name(f->c, to, args->to.name,
			   to_current && known ? LT_CACHE_THERE : LT_CACHE_UNKNOWN,
			   known ? &moved_fh : NULL, &f->call);
}

static void feed_link(const struct feed *f, const LINK3args *args, const LINK3res *res)
{
	/* same layout for both outcomes */
	const LINK3resok *ok = &res->LINK3res_u.resok;
	nfs_fh3 file = args->file;
	bool current;

	take(f, file, &ok->file_attributes);
	current = take_wcc(f, args->link.dir, &ok->linkdir_wcc) && f->ok;
	lt_cache_take_name(f->c, args->link.dir, args->link.name,
			   current ? LT_CACHE_THERE : LT_CACHE_UNKNOWN, &file, &f->call);
}

/* Stores entries of one listing, at most as many as leave room for others; @listed counts them. Names longer than
 * this client accepts are skipped, because they are never looked up.
 */
static void feed_readdirplus(const struct feed *f, const READDIRPLUS3args *args,
			     const READDIRPLUS3res *res, uint32_t *listed)
{
	const READDIRPLUS3resok *ok = &res->READDIRPLUS3res_u.resok;

	if (f->failed)
		return;
	if (!take(f, args->dir, f->ok ? &ok->dir_attributes :
					&res->READDIRPLUS3res_u.resfail.dir_attributes) || !f->ok)
		return;
	for (const entryplus3 *e = ok->reply.entries; e && *listed < LISTED_MAX; e = e->nextentry) {
		if (!e->name_handle.handle_follows || !strcmp(e->name, ".") ||
		    !strcmp(e->name, "..") || strlen(e->name) > LT_NAME_MAX)
			continue;
		++*listed;
		take(f, e->name_handle.post_op_fh3_u.handle, &e->name_attributes);
		lt_cache_take_name(f->c, args->dir, e->name, LT_CACHE_THERE,
				   &e->name_handle.post_op_fh3_u.handle, &f->call);
	}
}

static void feed_change(const struct feed *f, uint32_t proc, const void *args, const void *res)
{
	switch (proc) {
	case NFSPROC3_SETATTR: /* SETATTR and WRITE begin with the same fields in both outcomes */
		take_wcc(f, ((const SETATTR3args *)args)->object,
			 &((const SETATTR3res *)res)->SETATTR3res_u.resok.obj_wcc);
		break;
	case NFSPROC3_WRITE:
		take_wcc(f, ((const WRITE3args *)args)->file,
			 &((const WRITE3res *)res)->WRITE3res_u.resok.file_wcc);
		break;
	case NFSPROC3_CREATE:
		FEED_MADE(f, &((const CREATE3args *)args)->where,
			  ((const CREATE3res *)res)->CREATE3res_u);
		break;
	case NFSPROC3_MKDIR:
		FEED_MADE(f, &((const MKDIR3args *)args)->where,
			  ((const MKDIR3res *)res)->MKDIR3res_u);
		break;
	case NFSPROC3_SYMLINK:
		FEED_MADE(f, &((const SYMLINK3args *)args)->where,
			  ((const SYMLINK3res *)res)->SYMLINK3res_u);
		break;
	case NFSPROC3_MKNOD:
		FEED_MADE(f, &((const MKNOD3args *)args)->where,
			  ((const MKNOD3res *)res)->MKNOD3res_u);
		break;
	case NFSPROC3_REMOVE: /* same layout for both outcomes, and for RMDIR */
		feed_removed(f, &((const REMOVE3args *)args)->object,
			     &((const REMOVE3res *)res)->REMOVE3res_u.resok.dir_wcc);
		break;
	case NFSPROC3_RMDIR:
		feed_removed(f, &((const RMDIR3args *)args)->object,
			     &((const RMDIR3res *)res)->RMDIR3res_u.resok.dir_wcc);
		break;
	case NFSPROC3_RENAME:
		feed_rename(f, args, res);
		break;
	case NFSPROC3_LINK:
		feed_link(f, args, res);
		break;
	default:
		break;
	}
}

static void feed_look(const struct feed *f, struct lt_call *call, const void *args, const void *res)
{
	const GETATTR3res *got = res;

	switch (call->proc) {
	case NFSPROC3_GETATTR:
		if (f->ok)
			lt_cache_take_attr(f->c, ((const GETATTR3args *)args)->object,
					   &got->GETATTR3res_u.resok.obj_attributes, NULL,
					   &f->call);
		break;
	case NFSPROC3_LOOKUP:
		feed_lookup(f, args, res);
		break;
	case NFSPROC3_ACCESS: /* all of these begin with the same fields in both outcomes */
		take(f, ((const ACCESS3args *)args)->object,
		     &((const ACCESS3res *)res)->ACCESS3res_u.resok.obj_attributes);
		break;
	case NFSPROC3_READLINK:
		take(f, ((const READLINK3args *)args)->symlink,
		     &((const READLINK3res *)res)->READLINK3res_u.resok.symlink_attributes);
		break;
	case NFSPROC3_READ:
		take(f, ((const READ3args *)args)->file,
		     &((const READ3res *)res)->READ3res_u.resok.file_attributes);
		break;
	case NFSPROC3_READDIR:
		take(f, ((const READDIR3args *)args)->dir,
		     &((const READDIR3res *)res)->READDIR3res_u.resok.dir_attributes);
		break;
	case NFSPROC3_READDIRPLUS:
		feed_readdirplus(f, args, res, &call->listed);
		break;
	case NFSPROC3_COMMIT:
		take(f, ((const COMMIT3args *)args)->file,
		     &((const COMMIT3res *)res)->COMMIT3res_u.resok.file_wcc.after);
		break;
	default:
		break;
	}
}

static bool is_change(const struct lt_call *call)
{
	if (call->rpc.prog == NFSACL_PROGRAM)
		return call->proc == NFSACLPROC3_SETACL;
	switch (call->proc) {
	case NFSPROC3_SETATTR:
	case NFSPROC3_WRITE:
	case NFSPROC3_CREATE:
	case NFSPROC3_MKDIR:
	case NFSPROC3_SYMLINK:
	case NFSPROC3_MKNOD:
	case NFSPROC3_REMOVE:
	case NFSPROC3_RMDIR:
	case NFSPROC3_RENAME:
	case NFSPROC3_LINK:
		return true;
	default:
		return false;
	}
}

void lt_cache_sent(struct lt_call *call)
{
	struct leat *m = call->m;

	if (!m->cache)
		return;
	call->stamp = lt_cache_stamp(m->cache);
	call->sent_ns = m->clock();
}

/* Requires @call->status. */
void lt_cache_reply(struct lt_call *call, int err)
{
	struct leat *m = call->m;
	const struct feed f = {
		.c = m->cache,
		.now = m->cache ? m->clock() : 0,
		.call = { call->stamp, call->sent_ns, is_change(call) },
		.failed = err != 0,
		.ok = !err && call->status == NFS3_OK,
	};

	if (!m->cache)
		return;
	if (call->status == NFS3ERR_STALE) {
		nfs_fh3 fh;

		memcpy(&fh, call->rpc.args, sizeof(fh)); /* all arguments begin with a handle */
		lt_cache_doubt(m->cache, fh);
	}
	if (call->rpc.prog == NFSACL_PROGRAM)
		/* the arguments and results of both procedures begin with the same fields */
		take(&f, ((const GETACL3args *)call->rpc.args)->object,
		     &((const GETACL3res *)call->rpc.res)->GETACL3res_u.resok.obj_attributes);
	else if (f.call.ours)
		feed_change(&f, call->proc, call->rpc.args, call->rpc.res);
	else if (!err)
		feed_look(&f, call, call->rpc.args, call->rpc.res);
}
