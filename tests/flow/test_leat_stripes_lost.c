/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_leat_stripes_lost.c - stripe servers that restart, are away, refuse handles, or execute a write late
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/util.h"
#include "file_layout.h"
#include "fs_limits.h"
#include "inside.h"
#include "leat_flow.h"
#include "leat_volume.h"
#include "rpcrdma.h"
#include "volume_rig.h"

LOG_DEFINE("test");

#define UNIT 65536u
#define UNITS 8u
#define BYTES (UNITS * UNIT)

static uint8_t data[BYTES], to[BYTES];
static struct leat *m, *hasty; /* hasty: for calls that get no reply in time; others may take their time */

/* ---- the manager: layouts of a later epoch ---- */

static atomic_uint raised;          /* is added to the epoch of each layout */
static atomic_bool climbs;          /* and grows each time, up to 2 */
static atomic_uint rises;           /* or once, when this number of layouts has been decoded; 0: never */
static struct file_layout made;     /* of the last make_file() */
static atomic_uint layouts;

int __real_file_layout_decode(const struct stripe_keys *keys, uint64_t volume, const struct inode_id *inode,
			      const uint8_t *bytes, size_t n, struct file_layout *ret);
int __wrap_file_layout_decode(const struct stripe_keys *keys, uint64_t volume, const struct inode_id *inode,
			      const uint8_t *bytes, size_t n, struct file_layout *ret);

int __wrap_file_layout_decode(const struct stripe_keys *keys, uint64_t volume, const struct inode_id *inode,
			      const uint8_t *bytes, size_t n, struct file_layout *ret)
{
	int err = __real_file_layout_decode(keys, volume, inode, bytes, n, ret);

	if (err)
		return err;
	if (atomic_load(&climbs) && atomic_load(&raised) < 2)
		atomic_fetch_add(&raised, 1);
	if (atomic_load(&rises) && atomic_fetch_sub(&rises, 1) == 1)
		atomic_fetch_add(&raised, 1);
	ret->epoch += atomic_load(&raised);
	atomic_fetch_add(&layouts, 1);
	return 0;
}

/* ---- the stripe servers: their clock, and writes that wait ---- */

static atomic_uint ahead; /* looks at the clock that find it an hour ahead */

uint64_t __real_stripe_now(void);
uint64_t __wrap_stripe_now(void);

uint64_t __wrap_stripe_now(void)
{
	unsigned n = atomic_load(&ahead);

	while (n && !atomic_compare_exchange_weak(&ahead, &n, n - 1))
		;
	return __real_stripe_now() + (n ? 3600 : 0);
}

static atomic_bool hold; /* the next write */
static sem_t held, let_go;

ssize_t __real_pwritev2(int fd, const struct iovec *iov, int n, off_t off, int flags);
ssize_t __wrap_pwritev2(int fd, const struct iovec *iov, int n, off_t off, int flags);

ssize_t __wrap_pwritev2(int fd, const struct iovec *iov, int n, off_t off, int flags)
{
	if (atomic_exchange(&hold, false)) {
		(void)sem_post(&held);
		while (sem_wait(&let_go))
			;
	}
	return __real_pwritev2(fd, iov, n, off, flags);
}

/* Reactors write to memory themselves: a write that waits would keep all connections of one waiting. */
void __real_fs_limits_find(int dir_fd, bool may_write, struct fs_limits *ret);
void __wrap_fs_limits_find(int dir_fd, bool may_write, struct fs_limits *ret);

void __wrap_fs_limits_find(int dir_fd, bool may_write, struct fs_limits *ret)
{
	__real_fs_limits_find(dir_fd, may_write, ret);
	ret->in_memory = false;
}

/* ---- the stripe servers: a COMMIT that waits for the last report ---- */

static char marker[300];         /* of the lease, which the last report ends */
static atomic_bool waits_for_report;
static atomic_bool has_come;

int __real_fsync(int fd);
int __wrap_fsync(int fd);

