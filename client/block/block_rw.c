/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * block_rw.c - pread and pwrite of volumes
 *
 * Operation:  submit() checks the request and passes it to split/lt_bulk.c, which splits it into calls of at most
 *             BLOCK_IO_MAX bytes. If the range ends beyond the known end of the volume, an INFO asks for its size first.
 * Memory:     The caller's memory is the payload of the calls.
 * Threads:    submit() any; the rest the owner's.
 * Errors:     All bytes are transferred, or the result is an error: that of the lowest offset that failed. A WRITE with
 *             FUA after changes were lost is -EIO (verfs.c).
 */
#include <errno.h>

#include "lt_block.h"
#include "lt_bulk.h"
#include "lt_stage.h"
#include "sync.h"

/* In a Send of 1 KiB, the smallest, there is no room for a segment for each: then the transport copies. */
#define PARTS LT_BULK_PARTS_MAX

static bool ends_inside(const struct lt_bulk *io)
{
	return lt_block_fits(io->object, io->off, io->size);
}

static void begin_io(struct lt_bulk *io)
{
	struct leat_block *b = io->object;
	struct lt_subreq *p;

	if (likely(ends_inside(io)) || io->task.cancelled)
		return;
	p = lt_bulk_ask(io);
	p->args.block_info = lt_block_info_args(b);
	lt_call_start_block(&p->call, BLOCKPROC_INFO, &p->args, NULL, &p->res, NULL, 0, lt_bulk_done);
}

static void send_read(struct lt_subreq *p)
{
	BLOCKREADargs *a = &p->args.block_read;

	lt_block_set_at(p->bulk->object, &a->at);
	a->offset = p->off;
	a->count = p->len;
	lt_call_start_block(&p->call, BLOCKPROC_READ, a, &a->at.lane, &p->res, &p->iov[p->iov_first],
			    p->iov_cnt, lt_bulk_done);
}

static void send_write(struct lt_subreq *p)
{
	struct leat_block *b = p->bulk->object;
	BLOCKWRITEargs *a = &p->args.block_write;

	lt_block_set_at(b, &a->at);
	a->offset = p->off;
	a->fua = (p->bulk->how & LEAT_BLOCK_FUA) != 0;
	a->data = (block_data){ .length = p->len, .iov = p->iov, .iovcnt = p->iov_cnt };
	p->mark = b->verfs.count;
	lt_call_start_block(&p->call, BLOCKPROC_WRITE, a, &a->at.lane, &p->res, NULL, 0, lt_bulk_done);
}

static void send_subreq(struct lt_subreq *p)
{
	if (p->bulk->write)
		send_write(p);
	else
		send_read(p);
}

static void fail(struct lt_subreq *p, int err, const char *cause)
{
	lt_task_explain(&p->bulk->task, err, lt_call_name(&p->call), "%s", cause);
	lt_bulk_stop(p->bulk, p->off, err);
}

/* Over TCP, a server with little memory returns as many blocks as one message of its holds. Return: false: a call for the
 * rest was sent */
static bool take_read(struct lt_subreq *p)
{
	const struct leat_block *b = p->bulk->object;
	uint32_t n = p->res.block_read.BLOCKREADres_u.data.length;

	if (n == p->len) {
		lt_stage_read(p);
		return true;
	}
	if (!n || n > p->len || n % atomic_load_explicit(&b->block, memory_order_relaxed)) {
		fail(p, -EREMOTEIO, "not as much data as asked for");
		return true;
	}
	lt_bulk_advance(p, n);
	if (!lt_bulk_may_continue(p))
		return true;
	send_read(p);
	return false;
}

static void take_write(struct lt_subreq *p)
{
	struct leat_block *b = p->bulk->object;
	uint64_t verf = p->res.block_write.BLOCKCHANGEres_u.verf;

	p->bulk->changed = true;
	if (!(p->bulk->how & LEAT_BLOCK_FUA))
		lt_verfs_changed(&b->verfs, verf);
	else if (lt_verfs_synced(&b->verfs, verf, p->mark, false))
		fail(p, -EIO, LT_BLOCK_LOST);
}

static void take_info(struct lt_subreq *p)
{
	const BLOCKINFOres *res = &p->res.block_info;
	struct lt_bulk *io = p->bulk;
	int rc = lt_block_note(io->object, &res->BLOCKINFOres_u.resok.info);

	if (rc)
		fail(p, rc, LT_BLOCK_IMPOSSIBLE);
	else if (!ends_inside(io))
		fail(p, lt_block_beyond(io->write), LT_BLOCK_BEYOND);
	lt_call_free(&p->call);
}

