/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * set_cmd.c - leat volume set: the layout of new files
 *
 * Operation:  Of a directory it changes the defaults. A file that does not exist is created. One that exists keeps its layout,
 *             which its objects have.
 * Memory:     None.
 * Threads:    One.
 * Errors:     Exit status 1 after a message.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "leat_volume.h"
#include "tool.h"
#include "volume_cmd.h"

#define MODE_FILE 0666u
#define STRIPE_MIN (64u << 10)

struct setting {
	uint32_t stripe, width; /* LEAT_VOLUME_SAME: not given */
};

/* The manager refuses a width with the others; @t: its mount. Return: exit status */
static int explain(struct tool_target *t, const struct setting *s, const char *path, int err)
{
	struct leat_volume_map *map;
	size_t servers;

	if (err != -EINVAL || s->width == LEAT_VOLUME_SAME || leat_volume_map(t->m, &map))
		return tool_fail(t->m, path, err);
	servers = map->nservers;
	leat_volume_map_free(map);
	if (s->width <= servers)
		return tool_fail(t->m, path, err);
	log_err("%s: width %" PRIu32 ": the volume has %zu server%s", t->arg, s->width, servers, tool_plural(servers));
	return TOOL_FAILED;
}

static int set_directory(struct tool_target *t, const struct setting *s)
{
	const struct leat_volume_defaults d = { .size = sizeof(d), .stripe = s->stripe, .width = s->width };
	int rc = leat_volume_set_defaults(t->m, t->path, &d);

	return rc ? explain(t, s, t->path, rc) : TOOL_OK;
}

static int create_file(struct tool_target *t, const struct setting *s)
{
	const struct leat_volume_defaults d = { .size = sizeof(d), .stripe = s->stripe == LEAT_VOLUME_SAME ? 0 : s->stripe,
						.width = s->width == LEAT_VOLUME_SAME ? 0 : s->width };
	mode_t mask = umask(0);
	int rc;

	(void)umask(mask);
	rc = leat_volume_create_file(t->m, t->path, MODE_FILE & ~mask, &d);
	return rc ? explain(t, s, t->path, rc) : TOOL_OK;
}

static int set_one(struct tool_target *t, void *ctx)
{
	const struct setting *s = ctx;
	struct stat st;
	int rc = leat_stat(t->m, t->path, &st);

	if (rc == -ENOENT)
		return create_file(t, s);
	if (rc)
		return tool_fail(t->m, t->path, rc);
	if (S_ISDIR(st.st_mode))
		return set_directory(t, s);
	log_err("%s: it exists, and keeps its layout: create a new file, and copy", t->arg);
	return TOOL_FAILED;
}

static int set_run(const struct tool_cmd *self, int argc, char **argv)
{
	struct setting s = { LEAT_VOLUME_SAME, LEAT_VOLUME_SAME };

	if (tool_options(self, argc, argv, &s) < 0 || optind == argc ||
	    (s.stripe == LEAT_VOLUME_SAME && s.width == LEAT_VOLUME_SAME))
		return tool_usage(self);
	if (s.stripe != LEAT_VOLUME_SAME && (s.stripe & (s.stripe - 1) || (s.stripe && s.stripe < STRIPE_MIN))) {
		log_err("stripe %" PRIu32 ": must be a power of two from 64K to 16M, or 0", s.stripe);
		return TOOL_FAILED;
	}
	return tool_each(argc - optind, argv + optind, set_one, &s);
}

static const struct opt set_opts[] = {
	{ "stripe", "SIZE", NULL, "stripe unit, a power of two from 64K to 16M; 0: as the volume says", NULL, OPT_SIZE, 0,
	  OPT_AT(struct setting, stripe), .min = 0, .max = 16 << 20 },
	{ "width", "N", NULL, "stripes, up to the number of servers; 0: as the volume says", NULL, OPT_NUMBER, 0,
	  OPT_AT(struct setting, width), .min = 0, .max = 256 },
};

const struct tool_cmd cmd_volume_set = {
	"volume set", "[--stripe SIZE] [--width N] URL...", "says how new files of a directory are striped, or creates a file that is",
	set_run, set_opts, ARRAY_SIZE(set_opts), .mixed = true, .also = &cmd_volume_add_server,
};
