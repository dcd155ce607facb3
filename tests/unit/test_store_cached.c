/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_store_cached.c - which answers of a stable write or a sync mean that something was lost
 *
 * Linked with --wrap of the calls that would tell.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <fcntl.h>
#include <unistd.h>

#include <cmocka.h>

#include "commit.h"
#include "export.h"

#include "server/store_cached.c"

/* results of pwritev2(), the last one again and again; below 0 an errno */
static ssize_t script[4];
static unsigned step, syncs;
static int sync_err, lost;

ssize_t __wrap_pwritev2(int fd, const struct iovec *iov, int n, off_t off, int flags);
int __wrap_fsync(int fd);
int __wrap_fdatasync(int fd);

ssize_t __wrap_pwritev2(int fd, const struct iovec *iov, int n, off_t off, int flags)
{
	ssize_t r = script[step];

	(void)fd, (void)iov, (void)n, (void)off;
	if (step + 1 < ARRAY_SIZE(script) && script[step + 1])
		step++;
	if (r == -EOPNOTSUPP && !flags)
		r = 100;
	if (r < 0)
		errno = (int)-r;
	return r < 0 ? -1 : r;
}

int __wrap_fsync(int fd)
{
	(void)fd;
	syncs++;
	errno = sync_err;
	return sync_err ? -1 : 0;
}

int __wrap_fdatasync(int fd)
{
	return __wrap_fsync(fd);
}

static void on_lost(void *ctx)
{
	(void)ctx;
	lost++;
}

static struct store_io run(void (*fn)(struct worker_job *), enum store_stable stable, ssize_t a,
			   ssize_t b)
{
	static char data[100];
	struct iovec iov = { data, sizeof(data) };
	struct store_file file = { .fd = -1, .writable = true };
	struct creds creds = { 0 };
	struct export exp = { 0 };
	struct store s = { .exp = &exp };
	struct store_io io = { .op = STORE_WRITE, .store = &s, .file = &file, .iov = &iov, .iovcnt = 1,
			       .bytes = sizeof(data), .stable = stable, .creds = &creds };

	assert_int_equal(commit_create(on_lost, NULL, &exp.commit), 0);
	memset(script, 0, sizeof(script));
	script[0] = a;
	script[1] = b;
	step = syncs = 0;
	lost = 0;
	fn(&io.job);
	commit_destroy(exp.commit);
	return io;
}

static void check(const struct store_io *io, int32_t res, bool is_lost)
{
	assert_int_equal(io->res, res);
	assert_int_equal(io->sync_failed, is_lost);
	assert_int_equal(lost, is_lost);
}

static void stable_writes(void **state)
{
	static const int errs[] = { EIO, ENOSPC, EDQUOT, EROFS, ENXIO, ENOMEM };
	struct store_io io = run(run_write, STORE_FILE_SYNC, 100, 0);

	(void)state;
	check(&io, 100, false);
	io = run(run_write, STORE_FILE_SYNC, 40, 60);
	check(&io, 100, false);
	for (size_t i = 0; i < ARRAY_SIZE(errs); i++) {
		io = run(run_write, STORE_FILE_SYNC, -errs[i], 0);
		check(&io, -errs[i], true);
		io = run(run_write, STORE_UNSTABLE, -errs[i], 0);
		check(&io, -errs[i], false);
	}
	io = run(run_write, STORE_DATA_SYNC, -EFBIG, 0);
	check(&io, -EFBIG, false);
}

/* Some bytes went well, so that is the answer; what the system said of the next would be told once. */
static void after_some_bytes(void **state)
{
	struct store_io io = run(run_write, STORE_DATA_SYNC, 40, -EIO);

	(void)state;
	check(&io, 40, true);
}

static void without_flags(void **state)
{
	struct store_io io = run(run_write, STORE_FILE_SYNC, -EOPNOTSUPP, 0);

	(void)state;
	check(&io, 100, false);
	assert_int_equal(syncs, 1);
	sync_err = EIO;
	io = run(run_write, STORE_DATA_SYNC, -EOPNOTSUPP, 0);
	check(&io, -EIO, true);
	sync_err = 0;
}

static void syncs_alone(void **state)
{
	struct store_io io = run(run_sync, STORE_UNSTABLE, 0, 0);

	(void)state;
	check(&io, 0, false);
	sync_err = EROFS;
	io = run(run_sync, STORE_UNSTABLE, 0, 0);
	check(&io, -EROFS, true);
	sync_err = 0;
}

/* Such a file is put into a cache by those who know of no second descriptor. */
static void closes_what_it_has(void **state)
{
	struct store_file f = { .fd = dup(STDERR_FILENO) };
	int null = open("/dev/null", O_RDONLY), was = dup(STDIN_FILENO), fd = f.fd;

	(void)state;
	assert_true(dup2(null, STDIN_FILENO) == STDIN_FILENO); /* descriptor 0 is there */
	store_close(&store_cached_ops, &f);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	assert_true(fcntl(STDIN_FILENO, F_GETFD) >= 0);
	close(null);
	if (was >= 0) {
		(void)dup2(was, STDIN_FILENO);
		close(was);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stable_writes),
		cmocka_unit_test(after_some_bytes),
		cmocka_unit_test(without_flags),
		cmocka_unit_test(syncs_alone),
		cmocka_unit_test(closes_what_it_has),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
