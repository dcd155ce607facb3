/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_volume_reach.c - the manager of a volume finds out which stripe servers are away, and which are back
 *
 * Servers are asked every 20 ms here. What is pending is tried again after 10 minutes, so only a server that is back makes the
 * manager do it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "leat.h"
#include "leat_flow.h"
#include "leat_volume.h"
#include "stripes.h"
#include "volume_pending.h"
#include "volume_rig.h"

LOG_DEFINE("test_volume_reach");

#define ALL 0xfu

static struct leat *m;
static char data[4 * 65536];

/* ---- what a server says of itself ---- */

static atomic_uint liar, lies;     /* id of a server whose replies to INFO are wrong, in each of the ways in turn; 0: none */
static atomic_uint asked;          /* INFOs, of all servers */
static atomic_uint_least64_t room; /* free bytes that server 2 claims; 0: says the truth */

bool_t __real_xdr_STRIPEINFOres(XDR *xdrs, STRIPEINFOres *res);
bool_t __wrap_xdr_STRIPEINFOres(XDR *xdrs, STRIPEINFOres *res);

bool_t __wrap_xdr_STRIPEINFOres(XDR *xdrs, STRIPEINFOres *res)
{
	STRIPEINFOres lie = *res;
	STRIPEINFOresok *ok = &lie.STRIPEINFOres_u.resok;
	int junk = 77;

	if (xdrs->x_op != XDR_ENCODE || res->status != STRIPE_OK)
		return __real_xdr_STRIPEINFOres(xdrs, res);
	atomic_fetch_add(&asked, 1);
	if (ok->server == 2 && atomic_load(&room))
		ok->bytes_free = ok->bytes = atomic_load(&room);
	if (ok->server != atomic_load(&liar))
		return __real_xdr_STRIPEINFOres(xdrs, &lie);
	switch (atomic_fetch_add(&lies, 1) % 4) {
	case 0:
		return xdr_int(xdrs, &junk); /* a status that does not exist */
	case 1:
		ok->server = 1; /* another one */
		break;
	case 2:
		ok->bytes_used = ok->bytes + 1;
		break;
	default:
		ok->bytes_free = ok->bytes + 1;
	}
	return __real_xdr_STRIPEINFOres(xdrs, &lie);
}

/* ---- what the manager says ---- */

struct sights {
	unsigned of[3]; /* by enum leat_volume_reach: bit by server */
};

static int add_sight(void *ctx, const struct leat_volume_seen *seen)
{
	struct sights *s = ctx;

	assert_in_range(seen->server, 1, VOLUME_RIG_SERVERS);
	s->of[seen->reach] |= 1u << (seen->server - 1);
	return 0;
}

static struct sights look(void)
{
	struct sights s = { { 0 } };

	assert_int_equal(leat_volume_servers(m, add_sight, &s), 0);
	return s;
}

/* @away: bit by server; the others are in reach */
static void wait_for(unsigned away)
{
	uint64_t until = clock_now_ns() + 60 * NS_PER_S;
	struct sights s = look();

	while ((s.of[LEAT_VOLUME_AWAY] != away || s.of[LEAT_VOLUME_IN_REACH] != (ALL & ~away)) && clock_now_ns() < until) {
		(void)poll(NULL, 0, 1);
		s = look();
	}
	assert_int_equal(s.of[LEAT_VOLUME_AWAY], away);
	assert_int_equal(s.of[LEAT_VOLUME_IN_REACH], ALL & ~away);
}

/* ---- files ---- */

/* Return: the servers of a new file, bit by server; it is written and read if @writes */
static unsigned servers_of_new_file(bool writes)
{
	static unsigned count;
	struct leat_volume_layout *l;
	struct leat_file *f;
	char name[32], mem[sizeof(data)];
	unsigned servers = 0;

	(void)snprintf(name, sizeof(name), "f%u", count++);
	f = volume_rig_open(m, name, O_RDWR | O_CREAT);
	if (writes) {
		assert_int_equal(leat_pwrite(f, data, sizeof(data), 0), sizeof(data));
		assert_int_equal(leat_pread(f, mem, sizeof(mem), 0), sizeof(mem));
		assert_memory_equal(mem, data, sizeof(mem));
	}
	assert_int_equal(leat_close(f), 0);
	assert_int_equal(leat_volume_layout(m, name, &l), 0);
	for (size_t i = 0; i < l->nstripes; i++)
		servers |= 1u << (l->stripes[i]->server - 1);
	assert_int_equal(l->nstripes, (size_t)__builtin_popcount(servers));
	leat_volume_layout_free(l);
	return servers;
}

