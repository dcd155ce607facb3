/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * show_cmd.c - leat volume show: where the bytes of a file lie, and what a directory says of new files
 *
 * Operation:  Asks the manager for the map and the layout, or for the defaults of a directory.
 * Memory:     Both.
 * Threads:    One.
 * Errors:     Exit status 1 after a message.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "leat_volume.h"
#include "tool.h"
#include "volume_cmd.h"

#define NO_OFFSET UINT64_MAX

struct showing {
	uint64_t offset; /* NO_OFFSET: the whole layout */
	const struct leat_volume_map *map;
	const struct leat_volume_layout *l;
};

static void put_url(const struct leat_volume_map *m, uint32_t id)
{
	for (size_t i = 0; i < m->nservers; i++) {
		if (m->servers[i]->id == id) {
			tool_put_name(m->servers[i]->url);
			return;
		}
	}
	printf("not in the map");
}

static void print_layout(const struct showing *s, const char *arg)
{
	const struct leat_volume_layout *l = s->l;
	char object[2 * sizeof(l->object) + 1];

	text_put_hex(l->object, sizeof(l->object), object);
	tool_put_name(arg);
	printf(": %" PRIu64 " bytes, epoch %" PRIu64 ", object %s\n", l->bytes, l->epoch, object);
	printf("%zu stripe%s of units of %" PRIu32 " bytes\nstripe server      bytes  URL\n", l->nstripes,
	       l->nstripes == 1 ? "" : "s", l->stripe);
	for (size_t i = 0; i < l->nstripes; i++) {
		printf("%6zu %6" PRIu32 " %10" PRIu64 "  ", i, l->stripes[i]->server, l->stripes[i]->bytes);
		put_url(s->map, l->stripes[i]->server);
		putchar('\n');
	}
}

static int print_place(const struct showing *s, const char *arg)
{
	struct leat_volume_place place = { .size = sizeof(place) };
	char object[2 * sizeof(s->l->object) + 1];

	if (leat_volume_find(s->l, s->offset, &place)) {
		log_err("%s: no file is that long", arg);
		return TOOL_FAILED;
	}
	printf("byte %" PRIu64 ": server %" PRIu32 ", ", s->offset, place.server);
	put_url(s->map, place.server);
	text_put_hex(s->l->object, sizeof(s->l->object), object);
	printf(", byte %" PRIu64 " of objects/%.2s/%s.%" PRIu32 "; %" PRIu64 " bytes to the end of the unit\n", place.off, object,
	       object, place.stripe, place.run);
	return TOOL_OK;
}

static void put_default(const char *what, uint32_t value, uint32_t volume)
{
	if (value)
		printf("%s %" PRIu32 "\n", what, value);
	else
		printf("%s %" PRIu32 ", as the volume says\n", what, volume);
}

static int show_directory(struct tool_target *t)
{
	struct leat_volume_defaults d = { .size = sizeof(d) };
	struct leat_volume_map *map = NULL;
	int rc = leat_volume_defaults(t->m, t->path, &d);

	if (!rc)
		rc = leat_volume_map(t->m, &map);
	if (rc)
		return tool_fail(t->m, t->path, rc);
	tool_put_name(t->arg);
	printf(": a directory; of new files:\n");
	put_default("stripe", d.stripe, map->stripe);
	put_default("width", d.width, map->width);
	leat_volume_map_free(map);
	return TOOL_OK;
}

static int show_file(struct tool_target *t, struct showing *s)
{
	struct leat_volume_layout *l = NULL;
	struct leat_volume_map *map = NULL;
	int rc = leat_volume_layout(t->m, t->path, &l);

	if (!rc)
		rc = leat_volume_map(t->m, &map);
	if (rc) {
		rc = tool_fail(t->m, t->path, rc);
	} else {
		s->l = l;
		s->map = map;
		if (s->offset == NO_OFFSET)
			print_layout(s, t->arg);
		else
			rc = print_place(s, t->arg);
	}
	leat_volume_layout_free(l);
	leat_volume_map_free(map);
	return rc;
}

static int show_one(struct tool_target *t, void *ctx)
{
	struct showing *s = ctx;
	struct stat st;

	if (s->offset == NO_OFFSET && !leat_stat(t->m, t->path, &st) && S_ISDIR(st.st_mode))
		return show_directory(t);
	return show_file(t, s);
}

static int show_run(const struct tool_cmd *self, int argc, char **argv)
{
	struct showing s = { .offset = NO_OFFSET };

	if (tool_options(self, argc, argv, &s) < 0 || optind == argc)
		return tool_usage(self);
	return tool_each(argc - optind, argv + optind, show_one, &s);
}

static const struct opt show_opts[] = {
	{ "offset", "BYTE", NULL, "where this byte of the file lies", NULL, OPT_SIZE, 0, OPT_AT(struct showing, offset),
	  .max = INT64_MAX },
};

const struct tool_cmd cmd_volume_show = {
	"volume show", "[--offset BYTE] URL...", "shows on which servers the bytes of files lie, and how new files are striped", show_run, show_opts,
	ARRAY_SIZE(show_opts), .mixed = true, .also = &cmd_volume_set,
};
