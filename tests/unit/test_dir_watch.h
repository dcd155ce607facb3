/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_dir_watch.h - a watched directory that clients and local processes change
 */
#ifndef TEST_DIR_WATCH_H
#define TEST_DIR_WATCH_H

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
#include "kernel_has.h"
#include "tmp_dir.h"

#define ME 7u

struct rig {
	struct tmp_dir tmp;
	struct dir_watches *all;
	struct export exp;
	struct fh_obj d, e; /* two directories of the export */
};

/* Waits until the next change gets another ctime and the tick of the last one is over. Since Linux 6.13 a ctime may be
 * the exact time, and the coarse clock is behind it. */
static inline void wait_tick(void)
{
	struct timespec now;
	uint64_t ns;

	assert_int_equal(clock_gettime(CLOCK_REALTIME, &now), 0);
	ns = (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
	while (dir_ctime_tick() <= ns)
		;
}

static inline void look(struct rig *r, const char *name, struct fh_obj *ret)
{
	*ret = (struct fh_obj){ .exp = &r->exp,
				.fd = open(tmp_dir_path(&r->tmp, name), O_PATH | O_DIRECTORY | O_CLOEXEC) };
	assert_true(ret->fd >= 0);
	assert_int_equal(vfs_stat(ret->fd, &ret->stx), 0);
}

/* Starts a server. Older ctimes are unknown to it unless the file system makes ctimes differ. */
static inline void start(struct rig *r, bool no_past, bool ctimes_differ, unsigned max)
{
	int fd = open(tmp_dir_path(&r->tmp, "."), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	fs_limits_find(fd, true, &r->exp.backing.limits);
	close(fd);
	r->exp.backing.limits.ctimes_differ = ctimes_differ;
	r->exp.backing.dev = stx_dev(&r->d.stx);
	dir_watch_put(r->exp.dirs);
	dir_watches_destroy(r->all);
	assert_int_equal(dir_watches_create(no_past, max, &r->all), 0);
	assert_int_equal(dir_watch_get(r->all, r->exp.backing.dev, &r->exp.dirs), 0);
}

static inline int enter(void **state, const char *below)
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

static inline int setup(void **state)
{
	return enter(state, NULL);
}

static inline int teardown(void **state)
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

static inline void need_watches(const struct rig *r)
{
	if (!kernel_has_watches(r->tmp.path))
		skip();
	assert_true(r->exp.backing.limits.tells_changes);
}

/* what a local process does during a change, or between two */
typedef void local_fn(struct rig *r);

static inline void make(const struct fh_obj *dir, const char *name)
{
	int fd = openat(dir->fd, name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	close(fd);
}

/* CREATE of @name by @client; @before runs when the turn was taken, @after runs after the change */
static inline struct dir_wcc create(struct rig *r, struct fh_obj *dir, uint64_t client, const char *name,
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

/* a CREATE that fails */
static inline struct dir_wcc create_not(struct rig *r, local_fn *meanwhile, const char *name)
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

/* Makes a change from beginning to end under the watch, after which the ctime is known. */
static inline struct dir_wcc known(struct rig *r)
{
	struct dir_wcc w;

	need_watches(r);
	w = create(r, &r->d, ME, "known", NULL, NULL);
	wait_tick();
	return w;
}

#endif
