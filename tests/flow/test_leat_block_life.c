/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_leat_block_life.c - operations and attachments from beginning to end: put off, cancelled, fenced, detached; sessions,
 * threads and processes
 */
#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "leat_block_flow.h"
#include "leat_count.h"

LOG_DEFINE("test_leat_block_life");

/* ---- operations ---- */

static void put_off(void **state)
{
	struct leat_block *b = attach(rig.local_url, NULL, 0);
	uint8_t buf[512] = { 1 };

	(void)state;
	SET(later, 1);
	assert_int_equal(leat_block_pwrite(b, buf, 512, 0, 0), 512);
	SET(later, 1);
	assert_int_equal(leat_block_flush(b), 0);
	assert_int_equal(stat_of(b, "jukebox_retries"), 2);
	detach(b);
}

static void run_until_done(struct leat_block *b, const struct count *c)
{
	while (!c->fn)
		assert_true(leat_poll(leat_session(leat_block_handle(b)), -1) >= 0);
}

/* Polls while the stack is in use where functions that have returned had their variables. */
static int __attribute__((noinline)) poll_deeper(struct leat_block *b)
{
	volatile uint8_t v[65536];
	int rc;

	for (size_t i = 0; i < sizeof(v); i++)
		v[i] = 'x';
	rc = leat_poll(leat_session(leat_block_handle(b)), 0);
	return v[sizeof(v) / 2] == 'x' ? rc : -1;
}

/* INFO is encoded again long after the function that prepared it has returned. */
static void info_is_put_off(void **state)
{
	struct leat_block_info info = { .size = sizeof(info) };
	struct leat_block *b = attach(rig.local_url, NULL, 0);
	struct count done = { 0 };

	(void)state;
	SET(later, 1);
	assert_int_equal(leat_aio_block_info(b, &info, (struct leat_cb){ count_fn, &done, count_free }), 0);
	while (!done.fn)
		assert_true(poll_deeper(b) >= 0);
	assert_int_equal(done.result, 0);
	assert_int_equal(fake_volume_calls(&rig, BLOCKPROC_INFO), 2);
	assert_int_equal(GET_TEXT(after)[0], 0);
	detach(b);
}

static void cancelled(void **state)
{
	struct leat_block *b = attach(rig.local_url, NULL, 0);
	struct count read = { 0 }, write = { 0 };
	uint8_t in[512], out[512] = { 1 };

	(void)state;
	SET(hold, true);
	assert_int_equal(leat_aio_block_pread(b, in, 512, 0, (struct leat_cb){ count_fn, &read, count_free }), 0);
	assert_int_equal(leat_aio_block_pwrite(b, out, 512, 0, 0, (struct leat_cb){ count_fn, &write, count_free }), 0);
	await_held(b, 1);
	assert_int_equal(leat_cancel(leat_block_handle(b), &read), 0);
	run_until_done(b, &read);
	assert_int_equal(read.result, -ECANCELED);
	assert_int_equal(leat_cancel(leat_block_handle(b), &write), 0);
	run_until_done(b, &write);
	assert_true(write.result == -EINPROGRESS || write.result == -ECANCELED); /* not sent, with one credit */
	fake_volume_release(&rig);
	detach(b);
	assert_int_equal(read.fn + read.free + write.fn + write.free, 4);
}

/* ---- small parts ---- */

#define STAGE (256u << 10)
#define MANY 200u

static struct {
	void *mem[MANY];
	unsigned n, most; /* staging buffers */
} stages;

int __real_rpcrdma_mem_alloc(struct rpcrdma_domain *d, size_t bytes, void **ret);
int __wrap_rpcrdma_mem_alloc(struct rpcrdma_domain *d, size_t bytes, void **ret);
void __real_rpcrdma_mem_free(struct rpcrdma_domain *d, void *mem);
void __wrap_rpcrdma_mem_free(struct rpcrdma_domain *d, void *mem);

