/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * victim.c - an honest client that verifies all it reads, and says how long its calls take
 *
 *   hostile victim [-1] [-s SEED] [-a MS] URL
 *
 * Operation:  URL is of a directory of its own. For MS (1000) it works alone and prints what its calls took; then it says
 *             "ready" and works on until its standard input ends, and prints the same once more. -1: attackers are the
 *             same client, so that mounts may be refused and connections may end, and timeouts are waited out.
 * Memory:     A model of each file.
 * Threads:    One.
 * Errors:     Data that is wrong, a call that fails, and unless -1 a connection that was lost end it with status 1.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/util.h"
#include "hostile.h"

#define FILES 4u
#define FILE_BYTES (1u << 20)
#define IO_MAX (256u << 10)
#define NAMES 32u
#define SAMPLES_MAX (1u << 20)
#define MOUNT_EVERY 64u

enum op { OP_GETATTR, OP_READ, OP_WRITE, OP_NAMES, OP_MOUNT, OPS };

static const char *const op_names[OPS] = { "getattr", "read", "write", "names", "mount" };

static struct samples {
	uint32_t *us;
	size_t n;
} samples[OPS];

static struct victim {
	struct leat *m;
	const char *url;
	struct leat_file *files[FILES];
	uint8_t *model[FILES], *buf, *got;
	bool names[NAMES];
	bool alone; /* no other client has our share */
	unsigned refused;
	struct attack_run rng;
} v;

static _Noreturn printf_like(1, 2) void fail_test(const char *fmt, ...)
{
	va_list ap;

	printf("victim: FAILED: ");
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	exit(1);
}

static uint32_t below(uint32_t n)
{
	return run_rand(&v.rng, n);
}

static void must(const char *what, int64_t rc)
{
	if (rc < 0)
		fail_test("%s: %s: %s", what, strerror((int)-rc), leat_error(v.m));
}

/* A change that was sent again over a new connection may have been made already. */
static void must_change(const char *what, int rc)
{
	if (v.alone || (rc != -ENOENT && rc != -EEXIST))
		must(what, rc);
}

static void mount_here(struct leat **ret)
{
	char url[700];

	snprintf(url, sizeof(url), "%s?cache=none&readahead=0&retry=%s&timeo=60000", v.url,
		 v.alone ? "soft" : "hard");
	for (;;) {
		if (!leat_mount(url, NULL, ret))
			return;
		if (v.alone)
			fail_test("%s", leat_error(NULL));
		v.refused++;
		poll(NULL, 0, 10);
	}
}

/* ---- what it does ---- */

static void do_getattr(void)
{
	struct stat st;

	must("fstat", leat_fstat(v.files[below(FILES)], &st));
	if (st.st_size != FILE_BYTES)
		fail_test("a size of %lld", (long long)st.st_size);
}

static void do_read(void)
{
	unsigned f = below(FILES);
	uint32_t off = below(FILE_BYTES), len = 1 + below(IO_MAX), want = MIN(len, FILE_BYTES - off);
	ssize_t n = leat_pread(v.files[f], v.got, len, off);

	must("read", n);
	if ((size_t)n != want)
		fail_test("a read of %u bytes at %u came to %zd", want, off, n);
	for (uint32_t i = 0; i < want; i++) {
		if (v.got[i] != v.model[f][off + i])
			fail_test("file %u is wrong at %u: %02x instead of %02x (read of %u at %u)", f, off + i,
				  v.got[i], v.model[f][off + i], want, off);
	}
}

static void do_write(void)
{
	unsigned f = below(FILES);
	uint32_t off = below(FILE_BYTES), most = 1 + below(IO_MAX), len = MIN(most, FILE_BYTES - off);
	uint8_t first = (uint8_t)below(256), step = (uint8_t)below(256);
	ssize_t n;

	for (uint32_t i = 0; i < len; i++)
		v.buf[i] = v.model[f][off + i] = (uint8_t)(first + i * step + (i >> 8));
	n = leat_pwrite(v.files[f], v.buf, len, off);
	must("write", n);
	if ((size_t)n != len)
		fail_test("a write of %u bytes came to %zd", len, n);
	if (!below(8))
		must("fsync", leat_fsync(v.files[f]));
}

static void do_names(void)
{
	unsigned from = below(NAMES), to = below(NAMES);
	char path[32], other[32];
	struct stat st;
	int rc;

	snprintf(path, sizeof(path), "n%u", from);
	snprintf(other, sizeof(other), "n%u", to);
	if (!v.names[from]) {
		must_change("mkdir", leat_mkdir(v.m, path, 0755));
		v.names[from] = true;
	} else if (v.names[to]) {
		must_change("rmdir", leat_rmdir(v.m, path));
		v.names[from] = false;
	} else {
		must_change("rename", leat_rename(v.m, path, other));
		v.names[from] = false;
		v.names[to] = true;
	}
	rc = leat_stat(v.m, path, &st);
	if (rc && rc != -ENOENT)
		must("stat", rc);
	if (!rc != v.names[from])
		fail_test("%s is %s", path, rc ? "gone" : "still there");
}

