/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * io.c - pread and pwrite of files
 *
 * Operation:  submit_io() checks the request and passes it to split/lt_bulk.c, which splits it into calls of at most rsize
 *             (wsize) bytes; send_subreq() makes such a call. A short read or write continues with the rest of its
 *             subrequest.
 * Memory:     The caller's memory is the payload of the calls; see split/lt_bulk.c.
 * Threads:    submit_io() any; the rest the owner's.
 * Errors:     As in split/lt_bulk.c.
 * See:        doc/tour.md, the life of a READ and of a WRITE.
 */
#include <errno.h>
#include <limits.h>

#include "leat_volume.h"
#include "lt_bulk.h"
#include "handle.h"
#include "io.h"
#include "readahead.h"
#include "striped_io.h"

/* Iovecs per call: no more segments than every peer must accept. */
#define PARTS 16

static void begin_io(struct lt_bulk *io)
{
	lt_file_hold(io->object);
	if (io->write)
		lt_readahead_drop(io->object);
}

static bool end_io(struct lt_bulk *io)
{
	lt_readahead_drop(io->object); /* data read in the meantime may predate the write */
	return false;
}

void lt_io_release(void *file)
{
	lt_file_release(file);
}

static void send_subreq(struct lt_subreq *p)
{
	struct lt_bulk *io = p->bulk;
	struct leat_file *f = io->object;
	const struct iovec *iov = p->iov + p->iov_first;

	if (io->write) {
		p->args.write.file = lt_fh_wire(&f->fh);
		p->args.write.offset = p->off;
		p->args.write.count = p->len;
		p->args.write.stable = (stable_how)io->how;
		p->args.write.data.length = p->len;
		p->args.write.data.iov = iov;
		p->args.write.data.iovcnt = p->iov_cnt;
		lt_call_start(&p->call, NFSPROC3_WRITE, &p->args, &p->res, 0, NULL, 0, lt_bulk_done);
	} else {
		p->args.read.file = lt_fh_wire(&f->fh);
		p->args.read.offset = p->off;
		p->args.read.count = p->len;
		lt_call_start(&p->call, NFSPROC3_READ, &p->args, &p->res, 0, iov, p->iov_cnt, lt_bulk_done);
	}
}

/* Return: true: the subrequest is finished; false: a call for its rest was sent. */
static bool subreq_read(struct lt_subreq *p)
{
	const READ3resok *ok = &p->res.read.READ3res_u.resok;
	uint32_t n = ok->data.length; /* <= p->len, the size of the sink */

	if (n > p->len) {
		lt_task_explain(&p->bulk->task, -EREMOTEIO, "READ", "%u bytes in reply to %u", n,
				p->len);
		lt_bulk_stop(p->bulk, p->off, -EREMOTEIO);
		return true;
	}
	lt_bulk_advance(p, n);
	if (!p->len)
		return true;
	if (ok->eof || !n) {
		lt_bulk_stop(p->bulk, p->off, 0);
		return true;
	}
	if (!lt_bulk_may_continue(p))
		return true;
	send_subreq(p);
	return false;
}

static bool subreq_written(struct lt_subreq *p)
{
	const WRITE3resok *ok = &p->res.write.WRITE3res_u.resok;
	int err = lt_file_wrote(p->bulk->object, (stable_how)p->bulk->how, ok);

	p->bulk->changed = true;
	if (err) {
		lt_task_explain(&p->bulk->task, err, "WRITE", "the server did not make it stable");
		lt_bulk_stop(p->bulk, p->off, err);
		return true;
	}
	if (!ok->count || ok->count > p->len) {
		lt_task_explain(&p->bulk->task, -EREMOTEIO, "WRITE", "%u of %u bytes written",
				ok->count, p->len);
		lt_bulk_stop(p->bulk, p->off, -EREMOTEIO);
		return true;
	}
	lt_bulk_advance(p, ok->count);
	if (!p->len || !lt_bulk_may_continue(p))
		return true;
	send_subreq(p);
	return false;
}

static bool subreq_replied(struct lt_subreq *p)
{
	return p->bulk->write ? subreq_written(p) : subreq_read(p);
}

static const struct lt_bulk_ops file_ops = {
	.parts = PARTS,
	.is_whole = false,
	.begin = begin_io,
	.send = send_subreq,
	.replied = subreq_replied,
	.ending = end_io,
	.release = lt_io_release,
};

/* Return: 0 with the sum of the parts, or the error of an invalid I/O. */
static int check_io(const struct leat_file *f, bool write, const struct iovec *iov, int cnt,
		    uint64_t off, uint64_t *ret_size)
{
	int rc;

	if (f->is_dir)
		return -EISDIR;
	if (write ? !lt_file_can_write(f) : !lt_file_can_read(f))
		return -EBADF;
	rc = cnt > IOV_MAX ? -EINVAL : lt_bulk_sum(iov, cnt, ret_size);
	if (rc || off > INT64_MAX)
		return -EINVAL;
	if (*ret_size > INT64_MAX - off)
		return write ? -EFBIG : -EINVAL;
	return 0;
}

