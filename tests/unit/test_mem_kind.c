/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_mem_kind.c - the kinds of memory, and a device's that no CPU may touch
 *
 * No device here has such memory to give, nor takes it: its dma-buf is a file of ours, and the device that
 * it is registered with a fake, of which only the call of libibverbs is real.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "shm_map.h"
#include "pool.h"
#ifdef HAVE_VERBS
#include "verbs_int.h"
#endif

#define MIB ((size_t)1 << 20)

/* ---- a device that takes everything ---- */

static struct rr_mr_attr seen;
static unsigned alive;
static int refuse;

static int fake_reg(struct rr_pd *pd, const struct rr_mr_attr *attr, struct rr_mr **ret)
{
	struct rr_mr *mr;

	seen = *attr;
	if (refuse)
		return refuse;
	mr = calloc(1, sizeof(*mr));
	assert_non_null(mr);
	*mr = (struct rr_mr){ .pd = pd, .addr = attr->addr, .len = attr->len, .access = attr->access };
	alive++;
	*ret = mr;
	return 0;
}

static int fake_dereg(struct rr_mr *mr)
{
	alive--;
	free(mr);
	return 0;
}

static const struct rr_fabric_ops fake_ops = { .name = "fake", .mr_reg = fake_reg, .mr_dereg = fake_dereg };
static struct rr_fabric fabric = { .ops = &fake_ops };
static struct rr_pd pd = { .fabric = &fabric };

/* ---- kinds ---- */

static void what_the_cpu_may_touch(void **state)
{
	static const struct rr_mem_kind *const kinds[] = { &rr_mem_kind_anonymous,
							   &rr_mem_kind_memfd };
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct rr_extent x;
		struct rr_mr *mr;
		uint8_t zero = 1;

		assert_false(kinds[i]->dmabuf);
		assert_int_equal(rr_extent_get(kinds[i], NULL, MIB, &x), 0);
		memset(x.mem, 0x5a, MIB);
		assert_int_equal(rr_extent_reg(&x, &pd, RR_ACCESS_LOCAL_WRITE, &mr), 0);
		assert_ptr_equal(seen.addr, x.mem);
		assert_int_equal(seen.fd, x.fd);
		assert_false(seen.dmabuf);
		if (x.fd >= 0) { /* others can map it, and no process can truncate it */
			assert_int_equal(pread(x.fd, &zero, 1, MIB - 1), 1);
			assert_int_equal(zero, 0x5a);
			assert_int_equal(ftruncate(x.fd, 0), -1);
		}
		assert_int_equal(rr_mr_dereg(mr), 0);
		rr_extent_put(&x);
	}
}

/* KiB of the mapping at @mem that smaps says are mapped as huge pages of shared memory. */
static unsigned long huge_kib(const void *mem)
{
	FILE *smaps = fopen("/proc/self/smaps", "r");
	unsigned long start, end, kib = 0;
	bool here = false;
	char line[256];

	assert_non_null(smaps);
	while (fgets(line, sizeof(line), smaps)) {
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
			here = start <= (uintptr_t)mem && (uintptr_t)mem < end;
		else if (here)
			(void)sscanf(line, "ShmemPmdMapped: %lu kB", &kib);
	}
	fclose(smaps);
	return kib;
}

