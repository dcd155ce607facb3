/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_opt.c - options: hostile numbers, ranges, units, messages, help, command lines
 */
#include <errno.h>
#include <getopt.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/opt.h"

struct values {
	uint8_t small;
	uint16_t port;
	uint32_t bytes, left;
	uint64_t big, ms, word;
	bool yes, no;
	unsigned count;
	char *text;
	char other[8];
};

static int set_other(const struct opt *o, void *to, const char *value, char *why, size_t why_bytes)
{
	struct values *v = to;

	(void)o;
	snprintf(v->other, sizeof(v->other), "%s", value ? value : "-");
	return value && !strcmp(value, "bad") ? snprintf(why, why_bytes, "other is bad"), -E2BIG : 0;
}

static const struct opt opts[] = {
	{ "small", "N", "7", "A small one", NULL, OPT_NUMBER, 's', OPT_AT(struct values, small), .min = 1, .max = 255 },
	{ "port", "N", NULL, "p", NULL, OPT_NUMBER, 0, OPT_AT(struct values, port), .max = 65535 },
	{ "bytes", "BYTES", "64K", "b", NULL, OPT_SIZE, 'b', OPT_AT(struct values, bytes), .min = 4096, .max = 1u << 30,
	  .step = 4096, .given = 1 },
	{ "big", "N", NULL, "b", NULL, OPT_NUMBER, 0, OPT_AT(struct values, big), .max = UINT64_MAX },
	{ "time", "TIME", "0.25s", "t", NULL, OPT_TIME, 0, OPT_AT(struct values, ms), .min = 1, .max = 60000,
	  .unit = NS_PER_MS, .bare = NS_PER_S },
	{ "word", "HOW", "b", "w", "a b cc", OPT_WORD, 0, OPT_AT(struct values, word) },
	{ "yes", NULL, NULL, "y", NULL, OPT_FLAG, 'y', OPT_AT(struct values, yes), .max = 1, .given = 2 },
	{ "off", NULL, NULL, "y", NULL, OPT_FLAG, 0, OPT_AT(struct values, yes), .min = 1, .given = 2 },
	{ "no-good", NULL, NULL, "n", NULL, OPT_FLAG, 0, OPT_AT(struct values, no), .min = 1 },
	{ "count", "N", "auto", "c", "auto", OPT_NUMBER, 0, OPT_AT(struct values, count), .min = 1, .max = 9 },
	{ "text", "FILE", NULL, "t", NULL, OPT_TEXT, 0, OPT_AT(struct values, text) },
	{ "other", "X", NULL, NULL, NULL, OPT_OTHER, 0, .set = set_other },
};

static struct values v;
static char why[256];

static int set(const char *name, const char *value)
{
	const struct opt *o = opt_find(opts, ARRAY_SIZE(opts), name);

	assert_non_null(o);
	why[0] = '\0';
	return opt_set(o, &v, value, why, sizeof(why));
}

static void defaults(void **state)
{
	(void)state;
	memset(&v, 0, sizeof(v));
	v.port = 9;
	v.left = 0x55555555;
	opt_init(opts, ARRAY_SIZE(opts), &v);
	assert_int_equal(v.small, 7);
	assert_int_equal(v.port, 9);
	assert_int_equal(v.bytes, 65536);
	assert_int_equal(v.left, 0x55555555);
	assert_int_equal(v.ms, 250);
	assert_int_equal(v.word, 1);
	assert_int_equal(v.count, 0);
	assert_null(opt_find(opts, ARRAY_SIZE(opts), "no-good"));
	assert_null(opt_find(opts, ARRAY_SIZE(opts), ""));
	assert_null(opt_find(opts, ARRAY_SIZE(opts), "smal"));
}

