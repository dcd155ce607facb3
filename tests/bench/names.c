/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * names.c - what files cost apart from their bytes: by system calls, and by way of leatds
 *
 *     names [-n FILES] [-r ROUNDS] [-q AT_ONCE,...] [-c] DIR [LABEL=]URL...
 *     names -l ENTRIES,... [-r ROUNDS] DIR [LABEL=]URL...
 *
 * The URLs are DIR, each served in some way. FILES (1000) files are made, looked at, renamed, listed and
 * removed in DIR: by system calls of DIR, with as many threads as are to be at once (1 and 16), and by
 * each URL with as many calls in flight. The ways take turns, ROUNDS (3) times, another first each
 * time; printed are medians of operations per second, and their ratio to the first column: which is
 * `plain`, the system calls, or with -c (compare URLs) the first URL; and of a leatd the CPU time of the
 * server for an operation, in microseconds, its spinning included. On a busy machine that is the figure
 * that holds still.
 *
 * stat is by path: a LOOKUP each. fstat is of an open file: a GETATTR. Both only if the URL says
 * cache=none: else the client may know. A listed entry has its attributes; where nothing but names is asked for system calls are
 * cheaper still, but libleat always asks for both.
 *
 * -l makes and lists directories with ENTRIES entries instead, and prints the time per entry. A listing is
 * linear if that time does not change as directories grow.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/util.h"
#include "leat.h"
#include "leat_admin.h"

#define AT_ONCE_MAX 64u
#define WAYS_MAX 8u
#define DEPTHS_MAX 4u
#define ROUNDS_MAX 32u
#define LISTINGS 4u
#define SIZES_MAX 8u

struct way {
	char label[16];
	const char *url; /* NULL: system calls */
	struct leat *m;
	struct leat_file *open_file; /* for fstat */
};

/* one thread or one call in flight */
struct slot {
	const struct way *way;
	char from[64], to[64];
	struct stat st;
	struct leat_file *file;
	struct leat_dir *dir;
	bool closing;
};

struct op {
	const char *name;
	int (*plain)(struct slot *s);
	int (*start)(struct slot *s, struct leat_cb cb);
	unsigned per_round; /* 0: for each file */
};

static struct {
	unsigned files, rounds;
	unsigned depths[DEPTHS_MAX], ndepths;
	unsigned sizes[SIZES_MAX], nsizes;
	bool compare_urls;
	const char *dir;
	int dir_fd, open_fd;
	struct way ways[WAYS_MAX];
	unsigned nways;
} conf = { .files = 1000, .rounds = 3, .depths = { 1, 16 }, .ndepths = 2, .dir_fd = -1 };

static struct {
	const struct op *op;
	unsigned total, busy;
	atomic_uint next;
	atomic_int err;
} run;

static void failed(int err)
{
	int none = 0;

	(void)atomic_compare_exchange_strong(&run.err, &none, err);
}

/* Return: whether there was one more to do; the slot's names are set for it */
static bool take(struct slot *s)
{
	unsigned i = atomic_fetch_add(&run.next, 1);

	if (i >= run.total || atomic_load(&run.err))
		return false;
	snprintf(s->from, sizeof(s->from), "f%06u", i);
	snprintf(s->to, sizeof(s->to), "a-new-name-%06u", i);
	return true;
}

/* ---- by system calls ---------------------------------------------------------------------- */

static int rc(long n)
{
	return n < 0 ? -errno : 0;
}

static int plain_create(struct slot *s)
{
	int fd = openat(conf.dir_fd, s->from, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	return fd < 0 ? -errno : rc(close(fd));
}

static int plain_stat(struct slot *s)
{
	return rc(fstatat(conf.dir_fd, s->from, &s->st, 0));
}

static int plain_fstat(struct slot *s)
{
	return rc(fstat(conf.open_fd, &s->st));
}

static int plain_access(struct slot *s)
{
	return rc(faccessat(conf.dir_fd, s->from, R_OK | W_OK, 0));
}

static int plain_rename(struct slot *s)
{
	return rc(renameat(conf.dir_fd, s->from, conf.dir_fd, s->to));
}

static int list_plainly(const char *path)
{
	int fd = openat(conf.dir_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), err = 0;
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;
	struct stat st;

	if (!d)
		return -errno;
	while (!err && (e = readdir(d)))
		err = rc(fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW));
	closedir(d);
	return err;
}

static int plain_list(struct slot *s)
{
	(void)s;
	return list_plainly(".");
}

static int plain_remove(struct slot *s)
{
	return rc(unlinkat(conf.dir_fd, s->to, 0));
}

static int plain_mkdir(struct slot *s)
{
	return rc(mkdirat(conf.dir_fd, s->from, 0755));
}

static int plain_rmdir(struct slot *s)
{
	return rc(unlinkat(conf.dir_fd, s->from, AT_REMOVEDIR));
}

