/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * mode_clnt.c - a requester's link with a mode: negotiation, and state that cancelled calls leave
 *
 * Operation:  A client that wants modes requests all of them at each connect, and does not connect
 *             without them: a requested mode must not silently be replaced. For fast-write it
 *             allocates a local copy of the slots, from which calls are written. It uses no slot
 *             before the responder's first message: the key may be invalid until then (mode_suffix.c).
 *
 *             A cancelled call may still have a slot, a buffer that is being announced, or a reply with
 *             offered payload. The responder's next message about it returns them (rr_mode_stray).
 * Memory:     Freed with the link; a call's part with the call.
 * Threads:    The engine's.
 * Errors:     -ENOPROTOOPT: the responder does not provide the requested modes.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/wire.h"
#include "mode_clnt.h"

size_t rr_mode_ask(const struct rpcrdma_clnt *c, uint8_t *to)
{
	const struct rr_suffix s = {
		.modes = c->attr.modes,
		.slot_bytes = c->attr.modes & RPCRDMA_FAST_WRITE ? c->attr.fast_write_bytes : 0,
		.slots = (uint16_t)(c->attr.modes & RPCRDMA_FAST_WRITE ?
					    MIN(c->attr.credits, RR_SLOTS_MAX) : 0),
	};

	if (!s.modes)
		return 0;
	rr_suffix_encode(&s, to);
	return RR_SUFFIX_BYTES;
}

/* True if the responder's suffix is valid for our request. */
static bool is_sound(const struct rpcrdma_clnt *c, const struct rr_suffix *s)
{
	if (s->modes != c->attr.modes)
		return false;
	if (s->modes & RPCRDMA_FAST_WRITE &&
	    (!s->slots || s->slots > RR_SLOTS_MAX || !s->slot_bytes ||
	     s->slot_bytes > RPCRDMA_FAST_WRITE_MAX))
		return false;
	return !(s->modes & RPCRDMA_HYBRID) || s->grant_max;
}

static int make_slots(struct rr_mode_clnt *m)
{
	struct rr_mr_attr attr = { .fd = -1 };
	void *map;

	m->bytes = m->given.slots * ((size_t)RR_SLOT_HEAD + m->given.slot_bytes);
	map = mmap(NULL, m->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE,
		   -1, 0);
	if (map == MAP_FAILED)
		return -ENOMEM;
	m->mem = map;
	attr.addr = map;
	attr.len = m->bytes;
	return rr_mr_reg(m->link->reg.pd, &attr, &m->mr);
}

static int refuse(struct rr_link *l, const struct rr_suffix *s)
{
	char names[RPCRDMA_MODES_TEXT];

	rpcrdma_modes_print(l->clnt->attr.modes, names, sizeof(names));
	if (s && s->status == RR_SUFFIX_NO_MEMORY)
		rr_link_fail(l, -ENOPROTOOPT, "the server has no memory left for %s", names);
	else
		rr_link_fail(l, -ENOPROTOOPT, "the server does not offer %s", names);
	return -ENOPROTOOPT;
}

static void on_wake(struct rpcrdma_msg *msg)
{
	struct rr_mode_clnt *m = container_of(msg, struct rr_mode_clnt, wake);

	m->wake_out = false;
	rr_mode_go_on(m);
}

int rr_mode_agree(struct rr_link *l, const void *priv, size_t len)
{
	struct rr_mode_clnt *m;
	struct rr_suffix s;
	int rc = 0;

	if (!l->clnt->attr.modes)
		return 0;
	if (!rr_suffix_decode(priv, len, &s))
		return refuse(l, NULL);
	if (!is_sound(l->clnt, &s))
		return refuse(l, &s);
	m = calloc(1, sizeof(*m));
	if (!m) {
		rr_link_fail(l, -ENOMEM, "out of memory");
		return -ENOMEM;
	}
	m->link = l;
	m->given = s;
	list_init(&m->pulls);
	list_init(&m->resumes);
	list_init(&m->lone_dones);
	m->wake.fn = on_wake;
	l->mode = m;
	if (s.modes & RPCRDMA_FAST_WRITE)
		rc = make_slots(m);
	if (rc)
		rr_link_fail(l, rc, "no memory for fast writes");
	return rc;
}

/** rr_mode_clnt_free - frees the mode at the end of the link */
void rr_mode_clnt_free(struct rr_link *l)
{
	struct rr_mode_clnt *m = l->mode;

	if (!m)
		return;
	if (m->wake_out)
		rr_engine_undefer(l->engine, &m->wake);
	rr_mode_lone_dones_free(m);
	rr_mr_dereg(m->mr);
	if (m->mem)
		munmap(m->mem, m->bytes);
	free(m);
	l->mode = NULL;
}

