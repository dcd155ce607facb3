/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * where.h - leat stat --latency: latency breakdown of a leatd's requests
 */
#ifndef LEAT_TOOL_WHERE_H
#define LEAT_TOOL_WHERE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/hist.h"
#include "leat_admin.h"

struct where_options {
	bool where; /* --latency was given */
	uint64_t interval_ms;
	unsigned count;
	bool json;
};

/** where_run - prints @o->count intervals, until ^C; Return: exit status */
int where_run(const char *url, const struct where_options *o);

/* The server's counters at one moment. */
struct where_sample {
	uint64_t at_ns;
	struct leat_where *where;
	uint64_t bytes_in, bytes_out, bytes_copied, submit_blocked;
};

/* The difference of two samples. */
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

/** where_is_same - are both samples from the same run of the server? Otherwise they have no difference. */
bool where_is_same(const struct where_sample *a, const struct where_sample *b);

/** where_between - the difference from @a to @b */
void where_between(const struct where_sample *a, const struct where_sample *b,
		   struct where_span *ret);

/* Bytes per second; 0: no bytes, or no measured time. */
struct where_rates {
	double achieved;   /* by one request, from its arrival to its end */
	double disk, net;  /* while disk or network was busy */
	double efficiency; /* achieved as a fraction of the lesser of disk and net; 0 without both */
};

/** where_rates - computes the rates of the requests of a kind */
struct where_rates where_rates(const struct leat_where_kind *k);

#define WHERE_BAR_COLUMNS 50

/** where_bar - the parts of @k as WHERE_BAR_COLUMNS letters; Return: @buf */
char *where_bar(const struct leat_where_kind *k, char buf[WHERE_BAR_COLUMNS + 1]);

/** where_print, where_print_json - print a span as text, as JSON */
void where_print(FILE *to, const struct where_span *s);
void where_print_json(FILE *to, const struct where_span *s);

#endif
