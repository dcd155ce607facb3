/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * many.c - very many clients of one server, in one process
 *
 *   many [-c CREDITS] [-r ROUNDS] URL EXPORT N
 *
 * Operation:  N connections on one engine, each of which mounts EXPORT by itself (MNT), as many at a
 *             time as a server lets shake hands. Says "mounted N". Then ROUNDS (1) times one GETATTR
 *             on each of them, all at once, and says "served N"; and stays, with a GETATTR on each for
 *             every line of standard input, "served N" again, until the input ends.
 *             Prints the smallest and the largest grant before "served".
 * Memory:     One record for each connection; 1000 of them take about 130 MiB over the local fabric.
 * Threads:    One.
 * Errors:     The first connection or call that fails ends it, exit status 1; 77 if the limit of
 *             open files is too small here.
 */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/util.h"
#include "mount3.h"
#include "nfs3.h"
#include "rpcrdma.h"

#define AT_ONCE 32u /* that connect or mount */
#define FILES_SPARE 64u

struct one {
	struct rpcrdma_clnt *clnt;
	struct rpcrdma_call call;
	unsigned n;
	uint32_t fh_len;
	char fh[NFS3_FHSIZE];
	mountres3 mount;
	GETATTR3args args;
	GETATTR3res attr;
};

static struct rpcrdma_domain *domain;
static struct rpcrdma_engine *engine;
static struct one *all;
static unsigned count, busy, mounted, served;
static char *export;

static _Noreturn printf_like(1, 2) void die(const char *fmt, ...)
{
	va_list ap;

	fputs("many: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputs("\n", stderr);
	exit(1);
}

static void call(struct one *o, uint32_t prog, uint32_t proc, xdrproc_t encode, const void *args,
		 xdrproc_t decode, void *res, void (*done)(struct rpcrdma_call *call, int err))
{
	int rc;

	o->call = (struct rpcrdma_call){ .prog = prog,
					 .vers = 3,
					 .proc = proc,
					 .encode = encode,
					 .args = args,
					 .decode = decode,
					 .res = res,
					 .reply_max = 512,
					 .done = done };
	rc = rpcrdma_clnt_call(o->clnt, &o->call);
	if (rc)
		die("call on connection %u: %s", o->n, strerror(-rc));
	busy++;
}

static void on_attr(struct rpcrdma_call *c, int err)
{
	struct one *o = container_of(c, struct one, call);

	busy--;
	if (err || o->attr.status != NFS3_OK)
		die("GETATTR on connection %u: %s, status %d", o->n, strerror(-err),
		    (int)o->attr.status);
	xdr_free((xdrproc_t)xdr_GETATTR3res, (char *)&o->attr);
	served++;
}

static void on_mounted(struct rpcrdma_call *c, int err)
{
	struct one *o = container_of(c, struct one, call);
	const mountres3_ok *ok = &o->mount.mountres3_u.mountinfo;

	busy--;
	if (err || o->mount.fhs_status != MNT3_OK || ok->fhandle.fhandle3_len > NFS3_FHSIZE)
		die("MNT on connection %u: %s, status %d", o->n, strerror(-err),
		    (int)o->mount.fhs_status);
	o->fh_len = ok->fhandle.fhandle3_len;
	memcpy(o->fh, ok->fhandle.fhandle3_val, o->fh_len);
	xdr_free((xdrproc_t)xdr_mountres3, (char *)&o->mount);
	mounted++;
}

static void turn(void)
{
	int rc = rpcrdma_engine_wait(engine, 10000);

	if (rc < 0)
		die("engine: %s", strerror(-rc));
	if (!rc)
		die("nothing for ten seconds: %u mounted, %u served, %u calls out", mounted, served, busy);
}

static void mount_all(const struct rpcrdma_clnt_attr *attr)
{
	for (unsigned i = 0; i < count; i++) {
		struct one *o = &all[i];
		int rc = rpcrdma_clnt_open(engine, attr, &o->clnt);

		if (rc)
			die("connection %u: %s", i, strerror(-rc));
		o->n = i;
		call(o, MOUNT_PROGRAM, MOUNTPROC3_MNT, (xdrproc_t)xdr_dirpath, &export,
		     (xdrproc_t)xdr_mountres3, &o->mount, on_mounted);
		while (busy >= AT_ONCE)
			turn();
	}
	while (mounted < count)
		turn();
	printf("mounted %u\n", mounted);
	fflush(stdout);
}

static void serve_all(void)
{
	uint32_t least = UINT32_MAX, most = 0;

	served = 0;
	for (unsigned i = 0; i < count; i++) {
		struct one *o = &all[i];

		o->args.object.data.data_len = o->fh_len;
		o->args.object.data.data_val = o->fh;
		call(o, NFS_PROGRAM, NFSPROC3_GETATTR, (xdrproc_t)xdr_GETATTR3args, &o->args,
		     (xdrproc_t)xdr_GETATTR3res, &o->attr, on_attr);
	}
	while (served < count)
		turn();
	for (unsigned i = 0; i < count; i++) {
		struct rpcrdma_clnt_info info;

		rpcrdma_clnt_info(all[i].clnt, &info);
		if (info.reconnects)
			die("connection %u was lost once: %s", i, info.why);
		least = MIN(least, info.credits);
		most = MAX(most, info.credits);
	}
	printf("credits %u to %u\nserved %u\n", (unsigned)least, (unsigned)most, served);
	fflush(stdout);
}

/* What comes in is a round; its end is the end. */
static void stay(void)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
	char line[64];

	for (;;) {
		while (poll(&in, 1, 0) == 0)
			(void)rpcrdma_engine_wait(engine, 20);
		if (read(STDIN_FILENO, line, sizeof(line)) <= 0)
			return;
		serve_all();
	}
}

