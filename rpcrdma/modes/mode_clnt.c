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
 *             offered payload. The responder's next message about it returns them (mode_stray).
 * Memory:     Freed with the link; a call's part with the call.
 * Threads:    The engine's.
 * Errors:     -ENOPROTOOPT: the responder does not provide the requested modes.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/wire.h"
#include "mode_clnt.h"

/* Receives: one RDMA_DONE or RR_GRANT per call, in addition to the replies. */
static unsigned mode_recvs_per_credit(const struct rpcrdma_clnt *c)
{
	return c->lab.modes ? 2 : 1;
}

static size_t mode_request(const struct rr_link *l, struct rr_ep_attr *ea, struct rr_conn_param *param,
			   uint8_t *priv)
{
	const struct rpcrdma_clnt_attr *a = &l->clnt->attr;
	bool fast = a->lab->modes & RPCRDMA_FAST_WRITE;
	const struct rr_suffix s = {
		.modes = a->lab->modes,
		.slot_bytes = fast ? a->lab->fast_write_bytes : 0,
		.slots = (uint16_t)(fast ? MIN(a->credits, RR_SLOTS_MAX) : 0),
	};

	if (!a->lab->modes)
		return 0;
	ea->extra_recvs += a->credits;
	ea->sq_depth = MAX(a->credits * 4, 2 * RR_MODE_WRS); /* chains of Reads or Writes */
	param->initiator_depth = MIN(l->dev->fabric->attr.rd_atom_max, RR_MODE_READS);
	rr_suffix_encode(&s, priv);
	return RR_SUFFIX_BYTES;
}

/* True if the responder's suffix is valid for our request. */
static bool is_sound(const struct rpcrdma_clnt *c, const struct rr_suffix *s)
{
	if (s->modes != c->lab.modes)
		return false;
	if (s->modes & RPCRDMA_FAST_WRITE &&
	    (!s->slots || s->slots > RR_SLOTS_MAX || !s->slot_bytes ||
	     s->slot_bytes > RPCRDMA_FAST_WRITE_MAX))
		return false;
	return !(s->modes & RPCRDMA_HYBRID) || s->grant_max;
}

static int make_slots(struct rr_mode_clnt *m)
{
	size_t bytes = m->given.slots * rr_slot_stride(m->given.slot_bytes);
	int rc = rr_extent_get(&rr_mem_kind_anonymous, NULL, round_up_pow2(bytes, RR_SLOT_HEAD), &m->slots);

	return rc ? rc : rr_extent_reg(&m->slots, m->link->reg->pd, 0, &m->mr);
}

static int refuse(struct rr_link *l, const struct rr_suffix *s)
{
	char names[RPCRDMA_MODES_TEXT];

	rpcrdma_modes_print(l->clnt->lab.modes, names, sizeof(names));
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
	rr_mode_go_on(m->link);
}

static void mode_free(struct rr_link *l)
{
	struct rr_mode_clnt *m = rr_mode_of_link(l);

	if (m->wake_out)
		rr_engine_undefer(l->engine, &m->wake);
	rr_mode_lone_dones_free(m);
	rr_mr_dereg(m->mr);
	if (m->slots.kind)
		rr_extent_put(&m->slots);
	free(m);
	l->mode = NULL;
}

/* ---- calls -------------------------------------------------------------------------------- */

static int mode_init(struct rr_rcall *rc)
{
	struct rr_mode_call *mc;

	if (!rc->mode) {
		mc = calloc(1, sizeof(*mc)); /* once per credit in use */
		if (!mc)
			return -ENOMEM;
		rc->mode = &mc->head;
	}
	mc = rr_mode_of_call(rc);
	assert(!mc->head.busy);
	mc->rc = rc;
	mc->head.how = RR_HOW_PLAIN;
	mc->refused = false;
	list_init(&mc->link);
	return 0;
}

/* True if RR_GRANT has arrived and the call waits for registrations of other calls. */
static bool mode_waits(const struct rr_rcall *rc)
{
	return rr_how(rc) == RR_HOW_LATER && list_is_linked(&rr_mode_of_call(rc)->link);
}

/* A slot stays in use until the reply: the responder may still be using it. A buffer that was announced and not used is
 * returned. Registrations are released at once; calls that wait for some retry, but not from inside. */
static bool mode_cancel(struct rr_rcall *rc, bool *no_reply)
{
	struct rr_mode_clnt *m = rr_mode_of_link(rc->conn);
	struct rr_mode_call *mc = rr_mode_of_call(rc);

	if (mc->head.how == RR_HOW_COPIED && !*no_reply) {
		m->slots_gone |= UINT64_C(1) << mc->slot;
		mc->head.how = RR_HOW_PLAIN;
	}
	if ((mc->head.how == RR_HOW_LATER && mc->granted) || (mc->head.how == RR_HOW_PUT && *no_reply)) {
		*no_reply = true;
		if (mc->head.there.length)
			rr_mode_send_done(rc->conn, rc->call->xid);
	}
	if (!list_is_empty(&m->resumes) && !m->wake_out) {
		m->wake_out = true;
		rr_engine_defer(m->link->engine, &m->wake);
	}
	return mc->head.busy || (mc->head.how == RR_HOW_PUT && rc->send_buf);
}

