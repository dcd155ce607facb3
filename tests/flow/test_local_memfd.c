/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_local_memfd.c - a leatd, and a client that pass each other something else than a memfd of their memory
 *
 * The first connection is hostile: each kind of tests/lib/memfd_menu.h goes instead of the client's memory,
 * or of leatd's rings. Where that ends the connection, the next one is honest, and the call is
 * sent again: leatd is there, and the data is right.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "local_int.h"
#include "memfd_menu.h"
#include "nfs_peer.h"

LOG_DEFINE("test_local_memfd");

#define BYTES (1u << 20)
#define MEM_BYTES ((2u << 20) + 4096) /* no multiple of a huge page */

static const char *const options[] = { "rw,no_root_squash", "rw,no_root_squash,trust_clients", NULL };

static unsigned cuts;

static void on_down(struct nfs_peer *p)
{
	(void)p;
	cuts++;
	memfd_menu_swap(0, 0, 0);
}

static void pattern(uint8_t *mem, unsigned seed)
{
	for (uint32_t i = 0; i < BYTES; i++)
		mem[i] = (uint8_t)(i * 7 + i / 251 + seed);
}

static bool can_make(enum memfd_kind kind)
{
	uint64_t claim;
	int fd = memfd_menu_make(kind, MEM_BYTES, &claim);

	if (fd < 0)
		print_message("SKIP: %s cannot be made here\n", memfd_menu_name(kind));
	else
		close(fd);
	return fd >= 0;
}

/* A memfd of MEM_BYTES again: the library gave memory that a dying connection still reached other pages. */
static uint8_t *fresh_memory(struct nfs_peer *p, uint8_t *old)
{
	void *mem;

	rpcrdma_mem_free(p->domain, old);
	assert_int_equal(rpcrdma_mem_alloc(p->domain, MEM_BYTES, &mem), 0);
	return mem;
}

/* A new connection, which passes one of @kind with messages of @type. */
static void connect_hostile(struct nfs_peer *p, enum hs_type type, enum memfd_kind kind)
{
	nfs_peer_disconnect(p);
	cuts = 0;
	memfd_menu_swap(type, kind, type == HS_REGION ? MEM_BYTES : 0);
	nfs_peer_connect(p, RPCRDMA_LOCAL, 0);
}

static void client_memory(void **state)
{
	uint8_t *want = malloc(BYTES), *got = malloc(BYTES), *mem = NULL;
	struct nfs_fh fh;
	struct nfs_peer p;
	WRITE3resok ok;
	uint32_t n;
	bool eof;

	(void)state;
	assert_non_null(want);
	assert_non_null(got);
	nfs_peer_create(&p, RPCRDMA_LOCAL, options);
	p.down = on_down;
	for (unsigned exp = 0; exp < 2; exp++) {
		assert_int_equal(nfs_peer_mount(&p, exp ? "/e1" : "/e0", &p.root), MNT3_OK);
		assert_int_equal(nfs_peer_create_file(&p, &p.root, "f", &fh), NFS3_OK);
		for (enum memfd_kind kind = 0; kind < MEMFD_KINDS; kind++) {
			bool taken = kind >= MEMFD_KINDS_REFUSED, hostile = kind < MEMFD_CUT_KINDS;
			struct stat st;

			if (!can_make(kind))
				continue;
			pattern(want, kind);
			mem = fresh_memory(&p, mem);
			connect_hostile(&p, HS_REGION, kind);
			memcpy(mem, want, BYTES);
			if (!taken) { /* it would write what is in its memfd */
				assert_int_equal(nfs_peer_write(&p, &fh, 0, mem, BYTES, FILE_SYNC, &ok), NFS3_OK);
				assert_int_equal(cuts, hostile);
				mem = fresh_memory(&p, mem);
				connect_hostile(&p, HS_REGION, kind);
			} else {
				memfd_menu_swap(0, 0, 0);
				assert_int_equal(nfs_peer_write(&p, &fh, 0, want, BYTES, FILE_SYNC, &ok), NFS3_OK);
				memfd_menu_swap(HS_REGION, kind, MEM_BYTES);
			}
			memset(mem, 0, BYTES);
			assert_int_equal(nfs_peer_read(&p, &fh, 0, mem, BYTES, &n, &eof), NFS3_OK);
			assert_int_equal(n, BYTES);
			assert_int_equal(cuts, hostile);
			if (taken) {
				assert_int_equal(pread(memfd_menu_evil(), got, BYTES, 0), BYTES);
				assert_int_equal(fstat(memfd_menu_evil(), &st), 0);
				assert_int_equal(st.st_size, MEM_BYTES);
			}
			assert_memory_equal(taken ? got : mem, want, BYTES);
		}
	}
	memfd_menu_swap(0, 0, 0);
	rpcrdma_mem_free(p.domain, mem);
	nfs_peer_destroy(&p);
	assert_false(memfd_menu_mapped());
	free(want);
	free(got);
}

static void rings_of_a_server(void **state)
{
	struct nfs_peer p;

	(void)state;
	nfs_peer_create(&p, RPCRDMA_LOCAL, options);
	for (enum memfd_kind kind = 0; kind < MEMFD_KINDS_REFUSED; kind++) {
		GETATTR3args args = { .object = nfs_peer_fh(&p.root) };
		GETATTR3res res = { 0 };
		struct nfs_fh root;
		int rc;

		if (kind == MEMFD_SHORT || !can_make(kind)) /* rings claim no size */
			continue;
		connect_hostile(&p, HS_ACCEPT, kind);
		rc = nfs_peer_rpc(&p, NFS_PROGRAM, NFS_V3, NFSPROC3_GETATTR, (xdrproc_t)xdr_GETATTR3args,
				  &args, (xdrproc_t)xdr_GETATTR3res, &res, NULL, 0);
		assert_int_equal(rc, kind == MEMFD_READ_ONLY ? -EACCES :
				     kind == MEMFD_NO_WRITES ? -EPERM : -EPROTO);
		nfs_peer_disconnect(&p);
		memfd_menu_swap(0, 0, 0);
		nfs_peer_connect(&p, RPCRDMA_LOCAL, 0);
		assert_int_equal(nfs_peer_mount(&p, "/e0", &root), MNT3_OK);
	}
	nfs_peer_destroy(&p);
	assert_false(memfd_menu_mapped());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(client_memory),
		cmocka_unit_test(rings_of_a_server),
	};

	return cmocka_run_group_tests_name("local_memfd", tests, NULL, NULL);
}
