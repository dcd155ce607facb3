/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_server_verf.c - what changes the write verifier, and of which file system
 *
 * Two exports in two file systems. Linked with --wrap of the calls that write and sync.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "base/wire.h"
#include "conf.h"
#include "nfs_peer.h"

LOG_DEFINE("test_server_verf");

#define LEN 5000u

/* The next call of its kind in this file system fails. */
static _Atomic uint64_t failing_dev;
static atomic_int write_err, sync_err;

static bool is_failing(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && st.st_dev == atomic_load(&failing_dev);
}

ssize_t __real_pwritev2(int fd, const struct iovec *iov, int n, off_t off, int flags);
ssize_t __wrap_pwritev2(int fd, const struct iovec *iov, int n, off_t off, int flags);
int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);

static int failed(int fd, atomic_int *err)
{
	int e = is_failing(fd) ? atomic_exchange(err, 0) : 0;

	if (e)
		errno = e;
	return e;
}

/* the kernel's answer to a write that also syncs may come from either */
ssize_t __wrap_pwritev2(int fd, const struct iovec *iov, int n, off_t off, int flags)
{
	if (flags & RWF_NOWAIT) { /* a worker is to be told */
		errno = EAGAIN;
		return -1;
	}
	if (failed(fd, &write_err) || (flags & (RWF_SYNC | RWF_DSYNC) && failed(fd, &sync_err)))
		return -1;
	return __real_pwritev2(fd, iov, n, off, flags);
}

int __wrap_fsync(int fd)
{
	return failed(fd, &sync_err) ? -1 : __real_fsync(fd);
}

int __wrap_fdatasync(int fd)
{
	return failed(fd, &sync_err) ? -1 : __real_fdatasync(fd);
}

/* ---- two file systems ---- */

static const char *const options[] = { "rw,no_root_squash", "rw,no_root_squash", NULL };

static struct nfs_peer peer;
static char elsewhere[64];
static struct disk {
	uint64_t dev;
	struct nfs_fh root, f, g;
} disks[2];

static bool is_elsewhere(const char *dir, uint64_t dev)
{
	struct stat st;

	(void)snprintf(elsewhere, sizeof(elsewhere), "%s/leat.XXXXXX", dir);
	if (stat(dir, &st) || st.st_dev == dev || !mkdtemp(elsewhere))
		return false;
	return true;
}

static void put_elsewhere(struct conf *conf)
{
	free(conf->exports[1].path);
	conf->exports[1].path = strdup(elsewhere);
}

static uint64_t dev_of(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_dev;
}

static int setup(void **state)
{
	(void)state;
	nfs_peer_create_tuned(&peer, RPCRDMA_LOCAL, options, put_elsewhere);
	for (int i = 0; i < 2; i++) {
		struct disk *d = &disks[i];

		assert_int_equal(nfs_peer_mount(&peer, i ? "/e1" : "/e0", &d->root), MNT3_OK);
		assert_int_equal(nfs_peer_create_file(&peer, &d->root, "f", &d->f), NFS3_OK);
		assert_int_equal(nfs_peer_create_file(&peer, &d->root, "g", &d->g), NFS3_OK);
	}
	disks[0].dev = dev_of(tmp_dir_path(&peer.dir, "e0"));
	disks[1].dev = dev_of(elsewhere);
	return 0;
}

static int teardown(void **state)
{
	char path[80];

	(void)state;
	for (const char *const *name = (const char *const[]){ "f", "g", "h", NULL }; *name; name++) {
		(void)snprintf(path, sizeof(path), "%s/%s", elsewhere, *name);
		(void)unlink(path);
	}
	nfs_peer_destroy(&peer);
	return rmdir(elsewhere);
}

/* ---- calls ---- */

static const char data[LEN];

static uint64_t wrote(const struct nfs_fh *fh, stable_how how)
{
	WRITE3resok ok;

	assert_int_equal(nfs_peer_write(&peer, fh, 0, data, LEN, how, &ok), NFS3_OK);
	return get_be64(ok.verf);
}

static nfsstat3 commit(const struct nfs_fh *fh, uint64_t *ret_verf)
{
	COMMIT3args args = { .file = nfs_peer_fh(fh) };
	COMMIT3res res = { 0 };
	nfsstat3 status;

	NFS_PEER_CALL(&peer, COMMIT, &args, &res, NULL, 0);
	status = res.status;
	if (status == NFS3_OK)
		*ret_verf = get_be64(res.COMMIT3res_u.resok.verf);
	xdr_free((xdrproc_t)xdr_COMMIT3res, (char *)&res);
	return status;
}

