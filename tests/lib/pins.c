/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * pins.c - memory of the local fabric as a device sees it: pages, not addresses
 *
 * Operation:  A peer of the local fabric accesses the current pages at the address of a registration. A device accesses
 *             the pages that were there at registration, even if the address has other pages now. A registration that
 *             is kept too long loses data this way, and a test must be able to show it. An io_uring pins pages like a
 *             device (FOLL_LONGTERM) and moves bytes to and from them. So this filter makes each registration one of
 *             its buffers, and has the fabric call it for each copy between registered memory and a bounce area
 *             (struct rr_local_attr, `copy`). Memory in a memfd is left alone.
 * Memory:     One io_uring per fabric: a table of buffers, most of them empty, and one request at a time.
 *             RLIMIT_MEMLOCK counts.
 * Threads:    Any; the lock.
 * Errors:     -ENOMEM: the table is full, the limit is reached, or io_uring is not available; -EFAULT.
 *             io_uring refuses memory that is not writable: -EFAULT.
 * See:        io_uring_setup(2), io_uring_register(2), io_uring_enter(2).
 */
#include <errno.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "hooks.h"
#include "local.h"

#define PINS 4096u

struct pins {
	struct rr_filter base;
	pthread_mutex_t lock;
	const struct rr_mr *mr[PINS]; /* the registration whose pages buffer N has; NULL: none */
	int rc; /* of setting up the rest */
	int fd;
	void *rings;
	size_t rings_bytes, sqes_bytes;
	struct io_uring_sqe *sqes;
	_Atomic uint32_t *sq_tail, *cq_head, *cq_tail;
	uint32_t *sq_array, sq_mask, cq_mask;
	struct io_uring_cqe *cqes;
};

static const char pins_name[] = "pins";
static const struct rr_mr taken; /* its address: the buffer is in use, but not by a registration */

static int map_rings(struct pins *p, const struct io_uring_params *par)
{
	size_t sq = par->sq_off.array + par->sq_entries * sizeof(uint32_t);
	size_t cq = par->cq_off.cqes + par->cq_entries * sizeof(struct io_uring_cqe);
	uint8_t *at;

	p->rings_bytes = MAX(sq, cq);
	p->sqes_bytes = par->sq_entries * sizeof(struct io_uring_sqe);
	at = mmap(NULL, p->rings_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, p->fd,
		  IORING_OFF_SQ_RING);
	if (at == MAP_FAILED)
		return -ENOMEM;
	p->rings = at;
	p->sqes = mmap(NULL, p->sqes_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, p->fd,
		       IORING_OFF_SQES);
	if (p->sqes == MAP_FAILED) {
		p->sqes = NULL;
		return -ENOMEM;
	}
	p->sq_tail = (void *)(at + par->sq_off.tail);
	p->sq_array = (void *)(at + par->sq_off.array);
	p->sq_mask = *(uint32_t *)(void *)(at + par->sq_off.ring_mask);
	p->cq_head = (void *)(at + par->cq_off.head);
	p->cq_tail = (void *)(at + par->cq_off.tail);
	p->cq_mask = *(uint32_t *)(void *)(at + par->cq_off.ring_mask);
	p->cqes = (void *)(at + par->cq_off.cqes);
	return 0;
}

static struct pins *pins_of(const struct rr_fabric *fabric)
{
	return container_of(rr_filter_find(fabric, pins_name), struct pins, base);
}

