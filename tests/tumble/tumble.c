/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * tumble.c - tumble [OPTION]... TARGET: random operations, every answer verified
 *
 * TARGET is a path, which is used by system calls (of a kernel mount, say), or a URL of libleat. The
 * file is made, and removed when all was well.
 *
 *   -n COUNT   operations (10000)            -s SEED    of the random numbers (time)
 *   -l BYTES   largest size of the file (262144)
 *   -m BYTES   largest read or write (as -l) -q DEPTH   operations at once, by libleat (1)
 *   -c COUNT   operations between two looks at the whole file (1000)
 *   -D [-A N]  some by O_DIRECT, at multiples of N (1)
 *   -M         some by mmap                  -r         the server may be killed and come back
 *   -o FILE    what the file has to be, in the end; the file stays
 *   -L FILE    where the log of a failure goes; -R FILE   do what such a log says
 *   -N         names instead: TARGET is a directory that is made, and removed when all was well
 *   -v         tell how far it is
 *
 * tumble volume ...: several clients and failing servers, fleet_main.c
 *
 * Exit status: 0, 1 if something was wrong, 2 for wrong usage, 3 if it could not be tried.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/util.h"
#include "fleet.h"
#include "tree.h"
#include "tumble.h"

struct args {
	struct tumble_opts o;
	const char *target, *model, *replay;
	bool names;
};

static volatile sig_atomic_t stopped;

static void on_signal(int sig)
{
	stopped = sig;
}

static int usage(const char *what)
{
	fprintf(stderr,
		"tumble: %s\nusage: tumble [-n COUNT] [-s SEED] [-l BYTES] [-m BYTES] [-q DEPTH] "
		"[-c COUNT] [-D] "
		"[-A BYTES] [-M] [-N] [-r] [-o FILE] [-L FILE] [-R FILE] [-v] PATH|URL\n",
		what);
	return 2;
}

static bool number(const char *text, uint64_t min, uint64_t max, uint64_t *ret)
{
	unsigned long long n;
	char *end;

	errno = 0;
	n = strtoull(text, &end, 10);
	if (errno || end == text || *end || text[0] == '-' || n < min || n > max)
		return false;
	*ret = n;
	return true;
}

/* Return: 0, 2. */
static int take_number(int opt, const char *text, struct tumble_opts *o)
{
	uint64_t n = 0;
	bool good;

	switch (opt) {
	case 'n':
		good = number(text, 0, UINT64_C(1) << 40, &o->count);
		break;
	case 's':
		good = number(text, 0, UINT64_MAX, &o->seed);
		break;
	case 'l':
		good = number(text, 1, TUMBLE_BYTES_MAX, &o->size_max);
		break;
	case 'm':
		good = number(text, 1, TUMBLE_BYTES_MAX, &o->len_max);
		break;
	case 'c':
		good = number(text, 1, UINT64_MAX, &o->check_every);
		break;
	case 'q':
		good = number(text, 1, TUMBLE_DEPTH_MAX, &n);
		o->depth = (unsigned)n;
		break;
	default:
		good = number(text, 1, 65536, &n) && !(n & (n - 1));
		o->direct_align = (uint32_t)n;
		break;
	}
	return good ? 0 : usage("a number that is none, or out of range");
}

static int parse(int argc, char **argv, struct args *a)
{
	struct tumble_opts *o = &a->o;
	int opt, rc = 0;

	while (!rc && (opt = getopt(argc, argv, "n:s:l:m:q:c:A:DMNro:L:R:v")) != -1) {
		switch (opt) {
		case 'D':
			o->direct = true;
			break;
		case 'M':
			o->map = true;
			break;
		case 'N':
			a->names = true;
			break;
		case 'r':
			o->restarts = true;
			break;
		case 'v':
			o->verbose = true;
			break;
		case 'o':
			a->model = optarg;
			break;
		case 'L':
			o->log = optarg;
			break;
		case 'R':
			a->replay = optarg;
			break;
		case '?':
			return usage("an unknown option, or one without its value");
		default:
			rc = take_number(opt, optarg, o);
			break;
		}
	}
	if (rc)
		return rc;
	if (argc - optind != 1)
		return usage("one file is wanted");
	a->target = argv[optind];
	if (back_is_url(a->target) && (o->direct || o->map))
		return usage("O_DIRECT and mmap are for paths");
	if (a->names &&
	    (o->direct || o->map || o->restarts || o->depth > 1 || o->log || a->model || a->replay))
		return usage("of these options -N takes only -n, -s, -c");
	if (!o->len_max || o->len_max > o->size_max)
		o->len_max = o->size_max;
	return 0;
}

