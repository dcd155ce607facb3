/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * share.c - what several do with the same files: one directory, mounted twice, and where the server
 * keeps it
 *
 *   share files|records|append|names MOUNT1 MOUNT2 SERVER
 *
 * Operation:  files: eight processes, each writes a file of its own, most of it twice, half of them
 *             past the page cache. records: eight write one file, each every eighth record,
 *             records of odd lengths side by side without gaps, past the page cache. append: two,
 *             one on each mount, append lines to one file, under a lock of this host: NFS itself
 *             has none for it. names: open files whose names another client takes away.
 *             The mounts share no cache and believe no attribute for longer than a call (nosharecache,
 *             actimeo=0,lookupcache=none): what one has done when its system call returns, the
 *             other sees with its next.
 * Memory:     Static.
 * Threads:    One in each process.
 * Errors:     Prints each failure; the last line counts. Exit status 1 if there was one.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/util.h"

#define WRITERS 8
#define FILE_BYTES 3145731
#define RECORDS 320
#define RECORD_MAX 9001
#define LINES 40
#define PATH_BYTES 4096

_Static_assert(FILE_BYTES / RECORD_MAX >= RECORDS, "the records have room");

static uint8_t area[FILE_BYTES + 1], want[FILE_BYTES + 1];
static const char *mount1, *mount2, *server;
static unsigned passed, failed;

/* One check; prints a failure, with errno if it is set. */
static printf_like(2, 3) void check(bool good, const char *fmt, ...)
{
	int err = errno;
	va_list ap;

	if (good) {
		passed++;
		return;
	}
	failed++;
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("%s%s\n", err ? ": " : "", err ? strerror(err) : "");
}

static const char *path_of(const char *dir, const char *name)
{
	static char path[4][PATH_BYTES];
	static unsigned turn;

	turn = (turn + 1) % 4;
	snprintf(path[turn], PATH_BYTES, "%s/%s", dir, name);
	return path[turn];
}

static void fill(uint8_t *to, size_t len, uint32_t seed)
{
	uint32_t x = seed * 2654435761u + 1;

	for (size_t i = 0; i < len; i++) {
		x = x * 1664525u + 1013904223u;
		to[i] = (uint8_t)(x >> 24);
	}
}

static int open_in(const char *dir, const char *name, int flags)
{
	errno = 0;
	return open(path_of(dir, name), flags | O_CLOEXEC, 0644);
}

/* Does the name lead to a file of just these bytes? */
static bool holds(const char *dir, const char *name, const uint8_t *bytes, size_t len)
{
	int fd = open_in(dir, name, O_RDONLY);
	size_t got = 0;
	ssize_t n = 1;

	if (fd < 0)
		return false;
	while (n > 0 && got < sizeof(area)) {
		n = read(fd, area + got, sizeof(area) - got);
		got += n > 0 ? (size_t)n : 0;
	}
	close(fd);
	return n == 0 && got == len && memcmp(area, bytes, len) == 0;
}

static bool make(const char *dir, const char *name, const char *text)
{
	int fd = open_in(dir, name, O_WRONLY | O_CREAT | O_EXCL);
	bool good;

	if (fd < 0)
		return false;
	good = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	return close(fd) == 0 && good;
}

/* Runs @work in @n processes; its answer is their exit status. */
static void in_processes(unsigned n, int (*work)(unsigned i), const char *what)
{
	pid_t pids[WRITERS];

	fflush(stdout);
	for (unsigned i = 0; i < n; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			int rc = work(i);

			fflush(stdout);
			_exit(rc);
		}
	}
	for (unsigned i = 0; i < n; i++) {
		int status = -1;

		errno = 0;
		if (pids[i] > 0)
			waitpid(pids[i], &status, 0);
		check(status == 0, "%s: process %u ended with %#x", what, i, (unsigned)status);
	}
}

/* ---- files ---------------------------------------------------------------------------------- */

