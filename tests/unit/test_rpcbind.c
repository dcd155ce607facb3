/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_rpcbind.c - universal addresses, and what is asked of an rpcbind, one that a thread here plays
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include <cmocka.h>

#include "base/wire.h"
#include "tmp_dir.h"

static char socket_path[sizeof(((struct sockaddr_un *)0)->sun_path)];
#define RPCBIND_SOCKET socket_path
#include "server/nfs3/rpcbind.c"

LOG_DEFINE("test_rpcbind");

static void universal_addresses(void **state)
{
	static const struct {
		const char *url, *netid, *uaddr;
	} good[] = {
		{ "tcp://0.0.0.0:2049", "tcp", "0.0.0.0.8.1" },
		{ "tcp://127.0.0.1:65535", "tcp", "127.0.0.1.255.255" },
		{ "tcp://[::]:2049", "tcp6", "::.8.1" },
		{ "rdma://0.0.0.0:20049", "rdma", "0.0.0.0.78.81" },
		{ "rdma://10.77.0.1:1", "rdma", "10.77.0.1.0.1" },
		{ "rdma://[fd77:0::1]:256", "rdma6", "fd77::1.1.0" },
	};
	struct rpcrdma_addr addr;
	char uaddr[RPCBIND_UADDR_BYTES];
	const char *netid;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_int_equal(rpcrdma_addr_parse(good[i].url, &addr), 0);
		assert_int_equal(rpcbind_uaddr(&addr, uaddr, &netid), 0);
		assert_string_equal(netid, good[i].netid);
		assert_string_equal(uaddr, good[i].uaddr);
	}
	assert_int_equal(rpcrdma_addr_parse("local:///run/x", &addr), 0);
	assert_int_equal(rpcbind_uaddr(&addr, uaddr, &netid), -EAFNOSUPPORT);
	assert_int_equal(rpcrdma_addr_parse("tcp://some.name:2049", &addr), 0);
	assert_int_equal(rpcbind_uaddr(&addr, uaddr, &netid), -EINVAL);
}

/* ---- an rpcbind that writes down what it is asked, as "SET 100003 tcp 0.0.0.0.8.1" -------------- */

struct fake {
	struct tmp_dir dir;
	int fd;
	pthread_t thread;
	unsigned nconns;          /* after as many it ends */
	const char *refuse;       /* the netid that another program has registered */
	char log[2048];
};

static bool read_all(int fd, void *buf, size_t len)
{
	for (char *at = buf; len;) {
		ssize_t n = read(fd, at, len);

		if (n <= 0)
			return false;
		at += n;
		len -= (size_t)n;
	}
	return true;
}

/* a string of XDR at *at; moves on */
static void take_text(const uint8_t **at, char text[64])
{
	uint32_t len = get_be32(*at);

	assert_true(len < 64);
	memcpy(text, *at + 4, len);
	text[len] = '\0';
	*at += 4 + (len + 3) / 4 * 4;
}

static bool answer_one(struct fake *f, int fd)
{
	/* call: mark, xid, 0, 2, RPCBPROG, version, proc, credential and verifier of no bytes */
	uint8_t mark[4], call[512], reply[32] = { 0 };
	char netid[64], uaddr[64];
	const uint8_t *at = call + 10 * 4 + 2 * 4;
	size_t len, used = strlen(f->log);
	bool yes;

	if (!read_all(fd, mark, sizeof(mark)))
		return false;
	len = get_be32(mark) & 0x7fffffffu;
	assert_true(len > 48 && len <= sizeof(call));
	assert_true(read_all(fd, call, len));
	assert_int_equal(get_be32(call + 12), RPCBPROG);
	take_text(&at, netid);
	take_text(&at, uaddr);
	yes = !f->refuse || strcmp(f->refuse, netid) != 0;
	snprintf(f->log + used, sizeof(f->log) - used, "%s %u %s %s\n",
		 get_be32(call + 20) == RPCBPROC_SET ? "SET" : "UNSET", get_be32(call + 40), netid,
		 uaddr);
	/* reply: mark, xid, 1, accepted, verifier of no bytes, success, the answer */
	put_be32(reply, 0x80000000u | 28);
	memcpy(reply + 4, call, 4);
	put_be32(reply + 8, 1);
	put_be32(reply + 28, yes);
	return write(fd, reply, sizeof(reply)) == (ssize_t)sizeof(reply);
}