static bool has_marker(void)
{
	struct stat st;

	return !lstat(marker, &st);
}

static bool is_of_object(int fd)
{
	char link[32], path[300];
	ssize_t n;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	path[n < 0 ? 0 : n] = '\0';
	return strstr(path, "/objects/");
}

int __wrap_fsync(int fd)
{
	uint64_t until = clock_now_ns() + 10 * NS_PER_S;

	if (is_of_object(fd) && atomic_exchange(&waits_for_report, false)) {
		while (has_marker() && clock_now_ns() < until)
			(void)poll(NULL, 0, 1);
		atomic_store(&has_come, !has_marker());
	}
	return __real_fsync(fd);
}

/* ---- files ---- */

static struct leat_file *open_file(struct leat *at, const char *name, int flags)
{
	struct leat_file *f;

	if (leat_open(at, name, flags, 0644, &f))
		fail_msg("%s", leat_error(at));
	return f;
}

/* The manager reads layouts of other files, too, when their leases lapse. */
static void note_layout(const char *name)
{
	struct leat_volume_layout *l;
	struct leat_volume_map *map;

	assert_int_equal(leat_volume_map(m, &map), 0);
	assert_int_equal(leat_volume_layout(m, name, &l), 0);
	assert_int_equal(l->nstripes, VOLUME_RIG_SERVERS);
	made.volume = map->volume;
	memcpy(made.object, l->object, sizeof(made.object));
	for (unsigned i = 0; i < VOLUME_RIG_SERVERS; i++)
		made.servers[i] = l->stripes[i]->server;
	leat_volume_layout_free(l);
	leat_volume_map_free(map);
}

/* A file with data in all stripes, stable. */
static struct leat_file *make_file(const char *name)
{
	struct leat_file *f = open_file(m, name, O_RDWR | O_CREAT);

	assert_int_equal(leat_pwrite(f, data, BYTES, 0), BYTES);
	assert_int_equal(leat_fsync(f), 0);
	note_layout(name);
	return f;
}

/* The server of a unit, and a unit of a server. */
static unsigned server_of(unsigned unit)
{
	return made.servers[unit % VOLUME_RIG_SERVERS] - 1;
}


static int write_unit(struct leat_file *f, unsigned unit)
{
	return (int)leat_pwrite(f, data + unit * UNIT, UNIT, (uint64_t)unit * UNIT);
}

static int read_unit(struct leat_file *f, unsigned unit)
{
	int n = (int)leat_pread(f, to, UNIT, (uint64_t)unit * UNIT);

	if (n == UNIT)
		assert_memory_equal(to, data + unit * UNIT, UNIT);
	return n;
}

static void expect_error(struct leat *at, const char *part)
{
	if (!strstr(leat_error(at), part))
		fail_msg("%s: not in: %s", part, leat_error(at));
}

/* ---- restarts ---- */

/* A server that restarts may have lost what was not stable: fsync says so, until the file is closed. */
static void restart_loses(void **state)
{
	struct leat_file *f = make_file("lost");

	(void)state;
	assert_int_equal(write_unit(f, 0), UNIT);
	volume_rig_end_server(server_of(0));
	volume_rig_start_server(server_of(0));
	assert_int_equal(leat_fsync(f), -EIO);
	expect_error(m, "lost data");
	assert_int_equal(write_unit(f, 0), UNIT);
	assert_int_equal(leat_fsync(f), -EIO);
	assert_int_equal(leat_close(f), -EIO);
	f = open_file(m, "lost", O_RDWR);
	assert_int_equal(write_unit(f, 0), UNIT);
	assert_int_equal(leat_close(f), 0);
}

/* Verifiers are those of each server. */
static void other_servers_do_not(void **state)
{
	struct leat_file *f = make_file("kept");
	unsigned other;

	(void)state;
	assert_int_equal(write_unit(f, 0), UNIT);
	other = server_of(1);
	volume_rig_end_server(other);
	volume_rig_start_server(other);
	assert_int_equal(leat_fsync(f), 0);
	assert_int_equal(write_unit(f, 1), UNIT);
	assert_int_equal(leat_fsync(f), 0);
	assert_int_equal(leat_close(f), 0);
}

