/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * bench_file.h - the file that `leat bench` works on
 */
#ifndef LEAT_TOOL_BENCH_FILE_H
#define LEAT_TOOL_BENCH_FILE_H

#include <errno.h>
#include <sys/stat.h>

#include "tool.h"

struct bench_file {
	char path[TOOL_PATH_MAX + 2];
	uint64_t size;
	dev_t dev;  /* the file that was made or found: another one may get its name */
	ino_t ino;
	bool known; /* are @dev and @ino */
	bool made;  /* by this command, which removes it */
	int slot;   /* of signals_file_add(), or -1 */
};

/* What a benchmark needs of its file. */
struct bench_need {
	const char *url;    /* for messages */
	const char *path;   /* of @url: a file or a directory */
	bool writes;
	bool overwrite;     /* the user allows to write over a file that is there, within its size */
	bool fill;          /* with bytes; else a hole will do */
	uint64_t min, size; /* bytes: the least that is of use; those of a file that is made */
};

/** bench_file_prepare - find the file, or make one
 * A file that is there is only read, unless overwrite= says otherwise. One is made in a directory, under
 * a name of its own, and where a benchmark that writes finds none.
 *
 * Return: exit status; what failed has been logged, and nothing was left behind.
 */
must_check int bench_file_prepare(struct leat *m, const struct bench_need *need,
				  struct bench_file *ret);

#define BENCH_REPLACED (-EEXIST)

/** bench_file_open - open the file that bench_file_prepare() made or found, on @m, which may be another mount
 *
 * Return: 0 or -errno; BENCH_REPLACED: its name has become that of another file, or of a link.
 */
must_check int bench_file_open(struct leat *m, const struct bench_file *f, int flags,
			       struct leat_file **ret);

/** bench_file_explain - why an operation on @m, or the mount itself if that is NULL, failed with @err */
const char *bench_file_explain(struct leat *m, int err);

/** bench_file_remove - remove the file if it was made here, and still has its name
 * @lost: the server does not answer: only say that the file is left behind
 *
 * Return: exit status.
 */
int bench_file_remove(struct leat *m, const struct bench_file *f, bool lost);

#endif
