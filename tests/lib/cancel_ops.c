/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * cancel_ops.c - random operations that are cancelled at random, and what must hold of each of them
 *
 * Operation:  A byte of a file depends on its offset and on the write that it comes from, so that a check can tell
 *             which write has changed it. A write whose outcome is unknown may be executed at any later time: from
 *             then on its bytes are allowed beside those of later writes.
 * Memory:     All of the test's, until cancel_test_destroy().
 * Threads:    Callbacks run on the thread that owns the session; a slot passes from thread to thread with `busy`.
 * Errors:     Counted in `wrong`, because callbacks may run on a thread that cmocka does not know.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "cancel_ops.h"
#include "inside.h"
#include "leat_flow.h"

#define SMALL ((size_t)128 << 10)
#define LARGE ((size_t)2 << 20)
#define POISON 0xdb
#define PRINTED 10u
#define ENTRIES 200u
#define THREADS 2u
#define TIMES 3u

enum kind { READ, WRITE, STAT, FSTAT, MKDIR, CREATE, OPEN, OPENDIR, FSYNC, PING, CLOSE, KINDS };

static const char *const kinds[KINDS] = { "read", "write", "stat", "fstat", "mkdir", "create", "open", "opendir",
					  "fsync", "null", "close" };
static const enum kind often[] = { READ, READ, READ, READ, READ, WRITE, WRITE, WRITE, WRITE, STAT, FSTAT, MKDIR,
				   CREATE, OPEN, OPENDIR, FSYNC, PING };

static void call_back(void *arg, int64_t result);
static void call_free(void *arg);

uint32_t cancel_random(uint64_t *state, uint32_t n)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((*state >> 33) % n);
}

static void wrong(struct cancel_op *op, const char *what)
{
	struct cancel_test *t = op->slot->t;

	if (atomic_fetch_add(&t->wrong, 1) < PRINTED)
		fprintf(stderr, "operation %td, %s of slot %td, result %lld: %s\n", op - t->ops, kinds[op->kind],
			op->slot - t->slots, (long long)op->result, what);
}

/* ---- what a file holds ---- */

static uint8_t byte_at(uint64_t off, uint32_t version)
{
	return (uint8_t)((off * 0x9e3779b97f4a7c15u + version * 0xd1b54a32d192ed03u) >> 56);
}

static void fill_bytes(uint8_t *mem, size_t len, uint64_t off, uint32_t version)
{
	for (size_t i = 0; i < len; i++)
		mem[i] = byte_at(off + i, version);
}

static void add_maybe(struct cancel_slot *s, uint64_t off, size_t len)
{
	if (!len)
		return;
	if (s->maybes == s->maybes_max) {
		s->maybes_max = MAX(2 * s->maybes_max, (size_t)64);
		s->maybe = realloc(s->maybe, s->maybes_max * sizeof(*s->maybe));
	}
	s->maybe[s->maybes++] = (struct cancel_write){ off, (uint32_t)len, s->version };
}

static void wrote(struct cancel_slot *s, int64_t result)
{
	size_t n = result > 0 ? (size_t)result : 0;

	for (size_t i = 0; i < n; i++)
		s->certain[s->off - s->base + i] = (uint16_t)s->version;
	if (result != -ECANCELED)
		add_maybe(s, s->off + n, s->len - n);
}

static bool is_maybe(const struct cancel_slot *s, uint64_t off, uint8_t byte)
{
	for (size_t i = 0; i < s->maybes; i++) {
		const struct cancel_write *w = &s->maybe[i];

		if (off >= w->off && off - w->off < w->len && byte == byte_at(off, w->version))
			return true;
	}
	return false;
}

/* Return: false: @mem, read at @off of the region, holds a byte that no write can have put there */
static bool is_allowed(const struct cancel_slot *s, const uint8_t *mem, size_t len, uint64_t off)
{
	for (size_t i = 0; i < len; i++) {
		if (mem[i] != byte_at(off + i, s->certain[off - s->base + i]) && !is_maybe(s, off + i, mem[i]))
			return false;
	}
	return true;
}

static bool is_poison(const uint8_t *mem, size_t len)
{
	return !len || (mem[0] == POISON && !memcmp(mem, mem + 1, len - 1));
}

