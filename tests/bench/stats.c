/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * stats.c - how many times a second a program can ask what its files are, with and without a cache
 *
 *     stats URL SECONDS ROUNDS
 *
 * Makes a directory with FILES files at URL and asks for one after the other, waiting for each, by
 * leat_stat() with cache=auto, with cache=none, and by leat_open() and leat_close() with both. The ways
 * take turns, ROUNDS times; of each are printed the median rate, the calls to the server per operation
 * and the CPU time of this process per operation.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/util.h"
#include "leat.h"

#define FILES 100
#define ROUNDS_MAX 32

static int do_stat(struct leat *m, const char *path)
{
	struct stat st;

	return leat_stat(m, path, &st);
}

static int do_open(struct leat *m, const char *path)
{
	struct leat_file *f;
	int rc = leat_open(m, path, O_RDONLY, 0, &f);

	return rc ? rc : leat_close(f);
}

static struct way {
	const char *name, *cache;
	int (*run)(struct leat *m, const char *path);
	double rate[ROUNDS_MAX];
	uint64_t ops, calls, cpu_us;
} ways[] = {
	{ .name = "stat", .cache = "auto", .run = do_stat },
	{ .name = "stat", .cache = "none", .run = do_stat },
	{ .name = "open+close", .cache = "auto", .run = do_open },
	{ .name = "open+close", .cache = "none", .run = do_open },
};

static void die(const char *what)
{
	fprintf(stderr, "stats: %s\n", what);
	exit(1);
}

static void path_of(unsigned i, char path[64])
{
	snprintf(path, 64, "leat-stats/d/f%u", i);
}

static uint64_t cpu_us(void)
{
	struct rusage ru;

	getrusage(RUSAGE_SELF, &ru);
	return (uint64_t)(ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) * 1000000 +
	       (uint64_t)(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec);
}

static void run(struct way *w, const char *url, double seconds, unsigned round)
{
	struct leat_opts *opts = leat_opts_create();
	uint64_t before, after;
	uint64_t start, end, cpu, ops = 0;
	struct leat *m;
	char path[64];

	if (leat_set(opts, "cache", w->cache) || leat_mount(url, opts, &m))
		die(leat_error(NULL));
	leat_opts_destroy(opts);
	(void)leat_stat_value(m, "calls", &before);
	cpu = cpu_us();
	start = clock_now_ns();
	end = start + (uint64_t)(seconds * (double)NS_PER_S);
	while (clock_now_ns() < end) {
		path_of((unsigned)(ops++ % FILES), path);
		if (w->run(m, path))
			die(leat_error(m));
	}
	w->rate[round] = (double)ops / ((double)(clock_now_ns() - start) / (double)NS_PER_S);
	(void)leat_stat_value(m, "calls", &after);
	w->ops += ops;
	w->calls += after - before;
	w->cpu_us += cpu_us() - cpu;
	leat_umount(m);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Make the files, or take them away. */
static void files(struct leat *m, bool make)
{
	struct leat_file *f;
	char path[64];
	int rc = 0;

	if (make)
		rc = leat_mkdir(m, "leat-stats", 0755) || leat_mkdir(m, "leat-stats/d", 0755);
	for (unsigned i = 0; i < FILES && !rc; i++) {
		path_of(i, path);
		if (make)
			rc = leat_creat(m, path, 0644, &f) || leat_close(f);
		else
			rc = leat_unlink(m, path);
	}
	if (!make)
		rc = rc || leat_rmdir(m, "leat-stats/d") || leat_rmdir(m, "leat-stats");
	if (rc)
		die(leat_error(m));
}

int main(int argc, char **argv)
{
	unsigned rounds = argc == 4 ? (unsigned)atoi(argv[3]) : 0;
	double seconds = argc == 4 ? atof(argv[2]) : 0;
	struct leat *m;

	if (!rounds || rounds > ROUNDS_MAX || seconds <= 0)
		die("usage: stats URL SECONDS ROUNDS");
	if (leat_mount(argv[1], NULL, &m))
		die(leat_error(NULL));
	files(m, true);
	for (unsigned r = 0; r < rounds; r++)
		for (size_t i = 0; i < ARRAY_SIZE(ways); i++)
			run(&ways[i], argv[1], seconds, r);
	files(m, false);
	leat_umount(m);
	printf("%-12s %-6s %12s %12s %12s\n", "operation", "cache", "a second", "calls each", "CPU us each");
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		struct way *w = &ways[i];

		qsort(w->rate, rounds, sizeof(w->rate[0]), compare);
		printf("%-12s %-6s %12.0f %12.2f %12.2f\n", w->name, w->cache, w->rate[rounds / 2],
		       (double)w->calls / (double)w->ops, (double)w->cpu_us / (double)w->ops);
	}
	return 0;
}
