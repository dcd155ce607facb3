/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * forgetful.c - a disk that forgets what was not synced
 *
 * Operation: each file and directory that a sync was asked for has a node: what of it has lasted. A sync
 *            looks at the live file when it begins and copies what it covers. Which bytes were written
 *            since then is known by their pwritev2(); a rename within or between directories happens
 *            with the disk locked: a directory listing taken during the rename might show neither name.
 *            Nothing waits for a real disk; a sync takes a moment all the same, so that other calls come
 *            while it runs. The last one of a directory before the cut takes longer: what changed in it
 *            meanwhile is lost, and no reply may have promised it.
 * Memory:    nodes live from forgetful_start() to forgetful_stop().
 * Threads:   any; one lock.
 * Errors:    the harness's own are fatal.
 */
#include "forgetful.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/util.h"

#define UNIT 512u /* what is written or not */
#define UNITS 64u
#define NAME_BYTES 32u
#define TARGET_BYTES 128u
#define SYNC_NS 15000u /* by spinning: to sleep takes as long as others like */
#define LAST_US 1000u  /* of the last sync of a directory before the cut: others come and wait for it */

/* An inode number is used again, perhaps within a tick of the clock that tells the time of birth; with
 * the generation that file systems tell their own handles apart by it is not. */
struct id {
	uint64_t ino, birth, gen;
};

struct entry {
	char name[NAME_BYTES], target[TARGET_BYTES];
	struct id id;
	mode_t type;
};

struct node {
	struct node *next;
	struct id id;
	/* a file */
	uint64_t size, dirty; /* a bit per unit */
	uint64_t written;     /* by the last pwritev2(), of this thread: */
	pthread_t writer;
	uint8_t data[UNITS * UNIT];
	bool has_attrs, has_mode;
	mode_t mode;
	struct timespec times[2];
	char restored[256]; /* its first name */
	/* a directory */
	struct entry *entries;
	size_t n, room;
};

/* A name that moved to another directory, which was not synced since. */
struct move {
	struct move *next;
	struct id from, to;
	int to_fd;
	char name[NAME_BYTES];
	pthread_t by;
};

static struct {
	pthread_mutex_t lock;
	bool on, cut;
	bool last_begun, last_ended;
	struct id root;
	char path[256];
	unsigned syncs, left, fail, failed;
	uint64_t seed;
	struct node *nodes;
	struct move *moves;
} disk = { .lock = PTHREAD_MUTEX_INITIALIZER };

int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);
int __real_syncfs(int fd);
int __wrap_syncfs(int fd);
int __real_renameat(int from_fd, const char *from, int to_fd, const char *to);
int __wrap_renameat(int from_fd, const char *from, int to_fd, const char *to);
ssize_t __real_pwritev2(int fd, const struct iovec *iov, int n, off_t off, int flags);
ssize_t __wrap_pwritev2(int fd, const struct iovec *iov, int n, off_t off, int flags);

static void must(bool ok, const char *what)
{
	if (!ok) {
		fprintf(stderr, "forgetful disk: %s: %s\n", what, strerror(errno));
		abort();
	}
}

static uint64_t draw(void)
{
	disk.seed ^= disk.seed << 13;
	disk.seed ^= disk.seed >> 7;
	disk.seed ^= disk.seed << 17;
	return disk.seed >> 8;
}

/* of @name in @dir_fd; "" is @dir_fd itself */
static struct id id_of(int dir_fd, const char *name, const struct statx *stx)
{
	struct id id = { stx->stx_ino, (uint64_t)stx->stx_btime.tv_sec * 1000000000u +
					       stx->stx_btime.tv_nsec, 0 };
	union {
		struct file_handle h;
		uint8_t room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
	} kh = { .h.handle_bytes = MAX_HANDLE_SZ };
	int mount;

	/* a file system without handles has no generations: the time of birth has to do */
	if (!name_to_handle_at(dir_fd, name, &kh.h, &mount, *name ? 0 : AT_EMPTY_PATH)) {
		for (unsigned i = 0; i < kh.h.handle_bytes; i++)
			id.gen = id.gen * 1099511628211u ^ kh.h.f_handle[i];
	}
	return id;
}

static bool is_same(struct id a, struct id b)
{
	return a.ino == b.ino && a.birth == b.birth && a.gen == b.gen;
}

static struct node *find(struct id id)
{
	struct node *n;

	for (n = disk.nodes; n; n = n->next) {
		if (is_same(n->id, id))
			return n;
	}
	return NULL;
}

static struct node *get(struct id id)
{
	struct node *n = find(id);

	if (n)
		return n;
	n = calloc(1, sizeof(*n));
	must(n, "memory");
	n->id = id;
	n->next = disk.nodes;
	disk.nodes = n;
	return n;
}

/* ---- what lasts of a file ----------------------------------------------------------------- */

