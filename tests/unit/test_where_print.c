/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_where_print.c - leat stat --latency: sums and text, of samples that are given
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/tools/tool.c"
#include "client/tools/where_print.c"

LOG_DEFINE("test_where_print");

static struct where_span span; /* too large for a stack */

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

static char *printed(void (*print)(FILE *to, const struct where_span *s))
{
	size_t len;
	char *text;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	print(f, &span);
	fclose(f);
	return text;
}

static void expect(void (*print)(FILE *to, const struct where_span *s), const char *want)
{
	char *text = printed(print);

	assert_string_equal(text, want);
	free(text);
}

static const struct leat_where_kind even = {
	.requests = 4,
	.bytes = 4 << 20,
	.ns = { [LEAT_WHERE_WAITING] = 400000, [LEAT_WHERE_DISK] = 800000, [LEAT_WHERE_NET] = 1600000,
		[LEAT_WHERE_BOTH] = 800000, [LEAT_WHERE_FINISH] = 400000 },
};

static void bars(void **state)
{
	static const struct leat_where_kind none, one = { .ns = { [LEAT_WHERE_NET] = 1 } },
						  halves = { .ns = { 0, 99, 0, 0, 101 } },
						  little = { .ns = { 1, 98, 1, 0, 0 } },
						  most = { .ns = { 0, UINT64_MAX, UINT64_MAX, 0, 0 } };
	char buf[WHERE_BAR_COLUMNS + 1];

	(void)state;
	assert_string_equal(where_bar(&even, buf), "wwwww"
						   "DDDDDDDDDD"
						   "NNNNNNNNNNNNNNNNNNNN"
						   "BBBBBBBBBB"
						   "fffff");
	assert_string_equal(where_bar(&none, buf), "");
	assert_string_equal(where_bar(&one, buf), "NNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNN");
	assert_string_equal(where_bar(&halves, buf),
			    "DDDDDDDDDDDDDDDDDDDDDDDDDfffffffffffffffffffffffff");
	assert_string_equal(where_bar(&little, buf),
			    "wDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDD");
	assert_string_equal(where_bar(&most, buf),
			    "DDDDDDDDDDDDDDDDDDDDDDDDDNNNNNNNNNNNNNNNNNNNNNNNNN");
}

static void efficiency(void **state)
{
	static const struct leat_where_kind
		serial = { .bytes = 1000, .ns = { 0, 500, 500, 0, 0 } },
		side_by_side = { .bytes = 1000, .ns = { 0, 100, 0, 900, 0 } },
		waits = { .bytes = 1000, .ns = { 1000, 0, 0, 1000, 0 } },
		direct = { .bytes = 1000, .ns = { 0, 1000, 0, 0, 0 } }, nothing = { .bytes = 7 };
	struct where_rates r = where_rates(&serial);

	(void)state;
	assert_true(r.achieved == 1e9 && r.disk == 2e9 && r.net == 2e9 && r.efficiency == 0.5);
	r = where_rates(&side_by_side);
	assert_true(r.achieved == 1e9 && r.disk == 1e9 && r.net > 1.1e9 && r.efficiency == 1);
	r = where_rates(&waits);
	assert_true(r.achieved == 5e8 && r.disk == 1e9 && r.efficiency == 0.5);
	r = where_rates(&direct);
	assert_true(r.achieved == 1e9 && r.disk == 1e9 && r.net == 0 && r.efficiency == 0);
	r = where_rates(&nothing);
	assert_true(r.achieved == 0 && r.efficiency == 0);
}

static const struct leat_where_bucket times_a[] = { { 1000, 5 }, { 2048, 1 } },
				      times_b[] = { { 992, 15 }, { 2048, 1 }, { 65536, 10 } };

