/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * striped_layout.c - asks the manager for the layout of a file of a striped volume, and for its map if that is newer
 *
 * Operation:  LAYOUT -> MAP if the layout names a newer map. Replies may arrive in another order than the manager sent them.
 *             So a layout may be older than one that came first: then it is asked for once more. Appends, commits and
 *             reports use lt_layout_refresh(). A read or write (striped_io.c) is no struct lt_op: it sends the calls itself.
 * Memory:     That of the operation.
 * Threads:    The owner's.
 * Errors:     Those of the calls; -ESTALE: two layouts were too old.
 */
#include <errno.h>

#include "file.h"
#include "striped_layout.h"

int lt_layout_take(struct lt_striped *s, enum lt_striped_use use, const VOLLAYOUTresok *ok, uint64_t sent_ns,
		   bool *asked_again, const char **why)
{
	int rc = lt_striped_take(s, use != LT_STRIPED_READ, ok, sent_ns, why);

	if (rc == -EAGAIN) {
		if (*asked_again)
			return -ESTALE;
		*asked_again = true;
		return LT_LAYOUT_AGAIN;
	}
	if (rc)
		return rc;
	*asked_again = false;
	return ok->map > s->v->map ? LT_LAYOUT_MAP : LT_LAYOUT_GOOD;
}

int lt_layout_take_map(struct lt_striped *s, const VOLMAPresok *ok, const char **why)
{
	*why = "an impossible map of the volume";
	return lt_volume_take_map(s->v, ok);
}

/* ---- the steps ---- */

static void take_map(struct lt_op *op, int err)
{
	const char *why;

	if (!err) {
		err = lt_layout_take_map(op->task.file->striped, &op->res.volmap.VOLMAPres_u.resok, &why);
		if (err)
			lt_task_explain(&op->task, err, "MAP", "%s", why);
	}
	lt_op_free_results(op);
	op->layout.next(op, err);
}

static void send_map(struct lt_op *op)
{
	struct lt_striped *s = op->task.file->striped;

	op->args.volmap.fh = (volume_fh){ s->fh.len, s->fh.data };
	lt_op_call_volume(op, VOLUMEPROC_MAP, take_map);
}

static void send_layout(struct lt_op *op);

static void take_layout(struct lt_op *op, int err)
{
	const char *why;
	int what = err;

	if (!err) {
		what = lt_layout_take(op->task.file->striped, op->layout.use, &op->res.vollayout.VOLLAYOUTres_u.resok,
				      op->call.sent_ns, &op->layout.asked_again, &why);
		if (what < 0)
			lt_task_explain(&op->task, what, "LAYOUT", "%s", why);
	}
	lt_op_free_results(op);
	if (what == LT_LAYOUT_AGAIN)
		send_layout(op);
	else if (what == LT_LAYOUT_MAP)
		send_map(op);
	else
		op->layout.next(op, what);
}

static void send_layout(struct lt_op *op)
{
	op->args.vollayout = lt_striped_ask(op->task.file->striped, op->layout.use);
	lt_op_call_volume(op, VOLUMEPROC_LAYOUT, take_layout);
}

void lt_layout_refresh(struct lt_op *op, enum lt_striped_use use, lt_op_step next)
{
	op->layout = (struct lt_op_layout){ .next = next, .use = use };
	send_layout(op);
}
