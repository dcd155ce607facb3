/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * clnt_tcp_send.c - sends a call: one record, written with gather from its memory
 *
 * Operation:  rr_tclnt_send() encodes the message without its payload after a record mark, queues it, and
 *             writes as much as the socket accepts. The rest is written when there is room. Calls follow each
 *             other without waiting for replies.
 *
 *                 mark | message up to the payload | payload pad | rest of the message
 *
 * Memory:     Payload and long ready arguments are written from the caller's memory, which may be an iov of any
 *             length. The kernel's copy is counted; there is no other copy. Buffers for messages are recycled.
 * Threads:    The engine's.
 * Errors:     A started record must be written completely: giving up a call in the middle of its payload ends
 *             the connection. A call with a room keeps its memory until the record is written.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "clnt_tcp.h"

#define HEAD_BYTES 512u
#define IOV_BATCH 64
#define READY_COPY_MAX 4096u /* longer arguments are written from where they are */

static void out_free(struct rr_tclnt_out *out)
{
	free(out->head.mem);
	free(out);
}

static struct rr_tclnt_out *out_get(struct rr_tclnt *t)
{
	struct list *node = list_pop(&t->free_outs);
	struct rr_tclnt_out *out;

	if (node)
		return list_entry(node, struct rr_tclnt_out, link);
	out = calloc(1, sizeof(*out)); /* once per concurrent call */
	if (out)
		list_init(&out->link);
	return out;
}

static void out_put(struct rr_tclnt *t, struct rr_tclnt_out *out)
{
	out->call = NULL;
	list_del(&out->link);
	list_add_head(&t->free_outs, &out->link);
}

void rr_tclnt_outs_reset(struct rr_tclnt *t)
{
	list_splice_tail(&t->free_outs, &t->queue);
	list_splice_tail(&t->free_outs, &t->sent);
}

void rr_tclnt_outs_free(struct rr_tclnt *t)
{
	rr_tclnt_outs_reset(t);
	list_for_each_safe(node, &t->free_outs)
		out_free(list_entry(node, struct rr_tclnt_out, link));
}

/* ---- writing ------------------------------------------------------------------------------ */

struct gather {
	struct iovec iov[IOV_BATCH];
	size_t skip; /* bytes at the start that are already written */
	int n;
};

static void add(struct gather *g, const void *base, size_t len)
{
	size_t skip = MIN(g->skip, len);

	g->skip -= skip;
	if (len == skip || g->n == IOV_BATCH)
		return;
	/* sendmsg() does not write to it, but iovec has no const */
	g->iov[g->n++] = (struct iovec){ (uint8_t *)(uintptr_t)base + skip, len - skip };
}

/* Adds [from, to) of the ready arguments. */
static void add_ready(struct gather *g, const struct rr_tclnt_out *out, size_t from, size_t to)
{
	size_t at = 0; /* where the entry begins */

	for (const struct iovec *iov = out->ready->iov; at < to; at += iov++->iov_len) {
		size_t start = MAX(from, at), end = MIN(to, at + iov->iov_len);

		if (start < end)
			add(g, (const uint8_t *)iov->iov_base + (start - at), end - start);
	}
}

/* Gathers the rest of a record, as far as one system call can write it. */
static void gather(const struct rr_tclnt_out *out, struct gather *g)
{
	static const uint8_t zeros[4];
	size_t left = out->payload.length;

	g->n = 0;
	g->skip = out->done;
	add(g, out->head.mem, out->split);
	if (out->ready)
		add_ready(g, out, 0, out->ready_split);
	for (int i = 0; left && g->n < IOV_BATCH; i++) {
		size_t len = MIN(out->payload.iov[i].iov_len, left);

		add(g, out->payload.iov[i].iov_base, len);
		left -= len;
	}
	if (left)
		return;
	add(g, zeros, round_up4(out->payload.length) - out->payload.length);
	if (out->ready)
		add_ready(g, out, out->ready_split, out->ready_bytes);
	add(g, out->head.mem + out->split, out->head_bytes - out->split);
}

/* Return: true: the record is completely written */
static bool write_some(struct rr_tclnt *t, struct rr_tclnt_out *out)
{
	struct gather g;
	struct msghdr msg = { .msg_iov = g.iov };
	ssize_t n;

	while (out->done < out->total) {
		gather(out, &g);
		msg.msg_iovlen = (size_t)g.n;
		n = sendmsg(t->watch.fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != EAGAIN)
			rr_tclnt_fail(t, -errno, "send: %s", strerror(errno));
		if (n < 0)
			return false;
		out->done += (size_t)n;
	}
	return true;
}

