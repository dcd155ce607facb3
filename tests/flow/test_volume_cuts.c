/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_volume_cuts.c - files of a striped volume are cut, removed and replaced, also while a stripe server is away
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "leat.h"
#include "leat_flow.h"
#include "leat_volume.h"
#include "volume_pending.h"
#include "volume_rig.h"

LOG_DEFINE("test_volume_cuts");

#define BYTES (1u << 20)

static struct leat *m;
static uint8_t data[BYTES], mem[BYTES];

/* ---- what another client does between a lookup of the manager and what follows it ---- */

struct fh_set;
struct fh_obj;
struct creds;
int __real_vfs_lookup(struct fh_set *s, const struct fh_obj *dir, const char *name, const struct creds *cr, struct fh_obj *ret);
int __wrap_vfs_lookup(struct fh_set *s, const struct fh_obj *dir, const char *name, const struct creds *cr, struct fh_obj *ret);

static struct leat *meanwhile; /* its mount; NULL: it does nothing */
static const char *looked_up, *renames[2][2];

int __wrap_vfs_lookup(struct fh_set *s, const struct fh_obj *dir, const char *name, const struct creds *cr, struct fh_obj *ret)
{
	int err = __real_vfs_lookup(s, dir, name, cr, ret);
	struct leat *other = meanwhile;

	if (!other || strcmp(name, looked_up))
		return err;
	meanwhile = NULL;
	for (unsigned i = 0; i < ARRAY_SIZE(renames) && renames[i][0]; i++)
		assert_int_equal(leat_rename(other, renames[i][0], renames[i][1]), 0);
	return err;
}

/* ---- what another client does while the manager sends its first command ---- */

static struct {
	struct leat *other;
	pthread_t *thread; /* NULL: nothing */
	atomic_bool done;
	bool too_early;
	atomic_uint waiting; /* calls that wait for the thread of pending work, so far */
} again;

struct volume_pending;
void __real_volume_pending_run(struct volume_pending *p, const char object[16]);
void __wrap_volume_pending_run(struct volume_pending *p, const char object[16]);
int __real_leat_volume_object_fence(struct leat *to, const struct leat_volume_command *c, uint64_t epoch, const uint64_t *cut,
				    struct leat_volume_object *ret, uint64_t *newest);
int __wrap_leat_volume_object_fence(struct leat *to, const struct leat_volume_command *c, uint64_t epoch, const uint64_t *cut,
				    struct leat_volume_object *ret, uint64_t *newest);

void __wrap_volume_pending_run(struct volume_pending *p, const char object[16])
{
	atomic_fetch_add(&again.waiting, 1);
	__real_volume_pending_run(p, object);
}

static void *cut_again(void *arg)
{
	struct leat_file *f = volume_rig_open(again.other, "f", O_RDWR);

	(void)arg;
	assert_int_equal(leat_ftruncate(f, 100000), 0);
	atomic_store(&again.done, true);
	assert_int_equal(leat_close(f), 0);
	return NULL;
}

int __wrap_leat_volume_object_fence(struct leat *to, const struct leat_volume_command *c, uint64_t epoch, const uint64_t *end,
				    struct leat_volume_object *ret, uint64_t *newest)
{
	unsigned before = atomic_load(&again.waiting);
	pthread_t *thread = again.thread;

	if (thread) {
		again.thread = NULL;
		assert_int_equal(pthread_create(thread, NULL, cut_again, NULL), 0);
		while (atomic_load(&again.waiting) == before && !atomic_load(&again.done))
			(void)poll(NULL, 0, 1);
		again.too_early = atomic_load(&again.done);
	}
	return __real_leat_volume_object_fence(to, c, epoch, end, ret, newest);
}

static int setup(void **state)
{
	(void)state;
	volume_rig_start(false, "stripe=64K");
	m = volume_rig_mount(NULL);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	leat_umount(m);
	volume_rig_stop();
	return 0;
}

static void write_file(const char *name)
{
	struct leat_file *f = volume_rig_open(m, name, O_RDWR | O_CREAT);

	assert_int_equal(leat_pwrite(f, data, BYTES, 0), BYTES);
	assert_int_equal(leat_close(f), 0);
}

static void cut(const char *name, uint64_t bytes)
{
	struct leat_file *f = volume_rig_open(m, name, O_RDWR);

	if (leat_ftruncate(f, bytes))
		fail_msg("%s", leat_error(m));
	assert_int_equal(leat_close(f), 0);
}

