/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fleet.c - random operations of several clients on the same files while servers fail, each result judged
 *
 * Operation:  next operation -> adapt(): made possible, for example an open before a read -> settle(): wait for what excludes
 *             it -> begin(): the model learns of it, the back end begins -> reap(): the result is judged. Reads and writes of
 *             all clients overlap as they like: the model (shared.c) has an interval for each. Only one truncate of a file
 *             is in progress at a time, and names change while no one opens them.
 *
 *             An error is right only if a server was away while the operation ran, or if the file was removed. A fault
 *             lasts for a number of operations, or until nothing moves any more. A check heals everything, closes all files,
 *             waits until the manager has nothing left to do, and has each client read everything.
 *
 *             The operations and faults depend on the seed alone. What overlaps depends on the machine.
 * Memory:     A body is what a name leads to. It stays while names, open files or operations refer to it.
 * Threads:    One.
 * Errors:     1 when something was wrong, and the way there is on @out; -errno when that could not be found out.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "fleet_int.h"

#define TICK_MS 20

/* ---- faults ------------------------------------------------------------------------------ */

static uint64_t grace_ns(const struct fleet *fl)
{
	return 2 * fl->o->patience_ms * NS_PER_MS;
}

static void heal(struct fleet *fl, unsigned server)
{
	struct fault_state *s = &fl->faults[server];
	struct fleet_op op = { .number = fl->number, .kind = SHARED_FAULT, .server = server, .fault = s->fault };
	int rc;

	if (!s->active)
		return;
	fleet_note(fl, &op, "healed", 0);
	rc = fl->b->ops->heal(fl->b, server, s->fault);
	if (rc)
		fleet_fail(fl, &op, "the server does not come back: %s (%s)", strerror(-rc), fl->b->ops->why(fl->b, -1));
	s->active = false;
	fl->faulty--;
	fl->healed_ns = fl->moved_ns = clock_now_ns();
}

static void heal_due(struct fleet *fl)
{
	for (unsigned i = 0; i <= fl->o->servers; i++)
		if (fl->faults[i].active && fl->faults[i].until <= fl->number)
			heal(fl, i);
}

static void heal_oldest(struct fleet *fl)
{
	unsigned oldest = 0;

	for (unsigned i = 0; i <= fl->o->servers; i++)
		if (fl->faults[i].active && (!fl->faults[oldest].active || fl->faults[i].since_ns < fl->faults[oldest].since_ns))
			oldest = i;
	heal(fl, oldest);
}

static void heal_all(struct fleet *fl)
{
	for (unsigned i = 0; i <= fl->o->servers; i++)
		heal(fl, i);
}

/* Errors of what is in progress are right from now on. */
static void note_fault(struct fleet *fl, unsigned server, enum fleet_fault fault)
{
	bool manager = server == fl->o->servers;

	for (unsigned i = 0; i < fl->o->depth; i++) {
		fl->slots[i].faulty = true;
		fl->slots[i].manager_faulty |= manager;
	}
	for (unsigned c = 0; c < fl->o->clients && fault == FLEET_KILL && !manager; c++) {
		for (unsigned i = 0; i < fl->o->files; i++) {
			struct opened *o = &fl->opened[c][i];

			o->unsure |= o->written;
			o->must_tell |= o->spread && !o->busy && !o->changing;
		}
	}
}

static void begin_fault(struct fleet *fl, const struct fleet_op *op)
{
	struct fault_state *s = &fl->faults[op->server];
	int rc;

	if (s->active) {
		heal(fl, op->server);
		return;
	}
	fleet_note(fl, op, "", 0);
	fl->sum.faults[op->fault]++;
	note_fault(fl, op->server, op->fault);
	rc = fl->b->ops->fail(fl->b, op->server, op->fault);
	if (rc)
		fleet_give_up(fl, rc);
	fl->healed_ns = clock_now_ns();
	if (op->fault == FLEET_BREAK)
		return;
	*s = (struct fault_state){ true, op->fault, fl->number + op->lasts, clock_now_ns() };
	fl->faulty++;
}

/* ---- on their way ------------------------------------------------------------------------ */

static bool wait_some(struct fleet *fl, const struct fleet_op *op)
{
	uint64_t still;

	if (fl->o->stop && *fl->o->stop)
		fleet_fail(fl, op, "stopped by a signal");
	if (fl->failed)
		return false;
	fl->b->ops->wait(fl->b, TICK_MS);
	fleet_reap(fl);
	fleet_look_at_cuts(fl);
	still = clock_now_ns() - fl->moved_ns;
	if (fl->faulty && still > grace_ns(fl))
		heal_oldest(fl);
	else if (!fl->faulty && still > fl->o->hang_ms * NS_PER_MS)
		fleet_fail(fl, op, "nothing moves, and all servers run");
	return !fl->failed;
}

