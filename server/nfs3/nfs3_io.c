/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * nfs3_io.c - READ, WRITE and COMMIT (RFC 1813 sections 3.3.6, 3.3.7, 3.3.21)
 *
 * Operation: The arguments of a WRITE are checked first (nfs3_io_write_payload), and then its payload is pulled. The
 *            _begin functions look for the descriptor and permission in the reactor's cache. If either is missing, a
 *            worker opens the file and asks the kernel (nfs3_io_open), and _begin runs again with the result.
 *            place.c moves the data; the _finish functions make the results.
 * Durability: A stable WRITE is on disk, as far as it requests, before its reply. An unstable one makes the file dirty:
 *            its descriptor stays open until a COMMIT, or a sync by the server, has shown whether the data arrived.
 *            The write verifier of a file system changes whenever a sync there fails, whatever started it (fsync_batch.h),
 *            since the kernel reports each loss only once. A WRITE that fails, for lack of space for example, loses
 *            nothing. A WRITE returns the verifier that was in force before it took data, so that no change is missed
 *            in between. A COMMIT of a range syncs that range, and leaves the file dirty if it was also written
 *            elsewhere. A count of 0 means the whole file, whatever the offset. In an `async` export no reply waits for
 *            the disk, unless the client has used up its share of dirty files. Stable WRITEs are executed as
 *            unstable ones, but their replies say stable. A COMMIT replies as if there were nothing to sync.
 *            The attributes of some file systems are not in memory (struct fs_limits). Then the reactor does not
 *            read them: a worker does so before each request, and replies have no attributes from after.
 * Memory:    call->file is held from its beginning to the end of the request.
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
#include "nfs.h"
#include "nfs3_conv.h"
#include "nfs3_meta.h"

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
	struct nfs_call *call = nfs_call(r);

	return !creds_can_assume() || r->creds.uid == 0 || r->creds.uid == call->stx.stx_uid;
}

static enum prog_begin reply_now(struct req *r, nfsstat3 status)
{
	nfs3_fail_status(r, status);
	return PROG_REPLY;
}

/* ---- the worker's part -------------------------------------------------------------------- */

/* I/O uses the open file. Its handle may refer to another file by now, if the file system reuses inode numbers and has
 * no generation numbers. */
static int look_at_open(struct req *r)
{
	struct nfs_call *call = nfs_call(r);
	int err = vfs_stat(call->file->file.fd, &call->stx);

	return !err && !call->stx.stx_nlink ? -ESTALE : err;
}

static int open_contents(struct req *r)
{
	struct nfs_call *call = nfs_call(r);
	struct backing *b = &call->exp->backing;
	int fd = vfs_open_io(&call->found, wants_writable(r));

	if (fd < 0)
		return fd;
	store_open(store_of(b), b, fd, wants_writable(r), &call->opened);
	return 0;
}

void nfs3_io_open(struct req *r)
{
	struct nfs_call *call = nfs_call(r);
	const nfs_fh3 *fh = &call->args.fh;
	int err;

	call->looked = fdcache_look(&call->exp->backing.limits);
	err = fh_open(nfs_handles(r), fh->data.data_val, fh->data.data_len, &call->found);
	if (!err)
		err = vfs_may_io(&call->found, &r->creds, is_write(r));
	if (!err && !call->file)
		err = open_contents(r);
	if (!err && !call->file)
		call->stx = call->found.stx;
	else if (!err)
		err = look_at_open(r);
	fh_close(&call->found);
	call->err = err;
}

/* ---- attributes --------------------------------------------------------------------------- */

/* Reads the current attributes; -EAGAIN: only a worker may read them */
static int look(const struct req *r, struct statx *ret)
{
	struct nfs_call *call = nfs_call(r);

	return call->file->file.at_once ? vfs_stat(call->file->file.fd, ret) : -EAGAIN;
}

/* ---- finding the file --------------------------------------------------------------------- */

static void keep_opened(struct req *r)
{
	struct nfs_call *call = nfs_call(r);
	struct fh fh = { .len = call->args.fh.data.data_len };

	memcpy(fh.data, call->args.fh.data.data_val, fh.len);
	call->opened.dev = stx_dev(&call->stx);
	call->opened.ino = call->stx.stx_ino;
	call->file = files_keep(&call->re->files, &fh, &call->opened);
	call->opened.fd = -1;
	if (call->file && call->exports != r->reactor->uses[SERVICE_NFS]) /* the export may be gone: keep it for this request only */
		call->file->retired = true;
}

/* Uses the result of the worker; Return: PROG_MOVE to continue */
static enum prog_begin take_opened(struct req *r)
{
	struct nfs_call *call = nfs_call(r);

	if (call->err)
		return reply_now(r, nfs3_conv_status(r, call->err));
	if (!call->file)
		keep_opened(r);
	if (!call->file)
		return reply_now(r, NFS3ERR_JUKEBOX);
	fdcache_learn(call->file, nfs3_user(r), &call->looked, &call->stx, is_write(r));
	return PROG_MOVE;
}

