/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_leat_umount.c - the end of mounts and sessions in the middle of everything; calls that cannot be right
 */
#include <semaphore.h>

#include "inside.h"
#include "leat_admin.h"
#include "test_leat_mount.h"

LOG_DEFINE("test_leat_umount");

#define MANY 100u
#define BYTES ((size_t)64 << 10)
#define ROUNDS leat_flow_fewer(40)
#define POISON 0xdb

struct end;

/* An operation of a mount that ends. */
struct flight {
	struct end *e;
	unsigned fn, freed;
	int64_t result;
	uint8_t *mem;
	struct leat_file *f;
	struct leat_dir *dir;
	struct stat st;
};

struct end {
	struct leat *m;
	struct leat_file *f;
	bool restarts;         /* each callback starts an operation, as long as that is possible */
	unsigned refused;
	uint8_t *mem;
	struct flight v[MANY];
};

static struct end end;

static struct leat *mount_in(struct leat_session *s, const char *url)
{
	struct leat *m = NULL;

	if (leat_session_mount(s, url, NULL, &m))
		fail_msg("%s", leat_error(NULL));
	return m;
}

static void restarted(void *arg, int64_t result)
{
	struct end *e = arg;
	int rc;

	(void)result;
	rc = leat_aio_null(e->m, (struct leat_cb){ restarted, e, NULL });
	e->refused += rc == -ECANCELED;
	if (rc != 0 && rc != -ECANCELED)
		e->refused = MANY * 2; /* not on a thread that may assert */
}

static void landed(void *arg, int64_t result)
{
	struct flight *v = arg;

	v->fn++;
	v->result = result;
	memset(v->mem, POISON, BYTES);
	if (v->e->restarts)
		restarted(v->e, 0);
}

static void landed_free(void *arg)
{
	((struct flight *)arg)->freed++;
}

static int take_off(struct end *e, unsigned i)
{
	struct flight *v = &e->v[i];
	struct leat_cb cb = { landed, v, landed_free };
	char name[32];

	*v = (struct flight){ .e = e, .mem = e->mem + i * BYTES };
	snprintf(name, sizeof(name), "new%u", i);
	switch (i % 7) {
	case 0:
		return leat_aio_open(e->m, "file", O_RDONLY, 0, &v->f, cb);
	case 1:
		return leat_aio_open(e->m, name, O_CREAT | O_RDWR, 0600, &v->f, cb);
	case 2:
		return leat_aio_stat(e->m, "file", &v->st, cb);
	case 3:
		return leat_aio_opendir(e->m, "/", &v->dir, cb);
	case 4:
		return leat_aio_pwrite(e->f, v->mem, BYTES, 0, cb);
	default:
		return leat_aio_pread(e->f, v->mem, BYTES, 0, cb);
	}
}

static void begin(struct end *e, struct leat *m, uint8_t *mem)
{
	*e = (struct end){ .m = m, .mem = mem };
	assert_int_equal(leat_open(m, "file", O_RDWR | O_CREAT, 0600, &e->f), 0);
	memset(mem, 1, BYTES);
	assert_int_equal(leat_pwrite(e->f, mem, BYTES, 0), BYTES);
}

static void start_all(struct end *e)
{
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(take_off(e, i), 0);
}

static void check_all(struct end *e)
{
	for (unsigned i = 0; i < MANY; i++) {
		assert_int_equal(e->v[i].fn, 1);
		assert_int_equal(e->v[i].freed, 1);
		assert_int_equal(e->v[i].mem[0], POISON);
		assert_memory_equal(e->v[i].mem, e->v[i].mem + 1, BYTES - 1);
		leat_closedir(e->v[i].dir); /* also after the mount */
	}
	assert_in_range(e->refused, 0, 2 * MANY - 1);
}

