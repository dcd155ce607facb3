/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * dump_flow.c - turns packets of a connection into messages and transfers
 *
 * Operation:  dump_packet() finds the connection of a frame. Requests (Send, RDMA Write, RDMA Read) have
 *             consecutive packet sequence numbers of their sender; a Read takes as many as its response
 *             has packets. A lower number was seen before and is skipped. A higher number is ignored, as
 *             by a receiver, until it is retransmitted. If missing packets before it are acknowledged, the
 *             capture lacks them, and the message in reassembly is dropped. Sends are reassembled and
 *             passed on as messages; a Read or Write is reported when it begins. Payload is inspected only
 *             if it is a message itself, and only its beginning: a long call in Read responses, a long
 *             reply in Writes.
 *             Read responses carry sequence numbers of the requester, which identify their Read.
 * Memory:     A Send may be SEND_MAX long; see dump_conn.c for the rest.
 * Threads:    One.
 * Errors:     -ENOMEM. Malformed packets are skipped and counted.
 * See:        InfiniBand architecture volume 1, 9.4 (operations), 9.7 (reliable service).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/wire.h"
#include "dump.h"

#define SEND_MAX (256u << 10) /* the maximum that RFC 8797 can express */
#define RETH_BYTES 16u
#define LOST_PACKETS 4096 /* more packets in flight are implausible: the acknowledgements were not captured */

enum {
	SEND_FIRST, SEND_MIDDLE, SEND_LAST, SEND_LAST_IMM, SEND_ONLY, SEND_ONLY_IMM,
	WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST, WRITE_LAST_IMM, WRITE_ONLY, WRITE_ONLY_IMM,
	READ_REQUEST, READ_FIRST, READ_MIDDLE, READ_LAST, READ_ONLY,
	ACKNOWLEDGE, ATOMIC_ACKNOWLEDGE, COMPARE_SWAP, FETCH_ADD, RESERVED,
	SEND_LAST_INV, SEND_ONLY_INV, RC_OPCODES,
	UD_SEND_ONLY = 0x64,
};

/* A packet of a connection, without its extended headers. */
struct packet {
	const struct dump_frame *frame;
	struct dump_conn *conn;
	int from;
	uint8_t opcode;
	const uint8_t *data;
	size_t len;
	uint64_t va;      /* RETH */
	uint32_t rkey, dma_len;
	uint32_t ext;     /* IETH, AETH */
};

static bool is_response(uint8_t opcode)
{
	return opcode >= READ_FIRST && opcode <= ATOMIC_ACKNOWLEDGE;
}

/* ---- messages -------------------------------------------------------------------------------------- */

static enum dump_kind kind_of(const struct dump_msg *m)
{
	const struct dump_conn *c = m->conn;
	uint32_t dir;

	if (m->bad == -EMSGSIZE || m->hdr.proc == RR_DONE)
		return DUMP_OTHER;
	if (m->hdr.proc == RR_ERROR)
		return DUMP_REPLY;
	if (!m->bad && m->hdr.proc == RR_MSG && m->len - m->hdr_bytes >= 8) {
		dir = get_be32(m->bytes + m->hdr_bytes + 4);
		if (dir == RR_RPC_CALL || dir == RR_RPC_REPLY)
			return dir == RR_RPC_CALL ? DUMP_CALL : DUMP_REPLY;
	}
	if (c->client >= 0)
		return m->from == c->client ? DUMP_CALL : DUMP_REPLY;
	return m->hdr.nreads ? DUMP_CALL : DUMP_REPLY;
}

static int take_call(struct dump *d, struct dump_msg *m)
{
	struct dump_conn *c = m->conn;
	struct dump_call *call;

	if (!m->bad && m->hdr.proc == RR_MSG)
		dump_rpc_call(m->bytes + m->hdr_bytes, m->len - m->hdr_bytes, &m->rpc);
	if (c->client < 0)
		c->client = m->from;
	dump_print_msg(d, m);
	dump_check_call(d, m);
	/* calls of the reverse direction are not related to these */
	if (m->from != c->client || m->bad == -ENODATA)
		return 0;
	call = dump_call_create(d, c, &m->hdr);
	if (!call)
		return -ENOMEM;
	call->rpc = m->rpc;
	call->inline_bytes = m->len - m->hdr_bytes;
	return 0;
}

