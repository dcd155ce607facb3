/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * map.c - parses the map of rpcrdma-run
 *
 * Operation:  A line is "HOST PROGRAM URL [max=SIZE] [table=FILE]". Names of hosts are not resolved here.
 * Memory:     An array of lines, and one of tables: lines that name the same file share its table.
 * Threads:    Any.
 * Errors:     The first bad line ends it, with its number; nothing is returned then.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/opt.h"
#include "rpcrdma_addr.h"
#include "map.h"
#include "map_text.h"

#define MAX_BYTES_MIN 4096u

int rt_max_parse(const char *text, size_t *ret, char why[RT_WHY_BYTES])
{
	uint64_t n;

	if (!opt_parse_size(text, &n) || n < MAX_BYTES_MIN || n > RPCRDMA_TIRPC_MAX_BYTES) {
		(void)snprintf(why, RT_WHY_BYTES, "\"%.40s\" is not a size from 4K to 64M", text);
		return -EINVAL;
	}
	*ret = (size_t)n;
	return 0;
}

/* Is @url one, and short enough? */
static bool is_url(const char *url)
{
	struct rpcrdma_addr addr;

	return strlen(url) < RT_URL_BYTES && !rpcrdma_addr_parse(url, &addr);
}

int rt_urls_parse(const char *list, struct rt_urls *ret, char why[RT_WHY_BYTES])
{
	struct rt_urls urls = { .n = 0 };

	for (;;) {
		size_t n = strcspn(list, ",");

		if (urls.n == RT_URLS_MAX) {
			(void)snprintf(why, RT_WHY_BYTES, "more than %d URLs", RT_URLS_MAX);
			return -EINVAL;
		}
		(void)snprintf(urls.v[urls.n], RT_URL_BYTES, "%.*s", (int)MIN(n, RT_URL_BYTES), list);
		if (n >= RT_URL_BYTES || !is_url(urls.v[urls.n])) {
			(void)snprintf(why, RT_WHY_BYTES, "\"%.100s\" is not a URL: rdma://HOST[:PORT], tcp://HOST[:PORT] "
				       "or local:///PATH", urls.v[urls.n]);
			return -EINVAL;
		}
		urls.n++;
		if (!list[n])
			break;
		list += n + 1;
	}
	*ret = urls;
	return 0;
}

/* "0x20000099", as in an .x file */
static bool is_hex(const char *word, uint32_t *ret)
{
	uint32_t n = 0;

	if (word[0] != '0' || (word[1] != 'x' && word[1] != 'X') || !word[2] || strlen(word) > 10)
		return false;
	for (word += 2; *word; word++) {
		if (!isxdigit((unsigned char)*word))
			return false;
		n = n << 4 | (uint32_t)(isdigit((unsigned char)*word) ? *word - '0' : (*word | 0x20) - 'a' + 10);
	}
	*ret = n;
	return true;
}

int rt_program_find(const char *word, const char *path, uint32_t *ret)
{
	char *text, why[RT_WHY_BYTES];
	struct rt_text *t;
	size_t bytes;
	int rc = -ENOENT;

	if (rt_text_number(word, UINT32_MAX, ret) || is_hex(word, ret))
		return 0;
	if (!word[strspn(word, "0123456789")])
		return -EINVAL;
	t = malloc(sizeof(*t));
	if (!t || rt_text_read(path, &text, &bytes, why)) {
		free(t);
		return -ENOENT;
	}
	rt_text_init(t, text, bytes, path, why);
	while (rc == -ENOENT && rt_text_next(t) > 0)
		for (int i = 0; i < t->words; i++)
			if (i != 1 && !strcmp(t->word[i], word) && t->words > 1 &&
			    rt_text_number(t->word[1], UINT32_MAX, ret))
				rc = 0;
	free(text);
	free(t);
	return rc;
}

static bool is_twin(const struct rt_map *map, const struct rt_route *r, unsigned *ret_line)
{
	for (size_t i = 0; i < map->n; i++)
		if (map->v[i].prog == r->prog && !strcasecmp(map->v[i].host, r->host)) {
			*ret_line = map->v[i].line;
			return true;
		}
	return false;
}

/* Finds or reads the table of a line. Return: 0, or -errno with a message. */
static int add_table(struct rt_text *t, struct rt_map *map, const char *file, const char *dir, size_t *ret)
{
	char path[2 * RT_LINE_BYTES_MAX], why[RT_WHY_BYTES];
	int rc;

	if (!*file)
		return rt_text_fail(t, "table= has no file");
	if (*file == '/' || !dir)
		(void)snprintf(path, sizeof(path), "%s", file);
	else if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, file) >= sizeof(path))
		return rt_text_fail(t, "the name of the table is too long");
	for (size_t i = 0; i < map->ntables; i++)
		if (!strcmp(map->tables[i].path, path)) {
			*ret = i + 1;
			return 0;
		}
	if (map->ntables == RT_MAP_TABLES_MAX)
		return rt_text_fail(t, "more than %d tables", RT_MAP_TABLES_MAX);
	rc = rt_table_load(path, &map->tables[map->ntables], why);
	if (rc) {
		rt_text_fail(t, "%.300s", why);
		return rc;
	}
	*ret = ++map->ntables;
	return 0;
}

