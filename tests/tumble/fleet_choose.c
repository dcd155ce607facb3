/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fleet_choose.c - random operations of several clients, and faults of servers: chosen, and printed
 *
 * Operation:  Each number is taken in any case, so that the same seed means the same operations whatever their results.
 * Memory:     None.
 * Threads:    Any.
 * Errors:     None.
 */
#include <inttypes.h>

#include "base/util.h"
#include "fleet.h"

static const char *const kinds[SHARED_KINDS] = {
	[SHARED_READ] = "read",	    [SHARED_WRITE] = "write",	[SHARED_TRUNCATE] = "truncate", [SHARED_STAT] = "stat",
	[SHARED_FSYNC] = "fsync",   [SHARED_CLOSE] = "close",	[SHARED_OPEN] = "open",		[SHARED_UNLINK] = "unlink",
	[SHARED_RENAME] = "rename", [SHARED_DIE] = "die",	[SHARED_FAULT] = "fault",	[SHARED_CHECK] = "check",
};

static const char *const faults[FLEET_FAULTS] = {
	[FLEET_KILL] = "kill", [FLEET_STOP] = "stop", [FLEET_HOLD] = "hold", [FLEET_BREAK] = "break",
};

/* Of 1000 operations that are no faults */
static const struct {
	unsigned upto;
	enum shared_kind kind;
} shares[] = {
	{ 400, SHARED_READ },	{ 800, SHARED_WRITE }, { 860, SHARED_TRUNCATE }, { 910, SHARED_STAT },	 { 950, SHARED_FSYNC },
	{ 985, SHARED_CLOSE },	{ 991, SHARED_UNLINK }, { 997, SHARED_RENAME },	 { 1000, SHARED_DIE },
};

static enum shared_kind choose_kind(struct rnd *r)
{
	uint64_t dice = rnd_below(r, 1000);
	size_t i = 0;

	while (dice >= shares[i].upto)
		i++;
	return shares[i].kind;
}

static void choose_fault(struct rnd *r, const struct fleet_opts *o, struct fleet_op *op)
{
	uint64_t dice = rnd_below(r, o->relayed ? 10 : 7);

	op->kind = SHARED_FAULT;
	op->fault = dice < 4 ? FLEET_KILL : dice < 7 ? FLEET_STOP : dice < 9 ? FLEET_HOLD : FLEET_BREAK;
	op->server = (unsigned)rnd_below(r, o->servers + 1);
	op->lasts = 1 + rnd_below(r, rnd_chance(r, 50) ? 8 : 80);
}

static void choose_range(struct rnd *r, const struct fleet_opts *o, uint64_t size, struct fleet_op *op)
{
	/* a few places often: that is where clients meet */
	op->off = rnd_chance(r, 25) ? rnd_below(r, 4) * o->unit : rnd_place(r, size, o->size_max - 1);
	op->off = MIN(op->off, o->size_max - 1);
	op->len = rnd_size(r, MIN(o->len_max, o->size_max - op->off));
}

void fleet_choose(struct rnd *r, const struct fleet_opts *o, uint64_t *size, struct fleet_op *ret)
{
	struct fleet_op op = { .number = ret->number };
	bool fault = rnd_below(r, 1000) < o->faults;

	op.client = (unsigned)rnd_below(r, o->clients);
	op.file = rnd_chance(r, 75) ? 0 : (unsigned)rnd_below(r, o->files);
	op.to = (op.file + 1 + (unsigned)rnd_below(r, o->files - 1)) % o->files;
	op.sync = rnd_chance(r, 20);
	op.kind = choose_kind(r);
	choose_range(r, o, size[op.file], &op);
	if (op.kind == SHARED_TRUNCATE)
		op.len = rnd_chance(r, 15) ? 0 : rnd_place(r, size[op.file], o->size_max);
	if (fault)
		choose_fault(r, o, &op);
	else if (op.kind == SHARED_WRITE)
		size[op.file] = MAX(size[op.file], op.off + op.len);
	else if (op.kind == SHARED_TRUNCATE)
		size[op.file] = op.len;
	else if (op.kind == SHARED_UNLINK)
		size[op.file] = 0;
	else if (op.kind == SHARED_RENAME) {
		size[op.to] = size[op.file];
		size[op.file] = 0;
	}
	*ret = op;
}

int fleet_print(FILE *out, const struct fleet_op *op)
{
	if (op->kind == SHARED_CHECK)
		return fprintf(out, "%" PRIu64 " check", op->number);
	if (op->kind == SHARED_FAULT)
		return fprintf(out, "%" PRIu64 " %s server %u for %" PRIu64, op->number, faults[op->fault], op->server + 1, op->lasts);
	if (op->kind == SHARED_RENAME)
		return fprintf(out, "%" PRIu64 " client %u: rename file %u to %u", op->number, op->client, op->file, op->to);
	return fprintf(out, "%" PRIu64 " client %u: %s file %u, %" PRIu64 " %" PRIu64 "%s", op->number, op->client, kinds[op->kind],
		       op->file, op->off, op->len, op->kind == SHARED_OPEN && op->sync ? " dsync" : "");
}