static void tell(const struct args *a, const struct back *b, const struct tumble_sum *s,
		 uint64_t ns)
{
	uint64_t all = 0;

	for (unsigned i = 0; i < OP_KINDS; i++)
		all += s->ops[i];
	printf("tumble: all was right: %" PRIu64 " answers by %s, seed %" PRIu64 ": %" PRIu64
	       " reads (%" PRIu64 " KiB), %" PRIu64 " writes (%" PRIu64 " KiB), %" PRIu64
	       " truncates, %" PRIu64 " reopens, %" PRIu64 " looks at all; %" PRIu64
	       " reconnects, %" PRIu64 " losses mended; %.1f s\n",
	       all, b->ops->name, a->o.seed, s->ops[OP_READ], s->bytes_read >> 10, s->ops[OP_WRITE],
	       s->bytes_written >> 10, s->ops[OP_TRUNCATE], s->ops[OP_REOPEN], s->ops[OP_CHECK],
	       s->reconnects, s->losses, (double)ns / (double)NS_PER_S);
}

static int run(struct args *a, struct back *b, const struct oplog *replay)
{
	uint64_t start = clock_now_ns();
	struct tumble_sum sum;
	struct model model;
	int rc = tumble_file(b, &a->o, replay, stdout, &sum, &model);

	if (rc < 0)
		fprintf(stderr, "tumble: %s: %s (%s)\n", a->target, strerror(-rc), b->ops->why(b));
	if (rc)
		return rc < 0 ? 3 : 1;
	tell(a, b, &sum, clock_now_ns() - start);
	rc = a->model ? model_save(&model, a->model) : b->ops->unlink(b);
	model_fini(&model);
	if (rc) {
		fprintf(stderr, "tumble: %s: %s\n", a->model ? a->model : a->target, strerror(-rc));
		return 3;
	}
	return 0;
}

static int run_names(struct args *a)
{
	uint64_t start = clock_now_ns(), done[2];
	struct tree *t;
	char why[512];
	int rc;

	if (back_is_url(a->target))
		rc = tree_leat_create(a->target, &t, why, sizeof(why));
	else
		rc = tree_posix_create(a->target, &t, why, sizeof(why));
	if (rc) {
		fprintf(stderr, "tumble: %s\n", why);
		return 3;
	}
	rc = tumble_names(t, &a->o, stdout, done);
	if (rc < 0)
		fprintf(stderr, "tumble: %s: %s\n", a->target, strerror(-rc));
	else if (!rc && !stopped)
		printf("tumble: all was right: names by %s, seed %" PRIu64 ": %" PRIu64
		       " changes, %" PRIu64 " refusals; %.1f s\n",
		       t->ops->name, a->o.seed, done[0], done[1],
		       (double)(clock_now_ns() - start) / (double)NS_PER_S);
	else if (!rc)
		printf("tumble: stopped by a signal\n");
	t->ops->destroy(t);
	return rc < 0 ? 3 : rc || stopped ? 1 : 0;
}

int main(int argc, char **argv)
{
	struct args a = { .o = { .count = 10000,
				 .seed = (uint64_t)time(NULL),
				 .size_max = 262144,
				 .depth = 1,
				 .check_every = 1000,
				 .direct_align = 1,
				 .stop = &stopped } };
	const struct sigaction act = { .sa_handler = on_signal };
	struct oplog replay = { 0 };
	char why[512];
	struct back *b;
	int rc;

	if (argc > 1 && !strcmp(argv[1], "volume"))
		return fleet_main(argc - 1, argv + 1);
	rc = parse(argc, argv, &a);
	if (rc)
		return rc;
	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	if (a.names)
		return run_names(&a);
	if (a.replay)
		rc = oplog_load(a.replay, &a.o, &replay, why, sizeof(why));
	if (!rc) {
		if (back_is_url(a.target))
			rc = back_leat_create(a.target, &b, why, sizeof(why));
		else
			rc = back_posix_create(a.target, &a.o, &b, why, sizeof(why));
	}
	if (rc) {
		fprintf(stderr, "tumble: %s\n", why);
		oplog_fini(&replay);
		return 3;
	}
	rc = run(&a, b, a.replay ? &replay : NULL);
	if (!stopped) /* else something is still in flight, perhaps for ever */
		b->ops->destroy(b);
	oplog_fini(&replay);
	return rc;
}
