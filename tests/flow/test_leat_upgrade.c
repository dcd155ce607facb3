/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_leat_upgrade.c - leat:// takes the local socket of the server that it reached, and no other
 */
#include "test_leat_mount.h"

LOG_DEFINE("test_leat_upgrade");

/* leat:// switches to the local socket of the server that it reached by address. */
static void upgrade(void **state)
{
	struct leat *m = leat_flow_mount(flow.leat_url, "conns=2");

	(void)state;
	assert_string_equal(leat_flow_text(m, LEAT_TEXT_TRANSPORT, 0), "local");
	assert_non_null(strstr(leat_flow_text(m, LEAT_TEXT_CHOSEN, 0), "this host"));
	assert_int_equal(leat_null(m), 0);
	leat_umount(m);
}

/* It does not use the socket of another server at the same path. */
static void no_upgrade_to_another(void **state)
{
	struct leat_flow other;
	char sock[128], moved[128], foreign[128];
	struct leat *m;

	(void)state;
	leat_flow_create(&other);
	snprintf(sock, sizeof(sock), "%s/sock", flow.dir);
	snprintf(moved, sizeof(moved), "%s/sock.away", flow.dir);
	snprintf(foreign, sizeof(foreign), "%s/sock", other.dir);
	assert_int_equal(rename(sock, moved), 0);
	m = leat_flow_mount(flow.leat_url, NULL);
	assert_string_equal(leat_flow_text(m, LEAT_TEXT_TRANSPORT, 0), "tcp");
	assert_non_null(strstr(leat_flow_text(m, LEAT_TEXT_CHOSEN, 0), "no socket"));
	leat_umount(m);
	assert_int_equal(symlink(foreign, sock), 0);
	m = leat_flow_mount(flow.leat_url, NULL);
	assert_string_equal(leat_flow_text(m, LEAT_TEXT_TRANSPORT, 0), "tcp");
	assert_non_null(strstr(leat_flow_text(m, LEAT_TEXT_CHOSEN, 0), "another leatd"));
	leat_umount(m);
	assert_int_equal(unlink(sock), 0);
	assert_int_equal(rename(moved, sock), 0);
	leat_flow_destroy(&other);
}

/* It does not use a socket that another user could have put there, even if the right server replies. */
static void no_upgrade_on_open_paths(void **state)
{
	struct leat *m;

	(void)state;
	assert_int_equal(chmod(flow.dir, 0777), 0);
	m = leat_flow_mount(flow.leat_url, "conns=2");
	assert_string_equal(leat_flow_text(m, LEAT_TEXT_TRANSPORT, 0), "tcp");
	assert_non_null(strstr(leat_flow_text(m, LEAT_TEXT_CHOSEN, 0), "no local (others could replace the socket, by mode 0777"));
	assert_non_null(strstr(leat_flow_text(m, LEAT_TEXT_REFUSED, 0), flow.dir));
	assert_non_null(strstr(leat_flow_text(m, LEAT_TEXT_REFUSED, 0), "by mode 0777 of"));
	leat_umount(m);
	m = leat_flow_mount(flow.local_url, NULL); /* a local:// URL is not checked */
	leat_umount(m);
	assert_int_equal(chmod(flow.dir, 0700), 0);
}

/* The rule holds for every connect: a path that becomes unsafe is not connected to again. */
static void no_reconnect_on_open_paths(void **state)
{
	struct leat *m = leat_flow_mount(flow.leat_url, "timeo=300&retry=soft");

	(void)state;
	assert_string_equal(leat_flow_text(m, LEAT_TEXT_TRANSPORT, 0), "local");
	assert_int_equal(leat_null(m), 0);
	assert_int_equal(chmod(flow.dir, 0777), 0);
	leat_flow_stop(&flow);
	leat_flow_start(&flow);
	assert_int_equal(leat_null(m), -ETIMEDOUT);
	assert_int_equal(chmod(flow.dir, 0700), 0);
	while (leat_null(m))
		;
	leat_umount(m);
}

static atomic_bool mute_ends;

static void *mute_main(void *server)
{
	while (!atomic_load(&mute_ends))
		(void)raw_server_poll(server);
	return NULL;
}

/* A transport whose peer accepts and never replies delays the mount by seconds, not by its time-out. */
static void no_upgrade_to_the_mute(void **state)
{
	static struct raw_server mute;
	struct rpcrdma_domain *domain;
	struct rpcrdma_engine *engine;
	char sock[128], moved[128];
	pthread_t thread;
	struct leat *m;

	(void)state;
	snprintf(sock, sizeof(sock), "%s/sock", flow.dir);
	snprintf(moved, sizeof(moved), "%s/sock.away", flow.dir);
	assert_int_equal(rename(sock, moved), 0);
	assert_int_equal(rpcrdma_domain_create(NULL, &domain), 0);
	assert_int_equal(rpcrdma_engine_create(domain, NULL, &engine), 0);
	raw_server_open(&mute, engine, sock, &(struct raw_server_opts){ 0 });
	atomic_store(&mute_ends, false);
	assert_int_equal(pthread_create(&thread, NULL, mute_main, &mute), 0);
	(void)alarm(40); /* the mount would wait for 60 s */
	m = leat_flow_mount(flow.leat_url, NULL);
	(void)alarm(0);
	assert_string_equal(leat_flow_text(m, LEAT_TEXT_TRANSPORT, 0), "tcp");
	/* test_variant_modes: a client that requires modes disconnects at an accept that offers none */
	assert_non_null(strstr(leat_flow_text(m, LEAT_TEXT_REFUSED, 0), getenv("LEAT_TEST_MODES") ? "does not offer" : "timed out"));
	leat_umount(m);
	atomic_store(&mute_ends, true);
	pthread_join(thread, NULL);
	assert_int_equal(mute.conns, 1);
	raw_server_close(&mute);
	rpcrdma_engine_destroy(engine);
	rpcrdma_domain_destroy(domain);
	assert_int_equal(rename(moved, sock), 0);
}

static void upgrade_to_a_users(void **state)
{
	struct leat *m;

	(void)state;
	if (geteuid() != 0)
		skip(); /* only root can give a directory away */
	assert_int_equal(chown(flow.dir, 1001, 1001), 0);
	m = leat_flow_mount(flow.leat_url, NULL);
	assert_string_equal(leat_flow_text(m, LEAT_TEXT_TRANSPORT, 0), "tcp");
	assert_non_null(strstr(leat_flow_text(m, LEAT_TEXT_REFUSED, 0), "uid 1001 could replace the socket"));
	leat_umount(m);
	m = leat_flow_mount(flow.leat_url, "socket_user=1001");
	assert_string_equal(leat_flow_text(m, LEAT_TEXT_TRANSPORT, 0), "local");
	leat_umount(m);
	assert_int_equal(chown(flow.dir, 0, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(upgrade),
		cmocka_unit_test(no_upgrade_to_another),
		cmocka_unit_test(no_upgrade_on_open_paths),
		cmocka_unit_test(no_reconnect_on_open_paths),
		cmocka_unit_test(no_upgrade_to_the_mute),
		cmocka_unit_test(upgrade_to_a_users),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
