/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * kv_server.c - serves kv.x; the values are in memory
 *
 *   kv_server URL...
 *
 * Compiled with -DKV_TCP it uses libtirpc alone: then URL is "tcp", and rpcbind tells clients the port.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kv.h"
#ifndef KV_TCP
#include "kv_bulk.h"
#endif

#define ITEMS_MAX 1024

void kv_program_1(struct svc_req *rqstp, SVCXPRT *transp); /* of rpcgen */

static kv_pair items[ITEMS_MAX]; /* key NULL: free */

static kv_pair *find(const char *key)
{
	for (int i = 0; i < ITEMS_MAX; i++)
		if (key ? items[i].key && !strcmp(items[i].key, key) : !items[i].key)
			return &items[i];
	return NULL;
}

static void clear(kv_pair *p)
{
	free(p->key);
	free(p->value.value_val);
	memset(p, 0, sizeof(*p));
}

int *kv_put_1_svc(kv_pair pair, struct svc_req *rqstp)
{
	static int error;
	kv_pair *p = find(pair.key), copy = pair;

	(void)rqstp;
	p = p ? p : find(NULL);
	copy.key = strdup(pair.key);
	copy.value.value_val = malloc(pair.value.value_len + 1);
	error = !p ? ENOSPC : !copy.key || !copy.value.value_val ? ENOMEM : 0;
	if (error) {
		clear(&copy);
		return &error;
	}
	memcpy(copy.value.value_val, pair.value.value_val, pair.value.value_len);
	clear(p);
	*p = copy;
	return &error;
}

kv_found *kv_get_1_svc(char *key, struct svc_req *rqstp)
{
	static kv_found found;
	const kv_pair *p = find(key);

	(void)rqstp;
	found.error = p ? 0 : ENOENT;
	if (p) {
		found.kv_found_u.value.value_len = p->value.value_len;
		found.kv_found_u.value.value_val = p->value.value_val;
	}
	return &found;
}

int *kv_del_1_svc(char *key, struct svc_req *rqstp)
{
	static int error;
	kv_pair *p = find(key);

	(void)rqstp;
	error = p ? 0 : ENOENT;
	if (p)
		clear(p);
	return &error;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
#ifdef KV_TCP
		int rc = svc_create(kv_program_1, KV_PROGRAM, KV_VERSION, argv[i]) ? 0 : -EADDRNOTAVAIL;
#else
		int rc = rpcrdma_svc_create(kv_program_1, KV_PROGRAM, KV_VERSION, argv[i], &kv_attr); /* the line that changes */
#endif
		if (rc) {
			fprintf(stderr, "kv_server: %s: %s\n", argv[i], strerror(-rc));
			return 1;
		}
	}
	if (argc < 2) {
		fprintf(stderr, "usage: kv_server URL...\n");
		return 2;
	}
	puts("ready");
	fflush(stdout);
	svc_run();
	return 1;
}