static void name_of(char name[32], unsigned i)
{
	snprintf(name, 32, "share-%u", i);
}

static size_t piece_of(unsigned i, size_t at)
{
	return MIN((size_t)(10000 + 17711 * i + at % 8191) | 1, FILE_BYTES - at);
}

static int write_file(unsigned i)
{
	const char *dir = i % 4 < 2 ? mount1 : mount2;
	char name[32];
	int fd;

	name_of(name, i);
	fd = open_in(dir, name, O_WRONLY | O_CREAT | (i % 2 ? O_DIRECT : 0));
	if (fd < 0)
		return 1;
	fill(want, FILE_BYTES, 100 + i); /* this one is written over */
	for (size_t at = 0, n; at < FILE_BYTES; at += n) {
		n = piece_of(i, at);
		if (at > FILE_BYTES / 3 && pwrite(fd, want + at, n, (off_t)at) != (ssize_t)n)
			return 2;
	}
	fill(want, FILE_BYTES, i);
	for (size_t at = 0, n; at < FILE_BYTES; at += n) {
		n = piece_of(i, at);
		if (pwrite(fd, want + at, n, (off_t)at) != (ssize_t)n)
			return 3;
	}
	return close(fd) ? 4 : 0;
}

static void files(void)
{
	char name[32];

	in_processes(WRITERS, write_file, "a writer");
	for (unsigned i = 0; i < WRITERS; i++) {
		name_of(name, i);
		fill(want, FILE_BYTES, i);
		check(holds(server, name, want, FILE_BYTES), "%s at the server", name);
		/* the other one's cache knows nothing of it */
		check(holds(i % 4 < 2 ? mount2 : mount1, name, want, FILE_BYTES),
		      "%s on the other mount", name);
	}
}

/* ---- records -------------------------------------------------------------------------------- */

static size_t record_len(unsigned k)
{
	return (k * 7919u % RECORD_MAX) | 1;
}

static int write_records(unsigned i)
{
	static uint8_t record[RECORD_MAX + 8];
	int fd = open_in(i % 2 ? mount2 : mount1, "share-records", O_WRONLY | O_DIRECT);
	off_t at = 0;

	if (fd < 0)
		return 1;
	for (unsigned k = 0; k < RECORDS; k++) {
		size_t len = record_len(k);

		if (k % WRITERS == i) {
			fill(record + k % 8, len, k);
			if (pwrite(fd, record + k % 8, len, at) != (ssize_t)len)
				return 2;
		}
		at += (off_t)len;
	}
	return close(fd) ? 3 : 0;
}

static void records(void)
{
	size_t len = 0;

	check(make(mount1, "share-records", ""), "an empty file");
	in_processes(WRITERS, write_records, "a writer of records");
	for (unsigned k = 0; k < RECORDS; k++) {
		fill(want + len, record_len(k), k);
		len += record_len(k);
	}
	check(holds(server, "share-records", want, len), "records at the server");
	check(holds(mount1, "share-records", want, len), "records on the first mount");
	check(holds(mount2, "share-records", want, len), "records on the second mount");
}

/* ---- append --------------------------------------------------------------------------------- */

static size_t line_of(char line[256], unsigned number)
{
	int n = snprintf(
		line, 256, "%06u %.*s\n", number, (int)(number * 37 % 200),
		"................................................................................"
		"................................................................................"
		"........................................");

	return (size_t)n;
}

/* The lock file holds the number of the next line. */
static int append_lines(unsigned i)
{
	int lock = open_in(server, "share-lock", O_RDWR), fd;
	unsigned number = 0;
	char line[256];

	if (lock < 0)
		return 1;
	for (unsigned k = 0; k < LINES; k++) {
		size_t len;

		if (flock(lock, LOCK_EX) || pread(lock, &number, sizeof(number), 0) < 0)
			return 2;
		len = line_of(line, number++);
		fd = open_in(i ? mount2 : mount1, "share-lines", O_WRONLY | O_APPEND);
		if (fd < 0 || write(fd, line, len) != (ssize_t)len || close(fd))
			return 3;
		if (pwrite(lock, &number, sizeof(number), 0) != sizeof(number) ||
		    flock(lock, LOCK_UN))
			return 4;
	}
	return 0;
}

