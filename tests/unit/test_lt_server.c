/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_lt_server.c - a server whose connections become silent: what its mounts are told
 */
#include "fake_rpc.h"

static unsigned told_away, told_back;

static void on_away(void *ctx, bool away, const char *why)
{
	(void)ctx;
	assert_non_null(why);
	if (away)
		told_away++;
	else
		told_back++;
}

static void expect(unsigned away, unsigned back)
{
	assert_int_equal(told_away, away);
	assert_int_equal(told_back, back);
}

/* Mounts are told when the first connection is silent, and when none is any more. */
static void silent_connections(void **state)
{
	struct leat *m = fake_mount(2);
	struct lt_server *s = m->server;
	struct rpcrdma_clnt other = { .index = 9 };

	(void)state;
	m->away = on_away;
	lt_server_on_away(&s->silence[0], true, "no reply");
	expect(1, 0);
	lt_server_on_away(&s->silence[1], true, "no reply");
	lt_server_on_away(&s->silence[0], false, "");
	expect(1, 0);
	/* a connection to another service that is closed hides nothing */
	lt_server_on_away(&s->silence[LT_CONN_OTHER], true, "no reply");
	lt_server_close(s, &other);
	expect(1, 0);
	lt_server_on_away(&s->silence[1], false, "");
	expect(1, 1);
	/* nor does it stay silent for ever */
	lt_server_on_away(&s->silence[LT_CONN_OTHER], true, "no reply");
	expect(2, 1);
	lt_server_close(s, &other);
	expect(2, 2);
	leat_umount(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(silent_connections),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
