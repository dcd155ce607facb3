/* SPDX-License-Identifier: BSD-2-Clause
 * kv.c - the client: kv URL put KEY <VALUE, kv URL get KEY >VALUE
 *     cc kv.c $(pkg-config --cflags --libs rpcrdma) -o kv */
#include "kv.h"

int main(int argc, char **argv)
{
	static char value[KV_MAX + 1]; /* one more: to notice a longer value */
	struct iovec iov = { value, KV_MAX };
	struct kv args = { argv[argc - 1], { .iov = &iov, .iovcnt = 1 } }, res;
	int rc, put = argc == 4 && strcmp(argv[2], "put") == 0;
	struct rpcrdma_call call = { .prog = KV_PROG, .vers = KV_VERS, .proc = put ? KV_PUT : KV_GET,
				     .args = &args, .encode = (xdrproc_t)xdr_pair, .res = &res,
				     .decode = put ? NULL : (xdrproc_t)xdr_value, .sink = &iov, .sinkcnt = !put };
	struct rpcrdma_clnt_attr attr = { .cred.none = true };
	struct rpcrdma_engine *e;
	struct rpcrdma_clnt *c;

	if (argc != 4 || (!put && strcmp(argv[2], "get") != 0) || rpcrdma_addr_parse(argv[1], &attr.addr))
		errx(2, "usage: kv URL put|get KEY");
	args.value.length = put ? fread(value, 1, sizeof(value), stdin) : 0;
	if (ferror(stdin) || args.value.length > KV_MAX)
		errx(1, "%s", ferror(stdin) ? "cannot read the value from standard input" : "the value is longer than 1 MiB");
	if ((rc = rpcrdma_engine_create(NULL, NULL, &e)) || (rc = rpcrdma_clnt_open(e, &attr, &c)))
		errx(1, "cannot start: %s", strerror(-rc));
	rc = rpcrdma_clnt_call_wait(c, &call);
	if (rc)
		warnx("%s", call.why);
	fwrite(value, 1, call.payload_bytes, stdout);
	rpcrdma_clnt_destroy(c);
	rpcrdma_engine_destroy(e);
	return rc != 0;
}
