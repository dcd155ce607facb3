/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * creates.c - files made per second, each durable before the next, with and without shared syncs
 *
 *     creates DIR SECONDS ROUNDS
 *
 * What a worker of leatd does for a CREATE, without the network: vfs_create() in one new directory below
 * DIR, by 1, 4 and 32 threads. The ways take turns, ROUNDS times; the median of each is printed, how many
 * creates had a sync of the directory in common where they share, and the rate of open(O_CREAT | O_EXCL) and close() by one thread, which promises nothing.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "fsync_batch.h"
#include "vfs.h"

#define THREADS_MAX 32u
#define ROUNDS_MAX 32u

static const unsigned threads[] = { 1, 4, 32 };

struct bench {
	struct export_table t;
	struct fh_set *s;
	struct fh_obj root;
	struct fsync_batch *fsyncs;
	struct creds me;
	const char *path;
	uint64_t until;
	atomic_uint serial;
	atomic_uint made;
	atomic_bool failed;
};

static struct bench bench;

static void on_lost(void *ctx, uint64_t dev)
{
	(void)dev;
	atomic_store(&((struct bench *)ctx)->failed, true);
}

static void *durable_main(void *arg)
{
	const struct vfs_sattr none = { 0 };
	char name[32];

	(void)arg;
	while (clock_now_ns() < bench.until && !atomic_load(&bench.failed)) {
		struct vfs_made m;

		(void)snprintf(name, sizeof(name), "f%u", atomic_fetch_add(&bench.serial, 1));
		if (vfs_create(bench.s, &bench.root, name, VFS_GUARDED, &none, NULL, &bench.me, &m)) {
			atomic_store(&bench.failed, true);
			break;
		}
		vfs_made_close(&m);
		atomic_fetch_add(&bench.made, 1);
	}
	return NULL;
}

static void *plain_main(void *arg)
{
	char path[4096];

	(void)arg;
	while (clock_now_ns() < bench.until) {
		int fd;

		(void)snprintf(path, sizeof(path), "%s/f%u", bench.path,
			       atomic_fetch_add(&bench.serial, 1));
		fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
		if (fd < 0) {
			atomic_store(&bench.failed, true);
			break;
		}
		close(fd);
		atomic_fetch_add(&bench.made, 1);
	}
	return NULL;
}

/* what was made goes, so that each starts alike */
static void sweep(void)
{
	char path[4096];

	for (unsigned i = 0; i < atomic_load(&bench.serial); i++) {
		(void)snprintf(path, sizeof(path), "%s/f%u", bench.path, i);
		(void)unlink(path);
	}
	atomic_store(&bench.serial, 0);
	sync();
}

static double rate(void *(*fn)(void *), unsigned n, double seconds)
{
	pthread_t v[THREADS_MAX];
	uint64_t start = clock_now_ns();
	double took;

	atomic_store(&bench.made, 0);
	bench.until = start + (uint64_t)(seconds * (double)NS_PER_S);
	for (unsigned i = 0; i < n; i++) {
		if (pthread_create(&v[i], NULL, fn, NULL))
			n = i;
	}
	for (unsigned i = 0; i < n; i++)
		pthread_join(v[i], NULL);
	took = (double)(clock_now_ns() - start) / (double)NS_PER_S;
	sweep();
	return (double)atomic_load(&bench.made) / took;
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double median(double *v, unsigned n)
{
	qsort(v, n, sizeof(*v), by_value);
	return v[n / 2];
}

static int prepare(char *dir)
{
	struct fh_keys keys = { .n = 1 };
	struct export_conf conf;
	char why[256];
	int err;

	export_conf_init(&conf);
	conf.name = (char[]){ "/bench" };
	conf.path = dir;
	err = vfs_init();
	if (!err)
		err = siphash_key_random(&keys.v[0]);
	if (!err)
		err = export_table_open(&conf, 1, &bench.t, why, sizeof(why));
	if (!err)
		err = fh_set_create(&bench.t, &keys, 0, NULL, NULL, &bench.s);
	if (!err)
		err = fh_open_root(bench.s, &bench.t.v[0], &bench.root);
	if (!err)
		err = fsync_batch_create(on_lost, &bench, &bench.fsyncs);
	bench.me = (struct creds){ .uid = geteuid(), .gid = getegid() };
	bench.path = dir;
	return err;
}

static void compare(double seconds, unsigned rounds)
{
	static double v[ARRAY_SIZE(threads) * 2 + 1][ROUNDS_MAX];
	static uint64_t calls[ARRAY_SIZE(threads)], syncs[ARRAY_SIZE(threads)];
	const size_t plain = ARRAY_SIZE(threads) * 2;

	for (unsigned r = 0; r < rounds; r++) {
		for (size_t i = 0; i < plain; i++) {
			size_t way = i ^ (r % 2); /* each round swaps which of the two runs first */
			uint64_t before[2], after[2];

			bench.t.v[0].backing.fsyncs = way % 2 ? bench.fsyncs : NULL;
			fsync_batch_count(bench.fsyncs, &before[0], &before[1]);
			v[way][r] = rate(durable_main, threads[way / 2], seconds);
			fsync_batch_count(bench.fsyncs, &after[0], &after[1]);
			calls[way / 2] += after[0] - before[0];
			syncs[way / 2] += after[1] - before[1];
		}
		v[plain][r] = rate(plain_main, 1, seconds);
	}
	printf("    %-12s %14s %14s %20s\n", "at once", "each its own", "shared",
	       "creates per sync");
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		printf("    %-12u %14.0f %14.0f %20.1f\n", threads[i], median(v[2 * i], rounds),
		       median(v[2 * i + 1], rounds),
		       syncs[i] ? (double)calls[i] / (double)syncs[i] : 0.0);
	printf("    %-12s %14.0f\n", "not durable", median(v[plain], rounds));
}

int main(int argc, char **argv)
{
	unsigned rounds = argc == 4 ? (unsigned)strtoul(argv[3], NULL, 10) : 0;
	char dir[4096];

	if (!rounds || rounds > ROUNDS_MAX) {
		fprintf(stderr, "usage: creates DIR SECONDS ROUNDS (of 1 to %u)\n", ROUNDS_MAX);
		return 2;
	}
	if (snprintf(dir, sizeof(dir), "%s/creates.XXXXXX", argv[1]) >= (int)sizeof(dir) ||
	    !mkdtemp(dir) || prepare(dir)) {
		perror(dir);
		return 1;
	}
	compare(strtod(argv[2], NULL), rounds);
	fh_close(&bench.root);
	fh_set_destroy(bench.s);
	export_table_close(&bench.t);
	fsync_batch_destroy(bench.fsyncs);
	(void)rmdir(dir);
	if (atomic_load(&bench.failed))
		fprintf(stderr, "creates: something failed\n");
	return atomic_load(&bench.failed);
}
