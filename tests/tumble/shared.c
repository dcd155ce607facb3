/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * shared.c - what a file of a striped volume may be, while several clients use it at the same time and servers fail
 *
 * Operation:  shared_begin() before an operation is started, shared_end() when it has ended: that says what is wrong.
 *             Bytes and size are kept apart. The bytes (spans.c) are those of the objects, also behind the end of the file.
 *             The size has bounds. A write may make the file longer from its beginning on. It certainly has when its client
 *             sees it: at once for itself, for others when that client has synced or closed the file.
 *
 *             A truncate to less than the lower bound is a cut: zeroes that are written to everything behind. One to more
 *             than the upper bound until it ends changes no bytes. Between the bounds it may be either. A cut that was acknowledged is
 *             complete when no server is away. Until then clients with older handles may write to the servers that are, and
 *             such data is cut. shared_complete() says that this is over: then what failed before the cut is
 *             fenced off.
 *
 *             One truncate of a file at a time: that is the caller's part.
 * Memory:     struct shared_op is the caller's.
 * Threads:    One.
 * Errors:     A text; -ENOMEM.
 */
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "shared.h"

/** shared_init - an empty file
 * @clock: counts events; shared by all files
 * @unit, @width: of the stripes
 *
 * Return: 0, -ENOMEM
 */
int shared_init(struct shared *f, uint64_t *clock, uint64_t max, uint64_t unit, unsigned width)
{
	*f = (struct shared){ .clock = clock, .unit = unit, .width = width };
	list_init(&f->ops);
	return spans_init(&f->spans, max);
}

/** shared_fini - no operation is in progress */
void shared_fini(struct shared *f)
{
	change_put(f->cut);
	spans_fini(&f->spans);
}

/* ---- the size ---------------------------------------------------------------------------- */

static void raise_high(struct shared *f, uint64_t bytes)
{
	f->high = MAX(f->high, bytes);
	f->cut_high = MAX(f->cut_high, bytes);
	list_for_each(node, &f->ops) {
		struct shared_op *op = list_entry(node, struct shared_op, link);

		op->high = MAX(op->high, bytes);
		op->cut_high = MAX(op->cut_high, bytes);
	}
}

static void lower_low(struct shared *f, uint64_t bytes)
{
	f->low = MIN(f->low, bytes);
	for (unsigned i = 0; i < SHARED_CLIENTS_MAX; i++)
		f->own[i] = MIN(f->own[i], bytes);
	list_for_each(node, &f->ops) {
		struct shared_op *op = list_entry(node, struct shared_op, link);

		op->low = MIN(op->low, bytes);
	}
}

static bool knows_cut(const struct shared *f, unsigned client)
{
	return !f->cut || f->knows[client];
}

/* The end of a write is known to all. */
static void raise_low(struct shared *f, const struct shared_op *op, uint64_t bytes)
{
	if (op->generation == f->generation && !f->truncates)
		f->low = MAX(f->low, bytes);
}

/* ---- the stripes ------------------------------------------------------------------------- */

typedef int (*unit_fn)(struct shared *f, struct shared_op *op, unsigned stripe, uint64_t from, uint64_t to);

static int each_unit(struct shared *f, struct shared_op *op, uint64_t len, unit_fn fn)
{
	int rc = 0;

	for (uint64_t at = op->off, end = op->off + len, next; at < end && !rc; at = next) {
		next = MIN(end, (at / f->unit + 1) * f->unit);
		rc = fn(f, op, (unsigned)(at / f->unit % f->width), at, next);
	}
	return rc;
}

static int add_unit(struct shared *f, struct shared_op *op, unsigned stripe, uint64_t from, uint64_t to)
{
	struct change *c = op->changes[stripe];

	if (!c) {
		c = change_create(&f->spans, op->start);
		if (!c)
			return -ENOMEM;
		c->key = op->key;
		c->lane = op->lane;
		c->stripe = stripe;
		op->changes[stripe] = c;
	}
	return spans_add(&f->spans, c, from, to);
}

static int done_unit(struct shared *f, struct shared_op *op, unsigned stripe, uint64_t from, uint64_t to)
{
	op->changes[stripe]->end = *f->clock;
	spans_done(&f->spans, op->changes[stripe], from, to, *f->clock);
	return 0;
}

