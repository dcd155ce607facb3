/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_leat_stripes.c - files of a striped volume as a program sees them: reads, writes, sizes
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <cmocka.h>

#include "base/log.h"
#include "base/util.h"
#include "inside.h"
#include "leat_flow.h"
#include "rpcrdma.h"
#include "volume_rig.h"

LOG_DEFINE("test");

#define UNIT 65536u
#define FILE_MAX (40u * UNIT)

static uint8_t model[FILE_MAX], from[FILE_MAX], to[FILE_MAX];
static struct leat *m;

static struct leat_file *open_file(struct leat *at, const char *name, int flags)
{
	struct leat_file *f;

	if (leat_open(at, name, flags, 0644, &f))
		fail_msg("%s", leat_error(at));
	return f;
}

static void close_file(struct leat *at, struct leat_file *f)
{
	if (leat_close(f))
		fail_msg("%s", leat_error(at));
}

static void write_all(struct leat *at, struct leat_file *f, const void *buf, size_t len, uint64_t off)
{
	ssize_t n = leat_pwrite(f, buf, len, off);

	if (n != (ssize_t)len)
		fail_msg("%zd of %zu: %s", n, len, leat_error(at));
}

/* Reads @len bytes at @off and expects what the model has, and its end at @size. */
static void check_read(struct leat *at, struct leat_file *f, size_t len, uint64_t off, uint64_t size)
{
	size_t want = off >= size ? 0 : MIN(len, (size_t)(size - off));
	ssize_t n;

	memset(to, 0xee, len);
	n = leat_pread(f, to, len, off);
	if (n != (ssize_t)want)
		fail_msg("%zd, not %zu, of %zu at %llu: %s", n, want, len, (unsigned long long)off, leat_error(at));
	assert_memory_equal(to, model + off, want);
}

static uint64_t size_of(struct leat *at, const char *name)
{
	struct stat st;

	if (leat_stat(at, name, &st))
		fail_msg("%s", leat_error(at));
	return (uint64_t)st.st_size;
}

/* The same numbers in every run. */
static uint32_t draw(uint32_t below)
{
	static uint32_t x = 7;

	x = x * 1664525u + 1013904223u;
	return (x >> 8) % below;
}

/* Near a border of units more often than not. */
static uint32_t draw_off(void)
{
	uint32_t off = draw(2) ? draw(FILE_MAX) : draw(FILE_MAX / UNIT) * UNIT + draw(9);

	return off < 4 || draw(2) ? off : off - 4;
}

static void random_ranges(void **state)
{
	struct leat_file *f = open_file(m, "random", O_RDWR | O_CREAT);
	uint64_t size = 0;

	(void)state;
	memset(model, 0, sizeof(model));
	leat_flow_fill(from, sizeof(from), 3);
	for (unsigned i = 0; i < 300; i++) {
		uint32_t off = draw_off(), len = draw(4) ? draw(3 * UNIT) : draw(FILE_MAX);

		len = MIN(len + 1, FILE_MAX - off);
		if (draw(2)) {
			write_all(m, f, from + (FILE_MAX - len), len, off);
			memcpy(model + off, from + (FILE_MAX - len), len);
			size = MAX(size, off + len);
		} else {
			check_read(m, f, len, off, size);
		}
		if (!draw(50))
			assert_int_equal(size_of(m, "random"), size);
	}
	close_file(m, f);
	f = open_file(m, "random", O_RDONLY);
	check_read(m, f, sizeof(model), 0, size);
	assert_int_equal(size_of(m, "random"), size);
	close_file(m, f);
}

/* What no one wrote reads as zeroes up to the size. */
static void holes(void **state)
{
	struct leat_file *f = open_file(m, "holes", O_RDWR | O_CREAT);

	(void)state;
	memset(model, 0, sizeof(model));
	memset(model + 9 * UNIT + 5, 'x', 3);
	write_all(m, f, "xxx", 3, 9 * UNIT + 5);
	check_read(m, f, sizeof(model), 0, 9 * UNIT + 8);
	check_read(m, f, 10, 9 * UNIT + 7, 9 * UNIT + 8);
	check_read(m, f, 10, 9 * UNIT + 8, 9 * UNIT + 8);
	close_file(m, f);
	assert_int_equal(size_of(m, "holes"), 9 * UNIT + 8);
}

