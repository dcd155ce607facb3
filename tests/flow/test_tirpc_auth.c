/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_tirpc_auth.c - the AUTH of a CLIENT: RPCSEC_GSS, AUTH_SHORT in a verifier, refreshed credentials
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "rpcrdma_tirpc.h"
#include "tirpc_rig.h"

enum {
	SHORTEN = RIG_OWN, /* u_int: the flavor of the call; the verifier has a short credential if the argument is 1, and
	                    * if it is 2 bytes that are none */
	COUNT,             /* void -> u_int: SHORTEN calls that were dispatched */
};

static const struct timeval plenty = { 60, 0 }, zero = { 0, 0 };
static char local_url[256];
static struct rig rig;
static CLIENT *clnt;
static u_int before; /* dispatched() */

/* ---- the service ---- */

static void set_verf(struct opaque_auth *verf, u_int how)
{
	char word[] = "shortened";
	struct opaque_auth cred = { .oa_flavor = AUTH_SHORT, .oa_base = word, .oa_length = sizeof(word) };
	XDR x;

	if (!how)
		return;
	xdrmem_create(&x, verf->oa_base, MAX_AUTH_BYTES, XDR_ENCODE);
	if (how == 1 && !xdr_opaque_auth(&x, &cred))
		abort();
	verf->oa_flavor = AUTH_SHORT;
	verf->oa_length = XDR_GETPOS(&x);
}

static void dispatch(struct svc_req *q, SVCXPRT *x)
{
	static u_int count;
	u_int how, flavor = (u_int)q->rq_cred.oa_flavor;

	switch (q->rq_proc) {
	case SHORTEN:
		count++;
		if (!svc_getargs(x, (xdrproc_t)xdr_u_int, (caddr_t)&how)) {
			svcerr_decode(x);
			return;
		}
		set_verf(&x->xp_verf, how);
		svc_sendreply(x, (xdrproc_t)xdr_u_int, &flavor);
		return;
	case COUNT:
		svc_sendreply(x, (xdrproc_t)xdr_u_int, &count);
		return;
	default:
		rig_dispatch(q, x);
	}
}

static int create(void)
{
	int rc = rpcrdma_svc_create(dispatch, RIG_PROG, RIG_VERS, "tcp://127.0.0.1:0", NULL);

	return rc ? rc : rpcrdma_svc_create(dispatch, RIG_PROG, RIG_VERS, local_url, NULL);
}

static int start_service(void **state)
{
	const struct rig_service s = { .create = create, .run = svc_run, .url = { "tcp://127.0.0.1:0", local_url } };

	(void)state;
	snprintf(local_url, sizeof(local_url), "%s", rig_local("auth"));
	rig_start(&rig, &s);
	return 0;
}

static int stop_service(void **state)
{
	(void)state;
	return rig_stop(&rig);
}

/* SHORTEN calls that were dispatched in this test. */
static u_int dispatched(void)
{
	u_int n = 0;

	assert_int_equal(clnt_call(clnt, COUNT, (xdrproc_t)xdr_rig_void, NULL, (xdrproc_t)xdr_u_int, &n, plenty), RPC_SUCCESS);
	return n - before;
}

static int setup(void **state)
{
	clnt = rpcrdma_clnt_create(rig.url[*(unsigned *)*state], RIG_PROG, RIG_VERS, NULL);
	if (!clnt)
		return -1;
	before = 0;
	before = dispatched();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	clnt_destroy(clnt);
	return 0;
}

/* ---- an AUTH made by hand ---- */

struct own {
	AUTH auth;
	bool valid;         /* what it thinks of verifiers */
	unsigned refreshes; /* that there were */
	int refused;        /* refreshes that give a credential; later ones fail */
	enum auth_stat why; /* of the last one */
	unsigned validated;
	struct opaque_auth verf; /* the last one; its body is gone */
};

static struct own *own_of(AUTH *a)
{
	return (struct own *)a->ah_private;
}