int __wrap_rpcrdma_mem_alloc(struct rpcrdma_domain *d, size_t bytes, void **ret)
{
	int err = __real_rpcrdma_mem_alloc(d, bytes, ret);

	if (!err && bytes == STAGE) {
		assert_true(stages.n < MANY);
		stages.mem[stages.n++] = *ret;
		stages.most = MAX(stages.most, stages.n);
	}
	return err;
}

void __wrap_rpcrdma_mem_free(struct rpcrdma_domain *d, void *mem)
{
	for (unsigned i = 0; i < stages.n; i++) {
		if (stages.mem[i] == mem)
			stages.mem[i--] = stages.mem[--stages.n];
	}
	__real_rpcrdma_mem_free(d, mem);
}

static struct many {
	struct count done[MANY];
	uint8_t buf[MANY][512];
} many;

static void write_many(struct leat_block *b, uint8_t first)
{
	memset(&many, 0, sizeof(many));
	for (unsigned i = 0; i < MANY; i++) {
		struct iovec iov[2] = { { many.buf[i], 200 }, { many.buf[i] + 200, 312 } };

		memset(many.buf[i], first + (int)i, 512);
		assert_int_equal(leat_aio_block_pwritev(b, iov, 2, i * 512u, 0,
							(struct leat_cb){ count_fn, &many.done[i], count_free }), 0);
	}
}

/* Calls that copy small parts have memory for 64 of them, and others wait for it. */
static void small_parts_are_bounded(void **state)
{
	struct leat_block *b = attach(rig.local_url, NULL, 0);
	unsigned good = 0;

	(void)state;
	stages.n = stages.most = 0;
	write_many(b, 1);
	for (unsigned i = 0; i < MANY; i++) {
		run_until_done(b, &many.done[i]);
		assert_int_equal(many.done[i].result, 512);
		assert_int_equal(disk()[i * 512u + 511], (uint8_t)(i + 1));
	}
	assert_in_range(stages.most, 2, 64);
	assert_in_range(stages.n, 1, 16); /* kept */
	/* those that wait end at once when they are cancelled, and the others go on */
	write_many(b, 2);
	for (unsigned i = MANY / 2; i < MANY; i++)
		(void)leat_cancel(leat_block_handle(b), &many.done[i]);
	for (unsigned i = 0; i < MANY; i++) {
		run_until_done(b, &many.done[i]);
		good += many.done[i].result == 512;
		assert_true(many.done[i].result == 512 || (i >= MANY / 2 && many.done[i].result < 0));
	}
	assert_in_range(good, MANY / 2, MANY);
	assert_in_range(stages.most, 2, 64);
	detach(b);
	assert_int_equal(stages.n, 0);
}

static void interrupted(void **state)
{
	struct leat_block *b = attach(rig.local_url, NULL, 0);
	uint8_t buf[512];

	(void)state;
	leat_interrupt(leat_block_handle(b));
	assert_int_equal(leat_block_pread(b, buf, 512, 0), -EINTR);
	assert_int_equal(leat_block_pread(b, buf, 512, 0), 512);
	detach(b);
}

static void detach_in_time(void **state)
{
	struct leat_block *b = attach(rig.local_url, NULL, 0);
	struct count write = { 0 };
	uint8_t buf[512] = { 1 };

	(void)state;
	SET(hold, true);
	assert_int_equal(leat_aio_block_pwrite(b, buf, 512, 0, 0, (struct leat_cb){ count_fn, &write, count_free }), 0);
	assert_int_equal(leat_block_detach_within(b, 1), -ETIMEDOUT);
	assert_int_equal(write.fn, 1);
	assert_int_equal(fake_volume_calls(&rig, BLOCKPROC_DETACH), 0);
	fake_volume_release(&rig);
	b = attach(rig.local_url, NULL, LEAT_BLOCK_TAKE_OVER);
	SET(hold, true); /* DETACH, too */
	assert_int_equal(leat_block_detach_within(b, 1), -ETIMEDOUT);
	fake_volume_release(&rig);
	b = attach(rig.local_url, NULL, LEAT_BLOCK_TAKE_OVER);
	assert_int_equal(leat_block_detach_within(b, 60000), 0);
}

