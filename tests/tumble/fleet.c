/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fleet.c - random operations of several clients on the same files while servers fail, each result judged
 *
 * Operation:  next operation -> adapt(): made possible, for example an open before a read -> settle(): wait for what excludes
 *             it -> begin(): the model learns of it, the back end begins -> reap(): the result is judged. Reads and writes of
 *             all clients overlap as they like: the model (shared.c) has an interval for each. Only one truncate of a file
 *             is in progress at a time, and names change while no one opens them.
 *             Each byte that is written tells its operation, so a wrong byte names the client and the number.
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
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/util.h"
#include "fleet.h"

#define LINES 60u
#define LINE_BYTES 160u
#define TICK_MS 20

struct body {
	struct shared f;
	unsigned refs;
	uint64_t serial;
	bool exists, removed;      /* removed: its name goes, or has gone */
};

struct opened {
	struct body *body;         /* NULL: not open */
	unsigned busy;             /* operations */
	bool changing, sync;       /* changing: it is being opened or closed */
	bool written, unsure;      /* unsure: unstable data may have been lost since */
	bool lost;                 /* and was, or a server was away */
};

struct name {
	struct body *body;
	unsigned opens;            /* in progress */
	bool locked;               /* it is being removed or renamed */
};

struct slot {
	struct fleet_io io;
	struct shared_op s;
	struct body *body;
	bool busy, faulty, manager_faulty;
	uint64_t start_ns;
	uint8_t *mem;
};

struct wrote {
	uint64_t number, off, len, body;
	unsigned client;
};

struct fault_state {
	bool active;
	enum fleet_fault fault;
	uint64_t until, since_ns;
};

struct fleet {
	struct fleet_back *b;
	const struct fleet_opts *o;
	FILE *out, *log;
	uint64_t clock, serial;
	struct name names[FLEET_FILES_MAX];
	struct opened opened[SHARED_CLIENTS_MAX][FLEET_FILES_MAX];
	uint64_t lanes[SHARED_CLIENTS_MAX];
	struct slot slots[FLEET_DEPTH_MAX];
	struct fault_state faults[FLEET_SERVERS_MAX + 1];
	unsigned busy, faulty;
	uint64_t number;           /* of the operation that is begun */
	uint64_t healed_ns, moved_ns;
	char lines[LINES][LINE_BYTES];
	uint64_t nlines;
	struct wrote *history;
	size_t nhistory, room;
	bool failed;
	int rc;
	struct fleet_sum sum;
};

/* ---- telling ----------------------------------------------------------------------------- */

static void note(struct fleet *fl, const struct fleet_op *op, const char *what, int64_t result)
{
	char *line = fl->lines[fl->nlines++ % LINES];
	FILE *f = fmemopen(line, LINE_BYTES, "w");

	if (!f)
		return;
	fprintf(f, "%" PRIu64 ": ", fl->clock);
	fleet_print(f, op);
	fprintf(f, " %s", what);
	if (!strcmp(what, "=") && result < 0)
		fprintf(f, " %s", strerror((int)-result));
	else if (!strcmp(what, "="))
		fprintf(f, " %" PRId64, result);
	fclose(f);
	if (fl->log)
		fprintf(fl->log, "%s\n", line);
}

static void tell_writer(struct fleet *fl, uint64_t key)
{
	for (size_t i = fl->nhistory; i-- > 0;) {
		const struct wrote *w = &fl->history[i];

		if (rnd_mix(fl->o->seed, w->number) != key)
			continue;
		fprintf(fl->out, "%" PRIu64 " of client %u, file #%" PRIu64 ", %" PRIu64 " %" PRIu64, w->number, w->client, w->body,
			w->off, w->len);
		return;
	}
}

/* Whose bytes are these? */
static void tell_origin(struct fleet *fl, uint64_t off, const uint8_t *got, uint64_t len)
{
	fprintf(fl->out, "  got     ");
	for (uint64_t i = 0; i < MIN(len, (uint64_t)8); i++)
		fprintf(fl->out, " %02x", got[i]);
	if (!got[0])
		fprintf(fl->out, ", as in a hole");
	for (size_t i = fl->nhistory; i-- > 0;) {
		const struct wrote *w = &fl->history[i];
		uint64_t key = rnd_mix(fl->o->seed, w->number), n = 0;

		while (n < len && n < 8 && got[n] == pattern_byte(key, off + n))
			n++;
		if (n < MIN(len, (uint64_t)4))
			continue;
		fprintf(fl->out, ", as written by ");
		tell_writer(fl, key);
		break;
	}
	fprintf(fl->out, "\n");
}

