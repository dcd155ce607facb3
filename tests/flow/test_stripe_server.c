/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_stripe_server.c - the program of stripes: procedures, handles, epochs, terms, tombstones and lanes
 *
 * A write waits in a worker while `hold` is set.
 */
#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/util.h"
#include "fs_limits.h"
#include "inside.h"
#include "server.h"
#include "stripe_lanes.h"
#include "stripe_rig.h"
#include "stripe_vol.h"

#define CACHED "read=cached,write=cached"

static uint8_t data[(1 << 20) + 4], mem[1 << 20];
static stripe_name object;

/* ---- held writes ---- */

static atomic_int broken; /* errno of all writes; 0: they work */
static atomic_bool hold;
static atomic_int held; /* writes that wait */
static sem_t let_go;

ssize_t __real_pwritev2(int fd, const struct iovec *iov, int n, off_t off, int flags);
ssize_t __wrap_pwritev2(int fd, const struct iovec *iov, int n, off_t off, int flags);

ssize_t __wrap_pwritev2(int fd, const struct iovec *iov, int n, off_t off, int flags)
{
	if (atomic_load(&hold)) {
		atomic_fetch_add(&held, 1);
		while (sem_wait(&let_go))
			;
	}
	if (atomic_load(&broken)) {
		errno = atomic_load(&broken);
		return -1;
	}
	return __real_pwritev2(fd, iov, n, off, flags);
}

/* Reactors write to memory themselves: a write that waits would keep all connections of one waiting. */
void __real_fs_limits_find(int dir_fd, bool may_write, struct fs_limits *ret);
void __wrap_fs_limits_find(int dir_fd, bool may_write, struct fs_limits *ret);

void __wrap_fs_limits_find(int dir_fd, bool may_write, struct fs_limits *ret)
{
	__real_fs_limits_find(dir_fd, may_write, ret);
	ret->in_memory = false;
}

/* ---- syncs ---- */

static atomic_bool hold_sync;	/* the next fsync() */
static atomic_bool sync_held;
static atomic_bool syncs_fail;
static sem_t let_sync_go;

int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);

static int fail_sync(void)
{
	errno = EIO;
	return -1;
}

static atomic_uint syncs;

int __wrap_fsync(int fd)
{
	atomic_fetch_add(&syncs, 1);
	if (atomic_exchange(&hold_sync, false)) {
		atomic_store(&sync_held, true);
		while (sem_wait(&let_sync_go))
			;
	}
	return atomic_load(&syncs_fail) ? fail_sync() : __real_fsync(fd);
}

int __wrap_fdatasync(int fd)
{
	return atomic_load(&syncs_fail) ? fail_sync() : __real_fdatasync(fd);
}

static bool is_sync_held(void *arg)
{
	(void)arg;
	return atomic_load(&sync_held);
}

/* ---- the clock ---- */

static _Atomic uint64_t ahead; /* seconds */

uint64_t __real_stripe_now(void);
uint64_t __wrap_stripe_now(void);

uint64_t __wrap_stripe_now(void)
{
	return __real_stripe_now() + atomic_load(&ahead);
}

static bool is_held(void *arg)
{
	return atomic_load(&held) >= *(int *)arg;
}

static void hold_writes(void)
{
	atomic_store(&held, 0);
	atomic_store(&hold, true);
}

static void wait_held(int n)
{
	stripe_run_until(is_held, &n);
}

static void let_writes_go(int n)
{
	atomic_store(&hold, false);
	while (n--)
		sem_post(&let_go);
}

static const char *counter;
static uint64_t counted;

/* Also if a call that should wait, @arg, does not, or a second write has begun: then the test fails */
static bool has_counted(void *arg)
{
	return server_counters(stripe_rig.srv, counter) > counted || ((struct stripe_rig_call *)arg)->done ||
	       atomic_load(&held) > 1;
}

static void count_from(const char *name)
{
	counter = name;
	counted = server_counters(stripe_rig.srv, name);
}

/* ---- parts ---- */

static void start(struct stripe_client *c)
{
	object = stripe_rig_name(0xa7, 1);
	assert_int_equal(stripe_rig_start(CACHED), 0);
	stripe_connect(c, 1, 0, &object);
}

static void stop(struct stripe_client *c)
{
	stripe_close(c);
	stripe_rig_stop();
}

static void restart(struct stripe_client *c)
{
	stripe_close(c);
	stripe_rig_end_server();
	assert_int_equal(stripe_rig_start(CACHED), 0);
	stripe_connect(c, c->lane.instance + 1, 0, &object);
}

static void see(struct stripe_client *c, uint64_t off, const uint8_t *want, uint32_t bytes, uint32_t count)
{
	uint32_t got = UINT32_MAX;
	bool eof = false;

	memset(mem, 0xee, sizeof(mem));
	assert_int_equal(stripe_read(c, off, mem, count, &got, &eof), STRIPE_OK);
	assert_int_equal(got, bytes);
	assert_int_equal(eof, bytes < count);
	assert_memory_equal(mem, want, bytes);
}

static stripe_stat stat_of(struct stripe_client *c)
{
	stripe_stat st = { .bytes = 99 };

	assert_int_equal(stripe_stat_of(c, &object, &st), STRIPE_OK);
	return st;
}

static uint64_t soon(void)
{
	return (uint64_t)time(NULL) + 1000;
}

/* ---- data ---- */

static void moves_data(const char *options)
{
	static const uint32_t lengths[] = { 1, 511, 4096, 65536, 100001, 1 << 20 };
	struct stripe_client c;
	uint64_t end = 0;
	struct stat st;

	object = stripe_rig_name(0xa7, 1);
	assert_int_equal(stripe_rig_start(options), 0);
	stripe_connect(&c, 1, 0, &object);
	see(&c, 0, data, 0, 4096); /* it does not exist */
	assert_int_equal(stripe_commit(&c), STRIPE_OK);
	assert_int_equal(stat(stripe_rig_path(&object), &st), -1);
	for (unsigned i = 0; i < ARRAY_SIZE(lengths); i++) {
		uint64_t off = 4096 * i + i;

		assert_int_equal(stripe_write(&c, off, data + i % 4, lengths[i], i & 1), STRIPE_OK);
		see(&c, off, data + i % 4, lengths[i], lengths[i]);
		end = MAX(end, off + lengths[i]);
	}
	assert_int_equal(stripe_commit(&c), STRIPE_OK);
	assert_int_equal(stat(stripe_rig_path(&object), &st), 0);
	assert_int_equal(st.st_size, end);
	assert_int_equal(stat_of(&c).bytes, end);
	see(&c, end, data, 0, 100);
	see(&c, end - 10, data + 1 + (1 << 20) - 10, 10, 100);
	stripe_close(&c);
	stripe_rig_stop();
}

