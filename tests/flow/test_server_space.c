/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_server_space.c - ALLOCATE and SEEK of a leatd: who may, and what no client should send
 */
#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <linux/fs.h>

#include <cmocka.h>

#include "conf.h"
#include "nfs_peer.h"
#include "space.h"

#define OTHER 4711u
#define MIB (1u << 20)
#define GIB (1u << 30)

static const char *const options[] = { "rw,no_root_squash", "ro,no_root_squash", NULL };

NFS_PEER_SETUPS(options)

/* ---- a file system that takes its time ---- */

static atomic_bool is_slow;
static sem_t begun, may_end;
static atomic_ullong longest; /* range */

int __real_fallocate(int fd, int mode, off_t off, off_t len);
int __wrap_fallocate(int fd, int mode, off_t off, off_t len);

int __wrap_fallocate(int fd, int mode, off_t off, off_t len)
{
	if ((unsigned long long)len > longest)
		longest = (unsigned long long)len;
	if (len > MIB)
		return 0; /* no test fills the disk */
	if (is_slow) {
		sem_post(&begun);
		while (sem_wait(&may_end))
			; /* EINTR */
	}
	return __real_fallocate(fd, mode, off, len);
}

/* ---- calls ---- */

static atomic_uint syncs;

int __real_fsync(int fd);
int __wrap_fsync(int fd);

int __wrap_fsync(int fd)
{
	syncs++;
	return __real_fsync(fd);
}

static nfsstat3 allocate(struct nfs_peer *p, const struct nfs_fh *fh, uint32_t change, uint64_t off, uint64_t len)
{
	ALLOCATE3args a = { nfs_peer_fh(fh), (space_change)change, off, len };
	ALLOCATE3res res = { 0 };

	assert_int_equal(nfs_peer_rpc(p, LEAT_SPACE, LEAT_SPACE_V1, SPACEPROC_ALLOCATE,
				      (xdrproc_t)xdr_ALLOCATE3args, &a, (xdrproc_t)xdr_ALLOCATE3res, &res, NULL, 0),
			 0);
	return res.status;
}

static nfsstat3 seek(struct nfs_peer *p, const struct nfs_fh *fh, uint64_t off, bool hole, uint64_t *ret)
{
	SEEK3args a = { nfs_peer_fh(fh), off, hole };
	SEEK3res res = { 0 };

	assert_int_equal(nfs_peer_rpc(p, LEAT_SPACE, LEAT_SPACE_V1, SPACEPROC_SEEK, (xdrproc_t)xdr_SEEK3args, &a,
				      (xdrproc_t)xdr_SEEK3res, &res, NULL, 0),
			 0);
	*ret = res.SEEK3res_u.resok.offset;
	return res.status;
}

static int64_t size_of(struct nfs_peer *p, const char *name)
{
	struct stat st;

	assert_int_equal(stat(tmp_dir_path(&p->dir, name), &st), 0);
	return st.st_size;
}

static void make(struct nfs_peer *p, struct nfs_fh *ret)
{
	assert_int_equal(nfs_peer_create_file(p, &p->root, "f", ret), NFS3_OK);
}

static void limits(void **state)
{
	struct nfs_peer *p = *state;
	struct nfs_fh f;
	uint64_t at;

	assert_int_equal(nfs_peer_null(p, LEAT_SPACE, LEAT_SPACE_V1, SPACEPROC_NULL), 0);
	make(p, &f);
	assert_int_equal(allocate(p, &f, SPACE_ALLOCATE, 0, MIB), NFS3_OK);
	assert_int_equal(size_of(p, "e0/f"), MIB);
	assert_int_equal(allocate(p, &f, SPACE_ALLOCATE, 0, 0), NFS3ERR_INVAL);
	assert_int_equal(allocate(p, &f, SPACE_ALLOCATE, INT64_MAX, 1), NFS3ERR_FBIG);
	assert_int_equal(allocate(p, &f, SPACE_ALLOCATE, UINT64_MAX, MIB), NFS3ERR_FBIG);
	assert_int_equal(allocate(p, &f, SPACE_PUNCH, UINT64_MAX, UINT64_MAX), NFS3ERR_FBIG);
	assert_int_equal(allocate(p, &f, SPACE_ZERO_KEEP + 1, 0, 1), NFS3ERR_INVAL);
	assert_int_equal(allocate(p, &f, UINT32_MAX, 0, 1), NFS3ERR_INVAL);
	assert_int_equal(size_of(p, "e0/f"), MIB);
	assert_int_equal(seek(p, &f, 0, true, &at), NFS3_OK);
	assert_int_equal(seek(p, &f, MIB, true, &at), NFS3ERR_NXIO);
	assert_int_equal(seek(p, &f, MIB, false, &at), NFS3ERR_NXIO);
	assert_int_equal(seek(p, &f, UINT64_MAX, false, &at), NFS3ERR_NXIO);
	/* no regular file, no file */
	assert_int_equal(allocate(p, &p->root, SPACE_ALLOCATE, 0, 1), NFS3ERR_INVAL);
	assert_int_equal(seek(p, &p->root, 0, false, &at), NFS3ERR_INVAL);
	f.len = 1;
	assert_int_equal(allocate(p, &f, SPACE_ALLOCATE, 0, 1), NFS3ERR_BADHANDLE);
	assert_int_equal(seek(p, &f, 0, true, &at), NFS3ERR_BADHANDLE);
}