/* Parts of memory of all lengths, in one operation. */
static void many_parts(void **state)
{
	struct leat_file *f = open_file(m, "parts", O_RDWR | O_CREAT);
	static struct iovec in[400], out[400];
	size_t at = 0;
	int n = 0;

	(void)state;
	leat_flow_fill(model, sizeof(model), 4);
	for (; n < 400 && at < sizeof(model); n++) {
		size_t len = MIN(1 + draw(n % 3 ? 12000 : 700), sizeof(model) - at);

		in[n] = (struct iovec){ model + at, len };
		out[n] = (struct iovec){ to + at, len };
		at += len;
	}
	assert_int_equal(leat_pwritev(f, in, n, 0), at);
	memset(to, 0, sizeof(to));
	assert_int_equal(leat_preadv(f, out, n, 0), at);
	assert_memory_equal(to, model, at);
	check_read(m, f, sizeof(model), 0, at);
	close_file(m, f);
}

/* Aligned data of whole units moves without a copy. */
static void no_copies(void **state)
{
	struct leat_file *f = open_file(m, "plain", O_RDWR | O_CREAT);
	size_t len = 32 * UNIT;
	uint64_t before;
	void *buf;

	(void)state;
	if (volume_rig.tcp || getenv("LEAT_TEST_MODES")) {
		print_message("TCP and the older designs copy: skipped\n");
		skip();
	}
	assert_int_equal(leat_buf_alloc(leat_session(m), len, &buf), 0);
	leat_flow_fill(buf, len, 5);
	memcpy(model, buf, len);
	write_all(m, f, buf, 1, 0); /* the layouts are here */
	assert_int_equal(leat_pread(f, buf, 1, 0), 1);
	before = leat_flow_stat(m, "bytes_copied");
	write_all(m, f, buf, len, 0);
	assert_int_equal(leat_pread(f, buf, len, 0), len);
	assert_in_range(leat_flow_stat(m, "bytes_copied") - before, 0, UNIT); /* the messages themselves */
	assert_memory_equal(buf, model, len);
	close_file(m, f);
	leat_buf_free(leat_session(m), buf);
}

/* Another client sees what was closed, and grows the file in its turn. */
static void two_clients(void **state)
{
	struct leat *other = volume_rig_mount(NULL);
	struct leat_file *f = open_file(m, "both", O_RDWR | O_CREAT), *g;

	(void)state;
	leat_flow_fill(model, sizeof(model), 6);
	write_all(m, f, model, 5 * UNIT + 1, 0);
	assert_int_equal(leat_fsync(f), 0);
	check_read(m, f, sizeof(model), 0, 5 * UNIT + 1); /* it has the layout, with the size */
	g = open_file(other, "both", O_RDWR);
	check_read(other, g, sizeof(model), 0, 5 * UNIT + 1);
	write_all(other, g, model + 5 * UNIT, 3 * UNIT, 5 * UNIT);
	assert_int_equal(leat_fsync(g), 0);
	check_read(m, f, sizeof(model), 0, 8 * UNIT);
	close_file(m, f);
	close_file(other, g);
	assert_int_equal(size_of(m, "both"), 8 * UNIT);
	leat_umount(other);
}

/* A synchronous write needs no fsync to be seen. */
static void sync_write(void **state)
{
	struct leat *other = volume_rig_mount(NULL);
	struct leat_file *f = open_file(m, "sync", O_WRONLY | O_CREAT | O_SYNC);

	(void)state;
	leat_flow_fill(model, sizeof(model), 8);
	write_all(m, f, model, 3 * UNIT, 0);
	assert_int_equal(size_of(other, "sync"), 3 * UNIT);
	close_file(m, f);
	leat_umount(other);
}

/* Without fsync, close or a synchronous write, others see the size a little later. */
static void reports_by_itself(void **state)
{
	struct leat *other = volume_rig_mount("cache=none");
	struct leat_file *f = open_file(m, "report", O_WRONLY | O_CREAT);

	(void)state;
	write_all(m, f, model, 2 * UNIT, 0);
	assert_int_equal(size_of(m, "report"), 2 * UNIT);
	for (unsigned i = 0; i < 3000 && size_of(other, "report") != 2 * UNIT; i++)
		(void)leat_poll(leat_session(m), 10);
	assert_int_equal(size_of(other, "report"), 2 * UNIT);
	close_file(m, f);
	leat_umount(other);
}

