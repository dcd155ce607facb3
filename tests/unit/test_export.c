/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_export.c - export options, client lists, and which export a path or an id means
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "export.h"
#include "tmp_dir.h"

static struct rpcrdma_peer peer_at(const char *addr, uint16_t port)
{
	struct rpcrdma_peer p = { .transport = RPCRDMA_TCP };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };

	if (inet_pton(AF_INET, addr, &in.sin_addr) == 1) {
		memcpy(&p.addr, &in, sizeof(in));
	} else {
		assert_int_equal(inet_pton(AF_INET6, addr, &in6.sin6_addr), 1);
		memcpy(&p.addr, &in6, sizeof(in6));
	}
	return p;
}

static struct rpcrdma_peer peer_of(const char *addr)
{
	return peer_at(addr, 700);
}

static void cidrs(void **state)
{
	static const char *const bad[] = { "",		"/8",	       "10.0.0.0/33",
					   "10.0.0.0/", "10.0.0.0/+8", "10.0.0/8",
					   "::1/129",	"10.0.0.0/8x", "host",
					   "fd00::/-1" };
	static const struct {
		const char *net, *addr;
		bool in;
	} rows[] = {
		{ "10.0.0.0/8", "10.255.1.2", true },
		{ "10.0.0.0/8", "11.0.0.0", false },
		{ "10.1.2.3", "10.1.2.3", true },
		{ "10.1.2.3", "10.1.2.4", false },
		{ "10.1.2.128/25", "10.1.2.127", false },
		{ "10.1.2.128/25", "10.1.2.129", true },
		{ "0.0.0.0/0", "1.2.3.4", true },
		{ "0.0.0.0/0", "::1", false },
		{ "10.0.0.0/8", "::ffff:10.1.1.1", true },
		{ "fd00::/8", "fdff::1", true },
		{ "fd00::/8", "fe80::1", false },
		{ "::/0", "2001:db8::1", true },
		{ "2001:db8::/33", "2001:db8:8000::1", false },
	};
	struct peer_net c;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(peer_net_parse(bad[i], &c), -EINVAL);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct rpcrdma_peer p = peer_of(rows[i].addr);
		struct export_conf conf;

		export_conf_init(&conf);
		assert_int_equal(peer_net_parse(rows[i].net, &conf.peers.nets[0]), 0);
		conf.peers.n = 1;
		if (peers_admit(&conf.peers, &p) !=
		    (rows[i].in ? PEER_ADMITTED : PEER_NOT_ADDRESS))
			fail_msg("%s in %s", rows[i].addr, rows[i].net);
	}
}

static void without_clients(void **state)
{
	static const struct {
		const char *addr;
		bool in;
	} rows[] = { { "127.0.0.1", true },	   { "127.9.9.9", true },  { "::1", true },
		     { "::ffff:127.0.0.1", true }, { "128.0.0.1", false }, { "::2", false } };
	struct rpcrdma_peer local = { .transport = RPCRDMA_LOCAL };
	struct export_conf conf;

	(void)state;
	export_conf_init(&conf);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct rpcrdma_peer p = peer_of(rows[i].addr);

		assert_int_equal(peers_admit(&conf.peers, &p),
				 rows[i].in ? PEER_ADMITTED : PEER_NOT_ADDRESS);
	}
	assert_int_equal(peers_admit(&conf.peers, &local), PEER_ADMITTED);
	assert_int_equal(peer_net_parse("10.0.0.0/8", &conf.peers.nets[0]), 0);
	conf.peers.n = 1;
	assert_int_equal(peers_admit(&conf.peers, &local), PEER_ADMITTED);
}