static void take_reply(struct dump *d, struct dump_msg *m)
{
	const struct dump_head *h;

	if (m->conn->client < 0)
		m->conn->client = !m->from;
	m->call = m->from == m->conn->client ? NULL : dump_call_find(m->conn, m->hdr.xid);
	if (m->call && m->call->args.len)
		dump_rpc_call(m->call->args.bytes, m->call->args.len, &m->call->rpc);
	if (!m->bad && m->hdr.proc == RR_MSG) {
		dump_rpc_reply(m->bytes + m->hdr_bytes, m->len - m->hdr_bytes,
			       m->call ? &m->call->rpc : NULL, &m->rpc);
	} else if (!m->bad && m->hdr.proc == RR_NOMSG && m->call) {
		h = &m->call->reply;
		dump_rpc_reply(h->bytes, h->len, &m->call->rpc, &m->rpc);
	}
	dump_print_msg(d, m);
	dump_check_reply(d, m);
	if (m->call)
		dump_call_destroy(d, m->call);
}

static int take_message(struct dump *d, const struct packet *p, const uint8_t *bytes, size_t len,
			bool cut)
{
	struct dump_msg m = { .frame = p->frame, .conn = p->conn, .from = p->from, .bytes = bytes,
			      .len = len, .cut = cut };

	if (p->opcode == SEND_LAST_INV || p->opcode == SEND_ONLY_INV) {
		m.inv = true;
		m.inv_rkey = p->ext;
	}
	d->messages++;
	p->conn->used = true;
	if (cut) {
		/* the header may be complete, but the rest is unknown */
		d->cut++;
		dump_print_msg(d, &m);
		return 0;
	}
	rr_hdr_init(&m.hdr, 0, 0, 0);
	m.bad = rr_hdr_decode(bytes, len, &m.hdr, &m.hdr_bytes);
	if (m.bad)
		d->undecoded++;
	m.kind = kind_of(&m);
	if (m.kind == DUMP_CALL)
		return take_call(d, &m);
	if (m.kind == DUMP_REPLY)
		take_reply(d, &m);
	else
		dump_print_msg(d, &m);
	return 0;
}

static int gather(struct dump_end *e, const struct packet *p)
{
	size_t need = e->msg_len + p->len, cap = e->msg_cap ? e->msg_cap : 4096;
	uint8_t *more;

	if (need > SEND_MAX) {
		e->in_send = false;
		return 0;
	}
	while (cap < need)
		cap *= 2;
	if (cap != e->msg_cap) {
		more = realloc(e->msg, cap);
		if (!more)
			return -ENOMEM;
		e->msg = more;
		e->msg_cap = cap;
	}
	if (p->len)
		memcpy(e->msg + e->msg_len, p->data, p->len);
	e->msg_len = need;
	e->send_cut |= p->frame->cut;
	return 0;
}

static int take_send(struct dump *d, const struct packet *p)
{
	struct dump_end *e = &p->conn->end[p->from];
	bool first = p->opcode == SEND_FIRST, last = p->opcode != SEND_FIRST && p->opcode != SEND_MIDDLE;
	int rc;

	if (p->opcode == SEND_ONLY || p->opcode == SEND_ONLY_IMM || p->opcode == SEND_ONLY_INV) {
		e->in_send = false;
		return take_message(d, p, p->data, p->len, p->frame->cut);
	}
	if (first) {
		e->in_send = true;
		e->send_cut = false;
		e->msg_len = 0;
	}
	if (!e->in_send)
		return 0;
	rc = gather(e, p);
	if (rc || !last || !e->in_send)
		return rc;
	e->in_send = false;
	return take_message(d, p, e->msg, e->msg_len, e->send_cut);
}

/* ---- transfers --------------------------------------------------------------------------------------- */

static struct dump_call *tell_transfer(struct dump *d, const struct packet *p, enum dump_move what)
{
	struct dump_transfer t = { .frame = p->frame, .conn = p->conn, .from = p->from, .what = what,
				   .rkey = p->rkey, .len = p->dma_len, .va = p->va };
	struct dump_place place;

