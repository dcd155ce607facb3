/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * dump_check.c - leat dump --check: checks traffic against the rules of doc/protocol.md
 *
 * Operation:  dump_flow.c reports every call, reply and transfer in order. Each rule is an `if` here; a
 *             violation prints a line that names the rule. Rules that need the beginning of a connection
 *             (thresholds, the R flag, the first credit, the set of calls) are checked only if it was
 *             captured, and no longer after packets are missing.
 *             A lower credit grant binds the client after it has seen the grant, which a capture does not
 *             show. So the old grant is valid until as many replies have followed as calls were
 *             outstanding.
 * Memory:     struct dump_account of each connection.
 * Threads:    One.
 * Errors:     None; broken rules are counted.
 * See:        doc/protocol.md sections 1 to 3 and 7.1.
 */
#include <inttypes.h>
#include <stdio.h>

#include "block.h"
#include "chunk.h"
#include "dump.h"
#include "nfs3.h"
#include "stripes.h"

#define PAD_MAX 4u /* a segment of at most this size after others is for the XDR pad */

#define broken(d, f, ...)                                                                          \
	do {                                                                                       \
		(d)->broken++;                                                                     \
		if ((d)->options.check)                                                            \
			dump_print_note(d, f, "BROKEN " __VA_ARGS__);                              \
	} while (0)

static uint32_t send_max(const struct dump_conn *c, int from)
{
	return MIN(c->end[from].priv.send_bytes, c->end[!from].priv.recv_bytes);
}

/* Checks common to calls and replies. Return: false: no further checks apply. */
static bool check_message(struct dump *d, const struct dump_msg *m)
{
	const struct dump_conn *c = m->conn;

	if (c->has_cm && m->len > send_max(c, m->from))
		broken(d, m->frame, "send-size: %zu bytes where %u are agreed, xid=0x%x", m->len,
		       send_max(c, m->from), m->hdr.xid);
	if (m->bad) {
		broken(d, m->frame, "header: malformed, xid=0x%x", m->hdr.xid);
		return false;
	}
	if (!m->hdr.credits)
		broken(d, m->frame, "credits: 0, xid=0x%x", m->hdr.xid);
	if (m->rpc.known && m->rpc.xid != m->hdr.xid)
		broken(d, m->frame, "xid: 0x%x in the header, 0x%x in the RPC", m->hdr.xid,
		       m->rpc.xid);
	if (m->hdr.proc == RR_NOMSG && m->len != m->hdr_bytes)
		broken(d, m->frame, "nomsg: %zu bytes behind the header, xid=0x%x",
		       m->len - m->hdr_bytes, m->hdr.xid);
	if (m->hdr.proc == RR_MSG && m->len - m->hdr_bytes < 8)
		broken(d, m->frame, "msg: no RPC behind the header, xid=0x%x", m->hdr.xid);
	return true;
}

/* ---- calls ----------------------------------------------------------------------------------------- */

static bool takes_item(const struct dump_rpc *r)
{
	if (dump_is_block(r))
		return r->proc == BLOCKPROC_WRITE;
	if (dump_is_stripes(r))
		return r->proc == STRIPEPROC_WRITE;
	return r->prog == NFS_PROGRAM && r->vers == NFS_V3 && (r->proc == NFSPROC3_WRITE || r->proc == NFSPROC3_SYMLINK);
}

static bool gives_item(const struct dump_rpc *r)
{
	if (dump_is_block(r))
		return r->proc == BLOCKPROC_READ;
	if (dump_is_stripes(r))
		return r->proc == STRIPEPROC_READ;
	return r->prog == NFS_PROGRAM && r->vers == NFS_V3 && r->proc == NFSPROC3_READ;
}

/* Checks the fields and the length of a call, or a reply, of leat's own programs.
 * @bytes: of the message, without those that moved by chunk */