static void refused(void **state)
{
	static const struct {
		const char *name, *value, *why;
	} rows[] = {
		{ "small", "0", "small=0: must be a number from 1 to 255" },
		{ "small", "256", "small=256: must be a number from 1 to 255" },
		{ "small", "", "small=: must be" },
		{ "small", NULL, "small=: must be" },
		{ "small", "-1", "small=-1: must be" },
		{ "small", "+1", "must be" },
		{ "small", " 1", "must be" },
		{ "small", "1 ", "must be" },
		{ "small", "0x10", "must be" },
		{ "small", "1e1", "must be" },
		{ "small", "4294967297", "must be" },
		{ "small", "18446744073709551617", "must be" },
		{ "port", "64K", "port=64K: must be a number from 0 to 65535" },
		{ "big", "18446744073709551616", "big=18446744073709551616: must be a number" },
		{ "big", "16777216T", "must be a number" },
		{ "bytes", "4095", "bytes=4095: must be a multiple of 4K from 4K to 1G" },
		{ "bytes", "6000", "multiple of 4K" },
		{ "bytes", "2G", "multiple of 4K" },
		{ "bytes", "4KB", "multiple of 4K" },
		{ "bytes", "4X", "multiple of 4K" },
		{ "bytes", "K", "multiple of 4K" },
		{ "time", "0", "time=0: must be a time from 1ms to 60s (default unit s)" },
		{ "time", "61", "must be" },
		{ "time", "1.5ms", "must be" },
		{ "time", "100us", "must be" },
		{ "time", "1m", "must be" },
		{ "time", "1.", "must be" },
		{ "time", ".", "must be" },
		{ "time", "1.0000000000s", "must be" },
		{ "time", "18446744073709551615s", "must be" },
		{ "word", "c", "word=c: must be a, b or cc" },
		{ "word", "", "word=: must be" },
		{ "word", "a b", "must be" },
		{ "yes", "maybe", "yes=maybe: must be yes or no" },
		{ "yes", "", "must be yes or no" },
		{ "good", "maybe", "good=maybe: must be yes or no" },
		{ "count", "0", "count=0: must be auto or a number from 1 to 9" },
		{ "count", "aut", "must be auto" },
		{ "text", "", "text: empty" },
		{ "text", NULL, "text: empty" },
	};
	struct values before;
	char all[300];

	(void)state;
	memset(&v, 0, sizeof(v));
	before = v;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (set(rows[i].name, rows[i].value) != -EINVAL || !strstr(why, rows[i].why))
			fail_msg("%s=%s: '%s'", rows[i].name, rows[i].value ? rows[i].value : "NULL", why);
		assert_memory_equal(&v, &before, sizeof(v));
	}
	assert_int_equal(set("other", "bad"), -E2BIG);
	memset(all, '9', sizeof(all) - 1);
	all[sizeof(all) - 1] = '\0';
	assert_int_equal(set("big", all), -EINVAL);
	assert_non_null(strstr(why, "must be a number"));
}

static void accepted(void **state)
{
	(void)state;
	memset(&v, 0, sizeof(v));
	v.left = v.bytes = 0x55555555;
	assert_int_equal(set("small", "255"), 0);
	assert_int_equal(v.small, 255);
	assert_int_equal(set("port", "1k"), 0);
	assert_int_equal(v.port, 1024);
	assert_int_equal(v.bytes, 0x55555555);
	assert_int_equal(set("bytes", "1G"), 0);
	assert_int_equal(v.bytes, 1u << 30);
	assert_int_equal(v.left, 0x55555555);
	assert_int_equal(set("big", "18446744073709551615"), 0);
	assert_true(v.big == UINT64_MAX);
	assert_int_equal(set("time", "20"), 0);
	assert_int_equal(v.ms, 20000);
	assert_int_equal(set("time", ".5"), 0);
	assert_int_equal(v.ms, 500);
	assert_int_equal(set("time", "7ms"), 0);
	assert_int_equal(v.ms, 7);
	assert_int_equal(set("word", "cc"), 0);
	assert_int_equal(v.word, 2);
	assert_int_equal(set("yes", NULL), 0);
	assert_true(v.yes);
	assert_int_equal(set("off", "on"), 0);
	assert_false(v.yes);
	assert_int_equal(set("off", "0"), 0);
	assert_true(v.yes);
	assert_int_equal(set("good", NULL), 0); /* --no-good */
	assert_true(v.no);
	assert_int_equal(set("good", "true"), 0);
	assert_false(v.no);
	assert_int_equal(set("count", "9"), 0);
	assert_int_equal(set("count", "auto"), 0);
	assert_int_equal(v.count, 0);
	assert_int_equal(set("text", "one"), 0);
	assert_int_equal(set("text", "two"), 0);
	assert_string_equal(v.text, "two");
	free(v.text);
	assert_int_equal(set("other", "x"), 0);
	assert_string_equal(v.other, "x");
}