static void on_may_open(struct files_waiter *w)
{
	req_resume(container_of(w, struct nfs_call, opener)->req);
}

/* Return: PROG_MOVE with call->file and call->stx, if permitted */
static enum prog_begin find_file(struct req *r)
{
	struct nfs_call *call = nfs_call(r);
	const nfs_fh3 *fh = &call->args.fh;
	int err;

	if (call->open_tried)
		return take_opened(r);
	call->open_tried = true;
	call->file = fdcache_find(call->re->files.io, fh->data.data_val, fh->data.data_len,
			       wants_writable(r));
	err = call->file ? look(r, &call->stx) : -EAGAIN;
	if (err != -EAGAIN) {
		if (err)
			return reply_now(r, nfs3_conv_status(r, err));
		if (!call->stx.stx_nlink)
			return reply_now(r, NFS3ERR_STALE);
		if (may_certainly(r) || fdcache_may(call->file, nfs3_user(r), &call->stx, is_write(r))) {
			nfs_count(r->reactor, file_hits);
			return PROG_MOVE;
		}
	}
	if (!call->file && !files_may_open(&call->re->files, call->exp->backing.dev)) {
		call->open_tried = false;
		call->opener.fs = call->exp->backing.dev;
		call->opener.resume = on_may_open;
		files_wait(&call->re->files, &call->opener);
		return PROG_WAIT;
	}
	nfs_count(r->reactor, file_misses);
	return PROG_OPEN;
}

/* ---- whose turn it is ---------------------------------------------------------------------- */

/* Before there are buffers: data of a volume comes from other servers, or goes there. */
static uint32_t bytes_elsewhere(const struct req *r)
{
	const struct nfs_call *call = nfs_call(r);

	if (!call->exp || !call->exp->manager)
		return 0;
	if (r->proc->move == PLACE_READ)
		return MIN(call->args.read.count, NFS3_IO_MAX);
	return r->proc->move == PLACE_WRITE ? MIN(call->args.write.count, NFS3_IO_MAX) : 0;
}

int nfs3_io_authorize(struct req *r)
{
	struct nfs_call *call = nfs_call(r);
	int err = call->authorized ? 0 : nfs_authorize(r);

	if (err)
		return err;
	call->authorized = true;
	return nfs_room_enter(r, bytes_elsewhere(r));
}

/* ---- READ --------------------------------------------------------------------------------- */

static void fill_plan(struct req *r, uint64_t off, uint32_t bytes)
{
	struct nfs_call *call = nfs_call(r);

	r->plan = (struct place_plan){
		.store = call->exports->stores[call->exp->idx],
		.off = off,
		.bytes = bytes,
		.file = &call->file->file,
		.creds = &r->creds,
		.client = &r->conn->client->workers,
	};
}

enum prog_begin nfs3_io_read_begin(struct req *r)
{
	struct nfs_call *call = nfs_call(r);
	const READ3args *a = &call->args.read;
	uint32_t count = MIN(a->count, NFS3_IO_MAX);
	enum prog_begin next;

	next = find_file(r);
	if (next != PROG_MOVE)
		return next;
	if (a->offset >= call->stx.stx_size)
		count = 0;
	else if (count > call->stx.stx_size - a->offset)
		count = (uint32_t)(call->stx.stx_size - a->offset);
	/* data inside the reply has to fit one buffer; data by chunk has no such limit */
	if (!r->rpc->by_chunk)
		count = MIN(count, call->re->inline_max);
	fill_plan(r, a->offset, count);
	r->plan.size_hint = call->stx.stx_size;
	return PROG_MOVE;
}

void nfs3_io_read_finish(struct req *r)
{
	struct nfs_call *call = nfs_call(r);
	const struct place *pl = &r->place;
	READ3resok *ok = &call->res.read.READ3res_u.resok;
	bool unknown;

	nfs_room_leave(r);
	if (pl->err && !pl->good) {
		nfs3_fail(r, pl->err);
		return;
	}
	if (pl->good)
		nfs3_atime_touch(r);
	/* truncated meanwhile, or an error in the middle, which the next READ returns: that is not the end */
	unknown = pl->short_read && look(r, &call->stx);
	if (unknown)
		memset(&call->stx, 0, sizeof(call->stx));
	call->res.read.status = NFS3_OK;
	nfs3_conv_post_op(&call->stx, &ok->file_attributes);
	ok->count = pl->good;
	ok->data.length = pl->good;
	if (unknown)
		ok->eof = !pl->good;
	else
		ok->eof = call->args.read.offset >= call->stx.stx_size ||
			  pl->good >= call->stx.stx_size - call->args.read.offset;
}

/* ---- WRITE -------------------------------------------------------------------------------- */

