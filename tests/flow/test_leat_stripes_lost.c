/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_leat_stripes_lost.c - stripe servers that restart, are away, or execute a write late
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/util.h"
#include "inside.h"
#include "test_leat_stripes_lost.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(restart_loses), cmocka_unit_test(other_servers_do_not), cmocka_unit_test(report_beside_commit),
		cmocka_unit_test(away),
		cmocka_unit_test(away_at_fsync), cmocka_unit_test(away_from_the_first), cmocka_unit_test(late_write),
		cmocka_unit_test(umount_while_away),
		cmocka_unit_test(fsync_is_cancelled), cmocka_unit_test(sockets_of_others),
		cmocka_unit_test(slow_alone),
		cmocka_unit_test(queue_ends_at_once),
	};
	const struct CMUnitTest tcp_tests[] = {
		cmocka_unit_test(restart_loses), cmocka_unit_test(away), cmocka_unit_test(away_at_fsync),
		cmocka_unit_test(umount_while_away),
	};
	int failed = cmocka_run_group_tests_name("local", tests, setup_local, teardown);

	if (getenv("LEAT_TEST_VARIANT")) /* of nothing that TCP has */
		return failed;
	return failed + cmocka_run_group_tests_name("tcp", tcp_tests, setup_tcp, teardown);
}
