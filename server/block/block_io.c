/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * block_io.c - READ, WRITE, FLUSH, DISCARD, ZERO and EXTENTS of a block volume
 *
 * Operation: The range has to lie within the volume; before it is refused, a worker looks whether the volume has grown.
 *            Then the call enters its lane (block_lanes.c), which is the last thing before its data moves: what waited
 *            in the transport, for admission or for buffers is refused there, if its attachment or its connection
 *            has ended meanwhile.
 * Durability: FLUSH syncs the whole file. A FUA WRITE syncs behind its data. A failed sync changes the
 *            volume's verifier before it is reported. A WRITE returns the verifier that was in force before it took
 *            data, a FLUSH the one after its sync, so no change is missed between them.
 * Memory:    Part of the request; EXTENTS: its scratch memory.
 * Threads:   The reactor's, except block_look().
 * Errors:    A short READ is an error: the volume has shrunk.
 */
#include <errno.h>
#include <string.h>

#include "base/checked.h"
#include "block_service.h"
#include "block_state.h"
#include "client.h"

/* ---- the worker's part -------------------------------------------------------------------- */

void block_look(struct req *r)
{
	struct block_call *call = block_call(r);

	call->looked = true;
	call->err = block_volume_look(call->entry->vol);
}

/* ---- begin and end ------------------------------------------------------------------------ */

/* Return: 0; -EINPROGRESS: a worker has to look at the size; -errno */
static int check_range(struct req *r, uint64_t off, uint64_t bytes)
{
	struct block_call *call = block_call(r);
	const struct block_entry *e = call->entry;

	if (off % e->block || bytes % e->block)
		return -EINVAL;
	/* a write would make a file that has shrunk grow again */
	if (r->proc->modifies && e->backing.limits.answers_at_once && bytes)
		block_volume_look_again(e->vol);
	if (range_fits(off, bytes, block_entry_bytes(e)))
		return 0;
	if (!call->looked)
		return -EINPROGRESS;
	return call->err ? call->err : r->proc->modifies ? -ENOSPC : -EINVAL;
}

/* Return: PROG_MOVE: the operation has begun, and r->plan has what all have in common */
static enum prog_begin enter(struct req *r, uint64_t off, uint64_t bytes)
{
	struct block_call *call = block_call(r);
	const struct block_entry *e = call->entry;
	int err = check_range(r, off, bytes);

	if (err == -EINPROGRESS)
		return PROG_OPEN;
	if (!err)
		err = block_enter(e->vol, &call->id, &call->args.at.at.lane, block_peer(r->conn)->conn,
				  r->proc->modifies, &call->waiter, &call->pass);
	if (err == -EINPROGRESS) {
		block_count(r->reactor, block_lane_waits);
		return PROG_WAIT;
	}
	if (err)
		return block_now(r, err);
	call->verf = atomic_load(&e->vol->verf);
	r->plan.store = call->use->stores[e->idx];
	r->plan.off = off;
	r->plan.bytes = (uint32_t)bytes;
	r->plan.file = block_set_file(call->use, e);
	r->plan.client = &r->conn->client->workers;
	return PROG_MOVE;
}

/* The errors of a disk are not those of an attachment: a file of another host may be stale, and a disk may time out. */
static int disk_error(int err)
{
	switch (err) {
	case 0:
	case -EINVAL: /* the volume has shrunk */
	case -ENOSPC:
	case -EDQUOT:
	case -EFBIG:
	case -EROFS:
	case -EOPNOTSUPP:
	case -EAGAIN:
	case -ENOMEM:
		return err;
	default:
		return -EIO;
	}
}

static void begin_sync(struct req *r)
{
	struct block_call *call = block_call(r);

	block_count(r->reactor, block_syncs);
	call->syncs = true;
	block_state_sync_begun(call->entry->vol->state);
}

