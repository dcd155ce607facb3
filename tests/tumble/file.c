/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * file.c - random operations on one file, every answer compared with the model
 *
 * Operation:  next operation -> settle(): wait until nothing in flight could change its outcome ->
 *             submit(): into a slot, the model is changed, the back end begins -> reap(): the answer
 *             is judged. The order of the operations depends on the seed alone, not on which answer
 *             comes first. In flight together are only operations that commute: no two of which one
 *             writes the same bytes, no read that could see the end of the file move. Truncation,
 *             reopening and the look at the whole file wait for all others.
 *
 *             `floor` is the size that the file certainly has while writes that make it longer are
 *             in flight; stat may answer anything from there to the model's size.
 * Memory:     A slot has two buffers for its data: ordinary memory, and the back end's. What lies
 *             just before and behind the data of a read must not change.
 * Threads:    One.
 * Errors:     1 when the file is not what it has to be, which has then been told on @out, with the
 *             way there; -errno when that could not be found out.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "tumble.h"

#define GUARD 64u
#define GUARD_BYTE 0xa7
#define UNREAD_BYTE 0x5c
#define SKEW_MAX 4096u
#define TOLD 24u                   /* operations, when it went wrong */
#define RECOVERIES_MAX 50u

struct slot {
	struct back_io io;
	struct op op;
	bool busy;
	uint8_t *plain, *pool;
	uint8_t *data;             /* in one of them */
	uint64_t expect;           /* read: bytes */
	uint64_t floor;            /* stat: at least */
	bool extends;              /* write: beyond the floor */
};

struct run {
	struct back *b;
	const struct tumble_opts *o;
	FILE *out;
	struct model model;
	struct oplog log;
	struct chooser chooser;
	struct slot slots[TUMBLE_DEPTH_MAX];
	unsigned depth, busy, extending;
	uint64_t floor;
	bool lost;                 /* the server has told so */
	bool failed;
	struct tumble_sum sum;
};

static void tell_way(struct run *r)
{
	size_t from = r->log.count > TOLD ? r->log.count - TOLD : 0;
	int rc;

	for (unsigned i = 0; i < r->depth; i++) {
		if (r->slots[i].busy && !r->slots[i].io.done) {
			fprintf(r->out, "  in flight: ");
			op_print(r->out, &r->slots[i].op);
		}
	}
	fprintf(r->out, "  the last of %zu operations, seed %" PRIu64 ":\n", r->log.count,
		r->o->seed);
	for (size_t i = from; i < r->log.count; i++) {
		fprintf(r->out, "    ");
		op_print(r->out, &r->log.ops[i]);
	}
	if (!r->o->log)
		return;
	rc = oplog_save(&r->log, r->o->log, r->o);
	if (rc)
		fprintf(r->out, "  no log: %s: %s\n", r->o->log, strerror(-rc));
	else
		fprintf(r->out, "  all of them: %s, to be replayed with -R\n", r->o->log);
}

/* The first finding ends the run: what follows may be its consequence. */
static bool begin_failure(struct run *r, const struct op *op)
{
	if (r->failed)
		return false;
	r->failed = true;
	fprintf(r->out, "tumble: WRONG in operation ");
	op_print(r->out, op);
	return true;
}

static void printf_like(3, 4) fail(struct run *r, const struct op *op, const char *fmt, ...)
{
	va_list ap;

	if (!begin_failure(r, op))
		return;
	fprintf(r->out, "  ");
	va_start(ap, fmt);
	vfprintf(r->out, fmt, ap);
	va_end(ap);
	fprintf(r->out, "\n");
	tell_way(r);
}

static void fail_errno(struct run *r, const struct op *op, const char *what, int err)
{
	fail(r, op, "%s: %s (%s)", what, strerror(-err), r->b->ops->why(r->b));
}

/* ---- judging ----------------------------------------------------------------------------- */

static bool is_guarded(const struct slot *s)
{
	for (unsigned i = 0; i < GUARD; i++) {
		if (s->data[-1 - (int)i] != GUARD_BYTE || s->data[s->op.len + i] != GUARD_BYTE)
			return false;
	}
	return true;
}

