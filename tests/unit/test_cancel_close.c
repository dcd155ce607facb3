/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_cancel_close.c - files and mounts that are closed while operations are in flight
 */
#include "readahead.h"
#include "test_cancel.h"

static void closing(void **state)
{
	struct leat_file *f = fake_open(m, O_RDWR);
	struct count io = { 0 }, c = { 0 };
	static char buf[PART];

	(void)state;
	assert_int_equal(leat_pwrite(f, buf, PART, 0), PART);
	assert_true(f->has_unstable);
	/* waits for the read, which is cancelled, too; then its COMMIT is not sent */
	assert_int_equal(leat_aio_pread(f, buf, PART, 0, counted(&io)), 0);
	assert_int_equal(leat_aio_close(f, counted(&c)), 0);
	assert_int_equal(leat_cancel_all(m), 0);
	run();
	assert_int_equal(io.result, -ECANCELED);
	assert_int_equal(c.result, -ECANCELED);
	assert_int_equal(fake.by_proc[NFSPROC3_COMMIT], 0);
	assert_true(list_is_empty(&m->files));
	/* its COMMIT is in flight */
	f = fake_open(m, O_RDWR);
	assert_int_equal(leat_pwrite(f, buf, PART, 0), PART);
	c = (struct count){ 0 };
	assert_int_equal(leat_aio_close(f, counted(&c)), 0);
	assert_int_equal(fake.by_proc[NFSPROC3_COMMIT], 1);
	cancel_one(&c, -ECANCELED);
	assert_true(list_is_empty(&m->files));
	/* interrupted before: closed all the same, without a reply */
	f = fake_open(m, O_RDWR);
	assert_int_equal(leat_pwrite(f, buf, PART, 0), PART);
	leat_interrupt(m);
	fake.silent = true;
	assert_int_equal(leat_close(f), -EINTR);
	fake.silent = false;
	assert_true(list_is_empty(&m->files));
	assert_int_equal(leat_null(m), 0);
}

/* Nothing has been lost: a later fsync commits the data. */
static void syncing(void **state)
{
	struct leat_file *f = fake_open(m, O_RDWR);
	struct count c = { 0 };
	static char buf[PART];

	(void)state;
	assert_int_equal(leat_pwrite(f, buf, PART, 0), PART);
	assert_int_equal(leat_aio_fsync(f, counted(&c)), 0);
	cancel_one(&c, -ECANCELED);
	assert_int_equal(leat_fsync(f), 0);
	assert_int_equal(fake.by_proc[NFSPROC3_COMMIT], 2);
	assert_int_equal(leat_close(f), 0);
	assert_int_equal(fake.by_proc[NFSPROC3_COMMIT], 2);
}

/* A close that waits for other operations on its file ends, though the server does not reply. */
static void closing_behind_others(void **state)
{
	struct leat_file *f = fake_open(m, O_RDWR), *other = fake_open(m, O_RDWR);
	struct count io = { 0 }, c = { 0 }, of_other = { 0 };
	static char buf[PART];

	(void)state;
	assert_int_equal(leat_aio_pread(f, buf, PART, 0, counted(&io)), 0);
	assert_int_equal(leat_aio_pread(other, buf, PART, 0, counted(&of_other)), 0);
	assert_int_equal(leat_aio_close(f, counted(&c)), 0);
	fake.silent = true;
	assert_int_equal(leat_cancel(m, &c), 0);
	run();
	assert_int_equal(io.result, -ECANCELED);
	assert_int_equal(c.fn, 1);
	assert_int_equal(of_other.fn, 0);
	fake.silent = false;
	run();
	assert_int_equal(of_other.result, PART);
	/* an interrupted close, behind what is read ahead */
	m->url.readahead_bytes = 4 * PART;
	assert_int_equal(leat_read(other, buf, PART), PART);
	assert_int_equal(leat_read(other, buf, PART), PART);
	fake.silent = true;
	leat_interrupt(m);
	assert_int_equal(leat_close(other), 0); /* nothing to commit: it is closed all the same */
	assert_true(list_is_empty(&m->files));
}

/* ---- a close behind each kind of operation ---- */

static char bytes[PART];
static struct leat_acl_entry acl[3] = {
	{ .tag = LEAT_ACL_USER_OBJ, .perm = 6 }, { .tag = LEAT_ACL_GROUP_OBJ, .perm = 4 }, { .tag = LEAT_ACL_OTHER },
};

static int start_pread(struct leat_file *f, struct leat_cb cb)
{
	return leat_aio_pread(f, bytes, PART, 0, cb);
}

static int start_pwrite(struct leat_file *f, struct leat_cb cb)
{
	return leat_aio_pwrite(f, bytes, PART, 0, cb);
}

