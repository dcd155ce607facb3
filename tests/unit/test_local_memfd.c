/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_local_memfd.c - the local fabric: what a peer passes instead of a memfd of its memory
 *
 * A peer passes three: its memory (to a server), the rings and the bounce area (to a client). Each kind
 * of tests/lib/memfd_menu.h goes instead.
 */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "local_int.h"
#include "memfd_menu.h"
#include "shm_map.h"
#include "test_local_pair.h"

#define LEN ((2u << 20) + 4096u)
#define OFF (1u << 20)

static enum memfd_kind kind;

static bool can_make(enum memfd_kind k)
{
	uint64_t claim;
	int fd = memfd_menu_make(k, LEN, &claim);

	if (fd < 0)
		print_message("SKIP: %s cannot be made here\n", memfd_menu_name(k));
	else
		close(fd);
	return fd >= 0;
}

struct rig {
	struct rr_fabric *f, *g;
	struct end c, s;
	uint8_t *mem; /* the client's, in a memfd */
	int fd;
	struct rr_mr *mr;
};

static void rig_open(struct rig *r, const struct rr_local_attr *attr)
{
	r->f = open_fabric(attr);
	r->g = open_fabric(attr);
	end_open(&r->c, r->f);
	end_open(&r->s, r->g);
	assert_int_equal(rr_listen(r->s.cm, pair_path(), NULL, &r->s.l), 0);
	r->fd = rr_shm_create("mine", LEN);
	assert_true(r->fd >= 0);
	r->mem = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, 0);
	assert_ptr_not_equal(r->mem, MAP_FAILED);
	r->mr = end_reg(&r->c, r->mem, LEN, RR_ACCESS_LOCAL_WRITE | RR_ACCESS_REMOTE, r->fd);
}

static void rig_close(struct rig *r)
{
	if (r->c.qp) {
		rr_qp_destroy(r->c.qp);
		r->c.qp = NULL;
	}
	assert_int_equal(rr_mr_dereg(r->mr), 0);
	end_close(&r->c);
	end_close(&r->s);
	rr_fabric_close(r->f);
	rr_fabric_close(r->g);
	munmap(r->mem, LEN);
	close(r->fd);
	memfd_menu_swap(0, 0, 0);
	assert_false(memfd_menu_mapped());
}

/* The server writes 64 bytes to the client's memory at OFF. */
static void server_writes(struct rig *r)
{
	memset(end_msg(&r->s, 0), 0x5a, 64);
	assert_int_equal(end_rdma(&r->s, RR_WR_WRITE, end_msg(&r->s, 0), 64, r->s.mr, r->mem + OFF,
				  r->mr->rkey), 0);
	pair_wait(&r->s, &r->c, 1);
}

static void region_that_cuts(void **state)
{
	(void)state;
	for (kind = 0; kind < MEMFD_CUT_KINDS; kind++) {
		struct rig r;

		if (!can_make(kind))
			continue;
		rig_open(&r, NULL);
		memfd_menu_swap(HS_REGION, kind, 0);
		pair_connect(&r.c, &r.s);
		server_writes(&r);
		print_message("%s: %d\n", memfd_menu_name(kind), (int)r.s.wc[0].status);
		assert_int_not_equal(r.s.wc[0].status, RR_WC_OK);
		assert_int_equal(rr_local_counters(r.g).hostile, 1);
		assert_false(memfd_menu_mapped());
		rig_close(&r);
	}
}

static void region_that_is_not_taken(void **state)
{
	(void)state;
	for (kind = MEMFD_CUT_KINDS; kind < MEMFD_KINDS_REFUSED; kind++) {
		struct rig r;

		rig_open(&r, NULL);
		memfd_menu_swap(HS_REGION, kind, 0);
		pair_connect(&r.c, &r.s);
		server_writes(&r);
		/* its owner moves it */
		assert_int_equal(r.s.wc[0].status, RR_WC_OK);
		assert_int_equal(r.mem[OFF + 63], 0x5a);
		assert_int_equal(rr_local_counters(r.g).hostile, 0);
		assert_int_equal(rr_local_counters(r.g).bounce_bytes, 64);
		/* nor is its end a crime */
		assert_int_equal(rr_mr_dereg(r.mr), 0);
		r.mr = end_reg(&r.c, end_msg(&r.c, 0), 64, RR_ACCESS_REMOTE_READ, -1);
		assert_int_equal(end_rdma(&r.s, RR_WR_READ, end_msg(&r.s, 0), 64, r.s.mr, end_msg(&r.c, 0),
					  r.mr->rkey), 0);
		pair_wait(&r.s, &r.c, 2);
		assert_int_equal(r.s.wc[1].status, RR_WC_OK);
		rig_close(&r);
	}
}

