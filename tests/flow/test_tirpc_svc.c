/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_tirpc_svc.c - programs of libtirpc at URLs of ours: every loop, several programs, errors
 */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <unistd.h>

#include <cmocka.h>

#include "rpcrdma.h"
#include "rpcrdma_tirpc.h"
#include "tirpc_rig.h"

static char local_url[256];
static const char tcp_url[] = "tcp://127.0.0.1";

/* ---- services ---- */

static unsigned short ports[2];

/* Each program at each URL, and libtirpc's own transports beside them. */
static int create_all(void)
{
	static const char *const urls[] = { tcp_url, local_url };
	SVCXPRT *tcp = svctcp_create(RPC_ANYSOCK, 0, 0), *udp = svcudp_create(RPC_ANYSOCK);
	int rc = 0;

	for (size_t i = 0; i < 2 && !rc; i++) {
		rc = rpcrdma_svc_create(rig_dispatch, RIG_PROG, RIG_VERS, urls[i], NULL);
		if (!rc)
			rc = rpcrdma_svc_create(rig_dispatch, RIG_PROG, RIG_VERS2, urls[i], NULL);
		if (!rc)
			rc = rpcrdma_svc_create(rig_dispatch, RIG_PROG2, RIG_VERS, urls[i], NULL);
	}
	if (rc || !tcp || !udp)
		return rc ? rc : -EIO;
	if (!svc_register(tcp, RIG_PROG, RIG_VERS, rig_dispatch, 0) || !svc_register(udp, RIG_PROG, RIG_VERS, rig_dispatch, 0))
		return -EIO;
	ports[0] = tcp->xp_port;
	ports[1] = udp->xp_port;
	return 0;
}

static bool has_ended(void)
{
	return !svc_pollfd && !svc_max_pollfd;
}

static void run_set(void)
{
	while (!has_ended()) {
		fd_set fds = svc_fdset;

		if (select(FD_SETSIZE, &fds, NULL, NULL, NULL) > 0)
			svc_getreqset(&fds);
	}
}

static void run_poll(void)
{
	struct pollfd fds[64];

	while (!has_ended()) {
		int n = svc_max_pollfd;

		memcpy(fds, svc_pollfd, (size_t)n * sizeof(fds[0]));
		n = poll(fds, (nfds_t)n, -1);
		if (n > 0)
			svc_getreq_poll(fds, n);
	}
}

/* A loop that looks at descriptors one by one. */
static void run_common(void)
{
	struct pollfd fds[64];

	while (!has_ended()) {
		int n = svc_max_pollfd;

		memcpy(fds, svc_pollfd, (size_t)n * sizeof(fds[0]));
		if (poll(fds, (nfds_t)n, -1) <= 0)
			continue;
		for (int i = 0; i < n; i++)
			if (fds[i].fd >= 0 && fds[i].revents && !has_ended())
				svc_getreq_common(fds[i].fd);
	}
}

static struct rig start(void (*run)(void))
{
	const struct rig_service s = { .create = create_all, .run = run, .url = { tcp_url, local_url },
				       .ports = ports };
	struct rig r;

	snprintf(local_url, sizeof(local_url), "%s", rig_local("svc"));
	rig_start(&r, &s);
	return r;
}

static enum clnt_stat call_null(const char *url, rpcprog_t prog, rpcvers_t vers, rpcproc_t proc)
{
	return rig_call(url, prog, vers, proc, (xdrproc_t)xdr_rig_void, NULL, (xdrproc_t)xdr_rig_void, NULL);
}

static void check_echo(const char *url, u_int len)
{
	struct rig_bytes b = { .len = len, .val = malloc(len + 1) }, res = { 0 };

	for (u_int i = 0; i < len; i++)
		b.val[i] = (char)(i * 7 + (i >> 8));
	assert_int_equal(rig_call(url, RIG_PROG, RIG_VERS, RIG_ECHO, (xdrproc_t)xdr_rig_bytes, &b, (xdrproc_t)xdr_rig_bytes,
				  &res),
			 RPC_SUCCESS);
	assert_int_equal(res.len, len);
	assert_memory_equal(res.val, b.val, len);
	free(b.val);
	free(res.val);
}

/* ---- tests ---- */

static void check_loop(void (*run)(void))
{
	struct rig r = start(run);
	char beside[64];

	assert_int_not_equal(rig_port(r.url[0]), 2049); /* but a free one */
	snprintf(beside, sizeof(beside), "tcp://127.0.0.1:%u", r.ports[0]);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(call_null(beside, RIG_PROG, RIG_VERS, RIG_NULL), RPC_SUCCESS);
		assert_int_equal(rig_call_udp(r.ports[1], RIG_PROG, RIG_VERS, RIG_NULL), RPC_SUCCESS);
		for (unsigned k = 0; k < 3; k++) {
			assert_int_equal(call_null(r.url[i], RIG_PROG, RIG_VERS, RIG_NULL), RPC_SUCCESS);
			assert_int_equal(call_null(r.url[i], RIG_PROG, RIG_VERS2, RIG_NULL), RPC_SUCCESS);
			assert_int_equal(call_null(r.url[i], RIG_PROG2, RIG_VERS, RIG_NULL), RPC_SUCCESS);
		}
		check_echo(r.url[i], 0);
		check_echo(r.url[i], 1);
		check_echo(r.url[i], 3000);
		check_echo(r.url[i], 20000);
	}
	assert_int_equal(rig_stop(&r), 0);
	assert_int_equal(access(local_url + strlen("local://"), F_OK), -1); /* exit() removes the socket */
}

