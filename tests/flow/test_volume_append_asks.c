/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_volume_append_asks.c - clients append while another one may have written without a range: the manager asks the stripe
 * servers first
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "leat.h"
#include "leat_volume.h"
#include "rpcrdma.h"
#include "rpcrdma_loop.h"
#include "volume_pending.h"
#include "volume_rig.h"
#include "volume_watch.h"

LOG_DEFINE("test_volume_append_asks");

#define UNIT 65536u
#define APPENDERS 4u
#define RECORD 100u
#define NAME "log"
#define DRAIN_EVERY_NS (2 * NS_PER_MS) /* of reactor.c */
#define DRAINS 30u

/* ---- the manager ---------------------------------------------------------------------------- */

static atomic_uint hold; /* the question whose number-th reply comes from now on waits; 0: none does */
static sem_t held, let_go;
static sem_t queued; /* requests that wait for a question */
static atomic_uint to_refuse, refused, begun, ended; /* requests that may not wait; those that did */

static void (*_Atomic told)(struct volume_asker *a); /* of all requests that wait for a question */
static _Thread_local bool is_telling;
static atomic_bool is_slow, was_destroyed; /* the thread that tells; a reactor, meanwhile */
static sem_t posted;
static atomic_uint drains; /* looks of a reactor whether it may end */

struct client;
struct reactor;
void __real_volume_pending_queue(struct volume_pending *p, struct volume_asker *a);
void __wrap_volume_pending_queue(struct volume_pending *p, struct volume_asker *a);
bool __real_client_begin_wait(struct client *c);
bool __wrap_client_begin_wait(struct client *c);
void __real_client_end_wait(struct client *c);
void __wrap_client_end_wait(struct client *c);

void __real_rpcrdma_engine_post(struct rpcrdma_engine *e, struct rpcrdma_msg *msg);
void __wrap_rpcrdma_engine_post(struct rpcrdma_engine *e, struct rpcrdma_msg *msg);
void __real_rpcrdma_timer_set(struct rpcrdma_engine *e, struct rpcrdma_timer *t, uint64_t delay_ns);
void __wrap_rpcrdma_timer_set(struct rpcrdma_engine *e, struct rpcrdma_timer *t, uint64_t delay_ns);
void __real_reactor_destroy(struct reactor *r);
void __wrap_reactor_destroy(struct reactor *r);

static void mark_told(struct volume_asker *a)
{
	is_telling = true;
	atomic_load(&told)(a);
	is_telling = false;
}

void __wrap_rpcrdma_engine_post(struct rpcrdma_engine *e, struct rpcrdma_msg *msg)
{
	__real_rpcrdma_engine_post(e, msg);
	if (!is_telling || !atomic_exchange(&is_slow, false))
		return;
	(void)sem_post(&posted);
	while (atomic_load(&drains) < DRAINS && !atomic_load(&was_destroyed))
		(void)poll(NULL, 0, 1);
	atomic_store(&drains, DRAINS);
}

void __wrap_rpcrdma_timer_set(struct rpcrdma_engine *e, struct rpcrdma_timer *t, uint64_t delay_ns)
{
	if (delay_ns == DRAIN_EVERY_NS)
		atomic_fetch_add(&drains, 1);
	__real_rpcrdma_timer_set(e, t, delay_ns);
}

void __wrap_reactor_destroy(struct reactor *r)
{
	if (atomic_load(&drains) < DRAINS)
		atomic_store(&was_destroyed, true);
	__real_reactor_destroy(r);
}

static void stat_replied(void)
{
	if (!atomic_load(&hold) || atomic_fetch_sub(&hold, 1) != 1)
		return;
	(void)sem_post(&held);
	while (sem_wait(&let_go))
		;
}

void __wrap_volume_pending_queue(struct volume_pending *p, struct volume_asker *a)
{
	atomic_store(&told, a->done);
	a->done = mark_told;
	__real_volume_pending_queue(p, a);
	(void)sem_post(&queued);
}

bool __wrap_client_begin_wait(struct client *c)
{
	if (atomic_load(&to_refuse)) {
		atomic_fetch_sub(&to_refuse, 1);
		atomic_fetch_add(&refused, 1);
		return false;
	}
	atomic_fetch_add(&begun, 1);
	return __real_client_begin_wait(c);
}

void __wrap_client_end_wait(struct client *c)
{
	atomic_fetch_add(&ended, 1);
	__real_client_end_wait(c);
}

/* ---- clients -------------------------------------------------------------------------------- */

static struct leat *other; /* it writes without ranges, and reports nothing */
static struct leat_file *g;

static struct appender {
	struct leat *m;
	struct leat_file *f;
	pthread_t thread;
	ssize_t rc;
	uint64_t off;
} appenders[APPENDERS];

static void wait_for(sem_t *s)
{
	while (sem_wait(s))
		;
}

static int begin(void **state)
{
	static const char byte[1];

	(void)state;
	assert_int_equal(sem_init(&held, 0, 0), 0);
	assert_int_equal(sem_init(&let_go, 0, 0), 0);
	assert_int_equal(sem_init(&queued, 0, 0), 0);
	other = volume_rig_mount(NULL);
	g = volume_rig_open(other, NAME, O_RDWR | O_CREAT | O_TRUNC);
	atomic_store(&volume_watch.is_silent, true);
	assert_int_equal(leat_pwrite(g, byte, 1, 9), 1);
	for (unsigned i = 0; i < APPENDERS; i++) {
		appenders[i].m = volume_rig_mount(NULL);
		appenders[i].f = volume_rig_open(appenders[i].m, NAME, O_WRONLY | O_APPEND);
	}
	atomic_store(&volume_watch.stats, 0);
	return 0;
}