static void between(void **state)
{
	static const struct leat_where_kind none, first_read = { 10, 100, { 1, 2, 3, 4, 5 } },
				    second_read = { 12, 300, { 2, 4, 6, 8, 10 } }, second_write = { 1, 50, { 0, 7, 0, 0, 0 } };
	static const struct leat_where_state new = { "NEW", 0, NULL }, moving_a = { "MOVING", 2, times_a },
					     moving_b = { "MOVING", 3, times_b }, odd = { "O\"\x1b[", 0, NULL };
	static const struct leat_where_state *const states_a[] = { &new, &moving_a }, *const states_b[] = { &moving_b, &odd };
	static const struct leat_where
		first = { .instance = { 1, 2 },
			  .read = &first_read,
			  .write = &none,
			  .nstates = 2,
			  .states = states_a },
		second = { .instance = { 1, 2 },
			   .read = &second_read,
			   .write = &second_write,
			   .nstates = 2,
			   .states = states_b },
		other = { .instance = { 1, 3 } };
	struct where_sample a = { 1000, (struct leat_where *)(uintptr_t)&first, 10, 20, 30, 1 },
			    b = { 500001000, (struct leat_where *)(uintptr_t)&second, 11, 25, 37, 1 },
			    c = { 0, (struct leat_where *)(uintptr_t)&other, 0, 0, 0, 0 };

	(void)state;
	assert_true(where_is_same(&a, &b));
	assert_false(where_is_same(&a, &c));
	where_between(&a, &b, &span);
	assert_true(span.seconds == 0.5);
	assert_int_equal(span.bytes_in, 1);
	assert_int_equal(span.bytes_out, 5);
	assert_int_equal(span.bytes_copied, 7);
	assert_int_equal(span.submit_blocked, 0);
	assert_int_equal(span.read.requests, 2);
	assert_int_equal(span.read.bytes, 200);
	assert_int_equal(span.read.ns[LEAT_WHERE_FINISH], 5);
	assert_int_equal(span.write.ns[LEAT_WHERE_DISK], 7);
	assert_int_equal(span.nstates, 2);
	assert_string_equal(span.states[0].name, "MOVING");
	assert_int_equal(span.states[0].times.count, 20); /* 992 is 1000's bucket */
	assert_int_equal(hist_percentile(&span.states[0].times, 0.25), 992);
	assert_int_equal(hist_percentile(&span.states[0].times, 0.75), 65536);
	assert_string_equal(span.states[1].name, "O??[");
	where_between(&b, &a, &span); /* what falls was not */
	assert_true(span.seconds == 0 && !span.bytes_in && !span.read.requests &&
		    !span.read.ns[LEAT_WHERE_DISK]);
	assert_int_equal(span.states[1].times.count, 0);
}

static void quiet(void **state)
{
	(void)state;
	memset(&span, 0, sizeof(span));
	span.seconds = 2.04;
	span.nstates = 1;
	strcpy(span.states[0].name, "NEW");
	hist_add(&span.states[0].times, 500);
	expect(where_print, "nothing moved in 2.0 s: no file was read or written meanwhile\n");
	span.read.requests = 1; /* at the end of a file, or refused */
	span.read.ns[LEAT_WHERE_FINISH] = 2000;
	expect(where_print, "2.0 s: read 0/s, wrote 0/s, copied 0.000 per byte, 0 submits blocked\n"
			    "READ   ffffffffffffffffffffffffffffffffffffffffffffffffff  2.0 us each, 1 sampled, 0\n"
			    "  w waiting         0.0 %          0.0 us\n"
			    "  D disk only       0.0 %          0.0 us\n"
			    "  N network only    0.0 %          0.0 us\n"
			    "  B both at once    0.0 %          0.0 us\n"
			    "  f finish        100.0 %          2.0 us\n"
			    "WRITE  none was sampled\n"
			    "state               p50 us       p99 us      sampled\n"
			    "NEW                    0.5          0.5            1\n");
	memset(&span.read, 0, sizeof(span.read));
	span.bytes_in = 100;
	expect(where_print, "2.0 s: read 0/s, wrote 49/s, copied 0.000 per byte, 0 submits blocked\n"
			    "READ   none was sampled\n"
			    "WRITE  none was sampled\n"
			    "state               p50 us       p99 us      sampled\n"
			    "NEW                    0.5          0.5            1\n");
}

static void busy(void)
{
	memset(&span, 0, sizeof(span));
	span.seconds = 0.5;
	span.bytes_in = 1 << 20;
	span.bytes_out = 3 << 20;
	span.bytes_copied = 2 << 20;
	span.submit_blocked = 3;
	span.read = even;
	span.write = (struct leat_where_kind){ .requests = 3,
					       .bytes = 3000,
					       .ns = { 3000, 9000, 0, 0, 18000 } };
	span.nstates = 3;
	strcpy(span.states[0].name, "NEW");
	strcpy(span.states[1].name, "RUNNING");
	strcpy(span.states[2].name, "REPLYING");
	for (unsigned i = 0; i < 100; i++)
		hist_add(&span.states[0].times, i < 90 ? 1024 : 1 << 20);
	hist_add(&span.states[2].times, UINT64_C(1) << 40);
}

