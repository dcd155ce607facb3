/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_store_forgets.c - a disk that forgets, under a server: what was promised is there after a cut
 *
 * Nothing is handed to a worker on a tmpfs, so that what a modelled disk was given first is over first.
 */
#include <fcntl.h>
#include <linux/magic.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "nfs_peer.h"
#include "store_sim.h"

LOG_DEFINE("test_store_forgets");

#define MEMORY "/dev/shm"
#define LEN 5000u
#define FDS 128u /* of the process: then a reactor keeps no more than 64 files open */
#define OTHERS 70u

static const char *const options[] = {
	"no_root_squash,store=null",
	"no_root_squash,store=sim:members=2:chunk=4K:rate=1G:volatile",
	NULL,
};

static struct nfs_peer peer;
static struct nfs_fh root;
static char data[LEN], zeroes[LEN];

static struct nfs_fh make(const char *name)
{
	struct nfs_fh fh;

	assert_int_equal(nfs_peer_create_file(&peer, &root, name, &fh), NFS3_OK);
	return fh;
}

static void put(const struct nfs_fh *fh, stable_how how)
{
	WRITE3resok ok;

	assert_int_equal(nfs_peer_write(&peer, fh, 0, data, LEN, how, &ok), NFS3_OK);
	assert_int_equal(ok.count, LEN);
}

static uint32_t get(const struct nfs_fh *fh, void *buf)
{
	uint32_t n;
	bool eof;

	assert_int_equal(nfs_peer_read(&peer, fh, 0, buf, LEN, &n, &eof), NFS3_OK);
	return n;
}

/* Return: how much the disk has forgotten */
static size_t cut(void)
{
	size_t bytes;

	assert_int_equal(store_sim_cut(tmp_dir_path(&peer.dir, "e1"), &bytes), 0);
	return bytes;
}

static void unstable_is_forgotten(void **state)
{
	struct nfs_fh fh = make("unstable");
	char back[LEN];

	(void)state;
	put(&fh, UNSTABLE);
	assert_int_equal(get(&fh, back), LEN);
	assert_memory_equal(back, data, LEN);
	assert_int_equal(cut(), LEN);
	assert_int_equal(get(&fh, back), 0);
}

static void stable_is_kept(void **state)
{
	struct nfs_fh fh = make("stable"), data_fh = make("data");
	char back[LEN];

	(void)state;
	put(&fh, FILE_SYNC);
	put(&data_fh, DATA_SYNC);
	assert_int_equal(cut(), 0);
	assert_int_equal(get(&fh, back), LEN);
	assert_memory_equal(back, data, LEN);
	assert_int_equal(get(&data_fh, back), LEN);
	assert_memory_equal(back, data, LEN);
}

static void committed_is_kept(void **state)
{
	struct nfs_fh fh = make("committed"), other = make("other");
	COMMIT3args args = { .file = nfs_peer_fh(&fh) };
	COMMIT3res res = { 0 };
	char back[LEN];

	(void)state;
	put(&fh, UNSTABLE);
	put(&other, UNSTABLE);
	NFS_PEER_CALL(&peer, COMMIT, &args, &res, NULL, 0);
	assert_int_equal(res.status, NFS3_OK);
	xdr_free((xdrproc_t)xdr_COMMIT3res, (char *)&res);
	assert_int_equal(cut(), LEN);
	assert_int_equal(get(&fh, back), LEN);
	assert_memory_equal(back, data, LEN);
	assert_int_equal(get(&other, back), 0);
}

/* The server syncs on its own what it closes to make room, by the store of that export: not by the
 * first one's, which is none and would sync nothing of this disk. */
static void closed_is_kept(void **state)
{
	struct nfs_fh fh = make("closed");
	char back[LEN], name[16];

	(void)state;
	put(&fh, UNSTABLE);
	for (unsigned i = 0; i < OTHERS; i++) {
		struct nfs_fh other;

		(void)snprintf(name, sizeof(name), "room%u", i);
		other = make(name);
		put(&other, FILE_SYNC); /* opens it; its turn at the disk comes behind the sync */
	}
	assert_int_equal(cut(), 0);
	assert_int_equal(get(&fh, back), LEN);
	assert_memory_equal(back, data, LEN);
}

/* The other store here: it keeps no data, and a READ returns zeros, not the data of other requests. */
static void null_keeps_nothing(void **state)
{
	char back[LEN], path[32] = "e0/null";
	struct nfs_fh fh;
	int fd;

	(void)state;
	assert_int_equal(nfs_peer_create_file(&peer, &peer.root, "null", &fh), NFS3_OK);
	put(&fh, FILE_SYNC);
	assert_int_equal(get(&fh, back), 0);
	fd = open(tmp_dir_path(&peer.dir, path), O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, LEN), LEN);
	close(fd);
	for (unsigned i = 0; i < 20; i++) { /* buffers are used again and again */
		put(&fh, UNSTABLE);
		memset(back, 'x', LEN);
		assert_int_equal(get(&fh, back), LEN);
		assert_memory_equal(back, zeroes, LEN);
	}
}

static void few_files(struct conf *conf)
{
	const struct rlimit few = { FDS, FDS };

	(void)conf;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
}

static int setup(void **state)
{
	(void)state;
	for (unsigned i = 0; i < LEN; i++)
		data[i] = (char)(1 + i % 250);
	nfs_peer_create_tuned(&peer, RPCRDMA_LOCAL, options, few_files);
	assert_int_equal(nfs_peer_mount(&peer, "/e1", &root), MNT3_OK);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	nfs_peer_destroy(&peer);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unstable_is_forgotten), cmocka_unit_test(stable_is_kept),
		cmocka_unit_test(committed_is_kept),	 cmocka_unit_test(closed_is_kept),
		cmocka_unit_test(null_keeps_nothing),
	};
	struct statfs st;

	if (statfs(MEMORY, &st) || st.f_type != TMPFS_MAGIC || access(MEMORY, W_OK)) {
		printf("SKIP: " MEMORY " is no tmpfs to write to\n");
		return 77;
	}
	setenv("TMPDIR", MEMORY, 1);
	return cmocka_run_group_tests_name("store_forgets", tests, setup, teardown);
}
