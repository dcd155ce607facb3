/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * mntsvc.c - MOUNT service (RFC 1813 appendix I): from a path to the handle of an export
 *
 * Operation:  The service is expected on the NFS connection itself (leatd), or at mountport=. Otherwise
 *             rpcbind (RFC 1833, version 2) on port 111 of the host is asked for it. EXPORT lists the
 *             exports, and the longest entry that is a prefix of the URL's path is mounted with MNT. If
 *             the list does not help (a server may withhold it), MNT is tried with the path, its parent,
 *             and so on.
 *             At the end, UMNT removes the entry from the server's list of mounts. It is optional: it is
 *             not sent on a connection that is down, and the client does not wait long for the reply.
 * Memory:     A connection to a separate service is closed at the end of the operation.
 * Threads:    The mounting thread; blocks (sync.c).
 * Errors:     The server's reply to MNT, or why the service was not found.
 */
#include <errno.h>
#include <stdio.h>

#include "base/text.h"
#include "choose.h"
#include "mntsvc.h"
#include "mount3.h"
#include "nfs_errno.h"
#include "path.h"
#include "sync.h"

#define PMAP_PORT 111
#define PMAP_PROG 100000u
#define PMAP_VERS 2u
#define PMAP_GETPORT 3u
#define PMAP_TCP 6u

#define UMNT_PATIENCE_MS 500u

#define MNT_REPLY_BYTES (4u + 68u + 4u + 32u * 4u)
#define EXPORT_REPLY_BYTES (256u << 10)
#define EXPORTS_TOLD_MAX 200 /* length of a list of exports in a message */

struct pmap_args {
	uint32_t prog, vers, prot, port;
};

static bool_t xdr_pmap_args(XDR *xdrs, struct pmap_args *a)
{
	return xdr_uint32_t(xdrs, &a->prog) && xdr_uint32_t(xdrs, &a->vers) &&
	       xdr_uint32_t(xdrs, &a->prot) && xdr_uint32_t(xdrs, &a->port);
}

/* Opens a connection to another port of the server, for MOUNT or rpcbind. */
static int open_elsewhere(struct leat *m, uint16_t port, uint32_t prog, uint32_t vers, uint32_t patience_ms,
			  struct rpcrdma_clnt **ret, char *why, size_t cap)
{
	struct rpcrdma_addr addr = { .transport = RPCRDMA_TCP, .port = port };

	memcpy(addr.host, m->url.host, sizeof(addr.host));
	return lt_choose_open(m->server, LT_CONN_OTHER, &addr, prog, vers, patience_ms, ret, why, cap);
}

/* Asks rpcbind for the port of the MOUNT service. */
static int find_port(struct leat *m, uint16_t *ret, char *why, size_t cap)
{
	static const struct rpcrdma_cred no_cred = { .none = true };
	const struct pmap_args args = { MOUNT_PROGRAM, MOUNT_V3, PMAP_TCP, 0 };
	uint32_t port = 0;
	struct lt_rpc rpc = LT_RPC(PMAP_PROG, PMAP_VERS, PMAP_GETPORT,
				   xdr_pmap_args, &args, xdr_uint32_t, &port, 4);
	struct rpcrdma_clnt *c = NULL;
	char detail[400];
	int rc;

	rc = open_elsewhere(m, PMAP_PORT, PMAP_PROG, PMAP_VERS, 0, &c, detail, sizeof(detail));
	if (rc) {
		snprintf(why, cap, "no MOUNT service on the NFS port, and rpcbind does not tell "
			 "where it is: %.300s; mountport=N would", detail);
		return rc;
	}
	rpc.call.cred = &no_cred;
	rc = lt_sync_rpc(m->server, c, &rpc);
	lt_server_close(m->server, c);
	if (!rc && (!port || port > UINT16_MAX))
		rc = -ECONNREFUSED;
	if (rc)
		snprintf(why, cap, "rpcbind of %s knows no MOUNT service", m->url.host);
	else
		*ret = (uint16_t)port;
	return rc;
}