/* Close waits for the slower one of COMMIT and REPORT, not for both in turn. */
static void report_beside_commit(void **state)
{
	struct leat_file *f = make_file("beside");
	int n = snprintf(marker, sizeof(marker), "%s/", tmp_dir_path(&volume_rig.dir, "m/writers"));

	(void)state;
	for (unsigned i = 0; i < sizeof(made.object); i++)
		n += snprintf(marker + n, sizeof(marker) - (size_t)n, "%02x", (uint8_t)made.object[i]);
	assert_int_equal(write_unit(f, 0), UNIT);
	assert_true(has_marker());
	atomic_store(&waits_for_report, true);
	assert_int_equal(leat_close(f), 0);
	assert_true(atomic_load(&has_come));
}

/* ---- away ---- */

static void away(void **state)
{
	struct leat_file *f = make_file("away"), *h = open_file(hasty, "away", O_RDWR);
	unsigned gone = server_of(2);

	(void)state;
	volume_rig_end_server(gone);
	assert_int_equal(read_unit(h, 2), -EIO);
	expect_error(hasty, volume_rig.server_url[gone]);
	expect_error(hasty, "READ at offset 131072");
	assert_int_equal(write_unit(h, 2), -EIO);
	expect_error(hasty, volume_rig.server_url[gone]);
	assert_int_equal(leat_pread(h, to, BYTES, 0), -EIO);
	for (unsigned i = 0; i < UNITS; i++)
		if (i % VOLUME_RIG_SERVERS != 2)
			assert_int_equal(read_unit(f, i), UNIT);
	assert_int_equal(write_unit(f, 1), UNIT);
	assert_int_equal(leat_fsync(f), 0); /* nothing was written there */
	volume_rig_start_server(gone);
	while (read_unit(h, 2) != UNIT) /* it comes back by itself */
		expect_error(hasty, volume_rig.server_url[gone]);
	assert_int_equal(read_unit(f, 2), UNIT);
	assert_int_equal(leat_close(f), 0);
	assert_int_equal(leat_close(h), 0);
}

/* fsync fails while a server is away that has unstable data, and says nothing of a loss. */
static void away_at_fsync(void **state)
{
	struct leat_file *f = make_file("fsync"), *h = open_file(hasty, "fsync", O_RDWR);
	unsigned gone = server_of(3);

	(void)state;
	while (write_unit(h, 3) != UNIT)
		;
	volume_rig_end_server(gone);
	assert_int_equal(leat_fsync(h), -EIO);
	expect_error(hasty, volume_rig.server_url[gone]);
	expect_error(hasty, "COMMIT");
	volume_rig_start_server(gone);
	while (leat_fsync(h) == -EIO && !strstr(leat_error(hasty), "lost data"))
		;
	expect_error(hasty, "lost data"); /* it has restarted */
	assert_int_equal(leat_close(h), -EIO);
	assert_int_equal(leat_close(f), 0);
}

static void note_result(void *to_result, int64_t result)
{
	*(int64_t *)to_result = result;
}

static void wait_result(struct leat *at, const int64_t *result)
{
	while (*result == INT64_MIN)
		(void)leat_poll(leat_session(at), 10);
}

