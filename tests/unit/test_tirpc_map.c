/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_tirpc_map.c - the map and the tables of rpcrdma-run: what is accepted, and what is refused at which line
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "map.h"
#include "tmp_dir.h"

#define TEN "0123456789"
#define HUNDRED TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN
#define NO_DIR NULL

static char why[RT_WHY_BYTES];

static int parse(const char *text, struct rt_map *map)
{
	why[0] = '\0';
	return rt_map_parse(text, strlen(text), "m", NO_DIR, map, why);
}

static void lines(void **state)
{
	struct rt_map map;

	(void)state;
	assert_int_equal(parse("# comment\n\n"
			       " localhost\typserv local:///run/yp.sock # more\n"
			       "store1 400100 rdma://store1:20100 max=1M\n"
			       "fd77::1 nfs tcp://[fd77::1]:2049 max=64m",
			       &map),
			 0);
	assert_int_equal(map.n, 3);
	assert_string_equal(map.v[0].host, "localhost");
	assert_int_equal(map.v[0].prog, 100004);
	assert_string_equal(map.v[0].url, "local:///run/yp.sock");
	assert_int_equal(map.v[0].max_bytes, 0);
	assert_int_equal(map.v[0].table, 0);
	assert_int_equal(map.v[0].line, 3);
	assert_int_equal(map.v[1].prog, 400100);
	assert_int_equal(map.v[1].max_bytes, 1 << 20);
	assert_int_equal(map.v[2].prog, 100003);
	assert_int_equal(map.v[2].max_bytes, 64 << 20);
	assert_int_equal(map.v[2].line, 5);
	rt_map_fini(&map);
	assert_int_equal(parse("", &map), 0);
	assert_int_equal(map.n, 0);
	rt_map_fini(&map);
	assert_int_equal(parse("a 1 local:///x\nb 1 local:///x\na 2 local:///x", &map), 0);
	assert_int_equal(map.n, 3);
	rt_map_fini(&map);
}

static const struct {
	const char *text, *message;
} bad[] = {
	{ "a 1", "m:1: a line is HOST" },
	{ "\n# x\na\n", "m:3: a line is HOST" },
	{ "a nosuchprogram local:///x", "m:1: \"nosuchprogram\" is neither" },
	{ "a 4294967296 local:///x", "m:1: \"4294967296\" is neither" },
	{ "a -1 local:///x", "m:1: \"-1\" is neither" },
	{ "a 1 /x", "m:1: \"/x\" is not a URL" },
	{ "a 1 local://x", "m:1: \"local://x\" is not a URL" },
	{ "a 1 udp://x", "m:1: \"udp://x\" is not a URL" },
	{ "a 1 tcp://h:65536", "is not a URL" },
	{ "a 1 tcp://" HUNDRED HUNDRED HUNDRED HUNDRED, "is not a URL" },
	{ HUNDRED HUNDRED HUNDRED " 1 local:///x", "m:1: the name of the host is too long" },
	{ "a 1 local:///x max=", "m:1: max=: \"\" is not a size" },
	{ "a 1 local:///x max=4095", "is not a size from 4K to 64M" },
	{ "a 1 local:///x max=65M", "is not a size" },
	{ "a 1 local:///x max=16M max=16M", "m:1: \"max=16M\": given twice" },
	{ "a 1 local:///x table=", "m:1: table= has no file" },
	{ "a 1 local:///x table=/nonexistent/t", "m:1: /nonexistent/t: No such file" },
	{ "a 1 local:///x table=/dev/null", "m:1: /dev/null: not a regular file" },
	{ "a 1 local:///x maximum=1M", "m:1: \"maximum=1M\" is neither max=SIZE nor table=FILE" },
	{ "a 1 local:///x\n\nA 1 local:///y", "m:3: program 1 of A is on line 1 already" },
	{ "a 1 local:///x\001", "m:1: the line is longer than 4095 bytes, or has control characters" },
	{ "a 1 local:///x\n\033[2J", "m:2: the line is longer" },
	{ "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17", "m:1: more than 16 words" },
};

static void bad_lines(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct rt_map map = { .n = 77 };

		if (parse(bad[i].text, &map) >= 0 || !strstr(why, bad[i].message))
			fail_msg("\"%.100s\": %s", bad[i].text, why);
		assert_int_equal(map.n, 77); /* unchanged */
	}
}

