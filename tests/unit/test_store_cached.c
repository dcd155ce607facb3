/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_store_cached.c - which errors of a stable write or a sync mean that data was lost
 *
 * Linked with --wrap of the calls that would tell.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "fsync_batch.h"
#include "export.h"

#include "server/store/store_cached.c"

#define DEV 7u

/* results of pwritev2(), the last one again and again; below 0 an errno */
static ssize_t script[4];
static unsigned step, syncs, data_syncs;
static int sync_err, flags_seen;
static atomic_int lost;
static void (*in_sync)(void); /* before it returns */

ssize_t __wrap_pwritev2(int fd, const struct iovec *iov, int n, off_t off, int flags);
int __wrap_fsync(int fd);
int __wrap_fdatasync(int fd);

ssize_t __wrap_pwritev2(int fd, const struct iovec *iov, int n, off_t off, int flags)
{
	ssize_t r = script[step];

	(void)fd, (void)iov, (void)n, (void)off;
	flags_seen |= flags;
	if (step + 1 < ARRAY_SIZE(script) && script[step + 1])
		step++;
	if (r < 0)
		errno = (int)-r;
	return r < 0 ? -1 : r;
}

int __wrap_fsync(int fd)
{
	(void)fd;
	syncs++;
	if (in_sync)
		in_sync();
	errno = sync_err;
	return sync_err ? -1 : 0;
}

int __wrap_fdatasync(int fd)
{
	data_syncs++;
	return __wrap_fsync(fd);
}

static size_t msync_bytes;
static unsigned msyncs;

int __wrap_msync(void *at, size_t len, int flags);

int __wrap_msync(void *at, size_t len, int flags)
{
	(void)at;
	assert_int_equal(flags, MS_SYNC);
	msyncs++;
	msync_bytes = len;
	errno = sync_err;
	return sync_err ? -1 : 0;
}

static void on_lost(void *ctx, uint64_t dev)
{
	(void)ctx;
	assert_int_equal(dev, DEV);
	lost++;
}

static struct store_io run(void (*fn)(struct worker_job *), enum store_stable stable, ssize_t a,
			   ssize_t b)
{
	static char data[100];
	struct iovec iov = { data, sizeof(data) };
	struct store_file file = { .fd = -1, .writable = true, .dev = DEV };
	struct creds creds = { 0 };
	struct export exp = { 0 };
	struct store s = { .backing = &exp.backing };
	struct store_io io = { .op = STORE_WRITE, .store = &s, .file = &file, .iov = &iov, .iovcnt = 1,
			       .bytes = sizeof(data), .stable = stable, .creds = &creds };

	assert_int_equal(fsync_batch_create(on_lost, NULL, &exp.backing.fsyncs), 0);
	memset(script, 0, sizeof(script));
	script[0] = a;
	script[1] = b;
	step = syncs = data_syncs = 0;
	lost = 0;
	flags_seen = 0;
	fn(&io.job);
	fsync_batch_destroy(exp.backing.fsyncs);
	return io;
}

static void check(const struct store_io *io, int32_t res, bool is_lost)
{
	assert_int_equal(io->res, res);
	assert_int_equal(io->sync_failed, is_lost);
	assert_int_equal(lost, is_lost);
}

/* The errors that a user can cause are among them: by a quota, or by a full disk. */
static const int errs[] = { EIO, ENOSPC, EDQUOT, EROFS, ENXIO, ENOMEM, EFBIG };

static void stable_writes(void **state)
{
	struct store_io io = run(run_write, STORE_FILE_SYNC, 100, 0);

	(void)state;
	check(&io, 100, false);
	assert_int_equal(syncs, 1);
	assert_int_equal(data_syncs, 0);
	io = run(run_write, STORE_DATA_SYNC, 40, 60);
	check(&io, 100, false);
	assert_int_equal(syncs, 1);
	assert_int_equal(data_syncs, 1);
	assert_int_equal(flags_seen, 0); /* the error of one that syncs, too, has two meanings */
	io = run(run_write, STORE_UNSTABLE, 100, 0);
	check(&io, 100, false);
	assert_int_equal(syncs, 0);
}