/* A hundred operations in flight, and a limit that ends some of them, at any point. */
static void many_in_flight(void **state)
{
	struct leat_session *s;
	struct leat *other;
	void *mem;

	(void)state;
	assert_int_equal(leat_session_create(NULL, &s), 0);
	assert_int_equal(leat_buf_alloc(s, MANY * BYTES, &mem), 0);
	other = mount_in(s, flow.local_url);
	for (unsigned i = 0; i < ROUNDS; i++) {
		bool serve = i / 2 % 2;
		int rc;

		begin(&end, mount_in(s, i % 2 ? flow.tcp_url : flow.local_url), mem);
		if (serve)
			assert_int_equal(leat_service_start(s), 0);
		start_all(&end);
		for (unsigned n = 0; !serve && n < i; n++)
			assert_true(leat_poll(s, 0) >= 0);
		rc = leat_umount_within(end.m, 0);
		assert_true(rc == 0 || rc == -ETIMEDOUT);
		if (serve)
			leat_service_stop(s);
		/* whatever the server still does for them is done before this reply, or soon */
		for (unsigned n = 0; n < 10; n++)
			assert_int_equal(leat_null(other), 0);
		check_all(&end);
	}
	leat_buf_free(s, mem);
	leat_umount(other);
	assert_int_equal(leat_session_free(s), 0);
}

/* Callbacks that start operations, while no server replies. */
static void callbacks_restart(void **state)
{
	uint8_t *mem = malloc(MANY * BYTES);
	struct leat_session *s;

	(void)state;
	assert_non_null(mem);
	alarm(90); /* the end of this test, if the mount does not end */
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(leat_session_create(NULL, &s), 0);
		begin(&end, i < 2 ? mount_in(s, flow.tcp_url) : leat_flow_mount(flow.local_url, NULL), mem);
		end.restarts = true;
		leat_flow_stop(&flow);
		if (i % 2)
			assert_int_equal(leat_service_start(leat_session(end.m)), 0);
		start_all(&end);
		assert_int_equal(leat_umount_within(end.m, 1), -ETIMEDOUT);
		assert_true(end.refused >= MANY / 2);
		check_all(&end);
		assert_int_equal(leat_session_free(s), 0);
		leat_flow_start(&flow);
	}
	alarm(0);
	free(mem);
}

/* ---- with other threads ---- */

static void *start_late(void *arg)
{
	struct end *e = arg;
	uintptr_t wrong = 0;

	for (unsigned i = 1; i < MANY; i++)
		wrong += take_off(e, i) != 0;
	return (void *)wrong;
}

static void *unmount(void *arg)
{
	struct end *e = arg;

	return (void *)(intptr_t)leat_umount_within(e->m, -1);
}

/* Another thread starts operations while the end waits for one: all of them are waited for. */
static void other_threads(void **state)
{
	uint8_t *mem = malloc(MANY * BYTES);
	struct leat_session *s;
	pthread_t starter, ender;
	void *rc;

	(void)state;
	assert_non_null(mem);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(leat_session_create(NULL, &s), 0);
		begin(&end, mount_in(s, i % 2 ? flow.tcp_url : flow.local_url), mem);
		assert_int_equal(leat_service_start(s), 0);
		leat_flow_stop(&flow);
		assert_int_equal(take_off(&end, 0), 0);
		assert_int_equal(pthread_create(&ender, NULL, unmount, &end), 0);
		assert_int_equal(pthread_create(&starter, NULL, start_late, &end), 0);
		pthread_join(starter, &rc);
		assert_null(rc);
		leat_flow_start(&flow);
		pthread_join(ender, &rc);
		assert_null(rc);
		check_all(&end);
		assert_int_equal(leat_session_free(s), 0);
	}
	free(mem);
}

/* The mount cannot end while the callback of `anchor` waits for the gate. */
static struct {
	pthread_mutex_t gate;
	bool anchor_ended;
	struct leat *m;
	unsigned started, refused, wrong;
	atomic_uint fn, freed;
} race = { .gate = PTHREAD_MUTEX_INITIALIZER };

static void anchor_landed(void *arg, int64_t result)
{
	(void)arg;
	(void)result;
	pthread_mutex_lock(&race.gate);
	race.anchor_ended = true;
	pthread_mutex_unlock(&race.gate);
}

