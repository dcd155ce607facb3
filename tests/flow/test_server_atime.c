/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_server_atime.c - the access times of files that READ has read are what they would be without leatd
 *
 * The kernel is asked: a file that is read here, and one that is read by READ. Of the file system below $TMPDIR, with
 * the options of its mount; tests/interop/filesystems.sh runs this on others.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "nfs3_io.h"
#include "nfs_peer.h"
#include "nfs.h"
#include "inside.h"
#include "kernel_has.h"

#define BYTES 8192u
#define DESCRIPTORS 2000
#define FILES 60u
#define DAY_S 86400

static const char *const options[] = { "rw,no_root_squash", "rw,no_root_squash,read=direct,write=direct",
				       "rw,no_root_squash,read=auto", NULL };

/* ---- the worker that sets it -------------------------------------------------------------- */

static atomic_uint touched; /* descriptors by which nothing was read but that */
static atomic_bool hangs;
static sem_t may_touch;
ssize_t __real_pread(int fd, void *to, size_t bytes, off_t off);
ssize_t __wrap_pread(int fd, void *to, size_t bytes, off_t off);

ssize_t __wrap_pread(int fd, void *to, size_t bytes, off_t off)
{
	atomic_fetch_add(&touched, 1);
	while (hangs && sem_wait(&may_touch))
		;
	return __real_pread(fd, to, bytes, off);
}

/* for what is no matter of the mount */
static bool is_relative;
void __real_fs_limits_find(int fd, bool may_write, struct fs_limits *ret);
void __wrap_fs_limits_find(int fd, bool may_write, struct fs_limits *ret);

void __wrap_fs_limits_find(int fd, bool may_write, struct fs_limits *ret)
{
	__real_fs_limits_find(fd, may_write, ret);
	if (!is_relative)
		return;
	ret->atime = FS_ATIME_RELATIVE;
}

/* ---- as the kernel does it ---------------------------------------------------------------- */

static void set_times(const char *path, long atime_s, long mtime_s)
{
	struct timespec now, both[2];

	assert_int_equal(clock_gettime(CLOCK_REALTIME, &now), 0);
	both[0] = (struct timespec){ .tv_sec = now.tv_sec + atime_s, .tv_nsec = 123456789 };
	both[1] = (struct timespec){ .tv_sec = now.tv_sec + mtime_s, .tv_nsec = 123456789 };
	assert_int_equal(utimensat(AT_FDCWD, path, both, 0), 0);
}

static struct timespec atime_of(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_atim;
}

/* Waits for the next tick of the clock of file systems: a change in the tick of the last one does not show. */
static void await_tick(const char *path)
{
	struct timespec now;
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	do
		assert_int_equal(clock_gettime(CLOCK_REALTIME_COARSE, &now), 0);
	while (now.tv_sec == st.st_ctim.tv_sec && now.tv_nsec <= st.st_ctim.tv_nsec);
}

static void read_here(const char *path)
{
	char text[BYTES];
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(read(fd, text, sizeof(text)), sizeof(text));
	close(fd);
}

static void read_there(struct nfs_peer *p, const struct nfs_fh *f)
{
	static uint8_t text[BYTES];
	uint32_t n;
	bool eof;

	assert_int_equal(nfs_peer_read(p, f, 0, text, BYTES, &n, &eof), NFS3_OK);
	assert_int_equal(n, BYTES);
}

static void make(struct nfs_peer *p, const struct nfs_fh *dir, const char *name, struct nfs_fh *ret)
{
	static uint8_t text[BYTES];
	WRITE3resok ok;

	assert_int_equal(nfs_peer_create_file(p, dir, name, ret), NFS3_OK);
	assert_int_equal(nfs_peer_write(p, ret, 0, text, BYTES, FILE_SYNC, &ok), NFS3_OK);
}