/* The write failed: there is no news of what was written before, and nothing to sync. */
static void failed_writes(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(errs); i++) {
		for (enum store_stable how = STORE_UNSTABLE; how <= STORE_FILE_SYNC; how++) {
			struct store_io io = run(run_write, how, -errs[i], 0);

			check(&io, -errs[i], false);
			assert_int_equal(syncs, 0);
		}
	}
}

/* Some bytes went well, so that is the answer, once they are synced. */
static void after_some_bytes(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(errs); i++) {
		struct store_io io = run(run_write, STORE_DATA_SYNC, 40, -errs[i]);

		check(&io, 40, false);
		assert_int_equal(syncs, 1);
	}
}

/* Data that another WRITE left in the page cache is lost, for want of space like as not, and this one's
 * sync is the first to hear of it. */
static void failed_syncs(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(errs); i++) {
		struct store_io io;

		sync_err = errs[i];
		io = run(run_write, STORE_DATA_SYNC, 100, 0);
		check(&io, -errs[i], true);
		io = run(run_write, STORE_FILE_SYNC, 40, -ENOSPC);
		check(&io, -errs[i], true);
	}
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

/* The kernel reports a loss once per open file. Another sync of that file that returns 0 must not return before the
 * verifier has changed. */
static struct other_sync {
	pthread_t thread;
	struct store_io io;
	int lost_then;
	atomic_bool ended;
} other;

static void *sync_too(void *arg)
{
	(void)arg;
	run_sync(&other.io.job);
	other.lost_then = lost;
	atomic_store(&other.ended, true);
	return NULL;
}

/* Runs in the sync to which the kernel reports the loss. */
static void begin_other(void)
{
	in_sync = NULL;
	sync_err = 0;
	assert_int_equal(pthread_create(&other.thread, NULL, sync_too, NULL), 0);
	for (int i = 0; i < 10000 && !atomic_load(&other.ended); i++)
		sched_yield();
	sync_err = EIO; /* of this one; the other one may have returned by now */
}

static void told_to_another(void **state)
{
	static char data[100];
	struct iovec iov = { data, sizeof(data) };
	struct store_file file = { .fd = -1, .writable = true, .dev = DEV };
	struct creds creds = { 0 };
	struct export exp = { 0 };
	struct store s = { .backing = &exp.backing };

	(void)state;
	assert_int_equal(fsync_batch_create(on_lost, NULL, &exp.backing.fsyncs), 0);
	memset(script, 0, sizeof(script));
	script[0] = sizeof(data);
	for (int by_write = 0; by_write < 2; by_write++) {
		struct store_io io = { .op = by_write ? STORE_WRITE : STORE_SYNC, .store = &s, .file = &file, .iov = &iov,
				       .iovcnt = 1, .bytes = sizeof(data), .stable = STORE_FILE_SYNC, .creds = &creds };

		memset(&other, 0, sizeof(other));
		other.io = (struct store_io){ .op = STORE_SYNC, .store = &s, .file = &file };
		step = 0;
		lost = 0;
		in_sync = begin_other;
		(by_write ? run_write : run_sync)(&io.job);
		sync_err = 0;
		pthread_join(other.thread, NULL);
		assert_int_equal(io.res, -EIO);
		assert_true(other.io.res == 0 ? other.lost_then == 1 : other.io.res == -EIO);
	}
	fsync_batch_destroy(exp.backing.fsyncs);
}

static struct store_io sync_part(const struct store_file *file, uint64_t off, uint32_t bytes)
{
	struct export exp = { 0 };
	struct store s = { .backing = &exp.backing };
	struct store_file f = *file;
	struct store_io io = { .op = STORE_SYNC, .store = &s, .file = &f, .off = off, .bytes = bytes };

	assert_int_equal(fsync_batch_create(on_lost, NULL, &exp.backing.fsyncs), 0);
	syncs = msyncs = 0;
	lost = 0;
	run_sync(&io.job);
	fsync_batch_destroy(exp.backing.fsyncs);
	return io;
}