static void race_landed(void *arg, int64_t result)
{
	(void)arg;
	(void)result;
	atomic_fetch_add(&race.fn, 1);
}

static void race_freed(void *arg)
{
	(void)arg;
	atomic_fetch_add(&race.freed, 1);
}

static void *start_until_end(void *arg)
{
	bool ended = false;

	while (!ended) {
		pthread_mutex_lock(&race.gate);
		ended = race.anchor_ended;
		if (!ended) {
			int rc = leat_aio_mkdir(race.m, "raced", 0700,
						(struct leat_cb){ race_landed, NULL, race_freed });

			race.started++;
			race.refused += rc != 0;
			race.wrong += rc != 0 && rc != -ECANCELED;
		}
		pthread_mutex_unlock(&race.gate);
	}
	return arg;
}

/* Another thread starts operations up to the last moment, while no server replies. */
static void last_moment(void **state)
{
	struct leat_session *s;
	pthread_t starter;

	(void)state;
	alarm(90);
	for (unsigned i = 0; i < ROUNDS; i++) {
		race.anchor_ended = false;
		race.started = race.refused = race.wrong = 0;
		race.fn = race.freed = 0;
		assert_int_equal(leat_session_create(NULL, &s), 0);
		race.m = mount_in(s, i % 2 ? flow.tcp_url : flow.local_url);
		assert_int_equal(leat_service_start(s), 0);
		if (i >= ROUNDS / 2)
			leat_flow_stop(&flow);
		assert_int_equal(leat_aio_null(race.m, (struct leat_cb){ .fn = anchor_landed }), 0);
		assert_int_equal(pthread_create(&starter, NULL, start_until_end, NULL), 0);
		(void)leat_umount_within(race.m, (int)(i % 4));
		pthread_join(starter, NULL);
		assert_int_equal(race.wrong, 0);
		assert_int_equal(race.freed, race.started);
		assert_int_equal(race.fn, race.started - race.refused);
		assert_int_equal(leat_session_free(s), 0);
		if (i >= ROUNDS / 2)
			leat_flow_start(&flow);
	}
	alarm(0);
}

#define LINKS 6u

/* Each callback waits until the other thread has posted the start of the next operation. */
static struct {
	struct leat *m;
	sem_t running, ended, posted;
	atomic_uint fn, wrong;
} chain;

static void link_landed(void *arg, int64_t result)
{
	(void)arg;
	chain.wrong += result != 0;
	if (atomic_fetch_add(&chain.fn, 1) + 1 == LINKS)
		return;
	sem_post(&chain.ended);
	while (sem_wait(&chain.posted))
		;
}

static void *start_links(void *arg)
{
	for (unsigned i = 1; i < LINKS; i++) {
		while (sem_wait(&chain.ended))
			;
		chain.wrong += leat_aio_null(chain.m, (struct leat_cb){ .fn = link_landed }) != 0;
		sem_post(&chain.posted);
	}
	return arg;
}

/* Whenever the last operation ends, the start of another one is on its way. */
static void one_after_the_other(void **state)
{
	pthread_t starter, ender;
	struct leat_session *s;

	(void)state;
	assert_int_equal(sem_init(&chain.ended, 0, 0), 0);
	assert_int_equal(sem_init(&chain.posted, 0, 0), 0);
	for (unsigned i = 0; i < 4; i++) {
		atomic_store(&chain.fn, 0);
		assert_int_equal(leat_session_create(NULL, &s), 0);
		chain.m = end.m = mount_in(s, i % 2 ? flow.tcp_url : flow.local_url);
		assert_int_equal(leat_service_start(s), 0);
		leat_flow_stop(&flow);
		assert_int_equal(leat_aio_null(chain.m, (struct leat_cb){ .fn = link_landed }), 0);
		assert_int_equal(pthread_create(&ender, NULL, unmount, &end), 0);
		assert_int_equal(pthread_create(&starter, NULL, start_links, NULL), 0);
		leat_flow_start(&flow);
		pthread_join(starter, NULL);
		pthread_join(ender, NULL);
		assert_int_equal(chain.fn, LINKS);
		assert_int_equal(chain.wrong, 0);
		assert_int_equal(leat_session_free(s), 0);
	}
	sem_destroy(&chain.ended);
	sem_destroy(&chain.posted);
}

