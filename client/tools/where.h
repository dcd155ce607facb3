/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * where.h - leat stat --where: where the time of a leatd's requests goes
 */
#ifndef LEAT_TOOL_WHERE_H
#define LEAT_TOOL_WHERE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/hist.h"
#include "leat.h"

struct where_options {
	uint64_t interval_ms;
	unsigned count;
	bool json;
};

/* For getopt_long(), in a table of options */
#define WHERE_OPTIONS                                                                              \
	{ "interval", required_argument, NULL, 'i' }, { "count", required_argument, NULL, 'n' },   \
	{ "json", no_argument, NULL, 'j' }

/** where_option - one of these; Return: false: it is none, or cannot be, which has been told */
bool where_option(struct where_options *o, int opt, const char *value);

/** where_run - print @o->count intervals, until ^C; Return: exit status */
int where_run(const char *url, const struct where_options *o);

/* What a server had counted at one moment. */
struct where_sample {
	uint64_t at_ns;
	struct leat_where *where;
	uint64_t bytes_in, bytes_out, bytes_copied, submit_blocked;
};

/* What it did between two. */
struct where_span {
	double seconds;
	uint64_t bytes_in, bytes_out, bytes_copied, submit_blocked;
	struct leat_where_kind read, write;
	unsigned nstates;
	struct where_state {
		char name[32];
		struct hist times;
	} states[8];
};

/** where_is_same - were both of the same run of the server? Otherwise nothing can be said. */
bool where_is_same(const struct where_sample *a, const struct where_sample *b);

/** where_between - what was counted after @a and not after @b */
void where_between(const struct where_sample *a, const struct where_sample *b,
		   struct where_span *ret);

/* Bytes per second; 0: nothing moved, or in no time that was taken. */
struct where_rates {
	double achieved;   /* by one request, from its arrival to its end */
	double disk, net;  /* while that was at work */
	double efficiency; /* achieved, as part of the lesser of these two; 0 without both */
};

/** where_rates - of the requests of a kind */
struct where_rates where_rates(const struct leat_where_kind *k);

#define WHERE_BAR_COLUMNS 50

/** where_bar - the parts of @k as WHERE_BAR_COLUMNS letters; Return: @buf */
char *where_bar(const struct leat_where_kind *k, char buf[WHERE_BAR_COLUMNS + 1]);

/** where_print, where_print_json - the whole */
void where_print(FILE *to, const struct where_span *s);
void where_print_json(FILE *to, const struct where_span *s);

#endif
