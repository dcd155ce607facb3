/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * cl_auth.c - the AUTH of a CLIENT: credentials of calls, verifiers of replies
 *
 * Operation:  An AUTH writes its credential and verifier as XDR, which the transport gets as opaque bytes.
 * Threads:    One thread at a time uses an AUTH of a handle: libtirpc does the same, and AUTH_SYS changes when the server
 *             gives it a short form.
 */
#include <errno.h>
#include <string.h>

#include "base/wire.h"
#include "cl_int.h"

static bool get_auth(struct wire_get *g, struct rpcrdma_auth *ret)
{
	ret->flavor = wire_get_u32(g);
	ret->bytes = wire_get_u32(g);
	if (ret->bytes > RPCRDMA_AUTH_MAX)
		return false;
	ret->body = wire_get_bytes(g, round_up4(ret->bytes));
	return wire_get_ok(g);
}

enum clnt_stat rt_cl_marshal(struct rt_call *c, struct rt_outcome *o)
{
	struct rt_handle *h = c->handle;
	struct wire_get g;
	bool ok;
	XDR x;

	xdrmem_create(&x, (char *)c->auth, sizeof(c->auth), XDR_ENCODE);
	pthread_mutex_lock(&h->auth_lock);
	ok = AUTH_MARSHALL(h->client.cl_auth, &x);
	pthread_mutex_unlock(&h->auth_lock);
	if (!ok)
		return rt_cl_fail(o, RPC_CANTENCODEARGS, 0, "the credential does not encode");
	wire_get_init(&g, c->auth, XDR_GETPOS(&x));
	if (!get_auth(&g, &c->auth_cred) || !get_auth(&g, &c->auth_verf))
		return rt_cl_fail(o, RPC_CANTENCODEARGS, 0, "the credential or its verifier is longer than 400 bytes");
	if (c->auth_cred.flavor == RPCSEC_GSS) {
		(void)rt_cl_fail(o, RPC_AUTHERROR, 0, "RPCSEC_GSS is not supported over this transport");
		o->err.re_why = AUTH_FAILED;
		return RPC_AUTHERROR;
	}
	c->cred = (struct rpcrdma_cred){ .opaque = &c->auth_cred, .verf = &c->auth_verf };
	return RPC_SUCCESS;
}

enum clnt_stat rt_cl_validate(struct rt_call *c, struct rt_outcome *o)
{
	struct opaque_auth verf = { .oa_flavor = (enum_t)c->verf.flavor, .oa_base = (char *)c->verf.body,
				    .oa_length = c->verf.bytes };
	struct rt_handle *h = c->handle;
	bool ok;

	pthread_mutex_lock(&h->auth_lock);
	ok = AUTH_VALIDATE(h->client.cl_auth, &verf);
	pthread_mutex_unlock(&h->auth_lock);
	if (ok)
		return RPC_SUCCESS;
	(void)rt_cl_fail(o, RPC_AUTHERROR, 0, "the verifier of the reply is not valid");
	o->err.re_why = AUTH_INVALIDRESP;
	return RPC_AUTHERROR;
}

bool rt_cl_refresh(struct rt_call *c, const struct rt_outcome *o)
{
	struct rt_handle *h = c->handle;
	struct rpc_msg reply = { .rm_direction = REPLY };
	bool ok;

	if (o->err.re_status != RPC_AUTHERROR)
		return false;
	reply.rm_xid = c->call.xid;
	reply.rm_reply.rp_stat = MSG_DENIED;
	reply.rjcted_rply.rj_stat = AUTH_ERROR;
	reply.rjcted_rply.rj_why = o->err.re_why;
	pthread_mutex_lock(&h->auth_lock);
	ok = AUTH_REFRESH(h->client.cl_auth, &reply);
	pthread_mutex_unlock(&h->auth_lock);
	return ok;
}
