/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * srv_mem.c - the service's own memory in transfers of a request
 *
 * Operation:  A transfer without a buffer names memory of rpcrdma_mem_alloc() or rpcrdma_mem_register(). It gets the
 *             region's entry (svc_mem.c) as its buffer; from there on it is like any other transfer.
 * Memory:     The request holds an entry from its first transfer until its end, once for all its transfers.
 * Threads:    The connection's engine.
 * Errors:     -EFAULT: other memory, or a pull into memory that is read-only; -ENOMEM.
 */
#include <errno.h>
#include <stdlib.h>

#include "engine_int.h"
#include "srv_int.h"

struct rr_req_mem {
	struct rr_req_mem *next;
	struct rpcrdma_buf *buf;
};

static int hold(struct rr_req *r, struct rpcrdma_buf *buf)
{
	struct rr_req_mem *m;

	for (m = r->mems; m; m = m->next)
		if (m->buf == buf) {
			rr_svc_mem_put(r->pub.engine->domain, buf);
			return 0;
		}
	m = malloc(sizeof(*m));
	if (!m) {
		rr_svc_mem_put(r->pub.engine->domain, buf);
		return -ENOMEM;
	}
	*m = (struct rr_req_mem){ .next = r->mems, .buf = buf };
	r->mems = m;
	return 0;
}

/* A device finds out when it registers memory; a copy would end the connection, or the process. */
static bool can_copy_to(const struct rpcrdma_conn *c, const struct rpcrdma_xfer *p)
{
	const struct iovec iov = { p->mem, p->len };

	return c->dev || rr_mem_is_there(&iov, 1, p->len, true);
}

int rr_req_use_mem(struct rr_req *r, struct rpcrdma_xfer *p, bool write)
{
	struct rpcrdma_buf *buf;
	int rc;

	if (write && !can_copy_to(r->pub.conn, p))
		return -EFAULT;
	rc = rr_svc_mem_get(r->pub.engine->domain, r->pub.conn->dev, p->mem, p->len, write, &buf);
	if (!rc)
		rc = hold(r, buf);
	if (rc)
		return rc;
	p->buf = buf;
	p->buf_off = (size_t)((uint8_t *)p->mem - (uint8_t *)buf->addr);
	return 0;
}

void rr_req_free_mems(struct rr_req *r)
{
	struct rr_req_mem *m;

	while ((m = r->mems) != NULL) {
		r->mems = m->next;
		rr_svc_mem_put(r->pub.engine->domain, m->buf);
		free(m);
	}
}
