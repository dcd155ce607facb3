/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * srv_parts.c - writes results that are encoded already to the chunks of a call
 *
 * Operation:  The results are pieces of memory (struct rr_results). Their payload is written to the Write chunk, if
 *             there is one. Then, for a long reply, RPC header and all other pieces are written to the Reply chunk.
 *
 *             Own memory of the service (srv_mem.c) is the source of RDMA Writes. Other memory, small pieces and the
 *             header are copied into one buffer of the pool, which is used again when its Writes have completed. Writes
 *             are posted in steps of limited length: other connections of the engine get turns between the steps.
 *             The last Writes are posted in one chain with the reply.
 * Memory:     The copy buffer is rr->reply_buf. RC ordering: when the last Write of a step has completed, all have.
 * Threads:    The connection's engine.
 * Errors:     -ENOBUFS: no buffer is free; the request waits and calls again. -ENOMEM: the connection ends.
 */
#include <errno.h>
#include <string.h>

#include "srv_rdma.h"

#define COPY_MAX ((size_t)1 << 20) /* the buffer */
#define STEP_BYTES ((size_t)4 << 20)
#define STEP_WRITES 4u
#define DIRECT_MIN ((size_t)4096) /* shorter pieces of own memory are copied together with their neighbours */

/* A piece of what is written to a chunk, in the order of writing. */
struct source {
	bool head;         /* the RPC header, which is built in the copy buffer */
	const uint8_t *mem;
	size_t len;
};

/* A Write that is not posted yet: it may grow, or be the last of the step. */
struct pending {
	const struct rr_chunk *chunk;
	uint32_t to, len;
	uint8_t *mem;
	const struct rpcrdma_buf *buf; /* contains it */
};

static const uint8_t pad_bytes[4];

static const struct rr_chunk *chunk_of(const struct rr_rreq *rr)
{
	return rr->out.message ? &rr->hdr.reply : &rr->hdr.writes[0];
}

static bool is_payload(const struct rr_results *x, unsigned entry)
{
	return entry >= x->first && entry < x->first + x->n;
}

/* Finds source @i: of the payload, its entries; of the message, the header, then all entries that are not placed, with
 * the pad behind the payload. Return: false: there are no more */
static bool find_source(const struct rr_rreq *rr, unsigned i, struct source *ret)
{
	const struct rr_results *x = &rr->base.results;
	unsigned end = x->first + x->n, entry;

	if (!rr->out.message) {
		entry = x->first + i;
		if (entry >= end)
			return false;
	} else if (!i) {
		*ret = (struct source){ .head = true, .len = rr_reply_rpc_bytes(&rr->base) };
		return true;
	} else if (i == end + 1) {
		*ret = (struct source){ .mem = pad_bytes,
					.len = rr->out.placed ? 0 : round_up4((size_t)x->payload_bytes) - x->payload_bytes };
		return true;
	} else {
		entry = i <= end ? i - 1 : i - 2;
		if (entry >= x->cnt)
			return false;
	}
	*ret = (struct source){ .mem = x->iov[entry].iov_base, .len = x->iov[entry].iov_len };
	if (rr->out.message && rr->out.placed && is_payload(x, entry))
		ret->len = 0;
	return true;
}

/* Can a source be written without a copy? Then *ret contains it. */
static bool is_direct(struct rr_rreq *rr, const struct source *src, const struct rpcrdma_buf **ret)
{
	struct rpcrdma_xfer x = { .mem = (void *)(uintptr_t)src->mem, .len = (uint32_t)src->len };

	if (!src->mem || src->len < DIRECT_MIN || rr_req_use_mem(&rr->base, &x, false))
		return false;
	*ret = x.buf;
	return true;
}

/* Bytes that are copied from the cursor on, as far as one buffer holds them. */
static size_t copy_bytes(struct rr_rreq *rr)
{
	size_t max = MIN(COPY_MAX, rr_conn_buf_max(rr->base.pub.conn, RR_ZONE_REPLIES)), sum = 0;
	const struct rpcrdma_buf *buf;
	struct source src;

	for (unsigned i = rr->out.source; sum < max && find_source(rr, i, &src); i++)
		if (!is_direct(rr, &src, &buf))
			sum += src.len;
	if (!rr->out.message && rr->out.both) /* the message comes after the payload */
		sum += rr_reply_rpc_bytes(&rr->base) + rr->base.results.bytes;
	return MIN(sum, max);
}

