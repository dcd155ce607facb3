/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_volume_map.c - the map of a striped volume: what is accepted, what is refused and why, what is printed
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "volume_map.h"
#include "volume_status.h"

#define HEAD "volume = 0123456789abcdef\nversion = 7\n"
#define ONE "[server 1]\nurl = tcp://a\n"

static int parse(const char *text, struct volume_map *ret, char why[256])
{
	why[0] = '\0';
	return volume_map_parse(text, strlen(text), ret, why, 256);
}

static void reads(void **state)
{
	struct volume_map m;
	char why[256];

	(void)state;
	assert_int_equal(parse("# a comment\r\n; another one\n\n  volume =0123456789abcdef\nversion= 18446744073709551615\r\n"
			       "[server 9]\n\turl = local:///tmp/s1\nstate = out\n [server\t4294967295] \nurl=leat://[::1]:7\n"
			       "[server 1]\nstate=full\nurl = rdma://host",
			       &m, why), 0);
	assert_true(m.volume == UINT64_C(0x0123456789abcdef) && m.version == UINT64_MAX);
	assert_int_equal(m.n, 3);
	assert_int_equal(m.servers[0].id, 9);
	assert_int_equal(m.servers[0].state, VOLUME_SERVER_OUT);
	assert_string_equal(m.servers[0].url, "local:///tmp/s1");
	assert_int_equal(m.servers[1].id, UINT32_MAX);
	assert_int_equal(m.servers[1].state, VOLUME_SERVER_FULL);
	assert_string_equal(m.servers[1].url, "leat://[::1]:7");
	assert_int_equal(m.servers[2].state, VOLUME_SERVER_FULL);
	assert_ptr_equal(volume_map_find(&m, 1), &m.servers[2]);
	assert_null(volume_map_find(&m, 2));
	volume_map_fini(&m);
	volume_map_fini(&m);
}