static void moves(void **state)
{
	(void)state;
	moves_data("");
}

static void moves_cached(void **state)
{
	(void)state;
	moves_data(CACHED);
}

static void moves_in_pieces(void **state)
{
	(void)state;
	moves_data("read=direct,write=direct,overlap=streams,streams=4,chunk=64K,grain=16K");
}

static void moves_tcp(void **state)
{
	(void)state;
	stripe_rig_url = "tcp://127.0.0.1:0";
	moves_data("");
	stripe_rig_url = NULL;
}

/* Return: the syncs of the server's end */
static unsigned syncs_at_the_end(bool commits, bool writes_again)
{
	struct stripe_client c;
	unsigned before;

	start(&c);
	assert_int_equal(stripe_write(&c, 0, data, 100, false), STRIPE_OK);
	if (commits)
		assert_int_equal(stripe_commit(&c), STRIPE_OK);
	if (writes_again)
		assert_int_equal(stripe_write(&c, 50, data, 100, false), STRIPE_OK);
	stripe_close(&c);
	before = atomic_load(&syncs);
	stripe_rig_stop();
	return atomic_load(&syncs) - before;
}

/* An object that is closed is synced, unless a COMMIT has covered all of it. */
static void closes_without_sync(void **state)
{
	(void)state;
	assert_int_equal(syncs_at_the_end(true, false), 0);
	assert_int_equal(syncs_at_the_end(false, true), 1);
	assert_int_equal(syncs_at_the_end(true, true), 1);
}

static void bad_ranges(void **state)
{
	struct stripe_client c;
	uint32_t n;
	bool eof;

	(void)state;
	start(&c);
	assert_int_equal(stripe_read(&c, 0, mem, 0, &n, &eof), STRIPE_ERR_INVAL);
	assert_int_equal(stripe_read(&c, UINT64_MAX, mem, 10, &n, &eof), STRIPE_ERR_INVAL);
	assert_int_equal(stripe_write(&c, UINT64_MAX - 10, data, 20, false), STRIPE_ERR_FBIG);
	assert_int_equal(stripe_write(&c, INT64_MAX - 10, data, 20, false), STRIPE_ERR_FBIG);
	assert_int_equal(stripe_write(&c, 0, data, 0, false), STRIPE_ERR_INVAL);
	c.lane.incarnation = 0;
	assert_int_equal(stripe_write(&c, 0, data, 1, false), STRIPE_ERR_INVAL);
	c.lane.incarnation = 1;
	c.lane.slot = STRIPE_LANES_SLOTS;
	assert_int_equal(stripe_write(&c, 0, data, 1, false), STRIPE_ERR_INVAL);
	c.lane.slot = 0;
	assert_int_equal(stripe_fence(&c, &object, 1, NULL, NULL), STRIPE_ERR_INVAL);
	assert_int_equal(stripe_fence(&c, &object, 2, &(uint64_t){ UINT64_MAX }, NULL), STRIPE_ERR_INVAL);
	stop(&c);
}

static void full(void **state)
{
	struct stripe_client c;

	(void)state;
	start(&c);
	atomic_store(&broken, ENOSPC);
	assert_int_equal(stripe_write(&c, 0, data, 100, false), STRIPE_ERR_NOSPC);
	atomic_store(&broken, EDQUOT);
	assert_int_equal(stripe_write(&c, 0, data, 100, true), STRIPE_ERR_NOSPC);
	atomic_store(&broken, EIO);
	assert_int_equal(stripe_write(&c, 0, data, 100, false), STRIPE_ERR_IO);
	atomic_store(&broken, 0);
	assert_int_equal(stripe_write(&c, 0, data, 100, false), STRIPE_OK);
	stop(&c);
}

/* What was acknowledged may be lost: the verifier tells. */
static void sync_fails(void **state)
{
	struct stripe_client c;
	uint64_t before;

	(void)state;
	start(&c);
	assert_int_equal(stripe_write(&c, 0, data, 100, false), STRIPE_OK);
	assert_int_equal(stripe_commit(&c), STRIPE_OK);
	before = c.verf;
	assert_int_equal(stripe_write(&c, 0, data, 100, false), STRIPE_OK);
	assert_int_equal(c.verf, before);
	atomic_store(&syncs_fail, true);
	assert_int_equal(stripe_commit(&c), STRIPE_ERR_IO);
	atomic_store(&syncs_fail, false);
	assert_int_equal(stripe_commit(&c), STRIPE_OK);
	assert_int_not_equal(c.verf, before);
	/* a record that could not be made durable is not acknowledged, and the object is served on */
	(void)stat_of(&c); /* the term is durable */
	atomic_store(&syncs_fail, true);
	assert_int_equal(stripe_fence(&c, &object, 2, NULL, NULL), STRIPE_ERR_IO);
	assert_int_equal(stripe_write(&c, 0, data, 100, false), STRIPE_ERR_IO); /* which epoch has it? */
	atomic_store(&syncs_fail, false);
	assert_int_equal(stripe_fence(&c, &object, 2, NULL, NULL), STRIPE_OK);
	c.handle.epoch = 2;
	see(&c, 0, data, 100, 100);
	stop(&c);
}

/* A limited number of objects stays open without a call. One that is closed is synced first. */
static void files_are_closed(void **state)
{
	enum { MANY = STRIPE_FILES_IDLE / 3 + 100 };
	struct stripe_client c;
	char path[200];

	(void)state;
	start(&c);
	for (unsigned i = 0; i < MANY; i++) {
		c.handle.name.stripe = i;
		assert_int_equal(stripe_write(&c, 0, data + i % 100, 10, false), STRIPE_OK);
	}
	(void)snprintf(path, sizeof(path), "%s/s/objects/a7", stripe_rig.dir.path);
	assert_in_range(tmp_dir_open_below(path), MANY, 2 * (STRIPE_FILES_IDLE / 3 + 10));
	for (unsigned i = 0; i < MANY; i += 50) {
		c.handle.name.stripe = i;
		see(&c, 0, data + i % 100, 10, 10);
	}
	stop(&c);
}

