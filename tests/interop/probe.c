/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * probe.c - what the leat command has no words for, asked of any server
 *
 *   probe links URL STEP    symbolic links of 1 to 4000 bytes, each STEP longer, read back
 *   probe credits URL N     8 credits after the mount; N when more is asked at once
 *   probe hold URL N        N connections that have mounted and stay, until standard input ends
 *   probe stale URL NAME    opens NAME, says "open", waits for a line, and reads: prints the error
 *   probe lease FILE        holds a lease on a file of this machine: says "held"; "asked" when
 *                           another process wants it; gives it back when a line comes in
 *
 * Exit status 0: all was right.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "leat.h"

#define LINK_MAX_BYTES 4000
#define READS 256
#define READ_BYTES 65536u
#define CREDITS_FIRST 8u

static int fail(const char *what, long n, long rc)
{
	fprintf(stderr, "probe: %s, %ld: %s\n", what, n,
		rc < 0 ? strerror((int)-rc) : "not what it should be");
	return 1;
}

static int say(const char *word)
{
	return printf("%s\n", word) < 0 || fflush(stdout) ? fail("standard output", 0, 0) : 0;
}

static void wait_for_line(void)
{
	char line[64];

	/* the end of the input is as good as a line */
	if (!fgets(line, sizeof(line), stdin))
		return;
}

/* ---- links ---- */

static int links(struct leat *m, size_t step)
{
	char target[LINK_MAX_BYTES + 1], back[LINK_MAX_BYTES + 8];

	for (size_t i = 0; i < LINK_MAX_BYTES; i++)
		target[i] = (char)('a' + i % 23);
	for (size_t n = 1; n <= LINK_MAX_BYTES; n += step) {
		char was = target[n];
		ssize_t rc;

		target[n] = 0;
		rc = leat_symlink(m, target, "probe-link");
		if (rc)
			return fail("symlink", (long)n, rc);
		rc = leat_readlink(m, "probe-link", back, sizeof(back));
		if (rc != (ssize_t)n || memcmp(back, target, n) != 0)
			return fail("readlink", (long)n, rc);
		rc = leat_unlink(m, "probe-link");
		if (rc)
			return fail("unlink", (long)n, rc);
		target[n] = was;
	}
	return 0;
}

/* ---- credits ---- */

static unsigned arrived;
static int64_t first_error;

static void on_read(void *user_data, int64_t result)
{
	(void)user_data;
	arrived++;
	if (result != READ_BYTES && !first_error)
		first_error = result < 0 ? result : -EIO;
}

static int credits(struct leat *m, unsigned want)
{
	struct leat_cb cb = { .fn = on_read };
	struct leat_file *f;
	struct leat_info info = { .size = sizeof(info) };
	uint8_t *mem = calloc(READS, READ_BYTES);
	int rc;

	if (!mem)
		return fail("memory", 0, -ENOMEM);
	leat_info(m, &info);
	if (info.credits != (want < CREDITS_FIRST ? want : CREDITS_FIRST))
		return fail("credits of a new connection", (long)info.credits, 0);
	rc = leat_open(m, "probe-file", O_RDWR | O_CREAT | O_TRUNC, 0644, &f);
	if (!rc && leat_pwrite(f, mem, (size_t)READS * READ_BYTES, 0) != (ssize_t)(READS * READ_BYTES))
		rc = -EIO;
	for (unsigned i = 0; i < READS && !rc; i++)
		rc = leat_aio_pread(f, mem + (size_t)i * READ_BYTES, READ_BYTES,
				    (uint64_t)i * READ_BYTES, cb);
	while (!rc && arrived < READS)
		if (leat_poll(leat_session(m), -1) < 0)
			rc = -EIO;
	if (!rc)
		rc = (int)first_error;
	if (!rc)
		rc = leat_close(f);
	if (!rc)
		rc = leat_unlink(m, "probe-file");
	free(mem);
	if (rc)
		return fail("reads", arrived, rc);
	leat_info(m, &info);
	return info.credits == want ? 0 : fail("credits in use", (long)info.credits, 0);
}

/* ---- connections that stay ---- */

static int hold(struct leat *m, unsigned want)
{
	struct leat_info info = { .size = sizeof(info) };
	struct pollfd in = { .fd = 0, .events = POLLIN };

	leat_info(m, &info);
	if (info.conns != want)
		return fail("connections", (long)info.conns, 0);
	if (say("mounted"))
		return 1;
	while (poll(&in, 1, 0) == 0)
		if (leat_poll(leat_session(m), 100) < 0)
			return fail("poll", 0, 0);
	return 0;
}

/* ---- a file that goes while it is open ---- */

static int stale(struct leat *m, const char *name)
{
	struct leat_file *f;
	char byte;
	ssize_t rc;
	int err;

	err = leat_open(m, name, O_RDONLY, 0, &f);
	if (err)
		return fail("open", 0, err);
	if (say("open"))
		return 1;
	wait_for_line();
	rc = leat_pread(f, &byte, 1, 0);
	printf("%s\n", rc < 0 ? leat_error(m) : "it can still be read");
	(void)leat_close(f); /* there is nothing to lose */
	return rc == -ESTALE ? 0 : fail("pread", 0, rc);
}

/* ---- a lease ---- */

static int lease(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC), sig;
	sigset_t set;

	if (fd < 0)
		return fail(path, 0, -errno);
	sigemptyset(&set);
	sigaddset(&set, SIGIO);
	sigprocmask(SIG_BLOCK, &set, NULL);
	if (fcntl(fd, F_SETLEASE, F_WRLCK) < 0)
		return fail("lease", 0, -errno);
	if (say("held") || sigwait(&set, &sig) || say("asked"))
		return 1;
	wait_for_line();
	if (fcntl(fd, F_SETLEASE, F_UNLCK) < 0)
		return fail("give back", 0, -errno);
	return 0;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	unsigned n = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 0;
	struct leat_opts *opts = leat_opts_create();
	struct leat *m;
	int rc;

	if (!strcmp(mode, "lease") && argc == 3)
		return lease(argv[2]);
	if (argc < 3) {
		fprintf(stderr, "usage: probe links|credits|hold|stale URL [N|NAME] | lease FILE\n");
		return 2;
	}
	rc = strcmp(mode, "hold") ? 0 : leat_set(opts, "conns", argv[3]);
	if (!rc)
		rc = leat_mount(argv[2], opts, &m);
	leat_opts_destroy(opts);
	if (rc) {
		fprintf(stderr, "probe: %s\n", leat_error(NULL));
		return 1;
	}
	rc = !strcmp(mode, "links") && n		     ? links(m, n) :
	     !strcmp(mode, "credits") && n	     ? credits(m, n) :
	     !strcmp(mode, "hold") && n		     ? hold(m, n) :
	     !strcmp(mode, "stale") && argc == 4     ? stale(m, argv[3]) :
						       2;
	leat_umount(m);
	return rc;
}