static bool subreq_replied(struct lt_subreq *p)
{
	if (unlikely(p->call.rpc.proc == BLOCKPROC_INFO))
		take_info(p);
	else if (p->bulk->write)
		take_write(p);
	else
		return take_read(p);
	return true;
}

static const struct lt_bulk_ops block_ops = {
	.parts = PARTS,
	.stages = true,
	.is_whole = true,
	.begin = begin_io,
	.send = send_subreq,
	.replied = subreq_replied,
	/* no .release: the volume is detached when no task is left */
};

static int check_io(const struct leat_block *b, bool write, const struct iovec *iov, int cnt, uint64_t off,
		    unsigned flags, uint64_t *ret_size, const char **why)
{
	int rc = lt_block_check(b, true);

	*why = "";
	if (rc)
		return rc;
	if (flags & ~LEAT_BLOCK_FUA) {
		*why = LT_BLOCK_FLAG;
		return -EINVAL;
	}
	rc = lt_bulk_sum(iov, cnt, ret_size);
	return rc ? rc : lt_block_check_range(b, write, off, *ret_size, why);
}

/* Return: 0, or an error of the checks; @cb is consumed in every outcome. */
static int submit(struct leat_block *b, bool write, const struct iovec *iov, int cnt, uint64_t off, unsigned flags,
		  struct leat_cb cb)
{
	const char *verb = write ? "write" : "read";
	struct lt_bulk *io;
	const char *why;
	uint64_t size;
	int rc = check_io(b, write, iov, cnt, off, flags, &size, &why);

	if (unlikely(rc))
		return lt_block_refuse(b, verb, rc, why, cb);
	io = lt_bulk_get(b->m, iov, cnt);
	if (!io)
		return lt_task_refuse(cb, -ENOMEM);
	io->task.cb = cb;
	io->task.verb = verb;
	io->task.internal = false;
	io->task.path = NULL;
	io->task.file = NULL;
	io->ops = &block_ops;
	io->object = b;
	io->write = write;
	io->how = flags;
	io->unit = BLOCK_IO_MAX;
	io->grain = atomic_load_explicit(&b->block, memory_order_relaxed);
	io->off = off;
	io->size = size;
	lt_bulk_submit(io);
	return 0;
}

int leat_aio_block_pread(struct leat_block *b, void *buf, size_t len, uint64_t off, struct leat_cb cb)
{
	const struct iovec iov = { .iov_base = buf, .iov_len = len };

	return submit(b, false, &iov, 1, off, 0, cb);
}

int leat_aio_block_pwrite(struct leat_block *b, const void *buf, size_t len, uint64_t off, unsigned flags,
			  struct leat_cb cb)
{
	/* iovec has no const, but a write does not store through it */
	const struct iovec iov = { .iov_base = (void *)(uintptr_t)buf, .iov_len = len };

	return submit(b, true, &iov, 1, off, flags, cb);
}

int leat_aio_block_preadv(struct leat_block *b, const struct iovec *iov, int cnt, uint64_t off, struct leat_cb cb)
{
	return submit(b, false, iov, cnt, off, 0, cb);
}

int leat_aio_block_pwritev(struct leat_block *b, const struct iovec *iov, int cnt, uint64_t off, unsigned flags,
			   struct leat_cb cb)
{
	return submit(b, true, iov, cnt, off, flags, cb);
}

ssize_t leat_block_pread(struct leat_block *b, void *buf, size_t len, uint64_t off)
{
	return (ssize_t)LT_WAIT_FOR(leat_block_handle(b), leat_aio_block_pread(b, buf, len, off, w.cb));
}

ssize_t leat_block_pwrite(struct leat_block *b, const void *buf, size_t len, uint64_t off, unsigned flags)
{
	return (ssize_t)LT_WAIT_FOR(leat_block_handle(b), leat_aio_block_pwrite(b, buf, len, off, flags, w.cb));
}

ssize_t leat_block_preadv(struct leat_block *b, const struct iovec *iov, int cnt, uint64_t off)
{
	return (ssize_t)LT_WAIT_FOR(leat_block_handle(b), leat_aio_block_preadv(b, iov, cnt, off, w.cb));
}

ssize_t leat_block_pwritev(struct leat_block *b, const struct iovec *iov, int cnt, uint64_t off, unsigned flags)
{
	return (ssize_t)LT_WAIT_FOR(leat_block_handle(b), leat_aio_block_pwritev(b, iov, cnt, off, flags, w.cb));
}