static void start(bool tcp, const char *options)
{
	volume_rig_start(tcp, options);
	m = volume_rig_mount("timeo=60s");
	wait_for(0);
}

static int stop(void **state)
{
	(void)state;
	leat_umount(m);
	volume_rig_stop();
	return 0;
}

/* ---- tests ---- */

/* New files avoid a server that is away, and use it again; what is pending for it is done when it is back. */
static void away_and_back(void **state)
{
	struct leat_file *f;

	(void)state;
	start(false, "stripe=64K");
	assert_int_equal(servers_of_new_file(true), ALL);
	f = volume_rig_open(m, "cut", O_RDWR | O_CREAT);
	assert_int_equal(leat_pwrite(f, data, sizeof(data), 0), sizeof(data));
	assert_int_equal(leat_fsync(f), 0);
	volume_rig_end_server(2);
	wait_for(1u << 2);
	for (unsigned i = 0; i < 2 * VOLUME_RIG_SERVERS; i++)
		assert_int_equal(servers_of_new_file(true), ALL & ~(1u << 2));
	assert_int_equal(leat_ftruncate(f, 10), 0);
	assert_int_equal(leat_close(f), 0);
	assert_int_equal(volume_rig_entries("m/pending"), 1);
	volume_rig_start_server(2);
	wait_for(0);
	volume_rig_settle();
	assert_int_equal(servers_of_new_file(true), ALL);
}

/* With fewer stripes than servers, all that are in reach get some. */
static void width(void **state)
{
	unsigned all = 0;

	(void)state;
	start(false, "stripe=64K,width=3");
	volume_rig_end_server(0);
	volume_rig_end_server(3);
	wait_for(1u << 0 | 1u << 3);
	assert_int_equal(servers_of_new_file(true), 1u << 1 | 1u << 2);
	volume_rig_start_server(3);
	volume_rig_start_server(0);
	wait_for(0);
	for (unsigned i = 0; i < VOLUME_RIG_SERVERS; i++)
		all |= servers_of_new_file(true);
	assert_int_equal(all, ALL);
}

/* Of servers of which none is in reach the manager knows nothing better. */
static void all_away(void **state)
{
	(void)state;
	start(false, "stripe=64K");
	for (unsigned i = 0; i < VOLUME_RIG_SERVERS; i++)
		volume_rig_end_server(i);
	wait_for(ALL);
	assert_int_equal(servers_of_new_file(false), ALL);
	for (unsigned i = 0; i < VOLUME_RIG_SERVERS; i++)
		volume_rig_start_server(i);
	wait_for(0);
}

/* The manager starts while a server is away, and so does its first command, which asks all servers for their terms. */
static void away_at_the_start(void **state)
{
	struct leat_file *f;

	(void)state;
	start(false, "stripe=64K");
	f = volume_rig_open(m, "f", O_RDWR | O_CREAT);
	assert_int_equal(leat_pwrite(f, data, sizeof(data), 0), sizeof(data));
	assert_int_equal(leat_fsync(f), 0);
	volume_rig_end_server(1);
	volume_rig_end_manager();
	volume_rig_start_manager();
	assert_int_equal(leat_ftruncate(f, 10), 0);
	assert_int_equal(leat_close(f), 0);
	wait_for(1u << 1);
	assert_int_equal(volume_rig_entries("m/pending"), 1);
	volume_rig_start_server(1);
	volume_rig_settle();
	wait_for(0);
}

/* A server that starts after the manager is not away meanwhile: a file that is created then has all of its stripes. */
static void starts_later(void **state)
{
	const struct volume_times times = volume_times;
	unsigned before;

	(void)state;
	volume_times.server = "60s";
	start(false, "stripe=64K");
	volume_rig_end_manager();
	volume_rig_end_server(1);
	before = atomic_load(&asked);
	volume_rig_start_manager();
	while (atomic_load(&asked) < before + 12) /* the others in four rounds */
		(void)poll(NULL, 0, 1);
	assert_int_equal(look().of[LEAT_VOLUME_AWAY], 0);
	assert_int_equal(look().of[LEAT_VOLUME_UNKNOWN], 1u << 1);
	assert_int_equal(servers_of_new_file(false), ALL);
	volume_rig_start_server(1);
	wait_for(0);
	volume_times = times;
}

/* A server that replies nonsense counts as away. */
static void nonsense(void **state)
{
	(void)state;
	start(false, "stripe=64K");
	atomic_store(&liar, 3);
	wait_for(1u << 2);
	assert_int_equal(servers_of_new_file(true), ALL & ~(1u << 2));
	for (unsigned before = atomic_load(&lies); atomic_load(&lies) < before + 8;) {
		(void)poll(NULL, 0, 1);
		assert_int_equal(look().of[LEAT_VOLUME_AWAY], 1u << 2);
	}
	atomic_store(&liar, 0);
	wait_for(0);
}

