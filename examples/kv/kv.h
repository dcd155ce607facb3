/* SPDX-License-Identifier: BSD-2-Clause
 * kv.h - a key-value store: what client and server agree on */
#include <err.h>
#include <rpcrdma.h>
#include <stdio.h>
#include <string.h>

enum { KV_PROG = 0x20000b1, KV_VERS = 1, KV_PUT = 1, KV_GET = 2, KV_MAX = 1 << 20 /* bytes of a value */ };

struct kv { char *key; struct rpcrdma_payload value; };

static inline bool_t xdr_value(XDR *x, struct kv *p)
{
	return rpcrdma_xdr_payload(x, &p->value, KV_MAX);
}

static inline bool_t xdr_pair(XDR *x, struct kv *p)
{
	return xdr_string(x, &p->key, 255) && xdr_value(x, p);
}
