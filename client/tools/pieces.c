/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * pieces.c - leat trace pieces: has a leatd record one request, piece by piece
 *
 * Operation:  The server may hold the record of an earlier request, which is discarded. Fetching the
 *             record starts the next one. The client polls until it is available.
 * Memory:     One trace.
 * Threads:    One.
 * Errors:     Status 1 if the server cannot be asked, or no such request comes in time; the message then
 *             says which requests are split into pieces.
 */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "tool.h"
#include "pieces.h"

#define LOOK_MS 10u /* polling interval */

struct trace_options {
	const char *url;
	uint64_t timeout_ms;
	unsigned count;
	bool none_came; /* no request before the timeout */
};

static int throw_away(struct leat *m)
{
	struct leat_trace *t;
	int rc = leat_server_pieces(m, &t);

	if (!rc)
		leat_trace_free(t);
	return rc == -EAGAIN ? 0 : rc;
}

/* Return: 0, -ETIMEDOUT, -EINTR, or the error of the query */
static int await(struct leat *m, uint64_t timeout_ms, struct leat_trace **ret)
{
	uint64_t until = clock_now_ns() + timeout_ms * NS_PER_MS;
	int rc;

	while (rc = leat_server_pieces(m, ret), rc == -EAGAIN) {
		if (tool_interrupted())
			return -EINTR;
		if (clock_now_ns() >= until)
			return -ETIMEDOUT;
		tool_sleep(MIN(LOOK_MS, timeout_ms));
	}
	return rc;
}

static int trace_all(struct leat *m, void *ctx)
{
	struct trace_options *o = ctx;
	struct leat_trace *t;
	int rc = throw_away(m);

	for (unsigned i = 0; !rc && i < o->count; i++) {
		rc = await(m, o->timeout_ms, &t);
		if (rc)
			break;
		if (i)
			putchar('\n');
		rc = trace_print(stdout, t);
		fflush(stdout);
		leat_trace_free(t);
	}
	return rc;
}

/* A timeout is not an error of the server. */
static int trace_ask(struct leat *m, void *ctx)
{
	struct trace_options *o = ctx;
	int rc = trace_all(m, ctx);

	if (rc == -EINTR)
		return 0;
	if (rc == -ETIMEDOUT && !*leat_error(m)) {
		o->none_came = true;
		return 0;
	}
	return rc;
}

static bool parse(const struct tool_cmd *self, struct trace_options *o, int argc, char **argv)
{
	if (tool_options(self, argc, argv, o) < 0 || argc - optind != 2)
		return false;
	if (strcmp(argv[optind], "pieces") != 0) {
		log_err("%s: nothing that can be traced: pieces can", argv[optind]);
		return false;
	}
	o->url = argv[optind + 1];
	return true;
}

static int trace_run(const struct tool_cmd *self, int argc, char **argv)
{
	struct trace_options o = { 0 };
	int rc;

	if (!parse(self, &o, argc, argv))
		return tool_usage(self);
	rc = tool_ask(o.url, trace_ask, &o);
	if (rc == TOOL_OK && o.none_came) {
		log_err("%s: no request in pieces came within %.3g s: it takes an export with overlap=streams "
			"(or ordered), a READ or WRITE longer than its grain, and not TCP",
			o.url, (double)o.timeout_ms / 1000);
		rc = TOOL_FAILED;
	}
	return rc;
}

#define AT(member) OPT_AT(struct trace_options, member)

static const struct opt opts[] = {
	{ "count", "N", "1", "number of requests", NULL, OPT_NUMBER, 0, AT(count), .min = 1, .max = 1000000 },
	{ "timeout", "TIME", "10s", "how long to wait for each", NULL, OPT_TIME, 0, AT(timeout_ms), .min = 1,
	  .max = 86400000, .unit = NS_PER_MS, .bare = NS_PER_S },
};

const struct tool_cmd cmd_trace = { "trace", "pieces URL [--count N] [--timeout TIME]",
				    "a request in pieces: when disk and network had each of them", trace_run, opts,
				    ARRAY_SIZE(opts), .mixed = true };
