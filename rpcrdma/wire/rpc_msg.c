/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * rpc_msg.c - ONC RPC call and reply headers (RFC 5531 section 9)
 *
 * Operation:  Put functions write at a cursor; the caller checks overruns with wire_put_ok(). Get functions
 *             read a header and leave the cursor at the arguments or results.
 *
 *                 call:  xid | 0 | 2 | prog | vers | proc | cred | verf | arguments
 *                 reply: xid | 1 | 0 | verf | accept [low high] | results
 *                        xid | 1 | 1 | 0 low high   or   1 why
 *                 cred, verf: flavor | length (<= 400) | body | pad
 *
 * Memory:     Never allocates; decoded bodies point into the message.
 * Threads:    Pure functions.
 * Errors:     -EBADMSG if it is not the expected message. Fields before the fault are set and the others are 0,
 *             so that a reply or a log line can name the call.
 */
#include <errno.h>
#include <string.h>

#include "rpc_msg.h"

static void put_opaque(struct wire_put *p, const void *body, uint32_t len)
{
	static const uint8_t zeros[3];

	wire_put_u32(p, len);
	wire_put_bytes(p, body, len);
	wire_put_bytes(p, zeros, round_up4(len) - len);
}

/* Returns the body in place, or NULL (and a bad cursor) if it is longer than @max or the message. */
static const uint8_t *get_opaque(struct wire_get *g, uint32_t max, uint32_t *ret_len)
{
	uint32_t len = wire_get_u32(g);
	const uint8_t *body;

	if (len > max) {
		g->bad = true;
		return NULL;
	}
	body = wire_get_bytes(g, round_up4(len));
	if (body)
		*ret_len = len;
	return body;
}

static void put_auth(struct wire_put *p, const struct rr_auth *a)
{
	wire_put_u32(p, a->flavor);
	put_opaque(p, a->body, a->len);
}

static void get_auth(struct wire_get *g, struct rr_auth *a)
{
	a->flavor = wire_get_u32(g);
	a->body = get_opaque(g, RR_AUTH_BYTES_MAX, &a->len);
}

void rr_rpc_put_call(struct wire_put *p, const struct rr_rpc_call *c)
{
	wire_put_u32(p, c->xid);
	wire_put_u32(p, RR_RPC_CALL);
	wire_put_u32(p, c->rpcvers);
	wire_put_u32(p, c->prog);
	wire_put_u32(p, c->vers);
	wire_put_u32(p, c->proc);
	put_auth(p, &c->cred);
	put_auth(p, &c->verf);
}

int rr_rpc_get_call(struct wire_get *g, struct rr_rpc_call *c)
{
	uint32_t dir;

	memset(c, 0, sizeof(*c));
	c->xid = wire_get_u32(g);
	dir = wire_get_u32(g);
	c->rpcvers = wire_get_u32(g);
	if (!wire_get_ok(g) || dir != RR_RPC_CALL)
		return -EBADMSG;
	if (c->rpcvers != RR_RPC_VERS)
		return -EPROTONOSUPPORT;
	c->prog = wire_get_u32(g);
	c->vers = wire_get_u32(g);
	c->proc = wire_get_u32(g);
	get_auth(g, &c->cred);
	get_auth(g, &c->verf);
	return wire_get_ok(g) ? 0 : -EBADMSG;
}

void rr_rpc_put_reply(struct wire_put *p, const struct rr_rpc_reply *r)
{
	wire_put_u32(p, r->xid);
	wire_put_u32(p, RR_RPC_REPLY);
	wire_put_u32(p, r->stat);
	if (r->stat == RR_ACCEPTED) {
		put_auth(p, &r->verf);
		wire_put_u32(p, r->accept);
		if (r->accept != RR_PROG_MISMATCH)
			return;
	} else {
		wire_put_u32(p, r->reject);
		if (r->reject == RR_AUTH_ERROR) {
			wire_put_u32(p, r->why);
			return;
		}
	}
	wire_put_u32(p, r->low);
	wire_put_u32(p, r->high);
}

static void get_accepted(struct wire_get *g, struct rr_rpc_reply *r)
{
	r->stat = RR_ACCEPTED;
	get_auth(g, &r->verf);
	r->accept = wire_get_u32(g);
	if (r->accept == RR_PROG_MISMATCH) {
		r->low = wire_get_u32(g);
		r->high = wire_get_u32(g);
	}
}