void block_io_end(struct req *r)
{
	struct block_call *call = block_call(r);

	if (call->syncs)
		block_state_sync_ended(call->entry->vol->state);
	call->syncs = false;
	if (call->is_long)
		client_end_long(r->conn->client);
	call->is_long = false;
	if (call->entry)
		block_leave(call->entry->vol, &call->pass);
}

/* ---- READ --------------------------------------------------------------------------------- */

enum prog_begin block_read_begin(struct req *r)
{
	struct block_call *call = block_call(r);
	const BLOCKREADargs *a = &call->args.read;
	uint32_t bytes = MIN(a->count, (uint32_t)BLOCK_IO_MAX);
	enum prog_begin next;

	/* data inside the reply has to fit one buffer; data by chunk has no such limit */
	if (!r->rpc->by_chunk && call->re->inline_max >= call->entry->block)
		bytes = MIN(bytes, call->re->inline_max);
	next = enter(r, a->offset, a->count % call->entry->block ? a->count : bytes);
	r->plan.size_hint = a->offset + bytes;
	return next;
}

void block_read_finish(struct req *r)
{
	struct block_call *call = block_call(r);
	const struct place *pl = &r->place;

	block_io_end(r);
	if (pl->err || pl->good != r->plan.bytes) {
		block_refuse(r, pl->err ? disk_error(pl->err) : -EIO);
		return;
	}
	call->res.read.status = BLOCK_OK;
	call->res.read.BLOCKREADres_u.data.length = pl->good;
}

/* ---- WRITE -------------------------------------------------------------------------------- */

int block_write_payload(struct req *r)
{
	struct block_call *call = block_call(r);
	BLOCKWRITEargs *a = &call->args.write;

	r->plan = (struct place_plan){
		.store = call->use->stores[call->entry->idx],
		.data = &a->data,
		.off = a->offset,
		.bytes = a->data.length,
	};
	return a->offset > INT64_MAX - BLOCK_IO_MAX ? -ENOSPC : 0;
}

enum prog_begin block_write_begin(struct req *r)
{
	const BLOCKWRITEargs *a = &block_call(r)->args.write;
	enum prog_begin next = enter(r, a->offset, a->data.length);

	if (next != PROG_MOVE)
		return next;
	r->plan.stable = a->fua ? STORE_DATA_SYNC : STORE_UNSTABLE;
	if (a->fua)
		begin_sync(r);
	return PROG_MOVE;
}

/* Of two syncs of a file at the same time the kernel may tell one of a loss: the other one sees the verifier change. */
static bool sync_is_doubtful(const struct req *r)
{
	const struct block_call *call = block_call(r);

	return call->syncs && call->verf != atomic_load(&call->entry->vol->verf);
}

void block_change_finish(struct req *r)
{
	struct block_call *call = block_call(r);
	int err = disk_error(r->place.err);

	if (!err && sync_is_doubtful(r))
		err = -EIO;
	block_io_end(r);
	if (err) {
		block_refuse(r, err);
		return;
	}
	call->res.change.status = BLOCK_OK;
	call->res.change.BLOCKCHANGEres_u.verf = call->verf;
}

/* ---- FLUSH -------------------------------------------------------------------------------- */

enum prog_begin block_flush_begin(struct req *r)
{
	enum prog_begin next = enter(r, 0, 0);

	if (next != PROG_MOVE)
		return next;
	r->plan.op = STORE_SYNC;
	begin_sync(r);
	return PROG_MOVE;
}

void block_flush_finish(struct req *r)
{
	struct block_call *call = block_call(r);

	block_io_end(r);
	if (r->place.err) {
		block_refuse(r, disk_error(r->place.err));
		return;
	}
	call->res.change.status = BLOCK_OK;
	call->res.change.BLOCKCHANGEres_u.verf = atomic_load(&call->entry->vol->verf);
}

/* ---- DISCARD, ZERO, EXTENTS --------------------------------------------------------------- */