static char *path_of(const struct nfs_peer *p, unsigned export, const char *name)
{
	char inside[64];

	(void)snprintf(inside, sizeof(inside), "e%u/%s", export, name);
	return strdup(tmp_dir_path(&p->dir, inside));
}

static bool is_same(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

/* Return: was it set? */
static bool compare(unsigned export, long atime_s, long mtime_s)
{
	struct timespec before[2], after[2];
	char mount[8], *here, *there;
	struct nfs_fh dir, f[2];
	struct nfs_peer p;

	nfs_peer_create(&p, RPCRDMA_TCP, options);
	(void)snprintf(mount, sizeof(mount), "/e%u", export);
	assert_int_equal(nfs_peer_mount(&p, mount, &dir), MNT3_OK);
	make(&p, &dir, "here", &f[0]);
	make(&p, &dir, "there", &f[1]);
	here = path_of(&p, export, "here");
	there = path_of(&p, export, "there");
	set_times(here, atime_s, mtime_s);
	set_times(there, atime_s, mtime_s);
	before[0] = atime_of(here);
	before[1] = atime_of(there);
	read_here(here);
	read_there(&p, &f[1]);
	nfs_peer_disconnect(&p);
	nfs_peer_stop(&p); /* what workers do is done then */
	after[0] = atime_of(here);
	after[1] = atime_of(there);
	assert_int_equal(is_same(&before[0], &after[0]), is_same(&before[1], &after[1]));
	if (!is_same(&before[0], &after[0]))
		assert_true(labs(after[0].tv_sec - after[1].tv_sec) < 600);
	free(here);
	free(there);
	nfs_peer_destroy(&p);
	return !is_same(&before[0], &after[0]);
}

static void as_the_kernel(void **state)
{
	static const struct {
		long atime_s, mtime_s; /* from now on */
	} cases[] = { { -1000, -1000 }, { 1000, -1000 }, { 1000, 2000 }, { -3 * DAY_S, -4 * DAY_S } };
	struct statvfs fs;
	unsigned set = 0;

	(void)state;
	for (unsigned e = 0; e < 3; e++)
		for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
			set += compare(e, cases[i].atime_s, cases[i].mtime_s);
	print_message("%u of 12 were set\n", set);
	assert_int_equal(statvfs(getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", &fs), 0);
	if (fs.f_flag & (ST_RDONLY | ST_NOATIME))
		assert_int_equal(set, 0);
	else
		assert_in_range(set, 3, 12); /* at least the first case of each export */
}

/* ---- when ---------------------------------------------------------------------------------- */

static void due(void **state)
{
	static const struct {
		enum fs_atime how;
		int64_t atime, mtime, ctime; /* ns before now, and a negative number is after it */
		bool want;
	} cases[] = {
		{ FS_ATIME_NEVER, 100, 50, 50, false },
		{ FS_ATIME_RELATIVE, 100, 50, 200, true },
		{ FS_ATIME_RELATIVE, 100, 200, 50, true },
		{ FS_ATIME_RELATIVE, 100, 100, 200, true },
		{ FS_ATIME_RELATIVE, 100, 200, 100, true },
		{ FS_ATIME_RELATIVE, 100, 200, 200, false },
		{ FS_ATIME_RELATIVE, 0, 0, 0, false }, /* it would be set to what it is */
		{ FS_ATIME_RELATIVE, -5000000000, -6000000000, 100, true },
		{ FS_ATIME_RELATIVE, -5000000000, 100, 100, false },
		{ FS_ATIME_RELATIVE, DAY_S * INT64_C(1000000000) - 1000000000, INT64_C(200000000000000),
		  INT64_C(200000000000000), false },
		{ FS_ATIME_RELATIVE, DAY_S * INT64_C(1000000000), INT64_C(200000000000000), INT64_C(200000000000000),
		  true },
		{ FS_ATIME_ALWAYS, 1, 200, 200, true },
		{ FS_ATIME_ALWAYS, 0, 200, 200, false },
	};
	const struct timespec now = { 1700000000, 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct fs_limits fs = { .answers_at_once = true, .atime = cases[i].how, .time_ns = 1 };
		const int64_t back[] = { cases[i].atime, cases[i].mtime, cases[i].ctime };
		struct statx_timestamp *to[3];
		struct statx stx = { 0 };

		to[0] = &stx.stx_atime;
		to[1] = &stx.stx_mtime;
		to[2] = &stx.stx_ctime;
		for (size_t j = 0; j < 3; j++) {
			int64_t at = INT64_C(1700000000000000000) - back[j];

			to[j]->tv_sec = at / 1000000000;
			to[j]->tv_nsec = (uint32_t)(at % 1000000000);
		}
		if (nfs3_atime_is_due(&fs, &stx, &now) != cases[i].want)
			fail_msg("case %zu", i);
		fs.in_memory = true; /* reads set it there, without a disk access */
		assert_false(nfs3_atime_is_due(&fs, &stx, &now));
		fs.in_memory = fs.answers_at_once = false;
		assert_false(nfs3_atime_is_due(&fs, &stx, &now));
	}
}

/* A file system that keeps whole seconds would set nothing until the next one. */
static void due_by_steps(void **state)
{
	struct statx stx = { .stx_atime.tv_sec = 1000, .stx_mtime.tv_sec = 1000, .stx_ctime.tv_sec = 1000 };
	struct fs_limits fs = { .answers_at_once = true, .atime = FS_ATIME_RELATIVE, .time_s = 1 };
	struct timespec now = { 1000, 999999999 };

	(void)state;
	assert_false(nfs3_atime_is_due(&fs, &stx, &now));
	now = (struct timespec){ 1001, 0 };
	assert_true(nfs3_atime_is_due(&fs, &stx, &now));
	fs.time_s = 2;
	assert_false(nfs3_atime_is_due(&fs, &stx, &now));
	now = (struct timespec){ 1002, 0 };
	assert_true(nfs3_atime_is_due(&fs, &stx, &now));
	fs.time_s = 0;
	fs.time_ns = 100;
	now = (struct timespec){ 1000, 99 };
	assert_false(nfs3_atime_is_due(&fs, &stx, &now));
	now = (struct timespec){ 1000, 100 };
	assert_true(nfs3_atime_is_due(&fs, &stx, &now));
}

/* ---- beside the data ----------------------------------------------------------------------- */

/* READs go on while nothing sets their times, one worker at most is asked for each file, and not for more files than
 * a bound. */
static void read_beside(unsigned files, unsigned rounds)
{
	static struct nfs_fh f[FILES];
	struct nfs_peer p;
	size_t most;

	nfs_peer_create(&p, RPCRDMA_TCP, options);
	for (unsigned i = 0; i < files; i++) {
		char name[16], *path;

		(void)snprintf(name, sizeof(name), "%u", i);
		make(&p, &p.root, name, &f[i]);
		path = path_of(&p, 0, name);
		set_times(path, 1000, -1000); /* not due */
		read_there(&p, &f[i]);
		set_times(path, -1000, -1000);
		free(path);
	}
	most = server_files_max(p.srv) / 16;
	assert_in_range(most, 2, FILES / 2);
	sem_init(&may_touch, 0, 0);
	touched = 0;
	hangs = true;
	for (unsigned round = 0; round < rounds; round++)
		for (unsigned i = 0; i < files; i++)
			read_there(&p, &f[i]);
	hangs = false;
	for (unsigned i = 0; i < files; i++)
		sem_post(&may_touch);
	nfs_peer_disconnect(&p);
	nfs_peer_stop(&p);
	assert_int_equal(touched, MIN(files, most));
	nfs_peer_destroy(&p);
	sem_destroy(&may_touch);
}

static void skip_unless_workers_do(void)
{
	struct fs_limits limits;
	struct statfs fs;
	struct nfs_peer p;
	bool local;

	nfs_peer_create(&p, RPCRDMA_TCP, options);
	limits = exports_from(p.srv->served[SERVICE_NFS])->table.v[0].backing.limits;
	assert_int_equal(statfs(p.dir.path, &fs), 0);
	local = kernel_has_watches(p.dir.path);
	nfs_peer_destroy(&p);
	if (!local || fs.f_type == TMPFS_MAGIC) {
		print_message("SKIP: files below $TMPDIR are not on a local disk: the reader sets their times\n");
		skip();
	}
	assert_true(limits.answers_at_once && !limits.in_memory);
}

/* A SETATTR or a WRITE that was answered after the READ is not undone by the worker that comes late: what was set
 * stays, and a file that was written to is newer than its last access. */
static void not_undone(void **state)
{
	enum { N = 8 };
	SETATTR3args a = { 0 };
	static struct nfs_fh f[N];
	static uint8_t text[BYTES];
	SETATTR3res r = { 0 };
	struct nfs_peer p;
	bool whole_seconds;
	char *path[N];
	WRITE3resok ok;
	struct stat st;

	(void)state;
	skip_unless_workers_do();
	is_relative = true;
	nfs_peer_create(&p, RPCRDMA_TCP, options);
	whole_seconds = exports_from(p.srv->served[SERVICE_NFS])->table.v[0].backing.limits.time_s;
	for (unsigned i = 0; i < N; i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "%u", i);
		make(&p, &p.root, name, &f[i]);
		path[i] = path_of(&p, 0, name);
		set_times(path[i], -1000, -1000);
	}
	await_tick(path[N - 1]);
	sem_init(&may_touch, 0, 0);
	touched = 0;
	hangs = true; /* the first of them wait for their disk, the others for those */
	for (unsigned i = 0; i < N; i++)
		read_there(&p, &f[i]);
	a.object = nfs_peer_fh(&f[N - 2]);
	a.new_attributes.atime.set_it = SET_TO_CLIENT_TIME;
	a.new_attributes.atime.set_atime_u.atime = (nfstime3){ 1000000000, 5 };
	NFS_PEER_CALL(&p, SETATTR, &a, &r, NULL, 0);
	assert_int_equal(r.status, NFS3_OK);
	assert_int_equal(nfs_peer_write(&p, &f[N - 1], 0, text, BYTES, FILE_SYNC, &ok), NFS3_OK);
	assert_in_range(touched, 0, N - 2);
	hangs = false;
	for (unsigned i = 0; i < N; i++)
		sem_post(&may_touch);
	nfs_peer_disconnect(&p);
	nfs_peer_stop(&p);
	assert_int_equal(atime_of(path[N - 2]).tv_sec, 1000000000);
	assert_int_equal(stat(path[N - 1], &st), 0);
	if (!whole_seconds) /* a change within the second of the last one does not show there */
		assert_true(st.st_atim.tv_sec < st.st_mtim.tv_sec);
	assert_int_equal(stat(path[0], &st), 0);
	assert_true(st.st_atim.tv_sec > st.st_mtim.tv_sec);
	for (unsigned i = 0; i < N; i++)
		free(path[i]);
	nfs_peer_destroy(&p);
	sem_destroy(&may_touch);
	is_relative = false;
}

static void beside_reads(void **state)
{
	(void)state;
	skip_unless_workers_do();
	is_relative = true;
	read_beside(1, 5);
	read_beside(FILES, 3);
	is_relative = false;
}

int main(void)
{
	const struct rlimit few = { DESCRIPTORS, DESCRIPTORS }; /* for few files, of which fewer have their times set */
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_the_kernel),
		cmocka_unit_test(due),
		cmocka_unit_test(due_by_steps),
		cmocka_unit_test(not_undone),
		cmocka_unit_test(beside_reads),
	};

	if (setrlimit(RLIMIT_NOFILE, &few))
		return 1;
	return cmocka_run_group_tests_name("server_atime", tests, NULL, NULL);
}