/* What the client had failed to change by this stripe cannot happen later than now. */
static int settle_unit(struct shared *f, struct shared_op *op, unsigned stripe, uint64_t from, uint64_t to)
{
	(void)from;
	(void)to;
	if (f->narrow) /* which stripe it was is not known */
		return 0;
	list_for_each(node, &f->spans.changes) {
		struct change *c = list_entry(node, struct change, link);

		if (c->lane == op->lane && c->stripe == stripe && c->failed < op->start)
			c->end = MIN(c->end, *f->clock);
	}
	return 0;
}

static void drop_changes(struct shared_op *op)
{
	for (unsigned i = 0; i < SHARED_WIDTH_MAX; i++) {
		change_put(op->changes[i]);
		op->changes[i] = NULL;
	}
}

/* ---- truncates --------------------------------------------------------------------------- */

/* How long writes in progress may make the file */
static uint64_t longest_write(const struct shared *f)
{
	uint64_t longest = 0;

	list_for_each(node, &f->ops) {
		const struct shared_op *op = list_entry(node, struct shared_op, link);

		if (op->kind == SHARED_WRITE)
			longest = MAX(longest, op->off + op->len);
	}
	return longest;
}

static int begin_truncate(struct shared *f, struct shared_op *op)
{
	op->cuts = op->len < f->low;
	raise_high(f, op->len);
	lower_low(f, op->len);
	op->cut_high = MAX(op->len, longest_write(f));
	f->generation++;
	f->truncates++;
	if (op->len == f->spans.max)
		return 0;
	op->changes[0] = change_create(&f->spans, op->start);
	if (!op->changes[0])
		return -ENOMEM;
	op->changes[0]->zero = true;
	return spans_add(&f->spans, op->changes[0], op->len, f->spans.max);
}

static void end_truncate(struct shared *f, struct shared_op *op, bool failed)
{
	struct change *zeroes = op->changes[0];

	f->generation++;
	f->truncates--;
	if (failed && zeroes)
		zeroes->failed = *f->clock;
	if (failed)
		return;
	f->low = op->len;
	if (!zeroes)
		return;
	zeroes->done = true;
	if (op->high <= op->len) { /* the file was never longer meanwhile */
		spans_undone(&f->spans, zeroes, *f->clock);
		return;
	}
	memset(f->knows, 0, sizeof(f->knows));
	f->knows[op->client] = true;
	if (f->cut && !op->cuts)
		return;
	if (f->cut) /* earlier ones may still be pending where a server is away; what they promise is not claimed */
		change_put(f->cut);
	f->cut = zeroes;
	f->cut->refs++;
	f->is_cut = op->cuts;
	f->cut_high = op->cut_high;
	f->cut_bytes = op->len;
}

/** shared_is_incomplete - is there a cut that is not known to be complete on each server? */
bool shared_is_incomplete(const struct shared *f)
{
	return f->cut != NULL;
}

/** shared_complete - every server has the last cut, and all before it */
void shared_complete(struct shared *f)
{
	struct change *cut = f->cut;

	if (!cut)
		return;
	f->cut = NULL;
	++*f->clock;
	list_for_each(node, &f->spans.changes) {
		struct change *c = list_entry(node, struct change, link);

		if (c->done)
			c->end = MIN(c->end, *f->clock);
	}
	if (f->is_cut) {
		spans_fenced(&f->spans, cut, f->cut_bytes, *f->clock);
		f->high = f->cut_high;
		f->left = f->left < cut->start ? 0 : f->left;
	}
	change_put(cut);
}

/** shared_left - a client has closed the file, or has ended, without having told the manager of its writes */
void shared_left(struct shared *f)
{
	f->left = *f->clock;
}

/** shared_set_size - no client has the file open, and its size is known now */
void shared_set_size(struct shared *f, uint64_t size)
{
	f->low = size;
	if (!f->left)
		f->high = size;
}

/** shared_opened - @client has opened the file, which was closed: it knows the last cut */
void shared_opened(struct shared *f, unsigned client)
{
	f->knows[client] = true;
	f->own[client] = f->unreported[client] = 0;
}

/* ---- operations -------------------------------------------------------------------------- */

static int begin_write(struct shared *f, struct shared_op *op)
{
	op->counts = !f->truncates && knows_cut(f, op->client);
	f->unreported[op->client] = MAX(f->unreported[op->client], op->off + op->len);
	raise_high(f, op->off + op->len);
	return each_unit(f, op, op->len, add_unit);
}