/* These may take seconds, so their range and the number of those in progress are bounded. */
static enum prog_begin enter_long(struct req *r, uint64_t off, uint64_t bytes, enum store_op op)
{
	struct block_call *call = block_call(r);
	enum prog_begin next;

	if (!bytes || bytes > BLOCK_RANGE_MAX)
		return block_now(r, -EINVAL);
	next = enter(r, off, bytes);
	if (next != PROG_MOVE)
		return next;
	if (!client_begin_long(r->conn->client)) {
		block_io_end(r);
		return block_now(r, -EAGAIN);
	}
	call->is_long = true;
	r->plan.op = op;
	return PROG_MOVE;
}

enum prog_begin block_discard_begin(struct req *r)
{
	const BLOCKRANGEargs *a = &block_call(r)->args.range;

	if (!block_call(r)->entry->caps.discard)
		return block_now(r, -EOPNOTSUPP);
	return enter_long(r, a->offset, a->length, STORE_DISCARD);
}

enum prog_begin block_zero_begin(struct req *r)
{
	const BLOCKZEROargs *a = &block_call(r)->args.zero;
	enum prog_begin next = enter_long(r, a->offset, a->length, STORE_ZERO);

	r->plan.keep = a->keep;
	return next;
}

enum prog_begin block_extents_begin(struct req *r)
{
	const BLOCKRANGEargs *a = &block_call(r)->args.range;
	struct block_extents_mem *mem = r->scratch;
	enum prog_begin next = enter_long(r, a->offset, a->length, STORE_EXTENTS);

	r->plan.extents = &mem->found;
	return next;
}

static void add_extent(BLOCKEXTENTSresok *ok, uint64_t bytes, block_kind kind)
{
	block_extent *last = ok->extents.extents_len ? &ok->extents.extents_val[ok->extents.extents_len - 1] : NULL;

	if (!bytes)
		return;
	if (last && last->kind == kind)
		last->length += bytes;
	else
		ok->extents.extents_val[ok->extents.extents_len++] = (block_extent){ .length = bytes, .kind = kind };
}

static block_kind kind_of(enum store_extent_kind kind)
{
	switch (kind) {
	case STORE_HOLE_EXTENT:
		return BLOCK_HOLE;
	case STORE_ZERO_EXTENT:
		return BLOCK_ZERO;
	case STORE_DATA_EXTENT:
		break;
	}
	return BLOCK_DATA;
}

/* A file system's blocks may be smaller than the volume's: a block is a hole if all of it is one. Both begin at a block of
 * the volume. */
static void align_extents(const struct store_extents *found, uint32_t block, BLOCKEXTENTSresok *ok)
{
	uint64_t at = 0, told = 0; /* bytes of the range that were found, and that are in @ok */
	unsigned i;

	for (i = 0; i < found->n && ok->extents.extents_len + 2 <= BLOCK_EXTENTS_MAX; i++) {
		uint64_t end = at + found->v[i].length, first = (at + block - 1) / block * block, last = end / block * block;
		block_kind kind = kind_of(found->v[i].kind);

		if (kind != BLOCK_DATA && first < last) {
			add_extent(ok, first - told, BLOCK_DATA);
			add_extent(ok, last - first, kind);
			told = last;
		}
		at = end;
	}
	if (i == found->n && at / block * block > told)
		add_extent(ok, at / block * block - told, BLOCK_DATA);
	if (!ok->extents.extents_len)
		add_extent(ok, block, BLOCK_DATA);
}

void block_extents_finish(struct req *r)
{
	struct block_call *call = block_call(r);
	struct block_extents_mem *mem = r->scratch;
	BLOCKEXTENTSresok *ok = &call->res.extents.BLOCKEXTENTSres_u.resok;

	block_io_end(r);
	if (r->place.err) {
		block_refuse(r, disk_error(r->place.err));
		return;
	}
	ok->extents.extents_val = mem->told;
	align_extents(&mem->found, call->entry->block, ok);
}
