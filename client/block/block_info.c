/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * block_info.c - descriptions of volumes: checks of what a server says, and of what a program asks for
 *
 * Operation:  Each description of the attached volume updates its size. So a range beyond the end is refused only after
 *             an INFO.
 * Memory:     That of the operation.
 * Threads:    lt_block_note() and the steps: the owner's; the rest any.
 * Errors:     -EREMOTEIO: a block size that is no power of two or above 64 KiB, a size that is no multiple of it, or
 *             another volume.
 */
#include <errno.h>

#include "base/text.h"
#include "lt_block.h"
#include "lt_sized.h"
#include "sync.h"

int lt_block_check(const struct leat_block *b, bool attached)
{
	int rc = b ? lt_handle_check(b->m) : -EBADF;

	return rc || !attached || !(b->flags & LEAT_BLOCK_LOOK) ? rc : -EBADF;
}

int lt_block_check_range(const struct leat_block *b, bool changes, uint64_t off, uint64_t len, const char **why)
{
	uint64_t block = atomic_load_explicit(&b->block, memory_order_relaxed);

	*why = "offset and length must be multiples of the volume's block size";
	if ((off | len) & (block - 1))
		return -EINVAL;
	*why = "";
	if (changes && atomic_load_explicit(&b->rdonly, memory_order_relaxed))
		return -EROFS;
	*why = LT_BLOCK_BEYOND;
	return off > INT64_MAX || len > INT64_MAX - off ? lt_block_beyond(changes) : 0;
}

static bool is_possible(const block_info *i)
{
	return i->block && i->block <= LT_BLOCK_BYTES_MAX && !(i->block & (i->block - 1)) && i->size <= INT64_MAX &&
	       !(i->size & (i->block - 1)) && i->name && i->name[0];
}

int lt_block_note(struct leat_block *b, const block_info *info)
{
	if (!is_possible(info) || strcmp(info->name, b->name) != 0)
		return -EREMOTEIO;
	atomic_store_explicit(&b->block, info->block, memory_order_relaxed);
	atomic_store_explicit(&b->bytes, info->size, memory_order_relaxed);
	atomic_store_explicit(&b->rdonly, info->flags & BLOCK_RDONLY || b->flags & LEAT_BLOCK_RDONLY,
			      memory_order_relaxed);
	return 0;
}

int lt_block_describe(const struct leat_block *b, const block_info *info, struct leat_block_info *ret)
{
	if (!is_possible(info))
		return -EREMOTEIO;
	*ret = (struct leat_block_info){
		.size = sizeof(*ret),
		.bytes = info->size,
		.block = info->block,
		.preferred = info->preferred ? info->preferred : info->block,
		.holders = info->nholders,
		.rdonly = info->flags & BLOCK_RDONLY || (b && b->flags & LEAT_BLOCK_RDONLY),
		.shared = info->flags & BLOCK_SHARED,
		.can_discard = info->flags & BLOCK_CAN_DISCARD,
		.fast_zero = info->flags & BLOCK_FAST_ZERO,
		.can_extents = info->flags & BLOCK_CAN_EXTENTS,
		.durable = info->flags & BLOCK_DURABLE,
	};
	strncpy(ret->name, info->name, sizeof(ret->name) - 1); /* the codec limits its length */
	text_clean(ret->name);
	return 0;
}

uint64_t leat_block_size(const struct leat_block *b)
{
	return b ? atomic_load_explicit(&b->bytes, memory_order_relaxed) : 0;
}

int lt_block_refuse(struct leat_block *b, const char *verb, int err, const char *why, struct leat_cb cb)
{
	if (b && err != -EOWNERDEAD)
		lt_handle_tell(b->m, NULL, NULL, verb, err, why);
	return lt_task_refuse(cb, err);
}

int lt_block_check_name(struct leat_block *b, const char *verb)
{
	if (!b || lt_session_check(b->m->session) || b->name[0])
		return 0;
	lt_handle_tell(b->m, NULL, NULL, verb, -EINVAL, "the URL names no volume");
	return -EINVAL;
}

int lt_block_op(struct leat_block *b, bool attached, const char *verb, struct leat_cb cb, struct lt_op **ret)
{
	int rc = lt_block_check(b, attached);

	if (rc)
		return lt_block_refuse(b, verb, rc, "", cb);
	rc = lt_op_create(b->m, verb, NULL, NULL, cb, ret);
	if (!rc)
		(*ret)->block.of = b;
	return rc;
}

/* ---- INFO ---- */

static void info_done(struct lt_op *op, int err)
{
	const block_info *info = &op->res.block_info.BLOCKINFOres_u.resok.info;
	struct leat_block_info all;

	if (!err) {
		err = lt_block_note(op->block.of, info);
		if (!err)
			err = lt_block_describe(op->block.of, info, &all);
		if (err)
			lt_task_explain(&op->task, err, "INFO", LT_BLOCK_IMPOSSIBLE);
		else
			lt_sized_copy(op->block.ret, &all, sizeof(all));
	}
	lt_op_end_results(op, err);
}

static void info_start(struct lt_op *op, int err)
{
	(void)err; /* a first step */
	op->args.block_info = lt_block_info_args(op->block.of);
	lt_op_call_block(op, BLOCKPROC_INFO, NULL, info_done);
}

int leat_aio_block_info(struct leat_block *b, struct leat_block_info *info, struct leat_cb cb)
{
	struct lt_op *op;
	int rc = lt_sized_check(info);

	if (rc)
		return lt_block_refuse(b, "info", rc, "the member size is impossible", cb);
	rc = lt_block_check_name(b, "info");
	if (rc)
		return lt_task_refuse(cb, rc);
	rc = lt_block_op(b, false, "info", cb, &op);
	if (rc)
		return rc;
	op->block.ret = info;
	return lt_op_submit(op, info_start);
}

int leat_block_info(struct leat_block *b, struct leat_block_info *info)
{
	return (int)LT_WAIT_FOR(leat_block_handle(b), leat_aio_block_info(b, info, w.cb));
}

/* ---- ranges beyond the known end ---- */

static void fit_done(struct lt_op *op, int err)
{
	struct leat_block *b = op->block.of;

	if (!err) {
		err = lt_block_note(b, &op->res.block_info.BLOCKINFOres_u.resok.info);
		if (err)
			lt_task_explain(&op->task, err, "INFO", LT_BLOCK_IMPOSSIBLE);
	}
	lt_op_free_results(op);
	if (!err && !lt_block_fits(b, op->block.end, 0)) {
		err = lt_block_beyond(op->block.changes);
		lt_task_explain(&op->task, err, NULL, LT_BLOCK_BEYOND);
	}
	op->block.next(op, err);
}

void lt_block_fit(struct lt_op *op, lt_op_step next)
{
	struct leat_block *b = op->block.of;

	if (lt_block_fits(b, op->block.end, 0)) {
		next(op, 0);
		return;
	}
	op->block.next = next;
	op->args.block_info = lt_block_info_args(b);
	lt_op_call_block(op, BLOCKPROC_INFO, NULL, fit_done);
}
