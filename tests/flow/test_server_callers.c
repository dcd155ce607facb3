/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_server_callers.c - leatd and its callers: exports, identities, rights; what it tells; how it ends
 *
 * Everything runs over TCP and over the local fabric.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "nfs_peer.h"
#include "server.h"
#include "tcp_proxy.h"

static const char *const options[] = { "rw,no_root_squash", "ro,no_root_squash",
				       "rw,clients=192.0.2.1",
				       "rw,all_squash,anonuid=4711,anongid=4712" };

NFS_PEER_SETUPS(options)

/* ---- exports and callers ---- */

static void read_only_export(void **state)
{
	struct nfs_peer *p = *state;
	ACCESS3args aa = { .access = 0x3f };
	ACCESS3res ares = { 0 };
	struct nfs_fh root, f;
	uint8_t byte = 0;
	uint32_t got;
	bool eof;

	tmp_dir_write(&p->dir, "e1/f", "x");
	assert_int_equal(nfs_peer_mount(p, "/e1", &root), MNT3_OK);
	assert_int_equal(nfs_peer_create_file(p, &root, "new", &f), NFS3ERR_ROFS);
	assert_int_equal(nfs_peer_lookup(p, &root, "f", &f), NFS3_OK);
	assert_int_equal(nfs_peer_write(p, &f, 0, &byte, 1, FILE_SYNC, NULL), NFS3ERR_ROFS);
	assert_int_equal(nfs_peer_read(p, &f, 0, &byte, 1, &got, &eof), NFS3_OK);
	assert_int_equal(byte, 'x');
	aa.object = nfs_peer_fh(&f);
	NFS_PEER_CALL(p, ACCESS, &aa, &ares, NULL, 0);
	assert_int_equal(ares.status, NFS3_OK);
	assert_int_equal(ares.ACCESS3res_u.resok.access, ACCESS3_READ);
}

/* over TCP from a loopback address; the local fabric always may */
static void not_admitted(void **state)
{
	struct nfs_peer *p = *state;
	struct nfs_fh root, f;

	nfs_peer_disconnect(p);
	nfs_peer_connect(p, RPCRDMA_TCP, 0);
	assert_int_equal(nfs_peer_mount(p, "/e2", &root), MNT3ERR_ACCES);
	nfs_peer_disconnect(p);
	nfs_peer_connect(p, RPCRDMA_LOCAL, 0);
	assert_int_equal(nfs_peer_mount(p, "/e2", &root), MNT3_OK);
	assert_int_equal(nfs_peer_create_file(p, &root, "f", &f),
			 geteuid() ? NFS3_OK : NFS3ERR_ACCES);
	nfs_peer_disconnect(p);
	nfs_peer_connect(p, RPCRDMA_TCP, 0);
	/* to have the handle is not to be let in */
	assert_int_equal(nfs_peer_lookup(p, &root, "f", &f), NFS3ERR_ACCES);
}

/* Calls from an unreserved port, as all through the proxy are, are refused with an error in exports that need
 * a reserved one. NULL and ctl calls work from any port. */
