/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_leat_wakeups.c - how often a call wakes the service thread, and what runs on which thread meanwhile
 *
 * Before each counted call the test waits until the service thread sleeps; so the counts do not depend on speed.
 */
#include "inside.h"
#include "test_leat_mount.h"
#include "thread_state.h"

LOG_DEFINE("test_leat_wakeups");

#define CALLS 200u
#define ROUNDS 1000u
#define FLIGHTS 64u
#define BLOCK 4096u
#define BLOCKS 200u
#define LONG (32 * BLOCK)
#define NO_VISITS "callers do not take the place of the service thread, which their own Sends would wake"

static void note_thread(void *arg, int64_t result)
{
	(void)result;
	atomic_store((_Atomic pid_t *)arg, gettid());
}

static pid_t thread_of(struct leat *m)
{
	_Atomic pid_t tid = 0;

	assert_int_equal(leat_aio_null(m, (struct leat_cb){ note_thread, &tid, NULL }), 0);
	while (!atomic_load(&tid))
		sched_yield();
	return atomic_load(&tid);
}

static struct leat *mount_service(const char *url, const char *options, pid_t *ret_service)
{
	struct leat *m = leat_flow_mount(url, options);

	assert_int_equal(leat_service_start(leat_session(m)), 0);
	*ret_service = thread_of(m);
	thread_await_sleep(*ret_service);
	return m;
}

static struct leat_file *open_blocks(struct leat *m)
{
	static char bytes[BLOCKS * BLOCK];
	struct leat_file *f;

	assert_int_equal(leat_open(m, "blocks", O_RDWR | O_CREAT, 0600, &f), 0);
	assert_int_equal(leat_pwrite(f, bytes, sizeof(bytes), 0), sizeof(bytes));
	return f;
}

/* the names of the mount, or the blocks of @f in no order */
static void call_once(struct leat *m, struct leat_file *f, unsigned i)
{
	static char buf[BLOCK];
	struct stat st;

	if (!f) {
		assert_int_equal(i % 2 ? leat_null(m) : leat_stat(m, "", &st), 0);
		return;
	}
	assert_int_equal(leat_lseek(f, (int64_t)(i * 7919 % BLOCKS * BLOCK), SEEK_SET), i * 7919 % BLOCKS * BLOCK);
	assert_int_equal(leat_read(f, buf, BLOCK), BLOCK);
}

/* Wake-ups of the service thread by @calls calls, of which @first is the first, and one more. */
static uint64_t wakeups(struct leat *m, struct leat_file *f, pid_t service, unsigned first, unsigned calls)
{
	uint64_t before = leat_flow_stat(m, "sleeps");

	for (unsigned i = 0; i < calls; i++) {
		thread_await_sleep(service);
		call_once(m, f, first + i);
	}
	thread_await_sleep(service);
	return leat_flow_stat(m, "sleeps") - before;
}

/* The reply wakes the service thread, the call itself does not. */
static void one_wakeup(void **state)
{
	pid_t service;
	struct leat *m;

	(void)state;
	leat_flow_skip_rdma(NO_VISITS);
	m = mount_service(flow.tcp_url, "cache=none", &service);
	assert_in_range(wakeups(m, NULL, service, 0, CALLS), 0, CALLS * 3 / 2);
	leat_umount(m);
	m = mount_service(flow.local_url, "cache=none&poll=event", &service);
	assert_in_range(wakeups(m, NULL, service, 0, CALLS), 0, CALLS * 3 / 2);
	leat_umount(m);
}

/* A caller that polls gets the reply itself, unless others need the processor: so one such call is enough. */
static void no_wakeup_by(struct leat *m, struct leat_file *f, pid_t service)
{
	bool none = false;

	for (unsigned i = 0; i < ROUNDS && !none; i++)
		none = wakeups(m, f, service, i, 1) <= 1; /* leat_stats() causes it */
	assert_true(none);
}

static void no_wakeup(void **state)
{
	pid_t service;
	struct leat_file *f;
	struct leat *m;

	(void)state;
	leat_flow_skip_rdma(NO_VISITS);
	m = mount_service(flow.local_url, "cache=none&spin=20ms", &service);
	no_wakeup_by(m, NULL, service);
	leat_umount(m);
	/* a read that is an operation within another one */
	m = mount_service(flow.local_url, "spin=20ms", &service);
	f = open_blocks(m);
	no_wakeup_by(m, f, service);
	assert_int_equal(leat_close(f), 0);
	leat_umount(m);
}

struct flight {
	pid_t service;
	struct stat st;
	struct leat_file *f;
	char bytes[LONG];
	atomic_uint *ended, *elsewhere;
};

