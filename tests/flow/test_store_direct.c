/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_store_direct.c - exports that leave the page cache out, over TCP and the local fabric, with
 * local processes beside
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "nfs_peer.h"
#include "inside.h"

#define BYTES (1u << 20)
#define BLOCK 4096u
#define OTHER 4711u

static const char *const options[] = {
	"rw,no_root_squash,read=direct,write=direct",
	"rw,no_root_squash,read=direct,write=cached",
	"rw,no_root_squash,read=cached,write=direct",
	"rw,no_root_squash,read=auto,write=direct",
};

static uint8_t shadow[2 * BYTES];

static void fill(uint8_t *p, uint32_t n, unsigned seed)
{
	for (uint32_t i = 0; i < n; i++)
		p[i] = (uint8_t)(i * 13 + i / 509 + seed * 5);
}

static void commit(struct nfs_peer *p, const struct nfs_fh *fh)
{
	COMMIT3args args = { .file = nfs_peer_fh(fh) };
	COMMIT3res res = { 0 };

	NFS_PEER_CALL(p, COMMIT, &args, &res, NULL, 0);
	assert_int_equal(res.status, NFS3_OK);
	xdr_free((xdrproc_t)xdr_COMMIT3res, (char *)&res);
}

static void write_all(struct nfs_peer *p, const struct nfs_fh *fh, uint64_t off, uint32_t len,
		      stable_how stable)
{
	WRITE3resok ok;

	assert_int_equal(nfs_peer_write(p, fh, off, shadow + off, len, stable, &ok), NFS3_OK);
	assert_int_equal(ok.count, len);
	assert_int_equal(ok.committed, stable);
}

static void read_check(struct nfs_peer *p, const struct nfs_fh *fh, uint64_t off, uint32_t len,
		       uint8_t *mem)
{
	uint32_t n;
	bool eof;

	memset(mem, 0xee, len);
	assert_int_equal(nfs_peer_read(p, fh, off, mem, len, &n, &eof), NFS3_OK);
	assert_int_equal(n, len);
	assert_memory_equal(mem, shadow + off, len);
}

static void file_check(int fd, uint64_t size, uint8_t *mem)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, size);
	assert_int_equal(pread(fd, mem, size, 0), size);
	assert_memory_equal(mem, shadow, size);
}

