/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * mode_fast.c - fast-write at the responder: slots for calls
 *
 * Operation:  The suffix of the private data announces the slots, one per call that may use this way at
 *             once. One key covers all of them, valid from our first message on (mode_window.c). A
 *             slot is a page followed by room for payload. A call arrives by one RDMA Write with
 *             immediate. Its head ends with the page, so the payload begins directly behind it:
 *
 *                 |      page      |  payload  ... |      immediate: slot << 16 | bytes of the head
 *                         ^head^
 *
 *             The immediate takes a receive with an empty buffer. The head is copied into that buffer
 *             and parsed there, where the peer cannot change it. Its Read chunk names the slot. Then
 *             it is a normal call with its payload already here. The reply returns the slot to the
 *             peer.
 * Memory:     An area that the peer may write to, all of it and at any time. Changes to a slot in use
 *             affect only the file that the peer is writing.
 * Threads:    The connection's engine.
 * Errors:     An invalid slot, a slot in use, or invalid lengths: the connection ends.
 */
#include <errno.h>
#include <string.h>

#include "base/wire.h"
#include "mode_srv.h"

static uint8_t *slot_payload(const struct rr_mode *m, unsigned slot)
{
	return (uint8_t *)m->inbox.x.mem + slot * rr_slot_stride(m->slot_bytes) + RR_SLOT_HEAD;
}

int rr_mode_fast_init(struct rr_mode *m, const struct rr_suffix *want, struct rr_suffix *give)
{
	uint32_t bytes = MIN(want->slot_bytes, RPCRDMA_FAST_WRITE_MAX);
	unsigned slots = MIN((unsigned)want->slots, RR_SLOTS_MAX);
	size_t size;
	int rc;

	slots = MIN(slots, m->conn->base.svc->attr.credits);
	if (!bytes || !slots)
		return -EINVAL;
	m->slot_bytes = (uint32_t)round_up_pow2(bytes, RR_AREA_PAGE);
	m->nslots = slots;
	size = slots * rr_slot_stride(m->slot_bytes);
	rc = rr_mode_area(m, &m->inbox, size, size, rr_mode_write_access(m));
	if (!rc)
		rc = rr_mode_key_get(m, &m->inbox, m->inbox.x.mem, size, &m->inbox_key);
	if (rc)
		return rc;
	give->slot_bytes = m->slot_bytes;
	give->slots = (uint16_t)slots;
	give->handle = m->inbox_key.key;
	give->offset = (uint64_t)(uintptr_t)m->inbox.x.mem;
	return 0;
}

bool rr_mode_fast_recv(struct rr_mode *m, struct rr_recv_ctx *rc, const struct rr_wc *wc)
{
	unsigned slot = wc->imm >> 16;
	uint32_t head = wc->imm & 0xffff;

	if (slot >= m->nslots || m->slots_busy >> slot & 1)
		return false;
	if (head < RR_HDR_MIN || head > RR_SLOT_HEAD || head > m->conn->ep->recv_bytes ||
	    wc->byte_len <= head || wc->byte_len - head > m->slot_bytes)
		return false;
	memcpy(rc->buf, slot_payload(m, slot) - head, head);
	rc->len = head;
	if (get_be32(rc->buf + 12) != RR_HERE)
		return false;
	put_be32(rc->buf + 12, RR_MSG);
	m->arrived = RR_ARRIVED_SLOT;
	m->arrived_slot = slot;
	m->arrived_bytes = wc->byte_len - head;
	return true;
}

bool rr_mode_fast_claim(struct rr_mode *m, struct rr_rreq *rr, const struct rr_segment *seg)
{
	uint8_t *mem = slot_payload(m, m->arrived_slot);

	if (seg->handle != m->inbox_key.key || seg->offset != (uint64_t)(uintptr_t)mem ||
	    seg->length != m->arrived_bytes)
		return false;
	rr->mode.payload = mem;
	m->slots_busy |= UINT64_C(1) << m->arrived_slot;
	rr_count(m->conn->base.engine, fast_writes, 1);
	return true;
}

void rr_mode_fast_release(struct rr_mode *m, const uint8_t *payload)
{
	size_t off = (size_t)(payload - (uint8_t *)m->inbox.x.mem);

	m->slots_busy &= ~(UINT64_C(1) << off / rr_slot_stride(m->slot_bytes));
}