static void reserved_ports(void **state)
{
	static const char *const ports[] = { "rw,no_root_squash,secure",
					     "rw,no_root_squash,insecure",
					     "rw,no_root_squash", NULL };
	struct nfs_peer *p = *state;
	struct nfs_fh secure, usual, fh;
	bool root = geteuid() == 0;
	struct tcp_proxy proxy;
	uint8_t byte = 0;

	nfs_peer_destroy(p);
	nfs_peer_create(p, RPCRDMA_LOCAL, ports);
	secure = p->root;
	assert_int_equal(nfs_peer_mount(p, "/e2", &usual), MNT3_OK);
	nfs_peer_disconnect(p);

	tcp_proxy_start(&proxy, &p->tcp);
	p->tcp = proxy.addr;
	nfs_peer_connect(p, RPCRDMA_TCP, 0);
	assert_int_equal(nfs_peer_null(p, NFS_PROGRAM, NFS_V3, 0), 0);
	assert_int_equal(nfs_peer_null(p, LEAT_CTL, LEAT_CTL_V1, 0), 0);
	assert_int_equal(nfs_peer_mount(p, "/e0", &fh), MNT3ERR_ACCES);
	assert_int_equal(nfs_peer_mount(p, "/e1", &fh), MNT3_OK);
	assert_int_equal(nfs_peer_create_file(p, &fh, "f", &fh), NFS3_OK);
	assert_int_equal(nfs_peer_mount(p, "/e2", &fh), root ? MNT3ERR_ACCES : MNT3_OK);
	/* to have the handle is not to be let in */
	assert_int_equal(nfs_peer_create_file(p, &secure, "f", &fh), NFS3ERR_ACCES);
	assert_int_equal(nfs_peer_write(p, &secure, 0, &byte, 1, FILE_SYNC, NULL), NFS3ERR_ACCES);
	assert_int_equal(nfs_peer_create_file(p, &usual, "f", &fh),
			 root ? NFS3ERR_ACCES : NFS3_OK);
	nfs_peer_disconnect(p);
	p->tcp = proxy.server;
	tcp_proxy_stop(&proxy);

	/* root gets a reserved port for each connection, more often than there are such ports */
	for (int i = 0; i < (root ? 400 : 1); i++) {
		if (i)
			nfs_peer_disconnect(p);
		nfs_peer_connect(p, RPCRDMA_TCP, 0);
		if (root)
			assert_int_equal(nfs_peer_mount(p, "/e0", &fh), MNT3_OK);
	}
	if (root)
		assert_int_equal(nfs_peer_create_file(p, &secure, "f", &fh), NFS3_OK);
}

static void squashed(void **state)
{
	struct nfs_peer *p = *state;
	struct nfs_fh root, f;
	struct stat st;

	if (geteuid())
		skip();
	assert_int_equal(nfs_peer_mount(p, "/e3", &root), MNT3_OK);
	assert_int_equal(nfs_peer_create_file(p, &root, "f", &f), NFS3ERR_ACCES);
	assert_int_equal(chmod(tmp_dir_path(&p->dir, "e3"), 0777), 0);
	assert_int_equal(nfs_peer_create_file(p, &root, "f", &f), NFS3_OK);
	assert_int_equal(stat(tmp_dir_path(&p->dir, "e3/f"), &st), 0);
	assert_int_equal(st.st_uid, 4711);
	assert_int_equal(st.st_gid, 4712);
	/* as another user, in an export that trusts the credential */
	p->cred.uid = 1234;
	p->cred.gid = 1235;
	assert_int_equal(chmod(tmp_dir_path(&p->dir, "e0"), 0777), 0);
	assert_int_equal(nfs_peer_create_file(p, &p->root, "g", &f), NFS3_OK);
	assert_int_equal(stat(tmp_dir_path(&p->dir, "e0/g"), &st), 0);
	assert_int_equal(st.st_uid, 1234);
	assert_int_equal(st.st_gid, 1235);
}

/* a right that was taken away is gone with the next call, descriptor and cache or not */
static void rights_change(void **state)
{
	struct nfs_peer *p = *state;
	struct nfs_fh f;
	uint8_t byte = 0;
	uint32_t got;
	bool eof;

	if (geteuid())
		skip();
	tmp_dir_write(&p->dir, "e0/f", "x");
	p->cred.uid = 1234;
	p->cred.gid = 1235;
	assert_int_equal(nfs_peer_lookup(p, &p->root, "f", &f), NFS3_OK);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(nfs_peer_read(p, &f, 0, &byte, 1, &got, &eof), NFS3_OK);
		assert_int_equal(nfs_peer_write(p, &f, 0, &byte, 1, UNSTABLE, NULL), NFS3ERR_ACCES);
	}
	assert_int_equal(chmod(tmp_dir_path(&p->dir, "e0/f"), 0600), 0);
	assert_int_equal(nfs_peer_read(p, &f, 0, &byte, 1, &got, &eof), NFS3ERR_ACCES);
	assert_int_equal(chmod(tmp_dir_path(&p->dir, "e0/f"), 0606), 0);
	assert_int_equal(nfs_peer_write(p, &f, 0, &byte, 1, UNSTABLE, NULL), NFS3_OK);
	assert_int_equal(nfs_peer_write(p, &f, 0, &byte, 1, FILE_SYNC, NULL), NFS3_OK);
}

