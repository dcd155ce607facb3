/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * lt_block.h - an attachment to a block volume
 */
#ifndef LT_BLOCK_H
#define LT_BLOCK_H

#include <stdatomic.h>

#include "handle.h"
#include "leat_block.h"
#include "op.h"
#include "verfs.h"

#define LT_BLOCK_BYTES_MAX 65536u /* largest block size that is accepted */

/* causes, for leat_error() */
#define LT_BLOCK_LOST "the server has lost changes that were not flushed"
#define LT_BLOCK_BEYOND "beyond the end of the volume"
#define LT_BLOCK_FLAG "an unknown flag"
#define LT_BLOCK_IMPOSSIBLE "an impossible description of the volume"

struct leat_block {
	/* constant while it exists */
	struct leat *m;
	unsigned flags;                /* of leat_block_attach() */
	char name[BLOCK_NAME_MAX + 1]; /* "": none, with LEAT_BLOCK_LOOK */
	char holder[BLOCK_NAME_MAX + 1];
	char handle[BLOCK_HANDLE_BYTES];

	/* as the server last said; written by the owner's thread, read by any */
	atomic_uint_fast64_t bytes;
	atomic_uint block;             /* offsets and lengths are multiples of it */
	atomic_bool rdonly;

	/* owner's thread only */
	struct lt_verfs verfs;
	struct {
		struct rpcrdma_timer timer;
		struct lt_call call;
		BLOCKREADargs args;
		BLOCKREADres res;
		bool flying, stopped;
		struct leat_cb ended;  /* of lt_block_keep_stop(), while a call is in flight */
	} keep;                        /* keep.c */
};

/** lt_block_keep - begins to keep the volume while there are no calls; for lt_sync_run() */
void lt_block_keep(void *of, void *arg);

/** lt_block_keep_stop - ends that, before DETACH; for lt_sync_run()
 * @arg: struct leat_cb: its function runs when no call for that is in flight any more
 */
void lt_block_keep_stop(void *of, void *arg);

extern uint64_t lt_block_keep_ns; /* between two calls for that; tests shorten it */

/** lt_block_check - may an operation on the volume be started?
 * @attached: it needs an attachment
 *
 * Return: 0; -EBADF: no attachment; as lt_handle_check().
 */
must_check int lt_block_check(const struct leat_block *b, bool attached);

/** lt_block_check_range - may this range be read, or changed?
 * @changes: the operation changes it
 * @why: receives the cause of an error, for leat_error()
 *
 * Return: 0; -EINVAL: not a multiple of the block size; -EROFS; -EINVAL, -ENOSPC if it is beyond any volume's end.
 */
must_check int lt_block_check_range(const struct leat_block *b, bool changes, uint64_t off, uint64_t len,
				    const char **why);

/** lt_block_fits - does the range, which was checked, end inside of the volume, as far as known? */
static inline bool lt_block_fits(const struct leat_block *b, uint64_t off, uint64_t len)
{
	return off + len <= atomic_load_explicit(&b->bytes, memory_order_relaxed);
}

/** lt_block_beyond - the error of a range that is beyond the end */
static inline int lt_block_beyond(bool changes)
{
	return changes ? -ENOSPC : -EINVAL;
}

/** lt_block_note - takes over what the server said about the volume of @b
 * Return: 0; -EREMOTEIO: it is impossible, nothing was taken over.
 */
must_check int lt_block_note(struct leat_block *b, const block_info *info);

/** lt_block_describe - converts what the server said of a volume
 * @b: of this one; or NULL: of any volume
 *
 * Return: as lt_block_note().
 */
must_check int lt_block_describe(const struct leat_block *b, const block_info *info, struct leat_block_info *ret);

/** lt_block_op - as lt_op_create(), for an operation on @b; Return: also as lt_block_check() */
must_check int lt_block_op(struct leat_block *b, bool attached, const char *verb, struct leat_cb cb, struct lt_op **ret);

/** lt_block_fit - calls next(op, 0) if the range of the operation, which was checked, ends inside of the volume; asks for
 * the size first if it does not as far as known
 * next(-errno): beyond the end, or the error of the INFO.
 */
void lt_block_fit(struct lt_op *op, lt_op_step next);

/** lt_block_set_at - fills in the arguments that name the attachment; the lane follows with each call */
static inline void lt_block_set_at(const struct leat_block *b, block_at *at)
{
	memcpy(at->handle, b->handle, sizeof(at->handle));
}

/** lt_block_info_args - the arguments of an INFO for the description, and the first holders
 *
 * They live as long as @b: a call is encoded again for each connection that it needs.
 */
static inline BLOCKINFOargs lt_block_info_args(struct leat_block *b)
{
	static const char from_the_first[] = "";

	return (BLOCKINFOargs){ .volume = b->name, .after = (char *)(uintptr_t)from_the_first };
}

/** lt_block_check_name - does the URL name a volume? Sets the text of leat_error() otherwise.
 * Return: 0; -EINVAL.
 */
must_check int lt_block_check_name(struct leat_block *b, const char *verb);

/** lt_block_refuse - fails an asynchronous function at once, with a text for leat_error()
 * @why: the cause, or ""
 * Return: @err
 */
int lt_block_refuse(struct leat_block *b, const char *verb, int err, const char *why, struct leat_cb cb);

#endif
