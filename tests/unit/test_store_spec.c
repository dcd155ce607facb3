/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_store_spec.c - the option `store`: what is understood, and what is refused by name
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "data_conf.h"
#include "store_spec.h"

static void understood(void **state)
{
	static const struct {
		const char *text;
		enum store_kind kind;
		const char *said;
	} rows[] = {
		{ "file", STORE_KIND_FILE, "file" },
		{ "null", STORE_KIND_NULL, "null" },
		{ "rate:4M", STORE_KIND_RATE, "rate:4M" },
		{ "sim", STORE_KIND_SIM,
		  "sim:members=1:chunk=64K:rate=100M:latency=0:jitter=0:seed=1" },
		{ "sim:members=8:chunk=64K:rate=50M:latency=100us:jitter=20us:seed=3:fail=100:"
		  "volatile",
		  STORE_KIND_SIM,
		  "sim:members=8:chunk=64K:rate=50M:latency=100us:jitter=20us:seed=3:"
		  "fail=100:volatile" },
		{ "sim:seed=18446744073709551615:fail=18446744073709551615:members=32:chunk=1G:"
		  "rate=1T:latency=10s:jitter=10s:volatile",
		  STORE_KIND_SIM,
		  "sim:members=32:chunk=1G:rate=1T:latency=10s:"
		  "jitter=10s:seed=18446744073709551615:fail=18446744073709551615:"
		  "volatile" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char why[128] = "", said[STORE_SPEC_PRINT_BYTES], again[STORE_SPEC_PRINT_BYTES];
		struct store_spec s, t;

		if (store_spec_parse(rows[i].text, &s, why, sizeof(why)))
			fail_msg("%s: %s", rows[i].text, why);
		assert_int_equal(s.kind, rows[i].kind);
		assert_string_equal(store_spec_print(&s, said, sizeof(said)), rows[i].said);
		/* what is said is understood, and means the same */
		assert_int_equal(store_spec_parse(said, &t, why, sizeof(why)), 0);
		assert_string_equal(store_spec_print(&t, again, sizeof(again)), said);
		assert_true((store_spec_warning(&s) == NULL) == (s.kind == STORE_KIND_FILE));
	}
}

static void refused(void **state)
{
	static const struct {
		const char *text, *names;
	} rows[] = {
		{ "", "none of" },
		{ "disk", "'disk'" },
		{ "null:", "'null:'" },
		{ "file:x", "'file:x'" },
		{ "rate", "'rate'" },
		{ "rate:", "rate=: must be" },
		{ "rate:1", "4K" },
		{ "rate:2T", "1T" },
		{ "sim:", "''" },
		{ "sim:members=0", "members=0: must be a number from 1 to 32" },
		{ "sim:members=33", "members" },
		{ "sim:members", "members=: must be" },
		{ "sim:members=", "members=: must be" },
		{ "sim:chunk=0", "chunk=0: must be a multiple of 4K" },
		{ "sim:chunk=5000", "chunk=5000" },
		{ "sim:chunk=2G", "chunk" },
		{ "sim:rate=0", "rate" },
		{ "sim:latency=5", "latency" },
		{ "sim:latency=11s", "latency" },
		{ "sim:jitter=-1us", "jitter" },
		{ "sim:seed=x", "seed" },
		{ "sim:fail=0", "fail" },
		{ "sim:volatile=perhaps", "volatile=perhaps: must be yes or no" },
		{ "sim:spindles=4", "'spindles'" },
		{ "sim:member=4", "'member' is not a word of it (did you mean \"members\"?)" },
		{ "sim:members=2:members=2", "members is given twice" },
		{ "sim:members=2,chunk=64K", "members" },
		{ "sim:members=2:", "''" },
		{ "sim:volatile::", "''" },
	};
	char why[160], text[400] = "sim:";
	struct store_spec s;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		memset(&s, 0x55, sizeof(s));
		why[0] = '\0';
		if (store_spec_parse(rows[i].text, &s, why, sizeof(why)) != -EINVAL)
			fail_msg("'%s' was taken", rows[i].text);
		if (!strstr(why, rows[i].names) || strncmp(why, "store: ", 7))
			fail_msg("'%s': %s", rows[i].text, why);
		assert_int_equal(s.kind, 0x55555555); /* left alone */
	}
	memset(text + 4, '1', sizeof(text) - 5);
	assert_int_equal(store_spec_parse(text, &s, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "bytes"));
}

static void option(void **state)
{
	char why[160] = "", said[DATA_CONF_PRINT_BYTES];
	struct data_conf a, b;

	(void)state;
	data_conf_init(&a);
	data_conf_init(&b);
	assert_string_equal(data_conf_print(&a, said, sizeof(said)), "");
	assert_int_equal(data_conf_option(&a, "store", "sim:members=2", why, sizeof(why)), 0);
	assert_non_null(strstr(data_conf_print(&a, said, sizeof(said)), "members=2"));
	assert_false(data_conf_same(&a, &b));
	assert_int_equal(data_conf_option(&b, "store", "sim:members=2:seed=1", why, sizeof(why)),
			 0);
	assert_true(data_conf_same(&a, &b));
	/* said twice it has to mean the same */
	assert_int_equal(data_conf_option(&a, "store", "sim:members=2:seed=1", why, sizeof(why)),
			 0);
	assert_int_equal(data_conf_option(&a, "store", "null", why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "contradicts"));
	assert_int_equal(data_conf_option(&a, "store", NULL, why, sizeof(why)), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(understood),
		cmocka_unit_test(refused),
		cmocka_unit_test(option),
	};

	return cmocka_run_group_tests_name("store_spec", tests, NULL, NULL);
}
