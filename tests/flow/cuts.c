/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * cuts.c - the power of a leatd in this process is cut, and what was promised must be there
 *
 * Operation:  clients change names and write records through a leatd whose disk forgets what was not
 *             synced (forgetful.h), until the power goes at some sync. Then a leatd starts on what has
 *             lasted. See tests/powercut/cut.h for what is expected.
 * Memory:     each cut has its own server and clients.
 * Threads:    one per client, and the server's.
 * Errors:     asserted with cmocka, on the thread of the test.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "conf.h"
#include "cuts.h"
#include "forgetful.h"
#include "nfs_peer.h"
#include "tests/powercut/cut.h"

#define THREADS 3u
#define OPS 100u      /* of a thread, at most */
#define SYNCS_MAX 300u /* before the power goes */
#define FAIL 2u	      /* one in FAIL syncs of a file with unsynced data fails */

static const char *const options[] = { "rw,no_root_squash", NULL };

struct client {
	pthread_t thread;
	struct cut_expect e;
	struct cut_conn *conn;
	uint64_t seed;
	bool may_fail;
	int err;
	char why[CUT_WHY_BYTES];
};

static void nothing(void *arg)
{
	(void)arg;
}

/* The log is cut_expect itself: the record counts if the power was on when it was written. */
static bool put(struct cut_log *log, const struct cut_op *op)
{
	(void)log;
	(void)op;
	return forgetful_do(nothing, NULL);
}

static void *client_main(void *arg)
{
	struct client *c = arg;
	struct cut_log log = { .put = put };

	c->err = cut_drive(c->conn, &c->e, &log, c->seed, OPS, c->may_fail, c->why);
	return NULL;
}

static void connect_all(struct nfs_peer *p, struct client *v, unsigned round)
{
	char url[256];

	for (unsigned i = 0; i < THREADS; i++) {
		/* local, TCP in turn; the round in the stamp, as XIDs may come again */
		if (i % 2)
			(void)snprintf(url, sizeof(url), "tcp://127.0.0.1:%u", p->tcp.port);
		else
			(void)snprintf(url, sizeof(url), "local://%s/sock", p->dir.path);
		assert_int_equal(cut_connect(url, "/e0", round * 16 + i, &v[i].conn), 0);
	}
}

static void disconnect_all(struct client *v)
{
	for (unsigned i = 0; i < THREADS; i++) {
		cut_disconnect(v[i].conn);
		v[i].conn = NULL;
	}
}

static void run_until_cut(struct client *v, uint64_t seed, bool may_fail)
{
	for (unsigned i = 0; i < THREADS; i++) {
		cut_expect_init(&v[i].e, i);
		v[i].seed = seed * 31 + i + 1;
		v[i].may_fail = may_fail;
		assert_int_equal(pthread_create(&v[i].thread, NULL, client_main, &v[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(v[i].thread, NULL);
	forgetful_cut();
	for (unsigned i = 0; i < THREADS; i++) {
		if (v[i].err)
			fail_msg("%s", v[i].why);
	}
}

/* what lasts takes the place of what was there, and is served again */
static void restart(struct nfs_peer *p)
{
	char live[256], left[256];

	(void)snprintf(live, sizeof(live), "%s", tmp_dir_path(&p->dir, "e0"));
	(void)snprintf(left, sizeof(left), "%s", tmp_dir_path(&p->dir, "e0.live"));
	nfs_peer_disconnect(p);
	nfs_peer_stop(p);
	assert_int_equal(rename(live, left), 0);
	forgetful_restore(live);
	forgetful_stop();
	nfs_peer_start(p);
	nfs_peer_connect(p, RPCRDMA_LOCAL, 0);
}

static void tune(struct conf *conf)
{
	/* quicker to start than sixteen; no file system has more than half of them */
	conf->workers = 2 * THREADS;
}

struct totals {
	uint64_t acked, syncs, failed;
};

static void one_cut(unsigned round, bool may_fail, struct totals *t)
{
	uint64_t seed = (round + 1) * UINT64_C(0x9e3779b97f4a7c15);
	struct client v[THREADS] = { 0 };
	char why[CUT_WHY_BYTES] = "";
	unsigned broken = 0;
	struct nfs_peer p;

	nfs_peer_create_tuned(&p, RPCRDMA_LOCAL, options, tune);
	connect_all(&p, v, round);
	forgetful_start(tmp_dir_path(&p.dir, "e0"), (unsigned)(seed >> 40) % SYNCS_MAX,
			may_fail ? FAIL : 0, seed);
	run_until_cut(v, seed, may_fail);
	disconnect_all(v);
	t->syncs += forgetful_syncs();
	t->failed += forgetful_failed();
	restart(&p);
	connect_all(&p, v, round);
	for (unsigned i = 0; i < THREADS && !broken; i++) {
		broken = cut_recheck(v[i].conn, &v[i].e, why);
		if (!broken)
			broken = cut_verify(&v[i].e, tmp_dir_path(&p.dir, "e0"), why);
		t->acked += v[i].e.acked;
	}
	if (broken)
		fail_msg("cut %u: %s", round, why);
	disconnect_all(v);
	for (unsigned i = 0; i < THREADS; i++)
		cut_expect_fini(&v[i].e);
	nfs_peer_destroy(&p);
}

void cuts(unsigned from, unsigned to, bool may_fail)
{
	struct totals t = { 0 };

	for (unsigned i = from; i < to; i++)
		one_cut(i, may_fail, &t);
	print_message("%u cuts, %llu operations answered, %llu syncs, %llu of them lost data\n",
		      to - from, (unsigned long long)t.acked, (unsigned long long)t.syncs,
		      (unsigned long long)t.failed);
	assert_true(t.acked > 10 * (to - from));
	assert_int_equal(t.failed > 0, may_fail);
}
