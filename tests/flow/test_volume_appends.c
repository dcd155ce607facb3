/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_volume_appends.c - clients append to files of a striped volume
 *
 * A record begins with its length, its writer and its number, and is filled with a byte that depends on both.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/util.h"
#include "leat.h"
#include "leat_volume.h"
#include "tcp_proxy.h"
#include "volume_pending.h"
#include "volume_rig.h"
#include "volume_watch.h"
#include "volumes.h"

LOG_DEFINE("test_volume_appends");

#define PROBE_NS (20 * NS_PER_MS)
#define UNIT 65536u
#define WRITERS 3u
#define RECORDS 40u
#define RECORD_MAX (2 * UNIT)
#define FILE_MAX (WRITERS * RECORDS * RECORD_MAX)

static struct leat *m;
static uint8_t mem[FILE_MAX], data[8 * UNIT];

/* ---- helpers -------------------------------------------------------------------------------- */

static int start_on(bool tcp)
{
	atomic_store(&volume_watch.is_silent, false);
	volume_rig_start(tcp, "stripe=64K");
	m = volume_rig_mount(NULL);
	return 0;
}

static int start(void **state)
{
	(void)state;
	return start_on(false);
}

static int start_tcp(void **state)
{
	(void)state;
	return start_on(true);
}

static int stop(void **state)
{
	(void)state;
	leat_umount(m);
	volume_rig_stop();
	return 0;
}

static struct leat_file *open_file(struct leat *from, const char *name, int flags)
{
	struct leat_file *f;

	if (leat_open(from, name, flags, 0644, &f))
		fail_msg("%s: %s", name, leat_error(from));
	return f;
}

static struct leat_file *open_log(struct leat *from, const char *name)
{
	return open_file(from, name, O_RDWR | O_CREAT | O_APPEND);
}

static void append(struct leat_file *f, const void *bytes, size_t n)
{
	ssize_t rc = leat_write(f, bytes, n);

	if (rc != (ssize_t)n)
		fail_msg("%zd of %zu", rc, n);
}

static uint64_t size_of(const char *name)
{
	struct stat st;
	char path[32];

	(void)snprintf(path, sizeof(path), "m/files/%s", name);
	assert_int_equal(stat(tmp_dir_path(&volume_rig.dir, path), &st), 0);
	return (uint64_t)st.st_size;
}

static uint32_t length_of(unsigned writer, unsigned record)
{
	return 12 + (record * 7919u + writer * 104729u) % (RECORD_MAX - 12);
}

static uint32_t make_record(unsigned writer, unsigned record, uint8_t *ret)
{
	uint32_t head[3] = { htonl(length_of(writer, record)), htonl(writer), htonl(record) };

	memcpy(ret, head, sizeof(head));
	memset(ret + sizeof(head), (int)(1 + writer * RECORDS + record), length_of(writer, record) - sizeof(head));
	return length_of(writer, record);
}

/* Each record of the file is whole, each writer's are there once, in the order of its writes. */
static void check_records(const char *name, unsigned writers)
{
	static uint8_t want[RECORD_MAX];
	struct leat *other = volume_rig_mount(NULL);
	struct leat_file *f = open_file(other, name, O_RDONLY);
	ssize_t n = leat_pread(f, mem, sizeof(mem), 0), at = 0;
	unsigned next[WRITERS] = { 0 };

	while (at < n) {
		uint32_t head[3];

		memcpy(head, mem + at, sizeof(head));
		if (ntohl(head[1]) >= writers || ntohl(head[2]) != next[ntohl(head[1])]++)
			fail_msg("at %zd: record %u of writer %u", at, ntohl(head[2]), ntohl(head[1]));
		assert_memory_equal(mem + at, want, make_record(ntohl(head[1]), ntohl(head[2]), want));
		at += ntohl(head[0]);
	}
	for (unsigned i = 0; i < writers; i++)
		assert_int_equal(next[i], RECORDS);
	assert_int_equal(leat_close(f), 0);
	leat_umount(other);
}