static void refuses(void **state)
{
	static const struct {
		const char *text, *why;
	} bad[] = {
		{ "", "it lacks its volume" },
		{ "volume = 0123456789abcdef\n" ONE, "it lacks its version" },
		{ HEAD, "it lacks its servers" },
		{ HEAD ONE "[server 1]\nurl = tcp://b\n", "line 5: there is a server of that number already" },
		{ HEAD "[server 0]\n", "line 3: there are only sections [server N]" },
		{ HEAD "[server 4294967296]\n", "line 3: there are only sections" },
		{ HEAD "[server 1x]\n", "line 3: there are only sections" },
		{ HEAD "[server]\n", "line 3: there are only sections" },
		{ HEAD "[serve 1]\n", "line 3: there are only sections" },
		{ HEAD "[server 1\n", "line 3: a section is [server N]" },
		{ HEAD "[server 1] x\n", "line 3: a section is [server N]" },
		{ HEAD "[server 1]\n[server 2]\nurl = tcp://a\n", "line 4: the section of a server above has no url" },
		{ HEAD "[server 1]\n\n", "line 4: the section of a server above has no url" },
		{ HEAD ONE "[server 2]\nurl = tcp://a\n", "line 6: url: another server has it" },
		{ HEAD ONE "url = tcp://b\n", "line 5: a second url" },
		{ HEAD ONE "state = full\nstate = out\n", "line 6: a second state" },
		{ HEAD ONE "state = in\n", "line 5: state: must be full or out" },
		{ HEAD ONE "version = 8\n", "line 5: a server has url and state" },
		{ HEAD "[server 1]\nurl = http://a\n", "line 4: url: must be" },
		{ HEAD "[server 1]\nurl = leat://\n", "line 4: url: must be" },
		{ HEAD "[server 1]\nurl = tcp://a b\n", "line 4: url: must be" },
		{ HEAD "[server 1]\nurl = tcp://a:99999\n", "line 4: url: must be" },
		{ HEAD "[server 1]\nurl = local://x\n", "line 4: url: must be" },
		{ HEAD "[server 1]\nurl = tcp://\xc3\xa4\n", "line 4: url: must be" },
		{ HEAD "[server 1]\nurl =\n", "line 4: url: must be" },
		{ HEAD "version = 8\n" ONE, "line 3: version: must be once" },
		{ HEAD "volume = 0123456789abcdef\n" ONE, "line 3: volume: must be once" },
		{ "version = 0\n", "line 1: version: must be" },
		{ "version = 18446744073709551616\n", "line 1: version: must be" },
		{ "version = -1\n", "line 1: version: must be" },
		{ "volume = 0000000000000000\n", "line 1: volume: must be" },
		{ "volume = 0123456789abcde\n", "line 1: volume: must be" },
		{ "volume = 0123456789ABCDEF\n", "line 1: volume: must be" },
		{ "volum = 1\n", "line 1: above the servers there are volume and version" },
		{ "volume\n", "line 1: neither a section nor key = value" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct volume_map m = { .n = 77 };
		char why[256];

		assert_int_equal(parse(bad[i].text, &m, why), -EINVAL);
		if (strncmp(why, bad[i].why, strlen(bad[i].why)))
			fail_msg("'%s': %s, not %s", bad[i].text, why, bad[i].why);
		assert_int_equal(m.n, 77);
	}
}

static void long_lines(void **state)
{
	char text[2 * VOLUME_URL_MAX], why[256];
	struct volume_map m;
	int n = snprintf(text, sizeof(text), HEAD "[server 1]\nurl = tcp://");

	(void)state;
	memset(text + n, 'a', sizeof(text) - (size_t)n);
	assert_int_equal(volume_map_parse(text, sizeof(text), &m, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "longer than a line may be"));
	assert_int_equal(volume_map_parse(HEAD "\0" ONE, sizeof(HEAD ONE), &m, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "a NUL"));
	assert_int_equal(volume_map_parse(text, VOLUME_MAP_FILE_MAX + 1, &m, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "longer than 524288 bytes"));
}

/* The largest map, and what is printed is read again. */
static void prints(void **state)
{
	struct volume_map m = { .volume = 0xabc, .version = 3, .n = VOLUME_SERVERS_MAX }, got;
	char why[256], *text, *more;

	(void)state;
	for (unsigned i = 0; i < m.n; i++) {
		m.servers[i].id = 1000 + i;
		m.servers[i].state = i % 3 ? VOLUME_SERVER_FULL : VOLUME_SERVER_OUT;
		assert_true(asprintf(&m.servers[i].url, "tcp://10.0.0.1:%u", 3000 + i) > 0);
	}
	assert_int_equal(volume_map_print(&m, &text), 0);
	assert_int_equal(parse(text, &got, why), 0);
	assert_true(got.volume == m.volume && got.version == m.version && got.n == m.n);
	for (unsigned i = 0; i < m.n; i++) {
		assert_int_equal(got.servers[i].id, m.servers[i].id);
		assert_int_equal(got.servers[i].state, m.servers[i].state);
		assert_string_equal(got.servers[i].url, m.servers[i].url);
	}
	volume_map_fini(&got);
	assert_true(asprintf(&more, "%s" ONE, text) > 0);
	assert_int_equal(parse(more, &got, why), -EINVAL);
	assert_non_null(strstr(why, "more than 256 servers"));
	free(more);
	free(text);
	volume_map_fini(&m);
}

static void names(void **state)
{
	(void)state;
	assert_string_equal(volume_status_name(VOLUME_OK), "VOLUME_OK");
	assert_string_equal(volume_status_name(VOLUME_ERR_EXIST), "VOLUME_ERR_EXIST");
	assert_string_equal(volume_status_name(VOLUME_ERR_EXIST + 1), "?");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads),  cmocka_unit_test(refuses), cmocka_unit_test(long_lines),
		cmocka_unit_test(prints), cmocka_unit_test(names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