/* MNT is no way around a directory that the caller may not search */
static void mount_below(void **state)
{
	struct nfs_peer *p = *state;
	struct nfs_fh fh;

	tmp_dir_mkdir(&p->dir, "e0/closed");
	tmp_dir_mkdir(&p->dir, "e0/closed/below");
	tmp_dir_mkdir(&p->dir, "e3/closed");
	tmp_dir_mkdir(&p->dir, "e3/closed/below");
	assert_int_equal(nfs_peer_mount(p, "/e0/closed/below", &fh), MNT3_OK);
	assert_int_equal(nfs_peer_mount(p, "/e0/closed/../closed", &fh), MNT3ERR_ACCES);
	assert_int_equal(nfs_peer_mount(p, "/e0/none", &fh), MNT3ERR_NOENT);
	if (geteuid())
		skip();
	assert_int_equal(chmod(tmp_dir_path(&p->dir, "e0/closed"), 0700), 0);
	assert_int_equal(chmod(tmp_dir_path(&p->dir, "e3/closed"), 0700), 0);
	assert_int_equal(nfs_peer_mount(p, "/e0/closed/below", &fh), MNT3_OK);
	/* squashed */
	assert_int_equal(nfs_peer_mount(p, "/e3/closed/below", &fh), MNT3ERR_ACCES);
	p->cred.uid = p->cred.gid = EXPORT_ANON_ID;
	assert_int_equal(nfs_peer_mount(p, "/e0/closed/below", &fh), MNT3ERR_ACCES);
	/* LOOKUP would give that one, too */
	assert_int_equal(nfs_peer_mount(p, "/e0/closed", &fh), MNT3_OK);
	assert_int_equal(nfs_peer_lookup(p, &fh, "below", &fh), NFS3ERR_ACCES);
}

/* the server again, with one export: "/" is DIR/e0 */
static void restart_as_slash(struct nfs_peer *p)
{
	struct conf *conf = calloc(1, sizeof(*conf));
	char arg[512], why[CONF_WHY_BYTES] = "";

	nfs_peer_disconnect(p);
	nfs_peer_stop(p);
	assert_non_null(conf);
	conf_init(conf);
	snprintf(arg, sizeof(arg), "/=%s", tmp_dir_path(&p->dir, "e0"));
	assert_int_equal(export_conf_parse(arg, &conf->exports[0], why, sizeof(why)), 0);
	conf->nexports = 1;
	conf->listen[0] = p->local;
	conf->nlisten = 1;
	assert_int_equal(server_start(conf, &p->srv), 0);
	conf_fini(conf);
	free(conf);
	nfs_peer_connect(p, RPCRDMA_LOCAL, 0);
}

static bool_t xdr_path_with_nul(XDR *xdrs, void *bytes)
{
	char *path = bytes;
	u_int len = 6;

	return xdr_bytes(xdrs, &path, &len, len);
}

/* what cannot name a directory names none, also where "/" is one */
static void mount_path_with_nul(void **state)
{
	char path[] = { '/', 'x', 0, 'y', 'z', '/' };
	struct nfs_peer *p = *state;
	mountres3 res = { 0 };
	struct nfs_fh fh;

	restart_as_slash(p);
	assert_int_equal(nfs_peer_mount(p, "/", &fh), MNT3_OK);
	assert_int_equal(nfs_peer_rpc(p, MOUNT_PROGRAM, MOUNT_V3, MOUNTPROC3_MNT,
				      (xdrproc_t)xdr_path_with_nul, path, (xdrproc_t)xdr_mountres3,
				      &res, NULL, 0),
			 0);
	assert_int_equal(res.fhs_status, MNT3ERR_NOENT);
	xdr_free((xdrproc_t)xdr_mountres3, (char *)&res);
	assert_int_equal(nfs_peer_mount(p, "", &fh), MNT3ERR_NOENT);
}

/* ---- the control program, and the end ---- */