static void ports(void **state)
{
	static const struct {
		enum rpcrdma_transport transport;
		const char *addr;
		uint16_t port;
		bool secure;
		enum peer_verdict verdict;
	} rows[] = {
		{ RPCRDMA_TCP, "127.0.0.1", 1023, true, PEER_ADMITTED },
		{ RPCRDMA_TCP, "127.0.0.1", 1024, true, PEER_NOT_PORT },
		{ RPCRDMA_TCP, "127.0.0.1", 40000, true, PEER_NOT_PORT },
		{ RPCRDMA_TCP, "127.0.0.1", 40000, false, PEER_ADMITTED },
		{ RPCRDMA_TCP, "::1", 1023, true, PEER_ADMITTED },
		{ RPCRDMA_TCP, "::1", 1024, true, PEER_NOT_PORT },
		{ RPCRDMA_TCP, "::ffff:127.0.0.1", 1024, true, PEER_NOT_PORT },
		{ RPCRDMA_TCP, "::ffff:127.0.0.1", 1, true, PEER_ADMITTED },
		/* the address is what counts first */
		{ RPCRDMA_TCP, "192.0.2.1", 700, true, PEER_NOT_ADDRESS },
		{ RPCRDMA_TCP, "192.0.2.1", 1024, true, PEER_NOT_ADDRESS },
		/* a user of the device chooses the port */
		{ RPCRDMA_RDMA, "127.0.0.1", 40000, true, PEER_ADMITTED },
		{ RPCRDMA_RDMA, "192.0.2.1", 700, true, PEER_NOT_ADDRESS },
	};
	struct rpcrdma_peer local = { .transport = RPCRDMA_LOCAL };
	struct export_conf conf;
	char why[80];

	(void)state;
	export_conf_init(&conf);
	assert_int_equal(conf.peers.secure, geteuid() == 0);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct rpcrdma_peer p = peer_at(rows[i].addr, rows[i].port);

		p.transport = rows[i].transport;
		conf.peers.secure = rows[i].secure;
		if (peers_admit(&conf.peers, &p) != rows[i].verdict)
			fail_msg("row %zu: %s port %u", i, rows[i].addr, rows[i].port);
		if (rows[i].verdict != PEER_NOT_PORT)
			continue;
		(void)peer_verdict_text(PEER_NOT_PORT, &p, why, sizeof(why));
		if (!strstr(why, rows[i].port == 1024 ? "port 1024 is" : "port 40000 is") ||
		    !strstr(why, "(option insecure)"))
			fail_msg("row %zu: %s", i, why);
	}
	conf.peers.secure = true;
	assert_int_equal(peers_admit(&conf.peers, &local), PEER_ADMITTED);
}

static void options(void **state)
{
	struct tmp_dir t;
	struct export_conf c;
	char arg[512], why[256];

	(void)state;
	tmp_dir_create(&t);
	snprintf(arg, sizeof(arg),
		 "/data=%s,ro,all_squash,anonuid=7,anongid=8,clients=10.0.0.0/8,"
		 "fd00::/8,192.168.1.1,rw=no,async",
		 t.path);
	assert_int_equal(export_conf_parse(arg, &c, why, sizeof(why)), 0);
	assert_string_equal(c.name, "/data");
	assert_true(c.ro);
	assert_true(c.async);
	assert_int_equal(c.squash, EXPORT_SQUASH_ALL);
	assert_int_equal(c.anonuid, 7);
	assert_int_equal(c.anongid, 8);
	assert_int_equal(c.peers.n, 3);
	export_conf_fini(&c);

	snprintf(arg, sizeof(arg), "%s,ro,no_root_squash", t.path);
	assert_int_equal(export_conf_parse(arg, &c, why, sizeof(why)), 0);
	assert_true(c.ro);
	assert_false(c.async);
	assert_int_equal(c.squash, EXPORT_SQUASH_NONE);
	assert_int_equal(c.peers.n, 0);
	assert_int_equal(c.peers.secure, geteuid() == 0);
	assert_string_equal(c.name, c.path);
	export_conf_fini(&c);

	snprintf(arg, sizeof(arg), "%s,insecure,secure=no", t.path);
	assert_int_equal(export_conf_parse(arg, &c, why, sizeof(why)), 0);
	assert_false(c.peers.secure);
	export_conf_fini(&c);
	snprintf(arg, sizeof(arg), "%s,secure,insecure=no", t.path);
	assert_int_equal(export_conf_parse(arg, &c, why, sizeof(why)), 0);
	assert_true(c.peers.secure);
	export_conf_fini(&c);
	tmp_dir_destroy(&t);
}

static void refused(void **state)
{
	static const char *const bad[] = { "",
					   "=",
					   "/x=",
					   "/nonexistent-directory",
					   "x=/tmp",
					   "//x=/tmp",
					   "/x=/tmp,wro",
					   "/x=/tmp,anonuid",
					   "/x=/tmp,anonuid=-1",
					   "/x=/tmp,anonuid=4294967295",
					   "/x=/tmp,clients=",
					   "/x=/tmp,clients=foo",
					   "/x=/tmp,10.0.0.0/8",
					   "/x=/tmp,ro=maybe",
					   "/x=/tmp,path=/etc",
					   "/x=/tmp,ro,rw",
					   "/x=/tmp,rw,ro",
					   "/x=/tmp,ro=yes,ro=no",
					   "/x=/tmp,sync,async",
					   "/x=/tmp,async=soon",
					   "/x=/tmp,root_squash,no_root_squash",
					   "/x=/tmp,all_squash,root_squash",
					   "/x=/tmp,secure,insecure",
					   "/x=/tmp,insecure=yes,secure=yes",
					   "/x=/tmp,secure=perhaps",
					   "/x=/tmp,anonuid=1,anonuid=2",
					   "/x=/tmp,anongid=1,anongid=2",
					   "/x=/dev/null" };
	struct export_conf c;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		char why[256] = "";

		if (export_conf_parse(bad[i], &c, why, sizeof(why)) >= 0 || !*why)
			fail_msg("'%s' was not refused with a reason", bad[i]);
	}
}

