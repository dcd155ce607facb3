/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_server_once.c - whatever is lost when a connection breaks, what a call changes is changed once
 *
 * Every procedure that changes something, over the local fabric and over TCP, with the connection cut
 * at every boundary between messages: before the call is there, behind it, and when the reply was
 * sent and is lost. The client sends it again on its next connection and gets the true result. Where it
 * was executed before the cut, the test has undone it meanwhile, so that a second execution would
 * show in the file system even where it went well.
 */
#include "test_server_once.h"

#define LOST_COMPLETIONS 4 /* one of the first few is that of the reply */
#define ROUNDS_MAX 30u

/* ---- doing them ---- */

/* one deed, with a cut somewhere; the caller hears that it went well, and it was done once */
static void do_it(struct nfs_peer *p, const struct deed *d, nfsstat3 want)
{
	nfsstat3 status;

	undone = 0;
	now = d;
	status = d->call(p);
	now = NULL;
	if (status != want)
		fail_msg("%s: status %u", d->name, status);
	if (want == NFS3_OK && d->is_done() != !undone)
		fail_msg("%s: %s", d->name, undone ? "done twice" : "not done");
	assert_true(undone <= 1);
}

static uint64_t hits(const struct nfs_peer *p)
{
	struct drc_stats s = { 0 };

	drc_stats(p->srv->drc, &s);
	drc_stats(p->srv->drc_writes, &s);
	return s.hits + s.joins;
}

/* ---- over the local fabric ---- */

static void local_send_lost(void **state)
{
	struct ctx *c = *state;

	for (size_t i = 0; i < ARRAY_SIZE(deeds); i++) {
		prepare(&c->peer, &deeds[i]);
		c->hooks->cut_delivers = false;
		c->hooks->cut_after_sends = 1;
		do_it(&c->peer, &deeds[i], NFS3_OK);
		assert_int_equal(downs, 1);
		assert_int_equal(undone, 0);
	}
}

static void local_cut_behind_call(void **state)
{
	struct ctx *c = *state;

	for (size_t i = 0; i < ARRAY_SIZE(deeds); i++) {
		prepare(&c->peer, &deeds[i]);
		c->hooks->cut_delivers = true;
		c->hooks->cut_after_sends = 1;
		do_it(&c->peer, &deeds[i], NFS3_OK);
		assert_int_equal(downs, 1);
	}
}

/* The client misses one of its completions; which of them is the reply depends on the procedure, and on
 * a slow machine the server may not have got so far: then again. Return: was it the reply, once? */
static bool lose_each(struct ctx *c, const struct deed *d)
{
	uint64_t before = hits(&c->peer);
	unsigned n = 0;

	for (uint64_t k = 1; k <= LOST_COMPLETIONS; k++) {
		prepare(&c->peer, d);
		c->hooks->fail_completion = k;
		do_it(&c->peer, d, NFS3_OK);
		c->hooks->fail_completion = 0;
		n += undone;
	}
	return n && hits(&c->peer) != before;
}

static void local_reply_lost(void **state)
{
	struct ctx *c = *state;

	for (size_t i = 0; i < ARRAY_SIZE(deeds); i++) {
		unsigned round = 0;

		while (!lose_each(c, &deeds[i])) {
			if (++round == ROUNDS_MAX)
				fail_msg("%s: no reply was lost", deeds[i].name);
		}
	}
}

/* ---- over TCP ---- */

static void tcp_cut(struct ctx *c, enum tcp_proxy_cut where)
{
	for (size_t i = 0; i < ARRAY_SIZE(deeds); i++) {
		uint64_t before = hits(&c->peer);
		unsigned cuts = atomic_load(&c->proxy.cuts);

		prepare(&c->peer, &deeds[i]);
		atomic_store(&c->proxy.cut, where);
		do_it(&c->peer, &deeds[i], NFS3_OK);
		assert_int_equal(downs, 1);
		assert_int_equal(atomic_load(&c->proxy.cuts), cuts + 1);
		if (where == TCP_PROXY_IN_CALL)
			assert_int_equal(undone, 0);
		if (where == TCP_PROXY_REPLY && (undone != 1 || hits(&c->peer) != before + 1))
			fail_msg("%s: no reply was lost", deeds[i].name);
	}
}

static void tcp_half_a_call(void **state)
{
	tcp_cut(*state, TCP_PROXY_IN_CALL);
}

static void tcp_cut_behind_call(void **state)
{
	tcp_cut(*state, TCP_PROXY_BEHIND_CALL);
}

static void tcp_reply_lost(void **state)
{
	tcp_cut(*state, TCP_PROXY_REPLY);
}

/* Without the cache clients get the result of the second execution: the tests above can fail. */
static void tcp_without_cache(void **state)
{
	static const struct {
		size_t deed;
		nfsstat3 status;
	} rows[] = {
		{ 0, NFS3ERR_NOT_SYNC }, { 3, NFS3ERR_EXIST }, { 5, NFS3ERR_EXIST },
		{ 8, NFS3ERR_NOENT },	 { 9, NFS3ERR_NOENT }, { 10, NFS3ERR_NOENT },
	};
	struct ctx *c = *state;

	assert_null(c->peer.srv->drc);
	c->peer.down = NULL;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct deed *d = &deeds[rows[i].deed];

		prepare(&c->peer, d);
		atomic_store(&c->proxy.cut, TCP_PROXY_REPLY);
		do_it(&c->peer, d, rows[i].status);
	}
}

/* ---- around each test ---- */

static void without_cache(struct conf *conf)
{
	conf->drc_entries = 0;
}

static int setup_without(void **state)
{
	return setup(state, RPCRDMA_TCP, without_cache);
}

#define LOCAL(f) cmocka_unit_test_setup_teardown(f, setup_local, teardown)
#define TCP(f) cmocka_unit_test_setup_teardown(f, setup_tcp, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		LOCAL(local_send_lost),
		LOCAL(local_cut_behind_call),
		LOCAL(local_reply_lost),
		TCP(tcp_half_a_call),
		TCP(tcp_cut_behind_call),
		TCP(tcp_reply_lost),
		cmocka_unit_test_setup_teardown(tcp_without_cache, setup_without, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
