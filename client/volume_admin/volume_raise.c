/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume_raise.c - raises the size of a striped file, as a client does that has written
 *
 * Operation: LAYOUT with the right to write, and REPORT with a handle of it, if it is of the object and the epoch that the
 *            caller has looked at: the path may lead to another file by now, or the file may have been cut. A report never lowers a size, so that this may be
 *            done while others write; a new size by name could cut what they have written meanwhile.
 * Memory:    The operation.
 * Threads:   As functions of leat.h.
 * Errors:    -errno; leat_error() has the reason.
 */
#include <errno.h>
#include <string.h>

#include "handle.h"
#include "leat_volume.h"
#include "op.h"
#include "sync.h"
#include "volume_maps.h"

static void end_report(struct lt_op *op, int err)
{
	lt_op_free_results(op);
	lt_op_finish(op, err);
}

static void report(struct lt_op *op, int err)
{
	const VOLLAYOUTresok *ok = &op->res.vollayout.VOLLAYOUTres_u.resok;
	const struct leat_volume_layout *as = op->ret_any;
	VOLREPORTargs a = { .flags = VOLUME_REPORT_WROTE, .bytes = op->range_end }; /* no lease */

	if (!err && !ok->stripes.stripes_len)
		err = -EREMOTEIO;
	if (!err && (ok->epoch != as->epoch || memcmp(ok->object, as->object, sizeof(as->object)) != 0)) {
		err = -ESTALE;
		lt_task_explain(&op->task, err, "REPORT", "the file was cut, or replaced, meanwhile");
	}
	if (!err)
		memcpy(a.handle, ok->stripes.stripes_val[0].handle, sizeof(a.handle));
	lt_op_free_results(op);
	if (err) {
		lt_op_finish(op, err);
		return;
	}
	a.fh.volume_fh_len = op->walk.fh.len;
	a.fh.volume_fh_val = op->walk.fh.data;
	op->args.volreport = a;
	lt_op_call_volume(op, VOLUMEPROC_REPORT, end_report);
}

static void ask_layout(struct lt_op *op, int err)
{
	VOLLAYOUTargs *a = &op->args.vollayout;

	if (err) {
		lt_op_finish(op, err);
		return;
	}
	memset(a, 0, sizeof(*a));
	a->fh.volume_fh_len = op->walk.fh.len;
	a->fh.volume_fh_val = op->walk.fh.data;
	a->rights = STRIPE_MAY_WRITE;
	lt_op_call_volume(op, VOLUMEPROC_LAYOUT, report);
}

static int submit(struct leat *m, const char *path, const struct leat_volume_layout *as, uint64_t bytes, struct leat_cb cb)
{
	struct lt_op *op;
	int rc = lt_op_create(m, "leat_volume_raise", path, NULL, cb, &op);

	if (rc)
		return rc;
	op->range_end = bytes;
	op->ret_any = (void *)(uintptr_t)as; /* only read */
	return lt_walk_submit(op, LT_WALK_FOLLOW, ask_layout);
}

int leat_volume_raise(struct leat *m, const char *path, const struct leat_volume_layout *as, uint64_t bytes)
{
	int rc = as ? lt_volume_check(m, "REPORT") : -EINVAL;

	return rc ? rc : (int)LT_WAIT_FOR_AS(m, "leat_volume_raise", submit(m, path, as, bytes, w.cb));
}
