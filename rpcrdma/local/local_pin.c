/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * local_pin.c - the local fabric's memory as a device sees it: pages, not addresses
 *
 * Operation:  Without the hook `pin` a peer accesses the current pages at the address of a registration.
 *             A device accesses the pages that were there at registration, even if the address has
 *             other pages now. A registration that is kept too long loses data this way, and a test
 *             must be able to show it. An io_uring pins pages like a device (FOLL_LONGTERM) and moves
 *             bytes to and from them. So with the hook a registration is also one of its buffers. The
 *             peer's transfers then go through our agent (PLACE_AGENT), which uses the io_uring.
 * Memory:     One io_uring per protection domain, created with the first registration that needs it: a
 *             table of buffers, most of them empty, and one request at a time. RLIMIT_MEMLOCK counts.
 * Threads:    pd->lock.
 * Errors:     -ENOMEM: the table is full, the limit is reached, or io_uring is not available; -EFAULT.
 *             io_uring refuses memory that is not writable: -EFAULT.
 * See:        io_uring_setup(2), io_uring_register(2), io_uring_enter(2).
 */
#include <errno.h>
#include <linux/io_uring.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "local_int.h"

#define PINS 4096u

struct local_pins {
	int fd;
	void *rings;
	size_t rings_bytes, sqes_bytes;
	struct io_uring_sqe *sqes;
	_Atomic uint32_t *sq_tail, *cq_head, *cq_tail;
	uint32_t *sq_array, sq_mask, cq_mask;
	struct io_uring_cqe *cqes;
	uint32_t nfree;
	uint32_t free[PINS]; /* buffers of the table */
};

static int map_rings(struct local_pins *p, const struct io_uring_params *par)
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

static void destroy(struct local_pins *p)
{
	if (p->sqes)
		munmap(p->sqes, p->sqes_bytes);
	if (p->rings)
		munmap(p->rings, p->rings_bytes);
	if (p->fd >= 0)
		close(p->fd);
	free(p);
}

static int create(struct local_pins **ret)
{
	struct io_uring_rsrc_register table = { .nr = PINS, .flags = IORING_RSRC_REGISTER_SPARSE };
	struct io_uring_params par = { .flags = 0 };
	struct local_pins *p = calloc(1, sizeof(*p));
	int rc = -ENOMEM;

	if (!p)
		return -ENOMEM;
	p->fd = (int)syscall(SYS_io_uring_setup, 1u, &par);
	if (p->fd < 0 || !(par.features & IORING_FEAT_SINGLE_MMAP))
		goto fail;
	rc = map_rings(p, &par);
	if (rc)
		goto fail;
	if (syscall(SYS_io_uring_register, p->fd, IORING_REGISTER_BUFFERS2, &table, sizeof(table))) {
		rc = -ENOMEM;
		goto fail;
	}
	for (uint32_t i = 0; i < PINS; i++)
		p->free[p->nfree++] = PINS - 1 - i;
	*ret = p;
	return 0;
fail:
	destroy(p);
	return rc;
}

/** rr_local_pins_fini - frees the pins of a protection domain after its registrations */
void rr_local_pins_fini(struct local_pd *pd)
{
	if (pd->pins)
		destroy(pd->pins);
	pd->pins = NULL;
}

/* Sets buffer @idx of the table to [@addr, @addr + @len); NULL: empty. */
static int set_buffer(const struct local_pins *p, uint32_t idx, void *addr, size_t len)
{
	struct iovec iov = { .iov_base = addr, .iov_len = len };
	struct io_uring_rsrc_update2 up = { .offset = idx, .data = (uintptr_t)&iov, .nr = 1 };

	if (syscall(SYS_io_uring_register, p->fd, IORING_REGISTER_BUFFERS_UPDATE, &up,
		    sizeof(up)) == 1)
		return 0;
	return errno == EFAULT ? -EFAULT : -ENOMEM;
}

/** rr_local_pin - pins the pages of @mr; pd->lock is held
 *
 * Return: 0, -ENOMEM, -EFAULT.
 */
int rr_local_pin(struct local_pd *pd, struct local_mr *mr)
{
	struct local_pins *p;
	int rc;

	if (!pd->pins) {
		rc = create(&pd->pins);
		if (rc)
			return rc;
	}
	p = pd->pins;
	if (!p->nfree)
		return -ENOMEM;
	rc = set_buffer(p, p->free[p->nfree - 1], mr->base.addr, mr->base.len);
	if (!rc)
		mr->pin = (int)p->free[--p->nfree];
	return rc;
}

/** rr_local_unpin - unpins the pages of @mr; pd->lock is held */
void rr_local_unpin(struct local_pd *pd, struct local_mr *mr)
{
	if (mr->pin < 0)
		return;
	(void)set_buffer(pd->pins, (uint32_t)mr->pin, NULL, 0); /* an empty buffer cannot fail */
	pd->pins->free[pd->pins->nfree++] = (uint32_t)mr->pin;
	mr->pin = -1;
}

/* Executes one request and waits for its completion. Return: bytes, or -errno */
static int32_t move_some(struct local_pins *p, const struct io_uring_sqe *what)
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

/** rr_local_pin_copy - copies between the pinned pages of @mr and @fd at @off; pd->lock is held
 * @addr: in the registration; selects the pinned page, not the current one
 * @write: into the pages
 *
 * Return: false if not all of it could be moved.
 */
bool rr_local_pin_copy(struct local_pd *pd, const struct local_mr *mr, int fd, uint64_t addr,
		       uint64_t off, size_t len, bool write)
{
	while (len) {
		struct io_uring_sqe sqe = {
			.opcode = write ? IORING_OP_READ_FIXED : IORING_OP_WRITE_FIXED,
			.fd = fd, .off = off, .addr = addr, .len = (uint32_t)len,
			.buf_index = (uint16_t)mr->pin,
		};
		int32_t n = move_some(pd->pins, &sqe);

		if (n == -EINTR || n == -EAGAIN)
			continue;
		if (n <= 0)
			return false;
		addr += (uint32_t)n;
		off += (uint32_t)n;
		len -= (uint32_t)n;
	}
	return true;
}