/* Times that are set after the last write stay, as in a copy that preserves them. */
static void explicit_times(void **state)
{
	const struct timespec times[2] = { { .tv_sec = 1000 }, { .tv_sec = 2000 } };
	struct leat_file *f = open_file(m, "times", O_WRONLY | O_CREAT);
	struct stat st;

	(void)state;
	write_all(m, f, model, 2 * UNIT, 0);
	assert_int_equal(leat_futimens(f, times), 0);
	close_file(m, f);
	assert_int_equal(leat_stat(m, "times", &st), 0);
	assert_int_equal(st.st_mtim.tv_sec, 2000);
	assert_int_equal(st.st_size, 2 * UNIT);
}

/* The file has @size bytes of the model, for its open file, by its name, and for another client. */
static void check_file(struct leat_file *f, const char *name, uint64_t size)
{
	struct leat *other = volume_rig_mount(NULL);
	struct leat_file *g;

	check_read(m, f, 12 * UNIT, 0, size);
	assert_int_equal(size_of(m, name), size);
	assert_int_equal(leat_fsync(f), 0);
	g = open_file(other, name, O_RDONLY);
	check_read(other, g, 12 * UNIT, 0, size);
	assert_int_equal(size_of(other, name), size);
	close_file(other, g);
	leat_umount(other);
}

static void cut_model(uint64_t size)
{
	memset(model + size, 0, sizeof(model) - size);
}

/* A cut cuts all that was written before it, also what was not reported. What is behind it does not come back. */
static void cuts(void **state)
{
	struct leat_file *f = open_file(m, "cuts", O_RDWR | O_CREAT), *g;

	(void)state;
	leat_flow_fill(model, sizeof(model), 21);
	write_all(m, f, model, 8 * UNIT, 0);
	assert_int_equal(leat_ftruncate(f, 2 * UNIT + 5), 0);
	check_file(f, "cuts", 2 * UNIT + 5);
	cut_model(2 * UNIT + 5);
	write_all(m, f, "x", 1, 7 * UNIT);
	model[7 * UNIT] = 'x';
	check_file(f, "cuts", 7 * UNIT + 1);
	/* to the size that the manager knows, with more than that written */
	write_all(m, f, from, 2 * UNIT, 7 * UNIT + 1);
	assert_int_equal(leat_ftruncate(f, 7 * UNIT + 1), 0);
	check_file(f, "cuts", 7 * UNIT + 1);
	assert_int_equal(leat_ftruncate(f, 10 * UNIT), 0);
	check_file(f, "cuts", 10 * UNIT);
	/* by name, and by open() */
	write_all(m, f, from, UNIT, 10 * UNIT);
	assert_int_equal(leat_truncate(m, "cuts", 10 * UNIT), 0);
	check_file(f, "cuts", 10 * UNIT);
	write_all(m, f, "z", 1, 11 * UNIT);
	model[11 * UNIT] = 'z';
	check_file(f, "cuts", 11 * UNIT + 1);
	write_all(m, f, from, UNIT, 10 * UNIT);
	assert_int_equal(leat_truncate(m, "cuts", UNIT), 0);
	cut_model(UNIT);
	check_file(f, "cuts", UNIT);
	write_all(m, f, from, UNIT, 3 * UNIT);
	g = open_file(m, "cuts", O_WRONLY | O_TRUNC);
	cut_model(0);
	check_file(f, "cuts", 0);
	write_all(m, g, "new", 3, 0);
	memcpy(model, "new", 3);
	check_file(f, "cuts", 3);
	close_file(m, g);
	close_file(m, f);
	assert_int_equal(leat_unlink(m, "cuts"), 0);
}

/* Another client cuts the file while it is open here. */
static void cuts_of_others(void **state)
{
	struct leat *other = volume_rig_mount(NULL);
	struct leat_file *f = open_file(m, "theirs", O_RDWR | O_CREAT);

	(void)state;
	leat_flow_fill(model, sizeof(model), 22);
	write_all(m, f, model, 8 * UNIT, 0);
	assert_int_equal(leat_fsync(f), 0);
	check_read(m, f, 8 * UNIT, 0, 8 * UNIT);
	assert_int_equal(leat_truncate(other, "theirs", 3 * UNIT), 0);
	cut_model(3 * UNIT);
	check_read(m, f, 8 * UNIT, 0, 3 * UNIT);
	write_all(m, f, "x", 1, 5 * UNIT); /* with a handle of the new epoch */
	model[5 * UNIT] = 'x';
	check_file(f, "theirs", 5 * UNIT + 1);
	/* what was written and not reported before a cut is gone; what is written afterwards counts */
	write_all(m, f, from, UNIT, 8 * UNIT);
	assert_int_equal(leat_truncate(other, "theirs", UNIT), 0);
	cut_model(UNIT);
	write_all(m, f, "y", 1, 2 * UNIT);
	model[2 * UNIT] = 'y';
	check_file(f, "theirs", 2 * UNIT + 1);
	close_file(m, f);
	leat_umount(other);
}

