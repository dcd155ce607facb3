/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * status_cmd.c - leat volume status, df: ask each stripe server of a volume, and add up what they say
 *
 * Operation:  One server after the other; each has 10 seconds. The manager says which ones it cannot reach.
 * Memory:     The map.
 * Threads:    One.
 * Errors:     A server that cannot be reached, or refuses, is a line of the table; then the exit status is 1. So it is if the
 *             manager cannot reach a server, or has another version of the map.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "leat_volume.h"
#include "tool.h"
#include "volume_cmd.h"

/* One of the two tables. */
struct table {
	const char *title;
	void (*print)(const struct leat_volume_server *s, const struct leat_volume_info *i);
};

struct asking {
	char *map, *key; /* files */
	const char *url; /* of the manager. NULL: only @map */
	struct leat_volume_key *volume_key;
	const struct table *table;
};

/* Of the servers that have replied. */
struct totals {
	uint64_t bytes_free;
	uint64_t least;  /* free bytes of the fullest one that gets new files */
	unsigned full;   /* servers that get new files */
	unsigned out;    /* servers that do not */
	unsigned silent; /* servers without an answer */
	unsigned away;   /* servers that the manager cannot reach */
};

/* What the manager says. */
struct manager_view {
	struct leat_volume_map *map;
	struct leat_volume_seen away[256]; /* servers of a volume */
	unsigned n;
};

static void print_start(const struct leat_volume_server *s)
{
	printf("%6" PRIu32 " %-5s ", s->id, s->out ? "out" : "full");
}

static void print_status(const struct leat_volume_server *s, const struct leat_volume_info *i)
{
	char left[16], size[16];

	print_start(s);
	printf("%8s %8s %6" PRId64 " ms %6" PRIu64 " %016" PRIx64 "  ", tool_print_size(i->bytes_free, left),
	       tool_print_size(i->bytes, size), i->skew_ms, i->term, i->verf);
	tool_put_name(s->url);
	putchar('\n');
}

static void print_space(const struct leat_volume_server *s, const struct leat_volume_info *i)
{
	char size[16], taken[16], left[16];

	print_start(s);
	printf("%8s %8s %8s %3u%%  ", tool_print_size(i->bytes, size), tool_print_size(i->bytes_used, taken),
	       tool_print_size(i->bytes_free, left), tool_use_percent(i->bytes_used, i->bytes_free));
	tool_put_name(s->url);
	putchar('\n');
}

static const struct table status_table = {
	"server state     free     size  clock      term verifier          URL\n", print_status,
};

static const struct table space_table = { "server state     size     used     free  use  URL\n", print_space };

/* @text: of leat_error(), which names the server */
static void print_silence(const struct leat_volume_server *s, const char *text)
{
	print_start(s);
	printf("failed: ");
	tool_put_name(text);
	putchar('\n');
}

static void add_up(struct totals *t, const struct leat_volume_server *s, const struct leat_volume_info *i)
{
	if (__builtin_add_overflow(t->bytes_free, i->bytes_free, &t->bytes_free))
		t->bytes_free = UINT64_MAX;
	t->out += s->out;
	if (s->out)
		return;
	t->least = t->full ? MIN(t->least, i->bytes_free) : i->bytes_free;
	t->full++;
}

static void ask_server(const struct asking *a, const struct leat_volume_server *s, struct totals *t)
{
	struct leat_volume_info info = { .size = sizeof(info) };
	struct leat *m = NULL;
	int rc = tool_mount(s->url, "connect_only=yes&" TOOL_IMPATIENT, &m);

	if (!rc)
		rc = leat_volume_ask(m, a->volume_key, s->id, &info);
	if (rc) {
		print_silence(s, leat_error(m));
		t->silent++;
	} else {
		a->table->print(s, &info);
		add_up(t, s, &info);
	}
	tool_umount(m);
}

static void print_totals(const struct totals *t)
{
	uint64_t file;
	char left[16], most[16];

	if (__builtin_mul_overflow(t->least, t->full, &file))
		file = UINT64_MAX;
	printf("free: %s on %u server%s", tool_print_size(t->bytes_free, left), t->full + t->out, tool_plural(t->full + t->out));
	if (t->out)
		printf(", %u of them out", t->out);
	printf("; a new file on %u server%s: %s\n", t->full, tool_plural(t->full), tool_print_size(file, most));
}

static int read_map(const char *file, struct leat_volume_map **ret)
{
	char why[VOLUME_WHY_BYTES] = "";

	if (!leat_volume_map_read(file, ret, why, sizeof(why)))
		return TOOL_OK;
	log_err("%s", why);
	return TOOL_FAILED;
}

