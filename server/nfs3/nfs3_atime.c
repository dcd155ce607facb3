/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * nfs3_atime.c - updates of the access time after READ
 *
 * Operation: The kernel sets the access time inside read(). That starts a journal transaction, which may wait for the
 *            disk. So files that a reactor reads are open with O_NOATIME (store_adopt), and reads do not set it.
 *            Instead the reactor checks whether the kernel would have set it, from the mount options and the
 *            attributes that it has just read. If so, a worker reads at the end of the file by a descriptor
 *            without O_NOATIME: no byte moves, and the kernel sets the time. At most one worker does this per open
 *            file. The reply does not wait for it, and has the previous time, as it would have anyway.
 *            A SETATTR or a change of the file that was answered after the READ stands: the worker leaves the time alone
 *            then. If the file system keeps whole seconds, it does not notice a change within the second of the last one.
 *            A repeated READ within one tick of the kernel's clock (or the file system's) needs no update.
 * Memory:    A struct touch per update in flight. Their number is limited. Beyond the limit, or without memory, the
 *            time stays unchanged until the next READ.
 * Threads:   The reactor's, except run_touch().
 * Errors:    None. If the time could not be set (the file cannot be opened again, the read fails, or the kernel leaves
 *            the time as it was), it is not tried again for RETRY_NS.
 */
#include "nfs.h"
#include "nfs3_io.h"

#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "vfs_int.h"

#define DAY_S (24 * 60 * 60)
/* Limits of the updates in flight, as parts of the files that a reactor may have open: of one export, and in all. While
 * a disk hangs those files stay open. */
#define EXPORT_PART 16
#define ALL_PART 4
#define RETRY_NS (10 * NS_PER_S)

struct touch {
	struct worker_job job;
	struct nfs_reactor *re;
	struct served_use *exports; /* held */
	struct store *store;
	struct fdcache_entry *file; /* held */
	struct statx before;
	bool done;
};

static bool is_newer(const struct statx_timestamp *a, const struct statx_timestamp *b)
{
	return a->tv_sec > b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec > b->tv_nsec);
}

/* Return: true if this is the time that the file system would set now, in its granularity */
static bool is_now(const struct statx_timestamp *t, const struct timespec *now, const struct fs_limits *fs)
{
	int64_t step = (int64_t)fs->time_s * (int64_t)NS_PER_S + fs->time_ns;
	int64_t s = now->tv_sec - t->tv_sec;

	if (s < 0 || s > fs->time_s)
		return false;
	return s * (int64_t)NS_PER_S + now->tv_nsec - (int64_t)t->tv_nsec < MAX(step, (int64_t)1);
}

bool nfs3_atime_is_due(const struct fs_limits *fs, const struct statx *stx, const struct timespec *now)
{
	const struct statx_timestamp *atime = &stx->stx_atime;

	if (fs->atime == FS_ATIME_NEVER || !fs->answers_at_once || fs->in_memory || is_now(atime, now, fs))
		return false;
	return fs->atime == FS_ATIME_ALWAYS || !is_newer(atime, &stx->stx_mtime) ||
	       !is_newer(atime, &stx->stx_ctime) || now->tv_sec - atime->tv_sec >= DAY_S;
}

static bool is_set(const struct touch *t, const struct statx *stx)
{
	return stx->stx_atime.tv_sec != t->before.stx_atime.tv_sec ||
	       stx->stx_atime.tv_nsec != t->before.stx_atime.tv_nsec;
}

static void run_touch(struct worker_job *job)
{
	struct touch *t = container_of(job, struct touch, job);
	int fd = vfs_reopen(t->file->file.fd, O_RDONLY);
	struct statx after;
	char byte;

	if (fd < 0)
		return;
	if (!vfs_stat(fd, &after)) {
		/* A change of the file or of its times came after the READ, and stands. */
		t->done = is_set(t, &after) || is_newer(&after.stx_ctime, &t->before.stx_ctime);
		/* The file may have grown. The byte that is there then is not used. */
		if (!t->done && pread(fd, &byte, 1, (off_t)t->before.stx_size) >= 0 && !vfs_stat(fd, &after))
			t->done = is_set(t, &after);
	}
	close(fd);
}

static void done_touch(struct worker_job *job)
{
	struct touch *t = container_of(job, struct touch, job);

	t->file->touching = false;
	t->file->touch_failed_ns = t->done ? 0 : clock_now_ns();
	t->store->touching--;
	t->re->files.touching--;
	t->re->reactor->loop.flushing--;
	fdcache_put(t->file);
	served_use_put(t->exports);
	free(t);
}

static bool has_room(const struct files *f, const struct store *s)
{
	return s->touching < f->max / EXPORT_PART && f->touching < f->max / ALL_PART;
}

void nfs3_atime_touch(struct req *r)
{
	struct nfs_call *call = nfs_call(r);
	struct store *s = call->exports->stores[call->exp->idx];
	struct fdcache_entry *e = call->file;
	struct timespec now;
	struct touch *t;

	if (e->touching || e->file.sets_atime || !has_room(&call->re->files, s) || r->reactor->draining ||
	    (e->touch_failed_ns && clock_now_ns() - e->touch_failed_ns < RETRY_NS))
		return;
	(void)clock_gettime(CLOCK_REALTIME_COARSE, &now);
	if (!nfs3_atime_is_due(&call->exp->backing.limits, &call->stx, &now))
		return;
	t = calloc(1, sizeof(*t));
	if (!t)
		return;
	t->re = call->re;
	t->exports = served_use_hold(call->exports);
	t->store = s;
	t->file = e;
	t->before = call->stx;
	t->job = (struct worker_job){ .run = run_touch, .done = done_touch, .dev = e->file.dev };
	e->touching = true;
	e->pins++;
	s->touching++;
	call->re->files.touching++;
	r->reactor->loop.flushing++;
	loop_submit(&r->reactor->loop, &t->job);
}
