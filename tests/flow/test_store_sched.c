/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_store_sched.c - several readers at one disk: in the right order it has less way to go
 *
 * Four readers, each with a file of its own and a connection of its own, on two reactors, ask for
 * one piece after the other in turn, while a modelled disk is busy with something long. Counted is how
 * often its head has to move; time is not looked at, but that the disk must have been busy until
 * all had asked: else they ask again, with something longer before them.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/log.h"
#include "leat_flow.h"
#include "nfs_peer.h"
#include "inside.h"

LOG_DEFINE("test_store_sched");

#define READERS 4u
#define PIECES 7u
#define PIECE 4096u
#define FILE_BYTES (16 * PIECE)
#define BUSY_MIN (256u << 10) /* at 1M a quarter of a second */
#define BUSY_MAX (1u << 20)
#define DISK "store=sim:rate=1M:latency=2ms"

static const char *const options[] = {
	"no_root_squash," DISK,
	"no_root_squash," DISK ",sched=sorted,depth=1",
	"no_root_squash," DISK ",sched=deadline,depth=1,deadline=60s",
	NULL,
};

struct reader {
	struct leat *m;
	struct leat_file *f;
	uint8_t want[FILE_BYTES], got[FILE_BYTES];
};

static struct nfs_peer peer;
static struct reader readers[READERS];
static struct leat *long_m;
static struct leat_file *long_f;
static uint8_t *long_mem;
static unsigned ndone;
static bool too_busy;


static void make_file(unsigned exp, const char *name, const void *data, size_t len)
{
	char path[64];
	int fd;

	(void)snprintf(path, sizeof(path), "e%u/%s", exp, name);
	fd = open(tmp_dir_path(&peer.dir, path), O_WRONLY | O_CREAT | O_TRUNC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, len), len);
	close(fd);
}

/* mounted, open, and known to its reactor, so that a read is with the store as soon as it comes */
static struct leat_file *open_somewhere(unsigned exp, const char *name, struct leat **ret_m)
{
	struct leat_file *f;
	char url[256], byte;

	(void)snprintf(url, sizeof(url), "local://%s/sock/e%u?readahead=0", peer.dir.path, exp);
	if (leat_mount(url, NULL, ret_m))
		fail_msg("%s", leat_error(NULL));
	if (leat_open(*ret_m, name, O_RDONLY, 0, &f))
		fail_msg("%s", leat_error(*ret_m));
	assert_int_equal(leat_pread(f, &byte, 1, FILE_BYTES - 1), 1);
	return f;
}

/* Connections go to the reactors in turn: one more or one less, and the next one goes to the other. */
static struct leat_file *open_file(unsigned exp, const char *name, unsigned reactor,
				   struct leat **ret_m)
{
	for (unsigned tries = 0; tries < 8; tries++) {
		uint64_t before = server_counter(peer.srv, reactor, "sim_requests");
		struct leat_file *f = open_somewhere(exp, name, ret_m);

		if (server_counter(peer.srv, reactor, "sim_requests") > before)
			return f;
		assert_int_equal(leat_close(f), 0);
		leat_umount(*ret_m);
		if (tries % 2)
			continue;
		nfs_peer_disconnect(&peer);
		nfs_peer_connect(&peer, RPCRDMA_LOCAL, 0);
		assert_int_equal(nfs_peer_mount(&peer, "/e0", &peer.root), MNT3_OK);
	}
	fail_msg("no connection comes to reactor %u", reactor);
	return NULL;
}

static void open_all(unsigned exp)
{
	long_mem = calloc(1, BUSY_MAX);
	assert_non_null(long_mem);
	make_file(exp, "long", long_mem, BUSY_MAX);
	for (unsigned i = 0; i < READERS; i++) {
		char name[4] = { 'f', (char)('0' + i) };

		leat_flow_fill(readers[i].want, FILE_BYTES, i + 1);
		memset(readers[i].got, 0, FILE_BYTES);
		make_file(exp, name, readers[i].want, FILE_BYTES);
		readers[i].f = open_file(exp, name, i % 2, &readers[i].m);
	}
	long_f = open_file(exp, "long", 0, &long_m);
}

