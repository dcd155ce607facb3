/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * bench_file.h - the file that `leat bench` works on
 */
#ifndef LEAT_TOOL_BENCH_FILE_H
#define LEAT_TOOL_BENCH_FILE_H

#include "tool.h"

struct bench_file {
	char path[TOOL_PATH_MAX + 2];
	uint64_t size;
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

/** bench_file_remove - remove the file if it was made here
 * @lost: the server does not answer: only say that the file is left behind
 *
 * Return: exit status.
 */
int bench_file_remove(struct leat *m, const struct bench_file *f, bool lost);

#endif
