/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_server_close.c - the last close of a removed file delays no other call
 *
 * It frees the file's blocks, and sleeps for as long as the file system is frozen. close() is wrapped: that of a
 * removed file which is open for I/O sleeps until the test lets it go on.
 */
#include <fcntl.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "nfs_peer.h"

static const char *const options[] = { "rw,no_root_squash", NULL };

static sem_t began, go_on;
static _Atomic ino_t removed; /* the inode whose close sleeps */

int __real_close(int fd);
int __wrap_close(int fd);

int __wrap_close(int fd)
{
	struct stat st;
	int flags = fcntl(fd, F_GETFL);

	if (flags >= 0 && !(flags & O_PATH) && !fstat(fd, &st) && st.st_ino == removed && !st.st_nlink) {
		sem_post(&began);
		while (sem_wait(&go_on))
			;
	}
	return __real_close(fd);
}

static void remove_file(struct nfs_peer *p, const char *name)
{
	REMOVE3args a = { .object = { nfs_peer_fh(&p->root), (char *)(uintptr_t)name } };
	REMOVE3res res = { 0 };

	NFS_PEER_CALL(p, REMOVE, &a, &res, NULL, 0);
	assert_int_equal(res.status, NFS3_OK);
	xdr_free((xdrproc_t)xdr_REMOVE3res, (char *)&res);
}

static void others_are_served(void **state)
{
	uint8_t byte = 1;
	struct nfs_fh fh, none;
	struct nfs_peer p;
	struct stat st;
	WRITE3resok ok;

	(void)state;
	sem_init(&began, 0, 0);
	sem_init(&go_on, 0, 0);
	nfs_peer_create(&p, RPCRDMA_LOCAL, options);
	assert_int_equal(nfs_peer_create_file(&p, &p.root, "f", &fh), NFS3_OK);
	assert_int_equal(nfs_peer_write(&p, &fh, 0, &byte, 1, FILE_SYNC, &ok), NFS3_OK);
	assert_int_equal(stat(tmp_dir_path(&p.dir, "e0/f"), &st), 0);
	removed = st.st_ino;
	remove_file(&p, "f");
	while (sem_wait(&began))
		;
	/* over the same connection, so by the reactor that had the file open */
	assert_int_equal(nfs_peer_lookup(&p, &p.root, "f", &none), NFS3ERR_NOENT);
	assert_int_equal(nfs_peer_create_file(&p, &p.root, "f", &fh), NFS3_OK);
	sem_post(&go_on);
	nfs_peer_destroy(&p); /* waits for the close: no descriptor is left */
	sem_destroy(&began);
	sem_destroy(&go_on);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(others_are_served),
	};

	return cmocka_run_group_tests_name("server_close", tests, NULL, NULL);
}
