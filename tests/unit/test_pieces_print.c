/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_pieces_print.c - leat trace pieces: sums and text, of traces that are given
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/tools/pieces_print.c"

#define US NS_PER_US

static const struct leat_trace_piece *list[8];

/* As the library does */
static const struct leat_trace_piece **list_of(const struct leat_trace_piece *pieces, size_t n)
{
	for (size_t i = 0; i < n; i++)
		list[i] = &pieces[i];
	return list;
}

static void expect(struct leat_trace *t, const char *want)
{
	size_t len;
	char *text;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	assert_int_equal(trace_print(f, t), 0);
	fclose(f);
	assert_string_equal(text, want);
	free(text);
}

#define HEADINGS "    offset   length       disk      until    network      until  D disk, N network, B both\n"

static void whole(void **state)
{
	struct leat_trace_piece pieces[] = {
		{ 0, 4096, 1 * US, 20 * US, 20 * US, 40 * US },
		{ 4096, 4096, 1 * US, 10 * US, 10 * US, 20 * US },
		{ 8192, 100, 20 * US, 47 * US, 0, 0 }, /* not sent: something failed */
		{ 12288, 4096, 0, 0, 9, 8 },	       /* nonsense */
		{ 16384, 4096, 2 * US, 10 * US, 10 * US + 500, 10 * US + 500 },
	};
	struct leat_trace t = { .xid = 0x1a2b,
				.bytes = 20480,
				.total_ns = 47 * US,
				.npieces = ARRAY_SIZE(pieces),
				.pieces = list_of(pieces, ARRAY_SIZE(pieces)) };

	(void)state;
	expect(&t, "READ of 20480 bytes in 5 pieces, xid 00001a2b; us since it came\n" HEADINGS
		   "      4096     4096        1.0       10.0       10.0       20.0  .DDDDDDDDDBNNNNNNNNNN...........................\n"
		   "     16384     4096        2.0       10.0       10.5       10.5  ..DDDDDDDDDN....................................\n"
		   "         0     4096        1.0       20.0       20.0       40.0  .DDDDDDDDDDDDDDDDDDDBNNNNNNNNNNNNNNNNNNNN.......\n"
		   "      8192      100       20.0       47.0          -          -  ....................DDDDDDDDDDDDDDDDDDDDDDDDDDDD\n"
		   "     12288     4096          -          -          -          -  ................................................\n"
		   "3996 bytes more\n"
		   "total 47.0: disk 46.0, network 30.0, both at once 30.0 (100 % of the lesser)\n");
}

static void one_after_the_other(void **state)
{
	struct leat_trace_piece pieces[] = { { 0, 10, 30, 47, 1, 10 }, { 10, 10, 20, 47, 10, 20 } };
	struct leat_trace t = { .is_write = true,
				.bytes = 20,
				.total_ns = 47,
				.npieces = 2,
				.pieces = list_of(pieces, ARRAY_SIZE(pieces)) };

	(void)state;
	expect(&t, "WRITE of 20 bytes in 2 pieces, xid 00000000; us since it came\n" HEADINGS
		   "         0       10        0.0        0.0        0.0        0.0  .NNNNNNNNNN...................DDDDDDDDDDDDDDDDDD\n"
		   "        10       10        0.0        0.0        0.0        0.0  ..........NNNNNNNNNNBDDDDDDDDDDDDDDDDDDDDDDDDDDD\n"
		   "total 0.0: disk 0.0, network 0.0, both at once 0.0 (0 % of the lesser)\n");
}

static void no_pieces(void **state)
{
	struct leat_trace t = { .bytes = 7, .total_ns = 1500 };

	(void)state;
	expect(&t, "READ of 7 bytes in 0 pieces, xid 00000000; us since it came\n" HEADINGS
		   "7 bytes more\n"
		   "total 1.5: disk 0.0, network 0.0, both at once 0.0 (0 % of the lesser)\n");
}

static void busy(void **state)
{
	struct leat_trace_piece pieces[] = {
		{ 0, 1, 10, 20, 15, 25 }, { 1, 1, 12, 30, 50, 60 }, { 2, 1, 40, 55, 58, 52 /* never */ }
	};
	struct leat_trace t = { .total_ns = 60, .npieces = 3, .pieces = list_of(pieces, ARRAY_SIZE(pieces)) };
	struct trace_busy b;

	(void)state;
	assert_int_equal(trace_busy(&t, &b), 0);
	assert_int_equal(b.disk_ns, 20 + 15);
	assert_int_equal(b.net_ns, 10 + 10);
	assert_int_equal(b.both_ns, 10 + 5);
}

/* Times after the end, or no end at all: nothing is drawn beside the chart. */
static void absurd(void **state)
{
	struct leat_trace_piece p = { 0, 1, 1, UINT64_MAX, UINT64_MAX, UINT64_MAX };
	struct leat_trace t = { .total_ns = 47, .npieces = 1, .pieces = list_of(&p, 1) };
	char buf[TRACE_CHART_COLUMNS + 1];

	(void)state;
	assert_string_equal(trace_chart(&t, &p, buf), ".DDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDB");
	t.total_ns = 0;
	assert_string_equal(trace_chart(&t, &p, buf), "B...............................................");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole), cmocka_unit_test(one_after_the_other),
		cmocka_unit_test(no_pieces), cmocka_unit_test(busy), cmocka_unit_test(absurd),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