static void own_nextverf(AUTH *a)
{
	(void)a;
}

static int own_marshal(AUTH *a, XDR *x)
{
	return xdr_opaque_auth(x, &a->ah_cred) && xdr_opaque_auth(x, &a->ah_verf);
}

static int own_validate(AUTH *a, struct opaque_auth *verf)
{
	own_of(a)->validated++;
	own_of(a)->verf = *verf;
	return own_of(a)->valid;
}

static int own_refresh(AUTH *a, void *msg)
{
	struct own *o = own_of(a);

	o->refreshes++;
	o->why = ((struct rpc_msg *)msg)->rjcted_rply.rj_why;
	return o->refused-- != 0;
}

static void own_destroy(AUTH *a)
{
	(void)a;
}

static int own_wrap(AUTH *a, XDR *x, xdrproc_t filter, caddr_t data)
{
	(void)a;
	return filter(x, data);
}

static struct auth_ops own_ops = { own_nextverf, own_marshal, own_validate, own_refresh, own_destroy, own_wrap, own_wrap };

static AUTH *own_create(struct own *o, enum_t flavor)
{
	static char body[] = "body";

	*o = (struct own){ .valid = true, .auth.ah_ops = &own_ops };
	o->auth.ah_cred = (struct opaque_auth){ .oa_flavor = flavor, .oa_base = body, .oa_length = 4 };
	o->auth.ah_private = o;
	return &o->auth;
}

/* ---- tests ---- */

static unsigned filters; /* runs of it */

static bool_t xdr_how(XDR *x, u_int *how)
{
	filters++;
	return xdr_u_int(x, how);
}

static enum clnt_stat shorten(u_int how, u_int *ret_flavor)
{
	enum clnt_stat stat;

	filters = 0;
	stat = clnt_call(clnt, SHORTEN, (xdrproc_t)xdr_how, &how, (xdrproc_t)xdr_u_int, ret_flavor, plenty);
	assert_int_equal(filters, 1);
	return stat;
}

static enum auth_stat auth_error(const char *text)
{
	struct rpc_err err;

	clnt_geterr(clnt, &err);
	assert_int_equal(err.re_status, RPC_AUTHERROR);
	if (!strstr(rpcrdma_clnt_why(clnt), text))
		fail_msg("%s", rpcrdma_clnt_why(clnt));
	assert_non_null(clnt_sperror(clnt, "test"));
	return err.re_why;
}

/* Nothing is sent. */
static void gss_is_refused(void **state)
{
	AUTH *none = clnt->cl_auth;
	struct own own;
	u_int flavor;

	(void)state;
	for (int i = 0; i < 3; i++) {
		clnt->cl_auth = own_create(&own, RPCSEC_GSS);
		assert_int_equal(shorten(0, &flavor), RPC_AUTHERROR);
		assert_int_equal(auth_error("RPCSEC_GSS"), AUTH_FAILED);
		assert_int_equal(own.refreshes, 0);
		assert_int_equal(clnt_call(clnt, SHORTEN, (xdrproc_t)xdr_how, &flavor, NULL, NULL, zero), RPC_AUTHERROR);
		assert_int_equal(auth_error("RPCSEC_GSS"), AUTH_FAILED);
		clnt->cl_auth = none;
		assert_int_equal(dispatched(), i);
		assert_int_equal(shorten(0, &flavor), RPC_SUCCESS);
		assert_int_equal(flavor, AUTH_NONE);
	}
}

