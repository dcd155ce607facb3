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

#define TIMEOUT_MS 10000u
#define LOOK_MS 10u /* polling interval */
#define COUNT_MAX 1000000u

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

static bool parse(struct trace_options *o, int argc, char **argv)
{
	static const struct option options[] = {
		{ "count", required_argument, NULL, 'n' },
		{ "timeout", required_argument, NULL, 't' },
		{ 0 },
	};
	int opt;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt == 'n' && !tool_parse_count(optarg, 1, COUNT_MAX, &o->count)) {
			log_err("--count %s: a number from 1 to %u is wanted", optarg, COUNT_MAX);
			return false;
		}
		if (opt == 't' && !tool_parse_seconds(optarg, &o->timeout_ms)) {
			log_err("--timeout %s: seconds are wanted, from 0.001 to 86400", optarg);
			return false;
		}
		if (opt != 'n' && opt != 't')
			return false; /* getopt has printed a message */
	}
	if (argc - optind != 2)
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
	struct trace_options o = { .timeout_ms = TIMEOUT_MS, .count = 1 };
	int rc;

	if (!parse(&o, argc, argv))
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

const struct tool_cmd cmd_trace = { "trace", "pieces URL [--count N] [--timeout SECONDS]",
				    "a request in pieces: when disk and network had each of them",
				    trace_run };
