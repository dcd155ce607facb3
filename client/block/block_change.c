/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * block_change.c - flush, discard and zero
 *
 * Operation:  verfs.c compares the verifier of a FLUSH with those of the changes that were acknowledged before it was
 *             sent. A long range to discard or zero takes several calls, in the order of offsets.
 * Memory:     That of the operation.
 * Threads:    The steps on the owner's.
 * Errors:     -EIO: the server has lost changes; also from every later flush. If a call fails, those before it have
 *             changed their part of the range.
 */
#include <errno.h>

#include "lt_block.h"
#include "sync.h"

enum { DISCARD, ZERO }; /* lt_op.flags */

/* ---- flush ---- */

static void flushed(struct lt_op *op, int err)
{
	if (!err) {
		err = lt_verfs_synced(&op->block.of->verfs, op->res.block_change.BLOCKCHANGEres_u.verf, op->seq, true);
		if (err)
			lt_task_explain(&op->task, err, "FLUSH", LT_BLOCK_LOST);
	}
	lt_op_finish(op, err);
}

static void flush_start(struct lt_op *op, int err)
{
	(void)err; /* a first step */
	op->seq = op->block.of->verfs.count;
	lt_block_set_at(op->block.of, &op->args.block_at.at);
	lt_op_call_block(op, BLOCKPROC_FLUSH, &op->args.block_at.at.lane, flushed);
}

int leat_aio_block_flush(struct leat_block *b, struct leat_cb cb)
{
	struct lt_op *op;
	int rc = lt_block_op(b, true, "flush", cb, &op);

	return rc ? rc : lt_op_submit(op, flush_start);
}

int leat_block_flush(struct leat_block *b)
{
	return (int)LT_WAIT_FOR(leat_block_handle(b), leat_aio_block_flush(b, w.cb));
}

/* ---- discard and zero ---- */

static void changed(struct lt_op *op, int err);

/* Changes the next part of the range. */
static void change_part(struct lt_op *op)
{
	const struct lt_op_volume *v = &op->block;
	uint64_t length = MIN(v->end - v->off, (uint64_t)BLOCK_RANGE_MAX);
	BLOCKRANGEargs *discard = &op->args.block_range;
	BLOCKZEROargs *zero = &op->args.block_zero;

	if (op->flags == DISCARD) {
		*discard = (BLOCKRANGEargs){ .offset = v->off, .length = length };
		lt_block_set_at(v->of, &discard->at);
		lt_op_call_block(op, BLOCKPROC_DISCARD, &discard->at.lane, changed);
	} else {
		*zero = (BLOCKZEROargs){ .offset = v->off, .length = length, .keep = v->keep };
		lt_block_set_at(v->of, &zero->at);
		lt_op_call_block(op, BLOCKPROC_ZERO, &zero->at.lane, changed);
	}
}

static void change_fits(struct lt_op *op, int err)
{
	if (err || op->block.off == op->block.end)
		lt_op_finish(op, err);
	else
		change_part(op);
}

static void changed(struct lt_op *op, int err)
{
	if (!err) {
		lt_verfs_changed(&op->block.of->verfs, op->res.block_change.BLOCKCHANGEres_u.verf);
		op->block.off += MIN(op->block.end - op->block.off, (uint64_t)BLOCK_RANGE_MAX);
		op->created = true;
	}
	change_fits(op, err);
}

static void change_start(struct lt_op *op, int err)
{
	(void)err; /* a first step */
	lt_block_fit(op, change_fits);
}

static int submit_change(struct leat_block *b, int what, uint64_t off, uint64_t len, bool keep, struct leat_cb cb)
{
	const char *verb = what == DISCARD ? "discard" : "zero", *why = "";
	struct lt_op *op;
	int rc = lt_block_check(b, true);

	if (!rc)
		rc = lt_block_check_range(b, true, off, len, &why);
	if (rc)
		return lt_block_refuse(b, verb, rc, why, cb);
	rc = lt_block_op(b, true, verb, cb, &op);
	if (rc)
		return rc;
	op->flags = what;
	op->block.off = off;
	op->block.end = off + len;
	op->block.changes = true;
	op->block.keep = keep;
	return lt_op_submit(op, change_start);
}

int leat_aio_block_discard(struct leat_block *b, uint64_t off, uint64_t len, struct leat_cb cb)
{
	return submit_change(b, DISCARD, off, len, false, cb);
}

int leat_aio_block_zero(struct leat_block *b, uint64_t off, uint64_t len, unsigned flags, struct leat_cb cb)
{
	if (flags & ~LEAT_BLOCK_KEEP)
		return lt_block_refuse(b, "zero", -EINVAL, LT_BLOCK_FLAG, cb);
	return submit_change(b, ZERO, off, len, flags & LEAT_BLOCK_KEEP, cb);
}

int leat_block_discard(struct leat_block *b, uint64_t off, uint64_t len)
{
	return (int)LT_WAIT_FOR(leat_block_handle(b), leat_aio_block_discard(b, off, len, w.cb));
}

int leat_block_zero(struct leat_block *b, uint64_t off, uint64_t len, unsigned flags)
{
	return (int)LT_WAIT_FOR(leat_block_handle(b), leat_aio_block_zero(b, off, len, flags, w.cb));
}