/* ---- the end of an operation ---- */

static bool may_fail(const struct cancel_op *op)
{
	struct cancel_test *t = op->slot->t;

	if (op->result == -EINPROGRESS && op->kind != WRITE && op->kind != MKDIR && op->kind != CREATE)
		return false;
	if (op->result == -ECANCELED || op->result == -EINPROGRESS)
		return atomic_load(&op->cancelled) || atomic_load(&t->all_begun) != op->cancels;
	if (op->result == -EEXIST || op->result == -EIO) /* sent again to a server that has forgotten the reply; lost data */
		return atomic_load(&t->restarted);
	return false;
}

static void judge_data(struct cancel_op *op)
{
	struct cancel_slot *s = op->slot;

	if (op->kind == READ && op->result >= 0) {
		if ((size_t)op->result != s->len)
			wrong(op, "short, though the file is longer");
		else if (!is_allowed(s, s->mem, s->len, s->off))
			wrong(op, "read what nobody has written");
	}
	if (op->kind == WRITE) {
		if (!op->result || op->result > (int64_t)s->len)
			wrong(op, "a count that cannot be");
		wrote(s, op->result);
	}
}

static void poison(struct cancel_slot *s)
{
	memset(s->mem, POISON, s->len);
	s->poisoned = s->len;
}

static struct cancel_op *next_op(struct cancel_slot *s, enum kind kind)
{
	struct cancel_test *t = s->t;
	unsigned i = atomic_fetch_add(&t->started, 1);
	struct cancel_op *op;

	if (i >= t->ops_max) {
		atomic_store(&t->started, t->ops_max);
		return NULL;
	}
	op = &t->ops[i];
	op->slot = s;
	op->kind = (uint8_t)kind;
	op->cancels = atomic_load(&t->all_done);
	atomic_fetch_add(&t->may_cancel, 1);
	return op;
}

static struct leat_cb callback(struct cancel_op *op)
{
	atomic_store(&op->slot->op, op);
	return (struct leat_cb){ call_back, op, call_free };
}

/* What an operation has opened is closed, by a further operation of the slot. Return: true: it has been started. */
static bool close_opened(struct cancel_slot *s)
{
	struct leat_file *f = s->opened;
	struct cancel_op *op;

	leat_closedir(s->dir);
	s->dir = NULL;
	s->opened = NULL;
	if (!f)
		return false;
	op = next_op(s, CLOSE);
	if (!op) {
		(void)leat_aio_close(f, (struct leat_cb){ 0 });
		return false;
	}
	if (leat_aio_close(f, callback(op)))
		wrong(op, "cannot be started");
	return true;
}

/* Callbacks cancel, too: the operations of other slots, and their own, which has ended. */
static void cancel_from_callback(struct cancel_op *op)
{
	struct cancel_slot *s = op->slot;
	uint32_t random = cancel_random(&s->random, 64);

	if (random < 8)
		cancel_test_cancel(&s->t->slots[cancel_random(&s->random, CANCEL_SLOTS)]);
	else if (random == 8)
		cancel_test_cancel_all(s->t, s->m);
	else if (random == 9 && leat_cancel(s->m, op) != -ENOENT)
		wrong(op, "in flight, though its callback runs");
}

static void call_back(void *arg, int64_t result)
{
	struct cancel_op *op = arg;
	struct cancel_slot *s = op->slot;

	op->result = result;
	if (atomic_fetch_add(&op->fn, 1) || atomic_load(&op->freed))
		wrong(op, "called back again");
	if (result < 0 && !may_fail(op))
		wrong(op, "no reason for this error");
	atomic_fetch_add(&s->t->ends[result == -ECANCELED ? 1 : result == -EINPROGRESS ? 2 : 0], 1);
	judge_data(op);
	if (op->kind == READ || op->kind == WRITE)
		poison(s);
	if (result < 0 && (s->opened || s->dir) && op->kind != CLOSE)
		wrong(op, "failed, and has opened");
	cancel_from_callback(op);
}

