/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_clnt_lookup.c - a resolver that blocks, fails, or gets no thread: the engine continues
 */
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "prog_rig.h"

/* ---- the resolver ------------------------------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool blocked;
static unsigned begun, ended, exited, on_main;
static pthread_t main_thread;
static bool no_threads;

/* ---- sockets: the engine's thread --------------------------------------------------------- */

static unsigned connects, results; /* of connections: SO_ERROR */
static int connect_errno; /* of each connect() */
static bool refused;      /* each connection that was started */

int __real_connect(int fd, const struct sockaddr *addr, socklen_t len);
int __wrap_connect(int fd, const struct sockaddr *addr, socklen_t len);
int __real_getsockopt(int fd, int level, int name, void *val, socklen_t *len);
int __wrap_getsockopt(int fd, int level, int name, void *val, socklen_t *len);

int __wrap_connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	connects++;
	if (!connect_errno)
		return __real_connect(fd, addr, len);
	errno = connect_errno;
	return -1;
}

int __wrap_getsockopt(int fd, int level, int name, void *val, socklen_t *len)
{
	int rc = __real_getsockopt(fd, level, name, val, len);

	results += name == SO_ERROR;
	if (refused && name == SO_ERROR)
		*(int *)val = ECONNREFUSED;
	return rc;
}

/* ---- names -------------------------------------------------------------------------------- */

int __real_getaddrinfo(const char *host, const char *port, const struct addrinfo *hints, struct addrinfo **ret);
int __wrap_getaddrinfo(const char *host, const char *port, const struct addrinfo *hints, struct addrinfo **ret);
int __real_pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);

static void *(*thread_fn)(void *); /* of all threads */

static void *run_thread(void *arg)
{
	(void)thread_fn(arg);
	pthread_mutex_lock(&lock);
	exited++;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	return NULL;
}

int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
	pthread_mutex_lock(&lock);
	thread_fn = fn;
	pthread_mutex_unlock(&lock);
	return no_threads ? EAGAIN : __real_pthread_create(t, attr, run_thread, arg);
}

/* a server with 8 addresses */
static int many_addresses(const char *port, const struct addrinfo *hints, struct addrinfo **ret)
{
	int rc = 0;

	for (unsigned i = 0; !rc && i < 8; i++) {
		rc = __real_getaddrinfo("127.0.0.1", port, hints, ret);
		while (!rc && *ret)
			ret = &(*ret)->ai_next;
	}
	return rc;
}

int __wrap_getaddrinfo(const char *host, const char *port, const struct addrinfo *hints, struct addrinfo **ret)
{
	int rc = EAI_NONAME;

	if (!host || !strstr(host, ".test") || hints->ai_flags & AI_NUMERICHOST)
		return __real_getaddrinfo(host, port, hints, ret);
	pthread_mutex_lock(&lock);
	begun++;
	on_main += pthread_equal(pthread_self(), main_thread) != 0;
	pthread_cond_broadcast(&changed);
	while (blocked && !pthread_equal(pthread_self(), main_thread))
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
	if (!strcmp(host, "server.test"))
		rc = __real_getaddrinfo("127.0.0.1", port, hints, ret);
	if (!strcmp(host, "many.test"))
		rc = many_addresses(port, hints, ret);
	pthread_mutex_lock(&lock);
	ended++;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	return rc;
}