static bool drain(struct fleet *fl, const struct fleet_op *op)
{
	while (fl->busy)
		if (!wait_some(fl, op))
			return false;
	return !fl->failed;
}

/* Makes of @op what is possible; Return: false: it has to wait */
static bool adapt(struct fleet *fl, struct fleet_op *op)
{
	bool names = op->kind == SHARED_UNLINK || op->kind == SHARED_RENAME;
	struct name *n = &fl->names[op->file], *to = &fl->names[op->to];
	const struct opened *o = &fl->opened[op->client][op->file];
	int other;

	if (fl->busy == fl->o->depth || o->changing)
		return false;
	if (names && !n->body->exists && !o->body)
		op->kind = SHARED_OPEN;
	else if (names && !n->body->exists)
		op->kind = SHARED_CLOSE; /* of what had the name before */
	else if (names) { /* libleat keeps a removed file that it has open by another name: that is tested elsewhere */
		other = fleet_find_opened(fl, op->client, op->kind == SHARED_UNLINK ? n->body : to->body);
		for (unsigned c = 0; c < fl->o->clients && other >= 0; c++) {
			if (fleet_find_opened(fl, c, op->kind == SHARED_UNLINK ? n->body : to->body) >= 0)
				continue;
			op->client = c;
			other = -1;
		}
		if (n->opens || n->locked || (op->kind == SHARED_RENAME && (to->opens || to->locked)))
			return false;
		if (other < 0)
			return true;
		op->file = (unsigned)other;
		op->kind = SHARED_CLOSE;
		o = &fl->opened[op->client][op->file];
	} else if (!o->body) {
		op->kind = SHARED_OPEN;
	} else if (o->lost || (o->body->removed && op->number % 4)) {
		op->kind = SHARED_CLOSE; /* a few operations on removed files are enough */
	}
	if (op->kind == SHARED_OPEN)
		return !fl->names[op->file].locked;
	if (op->kind == SHARED_CLOSE)
		return !o->busy && !o->changing;
	return op->kind != SHARED_TRUNCATE || !o->body->f.truncates;
}

static int remember(struct fleet *fl, const struct fleet_op *op, const struct body *b)
{
	if (fl->nhistory == fl->room) {
		size_t room = fl->room ? 2 * fl->room : 1024;
		struct wrote *v = reallocarray(fl->history, room, sizeof(*v));

		if (!v)
			return -ENOMEM;
		fl->history = v;
		fl->room = room;
	}
	fl->history[fl->nhistory++] = (struct wrote){ op->number, op->off, op->len, b->serial, op->client };
	return 0;
}

static void mark(struct fleet *fl, struct slot *s)
{
	const struct fleet_op *op = &s->io.op;
	struct opened *o = &fl->opened[op->client][op->file];

	switch (op->kind) {
	case SHARED_OPEN:
		fl->names[op->file].opens++;
		o->changing = true;
		break;
	case SHARED_CLOSE:
		o->changing = true;
		break;
	case SHARED_UNLINK:
		fl->names[op->file].locked = true;
		s->body->removed = true;
		break;
	case SHARED_RENAME:
		fl->names[op->file].locked = fl->names[op->to].locked = true;
		fl->names[op->to].body->removed = true;
		break;
	default:
		o->busy++;
		o->syncing += op->kind == SHARED_FSYNC || op->kind == SHARED_TRUNCATE;
		break;
	}
}

static void begin(struct fleet *fl, const struct fleet_op *op)
{
	struct opened *o = &fl->opened[op->client][op->file];
	bool by_name = op->kind == SHARED_OPEN || op->kind == SHARED_UNLINK || op->kind == SHARED_RENAME;
	uint64_t key = rnd_mix(fl->o->seed, op->number);
	struct slot *s = fl->slots;
	int rc;

	while (s->busy)
		s++;
	s->io = (struct fleet_io){ .op = *op, .mem = s->mem };
	s->body = by_name ? fl->names[op->file].body : o->body;
	s->body->refs++;
	s->s = (struct shared_op){ .kind = op->kind, .client = op->client, .lane = fl->lanes[op->client], .sync = o->sync, .off = op->off,
				   .len = op->len, .key = key };
	s->s.partial = fleet_count_opened(fl, op->client, s->body) > 1; /* libleat tells the manager of what this one has written */
	s->start_ns = clock_now_ns();
	s->faulty = fl->faulty || s->start_ns < fl->healed_ns + grace_ns(fl);
	s->manager_faulty = fl->faults[fl->o->servers].active || s->start_ns < fl->healed_ns + grace_ns(fl);
	s->busy = true;
	fl->busy++;
	mark(fl, s);
	rc = shared_begin(&s->body->f, &s->s);
	if (!rc && op->kind == SHARED_WRITE) {
		pattern_fill(s->mem, op->len, key, op->off);
		rc = remember(fl, op, s->body);
	}
	if (rc)
		fleet_give_up(fl, rc);
	fleet_note(fl, op, "", 0);
	rc = fl->b->ops->start(fl->b, &s->io);
	if (rc) {
		s->io.result = rc;
		s->io.done = true;
	}
	fleet_reap(fl);
}

