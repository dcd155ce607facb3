/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * split.h - splits a payload into units and orders them
 */
#ifndef LEAT_SERVER_SPLIT_H
#define LEAT_SERVER_SPLIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/util.h"

#define SPLIT_STREAMS_MAX 32u

/* The part of a payload that lies on one member of the disk. */
struct split_stream {
	uint64_t next; /* payload byte at which its next unit begins; total or more: no more units */
	unsigned out;  /* units in flight */
};

/* Owned by the caller. Fields are private to split.c, except @left. */
struct split {
	uint64_t base;	/* file offset of the payload's first byte */
	uint32_t total; /* bytes of payload */
	uint32_t left;	/* bytes that are in no unit yet */
	uint32_t grain, chunk;
	unsigned n;
	struct split_stream streams[SPLIT_STREAMS_MAX];
};

/** split_start - begins to split a payload
 * @grain: longest unit, in bytes; units end where a file offset is a multiple of it. 0: one unit for all
 * @streams: members, 1 to SPLIT_STREAMS_MAX
 * @chunk: bytes on one member before the next member's turn, by file offset; ignored for 1 stream
 */
void split_start(struct split *c, uint64_t base, uint32_t total, uint32_t grain, unsigned streams,
	       uint32_t chunk);

/** split_next - returns the next unit, of the stream that has the fewest units in flight
 *
 * The first one begins at byte 0.
 *
 * Return: false: no unit is left.
 */
bool split_next(struct split *c, uint32_t *ret_off, uint32_t *ret_len, unsigned *ret_stream);

/** split_ended - a unit of @stream has ended */
void split_ended(struct split *c, unsigned stream);

/** split_stop - discards the rest of the payload */
void split_stop(struct split *c);

#endif