/* what a client and a local process do to one file, each seeing what the other did */
static void by_turns(struct nfs_peer *p, unsigned exp, uint8_t *mem)
{
	static const uint32_t offs[] = { 0, 1, 512, 4095, 4096, 70000, 262144 };
	static const uint32_t lens[] = { 1, 100, 4096, 4097, 65536, 262144 };
	uint64_t size = BYTES / 2 + 777;
	char name[16], export[8];
	struct nfs_fh root, fh;
	unsigned seed = exp;
	int fd;

	snprintf(export, sizeof(export), "/e%u", exp);
	snprintf(name, sizeof(name), "e%u/f", exp);
	assert_int_equal(nfs_peer_mount(p, export, &root), MNT3_OK);
	assert_int_equal(nfs_peer_create_file(p, &root, "f", &fh), NFS3_OK);
	fd = open(tmp_dir_path(&p->dir, name), O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	fill(shadow, sizeof(shadow), seed);
	write_all(p, &fh, 0, (uint32_t)size, UNSTABLE);
	commit(p, &fh);
	file_check(fd, size, mem);
	for (size_t o = 0; o < ARRAY_SIZE(offs); o++) {
		for (size_t l = 0; l < ARRAY_SIZE(lens); l++) {
			fill(shadow + offs[o], lens[l], ++seed);
			write_all(p, &fh, offs[o], lens[l], seed % 3);
			file_check(fd, size, mem);
			fill(shadow + offs[o] / 2, lens[l], ++seed);
			assert_int_equal(pwrite(fd, shadow + offs[o] / 2, lens[l], offs[o] / 2),
					 lens[l]);
			read_check(p, &fh, offs[o], lens[l], mem);
			read_check(p, &fh, offs[o] / 3, lens[l], mem);
		}
	}
	read_check(p, &fh, size - 100, 100, mem);
	close(fd);
}

static void every_mix(enum rpcrdma_transport transport)
{
	struct nfs_peer p;
	void *mem;

	nfs_peer_create(&p, transport, options);
	assert_int_equal(rpcrdma_mem_alloc(p.domain, BYTES, &mem), 0);
	for (unsigned i = 0; i < ARRAY_SIZE(options); i++)
		by_turns(&p, i, mem);
	assert_true(server_counters(p.srv, "store_aio") > 0);
	rpcrdma_mem_free(p.domain, mem);
	nfs_peer_destroy(&p);
}

static void over_tcp(void **state)
{
	(void)state;
	every_mix(RPCRDMA_TCP);
}

static void over_local(void **state)
{
	(void)state;
	every_mix(RPCRDMA_LOCAL);
}

/* From the disk into the caller's memory: no thread copies a byte of the payload. */
static void nothing_is_copied(void **state)
{
	struct rpcrdma_stats before, after;
	struct nfs_fh fh;
	struct nfs_peer p;
	uint64_t aio;
	void *mem;

	(void)state;
	nfs_peer_create(&p, RPCRDMA_LOCAL, options);
	assert_int_equal(rpcrdma_mem_alloc(p.domain, BYTES, &mem), 0);
	assert_int_equal(nfs_peer_create_file(&p, &p.root, "f", &fh), NFS3_OK);
	fill(shadow, BYTES, 1);
	write_all(&p, &fh, 0, BYTES, FILE_SYNC);
	aio = server_counters(p.srv, "store_aio");
	rpcrdma_domain_stats(server_domain(p.srv), &before);
	for (unsigned i = 0; i < 4; i++)
		read_check(&p, &fh, i * BYTES / 4, BYTES / 4, mem);
	rpcrdma_domain_stats(server_domain(p.srv), &after);
	assert_int_equal(server_counters(p.srv, "store_aio"), aio + 4);
	assert_int_equal(after.bytes_direct - before.bytes_direct, BYTES);
	assert_true(after.bytes_copied - before.bytes_copied < BLOCK); /* calls and answers */
	rpcrdma_mem_free(p.domain, mem);
	nfs_peer_destroy(&p);
}

/* The kernel takes the bit away when a user writes, and leaves it when root does. */
static void as_the_caller(void **state)
{
	static uint8_t mem[2 * BLOCK];
	struct nfs_fh fh;
	struct nfs_peer p;
	struct stat st;
	char path[256];

	(void)state;
	if (geteuid()) {
		print_message("as_the_caller: only root can be somebody else\n");
		skip();
	}
	nfs_peer_create(&p, RPCRDMA_TCP, options);
	assert_int_equal(nfs_peer_create_file(&p, &p.root, "f", &fh), NFS3_OK);
	snprintf(path, sizeof(path), "%s", tmp_dir_path(&p.dir, "e0/f"));
	write_all(&p, &fh, 0, 2 * BLOCK, FILE_SYNC);
	assert_int_equal(chown(path, OTHER, OTHER), 0);
	assert_int_equal(chmod(path, 06755), 0);
	write_all(&p, &fh, 0, BLOCK, UNSTABLE);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 06755);
	p.cred.uid = p.cred.gid = OTHER;
	write_all(&p, &fh, 0, BLOCK, UNSTABLE);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0755);
	read_check(&p, &fh, 0, 2 * BLOCK, mem);
	nfs_peer_destroy(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(over_tcp),
		cmocka_unit_test(over_local),
		cmocka_unit_test(nothing_is_copied),
		cmocka_unit_test(as_the_caller),
	};
	struct data_conf d;
	char why[128];

	data_conf_init(&d);
	d.read = DATA_READ_DIRECT;
#ifndef HAVE_AIO
	printf("SKIP: this leatd has no direct I/O: it was built without libaio\n");
	return 77;
#endif
	if (data_conf_check(&d, why, sizeof(why))) {
		printf("0 passed, 1 failed: %s\n", why);
		return 1;
	}
	return tmp_dir_has_direct() ? cmocka_run_group_tests_name("store_direct", tests, NULL, NULL) : 77;
}