/* A file that is removed while it is open here is gone, or has another name. */
static void removed(void **state)
{
	struct leat *other = volume_rig_mount(NULL);
	struct leat_file *f = open_file(m, "mine", O_RDWR | O_CREAT), *g = open_file(m, "gone", O_RDWR | O_CREAT);

	(void)state;
	leat_flow_fill(model, sizeof(model), 23);
	write_all(m, f, model, 3 * UNIT, 0);
	write_all(m, g, model, 3 * UNIT, 0);
	assert_int_equal(leat_fsync(g), 0);
	assert_int_equal(leat_unlink(m, "mine"), 0);
	check_read(m, f, 3 * UNIT, 0, 3 * UNIT);
	close_file(m, f);
	assert_int_equal(leat_unlink(other, "gone"), 0);
	while (leat_pread(g, to, UNIT, 0) == UNIT) /* the stripes are removed a little later */
		(void)leat_poll(leat_session(m), 10);
	assert_int_equal(leat_pread(g, to, UNIT, 0), -ESTALE);
	(void)leat_close(g);
	leat_umount(other);
}

static void note_result(void *to_result, int64_t result)
{
	*(int64_t *)to_result = result;
}

/* Operations that find the budget used up wait in turn; what is in flight is not more. */
static void budget(void **state)
{
	struct leat *other = volume_rig_mount("budget=1M");
	struct leat_file *f = open_file(other, "budget", O_RDWR | O_CREAT);
	int64_t result[6];
	uint64_t before;

	(void)state;
	leat_flow_fill(model, sizeof(model), 11);
	write_all(other, f, model, 1, 0);
	before = leat_flow_stat(other, "calls");
	for (unsigned i = 0; i < 6; i++) {
		const struct leat_cb cb = { .fn = note_result, .user_data = &result[i] };

		result[i] = INT64_MIN;
		assert_int_equal(leat_aio_pwrite(f, model + i * 6 * UNIT, 6 * UNIT, i * 6 * UNIT, cb), 0);
	}
	assert_in_range(leat_flow_stat(other, "calls") - before, 4, 12); /* of 24 */
	for (unsigned i = 0; i < 6; i++) {
		while (result[i] == INT64_MIN)
			(void)leat_poll(leat_session(other), 10);
		assert_int_equal(result[i], 6 * UNIT);
	}
	assert_int_equal(leat_flow_stat(other, "calls") - before, 24);
	check_read(other, f, 36 * UNIT, 0, 36 * UNIT);
	close_file(other, f);
	leat_umount(other);
}

/* What is copied, since its parts are small, counts as well: a buffer for each call. */
static void budget_of_copies(void **state)
{
	struct leat *other = volume_rig_mount("budget=1M");
	struct leat_file *f = open_file(other, "copies", O_RDWR | O_CREAT);
	struct iovec iov[2] = { { .iov_base = model, .iov_len = 500 }, { .iov_base = model + 500, .iov_len = UNIT - 500 } };
	int64_t result[12];
	uint64_t before;

	(void)state;
	write_all(other, f, model, 1, 0);
	before = leat_flow_stat(other, "calls");
	for (unsigned i = 0; i < 12; i++) {
		const struct leat_cb cb = { .fn = note_result, .user_data = &result[i] };

		result[i] = INT64_MIN;
		assert_int_equal(leat_aio_pwritev(f, iov, 2, i * UNIT, cb), 0);
	}
	assert_in_range(leat_flow_stat(other, "calls") - before, 1, 4);
	for (unsigned i = 0; i < 12; i++) {
		while (result[i] == INT64_MIN)
			(void)leat_poll(leat_session(other), 10);
		assert_int_equal(result[i], UNIT);
	}
	close_file(other, f);
	leat_umount(other);
}

