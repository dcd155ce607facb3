/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_reload.c - which options a reload cannot change: all but two, and it says so of each
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "conf_int.h"

#include "server/main/reload.c"

/* as the file calls them, with a value that none has by itself */
static const struct {
	const char *key, *value;
} others[] = {
	{ "listen", "tcp://127.0.0.1:1" },
	{ "reactors", "3" },
	{ "workers", "5" },
	{ "poll", "busy" },
	{ "inline", "8192" },
	{ "credits", "7" },
	{ "private-data", "no" },
	{ "modes", "read-read" },
	{ "drc-entries", "1" },
	{ "drc-bytes", "65536" },
	{ "pinned-max", "1073741824" },
	{ "messages-max", "1073741824" },
	{ "shared-max", "1073741824" },
	{ "registration", "arena" },
	{ "max-connections", "5" },
	{ "srq", "yes" },
	{ "capture", "/file" },
	{ "state-dir", "/dir" },
	{ "sign-handles", "no" },
	{ "everyone", "yes" },
	{ "manage-gids", "yes" },
	{ "unsafe-inv", "yes" },
	{ "rpcbind", "yes" },
};

static void set(struct conf *c, const char *key, const char *value)
{
	const struct opt *o = conf_opt_find(key);
	char why[CONF_WHY_BYTES] = "";

	assert_non_null(o);
	if (opt_set(o, c, value, why, sizeof(why)))
		fail_msg("%s", why);
}

static void each_is_named(void **state)
{
	static struct conf now, then;
	char buf[OTHERS_BYTES];

	(void)state;
	conf_init(&now);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		conf_init(&then);
		set(&then, others[i].key, others[i].value);
		assert_string_equal(name_others(&now, &then, buf), others[i].key);
		conf_fini(&then);
	}
	/* there are no more, except the log levels, and those of the command line only */
	assert_int_equal(ARRAY_SIZE(others) + 2 + 7, CONF_OPTS);
	conf_init(&then);
	set(&then, "quiet", "yes");
	set(&then, "verbose", "yes");
	assert_string_equal(name_others(&now, &then, buf), "");
}

static void all_are_named(void **state)
{
	static struct conf now, then;
	char buf[OTHERS_BYTES], want[1024] = "";

	(void)state;
	conf_init(&now);
	conf_init(&then);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		set(&then, others[i].key, others[i].value);
		strcat(want, i ? ", " : "");
		strcat(want, others[i].key);
	}
	assert_string_equal(name_others(&now, &then, buf), want);
	conf_fini(&then);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_is_named),
		cmocka_unit_test(all_are_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