/* A server that does not reply holds its share of the budget, and no more. What waits for that can be cancelled. */
static void slow_alone(void **state)
{
	struct leat *other = volume_rig_mount("budget=4M&stripe_timeo=2s");
	struct leat_file *f = make_file("slow"), *h = open_file(other, "slow", O_RDONLY);
	static uint8_t into[90][UNIT];
	int64_t result[ARRAY_SIZE(into)];
	unsigned gone = server_of(1);

	(void)state;
	assert_int_equal(leat_pread(h, to, BYTES, 0), BYTES);
	volume_rig_end_server(gone);
	for (size_t i = 0; i < ARRAY_SIZE(into); i++) {
		const struct leat_cb cb = { .fn = note_result, .user_data = &result[i] };

		result[i] = INT64_MIN;
		assert_int_equal(leat_aio_pread(h, into[i], UNIT, (i % 2 ? 1 : 5) * UNIT, cb), 0);
	}
	assert_int_equal(read_unit(h, 2), UNIT);
	assert_int_equal(read_unit(h, 0), UNIT);
	assert_int_equal(leat_cancel(other, &result[ARRAY_SIZE(into) - 1]), 0);
	for (unsigned i = 0; i < 100; i++)
		(void)leat_poll(leat_session(other), 0);
	assert_int_equal(result[ARRAY_SIZE(into) - 1], -ECANCELED);
	assert_int_equal(result[0], INT64_MIN); /* it still waits for the server */
	volume_rig_start_server(gone);
	for (size_t i = 0; i + 1 < ARRAY_SIZE(into); i++) {
		wait_result(other, &result[i]);
		assert_true(result[i] == UNIT || result[i] == -EIO);
	}
	assert_int_equal(leat_close(h), 0);
	leat_umount(other);
	assert_int_equal(leat_close(f), 0);
}

/* What waits behind calls to a server that is away does not wait for each of them: it ends together with them. */
static void queue_ends_at_once(void **state)
{
	struct leat *other = volume_rig_mount("budget=4M&stripe_timeo=300ms");
	struct leat_file *f = make_file("queue"), *h = open_file(other, "queue", O_RDONLY);
	static uint8_t into[60][UNIT];
	int64_t result[ARRAY_SIZE(into) + 1];
	unsigned gone[2] = { server_of(1), server_of(2) };

	(void)state;
	assert_int_equal(leat_pread(h, to, BYTES, 0), BYTES);
	volume_rig_end_server(gone[0]);
	volume_rig_end_server(gone[1]);
	for (size_t i = 0; i < ARRAY_SIZE(result); i++) {
		const struct leat_cb cb = { .fn = note_result, .user_data = &result[i] };
		bool is_last = i == ARRAY_SIZE(into);

		if (is_last)
			wait_result(other, &result[0]);
		result[i] = INT64_MIN;
		assert_int_equal(leat_aio_pread(h, is_last ? to : into[i], UNIT, (is_last ? 2 : 1) * UNIT, cb), 0);
	}
	wait_result(other, &result[ARRAY_SIZE(into)]); /* it began when the first ones ended, and waits as long as they did */
	for (size_t i = 0; i < ARRAY_SIZE(result); i++)
		assert_int_equal(result[i], -EIO);
	volume_rig_start_server(gone[0]);
	volume_rig_start_server(gone[1]);
	assert_int_equal(leat_close(h), 0);
	leat_umount(other);
	assert_int_equal(leat_close(f), 0);
}

/* The end of a mount waits for no server longer than it may. */
static void umount_while_away(void **state)
{
	struct leat *other = volume_rig_mount("stripe_timeo=10s");
	struct leat_file *f = make_file("umount"), *h = open_file(other, "umount", O_RDWR);
	unsigned gone = server_of(1);

	(void)state;
	for (unsigned i = 0; i < UNITS; i++)
		assert_int_equal(write_unit(h, i), UNIT);
	volume_rig_end_server(gone);
	assert_int_equal(leat_umount_within(other, 20), -ETIMEDOUT); /* it closes the file */
	volume_rig_start_server(gone);
	assert_int_equal(leat_close(f), 0);
}

