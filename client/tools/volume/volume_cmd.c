/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume_cmd.c - leat volume: its verbs, and create
 *
 * Operation:  The library creates a volume; this prints what it has written.
 * Memory:     None.
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

#define SERVERS_MAX 256u

/* ---- create ---------------------------------------------------------------------------------- */

struct creation {
	char *servers, *name, *listen, *clients;
	uint32_t stripe, width;
};

/* Splits @text, which is changed, at its commas. Return: the number of parts; SERVERS_MAX + 1: there are more */
static size_t split(char *text, const char *ret[SERVERS_MAX])
{
	size_t n = 0;

	for (char *part = strtok_r(text, ",", &text); part; part = strtok_r(NULL, ",", &text)) {
		if (n == SERVERS_MAX)
			return SERVERS_MAX + 1;
		ret[n++] = part;
	}
	return n;
}

/* Copies a configuration to stdout, behind a line that names it. */
static int print_conf(const char *dir, const char *name)
{
	char path[TOOL_PATH_MAX], line[TOOL_PATH_MAX];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "re");
	if (!f) {
		log_err("%s: %s", path, strerror(errno));
		return TOOL_FAILED;
	}
	printf("# leatd --config %s\n", path);
	while (fgets(line, sizeof(line), f))
		fputs(line, stdout);
	putchar('\n');
	fclose(f);
	return TOOL_OK;
}

static int print_confs(const char *dir, size_t servers)
{
	int rc = print_conf(dir, "manager.conf");

	for (size_t i = 1; i <= servers && rc == TOOL_OK; i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "server-%zu.conf", i);
		rc = print_conf(dir, name);
	}
	return rc;
}

static int create_volume(const char *dir, struct creation *c)
{
	const char *urls[SERVERS_MAX];
	struct leat_volume_plan plan = { .size = sizeof(plan), .servers = urls, .listen = c->listen, .clients = c->clients,
					 .stripe = c->stripe, .width = c->width };
	char base[256], why[VOLUME_WHY_BYTES] = "";

	plan.nservers = split(c->servers, urls);
	plan.name = c->name ? c->name : tool_base_name(dir, base, sizeof(base));
	if (leat_volume_create(dir, &plan, NULL, why, sizeof(why))) {
		log_err("%s", why);
		return TOOL_FAILED;
	}
	return print_confs(dir, plan.nservers);
}

static int create_run(const struct tool_cmd *self, int argc, char **argv)
{
	struct creation c = { 0 };
	int rc = TOOL_USAGE;

	if (tool_options(self, argc, argv, &c) < 0 || argc - optind != 1)
		rc = tool_usage(self);
	else if (!c.servers)
		log_err("say where the stripe servers listen: --servers URL,URL...");
	else
		rc = create_volume(argv[optind], &c);
	free(c.servers);
	free(c.name);
	free(c.listen);
	free(c.clients);
	return rc;
}

/* ---- the command ----------------------------------------------------------------------------- */

static const struct opt create_opts[] = {
	{ "servers", "URL,URL...", NULL, "where the stripe servers listen; at least one", NULL, OPT_TEXT, 0,
	  OPT_AT(struct creation, servers) },
	{ "name", "NAME", NULL, "of the volume; by default that of DIR", NULL, OPT_TEXT, 0, OPT_AT(struct creation, name) },
	{ "listen", "URL", NULL, "where the manager listens; by default local://DIR/sock", NULL, OPT_TEXT, 0,
	  OPT_AT(struct creation, listen) },
	{ "clients", "LIST", NULL, "clients that may use it, as in leatd.conf; needed over a network", NULL, OPT_TEXT, 0,
	  OPT_AT(struct creation, clients) },
	{ "stripe", "SIZE", NULL, "stripe unit of new files, a power of two; leatd's default is 1M", NULL, OPT_SIZE, 0,
	  OPT_AT(struct creation, stripe), .min = 64 << 10, .max = 16 << 20 },
	{ "width", "N", NULL, "stripes of new files; by default as many as there are servers", NULL, OPT_NUMBER, 0,
	  OPT_AT(struct creation, width), .min = 1, .max = SERVERS_MAX },
};

static const struct tool_cmd cmd_volume_create = {
	"volume create", "--servers URL,URL... [OPTION]... DIR", "creates key, map and directories of a volume, and prints configurations",
	create_run, create_opts, ARRAY_SIZE(create_opts), .mixed = true, .also = &cmd_volume_status,
};

static int volume_run(const struct tool_cmd *self, int argc, char **argv)
{
	const struct tool_cmd *verb = argc > 1 ? tool_verb(self, argv[1]) : NULL;

	if (verb)
		return verb->run(verb, argc - 1, argv + 1);
	if (argc > 1)
		log_err("%s: no such verb: create, status, df, show, set, add-server, set-url, set-state, fsck and assemble are known", argv[1]);
	return tool_usage(self);
}

const struct tool_cmd cmd_volume = {
	"volume",
	"create --servers URL,URL... [OPTION]... DIR\n"
	"       leat volume status --key FILE [--map FILE] [URL]\n"
	"       leat volume df --key FILE [--map FILE] [URL]\n"
	"       leat volume show [--offset BYTE] URL...\n"
	"       leat volume set [--stripe SIZE] [--width N] URL...\n"
	"       leat volume add-server --map FILE URL\n"
	"       leat volume set-url --map FILE SERVER URL\n"
	"       leat volume set-state --map FILE SERVER full|out\n"
	"       leat volume fsck --key FILE [--repair] {URL | --resign DIR}\n"
	"       leat volume assemble --to FILE URL DIR...",
	"striped volumes: create, ask the stripe servers, show where files lie, change the map",
	.run = volume_run,
	.also = &cmd_volume_create,
};