void rr_tclnt_flush(struct rr_tclnt *t)
{
	struct rr_tclnt_out *out;

	while (!t->ending && (out = list_first_entry(&t->queue, struct rr_tclnt_out, link))) {
		if (!write_some(t, out))
			break;
		if (!out->call || out->call->late) {
			struct rr_call *late = out->call;

			out_put(t, out);
			if (late)
				rr_clnt_let_go(late);
			continue;
		}
		list_del(&out->link);
		list_add_tail(&t->sent, &out->link);
	}
	if (!t->ending)
		rr_tclnt_want_out(t, !list_is_empty(&t->queue));
}

/* ---- calls -------------------------------------------------------------------------------- */

static void take_payload(struct rr_tclnt_out *out, const struct rr_stream *s)
{
	out->payload = (struct rpcrdma_payload){ 0 };
	out->split = out->head_bytes;
	if (!s->has_payload)
		return;
	out->payload = s->payload;
	if (s->payload.iov == &s->payload.here)
		out->payload.iov = &out->payload.here;
	out->split = out->ready ? out->head_bytes : RR_MARK_BYTES + s->payload_pos;
}

int rr_tclnt_send(struct rpcrdma_clnt *c, struct rr_call *call)
{
	struct rr_tclnt *t = rr_tclnt_of(c);
	struct rr_tclnt_out *out;
	struct rr_stream s;
	int rc;

	if (!t->up || t->ending)
		return -ENOTCONN;
	out = out_get(t);
	if (!out)
		return -ENOMEM;
	out->ready = call->ready_bytes > READY_COPY_MAX ? call->user->ready : NULL;
	out->ready_bytes = out->ready ? call->ready_bytes : 0;
	out->ready_split = out->ready && call->user->ready->payload_bytes ? call->user->ready->payload_at : out->ready_bytes;
	rc = rr_clnt_encode(call, &s, &out->head, HEAD_BYTES, RR_MARK_BYTES, out->ready);
	if (rc)
		goto fail;
	out->head_bytes = RR_MARK_BYTES + rr_stream_len(&s);
	s.pos += out->ready_bytes; /* they are not in its buffer */
	take_payload(out, &s);
	out->total = RR_MARK_BYTES + rr_stream_bytes(&s);
	if (out->total - RR_MARK_BYTES >= RR_MARK_LAST) {
		rc = -EMSGSIZE;
		goto fail;
	}
	put_be32(out->head.mem, RR_MARK_LAST | (uint32_t)(out->total - RR_MARK_BYTES));
	out->done = 0;
	out->call = call;
	call->xprt = out;
	rr_count(c->engine, bytes_out, out->payload.length);
	rr_count(c->engine, bytes_copied, out->payload.length + out->ready_bytes);
	list_add_tail(&t->queue, &out->link);
	if (list_first(&t->queue) == &out->link)
		rr_tclnt_flush(t);
	return 0; /* also if the socket failed just now: down follows, and retransmits it */
fail:
	out_put(t, out);
	return rc;
}

bool rr_tclnt_out_end(struct rr_tclnt *t, struct rr_tclnt_out *out)
{
	bool is_written = out->done == out->total;
	bool needs_caller = !is_written && (out->payload.length || out->ready);

	if (is_written || needs_caller)
		out_put(t, out);
	else
		out->call = NULL; /* only the client's own memory is left to write */
	return !needs_caller;
}

void rr_tclnt_outs_mark_unsent(struct rr_tclnt *t)
{
	list_for_each(node, &t->queue) {
		struct rr_tclnt_out *out = list_entry(node, struct rr_tclnt_out, link);

		if (out->call && out->call->user && !out->done)
			rr_call_unsend(out->call);
	}
}

bool rr_tclnt_cancel(struct rpcrdma_clnt *c, struct rr_call *call)
{
	struct rr_tclnt *t = rr_tclnt_of(c);
	struct rr_tclnt_out *out = call->xprt;
	bool is_written = out->done == out->total;

	call->xprt = NULL;
	rr_tclnt_recv_forget(t, call);
	if (call->room && !c->closed && out->done && !is_written && !t->ending) {
		call->late = out; /* the caller's memory is written from until rr_tclnt_flush() has written all of it */
		return false;
	}
	if (!out->done && !t->ending) {
		out_put(t, out);
		rr_call_unsend(call);
		rr_tclnt_flush(t); /* the queue may be empty now: stop watching for room */
		return true;
	}
	if (!rr_tclnt_out_end(t, out))
		rr_tclnt_fail(t, -ECONNABORTED, "a call was given up in the middle of its payload");
	return false;
}