static void do_mount(void)
{
	struct leat *m;
	struct stat st;

	mount_here(&m);
	must("stat", leat_stat(m, "", &st));
	leat_umount(m);
}

static void run_op(enum op op)
{
	static void (*const fns[OPS])(void) = { do_getattr, do_read, do_write, do_names, do_mount };
	uint64_t start = clock_now_ns();
	struct samples *s = &samples[op];

	fns[op]();
	if (s->n < SAMPLES_MAX)
		s->us[s->n++] = (uint32_t)MIN((clock_now_ns() - start) / NS_PER_US, (uint64_t)UINT32_MAX);
}

static void run_some(void)
{
	if (!below(MOUNT_EVERY))
		run_op(OP_MOUNT);
	else
		run_op((enum op)below(OP_MOUNT));
}

/* ---- what is said of it ---- */

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void print_samples(const char *when)
{
	printf("victim: %s:", when);
	for (unsigned i = 0; i < OPS; i++) {
		struct samples *s = &samples[i];

		if (!s->n)
			continue;
		qsort(s->us, s->n, sizeof(*s->us), compare);
		printf(" %s %zu (p50 %.2f p99 %.2f max %.0f ms)", op_names[i], s->n, s->us[s->n / 2] / 1e3,
		       s->us[s->n * 99 / 100] / 1e3, s->us[s->n - 1] / 1e3);
		s->n = 0;
	}
	printf("\n");
	fflush(stdout);
}

static void check_all(void)
{
	for (unsigned f = 0; f < FILES; f++) {
		ssize_t n = leat_pread(v.files[f], v.got, FILE_BYTES, 0);

		must("read", n);
		if (n != FILE_BYTES || memcmp(v.got, v.model[f], FILE_BYTES))
			fail_test("file %u is wrong in the end", f);
	}
}

static void open_files(void)
{
	v.buf = malloc(IO_MAX);
	v.got = malloc(FILE_BYTES);
	for (unsigned f = 0; f < FILES; f++) {
		char path[32];

		snprintf(path, sizeof(path), "file%u", f);
		v.model[f] = malloc(FILE_BYTES);
		if (!v.buf || !v.got || !v.model[f])
			fail_test("no memory");
		for (uint32_t i = 0; i < FILE_BYTES; i++)
			v.model[f][i] = (uint8_t)below(256);
		must("open", leat_open(v.m, path, O_RDWR | O_CREAT | O_TRUNC, 0644, &v.files[f]));
		must("write", leat_pwrite(v.files[f], v.model[f], FILE_BYTES, 0));
	}
	for (unsigned i = 0; i < OPS; i++) {
		samples[i].us = malloc(SAMPLES_MAX * sizeof(uint32_t));
		if (!samples[i].us)
			fail_test("no memory");
	}
}

static unsigned long long counter(const char *name)
{
	uint64_t n = 0;

	must("counter", leat_stat_value(v.m, name, &n));
	return n;
}

int victim_main(int argc, char **argv)
{
	uint64_t alone_ms = 1000, end;
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
	char byte;
	int c;

	v.alone = true;
	v.rng.rng = 1;
	while ((c = getopt(argc, argv, "1s:a:")) >= 0) {
		if (c == '1')
			v.alone = false;
		else if (c == 's')
			v.rng.rng = strtoull(optarg, NULL, 10);
		else if (c == 'a')
			alone_ms = strtoull(optarg, NULL, 10);
		else
			return 2;
	}
	if (optind + 1 != argc)
		return 2;
	v.url = argv[optind];
	mount_here(&v.m);
	open_files();
	end = clock_now_ns() + alone_ms * NS_PER_MS;
	while (clock_now_ns() < end)
		run_some();
	print_samples("alone ");
	printf("victim: ready\n");
	fflush(stdout);
	while (poll(&in, 1, 0) == 0 || read(STDIN_FILENO, &byte, 1) > 0)
		run_some();
	check_all();
	print_samples("beside");
	printf("victim: %llu reconnects, %llu timeouts, %llu times not now, %u mounts refused\n", counter("reconnects"),
	       counter("timeouts"), counter("jukebox_retries"), v.refused);
	if (v.alone && counter("reconnects"))
		fail_test("its connection was lost");
	for (unsigned f = 0; f < FILES; f++)
		must("close", leat_close(v.files[f]));
	leat_umount(v.m);
	printf("victim: all was right\n");
	return 0;
}
