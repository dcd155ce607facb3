/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * dir.c - reads whole directories
 *
 * Operation:  leat_aio_opendir(): walk, then a sequence of READDIRPLUS calls from cookie to cookie, a
 *             small one first, then large ones. READDIR is used if the server has no READDIRPLUS, or
 *             refuses it for this directory. If the server rejects a cookie (BAD_COOKIE: the order has
 *             changed), reading restarts. leat_readdir() only steps through the array.
 * Memory:     struct leat_dir: an array of entries and one block of names. Both grow by doubling, so a
 *             million entries take linear time. While the array grows, each entry holds the offset of its
 *             name; finish() replaces offsets with pointers. The codec allocates the results of these two
 *             procedures; they are freed here.
 * Threads:    Reading runs on the owner's thread; afterwards the directory belongs to the caller.
 * Errors:     Names that contain '/', or a reply without progress: -EREMOTEIO.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "attr.h"
#include "handle.h"
#include "node.h"
#include "op.h"

#define FIRST_BYTES (32u << 10)
#define RESTARTS_MAX 3u
/* READDIRPLUS and READDIR count all of their results; some servers exceed the limit slightly */
#define REPLY_SLACK 128u

struct leat_dir {
	struct leat_dirent *ents;
	size_t count, room, at;
	char *names;
	size_t names_len, names_room;

	/* used while the directory is read */
	struct leat *m;
	struct lt_fh fh;
	uint64_t cookie;
	cookieverf3 verf;
	bool plain;          /* READDIR instead of READDIRPLUS */
	uint32_t bytes;
};

static void ask(struct lt_op *op);

static void free_dir(struct leat_dir *d)
{
	if (!d)
		return;
	free(d->ents);
	free(d->names);
	free(d);
}

static void finish(struct lt_op *op, int err)
{
	struct leat_dir *d = op->dir;

	if (err) {
		free_dir(d);
		lt_op_finish(op, err);
		return;
	}
	for (size_t i = 0; i < d->count; i++)
		d->ents[i].name = d->names + (uintptr_t)d->ents[i].name;
	*op->ret_dir = d;
	lt_op_finish(op, 0);
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

static int add_entry(struct leat_dir *d, uint64_t ino, const char *name, uint64_t cookie,
		     const post_op_attr *attr)
{
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
	e->name = (const char *)(uintptr_t)d->names_len; /* an offset until finish() */
	e->ino = ino;
	e->cookie = cookie;
	e->has_stat = attr && attr->attributes_follow;
	if (e->has_stat)
		lt_attr_stat(&attr->post_op_attr_u.attributes, d->m->rsize, &e->st);
	d->names_len += len;
	d->cookie = cookie;
	return 0;
}

/* Return: 1: end of the directory; 0: more to read; -errno. */
static int take_plus(struct leat_dir *d, const READDIRPLUS3resok *ok)
{
	int rc = 0;

	memcpy(d->verf, ok->cookieverf, sizeof(d->verf));
	for (const entryplus3 *e = ok->reply.entries; e && !rc; e = e->nextentry)
		rc = add_entry(d, e->fileid, e->name, e->cookie, &e->name_attributes);
	return rc ? rc : ok->reply.eof != 0;
}

static int take_plain(struct leat_dir *d, const READDIR3resok *ok)
{
	int rc = 0;

	memcpy(d->verf, ok->cookieverf, sizeof(d->verf));
	for (const entry3 *e = ok->reply.entries; e && !rc; e = e->nextentry)
		rc = add_entry(d, e->fileid, e->name, e->cookie, NULL);
	return rc ? rc : ok->reply.eof != 0;
}

static int take_entries(struct lt_op *op)
{
	struct leat_dir *d = op->dir;
	uint64_t cookie = d->cookie;
	size_t count = d->count;
	int rc = d->plain ? take_plain(d, &op->res.readdir.READDIR3res_u.resok) :
			    take_plus(d, &op->res.readdirplus.READDIRPLUS3res_u.resok);

	return !rc && (d->count == count || d->cookie == cookie) ? -EREMOTEIO : rc;
}

static void start_over(struct leat_dir *d)
{
	d->count = 0;
	d->names_len = 0;
	d->cookie = 0;
	memset(d->verf, 0, sizeof(d->verf));
}

/* Return: whether another procedure or a restart may avoid the failure. */
static bool ask_otherwise(struct lt_op *op, int err)
{
	struct leat_dir *d = op->dir;
	uint32_t status = op->call.status;

	if (!d->plain && (status == NFS3ERR_NOTSUPP || err == -EOPNOTSUPP)) {
		d->plain = true;
		start_over(d);
	} else if (status == NFS3ERR_BAD_COOKIE && op->tries < RESTARTS_MAX) {
		op->tries++;
		start_over(d);
	} else if (status == NFS3ERR_TOOSMALL && d->bytes < op->task.m->dirsize) {
		d->bytes = op->task.m->dirsize;
	} else {
		return false;
	}
	ask(op);
	return true;
}

static void replied(struct lt_op *op, int err)
{
	struct leat_dir *d = op->dir;
	int rc = err ? err : take_entries(op);

	xdr_free(d->plain ? (xdrproc_t)xdr_READDIR3res : (xdrproc_t)xdr_READDIRPLUS3res, &op->res);
	if (err && ask_otherwise(op, err))
		return;
	if (rc) {
		if (!err && rc == -EREMOTEIO)
			lt_task_explain(&op->task, rc, lt_call_name(&op->call),
					"a reply that makes no sense");
		finish(op, rc < 0 ? rc : 0);
		return;
	}
	d->bytes = op->task.m->dirsize;
	ask(op);
}

static void ask(struct lt_op *op)
{
	struct leat_dir *d = op->dir;

	if (d->plain) {
		READDIR3args *args = &op->args.readdir;

		args->dir = lt_fh_wire(&d->fh);
		args->cookie = d->cookie;
		memcpy(args->cookieverf, d->verf, sizeof(d->verf));
		args->count = d->bytes;
		lt_op_call_dir(op, NFSPROC3_READDIR, d->bytes + REPLY_SLACK, replied);
	} else {
		READDIRPLUS3args *args = &op->args.readdirplus;

		args->dir = lt_fh_wire(&d->fh);
		args->cookie = d->cookie;
		memcpy(args->cookieverf, d->verf, sizeof(d->verf));
		args->dircount = d->bytes;
		args->maxcount = d->bytes;
		lt_op_call_dir(op, NFSPROC3_READDIRPLUS, d->bytes + REPLY_SLACK, replied);
	}
}

static void opendir_typed(struct lt_op *op, int err)
{
	struct leat_dir *d;

	if (!err && op->walk.attr.type != NF3DIR)
		err = -ENOTDIR;
	d = err ? NULL : calloc(1, sizeof(*d));
	if (!d) {
		lt_op_finish(op, err ? err : -ENOMEM);
		return;
	}
	d->m = op->task.m;
	d->fh = op->walk.fh;
	d->bytes = MIN(FIRST_BYTES, d->m->dirsize);
	op->dir = d;
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

const struct leat_dirent *leat_readdir(struct leat_dir *d)
{
	return d->at < d->count ? &d->ents[d->at++] : NULL;
}

/* Moves to the first entry; does not read the directory again. */
void leat_rewinddir(struct leat_dir *d)
{
	d->at = 0;
}

void leat_closedir(struct leat_dir *d)
{
	free_dir(d);
}
