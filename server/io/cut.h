/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * cut.h - which pieces a payload is cut into, and in which order they begin
 */
#ifndef LEAT_SERVER_CUT_H
#define LEAT_SERVER_CUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/util.h"

#define CUT_STREAMS_MAX 32u

/* What lies on one member of the disk. */
struct cut_stream {
	uint64_t next; /* payload byte at which its next piece begins; total or more: none */
	unsigned out;  /* pieces under way */
};

/* Plain data of the caller's; fields are cut.c's but for @left. */
struct cut {
	uint64_t base;	/* file offset of the payload's first byte */
	uint32_t total; /* bytes of payload */
	uint32_t left;	/* of them, those in no piece yet */
	uint32_t grain, chunk;
	unsigned n;
	struct cut_stream streams[CUT_STREAMS_MAX];
};

/** cut_start - nothing is cut yet
 * @grain: longest piece; pieces end where a file offset is a multiple of it. 0: one piece, the whole
 * @streams: members, 1 to CUT_STREAMS_MAX
 * @chunk: bytes of one member before the next one's turn, by file offset; of no account for 1 stream
 */
void cut_start(struct cut *c, uint64_t base, uint32_t total, uint32_t grain, unsigned streams,
	       uint32_t chunk);

/** cut_next - the next piece, of the stream that has the fewest under way
 *
 * The first one is that of byte 0.
 *
 * Return: false: there is none any more.
 */
bool cut_next(struct cut *c, uint32_t *ret_off, uint32_t *ret_len, unsigned *ret_stream);

/** cut_ended - a piece of @stream is under way no more */
void cut_ended(struct cut *c, unsigned stream);

/** cut_stop - whatever is not cut yet need not be */
void cut_stop(struct cut *c);

#endif