static void tell_candidates(struct fleet *fl, const struct shared *f, uint64_t off)
{
	size_t i = 0;

	while (i + 1 < f->spans.n && f->spans.v[i + 1].from <= off)
		i++;
	for (unsigned k = 0; k < f->spans.v[i].n; k++) {
		const struct candidate *v = &f->spans.v[i].v[k];

		fprintf(fl->out, "  possible: ");
		if (v->by->zero)
			fprintf(fl->out, "zeroes");
		else
			tell_writer(fl, v->by->key);
		fprintf(fl->out, ", from %" PRIu64 " to %" PRId64 ", failed %" PRId64 ", replaced %" PRId64 "\n", v->by->start,
			(int64_t)v->by->end, (int64_t)v->by->failed, (int64_t)v->dead);
	}
}

static void tell_way(struct fleet *fl)
{
	for (unsigned i = 0; i < fl->o->depth; i++) {
		if (!fl->slots[i].busy)
			continue;
		fprintf(fl->out, "  in flight: ");
		fleet_print(fl->out, &fl->slots[i].io.op);
		fprintf(fl->out, "\n");
	}
	fprintf(fl->out, "  seed %" PRIu64 ", %" PRIu64 " ops; the last events:\n", fl->o->seed, fl->number);
	for (uint64_t i = fl->nlines > LINES ? fl->nlines - LINES : 0; i < fl->nlines; i++)
		fprintf(fl->out, "    %s\n", fl->lines[i % LINES]);
}

/* The first finding ends the run: what follows may be its consequence. */
static bool begin_failure(struct fleet *fl, const struct fleet_op *op)
{
	if (fl->failed)
		return false;
	fl->failed = true;
	fprintf(fl->out, "tumble: WRONG in operation ");
	fleet_print(fl->out, op);
	fprintf(fl->out, "\n  ");
	return true;
}

static void printf_like(3, 4) fail(struct fleet *fl, const struct fleet_op *op, const char *fmt, ...)
{
	va_list ap;

	if (!begin_failure(fl, op))
		return;
	va_start(ap, fmt);
	vfprintf(fl->out, fmt, ap);
	va_end(ap);
	fprintf(fl->out, "\n");
	tell_way(fl);
}

static void give_up(struct fleet *fl, int rc)
{
	fl->rc = fl->rc ? fl->rc : rc;
	fl->failed = true;
}

/* ---- bodies ------------------------------------------------------------------------------ */

static struct body *create_body(struct fleet *fl)
{
	struct body *b = calloc(1, sizeof(*b));

	if (!b || shared_init(&b->f, &fl->clock, fl->o->size_max, fl->o->unit, fl->o->servers)) {
		give_up(fl, -ENOMEM);
		free(b);
		return NULL;
	}
	b->refs = 1;
	b->serial = ++fl->serial;
	return b;
}

static void put_body(struct body *b)
{
	if (!b || --b->refs)
		return;
	shared_fini(&b->f);
	free(b);
}

static unsigned count_opened(const struct fleet *fl, unsigned client, const struct body *b)
{
	unsigned n = 0;

	for (unsigned i = 0; i < fl->o->files; i++)
		n += fl->opened[client][i].body == b;
	return n;
}

/* The file by which @client has @b open; or -1 */
static int find_opened(const struct fleet *fl, unsigned client, const struct body *b)
{
	for (unsigned i = 0; i < fl->o->files; i++)
		if (fl->opened[client][i].body == b)
			return (int)i;
	return -1;
}

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
	note(fl, &op, "healed", 0);
	rc = fl->b->ops->heal(fl->b, server, s->fault);
	if (rc)
		fail(fl, &op, "the server does not come back: %s (%s)", strerror(-rc), fl->b->ops->why(fl->b, -1));
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
	for (unsigned c = 0; c < fl->o->clients && fault == FLEET_KILL && !manager; c++)
		for (unsigned i = 0; i < fl->o->files; i++)
			fl->opened[c][i].unsure |= fl->opened[c][i].written;
}

