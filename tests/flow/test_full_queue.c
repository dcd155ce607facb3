/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_full_queue.c - a local socket at which too many wait to be accepted
 *
 * The kernel keeps one queue for all users, and a process that fills it keeps the others out. Those connect
 * again until they get in, or until their timeout ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "base/util.h"
#include "leat_flow.h"
#include "rpc_pair.h"

LOG_DEFINE("test_full_queue");

#define WHY "too many connections wait there to be accepted"
#define SHORT_MS 50
#define DOWNS_MAX 20 /* a restart of the listener takes some attempts */

static struct sockaddr_un sun_of(const char *path)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };

	assert_true(strlen(path) < sizeof(sun.sun_path));
	memcpy(sun.sun_path, path, strlen(path));
	return sun;
}

/* A connection that its client has closed stays in the queue. */
static void fill(const char *path)
{
	struct sockaddr_un sun = sun_of(path);
	int rc;

	do {
		int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

		assert_true(fd >= 0);
		rc = connect(fd, (struct sockaddr *)&sun, sizeof(sun)) ? errno : 0;
		close(fd);
	} while (!rc);
	assert_int_equal(rc, EAGAIN);
}

static bool held_up(const struct rpc_pair *p)
{
	struct rpcrdma_clnt_info info;

	rpcrdma_clnt_info(p->clnt, &info);
	return !strcmp(info.why, WHY);
}

static struct rpc_pair *open_pair(uint32_t connect_ms)
{
	const struct rpc_pair_attr attr = { .transport = RPCRDMA_LOCAL, .clnt.connect_ms = connect_ms };

	return rpc_pair_create(&attr);
}

/* A call that waits because its client cannot get in: the server is not polled. */
static void start_held_up(struct rpc_pair *p, struct echo_call *c)
{
	echo_init(c, p, ECHO_BOTH, 100, 100, 0, 0);
	echo_start(c);
	while (!c->done && !held_up(p) && p->downs < DOWNS_MAX)
		(void)rpcrdma_engine_wait(p->clnt_engine, 1);
	assert_int_equal(c->done, 0);
	assert_true(held_up(p));
}

static void until_done(struct rpc_pair *p, const struct echo_call *c)
{
	while (!c->done)
		(void)rpcrdma_engine_wait(p->clnt_engine, 1);
}

static void waits_for_a_place(void **state)
{
	struct rpc_pair *p = open_pair(0);
	struct echo_call c;

	(void)state;
	fill(p->addr.host);
	start_held_up(p, &c);
	rpc_pair_until(p, &c.done, 1);
	echo_check(&c, 0);
	echo_fini(&c);
	assert_int_equal(p->downs, 0);
	rpc_pair_destroy(p);
}

/* A client that was mounted and lost its connection also connects again. */
static void comes_back(void **state)
{
	struct rpc_pair *p = open_pair(0);
	struct echo_call c;
	unsigned downs;

	(void)state;
	echo_run(p, 10, 0);
	rpc_pair_unlisten(p);
	rpcrdma_conn_close(p->last_conn);
	rpc_pair_until(p, &p->downs, 1);
	rpc_pair_listen(p);
	fill(p->addr.host);
	start_held_up(p, &c);
	downs = p->downs;
	rpc_pair_until(p, &c.done, 1);
	echo_check(&c, 0);
	echo_fini(&c);
	assert_int_equal(p->downs, downs);
	rpc_pair_destroy(p);
}

