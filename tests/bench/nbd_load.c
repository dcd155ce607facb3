/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * nbd_load.c - a load on an NBD server by libnbd, for scripts/bench-block.sh
 *
 *     nbd_load URI read|write|randread|randwrite BLOCK_BYTES DEPTH SECONDS SIZE SERVER_PID
 *
 * It keeps DEPTH requests in flight on one connection, each with a buffer of its own, and prints one JSON object with the names of
 * `leat block bench --json`: MB/s, requests/s, and processor time of both ends per GiB.
 */
#include <inttypes.h>
#include <libnbd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define DEPTH_MAX 256u

static struct load {
	struct nbd_handle *nbd;
	bool write, random;
	uint64_t block, size, next, seed, done;
	unsigned depth, in_flight, nfree;
	char *free[DEPTH_MAX];
	int err;
} load;

static int fail(const char *what)
{
	fprintf(stderr, "nbd_load: %s: %s\n", what, nbd_get_error());
	return 1;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double own_cpu(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static double server_cpu(const char *pid)
{
	unsigned long user = 0, sys = 0;
	char path[64], text[1024] = "";
	const char *rest;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%s/stat", pid);
	f = fopen(path, "r");
	if (!f)
		return 0;
	if (!fgets(text, sizeof(text), f))
		text[0] = '\0';
	fclose(f);
	rest = strrchr(text, ')');
	if (!rest || sscanf(rest, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &sys) != 2)
		return 0;
	return (double)(user + sys) / (double)sysconf(_SC_CLK_TCK);
}

static uint64_t next_offset(void)
{
	uint64_t blocks = load.size / load.block;

	if (!load.random)
		return load.next++ % blocks * load.block;
	load.seed = load.seed * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (load.seed >> 33) % blocks * load.block;
}

static int completed(void *user_data, int *error)
{
	load.free[load.nfree++] = user_data;
	load.in_flight--;
	load.done++;
	if (*error)
		load.err = *error;
	return 1; /* retire it */
}

static int start_one(void)
{
	char *buf = load.free[--load.nfree];
	nbd_completion_callback cb = { .callback = completed, .user_data = buf };
	uint64_t off = next_offset();
	int64_t rc;

	load.in_flight++;
	rc = load.write ? nbd_aio_pwrite(load.nbd, buf, load.block, off, cb, 0) : nbd_aio_pread(load.nbd, buf, load.block, off, cb, 0);
	return rc < 0 ? fail("request") : 0;
}

static int run(double until)
{
	bool going = true;

	while (load.in_flight || going) {
		going = going && now() < until && !load.err;
		while (going && load.nfree) {
			if (start_one())
				return 1;
		}
		if (load.in_flight && nbd_poll(load.nbd, -1) < 0)
			return fail("poll");
	}
	return load.err != 0;
}

static int measure(double seconds, const char *pid)
{
	double began = now(), cpu = own_cpu(), scpu = server_cpu(pid), took, gib;

	if (run(began + seconds))
		return 1;
	took = now() - began;
	gib = (double)load.done * (double)load.block / (double)(1 << 30);
	printf("{\"mb_s\":%.1f,\"ops_s\":%.0f,\"client_cpu_s_gib\":%.4f,\"server_cpu_s_gib\":%.4f}\n", gib * 1073.741824 / took,
	       (double)load.done / took, (own_cpu() - cpu) / gib, (server_cpu(pid) - scpu) / gib);
	return 0;
}

static int prepare(char **argv)
{
	load.write = strstr(argv[2], "write") != NULL;
	load.random = !strncmp(argv[2], "rand", 4);
	load.block = strtoull(argv[3], NULL, 0);
	load.depth = (unsigned)strtoul(argv[4], NULL, 0);
	load.size = strtoull(argv[6], NULL, 0);
	if (!load.block || !load.depth || load.depth > DEPTH_MAX || load.size < load.block)
		return 1;
	for (unsigned i = 0; i < load.depth; i++) {
		char *buf = aligned_alloc(4096, (load.block + 4095) & ~UINT64_C(4095));

		if (!buf)
			return 1;
		memset(buf, (int)i + 1, load.block);
		load.free[load.nfree++] = buf;
	}
	load.nbd = nbd_create();
	return !load.nbd || nbd_connect_uri(load.nbd, argv[1]) ? fail(argv[1]) : 0;
}

int main(int argc, char **argv)
{
	if (argc != 8) {
		fprintf(stderr, "usage: nbd_load URI read|write|randread|randwrite BLOCK_BYTES DEPTH SECONDS SIZE SERVER_PID\n");
		return 2;
	}
	return prepare(argv) || measure(strtod(argv[5], NULL), argv[7]);
}