static void read_back(int fd, uint64_t off, uint8_t *buf)
{
	assert_int_equal(pread(fd, buf, 64, (off_t)off), 64);
}

static void region_that_is_taken(void **state)
{
	(void)state;
	for (kind = MEMFD_KINDS_REFUSED; kind < MEMFD_KINDS; kind++) {
		struct stat st;
		struct rig r;
		uint8_t got[64];

		rig_open(&r, NULL);
		memfd_menu_swap(HS_REGION, kind, 0);
		pair_connect(&r.c, &r.s);
		server_writes(&r);
		assert_int_equal(r.s.wc[0].status, RR_WC_OK);
		read_back(memfd_menu_evil(), OFF, got);
		assert_int_equal(got[63], 0x5a);
		/* whatever the flags are made to be, whatever is punched */
		assert_int_equal(fcntl(memfd_menu_evil(), F_SETFL, O_APPEND), 0);
		assert_int_equal(fallocate(memfd_menu_evil(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, LEN), 0);
		r.s.nwc = 0;
		server_writes(&r);
		assert_int_equal(r.s.wc[0].status, RR_WC_OK);
		read_back(memfd_menu_evil(), OFF, got);
		assert_int_equal(got[0], 0x5a);
		assert_int_equal(fstat(memfd_menu_evil(), &st), 0);
		assert_int_equal(st.st_size, LEN);
		r.s.nwc = 0;
		assert_int_equal(end_rdma(&r.s, RR_WR_READ, end_msg(&r.s, 1), 64, r.s.mr, r.mem + OFF,
					  r.mr->rkey), 0);
		pair_wait(&r.s, &r.c, 1);
		assert_memory_equal(end_msg(&r.s, 1), got, 64);
		rig_close(&r);
	}
}

/* ---- a peer that holds the lock of its memfd ---- */

struct holder {
	pthread_t thread;
	int uffd, fd;
	uint8_t *page; /* a fault on it blocks until the page is filled in */
};

static void *hold(void *arg)
{
	const struct holder *h = arg;

	/* the kernel takes the inode's lock, then waits for the page */
	assert_int_equal(pwrite(h->fd, h->page, 4096, 0), 4096);
	return NULL;
}

static bool holder_begin(struct holder *h, int fd)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	struct uffd_msg msg;

	h->uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	if (h->uffd < 0)
		return false;
	h->fd = fd;
	h->page = end_pages(4096);
	reg.range.start = (uintptr_t)h->page;
	reg.range.len = 4096;
	assert_int_equal(ioctl(h->uffd, UFFDIO_API, &api), 0);
	assert_int_equal(ioctl(h->uffd, UFFDIO_REGISTER, &reg), 0);
	assert_int_equal(pthread_create(&h->thread, NULL, hold, h), 0);
	assert_int_equal(read(h->uffd, &msg, sizeof(msg)), sizeof(msg)); /* it waits */
	return true;
}

static void holder_end(struct holder *h)
{
	struct uffdio_zeropage zero = { .range = { (uintptr_t)h->page, 4096 } };

	assert_int_equal(ioctl(h->uffd, UFFDIO_ZEROPAGE, &zero), 0);
	pthread_join(h->thread, NULL);
	munmap(h->page, 4096);
	close(h->uffd);
}

/* @type: of what the holder was passed; moves that would wait for the lock for ever come to their end */
static void while_locked(enum hs_type type)
{
	const struct rr_local_attr never = { .vm = RR_LOCAL_VM_NEVER };
	struct holder h;
	struct rig r;

	kind = MEMFD_SPARSE;
	rig_open(&r, &never);
	if (type == HS_BOUNCE) { /* memory that is in no region */
		assert_int_equal(rr_mr_dereg(r.mr), 0);
		r.mr = end_reg(&r.c, r.mem, LEN, RR_ACCESS_LOCAL_WRITE | RR_ACCESS_REMOTE, -1);
	} else {
		memfd_menu_swap(type, kind, 0);
	}
	pair_connect(&r.c, &r.s);
	server_writes(&r);
	assert_int_equal(r.s.wc[0].status, RR_WC_OK);
	if (!holder_begin(&h, type == HS_BOUNCE ? to_qp(r.s.qp)->stage->fd : memfd_menu_evil())) {
		print_message("SKIP: no userfaultfd here\n");
		rig_close(&r);
		skip();
	}
	r.s.nwc = 0;
	server_writes(&r);
	assert_int_equal(r.s.wc[0].status, RR_WC_OK);
	r.s.nwc = 0;
	assert_int_equal(end_rdma(&r.s, RR_WR_READ, end_msg(&r.s, 1), 64, r.s.mr, r.mem + OFF,
				  r.mr->rkey), 0);
	pair_wait(&r.s, &r.c, 1);
	assert_int_equal(r.s.wc[0].status, RR_WC_OK);
	assert_memory_equal(end_msg(&r.s, 1), end_msg(&r.s, 0), 64);
	holder_end(&h);
	rig_close(&r);
}

