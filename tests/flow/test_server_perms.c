/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_server_perms.c - what callers were found to be allowed is remembered, and never for too long
 *
 * A READ of an open file by a user that had access before visits no worker; whatever changes the file's
 * mode ends that with the next call. The program is linked with --wrap=statx and --wrap=clock_gettime,
 * to be a file system and a kernel whose clock has coarse ticks: two changes within one of them leave the same
 * time of change behind.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "nfs_peer.h"
#include "inside.h"

#define HIM 4711u
#define BYTES 4096u

static const char *const options[] = { "rw,no_root_squash", NULL };

/* ---- coarse time ---- */

static atomic_bool coarse; /* whole seconds */

int __real_statx(int dir, const char *path, int flags, unsigned mask, struct statx *ret);
int __wrap_statx(int dir, const char *path, int flags, unsigned mask, struct statx *ret);
int __real_clock_gettime(clockid_t clock, struct timespec *ret);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret);

int __wrap_statx(int dir, const char *path, int flags, unsigned mask, struct statx *ret)
{
	int rc = __real_statx(dir, path, flags, mask, ret);

	if (!rc && atomic_load(&coarse))
		ret->stx_ctime.tv_nsec = 0;
	return rc;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret)
{
	int rc = __real_clock_gettime(clock, ret);

	if (!rc && clock == CLOCK_REALTIME_COARSE && atomic_load(&coarse))
		ret->tv_nsec = 0;
	return rc;
}

/* ---- a server with one file ---- */

struct ctx {
	struct nfs_peer peer;
	struct nfs_fh f;
};

static int enter(void **state, enum rpcrdma_transport transport)
{
	struct ctx *c = calloc(1, sizeof(*c));
	struct nfs_peer *p = &c->peer;
	static const char data[BYTES];

	atomic_store(&coarse, false);
	nfs_peer_create(p, transport, options);
	assert_int_equal(nfs_peer_create_file(p, &p->root, "f", &c->f), NFS3_OK);
	assert_int_equal(nfs_peer_write(p, &c->f, 0, data, BYTES, FILE_SYNC, NULL), NFS3_OK);
	*state = c;
	return 0;
}

static int setup_tcp(void **state)
{
	return enter(state, RPCRDMA_TCP);
}

static int setup_local(void **state)
{
	return enter(state, RPCRDMA_LOCAL);
}

static int teardown(void **state)
{
	struct ctx *c = *state;

	nfs_peer_destroy(&c->peer);
	free(c);
	return 0;
}

static nfsstat3 read_it(struct ctx *c)
{
	char data[BYTES];
	uint32_t got;
	bool eof;

	return nfs_peer_read(&c->peer, &c->f, 0, data, BYTES, &got, &eof);
}

static void set_mode(struct ctx *c, mode_t mode)
{
	assert_int_equal(chmod(tmp_dir_path(&c->peer.dir, "e0/f"), mode), 0);
}

/* what all reactors gave to workers: calls, and reads */
static uint64_t visits(const struct ctx *c)
{
	return server_counters(c->peer.srv, "run_waits") + server_counters(c->peer.srv, "store_worker");
}

/* Permission is not remembered before the clock has ticked: until a READ needs no worker */
static void read_until_known(struct ctx *c)
{
	uint64_t before;

	do {
		before = visits(c);
		assert_int_equal(read_it(c), NFS3_OK);
	} while (visits(c) != before);
}

/* On a slow machine the descriptor that the file was written by is closed meanwhile, once, and another one opened. */
static void read_without_workers(struct ctx *c)
{
	uint64_t before;
	int tries = 2;

	do {
		before = visits(c);
		for (int i = 0; i < 50; i++)
			assert_int_equal(read_it(c), NFS3_OK);
	} while (visits(c) != before && --tries);
	assert_int_equal(visits(c) - before, 0);
}

static void be(struct ctx *c, uint32_t id)
{
	c->peer.cred.uid = c->peer.cred.gid = id;
}

static void needs_root(void)
{
	if (geteuid()) {
		print_message("SKIP: several users need root\n");
		skip();
	}
}

/* ---- tests ---- */

static void owner_needs_no_worker(void **state)
{
	struct ctx *c = *state;

	if (!geteuid()) { /* root is let in for another reason */
		assert_int_equal(chown(tmp_dir_path(&c->peer.dir, "e0/f"), HIM, HIM), 0);
		be(c, HIM);
	}
	set_mode(c, 0);
	assert_int_equal(read_it(c), NFS3_OK); /* now it is open */
	read_without_workers(c);
}

static void others_need_none_for_long(void **state)
{
	struct ctx *c = *state;

	needs_root();
	be(c, HIM);
	read_until_known(c);
	read_without_workers(c);
	/* that is known for this user, not for others */
	set_mode(c, 0640);
	assert_int_equal(chown(tmp_dir_path(&c->peer.dir, "e0/f"), 0, HIM), 0);
	read_until_known(c);
	be(c, HIM + 1);
	assert_int_equal(read_it(c), NFS3ERR_ACCES);
	be(c, HIM);
	assert_int_equal(read_it(c), NFS3_OK);
}

static void a_new_mode_counts_at_once(void **state)
{
	struct ctx *c = *state;

	needs_root();
	be(c, HIM);
	for (int i = 0; i < 5; i++) {
		set_mode(c, 0644);
		read_until_known(c);
		set_mode(c, 0600);
		assert_int_equal(read_it(c), NFS3ERR_ACCES);
	}
}

/* twice within one tick: the file's time of change tells nothing of the second */
static void twice_within_a_tick(void **state)
{
	struct ctx *c = *state;

	needs_root();
	be(c, HIM);
	atomic_store(&coarse, true);
	for (int i = 0; i < 20; i++) {
		set_mode(c, 0644);
		assert_int_equal(read_it(c), NFS3_OK);
		assert_int_equal(read_it(c), NFS3_OK);
		set_mode(c, 0600);
		assert_int_equal(read_it(c), NFS3ERR_ACCES);
	}
}

#define BOTH(f)                                                                                    \
	{ #f " (tcp)", f, setup_tcp, teardown, NULL },                                             \
	{                                                                                          \
#f " (local)", f, setup_local, teardown, NULL                                      \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(owner_needs_no_worker),
		BOTH(others_need_none_for_long),
		BOTH(a_new_mode_counts_at_once),
		BOTH(twice_within_a_tick),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