static stable_how stability(const struct leat_file *f)
{
	if ((f->flags & O_SYNC) == O_SYNC)
		return FILE_SYNC;
	return f->flags & O_DSYNC ? DATA_SYNC : UNSTABLE;
}

/* What differs between the functions that write. */
struct kind {
	bool write, internal; /* lt_task.internal */
	stable_how how;
	struct leat_volume_written *written; /* lt_bulk.written */
	uint64_t epoch;                      /* lt_bulk.epoch */
};

/* @iov: copied; the memory that it points to is not
 *
 * Return: 0; -EBADF, -EISDIR, -EINVAL, -EFBIG, -ENOMEM; @cb is consumed in every outcome.
 */
static int submit_as(struct leat_file *f, const struct kind *k, const struct iovec *iov, int cnt, uint64_t off, struct leat_cb cb)
{
	struct leat *m;
	struct lt_bulk *io;
	uint64_t size;
	int rc;

	if (!f)
		return lt_task_refuse(cb, -EBADF);
	m = f->m;
	rc = lt_handle_check(m);
	if (rc)
		return lt_task_refuse(cb, rc);
	rc = check_io(f, k->write, iov, cnt, off, &size);
	if (rc) {
		lt_handle_tell(m, f->path, NULL, k->write ? "write" : "read", rc, "");
		return lt_task_refuse(cb, rc);
	}
	io = lt_bulk_get(m, iov, cnt);
	if (!io)
		return lt_task_refuse(cb, -ENOMEM);
	io->task.cb = cb;
	io->task.verb = k->write ? "write" : "read";
	io->task.internal = k->internal;
	io->task.path = f->path;
	io->task.file = f;
	io->ops = m->volume ? &lt_striped_ops : &file_ops;
	io->object = f;
	io->write = k->write;
	io->how = k->how;
	io->written = k->written;
	io->epoch = k->epoch;
	io->unit = k->write ? m->wsize : m->rsize;
	if (m->volume) {
		io->unit = STRIPE_IO_MAX;
		io->budget = &m->volume->budget;
	}
	io->grain = 1;
	io->off = off;
	io->size = size;
	lt_bulk_submit(io);
	return 0;
}

static int submit_io(struct leat_file *f, bool write, bool internal, const struct iovec *iov, int cnt, uint64_t off,
		     struct leat_cb cb)
{
	const struct kind k = { .write = write, .internal = internal, .how = f ? stability(f) : UNSTABLE };

	return submit_as(f, &k, iov, cnt, off, cb);
}

int leat_volume_aio_pwritev(struct leat_file *f, const struct iovec *iov, int cnt, uint64_t off, bool stable,
			    struct leat_volume_written *ret, struct leat_cb cb)
{
	const struct kind k = { .write = true, .how = stable ? DATA_SYNC : UNSTABLE, .written = ret };

	if (!f || !f->unstable || !ret)
		return lt_task_refuse(cb, -EBADF);
	*ret = (struct leat_volume_written){ 0 };
	return submit_as(f, &k, iov, cnt, off, cb);
}

int leat_aio_pread(struct leat_file *f, void *buf, size_t len, uint64_t off, struct leat_cb cb)
{
	const struct iovec iov = { .iov_base = buf, .iov_len = len };

	return submit_io(f, false, false, &iov, 1, off, cb);
}

int lt_io_read_internal(struct leat_file *f, void *buf, size_t len, uint64_t off, struct leat_cb cb)
{
	const struct iovec iov = { .iov_base = buf, .iov_len = len };

	return submit_io(f, false, true, &iov, 1, off, cb);
}

int leat_aio_pwrite(struct leat_file *f, const void *buf, size_t len, uint64_t off,
		    struct leat_cb cb)
{
	/* iovec has no const, but a write does not store through it */
	const struct iovec iov = { .iov_base = (void *)(uintptr_t)buf, .iov_len = len };

	return submit_io(f, true, false, &iov, 1, off, cb);
}

int lt_io_write_range(struct leat_file *f, const void *buf, size_t len, const struct lt_range *r, struct leat_cb cb)
{
	const struct kind k = { .write = true, .how = stability(f), .epoch = r->epoch };
	const struct iovec iov = { .iov_base = (void *)(uintptr_t)buf, .iov_len = len };

	return submit_as(f, &k, &iov, 1, r->off, cb);
}

int leat_aio_preadv(struct leat_file *f, const struct iovec *iov, int cnt, uint64_t off,
		    struct leat_cb cb)
{
	return submit_io(f, false, false, iov, cnt, off, cb);
}

int leat_aio_pwritev(struct leat_file *f, const struct iovec *iov, int cnt, uint64_t off,
		     struct leat_cb cb)
{
	return submit_io(f, true, false, iov, cnt, off, cb);
}