static void begin_fault(struct fleet *fl, const struct fleet_op *op)
{
	struct fault_state *s = &fl->faults[op->server];
	int rc;

	if (s->active) {
		heal(fl, op->server);
		return;
	}
	note(fl, op, "", 0);
	fl->sum.faults[op->fault]++;
	note_fault(fl, op->server, op->fault);
	rc = fl->b->ops->fail(fl->b, op->server, op->fault);
	if (rc)
		give_up(fl, rc);
	fl->healed_ns = clock_now_ns();
	if (op->fault == FLEET_BREAK)
		return;
	*s = (struct fault_state){ true, op->fault, fl->number + op->lasts, clock_now_ns() };
	fl->faulty++;
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
	struct body *fresh = create_body(fl);

	if (!fresh)
		return;
	if (s->io.op.kind == SHARED_RENAME) {
		put_body(to->body);
		to->body = n->body;
		to->locked = false;
	} else {
		put_body(n->body);
	}
	n->body = fresh;
	n->locked = false;
}

static void take_opened(struct fleet *fl, struct slot *s)
{
	struct opened *o = &fl->opened[s->io.op.client][s->io.op.file];
	bool first = find_opened(fl, s->io.op.client, s->body) < 0;

	fl->names[s->io.op.file].opens--;
	o->changing = false;
	if (s->io.result)
		return;
	s->body->exists = true;
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
	put_body(o->body);
	*o = (struct opened){ 0 };
}

/* What the result means beyond the model of the file. */
static void take(struct fleet *fl, struct slot *s)
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
		o->unsure |= s->faulty;
		break;
	case SHARED_FSYNC:
	case SHARED_TRUNCATE:
		o->lost |= s->io.result == -EIO;
		break;
	default:
		break;
	}
	o->busy--;
}

static void judge(struct fleet *fl, struct slot *s)
{
	const struct fleet_op *op = &s->io.op;
	int64_t result = s->io.result;
	uint64_t wrong_at = NEVER;
	const char *wrong;

	note(fl, op, "=", result);
	fl->sum.ops[op->kind]++;
	fl->sum.errors += result < 0;
	if (result == -EIO && !s->faulty && clock_now_ns() - s->start_ns >= fl->o->patience_ms * NS_PER_MS) {
		s->faulty = true; /* this machine is slow: a server had no time to reply */
		fl->sum.slow++;
	}
	if (result < 0 && !may_fail(fl, s, (int)result))
		fail(fl, op, "%s, and no server was away (%s)", strerror((int)-result), fl->b->ops->why(fl->b, (int)op->client));
	wrong = shared_end(&s->body->f, &s->s, op->kind == SHARED_STAT && !result ? (int64_t)s->io.size : result, s->mem, !s->faulty,
			   &wrong_at);
	if (wrong && begin_failure(fl, op)) {
		fprintf(fl->out, "%s (file #%" PRIu64 ", %" PRIu64 " to %" PRIu64 " bytes; result %" PRId64 ", size %" PRIu64 ")\n", wrong,
			s->body->serial, s->s.low, s->s.high, result, s->io.size);
		if (wrong_at != NEVER) {
			fprintf(fl->out, "  at offset %" PRIu64 " (stripe %" PRIu64 ")\n", wrong_at, wrong_at / fl->o->unit % fl->o->servers);
			tell_origin(fl, wrong_at, s->mem + (wrong_at - op->off), op->off + (uint64_t)result - wrong_at);
			tell_candidates(fl, &s->body->f, wrong_at);
		}
		tell_way(fl);
	}
	take(fl, s);
}

/* Cuts are complete once the manager has nothing left to do. */
static void look_at_cuts(struct fleet *fl)
{
	bool any = false;

	for (unsigned i = 0; i < fl->o->files; i++) {
		any |= fl->names[i].body && shared_is_incomplete(&fl->names[i].body->f);
		for (unsigned c = 0; c < fl->o->clients; c++)
			any |= fl->opened[c][i].body && shared_is_incomplete(&fl->opened[c][i].body->f);
	}
	if (!any || !fl->b->ops->is_settled(fl->b))
		return;
	note(fl, &(struct fleet_op){ .number = fl->number, .kind = SHARED_CHECK }, "that nothing is pending: it is so", 0);
	for (unsigned i = 0; i < fl->o->files; i++) {
		shared_complete(&fl->names[i].body->f);
		for (unsigned c = 0; c < fl->o->clients; c++)
			if (fl->opened[c][i].body)
				shared_complete(&fl->opened[c][i].body->f);
	}
	fl->sum.incomplete++;
}

