/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume_set.c - the layout of new files: defaults of directories, and files with a layout of their own
 *
 * Operation: A walk to the directory, and one call to the manager. After a new file GETATTR of the directory follows,
 *            for the cache of names.
 * Memory:    The operation.
 * Threads:   As functions of leat.h.
 * Errors:    -errno; leat_error() has the reason.
 */
#include <errno.h>
#include <string.h>

#include "handle.h"
#include "leat_volume.h"
#include "lt_sized.h"
#include "sync.h"
#include "volume_maps.h"

/* Of both operations. */
struct wanted {
	struct leat_volume_defaults d; /* in and out */
	unsigned set;
};

static void take_defaults(struct wanted *w, const volume_defaults *from)
{
	w->d.stripe = from->unit;
	w->d.width = from->width;
}

/* Copies what the program has of the structure. Return: 0, -EINVAL */
static int take_wanted(const struct leat_volume_defaults *from, struct wanted *to)
{
	*to = (struct wanted){ .d = { .size = sizeof(to->d) } };
	if (!from || lt_sized_check(from))
		return -EINVAL;
	memcpy(&to->d, from, MIN(from->size, sizeof(to->d)));
	return 0;
}

/* ---- defaults -------------------------------------------------------------------------------- */

static void end_set(struct lt_op *op, int err)
{
	if (!err)
		take_defaults(op->ret_any, &op->res.volset.VOLSETres_u.now);
	lt_op_end_results(op, err);
}

static void ask_set(struct lt_op *op, int err)
{
	const struct wanted *w = op->ret_any;
	VOLSETargs *a = &op->args.volset;

	if (err) {
		lt_op_finish(op, err);
		return;
	}
	a->fh = (volume_fh){ op->walk.fh.len, op->walk.fh.data };
	a->set = w->set;
	a->to = (volume_defaults){ .unit = w->set & VOLUME_SET_UNIT ? w->d.stripe : 0,
				   .width = w->set & VOLUME_SET_WIDTH ? w->d.width : 0 };
	lt_op_call_volume(op, VOLUMEPROC_SET, end_set);
}

int leat_volume_defaults(struct leat *m, const char *path, struct leat_volume_defaults *ret)
{
	struct wanted want = { .set = 0 };
	int rc = ret ? lt_sized_check(ret) : -EINVAL;

	if (!rc)
		rc = lt_volume_check(m, "SET");
	if (!rc)
		rc = lt_volume_run_at(m, __func__, path, ask_set, &want);
	if (!rc)
		lt_sized_copy(ret, &want.d, sizeof(want.d));
	return rc;
}

int leat_volume_set_defaults(struct leat *m, const char *path, const struct leat_volume_defaults *d)
{
	struct wanted want;
	int rc = take_wanted(d, &want);

	if (rc)
		return rc;
	want.set = (want.d.stripe == LEAT_VOLUME_SAME ? 0 : VOLUME_SET_UNIT) | (want.d.width == LEAT_VOLUME_SAME ? 0 : VOLUME_SET_WIDTH);
	rc = lt_volume_check(m, "SET");
	return rc ? rc : lt_volume_run_at(m, __func__, path, ask_set, &want);
}

/* ---- a file ---------------------------------------------------------------------------------- */

static void end_create(struct lt_op *op, int err)
{
	(void)err; /* the file was created */
	lt_op_finish(op, 0);
}

/* Names that did not exist are cached: new attributes of the directory end that. */
static void see_directory(struct lt_op *op, int err)
{
	if (!err)
		take_defaults(op->ret_any, &op->res.volcreate.VOLCREATEres_u.made);
	lt_op_free_results(op);
	if (err) {
		lt_op_finish(op, err);
		return;
	}
	op->args.getattr.object = lt_fh_wire(&op->walk.fh);
	lt_op_call(op, NFSPROC3_GETATTR, end_create);
}

static void ask_create(struct lt_op *op, int err)
{
	const struct wanted *w = op->ret_any;
	VOLCREATEargs *a = &op->args.volcreate;

	if (!err && op->walk.part.kind != LT_PATH_NAME)
		err = -EEXIST;
	if (err) {
		lt_op_finish(op, err);
		return;
	}
	a->fh = (volume_fh){ op->walk.fh.len, op->walk.fh.data };
	a->name = op->walk.part.name;
	a->mode = op->mode & 07777u;
	a->layout = (volume_defaults){ w->d.stripe, w->d.width };
	lt_op_call_volume(op, VOLUMEPROC_CREATE, see_directory);
}

static int submit_create(struct leat *m, const char *path, mode_t mode, struct wanted *w, struct leat_cb cb)
{
	struct lt_op *op;
	int rc = lt_op_create(m, "leat_volume_create_file", path, NULL, cb, &op);

	if (rc)
		return rc;
	op->ret_any = w;
	op->mode = mode;
	op->created = true; /* it is not repeated */
	return lt_walk_submit(op, LT_WALK_PARENT, ask_create);
}

int leat_volume_create_file(struct leat *m, const char *path, mode_t mode, const struct leat_volume_defaults *d)
{
	struct wanted want;
	int rc = take_wanted(d, &want);

	if (!rc && (want.d.stripe == LEAT_VOLUME_SAME || want.d.width == LEAT_VOLUME_SAME))
		rc = -EINVAL;
	if (!rc)
		rc = lt_volume_check(m, "CREATE");
	return rc ? rc : (int)LT_WAIT_FOR_AS(m, "leat_volume_create_file", submit_create(m, path, mode, &want, w.cb));
}