int nfs3_io_write_payload(struct req *r)
{
	struct nfs_call *call = nfs_call(r);
	WRITE3args *a = &call->args.write;
	uint64_t end;

	if (a->count != a->data.length || a->count > NFS3_IO_MAX || a->stable > FILE_SYNC)
		return -EINVAL;
	if (!add_u64(a->offset, a->count, &end) || end > INT64_MAX)
		return -EFBIG;
	r->plan = (struct place_plan){
		.store = call->exports->stores[call->exp->idx],
		.data = &a->data,
		.off = a->offset,
		.bytes = a->count,
	};
	return 0;
}

enum prog_begin nfs3_io_write_begin(struct req *r)
{
	struct nfs_call *call = nfs_call(r);
	struct client *c = r->conn->client;
	enum prog_begin next = find_file(r);

	if (next != PROG_MOVE)
		return next;
	/* an unstable WRITE would keep the descriptor open until a sync */
	call->must_sync = call->args.write.stable == UNSTABLE && !call->file->dirty &&
			  !files_may_dirty(&call->re->files, c);
	if (call->must_sync) {
		call->args.write.stable = DATA_SYNC;
		fdcache_flush_one(call->re->files.io);
	}
	/* a stable write does not depend on the verifier: only unstable data can be lost later */
	call->verf = write_verf_of(&nfs_server(r->srv)->write_verf, call->file->file.dev);
	if (call->args.write.stable == UNSTABLE)
		files_dirtied(&call->re->files, call->file, c, call->args.write.offset, call->args.write.count);
	r->plan.file = &call->file->file;
	r->plan.stable = call->exp->conf.async && !call->must_sync ? STORE_UNSTABLE :
								     (enum store_stable)call->args.write.stable;
	r->plan.creds = &r->creds;
	r->plan.client = &c->workers;
	return PROG_MOVE;
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
	struct nfs_call *call = nfs_call(r);
	const struct place *pl = &r->place;
	WRITE3res *res = &call->res.write;
	WRITE3resok *ok = &res->WRITE3res_u.resok;

	nfs_room_leave(r);
	if (call->args.write.stable == UNSTABLE)
		fdcache_wrote(call->file);
	if (pl->sync_failed)
		nfs_count(r->reactor, sync_failed);
	if (pl->err && !pl->good) {
		nfs3_fail(r, pl->err);
		set_wcc(r, &res->WRITE3res_u.resfail.file_wcc);
		return;
	}
	res->status = NFS3_OK;
	set_wcc(r, &ok->file_wcc);
	ok->count = pl->good;
	ok->committed = call->args.write.stable;
	put_be64(ok->verf, call->verf);
}

/* ---- COMMIT ------------------------------------------------------------------------------- */

static void reply_commit(struct req *r)
{
	struct nfs_call *call = nfs_call(r);
	COMMIT3resok *ok = &call->res.commit.COMMIT3res_u.resok;

	call->res.status = NFS3_OK;
	set_wcc(r, &ok->file_wcc);
	/* taken after the sync: it shows a loss that was reported to another descriptor */
	put_be64(ok->verf, write_verf_of(&nfs_server(r->srv)->write_verf, call->file->file.dev));
}

/* The client's other connections may have written on other reactors. */
static void tell_synced(const struct req *r)
{
	struct nfs_call *call = nfs_call(r);

	for (unsigned i = 0; i < r->srv->nreactors; i++) {
		struct reactor *other = r->srv->reactors[i];

		if (other != r->reactor)
			files_tell_synced(&nfs_reactor(other)->files, call->file->file.dev, call->file->file.ino,
					  call->sync_began_ns);
	}
}

void nfs3_io_commit_finish(struct req *r)
{
	struct nfs_call *call = nfs_call(r);
	const struct place *pl = &r->place;
	COMMIT3res *res = &call->res.commit;

	if (pl->err) {
		nfs_count(r->reactor, sync_failed);
		nfs3_fail(r, pl->err);
		set_wcc(r, &res->COMMIT3res_u.resfail.file_wcc);
		return;
	}
	fdcache_cleaned(call->file, call->sync_seq);
	if (!call->args.commit.count)
		tell_synced(r);
	reply_commit(r);
}

/* An invalid range means the whole file. */
enum prog_begin nfs3_io_commit_begin(struct req *r)
{
	struct nfs_call *call = nfs_call(r);
	COMMIT3args *a = &call->args.commit;
	enum prog_begin next = find_file(r);
	uint64_t end;

	if (next != PROG_MOVE)
		return next;
	if (call->exp->conf.async) { /* the file stays dirty until the cache has it synced */
		reply_commit(r);
		return PROG_REPLY;
	}
	if (!add_u64(a->offset, a->count, &end) || end > INT64_MAX)
		a->count = 0;
	if (!a->count)
		a->offset = 0;
	call->sync_seq = fdcache_sync_seq(call->file, a->offset, a->count);
	call->sync_began_ns = clock_now_ns();
	fill_plan(r, a->offset, a->count);
	r->plan.op = STORE_SYNC;
	return PROG_MOVE;
}
