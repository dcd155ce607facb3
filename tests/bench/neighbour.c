/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * neighbour.c - what remote reads cost a program beside them that needs the memory's bandwidth
 *
 *     neighbour SECONDS ROUNDS MIB_PER_S NAME=URL...
 *
 * URLs are of files. The program copies memory on every processor for SECONDS, alone and while MIB_PER_S are read from each
 * of them in turn, 1 MiB at a time, at the same rate whatever the way: so that what differs is what a byte
 * costs, in processor time and in bandwidth. Printed are medians of ROUNDS: how fast the copying was
 * beside each, as a part of alone in the same round (and the least and the most of that), and what was read in fact.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/util.h"
#include "leat.h"

#define MIB (UINT64_C(1) << 20)
#define COPY_BYTES (64 * MIB)
#define WAYS_MAX 8
#define ROUNDS_MAX 31

static struct way {
	const char *name, *url;
	double copied[ROUNDS_MAX], read[ROUNDS_MAX]; /* MiB/s */
	double part[ROUNDS_MAX]; /* of what was copied alone in the same round */
} ways[WAYS_MAX];

static atomic_bool stop;
static double wanted; /* MiB/s */

static void die(const char *what, const char *why)
{
	fprintf(stderr, "neighbour: %s: %s\n", what, why);
	exit(1);
}

/* ---- the reader ------------------------------------------------------------------------------ */

struct reader {
	struct leat *m;
	struct leat_file *f;
	void *buf;
	uint64_t size, done;
};

static void reader_open(struct reader *r, const struct way *w)
{
	struct leat_opts *opts = leat_opts_create();
	struct stat st;
	char url[1024], *slash;

	(void)snprintf(url, sizeof(url), "%s", w->url);
	slash = strrchr(url, '/');
	if (!slash)
		die(w->url, "no file");
	*slash = '\0';
	if (leat_set(opts, "readahead", "0") || leat_set(opts, "poll", "event") || leat_mount(url, opts, &r->m))
		die(url, leat_error(NULL));
	leat_opts_destroy(opts);
	if (leat_open(r->m, slash + 1, O_RDONLY, 0, &r->f) || leat_fstat(r->f, &st))
		die(url, leat_error(r->m));
	r->size = (uint64_t)st.st_size / MIB * MIB;
	if (!r->size)
		die(w->url, "shorter than 1 MiB");
	if (leat_buf_alloc(leat_session(r->m), MIB, &r->buf))
		die(w->url, "no memory");
	r->done = 0;
}

static void reader_close(struct reader *r)
{
	(void)leat_close(r->f);
	leat_buf_free(leat_session(r->m), r->buf);
	leat_umount(r->m);
}

static void *read_on(void *arg)
{
	struct reader *r = arg;
	uint64_t start = clock_now_ns(), due;
	struct timespec ts;

	while (!atomic_load(&stop)) {
		if (leat_pread(r->f, r->buf, MIB, r->done % r->size) != (int64_t)MIB)
			die("read", leat_error(r->m));
		r->done += MIB;
		due = start + (uint64_t)((double)r->done / (double)MIB / wanted * 1e9);
		ts = (struct timespec){ .tv_sec = (time_t)(due / NS_PER_S),
					.tv_nsec = (long)(due % NS_PER_S) };
		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
			;
	}
	return NULL;
}

/* ---- the neighbour --------------------------------------------------------------------------- */

#define COPIERS_MAX 64

static struct copier {
	pthread_t thread;
	uint8_t *from, *to;
	double seconds, rate;
} copiers[COPIERS_MAX];

static unsigned ncopiers;

static void *copy(void *arg)
{
	struct copier *c = arg;
	uint64_t start = clock_now_ns(), now, n = 0;

	do {
		for (uint64_t at = 0; at < COPY_BYTES; at += MIB)
			memcpy(c->to + at, c->from + at, MIB);
		n += COPY_BYTES / MIB;
		c->from[n % COPY_BYTES]++; /* so that none of it is for nothing */
		now = clock_now_ns();
	} while ((double)(now - start) < c->seconds * 1e9);
	c->rate = (double)n / ((double)(now - start) / 1e9);
	return NULL;
}

