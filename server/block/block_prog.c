/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * block_prog.c - the block program (xdr/block.x): its procedures, and what they have in common
 *
 * Operation: The volumes in force when a request was decoded apply until it ends. A handle leads to its volume, whose rules
 *            are checked for every request. No reply is kept for duplicates: lanes take care of them (block_lanes.c).
 * Memory:    Part of the request.
 * Threads:   The reactor's, except work() and open().
 * Errors:    -errno, and block_refuse() makes a status of it.
 */
#include <errno.h>
#include <string.h>

#include "block_handle.h"
#include "block_service.h"

/* ---- statuses ----------------------------------------------------------------------------- */

static const struct prog_status statuses[] = {
	{ 0, BLOCK_OK },
	{ -EACCES, BLOCK_ERR_ACCES },
	{ -ENOENT, BLOCK_ERR_NOENT },
	{ -ESRCH, BLOCK_ERR_NOHOLDER },
	{ -EBUSY, BLOCK_ERR_BUSY },
	{ -EBADF, BLOCK_ERR_BADHANDLE },
	{ -ENXIO, BLOCK_ERR_GONE },
	{ -ESTALE, BLOCK_ERR_FENCED },
	{ -ECONNABORTED, BLOCK_ERR_OLD_LANE },
	{ -EINVAL, BLOCK_ERR_INVAL },
	{ -ENOSPC, BLOCK_ERR_NOSPC },
	{ -EDQUOT, BLOCK_ERR_NOSPC },
	{ -EFBIG, BLOCK_ERR_NOSPC },
	{ -EROFS, BLOCK_ERR_ROFS },
	{ -EOPNOTSUPP, BLOCK_ERR_NOTSUPP },
	{ -ETIMEDOUT, BLOCK_ERR_TIMEDOUT },
	{ -EAGAIN, BLOCK_ERR_LATER },
	{ -ENOMEM, BLOCK_ERR_LATER },
};

static void count_refusal(const struct req *r, int err)
{
	switch (err) {
	case -EBADF:
		block_count(r->reactor, block_bad_handles);
		break;
	case -ENXIO:
		block_count(r->reactor, block_gone);
		break;
	case -ESTALE:
		block_count(r->reactor, block_fenced);
		break;
	case -ECONNABORTED:
		block_count(r->reactor, block_old_lanes);
		break;
	default:
		break;
	}
}

void block_refuse(struct req *r, int err)
{
	memset(&block_call(r)->res, 0, sizeof(block_call(r)->res));
	block_call(r)->res.status = prog_status_of(statuses, ARRAY_SIZE(statuses), err, BLOCK_ERR_IO);
	count_refusal(r, err);
}

enum prog_begin block_now(struct req *r, int err)
{
	block_refuse(r, err);
	return PROG_REPLY;
}

/* ---- requests ----------------------------------------------------------------------------- */

static void init(struct req *r)
{
	struct block_call *call = block_call(r);

	memset(call, 0, offsetof(struct block_call, args));
	call->req = r;
	call->re = block_reactor(r->reactor);
	req_waiter_init(&call->waiter, r);
}

static void preset_list(struct req *r)
{
	block_call(r)->args.list.after = block_call(r)->names[0];
}

static void preset_info(struct req *r)
{
	block_call(r)->args.info.volume = block_call(r)->names[0];
	block_call(r)->args.info.after = block_call(r)->names[1];
}

static void preset_attach(struct req *r)
{
	struct block_call *call = block_call(r);

	call->args.attach.volume = call->names[0];
	call->args.attach.holder = call->names[1];
	call->args.attach.victim = call->names[2];
	call->args.attach.app = call->names[3];
}

int block_find_named(struct req *r, const char *name)
{
	struct block_call *call = block_call(r);

	call->entry = block_set_find(block_set_of(call->use), name);
	if (!call->entry)
		return -ENOENT;
	return block_entry_admits(call->entry, &r->conn->peer) ? 0 : -EACCES;
}

/* Leads the handle to its volume. */
static int find_volume(struct req *r)
{
	struct block_call *call = block_call(r);
	int err = block_handle_read(&block_server(r->srv)->keys, call->args.at.at.handle, &call->id);

	if (err)
		return err;
	call->entry = block_set_find_id(block_set_of(call->use), call->id.volume);
	if (!call->entry)
		return -ENXIO;
	return served_verdict(&block_peer(r->conn)->verdicts, call->use->served, &r->conn->peer, call->entry->idx) == PEER_ADMITTED
		       ? 0 : -EACCES;
}