/* what all calls for all files of one file system say, whichever reactor answers */
static uint64_t verifier(const struct disk *d)
{
	uint64_t verf = wrote(&d->f, UNSTABLE), again;

	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(wrote(&d->g, FILE_SYNC), verf);
		assert_int_equal(commit(&d->f, &again), NFS3_OK);
		assert_int_equal(again, verf);
		assert_int_equal(commit(&d->g, &again), NFS3_OK);
		assert_int_equal(again, verf);
		nfs_peer_disconnect(&peer);
		nfs_peer_connect(&peer, i ? RPCRDMA_LOCAL : RPCRDMA_TCP, 0);
	}
	return verf;
}

static nfsstat3 set_mode(const struct nfs_fh *fh)
{
	SETATTR3args args = { .object = nfs_peer_fh(fh),
			      .new_attributes = { .mode = { .set_it = TRUE,
							    .set_mode3_u.mode = 0600 } } };
	SETATTR3res res = { 0 };
	nfsstat3 status;

	NFS_PEER_CALL(&peer, SETATTR, &args, &res, NULL, 0);
	status = res.status;
	xdr_free((xdrproc_t)xdr_SETATTR3res, (char *)&res);
	return status;
}

/* ---- tests ---- */

static const struct {
	int err;
	nfsstat3 status;
} errs[] = { { ENOSPC, NFS3ERR_NOSPC }, { EDQUOT, NFS3ERR_DQUOT }, { EIO, NFS3ERR_IO } };

/* A user without space: the stable WRITE of that user fails, and no other. */
static void failed_write(void **state)
{
	(void)state;
	for (size_t d = 0; d < ARRAY_SIZE(disks); d++) {
		uint64_t was[2] = { verifier(&disks[0]), verifier(&disks[1]) };

		atomic_store(&failing_dev, disks[d].dev);
		for (size_t i = 0; i < ARRAY_SIZE(errs); i++) {
			for (stable_how how = UNSTABLE; how <= FILE_SYNC; how++) {
				atomic_store(&write_err, errs[i].err);
				assert_int_equal(nfs_peer_write(&peer, &disks[d].g, 0, data, LEN, how,
								NULL),
						 errs[i].status);
				assert_int_equal(atomic_load(&write_err), 0);
			}
		}
		assert_int_equal(verifier(&disks[0]), was[0]);
		assert_int_equal(verifier(&disks[1]), was[1]);
	}
}

enum who { STABLE_WRITE, STABLE_DATA, COMMITS, SETS_MODE, CREATES, WHO_END };

static nfsstat3 sync_by(enum who who, const struct disk *d)
{
	struct nfs_fh made;
	uint64_t verf;

	switch (who) {
	case STABLE_WRITE:
		return nfs_peer_write(&peer, &d->g, 0, data, LEN, FILE_SYNC, NULL);
	case STABLE_DATA:
		return nfs_peer_write(&peer, &d->g, 0, data, LEN, DATA_SYNC, NULL);
	case COMMITS:
		return commit(&d->g, &verf);
	case SETS_MODE:
		return set_mode(&d->g);
	case CREATES:
		return nfs_peer_create_file(&peer, &d->root, "h", &made);
	case WHO_END:
		break;
	}
	return NFS3_OK;
}

/* Data of a WRITE that succeeded is lost on its way to the disk. The next call that syncs gets the error, and that
 * may be any call. The client that wrote it sees it at its COMMIT, and no client of another file system does. */
static void failed_sync(void **state)
{
	(void)state;
	for (size_t d = 0; d < ARRAY_SIZE(disks); d++) {
		const struct disk *hurt = &disks[d], *other = &disks[!d];

		for (enum who who = 0; who < WHO_END; who++) {
			size_t e = who % ARRAY_SIZE(errs);
			uint64_t others = verifier(other), was = wrote(&hurt->f, UNSTABLE), now;

			atomic_store(&failing_dev, hurt->dev);
			atomic_store(&sync_err, errs[e].err);
			assert_int_equal(sync_by(who, hurt), errs[e].status);
			assert_int_equal(atomic_load(&sync_err), 0);
			assert_int_equal(commit(&hurt->f, &now), NFS3_OK);
			assert_int_not_equal(now, was);
			assert_int_equal(verifier(hurt), now);
			assert_int_equal(verifier(other), others);
		}
	}
}

int main(void)
{
	static const char *const dirs[] = { "/dev/shm", "/var/tmp", "/tmp" };
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(failed_write),
		cmocka_unit_test(failed_sync),
	};
	const char *tmp = getenv("TMPDIR");
	uint64_t dev = dev_of(tmp ? tmp : "/tmp");
	size_t i = 0;

	while (i < ARRAY_SIZE(dirs) && !is_elsewhere(dirs[i], dev))
		i++;
	if (i == ARRAY_SIZE(dirs)) {
		printf("SKIP: no second file system to write to\n");
		return 77;
	}
	return cmocka_run_group_tests_name("server_verf", tests, setup, teardown);
}