static void svc_run_serves(void **state)
{
	(void)state;
	check_loop(svc_run);
}

static void getreqset_serves(void **state)
{
	(void)state;
	check_loop(run_set);
}

static void getreq_poll_serves(void **state)
{
	(void)state;
	check_loop(run_poll);
}

static void getreq_common_serves(void **state)
{
	(void)state;
	check_loop(run_common);
}

static void rpcrdma_svc_run_serves(void **state)
{
	(void)state;
	check_loop(rpcrdma_svc_run);
}

/* Arguments and results up to max_bytes, from libtirpc's own client in many fragments. */
static void messages_of_any_size(void **state)
{
	static const u_int lengths[] = { 65535, 1 << 20, (4 << 20) + 1, (16 << 20) - 4 };
	struct rig r = start(rpcrdma_svc_run);

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		check_echo(r.url[0], lengths[i]);
	check_echo(r.url[1], 300000);
	assert_int_equal(rig_stop(&r), 0);
}

static void errors_of_rfc_5531(void **state)
{
	struct rig r = start(svc_run);
	u_int word = 0;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(call_null(r.url[i], RIG_PROG, 2, RIG_NULL), RPC_PROGVERSMISMATCH);
		assert_int_equal(call_null(r.url[i], RIG_PROG, RIG_VERS, RIG_PROCS), RPC_PROCUNAVAIL);
		assert_int_equal(call_null(r.url[i], RIG_PROG, RIG_VERS, RIG_BAD_ARGS), RPC_CANTDECODEARGS);
		assert_int_equal(call_null(r.url[i], RIG_PROG, RIG_VERS, RIG_ECHO), RPC_CANTDECODEARGS);
		assert_int_equal(call_null(r.url[i], RIG_PROG, RIG_VERS, RIG_BAD_RES), RPC_SYSTEMERROR);
		assert_int_equal(call_null(r.url[i], RIG_PROG, RIG_VERS, RIG_WEAK), RPC_AUTHERROR);
		assert_int_equal(call_null(r.url[i], RIG_PROG, RIG_VERS, RIG_SYSTEM), RPC_SYSTEMERROR);
		assert_int_equal(rig_call(r.url[i], RIG_PROG, RIG_VERS, RIG_TWICE, (xdrproc_t)xdr_rig_void, NULL,
					  (xdrproc_t)xdr_u_int, &word),
				 RPC_SUCCESS);
		assert_int_equal(word, 1);
	}
	assert_int_equal(rig_stop(&r), 0);
}

static void unregistered_program_ends(void **state)
{
	struct rig r = start(svc_run);

	(void)state;
	assert_int_equal(call_null(r.url[0], RIG_PROG2, RIG_VERS, RIG_NULL), RPC_SUCCESS);
	assert_int_equal(call_null(r.url[0], RIG_PROG, RIG_VERS, RIG_UNREG), RPC_SUCCESS);
	assert_int_equal(call_null(r.url[0], RIG_PROG2, RIG_VERS, RIG_NULL), RPC_PROGUNAVAIL);
	assert_int_equal(call_null(r.url[0], RIG_PROG, RIG_VERS, RIG_NULL), RPC_SUCCESS);
	assert_int_equal(rig_stop(&r), 0);
}

static int raw_with(const char *url, uint32_t flavor)
{
	const struct rpcrdma_auth auth = { .flavor = flavor };
	const struct rpcrdma_cred cred = { .opaque = &auth };
	struct rpcrdma_call call = { .prog = RIG_PROG, .vers = RIG_VERS, .proc = RIG_NULL, .cred = &cred };

	return rig_raw(url, &call);
}

/* A credential that libtirpc would take for checked, and one that it does not know. */
static void other_flavors_are_refused(void **state)
{
	struct rig r = start(svc_run);

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(raw_with(r.url[i], RPCSEC_GSS), -EACCES);
		assert_int_equal(raw_with(r.url[i], AUTH_DES), -EACCES);
		assert_int_equal(raw_with(r.url[i], 390000), -EACCES);
		assert_int_equal(raw_with(r.url[i], AUTH_NONE), 0);
	}
	assert_int_equal(rig_stop(&r), 0);
}

