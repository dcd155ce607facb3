/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_server_writable.c - a committed file is soon no longer open for writing, and a COMMIT syncs what
 * it names
 *
 * Linux executes no file that is open for writing (ETXTBSY). The program is linked with
 * --wrap=clock_gettime, to have time pass, and with --wrap of the calls that sync.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
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

#include "base/clock.h"
#include "conf.h"
#include "nfs_peer.h"
#include "inside.h"

static const char *const options[] = { "rw,no_root_squash", NULL };

/* ---- time, and syncs ---- */

static _Atomic uint64_t ahead_s; /* of the clock */
static atomic_uint syncs, part_syncs;

int __real_clock_gettime(clockid_t clock, struct timespec *ret);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret);
int __real_msync(void *at, size_t len, int flags);
int __wrap_msync(void *at, size_t len, int flags);
int __real_fsync(int fd);
int __wrap_fsync(int fd);

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret)
{
	int rc = __real_clock_gettime(clock, ret);

	if (!rc && clock == CLOCK_MONOTONIC)
		ret->tv_sec += (time_t)atomic_load(&ahead_s);
	return rc;
}

int __wrap_msync(void *at, size_t len, int flags)
{
	atomic_fetch_add(&part_syncs, 1);
	return __real_msync(at, len, flags);
}

int __wrap_fsync(int fd)
{
	atomic_fetch_add(&syncs, 1);
	return __real_fsync(fd);
}

/* ---- a server with one file ---- */

struct ctx {
	struct nfs_peer peer;
	struct nfs_fh f;
};

static void two_reactors(struct conf *conf)
{
	conf->reactors = 2;
}

static int setup(void **state)
{
	struct ctx *c = calloc(1, sizeof(*c));

	nfs_peer_create_tuned(&c->peer, RPCRDMA_TCP, options, two_reactors);
	assert_int_equal(nfs_peer_create_file(&c->peer, &c->peer.root, "f", &c->f), NFS3_OK);
	*state = c;
	return 0;
}

static int teardown(void **state)
{
	struct ctx *c = *state;

	nfs_peer_destroy(&c->peer);
	free(c);
	return 0;
}

/* how often this process has a file open for writing */
static unsigned writers_of(struct ctx *c, const char *name)
{
	char path[512], here[64], at[512];
	DIR *d = opendir("/proc/self/fd");
	struct dirent *e;
	unsigned n = 0;

	assert_non_null(d);
	snprintf(path, sizeof(path), "%s/e0/%s", c->peer.dir.path, name);
	while ((e = readdir(d))) {
		int fd = atoi(e->d_name), flags;
		ssize_t len;

		snprintf(here, sizeof(here), "/proc/self/fd/%d", fd);
		len = readlink(here, at, sizeof(at) - 1);
		flags = fcntl(fd, F_GETFL);
		if (len <= 0 || flags < 0 || flags & O_PATH || (flags & O_ACCMODE) == O_RDONLY)
			continue;
		at[len] = '\0';
		n += !strcmp(at, path);
	}
	closedir(d);
	return n;
}

static unsigned writers(struct ctx *c)
{
	return writers_of(c, "f");
}

static void read_it(struct ctx *c)
{
	char byte;
	uint32_t got;
	bool eof;

	assert_int_equal(nfs_peer_read(&c->peer, &c->f, 0, &byte, 1, &got, &eof), NFS3_OK);
}

/* Two seconds pass. The reactor looks at its timers between calls, if not between any two. Return: writers that are
 * left */
static unsigned after_2s_of(struct ctx *c, const char *name, unsigned want)
{
	unsigned n = UINT_MAX;

	atomic_fetch_add(&ahead_s, 2);
	for (int i = 0; i < 1000 && n > want; i++) {
		for (int k = 0; k < 20; k++)
			(void)nfs_peer_access(&c->peer, &c->peer.root);
		n = writers_of(c, name);
	}
	return n;
}

static unsigned after_2s(struct ctx *c, unsigned want)
{
	return after_2s_of(c, "f", want);
}

/* The server keeps the file open for writing. It closes a file that was written later and is clean: so it has looked. */
static void stays_open(struct ctx *c)
{
	struct nfs_fh g;

	assert_int_equal(nfs_peer_create_file(&c->peer, &c->peer.root, "g", &g), NFS3_OK);
	assert_int_equal(nfs_peer_write(&c->peer, &g, 0, "g", 1, FILE_SYNC, NULL), NFS3_OK);
	assert_int_equal(writers_of(c, "g"), 1);
	assert_int_equal(after_2s_of(c, "g", 0), 0);
	assert_int_equal(writers(c), 1);
}