static void judge_read(struct run *r, struct slot *s)
{
	uint64_t n = (uint64_t)s->io.result;

	if (n != s->expect) {
		fail(r, &s->op,
		     "%" PRIu64 " bytes were read instead of %" PRIu64 ", the file has %" PRIu64, n,
		     s->expect, r->model.size);
		return;
	}
	r->sum.bytes_read += n;
	if (n && memcmp(s->data, r->model.bytes + s->op.off, n) != 0) {
		if (begin_failure(r, &s->op)) {
			model_explain(&r->model, &r->log, r->o->seed, s->op.off, s->data, n,
				      r->out);
			tell_way(r);
		}
		return;
	}
	if (!is_guarded(s))
		fail(r, &s->op, "memory beside the caller's was changed");
}

static void judge_stat(struct run *r, struct slot *s)
{
	uint64_t size = (uint64_t)s->io.st.st_size;

	if (!S_ISREG(s->io.st.st_mode))
		fail(r, &s->op, "mode %o is not that of a file", (unsigned)s->io.st.st_mode);
	else if (size < s->floor || size > r->model.size)
		fail(r, &s->op, "a size of %" PRIu64 " instead of %" PRIu64, size, r->model.size);
}

static void judge(struct run *r, struct slot *s)
{
	int64_t result = s->io.result;

	r->sum.ops[s->op.kind]++;
	if (result < 0) {
		if (s->op.kind == OP_FSYNC && r->o->restarts &&
		    r->b->ops->is_loss(r->b, (int)result))
			r->lost = true;
		else
			fail_errno(r, &s->op, "the back end", (int)result);
		return;
	}
	if (s->op.kind == OP_READ) {
		judge_read(r, s);
	} else if (s->op.kind == OP_WRITE) {
		r->sum.bytes_written += (uint64_t)result;
		if ((uint64_t)result != s->op.len)
			fail(r, &s->op, "only %" PRId64 " bytes were written", result);
	} else if (s->op.kind == OP_STAT) {
		judge_stat(r, s);
	} else if (result) {
		fail(r, &s->op, "an answer of %" PRId64 " instead of 0", result);
	}
}

static void reap(struct run *r)
{
	for (unsigned i = 0; i < r->depth; i++) {
		struct slot *s = &r->slots[i];

		if (!s->busy || !s->io.done)
			continue;
		s->busy = false;
		r->busy--;
		if (s->extends && --r->extending == 0)
			r->floor = r->model.size;
		judge(r, s);
	}
}

/* ---- on their way ------------------------------------------------------------------------ */

static bool wait_some(struct run *r)
{
	int rc;

	if (r->o->stop && *r->o->stop) {
		static const struct op none = { .kind = OP_CHECK };

		fail(r, r->log.count ? &r->log.ops[r->log.count - 1] : &none,
		     "stopped by a signal");
		return false;
	}
	rc = r->b->ops->wait(r->b);
	if (rc)
		fail_errno(r, &r->log.ops[r->log.count - 1], "waiting", rc);
	reap(r);
	return !r->failed;
}

static bool drain(struct run *r)
{
	while (r->busy) {
		if (!wait_some(r))
			return false;
	}
	return !r->failed;
}

static bool overlap(const struct op *a, const struct op *b)
{
	return a->off < b->off + b->len && b->off < a->off + a->len;
}

/* Would @op and the operation of @s, in flight, have to happen in a certain order? */
static bool collide(const struct run *r, const struct op *op, const struct slot *s)
{
	bool write = op->kind == OP_WRITE, was_write = s->op.kind == OP_WRITE;
	bool data = write || op->kind == OP_READ, was_data = was_write || s->op.kind == OP_READ;

	if (!data || !was_data || (!write && !was_write))
		return false;
	if (overlap(op, &s->op))
		return true;
	if (!write) /* a read: may it see how far the writer has come? */
		return s->extends && op->off + op->len > r->floor;
	return !was_write && op->off + op->len > r->floor && s->op.off + s->op.len > r->floor;
}

static bool has_collision(const struct run *r, const struct op *op)
{
	for (unsigned i = 0; i < r->depth; i++) {
		if (r->slots[i].busy && collide(r, op, &r->slots[i]))
			return true;
	}
	return false;
}

