/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * drc_check.c - executes a non-idempotent request once, even if the client retransmits it
 *
 * Operation: Connects req.c to the duplicate request cache (drc.c). drc_check_enter() makes the key: client,
 *            credential, XID, procedure, and a checksum of the arguments. The arguments are encoded again for the checksum,
 *            because a retransmission may be split into messages differently. A payload is represented by its
 *            length and its first HEAD_BYTES. So a restarted client that reuses its XIDs to write other data
 *            hardly ever matches an old entry. WRITEs have a separate cache, which replays no entry that is older
 *            than DRC_KEEP_WRITE_NS: many WRITEs do not displace requests that must not be executed again.
 *            drc_check_end() encodes the results into the request. The entry, the replies to joined requests and
 *            this reply are the same bytes. They contain no RPC header, so they fit any transport.
 * Memory:    The request's.
 * Threads:   The reactor's, except wake(), which posts to it.
 * Errors:    A result that says that nothing was done (prog.undone) is not kept; the first joined request is executed.
 */
#include "drc_check.h"

#include <assert.h>
#include <string.h>

#include "reactor.h"
#include "req.h"
#include "server_int.h"

#define HEAD_BYTES 256u	/* of a WRITE's data, if its first piece is that long (split.c) */
#define ARGS_MAX (DRC_ARGS_MAX + HEAD_BYTES + sizeof(uint32_t))

/* ---- the key ------------------------------------------------------------------------------ */

static struct drc *cache_of(const struct req *r)
{
	return r->proc->move == PLACE_WRITE ? r->srv->drc_writes : r->srv->drc;
}

/* Bytes of a WRITE's data that enter the key. They are always in the first piece, wherever the split is. With overlap
 * only that piece has arrived. */
static uint32_t head_bytes(const struct req *r, uint32_t length)
{
	uint64_t off = r->plan.off;

	if (r->place.kind == PLACE_PULL)
		return 0;
	return MIN(MIN(length, HEAD_BYTES), DATA_ALIGN - (uint32_t)(off % DATA_ALIGN));
}

/* Encodes the arguments with an empty payload, then the length and head of the payload. They have no other bytes
 * that are not in memory. Return: bytes in @buf */
static uint32_t encode_args(struct req *r, uint8_t buf[ARGS_MAX])
{
	struct rpcrdma_payload *data = r->plan.data;
	uint32_t length = data ? data->length : 0;
	uint32_t head = data ? head_bytes(r, length) : 0;
	bool_t ok;
	u_int n;
	XDR x;

	if (data)
		data->length = 0;
	xdrmem_create(&x, (char *)buf, DRC_ARGS_MAX, XDR_ENCODE);
	ok = ((bool_t(*)(XDR *, void *))r->proc->decode)(&x, req_args(r));
	assert(ok); /* they were decoded by the same filter */
	n = xdr_getpos(&x);
	xdr_destroy(&x);
	if (data)
		data->length = length;
	memcpy(buf + n, &length, sizeof(length));
	n += (u_int)sizeof(length);
	if (head)
		place_head(&r->place, buf + n, head);
	return n + head;
}

static void make_key(struct req *r)
{
	struct drc_call *c = &r->check.call;
	const struct rpcrdma_req *rpc = r->rpc;
	uint8_t args[ARGS_MAX];
	uint64_t hash;

	rpcrdma_client_id_of(rpc->peer, &c->client);
	drc_key_peer(&c->key, rpc->peer);
	c->key.xid = rpc->xid;
	c->key.prog = rpc->prog;
	c->key.vers = rpc->vers;
	c->key.proc = rpc->proc;
	c->key.args_bytes = encode_args(r, args);
	hash = drc_hash(cache_of(r), args, c->key.args_bytes);
	/* a path is an argument like the others: all of it enters the hash */
	if (r->place.kind == PLACE_PULL && r->place.total)
		hash ^= drc_hash(cache_of(r), place_data(&r->place), r->place.total);
	c->key.args_hash = hash;
	c->key.cred_flavor = rpc->cred_flavor;
	c->key.cred_bytes = rpc->cred_len;
	c->cred = rpc->cred_body;
}

/* ---- entering ----------------------------------------------------------------------------- */

static void on_woken(struct rpcrdma_msg *msg)
{
	struct req *r = container_of(msg, struct req, check.msg);

	r->check.verdict = r->check.call.verdict;
	req_run(r);
}

/* Runs on the reactor that executed the original request. */
static void wake(struct drc_call *c)
{
	struct req *r = container_of(c, struct req, check.call);

	rpcrdma_engine_post(r->reactor->loop.engine, &r->check.msg);
}

enum drc_verdict drc_check_enter(struct req *r)
{
	struct drc_check *o = &r->check;

	if (!cache_of(r))
		return DRC_EXECUTE;
	if (!o->asked) {
		o->asked = true;
		make_key(r);
		o->call.wake = wake;
		o->msg.fn = on_woken;
		o->verdict = drc_enter(cache_of(r), &o->call);
	}
	return o->verdict;
}

bool drc_check_leave(struct req *r)
{
	struct drc_check *o = &r->check;

	if (!o->asked || o->verdict != DRC_JOINED || !drc_leave(cache_of(r), &o->call))
		return false;
	o->asked = false;
	return true;
}

/* ---- the end ------------------------------------------------------------------------------ */

static void encode_results(struct req *r)
{
	struct drc_call *c = &r->check.call;
	bool_t ok;
	XDR x;

	xdrmem_create(&x, (char *)c->res, sizeof(c->res), XDR_ENCODE);
	ok = ((bool_t(*)(XDR *, void *))r->proc->encode)(&x, req_res(r));
	assert(ok); /* DRC_RES_MAX is enough for every procedure that gets here */
	c->res_bytes = xdr_getpos(&x);
	xdr_destroy(&x);
}

bool drc_check_end(struct req *r)
{
	struct drc_call *c = &r->check.call;

	if (r->check.verdict == DRC_NO_MEMORY)
		return false;
	if (!c->entry)
		return true; /* a replay */
	if (r->end != REQ_END_REPLY || r->prog->undone(r)) {
		drc_abandon(cache_of(r), c);
		return false;
	}
	encode_results(r);
	drc_done(cache_of(r), c);
	return true;
}

bool_t drc_check_encode(XDR *xdrs, struct drc_check *o)
{
	return XDR_PUTBYTES(xdrs, (char *)o->call.res, o->call.res_bytes);
}
