/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_server_slow_fs.c - no reactor makes a system call that may wait for a file system
 *
 * What the server learns of the file system when it opens the export (fs_limits_find()) is changed here: it may
 * have to ask a process or another host for attributes, as FUSE and NFS do, or it is a local one that can be
 * frozen, or hang. The calls that would wait are wrapped, and count if a reactor makes them.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cmocka.h>

#include "nfs_peer.h"
#include "server.h"
#include "server_int.h"

#define BYTES 100u

static const char *const options[] = { "rw,no_root_squash", "rw,no_root_squash,read=direct,write=direct",
				       "rw,no_root_squash,read=auto", NULL };

static bool at_once; /* what fs_limits_find() says */
static pthread_t reactors[8];
static atomic_uint nreactors; /* 0: nothing is counted */
static atomic_uint looks, reads, writes, climbs, closes; /* by reactors */
static atomic_uint touches; /* of these reads, with an access time that may have to be set */
static atomic_uint maps;    /* by any thread: all threads wait for memory then */

void __real_fs_limits_find(int fd, bool may_write, struct fs_limits *ret);
void __wrap_fs_limits_find(int fd, bool may_write, struct fs_limits *ret);

void __wrap_fs_limits_find(int fd, bool may_write, struct fs_limits *ret)
{
	__real_fs_limits_find(fd, may_write, ret);
	ret->answers_at_once = at_once;
	ret->in_memory = false;
}

static bool is_reactor(void)
{
	for (unsigned i = 0; i < nreactors; i++) {
		if (pthread_equal(reactors[i], pthread_self()))
			return true;
	}
	return false;
}

static void count(atomic_uint *n)
{
	if (is_reactor())
		atomic_fetch_add(n, 1);
}

static dev_t dev; /* of the exports */

static ino_t ino_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) ? 0 : st.st_ino;
}

static bool is_exported(int fd)
{
	struct stat st;

	return nreactors && fd >= 0 && !fstat(fd, &st) && st.st_dev == dev &&
	       (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode));
}

#define WRAP(n, type, name, params, args)                                                          \
	type __real_##name params;                                                                 \
	type __wrap_##name params;                                                                 \
	type __wrap_##name params                                                                  \
	{                                                                                          \
		count(&n);                                                                         \
		return __real_##name args;                                                         \
	}


/* As where numbers of inodes are made of paths, and there is neither a handle nor a birth time: a file that is made
 * again looks like the one before it. */
static bool reused;
static atomic_bool no_handles;
int __real_statx(int d, const char *p, int f, unsigned m, struct statx *st);
int __wrap_statx(int d, const char *p, int f, unsigned m, struct statx *st);

int __wrap_statx(int d, const char *p, int f, unsigned m, struct statx *st)
{
	int rc = __real_statx(d, p, f, m, st);

	count(&looks);
	if (!rc && reused) {
		st->stx_mask &= ~STATX_BTIME;
		st->stx_btime = (struct statx_timestamp){ 0 };
		if (S_ISREG(st->stx_mode))
			st->stx_ino = 4242;
	}
	return rc;
}

int __real_name_to_handle_at(int d, const char *p, struct file_handle *h, int *m, int f);
int __wrap_name_to_handle_at(int d, const char *p, struct file_handle *h, int *m, int f);

int __wrap_name_to_handle_at(int d, const char *p, struct file_handle *h, int *m, int f)
{
	count(&looks);
	if (reused || no_handles) {
		errno = EOPNOTSUPP;
		return -1;
	}
	return __real_name_to_handle_at(d, p, h, m, f);
}

WRAP(looks, int, stat, (const char *p, struct stat *st), (p, st))
WRAP(looks, int, fstatfs, (int fd, struct statfs *st), (fd, st))

#define BAD_AT 4096 /* where the disk is bad */
static bool is_bad;
ssize_t __real_preadv2(int fd, const struct iovec *v, int n, off_t at, int f);
ssize_t __wrap_preadv2(int fd, const struct iovec *v, int n, off_t at, int f);