static void whole(void **state)
{
	(void)state;
	busy();
	expect(where_print,
	       "0.5 s: read 6.0M/s, wrote 2.0M/s, copied 0.500 per byte, 3 submits blocked\n"
	       "READ   wwwwwDDDDDDDDDDNNNNNNNNNNNNNNNNNNNNBBBBBBBBBBfffff  1000.0 us each, 4 sampled, 4.0M\n"
	       "  w waiting        10.0 %        100.0 us\n"
	       "  D disk only      20.0 %        200.0 us\n"
	       "  N network only   40.0 %        400.0 us\n"
	       "  B both at once   20.0 %        200.0 us\n"
	       "  f finish         10.0 %        100.0 us\n"
	       "  1000M/s during a request: 0.60 of the lesser of disk 2.4G/s and network 1.6G/s\n"
	       "WRITE  wwwwwDDDDDDDDDDDDDDDffffffffffffffffffffffffffffff  10.0 us each, 3 sampled, 2.9K\n"
	       "  w waiting        10.0 %          1.0 us\n"
	       "  D disk only      30.0 %          3.0 us\n"
	       "  N network only    0.0 %          0.0 us\n"
	       "  B both at once    0.0 %          0.0 us\n"
	       "  f finish         60.0 %          6.0 us\n"
	       "  95M/s during a request: disk 318M/s; no transfer apart from it and from the reply\n"
	       "state               p50 us       p99 us      sampled\n"
	       "NEW                    1.0       1048.6          100\n"
	       "REPLYING      1099511627.8 1099511627.8            1\n");
}

static void for_programs(void **state)
{
	(void)state;
	busy();
	expect(where_print_json,
	       "{\"seconds\":0.500,\"bytes_in\":1048576,\"bytes_out\":3145728,\"copied_per_byte\":0.5000,"
	       "\"submit_blocked\":3,"
	       "\"read_looked_at\":4,\"read_bytes\":4194304,\"read_waiting_us\":100.000,"
	       "\"read_disk_us\":200.000,\"read_network_us\":400.000,\"read_both_us\":200.000,"
	       "\"read_finish_us\":100.000,\"read_bytes_s\":1048576000,\"read_disk_bytes_s\":2621440000,"
	       "\"read_net_bytes_s\":1747626667,\"read_efficiency\":0.6000,"
	       "\"write_looked_at\":3,\"write_bytes\":3000,\"write_waiting_us\":1.000,"
	       "\"write_disk_us\":3.000,\"write_network_us\":0.000,\"write_both_us\":0.000,"
	       "\"write_finish_us\":6.000,\"write_bytes_s\":100000000,\"write_disk_bytes_s\":333333333,"
	       "\"write_net_bytes_s\":0,\"write_efficiency\":0.0000,"
	       "\"NEW_p50_us\":1.024,\"NEW_p99_us\":1048.576,\"RUNNING_p50_us\":0.000,"
	       "\"RUNNING_p99_us\":0.000,\"REPLYING_p50_us\":1099511627.776,"
	       "\"REPLYING_p99_us\":1099511627.776}\n");
}

/* Every sum the largest there is: text it must be all the same. */
static void absurd(void **state)
{
	char *text;

	(void)state;
	memset(&span, 0xff, sizeof(span));
	span.seconds = 1e-9;
	span.nstates = 1;
	strcpy(span.states[0].name, "NEW");
	span.read.ns[LEAT_WHERE_DISK] = span.read.ns[LEAT_WHERE_BOTH] = 0;
	for (unsigned i = 0; i < LEAT_WHERE_PARTS; i++)
		span.write.ns[i] = i == LEAT_WHERE_DISK;
	text = printed(where_print);
	assert_non_null(strstr(text, "  16E/s during a request: disk 16E/s"));
	free(text);
	free(printed(where_print_json));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bars),	   cmocka_unit_test(efficiency),   cmocka_unit_test(between),
		cmocka_unit_test(quiet),   cmocka_unit_test(whole),	   cmocka_unit_test(for_programs),
		cmocka_unit_test(absurd),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
