/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_file.c - what a file's writes come to: verifiers, COMMIT, honest errors; readahead
 */
#include "fake_rpc.h"

static struct leat *m;
static struct leat_file *f;
static char verf_write[8], verf_commit[8]; /* what the server says */
static nfsstat3 commit_status;
static stable_how committed;               /* at least; else as asked */
static stable_how asked;
static uint64_t file_size;
static uint8_t life;                       /* added to each byte: changes with each write */

static int answer(struct rpcrdma_call *call)
{
	if (call->proc == NFSPROC3_WRITE) {
		const WRITE3args *a = call->args;
		WRITE3res *r = call->res;

		asked = a->stable;
		r->status = NFS3_OK;
		r->WRITE3res_u.resok.count = a->count;
		r->WRITE3res_u.resok.committed = MAX(a->stable, committed);
		memcpy(r->WRITE3res_u.resok.verf, verf_write, 8);
		file_size = MAX(file_size, a->offset + a->count);
		life++;
	} else if (call->proc == NFSPROC3_COMMIT) {
		COMMIT3res *r = call->res;

		r->status = commit_status;
		memcpy(r->COMMIT3res_u.resok.verf, verf_commit, 8);
	} else if (call->proc == NFSPROC3_READ) {
		const READ3args *a = call->args;
		READ3res *r = call->res;
		uint32_t n = a->offset < file_size ?
			(uint32_t)MIN((uint64_t)a->count, file_size - a->offset) : 0;

		for (uint32_t i = 0; i < n; i++)
			((uint8_t *)call->sink[0].iov_base)[i] = (uint8_t)((a->offset + i) % 251 + life);
		r->status = NFS3_OK;
		r->READ3res_u.resok.count = r->READ3res_u.resok.data.length = n;
		r->READ3res_u.resok.eof = a->offset + n >= file_size;
	} else {
		assert_int_equal(call->proc, NFSPROC3_SETATTR);
		((SETATTR3res *)call->res)->status = NFS3_OK;
	}
	return 0;
}

static int setup(void **state)
{
	(void)state;
	m = fake_mount(1);
	f = fake_open(m, O_RDWR);
	fake.answer = answer;
	memcpy(verf_write, "life-one", 8);
	memcpy(verf_commit, "life-one", 8);
	commit_status = NFS3_OK;
	committed = UNSTABLE;
	file_size = 0;
	life = 0;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	leat_umount(m);
	return 0;
}

static void write_some(void)
{
	assert_int_equal(leat_pwrite(f, "abc", 3, 0), 3);
}

static void clean_close(void **state)
{
	(void)state;
	assert_int_equal(leat_close(f), 0);
	assert_int_equal(fake.calls, 0);
}

static void close_commits(void **state)
{
	(void)state;
	write_some();
	assert_int_equal(asked, UNSTABLE);
	assert_int_equal(leat_close(f), 0);
	assert_int_equal(fake.by_proc[NFSPROC3_COMMIT], 1);
}

static void umount_commits(void **state)
{
	(void)state;
	write_some();
	leat_umount(m);
	assert_int_equal(fake.by_proc[NFSPROC3_COMMIT], 1);
	m = NULL;
}

static void fsync_then_close(void **state)
{
	(void)state;
	write_some();
	assert_int_equal(leat_fsync(f), 0);
	assert_int_equal(leat_close(f), 0);
	assert_int_equal(fake.by_proc[NFSPROC3_COMMIT], 1);
}

static void stable_server(void **state)
{
	(void)state;
	committed = FILE_SYNC;
	write_some();
	assert_int_equal(leat_close(f), 0);
	assert_int_equal(fake.by_proc[NFSPROC3_COMMIT], 0);
}

static void sync_files(void **state)
{
	(void)state;
	f->flags |= O_SYNC;
	write_some();
	assert_int_equal(asked, FILE_SYNC);
	f->flags = O_RDWR | O_DSYNC;
	write_some();
	assert_int_equal(asked, DATA_SYNC);
	assert_int_equal(leat_close(f), 0);
	assert_int_equal(fake.by_proc[NFSPROC3_COMMIT], 0);
}

static int answer_less(struct rpcrdma_call *call)
{
	int rc = answer(call);

	((WRITE3res *)call->res)->WRITE3res_u.resok.committed = UNSTABLE;
	return rc;
}

static void server_promises_less(void **state)
{
	(void)state;
	f->flags |= O_SYNC;
	fake.answer = answer_less;
	assert_int_equal(leat_pwrite(f, "abc", 3, 0), -EIO);
}

