/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_cancel.c - operations that are cancelled: which error they end with, how often, and when
 */
#include "io.h"
#include "leat_admin.h"
#include "readahead.h"
#include "test_cancel.h"

static void reads(void **state)
{
	struct leat_file *f = fake_open(m, O_RDWR);
	struct count c = { 0 }, other = { 0 };
	static char buf[10 * PART];

	(void)state;
	assert_int_equal(leat_cancel(NULL, NULL), -EINVAL);
	assert_int_equal(leat_cancel_all(m), -ENOENT);
	assert_int_equal(leat_aio_pread(f, buf, sizeof(buf), 0, counted(&c)), 0);
	assert_int_equal(leat_aio_pread(f, buf, PART, 0, counted(&other)), 0);
	assert_int_equal(fake.count, 11);
	assert_int_equal(leat_poll(leat_session(m), 0), 1); /* the first part arrives */
	assert_int_equal(leat_cancel(m, &c), 0);
	assert_int_equal(fake.count, 1); /* of the other operation */
	run();
	assert_int_equal(c.result, -ECANCELED);
	assert_int_equal(other.result, PART);
	assert_non_null(strstr(leat_error(m), "ancel"));
	/* it has ended, though its callback has not run: there is nothing to synchronize */
	c = (struct count){ 0 };
	f->flags = O_RDONLY;
	assert_int_equal(leat_aio_fsync(f, counted(&c)), 0);
	assert_int_equal(leat_cancel(m, &c), -ENOENT);
	run();
	assert_int_equal(c.result, 0);
	assert_int_equal(leat_close(f), 0);
}

/* No more parts are sent after the cancellation, though the window has room. */
static void window(void **state)
{
	struct leat_file *f = fake_open(m, O_RDWR);
	struct count c = { 0 };
	static char buf[100 * PART];

	(void)state;
	assert_int_equal(leat_aio_pread(f, buf, sizeof(buf), 0, counted(&c)), 0);
	assert_int_equal(fake.count, 64);
	cancel_one(&c, -ECANCELED);
	assert_int_equal(fake.calls, 64);
	assert_int_equal(leat_close(f), 0);
}

static void writes(void **state)
{
	struct leat_file *f = fake_open(m, O_RDWR | O_SYNC);
	struct count c = { 0 };
	static char buf[4 * PART];

	(void)state;
	/* sent, and not answered: it may be executed yet */
	assert_int_equal(leat_aio_pwrite(f, buf, PART, 0, counted(&c)), 0);
	cancel_one(&c, -EINPROGRESS);
	/* what was written at the beginning counts */
	c = (struct count){ 0 };
	assert_int_equal(leat_aio_pwrite(f, buf, sizeof(buf), 0, counted(&c)), 0);
	assert_int_equal(leat_poll(leat_session(m), 0), 1);
	cancel_one(&c, PART);
	/* not sent: nothing has been changed */
	c = (struct count){ 0 };
	fake.unsent = true;
	assert_int_equal(leat_aio_pwrite(f, buf, sizeof(buf), 0, counted(&c)), 0);
	cancel_one(&c, -ECANCELED);
	assert_int_equal(leat_close(f), 0);
}

static unsigned pick_last(unsigned count)
{
	return count - 1;
}

/* A later part has been written: the write has changed something, though not its first bytes. */
static void write_with_hole(void **state)
{
	struct leat_file *f = fake_open(m, O_RDWR | O_SYNC);
	struct count c = { 0 };
	static char buf[4 * PART];

	(void)state;
	fake.unsent = true;
	fake.pick = pick_last;
	assert_int_equal(leat_aio_pwrite(f, buf, sizeof(buf), 0, counted(&c)), 0);
	assert_int_equal(leat_poll(leat_session(m), 0), 1);
	assert_int_equal(written, 1);
	cancel_one(&c, -EINPROGRESS);
	assert_int_equal(leat_close(f), 0);
}