/* A soft attachment gives up; what it asked for may have been done. */
static void gives_up(void **state)
{
	struct leat_block *b = attach(rig.local_url, "timeo=1s&retry=soft", 0);
	uint8_t buf[512] = { 1 };

	(void)state;
	SET(hold, true);
	assert_int_equal(leat_block_pwrite(b, buf, 512, 0, 0), -ETIMEDOUT);
	assert_int_equal(leat_block_flush(b), -ETIMEDOUT);
	fake_volume_release(&rig);
	while (leat_block_pwrite(b, buf, 512, 0, 0) == -ETIMEDOUT)
		;
	assert_int_equal(leat_block_flush(b), 0);
	detach(b);
}

static void fenced(void **state)
{
	struct leat_block *b = attach(rig.local_url, "holder=old", 0);
	struct leat_block *c = attach(rig.local_url, "holder=new", LEAT_BLOCK_TAKE_OVER);
	uint8_t buf[512] = { 1 };

	(void)state;
	assert_int_equal(GET(attach_flags), BLOCK_TAKE_OVER);
	assert_int_equal(leat_block_pwrite(b, buf, 512, 0, 0), -ESTALE);
	assert_non_null(strstr(leat_error(leat_block_handle(b)), "BLOCK_ERR_FENCED"));
	assert_int_equal(leat_block_flush(b), -ESTALE);
	assert_int_equal(leat_block_detach(b), -ESTALE);
	assert_int_equal(leat_block_pwrite(c, buf, 512, 0, 0), 512);
	detach(c);
}

static void take_over_by_hand(void **state)
{
	struct leat_block *b = attach(rig.local_url, "holder=old", 0);
	struct leat_block *look = attach(rig.local_url, NULL, LEAT_BLOCK_LOOK);
	uint8_t buf[512] = { 1 };

	(void)state;
	assert_int_equal(leat_block_take_over(look, "other"), -ENOENT);
	assert_string_equal(GET_TEXT(holder), "old");
	assert_int_equal(leat_block_take_over(look, "old"), 0);
	assert_string_equal(GET_TEXT(victim), "old");
	assert_int_equal(GET(attach_flags) & BLOCK_TAKE_OVER, BLOCK_TAKE_OVER);
	assert_string_equal(GET_TEXT(holder), "");
	assert_int_equal(leat_block_pwrite(b, buf, 512, 0, 0), -ESTALE);
	assert_int_equal(leat_block_detach(b), -ESTALE);
	b = attach(rig.local_url, "holder=next", 0);
	assert_int_equal(leat_block_take_over(look, ""), 0);
	assert_int_equal(leat_block_take_over(look, NULL), -EINVAL);
	assert_int_equal(leat_block_detach(b), -ESTALE);
	detach(look);
}

static void take_next(struct fake_volume *r, uint32_t proc, const void *args, void *res)
{
	(void)args;
	(void)res;
	if (proc == BLOCKPROC_ATTACH)
		r->generation++; /* of the next holder */
}

/* Another client takes the volume before the one that took it over by hand has left it. */
static void taken_meanwhile(void **state)
{
	struct leat_block *b = attach(rig.local_url, "holder=old", 0);
	struct leat_block *look = attach(rig.local_url, NULL, LEAT_BLOCK_LOOK);

	(void)state;
	SET(odd, take_next);
	assert_int_equal(leat_block_take_over(look, "old"), 0);
	assert_int_equal(fake_volume_calls(&rig, BLOCKPROC_DETACH), 1);
	SET(odd, NULL);
	assert_int_equal(leat_block_detach(b), -ESTALE);
	detach(look);
}

/* ---- sessions, threads, processes ---- */

