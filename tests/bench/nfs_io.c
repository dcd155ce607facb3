/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * nfs_io.c - sequential READs or WRITEs of NFS, 1 MiB each and 8 in flight, whatever the export is
 *
 *   nfs_io ADDRESS EXPORT FILE read|write SECONDS MIB
 *
 * libleat goes past the manager of a volume; this program does not. It prints MB/s (10^6). A WRITE is unstable.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/util.h"
#include "mount3.h"
#include "nfs3.h"
#include "rpcrdma.h"

#define IO (1u << 20)
#define FLYING 8u

struct op {
	struct rpcrdma_call call;
	union {
		READ3args read;
		WRITE3args write;
	} args;
	union {
		nfsstat3 status; /* results begin with it */
		READ3res read;
		WRITE3res write;
	} res;
	struct iovec mem;
};

static struct rpcrdma_engine *engine;
static struct rpcrdma_clnt *clnt;
static struct rpcrdma_cred cred = { .machine = "bench" };
static char fh[NFS3_FHSIZE];
static unsigned fh_len, flying, mib;
static uint64_t next, moved, until_ns;
static bool writes;

static void check(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "nfs_io: %s failed\n", what);
	exit(1);
}

static void take_fh(unsigned len, const char *data)
{
	check(len <= sizeof(fh), "a handle");
	fh_len = len;
	memcpy(fh, data, len);
}

static bool replied;

static void on_reply(struct rpcrdma_call *call, int err)
{
	check(!err, call->prog == MOUNT_PROGRAM ? "MNT" : "LOOKUP");
	replied = true;
}

static void ask(struct rpcrdma_call *call)
{
	call->cred = &cred;
	call->reply_max = 8192;
	call->done = on_reply;
	replied = false;
	check(!rpcrdma_clnt_call(clnt, call), "a call");
	while (!replied)
		(void)rpcrdma_engine_wait(engine, -1);
}

static void find_file(char *export, char *name)
{
	mountres3 root = { 0 };
	LOOKUP3args args = { 0 };
	LOOKUP3res res = { 0 };
	struct rpcrdma_call mnt = { .prog = MOUNT_PROGRAM, .vers = MOUNT_V3, .proc = MOUNTPROC3_MNT, .args = &export, .res = &root,
				    .encode = (xdrproc_t)xdr_dirpath, .decode = (xdrproc_t)xdr_mountres3 };
	struct rpcrdma_call lookup = { .prog = NFS_PROGRAM, .vers = NFS_V3, .proc = NFSPROC3_LOOKUP, .args = &args, .res = &res,
				       .encode = (xdrproc_t)xdr_LOOKUP3args, .decode = (xdrproc_t)xdr_LOOKUP3res };

	ask(&mnt);
	check(root.fhs_status == MNT3_OK, "MNT");
	take_fh(root.mountres3_u.mountinfo.fhandle.fhandle3_len, root.mountres3_u.mountinfo.fhandle.fhandle3_val);
	args.what.dir = (nfs_fh3){ { fh_len, fh } };
	args.what.name = name;
	ask(&lookup);
	check(res.status == NFS3_OK, "LOOKUP");
	take_fh(res.LOOKUP3res_u.resok.object.data.data_len, res.LOOKUP3res_u.resok.object.data.data_val);
}

static void start(struct op *op);

static void on_done(struct rpcrdma_call *call, int err)
{
	struct op *op = container_of(call, struct op, call);

	flying--;
	check(!err && op->res.status == NFS3_OK, writes ? "WRITE" : "READ");
	moved += writes ? op->res.write.WRITE3res_u.resok.count : op->res.read.READ3res_u.resok.count;
	if (clock_now_ns() < until_ns)
		start(op);
}

static void start(struct op *op)
{
	uint64_t off = next++ % mib * IO;
	nfs_fh3 file = { { fh_len, fh } };

	op->call = (struct rpcrdma_call){ .prog = NFS_PROGRAM, .vers = NFS_V3, .cred = &cred, .args = &op->args, .res = &op->res,
					  .reply_max = 4096, .done = on_done };
	memset(&op->res, 0, sizeof(op->res));
	if (writes) {
		op->args.write = (WRITE3args){ .file = file, .offset = off, .count = IO, .stable = UNSTABLE,
					       .data = { .length = IO, .iov = &op->mem, .iovcnt = 1 } };
		op->call.proc = NFSPROC3_WRITE;
		op->call.encode = (xdrproc_t)xdr_WRITE3args;
		op->call.decode = (xdrproc_t)xdr_WRITE3res;
	} else {
		op->args.read = (READ3args){ .file = file, .offset = off, .count = IO };
		op->call.proc = NFSPROC3_READ;
		op->call.encode = (xdrproc_t)xdr_READ3args;
		op->call.decode = (xdrproc_t)xdr_READ3res;
		op->call.sink = &op->mem;
		op->call.sinkcnt = 1;
	}
	flying++;
	check(!rpcrdma_clnt_call(clnt, &op->call), "a call");
}

int main(int argc, char **argv)
{
	static struct op ops[FLYING];
	struct rpcrdma_clnt_attr attr = { 0 };
	uint64_t began;

	check(argc == 7 && !rpcrdma_addr_parse(argv[1], &attr.addr), "usage: nfs_io ADDRESS EXPORT FILE read|write SECONDS MIB:");
	writes = argv[4][0] == 'w';
	mib = (unsigned)MAX(atoi(argv[6]), 1);
	cred.uid = geteuid();
	cred.gid = getegid();
	attr.cred = cred;
	check(!rpcrdma_engine_create(NULL, NULL, &engine) && !rpcrdma_clnt_open(engine, &attr, &clnt), "opening a connection");
	find_file(argv[2], argv[3]);
	began = clock_now_ns();
	until_ns = began + (uint64_t)(atof(argv[5]) * 1e9);
	for (unsigned i = 0; i < FLYING; i++) {
		ops[i].mem = (struct iovec){ calloc(1, IO), IO };
		check(ops[i].mem.iov_base != NULL, "memory");
		start(&ops[i]);
	}
	while (flying)
		(void)rpcrdma_engine_wait(engine, -1);
	printf("%.1f\n", (double)moved * 1e3 / (double)(clock_now_ns() - began));
	rpcrdma_clnt_destroy(clnt);
	rpcrdma_engine_destroy(engine);
	return 0;
}
