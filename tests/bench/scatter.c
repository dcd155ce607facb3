/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * scatter.c - reads and writes of a volume from memory in one part or in many, for scripts/bench-block.sh
 *
 *     scatter {read|write} URL BYTES PART_BYTES QD SECONDS
 *
 * Operation:  QD requests of BYTES each are in flight, at successive offsets. The memory of a request is one part of a
 *             leat_buf if PART_BYTES is BYTES; otherwise BYTES / PART_BYTES parts in another order, each with a gap as
 *             long as a part behind it.
 * Threads:    one, in leat_poll().
 * Errors:     a request that fails ends the program with status 1.
 *
 * Prints one JSON object: MB/s, processor time of this end per GiB, and bytes that it copied for each byte.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/util.h"
#include "leat_block.h"

#define QD_MAX 64u

static struct scatter {
	struct leat_block *vol;
	bool write;
	size_t bytes, part;
	uint64_t next, done, until_ns;
	unsigned in_flight;
	long err;
} run;

struct slot {
	struct iovec *iov;
	int cnt;
};

static void completed(void *user_data, int64_t result);

static void start(struct slot *s)
{
	struct leat_cb cb = { .fn = completed, .user_data = s };
	uint64_t off = run.next++ % (leat_block_size(run.vol) / run.bytes) * run.bytes;
	int rc;

	if (run.err || clock_now_ns() >= run.until_ns)
		return;
	rc = run.write ? leat_aio_block_pwritev(run.vol, s->iov, s->cnt, off, 0, cb)
		       : leat_aio_block_preadv(run.vol, s->iov, s->cnt, off, cb);
	if (rc)
		run.err = rc;
	else
		run.in_flight++;
}

static void completed(void *user_data, int64_t result)
{
	run.in_flight--;
	if (result != (int64_t)run.bytes)
		run.err = result < 0 ? (long)result : -EIO;
	run.done++;
	start(user_data);
}

/* Parts that lie behind one another in memory do not do so in the request. */
static bool prepare(struct slot *s)
{
	size_t n = run.bytes / run.part, gap = n > 1 ? 2 : 1;
	char *mem;
	void *buf;

	s->iov = calloc(n, sizeof(*s->iov));
	s->cnt = (int)n;
	if (!s->iov || leat_buf_alloc(leat_session(leat_block_handle(run.vol)), run.bytes * gap, &buf))
		return false;
	mem = buf;
	memset(mem, 1, run.bytes * gap);
	for (size_t i = 0; i < n; i++)
		s->iov[i] = (struct iovec){ .iov_base = mem + (n - 1 - i) * gap * run.part, .iov_len = run.part };
	return true;
}

static double cpu_s(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static uint64_t copied(void)
{
	uint64_t n = 0;

	(void)leat_stat_value(leat_block_handle(run.vol), "bytes_copied", &n);
	return n;
}

static int measure(struct slot *slots, unsigned qd, double seconds)
{
	struct leat_session *s = leat_session(leat_block_handle(run.vol));
	uint64_t began = clock_now_ns(), copied_before = copied(), ns;
	double cpu = cpu_s(), bytes;

	run.until_ns = began + (uint64_t)(seconds * 1e9);
	for (unsigned i = 0; i < qd; i++)
		start(&slots[i]);
	while (run.in_flight && leat_poll(s, -1) >= 0)
		;
	ns = clock_now_ns() - began;
	if (run.err || run.in_flight) {
		fprintf(stderr, "scatter: %s\n", leat_error(leat_block_handle(run.vol)));
		return 1;
	}
	bytes = (double)run.done * (double)run.bytes;
	printf("{\"mb_s\":%.1f,\"client_cpu_s_gib\":%.4f,\"client_copied_per_byte\":%.4f}\n", bytes * 1e3 / (double)ns,
	       (cpu_s() - cpu) / (bytes / (double)(1u << 30)), (double)(copied() - copied_before) / bytes);
	return 0;
}

int main(int argc, char **argv)
{
	static struct slot slots[QD_MAX];
	unsigned qd = argc == 7 ? (unsigned)strtoul(argv[5], NULL, 0) : 0;
	int err;

	if (!qd || qd > QD_MAX) {
		fprintf(stderr, "usage: scatter {read|write} URL BYTES PART_BYTES QD SECONDS\n");
		return 2;
	}
	run.write = !strcmp(argv[1], "write");
	run.bytes = strtoull(argv[3], NULL, 0);
	run.part = strtoull(argv[4], NULL, 0);
	if (!run.part || !run.bytes || run.bytes % run.part || leat_block_attach(argv[2], NULL, 0, &run.vol)) {
		fprintf(stderr, "scatter: %s\n", leat_error(NULL));
		return 1;
	}
	if (leat_block_size(run.vol) < run.bytes)
		return 1;
	for (unsigned i = 0; i < qd; i++)
		if (!prepare(&slots[i]))
			return 1;
	err = measure(slots, qd, strtod(argv[6], NULL));
	return leat_block_detach(run.vol) < 0 || err;
}