/** shared_begin - an operation begins; @op has kind, client, off, len, key and sync
 * Return: 0; -ENOMEM
 */
int shared_begin(struct shared *f, struct shared_op *op)
{
	op->start = ++*f->clock;
	op->generation = f->generation;
	op->knew = f->cut && f->is_cut && f->knows[op->client] ? f->cut->start : 0;
	op->low = MAX(f->low, f->own[op->client]);
	op->high = op->knew ? f->cut_high : f->high;
	op->own = op->partial ? 0 : f->own[op->client];
	list_add_tail(&f->ops, &op->link);
	if (op->kind == SHARED_WRITE)
		return begin_write(f, op);
	return op->kind == SHARED_TRUNCATE ? begin_truncate(f, op) : 0;
}

static const char *end_write(struct shared *f, struct shared_op *op, int64_t result)
{
	if (result >= 0 && (uint64_t)result > op->len)
		return "more bytes were written than there are";
	if (result < 0 || (uint64_t)result < op->len) {
		for (unsigned i = 0; i < SHARED_WIDTH_MAX; i++)
			if (op->changes[i])
				op->changes[i]->failed = *f->clock;
		return NULL;
	}
	(void)each_unit(f, op, op->len, done_unit);
	(void)each_unit(f, op, op->len, settle_unit);
	if (!op->counts || op->generation != f->generation)
		return NULL;
	f->own[op->client] = MAX(f->own[op->client], op->off + op->len);
	if (op->sync)
		raise_low(f, op, op->off + op->len);
	return NULL;
}

static const char *end_read(struct shared *f, struct shared_op *op, int64_t result, const uint8_t *data, bool whole,
			    uint64_t *ret_wrong)
{
	struct look look = { .lane = op->lane, .start = op->start, .now = *f->clock, .cut = f->cut && op->knew == f->cut->start ? f->cut : NULL,
			     .cut_from = f->cut_bytes };
	uint64_t n = (uint64_t)result;
	int rc;

	if (result < 0)
		return NULL;
	if (n > op->len)
		return "more bytes were read than there is room for";
	if (n && op->off + n > op->high)
		return "bytes were read behind the end of the file";
	if (whole && op->off + n < MIN(op->low, op->off + op->len))
		return "less was read than the file has";
	rc = spans_judge(&f->spans, &look, op->off, data, n, ret_wrong);
	if (rc)
		return rc < 0 ? "out of memory" : "a byte that cannot be there";
	(void)each_unit(f, op, n, settle_unit);
	return NULL;
}

static void tidy(struct shared *f)
{
	uint64_t oldest = *f->clock;

	list_for_each(node, &f->ops)
		oldest = MIN(oldest, list_entry(node, struct shared_op, link)->start);
	spans_tidy(&f->spans, oldest);
}

static const char *judge(struct shared *f, struct shared_op *op, int64_t result, const uint8_t *data, bool whole, uint64_t *ret_wrong)
{
	switch (op->kind) {
	case SHARED_WRITE:
		return end_write(f, op, result);
	case SHARED_READ:
		return end_read(f, op, result, data, whole, ret_wrong);
	case SHARED_STAT:
		if (result >= 0 && (uint64_t)result > MAX(op->high, f->unreported[op->client]))
			return "the size is larger than the file can be";
		return result >= 0 && (uint64_t)result < op->low ? "the size is smaller than the file can be" : NULL;
	case SHARED_TRUNCATE:
		end_truncate(f, op, result < 0);
		return NULL;
	case SHARED_FSYNC:
	case SHARED_CLOSE:
		if (!result)
			raise_low(f, op, op->own);
		return NULL;
	default:
		return NULL;
	}
}

/** shared_end - an operation has ended
 * @result: bytes; 0; of stat the size; or -errno
 * @data: of a read
 * @whole: no server was away: a read returns all that there is
 * @ret_wrong: where the byte is, if one is wrong; else unchanged
 *
 * Return: NULL; or what is wrong
 */
const char *shared_end(struct shared *f, struct shared_op *op, int64_t result, const uint8_t *data, bool whole, uint64_t *ret_wrong)
{
	const char *wrong;

	++*f->clock;
	wrong = judge(f, op, result, data, whole, ret_wrong);
	list_del(&op->link);
	drop_changes(op);
	tidy(f);
	return wrong;
}