/* Return: MiB/s, of all of them together */
static double copy_for(double seconds)
{
	double sum = 0;

	for (unsigned i = 0; i < ncopiers; i++) {
		copiers[i].seconds = seconds;
		if (pthread_create(&copiers[i].thread, NULL, copy, &copiers[i]))
			die("thread", "none");
	}
	for (unsigned i = 0; i < ncopiers; i++) {
		pthread_join(copiers[i].thread, NULL);
		sum += copiers[i].rate;
	}
	return sum;
}

static void copiers_make(void)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	ncopiers = cpus < 1 ? 1 : (unsigned)MIN(cpus, COPIERS_MAX);
	for (unsigned i = 0; i < ncopiers; i++) {
		struct copier *c = &copiers[i];

		c->from = malloc(COPY_BYTES);
		c->to = malloc(COPY_BYTES);
		if (!c->from || !c->to)
			die("memory", "none");
		memset(c->from, 1, COPY_BYTES);
		memset(c->to, 2, COPY_BYTES);
	}
}

static void run(struct way *w, double seconds, unsigned round)
{
	struct reader r;
	pthread_t thread;
	uint64_t start;

	if (!w->url) {
		w->copied[round] = copy_for(seconds);
		return;
	}
	reader_open(&r, w);
	atomic_store(&stop, false);
	start = clock_now_ns();
	if (pthread_create(&thread, NULL, read_on, &r))
		die("thread", "none");
	w->copied[round] = copy_for(seconds);
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	w->read[round] = (double)r.done / (double)MIB / ((double)(clock_now_ns() - start) / 1e9);
	reader_close(&r);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *v, unsigned n)
{
	qsort(v, n, sizeof(*v), compare);
	return v[n / 2];
}

static void tell(struct way *w, unsigned rounds)
{
	printf("%s %-8s copies %8.0f MiB/s", w->url ? "beside" : "      ", w->name,
	       median(w->copied, rounds));
	if (w->url) {
		printf("  %.2f of alone", median(w->part, rounds)); /* which puts them in order */
		printf(" (%.2f to %.2f) while %5.0f MiB/s are read", w->part[0],
		       w->part[rounds - 1], median(w->read, rounds));
	}
	putchar('\n');
}

int main(int argc, char **argv)
{
	double seconds = argc > 4 ? atof(argv[1]) : 0;
	unsigned rounds = argc > 4 ? (unsigned)atoi(argv[2]) : 0, n = 1;

	wanted = argc > 4 ? atof(argv[3]) : 0;
	if (seconds <= 0 || !rounds || rounds > ROUNDS_MAX || wanted <= 0 || argc - 4 >= WAYS_MAX)
		die("usage", "neighbour SECONDS ROUNDS MIB_PER_S NAME=URL...");
	ways[0].name = "alone";
	for (int i = 4; i < argc; i++, n++) {
		char *eq = strchr(argv[i], '=');

		if (!eq)
			die(argv[i], "not NAME=URL");
		*eq = '\0';
		ways[n].name = argv[i];
		ways[n].url = eq + 1;
	}
	copiers_make();
	for (unsigned r = 0; r < rounds; r++) {
		for (unsigned i = 0; i < n; i++) {
			run(&ways[i], seconds, r);
			/* of the same round: in others the machine has other moods */
			ways[i].part[r] = ways[i].copied[r] / ways[0].copied[r];
		}
	}
	for (unsigned i = 0; i < n; i++)
		tell(&ways[i], rounds);
	for (unsigned i = 0; i < ncopiers; i++) {
		free(copiers[i].from);
		free(copiers[i].to);
	}
	return 0;
}