/* Return: NULL: all is written */
static void *append_all(void *arg)
{
	unsigned writer = *(const unsigned *)arg;
	uint8_t *record = malloc(RECORD_MAX);
	struct leat *mine = volume_rig_mount(NULL);
	struct leat_file *f = open_log(mine, "all");
	bool good = record != NULL;

	for (unsigned i = 0; good && i < RECORDS; i++) {
		uint32_t n = make_record(writer, i, record);

		good = leat_write(f, record, n) == (ssize_t)n;
	}
	good = !leat_close(f) && good;
	leat_umount(mine);
	free(record);
	return good ? NULL : arg;
}

/* ---- tests ---------------------------------------------------------------------------------- */

/* Clients that only append know of one another by the manager alone: no server is asked. */
static void several_clients(void **state)
{
	unsigned writers[WRITERS];
	pthread_t threads[WRITERS];
	void *failed;

	(void)state;
	atomic_store(&volume_watch.stats, 0);
	for (unsigned i = 0; i < WRITERS; i++) {
		writers[i] = i;
		assert_int_equal(pthread_create(&threads[i], NULL, append_all, &writers[i]), 0);
	}
	for (unsigned i = 0; i < WRITERS; i++) {
		assert_int_equal(pthread_join(threads[i], &failed), 0);
		assert_null(failed);
	}
	check_records("all", WRITERS);
	assert_int_equal(atomic_load(&volume_watch.stats), 0);
}

/* What this client wrote, by whatever handle, is in front, and it can read it. */
static void own_writes(void **state)
{
	struct leat_file *f = open_log(m, "own"), *g = open_file(m, "own", O_WRONLY), *s = open_file(m, "own", O_WRONLY | O_APPEND | O_SYNC);
	char text[32] = "";

	(void)state;
	append(f, "abc", 3);
	assert_int_equal(leat_lseek(f, 0, SEEK_CUR), 3);
	assert_int_equal(leat_lseek(f, 0, SEEK_SET), 0);
	assert_int_equal(leat_pwrite(g, "de", 2, 3), 2); /* not reported */
	append(f, "fg", 2);
	assert_int_equal(leat_lseek(f, 0, SEEK_CUR), 7);
	append(s, "h", 1);
	append(f, "", 0);
	append(f, "i", 1);
	assert_int_equal(leat_pread(f, text, sizeof(text), 0), 9);
	assert_string_equal(text, "abcdefghi");
	assert_int_equal(size_of("own"), 9);
	assert_int_equal(leat_close(f), 0);
	assert_int_equal(leat_close(g), 0);
	assert_int_equal(leat_close(s), 0);
}

/* Another client has written without a range, and not reported: its servers are asked. */
static void behind_others(void **state)
{
	struct leat *other = volume_rig_mount(NULL);
	struct leat_file *f = open_log(m, "behind"), *g = open_file(other, "behind", O_WRONLY);
	char c = 0;

	(void)state;
	atomic_store(&volume_watch.is_silent, true);
	atomic_store(&volume_watch.stats, 0);
	assert_int_equal(leat_pwrite(g, data, sizeof(data), 0), sizeof(data));
	append(f, "x", 1);
	assert_int_equal(atomic_load(&volume_watch.stats), 4);
	assert_int_equal(leat_lseek(f, 0, SEEK_CUR), sizeof(data) + 1);
	volume_rig_end_server(2);
	assert_int_equal(leat_write(f, "y", 1), -EIO);
	volume_rig_start_server(2);
	assert_int_equal(leat_pwrite(g, data, 10, sizeof(data) + 1), 10);
	while (leat_write(f, "y", 1) == -EIO) /* the manager tries again after a while */
		;
	assert_int_equal(size_of("behind"), sizeof(data) + 12);
	assert_int_equal(leat_pread(f, &c, 1, sizeof(data)), 1);
	assert_int_equal(c, 'x');
	atomic_store(&volume_watch.is_silent, false);
	leat_umount(other);
	(void)leat_close(f); /* the server that ended may have lost what was not stable */
}

