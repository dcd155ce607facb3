/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_server_trust.c - trust_clients: what is written is taken from where it lies
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/log.h"
#include "nfs_peer.h"
#include "inside.h"

LOG_DEFINE("test_server_trust");

#define BYTES (1u << 20)

static const char *const options[] = {
	"rw,no_root_squash",
	"rw,no_root_squash,trust_clients",
	"rw,no_root_squash,trust_clients,overlap=streams",
	NULL,
};

static uint8_t file[BYTES];

static void make(struct nfs_peer *p, unsigned exp, struct nfs_fh *ret)
{
	struct nfs_fh root;
	char export[8];

	(void)snprintf(export, sizeof(export), "/e%u", exp);
	assert_int_equal(nfs_peer_mount(p, export, &root), MNT3_OK);
	assert_int_equal(nfs_peer_create_file(p, &root, "f", ret), NFS3_OK);
}

static void is_in_file(struct nfs_peer *p, unsigned exp, const uint8_t *data, uint32_t len)
{
	char name[16];
	FILE *f;

	(void)snprintf(name, sizeof(name), "e%u/f", exp);
	f = fopen(tmp_dir_path(&p->dir, name), "r");
	assert_non_null(f);
	assert_int_equal(fread(file, 1, BYTES, f), len);
	assert_int_equal(fclose(f), 0);
	assert_memory_equal(file, data, len);
}

/* bytes written, of them: pulled, and taken from where they were */
static void moved(struct nfs_peer *p, unsigned exp, const uint8_t *data, uint32_t len, uint64_t pulled,
		  uint64_t direct)
{
	struct rpcrdma_stats before, after;
	struct nfs_fh fh;
	WRITE3resok ok;

	make(p, exp, &fh);
	rpcrdma_domain_stats(server_domain(p->srv), &before);
	assert_int_equal(nfs_peer_write(p, &fh, 0, data, len, FILE_SYNC, &ok), NFS3_OK);
	rpcrdma_domain_stats(server_domain(p->srv), &after);
	assert_int_equal(ok.count, len);
	assert_int_equal(after.bytes_pulled - before.bytes_pulled, pulled);
	assert_int_equal(after.bytes_direct - before.bytes_direct, direct);
	is_in_file(p, exp, data, len);
}

static void taken_or_pulled(void **state)
{
	struct nfs_peer p;
	uint8_t *mem;
	void *map;

	(void)state;
	nfs_peer_create(&p, RPCRDMA_LOCAL, options);
	assert_int_equal(rpcrdma_mem_alloc(p.domain, BYTES, &map), 0);
	mem = map;
	for (uint32_t i = 0; i < BYTES; i++)
		mem[i] = (uint8_t)(i * 7 + i / 251);
	moved(&p, 0, mem, BYTES, BYTES, 0);	 /* no option says that the peer is trusted */
	moved(&p, 1, mem, BYTES, 0, BYTES);
	moved(&p, 2, mem, BYTES, BYTES, 0);	 /* both at once cannot be had */
	rpcrdma_mem_free(p.domain, map);
	nfs_peer_destroy(&p);
}

/* memory that cannot be mapped is pulled as ever */
static void ordinary_memory(void **state)
{
	struct nfs_peer p;
	uint8_t *mem = malloc(BYTES);

	(void)state;
	assert_non_null(mem);
	memset(mem, 'x', BYTES);
	nfs_peer_create(&p, RPCRDMA_LOCAL, options);
	moved(&p, 1, mem, BYTES, BYTES, 0);
	nfs_peer_destroy(&p);
	free(mem);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(taken_or_pulled),
		cmocka_unit_test(ordinary_memory),
	};

	return cmocka_run_group_tests_name("server_trust", tests, NULL, NULL);
}
