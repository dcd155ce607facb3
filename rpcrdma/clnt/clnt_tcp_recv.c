/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * clnt_tcp_recv.c - receives replies: finds their calls, reads payload directly into the sink
 *
 * Operation:  rr_tclnt_recv() reads into a small buffer and extracts records from it:
 *
 *                 MARK --> HEAD --(whole record there)--> done
 *                   |        |----(payload extends beyond)--> PAYLOAD --> done
 *                   |        |----(no call)--> SKIP
 *                   |        '----(longer than its call allows)--> done, SKIP
 *                   |        '----(its call has a room)--> ROOM --> done
 *                   '--(more fragments follow)--> GATHER --> as HEAD with the whole record
 *                                                      '---> ROOM, SKIP fragment by fragment, as soon as it is
 *                                                            known that no call of this kind needs the whole
 *
 *             As soon as the results can be decoded up to the payload, they are. The rest of the payload is
 *             read from the socket into the caller's memory, and data after it goes into the buffer by the same
 *             system call. So the payload must be the last item of results that are longer than the buffer.
 * Memory:     The buffer grows to the longest results without payload that one of our calls requested, never to
 *             the size claimed by a record mark: for a gathered record it grows with the received data. A reply
 *             that is longer than its call allows is decoded as far as the call allows, and the rest is discarded.
 * Threads:    The engine's. Other calls' done() may change everything but this state, which is therefore
 *             complete before rr_clnt_replied(). After that only `ending` is read.
 * Errors:     TCP does not tell the server how much room a call has. So a reply that is longer fails its call with
 *             -EMSGSIZE, if what was decoded explains its length (judge()). A malformed one, one that it does not
 *             explain, or one of more than RECORD_MAX fails the call with -EPROTO and ends the connection. So do
 *             impossible record marks.
 * See:        RFC 5531 section 11; stream.h (RR_AWAY_TAIL).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "base/checked.h"
#include "clnt_tcp.h"

#define BUF_BYTES 4096u
#define SINK_IOV 60
/* Longest RPC reply header: verifier of 400 bytes, mismatch information. */
#define REPLY_HDR_MAX (RR_RPC_REPLY_HDR_BYTES + RR_AUTH_BYTES_MAX + 8u)
/* Longest record that is gathered, or skipped because its call had no room for it. */
#define RECORD_MAX (RPCRDMA_BUF_MAX + 65536u)
/* Limits the reads per event, so that other work of the engine is not delayed. */
#define READS_PER_EVENT 32

static size_t unread(const struct rr_tclnt *t)
{
	return t->end - t->at;
}

static void broken(struct rr_tclnt *t, const char *why)
{
	rr_tclnt_fail(t, -EPROTO, "%s", why);
}

void rr_tclnt_recv_reset(struct rr_tclnt *t)
{
	t->rx = RR_RX_MARK;
	t->at = t->end = 0;
	t->record_bytes = 0;
	t->rx_call = NULL;
	t->skip_stray = false;
	t->frag_left = 0;
}

/* Makes room for @bytes from t->at on. */
static bool make_room(struct rr_tclnt *t, size_t bytes)
{
	uint8_t *bigger;

	if (t->at) {
		memmove(t->buf, t->buf + t->at, unread(t));
		t->end -= t->at;
		t->at = 0;
	}
	bytes = MAX(bytes, (size_t)BUF_BYTES);
	if (bytes <= t->cap)
		return true;
	bigger = realloc(t->buf, bytes);
	if (!bigger) {
		rr_tclnt_fail(t, -ENOMEM, "no memory for a reply");
		return false;
	}
	t->buf = bigger;
	t->cap = bytes;
	return true;
}

/* ---- the end of a record ------------------------------------------------------------------ */

static void skip(struct rr_tclnt *t, size_t bytes)
{
	t->rx = bytes ? RR_RX_SKIP : RR_RX_MARK;
	t->skip_left = bytes;
	t->frag_last = true;
	t->record_bytes = 0;
}

