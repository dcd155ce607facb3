/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * clnt_rdma_bufs.c - message buffers of a link
 *
 * Operation:  Message buffers of receives and Sends come from one list. rr_link_msgs_grow() adds to it, with one
 *             registration each time. The pool's buffers are registered in another protection domain.
 * Memory:     The link owns all of them.
 * Threads:    The engine's.
 * Errors:     -ENOMEM.
 */
#include <errno.h>
#include <stdlib.h>

#include "clnt_rdma.h"

#define PAGE_BYTES ((size_t)4096)

/* ---- message buffers ------------------------------------------------------------------------ */

/* A registration for many of them. */
struct msg_mem {
	struct list link;             /* link->msg_mems */
	struct rr_own own;
	struct rr_link *conn;
	struct rr_extent x;
	struct rr_buf bufs[];
};

static void msg_put(struct rr_own *own, struct rr_buf *b)
{
	rr_link_msg_put(container_of(own, struct msg_mem, own)->conn, &b->pub);
}

void rr_link_msg_put(struct rr_link *l, struct rpcrdma_buf *buf)
{
	struct rr_buf *b = container_of(buf, struct rr_buf, pub);

	b->next = l->free_msgs;
	l->free_msgs = b;
}

int rr_link_msg_get(struct rr_link *l, struct rpcrdma_buf **ret)
{
	struct rr_buf *b = l->free_msgs;

	if (!b)
		return -ENOBUFS;
	l->free_msgs = b->next;
	*ret = &b->pub;
	return 0;
}

static void msg_mem_free(struct msg_mem *m)
{
	rr_mr_dereg(m->own.mr);
	if (m->x.kind)
		rr_extent_put(&m->x);
	list_del(&m->link);
	free(m);
}

int rr_link_msgs_grow(struct rr_link *l, unsigned recvs)
{
	unsigned n = 2 * recvs - MIN(l->nmsgs, 2 * recvs);
	struct msg_mem *m;
	int rc;

	if (!n)
		return 0;
	m = calloc(1, sizeof(*m) + n * sizeof(m->bufs[0]));
	if (!m)
		return -ENOMEM;
	list_init(&m->link);
	m->own.put = msg_put;
	m->conn = l;
	rc = rr_extent_get(&rr_mem_kind_anonymous, NULL, round_up_pow2((size_t)n * l->msg_bytes, PAGE_BYTES), &m->x);
	if (!rc)
		rc = rr_extent_reg(&m->x, l->reg->pd, RR_ACCESS_LOCAL_WRITE, &m->own.mr);
	if (rc) {
		msg_mem_free(m);
		return rc;
	}
	list_add_tail(&l->msg_mems, &m->link);
	l->nmsgs += n;
	for (unsigned i = 0; i < n; i++) {
		m->bufs[i].own = &m->own;
		m->bufs[i].pub.addr = (uint8_t *)m->x.mem + (size_t)i * l->msg_bytes;
		m->bufs[i].pub.bytes = l->msg_bytes;
		rr_link_msg_put(l, &m->bufs[i].pub);
	}
	return 0;
}

void rr_link_msgs_free(struct rr_link *l)
{
	list_for_each_safe(node, &l->msg_mems)
		msg_mem_free(list_entry(node, struct msg_mem, link));
}