static void one_session(void **state)
{
	struct leat_block *a, *look;
	struct leat_session *s;
	uint8_t buf[512] = { 1 };
	void *mem;

	(void)state;
	assert_int_equal(leat_session_create(NULL, &s), 0);
	assert_int_equal(leat_session_attach(s, rig.local_url, NULL, 0, &a), 0);
	assert_int_equal(leat_session_attach(s, rig.local_url, NULL, LEAT_BLOCK_LOOK, &look), 0);
	assert_ptr_equal(leat_session(leat_block_handle(a)), s);
	assert_int_equal(leat_session_attach(NULL, rig.local_url, NULL, 0, &a), -EINVAL);
	assert_int_equal(leat_buf_alloc(s, 8192, &mem), 0);
	assert_int_equal(leat_block_pread(a, mem, 8192, 0), 8192);
	assert_memory_equal(mem, disk(), 8192);
	assert_int_equal(leat_block_take_over(look, ""), 0);
	assert_int_equal(leat_block_pwrite(a, buf, 512, 0, 0), -ESTALE);
	assert_int_equal(GET(nlanes), 1); /* they share a connection */
	assert_int_equal(leat_session_free(s), -EBUSY);
	assert_int_equal(leat_block_detach(a), -ESTALE);
	detach(look);
	leat_buf_free(s, mem);
	assert_int_equal(leat_session_free(s), 0);
}

static void *use_elsewhere(void *arg)
{
	use_volume(arg);
	return NULL;
}

static void service_thread(void **state)
{
	struct leat_block *b = attach(rig.local_url, "conns=2", 0);
	pthread_t thread;

	(void)state;
	assert_int_equal(leat_service_start(leat_session(leat_block_handle(b))), 0);
	assert_int_equal(pthread_create(&thread, NULL, use_elsewhere, b), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	detach(b);
}

static void detach_inside(void *arg, int64_t result)
{
	struct leat_block *b = arg;
	uint8_t buf[512];

	assert_int_equal(result, 0);
	assert_int_equal(leat_block_detach(b), -EDEADLK);
	assert_int_equal(leat_block_pread(b, buf, 512, 0), -EDEADLK);
	SET(result, 1);
}

static void in_a_callback(void **state)
{
	struct leat_block *b = attach(rig.local_url, NULL, 0);

	(void)state;
	SET(result, 0);
	assert_int_equal(leat_aio_block_flush(b, (struct leat_cb){ detach_inside, b, NULL }), 0);
	while (!GET(result))
		assert_true(leat_poll(leat_session(leat_block_handle(b)), -1) >= 0);
	SET(result, 0);
	detach(b);
}

/* In the child. Return: exit status */
static int use_in_child(struct leat_block *b, const char *url)
{
	struct leat_block_info info = { .size = sizeof(info) };
	struct leat_block *own;
	uint8_t buf[512];
	bool other;

	if (leat_block_pread(b, buf, 512, 0) != -EOWNERDEAD || leat_block_flush(b) != -EOWNERDEAD ||
	    leat_block_info(b, &info) != -EOWNERDEAD)
		return 1;
	if (leat_block_attach(url, NULL, LEAT_BLOCK_TAKE_OVER, &own))
		return 2;
	other = strcmp(leat_block_holder_name(own), leat_block_holder_name(b)) != 0;
	if (leat_block_detach(own) || leat_block_detach(b) != -EOWNERDEAD)
		return 3;
	return other ? 0 : 4;
}

static void forked(void **state)
{
	struct leat_block *b = attach(rig.tcp_url, NULL, 0);
	int status;
	pid_t pid;

	(void)state;
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(use_in_child(b, rig.tcp_url));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(leat_block_detach(b), -ESTALE); /* the child took over */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(put_off), TEST(info_is_put_off), TEST(cancelled), TEST(small_parts_are_bounded), TEST(interrupted), TEST(detach_in_time),
		TEST(gives_up), TEST(fenced), TEST(take_over_by_hand), TEST(taken_meanwhile), TEST(one_session),
		TEST(service_thread), TEST(in_a_callback), TEST(forked),
	};

	log_state.level = LOG_LEVEL_ERR;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
