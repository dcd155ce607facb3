/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * verbs_long.c - verbs_long HOST PORT MOUNTPORT EXPORT INLINE: long calls and long replies
 *
 * Operation:  No NFSv3 call of libleat is too long for 1024 bytes once its data is taken out, so here
 *             the data is not marked as a payload, as a security flavor with integrity would have it:
 *             a WRITE of any length that does not fit becomes a position-zero Read chunk of the whole
 *             call, and a READ's whole reply goes to the Reply chunk. What was written is read back
 *             both ways and compared. MOUNT goes over TCP.
 * Memory:     Two buffers of 1 MiB.
 * Threads:    One.
 * Errors:     Exit status 1 and a line.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "mount3.h"
#include "nfs3.h"
#include "rpcrdma.h"

#define MOST (1u << 20)

struct fh {
	u_int len;
	char bytes[NFS3_FHSIZE];
};

struct plain_write {
	nfs_fh3 file;
	uint64_t off;
	uint32_t len, stable;
	char *data;
};

struct plain_read {
	nfsstat3 status;
	post_op_attr attr;
	uint32_t count;
	bool_t eof;
	char *data;
	u_int len;
};

struct waiting {
	struct rpcrdma_call call;
	bool done;
	int err;
};

static struct rpcrdma_engine *engine;

static _Noreturn void die(const char *what, uint32_t n, int err)
{
	fprintf(stderr, "verbs_long: %s, %u: %s\n", what, n,
		err < 0 ? strerror(-err) : "not what it should be");
	exit(1);
}

static bool_t xdr_plain_write(XDR *x, void *arg)
{
	struct plain_write *w = arg;

	return xdr_nfs_fh3(x, &w->file) && xdr_u_int64_t(x, &w->off) && xdr_u_int32_t(x, &w->len) &&
	       xdr_u_int32_t(x, &w->stable) && xdr_bytes(x, &w->data, &w->len, MOST);
}

static bool_t xdr_plain_read(XDR *x, void *arg)
{
	struct plain_read *r = arg;

	return xdr_nfsstat3(x, &r->status) && xdr_post_op_attr(x, &r->attr) &&
	       (r->status != NFS3_OK ||
		(xdr_u_int32_t(x, &r->count) && xdr_bool(x, &r->eof) &&
		 xdr_bytes(x, &r->data, &r->len, MOST)));
}

static void on_done(struct rpcrdma_call *call, int err)
{
	struct waiting *w = container_of(call, struct waiting, call);

	w->done = true;
	w->err = err;
}

static void run(struct rpcrdma_clnt *c, struct rpcrdma_call call, const char *what, uint32_t n)
{
	struct waiting w = { .call = call };
	int err;

	w.call.deadline_ms = 20000;
	w.call.done = on_done;
	err = rpcrdma_clnt_call(c, &w.call);
	while (!err && !w.done)
		(void)rpcrdma_engine_wait(engine, -1);
	if (err || w.err)
		die(what, n, err ? err : w.err);
}

static struct rpcrdma_clnt *dial(const char *scheme, char **argv, uint32_t inline_bytes)
{
	struct rpcrdma_clnt_attr attr = { .inline_bytes = inline_bytes };
	struct rpcrdma_clnt *c;
	char url[256];
	int rc;

	snprintf(url, sizeof(url), "%s://%s:%s", scheme, argv[1],
		 strcmp(scheme, "tcp") ? argv[2] : argv[3]);
	strcpy(attr.cred.machine, "long");
	rc = rpcrdma_addr_parse(url, &attr.addr);
	if (!rc)
		rc = rpcrdma_clnt_open(engine, &attr, &c);
	if (rc)
		die(url, 0, rc);
	return c;
}

static void mount_it(struct rpcrdma_clnt *c, char *export, struct fh *ret)
{
	const struct rpcrdma_call call = {
		.prog = MOUNT_PROGRAM, .vers = MOUNT_V3, .proc = MOUNTPROC3_MNT,
		.encode = (xdrproc_t)xdr_dirpath, .args = &export,
		.decode = (xdrproc_t)xdr_mountres3, .reply_max = 4096,
	};
	mountres3 res = { 0 };
	struct rpcrdma_call mnt = call;

	mnt.res = &res;
	run(c, mnt, "MNT", 0);
	if (res.fhs_status != MNT3_OK)
		die("MNT", res.fhs_status, 0);
	ret->len = res.mountres3_u.mountinfo.fhandle.fhandle3_len;
	memcpy(ret->bytes, res.mountres3_u.mountinfo.fhandle.fhandle3_val, ret->len);
	xdr_free((xdrproc_t)xdr_mountres3, (char *)&res);
}

static struct rpcrdma_call nfs(uint32_t proc)
{
	return (struct rpcrdma_call){ .prog = NFS_PROGRAM, .vers = NFS_V3, .proc = proc };
}

static nfs_fh3 handle(struct fh *fh)
{
	return (nfs_fh3){ .data = { .data_len = fh->len, .data_val = fh->bytes } };
}