/* libtirpc's AUTH_SYS takes the short credential, which libtirpc's services reject, and then its own again. */
static void short_credential(void **state)
{
	AUTH *none = clnt->cl_auth, *sys = authunix_create_default();
	u_int flavor;

	(void)state;
	assert_non_null(sys);
	clnt->cl_auth = sys;
	for (u_int i = 0; i < 6; i += 2) {
		assert_int_equal(shorten(1, &flavor), RPC_SUCCESS);
		assert_int_equal(flavor, AUTH_SYS);
		assert_int_equal(sys->ah_cred.oa_flavor, AUTH_SHORT);
		assert_int_equal(sys->ah_cred.oa_length, sizeof("shortened"));
		assert_memory_equal(sys->ah_cred.oa_base, "shortened", sizeof("shortened"));
		assert_int_equal(shorten(0, &flavor), RPC_SUCCESS);
		assert_int_equal(flavor, AUTH_SYS);
		assert_int_equal(sys->ah_cred.oa_flavor, AUTH_SYS);
		assert_int_equal(dispatched(), i + 2);
	}
	assert_int_equal(shorten(2, &flavor), RPC_SUCCESS); /* no credential: it keeps its own */
	assert_int_equal(sys->ah_cred.oa_flavor, AUTH_SYS);
	assert_int_equal(shorten(0, &flavor), RPC_SUCCESS);
	clnt->cl_auth = none;
	auth_destroy(sys);
}

/* Each reply that refuses the credential refreshes it, at most twice a call. */
static void refreshes(void **state)
{
	AUTH *none = clnt->cl_auth;
	struct own own;
	u_int flavor;

	(void)state;
	for (int refused = 0; refused < 4; refused++) {
		clnt->cl_auth = own_create(&own, AUTH_SHORT);
		own.refused = refused;
		assert_int_equal(shorten(0, &flavor), RPC_AUTHERROR);
		assert_int_equal(auth_error(""), AUTH_REJECTEDCRED);
		assert_int_equal(own.refreshes, MIN(refused + 1, 2));
		assert_int_equal(own.why, AUTH_REJECTEDCRED);
		assert_int_equal(own.validated, 0);
	}
	clnt->cl_auth = own_create(&own, AUTH_NONE);
	own.auth.ah_cred.oa_length = 0;
	own.refused = 2;
	assert_int_equal(clnt_call(clnt, RIG_SYSTEM, (xdrproc_t)xdr_rig_void, NULL, (xdrproc_t)xdr_rig_void, NULL, plenty),
			 RPC_SYSTEMERROR);
	assert_int_equal(own.refreshes, 0);
	clnt->cl_auth = none;
	assert_int_equal(dispatched(), 0);
}

/* The AUTH of the handle decides about the verifier of a reply. */
static void verifier_is_not_valid(void **state)
{
	AUTH *none = clnt->cl_auth;
	struct own own;
	u_int flavor;

	(void)state;
	clnt->cl_auth = own_create(&own, AUTH_NONE);
	own.auth.ah_cred.oa_length = 0;
	assert_int_equal(shorten(1, &flavor), RPC_SUCCESS);
	assert_int_equal(own.validated, 1);
	assert_int_equal(own.verf.oa_flavor, AUTH_SHORT);
	assert_int_equal(own.verf.oa_length, 8 + round_up4(sizeof("shortened")));
	own.valid = false;
	assert_int_equal(shorten(0, &flavor), RPC_AUTHERROR);
	assert_int_equal(auth_error("verifier"), AUTH_INVALIDRESP);
	assert_int_equal(own.validated, 2);
	assert_int_equal(own.verf.oa_flavor, AUTH_NONE);
	assert_int_equal(own.refreshes, 0);
	own.valid = true;
	assert_int_equal(shorten(0, &flavor), RPC_SUCCESS);
	clnt->cl_auth = none;
	assert_int_equal(dispatched(), 3);
}

static unsigned tcp, local = 1;

#define AT(test, where)                                                                                    \
	{ .name = #test " (" #where ")", .test_func = test, .setup_func = setup, .teardown_func = teardown, \
	  .initial_state = &(where) }
#define BOTH(test) AT(test, local), AT(test, tcp)

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(gss_is_refused), BOTH(short_credential), BOTH(refreshes), BOTH(verifier_is_not_valid),
	};

	return cmocka_run_group_tests(tests, start_service, stop_service);
}