/* A READ by one connection and the first WRITE by another one, on another reactor. */
static void reads_while_created(void **state)
{
	struct stripe_client reader, writer;
	struct stripe_rig_call read, write;

	(void)state;
	start(&reader);
	stripe_connect(&writer, 2, 0, &object);
	for (unsigned i = 0; i < 300; i++) {
		uint32_t n;

		reader.handle.name.stripe = writer.handle.name.stripe = i;
		read = (struct stripe_rig_call){ .args.read = { .count = 100 } };
		stripe_write_begin_at(&writer, &write, 0, data, 100, false);
		stripe_begin(&reader, &read, STRIPEPROC_READ, mem, 100);
		assert_int_equal(stripe_end(&read), STRIPE_OK);
		assert_int_equal(stripe_end(&write), STRIPE_OK);
		n = read.res.read.STRIPEREADres_u.resok.data.length;
		assert_true(n == 0 || n == 100);
		assert_memory_equal(mem, data, n);
		see(&reader, 0, data, 100, 100);
	}
	stripe_close(&writer);
	stop(&reader);
}

/* ---- what does not start ---- */

static void refuses_to_start(void)
{
	stripe_rig_end_server();
	assert_int_not_equal(stripe_rig_start(CACHED), 0);
}

static void refused(void **state)
{
	struct stripe_client c;
	char why[300] = "", text[200];

	(void)state;
	start(&c);
	assert_int_equal(stripe_write(&c, 0, data, 100, true), STRIPE_OK);
	assert_int_equal(stripe_rig_reload("id=8", why, sizeof(why)), -EBUSY);
	assert_non_null(strstr(why, "until now it is of server 7"));
	see(&c, 0, data, 100, 100);
	stripe_close(&c);
	stripe_rig_write_key(NULL, 0640);
	refuses_to_start();
	(void)snprintf(text, sizeof(text), "volume = %016llx\nkey = " STRIPE_RIG_KEY "\n",
		       (unsigned long long)STRIPE_RIG_VOLUME + 1);
	stripe_rig_write_key(text, 0600);
	refuses_to_start();
	stripe_rig_write_key(NULL, 0600);
	assert_int_not_equal(stripe_rig_start("id=8"), 0);
	assert_int_equal(stripe_rig_start(CACHED), 0); /* and nothing has changed */
	stripe_connect(&c, 2, 0, &object);
	see(&c, 0, data, 100, 100);
	stop(&c);
}

/* ---- handles ---- */

/* A reload that takes the right away takes effect at once. */
static void other_clients(void **state)
{
	struct stripe_client c;
	char why[256] = "";

	(void)state;
	stripe_rig_url = "tcp://127.0.0.1:0";
	start(&c);
	assert_int_equal(stripe_write(&c, 0, data, 100, false), STRIPE_OK);
	assert_int_equal(stripe_rig_reload(CACHED ",clients=10.0.0.0/8", why, sizeof(why)), 0);
	assert_int_equal(stripe_write(&c, 0, data, 100, false), STRIPE_ERR_ACCES);
	assert_int_equal(stripe_info(&c, NULL), STRIPE_ERR_ACCES);
	assert_int_equal(stripe_rig_reload(CACHED, why, sizeof(why)), 0);
	see(&c, 0, data, 100, 100);
	stripe_rig_url = NULL;
	stop(&c);
}

static void handles(void **state)
{
	struct stripe_client c;
	struct stripe_rig_call call = { .args.read = { .count = 10 } };
	uint32_t n;
	bool eof;

	(void)state;
	start(&c);
	assert_int_equal(stripe_write(&c, 0, data, 10, true), STRIPE_OK);
	/* of another volume, and signed with another key */
	c.handle.volume++;
	assert_int_equal(stripe_read(&c, 0, mem, 10, &n, &eof), STRIPE_ERR_NOVOLUME);
	c.handle.volume--;
	stripe_sign(&c, &call, STRIPEPROC_READ);
	stripe_handle_make(&stripe_rig.old_keys, &c.handle, call.args.at.handle);
	stripe_send(&c, &call, STRIPEPROC_READ, mem, 10);
	assert_int_equal(stripe_end(&call), STRIPE_ERR_BADHANDLE);
	assert_int_equal(server_counters(stripe_rig.srv, "stripe_bad_handles"), 1);
	/* of another server of the volume */
	c.handle.server++;
	assert_int_equal(stripe_read(&c, 0, mem, 10, &n, &eof), STRIPE_ERR_BADHANDLE);
	assert_int_equal(stripe_write(&c, 0, data, 10, true), STRIPE_ERR_BADHANDLE);
	assert_int_equal(server_counters(stripe_rig.srv, "stripe_bad_handles"), 3);
	c.handle.server--;
	/* rights */
	c.handle.rights = STRIPE_MAY_READ;
	see(&c, 0, data, 10, 10);
	assert_int_equal(stripe_write(&c, 0, data, 10, true), STRIPE_ERR_ACCES);
	assert_int_equal(stripe_commit(&c), STRIPE_ERR_ACCES);
	c.handle.rights = STRIPE_MAY_WRITE;
	assert_int_equal(stripe_write(&c, 0, data, 10, true), STRIPE_OK);
	assert_int_equal(stripe_read(&c, 0, mem, 10, &n, &eof), STRIPE_ERR_ACCES);
	/* time: clocks may differ by 30 seconds */
	c.handle.expiry = (uint64_t)time(NULL) - 20;
	assert_int_equal(stripe_write(&c, 0, data, 10, true), STRIPE_OK);
	c.handle.expiry = (uint64_t)time(NULL) - 40;
	assert_int_equal(stripe_write(&c, 0, data, 10, true), STRIPE_ERR_EXPIRED);
	assert_int_equal(server_counters(stripe_rig.srv, "stripe_expired"), 1);
	stop(&c);
}

