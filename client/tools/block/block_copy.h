/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * block_copy.h - a copy of `leat block cp`: shared by block_cp.c (the data) and block_ends.c (source and target)
 */
#ifndef LEAT_TOOL_BLOCK_COPY_H
#define LEAT_TOOL_BLOCK_COPY_H

#include "progress.h"
#include "tool_volume.h"

#define SLOTS 8u
#define EXTENTS 64u
#define UNIT ((size_t)1 << 20)

/* One side: a volume, or a file. */
struct side {
	const char *arg;
	struct leat_block *volume; /* NULL: a file */
	int fd;                    /* -1: none */
	uint64_t size;
	uint64_t block;            /* ranges are multiples of it; 1: any */
};

struct copy;

struct slot {
	struct copy *copy;
	void *buf;
	uint64_t off;
	size_t len;
	bool busy;
};

struct copy {
	struct side from, to;
	bool overwrite;            /* the target may hold data */
	struct leat_session *session;
	struct progress progress;
	struct slot slots[SLOTS];
	void *mem;                 /* of all slots, UNIT bytes each */
	unsigned busy;
	int err;
	const struct side *failed; /* side of @err */

	/* the source's ranges */
	uint64_t grain;            /* multiples of it, but for the end */
	uint64_t off;              /* of the next range */
	uint64_t data_end;         /* data up to here */
	struct leat_block_extent extents[EXTENTS];
	size_t nextents, extent;
	bool sparse;               /* false: the source has no holes, as far as known */

	/* a file as the target */
	bool in_place, to_device;
	char temp[TOOL_PATH_MAX], path[TOOL_PATH_MAX];
	int file_slot;             /* of signals_file_add() */
};

/** block_report - logs that the copy failed at @side with @err; Return: TOOL_FAILED */
int block_report(struct copy *c, const struct side *side, int err);

/** block_open_source, block_open_target - open what the arguments name, and fill in c->from and c->to
 * The target comes after the source: it must have room for it, and must not be the same.
 *
 * Return: exit status.
 */
int block_open_source(struct copy *c);
int block_open_target(struct copy *c);

/** block_check_target - refuses to overwrite data of a volume or a block device, unless --overwrite was given
 * What is not a hole is read, up to the first byte of data: zeroes that were written there do not count as data.
 * Uses c->mem. Return: exit status; after a failure nothing was written.
 */
int block_check_target(struct copy *c);

/** block_finish_file - gives a complete file its name or its size; Return: 0 or -errno */
must_check int block_finish_file(struct copy *c);

/** block_close - closes source and target, and removes an incomplete file; Return: exit status */
int block_close(struct copy *c);

#endif
