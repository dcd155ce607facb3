/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_volume_crash.c - the manager of a volume stops before each change of its disk and before each command to a stripe
 * server, while a file is cut, removed or replaced
 *
 * Once a test has made it stop, no change of its has an effect, and no command is sent. The next manager finds what is there
 * then. After pending work has ended, the file is the old or the new one, and no object is left of a file that is gone.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "leat.h"
#include "leat_volume.h"
#include "volume_pending.h"
#include "volume_rig.h"

LOG_DEFINE("test_volume_crash");

#define BYTES (512u << 10)
#define CUT 100000u

/* ---- the manager's disk, and its commands ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool counts, stopped;
static unsigned long left; /* changes that still have an effect */

/* Return: has it an effect? */
static bool goes_on(void)
{
	bool on;

	pthread_mutex_lock(&lock);
	if (counts && !left)
		stopped = true;
	else if (counts)
		left--;
	on = !counts || !stopped;
	pthread_mutex_unlock(&lock);
	if (!on)
		errno = EIO;
	return on;
}

static void arm(bool on, unsigned long n)
{
	pthread_mutex_lock(&lock);
	counts = on;
	left = n;
	if (on)
		stopped = false;
	pthread_mutex_unlock(&lock);
}

int __real_linkat(int from_dir, const char *from, int to_dir, const char *to, int flags);
int __wrap_linkat(int from_dir, const char *from, int to_dir, const char *to, int flags);
int __real_unlinkat(int dir, const char *name, int flags);
int __wrap_unlinkat(int dir, const char *name, int flags);
int __real_renameat(int from_dir, const char *from, int to_dir, const char *to);
int __wrap_renameat(int from_dir, const char *from, int to_dir, const char *to);
int __real_setxattr(const char *path, const char *name, const void *value, size_t n, int flags);
int __wrap_setxattr(const char *path, const char *name, const void *value, size_t n, int flags);
int __real_truncate(const char *path, off_t length);
int __wrap_truncate(const char *path, off_t length);
int __real_leat_volume_object_fence(struct leat *m, const struct leat_volume_command *c, uint64_t epoch, const uint64_t *cut,
				    struct leat_volume_object *ret, uint64_t *newest);
int __wrap_leat_volume_object_fence(struct leat *m, const struct leat_volume_command *c, uint64_t epoch, const uint64_t *cut,
				    struct leat_volume_object *ret, uint64_t *newest);
int __real_leat_volume_object_remove(struct leat *m, const struct leat_volume_command *c, uint64_t until,
				     struct leat_volume_object *ret, uint64_t *newest);
int __wrap_leat_volume_object_remove(struct leat *m, const struct leat_volume_command *c, uint64_t until,
				     struct leat_volume_object *ret, uint64_t *newest);

int __wrap_linkat(int from_dir, const char *from, int to_dir, const char *to, int flags)
{
	return goes_on() ? __real_linkat(from_dir, from, to_dir, to, flags) : -1;
}

int __wrap_unlinkat(int dir, const char *name, int flags)
{
	return goes_on() ? __real_unlinkat(dir, name, flags) : -1;
}

int __wrap_renameat(int from_dir, const char *from, int to_dir, const char *to)
{
	return goes_on() ? __real_renameat(from_dir, from, to_dir, to) : -1;
}

int __wrap_setxattr(const char *path, const char *name, const void *value, size_t n, int flags)
{
	return goes_on() ? __real_setxattr(path, name, value, n, flags) : -1;
}

int __wrap_truncate(const char *path, off_t length)
{
	return goes_on() ? __real_truncate(path, length) : -1;
}

int __wrap_leat_volume_object_fence(struct leat *m, const struct leat_volume_command *c, uint64_t epoch, const uint64_t *cut,
				    struct leat_volume_object *ret, uint64_t *newest)
{
	return goes_on() ? __real_leat_volume_object_fence(m, c, epoch, cut, ret, newest) : -EIO;
}

int __wrap_leat_volume_object_remove(struct leat *m, const struct leat_volume_command *c, uint64_t until,
				     struct leat_volume_object *ret, uint64_t *newest)
{
	return goes_on() ? __real_leat_volume_object_remove(m, c, until, ret, newest) : -EIO;
}

