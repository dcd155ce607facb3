/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * cut.h - splits a payload into pieces and orders them
 */
#ifndef LEAT_SERVER_CUT_H
#define LEAT_SERVER_CUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/util.h"

#define CUT_STREAMS_MAX 32u

/* The part of a payload that lies on one member of the disk. */
struct cut_stream {
	uint64_t next; /* payload byte at which its next piece begins; total or more: no more pieces */
	unsigned out;  /* pieces in flight */
};

/* Owned by the caller. Fields are private to cut.c, except @left. */
struct cut {
	uint64_t base;	/* file offset of the payload's first byte */
	uint32_t total; /* bytes of payload */
	uint32_t left;	/* bytes that are in no piece yet */
	uint32_t grain, chunk;
	unsigned n;
	struct cut_stream streams[CUT_STREAMS_MAX];
};

/** cut_start - begins to split a payload
 * @grain: longest piece, in bytes; pieces end where a file offset is a multiple of it. 0: one piece for all
 * @streams: members, 1 to CUT_STREAMS_MAX
 * @chunk: bytes on one member before the next member's turn, by file offset; ignored for 1 stream
 */
void cut_start(struct cut *c, uint64_t base, uint32_t total, uint32_t grain, unsigned streams,
	       uint32_t chunk);

/** cut_next - returns the next piece, of the stream that has the fewest pieces in flight
 *
 * The first one begins at byte 0.
 *
 * Return: false: no piece is left.
 */
bool cut_next(struct cut *c, uint32_t *ret_off, uint32_t *ret_len, unsigned *ret_stream);

/** cut_ended - a piece of @stream has ended */
void cut_ended(struct cut *c, unsigned stream);

/** cut_stop - discards the rest of the payload */
void cut_stop(struct cut *c);

#endif
