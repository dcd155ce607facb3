/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * nfs3_io.c - READ, WRITE and COMMIT (RFC 1813 sections 3.3.6, 3.3.7, 3.3.21)
 *
 * Operation: The arguments of a WRITE are checked first (nfs3_io_write_check), and then its payload is pulled.
 *            nfs3_io_begin() looks for the descriptor and permission in the reactor's cache. If either is missing, a
 *            worker opens the file and asks the kernel (nfs3_io_open), and nfs3_io_begin() runs again with the result.
 *            place.c moves the data; the _finish functions make the results.
 * Durability: A stable WRITE is on disk, as far as it requests, before its reply. An unstable one makes the file dirty:
 *            its descriptor stays open until a COMMIT, or a sync by the server, has shown whether the data arrived.
 *            The write verifier of a file system changes whenever a sync there fails, whatever started it (commit.h),
 *            since the kernel reports each loss only once. A WRITE that fails, for lack of space for example, loses
 *            nothing. A WRITE returns the verifier that was in force before it took data, so that no change is missed
 *            in between. A COMMIT of a range syncs that range, and leaves the file dirty if it was also written
 *            elsewhere. A count of 0 means the whole file, whatever the offset. In an `async` export no reply waits for
 *            the disk, unless the client has used up its share of dirty files. Stable WRITEs are executed as
 *            unstable ones, but their replies say stable. A COMMIT replies as if there were nothing to sync.
 *            The attributes of some file systems are not in memory (struct fs_limits). Then the reactor does not
 *            read them: a worker does so before each request, and replies have no attributes from after.
 * Memory:    r->file is held from nfs3_io_begin() to the end of the request.
 * Threads:   The reactor's, except nfs3_io_open().
 * Errors:    Statuses as RFC 1813 lists them; INVAL if it is not a regular file.
 */
#include "nfs3_io.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/wire.h"
#include "conn.h"
#include "nfs3_conv.h"
#include "nfs3_meta.h"
#include "reactor.h"
#include "req.h"
#include "server_int.h"

#define ANSWER_HEAD 1024u /* upper bound of the other results in a reply */

static bool is_write(const struct req *r)
{
	return r->proc->move != PLACE_READ;
}

/* COMMIT needs write permission, but not a writable descriptor. A read-only descriptor can sync too, but if it was
 * opened after a loss was reported to another descriptor, it does not report that loss. */
static bool wants_writable(const struct req *r)
{
	return r->proc->move == PLACE_WRITE;
}

static bool may_certainly(const struct req *r)
{
	return !creds_can_assume() || r->creds.uid == 0 || r->creds.uid == r->stx.stx_uid;
}

static enum nfs3_io_next answer(struct req *r, nfsstat3 status)
{
	req_fail(r, status);
	return NFS3_IO_ANSWERED;
}

/* ---- the worker's part -------------------------------------------------------------------- */

/* I/O uses the open file. Its handle may refer to another file by now, if the file system reuses inode numbers and has
 * no generation numbers. */
static int look_at_open(struct req *r)
{
	int err = vfs_stat(r->file->file.fd, &r->stx);

	return !err && !r->stx.stx_nlink ? -ESTALE : err;
}

static int open_contents(struct req *r)
{
	struct volume *v = &r->exp->volume;
	int fd = vfs_open_io(&r->found, wants_writable(r));

	if (fd < 0)
		return fd;
	store_open(store_of(v), v, fd, wants_writable(r), &r->opened);
	return 0;
}

void nfs3_io_open(struct worker_job *job)
{
	struct req *r = container_of(job, struct req, job);
	const nfs_fh3 *fh = &r->args.fh;

	r->looked = fdcache_look(&r->exp->volume.limits);
	r->err = fh_open(r->exports->exports->fhs, fh->data.data_val, fh->data.data_len, &r->found);
	if (!r->err)
		r->err = vfs_may_io(&r->found, &r->creds, is_write(r));
	if (!r->err && !r->file)
		r->err = open_contents(r);
	if (!r->err && !r->file)
		r->stx = r->found.stx;
	else if (!r->err)
		r->err = look_at_open(r);
	fh_close(&r->found);
}