/* Wait until @op may be started beside what is in flight, and has a slot. */
static bool settle(struct run *r, const struct op *op)
{
	bool alone = op->kind == OP_TRUNCATE || op->kind == OP_CHECK ||
		     (op->kind == OP_REOPEN && !(op->how & HOW_BUSY));

	reap(r);
	while (r->busy == r->depth || (alone && r->busy) || has_collision(r, op)) {
		if (!wait_some(r))
			return false;
	}
	return !r->failed;
}

/* Make of @op what is possible: after its choice, or in a log without some of its lines. */
static void fit(const struct run *r, struct op *op)
{
	uint64_t align = r->o->direct_align, end;

	op->how &= r->b->can;
	if (op->kind != OP_READ && op->kind != OP_WRITE)
		return;
	if (op->how & HOW_MAP && op->off + op->len > r->model.size)
		op->how &= ~HOW_MAP; /* beyond the end a mapping has no memory */
	if (op->how & HOW_DIRECT && align > 1) {
		end = MIN((op->off + op->len + align - 1) / align * align, r->model.max);
		op->off -= op->off % align;
		if (end % align || end - op->off > r->o->len_max)
			op->how &= ~HOW_DIRECT;
		else
			op->len = end - op->off;
	}
}

static void cut(struct slot *s, uint64_t key)
{
	struct rnd rnd = { .state = key };
	int pieces = s->op.how & HOW_VECTOR ? 2 + (int)rnd_below(&rnd, TUMBLE_PIECES_MAX - 1) : 1;
	uint64_t at = 0;

	for (int i = 0; i < pieces; i++) {
		uint64_t n = i < pieces - 1 ? rnd_below(&rnd, s->op.len - at + 1) : s->op.len - at;

		s->io.iov[i] = (struct iovec){ .iov_base = s->data + at, .iov_len = n };
		at += n;
	}
	s->io.iovcnt = pieces;
}

static void prepare_data(struct run *r, struct slot *s)
{
	uint64_t key = rnd_mix(r->o->seed, s->op.number);
	uint64_t skew = rnd_mix(key, 1) % SKEW_MAX;
	struct op *op = &s->op;

	if (op->how & HOW_DIRECT)
		skew -= skew % r->o->direct_align;
	s->data = (op->how & HOW_POOL ? s->pool : s->plain) + SKEW_MAX + skew;
	cut(s, rnd_mix(key, 2));
	if (op->kind == OP_READ) {
		s->expect = model_readable(&r->model, op->off, op->len);
		memset(s->data - GUARD, GUARD_BYTE, GUARD);
		memset(s->data, UNREAD_BYTE, op->len);
		memset(s->data + op->len, GUARD_BYTE, GUARD);
		return;
	}
	pattern_fill(s->data, op->len, key, op->off);
	if (!r->extending)
		r->floor = r->model.size;
	s->extends = op->off + op->len > r->floor;
	r->extending += s->extends;
	model_write(&r->model, op->off, s->data, op->len);
}

/* Begin @op; the way is free. */
static void submit(struct run *r, const struct op *op)
{
	struct slot *s = r->slots;
	int rc;

	while (s->busy)
		s++;
	s->op = *op;
	s->io.op = &s->op;
	s->io.done = false;
	s->extends = false;
	s->floor = r->extending ? r->floor : r->model.size;
	if (op->kind == OP_READ || op->kind == OP_WRITE)
		prepare_data(r, s);
	else if (op->kind == OP_TRUNCATE)
		model_truncate(&r->model, op->len);
	if (!r->extending)
		r->floor = r->model.size;
	s->busy = true;
	r->busy++;
	rc = r->b->ops->start(r->b, &s->io);
	if (rc) {
		s->io.result = rc;
		s->io.done = true;
	}
	reap(r);
	if (op->kind == OP_TRUNCATE)
		(void)drain(r); /* failures stay in r->failed */
}

/* ---- operations that are several --------------------------------------------------------- */

static bool is_loss(struct run *r, int rc)
{
	return r->o->restarts && r->b->ops->is_loss(r->b, rc);
}