/* Some that wait for the budget are cancelled, others go on. */
static void cancelled_in_turn(void **state)
{
	struct leat *other = volume_rig_mount("budget=1M");
	struct leat_file *f = open_file(other, "cancel", O_RDWR | O_CREAT);
	int64_t result[6];

	(void)state;
	write_all(other, f, model, 36 * UNIT, 0);
	for (unsigned i = 0; i < 6; i++) {
		const struct leat_cb cb = { .fn = note_result, .user_data = &result[i] };

		result[i] = INT64_MIN;
		assert_int_equal(leat_aio_pread(f, to + i * 6 * UNIT, 6 * UNIT, i * 6 * UNIT, cb), 0);
	}
	for (unsigned i = 0; i < 6; i += 2)
		assert_int_equal(leat_cancel(other, &result[i]), 0);
	for (unsigned i = 0; i < 6; i++) {
		while (result[i] == INT64_MIN)
			(void)leat_poll(leat_session(other), 10);
		assert_int_equal(result[i], i % 2 ? 6 * (int)UNIT : -ECANCELED);
	}
	close_file(other, f);
	leat_umount(other);
}

/* Memory that one server may access is not registered again for the others. */
static void shared_registrations(void **state)
{
	struct leat *other;
	struct leat_file *f;
	uint64_t before;

	(void)state;
	if (volume_rig.tcp) {
		print_message("TCP registers nothing: skipped\n");
		skip();
	}
	other = volume_rig_mount("registration=cache&monitor=none&bounce=0");
	f = open_file(other, "shared", O_RDWR | O_CREAT);
	write_all(other, f, model, 4 * UNIT, 0); /* all servers are connected */
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(leat_pread(f, from + i * UNIT, UNIT, i * UNIT), UNIT);
	check_read(other, f, UNIT, 0, 4 * UNIT);
	before = leat_flow_stat(other, "regs");
	for (unsigned i = 1; i < 4; i++)
		check_read(other, f, UNIT, i * UNIT, 4 * UNIT);
	assert_int_equal(leat_flow_stat(other, "regs"), before);
	close_file(other, f);
	leat_umount(other);
}

/* Nor is memory of leat_buf_alloc(). */
static void shared_buffers(void **state)
{
	struct leat_session *session;
	struct leat *other;
	struct leat_file *f;
	uint64_t before;
	void *buf;

	(void)state;
	if (volume_rig.tcp) {
		print_message("TCP registers nothing: skipped\n");
		skip();
	}
	assert_int_equal(leat_session_create(NULL, &session), 0);
	assert_int_equal(leat_session_mount(session, volume_rig.url, NULL, &other), 0);
	assert_int_equal(leat_buf_alloc(session, 4 * UNIT, &buf), 0);
	f = open_file(other, "buffers", O_RDWR | O_CREAT);
	write_all(other, f, model, 4 * UNIT, 0); /* all servers are connected */
	before = leat_flow_stat(other, "regs");
	for (unsigned i = 0; i < 4; i++) /* in turn: of each server */
		assert_int_equal(leat_pread(f, (uint8_t *)buf + i * UNIT, UNIT, i * UNIT), UNIT);
	assert_memory_equal(buf, model, 4 * UNIT);
	assert_int_equal(leat_flow_stat(other, "regs"), before + 1);
	close_file(other, f);
	leat_umount(other);
	leat_buf_free(session, buf);
	assert_int_equal(leat_session_free(session), 0);
}

static uint64_t connections(unsigned server)
{
	struct rpcrdma_stats stats;

	rpcrdma_domain_stats(server_domain(volume_rig.server[server]), &stats);
	return stats.conns_total;
}

/* Mounts of one session share the connections to stripe servers, and end without one another. */
static void shared_servers(void **state)
{
	struct leat_session *session;
	struct leat *a, *b;
	struct leat_file *f, *g;
	uint64_t before;

	(void)state;
	assert_int_equal(leat_session_create(NULL, &session), 0);
	assert_int_equal(leat_session_mount(session, volume_rig.url, NULL, &a), 0);
	assert_int_equal(leat_session_mount(session, volume_rig.url, NULL, &b), 0);
	f = open_file(a, "session", O_RDWR | O_CREAT);
	before = connections(0);
	write_all(a, f, model, 8 * UNIT, 0);
	close_file(a, f);
	g = open_file(b, "session", O_RDONLY);
	check_read(b, g, 8 * UNIT, 0, 8 * UNIT);
	assert_int_equal(connections(0), before + 1);
	leat_umount(a);
	check_read(b, g, 8 * UNIT, 0, 8 * UNIT);
	close_file(b, g);
	leat_umount(b);
	assert_int_equal(leat_session_free(session), 0);
}

