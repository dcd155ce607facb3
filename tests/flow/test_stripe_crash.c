/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_stripe_crash.c - a stripe server that stops after each disk operation of FENCE, REMOVE, SET_ASIDE and a new term
 *
 * Once a test has made the disk stop, no operation that changes it has any effect: what is there then is what the next
 * server finds. With `loses` the machine stops, not only the server: changes that no sync has made durable are undone. A
 * sync of a file keeps its record and its length, a sync of a directory keeps the names that were made in it. A directory
 * whose name is lost takes along all that is in it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "stripe_rig.h"

#define BYTES 10000u
#define CUT UINT64_C(5000)
#define UNDO_MAX 64

/* ---- the disk ------------------------------------------------------------------------------- */

/* A change that is not durable yet */
struct undo {
	enum { UNDO_NONE, UNDO_XATTR, UNDO_LENGTH, UNDO_NAME, UNDO_DIR } kind;
	dev_t dev; /* of the file or directory whose sync makes it durable */
	ino_t ino;
	int fd;	   /* of the file; NAME, DIR: of the directory that it is in */
	char name[64];
	uint8_t value[64]; /* XATTR */
	ssize_t bytes;	   /* of it; -1: there was none */
	uint8_t *content;  /* LENGTH */
	off_t length;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long left; /* operations that still have an effect; 0: all */
static bool counts, stopped;
static struct undo undo[UNDO_MAX];

/* Return: has the operation an effect? */
static bool goes_on(void)
{
	if (!counts)
		return true;
	if (!left)
		stopped = true;
	else
		left--;
	return !stopped;
}

static struct undo *new_undo(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	for (unsigned i = 0; i < UNDO_MAX; i++) {
		if (undo[i].kind != UNDO_NONE)
			continue;
		undo[i] = (struct undo){ .dev = st.st_dev, .ino = st.st_ino, .fd = dup(fd) };
		return &undo[i];
	}
	fail_msg("too many changes");
	return NULL;
}

static void forget_undo(struct undo *u)
{
	free(u->content);
	close(u->fd);
	*u = (struct undo){ .kind = UNDO_NONE };
}

/* A sync makes the changes of a file, or of the names in a directory, durable. */
static void made_durable(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	for (unsigned i = 0; i < UNDO_MAX; i++) {
		if (undo[i].kind != UNDO_NONE && undo[i].dev == st.st_dev && undo[i].ino == st.st_ino)
			forget_undo(&undo[i]);
	}
}

static void lose_dir(int parent, const char *name)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;

	while (dir && (e = readdir(dir)) != NULL)
		(void)unlinkat(fd, e->d_name, 0);
	if (dir)
		closedir(dir);
	assert_int_equal(unlinkat(parent, name, AT_REMOVEDIR), 0);
}

static void undo_one(struct undo *u)
{
	switch (u->kind) {
	case UNDO_XATTR:
		if (u->bytes < 0)
			(void)fremovexattr(u->fd, u->name);
		else
			assert_int_equal(fsetxattr(u->fd, u->name, u->value, (size_t)u->bytes, 0), 0);
		break;
	case UNDO_LENGTH:
		assert_int_equal(pwrite(u->fd, u->content, (size_t)u->length, 0), u->length);
		break;
	case UNDO_NAME:
		(void)unlinkat(u->fd, u->name, 0);
		break;
	case UNDO_DIR:
		lose_dir(u->fd, u->name);
		break;
	case UNDO_NONE:
		break;
	}
}

/* The machine has stopped, or only the server: the newest change is undone first */
static void end_disk(bool loses)
{
	counts = stopped = false;
	left = 0;
	for (unsigned i = UNDO_MAX; i-- > 0;) {
		if (undo[i].kind == UNDO_NONE)
			continue;
		if (loses)
			undo_one(&undo[i]);
		forget_undo(&undo[i]);
	}
}

