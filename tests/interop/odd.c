/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * odd.c - files, links and names of awkward lengths, on a mount and where the server keeps them
 *
 *   odd direct|buffered MOUNT SERVER [LENGTH...]
 *   odd links MOUNT SERVER [LENGTH...]
 *   odd names MOUNT SERVER
 *
 * Operation:  SERVER is the directory that is mounted at MOUNT. Each length is written through the
 *             mount, at the start of a new file and at 4099 of one that is there already, and looked
 *             at in SERVER; then other bytes are put there in SERVER, at another time, and read
 *             through the mount, opened again: no cache may answer that. Memory lies at odd
 *             addresses, past the page cache too, and what is beside it must stay as it was. Without
 *             LENGTH it is all those within nine of 0, 1024, 4096 and 1 MiB.
 *             Symbolic links are made on one side and read on the other, in both directions; without
 *             LENGTH all near the sizes where messages change their form.
 *             Names are the longest there are, in directories with such names: created, linked,
 *             renamed from one to the other and back, listed, removed.
 * Memory:     Static.
 * Threads:    One.
 * Errors:     Prints each failure; the last line counts. Exit status 1 if there was one.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"

#define LEN_MAX ((size_t)4 << 20)
#define PLACE 4099 /* an odd offset beyond the first page */
#define BEHIND 5000
#define GUARD 64
#define LINK_MAX_BYTES 4000

static uint8_t noise[2 * LEN_MAX + PLACE + BEHIND]; /* patterns are pieces of it */
static uint8_t area[LEN_MAX + PLACE + BEHIND + 2 * GUARD];
static unsigned passed, failed;

static void count(const char *why, const char *what, size_t len, uint64_t off)
{
	if (!why) {
		passed++;
		return;
	}
	failed++;
	printf("%s of %zu at %ju: %s%s%s\n", what, len, (uintmax_t)off, why, errno ? ": " : "",
	       errno ? strerror(errno) : "");
}

static void make_noise(void)
{
	uint64_t x = 88172645463325252u;

	for (size_t i = 0; i + sizeof(x) <= sizeof(noise); i += sizeof(x)) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		memcpy(noise + i, &x, sizeof(x));
	}
}

/* What bytes @off and following of a file are in its version @version. */
static const uint8_t *pattern(unsigned version, uint64_t off)
{
	return noise + (version * 65539u + off) % LEN_MAX;
}

static bool put(int fd, const uint8_t *from, size_t len, uint64_t off)
{
	errno = 0;
	return pwrite(fd, from, len, (off_t)off) == (ssize_t)len;
}

static bool get(int fd, uint8_t *to, size_t len, uint64_t off)
{
	errno = 0;
	return pread(fd, to, len, (off_t)off) == (ssize_t)len;
}

/* The file in SERVER: @size bytes of version 1, but @len of version 2 at @off; zeros if there was none */
static const char *look(int fd, size_t size, size_t len, uint64_t off)
{
	struct stat st;

	errno = 0;
	if (fstat(fd, &st))
		return "fstat at the server";
	if ((size_t)st.st_size != MAX(size, len ? off + len : 0))
		return "wrong size at the server";
	if (!get(fd, area, (size_t)st.st_size, 0))
		return "pread at the server";
	if (memcmp(area + off, pattern(2, off), len) != 0)
		return "wrong bytes at the server";
	if (size && (memcmp(area, pattern(1, 0), off) != 0 ||
		     memcmp(area + off + len, pattern(1, off + len), size - off - len) != 0))
		return "bytes beside it changed at the server";
	return NULL;
}

/* Other bytes in SERVER. A client of NFSv3 knows by the ctime that a file has changed, and the clock
 * of that is a coarse one: it has to move on. */
static const char *change(int back, size_t len, uint64_t off)
{
	const struct timespec pause = { .tv_nsec = 500000 };
	struct stat before, now;

	if (fstat(back, &before) || !put(back, pattern(3, off), len, off))
		return "pwrite at the server";
	do {
		(void)nanosleep(&pause, NULL);
		if (futimens(back, NULL) || fstat(back, &now))
			return "futimens at the server";
	} while (now.st_ctim.tv_sec == before.st_ctim.tv_sec &&
		 now.st_ctim.tv_nsec == before.st_ctim.tv_nsec);
	return NULL;
}

/* Reads them through the mount: into memory at an odd place, asking for more than is there now and
 * then, when the end of the file is @at_end. */
