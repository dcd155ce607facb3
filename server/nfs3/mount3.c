/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * mount3.c - the MOUNT protocol, version 3 (RFC 1813 appendix I)
 *
 * Operation: MNT turns the path of an export, or of a directory below one, into a handle. Clients get their first
 *            handle only here. Every later request is checked against the export's rules again, so a handle alone
 *            grants no access.
 * Memory:    Results in the request, lists in req_scratch().
 * Threads:   Workers: paths are walked with the user's rights.
 * Errors:    MNT of an export that does not admit the client returns ACCES, of a missing one NOENT: EXPORT lists
 *            the names anyway.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "mount_table.h"
#include "nfs.h"
#include "nfs_errno.h"

static void preset_path(struct req *r)
{
	struct nfs_call *call = nfs_call(r);

	call->args.mnt = call->mem.path;
}

/* The client's address, for DUMP; "local" if it is in no network. */
static const char *host_of(const struct req *r, char buf[INET6_ADDRSTRLEN])
{
	const struct sockaddr_storage *ss = &r->conn->peer.addr;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)ss;
	const struct sockaddr_in *in = (const struct sockaddr_in *)ss;
	const void *ip = ss->ss_family == AF_INET6 ? (const void *)&in6->sin6_addr : &in->sin_addr;

	return inet_ntop(ss->ss_family, ip, buf, INET6_ADDRSTRLEN) ? buf : "local";
}

/* Walks down from the export's root, name by name, with the user's rights. The path must not lead out of the export. */
static int walk(struct req *r, struct fh_obj *o, char *rest)
{
	char *save = NULL;
	int err = 0;

	for (char *t = strtok_r(rest, "/", &save); t && !err; t = strtok_r(NULL, "/", &save)) {
		struct fh_obj next = { .fd = -1 };

		if (!strcmp(t, ".."))
			return -EACCES;
		err = vfs_lookup(nfs_handles(r), o, t, &r->creds, &next);
		if (err)
			return err;
		fh_close(o);
		*o = next;
	}
	return S_ISDIR(o->stx.stx_mode) ? err : -ENOTDIR;
}

/* Logs why a mount is denied, for the administrator. */
static void say_refused(struct req *r, const struct export *exp, enum peer_verdict v)
{
	char why[80];

	if (server_may_tell(r->srv, &r->conn->peer))
		log_warn("%s is denied export %s: %s", r->conn->peer.text, exp->conf.name,
			 peer_verdict_text(v, &r->conn->peer, why, sizeof(why)));
}

static int find_dir(struct req *r, const char *path, struct fh *ret)
{
	struct nfs_call *call = nfs_call(r);
	struct export *exp;
	struct fh_obj o = { .fd = -1 };
	enum peer_verdict verdict;
	const char *rest;
	char *copy;
	int err;

	exp = export_find_path(&exports_of(call->exports)->table, path, &rest);
	if (!exp)
		return -ENOENT;
	/* not from the connection's cached verdicts: those belong to its reactor */
	verdict = peers_admit(&exp->conf.peers, &r->conn->peer);
	if (verdict != PEER_ADMITTED) {
		say_refused(r, exp, verdict);
		return -EACCES;
	}
	creds_squash(&r->creds, &exp->conf);
	copy = strdup(rest);
	if (!copy)
		return -ENOMEM;
	err = fh_open_root(nfs_handles(r), exp, &o);
	if (!err)
		err = walk(r, &o, copy);
	if (!err)
		err = fh_make(nfs_handles(r), &o, ret);
	fh_close(&o);
	free(copy);
	return err;
}

/* 5.2.1 MNT */
static void mnt(struct req *r)
{
	struct nfs_call *call = nfs_call(r);
	mountres3_ok *ok = &call->res.mnt.mountres3_u.mountinfo;
	char host[INET6_ADDRSTRLEN];
	struct fh fh;
	int err = find_dir(r, call->args.mnt, &fh);

	call->res.mnt.fhs_status = mount3_status(err);
	if (err)
		return;
	memcpy(call->mem.fh_res, fh.data, fh.len);
	ok->fhandle.fhandle3_val = call->mem.fh_res;
	ok->fhandle.fhandle3_len = fh.len;
	call->mem.flavors[0] = CREDS_AUTH_SYS;
	call->mem.flavors[1] = CREDS_AUTH_NONE;
	ok->auth_flavors.auth_flavors_val = call->mem.flavors;
	ok->auth_flavors.auth_flavors_len = ARRAY_SIZE(call->mem.flavors);
	mount_table_add(nfs_server(r->srv)->mounts, host_of(r, host), call->args.mnt);
}

