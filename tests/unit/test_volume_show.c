/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_volume_show.c - maps and layouts for programs: where bytes lie, and what a manager may not say
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/volume_admin/volume_show.c"

static volume_stripe stripes[VOLUME_SERVERS_MAX];

static VOLLAYOUTresok a_reply(unsigned n)
{
	VOLLAYOUTresok ok = { .epoch = 4, .unit = 1 << 16, .bytes = (5u << 16) + 7 };

	for (unsigned i = 0; i < n; i++)
		stripes[i].server = 10 + i;
	ok.object[0] = (char)0xfe;
	ok.stripes.stripes_len = n;
	ok.stripes.stripes_val = stripes;
	return ok;
}

static void places(void **state)
{
	VOLLAYOUTresok ok = a_reply(3);
	struct leat_volume_place p = { .size = sizeof(p) };
	struct leat_volume_layout *l;

	(void)state;
	assert_int_equal(make_layout(&ok, &l), 0);
	assert_true(l->epoch == 4 && l->bytes == ok.bytes && l->stripe == 1 << 16 && l->nstripes == 3 && l->object[0] == 0xfe);
	assert_true(l->stripes[0]->server == 10 && l->stripes[2]->server == 12);
	assert_true(l->stripes[0]->bytes == 2 << 16 && l->stripes[1]->bytes == 2 << 16 && l->stripes[2]->bytes == (1 << 16) + 7);
	assert_int_equal(leat_volume_find(l, (4 << 16) + 5, &p), 0);
	assert_true(p.stripe == 1 && p.server == 11 && p.off == (1 << 16) + 5 && p.run == (1 << 16) - 5);
	assert_int_equal(leat_volume_find(l, INT64_MAX, &p), 0);
	assert_int_equal(leat_volume_find(l, (uint64_t)INT64_MAX + 1, &p), -EINVAL);
	p.size = 4;
	assert_int_equal(leat_volume_find(l, 0, &p), -EINVAL);
	leat_volume_layout_free(l);
	leat_volume_layout_free(NULL);
}

static void impossible(void **state)
{
	VOLLAYOUTresok ok = a_reply(0);
	struct leat_volume_layout *l = NULL;

	(void)state;
	assert_int_equal(make_layout(&ok, &l), -EREMOTEIO);
	ok = a_reply(2);
	ok.unit = 0;
	assert_int_equal(make_layout(&ok, &l), -EREMOTEIO);
	ok.unit = 3 << 16;
	assert_int_equal(make_layout(&ok, &l), -EREMOTEIO);
	ok = a_reply(2);
	ok.bytes = (uint64_t)INT64_MAX + 1;
	assert_int_equal(make_layout(&ok, &l), -EREMOTEIO);
	ok = a_reply(VOLUME_SERVERS_MAX);
	assert_int_equal(make_layout(&ok, &l), 0);
	assert_int_equal(l->stripes[VOLUME_SERVERS_MAX - 1]->server, 9 + VOLUME_SERVERS_MAX);
	leat_volume_layout_free(l);
}

static void maps(void **state)
{
	char good[] = "tcp://a", options[] = "tcp://b?window=yes", lines[] = "tcp://b\nstate = out", scheme[] = "http://b";
	volume_server servers[2] = { { .id = 1, .url = good }, { .id = 2, .state = VOLUME_SERVER_OUT } };
	VOLMAPresok ok = { .volume = 7, .map = 2, .unit = 1 << 20, .width = 1, .servers = { 1, servers } };
	struct leat_volume_map *m = NULL;

	(void)state;
	assert_int_equal(make_map(&ok, &m), 0);
	assert_true(m->volume == 7 && m->version == 2 && m->stripe == 1 << 20 && m->width == 1 && m->nservers == 1);
	assert_string_equal(m->servers[0]->url, "tcp://a");
	leat_volume_map_free(m);
	ok.servers.servers_len = 2;
	servers[1].url = options;
	assert_int_equal(make_map(&ok, &m), -EREMOTEIO);
	servers[1].url = lines;
	assert_int_equal(make_map(&ok, &m), -EREMOTEIO);
	servers[1].url = scheme;
	assert_int_equal(make_map(&ok, &m), -EREMOTEIO);
	servers[1].url = good;
	assert_int_equal(make_map(&ok, &m), -EREMOTEIO);
	ok.servers.servers_len = 0;
	assert_int_equal(make_map(&ok, &m), -EREMOTEIO);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(places), cmocka_unit_test(impossible), cmocka_unit_test(maps) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