/* The key is replaced while the server runs: for a while both are good. */
static void two_keys(void **state)
{
	struct stripe_client c;
	struct stripe_keys first;
	char text[300], why[256] = "";

	(void)state;
	start(&c);
	assert_int_equal(stripe_write(&c, 0, data, 10, true), STRIPE_OK);
	first = stripe_rig.keys;
	(void)snprintf(text, sizeof(text), "volume = %016llx\nkey = " STRIPE_RIG_OLD_KEY "\nkey = " STRIPE_RIG_KEY "\n",
		       (unsigned long long)STRIPE_RIG_VOLUME);
	stripe_rig_write_key(text, 0600);
	assert_int_equal(stripe_rig_reload(CACHED, why, sizeof(why)), 0);
	see(&c, 0, data, 10, 10);
	stripe_rig.keys = stripe_rig.old_keys;
	see(&c, 0, data, 10, 10);
	assert_int_equal(stripe_info(&c, NULL), STRIPE_OK);
	/* a key that others may read changes nothing */
	stripe_rig_write_key(text, 0644);
	assert_int_not_equal(stripe_rig_reload(CACHED, why, sizeof(why)), 0);
	assert_non_null(strstr(why, "mode 0600"));
	stripe_rig.keys = first;
	see(&c, 0, data, 10, 10);
	stop(&c);
}

/* ---- epochs ---- */

static void fences(void **state)
{
	struct stripe_client c;
	stripe_stat st;
	uint32_t n;
	bool eof;

	(void)state;
	start(&c);
	assert_int_equal(stripe_write(&c, 0, data, 10000, true), STRIPE_OK);
	assert_int_equal(stripe_fence(&c, &object, 2, &(uint64_t){ 5000 }, &st), STRIPE_OK);
	assert_int_equal(st.epoch, 2);
	assert_int_equal(st.bytes, 5000);
	assert_true(st.exists && !st.removed && st.mtime && st.used);
	/* the old epoch */
	assert_int_equal(stripe_read(&c, 0, mem, 10, &n, &eof), STRIPE_ERR_FENCED);
	assert_int_equal(stripe_write(&c, 0, data, 10, true), STRIPE_ERR_FENCED);
	assert_int_equal(stripe_commit(&c), STRIPE_ERR_FENCED);
	assert_int_equal(server_counters(stripe_rig.srv, "stripe_fenced"), 3);
	/* one that is not there yet */
	c.handle.epoch = 3;
	assert_int_equal(stripe_write(&c, 0, data, 10, true), STRIPE_ERR_NOTREADY);
	assert_int_equal(stripe_read(&c, 0, mem, 10, &n, &eof), STRIPE_ERR_NOTREADY);
	/* this one; what was cut does not return */
	c.handle.epoch = 2;
	see(&c, 0, data, 5000, 10000);
	assert_int_equal(stripe_write(&c, 9000, data, 1, false), STRIPE_OK);
	see(&c, 0, data, 5000, 5000);
	see(&c, 5000, (const uint8_t[4000]){ 0 }, 4000, 4000);
	/* the same again cuts nothing; an older one is refused */
	assert_int_equal(stripe_fence(&c, &object, 2, &(uint64_t){ 5000 }, &st), STRIPE_OK);
	assert_int_equal(st.bytes, 9001);
	assert_int_equal(stripe_fence(&c, &object, 5, NULL, &st), STRIPE_OK);
	assert_int_equal(st.bytes, 9001);
	assert_int_equal(stripe_fence(&c, &object, 4, NULL, &st), STRIPE_ERR_FENCED);
	/* and all of it is durable */
	restart(&c);
	assert_int_equal(stat_of(&c).epoch, 5);
	assert_int_equal(stripe_write(&c, 0, data, 10, true), STRIPE_ERR_FENCED);
	c.handle.epoch = 5;
	see(&c, 0, data, 5000, 5000);
	stop(&c);
}

static void fences_nothing(void **state)
{
	struct stripe_client c;
	stripe_stat st;

	(void)state;
	start(&c);
	st = stat_of(&c);
	assert_false(st.exists);
	assert_int_equal(st.epoch, 1);
	assert_int_equal(stripe_fence(&c, &object, 2, &(uint64_t){ 0 }, &st), STRIPE_OK);
	assert_true(st.exists);
	restart(&c);
	assert_int_equal(stripe_write(&c, 0, data, 10, true), STRIPE_ERR_FENCED);
	assert_int_equal(stat_of(&c).bytes, 0);
	stop(&c);
}

/* FENCE waits for what has begun, and nothing of the old epoch begins meanwhile */
static void fence_waits(void **state)
{
	struct stripe_client c, other, manager;
	struct stripe_rig_call late, fence = { .err = 0 };

	(void)state;
	start(&c);
	assert_int_equal(stripe_write(&c, 0, data, 100, false), STRIPE_OK);
	stripe_connect(&other, 2, 0, &object);
	stripe_connect(&manager, 3, 0, &object);
	hold_writes();
	stripe_write_begin_at(&c, &late, 0, data + 1, 3000, false);
	wait_held(1);
	count_from("stripe_fence_waits");
	fence.args.fence = (STRIPEFENCEargs){ .name = object, .epoch = 2, .cut = true, .bytes = 50 };
	stripe_begin(&manager, &fence, STRIPEPROC_FENCE, NULL, 0);
	stripe_run_until(has_counted, &fence);
	assert_false(fence.done);
	assert_int_equal(stripe_write(&other, 0, data, 10, false), STRIPE_ERR_FENCED);
	other.handle.epoch = 2; /* the cut is yet to come */
	assert_int_equal(stripe_write(&other, 0, data, 10, false), STRIPE_ERR_NOTREADY);
	let_writes_go(1);
	assert_int_equal(stripe_end(&late), STRIPE_OK);
	assert_int_equal(stripe_end(&fence), STRIPE_OK);
	assert_int_equal(fence.res.stat.STRIPESTATres_u.stat.bytes, 50);
	see(&other, 0, data + 1, 50, 100);
	stripe_close(&other);
	stripe_close(&manager);
	stop(&c);
}

static void fence_times_out(void **state)
{
	struct stripe_client c, manager;
	struct stripe_rig_call late;
	stripe_stat st;

	(void)state;
	stripe_times.drain_ns = NS_PER_S / 20;
	start(&c);
	assert_int_equal(stripe_write(&c, 0, data, 100, false), STRIPE_OK);
	stripe_connect(&manager, 3, 0, &object);
	hold_writes();
	stripe_write_begin_at(&c, &late, 0, data + 1, 3000, false);
	wait_held(1);
	assert_int_equal(stripe_fence(&manager, &object, 2, &(uint64_t){ 50 }, &st), STRIPE_ERR_TIMEDOUT);
	/* the record is there, and the same again waits again */
	assert_int_equal(stat_of(&manager).epoch, 2);
	assert_int_equal(stat_of(&manager).bytes, 50);
	assert_int_equal(stripe_fence(&manager, &object, 2, &(uint64_t){ 50 }, &st), STRIPE_ERR_TIMEDOUT);
	let_writes_go(1);
	assert_int_equal(stripe_end(&late), STRIPE_OK);
	assert_int_equal(stripe_fence(&manager, &object, 2, &(uint64_t){ 50 }, &st), STRIPE_OK);
	assert_int_equal(st.bytes, 50);
	manager.handle.epoch = 2;
	see(&manager, 0, data + 1, 50, 100);
	stripe_close(&manager);
	stop(&c);
	stripe_times.drain_ns = 30 * NS_PER_S;
}