/* Has this kernel huge pages for a file in memory? Asked of one of our own. */
static bool has_huge(void)
{
	int f = memfd_create("trial", MFD_CLOEXEC);
	uint8_t *map = mmap(NULL, 4 * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *at;
	bool has;

	assert_true(f >= 0 && map != MAP_FAILED);
	at = (uint8_t *)(((uintptr_t)map + 2 * MIB - 1) & ~(uintptr_t)(2 * MIB - 1));
	assert_int_equal(ftruncate(f, 2 * MIB), 0);
	assert_ptr_equal(mmap(at, 2 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, f, 0), at);
	*at = 1;
	has = !madvise(at, 2 * MIB, 25 /* MADV_COLLAPSE */);
	munmap(map, 4 * MIB);
	close(f);
	return has;
}

static void shared_memory_is_huge(void **state)
{
	const size_t bytes = 4 * MIB + 4096;
	struct rr_extent x;

	(void)state;
	if (!has_huge()) {
		print_message("SKIP: no huge pages of shared memory here (MADV_COLLAPSE)\n");
		skip();
	}
	assert_int_equal(rr_extent_get(&rr_mem_kind_memfd, NULL, bytes, &x), 0);
	assert_int_equal((uintptr_t)x.mem % (2 * MIB), 0);
	assert_int_equal(huge_kib(x.mem), 4096);
	for (size_t i = 0; i < bytes; i++) /* and it is as empty as any */
		assert_int_equal(((uint8_t *)x.mem)[i], 0);
	((uint8_t *)x.mem)[bytes - 1] = 1;
	rr_extent_put(&x);
}

/* As a peer maps it: by huge pages, too. And a length that is none leaves nothing mapped behind it. */
static void mapped_by_a_peer(void **state)
{
	const size_t odd = 4 * MIB + 5;
	struct rr_extent x;
	uint8_t *map;

	(void)state;
	if (!has_huge()) {
		print_message("SKIP: no huge pages of shared memory here (MADV_COLLAPSE)\n");
		skip();
	}
	assert_int_equal(rr_extent_get(&rr_mem_kind_memfd, NULL, 4 * MIB + 4096, &x), 0);
	map = rr_shm_map(x.fd, odd);
	assert_ptr_not_equal(map, MAP_FAILED);
	assert_int_equal((uintptr_t)map % (2 * MIB), 0);
	for (size_t i = 0; i < odd; i += 4096)
		map[i] = (uint8_t)(i >> 12);
	assert_int_equal(huge_kib(map), 4096);
	assert_int_equal(((uint8_t *)x.mem)[4095 * 4096 % (4 * MIB)], 4095 % 1024 & 0xff);
	assert_int_equal(munmap(map, odd), 0);
	assert_int_equal(msync(map + 4 * MIB + 4096, 4096, MS_ASYNC), -1);
	rr_extent_put(&x);
}

/* The kernel would round up, and cover what lies behind; whether there are free huge pages or not. */
static void huge_file_is_refused(void **state)
{
	int f = memfd_create("huge", MFD_CLOEXEC | MFD_HUGETLB);

	(void)state;
	if (f < 0 || ftruncate(f, 4 * MIB)) {
		print_message("SKIP: no memfd of huge pages here\n");
		skip();
	}
	for (size_t bytes = 4096; bytes <= 4 * MIB; bytes += 2 * MIB - 4096) {
		errno = 0;
		assert_ptr_equal(rr_shm_map(f, bytes), MAP_FAILED);
		assert_int_equal(errno, EINVAL);
	}
	close(f);
}

static void what_there_is_not(void **state)
{
	struct rr_source src = { .fd = -1, .bytes = MIB };
	struct rr_extent x;

	(void)state;
	assert_int_equal(rr_extent_get(&rr_mem_kind_huge, NULL, 4096, &x), -EOPNOTSUPP);
	assert_int_equal(rr_extent_get(&rr_mem_kind_dmabuf, &src, 2 * MIB, &x), -ENOMEM);
	assert_int_equal(rr_extent_get(&rr_mem_kind_anonymous, NULL, SIZE_MAX - 4095, &x), -ENOMEM);
	assert_int_equal(rr_extent_get(&rr_mem_kind_memfd, NULL, SIZE_MAX - 4095, &x), -ENOMEM);
}

/* ---- a device's memory ---- */

static struct rpcrdma_domain *d;
static struct rpcrdma_engine *e;
static int fd;

static void open_domain(size_t bytes)
{
	struct rpcrdma_domain_attr attr = { .dmabuf_fd = fd, .dmabuf_bytes = bytes };

	assert_int_equal(rpcrdma_domain_create(&attr, &d), 0);
	assert_int_equal(rpcrdma_engine_create(d, NULL, &e), 0);
}

static void close_domain(void)
{
	rpcrdma_engine_destroy(e);
	rpcrdma_domain_destroy(d);
}

static int set_up(void **state)
{
	(void)state;
	fd = memfd_create("device", MFD_CLOEXEC);
	refuse = 0;
	return fd < 0;
}

static int tear_down(void **state)
{
	(void)state;
	close(fd);
	assert_int_equal(alive, 0);
	return 0;
}

/* Only rpcrdma_buf_get_far() returns buffers of it. Their addresses are offsets. A rest smaller than a
 * buffer is not used. */
static void far_buffers(void **state)
{
	struct rpcrdma_pool_stats s;
	struct rr_dev dev = { .fabric = &fabric, .pd = &pd };
	struct rpcrdma_buf *b[4], *near;

	(void)state;
	open_domain(3 * MIB + 4096);
	assert_int_equal(rr_pool_attach(d, &dev), 0);
	assert_true(seen.dmabuf);
	assert_int_equal(seen.fd, fd);
	assert_int_equal(seen.fd_off, 0);
	assert_int_equal((uintptr_t)seen.addr, 0);
	assert_int_equal(seen.len, 3 * MIB);
	assert_int_equal(seen.access, RR_ACCESS_LOCAL_WRITE);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(rpcrdma_buf_get_far(e, 1, &b[i]), 0);
		assert_true(b[i]->far);
		assert_int_equal((uintptr_t)b[i]->addr, i * MIB);
		assert_int_equal(b[i]->bytes, MIB);
		assert_non_null(rr_buf_mr(b[i], &dev));
	}
	assert_int_equal(rpcrdma_buf_get_far(e, 1, &b[3]), -ENOBUFS);
	assert_int_equal(rpcrdma_buf_get_far(e, MIB + 1, &b[3]), -EMSGSIZE);
	assert_int_equal(rpcrdma_buf_get(e, MIB, &near), 0); /* that is another thing */
	assert_false(near->far);
	rpcrdma_domain_pool_stats(d, &s);
	assert_int_equal(s.far, 3 * MIB);
	rpcrdma_buf_put(e, near);
	for (unsigned i = 0; i < 3; i++)
		rpcrdma_buf_put(e, b[i]);
	rr_pool_drain(e);
	d->pool_idle_ns = 0;
	pthread_mutex_lock(&d->lock);
	assert_false(rr_pool_trim(d)); /* nothing of it was ever pinned by us: it stays */
	pthread_mutex_unlock(&d->lock);
	assert_int_equal(rpcrdma_buf_get_far(e, 1, &b[0]), 0);
	rpcrdma_buf_put(e, b[0]);
	close_domain();
}

