/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * cl_args.c - the arguments of a call, encoded by the thread of the caller
 *
 * Operation:  The filter runs once. Arguments that do not fit the first buffer of the call move to memory that is registered
 *             already, from which the transport sends them without a copy. While that is short, they are in memory of
 *             malloc(), and the transport copies or registers them: a call that waits for memory holds none, so calls
 *             cannot wait for each other.
 * Memory:     One segment (cl_mem.c), or memory of malloc(), until the transport has released the call.
 * Threads:    The caller's.
 * Errors:     RPC_CANTENCODEARGS.
 */
#include <errno.h>
#include <string.h>

#include "cl_int.h"

#define GROWTH 4u /* in few steps, since each takes a segment */

static void put_segment(struct rt_call *c)
{
	rt_mem_put(c->args_mem);
	c->args_mem = NULL;
}

int rt_cl_args_to_heap(struct rt_call *c)
{
	int rc = c->args_mem ? rt_enc_grow_heap(&c->enc, c->enc.len) : 0;

	if (!rc)
		put_segment(c);
	return rc;
}

static int grow(struct rt_enc *e, size_t bytes)
{
	struct rt_call *c = e->ctx;
	struct rt_mem *m;

	if (e->heap || rt_mem_get(MIN(MAX(bytes, GROWTH * e->cap), MAX(bytes, e->max)), &c->handle->attr.addr, 0, &m)) {
		int rc = rt_enc_grow_heap(e, bytes);

		if (!rc)
			put_segment(c);
		return rc;
	}
	memcpy(m->addr, e->buf, e->len);
	put_segment(c);
	c->args_mem = m;
	e->buf = m->addr;
	e->cap = m->bytes;
	return 0;
}

enum clnt_stat rt_cl_encode(struct rt_call *c, xdrproc_t xargs, void *args, bool waits, struct rt_outcome *o)
{
	struct rt_handle *h = c->handle;
	bool_t ok;

	rt_enc_init(&c->enc, c->small, h->inline_bytes, h->max_bytes, grow, c);
	if (c->row && c->row->args && waits)
		rt_enc_want_bulk(&c->enc, c->row->args, c->row->threshold);
	ok = AUTH_WRAP(h->client.cl_auth, &c->enc.xdr, xargs, args);
	if (ok && !c->enc.err && !c->enc.pad)
		return RPC_SUCCESS;
	return rt_cl_fail(o, RPC_CANTENCODEARGS, c->enc.err,
			  c->enc.err == -EMSGSIZE ? "the arguments are longer than max_bytes of the handle" :
			  c->enc.err ? "no memory for the arguments" : "a filter of the arguments refused");
}

const struct rpcrdma_ready *rt_cl_args(struct rt_call *c)
{
	const struct rt_enc *e = &c->enc;

	c->args = (struct iovec){ e->buf, e->len };
	c->item = (struct iovec){ (void *)(uintptr_t)e->bulk.base, e->bulk.bytes }; /* only read */
	c->ready = (struct rpcrdma_ready){ .iov = &c->args, .iovcnt = 1 };
	if (e->bulk.base) {
		c->ready.payload = &c->item;
		c->ready.payloadcnt = 1;
		c->ready.payload_bytes = e->bulk.bytes;
		c->ready.payload_at = e->bulk.pos;
	}
	return &c->ready;
}

void rt_cl_args_free(struct rt_call *c)
{
	rt_enc_fini(&c->enc);
	put_segment(c);
}