/* The paths of local sockets come from the manager: none is used that another user could replace. */
static void sockets_of_others(void **state)
{
	struct leat_file *f, *h;
	struct leat *other;

	(void)state;
	leat_flow_skip_rdma("of local sockets");
	f = make_file("socket");
	other = volume_rig_mount(NULL);
	h = open_file(other, "socket", O_RDONLY);
	assert_int_equal(chmod(volume_rig.dir.path, 0777), 0);
	assert_int_equal(read_unit(h, 0), -EIO);
	expect_error(other, volume_rig.server_url[server_of(0)]);
	expect_error(other, "others could replace the socket");
	assert_int_equal(chmod(volume_rig.dir.path, 0755), 0);
	assert_int_equal(read_unit(h, 0), UNIT);
	assert_int_equal(leat_close(h), 0);
	leat_umount(other);
	assert_int_equal(leat_close(f), 0);
}

/* A commit that waits for a server is cancelled, and may be made again. */
static void fsync_is_cancelled(void **state)
{
	struct leat *other = volume_rig_mount(NULL);
	struct leat_file *f = make_file("stop"), *h = open_file(other, "stop", O_RDWR);
	unsigned gone = server_of(1);
	uint64_t until = clock_now_ns() + 30 * NS_PER_S;
	int64_t result = INT64_MIN;

	(void)state;
	for (unsigned i = 0; i < UNITS; i++)
		assert_int_equal(write_unit(h, i), UNIT);
	volume_rig_end_server(gone);
	assert_int_equal(leat_aio_fsync(h, (struct leat_cb){ .fn = note_result, .user_data = &result }), 0);
	assert_int_equal(leat_cancel(other, &result), 0);
	while (result == INT64_MIN && clock_now_ns() < until) /* before stripe_timeo */
		(void)leat_poll(leat_session(other), 10);
	assert_int_equal(result, -ECANCELED);
	volume_rig_start_server(gone);
	assert_int_equal(leat_fsync(h), -EIO); /* it has restarted */
	expect_error(other, "lost data");
	assert_int_equal(leat_close(h), -EIO);
	leat_umount(other);
	assert_int_equal(leat_close(f), 0);
}

/* A server that the client has never seen */
static void away_from_the_first(void **state)
{
	struct leat_file *f = make_file("first"), *h;
	struct leat *other = volume_rig_mount("stripe_timeo=20ms");
	unsigned gone = server_of(0);
	int64_t result = INT64_MIN;

	(void)state;
	volume_rig_end_server(gone);
	h = open_file(other, "first", O_RDONLY);
	assert_int_equal(read_unit(h, 0), -EIO);
	expect_error(other, volume_rig.server_url[gone]);
	assert_int_equal(leat_close(h), 0);
	leat_umount(other);
	/* one that is patient succeeds as soon as the server is there */
	other = volume_rig_mount(NULL);
	h = open_file(other, "first", O_RDONLY);
	assert_int_equal(leat_aio_pread(h, to, UNIT, 0, (struct leat_cb){ .fn = note_result, .user_data = &result }), 0);
	while (!leat_flow_stat(other, "jukebox_retries") && result == INT64_MIN) /* an attempt has failed */
		(void)leat_poll(leat_session(other), 10);
	assert_int_equal(result, INT64_MIN);
	volume_rig_start_server(gone);
	wait_result(other, &result);
	assert_int_equal(result, UNIT);
	assert_int_equal(leat_close(h), 0);
	leat_umount(other);
	assert_int_equal(leat_close(f), 0);
}