static void reopen(struct run *r, const struct op *op)
{
	int flags = op->how & HOW_SYNC ? O_SYNC : op->how & HOW_DSYNC ? O_DSYNC : 0;
	int rc = r->b->ops->close(r->b);

	reap(r);
	if (rc && is_loss(r, rc))
		r->lost = true;
	else if (rc)
		fail_errno(r, op, "close", rc);
	for (unsigned i = 0; i < r->depth; i++) {
		/* what goes by name does not belong to the open file */
		if (r->slots[i].busy && !(r->slots[i].op.how & HOW_PATH))
			fail(r, op, "close came back before an operation on the file");
	}
	if (r->failed)
		return;
	rc = r->b->ops->open(r->b, flags);
	if (rc)
		fail_errno(r, op, "open", rc);
	r->sum.ops[OP_REOPEN]++;
}

/* Look at everything: the size, every byte, the end. */
static void check_all(struct run *r, const struct op *as)
{
	struct op op = { .number = as->number, .kind = OP_STAT, .how = as->how };
	uint64_t end;

	if (!drain(r))
		return;
	submit(r, &op);
	if (!drain(r))
		return;
	end = MIN(r->model.size + 1, r->model.max);
	op.kind = OP_READ;
	op.how = as->number % 2 ? HOW_POOL & r->b->can : 0;
	for (uint64_t off = 0; off < end; off += op.len) {
		op.off = off;
		op.len = MIN(r->o->len_max, end - off);
		if (!settle(r, &op))
			return;
		submit(r, &op);
	}
	if (drain(r))
		r->sum.ops[OP_CHECK]++;
}

static bool write_all(struct run *r, uint64_t number)
{
	struct back_io io = { 0 };
	struct op op = { .number = number, .kind = OP_TRUNCATE, .len = r->model.size };
	uint64_t off = 0;

	/* not by way of slots: this is the model's content, and goes into no log */
	for (;;) {
		int rc;

		io.op = &op;
		io.done = false;
		io.iov[0] =
			(struct iovec){ .iov_base = r->model.bytes + op.off, .iov_len = op.len };
		io.iovcnt = 1;
		rc = r->b->ops->start(r->b, &io);
		while (!rc && !io.done)
			rc = r->b->ops->wait(r->b);
		if (!rc && io.result < 0)
			rc = (int)io.result;
		if (op.kind == OP_FSYNC && rc && is_loss(r, rc))
			return false;
		if (rc) {
			fail_errno(r, &op, "writing again", rc);
			return false;
		}
		if (op.kind == OP_FSYNC)
			return true;
		op.kind = off < r->model.size ? OP_WRITE : OP_FSYNC;
		op.off = off;
		op.len = MIN(r->o->len_max, r->model.size - off);
		off += op.len;
	}
}

/* The server has lost what was written and not yet stable, and said so: write everything again,
 * through a newly opened file, as leat_fsync(3) wants it. */
static void recover(struct run *r, const struct op *op)
{
	if (!drain(r))
		return;
	for (unsigned i = 0; i < RECOVERIES_MAX && !r->failed; i++) {
		bool done;
		int rc;

		r->lost = false;
		r->sum.losses++;
		rc = r->b->ops->close(r->b);
		if (rc && !is_loss(r, rc))
			fail_errno(r, op, "close after a loss", rc);
		rc = r->b->ops->open(r->b, 0);
		if (rc)
			fail_errno(r, op, "open after a loss", rc);
		done = !r->failed && write_all(r, op->number);
		if (done || r->failed)
			return;
	}
	fail(r, op, "data was lost %u times in a row", RECOVERIES_MAX);
}

/* ---- the run ----------------------------------------------------------------------------- */

static void run_op(struct run *r, struct op op)
{
	int rc;

	if (!settle(r, &op))
		return;
	/* what was written meanwhile may change what is possible, and that what collides */
	fit(r, &op);
	if (!settle(r, &op))
		return;
	if (r->lost)
		recover(r, &op);
	if (r->failed)
		return;
	rc = oplog_add(&r->log, &op);
	if (rc)
		fail_errno(r, &op, "the log", rc);
	else if (op.kind == OP_REOPEN)
		reopen(r, &op);
	else if (op.kind == OP_CHECK)
		check_all(r, &op);
	else
		submit(r, &op);
	if (r->lost && !r->failed)
		recover(r, &op);
}