/* The end of one part ends the next one, too. */
static void parts_fail(void **state)
{
	struct leat_file *f = fake_open(m, O_RDWR);
	struct count c = { 0 };
	static char buf[9 * PART];

	(void)state;
	fake.next_fails = -EFAULT;
	assert_int_equal(leat_aio_pread(f, buf, sizeof(buf), 0, counted(&c)), 0);
	cancel_one(&c, -ECANCELED);
	assert_int_equal(leat_close(f), 0);
}

/* Another operation whose call goes, and fails, inside leat_cancel() has its callback later, too. */
static void neighbour_fails(void **state)
{
	struct count c = { 0 }, other = { 0 };

	(void)state;
	fake.next_fails = -EFAULT;
	assert_int_equal(leat_aio_null(m, counted(&c)), 0);
	assert_int_equal(leat_aio_null(m, counted(&other)), 0);
	assert_int_equal(leat_cancel(m, &c), 0);
	assert_int_equal(other.fn, 0);
	assert_int_equal(leat_cancel(m, &other), -ENOENT);
	run();
	assert_int_equal(c.result, -ECANCELED);
	assert_int_equal(other.result, -EFAULT);
	assert_int_equal(c.fn + other.fn, 2);
}

static unsigned looked;

static bool is_counted(const struct lt_task *t, const void *arg)
{
	looked++;
	return t->cb.user_data == arg;
}

/* The search looks at each operation once or twice, however many it cancels. */
static void many(void **state)
{
	static struct count others[200], mine;

	(void)state;
	mine = (struct count){ 0 };
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		others[i] = (struct count){ 0 };
		assert_int_equal(leat_aio_null(m, counted(&others[i])), 0);
		assert_int_equal(leat_aio_null(m, (struct leat_cb){ count_fn, &mine, NULL }), 0);
	}
	looked = 0;
	assert_int_equal(lt_task_cancel(m, is_counted, &mine), ARRAY_SIZE(others));
	assert_in_range(looked, 2 * ARRAY_SIZE(others), 4 * ARRAY_SIZE(others));
	run();
	assert_int_equal(mine.fn, ARRAY_SIZE(others));
	assert_int_equal(mine.result, -ECANCELED);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		assert_int_equal(others[i].result, 0);
}

static void end(struct lt_op *op, int err)
{
	lt_op_finish(op, err);
}

static void call_cancelled(struct lt_op *op, int err)
{
	static const struct lt_program program = { .prog = 1, .vers = 1 };
	static const struct lt_proc proc = { .encode = (xdrproc_t)lt_call_xdr_nothing,
					     .decode = (xdrproc_t)lt_call_xdr_nothing, .program = &program };
	static const struct lt_op_asked asked = { .proc = 1, .p = &proc };

	(void)err;
	op->task.cancelled = true;
	op->asked = &asked;
	lt_op_call_prog(op, end);
}

/* An operation that is cancelled when it starts makes no call, whatever the program. */
static void other_programs(void **state)
{
	struct count c = { 0 };
	struct lt_op *op;

	(void)state;
	assert_int_equal(lt_op_create(m, "test", NULL, NULL, counted(&c), &op), 0);
	assert_int_equal(lt_op_submit(op, call_cancelled), 0);
	run();
	assert_int_equal(c.result, -ECANCELED);
	assert_int_equal(fake.calls, 0);
}

/* A later part may have been written, though its call has failed. */
static int no_reply(struct rpcrdma_call *call)
{
	(void)call;
	return -ETIMEDOUT;
}

static int unstable(struct rpcrdma_call *call)
{
	(void)answer(call);
	((WRITE3res *)call->res)->WRITE3res_u.resok.committed = UNSTABLE;
	return 0;
}

static void write_fails_later(void **state)
{
	static int (*const answers[])(struct rpcrdma_call *call) = { no_reply, unstable };
	struct leat_file *f = fake_open(m, O_RDWR | O_SYNC);
	struct count c;
	static char buf[4 * PART];

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(answers); i++) {
		c = (struct count){ 0 };
		fake.answer = answers[i];
		fake.pick = pick_last;
		assert_int_equal(leat_aio_pwrite(f, buf, sizeof(buf), 0, counted(&c)), 0);
		assert_int_equal(leat_poll(leat_session(m), 0), 1);
		for (unsigned n = 0; n < fake.count; n++)
			fake.waiting[n].call->sent = false; /* still at the client */
		cancel_one(&c, -EINPROGRESS);
	}
	fake.answer = answer;
	assert_int_equal(leat_close(f), 0);
}

