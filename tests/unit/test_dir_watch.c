/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_dir_watch.c - when is it proved what a directory was like before a change, and when not
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cmocka.h>

#include "server/fs/dir_ctime.c"
#include "server/fs/dir_watch.c"
#include "tmp_dir.h"

#define PAIRS_MAX 60000u
#define PAIRS_DIFFER 300u
#define ME 7u
#define OTHER 8u

struct rig {
	struct tmp_dir tmp;
	struct dir_watches *all;
	struct export exp;
	struct fh_obj d, e; /* two directories of it */
};

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

/* Until the next change has another ctime, and the tick of the last one is over. Since Linux 6.13 a ctime may be of the
 * exact time, which the clock of ticks follows late. */
static void wait_tick(void)
{
	struct timespec now;
	uint64_t ns;

	assert_int_equal(clock_gettime(CLOCK_REALTIME, &now), 0);
	ns = (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
	while (dir_ctime_tick() <= ns)
		;
}

static void look(struct rig *r, const char *name, struct fh_obj *ret)
{
	*ret = (struct fh_obj){ .exp = &r->exp,
				.fd = open(tmp_dir_path(&r->tmp, name), O_PATH | O_DIRECTORY | O_CLOEXEC) };
	assert_true(ret->fd >= 0);
	assert_int_equal(vfs_stat(ret->fd, &ret->stx), 0);
}

/* a server that starts: nothing is known of ctimes that are older, unless the file system sees to it */
static void start(struct rig *r, bool no_past, bool ctimes_differ, unsigned max)
{
	int fd = open(tmp_dir_path(&r->tmp, "."), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	fs_limits_find(fd, true, &r->exp.volume.limits);
	close(fd);
	r->exp.volume.limits.ctimes_differ = ctimes_differ;
	r->exp.volume.dev = dev_of(&r->d.stx);
	dir_watch_put(r->exp.dirs);
	dir_watches_destroy(r->all);
	assert_int_equal(dir_watches_create(no_past, max, &r->all), 0);
	assert_int_equal(dir_watch_get(r->all, r->exp.volume.dev, &r->exp.dirs), 0);
}

static int enter(void **state, const char *below)
{
	const char *old = getenv("TMPDIR");
	char *keep = old ? strdup(old) : NULL;
	struct rig *r = calloc(1, sizeof(*r));

	if (below)
		setenv("TMPDIR", below, 1);
	tmp_dir_create(&r->tmp);
	if (keep)
		setenv("TMPDIR", keep, 1);
	else
		unsetenv("TMPDIR");
	free(keep);
	assert_int_equal(mkdir(tmp_dir_path(&r->tmp, "d"), 0755), 0);
	assert_int_equal(mkdir(tmp_dir_path(&r->tmp, "e"), 0755), 0);
	assert_int_equal(mkdir(tmp_dir_path(&r->tmp, "local"), 0755), 0);
	look(r, "d", &r->d);
	look(r, "e", &r->e);
	memset(told, 0, sizeof(told));
	start(r, true, true, 16);
	wait_tick();
	*state = r;
	return 0;
}

static int setup(void **state)
{
	return enter(state, NULL);
}

static int setup_tmpfs(void **state)
{
	return enter(state, "/dev/shm");
}

static int teardown(void **state)
{
	struct rig *r = *state;

	dir_watch_put(r->exp.dirs);
	dir_watches_destroy(r->all);
	close(r->d.fd);
	close(r->e.fd);
	tmp_dir_destroy(&r->tmp);
	free(r);
	return 0;
}

static void need_watches(const struct rig *r)
{
	if (!r->exp.volume.limits.tells_changes) {
		print_message("SKIP: directories of the file system of %s are not watched\n", r->tmp.path);
		skip();
	}
}

/* what somebody else does in the middle of a change, or between two */
typedef void local_fn(struct rig *r);

static void make(const struct fh_obj *dir, const char *name)
{
	int fd = openat(dir->fd, name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	close(fd);
}

/* CREATE of @name by @client; @before: done when the turn was taken, @after: done after the change */
static struct dir_wcc create(struct rig *r, struct fh_obj *dir, uint64_t client, const char *name,
			     local_fn *before, local_fn *after)
{
	struct dir_step step = { .dir = dir, .event = IN_CREATE, .name = name };
	struct dir_wcc wcc = { .client = client };
	struct dir_turn t;

	dir->wcc = &wcc;
	dir_watch_begin(&t, &step, 1);
	if (before)
		before(r);
	make(dir, name);
	if (after)
		after(r);
	dir_watch_end(&t, true);
	dir->wcc = NULL;
	return wcc;
}

/* one that fails */
static struct dir_wcc create_not(struct rig *r, local_fn *meanwhile, const char *name)
{
	struct dir_step step = { .dir = &r->d, .event = IN_CREATE, .name = name };
	struct dir_wcc wcc = { .client = ME };
	struct dir_turn t;

	r->d.wcc = &wcc;
	dir_watch_begin(&t, &step, 1);
	if (meanwhile)
		meanwhile(r);
	dir_watch_end(&t, false);
	r->d.wcc = NULL;
	return wcc;
}

static bool same_ctime(const struct statx *a, const struct statx *b)
{
	return dir_ctime_ns(a) == dir_ctime_ns(b);
}

/* A change of a directory is watched, and there is somebody who saw all of it. */
static struct dir_wcc known(struct rig *r)
{
	struct dir_wcc w;

	need_watches(r);
	w = create(r, &r->d, ME, "known", NULL, NULL);
	wait_tick();
	return w;
}

static void proves(void **state)
{
	struct rig *r = *state;
	struct dir_wcc a = known(r), b = create(r, &r->d, OTHER, "b", NULL, NULL), c;

	assert_true(a.proved && b.proved);
	assert_true(same_ctime(&a.after, &b.before));
	assert_true(dir_ctime_ns(&b.after) > dir_ctime_ns(&b.before));
	c = create_not(r, NULL, "c");
	assert_true(c.proved);
	assert_true(same_ctime(&c.before, &c.after));
}

/* ---- others ---- */

static void local_create(struct rig *r)
{
	make(&r->d, "other");
}

static void local_unlink(struct rig *r)
{
	assert_int_equal(unlinkat(r->d.fd, "known", 0), 0);
}

static void local_rename(struct rig *r)
{
	assert_int_equal(renameat(r->d.fd, "known", r->d.fd, "unknown"), 0);
}

static void local_rename_out(struct rig *r)
{
	assert_int_equal(renameat(r->d.fd, "known", r->e.fd, "out"), 0);
}

static void local_mkdir(struct rig *r)
{
	assert_int_equal(mkdirat(r->d.fd, "dir", 0755), 0);
}

static void local_chmod(struct rig *r)
{
	assert_int_equal(chmod(tmp_dir_path(&r->tmp, "d"), 0711), 0);
}

static void local_utimes(struct rig *r)
{
	assert_int_equal(utimensat(AT_FDCWD, tmp_dir_path(&r->tmp, "d"), NULL, 0), 0);
}

static void local_move(struct rig *r)
{
	const char *from = tmp_dir_path(&r->tmp, "d"), *to = tmp_dir_path(&r->tmp, "e/d");

	assert_int_equal(rename(from, to), 0);
	assert_int_equal(rename(to, from), 0);
}

static local_fn *const locals[] = { local_create, local_unlink, local_rename, local_rename_out,
				    local_mkdir,  local_chmod,	local_utimes, local_move };

static void undo(struct rig *r)
{
	static const char *const names[] = { "other", "known", "unknown", "b", "c", "x" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		(void)unlinkat(r->d.fd, names[i], 0);
	(void)unlinkat(r->d.fd, "dir", AT_REMOVEDIR);
	(void)unlinkat(r->e.fd, "out", 0);
}

/* Whatever others do between the two looks, nothing is proved; nor by the change after it, whose `before` may
 * have the ctime of a state that nobody was told of. */
static void others_meanwhile(void **state)
{
	struct rig *r = *state;

	for (size_t i = 0; i < 3 * ARRAY_SIZE(locals); i++) {
		local_fn *fn = locals[i / 3];
		struct dir_wcc w;

		(void)known(r);
		if (i % 3 == 0)
			w = create(r, &r->d, ME, "b", fn, NULL);
		else if (i % 3 == 1)
			w = create(r, &r->d, ME, "b", NULL, fn);
		else
			w = create_not(r, fn, "b");
		assert_false(w.proved);
		w = create(r, &r->d, ME, "c", NULL, NULL);
		assert_false(w.proved);
		wait_tick();
		w = create(r, &r->d, ME, "x", NULL, NULL);
		assert_true(w.proved);
		undo(r);
		wait_tick();
		/* so was this */
		assert_false(create(r, &r->d, ME, "b", NULL, NULL).proved);
		undo(r);
		wait_tick();
		(void)create(r, &r->d, ME, "b", NULL, NULL);
		undo(r);
		wait_tick();
	}
}

static void others_between(void **state)
{
	struct rig *r = *state;

	for (size_t i = 0; i < ARRAY_SIZE(locals); i++) {
		(void)known(r);
		locals[i](r);
		assert_false(create(r, &r->d, ME, "b", NULL, NULL).proved);
		wait_tick();
		(void)create(r, &r->d, ME, "c", NULL, NULL);
		wait_tick();
		assert_true(create(r, &r->d, ME, "x", NULL, NULL).proved);
		undo(r);
	}
}

static void local_same(struct rig *r)
{
	make(&r->d, "b");
}

/* the very thing that was wanted is done by somebody else */
static void same_by_others(void **state)
{
	struct rig *r = *state;

	(void)known(r);
	assert_false(create_not(r, local_same, "b").proved);
}

static void local_attributes(struct rig *r)
{
	assert_int_equal(fchmodat(r->d.fd, "known", 0600, 0), 0);
}

/* what happens to a file in it does not happen to the directory */
static void of_a_file(void **state)
{
	struct rig *r = *state;

	(void)known(r);
	assert_true(create(r, &r->d, ME, "b", local_attributes, NULL).proved);
	local_attributes(r);
	assert_true(create(r, &r->d, ME, "c", NULL, local_attributes).proved);
}

static atomic_bool stop;

static void *change_names(void *arg)
{
	const struct rig *r = arg;

	while (!atomic_load(&stop)) {
		if (mkdirat(r->d.fd, "busy", 0755))
			(void)unlinkat(r->d.fd, "busy", AT_REMOVEDIR);
		for (volatile unsigned i = 0; i < 2000; i++)
			;
	}
	return NULL;
}

/* statx() shows a change before its event is in the queue. Of thousands of pairs of looks at a directory that
 * somebody changes all the time, some meet just that: then nothing is proved either. */
static void late_events(void **state)
{
	struct dir_step step = { .event = IN_CREATE, .name = "b" };
	unsigned pairs, differ = 0, wrong = 0;
	struct rig *r = *state;
	struct dir_wcc wcc;
	struct dir_turn t;
	pthread_t thread;

	need_watches(r);
	step.dir = &r->d;
	r->d.wcc = &wcc;
	atomic_store(&stop, false);
	assert_int_equal(pthread_create(&thread, NULL, change_names, r), 0);
	for (pairs = 0; pairs < PAIRS_MAX && differ < PAIRS_DIFFER; pairs++) {
		wcc = (struct dir_wcc){ .client = ME };
		dir_watch_begin(&t, &step, 1);
		/* what was before this is not what is asked here */
		t.parts[0].dir->run = (struct dir_run){ true, dir_ctime_ns(&t.parts[0].before), 0 };
		dir_watch_end(&t, false);
		if (!same_ctime(&t.parts[0].before, &t.parts[0].after)) {
			differ++;
			wrong += wcc.proved ? 1 : 0;
		}
	}
	atomic_store(&stop, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
	print_message("%u of %u pairs differ, %u of them were taken for equal\n", differ, pairs, wrong);
	assert_int_equal(wrong, 0);
}

/* ---- RENAME ---- */

static void rename_both(struct rig *r, struct fh_obj *from, struct fh_obj *to, local_fn *after,
			struct dir_wcc *from_wcc, struct dir_wcc *to_wcc)
{
	struct stat st;
	struct dir_step steps[] = { { .dir = from, .event = IN_MOVED_FROM, .name = "known" },
				    { .dir = to, .event = IN_MOVED_TO, .name = "b" } };
	struct dir_turn t;

	*from_wcc = *to_wcc = (struct dir_wcc){ .client = ME };
	from->wcc = from_wcc;
	to->wcc = to_wcc;
	assert_int_equal(fstatat(from->fd, "known", &st, 0), 0);
	steps[1].ino = st.st_ino;
	dir_watch_begin(&t, steps, 2);
	assert_int_equal(renameat(from->fd, "known", to->fd, "b"), 0);
	if (after)
		after(r);
	dir_watch_end(&t, true);
	from->wcc = to->wcc = NULL;
}

/* The queue holds one event of two moves to one name: inotify merges them. */
static void local_move_over(struct rig *r)
{
	assert_int_equal(renameat(AT_FDCWD, tmp_dir_path(&r->tmp, "local/f"), r->e.fd, "b"), 0);
}

static void renames(void **state)
{
	struct rig *r = *state;
	struct fh_obj again;
	struct dir_wcc a, b;
	int fd;

	(void)known(r);
	assert_true(create(r, &r->e, ME, "known", NULL, NULL).proved);
	assert_int_equal(unlinkat(r->e.fd, "known", 0), 0);
	assert_false(create(r, &r->e, ME, "y", NULL, NULL).proved);
	wait_tick();
	(void)create(r, &r->e, ME, "z", NULL, NULL);
	wait_tick();
	rename_both(r, &r->d, &r->e, NULL, &a, &b);
	assert_true(a.proved && b.proved);
	assert_true(dir_ctime_ns(&a.after) > dir_ctime_ns(&a.before));
	wait_tick();

	/* within one directory, of which there are two descriptors */
	look(r, "d", &again);
	assert_true(create(r, &r->d, ME, "known", NULL, NULL).proved);
	wait_tick();
	rename_both(r, &r->d, &again, NULL, &a, &b);
	assert_true(a.proved && b.proved && same_ctime(&a.before, &b.before));
	close(again.fd);
	wait_tick();

	assert_true(create(r, &r->d, ME, "known", NULL, NULL).proved);
	fd = creat(tmp_dir_path(&r->tmp, "local/f"), 0644);
	assert_true(fd >= 0);
	close(fd);
	wait_tick();
	rename_both(r, &r->d, &r->e, local_move_over, &a, &b);
	assert_true(a.proved);
	assert_false(b.proved);
}

/* ---- what is known of a ctime ---- */

static void runs(void **state)
{
	struct dir_run r = { .known = true, .ctime_ns = 100 };

	(void)state;
	assert_true(dir_run_allows(&r, ME, 100) && dir_run_allows(&r, OTHER, 100));
	assert_false(dir_run_allows(&r, ME, 99)); /* something changed it, and told nobody */
	dir_run_go_on(&r, ME, true, 100, 200);
	assert_true(dir_run_allows(&r, ME, 200) && dir_run_allows(&r, OTHER, 200));
	/* a second change within the tick is known to whose it is */
	dir_run_go_on(&r, ME, true, 200, 200);
	assert_true(dir_run_allows(&r, ME, 200));
	assert_false(dir_run_allows(&r, OTHER, 200));
	dir_run_go_on(&r, ME, false, 200, 200);
	assert_true(dir_run_allows(&r, ME, 200));
	dir_run_go_on(&r, OTHER, true, 200, 200);
	assert_false(dir_run_allows(&r, ME, 200) || dir_run_allows(&r, OTHER, 200));
	dir_run_go_on(&r, ME, true, 200, 200);
	assert_false(dir_run_allows(&r, ME, 200));
	dir_run_go_on(&r, OTHER, true, 200, 300);
	assert_true(dir_run_allows(&r, ME, 300) && dir_run_allows(&r, OTHER, 300));
	/* a clock that was set back */
	dir_run_go_on(&r, ME, true, 300, 250);
	assert_false(dir_run_allows(&r, ME, 250));
	dir_run_go_on(&r, ME, true, 250, 250);
	assert_false(dir_run_allows(&r, ME, 250));
	dir_run_go_on(&r, ME, true, 250, 260);
	assert_true(dir_run_allows(&r, OTHER, 260));
	/* its times were changed, its names were not */
	dir_run_go_on(&r, ME, false, 260, 270);
	assert_false(dir_run_allows(&r, OTHER, 260) || dir_run_allows(&r, OTHER, 270));
}

/* until whoever looks at it now cannot have looked within the tick of its ctime */
static void wait_old(const struct fh_obj *o)
{
	struct statx stx;

	assert_int_equal(statx(o->fd, "", AT_EMPTY_PATH, FH_STATX_MASK, &stx), 0);
	while (dir_ctime_tick() <= dir_ctime_ns(&stx) + TICK_NS_MAX)
		;
}

/* The first change since it is watched. */
static void first_changes(void **state)
{
	struct rig *r = *state;

	need_watches(r);
	wait_tick();
	start(r, true, false, 16); /* no client has a handle yet */
	assert_true(create(r, &r->d, ME, "a", NULL, NULL).proved);
	wait_tick();
	start(r, false, false, 16); /* clients of a server before this one may have been told anything */
	assert_false(create(r, &r->d, ME, "b", NULL, NULL).proved);
	wait_tick();
	assert_true(create(r, &r->d, ME, "c", NULL, NULL).proved);
	wait_old(&r->d);
	start(r, false, true, 16); /* but no ctime twice */
	assert_true(create(r, &r->d, ME, "d", NULL, NULL).proved);
	wait_old(&r->d);
	start(r, false, false, 16);
	wait_tick();
	make(&r->e, "new"); /* since this server has started, and no client has looked at it since */
	wait_old(&r->e);
	assert_true(create(r, &r->e, ME, "a", NULL, NULL).proved);
}

/* A client was told the ctime while another change could still get the same one. */
static void told_too_early(void **state)
{
	struct rig *r = *state;
	struct statx stx;

	need_watches(r);
	make(&r->d, "new");
	assert_int_equal(vfs_stat(r->d.fd, &stx), 0);
	wait_tick(); /* the answer may be late: what counts is when it was looked at */
	assert_false(create(r, &r->d, ME, "a", NULL, NULL).proved);
	wait_tick();
	assert_true(create(r, &r->d, ME, "b", NULL, NULL).proved);

	make(&r->e, "new");
	wait_old(&r->e);
	assert_int_equal(vfs_stat(r->e.fd, &stx), 0); /* when that tick was over */
	assert_true(create(r, &r->e, ME, "a", NULL, NULL).proved);
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
	busy_wd = (find_ino(r->exp.dirs, dev_of(&r->e.stx), r->e.stx.stx_ino))->wd;
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
	o->exp.volume.dev = dev_of(&o->dir.stx);
	assert_int_equal(dir_watch_get(r->all, o->exp.volume.dev, &o->exp.dirs), 0);
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
	assert_int_equal(dir_watch_get(r->all, r->exp.volume.dev, &again), 0);
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
	assert_int_equal(dir_watch_get(r->all, r->exp.volume.dev, &r->exp.dirs), 0);
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
	r->exp.volume.limits.tells_changes = false;
	assert_false(create(r, &r->d, ME, "a", NULL, NULL).proved);
	assert_false(create(r, &r->d, ME, "b", NULL, NULL).proved);
	assert_int_equal(watches(r), 0);
	r->exp.volume.limits.tells_changes = true;
	r->exp.volume.dev++; /* something is mounted there */
	assert_false(create(r, &r->d, ME, "c", NULL, NULL).proved);
	r->exp.volume.dev--;
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
		CASE(proves),	      CASE(others_meanwhile), CASE(others_between),
		CASE(same_by_others), CASE(of_a_file),	      CASE(renames),
		CASE(runs),	      CASE(first_changes),    CASE(told_too_early),
		CASE(makes_room),     CASE(overflow),	      CASE(ends),
		CASE(not_watched),    CASE(endless),	      CASE(hangs_alone),
		CASE(comes_and_goes),
		cmocka_unit_test_setup_teardown(late_events, setup_tmpfs, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
