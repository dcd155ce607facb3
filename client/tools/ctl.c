/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * ctl.c - leat ctl: queries and commands a leatd
 *
 * Operation:  Connects without a mount and sends one request.
 * Memory:     None.
 * Threads:    One.
 * Errors:     Status 1 if the server cannot be reached or refuses; the server's message is printed.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "leat_admin.h"
#include "tool.h"

static void print_counter(void *ctx, const char *name, uint64_t value)
{
	(void)ctx;
	printf("%-20s %" PRIu64 "\n", name, value);
}

static int ctl_stats(struct leat *m)
{
	return leat_server_counters(m, print_counter, NULL);
}

static void print_listener(void *ctx, const char *url)
{
	(void)ctx;
	printf("%-12s %s\n", "listens on", url);
}

static int ctl_info(struct leat *m)
{
	struct leat_info info = { .size = sizeof(info) };
	char server[64];

	leat_info(m, &info);
	(void)leat_describe(m, LEAT_TEXT_SERVER, 0, server, sizeof(server));
	if (info.is_leatd)
		printf("%-12s %s\n", "server", server);
	return leat_server_listeners(m, print_listener, NULL);
}

static int ctl_reload(struct leat *m)
{
	char said[512] = "";
	int rc = leat_server_reload(m, said, sizeof(said));

	if (!rc)
		printf("reloaded: %s\n", said);
	return rc;
}

static const struct verb {
	const char *name;
	int (*run)(struct leat *m); /* Return: 0, -errno */
} verbs[] = {
	{ "info", ctl_info },
	{ "stats", ctl_stats },
	{ "reload", ctl_reload },
	{ "drain", leat_server_drain },
};

static const struct verb *find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
		if (!strcmp(verbs[i].name, name))
			return &verbs[i];
	}
	return NULL;
}

static int run_verb(struct leat *m, void *ctx)
{
	const struct verb *verb = ctx;

	return verb->run(m);
}

static int ctl_run(const struct tool_cmd *self, int argc, char **argv)
{
	const struct verb *verb;

	if (argc != 3)
		return tool_usage(self);
	verb = find(argv[1]);
	if (!verb) {
		log_err("%s: no such verb: info, stats, reload and drain are known", argv[1]);
		return tool_usage(self);
	}
	return tool_ask(argv[2], run_verb, (void *)(uintptr_t)verb);
}

const struct tool_cmd cmd_ctl = { "ctl", "{info|stats|reload|drain} URL",
				  "what a leatd says of itself; have it read its configuration, or end",
				  .run = ctl_run };