int __real_fsetxattr(int fd, const char *name, const void *value, size_t n, int flags);
int __wrap_fsetxattr(int fd, const char *name, const void *value, size_t n, int flags);
int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __real_ftruncate(int fd, off_t length);
int __wrap_ftruncate(int fd, off_t length);
int __real_openat(int dir, const char *name, int flags, ...);
int __wrap_openat(int dir, const char *name, int flags, ...);
int __real_renameat(int from_dir, const char *from, int to_dir, const char *to);
int __wrap_renameat(int from_dir, const char *from, int to_dir, const char *to);
int __real_linkat(int from_dir, const char *from, int to_dir, const char *to, int flags);
int __wrap_linkat(int from_dir, const char *from, int to_dir, const char *to, int flags);
int __real_mkdirat(int dir, const char *name, mode_t mode);
int __wrap_mkdirat(int dir, const char *name, mode_t mode);

static int fail_stopped(void)
{
	pthread_mutex_unlock(&lock);
	errno = EIO;
	return -1;
}

int __wrap_fsetxattr(int fd, const char *name, const void *value, size_t n, int flags)
{
	int rc;

	pthread_mutex_lock(&lock);
	if (!goes_on())
		return fail_stopped();
	if (counts) {
		struct undo *u = new_undo(fd);

		u->kind = UNDO_XATTR;
		(void)snprintf(u->name, sizeof(u->name), "%s", name);
		u->bytes = fgetxattr(fd, name, u->value, sizeof(u->value));
	}
	rc = __real_fsetxattr(fd, name, value, n, flags);
	pthread_mutex_unlock(&lock);
	return rc;
}

int __wrap_fsync(int fd)
{
	int rc;

	pthread_mutex_lock(&lock);
	if (!goes_on())
		return fail_stopped();
	rc = __real_fsync(fd);
	made_durable(fd);
	pthread_mutex_unlock(&lock);
	return rc;
}

int __wrap_ftruncate(int fd, off_t length)
{
	struct stat st;
	int rc;

	pthread_mutex_lock(&lock);
	if (!goes_on())
		return fail_stopped();
	if (counts) {
		struct undo *u = new_undo(fd);

		assert_int_equal(fstat(fd, &st), 0);
		u->kind = UNDO_LENGTH;
		u->length = st.st_size;
		u->content = malloc((size_t)st.st_size + 1);
		assert_int_equal(pread(fd, u->content, (size_t)st.st_size, 0), st.st_size);
	}
	rc = __real_ftruncate(fd, length);
	pthread_mutex_unlock(&lock);
	return rc;
}

