/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * stripe_object.c - an object of a stripe server in this process: what it holds, and what its disk is made to do
 */
#include <errno.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "inside.h"
#include "server.h"
#include "stripe_object.h"
#include "stripe_vol.h"

uint8_t data[(1 << 20) + 4], mem[1 << 20];
stripe_name object;

/* ---- syncs ---- */

atomic_uint syncs;
atomic_bool syncs_fail;

static atomic_bool hold_sync, sync_held;
static sem_t let_sync_go; /* zeroed: as by sem_init() with 0 */

int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);

static int fail_sync(void)
{
	errno = EIO;
	return -1;
}

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

void object_hold_sync(void)
{
	atomic_store(&sync_held, false);
	atomic_store(&hold_sync, true);
}

void object_wait_sync_held(void)
{
	stripe_run_until(is_sync_held, NULL);
}

void object_let_sync_go(void)
{
	sem_post(&let_sync_go);
}

/* ---- the clock ---- */

_Atomic uint64_t ahead;

uint64_t __real_stripe_now(void);
uint64_t __wrap_stripe_now(void);

uint64_t __wrap_stripe_now(void)
{
	return __real_stripe_now() + atomic_load(&ahead);
}

uint64_t object_soon(void)
{
	return (uint64_t)time(NULL) + 1000;
}

/* ---- calls that wait ---- */

static const char *counter;
static uint64_t counted;

void object_hold_write(struct stripe_client *c, struct stripe_rig_call *call, const uint8_t *from)
{
	int n = 1;

	held_writes_begin();
	stripe_write_begin_at(c, call, 0, from, 3000, false);
	stripe_run_until(held_writes_are, &n);
}

void object_count_from(const char *name)
{
	counter = name;
	counted = server_counters(stripe_rig.srv, name);
}

static bool has_counted(void *call)
{
	return server_counters(stripe_rig.srv, counter) > counted || ((struct stripe_rig_call *)call)->done ||
	       held_writes() > 1;
}

void object_wait_counted(struct stripe_rig_call *call)
{
	stripe_run_until(has_counted, call);
}

/* ---- the object ---- */

int object_group(void **state)
{
	(void)state;
	stripe_times.close_ns = 3600 * NS_PER_S;
	for (unsigned i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7 + (i >> 8) + 3);
	return 0;
}

void object_start(struct stripe_client *c)
{
	object = stripe_rig_name(0xa7, 1);
	assert_int_equal(stripe_rig_start(STRIPE_CACHED), 0);
	stripe_connect(c, 1, 0, &object);
}

void object_stop(struct stripe_client *c)
{
	stripe_close(c);
	stripe_rig_stop();
}

void object_restart(struct stripe_client *c)
{
	stripe_close(c);
	stripe_rig_end_server();
	assert_int_equal(stripe_rig_start(STRIPE_CACHED), 0);
	stripe_connect(c, c->lane.instance + 1, 0, &object);
}

void object_see(struct stripe_client *c, uint64_t off, const uint8_t *want, uint32_t bytes, uint32_t count)
{
	uint32_t got = UINT32_MAX;
	bool eof = false;

	memset(mem, 0xee, sizeof(mem));
	assert_int_equal(stripe_read(c, off, mem, count, &got, &eof), STRIPE_OK);
	assert_int_equal(got, bytes);
	assert_int_equal(eof, bytes < count);
	assert_memory_equal(mem, want, bytes);
}

stripe_stat object_stat(struct stripe_client *c)
{
	stripe_stat st = { .bytes = 99 };

	assert_int_equal(stripe_stat_of(c, &object, &st), STRIPE_OK);
	return st;
}