static void reap(struct fleet *fl)
{
	for (unsigned i = 0; i < fl->o->depth; i++) {
		struct slot *s = &fl->slots[i];

		if (!s->busy || !s->io.done)
			continue;
		s->busy = false;
		fl->busy--;
		fl->moved_ns = clock_now_ns();
		judge(fl, s);
		put_body(s->body);
	}
}

/* ---- on their way ------------------------------------------------------------------------ */

static bool wait_some(struct fleet *fl, const struct fleet_op *op)
{
	uint64_t still;

	if (fl->o->stop && *fl->o->stop)
		fail(fl, op, "stopped by a signal");
	if (fl->failed)
		return false;
	fl->b->ops->wait(fl->b, TICK_MS);
	reap(fl);
	look_at_cuts(fl);
	still = clock_now_ns() - fl->moved_ns;
	if (fl->faulty && still > grace_ns(fl))
		heal_oldest(fl);
	else if (!fl->faulty && still > fl->o->hang_ms * NS_PER_MS)
		fail(fl, op, "nothing moves, and all servers run");
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
		other = find_opened(fl, op->client, op->kind == SHARED_UNLINK ? n->body : to->body);
		for (unsigned c = 0; c < fl->o->clients && other >= 0; c++) {
			if (find_opened(fl, c, op->kind == SHARED_UNLINK ? n->body : to->body) >= 0)
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
	s->s.partial = count_opened(fl, op->client, s->body) > 1; /* libleat tells the manager of what this one has written */
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
		give_up(fl, rc);
	note(fl, op, "", 0);
	rc = fl->b->ops->start(fl->b, &s->io);
	if (rc) {
		s->io.result = rc;
		s->io.done = true;
	}
	reap(fl);
}

/* ---- operations that are several --------------------------------------------------------- */

static void run_op(struct fleet *fl, struct fleet_op op)
{
	reap(fl);
	while (!fl->failed && !adapt(fl, &op))
		(void)wait_some(fl, &op);
	if (!fl->failed)
		begin(fl, &op);
}

/* A client goes: what it did may still take effect, and its later calls do not change that. */
static void die(struct fleet *fl, const struct fleet_op *op)
{
	int rc;

	note(fl, op, "", 0);
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
		fail(fl, op, "the client does not come back: %s (%s)", strerror(-rc), fl->b->ops->why(fl->b, (int)op->client));
		return;
	}
	for (unsigned i = 0; i < fl->o->depth; i++) {
		struct slot *s = &fl->slots[i];

		if (!s->busy || s->io.op.client != op->client)
			continue;
		if (s->io.result == -ECANCELED || s->io.result == -EINPROGRESS) {
			uint64_t wrong;

			note(fl, &s->io.op, "=", s->io.result);
			(void)shared_end(&s->body->f, &s->s, s->io.result, s->mem, false, &wrong);
			take(fl, s);
		} else {
			judge(fl, s);
		}
		s->busy = false;
		fl->busy--;
		put_body(s->body);
	}
	fl->lanes[op->client] = ++fl->serial;
	for (unsigned i = 0; i < fl->o->files; i++) {
		struct opened *o = &fl->opened[op->client][i];

		if (o->body)
			shared_left(&o->body->f);
		put_body(o->body);
		*o = (struct opened){ 0 };
	}
	fl->sum.ops[SHARED_DIE]++;
}

static bool wait_until_settled(struct fleet *fl, const struct fleet_op *op)
{
	uint64_t until = clock_now_ns() + fl->o->hang_ms * NS_PER_MS;

	while (!fl->b->ops->is_settled(fl->b)) {
		if (clock_now_ns() > until)
			fail(fl, op, "the manager does not complete what is pending");
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
	note(fl, op, "", 0);
	heal_all(fl);
	if (!drain(fl, op))
		return;
	close_all(fl, op->number);
	if (!drain(fl, op) || !wait_until_settled(fl, op))
		return;
	look_at_cuts(fl);
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
		fl->names[i].body = create_body(fl);
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
		put_body(fl->slots[i].body);
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
			put_body(fl->opened[c][i].body);
		put_body(fl->names[i].body);
	}
	for (unsigned i = 0; i < o->depth; i++)
		free(fl->slots[i].mem);
	if (fl->log)
		fclose(fl->log);
	free(fl->history);
	free(fl);
	return rc;
}
