/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * pread.c - what the machine itself can do: pread() of a file, one thread
 *
 *     pread FILE BLOCK_BYTES SECONDS {seq|rand}
 *
 * Prints one line of JSON with the same names as `leat bench --json`.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/util.h"

int main(int argc, char **argv)
{
	uint64_t ops = 0, start, end, deadline, r = UINT64_C(88172645463325252), blocks;
	struct rusage ru;
	double seconds, cpu;
	struct stat st;
	size_t block;
	bool random;
	void *buf;
	int fd;

	if (argc != 5) {
		fprintf(stderr, "usage: pread FILE BLOCK_BYTES SECONDS {seq|rand}\n");
		return 2;
	}
	block = strtoul(argv[2], NULL, 10);
	random = !strcmp(argv[4], "rand");
	fd = open(argv[1], O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || !block || (uint64_t)st.st_size < block ||
	    posix_memalign(&buf, 4096, block)) {
		perror(argv[1]);
		return 1;
	}
	memset(buf, 0, block);
	blocks = (uint64_t)st.st_size / block;
	start = clock_now_ns();
	deadline = start + strtoul(argv[3], NULL, 10) * NS_PER_S;
	do {
		uint64_t n = ops;

		if (random) {
			r ^= r << 13;
			r ^= r >> 7;
			r ^= r << 17;
			n = r;
		}
		if (pread(fd, buf, block, (off_t)(n % blocks * block)) != (ssize_t)block) {
			perror("pread");
			return 1;
		}
		ops++;
		end = clock_now_ns();
	} while (end < deadline);
	getrusage(RUSAGE_SELF, &ru);
	seconds = (double)(end - start) / 1e9;
	cpu = (double)(ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) +
	      (double)(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) / 1e6;
	printf("{\"kind\":\"pread\",\"mb_s\":%.1f,\"ops_s\":%.0f,\"client_cpu_s_gib\":%.4f}\n",
	       (double)(ops * block) / 1e6 / seconds, (double)ops / seconds,
	       cpu / ((double)(ops * block) / (double)(1u << 30)));
	return 0;
}
