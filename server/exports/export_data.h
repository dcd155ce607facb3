/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * export_data.h - how the bytes of an export's files travel: options and what they mean
 */
#ifndef LEAT_SERVER_EXPORT_DATA_H
#define LEAT_SERVER_EXPORT_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/util.h"
#include "store_spec.h"

#define DATA_ALIGN 4096u /* file offsets at which a request may be cut */
#define DATA_GRAIN_MAX (1u << 20)
#define DATA_STREAMS_MAX 32u
#define DATA_GRAIN_AUTO_MAX (64u << 10)
#define DATA_GRAIN_PART 32u /* of a request: what all members deliver first may be so much of it */
#define DATA_CHUNK_DEFAULT (64u << 10)

enum data_overlap {
	DATA_OVERLAP_OFF,     /* the whole disk operation, then the whole transfer, or the other way */
	DATA_OVERLAP_ORDERED, /* pieces are placed as a prefix that grows */
	DATA_OVERLAP_STREAMS, /* pieces are placed when the disk delivers them, in any order */
};

enum data_read {
	DATA_READ_CACHED, /* through the page cache */
	DATA_READ_DIRECT, /* from the disk into the buffer */
	DATA_READ_AUTO,	  /* what is in the page cache from there, the rest directly */
};

enum data_write {
	DATA_WRITE_CACHED,
	DATA_WRITE_DIRECT,
};

#define DATA_DEPTH_DEFAULT 32u
#define DATA_DEPTH_MAX 1024u
#define DATA_DEADLINE_DEFAULT_NS UINT64_C(500000000)
#define DATA_DEADLINE_WRITES 10u /* so many times longer may a write wait */

enum data_sched {
	DATA_SCHED_NONE,     /* no queue: the disk is given what comes */
	DATA_SCHED_SORTED,   /* one queue, in order of file and offset */
	DATA_SCHED_DEADLINE, /* the same, reads first, and no later than their time */
};

enum { /* struct export_data.given */
       DATA_GIVEN_OVERLAP = 1u << 0,
       DATA_GIVEN_GRAIN = 1u << 1,
       DATA_GIVEN_STREAMS = 1u << 2,
       DATA_GIVEN_CHUNK = 1u << 3,
       DATA_GIVEN_TRUST = 1u << 12,
       DATA_GIVEN_READ = 1u << 4,
       DATA_GIVEN_WRITE = 1u << 5,
       DATA_GIVEN_STORE = 1u << 8,
       DATA_GIVEN_SCHED = 1u << 9,
       DATA_GIVEN_DEPTH = 1u << 10,
       DATA_GIVEN_DEADLINE = 1u << 11,
};

/* Part of struct export_conf: plain data. */
struct export_data {
	unsigned given;
	enum data_overlap overlap;
	unsigned trust_clients; /* to leave the data of a WRITE alone until it is answered */
	uint32_t grain;	  /* bytes of a piece; 0: export_data_grain() decides */
	uint32_t streams; /* members of the disk that work side by side */
	uint32_t chunk;	  /* bytes that lie on one member before the next one's turn */
	enum data_read read;
	enum data_write write;
	struct store_spec store;
	enum data_sched sched;
	uint32_t depth;	      /* operations with the store at once, the others wait in the queue */
	uint64_t deadline_ns; /* longest that a read should wait there */
};

/** export_data_init - the defaults */
void export_data_init(struct export_data *d);

/** export_data_option - apply one option, as the command line and the file name it
 * @key: "overlap", "grain", "streams", "chunk", "store", "read", "write", "sched", "depth", "trust_clients",
 *       "deadline"
 * @value: NULL for a bare flag
 * @why: gets a text on failure
 *
 * Return: 0, -ENOENT: not one of these; -EINVAL.
 */
int must_check export_data_option(struct export_data *d, const char *key, const char *value,
				  char *why, size_t why_bytes);

/** export_data_check - all options are there: do they go together?
 *
 * Return: 0, -EINVAL with @why.
 */
int must_check export_data_check(const struct export_data *d, char *why, size_t why_bytes);

/** export_data_grain - bytes of a piece of a request of @total bytes
 *
 * A network as fast as the disk idles until the first pieces are there, one of each member: for
 * members x grain / total of the time that the request takes at best.
 */
static inline uint32_t export_data_grain(const struct export_data *d, uint32_t total)
{
	uint32_t grain = total / (DATA_GRAIN_PART * d->streams);

	if (d->grain)
		return d->grain;
	grain = (grain + DATA_ALIGN - 1) / DATA_ALIGN * DATA_ALIGN;
	return MIN(MAX(grain, DATA_ALIGN), DATA_GRAIN_AUTO_MAX);
}

/** export_data_same - do two mean the same? */
bool export_data_same(const struct export_data *a, const struct export_data *b);

#define EXPORT_DATA_PRINT_BYTES 512

/** export_data_print - ", overlap streams, ...": what is not the default, for the log; Return: @buf */
const char *export_data_print(const struct export_data *d, char *buf, size_t bytes);

#endif
