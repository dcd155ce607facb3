/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * drive.c - a client of the power cut tester: single NFS calls, so that stability and verifiers are its own
 *
 * Operation: one call at a time, logged before and after (cut.h). What is asked is chosen from what the
 *            picture allows, so that every answer has to be NFS3_OK; the one exception is a server whose
 *            disk fails.
 * Memory:    a connection owns its engine and the handles of the files it made.
 * Threads:   one per connection.
 * Errors:    an answer that cannot be ends the thread; a connection that is gone only ends it.
 */
#include "cut.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "base/wire.h"
#include "mount3.h"
#include "nfs3.h"

#define CALL_MS 20000
#define FEW_SLOTS 3u /* so that what comes after a failure concerns the same file */

struct handle {
	uint32_t len;
	char data[NFS3_FHSIZE];
};

struct cut_conn {
	struct rpcrdma_domain *domain;
	struct rpcrdma_engine *engine;
	struct rpcrdma_clnt *clnt;
	struct rpcrdma_cred cred;
	struct handle dirs[2];
	struct handle *files; /* by number */
	uint32_t room;
};

struct waiting {
	struct rpcrdma_call call;
	bool done;
	int err;
};

static void on_done(struct rpcrdma_call *call, int err)
{
	struct waiting *w = container_of(call, struct waiting, call);

	w->done = true;
	w->err = err;
}

static int rpc(struct cut_conn *c, uint32_t prog, uint32_t proc, xdrproc_t encode, const void *args,
	       xdrproc_t decode, void *res)
{
	struct waiting w = {
		.call = { .prog = prog, .vers = 3, .proc = proc, .cred = &c->cred,
			  .encode = encode, .args = args, .decode = decode, .res = res,
			  .reply_max = 4096, .deadline_ms = CALL_MS, .done = on_done },
	};
	int err = rpcrdma_clnt_call(c->clnt, &w.call);

	if (err)
		return err;
	while (!w.done)
		(void)rpcrdma_engine_wait(c->engine, -1);
	return w.err;
}

