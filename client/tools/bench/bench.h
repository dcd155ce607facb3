/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * bench.h - one job of `leat bench`: a thread with its own mount and QD requests in flight
 */
#ifndef LEAT_TOOL_BENCH_H
#define LEAT_TOOL_BENCH_H

#include <pthread.h>

#include "base/hist.h"
#include "bench_file.h"
#include "tool.h"
#include "tool_volume.h"

struct bench_job;
struct bench_slot;

/* A kind of benchmark. */
struct bench_kind {
	const char *name;
	bool data;      /* transfers file data */
	bool writes, random;
	int (*start)(struct bench_slot *s); /* starts the next operation; 0 or -errno; it ends by callback */
};

struct bench_plan {
	const struct bench_kind *kind;
	const char *url;
	uint64_t block, size, seconds;
	unsigned qd, jobs;
	bool malloc_buf, sync, json, overwrite;
	bool on_volume;               /* the URL is that of a block volume */
	struct bench_file file;       /* for meta, its path is a directory */
	uint64_t mark;                /* random number in the names that meta creates */
};

struct bench_job {
	const struct bench_plan *plan;
	unsigned number;
	pthread_t thread;
	pthread_barrier_t *step; /* ready, go, finished */

	struct leat *m;
	struct leat_file *file;
	struct leat_block *volume;          /* with plan->on_volume: @m is its handle */
	void *mem;                          /* of all slots, stride bytes each; NULL: each slot has its own */
	size_t stride;
	struct bench_slot *slots;
	uint64_t next_off, random, deadline_ns, serial;
	unsigned busy;
	bool lost; /* interrupted, and requests in flight were cancelled, because the server did not reply */

	/* results; owned by the thread until it ends */
	struct hist hist;
	uint64_t ops, bytes;
	struct bench_counters n; /* as of bench_add_counters() */
	int err;
	char why[768];
};

/** bench_block_run - `leat block bench` */
int bench_block_run(const struct tool_cmd *self, int argc, char **argv);

/* Its options, of struct bench_plan */
#define BENCH_BLOCK_OPTS 8
extern const struct opt bench_block_opts[BENCH_BLOCK_OPTS];

extern const struct bench_kind bench_kinds[];
extern const size_t bench_kinds_count;

/** bench_job_run - thread function of a job: mounts, waits until all are ready, works until the deadline, unmounts */
void *bench_job_run(void *job);

#endif