static void time_is_over(void **state)
{
	struct rpc_pair *p = open_pair(0);
	struct echo_call c, other;

	(void)state;
	fill(p->addr.host);
	start_held_up(p, &other);
	echo_init(&c, p, ECHO_BOTH, 100, 100, 0, 0);
	c.call.deadline_ms = SHORT_MS;
	echo_start(&c);
	until_done(p, &c);
	echo_check(&c, -ETIMEDOUT);
	assert_string_equal(c.call.why, WHY);
	echo_fini(&c);
	rpc_pair_until(p, &other.done, 1);
	echo_check(&other, 0);
	echo_fini(&other);
	rpc_pair_destroy(p);

	p = open_pair(SHORT_MS);
	fill(p->addr.host);
	echo_init(&c, p, ECHO_BOTH, 100, 100, 0, 0);
	echo_start(&c);
	until_done(p, &c);
	echo_check(&c, -ETIMEDOUT);
	assert_string_equal(c.call.why, WHY);
	echo_fini(&c);
	rpc_pair_destroy(p);
}

/* There is nothing to wait for any more. */
static void listener_goes(void **state)
{
	struct rpc_pair *p = open_pair(0);
	struct echo_call c;

	(void)state;
	fill(p->addr.host);
	start_held_up(p, &c);
	rpc_pair_unlisten(p);
	until_done(p, &c);
	echo_check(&c, -ECONNREFUSED);
	echo_fini(&c);
	rpc_pair_destroy(p);
}

static void given_up(void **state)
{
	struct rpc_pair *p = open_pair(0);
	struct echo_call c;

	(void)state;
	fill(p->addr.host);
	start_held_up(p, &c);
	rpcrdma_clnt_destroy(p->clnt);
	p->clnt = NULL;
	assert_int_equal(c.done, 1);
	echo_check(&c, -ECANCELED);
	echo_fini(&c);
	rpc_pair_destroy(p);
}

/* ---- mounts ---- */

/* Returns a socket that listens at @path; no connection is accepted. */
static int listen_deaf(const char *path)
{
	struct sockaddr_un sun = sun_of(path);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&sun, sizeof(sun)), 0);
	assert_int_equal(listen(fd, 1), 0);
	fill(path);
	return fd;
}

/* A full queue is no reason against a mount, nor does it look as if no server were there. */
static void leat_url_says_why(void **state)
{
	struct leat_flow f;
	const char *refused;
	char sock[96], aside[96];
	int fd;

	(void)state;
	leat_flow_create(&f);
	snprintf(sock, sizeof(sock), "%s/sock", f.dir);
	snprintf(aside, sizeof(aside), "%s/aside", f.dir);
	assert_int_equal(rename(sock, aside), 0);
	fd = listen_deaf(sock);
	f.m = leat_flow_mount(f.leat_url, NULL);
	assert_string_equal(leat_flow_text(f.m, LEAT_TEXT_TRANSPORT, 0), "tcp");
	refused = strstr(leat_flow_text(f.m, LEAT_TEXT_REFUSED, 0), ": ");
	assert_string_equal(refused + 2, WHY);
	leat_umount(f.m);
	f.m = NULL;
	close(fd);
	assert_int_equal(unlink(sock), 0);
	leat_flow_destroy(&f);
}

static void ended_by_a_signal(void **state)
{
	char path[] = "/tmp/leat-full.XXXXXX", url[64];
	int fd, ready[2], status;
	pid_t pid;
	char byte;

	(void)state;
	fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(unlink(path), 0);
	fd = listen_deaf(path);
	snprintf(url, sizeof(url), "local://%s/x?timeo=60000", path);
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		struct leat *m;

		if (signal(SIGINT, SIG_DFL) == SIG_ERR || write(ready[1], "x", 1) != 1)
			_exit(2);
		_exit(leat_mount(url, NULL, &m) ? 1 : 0);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(kill(pid, SIGINT), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	close(ready[0]);
	close(ready[1]);
	close(fd);
	assert_int_equal(unlink(path), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_for_a_place),
		cmocka_unit_test(comes_back),
		cmocka_unit_test(time_is_over),
		cmocka_unit_test(listener_goes),
		cmocka_unit_test(given_up),
		cmocka_unit_test(leat_url_says_why),
		cmocka_unit_test(ended_by_a_signal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
