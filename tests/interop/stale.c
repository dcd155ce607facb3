/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * stale.c - reads and writes of memory that keeps losing its pages, over a device
 *
 *   stale URL FILE ROUNDS none|some
 *
 * URL is a mount with its options, FILE is what lies at the root of it, past leat. Exit status 0 if as many
 * rounds were stale as said.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "stale_rounds.h"

#define FILE_BYTES (128 * 1024)

static int run(struct leat *m, const char *path, unsigned long rounds, struct stale_counts *ret)
{
	const char *name = strrchr(path, '/');
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644), rc = -1;
	struct leat_file *f;

	if (fd < 0 || ftruncate(fd, FILE_BYTES)) {
		perror(path);
	} else if (leat_open(m, name ? name + 1 : path, O_RDWR, 0, &f)) {
		fprintf(stderr, "%s\n", leat_error(m));
	} else {
		rc = stale_rounds(f, fd, rounds, 42, ret);
		if (rc)
			fprintf(stderr, "%s: %s\n", strerror(-rc), leat_error(m));
		(void)leat_close(f);
	}
	if (fd >= 0)
		close(fd);
	return rc;
}

int main(int argc, char **argv)
{
	struct stale_counts n = { 0 };
	uint64_t regs = 0;
	struct leat *m;
	int rc;

	if (argc != 5)
		return 2;
	if (leat_mount(argv[1], NULL, &m)) {
		fprintf(stderr, "%s\n", leat_error(NULL));
		return 1;
	}
	rc = run(m, argv[2], strtoul(argv[3], NULL, 10), &n);
	(void)leat_stat_value(m, "regs", &regs);
	leat_umount(m);
	printf("%lu writes, %lu reads, %lu times other pages, %lu stale, %llu registrations\n", n.writes,
	       n.reads, n.lost, n.stale, (unsigned long long)regs);
	return rc || (n.stale > 0) != !strcmp(argv[4], "some");
}