static void locked_region(void **state)
{
	(void)state;
	while_locked(HS_REGION);
}

static void locked_bounce_area(void **state)
{
	(void)state;
	while_locked(HS_BOUNCE);
}

/* ---- what a client is passed ---- */

static void rings(void **state)
{
	(void)state;
	for (kind = 0; kind < MEMFD_KINDS; kind++) {
		struct rig r;

		if (!can_make(kind))
			continue;
		if (kind == MEMFD_SHORT || kind == MEMFD_SPARSE)
			continue; /* rings claim no size; and of holes they are at first */
		rig_open(&r, NULL);
		memfd_menu_swap(HS_ACCEPT, kind, 0);
		assert_int_equal(rr_qp_dial(r.c.cm, pair_path(), NULL, &r.c.qp), 0);
		end_wait_event(&r.c, &r.s, 1);
		end_setup(&r.c);
		assert_int_equal(rr_qp_connect(r.c.qp, &r.c.param), 0);
		end_wait_event(&r.s, NULL, 1);
		end_setup(&r.s);
		assert_int_equal(rr_qp_accept(r.s.qp, &r.s.param), 0);
		end_wait_event(&r.c, NULL, 2);
		if (kind == MEMFD_APPEND) {
			assert_int_equal(r.c.events[1], RR_CM_ESTABLISHED);
			rr_qp_disconnect(r.c.qp);
		} else {
			print_message("%s: %d\n", memfd_menu_name(kind), r.c.status);
			assert_int_equal(r.c.events[1], RR_CM_FAILED);
			assert_int_equal(r.c.status, kind == MEMFD_READ_ONLY ? -EACCES :
						     kind == MEMFD_NO_WRITES ? -EPERM : -EPROTO);
			assert_false(memfd_menu_mapped());
		}
		rig_close(&r);
	}
}

static void bounce_area(void **state)
{
	const struct rr_local_attr never = { .vm = RR_LOCAL_VM_NEVER, .limits.bounce_bytes = LEN };

	(void)state;
	for (kind = 0; kind < MEMFD_KINDS; kind++) {
		bool taken = kind >= MEMFD_KINDS_REFUSED;
		struct stat st;
		struct rig r;

		if (!can_make(kind))
			continue;
		rig_open(&r, &never);
		assert_int_equal(rr_mr_dereg(r.mr), 0);
		r.mr = end_reg(&r.c, r.mem, LEN, RR_ACCESS_LOCAL_WRITE | RR_ACCESS_REMOTE, -1);
		memfd_menu_swap(HS_BOUNCE, kind, 0);
		pair_connect(&r.c, &r.s);
		assert_int_equal(end_rdma(&r.s, RR_WR_READ, end_msg(&r.s, 0), 64, r.s.mr, r.mem + OFF,
					  r.mr->rkey), 0);
		pair_wait(&r.s, &r.c, 1);
		print_message("%s: %d\n", memfd_menu_name(kind), (int)r.s.wc[0].status);
		assert_int_equal(r.s.wc[0].status == RR_WC_OK, taken);
		assert_int_equal(rr_local_counters(r.f).hostile, !taken);
		if (kind == MEMFD_APPEND) {
			assert_int_equal(fstat(memfd_menu_evil(), &st), 0);
			assert_int_equal(st.st_size, LEN);
		}
		rig_close(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(region_that_cuts),
		cmocka_unit_test(region_that_is_not_taken),
		cmocka_unit_test(region_that_is_taken),
		cmocka_unit_test(locked_region),
		cmocka_unit_test(locked_bounce_area),
		cmocka_unit_test(rings),
		cmocka_unit_test(bounce_area),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