static void table(void **state)
{
	struct export_conf confs[3];
	struct export_table t;
	struct tmp_dir dir;
	const char *rest;
	char why[256];

	(void)state;
	tmp_dir_create(&dir);
	for (int i = 0; i < 3; i++) {
		export_conf_init(&confs[i]);
		confs[i].path = dir.path;
	}
	confs[0].name = (char[]){ "/a" };
	confs[1].name = (char[]){ "/a/b" };
	confs[2].name = (char[]){ "/" };
	assert_int_equal(export_table_open(confs, 3, &t, why, sizeof(why)), 0);
	assert_ptr_equal(export_find_path(&t, "/a", &rest), &t.v[0]);
	assert_string_equal(rest, "");
	assert_ptr_equal(export_find_path(&t, "/a/c", &rest), &t.v[0]);
	assert_string_equal(rest, "c");
	assert_ptr_equal(export_find_path(&t, "/a//b/", &rest), &t.v[0]);
	assert_ptr_equal(export_find_path(&t, "/a/b/c/d", &rest), &t.v[1]);
	assert_string_equal(rest, "c/d");
	assert_ptr_equal(export_find_path(&t, "/ab", &rest), &t.v[2]);
	assert_string_equal(rest, "ab");
	assert_null(export_find_path(&t, "a", &rest));
	assert_null(export_find_path(&t, "", &rest));
	for (int i = 0; i < 3; i++)
		assert_ptr_equal(export_find_id(&t, t.v[i].id), &t.v[i]);
	assert_null(export_find_id(&t, t.v[0].id + 1));
	export_table_close(&t);

	confs[2].name = confs[0].name;
	assert_int_equal(export_table_open(confs, 3, &t, why, sizeof(why)), -EEXIST);
	confs[2].name = (char[]){ "/c" };
	confs[2].path = (char[]){ "/nonexistent-directory" };
	assert_int_equal(export_table_open(confs, 3, &t, why, sizeof(why)), -ENOENT);
	assert_non_null(strstr(why, "/nonexistent-directory"));
	tmp_dir_destroy(&dir);
}

/* how data travels: words, sizes, and what does not go together */
static void data_options(void **state)
{
	static const struct {
		const char *options; /* of an export of / */
		const char *why;     /* NULL: fine */
	} rows[] = {
		{ "overlap=off", NULL },
		{ "overlap=streams", NULL },
		{ "overlap=ordered,grain=4K", NULL },
		{ "overlap=streams,grain=8192,streams=8,chunk=64K", NULL },
		{ "overlap=streams,overlap=streams", NULL },
		{ "overlap=streams,overlap=off", "contradicts" },
		{ "overlap", "must be off, ordered or streams" },
		{ "overlap=on", "must be off, ordered or streams" },
		{ "grain=4096", "without overlap" },
		{ "overlap=streams,grain=4095", "multiple of 4K from 4K to 1M" },
		{ "overlap=streams,grain=0", "multiple of 4K from 4K to 1M" },
		{ "overlap=streams,grain=6000", "multiple of 4K from 4K to 1M" },
		{ "overlap=streams,grain=2M", "multiple of 4K from 4K to 1M" },
		{ "overlap=streams,grain=99999999999999999999", "multiple of 4K from 4K to 1M" },
		{ "overlap=streams,grain=", "multiple of 4K from 4K to 1M" },
		{ "overlap=streams,grain", "multiple of 4K from 4K to 1M" },
		{ "overlap=streams,streams=0", "from 1 to 32" },
		{ "overlap=streams,streams=33", "from 1 to 32" },
		{ "overlap=streams,chunk=64K", "without streams" },
		{ "overlap=streams,streams=2,chunk=20K", NULL },
		{ "overlap=streams,streams=2,chunk=20K,grain=8K", "not a multiple of grain" },
		{ "overlap=streams,grain=8K,grain=4K", "contradicts" },
		{ "store=null,read=cached", "another store than files" },
		{ "read=cached,write=cached", NULL },
		{ "read=fast", "read=fast: must be cached, direct or auto" },
		{ "write=auto", "write=auto: must be cached or direct" },
		{ "read=cached,read=direct", "contradicts" },
#ifdef HAVE_AIO
		{ "read=auto,write=direct,overlap=streams", NULL },
#else
		{ "read=auto", "without libaio" },
		{ "write=direct", "without libaio" },
#endif
	};
	struct export_conf c;
	char arg[128], why[256];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		(void)snprintf(arg, sizeof(arg), "/,%s", rows[i].options);
		if (!rows[i].why) {
			assert_int_equal(export_conf_parse(arg, &c, why, sizeof(why)), 0);
			export_conf_fini(&c);
			continue;
		}
		why[0] = '\0';
		assert_int_equal(export_conf_parse(arg, &c, why, sizeof(why)), -EINVAL);
		if (!strstr(why, rows[i].why))
			fail_msg("%s: '%s' does not say '%s'", arg, why, rows[i].why);
	}
}