ssize_t __wrap_preadv2(int fd, const struct iovec *v, int n, off_t at, int f)
{
	struct iovec good = *v;

	count(&reads);
	if (!(fcntl(fd, F_GETFL) & O_NOATIME))
		count(&touches);
	if (is_bad && at >= BAD_AT) {
		errno = EIO;
		return -1;
	}
	good.iov_len = MIN(good.iov_len, (size_t)(BAD_AT - at));
	return is_bad ? __real_preadv2(fd, &good, 1, at, f) : __real_preadv2(fd, v, n, at, f);
}

WRAP(writes, ssize_t, pwritev2, (int fd, const struct iovec *v, int n, off_t at, int f), (fd, v, n, at, f))
WRAP(writes, int, fsync, (int fd), (fd))
WRAP(writes, int, fdatasync, (int fd), (fd))

int __real_openat(int dir, const char *path, int flags, ...);
int __wrap_openat(int dir, const char *path, int flags, ...);

int __wrap_openat(int dir, const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list ap;

	if (flags & (O_CREAT | __O_TMPFILE)) {
		va_start(ap, flags);
		mode = va_arg(ap, mode_t);
		va_end(ap);
	}
	count(&climbs);
	return __real_openat(dir, path, flags, mode);
}

void *__real_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off);
void *__wrap_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off);

void *__wrap_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	if (is_exported(fd) && (!at_once || !(fcntl(fd, F_GETFL) & O_NOATIME)))
		atomic_fetch_add(&maps, 1);
	return __real_mmap(addr, len, prot, flags, fd, off);
}

static _Atomic ino_t hangs; /* its close, by workers and outside a call */
static _Thread_local bool in_call;
static sem_t may_close, lookup_began, may_look; /* the first: for each that waits */
static atomic_bool hold_lookup;
struct req;
void __real_nfs3_lookup(struct req *r);
void __wrap_nfs3_lookup(struct req *r);

void __wrap_nfs3_lookup(struct req *r)
{
	in_call = true;
	if (hold_lookup) {
		sem_post(&lookup_began);
		while (sem_wait(&may_look))
			;
	}
	__real_nfs3_lookup(r);
	in_call = false;
}

int __real_close(int fd);
int __wrap_close(int fd);

int __wrap_close(int fd)
{
	if (is_exported(fd)) {
		count(&closes);
		while (hangs && hangs == ino_of(fd) && !in_call && !is_reactor() && sem_wait(&may_close))
			;
	}
	return __real_close(fd);
}

static void begin(struct nfs_peer *p, bool is_at_once)
{
	struct stat st;

	at_once = is_at_once;
	nfs_peer_create(p, RPCRDMA_TCP, options); /* the local fabric looks at memfds */
	assert_int_equal(stat(p->dir.path, &st), 0);
	dev = st.st_dev;
	looks = reads = writes = climbs = closes = touches = maps = 0;
	assert_in_range(p->srv->nreactors, 1, ARRAY_SIZE(reactors));
	for (unsigned i = 0; i < p->srv->nreactors; i++)
		reactors[i] = p->srv->reactors[i]->thread;
	nreactors = p->srv->nreactors;
}

static void end(struct nfs_peer *p)
{
	nreactors = 0;
	nfs_peer_destroy(p);
}

static void getattr(struct nfs_peer *p, const struct nfs_fh *fh, uint64_t size)
{
	GETATTR3args a = { .object = nfs_peer_fh(fh) };
	GETATTR3res res = { 0 };

	NFS_PEER_CALL(p, GETATTR, &a, &res, NULL, 0);
	assert_int_equal(res.status, NFS3_OK);
	if (size)
		assert_int_equal(res.GETATTR3res_u.resok.obj_attributes.size, size);
}

static void commit(struct nfs_peer *p, const struct nfs_fh *fh, uint32_t bytes)
{
	COMMIT3args a = { .file = nfs_peer_fh(fh), .count = bytes };
	COMMIT3res res = { 0 };

	NFS_PEER_CALL(p, COMMIT, &a, &res, NULL, 0);
	assert_int_equal(res.status, NFS3_OK);
}