static void set_blocked(bool b)
{
	pthread_mutex_lock(&lock);
	blocked = b;
	if (b)
		begun = ended = exited = 0;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static void wait_for(const unsigned *count, unsigned n)
{
	pthread_mutex_lock(&lock);
	while (*count < n)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

/* ---- the tests ---------------------------------------------------------------------------- */

static struct pr_rig rig;

static void open_rig(void)
{
	main_thread = pthread_self();
	pr_open(&rig, RPCRDMA_TCP, NULL, NULL, NULL);
}

static struct rpcrdma_clnt *client_of(const char *host, uint32_t connect_ms)
{
	struct rpcrdma_clnt_attr attr = rig.attr;
	struct rpcrdma_clnt *c;

	snprintf(attr.addr.host, sizeof(attr.addr.host), "%s", host);
	attr.connect_ms = connect_ms;
	assert_int_equal(rpcrdma_clnt_open(rig.clnt_engine, &attr, &c), 0);
	return c;
}

static void start(struct rpcrdma_clnt *c, struct pr_call *call)
{
	pr_init(&rig, call, PR_SUM, 1000, 0);
	assert_int_equal(rpcrdma_clnt_call(c, &call->call), 0);
}

static int call_over(struct rpcrdma_clnt *c, char why[64])
{
	struct pr_call call;
	int rc;

	start(c, &call);
	rc = pr_until(&rig, &call);
	snprintf(why, 64, "%s", call.call.why ? call.call.why : "");
	pr_fini(&call);
	return rc;
}

static void others_continue(void **state)
{
	struct rpcrdma_clnt *c;
	struct pr_call call;
	char why[64];

	(void)state;
	open_rig();
	set_blocked(true);
	c = client_of("server.test", 0);
	start(c, &call);
	while (pr_poll(&rig))
		;
	wait_for(&begun, 1);
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(call_over(rig.clnt, why), 0);
	assert_false(call.done);
	set_blocked(false);
	assert_int_equal(pr_until(&rig, &call), 0);
	assert_int_equal(on_main, 0);
	assert_int_equal(begun, 1);
	pr_fini(&call);
	rpcrdma_clnt_destroy(c);
	pr_close(&rig);
}

static void unknown_name(void **state)
{
	struct rpcrdma_clnt *c;
	char why[64];

	(void)state;
	open_rig();
	c = client_of("nobody.test", 0);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(call_over(c, why), -EHOSTUNREACH);
		assert_non_null(strstr(why, "name"));
	}
	assert_int_equal(on_main, 0);
	rpcrdma_clnt_destroy(c);
	pr_close(&rig);
}

static void no_thread(void **state)
{
	struct rpcrdma_clnt *c;
	char why[64];

	(void)state;
	open_rig();
	c = client_of("server.test", 0);
	no_threads = true;
	assert_int_equal(call_over(c, why), -EAGAIN);
	no_threads = false;
	assert_int_equal(call_over(c, why), 0);
	rpcrdma_clnt_destroy(c);
	pr_close(&rig);
}

/* Attempts time out while the resolver blocks; all of them wait for one look-up. */
static void one_look_up_at_a_time(void **state)
{
	struct rpcrdma_clnt *c;
	char why[64];

	(void)state;
	open_rig();
	set_blocked(true);
	c = client_of("server.test", 5);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(call_over(c, why), -ETIMEDOUT);
		assert_non_null(strstr(why, "name"));
	}
	wait_for(&begun, 1);
	assert_int_equal(begun, 1);
	set_blocked(false);
	wait_for(&ended, 1);
	rpcrdma_clnt_destroy(c);
	c = client_of("server.test", 0);
	assert_int_equal(call_over(c, why), 0);
	rpcrdma_clnt_destroy(c);
	pr_close(&rig);
}

/* The resolver needs longer than an attempt may take: the next attempt uses its result. */
static void slow_resolver(void **state)
{
	struct rpcrdma_clnt *c;
	char why[64];

	(void)state;
	open_rig();
	set_blocked(true);
	c = client_of("server.test", 200);
	assert_int_equal(call_over(c, why), -ETIMEDOUT);
	set_blocked(false);
	wait_for(&exited, 1);
	while (pr_poll(&rig))
		;
	set_blocked(true);
	assert_int_equal(call_over(c, why), 0);
	assert_int_equal(begun, 0);
	set_blocked(false);
	rpcrdma_clnt_destroy(c);
	pr_close(&rig);
}

/* At each moment of a look-up: before it begins, while it blocks, with its result posted. */
static void destroyed_meanwhile(void **state)
{
	(void)state;
	for (int when = 0; when < 3; when++) {
		struct rpcrdma_clnt *c;
		struct pr_call call;

		open_rig();
		set_blocked(true);
		c = client_of("server.test", 0);
		start(c, &call);
		while (pr_poll(&rig))
			;
		if (when > 0)
			wait_for(&begun, 1);
		if (when > 1) {
			set_blocked(false);
			wait_for(&ended, 1);
		}
		rpcrdma_clnt_destroy(c);
		assert_true(call.done && call.err == -ECANCELED);
		pr_fini(&call);
		pr_close(&rig); /* the engine, too */
		set_blocked(false);
		wait_for(&ended, 1);
	}
}

/* ---- connecting --------------------------------------------------------------------------- */