/* An object that cannot be read concerns only its file: its server is in reach for others. */
static void damaged_object(void **state)
{
	static const int failures[] = { -EIO, -ENOSPC, -EBUSY };
	struct leat *other = volume_rig_mount(NULL);
	struct leat_file *f = open_log(m, "bad"), *g = open_log(m, "good"), *h[2];

	(void)state;
	volume_times.probe_ns = 600 * NS_PER_S; /* else a server that counts as away is found again before the next append */
	atomic_store(&volume_watch.is_silent, true);
	for (unsigned i = 0; i < ARRAY_SIZE(h); i++) {
		h[i] = open_file(other, i ? "good" : "bad", O_WRONLY);
		assert_int_equal(leat_pwrite(h[i], data, 4 * UNIT, 0), 4 * UNIT);
	}
	for (unsigned i = 0; i < ARRAY_SIZE(failures); i++) {
		atomic_store(&volume_watch.failure, failures[i]);
		assert_int_equal(leat_write(f, "x", 1), -EIO);
		append(g, "y", 1);
	}
	append(f, "x", 1);
	atomic_store(&volume_watch.is_silent, false);
	volume_times.probe_ns = PROBE_NS;
	assert_int_equal(leat_close(f), 0);
	assert_int_equal(leat_close(g), 0);
	leat_umount(other);
}

/* An append behind a cut that a server lacks fails as any other while the server is away. */
static void cut_is_pending(void **state)
{
	struct leat *other = volume_rig_mount(NULL);
	struct leat_file *f = open_log(m, "pending"), *g = open_file(other, "pending", O_WRONLY);

	(void)state;
	atomic_store(&volume_watch.is_silent, true);
	assert_int_equal(leat_pwrite(g, data, 4 * UNIT, 0), 4 * UNIT);
	volume_rig_end_server(2);
	assert_int_equal(leat_ftruncate(f, 10), 0);
	assert_int_equal(leat_write(f, "y", 1), -EIO);
	volume_rig_start_server(2);
	while (leat_write(f, "y", 1) == -EIO) /* the manager tries again after a while */
		;
	assert_int_equal(size_of("pending"), 11);
	atomic_store(&volume_watch.is_silent, false);
	leat_umount(other);
	(void)leat_close(f);
}

/* A close that failed has not reported what this client wrote. When it opens the file again, it does not know of that either. */
static void closed_without_report(void **state)
{
	struct leat_file *f = open_file(m, "closed", O_WRONLY | O_CREAT), *g;
	char text[16] = "";

	(void)state;
	assert_int_equal(leat_pwrite(f, "abcdef", 6, 0), 6);
	atomic_store(&volume_watch.is_silent, true);
	assert_int_not_equal(leat_close(f), 0);
	atomic_store(&volume_watch.is_silent, false);
	f = open_log(m, "closed");
	g = open_file(m, "closed", O_WRONLY);
	assert_int_equal(leat_pwrite(g, "AB", 2, 0), 2); /* this opening has a lease of its own */
	append(f, "g", 1);
	assert_int_equal(leat_pread(f, text, sizeof(text), 0), 7);
	assert_string_equal(text, "ABcdefg");
	assert_int_equal(leat_close(f), 0);
	assert_int_equal(leat_close(g), 0);
}

/* The range of a write that failed reads as zeroes. */
static void failed_write(void **state)
{
	struct leat *hasty = volume_rig_mount("stripe_timeo=300ms");
	struct leat_file *f = open_log(hasty, "failed"), *g;
	static uint8_t zeroes[8 * UNIT];

	(void)state;
	append(f, "a", 1);
	for (unsigned i = 0; i < VOLUME_RIG_SERVERS; i++)
		volume_rig_end_server(i);
	assert_int_equal(leat_write(f, data, sizeof(data)), -EIO);
	for (unsigned i = 0; i < VOLUME_RIG_SERVERS; i++)
		volume_rig_start_server(i);
	g = open_log(m, "failed");
	append(g, "b", 1);
	assert_int_equal(leat_pread(g, mem, sizeof(mem), 0), sizeof(data) + 2);
	assert_true(mem[0] == 'a' && mem[sizeof(data) + 1] == 'b');
	assert_memory_equal(mem + 1, zeroes, sizeof(data));
	assert_int_equal(leat_close(g), 0);
	(void)leat_close(f);
	leat_umount(hasty);
}