static void keep_units(struct node *n, int fd, uint64_t units, const struct statx *stx)
{
	char path[64];
	int again;

	must(stx->stx_size <= sizeof(n->data), "a file that is too long for this harness");
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = open(path, O_RDONLY | O_CLOEXEC | O_NOATIME);
	must(again >= 0, path);
	for (unsigned i = 0; i < UNITS; i++) {
		if (units & UINT64_C(1) << i)
			must(pread(again, n->data + i * UNIT, UNIT, i * UNIT) >= 0, "pread");
	}
	close(again);
	n->dirty &= ~units;
	if (stx->stx_size < n->size)
		memset(n->data + stx->stx_size, 0, n->size - stx->stx_size);
	n->size = stx->stx_size;
}

static void keep_attrs(struct node *n, const struct statx *stx)
{
	n->has_attrs = true;
	n->mode = stx->stx_mode & 07777u;
	n->times[0] = (struct timespec){ stx->stx_atime.tv_sec, stx->stx_atime.tv_nsec };
	n->times[1] = (struct timespec){ stx->stx_mtime.tv_sec, stx->stx_mtime.tv_nsec };
}

/* ---- what lasts of a directory ------------------------------------------------------------ */

static bool is_equal(const struct statx_timestamp *a, const struct statx_timestamp *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

/* nothing was written and no attribute set since its birth, as far as the clock can tell */
static bool is_as_made(const struct statx *stx)
{
	return is_equal(&stx->stx_ctime, &stx->stx_btime) &&
	       is_equal(&stx->stx_mtime, &stx->stx_btime) &&
	       is_equal(&stx->stx_atime, &stx->stx_btime);
}

static void keep_entry(struct node *n, int dir_fd, const char *name)
{
	struct entry e = { 0 };
	struct statx stx;

	if (statx(dir_fd, name, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS | STATX_BTIME, &stx))
		return; /* removed this very moment */
	must(strlen(name) < NAME_BYTES, "a name that is too long for this harness");
	memcpy(e.name, name, strlen(name));
	e.id = id_of(dir_fd, name, &stx);
	e.type = stx.stx_mode & S_IFMT;
	if (S_ISLNK(e.type) && readlinkat(dir_fd, name, e.target, sizeof(e.target) - 1) < 0)
		return;
	if (S_ISREG(e.type) && is_as_made(&stx) && !get(e.id)->has_attrs) {
		get(e.id)->has_mode = true;
		get(e.id)->mode = stx.stx_mode & 07777u;
	}
	if (n->n == n->room) {
		n->room = n->room ? n->room * 2 : 16;
		n->entries = realloc(n->entries, n->room * sizeof(e));
		must(n->entries, "memory");
	}
	n->entries[n->n++] = e;
}

static void keep_names(struct node *n, int fd)
{
	const struct dirent *d;
	char path[64];
	DIR *dir;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	dir = opendir(path);
	must(dir, path);
	n->n = 0;
	while ((d = readdir(dir))) {
		if (strcmp(d->d_name, ".") && strcmp(d->d_name, ".."))
			keep_entry(n, fd, d->d_name);
	}
	closedir(dir);
}

/* ---- names that move between directories -------------------------------------------------- */

static struct id id_of_fd(int fd)
{
	struct statx stx;

	must(!statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &stx), "statx");
	return id_of(fd, "", &stx);
}

static void note_move(int from_fd, int to_fd, const char *to)
{
	struct move *m = calloc(1, sizeof(*m));

	must(m && strlen(to) < NAME_BYTES, "a move");
	m->from = id_of_fd(from_fd);
	m->to = id_of_fd(to_fd);
	if (is_same(m->from, m->to)) {
		free(m);
		return;
	}
	memcpy(m->name, to, strlen(to));
	m->to_fd = dup(to_fd);
	must(m->to_fd >= 0, "dup");
	m->by = pthread_self();
	m->next = disk.moves;
	disk.moves = m;
}

static void drop_entry(struct node *n, const char *name)
{
	for (size_t i = 0; i < n->n; i++) {
		if (!strcmp(n->entries[i].name, name)) {
			n->entries[i] = n->entries[--n->n];
			return;
		}
	}
}

/* The directory @id was synced: what moved into it has lasted with that; what moved out of it lasts in its
 * new directory, unless this thread moved it: a server that moves a name syncs the new directory first. */
static void settle_moves(struct id id)
{
	struct move **p = &disk.moves;

	while (*p) {
		struct move *m = *p;
		bool left = is_same(m->from, id);

		if (!left && !is_same(m->to, id)) {
			p = &m->next;
			continue;
		}
		if (left && !pthread_equal(m->by, pthread_self())) {
			drop_entry(get(m->to), m->name);
			keep_entry(get(m->to), m->to_fd, m->name);
		}
		*p = m->next;
		close(m->to_fd);
		free(m);
	}
}