/* By a mount that knows nothing of the file: the first @good bytes are those of data, the rest of BYTES are zeroes. */
static void check_file(const char *name, size_t good)
{
	struct leat *other = volume_rig_mount(NULL);
	struct leat_file *f = volume_rig_open(other, name, O_RDONLY);

	memset(mem, 0xee, BYTES);
	assert_int_equal(leat_pread(f, mem, BYTES, 0), BYTES);
	assert_memory_equal(mem, data, good);
	for (size_t i = good; i < BYTES; i++)
		if (mem[i])
			fail_msg("%s: byte %zu is %02x", name, i, mem[i]);
	assert_int_equal(leat_close(f), 0);
	leat_umount(other);
}

static uint64_t epoch_of(const char *name)
{
	struct leat_volume_layout *l;
	uint64_t epoch;

	assert_int_equal(leat_volume_layout(m, name, &l), 0);
	epoch = l->epoch;
	leat_volume_layout_free(l);
	return epoch;
}

/* ---- tests ---- */

static void shrinks_and_grows(void **state)
{
	static const size_t ends[] = { 0, 1, 65536, 100000, 4 * 65536, BYTES - 1 };

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(ends); i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "f%u", i);
		write_file(name);
		cut(name, ends[i]);
		assert_int_equal(volume_rig_entries("m/pending"), 0);
		assert_int_equal(epoch_of(name), 2);
		cut(name, BYTES); /* it grows */
		assert_int_equal(epoch_of(name), 2);
		check_file(name, ends[i]);
	}
	cut("f3", 50000);
	cut("f3", BYTES);
	assert_int_equal(epoch_of("f3"), 3);
	check_file("f3", 50000);
}

/* A client that has the file open goes on, with what the file is now. */
static void others_go_on(void **state)
{
	struct leat *other = volume_rig_mount("cache=none");
	struct leat_file *f, *mine;

	(void)state;
	write_file("f");
	f = volume_rig_open(other, "f", O_RDWR);
	assert_int_equal(leat_pread(f, mem, BYTES, 0), BYTES);
	mine = volume_rig_open(m, "f", O_WRONLY | O_TRUNC);
	assert_int_equal(leat_close(mine), 0);
	assert_int_equal(leat_pwrite(f, data, 1000, 300000), 1000);
	assert_int_equal(leat_fsync(f), 0);
	assert_int_equal(leat_close(f), 0);
	leat_umount(other);
	cut("f", BYTES);
	other = volume_rig_mount(NULL);
	f = volume_rig_open(other, "f", O_RDONLY);
	assert_int_equal(leat_pread(f, mem, BYTES, 0), BYTES);
	assert_memory_equal(mem + 300000, data, 1000);
	memset(mem + 300000, 0, 1000);
	for (size_t i = 0; i < BYTES; i++)
		assert_int_equal(mem[i], 0);
	assert_int_equal(leat_close(f), 0);
	leat_umount(other);
}

static void unlink_leaves_tombstones(void **state)
{
	unsigned n;

	(void)state;
	write_file("f");
	assert_int_equal(leat_unlink(m, "f"), 0);
	volume_rig_settle();
	for (unsigned i = 0; i < VOLUME_RIG_SERVERS; i++) {
		assert_int_equal(volume_rig_objects(i, &n), 0);
		assert_int_equal(n, 1);
	}
}

static void hard_links(void **state)
{
	unsigned n;

	(void)state;
	write_file("f");
	assert_int_equal(leat_link(m, "f", "g"), 0);
	assert_int_equal(leat_unlink(m, "f"), 0);
	volume_rig_settle();
	check_file("g", BYTES);
	assert_int_equal(leat_unlink(m, "g"), 0);
	volume_rig_settle();
	assert_int_equal(volume_rig_objects(0, &n), 0);
}

static void replaces(void **state)
{
	unsigned n;

	(void)state;
	write_file("old");
	cut("old", 10);
	write_file("new");
	assert_int_equal(leat_rename(m, "new", "old"), 0);
	volume_rig_settle();
	check_file("old", BYTES);
	assert_int_equal(volume_rig_objects(3, &n), BYTES / 4);
	assert_int_equal(n, 2);
	assert_int_equal(leat_rename(m, "old", "old"), 0);
	volume_rig_settle();
	check_file("old", BYTES);
}

/* The others have it at once, and the server when it is back, before it serves a handle of the new epoch. */
static void server_is_away(void **state)
{
	(void)state;
	write_file("f");
	write_file("g");
	volume_rig_end_server(2);
	cut("f", 100000);
	assert_int_equal(volume_rig_entries("m/pending"), 1);
	assert_int_equal(leat_unlink(m, "g"), 0);
	volume_rig_start_server(2);
	volume_rig_settle();
	cut("f", BYTES);
	check_file("f", 100000);
}

/* A client that got no reply cuts once more, while the first cut is being done: it is not told before the servers have it. */
static void same_cut_again(void **state)
{
	pthread_t thread;

	(void)state;
	leat_flow_skip_rdma("another client's calls come from a thread of the server, which may not use the device");
	write_file("f");
	again.other = volume_rig_mount(NULL);
	again.thread = &thread;
	cut("f", 100000);
	assert_null(again.thread);
	assert_int_equal(pthread_join(thread, NULL), 0);
	leat_umount(again.other);
	assert_false(again.too_early);
	cut("f", BYTES);
	check_file("f", 100000);
}

