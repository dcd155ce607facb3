/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fuzz_rpc.c - libFuzzer harness: RPC call and reply headers, AUTH_SYS credentials
 *
 * Operation:  The input is an RPC message. What decodes is encoded again, and that must decode to
 *             the same (pad bytes may differ, so bytes are not compared).
 * Errors:     abort() on a broken promise.
 */
#include <stdlib.h>

#include "creds.h"
#include "rpc_msg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool promise)
{
	if (!promise)
		abort();
}

static void same_auth(const struct rr_auth *a, const struct rr_auth *b)
{
	must(a->flavor == b->flavor && a->len == b->len && a->len <= RR_AUTH_BYTES_MAX);
	must(!a->len || !memcmp(a->body, b->body, a->len));
}

/* What leatd reads of a credential is what librpcrdma writes for it. */
static void use_cred(const struct rr_auth *a)
{
	uint8_t body[RR_AUTH_BYTES_MAX];
	struct rr_auth_sys s = { .ngids = 0 };
	struct creds c, back;
	int len;

	if (!a->len || creds_parse_sys(a->body, a->len, &c))
		return;
	must(c.claimed && !c.anon && c.ngroups <= ARRAY_SIZE(s.gids));
	s.uid = c.uid;
	s.gid = c.gid;
	s.ngids = c.ngroups;
	memcpy(s.gids, c.groups, c.ngroups * sizeof(s.gids[0]));
	len = rr_rpc_put_auth_sys(&s, body, sizeof(body));
	must(len > 0 && !creds_parse_sys(body, (uint32_t)len, &back));
	must(back.uid == c.uid && back.gid == c.gid && back.ngroups == c.ngroups);
	must(!memcmp(back.groups, c.groups, c.ngroups * sizeof(c.groups[0])));
}

static void use_call(const struct rr_rpc_call *c, size_t took)
{
	uint8_t buf[1024];
	struct rr_rpc_call back;
	struct wire_put p;
	struct wire_get g;

	wire_put_init(&p, buf, sizeof(buf));
	rr_rpc_put_call(&p, c);
	must(wire_put_ok(&p) && wire_put_len(&p) == took);
	wire_get_init(&g, buf, took);
	must(!rr_rpc_get_call(&g, &back));
	must(back.xid == c->xid && back.prog == c->prog && back.vers == c->vers &&
	     back.proc == c->proc);
	same_auth(&c->cred, &back.cred);
	same_auth(&c->verf, &back.verf);
	use_cred(&c->cred);
	use_cred(&c->verf);
}

static void use_reply(const struct rr_rpc_reply *r)
{
	uint8_t buf[64 + RR_AUTH_BYTES_MAX];
	struct rr_rpc_reply back;
	struct wire_put p;
	struct wire_get g;

	must(rr_rpc_errno(r) <= 0 && rr_rpc_strerror(r)[0]);
	/* ours have no unknown reason to deny */
	if (r->stat == RR_DENIED && r->reject > RR_AUTH_ERROR)
		return;
	wire_put_init(&p, buf, sizeof(buf));
	rr_rpc_put_reply(&p, r);
	must(wire_put_ok(&p));
	wire_get_init(&g, buf, wire_put_len(&p));
	must(!rr_rpc_get_reply(&g, &back) && !wire_get_left(&g));
	must(back.xid == r->xid && back.stat == r->stat && back.accept == r->accept &&
	     back.reject == r->reject && back.low == r->low && back.high == r->high &&
	     back.why == r->why);
	if (r->stat == RR_ACCEPTED)
		same_auth(&r->verf, &back.verf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rr_rpc_call call;
	struct rr_rpc_reply reply;
	struct wire_get g;
	bool is_call;

	wire_get_init(&g, data, size);
	is_call = !rr_rpc_get_call(&g, &call);
	if (is_call)
		use_call(&call, size - wire_get_left(&g));
	wire_get_init(&g, data, size);
	if (!rr_rpc_get_reply(&g, &reply)) {
		must(!is_call);
		use_reply(&reply);
	}
	return 0;
}
