/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * replay.h - the log of what reaches the file of a volume: record.c writes it, replay.c reads it
 *
 * A sequence of records in the byte order of the machine. An operation has two: one before it begins, and one after it
 * has ended. Its data follow the first one.
 */
#ifndef LEAT_TESTS_REPLAY_H
#define LEAT_TESTS_REPLAY_H

#include <stdint.h>

#define REPLAY_MAGIC UINT32_C(0x6c656174)

enum replay_kind {
	REPLAY_WRITE, /* @len bytes of data follow */
	REPLAY_ZERO,  /* zeroed or discarded */
	REPLAY_SYNC,
	REPLAY_END    /* of the operation @id */
};

struct replay_record {
	uint32_t magic, kind;
	uint64_t id;          /* unique */
	uint64_t off, len;
	uint32_t durable;     /* WRITE: on the disk when it has ended */
	uint32_t failed;      /* END: as a whole or in part */
};

#endif
