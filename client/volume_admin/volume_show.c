/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume_show.c - the map of a mount's volume, and the layouts of its files, for programs
 *
 * Operation: One call to the manager each. A layout is asked for with the right to read, so that its handles are of no use
 *            for more, and they are not kept.
 * Memory:    A layout and its lists are one allocation.
 * Threads:   As functions of leat.h. leat_volume_find() is pure.
 * Errors:    -errno; leat_error() has the reason. What is not possible: -EREMOTEIO.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "handle.h"
#include "layout.h"
#include "leat_volume.h"
#include "lt_sized.h"
#include "op.h"
#include "sync.h"
#include "volume_maps.h"

#define NO_VOLUME "the export is not a striped volume"

int lt_volume_check(struct leat *m, const char *verb)
{
	if (!m)
		return -EINVAL;
	if (m->volume)
		return 0;
	lt_handle_tell(m, NULL, NULL, verb, -EOPNOTSUPP, NO_VOLUME);
	return -EOPNOTSUPP;
}

static int submit(struct leat *m, const char *verb, lt_op_step first, void *ret, struct leat_cb cb)
{
	struct lt_op *op;
	int rc = lt_op_create(m, verb, NULL, NULL, cb, &op);

	if (rc)
		return rc;
	op->ret_any = ret;
	return lt_op_submit(op, first);
}

int lt_volume_run(struct leat *m, const char *verb, lt_op_step first, void *ret)
{
	return (int)LT_WAIT_FOR_AS(m, verb, submit(m, verb, first, ret, w.cb));
}

static int submit_at(struct leat *m, const char *verb, const char *path, lt_op_step first, void *ret, struct leat_cb cb)
{
	struct lt_op *op;
	int rc = lt_op_create(m, verb, path, NULL, cb, &op);

	if (rc)
		return rc;
	op->ret_any = ret;
	return lt_walk_submit(op, LT_WALK_FOLLOW, first);
}

int lt_volume_run_at(struct leat *m, const char *verb, const char *path, lt_op_step first, void *ret)
{
	return (int)LT_WAIT_FOR_AS(m, verb, submit_at(m, verb, path, first, ret, w.cb));
}

/* ---- the map --------------------------------------------------------------------------------- */

/* Programs connect to what a map names: it has to be as valid as one in a file. */
static int check_map(const VOLMAPresok *ok)
{
	struct volume_map m = { .volume = ok->volume, .version = ok->map, .n = ok->servers.servers_len };
	char *text, why[128];
	int err;

	for (unsigned i = 0; i < m.n; i++) {
		text_clean(ok->servers.servers_val[i].url);
		m.servers[i] = ok->servers.servers_val[i];
	}
	err = lt_volume_map_text(&m, &text, why, sizeof(why));
	if (!err)
		free(text);
	return err == -EINVAL ? -EREMOTEIO : err;
}

static int make_map(const VOLMAPresok *ok, struct leat_volume_map **ret)
{
	int err = check_map(ok);

	if (!err)
		err = lt_volume_map_make(ok->volume, ok->map, ok->servers.servers_val, ok->servers.servers_len, ret);
	if (err)
		return err;
	(*ret)->stripe = ok->unit;
	(*ret)->width = ok->width;
	return 0;
}

static void take_map(struct lt_op *op, int err)
{
	if (!err)
		err = make_map(&op->res.volmap.VOLMAPres_u.resok, op->ret_any);
	lt_op_end_results(op, err);
}

static void ask_map(struct lt_op *op, int err)
{
	struct leat *m = op->task.m;

	(void)err; /* a first step */
	op->args.volmap.fh = (volume_fh){ m->root.len, m->root.data };
	lt_op_call_volume(op, VOLUMEPROC_MAP, take_map);
}

int leat_volume_map(struct leat *m, struct leat_volume_map **ret)
{
	int rc = lt_volume_check(m, "MAP");

	return rc ? rc : lt_volume_run(m, __func__, ask_map, ret);
}

/* ---- a layout -------------------------------------------------------------------------------- */

static int make_layout(const VOLLAYOUTresok *ok, struct leat_volume_layout **ret)
{
	const struct layout at = { ok->unit, ok->stripes.stripes_len };
	const struct leat_volume_stripe **list;
	struct leat_volume_stripe *to;
	struct leat_volume_layout *l;

	if (!layout_valid(&at) || ok->bytes > INT64_MAX)
		return -EREMOTEIO;
	l = calloc(1, sizeof(*l) + at.width * (sizeof(*to) + sizeof(*list)));
	if (!l)
		return -ENOMEM;
	list = (const struct leat_volume_stripe **)(void *)(l + 1);
	to = (struct leat_volume_stripe *)(void *)(list + at.width);
	for (uint32_t i = 0; i < at.width; i++) {
		to[i] = (struct leat_volume_stripe){ .server = ok->stripes.stripes_val[i].server,
						     .bytes = layout_object_bytes(&at, i, ok->bytes) };
		list[i] = &to[i];
	}
	*l = (struct leat_volume_layout){ .epoch = ok->epoch, .bytes = ok->bytes, .stripe = at.unit, .nstripes = at.width,
					  .stripes = list };
	memcpy(l->object, ok->object, sizeof(l->object));
	*ret = l;
	return 0;
}

static void take_layout(struct lt_op *op, int err)
{
	if (err == -EIO && op->call.status == VOLUME_ERR_LAYOUT) /* other failures are EIO, too */
		err = -EBADMSG;
	else if (!err)
		err = make_layout(&op->res.vollayout.VOLLAYOUTres_u.resok, op->ret_any);
	lt_op_end_results(op, err);
}

static void ask_layout(struct lt_op *op, int err)
{
	VOLLAYOUTargs *a = &op->args.vollayout;

	if (err) {
		lt_op_finish(op, err);
		return;
	}
	a->fh = (volume_fh){ op->walk.fh.len, op->walk.fh.data };
	a->rights = STRIPE_MAY_READ;
	lt_op_call_volume(op, VOLUMEPROC_LAYOUT, take_layout);
}

int leat_volume_layout(struct leat *m, const char *path, struct leat_volume_layout **ret)
{
	int rc = lt_volume_check(m, "LAYOUT");

	return rc ? rc : lt_volume_run_at(m, __func__, path, ask_layout, ret);
}

void leat_volume_layout_free(struct leat_volume_layout *l)
{
	free(l);
}

int leat_volume_find(const struct leat_volume_layout *l, uint64_t off, struct leat_volume_place *ret)
{
	const struct layout at = { l->stripe, (uint32_t)l->nstripes };
	struct leat_volume_place place;
	struct layout_place p;

	if (off > INT64_MAX || lt_sized_check(ret))
		return -EINVAL;
	p = layout_find(&at, off);
	place = (struct leat_volume_place){ .stripe = p.stripe, .server = l->stripes[p.stripe]->server, .off = p.off, .run = p.run };
	lt_sized_copy(ret, &place, sizeof(place));
	return 0;
}