/* The next operation of the new epoch does the cut that a FENCE which timed out has left. */
static void cut_is_done_first(void **state)
{
	struct stripe_client c, manager;
	struct stripe_rig_call late;
	stripe_stat st;

	(void)state;
	stripe_times.drain_ns = NS_PER_S / 20;
	start(&c);
	assert_int_equal(stripe_write(&c, 0, data, 100, false), STRIPE_OK);
	stripe_connect(&manager, 3, 0, &object);
	hold_writes();
	stripe_write_begin_at(&c, &late, 0, data, 3000, false);
	wait_held(1);
	assert_int_equal(stripe_fence(&manager, &object, 2, &(uint64_t){ 50 }, &st), STRIPE_ERR_TIMEDOUT);
	/* a later one cuts less: the earlier one counts */
	assert_int_equal(stripe_fence(&manager, &object, 3, &(uint64_t){ 2000 }, &st), STRIPE_ERR_TIMEDOUT);
	let_writes_go(1);
	assert_int_equal(stripe_end(&late), STRIPE_OK);
	manager.handle.epoch = 3;
	assert_int_equal(stripe_write(&manager, 99, data, 1, false), STRIPE_OK);
	see(&manager, 0, data, 50, 50);
	see(&manager, 50, (const uint8_t[49]){ 0 }, 49, 49);
	assert_int_equal(stat_of(&manager).bytes, 100);
	stripe_close(&manager);
	stop(&c);
	stripe_times.drain_ns = 30 * NS_PER_S;
}

/* ---- tombstones ---- */

/* It goes without any call, when its directory's turn has come. */
static bool has_gone(void *path)
{
	return access(path, F_OK) != 0;
}

static void tombstones_are_swept(void **state)
{
	struct stripe_client c;
	char path[200];

	(void)state;
	stripe_times.sweep_ns = NS_PER_S / 10000;
	start(&c);
	(void)snprintf(path, sizeof(path), "%s", stripe_rig_path(&object));
	assert_int_equal(stripe_remove(&c, &object, (uint64_t)time(NULL) - 100, NULL), STRIPE_OK);
	stripe_run_until(has_gone, path);
	assert_false(stat_of(&c).exists);
	stop(&c);
	stripe_times.sweep_ns = 20 * NS_PER_S;
}

static void removes(void **state)
{
	struct stripe_client c;
	stripe_stat st;
	uint32_t n;
	bool eof;

	(void)state;
	start(&c);
	assert_int_equal(stripe_write(&c, 0, data, 10000, false), STRIPE_OK);
	assert_int_equal(stripe_remove(&c, &object, soon(), &st), STRIPE_OK);
	assert_true(st.exists && st.removed);
	assert_int_equal(st.bytes, 0);
	assert_int_equal(stripe_write(&c, 0, data, 10, false), STRIPE_ERR_FENCED);
	assert_int_equal(stripe_read(&c, 0, mem, 10, &n, &eof), STRIPE_ERR_FENCED);
	assert_int_equal(stripe_fence(&c, &object, 9, NULL, &st), STRIPE_ERR_FENCED);
	restart(&c);
	assert_int_equal(stripe_write(&c, 0, data, 10, false), STRIPE_ERR_FENCED);
	assert_int_equal(stripe_remove(&c, &object, 1, &st), STRIPE_OK); /* again: the later time counts */
	assert_true(stat_of(&c).removed);
	/* one that was never written */
	object = stripe_rig_name(0xa7, 2);
	c.handle.name = object;
	assert_int_equal(stripe_remove(&c, &object, soon(), &st), STRIPE_OK);
	assert_int_equal(stripe_write(&c, 0, data, 10, false), STRIPE_ERR_FENCED);
	stop(&c);
}

static void remove_waits(void **state)
{
	struct stripe_client c, manager;
	struct stripe_rig_call late, rm = { .err = 0 };
	struct stat st;

	(void)state;
	start(&c);
	assert_int_equal(stripe_write(&c, 0, data, 100, false), STRIPE_OK);
	stripe_connect(&manager, 3, 0, &object);
	hold_writes();
	stripe_write_begin_at(&c, &late, 0, data + 1, 3000, false);
	wait_held(1);
	count_from("stripe_fence_waits");
	rm.args.remove = (STRIPEREMOVEargs){ .name = object, .until = soon() };
	stripe_begin(&manager, &rm, STRIPEPROC_REMOVE, NULL, 0);
	stripe_run_until(has_counted, &rm);
	assert_false(rm.done);
	let_writes_go(1);
	assert_int_equal(stripe_end(&late), STRIPE_OK);
	assert_int_equal(stripe_end(&rm), STRIPE_OK);
	assert_int_equal(stat(stripe_rig_path(&object), &st), 0);
	assert_int_equal(st.st_size, 0);
	stripe_close(&manager);
	stop(&c);
}

static const char *aside_path(void)
{
	static char path[300];

	(void)snprintf(path, sizeof(path), "%s/lost+found/%s", tmp_dir_path(&stripe_rig.dir, "s"),
		       strrchr(stripe_rig_path(&object), '/') + 1);
	return path;
}

