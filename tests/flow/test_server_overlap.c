/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_server_overlap.c - requests in extents of which one fails: the reply is true
 *
 * A modelled disk of four members fails at its Nth request, or the file gets shorter while it is read.
 * Before each request buffers of the server are filled with what must not be seen.
 */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "conf.h"
#include "nfs_peer.h"
#include "server_int.h"
#include "inside.h"

LOG_DEFINE("test_server_overlap");

#define LEN (1u << 20)
#define GRAIN (16u << 10)
#define STALE 0xaa
#define SHORT 100000u

#define DISK(fail) "rw,no_root_squash,streams=4,chunk=64K,grain=16K,store=sim:members=4:chunk=64K:rate=20M" fail

static struct nfs_peer peer;
static uint8_t data[LEN], mem[LEN], stale[LEN];

static void start(const char *const *options)
{
	nfs_peer_create(&peer, RPCRDMA_LOCAL, options);
}

static void make(unsigned exp, const char *name, const uint8_t *what, struct nfs_fh *ret)
{
	char path[32], export[8];
	struct nfs_fh root;
	FILE *f;

	(void)snprintf(path, sizeof(path), "e%u/%s", exp, name);
	f = fopen(tmp_dir_path(&peer.dir, path), "w");
	assert_non_null(f);
	assert_int_equal(fwrite(what, 1, LEN, f), LEN);
	assert_int_equal(fclose(f), 0);
	(void)snprintf(export, sizeof(export), "/e%u", exp);
	assert_int_equal(nfs_peer_mount(&peer, export, &root), MNT3_OK);
	assert_int_equal(nfs_peer_lookup(&peer, &root, name, ret), NFS3_OK);
}

/* what the server's buffers hold next is another file's */
static void spoil_buffers(void)
{
	struct nfs_fh fh;
	uint32_t n;
	bool eof;

	make(0, "stale", stale, &fh);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(nfs_peer_read(&peer, &fh, 0, mem, LEN, &n, &eof), NFS3_OK);
	memset(mem, 0, LEN);
}

static void fill(void)
{
	for (uint32_t i = 0; i < LEN; i++)
		data[i] = (uint8_t)((i * 11 + i / 4099) % STALE);
	memset(stale, STALE, LEN);
}

/* Pieces begin on all members at once, then each member's next: the first, fourth and fifth request
 * to the disk are those of byte 0, of the last member's first and of the first member's second piece. */
static void reads(const char *overlap)
{
	static const uint32_t good[] = { 0, 192u << 10, GRAIN };
	char text[3][160];
	const char *options[] = { "rw,no_root_squash", text[0], text[1], text[2], NULL };
	struct nfs_fh fh;
	uint32_t n;
	bool eof;

	(void)snprintf(text[0], sizeof(text[0]), "%s,overlap=%s", DISK(":fail=1"), overlap);
	(void)snprintf(text[1], sizeof(text[1]), "%s,overlap=%s", DISK(":fail=4"), overlap);
	(void)snprintf(text[2], sizeof(text[2]), "%s,overlap=%s", DISK(":fail=5"), overlap);
	start(options);
	for (unsigned i = 0; i < ARRAY_SIZE(good); i++) {
		nfsstat3 status;

		make(i + 1, "f", data, &fh);
		spoil_buffers();
		status = nfs_peer_read(&peer, &fh, 0, mem, LEN, &n, &eof);
		if (good[i]) {
			assert_int_equal(status, NFS3_OK);
			assert_int_equal(n, good[i]);
			assert_false(eof);
			assert_memory_equal(mem, data, n);
		} else {
			assert_int_equal(status, NFS3ERR_IO);
		}
		/* it was that one request, and nothing else suffers from it */
		assert_int_equal(nfs_peer_read(&peer, &fh, 0, mem, LEN, &n, &eof), NFS3_OK);
		assert_int_equal(n, LEN);
		assert_true(eof);
		assert_memory_equal(mem, data, LEN);
	}
	nfs_peer_destroy(&peer);
}

static void read_in_streams(void **state)
{
	(void)state;
	reads("streams");
}

static void read_in_order(void **state)
{
	(void)state;
	reads("ordered");
}

/* Which extent fails depends on which comes first; the reply reports a prefix, and the rest of the file is
 * as it was or as it was to be. */