static void get_denied(struct wire_get *g, struct rr_rpc_reply *r)
{
	r->stat = RR_DENIED;
	r->reject = wire_get_u32(g);
	if (r->reject == RR_RPC_MISMATCH) {
		r->low = wire_get_u32(g);
		r->high = wire_get_u32(g);
	} else if (r->reject == RR_AUTH_ERROR) {
		r->why = wire_get_u32(g);
	}
}

int rr_rpc_get_reply(struct wire_get *g, struct rr_rpc_reply *r)
{
	uint32_t dir, stat;

	memset(r, 0, sizeof(*r));
	r->xid = wire_get_u32(g);
	dir = wire_get_u32(g);
	stat = wire_get_u32(g);
	if (!wire_get_ok(g) || dir != RR_RPC_REPLY)
		return -EBADMSG;
	if (stat == RR_ACCEPTED)
		get_accepted(g, r);
	else if (stat == RR_DENIED)
		get_denied(g, r);
	else
		return -EBADMSG;
	return wire_get_ok(g) ? 0 : -EBADMSG;
}

/* Errno and text of each reply status. */
struct meaning {
	int err;
	const char *text;
};

static const struct meaning *reply_meaning(const struct rr_rpc_reply *r)
{
	static const struct meaning accepted[] = {
		[RR_SUCCESS] = { 0, "success" },
		[RR_PROG_UNAVAIL] = { -EPROTONOSUPPORT, "program unavailable" },
		[RR_PROG_MISMATCH] = { -EPROTONOSUPPORT, "program version mismatch" },
		[RR_PROC_UNAVAIL] = { -EOPNOTSUPP, "procedure unavailable" },
		[RR_GARBAGE_ARGS] = { -EINVAL, "server cannot decode arguments" },
		[RR_SYSTEM_ERR] = { -EREMOTEIO, "remote system error" },
	};
	static const struct meaning denied[] = {
		[RR_RPC_MISMATCH] = { -EPROTONOSUPPORT, "RPC version mismatch" },
		[RR_AUTH_ERROR] = { -EACCES, "authentication error" },
	};
	static const struct meaning unknown = { -EREMOTEIO, "unknown reply status" };

	if (r->stat == RR_ACCEPTED)
		return r->accept < ARRAY_SIZE(accepted) ? &accepted[r->accept] : &unknown;
	return r->reject < ARRAY_SIZE(denied) ? &denied[r->reject] : &unknown;
}

int rr_rpc_errno(const struct rr_rpc_reply *r)
{
	return reply_meaning(r)->err;
}

const char *rr_rpc_strerror(const struct rr_rpc_reply *r)
{
	static const char *const why[] = {
		[RR_AUTH_OK] = "authentication error",
		[RR_AUTH_BADCRED] = "bad credential",
		[RR_AUTH_REJECTEDCRED] = "credential rejected",
		[RR_AUTH_BADVERF] = "bad verifier",
		[RR_AUTH_REJECTEDVERF] = "verifier rejected",
		[RR_AUTH_TOOWEAK] = "authentication too weak",
	};

	if (r->stat == RR_DENIED && r->reject == RR_AUTH_ERROR && r->why < ARRAY_SIZE(why))
		return why[r->why];
	return reply_meaning(r)->text;
}

int rr_rpc_put_auth_sys(const struct rr_auth_sys *s, void *buf, size_t cap)
{
	struct wire_put p;

	if (s->machine_len >= sizeof(s->machine) || s->ngids > ARRAY_SIZE(s->gids))
		return -EMSGSIZE;
	wire_put_init(&p, buf, MIN(cap, (size_t)RR_AUTH_BYTES_MAX));
	wire_put_u32(&p, s->stamp);
	put_opaque(&p, s->machine, s->machine_len);
	wire_put_u32(&p, s->uid);
	wire_put_u32(&p, s->gid);
	wire_put_u32(&p, s->ngids);
	for (uint32_t i = 0; i < s->ngids; i++)
		wire_put_u32(&p, s->gids[i]);
	return wire_put_ok(&p) ? (int)wire_put_len(&p) : -EMSGSIZE;
}
