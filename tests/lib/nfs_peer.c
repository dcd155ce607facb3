/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * nfs_peer.c - a leatd in this process, and a client that sends it single NFS calls
 *
 * Operation:  The server has its own threads; the client's engine runs while a call waits.
 * Memory:     The caller's structures; results are xdr_free()d here or by the test.
 * Threads:    One.
 * Errors:     Asserted with cmocka.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "conf.h"
#include "nfs_peer.h"
#include "server.h"

#define STOP_MS 20000

/* Reserves a port, from the first start of the server to the end of the peer: between two starts
 * it must not become the local port of another connection. A socket that is bound and does not listen
 * leaves the port free for a listener. */
static void hold_port(struct nfs_peer *p)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(sin);
	char url[64];
	int one = 1;

	p->port_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(p->port_fd >= 0);
	assert_int_equal(setsockopt(p->port_fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)), 0);
	assert_int_equal(bind(p->port_fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
	assert_int_equal(getsockname(p->port_fd, (struct sockaddr *)&sin, &len), 0);
	(void)snprintf(url, sizeof(url), "tcp://127.0.0.1:%u", ntohs(sin.sin_port));
	assert_int_equal(rpcrdma_addr_parse(url, &p->tcp), 0);
}

static struct conf *make_conf(struct nfs_peer *p)
{
	struct conf *conf = malloc(sizeof(*conf));
	char why[CONF_WHY_BYTES] = "", arg[512];

	assert_non_null(conf);
	conf_init(conf);
	for (int i = 0; i < NFS_PEER_EXPORTS && p->options[i]; i++) {
		snprintf(arg, sizeof(arg), "/e%d=%s/e%d,%s", i, p->dir.path, i, p->options[i]);
		if (export_conf_parse(arg, &conf->exports[i], why, sizeof(why)))
			fail_msg("%s: %s", arg, why);
		conf->nexports++;
	}
	if (!p->port_fd) {
		hold_port(p);
		snprintf(arg, sizeof(arg), "local://%s/sock", p->dir.path);
		assert_int_equal(rpcrdma_addr_parse(arg, &p->local), 0);
	}
	conf->listen[0] = p->tcp;
	conf->listen[1] = p->local;
	conf->nlisten = 2;
	conf->reactors = 2;
	conf->state_dir = strdup(tmp_dir_path(&p->dir, "state"));
	if (p->tune)
		p->tune(conf);
	return conf;
}

int nfs_peer_reload(struct nfs_peer *p, char *why, size_t why_bytes)
{
	struct conf *conf = make_conf(p);
	int err = server_reload(p->srv, conf, why, why_bytes);

	conf_fini(conf);
	free(conf);
	return err;
}

void nfs_peer_start(struct nfs_peer *p)
{
	struct conf *conf = make_conf(p);

	log_state.level = LOG_LEVEL_ERR;
	assert_int_equal(server_start(conf, &p->srv), 0);
	p->tcp = *server_listener(p->srv, 0);
	p->local = *server_listener(p->srv, 1);
	conf_fini(conf);
	free(conf);
}

void nfs_peer_stop(struct nfs_peer *p)
{
	assert_int_equal(server_stop(p->srv, STOP_MS), 0);
	p->srv = NULL;
}

/* how many descriptors this process has */
static unsigned descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static void on_state(void *ctx, enum rpcrdma_clnt_state s, const char *why)
{
	struct nfs_peer *p = ctx;

	(void)why;
	if (s == RPCRDMA_CLNT_DOWN && p->down)
		p->down(p);
}

void nfs_peer_connect(struct nfs_peer *p, enum rpcrdma_transport transport, uint32_t inline_bytes)
{
	struct rpcrdma_clnt_attr attr = {
		.addr = transport == RPCRDMA_TCP ? p->tcp : p->local,
		.cred = p->cred,
		.inline_bytes = inline_bytes,
		.backoff_ms = 1,
		.state = on_state,
		.ctx = p,
	};

	assert_int_equal(rpcrdma_clnt_open(p->engine, &attr, &p->clnt), 0);
}

void nfs_peer_disconnect(struct nfs_peer *p)
{
	rpcrdma_clnt_destroy(p->clnt);
	p->clnt = NULL;
}

void nfs_peer_join(struct nfs_peer *p, const struct rpcrdma_addr *at, const char *path)
{
	memset(p, 0, sizeof(*p));
	p->cred.uid = geteuid();
	p->cred.gid = getegid();
	strcpy(p->cred.machine, "peer");
	p->tcp = p->local = *at;
	assert_int_equal(rpcrdma_domain_create(NULL, &p->domain), 0);
	assert_int_equal(rpcrdma_engine_create(p->domain, NULL, &p->engine), 0);
	nfs_peer_connect(p, at->transport, 0);
	assert_int_equal(nfs_peer_mount(p, path, &p->root), MNT3_OK);
}

void nfs_peer_leave(struct nfs_peer *p)
{
	nfs_peer_disconnect(p);
	rpcrdma_engine_destroy(p->engine);
	rpcrdma_domain_destroy(p->domain);
	memset(p, 0, sizeof(*p));
}

void nfs_peer_create(struct nfs_peer *p, enum rpcrdma_transport transport,
		     const char *const *options)
{
	nfs_peer_create_tuned(p, transport, options, NULL);
}

void nfs_peer_create_tuned(struct nfs_peer *p, enum rpcrdma_transport transport,
			   const char *const *options, void (*tune)(struct conf *conf))
{
	memset(p, 0, sizeof(*p));
	p->descriptors = descriptors();
	p->tune = tune;
	tmp_dir_create(&p->dir);
	for (int i = 0; i < NFS_PEER_EXPORTS && options[i]; i++) {
		char name[16];

		snprintf(name, sizeof(name), "e%d", i);
		tmp_dir_mkdir(&p->dir, name);
		p->options[i] = options[i];
	}
	nfs_peer_start(p);
	p->cred.uid = geteuid();
	p->cred.gid = getegid();
	strcpy(p->cred.machine, "peer");
	assert_int_equal(rpcrdma_domain_create(NULL, &p->domain), 0);
	assert_int_equal(rpcrdma_engine_create(p->domain, NULL, &p->engine), 0);
	nfs_peer_connect(p, transport, 0);
	assert_int_equal(nfs_peer_mount(p, "/e0", &p->root), MNT3_OK);
}

void nfs_peer_destroy(struct nfs_peer *p)
{
	nfs_peer_disconnect(p);
	rpcrdma_engine_destroy(p->engine);
	rpcrdma_domain_destroy(p->domain);
	if (p->srv)
		nfs_peer_stop(p);
	close(p->port_fd);
	/* no descriptor is left open, and no other one was closed */
	assert_int_equal(descriptors(), p->descriptors);
	tmp_dir_destroy(&p->dir);
}

struct waiting {
	struct rpcrdma_call call;
	bool done;
	int err;
};

static void on_done(struct rpcrdma_call *call, int err)
{
	struct waiting *w = container_of(call, struct waiting, call);

	w->done = true;
	w->err = err;
}

int nfs_peer_rpc(struct nfs_peer *p, uint32_t prog, uint32_t vers, uint32_t proc, xdrproc_t encode,
		 const void *args, xdrproc_t decode, void *res, void *sink, size_t sink_bytes)
{
	struct iovec iov = { .iov_base = sink, .iov_len = sink_bytes };
	struct waiting w = {
		.call = {
			.prog = prog, .vers = vers, .proc = proc, .cred = &p->cred,
			.encode = encode, .args = args, .decode = decode, .res = res,
			.sink = sink ? &iov : NULL, .sinkcnt = sink ? 1 : 0,
			.reply_max = (1u << 20) + 4096, .deadline_ms = 20000, .done = on_done,
		},
	};
	int err = rpcrdma_clnt_call(p->clnt, &w.call);

	if (err)
		return err;
	while (!w.done)
		(void)rpcrdma_engine_wait(p->engine, -1);
	p->why = w.call.why;
	return w.err;
}

mountstat3 nfs_peer_mount(struct nfs_peer *p, const char *path, struct nfs_fh *ret)
{
	mountres3 res = { 0 };
	dirpath arg = (char *)(uintptr_t)path;
	mountstat3 status;

	assert_int_equal(nfs_peer_rpc(p, MOUNT_PROGRAM, MOUNT_V3, MOUNTPROC3_MNT,
				      (xdrproc_t)xdr_dirpath, &arg, (xdrproc_t)xdr_mountres3, &res,
				      NULL, 0),
			 0);
	status = res.fhs_status;
	if (status == MNT3_OK) {
		const mountres3_ok *ok = &res.mountres3_u.mountinfo;
		bool sys = false;

		for (u_int i = 0; i < ok->auth_flavors.auth_flavors_len; i++)
			sys |= ok->auth_flavors.auth_flavors_val[i] == 1;
		assert_true(sys);
		ret->len = ok->fhandle.fhandle3_len;
		memcpy(ret->data, ok->fhandle.fhandle3_val, ret->len);
	}
	xdr_free((xdrproc_t)xdr_mountres3, (char *)&res);
	return status;
}

nfs_fh3 nfs_peer_fh(const struct nfs_fh *fh)
{
	nfs_fh3 v;

	v.data.data_len = fh->len;
	v.data.data_val = (char *)(uintptr_t)fh->data;
	return v;
}

static void keep(struct nfs_fh *ret, const nfs_fh3 *fh)
{
	ret->len = fh->data.data_len;
	memcpy(ret->data, fh->data.data_val, ret->len);
}

nfsstat3 nfs_peer_lookup(struct nfs_peer *p, const struct nfs_fh *dir, const char *name,
			 struct nfs_fh *ret)
{
	LOOKUP3args a = { .what = { nfs_peer_fh(dir), (char *)(uintptr_t)name } };
	LOOKUP3res res = { 0 };
	nfsstat3 status;

	NFS_PEER_CALL(p, LOOKUP, &a, &res, NULL, 0);
	status = res.status;
	if (status == NFS3_OK && ret)
		keep(ret, &res.LOOKUP3res_u.resok.object);
	xdr_free((xdrproc_t)xdr_LOOKUP3res, (char *)&res);
	return status;
}

nfsstat3 nfs_peer_create_file(struct nfs_peer *p, const struct nfs_fh *dir, const char *name,
			      struct nfs_fh *ret)
{
	CREATE3args a = { .where = { nfs_peer_fh(dir), (char *)(uintptr_t)name } };
	sattr3 *sa = &a.how.createhow3_u.obj_attributes;
	CREATE3res res = { 0 };
	nfsstat3 status;

	sa->mode.set_it = TRUE;
	sa->mode.set_mode3_u.mode = 0644;
	NFS_PEER_CALL(p, CREATE, &a, &res, NULL, 0);
	status = res.status;
	if (status == NFS3_OK && ret) {
		assert_true(res.CREATE3res_u.resok.obj.handle_follows);
		keep(ret, &res.CREATE3res_u.resok.obj.post_op_fh3_u.handle);
	}
	xdr_free((xdrproc_t)xdr_CREATE3res, (char *)&res);
	return status;
}

nfsstat3 nfs_peer_write(struct nfs_peer *p, const struct nfs_fh *fh, uint64_t off, const void *data,
			uint32_t len, stable_how stable, WRITE3resok *ret)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)data, .iov_len = len };
	WRITE3args a = { .file = nfs_peer_fh(fh),
			 .offset = off,
			 .count = len,
			 .stable = stable,
			 .data = { .length = len, .iov = &iov, .iovcnt = 1 } };
	WRITE3res res = { 0 };

	NFS_PEER_CALL(p, WRITE, &a, &res, NULL, 0);
	if (res.status == NFS3_OK && ret)
		*ret = res.WRITE3res_u.resok;
	return res.status;
}

