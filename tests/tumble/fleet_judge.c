/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fleet_judge.c - the results of operations on striped volumes: right or not, and what they mean for names and open files
 *
 * Operation:  An error is right only if a server was away while the operation ran, or if the file was removed. The model of the
 *             file (shared.c) judges the rest.
 * Memory:     A body is what a name leads to. It stays while names, open files or operations refer to it.
 * Threads:    One.
 * Errors:     As fleet.c.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "fleet_int.h"

/* ---- bodies ------------------------------------------------------------------------------ */

struct body *fleet_create_body(struct fleet *fl)
{
	struct body *b = calloc(1, sizeof(*b));

	if (!b || shared_init(&b->f, &fl->clock, fl->o->size_max, fl->o->unit, fl->o->servers)) {
		fleet_give_up(fl, -ENOMEM);
		free(b);
		return NULL;
	}
	b->refs = 1;
	b->serial = ++fl->serial;
	return b;
}

void fleet_put_body(struct body *b)
{
	if (!b || --b->refs)
		return;
	shared_fini(&b->f);
	free(b);
}

unsigned fleet_count_opened(const struct fleet *fl, unsigned client, const struct body *b)
{
	unsigned n = 0;

	for (unsigned i = 0; i < fl->o->files; i++)
		n += fl->opened[client][i].body == b;
	return n;
}

/* The file by which @client has @b open; or -1 */
int fleet_find_opened(const struct fleet *fl, unsigned client, const struct body *b)
{
	for (unsigned i = 0; i < fl->o->files; i++)
		if (fl->opened[client][i].body == b)
			return (int)i;
	return -1;
}

/* ---- results ----------------------------------------------------------------------------- */

static bool may_fail(const struct fleet *fl, const struct slot *s, int err)
{
	const struct opened *o = &fl->opened[s->io.op.client][s->io.op.file];

	switch (s->io.op.kind) {
	case SHARED_READ:
	case SHARED_WRITE:
		return (err == -EIO && s->faulty) || (err == -ESTALE && s->body->removed);
	case SHARED_STAT:
		return err == -ESTALE && s->body->removed;
	case SHARED_TRUNCATE: /* it syncs first */
	case SHARED_FSYNC:
	case SHARED_CLOSE:
		return (err == -EIO && (s->faulty || o->unsure)) || (err == -ESTALE && s->body->removed);
	case SHARED_UNLINK:
	case SHARED_RENAME:
		/* the one that was executed had no time to reply, and another manager did not know it */
		return err == -ENOENT && s->manager_faulty;
	default:
		return false;
	}
}

static void take_names(struct fleet *fl, struct slot *s)
{
	struct name *n = &fl->names[s->io.op.file], *to = &fl->names[s->io.op.to];
	struct body *fresh = fleet_create_body(fl);

	if (!fresh)
		return;
	if (s->io.op.kind == SHARED_RENAME) {
		fleet_put_body(to->body);
		to->body = n->body;
		to->locked = false;
	} else {
		fleet_put_body(n->body);
	}
	n->body = fresh;
	n->locked = false;
}

static void take_opened(struct fleet *fl, struct slot *s)
{
	struct opened *o = &fl->opened[s->io.op.client][s->io.op.file];
	bool first = fleet_find_opened(fl, s->io.op.client, s->body) < 0;

	fl->names[s->io.op.file].opens--;
	o->changing = false;
	if (s->io.result)
		return;
	s->body->exists = true;
	s->body->f.narrow |= s->io.width != fl->o->servers;
	s->body->refs++;
	if (first)
		shared_opened(&s->body->f, s->io.op.client);
	*o = (struct opened){ .body = s->body, .sync = s->io.op.sync };
}

static void take_closed(struct fleet *fl, struct slot *s)
{
	struct opened *o = &fl->opened[s->io.op.client][s->io.op.file];

	if (s->io.result)
		shared_left(&o->body->f);
	fleet_put_body(o->body);
	*o = (struct opened){ 0 };
}

/* Has each server unstable data of this write? What has ended before a sync beside it may be stable. */
static bool is_spread(const struct fleet *fl, const struct opened *o, const struct slot *s)
{
	return !o->sync && !o->syncing && s->s.start > o->synced && !s->body->f.narrow && s->io.result == (int64_t)s->io.op.len &&
	       s->io.op.len >= fl->o->servers * fl->o->unit;
}