static void names(void **state)
{
	struct count c = { 0 };
	struct leat_file *f;
	struct stat st;

	(void)state;
	assert_int_equal(leat_aio_stat(m, "/a/b", &st, counted(&c)), 0);
	cancel_one(&c, -ECANCELED);
	c = (struct count){ 0 };
	assert_int_equal(leat_aio_mkdir(m, "/d", 0700, counted(&c)), 0);
	cancel_one(&c, -EINPROGRESS);
	/* cancelled on its way: MKDIR is not sent */
	c = (struct count){ 0 };
	assert_int_equal(leat_aio_mkdir(m, "/a/d", 0700, counted(&c)), 0);
	cancel_one(&c, -ECANCELED);
	assert_int_equal(fake.by_proc[NFSPROC3_MKDIR], 1);
	/* the file exists, its mode is not set: a LOOKUP or SETATTR that changes nothing does not hide that */
	c = (struct count){ 0 };
	fake.by_proc[NFSPROC3_SETATTR] = 0;
	assert_int_equal(leat_aio_open(m, "/n", O_RDWR | O_CREAT | O_EXCL, 0600, &f, counted(&c)), 0);
	fake.unsent = true;
	assert_int_equal(leat_poll(leat_session(m), 0), 1);
	assert_int_equal(fake.by_proc[NFSPROC3_SETATTR], 1);
	cancel_one(&c, -EINPROGRESS);
}

static int busy(struct rpcrdma_call *call)
{
	*(nfsstat3 *)call->res = NFS3ERR_JUKEBOX;
	return 0;
}

/* A server that asks to try again later has done nothing. */
static void jukebox(void **state)
{
	struct count c = { 0 };

	(void)state;
	fake.answer = busy;
	assert_int_equal(leat_aio_mkdir(m, "/d", 0700, counted(&c)), 0);
	assert_int_equal(leat_poll(leat_session(m), 0), 1);
	assert_int_equal(fake.count, 0);
	assert_non_null(fake.timers);
	cancel_one(&c, -ECANCELED);
	assert_null(fake.timers);
}

/* ---- from callbacks ---- */

static struct count others[3];

static void cancel_others(void *arg, int64_t result)
{
	(void)arg;
	assert_int_equal(result, 0);
	assert_int_equal(leat_cancel(m, &others[0]), 0);
	assert_int_equal(leat_cancel(m, &others[0]), -ENOENT);
	assert_int_equal(leat_cancel_all(m), 0);
	assert_int_equal(leat_cancel_all(m), -ENOENT);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		assert_int_equal(others[i].fn, 0);
}

static void in_callback(void **state)
{
	(void)state;
	memset(others, 0, sizeof(others));
	assert_int_equal(leat_aio_null(m, (struct leat_cb){ .fn = cancel_others }), 0);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		assert_int_equal(leat_aio_null(m, counted(&others[i])), 0);
	run();
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		assert_int_equal(others[i].fn, 1);
		assert_int_equal(others[i].result, -ECANCELED);
	}
}

/* ---- readahead ---- */

static void sequential(void **state)
{
	struct leat_file *f = fake_open(m, O_RDONLY);
	static char buf[PART];
	struct count c = { 0 };

	(void)state;
	m->url.readahead_bytes = 4 * PART;
	assert_int_equal(leat_read(f, buf, PART), PART);
	assert_int_equal(leat_read(f, buf, PART), PART); /* sequential from here on */
	/* waits for a read ahead, or for its own read */
	for (unsigned i = 0; i < 2; i++) {
		c = (struct count){ 0 };
		assert_int_equal(lt_readahead_read(f, buf, PART, i ? 0 : 2 * PART, counted(&c)), 0);
		assert_int_equal(leat_cancel(m, &c), 0);
		assert_int_equal(c.fn, 0);
		run();
		assert_int_equal(c.fn, 1);
		assert_true(c.result == -ECANCELED || c.result == PART);
	}
	assert_int_equal(leat_cancel_all(m), -ENOENT);
	assert_int_equal(leat_read(f, buf, PART), PART);
	assert_int_equal(leat_close(f), 0);
}