static void manager_restarts(void **state)
{
	struct leat_file *f = open_log(m, "restarts");

	(void)state;
	append(f, "ab", 2);
	volume_rig_end_manager();
	volume_rig_start_manager();
	append(f, "c", 1);
	assert_int_equal(leat_pread(f, mem, 10, 0), 3);
	assert_memory_equal(mem, "abc", 3);
	assert_int_equal(leat_close(f), 0);
}

/* Another client has cut the file since this one got its handles. */
static void was_cut(void **state)
{
	struct leat *other = volume_rig_mount(NULL);
	struct leat_file *f = open_log(m, "cut");

	(void)state;
	append(f, data, sizeof(data));
	assert_int_equal(leat_truncate(other, "cut", 2), 0);
	append(f, "x", 1);
	assert_int_equal(size_of("cut"), 3);
	assert_int_equal(leat_close(f), 0);
	leat_umount(other);
}

static void refused(void **state)
{
	struct leat_file *f = open_file(m, "refused", O_RDONLY | O_CREAT | O_APPEND), *d;

	(void)state;
	assert_int_equal(leat_write(f, "x", 1), -EBADF);
	assert_int_equal(leat_close(f), 0);
	d = open_file(m, ".", O_RDONLY | O_APPEND);
	assert_int_equal(leat_write(d, "x", 1), -EISDIR);
	assert_int_equal(leat_close(d), 0);
	assert_int_equal(size_of("refused"), 0);
}

/* The connection breaks with the call or its reply. The call is made again, and gets the same range. */
static void retransmitted(void **state)
{
	static const enum tcp_proxy_cut cuts[] = { TCP_PROXY_BEHIND_CALL, TCP_PROXY_REPLY, TCP_PROXY_IN_CALL };
	struct rpcrdma_addr server;
	struct tcp_proxy proxy;
	struct leat_file *f;
	struct leat *far;
	char url[100];

	(void)state;
	(void)snprintf(url, sizeof(url), "%.*s", (int)(strlen(volume_rig.url) - 2), volume_rig.url); /* without /v */
	assert_int_equal(rpcrdma_addr_parse(url, &server), 0);
	tcp_proxy_start(&proxy, &server);
	(void)snprintf(url, sizeof(url), "tcp://127.0.0.1:%u/v", proxy.addr.port);
	assert_int_equal(leat_mount(url, NULL, &far), 0);
	f = open_log(far, "again");
	append(f, data, 10);
	for (unsigned i = 1; i <= 9; i++) {
		atomic_store(&proxy.cut, cuts[i % ARRAY_SIZE(cuts)]);
		append(f, data, 10);
		assert_int_equal(size_of("again"), 10 * (i + 1));
		assert_int_equal(atomic_load(&proxy.cuts), i);
	}
	assert_int_equal(leat_close(f), 0);
	leat_umount(far);
	tcp_proxy_stop(&proxy);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(several_clients), cmocka_unit_test(own_writes), cmocka_unit_test(behind_others),
		cmocka_unit_test(failed_write),	   cmocka_unit_test(manager_restarts), cmocka_unit_test(was_cut),
		cmocka_unit_test(refused),	   cmocka_unit_test(closed_without_report),
		cmocka_unit_test(cut_is_pending),  cmocka_unit_test(damaged_object), /* the last: no server is found again behind it */
	};
	static const struct CMUnitTest tcp[] = { cmocka_unit_test(retransmitted) };
	int failed;

	volume_times = (struct volume_times){ .server = "300ms", .probe_ns = PROBE_NS, .retry_ns = 10 * NS_PER_MS };
	(void)alarm(120); /* a client that waits for a manager may wait for ever */
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(1 + i % 251);
	failed = cmocka_run_group_tests_name("local", tests, start, stop);
	return failed + cmocka_run_group_tests_name("tcp", tcp, start_tcp, stop);
}