static void append(void)
{
	char line[256];
	size_t len = 0;
	int lock;

	lock = open_in(server, "share-lock", O_RDWR | O_CREAT);
	check(lock >= 0 && close(lock) == 0, "the lock");
	check(make(mount1, "share-lines", ""), "an empty file");
	in_processes(2, append_lines, "a process that appends");
	for (unsigned number = 0; number < 2 * LINES; number++) {
		size_t n = line_of(line, number);

		memcpy(want + len, line, n);
		len += n;
	}
	check(holds(server, "share-lines", want, len), "lines at the server");
	check(holds(mount1, "share-lines", want, len), "lines on the first mount");
	check(holds(mount2, "share-lines", want, len), "lines on the second mount");
}

/* ---- names ---------------------------------------------------------------------------------- */

static bool is_text(const char *dir, const char *name, const char *text)
{
	return holds(dir, name, (const uint8_t *)text, strlen(text));
}

static bool is_gone(const char *dir, const char *name)
{
	int fd = open_in(dir, name, O_RDONLY);

	if (fd >= 0)
		close(fd);
	return fd < 0 && errno == ENOENT;
}

static bool reads(int fd, const char *text)
{
	char got[64] = "";

	errno = 0;
	return pread(fd, got, sizeof(got) - 1, 0) == (ssize_t)strlen(text) && !strcmp(got, text);
}

/* A file whose name another client has removed: an NFSv3 server may have forgotten it, and then
 * says so. What it may not do is to read as anything else. */
static bool reads_or_is_stale(int fd, const char *text)
{
	return reads(fd, text) || errno == ESTALE;
}

static void rename_over_open(const char *a, const char *b)
{
	int fd;

	check(make(a, "old", "the old file\n") && make(b, "new", "the new file\n"), "make");
	fd = open_in(a, "old", O_RDONLY | O_DIRECT);
	check(fd >= 0 && reads(fd, "the old file\n"), "the old file, open");
	check(rename(path_of(b, "new"), path_of(b, "old")) == 0, "rename over an open file");
	check(reads_or_is_stale(fd, "the old file\n"), "an open file that was renamed over");
	check(is_text(b, "old", "the new file\n"), "the name, where it was renamed");
	check(is_text(a, "old", "the new file\n"), "the name, opened on the other mount");
	check(is_text(server, "old", "the new file\n"), "the name at the server");
	check(is_gone(a, "new") && is_gone(b, "new"), "the name it had");
	check(reads_or_is_stale(fd, "the old file\n"), "an open file that was renamed over, later");
	close(fd);
	check(unlink(path_of(a, "old")) == 0, "unlink what the other has renamed");
	check(is_gone(b, "old"), "it is gone");
}

static void unlink_open(const char *a, const char *b)
{
	int fd;

	check(make(a, "file", "the first\n"), "make");
	fd = open_in(a, "file", O_RDWR | O_DIRECT);
	check(fd >= 0 && reads(fd, "the first\n"), "the first file, open");
	check(unlink(path_of(b, "file")) == 0, "unlink what the other has open");
	check(is_gone(a, "file"), "gone, where it is open");
	check(reads_or_is_stale(fd, "the first\n"), "an open file that is unlinked");
	/* a new one of that name, and it may be of the same inode number */
	for (unsigned i = 0; i < 8; i++) {
		check(make(b, "file", "the second\n"), "make another of its name");
		check(reads_or_is_stale(fd, "the first\n"),
		      "an open file, and another of its name");
		errno = 0;
		check(pwrite(fd, "The", 3, 0) == 3 || errno == ESTALE, "write to an unlinked file");
		errno = 0;
		check(pwrite(fd, "the", 3, 0) == 3 || errno == ESTALE, "write to an unlinked file");
		check(is_text(a, "file", "the second\n"), "the other, where the first is open");
		check(is_text(server, "file", "the second\n"), "the other, at the server");
		check(unlink(path_of(b, "file")) == 0, "unlink the other");
	}
	close(fd);
}

