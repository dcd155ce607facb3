/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * dir.c - reads directories in pages
 *
 * Operation:  A page is what one READDIRPLUS reply holds. leat_aio_opendir(): walk, then the first page, a small one.
 *             leat_aio_dir_read() reads the page after a cookie. leat_readdir() steps through the page and reads the
 *             next one at its end. READDIR is used if the server has no READDIRPLUS, or refuses it for this
 *             directory.
 * Memory:     struct leat_dir: one page, an array of entries and one block of names, reused by each read. Both grow by
 *             doubling up to the size of the largest reply. While a page is filled, each entry holds the offset of
 *             its name; name_entries() replaces offsets with pointers. The codec allocates the results of the two
 *             procedures; they are freed here.
 *             The caller and a read in flight hold a reference each, so leat_closedir() is possible at any time.
 *             struct lt_mount_ref leads to the mount, and to nothing after leat_umount().
 * Threads:    A read runs on the owner's thread, everything else on the caller's.
 * Errors:     Names that contain '/', or a reply without progress: -EREMOTEIO. A failed read leaves an empty page, and
 *             the position of leat_readdir() as it was. A rejected cookie is not repaired here: only the caller knows
 *             which entries it has seen.
 */
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "attr.h"
#include "handle.h"
#include "mount_ref.h"
#include "node.h"
#include "op.h"
#include "removed.h"
#include "sync.h"

#define FIRST_BYTES (32u << 10)
/* READDIRPLUS and READDIR count all of their results; some servers exceed the limit slightly */
#define REPLY_SLACK 128u

struct leat_dir {
	struct lt_mount_ref *mount;
	char *path;          /* for error messages */
	struct lt_fh fh;
	atomic_uint refs;    /* the caller's, and one of a read in flight */
	atomic_bool reading; /* the members below belong to the read in flight */

	cookieverf3 verf;
	uint32_t bytes;      /* of a page */
	bool plain;          /* READDIR instead of READDIRPLUS */
	bool is_first;       /* the page is that of opendir, and no caller has seen it */
	bool eof;            /* no entry follows the page */
	uint32_t listed;     /* entries that went into the cache since the beginning; see lt_call.listed */
	uint64_t from, next; /* cookies: the page begins after @from, and another one after @next */

	struct leat_dirent *ents;
	size_t count, room, at; /* at: the next entry of leat_readdir() */
	char *names;
	size_t names_len, names_room;
};

static void ask(struct lt_op *op);

static void free_dir(struct leat_dir *d)
{
	free(d->ents);
	free(d->names);
	free(d->path);
	lt_mount_ref_put(d->mount);
	free(d);
}

/* Return: whether it was the last reference */
static bool put_dir(struct leat_dir *d)
{
	if (atomic_fetch_sub(&d->refs, 1) != 1)
		return false;
	free_dir(d);
	return true;
}

/* ---- a page ---- */

static void clear_page(struct leat_dir *d, uint64_t cookie)
{
	d->count = d->at = d->names_len = 0;
	d->from = d->next = cookie;
	d->eof = d->is_first = false;
}

/* Makes room for @need items of @bytes. Return: the memory, which may have moved; NULL: no memory, @mem is unchanged */
static void *grow(void *mem, size_t *room, size_t need, size_t bytes)
{
	size_t n = *room ? *room : 64;
	void *p;

	if (need <= *room)
		return mem;
	while (n < need)
		n *= 2;
	p = reallocarray(mem, n, bytes);
	if (p)
		*room = n;
	return p;
}

static void take_stat(const struct leat *m, const entryplus3 *plus, struct stat *ret)
{
	const post_op_fh3 *fh = &plus->name_handle;
	struct lt_fh copy;

	if (fh->handle_follows)
		lt_fh_take(&copy, &fh->post_op_fh3_u.handle);
	lt_attr_stat_of(m, fh->handle_follows ? &copy : NULL, &plus->name_attributes.post_op_attr_u.attributes, ret);
}

