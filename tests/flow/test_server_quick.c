/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_server_quick.c - GETATTR, ACCESS and LOOKUP that visit no worker, and tell the truth all the same
 *
 * How often a worker was visited is counted. What changes behind the server's back (modes, names, files
 * that are removed, directories that are moved out) shows in the next answer.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "nfs_peer.h"
#include "inside.h"

#define ALL_BITS 0x3fu

static const char *const options[] = { "rw,no_root_squash", NULL };

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

static uint64_t visits(const struct nfs_peer *p)
{
	return server_counters(p->srv, "run_waits");
}

/* only what has the same ctime for longer than a tick of the kernel's clock is remembered */
static void let_settle(const struct nfs_peer *p, const char *name)
{
	struct timespec now;
	struct stat st;

	assert_int_equal(stat(tmp_dir_path(&p->dir, name), &st), 0);
	do {
		assert_int_equal(clock_gettime(CLOCK_REALTIME_COARSE, &now), 0);
	} while (now.tv_sec < st.st_ctim.tv_sec ||
		 (now.tv_sec == st.st_ctim.tv_sec && now.tv_nsec <= st.st_ctim.tv_nsec));
}

static nfsstat3 getattr(struct nfs_peer *p, const struct nfs_fh *fh, fattr3 *ret)
{
	GETATTR3args a = { .object = nfs_peer_fh(fh) };
	GETATTR3res res = { 0 };

	NFS_PEER_CALL(p, GETATTR, &a, &res, NULL, 0);
	if (res.status == NFS3_OK && ret)
		*ret = res.GETATTR3res_u.resok.obj_attributes;
	return res.status;
}

static uint32_t rights(struct nfs_peer *p, const struct nfs_fh *fh)
{
	ACCESS3args a = { .object = nfs_peer_fh(fh), .access = ALL_BITS };
	ACCESS3res res = { 0 };

	NFS_PEER_CALL(p, ACCESS, &a, &res, NULL, 0);
	assert_int_equal(res.status, NFS3_OK);
	assert_true(res.ACCESS3res_u.resok.obj_attributes.attributes_follow);
	return res.ACCESS3res_u.resok.access;
}

/* ---- no worker ---- */

static void visits_no_worker(void **state)
{
	struct nfs_peer *p = *state;
	struct nfs_fh d, f, again;
	uint32_t bits_d, bits_f;
	fattr3 attr;
	uint64_t n;

	tmp_dir_mkdir(&p->dir, "e0/d");
	tmp_dir_write(&p->dir, "e0/d/f", "four");
	let_settle(p, "e0/d/f");
	assert_int_equal(nfs_peer_lookup(p, &p->root, "d", &d), NFS3_OK);
	assert_int_equal(nfs_peer_lookup(p, &d, "f", &f), NFS3_OK);
	assert_int_equal(getattr(p, &f, &attr), NFS3_OK);
	bits_d = rights(p, &d);
	bits_f = rights(p, &f);
	n = visits(p);
	for (unsigned i = 0; i < 10; i++) {
		assert_int_equal(getattr(p, &f, &attr), NFS3_OK);
		assert_int_equal(attr.size, 4);
		assert_int_equal(getattr(p, &d, &attr), NFS3_OK);
		assert_int_equal(attr.type, NF3DIR);
		assert_int_equal(rights(p, &d), bits_d);
		assert_int_equal(rights(p, &f), bits_f);
		assert_int_equal(nfs_peer_lookup(p, &d, "f", &again), NFS3_OK);
		assert_int_equal(again.len, f.len);
		assert_memory_equal(again.data, f.data, f.len);
	}
	assert_int_equal(visits(p), n);
}

/* a caller with the server's own rights needs no new check when the directory has changed */
static void names_come_and_go(void **state)
{
	struct nfs_peer *p = *state;
	struct nfs_fh f;
	uint64_t n;

	tmp_dir_write(&p->dir, "e0/f", "x");
	assert_int_equal(nfs_peer_lookup(p, &p->root, "f", &f), NFS3_OK);
	n = visits(p);
	for (unsigned i = 0; i < 10; i++) {
		tmp_dir_write(&p->dir, "e0/g", "x");
		assert_int_equal(nfs_peer_lookup(p, &p->root, "g", &f), NFS3_OK);
		assert_int_equal(unlink(tmp_dir_path(&p->dir, "e0/g")), 0);
	}
	assert_int_equal(visits(p), n);
}

/* the attributes of a file that is open for its data are read through that descriptor */
static void open_file(void **state)
{
	struct nfs_peer *p = *state;
	struct nfs_fh f;
	fattr3 attr;
	uint64_t n;

	assert_int_equal(nfs_peer_create_file(p, &p->root, "f", &f), NFS3_OK);
	n = visits(p);
	assert_int_equal(truncate(tmp_dir_path(&p->dir, "e0/f"), 12345), 0);
	assert_int_equal(getattr(p, &f, &attr), NFS3_OK);
	assert_int_equal(attr.size, 12345);
	assert_int_equal(visits(p), n);
}

/* ---- the truth ---- */