/* ---- synchronous calls ---- */

static void interrupt(void)
{
	leat_interrupt(m);
	leat_interrupt(m);
}

static void interrupted(void **state)
{
	struct count c = { 0 };
	struct stat st;

	(void)state;
	/* in progress: the next LOOKUP is not answered; asynchronous operations go on */
	during = interrupt;
	fake.pick = pick_last;
	assert_int_equal(leat_aio_null(m, counted(&c)), 0);
	assert_int_equal(leat_stat(m, "/a/b/c/d/e", &st), -EINTR);
	run();
	assert_int_equal(c.result, 0);
	fake.pick = NULL;
	/* once is enough */
	assert_int_equal(leat_stat(m, "/a/b", &st), 0);
	/* without a call in progress, the next one */
	leat_interrupt(m);
	assert_int_equal(leat_null(m), -EINTR);
	assert_int_equal(leat_null(m), 0);
	run();
	assert_int_equal(leat_null(m), 0);
	/* what may have been executed is not called interrupted */
	during = interrupt;
	assert_int_equal(leat_mkdir(m, "/a/b/d", 0700), -EINTR);
	assert_int_equal(fake.by_proc[NFSPROC3_MKDIR], 0);
	during = interrupt;
	assert_int_equal(leat_mkdir(m, "/d", 0700), 0); /* answered already */
	assert_int_equal(leat_null(m), -EINTR);
	during = interrupt;
	assert_int_equal(leat_mkdir(m, "/a/d", 0700), -EINPROGRESS);
	assert_int_equal(fake.by_proc[NFSPROC3_MKDIR], 2);
}

/* Interrupts @call, whose request the server has not answered. */
static int interrupt_admin(int (*call)(void))
{
	struct count c = { 0 };
	int rc;

	during = interrupt;
	assert_int_equal(leat_aio_null(m, counted(&c)), 0); /* the server answers this one first */
	rc = call();
	assert_int_equal(c.result, 0);
	return rc;
}

static void ignore_counter(void *ctx, const char *name, uint64_t value)
{
	(void)ctx;
	(void)name;
	(void)value;
}

static void ignore_listener(void *ctx, const char *url)
{
	(void)ctx;
	(void)url;
}

static int ask_counters(void)
{
	return leat_server_counters(m, ignore_counter, NULL);
}

static int ask_listeners(void)
{
	return leat_server_listeners(m, ignore_listener, NULL);
}

static int ask_where(void)
{
	struct leat_where *w;

	return leat_server_where(m, &w);
}

static int ask_pieces(void)
{
	struct leat_trace *t;

	return leat_server_pieces(m, &t);
}

static int ask_reload(void)
{
	return leat_server_reload(m, NULL, 0);
}

static int ask_drain(void)
{
	return leat_server_drain(m);
}

/* Only what changes something at a leatd may have changed something. */
static void interrupted_admin(void **state)
{
	(void)state;
	m->server->is_leatd = true;
	assert_int_equal(interrupt_admin(ask_counters), -EINTR);
	assert_int_equal(interrupt_admin(ask_listeners), -EINTR);
	assert_int_equal(interrupt_admin(ask_where), -EINTR);
	assert_int_equal(interrupt_admin(ask_pieces), -EINPROGRESS);
	assert_int_equal(interrupt_admin(ask_reload), -EINPROGRESS);
	assert_int_equal(interrupt_admin(ask_drain), -EINPROGRESS);
}

/* With the service thread, the message of an interruption can come before the start of the call that it is for. */
static void interrupt_overtakes(void **state)
{
	struct leat_session *s = leat_session(m);
	struct lt_wait w;
	struct stat st;

	(void)state;
	assert_int_equal(lt_sync_begin_call(&w, m), 0);
	leat_interrupt(m);
	atomic_store(&s->has_service, true); /* the start is a message, too */
	assert_int_equal(leat_aio_stat(m, "/a/b", &st, w.cb), 0);
	atomic_store(&s->has_service, false);
	assert_int_equal(lt_sync_end(&w, 0), -EINTR);
	assert_int_equal(leat_null(m), 0);
}