static void about_itself(void **state)
{
	struct nfs_peer *p = *state;
	ctl_info info = { 0 }, again = { 0 };
	ctl_stats stats = { 0 };
	bool cpu = false;

	for (int i = 0; i < 2; i++)
		assert_int_equal(nfs_peer_rpc(p, LEAT_CTL, LEAT_CTL_V1, CTL_INFO,
					      (xdrproc_t)nfs_peer_xdr_nothing, NULL, (xdrproc_t)xdr_ctl_info,
					      i ? &again : &info, NULL, 0),
				 0);
	assert_memory_equal(info.instance, again.instance, sizeof(info.instance));
	assert_int_equal(info.listeners.listeners_len, 2);
	assert_int_equal(nfs_peer_rpc(p, LEAT_CTL, LEAT_CTL_V1, CTL_STATS, (xdrproc_t)nfs_peer_xdr_nothing,
				      NULL, (xdrproc_t)xdr_ctl_stats, &stats, NULL, 0),
			 0);
	for (u_int i = 0; i < stats.stats.stats_len; i++)
		cpu |= !strcmp(stats.stats.stats_val[i].name, "cpu_us");
	assert_true(cpu);
	xdr_free((xdrproc_t)xdr_ctl_stats, (char *)&stats);
	xdr_free((xdrproc_t)xdr_ctl_info, (char *)&info);
	xdr_free((xdrproc_t)xdr_ctl_info, (char *)&again);
}

struct burst {
	struct rpcrdma_call call;
	GETATTR3args args;
	GETATTR3res res;
	unsigned *left;
};

static void on_burst(struct rpcrdma_call *call, int err)
{
	struct burst *b = container_of(call, struct burst, call);

	assert_true(!err || err == -ECANCELED);
	--*b->left;
}

/* A server that ends answers what it has taken, and a client that stays connected is no reason to
 * wait. */
static void ends_busy(void **state)
{
	enum { N = 200 };
	struct nfs_peer *p = *state;
	struct burst *b = calloc(N, sizeof(*b));
	unsigned left = N;

	for (int i = 0; i < N; i++) {
		b[i].left = &left;
		b[i].args.object = nfs_peer_fh(&p->root);
		b[i].call = (struct rpcrdma_call){
			.prog = NFS_PROGRAM,
			.vers = NFS_V3,
			.proc = NFSPROC3_GETATTR,
			.encode = (xdrproc_t)xdr_GETATTR3args,
			.args = &b[i].args,
			.decode = (xdrproc_t)xdr_GETATTR3res,
			.res = &b[i].res,
			.reply_max = 200,
			.done = on_burst,
		};
		assert_int_equal(rpcrdma_clnt_call(p->clnt, &b[i].call), 0);
	}
	while (left > N - 5)
		(void)rpcrdma_engine_wait(p->engine, -1);
	nfs_peer_stop(p);
	nfs_peer_disconnect(p); /* gives up the rest */
	assert_int_equal(left, 0);
	free(b);
}

/* silent and half-open connections neither */
static void ends_with_silent_peers(void **state)
{
	struct nfs_peer *p = *state;
	struct rpcrdma_clnt_attr attr = { .addr = p->tcp };
	struct rpcrdma_clnt *mute[2];

	assert_int_equal(rpcrdma_clnt_open(p->engine, &attr, &mute[0]), 0);
	attr.addr = p->local;
	assert_int_equal(rpcrdma_clnt_open(p->engine, &attr, &mute[1]), 0);
	for (int i = 0; i < 20; i++)
		assert_int_equal(nfs_peer_null(p, NFS_PROGRAM, NFS_V3, 0), 0);
	nfs_peer_stop(p);
	rpcrdma_clnt_destroy(mute[0]);
	rpcrdma_clnt_destroy(mute[1]);
}

#define BOTH(f)                                                                                    \
	{ #f " (tcp)", f, setup_tcp, nfs_peer_teardown, NULL },                                             \
	{                                                                                          \
#f " (local)", f, setup_local, nfs_peer_teardown, NULL                                      \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(read_only_export),	      BOTH(not_admitted), BOTH(squashed),
		BOTH(rights_change),	      BOTH(about_itself), BOTH(ends_busy),
		BOTH(ends_with_silent_peers), BOTH(mount_below),
		cmocka_unit_test_setup_teardown(reserved_ports, setup_local, nfs_peer_teardown),
		cmocka_unit_test_setup_teardown(mount_path_with_nul, setup_local, nfs_peer_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