nfsstat3 nfs_peer_read(struct nfs_peer *p, const struct nfs_fh *fh, uint64_t off, void *data,
		       uint32_t count, uint32_t *ret_count, bool *ret_eof)
{
	READ3args a = { .file = nfs_peer_fh(fh), .offset = off, .count = count };
	READ3res res = { 0 };

	NFS_PEER_CALL(p, READ, &a, &res, data, count);
	if (res.status == NFS3_OK) {
		assert_int_equal(res.READ3res_u.resok.count, res.READ3res_u.resok.data.length);
		*ret_count = res.READ3res_u.resok.count;
		*ret_eof = res.READ3res_u.resok.eof;
	}
	return res.status;
}

nfsstat3 nfs_peer_setacl(struct nfs_peer *p, const struct nfs_fh *fh, const secattr *acl)
{
	SETACL3args a = { .object = nfs_peer_fh(fh), .acl = *acl };
	SETACL3res res = { 0 };

	assert_int_equal(nfs_peer_rpc(p, NFSACL_PROGRAM, NFSACL_V3, NFSACLPROC3_SETACL,
				      (xdrproc_t)xdr_SETACL3args, &a, (xdrproc_t)xdr_SETACL3res,
				      &res, NULL, 0),
			 0);
	return res.status;
}

