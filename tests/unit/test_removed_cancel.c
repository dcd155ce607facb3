/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_removed_cancel.c - unlink, rename and close of files that are open and removed, cancelled while the server has
 *                         their calls: which error they end with, and that no hidden name stays
 */
#include "fake_rpc.h"
#include "leat_count.h"
#include "removed.h"

static struct leat *m;
static char history[256];            /* "RENAME REMOVE ": what the server has executed, in this order */
static struct {
	uint32_t proc;
	nfsstat3 status;
	int err;                     /* of the RPC */
} failure;                           /* of the next call of that procedure */

static void answer_lookup(LOOKUP3resok *ok)
{
	ok->object.data.data_len = 4;
	memcpy(ok->object.data.data_val, "file", 4);
	ok->obj_attributes.attributes_follow = TRUE;
	ok->obj_attributes.post_op_attr_u.attributes.type = NF3REG;
	ok->obj_attributes.post_op_attr_u.attributes.nlink = 1;
}

static int answer(struct rpcrdma_call *call)
{
	static const char *const names[] = {
		[NFSPROC3_RENAME] = "RENAME ",
		[NFSPROC3_LINK] = "LINK ",
		[NFSPROC3_REMOVE] = "REMOVE ",
		[NFSPROC3_COMMIT] = "",
	};

	if (call->proc == NFSPROC3_LOOKUP)
		answer_lookup(&((LOOKUP3res *)call->res)->LOOKUP3res_u.resok);
	else if (call->proc < ARRAY_SIZE(names) && names[call->proc])
		strcat(history, names[call->proc]);
	if (!failure.proc || call->proc != failure.proc)
		return 0;
	failure.proc = 0;
	memcpy(call->res, &failure.status, sizeof(failure.status));
	return failure.err;
}

/* The server would execute REMOVE first. */
static unsigned remove_first(unsigned calls)
{
	for (unsigned i = 0; i < calls; i++) {
		if (fake.waiting[i].call->proc == NFSPROC3_REMOVE)
			return i;
	}
	return 0;
}

static int setup(void **state)
{
	(void)state;
	m = fake_mount(1);
	fake.answer = answer;
	fake.pick = remove_first;
	history[0] = '\0';
	failure.proc = 0;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	leat_umount(m);
	return 0;
}

static struct leat_cb counted(struct count *c)
{
	return (struct leat_cb){ count_fn, c, count_free };
}

static void run(void)
{
	while (leat_poll(leat_session(m), 0) > 0)
		;
}

static void run_until_sent(uint32_t proc)
{
	unsigned before = fake.by_proc[proc];

	while (fake.by_proc[proc] == before)
		assert_int_equal(leat_poll(leat_session(m), 0), 1);
}

/* Begins an unlink, whose RENAME to the hidden name is with the server when this returns. */
static void begin_unlink(struct count *c)
{
	*c = (struct count){ 0 };
	assert_int_equal(leat_aio_unlink(m, "/f", counted(c)), 0);
	run_until_sent(NFSPROC3_RENAME);
}

static void begin_rename(struct count *c)
{
	*c = (struct count){ 0 };
	assert_int_equal(leat_aio_rename(m, "/g", "/f", counted(c)), 0);
	run_until_sent(NFSPROC3_LINK);
}

/* The callback does not wait for the server. */
static void cancel_silently(struct count *c, int64_t result)
{
	fake.silent = true;
	assert_int_equal(leat_cancel(m, c), 0);
	assert_int_equal(c->fn, 0);
	run();
	assert_int_equal(c->fn, 1);
	assert_int_equal(c->free, 1);
	assert_int_equal(c->result, result);
	assert_int_equal(leat_cancel(m, c), -ENOENT);
	fake.silent = false;
}

static void expect(const char *want)
{
	assert_string_equal(history, want);
	history[0] = '\0';
}

/* The file is closed while the server has the RENAME: the REMOVE must not be executed before it. */
static void overtaken(void **state)
{
	struct leat_file *f = fake_open(m, O_RDONLY);
	struct count c, closed = { 0 };

	(void)state;
	begin_unlink(&c);
	cancel_silently(&c, -EINPROGRESS);
	assert_non_null(strstr(leat_error(m), "/f: RENAME: "));
	assert_int_equal(leat_aio_close(f, counted(&closed)), 0);
	run();
	assert_int_equal(closed.result, 0);
	expect("RENAME REMOVE ");
	assert_true(list_is_empty(&m->tasks));

	/* of a rename onto the file: the second name */
	f = fake_open(m, O_RDONLY);
	begin_rename(&c);
	cancel_silently(&c, -EINPROGRESS);
	assert_non_null(strstr(leat_error(m), "/f: LINK: "));
	assert_int_equal(leat_close(f), 0);
	run();
	expect("LINK REMOVE ");
}

/* As long as the file is open, its hidden name stays. */
static void closed_later(void **state)
{
	struct leat_file *f = fake_open(m, O_RDONLY);
	struct count c;

	(void)state;
	begin_unlink(&c);
	cancel_silently(&c, -EINPROGRESS);
	run();
	expect("RENAME ");
	assert_int_equal(leat_close(f), 0);
	expect("REMOVE ");

	/* a synchronous one, too */
	f = fake_open(m, O_RDONLY);
	leat_interrupt(m);
	assert_int_equal(leat_unlink(m, "/f"), -EINTR);
	expect("");
	assert_int_equal(leat_close(f), 0);
	expect("");
}

