/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_srv_conns.c - how many connections a client may have, and whose goes when there are no more
 *
 * Two clients of one responder: all loopback addresses together over TCP, and the user that runs the test
 * over the local fabric.
 */
#include <arpa/inet.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "srv_int.h"
#include "srv_talk.h"

#define CONNS 8u /* of all clients */
#define ALONE 6u /* of one */
#define IDLE_ROUNDS 2000

static struct rpcrdma_listener *tcp;
static int fds[CONNS];
static struct raw_peer locals[CONNS];
static unsigned nlocals;

static void poll_all(void)
{
	for (int idle = 0; idle < 50;)
		idle = rpcrdma_engine_poll(svc.engine) ? 0 : idle + 1;
}

static int set_up_conns(void **state)
{
	static const struct rpcrdma_svc_attr attr = { .conns_max = CONNS };
	struct rpcrdma_addr addr;

	(void)state;
	snprintf(path, sizeof(path), "/tmp/leat-conns-%d.sock", (int)getpid());
	snprintf(url, sizeof(url), "local://%s", path);
	assert_int_equal(wire_svc_open(&svc, url, NULL, &attr), 0);
	assert_int_equal(rpcrdma_addr_parse("tcp://127.0.0.1:0", &addr), 0);
	assert_int_equal(rpcrdma_listen(svc.engine, &addr, &attr, wire_svc_ops(), &svc, &tcp), 0);
	for (unsigned i = 0; i < CONNS; i++)
		fds[i] = -1;
	nlocals = 0;
	return 0;
}

static int tear_down_conns(void **state)
{
	(void)state;
	for (unsigned i = 0; i < CONNS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	while (nlocals)
		raw_close(&locals[--nlocals]);
	rpcrdma_listener_close(tcp);
	wire_svc_close(&svc);
	return 0;
}

static int new_socket(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	return fd;
}

static void dial(int fd)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons(rpcrdma_listener_addr(tcp)->port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	poll_all();
}

static bool is_closed(int fd)
{
	uint8_t b;
	ssize_t n;

	poll_all();
	n = recv(fd, &b, 1, MSG_DONTWAIT);
	return !n || (n < 0 && errno == ECONNRESET);
}

/* a NULL call over TCP, answered */
static void tcp_serves(int fd)
{
	struct rr_rpc_call c = { .xid = 7, .rpcvers = 2, .prog = WIRE_PROG, .vers = WIRE_VERS,
				 .proc = WIRE_NULL };
	uint8_t buf[128];
	struct wire_put p;
	ssize_t n = -1;

	wire_put_init(&p, buf + 4, sizeof(buf) - 4);
	rr_rpc_put_call(&p, &c);
	put_be32(buf, 0x80000000u | (uint32_t)wire_put_len(&p));
	assert_true(send(fd, buf, 4 + wire_put_len(&p), MSG_NOSIGNAL) > 0);
	for (int idle = 0; n < 0 && idle < IDLE_ROUNDS; idle++) {
		(void)rpcrdma_engine_poll(svc.engine);
		n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);
	}
	assert_int_equal(n, 28);
}

static int open_local(void)
{
	int rc = raw_open(&locals[nlocals], svc.engine, path, &opts4k);

	if (rc)
		raw_close(&locals[nlocals]);
	else
		nlocals++;
	poll_all();
	return rc;
}

/* The oldest ones are those that came first, but for the very first. */
static void age(void)
{
	uint64_t ns = 1000;

	list_for_each(n, &svc.engine->conns) {
		struct rpcrdma_conn *c = list_entry(n, struct rpcrdma_conn, link);

		atomic_store(&c->of_client.heard_ns, ns == 1000 ? 1000000 : ns);
		ns++;
	}
}

