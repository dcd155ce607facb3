/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * call_stripes.c - calls of striped volumes: to the manager, and to the servers that keep the stripes
 *
 * Operation:  As NFS calls (call.c). Those to stripe servers go to a server that is not the mount's, by lanes, and have a
 *             time limit: a server that is away must not hold up what others could serve.
 * Memory:     Results of MAP and LAYOUT are allocated by the codec.
 * Threads:    As call.c.
 * Errors:     -errno of stripe_status.c and volume_errno().
 */
#include <errno.h>

#include "call.h"
#include "handle.h"
#include "stripe_status.h"
#include "volume_status.h"

#define SEGS_MAX 64u /* of a chunk: every leatd accepts that */
#define STATUS_BYTES 4u

/* The name of a status; with an explanation if the errno alone misleads */
static const char *explain_status(uint32_t status)
{
	switch (status) {
	case STRIPE_ERR_ACCES:
		return "STRIPE_ERR_ACCES: the stripe server admits no calls of this host";
	case STRIPE_ERR_NOVOLUME:
		return "STRIPE_ERR_NOVOLUME: the stripe server has no stripes of this volume";
	case STRIPE_ERR_NOTREADY:
		return "STRIPE_ERR_NOTREADY: the manager has not yet brought this stripe up to date";
	case STRIPE_ERR_OLDTERM:
		return "STRIPE_ERR_OLDTERM: the stripe server obeys a newer manager";
	default:
		return stripe_status_name(status);
	}
}

/* The manager brings a stripe up to date soon, or raises the epoch again. */
static bool is_later(uint32_t status)
{
	return status == STRIPE_ERR_LATER || status == STRIPE_ERR_NOTREADY;
}

static const struct lt_statuses stripe_statuses = { .is_later = is_later, .old_lane = STRIPE_ERR_OLDLANE,
						    .to_errno = stripe_errno, .name = explain_status };

#define CHANGES true
#define READS false /* or what may as well be done twice: COMMIT */

#define PROC(in, out, has_changes, max)                                                                        \
	{                                                                                                    \
		.encode = (xdrproc_t)lt_call_encode_laned,                                                   \
		.args = (xdrproc_t)xdr_STRIPE##in##args,                                                     \
		.decode = (xdrproc_t)xdr_STRIPE##out##res,                                                   \
		.res_bytes = sizeof(STRIPE##out##res),                                                       \
		.reply_max = STATUS_BYTES + (max),                                                           \
		.changes = has_changes,                                                                      \
		.statuses = &stripe_statuses,                                                                \
	}

static const struct lt_proc stripe_procs[] = {
	[STRIPEPROC_READ] = PROC(READ, READ, READS, 8u),
	[STRIPEPROC_WRITE] = PROC(WRITE, CHANGE, CHANGES, 8u),
	[STRIPEPROC_COMMIT] = PROC(COMMIT, CHANGE, READS, 8u),
};

void lt_call_start_stripes(struct lt_call *c, struct lt_server *server, uint32_t proc, const void *args, stripe_lane *lane,
			   void *res, const struct iovec *sink, int sinkcnt, uint32_t patience_ms, lt_call_done done)
{
	c->server = server;
	c->laned = (struct lt_call_laned){ args, LT_LANE(lane) };
	c->rpc = (struct rpcrdma_call){ .args = c, .res = res, .sink = sink, .sinkcnt = sinkcnt, .segs_max = SEGS_MAX };
	c->done = done;
	lt_call_prog(c, LEAT_STRIPES, LEAT_STRIPES_V1, proc, &stripe_procs[proc], patience_ms);
}

/* ---- the manager ---- */

static bool is_volume_later(uint32_t status)
{
	return status == VOLUME_ERR_LATER;
}

static const struct lt_statuses volume_statuses = { .is_later = is_volume_later, .to_errno = volume_errno,
						    .name = volume_status_name };

#undef PROC
#define PROC(name, max, kind)                                                                                        \
	{                                                                                                    \
		.encode = (xdrproc_t)xdr_VOL##name##args,                                                    \
		.decode = (xdrproc_t)xdr_VOL##name##res,                                                     \
		.res_bytes = sizeof(VOL##name##res),                                                         \
		.reply_max = STATUS_BYTES + (max),                                                           \
		.changes = kind,                                                                            \
		.allocates = true,                                                                           \
		.statuses = &volume_statuses,                                                                \
	}

static const struct lt_proc volume_procs[] = {
	[VOLUMEPROC_MAP] = PROC(MAP, 28u + VOLUME_SERVERS_MAX * (12u + VOLUME_URL_MAX), READS),
	[VOLUMEPROC_LAYOUT] = PROC(LAYOUT, 48u + STRIPE_OBJECT_BYTES + VOLUME_SERVERS_MAX * (4u + STRIPE_HANDLE_BYTES), READS),
	[VOLUMEPROC_REPORT] = PROC(REPORT, 12u, READS), /* may be executed twice */
	[VOLUMEPROC_RESERVE] = PROC(RESERVE, 8u, CHANGES),
	[VOLUMEPROC_SET] = PROC(SET, 8u, READS),
	[VOLUMEPROC_CREATE] = PROC(CREATE, 8u, CHANGES),
	[VOLUMEPROC_SERVERS] = PROC(SERVERS, 4u + VOLUME_SERVERS_MAX * 16u, READS),
	[VOLUMEPROC_CHECK] = PROC(CHECK, 32u + VOLUME_CHECK_MAX * (STRIPE_OBJECT_BYTES + 4u), READS),
};

void lt_call_start_volume(struct lt_call *c, uint32_t proc, const void *args, void *res, lt_call_done done)
{
	c->server = c->m->server;
	c->sent_ns = lt_handle_now(c->m); /* from then on a lifetime counts */
	c->laned = (struct lt_call_laned){ 0 };
	c->rpc = (struct rpcrdma_call){ .args = args, .res = res };
	c->done = done;
	lt_call_prog(c, LEAT_VOLUME, LEAT_VOLUME_V1, proc, &volume_procs[proc], 0);
}
