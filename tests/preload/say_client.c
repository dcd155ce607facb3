/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * say_client.c - an ordinary program of libtirpc, which creates its handle by the function named: it knows nothing of
 * librpcrdma
 *
 *   say_client FUNCTION HOST PORT [BYTES]      sends BYTES bytes and compares what comes back; prints "ok"
 *   say_client caller|fork|quit HOST PORT      prints what SAY_CALLER returned; calls in a child; ends the service
 *
 * HOST is an address for functions that take one.
 */
#include <arpa/inet.h>
#include <netconfig.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rpc/rpc.h>
#include <rpc/clnt_soc.h>

#include "say.h"

static const char *host;
static struct sockaddr_in addr;
static int sock = RPC_ANYSOCK;

static void die(const char *what)
{
	fprintf(stderr, "say_client: %s\n", what);
	exit(1);
}

static struct netbuf netbuf_of_addr(void)
{
	const struct netbuf buf = { sizeof(addr), sizeof(addr), &addr };

	return buf;
}

static struct netconfig *conf(const char *netid)
{
	struct netconfig *c = getnetconfigent(netid);

	if (!c)
		die("no such netid");
	return c;
}

static int connected(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (connect(fd, (const struct sockaddr *)&addr, sizeof(addr)))
		die("connect");
	return fd;
}

/* The handle that the test closes, with the socket that it brought along */
static CLIENT *closes(CLIENT *clnt)
{
	if (clnt && !clnt_control(clnt, CLSET_FD_CLOSE, NULL))
		die("CLSET_FD_CLOSE");
	return clnt;
}

static CLIENT *by_function(const char *f)
{
	const struct timeval limit = { .tv_sec = 10 }, wait = { .tv_sec = 1 };
	struct netbuf to = netbuf_of_addr();
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	rpcvers_t vers = 0;
	CLIENT *clnt;

	if (!strcmp(f, "clnt_create"))
		return clnt_create(host, SAY, SAY_NEW, "tcp");
	if (!strcmp(f, "clnt_create_timed"))
		return clnt_create_timed(host, SAY, SAY_NEW, "udp", &limit);
	if (!strcmp(f, "clnt_create_vers")) {
		clnt = clnt_create_vers(host, SAY, &vers, SAY_OLD, 9, "tcp");
		if (clnt && vers != SAY_NEW)
			die("another version");
		return clnt;
	}
	if (!strcmp(f, "clnt_create_vers_timed")) {
		clnt = clnt_create_vers_timed(host, SAY, &vers, SAY_NEW, 4, "tcp", &limit);
		if (clnt && vers != SAY_NEW)
			die("another version");
		return clnt;
	}
	if (!strcmp(f, "clnt_tp_create"))
		return clnt_tp_create(host, SAY, SAY_NEW, conf("tcp"));
	if (!strcmp(f, "clnt_tp_create_timed"))
		return clnt_tp_create_timed(host, SAY, SAY_NEW, conf("udp"), &limit);
	if (!strcmp(f, "clnt_tli_create"))
		return clnt_tli_create(RPC_ANYFD, conf("tcp"), &to, SAY, SAY_NEW, 0, 0);
	if (!strcmp(f, "clnt_vc_create"))
		return closes(clnt_vc_create(connected(), &to, SAY, SAY_NEW, 0, 0));
	if (!strcmp(f, "clnt_dg_create"))
		return closes(clnt_dg_create(socket(AF_INET, SOCK_DGRAM, 0), &to, SAY, SAY_NEW, 0, 0));
	if (!strcmp(f, "clnttcp_create"))
		return clnttcp_create(&addr, SAY, SAY_NEW, &sock, 0, 0);
	if (!strcmp(f, "clntudp_create"))
		return clntudp_create(&addr, SAY, SAY_NEW, wait, &sock);
	if (!strcmp(f, "clntudp_bufcreate"))
		return clntudp_bufcreate(&addr, SAY, SAY_NEW, wait, &sock, 8800, 8800);
	if (!strcmp(f, "clntunix_create"))
		return clntunix_create(&un, SAY, SAY_NEW, &sock, 0, 0);
	die("no such function");
	return NULL;
}