static void limits(void **state)
{
	struct rt_map map;
	size_t n = 0;
	char *text = malloc(RT_TEXT_BYTES_MAX);

	(void)state;
	for (unsigned i = 0; i < RT_MAP_ROWS_MAX; i++)
		n += (size_t)sprintf(text + n, "h %u local:///x\n", i);
	assert_int_equal(parse(text, &map), 0);
	assert_int_equal(map.n, RT_MAP_ROWS_MAX);
	rt_map_fini(&map);
	sprintf(text + n, "h 5000 local:///x\n");
	assert_int_equal(parse(text, &map), -EINVAL);
	assert_string_equal(why, "m:1025: more than 1024 lines with a URL");
	/* a line of the greatest length, and a longer one */
	memset(text, ' ', RT_LINE_BYTES_MAX);
	strcpy(text + RT_LINE_BYTES_MAX - 1, "\n");
	assert_int_equal(parse(text, &map), 0);
	rt_map_fini(&map);
	strcpy(text + RT_LINE_BYTES_MAX, "\n");
	text[RT_LINE_BYTES_MAX - 1] = ' ';
	assert_int_equal(parse(text, &map), -EINVAL);
	/* a zero byte is a control character */
	assert_int_equal(rt_map_parse("a 1\0local:///x", 14, "m", NO_DIR, &map, why), -EINVAL);
	free(text);
}

/* Writes a file of the test's directory; Return: its path */
static const char *put(const struct tmp_dir *dir, const char *name, const char *text)
{
	static char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir->path, name);
	f = fopen(path, "we");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	return path;
}

static void files(void **state)
{
	struct tmp_dir dir;
	struct rt_map map;
	char path[512];

	(void)state;
	tmp_dir_create(&dir);
	put(&dir, "t", "400100 1 2 1 1\n");
	strcpy(path, put(&dir, "map", "a 400100 local:///x table=t\nb 400100 local:///y table=t\n"));
	assert_int_equal(rt_map_load(path, &map, why), 0);
	assert_int_equal(map.n, 2);
	assert_int_equal(map.ntables, 1); /* shared */
	assert_int_equal(map.v[0].table, 1);
	assert_int_equal(map.v[1].table, 1);
	assert_int_equal(map.tables[0].n, 1);
	assert_int_equal(map.tables[0].v[0].prog, 400100);
	rt_map_fini(&map);

	/* the line of the table, and that of the map */
	put(&dir, "t", "\n400100 1 2 1\n");
	assert_int_equal(rt_map_load(path, &map, why), -EINVAL);
	assert_non_null(strstr(why, "/map:1: "));
	assert_non_null(strstr(why, "/t:2: a line is PROGRAM VERSION PROCEDURE"));

	assert_int_equal(rt_map_load(dir.path, &map, why), -EINVAL);
	assert_non_null(strstr(why, "not a regular file"));
	assert_int_equal(rt_map_load("/nonexistent/map", &map, why), -ENOENT);

	assert_true(rt_map_is_line("a 1 local:///x"));
	assert_false(rt_map_is_line("dir/map"));
	assert_int_equal(rt_map_load("a 1 local:///x max=8K", &map, why), 0);
	assert_int_equal(map.v[0].max_bytes, 8192);
	rt_map_fini(&map);

	assert_int_equal(truncate(path, RT_TEXT_BYTES_MAX + 1), 0);
	assert_int_equal(rt_map_load(path, &map, why), -EINVAL);
	assert_non_null(strstr(why, "longer than 1 MiB"));
	tmp_dir_destroy(&dir);
}

static int parse_table(const char *text, struct rt_table *t)
{
	why[0] = '\0';
	return rt_table_parse(text, strlen(text), "t", t, why);
}

static void tables(void **state)
{
	struct rt_table t;

	(void)state;
	assert_int_equal(parse_table("# NFSv3\n"
				     "nfs 3 6 - 1 data_max=1M reply_max=4K\n"
				     "nfs 3 7 1 - threshold=1\n"
				     "nfs 3 17 - - reply_max=64K",
				     &t),
			 0);
	assert_int_equal(t.n, 3);
	assert_int_equal(t.v[0].prog, 100003);
	assert_int_equal(t.v[0].vers, 3);
	assert_int_equal(t.v[0].proc, 6);
	assert_int_equal(t.v[0].args, RPCRDMA_BULK_NONE);
	assert_int_equal(t.v[0].results, 1);
	assert_int_equal(t.v[0].threshold, 0);
	assert_int_equal(t.v[0].data_max, 1 << 20);
	assert_int_equal(t.v[0].reply_max, 4096);
	assert_int_equal(t.v[1].args, 1);
	assert_int_equal(t.v[1].results, RPCRDMA_BULK_NONE);
	assert_int_equal(t.v[1].threshold, 1);
	assert_int_equal(t.v[2].reply_max, 65536);
	rt_table_fini(&t);
}

