/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * hdr_print.c - formats a transport header as one line of text
 *
 * Operation:  Debug output and tests that compare captures call rr_hdr_print(); the data path does not. One
 *             READ[...] per run of equal positions, one WRITE[...] per chunk.
 * Memory:     The caller's buffer. Truncates a text that is too long; always NUL-terminated.
 * Threads:    Pure.
 * Errors:     None. A header that failed to decode has empty lists and prints its other fields.
 */
#include <stdarg.h>
#include <stdio.h>

#include "hdr.h"

struct text {
	char *at;
	size_t left; /* room including the NUL */
};

static printf_like(2, 3) void append(struct text *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(t->at, t->left, fmt, ap);
	va_end(ap);
	if (n < 0 || !t->left)
		return;
	if ((size_t)n >= t->left)
		n = (int)(t->left - 1);
	t->at += n;
	t->left -= (size_t)n;
}

static void append_proc(struct text *t, uint32_t proc)
{
	static const char *const names[] = {
		[RR_MSG] = "RDMA_MSG",	 [RR_NOMSG] = "RDMA_NOMSG", [RR_MSGP] = "RDMA_MSGP",
		[RR_DONE] = "RDMA_DONE", [RR_ERROR] = "RDMA_ERROR",
	};

	if (proc < ARRAY_SIZE(names))
		append(t, "%s", names[proc]);
	else
		append(t, "proc=%u", proc);
}

static void append_reads(struct text *t, const struct rr_hdr *h)
{
	for (uint32_t i = 0; i < h->nreads; i++) {
		bool first = i == 0 || h->reads[i].position != h->reads[i - 1].position;

		if (first)
			append(t, "%s READ[pos=%u: ", i ? "]" : "", h->reads[i].position);
		append(t, "%s%u", first ? "" : "+", h->reads[i].seg.length);
	}
	if (h->nreads)
		append(t, "]");
}

static void append_chunk(struct text *t, const char *name, const struct rr_chunk *c)
{
	append(t, " %s[%u:", name, c->nsegs);
	for (uint32_t i = 0; i < c->nsegs; i++)
		append(t, "%c%u", i ? '+' : ' ', c->segs[i].length);
	append(t, "]");
}

static void append_error(struct text *t, const struct rr_hdr *h)
{
	if (h->err == RR_ERR_VERS)
		append(t, " ERR_VERS %u..%u", h->vers_low, h->vers_high);
	else if (h->err == RR_ERR_CHUNK)
		append(t, " ERR_CHUNK");
	else
		append(t, " err=%u", h->err);
}

char *rr_hdr_print(const struct rr_hdr *h, char *buf, size_t cap)
{
	struct text t = { buf, cap };

	append_proc(&t, h->proc);
	append(&t, " xid=0x%x", h->xid);
	if (h->vers != RR_VERS)
		append(&t, " vers=%u", h->vers);
	append(&t, " cred=%u hdr=%zu", h->credits, rr_hdr_bytes(h));
	if (h->proc == RR_ERROR) {
		append_error(&t, h);
		return buf;
	}
	append_reads(&t, h);
	for (uint32_t i = 0; i < h->nwrites; i++)
		append_chunk(&t, "WRITE", &h->writes[i]);
	if (h->has_reply)
		append_chunk(&t, "REPLY", &h->reply);
	return buf;
}