static void one_client_leaves_room(void **state)
{
	(void)state;
	for (unsigned i = 0; i < ALONE; i++) {
		fds[i] = new_socket();
		dial(fds[i]);
		assert_false(is_closed(fds[i]));
	}
	assert_int_equal(svc.refused, 0);
	for (unsigned i = ALONE; i < CONNS; i++) {
		fds[i] = new_socket();
		dial(fds[i]);
		assert_true(is_closed(fds[i]));
	}
	assert_int_equal(svc.refused, 2); /* and the service can say so */
	assert_int_equal(svc.refused_err, -ETOOMANYREFS);
	assert_int_equal(svc.closed, 0);
	for (unsigned i = 0; i < ALONE; i++)
		tcp_serves(fds[i]);
	assert_int_equal(open_local(), 0);
	assert_int_equal(open_local(), 0);
	assert_int_equal(svc.closed, 0);
}

/* A client within its share is let in for the longest idle connections of the one that has more; and
 * one that is within its share loses none. */
static void the_longest_idle_goes(void **state)
{
	(void)state;
	one_client_leaves_room(state);
	age();
	svc.refused = 0;
	assert_int_equal(open_local(), 0);
	assert_true(is_closed(fds[1]));
	assert_int_equal(svc.refused_err, -ECONNABORTED);
	assert_int_equal(open_local(), 0);
	assert_true(is_closed(fds[2]));
	assert_int_equal(svc.refused, 2);
	assert_int_equal(svc.closed, 2);
	/* four and four */
	assert_int_equal(open_local(), -ECONNREFUSED);
	assert_int_equal(svc.refused_err, -EUSERS);
	close(fds[1]);
	fds[1] = new_socket();
	dial(fds[1]);
	assert_true(is_closed(fds[1]));
	assert_int_equal(svc.refused_err, -EUSERS);
	assert_int_equal(svc.closed, 2);
	tcp_serves(fds[0]);
	for (unsigned i = 3; i < ALONE; i++)
		tcp_serves(fds[i]);
	assert_int_equal(nlocals, 4);
}

/* What ends for another's sake may end by itself first. */
static void gone_before_it_has_to(void **state)
{
	struct rr_client_conn *c;

	(void)state;
	one_client_leaves_room(state);
	c = rr_client_idlest(&svc.domain->clients);
	assert_non_null(c);
	for (unsigned i = 0; i < ALONE; i++) {
		close(fds[i]);
		fds[i] = -1;
	}
	poll_all();
	assert_int_equal(svc.closed, ALONE - 1); /* its message is still to come */
	rpcrdma_engine_post(c->engine, &c->msg);
	poll_all();
	assert_int_equal(svc.closed, ALONE);
	assert_int_equal(svc.refused, 2);
	assert_null(rr_client_idlest(&svc.domain->clients));
}

/* Descriptors are used up: the server reports it, and serves the peer as soon as there are some again. */
static void no_descriptor(void **state)
{
	struct rlimit was, none;

	(void)state;
	fds[0] = new_socket();
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	none = was;
	none.rlim_cur = (rlim_t)fds[0] + 1;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	dial(fds[0]);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	assert_int_equal(svc.refused, 1);
	assert_int_equal(svc.refused_err, -EMFILE);
	while (!svc.conns)
		rpcrdma_engine_wait(svc.engine, 1000);
	tcp_serves(fds[0]);
}

static void no_descriptor_local(void **state)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	struct rlimit was, none;
	uint8_t b;

	(void)state;
	fds[0] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_true(fds[0] >= 0);
	strcpy(sun.sun_path, path);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	none = was;
	none.rlim_cur = (rlim_t)fds[0] + 1;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(connect(fds[0], (struct sockaddr *)&sun, sizeof(sun)), 0);
	poll_all();
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	assert_int_equal(svc.refused, 1);
	assert_int_equal(svc.refused_err, -EMFILE);
	while (recv(fds[0], &b, 1, MSG_DONTWAIT) < 0) /* it is spoken to in the end */
		rpcrdma_engine_wait(svc.engine, 1000);
	assert_int_equal(open_local(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(one_client_leaves_room, set_up_conns, tear_down_conns),
		cmocka_unit_test_setup_teardown(the_longest_idle_goes, set_up_conns, tear_down_conns),
		cmocka_unit_test_setup_teardown(gone_before_it_has_to, set_up_conns, tear_down_conns),
		cmocka_unit_test_setup_teardown(no_descriptor, set_up_conns, tear_down_conns),
		cmocka_unit_test_setup_teardown(no_descriptor_local, set_up_conns, tear_down_conns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