/* What it holds stays, and so does its record; a tombstone is in its place. */
static void sets_aside(void **state)
{
	struct stripe_client c, manager;
	struct stripe_rig_call late;
	stripe_stat st, old;
	struct stat file;

	(void)state;
	start(&c);
	assert_int_equal(stripe_set_aside(&c, &object, soon(), 0, &st), STRIPE_OK);
	assert_false(st.exists);
	assert_int_equal(stripe_fence(&c, &object, 3, NULL, &st), STRIPE_OK);
	c.handle.epoch = 3;
	assert_int_equal(stripe_write(&c, 0, data, 10000, false), STRIPE_OK);
	old = stat_of(&c);
	assert_int_equal(stripe_set_aside(&c, &object, soon(), old.mtime - 1, &st), STRIPE_ERR_FENCED);
	assert_int_equal(stripe_write(&c, 0, data, 10000, false), STRIPE_OK);
	old = stat_of(&c);
	stripe_connect(&manager, 3, 0, &object);
	hold_writes();
	stripe_write_begin_at(&c, &late, 0, data, 3000, false);
	wait_held(1);
	assert_int_equal(stripe_set_aside(&manager, &object, soon(), old.mtime, &st), STRIPE_ERR_TIMEDOUT);
	let_writes_go(1);
	assert_int_equal(stripe_end(&late), STRIPE_OK);
	old = stat_of(&c);
	assert_int_equal(stripe_set_aside(&manager, &object, soon(), old.mtime, &st), STRIPE_OK);
	stripe_close(&manager);
	assert_true(st.exists && st.removed && !st.bytes && st.epoch == 3);
	assert_int_equal(stripe_write(&c, 0, data, 10, false), STRIPE_ERR_FENCED);
	assert_int_equal(stat(aside_path(), &file), 0);
	assert_int_equal(file.st_size, 10000);
	assert_int_equal(file.st_nlink, 1);
	assert_int_equal(stripe_set_aside(&c, &object, soon(), old.mtime, &st), STRIPE_OK); /* again */
	restart(&c);
	assert_true(stat_of(&c).removed);
	/* back again, by hand */
	stripe_close(&c);
	stripe_rig_end_server();
	assert_int_equal(rename(aside_path(), stripe_rig_path(&object)), 0);
	assert_int_equal(stripe_rig_start(CACHED), 0);
	stripe_connect(&c, 9, 0, &object);
	st = stat_of(&c);
	assert_true(!st.removed && st.epoch == 3 && st.bytes == 10000);
	stop(&c);
}

/* A tombstone whose time is up has no handles any more: its file goes at the next LIST, or when it is opened. */
static void tombstones_go(void **state)
{
	struct stripe_client c;
	stripe_entry list[STRIPE_LIST_MAX];
	stripe_name second = stripe_rig_name(0xa7, 2);
	stripe_stat st;
	struct stat file;
	unsigned n = 9;
	bool eof = false;

	(void)state;
	start(&c);
	assert_int_equal(stripe_remove(&c, &object, (uint64_t)time(NULL) - 100, &st), STRIPE_OK);
	assert_int_equal(stripe_remove(&c, &second, (uint64_t)time(NULL) - 100, &st), STRIPE_OK);
	assert_int_equal(stat(stripe_rig_path(&object), &file), 0);
	restart(&c);
	assert_false(stat_of(&c).exists);
	assert_int_equal(stat(stripe_rig_path(&object), &file), -1);
	assert_int_equal(stat(stripe_rig_path(&second), &file), 0);
	assert_int_equal(stripe_list(&c, NULL, list, &n, &eof), STRIPE_OK);
	assert_int_equal(n, 0);
	assert_true(eof);
	assert_int_equal(stat(stripe_rig_path(&second), &file), -1);
	stop(&c);
}

/* ---- commands ---- */

static void terms(void **state)
{
	struct stripe_client c;
	stripe_entry entries[STRIPE_LIST_MAX];
	STRIPEINFOresok info;
	unsigned n;
	bool eof;

	(void)state;
	start(&c);
	assert_int_equal(stripe_info(&c, &info), STRIPE_OK);
	assert_int_equal(info.server, STRIPE_RIG_ID);
	assert_int_equal(info.term, 0); /* it has obeyed none */
	(void)stat_of(&c);
	assert_int_equal(stripe_info(&c, &info), STRIPE_OK);
	assert_int_equal(info.term, 1);
	assert_true(info.bytes && info.bytes_free && info.bytes_used && info.verf);
	assert_in_range(info.now / 1000, (uint64_t)time(NULL) - 100, (uint64_t)time(NULL) + 100);
	stripe_rig.term = 5;
	assert_int_equal(stripe_fence(&c, &object, 2, NULL, NULL), STRIPE_OK);
	stripe_rig.term = 4;
	assert_int_equal(stripe_stat_of(&c, &object, NULL), STRIPE_ERR_OLDTERM);
	assert_int_equal(stripe_rig.told_term, 5);
	stripe_rig.told_term = 0;
	assert_int_equal(stripe_list(&c, NULL, entries, &n, &eof), STRIPE_ERR_OLDTERM);
	assert_int_equal(stripe_rig.told_term, 5);
	assert_int_equal(stripe_fence(&c, &object, 3, NULL, NULL), STRIPE_ERR_OLDTERM);
	assert_int_equal(stripe_remove(&c, &object, soon(), NULL), STRIPE_ERR_OLDTERM);
	restart(&c);
	assert_int_equal(stripe_fence(&c, &object, 3, NULL, NULL), STRIPE_ERR_OLDTERM);
	/* INFO changes nothing: any term will do, and a newer one is not obeyed */
	assert_int_equal(stripe_info(&c, &info), STRIPE_OK);
	assert_int_equal(info.term, 5);
	stripe_rig.term = 6;
	assert_int_equal(stripe_info(&c, &info), STRIPE_OK);
	assert_int_equal(info.term, 5);
	stripe_rig.term = 5;
	assert_int_equal(stat_of(&c).epoch, 2);
	stop(&c);
}

/* A newer term begins when commands of older ones that a worker executes have ended. */
static void newer_term_waits(void **state)
{
	struct stripe_client c, newer;
	struct stripe_rig_call fence = { .err = 0 }, look = { .args.stat.name = stripe_rig_name(0xa7, 2) };

	(void)state;
	start(&c);
	stripe_connect(&newer, 2, 0, &object);
	assert_int_equal(stripe_fence(&c, &object, 2, NULL, NULL), STRIPE_OK);
	atomic_store(&sync_held, false);
	atomic_store(&hold_sync, true);
	fence.args.fence = (STRIPEFENCEargs){ .name = object, .epoch = 3 };
	stripe_begin(&c, &fence, STRIPEPROC_FENCE, NULL, 0);
	stripe_run_until(is_sync_held, NULL);
	stripe_rig.term = 2;
	atomic_store(&held, 0);
	count_from("stripe_term_waits");
	stripe_begin(&newer, &look, STRIPEPROC_STAT, NULL, 0);
	stripe_run_until(has_counted, &look);
	assert_false(look.done);
	sem_post(&let_sync_go);
	assert_int_equal(stripe_end(&look), STRIPE_OK);
	assert_int_equal(stripe_end(&fence), STRIPE_ERR_OLDTERM);
	assert_int_equal(fence.res.stat.STRIPESTATres_u.term, 2);
	assert_int_equal(stat_of(&newer).epoch, 3); /* it was about to end */
	stripe_close(&newer);
	stop(&c);
}

