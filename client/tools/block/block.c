/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * block.c - leat block: lists and describes volumes, measures them, fences holders
 *
 * Operation:  Each verb connects, asks, and prints. Only bench and cp (block_cp.c) attach.
 * Memory:     None.
 * Threads:    One.
 * Errors:     Exit status 1 after a message.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"
#include "block_cmd.h"
#include "tool_volume.h"

/* ---- ls, info ---- */

static void print_access(const struct leat_block_info *info, const char *end)
{
	printf("%s, %s%s", info->rdonly ? "read-only" : "read and write", info->shared ? "shared" : "exclusive", end);
}

static void print_row(void *ctx, const struct leat_block_info *info)
{
	char size[16];

	(void)ctx;
	printf("%8s %6" PRIu32 " %4" PRIu32 "  ", tool_print_size(info->bytes, size), info->block, info->holders);
	tool_put_name(info->name);
	printf("  (");
	print_access(info, ")\n");
}

/* Lists the volume of the URL, or all volumes of the server. */
static int list_volumes(struct leat_block *b)
{
	struct leat_block_info info = { .size = sizeof(info) };
	int rc = leat_block_info(b, &info);

	if (rc == -EINVAL) /* the URL names none */
		return leat_block_list(b, print_row, NULL);
	if (!rc)
		print_row(NULL, &info);
	return rc;
}

static void print_holder(void *ctx, const struct leat_block_holder *h)
{
	time_t since = (time_t)MIN(h->since, (uint64_t)INT32_MAX);
	char when[32] = "?";
	struct tm tm;

	(void)ctx;
	if (gmtime_r(&since, &tm))
		(void)strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S UTC", &tm);
	printf("%-12s ", "holder");
	tool_put_name(h->name);
	printf(": ");
	tool_put_name(h->app);
	printf(" on ");
	tool_put_name(h->peer);
	printf(", since %s, ", when);
	if (h->conns)
		printf("%" PRIu32 " connection%s", h->conns, h->conns == 1 ? "" : "s");
	else
		printf("silent for %" PRIu32 " s", h->silent);
	printf("%s\n", h->rdonly ? ", to read" : "");
}

static int describe_volume(struct leat_block *b)
{
	struct leat_block_info info = { .size = sizeof(info) };
	int rc = leat_block_info(b, &info);
	char size[16];

	if (rc)
		return rc;
	printf("%-12s ", "volume");
	tool_put_name(info.name);
	printf("\n%-12s %" PRIu64 " (%s)\n", "size", info.bytes, tool_print_size(info.bytes, size));
	printf("%-12s %" PRIu32 ", best %" PRIu32 "\n", "block", info.block, info.preferred);
	printf("%-12s ", "access");
	print_access(&info, "\n");
	printf("%-12s %s\n", "discard", info.can_discard ? "yes" : "no");
	printf("%-12s %s\n", "zero", info.fast_zero ? "without writing" : "by writing");
	printf("%-12s %s\n", "extents", info.can_extents ? "yes" : "no");
	printf("%-12s %s\n", "attachments", info.durable ? "survive a restart of the server" : "end with the server");
	return leat_block_holders(b, print_holder, NULL);
}

/* Runs @fn on the volume of each URL, not attached. */
static int each_volume(const struct tool_cmd *self, int argc, char **argv, int (*fn)(struct leat_block *b))
{
	int worst = TOOL_OK;

	if (tool_options(self, argc, argv, NULL) < 0 || optind == argc)
		return tool_usage(self);
	for (int i = optind; i < argc && !tool_interrupted(); i++) {
		struct leat_block *b;
		int rc = volume_attach(NULL, argv[i], LEAT_BLOCK_LOOK, &b) ? TOOL_FAILED : TOOL_OK;

		if (rc == TOOL_OK) {
			rc = fn(b);
			rc = rc ? volume_fail(b, argv[i], rc) : TOOL_OK;
			(void)volume_detach(b);
		}
		worst = MAX(worst, rc);
	}
	return worst;
}

static int ls_run(const struct tool_cmd *self, int argc, char **argv)
{
	return each_volume(self, argc, argv, list_volumes);
}

static int info_run(const struct tool_cmd *self, int argc, char **argv)
{
	return each_volume(self, argc, argv, describe_volume);
}

/* ---- take-over ---- */

struct fence {
	char *holder;
};

static int take_over_run(const struct tool_cmd *self, int argc, char **argv)
{
	struct fence fence = { 0 };
	struct leat_block *b;
	const char *url;
	int rc;

	if (tool_options(self, argc, argv, &fence) < 0 || argc - optind != 1)
		return tool_usage(self);
	url = argv[optind];
	if (volume_attach(NULL, url, LEAT_BLOCK_LOOK, &b))
		return TOOL_FAILED;
	rc = leat_block_take_over(b, fence.holder ? fence.holder : "");
	rc = rc ? volume_fail(b, url, rc) : TOOL_OK;
	(void)volume_detach(b);
	free(fence.holder);
	return rc;
}

/* ---- the command ---- */

static const struct opt take_over_opts[] = {
	{ "holder", "NAME", NULL, "fence this holder; required if the volume is shared", NULL, OPT_TEXT, 0,
	  OPT_AT(struct fence, holder) },
};

static const struct tool_cmd cmd_block_bench = {
	"block bench", "{read|write|randread|randwrite|null} URL [OPTION]...", "throughput, latency, CPU and copies",
	bench_block_run, bench_block_opts, BENCH_BLOCK_OPTS, .mixed = true, .also = &cmd_block_cp,
};

static const struct tool_cmd cmd_block_take_over = {
	"block take-over", "[--holder NAME] URL", "ends the attachment of a holder, and lets nothing of it be executed",
	take_over_run, take_over_opts, ARRAY_SIZE(take_over_opts), .mixed = true, .also = &cmd_block_bench,
};

static const struct tool_cmd cmd_block_info = { "block info", "URL...", "describes volumes, with their holders",
						.run = info_run, .also = &cmd_block_take_over };
static const struct tool_cmd cmd_block_ls = { "block ls", "URL...",
					      "lists volumes: size, block size, holders, name", .run = ls_run,
					      .also = &cmd_block_info };

static int block_run(const struct tool_cmd *self, int argc, char **argv)
{
	const struct tool_cmd *verb = argc > 1 ? tool_verb(self, argv[1]) : NULL;

	if (verb)
		return verb->run(verb, argc - 1, argv + 1);
	if (argc > 1)
		log_err("%s: no such verb: ls, info, cp, bench and take-over are known", argv[1]);
	return tool_usage(self);
}

const struct tool_cmd cmd_block = {
	"block",
	"{ls|info} URL...\n"
	"       leat block cp [--overwrite] FROM TO\n"
	"       leat block bench {read|write|randread|randwrite|null} URL [OPTION]...\n"
	"       leat block take-over [--holder NAME] URL",
	"block volumes: list, describe, copy, measure, fence",
	.run = block_run,
	.also = &cmd_block_ls,
};