static void call_free(void *arg)
{
	struct cancel_op *op = arg;
	struct cancel_slot *s = op->slot;

	if (atomic_fetch_add(&op->freed, 1) || !atomic_load(&op->fn))
		wrong(op, "freed again, or before its callback");
	if (close_opened(s))
		return;
	if (cancel_random(&s->random, 4) && cancel_test_start(s)) /* an operation started by a callback */
		return;
	atomic_store(&s->op, NULL);
	atomic_store(&s->busy, false);
}

/* ---- the start of an operation ---- */

static void choose_range(struct cancel_slot *s)
{
	static const size_t limits[] = { 16, 4096, 8192, SMALL, LARGE };
	size_t limit = limits[cancel_random(&s->random, ARRAY_SIZE(limits))];

	s->len = 1 + cancel_random(&s->random, (uint32_t)MIN(limit, s->cap));
	s->off = s->base + cancel_random(&s->random, (uint32_t)(s->cap - s->len) + 1);
	if (cancel_random(&s->random, 2)) { /* whole pages, for transfers without a copy */
		s->off = MAX(s->off & ~(uint64_t)4095, s->base);
		s->len = MAX(s->len & ~(size_t)4095, (size_t)1);
	}
}

static int start_data(struct cancel_slot *s, struct cancel_op *op)
{
	choose_range(s);
	if (!is_poison(s->mem, s->poisoned))
		wrong(op, "the memory of the operation before has changed since its callback");
	s->poisoned = 0;
	if (op->kind == READ)
		return leat_aio_pread(s->f, s->mem, s->len, s->off, callback(op));
	s->version++;
	fill_bytes(s->mem, s->len, s->off, s->version);
	return leat_aio_pwrite(s->f, s->mem, s->len, s->off, callback(op));
}

static int start_name(struct cancel_slot *s, struct cancel_op *op)
{
	char name[32];

	snprintf(name, sizeof(name), "n%td", op - s->t->ops);
	if (op->kind == MKDIR)
		return leat_aio_mkdir(s->m, name, 0700, callback(op));
	if (op->kind == OPENDIR)
		return leat_aio_opendir(s->m, "dir", &s->dir, callback(op));
	return leat_aio_open(s->m, op->kind == OPEN ? "data" : name, op->kind == OPEN ? O_RDONLY : O_CREAT | O_EXCL | O_RDWR,
			     0600, &s->opened, callback(op));
}

static int start_op(struct cancel_slot *s, struct cancel_op *op)
{
	switch ((enum kind)op->kind) {
	case READ:
	case WRITE:
		return start_data(s, op);
	case STAT:
		return leat_aio_stat(s->m, "dir/e7", &s->st, callback(op));
	case FSTAT:
		return leat_aio_fstat(s->f, &s->st, callback(op));
	case FSYNC:
		return leat_aio_fsync(s->f, callback(op));
	case PING:
		return leat_aio_null(s->m, callback(op));
	default:
		return start_name(s, op);
	}
}

bool cancel_test_start(struct cancel_slot *s)
{
	struct cancel_op *op = next_op(s, often[cancel_random(&s->random, ARRAY_SIZE(often))]);

	if (!op)
		return false;
	atomic_store(&s->busy, true);
	if (start_op(s, op))
		wrong(op, "cannot be started");
	return true;
}

static bool may_cancel(struct cancel_test *t, int n)
{
	if (atomic_fetch_sub(&t->may_cancel, 2 * n) >= 2 * n)
		return true;
	atomic_fetch_add(&t->may_cancel, 2 * n);
	return false;
}

void cancel_test_cancel(struct cancel_slot *s)
{
	struct cancel_op *op = atomic_load(&s->op);

	if (!op || !may_cancel(s->t, 1))
		return;
	atomic_store(&op->cancelled, true);
	(void)leat_cancel(s->m, op);
	if ((op - s->t->ops) & 1) /* again: it is ending */
		(void)leat_cancel(s->m, op);
}

void cancel_test_cancel_all(struct cancel_test *t, struct leat *m)
{
	if (!may_cancel(t, (int)(CANCEL_SLOTS / CANCEL_MOUNTS)))
		return;
	atomic_fetch_add(&t->all_begun, 1);
	(void)leat_cancel_all(m);
	atomic_fetch_add(&t->all_done, 1);
}

