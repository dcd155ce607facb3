/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * info.c - describes the connections of a mount: in numbers and codes for programs, in English for users
 *
 * Operation:  The caller states the size of its struct leat_info, which may be that of another release. It gets the
 *             members that both know, and zeros in the others.
 * Memory:     None.
 * Threads:    With the service thread any (the service thread reads the state), else the owner's.
 * Errors:     -EINVAL, -ENOENT.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/wire.h"
#include "rpcrdma_lab.h"
#include "lt_sized.h"
#include "sync.h"

_Static_assert(sizeof(struct leat_info) <= LT_SIZED_MAX, "room to grow");
_Static_assert((int)LEAT_REACH_SOCKET == (int)RPCRDMA_REACH_SOCKET, "equal codes");

static enum leat_transport transport_code(enum rpcrdma_transport t)
{
	static const enum leat_transport codes[] = {
		[RPCRDMA_TCP] = LEAT_TRANSPORT_TCP,
		[RPCRDMA_RDMA] = LEAT_TRANSPORT_RDMA,
		[RPCRDMA_LOCAL] = LEAT_TRANSPORT_LOCAL,
	};

	return codes[t];
}

static enum leat_choice choice_code(const struct leat *m)
{
	if (m->url.scheme != LT_SCHEME_LEAT)
		return LEAT_CHOICE_URL;
	return m->server->is_leatd ? LEAT_CHOICE_FASTEST : LEAT_CHOICE_UNKNOWN_SERVER;
}

static unsigned mode_codes(unsigned modes)
{
	return (modes & RPCRDMA_READ_READ ? LEAT_MODE_READ_READ : 0u) |
	       (modes & RPCRDMA_FAST_WRITE ? LEAT_MODE_FAST_WRITE : 0u) |
	       (modes & RPCRDMA_HYBRID ? LEAT_MODE_HYBRID : 0u);
}

static void add_connections(struct leat *m, struct leat_info *info)
{
	struct rpcrdma_clnt_info c;

	for (unsigned i = 0; i < m->server->clnts; i++) {
		lt_server_look(m->server, m->server->clnt[i], &c);
		info->reconnects += c.reconnects;
		if (!i || c.credits_low < info->credits_low)
			info->credits_low = c.credits_low;
		info->credits += c.credits;
	}
	lt_server_look(m->server, m->server->clnt[0], &c);
	info->send_inline = c.send_inline;
	info->recv_inline = c.recv_inline;
	info->remote_inv = c.remote_inv;
	info->reg_bytes = c.reg_bytes;
	info->modes = mode_codes(c.modes);
	info->fast_write = c.fast_write_bytes;
	info->reach = (enum leat_reach)c.reach;
}

static void look_info(void *of, void *arg)
{
	struct leat *m = of;
	struct leat_info *info = arg;

	*info = (struct leat_info){
		.transport = transport_code(m->server->addr.transport),
		.choice = choice_code(m),
		.identity = m->identity,
		.run_uid = m->run_uid,
		.is_leatd = m->server->is_leatd,
		.rsize = m->rsize,
		.wsize = m->wsize,
		.conns = m->server->clnts,
		.nrefused = m->server->nrefused,
		.uid = m->server->cred.uid,
		.gid = m->server->cred.gid,
		.instance = { get_be64(m->server->instance), get_be64(m->server->instance + 8) },
	};
	add_connections(m, info);
}

int leat_info(struct leat *m, struct leat_info *info)
{
	struct leat_info all;
	int rc = lt_sized_check(info);

	if (!rc)
		rc = lt_sync_run(leat_session(m), look_info, m, &all);
	if (rc)
		return rc;
	lt_sized_copy(info, &all, sizeof(all));
	return 0;
}

/* ---- texts ---- */

struct description {
	enum leat_text what;
	size_t index;
	char *buf;
	size_t cap;
	int len; /* result */
};

static void put_refused(struct leat *m, struct description *d)
{
	if (d->index < m->server->nrefused)
		d->len = snprintf(d->buf, d->cap, "%s: %s", m->server->refused[d->index].url, m->server->refused[d->index].why);
}

static void put_modes(unsigned modes, struct description *d)
{
	char text[RPCRDMA_MODES_TEXT];

	d->len = snprintf(d->buf, d->cap, "%s", modes ? rpcrdma_modes_print(modes, text, sizeof(text)) : "");
}

static void put_text(void *of, void *arg)
{
	static const char *const reaches[] = {
		[RPCRDMA_REACH_NONE] = "",
		[RPCRDMA_REACH_DEVICE] = "all memory directly, by the device",
		[RPCRDMA_REACH_PROCESS_VM] = "leat_buf memory directly, other memory by process_vm calls",
		[RPCRDMA_REACH_BOUNCE] = "leat_buf memory directly, other memory by copies through a bounce area",
		[RPCRDMA_REACH_SOCKET] = "all memory by copies through a socket",
	};
	struct description *d = arg;
	struct rpcrdma_clnt_info c;
	struct leat *m = of;

	if (d->what == LEAT_TEXT_REFUSED) {
		put_refused(m, d);
		return;
	}
	lt_server_look(m->server, m->server->clnt[0], &c);
	if (d->what == LEAT_TEXT_MODES) {
		put_modes(c.modes, d);
		return;
	}
	const char *const texts[] = {
		[LEAT_TEXT_URL] = m->server_url,
		[LEAT_TEXT_GIVEN_URL] = m->given_url,
		[LEAT_TEXT_PATH] = m->path,
		[LEAT_TEXT_TRANSPORT] = rpcrdma_transport_name(m->server->addr.transport),
		[LEAT_TEXT_CHOSEN] = m->server->chosen,
		[LEAT_TEXT_SERVER] = m->server->name,
		[LEAT_TEXT_IDENTITY] = m->runs_as,
		[LEAT_TEXT_DEVICE] = c.device,
		[LEAT_TEXT_REACH] = reaches[c.reach],
		[LEAT_TEXT_REGISTRATION] = c.registration ? c.registration : "",
		[LEAT_TEXT_KEPT] = c.kept,
	};

	if ((size_t)d->what < ARRAY_SIZE(texts) && texts[d->what])
		d->len = snprintf(d->buf, d->cap, "%s", texts[d->what]);
}

int leat_describe(struct leat *m, enum leat_text what, size_t index, char *buf, size_t cap)
{
	struct description d = { .what = what, .index = index, .buf = buf, .cap = cap, .len = -ENOENT };
	int rc = 0;

	if (!cap)
		return -EINVAL;
	buf[0] = '\0';
	if (!index || what == LEAT_TEXT_REFUSED)
		rc = lt_sync_run(leat_session(m), put_text, m, &d);
	return rc ? rc : d.len;
}
