/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_lt_server.c - connections without replies: when the function of leat_set_away() runs
 */
#include "fake_rpc.h"
#include "mntsvc.h"

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

/* Opens a connection as choose.c does. Return: the context of its rpcrdma_clnt_attr.away */
static void *open_conn(struct lt_server *s, struct rpcrdma_clnt *c)
{
	const struct rpcrdma_clnt_attr attr = { 0 };
	struct rpcrdma_clnt *ret;

	fake.created = c;
	assert_int_equal(lt_server_open(s, LT_CONN_OTHER, &attr, &ret), 0);
	assert_ptr_equal(ret, c);
	assert_non_null(fake.attr.away);
	return fake.attr.ctx;
}

static struct leat *watched_mount(void)
{
	struct leat *m = fake_mount(0);

	m->away = on_away;
	m->server->kind = LT_SERVER_WATCHED;
	told_away = told_back = 0;
	return m;
}

/* It runs when the first connection gets no replies, and when all connections get replies again. */
static void silent_connections(void **state)
{
	struct leat *m = watched_mount();
	struct lt_server *s = m->server;
	struct rpcrdma_clnt c[3] = { 0 };
	void *of[3];

	(void)state;
	for (int i = 0; i < 3; i++)
		of[i] = open_conn(s, &c[i]);
	fake.attr.away(of[0], true, "no reply");
	expect(1, 0);
	fake.attr.away(of[1], true, "no reply");
	fake.attr.away(of[0], false, "");
	expect(1, 0);
	/* one that replies is closed, and hides nothing */
	lt_server_close(s, &c[0]);
	expect(1, 0);
	fake.attr.away(of[1], false, "");
	expect(1, 1);
	/* nor is one that is closed silent for ever */
	fake.attr.away(of[2], true, "no reply");
	expect(2, 1);
	assert_int_equal(m->session->servers_away, 1);
	lt_server_close(s, &c[2]);
	expect(2, 2);
	assert_int_equal(m->session->servers_away, 0);
	lt_server_close(s, &c[1]);
	leat_umount(m);
}

/* The place of a closed connection is free again, and there is one for each that is open. */
static void many_connections(void **state)
{
	struct leat *m = watched_mount();
	struct rpcrdma_clnt c[LT_WATCHES] = { 0 };
	void *of[LT_WATCHES];

	(void)state;
	for (int round = 0; round < 3; round++) {
		for (unsigned i = 0; i < LT_WATCHES; i++) {
			of[i] = open_conn(m->server, &c[i]);
			for (unsigned k = 0; k < i; k++)
				assert_ptr_not_equal(of[i], of[k]);
		}
		for (unsigned i = 0; i < LT_WATCHES; i++)
			lt_server_close(m->server, &c[i]);
	}
	leat_umount(m);
}

/* Calls on volumes name the connection at its place that carries them: each connect is another one. */
static void counts_connects(void **state)
{
	const struct rpcrdma_clnt_attr attr = { 0 };
	struct leat *m = fake_mount(0);
	struct rpcrdma_clnt c = { 0 }, *ret;

	(void)state;
	fake.created = &c;
	assert_int_equal(lt_server_open(m->server, 2, &attr, &ret), 0);
	fake.attr.state(fake.attr.ctx, RPCRDMA_CLNT_UP, "");
	assert_int_equal(atomic_load(&m->server->incarnation[2]), 1);
	fake.attr.state(fake.attr.ctx, RPCRDMA_CLNT_DOWN, "");
	fake.attr.state(fake.attr.ctx, RPCRDMA_CLNT_CONNECTING, "");
	assert_int_equal(atomic_load(&m->server->incarnation[2]), 1);
	fake.attr.state(fake.attr.ctx, RPCRDMA_CLNT_UP, "");
	assert_int_equal(atomic_load(&m->server->incarnation[2]), 2);
	lt_server_close(m->server, &c);
	assert_int_equal(lt_server_open(m->server, LT_CONN_OTHER, &attr, &ret), 0);
	fake.attr.state(fake.attr.ctx, RPCRDMA_CLNT_UP, "");
	lt_server_close(m->server, &c);
	for (unsigned i = 0; i < LT_CONNS_MAX; i++)
		assert_int_equal(atomic_load(&m->server->incarnation[i]), i == 2 ? 2 : 0);
	assert_int_not_equal(m->server->lane_instance, 0);
	leat_umount(m);
}

/* It also runs for a mount that joins connections without replies. */
static void joins_a_silent_server(void **state)
{
	const struct rpcrdma_addr named = { .transport = RPCRDMA_TCP, .host = "fake" };
	struct leat_opts *o = leat_opts_create();
	struct leat *m = watched_mount(), *joined;
	struct rpcrdma_clnt c = { 0 };
	char why[256];
	struct lt_url url;
	void *of;

	(void)state;
	leat_set_away(o, on_away, NULL);
	lt_server_share(m->server);
	of = open_conn(m->server, &c);
	fake.attr.away(of, true, "no reply");
	expect(1, 0);
	assert_int_equal(lt_url_parse("tcp://fake/export", NULL, &url, why, sizeof(why)), 0);
	assert_int_equal(lt_handle_create(m->session, &url, &named, o, &joined), 0);
	assert_ptr_equal(joined->server, m->server);
	expect(2, 0);
	fake.attr.away(of, false, "");
	expect(2, 2);
	m->session->is_private = false; /* of both */
	lt_handle_destroy(joined);
	m->session->is_private = true;
	lt_server_close(m->server, &c);
	leat_umount(m);
	leat_opts_destroy(o);
}

static int no_reply(struct rpcrdma_call *call)
{
	(void)call;
	return -ETIMEDOUT;
}

/* The end of a mount waits for no MOUNT service that does not reply. */
static void umount_is_brief(void **state)
{
	struct leat *m = watched_mount();
	struct rpcrdma_clnt c = { 0 };

	(void)state;
	m->server->clnt[0] = &c;
	m->server->clnts = 1;
	m->timeo_ms = 60000;
	m->mounted = true;
	m->mnt_port = 635;
	fake.created = &c;
	fake.answer = no_reply;
	lt_mntsvc_umount(m, 0);
	assert_int_equal(fake.calls, 1); /* NULL */
	assert_in_range(fake.attr.connect_ms, 1, 1000);
	assert_in_range(fake.deadline_ms, 1, 1000);
	leat_umount(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(silent_connections),
		cmocka_unit_test(many_connections),
		cmocka_unit_test(counts_connects),
		cmocka_unit_test(joins_a_silent_server),
		cmocka_unit_test(umount_is_brief),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
