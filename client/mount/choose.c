/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * choose.c - selects the transport to the server
 *
 * Operation:  rdma://, tcp:// and local:// URLs name the transport. leat:// connects over TCP and sends
 *             INFO (ctl.x) to get the instance id and the listeners of the leatd. It then tries the faster
 *             listeners: local sockets, then RDMA. On each it sends INFO again and switches only if the
 *             same instance replies. That avoids the socket of another leatd with the same name. It is no
 *             authentication, because the id is public. So a socket is used only if root, this user or
 *             socket_user= listens on it, and no other user can replace it at its path. The transport
 *             checks both at every connect (check_socket).
 *             Any other NFS server stays on TCP. The choice, and the reasons against faster transports,
 *             are kept as text (LEAT_TEXT_CHOSEN; LEAT_TEXT_REFUSED for each transport).
 * Memory:     Connections that are not used are destroyed at once.
 * Threads:    The mounting thread; blocks (sync.c).
 * Errors:     As long as TCP works, failures of other transports are only reasons in the text.
 */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/text.h"
#include "choose.h"
#include "ctl.h"
#include "sync.h"

/* UPGRADE_MS: time limit to connect to one listener and get a reply. UPGRADES_MS: no further listener of its kind is
 * tried after that. A server must not be able to delay a mount by listing unreachable addresses. */
#define UPGRADE_MS 3000u
#define UPGRADES_MS 6000u
#define CONNECT_MS 10000u
#define WHY_BYTES sizeof(((struct lt_refused *)0)->why)
/* Length of a reason in LEAT_TEXT_CHOSEN, which has room for two; LEAT_TEXT_REFUSED has the full text. */
#define WHY_CHOSEN 105
#define INFO_REPLY_BYTES (8u + 260u + 16u + 64u * 260u)

/* Explains an errno of connect that is unclear to users; or NULL. */
static const char *meaning(const struct rpcrdma_addr *addr, int err)
{
	struct addrinfo *ai = NULL;
	int rc;

	if (addr->transport == RPCRDMA_RDMA && err == -ENODEV)
		return "this host has no RDMA device";
	if (addr->transport == RPCRDMA_RDMA && err == -ENXIO)
		return "no RDMA device of this host leads there";
	if (addr->transport == RPCRDMA_RDMA && err == -EOPNOTSUPP)
		return "this build of leat has no RDMA support";
	if (addr->transport == RPCRDMA_LOCAL || err != -EHOSTUNREACH)
		return NULL;
	/* unknown host, or no route? */
	rc = getaddrinfo(addr->host, NULL, NULL, &ai);
	if (!rc)
		freeaddrinfo(ai);
	return rc ? "cannot resolve host" : NULL;
}

/* Suggests what the user can do about @err; or "". */
static const char *advice(const struct rpcrdma_addr *addr, int err)
{
	bool local = addr->transport == RPCRDMA_LOCAL;

	switch (err) {
	case -ECONNREFUSED:
		return local ? "; no server listens there (is leatd running?), or leatd refused this user (see its "
			       "log)" :
			       "; no server listens there: is it running, is the port right?";
	case -EACCES:
		return local ? "; the socket's mode does not let this user connect" : "";
	case -EHOSTUNREACH:
	case -ENETUNREACH:
		return "; no route to it: is the address right, is the network up?";
	case -ETIMEDOUT:
		return local ? "; does leatd hang, or does a user flood its socket (see its log)?" :
			       "; is the server up, does a firewall stand in between?";
	case -EPROTONOSUPPORT:
		return "; whatever answers there does not serve NFS version 3";
	default:
		return "";
	}
}

static bool ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), n = strlen(end);

	return len >= n && !strcmp(text + len - n, end);
}

