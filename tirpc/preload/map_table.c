/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * map_table.c - parses a table of bulk data: the upper-layer binding of a program (RFC 8166 section 6) as text
 *
 * Operation:  A line is "PROGRAM VERSION PROCEDURE ARGS RESULTS [threshold=SIZE] [data_max=SIZE] [reply_max=SIZE]". ARGS
 *             and RESULTS are the number of the item that travels by chunk, or "-".
 * Memory:     An array of rows.
 * Threads:    Any.
 * Errors:     The first bad line ends it, with its number; nothing is returned then.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/opt.h"
#include "map.h"
#include "map_text.h"

#define ITEM_MAX 65535u

static bool parse_item(const char *word, uint32_t *ret)
{
	if (!strcmp(word, "-")) {
		*ret = RPCRDMA_BULK_NONE;
		return true;
	}
	return rt_text_number(word, ITEM_MAX, ret) && *ret;
}

static bool parse_size(const char *text, uint32_t *ret)
{
	uint64_t n;

	if (!opt_parse_size(text, &n) || !n || n > RPCRDMA_TIRPC_MAX_BYTES)
		return false;
	*ret = (uint32_t)n;
	return true;
}

static int parse_option(struct rt_text *t, const char *word, struct rpcrdma_bulk *row)
{
	const struct {
		const char *name;
		uint32_t *to;
	} options[] = {
		{ "threshold", &row->threshold },
		{ "data_max", &row->data_max },
		{ "reply_max", &row->reply_max },
	};

	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		const char *value = rt_text_value(word, options[i].name);

		if (!value)
			continue;
		if (*options[i].to)
			return rt_text_fail(t, "\"%.100s\": given twice", word);
		if (!parse_size(value, options[i].to))
			return rt_text_fail(t, "\"%.100s\" is not a size from 1 to 64M", word);
		return 0;
	}
	return rt_text_fail(t, "\"%.100s\" is none of threshold=SIZE, data_max=SIZE, reply_max=SIZE", word);
}

static int parse_row(struct rt_text *t, struct rt_table *table)
{
	struct rpcrdma_bulk *row = &table->v[table->n];

	if (table->n == RT_TABLE_ROWS_MAX)
		return rt_text_fail(t, "more than %d procedures", RT_TABLE_ROWS_MAX);
	if (t->words < 5)
		return rt_text_fail(t, "a line is PROGRAM VERSION PROCEDURE ARGS RESULTS [threshold=SIZE] [data_max=SIZE] "
				    "[reply_max=SIZE]");
	*row = (struct rpcrdma_bulk){ .prog = 0 };
	if (rt_program_find(t->word[0], ETC_RPC, &row->prog))
		return rt_text_fail(t, "\"%.100s\" is neither a program of " ETC_RPC " nor a number", t->word[0]);
	if (!rt_text_number(t->word[1], UINT32_MAX, &row->vers) || !rt_text_number(t->word[2], UINT32_MAX, &row->proc))
		return rt_text_fail(t, "version and procedure are numbers");
	if (!parse_item(t->word[3], &row->args) || !parse_item(t->word[4], &row->results))
		return rt_text_fail(t, "an item is a number from 1 to %u, or -", ITEM_MAX);
	for (int i = 5; i < t->words; i++) {
		int rc = parse_option(t, t->word[i], row);

		if (rc)
			return rc;
	}
	for (size_t i = 0; i < table->n; i++)
		if (table->v[i].prog == row->prog && table->v[i].vers == row->vers && table->v[i].proc == row->proc)
			return rt_text_fail(t, "procedure %u of program %u version %u has a line already", row->proc, row->prog,
					    row->vers);
	table->n++;
	return 0;
}

void rt_table_fini(struct rt_table *t)
{
	free(t->path);
	free(t->v);
	*t = (struct rt_table){ .n = 0 };
}

int rt_table_parse(const char *text, size_t bytes, const char *name, struct rt_table *ret, char why[RT_WHY_BYTES])
{
	struct rt_text *t = malloc(sizeof(*t));
	struct rt_table table = { .v = calloc(RT_TABLE_ROWS_MAX, sizeof(*table.v)) };
	int rc;

	if (!t || !table.v) {
		(void)snprintf(why, RT_WHY_BYTES, "%.200s: out of memory", name);
		rc = -ENOMEM;
		goto out;
	}
	rt_text_init(t, text, bytes, name, why);
	while ((rc = rt_text_next(t)) > 0) {
		rc = parse_row(t, &table);
		if (rc)
			break;
	}
out:
	free(t);
	if (rc)
		rt_table_fini(&table);
	else
		*ret = table;
	return rc;
}

int rt_table_load(const char *path, struct rt_table *ret, char why[RT_WHY_BYTES])
{
	struct rt_table table;
	size_t bytes;
	char *text;
	int rc = rt_text_read(path, &text, &bytes, why);

	if (rc)
		return rc;
	rc = rt_table_parse(text, bytes, path, &table, why);
	free(text);
	if (rc)
		return rc;
	table.path = strdup(path);
	if (!table.path) {
		rt_table_fini(&table);
		(void)snprintf(why, RT_WHY_BYTES, "%.200s: out of memory", path);
		return -ENOMEM;
	}
	*ret = table;
	return 0;
}