static void *dump_memory(void *ctx, size_t bytes)
{
	return req_scratch(ctx, bytes);
}

/* 5.2.2 DUMP */
static void dump(struct req *r)
{
	struct nfs_call *call = nfs_call(r);

	call->res.dump = mount_table_dump(nfs_server(r->srv)->mounts, dump_memory, r);
}

/* 5.2.3 UMNT */
static void umnt(struct req *r)
{
	struct nfs_call *call = nfs_call(r);
	char host[INET6_ADDRSTRLEN];

	mount_table_remove(nfs_server(r->srv)->mounts, host_of(r, host), call->args.mnt);
}

/* 5.2.4 UMNTALL */
static void umntall(struct req *r)
{
	char host[INET6_ADDRSTRLEN];

	mount_table_remove(nfs_server(r->srv)->mounts, host_of(r, host), NULL);
}

/* One export with its clients, in one allocation. */
struct export_entry {
	struct exportnode node;
	struct groupnode groups[PEERS_MAX];
	char text[PEERS_MAX][INET6_ADDRSTRLEN + 4];
};

static void fill_entry(const struct export *exp, struct export_entry *e)
{
	e->node.ex_dir = exp->conf.name;
	for (size_t i = 0; i < exp->conf.peers.n; i++) {
		const struct peer_net *c = &exp->conf.peers.nets[i];
		char addr[INET6_ADDRSTRLEN] = "";

		(void)inet_ntop(c->family, c->addr, addr, sizeof(addr));
		(void)snprintf(e->text[i], sizeof(e->text[i]), "%s/%u", addr, c->bits);
		e->groups[i].gr_name = e->text[i];
		e->groups[i].gr_next = i + 1 < exp->conf.peers.n ? &e->groups[i + 1] : NULL;
	}
	e->node.ex_groups = exp->conf.peers.n ? e->groups : NULL;
}

/* 5.2.5 EXPORT */
static void list_exports(struct req *r)
{
	struct nfs_call *call = nfs_call(r);
	const struct export_table *t = &exports_of(call->exports)->table;
	struct export_entry *v = req_scratch(r, t->n * sizeof(*v));

	call->res.exports = NULL;
	if (!v)
		return;
	for (size_t i = 0; i < t->n; i++) {
		fill_entry(&t->v[i], &v[i]);
		v[i].node.ex_next = i + 1 < t->n ? &v[i + 1].node : NULL;
	}
	call->res.exports = t->n ? &v[0].node : NULL;
}

/* MNT walks a path with the rights of its caller; its export and the squashing come later (find_dir). */
static int authorize(struct req *r)
{
	struct nfs_call *call = nfs_call(r);
	const struct export *exp;
	const char *rest;

	nfs_hold_exports(r);
	if (r->rpc->proc != MOUNTPROC3_MNT)
		return 0;
	exp = export_find_path(&exports_of(call->exports)->table, call->args.mnt, &rest);
	r->dev = exp ? exp->backing.dev : 0;
	return nfs_find_groups(r);
}

static const struct prog_proc procs[] = {
	[MOUNTPROC3_NULL] = PROG_NULL,
	[MOUNTPROC3_MNT] = {
		.name = "MNT",
		PROG_CODECS(dirpath, mountres3),
		.preset = preset_path,
		.work = mnt,
	},
	[MOUNTPROC3_DUMP] = {
		.name = "DUMP",
		.decode = (xdrproc_t)prog_xdr_void,
		.encode = (xdrproc_t)xdr_mountlist,
		.res_bytes = sizeof(mountlist),
		.work = dump,
	},
	[MOUNTPROC3_UMNT] = {
		.name = "UMNT",
		.decode = (xdrproc_t)xdr_dirpath,
		.encode = (xdrproc_t)prog_xdr_void,
		.args_bytes = sizeof(dirpath),
		.preset = preset_path,
		.work = umnt,
	},
	[MOUNTPROC3_UMNTALL] = {
		.name = "UMNTALL",
		.decode = (xdrproc_t)prog_xdr_void,
		.encode = (xdrproc_t)prog_xdr_void,
		.work = umntall,
	},
	[MOUNTPROC3_EXPORT] = {
		.name = "EXPORT",
		.decode = (xdrproc_t)prog_xdr_void,
		.encode = (xdrproc_t)xdr_mountexports,
		.res_bytes = sizeof(mountexports),
		.work = list_exports,
	},
};

const struct prog prog_mount3 = {
	.number = MOUNT_PROGRAM,
	.vers = MOUNT_V3,
	.name = "MOUNT",
	.procs = procs,
	.nprocs = ARRAY_SIZE(procs),
	NFS_CALL,
	.authorize = authorize,
};
