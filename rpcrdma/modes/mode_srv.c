/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * mode_srv.c - a responder's connection with a mode: negotiation, timeouts, end
 *
 * Operation:  mode_accept() runs during the accept. It grants all of the requested modes if the
 *             service offers them, or none. From then on mode_recv() gets every message first. It
 *             consumes messages that are not calls, and records where a call's payload is already.
 *             mode_claim() then checks the call's Read chunk against the memory given to this peer.
 * Memory:     A protection domain and areas of the connection's own (mode_area.h), touched and registered
 *             before the accept. The total for all connections is limited to the size limit of the
 *             pool; when it is used up, a peer does not get the mode.
 * Threads:    The connection's engine, except for create.
 * Errors:     cut() for each violation of a rule. If a peer does not release memory for
 *             stall_ms, a grant under a window is revoked, otherwise the peer is disconnected; both
 *             are counted (mode_timeouts).
 */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/wire.h"
#include "mode_srv.h"

/* One long call and one long reply at a time; data for four of the longest transfers of NFS. */
#define LONG_BYTES ((size_t)1088 << 10)
#define DATA_BYTES ((size_t)4 << 20)
#define DATA_MAX ((size_t)2 << 20)
/* Send queue requests of a call in addition to its reply: RR_GRANT and its bind, the invalidation. */
#define SQ_MORE 3u
/* Send buffers in addition to one reply per outstanding call: earlier Sends may not have completed. */
#define SENDS_MORE 16u

/* The peer broke a rule: closes the connection. */
static void cut(struct rr_mode *m)
{
	rr_count(m->conn->base.engine, mode_cuts, 1);
	rpcrdma_conn_close(&m->conn->base);
}

/* ---- timeouts ------------------------------------------------------------------------------- */

static uint64_t stall_ns(const struct rr_mode *m)
{
	return m->conn->base.svc->attr.stall_ms * NS_PER_MS;
}

/* Returns the start time of the oldest offer or grant; 0 without any. */
static uint64_t oldest(const struct rr_mode *m)
{
	const struct rr_mode_req *r = list_first_entry(&m->offers, struct rr_mode_req, link);
	uint64_t grant = rr_mode_grant_oldest(m);

	if (!r)
		return grant;
	return grant ? MIN(grant, r->since_ns) : r->since_ns;
}

static void on_timer(struct rpcrdma_timer *t)
{
	struct rr_mode *m = container_of(t, struct rr_mode, timer);
	const struct rr_mode_req *r = list_first_entry(&m->offers, struct rr_mode_req, link);
	uint64_t since, now = clock_now_ns();

	if (m->conn->base.dead)
		return;
	if ((r && now - r->since_ns >= stall_ns(m)) ||
	    !rr_mode_grants_expire(m, now, stall_ns(m))) {
		rr_count(m->conn->base.engine, mode_timeouts, 1);
		rpcrdma_conn_close(&m->conn->base);
		return;
	}
	since = oldest(m);
	if (since)
		rpcrdma_timer_set(m->conn->base.engine, t, since + stall_ns(m) - now);
}

void rr_mode_is_owed(struct rr_mode *m)
{
	if (!rr_timer_is_armed(&m->timer))
		rpcrdma_timer_set(m->conn->base.engine, &m->timer, stall_ns(m));
}

/* ---- memory, end ------------------------------------------------------------------------------- */

int rr_mode_area(struct rr_mode *m, struct rr_area *a, size_t bytes, size_t buf_max, unsigned access)
{
	if (rr_client_charge(m->conn->base.client, RR_SHARE_OWN, bytes))
		return -ENOMEM;
	m->bytes += bytes; /* even if it fails: mode_free() uncharges all of it */
	return rr_area_init(a, &m->conn->base, m->head.pd, bytes, buf_max, access);
}