/* ---- calls -------------------------------------------------------------------------------- */

int rr_mode_call_init(struct rr_rcall *rc)
{
	if (!rc->mode)
		rc->mode = calloc(1, sizeof(*rc->mode)); /* once per credit in use */
	if (!rc->mode)
		return -ENOMEM;
	assert(!rc->mode->busy);
	rc->mode->rc = rc;
	rc->mode->how = RR_HOW_PLAIN;
	rc->mode->refused = false;
	list_init(&rc->mode->link);
	return 0;
}

/* A slot stays in use until the reply: the responder may still be using it. A buffer that was announced and not used is
 * returned. Registrations are released at once; calls that wait for some retry, but not from inside. */
bool rr_mode_cancel(struct rr_rcall *rc, bool *no_reply)
{
	struct rr_mode_clnt *m = rc->conn->mode;
	struct rr_mode_call *mc = rc->mode;

	if (mc->how == RR_HOW_SLOT && !*no_reply) {
		m->slots_gone |= UINT64_C(1) << mc->slot;
		mc->how = RR_HOW_PLAIN;
	}
	if ((mc->how == RR_HOW_WANT && mc->answered) || (mc->how == RR_HOW_ROOM && *no_reply)) {
		*no_reply = true;
		if (mc->there.length)
			rr_mode_send_done(rc->conn, rc->call->xid);
	}
	if (!list_is_empty(&m->resumes) && !m->wake_out) {
		m->wake_out = true;
		rr_engine_defer(m->link->engine, &m->wake);
	}
	return mc->busy || (mc->how == RR_HOW_ROOM && rc->sc);
}

void rr_mode_detach(struct rr_rcall *rc)
{
	struct rr_mode_call *mc = rc->mode;

	if (mc->how == RR_HOW_SLOT)
		rc->conn->mode->slots_busy &= ~(UINT64_C(1) << mc->slot);
	if (mc->how == RR_HOW_WANT && mc->sent && rc->sc) {
		rr_ep_put_send(rc->sc);
		rc->sc = NULL;
	}
	if (!mc->busy) /* otherwise the end of the pull finds it in its list */
		list_del(&mc->link);
	mc->how = RR_HOW_PLAIN;
}

void rr_mode_go_on(struct rr_mode_clnt *m)
{
	rr_mode_pulls_go(m);
	rr_mode_resume(m);
}

/* ---- messages without a call --------------------------------------------------------------- */

void rr_mode_stray(struct rr_link *l, uint32_t xid, bool offers)
{
	struct rr_mode_clnt *m = l->mode;

	for (unsigned i = 0; i < m->given.slots; i++) {
		uint64_t bit = UINT64_C(1) << i;

		if (m->slots_gone & bit && m->slot_xid[i] == xid) {
			m->slots_gone &= ~bit;
			m->slots_busy &= ~bit;
		}
	}
	if (offers && m->given.modes & RPCRDMA_READ_READ)
		rr_mode_send_done(l, xid);
}

/* Handles RR_GRANT for an XID. Return: false if it is invalid. */
static bool hear_grant(struct rr_link *l, const uint8_t *msg)
{
	const struct rr_segment room = { .handle = get_be32(msg + 16),
					 .length = get_be32(msg + 20),
					 .offset = get_be64(msg + 24) };
	uint32_t xid = get_be32(msg);
	struct rr_call *call = rr_clnt_find(l->clnt, xid);
	struct rr_rcall *rc = call ? call->xprt : NULL;

	if (!rc) {
		if (room.length)
			rr_mode_send_done(l, xid);
		rr_clnt_stray(l->clnt, xid, l->clnt->credit.limit); /* not a reply: grants no credits */
		return true;
	}
	if (rr_how(rc) != RR_HOW_WANT || rc->mode->answered ||
	    (room.length && room.length < rc->mode->bytes))
		return false;
	rr_mode_answered(rc, &room);
	return true;
}

bool rr_mode_listen(struct rr_link *l, struct rr_recv_ctx *recv)
{
	uint8_t msg[RR_GRANT_BYTES];

	l->mode->heard = true;
	if (recv->len < RR_HDR_FIXED || get_be32(recv->buf + 4) != RR_VERS ||
	    get_be32(recv->buf + 12) != RR_GRANT)
		return false;
	if (recv->len == RR_GRANT_BYTES && l->clnt && l->mode->given.modes & RPCRDMA_HYBRID) {
		memcpy(msg, recv->buf, sizeof(msg));
		rr_ep_repost(recv); /* before the call is sent: its reply needs it */
		if (hear_grant(l, msg))
			return true;
	} else {
		rr_ep_repost(recv);
	}
	rr_link_fail(l, -EPROTO, "server announces buffers without a request");
	return true;
}