/* ---- attributes --------------------------------------------------------------------------- */

/* Reads the current attributes; -EAGAIN: only a worker may read them */
static int look(const struct req *r, struct statx *ret)
{
	return r->file->file.at_once ? vfs_stat(r->file->file.fd, ret) : -EAGAIN;
}

/* ---- finding the file --------------------------------------------------------------------- */

static void keep_opened(struct req *r)
{
	struct fh fh = { .len = r->args.fh.data.data_len };

	memcpy(fh.data, r->args.fh.data.data_val, fh.len);
	r->file =
		files_keep(&r->reactor->files, &fh, &r->opened,
				  makedev(r->stx.stx_dev_major, r->stx.stx_dev_minor), r->stx.stx_ino);
	r->opened.fd = -1;
	if (r->file && r->exports != r->reactor->exports) /* the export may be gone: keep it for this request only */
		r->file->retired = true;
}

/* Uses the result of the worker; Return: NFS3_IO_READY to continue */
static enum nfs3_io_next take_opened(struct req *r)
{
	if (r->err)
		return answer(r, nfs3_conv_status(r, r->err));
	if (!r->file)
		keep_opened(r);
	if (!r->file)
		return answer(r, NFS3ERR_JUKEBOX);
	fdcache_learn(r->file, nfs3_who(r), &r->looked, &r->stx, is_write(r));
	return NFS3_IO_READY;
}

/* Return: NFS3_IO_READY with r->file and r->stx, if permitted */
static enum nfs3_io_next find_file(struct req *r)
{
	const nfs_fh3 *fh = &r->args.fh;
	int err;

	if (r->open_tried)
		return take_opened(r);
	r->open_tried = true;
	r->file = fdcache_find(r->reactor->files.io, fh->data.data_val, fh->data.data_len,
			       wants_writable(r));
	err = r->file ? look(r, &r->stx) : -EAGAIN;
	if (err != -EAGAIN) {
		if (err)
			return answer(r, nfs3_conv_status(r, err));
		if (!r->stx.stx_nlink)
			return answer(r, NFS3ERR_STALE);
		if (may_certainly(r) || fdcache_may(r->file, nfs3_who(r), &r->stx, is_write(r))) {
			reactor_count(r->reactor, file_hits);
			return NFS3_IO_READY;
		}
	}
	if (!r->file && !files_may_open(&r->reactor->files, r->exp->volume.dev)) {
		r->open_tried = false;
		return NFS3_IO_WAIT;
	}
	reactor_count(r->reactor, file_misses);
	return NFS3_IO_OPEN;
}

uint32_t nfs3_io_answer_max(const struct server *srv)
{
	size_t max = rpcrdma_domain_reply_max(srv->domain) - ANSWER_HEAD;

	return (uint32_t)MIN(max, (size_t)NFS3_IO_MAX) & ~4095u;
}

/* ---- READ --------------------------------------------------------------------------------- */

static void fill_plan(struct req *r, uint64_t off, uint32_t bytes)
{
	r->plan = (struct place_plan){
		.store = r->exports->stores[r->exp->idx],
		.off = off,
		.bytes = bytes,
		.file = &r->file->file,
		.creds = &r->creds,
		.client = &r->conn->client->workers,
	};
}

static enum nfs3_io_next begin_read(struct req *r)
{
	const READ3args *a = &r->args.read;
	uint32_t count = MIN(a->count, NFS3_IO_MAX);

	if (a->offset >= r->stx.stx_size)
		count = 0;
	else if (count > r->stx.stx_size - a->offset)
		count = (uint32_t)(r->stx.stx_size - a->offset);
	/* data inside the reply has to fit one buffer; data by chunk has no such limit */
	if (!r->rpc->by_chunk)
		count = MIN(count, nfs3_io_answer_max(r->srv));
	fill_plan(r, a->offset, count);
	r->plan.size_hint = r->stx.stx_size;
	place_move(&r->place, PLACE_READ, &r->plan);
	return NFS3_IO_READY;
}