/* Skips the rest of a record, which may have more fragments. */
static void skip_record(struct rr_tclnt *t)
{
	bool is_last = t->frag_last;

	skip(t, t->frag_left);
	t->frag_last = is_last;
	if (!is_last)
		t->rx = RR_RX_SKIP;
}

static void finish(struct rr_tclnt *t, struct rr_call *call, int err, const char *why)
{
	struct rr_tclnt_out *out = call->xprt;

	if (!err) {
		rr_count(t->engine, bytes_in, call->user->payload_bytes);
		rr_count(t->engine, bytes_copied, call->user->payload_bytes + call->user->results_bytes);
	}
	call->xprt = NULL;
	/* a reply before the call was completely written: the rest of the record cannot be written any more */
	if (!rr_tclnt_out_end(t, out))
		broken(t, "reply to a call that was not written yet");
	if (err == -EPROTO)
		broken(t, why);
	rr_clnt_replied(t->clnt, call, err, why, 0);
}

void rr_tclnt_recv_forget(struct rr_tclnt *t, const struct rr_call *call)
{
	if (t->rx_call != call)
		return;
	t->rx_call = NULL;
	t->skip_stray = true;
	t->skip_xid = call->xid;
	if (t->rx == RR_RX_ROOM)
		skip_record(t);
	else
		skip(t, t->payload_left + t->pad_left);
}

/* ---- results that are not decoded --------------------------------------------------------- */

static void decode_mark(struct rr_tclnt *t, const uint8_t *at)
{
	uint32_t mark = get_be32(at);

	t->frag_left = mark & ~RR_MARK_LAST;
	t->frag_last = (mark & RR_MARK_LAST) != 0;
}

/* Takes a mark: the next fragment of a record. Return: false: it is not there yet */
static bool next_fragment(struct rr_tclnt *t)
{
	if (unread(t) < RR_MARK_BYTES)
		return false;
	decode_mark(t, t->buf + t->at);
	t->at += RR_MARK_BYTES;
	return true;
}

/* Is the call's room too small for this fragment? Then fails the call, and skips the rest of the record. */
static bool overflows(struct rr_tclnt *t, struct rr_call *call)
{
	if (t->sink_at + t->frag_left <= call->user->reply_max)
		return false;
	t->rx_call = NULL;
	skip_record(t);
	finish(t, call, -EMSGSIZE, "the results are longer than reply_max");
	return true;
}

/* Begins a reply to a call with a room, of which [at, at + have) is in the buffer and frag_left bytes follow in this
 * fragment. Return: false: its header is not complete */
static bool start_room(struct rr_tclnt *t, struct rr_call *call, size_t have)
{
	const uint8_t *msg = t->buf + t->at;
	const char *why;
	size_t head;
	int rc = rr_clnt_open(call, msg, have, &head, &why);

	if (rc == -EPROTO && have < REPLY_HDR_MAX && (t->frag_left || !t->frag_last))
		return false;
	t->at += have;
	if (rc) {
		skip_record(t);
		finish(t, call, rc, why);
		return true;
	}
	t->sink_at = have - head;
	if (overflows(t, call))
		return true;
	memcpy(call->room->mem, msg + head, have - head);
	t->record_bytes = 0;
	t->rx_call = call;
	t->rx = RR_RX_ROOM;
	return true;
}

/* Most bytes bypass the buffer. Return: false: more has to be read */
static bool take_room(struct rr_tclnt *t)
{
	struct rr_call *call = t->rx_call;
	size_t n = MIN(unread(t), t->frag_left);

	memcpy((uint8_t *)call->room->mem + t->sink_at, t->buf + t->at, n);
	t->at += n;
	t->sink_at += n;
	t->frag_left -= n;
	if (t->frag_left)
		return false;
	if (!t->frag_last) {
		if (!next_fragment(t))
			return false;
		(void)overflows(t, call);
		return true;
	}
	t->rx_call = NULL;
	skip(t, 0);
	call->user->results = call->room->mem;
	call->user->results_bytes = (size_t)t->sink_at;
	finish(t, call, 0, "success");
	return true;
}

/* ---- the beginning of a record ------------------------------------------------------------ */

