/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * assemble_cmd.c - leat volume assemble: puts a file together from directories of stripes
 *
 * Operation:  The manager says where the file lies; the library reads the directories.
 * Memory:     Map and layout.
 * Threads:    One.
 * Errors:     Exit status 1 after a message.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "leat_volume.h"
#include "tool.h"
#include "volume_cmd.h"

struct assembling {
	char *to;
};

static int assemble_file(struct tool_target *t, const char *to, const char *const *dirs, size_t ndirs)
{
	struct leat_volume_layout *l = NULL;
	struct leat_volume_map *map = NULL;
	char why[VOLUME_WHY_BYTES] = "";
	int rc = leat_volume_layout(t->m, t->path, &l);

	if (!rc)
		rc = leat_volume_map(t->m, &map);
	if (rc) {
		rc = tool_fail(t->m, t->path, rc);
	} else if (leat_volume_assemble(l, map->volume, dirs, ndirs, to, why, sizeof(why))) {
		log_err("%s", why);
		rc = TOOL_FAILED;
	}
	leat_volume_layout_free(l);
	leat_volume_map_free(map);
	return rc;
}

static int assemble_run(const struct tool_cmd *self, int argc, char **argv)
{
	struct assembling a = { 0 };
	struct tool_target t = { 0 };
	int rc = tool_options(self, argc, argv, &a);

	if (rc < 0 || argc - optind < 2 || !a.to) {
		rc = tool_usage(self);
	} else {
		rc = TOOL_FAILED;
		if (!tool_attach(argv[optind], &t))
			rc = assemble_file(&t, a.to, (const char *const *)argv + optind + 1, (size_t)(argc - optind - 1));
		tool_detach(&t);
	}
	free(a.to);
	return rc;
}

static const struct opt assemble_opts[] = {
	{ "to", "FILE", NULL, "the new file, on this machine", NULL, OPT_TEXT, 0, OPT_AT(struct assembling, to) },
};

const struct tool_cmd cmd_volume_assemble = {
	"volume assemble", "--to FILE URL DIR...", "puts a file together from directories of stripes", assemble_run, assemble_opts,
	ARRAY_SIZE(assemble_opts), .mixed = true,
};