static void writes(void **state)
{
	const char *options[] = {
		"rw,no_root_squash",
		DISK(":fail=1") ",overlap=streams",
		DISK(":fail=7") ",overlap=streams",
		DISK(":fail=64") ",overlap=streams",
		NULL,
	};
	static uint8_t old[LEN];
	WRITE3resok ok;
	struct nfs_fh fh;

	(void)state;
	start(options);
	memset(old, 0xee, LEN);
	for (unsigned i = 1; i < 4; i++) {
		char path[16];
		nfsstat3 status;
		FILE *f;

		make(i, "f", old, &fh);
		spoil_buffers();
		status = nfs_peer_write(&peer, &fh, 0, data, LEN, UNSTABLE, &ok);
		if (status != NFS3_OK) {
			assert_int_equal(status, NFS3ERR_IO);
			ok.count = 0;
		}
		assert_true(ok.count < LEN);
		(void)snprintf(path, sizeof(path), "e%u/f", i);
		f = fopen(tmp_dir_path(&peer.dir, path), "r");
		assert_non_null(f);
		assert_int_equal(fread(mem, 1, LEN, f), LEN);
		assert_int_equal(fclose(f), 0);
		assert_memory_equal(mem, data, ok.count);
		for (uint32_t at = ok.count; at < LEN; at++)
			assert_true(mem[at] == data[at] || mem[at] == 0xee);
		assert_int_equal(nfs_peer_write(&peer, &fh, 0, data, LEN, UNSTABLE, &ok), NFS3_OK);
		assert_int_equal(ok.count, LEN);
	}
	nfs_peer_destroy(&peer);
}

/* Which call it is is known by the first piece, of ten bytes here: when the others have not come yet their
 * memory holds something else each time. */
static void the_same_write_again(void **state)
{
	const char *options[] = { "rw,no_root_squash", "rw,no_root_squash,overlap=ordered,grain=4K", NULL };
	struct drc_stats s = { 0 };
	struct nfs_fh fh;
	WRITE3resok ok;

	(void)state;
	start(options);
	make(1, "f", data, &fh);
	for (unsigned i = 0; i < 4; i++) {
		spoil_buffers();
		clnt_next_xid(peer.clnt, 0x30000);
		assert_int_equal(nfs_peer_write(&peer, &fh, GRAIN - 10, data, LEN / 2, UNSTABLE, &ok),
				 NFS3_OK);
		assert_int_equal(ok.count, LEN / 2);
	}
	drc_stats(peer.srv->drc_writes, &s);
	assert_int_equal(s.hits, 3);
	assert_int_equal(s.entries, 1);
	nfs_peer_destroy(&peer);
}

static void little_memory(struct conf *conf)
{
	conf->pinned_max = RPCRDMA_POOL_BYTES_MIN;
}

/* The parts of a WRITE that are pulled before it is refused hold all the memory that its next part waits for. */
static void refused_with_little_memory(void **state)
{
	const char *options[] = { "rw,no_root_squash,overlap=streams,grain=4K", "rw,no_root_squash", NULL };
	struct nfs_fh fh;
	WRITE3resok ok;
	char path[32];

	(void)state;
	for (unsigned exp = 0; exp < 2; exp++) {
		nfs_peer_create_tuned(&peer, RPCRDMA_LOCAL, options, little_memory);
		make(exp, "f", data, &fh);
		(void)snprintf(path, sizeof(path), "e%u/f", exp);
		assert_int_equal(chmod(tmp_dir_path(&peer.dir, path), 0600), 0);
		peer.cred.uid = 1000;
		for (unsigned i = 0; i < 4; i++)
			assert_int_equal(nfs_peer_write(&peer, &fh, 0, data, LEN, UNSTABLE, &ok), NFS3ERR_ACCES);
		peer.cred.uid = 0;
		assert_int_equal(nfs_peer_write(&peer, &fh, 0, data, LEN, UNSTABLE, &ok), NFS3_OK);
		nfs_peer_destroy(&peer);
	}
}

static uint64_t taken(void)
{
	return server_counters(peer.srv, "reqs");
}

static uint64_t taken_before;

static void *shorten(void *path)
{
	while (taken() == taken_before)
		sched_yield();
	assert_int_equal(truncate(path, SHORT), 0);
	return NULL;
}

/* Some extents are read before the truncation, some after: the reply has only data that was in the file. */
static void truncated_meanwhile(void **state)
{
	const char *options[] = { "rw,no_root_squash", DISK("") ",overlap=streams",
				  DISK("") ",overlap=ordered", NULL };
	char path[256];
	struct nfs_fh fh;
	pthread_t thread;
	uint32_t n;
	bool eof;

	(void)state;
	start(options);
	for (unsigned i = 0; i < 6; i++) {
		make(1 + i % 2, "f", data, &fh);
		spoil_buffers();
		(void)snprintf(path, sizeof(path), "%s",
			       tmp_dir_path(&peer.dir, i % 2 ? "e2/f" : "e1/f"));
		taken_before = taken();
		assert_int_equal(pthread_create(&thread, NULL, shorten, path), 0);
		assert_int_equal(nfs_peer_read(&peer, &fh, 0, mem, LEN, &n, &eof), NFS3_OK);
		assert_int_equal(pthread_join(thread, NULL), 0);
		assert_true(n >= SHORT);
		assert_true(eof);
		assert_memory_equal(mem, data, n);
	}
	nfs_peer_destroy(&peer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(read_in_streams),
		cmocka_unit_test(read_in_order),
		cmocka_unit_test(writes),
		cmocka_unit_test(the_same_write_again),
		cmocka_unit_test(refused_with_little_memory),
		cmocka_unit_test(truncated_meanwhile),
	};

	fill();
	return cmocka_run_group_tests_name("server_overlap", tests, NULL, NULL);
}
