/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_cancel.h - a mount whose server answers one call for each pass of the engine, and operations that are cancelled
 *
 * fake.silent: the server does not answer at all.
 */
#ifndef TEST_CANCEL_H
#define TEST_CANCEL_H

#include "fake_rpc.h"
#include "leat_count.h"

#define PART 4096

static struct leat *m;
static unsigned written;                  /* WRITEs that the server has executed */
static void (*during)(void);              /* runs while the server answers the next call, once */

static inline int answer(struct rpcrdma_call *call)
{
	void (*fn)(void) = during;

	during = NULL;
	if (fn)
		fn();
	switch (call->proc) {
	case NFSPROC3_READ: {
		READ3res *r = call->res;

		r->status = NFS3_OK;
		r->READ3res_u.resok.count = r->READ3res_u.resok.data.length = PART;
		break;
	}
	case NFSPROC3_WRITE: {
		WRITE3res *r = call->res;

		r->status = NFS3_OK;
		r->WRITE3res_u.resok.count = PART;
		r->WRITE3res_u.resok.committed = ((const WRITE3args *)call->args)->stable;
		written++;
		break;
	}
	case NFSPROC3_LOOKUP: {
		LOOKUP3res *r = call->res;

		r->status = NFS3_OK;
		r->LOOKUP3res_u.resok.object.data.data_len = 4;
		memcpy(r->LOOKUP3res_u.resok.object.data.data_val, "fh__", 4);
		r->LOOKUP3res_u.resok.obj_attributes.attributes_follow = TRUE;
		r->LOOKUP3res_u.resok.obj_attributes.post_op_attr_u.attributes.type = NF3DIR;
		break;
	}
	case NFSPROC3_CREATE: {
		CREATE3res *r = call->res;

		r->status = NFS3_OK;
		r->CREATE3res_u.resok.obj.handle_follows = TRUE;
		r->CREATE3res_u.resok.obj.post_op_fh3_u.handle.data.data_len = 4;
		memcpy(r->CREATE3res_u.resok.obj.post_op_fh3_u.handle.data.data_val, "new_", 4);
		break;
	}
	default:
		*(nfsstat3 *)call->res = NFS3_OK;
		break;
	}
	return 0;
}

static inline int setup(void **state)
{
	(void)state;
	m = fake_mount(1);
	fake.answer = answer;
	written = 0;
	during = NULL;
	return 0;
}

static inline int teardown(void **state)
{
	(void)state;
	fake.silent = false;
	fake.answer = answer;
	leat_umount(m);
	return 0;
}

static inline struct leat_cb counted(struct count *c)
{
	return (struct leat_cb){ count_fn, c, count_free };
}

static inline void run(void)
{
	while (leat_poll(leat_session(m), 0) > 0)
		;
}

/* Cancels the operation, which was in flight, and checks that its callback runs once, later. */
static inline void cancel_one(struct count *c, int64_t result)
{
	assert_int_equal(leat_cancel(m, c), 0);
	assert_int_equal(c->fn, 0);
	assert_int_equal(leat_cancel(m, c), -ENOENT); /* it ends already */
	run();
	assert_int_equal(c->fn, 1);
	assert_int_equal(c->free, 1);
	assert_int_equal(c->result, result);
	assert_int_equal(leat_cancel(m, c), -ENOENT);
	assert_int_equal(fake.count, 0);
}

#define cancel_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

#endif
