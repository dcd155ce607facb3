/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * aio.c - what a mounted file system does with the work of `leat bench`: O_DIRECT, QD in flight
 *
 *     aio {read|write|randread|randwrite} FILE BLOCK_BYTES QD SECONDS
 *
 * Operation:  As client/tools/bench/bench_job.c: each slot is one request with its own buffer, which is
 *             started again when it ends, until the time is up. The file is there and is not made
 *             longer. Linux's own asynchronous I/O, by its system calls: there is nothing else in
 *             libaio. What was written is synced at the end, inside the time.
 * Memory:     Buffers of whole pages, touched before the clock starts.
 * Threads:    One.
 * Errors:     A request that fails or is short ends the program with status 1.
 *
 * Prints one line of JSON with the same names as `leat bench --json`.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/machine.h"
#include "base/util.h"
#include "base/hist.h"

#define QD_MAX 256u

struct slot {
	struct iocb cb;
	uint64_t start_ns;
};

struct run {
	int fd;
	aio_context_t ctx;
	bool writes, random;
	size_t block;
	uint64_t blocks, next, r, deadline_ns;
	unsigned busy;
	uint64_t ops;
	struct hist hist;
};

static void die(const char *what, int err)
{
	fprintf(stderr, "aio: %s: %s\n", what, strerror(err));
	exit(1);
}

static uint64_t next_block(struct run *run)
{
	if (!run->random)
		return run->next++ % run->blocks;
	run->r ^= run->r << 13;
	run->r ^= run->r >> 7;
	run->r ^= run->r << 17;
	return run->r % run->blocks;
}

static void start(struct run *run, struct slot *s)
{
	struct iocb *cb = &s->cb;

	s->start_ns = clock_now_ns();
	if (s->start_ns >= run->deadline_ns)
		return;
	cb->aio_offset = (int64_t)(next_block(run) * run->block);
	if (syscall(SYS_io_submit, run->ctx, 1L, &cb) != 1)
		die("io_submit", errno);
	run->busy++;
}

static void work(struct run *run, struct slot *slots, unsigned qd)
{
	struct io_event events[QD_MAX];

	for (unsigned i = 0; i < qd; i++)
		start(run, &slots[i]);
	while (run->busy) {
		long n = syscall(SYS_io_getevents, run->ctx, 1L, (long)qd, events, NULL);

		if (n < 0 && errno != EINTR)
			die("io_getevents", errno);
		for (long i = 0; i < n; i++) {
			struct slot *s = &slots[events[i].data];

			if (events[i].res != (int64_t)run->block)
				die("a request", events[i].res < 0 ? (int)-events[i].res : EIO);
			hist_add(&run->hist, clock_now_ns() - s->start_ns);
			run->ops++;
			run->busy--;
			start(run, s);
		}
	}
	if (run->writes && fsync(run->fd))
		die("fsync", errno);
}

static void prepare(struct run *run, struct slot *slots, unsigned qd)
{
	for (unsigned i = 0; i < qd; i++) {
		void *buf;

		if (posix_memalign(&buf, 4096, run->block))
			die("buffers", ENOMEM);
		memset(buf, (int)i + 1, run->block);
		slots[i].cb = (struct iocb){
			.aio_data = i,
			.aio_lio_opcode = run->writes ? IOCB_CMD_PWRITE : IOCB_CMD_PREAD,
			.aio_fildes = (uint32_t)run->fd,
			.aio_buf = (uintptr_t)buf,
			.aio_nbytes = run->block,
		};
	}
	if (syscall(SYS_io_setup, (long)qd, &run->ctx))
		die("io_setup", errno);
}

static void print(const struct run *run, uint64_t ns, uint64_t machine_us)
{
	double s = (double)ns / 1e9, bytes = (double)(run->ops * run->block);

	printf("{\"kind\":\"aio\",\"mb_s\":%.1f,\"ops_s\":%.0f,\"p50_us\":%.1f,\"p99_us\":%.1f,"
	       "\"machine_cpu_s_gib\":%.4f}\n", bytes / 1e6 / s, (double)run->ops / s,
	       (double)hist_percentile(&run->hist, 0.5) / 1e3,
	       (double)hist_percentile(&run->hist, 0.99) / 1e3,
	       (double)machine_us / 1e6 / (bytes / (double)(1u << 30)));
}

int main(int argc, char **argv)
{
	static struct slot slots[QD_MAX];
	static struct run run;
	uint64_t start_ns, machine_us;
	unsigned qd;
	struct stat st;

	if (argc != 6) {
		fprintf(stderr, "usage: aio {read|write|randread|randwrite} FILE BLOCK_BYTES QD SECONDS\n");
		return 2;
	}
	run.random = !strncmp(argv[1], "rand", 4);
	run.writes = !strcmp(argv[1] + (run.random ? 4 : 0), "write");
	run.block = strtoul(argv[3], NULL, 10);
	run.r = UINT64_C(88172645463325252);
	qd = (unsigned)strtoul(argv[4], NULL, 10);
	run.fd = open(argv[2], (run.writes ? O_RDWR : O_RDONLY) | O_DIRECT | O_CLOEXEC);
	if (run.fd < 0 || fstat(run.fd, &st))
		die(argv[2], errno);
	if (!run.block || !qd || qd > QD_MAX || (uint64_t)st.st_size < run.block)
		die(argv[2], EINVAL);
	run.blocks = (uint64_t)st.st_size / run.block;
	prepare(&run, slots, qd);
	machine_us = machine_cpu_us();
	start_ns = clock_now_ns();
	run.deadline_ns = start_ns + strtoul(argv[5], NULL, 10) * NS_PER_S;
	work(&run, slots, qd);
	print(&run, clock_now_ns() - start_ns, machine_cpu_us() - machine_us);
	return 0;
}