void __real_rpcrdma_engine_post(struct rpcrdma_engine *e, struct rpcrdma_msg *msg);
void __wrap_rpcrdma_engine_post(struct rpcrdma_engine *e, struct rpcrdma_msg *msg);

static _Thread_local bool is_ender;

/* The end of the mount posts its message, which looks for operations, while the callback of the only one runs; the
 * callback waits until another thread has posted a start. */
void __wrap_rpcrdma_engine_post(struct rpcrdma_engine *e, struct rpcrdma_msg *msg)
{
	bool is_first = is_ender;

	is_ender = false;
	if (is_first) {
		leat_flow_start(&flow);
		while (sem_wait(&chain.running))
			;
	}
	__real_rpcrdma_engine_post(e, msg);
	if (is_first)
		sem_post(&chain.ended);
}

static void first_landed(void *arg, int64_t result)
{
	(void)arg;
	chain.wrong += result != 0;
	sem_post(&chain.running);
	while (sem_wait(&chain.posted))
		;
}

static void second_landed(void *arg, int64_t result)
{
	(void)arg;
	chain.wrong += result != 0;
	atomic_fetch_add(&chain.fn, 1);
}

static void *start_second(void *arg)
{
	while (sem_wait(&chain.ended))
		;
	chain.wrong += leat_aio_null(chain.m, (struct leat_cb){ .fn = second_landed }) != 0;
	sem_post(&chain.posted);
	return arg;
}

/* The start of an operation is posted behind the message with which the end looks for operations. */
static void start_behind_the_end(void **state)
{
	struct leat_session *s;
	pthread_t starter;

	(void)state;
	assert_int_equal(sem_init(&chain.running, 0, 0), 0);
	assert_int_equal(sem_init(&chain.ended, 0, 0), 0);
	assert_int_equal(sem_init(&chain.posted, 0, 0), 0);
	atomic_store(&chain.fn, 0);
	assert_int_equal(leat_session_create(NULL, &s), 0);
	chain.m = mount_in(s, flow.local_url);
	assert_int_equal(leat_service_start(s), 0);
	leat_flow_stop(&flow);
	assert_int_equal(leat_aio_null(chain.m, (struct leat_cb){ .fn = first_landed }), 0);
	assert_int_equal(pthread_create(&starter, NULL, start_second, NULL), 0);
	is_ender = true;
	assert_int_equal(leat_drain(chain.m), 0);
	pthread_join(starter, NULL);
	assert_int_equal(chain.fn, 1);
	leat_umount(chain.m);
	assert_int_equal(chain.wrong, 0);
	assert_int_equal(leat_session_free(s), 0);
	sem_destroy(&chain.running);
	sem_destroy(&chain.ended);
	sem_destroy(&chain.posted);
}

/* A message of leat_interrupt() is on its way when the mount ends. */
static void interrupted_before(void **state)
{
	struct leat_session *s;
	struct leat *a, *b;

	(void)state;
	assert_int_equal(leat_session_create(NULL, &s), 0);
	for (unsigned i = 0; i < 3; i++) {
		b = mount_in(s, flow.local_url);
		a = mount_in(s, flow.tcp_url);
		if (i == 2)
			assert_int_equal(leat_service_start(s), 0);
		leat_interrupt(a);
		if (i)
			assert_int_equal(leat_umount_within(a, 0), 0);
		else
			leat_umount(a);
		assert_int_equal(leat_null(b), 0);
		leat_umount(b);
	}
	assert_int_equal(leat_session_free(s), 0);
}

