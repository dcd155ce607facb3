/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_volume_nomem.c - the Nth allocation of a manager of a volume fails while it starts or reloads, for N from 1 until
 * none is left to fail
 *
 * Calls of the manager allocate nothing of their own but leases (unit/test_lease_table). After a failure everything is as it was: the directory is not locked,
 * and the old map is in force. The sanitizers see to it that nothing is lost.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "conf.h"
#include "nfs_peer.h"
#include "nomem.h"
#include "server.h"
#include "volumes.h"

/* ---- starting and reloading ---- */

static bool all_starts; /* the next start is tried with each allocation failing */
static unsigned long tries;

int __real_server_start(const struct conf *conf, struct server **ret);
int __wrap_server_start(const struct conf *conf, struct server **ret);

int __wrap_server_start(const struct conf *conf, struct server **ret)
{
	int err;

	for (tries = 1;; tries++) {
		nomem_failed = false;
		nomem_countdown = all_starts ? tries : 0;
		err = __real_server_start(conf, ret);
		nomem_countdown = 0;
		assert_true(!err || nomem_failed);
		if (!nomem_failed)
			return err;
		if (!err) /* what failed was not needed */
			assert_int_equal(server_stop(*ret, 20000), 0);
	}
}

int __real_server_reload(struct server *s, const struct conf *conf, char *why, size_t why_bytes);
int __wrap_server_reload(struct server *s, const struct conf *conf, char *why, size_t why_bytes);

static unsigned long fail_reload;

int __wrap_server_reload(struct server *s, const struct conf *conf, char *why, size_t why_bytes)
{
	int err;

	nomem_failed = false;
	nomem_countdown = fail_reload;
	err = __real_server_reload(s, conf, why, why_bytes);
	nomem_countdown = 0;
	return err;
}

/* ---- the volume ---- */

static struct nfs_peer peer;
static const char *const exports[] = { "rw", NULL };

static void write_map(unsigned version)
{
	char text[256];

	(void)snprintf(text, sizeof(text), "volume = 1122334455667788\nversion = %u\n[server 1]\nurl = tcp://127.0.0.1:1\n"
		       "[server 2]\nurl = tcp://127.0.0.1:2\n",
		       version);
	tmp_dir_write(&peer.dir, "map", text);
}

static void tune(struct conf *conf)
{
	const char *dir = peer.dir.path;
	char arg[1024], why[256];

	export_conf_fini(&conf->exports[0]);
	(void)snprintf(arg, sizeof(arg), "e0=%s/e0,key=%s/key,map=%s/map", dir, dir, dir);
	if (volume_conf_parse(arg, &conf->exports[0], why, sizeof(why)))
		fail_msg("%s: %s", arg, why);
	conf->reactors = 1;
}

static void tune_first(struct conf *conf)
{
	tmp_dir_write(&peer.dir, "key", "volume = 1122334455667788\nkey = 00112233445566778899aabbccddeeff\n");
	assert_int_equal(chmod(tmp_dir_path(&peer.dir, "key"), 0600), 0);
	write_map(1);
	peer.tune = tune;
	tune(conf);
}

static uint64_t version(void)
{
	VOLMAPargs a = { .fh = { .volume_fh_len = peer.root.len, .volume_fh_val = peer.root.data } };
	VOLMAPres res = { 0 };
	uint64_t map;

	assert_int_equal(nfs_peer_rpc(&peer, LEAT_VOLUME, LEAT_VOLUME_V1, VOLUMEPROC_MAP, (xdrproc_t)xdr_VOLMAPargs, &a,
				      (xdrproc_t)xdr_VOLMAPres, &res, NULL, 0), 0);
	assert_int_equal(res.status, VOLUME_OK);
	map = res.VOLMAPres_u.resok.map;
	xdr_free((xdrproc_t)xdr_VOLMAPres, (char *)&res);
	return map;
}

static void starting(void **state)
{
	(void)state;
	all_starts = true;
	nfs_peer_create_tuned(&peer, RPCRDMA_LOCAL, exports, tune_first);
	all_starts = false;
	print_message("%lu allocations\n", tries - 1);
	assert_true(tries > 50);
	assert_int_equal(version(), 1);
	nfs_peer_destroy(&peer);
}

static void reloading(void **state)
{
	char why[512];
	unsigned now = 1;
	int err;

	(void)state;
	nfs_peer_create_tuned(&peer, RPCRDMA_LOCAL, exports, tune_first);
	do {
		write_map(now + 1);
		fail_reload++;
		why[0] = '\0';
		err = nfs_peer_reload(&peer, why, sizeof(why));
		assert_true(!err || (nomem_failed && why[0]));
		now += !err;
		assert_int_equal(version(), now);
	} while (nomem_failed);
	print_message("%lu allocations\n", fail_reload - 1);
	assert_true(fail_reload > 10);
	nfs_peer_destroy(&peer);
}

int main(void)
{
	static const struct CMUnitTest tests[] = { cmocka_unit_test(starting), cmocka_unit_test(reloading) };

	return cmocka_run_group_tests_name("volume nomem", tests, NULL, NULL);
}
