/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * file_sync.c - the functions of open files that wait, and the file position
 *
 * Operation:  core/sync.h waits for the asynchronous ones. leat_read() and leat_write() keep the position, and read
 *             ahead what is read in sequence.
 * Memory:     None.
 * Threads:    Any with the service thread, else the owner's.
 * Errors:     Those of the asynchronous functions; -EDEADLK inside a callback; -EINTR after leat_interrupt().
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include "file.h"
#include "io.h"
#include "readahead.h"
#include "striped_io.h"
#include "sync.h"

int leat_open(struct leat *m, const char *path, int flags, mode_t mode, struct leat_file **ret)
{
	return (int)LT_WAIT_FOR(m, leat_aio_open(m, path, flags, mode, ret, w.cb));
}

int leat_creat(struct leat *m, const char *path, mode_t mode, struct leat_file **ret)
{
	return leat_open(m, path, O_CREAT | O_WRONLY | O_TRUNC, mode, ret);
}

/* It closes the file in any case. So an interruption that came before cancels the operation instead of refusing it. */
int leat_close(struct leat_file *f)
{
	struct leat *m = f ? f->m : NULL;
	struct lt_wait w;
	int rc = lt_sync_begin(&w, m ? m->session : NULL);

	if (rc)
		return rc;
	rc = leat_aio_close(f, w.cb);
	if (!rc && unlikely(atomic_load(&m->interrupted)))
		(void)lt_sync_run(m->session, lt_sync_interrupt_now, m, NULL);
	return (int)lt_sync_end_call(&w, m, __func__, rc);
}

ssize_t leat_pread(struct leat_file *f, void *buf, size_t len, uint64_t off)
{
	return (ssize_t)LT_WAIT_FOR(f ? f->m : NULL, leat_aio_pread(f, buf, len, off, w.cb));
}

ssize_t leat_pwrite(struct leat_file *f, const void *buf, size_t len, uint64_t off)
{
	return (ssize_t)LT_WAIT_FOR(f ? f->m : NULL, leat_aio_pwrite(f, buf, len, off, w.cb));
}

ssize_t leat_preadv(struct leat_file *f, const struct iovec *iov, int cnt, uint64_t off)
{
	return (ssize_t)LT_WAIT_FOR(f ? f->m : NULL, leat_aio_preadv(f, iov, cnt, off, w.cb));
}

ssize_t leat_pwritev(struct leat_file *f, const struct iovec *iov, int cnt, uint64_t off)
{
	return (ssize_t)LT_WAIT_FOR(f ? f->m : NULL, leat_aio_pwritev(f, iov, cnt, off, w.cb));
}

/* The holder of the lock waits for the server, so a callback must not wait for the lock either. */
static int lock_pos(struct leat_file *f)
{
	int rc = f ? lt_session_check(f->m->session) : -EBADF;

	if (rc)
		return rc;
	if (lt_sync_in_callback(f->m->session))
		return -EDEADLK;
	pthread_mutex_lock(&f->pos_lock);
	return 0;
}

static ssize_t read_at_pos(struct leat_file *f, void *buf, size_t len)
{
	ssize_t n = (ssize_t)LT_WAIT_FOR_AS(f->m, "read", lt_readahead_read(f, buf, len, f->pos, w.cb));

	if (n > 0)
		f->pos += (uint64_t)n;
	return n;
}

ssize_t leat_read(struct leat_file *f, void *buf, size_t len)
{
	ssize_t n;
	int rc = lock_pos(f);

	if (rc)
		return rc;
	n = read_at_pos(f, buf, len);
	pthread_mutex_unlock(&f->pos_lock);
	return n;
}

/* Asks the server for the size of the file; another client may have changed it. */
static int ask_size(struct leat_file *f, uint64_t *ret)
{
	struct stat st;
	int rc = (int)LT_WAIT_FOR_AS(f->m, "fstat", lt_file_stat_now(f, &st, w.cb));

	if (!rc)
		*ret = (uint64_t)st.st_size;
	return rc;
}

