/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_volume_crash.c - the manager of a volume stops before each change of its disk and before each command to a stripe
 * server, or the client before each of its calls, while a file is created, extended, cut, removed or replaced
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
#include "rpcrdma.h"
#include "volume_pending.h"
#include "volume_rig.h"

LOG_DEFINE("test_volume_crash");

#define BYTES (512u << 10)
#define CUT 100000u
#define HALF 200000u

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

int __real_openat(int dir, const char *path, int flags, ...);
int __wrap_openat(int dir, const char *path, int flags, ...);
int __real_symlinkat(const char *target, int dir, const char *name);
int __wrap_symlinkat(const char *target, int dir, const char *name);
int __real_ftruncate(int fd, off_t length);
int __wrap_ftruncate(int fd, off_t length);
int __real_rpcrdma_clnt_call(struct rpcrdma_clnt *clnt, struct rpcrdma_call *call);
int __wrap_rpcrdma_clnt_call(struct rpcrdma_clnt *clnt, struct rpcrdma_call *call);
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

/* Objects are files of stripe servers, which run in this process, too. */
static bool is_of_manager(int fd)
{
	char link[32], path[300];
	ssize_t n;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	path[n < 0 ? 0 : n] = '\0';
	return !strstr(path, "/objects");
}

int __wrap_openat(int dir, const char *path, int flags, ...)
{
	va_list ap;
	mode_t mode;

	va_start(ap, flags);
	mode = flags & O_CREAT ? va_arg(ap, mode_t) : 0;
	va_end(ap);
	if (flags & O_CREAT && is_of_manager(dir) && !goes_on())
		return -1;
	return __real_openat(dir, path, flags, mode);
}

int __wrap_symlinkat(const char *target, int dir, const char *name)
{
	return goes_on() ? __real_symlinkat(target, dir, name) : -1;
}

int __wrap_ftruncate(int fd, off_t length)
{
	return !is_of_manager(fd) || goes_on() ? __real_ftruncate(fd, length) : -1;
}

/* ---- the client's calls ---- */

static pthread_t client; /* the test's thread */
static bool client_counts, client_stopped;
static unsigned long client_left;

int __wrap_rpcrdma_clnt_call(struct rpcrdma_clnt *clnt, struct rpcrdma_call *call)
{
	if (!client_counts || !pthread_equal(pthread_self(), client))
		return __real_rpcrdma_clnt_call(clnt, call);
	if (!client_left) {
		client_stopped = true;
		return -ENETDOWN;
	}
	client_left--;
	return __real_rpcrdma_clnt_call(clnt, call);
}

/* ---- the manager's links, names and commands ---- */

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

static void write_file(const char *name, uint64_t bytes)
{
	struct leat_file *f = volume_rig_open(m, name, O_RDWR | O_CREAT);

	assert_int_equal(leat_pwrite(f, data, bytes, 0), bytes);
	assert_int_equal(leat_close(f), 0);
}

/* Return: the bytes of @name that are those of data; all others up to BYTES are zeroes after it has grown, or, with @loose,
 * data that the size does not tell. -1: it is gone */
static int64_t good_bytes(struct leat *from, const char *name, bool loose)
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
		if (mem[i] && (!loose || mem[i] != data[i]))
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
	struct leat_file *f;

	if (leat_open(m, "f", O_RDWR, 0, &f))
		return;
	(void)leat_ftruncate(f, CUT); /* it may fail, or not */
	(void)leat_close(f);
}

static void act_create(void)
{
	struct leat_file *f;

	if (!leat_open(m, "f", O_RDWR | O_CREAT | O_EXCL, 0644, &f))
		(void)leat_close(f);
}

static void act_extend(void)
{
	struct leat_file *f;

	if (leat_open(m, "f", O_RDWR, 0, &f))
		return;
	(void)leat_pwrite(f, data + HALF, BYTES - HALF, HALF);
	(void)leat_fsync(f);
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

struct scene {
	void (*act)(void);
	uint64_t bytes;    /* of the file at first; 0: there is none */
	bool replaces;
	int64_t outcome;
	unsigned long changes, calls; /* there are more, of the manager and of the client */
};

static bool is_right(const struct scene *s, int64_t good)
{
	int64_t before = s->bytes ? (int64_t)s->bytes : -1;

	if (s->act == act_extend)
		return good >= before && good <= s->outcome;
	return good == before || good == s->outcome;
}

/* Return: false: it has ended before it was to stop */
static bool stop_at(const struct scene *s, bool by_client, unsigned long n)
{
	bool more;

	if (!by_client)
		return crash(s->act, n);
	client = pthread_self();
	client_stopped = false;
	client_left = n;
	client_counts = true;
	s->act();
	(void)leat_umount_within(m, 0);
	client_counts = false;
	more = client_stopped;
	m = volume_rig_mount(NULL);
	volume_rig_settle();
	return more;
}

static void check(const struct scene *s, bool by_client)
{
	unsigned long n = 0;
	bool more = true;

	volume_rig_start(false, "stripe=64K");
	for (; more; n++) {
		struct leat *other;
		int64_t good;

		m = volume_rig_mount(NULL);
		if (s->bytes)
			write_file("f", s->bytes);
		if (s->replaces)
			write_file("new", BYTES);
		more = stop_at(s, by_client, n);
		other = volume_rig_mount(NULL);
		good = good_bytes(other, "f", s->act == act_extend);
		if (!is_right(s, good) || (!more && good != s->outcome))
			fail_msg("stopped at %lu: %lld bytes", n, (long long)good);
		leat_umount(other);
		leat_umount(m);
		m = volume_rig_mount(NULL);
		remove_all();
		leat_umount(m);
	}
	print_message("%lu %s\n", n - 1, by_client ? "calls" : "changes");
	assert_true(n > (by_client ? s->calls : s->changes));
	volume_rig_stop();
}

static void check_both(const struct scene *s)
{
	check(s, false);
	check(s, true);
}

static void creates(void **state)
{
	(void)state;
	check_both(&(struct scene){ act_create, 0, false, 0, 2, 1 }); /* file, layout */
}

static void extends(void **state)
{
	(void)state;
	check_both(&(struct scene){ act_extend, HALF, false, BYTES, 2, 9 }); /* lease, size; layout, 4 WRITEs, 4 COMMITs, report */
}

static void cuts(void **state)
{
	(void)state;
	check_both(&(struct scene){ act_cut, BYTES, false, CUT, 9, 1 }); /* link, layout, size, layout, four servers, layout, link */
}

static void unlinks(void **state)
{
	(void)state;
	check_both(&(struct scene){ act_unlink, BYTES, false, -1, 2, 0 });
}

static void replacements(void **state)
{
	(void)state;
	check_both(&(struct scene){ act_replace, BYTES, true, BYTES, 2, 0 });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(creates),
		cmocka_unit_test(extends),
		cmocka_unit_test(cuts),
		cmocka_unit_test(unlinks),
		cmocka_unit_test(replacements),
	};

	volume_times = (struct volume_times){ .server = "300ms", .away_ns = 1, .retry_ns = 10 * NS_PER_MS };
	for (size_t i = 0; i < BYTES; i++)
		data[i] = (uint8_t)(1 + i % 251);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
