/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fuzz_hdr.c - libFuzzer harness: transport header, sense of its chunk lists, spans, printing
 *
 * Operation:  The input is a received message. What decodes is encoded again and must give the same
 *             bytes; what passes the checks is then used as the transport would use it.
 * Errors:     abort() on a broken promise.
 */
#include <stdlib.h>
#include <string.h>

#include "chunk.h"

#define CALL_MAX RR_CALL_BYTES_MAX

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool promise)
{
	if (!promise)
		abort();
}

static void check_spans(const struct rr_span *spans, int n, uint32_t len)
{
	uint32_t done = 0;

	must(n >= 0);
	for (int i = 0; i < n; i++) {
		must(spans[i].skip == done && spans[i].length);
		must(spans[i].offset + (spans[i].length - 1) >= spans[i].offset);
		done += spans[i].length;
	}
	must(done == len);
}

static void use_reads(const struct rr_hdr *h, size_t inline_bytes)
{
	struct rr_span spans[RR_READ_SEGS_MAX];
	struct rr_read_info info;

	if (rr_chunk_check_reads(h, inline_bytes, CALL_MAX, &info))
		return;
	must(info.item_bytes <= CALL_MAX && info.pzrc_bytes <= CALL_MAX - info.item_bytes);
	must(info.has_pzrc == (h->proc == RR_NOMSG));
	must(info.pzrc_nsegs + info.item_nsegs == h->nreads);
	check_spans(spans,
		    rr_chunk_read_spans(h->reads + info.pzrc_first, info.pzrc_nsegs, 0,
					info.pzrc_bytes, spans, RR_READ_SEGS_MAX),
		    info.pzrc_bytes);
	check_spans(spans,
		    rr_chunk_read_spans(h->reads + info.item_first, info.item_nsegs,
					info.item_bytes / 3, info.item_bytes / 2, spans,
					RR_READ_SEGS_MAX),
		    info.item_bytes / 2);
}

static void use_chunk(const struct rr_chunk *c)
{
	struct rr_span spans[RR_CHUNK_SEGS_MAX];
	uint64_t bytes = rr_chunk_bytes(c), used = 1;
	struct rr_chunk back;

	must(bytes <= CALL_MAX);
	for (uint64_t part = 0; part <= 4; part++) {
		rr_chunk_return(c, bytes * part / 4, &back);
		must(!rr_chunk_check_returned(c, &back, &used) && used == bytes * part / 4);
	}
	check_spans(spans,
		    rr_chunk_spans(c->segs, c->nsegs, bytes / 5, (uint32_t)(bytes / 2), spans,
				   RR_CHUNK_SEGS_MAX),
		    (uint32_t)(bytes / 2));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t back[8192];
	static struct rr_hdr h;
	char line[512];
	size_t took, len;
	struct rr_priv priv;

	rr_priv_decode(data, size, &priv);
	must(priv.send_bytes >= 1024 && priv.recv_bytes <= 262144);
	if (rr_hdr_decode(data, size, &h, &took)) {
		must(!h.nreads && !h.nwrites && !h.has_reply);
		rr_hdr_print(&h, line, sizeof(line));
		return 0;
	}
	must(took <= size && took == rr_hdr_bytes(&h));
	must(!rr_hdr_encode(&h, back, sizeof(back), &len) && len == took);
	must(!memcmp(back, data, len));
	rr_hdr_print(&h, line, sizeof(line));
	if (h.proc != RR_MSG && h.proc != RR_NOMSG)
		return 0;
	use_reads(&h, size - took);
	if (rr_chunk_check_writes(&h, CALL_MAX))
		return 0;
	for (uint32_t i = 0; i < h.nwrites; i++)
		use_chunk(&h.writes[i]);
	if (h.has_reply)
		use_chunk(&h.reply);
	return 0;
}