/* ---- operations that are several --------------------------------------------------------- */

static void run_op(struct fleet *fl, struct fleet_op op)
{
	fleet_reap(fl);
	while (!fl->failed && !adapt(fl, &op))
		(void)wait_some(fl, &op);
	if (!fl->failed)
		begin(fl, &op);
}

/* A client goes: what it did may still take effect, and its later calls do not change that. */
static void die(struct fleet *fl, const struct fleet_op *op)
{
	int rc;

	fleet_note(fl, op, "", 0);
	heal(fl, fl->o->servers);
	for (unsigned i = 0; i < fl->o->depth; i++)
		if (fl->slots[i].busy && (fl->slots[i].io.op.kind == SHARED_UNLINK || fl->slots[i].io.op.kind == SHARED_RENAME ||
					  fl->slots[i].io.op.kind == SHARED_OPEN || fl->slots[i].io.op.kind == SHARED_TRUNCATE))
			while (fl->slots[i].busy && wait_some(fl, op))
				;
	if (fl->failed)
		return;
	rc = fl->b->ops->die(fl->b, op->client);
	if (rc) {
		fleet_fail(fl, op, "the client does not come back: %s (%s)", strerror(-rc), fl->b->ops->why(fl->b, (int)op->client));
		return;
	}
	for (unsigned i = 0; i < fl->o->depth; i++) {
		struct slot *s = &fl->slots[i];

		if (!s->busy || s->io.op.client != op->client)
			continue;
		if (s->io.result == -ECANCELED || s->io.result == -EINPROGRESS) {
			uint64_t wrong;

			fleet_note(fl, &s->io.op, "=", s->io.result);
			(void)shared_end(&s->body->f, &s->s, s->io.result, s->mem, false, &wrong);
			fleet_take(fl, s);
		} else {
			fleet_judge(fl, s);
		}
		s->busy = false;
		fl->busy--;
		fleet_put_body(s->body);
	}
	fl->lanes[op->client] = ++fl->serial;
	for (unsigned i = 0; i < fl->o->files; i++) {
		struct opened *o = &fl->opened[op->client][i];

		if (o->body)
			shared_left(&o->body->f);
		fleet_put_body(o->body);
		*o = (struct opened){ 0 };
	}
	fl->sum.ops[SHARED_DIE]++;
}

static bool wait_until_settled(struct fleet *fl, const struct fleet_op *op)
{
	uint64_t until = clock_now_ns() + fl->o->hang_ms * NS_PER_MS;

	while (!fl->b->ops->is_settled(fl->b)) {
		if (clock_now_ns() > until)
			fleet_fail(fl, op, "the manager does not complete what is pending");
		if (fl->failed || (fl->o->stop && *fl->o->stop))
			return false;
		fl->b->ops->wait(fl->b, 1);
	}
	return true;
}

static void close_all(struct fleet *fl, uint64_t number)
{
	for (unsigned c = 0; c < fl->o->clients; c++)
		for (unsigned i = 0; i < fl->o->files; i++)
			if (!fl->failed && fl->opened[c][i].body)
				run_op(fl, (struct fleet_op){ .number = number, .kind = SHARED_CLOSE, .client = c, .file = i });
}

static void read_all(struct fleet *fl, unsigned client, unsigned file, uint64_t number)
{
	struct fleet_op op = { .number = number, .kind = SHARED_OPEN, .client = client, .file = file };
	struct body *b = fl->names[file].body;

	run_op(fl, op);
	if (!drain(fl, &op))
		return;
	op.kind = SHARED_STAT;
	run_op(fl, op);
	for (uint64_t off = 0; off < fl->o->size_max && drain(fl, &op); off += op.len) {
		if (!off && !client) /* the only one in flight was that in the first slot */
			shared_set_size(&b->f, fl->slots[0].io.size);
		op.kind = SHARED_READ;
		op.off = off;
		op.len = MIN(fl->o->len_max, fl->o->size_max - off);
		run_op(fl, op);
	}
	(void)drain(fl, &op);
}