nfsstat3 nfs_peer_getacl(struct nfs_peer *p, const struct nfs_fh *fh, uint32_t mask,
			 GETACL3res *ret)
{
	GETACL3args a = { .object = nfs_peer_fh(fh), .mask = mask };

	memset(ret, 0, sizeof(*ret));
	assert_int_equal(nfs_peer_rpc(p, NFSACL_PROGRAM, NFSACL_V3, NFSACLPROC3_GETACL,
				      (xdrproc_t)xdr_GETACL3args, &a, (xdrproc_t)xdr_GETACL3res,
				      ret, NULL, 0),
			 0);
	return ret->status;
}

uint32_t nfs_peer_access(struct nfs_peer *p, const struct nfs_fh *fh)
{
	ACCESS3args a = { .object = nfs_peer_fh(fh), .access = 0x3f };
	ACCESS3res res = { 0 };

	NFS_PEER_CALL(p, ACCESS, &a, &res, NULL, 0);
	assert_int_equal(res.status, NFS3_OK);
	return res.ACCESS3res_u.resok.access;
}

bool_t nfs_peer_xdr_nothing(XDR *xdrs, void *arg)
{
	(void)xdrs;
	(void)arg;
	return TRUE;
}

int nfs_peer_null(struct nfs_peer *p, uint32_t prog, uint32_t vers, uint32_t proc)
{
	return nfs_peer_rpc(p, prog, vers, proc, (xdrproc_t)nfs_peer_xdr_nothing, NULL,
			    (xdrproc_t)nfs_peer_xdr_nothing, NULL, NULL, 0);
}

int nfs_peer_setup(void **state, enum rpcrdma_transport transport, const char *const *options)
{
	struct nfs_peer *p = malloc(sizeof(*p));

	assert_non_null(p);
	nfs_peer_create(p, transport, options);
	*state = p;
	return 0;
}

int nfs_peer_teardown(void **state)
{
	nfs_peer_destroy(*state);
	free(*state);
	return 0;
}