static void landed(void *arg, int64_t result)
{
	struct flight *v = arg;

	if (gettid() != v->service || result < 0)
		atomic_fetch_add(v->elsewhere, 1);
	atomic_fetch_add(v->ended, 1);
}

static int start_flight(struct leat *m, struct flight *v, unsigned i)
{
	struct leat_cb cb = { landed, v, NULL };

	if (i % 3 == 0)
		return leat_aio_stat(m, "", &v->st, cb);
	return i % 3 == 1 ? leat_aio_null(m, cb) : leat_aio_read_at(v->f, v->bytes, LONG, BLOCK, cb);
}

/* Whatever thread gets the replies, and also if an operation needs no call, callbacks run on the service thread. */
static void callbacks_on(const char *url, const char *options)
{
	static struct flight flights[FLIGHTS];
	atomic_uint ended = 0, elsewhere = 0;
	pid_t service;
	struct leat *m = mount_service(url, options, &service);
	struct stat st;
	static char bytes[LONG];

	assert_int_equal(leat_stat(m, "", &st), 0);
	for (unsigned i = 0; i < FLIGHTS; i++) {
		flights[i] = (struct flight){ .service = service, .ended = &ended, .elsewhere = &elsewhere };
		flights[i].f = open_blocks(m);
	}
	for (unsigned i = 0; i < FLIGHTS; i++) {
		struct flight *v = &flights[i];

		if (i % 4 == 0 || i % 4 == 3)
			thread_await_sleep(service);
		assert_int_equal(start_flight(m, v, i), 0);
		if (i % 4 == 3)
			assert_int_equal(leat_pread(v->f, bytes, LONG, 0), LONG);
	}
	while (atomic_load(&ended) < FLIGHTS)
		sched_yield();
	assert_int_equal(atomic_load(&elsewhere), 0);
	for (unsigned i = 0; i < FLIGHTS; i++)
		assert_int_equal(leat_close(flights[i].f), 0);
	leat_umount(m);
}

static void callbacks(void **state)
{
	(void)state;
	callbacks_on(flow.tcp_url, NULL);
	callbacks_on(flow.local_url, NULL);
	callbacks_on(flow.local_url, "spin=20ms");
	callbacks_on(flow.local_url, "poll=event&cache=none");
}

/* The function of leat_set_away() is one of the program, too. The reply that ends the silence calls it. */
static void away(void **state)
{
	pid_t service;
	struct leat *m;

	(void)state;
	leat_flow_skip_rdma(NO_VISITS);
	m = mount_service(flow.tcp_url, NULL, &service);
	assert_false(leat_admits_away(m));
	assert_int_equal(leat_null(m), 0);
	leat_umount(m);
}

/* The service thread sleeps without a limit when the caller sets the timers of its call. */
static void deadline(void **state)
{
	pid_t service;
	struct leat *m = mount_service(flow.tcp_url, leat_flow_rdma() ? "retry=soft&timeo=1000" : "retry=soft&timeo=50", &service);

	(void)state;
	leat_flow_stop(&flow);
	thread_await_sleep(service);
	for (int i = 0; i < 3; i++)
		assert_int_equal(leat_null(m), -ETIMEDOUT);
	leat_flow_start(&flow);
	leat_umount(m);
}

static void *call_many(void *arg)
{
	struct leat *m = arg;
	intptr_t bad = 0;

	for (unsigned i = 0; i < leat_flow_fewer(4 * CALLS); i++) {
		struct stat st;

		bad += i % 2 ? leat_null(m) != 0 : leat_stat(m, "", &st) != 0;
	}
	return (void *)bad;
}

/* Callers take turns with each other and with the service thread. */
static void crowd_on(const char *url, const char *options)
{
	pid_t service;
	struct leat *m = mount_service(url, options, &service);
	pthread_t t[4];

	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&t[i], NULL, call_many, m), 0);
	for (unsigned i = 0; i < 4; i++) {
		void *bad;

		pthread_join(t[i], &bad);
		assert_null(bad);
	}
	leat_umount(m);
}

static void crowd(void **state)
{
	(void)state;
	crowd_on(flow.tcp_url, "cache=none");
	crowd_on(flow.local_url, "cache=none");
	crowd_on(flow.local_url, NULL);
	crowd_on(flow.local_url, "cache=none&poll=event");
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(one_wakeup),
	cmocka_unit_test(no_wakeup),
	cmocka_unit_test(callbacks),
	cmocka_unit_test(away),
	cmocka_unit_test(crowd),
	cmocka_unit_test(deadline),
};

int main(void)
{
	return cmocka_run_group_tests(tests, setup, teardown);
}
