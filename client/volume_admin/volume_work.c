/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume_work.c - what the manager of a volume still has to do, for holders of its key
 *
 * Operation: CHECK for each part of the list. Entries are given to the program when the call has ended, so that it may make
 *            calls itself.
 * Memory:    A part of the list is on the stack.
 * Threads:   As functions of leat.h.
 * Errors:    -errno; leat_error() has the reason. What is not possible: -EREMOTEIO.
 */
#include <errno.h>
#include <string.h>

#include "handle.h"
#include "leat_volume.h"
#include "lt_sized.h"
#include "volume_key.h"
#include "volume_maps.h"

struct part {
	const struct leat_volume_key *key;
	char after[STRIPE_OBJECT_BYTES];
	bool first;
	struct leat_volume_work work;
	volume_pending_entry entries[VOLUME_CHECK_MAX];
	unsigned n;
	bool eof;
};

_Static_assert((int)VOLUME_TODO_DAMAGED == (int)LEAT_VOLUME_TODO_DAMAGED && (int)VOLUME_TODO_CUT == (int)LEAT_VOLUME_TODO_CUT,
	       "the same numbers");

/* The list has to get on, or it need not end. */
static bool is_possible(const struct part *p)
{
	const char *after = p->first ? NULL : p->after;

	for (unsigned i = 0; i < p->n; i++) {
		if (after && memcmp(p->entries[i].object, after, STRIPE_OBJECT_BYTES) <= 0)
			return false;
		after = p->entries[i].object;
	}
	return p->eof || p->n;
}

static int fill_part(const VOLCHECKresok *ok, struct part *p)
{
	p->work = (struct leat_volume_work){ .moves = ok->moves_begun, .moving = ok->moves_begun != ok->moves_ended,
					     .deposed = ok->deposed, .lifetime_s = ok->lifetime };
	p->n = ok->pending.pending_len;
	p->eof = ok->eof;
	for (unsigned i = 0; i < p->n; i++)
		p->entries[i] = ok->pending.pending_val[i];
	return is_possible(p) ? 0 : -EREMOTEIO;
}

static void take_part(struct lt_op *op, int err)
{
	if (!err)
		err = fill_part(&op->res.volcheck.VOLCHECKres_u.resok, op->ret_any);
	lt_op_end_results(op, err);
}

static void ask_part(struct lt_op *op, int err)
{
	VOLCHECKargs *a = &op->args.volcheck;
	const struct part *p = op->ret_any;
	struct stripe_order o = { .proc = VOLUMEPROC_CHECK, .flag = p->first };
	struct leat *m = op->task.m;

	memcpy(o.name.object, p->after, sizeof(o.name.object));
	err = lt_volume_sign(p->key, 0, 0, &o, a->command);
	if (err) {
		lt_op_finish(op, err);
		return;
	}
	a->fh = (volume_fh){ m->root.len, m->root.data };
	memcpy(a->after, p->after, sizeof(a->after));
	a->first = p->first;
	lt_op_call_volume(op, VOLUMEPROC_CHECK, take_part);
}

static int give_part(struct part *p, leat_volume_work_fn fn, void *ctx)
{
	unsigned char object[STRIPE_OBJECT_BYTES];
	int rc = 0;

	for (unsigned i = 0; i < p->n && !rc; i++) {
		memcpy(object, p->entries[i].object, sizeof(object));
		rc = fn(ctx, object, (enum leat_volume_todo)p->entries[i].todo);
	}
	if (p->n)
		memcpy(p->after, p->entries[p->n - 1].object, sizeof(p->after));
	p->first = false;
	return rc;
}

int leat_volume_pending(struct leat *m, const struct leat_volume_key *key, leat_volume_work_fn fn, void *ctx,
			struct leat_volume_work *ret)
{
	struct part p = { .key = key, .first = true };
	int rc = key ? lt_volume_check(m, "CHECK") : -EINVAL;

	if (!rc && ret)
		rc = lt_sized_check(ret);
	if (!rc)
		rc = lt_volume_run(m, __func__, ask_part, &p);
	if (!rc && ret)
		lt_sized_copy(ret, &p.work, sizeof(p.work));
	while (!rc && fn) {
		rc = give_part(&p, fn, ctx);
		if (rc || p.eof)
			break;
		rc = lt_volume_run(m, __func__, ask_part, &p);
	}
	return rc;
}