/* Longest reply that @call allows, with some tolerance. */
static uint64_t reply_limit(const struct rr_call *call)
{
	return (uint64_t)REPLY_HDR_MAX + call->user->reply_max + rr_clnt_sink_bytes(call) + 64;
}

/* Returns the bytes of the record required to decode it up to its payload; 0: it is malformed. @have of @total
 * bytes are present. */
static size_t head_needs(const struct rr_tclnt *t, const struct rr_call *call, size_t have,
			 size_t total)
{
	struct rr_rpc_reply head;
	struct wire_get g;

	wire_get_init(&g, t->buf + t->at, have);
	if (rr_rpc_get_reply(&g, &head))
		return have < REPLY_HDR_MAX ? MIN(total, (size_t)REPLY_HDR_MAX) : 0;
	if (rr_rpc_errno(&head))
		return total <= REPLY_HDR_MAX ? total : 0;
	return MIN(total, have - wire_get_left(&g) + call->user->reply_max);
}

/* Corrects the result @rc of decoding only the first part of a record of @total bytes. The caller allowed too little
 * if a payload that ends with the record exceeds the sink (rr_clnt_decode()), or if results reach beyond reply_max.
 * The server is wrong if a payload reaches beyond the record, or results end before it. */
static int judge(const struct rr_call *call, const struct rr_stream *s, size_t total, int rc, const char **why)
{
	bool is_long = total > reply_limit(call);

	if (rc == -EBADMSG && s->past_end && is_long) {
		*why = "payload longer than its record";
		return -EPROTO;
	}
	if (!rc && is_long && call->user->decode) {
		*why = "reply longer than its results";
		return -EPROTO;
	}
	if ((!rc && is_long) || (rc == -EBADMSG && s->short_read && !s->past_end)) {
		*why = "the results are longer than reply_max";
		return -EMSGSIZE;
	}
	return rc;
}

/* Decodes a reply; enough of it, @have bytes, is in the buffer. */
static void take_reply(struct rr_tclnt *t, struct rr_call *call, size_t have, size_t total)
{
	uint8_t *msg = t->buf + t->at;
	const char *why;
	struct rr_stream s;
	int rc;

	if (have == total)
		rr_stream_decode(&s, msg, have);
	else
		rr_stream_decode_tail(&s, msg, have, total);
	rc = rr_clnt_decode(call, &s, &why);
	if (have < total)
		rc = judge(call, &s, total, rc, &why);
	t->at += have;
	if (rc) {
		skip(t, total - have);
		finish(t, call, rc, why);
		return;
	}
	if (s.has_payload)
		rr_clnt_sink_put(call, 0, msg + s.payload_pos, s.payload_here);
	t->sink_at = s.payload_here;
	t->payload_left = s.has_payload ? s.payload.length - s.payload_here : 0;
	if (t->payload_left) {
		t->pad_left = total - have - t->payload_left;
		t->rx_call = call;
		t->rx = RR_RX_PAYLOAD;
		return;
	}
	skip(t, total - have);
	finish(t, call, 0, why);
}

/* Handles the start of the record of a reply to @call, of which @have bytes are there. Return: as take_head() */
static bool take_head_of(struct rr_tclnt *t, struct rr_call *call, size_t have)
{
	size_t total = t->record_bytes, need = total;
	bool is_long = total > reply_limit(call);

	if (call->room) {
		t->need = MIN(total, (size_t)REPLY_HDR_MAX);
		return start_room(t, call, have);
	}
	if (is_long && total > RECORD_MAX) {
		finish(t, call, -EPROTO, "reply longer than any that is accepted");
		return true;
	}
	/* what a long one results in must not depend on how much of it has arrived */
	if (have < total || is_long)
		need = head_needs(t, call, have, total);
	if (!need) {
		finish(t, call, -EPROTO, "malformed reply header");
		return true;
	}
	if (have < need) {
		t->need = need;
		return false;
	}
	take_reply(t, call, is_long ? need : have, total);
	return true;
}

/* Returns the call that the record is a reply to. NULL: none; then skips the record, whose first @have bytes are in
 * the buffer and whose fragment has frag_left bytes more. */