	p->conn->used = true;
	/* a client's call does not describe the server's memory */
	if (p->from != p->conn->client &&
	    dump_place_find(p->conn, what == DUMP_READ, p->rkey, p->va, p->dma_len, &place)) {
		t.call = place.call;
		if (what == DUMP_READ) {
			t.call->reads++;
			t.call->read_bytes += p->dma_len;
		} else {
			t.call->writes++;
			t.call->written_bytes += p->dma_len;
			t.call->written[place.chunk] += p->dma_len;
		}
	}
	dump_print_transfer(d, &t);
	dump_check_transfer(d, &t);
	return t.call;
}

static int take_write(struct dump *d, const struct packet *p)
{
	struct dump_end *e = &p->conn->end[p->from];
	struct dump_place place;
	int rc = 0;

	if (p->opcode == WRITE_FIRST || p->opcode == WRITE_ONLY || p->opcode == WRITE_ONLY_IMM) {
		e->write_call = tell_transfer(d, p, DUMP_WRITE);
		e->write_rkey = p->rkey;
		e->write_va = p->va;
	}
	if (e->write_call && p->len && p->len <= UINT32_MAX &&
	    dump_place_find(p->conn, false, e->write_rkey, e->write_va, (uint32_t)p->len, &place) &&
	    place.call == e->write_call && place.chunk == RR_WRITE_CHUNKS_MAX)
		rc = dump_head_put(&place.call->reply, place.at, p->data, p->len);
	e->write_va += p->len;
	return rc;
}

static uint32_t packets_of(uint32_t len, uint32_t mtu)
{
	return len ? (len - 1) / mtu + 1 : 1;
}

static void take_read(struct dump *d, const struct packet *p)
{
	struct dump_end *e = &p->conn->end[p->from];
	struct dump_call *call = tell_transfer(d, p, DUMP_READ);

	if (!p->conn->mtu) {
		e->psn_known = false; /* the count of sequence numbers it takes is unknown */
		return;
	}
	e->psn = (e->psn + packets_of(p->dma_len, p->conn->mtu) - 1) & 0xffffff;
	e->reads[e->next_read] = (struct dump_read){
		.psn = p->frame->psn, .packets = packets_of(p->dma_len, p->conn->mtu),
		.rkey = p->rkey, .left = p->dma_len, .va = p->va, .call = call,
	};
	e->next_read = (e->next_read + 1) % DUMP_READS;
}

static int take_read_data(const struct packet *p)
{
	struct dump_end *asked = &p->conn->end[!p->from];
	struct dump_place place;

	for (unsigned i = 0; i < DUMP_READS && p->len; i++) {
		const struct dump_read *r = &asked->reads[i];
		int32_t nth = dump_psn_ahead(p->frame->psn, r->psn);
		uint64_t va;

		if (!r->call || nth < 0 || (uint32_t)nth >= r->packets)
			continue;
		va = r->va + (uint64_t)nth * p->conn->mtu;
		if (dump_place_find(p->conn, true, r->rkey, va, (uint32_t)p->len, &place) &&
		    place.call == r->call && place.chunk == 0)
			return dump_head_put(&place.call->args, place.at, p->data, p->len);
	}
	return 0;
}

/* ---- packets ------------------------------------------------------------------------------------------ */

/* Removes the extended headers. Return: false: they are missing, or the operation is not of interest. */
static bool strip(struct packet *p)
{
	struct wire_get g;

	wire_get_init(&g, p->data, p->len);
	switch (p->opcode) {
	case WRITE_FIRST:
	case WRITE_ONLY:
	case WRITE_ONLY_IMM:
	case READ_REQUEST:
		p->va = wire_get_u64(&g);
		p->rkey = wire_get_u32(&g);
		p->dma_len = wire_get_u32(&g);
		if (p->opcode == WRITE_ONLY_IMM)
			(void)wire_get_u32(&g);
		break;
	case SEND_LAST_IMM:
	case SEND_ONLY_IMM:
	case WRITE_LAST_IMM:
	case SEND_LAST_INV:
	case SEND_ONLY_INV:
	case READ_FIRST:
	case READ_LAST:
	case READ_ONLY:
	case ACKNOWLEDGE:
		p->ext = wire_get_u32(&g);
		break;
	case SEND_FIRST:
	case SEND_MIDDLE:
	case SEND_LAST:
	case SEND_ONLY:
	case WRITE_MIDDLE:
	case WRITE_LAST:
	case READ_MIDDLE:
		break;
	default:
		return false;
	}
	p->data = g.at;
	p->len = wire_get_left(&g);
	return wire_get_ok(&g);
}