/* A device that cannot reach it is not opened, and says why; nothing stays registered. */
static void refused(void **state)
{
	struct rpcrdma_domain_attr attr = { .dmabuf_fd = fd, .dmabuf_bytes = 4095 };
	struct rr_dev dev = { .fabric = &fabric, .pd = &pd }, *local;
	struct rpcrdma_buf *near;

	(void)state;
	assert_int_equal(rpcrdma_domain_create(&attr, &d), -EINVAL);
	open_domain(4 * MIB);
	assert_int_equal(rpcrdma_buf_get(e, 1, &near), 0);
	assert_int_equal(rr_domain_dev(d, RPCRDMA_LOCAL, &local), -EOPNOTSUPP);
	refuse = -EOPNOTSUPP;
	assert_int_equal(rr_pool_attach(d, &dev), -EOPNOTSUPP);
	assert_int_equal(d->ndevs, 0);
	rpcrdma_buf_put(e, near);
	close_domain();
	attr.dmabuf_bytes = 0; /* and a domain without any has none to lend */
	assert_int_equal(rpcrdma_domain_create(&attr, &d), 0);
	assert_int_equal(rpcrdma_engine_create(d, NULL, &e), 0);
	assert_int_equal(rpcrdma_buf_get_far(e, 1, &near), -EOPNOTSUPP);
	close_domain();
}

#ifdef HAVE_VERBS
struct ibv_mr *__wrap_ibv_reg_dmabuf_mr(struct ibv_pd *ibpd, uint64_t offset, size_t length,
					uint64_t iova, int dmabuf, int access);

static struct ibv_mr theirs = { .lkey = 7, .rkey = 7 };
static int verbs_refuses;

struct ibv_mr *__wrap_ibv_reg_dmabuf_mr(struct ibv_pd *ibpd, uint64_t offset, size_t length,
					uint64_t iova, int dmabuf, int access)
{
	assert_non_null(ibpd);
	assert_int_equal(offset, 8192);
	assert_int_equal(length, MIB);
	assert_int_equal(iova, 8192);
	assert_int_equal(dmabuf, fd);
	assert_int_equal(access, IBV_ACCESS_LOCAL_WRITE);
	errno = verbs_refuses;
	return verbs_refuses ? NULL : &theirs;
}

/* How libibverbs registers it. */
static void by_verbs(void **state)
{
	struct verbs_fabric f = { .iwarp = false };
	struct ibv_pd ibpd = { 0 };
	struct verbs_pd vpd = { .base.fabric = &f.base, .pd = &ibpd };
	struct rr_mr_attr attr = { .addr = (void *)8192, .len = MIB, .fd = fd, .fd_off = 8192,
				   .dmabuf = true, .access = RR_ACCESS_LOCAL_WRITE };
	struct rr_mr *mr;

	(void)state;
	verbs_refuses = EOPNOTSUPP;
	assert_int_equal(rr_verbs_mr_reg(&vpd.base, &attr, &mr), -EOPNOTSUPP);
	verbs_refuses = 0;
	assert_int_equal(rr_verbs_mr_reg(&vpd.base, &attr, &mr), 0);
	assert_ptr_equal(to_mr(mr)->mr, &theirs);
	assert_int_equal(mr->rkey, 0);
	free(to_mr(mr));
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_cpu_may_touch),
		cmocka_unit_test(shared_memory_is_huge),
		cmocka_unit_test(mapped_by_a_peer),
		cmocka_unit_test(huge_file_is_refused),
		cmocka_unit_test(what_there_is_not),
		cmocka_unit_test_setup_teardown(far_buffers, set_up, tear_down),
		cmocka_unit_test_setup_teardown(refused, set_up, tear_down),
#ifdef HAVE_VERBS
		cmocka_unit_test_setup_teardown(by_verbs, set_up, tear_down),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