static int flush(struct rr_rreq *rr, struct pending *p, struct rpcrdma_xfer *piece)
{
	uint32_t len = p->len;

	p->len = 0;
	return len ? rr_srv_write(rr, p->chunk, p->to, p->mem, len, p->buf, piece) : 0;
}

/* Adds @len bytes at @mem, in @buf, to the Writes. */
static int add(struct rr_rreq *rr, struct pending *p, uint8_t *mem, size_t len, const struct rpcrdma_buf *buf)
{
	const struct rr_chunk *chunk = chunk_of(rr);
	int rc = 0;

	if (p->len && p->chunk == chunk && p->buf == buf && p->mem + p->len == mem) {
		p->len += (uint32_t)len;
	} else {
		rr->out.writes += p->len > 0;
		rc = flush(rr, p, NULL);
		*p = (struct pending){ .chunk = chunk, .to = rr->out.to, .len = (uint32_t)len, .mem = mem, .buf = buf };
	}
	rr->out.at += len;
	rr->out.to += (uint32_t)len;
	rr->out.step += len;
	return rc;
}

/* Copies as much of a source as the buffer holds. Return: 0; -ENOSPC: nothing; -ENOBUFS and others */
static int copy(struct rr_rreq *rr, struct pending *p, const struct source *src)
{
	size_t left = src->len - rr->out.at, len;
	uint8_t *to;
	int rc;

	if (!rr->reply_buf) {
		rc = rr_conn_buf_get(rr->base.pub.conn, RR_ZONE_REPLIES, copy_bytes(rr), &rr->reply_buf);
		if (rc)
			return rc;
	}
	len = MIN(left, MIN(rr->reply_buf->bytes, COPY_MAX) - rr->out.filled);
	if (!len || (src->head && len < left))
		return -ENOSPC;
	to = (uint8_t *)rr->reply_buf->addr + rr->out.filled;
	if (src->head) {
		rr_reply_put_rpc(&rr->base, to, len);
	} else {
		memcpy(to, src->mem + rr->out.at, len);
		rr_count(rr->base.pub.engine, bytes_copied, len);
	}
	rr->out.filled += len;
	return add(rr, p, to, len, rr->reply_buf);
}

static void on_step(struct rpcrdma_xfer *x, int err)
{
	struct rr_rreq *rr = rr_rreq_of(container_of(x->req, struct rr_req, pub));

	rr->out.filled = 0;
	rr_srv_resume_reply(rr, err);
}

/* Finds the next source with bytes left; moves on to the message behind the payload. Return: false: all is written */
static bool next_source(struct rr_rreq *rr, struct source *src)
{
	struct rr_out *o = &rr->out;

	for (;;) {
		if (!find_source(rr, o->source, src)) {
			if (o->message || !o->both)
				return false;
			o->message = true;
			o->source = 0;
			o->at = 0;
			o->to = 0;
		} else if (o->at < src->len) {
			return true;
		} else {
			o->source++;
			o->at = 0;
		}
	}
}

void rr_srv_parts_begin(struct rr_rreq *rr, bool placed, bool message)
{
	rr->out = (struct rr_out){ .begun = true, .placed = placed, .both = placed && message, .message = !placed };
}

int rr_srv_parts_write(struct rr_rreq *rr)
{
	struct pending p = { .len = 0 };
	const struct rpcrdma_buf *buf;
	struct source src;
	bool more;
	int rc = 0;

	rr->out.step = 0;
	rr->out.writes = 0;
	while ((more = next_source(rr, &src)) && !rc && rr->out.step < STEP_BYTES && rr->out.writes < STEP_WRITES) {
		size_t left = src.len - rr->out.at;

		if (is_direct(rr, &src, &buf))
			rc = add(rr, &p, (uint8_t *)(uintptr_t)src.mem + rr->out.at, MIN(left, STEP_BYTES - rr->out.step), buf);
		else
			rc = copy(rr, &p, &src);
	}
	if (rc == -ENOSPC || (!rc && more)) {
		rr->out.piece = (struct rpcrdma_xfer){ .done = on_step, .req = &rr->base.pub };
		rc = flush(rr, &p, &rr->out.piece);
		return rc ? rc : -EINPROGRESS;
	}
	if (!rc || rc == -ENOBUFS) {
		int err = flush(rr, &p, NULL);

		rc = err ? err : rc;
	}
	return rc;
}
