/* SPDX-License-Identifier: BSD-2-Clause
 * kv.c - the client: kv URL put KEY <VALUE, kv URL get KEY >VALUE */
#include <stdio.h>
#include <string.h>
#include "kv.h"

int main(int argc, char **argv)
{
	static char value[KV_MAX];
	struct iovec iov = { value, sizeof(value) };
	struct kv args = { argv[argc - 1], { .iov = &iov, .iovcnt = 1 } }, res;
	int rc, put = argc == 4 && strcmp(argv[2], "put") == 0;
	struct rpcrdma_call call = { .prog = KV_PROG, .vers = KV_VERS, .proc = put ? KV_PUT : KV_GET,
				     .args = &args, .encode = (xdrproc_t)xdr_pair, .res = &res,
				     .decode = put ? NULL : (xdrproc_t)xdr_value, .sink = &iov, .sinkcnt = !put };
	struct rpcrdma_clnt_attr attr = { .cred.none = true };
	struct rpcrdma_engine *e;
	struct rpcrdma_clnt *c;

	if (argc != 4 || rpcrdma_addr_parse(argv[1], &attr.addr) || rpcrdma_engine_create(NULL, NULL, &e) ||
	    rpcrdma_clnt_create(e, &attr, &c))
		return fprintf(stderr, "usage: kv URL put|get KEY\n"), 2;
	args.value.length = put ? fread(value, 1, sizeof(value), stdin) : 0;
	rc = rpcrdma_clnt_call_wait(c, &call);
	if (rc)
		fprintf(stderr, "kv: %s\n", call.why);
	fwrite(value, 1, call.payload_bytes, stdout);
	rpcrdma_clnt_destroy(c);
	rpcrdma_engine_destroy(e);
	return rc != 0;
}
