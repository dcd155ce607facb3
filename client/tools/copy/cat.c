/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * cat.c - leat cat: copies files to standard output
 *
 * Operation:  An ordered copy to descriptor 1: reads run ahead, writes keep their order.
 * Memory:     The copier's.
 * Threads:    One.
 * Errors:     Reported, and the next file is tried; status 1. A closed pipe ends it silently.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "copy.h"

static int cat_one(struct tool_target *t, void *ctx)
{
	struct fs_file in, out = { .fd = STDOUT_FILENO };
	struct copier *copier = NULL;
	struct progress quiet = { .lock = PTHREAD_MUTEX_INITIALIZER };
	enum copy_side side = COPY_FROM;
	struct stat st;
	int rc, err;

	(void)ctx;
	rc = fs_stat(fs_base(t->m), t->path, &st);
	if (!rc && S_ISDIR(st.st_mode))
		return tool_fail(t->m, t->path, -EISDIR);
	if (!rc)
		rc = fs_open(fs_base(t->m), t->path, O_RDONLY, 0, &in);
	if (rc)
		return tool_fail(t->m, t->path, rc);
	rc = copier_create(t->m, NULL, &quiet, &copier);
	if (!rc)
		rc = copier_run(copier, &in, &out, (uint64_t)st.st_size, COPY_ORDERED, &side);
	copier_destroy(copier);
	err = fs_close(&in);
	if (rc == -EPIPE || rc == -EINTR)
		return TOOL_FAILED;
	if (rc && side == COPY_TO)
		return tool_fail(NULL, "standard output", rc);
	if (rc || err)
		return tool_fail(t->m, t->path, rc ? rc : err);
	return TOOL_OK;
}

static int cat_run(const struct tool_cmd *self, int argc, char **argv)
{
	if (tool_options(self, argc, argv, NULL) < 0 || optind == argc)
		return tool_usage(self);
	return tool_each(argc - optind, argv + optind, cat_one, NULL);
}

const struct tool_cmd cmd_cat = { "cat", "URL...", "files to standard output", .run = cat_run };
