/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * file_space.c - allocated space and holes of open files
 *
 * Operation:  NFS version 3 has no such calls. A leatd has a program for them (xdr/space.x). A long range takes
 *             several calls, in the order of offsets.
 * Memory:     That of the operation.
 * Threads:    The steps on the owner's.
 * Errors:     -EOPNOTSUPP: another server, or a file system without this change. If a call fails, those before it have
 *             changed their part of the range.
 */
#include <errno.h>
#include <fcntl.h>

#include "file.h"
#include "handle.h"
#include "op.h"
#include "readahead.h"
#include "striped_io.h"
#include "sync.h"

static int server_has_it(const struct leat_file *f)
{
	if (f->m->volume) {
		lt_handle_tell(f->m, f->path, NULL, "space of a file", -EOPNOTSUPP, LT_STRIPED_NOT_YET);
		return -EOPNOTSUPP;
	}
	return f->m->server->is_leatd ? 0 : -EOPNOTSUPP;
}

static void end(struct lt_op *op, int64_t result)
{
	/* a leatd without the program */
	lt_file_finish(op, result == -EPROTONOSUPPORT ? -EOPNOTSUPP : result);
}

/* ---- allocate ---- */

static void allocated(struct lt_op *op, int err);

/* Changes the next part of the range, from the offset in the arguments. */
static void allocate_part(struct lt_op *op)
{
	ALLOCATE3args *a = &op->args.allocate;

	a->length = op->range_end - a->offset;
	if (a->change != SPACE_PUNCH)
		a->length = MIN(a->length, (uint64_t)SPACE_BYTES_MAX);
	lt_readahead_drop(op->task.file);
	lt_op_call_of(op, lt_space_procs, SPACEPROC_ALLOCATE, allocated);
}

static void allocated(struct lt_op *op, int err)
{
	ALLOCATE3args *a = &op->args.allocate;

	a->offset += a->length;
	if (err || a->offset == op->range_end) {
		end(op, err);
		return;
	}
	op->created = true; /* a part of the space */
	allocate_part(op);
}

static void allocate_start(struct lt_op *op, int err)
{
	(void)err; /* a first step */
	lt_file_hold(op->task.file);
	op->args.allocate.object = lt_fh_wire(&op->task.file->fh);
	allocate_part(op);
}

static int convert_mode(int mode, space_change *ret)
{
	switch (mode) {
	case 0:
		*ret = SPACE_ALLOCATE;
		return 0;
	case FALLOC_FL_KEEP_SIZE:
		*ret = SPACE_ALLOCATE_KEEP;
		return 0;
	case FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE:
		*ret = SPACE_PUNCH;
		return 0;
	case FALLOC_FL_ZERO_RANGE:
		*ret = SPACE_ZERO;
		return 0;
	case FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE:
		*ret = SPACE_ZERO_KEEP;
		return 0;
	default:
		return -EOPNOTSUPP;
	}
}

static int check_range(const struct leat_file *f, uint64_t off, uint64_t len)
{
	if (!f || !lt_file_can_write(f) || f->flags & O_PATH)
		return -EBADF;
	if (!len)
		return -EINVAL;
	return off > INT64_MAX || len > INT64_MAX - off ? -EFBIG : 0;
}

int leat_aio_fallocate(struct leat_file *f, int mode, uint64_t off, uint64_t len, struct leat_cb cb)
{
	space_change change;
	struct lt_op *op;
	int rc = check_range(f, off, len);

	if (!rc)
		rc = convert_mode(mode, &change);
	if (!rc)
		rc = server_has_it(f);
	if (rc)
		return lt_task_refuse(cb, rc);
	rc = lt_file_op(f, "fallocate", cb, &op);
	if (rc)
		return rc;
	op->args.allocate.change = change;
	op->args.allocate.offset = off;
	op->range_end = off + len;
	return lt_op_submit(op, allocate_start);
}

int leat_fallocate(struct leat_file *f, int mode, uint64_t off, uint64_t len)
{
	return (int)LT_WAIT_FOR(f ? f->m : NULL, leat_aio_fallocate(f, mode, off, len, w.cb));
}

/* ---- seek ---- */

static void found(struct lt_op *op, int err)
{
	const SEEK3resok *ok = &op->res.seek.SEEK3res_u.resok;

	if (!err && (ok->offset > INT64_MAX || ok->offset < op->args.seek.offset)) {
		err = -EREMOTEIO;
		lt_task_explain(&op->task, err, "SEEK", "an offset before the one asked for, or no offset");
	}
	end(op, err ? err : (int64_t)ok->offset);
}

static void seek_start(struct lt_op *op, int err)
{
	(void)err; /* a first step */
	lt_file_hold(op->task.file);
	op->args.seek.object = lt_fh_wire(&op->task.file->fh);
	lt_op_call_of(op, lt_space_procs, SPACEPROC_SEEK, found);
}

static int submit_seek(struct leat_file *f, bool hole, uint64_t off, struct leat_cb cb)
{
	struct lt_op *op;
	int rc = 0;

	if (!f || !lt_file_can_read(f))
		rc = -EBADF;
	else if (off > INT64_MAX)
		rc = -ENXIO;
	else
		rc = server_has_it(f);
	if (rc)
		return lt_task_refuse(cb, rc);
	rc = lt_file_op(f, hole ? "seek to a hole" : "seek to data", cb, &op);
	if (rc)
		return rc;
	op->args.seek.hole = hole;
	op->args.seek.offset = off;
	return lt_op_submit(op, seek_start);
}

int leat_aio_seek_data(struct leat_file *f, uint64_t off, struct leat_cb cb)
{
	return submit_seek(f, false, off, cb);
}

int leat_aio_seek_hole(struct leat_file *f, uint64_t off, struct leat_cb cb)
{
	return submit_seek(f, true, off, cb);
}

int64_t leat_seek_data(struct leat_file *f, uint64_t off)
{
	return LT_WAIT_FOR(f ? f->m : NULL, leat_aio_seek_data(f, off, w.cb));
}

int64_t leat_seek_hole(struct leat_file *f, uint64_t off)
{
	return LT_WAIT_FOR(f ? f->m : NULL, leat_aio_seek_hole(f, off, w.cb));
}
