/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * block_extents.c - what a range of a volume consists of
 *
 * Operation:  A reply of EXTENTS describes the beginning of the range that was asked for. The next call asks for the
 *             rest, until the range ends or the array of the caller is full. Neighbours of the same kind become one.
 * Memory:     The caller's array; that of the operation.
 * Threads:    The steps on the owner's.
 * Errors:     -EREMOTEIO: no extents, or such as have no length, are not whole blocks, exceed the range, or are of no
 *             known kind.
 */
#include <errno.h>

#include "lt_block.h"
#include "sync.h"

_Static_assert((int)LEAT_BLOCK_DATA == (int)BLOCK_DATA && (int)LEAT_BLOCK_HOLE == (int)BLOCK_HOLE &&
	       (int)LEAT_BLOCK_ZERO == (int)BLOCK_ZERO, "equal codes");

static void replied(struct lt_op *op, int err);

static void ask(struct lt_op *op)
{
	const struct lt_op_volume *v = &op->block;
	BLOCKRANGEargs *a = &op->args.block_range;

	*a = (BLOCKRANGEargs){ .offset = v->off, .length = MIN(v->end - v->off, (uint64_t)BLOCK_RANGE_MAX) };
	lt_block_set_at(v->of, &a->at);
	lt_op_call_block(op, BLOCKPROC_EXTENTS, &a->at.lane, replied);
}

/* Appends an extent at v->off. Return: false: the array is full */
static bool add(struct lt_op_volume *v, const block_extent *e)
{
	struct leat_block_extent *all = v->ret, *last = v->count ? &all[v->count - 1] : NULL;
	enum leat_block_kind kind = (enum leat_block_kind)e->kind;

	if (last && last->kind == kind) {
		last->len += e->length;
	} else if (v->count < v->cap) {
		all[v->count++] = (struct leat_block_extent){ v->off, e->length, kind };
	} else {
		return false;
	}
	v->off += e->length;
	return true;
}

/* Return: 0; 1: the array is full; -EREMOTEIO */
static int take(struct lt_op *op, const BLOCKEXTENTSresok *ok)
{
	struct lt_op_volume *v = &op->block;
	uint64_t left = op->args.block_range.length;
	uint64_t block = atomic_load_explicit(&v->of->block, memory_order_relaxed);

	if (!ok->extents.extents_len)
		return -EREMOTEIO;
	for (u_int i = 0; i < ok->extents.extents_len; i++) {
		const block_extent *e = &ok->extents.extents_val[i];

		if (!e->length || e->length > left || e->length & (block - 1) || (unsigned)e->kind > BLOCK_ZERO)
			return -EREMOTEIO;
		left -= e->length;
		if (!add(v, e))
			return 1;
	}
	return 0;
}

static void replied(struct lt_op *op, int err)
{
	struct lt_op_volume *v = &op->block;

	if (!err) {
		err = take(op, &op->res.block_extents.BLOCKEXTENTSres_u.resok);
		if (err < 0)
			lt_task_explain(&op->task, err, "EXTENTS", "impossible extents");
	}
	lt_op_free_results(op);
	if (err < 0)
		lt_op_finish(op, err);
	else if (err || v->off == v->end)
		lt_op_finish(op, (int64_t)v->count);
	else
		ask(op);
}

static void fits(struct lt_op *op, int err)
{
	if (err)
		lt_op_finish(op, err);
	else
		ask(op);
}

static void start(struct lt_op *op, int err)
{
	(void)err; /* a first step */
	lt_block_fit(op, fits);
}

int leat_aio_block_extents(struct leat_block *b, uint64_t off, uint64_t len, struct leat_block_extent *v, size_t n,
			   struct leat_cb cb)
{
	static const char verb[] = "extents";
	const char *why = "";
	struct lt_op *op;
	int rc = lt_block_check(b, true);

	if (!rc)
		rc = lt_block_check_range(b, false, off, len, &why);
	if (!rc && !(len && n)) {
		rc = -EINVAL;
		why = "a range of no bytes, or room for no extent";
	}
	if (rc)
		return lt_block_refuse(b, verb, rc, why, cb);
	rc = lt_block_op(b, true, verb, cb, &op);
	if (rc)
		return rc;
	op->block.off = off;
	op->block.end = off + len;
	op->block.ret = v;
	op->block.cap = n;
	return lt_op_submit(op, start);
}

ssize_t leat_block_extents(struct leat_block *b, uint64_t off, uint64_t len, struct leat_block_extent *v, size_t n)
{
	return (ssize_t)LT_WAIT_FOR(leat_block_handle(b), leat_aio_block_extents(b, off, len, v, n, w.cb));
}
