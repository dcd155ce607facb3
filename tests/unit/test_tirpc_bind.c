/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_tirpc_bind.c - programs of libtirpc at URLs, and a real rpcbind, in a network and a /run of their own
 *
 * There is no RDMA device: URLs of rdma:// listen by TCP here, and nobody calls them.
 */
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <rpc/rpcb_clnt.h>

#include "rpcrdma.h"
#include "rpcrdma_tirpc.h"
#include "tirpc_rig.h"

/* Ports of their own: a client that tries to connect to a port that is free for a moment may get it itself. */
static const char tcp_url[] = "tcp://127.0.0.1:20100", tcp6_url[] = "tcp://[::1]:20101";
static const char rdma_url[] = "rdma://0.0.0.0:20102", rdma6_url[] = "rdma://[::1]:20103";

/* ---- no device ---- */

#define LISTENERS 32

static struct rpcrdma_addr as_asked[LISTENERS];
static const struct rpcrdma_listener *listeners[LISTENERS];
static unsigned nlisteners;

int __real_rpcrdma_listen(struct rpcrdma_engine *e, const struct rpcrdma_addr *addr, const struct rpcrdma_svc_attr *attr,
			  const struct rpcrdma_svc_ops *ops, void *ctx, struct rpcrdma_listener **ret);
int __wrap_rpcrdma_listen(struct rpcrdma_engine *e, const struct rpcrdma_addr *addr, const struct rpcrdma_svc_attr *attr,
			  const struct rpcrdma_svc_ops *ops, void *ctx, struct rpcrdma_listener **ret);
const struct rpcrdma_addr *__real_rpcrdma_listener_addr(const struct rpcrdma_listener *l);
const struct rpcrdma_addr *__wrap_rpcrdma_listener_addr(const struct rpcrdma_listener *l);

int __wrap_rpcrdma_listen(struct rpcrdma_engine *e, const struct rpcrdma_addr *addr, const struct rpcrdma_svc_attr *attr,
			  const struct rpcrdma_svc_ops *ops, void *ctx, struct rpcrdma_listener **ret)
{
	struct rpcrdma_addr tcp = *addr;
	int rc;

	if (tcp.transport == RPCRDMA_RDMA)
		tcp.transport = RPCRDMA_TCP;
	rc = __real_rpcrdma_listen(e, &tcp, attr, ops, ctx, ret);
	if (rc)
		return rc;
	assert_true(nlisteners < LISTENERS);
	as_asked[nlisteners] = *__real_rpcrdma_listener_addr(*ret);
	as_asked[nlisteners].transport = addr->transport;
	listeners[nlisteners++] = *ret;
	return 0;
}

const struct rpcrdma_addr *__wrap_rpcrdma_listener_addr(const struct rpcrdma_listener *l)
{
	for (unsigned i = nlisteners; i-- > 0;)
		if (listeners[i] == l)
			return &as_asked[i];
	return __real_rpcrdma_listener_addr(l);
}

/* ---- what rpcbind says ---- */

/* "PROG.VERS netid uaddr" of the programs of the rig, sorted, one per line */
static void get_map(char *buf, size_t cap)
{
	struct netconfig *nc = getnetconfigent("tcp");
	char lines[16][96];
	unsigned n = 0;

	assert_non_null(nc);
	for (rpcblist *r = rpcb_getmaps(nc, "127.0.0.1"); r; r = r->rpcb_next)
		if (r->rpcb_map.r_prog == RIG_PROG || r->rpcb_map.r_prog == RIG_PROG2)
			snprintf(lines[n++], sizeof(lines[0]), "%d.%u %s %s\n", r->rpcb_map.r_prog == RIG_PROG ? 1 : 2,
				 r->rpcb_map.r_vers, r->rpcb_map.r_netid, r->rpcb_map.r_addr);
	freenetconfigent(nc);
	qsort(lines, n, sizeof(lines[0]), (int (*)(const void *, const void *))strcmp);
	buf[0] = '\0';
	for (unsigned i = 0; i < n; i++)
		snprintf(buf + strlen(buf), cap - strlen(buf), "%s", lines[i]);
}

static void check_map(const char *expected)
{
	char map[2048];

	get_map(map, sizeof(map));
	assert_string_equal(map, expected);
}

/* ---- the service ---- */