/* ---- several cuts while servers are away ---- */

static uint8_t want[BYTES];

static void cut_and_note(const char *name, uint64_t bytes)
{
	cut(name, bytes);
	memset(want + bytes, 0, BYTES - bytes);
}

/* Which stripe of the file is on server @i: units of 64 KiB, 4 stripes */
static uint32_t stripe_on(const char *name, unsigned i)
{
	struct leat_volume_layout *l;
	uint32_t stripe = 0;

	assert_int_equal(leat_volume_layout(m, name, &l), 0);
	while (l->stripes[stripe]->server != i + 1)
		stripe++;
	leat_volume_layout_free(l);
	return stripe;
}

/* Writes unit @row of the stripe on server @i, once the manager has brought that to the epoch of the file. */
static void write_unit(const char *name, unsigned i, unsigned row, uint8_t value)
{
	struct leat_file *f = volume_rig_open(m, name, O_RDWR);
	size_t off = (4 * row + stripe_on(name, i)) * 65536;

	memset(want + off, value, 65536);
	assert_int_equal(leat_pwrite(f, want + off, 65536, off), 65536);
	assert_int_equal(leat_close(f), 0);
}

static void check_wanted(const char *name)
{
	struct leat *on = volume_rig_mount(NULL);
	struct leat_file *f = volume_rig_open(on, name, O_RDWR);

	assert_int_equal(leat_ftruncate(f, BYTES), 0);
	assert_int_equal(leat_pread(f, mem, BYTES, 0), BYTES);
	for (size_t i = 0; i < BYTES; i++)
		if (mem[i] != want[i])
			fail_msg("%s: byte %zu is %02x instead of %02x", name, i, mem[i], want[i]);
	assert_int_equal(leat_close(f), 0);
	leat_umount(on);
}

/* A server that was away for all cuts keeps what is before the shortest one. The others keep what was written between. */
static void several_cuts(void **state)
{
	(void)state;
	for (unsigned restart = 0; restart < 2; restart++) {
		const char *name = restart ? "g" : "f";

		write_file(name);
		memcpy(want, data, BYTES);
		volume_rig_end_server(2);
		cut_and_note(name, 600000);
		cut_and_note(name, 100000);
		cut(name, BYTES);
		write_unit(name, 1, 1, 77);
		write_unit(name, 0, 2, 78);
		cut_and_note(name, 500000);
		assert_int_equal(epoch_of(name), 4);
		if (restart) {
			volume_rig_end_manager();
			volume_rig_start_manager();
		}
		write_unit(name, 3, 3, 79);
		assert_int_equal(volume_rig_entries("m/pending"), 1);
		volume_rig_start_server(2);
		volume_rig_settle();
		check_wanted(name);
	}
}

/* A server that has the first cut, and lacks the second one, is not cut as the first one says: it was written since. */
static void back_between_cuts(void **state)
{
	(void)state;
	write_file("f");
	memcpy(want, data, BYTES);
	volume_rig_end_server(1);
	volume_rig_end_server(2);
	cut_and_note("f", 100000);
	volume_rig_start_server(1); /* it gets the cut, which stays pending for the other one */
	cut("f", BYTES);
	write_unit("f", 1, 1, 77);
	volume_rig_end_server(1);
	cut_and_note("f", 9 * 65536);
	volume_rig_start_server(1);
	volume_rig_start_server(2);
	volume_rig_settle();
	check_wanted("f");
}

/* The list of cuts is bounded: then a longer one fails, and a shorter one does not. */
static void too_many_cuts(void **state)
{
	struct leat_file *f;
	int err = 0;

	(void)state;
	write_file("f");
	memcpy(want, data, BYTES);
	volume_rig_end_server(2);
	for (unsigned i = 1; i < 40 && !err; i++) {
		f = volume_rig_open(m, "f", O_RDWR);
		err = leat_ftruncate(f, BYTES);
		assert_int_equal(err, 0);
		err = leat_ftruncate(f, i * 1000);
		assert_int_equal(leat_close(f), 0);
	}
	assert_int_equal(err, -EIO);
	cut_and_note("f", 1000);
	volume_rig_start_server(2);
	volume_rig_settle();
	check_wanted("f");
}

/* It is removed while cuts are pending. */
static void removed_between_cuts(void **state)
{
	unsigned n;

	(void)state;
	write_file("f");
	volume_rig_end_server(2);
	cut("f", 100000);
	cut("f", 50000);
	assert_int_equal(leat_unlink(m, "f"), 0);
	volume_rig_start_server(2);
	volume_rig_settle();
	for (unsigned i = 0; i < VOLUME_RIG_SERVERS; i++) {
		assert_int_equal(volume_rig_objects(i, &n), 0);
		assert_int_equal(n, 1);
	}
}