static void keep_all(int fd)
{
	struct statx stx;
	struct node *n;

	must(!statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &stx), "statx");
	n = get(id_of(fd, "", &stx));
	settle_moves(n->id);
	keep_attrs(n, &stx);
	if (S_ISREG(stx.stx_mode))
		keep_units(n, fd, ~UINT64_C(0), &stx);
	if (!S_ISDIR(stx.stx_mode))
		return;
	keep_names(n, fd);
	for (size_t i = 0; i < n->n; i++) {
		int below = openat(fd, n->entries[i].name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

		if (below < 0) /* a link, or gone */
			continue;
		keep_all(below);
		close(below);
	}
}

static void keep_root(void)
{
	int fd = open(disk.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	must(fd >= 0, disk.path);
	keep_all(fd);
	close(fd);
}

/* ---- the calls ---------------------------------------------------------------------------- */

/* the server also syncs its own files */
static bool is_below_root(int fd)
{
	char proc[64], path[sizeof(disk.path) + 256];
	size_t len = strlen(disk.path);
	ssize_t n;

	(void)snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	n = readlink(proc, path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = '\0';
	return !strncmp(path, disk.path, len) && (!path[len] || path[len] == '/');
}

/* a sync begins, the lock is held; Return: it counts */
static bool has_power(int fd)
{
	if (!disk.on || disk.cut || !is_below_root(fd))
		return false;
	disk.syncs++;
	if (disk.left)
		disk.left--;
	else if (disk.last_ended)
		disk.cut = true;
	return !disk.cut;
}

static bool loses(const struct node *n, uint64_t but)
{
	return disk.fail && n->dirty & ~but && draw() % disk.fail == 0;
}

static int sync_fd(int fd, bool attrs)
{
	struct statx stx;
	struct node *n;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &stx))
		return -1;
	n = get(id_of(fd, "", &stx));
	if (S_ISDIR(stx.stx_mode)) {
		keep_names(n, fd);
		settle_moves(n->id);
		return 0;
	}
	/* a stable write and its sync are two calls of one thread */
	if (loses(n, pthread_equal(n->writer, pthread_self()) ? n->written : 0)) {
		n->dirty = 0;
		disk.failed++;
		errno = EIO;
		return -1;
	}
	keep_units(n, fd, n->dirty, &stx);
	if (attrs)
		keep_attrs(n, &stx);
	return 0;
}

static void take_time(void)
{
	uint64_t until = clock_now_ns() + SYNC_NS;

	while (clock_now_ns() < until)
		;
}

/* a sync has the power; Return: it is the last one of a directory, with names in it */
static bool begins_last(int fd)
{
	const struct node *n;

	if (disk.left || disk.last_begun)
		return false;
	n = find(id_of_fd(fd));
	if (!n || !n->n)
		return false;
	disk.last_begun = true;
	return true;
}

static void end_last(void)
{
	(void)usleep(LAST_US);
	pthread_mutex_lock(&disk.lock);
	disk.last_ended = true;
	pthread_mutex_unlock(&disk.lock);
}

static int wrapped_sync(int fd, bool attrs)
{
	bool last = false;
	int rc = 0, err;

	pthread_mutex_lock(&disk.lock);
	if (has_power(fd)) {
		rc = sync_fd(fd, attrs);
		last = !rc && begins_last(fd);
	}
	err = errno;
	pthread_mutex_unlock(&disk.lock);
	if (last)
		end_last();
	else
		take_time();
	errno = err;
	return rc;
}

int __wrap_fsync(int fd)
{
	return wrapped_sync(fd, true);
}

int __wrap_fdatasync(int fd)
{
	return wrapped_sync(fd, false);
}

int __wrap_syncfs(int fd)
{
	pthread_mutex_lock(&disk.lock);
	if (has_power(fd))
		keep_root();
	pthread_mutex_unlock(&disk.lock);
	return 0;
}

int __wrap_renameat(int from_fd, const char *from, int to_fd, const char *to)
{
	int rc, err;

	pthread_mutex_lock(&disk.lock);
	rc = __real_renameat(from_fd, from, to_fd, to);
	err = errno;
	if (!rc && disk.on)
		note_move(from_fd, to_fd, to);
	pthread_mutex_unlock(&disk.lock);
	errno = err;
	return rc;
}