/* ---- files ---- */

static struct leat *m;
static uint8_t data[BYTES], mem[BYTES];

static void write_file(const char *name)
{
	struct leat_file *f = volume_rig_open(m, name, O_RDWR | O_CREAT);

	assert_int_equal(leat_pwrite(f, data, BYTES, 0), BYTES);
	assert_int_equal(leat_close(f), 0);
}

/* Return: the bytes of @name that are those of data; all others up to BYTES are zeroes after it has grown. -1: it is gone */
static int64_t good_bytes(struct leat *from, const char *name)
{
	struct leat_file *f;
	struct stat st;
	size_t good;
	int err = leat_open(from, name, O_RDWR, 0, &f);

	if (err == -ENOENT)
		return -1;
	assert_int_equal(err, 0);
	assert_int_equal(leat_fstat(f, &st), 0);
	good = (size_t)st.st_size;
	assert_true(good <= BYTES);
	assert_int_equal(leat_ftruncate(f, BYTES), 0);
	memset(mem, 0xee, BYTES);
	assert_int_equal(leat_pread(f, mem, BYTES, 0), BYTES);
	assert_memory_equal(mem, data, good);
	for (size_t i = good; i < BYTES; i++)
		if (mem[i])
			fail_msg("%s: byte %zu is %02x", name, i, mem[i]);
	assert_int_equal(leat_close(f), 0);
	return (int64_t)good;
}

static uint64_t object_bytes(void)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < VOLUME_RIG_SERVERS; i++)
		bytes += volume_rig_objects(i, NULL);
	return bytes;
}

/* ---- tests ---- */

/* Stops the manager at change @n of @act; Return: false: it has ended before. A new manager runs then */
static bool crash(void (*act)(void), unsigned long n)
{
	bool has_stopped;

	arm(true, n);
	act();
	volume_rig_end_manager();
	arm(false, 0);
	has_stopped = stopped;
	volume_rig_start_manager();
	volume_rig_settle();
	return has_stopped;
}

static void act_cut(void)
{
	struct leat_file *f = volume_rig_open(m, "f", O_RDWR);

	(void)leat_ftruncate(f, CUT); /* it may fail, or not */
	(void)leat_close(f);
}

static void act_unlink(void)
{
	(void)leat_unlink(m, "f");
}

static void act_replace(void)
{
	(void)leat_rename(m, "new", "f");
}

static void remove_all(void)
{
	(void)leat_unlink(m, "f");
	(void)leat_unlink(m, "new");
	volume_rig_settle();
	assert_int_equal(object_bytes(), 0);
}

static void check(void (*act)(void), bool replaces, int64_t outcome, unsigned long fewest)
{
	unsigned long n = 0;
	bool more = true;

	volume_rig_start(false, "stripe=64K");
	for (; more; n++) {
		struct leat *other;
		int64_t good;

		m = volume_rig_mount(NULL);
		write_file("f");
		if (replaces)
			write_file("new");
		more = crash(act, n);
		other = volume_rig_mount(NULL);
		good = good_bytes(other, "f");
		if (good != BYTES && good != outcome)
			fail_msg("stopped at %lu: %lld bytes", n, (long long)good);
		if (!more)
			assert_int_equal(good, outcome);
		leat_umount(other);
		leat_umount(m);
		m = volume_rig_mount(NULL);
		remove_all();
		leat_umount(m);
	}
	print_message("%lu changes\n", n - 1);
	assert_true(n > fewest);
	volume_rig_stop();
}

static void cuts(void **state)
{
	(void)state;
	check(act_cut, false, CUT, 9); /* link, layout, size, layout, four servers, layout, link */
}

static void unlinks(void **state)
{
	(void)state;
	check(act_unlink, false, -1, 2);
}

static void replacements(void **state)
{
	(void)state;
	check(act_replace, true, BYTES, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cuts),
		cmocka_unit_test(unlinks),
		cmocka_unit_test(replacements),
	};

	volume_times = (struct volume_times){ .server = "300ms", .away_ns = 1, .retry_ns = 10 * NS_PER_MS };
	for (size_t i = 0; i < BYTES; i++)
		data[i] = (uint8_t)(1 + i % 251);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