static void write_all_ways(struct nfs_peer *p, const struct nfs_fh *f)
{
	static uint8_t data[4096];
	WRITE3resok ok;

	memset(data, 'w', sizeof(data));
	for (unsigned how = UNSTABLE; how <= FILE_SYNC; how++) {
		assert_int_equal(nfs_peer_write(p, f, 0, data, BYTES, (stable_how)how, &ok), NFS3_OK);
		assert_int_equal(ok.count, BYTES);
		assert_int_equal(nfs_peer_write(p, f, 0, data, sizeof(data), (stable_how)how, &ok), NFS3_OK);
	}
	commit(p, f, BYTES);
	commit(p, f, 0);
}

static void read_it(struct nfs_peer *p, const struct nfs_fh *f)
{
	uint8_t back[4096 + 1];
	uint32_t n;
	bool eof;

	assert_int_equal(nfs_peer_read(p, f, 0, back, 4096, &n, &eof), NFS3_OK);
	assert_int_equal(n, 4096);
	assert_true(eof);
	assert_int_equal(back[4095], 'w');
	assert_int_equal(nfs_peer_read(p, f, 0, back, 10, &n, &eof), NFS3_OK);
	assert_int_equal(n, 10);
	assert_false(eof);
	assert_int_equal(nfs_peer_read(p, f, 4096, back, 10, &n, &eof), NFS3_OK);
	assert_int_equal(n, 0);
	assert_true(eof);
}

static void use_everything(struct nfs_peer *p, const char *export)
{
	struct nfs_fh root, d, f, again;

	assert_int_equal(nfs_peer_mount(p, export, &root), MNT3_OK);
	assert_int_equal(nfs_peer_create_file(p, &root, "f", &f), NFS3_OK);
	for (unsigned i = 0; i < 2; i++) {
		write_all_ways(p, &f);
		read_it(p, &f);
		getattr(p, &root, 0);
		getattr(p, &f, 4096);
		assert_true(nfs_peer_access(p, &f) & ACCESS3_READ);
		assert_int_equal(nfs_peer_lookup(p, &root, "d", &d), NFS3_OK);
		assert_int_equal(nfs_peer_lookup(p, &d, "g", &again), NFS3_OK);
		getattr(p, &d, 0);
	}
}

static void make_dirs(struct nfs_peer *p, const char *export)
{
	char name[32];

	(void)snprintf(name, sizeof(name), "%s/d", export + 1);
	tmp_dir_mkdir(&p->dir, name);
	(void)snprintf(name, sizeof(name), "%s/d/g", export + 1);
	tmp_dir_write(&p->dir, name, "x");
}

static void nothing_but_workers(void **state)
{
	static const char *const exports[] = { "/e0", "/e1", "/e2" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(exports); i++) {
		struct nfs_peer p;

		begin(&p, false);
		make_dirs(&p, exports[i]);
		use_everything(&p, exports[i]);
		assert_int_equal(looks, 0);
		assert_int_equal(reads, 0);
		assert_int_equal(writes, 0);
		assert_int_equal(closes, 0);
		assert_int_equal(maps, 0);
		end(&p);
	}
}

/* A READ that gets less than there is, is not at the end. */
static void errors_are_no_end(void **state)
{
	static uint8_t data[2 * BAD_AT];
	struct nfs_fh root, f;
	struct nfs_peer p;
	WRITE3resok ok;
	uint32_t n;
	bool eof;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		begin(&p, i);
		assert_int_equal(nfs_peer_mount(&p, "/e0", &root), MNT3_OK);
		assert_int_equal(nfs_peer_create_file(&p, &root, "bad", &f), NFS3_OK);
		assert_int_equal(nfs_peer_write(&p, &f, 0, data, sizeof(data), FILE_SYNC, &ok), NFS3_OK);
		is_bad = true;
		assert_int_equal(nfs_peer_read(&p, &f, 0, data, sizeof(data), &n, &eof), NFS3_OK);
		assert_int_equal(n, BAD_AT);
		assert_false(eof);
		assert_int_equal(nfs_peer_read(&p, &f, BAD_AT, data, BAD_AT, &n, &eof), NFS3ERR_IO);
		is_bad = false;
		end(&p);
	}
}

