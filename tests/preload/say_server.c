/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * say_server.c - an ordinary service of libtirpc, over TCP and UDP: it knows nothing of librpcrdma
 *
 *   say_server old|new PORT [daemon]
 *
 * "old" registers by svc_register(), "new" by svc_reg(); neither asks rpcbind. "daemon" goes into the background after
 * that. It ends when SAY_QUIT is called.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rpc/rpc.h>
#include <rpc/svc_soc.h>

#include "say.h"

/* of say_svc.c */
void say_1(struct svc_req *req, SVCXPRT *xprt);
void say_3(struct svc_req *req, SVCXPRT *xprt);

void *old_null_1_svc(struct svc_req *req)
{
	static char nothing;

	(void)req;
	return &nothing;
}

void *say_null_3_svc(struct svc_req *req)
{
	return old_null_1_svc(req);
}

said *say_back_3_svc(said args, struct svc_req *req)
{
	static said back;

	(void)req;
	back = args;
	return &back;
}

caller *say_caller_3_svc(struct svc_req *req)
{
	const struct netbuf *from = svc_getrpccaller(req->rq_xprt);
	const struct sockaddr_in *in = from->buf;
	const struct authunix_parms *sys = req->rq_clntcred;
	static caller who;

	memset(&who, 0, sizeof(who));
	who.flavor = (u_int)req->rq_cred.oa_flavor;
	if (who.flavor == AUTH_SYS)
		who.uid = sys->aup_uid;
	who.family = in->sin_family;
	if (who.family == AF_INET)
		who.port = ntohs(in->sin_port);
	return &who;
}

u_int *say_quit_3_svc(struct svc_req *req)
{
	static u_int pid;

	(void)req;
	pid = (u_int)getpid();
	svc_exit();
	return &pid;
}

static int sock_at(int type, unsigned short port)
{
	const struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(port),
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, type, 0), on = 1;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) || bind(fd, (const struct sockaddr *)&at, sizeof(at)) ||
	    (type == SOCK_STREAM && listen(fd, 16))) {
		perror("socket");
		exit(1);
	}
	return fd;
}

int main(int argc, char **argv)
{
	unsigned short port = argc > 2 ? (unsigned short)atoi(argv[2]) : 0;
	SVCXPRT *xprts[2];

	if (argc < 3)
		return 2;
	xprts[0] = svctcp_create(sock_at(SOCK_STREAM, port), 0, 0);
	xprts[1] = svcudp_create(sock_at(SOCK_DGRAM, port));
	for (int i = 0; i < 2; i++) {
		int ok;

		if (!xprts[i])
			return 1;
		if (!strcmp(argv[1], "old"))
			ok = svc_register(xprts[i], SAY, SAY_OLD, say_1, 0) && svc_register(xprts[i], SAY, SAY_NEW, say_3, 0);
		else
			ok = svc_reg(xprts[i], SAY, SAY_OLD, say_1, NULL) && svc_reg(xprts[i], SAY, SAY_NEW, say_3, NULL);
		if (!ok)
			return 1;
	}
	if (argc > 3 && daemon(1, 1))
		return 1;
	puts("ready");
	fflush(stdout);
	svc_run();
	return 0;
}
