/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_store_memory.c - an export on tmpfs: only requests that run as another user are handed to a
 * worker
 */
#include <errno.h>
#include <linux/magic.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cmocka.h>

#include "nfs_peer.h"
#include "inside.h"

#define MEMORY "/dev/shm"
#define BYTES 65536u
#define OTHER 4711u

static const char *const options[] = { "rw,no_root_squash", NULL };
static uint8_t data[BYTES], back[BYTES];

static int setup(void **state)
{
	struct nfs_peer *p = malloc(sizeof(*p));

	assert_non_null(p);
	for (unsigned i = 0; i < BYTES; i++)
		data[i] = (uint8_t)(i * 7 + i / 256);
	nfs_peer_create(p, RPCRDMA_TCP, options);
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	nfs_peer_destroy(*state);
	free(*state);
	return 0;
}

static void count(const struct nfs_peer *p, uint64_t *ret_now, uint64_t *ret_worker)
{
	*ret_now = server_counters(p->srv, "store_now");
	*ret_worker = server_counters(p->srv, "store_worker");
}

static void commit(struct nfs_peer *p, const struct nfs_fh *fh)
{
	COMMIT3args args = { .file = nfs_peer_fh(fh) };
	COMMIT3res res = { 0 };

	NFS_PEER_CALL(p, COMMIT, &args, &res, NULL, 0);
	assert_int_equal(res.status, NFS3_OK);
	xdr_free((xdrproc_t)xdr_COMMIT3res, (char *)&res);
}

static void on_the_spot(void **state)
{
	struct nfs_peer *p = *state;
	uint64_t now, worker;
	struct nfs_fh fh;
	WRITE3resok ok;
	uint32_t n;
	bool eof;

	assert_int_equal(nfs_peer_create_file(p, &p->root, "f", &fh), NFS3_OK);
	assert_int_equal(nfs_peer_write(p, &fh, 0, data, BYTES, UNSTABLE, &ok), NFS3_OK);
	assert_int_equal(nfs_peer_write(p, &fh, BYTES, data, BYTES, DATA_SYNC, &ok), NFS3_OK);
	assert_int_equal(nfs_peer_write(p, &fh, 2 * BYTES, data, BYTES, FILE_SYNC, &ok), NFS3_OK);
	assert_int_equal(ok.count, BYTES);
	assert_int_equal(ok.committed, FILE_SYNC);
	commit(p, &fh);
	for (unsigned i = 0; i < 3; i++) {
		memset(back, 0, sizeof(back));
		assert_int_equal(nfs_peer_read(p, &fh, i * BYTES, back, BYTES, &n, &eof), NFS3_OK);
		assert_int_equal(n, BYTES);
		assert_int_equal(eof, i == 2);
		assert_memory_equal(back, data, BYTES);
	}
	count(p, &now, &worker);
	assert_int_equal(worker, 0);
	assert_int_equal(now, 7);
}

/* The kernel takes the bit away when a user writes, and leaves it when root does. */
static void as_the_caller(void **state)
{
	struct nfs_peer *p = *state;
	uint64_t now, before, worker;
	struct nfs_fh fh, mine;
	WRITE3resok ok;
	const char *path;
	struct stat st;
	uint32_t n;
	bool eof;

	if (geteuid()) {
		print_message("as_the_caller: only root can be somebody else\n");
		skip();
	}
	assert_int_equal(nfs_peer_create_file(p, &p->root, "g", &fh), NFS3_OK);
	assert_int_equal(nfs_peer_create_file(p, &p->root, "mine", &mine), NFS3_OK);
	assert_int_equal(chmod(tmp_dir_path(&p->dir, "e0/mine"), 0600), 0);
	path = tmp_dir_path(&p->dir, "e0/g");
	assert_int_equal(chown(path, OTHER, OTHER), 0);
	assert_int_equal(chmod(path, 04755), 0);
	assert_int_equal(nfs_peer_write(p, &fh, 0, data, 10, FILE_SYNC, &ok), NFS3_OK);
	assert_int_equal(stat(tmp_dir_path(&p->dir, "e0/g"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 04755);
	p->cred.uid = p->cred.gid = OTHER;
	count(p, &now, &before);
	assert_int_equal(nfs_peer_write(p, &fh, 0, data, 10, UNSTABLE, &ok), NFS3_OK);
	count(p, &now, &worker);
	assert_int_equal(worker, before + 1);
	assert_int_equal(stat(tmp_dir_path(&p->dir, "e0/g"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0755);
	assert_int_equal(nfs_peer_read(p, &mine, 0, back, 10, &n, &eof), NFS3ERR_ACCES);
	/* and the reactor is itself again */
	p->cred.uid = p->cred.gid = 0;
	assert_int_equal(nfs_peer_write(p, &mine, 0, data, 10, FILE_SYNC, &ok), NFS3_OK);
	assert_int_equal(nfs_peer_read(p, &mine, 0, back, 10, &n, &eof), NFS3_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(on_the_spot, setup, teardown),
		cmocka_unit_test_setup_teardown(as_the_caller, setup, teardown),
	};
	struct statfs st;

	if (statfs(MEMORY, &st) || st.f_type != TMPFS_MAGIC || access(MEMORY, W_OK)) {
		printf("SKIP: " MEMORY " is no tmpfs to write to\n");
		return 77;
	}
	setenv("TMPDIR", MEMORY, 1);
	return cmocka_run_group_tests_name("store_memory", tests, NULL, NULL);
}