static void explain(struct lt_server *s, char *why, size_t cap, const struct rpcrdma_addr *addr, struct rpcrdma_clnt *c,
		    const struct rpcrdma_call *call, int err)
{
	struct rpcrdma_clnt_info info = { 0 };
	const char *cause = call->why, *known = meaning(addr, err);
	char text[300];

	rpcrdma_addr_print(addr, text, sizeof(text));
	if (known) {
		snprintf(why, cap, "%s: %s", text, known);
		return;
	}
	if (c)
		lt_server_look(s, c, &info);
	if (!cause || !cause[0])
		cause = info.why;
	if (ends_with(cause, strerror(-err)))
		cause = ""; /* as in "connect: Connection refused": it would repeat the errno */
	snprintf(why, cap, "%s: %s%s%s%s%s", text, strerror(-err), cause[0] ? " (" : "", cause,
		 cause[0] ? ")" : "", advice(addr, err));
}

int lt_choose_open(struct lt_server *s, unsigned index, const struct rpcrdma_addr *addr, uint32_t prog, uint32_t vers,
		   uint32_t patience_ms, struct rpcrdma_clnt **ret, char *why, size_t cap)
{
	struct lt_rpc rpc = LT_RPC(prog, vers, 0, lt_call_xdr_nothing, NULL, lt_call_xdr_nothing, NULL, 0);
	struct rpcrdma_clnt *c = NULL;
	int rc = lt_server_dial(s, index, addr, MIN(patience_ms ? patience_ms : s->url.timeo_ms, CONNECT_MS), &c);

	rpc.patience_ms = patience_ms;
	if (!rc)
		rc = lt_sync_rpc(s, c, &rpc);
	if (rc) {
		explain(s, why, cap, addr, c, &rpc.call, rc);
		lt_server_close(s, c);
		return rc;
	}
	*ret = c;
	return 0;
}

/* Sends INFO to a leatd; free the result with xdr_free.
 * @patience_ms: 0: that of the handle */
static int ask_info(struct lt_server *s, struct rpcrdma_clnt *c, uint32_t patience_ms, ctl_info *ret)
{
	struct lt_rpc rpc = LT_RPC(LEAT_CTL, LEAT_CTL_V1, CTL_INFO,
				   lt_call_xdr_nothing, NULL, xdr_ctl_info, ret, INFO_REPLY_BYTES);
	int rc;

	rpc.patience_ms = patience_ms;
	memset(ret, 0, sizeof(*ret));
	rc = lt_sync_rpc(s, c, &rpc);
	if (rc) {
		xdr_free((xdrproc_t)xdr_ctl_info, ret);
		return rc;
	}
	text_clean(ret->release);
	for (unsigned i = 0; i < ret->listeners.listeners_len; i++)
		text_clean(ret->listeners.listeners_val[i].url);
	return 0;
}

static void note_server(struct lt_server *s, const ctl_info *info)
{
	char hex[2 * sizeof(s->instance) + 1];

	s->is_leatd = true;
	memcpy(s->instance, info->instance, sizeof(s->instance));
	text_put_hex(s->instance, sizeof(s->instance), hex);
	snprintf(s->name, sizeof(s->name), "leatd %.16s instance %.16s", info->release, hex);
}

/* Does the same leatd instance reply on @c within @limit_ms? Return: 0, or a negative errno with @why. */
static int check_instance(struct lt_server *s, struct rpcrdma_clnt *c, uint32_t limit_ms, char *why, size_t cap)
{
	struct rpcrdma_clnt_info clnt;
	ctl_info info;
	int rc = ask_info(s, c, MIN(limit_ms, s->url.timeo_ms), &info);

	if (rc) {
		lt_server_look(s, c, &clnt);
		/* the queue of a socket may be full: the server is not necessarily missing */
		snprintf(why, cap, "%s",
			 rc == -ENOPROTOOPT || rc == -EPERM ||
					 (rc == -ETIMEDOUT && clnt.state != RPCRDMA_CLNT_UP) ?
				 clnt.why :
				 strerror(-rc));
		return rc;
	}
	if (memcmp(info.instance, s->instance, sizeof(s->instance)) != 0) {
		snprintf(why, cap, "another leatd answers there");
		rc = -EXDEV;
	}
	xdr_free((xdrproc_t)xdr_ctl_info, &info);
	return rc;
}