/* Some file systems have a hole where data is that is not on disk yet: it is written back first. */
static void data_not_on_disk(void **state)
{
	struct nfs_peer *p = *state;
	const uint64_t place = MIB / 2;
	struct nfs_fh f;
	uint64_t at;
	int fd, flags;

	make(p, &f);
	syncs = 0;
	assert_int_equal(seek(p, &f, 0, false, &at), NFS3ERR_NXIO);
	fd = open(tmp_dir_path(&p->dir, "e0/f"), O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	if (ioctl(fd, FS_IOC_GETFLAGS, &flags) || !(flags & FS_EXTENT_FL)) {
		close(fd);
		print_message("no ext4 below TMPDIR\n");
		skip();
	}
	assert_int_equal(syncs, 0); /* it is known to tell the truth */
	flags &= ~FS_EXTENT_FL;
	assert_int_equal(ioctl(fd, FS_IOC_SETFLAGS, &flags), 0);
	assert_int_equal(ftruncate(fd, MIB), 0);
	syncs = 0;
	assert_int_equal(seek(p, &f, 0, false, &at), NFS3ERR_NXIO);
	assert_int_equal(syncs, 1);
	assert_int_equal(pwrite(fd, "text", 4, (off_t)place), 4);
	assert_int_equal(seek(p, &f, 0, false, &at), NFS3_OK);
	assert_int_equal(at, place);
	assert_int_equal(pwrite(fd, "text", 4, 0), 4);
	assert_int_equal(seek(p, &f, 0, true, &at), NFS3_OK);
	assert_true(at >= 4 && at < place);
	close(fd);
}

/* What one call may ask for. */
static void long_ranges(void **state)
{
	struct nfs_peer *p = *state;
	struct nfs_fh f;

	make(p, &f);
	longest = 0;
	assert_int_equal(allocate(p, &f, SPACE_ALLOCATE, 0, GIB), NFS3_OK);
	assert_int_equal(longest, GIB);
	for (uint32_t change = 0; change <= SPACE_ZERO_KEEP; change++) {
		if (change == SPACE_PUNCH)
			continue;
		assert_int_equal(allocate(p, &f, change, 0, GIB + 1), NFS3ERR_INVAL);
		assert_int_equal(allocate(p, &f, change, 0, UINT64_MAX), NFS3ERR_INVAL);
	}
	assert_int_equal(longest, GIB);
	assert_int_equal(allocate(p, &f, SPACE_PUNCH, 0, INT64_MAX), NFS3_OK);
	assert_true(longest == INT64_MAX);
}

static void tune(struct conf *conf)
{
	conf->workers = 4; /* one for long calls */
}

struct slow_call {
	struct rpcrdma_call call;
	bool done;
	int err;
};

static void on_slow(struct rpcrdma_call *call, int err)
{
	struct slow_call *s = container_of(call, struct slow_call, call);

	s->done = true;
	s->err = err;
}

/* Others are asked to come again; they change nothing, and other calls have workers. */
static void many_at_once(void **state)
{
	struct nfs_peer p = { 0 };
	struct nfs_fh f, other;
	ALLOCATE3args args = { .change = SPACE_ALLOCATE, .length = 4096 };
	ALLOCATE3res res = { 0 };
	struct slow_call s = { .call = { .prog = LEAT_SPACE, .vers = LEAT_SPACE_V1, .proc = SPACEPROC_ALLOCATE,
					 .encode = (xdrproc_t)xdr_ALLOCATE3args, .args = &args,
					 .decode = (xdrproc_t)xdr_ALLOCATE3res, .res = &res,
					 .reply_max = 512, .done = on_slow, .cred = &p.cred } };

	(void)state;
	if (getenv("LEAT_TEST_CREDITS")) {
		print_message("it takes two calls at once\n");
		skip();
	}
	nfs_peer_create_tuned(&p, RPCRDMA_LOCAL, options, tune);
	make(&p, &f);
	args.object = nfs_peer_fh(&f);
	sem_init(&begun, 0, 0);
	sem_init(&may_end, 0, 0);
	is_slow = true;
	assert_int_equal(rpcrdma_clnt_call(p.clnt, &s.call), 0);
	while (sem_trywait(&begun))
		(void)rpcrdma_engine_wait(p.engine, 1);
	is_slow = false;
	assert_int_equal(allocate(&p, &f, SPACE_ALLOCATE, 0, MIB), NFS3ERR_JUKEBOX);
	assert_int_equal(allocate(&p, &f, SPACE_PUNCH, 0, MIB), NFS3ERR_JUKEBOX);
	assert_int_equal(size_of(&p, "e0/f"), 0);
	assert_int_equal(nfs_peer_create_file(&p, &p.root, "other", &other), NFS3_OK);
	assert_false(s.done);
	sem_post(&may_end);
	while (!s.done)
		(void)rpcrdma_engine_wait(p.engine, 1);
	assert_int_equal(s.err, 0);
	assert_int_equal(res.status, NFS3_OK);
	assert_int_equal(allocate(&p, &f, SPACE_ALLOCATE, 0, MIB), NFS3_OK);
	assert_int_equal(allocate(&p, &f, SPACE_ZERO_KEEP + 1, 0, 1), NFS3ERR_INVAL);
	assert_int_equal(allocate(&p, &f, SPACE_ALLOCATE, 0, MIB), NFS3_OK); /* a failure has ended, too */
	nfs_peer_destroy(&p);
	sem_destroy(&begun);
	sem_destroy(&may_end);
}

static void read_only(void **state)
{
	struct nfs_peer *p = *state;
	struct nfs_fh root, f;
	uint64_t at;
	FILE *file = fopen(tmp_dir_path(&p->dir, "e1/f"), "w");

	assert_non_null(file);
	fputs("text", file);
	fclose(file);
	assert_int_equal(nfs_peer_mount(p, "/e1", &root), MNT3_OK);
	assert_int_equal(nfs_peer_lookup(p, &root, "f", &f), NFS3_OK);
	assert_int_equal(allocate(p, &f, SPACE_ALLOCATE, 0, MIB), NFS3ERR_ROFS);
	assert_int_equal(allocate(p, &f, SPACE_PUNCH, 0, MIB), NFS3ERR_ROFS);
	assert_int_equal(size_of(p, "e1/f"), 4);
	assert_int_equal(seek(p, &f, 0, true, &at), NFS3_OK);
	assert_int_equal(at, 4);
}

/* As READ and WRITE: the owner may in any case, others with permission. */
static void permissions(void **state)
{
	struct nfs_peer *p = *state;
	const char *path = tmp_dir_path(&p->dir, "e0/f");
	struct nfs_fh f;
	uint64_t at;
	char name[256];

	if (geteuid() || p->clnt == NULL)
		skip();
	snprintf(name, sizeof(name), "%s", path);
	make(p, &f);
	assert_int_equal(allocate(p, &f, SPACE_ALLOCATE, 0, 4096), NFS3_OK);
	nfs_peer_disconnect(p);
	p->cred.uid = p->cred.gid = OTHER;
	nfs_peer_connect(p, RPCRDMA_TCP, 0);
	assert_int_equal(chmod(name, 0600), 0);
	assert_int_equal(allocate(p, &f, SPACE_PUNCH, 0, 4096), NFS3ERR_ACCES);
	assert_int_equal(seek(p, &f, 0, true, &at), NFS3ERR_ACCES);
	assert_int_equal(chmod(name, 0604), 0);
	assert_int_equal(allocate(p, &f, SPACE_PUNCH, 0, 4096), NFS3ERR_ACCES);
	assert_int_equal(seek(p, &f, 0, true, &at), NFS3_OK);
	assert_int_equal(chmod(name, 0606), 0);
	assert_int_equal(allocate(p, &f, SPACE_ALLOCATE, 0, 8192), NFS3_OK);
	assert_int_equal(size_of(p, "e0/f"), 8192);
	assert_int_equal(chmod(name, 0), 0);
	assert_int_equal(chown(name, OTHER, OTHER), 0);
	assert_int_equal(allocate(p, &f, SPACE_ALLOCATE, 0, 12288), NFS3_OK);
}

int main(void)
{
#define BOTH(test)                                                                                                   \
	{ #test ", TCP", test, setup_tcp, nfs_peer_teardown, NULL },                                                 \
	{                                                                                                            \
		#test ", local", test, setup_local, nfs_peer_teardown, NULL                                          \
	}
	const struct CMUnitTest tests[] = {
		BOTH(limits),
		BOTH(data_not_on_disk),
		BOTH(long_ranges),
		cmocka_unit_test(many_at_once),
		BOTH(read_only),
		{ "permissions", permissions, setup_tcp, nfs_peer_teardown, NULL },
	};
#undef BOTH

	return cmocka_run_group_tests(tests, NULL, NULL);
}