/* Of a part only that part is synced, in whole pages; where that cannot be, all of the file */
static void syncs_of_parts(void **state)
{
	struct store_file f = { .fd = memfd_create("f", MFD_CLOEXEC), .dev = DEV, .at_once = true };
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct store_io io = sync_part(&f, 3 * page + 7, 100);

	(void)state;
	assert_int_equal(io.res, 0);
	assert_int_equal(syncs, 0);
	assert_int_equal(msyncs, 1);
	assert_int_equal(msync_bytes, 107);
	io = sync_part(&f, INT64_MAX - 100, 100);
	check(&io, 0, false);
	assert_int_equal(syncs + msyncs, 1);
	io = sync_part(&f, 0, 0);
	assert_int_equal(syncs, 1);
	assert_int_equal(msyncs, 0);
	f.in_memory = true;
	io = sync_part(&f, 0, 100);
	assert_int_equal(syncs, 1);
	f.in_memory = false;
	/* mmap() would wait, and with it every thread that wants memory */
	f.at_once = false;
	io = sync_part(&f, 0, 100);
	assert_int_equal(syncs, 1);
	f.at_once = f.sets_atime = true;
	io = sync_part(&f, 0, 100);
	assert_int_equal(syncs, 1);
	f.sets_atime = false;
	for (size_t i = 0; i < ARRAY_SIZE(errs); i++) {
		sync_err = errs[i];
		io = sync_part(&f, 100, 1);
		check(&io, -errs[i], true);
		assert_int_equal(syncs, 0);
	}
	sync_err = 0;
	close(f.fd);
	f.fd = -1; /* one that cannot be mapped */
	io = sync_part(&f, 0, 100);
	check(&io, 0, false);
	assert_int_equal(syncs, 1);
}

static void adopt(int fd, bool at_once, bool in_memory, enum fs_atime atime, struct store_file *ret)
{
	struct export exp = {
		.backing.limits = { .answers_at_once = at_once, .in_memory = in_memory, .atime = atime },
	};

	store_adopt(&exp.backing, fd, true, ret);
}

static bool leaves_atime(int fd)
{
	return fcntl(fd, F_GETFL) & O_NOATIME;
}

/* What a reactor reads sets no access time, which may take a journal. */
static void access_times(void **state)
{
	int fd = memfd_create("f", MFD_CLOEXEC);
	struct store_file f;

	(void)state;
	adopt(fd, false, false, FS_ATIME_RELATIVE, &f); /* is read by workers anyway */
	assert_false(leaves_atime(fd) || f.sets_atime || f.no_nowait_read);
	adopt(fd, true, true, FS_ATIME_RELATIVE, &f); /* has no journal */
	assert_false(leaves_atime(fd) || f.sets_atime || f.no_nowait_read);
	adopt(fd, true, false, FS_ATIME_RELATIVE, &f);
	assert_true(leaves_atime(fd));
	assert_false(f.sets_atime || f.no_nowait_read);
	close(fd);
}

/* O_NOATIME fails on a file of another user: then workers read. */
static void times_of_others(void **state)
{
	int fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC), was = setfsuid(65534); /* nothing but for root */
	struct store_file f;

	(void)state;
	assert_true(fd >= 0);
	adopt(fd, true, false, FS_ATIME_RELATIVE, &f);
	assert_true(f.sets_atime && f.no_nowait_read);
	adopt(fd, true, false, FS_ATIME_ALWAYS, &f);
	assert_true(f.sets_atime && f.no_nowait_read);
	adopt(fd, true, false, FS_ATIME_NEVER, &f); /* mounted noatime: a read does not set it */
	assert_false(f.sets_atime || f.no_nowait_read);
	(void)setfsuid((uid_t)was);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stable_writes),
		cmocka_unit_test(failed_writes),
		cmocka_unit_test(after_some_bytes),
		cmocka_unit_test(failed_syncs),
		cmocka_unit_test(syncs_alone),
		cmocka_unit_test(told_to_another),
		cmocka_unit_test(syncs_of_parts),
		cmocka_unit_test(access_times),
		cmocka_unit_test(times_of_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