static void given_once(void **state)
{
	const struct opt *bytes = opt_find(opts, ARRAY_SIZE(opts), "bytes");
	const struct opt *yes = opt_find(opts, ARRAY_SIZE(opts), "yes"), *off = opt_find(opts, ARRAY_SIZE(opts), "off");
	unsigned given = 0;

	(void)state;
	memset(&v, 0, sizeof(v));
	assert_int_equal(opt_set_once(bytes, &v, &given, "8K", why, sizeof(why)), 0);
	assert_int_equal(opt_set_once(bytes, &v, &given, "8192", why, sizeof(why)), 0);
	assert_int_equal(opt_set_once(bytes, &v, &given, "4K", why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "bytes: contradicts"));
	assert_int_equal(v.bytes, 8192);
	assert_int_equal(opt_set_once(off, &v, &given, "no", why, sizeof(why)), 0);
	assert_int_equal(opt_set_once(yes, &v, &given, NULL, why, sizeof(why)), 0);
	assert_int_equal(opt_set_once(off, &v, &given, "yes", why, sizeof(why)), -EINVAL);
	assert_true(v.yes);
	assert_int_equal(given, 3);
}

/* What is printed is parsed to the same value. */
static void printed(void **state)
{
	static const char *const rows[][2] = {
		{ "small", "12" }, { "bytes", "12K" }, { "bytes", "1G" }, { "big", "1048576" }, { "time", "250ms" },
		{ "time", "2s" },  { "word", "cc" },   { "yes", "no" },	   { "off", "yes" },	 { "good", "no" },
		{ "count", "auto" }, { "count", "3" },
	};
	char buf[64], remark[OPT_LIMITS_BYTES];
	struct values other;

	(void)state;
	memset(&v, 0, sizeof(v));
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct opt *o = opt_find(opts, ARRAY_SIZE(opts), rows[i][0]);

		assert_int_equal(set(rows[i][0], rows[i][1]), 0);
		assert_string_equal(opt_print(o, &v, buf, sizeof(buf)), rows[i][1]);
		other = v;
		assert_true(opt_same(o, &v, &other));
		((char *)&other)[o->at]++;
		assert_false(opt_same(o, &v, &other));
	}
	assert_string_equal(opt_remark(&opts[0], remark), "(a number from 1 to 255; default 7)");
	assert_string_equal(opt_remark(opt_find(opts, ARRAY_SIZE(opts), "yes"), remark), "");
	assert_string_equal(opt_remark(opt_find(opts, ARRAY_SIZE(opts), "word"), remark), "(a, b or cc; default b)");
	assert_string_equal(opt_remark(opt_find(opts, ARRAY_SIZE(opts), "port"), remark), "(a number from 0 to 65535)");
}

/* Limits that are longer than the buffer are truncated. */
static void long_limits(void **state)
{
	static const char long_word[] = "a-word-that-is-almost-as-long-as-the-text-of-the-limits-may-be-"
					"a-word-that-is-almost-as-long-as-the-text-of-the-limits-may-be-"
					"a-word-that-is-almost-as-long-as-the-text-of-the-limits-may-be";
	static const enum opt_type types[] = { OPT_WORD, OPT_NUMBER, OPT_SIZE, OPT_TIME };
	struct {
		char limits[OPT_LIMITS_BYTES], after[64];
	} buf;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		struct opt o = { .name = "long", .words = long_word, .type = types[i], .min = 1u << 30,
				 .max = UINT64_C(1) << 40, .step = 1 << 30, .unit = 1, .bare = 1 };

		memset(&buf, 'x', sizeof(buf));
		assert_int_equal(strlen(opt_limits(&o, buf.limits)), types[i] == OPT_WORD ? sizeof(long_word) - 1 :
								     OPT_LIMITS_BYTES - 1);
		for (size_t at = 0; at < sizeof(buf.after); at++)
			assert_int_equal(buf.after[at], 'x');
	}
}

static void help(void **state)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	(void)state;
	opt_help(f, opts, 2, 2, false);
	opt_help(f, opts + 11, 1, 2, false); /* another name of something */
	opt_help(f, opts + 2, 1, 4, true);
	fclose(f);
	assert_string_equal(text, "  -s, --small N        A small one (a number from 1 to 255; default 7)\n"
				  "      --port N         p (a number from 0 to 65535)\n"
				  "    bytes=BYTES          b (a multiple of 4K from 4K to 1G; default 64K)\n");
	free(text);
}