/* The message names the nearest option of both tables. */
static void unknown_options(void **state)
{
	static const char *const rows[][2] = {
		{ "sevure", "no such export option: 'sevure' (did you mean \"secure\"?)" },
		{ "overlop=off", "no such export option: 'overlop' (did you mean \"overlap\"?)" },
		{ "nothing-near", "no such export option: 'nothing-near'" },
	};
	struct export_conf c;
	char arg[128], why[256];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		(void)snprintf(arg, sizeof(arg), "/,%s", rows[i][0]);
		assert_true(export_conf_parse(arg, &c, why, sizeof(why)) < 0);
		assert_non_null(strstr(why, rows[i][1]));
		assert_true(i < 2 || !strstr(why, "did you mean"));
	}
}

/* a 32nd of each member's part, in whole blocks */
static void grain_by_itself(void **state)
{
	static const struct {
		uint32_t streams, total, grain;
	} rows[] = {
		{ 8, 1 << 20, 4096 }, { 1, 1 << 20, 32768 }, { 2, 1 << 20, 16384 },
		{ 1, 4096, 4096 },    { 1, 1, 4096 },	     { 1, 300000, 12288 },
		{ 32, 1 << 20, 4096 }, { 1, 4 << 20, 65536 }, { 1, 0, 4096 },
	};
	struct data_conf d;

	(void)state;
	data_conf_init(&d);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		d.streams = rows[i].streams;
		assert_int_equal(data_conf_grain(&d, rows[i].total), rows[i].grain);
	}
	d.grain = 8192;
	assert_int_equal(data_conf_grain(&d, 1 << 20), 8192);
}

static void data_options_are_told(void **state)
{
	struct export_conf a, b;
	char why[256], how[DATA_CONF_PRINT_BYTES];

	(void)state;
	assert_int_equal(export_conf_parse("/,overlap=streams,grain=8K", &a, why, sizeof(why)), 0);
	assert_int_equal(export_conf_parse("/,overlap=streams", &b, why, sizeof(why)), 0);
	assert_string_equal(data_conf_print(&a.data, how, sizeof(how)),
			    ", overlap streams, grain 8K");
	assert_false(data_conf_same(&a.data, &b.data));
	assert_true(data_conf_same(&a.data, &a.data));
	export_conf_fini(&a);
	export_conf_fini(&b);
}

/* A reload reports an export whose options have changed. */
static void changes_are_told(void **state)
{
	struct export_conf a, b;
	char why[256];

	(void)state;
	assert_int_equal(export_conf_parse("/,anonuid=5", &a, why, sizeof(why)), 0);
	assert_true(export_conf_same(&a, &a));
	b = a;
	b.anonuid = 6;
	assert_false(export_conf_same(&a, &b));
	b = a;
	b.peers.secure = !a.peers.secure;
	assert_false(export_conf_same(&a, &b));
	/* of a volume only */
	b = a;
	b.start = EXPORT_START_FREE;
	assert_false(export_conf_same(&a, &b));
	b = a;
	b.stripe_timeo_ms++;
	assert_false(export_conf_same(&a, &b));
	b = a;
	b.map = (char[]){ "/map" };
	assert_false(export_conf_same(&a, &b));
	export_conf_fini(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cidrs),   cmocka_unit_test(without_clients),
		cmocka_unit_test(ports),   cmocka_unit_test(options),
		cmocka_unit_test(refused),
		cmocka_unit_test(table),
		cmocka_unit_test(data_options),
		cmocka_unit_test(data_options_are_told),
		cmocka_unit_test(changes_are_told),
		cmocka_unit_test(unknown_options),
		cmocka_unit_test(grain_by_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