static const char *read_back(int fd, size_t len, uint64_t off, bool at_end)
{
	uint8_t *to = area + GUARD + len % 7;
	size_t more = at_end ? len % 3 * 5 : 0;
	ssize_t n;

	memset(area, 0xee, (size_t)(to - area) + len + more + GUARD);
	n = pread(fd, to, len + more, (off_t)off);
	if (n != (ssize_t)len)
		return n < 0 ? "pread" : "pread gave another count";
	if (memcmp(to, pattern(3, off), len) != 0)
		return "wrong bytes read";
	for (uint8_t *p = area; p < to; p++)
		if (*p != 0xee)
			return "memory before the buffer changed";
	for (uint8_t *p = to + len + more; p < to + len + more + GUARD; p++)
		if (*p != 0xee)
			return "memory behind the buffer changed";
	return NULL;
}

static const char *write_and_read(const char *mount, const char *server, size_t len, uint64_t off,
				  bool direct)
{
	size_t size = off ? off + len + BEHIND : 0; /* of the file that is there already */
	uint8_t *from = area + GUARD + len % 5;
	const char *why = "pwrite at the server";
	char name[4096], at[4096];
	int fd = -1, back;

	snprintf(name, sizeof(name), "%s/odd-%zu-%ju", mount, len, (uintmax_t)off);
	snprintf(at, sizeof(at), "%s/odd-%zu-%ju", server, len, (uintmax_t)off);
	errno = 0;
	back = open(at, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (back < 0)
		return "open at the server";
	if (!off)
		unlink(at); /* a file that the mount is to make */
	else if (!put(back, pattern(1, 0), size, 0))
		goto out;
	why = "open";
	fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | (direct ? O_DIRECT : 0), 0644);
	if (fd < 0)
		goto out;
	close(back);
	back = open(at, O_RDWR | O_CLOEXEC);
	if (back < 0)
		goto out;
	memcpy(from, pattern(2, off), len);
	if (!put(fd, from, len, off))
		why = "pwrite";
	else if (fsync(fd))
		why = "fsync";
	else
		why = look(back, size, len, off);
	close(fd);
	if (!why)
		why = change(back, len, off);
	fd = open(name, O_RDONLY | O_CLOEXEC | (direct ? O_DIRECT : 0));
	if (!why)
		why = fd < 0 ? "open" : read_back(fd, len, off, !off);
out:
	if (fd >= 0)
		close(fd);
	if (back >= 0)
		close(back);
	if (unlink(name) && !why)
		why = "unlink";
	return why;
}

static void file_of(const char *mount, const char *server, const char *how, size_t len)
{
	bool direct = !strcmp(how, "direct");

	count(write_and_read(mount, server, len, 0, direct), how, len, 0);
	count(write_and_read(mount, server, len, PLACE, direct), how, len, PLACE);
}

static void around(const char *mount, const char *server, const char *how, size_t middle)
{
	for (size_t len = middle < 9 ? 0 : middle - 9; len <= middle + 9; len++)
		file_of(mount, server, how, len);
}

/* ---- links ---------------------------------------------------------------------------------- */

/* A link made in @to and read in @from, where both are the same directory. */
static const char *link_and_read(const char *to, const char *from, const char *name, size_t len)
{
	char target[LINK_MAX_BYTES + 1], path[4096], got[LINK_MAX_BYTES + 2];
	ssize_t n;

	for (size_t i = 0; i < len; i++)
		target[i] = (char)('a' + pattern(2, len)[i] % 26);
	target[len] = '\0';
	errno = 0;
	snprintf(path, sizeof(path), "%s/%s-%zu", to, name, len);
	if (symlink(target, path))
		return "symlink";
	snprintf(path, sizeof(path), "%s/%s-%zu", from, name, len);
	n = readlink(path, got, sizeof(got));
	if (n != (ssize_t)len)
		return n < 0 ? "readlink" : "another length";
	return memcmp(got, target, len) != 0 ? "another target" : NULL;
}

/* Lengths of which all are tried: short ones; those where a path moves from the call into a Read
 * chunk (148 bytes come before it, of 708 with 1024 inline and 3780 with 4096), and those where it
 * moves from the reply into the Reply chunk (200 bytes before it). */
static bool is_wanted(size_t len)
{
	static const size_t ranges[][2] = {
		{ 1, 64 },	{ 552, 568 },	{ 818, 830 },
		{ 3624, 3640 }, { 3890, 3902 }, { 3992, LINK_MAX_BYTES }
	};

	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++)
		if (len >= ranges[i][0] && len <= ranges[i][1])
			return true;
	return len % 101 == 0;
}

static void links_of(const char *mount, const char *server, const char *how, size_t len)
{
	(void)how;
	count(link_and_read(mount, server, "in", len), "link in", len, 0);
	count(link_and_read(server, mount, "out", len), "link out", len, 0);
}

