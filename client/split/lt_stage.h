/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * lt_stage.h - small parts of a call's memory, copied through a buffer that the peer can access
 *
 * A call covers a limited number of parts. Parts smaller than LT_STAGE_PART that lie side by side in the range become
 * one part, in a staging buffer: a write copies them there before it is sent, a read copies them out when it is done.
 * A call with only one part is never staged.
 */
#ifndef LT_STAGE_H
#define LT_STAGE_H

#include "lt_bulk.h"

#define LT_STAGE_PART 4096u           /* smaller parts are copied */
#define LT_STAGE_BYTES (256u << 10)   /* at most so much of a call */
#define LT_STAGES_MAX 64u             /* of a session: calls beyond that wait (session->stages) */

struct lt_stage {
	struct lt_stage *next; /* in session->free_stages */
	uint8_t *mem;          /* of rpcrdma_mem_alloc() */
};

/** lt_stage_wants - has the iovec parts that are small, and several? */
bool lt_stage_wants(const struct iovec *iov, int cnt);

/** lt_stage_take - assigns the next part of the caller's memory, at most @max bytes, to @p
 * Without memory for a buffer, nothing is staged.
 *
 * Return: the bytes.
 */
uint32_t lt_stage_take(struct lt_bulk *b, struct lt_subreq *p, uint64_t max);

/** lt_stage_read - copies what a READ has brought to the caller's memory, when all of it is there */
void lt_stage_read(struct lt_subreq *p);

/** lt_stage_put - returns the buffer of @p, if any */
void lt_stage_put(struct lt_subreq *p);

/** lt_stage_free_pool - frees the buffers of a session; none may be in use */
void lt_stage_free_pool(struct leat_session *s);

#endif
