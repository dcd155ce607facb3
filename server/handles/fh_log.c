/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fh_log.c - the journal of fh_map.c: keeps the map across restarts
 *
 * Operation: handles.map is 8 bytes of magic and records: bytes u32 | checksum u64 | type u8 | flags u8 |
 *            id u64 | and the rest by type. A caller that appends records flushes them before it replies.
 *            They are then in the page cache, so that only a crash of the machine can lose them. A
 *            background thread syncs the file repeatedly while there is unsynced data. When the file has
 *            become much longer than its live content, the thread writes a new one and replaces the old
 *            one with it; records that arrive in the meantime go to both.
 * Memory:    records appended and not yet flushed; a whole snapshot while one is written.
 * Threads:   any, and its own. io_lock, then the owner's lock, then buf_lock.
 * Errors:    after a write error the file is not used any more: the thread tries from time to time to
 *            write a new one. An invalid record ends the replay, because its length may be wrong too. The
 *            file is then kept under another name.
 */
#include "fh_log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cond.h"
#include "base/log.h"
#include "base/siphash.h"
#include "base/wire.h"

#define FILE_NAME "handles.map"
#define FILE_NEW "handles.map.new"
#define FILE_BAD "handles.map.bad"
#define MAGIC "leatmap1"
#define MAGIC_BYTES 8u
#define FRAME_BYTES 12u /* length and checksum */
#define FIXED_BYTES 10u /* type, flags, id */
#define NODE_BYTES 40u
#define NAME_MAX_BYTES 1024u /* above that of any file system, and below PATH_MAX: fh.c cuts long paths at a slash */
#define REC_MAX (FIXED_BYTES + 8u + NAME_MAX_BYTES)
#define SYNC_PAUSE_MS 200u
#define RETRY_PAUSE_MS 2000u
#define SLACK_BYTES (4u << 20) /* a file shorter than this is never rewritten */

struct fh_log_buf {
	uint8_t *p;
	size_t n, cap;
};

struct fh_log {
	struct fh_log_owner owner;
	char *path; /* of the file, for messages and to read it */
	int dir_fd, lock_fd;
	pthread_t thread;
	bool has_thread;

	pthread_mutex_t buf_lock;  /* protects pending */
	struct fh_log_buf pending; /* appended, not yet written */
	bool pending_lost;	   /* no memory for some of it */
	atomic_uint_fast64_t appended, written;

	pthread_mutex_t io_lock; /* protects the members below */
	pthread_cond_t wake;	 /* dirty, broken, too_long or stop */
	struct fh_log_buf spare;
	struct fh_log_buf tail; /* records written since the start of the snapshot in progress */
	bool has_tail;
	int fd;
	uint64_t size, base; /* bytes of the file: now, and after it was last rewritten */
	bool dirty;	     /* written, not yet synced */
	bool broken;	     /* records are missing from the file */
	bool stop;
};

/* ---- records ------------------------------------------------------------------------------ */

static uint64_t checksum(const uint8_t *payload, size_t n)
{
	static const struct siphash_key plain = { 0x6c656174, 0x6d6170 }; /* not secret */

	return siphash(&plain, payload, n);
}

static int reserve(struct fh_log_buf *b, size_t more)
{
	size_t cap = b->cap ? b->cap : 4096;
	uint8_t *p;

	while (cap - b->n < more) {
		if (cap > SIZE_MAX / 2)
			return -ENOMEM;
		cap *= 2;
	}
	if (cap == b->cap)
		return 0;
	p = realloc(b->p, cap);
	if (!p)
		return -ENOMEM;
	b->p = p;
	b->cap = cap;
	return 0;
}

static int add_bytes(struct fh_log_buf *b, const void *p, size_t n)
{
	int err = reserve(b, n);

	if (err)
		return err;
	memcpy(b->p + b->n, p, n);
	b->n += n;
	return 0;
}

