/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_dir_watch_fs.c - limits of watches, and file systems that hang, come and go
 */
#include "test_dir_watch.h"

int __wrap_inotify_add_watch(int fd, const char *path, uint32_t mask);
int __real_inotify_add_watch(int fd, const char *path, uint32_t mask);
ssize_t __wrap_read(int fd, void *buf, size_t bytes);
ssize_t __real_read(int fd, void *buf, size_t bytes);

/* A file system that hangs, or an endless stream of events: of the next call and of every call with this
 * descriptor, if it is not -1. */
static atomic_int hanging_fd = -1, busy_fd = -1;
static sem_t hangs, hang_on;
static int busy_wd;
static unsigned busy_reads;

int __wrap_inotify_add_watch(int fd, const char *path, uint32_t mask)
{
	int expected = fd;

	if (atomic_compare_exchange_strong(&hanging_fd, &expected, -1)) {
		sem_post(&hangs);
		while (sem_wait(&hang_on))
			;
	}
	return __real_inotify_add_watch(fd, path, mask);
}

ssize_t __wrap_read(int fd, void *buf, size_t bytes)
{
	struct inotify_event ev = { .wd = busy_wd, .mask = IN_CREATE, .len = 16 };
	size_t n;

	if (fd != atomic_load(&busy_fd) || ++busy_reads > 10000)
		return __real_read(fd, buf, bytes);
	memset(buf, 'x', bytes);
	for (n = 0; n + sizeof(ev) + ev.len <= bytes; n += sizeof(ev) + ev.len) {
		memcpy((char *)buf + n, &ev, sizeof(ev));
		((char *)buf)[n + sizeof(ev) + ev.len - 1] = '\0';
	}
	return (ssize_t)n;
}

/* ---- limits ---- */

static unsigned watches(const struct rig *r)
{
	char path[64], line[256];
	unsigned n = 0;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", r->exp.dirs->fd);
	f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		n += !strncmp(line, "inotify ", 8);
	(void)fclose(f);
	return n;
}

static void makes_room(void **state)
{
	struct rig *r = *state;

	need_watches(r);
	start(r, true, false, 1);
	wait_tick();
	assert_true(create(r, &r->d, ME, "a", NULL, NULL).proved);
	assert_int_equal(watches(r), 1);
	assert_true(create(r, &r->e, ME, "a", NULL, NULL).proved);
	assert_int_equal(watches(r), 1);
	/* that ctime was young when its watch ended, and a client has it */
	assert_false(create(r, &r->d, ME, "b", NULL, NULL).proved);
	assert_int_equal(watches(r), 1);
}

/* more events than the queue holds: some are lost, and with them all that is known */
static void overflow(void **state)
{
	struct rig *r = *state;
	struct inotify_event ev = { .wd = -1, .mask = IN_Q_OVERFLOW };

	(void)known(r);
	note_events(r->exp.dirs, (const char *)&ev, sizeof(ev));
	assert_false(create(r, &r->d, ME, "a", NULL, NULL).proved);
	wait_tick();
	assert_true(create(r, &r->d, ME, "b", NULL, NULL).proved);
}

/* Local programs add events faster than they are read: a change reads a bounded number of them, and what is
 * left over may be about any directory. */
static void endless(void **state)
{
	struct rig *r = *state;

	(void)known(r);
	assert_true(create(r, &r->e, ME, "a", NULL, NULL).proved);
	wait_tick();
	busy_wd = (find_ino(r->exp.dirs, stx_dev(&r->e.stx), r->e.stx.stx_ino))->wd;
	busy_reads = 0;
	atomic_store(&busy_fd, r->exp.dirs->fd);
	assert_false(create_not(r, NULL, "a").proved);
	atomic_store(&busy_fd, -1);
	assert_in_range(busy_reads, 1, 100);
	wait_tick();
	assert_false(create(r, &r->d, ME, "b", NULL, NULL).proved);
	wait_tick();
	assert_true(create(r, &r->d, ME, "c", NULL, NULL).proved);
}

/* ---- file systems ---- */

struct other_fs {
	struct rig *r;
	struct export exp;
	struct fh_obj dir;
	struct dir_wcc wcc;
};

/* @o->dir of @r is in a file system of its own, as far as its number tells */
static void enter_other_fs(struct rig *r, struct other_fs *o)
{
	*o = (struct other_fs){ .r = r, .exp = r->exp };
	look(r, "e", &o->dir);
	o->dir.exp = &o->exp;
	o->dir.stx.stx_dev_major++;
	o->exp.backing.dev = stx_dev(&o->dir.stx);
	assert_int_equal(dir_watch_get(r->all, o->exp.backing.dev, &o->exp.dirs), 0);
}

