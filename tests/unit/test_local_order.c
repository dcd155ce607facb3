/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_local_order.c - the local fabric: what the peer publishes while its shared memory is read
 *
 * Operation:  Every look at the peer's counters in local_ring.c goes through look(), which may let the
 *             peer act right after it.
 */
#include <stdatomic.h>
#include <stdint.h>

static uint32_t look(const _Atomic uint32_t *p);

#include "local_int.h"

static uint32_t load(const _Atomic uint32_t *p)
{
	return atomic_load(p);
}

#undef atomic_load_explicit
#define atomic_load_explicit(p, order) look(p)
#include "rpcrdma/local/local_ring.c"
#undef atomic_load_explicit

#include "test_local_pair.h"

#define BYTES 4096u

struct rig {
	struct end c, s;
	uint8_t *mem, *data;
	struct rr_mr *mr, *dm;
};

static struct rig *acting; /* after @looks_before looks the server acts */
static unsigned looks_before;

static void act(struct rig *r)
{
	assert_int_equal(end_send(&r->s, 1, 8, RR_WR_SIGNALED), 0);
	assert_int_equal(end_rdma(&r->s, RR_WR_WRITE, r->data, 100, r->dm, r->mem, r->mr->rkey), 0);
	end_poll(&r->s);
}

static uint32_t look(const _Atomic uint32_t *p)
{
	uint32_t value = load(p);
	struct rig *r = acting;

	if (r && looks_before-- == 0) {
		acting = NULL; /* looks of its own are not meant */
		act(r);
	}
	return value;
}

static void poll_both(struct rig *r, int client, int server)
{
	while (r->c.nwc < client || r->s.nwc < server) {
		end_poll(&r->c);
		end_poll(&r->s);
	}
	for (int i = 0; i < r->c.nwc; i++)
		assert_int_equal(r->c.wc[i].status, RR_WC_OK);
	for (int i = 0; i < r->s.nwc; i++)
		assert_int_equal(r->s.wc[i].status, RR_WC_OK);
}

/* A message and, behind it, a request of the agent: at whatever moment they come, the message is not
 * overtaken, and neither peer counts as hostile. */
static void test_message_before_request(void **state)
{
	struct rr_local_attr attr = { .vm = RR_LOCAL_VM_NEVER };

	(void)state;
	for (unsigned before = 0; before < 8; before++) {
		struct rr_fabric *f = open_fabric(&attr);
		struct rig r;

		pair_open(&r.c, &r.s, f);
		r.mem = end_pages(BYTES);
		r.data = end_pages(BYTES);
		r.mr = end_reg(&r.c, r.mem, BYTES, RR_ACCESS_LOCAL_WRITE | RR_ACCESS_REMOTE, -1);
		r.dm = end_reg(&r.s, r.data, BYTES, RR_ACCESS_LOCAL_WRITE, -1);
		/* the bounce area comes with the first */
		assert_int_equal(end_rdma(&r.s, RR_WR_WRITE, r.data, 100, r.dm, r.mem, r.mr->rkey), 0);
		poll_both(&r, 0, 1);
		memset(r.data, 0x77, 100);
		/* something to be found, so that there is a look at all */
		assert_int_equal(end_send(&r.s, 0, 8, RR_WR_SIGNALED), 0);
		looks_before = before;
		acting = &r;
		end_poll(&r.c);
		if (acting) {
			/* one message takes fewer looks than that */
			acting = NULL;
			act(&r);
		}
		poll_both(&r, 2, 4);
		assert_int_equal(r.mem[0], 0x77);
		assert_int_equal(r.mem[99], 0x77);
		assert_int_equal(r.mem[100], 0);
		rr_qp_disconnect(r.c.qp);
		rr_qp_destroy(r.c.qp);
		r.c.qp = NULL;
		assert_int_equal(rr_mr_dereg(r.mr), 0);
		assert_int_equal(rr_mr_dereg(r.dm), 0);
		end_close(&r.c);
		end_close(&r.s);
		munmap(r.mem, BYTES);
		munmap(r.data, BYTES);
		rr_fabric_close(f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_message_before_request),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
