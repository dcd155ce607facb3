/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_man_options.c - the man pages describe each option, with the range and the default of its declaration
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/opt.h"
#include "client/tools/tool.h"
#include "conf_int.h"
#include "opts.h"
#include "store_spec.h"

LOG_DEFINE("test_man_options");

#define ITEM "\001"

static char page[1 << 17];

/* Reads a page as one line. Items begin with ITEM. */
static void read_page(const char *name)
{
	char line[512], path[128];
	size_t n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "doc/man/%s", name);
	f = fopen(path, "re");
	if (!f)
		fail_msg("%s: not found: the test runs at the top of the tree", path);
	while (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		assert_true(n + strlen(line) + 2 < sizeof(page));
		n += (size_t)sprintf(page + n, "%s%s ", !strncmp(line, ".It ", 4) ? ITEM : "", line);
	}
	fclose(f);
}

/* Is @name among the first words of the item? */
static bool is_item_of(const char *item, const char *prefix, const char *name)
{
	char word[64];
	const char *at;

	snprintf(word, sizeof(word), " %s%s ", prefix, name);
	at = strstr(item, word);
	return at && at - item < 120;
}

static void look_for(const char *page_name, const struct opt *v, size_t n, const char *prefix)
{
	assert_true(n > 0);
	read_page(page_name);
	for (const struct opt *o = v; o < v + n; o++) {
		char remark[OPT_LIMITS_BYTES];
		const char *found = NULL;
		bool item = false;

		if (!o->help || !o->name)
			continue;
		opt_remark(o, remark);
		for (char *at = strchr(page, *ITEM), *end; at && !found; at = *end ? end : NULL) {
			end = at + 1 + strcspn(at + 1, ITEM);
			char was = *end;

			*end = '\0';
			if (is_item_of(at, prefix, o->name)) {
				item = true;
				found = strstr(at, remark);
			}
			*end = was;
		}
		if (!item)
			fail_msg("doc/man/%s has no item for the option '%s'", page_name, o->name);
		if (!found)
			fail_msg("doc/man/%s: the item of '%s' must contain the line %s", page_name, o->name, remark);
	}
}

static void leatd_8(void **state)
{
	(void)state;
	look_for("leatd.8", conf_opts, CONF_OPTS, "-");
}

static void leatd_conf_5(void **state)
{
	const struct opt *(*const tables[])(size_t *) = { peers_opts, data_conf_opts, store_spec_opts };
	size_t n;

	(void)state;
	look_for("leatd.conf.5", export_conf_kind.opts, export_conf_kind.nopts, "");
	look_for("leatd.conf.5", block_conf_kind.opts, block_conf_kind.nopts, "");
	look_for("leatd.conf.5", volume_conf_kind.opts, volume_conf_kind.nopts, "");
	look_for("leatd.conf.5", stripes_conf_kind.opts, stripes_conf_kind.nopts, "");
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		const struct opt *v = tables[i](&n);

		look_for("leatd.conf.5", v, n, "");
	}
}

static void leat_7(void **state)
{
	size_t n;
	const struct opt *v = lt_url_opts(&n);

	(void)state;
	look_for("leat.7", v, n, "");
}

static void leat_mount_3(void **state)
{
	size_t n;
	const struct opt *v = lt_named_opts(&n);

	(void)state;
	look_for("leat_mount.3", v, n, "");
}

static const struct tool_cmd *const commands[] = {
	&cmd_ping, &cmd_ls, &cmd_stat, &cmd_cat, &cmd_cp, &cmd_put, &cmd_get, &cmd_mkdir, &cmd_rm, &cmd_mv, &cmd_ln,
	&cmd_df, &cmd_bench, &cmd_block, &cmd_dump, &cmd_ctl, &cmd_trace, &cmd_doctor,
};

static const char *page_name;

/* Returns the text of a command: from @name to the next command. A second form of a command has no item. */
static char *text_of(const char *name)
{
	char word[64], *at, *end;

	snprintf(word, sizeof(word), strchr(name, ' ') ? " .Cm leat %s " : ITEM ".It Cm %s ", name);
	at = strstr(page, word);
	if (!at)
		fail_msg("doc/man/%s does not describe the command '%s'", page_name, name);
	for (end = at + 1; (end = strchr(end, *ITEM)); end++) {
		for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
			int n = snprintf(word, sizeof(word), ITEM ".It Cm %s ", commands[i]->name);

			if (!strncmp(end, word, (size_t)n))
				return strndup(at, (size_t)(end - at));
		}
	}
	return strdup(at);
}

static void look_for_command(const struct tool_cmd *c, const struct opt *o, const char *text)
{
	char flag[64], remark[OPT_LIMITS_BYTES];

	if (o->name)
		snprintf(flag, sizeof(flag), "Fl -%s ", o->name);
	else
		snprintf(flag, sizeof(flag), "Fl %c", o->letter);
	if (!strstr(text, flag))
		fail_msg("doc/man/%s: the text of '%s' must contain '%s'", page_name, c->name, flag);
	if (!strstr(text, opt_remark(o, remark)))
		fail_msg("doc/man/%s: the text of '%s' must contain %s for '%s'", page_name, c->name, remark, flag);
}

/* Return: how many options of @c and its other forms there are */
static size_t look_for_commands(const struct tool_cmd *c)
{
	size_t seen = 0;

	for (; c; c = c->also) {
		/* put and get refer to cp */
		char *text = text_of(c->opts == cmd_cp.opts ? cmd_cp.name : c->name);

		for (const struct opt *o = c->opts; o < c->opts + c->nopts; o++, seen++)
			if (o->help)
				look_for_command(c, o, text);
		free(text);
	}
	return seen;
}

static void leat_1(void **state)
{
	size_t seen = 0;

	(void)state;
	read_page(page_name = "leat.1");
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		seen += look_for_commands(commands[i]);
	assert_true(seen > 30);
}

static void leat_volume_1(void **state)
{
	(void)state;
	read_page(page_name = "leat-volume.1");
	assert_true(look_for_commands(cmd_volume.also) > 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(leatd_8),
		cmocka_unit_test(leatd_conf_5),
		cmocka_unit_test(leat_7),
		cmocka_unit_test(leat_mount_3),
		cmocka_unit_test(leat_1),
		cmocka_unit_test(leat_volume_1),
	};

	return cmocka_run_group_tests_name("man_options", tests, NULL, NULL);
}
