/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * handles.c - what a file handle costs: its signature, and all that is done with it
 *
 *     handles DIR ROUNDS
 *
 * In nanoseconds, medians of ROUNDS, for a directory in DIR: making and checking the signature alone, as
 * of a handle of its length; reading a handle (fh_export), which is that check and little more; finding the
 * file by it (fh_open), and making its handle (fh_make). The share of the signature in the life of a handle is
 * what signing costs.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "fh.h"

#define TIMES 20000u
#define ROUNDS_MAX 32u

static struct {
	struct export_table t;
	struct fh_set *s;
	struct fh_obj root, dir;
	struct fh fh;
	struct fh_keys keys;
	volatile uint64_t sink;
} bench = { .keys.n = 1 };

static int sign(void)
{
	bench.sink = siphash(&bench.keys.v[0], bench.fh.data, bench.fh.len - sizeof(uint64_t));
	return 0;
}

static int check(void)
{
	struct export *exp;

	return fh_export(bench.s, bench.fh.data, bench.fh.len, &exp);
}

static int find(void)
{
	struct fh_obj o;
	int err = fh_open(bench.s, bench.fh.data, bench.fh.len, &o);

	if (!err)
		fh_close(&o);
	return err;
}

static int make(void)
{
	struct fh fh;

	return fh_make(bench.s, &bench.dir, &fh);
}

static const struct {
	const char *name;
	int (*fn)(void);
} ways[] = {
	{ "signature", sign },
	{ "fh_export", check },
	{ "fh_open", find },
	{ "fh_make", make },
};

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static int prepare(char *dir)
{
	struct export_conf conf;
	char why[256];
	int err;

	export_conf_init(&conf);
	conf.name = (char[]){ "/bench" };
	conf.path = dir;
	err = siphash_key_random(&bench.keys.v[0]);
	if (!err)
		err = export_table_open(&conf, 1, &bench.t, why, sizeof(why));
	if (!err)
		err = fh_set_create(&bench.t, &bench.keys, 0, NULL, NULL, &bench.s);
	if (!err)
		err = fh_open_root(bench.s, &bench.t.v[0], &bench.root);
	if (!err)
		err = mkdirat(bench.root.fd, "d", 0755);
	if (!err)
		err = fh_lookup(bench.s, &bench.root, "d", &bench.dir);
	return err ? err : fh_make(bench.s, &bench.dir, &bench.fh);
}

static int measure(unsigned rounds)
{
	static double v[ARRAY_SIZE(ways)][ROUNDS_MAX];
	int err = 0;

	for (unsigned r = 0; r < rounds; r++) {
		for (size_t w = 0; w < ARRAY_SIZE(ways); w++) {
			uint64_t begin = clock_now_ns();

			for (unsigned i = 0; i < TIMES && !err; i++)
				err = ways[w].fn();
			v[w][r] = (double)(clock_now_ns() - begin) / TIMES;
		}
	}
	printf("%s, %u bytes:", fh_kind_name((enum fh_kind)bench.t.v[0].fh_kind), bench.fh.len);
	for (size_t w = 0; w < ARRAY_SIZE(ways); w++) {
		qsort(v[w], rounds, sizeof(double), by_value);
		printf("  %s %.0f ns", ways[w].name, v[w][rounds / 2]);
	}
	printf("\n");
	return err;
}

int main(int argc, char **argv)
{
	unsigned rounds = argc == 3 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
	char dir[4096];
	int err;

	if (!rounds || rounds > ROUNDS_MAX) {
		fprintf(stderr, "usage: handles DIR ROUNDS (of 1 to %u)\n", ROUNDS_MAX);
		return 2;
	}
	if (snprintf(dir, sizeof(dir), "%s/handles.XXXXXX", argv[1]) >= (int)sizeof(dir) ||
	    !mkdtemp(dir) || prepare(dir)) {
		perror(argv[1]);
		return 1;
	}
	err = measure(rounds);
	fh_close(&bench.dir);
	(void)unlinkat(bench.root.fd, "d", AT_REMOVEDIR);
	fh_close(&bench.root);
	fh_set_destroy(bench.s);
	export_table_close(&bench.t);
	(void)rmdir(dir);
	return err ? 1 : 0;
}
