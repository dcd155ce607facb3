/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * map_cmd.c - leat volume add-server, set-url, set-state: change the map of a volume
 *
 * Operation:  The library replaces the file of the map. The manager reads it when it reloads.
 * Memory:     None.
 * Threads:    One.
 * Errors:     Exit status 1 after a message.
 */
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "leat_volume.h"
#include "tool.h"
#include "volume_cmd.h"

struct changing {
	char *map; /* file */
};

/* What its leatd needs, beside what `leat volume create` has made: the directory of the map. */
static void print_new(const char *file, uint32_t id, const char *url)
{
	static const char scheme[] = "leat://";
	bool any = !strncmp(url, scheme, strlen(scheme)), is_local = !strncmp(url, "local://", 8);
	char dir[PATH_MAX];
	const char *slash, *name;

	if (!realpath(file, dir))
		return;
	slash = strrchr(dir, '/');
	dir[slash - dir] = '\0';
	slash = strrchr(dir, '/');
	name = slash && slash[1] ? slash + 1 : "new";
	printf("\n# server %" PRIu32 "; before it starts: mkdir -m 700 %s/stripes-%" PRIu32 "\n", id, dir, id);
	if (!is_local)
		printf("# It needs the key (mode 0600) and that directory on its own machine.\n");
	printf("[server]\nlisten = %s%s\n\n[stripes %s]\npath = %s/stripes-%" PRIu32 "\nkey = %s/key\nid = %" PRIu32 "\n",
	       any ? "tcp://" : "", any ? url + strlen(scheme) : url, name, dir, id, dir, id);
	if (!is_local)
		printf("# clients = as the other servers have\n");
	printf("\nStart its leatd, then: leat ctl reload URL of the manager\n");
}

static int make_change(const char *file, const struct leat_volume_change *c)
{
	char why[VOLUME_WHY_BYTES] = "";
	uint32_t id;

	if (leat_volume_map_change(file, c, &id, why, sizeof(why))) {
		log_err("%s", why);
		return TOOL_FAILED;
	}
	printf("server %" PRIu32 ": the map is changed; the manager reads it when it reloads\n", id);
	if (!c->server)
		print_new(file, id, c->url);
	return TOOL_OK;
}

/* Return: false: not a number of a server */
static bool parse_id(const char *text, uint32_t *ret)
{
	char *end;
	unsigned long v;

	errno = 0;
	v = strtoul(text, &end, 10);
	if (errno || *end || *text < '1' || *text > '9' || v > UINT32_MAX)
		return false;
	*ret = (uint32_t)v;
	return true;
}

/* Runs a verb with @words operands, which parse() puts into the change. */
static int change_run(const struct tool_cmd *self, int argc, char **argv, int words,
		      bool (*parse)(char **words, struct leat_volume_change *c))
{
	struct leat_volume_change c = { .size = sizeof(c) };
	struct changing of = { 0 };
	int rc = tool_options(self, argc, argv, &of);

	if (rc < 0 || argc - optind != words || !of.map || !parse(argv + optind, &c))
		rc = tool_usage(self);
	else
		rc = make_change(of.map, &c);
	free(of.map);
	return rc;
}

static bool parse_new(char **words, struct leat_volume_change *c)
{
	c->url = words[0];
	return true;
}

static int add_server_run(const struct tool_cmd *self, int argc, char **argv)
{
	return change_run(self, argc, argv, 1, parse_new);
}

static bool parse_url(char **words, struct leat_volume_change *c)
{
	c->url = words[1];
	return parse_id(words[0], &c->server);
}

static int set_url_run(const struct tool_cmd *self, int argc, char **argv)
{
	return change_run(self, argc, argv, 2, parse_url);
}

static bool parse_state(char **words, struct leat_volume_change *c)
{
	c->state = !strcmp(words[1], "full") ? LEAT_VOLUME_FULL : !strcmp(words[1], "out") ? LEAT_VOLUME_OUT : LEAT_VOLUME_KEEP;
	return c->state != LEAT_VOLUME_KEEP && parse_id(words[0], &c->server);
}

static int set_state_run(const struct tool_cmd *self, int argc, char **argv)
{
	return change_run(self, argc, argv, 2, parse_state);
}

static const struct opt change_opts[] = {
	{ "map", "FILE", NULL, "the map of the volume", NULL, OPT_TEXT, 0, OPT_AT(struct changing, map) },
};

static const struct tool_cmd cmd_set_state = {
	"volume set-state", "--map FILE SERVER full|out", "says whether new files get stripes on a server", set_state_run, change_opts,
	ARRAY_SIZE(change_opts), .mixed = true, .also = &cmd_volume_fsck,
};

static const struct tool_cmd cmd_set_url = {
	"volume set-url", "--map FILE SERVER URL", "says where a stripe server listens now", set_url_run, change_opts,
	ARRAY_SIZE(change_opts), .mixed = true, .also = &cmd_set_state,
};

const struct tool_cmd cmd_volume_add_server = {
	"volume add-server", "--map FILE URL", "adds a stripe server, which new files use", add_server_run, change_opts,
	ARRAY_SIZE(change_opts), .mixed = true, .also = &cmd_set_url,
};