/* Handles of managers: what an older one has begun ends before a newer one begins, and nothing of it begins after that. */
static void handles_of_managers(void **state)
{
	struct stripe_client c, holds, old, next;
	struct stripe_rig_call late, newer;
	STRIPEINFOresok info;
	uint32_t n;
	bool eof;

	(void)state;
	start(&c);
	stripe_connect(&holds, 2, 0, &object);
	stripe_connect(&old, 2, 1, &object);
	stripe_connect(&next, 3, 0, &object);
	holds.handle.term = old.handle.term = 4;
	next.handle.term = 5;
	assert_int_equal(stripe_write(&c, 0, data, 100, false), STRIPE_OK);
	hold_writes();
	stripe_write_begin_at(&holds, &late, 0, data + 1, 3000, false);
	wait_held(1);
	count_from("stripe_term_waits");
	stripe_write_begin_at(&next, &newer, 0, data + 2, 3000, false);
	stripe_run_until(has_counted, &newer);
	assert_int_equal(atomic_load(&held), 1);
	assert_false(newer.done);
	assert_int_equal(stripe_read(&old, 0, mem, 10, &n, &eof), STRIPE_ERR_OLDTERM);
	let_writes_go(1);
	assert_int_equal(stripe_end(&late), STRIPE_OK);
	assert_int_equal(stripe_end(&newer), STRIPE_OK);
	see(&next, 0, data + 2, 3000, 3000);
	assert_int_equal(stripe_write(&old, 0, data + 1, 3000, false), STRIPE_ERR_OLDTERM);
	assert_int_equal(stripe_commit(&old), STRIPE_ERR_OLDTERM);
	assert_int_equal(server_counters(stripe_rig.srv, "stripe_old_terms"), 3);
	/* commands, too, and after a restart */
	stripe_close(&holds);
	stripe_close(&old);
	stripe_close(&next);
	restart(&c);
	assert_int_equal(stripe_info(&c, &info), STRIPE_OK);
	assert_int_equal(info.term, 5);
	stripe_rig.term = 4;
	assert_int_equal(stripe_stat_of(&c, &object, NULL), STRIPE_ERR_OLDTERM);
	assert_int_equal(stripe_rig.told_term, 5);
	c.handle.term = 4;
	assert_int_equal(stripe_read(&c, 0, mem, 10, &n, &eof), STRIPE_ERR_OLDTERM);
	/* clients have none */
	c.handle.term = 0;
	see(&c, 0, data + 2, 3000, 3000);
	assert_int_equal(stripe_write(&c, 0, data, 100, false), STRIPE_OK);
	stripe_rig.term = 1;
	stop(&c);
}

/* A command is good for its procedure and its arguments only. */
static void commands_are_bound(void **state)
{
	struct stripe_client c;
	struct stripe_rig_call call = { .args.stat.name = object }, other = { .err = 0 };
	char command[STRIPE_COMMAND_BYTES];

	(void)state;
	start(&c);
	assert_int_equal(stripe_write(&c, 0, data, 10, false), STRIPE_OK);
	call.args.stat.name = object;
	stripe_sign(&c, &call, STRIPEPROC_STAT);
	memcpy(command, call.args.stat.command, sizeof(command));
	stripe_send(&c, &call, STRIPEPROC_STAT, NULL, 0);
	assert_int_equal(stripe_end(&call), STRIPE_OK);
	other.args.remove = (STRIPEREMOVEargs){ .name = object, .until = soon() };
	memcpy(other.args.remove.command, command, sizeof(command));
	stripe_send(&c, &other, STRIPEPROC_REMOVE, NULL, 0);
	assert_int_equal(stripe_end(&other), STRIPE_ERR_BADHANDLE);
	call.args.stat.name.stripe++;
	stripe_send(&c, &call, STRIPEPROC_STAT, NULL, 0);
	assert_int_equal(stripe_end(&call), STRIPE_ERR_BADHANDLE);
	/* and for its server */
	stripe_rig.server++;
	assert_int_equal(stripe_info(&c, NULL), STRIPE_ERR_BADHANDLE);
	assert_int_equal(stripe_fence(&c, &object, 2, NULL, NULL), STRIPE_ERR_BADHANDLE);
	stripe_rig.server--;
	see(&c, 0, data, 10, 10);
	stop(&c);
}

static void lists(void **state)
{
	struct stripe_client c;
	stripe_entry list[STRIPE_LIST_MAX];
	unsigned n = 0, all = 0;
	stripe_name last;
	bool eof = false;
	int fd;

	(void)state;
	start(&c);
	for (unsigned i = 0; i < STRIPE_LIST_MAX + 10; i++) {
		c.handle.name = stripe_rig_name((uint8_t)(i % 3 * 100), (uint8_t)i);
		c.handle.name.stripe = i % 2;
		assert_int_equal(stripe_write(&c, 0, data, i + 1, false), STRIPE_OK);
	}
	fd = open(tmp_dir_path(&stripe_rig.dir, "s/objects/00/other"), O_CREAT | O_WRONLY, 0600); /* not ours */
	assert_true(fd >= 0);
	close(fd);
	for (;;) {
		assert_int_equal(stripe_list(&c, all ? &last : NULL, list, &n, &eof), STRIPE_OK);
		for (unsigned i = 0; i < n; i++) {
			assert_int_equal(list[i].stat.bytes, (unsigned char)list[i].name.object[STRIPE_OBJECT_BYTES - 1] + 1u);
			assert_true(list[i].stat.exists && list[i].stat.epoch == 1);
			if (all + i)
				assert_true(memcmp(last.object, list[i].name.object, STRIPE_OBJECT_BYTES) < 0);
			last = list[i].name;
		}
		all += n;
		if (eof)
			break;
		assert_int_equal(n, STRIPE_LIST_MAX);
	}
	assert_int_equal(all, STRIPE_LIST_MAX + 10);
	stop(&c);
}