int fh_log_put(struct fh_log_buf *buf, const struct fh_log_rec *rec)
{
	size_t n = rec->type == FH_LOG_NODE ? FIXED_BYTES + NODE_BYTES : FIXED_BYTES;
	uint8_t *payload;
	int err;

	if (rec->type == FH_LOG_NAME || rec->type == FH_LOG_DROP)
		n += 8 + rec->name_len;
	if (n > REC_MAX)
		return -ENAMETOOLONG;
	err = reserve(buf, FRAME_BYTES + n);
	if (err)
		return err;
	payload = buf->p + buf->n + FRAME_BYTES;
	payload[0] = (uint8_t)rec->type;
	payload[1] = (uint8_t)rec->flags;
	put_be64(payload + 2, rec->id);
	if (rec->type == FH_LOG_NODE) {
		put_be64(payload + 10, rec->key.exp);
		put_be64(payload + 18, rec->key.dev);
		put_be64(payload + 26, rec->key.ino);
		put_be64(payload + 34, rec->key.gen);
		put_be64(payload + 42, rec->serial);
	} else if (n > FIXED_BYTES) {
		put_be64(payload + 10, rec->parent);
		memcpy(payload + 18, rec->name, rec->name_len);
	}
	put_be32(payload - 12, (uint32_t)n);
	put_be64(payload - 8, checksum(payload, n));
	buf->n += FRAME_BYTES + n;
	return 0;
}

/* Return: false: not a record of fh_log_put() */
static bool parse(const uint8_t *payload, size_t n, struct fh_log_rec *ret)
{
	struct fh_log_rec rec = { .type = (enum fh_log_type)payload[0], .flags = payload[1] };

	rec.id = get_be64(payload + 2);
	switch (rec.type) {
	case FH_LOG_NODE:
		if (n != FIXED_BYTES + NODE_BYTES)
			return false;
		rec.key.exp = get_be64(payload + 10);
		rec.key.dev = get_be64(payload + 18);
		rec.key.ino = get_be64(payload + 26);
		rec.key.gen = get_be64(payload + 34);
		rec.serial = get_be64(payload + 42);
		break;
	case FH_LOG_NAME:
	case FH_LOG_DROP:
		if (n <= FIXED_BYTES + 8)
			return false;
		rec.parent = get_be64(payload + 10);
		rec.name = (const char *)payload + 18;
		rec.name_len = n - 18;
		if (memchr(rec.name, '\0', rec.name_len) || memchr(rec.name, '/', rec.name_len))
			return false;
		break;
	case FH_LOG_GONE:
		if (n != FIXED_BYTES)
			return false;
		break;
	default:
		return false;
	}
	*ret = rec;
	return rec.id != 0 && rec.id != UINT64_MAX; /* the next one is larger */
}

/* Return: bytes of the record; 0: the end, or an invalid record, as set in *ret_bad */
static size_t read_record(FILE *f, uint8_t payload[REC_MAX], struct fh_log_rec *ret, bool *ret_bad)
{
	uint8_t frame[FRAME_BYTES];
	size_t n = fread(frame, 1, sizeof(frame), f);

	*ret_bad = n > 0;
	if (n < sizeof(frame))
		return 0;
	n = get_be32(frame);
	if (n < FIXED_BYTES || n > REC_MAX || fread(payload, 1, n, f) != n)
		return 0;
	if (get_be64(frame + 4) != checksum(payload, n) || !parse(payload, n, ret))
		return 0;
	*ret_bad = false;
	return FRAME_BYTES + n;
}

/* ---- the file ----------------------------------------------------------------------------- */