static void bad_tables(void **state)
{
	static const struct {
		const char *text, *message;
	} cases[] = {
		{ "1 1 1 1", "t:1: a line is PROGRAM" },
		{ "1 1 1 1 1\nnosuch 1 1 1 1", "t:2: \"nosuch\" is neither" },
		{ "1 x 1 1 1", "t:1: version and procedure are numbers" },
		{ "1 1 4294967296 1 1", "version and procedure" },
		{ "1 1 1 0 1", "t:1: an item is a number from 1 to 65535, or -" },
		{ "1 1 1 1 65536", "an item is" },
		{ "1 1 1 1 -1", "an item is" },
		{ "1 1 1 1 1 threshold=0", "\"threshold=0\" is not a size" },
		{ "1 1 1 1 1 data_max=65M", "is not a size" },
		{ "1 1 1 1 1 data_max=1M data_max=1M", "given twice" },
		{ "1 1 1 1 1 max=1M", "\"max=1M\" is none of" },
		{ "1 1 1 1 1\n1 1 2 1 1\n1 1 1 - -", "t:3: procedure 1 of program 1 version 1 has a line already" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rt_table t = { .n = 77 };

		if (parse_table(cases[i].text, &t) >= 0 || !strstr(why, cases[i].message))
			fail_msg("\"%s\": %s", cases[i].text, why);
		assert_int_equal(t.n, 77);
	}
}

static void programs(void **state)
{
	struct tmp_dir dir;
	uint32_t n = 0;
	char path[512];

	(void)state;
	tmp_dir_create(&dir);
	strcpy(path, put(&dir, "rpc", "# names\nportmapper\t100000\tportmap sunrpc # old\nbroken\n3d 7 alias\n"));
	assert_int_equal(rt_program_find("portmapper", path, &n), 0);
	assert_int_equal(n, 100000);
	assert_int_equal(rt_program_find("sunrpc", path, &n), 0);
	assert_int_equal(rt_program_find("3d", path, &n), 0);
	assert_int_equal(n, 7);
	assert_int_equal(rt_program_find("100000", "/nonexistent", &n), 0);
	assert_int_equal(n, 100000);
	assert_int_equal(rt_program_find("0x2004ABcd", "/nonexistent", &n), 0);
	assert_int_equal(n, 0x2004abcd);
	assert_int_equal(rt_program_find("0x", "/nonexistent", &n), -ENOENT);
	assert_int_equal(rt_program_find("0x2004abcde", "/nonexistent", &n), -ENOENT);
	assert_int_equal(rt_program_find("0x2004abcg", "/nonexistent", &n), -ENOENT);
	assert_int_equal(rt_program_find("old", path, &n), -ENOENT);
	assert_int_equal(rt_program_find("#", path, &n), -ENOENT);
	assert_int_equal(rt_program_find("broken", path, &n), -ENOENT);
	assert_int_equal(rt_program_find("sunrpc", "/nonexistent", &n), -ENOENT);
	assert_int_equal(rt_program_find("4294967296", path, &n), -EINVAL);
	tmp_dir_destroy(&dir);
}

static void urls_and_sizes(void **state)
{
	struct rt_urls urls;
	size_t max;

	(void)state;
	assert_int_equal(rt_urls_parse("local:///a,rdma://0.0.0.0:1,tcp://[::]", &urls, why), 0);
	assert_int_equal(urls.n, 3);
	assert_string_equal(urls.v[1], "rdma://0.0.0.0:1");
	assert_int_equal(rt_urls_parse("", &urls, why), -EINVAL);
	assert_int_equal(rt_urls_parse("local:///a,", &urls, why), -EINVAL);
	assert_int_equal(rt_urls_parse(",local:///a", &urls, why), -EINVAL);
	assert_int_equal(rt_urls_parse("local:///a local:///b x://", &urls, why), 0); /* a path may have blanks */
	assert_int_equal(rt_urls_parse("local:///1,local:///2,local:///3,local:///4,local:///5,local:///6,local:///7,"
				       "local:///8,local:///9", &urls, why), -EINVAL);
	assert_string_equal(why, "more than 8 URLs");
	assert_int_equal(rt_max_parse("4K", &max, why), 0);
	assert_int_equal(max, 4096);
	assert_int_equal(rt_max_parse("64M", &max, why), 0);
	assert_int_equal(rt_max_parse("64M1", &max, why), -EINVAL);
	assert_int_equal(rt_max_parse("4294967296T", &max, why), -EINVAL);
	assert_int_equal(rt_max_parse("-1", &max, why), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines),
		cmocka_unit_test(bad_lines),
		cmocka_unit_test(limits),
		cmocka_unit_test(files),
		cmocka_unit_test(tables),
		cmocka_unit_test(bad_tables),
		cmocka_unit_test(programs),
		cmocka_unit_test(urls_and_sizes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