bool cancel_test_is_busy(struct cancel_test *t)
{
	for (unsigned i = 0; i < CANCEL_SLOTS; i++) {
		if (atomic_load(&t->slots[i].busy))
			return true;
	}
	return false;
}

/* ---- one thread, which runs the loop itself ---- */

static void step(struct cancel_test *t, uint64_t *random)
{
	struct cancel_slot *s = &t->slots[cancel_random(random, CANCEL_SLOTS)];

	switch (cancel_random(random, 8)) {
	case 0:
		cancel_test_cancel(s);
		break;
	case 1:
		if (!cancel_random(random, 100))
			cancel_test_cancel_all(t, s->m);
		break;
	case 2:
	case 3:
		assert_true(leat_poll(t->session, 0) >= 0);
		break;
	default:
		if (!atomic_load(&s->busy))
			(void)cancel_test_start(s);
	}
}

static void run_own_loop(struct cancel_test *t, unsigned ops)
{
	uint64_t random = 1;

	while (atomic_load(&t->started) < ops)
		step(t, &random);
}

/* ---- several threads, with the service thread ---- */

struct worker {
	struct cancel_test *t;
	unsigned id;
};

static void *start_and_cancel(void *arg)
{
	const struct worker *w = arg;
	struct cancel_test *t = w->t;
	uint64_t random = 100 + w->id;

	while (atomic_load(&t->started) < t->ops_max) {
		struct cancel_slot *mine = &t->slots[cancel_random(&random, CANCEL_SLOTS / THREADS) * THREADS + w->id];

		if (!atomic_load(&mine->busy))
			(void)cancel_test_start(mine);
		if (!cancel_random(&random, 2))
			cancel_test_cancel(&t->slots[cancel_random(&random, CANCEL_SLOTS)]);
		if (!cancel_random(&random, 400))
			cancel_test_cancel_all(t, mine->m);
	}
	return NULL;
}

static void run_served(struct cancel_test *t, void (*midway)(struct cancel_test *t))
{
	unsigned first = atomic_load(&t->started), ops = t->ops_max - first;
	struct worker workers[THREADS];
	pthread_t threads[THREADS];

	assert_int_equal(leat_service_start(t->session), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){ t, i };
		assert_int_equal(pthread_create(&threads[i], NULL, start_and_cancel, &workers[i]), 0);
	}
	for (unsigned i = 1; midway && i <= TIMES; i++) {
		while (atomic_load(&t->started) < first + ops / (TIMES + 1) * i)
			sched_yield();
		midway(t);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	while (cancel_test_is_busy(t))
		sched_yield();
	leat_service_stop(t->session);
}

void cancel_test_run(struct cancel_test *t, void (*midway)(struct cancel_test *t))
{
	run_own_loop(t, t->ops_max / 2);
	run_served(t, midway);
}

/* ---- the end of the test ---- */

static void check_name(struct cancel_test *t, struct cancel_op *op)
{
	char path[256];
	bool there;

	snprintf(path, sizeof(path), "%s/n%td", t->export, op - t->ops);
	there = access(path, F_OK) == 0;
	if (there && op->result == -ECANCELED)
		wrong(op, "cancelled, but executed");
	if (!there && op->result == 0)
		wrong(op, "not executed");
}

static void check_ops(struct cancel_test *t)
{
	for (unsigned i = 0; i < atomic_load(&t->started); i++) {
		struct cancel_op *op = &t->ops[i];

		if (op->fn != 1 || op->freed != 1)
			wrong(op, op->fn ? "not freed, or twice" : "not called back");
		if (op->kind == MKDIR || op->kind == CREATE)
			check_name(t, op);
	}
}

static void check_slot(struct cancel_slot *s)
{
	struct cancel_op *op = next_op(s, READ);

	if (!is_poison(s->mem, s->poisoned))
		wrong(op, "the memory of the last operation has changed since its callback");
	assert_int_equal(leat_pread(s->f, s->mem, s->cap, s->base), s->cap);
	if (!is_allowed(s, s->mem, s->cap, s->base))
		wrong(op, "the file holds what nobody has written");
}

