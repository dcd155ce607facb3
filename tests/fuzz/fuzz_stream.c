/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fuzz_stream.c - libFuzzer harness: the XDR stream, decoding a message with a payload
 *
 * Operation:  Four bytes choose how the payload is missing, the next eight two numbers for that,
 *             and the rest is the message. A codec with a name, a list of words, a payload and a
 *             tail decodes it; where it succeeds it is encoded again and must have the same size.
 * Memory:     Lists decode into arrays of our own, as a server's do: nothing to free.
 * Errors:     abort() on a broken promise.
 */
#include <stdlib.h>
#include <string.h>

#include "base/wire.h"
#include "stream.h"

#define PAYLOAD_MAX 65536u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool promise)
{
	if (!promise)
		abort();
}

struct message {
	char name[256];
	u_int name_len;
	uint32_t words[16];
	u_int nwords;
	bool_t has_tail;
	uint64_t tail;
	struct rpcrdma_payload data;
};

/* Runs of words go through x_inline, as in rpcgen's code. */
static bool_t xdr_words(XDR *x, struct message *m)
{
	int32_t *at;

	if (!xdr_u_int(x, &m->nwords) || m->nwords > 16)
		return FALSE;
	at = XDR_INLINE(x, m->nwords * 4);
	for (u_int i = 0; i < m->nwords; i++) {
		if (!at) {
			if (!xdr_uint32_t(x, &m->words[i]))
				return FALSE;
		} else if (x->x_op == XDR_ENCODE) {
			IXDR_PUT_U_INT32(at, m->words[i]);
		} else {
			m->words[i] = IXDR_GET_U_INT32(at);
		}
	}
	return TRUE;
}

static bool_t xdr_message(XDR *x, struct message *m)
{
	char *name = m->name;

	return xdr_bytes(x, &name, &m->name_len, sizeof(m->name)) && xdr_bool(x, &m->has_tail) &&
	       xdr_words(x, m) && rpcrdma_xdr_payload(x, &m->data, PAYLOAD_MAX) &&
	       (!m->has_tail || xdr_uint64_t(x, &m->tail));
}

static void use(struct rr_stream *s, struct message *m)
{
	static uint8_t buf[1024];
	struct rr_stream out;
	size_t payload = round_up4(m->data.length);

	must(s->has_payload && m->data.length <= PAYLOAD_MAX);
	must(s->pos <= s->cap && s->payload_here <= m->data.length);
	must(!s->short_read && !s->mismatch && !s->overflow);
	must(s->payload_pos + s->payload_here <= s->cap);
	if (m->data.iovcnt) {
		must(m->data.iovcnt == 1 && m->data.iov == &m->data.here);
		must(m->data.here.iov_base == s->buf + s->payload_pos);
		must(s->payload_here == m->data.length);
	}
	if (s->chunk_used)
		must(s->away == RR_AWAY_CHUNK && !s->payload_here && !m->data.iovcnt);

	rr_stream_encode(&out, buf, sizeof(buf));
	must(xdr_message(&out.xdr, m));
	must(out.payload_pos == s->payload_pos);
	must(rr_stream_bytes(&out) == rr_stream_len(&out) + payload);
	if (s->away == RR_AWAY_NONE)
		must(rr_stream_bytes(&out) == s->pos);
	if (s->chunk_used)
		must(rr_stream_len(&out) == s->pos);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rr_stream s;
	struct message m = { .nwords = 0 };
	uint32_t how, a, b;
	uint8_t *buf;
	size_t len;

	if (size < 12)
		return 0;
	how = get_be32(data);
	a = get_be32(data + 4);
	b = get_be32(data + 8);
	len = size - 12;
	buf = malloc(len ? len : 1); /* exactly as long, and writable as a receive buffer is */
	must(buf != NULL);
	memcpy(buf, data + 12, len);
	switch (how % 4) {
	case 0:
		rr_stream_decode(&s, buf, len);
		break;
	case 1:
		rr_stream_decode_chunk(&s, buf, len, a, b);
		break;
	case 2:
		rr_stream_decode_chunk(&s, buf, len, RR_STREAM_ANY_POSITION, b);
		break;
	default:
		rr_stream_decode_tail(&s, buf, len, len + a);
		break;
	}
	if (xdr_message(&s.xdr, &m)) {
		must(!rr_stream_decode_done(&s) == (s.away != RR_AWAY_CHUNK || s.chunk_used));
		use(&s, &m);
	}
	free(buf);
	return 0;
}