static bool is_wildcard(const char *host)
{
	return !host[0] || !strcmp(host, "0.0.0.0") || !strcmp(host, "::") || !strcmp(host, "*");
}

/* Time limit of one step: at most the remaining time for all steps. */
static uint32_t until_ms(uint64_t until_ns)
{
	uint64_t now_ns = clock_now_ns();

	return now_ns < until_ns ? (uint32_t)MIN((until_ns - now_ns) / NS_PER_MS + 1, (uint64_t)UPGRADE_MS) : 1;
}

/* Tries to switch from s->clnt[0] to @addr. */
static int try_upgrade(struct lt_server *s, const struct rpcrdma_addr *addr, uint64_t until_ns, char *why, size_t cap)
{
	struct rpcrdma_clnt *c = NULL;
	struct stat st;
	int rc;

	if (addr->transport == RPCRDMA_LOCAL &&
	    (stat(addr->host, &st) || !S_ISSOCK(st.st_mode))) {
		snprintf(why, cap, "no socket %.60s on this host", addr->host);
		return -ENOENT;
	}
	rc = lt_server_dial(s, 0, addr, until_ms(until_ns), &c);
	if (rc)
		snprintf(why, cap, "%s", meaning(addr, rc) ? meaning(addr, rc) : strerror(-rc));
	else
		rc = check_instance(s, c, until_ms(until_ns), why, cap);
	if (rc) {
		lt_server_close(s, c);
		return rc;
	}
	lt_server_close(s, s->clnt[0]);
	s->clnt[0] = c;
	s->addr = *addr;
	return 0;
}

static void note_refused(struct lt_server *s, const char *url, const char *why)
{
	struct lt_refused *w = &s->refused[s->nrefused];

	if (s->nrefused == ARRAY_SIZE(s->refused))
		return; /* the list is full */
	s->nrefused++;
	snprintf(w->url, sizeof(w->url), "%s", url);
	snprintf(w->why, sizeof(w->why), "%s", why);
}

/* Tries all listeners of kind @t in @info. Return: 0 if the server switched to one. */
static int upgrade_to(struct lt_server *s, enum rpcrdma_transport t, const ctl_info *info, char *why,
		      size_t cap)
{
	uint64_t until_ns = clock_now_ns() + UPGRADES_MS * NS_PER_MS;
	int rc = -ENOENT;
	bool any = false;
	char text[300];

	snprintf(why, cap, "the server has no such listener");
	for (unsigned i = 0; i < info->listeners.listeners_len; i++) {
		const char *url = info->listeners.listeners_val[i].url;
		struct rpcrdma_addr addr;

		if (rpcrdma_addr_parse(url, &addr) || addr.transport != t)
			continue;
		if (t == RPCRDMA_RDMA && is_wildcard(addr.host))
			memcpy(addr.host, s->url.host, sizeof(addr.host));
		if (clock_now_ns() < until_ns) {
			rc = try_upgrade(s, &addr, until_ns, why, cap);
		} else {
			rc = -ETIMEDOUT;
			snprintf(why, cap, "not tried: those before it took too long");
		}
		if (!rc)
			return 0;
		note_refused(s, rpcrdma_addr_print(&addr, text, sizeof(text)), why);
		any = true;
	}
	if (!any)
		note_refused(s, rpcrdma_transport_name(t), why);
	return rc;
}

/* If a mode of the URL is not available, the mount fails. */
static int check_modes(const struct lt_server *s, char *why, size_t cap)
{
	char names[RPCRDMA_MODES_TEXT];

	if (!s->url.modes || s->addr.transport != RPCRDMA_TCP)
		return 0;
	snprintf(why, cap, "%s: %s", rpcrdma_modes_print(s->url.modes, names, sizeof(names)), s->chosen);
	return -ENOPROTOOPT;
}