void nfs3_io_read_finish(struct req *r)
{
	const struct place *pl = &r->place;
	READ3resok *ok = &r->res.read.READ3res_u.resok;
	bool unknown;

	if (pl->err && !pl->good) {
		req_fail(r, nfs3_conv_status(r, pl->err));
		return;
	}
	if (pl->good)
		nfs3_atime_touch(r);
	/* truncated meanwhile, or an error in the middle, which the next READ returns: that is not the end */
	unknown = pl->short_read && look(r, &r->stx);
	if (unknown)
		memset(&r->stx, 0, sizeof(r->stx));
	r->res.read.status = NFS3_OK;
	nfs3_conv_post_op(&r->stx, &ok->file_attributes);
	ok->count = pl->good;
	ok->data.length = pl->good;
	if (unknown)
		ok->eof = !pl->good;
	else
		ok->eof = r->args.read.offset >= r->stx.stx_size ||
			  pl->good >= r->stx.stx_size - r->args.read.offset;
}

/* ---- WRITE -------------------------------------------------------------------------------- */

nfsstat3 nfs3_io_write_check(const struct req *r)
{
	const WRITE3args *a = &r->args.write;
	uint64_t end;

	if (a->count != a->data.length || a->count > NFS3_IO_MAX || a->stable > FILE_SYNC)
		return NFS3ERR_INVAL;
	if (!add_u64(a->offset, a->count, &end) || end > INT64_MAX)
		return NFS3ERR_FBIG;
	return NFS3_OK;
}

static enum nfs3_io_next begin_write(struct req *r)
{
	struct client *c = r->conn->client;

	/* an unstable WRITE would keep the descriptor open until a sync */
	r->must_sync = r->args.write.stable == UNSTABLE && !r->file->dirty && !files_may_dirty(&r->reactor->files, c);
	if (r->must_sync) {
		r->args.write.stable = DATA_SYNC;
		fdcache_flush_one(r->reactor->files.io);
	}
	/* a stable write does not depend on the verifier: only unstable data can be lost later */
	r->verf = write_verf_of(&r->srv->write_verf, r->file->dev);
	if (r->args.write.stable == UNSTABLE)
		files_dirtied(&r->reactor->files, r->file, c, r->args.write.offset, r->args.write.count);
	r->plan.file = &r->file->file;
	r->plan.stable = r->exp->conf.async && !r->must_sync ? STORE_UNSTABLE : (enum store_stable)r->args.write.stable;
	r->plan.creds = &r->creds;
	r->plan.client = &c->workers;
	place_move(&r->place, PLACE_WRITE, &r->plan);
	return NFS3_IO_READY;
}

/* There are no attributes from before: other changes of the file may come in between (RFC 1813 section 2.6). */
static void set_wcc(struct req *r, wcc_data *wcc)
{
	struct statx stx;

	if (!look(r, &stx))
		nfs3_conv_post_op(&stx, &wcc->after);
}

void nfs3_io_write_finish(struct req *r)
{
	const struct place *pl = &r->place;
	WRITE3res *res = &r->res.write;
	WRITE3resok *ok = &res->WRITE3res_u.resok;

	if (r->args.write.stable == UNSTABLE)
		fdcache_wrote(r->file);
	if (pl->sync_failed)
		reactor_count(r->reactor, sync_failed);
	if (pl->err && !pl->good) {
		req_fail(r, nfs3_conv_status(r, pl->err));
		set_wcc(r, &res->WRITE3res_u.resfail.file_wcc);
		return;
	}
	res->status = NFS3_OK;
	set_wcc(r, &ok->file_wcc);
	ok->count = pl->good;
	ok->committed = r->args.write.stable;
	put_be64(ok->verf, r->verf);
}

/* ---- COMMIT ------------------------------------------------------------------------------- */