#define THREADS 3

static struct leat *served; /* with a service thread */

static void *use_file(void *name)
{
	static uint8_t buf[THREADS][6 * UNIT];
	uint8_t *mine = buf[((const char *)name)[0] - '0'];
	struct leat_file *f;

	if (leat_open(served, name, O_RDWR | O_CREAT, 0644, &f))
		return name;
	for (unsigned i = 0; i < 20; i++) {
		uint64_t off = i * 1000;

		memset(mine, (int)i, 6 * UNIT);
		if (leat_pwrite(f, mine, 6 * UNIT, off) != 6 * UNIT || (i % 5 == 0 && leat_fsync(f)))
			return name;
		memset(mine, 0xff, 6 * UNIT);
		if (leat_pread(f, mine, 6 * UNIT, off) != 6 * UNIT || mine[0] != i || mine[6 * UNIT - 1] != i)
			return name;
	}
	return leat_close(f) ? name : NULL;
}

/* Several threads, whose operations wait for one budget */
static void threads(void **state)
{
	static char names[THREADS][8] = { "0", "1", "2" };
	pthread_t t[THREADS];
	void *failed;

	(void)state;
	served = volume_rig_mount("budget=1M");
	assert_int_equal(leat_service_start(leat_session(served)), 0);
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, use_file, names[i]), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(t[i], &failed), 0);
		if (failed)
			fail_msg("%s: %s", (char *)failed, leat_error(served));
	}
	leat_umount(served);
}

/* A server gets another address: the next layout makes the client ask for the map. */
static void new_map(void **state)
{
	struct leat_file *f = open_file(m, "moved", O_RDWR | O_CREAT);

	(void)state;
	leat_flow_fill(model, sizeof(model), 12);
	write_all(m, f, model, 8 * UNIT, 0);
	close_file(m, f);
	volume_rig_end_server(1);
	volume_rig.server_url[1][0] = '\0';
	volume_rig_start_server(1);
	volume_rig_new_map();
	f = open_file(m, "moved", O_RDWR);
	check_read(m, f, 8 * UNIT, 0, 8 * UNIT);
	write_all(m, f, model, 8 * UNIT, 0);
	close_file(m, f);
}

static void expect_refused(int rc, const char *cause)
{
	assert_int_equal(rc, -EOPNOTSUPP);
	if (!strstr(leat_error(m), cause))
		fail_msg("%s", leat_error(m));
}

static void not_yet(void **state)
{
	struct leat_file *f = open_file(m, "plans", O_RDWR | O_CREAT);
	const char *cause = "not yet possible for files of a striped volume";

	(void)state;
	write_all(m, f, "x", 1, 0);
	assert_int_equal(leat_fsync(f), 0);
	expect_refused(leat_fallocate(f, 0, 0, 10), cause);
	expect_refused((int)leat_seek_data(f, 0), cause);
	close_file(m, f);
	f = open_file(m, "empty", O_WRONLY | O_CREAT | O_TRUNC);
	close_file(m, f);
	assert_int_equal(leat_unlink(m, "empty"), 0);
}

static int setup_on(bool tcp)
{
	volume_rig_start(tcp, "stripe=64K");
	m = volume_rig_mount(NULL);
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
	leat_umount(m);
	volume_rig_stop();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_ranges), cmocka_unit_test(holes),      cmocka_unit_test(many_parts),
		cmocka_unit_test(no_copies),	 cmocka_unit_test(two_clients), cmocka_unit_test(sync_write),
		cmocka_unit_test(not_yet),	 cmocka_unit_test(reports_by_itself), cmocka_unit_test(explicit_times), cmocka_unit_test(budget),
		cmocka_unit_test(budget_of_copies),
		cmocka_unit_test(cancelled_in_turn), cmocka_unit_test(shared_registrations), cmocka_unit_test(shared_buffers),
		cmocka_unit_test(new_map),
		cmocka_unit_test(cuts), cmocka_unit_test(cuts_of_others), cmocka_unit_test(removed), cmocka_unit_test(shared_servers), cmocka_unit_test(threads),
	};
	int failed = cmocka_run_group_tests_name("local", tests, setup_local, teardown);

	if (getenv("LEAT_TEST_VARIANT")) /* of nothing that TCP has */
		return failed;
	return failed + cmocka_run_group_tests_name("tcp", tests, setup_tcp, teardown);
}
