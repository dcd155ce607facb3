/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * stripe_prog.c - the program of stripes (xdr/stripes.x): its procedures, and what they have in common
 *
 * Operation: The configuration in force when a request was decoded applies until it ends. A handle or a command leads to
 *            its volume, whose rules and keys are checked for every request. No reply is kept for duplicates: lanes take
 *            care of WRITE, and commands may be repeated.
 * Memory:    Part of the request.
 * Threads:   The reactor's, except open().
 * Errors:    -errno, and stripe_refuse() makes a status of it.
 */
#include <errno.h>
#include <string.h>

#include "stripe_service.h"

/* ---- statuses ----------------------------------------------------------------------------- */

static const struct prog_status statuses[] = {
	{ 0, STRIPE_OK },
	{ -EACCES, STRIPE_ERR_ACCES },
	{ -EBADF, STRIPE_ERR_BADHANDLE },
	{ -ETIME, STRIPE_ERR_EXPIRED },
	{ -ENXIO, STRIPE_ERR_NOVOLUME },
	{ -ESTALE, STRIPE_ERR_FENCED },
	{ -EBUSY, STRIPE_ERR_NOTREADY },
	{ -ECONNABORTED, STRIPE_ERR_OLDLANE },
	{ -EOWNERDEAD, STRIPE_ERR_OLDTERM },
	{ -EINVAL, STRIPE_ERR_INVAL },
	{ -ENOSPC, STRIPE_ERR_NOSPC },
	{ -EDQUOT, STRIPE_ERR_NOSPC },
	{ -EFBIG, STRIPE_ERR_FBIG },
	{ -ETIMEDOUT, STRIPE_ERR_TIMEDOUT },
	{ -EAGAIN, STRIPE_ERR_LATER },
	{ -ENOMEM, STRIPE_ERR_LATER },
	{ -EMFILE, STRIPE_ERR_LATER },
	{ -ENFILE, STRIPE_ERR_LATER },
};

static void count_refusal(const struct req *r, int err)
{
	switch (err) {
	case -EBADF:
		stripe_count(r->reactor, stripe_bad_handles);
		break;
	case -ETIME:
		stripe_count(r->reactor, stripe_expired);
		break;
	case -ESTALE:
		stripe_count(r->reactor, stripe_fenced);
		break;
	case -EBUSY:
		stripe_count(r->reactor, stripe_not_ready);
		break;
	case -EOWNERDEAD:
		stripe_count(r->reactor, stripe_old_terms);
		break;
	case -ECONNABORTED:
		stripe_count(r->reactor, stripe_old_lanes);
		break;
	default:
		break;
	}
}

void stripe_refuse(struct req *r, int err)
{
	memset(&stripe_call(r)->res, 0, sizeof(stripe_call(r)->res));
	stripe_call(r)->res.status = prog_status_of(statuses, ARRAY_SIZE(statuses), err, STRIPE_ERR_IO);
	count_refusal(r, err);
}

enum prog_begin stripe_reply(struct req *r, int err)
{
	stripe_refuse(r, err);
	return PROG_REPLY;
}

/* ---- requests ----------------------------------------------------------------------------- */

static void init(struct req *r)
{
	struct stripe_call *call = stripe_call(r);

	memset(call, 0, offsetof(struct stripe_call, args));
	call->req = r;
	call->re = stripe_reactor(r->reactor);
	req_waiter_init(&call->waiter, r);
}

struct stripe_order stripe_order_of(const struct req *r)
{
	const union stripe_args *a = &stripe_call(r)->args;
	struct stripe_order o = { .proc = (uint32_t)(r->proc - r->prog->procs) };

	switch (o.proc) {
	case STRIPEPROC_STAT:
		o.name = a->stat.name;
		break;
	case STRIPEPROC_FENCE:
		o.name = a->fence.name;
		o.value = a->fence.epoch;
		o.flag = a->fence.cut;
		o.bytes = a->fence.bytes;
		break;
	case STRIPEPROC_REMOVE:
		o.name = a->remove.name;
		o.value = a->remove.until;
		break;
	case STRIPEPROC_SET_ASIDE:
		o.name = a->aside.name;
		o.value = a->aside.until;
		o.bytes = a->aside.mtime;
		break;
	case STRIPEPROC_LIST:
		o.name = a->list.after;
		o.flag = a->list.first;
		break;
	default:
		break;
	}
	return o;
}

static uint32_t rights_for(uint32_t proc)
{
	return proc == STRIPEPROC_READ ? STRIPE_MAY_READ : STRIPE_MAY_WRITE;
}