/* A write that timed out is executed late: what the client writes next comes behind it. */
static void late_write(void **state)
{
	struct leat *other = volume_rig_mount("stripe_timeo=1s");
	struct leat_file *f = make_file("late"), *h = open_file(other, "late", O_RDWR);
	struct server *server = volume_rig.server[server_of(0)];
	uint64_t before = server_counters(server, "stripe_lane_waits");
	int64_t result[2] = { INT64_MIN, INT64_MIN };
	char a = 'a', b = 'b', got = 0;

	(void)state;
	assert_int_equal(leat_pread(h, &got, 1, 0), 1); /* it is connected */
	atomic_store(&hold, true);
	for (int i = 0; i < 2; i++) {
		const struct leat_cb cb = { .fn = note_result, .user_data = &result[i] };

		assert_int_equal(leat_aio_pwrite(h, i ? &b : &a, 1, 0, cb), 0);
		if (i)
			break;
		while (sem_trywait(&held))
			(void)leat_poll(leat_session(other), 1);
		wait_result(other, &result[0]);
		assert_int_equal(result[0], -EIO);
	}
	while (server_counters(server, "stripe_lane_waits") == before && result[1] == INT64_MIN)
		(void)leat_poll(leat_session(other), 1);
	assert_int_equal(sem_post(&let_go), 0);
	wait_result(other, &result[1]);
	assert_int_equal(result[1], 1);
	assert_int_equal(leat_close(h), 0);
	leat_umount(other);
	assert_int_equal(leat_pread(f, &got, 1, 0), 1);
	assert_int_equal(got, 'b');
	assert_int_equal(leat_close(f), 0);
}

/* ---- handles that a server refuses ---- */

static const struct stripe_keys keys = { .v = { { UINT64_C(0x0011223344556677), UINT64_C(0x8899aabbccddeeff) } }, .n = 1 };

/* Raises the epoch of one stripe, as a manager does. */
static void fence(unsigned stripe, uint64_t epoch)
{
	struct rpcrdma_clnt_attr attr = { .cred.machine = "manager" };
	struct stripe_command c = { .volume = made.volume, .server = made.servers[stripe], .term = 1,
				    .expiry = (uint64_t)time(NULL) + 60, .number = epoch };
	STRIPEFENCEargs args = { .name.stripe = stripe, .epoch = epoch };
	STRIPESTATres res = { 0 };
	struct rpcrdma_call call = { .prog = LEAT_STRIPES, .vers = LEAT_STRIPES_V1, .proc = STRIPEPROC_FENCE,
				     .encode = (xdrproc_t)xdr_STRIPEFENCEargs, .args = &args,
				     .decode = (xdrproc_t)xdr_STRIPESTATres, .res = &res, .reply_max = 128 };
	struct stripe_order order = { .proc = STRIPEPROC_FENCE, .name.stripe = stripe, .value = epoch };
	struct rpcrdma_domain *domain;
	struct rpcrdma_engine *engine;
	struct rpcrdma_clnt *clnt;

	memcpy(args.name.object, made.object, sizeof(made.object));
	memcpy(order.name.object, made.object, sizeof(made.object));
	stripe_command_make(&keys, &c, &order, args.command);
	assert_int_equal(rpcrdma_addr_parse(volume_rig.server_url[c.server - 1], &attr.addr), 0);
	assert_int_equal(rpcrdma_domain_create(NULL, &domain), 0);
	assert_int_equal(rpcrdma_engine_create(domain, NULL, &engine), 0);
	assert_int_equal(rpcrdma_clnt_open(engine, &attr, &clnt), 0);
	assert_int_equal(rpcrdma_clnt_call_wait(clnt, &call), 0);
	assert_int_equal(res.status, STRIPE_OK);
	rpcrdma_clnt_destroy(clnt);
	rpcrdma_engine_destroy(engine);
	rpcrdma_domain_destroy(domain);
}

static void expired(void **state)
{
	struct leat_file *f = make_file("expired");
	unsigned before;

	(void)state;
	assert_int_equal(read_unit(f, 1), UNIT);
	before = atomic_load(&layouts);
	atomic_store(&ahead, 1);
	assert_int_equal(read_unit(f, 1), UNIT);
	assert_int_equal(atomic_load(&layouts), before + 1);
	atomic_store(&ahead, 1);
	assert_int_equal(write_unit(f, 1), UNIT);
	assert_int_equal(atomic_load(&layouts), before + 2);
	atomic_store(&ahead, 1);
	assert_int_equal(leat_fsync(f), 0);
	assert_int_equal(atomic_load(&layouts), before + 4); /* and for the report */
	atomic_store(&ahead, 2); /* once more is no help */
	assert_int_equal(read_unit(f, 1), -ESTALE);
	expect_error(m, "STRIPE_ERR_EXPIRED");
	atomic_store(&ahead, 0);
	assert_int_equal(leat_close(f), 0);
}

