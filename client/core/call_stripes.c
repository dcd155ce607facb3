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

static const struct lt_program stripes = { LEAT_STRIPES, LEAT_STRIPES_V1, .is_later = is_later,
					   .old_lane = STRIPE_ERR_OLDLANE, .to_errno = stripe_errno, .name = explain_status };

static const struct lt_proc procs[] = {
	[STRIPEPROC_READ] = LT_PROC(STRIPEREAD, STRIPEREAD, 8u, .moves_data = true, .has_lane = true, .program = &stripes),
	[STRIPEPROC_WRITE] = LT_PROC(STRIPEWRITE, STRIPECHANGE, 8u, .changes = LT_CHANGES, .moves_data = true,
				     .has_lane = true, .program = &stripes),
	[STRIPEPROC_COMMIT] = LT_PROC(STRIPECOMMIT, STRIPECHANGE, 8u, .has_lane = true, .program = &stripes),
};

void lt_call_start_stripes(struct lt_call *c, struct lt_server *server, uint32_t proc, const void *args, stripe_lane *lane,
			   void *res, const struct iovec *sink, int sinkcnt, uint32_t patience_ms, lt_call_done done)
{
	c->server = server;
	c->laned = (struct lt_call_laned){ args, LT_LANE(lane) };
	c->rpc = (struct rpcrdma_call){ .args = c, .res = res, .sink = sink, .sinkcnt = sinkcnt, .segs_max = SEGS_MAX };
	c->done = done;
	lt_call_prog(c, proc, &procs[proc], patience_ms);
}

/* ---- the manager ---- */

static bool is_volume_later(uint32_t status)
{
	return status == VOLUME_ERR_LATER;
}

static const struct lt_program volume = { LEAT_VOLUME, LEAT_VOLUME_V1, .is_later = is_volume_later,
					  .to_errno = volume_errno, .name = volume_status_name };

#define PROC(name, kind, max) \
	LT_PROC(VOL##name, VOL##name, max, .changes = LT_##kind, .allocates = true, .program = &volume)

const struct lt_proc lt_volume_procs[] = {
	[VOLUMEPROC_MAP] = PROC(MAP, READS, 28u + VOLUME_SERVERS_MAX * (12u + VOLUME_URL_MAX)),
	[VOLUMEPROC_LAYOUT] = PROC(LAYOUT, READS, 48u + STRIPE_OBJECT_BYTES + VOLUME_SERVERS_MAX * (4u + STRIPE_HANDLE_BYTES)),
	[VOLUMEPROC_REPORT] = PROC(REPORT, READS, 12u),
	[VOLUMEPROC_RESERVE] = PROC(RESERVE, CHANGES, 8u),
	[VOLUMEPROC_SET] = PROC(SET, READS, 8u),
	[VOLUMEPROC_CREATE] = PROC(CREATE, CHANGES, 8u),
	[VOLUMEPROC_SERVERS] = PROC(SERVERS, READS, 4u + VOLUME_SERVERS_MAX * 16u),
	[VOLUMEPROC_CHECK] = PROC(CHECK, READS, 32u + VOLUME_CHECK_MAX * (STRIPE_OBJECT_BYTES + 4u)),
};