static int check_handle(const struct req *r)
{
	struct stripe_call *call = stripe_call(r);
	int err = stripe_handle_read(&call->member->keys, call->args.at.handle, &call->handle);

	if (err)
		return err;
	if (call->handle.server != call->member->conf.id)
		return -EBADF;
	if (stripe_expired(call->handle.expiry, stripe_now()))
		return -ETIME;
	return call->handle.rights & rights_for((uint32_t)(r->proc - r->prog->procs)) ? 0 : -EACCES;
}

static int check_command(const struct req *r)
{
	struct stripe_call *call = stripe_call(r);
	struct stripe_order order = stripe_order_of(r);
	int err = stripe_command_read(&call->member->keys, call->args.first, &order, &call->command);

	if (err)
		return err;
	if (call->command.server != call->member->conf.id)
		return -EBADF;
	return stripe_expired(call->command.expiry, stripe_now()) ? -ETIME : 0;
}

static int authorize(struct req *r)
{
	struct stripe_call *call = stripe_call(r);
	uint32_t proc = (uint32_t)(r->proc - r->prog->procs);
	int err;

	if (!call->use)
		call->use = served_use_hold(r->reactor->uses[SERVICE_STRIPES]);
	if (proc == STRIPEPROC_NULL)
		return 0;
	call->member = stripe_set_find(stripe_set_of(call->use), stripe_volume_of(call->args.first));
	if (!call->member)
		return -ENXIO;
	if (served_verdict(&stripe_peer(r->conn)->verdicts, call->use->served, &r->conn->peer, call->member->idx) != PEER_ADMITTED)
		return -EACCES;
	r->dev = call->member->vol->dir.dev;
	err = r->proc->by_handle ? check_handle(r) : check_command(r);
	if (!err)
		call->vol = call->member->vol;
	return err;
}

static bool cancel(struct req *r)
{
	return stripe_unwait(stripe_call(r));
}

static void release(struct req *r)
{
	struct stripe_call *call = stripe_call(r);

	stripe_turn_release(call);
	served_use_put(call->use);
	call->use = NULL;
}

#define CODECS(in, out) PROG_CODECS(STRIPE##in##args, STRIPE##out##res)
/* its arguments begin with a handle */
#define HANDLE(in, out) CODECS(in, out), .by_handle = true, .open = stripe_turn_work
/* with a command */
#define COMMAND(in, out) CODECS(in, out), .open = stripe_turn_work

static const struct prog_proc procs[] = {
	[STRIPEPROC_NULL] = PROG_NULL,
	[STRIPEPROC_INFO] = { .name = "INFO", COMMAND(INFO, INFO), .begin = stripe_info_begin },
	[STRIPEPROC_READ] = { .name = "READ", HANDLE(READ, READ), .move = PLACE_READ, .begin = stripe_read_begin,
			      .finish = stripe_read_finish },
	[STRIPEPROC_WRITE] = { .name = "WRITE", HANDLE(WRITE, CHANGE), .move = PLACE_WRITE, .modifies = true,
			       .payload = stripe_write_payload, .begin = stripe_write_begin,
			       .finish = stripe_change_finish },
	[STRIPEPROC_COMMIT] = { .name = "COMMIT", HANDLE(COMMIT, CHANGE), .move = PLACE_STORE,
				.begin = stripe_commit_begin, .finish = stripe_change_finish },
	[STRIPEPROC_STAT] = { .name = "STAT", COMMAND(STAT, STAT), .begin = stripe_stat_begin },
	[STRIPEPROC_FENCE] = { .name = "FENCE", COMMAND(FENCE, STAT), .begin = stripe_fence_begin },
	[STRIPEPROC_REMOVE] = { .name = "REMOVE", COMMAND(REMOVE, STAT), .begin = stripe_remove_begin },
	[STRIPEPROC_LIST] = { .name = "LIST", COMMAND(LIST, LIST), .scratch_bytes = STRIPE_LIST_MAX * sizeof(stripe_entry),
			      .begin = stripe_list_begin },
	[STRIPEPROC_SET_ASIDE] = { .name = "SET_ASIDE", COMMAND(ASIDE, STAT), .begin = stripe_aside_begin },
};

const struct prog prog_stripes = {
	.number = LEAT_STRIPES,
	.vers = LEAT_STRIPES_V1,
	.name = "STRIPES",
	.procs = procs,
	.nprocs = ARRAY_SIZE(procs),
	.for_servers = true,
	.call_bytes = sizeof(struct stripe_call),
	.args_at = offsetof(struct stripe_call, args),
	.res_at = offsetof(struct stripe_call, res),
	.init = init,
	.authorize = authorize,
	.cancel = cancel,
	.fail = stripe_refuse,
	.release = release,
};
