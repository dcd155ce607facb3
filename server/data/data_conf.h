/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * data_conf.h - how the data of an export or a volume is stored and travels: its options
 */
#ifndef LEAT_SERVER_DATA_CONF_H
#define LEAT_SERVER_DATA_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/util.h"
#include "store_spec.h"

#define DATA_ALIGN 4096u /* file offsets at which a request may be split */
#define DATA_GRAIN_MAX (1u << 20)
#define DATA_STREAMS_MAX 32u
#define DATA_GRAIN_AUTO_MAX (64u << 10)
#define DATA_GRAIN_PART 32u /* limit: the first pieces of all members are at most this part of a request */

struct opt;

enum data_overlap {
	DATA_OVERLAP_OFF,     /* disk operation and transfer of a request do not overlap */
	DATA_OVERLAP_ORDERED, /* pieces are placed in order, as a growing prefix */
	DATA_OVERLAP_STREAMS, /* pieces are placed as the disk delivers them, in any order */
};

enum data_read {
	DATA_READ_CACHED, /* through the page cache */
	DATA_READ_DIRECT, /* from the disk into the buffer */
	DATA_READ_AUTO,	  /* cached pages from the page cache, the rest directly */
};

enum data_write {
	DATA_WRITE_CACHED,
	DATA_WRITE_DIRECT,
};

#define DATA_DEPTH_MAX 1024u
#define DATA_DEADLINE_WRITES 10u /* a write may wait this many times longer than a read */

enum data_sched {
	DATA_SCHED_NONE,     /* no queue: operations go to the disk as they come */
	DATA_SCHED_SORTED,   /* one queue, in order of file and offset */
	DATA_SCHED_DEADLINE, /* the same, reads first, with a time limit */
};

enum { /* struct data_conf.given */
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
struct data_conf {
	unsigned given;
	enum data_overlap overlap;
	unsigned trust_clients; /* trust clients not to change the data of a WRITE before its reply */
	uint32_t grain;	  /* bytes of a piece; 0: data_conf_grain() computes it */
	uint32_t streams; /* members of the disk that work in parallel */
	uint32_t chunk;	  /* stripe unit: contiguous bytes on one member */
	enum data_read read;
	enum data_write write;
	struct store_spec store;
	enum data_sched sched;
	uint32_t depth;	      /* limit of operations in the store at once; others wait in the queue */
	uint64_t deadline_ns; /* limit of a read's time in the queue */
};

/** data_conf_init - sets the defaults */
void data_conf_init(struct data_conf *d);

/** data_conf_option - applies one option of the command line or the file
 * @value: NULL for a bare flag
 * @why: receives a text on failure
 *
 * Return: 0, -ENOENT: unknown option; -EINVAL.
 */
int must_check data_conf_option(struct data_conf *d, const char *key, const char *value,
				  char *why, size_t why_bytes);

/** data_conf_opts - the table of these options; @ret_n: their number */
const struct opt *data_conf_opts(size_t *ret_n);

/** data_conf_check - call after the last option: are they consistent?
 *
 * Return: 0, -EINVAL with @why.
 */
int must_check data_conf_check(const struct data_conf *d, char *why, size_t why_bytes);

/** data_conf_grain - bytes of a piece of a request of @total bytes
 *
 * A network as fast as the disk is idle until the first piece of each member is ready: for members x grain / total of
 * the minimum time of the request.
 */
static inline uint32_t data_conf_grain(const struct data_conf *d, uint32_t total)
{
	uint32_t grain = total / (DATA_GRAIN_PART * d->streams);

	if (d->grain)
		return d->grain;
	grain = (grain + DATA_ALIGN - 1) / DATA_ALIGN * DATA_ALIGN;
	return MIN(MAX(grain, DATA_ALIGN), DATA_GRAIN_AUTO_MAX);
}

/** data_conf_same - are two configurations equal? */
bool data_conf_same(const struct data_conf *a, const struct data_conf *b);

#define DATA_CONF_PRINT_BYTES 512

/** data_conf_print - prints the options that differ from the default, for the log: ", overlap streams, ..."; Return:
 * @buf
 */
const char *data_conf_print(const struct data_conf *d, char *buf, size_t bytes);

#endif