static void *fake_main(void *arg)
{
	struct fake *f = arg;

	for (unsigned i = 0; i < f->nconns; i++) {
		int fd = accept(f->fd, NULL, NULL);

		while (answer_one(f, fd))
			;
		close(fd);
	}
	return NULL;
}

static void fake_start(struct fake *f, unsigned nconns, const char *refuse)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };

	memset(f, 0, sizeof(*f));
	tmp_dir_create(&f->dir);
	snprintf(socket_path, sizeof(socket_path), "%.90s/sock", f->dir.path);
	memcpy(sun.sun_path, socket_path, sizeof(sun.sun_path));
	f->nconns = nconns;
	f->refuse = refuse;
	f->fd = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(bind(f->fd, (struct sockaddr *)&sun, sizeof(sun)), 0);
	assert_int_equal(listen(f->fd, 4), 0);
	if (nconns)
		assert_int_equal(pthread_create(&f->thread, NULL, fake_main, f), 0);
}

static void fake_end(struct fake *f)
{
	if (f->nconns)
		pthread_join(f->thread, NULL);
	close(f->fd);
	tmp_dir_destroy(&f->dir);
}

static const struct rpcrdma_addr listeners[] = {
	{ .transport = RPCRDMA_LOCAL, .host = "/run/leat/leatd.sock" },
	{ .transport = RPCRDMA_TCP, .host = "0.0.0.0", .port = 2049 },
	{ .transport = RPCRDMA_TCP, .host = "10.0.0.1", .port = 2050 }, /* a second one of its kind */
	{ .transport = RPCRDMA_RDMA, .host = "::", .port = 20049 },
};

static void set_and_unset(void **state)
{
	struct rpcbind *rb;
	struct fake f;

	(void)state;
	fake_start(&f, 2, NULL);
	assert_int_equal(rpcbind_start(listeners, ARRAY_SIZE(listeners), &rb), 0);
	rpcbind_stop(rb);
	fake_end(&f);
	assert_string_equal(f.log, "SET 100003 tcp 0.0.0.0.8.1\n"
				   "SET 100005 tcp 0.0.0.0.8.1\n"
				   "SET 100003 rdma6 ::.78.81\n"
				   "SET 100005 rdma6 ::.78.81\n"
				   "UNSET 100003 tcp \n"
				   "UNSET 100005 tcp \n"
				   "UNSET 100003 rdma6 \n"
				   "UNSET 100005 rdma6 \n");
}

/* What is not ours is not taken away from its owner. */
static void others_are_left_alone(void **state)
{
	struct rpcbind *rb;
	struct fake f;

	(void)state;
	fake_start(&f, 2, "tcp");
	assert_int_equal(rpcbind_start(listeners, ARRAY_SIZE(listeners), &rb), 0);
	rpcbind_stop(rb);
	fake_end(&f);
	assert_null(strstr(f.log, "UNSET 100003 tcp"));
	assert_null(strstr(f.log, "UNSET 100005 tcp"));
	assert_non_null(strstr(f.log, "UNSET 100003 rdma6"));
	fake_start(&f, 1, "tcp"); /* nothing was registered: no UNSET at the end */
	assert_int_equal(rpcbind_start(listeners, 3, &rb), 0);
	rpcbind_stop(rb);
	fake_end(&f);
	assert_null(strstr(f.log, "UNSET"));
}

/* Neither none at all nor one that never answers keeps us for long. */
static void missing_and_silent(void **state)
{
	struct rpcbind *rb;
	struct fake f;

	(void)state;
	fake_start(&f, 0, NULL);
	assert_int_equal(rpcbind_start(listeners, ARRAY_SIZE(listeners), &rb), 0);
	rpcbind_stop(rb);
	fake_end(&f);
	assert_int_equal(rpcbind_start(listeners, ARRAY_SIZE(listeners), &rb), 0);
	rpcbind_stop(rb);
	rpcbind_stop(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(universal_addresses),
		cmocka_unit_test(set_and_unset),
		cmocka_unit_test(others_are_left_alone),
		cmocka_unit_test(missing_and_silent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
