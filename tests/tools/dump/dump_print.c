/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * dump_print.c - prints the lines of leat dump
 *
 * Operation:  Each line begins with the seconds since the first packet, then sender and receiver; the
 *             queue pair number is the receiver's, as on the wire. Numbers come from the capture, words
 *             from tables: no text from a peer is printed as it is.
 * Memory:     The stack.
 * Threads:    One.
 * Errors:     The stream keeps them; its owner checks.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "dump.h"

#define HDR_TEXT 2048

static void begin(struct dump *d, const struct dump_frame *f)
{
	char src[DUMP_ADDR_TEXT], dst[DUMP_ADDR_TEXT];
	uint64_t ns = f->ns > d->start_ns ? f->ns - d->start_ns : 0;

	fprintf(d->out, "%" PRIu64 ".%06" PRIu64 " %s -> %s qp=0x%x ", ns / 1000000000,
		ns / 1000 % 1000000, dump_addr_print(&f->src, src), dump_addr_print(&f->dst, dst),
		f->qpn);
}

static const char *cm_name(uint16_t kind)
{
	static const char *const names[] = { "REQ", "MRA", "REJ", "REP", "RTU", "DREQ", "DREP" };

	return kind >= DUMP_CM_REQ && kind <= DUMP_CM_DREP ? names[kind - DUMP_CM_REQ] : "?";
}

static void print_end(struct dump *d, const struct dump_conn *c, int which)
{
	const struct dump_end *e = &c->end[which];

	fprintf(d->out, " own_qp=0x%x psn=0x%x responder_resources=%u initiator_depth=%u", e->qpn,
		c->end[!which].psn, e->reads_served, e->reads_asked);
	if (e->priv.present)
		fprintf(d->out, " private[send=%u receive=%u%s]", e->priv.send_bytes,
			e->priv.recv_bytes, e->priv.remote_inv ? " R" : "");
	else
		fprintf(d->out, " private[none: %u]", RR_INLINE_DEFAULT);
}

void dump_print_cm(struct dump *d, const struct dump_cm *cm)
{
	if (!d->options.lines)
		return;
	begin(d, cm->frame);
	fprintf(d->out, "CM %s", cm_name(cm->kind));
	if (cm->conn && cm->kind == DUMP_CM_REQ)
		fprintf(d->out, " port=%u mtu=%u retry=%u", cm->port, cm->conn->mtu, cm->retry);
	if (cm->conn) {
		fprintf(d->out, " rnr_retry=%u", cm->rnr_retry);
		print_end(d, cm->conn, cm->from);
	}
	if (cm->kind == DUMP_CM_REJ)
		fprintf(d->out, " reason=%u", cm->reason);
	fputc('\n', d->out);
}

static void print_moved(struct dump *d, const struct dump_call *c)
{
	if (c->reads)
		fprintf(d->out, " read=%" PRIu64 "/%u", c->read_bytes, c->reads);
	if (c->writes)
		fprintf(d->out, " written=%" PRIu64 "/%u", c->written_bytes, c->writes);
}

static bool has_rpc(const struct dump_msg *m)
{
	/* a long reply without captured bytes is not printable, nor is a long call yet */
	return !m->bad && (m->hdr.proc == RR_MSG || (m->hdr.proc == RR_NOMSG && m->rpc.known));
}

void dump_print_msg(struct dump *d, const struct dump_msg *m)
{
	static const char *const kinds[] = { "CALL", "REPLY", "MESSAGE" };
	char text[HDR_TEXT], rpc[320];

	if (!d->options.lines)
		return;
	begin(d, m->frame);
	if (m->cut) {
		fprintf(d->out, "MESSAGE send=%zu is cut short in the capture\n", m->len);
		return;
	}
	fprintf(d->out, "%s %s", kinds[m->kind], rr_hdr_print(&m->hdr, text, sizeof(text)));
	fprintf(d->out, " send=%zu", m->len);
	if (m->bad)
		fputs(" MALFORMED", d->out);
	if (has_rpc(m))
		fprintf(d->out, " %s", dump_rpc_print(&m->rpc, rpc, sizeof(rpc)));
	else if (!m->bad && m->hdr.proc == RR_NOMSG && m->kind == DUMP_CALL)
		fputs(" long call", d->out);
	if (m->call)
		print_moved(d, m->call);
	if (m->inv)
		fprintf(d->out, " invalidates=0x%x", m->inv_rkey);
	fputc('\n', d->out);
}

void dump_print_transfer(struct dump *d, const struct dump_transfer *t)
{
	if (!d->options.lines || !d->options.transfers)
		return;
	begin(d, t->frame);
	fprintf(d->out, "RDMA %s rkey=0x%x offset=0x%" PRIx64 " length=%u",
		t->what == DUMP_READ ? "READ" : "WRITE", t->rkey, t->va, t->len);
	if (t->call)
		fprintf(d->out, " xid=0x%x", t->call->hdr.xid);
	fputc('\n', d->out);
}

void dump_print_nak(struct dump *d, const struct dump_frame *f, uint8_t syndrome)
{
	static const char *const codes[] = { "PSN sequence error", "invalid request",
					     "remote access error", "remote operational error",
					     "invalid RD request" };
	unsigned code = syndrome & 0x1f;

	if (!d->options.lines)
		return;
	begin(d, f);
	if ((syndrome >> 5 & 3) == 1)
		fprintf(d->out, "RNR NAK\n");
	else
		fprintf(d->out, "NAK %s\n", code < ARRAY_SIZE(codes) ? codes[code] : "?");
}

void dump_print_note(struct dump *d, const struct dump_frame *f, const char *fmt, ...)
{
	va_list ap;

	begin(d, f);
	va_start(ap, fmt);
	vfprintf(d->out, fmt, ap);
	va_end(ap);
	fputc('\n', d->out);
}

void dump_print_end(const struct dump *d)
{
	fprintf(d->out, "%" PRIu64 " messages, %" PRIu64 " connections, %" PRIu64 " packets",
		d->messages, d->connections, d->packets);
	if (d->missing)
		fprintf(d->out, ", %" PRIu64 " packets missing", d->missing);
	if (d->cut)
		fprintf(d->out, ", %" PRIu64 " messages cut short", d->cut);
	if (d->undecoded)
		fprintf(d->out, ", %" PRIu64 " headers malformed", d->undecoded);
	if (d->options.check)
		fprintf(d->out, ", %" PRIu64 " rules broken", d->broken);
	fputc('\n', d->out);
}