static void unreachable(void **state)
{
	struct rpcrdma_clnt *c;
	char why[64];

	(void)state;
	open_rig();
	c = client_of("server.test", 0);
	connect_errno = EHOSTUNREACH;
	assert_int_equal(call_over(c, why), -EHOSTUNREACH);
	assert_null(strstr(why, "name")); /* it was resolved */
	connect_errno = 0;
	assert_int_equal(call_over(c, why), 0);
	rpcrdma_clnt_destroy(c);
	pr_close(&rig);
}

static struct rpcrdma_clnt *dialling;
static struct pr_call dialling_call;
static unsigned results_before;

static void on_dialling_done(struct rpcrdma_call *call, int err)
{
	(void)call;
	assert_int_equal(err, -ECANCELED);
	results_before = results;
	rpcrdma_clnt_destroy(dialling);
}

static void on_cancel(struct rpcrdma_msg *msg)
{
	(void)msg;
	rpcrdma_clnt_cancel(dialling, &dialling_call.call);
}

/* Another callback destroys the client. Its address refuses in the same pass: it has no next one. */
static void destroyed_while_connecting(void **state)
{
	struct rpcrdma_msg msg = { .fn = on_cancel };

	(void)state;
	open_rig();
	rpcrdma_clnt_destroy(rig.clnt); /* it connects, too */
	rig.clnt = NULL;
	set_blocked(false);
	connects = 0;
	refused = true;
	dialling = client_of("many.test", 0);
	pr_init(&rig, &dialling_call, PR_SUM, 1000, 0);
	dialling_call.call.done = on_dialling_done;
	assert_int_equal(rpcrdma_clnt_call(dialling, &dialling_call.call), 0);
	for (unsigned long idle = 0; !connects; idle++) {
		(void)pr_poll(&rig);
		assert_true(idle < 200000000);
	}
	assert_true(connects < 4);
	rpcrdma_engine_post(rig.clnt_engine, &msg);
	(void)pr_poll(&rig);
	assert_int_equal(results, results_before);
	refused = false;
	pr_fini(&dialling_call);
	pr_close(&rig);
}

static void literals_need_no_thread(void **state)
{
	struct rpcrdma_clnt *c;
	char why[64];

	(void)state;
	open_rig();
	no_threads = true;
	c = client_of("127.0.0.1", 0);
	assert_int_equal(call_over(c, why), 0);
	rpcrdma_clnt_destroy(c);
	c = client_of("::ffff:127.0.0.1", 0);
	assert_int_equal(call_over(c, why), 0);
	rpcrdma_clnt_destroy(c);
	no_threads = false;
	pr_close(&rig);
}

struct to_listen {
	struct rpcrdma_msg msg;
	const char *host;
	int rc;
};

static void listen_here(struct rpcrdma_msg *msg)
{
	static const struct rpcrdma_svc_ops ops;
	struct to_listen *l = container_of(msg, struct to_listen, msg);
	struct rpcrdma_addr addr = { .transport = RPCRDMA_TCP };
	struct rpcrdma_listener *listener;

	snprintf(addr.host, sizeof(addr.host), "%s", l->host);
	l->rc = rpcrdma_listen(rig.svc_engine, &addr, NULL, &ops, NULL, &listener);
	if (!l->rc)
		rpcrdma_listener_close(listener);
}

/* A listener is not resolved in a callback. */
static void listen_in_a_callback(void **state)
{
	static const struct { const char *host; int rc; } rows[] = {
		{ "server.test", -EDEADLK }, { "localhost", -EDEADLK }, { "127.0.0.1", 0 }, { "", 0 },
	};

	(void)state;
	open_rig();
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct to_listen l = { .msg.fn = listen_here, .host = rows[i].host, .rc = 1 };

		rpcrdma_engine_post(rig.svc_engine, &l.msg);
		while (l.rc == 1)
			pr_poll(&rig);
		assert_int_equal(l.rc, rows[i].rc);
	}
	assert_int_equal(on_main, 0);
	pr_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(others_continue),
		cmocka_unit_test(unknown_name),
		cmocka_unit_test(no_thread),
		cmocka_unit_test(one_look_up_at_a_time),
		cmocka_unit_test(slow_resolver),
		cmocka_unit_test(destroyed_meanwhile),
		cmocka_unit_test(unreachable),
		cmocka_unit_test(destroyed_while_connecting),
		cmocka_unit_test(literals_need_no_thread),
		cmocka_unit_test(listen_in_a_callback),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