static int end(void **state)
{
	(void)state;
	atomic_store(&volume_watch.is_silent, false);
	for (unsigned i = 0; i < APPENDERS; i++) {
		assert_int_equal(leat_close(appenders[i].f), 0);
		leat_umount(appenders[i].m);
	}
	assert_int_equal(leat_close(g), 0);
	leat_umount(other);
	assert_int_equal(atomic_load(&begun), atomic_load(&ended));
	return 0;
}

static void *append(void *arg)
{
	struct appender *a = arg;
	char record[RECORD];

	memset(record, (int)('a' + (a - appenders)), sizeof(record));
	a->rc = leat_write(a->f, record, sizeof(record));
	a->off = (uint64_t)leat_lseek(a->f, 0, SEEK_CUR) - RECORD;
	return NULL;
}

static void start_append(unsigned i)
{
	assert_int_equal(pthread_create(&appenders[i].thread, NULL, append, &appenders[i]), 0);
}

static void end_append(unsigned i, ssize_t rc)
{
	assert_int_equal(pthread_join(appenders[i].thread, NULL), 0);
	assert_int_equal(appenders[i].rc, rc);
}

/* ---- tests ---------------------------------------------------------------------------------- */

/* Three requests come while the question of the first one is on its way: they share another one. It is a later question: what
 * the other client has written meanwhile is in front of them. */
static void one_question_for_all(void **state)
{
	static const char bytes[1000];

	(void)state;
	atomic_store(&hold, 4);
	start_append(0);
	wait_for(&queued);
	wait_for(&held);
	assert_int_equal(leat_pwrite(g, bytes, sizeof(bytes), 10), sizeof(bytes));
	for (unsigned i = 1; i < APPENDERS; i++)
		start_append(i);
	for (unsigned i = 1; i < APPENDERS; i++)
		wait_for(&queued);
	(void)sem_post(&let_go);
	for (unsigned i = 0; i < APPENDERS; i++)
		end_append(i, RECORD);
	if (appenders[0].off != 10) /* its worker was overtaken */
		assert_in_range(appenders[0].off, 10 + sizeof(bytes), 10 + sizeof(bytes) + 3 * RECORD);
	for (unsigned i = 1; i < APPENDERS; i++)
		assert_in_range(appenders[i].off, 10 + sizeof(bytes), 10 + sizeof(bytes) + 3 * RECORD);
	assert_int_equal(atomic_load(&volume_watch.stats), 8);
}

/* Requests for other files are not served by it. */
static void another_file(void **state)
{
	struct leat_file *f = volume_rig_open(other, "another", O_WRONLY | O_CREAT);

	(void)state;
	assert_int_equal(leat_pwrite(f, "xyz", 3, 0), 3);
	assert_int_equal(leat_close(appenders[1].f), 0);
	appenders[1].f = volume_rig_open(appenders[1].m, "another", O_WRONLY | O_APPEND);
	atomic_store(&hold, 4);
	start_append(0);
	wait_for(&held);
	start_append(1);
	start_append(2);
	for (unsigned i = 0; i < 3; i++)
		wait_for(&queued);
	(void)sem_post(&let_go);
	for (unsigned i = 0; i < 3; i++)
		end_append(i, RECORD);
	assert_int_equal(appenders[1].off, 3);
	assert_int_equal(appenders[2].off, 10 + RECORD);
	assert_int_equal(atomic_load(&volume_watch.stats), 12);
	atomic_store(&volume_watch.is_silent, false);
	assert_int_equal(leat_close(f), 0);
}

/* A client that has its share of waiting requests tries again later. */
static void share_is_used(void **state)
{
	(void)state;
	atomic_store(&to_refuse, 1);
	atomic_store(&refused, 0);
	start_append(0);
	end_append(0, RECORD);
	assert_int_equal(atomic_load(&refused), 1);
	assert_int_equal(sem_trywait(&queued), 0);
	assert_int_equal(sem_trywait(&queued), -1);
	assert_int_equal(appenders[0].off, 10);
}

/* A client goes while its request waits. */
static void client_goes(void **state)
{
	(void)state;
	atomic_store(&hold, 1);
	start_append(0);
	wait_for(&held);
	leat_interrupt(appenders[0].m);
	end_append(0, -EINPROGRESS);
	assert_int_equal(leat_close(appenders[0].f), 0);
	leat_umount(appenders[0].m);
	(void)sem_post(&let_go);
	start_append(1);
	end_append(1, RECORD);
	appenders[0].m = volume_rig_mount(NULL);
	appenders[0].f = volume_rig_open(appenders[0].m, NAME, O_WRONLY | O_APPEND);
}

/* The server ends while the thread that has told a request of its question is still at it. */
static void server_ends(void **state)
{
	(void)state;
	assert_int_equal(sem_init(&posted, 0, 0), 0);
	atomic_store(&is_slow, true);
	atomic_store(&drains, 0);
	start_append(0);
	end_append(0, RECORD);
	wait_for(&posted);
	atomic_store(&drains, 0);
	volume_rig_end_manager();
	assert_false(atomic_load(&was_destroyed));
	volume_rig_start_manager();
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(one_question_for_all, begin, end),
		cmocka_unit_test_setup_teardown(another_file, begin, end),
		cmocka_unit_test_setup_teardown(share_is_used, begin, end),
		cmocka_unit_test_setup_teardown(client_goes, begin, end),
		cmocka_unit_test_setup_teardown(server_ends, begin, end),
	};

	atomic_store(&volume_watch.replied, stat_replied);
	(void)alarm(120); /* a client that waits for a manager may wait for ever */
	return cmocka_run_group_tests(tests, volume_rig_setup, volume_rig_teardown);
}
