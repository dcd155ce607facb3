/* SPDX-License-Identifier: BSD-2-Clause
 * kvd.c - a key-value store in memory: kvd URL, for instance local:///tmp/kv or tcp://127.0.0.1:0; prints where
 *     cc kvd.c $(pkg-config --cflags --libs rpcrdma) -o kvd */
#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include "kv.h"

static size_t total; /* bytes of all values; more than 64 MiB are refused, and more keys than the table holds */
struct slot { char key[256], *value; uint32_t len; };

static int put(struct rpcrdma_task *t)
{
	struct kv *p = t->args;
	ENTRY *found = hsearch((ENTRY){ .key = p->key }, FIND);
	struct slot *e = found ? found->data : calloc(1, sizeof(*e));
	char *value = malloc(p->value.length + 1);

	if (!e || !value || total - e->len + p->value.length > 64u << 20 ||
	    (!found && !hsearch((ENTRY){ strcpy(e->key, p->key), e }, ENTER)))
		return free(value), free(found ? NULL : e), -ENOSPC;
	total = total - e->len + p->value.length;
	free(e->value);
	e->len = p->value.length;
	e->value = memcpy(value, p->value.iov[0].iov_base, e->len);
	return 0;
}

static int get(struct rpcrdma_task *t)
{
	struct kv *p = t->args, *res = t->res;
	ENTRY *found = hsearch((ENTRY){ .key = p->key }, FIND);
	struct slot *e = found ? found->data : NULL;

	if (!e || e->len > t->data_bytes)
		return e ? -EMSGSIZE : 0; /* a missing value is empty */
	memcpy(t->data, e->value, e->len);
	res->value.length = e->len;
	return 0;
}

int main(int argc, char **argv)
{
	static const struct rpcrdma_proc procs[] = {
		{ .proc = KV_PUT, .handler = put, RPCRDMA_ARGS(xdr_pair, struct kv), RPCRDMA_ARGS_DATA(struct kv, value, KV_MAX) },
		{ .proc = KV_GET, .handler = get, RPCRDMA_ARGS(xdr_pair, struct kv),
		  RPCRDMA_RES(xdr_value, struct kv), RPCRDMA_RES_DATA(struct kv, value, KV_MAX) },
	};
	static const struct rpcrdma_prog prog = { KV_PROG, KV_VERS, procs, 2 };
	const struct rpcrdma_addr *used;
	struct rpcrdma_addr addr;
	struct rpcrdma_engine *e;
	struct rpcrdma_service *s;
	int rc;

	if (argc != 2 || rpcrdma_addr_parse(argv[1], &addr))
		errx(2, "usage: kvd URL");
	if ((rc = hcreate(4096) ? 0 : -errno) || (rc = rpcrdma_engine_create(NULL, NULL, &e)) ||
	    (rc = rpcrdma_service_create(e, &(struct rpcrdma_service_attr){ .progs = &prog, .nprogs = 1 }, &s)) ||
	    (rc = rpcrdma_service_listen(s, &addr, &used)))
		errx(1, "cannot listen on %s: %s", argv[1], strerror(-rc));
	puts(rpcrdma_addr_print(used, (char[300]){ "" }, 300));
	fflush(stdout);
	for (;;)
		rpcrdma_engine_wait(e, -1);
}
