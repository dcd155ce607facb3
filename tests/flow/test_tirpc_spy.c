/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_tirpc_spy.c - a server that looks into the memory that a client has shared with it, for calls to another server
 */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "rpcrdma_tirpc.h"
#include "tirpc_rig.h"

enum { SPY = RIG_OWN }; /* a word -> how many of its memfds hold block() of it */

#define BLOCK ((size_t)4096)
#define BYTES (100u * 1024)

static const char *block(u_int seed)
{
	static char b[BLOCK];

	for (size_t i = 0; i < BLOCK; i++)
		b[i] = (char)(seed * 101 + i * 7 + i / 251);
	return b;
}

/* ---- the service ---- */

/* Holes are not touched: that would fill them. */
static bool holds(int fd, u_int seed)
{
	struct stat st;
	bool found = false;
	char *p;

	if (fstat(fd, &st) || !st.st_size)
		return false;
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return false;
	for (off_t at = 0, end; !found && (at = lseek(fd, at, SEEK_DATA)) >= 0 && (end = lseek(fd, at, SEEK_HOLE)) > at; at = end)
		found = memmem(p + at, (size_t)(end - at), block(seed), BLOCK);
	munmap(p, (size_t)st.st_size);
	return found;
}

static u_int spy(u_int seed)
{
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *d;
	u_int n = 0;

	while (dir && (d = readdir(dir))) {
		char name[300], to[300] = "";

		snprintf(name, sizeof(name), "/proc/self/fd/%s", d->d_name);
		if (readlink(name, to, sizeof(to) - 1) > 0 && !strncmp(to, "/memfd:", 7))
			n += holds(atoi(d->d_name), seed);
	}
	if (dir)
		closedir(dir);
	return n;
}

static void dispatch(struct svc_req *q, SVCXPRT *x)
{
	u_int n;

	if (q->rq_proc != SPY) {
		rig_dispatch(q, x);
		return;
	}
	if (!svc_getargs(x, (xdrproc_t)xdr_u_int, (char *)&n)) {
		svcerr_decode(x);
		return;
	}
	n = spy(n);
	svc_sendreply(x, (xdrproc_t)xdr_u_int, &n);
}

static const char tcp_url[] = "tcp://127.0.0.1"; /* to stop it: the chaos of a variant keeps what was sent last */
static char url[256];

static int create(void)
{
	int rc = rpcrdma_svc_create(dispatch, RIG_PROG, RIG_VERS, tcp_url, NULL);

	return rc ? rc : rpcrdma_svc_create(dispatch, RIG_PROG, RIG_VERS, url, NULL);
}

static void start(struct rig *r)
{
	const struct rig_service s = { .create = create, .run = rpcrdma_svc_run, .url = { tcp_url, url } };

	snprintf(url, sizeof(url), "%s", rig_local("spy"));
	rig_start(r, &s);
}

/* ---- its caller ---- */

static const struct timeval plenty = { 60, 0 };

static CLIENT *client_at(const struct rig *r)
{
	const struct rpcrdma_tirpc_attr attr = { .size = sizeof(attr), .max_bytes = 1 << 20 };
	CLIENT *c = rpcrdma_clnt_create(r->url[1], RIG_PROG, RIG_VERS, &attr);

	assert_non_null(c);
	return c;
}

static void echo(CLIENT *c, u_int seed)
{
	static char bytes[BYTES];
	struct rig_bytes to = { .len = BYTES, .val = bytes }, back = { 0 };

	for (size_t at = 0; at < BYTES; at += BLOCK)
		memcpy(bytes + at, block(seed), BLOCK);
	assert_int_equal(clnt_call(c, RIG_ECHO, (xdrproc_t)xdr_rig_bytes, &to, (xdrproc_t)xdr_rig_bytes, &back, plenty), 0);
	assert_int_equal(back.len, BYTES);
	assert_memory_equal(back.val, bytes, BYTES);
	clnt_freeres(c, (xdrproc_t)xdr_rig_bytes, &back);
}

static u_int spied(CLIENT *c, u_int seed)
{
	u_int n = 0;

	assert_int_equal(clnt_call(c, SPY, (xdrproc_t)xdr_u_int, &seed, (xdrproc_t)xdr_u_int, &n, plenty), 0);
	return n;
}

/* Memory of calls to one server, which keeps access to it, is not that of calls to another one. */
static void servers_share_no_memory(void **state)
{
	struct rig bad, good;
	CLIENT *to_bad, *to_good;
	u_int own, others;

	(void)state;
	start(&bad);
	start(&good);
	to_bad = client_at(&bad);
	to_good = client_at(&good);
	echo(to_bad, 1);
	own = spied(to_bad, 1);
	echo(to_good, 2);
	others = spied(to_bad, 2);
	clnt_destroy(to_good);
	to_good = client_at(&good);
	echo(to_good, 3); /* in what the calls before have left */
	others += spied(to_bad, 3);
	clnt_destroy(to_good);
	clnt_destroy(to_bad);
	assert_int_equal(rig_stop(&good), 0);
	assert_int_equal(rig_stop(&bad), 0);
	assert_int_equal(others, 0);
	if (!own)
		skip(); /* the server copies by other ways here */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(servers_share_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
