/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * dump_conn.c - the connections of a capture, and their outstanding calls
 *
 * Operation:  A connection begins with the REQ of the connection manager and is complete with its REP:
 *             addresses, queue pairs and first sequence numbers of both sides, the path's MTU, private
 *             data. A connection older than the capture is inferred from its traffic: one direction by the
 *             destination, the other one by acknowledgements, because they carry the sequence numbers of
 *             the requests. Rules that need the beginning do not apply to it.
 * Memory:     CONNS_MAX connections and CALLS_MAX calls; beyond that the least recently used connection
 *             and the oldest call are dropped.
 * Threads:    One.
 * Errors:     -ENOMEM. Malformed datagrams are printed as far as they can be parsed, or not at all.
 * See:        InfiniBand architecture volume 1, 12.6 (messages of the connection manager).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/wire.h"
#include "chunk.h"
#include "dump.h"

#define CONNS_MAX 1024u
#define CALLS_MAX 8192u
#define GUESS_PACKETS 4096 /* maximum distance of an acknowledgement behind the last request */

/* DETH, then the datagram: its header, and the message */
#define DETH_BYTES 8u
#define MAD_HEAD_BYTES 24u
#define MAD_BYTES 256u
#define CM_CLASS 7
#define SERVICE_PORT_TCP UINT64_C(0x0000000001060000)

static bool same_addr(const struct dump_addr *a, const struct dump_addr *b)
{
	return !memcmp(a->bytes, b->bytes, sizeof(a->bytes));
}

/* ---- calls ------------------------------------------------------------------------------------- */

struct dump_call *dump_call_create(struct dump *d, struct dump_conn *c, const struct rr_hdr *hdr)
{
	struct dump_call *call = calloc(1, sizeof(*call));

	if (!call)
		return NULL;
	if (d->ncalls == CALLS_MAX)
		dump_call_destroy(d, list_first_entry(&d->calls, struct dump_call, age));
	call->conn = c;
	call->hdr = *hdr;
	list_add_tail(&c->calls, &call->node);
	list_add_tail(&d->calls, &call->age);
	c->ncalls++;
	d->ncalls++;
	return call;
}

void dump_call_destroy(struct dump *d, struct dump_call *call)
{
	struct dump_conn *c = call->conn;

	for (int i = 0; i < 2; i++) {
		if (c->end[i].write_call == call)
			c->end[i].write_call = NULL;
		for (unsigned k = 0; k < DUMP_READS; k++) {
			if (c->end[i].reads[k].call == call)
				c->end[i].reads[k].call = NULL;
		}
	}
	list_del(&call->node);
	list_del(&call->age);
	c->ncalls--;
	d->ncalls--;
	free(call->args.bytes);
	free(call->reply.bytes);
	free(call);
}

struct dump_call *dump_call_find(const struct dump_conn *c, uint32_t xid)
{
	list_for_each(node, &c->calls) {
		struct dump_call *call = list_entry(node, struct dump_call, node);

		if (call->hdr.xid == xid)
			return call;
	}
	return NULL;
}

static bool in_segment(const struct rr_segment *s, uint32_t rkey, uint64_t va, uint32_t len)
{
	uint64_t at = va - s->offset;

	return s->handle == rkey && at <= s->length && len <= s->length - at;
}

static bool in_reads(const struct rr_hdr *h, uint32_t rkey, uint64_t va, uint32_t len,
		     struct dump_place *p)
{
	uint64_t at = 0;

	for (uint32_t i = 0; i < h->nreads; i++) {
		const struct rr_read_seg *r = &h->reads[i];

		if (i && r->position != h->reads[i - 1].position)
			at = 0;
		if (in_segment(&r->seg, rkey, va, len)) {
			p->chunk = r->position;
			p->at = at + (va - r->seg.offset);
			return true;
		}
		at += r->seg.length;
	}
	return false;
}

static bool in_chunk(const struct rr_chunk *c, uint32_t rkey, uint64_t va, uint32_t len,
		     uint64_t *ret_at)
{
	uint64_t at = 0;

	for (uint32_t i = 0; i < c->nsegs; i++) {
		if (in_segment(&c->segs[i], rkey, va, len)) {
			*ret_at = at + (va - c->segs[i].offset);
			return true;
		}
		at += c->segs[i].length;
	}
	return false;
}

static bool in_writes(const struct rr_hdr *h, uint32_t rkey, uint64_t va, uint32_t len,
		      struct dump_place *p)
{
	for (p->chunk = 0; p->chunk < h->nwrites; p->chunk++) {
		if (in_chunk(&h->writes[p->chunk], rkey, va, len, &p->at))
			return true;
	}
	p->chunk = RR_WRITE_CHUNKS_MAX;
	return h->has_reply && in_chunk(&h->reply, rkey, va, len, &p->at);
}