static void check_own(struct dump *d, const struct dump_frame *f, const struct dump_rpc *r, uint64_t bytes,
			uint32_t xid)
{
	bool complete = r->has_item || r->has_end;

	const char *kind = dump_is_stripes(r) ? "stripe" : dump_is_volumes(r) ? "volume" : "block";

	if (!r->known || (!dump_is_block(r) && !dump_is_stripes(r) && !dump_is_volumes(r)) || r->denied || r->accept)
		return;
	if (r->flaw)
		broken(d, f, "%s-field: %s, xid=0x%x", kind, r->flaw, xid);
	else if (complete ? r->has_end && bytes != r->end_at : bytes <= DUMP_HEAD_BYTES)
		broken(d, f, "%s-length: %" PRIu64 " bytes of procedure %u, which end at %zu, xid=0x%x", kind,
		       bytes, r->proc, r->end_at, xid);
}

/* Checks the item of a call: position of its chunk, its length, and that it is only there.
 * @bytes: of the message, without the bytes in that chunk */
static void check_item(struct dump *d, const struct dump_frame *f, const struct rr_hdr *h,
		       const struct dump_rpc *r, const struct rr_read_info *info, uint64_t bytes)
{
	uint32_t item = r->item_bytes;

	if (!r->known)
		return;
	check_own(d, f, r, bytes, h->xid);
	if (info->has_item && !takes_item(r)) {
		broken(d, f, "eligible: a Read chunk at position %u of procedure %u, xid=0x%x",
		       info->item_position, r->proc, h->xid);
		return;
	}
	if (!r->has_item)
		return;
	if (!info->has_item) {
		if (bytes != r->item_at + round_up4(item))
			broken(d, f, "call-length: %" PRIu64 " bytes, of an item of %u at %zu, xid=0x%x",
			       bytes, item, r->item_at, h->xid);
		return;
	}
	if (info->item_position != r->item_at)
		broken(d, f, "position: %u, and the data belong at %zu, xid=0x%x",
		       info->item_position, r->item_at, h->xid);
	if (info->item_bytes != item && info->item_bytes != round_up4(item))
		broken(d, f, "read-chunk-length: %u for an item of %u, xid=0x%x", info->item_bytes,
		       item, h->xid);
	if (bytes != r->item_at)
		broken(d, f, "pad-inline: %" PRIu64 " bytes beside a chunk at %zu, xid=0x%x", bytes,
		       r->item_at, h->xid);
}

static void check_read_list(struct dump *d, const struct dump_msg *m)
{
	const struct rr_hdr *h = &m->hdr;
	size_t bytes = m->len - m->hdr_bytes;
	struct rr_read_info info;

	for (uint32_t i = 0; i < h->nreads; i++) {
		if (!h->reads[i].seg.length)
			broken(d, m->frame, "empty-segment: of a Read chunk, xid=0x%x", h->xid);
	}
	if (rr_chunk_check_reads(h, bytes, RR_CALL_BYTES_MAX, &info)) {
		broken(d, m->frame, "read-list: makes no sense, xid=0x%x", h->xid);
		return;
	}
	if (h->proc == RR_MSG)
		check_item(d, m->frame, h, &m->rpc, &info, bytes);
}

static void check_room(struct dump *d, const struct dump_msg *m)
{
	const struct rr_hdr *h = &m->hdr;

	for (uint32_t i = 0; i < h->nwrites; i++) {
		if (!h->writes[i].nsegs)
			broken(d, m->frame, "empty-chunk: in the write list, xid=0x%x", h->xid);
	}
	if (h->nwrites && gives_item(&m->rpc) && m->rpc.has_count &&
	    h->writes[0].nsegs && rr_chunk_bytes(&h->writes[0]) < m->rpc.count)
		broken(d, m->frame, "room: a Write chunk of %" PRIu64 " for a READ of %u, xid=0x%x",
		       rr_chunk_bytes(&h->writes[0]), m->rpc.count, h->xid);
	if (rr_chunk_check_writes(h, UINT32_MAX))
		broken(d, m->frame, "write-list: makes no sense, xid=0x%x", h->xid);
}