static void mode_detach(struct rr_rcall *rc)
{
	struct rr_mode_call *mc = rr_mode_of_call(rc);

	if (mc->head.how == RR_HOW_COPIED)
		rr_mode_of_link(rc->conn)->slots_busy &= ~(UINT64_C(1) << mc->slot);
	if (mc->head.how == RR_HOW_LATER && mc->sent && rc->send_buf) {
		rr_link_msg_put(rc->conn, rc->send_buf);
		rc->send_buf = NULL;
	}
	if (!mc->head.busy) /* otherwise the end of the pull finds it in its list */
		list_del(&mc->link);
	mc->head.how = RR_HOW_PLAIN;
}

void rr_mode_go_on(struct rr_link *l)
{
	struct rr_mode_clnt *m = rr_mode_of_link(l);

	rr_mode_pulls_go(m);
	rr_mode_resume(m);
}

/* ---- messages without a call --------------------------------------------------------------- */

static void mode_stray(struct rr_link *l, uint32_t xid, bool has_reads)
{
	struct rr_mode_clnt *m = rr_mode_of_link(l);

	for (unsigned i = 0; i < m->given.slots; i++) {
		uint64_t bit = UINT64_C(1) << i;

		if (m->slots_gone & bit && m->slot_xid[i] == xid) {
			m->slots_gone &= ~bit;
			m->slots_busy &= ~bit;
		}
	}
	if (has_reads && m->given.modes & RPCRDMA_READ_READ)
		rr_mode_send_done(l, xid);
}

/* Handles RR_GRANT for an XID. Return: false if it is invalid. */
static bool recv_grant(struct rr_link *l, const uint8_t *msg)
{
	const struct rr_segment room = { .handle = get_be32(msg + 16),
					 .length = get_be32(msg + 20),
					 .offset = get_be64(msg + 24) };
	uint32_t xid = get_be32(msg);
	struct rr_call *call = rr_clnt_find(l->clnt, xid);
	struct rr_rcall *rc = call ? call->xprt : NULL;
	struct rr_mode_call *mc;

	if (!rc) {
		if (room.length)
			rr_mode_send_done(l, xid);
		rr_clnt_stray(l->clnt, xid, l->clnt->credit.limit); /* not a reply: grants no credits */
		return true;
	}
	mc = rr_mode_of_call(rc);
	if (mc->head.how != RR_HOW_LATER || mc->granted || (room.length && room.length < mc->bytes))
		return false;
	rr_mode_granted(rc, &room);
	return true;
}

static bool mode_recv(struct rr_link *l, struct rr_recv_ctx *recv)
{
	uint8_t msg[RR_GRANT_BYTES];

	rr_mode_of_link(l)->slots_usable = true;
	if (recv->len < RR_HDR_FIXED || get_be32(recv->buf + 4) != RR_VERS ||
	    get_be32(recv->buf + 12) != RR_GRANT)
		return false;
	if (recv->len == RR_GRANT_BYTES && l->clnt && rr_mode_of_link(l)->given.modes & RPCRDMA_HYBRID) {
		memcpy(msg, recv->buf, sizeof(msg));
		rr_ep_repost(recv); /* before the call is sent: its reply needs it */
		if (recv_grant(l, msg))
			return true;
	} else {
		rr_ep_repost(recv);
	}
	rr_link_fail(l, -EPROTO, "server announces buffers without a request");
	return true;
}

/* ---- the tables ---------------------------------------------------------------------------- */

static void mode_info(const struct rr_link *l, struct rpcrdma_clnt_info *ret)
{
	const struct rr_suffix *given = &rr_mode_of_link(l)->given;

	ret->modes = given->modes;
	ret->fast_write_bytes = given->slot_bytes;
	ret->fast_write_slots = given->slots;
}

static const struct rr_clnt_mode_ops mode_ops = {
	.name = "modes",
	.init = mode_init,
	.choose = rr_mode_choose,
	.post = rr_mode_post,
	.sent = rr_mode_sent,
	.waits = mode_waits,
	.go_on = rr_mode_go_on,
	.cancel = mode_cancel,
	.detach = mode_detach,
	.recv = mode_recv,
	.pull = rr_mode_pull,
	.stray = mode_stray,
	.dead = rr_mode_pulls_end,
	.free = mode_free,
	.info = mode_info,
};

static int mode_agree(struct rr_link *l, const void *priv, size_t len)
{
	struct rr_mode_clnt *m;
	struct rr_suffix s;
	int rc = 0;

	if (!l->clnt->lab.modes)
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
	m->head.ops = &mode_ops;
	m->head.result_read = s.modes & RPCRDMA_READ_READ;
	l->mode = &m->head;
	if (s.modes & RPCRDMA_FAST_WRITE)
		rc = make_slots(m);
	if (rc)
		rr_link_fail(l, rc, "no memory for fast writes");
	return rc;
}

const struct rr_clnt_modes rr_mode_requester = {
	.recvs_per_credit = mode_recvs_per_credit,
	.request = mode_request,
	.agree = mode_agree,
};