/* ---- names ---------------------------------------------------------------------------------- */

/* DIR/NAME/NAME, each of 255 bytes that begin with the letters given */
static const char *deep(const char *dir, const char *letters)
{
	static char path[2][4096];
	static unsigned turn;
	char *to = path[turn++ % 2], name[256];
	size_t n = (size_t)snprintf(to, sizeof(path[0]), "%s", dir);

	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	for (; *letters; letters++) {
		name[0] = *letters;
		n += (size_t)snprintf(to + n, sizeof(path[0]) - n, "/%s", name);
	}
	return to;
}

static void did(bool good, const char *what)
{
	count(good ? NULL : "failed", what, 255, 0);
	errno = 0;
}

static unsigned entries(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *e;
	unsigned n = 0;

	while (d && (e = readdir(d)))
		n += strlen(e->d_name) == 255;
	if (d)
		closedir(d);
	return n;
}

static void names(const char *mount, const char *server)
{
	char target[LINK_MAX_BYTES + 1], got[LINK_MAX_BYTES + 1];
	struct stat st;
	int fd;

	memset(target, 't', LINK_MAX_BYTES);
	target[LINK_MAX_BYTES] = '\0';
	did(!mkdir(deep(mount, "A"), 0755) && !mkdir(deep(mount, "B"), 0755), "mkdir");
	fd = open(deep(mount, "Aa"), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	did(fd >= 0 && !close(fd), "create");
	did(!link(deep(mount, "Aa"), deep(mount, "Bb")), "link");
	did(!stat(deep(server, "Bb"), &st) && st.st_nlink == 2, "the link at the server");
	did(!rename(deep(mount, "Bb"), deep(mount, "Ac")), "rename");
	did(!stat(deep(server, "Ac"), &st) && st.st_nlink == 2, "the new name at the server");
	did(stat(deep(server, "Bb"), &st) && errno == ENOENT, "the old name at the server");
	did(!rename(deep(mount, "Ac"), deep(mount, "Bd")), "rename back");
	did(!stat(deep(server, "Bd"), &st) && st.st_nlink == 2, "that name at the server");
	did(!symlink(target, deep(mount, "Al")), "symlink");
	did(readlink(deep(server, "Al"), got, sizeof(got)) == LINK_MAX_BYTES &&
		    !memcmp(got, target, LINK_MAX_BYTES),
	    "the symbolic link at the server");
	did(entries(deep(mount, "A")) == 2 && entries(deep(mount, "B")) == 1, "readdir");
	did(!unlink(deep(mount, "Al")) && !unlink(deep(mount, "Aa")) && !unlink(deep(mount, "Bd")),
	    "unlink");
	did(!rmdir(deep(mount, "A")) && !rmdir(deep(mount, "B")), "rmdir");
	did(stat(deep(server, "A"), &st) && stat(deep(server, "B"), &st), "and all is gone");
}

/* ---- the whole ------------------------------------------------------------------------------ */

static int usage(void)
{
	fprintf(stderr, "usage: odd direct|buffered|links MOUNT SERVER [LENGTH...]\n"
			"       odd names MOUNT SERVER\n");
	return 2;
}

static void all_wanted(const char *mount, const char *server, const char *how)
{
	static const size_t middles[] = { 0, 1024, 4096, 1 << 20 };

	if (strcmp(how, "links") != 0) {
		for (size_t i = 0; i < ARRAY_SIZE(middles); i++)
			around(mount, server, how, middles[i]);
		return;
	}
	for (size_t len = 1; len <= LINK_MAX_BYTES; len++)
		if (is_wanted(len))
			links_of(mount, server, how, len);
}

int main(int argc, char **argv)
{
	void (*one)(const char *mount, const char *server, const char *how, size_t len) = file_of;

	if (argc < 4)
		return usage();
	make_noise();
	if (!strcmp(argv[1], "links"))
		one = links_of;
	else if (!strcmp(argv[1], "names") && argc == 4)
		one = NULL;
	else if (strcmp(argv[1], "direct") != 0 && strcmp(argv[1], "buffered") != 0)
		return usage();
	if (!one)
		names(argv[2], argv[3]);
	else if (argc == 4)
		all_wanted(argv[2], argv[3], argv[1]);
	for (int i = 4; i < argc; i++) {
		size_t len = strtoul(argv[i], NULL, 10);

		if (len > (one == links_of ? LINK_MAX_BYTES : LEN_MAX))
			return usage();
		one(argv[2], argv[3], argv[1], len);
	}
	printf("odd: %u passed, %u failed\n", passed, failed);
	return failed != 0;
}