/** dump_check_call - checks a call before it counts as outstanding */
void dump_check_call(struct dump *d, const struct dump_msg *m)
{
	const struct dump_conn *c = m->conn;
	const struct dump_account *a = &c->account;

	if (m->from != c->client)
		return; /* calls of the reverse direction have other rules */
	if (m->inv)
		broken(d, m->frame, "invalidate: by a call, xid=0x%x", m->hdr.xid);
	if (!check_message(d, m))
		return;
	check_read_list(d, m);
	check_room(d, m);
	if (dump_call_find(c, m->hdr.xid))
		broken(d, m->frame, "twice: xid=0x%x is outstanding", m->hdr.xid);
	if (!c->whole || !c->has_cm)
		return;
	if (!a->answered && c->ncalls)
		broken(d, m->frame, "first-call: %u more before the first reply, xid=0x%x", c->ncalls,
		       m->hdr.xid);
	else if (a->answered && c->ncalls >= a->limit)
		broken(d, m->frame, "overrun: %u calls outstanding, %u granted, xid=0x%x",
		       c->ncalls + 1, a->grant, m->hdr.xid);
}

/* ---- replies ----------------------------------------------------------------------------------------- */

static void account(struct dump_conn *c, uint32_t grant)
{
	struct dump_account *a = &c->account;

	grant = MAX(grant, 1u);
	a->grant = grant;
	if (!a->answered || grant >= a->limit) {
		a->limit = grant;
		a->until = 0;
	} else if (!a->until) {
		a->falling = grant;
		a->until = c->ncalls - 1; /* without the call of this reply */
	} else {
		a->falling = MAX(a->falling, grant);
		a->until--;
	}
	if (grant < a->limit && !a->until)
		a->limit = a->falling;
	a->answered = true;
}

/* Return: bytes in a chunk according to the reply; 0 if the reply is wrong. */
static uint64_t check_returned(struct dump *d, const struct dump_msg *m, const char *name,
			       const struct rr_chunk *offered, const struct rr_chunk *returned,
			       uint64_t written)
{
	uint64_t used = 0;

	if (rr_chunk_check_returned(offered, returned, &used)) {
		broken(d, m->frame, "returned: %s is not what was offered, xid=0x%x", name,
		       m->hdr.xid);
		return 0;
	}
	if (m->conn->whole && written < used)
		broken(d, m->frame, "written: %s of %" PRIu64 ", only %" PRIu64 " came, xid=0x%x",
		       name, used, written, m->hdr.xid);
	return used;
}

/* A reply of the program of stripes against its call. */
static void check_stripe_result(struct dump *d, const struct dump_msg *m)
{
	const struct dump_rpc *r = &m->rpc, *call = &m->call->rpc;

	if (!dump_is_stripes(r) || !r->has_status || r->status != STRIPE_OK)
		return;
	if (call->has_count && r->has_item &&
	    (r->item_bytes > call->count || (r->has_eof && !r->eof && !r->item_bytes)))
		broken(d, m->frame, "stripe-count: %u bytes for a READ of %u, xid=0x%x", r->item_bytes, call->count,
		       m->hdr.xid);
	if (r->proc == STRIPEPROC_FENCE && call->has_epoch && r->has_epoch && r->epoch != call->epoch)
		broken(d, m->frame, "stripe-epoch: %" PRIu64 " for a FENCE to %" PRIu64 ", xid=0x%x", r->epoch, call->epoch,
		       m->hdr.xid);
}

/* A reply of the block program against its call. */
static void check_block_result(struct dump *d, const struct dump_msg *m)
{
	const struct dump_rpc *r = &m->rpc, *call = &m->call->rpc;

	if (!dump_is_block(r) || !r->has_status || r->status != BLOCK_OK)
		return;
	if (call->has_count && r->has_item &&
	    (r->item_bytes > call->count || (!r->item_bytes && call->count)))
		broken(d, m->frame, "block-count: %u bytes for a READ of %u, xid=0x%x", r->item_bytes, call->count,
		       m->hdr.xid);
	if (call->has_length && (!call->length || call->length > BLOCK_RANGE_MAX))
		broken(d, m->frame, "block-range: a range of %" PRIu64 " is not refused, xid=0x%x", call->length,
		       m->hdr.xid);
	else if (call->has_length && r->has_length && r->length > call->length)
		broken(d, m->frame, "block-range: extents of %" PRIu64 " for a range of %" PRIu64 ", xid=0x%x",
		       r->length, call->length, m->hdr.xid);
}

/* Checks the item of a reply: all of it is in the first Write chunk, if any, and nothing else.
 * @bytes: of the message, without the bytes in that chunk */