/* What programs of this kind do with a handle, beside calls */
static void control(CLIENT *clnt, const char *f)
{
	const struct timeval limit = { .tv_sec = 20 };
	struct sockaddr_in from;
	socklen_t bytes = sizeof(from);
	int fd = -1, is_udp = strstr(f, "udp") || strstr(f, "dg") || !strcmp(f, "clnt_create_timed") ||
		!strcmp(f, "clnt_tp_create_timed");

	if (!clnt_control(clnt, CLSET_TIMEOUT, (char *)&limit))
		die("CLSET_TIMEOUT");
	if (clnt_control(clnt, CLSET_RETRY_TIMEOUT, (char *)&limit) != is_udp)
		die("CLSET_RETRY_TIMEOUT");
	if (!clnt_control(clnt, CLGET_FD, (char *)&fd) || fd < 0)
		die("CLGET_FD");
	if (strstr(f, "tcp_create") || strstr(f, "udp_")) {
		if (fd != sock || getsockname(sock, (struct sockaddr *)&from, &bytes) || from.sin_family != AF_INET)
			die("the socket");
	}
	auth_destroy(clnt->cl_auth);
	clnt->cl_auth = authunix_create_default();
}

static char *pattern(size_t bytes)
{
	char *p = malloc(bytes + 1);

	for (size_t i = 0; i < bytes; i++)
		p[i] = (char)(i * 7 + i / 251);
	return p;
}

static void compare(const said *back, const char *bytes, size_t n)
{
	if (back->bytes.bytes_len != n || memcmp(back->bytes.bytes_val, bytes, n))
		die("other bytes came back");
}

static void say(CLIENT *clnt, size_t n)
{
	char *bytes = pattern(n);
	const said args = { .bytes = { (u_int)n, bytes } };
	said *back = say_back_3(args, clnt);

	if (!back) {
		clnt_perror(clnt, "say_client");
		exit(1);
	}
	compare(back, bytes, n);
	clnt_freeres(clnt, (xdrproc_t)xdr_said, back);
	free(bytes);
}

static void call_once(const char *f, size_t n)
{
	char *bytes = pattern(n);
	said args = { .bytes = { (u_int)n, bytes } }, back = { .bytes = { 0, NULL } };
	int stat;

	for (int i = 0; i < 2; i++) {
		if (!strcmp(f, "callrpc"))
			stat = callrpc(host, SAY, SAY_NEW, SAY_BACK, (xdrproc_t)xdr_said, (char *)&args, (xdrproc_t)xdr_said,
				       (char *)&back);
		else
			stat = (int)rpc_call(host, SAY, SAY_NEW, SAY_BACK, (xdrproc_t)xdr_said, (char *)&args,
					     (xdrproc_t)xdr_said, (char *)&back, "tcp");
		if (stat != RPC_SUCCESS)
			die(clnt_sperrno((enum clnt_stat)stat));
		compare(&back, bytes, n);
		xdr_free((xdrproc_t)xdr_said, &back);
	}
	free(bytes);
}

/* A daemon that creates its handle before it goes into the background */
static void call_in_child(CLIENT *clnt)
{
	int status;
	pid_t pid;

	say(clnt, 100);
	pid = fork();
	if (pid == 0) {
		say(clnt, 1000);
		clnt_destroy(clnt);
		exit(0);
	}
	if (waitpid(pid, &status, 0) != pid || status)
		die("the child failed");
	say(clnt, 100);
}

int main(int argc, char **argv)
{
	const char *f = argc > 3 ? argv[1] : "";
	size_t n = argc > 4 ? (size_t)atoi(argv[4]) : 1000;
	const caller *who;
	CLIENT *clnt;

	if (argc < 4)
		return 2;
	host = argv[2];
	addr.sin_family = AF_INET;
	addr.sin_port = htons((unsigned short)atoi(argv[3]));
	inet_pton(AF_INET, host, &addr.sin_addr);
	if (!strcmp(f, "callrpc") || !strcmp(f, "rpc_call")) {
		call_once(f, n);
		puts("ok");
		return 0;
	}
	clnt = by_function(!strcmp(f, "caller") || !strcmp(f, "quit") || !strcmp(f, "fork") ? "clnttcp_create" : f);
	if (!clnt) {
		clnt_pcreateerror("say_client");
		return 1;
	}
	if (!strcmp(f, "caller")) {
		control(clnt, "clnttcp_create");
		who = say_caller_3(clnt);
		if (!who)
			die("SAY_CALLER");
		printf("flavor=%u uid=%u family=%u reserved=%d\n", who->flavor, who->uid, who->family, who->port < IPPORT_RESERVED);
	} else if (!strcmp(f, "quit")) {
		u_int *pid = say_quit_3(clnt);

		printf("%u\n", pid ? *pid : 0);
	} else if (!strcmp(f, "fork")) {
		call_in_child(clnt);
		puts("ok");
	} else {
		control(clnt, f);
		say(clnt, n);
		puts("ok");
	}
	auth_destroy(clnt->cl_auth);
	clnt_destroy(clnt);
	return 0;
}