static int write_all(int fd, const uint8_t *p, size_t n)
{
	while (n) {
		ssize_t done = write(fd, p, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done ? -errno : -EIO;
		p += done;
		n -= (size_t)done;
	}
	return 0;
}

/* Call with io_lock. No record is lost: the map has them, and a new file will contain them. */
static void break_file(struct fh_log *log, int err)
{
	if (!log->broken)
		log_err("%s: %s; what clients look up from now on is only written when that "
			"is over",
			log->path, strerror(-err));
	log->broken = true;
	pthread_cond_signal(&log->wake);
}

static bool too_long(const struct fh_log *log)
{
	return log->size > SLACK_BYTES && log->size / 3 > log->base;
}

/* Call with io_lock. */
static void write_out(struct fh_log *log, const struct fh_log_buf *b)
{
	int err;

	if (log->has_tail && add_bytes(&log->tail, b->p, b->n))
		log->has_tail = false; /* the snapshot in progress is abandoned */
	if (log->broken)
		return;
	err = write_all(log->fd, b->p, b->n);
	if (err) {
		if (ftruncate(log->fd, (off_t)log->size)) /* remove a partial record */
			log_debug("%s: %s", log->path, strerror(errno));
		break_file(log, err);
		return;
	}
	log->size += b->n;
	if (!log->dirty || too_long(log))
		pthread_cond_signal(&log->wake);
	log->dirty = true;
}

void fh_log_append(struct fh_log *log, const struct fh_log_rec *rec)
{
	pthread_mutex_lock(&log->buf_lock);
	if (fh_log_put(&log->pending, rec))
		log->pending_lost = true;
	atomic_fetch_add(&log->appended, 1);
	pthread_mutex_unlock(&log->buf_lock);
}

void fh_log_flush(struct fh_log *log)
{
	struct fh_log_buf b;
	uint64_t upto;
	bool lost;

	if (atomic_load(&log->written) == atomic_load(&log->appended))
		return;
	pthread_mutex_lock(&log->io_lock);
	pthread_mutex_lock(&log->buf_lock);
	b = log->pending;
	log->pending = log->spare;
	log->pending.n = 0;
	lost = log->pending_lost;
	log->pending_lost = false;
	upto = atomic_load(&log->appended);
	pthread_mutex_unlock(&log->buf_lock);
	if (b.n)
		write_out(log, &b);
	if (lost) {
		log->has_tail = false; /* the new file in progress is incomplete, too */
		break_file(log, -ENOMEM);
	}
	log->spare = b;
	atomic_store(&log->written, upto);
	pthread_mutex_unlock(&log->io_lock);
}

static int drop_new(const struct fh_log *log, int fd, int err)
{
	close(fd);
	(void)unlinkat(log->dir_fd, FILE_NEW, 0);
	return err;
}

static int write_new(const struct fh_log *log, const struct fh_log_buf *b, int *ret_fd)
{
	int fd = openat(log->dir_fd, FILE_NEW,
			O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	int err;

	if (fd < 0)
		return -errno;
	err = write_all(fd, b->p, b->n);
	if (!err && fsync(fd))
		err = -errno;
	if (err)
		return drop_new(log, fd, err);
	*ret_fd = fd;
	return 0;
}

/* Call with io_lock. Adds the records that arrived in the meantime, then replaces the file with the new one. */
static int put_in_place(struct fh_log *log, int fd, uint64_t size)
{
	int err = log->has_tail ? 0 : -ENOMEM;

	log->has_tail = false;
	if (!err)
		err = write_all(fd, log->tail.p, log->tail.n);
	if (!err && log->tail.n && fdatasync(fd))
		err = -errno;
	if (!err && renameat(log->dir_fd, FILE_NEW, log->dir_fd, FILE_NAME))
		err = -errno;
	if (err)
		return drop_new(log, fd, err);
	if (log->fd >= 0)
		close(log->fd);
	log->fd = fd;
	log->base = size;
	log->size = size + log->tail.n;
	log->dirty = false;
	log->broken = false;
	return fsync(log->dir_fd) ? -errno : 0;
}

static int rewrite(struct fh_log *log)
{
	struct fh_log_buf b = { 0 };
	int fd = -1, err;

	pthread_mutex_lock(&log->io_lock);
	log->has_tail = true;
	log->tail.n = 0;
	err = add_bytes(&b, MAGIC, MAGIC_BYTES);
	if (!err)
		err = log->owner.snapshot(log->owner.ctx, &b);
	pthread_mutex_unlock(&log->io_lock);
	if (!err)
		err = write_new(log, &b, &fd);
	pthread_mutex_lock(&log->io_lock);
	if (!err)
		err = put_in_place(log, fd, b.n);
	log->has_tail = false;
	free(log->tail.p);
	log->tail = (struct fh_log_buf){ 0 };
	pthread_mutex_unlock(&log->io_lock);
	free(b.p);
	return err;
}

/* ---- background thread -------------------------------------------------------------------- */

/* Call with io_lock. Waits until a stop is requested or the time is over. */
static void pause_ms(struct fh_log *log, unsigned ms)
{
	uint64_t until_ns = clock_now_ns() + ms * NS_PER_MS;

	while (!log->stop && cond_wait_until(&log->wake, &log->io_lock, until_ns))
		;
}

/* Call with io_lock; releases it meanwhile. Only this thread changes the descriptor. */
static void sync_file(struct fh_log *log)
{
	int fd = log->fd, err;

	log->dirty = false;
	pthread_mutex_unlock(&log->io_lock);
	err = fdatasync(fd) ? -errno : 0;
	pthread_mutex_lock(&log->io_lock);
	if (err)
		break_file(log, err);
}

/* Call with io_lock; releases it meanwhile. */
static void try_rewrite(struct fh_log *log)
{
	bool was_broken = log->broken;
	int err;

	pthread_mutex_unlock(&log->io_lock);
	err = rewrite(log);
	pthread_mutex_lock(&log->io_lock);
	if (err && was_broken)
		break_file(log, err);
	else if (err) {
		log_warn("%s: cannot rewrite the file: %s", log->path, strerror(-err));
		log->base = log->size; /* on failure: do not retry until it has grown further */
	} else if (was_broken)
		log_info("%s: written again, nothing is missing", log->path);
}

static void *work(void *arg)
{
	struct fh_log *log = arg;

	pthread_mutex_lock(&log->io_lock);
	while (!log->stop) {
		if (log->broken || too_long(log)) {
			try_rewrite(log);
			if (log->broken)
				pause_ms(log, RETRY_PAUSE_MS);
		} else if (log->dirty) {
			sync_file(log);
			pause_ms(log, SYNC_PAUSE_MS);
		} else {
			pthread_cond_wait(&log->wake, &log->io_lock);
		}
	}
	pthread_mutex_unlock(&log->io_lock);
	return NULL;
}

/* ---- beginning and end -------------------------------------------------------------------- */

/* Keeps the file under another name; the new one receives the records that could be read. */
static int set_aside(struct fh_log *log, uint64_t good, uint64_t bytes)
{
	log_warn("%s: damaged at byte %llu of %llu; files recorded after that have stale "
		 "handles until clients look them up again. The old file is kept as %s.bad",
		 log->path, (unsigned long long)good, (unsigned long long)bytes, log->path);
	(void)unlinkat(log->dir_fd, FILE_BAD, 0);
	return linkat(log->dir_fd, FILE_NAME, log->dir_fd, FILE_BAD, 0) ? -errno : 0;
}

static int replay_all(struct fh_log *log, FILE *f, uint64_t *ret_good, bool *ret_bad)
{
	uint8_t payload[REC_MAX];
	struct fh_log_rec rec;
	char magic[MAGIC_BYTES];
	size_t n = fread(magic, 1, sizeof(magic), f);
	int err = 0;

	*ret_bad = n > 0 && n < sizeof(magic); /* the machine crashed just after the file was created */
	*ret_good = n;
	if (n < sizeof(magic))
		return ferror(f) ? -EIO : 0;
	if (memcmp(magic, MAGIC, sizeof(magic)))
		return -EINVAL;
	while (!err && (n = read_record(f, payload, &rec, ret_bad)) != 0) {
		err = log->owner.replay(log->owner.ctx, &rec);
		*ret_good += n;
	}
	return ferror(f) ? -EIO : err;
}

static int load(struct fh_log *log)
{
	int fd = openat(log->dir_fd, FILE_NAME, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	FILE *f = fd < 0 ? NULL : fopen(log->path, "re");
	struct stat st;
	uint64_t good = 0;
	bool bad = false;
	int err;

	log->fd = fd;
	if (!f || fstat(fd, &st))
		err = -errno;
	else if (!S_ISREG(st.st_mode))
		err = -EINVAL;
	else
		err = replay_all(log, f, &good, &bad);
	if (f)
		fclose(f);
	if (!err && bad)
		err = set_aside(log, good, (uint64_t)st.st_size);
	log->size = log->base = good;
	if (!err && (bad || good <= MAGIC_BYTES || good > SLACK_BYTES))
		err = rewrite(log);
	return err;
}

/* Stores the process id for the error message of another process that wants the file. Optional. */
static void note_user(int lock_fd)
{
	char text[24];
	int n = snprintf(text, sizeof(text), "%ld\n", (long)getpid());

	if (ftruncate(lock_fd, 0) || pwrite(lock_fd, text, (size_t)n, 0) != n)
		log_debug("handles.lock: %s", strerror(errno));
}

long fh_log_user(const char *dir)
{
	char path[PATH_MAX], text[24] = "";
	long pid = 0;
	ssize_t n = -1;
	int fd;

	if (snprintf(path, sizeof(path), "%s/handles.lock", dir) >= (int)sizeof(path))
		return 0;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd >= 0) {
		n = read(fd, text, sizeof(text) - 1);
		close(fd);
	}
	if (n > 0)
		pid = strtol(text, NULL, 10);
	return MAX(pid, 0);
}

static int open_files(struct fh_log *log, const char *dir)
{
	if (asprintf(&log->path, "%s/" FILE_NAME, dir) < 0) {
		log->path = NULL;
		return -ENOMEM;
	}
	if (mkdir(dir, 0700) && errno != EEXIST)
		return -errno;
	log->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (log->dir_fd < 0)
		return -errno;
	log->lock_fd = openat(log->dir_fd, "handles.lock",
			      O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (log->lock_fd < 0)
		return -errno;
	if (flock(log->lock_fd, LOCK_EX | LOCK_NB))
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	note_user(log->lock_fd);
	return load(log);
}

int fh_log_open(const char *dir, const struct fh_log_owner *owner, struct fh_log **ret)
{
	struct fh_log *log = calloc(1, sizeof(*log));
	int err;

	if (!log)
		return -ENOMEM;
	log->owner = *owner;
	log->fd = log->dir_fd = log->lock_fd = -1;
	pthread_mutex_init(&log->buf_lock, NULL);
	pthread_mutex_init(&log->io_lock, NULL);
	cond_init(&log->wake);
	err = open_files(log, dir);
	if (!err)
		err = -pthread_create(&log->thread, NULL, work, log);
	log->has_thread = !err;
	if (err) {
		fh_log_close(log);
		return err;
	}
	*ret = log;
	return 0;
}

static void end(struct fh_log *log)
{
	pthread_mutex_lock(&log->io_lock);
	log->stop = true;
	pthread_cond_signal(&log->wake);
	pthread_mutex_unlock(&log->io_lock);
	pthread_join(log->thread, NULL);
	fh_log_flush(log);
	if (log->broken && rewrite(log))
		log_err("%s: not all handles that clients have will be known again", log->path);
	if (fdatasync(log->fd))
		log_err("%s: %s", log->path, strerror(errno));
}

void fh_log_close(struct fh_log *log)
{
	if (!log)
		return;
	if (log->has_thread)
		end(log);
	for (int i = 0; i < 3; i++) {
		int fd = (int[]){ log->fd, log->dir_fd, log->lock_fd }[i];

		if (fd >= 0)
			close(fd);
	}
	pthread_cond_destroy(&log->wake);
	pthread_mutex_destroy(&log->io_lock);
	pthread_mutex_destroy(&log->buf_lock);
	free(log->pending.p);
	free(log->spare.p);
	free(log->tail.p);
	free(log->path);
	free(log);
}