/* Does the NFS connection serve MOUNT too? */
static int probe(struct leat *m)
{
	struct lt_rpc rpc = LT_RPC(MOUNT_PROGRAM, MOUNT_V3, MOUNTPROC3_NULL,
				   lt_call_xdr_nothing, NULL, lt_call_xdr_nothing, NULL, 0);

	return lt_sync_rpc(m->server, m->server->clnt[0], &rpc);
}

/* @ret: the first connection of the server, or a connection that the caller destroys */
static int find_service(struct leat *m, struct rpcrdma_clnt **ret, char *why, size_t cap)
{
	uint16_t port = m->url.mountport;
	int rc;

	if (!port) {
		rc = probe(m);
		if (!rc) {
			*ret = m->server->clnt[0];
			return 0;
		}
		if (rc != -EPROTONOSUPPORT || m->url.scheme == LT_SCHEME_LOCAL) {
			snprintf(why, cap, "NULL of the MOUNT service: %s", strerror(-rc));
			return rc;
		}
		rc = find_port(m, &port, why, cap);
		if (rc)
			return rc;
	} else if (m->url.scheme == LT_SCHEME_LOCAL) {
		snprintf(why, cap, "mountport=: a local URL names no host to have such a port");
		return -EINVAL;
	}
	rc = open_elsewhere(m, port, MOUNT_PROGRAM, MOUNT_V3, 0, ret, why, cap);
	if (!rc)
		m->mnt_port = port;
	return rc;
}

static int mnt(struct leat *m, struct rpcrdma_clnt *c, const char *path)
{
	char copy[MNTPATHLEN + 1];
	dirpath arg = copy;
	mountres3 res = { 0 };
	struct lt_rpc rpc = LT_RPC(MOUNT_PROGRAM, MOUNT_V3, MOUNTPROC3_MNT,
				   xdr_dirpath, &arg, xdr_mountres3, &res, MNT_REPLY_BYTES);
	int rc;

	if (strlen(path) >= sizeof(copy))
		return -ENAMETOOLONG;
	strcpy(copy, path);
	rc = lt_sync_rpc(m->server, c, &rpc);
	if (!rc)
		rc = mount3_errno(res.fhs_status);
	if (!rc) {
		const mountres3_ok *ok = &res.mountres3_u.mountinfo;

		m->root.len = ok->fhandle.fhandle3_len; /* <= FHSIZE3: checked by the codec */
		if (m->root.len) /* otherwise there is no address either */
			memcpy(m->root.data, ok->fhandle.fhandle3_val, m->root.len);
	}
	xdr_free((xdrproc_t)xdr_mountres3, &res);
	return rc;
}

/* Appends @name to the list of exports in a message; the list is cut at its maximum length. */
static void note_export(char *list, const char *name)
{
	size_t len = strlen(list);

	snprintf(list + len, EXPORTS_TOLD_MAX - len, "%s%s", len ? ", " : "; it exports ", name);
}

/* Finds the longest export in the server's list that contains @path. Return: found?
 * @names: receives the exports, as a hint for the user; "" if there is no list
 */
static bool find_export(struct leat *m, struct rpcrdma_clnt *c, const char *path,
			char ret[LT_PATH_MAX], char names[EXPORTS_TOLD_MAX])
{
	mountexports list = NULL;
	struct lt_rpc rpc = LT_RPC(MOUNT_PROGRAM, MOUNT_V3, MOUNTPROC3_EXPORT,
				   lt_call_xdr_nothing, NULL, xdr_mountexports, &list, EXPORT_REPLY_BYTES);
	bool found = false;

	if (!lt_sync_rpc(m->server, c, &rpc)) {
		size_t shortest = SIZE_MAX;

		for (const struct exportnode *e = list; e; e = e->ex_next) {
			const char *rest;

			note_export(names, e->ex_dir);
			/* a longer export leaves a shorter rest */
			if (!lt_path_has_prefix(path, e->ex_dir, &rest) || strlen(rest) >= shortest)
				continue;
			shortest = strlen(rest);
			strcpy(ret, e->ex_dir); /* <= MNTPATHLEN */
			found = true;
		}
	}
	xdr_free((xdrproc_t)xdr_mountexports, &list);
	return found;
}