/* @plus: the same entry, with attributes, or NULL */
static int add_entry(struct lt_op *op, uint64_t ino, const char *name, uint64_t cookie, const entryplus3 *plus)
{
	struct leat_dir *d = op->dir;
	size_t len = strlen(name) + 1;
	struct leat_dirent *e;
	char *names;

	if (!name[0] || strchr(name, '/') || len > LT_NAME_MAX + 1)
		return -EREMOTEIO;
	e = grow(d->ents, &d->room, d->count + 1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	d->ents = e;
	names = grow(d->names, &d->names_room, d->names_len + len, 1);
	if (!names)
		return -ENOMEM;
	d->names = names;
	memcpy(d->names + d->names_len, name, len);
	e = &d->ents[d->count++];
	memset(e, 0, sizeof(*e));
	e->name = (const char *)(uintptr_t)d->names_len; /* an offset until name_entries() */
	e->ino = ino;
	e->cookie = cookie;
	e->has_stat = plus && plus->name_attributes.attributes_follow;
	if (e->has_stat)
		take_stat(op->task.m, plus, &e->st);
	d->names_len += len;
	d->next = cookie;
	return 0;
}

static void name_entries(struct leat_dir *d)
{
	for (size_t i = 0; i < d->count; i++)
		d->ents[i].name = d->names + (uintptr_t)d->ents[i].name;
}

static int take_plus(struct lt_op *op, const READDIRPLUS3resok *ok)
{
	int rc = 0;

	memcpy(op->dir->verf, ok->cookieverf, sizeof(op->dir->verf));
	op->dir->eof = ok->reply.eof != 0;
	for (const entryplus3 *e = ok->reply.entries; e && !rc; e = e->nextentry) {
		rc = add_entry(op, e->fileid, e->name, e->cookie, e);
		if (!rc)
			lt_removed_sweep(op->task.m, &op->dir->fh, e);
	}
	return rc;
}

static int take_plain(struct lt_op *op, const READDIR3resok *ok)
{
	int rc = 0;

	memcpy(op->dir->verf, ok->cookieverf, sizeof(op->dir->verf));
	op->dir->eof = ok->reply.eof != 0;
	for (const entry3 *e = ok->reply.entries; e && !rc; e = e->nextentry)
		rc = add_entry(op, e->fileid, e->name, e->cookie, NULL);
	return rc;
}

/* A page is progress if the next one begins elsewhere. Cookie 0 is the beginning of the directory. */
static int take_page(struct lt_op *op)
{
	struct leat_dir *d = op->dir;
	int rc = d->plain ? take_plain(op, &op->res.readdir.READDIR3res_u.resok) :
			    take_plus(op, &op->res.readdirplus.READDIRPLUS3res_u.resok);

	if (!rc && !d->eof && (!d->count || d->next == d->from || !d->next))
		rc = -EREMOTEIO;
	if (rc == -EREMOTEIO)
		lt_task_explain(&op->task, rc, lt_call_name(&op->call), "a reply that makes no sense");
	if (!rc)
		name_entries(d);
	return rc;
}

/* ---- the calls ---- */

static void end_opendir(struct lt_op *op, int err)
{
	struct leat_dir *d = op->dir;

	if (err) {
		free_dir(d);
		lt_op_finish(op, err);
		return;
	}
	d->is_first = true;
	*op->ret_dir = d;
	lt_op_finish(op, 0);
}

static void end_read(struct lt_op *op, int err)
{
	struct leat_dir *d = op->dir;
	int64_t result = err ? err : (int64_t)d->count;

	atomic_store(&d->reading, false);
	if (put_dir(d))
		result = -ECANCELED; /* closed meanwhile */
	lt_op_finish(op, result);
}

static void end_page(struct lt_op *op, int err)
{
	if (err)
		clear_page(op->dir, op->dir->from);
	if (op->ret_dir)
		end_opendir(op, err);
	else
		end_read(op, err);
}

/* Return: whether another procedure or a larger page may avoid the failure. */
static bool ask_otherwise(struct lt_op *op, int err)
{
	struct leat_dir *d = op->dir;
	uint32_t status = op->call.status;

	if (!d->plain && (status == NFS3ERR_NOTSUPP || err == -EOPNOTSUPP))
		d->plain = true;
	else if (status == NFS3ERR_TOOSMALL && d->bytes < op->task.m->dirsize)
		d->bytes = op->task.m->dirsize;
	else
		return false;
	ask(op);
	return true;
}

static void replied(struct lt_op *op, int err)
{
	struct leat_dir *d = op->dir;
	int rc = err ? err : take_page(op);

	xdr_free(d->plain ? (xdrproc_t)xdr_READDIR3res : (xdrproc_t)xdr_READDIRPLUS3res, &op->res);
	if (err && ask_otherwise(op, err))
		return;
	d->bytes = op->task.m->dirsize;
	d->listed = op->call.listed;
	end_page(op, rc);
}

static void ask(struct lt_op *op)
{
	struct leat_dir *d = op->dir;

	op->call.listed = d->listed;
	memset(&op->res, 0, sizeof(op->res)); /* replied() frees them even if a cancel prevents the call */
	if (d->plain) {
		READDIR3args *args = &op->args.readdir;

		args->dir = lt_fh_wire(&d->fh);
		args->cookie = d->from;
		memcpy(args->cookieverf, d->verf, sizeof(d->verf));
		args->count = d->bytes;
		lt_op_call_dir(op, NFSPROC3_READDIR, d->bytes + REPLY_SLACK, replied);
	} else {
		READDIRPLUS3args *args = &op->args.readdirplus;

		args->dir = lt_fh_wire(&d->fh);
		args->cookie = d->from;
		memcpy(args->cookieverf, d->verf, sizeof(d->verf));
		args->dircount = d->bytes;
		args->maxcount = d->bytes;
		lt_op_call_dir(op, NFSPROC3_READDIRPLUS, d->bytes + REPLY_SLACK, replied);
	}
}

/* ---- open ---- */

static int create_dir(const struct lt_op *op, struct leat_dir **ret)
{
	struct leat_dir *d = calloc(1, sizeof(*d));
	int rc;

	if (!d)
		return -ENOMEM;
	rc = lt_op_name(op, &d->path);
	if (rc) {
		free(d);
		return rc;
	}
	d->mount = lt_mount_ref_get(op->task.m->ref);
	d->fh = op->walk.fh;
	d->bytes = MIN(FIRST_BYTES, op->task.m->dirsize);
	atomic_init(&d->refs, 1);
	atomic_init(&d->reading, false);
	*ret = d;
	return 0;
}

static void opendir_typed(struct lt_op *op, int err)
{
	if (!err && op->walk.attr.type != NF3DIR)
		err = -ENOTDIR;
	if (!err)
		err = create_dir(op, &op->dir);
	if (err)
		lt_op_finish(op, err);
	else
		ask(op);
}

static int submit_opendir(struct lt_from from, const char *path, struct leat_dir **ret_dir, struct leat_cb cb)
{
	struct lt_op *op;
	int rc;

	rc = lt_op_create_from(from, "opendir", path, NULL, cb, &op);
	if (rc)
		return rc;
	op->ret_dir = ret_dir;
	op->fresh = true;
	return lt_walk_submit_typed(op, LT_WALK_FOLLOW, opendir_typed);
}

int leat_aio_opendir(struct leat *m, const char *path, struct leat_dir **ret_dir,
		     struct leat_cb cb)
{
	return submit_opendir(lt_from_mount(m), path, ret_dir, cb);
}

int leat_aio_node_opendir(struct leat_node *at, const char *path, struct leat_dir **ret_dir, struct leat_cb cb)
{
	return submit_opendir(lt_from_node(at), path, ret_dir, cb);
}

/* ---- read ---- */

/* Does the page in memory answer the request? */
static bool has_page(struct leat_dir *d, uint64_t cookie)
{
	if (d->is_first && !cookie) {
		d->is_first = false;
		d->at = 0;
		return true;
	}
	if (d->eof && cookie && cookie == d->next) {
		clear_page(d, cookie);
		d->eof = true;
		return true;
	}
	return false;
}

static void read_start(struct lt_op *op, int err)
{
	struct leat_dir *d = op->dir;

	(void)err; /* a first step */
	if (has_page(d, op->seq)) {
		end_read(op, 0);
		return;
	}
	clear_page(d, op->seq);
	if (!op->seq) {
		memset(d->verf, 0, sizeof(d->verf));
		d->listed = 0;
	}
	ask(op);
}

/* Return: 0; -EBADF: no directory; -ESTALE: its mount has ended; -EOWNERDEAD */
static int find_mount(const struct leat_dir *d, struct leat **ret)
{
	if (!d)
		return -EBADF;
	*ret = atomic_load_explicit(&d->mount->m, memory_order_acquire);
	return *ret ? lt_session_check((*ret)->session) : -ESTALE;
}

int leat_aio_dir_read(struct leat_dir *d, uint64_t cookie, struct leat_cb cb)
{
	struct lt_op *op;
	struct leat *m;
	int rc = find_mount(d, &m);

	if (rc)
		return lt_task_refuse(cb, rc);
	if (atomic_exchange(&d->reading, true))
		return lt_task_refuse(cb, -EBUSY);
	rc = lt_op_create(m, "readdir", d->path, NULL, cb, &op);
	if (rc) {
		atomic_store(&d->reading, false);
		return rc;
	}
	atomic_fetch_add(&d->refs, 1);
	op->dir = d;
	op->seq = cookie;
	return lt_op_submit(op, read_start);
}

ssize_t leat_dir_read(struct leat_dir *d, uint64_t cookie)
{
	struct leat *m;
	int rc = find_mount(d, &m);

	return rc ? rc : (ssize_t)LT_WAIT_FOR(m, leat_aio_dir_read(d, cookie, w.cb));
}

const struct leat_dirent *leat_dir_entry(const struct leat_dir *d, size_t i)
{
	return !d || atomic_load(&d->reading) || i >= d->count ? NULL : &d->ents[i];
}

int leat_readdir(struct leat_dir *d, const struct leat_dirent **ret)
{
	struct leat *m;
	ssize_t n = find_mount(d, &m);

	if (n)
		return (int)n;
	if (atomic_load(&d->reading))
		return -EBUSY;
	d->is_first = false;
	if (d->at >= d->count) {
		n = d->eof ? 0 : leat_dir_read(d, d->next);
		if (n <= 0)
			return (int)n;
	}
	*ret = &d->ents[d->at++];
	return 1;
}

/* ---- rewind and close ---- */

int leat_rewinddir(struct leat_dir *d)
{
	struct leat *m;
	int rc = find_mount(d, &m);

	if (rc)
		return rc;
	if (atomic_load(&d->reading))
		return -EBUSY;
	clear_page(d, 0);
	return 0;
}

void leat_closedir(struct leat_dir *d)
{
	if (d)
		put_dir(d);
}