/* Waits for the replies to cancelled calls; then no call of the session is in flight, and all credits are back. */
static void await_credits(struct leat *m)
{
	for (unsigned n = 0; n < 100000 && leat_credits_out(m); n++)
		(void)leat_poll(leat_session(m), 10);
	assert_int_equal(leat_credits_out(m), 0);
	assert_int_equal(leat_flow_stat(m, "calls"), leat_flow_stat(m, "replies"));
}

void cancel_test_check(struct cancel_test *t)
{
	assert_false(cancel_test_is_busy(t));
	for (unsigned i = 0; i < CANCEL_MOUNTS; i++)
		await_credits(t->m[i]);
	check_ops(t);
	t->ops_max += CANCEL_SLOTS; /* there is room for these */
	for (unsigned i = 0; i < CANCEL_SLOTS; i++)
		check_slot(&t->slots[i]);
	print_message("%u operations: %u with a result, %u cancelled, %u perhaps executed\n", atomic_load(&t->started),
		      t->ends[0], t->ends[1], t->ends[2]);
	assert_int_equal(atomic_load(&t->wrong), 0);
}

/* ---- the beginning of the test ---- */

static void make_entries(const char *export)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/dir", export);
	assert_int_equal(mkdir(path, 0755), 0);
	for (unsigned i = 0; i < ENTRIES; i++) {
		snprintf(path, sizeof(path), "%s/dir/e%u", export, i);
		assert_int_equal(mkdir(path, 0755), 0);
	}
}

static void init_slot(struct cancel_test *t, unsigned i)
{
	struct cancel_slot *s = &t->slots[i];
	void *mem;

	s->t = t;
	s->m = t->m[i % CANCEL_MOUNTS];
	s->f = t->f[i % CANCEL_MOUNTS];
	s->cap = i / CANCEL_MOUNTS % 4 ? SMALL : LARGE;
	s->is_buf = i / CANCEL_MOUNTS % 2;
	s->base = i * LARGE + i; /* not always the beginning of a page */
	s->random = i;
	if (s->is_buf)
		assert_int_equal(leat_buf_alloc(t->session, s->cap, &mem), 0);
	else
		assert_int_equal(posix_memalign(&mem, 4096, s->cap), 0);
	s->mem = mem;
	s->certain = calloc(s->cap, sizeof(*s->certain));
	assert_non_null(s->certain);
	fill_bytes(s->mem, s->cap, s->base, 0);
	assert_int_equal(leat_pwrite(s->f, s->mem, s->cap, s->base), s->cap);
}

struct cancel_test *cancel_test_create(const char *url, const char *const options[CANCEL_MOUNTS], const char *export,
				       const char *threads, unsigned ops_max)
{
	struct cancel_test *t = calloc(1, sizeof(*t));
	struct leat_opts *opts = leat_opts_create();

	assert_non_null(t);
	t->export = export;
	t->ops_max = ops_max;
	t->ops = calloc(ops_max + CANCEL_SLOTS, sizeof(*t->ops));
	assert_non_null(t->ops);
	make_entries(export);
	assert_int_equal(leat_set(opts, "threads", threads), 0);
	assert_int_equal(leat_session_create(opts, &t->session), 0);
	leat_opts_destroy(opts);
	for (unsigned i = 0; i < CANCEL_MOUNTS; i++) {
		char full[512];

		snprintf(full, sizeof(full), "%s?%s", url, options[i]);
		if (leat_session_mount(t->session, full, NULL, &t->m[i]))
			fail_msg("%s", leat_error(NULL));
		assert_int_equal(leat_open(t->m[i], "data", O_RDWR | O_CREAT, 0600, &t->f[i]), 0);
	}
	for (unsigned i = 0; i < CANCEL_SLOTS; i++)
		init_slot(t, i);
	return t;
}

static void fini_slot(struct cancel_slot *s)
{
	if (s->is_buf)
		leat_buf_free(s->t->session, s->mem);
	else
		free(s->mem);
	free(s->certain);
	free(s->maybe);
}

void cancel_test_destroy(struct cancel_test *t)
{
	for (unsigned i = 0; i < CANCEL_SLOTS; i++)
		fini_slot(&t->slots[i]);
	for (unsigned i = 0; i < CANCEL_MOUNTS; i++)
		leat_umount(t->m[i]);
	assert_int_equal(leat_session_free(t->session), 0);
	free(t->ops);
	free(t);
}