/* A record that is not ours: the object is not served, and LIST tells. */
static void damaged(void **state)
{
	struct stripe_client c;
	stripe_entry list[STRIPE_LIST_MAX];
	const char *const names[] = { "trusted.leat", "user.leat" };
	unsigned n = 0, set = 0;
	bool eof;

	(void)state;
	start(&c);
	assert_int_equal(stripe_fence(&c, &object, 2, NULL, NULL), STRIPE_OK);
	stripe_close(&c);
	stripe_rig_end_server();
	for (unsigned i = 0; i < ARRAY_SIZE(names); i++)
		set += !setxattr(stripe_rig_path(&object), names[i], "nonsense", 8, XATTR_REPLACE);
	assert_int_equal(set, 1);
	assert_int_equal(stripe_rig_start(CACHED), 0);
	stripe_connect(&c, 9, 0, &object);
	assert_int_equal(stripe_write(&c, 0, data, 10, false), STRIPE_ERR_IO);
	assert_int_equal(stripe_fence(&c, &object, 3, NULL, NULL), STRIPE_ERR_IO);
	assert_int_equal(stripe_list(&c, NULL, list, &n, &eof), STRIPE_OK);
	assert_int_equal(n, 1);
	assert_int_equal(list[0].stat.epoch, 0);
	stop(&c);
}

/* ---- lanes ---- */

static void late_lane(void **state)
{
	struct stripe_client c, old;
	struct stripe_rig_call late, next;

	(void)state;
	start(&c);
	assert_int_equal(stripe_write(&c, 0, data, 100, false), STRIPE_OK);
	hold_writes();
	stripe_write_begin_at(&c, &late, 0, data + 1, 3000, false);
	wait_held(1);
	count_from("stripe_lane_waits");
	stripe_reconnect(&c, &old);
	stripe_write_begin_at(&c, &next, 0, data + 2, 3000, false);
	stripe_run_until(has_counted, &next);
	assert_int_equal(atomic_load(&held), 1);
	assert_false(next.done);
	let_writes_go(1);
	assert_int_equal(stripe_end(&next), STRIPE_OK);
	see(&c, 0, data + 2, 3000, 3000);
	rpcrdma_clnt_destroy(old.clnt); /* ends its call */
	/* a connection of the older incarnation that comes late */
	old = c;
	old.lane.incarnation = 1;
	stripe_connect(&old, c.lane.instance, 0, &object);
	assert_int_equal(stripe_write(&old, 0, data + 3, 10, false), STRIPE_ERR_OLDLANE);
	old.lane.incarnation = c.lane.incarnation;
	assert_int_equal(stripe_write(&old, 0, data + 3, 10, false), STRIPE_ERR_OLDLANE);
	see(&c, 0, data + 2, 3000, 3000);
	/* also when the newer one has gone */
	stripe_close(&c);
	assert_int_equal(stripe_write(&old, 0, data + 3, 10, false), STRIPE_ERR_OLDLANE);
	old.lane.incarnation++;
	assert_int_equal(stripe_write(&old, 0, data + 3, 10, false), STRIPE_OK);
	stop(&old);
}

/* A call that waits until its handle has expired does nothing. */
static void expires_late(void **state)
{
	struct stripe_client c, old;
	struct stripe_rig_call late, next;

	(void)state;
	start(&c);
	assert_int_equal(stripe_write(&c, 0, data, 100, false), STRIPE_OK);
	hold_writes();
	stripe_write_begin_at(&c, &late, 0, data + 1, 3000, false);
	wait_held(1);
	count_from("stripe_lane_waits");
	stripe_reconnect(&c, &old);
	stripe_write_begin_at(&c, &next, 0, data + 2, 3000, false);
	stripe_run_until(has_counted, &next);
	atomic_store(&ahead, 1000);
	let_writes_go(1);
	assert_int_equal(stripe_end(&next), STRIPE_ERR_EXPIRED);
	atomic_store(&ahead, 0);
	see(&c, 0, data + 1, 3000, 4000);
	rpcrdma_clnt_destroy(old.clnt);
	stop(&c);
}

/* One client may have as many lanes; an idle one is forgotten for a new one. */
static void lanes_are_shared(void **state)
{
	struct stripe_client c;

	(void)state;
	start(&c);
	for (unsigned i = 0; i < STRIPE_LANES_CLIENT; i++) {
		c.lane.instance = 1000 + i / 100;
		c.lane.slot = i % 100;
		assert_int_equal(stripe_write(&c, 0, data, 10, false), STRIPE_OK);
	}
	c.lane.instance = 5000;
	assert_int_equal(stripe_write(&c, 0, data, 10, false), STRIPE_ERR_LATER); /* all have this connection */
	stripe_close(&c);
	stripe_connect(&c, 5000, 0, &object);
	while (stripe_write(&c, 0, data, 10, false) == STRIPE_ERR_LATER) /* the server has yet to see the end */
		;
	see(&c, 0, data, 10, 10);
	stop(&c);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(moves),
		cmocka_unit_test(moves_cached),
		cmocka_unit_test(moves_in_pieces),
		cmocka_unit_test(moves_tcp),
		cmocka_unit_test(bad_ranges),
		cmocka_unit_test(full),
		cmocka_unit_test(sync_fails),
		cmocka_unit_test(files_are_closed),
		cmocka_unit_test(closes_without_sync),
		cmocka_unit_test(reads_while_created),
		cmocka_unit_test(refused),
		cmocka_unit_test(other_clients),
		cmocka_unit_test(handles),
		cmocka_unit_test(two_keys),
		cmocka_unit_test(fences),
		cmocka_unit_test(fences_nothing),
		cmocka_unit_test(fence_waits),
		cmocka_unit_test(fence_times_out),
		cmocka_unit_test(cut_is_done_first),
		cmocka_unit_test(removes),
		cmocka_unit_test(remove_waits),
		cmocka_unit_test(sets_aside),
		cmocka_unit_test(tombstones_go),
		cmocka_unit_test(tombstones_are_swept),
		cmocka_unit_test(terms),
		cmocka_unit_test(newer_term_waits),
		cmocka_unit_test(handles_of_managers),
		cmocka_unit_test(commands_are_bound),
		cmocka_unit_test(lists),
		cmocka_unit_test(damaged),
		cmocka_unit_test(late_lane),
		cmocka_unit_test(expires_late),
		cmocka_unit_test(lanes_are_shared),
	};

	stripe_times.close_ns = 3600 * NS_PER_S; /* connections stay, however slow the machine is */
	sem_init(&let_go, 0, 0);
	sem_init(&let_sync_go, 0, 0);
	for (unsigned i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7 + (i >> 8) + 3);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