static void skip_to(struct dump *d, const struct packet *p, int sender, uint32_t psn)
{
	struct dump_end *e = &p->conn->end[sender];
	uint32_t packets = (psn - e->psn) & 0xffffff;

	d->missing += packets;
	p->conn->whole = false;
	e->in_send = false;
	e->write_call = NULL;
	e->psn = psn;
	dump_check_gap(d, p->frame, packets);
}

/* Is this request next in sequence? False if it was seen before, or if earlier ones are missing: a receiver drops it
 * then, and it is retransmitted. If the capture lacks the earlier ones, their acknowledgement shows it. */
static bool in_turn(struct dump *d, const struct packet *p)
{
	struct dump_end *e = &p->conn->end[p->from];
	int32_t ahead = e->psn_known ? dump_psn_ahead(p->frame->psn, e->psn) : 0;

	if (ahead > LOST_PACKETS)
		skip_to(d, p, p->from, p->frame->psn);
	else if (ahead)
		return false;
	e->psn_known = true;
	e->psn = (p->frame->psn + 1) & 0xffffff;
	return true;
}

/* The receiver has everything before @psn. */
static void acknowledged(struct dump *d, const struct packet *p, uint32_t psn)
{
	const struct dump_end *e = &p->conn->end[!p->from];

	if (e->psn_known && dump_psn_ahead(psn, e->psn) > 0)
		skip_to(d, p, !p->from, psn);
}

static void learn_mtu(const struct packet *p)
{
	bool full = p->opcode == SEND_FIRST || p->opcode == SEND_MIDDLE || p->opcode == WRITE_FIRST ||
		    p->opcode == WRITE_MIDDLE || p->opcode == READ_FIRST || p->opcode == READ_MIDDLE;

	if (full && !p->frame->cut && !p->conn->mtu && p->len >= 256 && p->len <= 4096)
		p->conn->mtu = (uint32_t)p->len;
}

static int take_packet(struct dump *d, struct packet *p)
{
	bool response = is_response(p->opcode);
	int rc;

	p->conn = dump_conn_find(d, p->frame, &p->from);
	if (!p->conn) {
		rc = dump_conn_guess(d, p->frame, response, &p->conn, &p->from);
		if (rc <= 0)
			return rc;
	}
	learn_mtu(p);
	if (p->opcode == ACKNOWLEDGE) {
		uint8_t syndrome = (uint8_t)(p->ext >> 24);
		bool refused = syndrome >> 5 & 3;

		if (refused) {
			dump_print_nak(d, p->frame, syndrome);
			dump_check_nak(d, p->frame, syndrome);
		}
		acknowledged(d, p, (p->frame->psn + !refused) & 0xffffff);
		return 0;
	}
	if (response) {
		acknowledged(d, p, p->frame->psn);
		return take_read_data(p);
	}
	if (!in_turn(d, p))
		return 0;
	if (p->opcode == READ_REQUEST) {
		take_read(d, p);
		return 0;
	}
	return p->opcode >= WRITE_FIRST && p->opcode <= WRITE_ONLY_IMM ? take_write(d, p) :
									take_send(d, p);
}

int dump_packet(struct dump *d, const struct dump_packet *packet)
{
	struct dump_frame f;
	struct packet p = { .frame = &f };

	if (!dump_frame_parse(packet, &f))
		return 0;
	d->packets++;
	if (!d->started) {
		d->started = true;
		d->start_ns = f.ns;
	}
	if (f.opcode == UD_SEND_ONLY)
		return f.qpn == 1 ? dump_conn_cm(d, &f) : 0;
	p.opcode = f.opcode;
	p.data = f.body;
	p.len = f.len;
	return strip(&p) ? take_packet(d, &p) : 0;
}

void dump_init(struct dump *d, FILE *out, const struct dump_options *options)
{
	memset(d, 0, sizeof(*d));
	d->out = out;
	d->options = *options;
	list_init(&d->conns);
	list_init(&d->calls);
}

/** dump_fini - forgets all connections */
void dump_fini(struct dump *d)
{
	list_for_each_safe(node, &d->conns)
		dump_conn_destroy(d, list_entry(node, struct dump_conn, node));
}