static int make_zones(struct rr_mode *m, unsigned recvs)
{
	const struct rpcrdma_svc_attr *a = &m->conn->base.svc->attr;
	size_t msg = (a->inline_bytes + RR_AREA_PAGE - 1) / RR_AREA_PAGE * (size_t)RR_AREA_PAGE;
	const size_t bytes[RR_ZONE_FAR] = {
		[RR_ZONE_RECVS] = recvs * msg,	[RR_ZONE_CALLS] = LONG_BYTES,
		[RR_ZONE_DATA] = DATA_BYTES,	[RR_ZONE_SENDS] = (a->credits + SENDS_MORE) * msg,
		[RR_ZONE_REPLIES] = LONG_BYTES,
	};
	int rc = 0;

	for (unsigned z = 0; z < RR_ZONE_FAR && !rc; z++) {
		/* the other zones contain data that is parsed: no peer may access them */
		bool offered = m->modes & RPCRDMA_READ_READ &&
			       (z == RR_ZONE_DATA || z == RR_ZONE_REPLIES);

		m->own[z] = &m->zones[z].zone;
		rc = rr_mode_area(m, &m->zones[z], bytes[z],
				  z == RR_ZONE_DATA ? DATA_MAX : bytes[z],
				  offered ? RR_ACCESS_REMOTE_READ : 0);
	}
	return rc;
}

static void mode_disarm(struct rr_rconn *c)
{
	rr_mode_windows_fini(rr_mode_of(c));
}

static void mode_free(struct rr_rconn *c)
{
	struct rr_mode *m = rr_mode_of(c);

	rpcrdma_timer_cancel(c->base.engine, &m->timer);
	rr_mode_windows_fini(m);
	rr_mode_grant_fini(m);
	for (unsigned z = 0; z < RR_ZONE_FAR; z++)
		rr_area_fini(&m->zones[z]);
	rr_area_fini(&m->inbox);
	rr_area_fini(&m->room);
	rr_pd_destroy(m->head.pd);
	rr_client_uncharge(c->base.client, RR_SHARE_OWN, m->bytes);
	free(m);
	c->mode = NULL;
	c->base.own = NULL;
}

static void mode_dead(struct rr_rconn *c)
{
	struct rr_mode *m = rr_mode_of(c);

	rr_mode_offers_end(m);
	rr_mode_grants_end(m);
}

/* ---- messages ----------------------------------------------------------------------------- */

/* Handles a call with its payload in an announced buffer; afterwards it is an ordinary call. */
static bool recv_here(struct rr_mode *m, struct rr_recv_ctx *rc)
{
	if (!(m->modes & RPCRDMA_HYBRID))
		return false;
	m->arrived = RR_ARRIVED_GRANT;
	put_be32(rc->buf + 12, RR_MSG);
	return true;
}

/* Return: true if it is a procedure of the modes, and valid. */
static bool recv_procedure(struct rr_mode *m, const struct rr_recv_ctx *rc, uint32_t proc)
{
	uint32_t xid = get_be32(rc->buf);

	switch (proc) {
	case RR_DONE:
		return rr_mode_offer_done(m, xid) || rr_mode_grant_done(m, xid);
	case RR_WANT:
		return rc->len == RR_WANT_BYTES &&
		       rr_mode_grant_want(m, xid, get_be32(rc->buf + RR_HDR_FIXED));
	default:
		return false;
	}
}

static bool mode_recv(struct rr_rconn *c, struct rr_recv_ctx *rc, const struct rr_wc *wc)
{
	struct rr_mode *m = rr_mode_of(c);
	uint32_t proc;
	bool good;

	m->arrived = RR_ARRIVED_PLAIN;
	rr_mode_windows_start(m);
	if (wc->with_inv) {
		good = false; /* peers may not invalidate our keys */
	} else if (wc->with_imm) {
		good = rr_mode_fast_recv(m, rc, wc);
	} else {
		proc = rc->len >= RR_HDR_FIXED && get_be32(rc->buf + 4) == RR_VERS ?
			       get_be32(rc->buf + 12) : RR_MSG;
		if (proc == RR_HERE) {
			good = recv_here(m, rc);
		} else if (proc == RR_DONE || proc == RR_WANT) {
			good = recv_procedure(m, rc, proc);
			rr_ep_repost(rc);
			if (!good)
				cut(m);
			rr_conn_progress(&c->base);
			return true;
		} else {
			return false;
		}
	}
	if (good)
		return false;
	rr_ep_repost(rc);
	cut(m);
	return true;
}

