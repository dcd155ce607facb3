/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_block_keep.c - the end of an attachment: the calls that keep it while it is idle, and the result of DETACH
 */
#include <errno.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/log.h"
#include "base/util.h"
#include "fake_volume.h"
#include "leat_block.h"
#include "leat_count.h"
#include "lt_block.h"

LOG_DEFINE("test_block_keep");

static struct fake_volume rig;

static int setup(void **state)
{
	(void)state;
	lt_block_keep_ns = NS_PER_MS;
	fake_volume_open(&rig);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	fake_volume_close(&rig);
	return 0;
}

static void set_hold(bool hold)
{
	pthread_mutex_lock(&rig.lock);
	rig.hold = hold;
	pthread_mutex_unlock(&rig.lock);
}

/* Attaches, and waits until the server holds such a call, of a connection of another thread. */
static struct leat_block *attach_and_hold(struct leat_session *s)
{
	struct leat_block *b;
	char url[300];

	snprintf(url, sizeof(url), "%s?conns=3&threads=2", rig.local_url);
	if (leat_session_attach(s, url, NULL, 0, &b))
		fail_msg("%s", leat_error(NULL));
	for (;;) {
		set_hold(true);
		while (!fake_volume_holds(&rig, 1))
			assert_true(leat_poll(s, 1) >= 0);
		if (b->keep.call.engine)
			return b;
		fake_volume_release(&rig);
		while (b->keep.flying)
			assert_true(leat_poll(s, 1) >= 0);
	}
}

static struct leat_session *make_session(void)
{
	struct leat_opts *opts = leat_opts_create();
	struct leat_session *s;

	assert_int_equal(leat_set(opts, "threads", "2"), 0);
	assert_int_equal(leat_session_create(opts, &s), 0);
	leat_opts_destroy(opts);
	return s;
}

/* The attachment has the memory of the call: it waits for it, although the call is cancelled. */
static void ends_with_its_call(void **state)
{
	struct leat_session *s = make_session();
	struct leat_block *b = attach_and_hold(s);
	struct count ended = { 0 };
	struct leat_cb cb = { count_fn, &ended, NULL };

	(void)state;
	assert_true(b->keep.flying);
	lt_block_keep_stop(b, &cb);
	assert_false(ended.fn);
	while (!ended.fn)
		assert_true(leat_poll(s, -1) >= 0);
	assert_false(b->keep.flying);
	fake_volume_release(&rig);
	assert_int_equal(leat_block_detach(b), 0);
	assert_int_equal(leat_session_free(s), 0);
}

static void detached_meanwhile(void **state)
{
	struct leat_session *s = make_session();
	struct leat_block *b = attach_and_hold(s);

	(void)state;
	assert_int_equal(leat_block_detach_within(b, 0), -ETIMEDOUT); /* DETACH is held, too */
	for (unsigned i = 0; i < 10; i++)
		assert_true(leat_poll(s, 0) >= 0);
	fake_volume_release(&rig);
	assert_int_equal(leat_session_free(s), 0);
}

/* ---- a reply that is faster than the function that sends the call ---- */

static struct leat_block *ending; /* what this thread posts for it has an end before it goes on */

struct look {
	struct rpcrdma_msg msg;
	sem_t seen;
	bool busy;
};

static void look(struct rpcrdma_msg *msg)
{
	struct look *l = container_of(msg, struct look, msg);

	l->busy = !list_is_empty(&ending->m->tasks);
	sem_post(&l->seen);
}

bool __wrap_rpcrdma_engine_enter(struct rpcrdma_engine *e);
bool __real_rpcrdma_engine_enter(struct rpcrdma_engine *e);
void __wrap_rpcrdma_engine_post(struct rpcrdma_engine *e, struct rpcrdma_msg *msg);
void __real_rpcrdma_engine_post(struct rpcrdma_engine *e, struct rpcrdma_msg *msg);

bool __wrap_rpcrdma_engine_enter(struct rpcrdma_engine *e)
{
	return !ending && __real_rpcrdma_engine_enter(e);
}

static _Thread_local bool is_program;

void __wrap_rpcrdma_engine_post(struct rpcrdma_engine *e, struct rpcrdma_msg *msg)
{
	struct look l = { .msg.fn = look, .busy = true };

	__real_rpcrdma_engine_post(e, msg);
	if (!is_program || !ending || e != ending->m->session->engine)
		return;
	sem_init(&l.seen, 0, 0);
	while (l.busy) {
		__real_rpcrdma_engine_post(e, &l.msg);
		while (sem_wait(&l.seen))
			;
	}
	sem_destroy(&l.seen);
	if (fake_volume_calls(&rig, BLOCKPROC_DETACH))
		ending = NULL;
}

static void fast_reply(void **state)
{
	struct leat_session *s = make_session();
	struct leat_block *other, *b;
	char url[300];

	(void)state;
	lt_block_keep_ns = 3600 * NS_PER_S;
	is_program = true;
	assert_int_equal(leat_session_attach(s, rig.local_url, NULL, 0, &b), 0);
	snprintf(url, sizeof(url), "%s?holder=other", rig.local_url);
	assert_int_equal(leat_block_attach(url, NULL, LEAT_BLOCK_TAKE_OVER, &other), 0);
	assert_int_equal(leat_service_start(s), 0);
	ending = b;
	assert_int_equal(leat_block_detach(b), -ESTALE);
	assert_null(ending);
	assert_int_equal(leat_block_detach(other), 0);
	leat_service_stop(s);
	assert_int_equal(leat_session_free(s), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(ends_with_its_call, setup, teardown),
		cmocka_unit_test_setup_teardown(detached_meanwhile, setup, teardown),
		cmocka_unit_test_setup_teardown(fast_reply, setup, teardown),
	};

	log_state.level = LOG_LEVEL_ERR;
	return cmocka_run_group_tests_name("block keep", tests, NULL, NULL);
}