static void *plain_main(void *arg)
{
	struct slot *s = arg;

	while (take(s)) {
		int err = run.op->plain(s);

		if (err)
			failed(err);
	}
	return NULL;
}

static void run_plain(struct slot *slots, unsigned depth)
{
	pthread_t v[AT_ONCE_MAX];

	for (unsigned i = 0; i < depth; i++) {
		if (pthread_create(&v[i], NULL, plain_main, &slots[i])) {
			failed(-EAGAIN);
			depth = i;
		}
	}
	for (unsigned i = 0; i < depth; i++)
		pthread_join(v[i], NULL);
}

/* ---- by way of a leatd -------------------------------------------------------------------- */

static void start_next(struct slot *s);

static void on_done(void *user, int64_t result)
{
	struct slot *s = user;
	struct leat_cb cb = { .fn = on_done, .user_data = s };
	int err;

	run.busy--;
	if (result < 0)
		failed((int)result);
	if (s->dir)
		leat_closedir(s->dir);
	s->dir = NULL;
	if (s->file && !s->closing) {
		s->closing = true;
		err = leat_aio_close(s->file, cb);
		if (!err) {
			run.busy++;
			return;
		}
		failed(err);
	}
	s->file = NULL;
	s->closing = false;
	start_next(s);
}

static void start_next(struct slot *s)
{
	struct leat_cb cb = { .fn = on_done, .user_data = s };
	int err;

	if (!take(s))
		return;
	run.busy++;
	err = run.op->start(s, cb);
	if (err) {
		run.busy--;
		failed(err);
	}
}

static int leat_create(struct slot *s, struct leat_cb cb)
{
	return leat_aio_open(s->way->m, s->from, O_WRONLY | O_CREAT | O_EXCL, 0644, &s->file, cb);
}

static int leat_stat_start(struct slot *s, struct leat_cb cb)
{
	return leat_aio_lstat(s->way->m, s->from, &s->st, cb);
}

static int leat_fstat_start(struct slot *s, struct leat_cb cb)
{
	return leat_aio_fstat(s->way->open_file, &s->st, cb);
}

static int leat_access_start(struct slot *s, struct leat_cb cb)
{
	return leat_aio_access(s->way->m, s->from, R_OK | W_OK, cb);
}

static int leat_rename_start(struct slot *s, struct leat_cb cb)
{
	return leat_aio_rename(s->way->m, s->from, s->to, cb);
}

static int leat_list(struct slot *s, struct leat_cb cb)
{
	return leat_aio_opendir(s->way->m, "", &s->dir, cb);
}

static int leat_remove(struct slot *s, struct leat_cb cb)
{
	return leat_aio_unlink(s->way->m, s->to, cb);
}

static int leat_mkdir_start(struct slot *s, struct leat_cb cb)
{
	return leat_aio_mkdir(s->way->m, s->from, 0755, cb);
}

static int leat_rmdir_start(struct slot *s, struct leat_cb cb)
{
	return leat_aio_rmdir(s->way->m, s->from, cb);
}

static void run_leat(const struct way *w, struct slot *slots, unsigned depth)
{
	run.busy = 0;
	for (unsigned i = 0; i < depth; i++)
		start_next(&slots[i]);
	while (run.busy) {
		int n = leat_poll(leat_session(w->m), -1);

		if (n < 0) {
			failed(n);
			return;
		}
	}
}

/* ---- rounds ------------------------------------------------------------------------------- */

/* In this order each finds what the one before it left. */
static const struct op ops[] = {
	{ "create", plain_create, leat_create, 0 },
	{ "stat", plain_stat, leat_stat_start, 0 },
	{ "fstat", plain_fstat, leat_fstat_start, 0 },
	{ "access", plain_access, leat_access_start, 0 },
	{ "list, entries", plain_list, leat_list, LISTINGS },
	{ "rename", plain_rename, leat_rename_start, 0 },
	{ "remove", plain_remove, leat_remove, 0 },
	{ "mkdir", plain_mkdir, leat_mkdir_start, 0 },
	{ "rmdir", plain_rmdir, leat_rmdir_start, 0 },
};

static double rates[ARRAY_SIZE(ops)][DEPTHS_MAX][WAYS_MAX][ROUNDS_MAX];
static double costs[ARRAY_SIZE(ops)][DEPTHS_MAX][WAYS_MAX][ROUNDS_MAX];

static uint64_t server_us(const struct way *w)
{
	struct leat_server_stats s = { .size = sizeof(s) };

	return w->m && !leat_server_stats(w->m, &s) ? s.cpu_us : 0;
}

