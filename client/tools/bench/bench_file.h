/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * bench_file.h - shared by both kinds of `leat bench`: the file that it works on, counters, random numbers
 */
#ifndef LEAT_TOOL_BENCH_FILE_H
#define LEAT_TOOL_BENCH_FILE_H

#include <errno.h>
#include <sys/stat.h>

#include "tool.h"

/* Counters of a mount that the benchmarks print */
#define BENCH_COUNTERS(X)                                                                           \
	X(bytes_copied) X(regs) X(deregs) X(reg_reaped) X(binds) X(local_invs) X(reg_bounced) X(reg_pinned)

struct bench_counters {
#define BENCH_COUNTER(name) uint64_t name;
	BENCH_COUNTERS(BENCH_COUNTER)
#undef BENCH_COUNTER
};

/** bench_get_counters - reads the counters of a mount */
void bench_get_counters(struct leat *m, struct bench_counters *ret);

/** bench_add_counters - adds the increments between @before and @after to @sum; of reg_pinned the value of @after */
void bench_add_counters(struct bench_counters *sum, const struct bench_counters *before,
			const struct bench_counters *after);

struct bench_file {
	char path[TOOL_PATH_MAX + 2];
	uint64_t size;
	dev_t dev;  /* identity of the file: its name may be given to another file */
	ino_t ino;
	bool known; /* are @dev and @ino */
	bool made;  /* this command created it and removes it */
	int slot;   /* of signals_file_add(), or -1 */
};

/* Requirements of a benchmark for its file. */
struct bench_need {
	const char *url;    /* for messages */
	const char *path;   /* path of @url: a file or a directory */
	bool writes;
	bool overwrite;     /* the user allows overwriting an existing file within its size */
	bool fill;          /* write data; otherwise a hole is enough */
	uint64_t min, size; /* bytes: minimum usable size; size of a new file */
};

/** bench_file_prepare - finds the file, or creates one
 * An existing file is only read, unless overwrite= says otherwise. A file is created if the path is a directory, with
 * a unique name, or if a writing benchmark finds none.
 *
 * Return: exit status; on failure it was logged, and nothing was left behind.
 */
must_check int bench_file_prepare(struct leat *m, const struct bench_need *need,
				  struct bench_file *ret);

#define BENCH_REPLACED (-EEXIST)

/** bench_file_open - opens the file of bench_file_prepare() on @m, which may be another mount
 *
 * Return: 0 or -errno; BENCH_REPLACED: the name now means another file, or a link.
 */
must_check int bench_file_open(struct leat *m, const struct bench_file *f, int flags,
			       struct leat_file **ret);

/** bench_file_explain - the reason why an operation on @m, or the mount itself if that is NULL, failed with @err */
const char *bench_file_explain(struct leat *m, int err);

/** bench_file_remove - removes the file if it was created here and still has its name
 * @lost: the server does not respond: only report that the file is left behind
 *
 * Return: exit status.
 */
int bench_file_remove(struct leat *m, const struct bench_file *f, bool lost);

#endif
