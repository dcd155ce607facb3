/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume_fsck.c - leat volume fsck in this process
 */
#include "volume_fsck.h"

#include <fcntl.h>
#include <getopt.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/tools/tool.h"
#include "volume_rig.h"

static void redirect(int fd, int to)
{
	assert_true(dup2(to, fd) == fd);
}

int volume_fsck(const char *options, const char *target, char *out, size_t cap)
{
	char text[500], *argv[12] = { (char[]){ "volume" }, (char[]){ "fsck" } }, *save;
	int argc = 2, rc, said = open(tmp_dir_path(&volume_rig.dir, "said"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	int old_out = dup(STDOUT_FILENO), old_err = dup(STDERR_FILENO);
	ssize_t n;

	assert_true(said >= 0 && old_out >= 0 && old_err >= 0);
	(void)snprintf(text, sizeof(text), "--key %s/key %s %s", volume_rig.dir.path, options, target ? target : volume_rig.url);
	for (char *word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save))
		argv[argc++] = word;
	(void)fflush(stdout);
	redirect(STDOUT_FILENO, said);
	redirect(STDERR_FILENO, said);
	optind = 0;
	rc = cmd_volume.run(&cmd_volume, argc, argv);
	(void)fflush(stdout);
	redirect(STDOUT_FILENO, old_out);
	redirect(STDERR_FILENO, old_err);
	n = pread(said, out, cap - 1, 0);
	assert_true(n >= 0);
	out[n] = '\0';
	close(said);
	close(old_out);
	close(old_err);
	return rc;
}
