/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fuzz_tirpc_map.c - libFuzzer harness: maps, tables and lists of URLs of rpcrdma-run
 *
 * Operation:  Byte 0 chooses the parser; the rest is the text. What is accepted must be within its limits, and what is
 *             refused must be refused with a reason that names a line.
 * Memory:     Names of tables in a map lead to nothing: the harness looks only for files of a directory that is not there.
 * Errors:     abort() on a broken promise.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "map.h"
#include "rpcrdma_addr.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool promise)
{
	if (!promise)
		abort();
}

static void must_be_url(const char *url)
{
	struct rpcrdma_addr a;

	must(strnlen(url, RT_URL_BYTES) < RT_URL_BYTES && !rpcrdma_addr_parse(url, &a));
}

static void use_map(const char *text, size_t bytes)
{
	char why[RT_WHY_BYTES] = "";
	struct rt_map map;
	int rc;

	/* a table of an absolute name would be a file of this machine */
	if (memmem(text, bytes, "table=/", 7))
		return;
	rc = rt_map_parse(text, bytes, "map", "/nonexistent", &map, why);
	must(rc ? !strncmp(why, "map:", 4) && strnlen(why, sizeof(why)) < sizeof(why) : !why[0]);
	if (rc)
		return;
	must(map.n <= RT_MAP_ROWS_MAX && !map.ntables);
	for (size_t i = 0; i < map.n; i++) {
		const struct rt_route *r = &map.v[i];

		must(r->host[0] && strnlen(r->host, sizeof(r->host)) < sizeof(r->host));
		must_be_url(r->url);
		must(!r->max_bytes || (r->max_bytes >= 4096 && r->max_bytes <= RPCRDMA_TIRPC_MAX_BYTES));
	}
	rt_map_fini(&map);
}

static void use_table(const char *text, size_t bytes)
{
	char why[RT_WHY_BYTES] = "";
	struct rt_table t;
	int rc = rt_table_parse(text, bytes, "table", &t, why);

	must(rc ? !strncmp(why, "table:", 6) : !why[0]);
	if (rc)
		return;
	must(t.n <= RT_TABLE_ROWS_MAX);
	for (size_t i = 0; i < t.n; i++)
		must(t.v[i].args < 65536 && t.v[i].results < 65536 && t.v[i].data_max <= RPCRDMA_TIRPC_MAX_BYTES);
	rt_table_fini(&t);
}

static void use_urls(const char *text, size_t bytes)
{
	char why[RT_WHY_BYTES] = "", *copy = strndup(text, bytes);
	struct rt_urls urls;
	int rc = rt_urls_parse(copy, &urls, why);

	must(rc ? why[0] : urls.n && urls.n <= RT_URLS_MAX);
	for (size_t i = 0; !rc && i < urls.n; i++)
		must_be_url(urls.v[i]);
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const use[])(const char *, size_t) = { use_map, use_table, use_urls };

	if (size)
		use[*data % ARRAY_SIZE(use)]((const char *)data + 1, size - 1);
	return 0;
}
