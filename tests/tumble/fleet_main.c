/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fleet_main.c - tumble volume [OPTION]... DIR: random operations of several clients on a striped volume whose servers fail
 *
 * DIR, which must not exist, gets the volume: four stripe servers and a manager, each a process. All is removed by the caller.
 *
 *   -n COUNT   operations (10000)            -s SEED    of the random numbers (time)
 *   -l BYTES   largest size of a file (1048576)
 *   -m BYTES   largest read or write (300000)
 *   -C N       clients (4)                   -q DEPTH   operations at once, of all clients (12)
 *   -f N       faults of 1000 operations (10)
 *   -t HOW     local or tcp (tcp): with tcp connections can be held up and broken, too
 *   -p MS      after which clients and the manager take a server for away (300)
 *   -c COUNT   operations between two looks at everything (1000)
 *   -d LEATD   the program ($LEATD, else build/leatd)
 *   -x LEAT    in the end `leat volume fsck` finds nothing to repair; this is the program
 *   -L FILE    a log of all operations       -v         tell how far it is
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

static volatile sig_atomic_t stopped;

static void on_signal(int sig)
{
	stopped = sig;
}

static int usage(void)
{
	fprintf(stderr, "usage: tumble volume [-n COUNT] [-s SEED] [-l BYTES] [-m BYTES] [-C CLIENTS] [-q DEPTH] [-f FAULTS] "
			"[-t local|tcp] [-p MS] [-c COUNT] [-d LEATD] [-x LEAT] [-L FILE] [-v] DIR\n");
	return 2;
}

struct args {
	struct fleet_opts o;
	const char *leatd, *leat, *scheme, *dir;
};

/* Return: where the number goes; NULL: none */
static uint64_t *find_number(int opt, struct fleet_opts *o, uint64_t *small)
{
	switch (opt) {
	case 'n':
		return &o->count;
	case 's':
		return &o->seed;
	case 'l':
		return &o->size_max;
	case 'm':
		return &o->len_max;
	case 'p':
		return &o->patience_ms;
	case 'c':
		return &o->check_every;
	default:
		return small;
	}
}

static int take(int opt, const char *text, struct args *a)
{
	uint64_t small = 0, *to = find_number(opt, &a->o, &small);
	char *end;

	errno = 0;
	*to = strtoull(text, &end, 10);
	if (errno || end == text || *end || text[0] == '-')
		return usage();
	if (opt == 'C')
		a->o.clients = (unsigned)small;
	else if (opt == 'q')
		a->o.depth = (unsigned)small;
	else if (opt == 'f')
		a->o.faults = (unsigned)small;
	return 0;
}

static int parse(int argc, char **argv, struct args *a)
{
	struct fleet_opts *o = &a->o;
	int opt, rc = 0;

	while (!rc && (opt = getopt(argc, argv, "n:s:l:m:C:q:f:t:p:c:d:x:L:v")) != -1) {
		if (opt == 't')
			a->scheme = optarg;
		else if (opt == 'd')
			a->leatd = optarg;
		else if (opt == 'x')
			a->leat = optarg;
		else if (opt == 'L')
			o->log = optarg;
		else if (opt == 'v')
			o->verbose = true;
		else if (opt == '?')
			return usage();
		else
			rc = take(opt, optarg, a);
	}
	o->len_max = MIN(o->len_max, o->size_max);
	if (rc || argc - optind != 1 || !o->clients || o->clients > SHARED_CLIENTS_MAX || !o->depth || o->depth > FLEET_DEPTH_MAX ||
	    o->faults > 1000 || !o->size_max || o->size_max > TUMBLE_BYTES_MAX || !o->len_max || !o->check_every || !o->patience_ms ||
	    o->patience_ms > 60000 || (strcmp(a->scheme, "tcp") && strcmp(a->scheme, "local")))
		return usage();
	a->dir = argv[optind];
	o->relayed = !strcmp(a->scheme, "tcp");
	return 0;
}

static void tell(const struct args *a, const struct fleet_sum *s, uint64_t ns)
{
	uint64_t all = 0, lasted = 0;

	for (unsigned i = 0; i < SHARED_KINDS; i++)
		all += s->ops[i];
	for (unsigned i = 0; i < FLEET_FAULTS; i++)
		lasted += s->faults[i];
	printf("tumble: all was right: volume over %s, seed %" PRIu64 ": %" PRIu64 " results, %" PRIu64 " reads, %" PRIu64
	       " writes, %" PRIu64 " truncates, %" PRIu64 " names removed or replaced, %" PRIu64 " clients ended, %" PRIu64
	       " looks at all; %" PRIu64 " errors in %" PRIu64 " faults (%" PRIu64 " kills, %" PRIu64 " stops, %" PRIu64
	       " held up, %" PRIu64 " broken); %" PRIu64 " cuts completed later; %" PRIu64 " errors of a slow machine; %.1f s\n",
	       a->scheme, a->o.seed, all, s->ops[SHARED_READ], s->ops[SHARED_WRITE], s->ops[SHARED_TRUNCATE],
	       s->ops[SHARED_UNLINK] + s->ops[SHARED_RENAME], s->ops[SHARED_DIE], s->ops[SHARED_CHECK], s->errors, lasted,
	       s->faults[FLEET_KILL], s->faults[FLEET_STOP], s->faults[FLEET_HOLD], s->faults[FLEET_BREAK], s->incomplete, s->slow,
	       (double)ns / (double)NS_PER_S);
}

int fleet_main(int argc, char **argv)
{
	const char *leatd = getenv("LEATD");
	struct args a = { .o = { .seed = (uint64_t)time(NULL), .count = 10000, .size_max = 1 << 20, .len_max = 300000, .unit = 65536,
				 .check_every = 1000, .clients = 4, .files = 3, .servers = 4, .depth = 12, .faults = 10,
				 .patience_ms = 300, .hang_ms = 60000, .stop = &stopped },
			  .leatd = leatd ? leatd : "build/leatd", .scheme = "tcp" };
	const struct sigaction act = { .sa_handler = on_signal };
	uint64_t start = clock_now_ns();
	struct fleet_sum sum;
	struct fleet_back *b;
	char why[512];
	int rc = parse(argc, argv, &a);

	if (rc)
		return rc;
	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	rc = cluster_create(a.dir, a.leatd, a.scheme, &a.o, &b, why, sizeof(why));
	if (rc) {
		fprintf(stderr, "tumble: %s: %s\n", a.dir, why);
		return 3;
	}
	rc = fleet_run(b, &a.o, stdout, &sum);
	if (rc < 0)
		fprintf(stderr, "tumble: %s (%s)\n", strerror(-rc), b->ops->why(b, -1));
	if (!rc && a.leat && cluster_fsck(b, a.leat)) {
		printf("tumble: WRONG: leat volume fsck finds something, seed %" PRIu64 "\n", a.o.seed);
		rc = 1;
	}
	fflush(stdout);
	if (cluster_destroy(b) && !rc)
		rc = 1;
	if (!rc)
		tell(&a, &sum, clock_now_ns() - start);
	return rc < 0 ? 3 : rc;
}
