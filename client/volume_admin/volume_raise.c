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
#include "volume_maps.h"

struct raising {
	const struct leat_volume_layout *as;
	uint64_t bytes;
};

static void report(struct lt_op *op, int err)
{
	const VOLLAYOUTresok *ok = &op->res.vollayout.VOLLAYOUTres_u.resok;
	const struct raising *raise = op->ret_any;
	const struct leat_volume_layout *as = raise->as;
	VOLREPORTargs a = { .flags = VOLUME_REPORT_WROTE, .bytes = raise->bytes }; /* no lease */

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
	a.fh = (volume_fh){ op->walk.fh.len, op->walk.fh.data };
	op->args.volreport = a;
	lt_op_call_volume(op, VOLUMEPROC_REPORT, lt_op_end_results);
}

static void ask_layout(struct lt_op *op, int err)
{
	VOLLAYOUTargs *a = &op->args.vollayout;

	if (err) {
		lt_op_finish(op, err);
		return;
	}
	*a = (VOLLAYOUTargs){ .fh = { op->walk.fh.len, op->walk.fh.data }, .rights = STRIPE_MAY_WRITE };
	lt_op_call_volume(op, VOLUMEPROC_LAYOUT, report);
}

int leat_volume_raise(struct leat *m, const char *path, const struct leat_volume_layout *as, uint64_t bytes)
{
	struct raising raise = { as, bytes };
	int rc = as ? lt_volume_check(m, "REPORT") : -EINVAL;

	return rc ? rc : lt_volume_run_at(m, __func__, path, ask_layout, &raise);
}