/* The client that unlinks knows that it has it open, and keeps it under another name. */
static void unlink_own(const char *a, const char *b)
{
	int fd;

	check(make(a, "own", "still there\n"), "make");
	fd = open_in(a, "own", O_RDONLY | O_DIRECT);
	check(unlink(path_of(a, "own")) == 0, "unlink what is open here");
	check(is_gone(a, "own") && is_gone(b, "own") && is_gone(server, "own"), "its name is gone");
	check(reads(fd, "still there\n"), "what is unlinked and open here");
	check(close(fd) == 0, "close");
	/* the directory is empty only if it left nothing */
}

static void rename_open(const char *a, const char *b)
{
	int fd;

	check(make(a, "here", "it moves\n") && mkdir(path_of(a, "sub"), 0755) == 0, "make");
	fd = open_in(a, "here", O_RDWR | O_DIRECT);
	check(rename(path_of(b, "here"), path_of(b, "sub/there")) == 0, "rename an open file");
	check(is_gone(a, "here"), "the old name");
	check(reads(fd, "it moves\n"), "an open file that was renamed");
	check(pwrite(fd, "It moved", 8, 0) == 8, "write to an open file that was renamed");
	check(is_text(b, "sub/there", "It moved\n"), "what was written");
	check(rename(path_of(a, "sub"), path_of(a, "moved")) == 0, "rename its directory");
	check(reads(fd, "It moved\n"), "an open file whose directory was renamed");
	check(is_text(b, "moved/there", "It moved\n"), "by its new path");
	check(truncate(path_of(b, "moved/there"), 2) == 0, "truncate an open file");
	check(reads(fd, "It"), "an open file that was truncated");
	close(fd);
	errno = 0;
	check(rmdir(path_of(b, "moved")) != 0 && errno == ENOTEMPTY, "rmdir of what is not empty");
	check(unlink(path_of(b, "moved/there")) == 0 && rmdir(path_of(a, "moved")) == 0, "remove");
	check(is_gone(b, "moved"), "the directory is gone");
}

static void names(void)
{
	static char sub[3][PATH_BYTES];
	const char **roots[] = { &mount1, &mount2, &server };

	check(mkdir(path_of(mount1, "share-names"), 0755) == 0, "mkdir");
	for (unsigned i = 0; i < ARRAY_SIZE(roots); i++) {
		snprintf(sub[i], PATH_BYTES, "%s/share-names", *roots[i]);
		*roots[i] = sub[i];
	}
	for (unsigned turn = 0; turn < 2; turn++) {
		const char *a = turn ? mount2 : mount1, *b = turn ? mount1 : mount2;

		rename_over_open(a, b);
		unlink_open(a, b);
		unlink_own(a, b);
		rename_open(a, b);
	}
	errno = 0;
	check(rmdir(mount2) == 0, "rmdir of what should be empty");
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} parts[] = {
		{ "files", files }, { "records", records }, { "append", append }, { "names", names }
	};

	for (size_t i = 0; argc == 5 && i < ARRAY_SIZE(parts); i++) {
		if (strcmp(argv[1], parts[i].name) != 0)
			continue;
		mount1 = argv[2];
		mount2 = argv[3];
		server = argv[4];
		parts[i].run();
		printf("share: %u passed, %u failed\n", passed, failed);
		return failed != 0;
	}
	fprintf(stderr, "usage: share files|records|append|names MOUNT1 MOUNT2 SERVER\n");
	return 2;
}