static int take_seen(void *ctx, const struct leat_volume_seen *seen)
{
	struct manager_view *v = ctx;

	if (seen->reach == LEAT_VOLUME_AWAY && v->n < ARRAY_SIZE(v->away))
		v->away[v->n++] = *seen;
	return 0;
}

/* @v: gets what the manager says of its servers */
static int ask_manager(const char *url, struct manager_view *v)
{
	struct tool_target t = { 0 };
	int rc = TOOL_FAILED;

	if (!tool_attach_with(url, TOOL_IMPATIENT, &t)) {
		rc = leat_volume_servers(t.m, take_seen, v);
		if (!rc)
			rc = leat_volume_map(t.m, &v->map);
		rc = rc ? tool_fail(t.m, t.path, rc) : TOOL_OK;
	}
	tool_detach(&t);
	return rc;
}

static void print_away(const struct manager_view *v, struct totals *t)
{
	for (unsigned i = 0; i < v->n; i++)
		printf("the manager does not reach server %" PRIu32 " for %" PRIu64 " s: new files avoid it\n", v->away[i].server,
		       v->away[i].for_ms / 1000);
	t->away = v->n;
}

/* Return: has it another version than @map? */
static bool print_other_version(const struct manager_view *v, const struct leat_volume_map *map)
{
	if (!v->map || v->map->version == map->version)
		return false;
	printf("the manager has version %" PRIu64 " of the map: leat ctl reload makes it read this one\n", v->map->version);
	return true;
}

static int ask_servers(const struct asking *a, const struct leat_volume_map *map, const struct manager_view *view)
{
	struct totals t = { 0 };
	bool other;

	printf("volume %016" PRIx64 ", version %" PRIu64 " of its map\n", map->volume, map->version);
	fputs(a->table->title, stdout);
	for (size_t i = 0; i < map->nservers && !tool_interrupted(); i++)
		ask_server(a, map->servers[i], &t);
	print_away(view, &t);
	other = print_other_version(view, map);
	print_totals(&t);
	return t.silent || t.away || other ? TOOL_FAILED : TOOL_OK;
}

static int ask_all(const struct asking *a)
{
	struct manager_view view = { .n = 0 };
	struct leat_volume_map *map = NULL;
	int rc = a->url ? ask_manager(a->url, &view) : TOOL_OK;

	if (rc == TOOL_OK && a->map)
		rc = read_map(a->map, &map);
	if (rc == TOOL_OK)
		rc = ask_servers(a, map ? map : view.map, &view);
	leat_volume_map_free(map);
	leat_volume_map_free(view.map);
	return rc;
}

static int ask_with_key(struct asking *a)
{
	char why[VOLUME_WHY_BYTES] = "";
	int rc;

	if (leat_volume_key_read(a->key, &a->volume_key, why, sizeof(why))) {
		log_err("%s", why);
		return TOOL_FAILED;
	}
	rc = ask_all(a);
	leat_volume_key_free(a->volume_key);
	return rc;
}

static int ask_run(const struct tool_cmd *self, int argc, char **argv, const struct table *table)
{
	struct asking a = { .table = table };
	int rc = tool_options(self, argc, argv, &a);

	if (rc < 0 || argc - optind > 1 || (argc == optind && !a.map) || !a.key) {
		rc = tool_usage(self);
	} else {
		a.url = argv[optind];
		rc = ask_with_key(&a);
	}
	free(a.map);
	free(a.key);
	return rc;
}

static int status_run(const struct tool_cmd *self, int argc, char **argv)
{
	return ask_run(self, argc, argv, &status_table);
}

static int df_run(const struct tool_cmd *self, int argc, char **argv)
{
	return ask_run(self, argc, argv, &space_table);
}

static const struct opt ask_opts[] = {
	{ "map", "FILE", NULL, "the map of the volume; with URL, that of the manager is compared with it", NULL, OPT_TEXT, 0, OPT_AT(struct asking, map) },
	{ "key", "FILE", NULL, "the key of the volume", NULL, OPT_TEXT, 0, OPT_AT(struct asking, key) },
};

static const struct tool_cmd cmd_volume_df = {
	"volume df", "--key FILE [--map FILE] [URL]", "asks each stripe server for its free space", df_run, ask_opts,
	ARRAY_SIZE(ask_opts), .mixed = true, .also = &cmd_volume_show,
};

const struct tool_cmd cmd_volume_status = {
	"volume status", "--key FILE [--map FILE] [URL]", "asks each stripe server for its state and its room", status_run, ask_opts,
	ARRAY_SIZE(ask_opts), .mixed = true, .also = &cmd_volume_df,
};