/* @bytes at @off were written; Return: 0, -1: a sync of them failed */
static int written(int fd, uint64_t off, uint64_t bytes, int flags)
{
	struct statx stx;
	struct node *n;
	uint64_t units = 0;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &stx))
		return -1;
	n = get(id_of(fd, "", &stx));
	must(off + bytes <= sizeof(n->data), "a write beyond what this harness keeps");
	for (uint64_t i = off / UNIT; i * UNIT < off + bytes; i++)
		units |= UINT64_C(1) << i;
	n->dirty |= units;
	n->written = units;
	n->writer = pthread_self();
	if (!(flags & (RWF_SYNC | RWF_DSYNC)) || !has_power(fd))
		return 0;
	if (loses(n, units)) {
		n->dirty = 0;
		disk.failed++;
		errno = EIO;
		return -1;
	}
	keep_units(n, fd, units, &stx);
	if (flags & RWF_SYNC)
		keep_attrs(n, &stx);
	return 0;
}

ssize_t __wrap_pwritev2(int fd, const struct iovec *iov, int n, off_t off, int flags)
{
	int plain = flags & ~(RWF_SYNC | RWF_DSYNC), err;
	ssize_t got;

	pthread_mutex_lock(&disk.lock);
	got = __real_pwritev2(fd, iov, n, off, plain);
	if (got > 0 && disk.on && written(fd, (uint64_t)off, (uint64_t)got, flags))
		got = -1;
	err = errno;
	pthread_mutex_unlock(&disk.lock);
	if (plain != flags)
		take_time();
	errno = err;
	return got;
}

/* ---- for the test ------------------------------------------------------------------------- */

void forgetful_start(const char *root, unsigned syncs, unsigned fail, uint64_t seed)
{
	char real[PATH_MAX];
	struct statx stx;

	must(!statx(AT_FDCWD, root, 0, STATX_BASIC_STATS | STATX_BTIME, &stx), root);
	must(stx.stx_mask & STATX_BTIME, "a file system that knows when files were made");
	pthread_mutex_lock(&disk.lock);
	must(realpath(root, real) && strlen(real) < sizeof(disk.path), root);
	memcpy(disk.path, real, strlen(real) + 1);
	disk.root = id_of(AT_FDCWD, root, &stx);
	keep_root();
	disk.left = syncs;
	disk.fail = fail;
	disk.seed = seed | 1;
	disk.syncs = disk.failed = 0;
	disk.cut = disk.last_begun = disk.last_ended = false;
	disk.on = true;
	pthread_mutex_unlock(&disk.lock);
}

bool forgetful_do(void (*fn)(void *arg), void *arg)
{
	bool on;

	pthread_mutex_lock(&disk.lock);
	on = !disk.cut;
	if (on)
		fn(arg);
	pthread_mutex_unlock(&disk.lock);
	return on;
}

void forgetful_cut(void)
{
	pthread_mutex_lock(&disk.lock);
	disk.cut = true;
	pthread_mutex_unlock(&disk.lock);
}

unsigned forgetful_syncs(void)
{
	return disk.syncs;
}

unsigned forgetful_failed(void)
{
	return disk.failed;
}

static void restore_file(struct node *n, const char *path)
{
	int fd;

	if (n->restored[0]) {
		must(!link(n->restored, path), path);
		return;
	}
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	must(fd >= 0, path);
	for (unsigned i = 0; i < UNITS; i++) {
		uint64_t at = i * UNIT;

		if (at < n->size)
			must(pwrite(fd, n->data + at, MIN(UNIT, n->size - at), (off_t)at) > 0, path);
	}
	if (n->has_attrs || n->has_mode)
		must(!fchmod(fd, n->mode), path);
	if (n->has_attrs)
		must(!futimens(fd, n->times), path);
	close(fd);
	(void)snprintf(n->restored, sizeof(n->restored), "%s", path);
}

static void restore_dir(const struct node *n, const char *to);

static void restore_entry(const struct entry *e, const char *path)
{
	if (S_ISREG(e->type))
		restore_file(get(e->id), path);
	else if (S_ISDIR(e->type))
		restore_dir(get(e->id), path);
	else if (S_ISLNK(e->type))
		must(!symlink(e->target, path), path);
	else
		must(!mknod(path, e->type | 0600, 0), path);
}

static void restore_dir(const struct node *n, const char *to)
{
	char path[256];

	must(!mkdir(to, 0755), to);
	for (size_t i = 0; i < n->n; i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", to, n->entries[i].name);
		restore_entry(&n->entries[i], path);
	}
}

void forgetful_restore(const char *to)
{
	pthread_mutex_lock(&disk.lock);
	restore_dir(get(disk.root), to);
	pthread_mutex_unlock(&disk.lock);
}

void forgetful_stop(void)
{
	pthread_mutex_lock(&disk.lock);
	disk.on = false;
	while (disk.moves) {
		struct move *m = disk.moves;

		disk.moves = m->next;
		close(m->to_fd);
		free(m);
	}
	while (disk.nodes) {
		struct node *n = disk.nodes;

		disk.nodes = n->next;
		free(n->entries);
		free(n);
	}
	pthread_mutex_unlock(&disk.lock);
}