static void raise_files(unsigned need)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl))
		die("getrlimit: %s", strerror(errno));
	rl.rlim_cur = rl.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &rl); /* if not, the limit is what it was */
	if (!getrlimit(RLIMIT_NOFILE, &rl) && rl.rlim_cur >= need)
		return;
	printf("%u files cannot be open here at once\n", need);
	exit(77);
}

int main(int argc, char **argv)
{
	struct rpcrdma_clnt_attr attr = { .cred = { .machine = "many" }, .connect_ms = 60000 };
	unsigned rounds = 1;
	int c, rc;

	while ((c = getopt(argc, argv, "c:r:")) >= 0) {
		if (c == 'c')
			attr.credits = (uint32_t)strtoul(optarg, NULL, 10);
		else if (c == 'r')
			rounds = (unsigned)strtoul(optarg, NULL, 10);
		else
			return 2;
	}
	if (argc - optind != 3) {
		fprintf(stderr, "usage: many [-c CREDITS] [-r ROUNDS] URL EXPORT N\n");
		return 2;
	}
	rc = rpcrdma_addr_parse(argv[optind], &attr.addr);
	if (rc)
		die("%s: %s", argv[optind], strerror(-rc));
	export = argv[optind + 1];
	count = (unsigned)strtoul(argv[optind + 2], NULL, 10);
	attr.cred.uid = geteuid();
	attr.cred.gid = getegid();
	/* over RDMA all of them have one channel */
	raise_files(attr.addr.transport == RPCRDMA_RDMA ? FILES_SPARE : count + FILES_SPARE);
	all = calloc(count, sizeof(*all));
	rc = rpcrdma_domain_create(NULL, &domain);
	if (!rc)
		rc = rpcrdma_engine_create(domain, NULL, &engine);
	if (rc || !all)
		die("no engine: %s", strerror(-rc));
	mount_all(&attr);
	while (rounds-- > 0)
		serve_all();
	stay();
	for (unsigned i = 0; i < count; i++)
		rpcrdma_clnt_destroy(all[i].clnt);
	rpcrdma_engine_destroy(engine);
	rpcrdma_domain_destroy(domain);
	free(all);
	return 0;
}