static void check_result(struct dump *d, const struct dump_msg *m, uint64_t bytes, uint64_t used)
{
	const struct dump_rpc *r = &m->rpc;
	const struct rr_hdr *call = &m->call->hdr;
	bool by_chunk = r->has_item && r->item_bytes && call->nwrites && call->writes[0].nsegs;

	if (!r->known)
		return;
	check_own(d, m->frame, r, bytes, m->hdr.xid);
	check_block_result(d, m);
	check_stripe_result(d, m);
	if (used != (by_chunk ? r->item_bytes : 0))
		broken(d, m->frame, "write-chunk-length: %" PRIu64 " for an item of %u, xid=0x%x",
		       used, r->has_item ? r->item_bytes : 0, m->hdr.xid);
	if (r->has_item && bytes != r->item_at + (by_chunk ? 0 : round_up4(r->item_bytes)))
		broken(d, m->frame, "reply-length: %" PRIu64 " bytes, of an item of %u at %zu, xid=0x%x",
		       bytes, r->item_bytes, r->item_at, m->hdr.xid);
}

static void check_chunks(struct dump *d, const struct dump_msg *m)
{
	const struct rr_hdr *h = &m->hdr, *call = &m->call->hdr;
	uint64_t used[RR_WRITE_CHUNKS_MAX] = { 0 }, reply = 0;

	if (h->nwrites != call->nwrites || h->has_reply != call->has_reply) {
		broken(d, m->frame, "returned: %u Write chunks and %d Reply chunks of %u and %d, xid=0x%x",
		       h->nwrites, h->has_reply, call->nwrites, call->has_reply, h->xid);
		return;
	}
	for (uint32_t i = 0; i < h->nwrites; i++) {
		used[i] = check_returned(d, m, "a Write chunk", &call->writes[i], &h->writes[i],
					 m->call->written[i]);
		if (i && used[i])
			broken(d, m->frame, "write-chunk-length: %" PRIu64 " in the second, xid=0x%x",
			       used[i], h->xid);
	}
	if (h->has_reply)
		reply = check_returned(d, m, "the Reply chunk", &call->reply, &h->reply,
				       m->call->written[RR_WRITE_CHUNKS_MAX]);
	if (h->proc == RR_MSG && reply)
		broken(d, m->frame, "reply-chunk: %" PRIu64 " bytes beside an RDMA_MSG, xid=0x%x",
		       reply, h->xid);
	if (h->proc == RR_NOMSG && (!reply || reply % 4))
		broken(d, m->frame, "reply-chunk: a long reply of %" PRIu64 " bytes, xid=0x%x", reply,
		       h->xid);
	check_result(d, m, h->proc == RR_MSG ? m->len - m->hdr_bytes : reply, used[0]);
}

static bool has_handle(const struct rr_segment *s, bool last, bool alone, uint32_t handle)
{
	return s->handle == handle && (alone || !last || s->length > PAD_MAX);
}

/* Does the call offer this handle, except for a pad? */
static bool offers(const struct rr_hdr *h, uint32_t handle)
{
	for (uint32_t i = 0; i < h->nreads; i++) {
		if (h->reads[i].seg.handle == handle)
			return true;
	}
	for (uint32_t i = 0; i <= h->nwrites; i++) {
		const struct rr_chunk *c = i < h->nwrites ? &h->writes[i] : &h->reply;

		for (uint32_t k = 0; k < c->nsegs; k++) {
			if (has_handle(&c->segs[k], k == c->nsegs - 1, c->nsegs == 1, handle))
				return true;
		}
	}
	return false;
}

static void check_invalidation(struct dump *d, const struct dump_msg *m)
{
	const struct dump_conn *c = m->conn;

	if (!m->inv)
		return;
	if (c->has_cm && !c->end[c->client].priv.remote_inv)
		broken(d, m->frame, "invalidate: 0x%x, and the client has not set R, xid=0x%x",
		       m->inv_rkey, m->hdr.xid);
	if (m->hdr.proc == RR_ERROR)
		broken(d, m->frame, "invalidate: 0x%x with an RDMA_ERROR, xid=0x%x", m->inv_rkey,
		       m->hdr.xid);
	if (m->call && !offers(&m->call->hdr, m->inv_rkey))
		broken(d, m->frame, "invalidate: 0x%x is no handle of this call, xid=0x%x",
		       m->inv_rkey, m->hdr.xid);
}