/* Nothing is in flight: an end within no time makes no call that would have to wait for the server. */
static void idle_in_no_time(void **state)
{
	struct leat_session *s;
	struct leat *a, *b;
	uint64_t calls;

	(void)state;
	assert_int_equal(leat_session_create(NULL, &s), 0);
	a = mount_in(s, flow.local_url);
	b = mount_in(s, flow.local_url);
	calls = leat_flow_stat(b, "calls");
	assert_int_equal(leat_umount_within(a, 0), 0);
	assert_int_equal(leat_flow_stat(b, "calls"), calls);
	a = mount_in(s, flow.local_url);
	calls = leat_flow_stat(b, "calls");
	assert_int_equal(leat_umount_within(a, 60000), 0);
	assert_int_equal(leat_flow_stat(b, "calls"), calls + 1); /* UMNT */
	leat_umount(b);
	assert_int_equal(leat_session_free(s), 0);
}

/* ---- inside a callback ---- */

static struct leat *inside_m;
static unsigned inside_wrong;

static void inside(void *arg, int64_t result)
{
	struct leat_session *s = leat_session(inside_m);
	struct leat *m;

	inside_wrong += result != 0;
	inside_wrong += leat_cancel(inside_m, arg) != -ENOENT;
	(void)leat_cancel_all(inside_m); /* the synchronous call, which may have ended */
	inside_wrong += leat_null(inside_m) != -EDEADLK;
	inside_wrong += leat_session_mount(s, flow.local_url, NULL, &m) != -EDEADLK;
	inside_wrong += leat_umount_within(inside_m, 0) != -EDEADLK;
	inside_wrong += leat_session_free(s) != -EDEADLK;
	leat_service_stop(s);
	*(struct count *)arg = (struct count){ .fn = 1 };
}

static void in_callback(void **state)
{
	struct leat_session *s;
	struct count c;

	(void)state;
	assert_int_equal(leat_session_create(NULL, &s), 0);
	inside_m = mount_in(s, flow.local_url);
	for (unsigned i = 0; i < 2; i++) {
		c = (struct count){ 0 };
		if (i)
			assert_int_equal(leat_service_start(s), 0);
		assert_int_equal(leat_aio_null(inside_m, (struct leat_cb){ inside, &c, NULL }), 0);
		while (!c.fn)
			(void)leat_null(inside_m);
		assert_int_equal(leat_null(inside_m), 0); /* the service thread is still there */
		assert_int_equal(c.fn, 1);
		assert_int_equal(inside_wrong, 0);
	}
	assert_int_equal(leat_session_free(s), -EBUSY);
	leat_umount(inside_m);
	assert_int_equal(leat_session_free(s), 0);
}

/* ---- no handle ---- */

static void no_session(void **state)
{
	void *mem = NULL;

	(void)state;
	assert_int_equal(leat_session_free(NULL), 0);
	assert_null(leat_session(NULL));
	assert_int_equal(leat_fd(NULL), -EINVAL);
	assert_int_equal(leat_poll(NULL, 0), -EINVAL);
	assert_int_equal(leat_service_start(NULL), -EINVAL);
	leat_service_stop(NULL);
	assert_int_equal(leat_buf_alloc(NULL, 4096, &mem), -EINVAL);
	assert_int_equal(leat_buf_register(NULL, &mem, 8), -EINVAL);
	assert_int_equal(leat_buf_unregister(NULL, &mem), -EINVAL);
	leat_buf_free(NULL, &mem);
	assert_null(mem);
}