static void run_random(struct run *r)
{
	struct op op = { 0 };

	for (uint64_t i = 1; i <= r->o->count && !r->failed; i++) {
		op.number = i;
		if (i % r->o->check_every == 0)
			op = (struct op){ .number = i, .kind = OP_CHECK };
		else
			op_choose(&r->chooser, r->o, r->b->can, r->model.size, &op);
		run_op(r, op);
		if (r->o->verbose && i % r->o->check_every == 0 && !r->failed) {
			fprintf(r->out, "tumble: %" PRIu64 " operations\n", i);
			fflush(r->out);
		}
	}
}

static void run_all(struct run *r, const struct oplog *replay)
{
	struct op last = { .number = r->o->count + 1, .kind = OP_CHECK };

	if (replay) {
		for (size_t i = 0; i < replay->count && !r->failed; i++) {
			last.number = MAX(last.number, replay->ops[i].number + 1);
			run_op(r, replay->ops[i]);
		}
	} else {
		run_random(r);
	}
	for (unsigned i = 0; i < 3 && !r->failed; i++) {
		last.kind = i == 1 ? OP_REOPEN : OP_CHECK;
		run_op(r, last);
		last.number++;
	}
	last.kind = OP_REOPEN; /* a close; what is stable cannot be lost by it */
	if (!r->failed) {
		int rc = r->b->ops->close(r->b);

		if (rc && is_loss(r, rc))
			rc = 0; /* the last look has written nothing since */
		if (rc)
			fail_errno(r, &last, "the last close", rc);
	}
}

static void free_slots(struct run *r)
{
	for (unsigned i = 0; i < r->depth; i++) {
		free(r->slots[i].plain);
		if (r->slots[i].pool)
			r->b->ops->free(r->b, r->slots[i].pool);
	}
}

static int alloc_slots(struct run *r)
{
	size_t bytes = r->o->len_max + 3 * SKEW_MAX;
	void *mem;
	int rc = 0;

	for (unsigned i = 0; i < r->depth && !rc; i++) {
		rc = -posix_memalign(&mem, SKEW_MAX, bytes);
		if (rc)
			break;
		r->slots[i].plain = mem;
		rc = r->b->ops->alloc(r->b, bytes, &mem);
		if (!rc)
			r->slots[i].pool = mem;
	}
	return rc;
}

/** tumble_file - run, and tell
 * @b: its file is made, or emptied, and closed in the end; after a failure it may be left open,
 *     and then belongs to destroy(), as does what is in flight
 * @replay: instead of random operations; may be NULL
 * @ret_sum: what was done
 * @ret_model: what the file has to be now; the caller's to end. May be NULL.
 *
 * Return: 0; 1: something was wrong, and @out has it; -ENOMEM, or why the file cannot be made.
 */
int tumble_file(struct back *b, const struct tumble_opts *o, const struct oplog *replay, FILE *out,
		struct tumble_sum *ret_sum, struct model *ret_model)
{
	struct run *r = calloc(1, sizeof(*r));
	int rc;

	if (!r)
		return -ENOMEM;
	r->b = b;
	r->o = o;
	r->out = out;
	r->depth = b->ops->async ? o->depth : 1;
	r->chooser.rnd.state = o->seed;
	rc = model_init(&r->model, o->size_max);
	if (!rc)
		rc = alloc_slots(r);
	if (!rc)
		rc = b->ops->open(b, O_CREAT | O_TRUNC);
	if (!rc)
		run_all(r, replay);
	while (!rc && r->busy && !(o->stop && *o->stop)) {
		/* the slots' memory is still in use after a failure */
		(void)b->ops->wait(b);
		reap(r);
	}
	if (!rc) {
		r->sum.reconnects = b->ops->reconnects(b);
		*ret_sum = r->sum;
		rc = r->failed;
	}
	if (!rc && ret_model) {
		*ret_model = r->model;
		r->model = (struct model){ 0 };
	}
	if (r->busy)
		return rc; /* stopped: the memory belongs to what is still in flight */
	free_slots(r);
	model_fini(&r->model);
	oplog_fini(&r->log);
	free(r);
	return rc;
}