/* Checks a long call after all of it has been read, like other calls. */
static void check_long_call(struct dump *d, const struct dump_msg *m)
{
	const struct dump_call *call = m->call;
	struct rr_read_info info;

	if (call->hdr.proc != RR_NOMSG || !call->rpc.known ||
	    rr_chunk_check_reads(&call->hdr, 0, RR_CALL_BYTES_MAX, &info))
		return;
	if (call->rpc.xid != call->hdr.xid)
		broken(d, m->frame, "xid: 0x%x in the header, 0x%x in the long call", call->hdr.xid,
		       call->rpc.xid);
	check_item(d, m->frame, &call->hdr, &call->rpc, &info, info.pzrc_bytes);
}

/* A server that reports success must have read the arguments. */
static void check_was_read(struct dump *d, const struct dump_msg *m)
{
	const struct rr_hdr *call = &m->call->hdr;
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < call->nreads; i++)
		bytes += call->reads[i].seg.length;
	if (m->conn->whole && m->rpc.known && !m->rpc.denied && m->rpc.accept == RR_SUCCESS &&
	    m->rpc.has_status && m->rpc.status == NFS3_OK && m->call->read_bytes + 3 < bytes)
		broken(d, m->frame, "read: %" PRIu64 " of %" PRIu64 " bytes, xid=0x%x",
		       m->call->read_bytes, bytes, m->hdr.xid);
}

/** dump_check_reply - checks a reply before its call is removed */
void dump_check_reply(struct dump *d, const struct dump_msg *m)
{
	struct dump_conn *c = m->conn;

	if (m->from == c->client)
		return; /* as for calls */
	if (check_message(d, m)) {
		if (m->hdr.nreads)
			broken(d, m->frame, "read-list: in a reply, xid=0x%x", m->hdr.xid);
		if (!m->call && c->has_cm && c->whole && !c->over)
			broken(d, m->frame, "unasked: xid=0x%x is not outstanding", m->hdr.xid);
		check_invalidation(d, m);
		if (m->call && m->hdr.proc != RR_ERROR) {
			check_long_call(d, m);
			check_chunks(d, m);
			check_was_read(d, m);
		}
	}
	if (m->call)
		account(c, m->hdr.credits);
}

/* ---- transfers and the rest ------------------------------------------------------------------------------ */

/** dump_check_transfer - only servers start transfers, and only with offered memory */
void dump_check_transfer(struct dump *d, const struct dump_transfer *t)
{
	const struct dump_conn *c = t->conn;
	const char *what = t->what == DUMP_READ ? "Read" : "Write";

	if (t->from == c->client)
		broken(d, t->frame, "exposure: an RDMA %s of the server's memory, rkey=0x%x", what,
		       t->rkey);
	else if (!t->call && c->has_cm && c->whole && !c->over)
		broken(d, t->frame, "offer: an RDMA %s of %u bytes that no call offers, rkey=0x%x",
		       what, t->len, t->rkey);
}

/** dump_check_cm - the reading side states how many Reads it sends at once, the other side how many it accepts */
void dump_check_cm(struct dump *d, const struct dump_cm *cm)
{
	const struct dump_end *e;

	if (!cm->conn)
		return;
	e = cm->conn->end;
	if (cm->kind == DUMP_CM_REQ && !e[DUMP_DIALLED].reads_served)
		broken(d, cm->frame, "responder-resources: 0 of a client");
	if (cm->kind == DUMP_CM_REP && e[DUMP_LISTENED].reads_asked > e[DUMP_DIALLED].reads_served)
		broken(d, cm->frame, "initiator-depth: %u of a server, where the client allows %u",
		       e[DUMP_LISTENED].reads_asked, e[DUMP_DIALLED].reads_served);
}

/** dump_check_nak - no receive was posted: one side's credit accounting is wrong */
void dump_check_nak(struct dump *d, const struct dump_frame *f, uint8_t syndrome)
{
	if ((syndrome >> 5 & 3) == 1)
		broken(d, f, "receive: none was posted");
}

/** dump_check_gap - reports missing packets as a violation, because they cannot be checked */
void dump_check_gap(struct dump *d, const struct dump_frame *f, uint32_t packets)
{
	broken(d, f, "capture: %u packets are missing", packets);
}