static void modes_change(void **state)
{
	struct nfs_peer *p = *state;
	struct nfs_fh f, root = p->root;
	uint64_t n;

	if (geteuid()) {
		print_message("SKIP: only root can be somebody else\n");
		skip();
	}
	tmp_dir_write(&p->dir, "e0/f", "x");
	assert_int_equal(chmod(tmp_dir_path(&p->dir, "e0/f"), 0644), 0);
	assert_int_equal(chmod(tmp_dir_path(&p->dir, "e0"), 0755), 0);
	p->cred.uid = p->cred.gid = 4711;
	assert_int_equal(nfs_peer_lookup(p, &root, "f", &f), NFS3_OK);
	/* every change of the mode is seen at once */
	for (unsigned i = 0; i < 200; i++) {
		uint32_t mode = i % 2 ? 0600 : 0644;

		assert_int_equal(chmod(tmp_dir_path(&p->dir, "e0/f"), mode), 0);
		if (i % 8 == 7)
			let_settle(p, "e0/f");
		for (unsigned j = 0; j < 3; j++)
			assert_int_equal(rights(p, &f), mode == 0644 ? ACCESS3_READ : 0);
	}
	/* a user that may not search a directory finds nothing there, though it did before, and others do */
	let_settle(p, "e0");
	assert_int_equal(nfs_peer_lookup(p, &root, "f", &f), NFS3_OK);
	n = visits(p);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(nfs_peer_lookup(p, &root, "f", &f), NFS3_OK);
	assert_int_equal(visits(p), n);
	assert_int_equal(chmod(tmp_dir_path(&p->dir, "e0"), 0700), 0);
	assert_int_equal(nfs_peer_lookup(p, &root, "f", &f), NFS3ERR_ACCES);
	let_settle(p, "e0");
	p->cred.uid = p->cred.gid = 0;
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(nfs_peer_lookup(p, &root, "f", &f), NFS3_OK);
	p->cred.uid = p->cred.gid = 4711;
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(nfs_peer_lookup(p, &root, "f", &f), NFS3ERR_ACCES);
}

static void names_change(void **state)
{
	struct nfs_peer *p = *state;
	struct nfs_fh d, f, g;
	fattr3 attr;

	tmp_dir_mkdir(&p->dir, "e0/d");
	tmp_dir_mkdir(&p->dir, "out");
	tmp_dir_write(&p->dir, "e0/d/f", "x");
	let_settle(p, "e0/d");
	assert_int_equal(nfs_peer_lookup(p, &p->root, "d", &d), NFS3_OK);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(nfs_peer_lookup(p, &d, "f", &f), NFS3_OK);
		assert_int_equal(getattr(p, &f, &attr), NFS3_OK);
		assert_int_equal(getattr(p, &d, &attr), NFS3_OK);
	}
	/* another file with the name, and none */
	tmp_dir_write(&p->dir, "e0/d/g", "other");
	assert_int_equal(rename(tmp_dir_path(&p->dir, "e0/d/g"), tmp_dir_path(&p->dir, "e0/d/f")), 0);
	assert_int_equal(getattr(p, &f, NULL), NFS3ERR_STALE);
	let_settle(p, "e0/d");
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(nfs_peer_lookup(p, &d, "f", &g), NFS3_OK);
		assert_int_equal(getattr(p, &g, &attr), NFS3_OK);
		assert_int_equal(attr.size, 5);
	}
	assert_int_equal(unlink(tmp_dir_path(&p->dir, "e0/d/f")), 0);
	assert_int_equal(nfs_peer_lookup(p, &d, "f", &f), NFS3ERR_NOENT);
	assert_int_equal(getattr(p, &g, NULL), NFS3ERR_STALE);
	/* a directory outside is no business of ours, what is in it neither, until it is back */
	tmp_dir_write(&p->dir, "e0/d/f", "x");
	let_settle(p, "e0/d");
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(nfs_peer_lookup(p, &d, "f", &f), NFS3_OK);
	assert_int_equal(rename(tmp_dir_path(&p->dir, "e0/d"), tmp_dir_path(&p->dir, "out/d")), 0);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(getattr(p, &d, NULL), NFS3ERR_STALE);
		assert_int_equal(nfs_peer_lookup(p, &d, "f", &f), NFS3ERR_STALE);
		assert_int_equal(nfs_peer_lookup(p, &d, "none", &f), NFS3ERR_STALE);
	}
	assert_int_equal(rename(tmp_dir_path(&p->dir, "out/d"), tmp_dir_path(&p->dir, "e0/d")), 0);
	assert_int_equal(nfs_peer_lookup(p, &d, "f", &f), NFS3_OK);
	/* and one that is removed */
	assert_int_equal(unlink(tmp_dir_path(&p->dir, "e0/d/f")), 0);
	assert_int_equal(getattr(p, &d, NULL), NFS3_OK);
	assert_int_equal(rmdir(tmp_dir_path(&p->dir, "e0/d")), 0);
	assert_int_equal(getattr(p, &d, NULL), NFS3ERR_STALE);
	assert_int_equal(rmdir(tmp_dir_path(&p->dir, "out")), 0);
}

/* what is kept of a removed file is let go of: its space is free */
static void removed(void **state)
{
	struct nfs_peer *p = *state;
	struct nfs_fh f;

	tmp_dir_write(&p->dir, "e0/f", "x");
	assert_int_equal(nfs_peer_lookup(p, &p->root, "f", &f), NFS3_OK);
	assert_int_equal(getattr(p, &f, NULL), NFS3_OK);
	assert_int_equal(unlink(tmp_dir_path(&p->dir, "e0/f")), 0);
	assert_int_equal(getattr(p, &f, NULL), NFS3ERR_STALE);
	(void)alarm(30);
	while (tmp_dir_open_below(tmp_dir_path(&p->dir, "e0/f (deleted)"))) /* a worker closes it */
		(void)sched_yield();
	(void)alarm(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(visits_no_worker, setup, teardown),
		cmocka_unit_test_setup_teardown(names_come_and_go, setup, teardown),
		cmocka_unit_test_setup_teardown(open_file, setup, teardown),
		cmocka_unit_test_setup_teardown(modes_change, setup, teardown),
		cmocka_unit_test_setup_teardown(names_change, setup, teardown),
		cmocka_unit_test_setup_teardown(removed, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