/* All are cancelled, again and again: this one not, as it has no caller any more. */
static void all(void **state)
{
	struct leat_file *f = fake_open(m, O_RDONLY);
	struct count c;

	(void)state;
	begin_unlink(&c);
	cancel_silently(&c, -EINPROGRESS);
	fake.silent = true;
	for (unsigned i = 0; i < 3; i++) {
		(void)leat_cancel_all(m);
		run();
	}
	fake.silent = false;
	assert_int_equal(c.fn, 1);
	assert_int_equal(leat_close(f), 0);
	run();
	expect("RENAME REMOVE ");
}

/* There is no hidden name, and no one to tell. */
static void refused(void **state)
{
	struct leat_file *f = fake_open(m, O_RDONLY);
	struct count c;
	char error[LT_ERROR_BYTES];

	(void)state;
	begin_unlink(&c);
	cancel_silently(&c, -EINPROGRESS);
	strcpy(error, leat_error(m));
	failure.proc = NFSPROC3_RENAME;
	failure.status = NFS3ERR_ACCES;
	failure.err = 0;
	run();
	assert_string_equal(leat_error(m), error);
	expect("RENAME ");

	/* not yet: it is not asked again */
	begin_unlink(&c);
	cancel_silently(&c, -EINPROGRESS);
	failure.proc = NFSPROC3_RENAME;
	failure.status = NFS3ERR_JUKEBOX;
	run();
	expect("RENAME ");
	assert_int_equal(leat_close(f), 0);
	expect("");
}

/* A call that was not sent is not waited for. */
static void unsent(void **state)
{
	struct leat_file *f = fake_open(m, O_RDONLY);
	struct count c;

	(void)state;
	fake.unsent = true;
	begin_unlink(&c);
	cancel_silently(&c, -ECANCELED);
	assert_int_equal(fake.count, 0);
	assert_int_equal(leat_close(f), 0);
}

/* The call fails while others are cancelled, before the operation goes on without its caller. */
static void fails_meanwhile(void **state)
{
	struct leat_file *f = fake_open(m, O_RDONLY);
	struct count c = { 0 }, other = { 0 };

	(void)state;
	assert_int_equal(leat_aio_unlink(m, "/f", counted(&c)), 0);
	run_until_sent(NFSPROC3_SETATTR);
	assert_int_equal(leat_aio_null(m, counted(&other)), 0);
	run_until_sent(NFSPROC3_RENAME);
	fake.next_fails = -ETIMEDOUT;
	assert_int_equal(leat_cancel_all(m), 0);
	assert_int_equal(fake.count, 0);
	run();
	assert_int_equal(c.result, -EINPROGRESS);
	assert_int_equal(other.result, -ECANCELED);
	fake.next_fails = 0;
	assert_int_equal(leat_close(f), 0);
	expect("REMOVE "); /* it may exist */
}

/* The end of the mount waits for the hidden name and removes it. */
static void unmounted(void **state)
{
	struct leat_file *f;
	struct count c;

	(void)state;
	(void)fake_open(m, O_RDONLY);
	begin_unlink(&c);
	cancel_silently(&c, -EINPROGRESS);
	leat_umount(m);
	expect("RENAME REMOVE ");

	setup(NULL);
	f = fake_open(m, O_RDONLY);
	begin_unlink(&c);
	cancel_silently(&c, -EINPROGRESS);
	fake.silent = true;
	assert_int_equal(leat_close(f), 0);
	fake.silent = false;
	leat_umount(m);
	expect("RENAME REMOVE ");
	setup(NULL);
}

/* Not longer than it may: however far the cancellation has come. */
static void not_in_time(void **state)
{
	(void)state;
	for (unsigned passes = 0; passes < 4; passes++) {
		struct count c;

		(void)fake_open(m, O_RDONLY);
		begin_unlink(&c);
		fake.silent = true;
		if (passes)
			assert_int_equal(leat_cancel(m, &c), 0);
		for (unsigned i = 1; i < passes; i++)
			(void)leat_poll(leat_session(m), 0);
		assert_int_equal(leat_umount_within(m, 0), -ETIMEDOUT);
		assert_int_equal(c.fn, 1);
		assert_int_equal(c.result, -EINPROGRESS);
		assert_int_equal(fake.count, 0);
		setup(NULL);
	}
}

/* A close that is cancelled before it has sent the REMOVE changes something all the same. */
static void closes(void **state)
{
	struct leat_file *f = fake_open(m, O_RDWR);
	struct count c = { 0 };

	(void)state;
	f->has_unstable = true;
	assert_int_equal(leat_aio_close(f, counted(&c)), 0);
	assert_int_equal(fake.count, 1); /* COMMIT */
	cancel_silently(&c, -ECANCELED);
	expect("");

	f = fake_open(m, O_RDWR);
	f->has_unstable = true;
	assert_int_equal(leat_unlink(m, "/f"), 0);
	expect("RENAME ");
	c = (struct count){ 0 };
	assert_int_equal(leat_aio_close(f, counted(&c)), 0);
	assert_int_equal(fake.count, 1); /* COMMIT */
	cancel_silently(&c, -EINPROGRESS);
	run();
	expect("REMOVE ");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(overtaken), TEST(closed_later), TEST(all),         TEST(refused), TEST(unsent),
		TEST(closes),    TEST(unmounted),    TEST(not_in_time), TEST(fails_meanwhile),
	};
#undef TEST

	return cmocka_run_group_tests(tests, NULL, NULL);
}