/* What the result means beyond the model of the file. */
void fleet_take(struct fleet *fl, struct slot *s)
{
	struct opened *o = &fl->opened[s->io.op.client][s->io.op.file];

	switch (s->io.op.kind) {
	case SHARED_OPEN:
		take_opened(fl, s);
		return;
	case SHARED_CLOSE:
		take_closed(fl, s);
		return;
	case SHARED_UNLINK:
	case SHARED_RENAME:
		take_names(fl, s);
		return;
	case SHARED_WRITE:
		o->written = true;
		o->spread |= is_spread(fl, o, s);
		o->unsure |= s->faulty;
		break;
	case SHARED_FSYNC:
	case SHARED_TRUNCATE:
		o->lost |= s->io.result == -EIO;
		o->spread = false;
		o->synced = *s->body->f.clock;
		o->syncing--;
		break;
	default:
		break;
	}
	o->busy--;
}

static bool syncs(enum shared_kind kind)
{
	return kind == SHARED_FSYNC || kind == SHARED_CLOSE;
}

void fleet_judge(struct fleet *fl, struct slot *s)
{
	const struct fleet_op *op = &s->io.op;
	int64_t result = s->io.result;
	uint64_t wrong_at = NEVER;
	const char *wrong;

	fleet_note(fl, op, "=", result);
	fl->sum.ops[op->kind]++;
	fl->sum.errors += result < 0;
	if (result == -EIO && !s->faulty && clock_now_ns() - s->start_ns >= fl->o->patience_ms * NS_PER_MS) {
		s->faulty = true; /* this machine is slow: a server had no time to reply */
		fl->sum.slow++;
	}
	if (result < 0 && !may_fail(fl, s, (int)result))
		fleet_fail(fl, op, "%s, and no server was away (%s)", strerror((int)-result), fl->b->ops->why(fl->b, (int)op->client));
	wrong = shared_end(&s->body->f, &s->s, op->kind == SHARED_STAT && !result ? (int64_t)s->io.size : result, s->mem, !s->faulty,
			   &wrong_at);
	if (syncs(op->kind) && !result && fl->opened[op->client][op->file].must_tell)
		wrong = "unstable data was in a server that was killed, and that was not told";
	if (wrong && fleet_begin_failure(fl, op)) {
		fprintf(fl->out, "%s (file #%" PRIu64 ", %" PRIu64 " to %" PRIu64 " bytes; result %" PRId64 ", size %" PRIu64 ")\n", wrong,
			s->body->serial, s->s.low, s->s.high, result, s->io.size);
		if (wrong_at != NEVER) {
			fprintf(fl->out, "  at offset %" PRIu64 " (stripe %" PRIu64 ")\n", wrong_at, wrong_at / fl->o->unit % fl->o->servers);
			fleet_tell_origin(fl, wrong_at, s->mem + (wrong_at - op->off), op->off + (uint64_t)result - wrong_at);
			fleet_tell_candidates(fl, &s->body->f, wrong_at);
		}
		fleet_tell_way(fl);
	}
	fleet_take(fl, s);
}

/* Cuts are complete once the manager has nothing left to do. */
void fleet_look_at_cuts(struct fleet *fl)
{
	bool any = false;

	for (unsigned i = 0; i < fl->o->files; i++) {
		any |= fl->names[i].body && shared_is_incomplete(&fl->names[i].body->f);
		for (unsigned c = 0; c < fl->o->clients; c++)
			any |= fl->opened[c][i].body && shared_is_incomplete(&fl->opened[c][i].body->f);
	}
	if (!any || !fl->b->ops->is_settled(fl->b))
		return;
	fleet_note(fl, &(struct fleet_op){ .number = fl->number, .kind = SHARED_CHECK }, "that nothing is pending: it is so", 0);
	for (unsigned i = 0; i < fl->o->files; i++) {
		shared_complete(&fl->names[i].body->f);
		for (unsigned c = 0; c < fl->o->clients; c++)
			if (fl->opened[c][i].body)
				shared_complete(&fl->opened[c][i].body->f);
	}
	fl->sum.incomplete++;
}

void fleet_reap(struct fleet *fl)
{
	for (unsigned i = 0; i < fl->o->depth; i++) {
		struct slot *s = &fl->slots[i];

		if (!s->busy || !s->io.done)
			continue;
		s->busy = false;
		fl->busy--;
		fl->moved_ns = clock_now_ns();
		fleet_judge(fl, s);
		fleet_put_body(s->body);
	}
}
