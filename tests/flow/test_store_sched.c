/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_store_sched.c - several readers at one disk: in the right order it has less way to go
 *
 * Four readers, each with a file of its own and a connection of its own, on two reactors, ask for
 * one piece after the other in turn, while a modelled disk is busy with something long. Counted is how
 * often its head has to move; time is not looked at.
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
#include "reactor.h"
#include "server.h"
#include "server_int.h"

LOG_DEFINE("test_store_sched");

#define READERS 4u
#define PIECES 7u
#define PIECE 4096u
#define FILE_BYTES (16 * PIECE)
#define LONG (1u << 20) /* at 4M a quarter of a second */
#define DISK "store=sim:rate=4M:latency=2ms"

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

#define COUNT(field) count(offsetof(struct reactor_counters, field))

static uint64_t count(size_t counter)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < peer.srv->nreactors; i++) {
		const char *c = (const char *)&peer.srv->reactors[i]->counters;

		sum += atomic_load((const _Atomic uint64_t *)(const void *)(c + counter));
	}
	return sum;
}

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
static struct leat_file *open_file(unsigned exp, const char *name, struct leat **ret_m)
{
	struct leat_file *f;
	char url[256], byte;

	(void)snprintf(url, sizeof(url), "local://%s/sock/e%u?readahead=0", peer.dir.path, exp);
	if (leat_mount(url, NULL, ret_m))
		fail_msg("%s", leat_mount_error());
	if (leat_open(*ret_m, name, O_RDONLY, 0, &f))
		fail_msg("%s", leat_error(*ret_m));
	assert_int_equal(leat_pread(f, &byte, 1, FILE_BYTES - 1), 1);
	return f;
}

static void open_all(unsigned exp)
{
	long_mem = calloc(1, LONG);
	assert_non_null(long_mem);
	make_file(exp, "long", long_mem, LONG);
	for (unsigned i = 0; i < READERS; i++) {
		char name[4] = { 'f', (char)('0' + i) };

		leat_flow_fill(readers[i].want, FILE_BYTES, i + 1);
		memset(readers[i].got, 0, FILE_BYTES);
		make_file(exp, name, readers[i].want, FILE_BYTES);
		readers[i].f = open_file(exp, name, &readers[i].m);
	}
	long_f = open_file(exp, "long", &long_m);
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
		(void)leat_poll(readers[i].m, 0);
	(void)leat_poll(long_m, 0);
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
	uint64_t reqs = COUNT(reqs);

	assert_int_equal(leat_aio_pread(f, buf, len, off, cb), 0);
	while (COUNT(reqs) == reqs)
		poll_all();
}

static unsigned seeks_of_a_round(unsigned exp)
{
	uint64_t seeks;

	open_all(exp);
	ndone = 0;
	seeks = COUNT(sim_seeks);
	start_read(long_f, long_mem, LONG, 0);
	for (unsigned p = 0; p < PIECES; p++) {
		for (unsigned i = 0; i < READERS; i++)
			start_read(readers[i].f, readers[i].got + p * PIECE, PIECE, p * PIECE);
	}
	while (ndone < 1 + READERS * PIECES)
		poll_all();
	seeks = COUNT(sim_seeks) - seeks;
	for (unsigned i = 0; i < READERS; i++)
		assert_memory_equal(readers[i].got, readers[i].want, PIECES * PIECE);
	close_all();
	return (unsigned)seeks;
}

static void several_readers(void **state)
{
	unsigned none, sorted, deadline;

	(void)state;
	none = seeks_of_a_round(0);
	assert_int_equal(COUNT(sched_waits), 0);
	sorted = seeks_of_a_round(1);
	/* one line: those of both reactors waited in it */
	for (unsigned i = 0; i < peer.srv->nreactors; i++)
		assert_true(atomic_load(&peer.srv->reactors[i]->counters.sched_waits) > 0);
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
	failed = cmocka_run_group_tests_name("store_sched", tests, NULL, NULL);
	nfs_peer_destroy(&peer);
	return failed;
}
