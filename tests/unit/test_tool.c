/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_tool.c - the pure parts of the leat command: numbers, paths, the histogram
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/hist.h"
#include "client/tools/tool.c"

LOG_DEFINE("test_tool");

bool tool_interrupted(void)
{
	return false;
}

void signals_mount_add(struct leat *m)
{
	(void)m;
}

void signals_mount_del(struct leat *m)
{
	(void)m;
}

static void sizes_for_people(void **state)
{
	char buf[16];

	(void)state;
	assert_string_equal(tool_print_size(0, buf), "0");
	assert_string_equal(tool_print_size(1023, buf), "1023");
	assert_string_equal(tool_print_size(1536, buf), "1.5K");
	assert_string_equal(tool_print_size(UINT64_C(10) << 30, buf), "10G");
	assert_string_equal(tool_print_size(UINT64_MAX, buf), "16E");
}

static void base_names(void **state)
{
	static const char *const table[][2] = {
		{ "/a/b", "b" }, { "/a/b//", "b" }, { "b", "b" }, { "/", "" }, { "", "" }, { "a/", "a" },
	};
	char buf[256];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		assert_string_equal(tool_base_name(table[i][0], buf, sizeof(buf)), table[i][1]);
}

static void paths_grow_and_shrink(void **state)
{
	static char longest[TOOL_PATH_MAX];
	struct tool_path p;
	size_t len;

	(void)state;
	assert_int_equal(tool_path_init(&p, "/a//"), 0);
	assert_string_equal(p.text, "/a");
	len = p.len;
	assert_int_equal(tool_path_push(&p, "b"), 0);
	assert_string_equal(p.text, "/a/b");
	tool_path_cut(&p, len);
	assert_string_equal(p.text, "/a");
	assert_int_equal(tool_path_init(&p, "/"), 0);
	assert_int_equal(tool_path_push(&p, "x"), 0);
	assert_string_equal(p.text, "/x");

	memset(longest, 'l', sizeof(longest) - 1);
	assert_int_equal(tool_path_init(&p, longest), 0);
	assert_int_equal(tool_path_push(&p, "x"), -ENAMETOOLONG);
	assert_int_equal(p.len, sizeof(longest) - 1);
	tool_path_cut(&p, sizeof(longest) - 3);
	assert_int_equal(tool_path_push(&p, "x"), 0);
}

static void urls(void **state)
{
	(void)state;
	assert_true(tool_is_url("leat://h/x"));
	assert_true(tool_is_url("local:///s/x"));
	assert_false(tool_is_url("./leat://h"));
	assert_false(tool_is_url("nfs://h/x"));
	assert_false(tool_is_url("leat:/h"));
}

/* Each bucket's lower edge falls into that bucket, and edges rise. */
static void histogram_edges(void **state)
{
	uint64_t last = 0;

	(void)state;
	for (size_t i = 0; i < HIST_BUCKETS; i++) {
		static struct hist h;
		uint64_t edge;

		memset(&h, 0, sizeof(h));
		h.bucket[i] = h.count = 1;
		edge = hist_percentile(&h, 0.5);
		assert_int_equal(hist_index(edge), i);
		assert_true(!i || edge > last);
		last = edge;
	}
	assert_int_equal(hist_index(UINT64_MAX), HIST_BUCKETS - 1);
}

static void histogram_percentiles(void **state)
{
	static struct hist h, sum;

	(void)state;
	assert_int_equal(hist_percentile(&h, 0.5), 0);
	for (uint64_t ns = 1; ns <= 100000; ns++)
		hist_add(&h, ns);
	hist_merge(&sum, &h);
	hist_merge(&sum, &h);
	assert_int_equal(sum.count, 200000);
	assert_in_range(hist_percentile(&sum, 0.5), 48400, 50000);
	assert_in_range(hist_percentile(&sum, 0.99), 96000, 99000);
	assert_in_range(hist_percentile(&sum, 1.0), 96900, 100000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_for_people),
		cmocka_unit_test(base_names),
		cmocka_unit_test(paths_grow_and_shrink),
		cmocka_unit_test(urls),
		cmocka_unit_test(histogram_edges),
		cmocka_unit_test(histogram_percentiles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
