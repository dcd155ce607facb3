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
#include <stddef.h>

#include "cache.h"
#include "grown.h"
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

#define AS_CREATE(proc)                                                                                      \
	(offsetof(proc##res, proc##res_u) == offsetof(CREATE3res, CREATE3res_u) &&                           \
	 offsetof(proc##resok, obj) == offsetof(CREATE3resok, obj) &&                                        \
	 offsetof(proc##resok, obj_attributes) == offsetof(CREATE3resok, obj_attributes) &&                  \
	 offsetof(proc##resok, dir_wcc) == offsetof(CREATE3resok, dir_wcc))

_Static_assert(AS_CREATE(MKDIR3) && AS_CREATE(SYMLINK3) && AS_CREATE(MKNOD3), "lt_walk_made() reads all of them, too");

/* @ok: CREATE3resok, or the results of MKDIR, SYMLINK, MKNOD, which differ only in type names */
static void feed_made(const struct feed *f, const diropargs3 *where, const char *ok)
{
	const post_op_fh3 *obj = (const void *)(ok + offsetof(CREATE3resok, obj));
	bool known = f->ok && obj->handle_follows, current;

	if (known)
		take(f, obj->post_op_fh3_u.handle, (const void *)(ok + offsetof(CREATE3resok, obj_attributes)));
	current = take_wcc(f, where->dir, (const void *)(ok + (f->ok ? offsetof(CREATE3resok, dir_wcc) : 0)));
	lt_cache_take_name(f->c, where->dir, where->name,
			   current && known ? LT_CACHE_THERE : LT_CACHE_UNKNOWN,
			   known ? &obj->post_op_fh3_u.handle : NULL, &f->call);
}

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

/* What the cache takes from a reply */
enum feed_kind {
	FEED_NOTHING,
	FEED_FATTR,   /* fattr3 of the object */
	FEED_ATTR,    /* post_op_attr of the object */
	FEED_WCC,     /* wcc_data of the object */
	FEED_MADE,    /* a new object, and wcc_data of its directory */
	FEED_REMOVED, /* wcc_data of the directory that lost a name */
	FEED_LOOKUP, FEED_LINK, FEED_RENAME, FEED_READDIRPLUS,
};

/* A procedure. Arguments begin with the handle of the object, or with its directory and name.
 * @at: offset of what is taken in the results, equal for both outcomes
 */
struct row {
	enum feed_kind kind;
	size_t at;
};

#define ROW(proc, member, kind) { kind, offsetof(proc##res, proc##res_u.resok.member) }

static const struct row rows[] = {
	[NFSPROC3_GETATTR] = ROW(GETATTR3, obj_attributes, FEED_FATTR),
	[NFSPROC3_SETATTR] = ROW(SETATTR3, obj_wcc, FEED_WCC),
	[NFSPROC3_LOOKUP] = { FEED_LOOKUP, 0 },
	[NFSPROC3_ACCESS] = ROW(ACCESS3, obj_attributes, FEED_ATTR),
	[NFSPROC3_READLINK] = ROW(READLINK3, symlink_attributes, FEED_ATTR),
	[NFSPROC3_READ] = ROW(READ3, file_attributes, FEED_ATTR),
	[NFSPROC3_WRITE] = ROW(WRITE3, file_wcc, FEED_WCC),
	[NFSPROC3_CREATE] = ROW(CREATE3, obj, FEED_MADE),
	[NFSPROC3_MKDIR] = ROW(MKDIR3, obj, FEED_MADE),
	[NFSPROC3_SYMLINK] = ROW(SYMLINK3, obj, FEED_MADE),
	[NFSPROC3_MKNOD] = ROW(MKNOD3, obj, FEED_MADE),
	[NFSPROC3_REMOVE] = ROW(REMOVE3, dir_wcc, FEED_REMOVED),
	[NFSPROC3_RMDIR] = ROW(RMDIR3, dir_wcc, FEED_REMOVED),
	[NFSPROC3_RENAME] = { FEED_RENAME, 0 },
	[NFSPROC3_LINK] = { FEED_LINK, 0 },
	[NFSPROC3_READDIR] = ROW(READDIR3, dir_attributes, FEED_ATTR),
	[NFSPROC3_READDIRPLUS] = { FEED_READDIRPLUS, 0 },
	[NFSPROC3_COMMIT] = ROW(COMMIT3, file_wcc.after, FEED_ATTR),
};

static const struct row acl_rows[] = {
	[NFSACLPROC3_GETACL] = ROW(GETACL3, obj_attributes, FEED_ATTR),
	[NFSACLPROC3_SETACL] = ROW(SETACL3, obj_attributes, FEED_ATTR),
};

static const struct row space_rows[] = {
	[SPACEPROC_ALLOCATE] = ROW(ALLOCATE3, obj_wcc, FEED_WCC),
	[SPACEPROC_SEEK] = ROW(SEEK3, obj_attributes, FEED_ATTR),
};

static const struct row *row_of(const struct lt_call *call)
{
	switch (call->rpc.prog) {
	case NFSACL_PROGRAM:
		return &acl_rows[call->rpc.proc];
	case LEAT_SPACE:
		return &space_rows[call->rpc.proc];
	default:
		return &rows[call->rpc.proc];
	}
}

static void feed(const struct feed *f, const struct row *row, struct lt_call *call)
{
	const void *args = call->rpc.args, *res = call->rpc.res, *at = (const char *)res + row->at;
	const nfs_fh3 *fh = args;

	switch (row->kind) {
	case FEED_NOTHING:
		break;
	case FEED_FATTR:
		if (f->ok)
			lt_cache_take_attr(f->c, *fh, at, NULL, &f->call);
		break;
	case FEED_ATTR:
		take(f, *fh, at);
		break;
	case FEED_WCC:
		take_wcc(f, *fh, at);
		break;
	case FEED_MADE:
		feed_made(f, args, at);
		break;
	case FEED_REMOVED:
		feed_removed(f, args, at);
		break;
	case FEED_LOOKUP:
		feed_lookup(f, args, res);
		break;
	case FEED_LINK:
		feed_link(f, args, res);
		break;
	case FEED_RENAME:
		feed_rename(f, args, res);
		break;
	case FEED_READDIRPLUS:
		feed_readdirplus(f, args, res, &call->listed);
		break;
	}
}

void lt_cache_sent(struct lt_call *call)
{
	struct leat *m = call->m;

	if (!m->cache)
		return;
	call->stamp = lt_cache_stamp(m->cache);
	call->sent_ns = lt_handle_now(m);
}

/* What this client has written to a striped file, and not reported, may have been cut. */
static void note_size(const struct lt_call *call)
{
	const SETATTR3args *args = call->rpc.args;
	struct lt_fh fh;

	if (call->rpc.prog != NFS_PROGRAM || call->rpc.proc != NFSPROC3_SETATTR || !args->new_attributes.size.set_it)
		return;
	lt_fh_take(&fh, &args->object);
	lt_grown_cut(call->m, &fh, args->new_attributes.size.set_size3_u.size);
}

/* Requires @call->status. */
void lt_cache_reply(struct lt_call *call, int err)
{
	const struct row *row = row_of(call);
	struct leat *m = call->m;
	const struct feed f = {
		.c = m->cache,
		.now = m->cache ? lt_handle_now(m) : 0,
		.call = { call->stamp, call->sent_ns, lt_call_changes(call) },
		.failed = err != 0,
		.ok = !err && call->status == NFS3_OK,
	};

	if (unlikely(m->volume) && !err && call->status == NFS3_OK)
		note_size(call);
	if (!m->cache)
		return;
	if (call->status == NFS3ERR_STALE) {
		nfs_fh3 fh;

		memcpy(&fh, call->rpc.args, sizeof(fh)); /* all arguments begin with a handle */
		lt_cache_doubt(m->cache, fh);
	}
	if (!err || f.call.ours)
		feed(&f, row, call);
}