/* Of a name that is made */
static int make_name(int dir, const char *name, int flags, mode_t mode)
{
	const char *slash = strrchr(name, '/');
	char parent[64] = ".";
	int fd;

	pthread_mutex_lock(&lock);
	if (!goes_on())
		return fail_stopped();
	fd = __real_openat(dir, name, flags, mode);
	if (fd >= 0 && counts && flags & O_EXCL) {
		struct undo *u;
		int parent_fd;

		if (slash)
			(void)snprintf(parent, sizeof(parent), "%.*s", (int)(slash - name), name);
		parent_fd = __real_openat(dir, parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		u = new_undo(parent_fd);
		close(parent_fd);
		u->kind = UNDO_NAME;
		(void)snprintf(u->name, sizeof(u->name), "%s", slash ? slash + 1 : name);
	}
	pthread_mutex_unlock(&lock);
	return fd;
}

int __wrap_openat(int dir, const char *name, int flags, ...)
{
	mode_t mode = 0;
	va_list ap;

	va_start(ap, flags);
	if (flags & O_CREAT)
		mode = va_arg(ap, mode_t);
	va_end(ap);
	return flags & O_CREAT ? make_name(dir, name, flags, mode) : __real_openat(dir, name, flags);
}

/* Of a journalling file system a rename is undone as a whole: what it replaces is not looked at here. */
int __wrap_renameat(int from_dir, const char *from, int to_dir, const char *to)
{
	int rc;

	pthread_mutex_lock(&lock);
	if (!goes_on())
		return fail_stopped();
	rc = __real_renameat(from_dir, from, to_dir, to);
	pthread_mutex_unlock(&lock);
	return rc;
}

int __wrap_linkat(int from_dir, const char *from, int to_dir, const char *to, int flags)
{
	int rc;

	pthread_mutex_lock(&lock);
	if (!goes_on())
		return fail_stopped();
	rc = __real_linkat(from_dir, from, to_dir, to, flags);
	if (!rc && counts) {
		struct undo *u = new_undo(to_dir);

		u->kind = UNDO_NAME;
		(void)snprintf(u->name, sizeof(u->name), "%s", to);
	}
	pthread_mutex_unlock(&lock);
	return rc;
}

int __wrap_mkdirat(int dir, const char *name, mode_t mode)
{
	int rc;

	pthread_mutex_lock(&lock);
	if (!goes_on())
		return fail_stopped();
	rc = __real_mkdirat(dir, name, mode);
	if (!rc && counts) {
		struct undo *u = new_undo(dir);

		u->kind = UNDO_DIR;
		(void)snprintf(u->name, sizeof(u->name), "%s", name);
	}
	pthread_mutex_unlock(&lock);
	return rc;
}

/* ---- what is done, and what is found --------------------------------------------------------- */

static uint8_t data[BYTES], mem[2 * BYTES];
static const uint64_t cut = CUT;
static stripe_name object;
static struct stripe_client c;

static uint64_t soon(void)
{
	return (uint64_t)time(NULL) + 1000;
}

static void start(bool exists)
{
	object = stripe_rig_name(0x5c, 9);
	assert_int_equal(stripe_rig_start("read=cached,write=cached"), 0);
	stripe_connect(&c, 1, 0, &object);
	assert_int_equal(stripe_stat_of(&c, &object, NULL), STRIPE_OK); /* it is connected: that also takes files */
	if (exists)
		assert_int_equal(stripe_write(&c, 0, data, BYTES, true), STRIPE_OK);
}

/* The disk stops before its @n-th operation */
static void stop_before(unsigned long n)
{
	pthread_mutex_lock(&lock);
	left = n - 1;
	counts = true;
	pthread_mutex_unlock(&lock);
}

static void restart(bool loses)
{
	stripe_close(&c);
	stripe_rig_end_server();
	end_disk(loses);
	assert_int_equal(stripe_rig_start("read=cached,write=cached"), 0);
	stripe_connect(&c, 2, 0, &object);
}

/* The server has stopped. What it has not synced is still not durable. */
static void restart_server_only(void)
{
	stripe_close(&c);
	stripe_rig_end_server();
	pthread_mutex_lock(&lock);
	stopped = false;
	left = ULONG_MAX;
	pthread_mutex_unlock(&lock);
	assert_int_equal(stripe_rig_start("read=cached,write=cached"), 0);
	stripe_connect(&c, 2, 0, &object);
}

static uint32_t read_all(void)
{
	uint32_t n = 0;
	bool eof = false;

	assert_int_equal(stripe_read(&c, 0, mem, sizeof(mem), &n, &eof), STRIPE_OK);
	assert_true(eof);
	return n;
}

/* It is as if nothing had been done: the old epoch is served, with all of its bytes. */
static void see_old(bool exists)
{
	uint32_t n = read_all();

	assert_int_equal(n, exists ? BYTES : 0);
	assert_memory_equal(mem, data, n);
	assert_int_equal(stripe_write(&c, 0, data, 10, true), STRIPE_OK);
}

/* The new epoch is there. Its first WRITE does not bring back what was cut. */
static void see_new(bool exists)
{
	uint32_t bytes = exists ? CUT : 0;
	static const uint8_t zeroes[BYTES];

	assert_int_equal(stripe_write(&c, 0, data, 10, true), STRIPE_ERR_FENCED);
	c.handle.epoch = 2;
	assert_int_equal(stripe_write(&c, BYTES - 1, data + BYTES - 1, 1, true), STRIPE_OK);
	assert_int_equal(read_all(), BYTES);
	assert_memory_equal(mem, data, bytes);
	assert_memory_equal(mem + bytes, zeroes, BYTES - 1 - bytes);
}

/* Return: was it done before the disk stopped? */
static bool fence_and_stop(unsigned long n, bool exists, bool loses)
{
	stripe_status status;
	stripe_stat st;
	bool ended;

	start(exists);
	stop_before(n);
	status = stripe_fence(&c, &object, 2, &cut, &st);
	ended = !stopped;
	assert_int_equal(status, ended ? STRIPE_OK : STRIPE_ERR_IO);
	restart(loses);
	assert_int_equal(stripe_stat_of(&c, &object, &st), STRIPE_OK);
	if (ended)
		assert_int_equal(st.epoch, 2);
	if (st.epoch == 1)
		see_old(exists);
	else
		see_new(exists);
	/* the manager sends it again */
	if (st.epoch == 1) {
		assert_int_equal(stripe_fence(&c, &object, 2, &cut, &st), STRIPE_OK);
		assert_int_equal(st.bytes, exists ? CUT : MIN(CUT, (uint64_t)10));
		assert_int_equal(stripe_write(&c, 0, data, 10, true), STRIPE_ERR_FENCED);
	}
	stripe_close(&c);
	stripe_rig_stop();
	return ended;
}

/* The server stops, the manager repeats the command, and later the machine stops. */
static bool repeat_and_stop(unsigned long n, bool exists, bool loses)
{
	stripe_stat st;
	bool ended;

	start(exists);
	stop_before(n);
	(void)!stripe_fence(&c, &object, 2, &cut, &st);
	ended = !stopped;
	restart_server_only();
	assert_int_equal(stripe_fence(&c, &object, 2, &cut, &st), STRIPE_OK);
	restart(loses);
	assert_int_equal(stripe_stat_of(&c, &object, &st), STRIPE_OK);
	assert_int_equal(st.epoch, 2);
	see_new(exists);
	stripe_close(&c);
	stripe_rig_stop();
	return ended;
}

static bool remove_and_stop(unsigned long n, bool exists, bool loses)
{
	stripe_status status;
	stripe_stat st;
	bool ended;

	start(exists);
	stop_before(n);
	status = stripe_remove(&c, &object, soon(), &st);
	ended = !stopped;
	assert_int_equal(status, ended ? STRIPE_OK : STRIPE_ERR_IO);
	restart(loses);
	assert_int_equal(stripe_stat_of(&c, &object, &st), STRIPE_OK);
	if (ended)
		assert_true(st.removed);
	if (st.removed)
		assert_int_equal(stripe_write(&c, 0, data, 10, true), STRIPE_ERR_FENCED);
	else
		see_old(exists);
	assert_int_equal(stripe_remove(&c, &object, soon() + 9, &st), STRIPE_OK);
	assert_int_equal(st.bytes, 0);
	assert_int_equal(stripe_write(&c, 0, data, 10, true), STRIPE_ERR_FENCED);
	stripe_close(&c);
	stripe_rig_stop();
	return ended;
}

/* A term is obeyed only when it is durable. */
static bool obey_and_stop(unsigned long n, bool exists, bool loses)
{
	stripe_status status;
	STRIPEINFOresok info;
	bool ended;

	start(exists);
	stripe_rig.term = 2; /* start() has used term 1 */
	stop_before(n);
	status = stripe_stat_of(&c, &object, NULL);
	ended = !stopped;
	assert_int_equal(status, ended ? STRIPE_OK : STRIPE_ERR_IO);
	restart(loses);
	stripe_rig.term = 1;
	if (ended)
		assert_int_equal(stripe_stat_of(&c, &object, NULL), STRIPE_ERR_OLDTERM);
	stripe_rig.term = 2;
	assert_int_equal(stripe_stat_of(&c, &object, NULL), STRIPE_OK);
	assert_int_equal(stripe_info(&c, &info), STRIPE_OK);
	assert_int_equal(info.term, 2);
	stripe_close(&c);
	stripe_rig_stop();
	return ended;
}

static const char *aside_path(void)
{
	static char path[300];

	(void)snprintf(path, sizeof(path), "%s/lost+found/%s", tmp_dir_path(&stripe_rig.dir, "s"),
		       strrchr(stripe_rig_path(&object), '/') + 1);
	return path;
}

static bool has_data(const char *path)
{
	int fd = open(path, O_RDONLY);
	bool has = fd >= 0 && read(fd, mem, sizeof(mem)) == (ssize_t)BYTES && !memcmp(mem, data, BYTES);

	if (fd >= 0)
		close(fd);
	return has;
}

/* The contents have a name at any time, and the command can be repeated. */
static bool aside_and_stop(unsigned long n, bool exists, bool loses)
{
	stripe_status status;
	stripe_stat st;
	bool ended;

	start(exists);
	assert_int_equal(stripe_stat_of(&c, &object, &st), STRIPE_OK);
	stop_before(n);
	status = stripe_set_aside(&c, &object, soon(), st.mtime, &st);
	ended = !stopped;
	assert_int_equal(status, ended ? STRIPE_OK : STRIPE_ERR_IO);
	restart(loses);
	assert_int_equal(stripe_stat_of(&c, &object, &st), STRIPE_OK);
	assert_true(st.removed || !ended);
	assert_true(st.removed ? has_data(aside_path()) : read_all() == BYTES);
	assert_true(has_data(aside_path()) || has_data(stripe_rig_path(&object)));
	assert_int_equal(stripe_set_aside(&c, &object, soon(), st.mtime, &st), STRIPE_OK);
	assert_true(st.removed && has_data(aside_path()));
	assert_int_equal(stripe_write(&c, 0, data, 10, true), STRIPE_ERR_FENCED);
	stripe_close(&c);
	stripe_rig_stop();
	return ended;
}

static void at_each_operation(bool (*run)(unsigned long n, bool exists, bool loses), bool exists, unsigned least)
{
	for (unsigned loses = 0; loses < 2; loses++) {
		unsigned long n = 1;

		while (!run(n, exists, loses))
			n++;
		print_message("%lu operations\n", n - 1);
		assert_true(n > least);
	}
}

static void fence(void **state)
{
	(void)state;
	at_each_operation(fence_and_stop, true, 6);
}

static void fence_of_nothing(void **state)
{
	(void)state;
	at_each_operation(fence_and_stop, false, 4);
}

static void repeated(void **state)
{
	(void)state;
	at_each_operation(repeat_and_stop, true, 6);
	at_each_operation(repeat_and_stop, false, 4);
}

static void removal(void **state)
{
	(void)state;
	at_each_operation(remove_and_stop, true, 6);
}

static void removal_of_nothing(void **state)
{
	(void)state;
	at_each_operation(remove_and_stop, false, 4);
}

static void aside(void **state)
{
	(void)state;
	at_each_operation(aside_and_stop, true, 8);
}

static void term(void **state)
{
	(void)state;
	at_each_operation(obey_and_stop, false, 4);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(fence),
		cmocka_unit_test(fence_of_nothing),
		cmocka_unit_test(repeated),
		cmocka_unit_test(removal),
		cmocka_unit_test(removal_of_nothing),
		cmocka_unit_test(aside),
		cmocka_unit_test(term),
	};

	for (unsigned i = 0; i < BYTES; i++)
		data[i] = (uint8_t)(i * 7 + (i >> 8) + 3);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
