/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * dump.c - leat dump: runs leat-dump, which reads captures with decoders that leat.h does not offer
 *
 * Operation:  An installation has it in libexec/leat beside the folder of the leat command; the build tree
 *             beside the command itself.
 * Memory:     None.
 * Threads:    One.
 * Errors:     A message and status 1 if there is no such program.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tool.h"

static int dump_run(const struct tool_cmd *self, int argc, char **argv)
{
	static const char *const beside[] = { "../libexec/leat/leat-dump", "leat-dump" };
	char here[PATH_MAX], path[PATH_MAX + 32];
	ssize_t n = readlink("/proc/self/exe", here, sizeof(here) - 1);

	(void)self;
	(void)argc;
	if (n < 0)
		return tool_fail(NULL, "/proc/self/exe", -errno);
	here[n] = '\0';
	*strrchr(here, '/') = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(beside); i++) {
		snprintf(path, sizeof(path), "%s/%s", here, beside[i]);
		execv(path, argv);
		if (errno != ENOENT)
			return tool_fail(NULL, path, -errno);
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