/* The file that is open here was removed outside the server, and another one made in its place. */
static void removed_files_are_stale(void **state)
{
	struct nfs_fh root, f;
	struct nfs_peer p;
	uint8_t data[BYTES] = { 0 };
	WRITE3resok ok;
	uint32_t n;
	bool eof;

	(void)state;
	reused = true;
	begin(&p, false);
	assert_int_equal(nfs_peer_mount(&p, "/e0", &root), MNT3_OK);
	assert_int_equal(nfs_peer_create_file(&p, &root, "gone", &f), NFS3_OK);
	assert_int_equal(nfs_peer_write(&p, &f, 0, data, BYTES, UNSTABLE, &ok), NFS3_OK);
	assert_int_equal(unlink(tmp_dir_path(&p.dir, "e0/gone")), 0);
	tmp_dir_write(&p.dir, "e0/gone", "another");
	assert_int_equal(nfs_peer_read(&p, &f, 0, data, BYTES, &n, &eof), NFS3ERR_STALE);
	assert_int_equal(nfs_peer_write(&p, &f, 0, data, BYTES, UNSTABLE, &ok), NFS3ERR_STALE);
	end(&p);
	reused = false;
}

/* It may be frozen, which nothing but what writes waits for. */
static void writes_are_by_workers(void **state)
{
	static const char *const exports[] = { "/e0", "/e1", "/e2" };
	struct nfs_peer p;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(exports); i++) {
		begin(&p, true);
		make_dirs(&p, exports[i]);
		use_everything(&p, exports[i]);
		assert_true(looks); /* the fast path is not lost */
		assert_int_equal(writes, 0);
		assert_int_equal(closes, 0);
		assert_int_equal(touches, 0);
		assert_int_equal(maps, 0);
		end(&p);
	}
}

/* until no more than @n are open */
static void await_descriptors(const char *path, unsigned n)
{
	struct timespec from, now;

	(void)clock_gettime(CLOCK_MONOTONIC, &from);
	while (tmp_dir_open_below(path) > n) {
		(void)clock_gettime(CLOCK_MONOTONIC, &now);
		if (now.tv_sec - from.tv_sec > 10)
			fail_msg("%u files are open, not %u", tmp_dir_open_below(path), n);
		(void)sched_yield();
	}
}

static void look_up(struct nfs_peer *p, unsigned times)
{
	struct nfs_fh d;

	for (unsigned i = 0; i < times; i++)
		assert_int_equal(nfs_peer_lookup(p, &p->root, "d", &d), NFS3_OK);
}

/* Workers that close what LOOKUP has found may wait for the file system. Others look names up then, and no more than
 * four batches stay open. */
static void closes_that_hang(void **state)
{
	enum { TIMES = 1000, BATCHES = 4, MOST = (BATCHES + 1) * 64 }; /* one is collected */
	struct worker_stats before, after;
	unsigned n, most;
	struct nfs_peer p;
	struct stat st;

	(void)state;
	sem_init(&may_close, 0, 0);
	begin(&p, true);
	make_dirs(&p, "/e0");
	look_up(&p, 2);
	n = tmp_dir_open_below(p.dir.path);
	worker_pool_stats(p.srv->workers, &before);
	look_up(&p, TIMES);
	worker_pool_stats(p.srv->workers, &after);
	await_descriptors(p.dir.path, n); /* they go without more of them, too */
	assert_int_equal(stat(tmp_dir_path(&p.dir, "e0/d"), &st), 0);
	hangs = st.st_ino;
	look_up(&p, TIMES);
	most = tmp_dir_open_below(p.dir.path);
	hangs = 0;
	for (unsigned i = 0; i < TIMES; i++)
		sem_post(&may_close);
	assert_in_range(most, n, n + MOST);
	look_up(&p, TIMES);
	assert_true(after.jobs - before.jobs < TIMES); /* not one for each */
	assert_int_equal(closes, 0);
	end(&p);
	sem_destroy(&may_close);
}