static void fenced(void **state)
{
	struct leat_file *f = make_file("fenced"), *h = open_file(hasty, "fenced", O_RDONLY);
	int64_t result = INT64_MIN;
	uint64_t before;

	(void)state;
	assert_int_equal(read_unit(f, 0), UNIT);
	fence(0, 2);
	assert_int_equal(read_unit(f, 0), -ESTALE); /* the layout is still the old one */
	expect_error(m, "STRIPE_ERR_FENCED");
	assert_int_equal(write_unit(f, 0), -ESTALE);
	assert_int_equal(read_unit(f, 1), UNIT);
	atomic_store(&raised, 1);
	assert_int_equal(read_unit(f, 0), UNIT);
	assert_int_equal(write_unit(f, 0), UNIT);
	/* stripe 1 is not ready for the new epoch: its calls wait for the manager */
	do /* on a slow machine there is no reply at all in so short a time */
		assert_int_equal(read_unit(h, 1), -EIO);
	while (strstr(leat_error(hasty), "no reply in time"));
	expect_error(hasty, "STRIPE_ERR_NOTREADY");
	before = leat_flow_stat(m, "jukebox_retries");
	assert_int_equal(leat_aio_pread(f, to, UNIT, UNIT, (struct leat_cb){ .fn = note_result, .user_data = &result }), 0);
	while (leat_flow_stat(m, "jukebox_retries") == before && result == INT64_MIN)
		(void)leat_poll(leat_session(m), 10);
	assert_int_equal(result, INT64_MIN);
	for (unsigned i = 1; i < VOLUME_RIG_SERVERS; i++)
		fence(i, 2);
	wait_result(m, &result);
	assert_int_equal(result, UNIT);
	assert_int_equal(leat_pread(f, to, BYTES, 0), BYTES);
	assert_memory_equal(to, data, BYTES);
	assert_int_equal(leat_close(h), 0);
	assert_int_equal(leat_close(f), 0);
	atomic_store(&raised, 0);
}

/* Other clients cut the file again and again: each new layout is old already when it is used. */
static void fenced_again(void **state)
{
	struct leat_file *f = make_file("again"), *sync;

	(void)state;
	assert_int_equal(write_unit(f, 0), UNIT);
	for (unsigned i = 0; i < VOLUME_RIG_SERVERS; i++)
		fence(i, 3);
	atomic_store(&climbs, true);
	assert_int_equal(leat_fsync(f), 0);
	assert_int_equal(atomic_load(&raised), 2);
	assert_int_equal(leat_close(f), 0);

	atomic_store(&raised, 0);
	f = open_file(m, "again", O_RDWR); /* begins with an old layout again */
	assert_int_equal(read_unit(f, 0), UNIT);
	assert_int_equal(write_unit(f, 0), UNIT);
	assert_int_equal(leat_close(f), 0);

	atomic_store(&climbs, false);
	atomic_store(&raised, 0);
	sync = open_file(m, "again-sync", O_RDWR | O_CREAT | O_DSYNC);
	assert_int_equal(write_unit(sync, 0), UNIT);
	atomic_store(&climbs, true);
	assert_int_equal(write_unit(sync, 0), UNIT); /* the file was cut before the report */
	assert_int_equal(atomic_load(&raised), 2);
	assert_int_equal(leat_close(sync), 0);
	atomic_store(&climbs, false);
	atomic_store(&raised, 0);
}