static void *create_there(void *arg)
{
	struct other_fs *o = arg;

	o->wcc = create(o->r, &o->dir, ME, "there", NULL, NULL);
	return NULL;
}

/* inotify_add_watch() of one file system does not return: names of another one are changed, and proved. */
static void hangs_alone(void **state)
{
	struct rig *r = *state;
	struct other_fs o;
	pthread_t thread;

	(void)known(r);
	enter_other_fs(r, &o);
	(void)alarm(20); /* a change that waits for the other file system would wait for ever */
	sem_init(&hangs, 0, 0);
	sem_init(&hang_on, 0, 0);
	atomic_store(&hanging_fd, o.exp.dirs->fd);
	assert_int_equal(pthread_create(&thread, NULL, create_there, &o), 0);
	while (sem_wait(&hangs))
		;
	assert_true(create(r, &r->d, ME, "b", NULL, NULL).proved);
	assert_true(create(r, &r->e, ME, "first", NULL, NULL).changed);
	sem_post(&hang_on);
	assert_int_equal(pthread_join(thread, NULL), 0);
	(void)alarm(0);
	assert_true(o.wcc.changed);
	dir_watch_put(o.exp.dirs);
	close(o.dir.fd);
	sem_destroy(&hangs);
	sem_destroy(&hang_on);
}

static size_t file_systems(const struct rig *r)
{
	size_t n = 0;

	list_for_each(l, &r->all->list)
		n++;
	return n;
}

/* An export that stays keeps what is known; a file system without exports goes when the next one comes. */
static void comes_and_goes(void **state)
{
	struct rig *r = *state;
	struct dir_watch *again;
	struct other_fs o;

	(void)known(r);
	assert_int_equal(dir_watch_get(r->all, r->exp.backing.dev, &again), 0);
	assert_ptr_equal(again, r->exp.dirs);
	dir_watch_put(r->exp.dirs);
	enter_other_fs(r, &o);
	assert_int_equal(file_systems(r), 2);
	assert_true(create(r, &r->d, ME, "b", NULL, NULL).proved);
	dir_watch_put(o.exp.dirs);
	assert_int_equal(file_systems(r), 2);
	close(o.dir.fd);

	/* a client knows this young ctime: it is not believed when the file system comes back */
	dir_watch_put(r->exp.dirs);
	enter_other_fs(r, &o);
	assert_int_equal(file_systems(r), 1);
	assert_int_equal(dir_watch_get(r->all, r->exp.backing.dev, &r->exp.dirs), 0);
	assert_false(create(r, &r->d, ME, "c", NULL, NULL).proved);
	wait_tick();
	assert_true(create(r, &r->d, ME, "f", NULL, NULL).proved);
	dir_watch_put(o.exp.dirs);
	close(o.dir.fd);
}

static void local_rmdir(struct rig *r)
{
	struct stat st;

	assert_int_equal(unlinkat(r->d.fd, "known", 0), 0);
	assert_int_equal(rmdir(tmp_dir_path(&r->tmp, "d")), 0);
	assert_int_equal(fstat(r->d.fd, &st), 0);
	assert_int_equal(st.st_nlink, 0);
}

static void ends(void **state)
{
	struct rig *r = *state;

	(void)known(r);
	assert_false(create_not(r, local_rmdir, "b").proved);
	close(r->d.fd);
	assert_int_equal(mkdir(tmp_dir_path(&r->tmp, "d"), 0755), 0);
	look(r, "d", &r->d); /* it may have the number of the other */
	(void)create(r, &r->d, ME, "a", NULL, NULL);
	(void)create(r, &r->d, ME, "b", NULL, NULL);
	wait_tick();
	assert_true(create(r, &r->d, ME, "c", NULL, NULL).proved);
	assert_int_equal(watches(r), 1);
}

static void not_watched(void **state)
{
	struct rig *r = *state;

	need_watches(r);
	r->exp.backing.limits.tells_changes = false;
	assert_false(create(r, &r->d, ME, "a", NULL, NULL).proved);
	assert_false(create(r, &r->d, ME, "b", NULL, NULL).proved);
	assert_int_equal(watches(r), 0);
	r->exp.backing.limits.tells_changes = true;
	r->exp.backing.dev++; /* something is mounted there */
	assert_false(create(r, &r->d, ME, "c", NULL, NULL).proved);
	r->exp.backing.dev--;
	dir_watch_put(r->exp.dirs);
	r->exp.dirs = NULL;
	assert_false(create(r, &r->d, ME, "e", NULL, NULL).proved);
	start(r, true, true, 0);
	assert_false(create(r, &r->d, ME, "f", NULL, NULL).proved);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		CASE(makes_room),     CASE(overflow),	      CASE(ends),
		CASE(not_watched),    CASE(endless),	      CASE(hangs_alone),
		CASE(comes_and_goes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
