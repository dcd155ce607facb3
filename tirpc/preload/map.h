/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * map.h - the map of rpcrdma-run: which programs on which hosts are called at which URL, and tables of bulk data
 *
 * Text comes from the user of the program, so errors are messages for a person, and all sizes have limits.
 */
#ifndef RT_MAP_H
#define RT_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/util.h"
#include "rpcrdma_tirpc.h"

#define RT_MAP_ROWS_MAX 1024      /* of a map */
#define RT_MAP_TABLES_MAX 64      /* of a map */
#define RT_TABLE_ROWS_MAX 4096    /* of a table */
#define RT_TEXT_BYTES_MAX (1 << 20) /* of a file */
#define RT_LINE_BYTES_MAX 4096    /* of a line of a file */
#define RT_URLS_MAX 8             /* of a list of URLs */
#define RT_WHY_BYTES 512          /* of a message */
#define RT_HOST_BYTES 256
#define RT_URL_BYTES 320

/* The environment of the program, which rpcrdma-run sets and librpcrdma-preload.so reads */
#define RT_ENV_MAP "RPCRDMA_RUN_MAP"       /* path of the map, or one line of it */
#define RT_ENV_URLS "RPCRDMA_RUN_URLS"     /* where services also listen */
#define RT_ENV_MAX "RPCRDMA_RUN_MAX"       /* max_bytes */
#define RT_ENV_TABLE "RPCRDMA_RUN_TABLE"   /* table of services */
#define RT_ENV_REPORT "RPCRDMA_RUN_REPORT" /* 1: counters at exit on standard error; a path: into that file */

/* A table of bulk data, one row per procedure */
struct rt_table {
	char *path; /* NULL: of a text */
	struct rpcrdma_bulk *v;
	size_t n;
};

/* A line of the map: calls of @prog on @host go to @url */
struct rt_route {
	char host[RT_HOST_BYTES];
	uint32_t prog;
	char url[RT_URL_BYTES];
	size_t max_bytes; /* 0: the default */
	size_t table;     /* index + 1 in rt_map.tables; 0: none */
	unsigned line;
};

struct rt_map {
	struct rt_route *v;
	size_t n;
	struct rt_table *tables;
	size_t ntables;
};

/** rt_map_parse - parses the text of a map
 * @name: of the text, for messages; @dir: where relative names of tables begin, NULL: the working directory
 * @why: receives "NAME:LINE: REASON"
 *
 * Return: 0 (rt_map_fini()); -EINVAL, -ENOMEM, or an error of reading a table. @ret is then unchanged.
 */
must_check int rt_map_parse(const char *text, size_t bytes, const char *name, const char *dir, struct rt_map *ret,
			    char why[RT_WHY_BYTES]);

/** rt_map_load - parses @arg, the path of a map or one line of a map: a text with "://" is a line */
must_check int rt_map_load(const char *arg, struct rt_map *ret, char why[RT_WHY_BYTES]);

/** rt_map_is_line - is @arg of rt_map_load() a line? */
bool rt_map_is_line(const char *arg);

/** rt_map_fini - frees what a map contains; NULL members are fine */
void rt_map_fini(struct rt_map *map);

/** rt_table_parse - parses the text of a table of bulk data; as rt_map_parse() */
must_check int rt_table_parse(const char *text, size_t bytes, const char *name, struct rt_table *ret, char why[RT_WHY_BYTES]);

/** rt_table_load - reads and parses a table; as rt_map_parse() */
must_check int rt_table_load(const char *path, struct rt_table *ret, char why[RT_WHY_BYTES]);

/** rt_table_fini - frees what a table contains */
void rt_table_fini(struct rt_table *t);

struct rt_urls {
	char v[RT_URLS_MAX][RT_URL_BYTES];
	size_t n;
};

/** rt_urls_parse - parses "URL[,URL]"; Return: 0, or -EINVAL with @why */
must_check int rt_urls_parse(const char *list, struct rt_urls *ret, char why[RT_WHY_BYTES]);

/** rt_max_parse - parses max_bytes: 4K to 64M; Return: 0, or -EINVAL with @why */
must_check int rt_max_parse(const char *text, size_t *ret, char why[RT_WHY_BYTES]);

/** rt_program_find - returns the number of a program: a number, decimal or 0x, or a name or alias of /etc/rpc
 * @path: of /etc/rpc
 *
 * Return: 0; -ENOENT: there is no such name; -EINVAL: not a number of a program.
 */
must_check int rt_program_find(const char *word, const char *path, uint32_t *ret);

#endif