static int authorize(struct req *r)
{
	struct block_call *call = block_call(r);
	int err;

	if (!call->use)
		call->use = served_use_hold(r->reactor->uses[SERVICE_BLOCK]);
	if (!r->proc->by_handle)
		return 0;
	err = find_volume(r);
	if (err)
		return err;
	r->dev = call->entry->backing.dev;
	return r->proc->modifies && call->entry->conf.ro ? -EROFS : 0;
}

static bool cancel(struct req *r)
{
	struct block_call *call = block_call(r);

	return call->entry && req_unwait(&call->entry->vol->lock, &call->waiter);
}

static void release(struct req *r)
{
	struct block_call *call = block_call(r);

	block_io_end(r);
	block_attach_release(r);
	served_use_put(call->use);
	call->use = NULL;
}

#define AT_CODECS(in, out) PROG_CODECS(in, out), .by_handle = true

static const struct prog_proc procs[] = {
	[BLOCKPROC_NULL] = PROG_NULL,
	[BLOCKPROC_LIST] = { .name = "LIST", PROG_CODECS(BLOCKLISTargs, BLOCKLISTres), .preset = preset_list,
			     .work = block_list },
	[BLOCKPROC_INFO] = { .name = "INFO", PROG_CODECS(BLOCKINFOargs, BLOCKINFOres), .preset = preset_info,
			     .work = block_info_of },
	[BLOCKPROC_ATTACH] = { .name = "ATTACH", PROG_CODECS(BLOCKATTACHargs, BLOCKATTACHres), .preset = preset_attach,
			       .begin = block_attach_begin, .open = block_attach_save },
	[BLOCKPROC_DETACH] = { .name = "DETACH", AT_CODECS(BLOCKATargs, BLOCKDETACHres), .begin = block_detach_begin,
			       .open = block_attach_save },
	[BLOCKPROC_READ] = { .name = "READ", AT_CODECS(BLOCKREADargs, BLOCKREADres), .move = PLACE_READ,
			     .begin = block_read_begin, .open = block_look, .finish = block_read_finish },
	[BLOCKPROC_WRITE] = { .name = "WRITE", AT_CODECS(BLOCKWRITEargs, BLOCKCHANGEres), .move = PLACE_WRITE,
			      .modifies = true, .payload = block_write_payload, .begin = block_write_begin,
			      .open = block_look, .finish = block_change_finish },
	[BLOCKPROC_DISCARD] = { .name = "DISCARD", AT_CODECS(BLOCKRANGEargs, BLOCKCHANGEres), .move = PLACE_STORE,
				.modifies = true, .begin = block_discard_begin, .open = block_look,
				.finish = block_change_finish },
	[BLOCKPROC_FLUSH] = { .name = "FLUSH", AT_CODECS(BLOCKATargs, BLOCKCHANGEres), .move = PLACE_STORE,
			      .begin = block_flush_begin, .finish = block_flush_finish },
	[BLOCKPROC_ZERO] = { .name = "ZERO", AT_CODECS(BLOCKZEROargs, BLOCKCHANGEres), .move = PLACE_STORE,
			     .modifies = true, .begin = block_zero_begin, .open = block_look,
			     .finish = block_change_finish },
	[BLOCKPROC_EXTENTS] = { .name = "EXTENTS", AT_CODECS(BLOCKRANGEargs, BLOCKEXTENTSres), .move = PLACE_STORE,
				.scratch_bytes = sizeof(struct block_extents_mem), .begin = block_extents_begin,
				.open = block_look, .finish = block_extents_finish },
};

const struct prog prog_block = {
	.number = LEAT_BLOCK,
	.vers = LEAT_BLOCK_V1,
	.name = "BLOCK",
	.procs = procs,
	.nprocs = ARRAY_SIZE(procs),
	.call_bytes = sizeof(struct block_call),
	.args_at = offsetof(struct block_call, args),
	.res_at = offsetof(struct block_call, res),
	.init = init,
	.authorize = authorize,
	.cancel = cancel,
	.fail = block_refuse,
	.release = release,
};