/* A reader has learnt of a cut while a writer still has older handles: its report is refused, and then that of the next epoch. */
static void report_of_older_handles(void **state)
{
	struct leat_file *f = make_file("older"), *sync = open_file(m, "older", O_RDWR | O_DSYNC);
	int64_t result = INT64_MIN;

	(void)state;
	assert_int_equal(write_unit(f, 2), UNIT); /* to report */
	atomic_store(&hold, true);
	assert_int_equal(leat_aio_pwrite(sync, data, UNIT, 0, (struct leat_cb){ .fn = note_result, .user_data = &result }), 0);
	while (sem_trywait(&held))
		(void)leat_poll(leat_session(m), 1);
	atomic_store(&raised, 1);
	fence(1, 2);
	assert_int_equal(read_unit(f, 1), UNIT);
	atomic_store(&rises, 3); /* report, layout, report */
	(void)sem_post(&let_go);
	wait_result(m, &result);
	assert_int_equal(result, UNIT);
	atomic_store(&rises, 0);
	for (unsigned i = 0; i < VOLUME_RIG_SERVERS; i++) /* close waits for servers that are not at its epoch */
		fence(i, 1 + atomic_load(&raised));
	(void)leat_close(sync);
	(void)leat_close(f);
	atomic_store(&raised, 0);
}

/* A reader learns of a cut, so the handles to write are not good any more. Then a server gets another address: fsync asks
 * for a layout, which names the newer map, and sends the COMMIT to that address. */
static void moves_before_fsync(void **state)
{
	struct leat_file *f = make_file("moves");
	unsigned moved = server_of(1);

	(void)state;
	assert_int_equal(write_unit(f, 1), UNIT);
	atomic_store(&raised, 1);
	for (unsigned i = 0; i < VOLUME_RIG_SERVERS; i++)
		fence(i, 2);
	assert_int_equal(read_unit(f, 0), UNIT);
	volume_rig_end_server(moved);
	volume_rig.server_url[moved][0] = '\0';
	volume_rig_start_server(moved);
	volume_rig_new_map();
	assert_int_equal(leat_fsync(f), -EIO);
	expect_error(m, "lost data"); /* it has restarted */
	assert_int_equal(leat_close(f), -EIO);
	atomic_store(&raised, 0);
}

static int setup_on(bool tcp)
{
	assert_int_equal(sem_init(&held, 0, 0), 0);
	assert_int_equal(sem_init(&let_go, 0, 0), 0);
	leat_flow_fill(data, sizeof(data), 1);
	volume_rig_start(tcp, "stripe=64K");
	m = volume_rig_mount(NULL);
	hasty = volume_rig_mount("stripe_timeo=20ms");
	return 0;
}

static int setup_local(void **state)
{
	(void)state;
	return setup_on(false);
}

static int setup_tcp(void **state)
{
	(void)state;
	return setup_on(true);
}

static int teardown(void **state)
{
	(void)state;
	leat_umount(hasty);
	leat_umount(m);
	volume_rig_stop();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(restart_loses), cmocka_unit_test(other_servers_do_not), cmocka_unit_test(report_beside_commit),
		cmocka_unit_test(away),
		cmocka_unit_test(away_at_fsync), cmocka_unit_test(away_from_the_first), cmocka_unit_test(late_write),
		cmocka_unit_test(expired),	 cmocka_unit_test(fenced),		    cmocka_unit_test(fenced_again),
		cmocka_unit_test(report_of_older_handles), cmocka_unit_test(moves_before_fsync),
		cmocka_unit_test(umount_while_away),
		cmocka_unit_test(fsync_is_cancelled), cmocka_unit_test(sockets_of_others),
		cmocka_unit_test(slow_alone),
		cmocka_unit_test(queue_ends_at_once),
	};
	const struct CMUnitTest tcp_tests[] = {
		cmocka_unit_test(restart_loses), cmocka_unit_test(away), cmocka_unit_test(away_at_fsync), cmocka_unit_test(fenced),
		cmocka_unit_test(umount_while_away),
	};
	int failed = cmocka_run_group_tests_name("local", tests, setup_local, teardown);

	if (getenv("LEAT_TEST_VARIANT")) /* of nothing that TCP has */
		return failed;
	return failed + cmocka_run_group_tests_name("tcp", tcp_tests, setup_tcp, teardown);
}