/* ---- connections of additional threads ---- */

static int half(struct rpcrdma_call *call)
{
	(void)answer(call);
	((READ3res *)call->res)->READ3res_u.resok.data.length = PART / 2;
	return 0;
}

static struct rpcrdma_engine other;

static void other_threads(void **state)
{
	struct lt_server *s = m->server;
	struct leat_session *session = leat_session(m);
	struct leat_file *f = fake_open(m, O_RDWR);
	static char buf[8 * PART];
	struct count c = { 0 };
	struct stat st;

	(void)state;
	session->conf.threads = 3;
	session->more[0].engine = session->more[1].engine = &other;
	assert_null(lt_server_engine(s, 0));
	assert_ptr_equal(lt_server_engine(s, 1), &other);
	assert_null(lt_server_engine(s, 3));
	session->conf.threads = 1;
	fake_clnts[1].index = 1;
	s->clnt[1] = &fake_clnts[1];
	s->engine[1] = &other;
	s->clnts = 2;
	/* names stay on the session's thread; data goes both ways */
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(leat_stat(m, "/a/b", &st), 0);
	assert_int_equal(fake.by_clnt[1], 0);
	assert_int_equal(leat_pread(f, buf, sizeof(buf), 0), sizeof(buf));
	assert_int_equal(fake.by_clnt[1], 4);
	/* cancelled before it gets there, there, and on its way back */
	for (int steps = 0; steps < 16; steps++) {
		c = (struct count){ 0 };
		assert_int_equal(leat_aio_pread(f, buf, sizeof(buf), 0, counted(&c)), 0);
		for (int i = 0; i < steps; i++)
			(void)leat_poll(session, 0);
		if (!c.fn)
			(void)leat_cancel(m, &c);
		run();
		assert_int_equal(c.fn, 1);
		assert_int_equal(c.free, 1);
		assert_true(c.result == -ECANCELED || c.result == sizeof(buf));
	}
	/* a short reply on its way back: the rest is not asked for */
	for (int steps = 0; steps < 8; steps++) {
		unsigned calls;

		c = (struct count){ 0 };
		fake.answer = half;
		assert_int_equal(leat_aio_pread(f, buf, 2 * PART, 0, counted(&c)), 0);
		for (int i = 0; i < steps; i++)
			(void)leat_poll(session, 0);
		assert_int_equal(leat_cancel(m, &c), 0);
		calls = fake.calls;
		run();
		/* a call may be on its way to the other thread */
		assert_int_equal(fake.calls, calls + (steps == 0 || steps == 2));
		assert_int_equal(c.fn, 1);
		assert_true(c.result == -ECANCELED || c.result == 2 * PART);
	}
	/* the server puts the call off while the cancellation is on its way: there is no further attempt */
	for (int steps = 0; steps < 8; steps++) {
		c = (struct count){ 0 };
		fake.answer = busy;
		assert_int_equal(leat_aio_pread(f, buf, 2 * PART, 0, counted(&c)), 0);
		for (int i = 0; i < steps; i++)
			(void)leat_poll(session, 0);
		assert_int_equal(leat_cancel(m, &c), 0);
		for (int i = 0; i < 20; i++)
			(void)leat_poll(session, 0);
		assert_int_equal(c.fn, 1);
		assert_int_equal(c.result, -ECANCELED);
	}
	fake.answer = answer;
	assert_int_equal(leat_close(f), 0);
	s->clnts = 1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cancel_test(reads),
		cancel_test(window),
		cancel_test(writes),
		cancel_test(write_with_hole),
		cancel_test(parts_fail),
		cancel_test(neighbour_fails),
		cancel_test(many),
		cancel_test(other_programs),
		cancel_test(write_fails_later),
		cancel_test(names),
		cancel_test(jukebox),
		cancel_test(in_callback),
		cancel_test(sequential),
		cancel_test(interrupted),
		cancel_test(interrupted_admin),
		cancel_test(interrupt_overtakes),
		cancel_test(other_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