/* as leat_read() starts it */
static int start_read(struct leat_file *f, struct leat_cb cb)
{
	return lt_readahead_read(f, bytes, PART, 0, cb);
}

static int start_ftruncate(struct leat_file *f, struct leat_cb cb)
{
	return leat_aio_ftruncate(f, 1, cb);
}

static int start_fallocate(struct leat_file *f, struct leat_cb cb)
{
	return leat_aio_fallocate(f, 0, 0, PART, cb);
}

static int start_seek(struct leat_file *f, struct leat_cb cb)
{
	return leat_aio_seek_hole(f, 0, cb);
}

static int start_fstat(struct leat_file *f, struct leat_cb cb)
{
	static struct stat st;

	return leat_aio_fstat(f, &st, cb);
}

static int start_fchmod(struct leat_file *f, struct leat_cb cb)
{
	return leat_aio_fchmod(f, 0600, cb);
}

static int start_facl_get(struct leat_file *f, struct leat_cb cb)
{
	return leat_aio_facl_get(f, acl, ARRAY_SIZE(acl), cb);
}

static int start_facl_set(struct leat_file *f, struct leat_cb cb)
{
	return leat_aio_facl_set(f, acl, ARRAY_SIZE(acl), cb);
}

static void closing_behind_each(void **state)
{
	static int (*const kinds[])(struct leat_file *f, struct leat_cb cb) = {
		start_pread, start_pwrite, start_read, leat_aio_fsync, start_ftruncate, start_fallocate, start_seek,
		start_fstat, start_fchmod, start_facl_get, start_facl_set,
	};

	(void)state;
	m->server->is_leatd = true;
	m->url.readahead_bytes = 4 * PART;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct leat_file *f = fake_open(m, O_RDWR);
		struct count op = { 0 }, c = { 0 };

		fake.silent = true;
		assert_int_equal(kinds[i](f, counted(&op)), 0);
		assert_int_equal(fake.count, 1);
		assert_int_equal(leat_aio_close(f, counted(&c)), 0);
		cancel_one(&c, 0);
		assert_int_equal(op.fn, 1);
		assert_true(op.result == -ECANCELED || op.result == -EINPROGRESS);
		assert_true(list_is_empty(&m->files));
		fake.silent = false;
	}
}

/* ---- the end of a mount whose server does not reply ---- */

static void umount_in_time(void **state)
{
	struct count c[100] = { 0 };
	static char buf[PART];
	struct leat_file *f;

	(void)state;
	f = fake_open(m, O_RDWR);
	assert_int_equal(leat_pwrite(f, buf, PART, 0), PART);
	fake.silent = true;
	for (size_t i = 0; i < ARRAY_SIZE(c); i++)
		assert_int_equal(leat_aio_pread(f, buf, PART, 0, counted(&c[i])), 0);
	assert_int_equal(leat_umount_within(m, 1), -ETIMEDOUT);
	for (size_t i = 0; i < ARRAY_SIZE(c); i++) {
		assert_int_equal(c[i].fn, 1);
		assert_int_equal(c[i].result, -ECANCELED);
	}
	/* nothing in flight, but data to commit */
	m = fake_mount(1);
	fake.answer = answer;
	f = fake_open(m, O_RDWR);
	assert_int_equal(leat_pwrite(f, buf, PART, 0), PART);
	fake.silent = true;
	assert_int_equal(leat_umount_within(m, 1), -ETIMEDOUT);
	/* the application is closing the file already */
	m = fake_mount(1);
	fake.answer = answer;
	f = fake_open(m, O_RDWR);
	assert_int_equal(leat_pwrite(f, buf, PART, 0), PART);
	fake.silent = true;
	c[0] = (struct count){ 0 };
	assert_int_equal(leat_aio_close(f, counted(&c[0])), 0);
	assert_int_equal(leat_umount_within(m, 1), -ETIMEDOUT);
	assert_int_equal(c[0].result, -ECANCELED);
	/* and in time, it is as leat_umount() */
	m = fake_mount(1);
	fake.answer = answer;
	f = fake_open(m, O_RDWR);
	assert_int_equal(leat_pwrite(f, buf, PART, 0), PART);
	assert_int_equal(leat_umount_within(m, 60000), 0);
	assert_int_equal(fake.by_proc[NFSPROC3_COMMIT], 1);
	assert_int_equal(leat_umount_within(NULL, 0), 0);
	m = fake_mount(1);
	fake.answer = answer;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cancel_test(closing),
		cancel_test(syncing),
		cancel_test(closing_behind_others),
		cancel_test(closing_behind_each),
		cancel_test(umount_in_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