static struct rr_call *call_of_record(struct rr_tclnt *t, size_t have)
{
	const uint8_t *msg = t->buf + t->at;
	uint32_t xid = get_be32(msg);
	struct rr_call *call = get_be32(msg + 4) == RR_RPC_REPLY ? rr_clnt_find(t->clnt, xid) : NULL;

	if (call)
		return call;
	if (rr_clnt_find_late(t->clnt, xid)) {
		broken(t, "reply to a call that was not written yet");
		return NULL;
	}
	t->at += have;
	skip_record(t);
	rr_clnt_stray(t->clnt, xid, 0);
	return NULL;
}

/* Handles the start of a record. Return: false: more of it is needed. */
static bool take_head(struct rr_tclnt *t)
{
	size_t total = t->record_bytes, have = MIN(unread(t), total);
	struct rr_call *call;

	if (have < MIN(total, t->need))
		return false;
	t->frag_left = total - have;
	t->frag_last = true;
	call = call_of_record(t, have);
	return call ? take_head_of(t, call, have) : true;
}

/* @need: bytes of the record, which is one fragment now, that are taken together at first. Return: false: broken */
static bool start_head(struct rr_tclnt *t, size_t bytes, size_t need)
{
	if (bytes < RR_RPC_REPLY_HDR_BYTES - 4) {
		broken(t, "record too short for a reply");
		return false;
	}
	t->rx = RR_RX_HEAD;
	t->record_bytes = bytes;
	t->need = need;
	return true;
}

static bool take_mark(struct rr_tclnt *t)
{
	if (!next_fragment(t))
		return false;
	if (t->frag_last)
		return start_head(t, t->frag_left, RR_RPC_REPLY_HDR_BYTES);
	t->rx = RR_RX_GATHER;
	t->record_bytes = 0;
	return true;
}

/* An incomplete record of several fragments that need not be gathered: its reply goes to a room, or to no call. */
static bool take_long(struct rr_tclnt *t)
{
	struct rr_call *call;

	if (t->record_bytes < RR_RPC_REPLY_HDR_BYTES)
		return false;
	call = call_of_record(t, t->record_bytes);
	return !call || (call->room && start_room(t, call, t->record_bytes));
}

/* Removes marks as they arrive, so that [at, at + record_bytes) is message and the rest of the buffer is data
 * after it. Return: false: more is needed. */
static bool take_fragment(struct rr_tclnt *t)
{
	size_t rest = unread(t) - t->record_bytes, n = MIN(rest, t->frag_left);
	uint8_t *at;

	t->record_bytes += n;
	t->frag_left -= n;
	rest -= n;
	if ((t->frag_left || !t->frag_last) && take_long(t))
		return true;
	if (t->record_bytes > RECORD_MAX) {
		broken(t, "record too long");
		return false;
	}
	if (t->frag_left)
		return false;
	if (t->frag_last)
		return start_head(t, t->record_bytes, t->record_bytes);
	if (rest < RR_MARK_BYTES)
		return false;
	at = t->buf + t->at + t->record_bytes;
	decode_mark(t, at);
	memmove(at, at + RR_MARK_BYTES, rest - RR_MARK_BYTES);
	t->end -= RR_MARK_BYTES;
	return true;
}

static bool take_skip(struct rr_tclnt *t)
{
	size_t n = MIN(unread(t), t->skip_left);

	t->at += n;
	t->skip_left -= n;
	if (t->skip_left)
		return false;
	if (!t->frag_last) {
		if (!next_fragment(t))
			return false;
		t->skip_left = t->frag_left;
		return true;
	}
	t->rx = RR_RX_MARK;
	return true;
}

/* The payload's bytes bypassed the buffer; its pad did not. */
static bool take_pad(struct rr_tclnt *t)
{
	struct rr_call *call = t->rx_call;

	if (t->payload_left || unread(t) < t->pad_left)
		return false;
	t->at += t->pad_left;
	t->rx_call = NULL;
	t->rx = RR_RX_MARK;
	finish(t, call, 0, "success");
	return true;
}

