/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * where.c - leat stat --latency: latency breakdown of a leatd between two samples
 *
 * Operation:  The server keeps sums since its start; the output (where_print.c) is the difference between
 *             two samples. ^C ends an interval early, and it is printed.
 * Memory:     Two samples.
 * Threads:    One.
 * Errors:     Status 1 if the server cannot be asked. If it was restarted in between, a message replaces
 *             the interval.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "signals.h"
#include "tool.h"
#include "where.h"

static void take_counter(void *ctx, const char *name, uint64_t value)
{
	struct where_sample *s = ctx;
	const struct {
		const char *name;
		uint64_t *to;
	} known[] = {
		{ "bytes_in", &s->bytes_in },
		{ "bytes_out", &s->bytes_out },
		{ "bytes_copied", &s->bytes_copied },
		{ "submit_blocked", &s->submit_blocked },
	};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		if (!strcmp(name, known[i].name))
			*known[i].to = value;
	}
}

static int take(struct leat *m, struct where_sample *ret)
{
	struct where_sample s = { .at_ns = clock_now_ns() };
	int rc = leat_server_counters(m, take_counter, &s);

	if (!rc)
		rc = leat_server_where(m, &s.where);
	if (!rc)
		*ret = s;
	return rc;
}

static void print(const struct where_options *o, const struct where_sample *a,
		  const struct where_sample *b, struct where_span *span)
{
	if (!where_is_same(a, b)) {
		log_warn("the server was started again meanwhile: its sums start at zero");
		return;
	}
	where_between(a, b, span);
	(o->json ? where_print_json : where_print)(stdout, span);
	fflush(stdout);
}

static int look(struct leat *m, void *ctx)
{
	const struct where_options *o = ctx;
	struct where_span *span = malloc(sizeof(*span));
	struct where_sample a = { 0 }, b;
	int rc;

	(void)signals_hold(); /* an interval that is cut short is printed */
	rc = span ? take(m, &a) : -ENOMEM;
	for (unsigned i = 0; !rc && i < o->count; i++) {
		if (i && tool_interrupted())
			break;
		tool_sleep(o->interval_ms);
		rc = TOOL_AGAIN(take(m, &b));
		if (rc)
			break;
		if (i && !o->json)
			putchar('\n');
		print(o, &a, &b, span);
		leat_where_free(a.where);
		a = b;
	}
	leat_where_free(a.where);
	free(span);
	if (tool_is_interruption(rc))
		log_err("interrupted before the server has replied");
	signals_release();
	return rc;
}

int where_run(const char *url, const struct where_options *o)
{
	struct where_options copy = *o;

	return tool_ask(url, look, &copy);
}