bool dump_place_find(const struct dump_conn *c, bool to_read, uint32_t rkey, uint64_t va,
		     uint32_t len, struct dump_place *ret)
{
	for (struct list *node = c->calls.prev; node != &c->calls; node = node->prev) {
		struct dump_place p = { .call = list_entry(node, struct dump_call, node),
					.to_read = to_read };
		const struct rr_hdr *h = &p.call->hdr;

		if (to_read ? in_reads(h, rkey, va, len, &p) : in_writes(h, rkey, va, len, &p)) {
			*ret = p;
			return true;
		}
	}
	return false;
}

int dump_head_put(struct dump_head *h, uint64_t at, const uint8_t *p, size_t len)
{
	if (at >= DUMP_HEAD_BYTES || !len)
		return 0;
	if (!h->bytes) {
		h->bytes = calloc(1, DUMP_HEAD_BYTES);
		if (!h->bytes)
			return -ENOMEM;
	}
	len = MIN(len, (size_t)(DUMP_HEAD_BYTES - at));
	memcpy(h->bytes + at, p, len);
	h->len = MAX(h->len, (size_t)at + len);
	return 0;
}

/* ---- connections ------------------------------------------------------------------------------- */

void dump_conn_destroy(struct dump *d, struct dump_conn *c)
{
	list_for_each_safe(node, &c->calls)
		dump_call_destroy(d, list_entry(node, struct dump_call, node));
	list_del(&c->node);
	d->nconns--;
	free(c->end[0].msg);
	free(c->end[1].msg);
	free(c);
}

static struct dump_conn *conn_create(struct dump *d)
{
	struct dump_conn *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	if (d->nconns == CONNS_MAX)
		dump_conn_destroy(d, list_entry(d->conns.prev, struct dump_conn, node));
	list_init(&c->calls);
	c->client = -1;
	for (int i = 0; i < 2; i++)
		rr_priv_decode(NULL, 0, &c->end[i].priv);
	list_add_head(&d->conns, &c->node);
	d->nconns++;
	d->connections++;
	return c;
}

/* Queue pair numbers are reused: the most recent connection comes first. */
struct dump_conn *dump_conn_find(struct dump *d, const struct dump_frame *f, int *ret_from)
{
	list_for_each(node, &d->conns) {
		struct dump_conn *c = list_entry(node, struct dump_conn, node);

		for (int to = 0; to < 2; to++) {
			const struct dump_end *e = &c->end[to];

			if (!e->qpn_known || e->qpn != f->qpn || !same_addr(&e->addr, &f->dst) ||
			    !same_addr(&c->end[!to].addr, &f->src))
				continue;
			list_del(&c->node);
			list_add_head(&d->conns, &c->node);
			*ret_from = !to;
			return c;
		}
	}
	return NULL;
}

/* Finds a connection with one known side that sent the request which @f acknowledges. */
static struct dump_conn *answered_by(struct dump *d, const struct dump_frame *f)
{
	list_for_each(node, &d->conns) {
		struct dump_conn *c = list_entry(node, struct dump_conn, node);
		const struct dump_end *asked = &c->end[0];
		int32_t behind;

		if (c->has_cm || asked->qpn_known || !asked->psn_known ||
		    !same_addr(&asked->addr, &f->dst) || !same_addr(&c->end[1].addr, &f->src))
			continue;
		behind = dump_psn_ahead(asked->psn, f->psn);
		if (behind > 0 && behind <= GUESS_PACKETS)
			return c;
	}
	return NULL;
}

int dump_conn_guess(struct dump *d, const struct dump_frame *f, bool response,
		    struct dump_conn **ret, int *ret_from)
{
	struct dump_conn *c;

	if (response) {
		c = answered_by(d, f);
		if (!c)
			return 0;
		c->end[0].qpn = f->qpn;
		c->end[0].qpn_known = true;
		c->up = true;
		*ret_from = 1;
	} else {
		c = conn_create(d);
		if (!c)
			return -ENOMEM;
		/* side 0 is taken as the sender until one side makes a call */
		c->end[0].addr = f->src;
		c->end[1].addr = f->dst;
		c->end[1].qpn = f->qpn;
		c->end[1].qpn_known = true;
		*ret_from = 0;
	}
	*ret = c;
	return 1;
}

/* ---- the connection manager ----------------------------------------------------------------------- */

/* Offsets in REQ and REP. */
enum {
	REQ_COMM = 0, REQ_SERVICE = 8, REQ_QPN = 32, REQ_READS_SERVED = 35, REQ_READS_ASKED = 39,
	REQ_PSN = 44, REQ_RETRY = 47, REQ_MTU = 50, REQ_PRIVATE = 140,
	IP_HEAD_BYTES = 36, /* header that librdmacm and the kernel put before the user's private data */
	REP_COMM = 4, REP_QPN = 12, REP_PSN = 20, REP_READS_SERVED = 24, REP_READS_ASKED = 25,
	REP_RETRY = 27, REP_PRIVATE = 36,
	REJ_REASON = 10,
	CM_BYTES = MAD_BYTES - MAD_HEAD_BYTES,
};

/* Each side announces the sequence number at which the other one must begin. */
static void fill_end(struct dump_conn *c, int which, const struct dump_addr *addr,
		     const uint8_t *qpn, const uint8_t *psn)
{
	c->end[which].addr = *addr;
	c->end[which].qpn = get_be32(qpn) >> 8;
	c->end[which].qpn_known = true;
	c->end[!which].psn = get_be32(psn) >> 8;
	c->end[!which].psn_known = true;
}