/* The kernel decides who is root and what another user may be. */
static void local_callers_are_known(void **state)
{
	const gid_t gids[3] = { 7, 2000, 3000 };
	bool root = geteuid() == 0;
	uid_t uid = root ? 1234 : geteuid();
	gid_t gid = root ? 1235 : getegid();
	struct rig r = start(svc_run);
	struct rig_who w;

	(void)state;
	rig_who_as(r.url[1], uid, gid, gids, 3, &w);
	assert_int_equal(w.family, AF_INET);
	assert_int_equal(w.addr, 0x7f000001);
	assert_true(w.port >= 1024);
	assert_int_equal(w.flavor, AUTH_SYS);
	assert_int_equal(w.uid, uid);
	assert_int_equal(w.gid, gid);
	if (root) {
		assert_int_equal(w.ngids, 3);
		assert_int_equal(w.gids[1], 2000);
		rig_who_as(r.url[1], 0, 0, NULL, 0, &w);
		assert_true(w.port > 0 && w.port < 1024);
		assert_int_equal(w.uid, 4711);
		assert_int_equal(w.gid, 4712);
	}
	assert_int_equal(rig_stop(&r), 0);
}

static void tcp_callers_have_their_address(void **state)
{
	struct rig r = start(svc_run);
	struct rig_who w;

	(void)state;
	assert_int_equal(rig_call(r.url[0], RIG_PROG, RIG_VERS2, RIG_WHO, (xdrproc_t)xdr_rig_void, NULL, (xdrproc_t)xdr_rig_who,
				  &w),
			 RPC_SUCCESS);
	assert_int_equal(w.vers, RIG_VERS2);
	assert_int_equal(w.family, AF_INET);
	assert_int_equal(w.addr, 0x7f000001);
	assert_true(w.port > 0);
	assert_int_equal(w.uid, geteuid());
	assert_int_equal(rig_stop(&r), 0);
}

static void other_dispatch(struct svc_req *q, SVCXPRT *x)
{
	(void)q;
	svcerr_noproc(x);
}

/* In the process of the test, which serves nothing. */
static void wrong_attributes_are_refused(void **state)
{
	struct {
		struct rpcrdma_tirpc_attr attr;
		char more;
	} newer = { .attr.size = sizeof(newer), .more = 1 };
	struct rpcrdma_tirpc_attr a = { .max_bytes = RPCRDMA_TIRPC_MAX_BYTES + 1 };
	char url[16];

	(void)state;
	assert_int_equal(rpcrdma_svc_create(rig_dispatch, RIG_PROG, RIG_VERS, tcp_url, &newer.attr), -E2BIG);
	assert_int_equal(rpcrdma_svc_create(rig_dispatch, RIG_PROG, RIG_VERS, tcp_url, &a), -EINVAL);
	a = (struct rpcrdma_tirpc_attr){ .inline_bytes = 1000 };
	assert_int_equal(rpcrdma_svc_create(rig_dispatch, RIG_PROG, RIG_VERS, tcp_url, &a), -EINVAL);
	assert_int_equal(rpcrdma_svc_create(rig_dispatch, RIG_PROG, RIG_VERS, "udp://127.0.0.1", NULL), -EINVAL);
	assert_int_equal(rpcrdma_svc_create(NULL, RIG_PROG, RIG_VERS, tcp_url, NULL), -EINVAL);
	assert_int_equal(rpcrdma_svc_create(rig_dispatch, RIG_PROG, RIG_VERS, "local:///nonexistent/socket", NULL), -ENOENT);
	assert_int_equal(svc_max_pollfd, 0);
	assert_int_equal(rpcrdma_svc_url(tcp_url, url, sizeof(url)), -ENOENT);
	/* a program has one dispatch function for all transports */
	assert_int_equal(rpcrdma_svc_create(rig_dispatch, RIG_PROG, RIG_VERS, tcp_url, NULL), 0);
	assert_int_equal(rpcrdma_svc_create(rig_dispatch, RIG_PROG, RIG_VERS, tcp_url, NULL), 0);
	assert_int_equal(rpcrdma_svc_create(other_dispatch, RIG_PROG, RIG_VERS, "tcp://127.0.0.1:0", NULL), -EEXIST);
	assert_int_equal(rpcrdma_svc_url("tcp://127.0.0.1:0", url, sizeof(url)), -ENOENT);
	assert_true(rpcrdma_svc_url(tcp_url, url, sizeof(url)) > (int)sizeof(url));
	assert_string_equal(url, "tcp://127.0.0.1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(svc_run_serves),
		cmocka_unit_test(getreqset_serves),
		cmocka_unit_test(getreq_poll_serves),
		cmocka_unit_test(getreq_common_serves),
		cmocka_unit_test(rpcrdma_svc_run_serves),
		cmocka_unit_test(messages_of_any_size),
		cmocka_unit_test(errors_of_rfc_5531),
		cmocka_unit_test(unregistered_program_ends),
		cmocka_unit_test(other_flavors_are_refused),
		cmocka_unit_test(local_callers_are_known),
		cmocka_unit_test(tcp_callers_have_their_address),
		cmocka_unit_test(wrong_attributes_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