static void pins_free(struct rr_filter *filter)
{
	struct pins *p = container_of(filter, struct pins, base);

	if (p->sqes)
		munmap(p->sqes, p->sqes_bytes);
	if (p->rings)
		munmap(p->rings, p->rings_bytes);
	if (p->fd >= 0)
		close(p->fd);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

static int set_up(struct pins *p)
{
	struct io_uring_rsrc_register table = { .nr = PINS, .flags = IORING_RSRC_REGISTER_SPARSE };
	struct io_uring_params par = { .flags = 0 };
	int rc;

	p->fd = (int)syscall(SYS_io_uring_setup, 1u, &par);
	if (p->fd < 0 || !(par.features & IORING_FEAT_SINGLE_MMAP))
		return -ENOMEM;
	rc = map_rings(p, &par);
	if (!rc && syscall(SYS_io_uring_register, p->fd, IORING_REGISTER_BUFFERS2, &table, sizeof(table)))
		rc = -ENOMEM;
	return rc;
}

/* Sets buffer @idx of the table to [@addr, @addr + @len); NULL: empty. */
static int set_buffer(const struct pins *p, uint32_t idx, void *addr, size_t len)
{
	struct iovec iov = { .iov_base = addr, .iov_len = len };
	struct io_uring_rsrc_update2 up = { .offset = idx, .data = (uintptr_t)&iov, .nr = 1 };

	if (syscall(SYS_io_uring_register, p->fd, IORING_REGISTER_BUFFERS_UPDATE, &up,
		    sizeof(up)) == 1)
		return 0;
	return errno == EFAULT ? -EFAULT : -ENOMEM;
}

static void empty(struct pins *p, uint32_t i)
{
	(void)set_buffer(p, i, NULL, 0); /* cannot fail */
	p->mr[i] = NULL;
}

/* Return: the buffer with the pages of @mr, or (NULL) an empty one; or PINS */
static uint32_t find(const struct pins *p, const struct rr_mr *mr)
{
	uint32_t i = 0;

	while (i < PINS && p->mr[i] != mr)
		i++;
	return i;
}

/* The fabric has a lock of its own, which is held around pins_copy(): it is never taken under ours. */
static int pins_reg(struct rr_pd *pd, const struct rr_mr_attr *attr, struct rr_mr **ret)
{
	struct pins *p = pins_of(pd->fabric);
	uint32_t i, old;
	int rc;

	if (attr->fd >= 0 || !(attr->access & (RR_ACCESS_REMOTE | RR_ACCESS_MW_BIND)))
		return p->base.next->mr_reg(pd, attr, ret);
	pthread_mutex_lock(&p->lock);
	i = find(p, NULL);
	rc = p->rc ? p->rc : i == PINS ? -ENOMEM : set_buffer(p, i, attr->addr, attr->len);
	if (!rc)
		p->mr[i] = &taken;
	pthread_mutex_unlock(&p->lock);
	if (rc)
		return rc;
	rc = p->base.next->mr_reg(pd, attr, ret);
	pthread_mutex_lock(&p->lock);
	if (rc) {
		empty(p, i);
	} else {
		old = find(p, *ret); /* it is being deregistered, and has been freed */
		if (old != PINS)
			p->mr[old] = &taken;
		p->mr[i] = *ret;
	}
	pthread_mutex_unlock(&p->lock);
	return rc;
}

static int pins_dereg(struct rr_mr *mr)
{
	struct pins *p = pins_of(mr->pd->fabric);
	uint32_t i;
	int rc;

	pthread_mutex_lock(&p->lock);
	i = find(p, mr);
	pthread_mutex_unlock(&p->lock);
	rc = p->base.next->mr_dereg(mr);
	if (rc || i == PINS)
		return rc;
	pthread_mutex_lock(&p->lock);
	empty(p, i);
	pthread_mutex_unlock(&p->lock);
	return 0;
}

/* Executes one request and waits for its completion. Return: bytes, or -errno */
static int32_t move_some(struct pins *p, const struct io_uring_sqe *what)
{
	uint32_t tail = atomic_load_explicit(p->sq_tail, memory_order_relaxed);
	uint32_t head = atomic_load_explicit(p->cq_head, memory_order_relaxed);
	uint32_t to_submit = 1;
	int32_t res;

	p->sqes[tail & p->sq_mask] = *what;
	p->sq_array[tail & p->sq_mask] = tail & p->sq_mask;
	atomic_store_explicit(p->sq_tail, tail + 1, memory_order_release);
	while (atomic_load_explicit(p->cq_tail, memory_order_acquire) == head) {
		long n = syscall(SYS_io_uring_enter, p->fd, to_submit, 1, IORING_ENTER_GETEVENTS,
				 NULL, 0);

		if (n > 0)
			to_submit = 0;
		else if (n < 0 && errno != EINTR && errno != EAGAIN && errno != EBUSY)
			return -errno;
	}
	res = p->cqes[head & p->cq_mask].res;
	atomic_store_explicit(p->cq_head, head + 1, memory_order_release);
	return res;
}

/* Copies between the pages of @mr and @fd at @off; @addr selects the pinned page, not the current one. */
static bool pins_copy(const struct rr_mr *mr, int fd, uint64_t addr, uint64_t off, uint32_t len, bool write)
{
	struct pins *p = pins_of(mr->pd->fabric);
	uint32_t i;

	pthread_mutex_lock(&p->lock);
	i = find(p, mr);
	while (len) {
		struct io_uring_sqe sqe = {
			.opcode = write ? IORING_OP_READ_FIXED : IORING_OP_WRITE_FIXED,
			.fd = fd, .off = off, .addr = addr, .len = len, .buf_index = (uint16_t)i,
		};
		ssize_t n = i != PINS ? move_some(p, &sqe) :
			    write ? pread(fd, (void *)(uintptr_t)addr, len, (off_t)off) :
				    pwrite(fd, (void *)(uintptr_t)addr, len, (off_t)off);

		if (n == -EINTR || n == -EAGAIN)
			continue;
		if (n <= 0)
			break;
		addr += (uint32_t)n;
		off += (uint32_t)n;
		len -= (uint32_t)n;
	}
	pthread_mutex_unlock(&p->lock);
	return !len;
}

int pins_push(struct rr_fabric *fabric)
{
	struct pins *p;

	if (rr_filter_find(fabric, pins_name))
		return 0;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	pthread_mutex_init(&p->lock, NULL);
	p->base.name = pins_name;
	p->base.free = pins_free;
	p->rc = set_up(p);
	rr_filter_push(fabric, &p->base);
	p->base.ops.mr_reg = pins_reg;
	p->base.ops.mr_dereg = pins_dereg;
	rr_local_attr(fabric)->copy = pins_copy;
	return 0;
}