/* Without a list: tries the path itself, then each parent. The first refusal is reported. */
static int mount_by_trial(struct leat *m, struct rpcrdma_clnt *c, char try[LT_PATH_MAX])
{
	int first = 0;

	for (;;) {
		size_t len = strlen(try);
		int rc;

		while (len > 1 && try[len - 1] == '/')
			try[--len] = '\0';
		rc = mnt(m, c, try);
		if (!rc)
			return 0;
		if (!first)
			first = rc;
		if (len <= 1 || (rc != -ENOENT && rc != -EACCES && rc != -ENOTDIR))
			return first;
		while (len > 1 && try[len - 1] != '/')
			len--;
		try[len] = '\0';
	}
}

int lt_mntsvc_mount(struct leat *m, char *why, size_t cap)
{
	struct rpcrdma_clnt *c;
	char exports[EXPORTS_TOLD_MAX] = "";
	const char *rest, *hint = "";
	int rc = find_service(m, &c, why, cap);

	if (rc)
		return rc;
	if (find_export(m, c, m->url.path, m->export, exports)) {
		rc = mnt(m, c, m->export);
	} else {
		strcpy(m->export, m->url.path);
		rc = mount_by_trial(m, c, m->export);
		if (rc)
			strcpy(m->export, m->url.path);
	}
	if (rc == -EACCES && (m->mnt_port || m->server->addr.transport == RPCRDMA_TCP))
		hint = " (not for this address, or only from a port below 1024, which takes root: "
		       "\"insecure\" in the server's export lets others in)";
	else if (rc == -EACCES && m->server->addr.transport == RPCRDMA_RDMA)
		hint = " (not for this address)";
	if (rc == -ENOENT) {
		text_clean(exports);
		hint = lt_path_has_prefix(m->url.path, "/block", &rest) ?
			       "; a volume below /block is used by leat block, or leat_block_attach()" :
			       exports;
	}
	if (m->mnt_port)
		lt_server_close(m->server, c);
	if (rc) {
		snprintf(why, cap, "MNT of %.300s: %s%s", m->export,
			 rc == -ENOENT ? "the server exports no such path" : strerror(-rc), hint);
		return rc;
	}
	m->mounted = true;
	if (!lt_path_has_prefix(m->url.path, m->export, &rest))
		rest = "";
	return lt_path_trim(rest, m->path, sizeof(m->path));
}

void lt_mntsvc_umount(struct leat *m, uint64_t until_ns)
{
	uint64_t now_ns = clock_now_ns();
	dirpath arg = m->export;
	struct lt_rpc rpc = LT_RPC(MOUNT_PROGRAM, MOUNT_V3, MOUNTPROC3_UMNT,
				   xdr_dirpath, &arg, lt_call_xdr_nothing, NULL, 0);
	struct rpcrdma_clnt_info info;
	struct rpcrdma_clnt *c;
	char why[256];

	if (!m->mounted || (until_ns && (m->mnt_port || until_ns <= now_ns + NS_PER_MS)))
		return;
	lt_server_look(m->server, m->server->clnt[0], &info);
	if (info.state != RPCRDMA_CLNT_UP)
		return;
	rpc.patience_ms = MIN(m->timeo_ms, UMNT_PATIENCE_MS);
	if (until_ns)
		rpc.patience_ms = (uint32_t)MIN((until_ns - now_ns) / NS_PER_MS, (uint64_t)rpc.patience_ms);
	c = m->server->clnt[0];
	if (m->mnt_port && open_elsewhere(m, m->mnt_port, MOUNT_PROGRAM, MOUNT_V3, rpc.patience_ms, &c, why, sizeof(why)))
		return;
	(void)lt_sync_rpc(m->server, c, &rpc); /* the server's list is informative only */
	if (m->mnt_port)
		lt_server_close(m->server, c);
}