static void answer_commit(struct req *r)
{
	COMMIT3resok *ok = &r->res.commit.COMMIT3res_u.resok;

	r->res.status = NFS3_OK;
	set_wcc(r, &ok->file_wcc);
	/* taken after the sync: it shows a loss that was reported to another descriptor */
	put_be64(ok->verf, write_verf_of(&r->srv->write_verf, r->file->dev));
}

/* The client's other connections may have written on other reactors. */
static void tell_synced(const struct req *r)
{
	for (unsigned i = 0; i < r->srv->nreactors; i++) {
		if (r->srv->reactors[i] != r->reactor)
			files_tell_synced(&r->srv->reactors[i]->files, r->file->dev, r->file->ino, r->sync_began_ns);
	}
}

void nfs3_io_commit_finish(struct req *r)
{
	const struct place *pl = &r->place;
	COMMIT3res *res = &r->res.commit;

	if (pl->err) {
		reactor_count(r->reactor, sync_failed);
		req_fail(r, nfs3_conv_status(r, pl->err));
		set_wcc(r, &res->COMMIT3res_u.resfail.file_wcc);
		return;
	}
	fdcache_cleaned(r->file, r->sync_seq);
	if (!r->args.commit.count)
		tell_synced(r);
	answer_commit(r);
}

/* Begins a sync. An invalid range means the whole file. */
static void begin_commit(struct req *r)
{
	COMMIT3args *a = &r->args.commit;
	uint64_t end;

	if (!add_u64(a->offset, a->count, &end) || end > INT64_MAX)
		a->count = 0;
	if (!a->count)
		a->offset = 0;
	r->sync_seq = fdcache_sync_seq(r->file, a->offset, a->count);
	r->sync_began_ns = clock_now_ns();
	fill_plan(r, a->offset, a->count);
	place_move(&r->place, PLACE_SYNC, &r->plan);
}

enum nfs3_io_next nfs3_io_begin(struct req *r)
{
	enum nfs3_io_next next = find_file(r);

	if (next != NFS3_IO_READY)
		return next;
	switch (r->proc->move) {
	case PLACE_READ:
		return begin_read(r);
	case PLACE_WRITE:
		return begin_write(r);
	default:
		if (r->exp->conf.async) { /* the file stays dirty until the cache has it synced */
			answer_commit(r);
			return NFS3_IO_ANSWERED;
		}
		begin_commit(r);
		return NFS3_IO_READY;
	}
}

/* ---- syncing for the cache ---------------------------------------------------------------- */

struct flush {
	struct reactor *reactor;
	struct fdcache_entry *entry;
	struct exports_use *exports;
	uint64_t seq;
	struct store_io io;
};

static void on_flushed(struct store_io *io)
{
	struct flush *f = container_of(io, struct flush, io);
	struct reactor *re = f->reactor;

	if (io->res < 0) /* the kernel reports it once, and the verifier passes it on: no reason to keep the file */
		reactor_count(re, sync_failed);
	fdcache_flushed(f->entry, f->seq);
	re->loop.flushing--;
	exports_use_put(f->exports);
	free(f);
}

/* A store of any export can sync a file of a removed one: the descriptor identifies the file. */
static struct store *store_for(struct reactor *re, const struct fdcache_entry *e)
{
	struct exports_use *use = re->exports;
	struct export *exp;

	if (fh_export(use->exports->fhs, e->fh.data, e->fh.len, &exp))
		return use->stores[0];
	return use->stores[exp->idx];
}

void nfs3_io_flush(void *reactor, struct fdcache_entry *e)
{
	struct reactor *re = reactor;
	struct flush *f = calloc(1, sizeof(*f));

	if (!f) { /* stays dirty, and is tried again */
		fdcache_flushed(e, e->dirty_seq - 1);
		return;
	}
	f->reactor = re;
	f->entry = e;
	f->exports = exports_use_hold(re->exports);
	f->seq = e->dirty_seq;
	f->io = (struct store_io){ .op = STORE_SYNC, .file = &e->file, .done = on_flushed };
	re->loop.flushing++;
	if (store_submit(store_for(re, e), &f->io))
		on_flushed(&f->io);
}