/* Processes the buffer by one step; Return: false: more has to be read first */
static bool step(struct rr_tclnt *t)
{
	switch (t->rx) {
	case RR_RX_MARK:
		if (t->skip_stray) {
			t->skip_stray = false;
			rr_clnt_stray(t->clnt, t->skip_xid, 0);
			return true;
		}
		return take_mark(t);
	case RR_RX_HEAD:
		return take_head(t);
	case RR_RX_GATHER:
		return take_fragment(t);
	case RR_RX_PAYLOAD:
		return take_pad(t);
	case RR_RX_ROOM:
		return take_room(t);
	case RR_RX_SKIP:
		return take_skip(t);
	}
	return false;
}

/* ---- reading ------------------------------------------------------------------------------ */

/* Returns iov entries for the missing payload, as far as one system call can read it. Return: entries */
static int sink_rest(const struct rr_tclnt *t, struct iovec *iov, size_t *ret_bytes)
{
	const struct rpcrdma_call *user = t->rx_call->user;
	uint64_t off = t->sink_at;
	size_t left = t->payload_left;
	int n = 0;

	for (int i = 0; left && n < SINK_IOV; i++) {
		const struct iovec *s = &user->sink[i];
		size_t len;

		if (off >= s->iov_len) {
			off -= s->iov_len;
			continue;
		}
		len = MIN(left, s->iov_len - (size_t)off);
		iov[n++] = (struct iovec){ (uint8_t *)s->iov_base + off, len };
		left -= len;
		off = 0;
	}
	*ret_bytes = t->payload_left - left;
	return n;
}

/* The same of the rest of a fragment, which goes to a room that is large enough. */
static int room_rest(const struct rr_tclnt *t, struct iovec *iov, size_t *ret_bytes)
{
	*ret_bytes = t->frag_left;
	iov[0] = (struct iovec){ (uint8_t *)t->rx_call->room->mem + t->sink_at, t->frag_left };
	return t->frag_left ? 1 : 0;
}

/* Returns the room needed in the current state. */
static size_t wanted_room(const struct rr_tclnt *t)
{
	if (t->rx == RR_RX_HEAD)
		return MIN(t->need, t->record_bytes);
	if (t->rx == RR_RX_GATHER) /* grow with the received data, not with the claimed size */
		return unread(t) >= t->cap - t->cap / 4 ? t->cap * 2 : t->cap;
	return RR_MARK_BYTES;
}

/* Return: true: data arrived */
static bool read_some(struct rr_tclnt *t)
{
	struct iovec iov[SINK_IOV + 1];
	size_t direct = 0, room, past;
	size_t *left = t->rx == RR_RX_ROOM ? &t->frag_left : &t->payload_left;
	bool is_past = t->rx == RR_RX_PAYLOAD || t->rx == RR_RX_ROOM; /* the buffer */
	ssize_t n;
	int cnt = 0;

	if (t->rx == RR_RX_PAYLOAD)
		cnt = sink_rest(t, iov, &direct);
	if (t->rx == RR_RX_ROOM)
		cnt = room_rest(t, iov, &direct);
	if (!make_room(t, wanted_room(t)))
		return false;
	room = t->cap - t->end;
	if (direct == (is_past ? *left : 0))
		iov[cnt++] = (struct iovec){ t->buf + t->end, room };
	n = readv(t->watch.fd, iov, cnt);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n < 0) {
		rr_tclnt_fail(t, -errno, "recv: %s", strerror(errno));
		return false;
	}
	if (!n) {
		rr_tclnt_fail(t, -ECONNRESET, "connection closed by the server");
		return false;
	}
	past = MIN((size_t)n, direct);
	t->sink_at += past;
	if (direct)
		*left -= past;
	t->end += (size_t)n - past;
	return true;
}

void rr_tclnt_recv(struct rr_tclnt *t)
{
	for (int i = 0; i < READS_PER_EVENT && !t->ending; i++) {
		if (!read_some(t))
			return;
		while (!t->ending && t->clnt && step(t))
			;
	}
}