static int create(void)
{
	static const char *const urls[] = { rdma_url, rdma6_url, tcp6_url, "local:///run/rig.sock" };
	int rc = rpcrdma_svc_create(rig_dispatch, RIG_PROG, RIG_VERS, tcp_url, NULL);

	if (!rc)
		rc = rpcrdma_svc_create(rig_dispatch, RIG_PROG2, RIG_VERS, tcp_url, NULL);
	for (unsigned i = 0; i < 4 && !rc; i++)
		rc = rpcrdma_svc_create(rig_dispatch, RIG_PROG, RIG_VERS, urls[i], NULL);
	return rc;
}

static int ready[2];

static void become_daemon(void)
{
	prctl(PR_SET_PDEATHSIG, 0);
	fflush(NULL);
	if (fork())
		exit(0); /* and not _exit(), as daemon() has it */
	svc_run();
	exit(0);
}

#define ALL "1.1 rdma 0.0.0.0.78.134\n1.1 rdma6 ::1.78.135\n1.1 tcp 127.0.0.1.78.132\n1.1 tcp6 ::1.78.133\n"
#define SECOND "2.1 tcp 127.0.0.1.78.132\n"

static enum clnt_stat call_void(rpcproc_t proc)
{
	return rig_call(tcp_url, RIG_PROG, RIG_VERS, proc, (xdrproc_t)xdr_rig_void, NULL, (xdrproc_t)xdr_rig_void, NULL);
}

static void programs_are_registered(void **state)
{
	const struct rig_service s = { .create = create, .run = svc_run, .url = { tcp_url } };
	struct rig r;

	(void)state;
	rig_start(&r, &s);
	check_map(ALL SECOND);
	assert_int_equal(call_void(RIG_UNREG), RPC_SUCCESS);
	check_map(ALL);
	assert_int_equal(rig_stop(&r), 0);
	check_map("");
}

/* Its parent's exit() has removed everything. */
static void daemon_registers_again(void **state)
{
	const struct rig_service s = { .create = create, .run = become_daemon };
	struct rig r;
	char end;
	int status;

	(void)state;
	assert_int_equal(pipe(ready), 0);
	rig_start(&r, &s);
	close(ready[1]);
	assert_int_equal(waitpid(r.pid, &status, 0), r.pid);
	assert_int_equal(status, 0);
	while (rig_try(tcp6_url) != RPC_SUCCESS) /* it runs when it listens at every URL */
		assert_int_equal(poll(&(struct pollfd){ .fd = ready[0], .events = POLLIN }, 1, 0), 0); /* it lives */
	check_map(ALL SECOND);
	assert_int_equal(call_void(RIG_QUIT), RPC_SUCCESS);
	assert_int_equal(read(ready[0], &end, 1), 0);
	close(ready[0]);
	check_map("");
}

static int create_two(void)
{
	SVCXPRT *x = svctcp_create(RPC_ANYSOCK, 0, 0);

	if (!x || !svc_register(x, RIG_PROG, RIG_VERS, rig_dispatch, IPPROTO_TCP))
		return -1;
	return rpcrdma_svc_create(rig_dispatch, RIG_PROG, RIG_VERS, tcp_url, NULL);
}

/* libtirpc's own TCP socket keeps its registration. */
static void own_tcp_stays_registered(void **state)
{
	const struct rig_service s = { .create = create_two, .run = svc_run, .url = { tcp_url } };
	char map[1024];
	struct rig r;

	(void)state;
	rig_start(&r, &s);
	get_map(map, sizeof(map));
	assert_non_null(strstr(map, "1.1 tcp 0.0.0.0."));
	assert_null(strstr(map, "127.0.0.1"));
	assert_int_equal(rig_stop(&r), 0);
	get_map(map, sizeof(map));
	assert_non_null(strstr(map, "1.1 tcp 0.0.0.0."));
}

static int create_elsewhere(void)
{
	int rc = rpcrdma_svc_create(rig_dispatch, RIG_PROG, RIG_VERS, "rdma://0.0.0.0:20104", NULL);

	if (!rc)
		rc = rpcrdma_svc_create(rig_dispatch, RIG_PROG, RIG_VERS, "rdma://0.0.0.0:20105", NULL);
	return rc ? rc : rpcrdma_svc_create(rig_dispatch, RIG_PROG, RIG_VERS, tcp_url, NULL);
}

