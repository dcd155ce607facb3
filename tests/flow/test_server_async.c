/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_server_async.c - exports that promise durability, and one that does not
 *
 * The same calls to both: each syncs in the one, none in the other, and the answers are alike. That what
 * is synced is what must be is proved by test_powercut.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cmocka.h>

#include "nfs_peer.h"

static const char *const options[] = { "rw,no_root_squash", "rw,no_root_squash,async", NULL };

static atomic_uint syncs;

int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);
int __real_syncfs(int fd);
int __wrap_syncfs(int fd);
ssize_t __real_pwritev2(int fd, const struct iovec *iov, int n, off_t off, int flags);
ssize_t __wrap_pwritev2(int fd, const struct iovec *iov, int n, off_t off, int flags);

int __wrap_fsync(int fd)
{
	atomic_fetch_add(&syncs, 1);
	return __real_fsync(fd);
}

int __wrap_fdatasync(int fd)
{
	atomic_fetch_add(&syncs, 1);
	return __real_fdatasync(fd);
}

int __wrap_syncfs(int fd)
{
	atomic_fetch_add(&syncs, 1);
	return __real_syncfs(fd);
}

ssize_t __wrap_pwritev2(int fd, const struct iovec *iov, int n, off_t off, int flags)
{
	if (flags & (RWF_SYNC | RWF_DSYNC))
		atomic_fetch_add(&syncs, 1);
	return __real_pwritev2(fd, iov, n, off, flags);
}

static int setup(void **state)
{
	struct nfs_peer *p = malloc(sizeof(*p));

	nfs_peer_create(p, RPCRDMA_LOCAL, options);
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	nfs_peer_destroy(*state);
	free(*state);
	return 0;
}

/* since the last time it was asked: must there be one, or must there be none? */
static void expect(bool durable, const char *what)
{
	unsigned n = atomic_exchange(&syncs, 0);

	if (durable != (n > 0))
		fail_msg("%s: %u syncs", what, n);
}

static diropargs3 in(const struct nfs_fh *dir, const char *name)
{
	return (diropargs3){ .dir = nfs_peer_fh(dir), .name = (char *)(uintptr_t)name };
}

static void names(struct nfs_peer *p, const struct nfs_fh *root, bool durable)
{
	MKDIR3args mkdir = { .where = in(root, "d") };
	MKDIR3res mkdir_res = { 0 };
	RENAME3args rename = { .from = in(root, "f"), .to = in(root, "g") };
	RENAME3res rename_res = { 0 };
	REMOVE3args remove = { .object = in(root, "l") };
	REMOVE3res remove_res = { 0 };
	RMDIR3args rmdir = { .object = in(root, "d") };
	RMDIR3res rmdir_res = { 0 };
	LINK3args link = { .link = in(root, "l") };
	LINK3res link_res = { 0 };
	SETATTR3args setattr = { .new_attributes = { .mode = { .set_it = TRUE,
							       .set_mode3_u.mode = 0600 } } };
	SETATTR3res setattr_res = { 0 };
	CREATE3args excl = { .where = in(root, "x"), .how = { .mode = EXCLUSIVE } };
	CREATE3res excl_res = { 0 };
	struct nfs_fh f;

	assert_int_equal(nfs_peer_create_file(p, root, "f", &f), NFS3_OK);
	expect(durable, "CREATE");
	for (unsigned i = 0; i < 2; i++) { /* and again */
		NFS_PEER_CALL(p, CREATE, &excl, &excl_res, NULL, 0);
		assert_int_equal(excl_res.status, NFS3_OK);
		expect(durable, "CREATE EXCLUSIVE");
		xdr_free((xdrproc_t)xdr_CREATE3res, (char *)&excl_res);
		memset(&excl_res, 0, sizeof(excl_res));
	}
	link.file = setattr.object = nfs_peer_fh(&f);
	NFS_PEER_CALL(p, SETATTR, &setattr, &setattr_res, NULL, 0);
	assert_int_equal(setattr_res.status, NFS3_OK);
	expect(durable, "SETATTR");
	NFS_PEER_CALL(p, LINK, &link, &link_res, NULL, 0);
	assert_int_equal(link_res.status, NFS3_OK);
	expect(durable, "LINK");
	NFS_PEER_CALL(p, RENAME, &rename, &rename_res, NULL, 0);
	assert_int_equal(rename_res.status, NFS3_OK);
	expect(durable, "RENAME");
	NFS_PEER_CALL(p, REMOVE, &remove, &remove_res, NULL, 0);
	assert_int_equal(remove_res.status, NFS3_OK);
	expect(durable, "REMOVE");
	NFS_PEER_CALL(p, MKDIR, &mkdir, &mkdir_res, NULL, 0);
	assert_int_equal(mkdir_res.status, NFS3_OK);
	expect(durable, "MKDIR");
	xdr_free((xdrproc_t)xdr_MKDIR3res, (char *)&mkdir_res);
	NFS_PEER_CALL(p, RMDIR, &rmdir, &rmdir_res, NULL, 0);
	assert_int_equal(rmdir_res.status, NFS3_OK);
	expect(durable, "RMDIR");
}

static void data(struct nfs_peer *p, const struct nfs_fh *root, bool durable)
{
	static const char text[] = "what is written";
	COMMIT3args commit = { 0 };
	COMMIT3res commit_res = { 0 };
	WRITE3resok ok, unstable;
	char back[sizeof(text)];
	struct nfs_fh f;
	uint32_t got;
	bool eof;

	assert_int_equal(nfs_peer_create_file(p, root, "data", &f), NFS3_OK);
	atomic_store(&syncs, 0);
	for (int how = DATA_SYNC; how <= FILE_SYNC; how++) {
		assert_int_equal(nfs_peer_write(p, &f, 0, text, sizeof(text), (stable_how)how, &ok),
				 NFS3_OK);
		assert_int_equal(ok.count, sizeof(text));
		assert_int_equal(ok.committed, how);
		expect(durable, "stable WRITE");
	}
	assert_int_equal(nfs_peer_write(p, &f, 100, text, sizeof(text), UNSTABLE, &unstable), NFS3_OK);
	assert_int_equal(unstable.committed, UNSTABLE);
	expect(false, "unstable WRITE");
	commit.file = nfs_peer_fh(&f);
	NFS_PEER_CALL(p, COMMIT, &commit, &commit_res, NULL, 0);
	assert_int_equal(commit_res.status, NFS3_OK);
	expect(durable, "COMMIT");
	assert_true(commit_res.COMMIT3res_u.resok.file_wcc.after.attributes_follow);
	assert_memory_equal(commit_res.COMMIT3res_u.resok.verf, unstable.verf, sizeof(unstable.verf));
	assert_memory_equal(ok.verf, unstable.verf, sizeof(unstable.verf));
	assert_int_equal(nfs_peer_read(p, &f, 100, back, sizeof(back), &got, &eof), NFS3_OK);
	assert_int_equal(got, sizeof(text));
	assert_memory_equal(back, text, sizeof(text));
}

static void durable(void **state)
{
	struct nfs_peer *p = *state;

	atomic_store(&syncs, 0);
	names(p, &p->root, true);
	data(p, &p->root, true);
}

static void not_durable(void **state)
{
	struct nfs_peer *p = *state;
	struct nfs_fh root;

	assert_int_equal(nfs_peer_mount(p, "/e1", &root), MNT3_OK);
	atomic_store(&syncs, 0);
	names(p, &root, false);
	data(p, &root, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(durable, setup, teardown),
		cmocka_unit_test_setup_teardown(not_durable, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