/* The URL of a server is that of another one. */
static void another_server(void **state)
{
	char url[160];

	(void)state;
	start(false, "stripe=64K");
	strcpy(url, volume_rig.server_url[1]);
	strcpy(volume_rig.server_url[1], volume_rig.server_url[0]);
	strcpy(volume_rig.server_url[0], url);
	volume_rig_new_map();
	wait_for(1u << 0 | 1u << 1);
	strcpy(volume_rig.server_url[0], volume_rig.server_url[1]);
	strcpy(volume_rig.server_url[1], url);
	volume_rig_new_map();
	wait_for(0);
}

/* A server is found at its new URL. */
static void new_url(void **state)
{
	(void)state;
	start(false, "stripe=64K");
	volume_rig_end_server(3);
	wait_for(1u << 3);
	volume_rig.server_url[3][0] = '\0';
	volume_rig_start_server(3);
	volume_rig_new_map();
	wait_for(0);
	assert_int_equal(servers_of_new_file(true), ALL);
}

/* Listens where server @i was, and says nothing. */
static int listen_silently(unsigned i)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
	const char *port = strrchr(volume_rig.server_url[i], ':');

	assert_non_null(port);
	sin.sin_port = htons((uint16_t)atoi(port + 1));
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)), 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
	assert_int_equal(listen(fd, 64), 0);
	return fd;
}

/* Calls that get no reply hold up neither questions to other servers nor new files. */
static void silent(void **state)
{
	unsigned before;
	int fd;

	(void)state;
	leat_flow_skip_rdma("the server is a TCP socket");
	start(true, "stripe=64K");
	volume_rig_end_server(1);
	fd = listen_silently(1);
	wait_for(1u << 1);
	assert_int_equal(servers_of_new_file(true), ALL & ~(1u << 1));
	before = atomic_load(&asked);
	while (atomic_load(&asked) < before + 9) /* the others are asked on */
		(void)poll(NULL, 0, 1);
	assert_int_equal(look().of[LEAT_VOLUME_AWAY], 1u << 1);
	close(fd);
	volume_rig_start_server(1);
	wait_for(0);
}

/* The rooms are those of the last replies. */
static void by_room(void **state)
{
	uint64_t until = clock_now_ns() + 60 * NS_PER_S;
	unsigned row = 0;

	(void)state;
	start(false, "stripe=64K,width=1,start=free");
	atomic_store(&room, UINT64_MAX / 2);
	while (row < 20 && clock_now_ns() < until)
		row = servers_of_new_file(false) == 1u << 1 ? row + 1 : 0;
	assert_int_equal(row, 20);
	volume_rig_end_server(1);
	wait_for(1u << 1);
	for (unsigned i = 0; i < 20; i++)
		assert_true(servers_of_new_file(false) != 1u << 1);
	atomic_store(&room, 0);
}

/* df shows the sum of the servers; one that is away has no room. */
static void space(void **state)
{
	uint64_t until = clock_now_ns() + 60 * NS_PER_S, others = UINT64_MAX / 8, bytes = 0;
	struct statvfs v, before;

	(void)state;
	start(false, "stripe=64K");
	assert_int_equal(leat_statvfs(m, "/", &before), 0);
	assert_true(before.f_blocks && before.f_bavail && before.f_bavail <= before.f_bfree);
	atomic_store(&room, others);
	while (bytes < others && clock_now_ns() < until) {
		assert_int_equal(leat_statvfs(m, "/", &v), 0);
		bytes = (uint64_t)v.f_bavail * v.f_frsize;
	}
	assert_in_range(bytes, others, 2 * others); /* and those of the others */
	assert_in_range((uint64_t)v.f_blocks * v.f_frsize, others, 2 * others);
	volume_rig_end_server(1);
	wait_for(1u << 1);
	assert_int_equal(leat_statvfs(m, "/", &v), 0);
	assert_true((uint64_t)v.f_bavail * v.f_frsize < others && (uint64_t)v.f_blocks * v.f_frsize >= others);
	atomic_store(&room, 0);
}

#define TEST(name) cmocka_unit_test_teardown(name, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(away_and_back), TEST(width),   TEST(all_away), TEST(away_at_the_start), TEST(starts_later), TEST(nonsense), TEST(another_server),
		TEST(new_url),	     TEST(by_room), TEST(silent),   TEST(space),
	};

	volume_times = (struct volume_times){ .server = "300ms", .probe_ns = 20 * NS_PER_MS, .retry_ns = 600 * NS_PER_S };
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (char)(1 + i % 101);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