static bool same_dialler(const struct dump_conn *c, const struct dump_addr *addr, uint32_t comm)
{
	return c->has_cm && !c->over && c->comm == comm &&
	       same_addr(&c->end[DUMP_DIALLED].addr, addr);
}

static struct dump_conn *dialled(struct dump *d, const struct dump_addr *addr, uint32_t comm)
{
	list_for_each(node, &d->conns) {
		struct dump_conn *c = list_entry(node, struct dump_conn, node);

		if (same_dialler(c, addr, comm))
			return c;
	}
	return NULL;
}

/* Return: 1: new; 0: a repetition; -ENOMEM. */
static int request(struct dump *d, const uint8_t *p, struct dump_cm *cm)
{
	static const uint32_t mtus[] = { 0, 256, 512, 1024, 2048, 4096 };
	const struct dump_frame *f = cm->frame;
	struct dump_conn *c = dialled(d, &f->src, get_be32(p + REQ_COMM));
	uint64_t service = get_be64(p + REQ_SERVICE);
	struct dump_end *e;

	if (c && c->end[DUMP_DIALLED].qpn == get_be32(p + REQ_QPN) >> 8 && !c->used)
		return 0;
	if (c)
		dump_conn_destroy(d, c);
	c = conn_create(d);
	if (!c)
		return -ENOMEM;
	c->has_cm = c->whole = true;
	c->client = DUMP_DIALLED;
	c->comm = get_be32(p + REQ_COMM);
	c->mtu = p[REQ_MTU] >> 4 < ARRAY_SIZE(mtus) ? mtus[p[REQ_MTU] >> 4] : 0;
	c->end[DUMP_LISTENED].addr = f->dst;
	e = &c->end[DUMP_DIALLED];
	fill_end(c, DUMP_DIALLED, &f->src, p + REQ_QPN, p + REQ_PSN);
	e->reads_served = p[REQ_READS_SERVED];
	e->reads_asked = p[REQ_READS_ASKED];
	rr_priv_decode(p + REQ_PRIVATE + IP_HEAD_BYTES, CM_BYTES - REQ_PRIVATE - IP_HEAD_BYTES,
		       &e->priv);
	cm->conn = c;
	cm->from = DUMP_DIALLED;
	cm->port = (service & ~UINT64_C(0xffff)) == SERVICE_PORT_TCP ? (uint16_t)service : 0;
	cm->retry = p[REQ_RETRY] & 7;
	cm->rnr_retry = p[REQ_MTU] & 7;
	return 1;
}

static int answer(struct dump *d, const uint8_t *p, struct dump_cm *cm)
{
	const struct dump_frame *f = cm->frame;
	struct dump_conn *c = dialled(d, &f->dst, get_be32(p + REP_COMM));
	struct dump_end *e;

	if (c && c->up)
		return 0;
	if (!c)
		return 1; /* the request is not in the capture: print a line only */
	e = &c->end[DUMP_LISTENED];
	fill_end(c, DUMP_LISTENED, &f->src, p + REP_QPN, p + REP_PSN);
	e->reads_served = p[REP_READS_SERVED];
	e->reads_asked = p[REP_READS_ASKED];
	rr_priv_decode(p + REP_PRIVATE, CM_BYTES - REP_PRIVATE, &e->priv);
	c->up = true;
	cm->conn = c;
	cm->from = DUMP_LISTENED;
	cm->rnr_retry = p[REP_RETRY] >> 5;
	return 1;
}

/* Finds the connection of a DREQ or DREP by the sender's or the receiver's id. */
static void hang_up(struct dump *d, const struct dump_frame *f, const uint8_t *p)
{
	struct dump_conn *c = dialled(d, &f->src, get_be32(p));

	if (!c)
		c = dialled(d, &f->dst, get_be32(p + 4));
	if (!c)
		return;
	c->over = true;
	list_for_each_safe(node, &c->calls)
		dump_call_destroy(d, list_entry(node, struct dump_call, node));
}

int dump_conn_cm(struct dump *d, const struct dump_frame *f)
{
	struct dump_cm cm = { .frame = f };
	const uint8_t *mad = f->body + DETH_BYTES, *p = mad + MAD_HEAD_BYTES;
	int rc = 1;

	if (f->len < DETH_BYTES + MAD_BYTES || mad[1] != CM_CLASS)
		return 0;
	cm.kind = get_be16(mad + 16);
	if (cm.kind == DUMP_CM_REQ)
		rc = request(d, p, &cm);
	else if (cm.kind == DUMP_CM_REP)
		rc = answer(d, p, &cm);
	else if (cm.kind == DUMP_CM_REJ)
		cm.reason = get_be16(p + REJ_REASON);
	else if (cm.kind == DUMP_CM_DREQ)
		hang_up(d, f, p);
	if (rc <= 0)
		return rc;
	dump_print_cm(d, &cm);
	dump_check_cm(d, &cm);
	return 0;
}
