/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * striped_append.c - reserves the range of a file of a striped volume to which data is appended
 *
 * Operation:  append_striped() of file_sync.c calls lt_striped_reserve(), then lt_io_write_range().
 *             lt_striped_reserve(): a new layout (striped_layout.c), if there are no good handles -> RESERVE. If the file
 *             was cut since the handles were made, RESERVE is made again with a new layout: the refused one has reserved
 *             nothing. So the range is of the epoch of the handle that proved the right to it.
 *             The range is part of the file already, so the write needs no lease. It has handles of the range's epoch
 *             only: what a server has accepted with them was written before the cut which raised the epoch, and so never
 *             to a range that was reserved since. If the epoch has changed, append_striped() reserves another range, and
 *             writes all of the data there.
 * Memory:     That of the operation.
 * Threads:    lt_striped_reserve() any; the steps on the owner's.
 * Errors:     Those of the calls. A range that is not written reads as zeroes.
 */
#include <errno.h>

#include "cache.h"
#include "handle.h"
#include "op.h"
#include "striped_io.h"
#include "striped_layout.h"

static void take_layout(struct lt_op *op, int err);

/* Return: 0; -EREMOTEIO: the range begins before the end that this client knows, or ends beyond any file */
static int take_range(const struct lt_op *op)
{
	const VOLRESERVEargs *a = &op->args.volreserve;
	uint64_t off = op->res.volreserve.VOLRESERVEres_u.resok.offset;

	if (off < a->after || off > INT64_MAX || a->bytes > INT64_MAX - off)
		return -EREMOTEIO;
	*op->range = (struct lt_range){ .epoch = op->seq, .off = off };
	return 0;
}

static void reserved(struct lt_op *op, int err)
{
	struct leat_file *f = op->task.file;
	struct lt_striped *s = f->striped;
	bool is_old = err && op->call.status == VOLUME_ERR_OLDEPOCH;

	if (!err) {
		err = take_range(op);
		if (err)
			lt_task_explain(&op->task, err, "RESERVE", "an impossible range");
	}
	lt_op_free_results(op);
	if (is_old && lt_striped_may_retry(&op->tries, &op->refused_epoch, op->seq)) {
		lt_layout_refresh(op, LT_STRIPED_WRITE_NO_LEASE, take_layout);
		return;
	}
	if (!err) {
		lt_striped_grew(s, op->seq, op->range->off + op->args.volreserve.bytes);
		lt_cache_doubt(f->m->cache, lt_fh_wire(&s->fh));
	}
	lt_file_finish(op, err);
}

static void send_reserve(struct lt_op *op)
{
	struct lt_striped *s = op->task.file->striped;
	VOLRESERVEargs *a = &op->args.volreserve;

	op->seq = s->writes.epoch;
	*a = (VOLRESERVEargs){ .fh = { s->fh.len, s->fh.data }, .instance = s->instance, .after = lt_striped_size(s),
			       .bytes = op->range_end };
	memcpy(a->handle, s->writes.v[0], sizeof(a->handle));
	lt_op_call_volume(op, VOLUMEPROC_RESERVE, reserved);
}

static void take_layout(struct lt_op *op, int err)
{
	if (err)
		lt_file_finish(op, err);
	else
		send_reserve(op);
}

static void reserve_start(struct lt_op *op, int err)
{
	struct leat_file *f = op->task.file;

	(void)err; /* a first step */
	lt_file_hold(f);
	if (lt_striped_open(f))
		lt_file_finish(op, -ENOMEM);
	else if (lt_striped_may(f->striped, LT_STRIPED_WRITE_NO_LEASE, lt_handle_now(f->m)))
		send_reserve(op);
	else
		lt_layout_refresh(op, LT_STRIPED_WRITE_NO_LEASE, take_layout);
}

int lt_striped_reserve(struct leat_file *f, uint64_t bytes, struct lt_range *ret, struct leat_cb cb)
{
	struct lt_op *op;
	int rc = f->is_dir ? -EISDIR : !lt_file_can_write(f) ? -EBADF : bytes > INT64_MAX ? -EFBIG : 0;

	if (rc)
		return lt_task_refuse(cb, rc);
	rc = lt_file_op(f, "append", cb, &op);
	if (rc)
		return rc;
	op->range_end = bytes;
	op->range = ret;
	return lt_op_submit(op, reserve_start);
}