static bool mode_claim(struct rr_rreq *rr)
{
	struct rr_mode *m = rr_mode_of(rr_rreq_conn(rr));
	const struct rr_read_info *reads = &rr->reads;
	const struct rr_segment *seg;
	bool good = false;

	if (m->arrived == RR_ARRIVED_PLAIN)
		return true;
	if (reads->has_item && reads->item_nsegs == 1 && !reads->has_pzrc) {
		seg = &rr->hdr.reads[reads->item_first].seg;
		good = m->arrived == RR_ARRIVED_SLOT ? rr_mode_fast_claim(m, rr, seg) :
						     rr_mode_grant_claim(m, rr, seg);
	}
	rr->base.pub.args_local = good;
	rr_count(m->conn->base.engine, mode_cuts, !good);
	return good;
}

static void mode_release(struct rr_rreq *rr)
{
	if (rr->mode.place)
		rr_mode_grant_over(rr->mode.place);
	else if (rr->mode.payload)
		rr_mode_fast_release(rr_mode_of(rr_rreq_conn(rr)), rr->mode.payload);
	rr->mode.payload = NULL;
	rr->mode.place = NULL;
}

static const struct rr_srv_mode_ops mode_ops = {
	.recv = mode_recv,
	.claim = mode_claim,
	.reply = rr_mode_reply,
	.release = mode_release,
	.dead = mode_dead,
	.disarm = mode_disarm,
	.free = mode_free,
};

/* ---- creation ------------------------------------------------------------------------------- */

/* Creates the modes that a peer requests, if the service offers them and memory allows.
 * @recvs: maximum number of its receives
 *
 * Return: 0, also if nothing is granted (c->mode is NULL then); -errno: the peer cannot be served */
static int mode_create(struct rr_rconn *c, struct rr_dev *dev, unsigned recvs,
		       const struct rr_suffix *want, struct rr_suffix *give)
{
	struct rr_mode *m;
	int rc;

	*give = (struct rr_suffix){ .status = RR_SUFFIX_NOT_OFFERED };
	if (!want->modes || want->modes & ~c->base.svc->lab.modes)
		return 0;
	m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	c->mode = &m->head;
	m->head.ops = &mode_ops;
	m->conn = c;
	m->modes = want->modes;
	m->timer.fn = on_timer;
	list_init(&m->offers);
	list_init(&m->grants);
	list_init(&m->revoked);
	list_init(&m->free_grants);
	rc = rr_pd_create(dev->fabric, &m->head.pd);
	if (!rc)
		rc = rr_mode_windows_init(m, dev);
	if (!rc)
		rc = make_zones(m, recvs);
	if (!rc && m->modes & RPCRDMA_FAST_WRITE)
		rc = rr_mode_fast_init(m, want, give);
	if (!rc && m->modes & RPCRDMA_HYBRID)
		rc = rr_mode_grant_init(m, give);
	if (rc) {
		mode_free(c);
		*give = (struct rr_suffix){ .status = RR_SUFFIX_NO_MEMORY };
		return 0;
	}
	c->base.own = m->own;
	if (m->modes & RPCRDMA_READ_READ)
		m->head.room = (uint32_t)m->zones[RR_ZONE_DATA].zone.buf_max;
	give->modes = m->modes;
	give->status = RR_SUFFIX_OK;
	return 0;
}

static int mode_accept(struct rr_rconn *c, struct rr_dev *dev, const struct rr_cm_event *ev,
		       struct rr_ep_attr *ea, struct rr_conn_param *param, uint8_t *priv, size_t *ret_len)
{
	unsigned dones = ea->msgs_max; /* one RDMA_DONE per call, in addition to the calls */
	struct rr_suffix want, give;
	int rc;

	if (!rr_suffix_decode(ev->priv, ev->priv_len, &want))
		return 0;
	rc = mode_create(c, dev, ea->msgs_max + ea->extra_recvs + dones, &want, &give);
	if (rc)
		return rc;
	rr_suffix_encode(&give, priv);
	*ret_len = RR_SUFFIX_BYTES;
	if (!c->mode)
		return 0;
	ea->extra_recvs += dones;
	ea->sq_more = SQ_MORE;
	ea->client = NULL; /* its memory is charged as a whole */
	param->responder_resources = MIN(ev->responder_resources, dev->fabric->attr.rd_atom_max);
	return 0;
}

const struct rr_srv_modes rr_mode_responder = { .accept = mode_accept };