/* The server restarted between WRITE and COMMIT: EIO, and again until the file is closed. */
static void lost_before_commit(void **state)
{
	(void)state;
	write_some();
	memcpy(verf_commit, "life-two", 8);
	assert_int_equal(leat_fsync(f), -EIO);
	assert_non_null(strstr(leat_error(m), "lost"));
	memcpy(verf_write, "life-two", 8);
	write_some();
	assert_int_equal(leat_fsync(f), -EIO);
	assert_int_equal(leat_close(f), -EIO);
}

/* ... or between two WRITEs: the later COMMIT agrees with the second, the first is gone. */
static void lost_between_writes(void **state)
{
	(void)state;
	write_some();
	memcpy(verf_write, "life-two", 8);
	write_some();
	memcpy(verf_commit, "life-two", 8);
	assert_int_equal(leat_close(f), -EIO);
}

/* A new life of the server between two fsyncs loses nothing. */
static void restart_while_clean(void **state)
{
	(void)state;
	write_some();
	assert_int_equal(leat_fsync(f), 0);
	memcpy(verf_write, "life-two", 8);
	memcpy(verf_commit, "life-two", 8);
	write_some();
	assert_int_equal(leat_close(f), 0);
}

static void commit_fails(void **state)
{
	(void)state;
	write_some();
	commit_status = NFS3ERR_NOSPC;
	assert_int_equal(leat_fsync(f), -ENOSPC);
	commit_status = NFS3_OK;
	assert_int_equal(leat_close(f), -EIO);
}

static unsigned pick_last(unsigned count)
{
	return count - 1;
}

static void note(void *arg, int64_t result)
{
	*(int64_t *)arg = result;
}

/* A write that is answered while COMMIT is out is not covered by it. */
static void write_during_commit(void **state)
{
	int64_t fsynced = 1, wrote = 1;

	(void)state;
	write_some();
	fake.pick = pick_last;
	assert_int_equal(leat_aio_fsync(f, (struct leat_cb){ note, &fsynced, NULL }), 0);
	assert_int_equal(leat_aio_pwrite(f, "x", 1, 9, (struct leat_cb){ note, &wrote, NULL }), 0);
	while (fsynced)
		leat_poll(leat_session(m), -1);
	assert_int_equal(wrote, 1);
	assert_int_equal(leat_close(f), 0);
	assert_int_equal(fake.by_proc[NFSPROC3_COMMIT], 2);
}

static void closed_early(void **state)
{
	int64_t wrote = -1, closed = -1;

	(void)state;
	fake.pick = pick_last;
	assert_int_equal(leat_aio_pwrite(f, "abcd", 4, 0, (struct leat_cb){ note, &wrote, NULL }), 0);
	assert_int_equal(leat_aio_close(f, (struct leat_cb){ note, &closed, NULL }), 0);
	while (closed < 0) {
		leat_poll(leat_session(m), -1);
		assert_true(closed < 0 || wrote == 4);
	}
	assert_int_equal(closed, 0);
	assert_int_equal(fake.by_proc[NFSPROC3_COMMIT], 1);
}

/* ---- leat_read, leat_write, leat_lseek ---- */

static void check_read(char *buf, size_t len, uint64_t pos, ssize_t want)
{
	assert_int_equal(leat_read(f, buf, len), want);
	for (ssize_t i = 0; i < want; i++)
		assert_int_equal((uint8_t)buf[i], (uint8_t)((pos + (uint64_t)i) % 251 + life));
}

static void sequential(void **state)
{
	static const size_t steps[] = { 100, 1, 5000, 4096, 333, 70000, 7 };
	static char buf[70000];

	(void)state;
	m->url.readahead_bytes = 32768;
	for (unsigned round = 0; round < 2; round++) {
		uint64_t pos = 0;

		file_size = 300001;
		assert_int_equal(leat_lseek(f, 0, SEEK_SET), 0);
		for (unsigned i = 0; pos < file_size; i++) {
			size_t len = steps[i % ARRAY_SIZE(steps)];
			size_t want = MIN(len, file_size - pos);

			check_read(buf, len, pos, (ssize_t)want);
			pos += want;
		}
		check_read(buf, 100, pos, 0);
		/* it grows: seen at once */
		file_size += 50;
		check_read(buf, 100, pos, 50);
		check_read(buf, 100, pos, 0);
		fake.pick = pick_last;
	}
	assert_true(fake.most_waiting >= 7);
}

