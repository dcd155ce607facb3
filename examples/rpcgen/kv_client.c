/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * kv_client.c - stores, shows and removes values of a key-value service
 *
 *   kv_client URL put KEY [SIZE]    a value of SIZE bytes (K, M: times 1024), or standard input
 *   kv_client URL get KEY           to standard output
 *   kv_client URL del KEY
 *
 * Compiled with -DKV_TCP it uses libtirpc alone: then URL is a host, whose rpcbind knows the port.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kv.h"
#ifndef KV_TCP
#include "kv_bulk.h"
#endif

static char buf[KV_VALUE_MAX];

/* Return: 0: not a size, or more than a value may have */
static int get_value(const char *size, u_int *ret)
{
	char *end;
	unsigned long n;

	if (!size) {
		*ret = (u_int)fread(buf, 1, sizeof(buf), stdin);
		return getchar() == EOF;
	}
	n = strtoul(size, &end, 10);
	if (end == size || n > sizeof(buf))
		return 0;
	n *= *end == 'M' ? 1024 * 1024 : *end == 'K' ? 1024 : 1;
	end += *end == 'M' || *end == 'K';
	memset(buf, 'x', sizeof(buf));
	*ret = (u_int)n;
	return !*end && n <= sizeof(buf);
}

static int done(CLIENT *clnt, const int *error, const char *key)
{
	if (!error)
		clnt_perror(clnt, "kv_client");
	else if (*error)
		fprintf(stderr, "kv_client: %s: %s\n", key, strerror(*error));
	return !error || *error;
}

static int get(CLIENT *clnt, char *key)
{
	kv_found found = { .error = 0, .kv_found_u.value = { .value_len = sizeof(buf), .value_val = buf } };
	static const struct timeval limit = { .tv_sec = 60 };
	int error;

	/* the value goes directly into buf: xdr_bytes() keeps a pointer that is set */
	if (clnt_call(clnt, KV_GET, (xdrproc_t)xdr_wrapstring, (caddr_t)&key, (xdrproc_t)xdr_kv_found, (caddr_t)&found, limit))
		return done(clnt, NULL, key);
	error = found.error;
	if (!error)
		fwrite(buf, 1, found.kv_found_u.value.value_len, stdout);
	return done(clnt, &error, key);
}

int main(int argc, char **argv)
{
	kv_pair pair;
	CLIENT *clnt;
	int rc = 2;

	if (argc < 4 || (strcmp(argv[2], "put") && strcmp(argv[2], "get") && strcmp(argv[2], "del"))) {
		fprintf(stderr, "usage: kv_client URL put KEY [SIZE] | get KEY | del KEY\n");
		return 2;
	}
	if (!strcmp(argv[2], "put") && !get_value(argv[4], &pair.value.value_len)) {
		fprintf(stderr, "kv_client: a value has at most %u bytes\n", KV_VALUE_MAX);
		return 2;
	}
#ifdef KV_TCP
	clnt = clnt_create(argv[1], KV_PROGRAM, KV_VERSION, "tcp");
#else
	clnt = rpcrdma_clnt_create(argv[1], KV_PROGRAM, KV_VERSION, &kv_attr); /* the line that changes */
#endif
	if (!clnt) {
		clnt_pcreateerror("kv_client");
		return 1;
	}
	if (!strcmp(argv[2], "put")) {
		pair.key = argv[3];
		pair.value.value_val = buf;
		rc = done(clnt, kv_put_1(pair, clnt), argv[3]);
	} else {
		rc = !strcmp(argv[2], "get") ? get(clnt, argv[3]) : done(clnt, kv_del_1(argv[3], clnt), argv[3]);
	}
	clnt_destroy(clnt);
	return rc;
}