static void create(struct rpcrdma_clnt *c, struct fh *dir, char *name, struct fh *ret)
{
	CREATE3args a = { .where = { handle(dir), name } };
	sattr3 *sa = &a.how.createhow3_u.obj_attributes;
	CREATE3res res = { 0 };
	struct rpcrdma_call call = nfs(NFSPROC3_CREATE);
	const nfs_fh3 *fh = &res.CREATE3res_u.resok.obj.post_op_fh3_u.handle;

	sa->mode.set_it = TRUE;
	sa->mode.set_mode3_u.mode = 0644;
	call.encode = (xdrproc_t)xdr_CREATE3args;
	call.args = &a;
	call.decode = (xdrproc_t)xdr_CREATE3res;
	call.res = &res;
	call.reply_max = 1024;
	run(c, call, "CREATE", 0);
	if (res.status != NFS3_OK || !res.CREATE3res_u.resok.obj.handle_follows)
		die("CREATE", res.status, 0);
	ret->len = fh->data.data_len;
	memcpy(ret->bytes, fh->data.data_val, ret->len);
	xdr_free((xdrproc_t)xdr_CREATE3res, (char *)&res);
}

static void long_write(struct rpcrdma_clnt *c, struct fh *fh, uint64_t off, char *data, uint32_t len)
{
	struct plain_write w = { .file = handle(fh), .off = off, .len = len, .data = data };
	struct rpcrdma_call call = nfs(NFSPROC3_WRITE);
	WRITE3res res = { 0 };

	call.encode = (xdrproc_t)xdr_plain_write;
	call.args = &w;
	call.decode = (xdrproc_t)xdr_WRITE3res;
	call.res = &res;
	call.reply_max = 256;
	run(c, call, "WRITE", len);
	if (res.status != NFS3_OK || res.WRITE3res_u.resok.count != len)
		die("WRITE", len, 0);
}

/* The whole reply to the Reply chunk, or inline: nothing is offered for the data alone. */
static void long_read(struct rpcrdma_clnt *c, struct fh *fh, uint64_t off, const char *want,
		      uint32_t len)
{
	READ3args a = { .file = handle(fh), .offset = off, .count = len };
	struct rpcrdma_call call = nfs(NFSPROC3_READ);
	struct plain_read res = { 0 };

	call.encode = (xdrproc_t)xdr_READ3args;
	call.args = &a;
	call.decode = (xdrproc_t)xdr_plain_read;
	call.res = &res;
	call.reply_max = len + 256;
	run(c, call, "READ", len);
	if (res.status != NFS3_OK || res.count != len || res.len != len ||
	    memcmp(res.data, want, len) != 0)
		die("READ", len, 0);
	free(res.data);
}

static void chunk_read(struct rpcrdma_clnt *c, struct fh *fh, uint64_t off, const char *want,
		       char *room, uint32_t len)
{
	struct iovec iov = { room, len };
	READ3args a = { .file = handle(fh), .offset = off, .count = len };
	struct rpcrdma_call call = nfs(NFSPROC3_READ);
	READ3res res = { 0 };

	memset(room, 0xee, len);
	call.encode = (xdrproc_t)xdr_READ3args;
	call.args = &a;
	call.decode = (xdrproc_t)xdr_READ3res;
	call.res = &res;
	call.sink = &iov;
	call.sinkcnt = 1;
	call.reply_max = 256;
	run(c, call, "READ by Write chunk", len);
	if (res.status != NFS3_OK || res.READ3res_u.resok.count != len || memcmp(room, want, len))
		die("READ by Write chunk", len, 0);
}

int main(int argc, char **argv)
{
	static const uint32_t lengths[] = { 1, 2, 3, 699, 1021, 1024, 3901, 4096, 4097, 65535, 65537,
					    262147, MOST - 4096 - 1, MOST };
	char *data = malloc(MOST + 64), *room = malloc(MOST);
	struct rpcrdma_clnt *tcp, *rdma;
	struct rpcrdma_domain *domain;
	struct fh root, file;
	char name[] = "long-calls";
	int rc;

	if (argc != 6) {
		fprintf(stderr, "usage: verbs_long HOST PORT MOUNTPORT EXPORT INLINE\n");
		return 2;
	}
	if (!data || !room)
		die("memory", MOST, -ENOMEM);
	for (uint32_t i = 0; i < MOST + 64; i++)
		data[i] = (char)(i * 2654435761u >> 13);
	rc = rpcrdma_domain_create(NULL, &domain);
	if (!rc)
		rc = rpcrdma_engine_create(domain, NULL, &engine);
	if (rc)
		die("engine", 0, rc);
	tcp = dial("tcp", argv, 0);
	mount_it(tcp, argv[4], &root);
	rpcrdma_clnt_destroy(tcp);
	rdma = dial("rdma", argv, (uint32_t)strtoul(argv[5], NULL, 10));
	create(rdma, &root, name, &file);
	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		uint32_t len = lengths[i];
		uint64_t off = i * 7u;

		long_write(rdma, &file, off, data + i, len);
		long_read(rdma, &file, off, data + i, MIN(len, MOST - 4096));
		chunk_read(rdma, &file, off, data + i, room, len);
	}
	rpcrdma_clnt_destroy(rdma);
	rpcrdma_engine_destroy(engine);
	rpcrdma_domain_destroy(domain);
	free(data);
	free(room);
	return 0;
}