static void no_mount(void **state)
{
	struct leat_info info = { .size = sizeof(info) };
	struct leat_session *s;
	struct leat *m = NULL;
	uint64_t v = 7;
	char text[64];

	(void)state;
	assert_int_equal(leat_mount(NULL, NULL, &m), -EINVAL);
	assert_int_equal(leat_session_create(NULL, &s), 0);
	assert_int_equal(leat_session_mount(s, NULL, NULL, &m), -EINVAL);
	assert_int_equal(leat_session_free(s), 0);
	assert_null(m);
	leat_umount(NULL);
	assert_int_equal(leat_umount_within(NULL, 0), 0);
	assert_int_equal(leat_cancel(NULL, NULL), -EINVAL);
	assert_int_equal(leat_cancel_all(NULL), -EINVAL);
	leat_interrupt(NULL);
	assert_int_equal(leat_info(NULL, &info), -EINVAL);
	assert_int_equal(leat_describe(NULL, LEAT_TEXT_SERVER, 0, text, sizeof(text)), -EINVAL);
	assert_int_not_equal(leat_stats(NULL, &v, 1), 0);
	assert_int_equal(v, 0);
	assert_int_equal(leat_stat_value(NULL, "calls", &v), -EINVAL);
	assert_int_equal(leat_null(NULL), -EINVAL);
	assert_int_equal(leat_fchdir(NULL, NULL), -EINVAL);
	assert_int_equal(leat_node_import(NULL, text, sizeof(text), NULL), -EINVAL);
}

static void no_file(void **state)
{
	struct leat_acl_entry acl;
	char byte = 0;

	(void)state;
	assert_int_equal(leat_close(NULL), -EINVAL);
	assert_int_equal(leat_pread(NULL, &byte, 1, 0), -EINVAL);
	assert_int_equal(leat_aio_pread(NULL, &byte, 1, 0, (struct leat_cb){ 0 }), -EBADF);
	assert_int_equal(leat_read(NULL, &byte, 1), -EBADF);
	assert_int_equal(leat_write(NULL, &byte, 1), -EBADF);
	assert_int_equal(leat_lseek(NULL, 0, SEEK_SET), -EBADF);
	assert_int_equal(leat_aio_fsync(NULL, (struct leat_cb){ 0 }), -EBADF);
	assert_int_equal(leat_aio_close(NULL, (struct leat_cb){ 0 }), -EBADF);
	assert_true(leat_facl_get(NULL, &acl, 1) < 0);
	assert_true(leat_facl_set(NULL, &acl, 1) < 0);
	assert_int_equal(leat_rewinddir(NULL), -EBADF);
	assert_true(leat_dir_read(NULL, 0) < 0);
	assert_null(leat_dir_entry(NULL, 0));
	leat_closedir(NULL);
	leat_node_put(NULL);
	assert_null(leat_node_ref(NULL));
	assert_true(leat_node_getattr(NULL, "", NULL) < 0);
	assert_true(leat_node_unlink(NULL, "x") < 0);
	assert_true(leat_node_export(NULL, &byte, 1) < 0);
}

static void no_server(void **state)
{
	struct leat_server_stats stats = { .size = sizeof(stats) };
	struct leat_where *w;
	struct leat_trace *t;
	char text[64];

	(void)state;
	assert_int_equal(leat_server_stats(NULL, &stats), -EINVAL);
	assert_int_equal(leat_server_counters(NULL, NULL, NULL), -EINVAL);
	assert_int_equal(leat_server_listeners(NULL, NULL, NULL), -EINVAL);
	assert_int_equal(leat_server_where(NULL, &w), -EINVAL);
	assert_int_equal(leat_server_pieces(NULL, &t), -EINVAL);
	assert_int_equal(leat_server_reload(NULL, text, sizeof(text)), -EINVAL);
	assert_int_equal(leat_server_drain(NULL), -EINVAL);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(many_in_flight),
	cmocka_unit_test(callbacks_restart),
	cmocka_unit_test(other_threads),
	cmocka_unit_test(last_moment),
	cmocka_unit_test(one_after_the_other),
	cmocka_unit_test(start_behind_the_end),
	cmocka_unit_test(interrupted_before),
	cmocka_unit_test(idle_in_no_time),
	cmocka_unit_test(in_callback),
	cmocka_unit_test(no_session),
	cmocka_unit_test(no_mount),
	cmocka_unit_test(no_file),
	cmocka_unit_test(no_server),
};

int main(void)
{
	return cmocka_run_group_tests(tests, setup, teardown);
}