static void write_it(struct ctx *c, uint64_t off, stable_how stable)
{
	assert_int_equal(nfs_peer_write(&c->peer, &c->f, off, "#!/bin/sh\n", 10, stable, NULL), NFS3_OK);
}

static void commit(struct ctx *c, uint64_t off, uint32_t count)
{
	COMMIT3args a = { .file = nfs_peer_fh(&c->f), .offset = off, .count = count };
	COMMIT3res res = { 0 };

	atomic_store(&syncs, 0);
	atomic_store(&part_syncs, 0);
	NFS_PEER_CALL(&c->peer, COMMIT, &a, &res, NULL, 0);
	assert_int_equal(res.status, NFS3_OK);
}

/* ---- tests ---- */

static void made(void **state)
{
	struct ctx *c = *state;

	assert_int_equal(writers(c), 1);
	assert_int_equal(after_2s(c, 0), 0);
}

static void stable(void **state)
{
	struct ctx *c = *state;

	write_it(c, 0, FILE_SYNC);
	assert_int_equal(writers(c), 1);
	assert_int_equal(after_2s(c, 0), 0);
	/* and again */
	write_it(c, 0, DATA_SYNC);
	assert_int_equal(writers(c), 1);
	assert_int_equal(after_2s(c, 0), 0);
	read_it(c);
	assert_int_equal(writers(c), 0);
}

static void committed(void **state)
{
	struct ctx *c = *state;

	write_it(c, 0, UNSTABLE);
	stays_open(c); /* the kernel reports a loss to this descriptor */
	commit(c, 0, 0);
	/* readers need no such descriptor, and do not keep it */
	read_it(c);
	assert_int_equal(after_2s(c, 0), 0);
	read_it(c);
	assert_int_equal(writers(c), 0);
}

static bool in_memory(struct ctx *c)
{
	struct stat st;

	/* nothing is synced there */
	return !stat("/dev/shm", &st) && !strncmp(c->peer.dir.path, "/dev/shm", 8);
}

static void of_a_range(void **state)
{
	struct ctx *c = *state;

	if (in_memory(c)) {
		print_message("SKIP: nothing is synced in memory\n");
		skip();
	}
	write_it(c, 0, UNSTABLE);
	write_it(c, 100000, UNSTABLE);
	commit(c, 0, 4096);
	assert_int_equal(atomic_load(&syncs), 0);
	assert_int_equal(atomic_load(&part_syncs), 1);
	stays_open(c); /* not all of it */
	commit(c, 0, 100010);
	assert_int_equal(atomic_load(&part_syncs), 1);
	assert_int_equal(after_2s(c, 0), 0);
	/* all of it: by a count of 0, or as no file has such a range */
	commit(c, 0, 0);
	assert_int_equal(atomic_load(&syncs), 1);
	commit(c, 4096, 0);
	assert_int_equal(atomic_load(&syncs), 1);
	commit(c, UINT64_MAX - 10, 100);
	assert_int_equal(atomic_load(&syncs), 1);
	assert_int_equal(atomic_load(&part_syncs), 0);
	commit(c, (uint64_t)INT64_MAX - 10, 10);
	assert_int_equal(atomic_load(&syncs) + atomic_load(&part_syncs), 1);
}

/* A client with several connections writes over one and commits over another, which other threads serve. A new
 * connection goes to the next thread, and wakes it. */
static void over_two_connections(void **state)
{
	struct ctx *c = *state;

	assert_int_equal(server_reactors(c->peer.srv), 2);
	write_it(c, 0, UNSTABLE);
	nfs_peer_disconnect(&c->peer);
	nfs_peer_connect(&c->peer, RPCRDMA_TCP, 0);
	write_it(c, 10, UNSTABLE);
	assert_int_equal(writers(c), 2);
	commit(c, 0, 0);
	assert_true(after_2s(c, 1) <= 1); /* the other thread may sleep still */
	nfs_peer_disconnect(&c->peer);
	nfs_peer_connect(&c->peer, RPCRDMA_TCP, 0);
	assert_int_equal(after_2s(c, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(made, setup, teardown),
		cmocka_unit_test_setup_teardown(stable, setup, teardown),
		cmocka_unit_test_setup_teardown(committed, setup, teardown),
		cmocka_unit_test_setup_teardown(of_a_range, setup, teardown),
		cmocka_unit_test_setup_teardown(over_two_connections, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
