/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_tirpc_share.c - which request is next, when clients do not take their replies
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "svc_int.h"

#define MEM 9000u

static struct rt_conn conns[4]; /* 0 and 1: of one user; 2, 3: of others */

static int set_up(void **state)
{
	(void)state;
	rt_svc.attr.mem_bytes = MEM;
	for (unsigned i = 0; i < 4; i++) {
		const struct rpcrdma_peer peer = { .transport = RPCRDMA_LOCAL, .has_cred = true, .uid = i ? 1000 + i : 1001 };

		conns[i].client = rt_share_get(&peer);
		if (!conns[i].client)
			return -1;
	}
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 4; i++)
		rt_share_put(conns[i].client);
	return !list_is_empty(&rt_svc.clients) || rt_svc.reply_bytes;
}

static struct rt_req *queue_req(struct rt_req *r, unsigned conn)
{
	memset(r, 0, offsetof(struct rt_req, small));
	list_init(&r->link);
	r->conn = &conns[conn];
	rt_share_queue(r);
	return r;
}

/* A reply of @bytes is on its way. */
static void charge(struct rt_req *r, unsigned conn, size_t bytes)
{
	memset(r, 0, offsetof(struct rt_req, small));
	r->conn = &conns[conn];
	r->enc.buf = (uint8_t *)&conns; /* not its own */
	r->enc.cap = bytes;
	rt_share_charge(r);
}

static void connections_of_a_user_are_one_client(void **state)
{
	(void)state;
	assert_ptr_equal(conns[0].client, conns[1].client);
	assert_ptr_not_equal(conns[0].client, conns[2].client);
	assert_ptr_not_equal(conns[2].client, conns[3].client);
}

static void in_order(void **state)
{
	struct rt_req r[2];

	(void)state;
	assert_null(rt_share_next());
	queue_req(&r[0], 2);
	queue_req(&r[1], 0);
	assert_ptr_equal(rt_share_next(), &r[0]);
	rt_share_take(&r[0]);
	assert_ptr_equal(rt_share_next(), &r[1]);
}

/* A client that sends many does not hold the others up. */
static void clients_take_turns(void **state)
{
	static const unsigned of[] = { 0, 1, 0, 2 };
	static const unsigned order[] = { 0, 3, 1, 2 };
	struct rt_req r[4];

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		queue_req(&r[i], of[i]);
	for (unsigned i = 0; i < 4; i++) {
		assert_ptr_equal(rt_share_next(), &r[order[i]]);
		rt_share_take(&r[order[i]]);
	}
	assert_null(rt_share_next());
}

/* Small replies need no memory. */
static void small_replies_are_free(void **state)
{
	struct rt_req r;

	(void)state;
	memset(&r, 0, offsetof(struct rt_req, small));
	r.conn = &conns[0];
	r.enc.buf = (uint8_t *)r.small;
	r.enc.cap = sizeof(r.small);
	rt_share_charge(&r);
	assert_int_equal(rt_svc.reply_bytes, 0);
	rt_share_uncharge(&r);
}

/* One client gets two thirds. Then others are first, whatever their place. */
static void greedy_client_waits(void **state)
{
	struct rt_req out[3], r[3];

	(void)state;
	charge(&out[0], 0, 3000);
	queue_req(&r[0], 1);
	assert_ptr_equal(rt_share_next(), &r[0]);
	charge(&out[1], 1, 3000);
	assert_null(rt_share_next());
	queue_req(&r[1], 2);
	queue_req(&r[2], 3);
	assert_ptr_equal(rt_share_next(), &r[1]);
	/* all is used up: everybody waits, in order */
	charge(&out[2], 2, 3000);
	assert_null(rt_share_next());
	rt_share_uncharge(&out[1]);
	assert_ptr_equal(rt_share_next(), &r[0]);
	rt_share_uncharge(&out[0]);
	rt_share_uncharge(&out[2]);
	assert_ptr_equal(rt_share_next(), &r[0]);
}

/* A client may go while a reply to it is on its way. */
static void reply_outlives_connection(void **state)
{
	const struct rpcrdma_peer peer = { .transport = RPCRDMA_LOCAL, .has_cred = true, .uid = 77 };
	struct rt_conn conn = { .client = rt_share_get(&peer) };
	struct rt_req out = { .conn = &conn, .enc = { .buf = (uint8_t *)&conns, .cap = 100 } };

	(void)state;
	rt_share_charge(&out);
	rt_share_put(conn.client);
	assert_int_equal(rt_svc.reply_bytes, 100);
	rt_share_uncharge(&out);
	assert_int_equal(rt_svc.reply_bytes, 0);
}

#define share_test(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		share_test(connections_of_a_user_are_one_client),
		share_test(in_order), share_test(clients_take_turns),
		share_test(small_replies_are_free),
		share_test(greedy_client_waits),
		share_test(reply_outlives_connection),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