static void close_all(void)
{
	for (unsigned i = 0; i < READERS; i++) {
		assert_int_equal(leat_close(readers[i].f), 0);
		leat_umount(readers[i].m);
	}
	assert_int_equal(leat_close(long_f), 0);
	leat_umount(long_m);
	free(long_mem);
}

static void poll_all(void)
{
	for (unsigned i = 0; i < READERS; i++)
		(void)leat_poll(leat_session(readers[i].m), 0);
	(void)leat_poll(leat_session(long_m), 0);
}

static void on_read(void *expected, int64_t result)
{
	assert_int_equal(result, (uintptr_t)expected);
	ndone++;
}

/* and wait until the server has it */
static void start_read(struct leat_file *f, void *buf, size_t len, uint64_t off)
{
	struct leat_cb cb = { .fn = on_read, .user_data = (void *)(uintptr_t)len };
	uint64_t reqs = server_counters(peer.srv, "reqs");

	assert_int_equal(leat_aio_pread(f, buf, len, off, cb), 0);
	while (server_counters(peer.srv, "reqs") == reqs)
		poll_all();
}

/* Return: was the disk busy until all had asked? */
static bool try_round(size_t long_bytes, unsigned *ret_seeks)
{
	uint64_t seeks = server_counters(peer.srv, "sim_seeks");
	bool busy;

	ndone = 0;
	start_read(long_f, long_mem, long_bytes, 0);
	for (unsigned p = 0; p < PIECES; p++) {
		for (unsigned i = 0; i < READERS; i++)
			start_read(readers[i].f, readers[i].got + p * PIECE, PIECE, p * PIECE);
	}
	busy = !ndone;
	while (ndone < 1 + READERS * PIECES)
		poll_all();
	*ret_seeks = (unsigned)(server_counters(peer.srv, "sim_seeks") - seeks);
	return busy;
}

static unsigned seeks_of_a_round(unsigned exp)
{
	size_t bytes = BUSY_MIN;
	unsigned seeks;

	open_all(exp);
	while (!try_round(bytes, &seeks)) {
		if (bytes == BUSY_MAX) {
			close_all();
			too_busy = true;
			skip();
		}
		bytes *= 2;
	}
	for (unsigned i = 0; i < READERS; i++)
		assert_memory_equal(readers[i].got, readers[i].want, PIECES * PIECE);
	close_all();
	return seeks;
}

static void several_readers(void **state)
{
	unsigned none, sorted, deadline;

	(void)state;
	none = seeks_of_a_round(0);
	assert_int_equal(server_counters(peer.srv, "sched_waits"), 0);
	sorted = seeks_of_a_round(1);
	/* one line: those of both reactors waited in it */
	assert_true(server_counter(peer.srv, 0, "sched_waits") > 0);
	assert_true(server_counter(peer.srv, 1, "sched_waits") > 0);
	deadline = seeks_of_a_round(2);
	print_message("seeks of %u pieces for %u readers: none %u, sorted %u, deadline %u\n",
		      READERS * PIECES, READERS, none, sorted, deadline);
	assert_true(none > READERS * PIECES * 3 / 4);
	assert_true(sorted * 2 < none);
	assert_true(deadline * 2 < none);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(several_readers),
	};
	int failed;

	nfs_peer_create(&peer, RPCRDMA_LOCAL, options);
	assert_int_equal(server_reactors(peer.srv), 2);
	failed = cmocka_run_group_tests_name("store_sched", tests, NULL, NULL);
	nfs_peer_destroy(&peer);
	if (too_busy)
		printf("SKIP: this machine is too busy for 28 calls in a second\n");
	return too_busy ? 77 : failed;
}