/* What is pending survives the manager. */
static void manager_restarts(void **state)
{
	unsigned n;

	(void)state;
	write_file("f");
	write_file("g");
	volume_rig_end_server(1);
	cut("f", 0);
	assert_int_equal(leat_unlink(m, "g"), 0);
	volume_rig_end_manager();
	assert_int_equal(volume_rig_entries("m/pending"), 2);
	volume_rig_start_server(1);
	volume_rig_start_manager();
	volume_rig_settle();
	assert_int_equal(volume_rig_objects(1, &n), 0);
	cut("f", BYTES);
	check_file("f", 0);
}

/* Another manager has given commands to a server. */
static void newer_term(void **state)
{
	struct leat_volume_command c = { .size = sizeof(c), .term = 1000, .server = 1, .object = { 1 } };
	struct leat_volume_key *key;
	struct leat_opts *o = leat_opts_create();
	struct leat_file *f;
	struct leat *server;
	char why[256];

	(void)state;
	write_file("f");
	write_file("g");
	cut("f", 10);
	assert_int_equal(leat_volume_key_read(tmp_dir_path(&volume_rig.dir, "key"), &key, why, sizeof(why)), 0);
	assert_int_equal(leat_set(o, "connect_only", "yes"), 0);
	assert_int_equal(leat_mount(volume_rig.server_url[0], o, &server), 0);
	c.key = key;
	assert_int_equal(leat_volume_object_stat(server, &c, NULL, NULL), 0);
	f = volume_rig_open(m, "g", O_RDWR);
	assert_int_equal(leat_ftruncate(f, 10), -EIO);
	assert_int_equal(leat_close(f), 0);
	assert_int_equal(leat_unlink(m, "f"), -EIO);
	volume_rig_end_manager();
	volume_rig_start_manager(); /* which takes a newer one */
	volume_rig_settle();
	assert_int_equal(leat_unlink(m, "f"), 0);
	volume_rig_settle();
	leat_umount(server);
	leat_volume_key_free(key);
	leat_opts_destroy(o);
}

static void expect_one_file(const char *name)
{
	unsigned n;

	volume_rig_settle();
	check_file(name, BYTES);
	for (unsigned i = 0; i < VOLUME_RIG_SERVERS; i++)
		assert_int_equal(volume_rig_objects(i, &n), BYTES / VOLUME_RIG_SERVERS);
	assert_int_equal(leat_unlink(m, name), 0);
	volume_rig_settle();
}

static void change_names_at(const char *name, struct leat *other, const char *from, const char *to)
{
	looked_up = name;
	renames[0][0] = from;
	renames[0][1] = to;
	renames[1][0] = NULL;
	meanwhile = other;
}

/* A name gets another file between the lookup and the removal: the objects of the file that is removed are removed. */
static void names_change_meanwhile(void **state)
{
	struct leat *other;

	(void)state;
	leat_flow_skip_rdma("another client's calls come from a thread of the server, which may not use the device");
	other = volume_rig_mount(NULL);
	write_file("keep");
	/* the file is replaced */
	write_file("f");
	write_file("b");
	change_names_at("f", other, "b", "f");
	assert_int_equal(leat_unlink(m, "f"), 0);
	assert_null(meanwhile);
	expect_one_file("keep");
	/* it is renamed, and another one gets its name */
	write_file("keep");
	write_file("b");
	change_names_at("keep", other, "keep", "kept");
	renames[1][0] = "b";
	renames[1][1] = "keep";
	assert_int_equal(leat_unlink(m, "keep"), 0);
	expect_one_file("kept");
	/* a name that nothing had is taken */
	write_file("a");
	write_file("b");
	change_names_at("new", other, "b", "new");
	assert_int_equal(leat_rename(m, "a", "new"), 0);
	assert_null(meanwhile);
	expect_one_file("new");
	leat_umount(other);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(shrinks_and_grows), TEST(others_go_on),   TEST(unlink_leaves_tombstones), TEST(hard_links),
		TEST(replaces),		 TEST(server_is_away), TEST(same_cut_again), TEST(manager_restarts),	       TEST(names_change_meanwhile), TEST(newer_term),
		TEST(several_cuts), TEST(back_between_cuts), TEST(too_many_cuts), TEST(removed_between_cuts),
	};

	volume_times = (struct volume_times){ .server = "1s", .probe_ns = 20 * NS_PER_MS, .retry_ns = 10 * NS_PER_MS };
	for (size_t i = 0; i < BYTES; i++)
		data[i] = (uint8_t)(1 + i % 251);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