/* The next service takes the netid over, and its first URL keeps it. */
static void killed_service_is_replaced(void **state)
{
	const struct rig_service first = { .create = create, .run = svc_run, .url = { tcp_url } };
	const struct rig_service next = { .create = create_elsewhere, .run = svc_run, .url = { tcp_url } };
	char map[1024];
	struct rig r;

	(void)state;
	rig_start(&r, &first);
	assert_int_equal(kill(r.pid, SIGKILL), 0);
	assert_int_equal(waitpid(r.pid, NULL, 0), r.pid);
	get_map(map, sizeof(map));
	assert_non_null(strstr(map, "1.1 rdma 0.0.0.0.78.134\n"));
	rig_start(&r, &next);
	get_map(map, sizeof(map));
	assert_non_null(strstr(map, "1.1 rdma 0.0.0.0.78.136\n"));
	assert_int_equal(rig_stop(&r), 0);
	get_map(map, sizeof(map));
	assert_null(strstr(map, "1.1 rdma "));
}

static enum clnt_stat create_stat(const char *url, rpcprog_t prog)
{
	const struct timeval plenty = { 25, 0 };
	CLIENT *clnt = rpcrdma_clnt_create(url, prog, RIG_VERS, NULL);
	enum clnt_stat stat;

	if (!clnt)
		return rpc_createerr.cf_stat;
	stat = clnt_call(clnt, RIG_NULL, (xdrproc_t)xdr_rig_void, NULL, (xdrproc_t)xdr_rig_void, NULL, plenty);
	clnt_destroy(clnt);
	return stat;
}

/* A CLIENT at a URL without a port asks rpcbind. */
static void client_finds_port(void **state)
{
	const struct rig_service s = { .create = create, .run = svc_run, .url = { tcp_url } };
	struct rig r;

	(void)state;
	(void)rpcb_unset(RIG_PROG, RIG_VERS, NULL); /* what services that were killed have left */
	(void)rpcb_unset(RIG_PROG2, RIG_VERS, NULL);
	rig_start(&r, &s);
	assert_int_equal(create_stat("tcp://127.0.0.1", RIG_PROG), RPC_SUCCESS);
	assert_int_equal(create_stat("tcp://[::1]", RIG_PROG), RPC_SUCCESS);
	assert_int_equal(create_stat("tcp://127.0.0.1", RIG_PROG2), RPC_SUCCESS);
	assert_int_equal(create_stat("tcp://[::1]", RIG_PROG2), RPC_PROGNOTREGISTERED);
	assert_int_equal(create_stat("tcp://127.0.0.1", RIG_PROG2 + 1), RPC_PROGNOTREGISTERED);
	assert_int_equal(create_stat("rdma://127.0.0.1", RIG_PROG), RPC_SYSTEMERROR); /* a port, but no device */
	assert_int_equal(create_stat("rdma://127.0.0.1", RIG_PROG2), RPC_PROGNOTREGISTERED);
	assert_int_equal(create_stat("tcp://127.0.0.2:1", RIG_PROG), RPC_SYSTEMERROR);
	assert_int_equal(rig_stop(&r), 0);
	assert_int_equal(create_stat("tcp://127.0.0.1", RIG_PROG), RPC_PROGNOTREGISTERED);
}

static int skip_all(const char *why)
{
	printf("SKIP: %s\n", why);
	return 77;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(programs_are_registered),
		cmocka_unit_test(daemon_registers_again),
		cmocka_unit_test(own_tcp_stays_registered),
		cmocka_unit_test(killed_service_is_replaced),
		cmocka_unit_test(client_finds_port),
	};

	if (setenv("PATH", "/usr/sbin:/sbin:/usr/bin:/bin", 1))
		return 1;
	if (argc < 2) {
		if (geteuid())
			return skip_all("needs root");
		if (access("/usr/sbin/rpcbind", X_OK) && access("/sbin/rpcbind", X_OK))
			return skip_all("no rpcbind here");
		if (system("unshare -n -m -p -f --mount-proc mount -t tmpfs tmpfs /run 2>/dev/null"))
			return skip_all("no namespaces of our own here");
		execlp("unshare", "unshare", "-n", "-m", "-p", "-f", "--kill-child", "--mount-proc", argv[0], "inside",
		       (char *)NULL);
		return 1;
	}
	/* rpcbind has bound its sockets when its parent ends */
	if (mount("tmpfs", "/run", "tmpfs", 0, NULL) || system("ip link set lo up") || system("rpcbind"))
		return skip_all("rpcbind does not start here");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