/* A range is of one epoch of the file: if the file is cut before it is written, there has to be another one. */
static ssize_t append_striped(struct leat_file *f, const void *buf, size_t len)
{
	struct lt_range r = { 0 };
	uint64_t refused_epoch = 0;
	unsigned tries = 0;
	ssize_t n;

	do {
		n = (ssize_t)LT_WAIT_FOR_AS(f->m, "append", lt_striped_reserve(f, len, &r, w.cb));
		if (n)
			return n;
		n = (ssize_t)LT_WAIT_FOR_AS(f->m, "append", lt_io_write_range(f, buf, len, &r, w.cb));
	} while (n == -ESTALE && lt_striped_may_retry(&tries, &refused_epoch, r.epoch));
	f->pos = r.off;
	return n;
}

static ssize_t append(struct leat_file *f, const void *buf, size_t len)
{
	int rc;

	if (f->m->volume)
		return append_striped(f, buf, len);
	rc = ask_size(f, &f->pos);
	return rc ? rc : leat_pwrite(f, buf, len, f->pos);
}

static ssize_t write_at_pos(struct leat_file *f, const void *buf, size_t len)
{
	ssize_t n = f->flags & O_APPEND && len ? append(f, buf, len) : leat_pwrite(f, buf, len, f->pos);

	if (n > 0)
		f->pos += (uint64_t)n;
	return n;
}

/* With O_APPEND, asks the server for the size first, or the manager of a volume for a range. */
ssize_t leat_write(struct leat_file *f, const void *buf, size_t len)
{
	ssize_t n;
	int rc = lock_pos(f);

	if (rc)
		return rc;
	n = write_at_pos(f, buf, len);
	pthread_mutex_unlock(&f->pos_lock);
	return n;
}

static int64_t seek(struct leat_file *f, int64_t off, int whence)
{
	int64_t base, pos;
	uint64_t size;
	int rc;

	switch (whence) {
	case SEEK_SET:
		base = 0;
		break;
	case SEEK_CUR:
		base = (int64_t)f->pos; /* at most INT64_MAX: no I/O ends above it */
		break;
	case SEEK_END:
		rc = ask_size(f, &size);
		if (rc)
			return rc;
		base = (int64_t)size; /* at most INT64_MAX: it was a st_size */
		break;
	case SEEK_DATA:
	case SEEK_HOLE:
		if (off < 0)
			return -ENXIO;
		pos = whence == SEEK_DATA ? leat_seek_data(f, (uint64_t)off) : leat_seek_hole(f, (uint64_t)off);
		if (pos >= 0)
			f->pos = (uint64_t)pos;
		return pos;
	default:
		return -EINVAL;
	}
	if (__builtin_add_overflow(base, off, &pos))
		return -EOVERFLOW;
	if (pos < 0)
		return -EINVAL;
	f->pos = (uint64_t)pos;
	return pos;
}

/* SEEK_SET, SEEK_CUR, SEEK_END; SEEK_DATA and SEEK_HOLE, as leat_seek_data() */
int64_t leat_lseek(struct leat_file *f, int64_t off, int whence)
{
	int64_t pos;
	int rc = lock_pos(f);

	if (rc)
		return rc;
	lt_handle_untold();
	pos = seek(f, off, whence);
	pthread_mutex_unlock(&f->pos_lock);
	return pos < 0 ? lt_sync_refused(f->m, __func__, (int)pos) : pos;
}

int leat_fsync(struct leat_file *f)
{
	return (int)LT_WAIT_FOR(f ? f->m : NULL, leat_aio_fsync(f, w.cb));
}

int leat_ftruncate(struct leat_file *f, uint64_t size)
{
	return (int)LT_WAIT_FOR(f ? f->m : NULL, leat_aio_ftruncate(f, size, w.cb));
}

int leat_fstat(struct leat_file *f, struct stat *ret_st)
{
	return (int)LT_WAIT_FOR(f ? f->m : NULL, leat_aio_fstat(f, ret_st, w.cb));
}

int leat_fchmod(struct leat_file *f, mode_t mode)
{
	return (int)LT_WAIT_FOR(f ? f->m : NULL, leat_aio_fchmod(f, mode, w.cb));
}

int leat_fchown(struct leat_file *f, uid_t uid, gid_t gid)
{
	return (int)LT_WAIT_FOR(f ? f->m : NULL, leat_aio_fchown(f, uid, gid, w.cb));
}

int leat_futimens(struct leat_file *f, const struct timespec times[2])
{
	return (int)LT_WAIT_FOR(f ? f->m : NULL, leat_aio_futimens(f, times, w.cb));
}