/* A file whose handle cannot be made is looked up by its client. */
static void made_without_handle(void **state)
{
	CREATE3args a = { .how.mode = GUARDED };
	CREATE3res res = { 0 };
	struct nfs_peer p;

	(void)state;
	begin(&p, true);
	a.where = (diropargs3){ nfs_peer_fh(&p.root), (char *)(uintptr_t)"f" };
	no_handles = true;
	NFS_PEER_CALL(&p, CREATE, &a, &res, NULL, 0);
	no_handles = false;
	assert_int_equal(res.status, NFS3_OK);
	assert_false(res.CREATE3res_u.resok.obj.handle_follows);
	assert_int_equal(tmp_dir_open_below(tmp_dir_path(&p.dir, "e0/f")), 0);
	assert_int_equal(nfs_peer_lookup(&p, &p.root, "f", NULL), NFS3_OK);
	assert_int_equal(closes, 0);
	end(&p);
}

static void *look_up_once(void *peer)
{
	look_up(peer, 1);
	return NULL;
}

/* the last call of an export that is served no more */
static void ends_of_exports(void **state)
{
	static struct conf conf; /* too large for a stack */
	char leatd[] = "leatd", option[] = "--export", text[256], why[CONF_WHY_BYTES] = "";
	char *argv[] = { leatd, option, text };
	struct nfs_peer p;
	pthread_t caller;

	(void)state;
	begin(&p, true);
	make_dirs(&p, "/e0"); /* "d" was not looked up before, so a worker does it */
	(void)snprintf(text, sizeof(text), "/other=%s", tmp_dir_path(&p.dir, "e1"));
	conf_init(&conf);
	assert_int_equal(conf_args(&conf, ARRAY_SIZE(argv), argv, why), CONF_RUN);
	sem_init(&lookup_began, 0, 0);
	sem_init(&may_look, 0, 0);
	hold_lookup = true;
	assert_int_equal(pthread_create(&caller, NULL, look_up_once, &p), 0);
	while (sem_wait(&lookup_began))
		;
	assert_int_equal(server_reload(p.srv, &conf, why, sizeof(why)), 0);
	hold_lookup = false;
	sem_post(&may_look);
	pthread_join(caller, NULL);
	conf_fini(&conf);
	sem_destroy(&lookup_began);
	sem_destroy(&may_look);
	await_descriptors(tmp_dir_path(&p.dir, "e0"), 0);
	assert_int_equal(closes, 0);
	end(&p);
}

/* The kernel does not say where a directory is whose path is too long, and to find out takes long. */
static void deep_directories(void **state)
{
	enum { DEPTH = 25 };
	struct nfs_peer p;
	struct nfs_fh at[DEPTH + 1];
	char name[201];
	int fds[DEPTH + 1];

	(void)state;
	memset(name, 'n', 200);
	name[200] = '\0';
	begin(&p, true);
	at[0] = p.root;
	fds[0] = open(tmp_dir_path(&p.dir, "e0"), O_PATH);
	for (unsigned i = 0; i < DEPTH; i++) {
		assert_int_equal(mkdirat(fds[i], name, 0755), 0);
		fds[i + 1] = openat(fds[i], name, O_PATH);
		assert_true(fds[i + 1] >= 0);
		assert_int_equal(nfs_peer_lookup(&p, &at[i], name, &at[i + 1]), NFS3_OK);
	}
	for (unsigned i = 0; i < 3; i++) {
		getattr(&p, &at[DEPTH], 0);
		assert_true(nfs_peer_access(&p, &at[DEPTH]) & ACCESS3_READ);
		assert_int_equal(nfs_peer_lookup(&p, &at[DEPTH - 1], name, &at[DEPTH]), NFS3_OK);
	}
	assert_int_equal(climbs, 0);
	for (unsigned i = DEPTH; i > 0; i--) {
		close(fds[i]);
		assert_int_equal(unlinkat(fds[i - 1], name, AT_REMOVEDIR), 0);
	}
	close(fds[0]);
	end(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_but_workers),
		cmocka_unit_test(errors_are_no_end),
		cmocka_unit_test(removed_files_are_stale),
		cmocka_unit_test(writes_are_by_workers),
		cmocka_unit_test(closes_that_hang),
		cmocka_unit_test(made_without_handle),
		cmocka_unit_test(ends_of_exports),
		cmocka_unit_test(deep_directories),
	};

	return cmocka_run_group_tests_name("server_slow_fs", tests, NULL, NULL);
}