static void choose_best(struct lt_server *s)
{
	char why_local[WHY_BYTES], why_rdma[WHY_BYTES];
	ctl_info info;

	if (ask_info(s, s->clnt[0], 0, &info)) {
		snprintf(s->chosen, sizeof(s->chosen),
			 "tcp: the server is no leatd, so it cannot be asked for better ways");
		note_refused(s, "rdma", "the server is no leatd and cannot be asked; an rdma:// URL "
					"tries it");
		return;
	}
	note_server(s, &info);
	if (!upgrade_to(s, RPCRDMA_LOCAL, &info, why_local, sizeof(why_local)))
		snprintf(s->chosen, sizeof(s->chosen), "local: the server runs on this host");
	else if (!upgrade_to(s, RPCRDMA_RDMA, &info, why_rdma, sizeof(why_rdma)))
		snprintf(s->chosen, sizeof(s->chosen), "rdma: no local (%.*s)", WHY_CHOSEN, why_local);
	else
		snprintf(s->chosen, sizeof(s->chosen), "tcp: no local (%.*s), no rdma (%.*s)",
			 WHY_CHOSEN, why_local, WHY_CHOSEN, why_rdma);
	xdr_free((xdrproc_t)xdr_ctl_info, &info);
}

int lt_choose_address(struct lt_url *u, struct rpcrdma_addr *ret, char *why, size_t cap)
{
	static const enum rpcrdma_transport transports[] = {
		[LT_SCHEME_LEAT] = RPCRDMA_TCP,
		[LT_SCHEME_TCP] = RPCRDMA_TCP,
		[LT_SCHEME_RDMA] = RPCRDMA_RDMA,
		[LT_SCHEME_LOCAL] = RPCRDMA_LOCAL,
	};
	char rest[LT_PATH_MAX];
	int rc;

	memset(ret, 0, sizeof(*ret));
	ret->transport = transports[u->scheme];
	if (u->scheme != LT_SCHEME_LOCAL) {
		memcpy(ret->host, u->host, sizeof(ret->host));
		ret->port = u->port;
		if (!u->port)
			ret->port = ret->transport == RPCRDMA_RDMA ? 20049 : 2049;
		return 0;
	}
	rc = lt_url_split_socket(u->path, ret->host, sizeof(ret->host), rest);
	if (rc) {
		snprintf(why, cap, "%s: %s", u->path,
			 rc == -ENOENT ? "no part of this path is a socket: does leatd run?" :
					 strerror(-rc));
		return rc;
	}
	strcpy(u->path, rest);
	return 0;
}

int lt_choose_connect(struct lt_server *s, char *why, size_t cap)
{
	ctl_info info;
	int rc;

	snprintf(s->name, sizeof(s->name), "unknown NFS server");
	rc = lt_choose_open(s, 0, &s->addr, NFS_PROGRAM, NFS_V3, 0, &s->clnt[0], why, cap);
	if (rc)
		return rc;
	s->clnts = 1;
	if (s->url.scheme == LT_SCHEME_LEAT) {
		choose_best(s);
		return check_modes(s, why, cap);
	}
	snprintf(s->chosen, sizeof(s->chosen), "%s: the URL asks for it",
		 rpcrdma_transport_name(s->addr.transport));
	if (!ask_info(s, s->clnt[0], 0, &info)) {
		note_server(s, &info);
		xdr_free((xdrproc_t)xdr_ctl_info, &info);
	}
	return 0;
}

int lt_choose_more(struct lt_server *s, char *why, size_t cap)
{
	while (s->clnts < s->url.conns) {
		int rc = lt_choose_open(s, s->clnts, &s->addr, NFS_PROGRAM, NFS_V3, 0, &s->clnt[s->clnts], why,
					cap);

		if (rc)
			return rc;
		s->engine[s->clnts] = lt_server_engine(s, s->clnts);
		s->clnts++;
	}
	return 0;
}