static void small_file_costs_little(void **state)
{
	char buf[1000];

	(void)state;
	file_size = 700;
	check_read(buf, 1000, 0, 700);
	check_read(buf, 1000, 700, 0);
	assert_int_equal(fake.calls, 2);
}

/* What was read ahead before a write or truncation must not be handed out after it. */
static void readahead_is_dropped(void **state)
{
	static char buf[4096];
	uint64_t pos = 0;

	(void)state;
	m->url.readahead_bytes = 32768;
	file_size = 100000;
	for (; pos < 3 * sizeof(buf); pos += sizeof(buf))
		check_read(buf, sizeof(buf), pos, sizeof(buf));
	file_size = pos + 10;
	assert_int_equal(leat_ftruncate(f, file_size), 0);
	check_read(buf, sizeof(buf), pos, 10);
	assert_int_equal(leat_lseek(f, 0, SEEK_SET), 0);
	check_read(buf, 4000, 0, 4000);
	check_read(buf, 4000, 4000, 4000);
	file_size = 8100;
	assert_int_equal(leat_pwrite(f, "x", 1, 0), 1);
	check_read(buf, 4000, 8000, 100);
}

/* ... nor what the server answered before the write, however late it arrives. */
static void late_answers(void **state)
{
	static char buf[4096];
	uint64_t pos = 0;

	(void)state;
	m->url.readahead_bytes = 32768;
	file_size = 1000000;
	fake.early = true;
	for (unsigned i = 0; i < 100; i++) {
		fake.pick = i % 20 < 10 ? NULL : pick_last; /* writes overtake reads, and not */
		if (i % 10 == 9)
			write_some();
		check_read(buf, sizeof(buf), pos, sizeof(buf));
		pos += sizeof(buf);
	}
	assert_true(fake.by_proc[NFSPROC3_READ] > 100);
}

/* @quiet: what was read ahead has come back before the write is sent; else after it is done */
static void write_among_reads(bool quiet)
{
	static char buf[4096];
	int64_t wrote = -1;
	uint64_t pos = 0;

	life = 0;
	assert_int_equal(leat_lseek(f, 0, SEEK_SET), 0);
	for (; pos < 10 * sizeof(buf); pos += sizeof(buf))
		check_read(buf, sizeof(buf), pos, sizeof(buf));
	while (quiet && fake.count)
		leat_poll(leat_session(m), -1);
	assert_int_equal(leat_aio_pwrite(f, "abc", 3, 0, (struct leat_cb){ note, &wrote, NULL }), 0);
	fake.pick = pick_last;
	for (; pos < 20 * sizeof(buf); pos += sizeof(buf))
		check_read(buf, sizeof(buf), pos, sizeof(buf));
	assert_int_equal(wrote, -1);
	fake.pick = NULL;
	while (wrote < 0)
		leat_poll(leat_session(m), -1);
	for (; pos < 30 * sizeof(buf); pos += sizeof(buf))
		check_read(buf, sizeof(buf), pos, sizeof(buf));
}

/* ... nor what was asked while the write was on its way. */
static void reads_during_a_write(void **state)
{
	(void)state;
	m->url.readahead_bytes = 32768;
	file_size = 1000000;
	write_among_reads(false);
	write_among_reads(true);
}

static void positions(void **state)
{
	char buf[16];

	(void)state;
	assert_int_equal(leat_write(f, "0123456789", 10), 10);
	assert_int_equal(leat_lseek(f, 0, SEEK_CUR), 10);
	assert_int_equal(leat_lseek(f, -3, SEEK_CUR), 7);
	check_read(buf, 16, 7, 3);
	assert_int_equal(leat_lseek(f, -11, SEEK_CUR), -EINVAL);
	assert_int_equal(leat_lseek(f, 5, 99), -EINVAL);
	assert_int_equal(leat_lseek(f, INT64_MAX, SEEK_SET), INT64_MAX);
	assert_int_equal(leat_lseek(f, 1, SEEK_CUR), -EOVERFLOW);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(clean_close),
		TEST(close_commits),
		TEST(umount_commits),
		TEST(fsync_then_close),
		TEST(stable_server),
		TEST(sync_files),
		TEST(server_promises_less),
		TEST(lost_before_commit),
		TEST(lost_between_writes),
		TEST(restart_while_clean),
		TEST(commit_fails),
		TEST(write_during_commit),
		TEST(closed_early),
		TEST(sequential),
		TEST(small_file_costs_little),
		TEST(readahead_is_dropped),
		TEST(late_answers),
		TEST(reads_during_a_write),
		TEST(positions),
	};
#undef TEST

	return cmocka_run_group_tests(tests, NULL, NULL);
}