static void hints(void **state)
{
	static const struct {
		const char *name, *hint;
	} rows[] = {
		{ "smal", "small" }, { "small", "small" }, { "SMALL", "small" }, { "smalll", "small" }, { "smlal", "small" },
		{ "smelt", "small" }, { "smolts", "" }, { "mall", "small" }, { "al", "" }, { "ll", "" },
		{ "prt", "port" }, { "pxxt", "" }, { "oprt", "port" }, { "p", "" }, { "", "" }, { "pt", "" },
		{ "god", "good" }, { "oter", "" /* another name of something */ },
	};
	static char long_name[4096];
	char buf[OPT_HINT_BYTES], want[64];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		buf[0] = '\0';
		opt_hint(opts, ARRAY_SIZE(opts), rows[i].name, buf);
		snprintf(want, sizeof(want), *rows[i].hint ? " (did you mean \"%s\"?)" : "%s", rows[i].hint);
		if (strcmp(buf, want) != 0)
			fail_msg("%s: '%s'", rows[i].name, buf);
	}
	opt_hint(opts, ARRAY_SIZE(opts), "port", strcpy(buf, "first"));
	assert_string_equal(buf, "first"); /* of another table */
	memset(long_name, 's', sizeof(long_name) - 1);
	buf[0] = '\0';
	opt_hint(opts, ARRAY_SIZE(opts), long_name, buf);
	assert_string_equal(buf, "");
}

static void command_line(void **state)
{
	static const struct {
		const char *line;
		bool mixed;
		int operand;	  /* index of the first one; -1: refused */
		const char *said; /* the options and values; or the reason */
	} rows[] = {
		{ "", false, 1, "" },
		{ "-s 3 --port=4 x", false, 4, "small 3,port 4," },
		{ "-ys3 x", false, 2, "yes -,small 3," },
		{ "--no-good x --yes", false, 2, "no-good -," },
		{ "x --yes y", true, 2, "yes -," },
		{ "-- --yes", true, 2, "" },
		{ "--nonsense", true, -1, "no such option: --nonsense" },
		{ "--good", true, -1, "no such option: --good" },
		{ "--prot=3", true, -1, "no such option: --prot=3 (did you mean --port?)" },
		{ "--no-god", true, -1, "no such option: --no-god (did you mean --no-good?)" },
		{ "--x", true, -1, "no such option: --x" },
		{ "-z", false, -1, "no such option: -z" },
		{ "--port", false, -1, "--port needs a value" },
		{ "--small=1 -s", false, -1, "-s needs a value" },
		{ "x -ys", true, -1, "-s needs a value" },
		{ "--yes=no", false, -1, "--yes takes no value" },
		{ "x -zq", true, -1, "no such option: -z" },
		{ "x -yz", true, -1, "no such option: -z" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char line[64], said[128] = "", *argv[8] = { line }, *save = NULL;
		const struct opt *o;
		const char *value;
		int argc = 1, rc;

		snprintf(line, sizeof(line), "%s", rows[i].line);
		for (char *t = strtok_r(line, " ", &save); t; t = strtok_r(NULL, " ", &save))
			argv[argc++] = t;
		optind = 0;
		while ((rc = opt_next(opts, ARRAY_SIZE(opts), argc, argv, rows[i].mixed, &o, &value, why,
				      sizeof(why))) > 0)
			snprintf(said + strlen(said), sizeof(said) - strlen(said), "%s %s,", o->name,
				 value ? value : "-");
		if (rows[i].operand < 0) {
			assert_int_equal(rc, -EINVAL);
			assert_string_equal(why, rows[i].said);
		} else {
			assert_int_equal(rc, 0);
			assert_int_equal(optind, rows[i].operand);
			assert_string_equal(said, rows[i].said);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults), cmocka_unit_test(refused), cmocka_unit_test(accepted),
		cmocka_unit_test(given_once), cmocka_unit_test(printed), cmocka_unit_test(long_limits), cmocka_unit_test(help),
		cmocka_unit_test(hints),
		cmocka_unit_test(command_line),
	};

	return cmocka_run_group_tests_name("opt", tests, NULL, NULL);
}