static int parse_line(struct rt_text *t, struct rt_map *map, const char *dir)
{
	struct rt_route *r = &map->v[map->n];
	bool has_max = false;
	unsigned twin;
	char why[RT_WHY_BYTES];

	if (map->n == RT_MAP_ROWS_MAX)
		return rt_text_fail(t, "more than %d lines with a URL", RT_MAP_ROWS_MAX);
	if (t->words < 3)
		return rt_text_fail(t, "a line is HOST PROGRAM URL [max=SIZE] [table=FILE]");
	*r = (struct rt_route){ .line = t->line };
	if (strlen(t->word[0]) >= sizeof(r->host))
		return rt_text_fail(t, "the name of the host is too long");
	memcpy(r->host, t->word[0], strlen(t->word[0]) + 1);
	if (rt_program_find(t->word[1], ETC_RPC, &r->prog))
		return rt_text_fail(t, "\"%.100s\" is neither a program of " ETC_RPC " nor a number", t->word[1]);
	if (!is_url(t->word[2]))
		return rt_text_fail(t, "\"%.100s\" is not a URL: rdma://HOST[:PORT], tcp://HOST[:PORT] or local:///PATH",
				    t->word[2]);
	memcpy(r->url, t->word[2], strlen(t->word[2]) + 1);
	for (int i = 3; i < t->words; i++) {
		const char *max = rt_text_value(t->word[i], "max"), *table = rt_text_value(t->word[i], "table");
		int rc = 0;

		if ((max && has_max) || (table && r->table))
			return rt_text_fail(t, "\"%.100s\": given twice", t->word[i]);
		if (max) {
			has_max = true;
			if (rt_max_parse(max, &r->max_bytes, why))
				return rt_text_fail(t, "max=: %.300s", why);
		} else if (table) {
			rc = add_table(t, map, table, dir, &r->table);
		} else {
			rc = rt_text_fail(t, "\"%.100s\" is neither max=SIZE nor table=FILE", t->word[i]);
		}
		if (rc)
			return rc;
	}
	if (is_twin(map, r, &twin))
		return rt_text_fail(t, "program %u of %.200s is on line %u already", r->prog, r->host, twin);
	map->n++;
	return 0;
}

void rt_map_fini(struct rt_map *map)
{
	for (size_t i = 0; i < map->ntables; i++)
		rt_table_fini(&map->tables[i]);
	free(map->tables);
	free(map->v);
	*map = (struct rt_map){ .n = 0 };
}

/* Lines that may have a URL */
static size_t count_lines(const char *text, size_t bytes)
{
	size_t n = 1;

	for (const char *at = text; n <= RT_MAP_ROWS_MAX && (at = memchr(at, '\n', (size_t)(text + bytes - at))); at++)
		n++;
	return n;
}

int rt_map_parse(const char *text, size_t bytes, const char *name, const char *dir, struct rt_map *ret, char why[RT_WHY_BYTES])
{
	struct rt_text *t = malloc(sizeof(*t));
	struct rt_map map = { .n = 0 };
	int rc;

	map.v = calloc(count_lines(text, bytes), sizeof(*map.v));
	map.tables = calloc(RT_MAP_TABLES_MAX, sizeof(*map.tables));
	if (!t || !map.v || !map.tables) {
		(void)snprintf(why, RT_WHY_BYTES, "%.200s: out of memory", name);
		rc = -ENOMEM;
		goto out;
	}
	rt_text_init(t, text, bytes, name, why);
	while ((rc = rt_text_next(t)) > 0) {
		rc = parse_line(t, &map, dir);
		if (rc)
			break;
	}
out:
	free(t);
	if (rc)
		rt_map_fini(&map);
	else
		*ret = map;
	return rc;
}

bool rt_map_is_line(const char *arg)
{
	return strstr(arg, "://");
}

int rt_map_load(const char *arg, struct rt_map *ret, char why[RT_WHY_BYTES])
{
	char *text = NULL, *dir = NULL, *slash;
	size_t bytes;
	int rc;

	if (rt_map_is_line(arg))
		return rt_map_parse(arg, strlen(arg), "map", NULL, ret, why);
	rc = rt_text_read(arg, &text, &bytes, why);
	if (rc)
		return rc;
	slash = strrchr(arg, '/');
	if (slash && !(dir = strndup(arg, slash == arg ? 1 : (size_t)(slash - arg)))) {
		free(text);
		(void)snprintf(why, RT_WHY_BYTES, "%.200s: out of memory", arg);
		return -ENOMEM;
	}
	rc = rt_map_parse(text, bytes, arg, dir, ret, why);
	free(dir);
	free(text);
	return rc;
}
