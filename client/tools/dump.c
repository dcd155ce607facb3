/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * dump.c - leat dump: runs leat-dump, which reads captures with decoders that leat.h does not offer
 *
 * Operation:  An installation has it in a directory that is known relative to that of the leat command (DUMP_DIR), so that
 *             both may move together; the build tree has it beside the command. It runs with all rights of the user:
 *             only root and the owner of leat may be able to write to it. Directories are not checked.
 * Memory:     None.
 * Threads:    One.
 * Errors:     A message and status 1 if there is no such program, or others may have changed it.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tool.h"

#ifndef DUMP_DIR
#define DUMP_DIR "../libexec/leat" /* the Makefile's default, for tools that do not get its flags */
#endif

/* Return: -ENOENT; else a program's exit status, after a message. */
static int run(const char *path, char **argv)
{
	int fd = open(path, O_PATH); /* stays open: the interpreter of a script opens it again */
	struct stat self, st;

	if (fd < 0 && errno == ENOENT)
		return -ENOENT;
	if (fd < 0 || fstat(fd, &st) || stat("/proc/self/exe", &self))
		return tool_fail(NULL, path, -errno);
	if ((st.st_uid && st.st_uid != self.st_uid) || st.st_mode & (S_IWGRP | S_IWOTH)) {
		log_err("refusing to run %s: it must be owned by root or by the owner of leat (uid %u), and must not be "
			"writable by group or others", path, (unsigned)self.st_uid);
		return TOOL_FAILED;
	}
	(void)fexecve(fd, argv, environ);
	return tool_fail(NULL, path, -errno);
}

static int dump_run(const struct tool_cmd *self, int argc, char **argv)
{
	static const char *const beside[] = { DUMP_DIR "/leat-dump", "leat-dump" };
	char here[PATH_MAX], path[2 * PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", here, sizeof(here) - 1);

	(void)self;
	(void)argc;
	if (n < 0)
		return tool_fail(NULL, "/proc/self/exe", -errno);
	here[n] = '\0';
	*strrchr(here, '/') = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(beside); i++) {
		int rc;

		snprintf(path, sizeof(path), "%s/%s", here, beside[i]);
		rc = run(path, argv);
		if (rc != -ENOENT)
			return rc;
	}
	log_err("cannot run leat-dump: neither %s/%s nor %s exists (make install)", here, beside[0], path);
	return TOOL_FAILED;
}

const struct tool_cmd cmd_dump = {
	.name = "dump",
	.args = "[-v] [--check] FILE",
	.what = "RPC-over-RDMA messages of a capture, or (--check) the rules they break",
	.run = dump_run,
};