static void one_op(const struct way *w, const struct op *op, unsigned depth, double *ret_rate,
		   double *ret_cost)
{
	static struct slot slots[AT_ONCE_MAX];
	uint64_t begin, took, before = server_us(w);
	unsigned n;

	memset(slots, 0, sizeof(slots));
	for (unsigned i = 0; i < depth; i++)
		slots[i].way = w;
	run.op = op;
	run.total = op->per_round ? op->per_round : conf.files;
	atomic_store(&run.next, 0);
	begin = clock_now_ns();
	if (w->url)
		run_leat(w, slots, depth);
	else
		run_plain(slots, depth);
	n = op->per_round ? op->per_round * conf.files : conf.files;
	took = clock_now_ns() - begin;
	*ret_rate = (double)n * (double)NS_PER_S / (double)took;
	*ret_cost = (double)(server_us(w) - before) / n;
}

static int one_round(unsigned round)
{
	for (unsigned d = 0; d < conf.ndepths; d++) {
		for (unsigned i = 0; i < conf.nways; i++) {
			unsigned w = (i + round) % conf.nways;

			for (size_t o = 0; o < ARRAY_SIZE(ops); o++) {
				one_op(&conf.ways[w], &ops[o], conf.depths[d],
				       &rates[o][d][w][round], &costs[o][d][w][round]);
				if (atomic_load(&run.err)) {
					fprintf(stderr, "names: %s, %s: %s\n", conf.ways[w].label,
						ops[o].name, strerror(-atomic_load(&run.err)));
					return -1;
				}
			}
		}
	}
	return 0;
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double median(double *v)
{
	qsort(v, conf.rounds, sizeof(*v), by_value);
	return v[conf.rounds / 2];
}

static void print(void)
{
	printf("%-14s %4s", "op/s", "at once");
	for (unsigned w = 0; w < conf.nways; w++)
		printf("  %*s%s", w ? 16 : 9, conf.ways[w].label, conf.ways[w].url ? "  srv us" : "");
	printf("\n");
	for (size_t o = 0; o < ARRAY_SIZE(ops); o++) {
		for (unsigned d = 0; d < conf.ndepths; d++) {
			double first = 0;

			printf("%-14s %7u", ops[o].name, conf.depths[d]);
			for (unsigned w = 0; w < conf.nways; w++) {
				double rate = median(rates[o][d][w]);

				if (w)
					printf("  %8.0f %6.3fx", rate, rate / first);
				else
					printf("  %9.0f", first = rate);
				if (conf.ways[w].url)
					printf("  %6.1f", median(costs[o][d][w]));
			}
			printf("\n");
		}
	}
}

/* ---- large directories -------------------------------------------------------------------- */

static int fill_dir(const char *name, unsigned entries, bool make)
{
	int fd, err = make ? rc(mkdirat(conf.dir_fd, name, 0755)) : 0;

	fd = err ? -1 : openat(conf.dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err ? err : -errno;
	for (unsigned i = 0; i < entries && !err; i++) {
		char file[32];

		snprintf(file, sizeof(file), "file-%07u", i);
		if (make)
			err = rc(mknodat(fd, file, S_IFREG | 0644, 0));
		else
			err = rc(unlinkat(fd, file, 0));
	}
	close(fd);
	if (!make && !err)
		err = rc(unlinkat(conf.dir_fd, name, AT_REMOVEDIR));
	return err;
}

static int list_once(const struct way *w, const char *name, unsigned entries)
{
	const struct leat_dirent *e;
	struct leat_dir *d;
	unsigned n = 0;
	int err;

	if (!w->url)
		return list_plainly(name);
	err = leat_opendir(w->m, name, &d);
	if (err)
		return err;
	while ((err = leat_readdir(d, &e)) == 1)
		n++;
	leat_closedir(d);
	return err ? err : n == entries + 2 ? 0 : -EIO; /* "." and ".." */
}

static int list_size(unsigned entries, double *ret_ns)
{
	static double v[WAYS_MAX][ROUNDS_MAX];
	char name[32];
	int err;

	snprintf(name, sizeof(name), "of-%u", entries);
	err = fill_dir(name, entries, true);
	for (unsigned r = 0; r < conf.rounds && !err; r++) {
		for (unsigned i = 0; i < conf.nways && !err; i++) {
			unsigned w = (i + r) % conf.nways;
			uint64_t begin = clock_now_ns();

			err = list_once(&conf.ways[w], name, entries);
			v[w][r] = (double)(clock_now_ns() - begin) / entries;
		}
	}
	for (unsigned w = 0; w < conf.nways; w++)
		ret_ns[w] = median(v[w]);
	return err ? err : fill_dir(name, entries, false);
}

static int list_sizes(void)
{
	double first[WAYS_MAX], now[WAYS_MAX];

	printf("%-14s", "ns/entry of");
	for (unsigned w = 0; w < conf.nways; w++)
		printf("  %16s", conf.ways[w].label);
	printf("\n");
	for (unsigned i = 0; i < conf.nsizes; i++) {
		int err = list_size(conf.sizes[i], now);

		if (err) {
			fprintf(stderr, "names: listing %u: %s\n", conf.sizes[i], strerror(-err));
			return err;
		}
		printf("%-14u", conf.sizes[i]);
		for (unsigned w = 0; w < conf.nways; w++) {
			if (!i)
				first[w] = now[w];
			printf("  %8.0f %6.2fx", now[w], now[w] / first[w]);
		}
		printf("\n");
	}
	return 0;
}

/* ---- from beginning to end ---------------------------------------------------------------- */

/* Return: how many numbers there are, 0 if one is wrong */
static unsigned parse_list(char *text, unsigned largest, unsigned room, unsigned *ret)
{
	char *save = NULL;
	unsigned n = 0;

	for (char *t = strtok_r(text, ",", &save); t; t = strtok_r(NULL, ",", &save)) {
		unsigned long v = strtoul(t, NULL, 10);

		if (!v || v > largest || n == room)
			return 0;
		ret[n++] = (unsigned)v;
	}
	return n;
}

static bool parse(int argc, char **argv)
{
	int opt;

	while ((opt = getopt(argc, argv, "n:r:q:l:c")) != -1) {
		switch (opt) {
		case 'n':
			conf.files = (unsigned)strtoul(optarg, NULL, 10);
			break;
		case 'r':
			conf.rounds = (unsigned)strtoul(optarg, NULL, 10);
			break;
		case 'q':
			conf.ndepths = parse_list(optarg, AT_ONCE_MAX, DEPTHS_MAX, conf.depths);
			break;
		case 'l':
			conf.nsizes = parse_list(optarg, 9999999, SIZES_MAX, conf.sizes);
			if (!conf.nsizes)
				return false;
			break;
		case 'c':
			conf.compare_urls = true;
			break;
		default:
			return false;
		}
	}
	if (!conf.ndepths || !conf.files || conf.files > 999999 || !conf.rounds || conf.rounds > ROUNDS_MAX ||
	    argc - optind < 2 || argc - optind > (int)WAYS_MAX)
		return false;
	conf.dir = argv[optind++];
	if (!conf.compare_urls)
		snprintf(conf.ways[conf.nways++].label, sizeof(conf.ways[0].label), "plain");
	for (; optind < argc; optind++) {
		struct way *w = &conf.ways[conf.nways++];
		const char *equals = strchr(argv[optind], '='), *slash = strchr(argv[optind], '/');
		bool has_label = equals && slash && equals < slash;

		w->url = has_label ? equals + 1 : argv[optind];
		snprintf(w->label, sizeof(w->label), "%.*s",
			 has_label ? (int)(equals - argv[optind]) : 15, argv[optind]);
	}
	return true;
}

static int prepare(void)
{
	static const char name[] = "open-file";
	struct leat_opts *opts = leat_opts_create();
	int err = leat_set(opts, "cache", "none"); /* the server is measured, not the cache */

	conf.dir_fd = open(conf.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	conf.open_fd = openat(conf.dir_fd, name, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	if (conf.dir_fd < 0 || conf.open_fd < 0)
		err = -errno;
	for (unsigned i = 0; i < conf.nways && !err; i++) {
		struct way *w = &conf.ways[i];

		if (w->url)
			err = leat_mount(w->url, opts, &w->m);

		if (!err && w->url)
			err = leat_open(w->m, name, O_RDWR | O_CREAT, 0644, &w->open_file); /* a volume has another directory */
		if (err)
			fprintf(stderr, "names: %s: %s\n", w->url, leat_error(NULL));
	}
	leat_opts_destroy(opts);
	return err;
}

static void put_away(void)
{
	for (unsigned i = 0; i < conf.nways; i++) {
		if (!conf.ways[i].m)
			continue;
		if (conf.ways[i].open_file)
			(void)leat_close(conf.ways[i].open_file);
		leat_umount(conf.ways[i].m);
	}
	if (conf.dir_fd >= 0)
		(void)unlinkat(conf.dir_fd, "open-file", 0);
}

int main(int argc, char **argv)
{
	int err;

	if (!parse(argc, argv)) {
		fprintf(stderr, "usage: names [-n FILES] [-r ROUNDS] [-q AT_ONCE,...] [-c] DIR "
				"[LABEL=]URL...\n       names -l ENTRIES,... [-r ROUNDS] DIR "
				"[LABEL=]URL...\n");
		return 2;
	}
	err = prepare();
	if (!err && conf.nsizes) {
		err = list_sizes();
	} else if (!err) {
		for (unsigned r = 0; !err && r < conf.rounds; r++)
			err = one_round(r);
		if (!err)
			print();
	}
	put_away();
	return err ? 1 : 0;
}