static void check(struct fleet *fl, const struct fleet_op *op)
{
	fleet_note(fl, op, "", 0);
	heal_all(fl);
	if (!drain(fl, op))
		return;
	close_all(fl, op->number);
	if (!drain(fl, op) || !wait_until_settled(fl, op))
		return;
	fleet_look_at_cuts(fl);
	fl->healed_ns = 0;
	for (unsigned i = 0; i < fl->o->files; i++)
		for (unsigned c = 0; c < fl->o->clients && !fl->failed; c++)
			if (fl->names[i].body->exists)
				read_all(fl, c, i, op->number);
	fl->sum.ops[SHARED_CHECK]++;
}

/* ---- the run ----------------------------------------------------------------------------- */

static void run_all(struct fleet *fl)
{
	uint64_t sizes[FLEET_FILES_MAX] = { 0 };
	struct rnd rnd = { .state = fl->o->seed };
	struct fleet_op op = { 0 };

	for (uint64_t i = 1; i <= fl->o->count && !fl->failed; i++) {
		fl->number = op.number = i;
		heal_due(fl);
		fleet_choose(&rnd, fl->o, sizes, &op);
		if (i % fl->o->check_every == 0)
			op = (struct fleet_op){ .number = i, .kind = SHARED_CHECK };
		if (op.kind == SHARED_CHECK)
			check(fl, &op);
		else if (op.kind == SHARED_FAULT)
			begin_fault(fl, &op);
		else if (op.kind == SHARED_DIE)
			die(fl, &op);
		else
			run_op(fl, op);
		if (fl->o->verbose && i % fl->o->check_every == 0 && !fl->failed) {
			fprintf(fl->out, "tumble: %" PRIu64 " operations\n", i);
			fflush(fl->out);
		}
	}
	op = (struct fleet_op){ .number = fl->o->count + 1, .kind = SHARED_CHECK };
	if (!fl->failed)
		check(fl, &op);
}

static int prepare(struct fleet *fl)
{
	for (unsigned i = 0; i < fl->o->files; i++) {
		fl->names[i].body = fleet_create_body(fl);
		if (!fl->names[i].body)
			return -ENOMEM;
	}
	for (unsigned c = 0; c < fl->o->clients; c++)
		fl->lanes[c] = ++fl->serial;
	for (unsigned i = 0; i < fl->o->depth; i++) {
		fl->slots[i].mem = malloc(fl->o->len_max);
		if (!fl->slots[i].mem)
			return -ENOMEM;
	}
	fl->log = fl->o->log ? fopen(fl->o->log, "w") : NULL;
	return fl->o->log && !fl->log ? -errno : 0;
}

/* After a failure: the memory of what is in flight is still in use. */
static void abandon(struct fleet *fl)
{
	heal_all(fl);
	for (unsigned c = 0; c < fl->o->clients; c++)
		(void)fl->b->ops->die(fl->b, c);
	for (unsigned i = 0; i < fl->o->depth; i++) {
		uint64_t wrong;

		if (!fl->slots[i].busy)
			continue;
		(void)shared_end(&fl->slots[i].body->f, &fl->slots[i].s, -ECANCELED, fl->slots[i].mem, false, &wrong);
		fleet_put_body(fl->slots[i].body);
	}
}

int fleet_run(struct fleet_back *b, const struct fleet_opts *o, FILE *out, struct fleet_sum *ret)
{
	struct fleet *fl = calloc(1, sizeof(*fl));
	int rc;

	if (!fl)
		return -ENOMEM;
	fl->b = b;
	fl->o = o;
	fl->out = out;
	fl->moved_ns = clock_now_ns();
	rc = prepare(fl);
	if (!rc)
		run_all(fl);
	if (fl->failed)
		abandon(fl);
	rc = rc ? rc : fl->rc ? fl->rc : fl->failed;
	*ret = fl->sum;
	for (unsigned i = 0; i < o->files; i++) {
		for (unsigned c = 0; c < o->clients; c++)
			fleet_put_body(fl->opened[c][i].body);
		fleet_put_body(fl->names[i].body);
	}
	for (unsigned i = 0; i < o->depth; i++)
		free(fl->slots[i].mem);
	if (fl->log)
		fclose(fl->log);
	free(fl->history);
	free(fl);
	return rc;
}
