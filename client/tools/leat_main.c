/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * leat_main.c - the leat command: finds and runs the subcommand
 *
 * Operation:  Each family of commands has its own file, which ends with its const table entries; this file
 *             lists them.
 * Memory:     None.
 * Threads:    One.
 * Errors:     Exit status 0; 1: failed, with a message; 2: wrong usage; 128 + signal (signals.h).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/std_fds.h"
#include "signals.h"
#include "tool.h"

LOG_DEFINE("leat");

static const struct tool_cmd *const commands[] = {
	&cmd_ping, &cmd_ls, &cmd_stat, &cmd_cat, &cmd_cp, &cmd_put, &cmd_get,
	&cmd_mkdir, &cmd_rm, &cmd_mv, &cmd_ln, &cmd_df, &cmd_bench,
	&cmd_block, &cmd_volume, &cmd_dump, &cmd_doctor, &cmd_ctl, &cmd_trace,
};

static const struct tool_cmd *find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		if (!strcmp(commands[i]->name, name))
			return commands[i];
	}
	return NULL;
}

static void help(FILE *to)
{
	fprintf(to, "usage: leat COMMAND ...\n");
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		fprintf(to, "  %-6s %s\n         %s\n", commands[i]->name, commands[i]->args,
			commands[i]->what);
	fprintf(to, "A URL is leat://HOST[:PORT]/EXPORT/PATH, tcp://..., rdma://... or\n"
		    "local:///SOCKET/EXPORT/PATH, with ?option=value&... behind it; see leat(1).\n");
}

static void help_about(const struct tool_cmd *cmd)
{
	printf("usage: leat %s %s\n%s\n", cmd->name, cmd->args, cmd->what);
	opt_help(stdout, cmd->opts, cmd->nopts, 2, false);
}

/* With @argc words behind the command. Of a command, its verbs are described, too. */
static void help_of(const struct tool_cmd *cmd, int argc, char **argv)
{
	const struct tool_cmd *verb = argc ? tool_verb(cmd, argv[0]) : NULL;

	if (verb) {
		help_about(verb);
		return;
	}
	for (; cmd; cmd = cmd->also)
		help_about(cmd);
}

/* Is --help among the options of a command line? Behind operands it may be an operand. */
static bool wants_help(const struct tool_cmd *cmd, int argc, char **argv)
{
	const struct tool_cmd *verb = argc ? tool_verb(cmd, argv[0]) : NULL;

	for (int i = verb ? 1 : 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
		if (!strcmp(argv[i], "--help"))
			return true;
		if (argv[i][0] != '-' && !(verb ? verb : cmd)->mixed)
			return false;
	}
	return false;
}

static int no_such(const char *name)
{
	log_err("no command '%s'; `leat help` names them", name);
	return TOOL_USAGE;
}

int main(int argc, char **argv)
{
	const struct tool_cmd *cmd;
	int rc;

	std_fds_fill();
	if (argc < 2) {
		help(stderr);
		return TOOL_USAGE;
	}
	if (!strcmp(argv[1], "help") || !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		cmd = argc > 2 ? find(argv[2]) : NULL;
		if (argc > 2 && !cmd)
			return no_such(argv[2]);
		if (cmd)
			help_of(cmd, argc - 3, argv + 3);
		else
			help(stdout);
		return TOOL_OK;
	}
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
		printf("leat %s\n", leat_version());
		return TOOL_OK;
	}
	cmd = find(argv[1]);
	if (!cmd)
		return no_such(argv[1]);
	if (wants_help(cmd, argc - 2, argv + 2)) {
		help_of(cmd, argc - 2, argv + 2);
		return TOOL_OK;
	}
	signals_init();
	rc = cmd->run(cmd, argc - 1, argv + 1);
	if (fflush(stdout) && errno != EPIPE) {
		log_err("standard output: %s", strerror(errno));
		rc = rc ? rc : TOOL_FAILED;
	}
	signals_end();
	return rc;
}