/* The status is the first word of all results. */
#define CALL(c, proc, args, res)                                                                   \
	rpc(c, NFS_PROGRAM, NFSPROC3_##proc, (xdrproc_t)xdr_##proc##3args, args,                   \
	    (xdrproc_t)xdr_##proc##3res, res)
#define FREE(proc, res) xdr_free((xdrproc_t)xdr_##proc##3res, (char *)(res))

static nfs_fh3 fh_of(const struct handle *h)
{
	nfs_fh3 v;

	v.data.data_len = h->len;
	v.data.data_val = (char *)(uintptr_t)h->data;
	return v;
}

static void keep(struct handle *h, const char *data, uint32_t len)
{
	h->len = MIN(len, (uint32_t)sizeof(h->data));
	memcpy(h->data, data, h->len);
}

/* ---- connecting --------------------------------------------------------------------------- */

static int mount_root(struct cut_conn *c, const char *export, struct handle *ret)
{
	mountres3 res = { 0 };
	dirpath arg = (char *)(uintptr_t)export;
	int err = rpc(c, MOUNT_PROGRAM, MOUNTPROC3_MNT, (xdrproc_t)xdr_dirpath, &arg,
		      (xdrproc_t)xdr_mountres3, &res);

	if (err)
		return err;
	if (res.fhs_status == MNT3_OK)
		keep(ret, res.mountres3_u.mountinfo.fhandle.fhandle3_val,
		     res.mountres3_u.mountinfo.fhandle.fhandle3_len);
	else
		err = -EACCES;
	xdr_free((xdrproc_t)xdr_mountres3, (char *)&res);
	return err;
}

static int lookup(struct cut_conn *c, const struct handle *dir, const char *name, struct handle *ret)
{
	LOOKUP3args a = { .what = { fh_of(dir), (char *)(uintptr_t)name } };
	LOOKUP3res res = { 0 };
	int err = CALL(c, LOOKUP, &a, &res);

	if (err)
		return err;
	if (res.status == NFS3_OK)
		keep(ret, res.LOOKUP3res_u.resok.object.data.data_val,
		     res.LOOKUP3res_u.resok.object.data.data_len);
	else
		err = res.status == NFS3ERR_NOENT ? -ENOENT : -EIO;
	FREE(LOOKUP, &res);
	return err;
}

static int make_dirs(struct cut_conn *c, const struct handle *root)
{
	int err = 0;

	for (unsigned i = 0; i < 2 && !err; i++) {
		MKDIR3args a = { .where = { fh_of(root), (char *)(uintptr_t)cut_dir(i) } };
		MKDIR3res res = { 0 };

		err = CALL(c, MKDIR, &a, &res);
		if (err)
			return err;
		FREE(MKDIR, &res);
		err = lookup(c, root, cut_dir(i), &c->dirs[i]);
	}
	return err;
}

void cut_disconnect(struct cut_conn *c)
{
	if (!c)
		return;
	rpcrdma_clnt_destroy(c->clnt);
	rpcrdma_engine_destroy(c->engine);
	rpcrdma_domain_destroy(c->domain);
	free(c->files);
	free(c);
}

int cut_connect(const char *url, const char *export, unsigned stamp, struct cut_conn **ret)
{
	struct cut_conn *c = calloc(1, sizeof(*c));
	struct rpcrdma_clnt_attr attr = { .backoff_ms = 1 };
	struct handle root = { 0 };
	int err;

	if (!c)
		return -ENOMEM;
	c->cred = (struct rpcrdma_cred){ .stamp = stamp, .uid = geteuid(), .gid = getegid() };
	attr.cred = c->cred;
	err = rpcrdma_addr_parse(url, &attr.addr);
	if (!err)
		err = rpcrdma_domain_create(NULL, &c->domain);
	if (!err)
		err = rpcrdma_engine_create(c->domain, NULL, &c->engine);
	if (!err)
		err = rpcrdma_clnt_open(c->engine, &attr, &c->clnt);
	if (!err)
		err = mount_root(c, export, &root);
	if (!err)
		err = make_dirs(c, &root);
	if (err)
		cut_disconnect(c);
	else
		*ret = c;
	return err;
}

/* ---- one operation each: 0 and a status, or -errno ------------------------------------------ */

struct doing {
	struct cut_conn *c;
	const struct cut_expect *e;
	struct cut_op *op; /* what is answered goes there */
	char name[32], to[32];
};

/* the last component; a path begins with its directory and a '/' */
static diropargs3 where(struct doing *d, uint32_t slot, char path[32])
{
	cut_path(d->e->thread, slot, path);
	return (diropargs3){ fh_of(&d->c->dirs[slot % 2]), strchr(path, '/') + 1 };
}

static const struct handle *file_of(const struct doing *d)
{
	return &d->c->files[d->e->names[d->op->slot].what];
}

static int keep_file(struct cut_conn *c, uint32_t number, const post_op_fh3 *fh)
{
	if (number >= c->room) {
		struct handle *v = realloc(c->files, (number + 64) * sizeof(*v));

		if (!v)
			return -ENOMEM;
		c->files = v;
		c->room = number + 64;
	}
	if (!fh->handle_follows)
		return -EPROTO;
	keep(&c->files[number], fh->post_op_fh3_u.handle.data.data_val,
	     fh->post_op_fh3_u.handle.data.data_len);
	return 0;
}

static int do_create(struct doing *d)
{
	CREATE3args a = { .where = where(d, d->op->slot, d->name) };
	sattr3 *sa = &a.how.createhow3_u.obj_attributes;
	CREATE3res res = { 0 };
	int err;

	if (d->op->kind == CUT_EXCLUSIVE) {
		a.how.mode = EXCLUSIVE;
		put_be64(a.how.createhow3_u.verf, d->op->verf);
	} else {
		a.how.mode = d->op->kind == CUT_CREATE ? UNCHECKED : GUARDED;
		sa->mode.set_it = TRUE;
		sa->mode.set_mode3_u.mode = d->op->mode;
	}
	err = CALL(d->c, CREATE, &a, &res);
	if (err)
		return err;
	d->op->status = res.status;
	if (res.status == NFS3_OK)
		err = keep_file(d->c, d->e->nfiles - 1, &res.CREATE3res_u.resok.obj);
	FREE(CREATE, &res);
	return err;
}

static int do_mkdir(struct doing *d)
{
	MKDIR3args a = { .where = where(d, d->op->slot, d->name) };
	MKDIR3res res = { 0 };
	int err = CALL(d->c, MKDIR, &a, &res);

	d->op->status = res.status;
	FREE(MKDIR, &res);
	return err;
}

static int do_symlink(struct doing *d)
{
	char target[128];
	struct iovec iov = { .iov_base = target };
	SYMLINK3args a = { .where = where(d, d->op->slot, d->name) };
	SYMLINK3res res = { 0 };
	int err;

	cut_target(d->e->thread, d->op->serial, target);
	iov.iov_len = strlen(target);
	a.symlink.symlink_data.length = (uint32_t)iov.iov_len;
	a.symlink.symlink_data.iov = &iov;
	a.symlink.symlink_data.iovcnt = 1;
	err = CALL(d->c, SYMLINK, &a, &res);
	d->op->status = res.status;
	FREE(SYMLINK, &res);
	return err;
}

static int do_mknod(struct doing *d)
{
	MKNOD3args a = { .where = where(d, d->op->slot, d->name), .what.type = NF3FIFO };
	MKNOD3res res = { 0 };
	int err = CALL(d->c, MKNOD, &a, &res);

	d->op->status = res.status;
	FREE(MKNOD, &res);
	return err;
}

static int do_link(struct doing *d)
{
	LINK3args a = { .file = fh_of(file_of(d)), .link = where(d, d->op->to, d->to) };
	LINK3res res = { 0 };
	int err = CALL(d->c, LINK, &a, &res);

	d->op->status = res.status;
	FREE(LINK, &res);
	return err;
}

static int do_rename(struct doing *d)
{
	RENAME3args a = { .from = where(d, d->op->slot, d->name),
			  .to = where(d, d->op->to, d->to) };
	RENAME3res res = { 0 };
	int err = CALL(d->c, RENAME, &a, &res);

	d->op->status = res.status;
	FREE(RENAME, &res);
	return err;
}

static int do_remove(struct doing *d)
{
	REMOVE3args a = { .object = where(d, d->op->slot, d->name) };
	REMOVE3res res = { 0 };
	int err = CALL(d->c, REMOVE, &a, &res);

	d->op->status = res.status;
	FREE(REMOVE, &res);
	return err;
}

static int do_rmdir(struct doing *d)
{
	RMDIR3args a = { .object = where(d, d->op->slot, d->name) };
	RMDIR3res res = { 0 };
	int err = CALL(d->c, RMDIR, &a, &res);

	d->op->status = res.status;
	FREE(RMDIR, &res);
	return err;
}

static int do_write(struct doing *d)
{
	uint8_t data[CUT_RECORD_BYTES];
	struct iovec iov = { .iov_base = data, .iov_len = sizeof(data) };
	WRITE3args a = { .file = fh_of(file_of(d)),
			 .offset = (uint64_t)d->op->record * CUT_RECORD_BYTES,
			 .count = sizeof(data),
			 .stable = (stable_how)d->op->stable,
			 .data = { .length = sizeof(data), .iov = &iov, .iovcnt = 1 } };
	const WRITE3resok *ok;
	WRITE3res res = { 0 };
	int err;

	cut_fill(d->e->thread, d->e->names[d->op->slot].what, d->op->record, d->op->serial, data);
	err = CALL(d->c, WRITE, &a, &res);
	ok = &res.WRITE3res_u.resok;
	d->op->status = res.status;
	if (!err && res.status == NFS3_OK) {
		d->op->verf = get_be64(ok->verf);
		if (ok->count != sizeof(data) || ok->committed < a.stable)
			err = -EPROTO;
	}
	return err;
}

static int do_commit(struct doing *d)
{
	COMMIT3args a = { .file = fh_of(file_of(d)) };
	COMMIT3res res = { 0 };
	int err = CALL(d->c, COMMIT, &a, &res);

	d->op->status = res.status;
	if (!err && res.status == NFS3_OK)
		d->op->verf = get_be64(res.COMMIT3res_u.resok.verf);
	return err;
}

static int do_setattr(struct doing *d)
{
	SETATTR3args a = { .object = fh_of(file_of(d)) };
	SETATTR3res res = { 0 };
	int err;

	if (d->op->kind == CUT_SIZE) {
		a.new_attributes.size.set_it = TRUE;
		a.new_attributes.size.set_size3_u.size =
			(uint64_t)d->op->record * CUT_RECORD_BYTES;
	} else {
		a.new_attributes.mode.set_it = TRUE;
		a.new_attributes.mode.set_mode3_u.mode = d->op->mode;
	}
	err = CALL(d->c, SETATTR, &a, &res);
	d->op->status = res.status;
	return err;
}

static int (*const doers[CUT_KINDS])(struct doing *d) = {
	[CUT_CREATE] = do_create,   [CUT_GUARDED] = do_create, [CUT_EXCLUSIVE] = do_create,
	[CUT_MKDIR] = do_mkdir,	    [CUT_SYMLINK] = do_symlink, [CUT_MKNOD] = do_mknod,
	[CUT_LINK] = do_link,	    [CUT_RENAME] = do_rename,  [CUT_REMOVE] = do_remove,
	[CUT_RMDIR] = do_rmdir,	    [CUT_WRITE] = do_write,    [CUT_COMMIT] = do_commit,
	[CUT_SIZE] = do_setattr,    [CUT_MODE] = do_setattr,
};

/* ---- choosing ----------------------------------------------------------------------------- */

static uint64_t next(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed >> 11;
}

/* A file may take the place of anything but a directory or its own other name, which would be no
 * operation; the rest move to where nothing is. */
static bool may_move(const struct cut_name *from, const struct cut_name *to)
{
	if (to->type == CUT_ABSENT)
		return from->type != CUT_ABSENT;
	return from->type == CUT_FILE && to->type != CUT_DIR &&
	       (to->type != CUT_FILE || to->what != from->what);
}

static enum cut_kind for_absent(uint64_t r)
{
	static const enum cut_kind kinds[] = { CUT_CREATE,  CUT_GUARDED, CUT_EXCLUSIVE, CUT_EXCLUSIVE,
					       CUT_MKDIR, CUT_SYMLINK, CUT_SYMLINK,	CUT_MKNOD };

	return kinds[r % ARRAY_SIZE(kinds)];
}

static enum cut_kind for_file(uint64_t r)
{
	static const enum cut_kind kinds[] = {
		CUT_WRITE,  CUT_WRITE,  CUT_WRITE, CUT_WRITE, CUT_WRITE, CUT_WRITE,
		CUT_COMMIT, CUT_COMMIT, CUT_SIZE,  CUT_MODE,  CUT_MODE,  CUT_MODE, CUT_REMOVE,
	};

	return kinds[r % ARRAY_SIZE(kinds)];
}

static void choose(const struct cut_expect *e, uint64_t *seed, uint32_t slots, struct cut_op *op)
{
	uint32_t slot = (uint32_t)(next(seed) % slots), to = (uint32_t)(next(seed) % slots);
	const struct cut_name *n = &e->names[slot], *t = &e->names[to];
	uint64_t r = next(seed);

	*op = (struct cut_op){ .thread = e->thread, .serial = e->serial + 1, .slot = slot, .to = to };
	op->mode = 0600u | (r >> 8 & 077u);
	op->verf = next(seed) << 20 ^ next(seed);
	op->stable = (uint32_t)(r >> 16) % 3;
	op->record = (uint32_t)(r >> 20) % CUT_RECORDS;
	if (slot != to && r % 4 == 0 && may_move(n, t)) {
		op->kind = CUT_RENAME;
	} else if (slot != to && r % 4 == 1 && n->type == CUT_FILE && t->type == CUT_ABSENT) {
		op->kind = CUT_LINK;
	} else if (n->type == CUT_ABSENT) {
		op->kind = for_absent(r >> 4);
	} else if (n->type == CUT_FILE) {
		op->kind = for_file(r >> 4);
	} else {
		op->kind = n->type == CUT_DIR ? CUT_RMDIR : CUT_REMOVE;
	}
}

/* A COMMIT of the file that the last operation failed with: does it tell of the loss? */
static void ask_for_loss(const struct cut_expect *e, struct cut_op *op)
{
	*op = (struct cut_op){ .thread = e->thread, .serial = e->serial + 1, .slot = op->slot,
			       .kind = CUT_COMMIT };
}

/* ---- driving ------------------------------------------------------------------------------ */

/* logged, and then so expected; Return: 0, -ESHUTDOWN: the power is off */
static int note(struct cut_expect *e, struct cut_log *log, struct cut_op *op, enum cut_phase phase)
{
	op->phase = phase;
	cut_seal(op);
	return log->put(log, op) ? cut_expect_take(e, op) : -ESHUTDOWN;
}

int cut_drive(struct cut_conn *c, struct cut_expect *e, struct cut_log *log, uint64_t seed,
	      unsigned ops, bool may_fail, char why[CUT_WHY_BYTES])
{
	struct cut_op op;
	struct doing d = { .c = c, .e = e, .op = &op };
	bool asked = false; /* nothing comes after that: it could hide what is missing */
	int err = 0;

	for (unsigned i = 0; i < ops && !err && !e->broken && !asked; i++) {
		asked = i && op.status != NFS3_OK && next(&seed) % 2;
		if (asked)
			ask_for_loss(e, &op);
		else
			choose(e, &seed, may_fail ? FEW_SLOTS : CUT_SLOTS, &op);
		err = note(e, log, &op, CUT_BEGIN);
		if (err)
			break;
		if (doers[op.kind](&d)) /* no server any more: so it goes when the power is cut */
			return 0;
		if (op.status != NFS3_OK && !may_fail) {
			(void)snprintf(why, CUT_WHY_BYTES, "thread %u, operation %u, kind %u: status %u",
				       e->thread, op.serial, op.kind, op.status);
			return -EPROTO;
		}
		err = note(e, log, &op, CUT_END);
	}
	if (err && err != -ESHUTDOWN)
		(void)snprintf(why, CUT_WHY_BYTES, "thread %u, operation %u: %s", e->thread, op.serial,
			       strerror(-err));
	return err == -ESHUTDOWN ? 0 : err;
}

/* ---- after the restart -------------------------------------------------------------------- */

static bool is_open_on(const struct cut_expect *e, uint32_t slot)
{
	return e->is_open && (e->open.slot == slot || e->open.to == slot);
}

static bool exclusive_again(struct doing *d, uint64_t verf, nfsstat3 want, char why[CUT_WHY_BYTES])
{
	CREATE3args a = { .where = where(d, d->op->slot, d->name), .how.mode = EXCLUSIVE };
	CREATE3res res = { 0 };
	int err;

	put_be64(a.how.createhow3_u.verf, verf);
	err = CALL(d->c, CREATE, &a, &res);
	if (!err)
		FREE(CREATE, &res);
	if (!err && res.status == want)
		return true;
	(void)snprintf(why, CUT_WHY_BYTES, "%s: exclusive create, again, with verifier %llx: %s%d", d->name,
		       (unsigned long long)verf, err ? strerror(-err) : "status ", res.status);
	return false;
}

static void commit_again(struct doing *d, struct cut_file *f)
{
	COMMIT3args a;
	COMMIT3res res = { 0 };
	struct handle h;
	diropargs3 w = where(d, d->op->slot, d->name);

	if (lookup(d->c, &d->c->dirs[d->op->slot % 2], w.name, &h))
		return; /* that it is missing is found elsewhere */
	a = (COMMIT3args){ .file = fh_of(&h) };
	if (CALL(d->c, COMMIT, &a, &res) || res.status != NFS3_OK)
		return;
	for (uint32_t i = 0; i < CUT_RECORDS; i++) {
		struct cut_record *r = &f->rec[i];

		if (r->pending && r->verf == get_be64(res.COMMIT3res_u.resok.verf)) {
			r->stable = r->pending;
			f->min = MAX(f->min, i + 1);
		}
	}
}

unsigned cut_recheck(struct cut_conn *c, struct cut_expect *e, char why[CUT_WHY_BYTES])
{
	struct cut_op op = { 0 };
	struct doing d = { .c = c, .e = e, .op = &op };
	unsigned broken = 0;

	for (op.slot = 0; op.slot < CUT_SLOTS; op.slot++) {
		struct cut_file *f = &e->files[e->names[op.slot].what];

		if (e->names[op.slot].type != CUT_FILE || is_open_on(e, op.slot))
			continue;
		if (f->exclusive) {
			broken += !exclusive_again(&d, f->create_verf, NFS3_OK, why);
			broken += !exclusive_again(&d, f->create_verf ^ 0x100, NFS3ERR_EXIST, why);
		} else {
			commit_again(&d, f);
		}
	}
	return broken;
}
